/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/exec_lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of kernels newer than these headers (landlock(7)). */
#define FS_REFER ((uint64_t)1 << 13)
#define FS_TRUNCATE ((uint64_t)1 << 14)
#define FS_IOCTL_DEV ((uint64_t)1 << 15)
#define SCOPE_UNIX_AND_SIGNAL 3u

#define FILE_MAX ((rlim_t)256 << 20)
#define FILES_MAX 256

/* --- process numbers of its own --- */

bool exec_number_begin(void)
{
	return !unshare(CLONE_NEWPID);
}

bool exec_number_end(void)
{
	int fd = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	bool good = fd >= 0 && !setns(fd, CLONE_NEWPID);
	if (fd >= 0)
		close(fd);
	return good;
}

bool exec_adopt(void)
{
	return !prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* --- descriptors and shared memory --- */

#define NOTED_MAX 64

/* What a fork has to look at, found out before it is made: of the process that forks, which has one thread. */
static struct {
	struct { void *at; size_t len; } shared[NOTED_MAX];
	int readable[NOTED_MAX]; /* descriptors of plain files that were opened for reading alone */
	unsigned shared_cnt, readable_cnt;
} noted;

/* One line of /proc/self/maps: "from-to perm ..."; false when it does not fit. */
static bool note_mapping(const char *line)
{
	uintptr_t from, to;
	char perm[5];
	if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, perm) != 3 || perm[3] != 's')
		return true;
	if (noted.shared_cnt == NOTED_MAX)
		return false;
	noted.shared[noted.shared_cnt].at = (void *)from;
	noted.shared[noted.shared_cnt++].len = to - from;
	return true;
}

/* The target's, whose size and times are looked at, are among them. */
static void note_file(int fd)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);
	if (flags >= 0 && (flags & (O_ACCMODE | O_PATH)) == O_RDONLY && !fstat(fd, &st) && S_ISREG(st.st_mode) && noted.readable_cnt < NOTED_MAX)
		noted.readable[noted.readable_cnt++] = fd;
}

