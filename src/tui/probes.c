/* SPDX-License-Identifier: Apache-2.0 */
#include "session/ses_probe.h"

#include "tui/tui_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * Probes on functions and instructions of what is shown, in every process that runs it. Attaching, reading and detaching are jobs, since each may
 * take longer than a frame; while any is attached a timer asks for news five times a second, and without one nothing wakes us.
 */
#define NEWS_NS 200000000u
#define LINES_MAX 4000 /* hits told of at once: of more only the counts are right at once */

enum probe_state { ATTACHING, ATTACHED, DETACHING };

struct tui_probe {
	struct ses *ses;          /* whose addresses these are */
	struct ses_probes *set;   /* null while it is attaching; a job's while there is one */
	uint64_t va;
	enum probe_state state;
	bool is_leaving;          /* wanted off while a job had it */
	bool has_return;
	uint64_t hits, returns, ns;
	char name[128];
	char last[SES_PROBE_TEXT];
};

static uint64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static struct tui_probe *find(const struct tui *t, const struct ses *s, uint64_t va)
{
	for (size_t i = 0; i < t->probes.cnt; i++) {
		if (t->probes.data[i]->va == va && t->probes.data[i]->ses == s)
			return t->probes.data[i];
	}
	return NULL;
}

static void forget(struct tui *t, struct tui_probe *p)
{
	for (size_t i = 0; i < t->probes.cnt; i++) {
		if (t->probes.data[i] != p)
			continue;
		t->probes.data[i] = VEC_POP(&t->probes);
		break;
	}
	free(p);
	tui_list_refresh(&t->probes_list);
}

/* --- jobs ------------------------------------------------------------------------------------------------------------- */

struct probe_job {
	struct tui_job job;
	struct tui_probe *probe;  /* of attaching and detaching */
	struct tui_probe **all;   /* of news: what is attached */
	size_t cnt, lines;
	char what[40];
	struct ses_probes *set;
	struct ses_probe_counts *counts;
	struct err *err;
};

static void attach_run(struct tui_job *j)
{
	struct probe_job *b = (struct probe_job *)j;
	const char *whats[] = {b->what};
	struct ses_probe_opts o = {.whats = whats, .what_cnt = 1};
	j->call.caps |= SES_CAP_TRACE;
	b->err = ses_probes_open(j->snap, &j->call, &o, &b->set);
}

static void start_detach(struct tui *t, struct tui_probe *p);

static void attach_done(struct tui *t, struct tui_job *j)
{
	struct probe_job *b = (struct probe_job *)j;
	struct tui_probe *p = b->probe;
	struct ses_probe_counts c;
	t->is_dirty = true;
	if (b->err) {
		const char *fix = b->err->fix;
		tui_say(t, true, "no probe at 0x%llx: %s%s%s", (unsigned long long)p->va, b->err->text ? b->err->text : err_kind_name(b->err->kind),
			fix ? ": " : "", fix ? fix : "");
		forget(t, p);
		return;
	}
	p->set = take_ptr(b->set);
	p->state = ATTACHED;
	ses_probes_get(p->set, 0, &c);
	snprintf(p->name, sizeof(p->name), "%s", c.name);
	p->has_return = c.has_return;
	if (p->is_leaving) {
		start_detach(t, p);
		return;
	}
	tui_say(t, false, "probed: %s%s", p->name, p->has_return ? "" : ", its beginning alone");
	t->probes_due_ns = now_ns() + NEWS_NS;
}

static void probe_fini(struct tui_job *j)
{
	struct probe_job *b = (struct probe_job *)j;
	err_free(b->err);
	ses_probes_close(b->set);
	free(b->all);
	free(b->counts);
}

static void detach_run(struct tui_job *j)
{
	struct probe_job *b = (struct probe_job *)j;
	ses_probes_close(take_ptr(b->set));
}

static void detach_done(struct tui *t, struct tui_job *j)
{
	t->is_dirty = true;
	forget(t, ((struct probe_job *)j)->probe);
}

static struct probe_job *make_job(struct tui *t, struct tui_probe *p, void (*run)(struct tui_job *), void (*done)(struct tui *, struct tui_job *))
{
	struct probe_job *b = calloc(1, sizeof(*b));
	if (!b) {
		tui_say_err(t, &err_nomem);
		return NULL;
	}
	b->probe = p;
	b->job.run = run;
	b->job.done = done;
	b->job.fini = probe_fini;
	return b;
}

/* Whether news are being read: then a probe is a job's. */
static bool is_busy(const struct tui *t)
{
	return t->probes_job != NULL;
}

