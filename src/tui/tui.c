/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui.h"

#include "session/ops.h"
#include "session/project.h"
#include "tui/opening.h"
#include "tui/operation.h"
#include "tui/rpc.h"
#include "tui/term/caps.h"
#include "tui/term/tty.h"
#include "tui/term/writer.h"
#include "tui/tui_int.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/*
 * The loop: one epoll over the terminal, the session, the jobs, a timer and the signals. Input is drained before a
 * frame is drawn, a frame is drawn only when something changed, at most every 8 ms, and only when the terminal took
 * the one before; so a slow terminal skips frames and a stuck one costs nothing. Idle, nothing wakes us.
 */
#define FRAME_NS 8000000u
#define HINTS_NS 3000000000ull /* until the footer shows other keys */
/* Without margins a scroll takes the pane beside along, which is then written anew, some 1.2 KB however many lines it was: six at
 * once come to 2 to 3 KB, half of what they cost one by one. */
#define EDGE_STEP 6

struct loop {
	struct tui tui;
	struct term_tty tty;
	struct term_caps caps;
	struct term_writer writer;
	struct term_input input;
	struct tui_keymap *keys;   /* until there is tui, which then has them */
	struct err *keys_err;      /* what could not be taken of their files */
	struct tui_opening opening; /* until there is `ses`, which tui then shows */
	struct ses *ses;           /* whose events are listened to */
	struct ses_project *project; /* null: one target */
	struct arena paths;        /* of the project */
	int w, h;
	int epoll_fd, signal_fd, timer_fd, job_fd;
	bool is_watching;          /* what others commit */
	bool wants_out;            /* EPOLLOUT is asked for */
	bool is_gone;              /* the terminal is */
	bool wants_quit;           /* before there is a session */
	bool is_behind;            /* a frame was painted that the terminal was not told of */
	struct tui_rpc *rpc;       /* drivers; null: none may come */
	int quit_signal;
	uint64_t input_due_ns;     /* when pending input becomes final; 0: nothing pending */
	uint64_t last_frame_ns;
	bool has_input;            /* somebody typed since the last frame */
	bool was_input;            /* and before that one */
	int colour_step;
};

enum { SRC_TTY, SRC_SIGNAL, SRC_TIMER, SRC_JOB, SRC_SES, SRC_WATCH, SRC_RPC /* and what follows */ };

static uint64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static const char *env_get(const char *name)
{
	return getenv(name);
}

static void apply_caps(struct loop *l)
{
	l->writer.depth = l->caps.depth;
	l->writer.has_sync = l->caps.has_sync;
	l->writer.has_margins = l->caps.has_margins;
	l->writer.has_bce = l->caps.has_bce;
	term_theme(&l->writer.palette, l->tui.is_light);
	term_writer_forget(&l->writer);
	l->tui.is_dirty = true;
}

static void on_event(void *ctx, const struct term_ev *ev)
{
	struct loop *l = ctx;
	if (ev->type != TERM_EV_REPLY && !l->ses) {
		l->wants_quit = tui_opening_key(&l->opening, ev) || l->wants_quit;
		l->tui.is_dirty = true;
		return;
	}
	if (ev->type != TERM_EV_REPLY) {
		tui_event(&l->tui, ev);
		return;
	}
	bool was_light = l->caps.is_light;
	if (!term_caps_reply(&l->caps, ev))
		return;
	if (l->caps.is_light != was_light)
		l->tui.is_light = l->caps.is_light;
	if (l->caps.has_key_codes)
		term_tty_use_key_codes(&l->tty);
	apply_caps(l);
}

static void read_tty(struct loop *l)
{
	char bytes[4096];
	for (int i = 0; i < 64; i++) {
		ssize_t n = read(l->tty.fd, bytes, sizeof(bytes));
		if (n > 0) {
			l->has_input = true;
			term_input_feed(&l->input, bytes, (size_t)n, on_event, l);
		} else if (n < 0 && errno == EINTR) {
			continue;
		} else {
			if (n < 0 && errno != EAGAIN)
				l->is_gone = true;
			break;
		}
	}
	int wait = term_input_wait_ms(&l->input);
	l->input_due_ns = wait ? now_ns() + (uint64_t)wait * 1000000u : 0;
}

