/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/trace_bpf.h"

#include "live/trace/trace_bpf_lib.h"
#include "live/trace/trace_event.h"
#include "live/trace/trace_frame.h"
#include "live/trace/trace_seed.h"

#include "base/buf.h"
#include "base/map.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define RING_LEN (16u << 20)
#define LINK_MAX 8

/*
 * The ring is mapped and read here instead of by libbpf: what is complete is one range of bytes (it is mapped twice, so
 * that it has no seam), which a file takes as it is and which costs nothing per record.
 */
struct trace_bpf {
	const struct trace_bpf_lib *lib;
	struct bpf_object *object;
	struct bpf_link *links[LINK_MAX];
	size_t link_cnt;
	struct trace_shared *shared; /* mapped: the programs' own */
	bool is_raw, is_inverted, with_maps;
	int epoll_fd;
	size_t page_len, ring_len;
	uint64_t *consumer;       /* mapped, ours to write: how far was read */
	const uint64_t *producer; /* mapped: how far the kernel has given out, and behind it the ring, twice */
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
	cfg->match = (s->uid_cnt ? TRACE_MATCH_UID : 0) | (s->cgroup_cnt ? TRACE_MATCH_CGROUP : 0) | (s->pid_ns_cnt ? TRACE_MATCH_PID_NS : 0) |
		     (s->mnt_ns_cnt ? TRACE_MATCH_MNT_NS : 0) | (s->exe_cnt ? TRACE_MATCH_EXE : 0) | (s->comm_cnt ? TRACE_MATCH_COMM : 0);
	cfg->follow = s->tree;
	cfg->invert = !cfg->match && !s->pid_cnt && !s->own;
	return NULL;
}

