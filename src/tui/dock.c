/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walking the log of a program that ran, and a program that is debugged. Reading a log and everything that asks a debug server are jobs; while
 * one has the debugger the screen shows what was known at the last stop.
 */
#include "tui/dock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char is_busy[] = "it runs; Ctrl+C stops it";
static const char is_none[] = "nothing is debugged (F9 runs the program, ,d goes to a debug server)";

static struct tui_dock *dock_get(struct tui *t)
{
	if (t->dock)
		return t->dock;
	struct tui_dock *d = calloc(1, sizeof(*d));
	if (d)
		pthread_mutex_init(&d->lock, NULL);
	t->dock = d;
	return d;
}

static void look_free(struct dock_look *l)
{
	if (!l)
		return;
	arena_fini(&l->arena);
	buf_fini(&l->state);
	free(l);
}

void tui_dock_fini(struct tui *t)
{
	struct tui_dock *d = t->dock;
	if (!d)
		return;
	ses_debug_close(d->debug);
	ses_tenet_close(d->trace);
	look_free(d->look);
	VEC_FREE(&d->breaks);
	pthread_mutex_destroy(&d->lock);
	free(d);
	t->dock = NULL;
}

void tui_dock_stop(struct tui *t)
{
	struct tui_dock *d = t->dock;
	if (!d || !d->running)
		return;
	atomic_store(&d->gives_up, true);
	pthread_mutex_lock(&d->lock);
	if (d->interruptible)
		ses_debug_interrupt(d->interruptible);
	pthread_mutex_unlock(&d->lock);
}

/* To a place without a trace in the history, in the view that is shown when it shows code. */
static void show_place(struct tui *t, uint64_t va)
{
	enum tui_view v = t->main_view;
	if (v != TUI_V_LISTING && v != TUI_V_C && v != TUI_V_GRAPH)
		return;
	if (tui_view_ops(v)->go)
		tui_view_ops(v)->go(t, va);
}

/* --- logs ------------------------------------------------------------------------------------------------------------- */

struct trace_job {
	struct tui_job job;
	char *path;
	struct ses_tenet *trace;
	struct err *err;
};

static void seek(struct tui *t, uint64_t step)
{
	struct tui_dock *d = t->dock;
	uint64_t va;
	if (step == SES_TENET_NONE || step >= ses_tenet_steps(d->trace)) {
		tui_say(t, true, "there is none in the trace");
		return;
	}
	d->step = step;
	ses_tenet_trail(d->trace, step, DOCK_TRAIL, d->trail);
	if (ses_tenet_va(d->trace, step, &va))
		show_place(t, va);
	t->is_dirty = true;
}

static void trace_run(struct tui_job *j)
{
	struct trace_job *b = (struct trace_job *)j;
	b->err = ses_tenet_open(j->snap, &j->call, b->path, &b->trace);
}

static void trace_done(struct tui *t, struct tui_job *j)
{
	struct trace_job *b = (struct trace_job *)j;
	struct tui_dock *d = t->dock;
	uint64_t slide;
	d->loading = NULL;
	t->is_dirty = true;
	if (b->err) {
		tui_say_err(t, take_ptr(b->err));
		return;
	}
	ses_tenet_close(d->trace);
	d->trace = take_ptr(b->trace);
	seek(t, 0);
	bool has_slide = ses_tenet_slide(d->trace, &slide);
	uint64_t odd = ses_tenet_odd(d->trace);
	if (!has_slide)
		tui_say(t, true, "nothing of this program ran in the trace of %llu steps", (unsigned long long)ses_tenet_steps(d->trace));
	else if (odd)
		tui_say(t, true, "trace of %llu steps; %llu of its tokens are none", (unsigned long long)ses_tenet_steps(d->trace),
			(unsigned long long)odd);
	else
		tui_say(t, false, "trace of %llu steps", (unsigned long long)ses_tenet_steps(d->trace));
}

static void trace_fini(struct tui_job *j)
{
	struct trace_job *b = (struct trace_job *)j;
	err_free(b->err);
	ses_tenet_close(b->trace);
	free(b->path);
}

void tui_dock_trace(struct tui *t, const char *path)
{
	struct tui_dock *d = dock_get(t);
	struct trace_job *b = d && !d->loading ? calloc(1, sizeof(*b)) : NULL;
	if (!b)
		return;
	b->path = strdup(path);
	b->job.run = trace_run;
	b->job.done = trace_done;
	b->job.fini = trace_fini;
	d->loading = &b->job;
	tui_say(t, false, "reading the trace");
	tui_job_start(t, &b->job);
}