/* After a stop, whoever stopped us: the shell has had the terminal meanwhile. */
static void come_back(struct loop *l)
{
	term_tty_resume(&l->tty);
	term_writer_forget(&l->writer);
	l->tui.is_dirty = true;
}

static void suspend(struct loop *l)
{
	l->tui.wants_suspend = false;
	/* The leader of its session has no shell to come back to. */
	if (getsid(0) == getpid()) {
		tui_say(&l->tui, true, "there is no shell to go back to");
		return;
	}
	term_tty_suspend(&l->tty);
	kill(0, SIGTSTP);
	raise(SIGSTOP);
	come_back(l);
}

static void resize(struct loop *l)
{
	term_tty_size(&l->tty, &l->w, &l->h);
	if (l->ses && !tui_resize(&l->tui, l->w, l->h))
		tui_say(&l->tui, true, "out of memory for this size");
	term_writer_forget(&l->writer);
	l->tui.is_dirty = true;
}

static void read_signals(struct loop *l)
{
	struct signalfd_siginfo info;
	while (read(l->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGWINCH)
			resize(l);
		else if (info.ssi_signo == SIGTSTP)
			l->tui.wants_suspend = info.ssi_pid != (uint32_t)getpid();
		else if (info.ssi_signo == SIGCONT)
			come_back(l);
		else
			l->quit_signal = (int)info.ssi_signo;
	}
}

static void drain(int fd)
{
	uint64_t value;
	ssize_t n = read(fd, &value, sizeof(value));
	(void)n;
}

/* Whether a frame is painted now: for a terminal that takes it, or for a driver though it takes none. */
static bool has_watcher(const struct loop *l)
{
	return !term_tty_is_stuck(&l->tty) || (l->rpc && tui_rpc_is_waiting(l->rpc));
}

/* Whether a frame may follow the last one already. What is typed does not wait for a frame that only told of progress. */
static uint64_t frame_due(const struct loop *l)
{
	return l->has_input && !l->was_input ? 1 : l->last_frame_ns + FRAME_NS;
}

/* Arms the timer for whichever comes first: pending input, a frame that had to wait, a driver's time. */
static void arm_timer(struct loop *l)
{
	uint64_t due = l->input_due_ns;
	if (tui_tick_due(&l->tui))
		due = due ? MIN(due, tui_tick_due(&l->tui)) : tui_tick_due(&l->tui);
	if (l->tui.refresh_due_ns && !l->tui.refresh_job)
		due = due ? MIN(due, l->tui.refresh_due_ns) : l->tui.refresh_due_ns;
	if (l->rpc && tui_rpc_due_ns(l->rpc))
		due = due ? MIN(due, tui_rpc_due_ns(l->rpc)) : tui_rpc_due_ns(l->rpc);
	if (l->tui.is_dirty && has_watcher(l)) {
		due = due ? MIN(due, frame_due(l)) : frame_due(l);
	}
	struct itimerspec spec = {.it_value = {.tv_sec = (time_t)(due / 1000000000u), .tv_nsec = (long)(due % 1000000000u)}};
	timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

static void watch_out(struct loop *l)
{
	bool wants = term_tty_is_stuck(&l->tty);
	if (wants == l->wants_out)
		return;
	struct epoll_event ev = {.events = EPOLLIN | (wants ? EPOLLOUT : 0u), .data = {.u32 = SRC_TTY}};
	epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, l->tty.fd, &ev);
	l->wants_out = wants;
}

static void next_colours(struct loop *l)
{
	l->colour_step = l->tui.colour_step;
	l->caps.depth = l->caps.depth == TERM_MONO ? TERM_TRUE : (enum term_depth)(l->caps.depth - 1);
	l->caps.is_depth_fixed = true;
	apply_caps(l);
	tui_say(&l->tui, false, "colours: %s", term_depth_name(l->caps.depth));
}

