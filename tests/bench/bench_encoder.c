/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What recording a system call costs: the table that scry has against a switch per argument, and both against a program
 * that does nothing. bench_trace.py runs it and says what it means.
 *
 *   bench_encoder SWITCH.o sizes           a line a program: name, bytes of the object, xlated, jited, memlock
 *   bench_encoder SWITCH.o encode ROUNDS   a line a round: ns per 1,000 runs by BPF statistics, of each call, table and switch
 *   bench_encoder SWITCH.o floor ROUNDS    a line a round: CPU ns per call of this thread, for each of `floors`
 *   bench_encoder SWITCH.o same            whether both write the same bytes
 *   bench_encoder SWITCH.o sites STACK CMD...  of the calls of a program, all and those whose caller outside of libc was found with so
 *                                          many bytes of stack; ns each took
 *   bench_encoder SWITCH.o loss EVENTS LEN RATE  calls of one core, RATE of them a second (0: as fast as it goes), a ring of LEN bytes:
 *                                          events a second, seen, received, lost
 */
#include "bench_encoder.h"

#include "live/trace/sysc.h"
#include "live/trace/trace_bpf.h"
#include "live/trace/trace_bpf_lib.h"
#include "live/trace/trace_event.h"
#include "live/trace/trace_frame.h"
#include "live/trace/trace_join.h"
#include "live/trace/trace_site.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RING_LEN (16u << 20)
#define CALLS 5000

static void die(const char *what)
{
	fprintf(stderr, "bench_encoder: %s\n", what);
	exit(4);
}

/* --- the calls ----------------------------------------------------------------------------------------------------- */

static const char *const argv_of[] = {"a", "bb", "ccc", NULL}, *const envp_of[] = {"K=V", NULL};
static char image[64] = "an image";
static struct iovec local = {image, 8}, remote = {image + 32, 8};
static long out;

static void do_execve(void) { syscall(SYS_execve, "/nowhere/at/all", argv_of, envp_of); }
static void do_init_module(void) { syscall(SYS_init_module, image, 64, "param=1"); }
static void do_process_vm_writev(void) { syscall(SYS_process_vm_writev, -1, &local, 1, &remote, 1, 0); }
static void do_ptrace(void) { syscall(SYS_ptrace, 2, -1, &out, 0); }
static void do_chdir(void) { syscall(SYS_chdir, "/tmp"); }
static void do_getppid(void) { syscall(SYS_getppid); }
static void do_arch_prctl(void)
{
#ifdef SYS_arch_prctl
	syscall(SYS_arch_prctl, 0x1003, &out); /* ARCH_GET_FS */
#else
	do_getppid();
#endif
}

static void (*const calls[])(void) = {do_execve, do_init_module, do_process_vm_writev, do_ptrace, do_arch_prctl, do_chdir};
static const char *const call_names[] = {"execve", "init_module", "process_vm_writev", "ptrace", "arch_prctl", "chdir"};
#define CALL_CNT 6

/* --- programs ------------------------------------------------------------------------------------------------------ */

struct object {
	struct bpf_object *o;
	struct bpf_program *program;
	struct bpf_link *link;
	struct trace_shared *shared;
	const uint8_t *rings; /* of every CPU, ring_each bytes apart */
	size_t ring_each;
	uint32_t taken[TRACE_CPUS];
	size_t len; /* of the object file */
};

static const struct trace_bpf_lib *lib;

static struct bpf_map *map_of(struct bpf_object *o, const char *end)
{
	for (struct bpf_map *m = lib->object_next_map(o, NULL); m; m = lib->object_next_map(o, m)) {
		const char *name = lib->map_name(m);
		if (strlen(name) >= strlen(end) && !strcmp(name + strlen(name) - strlen(end), end))
			return m;
	}
	die("an object without its maps");
	return NULL;
}

