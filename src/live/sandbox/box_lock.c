/* SPDX-License-Identifier: Apache-2.0 */
#include "live/sandbox/box_int.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * The lock of a call. Every step is taken away from the process that will run the target's code, by the process itself,
 * before it jumps there; nothing can be undone. What is left: its own memory, and ending.
 *
 * The filter decides by number and arguments for every instruction pointer: the target can jump to any system call
 * instruction of the process. Calls it makes show as SIGSYS, which ends the run and says where.
 */
/* A number in hex at *p, which is moved behind it. */
static uint64_t take_hex(const char **p, const char *end)
{
	uint64_t v = 0;
	for (; *p < end; ++*p) {
		char c = **p;
		unsigned d = c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10) : 16;
		if (d > 15)
			break;
		v = v << 4 | d;
	}
	return v;
}

/* Pages of the kernel's that tell the time without a call. */
static struct {
	uint64_t from, len;
} clocks[8];
static unsigned clock_cnt;

static bool ends_in_clock(const char *p, const char *end)
{
	const char *name = memrchr(p, '[', (size_t)(end - p));
	return name && end - name > 5 && (!memcmp(name, "[vdso", 5) || !memcmp(name, "[vvar", 5));
}

/* One line of /proc/self/maps: "from-to perm ... name". */
static bool drop_line(const char *p, const char *end, const void *keep)
{
	uint64_t from = take_hex(&p, end);
	if (p >= end || *p++ != '-')
		return true;
	uint64_t to = take_hex(&p, end);
	if (clock_cnt < sizeof(clocks) / sizeof(clocks[0]) && ends_in_clock(p, end)) {
		clocks[clock_cnt].from = from;
		clocks[clock_cnt++].len = to - from;
	}
	if (end - p < 5 || p[4] != 's' || from == (uintptr_t)keep)
		return true;
	/* Whether a read-only one could be made writable only the attempt tells. */
	void *at = (void *)(uintptr_t)from;
	return mprotect(at, to - from, PROT_READ | PROT_WRITE) || !munmap(at, to - from);
}

bool box_drop_shared(const void *keep)
{
	static char text[1 << 20];
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	bool ok = fd >= 0;
	while (ok && len < sizeof(text)) {
		ssize_t n = read(fd, text + len, sizeof(text) - len);
		if (n == 0)
			break;
		ok = n > 0 || errno == EINTR;
		len += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0)
		close(fd);
	/* A list that did not fit was not looked at whole. */
	ok = ok && len < sizeof(text);
	for (const char *p = text, *end = text + len; ok && p < end;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		ok = drop_line(p, nl ? nl : end, keep);
		p = nl ? nl + 1 : end;
	}
	return ok;
}

void box_drop_clocks(void)
{
	for (unsigned i = 0; i < clock_cnt; i++)
		munmap((void *)(uintptr_t)clocks[i].from, clocks[i].len);
}

uint64_t box_data_len(void)
{
	char text[128];
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));
	const char *p = text, *end = text + (n > 0 ? n : 0);
	if (fd >= 0)
		close(fd);
	/* The sixth number, in pages. */
	for (unsigned i = 0; i < 5; i++) {
		p = memchr(p, ' ', (size_t)(end - p));
		if (!p)
			return 0;
		p++;
	}
	uint64_t pages = 0;
	for (; p < end && *p >= '0' && *p <= '9'; p++)
		pages = pages * 10 + (uint64_t)(*p - '0');
	return pages * 4096;
}

unsigned long box_namespaces(void)
{
	return CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
}

static bool lock_limits(uint64_t mem_len, uint32_t cpu_s)
{
	const struct {
		int what;
		rlim_t max;
	} limits[] = {
		{RLIMIT_CPU, cpu_s}, {RLIMIT_FSIZE, 0}, {RLIMIT_CORE, 0}, {RLIMIT_NOFILE, 0}, {RLIMIT_NPROC, 0},
		{RLIMIT_MEMLOCK, 0}, {RLIMIT_MSGQUEUE, 0}, {RLIMIT_DATA, mem_len},
		/* What the stack of the process grows by is not counted as data. */
		{RLIMIT_STACK, BOX_OWN_STACK_LEN},
	};
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		/* At the hard limit of time the kernel sends SIGKILL, which says nothing; SIGXCPU comes at the soft one, a second before. */
		struct rlimit r, old;
		if (getrlimit((__rlimit_resource_t)limits[i].what, &old))
			return false;
		r.rlim_cur = MIN(limits[i].max, old.rlim_max);
		r.rlim_max = MIN(limits[i].max + (limits[i].what == RLIMIT_CPU), old.rlim_max);
		if (setrlimit((__rlimit_resource_t)limits[i].what, &r))
			return false;
	}
	return true;
}

/* No path of the file system, where the kernel can do that. */
static bool lock_paths(void)
{
	const struct landlock_ruleset_attr all = {
		.handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |
				     LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR |
				     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
				     LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
				     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
				     LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM,
	};
	long fd = syscall(SYS_landlock_create_ruleset, &all, sizeof(all), 0);
	if (fd < 0)
		return false;
	bool ok = !syscall(SYS_landlock_restrict_self, fd, 0);
	close((int)fd);
	return ok;
}

#define LOAD(off) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (off))
#define IF_NOT(k, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (k), 0, (skip))
#define RET(what) BPF_STMT(BPF_RET | BPF_K, (what))

static bool lock_calls(void)
{
	struct sock_filter ops[] = {
		LOAD(offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		RET(SECCOMP_RET_KILL_PROCESS), /* int $0x80 */
		LOAD(offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1),
		RET(SECCOMP_RET_KILL_PROCESS), /* x32 */
		IF_NOT(SYS_exit_group, 1),
		RET(SECCOMP_RET_ALLOW),
		IF_NOT(SYS_rt_sigreturn, 1),
		RET(SECCOMP_RET_ALLOW),
		/* The harness reads the monotonic clock around the call, which tells nothing else. */
		IF_NOT(SYS_clock_gettime, 4),
		LOAD(offsetof(struct seccomp_data, args)),
		IF_NOT(CLOCK_MONOTONIC, 1),
		RET(SECCOMP_RET_ALLOW),
		RET(SECCOMP_RET_TRAP),
		/* Memory of trials: private, of no file, where there was none, never executable; RLIMIT_DATA counts it. */
		IF_NOT(SYS_mmap, 5),
		LOAD(offsetof(struct seccomp_data, args) + 16),
		IF_NOT(PROT_READ | PROT_WRITE, 3),
		LOAD(offsetof(struct seccomp_data, args) + 24),
		IF_NOT(MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, 1),
		RET(SECCOMP_RET_ALLOW),
		RET(SECCOMP_RET_TRAP),
	};
	const struct sock_fprog prog = {.len = sizeof(ops) / sizeof(ops[0]), .filter = ops};
	return !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

bool box_lock(struct box *b)
{
	if (syscall(SYS_close_range, 0u, ~0u, 0u) != 0)
		for (int fd = 0; fd < 4096; fd++)
			close(fd);
	prctl(PR_SET_DUMPABLE, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return false;
	if (!lock_paths())
		b->shared->missing |= BOX_NO_LANDLOCK;
	if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV))
		b->shared->missing |= BOX_NO_TSC;
	return lock_limits(b->data_len + b->opts.mem_len, b->opts.cpu_s) && lock_calls();
}
