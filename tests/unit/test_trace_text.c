/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines and JSON of made-up events: what strace would show of the same call, what is missing or cut or unreadable, descriptors from
 * events alone, the summary, structs out of BTF.
 */
#include "live/trace/sysc.h"
#include "live/trace/trace_btf.h"
#include "live/trace/trace_count.h"
#include "live/trace/trace_fds.h"
#include "live/trace/trace_json.h"
#include "live/trace/trace_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#define IN(n, text) {.arg = n, .phase = TRACE_IN, .len = sizeof(text) - 1, .data = (const uint8_t *)(text)}
#define OUT(n, text) {.arg = n, .phase = TRACE_OUT, .len = sizeof(text) - 1, .data = (const uint8_t *)(text)}
#define CUT(n, text) {.arg = n, .phase = TRACE_IN, .status = TRACE_TRUNCATED, .len = sizeof(text) - 1, .data = (const uint8_t *)(text)}
#define BAD(n) {.arg = n, .phase = TRACE_IN, .status = TRACE_FAULTED, .data = (const uint8_t *)""}

struct sample {
	const char *line;
	int nr;
	int64_t ret;
	uint64_t args[6];
	struct trace_slot slots[4];
};

/* Numbers are those of x86-64. */
static const struct sample samples[] = {
	{"openat(AT_FDCWD, \"/etc/passwd\", O_RDONLY|O_CLOEXEC) = 3", 257, 3, {0xffffffffffffff9c, 0x1000, 02000000}, {IN(1, "/etc/passwd\0")}},
	{"openat(AT_FDCWD, \"a\", O_WRONLY|O_CREAT|O_TRUNC, 0644) = -1 EACCES (Permission denied)", 257, -13,
	 {0xffffff9c, 0x1000, 01101, 0644}, {IN(1, "a\0")}},
	/* Not read at all, not readable, cut: never as if it were empty. */
	{"openat(5, 0x1000, O_RDONLY) = 3", 257, 3, {5, 0x1000}, {{0}}},
	{"openat(5, 0x1000 /* unreadable */, O_RDONLY) = 3", 257, 3, {5, 0x1000}, {BAD(1)}},
	{"openat(5, \"/long\"..., O_RDONLY) = 3", 257, 3, {5, 0x1000}, {CUT(1, "/long")}},
	{"openat(5, NULL, O_RDONLY) = -1 EFAULT (Bad address)", 257, -14, {5, 0}, {{0}}},
	{"write(1, \"a\\0b\\1779\\\"\\\\\\n\\t\\33\", 10) = 10", 1, 10, {1, 0x1000, 10}, {IN(1, "a\0b\1779\"\\\n\t\33")}},
	{"write(1, \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"..., 33) = 33", 1, 33, {1, 0x1000, 33}, {IN(1, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")}},
	/* Out of a failed call nothing was written. */
	{"read(3, \"ab\", 100) = 2", 0, 2, {3, 0x1000, 100}, {OUT(1, "abcd")}},
	{"read(3, 0x1000, 100) = -1 EAGAIN (Resource temporarily unavailable)", 0, -11, {3, 0x1000, 100}, {{0}}},
	{"read(3, 0x1000, 100) = ? ERESTARTSYS", 0, -512, {3, 0x1000, 100}, {{0}}},
	{"mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f0000000000", 9, 0x7f0000000000,
	 {0, 4096, 3, 0x22, UINT64_MAX, 0}, {{0}}},
	{"mprotect(0x1000, 4096, PROT_NONE) = 0", 10, 0, {0x1000, 4096, 0}, {{0}}},
	{"fcntl(3, F_GETFL) = 0x8002 (flags O_RDWR|O_LARGEFILE)", 72, 0x8002, {3, 3}, {{0}}},
	{"fcntl(3, F_SETFD, FD_CLOEXEC) = 0", 72, 0, {3, 2, 1}, {{0}}},
	{"kill(-5, SIGRT_3) = 0", 62, 0, {(uint64_t)-5, 35}, {{0}}},
	{"futex(0x1000, FUTEX_WAKE_PRIVATE, 1) = 0", 202, 0, {0x1000, 129, 1}, {{0}}},
	{"umask(022) = 077", 95, 077, {022}, {{0}}},
	{"connect(3, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\"127.0.0.1\")}, 16) = 0", 42, 0, {3, 0x1000, 16},
	 {IN(1, "\2\0\0\120\177\0\0\1\0\0\0\0\0\0\0\0")}},
	{"connect(3, {sa_family=AF_UNIX, sun_path=@\"x\"}, 4) = 0", 42, 0, {3, 0x1000, 4}, {IN(1, "\1\0\0x")}},
	{"accept(3, {sa_family=AF_UNIX}, [110 => 2]) = 4", 43, 4, {3, 0x1000, 0x2000},
	 {IN(2, "\156\0\0\0"), OUT(1, "\1\0"), OUT(2, "\2\0\0\0")}},
	{"wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 3}], WNOHANG, NULL) = 7", 61, 7, {UINT64_MAX, 0x1000, 1, 0}, {OUT(1, "\0\3\0\0")}},
	{"pipe2([3, 4], O_CLOEXEC) = 0", 293, 0, {0x1000, 02000000}, {OUT(0, "\3\0\0\0\4\0\0\0")}},
	{"execve(\"/bin/x\", [\"x\", \"\"], 0x3000 /* 1 var */) = 0", 59, 0, {0x1000, 0x2000, 0x3000},
	 {IN(0, "/bin/x\0"), IN(1, "x\0\0"), IN(2, "A=1\0")}},
	{"execve(\"/bin/x\", [\"x\", ...], 0x3000 /* at least 1 var */) = 0", 59, 0, {0x1000, 0x2000, 0x3000},
	 {IN(0, "/bin/x\0"), CUT(1, "x\0"), CUT(2, "A=1\0")}},
	{"rt_sigprocmask(SIG_BLOCK, ~[RTMIN RT_1], [CHLD], 8) = 0", 14, 0, {0, 0x1000, 0x2000, 8},
	 {IN(1, "\377\377\377\177\376\377\377\377"), OUT(2, "\0\0\1\0\0\0\0\0")}},
	{"nanosleep({tv_sec=1, tv_nsec=0}, NULL) = 0", 35, 0, {0x1000, 0}, {IN(0, "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")}},
	{"poll([{fd=0, events=POLLIN}], 1, -1) = 1 ([{fd=0, revents=POLLIN|POLLHUP}])", 7, 1, {0x1000, 1, 0xffffffff},
	 {IN(0, "\0\0\0\0\1\0\0\0"), OUT(0, "\0\0\0\0\1\0\21\0")}},
	/* Read when the call had ended, its events are what they were. */
	{"poll([{fd=0, events=POLLIN}], 1, -1) = 1 ([{fd=0, revents=POLLIN|POLLHUP}])", 7, 1, {0x1000, 1, 0xffffffff},
	 {OUT(0, "\0\0\0\0\1\0\21\0")}},
	{"clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD, child_tidptr=0x5000) = 9", 56, 9, {0x200011, 0, 0, 0x5000}, {{0}}},
	{"ioctl(1, TIOCGWINSZ, {ws_row=24, ws_col=80, ws_xpixel=0, ws_ypixel=0}) = 0", 16, 0, {1, 0x5413, 0x1000},
	 {OUT(2, "\30\0\120\0\0\0\0\0")}},
	{"ioctl(1, _IOC(_IOC_NONE, 0x12, 0x34, 0), 0x5) = -1 ENOTTY (Inappropriate ioctl for device)", 16, -25, {1, 0x1234, 5}, {{0}}},
	{"mknod(\"/n\", S_IFCHR|0600, makedev(0x1, 0x3)) = 0", 133, 0, {0x1000, 020600, 0x103}, {IN(0, "/n\0")}},
	{"socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC, IPPROTO_TCP) = 3", 41, 3, {2, 02000001, 6}, {{0}}},
	{"exit_group(3) = ?", 231, 0, {3}, {{0}}},
	{"syscall_0x270f(0x1, 0x2, 0, 0, 0, 0) = -1 ENOSYS (Function not implemented)", 9999, -38, {1, 2}, {{0}}},
};

