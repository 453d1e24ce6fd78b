/* SPDX-License-Identifier: Apache-2.0 */
/* Maps, programs, links and the ring, by bpf(2) alone. */
#include "live/trace/probe.h"
#include "live/trace/probe_int.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { RING_LEN_MAX = 1 << 30, COUNTS_LEN_MAX = 4 << 20, PENDING_MAX = 16384, LOG_LEN = 65536 };

struct probe_set {
	struct probe_opts o;          /* points and kinds are copies */
	struct probe_layout *layouts; /* by kind */
	struct probe_cond *conds;     /* by kind; node_cnt 0: none */
	struct probe_kind *kinds;
	struct probe_point *points;
	enum probe_way way;
	VEC(int) fds;                 /* maps, programs, links, events, in the order they were made */
	int ring_fd, counts_fd, pending_fd;
	uint32_t stripe_cnt;
	const uint64_t *rows;
	size_t rows_len;
	uint8_t *consumer;            /* page of the consumer's position */
	const uint8_t *producer;      /* page of the producer's, then the data twice */
	uint64_t ring_len, received;
	uint32_t is_return_id, cookie_id;
	bool is_sleepable;
	bool filters_pid;             /* in the program: the way cannot */
	uint64_t pid_ns_dev, pid_ns_ino;
	uint32_t perf_type;
};

/* --- bpf(2) --------------------------------------------------------------------------------------------------- */
static int sys_bpf(int cmd, void *attr, size_t len)
{
	return (int)syscall(SYS_bpf, cmd, attr, len);
}

static struct err *refused(int why, const char *what)
{
	if (why == EPERM || why == EACCES)
		return err_fix(err_new(ERR_ENV, "%s: the kernel does not let this process", what),
			       "run it as root, or give it the capabilities CAP_BPF, CAP_PERFMON and CAP_SYS_RESOURCE");
	struct err *e = err_new(ERR_ENV, "%s: %s", what, strerror(why));
	e->os_errno = why;
	return e;
}

static bool keep_fd(struct probe_set *s, int fd)
{
	if (VEC_PUSH(&s->fds, fd))
		return true;
	close(fd);
	return false;
}

struct map_how { uint32_t type, key, value, cnt, flags; };

static struct err *make_map(struct probe_set *s, struct map_how how, int *ret)
{
	union bpf_attr attr = {0};
	attr.map_type = how.type;
	attr.key_size = how.key;
	attr.value_size = how.value;
	attr.max_entries = how.cnt;
	attr.map_flags = how.flags;
	memcpy(attr.map_name, "scry_probe", 11);
	int fd = sys_bpf(BPF_MAP_CREATE, &attr, sizeof(attr));
	if (fd < 0)
		return refused(errno, "no memory shared with the kernel");
	*ret = fd;
	return keep_fd(s, fd) ? NULL : &err_nomem;
}

/* The kernel's word for why a program is refused: the last line of its log. */
static struct err *program_refused(int why, char *log)
{
	size_t len = strlen(log);
	while (len && log[len - 1] == '\n')
		log[--len] = 0;
	/* Behind the reason stand figures of the verifier. */
	char *stats = strstr(log, "\nprocessed ");
	if (stats)
		*stats = 0;
	const char *line = strrchr(log, '\n');
	struct err *e = refused(why, "the probe's program was refused");
	return why == EPERM || !*log ? e : err_prefix(e, "%s", line ? line + 1 : log);
}

static struct err *load_program(struct probe_set *s, const struct probe_plan *plan, int *ret)
{
	struct probe_asm a = {0};
	probe_program(plan, &a);
	if (a.failed) {
		probe_asm_fini(&a);
		return err_new(ERR_INVALID, "the probe's program would be too long");
	}
	union bpf_attr attr = {0};
	attr.prog_type = BPF_PROG_TYPE_KPROBE;
	attr.insns = (uintptr_t)a.code.data;
	attr.insn_cnt = (uint32_t)a.code.cnt;
	attr.license = (uintptr_t)"GPL"; /* programs that read memory have to say so */
	attr.prog_flags = plan->is_sleepable ? BPF_F_SLEEPABLE : 0;
	attr.expected_attach_type = s->way == PROBE_WAY_SESSION ? PROBE_ATTACH_UPROBE_SESSION
				  : s->way == PROBE_WAY_MULTI	? PROBE_ATTACH_UPROBE_MULTI
								: 0;
	memcpy(attr.prog_name, "scry_probe", 11);
	int fd = sys_bpf(BPF_PROG_LOAD, &attr, sizeof(attr));
	struct err *e = NULL;
	if (fd < 0 && (errno == EPERM || errno == E2BIG)) {
		e = refused(errno, "no program can be given to the kernel");
	} else if (fd < 0) {
		int why = errno;
		_cleanup_free_ char *log = calloc(1, LOG_LEN);
		attr.log_level = 1;
		attr.log_buf = (uintptr_t)log;
		attr.log_size = LOG_LEN;
		fd = log ? sys_bpf(BPF_PROG_LOAD, &attr, sizeof(attr)) : -1;
		if (fd < 0)
			e = log ? program_refused(why, log) : &err_nomem;
	}
	probe_asm_fini(&a);
	if (e)
		return e;
	*ret = fd;
	return keep_fd(s, fd) ? NULL : &err_nomem;
}