bool tui_dock_step(const struct tui *t, uint64_t *ret_step, uint64_t *ret_steps)
{
	if (!t->dock || !t->dock->trace)
		return false;
	*ret_step = t->dock->step;
	*ret_steps = ses_tenet_steps(t->dock->trace);
	return true;
}

/* "!50": percent of the log, "!=1200": a step. */
bool tui_dock_goto(struct tui *t, const char *text)
{
	struct tui_dock *d = t->dock;
	char *end;
	if (*text != '!' || !d || !d->trace)
		return false;
	bool is_step = text[1] == '=';
	double v = strtod(text + 1 + is_step, &end);
	uint64_t last = ses_tenet_steps(d->trace) - 1;
	if (*end || end == text + 1 + is_step || !(v >= 0) || (!is_step && v > 100))
		tui_say(t, true, "!50 goes to half of the trace, !=1200 to a step");
	else
		seek(t, is_step ? (uint64_t)MIN(v, (double)last) : (uint64_t)((double)last * v / 100));
	return true;
}

/* "rax": where it was written last; "rax>": where it is written next. */
void tui_dock_written(struct tui *t, const char *text)
{
	char name[32];
	struct tui_dock *d = t->dock;
	size_t len = strcspn(text, "> ");
	if (!d || !d->trace)
		return;
	snprintf(name, sizeof(name), "%.*s", (int)len, text);
	seek(t, ses_tenet_written(d->trace, d->step, name, !strchr(text, '>')));
}

size_t tui_dock_complete(struct tui *t, const char *text, char *out, size_t cap)
{
	struct ses_tenet_reg *regs = NULL;
	uint32_t cnt = 0;
	size_t len = strlen(text), same = 0;
	const char *first = NULL;
	if (t->dock && t->dock->trace)
		err_free(ses_tenet_regs(t->dock->trace, t->dock->step, &t->frame_arena, &regs, &cnt));
	for (uint32_t i = 0; i < cnt; i++) {
		if (strncmp(regs[i].name, text, len) != 0)
			continue;
		size_t n = len;
		while (first && n < same && first[n] == regs[i].name[n])
			n++;
		same = first ? n : strlen(regs[i].name);
		first = first ? first : regs[i].name;
	}
	snprintf(out, cap, "%.*s", (int)same, first ? first : "");
	return MIN(same, cap - 1);
}

/* The register under the cursor, when it is one of the log's; "". */
static const char *register_here(struct tui *t)
{
	struct ses_text w = tui_focus(t) == TUI_V_LISTING ? tui_listing_word(t) : (struct ses_text){"", 0};
	struct ses_tenet_reg *regs;
	uint32_t cnt = 0;
	err_free(ses_tenet_regs(t->dock->trace, t->dock->step, &t->frame_arena, &regs, &cnt));
	for (uint32_t i = 0; i < cnt; i++)
		if (strlen(regs[i].name) == w.len && !memcmp(regs[i].name, w.s, w.len))
			return regs[i].name;
	return "";
}

static bool act_trace(struct tui *t, enum tui_action a)
{
	struct tui_dock *d = t->dock;
	uint64_t va, step = d->step;
	bool back = a == TUI_TIME_PREV || a == TUI_TIME_OVER_PREV || a == TUI_TIME_HERE_PREV;
	bool in_hex = tui_focus(t) == TUI_V_HEX;
	switch (a) {
	case TUI_TIME_NEXT:
	case TUI_TIME_PREV:
		seek(t, back ? step - 1 : step + 1);
		return true;
	case TUI_TIME_OVER:
	case TUI_TIME_OVER_PREV:
		seek(t, ses_tenet_over(d->trace, step, back));
		return true;
	case TUI_TIME_HERE_NEXT:
	case TUI_TIME_HERE_PREV:
		if (!tui_focus_va(t, &va))
			return false;
		seek(t, in_hex ? ses_tenet_touched(d->trace, step, va, false, back) : ses_tenet_ran(d->trace, step, va, back));
		return true;
	case TUI_TIME_WRITTEN:
		if (in_hex && tui_focus_va(t, &va)) {
			seek(t, ses_tenet_touched(d->trace, step, va, true, true));
		} else {
			tui_prompt_open(t, TUI_PROMPT_WRITTEN, register_here(t));
		}
		return true;
	default:
		return false;
	}
}

