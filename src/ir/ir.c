/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir.h"

#include <string.h>

/* Tables and the builder. */

#define R_LIMIT IR_REF_INDEX_MAX

const struct ir_op_info ir_op_table[IR_OP_COUNT] = {
	[IR_OP_NONE] = {"none", "-:", NULL, 0, 0},
#define IR_OP(id, text_, signature_, effects_, cform_)                                                    \
	[IR_##id] = {.text = text_, .signature = signature_, .cform = cform_, .effects = effects_,        \
		     .operand_cnt = sizeof(signature_) - sizeof("-:")},
#include "ir/ops.def"
};

const struct ir_kind_info ir_kind_table[IR_KIND_COUNT] = {
	[IR_KIND_NONE] = {"", NULL, IR_OP_NONE},
#define IR_KIND(op_, id, text_, cform_) [IR_##id] = {.text = text_, .cform = cform_, .op = IR_##op_},
#include "ir/ops.def"
};

bool ir_kind_fits(enum ir_op op, enum ir_kind kind)
{
	if (kind != IR_KIND_NONE)
		return kind < IR_KIND_COUNT && ir_kind_table[kind].op == op;
	for (unsigned k = 1; k < IR_KIND_COUNT; k++) {
		if (ir_kind_table[k].op == op)
			return false;
	}
	return true;
}

