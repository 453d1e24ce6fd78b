/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who called, in which process. What processes map, and when they become others, begin and end, the kernel notes (perf_event_open(2), records of
 * a dummy event) with the time of the clock that hits have: applied up to the time of a hit, it is what held then, even when the process is gone
 * before anybody looks. Functions of the target have the session's names, others those of their symbol tables (trace_site.h).
 */
#include "session/ses_probe_int.h"

#include "base/map.h"
#include "live/trace/trace_site.h"
#include "live/trace/trace_wire.h"
#include "session/ses_trace_line.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { RING_PAGES = 64, PROCESS_MAX = 1 << 20, NOTE_MAX = 1 << 18, RECORD_HEAD = 16, FRAME_MAX = 32 };

struct process {
	bool is_known;                 /* /proc was asked, or the kernel told */
	char comm[17], *exe;
};
/* What the kernel noted. */
struct note {
	uint64_t time, number;
	uint32_t type;                 /* PERF_RECORD_* */
	bool is_exec;
	uint32_t pid, tid, parent;
	uint64_t start, len, off, ino;
	char *text;                    /* path or name */
};
struct ring { int fd; uint8_t *data; };

struct ses_sites {
	struct ses_snap *sn;
	char *path;                    /* of the target, absolute */
	struct trace_sites *sites;
	struct ses_lines *lines;       /* null: no lines of C */
	VEC(struct process) processes;
	struct map by_pid;
	VEC(struct ring) rings;
	VEC(struct note) notes;        /* by time; those before `next` are applied */
	size_t next;
	uint64_t read_ns, numbers;     /* of the boot clock: what was noted before is among them */
	struct arena arena;            /* of the answer */
};

struct ses_sites *ses_sites_new(struct ses_snap *sn, bool with_lines)
{
	struct ses_sites *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->sn = sn;
	s->path = realpath(sn->ses->path, NULL);
	s->path = s->path ? s->path : strdup(sn->ses->path);
	s->sites = trace_sites_new(true);
	s->lines = with_lines ? ses_lines_new() : NULL;
	if (!s->path || !s->sites || (with_lines && (!s->lines || !ses_lines_add(s->lines, s->path, sn)))) {
		ses_sites_free(s);
		return NULL;
	}
	return s;
}

static void close_rings(struct ses_sites *s)
{
	for (size_t i = 0; i < s->rings.cnt; i++) {
		munmap(s->rings.data[i].data, (1 + RING_PAGES) * (size_t)sysconf(_SC_PAGESIZE));
		close(s->rings.data[i].fd);
	}
	VEC_FREE(&s->rings);
}

void ses_sites_free(struct ses_sites *s)
{
	if (!s)
		return;
	close_rings(s);
	for (size_t i = 0; i < s->processes.cnt; i++)
		free(s->processes.data[i].exe);
	for (size_t i = s->next; i < s->notes.cnt; i++)
		free(s->notes.data[i].text);
	VEC_FREE(&s->processes);
	VEC_FREE(&s->notes);
	map_fini(&s->by_pid);
	trace_sites_free(s->sites);
	ses_lines_free(s->lines);
	arena_fini(&s->arena);
	free(s->path);
	free(s);
}

/* --- processes --------------------------------------------------------------------------------------------------- */
static void read_names(struct process *p, uint32_t pid)
{
	char path[64], exe[4096];
	p->is_known = true;
	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	FILE *f = fopen(path, "re");
	if (f) {
		if (fgets(p->comm, sizeof(p->comm), f))
			p->comm[strcspn(p->comm, "\n")] = 0;
		fclose(f);
	}
	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	ssize_t n = readlink(path, exe, sizeof(exe) - 1);
	if (n > 0) {
		free(p->exe);
		p->exe = strndup(exe, (size_t)n);
	}
}

/* Null: memory is out, or there were too many. Valid until the next call. */
static struct process *get_process(struct ses_sites *s, uint32_t pid)
{
	uint32_t idx;
	if (map_find(&s->by_pid, pid, &idx))
		return &s->processes.data[idx];
	if (s->processes.cnt == PROCESS_MAX || !VEC_PUSH(&s->processes, (struct process){0}))
		return NULL;
	if (!map_put(&s->by_pid, pid, (uint32_t)(s->processes.cnt - 1))) {
		s->processes.cnt--;
		return NULL;
	}
	return &s->processes.data[s->processes.cnt - 1];
}

static struct process *get_known(struct ses_sites *s, uint32_t pid)
{
	struct process *p = get_process(s, pid);
	if (p && !p->is_known)
		read_names(p, pid);
	return p;
}

