/* SPDX-License-Identifier: Apache-2.0 */
#include "base/child_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * The lock of a child that parses hostile bytes. The filter knows call numbers only, and the few
 * arguments that make a harmless call harmful: memory may not become executable, and a signal may
 * only be sent to oneself, which is how abort() ends a process.
 */
#if defined(__x86_64__)
#define CHILD_AUDIT_ARCH AUDIT_ARCH_X86_64
#define CHILD_X32_BIT 0x40000000u
#elif defined(__aarch64__)
#define CHILD_AUDIT_ARCH AUDIT_ARCH_AARCH64
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CHILD_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define CHILD_IS_SANITIZED 1
#endif
#endif

/* The sanitizers keep several bytes for each of ours. */
#ifdef CHILD_IS_SANITIZED
#define CHILD_MEM_FACTOR 8
#else
#define CHILD_MEM_FACTOR 1
#endif

/* Calls that may happen. */
static const int child_allowed[] = {
	SYS_read, SYS_write, SYS_close, SYS_munmap, SYS_mremap, SYS_brk, SYS_madvise, SYS_futex, SYS_exit,
	SYS_exit_group, SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_getrandom, SYS_clock_gettime, SYS_fstat,
	SYS_lseek, SYS_pread64, SYS_getpid, SYS_gettid,
	SYS_sysinfo,           /* qsort() asks how much memory there is */
	SYS_sched_getaffinity, /* malloc() asks how many processors there are */
	SYS_restart_syscall,
#ifdef CHILD_IS_SANITIZED
	SYS_sigaltstack, SYS_sched_yield,
#endif
};

/* Calls that do not happen but fail: stdio asks the first two of any stream, libdw the others of its file,
 * and both do without. */
static const struct {
	int nr;
	int os_errno;
} child_refused[] = {
	{SYS_newfstatat, EBADF},
	{SYS_ioctl, ENOTTY},
	{SYS_readlinkat, ENOENT},
#ifdef SYS_readlink
	{SYS_readlink, ENOENT},
#endif
};

#define CHILD_FILTER_MAX 200

struct child_filter {
	struct sock_filter ops[CHILD_FILTER_MAX];
	unsigned short cnt;
};

static void child_filter_add(struct child_filter *f, struct sock_filter op)
{
	if (f->cnt < CHILD_FILTER_MAX)
		f->ops[f->cnt++] = op;
}

static void child_filter_load(struct child_filter *f, size_t off)
{
	child_filter_add(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)off));
}

static void child_filter_ret(struct child_filter *f, uint32_t action)
{
	child_filter_add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/* If the loaded word equals (JEQ), has bits of (JSET) or is at least (JGE) `k`: `action`. */
static void child_filter_if(struct child_filter *f, uint16_t test, uint32_t k, uint32_t action)
{
	child_filter_add(f, (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | test | BPF_K), k, 0, 1));
	child_filter_ret(f, action);
}

/* Low half of argument `i` of the call. */
static size_t child_arg_off(unsigned i)
{
	size_t high_first = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0;
	return offsetof(struct seccomp_data, args) + 8 * i + high_first;
}

/* Call `nr` is allowed unless its argument `arg` has (JSET) or is not (JEQ) `k`. */
static void child_filter_arg(struct child_filter *f, int nr, unsigned arg, uint16_t test, uint32_t k)
{
	bool is_mask = test == BPF_JSET;
	child_filter_add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 4));
	child_filter_load(f, child_arg_off(arg));
	child_filter_add(f, (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | test | BPF_K), k, 0, 1));
	child_filter_ret(f, is_mask ? SECCOMP_RET_TRAP : SECCOMP_RET_ALLOW);
	child_filter_ret(f, is_mask ? SECCOMP_RET_ALLOW : SECCOMP_RET_TRAP);
}

/* Calls of another architecture's table end the process; then the number of the call is loaded. */
static void child_filter_begin(struct child_filter *f)
{
	child_filter_load(f, offsetof(struct seccomp_data, arch));
	child_filter_add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CHILD_AUDIT_ARCH, 1, 0));
	child_filter_ret(f, SECCOMP_RET_KILL_PROCESS);
	child_filter_load(f, offsetof(struct seccomp_data, nr));
#ifdef CHILD_X32_BIT
	child_filter_if(f, BPF_JGE, CHILD_X32_BIT, SECCOMP_RET_KILL_PROCESS);
#endif
}

