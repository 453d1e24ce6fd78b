/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes and threads: launching, attaching, letting go. All is by PTRACE_SEIZE, which stops threads without a signal of their own
 * (PTRACE_INTERRUPT) and knows the group-stop of job control.
 */
#include "live/platform/plat_inf.h"

#include "base/child.h"
#include "base/cleanup.h"
#include "live/platform/plat_inf_int.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define TRACE_OPTIONS (PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEVFORKDONE | PTRACE_O_TRACEEXEC)
#define THREADS_MAX 65536

void plat_inf_init(struct plat_inf *inf)
{
	*inf = (struct plat_inf){.mem_fd = -1, .term_fd = -1};
}

struct plat_thread *plat_thread_find(struct plat_inf *inf, pid_t tid)
{
	for (size_t i = 0; i < inf->threads.cnt; i++)
		if (inf->threads.data[i]->tid == tid)
			return inf->threads.data[i];
	return NULL;
}

struct plat_thread *plat_thread_add(struct plat_inf *inf, pid_t tid)
{
	struct plat_thread *t = inf->threads.cnt < THREADS_MAX ? calloc(1, sizeof(*t)) : NULL;
	if (!t || !VEC_PUSH(&inf->threads, t)) {
		free(t);
		return NULL;
	}
	t->tid = tid;
	t->action = PLAT_CONT;
	return t;
}

static void thread_free(struct plat_thread *t)
{
	free(t->xstate);
	free(t);
}

void plat_thread_drop(struct plat_inf *inf, struct plat_thread *t)
{
	for (size_t i = 0; i < inf->threads.cnt; i++)
		if (inf->threads.data[i] == t) {
			memmove(&inf->threads.data[i], &inf->threads.data[i + 1], (inf->threads.cnt - i - 1) * sizeof(t));
			inf->threads.cnt--;
			break;
		}
	if (inf->current == t)
		inf->current = NULL;
	if (inf->in_vfork == t->tid)
		inf->in_vfork = 0;
	thread_free(t);
}

int plat_wait_for(pid_t tid, int *ret_status, int ms)
{
	sigset_t set;
	struct timespec now, end;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += ms / 1000;
	for (;;) {
		pid_t got = waitpid(tid, ret_status, __WALL | WNOHANG);
		if (got == tid)
			return 0;
		if (got < 0 && errno != EINTR)
			return -errno;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec > end.tv_sec)
			return -ETIMEDOUT;
		/* A signal that was taken already cannot wake us again. */
		(void)sigtimedwait(&set, NULL, &(struct timespec){.tv_nsec = 20 * 1000 * 1000});
	}
}

/* --- launching ------------------------------------------------------------------------------------------------------ */

/* The program's terminal: its output comes unchanged, and what is sent to it is not printed by it. */
static int open_terminal(int *ret_master)
{
	struct termios t;
	char name[64];
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (master < 0)
		return -errno;
	bool is_good = grantpt(master) == 0 && unlockpt(master) == 0 && !ptsname_r(master, name, sizeof(name));
	int slave = is_good ? open(name, O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;
	if (slave < 0) {
		int status = -errno;
		close(master);
		return status;
	}
	if (tcgetattr(slave, &t) == 0) {
		t.c_oflag &= ~(tcflag_t)OPOST;
		t.c_lflag &= ~(tcflag_t)ECHO;
		(void)tcsetattr(slave, TCSANOW, &t);
	}
	*ret_master = master;
	return slave;
}

struct launch_fds {
	int go[2], failed[2]; /* pipes */
	int slave;
};

/* In the new process. */
static void become(const struct plat_launch *how, const struct launch_fds *fds)
{
	char go;
	sigset_t none;
	int status = 0;
	child_give_signals();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (fds->slave >= 0) {
		setsid();
		(void)ioctl(fds->slave, TIOCSCTTY, 0);
	}
	for (int i = 0; i < 3 && !status; i++) {
		int fd = how->stdio[i] ? open(how->stdio[i], i ? O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY : O_RDONLY | O_NOCTTY, 0666) : fds->slave;
		if (how->stdio[i] && fd < 0)
			status = errno;
		else if (fd >= 0 && dup2(fd, i) < 0)
			status = errno;
	}
	if (!how->has_aslr)
		(void)personality(ADDR_NO_RANDOMIZE);
	if (read(fds->go[0], &go, 1) != 1)
		_exit(127);
	if (!status) {
		execvpe(how->argv[0], how->argv, how->envp);
		status = errno;
	}
	(void)!write(fds->failed[1], &status, sizeof(status));
	_exit(127);
}

/* Until the program is there. */
static int wait_for_exec(struct plat_inf *inf, int failed_fd)
{
	int status;
	for (;;) {
		if (waitpid(inf->pid, &status, __WALL) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (!WIFSTOPPED(status)) {
			int why = ECHILD;
			(void)!read(failed_fd, &why, sizeof(why));
			return -why;
		}
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
			return 0;
		int sig = status >> 16 ? 0 : WSTOPSIG(status);
		(void)ptrace(PTRACE_CONT, inf->pid, 0, sig);
	}
}

static int seize_new(struct plat_inf *inf, struct launch_fds *fds)
{
	if (ptrace(PTRACE_SEIZE, inf->pid, 0, TRACE_OPTIONS | PTRACE_O_EXITKILL) < 0)
		return -errno;
	if (write(fds->go[1], "g", 1) != 1)
		return -errno;
	close(fds->failed[1]);
	fds->failed[1] = -1;
	return wait_for_exec(inf, fds->failed[0]);
}

static int launched(struct plat_inf *inf)
{
	struct plat_thread *t = plat_thread_add(inf, inf->pid);
	if (!t)
		return -ENOMEM;
	t->is_stopped = true;
	t->reason = PLAT_STOP_EXEC;
	plat_inf_show(inf, t);
	plat_mem_renew(inf);
	return inf->mem_fd < 0 ? -EACCES : 0;
}

int plat_inf_launch(struct plat_inf *inf, const struct plat_launch *how)
{
	struct launch_fds fds = {{-1, -1}, {-1, -1}, -1};
	int status = pipe2(fds.go, O_CLOEXEC) < 0 || pipe2(fds.failed, O_CLOEXEC) < 0 ? -errno : 0;
	inf->term_fd = -1;
	if (!status && !how->own_stdio)
		status = fds.slave = open_terminal(&inf->term_fd);
	inf->pid = status < 0 ? 0 : fork();
	if (status >= 0 && !inf->pid)
		become(how, &fds);
	if (inf->pid < 0)
		status = -errno;
	inf->was_launched = true;
	inf->is_exited = false;
	if (inf->pid > 0)
		status = seize_new(inf, &fds);
	if (inf->pid > 0 && !status)
		status = launched(inf);
	int all[] = {fds.go[0], fds.go[1], fds.failed[0], fds.failed[1], fds.slave};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i] >= 0)
			close(all[i]);
	if (status < 0)
		plat_inf_kill(inf);
	return status;
}