/* --- attaching ------------------------------------------------------------------------------------------------ */

/* The points of a kind, as the kernel takes them. */
struct group {
	uint64_t *offs, *cookies;
	uint32_t cnt;
};

/* attr.link_create with uprobe_multi, as of Linux 6.6 (include/uapi/linux/bpf.h). */
struct multi_attr {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, multi_flags, pid, pad;
};

static struct err *attach_multi(struct probe_set *s, const struct group *g, int prog, bool is_return)
{
	struct multi_attr attr = {
		.prog_fd = (uint32_t)prog,
		.attach_type = s->way == PROBE_WAY_SESSION ? PROBE_ATTACH_UPROBE_SESSION : PROBE_ATTACH_UPROBE_MULTI,
		.path = (uintptr_t)s->o.path, .offsets = (uintptr_t)g->offs, .cookies = (uintptr_t)g->cookies,
		.cnt = g->cnt, .multi_flags = is_return ? PROBE_UPROBE_MULTI_RETURN : 0, .pid = s->filters_pid ? 0 : (uint32_t)s->o.pid,
	};
	int fd = sys_bpf(BPF_LINK_CREATE, &attr, sizeof(attr));
	if (fd < 0)
		return refused(errno, "probes cannot be attached");
	return keep_fd(s, fd) ? NULL : &err_nomem;
}

static struct err *attach_perf(struct probe_set *s, const struct group *g, int prog, bool is_return)
{
	for (uint32_t i = 0; i < g->cnt; i++) {
		struct perf_event_attr ev = {.type = s->perf_type, .size = sizeof(ev), .config = is_return};
		ev.uprobe_path = (uintptr_t)s->o.path;
		ev.probe_offset = g->offs[i];
		int fd = (int)syscall(SYS_perf_event_open, &ev, s->o.pid ? s->o.pid : -1, s->o.pid ? -1 : 0, -1, PERF_FLAG_FD_CLOEXEC);
		if (fd < 0)
			return refused(errno, "a probe cannot be attached");
		if (!keep_fd(s, fd))
			return &err_nomem;
		union bpf_attr attr = {0};
		attr.link_create.prog_fd = (uint32_t)prog;
		attr.link_create.target_fd = (uint32_t)fd;
		attr.link_create.attach_type = BPF_PERF_EVENT;
		attr.link_create.perf_event.bpf_cookie = g->cookies[i];
		int link = sys_bpf(BPF_LINK_CREATE, &attr, sizeof(attr));
		if (link < 0)
			return refused(errno, "a probe cannot be attached");
		if (!keep_fd(s, link))
			return &err_nomem;
	}
	return NULL;
}

static struct err *attach_half(struct probe_set *s, struct probe_plan *plan, const struct group *g, bool is_return)
{
	int prog;
	plan->is_return = is_return;
	struct err *e = load_program(s, plan, &prog);
	if (e)
		return e;
	return s->way == PROBE_WAY_PERF ? attach_perf(s, g, prog, is_return) : attach_multi(s, g, prog, is_return);
}

