/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's side: subjects that know what they did, and what was recorded of it. Skipped where the kernel or the user
 * may not. Subjects are children of the test, stopped before their first call until they are recorded. */
#include "live/trace/trace_bpf.h"
#include "live/trace/trace_join.h"
#include "live/trace/sysc.h"

#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* An event with what it points to, kept. */
struct kept {
	struct trace_event ev;
	struct trace_slot slots[16];
	char comm[16], exe[128], container[80];
	uint8_t bytes[16384];
};

struct trace {
	struct trace_bpf *bpf;
	struct trace_join *join;
	VEC(struct kept *) list;
	size_t lost_events;
	uint64_t lost_cnt, calls_cnt;
	bool only_count;
	int nr;        /* counted in calls_cnt */
	uint32_t only; /* of a whole machine, whose forks may be many, only this process and its children are kept; 0: all */
};

static bool keep(void *ctx, const struct trace_event *ev)
{
	struct trace *t = ctx;
	if (ev->kind == TRACE_LOST) {
		t->lost_events++;
		t->lost_cnt += ev->lost.count;
		assert_int_equal(ev->lost.last - ev->lost.first + 1, ev->lost.count);
	}
	if (ev->kind == TRACE_SYSCALL && !ev->unfinished && ev->nr == t->nr)
		t->calls_cnt++;
	if (t->only_count || (t->only && ev->tid != t->only && ev->ppid != t->only))
		return true;
	struct kept *k = calloc(1, sizeof(*k));
	assert_non_null(k);
	k->ev = *ev;
	snprintf(k->comm, sizeof(k->comm), "%s", ev->comm ? ev->comm : "");
	snprintf(k->exe, sizeof(k->exe), "%s", ev->exe ? ev->exe : "");
	snprintf(k->container, sizeof(k->container), "%s", ev->container ? ev->container : "");
	size_t used = 0;
	k->ev.nslots = 0;
	for (uint32_t i = 0; i < ev->nslots && i < ARRAY_LEN(k->slots) && used + ev->slots[i].len <= sizeof(k->bytes); i++) {
		k->slots[i] = ev->slots[i];
		if (ev->slots[i].len)
			memcpy(k->bytes + used, ev->slots[i].data, ev->slots[i].len);
		k->slots[i].data = k->bytes + used;
		used += ev->slots[i].len;
		k->ev.nslots++;
	}
	k->ev.slots = k->slots;
	assert_true(VEC_PUSH(&t->list, k));
	return true;
}

static struct err *chunk(void *ctx, const uint8_t *bytes, size_t len)
{
	bool more;
	struct trace *t = ctx;
	return trace_join_chunk(t->join, bytes, len, &more);
}

static void drain(struct trace *t)
{
	for (bool any = true; any;)
		assert_null(trace_bpf_drain(t->bpf, chunk, t, &any));
}

static enum trace_hook hook; /* each test is run with each */

static int set_hook(void **state)
{
	hook = *(enum trace_hook *)*state;
	return 0;
}

static void start(struct trace *t, const struct trace_bpf_options *wanted)
{
	struct trace_bpf_options opt = *wanted;
	opt.hook = hook;
	struct err *e = trace_bpf_open(&opt, &t->bpf);
	if (e && e->kind == ERR_ENV) {
		print_message("skipped: %s\n", e->text);
		err_free(e);
		skip();
	}
	if (e)
		print_message("%s\n", e->text);
	assert_null(e);
	t->join = trace_join_new(keep, t);
	assert_non_null(t->join);
}

/* Ends the trace; whatever was recorded and lost must be all there was. */
static void finish(struct trace *t)
{
	trace_bpf_stop(t->bpf);
	drain(t);
	size_t cnt;
	uint64_t seen = 0, lost = 0;
	const struct trace_cpu *cpus = trace_bpf_cpus(t->bpf, &cnt);
	for (size_t i = 0; i < cnt; i++) {
		seen += cpus[i].seen;
		lost += cpus[i].lost;
	}
	trace_join_end(t->join, cpus, cnt);
	struct trace_totals totals = trace_join_totals(t->join);
	assert_int_equal(totals.received + totals.lost, seen);
	assert_int_equal(totals.lost, lost);
	assert_int_equal(t->lost_cnt, lost);
	assert_int_equal(totals.damaged, 0);
	trace_bpf_close(t->bpf);
	trace_join_free(t->join);
}

static void clear(struct trace *t)
{
	for (size_t i = 0; i < t->list.cnt; i++)
		free(t->list.data[i]);
	VEC_FREE(&t->list);
}

/* A child that waits for a byte and then does `subject`. */
static pid_t spawn(void (*subject)(void), int *ret_go)
{
	int go[2];
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		char byte;
		close(go[1]);
		if (read(go[0], &byte, 1) == 1)
			subject();
		_exit(7);
	}
	close(go[0]);
	*ret_go = go[1];
	return pid;
}

