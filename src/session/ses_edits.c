/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edits as front ends make them: the journal is written, and the session's newest snapshot is replaced by one that shares the
 * image and has the newer facts.
 */
#include "session/ses_edit_int.h"
#include "session/ses_stated_int.h"
#include "session/ses_types.h"
#include "session/store_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static void close_editsp(struct edits **e)
{
	edits_close(*e);
}
#define _cleanup_edits_ _cleanup_(close_editsp)

/* The caller acts as the store's owner. */
static struct err *open_edits(struct ses *s, bool is_read_only, struct edits **ret)
{
	if (!s->store || !s->has_sha256)
		return err_fix(err_new(ERR_READONLY, "%s: there is no store to keep edits in%s%s", s->path, s->store_note ? ": " : "",
				       s->store_note ? s->store_note : ""), "scry doctor says what is wrong with it");
	struct err *why = store_open_edits(s->store, s->sha256, is_read_only, ret);
	if (why)
		return why;
	struct ses_snap *sn = ses_snap_get(s);
	edits_set_bias(*ret, ses_snap_bias(sn));
	ses_snap_put(sn);
	return NULL;
}

/* For reading; null when nobody wrote anything yet, which is an empty journal. */
static struct err *open_reader(struct ses *s, struct edits **ret)
{
	struct err *why = open_edits(s, true, ret);
	if (!why || why->kind != ERR_NOT_FOUND)
		return why;
	err_free(why);
	*ret = NULL;
	return NULL;
}

/*
 * The connection that writes. It is kept: opening and closing one costs a checkpoint of the log, many times what an edit
 * does. The lock is held until unlock_writer().
 */
static struct err *lock_writer(struct ses *s, struct edits **ret)
{
	pthread_mutex_lock(&s->edits_lock);
	struct err *why = s->edits ? NULL : open_edits(s, false, &s->edits);
	*ret = s->edits;
	return why;
}

static void unlock_writerp(struct ses **s)
{
	pthread_mutex_unlock(&(*s)->edits_lock);
}
#define _cleanup_writer_ _cleanup_(unlock_writerp)

void ses_edits_close(struct ses *s)
{
	if (!s->edits)
		return;
	_cleanup_as_ struct store_as as = store_as_user(s->store);
	edits_close(s->edits);
	s->edits = NULL;
}

/* Somebody published another analysis. */
static struct err *take_newer_image(struct ses *s)
{
	struct ses_snap *sn = NULL;
	struct err *why = ses_open_stored(s, &sn);
	if (!why)
		ses_publish(s, sn);
	return why;
}

/* The newest snapshot with the facts of now. The view before is what the newer one is made from. */
static struct err *refresh_from(struct ses *s, struct edits *e)
{
	struct ses_snap *was = ses_snap_get(s);
	struct edits_view *view = NULL;
	edits_set_bias(e, ses_snap_bias(was));
	struct err *why = edits_view_get(e, was->edits, &view);
	const struct edits_state *st = why ? NULL : edits_view_state(view);
	bool is_newer_image = !why && st->image_gen > was->gen && was->gen;
	if (why || st->rev == was->rev || st->image_gen != was->gen) {
		edits_view_unref(view);
		ses_snap_put(was);
		return is_newer_image ? take_newer_image(s) : why;
	}
	struct ses_snap *sn = ses_snap_with(was, view);
	if (!sn) {
		edits_view_unref(view);
		ses_snap_put(was);
		return &err_nomem;
	}
	ses_types_inherit(sn, was);
	ses_snap_put(was);
	ses_publish(s, sn);
	return NULL;
}

/* Not beside an edit of our own, whose newer facts it could replace by those of a moment before. */
static struct err *take_news(struct ses *s)
{
	_cleanup_as_ struct store_as as = store_as_user(s->store);
	pthread_mutex_lock(&s->edits_lock);
	_cleanup_writer_ struct ses *locked = s;
	_cleanup_edits_ struct edits *e = NULL;
	struct err *why = open_reader(s, &e);
	return why || !e ? why : refresh_from(s, e);
}

struct err *ses_refresh(struct ses *s)
{
	if (!s->store || !ses_has_hash(s))
		return NULL;
	struct err *why = take_news(s);
	if (why)
		return why;
	ses_analyse_newer(s);
	struct ses_snap *sn = ses_snap_get(s);
	bool is_due = s->event_fd < 0 && s->file && ses_snap_is_stale(sn);
	ses_snap_put(sn);
	return is_due ? ses_build(s) : NULL;
}