static void start_detach(struct tui *t, struct tui_probe *p)
{
	if (is_busy(t)) {
		p->is_leaving = true;
		return;
	}
	struct probe_job *b = make_job(t, p, detach_run, detach_done);
	if (!b)
		return;
	b->set = take_ptr(p->set);
	p->state = DETACHING;
	tui_job_start(t, &b->job);
}

/* --- news ------------------------------------------------------------------------------------------------------------- */

static bool on_line(void *ctx, const char *line, size_t len)
{
	struct probe_job *b = ctx;
	(void)line;
	(void)len;
	return ++b->lines < LINES_MAX;
}

static void news_run(struct tui_job *j)
{
	struct probe_job *b = (struct probe_job *)j;
	uint64_t cnt;
	for (size_t i = 0; i < b->cnt; i++) {
		b->lines = 0;
		struct err *e = ses_probes_drain(b->all[i]->set, on_line, b, &cnt);
		if (e && !b->err)
			b->err = e;
		else
			err_free(e);
		ses_probes_get(b->all[i]->set, 0, &b->counts[i]);
	}
}

static void news_done(struct tui *t, struct tui_job *j)
{
	struct probe_job *b = (struct probe_job *)j;
	t->probes_job = NULL;
	for (size_t i = 0; i < b->cnt; i++) {
		struct tui_probe *p = b->all[i];
		const struct ses_probe_counts *c = &b->counts[i];
		t->is_dirty |= c->hits != p->hits || c->returns != p->returns;
		p->hits = c->hits;
		p->returns = c->returns;
		p->ns = c->ns;
		snprintf(p->last, sizeof(p->last), "%s", c->last);
		if (p->is_leaving)
			start_detach(t, p);
	}
	if (b->err)
		tui_say_err(t, take_ptr(b->err));
	if (t->is_dirty)
		tui_list_refresh(&t->probes_list);
	t->probes_due_ns = b->cnt ? now_ns() + NEWS_NS : 0;
}

void tui_probes_read(struct tui *t)
{
	t->probes_due_ns = 0;
	struct probe_job *b = is_busy(t) || !t->probes.cnt ? NULL : make_job(t, NULL, news_run, news_done);
	if (!b)
		return;
	b->all = calloc(t->probes.cnt, sizeof(*b->all));
	b->counts = calloc(t->probes.cnt, sizeof(*b->counts));
	for (size_t i = 0; b->all && b->counts && i < t->probes.cnt; i++) {
		if (t->probes.data[i]->state == ATTACHED)
			b->all[b->cnt++] = t->probes.data[i];
	}
	if (!b->cnt) {
		probe_fini(&b->job);
		free(b);
		return;
	}
	b->job.is_driver = true; /* nobody waits for it */
	t->probes_job = &b->job;
	tui_job_start(t, &b->job);
}

void tui_probes_tick(struct tui *t, uint64_t now)
{
	if (t->probes_due_ns && now >= t->probes_due_ns)
		tui_probes_read(t);
}

/* --- on and off ------------------------------------------------------------------------------------------------------- */

static void toggle(struct tui *t, uint64_t va)
{
	struct tui_probe *p = find(t, t->ses, va);
	if (p && p->state == ATTACHED) {
		tui_say(t, false, "no probe any more: %s", p->name);
		start_detach(t, p); /* p may be gone */
		return;
	}
	if (p) { /* on its way */
		p->is_leaving = p->state == ATTACHING && !p->is_leaving;
		return;
	}
	if (t->is_driven) {
		tui_say(t, true, "denied: a driver may not trace programs");
		return;
	}
	const char *why = ses_probe_refuse(t->snap, va, &t->frame_arena);
	if (why) {
		tui_say(t, true, "%s", why);
		return;
	}
	p = calloc(1, sizeof(*p));
	struct probe_job *b = p ? make_job(t, p, attach_run, attach_done) : NULL;
	if (!b || !VEC_PUSH(&t->probes, p)) {
		free(p);
		free(b);
		tui_say_err(t, &err_nomem);
		return;
	}
	*p = (struct tui_probe){.ses = t->ses, .va = va};
	snprintf(p->name, sizeof(p->name), "0x%llx", (unsigned long long)va);
	snprintf(b->what, sizeof(b->what), "0x%llx", (unsigned long long)va);
	tui_say(t, false, "attaching a probe to 0x%llx", (unsigned long long)va);
	tui_list_refresh(&t->probes_list);
	tui_job_start(t, &b->job);
}