/* The switch's own idea of the arguments; that some are pointers only at times it is told by the table. */
static void fill_switch(struct bench_config *b, const struct trace_config *cfg)
{
	for (int nr = 0; nr < TRACE_IDS - 1; nr++) {
		const struct sysc *s = sysc_find(TRACE_X86_64, nr);
		for (unsigned i = 0; s && i < s->nargs; i++) {
			const struct sysc_arg *a = &s->a[i];
			static const uint8_t types[SYSC_FETCH_COUNT] = {[SYSC_FETCH_STR] = BENCH_STR, [SYSC_FETCH_STRV] = BENCH_STRV,
				[SYSC_FETCH_FIXED] = BENCH_FIXED_IN, [SYSC_FETCH_BYTES] = BENCH_BYTES_IN, [SYSC_FETCH_ARRAY] = BENCH_ARRAY_IN,
				[SYSC_FETCH_SOCKADDR] = BENCH_BYTES_IN, [SYSC_FETCH_IOVEC] = BENCH_IOVEC_IN, [SYSC_FETCH_MSGHDR] = BENCH_MSGHDR};
			static const uint16_t limits[SYSC_FETCH_COUNT] = {[SYSC_FETCH_STR] = 4096, [SYSC_FETCH_STRV] = 4095, [SYSC_FETCH_BYTES] = 32,
				[SYSC_FETCH_ARRAY] = 512, [SYSC_FETCH_SOCKADDR] = 128, [SYSC_FETCH_IOVEC] = 32, [SYSC_FETCH_MSGHDR] = 32};
			static const bool has_out[BENCH_MSGHDR + 1] = {[BENCH_FIXED_IN] = true, [BENCH_BYTES_IN] = true, [BENCH_IOVEC_IN] = true};
			struct bench_arg *to = &b->calls[nr].args[i];
			*to = (struct bench_arg){.type = types[a->fetch], .partner = (uint8_t)(a->partner < 0 ? 0 : a->partner),
				.limit = a->fetch == SYSC_FETCH_FIXED ? a->size : limits[a->fetch]};
			if (a->len == SYSC_LEN_PTR)
				to->type = BENCH_SOCKADDR_OUT;
			else if (a->dir == SYSC_OUT)
				to->type = (uint8_t)(to->type + has_out[to->type]);
			for (unsigned row = 0; a->fetch == SYSC_FETCH_NONE && row < cfg->desc[0][nr].cnt; row++) {
				const struct trace_read_arg *r = &cfg->desc[0][nr].rows[row];
				if ((r->how >> 16) == i)
					*to = (struct bench_arg){.type = BENCH_ANY, .limit = r->copy};
			}
			b->calls[nr].cnt += to->type != BENCH_NONE;
		}
	}
}

static int set_rare(struct bpf_object *o, uint32_t idx, const char *name)
{
	int fd = lib->program_fd(lib->object_find_program_by_name(o, name));
	return lib->map_update_elem(lib->map_fd(lib->object_find_map_by_name(o, "rare_exit")), &idx, &fd, 0);
}

