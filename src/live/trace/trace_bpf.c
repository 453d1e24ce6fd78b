/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/trace_bpf.h"

#include "live/trace/trace_bpf_lib.h"
#include "live/trace/trace_cgroup.h"
#include "live/trace/trace_event.h"
#include "live/trace/trace_frame.h"
#include "live/trace/trace_seed.h"

#include "base/buf.h"
#include "base/map.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define RING_LEN (16u << 20)     /* of a CPU, as long as there are few */
#define RINGS_LEN (64u << 20)    /* of all */
#define RING_LEN_LEAST (1u << 20)
#define RING_LEN_SURE (2u << 20) /* older kernels refuse values above 4 MB */
#define BATCH_LEN (256u << 10)
#define RUN_LEN 16384            /* from here on records of one CPU are not copied */
#define CLOCKS_NS 2000           /* what two readings of the clock may differ by */
#define LINK_MAX 16

/* The ring of one CPU. */
struct ring {
	struct trace_cpu *cpu;
	const uint8_t *bytes; /* mapped */
	const struct trace_turns *turns;
	uint64_t turn, last_turn;     /* which is read, and the last one that can be */
	uint32_t at, end, last_end;   /* what of them can be */
};

/*
 * Rings are mapped and read here: what is complete is a range of bytes, which a file takes as it is. Records of several CPUs are
 * put into the order of their times. What happens because of something else is never before it, since only records are taken that
 * are older than the moment at which it was looked how far every ring is: one that was not yet there by then has
 * no effects which are older.
 */
struct trace_bpf {
	const struct trace_bpf_lib *lib;
	struct bpf_object *object;
	struct bpf_link *links[LINK_MAX];
	size_t link_cnt;
	struct trace_shared *shared; /* mapped: the programs' own */
	enum trace_hook hook;
	bool is_inverted, with_maps, is_stopped;
	int epoll_fd;
	size_t page_len, ring_each, rings_len;
	struct ring *rings;       /* cpu_cnt of them */
	void *rings_map;          /* mapped: all of them */
	uint64_t *bell_taken;     /* mapped, ours to write: how often we were woken */
	const uint64_t *bell_rung;
	struct buf batch;         /* records of several CPUs */
	uint64_t until, run_until;
	struct buf seeds;         /* records of what was there before, framed */
	struct map cgroups;       /* trace_seed_key() of those whose container was looked up */
	size_t cpu_cnt;
};

static struct err *refused(int os_errno, const char *what)
{
	if (os_errno == EPERM || os_errno == EACCES) {
		struct err *e = err_new(ERR_ENV, "the kernel does not let this user %s", what);
		return err_fix(e, "run it as root (CAP_BPF and CAP_PERFMON)");
	}
	return err_new(ERR_ENV, "this kernel does not %s: %s", what, strerror(os_errno));
}

const char *trace_hook_name(enum trace_hook hook)
{
	static const char *const names[] = {[TRACE_HOOK_ANY] = "any", [TRACE_HOOK_BTF] = "tp_btf", [TRACE_HOOK_RAW] = "raw_tp",
		[TRACE_HOOK_PERF] = "perf"};
	return names[hook];
}

/* --- options to configuration ----------------------------------------------------------------------------------- */

static struct err *fill_ids(struct trace_match_ids *m, const uint64_t *wide, const uint32_t *narrow, size_t cnt)
{
	if (cnt > TRACE_MATCH_MAX)
		return err_new(ERR_INVALID, "%zu values to choose processes by, the limit is %d", cnt, TRACE_MATCH_MAX);
	m->cnt = (uint32_t)cnt;
	for (size_t i = 0; i < cnt; i++)
		m->ids[i] = wide ? wide[i] : narrow[i];
	return NULL;
}