static struct trace_event event_of(const struct sample *s)
{
	struct trace_event ev = {.kind = TRACE_SYSCALL, .pid = 7, .tid = 7, .nr = s->nr, .ret = s->ret, .slots = s->slots, .time = 5};
	memcpy(ev.args, s->args, sizeof(ev.args));
	while (ev.nslots < 4 && s->slots[ev.nslots].data)
		ev.nslots++;
	return ev;
}

static void test_lines(void **state)
{
	const struct trace_text_opts o = {0};
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		struct trace_event ev = event_of(&samples[i]);
		struct buf out = {0};
		trace_text_event(&ev, &o, &out);
		assert_int_equal(out.data[out.len - 1], '\n');
		out.data[out.len - 1] = 0;
		/* The column of the result is a matter of looks. */
		char line[256], *gap = strstr(out.data, ")  ");
		assert_true(out.len < sizeof(line));
		if (gap)
			snprintf(line, sizeof(line), "%.*s)%s", (int)(gap - out.data), out.data, gap + strspn(gap + 1, " "));
		else
			snprintf(line, sizeof(line), "%s", out.data);
		assert_true(!gap || gap + 1 + strspn(gap + 1, " ") - out.data == 34);
		assert_string_equal(line, samples[i].line);
		buf_fini(&out);
	}
}