static void run(struct trace *t, void (*subject)(void), bool drains)
{
	int go, status;
	pid_t pid = spawn(subject, &go);
	assert_null(trace_bpf_add(t->bpf, pid));
	assert_int_equal(write(go, "", 1), 1);
	close(go);
	while (waitpid(pid, &status, drains ? WNOHANG : 0) != pid) {
		trace_bpf_wait(t->bpf, 2);
		drain(t);
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
	drain(t);
}

static int number_of(const char *name)
{
	const struct sysc *s = sysc_by_name(name, strlen(name));
	assert_non_null(s);
#if defined(__aarch64__)
	return s->nr[TRACE_ARM64];
#else
	return s->nr[TRACE_X86_64];
#endif
}

/* The nth end (or beginning) of a call of that name; null: there are fewer. */
static const struct kept *find_call(const struct trace *t, const char *name, bool unfinished, size_t nth)
{
	int nr = number_of(name);
	for (size_t i = 0; i < t->list.cnt; i++) {
		const struct kept *k = t->list.data[i];
		if (k->ev.kind == TRACE_SYSCALL && k->ev.nr == nr && k->ev.unfinished == unfinished && !nth--)
			return k;
	}
	return NULL;
}

static const struct kept *find_kind(const struct trace *t, enum trace_kind kind, size_t nth)
{
	for (size_t i = 0; i < t->list.cnt; i++) {
		if (t->list.data[i]->ev.kind == kind && !nth--)
			return t->list.data[i];
	}
	return NULL;
}

static const struct trace_slot *slot(const struct kept *k, uint8_t arg, uint8_t part)
{
	assert_non_null(k);
	for (uint32_t i = 0; i < k->ev.nslots; i++) {
		if (k->slots[i].arg == arg && k->slots[i].part == part)
			return &k->slots[i];
	}
	return NULL;
}

static void expect_slot(const struct kept *k, uint8_t arg, uint8_t part, uint8_t status, const char *bytes, uint32_t len)
{
	const struct trace_slot *s = slot(k, arg, part);
	assert_non_null(s);
	assert_int_equal(s->status, status);
	assert_int_equal(s->len, len);
	if (len)
		assert_memory_equal(s->data, bytes, len);
}

static const struct trace_bpf_options own = {.scope = {.own = true, .tree = true}, .with_site = true, .stack_len = 256, .with_signals = true,
	.plan = {.with_maps = true}};

/* --- arguments ------------------------------------------------------------------------------------------------------ */

static char *bad_page; /* a page with "/edge" at its end, nothing behind */

static void subject_args(void)
{
	int fds[2], null = open("/dev/null", O_RDWR);
	char long_path[3000], text[40];
	memset(long_path, 'x', sizeof(long_path));
	long_path[sizeof(long_path) - 1] = '\0';
	syscall(SYS_chdir, "/tmp");
	syscall(SYS_chdir, "");
	syscall(SYS_chdir, NULL);
	syscall(SYS_chdir, (char *)8);
	syscall(SYS_chdir, long_path);
	syscall(SYS_chdir, bad_page + 4096 - 5);

	static char one[] = "one", three[] = "three";
	struct iovec out[3] = {{one, 3}, {NULL, 0}, {three, 5}};
	syscall(SYS_writev, null, out, 3);
	struct iovec wrong = {one, 3};
	syscall(SYS_writev, null, &wrong, -1);
	if (pipe(fds))
		_exit(1);
	if (write(fds[1], "hello wide world, this is a long line of text", 45) != 45)
		_exit(1);
	struct iovec in[2] = {{text, 3}, {text + 3, 37}};
	memset(text, '-', sizeof(text));
	syscall(SYS_readv, fds[0], in, 2);
	syscall(SYS_read, fds[0], text, sizeof(text));

	int pair[2];
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		_exit(1);
	struct sockaddr_un nowhere = {.sun_family = AF_UNIX, .sun_path = "/nowhere/at/all"};
	union {
		struct cmsghdr h;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.h = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
	memcpy(CMSG_DATA(&control.h), &null, sizeof(null));
	struct msghdr m = {.msg_name = &nowhere, .msg_namelen = 18, .msg_iov = out, .msg_iovlen = 3,
		.msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
	sendmsg(pair[0], &m, 0);
	syscall(SYS_sendto, pair[0], "data", 4, 0, &nowhere, 18);
	struct sockaddr_un name;
	socklen_t name_len = sizeof(name);
	getsockname(pair[0], (struct sockaddr *)&name, &name_len);

	static const char *const argv[] = {"arg0", "", "two words", NULL}, *const envp[] = {"K=V", NULL};
	syscall(SYS_execve, "/nowhere/prog", argv, envp);
}

static void test_args(void **state)
{
	struct trace t = {0};
	start(&t, &own);
	run(&t, subject_args, true);
	finish(&t);
	expect_slot(find_call(&t, "chdir", false, 0), 0, 0, TRACE_LATE, "/tmp", 4);
	expect_slot(find_call(&t, "chdir", false, 1), 0, 0, TRACE_LATE, "", 0);
	expect_slot(find_call(&t, "chdir", false, 2), 0, 0, TRACE_ABSENT, "", 0);
	expect_slot(find_call(&t, "chdir", false, 3), 0, 0, TRACE_FAULTED, "", 0);
	assert_int_equal(find_call(&t, "chdir", false, 0)->ev.ret, 0);
	assert_int_equal(find_call(&t, "chdir", false, 1)->ev.ret, -ENOENT);
	assert_int_equal(find_call(&t, "chdir", false, 3)->ev.ret, -EFAULT);
	const struct trace_slot *s = slot(find_call(&t, "chdir", false, 4), 0, 0);
	assert_int_equal(s->len, 2999);
	assert_int_equal(s->status, TRACE_LATE);
	s = slot(find_call(&t, "chdir", false, 5), 0, 0); /* up to where memory ends */
	assert_int_equal(s->status, TRACE_FAULTED);
	assert_int_equal(s->len, 5);
	assert_memory_equal(s->data, "/edge", 5);

	const struct kept *k = find_call(&t, "writev", false, 0);
	assert_int_equal(k->ev.ret, 8);
	assert_int_equal(slot(k, 1, TRACE_PART_SELF)->len, 3 * sizeof(struct iovec));
	expect_slot(k, 1, TRACE_PART_DATA, TRACE_LATE, "onethree", 8);
	assert_int_equal(find_call(&t, "writev", false, 1)->ev.ret, -EINVAL);
	k = find_call(&t, "readv", false, 0);
	assert_int_equal(k->ev.ret, 40);
	expect_slot(k, 1, TRACE_PART_DATA, TRACE_TRUNCATED, "hello wide world, this is a long", 32);
	expect_slot(find_call(&t, "read", false, 1), 1, 0, TRACE_OK, " text", 5);

	k = find_call(&t, "sendmsg", false, 0);
	assert_int_equal(slot(k, 1, TRACE_PART_SELF)->len, sizeof(struct msghdr));
	s = slot(k, 1, TRACE_PART_NAME);
	assert_int_equal(s->len, 18);
	assert_memory_equal(s->data + 2, "/nowhere/at/all", 16);
	s = slot(k, 1, TRACE_PART_CONTROL);
	assert_int_equal(s->len, CMSG_SPACE(sizeof(int)));
	assert_int_equal(slot(k, 1, TRACE_PART_IOV)->len, 3 * sizeof(struct iovec));
	expect_slot(k, 1, TRACE_PART_DATA, TRACE_LATE, "onethree", 8);
	k = find_call(&t, "sendto", false, 0);
	expect_slot(k, 1, 0, TRACE_LATE, "data", 4);
	assert_memory_equal(slot(k, 4, 0)->data + 2, "/nowhere/at/all", 16);
	k = find_call(&t, "getsockname", false, 0);
	assert_int_equal(slot(k, 1, 0)->len, 2);
	expect_slot(k, 2, 0, TRACE_OK, "\2\0\0", 4);

	/* Seen at both ends. */
	for (int unfinished = 0; unfinished < 2; unfinished++) {
		k = find_call(&t, "execve", unfinished, 0);
		expect_slot(k, 0, 0, TRACE_OK, "/nowhere/prog", 13);
		expect_slot(k, 1, 0, TRACE_OK, "arg0\0\0two words", 16);
		expect_slot(k, 2, 0, TRACE_OK, "K=V", 4);
	}
	assert_int_equal(find_call(&t, "execve", false, 0)->ev.ret, -ENOENT);
	assert_true(k->ev.ns == 0 && find_call(&t, "execve", false, 0)->ev.ns > 0);
	k = find_call(&t, "exit_group", true, 0);
	assert_int_equal(k->ev.args[0], 7);
	k = find_kind(&t, TRACE_EXIT, 0);
	assert_int_equal(k->ev.ret, 7 << 8);
	assert_int_equal(k->ev.args[0], 1);
	clear(&t);
}

/* ip and sp are the caller's, and the stack is what lay there. */
static volatile uint64_t mark;
static void subject_site(void)
{
	mark = 0x1122334455667788;
	uint64_t words[8];
	for (int i = 0; i < 8; i++)
		words[i] = mark + (uint64_t)i;
	__asm__ volatile("" : : "r"(words) : "memory");
	syscall(SYS_getppid);
	__asm__ volatile("" : : "r"(words) : "memory");
}

static void test_site(void **state)
{
	struct trace t = {0};
	struct trace_bpf_options opt = own;
	opt.stack_len = 1024;
	start(&t, &opt);
	run(&t, subject_site, true);
	finish(&t);
	const struct kept *k = find_call(&t, "getppid", false, 0);
	assert_non_null(k);
	assert_true(k->ev.ip && k->ev.sp);
	assert_int_equal(k->ev.nstack, 1024);
	clear(&t);
}

/* Limits of kinds and of single arguments. */
static void test_limits(void **state)
{
	static const struct trace_limit limits[] = {{"chdir", 0, 2}, {"sendto", 1, 3}};
	struct trace t = {0};
	struct trace_bpf_options opt = own;
	opt.plan.limits = limits;
	opt.plan.limit_cnt = 2;
	opt.plan.data_limit = 6;
	opt.plan.string_limit = 100;
	start(&t, &opt);
	run(&t, subject_args, true);
	finish(&t);
	expect_slot(find_call(&t, "chdir", false, 0), 0, 0, TRACE_TRUNCATED, "/t", 2);
	expect_slot(find_call(&t, "sendto", false, 0), 1, 0, TRACE_TRUNCATED, "dat", 3);
	assert_int_equal(slot(find_call(&t, "sendto", false, 0), 1, 0)->full, 4);
	expect_slot(find_call(&t, "readv", false, 0), 1, TRACE_PART_DATA, TRACE_TRUNCATED, "hello ", 6);
	clear(&t);
}

/* --- which calls, whose ---------------------------------------------------------------------------------------------- */

static void test_ids(void **state)
{
	struct trace t = {0};
	struct trace_bpf_options opt = own;
	uint64_t ids[TRACE_IDS / 64] = {0};
	int nr = number_of("chdir");
	ids[nr / 64] |= 1ull << (nr % 64);
	opt.plan.ids[0] = opt.plan.ids[1] = ids;
	start(&t, &opt);
	run(&t, subject_args, true);
	finish(&t);
	size_t calls = 0;
	for (size_t i = 0; i < t.list.cnt; i++) {
		calls += t.list.data[i]->ev.kind == TRACE_SYSCALL;
		assert_true(t.list.data[i]->ev.kind != TRACE_SYSCALL || t.list.data[i]->ev.nr == nr);
	}
	assert_int_equal(calls, 6);
	clear(&t);
}

static void *second_thread(void *arg)
{
	syscall(SYS_chdir, "/thread");
	return NULL;
}

static void subject_tree(void)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, second_thread, NULL))
		_exit(1);
	pthread_join(thread, NULL);
	pid_t pid = fork();
	if (!pid) {
		syscall(SYS_chdir, "/child");
		execl("/bin/true", "true", "an argument", NULL);
		_exit(1);
	}
	int status;
	waitpid(pid, &status, 0);
	kill(getpid(), SIGURG);
}