/* Loads the program of that name, with `stack` bytes of stack (-1: no ip and sp either). */
static struct object load(const void *bytes, size_t len, const char *name, int stack)
{
	struct object ob = {.len = len, .o = lib->object_open_mem(bytes, len, NULL)};
	if (!ob.o)
		die("the object cannot be opened");
	static const char *const names[] = {"trace_fork", "trace_exec", "trace_exit", "trace_rename", "trace_signal", "trace_sys_exit",
		"trace_sys_enter", "trace_after_exit", "trace_compat_exit", "trace_compat_enter", "trace_turn_exit", "trace_turn_enter",
		"trace_cgroup_mkdir", "trace_cgroup_rmdir", "trace_cgroup_attach", "trace_full_exit",
		"bench_switch", "bench_least", "bench_empty"};
	bool is_table = !strcmp(name, "trace_sys_exit");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct bpf_program *p = lib->object_find_program_by_name(ob.o, names[i]);
		if (p)
			lib->program_set_autoload(p, !strcmp(names[i], name) || (is_table && !strcmp(names[i], "trace_turn_exit")));
	}
	static struct trace_shared ids;
	size_t n;
	struct trace_config *cfg = lib->map_initial_value(map_of(ob.o, ".rodata"), &n);
	ob.ring_each = trace_plan_ring(cfg, RING_LEN);
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct bpf_map *rings = map_of(ob.o, "rings");
	lib->map_set_value_size(rings, (uint32_t)ob.ring_each);
	lib->map_set_max_entries(rings, (uint32_t)cpus);
	cfg->flags = stack >= 0 ? TRACE_WIRE_USER : 0;
	trace_plan_stack(cfg, stack > 0 ? (uint32_t)stack : 0);
	memset(&ids, 0, sizeof(ids));
	uint64_t wanted[TRACE_IDS / 64] = {0}; /* and no others, such as those that attach */
	for (int i = 0; i <= CALL_CNT; i++) {
		const char *call = i < CALL_CNT ? call_names[i] : "getppid";
		int nr = sysc_by_name(call, strlen(call))->nr[TRACE_X86_64];
		wanted[nr / 64] |= 1ull << (nr % 64);
	}
	trace_plan_fill(&(struct trace_plan){.ids = {wanted, wanted}}, cfg, &ids);
	if (!strcmp(name, "bench_switch"))
		fill_switch(lib->map_initial_value(map_of(ob.o, ".rodata.bench"), &n), cfg);
	if (lib->object_load(ob.o) < 0)
		die("the kernel does not load the programs (root is needed)");
	ob.program = lib->object_find_program_by_name(ob.o, name);
	if (is_table && (set_rare(ob.o, TRACE_RARE_TURN, "trace_turn_exit") || set_rare(ob.o, TRACE_RARE_AGAIN, name)))
		die("the programs cannot be joined");
	ob.shared = mmap(NULL, sizeof(*ob.shared), PROT_READ | PROT_WRITE, MAP_SHARED, lib->map_fd(map_of(ob.o, ".bss")), 0);
	ob.rings = mmap(NULL, (size_t)cpus * ob.ring_each, PROT_READ, MAP_SHARED, lib->map_fd(rings), 0);
	if (ob.shared == MAP_FAILED || ob.rings == MAP_FAILED)
		die("maps cannot be mapped");
	memcpy(ob.shared->exit_ids, ids.exit_ids, sizeof(ids.exit_ids));
	pid_t tid = getpid();
	ob.shared->threads[tid / 64] |= 1ull << (tid % 64);
	return ob;
}

static void attach(struct object *ob)
{
	ob->link = lib->program_attach(ob->program);
	if (!ob->link)
		die("the kernel does not attach the programs");
}

/* Detaches, and takes what is in the ring away. */
static void detach(struct object *ob)
{
	lib->link_destroy(ob->link);
	for (long i = 0; i < sysconf(_SC_NPROCESSORS_CONF); i++)
		ob->shared->cpu[i].tail = __atomic_load_n(&ob->shared->cpu[i].head, __ATOMIC_ACQUIRE) >> 32;
}

static struct bpf_prog_info info_of(const struct bpf_program *p)
{
	struct bpf_prog_info info = {0};
	union bpf_attr attr = {.info = {.bpf_fd = (uint32_t)lib->program_fd(p), .info_len = sizeof(info), .info = (uintptr_t)&info}};
	if (syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)) < 0)
		die("the kernel does not tell of programs");
	return info;
}

static unsigned memlock_of(const struct bpf_program *p)
{
	char path[64], line[128];
	unsigned n = 0;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", lib->program_fd(p));
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "memlock: %u", &n);
	if (f)
		fclose(f);
	return n;
}

static void *slurp(const char *path, size_t *ret_len)
{
	struct stat st;
	int fd = open(path, O_RDONLY);
	if (fd < 0 || fstat(fd, &st) < 0)
		die("the object of the switch is not there");
	void *p = malloc((size_t)st.st_size);
	if (!p || read(fd, p, (size_t)st.st_size) != st.st_size)
		die("the object of the switch cannot be read");
	close(fd);
	*ret_len = (size_t)st.st_size;
	return p;
}