static struct err *fill_exes(struct trace_config *cfg, const struct trace_scope *s)
{
	struct err *e = fill_ids(&cfg->exe, NULL, NULL, 0);
	if (!e && s->exe_cnt > TRACE_MATCH_MAX)
		e = err_new(ERR_INVALID, "%zu programs to choose processes by, the limit is %d", s->exe_cnt, TRACE_MATCH_MAX);
	for (size_t i = 0; !e && i < s->exe_cnt; i++) {
		struct stat st;
		if (stat(s->exes[i], &st) < 0)
			return err_os(errno, "%s", s->exes[i]);
		cfg->exe.ids[cfg->exe.cnt] = st.st_ino;
		cfg->exe_dev[cfg->exe.cnt++] = major(st.st_dev) << 20 | minor(st.st_dev);
	}
	return e;
}

static struct err *fill_scope(struct trace_config *cfg, const struct trace_scope *s)
{
	struct err *e = fill_ids(&cfg->uid, NULL, s->uids, s->uid_cnt);
	if (!e)
		e = fill_ids(&cfg->cgroup, s->cgroups, NULL, s->cgroup_cnt);
	if (!e)
		e = fill_ids(&cfg->pid_ns, NULL, s->pid_nss, s->pid_ns_cnt);
	if (!e)
		e = fill_ids(&cfg->mnt_ns, NULL, s->mnt_nss, s->mnt_ns_cnt);
	if (!e)
		e = fill_exes(cfg, s);
	if (!e && s->comm_cnt > TRACE_MATCH_MAX)
		e = err_new(ERR_INVALID, "%zu names to choose processes by, the limit is %d", s->comm_cnt, TRACE_MATCH_MAX);
	if (e)
		return e;
	for (size_t i = 0; i < s->comm_cnt; i++)
		memcpy(cfg->comm[i], s->comms[i], strnlen(s->comms[i], sizeof(cfg->comm[i]) - 1));
	cfg->comm_cnt = (uint32_t)s->comm_cnt;
	if (s->container && strlen(s->container) > TRACE_CONTAINER_LEN)
		return err_new(ERR_INVALID, "a container's id has %d digits: %s", TRACE_CONTAINER_LEN, s->container);
	if (s->container)
		memcpy(cfg->container, s->container, cfg->container_len = (uint32_t)strlen(s->container));
	cfg->match = (s->uid_cnt ? TRACE_MATCH_UID : 0) | (s->cgroup_cnt ? TRACE_MATCH_CGROUP : 0) | (s->pid_ns_cnt ? TRACE_MATCH_PID_NS : 0) |
		     (s->mnt_ns_cnt ? TRACE_MATCH_MNT_NS : 0) | (s->exe_cnt ? TRACE_MATCH_EXE : 0) | (s->comm_cnt ? TRACE_MATCH_COMM : 0) |
		     (s->container ? TRACE_MATCH_CONTAINER : 0);
	cfg->follow = s->tree;
	cfg->invert = !cfg->match && !s->pid_cnt && !s->own;
	return NULL;
}

static struct err *fill_config(const struct trace_bpf_options *opt, struct trace_config *cfg, struct trace_shared *ids)
{
	if (opt->stack_len > TRACE_STACK_DEEP || opt->stack_len % 8)
		return err_new(ERR_INVALID, "%u bytes of stack: a multiple of 8 up to 2,048 is possible", opt->stack_len);
	cfg->flags = (opt->with_site ? TRACE_WIRE_USER : 0) | (opt->with_times ? TRACE_WIRE_TIMED : 0);
	trace_plan_stack(cfg, opt->with_site ? opt->stack_len : 0);
	cfg->with_signals = opt->with_signals;
	trace_plan_fill(&opt->plan, cfg, ids);
	return fill_scope(cfg, &opt->scope);
}

/* --- loading ----------------------------------------------------------------------------------------------------- */

/* The map of the global data whose section is this. */
static struct bpf_map *find_globals(struct trace_bpf *t, const char *section)
{
	size_t section_len = strlen(section);
	for (struct bpf_map *m = t->lib->object_next_map(t->object, NULL); m; m = t->lib->object_next_map(t->object, m)) {
		const char *name = t->lib->map_name(m);
		size_t len = strlen(name);
		if (len >= section_len && !strcmp(name + len - section_len, section))
			return m;
	}
	return NULL;
}