static void test_tree(void **state)
{
	struct trace t = {0};
	start(&t, &own);
	run(&t, subject_tree, true);
	finish(&t);
	const struct kept *thread = find_kind(&t, TRACE_FORK, 0), *child = find_kind(&t, TRACE_FORK, 1), *exec = find_kind(&t, TRACE_EXEC, 0);
	assert_non_null(thread);
	assert_non_null(child);
	assert_int_equal(thread->ev.args[1], thread->ev.pid);
	assert_int_equal(thread->ev.args[0], 0x10000);
	assert_int_equal(child->ev.args[1], child->ev.ret);
	const struct kept *in_thread = find_call(&t, "chdir", false, 0), *in_child = find_call(&t, "chdir", false, 1);
	expect_slot(in_thread, 0, 0, TRACE_LATE, "/thread", 7);
	assert_int_equal(in_thread->ev.tid, thread->ev.ret);
	assert_int_equal(in_thread->ev.pid, thread->ev.pid);
	expect_slot(in_child, 0, 0, TRACE_LATE, "/child", 6);
	assert_int_equal(in_child->ev.pid, child->ev.ret);
	assert_int_equal(in_child->ev.ppid, child->ev.pid);

	assert_non_null(exec);
	assert_int_equal(exec->ev.pid, child->ev.ret);
	assert_string_equal(exec->comm, "true");
	assert_non_null(strstr(exec->exe, "/bin/true"));
	expect_slot(exec, TRACE_ARG_ARGV, 0, TRACE_OK, "true\0an argument", 17);
	assert_non_null(slot(exec, TRACE_ARG_CWD, 0));
	const struct kept *call = find_call(&t, "execve", false, 0);
	assert_int_equal(call->ev.ret, 0);
	expect_slot(call, 1, 0, TRACE_OK, "true\0an argument", 17);

	/* The C library of the new program, with its path; and the signal. */
	bool has_libc = false;
	for (size_t i = 0; find_kind(&t, TRACE_MMAP, i); i++) {
		const struct kept *m = find_kind(&t, TRACE_MMAP, i);
		const struct trace_slot *path = slot(m, 0, 0);
		has_libc = has_libc || (m->ev.pid == child->ev.ret && m->ev.args[2] & PROT_EXEC && path &&
					memmem(path->data, path->len, "/libc.so", 8));
	}
	assert_true(has_libc);
	bool has_signal = false;
	for (size_t i = 0; find_kind(&t, TRACE_SIGNAL, i); i++)
		has_signal = has_signal || find_kind(&t, TRACE_SIGNAL, i)->ev.args[0] == SIGURG;
	assert_false(has_signal); /* it is ignored, so nothing is delivered */
	clear(&t);
}

