/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SUBJECT RULE yes|no FOLDER: does what a rule looks for, or what comes near it and is none of it. Nothing outside FOLDER and the process
 * changes: files of the system are opened without a byte written, or are named where none can be.
 * Exit status 0: done; 77: the machine does not let it be done.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *folder;
static char self[4096];
static char *const none[] = {NULL};

static void touch(const char *path, int flags)
{
	int fd = open(path, flags, 0700);
	if (fd >= 0)
		close(fd);
}

static const char *in(const char *name)
{
	static char path[4][4096];
	static unsigned at;
	char *p = path[at++ % 4];
	snprintf(p, 4096, "%s/%s", folder, name);
	return p;
}

static void copy(int to)
{
	char buf[65536];
	int from = open(self, O_RDONLY);
	for (ssize_t n; from >= 0 && (n = read(from, buf, sizeof(buf))) > 0;) {
		if (write(to, buf, (size_t)n) != n)
			exit(77);
	}
	close(from);
}

/* A copy of this program, which ends at once when it is started without words. */
static const char *program(const char *name)
{
	const char *path = in(name);
	unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);
	if (fd < 0)
		exit(77);
	copy(fd);
	close(fd);
	return path;
}

static void run(const char *path, char *const argv[], char *const envp[])
{
	pid_t pid = fork();
	if (!pid) {
		execve(path, argv, envp);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

static void run_plain(const char *path)
{
	char *argv[] = {(char *)path, NULL};
	run(path, argv, none);
}

static int server(struct sockaddr_in *ret)
{
	socklen_t len = sizeof(*ret);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	*ret = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (fd < 0 || bind(fd, (struct sockaddr *)ret, len) || listen(fd, 1) || getsockname(fd, (struct sockaddr *)ret, &len))
		exit(77);
	return fd;
}

/* A connection of this process to itself; the client's end or the server's becomes standard input. */
static void stdio_over(int which)
{
	struct sockaddr_in at;
	int srv = server(&at), cl = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(cl, (struct sockaddr *)&at, sizeof(at)))
		exit(77);
	int peer = accept(srv, NULL, NULL);
	int null = open("/dev/null", O_RDONLY);
	dup2(which == 0 ? cl : which == 1 ? peer : null, 0);
}

static void unix_connect(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	connect(fd, (struct sockaddr *)&at, sizeof(at));
}

static void pages(int prot, int then)
{
	char *p = mmap(NULL, 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED || (then >= 0 && mprotect(p, 4096, then)))
		exit(77);
}

static void memory_program(void)
{
	int fd = (int)syscall(SYS_memfd_create, "x", 0);
	if (fd < 0)
		exit(77);
	copy(fd);
	pid_t pid = fork();
	if (!pid) {
		char *argv[] = {"x", NULL};
		syscall(SYS_execveat, fd, "", argv, none, AT_EMPTY_PATH);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

static void needs(long ret)
{
	if (ret < 0)
		exit(77);
}

static char zero[128];

/* Rules about paths: the one that is found, and one beside it. */
static const struct {
	const char *rule, *path;
	int flags;
	const char *other;
	int other_flags;
} paths[] = {
	{"accounts-changed", "/etc/passwd", O_WRONLY, "/etc/passwd", O_RDONLY},
	{"aslr-recon", "/proc/sys/kernel/randomize_va_space", O_RDONLY, "/proc/sys/kernel/ostype", O_RDONLY},
	{"boot-script-changed", "/etc/init.d/none/none", O_WRONLY, "/etc/init.d/none/none", O_RDONLY},
	{"core-pattern", "/proc/sys/kernel/core_pattern", O_WRONLY, "/proc/sys/kernel/core_pattern", O_RDONLY},
	{"kernel-memory", "/proc/kcore", O_RDONLY, "/proc/meminfo", O_RDONLY},
	{"kernel-setting", "/proc/sys/kernel/kptr_restrict", O_WRONLY, "/proc/sys/kernel/kptr_restrict", O_RDONLY},
	{"kernel-symbols", "/proc/kallsyms", O_RDONLY, "/proc/meminfo", O_RDONLY},
	{"loader-changed", "/lib64/ld-none/none", O_WRONLY, "/lib64/ld-linux-x86-64.so.2", O_RDONLY},
	{"orchestrator-keys", "/etc/kubernetes/pki/ca.key", O_RDONLY, "/etc/kubernetes/pki", O_RDONLY},
	{"orchestrator-token", "/var/run/secrets/kubernetes.io/serviceaccount/token", O_RDONLY, "/var/run/secrets/token", O_RDONLY},
	{"passwords-read", "/etc/shadow", O_RDONLY, "/etc/passwd", O_RDONLY},
	{"preload-file", "/etc/ld.so.preload", O_WRONLY, "/etc/ld.so.preload", O_RDONLY},
	{"proc-mem-read", "/proc/1/mem", O_RDONLY, "/proc/self/mem", O_RDONLY},
	{"proc-mem-write", "/proc/self/mem", O_RDWR, "/proc/self/mem", O_RDONLY},
	{"scheduled-task", "/etc/cron.d/none/none", O_WRONLY, "/etc/cron.d", O_RDONLY},
	{"scheduler-recon", "/proc/sched_debug", O_RDONLY, "/proc/schedstat", O_RDONLY},
	{"ssh-keys-read", "/root/.ssh/id_ed25519", O_RDONLY, "/root/.ssh/id_ed25519.pub", O_RDONLY},
	{"sudoers-changed", "/etc/sudoers.d/none/none", O_WRONLY, "/etc/sudoers", O_RDONLY},
	{"sysrq", "/proc/sysrq-trigger", O_WRONLY, "/proc/uptime", O_RDONLY},
	{"login-script-changed", "/etc/profile.d/none/none", O_WRONLY, "/etc/profile", O_RDONLY},
	{"cgroup-notify", "/nowhere/notify_on_release", O_WRONLY, "/nowhere/notify_on_release", O_RDONLY},
	{"cgroup-release-agent", "/nowhere/release_agent", O_WRONLY, "/nowhere/release_agent", O_RDONLY},
};

static bool by_path(const char *rule, bool yes)
{
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		if (!strcmp(paths[i].rule, rule)) {
			touch(yes ? paths[i].path : paths[i].other, yes ? paths[i].flags : paths[i].other_flags);
			return true;
		}
	}
	return false;
}

static bool by_memory(const char *rule, bool yes)
{
	struct iovec v = {zero, 8};
	if (!strcmp(rule, "anti-debug"))
		ptrace(yes ? PTRACE_TRACEME : PTRACE_CONT, 0, 0, 0);
	else if (!strcmp(rule, "ptrace-injection"))
		ptrace(yes ? PTRACE_POKETEXT : PTRACE_PEEKTEXT, 1 << 29, zero, 0);
	else if (!strcmp(rule, "vm-write-injection"))
		yes ? process_vm_writev(getpid(), &v, 1, &v, 1, 0) : process_vm_readv(getpid(), &v, 1, &v, 1, 0);
	else if (!strcmp(rule, "write-then-execute"))
		pages(PROT_READ | PROT_WRITE, yes ? PROT_READ | PROT_EXEC : PROT_READ);
	else if (!strcmp(rule, "writable-executable"))
		pages(yes ? PROT_READ | PROT_WRITE | PROT_EXEC : PROT_READ | PROT_EXEC, -1);
	else if (!strcmp(rule, "userfaultfd"))
		yes ? needs(syscall(SYS_userfaultfd, 1)) : (void)getpid();
	else if (!strcmp(rule, "io-uring"))
		yes ? needs(syscall(SYS_io_uring_setup, 1, zero)) : (void)syscall(SYS_io_uring_setup, 1, NULL);
	else if (!strcmp(rule, "aslr-off"))
		needs(personality(yes ? ADDR_NO_RANDOMIZE : 0xffffffff));
	else
		return false;
	return true;
}

static bool by_program(const char *rule, bool yes)
{
	char *preload[] = {yes ? "LD_PRELOAD=" : "XLD_PRELOAD=x", NULL}, *argv[] = {self, NULL};
	static char with[64] = "LD_PRELOAD=/nowhere/x.so";
	if (!strcmp(rule, "preload-environment")) {
		preload[0] = yes ? with : preload[0];
		run(self, argv, preload);
	} else if (!strcmp(rule, "fileless-exec")) {
		yes ? memory_program() : run_plain(self);
	} else if (!strcmp(rule, "dropped-executable")) {
		yes ? run_plain(program("dropped")) : (void)program("dropped");
		if (!yes)
			run_plain(self);
	} else if (!strcmp(rule, "hidden-executable")) {
		run_plain(program(yes ? ".hidden" : "seen"));
	} else if (!strcmp(rule, "hidden-file")) {
		char path[64];
		snprintf(path, sizeof(path), "/tmp/%sscry-rule-%d", yes ? "." : "", (int)getpid());
		touch(path, O_WRONLY | O_CREAT);
		unlink(path);
	} else if (!strcmp(rule, "service-shell")) {
		struct sockaddr_in at;
		char *shell[] = {"sh", "-c", ":", NULL};
		if (yes)
			server(&at);
		run("/bin/sh", shell, none);
	} else if (!strcmp(rule, "webserver-shell")) {
		char *words[] = {(char *)program(yes ? "nginx" : "engine"), "shell", "yes", (char *)folder, NULL};
		run(words[0], words, none);
	} else if (!strcmp(rule, "shell")) { /* the server of webserver-shell */
		char *shell[] = {"sh", "-c", ":", NULL};
		run("/bin/sh", shell, none);
	} else {
		return false;
	}
	return true;
}

static bool by_kernel(const char *rule, bool yes)
{
	if (!strcmp(rule, "kernel-module"))
		yes ? (void)syscall(SYS_finit_module, -1, "", 0) : (void)getpid();
	else if (!strcmp(rule, "kernel-module-removed"))
		yes ? (void)syscall(SYS_delete_module, "no such module", O_NONBLOCK) : (void)getpid();
	else if (!strcmp(rule, "kexec"))
		yes ? (void)syscall(SYS_kexec_load, 0, 0, NULL, ~0ul) : (void)getpid();
	else if (!strcmp(rule, "bpf-program"))
		syscall(SYS_bpf, yes ? 5 : 0, zero, 0);
	else if (!strcmp(rule, "disk-mounted"))
		mount(yes ? "/dev/sdzz" : "none", "/nowhere/at/all", yes ? "ext4" : "tmpfs", 0, NULL);
	else if (!strcmp(rule, "namespace-entered"))
		yes ? needs(setns(open("/proc/self/ns/uts", O_RDONLY), 0)) : (void)setns(-1, 0);
	else if (!strcmp(rule, "root-changed"))
		yes ? needs(chroot("/")) : (void)chroot("/nowhere/at/all");
	else if (!strcmp(rule, "ssh-keys-changed"))
		yes ? (void)rename("/nowhere/x", "/nowhere/.ssh/authorized_keys") : (void)rename("/nowhere/x", "/nowhere/.ssh/known_hosts");
	else if (!strcmp(rule, "log-erased"))
		yes ? (void)unlink("/var/log/none/none") : (void)access("/var/log/none/none", W_OK);
	else if (!strcmp(rule, "container-socket"))
		unix_connect(yes ? "/nowhere/docker.sock" : "/nowhere/other.sock");
	else if (!strcmp(rule, "stdio-to-client"))
		stdio_over(yes ? 0 : 1);
	else if (!strcmp(rule, "stdio-to-server"))
		stdio_over(yes ? 1 : 2);
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	if (argc == 1)
		return 0;
	if (argc != 4 || readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 2;
	bool yes = !strcmp(argv[2], "yes");
	folder = argv[3];
	return by_path(argv[1], yes) || by_memory(argv[1], yes) || by_program(argv[1], yes) || by_kernel(argv[1], yes) ? 0 : 2;
}
