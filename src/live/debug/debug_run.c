/* SPDX-License-Identifier: Apache-2.0 */
/* Letting the target run until something stops it. */
#include "live/debug/debug_int.h"

enum { MAX_PASSES = 1 << 24, PLACES_MAX = 256, LOG_STEPS = 20000, LOG_BYTES = 512 << 10 };

static void ask_log(struct debug *d, struct debug_batch *b, uint64_t steps, int sig)
{
	d->log.asked = MIN(steps, d->log.step_max - d->log.step_cnt);
	debug_ask(b, "vScryLog:%s;%d;%llx;%x;%x", d->current, !d->log.has_begun, (unsigned long long)d->log.asked, LOG_BYTES, (unsigned)sig);
	d->log.has_begun = true;
}

/* "mSTEPS;TEXT": more may come, or "lSTEPS;TEXT": it stands. */
static struct err *take_log(struct debug *d, struct gdb_span reply, bool *ret_more)
{
	uint64_t steps;
	bool is_last = gdb_skip(&reply, "l");
	if ((!is_last && !gdb_skip(&reply, "m")) || !gdb_take_hex(&reply, &steps) || !gdb_skip(&reply, ";"))
		return debug_refused(reply, "logs");
	d->log.step_cnt += steps;
	*ret_more = !is_last;
	struct err *e = reply.len ? d->log.take(d->log.ctx, reply.s, reply.len) : NULL;
	d->log.is_on = !e;
	return e;
}

/* The answer to ask_log() came: piece after piece, until it stands. */
static struct err *go_logged(struct debug *d, struct debug_batch *b, bool is_one)
{
	bool more = true, is_interrupted = false;
	struct err *why = take_log(d, debug_reply(b, b->run_at - 1), &more);
	while (!why && more && !is_one && !b->is_interrupted && d->log.step_cnt < d->log.step_max) {
		debug_batch_clear(b);
		ask_log(d, b, LOG_STEPS, 0);
		debug_runs(b);
		struct err *e = debug_link_run(&d->link, b);
		if (e)
			return e;
		why = take_log(d, debug_reply(b, b->run_at - 1), &more);
	}
	is_interrupted = b->is_interrupted && more;
	d->log.is_full = d->log.step_cnt >= d->log.step_max;
	d->log.is_on &= !d->log.is_full;
	debug_batch_clear(b);
	size_t at = debug_ask(b, "?");
	struct err *e = debug_link_run(&d->link, b);
	if (!e)
		e = debug_take_stop(d, debug_reply(b, at));
	/* Between two pieces it stood as after any step. */
	if (!e && is_interrupted && d->state == DEBUG_STOPPED)
		d->stop.signal = 2;
	if (e)
		err_free(why);
	return e ? e : why;
}

struct err *debug_log_to(struct debug *d, const struct debug_log *log)
{
	struct debug_recorder *r = NULL;
	struct err *e = NULL;
	if (log && d->state != DEBUG_STOPPED)
		e = err_fix(err_new(ERR_INVALID, "no process is stopped here"), "run starts one");
	else if (log && !d->is_scry)
		e = debug_recorder_new(d, &r);
	if (e)
		return e;
	debug_recorder_free(d->log.recorder);
	d->log = log ? *log : (struct debug_log){0};
	d->log.is_on = log;
	d->log.recorder = r;
	return NULL;
}

void debug_ask_go(struct debug *d, struct debug_batch *b, bool is_step, int sig)
{
	int num = sig > 0 ? debug_signal_put(d, sig) : 0;
	/* One instruction loads nothing. */
	d->has_modules &= is_step;
	if (d->log.is_on && !d->log.recorder) {
		ask_log(d, b, is_step ? 1 : LOG_STEPS, num);
		return;
	}
	const char *colon = d->current[0] ? ":" : "";
	if (is_step ? d->has_vcont_s : d->has_vcont) {
		/* A step is of this thread alone, but for one that waits for others; a signal goes to it, and everything else goes on. */
		if (is_step && num)
			debug_ask(b, "vCont;S%02x%s%s", num, colon, d->current);
		else if (is_step)
			debug_ask(b, "vCont;s%s%s%s", colon, d->current, debug_record_waits(d) ? ";c" : "");
		else if (num)
			debug_ask(b, "vCont;C%02x%s%s;c", num, colon, d->current);
		else
			debug_ask(b, "vCont;c");
		return;
	}
	if (d->current[0])
		debug_ask(b, "Hc%s", is_step ? d->current : "-1");
	if (num)
		debug_ask(b, "%c%02x", is_step ? 'S' : 'C', num);
	else
		debug_ask(b, "%c", is_step ? 's' : 'c');
}

struct err *debug_go(struct debug *d, struct debug_batch *b)
{
	debug_runs(b);
	bool is_logged = d->log.is_on && !d->log.recorder, is_one = is_logged && d->log.asked == 1;
	struct err *e = debug_link_run(&d->link, b);
	if (!e && is_logged)
		return go_logged(d, b, is_one);
	return e ? e : debug_take_stop(d, debug_reply(b, b->run_at - 1));
}

