/* SPDX-License-Identifier: Apache-2.0 */
#include "live/sandbox/box.h"

#include "live/sandbox/box_int.h"

#include "arch/arch.h"
#include "format/fmt.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * The zygote is forked by the bare system call, into namespaces of its own where the kernel allows; it may come from a
 * process with threads, so it calls nothing that takes a lock. It answers one request at a time over a socket.
 */
const char *box_end_name(enum box_end e)
{
	static const char *const names[] = {"returned", "exited", "signal", "syscall", "timeout", "killed", "broken"};
	return e < BOX_END_COUNT ? names[e] : "unknown";
}

/* --- the zygote --------------------------------------------------------------------------------------------------- */
static void reset_signals(void)
{
	struct sigaction act = {.sa_handler = SIG_DFL};
	sigemptyset(&act.sa_mask);
	for (int sig = 1; sig < NSIG; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			sigaction(sig, &act, NULL);
	/* SIGCHLD is waited for, not delivered. */
	sigset_t chld;
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_SETMASK, &chld, NULL);
}

/* Closes every descriptor but these. */
static void keep_files(int a, int b, int c)
{
	int keep[3] = {a, b, c};
	for (unsigned i = 0; i < 3; i++)
		for (unsigned k = i + 1; k < 3; k++)
			if (keep[k] < keep[i]) {
				int swap = keep[i];
				keep[i] = keep[k];
				keep[k] = swap;
			}
	unsigned from = 0;
	for (unsigned i = 0; i < 3; i++) {
		unsigned fd = (unsigned)keep[i];
		if (fd > from)
			syscall(SYS_close_range, from, fd - 1, 0u);
		from = fd + 1;
	}
	syscall(SYS_close_range, from, ~0u, 0u);
}

/* How often a zygote that waits for a call looks whether anybody still wants to know. */
#define LOOK_NS 250000000u

static bool is_alone(int fd)
{
	struct pollfd p = {.fd = fd};
	return poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR);
}

/* Waits for the end of the call; false when its time is over or nobody waits for it. */
static bool wait_call(const struct box *b, int fd, pid_t pid, int *ret_status, struct rusage *ret_used)
{
	uint64_t now = box_now_ns(), end = now + b->opts.wall_ms * UINT64_C(1000000);
	sigset_t chld;
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	for (;;) {
		/* One that was left over from the call before ends the wait early. */
		if (wait4(pid, ret_status, WNOHANG, ret_used) == pid)
			return true;
		if (now >= end || is_alone(fd))
			return false;
		const struct timespec limit = {0, (long)MIN(end - now, (uint64_t)LOOK_NS)};
		syscall(SYS_rt_sigtimedwait, &chld, NULL, &limit, _NSIG / 8);
		now = box_now_ns();
	}
}

static struct box_report one_call(struct box *b, int fd)
{
	struct box_report r = {0};
	struct rusage used = {0};
	b->shared->state = BOX_STATE_STARTED;
	pid_t own = getpid();
	long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == own)
			box_run(b);
		syscall(SYS_exit_group, 1);
	}
	if (pid < 0) {
		r.status = -1;
		return r;
	}
	if (!wait_call(b, fd, (pid_t)pid, &r.status, &used)) {
		kill((pid_t)pid, SIGKILL);
		r.is_timeout = 1;
		while (wait4((pid_t)pid, &r.status, 0, &used) < 0 && errno == EINTR)
			;
	}
	/* Who blocks SIGXCPU is killed at the hard limit. */
	r.is_timeout |= WIFSIGNALED(r.status) && WTERMSIG(r.status) == SIGKILL &&
			used.ru_utime.tv_sec + used.ru_stime.tv_sec >= b->opts.cpu_s;
	return r;
}