struct err *exec_note(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	DIR *dir = opendir("/proc/self/fd");
	char *line = NULL;
	size_t cap = 0;
	bool good = maps && dir;
	noted.shared_cnt = noted.readable_cnt = 0;
	while (good && getline(&line, &cap, maps) > 0)
		good = note_mapping(line);
	for (struct dirent *d = good ? readdir(dir) : NULL; d; d = readdir(dir)) {
		if (d->d_name[0] != '.' && strtol(d->d_name, NULL, 10) > 2)
			note_file((int)strtol(d->d_name, NULL, 10));
	}
	free(line);
	if (maps)
		fclose(maps);
	if (dir)
		closedir(dir);
	return good ? NULL : err_new(ERR_ENV, "/proc/self cannot be read, or has more in it than is dealt with");
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

struct err *exec_part(const int *keep, unsigned keep_cnt)
{
	int all[NOTED_MAX + 16];
	unsigned cnt = 0, from = 3;
	/* Should the process that forked it be gone, so is this one. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned i = 0; i < noted.readable_cnt; i++)
		all[cnt++] = noted.readable[i];
	for (unsigned i = 0; i < keep_cnt && cnt < ARRAY_LEN(all); i++)
		all[cnt++] = keep[i];
	qsort(all, cnt, sizeof(all[0]), compare);
	for (unsigned i = 0; i <= cnt; i++) {
		unsigned to = i < cnt ? (unsigned)all[i] : ~0u;
		if (to > from && syscall(SYS_close_range, from, to - (i < cnt), 0))
			return err_os(errno, "closing descriptors");
		from = MAX(from, to + (i < cnt));
	}
	/* What it writes must not reach anybody. Whether a read-only mapping could be made writable only the attempt tells. */
	for (unsigned i = 0; i < noted.shared_cnt; i++) {
		if (!mprotect(noted.shared[i].at, noted.shared[i].len, PROT_READ | PROT_WRITE) && munmap(noted.shared[i].at, noted.shared[i].len))
			return err_os(errno, "unmapping shared memory");
	}
	return NULL;
}

/* --- limits and privileges --- */

static uint64_t mapped_len(pid_t pid)
{
	char path[64];
	unsigned long long pages = 0;
	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	FILE *f = fopen(path, "re");
	if (f && fscanf(f, "%llu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static struct err *limit_one(pid_t pid, int what, rlim_t max)
{
	struct rlimit old;
	if (prlimit(pid, (__rlimit_resource_t)what, NULL, &old))
		return err_os(errno, "reading a resource limit");
	const struct rlimit now = {MIN(max, old.rlim_max), MIN(max, old.rlim_max)};
	return prlimit(pid, (__rlimit_resource_t)what, &now, NULL) ? err_os(errno, "setting a resource limit") : NULL;
}

struct err *exec_limit(pid_t pid, uint64_t mem_len, uint64_t cpu_s)
{
	uint64_t mapped = mapped_len(pid);
	if (!mapped)
		return err_new(ERR_ENV, "/proc/%d/statm cannot be read", (int)pid);
	struct err *e = limit_one(pid, RLIMIT_AS, mapped + mem_len);
	return e ? e : limit_one(pid, RLIMIT_CPU, cpu_s);
}

static struct err *lock_limits(void)
{
	static const struct {
		int what;
		rlim_t max;
	} limits[] = {{RLIMIT_CORE, 0}, {RLIMIT_FSIZE, FILE_MAX}, {RLIMIT_NOFILE, FILES_MAX}, {RLIMIT_MEMLOCK, 0}, {RLIMIT_MSGQUEUE, 0}};
	struct err *e = NULL;
	for (size_t i = 0; i < ARRAY_LEN(limits) && !e; i++)
		e = limit_one(0, limits[i].what, limits[i].max);
	return e;
}

/* Root keeps what lets it read; nobody keeps more than that. */
static struct err *lock_privileges(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct now[2], wanted[2];
	if (syscall(SYS_capget, &head, now))
		return err_os(errno, "reading the process's capabilities");
	memset(wanted, 0, sizeof(wanted));
	wanted[0].permitted = wanted[0].effective = now[0].permitted & (1u << CAP_DAC_READ_SEARCH);
	if (syscall(SYS_capset, &head, wanted) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return err_os(errno, "giving up the process's capabilities");
	return NULL;
}

/* --- files --- */

static long landlock_version(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

const char *exec_lock_missing(void)
{
	return landlock_version() < 1 ? "landlock" : "";
}

static bool allow_below(int rules, const char *path, uint64_t access)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = open(path, O_PATH | O_CLOEXEC)};
	bool good = rule.parent_fd >= 0 && !syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	if (rule.parent_fd >= 0)
		close(rule.parent_fd);
	return good;
}

/* False: this kernel cannot. */
static bool lock_paths(const char *folder, struct err **ret_err)
{
	long version = landlock_version();
	struct {
		uint64_t fs, net, scoped;
	} attr = {.fs = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
			LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
			LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM};
	if (version < 1)
		return false;
	attr.fs |= version >= 2 ? FS_REFER : 0;
	attr.fs |= version >= 3 ? FS_TRUNCATE : 0;
	attr.fs |= version >= 5 ? FS_IOCTL_DEV : 0;
	attr.scoped = version >= 6 ? SCOPE_UNIX_AND_SIGNAL : 0;
	size_t len = version >= 6 ? sizeof(attr) : version >= 4 ? 16 : 8;
	int rules = (int)syscall(SYS_landlock_create_ruleset, &attr, len, 0);
	uint64_t files = attr.fs & ~(FS_IOCTL_DEV | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK);
	bool good = rules >= 0 && allow_below(rules, folder, files) &&
		    allow_below(rules, "/dev/null", LANDLOCK_ACCESS_FS_WRITE_FILE | (attr.fs & FS_TRUNCATE)) &&
		    !syscall(SYS_landlock_restrict_self, rules, 0);
	if (!good)
		*ret_err = err_os(errno, "locking files with landlock");
	if (rules >= 0)
		close(rules);
	return true;
}

/* --- system calls --- */

#if defined(__x86_64__)
#define LOCK_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define LOCK_ARCH AUDIT_ARCH_AARCH64
#endif

/* What computing, threads, reading files and writing to descriptors needs. Whatever else fails with EPERM. */
static const int calls_allowed[] = {
	SYS_read, SYS_write, SYS_futex, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise, SYS_brk, SYS_close, SYS_fstat,
	SYS_newfstatat, SYS_statx, SYS_lseek, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_preadv, SYS_pwritev, SYS_getdents64,
	SYS_readlinkat, SYS_faccessat, SYS_faccessat2, SYS_getcwd, SYS_chdir, SYS_fchdir, SYS_statfs, SYS_fstatfs, SYS_dup, SYS_dup3,
	SYS_fsync, SYS_fdatasync, SYS_ftruncate, SYS_fallocate, SYS_fadvise64, SYS_sendfile, SYS_copy_file_range, SYS_pipe2,
	SYS_ppoll, SYS_pselect6, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait, SYS_eventfd2, SYS_timerfd_create, SYS_timerfd_settime,
	SYS_timerfd_gettime, SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg, SYS_shutdown, SYS_getsockname, SYS_getpeername,
	SYS_getsockopt, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigpending, SYS_rt_sigtimedwait, SYS_rt_sigsuspend,
	SYS_sigaltstack, SYS_nanosleep, SYS_clock_nanosleep, SYS_clock_gettime, SYS_clock_getres, SYS_gettimeofday, SYS_times, SYS_getrusage,
	SYS_sysinfo, SYS_uname, SYS_getpid, SYS_gettid, SYS_getppid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getgroups,
	SYS_getpgid, SYS_getsid, SYS_getresuid, SYS_getresgid, SYS_getpriority, SYS_sched_yield, SYS_sched_getaffinity,
	SYS_sched_getparam, SYS_sched_getscheduler, SYS_getcpu, SYS_membarrier, SYS_rseq, SYS_set_robust_list, SYS_get_robust_list,
	SYS_set_tid_address, SYS_getrandom, SYS_umask, SYS_wait4, SYS_waitid, SYS_setitimer, SYS_getitimer, SYS_restart_syscall, SYS_exit,
	SYS_exit_group, SYS_mincore, SYS_msync,
#ifdef SYS_getrlimit
	SYS_getrlimit, SYS_setrlimit,
#endif
#ifdef SYS_open
	SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_getdents, SYS_dup2, SYS_pipe, SYS_poll, SYS_select, SYS_epoll_create, SYS_epoll_wait,
	SYS_eventfd, SYS_pause, SYS_alarm, SYS_time, SYS_getpgrp, SYS_arch_prctl,
#endif
};

/* What changes folders; landlock says which. Without landlock these are refused, and so is opening for writing. */
static const int calls_of_paths[] = {
	SYS_unlinkat, SYS_mkdirat, SYS_renameat2, SYS_linkat, SYS_symlinkat, SYS_renameat, SYS_truncate,
#ifdef SYS_open
	SYS_unlink, SYS_mkdir, SYS_rmdir, SYS_rename, SYS_link, SYS_symlink, SYS_creat,
#endif
};

#define FILTER_MAX 600
#define CALLS_MAX 512 /* numbers beyond are refused */

enum verdict { REFUSED, ALLOWED, ASKED /* its arguments say */ };

/* Of these the arguments decide, in lock_calls(). */
static const int calls_asked[] = {
	SYS_openat, SYS_ioctl, SYS_fcntl, SYS_sched_setaffinity, SYS_clone, SYS_clone3, SYS_kill, SYS_tgkill, SYS_prlimit64, SYS_prctl,
#ifdef SYS_open
	SYS_open,
#endif
};

struct filter {
	struct sock_filter ops[FILTER_MAX];
	unsigned short cnt;
	uint8_t verdicts[CALLS_MAX];
	unsigned short asked_at[FILTER_MAX]; /* jumps to where arguments are looked at */
	unsigned short asked_cnt;
};

static void add(struct filter *f, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
	if (f->cnt < FILTER_MAX)
		f->ops[f->cnt++] = (struct sock_filter){code, yes, no, k};
}

#define LOAD (BPF_LD | BPF_W | BPF_ABS)
#define JUMP(test) (BPF_JMP | (test) | BPF_K)
#define RET (BPF_RET | BPF_K)
#define ARG(i) ((uint32_t)offsetof(struct seccomp_data, args) + 8 * (i))
#define FAIL(os_errno) (SECCOMP_RET_ERRNO | (uint32_t)(os_errno))

static void set_verdict(struct filter *f, const int *calls, size_t cnt, enum verdict v)
{
	for (size_t i = 0; i < cnt; i++)
		f->verdicts[calls[i]] = (uint8_t)v;
}

/* Instructions that decide about the numbers from `from` to before `to` by halving: the kernel runs a new filter once for each
 * number, which a list of comparisons makes a third of a millisecond long. Depth: log2 of CALLS_MAX. */
static void add_tree(struct filter *f, unsigned from, unsigned to)
{
	unsigned first = from + 1;
	while (first < to && f->verdicts[first] == f->verdicts[from])
		first++;
	if (first >= to) {
		if (f->verdicts[from] == ASKED && f->asked_cnt < FILTER_MAX) {
			f->asked_at[f->asked_cnt++] = f->cnt;
			add(f, BPF_JMP | BPF_JA, 0, 0, 0);
		} else {
			add(f, RET, f->verdicts[from] == ALLOWED ? SECCOMP_RET_ALLOW : FAIL(EPERM), 0, 0);
		}
		return;
	}
	unsigned middle = MAX(first, from + (to - from) / 2);
	add(f, JUMP(BPF_JGE), middle, 0, 1);
	unsigned short jump = f->cnt;
	add(f, BPF_JMP | BPF_JA, 0, 0, 0);
	add_tree(f, from, middle);
	if (jump < FILTER_MAX)
		f->ops[jump].k = (uint32_t)(f->cnt - jump - 1);
	add_tree(f, middle, to);
}

/* Call `nr` is allowed when its argument is `k` (JEQ), or has one of the bits (JSET); else it fails. */
static void allow_if(struct filter *f, int nr, unsigned arg, uint16_t test, uint32_t k)
{
	add(f, JUMP(BPF_JEQ), (uint32_t)nr, 0, 4);
	add(f, LOAD, ARG(arg), 0, 0);
	add(f, JUMP(test), k, 0, 1);
	add(f, RET, SECCOMP_RET_ALLOW, 0, 0);
	add(f, RET, FAIL(EPERM), 0, 0);
}

/* Call `nr` is allowed without these bits. */
static void allow_unless(struct filter *f, int nr, unsigned arg, uint32_t bits)
{
	add(f, JUMP(BPF_JEQ), (uint32_t)nr, 0, 4);
	add(f, LOAD, ARG(arg), 0, 0);
	add(f, JUMP(BPF_JSET), bits, 0, 1);
	add(f, RET, FAIL(EACCES), 0, 0);
	add(f, RET, SECCOMP_RET_ALLOW, 0, 0);
}

static void refuse(struct filter *f, int nr, int os_errno)
{
	add(f, JUMP(BPF_JEQ), (uint32_t)nr, 0, 1);
	add(f, RET, FAIL(os_errno), 0, 0);
}

/* Call `nr` is allowed when its second argument is one of these; else it fails. */
static void allow_requests(struct filter *f, int nr, const uint32_t *requests, size_t cnt, int os_errno)
{
	add(f, JUMP(BPF_JEQ), (uint32_t)nr, 0, (uint8_t)(2 * cnt + 2));
	add(f, LOAD, ARG(1), 0, 0);
	for (size_t i = 0; i < cnt; i++) {
		add(f, JUMP(BPF_JEQ), requests[i], 0, 1);
		add(f, RET, SECCOMP_RET_ALLOW, 0, 0);
	}
	add(f, RET, FAIL(os_errno), 0, 0);
}

/* Asking a terminal for its size, or a descriptor how much there is to read; nothing that types into a terminal. */
static const uint32_t ioctls_allowed[] = {TCGETS, TIOCGWINSZ, FIONREAD, FIOCLEX, FIONCLEX, FIONBIO};
/* Nobody is told of a descriptor's readiness by a signal (any signal, to any process of the user), and nothing is locked: a lock on a file of
 * the store, which can be had by reading it, would keep others from writing. */
static const uint32_t fcntls_allowed[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL};

static struct err *lock_calls(bool has_landlock)
{
#ifdef LOCK_ARCH
	static struct filter f; /* zero: of a process that runs this once */
	uint32_t pid = (uint32_t)getpid(), writing = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;
	add(&f, LOAD, offsetof(struct seccomp_data, arch), 0, 0);
	add(&f, JUMP(BPF_JEQ), LOCK_ARCH, 1, 0);
	add(&f, RET, SECCOMP_RET_KILL_PROCESS, 0, 0);
	add(&f, LOAD, offsetof(struct seccomp_data, nr), 0, 0);
#ifdef __x86_64__
	add(&f, JUMP(BPF_JGE), 0x40000000u, 0, 1); /* x32 */
	add(&f, RET, SECCOMP_RET_KILL_PROCESS, 0, 0);
#endif
	add(&f, JUMP(BPF_JGE), CALLS_MAX, 0, 1);
	add(&f, RET, FAIL(EPERM), 0, 0);
	set_verdict(&f, calls_allowed, ARRAY_LEN(calls_allowed), ALLOWED);
	set_verdict(&f, calls_asked, ARRAY_LEN(calls_asked), ASKED);
	if (has_landlock)
		set_verdict(&f, calls_of_paths, ARRAY_LEN(calls_of_paths), ALLOWED);
	add_tree(&f, 0, CALLS_MAX);
	for (unsigned i = 0; i < f.asked_cnt; i++)
		f.ops[f.asked_at[i]].k = (uint32_t)(f.cnt - f.asked_at[i] - 1);
	allow_unless(&f, SYS_openat, 2, has_landlock ? 0 : writing);
#ifdef SYS_open
	allow_unless(&f, SYS_open, 1, has_landlock ? 0 : writing);
#endif
	allow_requests(&f, SYS_ioctl, ioctls_allowed, ARRAY_LEN(ioctls_allowed), ENOTTY);
	allow_requests(&f, SYS_fcntl, fcntls_allowed, ARRAY_LEN(fcntls_allowed), EPERM);
	/* Its own threads', not another process's. */
	allow_if(&f, SYS_sched_setaffinity, 0, BPF_JEQ, 0);
	/* Threads, no processes; a new one asks by clone3 first, whose flags a filter cannot see. */
	allow_if(&f, SYS_clone, 0, BPF_JSET, CLONE_THREAD);
	refuse(&f, SYS_clone3, ENOSYS);
	allow_if(&f, SYS_kill, 0, BPF_JEQ, pid);
	allow_if(&f, SYS_tgkill, 0, BPF_JEQ, pid);
	allow_if(&f, SYS_prlimit64, 0, BPF_JEQ, 0);
	allow_if(&f, SYS_prctl, 0, BPF_JEQ, PR_SET_NAME);
	add(&f, RET, FAIL(EPERM), 0, 0);
	const struct sock_fprog prog = {.len = f.cnt, .filter = f.ops};
	if (f.cnt >= FILTER_MAX)
		return err_new(ERR_INTERNAL, "the system call filter is too long");
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) ? err_new(ERR_ENV, "the kernel refuses a system call filter (errno %d)", errno)
								  : NULL;
#else
	(void)has_landlock;
	return err_new(ERR_ENV, "there is no system call filter for this machine yet");
#endif
}

struct err *exec_lock(const struct exec_lock *lock)
{
	struct err *e = exec_part(lock->keep, lock->keep_cnt);
	if (!e)
		e = lock_limits();
	if (!e)
		e = lock_privileges();
	bool has_landlock = !e && lock_paths(lock->folder, &e);
	return e ? e : lock_calls(has_landlock);
}