static struct err *take_opts(const struct ses_edit_opts *o, struct edits_opts *ret)
{
	static const char *const kinds[] = {[EDITS_HUMAN] = "human", [EDITS_AGENT] = "agent", [EDITS_SCRIPT] = "script"};
	*ret = (struct edits_opts){.is_atomic = o->is_atomic, .is_dry_run = o->is_dry_run, .author = o->author, .note = o->note,
				   .if_rev = o->has_if_rev ? (int64_t)MIN(o->if_rev, (uint64_t)INT64_MAX) : -1};
	for (size_t i = 0; o->author_kind && i < ARRAY_LEN(kinds); i++) {
		if (!strcmp(kinds[i], o->author_kind)) {
			ret->author_kind = (enum edits_author_kind)i;
			return NULL;
		}
	}
	return o->author_kind ? err_new(ERR_INVALID, "%s: an author is human, agent or script", o->author_kind) : NULL;
}

static struct err *take_edits(const struct ses_edit *edits, size_t cnt, struct arena *a, struct edits_change **ret)
{
	struct edits_change *c = ARENA_ARRAY(a, struct edits_change, cnt + 1);
	if (!c)
		return &err_nomem;
	for (size_t i = 0; i < cnt; i++) {
		c[i] = (struct edits_change){.va = edits[i].addr, .sub = edits[i].sub ? edits[i].sub : "", .value = edits[i].value,
					     .value_len = edits[i].value_len, .proposal = edits[i].proposal};
		if (!edits_kind_find(edits[i].op, &c[i].kind) || c[i].kind == EDITS_ANALYSIS)
			return err_new(ERR_INVALID, "%s: there is no such edit", edits[i].op);
	}
	*ret = c;
	return NULL;
}

static struct err *make_canonical(struct ses_snap *sn, struct ses_edit *edits, struct edits_change *c, size_t cnt, struct arena *a)
{
	struct err *why = NULL;
	for (size_t i = 0; !why && i < cnt; i++) {
		why = ses_typing_canonical(sn, &c[i], a);
		edits[i].value = c[i].value;
		edits[i].value_len = c[i].value_len;
	}
	return why;
}

/* The snapshot that edits are judged at. Edits of one call may name what it declares. */
static struct err *judging_snap(struct ses *s, const struct edits_change *c, size_t cnt, struct ses_snap **ret)
{
	struct ses_snap *newest = ses_snap_get(s), *sn = newest;
	size_t i = 0;
	while (i < cnt && c[i].kind != EDITS_DECL)
		i++;
	struct err *why = NULL;
	if (i < cnt && cnt > 1) {
		struct edits_view *edits = edits_view_ref(newest->edits);
		sn = ses_snap_with(newest, edits);
		if (!sn)
			edits_view_unref(edits);
		why = sn ? ses_types_foresee(sn, c, cnt) : &err_nomem;
		ses_snap_put(newest);
	}
	if (why)
		ses_snap_put(sn);
	else
		*ret = sn;
	return why;
}

/* The changes of one call: what the caller wants, each behind what gives way to it. */
struct batch {
	struct ses_snap *sn;
	struct edits_change *c;
	struct ses_edit **of;  /* whose each change is; null: it gives way */
	size_t cnt;
};

/* In the place of ses_edit_refuse(): what gives way is none of the caller's wishes. */
static const char *batch_refuse(void *ctx, const struct edits_change *c, struct arena *a)
{
	const struct batch *b = ctx;
	return b->of[c - b->c] ? ses_edit_refuse(b->sn, c, a) : NULL;
}

/* Directives as the journal has them; those that come to nothing are answered here. `*ret_refused` counts refusals. */
static struct err *batch_make(struct batch *b, struct ses_edit *edits, const struct edits_change *c, size_t cnt, struct arena *a,
			      size_t *ret_refused)
{
	size_t room = cnt;
	struct ses_directive *made = ARENA_ARRAY(a, struct ses_directive, cnt + 1);
	for (size_t i = 0; made && i < cnt; i++) {
		bool is_directive = edits_is_directive(c[i].kind) && c[i].kind != EDITS_LOAD;
		made[i] = (struct ses_directive){.value = c[i].value};
		struct err *e = is_directive ? ses_directive_make(b->sn, c[i].kind, &edits[i], a, &made[i]) : NULL;
		if (e)
			return e;
		room += made[i].more_cnt;
	}
	b->c = ARENA_ARRAY(a, struct edits_change, room + 1);
	b->of = ARENA_ARRAY(a, struct ses_edit *, room + 1);
	if (!made || !b->c || !b->of)
		return &err_nomem;
	for (size_t i = 0; i < cnt; i++) {
		const struct ses_directive *m = &made[i];
		edits[i].why = m->why;
		edits[i].status = m->is_there ? SES_EDIT_UNCHANGED : SES_EDIT_REFUSED;
		*ret_refused += m->why && !m->is_there;
		if (m->why)
			continue;
		for (size_t k = 0; k < m->more_cnt; k++) {
			b->c[b->cnt] = m->more[k];
			b->c[b->cnt++].is_giving_way = true;
		}
		if (m->value != c[i].value) {
			edits[i].value = m->value;
			edits[i].value_len = m->value ? strlen(m->value) : 0;
		}
		b->c[b->cnt] = c[i];
		b->c[b->cnt].value = edits[i].value;
		b->c[b->cnt].value_len = edits[i].value_len;
		b->of[b->cnt++] = &edits[i];
	}
	return NULL;
}

