/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing revisions. Everything that decides whether a change may be made is read inside the transaction, after the
 * write lock is held, so what was decided is true when it is committed.
 */
#include "edits/edits_int.h"

#include "base/map.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static uint64_t edits_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Who types: the name behind sudo, else of the user id. */
const char *edits_login(struct arena *a)
{
	const char *sudo = geteuid() == 0 ? getenv("SUDO_USER") : NULL;
	struct passwd room, *pw = NULL;
	char text[4096];
	if (sudo && *sudo)
		return arena_strndup(a, sudo, strlen(sudo));
	/* Several threads ask at once. */
	if (getpwuid_r(getuid(), &room, text, sizeof(text), &pw) || !pw)
		return arena_printf(a, "uid%u", (unsigned)getuid());
	return arena_strndup(a, pw->pw_name, strlen(pw->pw_name));
}

struct err *edits_get_state(struct edits *e, struct edits_state *ret)
{
	return edits_read_state(e->db, ret) ? NULL : sqlite3_errcode(e->db) == SQLITE_DONE ? &err_not_found : edits_error(e);
}

/* --- one revision --- */

struct err *edits_writer_begin(struct edits_writer *w, struct edits *e)
{
	*w = (struct edits_writer){.e = e};
	sqlite3_stmt *st;
	struct err *why = edits_get_state(e, &w->state);
	if (!why)
		why = edits_stmt(e, EDITS_ST_NEXT_SEQ, &st);
	bool has_row = false;
	if (!why)
		why = edits_step_row(e, st, &has_row);
	if (why)
		return why;
	w->seq_first = has_row ? (uint64_t)sqlite3_column_int64(st, 0) + 1 : 1;
	sqlite3_reset(st);
	return NULL;
}

static void bind_text(sqlite3_stmt *st, int at, const char *s, size_t len)
{
	if (s)
		sqlite3_bind_text64(st, at, s, len, SQLITE_STATIC, SQLITE_UTF8);
	else
		sqlite3_bind_null(st, at);
}

static void bind_key(sqlite3_stmt *st, int at, const struct edits_change *c)
{
	sqlite3_bind_text(st, at, edits_kind_name(c->kind), -1, SQLITE_STATIC);
	sqlite3_bind_int64(st, at + 1, (sqlite3_int64)c->va);
	sqlite3_bind_text(st, at + 2, c->sub ? c->sub : "", -1, SQLITE_STATIC);
}

struct err *edits_get_fact(struct edits *e, const struct edits_change *key, struct arena *a, const char **ret, size_t *ret_len,
			   uint64_t *ret_rev)
{
	sqlite3_stmt *st;
	bool has_row;
	struct err *why = edits_stmt(e, EDITS_ST_FACT, &st);
	if (why)
		return why;
	bind_key(st, 1, key);
	why = edits_step_row(e, st, &has_row);
	*ret = NULL;
	*ret_len = 0;
	*ret_rev = has_row ? (uint64_t)sqlite3_column_int64(st, 1) : 0;
	if (has_row && sqlite3_column_type(st, 0) != SQLITE_NULL) {
		const char *s = (const char *)sqlite3_column_text(st, 0);
		*ret_len = (size_t)sqlite3_column_bytes(st, 0);
		*ret = s ? arena_strndup(a, s, *ret_len) : NULL;
		if (!*ret)
			why = &err_nomem;
	}
	sqlite3_reset(st);
	return why;
}

static struct err *put_fact(struct edits_writer *w, const struct edits_change *c, bool is_new)
{
	sqlite3_stmt *st;
	struct err *why = edits_stmt(w->e, is_new ? EDITS_ST_NEW_FACT : EDITS_ST_SET_FACT, &st);
	if (why)
		return why;
	bind_key(st, 1, c);
	bind_text(st, 4, c->value, c->value_len);
	sqlite3_bind_int64(st, 5, (sqlite3_int64)w->state.rev + 1);
	return edits_run(w->e, st);
}

/* Entry number `seq` into the seven parameters from `at`. */
static void bind_entry(sqlite3_stmt *st, int at, const struct edits_writer *w, uint64_t seq, const struct edits_change *c)
{
	sqlite3_bind_int64(st, at, (sqlite3_int64)seq);
	sqlite3_bind_int64(st, at + 1, (sqlite3_int64)w->state.rev + 1);
	bind_key(st, at + 2, c);
	if (!edits_has_va(c->kind))
		sqlite3_bind_null(st, at + 3);
	bind_text(st, at + 5, c->before, c->before_len);
	bind_text(st, at + 6, c->value, c->value_len);
}

