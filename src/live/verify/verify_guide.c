/* SPDX-License-Identifier: Apache-2.0 */
#include "live/verify/verify_int.h"

#include <stdlib.h>
#include <string.h>

/*
 * Inputs for ways that were not taken. A branch compares a value; where the input holds that value, in an argument, an import's answer or memory
 * the trial made, it is replaced by one that decides otherwise. A value that came another way is not found, or found where it did not
 * come from: then the trial was one more.
 */
#define INPUT_MAX 64
#define TRY_MAX 4 /* places tried for a value */
#define TOTAL_MAX 8 /* ... for a branch */
#define PLACE_MAX 64

struct wish {
	struct box_cmp cmp; /* len 0: nothing is known */
	uint32_t input;
	uint8_t tries, total;
};

struct guide {
	const struct cover *cover;
	uint64_t next_seed;
	uint32_t seeds_left, plain_left;
	struct guide_input inputs[INPUT_MAX];
	uint32_t input_cnt;
	struct wish wishes[BOX_BRANCH_MAX];
	uint32_t turn; /* the branch that is next */
};

struct guide *guide_new(void)
{
	return calloc(1, sizeof(struct guide));
}

void guide_free(struct guide *g)
{
	free(g);
}

void guide_begin(struct guide *g, const struct cover *c, uint64_t seed, uint32_t seeds)
{
	g->cover = c;
	g->next_seed = seed;
	g->seeds_left = seeds;
	g->plain_left = (3 * seeds + 7) / 8; /* as many kinds of data as possible come first */ /* as many kinds of data as possible come first */
	g->input_cnt = 0;
	g->turn = 0;
	memset(g->wishes, 0, c->branch_cnt * sizeof(*g->wishes));
}

/* --- what would decide otherwise --------------------------------------------------------------------------------------- */
static uint64_t low_bytes(uint64_t v, unsigned len)
{
	return len < 8 ? v & (((uint64_t)1 << 8 * len) - 1) : v;
}

static int64_t as_signed(uint64_t v, unsigned len)
{
	unsigned shift = 64 - 8 * len;
	return (int64_t)(v << shift) >> shift;
}

/* The condition without its last bit, which turns it round; false when it is none of those with an answer. */
static bool condition(const struct box_cmp *c, bool *ret)
{
	uint64_t a = c->a, b = c->is_test ? 0 : c->b;
	if (c->is_test)
		a &= c->b;
	switch (c->cc >> 1) {
	case 1:
		*ret = a < b;
		return !c->is_test;
	case 2:
		*ret = a == b;
		return true;
	case 3:
		*ret = a <= b;
		return true;
	case 4:
		*ret = as_signed(low_bytes(a - b, c->len), c->len) < 0;
		return true;
	case 6:
		*ret = as_signed(a, c->len) < as_signed(b, c->len);
		return true;
	case 7:
		*ret = as_signed(a, c->len) <= as_signed(b, c->len);
		return true;
	default:
		return false;
	}
}

/* What `a` would have to be. */
static bool other_value(const struct box_cmp *c, uint64_t *ret)
{
	bool is_true;
	if (!condition(c, &is_true))
		return false;
	unsigned kind = c->cc >> 1;
	uint64_t sign = (uint64_t)1 << (8 * c->len - 1);
	bool is_self = c->is_test && c->a == c->b;
	if (!c->is_test) {
		bool is_below = kind == 1 || kind == 4 || kind == 6;
		*ret = is_true ? c->b + !is_below : c->b - is_below;
	} else if (kind == 4 || kind == 6) {
		*ret = is_true ? c->a & ~sign : c->a | sign;
	} else {
		*ret = is_true ? (is_self ? 1 : c->a | (c->b & -c->b)) : (is_self ? 0 : c->a & ~c->b);
	}
	*ret = low_bytes(*ret, c->len);
	return *ret != c->a;
}

/* --- where the value comes from ------------------------------------------------------------------------------------------ */
struct place {
	uint64_t at; /* of the word */
	uint8_t off, len;
};

struct places {
	struct place list[PLACE_MAX];
	uint32_t cnt;
};

static void look_at_word(struct places *p, const struct box_trial *t, uint64_t at, uint64_t value, unsigned len)
{
	uint64_t word = box_trial_word(t, at);
	for (unsigned off = 0; off + len <= 8 && p->cnt < PLACE_MAX; off += len)
		if (low_bytes(word >> 8 * off, len) == value)
			p->list[p->cnt++] = (struct place){at, (uint8_t)off, (uint8_t)len};
}

/* What imports answered, the latest first. */
static void look_at_answers(struct places *p, const struct guide_input *in, const struct box_cmp *c)
{
	for (uint32_t i = MIN((uint32_t)c->answers, in->answer_cnt); i > 0 && p->cnt < TRY_MAX / 2; i--)
		if (low_bytes(in->answers[i - 1], c->len) == c->a)
			p->list[p->cnt++] = (struct place){BOX_ANSWER_AT(i - 1), 0, 8};
}

