/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding in a project's index. What is asked for is a glob; the literal runs in it give candidates, and each candidate is
 * held against the glob, so the text index may say too much but never too little:
 *   three letters and more: its trigrams, of which a few are asked for together (the rest is cheaper to compare);
 *   one or two: the first places of that gram in each slot, and past those a walk over the slot;
 *   none: a walk.
 */
#include "session/ses_index_int.h"

#include "base/glob.h"
#include "base/utf8.h"
#include "session/ses_int.h"

#include <string.h>

#define TERM_MAX 5
#define CHECK_STEPS 1000

struct finding_rows {
	struct ses_index *ix;
	const struct ses_call *call;
	struct ses_find_ask *ask;
	struct arena *arena;
	size_t filter_len;
	struct ses_index_hit *hits;
	uint32_t cap;
	uint32_t kinds;
	size_t slot;      /* where the last id was found */
	uint64_t last_id; /* looked at */
	bool is_full;
	struct err *err;
};

static int on_progress(void *ctx)
{
	struct finding_rows *f = ctx;
	if (!f->err)
		f->err = ses_call_check(f->call);
	return f->err != NULL;
}

/* The live slot of an id, or null. Ids come in order. */
static const struct index_slot *slot_of(struct finding_rows *f, uint64_t id)
{
	const struct ses_index *ix = f->ix;
	uint32_t want = (uint32_t)(id >> 33);
	if (f->slot >= ix->slot_cnt || ix->slots[f->slot].id > want)
		f->slot = 0;
	while (f->slot < ix->slot_cnt && ix->slots[f->slot].id < want)
		f->slot++;
	return f->slot < ix->slot_cnt && ix->slots[f->slot].id == want ? &ix->slots[f->slot] : NULL;
}

static struct ses_text column(sqlite3_stmt *st, int col)
{
	const char *s = (const char *)sqlite3_column_text(st, col);
	return ses_text_of(s, s ? (size_t)sqlite3_column_bytes(st, col) : 0);
}

static bool keep(struct arena *a, struct ses_text *t)
{
	t->s = t->len ? arena_strndup(a, t->s, t->len) : "";
	return t->s != NULL;
}

/* The row under the statement; its texts borrow from it. */
static struct ses_index_row row_of(sqlite3_stmt *st)
{
	int kind = sqlite3_column_int(st, 1);
	return (struct ses_index_row){.kind = kind >= 0 && kind < SES_FIND_KIND_COUNT ? (enum ses_find_kind)kind : SES_FIND_SYMBOL,
				      .va = (uint64_t)sqlite3_column_int64(st, 2), .text = column(st, 3), .readable = column(st, 4),
				      .version = column(st, 5), .library = column(st, 6)};
}

static struct err *put_hit(struct arena *a, const struct index_slot *slot, uint64_t id, const struct ses_index_row *row,
			   struct ses_index_hit *ret)
{
	*ret = (struct ses_index_hit){.row = *row, .id = id};
	memcpy(ret->sha256, slot->sha256, 32);
	struct ses_index_row *r = &ret->row;
	return keep(a, &r->text) && keep(a, &r->readable) && keep(a, &r->version) && keep(a, &r->library) ? NULL : &err_nomem;
}

/* The row under the statement becomes a hit if it is one; false: no more are wanted. */
static bool take(struct finding_rows *f, sqlite3_stmt *st)
{
	uint64_t id = (uint64_t)sqlite3_column_int64(st, 0);
	const struct index_slot *slot = slot_of(f, id);
	struct ses_index_row r = row_of(st);
	bool is_wanted = slot && f->kinds & 1u << r.kind;
	if (is_wanted && f->filter_len)
		is_wanted = glob_match(f->ask->filter, f->filter_len, r.text.s, r.text.len, true) ||
			    (r.readable.len && glob_match(f->ask->filter, f->filter_len, r.readable.s, r.readable.len, true));
	if (is_wanted && f->ask->cnt == f->cap) {
		f->is_full = true;
		return false;
	}
	if (is_wanted)
		f->err = put_hit(f->arena, slot, id, &r, &f->hits[f->ask->cnt]);
	if (f->err)
		return false;
	f->ask->cnt += is_wanted;
	f->last_id = id;
	return true;
}

