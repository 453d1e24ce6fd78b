/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a probe costs the program it is on, beside the least the kernel charges: programs that only count, attached by bare calls.
 *   bench-probe hit CALLS ROUNDS      ns of the caller's CPU for a call, probed on entry and return with two arguments, each way once a round
 *   bench-probe attach POINTS ROUNDS  us to attach to so many functions of a file, beside bare calls with a program that counts: medians of the
 *                                     rounds, each begun when the kernel rests (its lock for probes waits for every processor the first time
 *                                     after a pause), and once more right after another probe was attached
 *   bench-probe loop CALLS            calls and prints ns for each: to be probed by others
 * One line of JSON; bench_probe.py runs it and knows the bars.
 */
#include "live/trace/probe_int.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Found by its name from outside. */
long bench_target(const char *s, long n);
__attribute__((noipa)) long bench_target(const char *s, long n)
{
	return n + (s != NULL);
}

#define ONE(n) static __attribute__((noipa)) int bench_many_##n(int a) { return a + n; }
#define TEN(n) ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) ONE(n##6) ONE(n##7) ONE(n##8) ONE(n##9)
#define HUNDRED(n) TEN(n##0) TEN(n##1) TEN(n##2) TEN(n##3) TEN(n##4) TEN(n##5) TEN(n##6) TEN(n##7) TEN(n##8) TEN(n##9)
HUNDRED(1) HUNDRED(2) HUNDRED(3) HUNDRED(4) HUNDRED(5) HUNDRED(6) HUNDRED(7) HUNDRED(8) HUNDRED(9)
HUNDRED(10)