static void draw(struct loop *l)
{
	struct tui *t = &l->tui;
	uint64_t now = now_ns();
	if (t->wants_suspend)
		suspend(l);
	if (t->colour_step != l->colour_step)
		next_colours(l);
	if (t->wants_redraw) {
		t->wants_redraw = false;
		apply_caps(l);
	}
	if (t->clip.len && !term_tty_is_stuck(&l->tty)) {
		if (!term_caps_no(&l->caps, TERM_CAP_CLIPBOARD))
			buf_add(&l->tty.pending, t->clip.data, t->clip.len);
		t->clip.len = 0;
	}
	bool is_due = t->is_dirty && has_watcher(l) && now >= frame_due(l);
	if (!is_due && (t->is_dirty || !l->is_behind))
		return;
	const struct cells *grid = &l->opening.grid;
	if (l->ses) {
		t->edge_step = !l->caps.has_margins && t->functions_rect.w && t->main_rect.w ? EDGE_STEP : 1;
		if (is_due)
			tui_draw(t);
		grid = &t->grid;
		l->writer.scroll_hint = t->scroll_hint;
	} else {
		t->is_dirty = false;
		t->cur_x = -1;
		if (!tui_opening_draw(&l->opening, l->w, l->h, !l->caps.is_utf8))
			return;
		t->cur_x = l->opening.cur_x;
		t->cur_y = l->opening.cur_y;
	}
	l->is_behind = term_tty_is_stuck(&l->tty);
	if (is_due) {
		l->last_frame_ns = now;
		l->was_input = l->has_input;
		l->has_input = false;
	}
	if (l->is_behind)
		return;
	size_t start = l->tty.pending.len;
	if (!term_writer_frame(&l->writer, grid, t->cur_x, t->cur_y, &l->tty.pending)) {
		l->tty.pending.len = start;
		l->tty.pending.failed = false;
	}
}

static int add_source(struct loop *l, int fd, uint32_t src)
{
	struct epoll_event ev = {.events = EPOLLIN, .data = {.u32 = src}};
	return fd < 0 ? -1 : epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
}

/* The target has a place in the store once its hash is known. */
static void watch_store(struct loop *l)
{
	int fd = l->ses && !l->is_watching ? ses_watch_fd(l->ses) : -1;
	if (fd < 0)
		return;
	l->is_watching = !add_source(l, fd, SRC_WATCH);
	/* What was committed between reading the store and watching it. */
	tui_watch_event(&l->tui, now_ns());
}

/* The workbench went to another binary: its session's events are those to listen to. */
static void follow_session(struct loop *l)
{
	if (!l->ses || l->ses == l->tui.ses)
		return;
	epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, ses_event_fd(l->ses), NULL);
	if (l->is_watching)
		epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, ses_watch_fd(l->ses), NULL);
	l->is_watching = false;
	l->ses = l->tui.ses;
	(void)add_source(l, ses_event_fd(l->ses), SRC_SES);
	watch_store(l);
}

static void handle(struct loop *l, const struct epoll_event *ev)
{
	switch (ev->data.u32) {
	case SRC_TTY:
		if (ev->events & (EPOLLIN | EPOLLHUP | EPOLLERR))
			read_tty(l);
		if (ev->events & (EPOLLHUP | EPOLLERR))
			l->is_gone = true;
		break;
	case SRC_SIGNAL:
		read_signals(l);
		break;
	case SRC_TIMER:
		drain(l->timer_fd);
		if (l->input_due_ns && now_ns() >= l->input_due_ns) {
			l->input_due_ns = 0;
			term_input_timeout(&l->input, on_event, l);
		}
		tui_tick(&l->tui, now_ns());
		tui_watch_tick(&l->tui, now_ns());
		break;
	case SRC_WATCH:
		ses_watch_clear(l->ses);
		tui_watch_event(&l->tui, now_ns());
		break;
	default:
		if (ev->data.u32 >= SRC_RPC) {
			tui_rpc_event(l->rpc, ev->data.u32, ev->events);
			break;
		}
		drain(ev->data.u32 == SRC_JOB ? l->job_fd : ses_event_fd(l->ses));
		if (l->ses)
			tui_news(&l->tui);
		else
			l->tui.is_dirty = true;
		watch_store(l);
		break;
	}
}