/* Of which the first value has `want_len` bytes; null: it is another scry's. */
static void *first_value(struct trace_bpf *t, struct bpf_map *m, size_t want_len)
{
	size_t len = 0;
	void *p = m ? t->lib->map_initial_value(m, &len) : NULL;
	return len == want_len ? p : NULL;
}

/* When a program is loaded. */
enum need { ALWAYS, ENTERS, SIGNALS, MOVES, CONTAINERS };

static const struct program {
	const char *name;
	enum need need;
	bool is_attached;      /* else others go on to it: */
	const char *map;
	enum trace_rare idx;
} programs[] = {
	{"trace_rename", ALWAYS, .is_attached = true}, /* which learns where paths begin */
	/* Then processes, so that none is made unseen between. */
	{"trace_fork", ALWAYS, .is_attached = true},
	{"trace_exec", ALWAYS, .is_attached = true},
	{"trace_exit", ALWAYS, .is_attached = true},
	{"trace_cgroup_mkdir", CONTAINERS, .is_attached = true},
	{"trace_cgroup_rmdir", CONTAINERS, .is_attached = true},
	{"trace_cgroup_attach", MOVES, .is_attached = true},
	{"trace_sys_exit", ALWAYS, .is_attached = true, .map = "rare_exit", TRACE_RARE_AGAIN},
	{"trace_sys_enter", ENTERS, .is_attached = true, .map = "rare_enter", TRACE_RARE_AGAIN},
	{"trace_signal", SIGNALS, .is_attached = true},
	{"trace_turn_exit", ALWAYS, .map = "rare_exit", TRACE_RARE_TURN},
	{"trace_turn_enter", ENTERS, .map = "rare_enter", TRACE_RARE_TURN},
	{"trace_compat_exit", ALWAYS, .map = "rare_exit", TRACE_RARE_COMPAT},
	{"trace_compat_enter", ENTERS, .map = "rare_enter", TRACE_RARE_COMPAT},
	{"trace_full_exit", ALWAYS, .map = "rare_exit", TRACE_RARE_FULL},
	{"trace_after_exit", ALWAYS, .map = "rare_exit", TRACE_RARE_AFTER},
};

static bool is_needed(const struct trace_bpf_options *opt, const struct trace_shared *ids, enum need need, enum trace_hook hook)
{
	bool enters = opt->with_times;
	for (size_t i = 0; i < TRACE_IDS / 64; i++)
		enters = enters || ids->enter_ids[0][i] || ids->enter_ids[1][i];
	switch (need) {
	case ENTERS:
		return enters;
	case SIGNALS:
		return opt->with_signals;
	case MOVES:
		return hook != TRACE_HOOK_PERF && (opt->scope.cgroup_cnt || opt->scope.container);
	case CONTAINERS:
		return opt->scope.container;
	default:
		return true;
	}
}

static struct bpf_program *find_program(const struct trace_bpf *t, const struct program *p)
{
	return t->lib->object_find_program_by_name(t->object, p->name);
}

static struct err *join_programs(struct trace_bpf *t, const struct trace_bpf_options *opt, const struct trace_shared *ids)
{
	for (const struct program *p = programs; p < programs + ARRAY_LEN(programs); p++) {
		if (!p->map || !is_needed(opt, ids, p->need, t->hook))
			continue;
		uint32_t idx = p->idx;
		int fd = t->lib->program_fd(find_program(t, p));
		if (t->lib->map_update_elem(t->lib->map_fd(t->lib->object_find_map_by_name(t->object, p->map)), &idx, &fd, 0))
			return refused(errno, "join the tracing programs");
	}
	return NULL;
}

