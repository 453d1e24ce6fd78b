/* SPDX-License-Identifier: Apache-2.0 */
#include "base/child.h"
#include "base/child_cc.h"
#include "base/child_tool.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)

static struct child_opts opts_of(int (*run)(void *, int), void *ctx)
{
	return (struct child_opts){.what = "testing", .max_out_len = MIB, .max_mem_len = 64 * MIB,
				   .cpu_s = 1, .wall_ms = 200000, .run = run, .ctx = ctx};
}

/* Runs a child that must end with an error of `kind` whose text holds `part`. */
static void expect_err(struct child_opts opts, enum err_kind kind, const char *part)
{
	_cleanup_buf_ struct buf b = {0};
	struct err *e = child_run(&opts, &b);
	assert_non_null(e);
	if (e->kind != kind || !strstr(e->text, part))
		fail_msg("kind %s, text: %s", err_kind_name(e->kind), e->text);
	assert_true(b.len <= opts.max_out_len);
	err_free(e);
	/* No child is left behind. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static int run_echo(void *ctx, int fd)
{
	const char *text = ctx;
	char *copy = malloc(3 * MIB);
	if (!copy)
		return 1;
	memset(copy, 'x', 3 * MIB);
	bool ok = child_write(fd, text, strlen(text)) && child_write(fd, copy, 1000);
	free(copy);
	return ok ? 0 : 2;
}

static void test_answer_comes_back(void **state)
{
	char text[] = "hello";
	struct child_opts opts = opts_of(run_echo, text);
	_cleanup_buf_ struct buf b = {0};
	buf_add_str(&b, "> ");
	assert_null(child_run(&opts, &b));
	assert_int_equal(b.len, 2 + 5 + 1000);
	assert_memory_equal(b.data, "> hellox", 8);
	opts.max_out_len = 1005;
	b.len = 0;
	assert_null(child_run(&opts, &b));
	opts.max_out_len = 1004;
	expect_err(opts, ERR_BUDGET, "more than 1004 bytes");
}

static int run_fails(void *ctx, int fd)
{
	child_write(fd, "part", 4);
	return 7;
}

static void test_failure_keeps_what_came(void **state)
{
	struct child_opts opts = opts_of(run_fails, NULL);
	_cleanup_buf_ struct buf b = {0};
	struct err *e = child_run(&opts, &b);
	assert_int_equal(e->kind, ERR_BAD_INPUT);
	assert_string_equal(e->text, "testing failed (7)");
	assert_int_equal(b.len, 4);
	err_free(e);
}

static struct err *prepare_refuses(void *ctx)
{
	return err_fix(err_new(ERR_ENV, "libnothing.so\n cannot be loaded"), "install libnothing");
}

static void test_prepare_error_arrives(void **state)
{
	struct child_opts opts = opts_of(run_fails, NULL);
	opts.prepare = prepare_refuses;
	_cleanup_buf_ struct buf b = {0};
	struct err *e = child_run(&opts, &b);
	assert_int_equal(e->kind, ERR_ENV);
	assert_string_equal(e->text, "libnothing.so? cannot be loaded");
	assert_string_equal(e->fix, "install libnothing");
	assert_int_equal(b.len, 0);
	err_free(e);
}

static int run_open(void *ctx, int fd)
{
	int made = open(ctx, O_CREAT | O_RDWR, 0600);
	return made < 0 ? 3 : 0;
}

static int run_connect(void *ctx, int fd)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = *(uint16_t *)ctx,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int s = socket(AF_INET, SOCK_STREAM, 0);
	return connect(s, (struct sockaddr *)&to, sizeof(to)) ? 3 : 0;
}

static int run_fork(void *ctx, int fd)
{
	return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) < 0 ? 3 : 0;
}

static int run_kill(void *ctx, int fd)
{
	return kill(getppid(), SIGTERM);
}

static int run_kill_thread(void *ctx, int fd)
{
	pid_t *parent = ctx;
	return (int)syscall(SYS_tgkill, *parent, *parent, SIGTERM);
}

static int run_write_other(void *ctx, int fd)
{
	/* The descriptor is open in the parent; here it must be closed. */
	return write(*(int *)ctx, "x", 1) == 1 ? 0 : 9;
}