static int pending_signal(const struct debug *d, int sig)
{
	/* Traps and the stop that we asked for are ours. */
	if (sig >= 0)
		return sig;
	int s = d->stop.signal;
	return s == 5 || s == 2 || s == 19 || s == 0 ? 0 : s;
}

/* A breakpoint that would stop the current thread where it stands. */
static struct debug_break *under_foot(struct debug *d)
{
	uint64_t pc;
	struct debug_break *k = debug_pc(d, &pc) ? debug_break_at(d, pc) : NULL;
	return k && k->is_in && k->kind == DEBUG_BREAK_SOFT ? k : NULL;
}

/* Whether the thread is the one that stopped, and still where it did. */
static bool is_where_stopped(struct debug *d)
{
	uint64_t pc;
	return d->stop.has_pc && debug_pc(d, &pc) && pc == d->stop.pc && !strcmp(d->current, d->stopped);
}

/* One instruction, with the breakpoint it stands on taken out; that goes back with the next batch. */
static struct err *step_off(struct debug *d, int sig)
{
	_cleanup_batch_ struct debug_batch b = {.is_one_of_many = d->log.is_on && d->log.recorder};
	struct err *e = b.is_one_of_many ? debug_record_before(d) : NULL;
	if (e)
		return e;
	debug_ask_stale(d, &b);
	struct debug_break *k = under_foot(d);
	if (k) {
		debug_ask(&b, "z0,%llx,%x", (unsigned long long)k->va, k->len);
		k->is_lifted = true;
	}
	debug_ask_go(d, &b, true, sig);
	e = debug_go(d, &b);
	return e || !b.is_one_of_many ? e : debug_record_after(d);
}

/* Whether a stop is nothing but the end of a step. */
static bool is_plain_step(const struct debug *d)
{
	return d->state == DEBUG_STOPPED && d->stop.signal == 5 && !d->stop.has_watch;
}

/* A signal that is the target's alone; it goes on with it. */
static bool is_passed(const struct debug *d)
{
	int sig = d->stop.signal;
	return d->state == DEBUG_STOPPED && sig > 0 && sig < 64 && sig != 5 && d->passed >> sig & 1;
}

/* What stopped it: counts hits. False: it is to go on, by its count or its condition. */
static bool judge_stop(struct debug *d)
{
	uint64_t pc;
	struct debug_break *k = NULL;
	if (is_passed(d))
		return false;
	if (d->state != DEBUG_STOPPED || d->stop.signal != 5)
		return true;
	if (d->stop.has_watch) {
		for (size_t i = 0; i < d->breaks.cnt && !k; i++)
			if (d->breaks.data[i].kind >= DEBUG_WATCH_WRITE && d->stop.watch_va - d->breaks.data[i].va < d->breaks.data[i].len)
				k = &d->breaks.data[i];
	} else if (debug_pc(d, &pc)) {
		k = debug_break_at(d, pc);
	}
	if (!k)
		return true;
	if (d->accepts && !d->accepts(d->accepts_ctx, k))
		return false;
	k->hit_cnt++;
	d->stop.break_id = k->id;
	if (!k->ignore_cnt)
		return true;
	k->ignore_cnt--;
	return false;
}

/* Temporary breakpoints. */
struct temps {
	uint64_t va[PLACES_MAX];
	size_t cnt;
};

static void temps_ask(struct debug *d, const struct temps *t, struct debug_batch *b)
{
	for (size_t i = 0; i < t->cnt; i++)
		debug_ask(b, "Z0,%llx,%x", (unsigned long long)t->va[i], d->arch && d->arch->id == ARCH_ID_A64 ? 4 : 1);
}

/* Tries one the first time, so that a server without breakpoints does not let the target run away. */
static struct err *temps_try(struct debug *d, const struct temps *t)
{
	_cleanup_batch_ struct debug_batch b = {0};
	if (d->break_works || !t->cnt)
		return NULL;
	debug_ask_stale(d, &b);
	size_t i = b.out_ends.cnt;
	temps_ask(d, &(struct temps){.va = {t->va[0]}, .cnt = 1}, &b);
	struct err *e = debug_link_run(&d->link, &b);
	if (!e && !debug_reply_is_ok(&b, i))
		e = debug_refused(debug_reply(&b, i), "breakpoints");
	if (!e && !VEC_PUSH(&d->stale, t->va[0]))
		e = &err_nomem;
	d->break_works = !e;
	return e;
}

/* Whether it stands where a breakpoint or a temporary one would stop it. */
static bool is_at_break(struct debug *d, const struct temps *t)
{
	uint64_t now;
	if (!debug_pc(d, &now))
		return true;
	bool is_there = debug_break_at(d, now);
	for (size_t i = 0; i < t->cnt; i++)
		is_there |= t->va[i] == now;
	return is_there;
}