/* Bytes of a CPU's ring, and a value of the map. */
static void set_ring_len(struct trace_bpf *t, struct trace_config *cfg, size_t len)
{
	struct bpf_map *m = t->lib->object_find_map_by_name(t->object, "rings");
	t->ring_each = trace_plan_ring(cfg, len);
	t->lib->map_set_value_size(m, (uint32_t)t->ring_each);
	t->lib->map_set_max_entries(m, (uint32_t)t->cpu_cnt);
}

static struct err *load(struct trace_bpf *t, const struct trace_bpf_options *opt, const struct trace_config *cfg, const struct trace_shared *ids,
			size_t ring_len)
{
	size_t len;
	const void *bytes = trace_bpf_object(t->hook, &len);
	t->object = t->lib->object_open_mem(bytes, len, NULL);
	if (!t->object)
		return refused(errno, "take the tracing programs");
	struct bpf_map *bss = find_globals(t, ".bss");
	struct trace_config *c = first_value(t, find_globals(t, ".rodata"), sizeof(*c));
	if (!c || !first_value(t, bss, sizeof(*t->shared)))
		return err_new(ERR_INTERNAL, "the tracing programs are another scry's");
	memcpy(c, cfg, sizeof(*c));
	c->tracer = (uint32_t)gettid();
	set_ring_len(t, c, ring_len);
	for (const struct program *p = programs; p < programs + ARRAY_LEN(programs); p++) {
		struct bpf_program *program = find_program(t, p);
		if (program)
			t->lib->program_set_autoload(program, is_needed(opt, ids, p->need, t->hook));
	}
	int r = t->lib->object_load(t->object);
	if (r == -E2BIG && ring_len > RING_LEN_SURE) {
		t->lib->object_close(take_ptr(t->object));
		return load(t, opt, cfg, ids, RING_LEN_SURE);
	}
	if (r < 0)
		return refused(-r, "load the tracing programs");
	void *shared = mmap(NULL, sizeof(*t->shared), PROT_READ | PROT_WRITE, MAP_SHARED, t->lib->map_fd(bss), 0);
	if (shared == MAP_FAILED)
		return err_os(errno, "mapping the data of the tracing programs");
	t->shared = shared;
	return join_programs(t, opt, ids);
}