_Noreturn static void zygote(struct box *b, int fd)
{
	/* A key at the terminal is for who asked, and ends the call through it. */
	setsid();
	reset_signals();
	keep_files(fd, b->opts.fd, b->opts.code ? b->opts.code_fd : fd);
	const struct box_object target = {b->opts.im, b->slide}, code = {b->opts.code, b->code_slide};
	const char *why = box_drop_shared(b->shared) ? box_map_places() : "memory shared with others cannot be given up";
	if (!why)
		why = box_map_object(&target, b->opts.im, b->opts.fd);
	if (!why && b->opts.code)
		why = box_map_object(&code, b->opts.im, b->opts.code_fd);
	b->data_len = box_data_len();
	keep_files(fd, fd, fd);
	box_shadow_init();
	box_import_init();
	box_cover_init();
	box_drop_clocks();
	char text[128] = "";
	if (why)
		strncpy(text, why, sizeof(text) - 1);
	if (write(fd, text, sizeof(text)) != (ssize_t)sizeof(text) || why)
		syscall(SYS_exit_group, 1);
	for (;;) {
		char go;
		ssize_t n = read(fd, &go, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n != 1)
			break;
		struct box_report r = one_call(b, fd);
		if (write(fd, &r, sizeof(r)) != (ssize_t)sizeof(r))
			break;
	}
	for (;;)
		syscall(SYS_exit_group, 0);
}

/* --- the parent --------------------------------------------------------------------------------------------------- */
uint64_t box_slide(const struct box *b)
{
	return b->slide;
}

const char *box_missing(const struct box *b)
{
	return b->missing;
}

static struct err *start(struct box *b)
{
	int fds[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return err_os(errno, "a socket for the sandbox");
	long pid = syscall(SYS_clone, box_namespaces() | SIGCHLD, 0, 0, 0, 0);
	b->has_namespaces = pid >= 0;
	if (pid < 0)
		pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		zygote(b, fds[1]);
	int os_errno = errno;
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return err_os(os_errno, "a process for the sandbox");
	}
	b->pid = (int)pid;
	b->fd = fds[0];
	char why[128];
	ssize_t n;
	do
		n = recv(b->fd, why, sizeof(why), 0);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(why))
		return err_new(ERR_BAD_INPUT, "the target cannot be mapped for running: the process that did so died");
	why[sizeof(why) - 1] = '\0';
	return why[0] ? err_new(ERR_BAD_INPUT, "the target cannot be mapped for running: %s", why) : NULL;
}

/* Segments that lie beyond the end of the file would be holes that kill who looks. */
static struct err *check_length(const struct image *im, int fd, const char *what)
{
	const struct space *s = image_space(im);
	struct stat st;
	if (fstat(fd, &st))
		return err_os(errno, "%s", what);
	for (uint32_t i = 0; i < s->seg_cnt; i++)
		if (!s->segs[i].is_extern && s->segs[i].file_len &&
		    (s->segs[i].file_len > (uint64_t)st.st_size || s->segs[i].file_off > (uint64_t)st.st_size - s->segs[i].file_len))
			return err_new(ERR_BAD_INPUT, "%s is shorter than its segments say: it is not run", what);
	return NULL;
}