/* Without `tree` only the process that was named. */
static void test_no_tree(void **state)
{
	struct trace t = {0};
	struct trace_bpf_options opt = own;
	opt.scope.tree = false;
	start(&t, &opt);
	run(&t, subject_tree, true);
	finish(&t);
	expect_slot(find_call(&t, "chdir", false, 0), 0, 0, TRACE_LATE, "/thread", 7);
	assert_null(find_call(&t, "chdir", false, 1));
	assert_non_null(find_kind(&t, TRACE_FORK, 1));
	assert_null(find_kind(&t, TRACE_EXEC, 0));
	clear(&t);
}

#ifdef __x86_64__
static char *low_path; /* where 32 bits lead to */

/* Calls by i386's numbers from 64-bit code. */
static void subject_compat(void)
{
	long ret;
	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(12), "b"(low_path) : "memory", "r8", "r9", "r10", "r11");
	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(64) : "memory", "r8", "r9", "r10", "r11");
}

static void test_compat(void **state)
{
	int status;
	low_path = mmap((void *)0x100000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (low_path != (char *)0x100000)
		skip();
	memcpy(low_path, "/tmp", 5);
	pid_t pid = fork();
	if (!pid) {
		subject_compat();
		_exit(7);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status)) {
		print_message("skipped: this kernel has no calls of i386\n");
		skip();
	}
	struct trace t = {0};
	start(&t, &own);
	run(&t, subject_compat, true);
	finish(&t);
	const struct kept *chdir_call = NULL, *getppid_call = NULL;
	for (size_t i = 0; i < t.list.cnt; i++) {
		const struct kept *k = t.list.data[i];
		if (k->ev.kind == TRACE_SYSCALL && k->ev.abi == TRACE_I386 && k->ev.nr == 12)
			chdir_call = k;
		if (k->ev.kind == TRACE_SYSCALL && k->ev.abi == TRACE_I386 && k->ev.nr == 64)
			getppid_call = k;
	}
	expect_slot(chdir_call, 0, 0, TRACE_LATE, "/tmp", 4);
	assert_non_null(getppid_call);
	assert_int_equal(getppid_call->ev.ret, getpid());
	munmap(low_path, 4096);
	clear(&t);
}
#endif

static volatile sig_atomic_t got_signal;
static void on_signal(int sig)
{
	got_signal = sig;
}

static void subject_signal(void)
{
	struct sigaction a = {.sa_handler = on_signal};
	sigaction(SIGUSR1, &a, NULL);
	kill(getpid(), SIGUSR1);
	if (got_signal != SIGUSR1)
		_exit(1);
}

static void test_signal(void **state)
{
	struct trace t = {0};
	start(&t, &own);
	run(&t, subject_signal, true);
	finish(&t);
	const struct kept *k = find_kind(&t, TRACE_SIGNAL, 0);
	assert_non_null(k);
	assert_int_equal(k->ev.args[0], SIGUSR1);
	assert_int_equal((int)k->ev.args[1], SI_USER);
	bool is_bare = hook == TRACE_HOOK_PERF;
	assert_int_equal(k->ev.args[2], is_bare ? 0 : k->ev.pid);
	assert_int_equal(k->ev.args[3], is_bare ? TRACE_SIGNAL_BARE : 0);
	assert_non_null(find_call(&t, "rt_sigreturn", true, 0));
	assert_non_null(find_call(&t, "rt_sigreturn", false, 0));
	clear(&t);
}