/* --- the debugger ------------------------------------------------------------------------------------------------------- */

enum dock_do { DO_OPEN, DO_RUN, DO_STEP, DO_OVER, DO_UNTIL, DO_BREAK, DO_COMMAND };

struct debug_job {
	struct tui_job job;
	struct tui_dock *dock;
	struct ses_debug *debug;  /* taken from the dock; a new one of DO_OPEN and of a first DO_RUN */
	enum dock_do what;
	enum ses_debug_unit unit;
	uint64_t va;
	char *text;               /* where; the command */
	struct ses *ses;
	uint64_t *breaks;         /* to set in a new one */
	size_t break_cnt;
	struct dock_look *look;
	struct buf out;
	struct err *err;
	bool has_ended;
	bool has_breaks;          /* `breaks` are those that there are */
	bool has_frame;           /* where the frame is that a command looked at */
	uint64_t frame_va;
};

static void take_output(void *ctx, const char *s, size_t len)
{
	struct tui_dock *d = ctx;
	pthread_mutex_lock(&d->lock);
	if (len > DOCK_SAID) {
		s += len - DOCK_SAID;
		len = DOCK_SAID;
	}
	size_t keep = MIN(d->said_len, DOCK_SAID - len);
	memmove(d->said, d->said + d->said_len - keep, keep);
	memcpy(d->said + keep, s, len);
	d->said_len = keep + len;
	pthread_mutex_unlock(&d->lock);
}

static struct dock_look *look_new(struct ses_debug *s)
{
	struct dock_look *l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	ses_debug_put_state(s, &l->state);
	l->has_va = ses_debug_va(s, &l->va);
	struct err *e = NULL;
	if (ses_debug_state(s) == SES_DEBUG_STOPPED) {
		e = ses_debug_regs(s, &l->arena, &l->regs, &l->reg_cnt);
		if (!e)
			e = ses_debug_stack(s, &l->arena, DOCK_WORDS, &l->words);
		l->word_cnt = e ? 0 : DOCK_WORDS;
		if (!e)
			e = ses_debug_frames(s, &l->arena, &l->frames, &l->frame_cnt);
	}
	err_free(e);
	return l;
}

static struct err *debug_begin(struct debug_job *b)
{
	struct ses_debug_opts o = {.where = b->text, .ses = b->ses, .cancel = &b->dock->gives_up, .output = take_output, .ctx = b->dock,
				   .is_apart = true};
	struct err *e = ses_debug_open(&o, &b->debug);
	for (size_t i = 0; i < b->break_cnt && !e; i++)
		e = ses_debug_break_toggle(b->debug, b->breaks[i]);
	return e;
}

static void debug_run(struct tui_job *j)
{
	struct debug_job *b = (struct debug_job *)j;
	bool is_quit;
	if (!b->debug)
		b->err = debug_begin(b);
	if (b->err)
		return;
	pthread_mutex_lock(&b->dock->lock);
	b->dock->interruptible = b->debug;
	pthread_mutex_unlock(&b->dock->lock);
	if (b->what == DO_RUN)
		b->err = ses_debug_run(b->debug);
	else if (b->what == DO_STEP || b->what == DO_OVER)
		b->err = ses_debug_step(b->debug, b->unit, b->what == DO_OVER);
	else if (b->what == DO_UNTIL)
		b->err = ses_debug_until(b->debug, b->va);
	else if (b->what == DO_BREAK)
		b->err = ses_debug_break_toggle(b->debug, b->va);
	else if (b->what == DO_COMMAND)
		b->err = ses_debug_command(b->debug, b->text, &b->out, &is_quit);
	b->has_ended = b->what == DO_COMMAND && !b->err && is_quit;
	pthread_mutex_lock(&b->dock->lock);
	b->dock->interruptible = NULL;
	pthread_mutex_unlock(&b->dock->lock);
	b->look = look_new(b->debug);
	/* Commands set breakpoints, too, and some go when they are hit. */
	b->has_breaks = b->breaks;
	b->break_cnt = b->breaks ? ses_debug_breaks(b->debug, b->breaks, DOCK_BREAKS) : 0;
	b->has_frame = b->what == DO_COMMAND && ses_debug_frame_va(b->debug, &b->frame_va);
}