/* A read that was not whole says so in JSON, too. */
static void test_json(void **state)
{
	const struct trace_text_opts o = {.string_max = 32};
	struct trace_event ev = event_of(&samples[0]);
	struct buf out = {0};
	ev.comm = "x\"y";
	ev.seq = 3;
	ev.ns = 100;
	ev.ip = 0x401000;
	trace_json_event(&ev, &o, NULL, 0, &out);
	buf_add_ch(&out, 0);
	assert_string_equal(out.data,
		"{\"v\":1,\"phase\":\"complete\",\"seq\":3,\"cpu\":0,\"time\":\"0x5\",\"pid\":7,\"tid\":7,\"ppid\":null,"
		"\"comm\":\"x\\\"y\",\"exe\":null,"
		"\"container\":null,\"event\":\"syscall\",\"name\":\"openat\",\"abi\":\"x86_64\",\"nr\":257,\"args\":["
		"{\"name\":\"dfd\",\"type\":\"dirfd\",\"value\":\"0xffffffffffffff9c\",\"text\":\"AT_FDCWD\",\"status\":\"ok\"},"
		"{\"name\":\"filename\",\"type\":\"path\",\"value\":\"0x1000\",\"text\":\"/etc/passwd\",\"status\":\"ok\"},"
		"{\"name\":\"flags\",\"type\":\"flags\",\"value\":\"0x80000\",\"text\":\"O_RDONLY|O_CLOEXEC\",\"status\":\"ok\"}],"
		"\"ret\":\"0x3\",\"errno\":null,\"ns\":100,\"site\":{\"ip\":\"0x401000\"},\"stack\":[]}");
	out.len = 0;
	struct trace_slot cut = CUT(1, "/lo\377");
	ev.slots = &cut;
	ev.nslots = 1;
	ev.unfinished = true;
	trace_json_event(&ev, &o, &(struct trace_frame_text){.module = "/bin/x", .offset = 0x10, .func = "main"}, 1, &out);
	buf_add_ch(&out, 0);
	assert_non_null(strstr(out.data, "\"phase\":\"unfinished\""));
	assert_non_null(strstr(out.data, "\"bytes\":\"2f6c6fff\",\"status\":\"truncated\"}"));
	assert_non_null(strstr(out.data, "\"ret\":null"));
	assert_non_null(strstr(out.data, "\"site\":{\"module\":\"/bin/x\",\"build_id\":null,\"offset\":\"0x10\",\"func\":\"main\",\"line\":null}"));
	buf_fini(&out);
}

/* What has not come back has no result, whatever stands in the register. */
static void test_unfinished(void **state)
{
	static const char *const want[] = {"exit_group(3)                     = ?\n", "read(3, 0x1000, 10 <unfinished ...>\n"};
	const struct trace_event evs[] = {{.kind = TRACE_SYSCALL, .unfinished = true, .nr = 231, .ret = -38, .args = {3}},
					  {.kind = TRACE_SYSCALL, .unfinished = true, .nr = 0, .ret = -38, .args = {3, 0x1000, 10}}};
	for (size_t i = 0; i < 2; i++) {
		struct buf out = {0};
		trace_text_event(&evs[i], &(struct trace_text_opts){0}, &out);
		buf_add_ch(&out, 0);
		assert_string_equal(out.data, want[i]);
		buf_fini(&out);
	}
}