/* --- attaching ------------------------------------------------------------------------------------------------------ */

/* Seizes the threads there are now that are not seized yet; how many. */
static int seize_threads(struct plat_inf *inf)
{
	char path[32];
	int cnt = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", inf->pid);
	DIR *d = opendir(path);
	if (!d)
		return -ESRCH;
	for (struct dirent *ent = readdir(d); ent && cnt >= 0; ent = readdir(d)) {
		pid_t tid = (pid_t)strtol(ent->d_name, NULL, 10);
		if (tid <= 0 || plat_thread_find(inf, tid))
			continue;
		if (ptrace(PTRACE_SEIZE, tid, 0, TRACE_OPTIONS) == 0)
			cnt = plat_thread_add(inf, tid) ? cnt + 1 : -ENOMEM;
		else if (tid == inf->pid)
			cnt = -errno;
	}
	closedir(d);
	return cnt;
}

int plat_inf_attach(struct plat_inf *inf, pid_t pid)
{
	int cnt;
	inf->pid = pid;
	inf->was_launched = false;
	inf->is_exited = false;
	/* Threads may be made meanwhile; those of seized ones are seized by the kernel. */
	do
		cnt = seize_threads(inf);
	while (cnt > 0);
	if (!cnt)
		plat_stop_all(inf);
	struct plat_thread *t = cnt < 0 ? NULL : plat_thread_find(inf, pid);
	if (!cnt && (!t || !t->is_stopped))
		cnt = -ESRCH;
	if (!cnt) {
		plat_mem_renew(inf);
		cnt = inf->mem_fd < 0 ? -EACCES : 0;
	}
	if (cnt < 0) {
		plat_inf_detach(inf, false);
		return cnt;
	}
	t->reason = PLAT_STOP_INTERRUPT;
	plat_inf_show(inf, t);
	return 0;
}

/* --- the end -------------------------------------------------------------------------------------------------------- */

static void forget(struct plat_inf *inf)
{
	for (size_t i = 0; i < inf->threads.cnt; i++)
		thread_free(inf->threads.data[i]);
	VEC_FREE(&inf->threads);
	VEC_FREE(&inf->breaks);
	VEC_FREE(&inf->watches);
	if (inf->mem_fd >= 0)
		close(inf->mem_fd);
	if (inf->term_fd >= 0)
		close(inf->term_fd);
	uint64_t passed = inf->passed, generation = inf->generation;
	plat_inf_init(inf);
	inf->passed = passed;
	inf->generation = generation + 1;
}

void plat_inf_kill(struct plat_inf *inf)
{
	int status;
	if (inf->pid > 0 && !inf->is_exited) {
		kill(inf->pid, SIGKILL);
		/* Its threads are ours to reap, too; the leader is the last. */
		for (size_t i = 0; i < inf->threads.cnt; i++)
			if (inf->threads.data[i]->tid != inf->pid)
				(void)plat_wait_for(inf->threads.data[i]->tid, &status, PLAT_STOP_WAIT_MS);
		do
			status = plat_wait_for(inf->pid, &status, PLAT_STOP_WAIT_MS) < 0 ? 0 : status;
		while (WIFSTOPPED(status));
	}
	forget(inf);
}

int plat_inf_detach(struct plat_inf *inf, bool stay_stopped)
{
	if (inf->pid > 0 && !inf->is_exited) {
		plat_stop_all(inf);
		if (inf->mem_fd >= 0 && !inf->in_vfork)
			plat_breaks_out(inf, inf->pid);
		inf->watches.cnt = 0;
		inf->dr7 = 0;
		for (size_t i = 0; i < inf->threads.cnt; i++) {
			struct plat_thread *t = inf->threads.data[i];
			int sig = t->deliver;
			if (!t->is_stopped)
				continue;
			if (t->has_status && WIFSTOPPED(t->status) && !(t->status >> 16))
				sig = WSTOPSIG(t->status);
			if (stay_stopped)
				sig = SIGSTOP;
			plat_watch_apply(inf, t);
			(void)plat_regs_flush(t);
			(void)ptrace(PTRACE_DETACH, t->tid, 0, sig == SIGTRAP ? 0 : sig);
		}
	}
	forget(inf);
	return 0;
}

void plat_inf_fini(struct plat_inf *inf)
{
	if (inf->was_launched)
		plat_inf_kill(inf);
	else
		(void)plat_inf_detach(inf, false);
}