/* What a command answers: a line below, or a list of lines in the log of messages, which has the newest first. */
static void say_lines(struct tui *t, const struct buf *out)
{
	const char *end = out->data + out->len, *from = end;
	unsigned cnt = 0;
	while (from > out->data && cnt + 4 < TUI_SAID_MAX) {
		const char *last = from[-1] == '\n' ? from - 1 : from;
		for (from = last; from > out->data && from[-1] != '\n';)
			from--;
		tui_say(t, false, "%.*s", (int)(last - from), from);
		cnt++;
	}
	/* Where it stands has a line of code with it, which the views show. */
	if (cnt < 3)
		return;
	if (from > out->data)
		tui_say(t, true, "there are lines before these; `scry debug` shows them all");
	tui_list_restart(&t->log);
	tui_overlay_push(t, TUI_O_LOG);
}

static void debug_done(struct tui *t, struct tui_job *j)
{
	struct debug_job *b = (struct debug_job *)j;
	struct tui_dock *d = t->dock;
	t->is_dirty = true;
	d->running = NULL;
	d->debug = b->has_ended ? NULL : take_ptr(b->debug);
	look_free(d->look);
	d->look = b->has_ended ? NULL : take_ptr(b->look);
	if (b->has_breaks && VEC_RESERVE(&d->breaks, b->break_cnt)) {
		if (b->break_cnt)
			memcpy(d->breaks.data, b->breaks, b->break_cnt * sizeof(uint64_t));
		d->breaks.cnt = b->break_cnt;
	}
	if (b->err)
		tui_say_err(t, take_ptr(b->err));
	else if (d->look && b->what != DO_BREAK && b->what != DO_COMMAND)
		tui_say(t, false, "%.*s", (int)d->look->state.len, d->look->state.data ? d->look->state.data : "");
	if (!b->err && b->has_frame)
		show_place(t, b->frame_va);
	else if (!b->err && d->look && d->look->has_va && b->what != DO_BREAK)
		show_place(t, d->look->va);
	if (b->out.len)
		say_lines(t, &b->out);
}

static void debug_fini(struct tui_job *j)
{
	struct debug_job *b = (struct debug_job *)j;
	ses_debug_close(b->debug);
	look_free(b->look);
	buf_fini(&b->out);
	err_free(b->err);
	free(b->text);
	free(b->breaks);
}

static void start(struct tui *t, enum dock_do what, uint64_t va, const char *text)
{
	struct tui_dock *d = dock_get(t);
	if (d && d->running) {
		tui_say(t, true, "%s", is_busy);
		return;
	}
	struct debug_job *b = d ? calloc(1, sizeof(*b)) : NULL;
	if (!b)
		return;
	b->dock = d;
	b->debug = take_ptr(d->debug);
	b->what = what;
	b->unit = tui_focus(t) == TUI_V_C ? SES_DEBUG_C : SES_DEBUG_INSN;
	b->va = va;
	b->text = text ? strdup(text) : NULL;
	b->ses = t->ses;
	b->break_cnt = d->breaks.cnt;
	b->breaks = alloc_array(DOCK_BREAKS, sizeof(uint64_t));
	if (b->breaks && d->breaks.cnt)
		memcpy(b->breaks, d->breaks.data, d->breaks.cnt * sizeof(uint64_t));
	else
		b->break_cnt = 0;
	b->job.run = debug_run;
	b->job.done = debug_done;
	b->job.fini = debug_fini;
	/* A target may run as long as it likes; a step is waited for. */
	b->job.is_driver = what == DO_RUN || what == DO_UNTIL || what == DO_COMMAND;
	d->running = &b->job;
	tui_job_start(t, &b->job);
}

static void run_yes(struct tui *t)
{
	start(t, DO_RUN, 0, NULL);
}

static void toggle_break(struct tui *t, uint64_t va)
{
	struct tui_dock *d = dock_get(t);
	if (!d || d->running) {
		tui_say(t, true, "%s", is_busy);
		return;
	}
	size_t i = 0;
	while (i < d->breaks.cnt && d->breaks.data[i] != va)
		i++;
	if (i < d->breaks.cnt)
		d->breaks.data[i] = VEC_POP(&d->breaks);
	else if (d->breaks.cnt == DOCK_BREAKS || !VEC_PUSH(&d->breaks, va))
		return;
	t->is_dirty = true;
	if (d->debug)
		start(t, DO_BREAK, va, NULL);
}