/* --- what is measured ---------------------------------------------------------------------------------------------- */

static void sizes(struct object *ob, const char *name)
{
	struct bpf_prog_info i = info_of(ob->program);
	printf("%s %zu %u %u %u\n", name, ob->len, i.xlated_prog_len, i.jited_prog_len, memlock_of(ob->program));
}

static void encode(struct object obs[2], int rounds)
{
	union bpf_attr attr = {.enable_stats = {.type = BPF_STATS_RUN_TIME}};
	int fd = (int)syscall(SYS_bpf, BPF_ENABLE_STATS, &attr, sizeof(attr));
	if (fd < 0)
		die("the kernel keeps no statistics of programs");
	for (int r = 0; r < rounds; r++) {
		for (int c = 0; c < CALL_CNT; c++) {
			for (int v = 0; v < 2; v++) {
				struct object *ob = &obs[(v + r) % 2]; /* who is first changes */
				attach(ob);
				struct bpf_prog_info from = info_of(ob->program);
				for (int i = 0; i < CALLS; i++)
					calls[c]();
				struct bpf_prog_info to = info_of(ob->program);
				detach(ob);
				printf("%s/%s %.0f ", ob == obs ? "table" : "switch", call_names[c],
				       1000.0 * (double)(to.run_time_ns - from.run_time_ns) / (double)(to.run_cnt - from.run_cnt));
			}
		}
		printf("\n");
	}
	close(fd);
}

static double cpu_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* CPU ns per call, of the mix without execve or of a call with numbers alone. */
static double loop_ns(bool is_mix)
{
	double from = cpu_ns();
	for (int i = 0; i < CALLS; i++) {
		if (is_mix)
			calls[1 + i % 5]();
		else
			do_getppid();
	}
	return (cpu_ns() - from) / CALLS;
}

static void floors(struct object *empty, struct object least, struct object plain, struct object stack, int rounds)
{
	/* Refused: by the call's bit, by the thread's. */
	for (int r = 0; r < rounds; r++) {
		for (int is_mix = 0; is_mix < 2; is_mix++) {
			const char *kind = is_mix ? "mix" : "scalar";
			printf("%s/none %.2f ", kind, loop_ns(is_mix));
			attach(empty);
			printf("%s/empty %.2f ", kind, loop_ns(is_mix));
			detach(empty);
			attach(&least);
			printf("%s/least %.2f ", kind, loop_ns(is_mix));
			detach(&least);
			attach(&plain);
			printf("%s/plain %.2f ", kind, loop_ns(is_mix));
			detach(&plain);
			attach(&stack);
			printf("%s/stack %.2f ", kind, loop_ns(is_mix));
			detach(&stack);
			uint64_t ids[TRACE_IDS / 64];
			memcpy(ids, stack.shared->exit_ids[0], sizeof(ids));
			memset(stack.shared->exit_ids[0], 0, sizeof(ids));
			attach(&stack);
			printf("%s/by_id %.2f ", kind, loop_ns(is_mix));
			memcpy(stack.shared->exit_ids[0], ids, sizeof(ids));
			pid_t tid = getpid();
			stack.shared->threads[tid / 64] &= ~(1ull << (tid % 64));
			printf("%s/by_thread %.2f ", kind, loop_ns(is_mix));
			stack.shared->threads[tid / 64] |= 1ull << (tid % 64);
			detach(&stack);
		}
		printf("\n");
	}
}

/* Takes out time, number, CPU and what is in registers by chance. */
static void hide_chance(uint8_t *rec)
{
	struct trace_wire w;
	memcpy(&w, rec, sizeof(w));
	w = (struct trace_wire){.nr = w.nr, .kind = w.kind, .flags = w.flags, .args = {w.args[0], w.args[1]}, .ret = w.ret};
	memcpy(rec, &w, sizeof(w));
}