enum ir_width ir_width_of(unsigned bits)
{
	for (enum ir_width w = IR_W1; w < IR_W_COUNT; w++) {
		if (ir_bits(w) == bits)
			return w;
	}
	return IR_W0;
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
	void *bigger = want > R_LIMIT ? NULL : arena_raw_array(f->arena, (size_t)want, elem_len);
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

void ir_reserve(struct ir_func *f, uint32_t recs, uint32_t origins)
{
	if (GROW(f, rec, recs) && GROW_(f, order, order, recs) && GROW(f, origin, origins) && f->rec_limit && f->rec_cap > f->rec_limit)
		f->rec_cap = f->rec_limit;
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

bool ir_emit_room(struct ir_func *f)
{
	if (f->rec_limit && f->rec_cnt >= f->rec_limit)
		f->failed = true;
	if (!GROW(f, rec, 1) || !GROW_(f, order, order, 1))
		return false;
	/* So that the limit is seen here, and nowhere else. */
	if (f->rec_limit && f->rec_cap > f->rec_limit)
		f->rec_cap = f->rec_limit;
	return true;
}

static uint32_t hash_const(enum ir_width w, const uint64_t *words, unsigned cnt)
{
	uint64_t h = w;
	for (unsigned i = 0; i < cnt; i++)
		h = (h ^ words[i]) * 0x9e3779b97f4a7c15;
	return (uint32_t)(h >> 32);
}

/* The slot of an equal constant, or the empty one where it belongs. */
static uint32_t *const_slot(const struct ir_func *f, enum ir_width w, const uint64_t *words, unsigned cnt)
{
	uint32_t mask = f->const_hash_cap - 1;
	for (uint32_t i = hash_const(w, words, cnt) & mask;; i = (i + 1) & mask) {
		uint32_t *slot = &f->const_hash[i];
		if (*slot == UINT32_MAX)
			return slot;
		const struct ir_const *c = &f->consts[*slot];
		const uint64_t *is = &f->words[c->first_word];
		if (c->width == w && is[0] == words[0] && (cnt == 1 || !memcmp(is, words, cnt * 8)))
			return slot;
	}
}

static bool grow_hash(struct ir_func *f)
{
	if (f->const_hash_cap && f->const_cnt * 2 < f->const_hash_cap)
		return true;
	uint32_t cap = f->const_hash_cap ? f->const_hash_cap * 2 : 64;
	uint32_t *table = ARENA_RAW_ARRAY(f->arena, uint32_t, cap);
	if (!table) {
		f->failed = true;
		return false;
	}
	memset(table, 0xff, cap * sizeof(*table));
	f->const_hash = table;
	f->const_hash_cap = cap;
	for (uint32_t i = 0; i < f->const_cnt; i++)
		*const_slot(f, f->consts[i].width, &f->words[f->consts[i].first_word], ir_words(f->consts[i].width)) = i;
	return true;
}

/* Bits above the width are 0. */
static ir_ref intern(struct ir_func *f, enum ir_width w, const uint64_t *cut, unsigned cnt)
{
	ir_ref none = ir_ref_make(IR_TAG_CONST, 0);
	if (f->failed || cnt == 0 || !grow_hash(f))
		return none;
	uint32_t *slot = const_slot(f, w, cut, cnt);
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

ir_ref ir_const_wide(struct ir_func *f, enum ir_width w, const uint64_t *words)
{
	uint64_t cut[8] = {0};
	unsigned cnt = ir_words(w), used = ir_bits(w) % 64;
	memcpy(cut, words, cnt * 8);
	if (used)
		cut[cnt - 1] &= ((uint64_t)1 << used) - 1;
	return intern(f, w, cut, cnt);
}

ir_ref ir_const(struct ir_func *f, enum ir_width w, uint64_t v)
{
	unsigned bits = ir_bits(w);
	if (bits > 64) {
		const uint64_t words[8] = {v};
		return ir_const_wide(f, w, words);
	}
	if (bits < 64)
		v &= ((uint64_t)1 << bits) - 1;
	return intern(f, w, &v, bits != 0);
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
const uint64_t *ir_const_words(const struct ir_func *f, ir_ref r)
{
	if (ir_tag(r) != IR_TAG_CONST || ir_index(r) >= f->const_cnt)
		return NULL;
	return &f->words[f->consts[ir_index(r)].first_word];
}

const struct ir_rec *ir_terminator(const struct ir_func *f, uint32_t block)
{
	if (block >= f->block_cnt || f->blocks[block].first == f->blocks[block].last)
		return NULL;
	return &f->recs[f->order[f->blocks[block].last - 1]];
}

/* --- edges ------------------------------------------------------------------------------------------------- */
/* Blocks that follow one, each once; `seen_by`: per block, whose it was last, plus one. `to` null: only counts them. */
static uint32_t ends_of(const struct ir_func *f, uint32_t block, uint32_t *seen_by, uint32_t *to)
{
	const struct ir_rec *end = ir_terminator(f, block);
	uint32_t cnt = 0, n = !end ? 0 : end->op == IR_SWITCH ? end->c + 1 : ir_fixed_operands((enum ir_op)end->op);
	for (uint32_t i = 0; i < n; i++) {
		ir_ref r;
		if (end->op == IR_SWITCH)
			r = i < end->c ? f->lists[end->b + i] : ir_block_ref(end->aux);
		else
			r = i == 0 ? end->a : i == 1 ? end->b : end->c;
		if (ir_tag(r) != IR_TAG_BLOCK || seen_by[ir_index(r)] == block + 1)
			continue;
		seen_by[ir_index(r)] = block + 1;
		if (to)
			to[cnt] = ir_index(r);
		cnt++;
	}
	return cnt;
}

bool ir_succs(const struct ir_func *f, struct ir_edges *ret)
{
	uint32_t *seen_by = ARENA_ARRAY(f->arena, uint32_t, f->block_cnt + (size_t)1), cnt = 0;
	ret->first = ARENA_RAW_ARRAY(f->arena, uint32_t, f->block_cnt + (size_t)1);
	if (!ret->first || !seen_by)
		return false;
	for (uint32_t i = 0; i < f->block_cnt; i++) {
		ret->first[i] = cnt;
		cnt += ends_of(f, i, seen_by, NULL);
	}
	ret->first[f->block_cnt] = cnt;
	ret->list = ARENA_RAW_ARRAY(f->arena, uint32_t, cnt + (size_t)1);
	if (!ret->list)
		return false;
	memset(seen_by, 0, f->block_cnt * sizeof(*seen_by));
	for (uint32_t i = 0; i < f->block_cnt; i++)
		ends_of(f, i, seen_by, ret->list + ret->first[i]);
	return true;
}

bool ir_preds(const struct ir_func *f, struct ir_edges *ret)
{
	struct ir_edges succs;
	return ir_succs(f, &succs) && ir_turn_edges(f, &succs, ret);
}

bool ir_turn_edges(const struct ir_func *f, const struct ir_edges *edges, struct ir_edges *ret)
{
	uint32_t n = f->block_cnt;
	uint32_t *fill = ARENA_ARRAY(f->arena, uint32_t, n + (size_t)1);
	ret->first = ARENA_ARRAY(f->arena, uint32_t, n + (size_t)1);
	ret->list = ARENA_RAW_ARRAY(f->arena, uint32_t, edges->first[n] + (size_t)1);
	if (!fill || !ret->first || !ret->list)
		return false;
	for (uint32_t i = 0; i < edges->first[n]; i++)
		ret->first[edges->list[i] + 1]++;
	for (uint32_t i = 0; i < n; i++)
		ret->first[i + 1] += ret->first[i];
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = edges->first[i]; k < edges->first[i + 1]; k++) {
			uint32_t to = edges->list[k];
			ret->list[ret->first[to] + fill[to]++] = i;
		}
	}
	return true;
}