/* Writes the entries that wait: all at once when they fill a statement, else one by one. */
static struct err *flush_entries(struct edits_writer *w)
{
	unsigned cnt = w->waiting_cnt, each = cnt == EDITS_BATCH ? EDITS_BATCH : 1;
	uint64_t seq = w->seq_first + w->seq_cnt - cnt;
	w->waiting_cnt = 0;
	for (unsigned i = 0; i < cnt; i += each) {
		sqlite3_stmt *st;
		struct err *why = edits_stmt(w->e, each > 1 ? EDITS_ST_PUT_ENTRIES : EDITS_ST_PUT_ENTRY, &st);
		if (why)
			return why;
		for (unsigned k = 0; k < each; k++)
			bind_entry(st, 1 + 7 * (int)k, w, seq + i + k, &w->waiting[i + k]);
		why = edits_run(w->e, st);
		if (why)
			return why;
	}
	return NULL;
}

static struct err *put_entry(struct edits_writer *w, const struct edits_change *c)
{
	w->waiting[w->waiting_cnt++] = *c;
	w->seq_cnt++;
	return w->waiting_cnt == EDITS_BATCH ? flush_entries(w) : NULL;
}

bool edits_is_taken(const struct edits *e)
{
	return (sqlite3_errcode(e->db) & 0xff) == SQLITE_CONSTRAINT;
}

struct err *edits_writer_add(struct edits_writer *w, const struct edits_change *c, uint64_t touched)
{
	struct err *why = put_fact(w, c, !touched);
	if (!why)
		why = put_entry(w, c);
	w->has_directive = w->has_directive || edits_is_directive(c->kind);
	return why;
}

const char *edits_author_kind_name(enum edits_author_kind k)
{
	static const char *const names[] = {[EDITS_HUMAN] = "human", [EDITS_AGENT] = "agent", [EDITS_SCRIPT] = "script"};
	return (unsigned)k < ARRAY_LEN(names) ? names[k] : "script";
}

static struct err *put_revision(struct edits_writer *w, const struct edits_revision *r)
{
	sqlite3_stmt *st;
	struct err *why = edits_stmt(w->e, EDITS_ST_PUT_REVISION, &st);
	if (why)
		return why;
	sqlite3_bind_int64(st, 1, (sqlite3_int64)w->state.rev + 1);
	sqlite3_bind_int(st, 2, (int)r->step);
	if (r->target)
		sqlite3_bind_int64(st, 3, (sqlite3_int64)r->target);
	else
		sqlite3_bind_null(st, 3);
	sqlite3_bind_int64(st, 4, (sqlite3_int64)(r->time_ns ? r->time_ns : edits_now_ns()));
	sqlite3_bind_text(st, 5, r->author, -1, SQLITE_STATIC);
	sqlite3_bind_text(st, 6, r->author_kind, -1, SQLITE_STATIC);
	bind_text(st, 7, r->note, r->note ? strlen(r->note) : 0);
	sqlite3_bind_int64(st, 8, (sqlite3_int64)w->seq_first);
	sqlite3_bind_int64(st, 9, (sqlite3_int64)w->seq_cnt);
	return edits_run(w->e, st);
}

struct err *edits_writer_end(struct edits_writer *w, const struct edits_revision *r)
{
	sqlite3_stmt *st;
	sqlite3_int64 rev = (sqlite3_int64)w->state.rev + 1;
	struct err *why = flush_entries(w);
	if (!why)
		why = put_revision(w, r);
	if (!why)
		why = edits_stmt(w->e, EDITS_ST_PUT_STATE, &st);
	if (why)
		return why;
	sqlite3_bind_int64(st, 1, rev);
	sqlite3_bind_int64(st, 2, r->step == EDITS_STEP_ANALYSIS ? (sqlite3_int64)w->state.edit_rev : rev);
	sqlite3_bind_int64(st, 3, w->has_directive ? rev : (sqlite3_int64)w->state.directive_rev);
	return edits_run(w->e, st);
}

/* --- edits_commit --- */

static const char *refuse_shape(const struct edits_change *c)
{
	if ((unsigned)c->kind >= EDITS_ANALYSIS)
		return "there is no such kind of edit";
	if (c->sub && strlen(c->sub) > EDITS_SUB_MAX)
		return "the name of what it is about is longer than 1,024 bytes";
	if (c->value_len > EDITS_VALUE_MAX)
		return "the text is longer than 1 MB";
	if (c->value && memchr(c->value, 0, c->value_len))
		return "the text has a NUL byte in it";
	if (c->kind == EDITS_NAME && c->value && !c->value_len)
		return "a name is not empty";
	return NULL;
}