/* The next record in a ring, all of which are in its first turn; it is taken away. */
static size_t take_record(struct object *ob, uint8_t *ret, size_t max)
{
	for (long i = 0; i < sysconf(_SC_NPROCESSORS_CONF); i++) {
		const uint8_t *frame = ob->rings + (size_t)i * ob->ring_each + TRACE_RING_HEAD + ob->taken[i];
		if (ob->taken[i] == (uint32_t)ob->shared->cpu[i].head)
			continue;
		uint32_t len = *(const uint32_t *)frame;
		if (len > max)
			return 0;
		memcpy(ret, frame + TRACE_FRAME_LEN, len);
		ob->taken[i] += (uint32_t)trace_frame_len(len);
		hide_chance(ret);
		return len;
	}
	return 0;
}

static bool same(struct object obs[2])
{
	static uint8_t recs[2][32768];
	bool all = true;
	for (int c = 0; c < CALL_CNT; c++) {
		size_t len[2];
		for (int v = 0; v < 2; v++) {
			attach(&obs[v]);
			calls[c]();
			lib->link_destroy(obs[v].link);
			len[v] = take_record(&obs[v], recs[v], sizeof(recs[v]));
		}
		/* The stack below what was called holds the calls between. */
		const struct trace_wire_user *u = (const struct trace_wire_user *)(recs[0] + sizeof(struct trace_wire));
		size_t fixed = sizeof(struct trace_wire), args = fixed + sizeof(*u) + u->area_len;
		bool is_same = len[0] && len[0] == len[1] && !memcmp(recs[0], recs[1], fixed) &&
			       !memcmp(recs[0] + args, recs[1] + args, len[0] - args);
		printf("%s %zu bytes: %s\n", call_names[c], len[0], is_same ? "the same" : "NOT the same");
		all = all && is_same;
	}
	return all;
}

/* --- loss ---------------------------------------------------------------------------------------------------------- */

static bool sink(void *ctx, const struct trace_event *ev)
{
	return true;
}

static struct err *join_chunk(void *ctx, const uint8_t *chunk, size_t len)
{
	bool more;
	return trace_join_chunk(ctx, chunk, len, &more);
}

static void check(struct err *e)
{
	if (e)
		die(e->text);
}

/* A child that waits until it is recorded; true in the child. */
static bool hold(struct trace_bpf *t, pid_t *ret_pid)
{
	int go[2];
	char byte;
	if (pipe2(go, O_CLOEXEC) || (*ret_pid = fork()) < 0)
		die("no process");
	if (!*ret_pid) {
		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		return true;
	}
	check(trace_bpf_add(t, *ret_pid));
	if (write(go[1], "", 1) != 1)
		die("the subject is gone");
	close(go[0]);
	close(go[1]);
	return false;
}

/* Reads until the child has ended and nothing is left. */
static void follow(struct trace_bpf *t, struct trace_join *j, pid_t pid)
{
	bool any = true, is_over = false;
	while (any || !is_over) {
		trace_bpf_wait(t, 2);
		is_over = is_over || waitpid(pid, NULL, WNOHANG) == pid;
		do
			check(trace_bpf_drain(t, join_chunk, j, &any));
		while (any);
	}
	trace_bpf_stop(t);
	check(trace_bpf_drain(t, join_chunk, j, &any));
}

struct found {
	struct trace_sites *sites;
	unsigned long all, found;
	double ns;
};

static bool find_site(void *ctx, const struct trace_event *ev)
{
	struct found *f = ctx;
	struct trace_frame frames[TRACE_FRAMES_MAX];
	trace_sites_event(f->sites, ev);
	if (ev->kind != TRACE_SYSCALL || ev->unfinished)
		return true;
	double from = cpu_ns();
	size_t cnt = trace_sites_frames(f->sites, ev, frames, TRACE_FRAMES_MAX);
	f->ns += cpu_ns() - from;
	bool is_found = false;
	for (size_t i = 0; i < cnt; i++)
		is_found = is_found || (frames[i].module && !strstr(frames[i].module, "/libc.so"));
	f->all++;
	f->found += is_found;
	return true;
}