/* The session is there: shows it, and does what was typed before. */
static struct err *show(struct loop *l)
{
	struct tui_opening *o = &l->opening;
	if (o->err)
		return take_ptr(o->err);
	if (!tui_init(&l->tui, o->ses, l->w, l->h))
		return &err_nomem;
	l->ses = o->ses;
	tui_keymap_free(l->tui.keys);
	l->tui.keys = take_ptr(l->keys);
	l->tui.operate = tui_operation;
	l->tui.rotate_ns = now_ns() + HINTS_NS;
	if (tui_keys_are_unchosen())
		tui_offer_begin(&l->tui, now_ns());
	if (l->keys_err)
		tui_say_err(&l->tui, take_ptr(l->keys_err));
	l->tui.job_fd = l->job_fd;
	l->tui.grid.is_ascii = !l->caps.is_utf8;
	l->tui.is_light = l->caps.is_light;
	const char *trace = getenv("SCRY_TRACE");
	if (trace && *trace)
		tui_dock_trace(&l->tui, trace);
	if (add_source(l, ses_event_fd(l->ses), SRC_SES))
		return err_os(errno, "event loop");
	watch_store(l);
	/* The first page is drawn before the keys, which act on what is shown. */
	if (l->project)
		tui_project_begin(&l->tui, l->project, o->bin);
	tui_draw(&l->tui);
	for (uint32_t i = 0; i < o->key_cnt; i++)
		tui_event(&l->tui, &o->keys[i]);
	l->tui.is_dirty = true;
	if (l->rpc)
		tui_rpc_show(l->rpc, &l->tui);
	return NULL;
}

static struct err *run(struct loop *l)
{
	struct epoll_event events[8];
	while (!l->tui.wants_quit && !l->wants_quit && !l->quit_signal && !l->is_gone) {
		bool is_there = !l->ses && !l->opening.is_asking && tui_opening_end(&l->opening, false);
		struct err *e = NULL;
		if (is_there && tui_opening_ask(&l->opening))
			l->tui.is_dirty = true;
		else if (is_there)
			e = show(l);
		if (e)
			return e;
		follow_session(l);
		draw(l);
		if (!term_tty_flush(&l->tty))
			break;
		if (l->rpc)
			tui_rpc_step(l->rpc, now_ns(), term_tty_is_stuck(&l->tty));
		if (l->rpc && tui_rpc_wants_quit(l->rpc))
			break;
		watch_out(l);
		arm_timer(l);
		int n = epoll_wait(l->epoll_fd, events, (int)ARRAY_LEN(events), -1);
		for (int i = 0; i < n; i++)
			handle(l, &events[i]);
	}
	return NULL;
}

static void block_signals(sigset_t *ret_old)
{
	static const int taken[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGWINCH, SIGCONT, SIGTSTP};
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(taken); i++)
		sigaddset(&set, taken[i]);
	/* Before any thread starts, so that all of them leave these signals to the loop. */
	pthread_sigmask(SIG_BLOCK, &set, ret_old);
}

static struct err *open_loop(struct loop *l, const sigset_t *old)
{
	sigset_t set;
	pthread_sigmask(SIG_BLOCK, NULL, &set);
	for (int sig = 1; sig < 32; sig++) {
		if (sigismember(old, sig) == 1)
			sigdelset(&set, sig);
	}
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	l->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	l->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	struct err *e = term_tty_open(&l->tty, &l->caps);
	if (e)
		return e;
	term_tty_size(&l->tty, &l->w, &l->h);
	apply_caps(l);
	if (add_source(l, l->tty.fd, SRC_TTY) || add_source(l, l->signal_fd, SRC_SIGNAL) ||
	    add_source(l, l->timer_fd, SRC_TIMER) || add_source(l, l->job_fd, SRC_JOB))
		return err_os(errno, "event loop");
	if (l->rpc)
		e = tui_rpc_watch(l->rpc, l->epoll_fd, SRC_RPC);
	if (e)
		return e;
	buf_add_str(&l->tty.pending, term_caps_queries(&l->caps));
	l->caps.is_asked = true;
	return NULL;
}

static void close_loop(struct loop *l)
{
	term_tty_close(&l->tty, &l->caps);
	tui_opening_end(&l->opening, true);
	if (l->tui.ses)
		tui_fini(&l->tui);
	tui_rpc_free(l->rpc);
	if (l->project)
		ses_project_close(l->project);
	else
		ses_close(l->opening.ses);
	arena_fini(&l->paths);
	tui_opening_fini(&l->opening);
	term_writer_fini(&l->writer);
	int fds[] = {l->epoll_fd, l->signal_fd, l->timer_fd, l->job_fd};
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
}