/* Processes that were there: by pid, by name, by what they run; a child of theirs is judged for itself. */
static void check_scope(const struct trace_scope *scope, bool want)
{
	int go, status;
	pid_t pid = spawn(subject_args, &go);
	uint32_t number = (uint32_t)pid;
	struct trace t = {.only = number};
	struct trace_bpf_options opt = own;
	uint64_t ids[TRACE_IDS / 64] = {0}; /* of the whole machine not everything is wanted */
	int nr = number_of("chdir");
	ids[nr / 64] |= 1ull << (nr % 64);
	opt.plan.ids[0] = opt.plan.ids[1] = ids;
	opt.plan.with_maps = false;
	opt.scope = *scope;
	if (scope->pid_cnt)
		opt.scope.pids = &number;
	struct err *e = trace_bpf_open(&opt, &t.bpf);
	if (e && e->kind == ERR_ENV) {
		err_free(e);
		close(go);
		waitpid(pid, &status, 0);
		skip();
	}
	assert_null(e);
	t.join = trace_join_new(keep, &t);
	assert_int_equal(write(go, "", 1), 1);
	close(go);
	while (waitpid(pid, &status, WNOHANG) != pid) {
		trace_bpf_wait(t.bpf, 2);
		drain(&t);
	}
	finish(&t);
	const struct kept *found = NULL;
	for (size_t i = 0; i < t.list.cnt; i++) {
		if (t.list.data[i]->ev.tid == number && t.list.data[i]->ev.kind == TRACE_SYSCALL)
			found = t.list.data[i];
	}
	assert_int_equal(found != NULL, want);
	if (want) {
		assert_int_equal(found->ev.pid, number);
		assert_string_equal(found->comm, "unit-trace-bpf");
		assert_non_null(strstr(found->exe, "unit-trace-bpf"));
	}
	clear(&t);
}

static void test_scope(void **state)
{
	static const char *const comms[] = {"unit-trace-bpf"}, *const others[] = {"somebody-else"}, *const shells[] = {"/bin/sh"};
	static const char *const selves[] = {"/proc/self/exe"};
	uint32_t uid = getuid(), other = 4242;
	check_scope(&(struct trace_scope){.pid_cnt = 1}, true);
	check_scope(&(struct trace_scope){.comms = comms, .comm_cnt = 1}, true);
	check_scope(&(struct trace_scope){.comms = others, .comm_cnt = 1}, false);
	check_scope(&(struct trace_scope){.exes = selves, .exe_cnt = 1}, true);
	check_scope(&(struct trace_scope){.exes = shells, .exe_cnt = 1}, false);
	check_scope(&(struct trace_scope){.uids = &uid, .uid_cnt = 1, .comms = comms, .comm_cnt = 1}, true);
	check_scope(&(struct trace_scope){.uids = &other, .uid_cnt = 1, .comms = comms, .comm_cnt = 1}, false);
	check_scope(&(struct trace_scope){0}, true);
}

/* A program started by somebody who is not recorded is, once it is the one that was asked for. */
static void test_scope_exec(void **state)
{
	static const char *const comms[] = {"true"};
	struct trace t = {0};
	struct trace_bpf_options opt = own;
	opt.scope = (struct trace_scope){.comms = comms, .comm_cnt = 1};
	start(&t, &opt);
	int go, status;
	pid_t pid = spawn(subject_tree, &go);
	t.only = (uint32_t)pid;
	assert_int_equal(write(go, "", 1), 1);
	close(go);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	finish(&t);
	bool has = false;
	for (size_t i = 0; find_kind(&t, TRACE_EXEC, i); i++)
		has = has || find_kind(&t, TRACE_EXEC, i)->ev.ppid == (uint32_t)pid;
	assert_true(has);
	for (size_t i = 0; i < t.list.cnt; i++)
		assert_true(t.list.data[i]->ev.tid != (uint32_t)pid || t.list.data[i]->ev.kind != TRACE_SYSCALL);
	clear(&t);
}

static void subject_rename(void)
{
	syscall(SYS_getpgid, 0);
	prctl(PR_SET_NAME, "asked for");
	syscall(SYS_getpgid, 0);
	syscall(SYS_getpgid, 0);
}

/* Who takes a name that was asked for is recorded from there on. */
static void test_scope_rename(void **state)
{
	static const char *const comms[] = {"asked for"};
	struct trace t = {0};
	struct trace_bpf_options opt = own;
	opt.scope = (struct trace_scope){.comms = comms, .comm_cnt = 1};
	start(&t, &opt);
	int go, status;
	pid_t pid = spawn(subject_rename, &go);
	t.only = (uint32_t)pid;
	assert_int_equal(write(go, "", 1), 1);
	close(go);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	finish(&t);
	assert_non_null(find_call(&t, "getpgid", false, 1));
	assert_null(find_call(&t, "getpgid", false, 2));
	clear(&t);
}

#define CANNOT 77

static void subject_true(void)
{
	execl("/bin/true", "true", NULL);
	_exit(1);
}

