/* SPDX-License-Identifier: Apache-2.0 */
/* Maps, programs, links and the ring, by bpf(2) alone. */
#include "live/trace/probe.h"
#include "live/trace/probe_int.h"
#include "live/trace/probe_who.h"

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

enum { RING_LEN_MAX = 1 << 30, COUNTS_LEN_MAX = 4 << 20, PENDING_MAX = 16384, LOG_LEN = 65536,
       COND_KINDS = 24 /* in a program, when each needs maps of its own, of which a program takes 64 */ };

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
	uint32_t is_return_id, cookie_id, copy_text_id;
	bool is_sleepable;
	bool filters_pid;             /* in the program: the way cannot */
	struct probe_who *who;        /* several processes, or children; null */
	pid_t pid;                    /* the only process; 0: all, or those of `who` */
	uint64_t pid_ns_dev, pid_ns_ino;
	uint32_t perf_type;
	const uint8_t *btf;           /* while attaching */
	size_t btf_len;
};

/* --- bpf(2) --------------------------------------------------------------------------------------------------- */
int probe_bpf(int cmd, void *attr, size_t len)
{
	return (int)syscall(SYS_bpf, cmd, attr, len);
}

/* What uprobes answer for an instruction they cannot put a probe on; no number of <errno.h> (include/linux/errno.h). */
enum { KERNEL_ENOTSUPP = 524 };

struct err *probe_refused(int why, const char *what)
{
	if (why == EPERM || why == EACCES)
		return err_fix(err_new(ERR_ENV, "%s: the kernel does not let this process", what),
			       "run it as root, or give it the capabilities CAP_BPF, CAP_PERFMON and CAP_SYS_RESOURCE");
	struct err *e = err_new(ERR_ENV, "%s: %s", what,
				why == KERNEL_ENOTSUPP ? "the kernel puts none on one of these instructions" : strerror(why));
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
	int fd = probe_bpf(BPF_MAP_CREATE, &attr, sizeof(attr));
	if (fd < 0)
		return probe_refused(errno, "no memory shared with the kernel");
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
	struct err *e = probe_refused(why, "the probe's program was refused");
	return why == EPERM || !*log ? e : err_prefix(e, "%s", line ? line + 1 : log);
}