/* The same in single steps, for the log. */
static struct err *go_by_steps(struct debug *d, const struct temps *t, int sig)
{
	(void)debug_link_is_interrupted(&d->link);
	for (;; sig = 0) {
		struct err *e = step_off(d, sig);
		if (e || !d->log.is_on || !is_plain_step(d) || is_at_break(d, t))
			return e;
		if (debug_link_is_interrupted(&d->link)) {
			d->stop.signal = 2;
			return NULL;
		}
	}
}

/* One go from here to the next stop that counts for the server. */
static struct err *go_once(struct debug *d, const struct temps *t, int sig)
{
	_cleanup_batch_ struct debug_batch b = {0};
	if (d->log.is_on && d->log.recorder)
		return go_by_steps(d, t, sig);
	struct err *e = temps_try(d, t);
	/* Our own server steps over where it stopped by itself. */
	if (!e && under_foot(d) && !(d->is_scry && is_where_stopped(d))) {
		e = step_off(d, sig);
		sig = 0;
		/* A step onto another breakpoint, or back onto the same one, is where it would have stopped. */
		if (e || !is_plain_step(d) || is_at_break(d, t))
			return e;
	}
	if (e || !VEC_RESERVE(&d->stale, d->stale.cnt + t->cnt))
		return e ? e : &err_nomem;
	debug_ask_stale(d, &b);
	temps_ask(d, t, &b);
	debug_ask_go(d, &b, false, sig);
	e = debug_go(d, &b);
	for (size_t i = 0; !e && d->state == DEBUG_STOPPED && i < t->cnt; i++)
		d->stale.data[d->stale.cnt++] = t->va[i];
	return e;
}

struct err *debug_continue(struct debug *d, int sig)
{
	DEBUG_STOPPED_ONLY(d);
	struct err *e = go_once(d, &(struct temps){.cnt = 0}, pending_signal(d, sig));
	for (int i = 0; !e && i < MAX_PASSES && !judge_stop(d); i++)
		e = go_once(d, &(struct temps){.cnt = 0}, is_passed(d) ? d->stop.signal : 0);
	return e;
}

struct err *debug_step_insn(struct debug *d)
{
	DEBUG_STOPPED_ONLY(d);
	struct err *e = step_off(d, pending_signal(d, -1));
	for (int i = 0; !e && i < MAX_PASSES && is_passed(d); i++)
		e = step_off(d, d->stop.signal);
	if (!e)
		(void)judge_stop(d);
	return e;
}

/* Which place it is at, -1: none, or of another frame or thread. */
static int place_hit(struct debug *d, const struct debug_place *places, size_t cnt, const char *thread)
{
	uint64_t pc, sp = UINT64_MAX;
	if (d->state != DEBUG_STOPPED || d->stop.signal != 5 || !debug_pc(d, &pc) || strcmp(d->current, thread))
		return -1;
	for (size_t i = 0; i < cnt; i++)
		if (places[i].va == pc && (!places[i].min_sp || (debug_reg(d, d->regs.sp, &sp) && sp >= places[i].min_sp)))
			return (int)i;
	return -1;
}

struct err *debug_run_to(struct debug *d, const struct debug_place *places, size_t cnt, int *ret_hit)
{
	DEBUG_STOPPED_ONLY(d);
	struct temps t = {0};
	char thread[DEBUG_ID_MAX];
	memcpy(thread, d->current, sizeof(thread));
	*ret_hit = -1;
	for (size_t i = 0; i < cnt && t.cnt < PLACES_MAX; i++) {
		struct debug_break *k = debug_break_at(d, places[i].va);
		bool is_there = k && k->is_in;
		for (size_t n = 0; n < t.cnt; n++)
			is_there |= t.va[n] == places[i].va;
		if (!is_there)
			t.va[t.cnt++] = places[i].va;
	}
	int sig = pending_signal(d, -1);
	for (int pass = 0; pass < MAX_PASSES; pass++) {
		struct err *e = go_once(d, &t, sig);
		sig = 0;
		if (e)
			return e;
		if (is_passed(d)) {
			sig = d->stop.signal;
			continue;
		}
		*ret_hit = place_hit(d, places, cnt, thread);
		uint64_t pc;
		if (*ret_hit >= 0 || d->state != DEBUG_STOPPED || d->stop.signal != 5 || d->stop.has_watch || !debug_pc(d, &pc)) {
			(void)judge_stop(d);
			return NULL;
		}
		bool is_ours = false;
		for (size_t i = 0; i < t.cnt; i++)
			is_ours |= t.va[i] == pc;
		if (!is_ours && judge_stop(d))
			return NULL;
		/* A place of ours in a deeper call or another thread: off it first. */
		e = is_ours ? debug_step_insn(d) : NULL;
		if (e || d->state != DEBUG_STOPPED || d->stop.signal != 5)
			return e;
	}
	return err_new(ERR_BUDGET, "the place was passed too often");
}