/* --- what the kernel notes ---------------------------------------------------------------------------------------- */
static void add_ring(struct ses_sites *s, pid_t pid, int cpu)
{
	struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(a), .config = PERF_COUNT_SW_DUMMY, .sample_type = PERF_SAMPLE_TIME,
				    .clockid = CLOCK_BOOTTIME};
	a.mmap = a.mmap2 = a.comm = a.comm_exec = a.task = a.exclude_kernel = a.sample_id_all = a.use_clockid = 1;
	struct ring r = {.fd = (int)syscall(SYS_perf_event_open, &a, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC)};
	if (r.fd < 0)
		return;
	void *p = mmap(NULL, (1 + RING_PAGES) * (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED, r.fd, 0);
	r.data = p;
	if (p == MAP_FAILED || !VEC_PUSH(&s->rings, r)) {
		if (p != MAP_FAILED)
			munmap(p, (1 + RING_PAGES) * (size_t)sysconf(_SC_PAGESIZE));
		close(r.fd);
	}
}

/* What it had mapped before it was watched. */
static void read_maps(struct ses_sites *s, pid_t pid)
{
	char path[64], *line = NULL;
	size_t cap = 0;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	FILE *f = fopen(path, "re");
	for (ssize_t n; f && (n = getline(&line, &cap, f)) > 0;) {
		int at = 0;
		unsigned long long from, to, off, ino;
		char perm[5];
		if (sscanf(line, "%llx-%llx %4s %llx %*s %llu %n", &from, &to, perm, &off, &ino, &at) != 5 || !at || perm[2] != 'x')
			continue;
		line[strcspn(line, "\n")] = 0;
		struct trace_wire_file file = {.ino = ino};
		struct trace_slot slots[2] = {{.len = (uint32_t)strlen(line + at), .data = (const uint8_t *)line + at},
					      {.arg = TRACE_WIRE_ARG_FILE, .len = sizeof(file), .data = (const uint8_t *)&file}};
		struct trace_event ev = {.kind = TRACE_MMAP, .pid = (uint32_t)pid, .tid = (uint32_t)pid, .args = {from, to - from, 0, 0, off},
					 .slots = slots, .nslots = line[at] == '/' ? 2 : 0};
		trace_sites_event(s->sites, &ev);
	}
	free(line);
	if (f)
		fclose(f);
}

void ses_sites_watch(struct ses_sites *s, const pid_t *pids, size_t cnt, bool with_children)
{
	close_rings(s);
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	if (cnt == 1 && !with_children)
		add_ring(s, pids[0], -1);
	else
		for (int i = 0; i < cpus; i++)
			add_ring(s, -1, i);
	for (size_t i = 0; i < cnt; i++) {
		read_maps(s, pids[i]);
		get_known(s, (uint32_t)pids[i]);
	}
}

/* include/uapi/linux/perf_event.h: a record of `len` bytes, header and all; its last word is the time. */
static void take_record(struct ses_sites *s, const struct perf_event_header *h, const uint8_t *r)
{
	struct note n = {.type = h->type, .is_exec = h->misc & PERF_RECORD_MISC_COMM_EXEC, .number = s->numbers++};
	if (h->size < RECORD_HEAD + 8)
		return;
	size_t len = h->size - 8u;
	const char *text = NULL;
	size_t text_len = 0;
	memcpy(&n.time, r + len, 8);
	memcpy(&n.pid, r + 8, 4);
	if (n.type == PERF_RECORD_COMM) {
		memcpy(&n.tid, r + 12, 4);
		text = (const char *)r + 16;
		text_len = len - 16;
	} else if (n.type == PERF_RECORD_MMAP2 && len > 72) {
		memcpy(&n.start, r + 16, 8);
		memcpy(&n.len, r + 24, 8);
		memcpy(&n.off, r + 32, 8);
		memcpy(&n.ino, r + 48, 8);
		text = (const char *)r + 72;
		text_len = len - 72;
	} else if ((n.type == PERF_RECORD_FORK || n.type == PERF_RECORD_EXIT) && len >= 24) {
		memcpy(&n.parent, r + 12, 4);
		memcpy(&n.tid, r + 16, 4);
	} else if (n.type != PERF_RECORD_LOST) {
		return;
	}
	n.text = text ? strndup(text, text_len) : NULL;
	if ((text && !n.text) || s->notes.cnt - s->next >= NOTE_MAX || !VEC_PUSH(&s->notes, n)) {
		free(n.text);
		/* Without it nothing before is right any more. */
		if (s->notes.cnt > s->next)
			s->notes.data[s->notes.cnt - 1].type = PERF_RECORD_LOST;
	}
}

