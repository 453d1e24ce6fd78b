/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Etags: hashes of what an answer depends on, so that nothing is formatted for one. Of the edits only those count that may show: by
 * kind for lists, by place for pages of the listing. A page depends on its own addresses and on what it refers to, which the
 * image knows; which addresses it has is known once it is made, so a page's etag carries them: HASH.FIRST.LAST.
 */
#include "session/ops_int.h"
#include "session/ses_int.h"

#include <stdlib.h>
#include <string.h>

#define KIND(k) (1u << (k))
/* What changes lines far from where it was stated. */
#define FAR_KINDS                                                                                                      \
	(KIND(EDITS_TYPE) | KIND(EDITS_DECL) | KIND(EDITS_PROTOTYPE) | KIND(EDITS_ITEM) | KIND(EDITS_BOUNDS) | KIND(EDITS_FLAGS) |  \
	 KIND(EDITS_TABLE) | KIND(EDITS_LOAD) | KIND(EDITS_PATCH))
/* References of a page that are looked at; a page with more depends on every edit. */
#define PAGE_REFS_MAX 65536
#define PAGE_ETAG_LEN (16 + 17 + 17)

/* Of the 128 bits of the product both halves: what differs in a high bit of `v` differs in low ones of the hash. */
static uint64_t mix_u64(uint64_t h, uint64_t v)
{
	unsigned __int128 m = (unsigned __int128)(h ^ v ^ 0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93;
	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static uint64_t mix(uint64_t h, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	uint64_t v = 0;
	h = mix_u64(h, len);
	for (; len >= sizeof(v); p += sizeof(v), len -= sizeof(v)) {
		memcpy(&v, p, sizeof(v));
		h = mix_u64(h, v);
	}
	v = 0;
	memcpy(&v, p, len);
	return len ? mix_u64(h, v) : h;
}

static bool is_page(const struct ops_op *op)
{
	return op->run == ops_heads || op->run == ops_disasm;
}

/* The kinds of edit that an operation's answers show, besides what an analysis makes of them. */
static uint32_t kinds_of(const struct ops_op *op)
{
	static const struct { struct err *(*run)(struct ops_req *rq); uint32_t kinds; } rows[] = {
		{ops_segments, 0},
		{ops_sections, 0},
		{ops_problems, 0},
		{ops_blocks, KIND(EDITS_NAME)},
		{ops_callgraph, KIND(EDITS_NAME)},
		{ops_functions, KIND(EDITS_NAME)},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (op->run == rows[i].run)
			return rows[i].kinds | KIND(EDITS_ITEM) | KIND(EDITS_BOUNDS) | KIND(EDITS_FLAGS) | KIND(EDITS_TABLE) | KIND(EDITS_LOAD);
	}
	return EDITS_KINDS_ALL;
}

/* The newest edit of loc's name, comment or other statement, of the item that holds it, and of what it only jumps to. */
static uint64_t touched_at(const struct ses_snap *sn, uint32_t loc)
{
	uint32_t start = loc, len, cnt;
	enum image_item_kind kind;
	if (!image_item_at(sn->im, loc, &start, &len, &kind))
		start = loc;
	uint64_t newest = edits_view_touched(sn->edits, space_va(sn->space, start), space_va(sn->space, loc));
	uint32_t f = image_func_starting(sn->im, loc);
	const struct image_func *funcs = image_funcs(sn->im, &cnt);
	if (f < cnt && funcs[f].thunk_to != LOC_NONE) {
		uint64_t va = space_va(sn->space, funcs[f].thunk_to);
		newest = MAX(newest, edits_view_touched(sn->edits, va, va));
	}
	return newest;
}

/* The newest edit that may show in [first_loc, last_loc]. */
static uint64_t newest_in(const struct ses_snap *sn, uint32_t first_loc, uint32_t last_loc)
{
	uint64_t newest = edits_view_touched(sn->edits, space_va(sn->space, first_loc), space_va(sn->space, last_loc));
	uint32_t first, cnt = image_xrefs_from(sn->im, first_loc, last_loc, &first);
	if (cnt > PAGE_REFS_MAX)
		return edits_view_newest(sn->edits, EDITS_KINDS_ALL);
	for (uint32_t i = 0; i < cnt; i++) {
		struct image_xref x;
		if (image_xref_fwd(sn->im, first + i, &x))
			newest = MAX(newest, touched_at(sn, x.to));
	}
	/* Thunks on the page itself. */
	uint32_t func_cnt;
	const struct image_func *f = image_funcs(sn->im, &func_cnt);
	uint32_t lo = 0, hi = func_cnt;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (f[mid].loc < first_loc)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < func_cnt && f[lo].loc <= last_loc; lo++) {
		if (f[lo].thunk_to != LOC_NONE)
			newest = MAX(newest, touched_at(sn, f[lo].loc));
	}
	return newest;
}

static uint64_t find_stamp(const struct ses_snap *sn, uint64_t first_va, uint64_t last_va)
{
	uint64_t newest = edits_view_newest(sn->edits, FAR_KINDS);
	/* A page may reach over several segments. */
	for (uint32_t i = 0; i < sn->space->seg_cnt; i++) {
		const struct space_seg *g = &sn->space->segs[i];
		if (!g->mem_len || g->va > last_va || g->va + (g->mem_len - 1) < first_va)
			continue;
		uint64_t from = MAX(first_va, g->va), to = MIN(last_va, g->va + (g->mem_len - 1));
		uint32_t a = space_loc(sn->space, from), b = space_loc(sn->space, to);
		if (a != LOC_NONE && b != LOC_NONE)
			newest = MAX(newest, newest_in(sn, a, b));
	}
	return newest;
}

/* The same page is asked about again and again, and a snapshot does not change. */
static uint64_t page_stamp(struct ses_snap *sn, uint64_t first_va, uint64_t last_va)
{
	struct ses_stamp *s = &sn->stamps[(first_va ^ first_va >> 6 ^ last_va >> 3) % SES_STAMP_CNT];
	if (!sn->edits || first_va > last_va)
		return edits_view_newest(sn->edits, FAR_KINDS);
	/* Whoever holds it may do so for long; then it is as quick to look oneself. */
	bool is_ours = pthread_mutex_trylock(&sn->lock) == 0;
	bool is_kept = is_ours && s->is_set && s->first_va == first_va && s->last_va == last_va;
	uint64_t rev = is_kept ? s->rev : find_stamp(sn, first_va, last_va);
	if (is_ours) {
		*s = (struct ses_stamp){first_va, last_va, rev, true};
		pthread_mutex_unlock(&sn->lock);
	}
	return rev;
}

/* Sixteen digits and what ends them: in the time of one printf a client has its answer. */
static void put_hex(char *to, uint64_t v, char end)
{
	for (int i = 15; i >= 0; i--, v >>= 4)
		to[i] = "0123456789abcdef"[v & 15];
	to[16] = end;
}

static bool take_hex(const char *from, uint64_t *ret)
{
	*ret = 0;
	for (int i = 0; i < 16; i++) {
		char ch = from[i];
		bool is_digit = ch >= '0' && ch <= '9';
		if (!is_digit && (ch < 'a' || ch > 'f'))
			return false;
		*ret = *ret << 4 | (uint64_t)(is_digit ? ch - '0' : ch - 'a' + 10);
	}
	return true;
}

static uint64_t page_hash(const struct ops_out *o, struct ses_snap *sn, uint64_t first_va, uint64_t last_va)
{
	return mix_u64(o->tag_hash, page_stamp(sn, first_va, last_va));
}

static void put_page(char ret[OPS_ETAG_MAX], uint64_t hash, uint64_t first_va, uint64_t last_va)
{
	put_hex(ret, hash, '.');
	put_hex(ret + 17, first_va, '.');
	put_hex(ret + 34, last_va, '\0');
}

/* No deeper than a document may be (ops_doc.h). */
static uint64_t mix_doc(uint64_t h, const struct ops_doc *d)
{
	h = mix_u64(h, (uint64_t)d->kind);
	h = mix_u64(h, (uint64_t)d->num);
	if (d->key)
		h = mix(h, d->key, strlen(d->key) + 1);
	if (d->kind == OPS_DOC_STRING)
		h = mix(mix_u64(h, d->len), d->s, d->len);
	for (size_t i = 0; i < d->cnt; i++)
		h = mix_doc(h, &d->items[i]);
	return mix_u64(h, d->cnt);
}

/* Whether an answer depends on a file that is named by a parameter: of that no etag can speak. */
static bool reads_file(const struct ops_args *a)
{
	size_t n = ops_param_cnt(a->op);
	for (size_t i = 0; i < n; i++) {
		enum ops_param_type type = a->op->params[i].type;
		if (a->values[i].is_set && (type == OPS_PATH || (type == OPS_JSON && !a->values[i].doc)))
			return true;
	}
	return false;
}

/* The parameters; where one names a place, the place it is today. */
static uint64_t mix_params(const struct ops_req *rq, uint64_t h)
{
	const struct ops_args *a = rq->args;
	size_t n = ops_param_cnt(a->op);
	for (size_t i = 0; i < n; i++) {
		const struct ops_value *v = &a->values[i];
		const struct ops_param *p = &a->op->params[i];
		if (!v->is_set || !strcmp(p->name, "etag") || !strcmp(p->name, "deadline_ms"))
			continue;
		h = mix(h, &i, sizeof(i));
		if (v->doc)
			h = mix_doc(h, v->doc);
		for (size_t k = 0; k < v->text_cnt; k++)
			h = mix(h, v->texts[k], strlen(v->texts[k]) + 1);
		if (!v->text_cnt && v->text)
			h = mix(h, v->text, strlen(v->text));
		uint64_t va = 0;
		if (v->text && (p->type == OPS_ADDR || p->type == OPS_FUNC))
			err_free(ses_resolve(rq->sn, v->text, &va));
		h = mix_u64(h, va);
	}
	return h;
}

void ops_etag_begin(struct ops_req *rq)
{
	const struct ops_op *op = rq->args->op;
	struct ses_snap *sn = rq->sn;
	struct ops_out *o = rq->out;
	o->etag[0] = '\0';
	if (reads_file(rq->args))
		return;
	uint64_t h = mix(0xcbf29ce484222325, image_meta(sn->im)->target_sha256, 32);
	/* It says what the store knows of the C. */
	if (op->run == ops_decompile && sn->ses->store)
		h = mix_u64(h, store_cache_stamp(sn->ses->store, sn->ses->sha256));
	/* An analysis that found the same has a generation of its own. */
	h = mix(h, &sn->gen, sizeof(sn->gen));
	h = mix(h, op->name, strlen(op->name));
	o->tag_hash = mix_params(rq, h);
	if (is_page(op)) {
		/* The room for it: ops_etag_page() writes it. */
		memset(o->etag, '0', PAGE_ETAG_LEN);
		o->etag[PAGE_ETAG_LEN] = '\0';
		return;
	}
	/* Of the journal itself every revision is news, undone or not. */
	uint32_t kinds = kinds_of(op);
	uint64_t edit_rev = !sn->edits ? 0 : kinds == EDITS_KINDS_ALL ? edits_view_state(sn->edits)->edit_rev : edits_view_newest(sn->edits, kinds);
	put_hex(o->etag, mix_u64(o->tag_hash, edit_rev), '\0');
}

bool ops_etag_is_whole(const struct ops_op *op)
{
	return op->cap == SES_CAP_READ && op->run != ops_check && op->run != ops_analyze && !is_page(op) && kinds_of(op) == EDITS_KINDS_ALL &&
	       ops_param_find(op, "etag", 4);
}

bool ops_etag_of(const struct ops_req *rq, char ret[OPS_ETAG_MAX])
{
	if (!rq->sn || rq->project || rq->sn->is_preview || ses_snap_is_pending(rq->sn))
		return false;
	if (!ops_etag_is_whole(rq->args->op) || ops_arg_is_set(rq->args, "etag") || ops_arg_is_set(rq->args, "fresh"))
		return false;
	struct ops_out o = {.op = rq->args->op, .is_json = true};
	struct ops_req ask = *rq;
	ask.out = &o;
	ops_etag_begin(&ask);
	if (!o.etag[0])
		return false;
	/* Analyses are revisions too. */
	uint64_t h = mix_u64(mix(0xcbf29ce484222325, o.etag, strlen(o.etag)), rq->sn->rev);
	put_hex(ret, h, '\0');
	return true;
}

bool ops_etag_holds(const struct ops_req *rq)
{
	const char *etag = ops_arg_str(rq->args, "etag");
	uint64_t hash, first, last;
	if (!etag || !rq->out->is_json || !rq->out->etag[0])
		return false;
	if (!is_page(rq->args->op))
		return !strcmp(etag, rq->out->etag);
	if (strlen(etag) != PAGE_ETAG_LEN || etag[16] != '.' || etag[33] != '.')
		return false;
	if (!take_hex(etag, &hash) || !take_hex(etag + 17, &first) || !take_hex(etag + 34, &last))
		return false;
	return first <= last && hash == page_hash(rq->out, rq->sn, first, last);
}

void ops_etag_page(struct ops_req *rq)
{
	struct ops_out *o = rq->out;
	if (!o->etag[0] || !o->etag_at || o->buf->failed)
		return;
	put_page(o->etag, page_hash(o, rq->sn, o->page_first, o->page_last), o->page_first, o->page_last);
	memcpy(o->buf->data + o->etag_at, o->etag, strlen(o->etag));
}
