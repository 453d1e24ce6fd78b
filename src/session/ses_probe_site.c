/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who called. Addresses in the target itself have the session's names. For the rest a process' mappings are read from /proc once, and of a process
 * that is watched noted by the kernel as they are made, since it may be gone when its hits are read; other files have the names of their
 * symbol tables.
 */
#include "session/ses_probe_int.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RING_PAGES = 64, PROCESS_MAX = 4096, MAPPING_MAX = 65536, MODULE_MAX = 1024, MAPS_NS = 50000000 };

struct mapping { uint64_t from, to, off; char *path; };
struct process {
	pid_t pid;
	VEC(struct mapping) maps;      /* the newest last */
	uint64_t read_ns;              /* when /proc was asked last */
	char comm[17], *exe;
};
struct symbol { uint64_t off, len; const char *name; uint32_t name_len; };
struct module {
	char *path;
	struct file *file;
	struct fmt_bin *bin;
	struct symbol *symbols;        /* functions by file offset */
	uint32_t symbol_cnt;
};

struct ses_sites {
	struct ses_snap *sn;
	VEC(struct process) processes;
	VEC(struct module) modules;
	size_t mapping_cnt;
	int event_fd;
	uint8_t *ring;
	size_t ring_len;
	struct arena arena;            /* of the answer */
};

struct ses_sites *ses_sites_new(struct ses_snap *sn)
{
	struct ses_sites *s = calloc(1, sizeof(*s));
	if (s) {
		s->sn = sn;
		s->event_fd = -1;
	}
	return s;
}

static void forget_maps(struct ses_sites *s, struct process *p)
{
	s->mapping_cnt -= p->maps.cnt;
	for (size_t i = 0; i < p->maps.cnt; i++)
		free(p->maps.data[i].path);
	p->maps.cnt = 0;
}

static void close_ring(struct ses_sites *s)
{
	if (s->ring)
		munmap(s->ring, s->ring_len);
	if (s->event_fd >= 0)
		close(s->event_fd);
	s->ring = NULL;
	s->event_fd = -1;
}

void ses_sites_free(struct ses_sites *s)
{
	if (!s)
		return;
	close_ring(s);
	for (size_t i = 0; i < s->processes.cnt; i++) {
		forget_maps(s, &s->processes.data[i]);
		VEC_FREE(&s->processes.data[i].maps);
		free(s->processes.data[i].exe);
	}
	for (size_t i = 0; i < s->modules.cnt; i++) {
		fmt_bin_free(s->modules.data[i].bin);
		file_close(s->modules.data[i].file);
		free(s->modules.data[i].symbols);
		free(s->modules.data[i].path);
	}
	VEC_FREE(&s->processes);
	VEC_FREE(&s->modules);
	arena_fini(&s->arena);
	free(s);
}

/* --- mappings --------------------------------------------------------------------------------------------------- */
static void add_map(struct ses_sites *s, struct process *p, struct mapping m, const char *path)
{
	if (s->mapping_cnt >= MAPPING_MAX || !path[0] || !(m.path = strdup(path)))
		return;
	if (VEC_PUSH(&p->maps, m))
		s->mapping_cnt++;
	else
		free(m.path);
}

static void read_names(struct process *p)
{
	char path[64], exe[4096];
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)p->pid);
	FILE *f = fopen(path, "re");
	if (f) {
		if (fgets(p->comm, sizeof(p->comm), f))
			p->comm[strcspn(p->comm, "\n")] = 0;
		fclose(f);
	}
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)p->pid);
	ssize_t n = readlink(path, exe, sizeof(exe) - 1);
	if (n > 0) {
		free(p->exe);
		p->exe = strndup(exe, (size_t)n);
	}
}