/* What is recorded by who has another root: the names are those it opens files by. */
static int trace_in_chroot(const char *dir)
{
	static const char *const parts[] = {"/usr", "/sys", "/proc"}, *const links[] = {"usr/bin", "usr/lib", "usr/lib64"};
	if (unshare(CLONE_NEWNS) || mount("", "/", NULL, MS_PRIVATE | MS_REC, NULL) || mount("tmpfs", dir, "tmpfs", 0, NULL) || chdir(dir))
		return CANNOT;
	for (size_t i = 0; i < 3; i++)
		if (mkdir(parts[i] + 1, 0755) || mount(parts[i], parts[i] + 1, NULL, MS_BIND | MS_REC, NULL) || symlink(links[i], links[i] + 4))
			return CANNOT;
	struct trace t = {0};
	struct trace_bpf_options opt = own;
	opt.hook = hook;
	struct err *e = chroot(".") ? err_os(errno, "chroot") : trace_bpf_open(&opt, &t.bpf);
	int go, status;
	if (e || !(t.join = trace_join_new(keep, &t)))
		return 1;
	pid_t pid = spawn(subject_true, &go);
	if (trace_bpf_add(t.bpf, pid) || write(go, "", 1) != 1 || waitpid(pid, &status, 0) != pid || status)
		return 1;
	finish(&t);
	const struct kept *k = find_kind(&t, TRACE_EXEC, 0);
	return !k || strcmp(k->exe, "/usr/bin/true") != 0;
}

static void test_chroot(void **state)
{
	struct trace t = {0};
	start(&t, &own); /* which skips where nothing can be traced, and loads the library */
	finish(&t);
	clear(&t);
	char dir[] = "/tmp/scry-chroot-XXXXXX";
	assert_non_null(mkdtemp(dir));
	int status;
	pid_t pid = fork();
	if (!pid)
		_exit(trace_in_chroot(dir));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	rmdir(dir);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == CANNOT) {
		print_message("skipped: no other root can be made here\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_no_process(void **state)
{
	struct trace_bpf *t;
	uint32_t pid = 0x3ffff0;
	struct trace_bpf_options opt = own;
	opt.scope = (struct trace_scope){.pids = &pid, .pid_cnt = 1};
	struct err *e = trace_bpf_open(&opt, &t);
	assert_non_null(e);
	bool is_env = e->kind == ERR_ENV;
	assert_true(is_env || e->kind == ERR_NOT_FOUND);
	err_free(e);
	if (is_env)
		skip();
}

/* --- more than can be taken ------------------------------------------------------------------------------------------ */

#define STORM 20000

static void subject_storm(void)
{
	for (int i = 0; i < STORM; i++)
		syscall(SYS_getppid);
}

static void test_overload(void **state)
{
	struct trace t = {.only_count = true, .nr = number_of("getppid")};
	struct trace_bpf_options opt = own;
	opt.ring_len = 65536;
	start(&t, &opt);
	run(&t, subject_storm, false); /* nobody drains while it runs */
	finish(&t);
	assert_true(t.lost_events > 0 && t.lost_cnt > 0);
	assert_true(t.calls_cnt < STORM);
	assert_true(t.calls_cnt + t.lost_cnt >= STORM);
	clear(&t);
}

static void test_no_loss(void **state)
{
	struct trace t = {.only_count = true, .nr = number_of("getppid")};
	struct trace_bpf_options opt = own;
	opt.ring_len = 16u << 20; /* all of them fit */
	start(&t, &opt);
	run(&t, subject_storm, false);
	finish(&t);
	assert_int_equal(t.lost_cnt, 0);
	assert_int_equal(t.calls_cnt, STORM);
	clear(&t);
}

/* Another thread writes to the path while the call looks at it. */
static char raced[] = "/tmp";
static volatile bool race_ends;
static void *racer(void *arg)
{
	while (!race_ends)
		raced[1] = raced[1] == 't' ? 'T' : 't';
	return NULL;
}

static void subject_race(void)
{
	pthread_t thread;
	for (int i = 0; i < 100; i++)
		syscall(SYS_chdir, "/usr");
	if (pthread_create(&thread, NULL, racer, NULL))
		_exit(1);
	for (int i = 0; i < 3000; i++)
		syscall(SYS_chdir, raced);
	race_ends = true;
	pthread_join(thread, NULL);
}

/* Whether a race is met is chance; what is told of every call is not. Who is alone in its memory is not looked at twice. */
static void test_races(void **state)
{
	struct trace t = {0};
	struct trace_bpf_options opt = own;
	opt.plan.with_races = true;
	start(&t, &opt);
	run(&t, subject_race, true);
	finish(&t);
	size_t raced_cnt = 0, late_cnt = 0;
	for (size_t i = 0; i < 100; i++) /* who reads in /proc, too, is company for a moment */
		late_cnt += slot(find_call(&t, "chdir", false, i), 0, 0)->status == TRACE_LATE;
	assert_true(late_cnt || t.lost_cnt);
	for (size_t i = 0; i < 3000 && !t.lost_cnt; i++) {
		const struct trace_slot *s = slot(find_call(&t, "chdir", false, 100 + i), 0, 0);
		assert_true(s->status == TRACE_OK || s->status == TRACE_RACED);
		assert_int_equal(s->len, 4);
		raced_cnt += s->status == TRACE_RACED;
	}
	print_message("%zu of 3,000 paths were raced\n", raced_cnt);
	clear(&t);
}

static struct flock lock = {.l_type = F_WRLCK, .l_len = 10};
static int pair_fds[2], waiting;

static void subject_variants(void)
{
	char name[16];
	int fd = open("/dev/null", O_RDWR);
	syscall(SYS_fcntl, fd, F_SETLK, &lock);
	syscall(SYS_fcntl, fd, F_SETFL, O_NONBLOCK);
	syscall(SYS_fcntl, fd, F_GETFL);
	syscall(SYS_fcntl, fd, F_SETLK, (void *)8);
	syscall(SYS_prctl, PR_SET_NAME, "a name");
	syscall(SYS_prctl, PR_GET_NAME, name);
	syscall(SYS_ioctl, pair_fds[0], FIONREAD, &waiting);
	syscall(SYS_ioctl, fd, TIOCGWINSZ, &waiting);
}

/* Memory that is there or not as another argument says. */
static void test_variants(void **state)
{
	struct trace t = {0};
	start(&t, &own);
	assert_int_equal(pipe2(pair_fds, O_CLOEXEC), 0);
	assert_int_equal(write(pair_fds[1], "abc", 3), 3);
	run(&t, subject_variants, true);
	finish(&t);
	expect_slot(find_call(&t, "fcntl", false, 0), 2, 0, TRACE_LATE, (const char *)&lock, sizeof(lock));
	assert_null(slot(find_call(&t, "fcntl", false, 1), 2, 0));
	assert_null(slot(find_call(&t, "fcntl", false, 2), 2, 0));
	expect_slot(find_call(&t, "fcntl", false, 3), 2, 0, TRACE_FAULTED, "", 0);
	expect_slot(find_call(&t, "prctl", false, 0), 1, 0, TRACE_LATE, "a name", 6);
	expect_slot(find_call(&t, "prctl", false, 1), 1, 0, TRACE_OK, "a name", 6);
	expect_slot(find_call(&t, "ioctl", false, 0), 2, 0, TRACE_OK, "\3\0\0", 4);
	assert_null(slot(find_call(&t, "ioctl", false, 1), 2, 0)); /* it was refused, and wrote nothing */
	close(pair_fds[0]);
	close(pair_fds[1]);
	clear(&t);
}

static void test_times(void **state)
{
	struct trace t = {0};
	struct trace_bpf_options opt = own;
	opt.with_times = true;
	start(&t, &opt);
	run(&t, subject_args, true);
	finish(&t);
	for (size_t i = 0; find_call(&t, "chdir", false, i); i++)
		assert_true(find_call(&t, "chdir", false, i)->ev.ns > 0);
	clear(&t);
}

/* A container that comes into being while it is traced: a cgroup with the name that runtimes give. */
static char container_id[65]; /* another one in each run: several may go on at once */
static char container_dir[128];

static void name_container(void)
{
	snprintf(container_id, sizeof(container_id), "5c59%08x%052x", (unsigned)getpid(), 0x5c59u);
}

/* The first hierarchy of cgroups in which one can be made. */
static bool make_container(void)
{
	static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/freezer", "/sys/fs/cgroup/pids"};
	char path[160];
	for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
		snprintf(path, sizeof(path), "%s/cgroup.procs", roots[i]);
		snprintf(container_dir, sizeof(container_dir), "%s/scry-test-%s", roots[i], container_id);
		if (!access(path, W_OK) && !mkdir(container_dir, 0700))
			return true;
	}
	return false;
}

static void subject_contained(void)
{
	char path[160];
	snprintf(path, sizeof(path), "%s/cgroup.procs", container_dir);
	if (unshare(CLONE_NEWNS)) /* as containers do */
		_exit(1);
	int fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, "0", 1) != 1)
		_exit(1);
	close(fd);
	execl("/bin/sleep", "sleep", "100", NULL);
	_exit(1);
}