static void batch_answer(const struct batch *b)
{
	for (size_t i = 0; i < b->cnt; i++) {
		struct ses_edit *e = b->of[i];
		if (!e)
			continue;
		e->status = (enum ses_edit_status)b->c[i].status;
		e->before = b->c[i].before;
		e->before_len = b->c[i].before_len;
		e->why = b->c[i].why;
		e->proposal = b->c[i].proposal;
	}
}

/* The transaction; the caller holds the lock of the writer. */
static struct err *batch_commit(struct ses *s, struct batch *b, struct edits_opts *o, bool is_proposal, struct arena *a, uint64_t *ret_rev)
{
	struct edits *e = NULL;
	struct err *why = NULL;
	o->refuse = batch_refuse;
	o->ctx = b;
	o->view = b->sn->edits;
	if (!s->edits)
		why = open_edits(s, false, &s->edits);
	e = s->edits;
	if (e)
		edits_set_bias(e, ses_snap_bias(b->sn));
	if (!why)
		why = edits_commit(e, b->c, b->cnt, o, a, ret_rev);
	if (!why && is_proposal)
		why = edits_propose(e, b->c, b->cnt, o, a);
	if (why)
		return why;
	batch_answer(b);
	if (!o->is_dry_run || is_proposal)
		store_touch_stamp(s->store, s->sha256);
	return refresh_from(s, e);
}

struct err *ses_edit(struct ses *s, struct ses_edit *edits, size_t cnt, const struct ses_edit_opts *opts, struct arena *a,
		     uint64_t *ret_rev)
{
	struct edits_change *c = NULL;
	struct edits_opts o;
	struct err *why = take_opts(opts, &o);
	if (!why)
		why = take_edits(edits, cnt, a, &c);
	if (why)
		return why;
	if (!s->store)
		return open_edits(s, false, NULL);
	struct batch b = {0};
	size_t refused = 0;
	why = judging_snap(s, c, cnt, &b.sn);
	if (why)
		return why;
	why = make_canonical(b.sn, edits, c, cnt, a);
	if (!why)
		why = batch_make(&b, edits, c, cnt, a, &refused);
	if (!why && refused && o.is_atomic) {
		for (size_t i = 0; i < b.cnt; i++) {
			if (b.of[i])
				b.of[i]->why = "another change of this call was refused";
		}
		b.cnt = 0;
	}
	if (!why) {
		_cleanup_as_ struct store_as as = store_as_user(s->store);
		pthread_mutex_lock(&s->edits_lock);
		_cleanup_writer_ struct ses *locked = s;
		bool is_proposal = opts->is_proposal && !o.is_dry_run;
		o.is_dry_run |= is_proposal;
		why = batch_commit(locked, &b, &o, is_proposal, a, ret_rev);
	}
	ses_snap_put(b.sn);
	if (!why && !o.is_dry_run)
		ses_analyse_newer(s);
	return why;
}