static int run_exec_memory(void *ctx, int fd)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? 3 : 0;
}

static void test_reaching_out_is_stopped(void **state)
{
	char path[] = "/tmp/scry-child-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	unlink(path);
	expect_err(opts_of(run_open, path), ERR_BAD_INPUT, "stopped at the system call openat while testing");
	assert_int_equal(access(path, F_OK), -1);

	int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t at_len = sizeof(at);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 1), 0);
	getsockname(listener, (struct sockaddr *)&at, &at_len);
	fcntl(listener, F_SETFL, O_NONBLOCK);
	expect_err(opts_of(run_connect, &at.sin_port), ERR_BAD_INPUT, "socket");
	assert_int_equal(accept(listener, NULL, NULL), -1);
	close(listener);

	pid_t self = getpid();
	expect_err(opts_of(run_fork, NULL), ERR_BAD_INPUT, "clone");
	expect_err(opts_of(run_kill, NULL), ERR_BAD_INPUT, "getppid");
	expect_err(opts_of(run_kill_thread, &self), ERR_BAD_INPUT, "tgkill");
	expect_err(opts_of(run_exec_memory, NULL), ERR_BAD_INPUT, "mmap");
	int high = fcntl(fd, F_DUPFD, 100);
	expect_err(opts_of(run_write_other, &high), ERR_BAD_INPUT, "failed (9)");
	close(high);
	struct stat st;
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 0);
	close(fd);
}

static int run_shared(void *ctx, int fd)
{
	char *const *pages = ctx;
	child_write(fd, pages[1], 1); /* only read: still there */
	*(volatile char *)pages[0] = 'X';
	return 0;
}

/* Memory the parent shares with others must not be reachable; a file mapped for reading must. */
static void test_shared_memory_is_gone(void **state)
{
	char path[] = "/tmp/scry-child-XXXXXX";
	int fd = mkstemp(path), read_fd = open(path, O_RDONLY);
	assert_true(fd >= 0 && read_fd >= 0);
	unlink(path);
	assert_int_equal(write(fd, "abcd", 4), 4);
	char *pages[2] = {mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
			  mmap(NULL, 4, PROT_READ, MAP_SHARED, read_fd, 0)};
	char *sealed = mmap(NULL, 4, PROT_READ, MAP_SHARED, fd, 0);
	expect_err(opts_of(run_shared, pages), ERR_BAD_INPUT, "died of SIGSEGV");
	assert_memory_equal(pages[0], "abcd", 4);
	pages[0] = sealed;
	expect_err(opts_of(run_shared, pages), ERR_BAD_INPUT, "died of SIGSEGV");
	assert_memory_equal(pages[1], "abcd", 4);
	munmap(sealed, 4);
	munmap(pages[1], 4);
	close(fd);
	close(read_fd);
}

static int run_loop(void *ctx, int fd)
{
	for (volatile unsigned i = 0; i < UINT32_MAX || *(int *)ctx;)
		i += i < 1000;
	return 0;
}

static int run_sleep(void *ctx, int fd)
{
	int word = 0;
	close(fd); /* the parent must not take this for the end */
	syscall(SYS_futex, &word, 0 /* FUTEX_WAIT */, 0, NULL, NULL, 0);
	return 0;
}

static int run_allocate(void *ctx, int fd)
{
	for (uint64_t i = 0; i < 1 << 20; i++) {
		volatile char *p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			return i < 2048 ? 4 : 5;
		*p = 1;
	}
	return 0;
}