static void test_container(void **state)
{
	struct trace t = {0};
	start(&t, &own);
	if (!make_container()) {
		print_message("skipped: no cgroup can be made here\n");
		finish(&t);
		clear(&t);
		skip();
	}
	int go, status;
	pid_t pid = spawn(subject_contained, &go);
	assert_null(trace_bpf_add(t.bpf, pid));
	assert_int_equal(write(go, "", 1), 1);
	close(go);
	const char *container = NULL;
	for (bool ended = false; !container && !ended;) {
		ended = waitpid(pid, &status, WNOHANG) == pid;
		trace_bpf_wait(t.bpf, 2);
		drain(&t);
		for (size_t i = 0; i < t.list.cnt; i++)
			container = t.list.data[i]->container[0] ? t.list.data[i]->container : container;
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	finish(&t);
	assert_int_equal(rmdir(container_dir), 0);
	assert_non_null(container);
	assert_string_equal(container, container_id);
	clear(&t);
}

/* --- who is recorded changes while it runs ---------------------------------------------------------------------------- */

#define MARK(n) syscall(SYS_getpgid, 1000000000 + (n))

/* Whether that call was recorded. */
static bool has_mark(const struct trace *t, uint64_t n)
{
	const struct kept *k;
	for (size_t i = 0; (k = find_call(t, "getpgid", false, i)); i++) {
		if (k->ev.args[0] == 1000000000 + n)
			return true;
	}
	return false;
}

static void run_scoped(struct trace *t, const struct trace_scope *scope, void (*subject)(void))
{
	struct trace_bpf_options opt = own;
	opt.scope = *scope;
	start(t, &opt);
	int go, status;
	pid_t pid = spawn(subject, &go);
	t->only = (uint32_t)pid;
	assert_int_equal(write(go, "", 1), 1);
	close(go);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 7);
	finish(t);
}

static void subject_uid(void)
{
	MARK(1);
	if (syscall(SYS_setresuid, 4242, 0, 0))
		_exit(1);
	MARK(2);
	if (!fork()) {
		MARK(3);
		_exit(0);
	}
	wait(NULL);
	if (syscall(SYS_setreuid, 0, 0))
		_exit(1);
	MARK(4);
}

static void test_scope_uid(void **state)
{
	uint32_t uid = 4242;
	struct trace t = {0};
	run_scoped(&t, &(struct trace_scope){.uids = &uid, .uid_cnt = 1}, subject_uid);
	assert_false(has_mark(&t, 1));
	assert_true(has_mark(&t, 2) && has_mark(&t, 3));
	assert_false(has_mark(&t, 4));
	clear(&t);
}

static void subject_namespace(void)
{
	MARK(1);
	if (syscall(SYS_unshare, CLONE_NEWNS))
		_exit(1);
	MARK(2);
}