struct err *ses_proposals(struct ses *s, const struct ses_proposals_ask *ask, struct arena *a, struct ses_proposal **ret, uint32_t *ret_cnt,
			  uint64_t *ret_total)
{
	static const char *const states[] = {[EDITS_OPEN] = "open", [EDITS_ACCEPTED] = "accepted", [EDITS_DECLINED] = "refused"};
	const struct edits_proposals_ask want = {.has_decided = ask->has_decided, .author = ask->author, .id = ask->id, .offset = ask->offset,
						 .limit = ask->limit};
	struct edits_proposal *list = NULL;
	*ret = NULL;
	*ret_cnt = 0;
	*ret_total = 0;
	if (!s->store)
		return NULL;
	_cleanup_as_ struct store_as as = store_as_user(s->store);
	_cleanup_edits_ struct edits *e = NULL;
	struct err *why = open_reader(s, &e);
	if (!why && e)
		why = edits_proposals(e, &want, a, &list, ret_cnt, ret_total);
	*ret = why ? NULL : ARENA_ARRAY(a, struct ses_proposal, *ret_cnt + 1u);
	if (why || !*ret)
		return why ? why : &err_nomem;
	for (uint32_t i = 0; i < *ret_cnt; i++) {
		const struct edits_proposal *p = &list[i];
		(*ret)[i] = (struct ses_proposal){.id = p->id, .call = p->call, .time_ns = p->time_ns, .rev = p->rev,
						  .state = p->is_stale ? "stale" : states[p->state], .author = p->author,
						  .author_kind = p->author_kind, .note = p->note ? p->note : "", .op = edits_kind_name(p->kind),
						  .sub = p->sub, .has_addr = p->has_va, .addr = p->va, .has_before = p->before != NULL,
						  .has_after = p->after != NULL, .before = ses_text_of(p->before, p->before_len),
						  .after = ses_text_of(p->after, p->after_len)};
	}
	return NULL;
}

struct err *ses_decline(struct ses *s, const uint64_t *ids, size_t cnt)
{
	if (!s->store)
		return open_edits(s, false, NULL);
	_cleanup_as_ struct store_as as = store_as_user(s->store);
	_cleanup_writer_ struct ses *locked = s;
	struct edits *e = NULL;
	struct err *why = lock_writer(locked, &e);
	if (!why)
		why = edits_decline(e, ids, cnt);
	if (!why)
		store_touch_stamp(s->store, s->sha256);
	return why;
}

struct err *ses_undo(struct ses *s, const struct ses_undo_ask *ask, const struct ses_edit_opts *opts, struct arena *a,
		     struct ses_undone_list *ret)
{
	struct edits_opts o;
	struct edits_steps steps = {0};
	*ret = (struct ses_undone_list){0};
	struct err *why = take_opts(opts, &o);
	if (why)
		return why;
	if (!s->store)
		return open_edits(s, false, NULL);
	_cleanup_as_ struct store_as as = store_as_user(s->store);
	_cleanup_writer_ struct ses *locked = s;
	struct edits *e = NULL;
	why = lock_writer(locked, &e);
	if (why)
		return why;
	if (ask->rev && !ask->is_redo)
		why = edits_undo_rev(e, ask->rev, &o, a, &steps);
	else
		why = ask->is_redo ? edits_redo(e, ask->steps, ask->of_author, &o, a, &steps) :
				     edits_undo(e, ask->steps, ask->of_author, &o, a, &steps);
	ret->list = ARENA_ARRAY(a, struct ses_undone, steps.cnt + 1);
	for (uint32_t i = 0; ret->list && i < steps.cnt; i++) {
		const struct edits_step *st = &steps.list[i];
		ret->list[ret->cnt++] = (struct ses_undone){st->rev, st->target, st->cnt, st->author, st->note ? st->note : ""};
	}
	if (ret->cnt)
		store_touch_stamp(s->store, s->sha256);
	struct err *late = refresh_from(s, e);
	struct ses_snap *sn = ses_snap_get(s);
	ret->rev = sn->rev;
	ses_snap_put(sn);
	ses_analyse_newer(s);
	if (!why)
		return late;
	err_free(late);
	return why;
}

static struct err *take_entries(const struct edits_entry *j, size_t cnt, struct arena *a, struct ses_entry **ret)
{
	struct ses_entry *out = ARENA_ARRAY(a, struct ses_entry, cnt + 1);
	for (size_t i = 0; out && i < cnt; i++) {
		out[i] = (struct ses_entry){
			.seq = j[i].seq, .rev = j[i].rev, .time_ns = j[i].time_ns, .undone_by = j[i].undone_by, .undoes = j[i].undoes,
			.author = j[i].author, .author_kind = j[i].author_kind, .op = edits_kind_name(j[i].kind), .sub = j[i].sub,
			.step = j[i].step, .note = j[i].note ? j[i].note : "", .has_addr = j[i].has_va, .addr = j[i].va,
			.before = ses_text_of(j[i].before, j[i].before_len), .after = ses_text_of(j[i].after, j[i].after_len),
			.has_before = j[i].before != NULL, .has_after = j[i].after != NULL, .cnt = j[i].cnt,
		};
	}
	*ret = out;
	return out ? NULL : &err_nomem;
}