static struct err *attach_kind(struct probe_set *s, uint32_t kind, const struct group *g)
{
	const struct probe_kind *k = &s->kinds[kind];
	const struct probe_cond *c = s->conds[kind].node_cnt ? &s->conds[kind] : NULL;
	bool keeps = probe_keeps(k, c, s->o.count_only);
	struct probe_plan plan = {
		.kind = k, .layout = &s->layouts[kind], .cond = c, .is_session = s->way == PROBE_WAY_SESSION, .is_sleepable = s->is_sleepable,
		.count_only = s->o.count_only, .pid = s->filters_pid ? s->o.pid : 0, .pid_ns_dev = s->pid_ns_dev, .pid_ns_ino = s->pid_ns_ino,
		.ring_fd = s->ring_fd, .counts_fd = s->counts_fd,
		.pending_fd = -1, .zero_fd = -1, .point_cnt = s->o.point_cnt, .stripe_cnt = s->stripe_cnt, .is_return_id = s->is_return_id,
		.cookie_id = s->cookie_id,
	};
	struct err *e = NULL;
	if (keeps) {
		e = make_map(s, (struct map_how){BPF_MAP_TYPE_HASH, 24, s->layouts[kind].call_len, PENDING_MAX, 0}, &plan.pending_fd);
		if (!e)
			e = make_map(s, (struct map_how){BPF_MAP_TYPE_ARRAY, 4, s->layouts[kind].call_len, 1, 0}, &plan.zero_fd);
	} else if (k->has_return && !plan.is_session) {
		if (s->pending_fd < 0)
			e = make_map(s, (struct map_how){BPF_MAP_TYPE_HASH, 24, 8, PENDING_MAX, 0}, &s->pending_fd);
		plan.pending_fd = s->pending_fd;
	}
	/* Returns first: a call whose beginning was seen is then seen to its end. */
	if (!e && k->has_return && !plan.is_session)
		e = attach_half(s, &plan, g, true);
	return e ? e : attach_half(s, &plan, g, false);
}

static struct err *attach_all(struct probe_set *s)
{
	_cleanup_free_ uint64_t *offs = alloc_array(s->o.point_cnt, sizeof(*offs));
	_cleanup_free_ uint64_t *cookies = alloc_array(s->o.point_cnt, sizeof(*cookies));
	_cleanup_free_ uint32_t *first = alloc_array((size_t)s->o.kind_cnt + 1, sizeof(*first));
	if (!offs || !cookies || !first)
		return &err_nomem;
	for (uint32_t i = 0; i < s->o.point_cnt; i++)
		first[s->points[i].kind + 1]++;
	for (uint32_t k = 0; k < s->o.kind_cnt; k++)
		first[k + 1] += first[k];
	for (uint32_t i = 0; i < s->o.point_cnt; i++) {
		uint32_t at = first[s->points[i].kind]++;
		offs[at] = s->points[i].off;
		cookies[at] = i;
	}
	for (uint32_t k = 0, from = 0; k < s->o.kind_cnt; from = first[k++]) {
		struct group g = {.offs = offs + from, .cookies = cookies + from, .cnt = first[k] - from};
		struct err *e = g.cnt ? attach_kind(s, k, &g) : NULL;
		if (e)
			return e;
	}
	return NULL;
}

/* --- what the kernel has --------------------------------------------------------------------------------------- */

static uint32_t u32_at(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

/* Bytes behind the 12 of a type (Documentation/bpf/btf.rst); UINT32_MAX of a kind that is not known. */
static uint32_t btf_more(uint32_t kind, uint32_t vlen)
{
	static const uint8_t one[] = {[1] = 4, [14] = 4, [17] = 4};
	switch (kind) {
	case 3:
		return 12;
	case 4: case 5: case 15: case 19:
		return 12 * vlen;
	case 6: case 13:
		return 8 * vlen;
	default:
		return kind < sizeof(one) ? one[kind] : kind == 18 || kind == 16 ? 0 : kind <= 17 ? one[17] : UINT32_MAX;
	}
}

uint32_t probe_btf_func(const uint8_t *btf, size_t len, const char *name)
{
	enum { BTF_FUNC = 12, BTF_HEAD = 24 };
	if (len < BTF_HEAD || u32_at(btf) != 0x0001eb9f)
		return 0;
	uint64_t head = u32_at(btf + 4), types = head + u32_at(btf + 8), types_end = types + u32_at(btf + 12);
	uint64_t strings = head + u32_at(btf + 16), strings_end = strings + u32_at(btf + 20);
	if (types_end > len || strings_end > len || strings >= strings_end)
		return 0;
	/* Names are kept once each; one may be the end of another. */
	size_t name_len = strlen(name) + 1;
	const uint8_t *at = memmem(btf + strings, strings_end - strings, name, name_len);
	for (; at && at > btf + strings && at[-1]; at = memmem(at + 1, (size_t)(btf + strings_end - at - 1), name, name_len))
		;
	if (!at)
		return 0;
	uint32_t want = (uint32_t)(at - (btf + strings)), id = 1;
	for (uint64_t p = types; p + 12 <= types_end; id++) {
		uint32_t info = u32_at(btf + p + 4), more = btf_more(info >> 24 & 31, info & 0xffff);
		if ((info >> 24 & 31) == BTF_FUNC && u32_at(btf + p) == want)
			return id;
		if (more == UINT32_MAX)
			return 0;
		p += 12 + (uint64_t)more;
	}
	return 0;
}

/* The functions that sessions need. */
static bool find_session(struct probe_set *s)
{
	_cleanup_close_ int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0)
		return false;
	/* Linux 6.16 lets it be mapped. */
	size_t len = (size_t)st.st_size, got = 0;
	_cleanup_free_ uint8_t *copy = NULL;
	void *map = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		copy = malloc(len);
	for (ssize_t n; copy && got < len && (n = read(fd, copy + got, len - got)) > 0;)
		got += (size_t)n;
	const uint8_t *btf = map == MAP_FAILED ? copy : map;
	bool is_whole = map != MAP_FAILED || (copy && got == len);
	s->is_return_id = is_whole ? probe_btf_func(btf, len, "bpf_session_is_return") : 0;
	s->cookie_id = is_whole ? probe_btf_func(btf, len, "bpf_session_cookie") : 0;
	if (map != MAP_FAILED)
		munmap(map, len);
	return s->is_return_id && s->cookie_id;
}

