/* SPDX-License-Identifier: Apache-2.0 */
#include "decomp/dec_values.h"

#include <stdlib.h>

bool dec_values_add(struct dec_values *s, uint64_t lo, uint64_t hi)
{
	if (s->cnt && s->spans[s->cnt - 1].hi + 1 == lo && lo) {
		s->spans[s->cnt - 1].hi = hi;
		return true;
	}
	if (s->cnt == DEC_SPANS_MAX)
		return false;
	s->spans[s->cnt++] = (struct dec_span){lo, hi};
	return true;
}

/* What is in both, or in x and not in y. */
bool dec_values_meet(const struct dec_values *x, const struct dec_values *y, bool is_not, struct dec_values *out)
{
	uint32_t k = 0;
	out->cnt = 0;
	for (uint32_t i = 0; i < x->cnt; i++) {
		uint64_t at = x->spans[i].lo, hi = x->spans[i].hi;
		bool is_over = false;
		while (k < y->cnt && y->spans[k].hi < at)
			k++;
		for (uint32_t n = k; n < y->cnt && y->spans[n].lo <= hi && !is_over; n++) {
			uint64_t lo = y->spans[n].lo > at ? y->spans[n].lo : at, end = y->spans[n].hi < hi ? y->spans[n].hi : hi;
			if (is_not && lo > at && !dec_values_add(out, at, lo - 1))
				return false;
			if (!is_not && !dec_values_add(out, lo, end))
				return false;
			is_over = end == hi;
			at = end + 1;
		}
		if (is_not && !is_over && !dec_values_add(out, at, hi))
			return false;
	}
	return true;
}

/* How many there are; UINT64_MAX: that, or more. */
uint64_t dec_values_cnt(const struct dec_values *s)
{
	uint64_t cnt = 0;
	for (uint32_t i = 0; i < s->cnt; i++) {
		uint64_t more = s->spans[i].hi - s->spans[i].lo;
		if (more >= UINT64_MAX - cnt - 1)
			return UINT64_MAX;
		cnt += more + 1;
	}
	return cnt;
}

static int by_lo(const void *x, const void *y)
{
	const struct dec_span *a = x, *b = y;
	return a->lo < b->lo ? -1 : a->lo > b->lo;
}

/* As spans come that may lie in any order, but apart. */
static void sort(struct dec_values *s)
{
	uint32_t cnt = s->cnt;
	qsort(s->spans, cnt, sizeof(*s->spans), by_lo);
	s->cnt = 0;
	for (uint32_t i = 0; i < cnt; i++)
		(void)dec_values_add(s, s->spans[i].lo, s->spans[i].hi);
}

/* --- the tested value ---------------------------------------------------------------------------------------------------- */
static bool add_step(struct dec_chain *c, const struct dec_step *step)
{
	if (c->cnt == DEC_STEPS_MAX)
		return false;
	c->steps[c->cnt++] = *step;
	return true;
}

/* From what is compared down to what it is made of. */
void dec_chain_of(const struct ir_func *f, ir_ref v, struct dec_chain *c)
{
	*c = (struct dec_chain){.root = v};
	for (const struct ir_rec *rec; (rec = dec_rec(f, c->root));) {
		struct dec_step step = {.op = rec->op, .to = rec->width};
		switch (rec->op) {
		case IR_ADD:
		case IR_SUB:
			if (!ir_const_get(f, rec->b, &step.add) || ir_bits((enum ir_width)rec->width) > 64)
				return;
			step.add = rec->op == IR_ADD ? step.add : -step.add;
			step.op = IR_ADD;
			break;
		case IR_ZEXT:
		case IR_SEXT:
			if (ir_bits((enum ir_width)rec->width) > 64)
				return;
			break;
		default:
			return;
		}
		step.from = (uint8_t)ir_ref_width(f, rec->a);
		if (ir_tag(rec->a) != IR_TAG_VALUE || step.from == IR_W1 || !add_step(c, &step))
			return;
		c->root = rec->a;
	}
}

/* The values before an operation of those behind it. */
bool dec_values_before(const struct dec_step *step, const struct dec_values *s, struct dec_values *out)
{
	uint64_t mask = dec_mask((enum ir_width)step->from), half = mask / 2 + 1;
	out->cnt = 0;
	for (uint32_t i = 0; i < s->cnt; i++) {
		uint64_t lo = s->spans[i].lo, hi = s->spans[i].hi;
		if (step->op == IR_ADD) {
			uint64_t from = (lo - step->add) & mask, to = (hi - step->add) & mask;
			bool ok = out->cnt + 2 <= DEC_SPANS_MAX;
			if (!ok)
				return false;
			if (from <= to) {
				out->spans[out->cnt++] = (struct dec_span){from, to};
			} else {
				out->spans[out->cnt++] = (struct dec_span){from, mask};
				out->spans[out->cnt++] = (struct dec_span){0, to};
			}
			continue;
		}
		/* What an extension gives lies in one stretch of the wide numbers, or in two. */
		uint64_t low_end = step->op == IR_ZEXT ? mask : half - 1, high = dec_mask((enum ir_width)step->to) - (half - 1);
		if (out->cnt + 2 > DEC_SPANS_MAX)
			return false;
		if (lo <= low_end)
			out->spans[out->cnt++] = (struct dec_span){lo, hi < low_end ? hi : low_end};
		if (step->op == IR_SEXT && hi >= high)
			out->spans[out->cnt++] = (struct dec_span){(lo > high ? lo : high) & mask, hi & mask};
	}
	sort(out);
	return true;
}

/* Of the numbers compared with c those for which it holds, the variable on the left or on the right. */
bool dec_values_of_cmp(const struct ir_rec *rec, enum ir_width w, uint64_t c, bool is_right, struct dec_values *out)
{
	uint64_t mask = dec_mask(w), low = rec->kind == IR_CMP_SLT || rec->kind == IR_CMP_SLE ? mask / 2 + 1 : 0, lo, hi;
	bool with = rec->kind == IR_CMP_ULE || rec->kind == IR_CMP_SLE;
	out->cnt = 0;
	if (rec->kind == IR_CMP_EQ) {
		lo = hi = c;
	} else {
		/* Counted from the lowest number there is. */
		uint64_t at = (c - low) & mask;
		if (!with && at == (is_right ? mask : 0))
			return true;
		lo = is_right ? at + !with : 0;
		hi = is_right ? mask : at - !with;
		lo = (lo + low) & mask;
		hi = (hi + low) & mask;
	}
	if (lo <= hi)
		return dec_values_add(out, lo, hi);
	return dec_values_add(out, 0, hi) && dec_values_add(out, lo, mask);
}

/* The comparison of a condition: its side that varies, whether that is the second one, and the number. */
bool dec_chain_of_cmp(const struct ir_func *f, const struct ir_rec *rec, struct dec_chain *ret, bool *is_right, uint64_t *c)
{
	if (!rec || rec->op != IR_CMP)
		return false;
	*is_right = ir_const_get(f, rec->a, c);
	if (*is_right == ir_const_get(f, rec->b, c) || ir_bits(ir_ref_width(f, rec->a)) > 64)
		return false;
	if (*is_right)
		(void)ir_const_get(f, rec->a, c);
	dec_chain_of(f, *is_right ? rec->b : rec->a, ret);
	return true;
}