static struct err *load_program(struct probe_set *s, const struct probe_plan *plan, int *ret)
{
	struct probe_asm a = {0};
	probe_program(plan, &a);
	if (a.failed) {
		probe_asm_fini(&a);
		return err_new(ERR_BUDGET, "the probe's program would be too long");
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
	int fd = probe_bpf(BPF_PROG_LOAD, &attr, sizeof(attr));
	struct err *e = NULL;
	if (fd < 0 && (errno == EPERM || errno == E2BIG)) {
		e = probe_refused(errno, "no program can be given to the kernel");
	} else if (fd < 0) {
		int why = errno;
		_cleanup_free_ char *log = calloc(1, LOG_LEN);
		attr.log_level = 1;
		attr.log_buf = (uintptr_t)log;
		attr.log_size = LOG_LEN;
		fd = log ? probe_bpf(BPF_PROG_LOAD, &attr, sizeof(attr)) : -1;
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

/* Points of a link, as the kernel takes them. */
struct group {
	uint64_t *offs, *cookies;
	uint32_t cnt;
};

/* How points are put together: `order` has kinds, `sorted` points, those of order[i] from first[i] to first[i + 1]. */
struct attach {
	uint64_t *offs, *cookies;  /* room for what a link takes */
	const uint32_t *sorted, *order, *first;
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
		.cnt = g->cnt, .multi_flags = is_return ? PROBE_UPROBE_MULTI_RETURN : 0, .pid = s->filters_pid ? 0 : (uint32_t)s->pid,
	};
	int fd = probe_bpf(BPF_LINK_CREATE, &attr, sizeof(attr));
	if (fd < 0)
		return probe_refused(errno, "probes cannot be attached");
	return keep_fd(s, fd) ? NULL : &err_nomem;
}

static struct err *attach_perf(struct probe_set *s, const struct group *g, int prog, bool is_return)
{
	for (uint32_t i = 0; i < g->cnt; i++) {
		struct perf_event_attr ev = {.type = s->perf_type, .size = sizeof(ev), .config = is_return};
		ev.uprobe_path = (uintptr_t)s->o.path;
		ev.probe_offset = g->offs[i];
		int fd = (int)syscall(SYS_perf_event_open, &ev, s->pid ? s->pid : -1, s->pid ? -1 : 0, -1, PERF_FLAG_FD_CLOEXEC);
		if (fd < 0)
			return probe_refused(errno, "a probe cannot be attached");
		if (!keep_fd(s, fd))
			return &err_nomem;
		union bpf_attr attr = {0};
		attr.link_create.prog_fd = (uint32_t)prog;
		attr.link_create.target_fd = (uint32_t)fd;
		attr.link_create.attach_type = BPF_PERF_EVENT;
		attr.link_create.perf_event.bpf_cookie = g->cookies[i];
		int link = probe_bpf(BPF_LINK_CREATE, &attr, sizeof(attr));
		if (link < 0)
			return probe_refused(errno, "a probe cannot be attached");
		if (!keep_fd(s, link))
			return &err_nomem;
	}
	return NULL;
}

static struct err *attach_half(struct probe_set *s, struct probe_plan *plan, const struct group *g, bool is_return)
{
	int prog = -1;
	plan->is_return = is_return;
	struct err *e = load_program(s, plan, &prog);
	if (e)
		return e;
	return s->way == PROBE_WAY_PERF ? attach_perf(s, g, prog, is_return) : attach_multi(s, g, prog, is_return);
}

/* Kinds that share a program, in the order of s->order: what each half does for them. */
struct bodies {
	struct probe_body begins[PROBE_BODY_MAX], ends[PROBE_BODY_MAX];
	uint32_t begin_cnt, end_cnt;
	uint16_t begin_of[PROBE_BODY_MAX], end_of[PROBE_BODY_MAX]; /* by kind of the range */
};

static bool same_args(const struct probe_kind *a, const struct probe_kind *b, bool count_only)
{
	if (a->is_func != b->is_func || a->is_32bit != b->is_32bit || (!count_only && a->arg_cnt != b->arg_cnt))
		return false;
	for (uint32_t i = 0; i < a->arg_cnt && !count_only; i++) {
		const struct probe_arg *x = &a->args[i], *y = &b->args[i];
		if (x->from != y->from || x->fetch != y->fetch || x->size != y->size || x->is_signed != y->is_signed || x->at != y->at ||
		    x->len != y->len)
			return false;
	}
	return true;
}

static bool same_ret(const struct probe_arg *a, const struct probe_arg *b, bool count_only)
{
	return count_only || (a->fetch == b->fetch && a->size == b->size && a->is_signed == b->is_signed && a->len == b->len);
}

/* The body's number; a new one where none is the same. */
static uint16_t add_body(struct probe_body *bodies, uint32_t *cnt, const struct probe_body *b, bool is_end, bool count_only)
{
	uint32_t i = 0;
	for (; i < *cnt; i++) {
		const struct probe_body *o = &bodies[i];
		if (!b->cond && !o->cond && b->kind->is_32bit == o->kind->is_32bit &&
		    (is_end ? same_ret(&b->kind->ret, &o->kind->ret, count_only) : same_args(b->kind, o->kind, count_only)))
			break;
	}
	if (i == *cnt)
		bodies[(*cnt)++] = *b;
	return (uint16_t)i;
}

static struct err *add_kind(struct probe_set *s, struct bodies *all, uint32_t kind, uint32_t at)
{
	struct probe_body b = {.kind = &s->kinds[kind], .layout = &s->layouts[kind], .cond = s->conds[kind].node_cnt ? &s->conds[kind] : NULL,
			       .pending_fd = -1, .zero_fd = -1};
	struct err *e = NULL;
	if (probe_keeps(b.kind, b.cond, s->o.count_only)) {
		e = make_map(s, (struct map_how){BPF_MAP_TYPE_HASH, 24, b.layout->call_len, PENDING_MAX, 0}, &b.pending_fd);
		if (!e)
			e = make_map(s, (struct map_how){BPF_MAP_TYPE_ARRAY, 4, b.layout->call_len, 1, 0}, &b.zero_fd);
	} else if (b.kind->has_return && s->way != PROBE_WAY_SESSION) {
		if (s->pending_fd < 0)
			e = make_map(s, (struct map_how){BPF_MAP_TYPE_HASH, 24, 8, PENDING_MAX, 0}, &s->pending_fd);
		b.pending_fd = s->pending_fd;
	}
	all->begin_of[at] = add_body(all->begins, &all->begin_cnt, &b, false, s->o.count_only);
	if (b.kind->has_return)
		all->end_of[at] = add_body(all->ends, &all->end_cnt, &b, true, s->o.count_only);
	return e;
}

/* Kinds from..to of `order`, whose points are first[from]..first[to] of `sorted`: one program and one link of each half. Where they are too much
 * for a program, halves of them. */
static struct err *attach_range(struct probe_set *s, const struct attach *at, uint32_t from, uint32_t to)
{
	uint32_t point_cnt = at->first[to] - at->first[from];
	size_t fd_cnt = s->fds.cnt;
	struct group g = {.offs = at->offs, .cookies = at->cookies, .cnt = point_cnt};
	_cleanup_free_ struct bodies *b = calloc(1, sizeof(*b));
	struct err *e = b ? NULL : &err_nomem;
	for (uint32_t i = from; !e && i < to; i++) {
		e = add_kind(s, b, at->order[i], i - from);
		for (uint32_t p = at->first[i]; !e && p < at->first[i + 1]; p++) {
			g.offs[p - at->first[from]] = s->points[at->sorted[p]].off;
			g.cookies[p - at->first[from]] = probe_cookie(at->sorted[p], b->begin_of[i - from], b->end_of[i - from]);
		}
	}
	if (e)
		return e;
	struct probe_plan plan = {
		.begins = b->begins, .ends = b->ends, .begin_cnt = b->begin_cnt, .end_cnt = b->end_cnt, .is_session = s->way == PROBE_WAY_SESSION,
		.is_sleepable = s->is_sleepable, .count_only = s->o.count_only, .pid = s->filters_pid ? s->pid : 0,
		.who_fd = s->who ? probe_who_fd(s->who) : -1, .pid_ns_dev = s->pid_ns_dev,
		.pid_ns_ino = s->pid_ns_ino, .ring_fd = s->ring_fd, .counts_fd = s->counts_fd, .point_cnt = s->o.point_cnt,
		.stripe_cnt = s->stripe_cnt, .is_return_id = s->is_return_id, .cookie_id = s->cookie_id,
		.copy_text_id = s->copy_text_id,
	};
	/* Returns first: a call whose beginning was seen is then seen to its end. */
	if (b->end_cnt && !plan.is_session)
		e = attach_half(s, &plan, &g, true);
	if (!e)
		e = attach_half(s, &plan, &g, false);
	if (!e || e->kind != ERR_BUDGET || to - from == 1)
		return e;
	err_free(e);
	while (s->fds.cnt > fd_cnt) {
		int fd = VEC_POP(&s->fds);
		s->pending_fd = fd == s->pending_fd ? -1 : s->pending_fd;
		close(fd);
	}
	e = attach_range(s, at, from, from + (to - from) / 2);
	return e ? e : attach_range(s, at, from + (to - from) / 2, to);
}

/* Points in the order of their kinds, and kinds with returns before those without: no program has both. */
static struct err *attach_all(struct probe_set *s)
{
	_cleanup_free_ uint64_t *offs = alloc_array(s->o.point_cnt, sizeof(*offs));
	_cleanup_free_ uint64_t *cookies = alloc_array(s->o.point_cnt, sizeof(*cookies));
	_cleanup_free_ uint32_t *sorted = alloc_array(s->o.point_cnt, sizeof(*sorted));
	_cleanup_free_ uint32_t *order = alloc_array(s->o.kind_cnt, sizeof(*order));
	_cleanup_free_ uint32_t *rank = alloc_array(s->o.kind_cnt, sizeof(*rank));
	_cleanup_free_ uint32_t *first = alloc_array((size_t)s->o.kind_cnt + 2, sizeof(*first));
	if (!offs || !cookies || !sorted || !order || !rank || !first)
		return &err_nomem;
	uint32_t used = 0, with_return = 0;
	for (int has_return = 1; has_return >= 0; has_return--) {
		for (uint32_t k = 0; k < s->o.kind_cnt; k++) {
			if (s->kinds[k].has_return == has_return) {
				rank[k] = used;
				order[used++] = k;
			}
		}
		with_return = has_return ? used : with_return;
	}
	/* first[r + 1] becomes the place behind the last point of rank r. */
	for (uint32_t i = 0; i < s->o.point_cnt; i++)
		first[rank[s->points[i].kind] + 2]++;
	for (uint32_t r = 0; r < used; r++)
		first[r + 2] += first[r + 1];
	for (uint32_t i = 0; i < s->o.point_cnt; i++)
		sorted[first[rank[s->points[i].kind] + 1]++] = i;
	const struct attach at = {.offs = offs, .cookies = cookies, .sorted = sorted, .order = order, .first = first};
	uint32_t max = s->o.kind_cnt && s->conds[0].node_cnt ? COND_KINDS : PROBE_BODY_MAX;
	struct err *e = NULL;
	for (uint32_t from = 0, to; !e && from < used; from = to) {
		to = MIN(from + max, from < with_return ? with_return : used);
		if (first[to] > first[from])
			e = attach_range(s, &at, from, to);
	}
	return e;
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

/* Where a name is among the strings, 0: nowhere. Names are kept once each; one may be the end of another. */
static uint32_t btf_name(const uint8_t *strings, size_t len, const char *name)
{
	size_t name_len = strlen(name) + 1;
	const uint8_t *at = memmem(strings, len, name, name_len);
	for (; at && at > strings && at[-1]; at = memmem(at + 1, (size_t)(strings + len - at - 1), name, name_len))
		;
	return at ? (uint32_t)(at - strings) : 0;
}

void probe_btf_funcs(const uint8_t *btf, size_t len, const char *const *names, size_t cnt, uint32_t *ret)
{
	enum { BTF_FUNC = 12, BTF_HEAD = 24 };
	uint32_t wants[PROBE_BTF_NAMES] = {0};
	memset(ret, 0, cnt * sizeof(*ret));
	if (len < BTF_HEAD || u32_at(btf) != 0x0001eb9f || cnt > PROBE_BTF_NAMES)
		return;
	uint64_t head = u32_at(btf + 4), types = head + u32_at(btf + 8), types_end = types + u32_at(btf + 12);
	uint64_t strings = head + u32_at(btf + 16), strings_end = strings + u32_at(btf + 20);
	if (types_end > len || strings_end > len || strings >= strings_end)
		return;
	size_t left = 0;
	for (size_t i = 0; i < cnt; i++) {
		wants[i] = btf_name(btf + strings, strings_end - strings, names[i]);
		left += wants[i] != 0;
	}
	uint32_t id = 1;
	for (uint64_t p = types; left && p + 12 <= types_end; id++) {
		uint32_t info = u32_at(btf + p + 4), kind = info >> 24 & 31, name = u32_at(btf + p), more = btf_more(kind, info & 0xffff);
		for (size_t i = 0; kind == BTF_FUNC && i < cnt; i++) {
			if (wants[i] && name == wants[i] && !ret[i]) {
				ret[i] = id;
				left--;
			}
		}
		if (more == UINT32_MAX)
			return;
		p += 12 + (uint64_t)more;
	}
}

/* The kernel's type information stays mapped until the probes are attached: a grace period that freeing begins would be waited for there. */
static const uint8_t *map_btf(struct probe_set *s)
{
	_cleanup_close_ int fd = s->btf ? -1 : open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0)
		return s->btf;
	s->btf_len = (size_t)st.st_size;
	/* Linux 6.16 lets it be mapped. */
	void *map = mmap(NULL, s->btf_len, PROT_READ, MAP_PRIVATE, fd, 0);
	size_t got = 0;
	if (map == MAP_FAILED) {
		map = mmap(NULL, s->btf_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (ssize_t n; map != MAP_FAILED && got < s->btf_len && (n = read(fd, (uint8_t *)map + got, s->btf_len - got)) > 0;)
			got += (size_t)n;
	}
	s->btf = map == MAP_FAILED ? NULL : map;
	return s->btf;
}

static void unmap_btf(struct probe_set *s)
{
	if (s->btf)
		munmap((void *)(uintptr_t)s->btf, s->btf_len);
	s->btf = NULL;
}

/* The functions that sessions need, and the one that reads strings. */
static bool find_session(struct probe_set *s)
{
	static const char *const names[] = {"bpf_session_is_return", "bpf_session_cookie", "bpf_copy_from_user_str"};
	uint32_t ids[ARRAY_LEN(names)] = {0};
	const uint8_t *btf = map_btf(s);
	if (btf && !s->is_return_id)
		probe_btf_funcs(btf, s->btf_len, names, ARRAY_LEN(names), ids);
	s->is_return_id = s->is_return_id ? s->is_return_id : ids[0];
	s->cookie_id = s->cookie_id ? s->cookie_id : ids[1];
	s->copy_text_id = s->copy_text_id ? s->copy_text_id : ids[2];
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
	int fd = probe_bpf(BPF_MAP_CREATE, &attr, sizeof(attr));
	if (fd < 0)
		return errno != ENOSYS ? probe_refused(errno, "no probes")
				       : err_fix(err_new(ERR_ENV, "this kernel has no BPF, which probes need"),
						 "run it on a kernel with CONFIG_BPF_SYSCALL");
	close(fd);
	return NULL;
}

/* --- opening --------------------------------------------------------------------------------------------------- */

void probe_detach(struct probe_set *s)
{
	/* Links last to first, so no program runs without what it needs. Maps are kept by being mapped. */
	while (s->fds.cnt)
		close(VEC_POP(&s->fds));
	s->ring_fd = s->counts_fd = s->pending_fd = -1;
}

/* Everything that was made for a way that did not work. */
static void undo_way(struct probe_set *s)
{
	probe_detach(s);
	if (s->rows)
		munmap((void *)(uintptr_t)s->rows, s->rows_len);
	if (s->consumer)
		munmap(s->consumer, (size_t)sysconf(_SC_PAGESIZE));
	if (s->producer)
		munmap((void *)(uintptr_t)s->producer, (size_t)sysconf(_SC_PAGESIZE) + 2 * s->ring_len);
	s->rows = NULL;
	s->consumer = NULL;
	s->producer = NULL;
}

static struct err *map_shared(struct probe_set *s)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, s->rows_len, PROT_READ, MAP_SHARED, s->counts_fd, 0);
	if (p == MAP_FAILED)
		return probe_refused(errno, "counters cannot be mapped");
	s->rows = p;
	if (s->o.count_only)
		return NULL;
	p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, s->ring_fd, 0);
	if (p == MAP_FAILED)
		return probe_refused(errno, "the ring cannot be mapped");
	s->consumer = p;
	p = mmap(NULL, page + 2 * s->ring_len, PROT_READ, MAP_SHARED, s->ring_fd, (off_t)page);
	if (p == MAP_FAILED)
		return probe_refused(errno, "the ring cannot be mapped");
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
	s->filters_pid = s->pid && (s->way == PROBE_WAY_PERF || (s->way == PROBE_WAY_MULTI && is_old)) && !stat("/proc/self/ns/pid", &st);
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
	return e->kind == ERR_ENV && e->os_errno != EBUSY && e->os_errno != ESRCH && e->os_errno != ENOENT && e->os_errno != KERNEL_ENOTSUPP;
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
	struct probe_set *s = calloc(1, sizeof(*s));
	if (!s)
		return &err_nomem;
	s->ring_fd = s->counts_fd = s->pending_fd = -1;
	struct err *e = prepare(s, o);
	if (!e && (o->with_children || o->pid_cnt > 1))
		e = probe_who_open(o->pids, o->pid_cnt, o->with_children, &s->who);
	else if (!e && o->pid_cnt)
		s->pid = o->pids[0];
	if (!e) {
		raise_limit();
		e = try_ways(s);
		unmap_btf(s);
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
	probe_who_close(s->who);
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

bool probe_is_drained(const struct probe_set *s)
{
	return s->o.count_only || __atomic_load_n((uint64_t *)(void *)s->consumer, __ATOMIC_RELAXED) >=
					  __atomic_load_n((const uint64_t *)(const void *)s->producer, __ATOMIC_ACQUIRE);
}

bool probe_is_alive(const struct probe_set *s)
{
	return s->who && probe_who_is_alive(s->who);
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