static bool read_number(const char *path, uint32_t *ret)
{
	char text[32];
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = 0;
	*ret = (uint32_t)strtoul(text, NULL, 10);
	return true;
}

const char *probe_way_name(enum probe_way w)
{
	static const char *const names[] = {"any", "session", "multi", "perf"};
	return w < PROBE_WAY_COUNT ? names[w] : "any";
}

enum probe_way probe_way_of(const struct probe_set *s)
{
	return s->way;
}

struct err *probe_check(void)
{
#ifndef __x86_64__
	return err_new(ERR_UNSUPPORTED, "probes need an x86-64 machine");
#endif
	union bpf_attr attr = {0};
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.key_size = 4;
	attr.value_size = 8;
	attr.max_entries = 1;
	int fd = sys_bpf(BPF_MAP_CREATE, &attr, sizeof(attr));
	if (fd < 0)
		return errno != ENOSYS ? refused(errno, "no probes")
				       : err_fix(err_new(ERR_ENV, "this kernel has no BPF, which probes need"),
						 "run it on a kernel with CONFIG_BPF_SYSCALL");
	close(fd);
	return NULL;
}

/* --- opening --------------------------------------------------------------------------------------------------- */

/* Everything that was made for a way that did not work. */
static void undo_way(struct probe_set *s)
{
	/* Links last to first, so no program runs without what it needs. */
	while (s->fds.cnt)
		close(VEC_POP(&s->fds));
	if (s->rows)
		munmap((void *)(uintptr_t)s->rows, s->rows_len);
	if (s->consumer)
		munmap(s->consumer, (size_t)sysconf(_SC_PAGESIZE));
	if (s->producer)
		munmap((void *)(uintptr_t)s->producer, (size_t)sysconf(_SC_PAGESIZE) + 2 * s->ring_len);
	s->rows = NULL;
	s->consumer = NULL;
	s->producer = NULL;
	s->ring_fd = s->counts_fd = s->pending_fd = -1;
}

static struct err *map_shared(struct probe_set *s)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, s->rows_len, PROT_READ, MAP_SHARED, s->counts_fd, 0);
	if (p == MAP_FAILED)
		return refused(errno, "counters cannot be mapped");
	s->rows = p;
	if (s->o.count_only)
		return NULL;
	p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, s->ring_fd, 0);
	if (p == MAP_FAILED)
		return refused(errno, "the ring cannot be mapped");
	s->consumer = p;
	p = mmap(NULL, page + 2 * s->ring_len, PROT_READ, MAP_SHARED, s->ring_fd, (off_t)page);
	if (p == MAP_FAILED)
		return refused(errno, "the ring cannot be mapped");
	s->producer = p;
	return NULL;
}