struct err *child_lock_calls(bool is_lenient)
{
#ifdef CHILD_AUDIT_ARCH
	struct child_filter f = {.cnt = 0};
	child_filter_begin(&f);
	for (size_t i = 0; i < ARRAY_LEN(child_allowed); i++)
		child_filter_if(&f, BPF_JEQ, (uint32_t)child_allowed[i], SECCOMP_RET_ALLOW);
	for (size_t i = 0; i < ARRAY_LEN(child_refused); i++)
		child_filter_if(&f, BPF_JEQ, (uint32_t)child_refused[i].nr,
				SECCOMP_RET_ERRNO | (uint32_t)child_refused[i].os_errno);
	child_filter_arg(&f, SYS_mmap, 2, BPF_JSET, PROT_EXEC);
	child_filter_arg(&f, SYS_mprotect, 2, BPF_JSET, PROT_EXEC);
	child_filter_arg(&f, SYS_tgkill, 0, BPF_JEQ, (uint32_t)getpid());
	child_filter_ret(&f, is_lenient ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_TRAP);
	if (f.cnt >= CHILD_FILTER_MAX)
		return err_new(ERR_INTERNAL, "the system call filter is too long");
	struct sock_fprog prog = {.len = f.cnt, .filter = f.ops};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		return err_new(ERR_ENV, "the kernel refuses a system call filter (errno %d)", errno);
	return NULL;
#else
	return err_new(ERR_ENV, "there is no system call filter for this machine yet");
#endif
}

/* Calls that fail for another program: what would make, change or remove files, reach the network or other processes. */
static const int child_tool_refused[] = {
	SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_listen, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_unlinkat,
	SYS_renameat2, SYS_mkdirat, SYS_mknodat, SYS_fchmodat, SYS_fchownat, SYS_linkat, SYS_symlinkat, SYS_truncate, SYS_utimensat,
	SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr, SYS_bpf, SYS_mount, SYS_umount2, SYS_unshare, SYS_setns, SYS_perf_event_open, SYS_keyctl,
	SYS_tkill, SYS_kill, SYS_openat2, SYS_io_uring_setup, SYS_userfaultfd, SYS_memfd_create, SYS_renameat, SYS_fchmod, SYS_fchown,
	SYS_name_to_handle_at, SYS_open_by_handle_at,
#ifdef SYS_open
	SYS_unlink, SYS_rename, SYS_mkdir, SYS_rmdir, SYS_chmod, SYS_chown, SYS_lchown, SYS_link, SYS_symlink, SYS_creat, SYS_mknod, SYS_utime,
	SYS_utimes,
#endif
};

#ifdef CHILD_AUDIT_ARCH
/* Call `nr` fails when its argument `arg` has one of the bits; the number is loaded again for what follows. */
static void child_filter_no_write(struct child_filter *f, int nr, unsigned arg)
{
	child_filter_add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 4));
	child_filter_load(f, child_arg_off(arg));
	child_filter_add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, 0, 1));
	child_filter_ret(f, SECCOMP_RET_ERRNO | EACCES);
	child_filter_ret(f, SECCOMP_RET_ALLOW);
}
#endif

/* Newer kernels know more to refuse than the headers here may. */
#define CHILD_LL_REFER (UINT64_C(1) << 13)
#define CHILD_LL_TRUNCATE (UINT64_C(1) << 14)

static long landlock_abi(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

bool child_lock_has_folders(void)
{
	return landlock_abi() >= 1;
}

bool child_lock_folder(const char *path)
{
	long abi = landlock_abi();
	if (abi < 1)
		return true;
	uint64_t own = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG | (abi >= 3 ? CHILD_LL_TRUNCATE : 0);
	const struct landlock_ruleset_attr all = {
		.handled_access_fs = own | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
				     LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
				     LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM | (abi >= 2 ? CHILD_LL_REFER : 0),
	};
	struct landlock_path_beneath_attr rule = {.allowed_access = own, .parent_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)};
	long fd = syscall(SYS_landlock_create_ruleset, &all, sizeof(all.handled_access_fs), 0);
	bool ok = fd >= 0 && rule.parent_fd >= 0 && !syscall(SYS_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) &&
		  !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !syscall(SYS_landlock_restrict_self, fd, 0);
	if (rule.parent_fd >= 0)
		close(rule.parent_fd);
	if (fd >= 0)
		close((int)fd);
	return ok;
}

struct err *child_lock_tool(bool may_write)
{
#ifdef CHILD_AUDIT_ARCH
	struct child_filter f = {.cnt = 0};
	child_filter_begin(&f);
	for (size_t i = 0; i < ARRAY_LEN(child_tool_refused); i++)
		child_filter_if(&f, BPF_JEQ, (uint32_t)child_tool_refused[i], SECCOMP_RET_ERRNO | EPERM);
	if (!may_write)
		child_filter_no_write(&f, SYS_openat, 2);
#ifdef SYS_open
	if (!may_write)
		child_filter_no_write(&f, SYS_open, 1);
#endif
	child_filter_ret(&f, SECCOMP_RET_ALLOW);
	if (f.cnt >= CHILD_FILTER_MAX)
		return err_new(ERR_INTERNAL, "the system call filter is too long");
	struct sock_fprog prog = {.len = f.cnt, .filter = f.ops};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		return err_new(ERR_ENV, "the kernel refuses a system call filter (errno %d)", errno);
	return NULL;
#else
	return err_new(ERR_ENV, "there is no system call filter for this machine yet");
#endif
}

