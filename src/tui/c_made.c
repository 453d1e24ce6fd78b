/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include <stdlib.h>

/*
 * C of functions, made in jobs and kept for the last few. What an older snapshot gave is shown until the newer one's is there, so
 * that an edit does not blank the pane; what the cursor has left is cancelled.
 */
struct c_job {
	struct tui_job job;
	struct tui_c_made *made;
};

static void made_free(struct tui_c_made *m)
{
	if (!m)
		return;
	err_free(m->err);
	arena_fini(&m->arena);
	free(m);
}

static struct tui_c_made **slot_of(struct tui *t, uint64_t func)
{
	for (int i = 0; i < TUI_C_KEPT; i++) {
		if (t->c.made[i] && t->c.made[i]->func == func)
			return &t->c.made[i];
	}
	return NULL;
}

/* A free place, or that of what was used longest ago and is not on the screen. */
static struct tui_c_made **slot_free(struct tui *t)
{
	struct tui_c_made **oldest = NULL;
	for (int i = 0; i < TUI_C_KEPT; i++) {
		struct tui_c_made **at = &t->c.made[i];
		if (!*at)
			return at;
		if (*at != t->c.shown && (!oldest || (*at)->used < (*oldest)->used))
			oldest = at;
	}
	made_free(*oldest);
	*oldest = NULL;
	return oldest;
}

static void run(struct tui_job *j)
{
	struct tui_c_made *m = ((struct c_job *)j)->made;
	m->err = ses_decompile(j->snap, &j->call, m->func, &m->arena, &m->c);
}

static void done(struct tui *t, struct tui_job *j)
{
	struct c_job *cj = (struct c_job *)j;
	if (t->c.job != j)
		return;
	t->c.job = NULL;
	t->is_dirty = true;
	struct tui_c_made *m = take_ptr(cj->made);
	m->snap = j->snap == t->snap ? j->snap : NULL;
	m->used = ++t->c.clock;
	struct tui_c_made **at = slot_of(t, m->func);
	if (at) {
		struct tui_c_made *old = *at;
		*at = m;
		if (old == t->c.shown)
			tui_c_replaced(t, old, m);
		made_free(old);
	} else {
		*slot_free(t) = m;
	}
}

static void fini(struct tui_job *j)
{
	made_free(((struct c_job *)j)->made);
}

void tui_c_cancel(struct tui *t)
{
	tui_job_cancel(t->c.job);
	t->c.job = NULL;
}

static void start(struct tui *t, uint64_t func)
{
	struct c_job *cj = calloc(1, sizeof(*cj));
	struct tui_c_made *m = calloc(1, sizeof(*m));
	if (!cj || !m) {
		free(cj);
		free(m);
		tui_say_err(t, &err_nomem);
		return;
	}
	tui_c_cancel(t);
	m->func = func;
	cj->made = m;
	cj->job.run = run;
	cj->job.done = done;
	cj->job.fini = fini;
	t->c.job = &cj->job;
	t->c.job_func = func;
	tui_job_start(t, &cj->job);
}

struct tui_c_made *tui_c_get(struct tui *t, uint64_t func)
{
	struct tui_c_made **at = slot_of(t, func);
	bool is_running = t->c.job && t->c.job_func == func && t->c.job->snap == t->snap;
	if (at && (*at)->snap == t->snap) {
		if (!is_running)
			tui_c_cancel(t);
	} else if (!is_running) {
		start(t, func);
		at = slot_of(t, func);
	}
	if (at)
		(*at)->used = ++t->c.clock;
	return at ? *at : NULL;
}

void tui_c_outdate(struct tui *t)
{
	for (int i = 0; i < TUI_C_KEPT; i++) {
		if (t->c.made[i])
			t->c.made[i]->snap = NULL;
	}
}

void tui_c_fini(struct tui *t)
{
	tui_c_cancel(t);
	for (int i = 0; i < TUI_C_KEPT; i++)
		made_free(take_ptr(t->c.made[i]));
	t->c.shown = NULL;
	t->c.rows_of = NULL;
	VEC_FREE(&t->c.folds);
	VEC_FREE(&t->c.rows);
}