/* The pid of uprobe-multi means one thread before Linux 6.10, and that of a perf event says whose code has the probe, not who hits it. */
static void choose_filter(struct probe_set *s)
{
	struct utsname u;
	struct stat st;
	unsigned major = 0, minor = 0;
	bool is_old = !uname(&u) && sscanf(u.release, "%u.%u", &major, &minor) == 2 && (major < 6 || (major == 6 && minor < 10));
	s->filters_pid = s->o.pid && (s->way == PROBE_WAY_PERF || (s->way == PROBE_WAY_MULTI && is_old)) && !stat("/proc/self/ns/pid", &st);
	s->pid_ns_dev = s->filters_pid ? st.st_dev : 0;
	s->pid_ns_ino = s->filters_pid ? st.st_ino : 0;
}

static struct err *try_way(struct probe_set *s, enum probe_way way)
{
	s->way = way;
	choose_filter(s);
	if (way == PROBE_WAY_SESSION && !find_session(s))
		return err_new(ERR_ENV, "this kernel has no uprobe sessions (Linux 6.13 has)");
	if (way == PROBE_WAY_PERF && !read_number("/sys/bus/event_source/devices/uprobe/type", &s->perf_type))
		return err_new(ERR_ENV, "this kernel has no uprobe events");
	s->rows_len = ((size_t)s->stripe_cnt * s->o.point_cnt * PROBE_ROW_LEN + 4095) & ~(size_t)4095;
	struct err *e = make_map(s, (struct map_how){BPF_MAP_TYPE_ARRAY, 4, (uint32_t)s->rows_len, 1, BPF_F_MMAPABLE}, &s->counts_fd);
	if (!e && !s->o.count_only)
		e = make_map(s, (struct map_how){BPF_MAP_TYPE_RINGBUF, 0, 0, (uint32_t)s->ring_len, 0}, &s->ring_fd);
	if (!e)
		e = map_shared(s);
	return e ? e : attach_all(s);
}

/* Whether another way may work where this one gave that error. */
static bool may_go_on(const struct err *e)
{
	return e->kind == ERR_ENV && e->os_errno != EBUSY && e->os_errno != ESRCH && e->os_errno != ENOENT;
}

static struct err *try_ways(struct probe_set *s)
{
	struct err *e = NULL;
	for (int way = PROBE_WAY_SESSION; way < PROBE_WAY_COUNT; way++) {
		if (s->o.way && (int)s->o.way != way)
			continue;
		/* Programs that may wait for a page read what is not in memory yet; Linux 6.0 lets probes. */
		for (int sleepable = 1; sleepable >= 0; sleepable--) {
			err_free(e);
			s->is_sleepable = sleepable;
			e = try_way(s, way);
			if (!e)
				return NULL;
			undo_way(s);
			if (!may_go_on(e))
				return e;
		}
	}
	return e;
}

