/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers that are longer than the budget and cannot be asked for again: what an edit did, what a snippet left. One is kept whole, and told page by
 * page. Where it has a list (the longest that lies in nothing but objects), a page is the answer with some of its items; where it has none, or not
 * one of its items fits, a page is a piece of its text. Pages put together are the answer. The newest MCP_RESTS_MAX are kept.
 */
#include "mcp/mcp_int.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NEXT_MAX 64 /* bytes of a page that are not the answer's: ,"next":"rest.N.N" */

struct mcp_rest {
	uint64_t id;
	struct buf text;        /* the answer */
	size_t open, close;     /* of text: the list's brackets; 0: it has none */
	bool has_next;          /* it is a page itself, which goes on elsewhere */
	VEC(size_t) items;      /* of text: where each begins */
};

void mcp_rest_free(struct mcp_rest *r)
{
	if (!r)
		return;
	buf_fini(&r->text);
	VEC_FREE(&r->items);
	free(r);
}

/* --- what is in an answer --- */

/* Behind the string that begins here. */
static size_t skip_string(const struct buf *text, size_t at)
{
	for (at++; at < text->len && text->data[at] != '"'; at++)
		at += text->data[at] == '\\';
	return at + 1;
}

/* The list whose text is the longest, of those that no other list is around. The text is JSON: we wrote it, or it was read (exec_json.h). */
static void find_list(struct mcp_rest *r)
{
	const struct buf *text = &r->text;
	size_t objects = 0, depth = 0, began = 0; /* depth: of containers since an outermost list began */
	for (size_t at = 0; at < text->len; at++) {
		char ch = text->data[at];
		if (ch == '"') {
			if (objects == 1 && !depth && text->len - at > 7 && !memcmp(text->data + at, "\"next\":", 7))
				r->has_next = true;
			at = skip_string(text, at) - 1;
		} else if (depth && (ch == '[' || ch == '{')) {
			depth++;
		} else if (depth && (ch == ']' || ch == '}')) {
			if (--depth || at - began <= r->close - r->open)
				continue;
			r->open = began;
			r->close = at;
		} else if (ch == '[') {
			began = at;
			depth = 1;
		} else {
			objects += ch == '{';
			objects -= ch == '}';
		}
	}
}

static bool find_items(struct mcp_rest *r)
{
	size_t depth = 0;
	for (size_t at = r->open + 1; at < r->close; at++) {
		char ch = r->text.data[at];
		size_t begin = r->items.cnt ? at + 1 : at;
		if ((!r->items.cnt || (ch == ',' && !depth)) && !VEC_PUSH(&r->items, begin))
			return false;
		if (ch == '"')
			at = skip_string(&r->text, at) - 1;
		depth += ch == '[' || ch == '{';
		depth -= ch == ']' || ch == '}';
	}
	return true;
}

/* --- pages --- */

static void put_next(const struct mcp_rest *r, size_t at, struct buf *out)
{
	buf_printf(out, ",\"next\":\"rest.%" PRIu64 ".%zu\"", r->id, at);
}

/* Where item `i` ends, its comma left out. */
static size_t item_end(const struct mcp_rest *r, size_t i)
{
	return i + 1 < r->items.cnt ? r->items.data[i + 1] - 1 : r->close;
}

/* How many items from `first` on a page has room for. */
static size_t fitting(const struct mcp_rest *r, size_t first, uint64_t max)
{
	size_t around = r->text.len - (r->close - r->open - 1) + NEXT_MAX, n = 0;
	while (first + n < r->items.cnt && around + item_end(r, first + n) - r->items.data[first] <= max)
		n++;
	return n;
}

static void put_items(const struct mcp_rest *r, size_t first, size_t cnt, struct buf *out)
{
	buf_add(out, r->text.data, r->open + 1);
	buf_add(out, r->text.data + r->items.data[first], item_end(r, first + cnt - 1) - r->items.data[first]);
	buf_add(out, r->text.data + r->close, r->text.len - r->close - 1);
	if (first + cnt < r->items.cnt)
		put_next(r, first + cnt, out);
	buf_add_ch(out, '}');
}

/* Bytes of text from `at` on whose JSON string is at most `room` bytes long; they end with a whole character. */
static size_t piece_len(const struct buf *text, size_t at, size_t room)
{
	size_t end = at;
	while (end < text->len) {
		char ch = text->data[end];
		size_t cost = ch == '"' || ch == '\\' ? 2 : (uint8_t)ch < 0x20 ? 6 : 1;
		if (cost > room)
			break;
		room -= cost;
		end++;
	}
	for (size_t back = 0; end < text->len && back < 3 && ((uint8_t)text->data[end] & 0xc0) == 0x80; back++)
		end--;
	return end - at;
}