static void read_maps(struct ses_sites *s, struct process *p)
{
	char path[64], *line = NULL;
	size_t cap = 0;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)p->pid);
	uint64_t now = ses_now_ns();
	FILE *f = now - p->read_ns >= MAPS_NS ? fopen(path, "re") : NULL;
	if (!f)
		return;
	p->read_ns = now;
	read_names(p);
	/* A process that ended has none; what was noted before stands then. */
	bool is_first = true;
	for (ssize_t n; (n = getline(&line, &cap, f)) > 0;) {
		struct mapping m = {0};
		int at = 0;
		unsigned long long from, to, off;
		char perm[5];
		if (sscanf(line, "%llx-%llx %4s %llx %*s %*s %n", &from, &to, perm, &off, &at) != 4 || !at || perm[2] != 'x')
			continue;
		line[strcspn(line, "\n")] = 0;
		m = (struct mapping){.from = from, .to = to, .off = off};
		if (is_first)
			forget_maps(s, p);
		is_first = false;
		if (line[at] == '/')
			add_map(s, p, m, line + at);
	}
	free(line);
	fclose(f);
}

static struct process *get_process(struct ses_sites *s, pid_t pid, bool is_read)
{
	for (size_t i = s->processes.cnt; i--;) {
		if (s->processes.data[i].pid == pid)
			return &s->processes.data[i];
	}
	if (s->processes.cnt == PROCESS_MAX || !VEC_PUSH(&s->processes, (struct process){.pid = pid}))
		return NULL;
	struct process *p = &s->processes.data[s->processes.cnt - 1];
	if (is_read)
		read_maps(s, p);
	return p;
}