static struct err *fill_config(const struct trace_bpf_options *opt, struct trace_config *cfg, struct trace_shared *ids)
{
	if (opt->stack_len > 2048 || opt->stack_len % 8)
		return err_new(ERR_INVALID, "%u bytes of stack: a multiple of 8 up to 2,048 is possible", opt->stack_len);
	cfg->flags = (opt->with_site ? TRACE_WIRE_USER : 0) | (opt->with_times ? TRACE_WIRE_TIMED : 0);
	cfg->stack_len = opt->with_site ? opt->stack_len : 0;
	cfg->fixed_len = (uint32_t)sizeof(struct trace_wire) + (opt->with_times ? 8 : 0) +
			 (opt->with_site ? (uint32_t)sizeof(struct trace_wire_user) + opt->stack_len : 0);
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

static int set_rare(struct trace_bpf *t, const char *map, uint32_t idx, const char *prog)
{
	int fd = t->lib->program_fd(t->lib->object_find_program_by_name(t->object, prog));
	return t->lib->map_update_elem(t->lib->map_fd(t->lib->object_find_map_by_name(t->object, map)), &idx, &fd, 0);
}

static uint32_t pid_max(void)
{
	unsigned v = TRACE_TIDS;
	FILE *f = fopen("/proc/sys/kernel/pid_max", "re");
	if (f) {
		if (fscanf(f, "%u", &v) != 1)
			v = TRACE_TIDS;
		fclose(f);
	}
	return v;
}

static struct err *load(struct trace_bpf *t, const struct trace_bpf_options *opt, const struct trace_config *cfg)
{
	size_t len;
	const void *bytes = trace_bpf_object(t->is_raw, &len);
	t->object = t->lib->object_open_mem(bytes, len, NULL);
	if (!t->object)
		return refused(errno, "take the tracing programs");
	struct bpf_map *bss = find_globals(t, ".bss");
	struct trace_config *c = first_value(t, find_globals(t, ".rodata"), sizeof(*c));
	if (!c || !first_value(t, bss, sizeof(*t->shared)))
		return err_new(ERR_INTERNAL, "the tracing programs are another scry's");
	memcpy(c, cfg, sizeof(*c));
	t->lib->map_set_max_entries(t->lib->object_find_map_by_name(t->object, "ring"), (uint32_t)t->ring_len);
	if (opt->with_times)
		t->lib->map_set_max_entries(t->lib->object_find_map_by_name(t->object, "times"), pid_max() + 1);
	int r = t->lib->object_load(t->object);
	if (r < 0)
		return refused(-r, "load the tracing programs");
	void *shared = mmap(NULL, sizeof(*t->shared), PROT_READ | PROT_WRITE, MAP_SHARED, t->lib->map_fd(bss), 0);
	if (shared == MAP_FAILED)
		return err_os(errno, "mapping the data of the tracing programs");
	t->shared = shared;
	if (set_rare(t, "rare_exit", TRACE_RARE_COMPAT, "trace_compat_exit") || set_rare(t, "rare_exit", TRACE_RARE_MAPS, "trace_maps_exit") ||
	    set_rare(t, "rare_enter", TRACE_RARE_COMPAT, "trace_compat_enter"))
		return refused(errno, "join the tracing programs");
	return NULL;
}

static struct err *map_ring(struct trace_bpf *t)
{
	int fd = t->lib->map_fd(t->lib->object_find_map_by_name(t->object, "ring"));
	void *consumer = mmap(NULL, t->page_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (consumer == MAP_FAILED)
		return err_os(errno, "mapping the ring of the tracing programs");
	t->consumer = consumer;
	const void *producer = mmap(NULL, t->page_len + 2 * t->ring_len, PROT_READ, MAP_SHARED, fd, (off_t)t->page_len);
	if (producer == MAP_FAILED)
		return err_os(errno, "mapping the ring of the tracing programs");
	t->producer = producer;
	t->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	/* Edge-triggered: nobody is woken by what is there already, which the timer takes, but by the kernel's call. */
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	if (t->epoll_fd < 0 || epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return err_os(errno, "waiting for the ring of the tracing programs");
	return NULL;
}

static struct err *attach(struct trace_bpf *t, const char *name)
{
	assert(t->link_cnt < LINK_MAX);
	struct bpf_link *l = t->lib->program_attach(t->lib->object_find_program_by_name(t->object, name));
	if (!l)
		return refused(errno, "attach the tracing programs");
	t->links[t->link_cnt++] = l;
	return NULL;
}

static struct err *attach_all(struct trace_bpf *t, const struct trace_bpf_options *opt)
{
	/* Processes first, so that none is made unseen between. */
	static const char *const names[] = {"trace_fork", "trace_exec", "trace_exit", "trace_rename", "trace_sys_exit"};
	struct err *e = NULL;
	for (size_t i = 0; !e && i < ARRAY_LEN(names); i++)
		e = attach(t, names[i]);
	bool enters = opt->with_times;
	for (size_t i = 0; i < TRACE_IDS / 64; i++)
		enters = enters || t->shared->enter_ids[0][i] || t->shared->enter_ids[1][i];
	if (!e && enters)
		e = attach(t, "trace_sys_enter");
	if (!e && opt->with_signals)
		e = attach(t, "trace_signal");
	return e;
}

static struct err *open_hook(struct trace_bpf *t, const struct trace_bpf_options *opt, const struct trace_config *cfg, const struct trace_shared *ids)
{
	struct err *e = load(t, opt, cfg);
	if (!e)
		e = map_ring(t);
	if (e)
		return e;
	memcpy(t->shared->exit_ids, ids->exit_ids, sizeof(ids->exit_ids));
	memcpy(t->shared->enter_ids, ids->enter_ids, sizeof(ids->enter_ids));
	if (cfg->invert)
		trace_seed_set(t->shared, (uint32_t)getpid(), true);
	return attach_all(t, opt);
}

static struct err *check_options(const struct trace_bpf_options *opt)
{
	uint32_t len = opt->ring_len;
	if (len && (len < 65536 || len & (len - 1)))
		return err_new(ERR_INVALID, "a ring of %u bytes: it must be a power of two from 65,536 on", len);
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
	for (int raw = opt->hook == TRACE_HOOK_RAW; !e && raw <= (opt->hook != TRACE_HOOK_BTF); raw++) {
		struct trace_bpf *t = calloc(1, sizeof(*t));
		if (!t)
			return &err_nomem;
		*t = (struct trace_bpf){.lib = lib, .is_raw = raw, .epoll_fd = -1, .ring_len = opt->ring_len ? opt->ring_len : RING_LEN,
			.page_len = (size_t)sysconf(_SC_PAGESIZE), .is_inverted = cfg->invert, .with_maps = opt->plan.with_maps,
			.cpu_cnt = (size_t)MIN(sysconf(_SC_NPROCESSORS_CONF), (long)TRACE_CPUS)};
		e = open_hook(t, opt, cfg, ids);
		if (!e)
			e = trace_seed_scope(t->shared, &opt->scope, cfg, opt->plan.with_maps, &t->seeds);
		if (!e) {
			*ret = t;
			return NULL;
		}
		trace_bpf_close(t);
		if (raw || e->kind != ERR_ENV || opt->hook == TRACE_HOOK_BTF)
			return e;
		err_free(e);
		e = NULL;
	}
	return e;
}

void trace_bpf_stop(struct trace_bpf *t)
{
	while (t->link_cnt)
		t->lib->link_destroy(t->links[--t->link_cnt]);
}

void trace_bpf_close(struct trace_bpf *t)
{
	if (!t)
		return;
	trace_bpf_stop(t);
	if (t->epoll_fd >= 0)
		close(t->epoll_fd);
	if (t->consumer)
		munmap(t->consumer, t->page_len);
	if (t->producer)
		munmap((void *)(uintptr_t)t->producer, t->page_len + 2 * t->ring_len);
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
	const uint8_t *ring = (const uint8_t *)t->producer + t->page_len;
	uint64_t from = *t->consumer, end = __atomic_load_n(t->producer, __ATOMIC_ACQUIRE), at = from;
	while (at < end && at - from < t->ring_len / 4) {
		uint32_t head = __atomic_load_n((const uint32_t *)(ring + (at & (t->ring_len - 1))), __ATOMIC_ACQUIRE);
		if (head & TRACE_FRAME_BUSY)
			break;
		const uint8_t *rec = ring + (at & (t->ring_len - 1)) + TRACE_FRAME_LEN;
		uint8_t kind = rec[offsetof(struct trace_wire, kind)];
		if (kind == TRACE_EXEC || kind == TRACE_FORK)
			look_up_container(t, rec, head & ~TRACE_FRAME_DISCARDED);
		at += trace_frame_len(head);
	}
	if (at == from)
		return NULL;
	*ret_any = true;
	struct err *e = fn(ctx, ring + (from & (t->ring_len - 1)), at - from);
	__atomic_store_n(t->consumer, at, __ATOMIC_RELEASE);
	return e;
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

const char *trace_bpf_hook(const struct trace_bpf *t)
{
	return t->is_raw ? "raw_tp" : "tp_btf";
}