static void put_piece(const struct mcp_rest *r, size_t at, uint64_t max, struct buf *out)
{
	/* 96 bytes hold the keys and two numbers. */
	size_t len = piece_len(&r->text, at, (size_t)max - NEXT_MAX - 96);
	struct json j = json_make(out);
	json_obj(&j);
	json_key(&j, "part");
	json_strn(&j, r->text.data + at, len);
	json_key(&j, "at");
	json_u64(&j, at);
	json_key(&j, "of");
	json_u64(&j, r->text.len);
	if (at + len < r->text.len)
		put_next(r, at + len, out);
	json_end_obj(&j);
}

/* --- keeping --- */

/* The lock is held. */
static struct err *put_page(struct mcp *m, uint64_t id, uint64_t at, uint64_t max_bytes, struct buf *out)
{
	const struct mcp_rest *r = NULL;
	for (size_t i = 0; i < MCP_RESTS_MAX; i++) {
		if (m->rests[i] && m->rests[i]->id == id)
			r = m->rests[i];
	}
	if (!r)
		return err_fix(err_new(ERR_STALE, "cursor: the rest of that answer is gone"), "the newest %d are kept", MCP_RESTS_MAX);
	if (at >= (r->items.cnt ? r->items.cnt : r->text.len))
		return err_new(ERR_INVALID, "cursor: is none of ours");
	size_t cnt = r->items.cnt ? fitting(r, (size_t)at, max_bytes) : 0;
	if (r->items.cnt && !cnt)
		return err_fix(err_new(ERR_BUDGET, "cursor: the next item has %zu bytes, the budget is %llu",
				       item_end(r, (size_t)at) - r->items.data[at], (unsigned long long)max_bytes), "say max_bytes");
	if (cnt)
		put_items(r, (size_t)at, cnt, out);
	else
		put_piece(r, (size_t)at, max_bytes, out);
	return NULL;
}

/* In place of the oldest, and of those that are too much with it. The lock is held. */
static void keep(struct mcp *m, struct mcp_rest *r)
{
	size_t len = r->text.len;
	r->id = ++m->rest_cnt;
	for (size_t i = 0; i < MCP_RESTS_MAX; i++) {
		/* From the newest to the oldest, whose place it takes. */
		struct mcp_rest **slot = &m->rests[(r->id - 1 - i) % MCP_RESTS_MAX];
		len += *slot ? (*slot)->text.len : 0;
		if (i + 1 < MCP_RESTS_MAX && len <= MCP_RESTS_BYTES)
			continue;
		mcp_rest_free(*slot);
		*slot = NULL;
	}
	m->rests[r->id % MCP_RESTS_MAX] = r;
}

bool mcp_rest_cut(struct mcp *m, uint64_t max_bytes, bool must, struct buf *out)
{
	struct mcp_rest *r = calloc(1, sizeof(*r));
	if (!r)
		return false;
	r->text = *out;
	find_list(r);
	bool is_good = !r->close || find_items(r);
	bool has_page = is_good && r->items.cnt && !r->has_next && fitting(r, 0, max_bytes);
	if (!is_good || (!has_page && !must)) {
		r->text = (struct buf){0};
		mcp_rest_free(r);
		return false;
	}
	if (!has_page)
		r->items.cnt = 0;
	*out = (struct buf){0};
	pthread_mutex_lock(&m->lock);
	keep(m, r);
	struct err *e = put_page(m, r->id, 0, max_bytes, out);
	pthread_mutex_unlock(&m->lock);
	assert(!e);
	return true;
}

bool mcp_rest_is(const struct ops_doc *cursor)
{
	return cursor && cursor->kind == OPS_DOC_STRING && !strncmp(cursor->s, "rest.", 5);
}

struct err *mcp_rest_next(struct mcp *m, const char *cursor, uint64_t max_bytes, struct buf *out)
{
	uint64_t id, at;
	int end = 0;
	if (sscanf(cursor, "rest.%" SCNu64 ".%" SCNu64 "%n", &id, &at, &end) != 2 || cursor[end])
		return err_new(ERR_INVALID, "cursor: is none of ours");
	pthread_mutex_lock(&m->lock);
	struct err *e = put_page(m, id, at, max_bytes, out);
	pthread_mutex_unlock(&m->lock);
	return e;
}
