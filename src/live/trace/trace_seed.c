/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/trace_seed.h"

#include "live/trace/trace_cgroup.h"
#include "live/trace/trace_event.h"
#include "live/trace/trace_fetch.h"
#include "live/trace/trace_frame.h"

#include "base/vec.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define FILE_MAX (1u << 20) /* of /proc that is read at once: maps of a large process */

/* What /proc says of a thread. */
struct seed {
	struct trace_wire_proc proc;
	char exe[4096];
	size_t exe_len;
	uint32_t exe_dev;
	uint64_t exe_ino;
	char cgroup[4096];
};

void trace_seed_set(struct trace_shared *shared, uint32_t tid, bool bit)
{
	uint64_t *word = &shared->threads[tid / 64 % (TRACE_TIDS / 64)], mask = 1ull << (tid % 64);
	if (bit)
		__atomic_fetch_or(word, mask, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(word, ~mask, __ATOMIC_RELAXED);
}

/* The text of a file of a process, NUL-terminated; false when it is gone or not for us. */
static bool read_text(uint32_t pid, const char *name, struct buf *ret)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	ret->len = 0;
	for (;;) {
		char *p = buf_room(ret, 65536);
		size_t n = p ? fread(p, 1, 65535, f) : 0;
		ret->len += n;
		if (!n || ret->len >= FILE_MAX)
			break;
	}
	bool ok = !ferror(f) && !ret->failed;
	fclose(f);
	buf_add_ch(ret, '\0');
	return ok && !ret->failed;
}

static uint32_t status_field(const char *status, const char *name)
{
	const char *p = strstr(status, name);
	return p ? (uint32_t)strtoul(p + strlen(name), NULL, 10) : 0;
}

static uint32_t ns_inode(uint32_t pid, const char *name)
{
	char path[64];
	struct stat st;
	snprintf(path, sizeof(path), "/proc/%u/ns/%s", pid, name);
	return stat(path, &st) ? 0 : (uint32_t)st.st_ino;
}

/* Its cgroup: the path that names a container, in whatever hierarchy, and the id in the unified one. */
static void read_cgroup(uint32_t pid, struct seed *s, struct buf *text)
{
	s->cgroup[0] = '\0';
	if (!read_text(pid, "cgroup", text))
		return;
	for (const char *line = text->data; *line;) {
		size_t len = strcspn(line, "\n");
		char path[4096], full[4096 + 32];
		/* number:controllers:path (cgroups(7)) */
		const char *colon = memchr(line, ':', len);
		const char *second = colon ? memchr(colon + 1, ':', len - (size_t)(colon + 1 - line)) : NULL;
		size_t path_len = second ? len - (size_t)(second + 1 - line) : 0;
		snprintf(path, sizeof(path), "%.*s", (int)MIN(path_len, sizeof(path) - 1), second ? second + 1 : "");
		const char *id;
		if (trace_cgroup_container(path, &id))
			memcpy(s->cgroup, path, sizeof(path));
		struct stat st;
		snprintf(full, sizeof(full), "/sys/fs/cgroup%s", path);
		if (!strncmp(line, "0::", 3) && !stat(full, &st))
			s->proc.cgroup = st.st_ino;
		line += len + (line[len] == '\n');
	}
}

static bool read_seed(uint32_t tid, struct seed *s, struct buf *text)
{
	memset(s, 0, sizeof(*s));
	if (!read_text(tid, "status", text))
		return false;
	const char *name = strstr(text->data, "Name:\t");
	if (!name)
		return false;
	memcpy(s->proc.comm, name + 6, MIN(strcspn(name + 6, "\n"), sizeof(s->proc.comm) - 1));
	s->proc.tgid = status_field(text->data, "\nTgid:");
	s->proc.ppid = status_field(text->data, "\nPPid:");
	s->proc.uid = status_field(text->data, "\nUid:");
	s->proc.gid = status_field(text->data, "\nGid:");
	/* In ticks: the first number behind the name is field 3, the time of its beginning field 22 (proc(5)). */
	if (read_text(tid, "stat", text)) {
		const char *p = strrchr(text->data, ')');
		for (int field = 2; p && field < 22; field++)
			p = strchr(p + 1, ' ');
		s->proc.start = p ? strtoull(p, NULL, 10) * (1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK)) : 0;
	}
	read_cgroup(tid, s, text);
	s->proc.pid_ns = ns_inode(tid, "pid_for_children");
	s->proc.mnt_ns = ns_inode(tid, "mnt");
	char path[64];
	snprintf(path, sizeof(path), "/proc/%u/exe", tid);
	ssize_t n = readlink(path, s->exe, sizeof(s->exe));
	s->exe_len = n > 0 ? (size_t)n : 0;
	struct stat st;
	if (!stat(path, &st)) {
		s->exe_ino = st.st_ino;
		s->exe_dev = major(st.st_dev) << 20 | minor(st.st_dev);
	}
	return true;
}