static struct err *step_error(struct finding_rows *f, int rc)
{
	if (f->err)
		return take_ptr(f->err);
	return rc == SQLITE_DONE || rc == SQLITE_ROW ? NULL : ses_index_error(f->ix);
}

/* --- by walking --- */

static struct err *walk(struct finding_rows *f, uint64_t after, uint64_t last)
{
	sqlite3_stmt *st = ses_index_stmt(f->ix, INDEX_WALK);
	int rc;
	if (!st)
		return ses_index_error(f->ix);
	sqlite3_bind_int64(st, 1, (int64_t)after);
	sqlite3_bind_int64(st, 2, (int64_t)last);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW && take(f, st))
		;
	struct err *e = step_error(f, rc);
	sqlite3_reset(st);
	return e;
}

static struct err *walk_all(struct finding_rows *f, int is_string, uint64_t after)
{
	struct err *e = NULL;
	for (size_t i = 0; i < f->ix->slot_cnt && !e && !f->is_full; i++) {
		uint32_t slot = f->ix->slots[i].id;
		uint64_t last = index_id(slot, is_string, UINT32_MAX);
		if (last > after)
			e = walk(f, MAX(after, index_id(slot, is_string, 0)), last);
	}
	return e;
}

/* --- by grams --- */

static struct err *get_entry(struct finding_rows *f, uint64_t id, bool *ret_goes_on)
{
	sqlite3_stmt *st = ses_index_stmt(f->ix, INDEX_GET_ENTRY);
	if (!st)
		return ses_index_error(f->ix);
	sqlite3_bind_int64(st, 1, (int64_t)id);
	int rc = sqlite3_step(st);
	*ret_goes_on = rc != SQLITE_ROW || take(f, st);
	struct err *e = step_error(f, rc);
	sqlite3_reset(st);
	return e;
}

/* One slot: the places its list has, then, when the list was cut, what lies behind. */
static struct err *gram_slot(struct finding_rows *f, uint32_t slot, int is_string, uint32_t gram, uint64_t after)
{
	sqlite3_stmt *st = ses_index_stmt(f->ix, INDEX_GET_GRAM);
	if (!st)
		return ses_index_error(f->ix);
	sqlite3_bind_int64(st, 1, slot);
	sqlite3_bind_int(st, 2, is_string);
	sqlite3_bind_int64(st, 3, gram);
	int rc = sqlite3_step(st);
	if (rc != SQLITE_ROW) {
		struct err *e = step_error(f, rc);
		sqlite3_reset(st);
		return e;
	}
	uint32_t ids[INDEX_GRAM_MAX];
	uint32_t cnt = (uint32_t)MIN((size_t)sqlite3_column_bytes(st, 1) / sizeof(*ids), INDEX_GRAM_MAX);
	bool is_cut = sqlite3_column_int64(st, 0) > cnt;
	if (cnt)
		memcpy(ids, sqlite3_column_blob(st, 1), cnt * sizeof(*ids));
	sqlite3_reset(st);
	bool goes_on = true;
	struct err *e = NULL;
	for (uint32_t i = 0; i < cnt && goes_on && !e; i++) {
		uint64_t id = index_id(slot, is_string, ids[i]);
		if (id > after)
			e = get_entry(f, id, &goes_on);
	}
	if (e || !goes_on || !is_cut || !cnt)
		return e;
	return walk(f, MAX(after, index_id(slot, is_string, ids[cnt - 1])), index_id(slot, is_string, UINT32_MAX));
}

