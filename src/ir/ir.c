/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir.h"

#include <string.h>

/* Tables and the builder. */

#define R_LIMIT IR_REF_INDEX_MAX

static const struct ir_op_info ops[IR_OP_COUNT] = {
	[IR_OP_NONE] = {"none", "-:", NULL, 0},
#define IR_OP(id, text_, signature_, effects_, cform_) \
	[IR_##id] = {.text = text_, .signature = signature_, .cform = cform_, .effects = effects_},
#include "ir/ops.def"
};

static const struct ir_kind_info kinds[IR_KIND_COUNT] = {
	[IR_KIND_NONE] = {"", NULL, IR_OP_NONE},
#define IR_KIND(op_, id, text_, cform_) [IR_##id] = {.text = text_, .cform = cform_, .op = IR_##op_},
#include "ir/ops.def"
};

const struct ir_op_info *ir_op_info(enum ir_op op)
{
	return &ops[op < IR_OP_COUNT ? op : IR_OP_NONE];
}

const struct ir_kind_info *ir_kind_info(enum ir_kind kind)
{
	return &kinds[kind < IR_KIND_COUNT ? kind : IR_KIND_NONE];
}

bool ir_kind_fits(enum ir_op op, enum ir_kind kind)
{
	if (kind != IR_KIND_NONE)
		return kind < IR_KIND_COUNT && kinds[kind].op == op;
	for (unsigned k = 1; k < IR_KIND_COUNT; k++) {
		if (kinds[k].op == op)
			return false;
	}
	return true;
}

static const uint16_t width_bits[IR_W_COUNT] = {0, 1, 8, 16, 32, 64, 80, 128, 256, 512};

unsigned ir_bits(enum ir_width w)
{
	return w < IR_W_COUNT ? width_bits[w] : 0;
}

enum ir_width ir_width_of(unsigned bits)
{
	for (enum ir_width w = IR_W1; w < IR_W_COUNT; w++) {
		if (width_bits[w] == bits)
			return w;
	}
	return IR_W0;
}

unsigned ir_words(enum ir_width w)
{
	return (ir_bits(w) + 63) / 64;
}

uint16_t ir_loc_find(const struct ir_machine *m, const char *name, size_t len)
{
	for (uint16_t i = 0; i < m->loc_cnt; i++) {
		if (strlen(m->locs[i].name) == len && !memcmp(m->locs[i].name, name, len))
			return i;
	}
	return IR_LOC_NONE;
}

/* --- storage ----------------------------------------------------------------------------------------------- */
/* Makes room for `more` elements behind `cnt`; arrays grow by doubling, the old ones stay in the arena. */
static bool grow(struct ir_func *f, void **data, uint32_t cnt, uint32_t *cap, uint32_t more, size_t elem_len)
{
	if (f->failed)
		return false;
	if (more <= *cap - cnt)
		return true;
	uint64_t want = (uint64_t)*cap * 2 + 16;
	if (want < (uint64_t)cnt + more)
		want = (uint64_t)cnt + more;
	void *bigger = want > R_LIMIT ? NULL : arena_array(f->arena, (size_t)want, elem_len);
	if (!bigger) {
		f->failed = true;
		return false;
	}
	if (cnt)
		memcpy(bigger, *data, cnt * elem_len);
	*data = bigger;
	*cap = (uint32_t)want;
	return true;
}

#define GROW_(f, array, what, more) \
	grow((f), (void **)&(f)->array, (f)->what##_cnt, &(f)->what##_cap, (more), sizeof(*(f)->array))
#define GROW(f, what, more) GROW_(f, what##s, what, more)

struct ir_func *ir_func_new(struct arena *arena, const struct ir_machine *machine, uint64_t va)
{
	struct ir_func *f = ARENA_NEW(arena, struct ir_func);
	if (f) {
		f->arena = arena;
		f->machine = machine;
		f->va = va;
	}
	return f;
}

struct err *ir_status(const struct ir_func *f)
{
	if (!f->failed)
		return NULL;
	if (f->rec_limit && f->rec_cnt >= f->rec_limit)
		return err_new(ERR_BUDGET, "the function at 0x%llx needs more than %u records", (unsigned long long)f->va,
			       f->rec_limit);
	return &err_nomem;
}

uint32_t ir_block_new(struct ir_func *f, uint64_t va)
{
	if (!GROW(f, block, 1))
		return 0;
	f->blocks[f->block_cnt] = (struct ir_block){.va = va};
	return f->block_cnt++;
}

void ir_block_begin(struct ir_func *f, uint32_t block)
{
	if (f->failed)
		return;
	f->cur_block = block;
	f->blocks[block].first = f->blocks[block].last = f->order_cnt;
}

static void append(struct ir_func *f, uint32_t rec)
{
	if (!GROW_(f, order, order, 1))
		return;
	f->order[f->order_cnt++] = rec;
	f->blocks[f->cur_block].last = f->order_cnt;
}

uint32_t ir_block_reopen(struct ir_func *f, uint32_t block)
{
	struct ir_block was = f->blocks[block];
	if (f->failed || was.first == was.last)
		return 0;
	ir_block_begin(f, block);
	for (uint32_t i = was.first; i + 1 < was.last; i++)
		append(f, f->order[i]);
	return f->failed ? 0 : f->order[was.last - 1];
}

void ir_block_close(struct ir_func *f, uint32_t last_rec)
{
	if (!f->failed)
		append(f, last_rec);
}

void ir_origin_set(struct ir_func *f, uint64_t va, unsigned len)
{
	if (!GROW(f, origin, 1))
		return;
	f->origins[f->origin_cnt] = (struct ir_origin){.va = va, .len = (uint8_t)len};
	f->cur_origin = f->origin_cnt++;
}

ir_ref ir_emit(struct ir_func *f, const struct ir_rec *rec)
{
	if (f->rec_limit && f->rec_cnt >= f->rec_limit)
		f->failed = true;
	if (f->failed || !GROW(f, rec, 1))
		return ir_ref_make(IR_TAG_VALUE, 0);
	struct ir_rec *r = &f->recs[f->rec_cnt];
	*r = *rec;
	r->origin = f->cur_origin;
	append(f, f->rec_cnt);
	return ir_ref_make(IR_TAG_VALUE, f->rec_cnt++);
}

static uint32_t hash_const(enum ir_width w, const uint64_t *words)
{
	uint64_t h = w;
	for (unsigned i = 0; i < ir_words(w); i++)
		h = (h ^ words[i]) * 0x9e3779b97f4a7c15;
	return (uint32_t)(h >> 32);
}

/* The slot of an equal constant, or the empty one where it belongs. */
static uint32_t *const_slot(const struct ir_func *f, enum ir_width w, const uint64_t *words)
{
	uint32_t mask = f->const_hash_cap - 1;
	for (uint32_t i = hash_const(w, words) & mask;; i = (i + 1) & mask) {
		uint32_t *slot = &f->const_hash[i];
		if (*slot == UINT32_MAX)
			return slot;
		const struct ir_const *c = &f->consts[*slot];
		if (c->width == w && !memcmp(&f->words[c->first_word], words, ir_words(w) * 8))
			return slot;
	}
}

static bool grow_hash(struct ir_func *f)
{
	if (f->const_hash_cap && f->const_cnt * 2 < f->const_hash_cap)
		return true;
	uint32_t cap = f->const_hash_cap ? f->const_hash_cap * 2 : 64;
	uint32_t *table = ARENA_ARRAY(f->arena, uint32_t, cap);
	if (!table) {
		f->failed = true;
		return false;
	}
	memset(table, 0xff, cap * sizeof(*table));
	f->const_hash = table;
	f->const_hash_cap = cap;
	for (uint32_t i = 0; i < f->const_cnt; i++)
		*const_slot(f, f->consts[i].width, &f->words[f->consts[i].first_word]) = i;
	return true;
}

ir_ref ir_const_wide(struct ir_func *f, enum ir_width w, const uint64_t *words)
{
	ir_ref none = ir_ref_make(IR_TAG_CONST, 0);
	unsigned cnt = ir_words(w);
	if (f->failed || cnt == 0 || !grow_hash(f))
		return none;
	uint64_t cut[8];
	memcpy(cut, words, cnt * 8);
	unsigned used = ir_bits(w) % 64;
	if (used)
		cut[cnt - 1] &= ((uint64_t)1 << used) - 1;
	uint32_t *slot = const_slot(f, w, cut);
	if (*slot != UINT32_MAX)
		return ir_ref_make(IR_TAG_CONST, *slot);
	if (!GROW(f, const, 1) || !GROW(f, word, cnt))
		return none;
	*slot = f->const_cnt;
	f->consts[f->const_cnt] = (struct ir_const){.first_word = f->word_cnt, .width = (uint8_t)w};
	memcpy(&f->words[f->word_cnt], cut, cnt * 8);
	f->word_cnt += cnt;
	return ir_ref_make(IR_TAG_CONST, f->const_cnt++);
}

ir_ref ir_const(struct ir_func *f, enum ir_width w, uint64_t v)
{
	const uint64_t words[8] = {v};
	return ir_const_wide(f, w, words);
}

uint32_t ir_list(struct ir_func *f, const ir_ref *refs, uint32_t cnt)
{
	if (!GROW(f, list, cnt))
		return 0;
	uint32_t first = f->list_cnt;
	if (cnt)
		memcpy(&f->lists[first], refs, cnt * sizeof(*refs));
	f->list_cnt += cnt;
	return first;
}

uint32_t ir_intrin_new(struct ir_func *f, struct ir_intrin **ret)
{
	*ret = NULL;
	if (!GROW(f, intrin, 1))
		return 0;
	*ret = &f->intrins[f->intrin_cnt];
	memset(*ret, 0, sizeof(**ret));
	return f->intrin_cnt++;
}

/* --- looking ----------------------------------------------------------------------------------------------- */
enum ir_width ir_ref_width(const struct ir_func *f, ir_ref r)
{
	uint32_t i = ir_index(r);
	if (ir_tag(r) == IR_TAG_CONST)
		return i < f->const_cnt ? (enum ir_width)f->consts[i].width : IR_W0;
	if (ir_tag(r) != IR_TAG_VALUE || i >= f->rec_cnt)
		return IR_W0;
	return ir_op_info((enum ir_op)f->recs[i].op)->signature[0] == '-' ? IR_W0 : (enum ir_width)f->recs[i].width;
}

const uint64_t *ir_const_words(const struct ir_func *f, ir_ref r)
{
	if (ir_tag(r) != IR_TAG_CONST || ir_index(r) >= f->const_cnt)
		return NULL;
	return &f->words[f->consts[ir_index(r)].first_word];
}

bool ir_const_get(const struct ir_func *f, ir_ref r, uint64_t *ret)
{
	const uint64_t *words = ir_const_words(f, r);
	if (!words || ir_bits((enum ir_width)f->consts[ir_index(r)].width) > 64)
		return false;
	*ret = words[0];
	return true;
}

const struct ir_rec *ir_terminator(const struct ir_func *f, uint32_t block)
{
	if (block >= f->block_cnt || f->blocks[block].first == f->blocks[block].last)
		return NULL;
	return &f->recs[f->order[f->blocks[block].last - 1]];
}

void ir_operands(const struct ir_func *f, const struct ir_rec *rec, void (*fn)(void *ctx, ir_ref r), void *ctx)
{
	const ir_ref refs[3] = {rec->a, rec->b, rec->c};
	const char *sig = ir_op_info((enum ir_op)rec->op)->signature;
	unsigned i = 0;
	for (const char *s = sig + 2; *s && *s != 'L' && i < 3; s++, i++) {
		if (refs[i] != IR_REF_NONE)
			fn(ctx, refs[i]);
	}
	if (sig[2 + i] == 'L') {
		for (uint32_t k = 0; k < rec->c; k++)
			fn(ctx, f->lists[rec->b + k]);
	}
	if (rec->op == IR_SWITCH)
		fn(ctx, ir_block_ref(rec->aux));
}

/* --- edges ------------------------------------------------------------------------------------------------- */
struct edge_list {
	uint32_t *to;      /* null: only counts */
	uint32_t cnt;
	uint32_t *seen_by; /* per block, who saw it last, plus one */
	uint32_t from;
};

static void add_edge(void *ctx, ir_ref r)
{
	struct edge_list *l = ctx;
	if (ir_tag(r) != IR_TAG_BLOCK || l->seen_by[ir_index(r)] == l->from + 1)
		return;
	l->seen_by[ir_index(r)] = l->from + 1;
	if (l->to)
		l->to[l->cnt] = ir_index(r);
	l->cnt++;
}

bool ir_succs(struct ir_func *f, struct ir_edges *ret)
{
	struct edge_list l = {.seen_by = ARENA_ARRAY(f->arena, uint32_t, f->block_cnt + 1)};
	ret->first = ARENA_ARRAY(f->arena, uint32_t, f->block_cnt + 1);
	if (!ret->first || !l.seen_by)
		return false;
	for (int pass = 0; pass < 2; pass++) {
		l.cnt = 0;
		for (l.from = 0; l.from < f->block_cnt; l.from++) {
			ret->first[l.from] = l.cnt;
			const struct ir_rec *end = ir_terminator(f, l.from);
			if (end)
				ir_operands(f, end, add_edge, &l);
		}
		ret->first[f->block_cnt] = l.cnt;
		if (pass)
			break;
		memset(l.seen_by, 0, f->block_cnt * sizeof(*l.seen_by));
		l.to = ret->list = ARENA_ARRAY(f->arena, uint32_t, l.cnt + 1);
		if (!l.to)
			return false;
	}
	return true;
}

bool ir_preds(struct ir_func *f, struct ir_edges *ret)
{
	struct ir_edges succs;
	if (!ir_succs(f, &succs))
		return false;
	uint32_t n = f->block_cnt;
	uint32_t *fill = ARENA_ARRAY(f->arena, uint32_t, n + 1);
	ret->first = ARENA_ARRAY(f->arena, uint32_t, n + 1);
	ret->list = ARENA_ARRAY(f->arena, uint32_t, succs.first[n] + 1);
	if (!fill || !ret->first || !ret->list)
		return false;
	for (uint32_t i = 0; i < succs.first[n]; i++)
		ret->first[succs.list[i] + 1]++;
	for (uint32_t i = 0; i < n; i++)
		ret->first[i + 1] += ret->first[i];
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = succs.first[i]; k < succs.first[i + 1]; k++) {
			uint32_t to = succs.list[k];
			ret->list[ret->first[to] + fill[to]++] = i;
		}
	}
	return true;
}