void tui_dock_accept(struct tui *t, const char *text)
{
	struct tui_dock *d = t->dock;
	bool is_place = !strncmp(text, "connect://", 10) || !strncmp(text, "unix-connect://", 15);
	if (is_place && d && (d->debug || d->running))
		tui_say(t, true, "a process is debugged already (,d quit ends that)");
	else if (is_place)
		start(t, DO_OPEN, 0, text);
	else if (d && (d->debug || d->running))
		start(t, DO_COMMAND, 0, text);
	else
		tui_say(t, true, "connect://HOST:PORT of a debug server; F9 runs the program here");
}

/* Stops the target that runs; false: none does. */
bool tui_dock_cancel(struct tui *t)
{
	struct tui_dock *d = t->dock;
	if (!d || !d->running)
		return false;
	pthread_mutex_lock(&d->lock);
	if (d->interruptible)
		ses_debug_interrupt(d->interruptible);
	pthread_mutex_unlock(&d->lock);
	tui_say(t, false, "asked to stop");
	return true;
}

bool tui_dock_act(struct tui *t, enum tui_action a)
{
	struct tui_dock *d = t->dock;
	uint64_t va = 0;
	bool has_trace = d && d->trace;
	if (a >= TUI_TIME_NEXT && a <= TUI_TIME_WRITTEN) {
		if (!has_trace)
			tui_say(t, true, "no trace is loaded (scry --trace FILE PROGRAM)");
		return !has_trace || act_trace(t, a);
	}
	switch (a) {
	case TUI_STEP:
	case TUI_STEP_OVER:
		if (has_trace && !d->debug)
			return act_trace(t, a == TUI_STEP ? TUI_TIME_NEXT : TUI_TIME_OVER);
		if (d && (d->debug || d->running))
			start(t, a == TUI_STEP ? DO_STEP : DO_OVER, 0, NULL);
		else
			tui_say(t, true, "%s", is_none);
		return true;
	case TUI_BREAKPOINT:
		if (tui_focus_va(t, &va))
			toggle_break(t, va);
		return true;
	case TUI_RUN_TO:
		if (!d || !d->debug)
			tui_say(t, true, "%s", d && d->running ? is_busy : is_none);
		else if (tui_focus_va(t, &va))
			start(t, DO_UNTIL, va, NULL);
		return true;
	case TUI_RUN:
		if (d && (d->debug || d->running))
			start(t, DO_RUN, 0, NULL);
		else
			tui_confirm(t, run_yes, "Run %s? It runs as you, outside of any sandbox.", ses_path(t->ses));
		return true;
	case TUI_DEBUG:
		tui_prompt_open(t, TUI_PROMPT_DEBUG, "");
		return true;
	default:
		return false;
	}
}

/* --- what the views show of it --- */

enum term_role tui_dock_bg(const struct tui *t, uint64_t va)
{
	const struct tui_dock *d = t->dock;
	if (!d)
		return ROLE_BG;
	if (d->look && d->look->has_va && d->look->va == va)
		return ROLE_BG_NOW;
	if (!d->trace)
		return ROLE_BG;
	if (d->trail[DOCK_TRAIL] == va)
		return ROLE_BG_NOW;
	for (int i = 1; i <= DOCK_TRAIL; i++) {
		if (d->trail[DOCK_TRAIL - i] == va)
			return ROLE_BG_PAST;
		if (d->trail[DOCK_TRAIL + i] == va)
			return ROLE_BG_AHEAD;
	}
	return ROLE_BG;
}

bool tui_dock_has_break(const struct tui *t, uint64_t va)
{
	const struct tui_dock *d = t->dock;
	for (size_t i = 0; d && i < d->breaks.cnt; i++)
		if (d->breaks.data[i] == va)
			return true;
	return false;
}

bool tui_dock_bytes(struct tui *t, uint64_t va, uint32_t len, uint8_t *out, bool *known)
{
	struct tui_dock *d = t->dock;
	if (d && d->trace) {
		ses_tenet_bytes(d->trace, d->step, va, len, out, known);
		return true;
	}
	/* The debugger's own pages: what it has not read yet is read now, in one request. */
	if (!d || !d->debug || d->running)
		return false;
	struct err *e = ses_debug_bytes(d->debug, va, len, out, known);
	bool is_fine = !e;
	err_free(e);
	return is_fine;
}