static void read_ring(struct ses_sites *s, const struct ring *r, uint8_t *rec)
{
	struct perf_event_mmap_page *head = (struct perf_event_mmap_page *)(void *)r->data;
	size_t page = (size_t)sysconf(_SC_PAGESIZE), data_len = RING_PAGES * page;
	uint64_t end = __atomic_load_n(&head->data_head, __ATOMIC_ACQUIRE), at = head->data_tail;
	while (at < end) {
		/* A record may go over the end of the ring. */
		struct perf_event_header h;
		for (size_t i = 0; i < sizeof(h); i++)
			rec[i] = r->data[page + ((at + i) & (data_len - 1))];
		memcpy(&h, rec, sizeof(h));
		if (h.size < sizeof(h))
			break;
		for (size_t i = sizeof(h); i < h.size; i++)
			rec[i] = r->data[page + ((at + i) & (data_len - 1))];
		take_record(s, &h, rec);
		at += h.size;
	}
	__atomic_store_n(&head->data_tail, at, __ATOMIC_RELEASE);
}

static int by_time(const void *a, const void *b)
{
	const struct note *x = a, *y = b;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

uint64_t ses_sites_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void read_rings(struct ses_sites *s)
{
	uint64_t now = ses_sites_now();
	_cleanup_free_ uint8_t *rec = s->rings.cnt ? malloc(UINT16_MAX + 1) : NULL;
	size_t left = s->notes.cnt - s->next;
	if (s->next && left)
		memmove(s->notes.data, s->notes.data + s->next, left * sizeof(*s->notes.data));
	s->notes.cnt = left;
	s->next = 0;
	size_t was = s->notes.cnt;
	for (size_t i = 0; rec && i < s->rings.cnt; i++)
		read_ring(s, &s->rings.data[i], rec);
	if (s->notes.cnt > was)
		qsort(s->notes.data, s->notes.cnt, sizeof(*s->notes.data), by_time);
	s->read_ns = now;
}

/* Processes are asked again. */
static void forget_all(struct ses_sites *s)
{
	struct trace_sites *fresh = trace_sites_new(true);
	for (size_t i = 0; i < s->processes.cnt; i++)
		s->processes.data[i].is_known = false;
	if (!fresh)
		return;
	trace_sites_free(s->sites);
	s->sites = fresh;
}

static void apply_fork(struct ses_sites *s, const struct note *n)
{
	struct trace_event ev = {.kind = TRACE_FORK, .pid = n->parent, .tid = n->parent, .args = {n->tid, n->pid}};
	if (n->pid == n->parent)
		return;
	trace_sites_event(s->sites, &ev);
	const struct process *from = get_known(s, n->parent);
	struct process copy = from ? *from : (struct process){0};
	copy.exe = copy.exe ? strdup(copy.exe) : NULL;
	struct process *to = get_process(s, n->pid);
	if (to) {
		free(to->exe);
		*to = copy;
	} else {
		free(copy.exe);
	}
}

static void apply_comm(struct ses_sites *s, const struct note *n)
{
	struct trace_event ev = {.kind = TRACE_EXEC, .pid = n->pid, .tid = n->pid};
	if (n->is_exec)
		trace_sites_event(s->sites, &ev);
	else if (n->pid != n->tid)
		return;
	struct process *p = get_process(s, n->pid);
	if (!p)
		return;
	snprintf(p->comm, sizeof(p->comm), "%s", n->text);
	/* Of a process that was not known before, only its new name is. */
	p->is_known = p->is_known || n->is_exec;
	if (n->is_exec) {
		free(p->exe);
		p->exe = NULL;
	}
}

static void apply_mmap(struct ses_sites *s, const struct note *n)
{
	bool is_file = n->text[0] == '/' && n->text[1] != '/';
	struct trace_wire_file file = {.ino = n->ino};
	struct trace_slot slots[2] = {{.len = (uint32_t)strlen(n->text), .data = (const uint8_t *)n->text},
				      {.arg = TRACE_WIRE_ARG_FILE, .len = sizeof(file), .data = (const uint8_t *)&file}};
	struct trace_event ev = {.kind = TRACE_MMAP, .pid = n->pid, .tid = n->pid, .args = {n->start, n->len, 0, 0, n->off}, .slots = slots,
				 .nslots = is_file ? 2 : 0};
	trace_sites_event(s->sites, &ev);
	struct process *p = is_file ? get_process(s, n->pid) : NULL;
	/* The first code that is mapped after an exec is the program's. */
	if (p && p->is_known && !p->exe)
		p->exe = strdup(n->text);
}

static void apply(struct ses_sites *s, const struct note *n, ses_sites_gone_fn *gone, void *ctx)
{
	if (n->type == PERF_RECORD_COMM) {
		if (n->is_exec)
			gone(ctx, n->pid, 0);
		apply_comm(s, n);
	} else if (n->type == PERF_RECORD_MMAP2) {
		apply_mmap(s, n);
	} else if (n->type == PERF_RECORD_FORK) {
		apply_fork(s, n);
	} else if (n->type == PERF_RECORD_EXIT) {
		struct trace_event ev = {.kind = TRACE_EXIT, .pid = n->pid, .tid = n->tid, .args = {1}};
		gone(ctx, n->pid, n->tid);
		/* Where other threads go on, the process is asked again. */
		struct process *p = n->pid == n->tid ? get_process(s, n->pid) : NULL;
		if (p) {
			trace_sites_event(s->sites, &ev);
			free(p->exe);
			*p = (struct process){0};
		}
	} else {
		forget_all(s);
	}
}

void ses_sites_until(struct ses_sites *s, uint64_t time, ses_sites_gone_fn *gone, void *ctx)
{
	if (time > s->read_ns)
		read_rings(s);
	while (s->next < s->notes.cnt && s->notes.data[s->next].time <= time) {
		struct note n = s->notes.data[s->next++];
		apply(s, &n, gone, ctx);
		free(n.text);
	}
}

/* --- answers ------------------------------------------------------------------------------------------------------ */
static const char *hex_text(struct ses_sites *s, const uint8_t *bytes, uint32_t len)
{
	char *text = len ? arena_alloc(&s->arena, 2 * (size_t)len + 1) : NULL;
	for (uint32_t i = 0; text && i < len; i++)
		snprintf(text + 2 * (size_t)i, 3, "%02x", bytes[i]);
	return text;
}

/* An address of the target itself: the session knows its functions best. What called is the instruction before. */
static bool in_target(struct ses_sites *s, uint64_t bias, uint64_t va, struct ses_site *ret)
{
	struct ses_func f;
	if (va <= bias || !ses_func_at(s->sn, va - 1 - bias, &s->arena, &f))
		return false;
	ret->module = s->path;
	ret->func = arena_strndup(&s->arena, f.name.s, f.name.len);
	ret->func_off = va - bias - f.addr;
	ret->off = 0;
	if (ses_va_to_file(s->sn, va - 1 - bias, &ret->off))
		ret->off++;
	return true;
}

size_t ses_sites_find(struct ses_sites *s, const struct ses_site_ask *ask, struct ses_site *ret, size_t max)
{
	struct trace_frame f[FRAME_MAX];
	struct trace_event ev = {.kind = TRACE_PROBE, .pid = ask->pid, .tid = ask->pid, .ip = ask->ip, .sp = ask->sp, .bp = ask->bp,
				 .stack = ask->stack, .nstack = ask->stack_len};
	arena_reset(&s->arena);
	size_t cnt = trace_sites_from(s->sites, &ev, ask->is_return, f, MIN(max, (size_t)FRAME_MAX));
	for (size_t i = 0; i < cnt; i++) {
		ret[i] = (struct ses_site){.va = f[i].va, .module = f[i].module, .off = f[i].file_off, .func_off = f[i].func_off,
					   .build_id = hex_text(s, f[i].build_id, f[i].build_id_len),
					   .func = f[i].func ? arena_strndup(&s->arena, f[i].func, f[i].func_len) : NULL};
		bool is_own = in_target(s, ask->bias, f[i].va, &ret[i]);
		if (!s->lines || !ret[i].module || !ret[i].off)
			continue;
		struct ses_line line = ses_lines_find(s->lines, ret[i].module, ret[i].off);
		ret[i].line = line.line;
		if (!ret[i].func && !is_own && line.func) {
			ret[i].func = line.func;
			ret[i].func_off = line.func_off;
		}
	}
	return cnt;
}

const char *ses_sites_comm(struct ses_sites *s, uint32_t pid, const char **ret_exe)
{
	const struct process *p = get_known(s, pid);
	*ret_exe = p ? p->exe : NULL;
	return p && p->comm[0] ? p->comm : NULL;
}