static int run_write_for_ever(void *ctx, int fd)
{
	static const char block[4096];
	while (child_write(fd, block, sizeof(block)))
		;
	return 0;
}

static int run_crash(void *ctx, int fd)
{
	child_write(fd, "before", 6);
	raise(*(int *)ctx);
	return 0;
}

static int run_null(void *ctx, int fd)
{
	return *(volatile char *)ctx;
}

static void test_endless_ones_end(void **state)
{
	int forever = 1;
	expect_err(opts_of(run_loop, &forever), ERR_TIMEOUT, "more than 1 s of processor time");
	struct child_opts opts = opts_of(run_loop, &forever);
	opts.wall_ms = 50;
	opts.cpu_s = 1000;
	expect_err(opts, ERR_TIMEOUT, "more than 50 ms");
	opts.run = run_sleep;
	expect_err(opts, ERR_TIMEOUT, "more than 50 ms");
	expect_err(opts_of(run_allocate, NULL), ERR_BAD_INPUT, "failed (4)");
	expect_err(opts_of(run_write_for_ever, NULL), ERR_BUDGET, "bytes");
}

static void test_crashes_are_named(void **state)
{
	int sig = SIGABRT;
	expect_err(opts_of(run_crash, &sig), ERR_BAD_INPUT, "the child died of SIGABRT while testing");
	sig = SIGKILL;
	expect_err(opts_of(run_crash, &sig), ERR_BAD_INPUT, "SIGKILL");
	expect_err(opts_of(run_null, (void *)8), ERR_BAD_INPUT, "SIGSEGV");
}

static int run_asks(void *ctx, int fd)
{
	return open("/etc/passwd", O_RDONLY) < 0 && errno == EPERM && getppid() < 0 && errno == EPERM && child_write(fd, "on", 2) ? 0 : 3;
}

/* A call that is refused, and no end. */
static void test_lenient(void **state)
{
	struct child_opts opts = opts_of(run_asks, NULL);
	_cleanup_buf_ struct buf b = {0};
	expect_err(opts, ERR_BAD_INPUT, "the child was stopped at the system call openat");
	opts.is_lenient = true;
	assert_null(child_run(&opts, &b));
	assert_int_equal(b.len, 2);
}

static void *many_children(void *arg)
{
	char text[] = "many";
	for (int i = 0; i < 10; i++) {
		struct child_opts opts = opts_of(run_echo, text);
		_cleanup_buf_ struct buf b = {0};
		struct err *e = child_run(&opts, &b);
		if (e || b.len != 1004)
			return (void *)1;
	}
	return NULL;
}

static void test_threads_may_run_children(void **state)
{
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, many_children, NULL), 0);
	for (int i = 0; i < 4; i++) {
		void *bad;
		pthread_join(threads[i], &bad);
		assert_null(bad);
	}
}

static struct err *run_tool(const char *script, unsigned wall_ms, struct buf *out, struct buf *said, int *status)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	struct child_tool tool = {.argv = argv, .max_out_len = 1000, .cpu_s = 2, .wall_ms = wall_ms};
	return child_tool_run(&tool, out, said, status);
}

/* Whether what another process sleeps in can be seen here. */
static bool can_look(void)
{
	char path[64];
	pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pid);
	int fd = open(path, O_RDONLY);
	char byte;
	bool ret = fd >= 0 && read(fd, &byte, 1) == 1;
	close(fd);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return ret;
}