/* Who has the name that could not be set. */
static struct err *refuse_taken(struct edits *e, struct edits_change *c, struct arena *a)
{
	sqlite3_stmt *st;
	bool has_row = false;
	struct err *why = edits_stmt(e, EDITS_ST_NAME, &st);
	if (why)
		return why;
	bind_text(st, 1, c->value, c->value_len);
	why = edits_step_row(e, st, &has_row);
	uint64_t va = has_row ? (uint64_t)sqlite3_column_int64(st, 0) : 0;
	sqlite3_reset(st);
	c->why = why ? NULL : arena_printf(a, "0x%" PRIx64 " has this name", va + e->bias);
	return why ? why : c->why ? NULL : &err_nomem;
}

/* One call as it is made. */
struct commit {
	struct edits_writer w;
	const struct edits_opts *opts;
	struct arena *a;
	bool has_view;                 /* facts are looked up in `view` */
	const struct edits_view *view; /* null: nobody ever stated anything */
	struct map changed;            /* hashes of keys that this call changed, which the view does not know */
};

/* From here on a view costs less than statements. */
#define COMMIT_MANY 16

static uint64_t key_hash(const struct edits_change *c)
{
	uint64_t h = 0xcbf29ce484222325 ^ c->va * 0x9e3779b97f4a7c15 ^ (uint64_t)c->kind << 56;
	for (const char *s = c->sub; s && *s; s++)
		h = (h ^ (uint8_t)*s) * 0x100000001b3;
	return h;
}

/* What stands under the key of `c`, into its `before`. */
static struct err *find_before(struct commit *k, struct edits_change *c, uint64_t *ret_touched)
{
	uint32_t unused;
	if (!k->has_view || map_find(&k->changed, key_hash(c), &unused))
		return edits_get_fact(k->w.e, c, k->a, &c->before, &c->before_len, ret_touched);
	const struct edits_fact *f = edits_find(k->view, c->kind, c->va, c->sub ? c->sub : "");
	*ret_touched = f ? f->rev : edits_view_touched(k->view, c->va, c->va);
	/* What was taken away has a row all the same, which only the file knows. */
	if (!f && *ret_touched)
		return edits_get_fact(k->w.e, c, k->a, &c->before, &c->before_len, ret_touched);
	c->before = f ? arena_strndup(k->a, f->value, f->value_len) : NULL;
	c->before_len = f ? f->value_len : 0;
	return f && !c->before ? &err_nomem : NULL;
}

static struct err *commit_one(struct commit *k, struct edits_change *c)
{
	const struct edits_opts *opts = k->opts;
	uint64_t touched = 0;
	if (!edits_has_va(c->kind))
		c->va = 0;
	c->status = EDITS_REFUSED;
	c->before = NULL;
	c->before_len = 0;
	c->why = refuse_shape(c);
	if (c->why)
		return NULL;
	struct err *why = find_before(k, c, &touched);
	if (why)
		return why;
	if (opts->if_rev >= 0 && touched > (uint64_t)opts->if_rev)
		return err_fix(err_new(ERR_STALE, "0x%" PRIx64 ": was changed in revision %" PRIu64 ", after %" PRId64, c->va + k->w.e->bias, touched,
				       opts->if_rev), "look again, then edit what is there now");
	bool is_same = c->value ? c->before && c->before_len == c->value_len && !memcmp(c->before, c->value, c->value_len) : !c->before;
	if (c->proposal) {
		const char *refusal = NULL;
		why = edits_proposal_check(k->w.e, c, &refusal);
		/* What stands already is as good as accepted. */
		c->why = is_same && refusal && *refusal == 's' ? NULL : refusal;
		if (why || c->why)
			return why;
	}
	if (is_same) {
		c->status = EDITS_UNCHANGED;
		return NULL;
	}
	if (opts->refuse) {
		uint64_t va = c->va;
		c->va += edits_has_va(c->kind) ? k->w.e->bias : 0;
		c->why = opts->refuse(opts->ctx, c, k->a);
		c->va = va;
	}
	if (c->why)
		return NULL;
	why = edits_writer_add(&k->w, c, touched);
	if (why && c->kind == EDITS_NAME && edits_is_taken(k->w.e)) {
		err_free(why);
		return refuse_taken(k->w.e, c, k->a);
	}
	if (!why && k->has_view && !map_put(&k->changed, key_hash(c), 0))
		why = &err_nomem;
	c->status = EDITS_APPLIED;
	return why;
}

static void refuse_rest(struct edits_change *changes, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (changes[i].status == EDITS_APPLIED) {
			changes[i].status = EDITS_REFUSED;
			changes[i].why = "another change of this call was refused";
		}
	}
}