static struct err *find_gram(struct finding_rows *f, int is_string, uint32_t gram, uint64_t after)
{
	struct err *e = NULL;
	for (size_t i = 0; i < f->ix->slot_cnt && !e && !f->is_full; i++) {
		if (index_id(f->ix->slots[i].id, is_string, UINT32_MAX) > after)
			e = gram_slot(f, f->ix->slots[i].id, is_string, gram, after);
	}
	return e;
}

/* --- by trigrams --- */

static struct err *find_terms(struct finding_rows *f, int is_string, const char *terms, uint64_t after)
{
	sqlite3_stmt *st = ses_index_stmt(f->ix, is_string ? INDEX_FIND_STRING : INDEX_FIND_NAME);
	struct err *e = NULL;
	bool goes_on = true;
	int rc;
	if (!st)
		return ses_index_error(f->ix);
	sqlite3_bind_text(st, 1, terms, -1, SQLITE_STATIC);
	sqlite3_bind_int64(st, 2, (int64_t)after);
	while (!e && goes_on && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		uint64_t id = (uint64_t)sqlite3_column_int64(st, 0);
		if (slot_of(f, id))
			e = get_entry(f, id, &goes_on);
	}
	if (!e && goes_on)
		e = step_error(f, rc);
	sqlite3_reset(st);
	return e;
}

/* --- what a filter asks for --- */

struct run { const char *s; size_t len, chars; };

static bool is_utf8(struct run r)
{
	uint32_t cp;
	for (size_t i = 0, n; i < r.len; i += n) {
		n = utf8_next(r.s + i, r.len - i, &cp);
		if (!n)
			return false;
	}
	return true;
}

/* The literal run of a glob with the most characters. */
static struct run longest_run(const char *filter, size_t len)
{
	struct run best = {0}, now = {0};
	for (size_t i = 0; i <= len; i++) {
		if (i < len && filter[i] != '*' && filter[i] != '?') {
			now.s = now.len ? now.s : filter + i;
			now.len++;
			now.chars += ((uint8_t)filter[i] & 0xc0) != 0x80;
			continue;
		}
		if (now.chars > best.chars)
			best = now;
		now = (struct run){0};
	}
	return best;
}

/* At most TERM_MAX trigrams of the run, spread over it, as one expression of the text index. */
static void put_terms(struct buf *out, struct run r)
{
	size_t n = r.chars - 2, wanted = MIN(n, (size_t)TERM_MAX), at = 0, pos = 0;
	for (size_t k = 0; k < wanted; k++) {
		size_t target = wanted > 1 ? k * (n - 1) / (wanted - 1) : 0;
		for (; at < target; at++) {
			do
				pos++;
			while (((uint8_t)r.s[pos] & 0xc0) == 0x80);
		}
		size_t end = pos;
		for (unsigned c = 0; c < 3 && end < r.len; c++) {
			do
				end++;
			while (end < r.len && ((uint8_t)r.s[end] & 0xc0) == 0x80);
		}
		buf_add_str(out, k ? " AND \"" : "\"");
		for (size_t i = pos; i < end; i++) {
			if (r.s[i] == '"')
				buf_add_ch(out, '"');
			buf_add_ch(out, r.s[i]);
		}
		buf_add_ch(out, '"');
	}
}

static struct err *find_group(struct finding_rows *f, int is_string, uint64_t after)
{
	const char *filter = f->filter_len ? f->ask->filter : "";
	struct run r = longest_run(filter, f->filter_len);
	if (!r.len)
		return walk_all(f, is_string, after);
	uint32_t first = index_fold((uint8_t)r.s[0]);
	if (r.chars < 3 || !is_utf8(r))
		return find_gram(f, is_string, r.len > 1 ? index_gram_of(first, index_fold((uint8_t)r.s[1])) : first, after);
	struct buf terms = {0};
	put_terms(&terms, r);
	buf_add_ch(&terms, '\0');
	struct err *e = terms.failed ? &err_nomem : find_terms(f, is_string, terms.data, after);
	buf_fini(&terms);
	return e;
}