struct err *child_lock_shared(const void *keep)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	if (!maps)
		return err_new(ERR_ENV, "/proc/self/maps cannot be read (errno %d)", errno);
	char *line = NULL;
	size_t cap = 0;
	struct err *e = NULL;
	while (!e && getline(&line, &cap, maps) > 0) {
		uintptr_t from, to;
		char perm[5];
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, perm) != 3 || perm[3] != 's' ||
		    from == (uintptr_t)keep)
			continue;
		/* Whether a read-only mapping could be made writable only the attempt tells. */
		if (mprotect((void *)from, to - from, PROT_READ | PROT_WRITE) == 0 &&
		    munmap((void *)from, to - from) != 0)
			e = err_os(errno, "unmapping shared memory");
	}
	free(line);
	fclose(maps);
	return e;
}

/* Bytes mapped now. */
static struct err *child_mapped_len(uint64_t *ret)
{
	FILE *statm = fopen("/proc/self/statm", "re");
	uint64_t pages = 0;
	bool ok = statm && fscanf(statm, "%" SCNu64, &pages) == 1;
	if (statm)
		fclose(statm);
	if (!ok)
		return err_new(ERR_ENV, "/proc/self/statm cannot be read");
	*ret = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return NULL;
}

struct err *child_lock_limits(uint64_t max_mem_len, unsigned cpu_s)
{
	uint64_t mapped = 0;
	struct err *e = child_mapped_len(&mapped);
	if (e)
		return e;
	uint64_t mem = mapped + MIN(max_mem_len, (uint64_t)1 << 48) * CHILD_MEM_FACTOR;
	const struct {
		int what;
		rlim_t soft, hard;
	} limits[] = {
		{RLIMIT_AS, mem, mem},
		{RLIMIT_CPU, cpu_s, (rlim_t)cpu_s + 1},
		{RLIMIT_CORE, 0, 0},
		{RLIMIT_FSIZE, 0, 0},
		{RLIMIT_NPROC, 0, 0},
		{RLIMIT_NOFILE, 0, 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		struct rlimit old;
		if (getrlimit((__rlimit_resource_t)limits[i].what, &old))
			return err_os(errno, "reading a resource limit");
		struct rlimit now = {MIN(limits[i].soft, old.rlim_max), MIN(limits[i].hard, old.rlim_max)};
		if (setrlimit((__rlimit_resource_t)limits[i].what, &now))
			return err_os(errno, "setting a resource limit");
	}
	return NULL;
}

static void child_close_from(int first)
{
	if (close_range((unsigned)first, ~0u, 0) == 0)
		return;
	long max = sysconf(_SC_OPEN_MAX);
	for (int fd = first; fd < (max > 0 && max < 65536 ? max : 65536); fd++)
		close(fd);
}

struct err *child_lock_files(int *fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return err_os(errno, "/dev/null");
	/* Out of the way of 0, 1 and 2, should the parent have run without them. */
	int out = fcntl(*fd, F_DUPFD_CLOEXEC, 3);
	if (out < 0)
		return err_os(errno, "duplicating the answer's descriptor");
	for (int i = 0; i <= 2; i++) {
		if (dup2(null, i) < 0)
			return err_os(errno, "closing descriptor %d", i);
	}
	if (out != 3 && dup2(out, 3) < 0)
		return err_os(errno, "moving the answer's descriptor");
	child_close_from(4);
	*fd = 3;
	return NULL;
}

const char *child_call_name(int nr)
{
#define CALL(name) {SYS_##name, #name}
	static const struct {
		int nr;
		const char *name;
	} calls[] = {
		CALL(openat), CALL(socket), CALL(connect), CALL(bind), CALL(sendto), CALL(clone), CALL(clone3),
		CALL(execve), CALL(execveat), CALL(kill), CALL(tkill), CALL(tgkill), CALL(ptrace), CALL(mmap), CALL(mprotect),
		CALL(unlinkat), CALL(mkdirat), CALL(readlinkat), CALL(faccessat), CALL(statx), CALL(getdents64),
		CALL(prctl), CALL(setrlimit), CALL(prlimit64), CALL(rt_sigaction), CALL(nanosleep), CALL(clock_nanosleep),
		CALL(wait4), CALL(pipe2), CALL(dup), CALL(dup3), CALL(fcntl), CALL(ftruncate), CALL(fsync), CALL(uname),
		CALL(getcwd), CALL(getuid), CALL(getrusage), CALL(ppoll), CALL(io_uring_setup), CALL(bpf),
		CALL(process_vm_readv), CALL(process_vm_writev), CALL(memfd_create), CALL(setsid), CALL(umask), CALL(writev),
		CALL(sigaltstack), CALL(sched_yield), CALL(getppid),
#ifdef SYS_open
		CALL(open), CALL(fork), CALL(vfork), CALL(stat), CALL(lstat), CALL(access), CALL(unlink),
		CALL(rename), CALL(mkdir), CALL(creat), CALL(readlink), CALL(pipe), CALL(dup2), CALL(poll), CALL(select),
		CALL(pause), CALL(alarm), CALL(time), CALL(gettimeofday),
#endif
	};
#undef CALL
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		if (calls[i].nr == nr)
			return calls[i].name;
	}
	return NULL;
}