void ses_sites_watch(struct ses_sites *s, pid_t pid)
{
	struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(a), .config = PERF_COUNT_SW_DUMMY};
	a.mmap = a.mmap2 = a.comm = a.comm_exec = a.exclude_kernel = 1;
	close_ring(s);
	s->event_fd = (int)syscall(SYS_perf_event_open, &a, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (s->event_fd < 0)
		return;
	s->ring_len = (1 + RING_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
	void *ring = mmap(NULL, s->ring_len, PROT_READ | PROT_WRITE, MAP_SHARED, s->event_fd, 0);
	if (ring == MAP_FAILED)
		close_ring(s);
	else
		s->ring = ring;
}

/* include/uapi/linux/perf_event.h: a record of `len` bytes, header and all. */
static void take_record(struct ses_sites *s, uint32_t type, const uint8_t *r, size_t len)
{
	uint32_t pid;
	if (len < 16)
		return;
	memcpy(&pid, r + 8, sizeof(pid));
	struct process *p = get_process(s, (pid_t)pid, false);
	if (type == PERF_RECORD_COMM && p) {
		uint16_t misc;
		memcpy(&misc, r + 4, sizeof(misc));
		snprintf(p->comm, sizeof(p->comm), "%.*s", (int)MIN(len - 16, sizeof(p->comm) - 1), (const char *)r + 16);
		if (misc & PERF_RECORD_MISC_COMM_EXEC) {
			forget_maps(s, p);
			free(p->exe);
			p->exe = NULL;
		}
	} else if (type == PERF_RECORD_MMAP2 && p && len > 72) {
		struct mapping m = {0};
		memcpy(&m.from, r + 16, 8);
		memcpy(&m.to, r + 24, 8);
		memcpy(&m.off, r + 32, 8);
		m.to += m.from;
		if (r[72] == '/' && memchr(r + 72, 0, len - 72)) {
			add_map(s, p, m, (const char *)r + 72);
			/* The first code that is mapped after an exec is the program's. */
			if (!p->exe)
				p->exe = strdup((const char *)r + 72);
		}
	}
}

void ses_sites_drain(struct ses_sites *s)
{
	if (!s->ring)
		return;
	struct perf_event_mmap_page *head = (struct perf_event_mmap_page *)(void *)s->ring;
	size_t page = (size_t)sysconf(_SC_PAGESIZE), data_len = s->ring_len - page;
	uint64_t end = __atomic_load_n(&head->data_head, __ATOMIC_ACQUIRE), at = head->data_tail;
	_cleanup_free_ uint8_t *rec = malloc(UINT16_MAX + 1);
	while (rec && at < end) {
		/* A record may go over the end of the ring. */
		struct perf_event_header h;
		for (size_t i = 0; i < sizeof(h); i++)
			rec[i] = s->ring[page + ((at + i) & (data_len - 1))];
		memcpy(&h, rec, sizeof(h));
		if (h.size < sizeof(h))
			break;
		for (size_t i = sizeof(h); i < h.size; i++)
			rec[i] = s->ring[page + ((at + i) & (data_len - 1))];
		take_record(s, h.type, rec, h.size);
		at += h.size;
	}
	__atomic_store_n(&head->data_tail, at, __ATOMIC_RELEASE);
}

static const struct mapping *find_map(const struct process *p, uint64_t va)
{
	for (size_t i = p->maps.cnt; i--;) {
		if (va >= p->maps.data[i].from && va < p->maps.data[i].to)
			return &p->maps.data[i];
	}
	return NULL;
}

/* --- symbols ----------------------------------------------------------------------------------------------------- */
static int by_off(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;
	return x->off != y->off ? (x->off > y->off) - (x->off < y->off) : (x->len < y->len) - (x->len > y->len);
}

static void read_symbols(struct module *m)
{
	struct err *e = file_open(m->path, &m->file);
	if (!e)
		e = fmt_open(m->file->data, m->file->len, &m->bin);
	m->symbols = e ? NULL : alloc_array(m->bin->symbols.cnt, sizeof(*m->symbols));
	err_free(e);
	for (size_t i = 0; m->symbols && i < m->bin->symbols.cnt; i++) {
		const struct fmt_symbol *y = &m->bin->symbols.data[i];
		uint64_t off;
		bool is_func = (y->type == FMT_SYM_FUNC || y->type == FMT_SYM_IFUNC) && !y->is_undefined && y->va && y->name.len;
		if (is_func && fmt_va_to_off(m->bin, y->va, &off))
			m->symbols[m->symbol_cnt++] = (struct symbol){
				.off = off, .len = y->size_len, .name = y->name.s, .name_len = (uint32_t)y->name.len};
	}
	if (m->symbol_cnt)
		qsort(m->symbols, m->symbol_cnt, sizeof(*m->symbols), by_off);
}

static const struct symbol *find_symbol(struct ses_sites *s, const char *path, uint64_t off)
{
	struct module *m = NULL;
	for (size_t i = 0; i < s->modules.cnt && !m; i++)
		m = strcmp(s->modules.data[i].path, path) == 0 ? &s->modules.data[i] : NULL;
	if (!m) {
		char *copy = s->modules.cnt < MODULE_MAX ? strdup(path) : NULL;
		if (!copy || !VEC_PUSH(&s->modules, (struct module){.path = copy})) {
			free(copy);
			return NULL;
		}
		m = &s->modules.data[s->modules.cnt - 1];
		read_symbols(m);
	}
	uint32_t lo = 0, hi = m->symbol_cnt;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (m->symbols[mid].off <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	const struct symbol *y = lo ? &m->symbols[lo - 1] : NULL;
	return y && (!y->len || off - y->off < y->len) ? y : NULL;
}

void ses_sites_find(struct ses_sites *s, pid_t pid, uint64_t bias, uint64_t va, struct ses_site *ret)
{
	struct ses_func f;
	*ret = (struct ses_site){0};
	arena_reset(&s->arena);
	/* What called is the instruction before the return address. */
	if (va > bias && ses_func_at(s->sn, va - 1 - bias, &s->arena, &f)) {
		ret->module = s->sn->ses->path;
		ret->func = arena_strndup(&s->arena, f.name.s, f.name.len);
		ret->func_off = va - bias - f.addr;
		if (!ses_va_to_file(s->sn, va - bias, &ret->off))
			ret->off = 0;
		return;
	}
	struct process *p = get_process(s, pid, true);
	const struct mapping *m = p ? find_map(p, va) : NULL;
	if (!m && p) {
		/* Mapped since: what /proc says now, if the process is still there. */
		read_maps(s, p);
		m = find_map(p, va);
	}
	if (!m)
		return;
	ret->module = m->path;
	ret->off = va - m->from + m->off;
	const struct symbol *y = find_symbol(s, m->path, ret->off - 1);
	if (y) {
		ret->func = arena_strndup(&s->arena, y->name, y->name_len);
		ret->func_off = ret->off - y->off;
	}
}

const char *ses_sites_comm(struct ses_sites *s, pid_t pid, const char **ret_exe)
{
	struct process *p = get_process(s, pid, true);
	*ret_exe = p ? p->exe : NULL;
	return p && p->comm[0] ? p->comm : NULL;
}