static struct err *map_bell(struct trace_bpf *t)
{
	int fd = t->lib->map_fd(t->lib->object_find_map_by_name(t->object, "bell"));
	void *taken = mmap(NULL, t->page_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (taken == MAP_FAILED)
		return err_os(errno, "mapping the ring of the tracing programs");
	t->bell_taken = taken;
	const void *rung = mmap(NULL, t->page_len, PROT_READ, MAP_SHARED, fd, (off_t)t->page_len);
	if (rung == MAP_FAILED)
		return err_os(errno, "mapping the ring of the tracing programs");
	t->bell_rung = rung;
	t->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	/* Edge-triggered: nobody is woken by what is there already, which the timer takes, but by the kernel's call. */
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	if (t->epoll_fd < 0 || epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return err_os(errno, "waiting for the ring of the tracing programs");
	return NULL;
}

static struct err *map_rings(struct trace_bpf *t)
{
	int fd = t->lib->map_fd(t->lib->object_find_map_by_name(t->object, "rings"));
	t->rings_len = (t->ring_each * t->cpu_cnt + t->page_len - 1) & ~(t->page_len - 1);
	void *p = mmap(NULL, t->rings_len, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return err_os(errno, "mapping the rings of the tracing programs");
	t->rings_map = p;
	t->rings = calloc(t->cpu_cnt, sizeof(*t->rings));
	if (!t->rings)
		return &err_nomem;
	for (size_t i = 0; i < t->cpu_cnt; i++) {
		const uint8_t *ring = (uint8_t *)p + i * t->ring_each;
		t->rings[i] = (struct ring){.cpu = &t->shared->cpu[i], .bytes = ring + TRACE_RING_HEAD,
			.turns = (const struct trace_turns *)(ring + TRACE_RING_TURNS)};
	}
	return map_bell(t);
}

/* This thread takes the name it has, for the kernel's side to look at its root. */
static void show_root(void)
{
	char name[16] = "";
	prctl(PR_GET_NAME, name);
	prctl(PR_SET_NAME, name);
}

static struct err *attach_all(struct trace_bpf *t, const struct trace_bpf_options *opt, const struct trace_shared *ids)
{
	for (const struct program *p = programs; p < programs + ARRAY_LEN(programs); p++) {
		if (!p->is_attached || !is_needed(opt, ids, p->need, t->hook))
			continue;
		assert(t->link_cnt < LINK_MAX);
		struct bpf_link *l = t->lib->program_attach(find_program(t, p));
		if (!l)
			return refused(errno, "attach the tracing programs");
		t->links[t->link_cnt++] = l;
		if (p == programs)
			show_root();
	}
	return NULL;
}

static size_t default_ring_len(size_t cpu_cnt)
{
	size_t len = RING_LEN;
	while (len > RING_LEN_LEAST && len * cpu_cnt > RINGS_LEN)
		len /= 2;
	return len;
}

static void add_container(void *ctx, uint64_t key)
{
	struct trace_bpf *t = ctx;
	t->lib->map_update_elem(t->lib->map_fd(t->lib->object_find_map_by_name(t->object, "containers")), &key, &key, 0);
}

static struct err *open_hook(struct trace_bpf *t, const struct trace_bpf_options *opt, const struct trace_config *cfg, const struct trace_shared *ids)
{
	struct err *e = load(t, opt, cfg, ids, opt->ring_len ? opt->ring_len : default_ring_len(t->cpu_cnt));
	if (!e)
		e = map_rings(t);
	if (e)
		return e;
	memcpy(t->shared->exit_ids, ids->exit_ids, sizeof(ids->exit_ids));
	memcpy(t->shared->enter_ids, ids->enter_ids, sizeof(ids->enter_ids));
	if (cfg->invert)
		trace_seed_set(t->shared, (uint32_t)getpid(), true);
	struct err *attached = attach_all(t, opt, ids);
	if (!attached && opt->scope.container)
		trace_cgroup_each(opt->scope.container, add_container, t);
	return attached;
}

static struct err *check_options(const struct trace_bpf_options *opt)
{
	uint32_t len = opt->ring_len;
	if (len && (len < TRACE_RING_MIN || len > 1u << 28 || len & (len - 1)))
		return err_new(ERR_INVALID, "a ring of %u bytes: it must be a power of two from 65,536 to 268,435,456", len);
	/* Threads are known to the kernel's side by their first numbers. */
	struct stat st;
	if (!stat("/proc/self/ns/pid", &st) && st.st_ino != 0xeffffffc) {
		struct err *e = err_new(ERR_ENV, "processes have other numbers in this pid namespace than tracing with eBPF sees");
		return err_fix(e, "run it outside of the container");
	}
	return NULL;
}

struct err *trace_bpf_open(const struct trace_bpf_options *opt, struct trace_bpf **ret)
{
	const struct trace_bpf_lib *lib;
	struct err *e = trace_bpf_lib(&lib);
	if (!e)
		e = check_options(opt);
	if (e)
		return e;
	_cleanup_free_ struct trace_config *cfg = calloc(1, sizeof(*cfg));
	_cleanup_free_ struct trace_shared *ids = calloc(1, sizeof(*ids));
	if (!cfg || !ids)
		return &err_nomem;
	e = fill_config(opt, cfg, ids);
	enum trace_hook hook = opt->hook ? opt->hook : TRACE_HOOK_BTF, last = opt->hook ? opt->hook : TRACE_HOOK_PERF;
	for (; !e && hook <= last; hook++) {
		if (hook == TRACE_HOOK_PERF && cfg->match)
			trace_plan_judge_clones(cfg, ids);
		struct trace_bpf *t = calloc(1, sizeof(*t));
		if (!t)
			return &err_nomem;
		*t = (struct trace_bpf){.lib = lib, .hook = hook, .epoll_fd = -1, .page_len = (size_t)sysconf(_SC_PAGESIZE),
			.is_inverted = cfg->invert, .with_maps = opt->plan.with_maps,
			.cpu_cnt = (size_t)MIN(sysconf(_SC_NPROCESSORS_CONF), (long)TRACE_CPUS)};
		e = open_hook(t, opt, cfg, ids);
		if (!e)
			e = trace_seed_scope(t->shared, &opt->scope, cfg, opt->plan.with_maps, &t->seeds);
		if (!e) {
			*ret = t;
			return NULL;
		}
		trace_bpf_close(t);
		if (hook == last || e->kind != ERR_ENV)
			return e;
		err_free(e);
		e = NULL;
	}
	return e;
}

void trace_bpf_stop(struct trace_bpf *t)
{
	bool any = t->link_cnt;
	while (t->link_cnt)
		t->lib->link_destroy(t->links[--t->link_cnt]);
	/* A program may still run elsewhere: what waits for all that have preemption off waits for it, too. */
	if (any)
		(void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	t->is_stopped = true;
}

void trace_bpf_close(struct trace_bpf *t)
{
	if (!t)
		return;
	trace_bpf_stop(t);
	if (t->epoll_fd >= 0)
		close(t->epoll_fd);
	if (t->bell_taken)
		munmap(t->bell_taken, t->page_len);
	if (t->bell_rung)
		munmap((void *)(uintptr_t)t->bell_rung, t->page_len);
	if (t->rings_map)
		munmap(t->rings_map, t->rings_len);
	free(t->rings);
	buf_fini(&t->batch);
	if (t->shared)
		munmap(t->shared, sizeof(*t->shared));
	if (t->object)
		t->lib->object_close(t->object);
	buf_fini(&t->seeds);
	map_fini(&t->cgroups);
	free(t);
}

struct err *trace_bpf_add(struct trace_bpf *t, pid_t pid)
{
	return trace_seed_process(t->shared, (uint32_t)pid, t->is_inverted, t->with_maps, &t->seeds);
}

/* --- reading ----------------------------------------------------------------------------------------------------- */

/* Of a process that was made or became another program: which container it is in is asked once for all in the same. */
static void look_up_container(struct trace_bpf *t, const uint8_t *rec, size_t len)
{
	struct trace_wire w;
	struct trace_wire_slot s;
	struct trace_wire_proc p;
	uint32_t seen;
	if (len < sizeof(w) + sizeof(s) + sizeof(p))
		return;
	memcpy(&w, rec, sizeof(w));
	memcpy(&s, rec + sizeof(w), sizeof(s));
	memcpy(&p, rec + sizeof(w) + sizeof(s), sizeof(p));
	if (s.arg != TRACE_WIRE_ARG_PROC || map_find(&t->cgroups, trace_seed_key(&p), &seen))
		return;
	if (map_put(&t->cgroups, trace_seed_key(&p), 1))
		trace_seed_cgroup(w.kind == TRACE_FORK ? (uint32_t)w.ret : w.tid, &p, &t->seeds);
}

static uint64_t time_at(const struct ring *r)
{
	return load_u64(r->bytes + r->at + TRACE_FRAME_LEN + offsetof(struct trace_wire, time), false);
}

/* At the end of a turn on to the next one, if that has begun: what was read may be written to. */
static void skip_turns(struct ring *r)
{
	for (;;) {
		r->end = r->turn == r->last_turn ? r->last_end : r->turns->turns[r->turn % TRACE_TURNS].end;
		if (r->at != r->end || r->turn == r->last_turn)
			return;
		r->turn++;
		r->at = r->turns->turns[r->turn % TRACE_TURNS].begin;
		__atomic_store_n(&r->cpu->tail, r->turn, __ATOMIC_RELEASE);
	}
}

/* How far each ring is, and up to which time records are taken now. */
static void look_at_rings(struct trace_bpf *t)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	t->until = t->is_stopped ? UINT64_MAX : (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec - CLOCKS_NS;
	__atomic_store_n(t->bell_taken, __atomic_load_n(t->bell_rung, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
	for (size_t i = 0; i < t->cpu_cnt; i++) {
		struct ring *r = &t->rings[i];
		uint64_t head = __atomic_load_n(&r->cpu->head, __ATOMIC_ACQUIRE);
		r->last_turn = r->turn + (uint32_t)((head >> 32) - r->turn);
		r->last_end = (uint32_t)head;
		skip_turns(r);
	}
}

/* The ring with the oldest record, and in t->run_until the time up to which no other one has any; null: there is nothing more. */
static struct ring *next_run(struct trace_bpf *t)
{
	struct ring *first = NULL;
	uint64_t least = UINT64_MAX, second = t->until;
	for (size_t i = 0; i < t->cpu_cnt; i++) {
		struct ring *r = &t->rings[i];
		uint64_t time = r->at < r->end ? time_at(r) : UINT64_MAX;
		if (r->at < r->end && (time < least || !first)) {
			second = MIN(second, least);
			least = time;
			first = r;
		} else {
			second = MIN(second, time);
		}
	}
	t->run_until = second;
	return least <= t->until ? first : NULL;
}

static struct err *give_batch(struct trace_bpf *t, trace_chunk_fn *fn, void *ctx)
{
	struct err *e = t->batch.failed ? &err_nomem : t->batch.len ? fn(ctx, (const uint8_t *)t->batch.data, t->batch.len) : NULL;
	t->batch.len = 0;
	return e;
}

/* Takes the oldest records of this ring, until another one's are older or its turn has ended: short runs are collected. */
static struct err *take_run(struct trace_bpf *t, struct ring *r, trace_chunk_fn *fn, void *ctx, bool *ret_any)
{
	const uint8_t *from = r->bytes + r->at;
	size_t len = 0;
	do {
		const uint8_t *p = from + len;
		uint32_t head = load_u32(p, false);
		uint8_t kind = p[TRACE_FRAME_LEN + offsetof(struct trace_wire, kind)];
		if (kind == TRACE_EXEC || kind == TRACE_FORK)
			look_up_container(t, p + TRACE_FRAME_LEN, head);
		len += trace_frame_len(head);
		r->at += (uint32_t)trace_frame_len(head);
	} while (r->at < r->end && time_at(r) <= t->run_until);
	*ret_any = true;
	struct err *e = NULL;
	if (len >= RUN_LEN || t->batch.len >= BATCH_LEN)
		e = give_batch(t, fn, ctx);
	if (!e && len >= RUN_LEN)
		e = fn(ctx, from, len);
	else if (!e)
		buf_add(&t->batch, from, len);
	skip_turns(r);
	return e;
}

struct err *trace_bpf_drain(struct trace_bpf *t, trace_chunk_fn *fn, void *ctx, bool *ret_any)
{
	*ret_any = false;
	if (t->seeds.failed)
		return &err_nomem;
	if (t->seeds.len) {
		struct err *e = fn(ctx, (const uint8_t *)t->seeds.data, t->seeds.len);
		t->seeds.len = 0;
		*ret_any = true;
		if (e)
			return e;
	}
	look_at_rings(t);
	struct err *e = NULL;
	for (struct ring *r; !e && (r = next_run(t));)
		e = take_run(t, r, fn, ctx, ret_any);
	return e ? e : give_batch(t, fn, ctx);
}

void trace_bpf_wait(struct trace_bpf *t, int ms)
{
	struct epoll_event ev;
	(void)epoll_wait(t->epoll_fd, &ev, 1, ms);
}

const struct trace_cpu *trace_bpf_cpus(const struct trace_bpf *t, size_t *ret_cnt)
{
	*ret_cnt = t->cpu_cnt;
	return t->shared->cpu;
}