static void look_for(struct places *p, const struct guide_input *in, const struct box_trial *t, uint64_t value, unsigned len)
{
	uint64_t stack_len, stack = box_stack_args(&stack_len);
	for (uint64_t at = 0; at < 48; at += 8)
		look_at_word(p, t, at, value, len);
	for (uint64_t at = stack; at < stack + MIN(stack_len, (uint64_t)128); at += 8)
		look_at_word(p, t, at, value, len);
	for (uint32_t i = 0; i < in->page_cnt; i++)
		for (uint64_t at = in->pages[i]; at < in->pages[i] + 4096 && p->cnt < PLACE_MAX; at += 8)
			look_at_word(p, t, at, value, len);
}

static bool find_place(const struct wish *w, const struct guide_input *in, const struct box_trial *t, struct place *ret)
{
	const struct box_cmp *c = &w->cmp;
	struct places p = {.cnt = 0};
	unsigned skipped = 0;
	if (c->at && (c->at & 7) + c->at_len <= 8) {
		*ret = (struct place){c->at & ~(uint64_t)7, (uint8_t)(c->at & 7), c->at_len};
		skipped = 1;
		if (!w->tries)
			return true;
	}
	unsigned nth = w->tries - skipped;
	look_at_answers(&p, in, c);
	look_for(&p, in, t, c->a, c->len);
	/* A byte or half a word that was widened. */
	for (unsigned len = c->len / 2; len && p.cnt < PLACE_MAX; len /= 2)
		if (low_bytes(c->a, len) == c->a)
			look_for(&p, in, t, c->a, len);
	if (nth >= p.cnt)
		return false;
	*ret = p.list[p.cnt <= TRY_MAX || nth < 2 ? nth : p.cnt * (nth - 1) / TRY_MAX];
	return true;
}

/* A variable of the target has its own content around what changes. */
static bool is_made(const struct guide_input *in, uint64_t at)
{
	uint64_t stack_len, stack = box_stack_args(&stack_len);
	for (uint32_t i = 0; i < in->page_cnt; i++)
		if (at - in->pages[i] < 4096)
			return true;
	return at < BOX_ANSWER_AT(BOX_ANSWER_MAX) || at - stack < stack_len;
}

static bool grant(struct guide *g, struct wish *w, struct guide_input *ret)
{
	const struct guide_input *from = &g->inputs[w->input];
	struct box_trial t = {.seed = from->seed, .words = g->cover->f->words, .word_cnt = g->cover->f->word_cnt, .patches = from->patches,
			      .patch_cnt = from->patch_cnt};
	struct place p;
	uint64_t value;
	if (from->patch_cnt == GUIDE_GRANT_MAX || !other_value(&w->cmp, &value) || !find_place(w, from, &t, &p))
		return false;
	uint64_t mask = low_bytes(UINT64_MAX, p.len);
	uint64_t word = box_trial_word(&t, p.at);
	word = (word & ~(mask << 8 * p.off)) | (value & mask) << 8 * p.off;
	*ret = *from;
	ret->page_cnt = 0;
	ret->patches[ret->patch_cnt++] = is_made(from, p.at) ? (struct box_patch){p.at, p.at + 8, word}
							     : (struct box_patch){p.at + p.off, p.at + p.off + p.len, value};
	return true;
}

void guide_next(struct guide *g, struct guide_input *ret)
{
	uint32_t branches = g->cover->branch_cnt;
	for (uint32_t n = 0; n < branches && !g->plain_left; n++) {
		uint32_t i = (g->turn + n) % branches;
		struct wish *w = &g->wishes[i];
		if (!w->cmp.len || !cover_is_open(g->cover, i))
			continue;
		bool ok = w->tries < TRY_MAX && grant(g, w, ret);
		w->tries++;
		w->total++;
		if (!ok) {
			w->cmp.len = 0;
			continue;
		}
		g->turn = i + 1;
		return;
	}
	g->plain_left -= g->plain_left > 0;
	*ret = (struct guide_input){.seed = g->next_seed++};
}

static bool is_width(unsigned len)
{
	return len == 1 || len == 2 || len == 4 || len == 8;
}

void guide_learn(struct guide *g, const struct guide_input *in, const struct guide_run *run)
{
	if (g->input_cnt == INPUT_MAX)
		return;
	const struct box_cmp *cmps = run->cmps;
	bool is_used = false;
	for (uint32_t k = 0; k < g->cover->watched_cnt; k++) {
		uint32_t i = g->cover->branch_ids[k];
		struct wish *w = &g->wishes[i];
		/* The target's process may say anything. */
		bool is_sound = is_width(cmps[k].len) && (!cmps[k].at || is_width(cmps[k].at_len));
		if (!is_sound || w->cmp.len || w->total >= TOTAL_MAX || !cover_is_open(g->cover, i))
			continue;
		*w = (struct wish){.cmp = cmps[k], .input = g->input_cnt, .total = w->total};
		w->cmp.cc &= 15;
		is_used = true;
	}
	if (!is_used)
		return;
	struct guide_input *kept = &g->inputs[g->input_cnt++];
	*kept = *in;
	kept->page_cnt = MIN(run->made_cnt, (uint32_t)GUIDE_PAGE_MAX);
	memcpy(kept->pages, run->made, kept->page_cnt * sizeof(*run->made));
	kept->answer_cnt = run->answer_cnt;
	memcpy(kept->answers, run->answers, sizeof(kept->answers));
}