bool tui_probes_act(struct tui *t, enum tui_action a)
{
	uint64_t va;
	if (a == TUI_PROBES) {
		tui_list_restart(&t->probes_list);
		tui_overlay_push(t, TUI_O_PROBES);
		return true;
	}
	if (a == TUI_PROBES_OFF) {
		for (size_t i = t->probes.cnt; i-- > 0;) {
			if (t->probes.data[i]->state == ATTACHED)
				start_detach(t, t->probes.data[i]);
			else
				t->probes.data[i]->is_leaving = true;
		}
		tui_say(t, false, "no probes any more");
		return true;
	}
	if (a != TUI_PROBE)
		return false;
	if (tui_focus_va(t, &va))
		toggle(t, va);
	else
		tui_say(t, false, "no address is under the cursor");
	return true;
}

/* All jobs are through. */
void tui_probes_fini(struct tui *t)
{
	for (size_t i = 0; i < t->probes.cnt; i++) {
		ses_probes_close(t->probes.data[i]->set);
		free(t->probes.data[i]);
	}
	VEC_FREE(&t->probes);
}

/* --- what is shown ---------------------------------------------------------------------------------------------------- */

static void put_counts(const struct tui_probe *p, char *out, size_t cap)
{
	char n[2][32];
	if (p->state != ATTACHED)
		snprintf(out, cap, p->state == ATTACHING ? "attaching" : "detaching");
	else if (p->returns)
		snprintf(out, cap, "%s hit%s, mean %s ns", tui_number(p->hits, n[0]), p->hits == 1 ? "" : "s", tui_number(p->ns / p->returns, n[1]));
	else
		snprintf(out, cap, "%s hit%s", tui_number(p->hits, n[0]), p->hits == 1 ? "" : "s");
}

bool tui_probe_draw(struct tui *t, struct cells_pen *p, uint64_t va, enum term_role bg)
{
	char counts[96];
	const struct tui_probe *probe = find(t, t->ses, va);
	if (!probe)
		return false;
	put_counts(probe, counts, sizeof(counts));
	p->st = tui_style(ROLE_KEY, bg);
	cells_printf(p, "  @ %s", counts);
	p->st.fg = ROLE_STRING;
	cells_str(p, *probe->last ? "  " : "");
	cells_text(p, probe->last, strlen(probe->last));
	return true;
}

bool tui_probe_next(const struct tui *t, size_t *at, uint64_t *ret_va)
{
	while (*at < t->probes.cnt) {
		const struct tui_probe *p = t->probes.data[(*at)++];
		*ret_va = p->va;
		if (p->ses == t->ses)
			return true;
	}
	return false;
}

static struct ses_text text_of(const char *s)
{
	return s ? (struct ses_text){s, (uint32_t)strlen(s)} : (struct ses_text){"", 0};
}

static struct err *probes_fetch(const struct tui_query *q, struct tui_page *ret)
{
	char counts[96];
	const struct tui *t = q->tui;
	ret->total = t ? t->probes.cnt : 0;
	ret->rows = ARENA_ARRAY(&ret->arena, struct tui_row, (size_t)ret->total + 1);
	if (!ret->rows)
		return &err_nomem;
	for (uint64_t i = q->page.offset; i < ret->total && ret->cnt < q->page.limit; i++) {
		const struct tui_probe *p = t->probes.data[i];
		struct tui_row *r = &ret->rows[ret->cnt++];
		put_counts(p, counts, sizeof(counts));
		*r = (struct tui_row){.va = p->va, .has_va = p->ses == t->ses};
		r->col[0] = text_of(arena_printf(&ret->arena, "%llx", (unsigned long long)p->va));
		r->col[1] = text_of(arena_printf(&ret->arena, "%s", p->name));
		r->col[2] = text_of(arena_printf(&ret->arena, "%s", counts));
		r->col[3] = text_of(arena_printf(&ret->arena, "%s", p->last));
		if (!r->col[0].s || !r->col[1].s || !r->col[2].s || !r->col[3].s)
			return &err_nomem;
	}
	return NULL;
}

const struct tui_list_ops tui_probes_list = {
	.title = "Probes",
	.empty = "none (F6 on a function, an instruction or a line of C)",
	.columns = {{.title = "address", .width = 12, .role = ROLE_ADDR, .is_right = true},
		    {.title = "where", .width = 26, .role = ROLE_NAME},
		    {.title = "counts", .width = 28, .role = ROLE_KEY},
		    {.title = "last hit", .role = ROLE_STRING}},
	.column_cnt = 4,
	.fetch = probes_fetch,
};