static uint64_t boot_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void add_process(const struct seed *s, uint32_t tid, struct buf *records)
{
	struct trace_wire w = {.time = boot_ns(), .tid = tid, .cpu = TRACE_WIRE_NO_CPU, .kind = TRACE_PROCESS};
	size_t begin = trace_record_begin(records, &w);
	trace_record_slot(records, begin, (struct trace_wire_slot){.len = sizeof(s->proc), .arg = TRACE_WIRE_ARG_PROC}, &s->proc);
	if (s->exe_len)
		trace_record_slot(records, begin, (struct trace_wire_slot){.len = (uint16_t)s->exe_len, .arg = TRACE_ARG_EXE}, s->exe);
	const char *id = NULL;
	size_t len = trace_cgroup_container(s->cgroup, &id);
	if (len)
		trace_record_slot(records, begin, (struct trace_wire_slot){.len = (uint16_t)len, .arg = TRACE_WIRE_ARG_CONTAINER}, id);
	trace_record_end(records, begin);
}

void trace_seed_cgroup(uint32_t tid, const struct trace_wire_proc *proc, struct buf *records)
{
	_cleanup_buf_ struct buf text = {0};
	_cleanup_free_ struct seed *s = calloc(1, sizeof(*s));
	const char *id;
	if (!s)
		return;
	read_cgroup(tid, s, &text);
	if (!trace_cgroup_container(s->cgroup, &id))
		return;
	s->proc = *proc;
	add_process(s, tid, records);
}

/*
 * The call a thread waits in, as a record of its beginning: what makes a program stand still began before the trace did. The registers of
 * a program of i386 are none of x86-64: its stack is below 4 GiB.
 */
static void add_call(const struct trace_shared *shared, uint32_t tid, bool with_stack, struct buf *text, struct buf *records)
{
	unsigned nr;
	uint8_t stack[TRACE_STACK_DEEP];
	struct trace_wire w = {.tid = tid, .cpu = TRACE_WIRE_NO_CPU, .kind = TRACE_SYSCALL, .flags = TRACE_WIRE_ENTRY | TRACE_WIRE_USER, .ret = -38};
	struct trace_wire_user u = {0};
#if defined(__aarch64__)
	w.flags |= TRACE_ARM64 << TRACE_WIRE_ABI_SHIFT;
#endif
	uint64_t *a = w.args;
	if (!read_text(tid, "syscall", text))
		return;
	if (sscanf(text->data, "%u %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64,
		   &nr, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &u.sp, &u.ip) != 9)
		return;
	if (nr >= TRACE_IDS - 1 || u.sp <= UINT32_MAX || !(shared->exit_ids[0][nr / 64] >> (nr % 64) & 1))
		return;
	w.nr = (int32_t)nr;
	w.time = boot_ns();
	u.stack_len = with_stack ? (uint16_t)(trace_peek((pid_t)tid, u.sp, stack, sizeof(stack)) & ~7u) : 0;
	u.area_len = u.stack_len;
	size_t begin = trace_record_begin(records, &w);
	buf_add(records, &u, sizeof(u));
	buf_add(records, stack, u.stack_len);
	trace_record_end(records, begin);
}