#define AT(n) bench_many_##n,
#define AT_TEN(n) AT(n##0) AT(n##1) AT(n##2) AT(n##3) AT(n##4) AT(n##5) AT(n##6) AT(n##7) AT(n##8) AT(n##9)
#define AT_HUNDRED(n) \
	AT_TEN(n##0) AT_TEN(n##1) AT_TEN(n##2) AT_TEN(n##3) AT_TEN(n##4) AT_TEN(n##5) AT_TEN(n##6) AT_TEN(n##7) AT_TEN(n##8) AT_TEN(n##9)
static int (*const many[])(int) = {AT_HUNDRED(1) AT_HUNDRED(2) AT_HUNDRED(3) AT_HUNDRED(4) AT_HUNDRED(5) AT_HUNDRED(6) AT_HUNDRED(7) AT_HUNDRED(8)
				   AT_HUNDRED(9) AT_HUNDRED(10)};

static void die(const char *what)
{
	fprintf(stderr, "bench-probe: %s: %s\n", what, strerror(errno));
	exit(errno == EPERM || errno == EACCES ? 4 : 1);
}

static uint64_t now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Where a function of this program is in its file. */
static uint64_t off_of(const void *f)
{
	unsigned long long from, to, off;
	char perm[8], line[4352];
	FILE *m = fopen("/proc/self/maps", "re");
	while (m && fgets(line, sizeof(line), m)) {
		if (sscanf(line, "%llx-%llx %7s %llx", &from, &to, perm, &off) == 4 && (uintptr_t)f >= from && (uintptr_t)f < to) {
			fclose(m);
			return (uintptr_t)f - from + off;
		}
	}
	die("no mapping");
	return 0;
}

/* --- bare calls ------------------------------------------------------------------------------------------------- */
static int sys_bpf(int cmd, void *attr, size_t len)
{
	return (int)syscall(SYS_bpf, cmd, attr, len);
}

/* A program that adds one to a word of the map, as a count does. */
static int count_program(int map, uint32_t attach)
{
	struct probe_asm a = {0};
	uint32_t end = probe_asm_label(&a);
	probe_store_imm(&a, BPF_W, BPF_REG_10, -4, 0);
	probe_mov(&a, BPF_REG_2, BPF_REG_10);
	probe_alu_imm(&a, BPF_ADD, BPF_REG_2, -4);
	probe_imm64(&a, BPF_REG_1, BPF_PSEUDO_MAP_FD, (uint32_t)map);
	probe_helper(&a, BPF_FUNC_map_lookup_elem);
	probe_jump_if_imm(&a, BPF_JEQ, BPF_REG_0, 0, end);
	probe_mov_imm(&a, BPF_REG_1, 1);
	probe_atomic(&a, BPF_ADD, BPF_REG_0, 0, BPF_REG_1);
	probe_asm_bind(&a, end);
	probe_mov_imm(&a, BPF_REG_0, 0);
	probe_exit(&a);
	union bpf_attr attr = {0};
	attr.prog_type = BPF_PROG_TYPE_KPROBE;
	attr.insns = (uintptr_t)a.code.data;
	attr.insn_cnt = (uint32_t)a.code.cnt;
	attr.license = (uintptr_t)"GPL";
	attr.expected_attach_type = attach;
	int fd = probe_asm_finish(&a) ? sys_bpf(BPF_PROG_LOAD, &attr, sizeof(attr)) : -1;
	if (fd < 0)
		die("a program that counts");
	probe_asm_fini(&a);
	return fd;
}

static int count_map(void)
{
	union bpf_attr attr = {0};
	attr.map_type = BPF_MAP_TYPE_PERCPU_ARRAY;
	attr.key_size = 4;
	attr.value_size = 8;
	attr.max_entries = 1;
	int fd = sys_bpf(BPF_MAP_CREATE, &attr, sizeof(attr));
	if (fd < 0)
		die("a map");
	return fd;
}

static int perf_link(int prog, uint64_t off, bool is_return)
{
	struct perf_event_attr ev = {.size = sizeof(ev), .config = is_return};
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	if (!f || fscanf(f, "%u", &ev.type) != 1)
		die("uprobe events");
	fclose(f);
	ev.uprobe_path = (uintptr_t)"/proc/self/exe";
	ev.probe_offset = off;
	int fd = (int)syscall(SYS_perf_event_open, &ev, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	union bpf_attr attr = {0};
	attr.link_create.prog_fd = (uint32_t)prog;
	attr.link_create.target_fd = (uint32_t)fd;
	attr.link_create.attach_type = BPF_PERF_EVENT;
	if (fd < 0 || sys_bpf(BPF_LINK_CREATE, &attr, sizeof(attr)) < 0)
		die("a perf event");
	return fd;
}

/* --- hits --------------------------------------------------------------------------------------------------------- */
static double loop(uint64_t calls)
{
	uint64_t t = now(CLOCK_THREAD_CPUTIME_ID);
	long sum = 0;
	for (uint64_t i = 0; i < calls; i++)
		sum += bench_target("bench", (long)i);
	t = now(CLOCK_THREAD_CPUTIME_ID) - t;
	return (double)t / (double)calls + (sum == 1);
}

static const struct probe_arg two[] = {{.from = PROBE_REG, .at = 14, .size = 8}, {.from = PROBE_REG, .at = 13, .size = 8}};

static bool ignore(void *ctx, const struct probe_hit *h)
{
	++*(uint64_t *)ctx;
	return h != NULL;
}

/* In a process of its own each time, so that nothing of one is left for the other: kind 0 without, 1 bare, 2 probes with records, 3 counting. */
static double run_kind(int kind, uint64_t calls)
{
	int p[2];
	double ns = 0;
	if (pipe(p))
		die("pipe");
	pid_t child = fork();
	if (child == 0) {
		struct probe_set *s = NULL;
		uint64_t got = 0, n;
		if (kind == 1) {
			int map = count_map();
			perf_link(count_program(map, 0), off_of((const void *)bench_target), false);
			perf_link(count_program(map, 0), off_of((const void *)bench_target), true);
		} else if (kind) {
			struct probe_kind k = {.args = two, .arg_cnt = 2, .ret = {.size = 8}, .is_func = true, .has_return = true};
			struct probe_point pt = {.off = off_of((const void *)bench_target)};
			struct probe_opts o = {.path = "/proc/self/exe", .points = &pt, .kinds = &k, .point_cnt = 1, .kind_cnt = 1,
					       .count_only = kind == 3};
			struct err *e = probe_open(&o, &s);
			if (e) {
				fprintf(stderr, "bench-probe: %s\n", e->text);
				_exit(1);
			}
		}
		loop(1000);
		ns = loop(calls);
		if (s && probe_drain(s, ignore, &got, &n))
			_exit(1);
		struct probe_totals t = {0};
		if (s)
			probe_get_totals(s, &t);
		if ((kind == 2 && (t.lost || got != 2 * (calls + 1000))) || write(p[1], &ns, sizeof(ns)) != sizeof(ns))
			_exit(1);
		_exit(0);
	}
	close(p[1]);
	if (read(p[0], &ns, sizeof(ns)) != sizeof(ns))
		die("a run failed");
	close(p[0]);
	waitpid(child, NULL, 0);
	return ns;
}

/* --- attaching ----------------------------------------------------------------------------------------------------- */

/* As probe.c: attr.link_create of Linux 6.6. */
struct multi { uint32_t prog, target, type, flags; uint64_t path, offs, refs, cookies; uint32_t cnt, how, pid, pad; };

/* The kernel's lock for writing probes is given up some time after the last one. */
static void rest(bool is_warm)
{
	static int prog = -1;
	if (prog < 0)
		prog = count_program(count_map(), PROBE_ATTACH_UPROBE_MULTI);
	usleep(100000);
	/* Waking up is in step with the kernel's clock, and how long it waits then, too. */
	for (uint64_t end = now(CLOCK_MONOTONIC) + (uint64_t)rand() % 20000000; now(CLOCK_MONOTONIC) < end;)
		;
	if (!is_warm)
		return;
	uint64_t off = off_of((const void *)bench_target);
	struct multi a = {.prog = (uint32_t)prog, .type = PROBE_ATTACH_UPROBE_MULTI, .path = (uintptr_t)"/proc/self/exe", .offs = (uintptr_t)&off,
			  .cnt = 1};
	static int link = -1;
	if (link >= 0)
		close(link);
	usleep(100000);
	link = sys_bpf(BPF_LINK_CREATE, &a, sizeof(a));
	if (link < 0)
		die("uprobe-multi");
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static double median(double *v, uint64_t cnt)
{
	qsort(v, cnt, sizeof(*v), compare);
	return cnt % 2 ? v[cnt / 2] : (v[cnt / 2 - 1] + v[cnt / 2]) / 2;
}

static double attach_bare(const uint64_t *offs, uint32_t cnt)
{
	int map = count_map(), progs[2], links[2];
	uint64_t t = now(CLOCK_MONOTONIC);
	for (int half = 0; half < 2; half++) {
		progs[half] = count_program(map, PROBE_ATTACH_UPROBE_MULTI);
		struct multi a = {.prog = (uint32_t)progs[half], .type = PROBE_ATTACH_UPROBE_MULTI, .path = (uintptr_t)"/proc/self/exe",
				  .offs = (uintptr_t)offs, .cnt = cnt, .how = half ? PROBE_UPROBE_MULTI_RETURN : 0};
		links[half] = sys_bpf(BPF_LINK_CREATE, &a, sizeof(a));
		if (links[half] < 0)
			die("uprobe-multi");
	}
	t = now(CLOCK_MONOTONIC) - t;
	for (int half = 0; half < 2; half++) {
		close(links[half]);
		close(progs[half]);
	}
	close(map);
	return (double)t / 1000;
}

static double attach_ours(const uint64_t *offs, uint32_t cnt)
{
	struct probe_kind kinds[8];
	struct probe_arg args[8][6];
	struct probe_point *pts = calloc(cnt, sizeof(*pts));
	struct probe_set *s = NULL;
	/* Strings in any of three arguments. */
	for (uint32_t k = 0; k < 8; k++) {
		for (uint32_t i = 0; i < 6; i++)
			args[k][i] = (struct probe_arg){.from = PROBE_REG, .at = (uint16_t)(14 - i), .size = 8,
							.fetch = i < 3 && k >> i & 1 ? PROBE_STRING : PROBE_VALUE, .len = 128};
		kinds[k] = (struct probe_kind){.args = args[k], .arg_cnt = 6, .ret = {.size = 8}, .is_func = true, .has_return = true};
	}
	for (uint32_t i = 0; i < cnt; i++)
		pts[i] = (struct probe_point){.off = offs[i], .kind = i % 8};
	struct probe_opts o = {.path = "/proc/self/exe", .points = pts, .kinds = kinds, .point_cnt = cnt, .kind_cnt = 8};
	uint64_t t = now(CLOCK_MONOTONIC);
	struct err *e = probe_open(&o, &s);
	t = now(CLOCK_MONOTONIC) - t;
	if (e) {
		fprintf(stderr, "bench-probe: %s\n", e->text);
		exit(e->kind == ERR_ENV ? 4 : 1);
	}
	probe_close(s);
	free(pts);
	return (double)t / 1000;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "";
	uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 0, rounds = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
	if (!strcmp(mode, "loop")) {
		loop(1000);
		printf("{\"ns\":%.1f}\n", loop(n));
	} else if (!strcmp(mode, "hit")) {
		double best[4] = {1e18, 1e18, 1e18, 1e18};
		for (uint64_t r = 0; r < rounds; r++) {
			for (int k = 0; k < 4; k++)
				best[k] = MIN(best[k], run_kind(k, n));
		}
		printf("{\"without\":%.1f,\"bare\":%.1f,\"records\":%.1f,\"counts\":%.1f}\n", best[0], best[1], best[2], best[3]);
	} else if (!strcmp(mode, "attach")) {
		uint32_t cnt = (uint32_t)MIN(n, ARRAY_LEN(many));
		uint64_t *offs = calloc(cnt ? cnt : 1, sizeof(*offs));
		uint64_t base = off_of((const void *)many[0]);
		enum { ROUNDS_MAX = 1000 };
		static double us[2][2][ROUNDS_MAX]; /* warm, ours */
		rounds = MAX(MIN(rounds, ROUNDS_MAX), 1);
		for (uint32_t i = 0; i < cnt; i++)
			offs[i] = base + ((uintptr_t)many[i] - (uintptr_t)many[0]);
		for (uint64_t r = 0; r < 4 * rounds; r++) {
			bool is_warm = r & 1, is_ours = r & 2;
			rest(is_warm);
			us[is_warm][is_ours][r / 4] = is_ours ? attach_ours(offs, cnt) : attach_bare(offs, cnt);
		}
		printf("{\"points\":%u,\"bare_us\":%.0f,\"ours_us\":%.0f,", cnt, median(us[0][0], rounds), median(us[0][1], rounds));
		printf("\"warm_bare_us\":%.0f,\"warm_ours_us\":%.0f}\n", median(us[1][0], rounds), median(us[1][1], rounds));
		free(offs);
	} else {
		fprintf(stderr, "usage: bench-probe hit|attach|loop N [ROUNDS]\n");
		return 2;
	}
	return 0;
}