static struct err *commit_all(struct commit *k, struct edits_change *changes, size_t cnt)
{
	bool has_refusal = false;
	for (size_t i = 0; i < cnt; i++) {
		struct err *why = commit_one(k, &changes[i]);
		if (why)
			return why;
		has_refusal = has_refusal || changes[i].status == EDITS_REFUSED;
	}
	if (has_refusal && k->opts->is_atomic) {
		refuse_rest(changes, cnt);
		k->w.seq_cnt = k->w.waiting_cnt = 0;
	}
	return NULL;
}

/* Between the caller's addresses and the file's. */
static void move_all(struct edits_change *changes, size_t cnt, uint64_t by)
{
	for (size_t i = 0; by && i < cnt; i++)
		changes[i].va += edits_has_va(changes[i].kind) ? by : 0;
}

void edits_set_bias(struct edits *e, uint64_t bias)
{
	e->bias = bias;
}

/* Marks the proposals that this call accepted; gives how many. */
static struct err *mark_accepted(struct commit *k, const struct edits_change *changes, size_t cnt, size_t *ret)
{
	struct err *why = NULL;
	for (size_t i = 0; i < cnt && !why; i++) {
		if (!changes[i].proposal || changes[i].status == EDITS_REFUSED)
			continue;
		++*ret;
		why = edits_proposal_mark(k->w.e, changes[i].proposal, k->w.state.rev + (k->w.seq_cnt > 0));
	}
	return why;
}

struct err *edits_commit(struct edits *e, struct edits_change *changes, size_t cnt, const struct edits_opts *opts, struct arena *a,
			 uint64_t *ret_rev)
{
	struct commit k = {.opts = opts, .a = a};
	const char *author = opts->author && *opts->author ? opts->author : edits_login(a);
	struct edits_revision r = {.author = author, .note = opts->note, .author_kind = edits_author_kind_name(opts->author_kind)};
	struct err *why = author ? edits_begin(e) : &err_nomem;
	if (why)
		return why;
	move_all(changes, cnt, -e->bias);
	why = edits_writer_begin(&k.w, e);
	/* Analyses state nothing: the view is right when no edit came after it. */
	uint64_t known_rev = opts->view ? edits_view_state(opts->view)->edit_rev : 0;
	/* ... and its keys are those of the file. */
	k.has_view = !why && !e->bias && cnt >= COMMIT_MANY && known_rev == k.w.state.edit_rev;
	k.view = opts->view;
	if (!why)
		why = commit_all(&k, changes, cnt);
	map_fini(&k.changed);
	size_t accepted = 0;
	if (!why && !opts->is_dry_run)
		why = mark_accepted(&k, changes, cnt, &accepted);
	bool is_written = !why && k.w.seq_cnt && !opts->is_dry_run;
	if (is_written)
		why = edits_writer_end(&k.w, &r);
	if ((!is_written && !accepted) || why)
		edits_rollback(e);
	else
		why = edits_end(e);
	move_all(changes, cnt, e->bias);
	if (!why)
		*ret_rev = k.w.state.rev + is_written;
	return why;
}

/* --- publishing --- */

struct err *edits_publish_begin(struct edits *e, struct edits_state *ret)
{
	struct err *why = edits_begin(e);
	if (!why)
		why = edits_get_state(e, ret);
	if (why) {
		edits_rollback(e);
		return why;
	}
	ret->rev++;
	ret->image_gen++;
	return NULL;
}

static struct err *publish_write(struct edits *e, const struct edits_state *s, const char *target_path)
{
	struct edits_writer w;
	_cleanup_stmt_ sqlite3_stmt *st = NULL;
	char gen[16];
	snprintf(gen, sizeof(gen), "%u", s->image_gen);
	struct edits_change c = {.kind = EDITS_ANALYSIS, .value = gen, .value_len = strlen(gen)};
	struct edits_revision r = {.step = EDITS_STEP_ANALYSIS, .author = "scry", .author_kind = "script"};
	struct err *why = edits_writer_begin(&w, e);
	if (!why)
		why = put_entry(&w, &c);
	if (!why)
		why = edits_writer_end(&w, &r);
	if (!why)
		why = edits_prepare(e, "UPDATE state SET image_gen=?1, built_from_rev=?2, path=?3", &st);
	if (why)
		return why;
	sqlite3_bind_int64(st, 1, s->image_gen);
	sqlite3_bind_int64(st, 2, (sqlite3_int64)s->built_from_rev);
	sqlite3_bind_blob(st, 3, target_path, (int)strlen(target_path), SQLITE_STATIC);
	return edits_run(e, st);
}

struct err *edits_publish_end(struct edits *e, const struct edits_state *s, const char *target_path, bool is_done)
{
	struct err *why = is_done ? publish_write(e, s, target_path) : NULL;
	if (is_done && !why)
		return edits_end(e);
	edits_rollback(e);
	return why;
}