/* A line of maps (proc(5)) that may be executed. */
static void add_mapping(uint32_t pid, const char *line, size_t line_len, struct buf *records)
{
	char text[4096 + 128], perms[8] = "";
	snprintf(text, sizeof(text), "%.*s", (int)MIN(line_len, sizeof(text) - 1), line);
	unsigned long long from, to, off, ino;
	unsigned maj, min;
	int path_at = 0;
	int fields = sscanf(text, "%llx-%llx %7s %llx %x:%x %llu %n", &from, &to, perms, &off, &maj, &min, &ino, &path_at);
	if (fields < 7 || perms[2] != 'x' || to <= from)
		return;
	uint64_t prot = (perms[0] == 'r' ? 1u : 0) | (perms[1] == 'w' ? 2u : 0) | 4u;
	struct trace_wire w = {.time = boot_ns(), .tid = pid, .cpu = TRACE_WIRE_NO_CPU, .kind = TRACE_MMAP,
		.args = {from, to - from, prot, perms[3] == 's' ? 1 : 2, off}};
	struct trace_wire_file f = {.ino = ino, .dev = maj << 20 | min, .nlink = 1};
	static const char deleted[] = " (deleted)";
	const char *path = text + path_at;
	size_t len = path_at ? strlen(path) : 0;
	if (len > sizeof(deleted) && !strcmp(path + len - (sizeof(deleted) - 1), deleted)) {
		f.nlink = 0;
		len -= sizeof(deleted) - 1;
	}
	size_t begin = trace_record_begin(records, &w);
	if (len && *path == '/') {
		trace_record_slot(records, begin, (struct trace_wire_slot){.len = sizeof(f), .arg = TRACE_WIRE_ARG_FILE}, &f);
	}
	if (len)
		trace_record_slot(records, begin, (struct trace_wire_slot){.len = (uint16_t)len}, path);
	trace_record_end(records, begin);
}

void trace_seed_mappings(uint32_t pid, struct buf *records)
{
	_cleanup_buf_ struct buf text = {0};
	if (!read_text(pid, "maps", &text))
		return;
	for (const char *p = text.data; *p;) {
		size_t len = strcspn(p, "\n");
		add_mapping(pid, p, len, records);
		p += len + (p[len] == '\n');
	}
}

/* Calls fn for every number that is a name in the folder; false when it is not there. */
static bool each_number(const char *path, void (*fn)(void *ctx, uint32_t n), void *ctx)
{
	DIR *d = opendir(path);
	if (!d)
		return false;
	for (struct dirent *e; (e = readdir(d));) {
		char *end;
		unsigned long n = strtoul(e->d_name, &end, 10);
		if (isdigit((unsigned char)e->d_name[0]) && !*end)
			fn(ctx, (uint32_t)n);
	}
	closedir(d);
	return true;
}

struct numbers {
	VEC(uint32_t) list;
	bool failed;
};

static void add_number(void *ctx, uint32_t n)
{
	struct numbers *s = ctx;
	s->failed = s->failed || !VEC_PUSH(&s->list, n);
}

struct err *trace_seed_process(struct trace_shared *shared, uint32_t pid, bool inverted, bool with_maps, struct buf *records)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	_cleanup_buf_ struct buf text = {0};
	_cleanup_free_ struct seed *s = malloc(sizeof(*s));
	struct err *e = s ? NULL : &err_nomem;
	struct numbers known = {0};
	/* A thread made by one whose bit is not set yet has none either: the folder is read until it has nobody new. */
	for (bool is_new = true; !e && is_new;) {
		struct numbers tids = {0};
		is_new = false;
		if (!each_number(path, add_number, &tids) && !known.list.cnt)
			e = err_new(ERR_NOT_FOUND, "there is no process %u", pid);
		for (size_t i = 0; !e && i < tids.list.cnt; i++) {
			bool seen = false;
			for (size_t j = 0; j < known.list.cnt; j++)
				seen = seen || known.list.data[j] == tids.list.data[i];
			if (seen)
				continue;
			trace_seed_set(shared, tids.list.data[i], !inverted);
			if (!VEC_PUSH(&known.list, tids.list.data[i]))
				e = &err_nomem;
			is_new = true;
			if (read_seed(tids.list.data[i], s, &text))
				add_process(s, tids.list.data[i], records);
			if (!inverted)
				add_call(shared, tids.list.data[i], with_maps, &text, records);
		}
		VEC_FREE(&tids.list);
	}
	VEC_FREE(&known.list);
	if (!e && with_maps)
		trace_seed_mappings(pid, records);
	return e ? e : records->failed || text.failed ? &err_nomem : NULL;
}

static bool has(const struct trace_match_ids *m, uint64_t v)
{
	for (uint32_t i = 0; i < m->cnt; i++) {
		if (m->ids[i] == v)
			return true;
	}
	return false;
}