struct err *ses_journal(struct ses *s, const struct ses_journal_ask *ask, struct arena *a, struct ses_entry **ret, uint32_t *ret_cnt,
			uint64_t *ret_total)
{
	struct edits_entry *j = NULL;
	if (!s->store)
		return open_edits(s, true, NULL);
	_cleanup_as_ struct store_as as = store_as_user(s->store);
	_cleanup_edits_ struct edits *e = NULL;
	*ret_cnt = 0;
	*ret_total = 0;
	struct err *why = open_reader(s, &e);
	if (!why && e)
		why = edits_journal(e, &(struct edits_journal_ask){ask->since, ask->first_seq, ask->limit}, a, &j, ret_cnt, ret_total);
	return why ? why : take_entries(j, *ret_cnt, a, ret);
}

struct err *ses_changes(struct ses *s, const struct ses_changes_ask *ask, struct arena *a, struct ses_entry **ret, uint32_t *ret_cnt,
			uint64_t *ret_total)
{
	struct edits_entry *j = NULL;
	if (!s->store)
		return open_edits(s, true, NULL);
	_cleanup_as_ struct store_as as = store_as_user(s->store);
	_cleanup_edits_ struct edits *e = NULL;
	*ret_cnt = 0;
	*ret_total = 0;
	struct err *why = open_reader(s, &e);
	if (!why && e)
		why = edits_changes(e, &(struct edits_changes_ask){ask->since, ask->until, ask->offset, ask->limit}, a, &j, ret_cnt, ret_total);
	return why ? why : take_entries(j, *ret_cnt, a, ret);
}

struct err *ses_stated(struct ses *s, struct arena *a, struct ses_entry **ret, size_t *ret_cnt, uint64_t *ret_rev)
{
	struct edits_entry *j = NULL;
	if (!s->store)
		return open_edits(s, true, NULL);
	_cleanup_as_ struct store_as as = store_as_user(s->store);
	_cleanup_edits_ struct edits *e = NULL;
	struct err *why = open_edits(s, true, &e);
	if (!why)
		why = edits_stated(e, a, &j, ret_cnt, ret_rev);
	return why ? why : take_entries(j, *ret_cnt, a, ret);
}

struct err *ses_check_edits(struct ses *s, struct buf *ret)
{
	if (!s->store)
		return open_edits(s, true, NULL);
	_cleanup_as_ struct store_as as = store_as_user(s->store);
	_cleanup_edits_ struct edits *e = NULL;
	struct err *why = open_edits(s, true, &e);
	if (!why)
		return edits_check(e, ret);
	if (why->kind != ERR_BAD_INPUT)
		return why;
	buf_printf(ret, "%s\n", why->text);
	err_free(why);
	return NULL;
}

/* --- salvage --- */

/* The damaged file and its log under another name: the log first, so that it never stands beside a file it is not of. */
static struct err *put_aside(const char *path, const char *aside)
{
	static const char *const tails[] = {"-wal", "-shm", ""};
	for (size_t i = 0; i < ARRAY_LEN(tails); i++) {
		_cleanup_free_ char *from = NULL;
		_cleanup_free_ char *to = NULL;
		if (asprintf(&from, "%s%s", path, tails[i]) < 0 || asprintf(&to, "%s%s", aside, tails[i]) < 0)
			return &err_nomem;
		if (rename(from, to) && errno != ENOENT)
			return err_os(errno, "%s: cannot be put aside", from);
	}
	return NULL;
}

struct err *ses_salvage(struct ses *s, struct arena *a, struct ses_salvaged *ret)
{
	if (!s->store)
		return open_edits(s, true, NULL);
	pthread_mutex_lock(&s->edits_lock);
	ses_edits_close(s);
	_cleanup_writer_ struct ses *locked = s;
	_cleanup_as_ struct store_as as = store_as_user(locked->store);
	_cleanup_free_ char *path = store_target_path(s->store, s->sha256, "edits.db");
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	char *made = path ? arena_printf(a, "%s.salvaged-%lld", path, (long long)now.tv_sec) : NULL;
	char *aside = path ? arena_printf(a, "%s.damaged-%lld", path, (long long)now.tv_sec) : NULL;
	struct stat st;
	if (!made || !aside)
		return &err_nomem;
	if (stat(path, &st))
		return err_new(ERR_NOT_FOUND, "%s: there is no journal", path);
	struct err *why = edits_salvage(path, made, &ret->entries, &ret->lost);
	if (!why)
		why = put_aside(path, aside);
	if (!why && rename(made, path))
		why = err_os(errno, "%s: the salvaged journal is in %s", path, made);
	ret->aside = aside;
	return why;
}