/* Descriptors: two for each half of each probe where there is one event each. */
static void raise_limit(void)
{
	struct rlimit r;
	if (!getrlimit(RLIMIT_NOFILE, &r) && r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

static struct err *prepare(struct probe_set *s, const struct probe_opts *o)
{
	if (!o->point_cnt || o->point_cnt > PROBE_POINT_MAX || !o->kind_cnt || o->kind_cnt > PROBE_KIND_MAX)
		return err_new(ERR_BUDGET, "%u probes of %u kinds: up to %d of %d can be set at once", o->point_cnt, o->kind_cnt, PROBE_POINT_MAX,
			       PROBE_KIND_MAX);
	s->layouts = alloc_array(o->kind_cnt, sizeof(*s->layouts));
	s->conds = alloc_array(o->kind_cnt, sizeof(*s->conds));
	s->kinds = alloc_array(o->kind_cnt, sizeof(*s->kinds));
	s->points = alloc_array(o->point_cnt, sizeof(*s->points));
	if (!s->layouts || !s->conds || !s->kinds || !s->points)
		return &err_nomem;
	memcpy(s->kinds, o->kinds, o->kind_cnt * sizeof(*s->kinds));
	memcpy(s->points, o->points, o->point_cnt * sizeof(*s->points));
	s->o = *o;
	s->o.kinds = s->kinds;
	s->o.points = s->points;
	for (uint32_t i = 0; i < o->kind_cnt; i++) {
		struct err *e = probe_layout(&o->kinds[i], &s->layouts[i]);
		if (!e && o->kinds[i].cond)
			e = probe_cond_parse(&o->kinds[i], o->kinds[i].cond, &s->conds[i]);
		if (e)
			return e;
	}
	for (uint32_t i = 0; i < o->point_cnt; i++) {
		if (o->points[i].kind >= o->kind_cnt)
			return err_new(ERR_INVALID, "probe %u is of no kind", i);
	}
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	for (s->stripe_cnt = 1; s->stripe_cnt < cpus && (uint64_t)s->stripe_cnt * 2 * o->point_cnt * PROBE_ROW_LEN <= COUNTS_LEN_MAX;)
		s->stripe_cnt *= 2;
	uint64_t want = o->ring_len ? o->ring_len : 4u << 20;
	for (s->ring_len = (uint64_t)sysconf(_SC_PAGESIZE); s->ring_len < want && s->ring_len < RING_LEN_MAX;)
		s->ring_len *= 2;
	return NULL;
}

struct err *probe_open(const struct probe_opts *o, struct probe_set **ret)
{
	struct err *e = probe_check();
	if (e)
		return e;
	struct probe_set *s = calloc(1, sizeof(*s));
	if (!s)
		return &err_nomem;
	s->ring_fd = s->counts_fd = s->pending_fd = -1;
	e = prepare(s, o);
	if (!e) {
		raise_limit();
		e = try_ways(s);
	}
	if (e) {
		probe_close(s);
		return e;
	}
	*ret = s;
	return NULL;
}

void probe_close(struct probe_set *s)
{
	if (!s)
		return;
	undo_way(s);
	VEC_FREE(&s->fds);
	free(s->layouts);
	free(s->conds);
	free(s->kinds);
	free(s->points);
	free(s);
}

/* --- reading --------------------------------------------------------------------------------------------------- */
struct err *probe_drain(struct probe_set *s, probe_sink_fn *sink, void *ctx, uint64_t *ret_cnt)
{
	*ret_cnt = 0;
	if (s->o.count_only)
		return NULL;
	uint64_t at = __atomic_load_n((uint64_t *)(void *)s->consumer, __ATOMIC_RELAXED);
	uint64_t end = __atomic_load_n((const uint64_t *)(const void *)s->producer, __ATOMIC_ACQUIRE);
	const uint8_t *data = s->producer + sysconf(_SC_PAGESIZE);
	while (at < end) {
		const uint8_t *p = data + (at & (s->ring_len - 1));
		uint32_t head = __atomic_load_n((const uint32_t *)(const void *)p, __ATOMIC_ACQUIRE);
		if (head & BPF_RINGBUF_BUSY_BIT)
			break;
		uint32_t len = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
		struct probe_hit hit;
		if (len > s->ring_len - 8)
			return err_new(ERR_INTERNAL, "the ring is damaged");
		bool go_on = true;
		if (!(head & BPF_RINGBUF_DISCARD_BIT)) {
			if (!probe_decode(&s->o, p + 8, len, &hit))
				return err_new(ERR_INTERNAL, "the ring has a record of no kind");
			s->received++;
			++*ret_cnt;
			go_on = sink(ctx, &hit);
		}
		at += (len + 15ull) & ~7ull;
		__atomic_store_n((uint64_t *)(void *)s->consumer, at, __ATOMIC_RELEASE);
		if (!go_on)
			break;
	}
	return NULL;
}

static uint64_t sum_word(const struct probe_set *s, uint32_t point, uint32_t word)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < s->stripe_cnt; i++)
		sum += __atomic_load_n(&s->rows[((size_t)i * s->o.point_cnt + point) * (PROBE_ROW_LEN / 8) + word], __ATOMIC_RELAXED);
	return sum;
}

void probe_get_counts(const struct probe_set *s, uint32_t point, struct probe_counts *ret)
{
	*ret = (struct probe_counts){.hits = sum_word(s, point, PROBE_ROW_HITS), .returns = sum_word(s, point, PROBE_ROW_RETURNS),
				     .refused = sum_word(s, point, PROBE_ROW_REFUSED), .ns = sum_word(s, point, PROBE_ROW_NS)};
	for (uint32_t i = 0; i < PROBE_SLOT_COUNT; i++)
		ret->slots[i] = sum_word(s, point, PROBE_ROW_SLOTS + i);
}

void probe_get_totals(const struct probe_set *s, struct probe_totals *ret)
{
	*ret = (struct probe_totals){.received = s->received};
	for (uint32_t i = 0; i < s->o.point_cnt; i++) {
		ret->records += sum_word(s, i, PROBE_ROW_RECORDS);
		ret->lost += sum_word(s, i, PROBE_ROW_LOST);
	}
}