/* As is_match() of the kernel's side. */
static bool is_match(const struct trace_config *cfg, const struct seed *s)
{
	bool is_exe = !(cfg->match & TRACE_MATCH_EXE), is_comm = !(cfg->match & TRACE_MATCH_COMM);
	const char *id;
	for (uint32_t i = 0; i < cfg->exe.cnt; i++)
		is_exe = is_exe || (cfg->exe.ids[i] == s->exe_ino && cfg->exe_dev[i] == s->exe_dev);
	for (uint32_t i = 0; i < cfg->comm_cnt; i++)
		is_comm = is_comm || !strncmp(cfg->comm[i], s->proc.comm, sizeof(s->proc.comm));
	bool is_container = !(cfg->match & TRACE_MATCH_CONTAINER);
	if (!is_container && trace_cgroup_container(s->cgroup, &id))
		is_container = !strncmp(id, cfg->container, cfg->container_len);
	return cfg->match && is_exe && is_comm && is_container && (!(cfg->match & TRACE_MATCH_UID) || has(&cfg->uid, s->proc.uid)) &&
	       (!(cfg->match & TRACE_MATCH_CGROUP) || has(&cfg->cgroup, s->proc.cgroup)) &&
	       (!(cfg->match & TRACE_MATCH_PID_NS) || has(&cfg->pid_ns, s->proc.pid_ns)) &&
	       (!(cfg->match & TRACE_MATCH_MNT_NS) || has(&cfg->mnt_ns, s->proc.mnt_ns));
}

/* Who of all processes is meant: by number, by what they are, or as somebody's child. */
static struct err *seed_listed(struct trace_shared *shared, const struct trace_scope *scope, const struct trace_config *cfg, bool with_maps,
			       struct buf *records)
{
	struct numbers pids = {0}, meant = {0};
	_cleanup_buf_ struct buf text = {0};
	_cleanup_free_ struct seed *s = malloc(sizeof(*s));
	each_number("/proc", add_number, &pids);
	_cleanup_free_ uint32_t *parents = alloc_array(pids.list.cnt, sizeof(*parents));
	for (size_t i = 0; s && parents && i < pids.list.cnt; i++) {
		if (pids.list.data[i] == (uint32_t)getpid() || !read_seed(pids.list.data[i], s, &text))
			continue;
		parents[i] = s->proc.ppid;
		if (is_match(cfg, s))
			add_number(&meant, pids.list.data[i]);
	}
	for (size_t i = 0; i < scope->pid_cnt; i++)
		add_number(&meant, scope->pids[i]);
	for (size_t k = 0; parents && scope->tree && k < meant.list.cnt; k++) {
		for (size_t i = 0; i < pids.list.cnt; i++) {
			bool seen = false;
			for (size_t j = 0; parents[i] == meant.list.data[k] && j < meant.list.cnt; j++)
				seen = seen || meant.list.data[j] == pids.list.data[i];
			if (parents[i] == meant.list.data[k] && !seen)
				add_number(&meant, pids.list.data[i]);
		}
	}
	struct err *e = s && parents && !pids.failed && !meant.failed ? NULL : &err_nomem;
	for (size_t i = 0; !e && i < meant.list.cnt; i++) {
		bool is_named = false;
		for (size_t j = 0; j < scope->pid_cnt; j++)
			is_named = is_named || scope->pids[j] == meant.list.data[i];
		e = trace_seed_process(shared, meant.list.data[i], false, with_maps, records);
		if (e && e->kind == ERR_NOT_FOUND && !is_named) {
			err_free(e);
			e = NULL;
		}
	}
	VEC_FREE(&pids.list);
	VEC_FREE(&meant.list);
	return e;
}

struct err *trace_seed_scope(struct trace_shared *shared, const struct trace_scope *scope, const struct trace_config *cfg, bool with_maps,
			     struct buf *records)
{
	if (!cfg->invert)
		return scope->own ? NULL : seed_listed(shared, scope, cfg, with_maps, records);
	struct numbers pids = {0};
	each_number("/proc", add_number, &pids);
	struct err *e = pids.failed ? &err_nomem : NULL;
	for (size_t i = 0; !e && i < pids.list.cnt; i++) {
		if (pids.list.data[i] == (uint32_t)getpid())
			continue;
		e = trace_seed_process(shared, pids.list.data[i], true, with_maps, records);
		if (e && e->kind == ERR_NOT_FOUND) {
			err_free(e);
			e = NULL;
		}
	}
	VEC_FREE(&pids.list);
	/* Whoever records is not recorded, none of its threads. */
	struct numbers own = {0};
	each_number("/proc/self/task", add_number, &own);
	for (size_t i = 0; i < own.list.cnt; i++)
		trace_seed_set(shared, own.list.data[i], true);
	VEC_FREE(&own.list);
	return e;
}