struct err *box_open(const struct box_opts *opts, struct box **ret)
{
	const struct image_meta *m = image_meta(opts->im);
	*ret = NULL;
#ifndef __x86_64__
	return err_new(ERR_UNSUPPORTED, "functions can be run on x86-64 only");
#endif
	if (m->arch != ARCH_ID_X86_64 || m->fmt_type > FMT_TYPE_SHARED)
		return err_new(ERR_UNSUPPORTED, "only programs and libraries for x86-64 can be run");
	struct err *e = check_length(opts->im, opts->fd, "the target");
	if (!e && opts->code)
		e = check_length(opts->code, opts->code_fd, "the compiled code");
	if (e)
		return e;
	struct box *b = calloc(1, sizeof(*b));
	if (!b)
		return &err_nomem;
	b->opts = *opts;
	b->fd = -1;
	const struct space *s = image_space(opts->im);
	if (m->fmt_type != FMT_TYPE_EXEC && s->seg_cnt)
		b->slide = BOX_BASE - (s->segs[0].va & ~(uint64_t)4095);
	const struct space *cs = opts->code ? image_space(opts->code) : NULL;
	if (cs && cs->seg_cnt)
		b->code_slide = BOX_CODE - (cs->segs[0].va & ~(uint64_t)4095);
	void *shared = mmap(NULL, sizeof(*b->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		free(b);
		return &err_nomem;
	}
	b->shared = shared;
	e = start(b);
	if (e) {
		box_close(b);
		return e;
	}
	*ret = b;
	return NULL;
}

void box_close(struct box *b)
{
	if (!b)
		return;
	if (b->fd >= 0)
		close(b->fd);
	if (b->pid > 0) {
		/* The init of its pid namespace takes everything in it along. */
		kill(b->pid, SIGKILL);
		while (waitpid(b->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	munmap(b->shared, sizeof(*b->shared));
	free(b);
}

static struct err *put_args(struct box *b, const struct box_arg *args, unsigned cnt)
{
	struct box_shared *s = b->shared;
	uint64_t *const ints[6] = {&s->regs.rdi, &s->regs.rsi, &s->regs.rdx, &s->regs.rcx, &s->regs.r8, &s->regs.r9};
	unsigned int_cnt = 0, float_cnt = 0;
	uint32_t used = 0;
	if (cnt > BOX_ARG_MAX)
		return err_new(ERR_INVALID, "at most %u arguments", BOX_ARG_MAX);
	for (unsigned i = 0; i < cnt; i++) {
		const struct box_arg *a = &args[i];
		uint64_t v = a->is_va ? a->value + b->slide : a->value;
		if (a->kind == BOX_ARG_BUF) {
			if (a->len > BOX_BUF_TOTAL - used)
				return err_new(ERR_INVALID, "the buffers are more than %u bytes together", BOX_BUF_TOTAL);
			v = BOX_BUFS + used;
			if (a->bytes)
				memcpy(s->bufs + used, a->bytes, a->len);
			else
				memset(s->bufs + used, 0, a->len);
			used += a->len;
		}
		if (a->kind == BOX_ARG_F64 || a->kind == BOX_ARG_F32) {
			if (float_cnt < 8)
				s->regs.xmm[float_cnt++][0] = v;
			else
				s->stack[s->stack_cnt++] = v;
		} else if (int_cnt < 6) {
			*ints[int_cnt++] = v;
		} else {
			s->stack[s->stack_cnt++] = v;
		}
	}
	/* The number of vector registers, for functions with variable arguments. */
	s->regs.rax = float_cnt;
	s->bufs_len = used;
	return NULL;
}

/* An address of the process as one of the file, when it lies in the target. */
static uint64_t to_file(const struct box *b, uint64_t addr, bool *ret_is_inside)
{
	*ret_is_inside = space_seg_of_va(image_space(b->opts.im), addr - b->slide) >= 0;
	return *ret_is_inside ? addr - b->slide : addr;
}

static void note(struct box *b, const char *what)
{
	size_t had = strlen(b->missing);
	if (!strstr(b->missing, what) && had + strlen(what) + 3 < sizeof(b->missing)) {
		memcpy(b->missing + had, ", ", 2);
		memcpy(b->missing + (had ? had + 2 : 0), what, strlen(what) + 1);
	}
}

void box_take_result(struct box *b, const struct box_report *report, uint32_t bufs_len, struct box_result *ret)
{
	/* The target may have written anything here, and nobody writes any more. */
	const struct box_shared *s = b->shared;
	if (s->missing & BOX_NO_LANDLOCK)
		note(b, "landlock");
	if (s->missing & BOX_NO_TSC)
		note(b, "trapping the time stamp counter");
	if (!b->has_namespaces)
		note(b, "namespaces of its own");
	ret->import = UINT32_MAX;
	ret->syscall_nr = -1;
	if (report->is_timeout || (WIFSIGNALED(report->status) && WTERMSIG(report->status) == SIGXCPU)) {
		ret->end = BOX_TIMEOUT;
		return;
	}
	if (WIFSIGNALED(report->status)) {
		ret->end = BOX_KILLED;
		ret->signal = WTERMSIG(report->status);
		return;
	}
	if (s->state != BOX_STATE_DONE || s->end > BOX_TIMEOUT) {
		ret->end = BOX_BROKEN;
		return;
	}
	uint32_t import_cnt;
	image_imports(b->opts.im, &import_cnt);
	ret->end = (enum box_end)s->end;
	ret->rax = s->regs.rax;
	ret->rdx = s->regs.out_rdx;
	memcpy(ret->xmm0, s->regs.xmm[0], sizeof(ret->xmm0));
	memcpy(ret->xmm1, s->regs.xmm[1], sizeof(ret->xmm1));
	memcpy(ret->st0, s->regs.st0, sizeof(ret->st0));
	ret->has_st0 = s->regs.has_st0 == 7;
	ret->signal = ret->end == BOX_SIGNAL ? s->signal : 0;
	ret->syscall_nr = ret->end == BOX_SYSCALL ? s->syscall_nr : -1;
	ret->ip = to_file(b, s->ip, &ret->is_ip_inside);
	ret->fault = to_file(b, s->fault, &ret->is_fault_inside);
	ret->import = ret->end == BOX_EXITED && s->import < import_cnt ? s->import : UINT32_MAX;
	ret->import_calls = s->import_calls;
	ret->has_x87_fault = s->has_x87_fault;
	ret->ns = s->ns;
	ret->bufs = s->bufs;
	ret->bufs_len = bufs_len;
	ret->bufs_valid = true;
}

static bool is_answered(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	return poll(&p, 1, 50) > 0;
}

/* Sends the request that is in the shared memory and waits for the end of the call. */
static struct err *do_call(struct box *b, struct box_report *report)
{
	if (send(b->fd, "c", 1, MSG_NOSIGNAL) != 1)
		return err_new(ERR_IO, "the sandbox is gone");
	while (b->opts.cancel && !is_answered(b->fd))
		if (atomic_load(b->opts.cancel)) {
			kill(b->pid, SIGKILL);
			return err_new(ERR_CANCELLED, "cancelled");
		}
	ssize_t n;
	do
		n = recv(b->fd, report, sizeof(*report), 0);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(*report) || report->status == -1)
		return err_new(ERR_IO, "the sandbox is gone");
	if (b->shared->state == BOX_STATE_LOCK_FAILED)
		return err_new(ERR_ENV, "the kernel refuses the lock of the sandbox; the function was not run");
	return NULL;
}

static struct err *check_va(const struct box *b, uint64_t va)
{
	if (space_seg_of_va(image_space(b->opts.im), va) >= 0)
		return NULL;
	return err_new(ERR_INVALID, "0x%llx is no address of the target", (unsigned long long)va);
}

uint64_t box_buf_addr(const struct box *b, uint32_t off)
{
	(void)b;
	return BOX_BUFS + off;
}

static struct err *call_either(struct box *b, uint64_t va, uint64_t code_va, const struct box_arg *args, unsigned cnt, struct box_result *ret)
{
	struct box_shared *s = b->shared;
	struct box_report report;
	memset(ret, 0, sizeof(*ret));
	struct err *e = check_va(b, va);
	if (e)
		return e;
	memset(s, 0, offsetof(struct box_shared, blocks));
	e = put_args(b, args, cnt);
	if (e)
		return e;
	s->regs.target = va + b->slide;
	s->code = code_va ? code_va + b->code_slide : 0;
	s->import = UINT32_MAX;
	uint32_t bufs_len = s->bufs_len;
	e = do_call(b, &report);
	if (!e)
		box_take_result(b, &report, bufs_len, ret);
	return e;
}

struct err *box_call(struct box *b, uint64_t va, const struct box_arg *args, unsigned cnt, struct box_result *ret)
{
	return call_either(b, va, 0, args, cnt, ret);
}

struct err *box_call_code(struct box *b, uint64_t va, uint64_t code_va, const struct box_arg *args, unsigned cnt, struct box_result *ret)
{
	if (!b->opts.code || space_seg_of_va(image_space(b->opts.code), code_va) < 0)
		return err_new(ERR_INVALID, "0x%llx is no address of the recompiled code", (unsigned long long)code_va);
	return call_either(b, va, code_va, args, cnt, ret);
}

static void put_input(struct box_input *in, const struct box_trial *t)
{
	in->seed = t->seed;
	in->word_cnt = t->words ? MIN(t->word_cnt, (uint32_t)BOX_WORD_MAX) : 0;
	in->patch_cnt = t->patches ? MIN(t->patch_cnt, (uint32_t)BOX_PATCH_MAX) : 0;
	if (in->word_cnt)
		memcpy(in->words, t->words, in->word_cnt * sizeof(*t->words));
	if (in->patch_cnt)
		memcpy(in->patches, t->patches, in->patch_cnt * sizeof(*t->patches));
}

uint64_t box_trial_word(const struct box_trial *t, uint64_t at)
{
	struct box_input in;
	put_input(&in, t);
	return box_input_word(&in, at);
}

uint64_t box_stack_args(uint64_t *ret_len)
{
	*ret_len = BOX_STACK + BOX_STACK_LEN - BOX_TRIAL_SP;
	return BOX_TRIAL_SP;
}

void box_take_outcome(struct box *b, const struct box_report *report, struct box_outcome *ret)
{
	struct box_shared *s = b->shared;
	memset(ret, 0, sizeof(*ret));
	box_take_result(b, report, 0, &ret->result);
	ret->trace = s->trace;
	ret->has_no_memory = s->missing & BOX_NO_SHADOW;
	ret->page_cnt = s->page_cnt < BOX_PAGE_MAX ? s->page_cnt : BOX_PAGE_MAX;
	ret->pages = s->pages;
	ret->blocks_hit = s->blocks_hit;
	ret->way_cnt = MIN(s->way_cnt, (uint32_t)BOX_WAY_MAX);
	for (uint32_t i = 0; i < ret->way_cnt; i++)
		s->ways[i].to -= b->slide;
	ret->ways = s->ways;
	ret->cmps = s->cmps;
	ret->answer_cnt = MIN(s->answer_cnt, (uint32_t)BOX_ANSWER_MAX);
	ret->answers = s->answers;
	ret->made_cnt = s->made_cnt < BOX_PAGE_MAX / 2 ? s->made_cnt : BOX_PAGE_MAX / 2;
	ret->made = s->made;
}

struct err *box_try(struct box *b, const struct box_trial *t, struct box_outcome *ret)
{
	struct box_shared *s = b->shared;
	struct box_report report;
	memset(ret, 0, sizeof(*ret));
	struct err *e = check_va(b, t->va);
	if (e)
		return e;
	memset(s, 0, offsetof(struct box_shared, blocks));
	s->regs.target = t->va + b->slide;
	s->import = UINT32_MAX;
	s->is_trial = 1;
	put_input(&s->input, t);
	s->cpu_ms = t->cpu_ms;
	s->unsaid = t->unsaid;
	s->code = t->code_va ? t->code_va + b->code_slide : 0;
	if (t->blocks && !t->code_va) {
		s->block_cnt = t->block_cnt < BOX_BLOCK_MAX ? t->block_cnt : BOX_BLOCK_MAX;
		for (uint32_t i = 0; i < s->block_cnt; i++)
			s->blocks[i] = t->blocks[i] + b->slide;
		memset(s->blocks_hit, 0, s->block_cnt);
	}
	if (t->branches && !t->code_va) {
		s->branch_cnt = MIN(t->branch_cnt, (uint32_t)BOX_BRANCH_MAX);
		for (uint32_t i = 0; i < s->branch_cnt; i++)
			s->branches[i] = (struct box_branch){t->branches[i].at + b->slide, t->branches[i].from + b->slide,
							     t->branches[i].before + b->slide};
		memset(s->cmps, 0, s->branch_cnt * sizeof(*s->cmps));
	}
	e = do_call(b, &report);
	if (e)
		return e;
	box_take_outcome(b, &report, ret);
	return NULL;
}