/* The binary that was shown last, or the first of the others that can be. */
static struct err *start_project(struct loop *l)
{
	uint32_t cnt = ses_project_cnt(l->project), first = ses_project_get_shown(l->project);
	struct err *e = NULL;
	for (uint32_t k = 0; k < cnt; k++) {
		struct ses_binary b;
		uint32_t i = (first + k) % cnt;
		err_free(e);
		e = ses_project_binary(l->project, i, &l->paths, &b);
		if (e || b.state == SES_BINARY_FAILED)
			continue;
		l->opening.project = l->project;
		l->opening.bin = i;
		tui_opening_start(&l->opening, *b.found ? b.found : b.path, l->job_fd);
		if (!tui_opening_end(&l->opening, false) || !l->opening.err)
			return NULL;
		e = take_ptr(l->opening.err);
		atomic_store(&l->opening.is_done, false);
	}
	return e ? e : err_fix(err_new(ERR_BAD_INPUT, "%s: none of its binaries can be opened", ses_project_name(l->project)),
			       "scry project list P.json says why");
}

static struct err *start(struct loop *l, const char *path, const struct ses_project_opts *project)
{
	if (!project) {
		tui_opening_start(&l->opening, path, l->job_fd);
		/* What cannot be opened is said without a full screen. */
		bool is_refused = tui_opening_end(&l->opening, false) && l->opening.err && !tui_opening_ask(&l->opening);
		return is_refused ? take_ptr(l->opening.err) : NULL;
	}
	struct ses_project_opts o = *project;
	o.background = true;
	o.event_fd = l->job_fd;
	struct err *e = ses_project_open(&o, &l->project);
	return e ? e : start_project(l);
}

static int run_on(const char *path, const struct ses_project_opts *project)
{
	struct loop *l = calloc(1, sizeof(*l));
	sigset_t old;
	if (!l)
		return ops_fail(&err_nomem, path);
	l->epoll_fd = l->signal_fd = l->timer_fd = l->job_fd = l->tty.fd = -1;
	term_caps_env(&l->caps, env_get);
	const char *sock = getenv("SCRY_RPC");
	if (l->caps.is_dumb) {
		free(l);
		if (sock && *sock)
			return ops_fail(err_new(ERR_ENV, "this terminal (TERM=%s) cannot show a full screen, so there is none to drive",
					    getenv("TERM") ? getenv("TERM") : ""), sock);
		fprintf(stderr, "scry: this terminal (TERM=%s) cannot show a full screen; a line at a time instead (? lists the verbs)\n",
			getenv("TERM") ? getenv("TERM") : "");
		return project ? tui_run_plain_project(project->file, project->paths, project->path_cnt) : tui_run_plain(path);
	}
	/* Before any thread starts. */
	struct err *e = sock && *sock ? tui_rpc_new(sock, &l->rpc) : NULL;
	if (e) {
		free(l);
		return ops_fail(e, sock);
	}
	/* Before a file is read, whose guard takes SIGBUS. */
	term_tty_catch_faults();
	l->keys_err = tui_keys_load(getenv("SCRY_KEYS"), &l->keys);
	if (!l->keys) {
		tui_rpc_free(l->rpc);
		free(l);
		return ops_fail(&err_nomem, path);
	}
	l->opening.map = l->keys;
	block_signals(&old);
	l->job_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	e = start(l, path, project);
	if (!e)
		e = open_loop(l, &old);
	if (!e)
		e = run(l);
	/* Who says nothing of a file that says nothing of itself hears why it was not opened. */
	if (!e && l->opening.is_asking)
		e = take_ptr(l->opening.err);
	int sig = l->quit_signal;
	close_loop(l);
	tui_keymap_free(l->keys);
	err_free(l->keys_err);
	buf_fini(&l->tty.pending);
	free(l);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (e)
		return ops_fail(e, path);
	return sig ? 128 + sig : 0;
}

int tui_run(const char *path)
{
	return run_on(path, NULL);
}

int tui_run_project(const char *file, const char *const *paths, size_t cnt)
{
	struct ses_project_opts o = {.file = file, .paths = paths, .path_cnt = cnt, .event_fd = -1};
	return run_on(file ? file : paths[0], &o);
}