static void sites(uint32_t stack_len, char **cmd)
{
	struct trace_bpf *t;
	struct trace_bpf_options opt = {.scope = {.own = true, .tree = true}, .with_site = true, .stack_len = stack_len, .plan = {.with_maps = true},
		.ring_len = 128u << 20};
	struct found f = {.sites = trace_sites_new(true)};
	check(trace_bpf_open(&opt, &t));
	struct trace_join *j = trace_join_new(find_site, &f);
	pid_t pid;
	if (!j || !f.sites)
		die("no memory");
	if (hold(t, &pid)) {
		int null = open("/dev/null", O_RDWR);
		dup2(null, 1);
		dup2(null, 2);
		execvp(cmd[0], cmd);
		_exit(127);
	}
	follow(t, j, pid);
	printf("%lu %lu %.0f\n", f.all, f.found, f.all ? f.ns / (double)f.all : 0);
	trace_join_free(j);
	trace_sites_free(f.sites);
	trace_bpf_close(t);
}

static double now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void loss(long events, uint32_t ring_len, double rate)
{
	struct trace_bpf *t;
	struct trace_bpf_options opt = {.scope = {.own = true}, .ring_len = ring_len};
	check(trace_bpf_open(&opt, &t));
	struct trace_join *j = trace_join_new(sink, NULL);
	double *took = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;
	if (!j || took == MAP_FAILED)
		die("no memory");
	if (hold(t, &pid)) {
		double from = now();
		for (long i = 0; i < events; i++) {
			do_getppid();
			while (rate > 0 && i % 64 == 0 && now() < from + (double)i / rate)
				;
		}
		*took = now() - from;
		_exit(0);
	}
	follow(t, j, pid);
	size_t cnt;
	uint64_t seen = 0;
	const struct trace_cpu *cpus = trace_bpf_cpus(t, &cnt);
	for (size_t i = 0; i < cnt; i++)
		seen += cpus[i].seen;
	trace_join_end(j, cpus, cnt);
	struct trace_totals totals = trace_join_totals(j);
	printf("%.0f %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", (double)events / *took, seen, totals.received, totals.lost);
	trace_join_free(j);
	trace_bpf_close(t);
}

int main(int argc, char **argv)
{
	size_t table_len, switch_len;
	const void *table = trace_bpf_object(TRACE_HOOK_BTF, &table_len);
	struct err *e = trace_bpf_lib(&lib);
	if (argc < 3 || !table || e)
		die("built without eBPF, or used the wrong way");
	void *bytes = slurp(argv[1], &switch_len);
	int rounds = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 1;
	if (!strcmp(argv[2], "sites") && argc > 4) {
		sites((uint32_t)rounds, argv + 4);
		return 0;
	}
	if (!strcmp(argv[2], "loss") && argc > 5) {
		loss(strtol(argv[3], NULL, 10), (uint32_t)strtol(argv[4], NULL, 10), strtod(argv[5], NULL));
		return 0;
	}
	struct object obs[2] = {load(table, table_len, "trace_sys_exit", 256), load(bytes, switch_len, "bench_switch", 256)};
	struct object empty = load(bytes, switch_len, "bench_empty", -1);
	if (!strcmp(argv[2], "sizes")) {
		sizes(&obs[0], "table");
		sizes(&obs[1], "switch");
	} else if (!strcmp(argv[2], "encode")) {
		encode(obs, rounds);
	} else if (!strcmp(argv[2], "same")) {
		return !same(obs);
	} else if (!strcmp(argv[2], "floor")) {
		floors(&empty, load(bytes, switch_len, "bench_least", -1), load(table, table_len, "trace_sys_exit", -1), obs[0], rounds);
	}
	return 0;
}