/* Cursors: an id; that of a string has its bit set, so the names are done. 0: nothing yet; 1 << 32: names done. */
#define NAMES_DONE ((uint64_t)1 << 32)

struct err *ses_index_find(struct ses_index *ix, const struct ses_call *call, struct ses_find_ask *ask, struct arena *a,
			   struct ses_index_hit **ret)
{
	ix = ses_index_reader(ix);
	_cleanup_held_ struct index_held h = ses_index_hold(ix);
	struct finding_rows f = {.ix = h.ix, .call = call, .ask = ask, .arena = a, .kinds = ask->kinds ? ask->kinds : UINT32_MAX,
				 .cap = ask->limit ? ask->limit : 1000, .filter_len = ask->filter ? strlen(ask->filter) : 0};
	uint64_t most = 0;
	bool in_strings = ask->after & NAMES_DONE;
	ask->cnt = 0;
	ask->has_more = false;
	struct err *e = ses_index_load_slots(ix);
	for (size_t i = 0; i < ix->slot_cnt; i++)
		most += ix->slots[i].cnt[0] + ix->slots[i].cnt[1];
	f.cap = (uint32_t)MIN(f.cap, most);
	f.hits = e ? NULL : ARENA_ARRAY(a, struct ses_index_hit, (size_t)f.cap + 1);
	if (!f.hits)
		return e ? e : &err_nomem;
	sqlite3_progress_handler(ix->db, CHECK_STEPS, on_progress, &f);
	f.last_id = ask->after;
	if (!in_strings && f.kinds & SES_FIND_NAMES)
		e = find_group(&f, 0, ask->after);
	if (!in_strings && !e && !f.is_full)
		f.last_id = NAMES_DONE;
	if (!e && !f.is_full && f.kinds & SES_FIND_STRINGS)
		e = find_group(&f, 1, in_strings ? ask->after : 0);
	sqlite3_progress_handler(ix->db, 0, NULL, NULL);
	err_free(f.err);
	ask->has_more = f.is_full;
	ask->next = f.last_id;
	*ret = f.hits;
	return e;
}

struct err *ses_index_link(struct ses_index *ix, enum ses_find_kind kind, struct ses_text name, struct arena *a,
			   struct ses_index_hit **ret, uint32_t *ret_cnt)
{
	ix = ses_index_reader(ix);
	_cleanup_held_ struct index_held h = ses_index_hold(ix);
	struct finding_rows f = {.ix = h.ix};
	struct err *e = ses_index_load_slots(ix);
	sqlite3_stmt *st = e ? NULL : ses_index_stmt(ix, INDEX_LINK);
	VEC(struct ses_index_hit) list = {0};
	int rc = SQLITE_DONE;
	if (!st)
		return e ? e : ses_index_error(ix);
	sqlite3_bind_text64(st, 1, name.s, name.len, SQLITE_STATIC, SQLITE_UTF8);
	sqlite3_bind_int(st, 2, (int)kind);
	while (!e && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		uint64_t id = (uint64_t)sqlite3_column_int64(st, 0);
		const struct index_slot *slot = slot_of(&f, id);
		struct ses_index_row r = row_of(st);
		struct ses_index_hit hit;
		e = slot ? put_hit(a, slot, id, &r, &hit) : NULL;
		if (slot && !e && !VEC_PUSH(&list, hit))
			e = &err_nomem;
	}
	if (!e)
		e = step_error(&f, rc);
	sqlite3_reset(st);
	struct ses_index_hit *out = e ? NULL : ARENA_ARRAY(a, struct ses_index_hit, list.cnt + 1);
	if (out && list.cnt)
		memcpy(out, list.data, list.cnt * sizeof(*out));
	*ret_cnt = (uint32_t)list.cnt;
	VEC_FREE(&list);
	*ret = out;
	return out || e ? e : &err_nomem;
}