static void test_scope_namespace(void **state)
{
	static const char *const comms[] = {"unit-trace-bpf"};
	struct trace t = {0};
	struct stat st;
	assert_int_equal(stat("/proc/self/ns/mnt", &st), 0);
	uint32_t ns = (uint32_t)st.st_ino;
	run_scoped(&t, &(struct trace_scope){.comms = comms, .comm_cnt = 1, .mnt_nss = &ns, .mnt_ns_cnt = 1}, subject_namespace);
	assert_true(has_mark(&t, 1));
	assert_false(has_mark(&t, 2));
	clear(&t);
}

/* Moves this process to the cgroup whose folder is that one, or the one above it. */
static void move_to(bool above)
{
	char path[192];
	snprintf(path, sizeof(path), "%s/%scgroup.procs", container_dir, above ? "../" : "");
	int fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, "0", 1) != 1)
		_exit(1);
	close(fd);
}

static int moved[2];

static void *other_thread(void *arg)
{
	char byte;
	if (read(moved[0], &byte, 1) == 1)
		MARK(3);
	return NULL;
}

static void subject_moves(void)
{
	pthread_t thread;
	if (pipe(moved) || pthread_create(&thread, NULL, other_thread, NULL))
		_exit(1);
	MARK(1);
	move_to(false);
	MARK(2);
	if (write(moved[1], "", 1) != 1)
		_exit(1);
	pthread_join(thread, NULL);
	if (!fork()) {
		MARK(4);
		_exit(0);
	}
	wait(NULL);
	move_to(true);
	MARK(5);
}

/* Made before the trace or while it runs, named or below one that is. */
static void check_container(const char *root, bool is_before, bool is_below)
{
	struct trace t = {0};
	struct trace_bpf_options opt = own;
	char outer[112];
	char begin[13];
	snprintf(begin, sizeof(begin), "%.12s", container_id);
	opt.scope = (struct trace_scope){.container = begin};
	snprintf(outer, sizeof(outer), "%s/scry-test-%s", root, container_id);
	snprintf(container_dir, sizeof(container_dir), "%s%s", outer, is_below ? "/below" : "");
	if (!is_before)
		start(&t, &opt);
	assert_true(!mkdir(outer, 0700) && (!is_below || !mkdir(container_dir, 0700)));
	if (is_before)
		start(&t, &opt);
	int go, status;
	pid_t pid = spawn(subject_moves, &go);
	assert_int_equal(write(go, "", 1), 1);
	close(go);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	finish(&t);
	for (int i = 0; i < 1000 && rmdir(container_dir) && errno == EBUSY; i++) /* who has just left */
		usleep(1000);
	if (is_below)
		rmdir(outer);
	assert_int_equal(WEXITSTATUS(status), 7);
	assert_false(has_mark(&t, 1));
	assert_true(has_mark(&t, 2) && has_mark(&t, 3) && has_mark(&t, 4));
	assert_int_equal(has_mark(&t, 5), is_below); /* then it is the container's own again */
	clear(&t);
}

static void test_scope_container(void **state)
{
	static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/freezer", "/sys/fs/cgroup/pids"};
	bool any = false;
	if (hook == TRACE_HOOK_PERF) {
		print_message("skipped: perf's tracepoints do not show who is moved to a cgroup\n");
		skip();
	}
	for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
		char path[160], dir[160];
		snprintf(path, sizeof(path), "%s/cgroup.procs", roots[i]);
		snprintf(dir, sizeof(dir), "%s/scry-test-%d", roots[i], (int)getpid());
		if (access(path, W_OK) || mkdir(dir, 0700))
			continue;
		rmdir(dir);
		any = true;
		check_container(roots[i], false, false);
		check_container(roots[i], true, false);
		check_container(roots[i], i % 2, true);
	}
	if (!any) {
		print_message("skipped: no cgroup can be made here\n");
		skip();
	}
}

static void test_refused(void **state)
{
	struct trace_bpf *t;
	struct trace_bpf_options opt = own;
	opt.ring_len = 100000;
	struct err *e = trace_bpf_open(&opt, &t);
	assert_non_null(e);
	assert_true(e->kind == ERR_INVALID || e->kind == ERR_ENV);
	err_free(e);
}

int main(void)
{
	name_container();
	bad_page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(bad_page + 4096 - 5, "/edge", 5);
	mprotect(bad_page + 4096, 4096, PROT_NONE);
	static const struct { const char *name; CMUnitTestFunction test; } tests[] = {
#define TEST(name) {#name, test_##name}
		TEST(args), TEST(site), TEST(limits), TEST(ids), TEST(tree), TEST(no_tree), TEST(signal), TEST(scope), TEST(scope_exec),
		TEST(no_process), TEST(chroot), TEST(overload), TEST(scope_rename), TEST(scope_uid), TEST(scope_namespace), TEST(scope_container),
		TEST(no_loss), TEST(races), TEST(variants), TEST(times), TEST(container), TEST(refused),
#ifdef __x86_64__
		TEST(compat),
#endif
	};
	static enum trace_hook hooks[] = {TRACE_HOOK_BTF, TRACE_HOOK_RAW, TRACE_HOOK_PERF};
	static char names[ARRAY_LEN(hooks)][ARRAY_LEN(tests)][64];
	struct CMUnitTest list[ARRAY_LEN(hooks) * ARRAY_LEN(tests)] = {0};
	size_t cnt = 0;
	for (size_t i = 0; i < ARRAY_LEN(hooks); i++) {
		for (size_t j = 0; j < ARRAY_LEN(tests); j++) {
			snprintf(names[i][j], sizeof(names[i][j]), "%s, %s", tests[j].name, trace_hook_name(hooks[i]));
			list[cnt++] = (struct CMUnitTest){.name = names[i][j], .test_func = tests[j].test, .setup_func = set_hook,
				.initial_state = &hooks[i]};
		}
	}
	return cmocka_run_group_tests(list, NULL, NULL);
}
