/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Edits and analyses of other processes. What they committed is read by a job; a burst of commits is read in steps, so
 * that the screen follows somebody who writes all the time without doing nothing else.
 */
#define STEP_NS 100000000u
#define LOOK_BACK 16 /* entries, of which the newest that is no analysis is shown */

struct refresh_job {
	struct tui_job job;
	struct ses *ses;
	uint64_t old_rev, rev;
	struct ses_entry *last; /* the newest entry of somebody's */
	char changed[sizeof(((struct tui *)0)->changed)];
	uint64_t proposals;     /* that wait */
	uint64_t proposals_ever;
	char proposer[64];      /* of the newest */
	struct arena arena;
	struct err *err;
};

/* The newest thing somebody did, and the key that takes it back. */
static struct err *read_changed(struct refresh_job *r)
{
	struct arena a = {0};
	struct ses_entry *list;
	uint32_t cnt = 0;
	uint64_t total = 0;
	struct ses_journal_ask ask = {.first_seq = 1, .limit = 1};
	struct err *e = ses_journal(r->ses, &ask, &a, &list, &cnt, &total);
	if (!e && total) {
		ask = (struct ses_journal_ask){.first_seq = total > LOOK_BACK ? total - LOOK_BACK + 1 : 1, .limit = LOOK_BACK};
		e = ses_journal(r->ses, &ask, &a, &list, &cnt, &total);
	}
	while (!e && cnt && !strcmp(list[cnt - 1].step, "analysis"))
		cnt--;
	if (!e && cnt) {
		const struct ses_entry *n = &list[cnt - 1];
		bool is_edit = !strcmp(n->step, "edit"), is_undo = !strcmp(n->step, "undo");
		snprintf(r->changed, sizeof(r->changed), "%s%s%s%s%.*s (%s)", is_edit ? "" : n->step, is_edit ? "" : " of ", n->op,
			 n->has_after ? " " : "", n->has_after ? (int)MIN(n->after.len, 40) : 0, n->has_after ? n->after.s : "",
			 is_undo ? "Alt+z makes it again" : "Ctrl+Z takes it back");
	}
	arena_fini(&a);
	return e;
}

/* What waits now, and how many there ever were: who decides meanwhile makes the first less, never the second. */
static struct err *read_proposals(struct refresh_job *r)
{
	struct arena a = {0};
	struct ses_proposal *p;
	uint32_t cnt = 0;
	struct err *e = tui_proposals_count(r->ses, false, &r->proposals);
	if (!e)
		e = tui_proposals_count(r->ses, true, &r->proposals_ever);
	uint64_t unused;
	const struct ses_proposals_ask last = {.has_decided = true, .offset = r->proposals_ever ? r->proposals_ever - 1 : 0, .limit = 1};
	if (!e && r->proposals_ever)
		e = ses_proposals(r->ses, &last, &a, &p, &cnt, &unused);
	if (!e && cnt)
		snprintf(r->proposer, sizeof(r->proposer), "%s", p->author);
	arena_fini(&a);
	return e;
}

static void run(struct tui_job *j)
{
	struct refresh_job *r = (struct refresh_job *)j;
	struct ses_journal_ask ask = {.since = r->old_rev, .first_seq = 1, .limit = 1};
	uint32_t cnt = 0;
	uint64_t total = 0;
	r->err = ses_refresh(r->ses);
	if (r->err)
		return;
	r->err = read_changed(r);
	if (!r->err)
		r->err = read_proposals(r);
	if (r->err)
		return;
	struct ses_snap *sn = ses_snap_get(r->ses);
	r->rev = ses_snap_rev(sn);
	ses_snap_put(sn);
	if (r->rev <= r->old_rev)
		return;
	struct err *e = ses_journal(r->ses, &ask, &r->arena, &r->last, &cnt, &total);
	if (!e && total > 1) {
		ask.first_seq += total - 1;
		e = ses_journal(r->ses, &ask, &r->arena, &r->last, &cnt, &total);
	}
	if (e || !cnt)
		r->last = NULL;
	err_free(e);
}

static void fini(struct tui_job *j)
{
	struct refresh_job *r = (struct refresh_job *)j;
	err_free(r->err);
	arena_fini(&r->arena);
}

/* What is proposed is no revision: it is told of by its number. */
static void take_proposals(struct tui *t, const struct refresh_job *r)
{
	const char *key = tui_keymap_keys(t->keys, TUI_VIEW_PROPOSALS);
	uint64_t more = t->has_proposals && r->proposals_ever > t->proposals_ever ? r->proposals_ever - t->proposals_ever : 0;
	if (more && r->proposals)
		tui_say(t, false, "%s proposes %llu edit%s (%.*s shows what waits)", r->proposer, (unsigned long long)more, more == 1 ? "" : "s",
			(int)strcspn(key, " "), key);
	t->is_dirty |= t->proposals_waiting != r->proposals || t->main_view == TUI_V_PROPOSALS;
	t->has_proposals = true;
	t->proposals_waiting = r->proposals;
	t->proposals_ever = r->proposals_ever;
	tui_list_snap_changed(t, &t->lists[TUI_V_PROPOSALS]);
}

static void done(struct tui *t, struct tui_job *j)
{
	struct refresh_job *r = (struct refresh_job *)j;
	t->refresh_job = NULL;
	if (r->ses != t->ses) /* another binary is shown by now */
		return;
	if (r->err) {
		tui_say_err(t, take_ptr(r->err));
		return;
	}
	take_proposals(t, r);
	if (strcmp(t->changed, r->changed)) {
		memcpy(t->changed, r->changed, sizeof(t->changed));
		t->is_dirty = true;
	}
	if (!r->last || t->edit_running || r->last->rev <= t->own_rev || !strcmp(r->last->step, "analysis"))
		return;
	const struct ses_entry *e = r->last;
	tui_say(t, false, "%s: %s%s%s%s%.*s  (revision %llu, U shows all)", e->author ? e->author : "", strcmp(e->step, "edit") ? e->step : "",
		strcmp(e->step, "edit") ? " of " : "", e->op, e->has_after ? " " : "", (int)MIN(e->after.len, 40), e->after.s,
		(unsigned long long)e->rev);
}

static void start(struct tui *t)
{
	struct refresh_job *r = calloc(1, sizeof(*r));
	if (!r)
		return;
	r->ses = t->ses;
	r->old_rev = ses_snap_rev(t->snap);
	r->job.run = run;
	r->job.done = done;
	r->job.fini = fini;
	t->refresh_job = &r->job;
	t->refresh_due_ns = 0;
	tui_job_start(t, &r->job);
}

void tui_watch_event(struct tui *t, uint64_t now)
{
	if (!t->refresh_due_ns)
		t->refresh_due_ns = MAX(now, t->refresh_last_ns + STEP_NS);
	tui_watch_tick(t, now);
}

void tui_watch_tick(struct tui *t, uint64_t now)
{
	if (!t->refresh_due_ns || t->refresh_job || now < t->refresh_due_ns)
		return;
	t->refresh_last_ns = now;
	start(t);
}