/* One that wants files and gets a pipe, in opening it or in reading it, is not waited for. */
static void test_tool_waits(void **state)
{
	char dir[] = "/tmp/scry-tool-XXXXXX", path[64], script[256];
	struct buf out = {0}, said = {0};
	int status;
	if (!can_look())
		skip();
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/pipe.h", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	snprintf(script, sizeof(script), "cd %s; cat ./pipe.h", dir);
	const char *const argv[] = {"sh", "-c", script, NULL};
	const struct child_tool tool = {.argv = argv, .max_out_len = 1000, .cpu_s = 2, .wall_ms = 400000, .wants_files = true};
	struct err *e = child_tool_run(&tool, &out, &said, &status);
	assert_non_null(e);
	assert_string_equal(e->text, "sh waits for ./pipe.h, which is a pipe or a device and no file");
	assert_int_equal(e->kind, ERR_BAD_INPUT);
	err_free(e);
	/* Now it can be opened. */
	int fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	e = child_tool_run(&tool, &out, &said, &status);
	assert_non_null(e);
	assert_non_null(strstr(e->text, dir));
	err_free(e);
	close(fd);
	/* Who waits for something else is left alone: the shell for a program, that for the pipe between them. */
	snprintf(script, sizeof(script), "sleep 2 | cat");
	assert_null(child_tool_run(&tool, &out, &said, &status));
	assert_int_equal(status, 0);
	unlink(path);
	rmdir(dir);
	buf_fini(&out);
	buf_fini(&said);
}

/* Another program: it may read and speak, and change nothing. */
static void test_tool(void **state)
{
	struct buf out = {0}, said = {0};
	int status = -1;
	assert_null(run_tool("echo one; echo two >&2; exit 3", 20000, &out, &said, &status));
	assert_int_equal(status, 3);
	assert_memory_equal(out.data, "one\n", 4);
	assert_memory_equal(said.data, "two\n", 4);
	char path[64], script[256];
	snprintf(path, sizeof(path), "/tmp/scry-tool.%d", (int)getpid());
	snprintf(script, sizeof(script), "cat /etc/passwd | head -c 1 || exit 9; echo x >%s; mkdir %s; test -e %s", path, path, path);
	assert_null(run_tool(script, 20000, &out, &said, &status));
	assert_int_equal(status, 1); /* neither was made, while reading was fine */
	assert_int_equal(access(path, F_OK), -1);
	out.len = 0;
	struct err *e = run_tool("while :; do echo more and more; done", 20000, &out, &said, &status);
	assert_non_null(e);
	assert_int_equal(e->kind, ERR_BUDGET);
	assert_int_equal(out.len, 1000);
	err_free(e);
	e = run_tool("sleep 100", 200, &out, &said, &status);
	assert_non_null(e);
	assert_int_equal(e->kind, ERR_TIMEOUT);
	err_free(e);
	const char *const none[] = {"there-is-no-such-program", NULL};
	e = child_tool_run(&(struct child_tool){.argv = none, .max_out_len = 1, .cpu_s = 1, .wall_ms = 1000}, &out, &said, &status);
	assert_non_null(e);
	assert_int_equal(e->kind, ERR_ENV);
	err_free(e);
	buf_fini(&out);
	buf_fini(&said);
}

static struct err *refuse(void *ctx)
{
	(void)ctx;
	return err_new(ERR_CANCELLED, "no more");
}