static void test_other_events(void **state)
{
	const struct trace_text_opts o = {.has_pid = true};
	static const struct {
		const char *line;
		struct trace_event ev;
	} rows[] = {
		{"[pid     7] +++ exited with 3 +++\n", {.kind = TRACE_EXIT, .tid = 7, .ret = 3 << 8}},
		{"[pid     7] +++ killed by SIGSEGV (core dumped) +++\n", {.kind = TRACE_EXIT, .tid = 7, .ret = 0x8b}},
		{"[pid     7] --- SIGINT {si_signo=SIGINT, si_code=SI_USER, si_pid=0, ...} ---\n", {.kind = TRACE_SIGNAL, .tid = 7, .args = {2}}},
		{"[pid     7] *** lost 12 events of cpu 1 (ring_full) ***\n", {.kind = TRACE_LOST, .tid = 7, .cpu = 1, .lost = {.count = 12}}},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf out = {0};
		trace_text_event(&rows[i].ev, &o, &out);
		buf_add_ch(&out, 0);
		assert_string_equal(out.data, rows[i].line);
		buf_fini(&out);
	}
}

static void expect_path(struct trace_fds *f, uint32_t pid, int fd, const char *want)
{
	struct buf out = {0};
	bool found = trace_fds_path(f, pid, fd, &out);
	buf_add_ch(&out, 0);
	assert_int_equal(found, want != NULL);
	assert_string_equal(out.data, want ? want : "");
	buf_fini(&out);
}

static void feed(struct trace_fds *f, uint32_t pid, int nr, int64_t ret, uint64_t a0, uint64_t a1, const char *path, unsigned path_arg)
{
	struct trace_slot slot = {.arg = (uint8_t)path_arg, .len = path ? (uint32_t)strlen(path) + 1 : 0, .data = (const uint8_t *)path};
	struct trace_event ev = {.kind = TRACE_SYSCALL, .pid = pid, .tid = pid, .nr = nr, .ret = ret, .args = {a0, a1}, .slots = &slot,
				 .nslots = path != NULL};
	trace_fds_event(f, &ev);
}

static void test_fds(void **state)
{
	struct trace_fds *f = trace_fds_new(false);
	expect_path(f, 1, 3, NULL);
	feed(f, 1, SYS_chdir, 0, 0x10, 0, "/home//x/../y/.", 0);
	expect_path(f, 1, -100, "/home/y");
	feed(f, 1, SYS_openat, 3, (uint64_t)-100, 0x10, "a/../b", 1);
	expect_path(f, 1, 3, "/home/y/b");
	feed(f, 1, SYS_openat, -2, (uint64_t)-100, 0x10, "no", 1); /* failed: nothing was opened */
	feed(f, 1, SYS_openat, 4, 3, 0x10, "c", 1);
	expect_path(f, 1, 4, "/home/y/b/c");
	feed(f, 1, SYS_dup2, 9, 3, 9, NULL, 0);
	expect_path(f, 1, 9, "/home/y/b");
	/* A child has its parent's, until it closes them itself. */
	struct trace_event fork_ev = {.kind = TRACE_FORK, .pid = 1, .tid = 1, .ret = 2, .args = {0, 2}};
	trace_fds_event(f, &fork_ev);
	expect_path(f, 2, 9, "/home/y/b");
	expect_path(f, 2, -100, "/home/y");
	feed(f, 2, SYS_close, 0, 9, 0, NULL, 0);
	expect_path(f, 2, 9, NULL);
	expect_path(f, 1, 9, "/home/y/b");
	/* What is opened on something without a path is not known, not what was there before. */
	feed(f, 1, SYS_socket, 9, 2, 1, NULL, 0);
	expect_path(f, 1, 9, NULL);
	/* More than there is place for: what is said is right or nothing. */
	for (int i = 0; i < 40000; i++) {
		char path[32];
		snprintf(path, sizeof(path), "/f%d", i);
		feed(f, 5, SYS_openat, i, (uint64_t)-100, 0x10, path, 1);
	}
	size_t known = 0;
	for (int i = 0; i < 40000; i++) {
		char want[32];
		struct buf out = {0};
		snprintf(want, sizeof(want), "/f%d", i);
		if (trace_fds_path(f, 5, i, &out)) {
			assert_int_equal(out.len, strlen(want));
			assert_memory_equal(out.data, want, out.len);
			known++;
		}
		buf_fini(&out);
	}
	assert_true(known > 10000);
	trace_fds_free(f);
}