/* One that may write in a folder, and there only. */
static void test_tool_folder(void **state)
{
	struct buf out = {0}, said = {0};
	struct child_cc cc;
	char outside[64], script[1000];
	int status = -1;
	assert_null(child_cc_open(&cc));
	snprintf(outside, sizeof(outside), "/tmp/scry-tool-outside.%d", (int)getpid());
	FILE *f = fopen(outside, "we");
	assert_non_null(f);
	fputs("kept\n", f);
	fclose(f);
	/* Whatever landlock can do: nothing is removed, renamed, made special or reached. */
	snprintf(script, sizeof(script),
		 "[ $PWD = %s ] && [ $TMPDIR = %s ] && echo here >file && cat file; rm -f %s; mv %s %s.2; chmod 777 %s; mkdir d; ln -s a b; "
		 "kill -9 %d; : 2>/dev/null >/dev/tcp/127.0.0.1/9",
		 cc.dir, cc.dir, outside, outside, outside, outside, (int)getpid());
	const char *const argv[] = {"bash", "-c", script, NULL};
	struct child_tool tool = {.argv = argv, .max_out_len = 1000, .cpu_s = 20, .wall_ms = 60000, .folder = cc.dir, .max_file_len = 4096};
	assert_null(child_tool_run(&tool, &out, &said, &status));
	assert_int_equal(out.len, 5);
	assert_memory_equal(out.data, "here\n", 5);
	struct stat st;
	assert_int_equal(stat(outside, &st), 0);
	assert_int_equal(st.st_mode & 077, 044);
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0) {
		snprintf(script, sizeof(script), "echo x >%s; echo x >%s.new; : >%s; echo over", outside, outside, outside);
		assert_null(child_tool_run(&tool, &out, &said, &status));
		assert_int_equal(stat(outside, &st), 0);
		assert_int_equal(st.st_size, 5);
		snprintf(script, sizeof(script), "%s.new", outside);
		assert_int_equal(access(script, F_OK), -1);
	}
	/* A file has its limit, and who is asked to stop does. */
	snprintf(script, sizeof(script), "head -c 100000 /dev/zero >large");
	assert_null(child_tool_run(&tool, &out, &said, &status));
	assert_int_not_equal(status, 0);
	snprintf(script, sizeof(script), "%s/large", cc.dir);
	assert_int_equal(stat(script, &st), 0);
	assert_true(st.st_size <= 4096);
	snprintf(script, sizeof(script), "sleep 1000");
	tool.check = refuse;
	struct err *e = child_tool_run(&tool, &out, &said, &status);
	assert_non_null(e);
	assert_int_equal(e->kind, ERR_CANCELLED);
	err_free(e);
	char dir[sizeof(cc.dir)];
	memcpy(dir, cc.dir, sizeof(dir));
	child_cc_close(&cc);
	assert_int_equal(access(dir, F_OK), -1);
	unlink(outside);
	buf_fini(&out);
	buf_fini(&said);
}

/* The compiler: code comes out, and what it says of bad C is the error. */
static void test_cc(void **state)
{
	struct child_cc cc;
	char path[160];
	const char *const argv[] = {"gcc", "-O1", "-shared", "-fPIC", "-o", "a.so", "a.c", NULL};
	if (access("/usr/bin/gcc", X_OK))
		skip();
	assert_null(child_cc_open(&cc));
	assert_null(child_cc_put(&cc, "a.c", "int f(void) { return 3; }\n", 26));
	assert_null(child_cc_run(&cc, argv));
	snprintf(path, sizeof(path), "%s/a.so", cc.dir);
	assert_int_equal(access(path, R_OK), 0);
	assert_null(child_cc_put(&cc, "a.c", "int f(void) { return x; }\n", 26));
	struct err *e = child_cc_run(&cc, argv);
	assert_non_null(e);
	assert_int_equal(e->kind, ERR_INTERNAL);
	assert_non_null(strstr(e->text, "does not take the C: a.c:1:22: error"));
	err_free(e);
	const char *const none[] = {"there-is-no-such-compiler", NULL};
	e = child_cc_run(&cc, none);
	assert_non_null(e);
	assert_int_equal(e->kind, ERR_ENV);
	err_free(e);
	child_cc_close(&cc);
	child_cc_close(&cc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answer_comes_back),
		cmocka_unit_test(test_failure_keeps_what_came),
		cmocka_unit_test(test_prepare_error_arrives),
		cmocka_unit_test(test_reaching_out_is_stopped),
		cmocka_unit_test(test_shared_memory_is_gone),
		cmocka_unit_test(test_endless_ones_end),
		cmocka_unit_test(test_crashes_are_named),
		cmocka_unit_test(test_lenient),
		cmocka_unit_test(test_threads_may_run_children),
		cmocka_unit_test(test_tool),
		cmocka_unit_test(test_tool_waits),
		cmocka_unit_test(test_tool_folder),
		cmocka_unit_test(test_cc),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