static void test_counts(void **state)
{
	struct trace_counts *c = trace_counts_new();
	for (int i = 0; i < 300; i++) {
		struct trace_event ev = {.kind = TRACE_SYSCALL, .nr = i % 3 ? 1 : 100000 + i, .ret = i % 2 ? -2 : 0, .ns = 10};
		trace_counts_add(c, &ev);
	}
	size_t cnt;
	uint64_t calls = 0, errors = 0;
	const struct trace_count_row *rows = trace_counts_rows(c, &cnt);
	for (size_t i = 0; i < cnt; i++) {
		calls += rows[i].calls;
		errors += rows[i].errors;
		assert_int_equal(rows[i].ns, 10 * rows[i].calls);
	}
	assert_string_equal(rows[0].name, "write");
	assert_int_equal(rows[0].calls, 200);
	assert_int_equal(calls, 300);
	assert_int_equal(errors, 150);
	trace_counts_free(c);
}

/* BTF of: struct pair { int a; char name[4]; enum color c : 8; struct pair *next; } */
static void test_btf(void **state)
{
	static const char strs[] = "\0int\0char\0pair\0a\0name\0c\0next\0color\0RED";
	static const uint32_t types[] = {
		1, 1u << 24, 4, 1u << 24 | 32,                     /* 1: int, signed 32 */
		5, 1u << 24, 1, 1u << 24 | 8,                      /* 2: char */
		0, 3u << 24, 0, 2, 1, 4,                           /* 3: char[4] */
		29, 6u << 24 | 1, 4, 35, 7,                        /* 4: enum color { RED = 7 } */
		0, 2u << 24, 6,                                    /* 5: pointer to 6 */
		10, 1u << 31 | 4u << 24 | 4, 24, 15, 1, 0, 17, 3, 32, 22, 4, 8u << 24 | 64, 24, 5, 128, /* 6 */
	};
	uint8_t file[24 + sizeof(types) + sizeof(strs)];
	uint32_t head[6] = {0x0001eb9f, 24, 0, sizeof(types), sizeof(types), sizeof(strs)};
	memcpy(file, head, 24);
	memcpy(file + 24, types, sizeof(types));
	memcpy(file + 24 + sizeof(types), strs, sizeof(strs));
	struct trace_btf *b = NULL;
	assert_null(trace_btf_open(file, sizeof(file), &b));
	static const uint8_t bytes[24] = {0xff, 0xff, 0xff, 0xff, 'a', 'b', 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0x10};
	struct buf out = {0};
	assert_true(trace_btf_put(b, "pair", bytes, 24, &out));
	buf_add_ch(&out, 0);
	assert_string_equal(out.data, "{a=-1, name=\"ab\", c=RED, next=0x1000}");
	out.len = 0;
	assert_true(trace_btf_put(b, "pair", bytes, 9, &out)); /* what does not lie in the bytes is not made up */
	buf_add_ch(&out, 0);
	assert_string_equal(out.data, "{a=-1, name=\"ab\", c=RED, ...}");
	assert_false(trace_btf_put(b, "nothing", bytes, 24, &out));
	uint32_t off = 0;
	assert_true(trace_btf_member(b, "pair", "next", &off) && off == 16);
	assert_true(trace_btf_member(b, "pair", "c", &off) && off == 8);
	assert_false(trace_btf_member(b, "pair", "none", &off) || trace_btf_member(b, "nothing", "a", &off) || trace_btf_member(b, "int", "a", &off));
	trace_btf_free(b);
	buf_fini(&out);
	for (size_t len = 0; len < sizeof(file); len++) {
		struct err *e = trace_btf_open(file, len, &b);
		assert_non_null(e);
		err_free(e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_unfinished),
		cmocka_unit_test(test_other_events),
		cmocka_unit_test(test_fds),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_btf),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
