/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prototypes of the whole program by its code. Callees come before callers; what calls itself takes the convention for what is not
 * known yet. What callers use decides results that the code leaves open, so all functions are looked at before one is shown.
 */
#include "base/vec.h"
#include "decomp/dec.h"
#include "lift/lift_image.h"
#include "session/ses_int.h"
#include "session/ses_types.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 64 /* of callees looked at before their callers */

enum { P_NEW, P_BUSY, P_KNOWN, P_NONE };

struct through {
	uint32_t from, to;
};

struct ses_protos {
	struct dec_proto *list; /* by function */
	uint8_t *state;
	uint8_t *wants;         /* bits by enum dec_result: callers use it */
	VEC(struct through) through;
};

struct look {
	struct ses_snap *sn;
	struct ses_protos *p;
	uint32_t func;
	unsigned depth;
};

void ses_protos_free(struct ses_protos *p)
{
	if (!p)
		return;
	free(p->list);
	free(p->state);
	free(p->wants);
	free(p->through.data);
	free(p);
}

static uint32_t func_at(const struct ses_snap *sn, uint64_t va)
{
	uint32_t cnt, loc = space_loc(sn->space, va), f = loc == LOC_NONE ? UINT32_MAX : image_func_starting(sn->im, loc);
	image_funcs(sn->im, &cnt);
	return f < cnt ? f : UINT32_MAX;
}

/* The function a call of `*va` ends in, which becomes its address; UINT32_MAX: none of the file. */
static uint32_t behind_thunks(const struct ses_snap *sn, uint64_t *va)
{
	uint32_t cnt, func = func_at(sn, *va);
	const struct image_func *funcs = image_funcs(sn->im, &cnt);
	for (unsigned i = 0; i < 4 && func != UINT32_MAX && funcs[func].thunk_to != LOC_NONE; i++) {
		*va = space_va(sn->space, funcs[func].thunk_to);
		func = func_at(sn, *va);
	}
	return func;
}

/* --- what is stated ------------------------------------------------------------------------------------------------------------ */
static bool has_word(const char *s, size_t len, const char *word)
{
	return s && memmem(s, len, word, strlen(word)) != NULL;
}

/* Adds a parameter by its text; false: where it goes is not plain. */
static bool add_param(struct dec_proto *p, const char *s, size_t len)
{
	bool is_pointer = memchr(s, '*', len) || memchr(s, '[', len);
	bool is_float = has_word(s, len, "float"), is_double = has_word(s, len, "double");
	if (!is_pointer && (has_word(s, len, "struct ") || has_word(s, len, "union ") || has_word(s, len, "_Complex") ||
			    has_word(s, len, "__int128") || has_word(s, len, "long double") || has_word(s, len, "div_t")))
		return false;
	if (!is_pointer && (is_float || is_double)) {
		if (p->vec_cnt < 8)
			p->vecs[p->vec_cnt++] = is_double ? 64 : 32;
	} else if (p->int_cnt < 6) {
		p->ints[p->int_cnt++] = 64;
	} else {
		p->stack_cnt++;
	}
	return true;
}

/* A prototype's text as where its parts go; false: not plain. */
static bool read_stated(struct ses_text t, struct dec_proto *ret)
{
	const char *open = t.s && t.len ? memchr(t.s, '(', t.len) : NULL;
	if (!open)
		return false;
	size_t head = (size_t)(open - t.s), depth = 0, from = head + 1;
	bool is_pointer = memchr(t.s, '*', head) != NULL, has_double = has_word(t.s, head, "double ");
	*ret = (struct dec_proto){.is_sure = true, .result = DEC_R_INT, .result_bits = 64};
	if (!is_pointer && has_word(t.s, head, "void "))
		ret->result = DEC_R_NONE;
	else if (!is_pointer && (has_double || has_word(t.s, head, "float ")))
		ret->result = has_word(t.s, head, "long double ") ? DEC_R_X87 : DEC_R_VEC;
	for (size_t i = head; i < t.len; i++) {
		depth += t.s[i] == '(' || t.s[i] == '[';
		bool ends = (t.s[i] == ',' || t.s[i] == ')') && depth == 1;
		if (ends) {
			const char *s = t.s + from;
			size_t len = i - from;
			if (has_word(s, len, "..."))
				ret->is_variadic = true;
			else if (len && !(len == 4 && !memcmp(s, "void", 4)) && !add_param(ret, s, len))
				return false;
			from = i + 1;
		}
		depth -= t.s[i] == ')' || t.s[i] == ']';
		if (!depth)
			return true;
	}
	return false;
}

/* --- what the code says --------------------------------------------------------------------------------------------------------- */
static void look_at(struct ses_snap *sn, struct ses_protos *p, uint32_t func, unsigned depth);

static bool known(void *ctx, uint64_t va, struct dec_proto *ret)
{
	struct look *l = ctx;
	uint32_t func = behind_thunks(l->sn, &va);
	struct arena a = {0};
	bool is_stated = read_stated(ses_prototype_at(l->sn, va, &a, NULL), ret);
	arena_fini(&a);
	if (is_stated)
		return true;
	if (func == UINT32_MAX)
		return false;
	if (l->p->state[func] == P_NEW && l->depth < DEPTH_MAX)
		look_at(l->sn, l->p, func, l->depth + 1);
	*ret = l->p->list[func];
	return l->p->state[func] == P_KNOWN;
}

static void wants(void *ctx, uint64_t va, enum dec_result result, bool is_through)
{
	struct look *l = ctx;
	uint32_t func = behind_thunks(l->sn, &va);
	if (func == UINT32_MAX || !result)
		return;
	const struct through t = {l->func, func};
	/* Without memory for it a result stays open. */
	if (!is_through)
		l->p->wants[func] |= (uint8_t)(1u << result);
	else
		(void)!VEC_PUSH(&l->p->through, t);
}

static void look_at(struct ses_snap *sn, struct ses_protos *p, uint32_t func, unsigned depth)
{
	struct look l = {sn, p, func, depth};
	const struct dec_proto_opts opts = {known, wants, &l};
	struct arena a = {0};
	struct ir_func *f;
	struct lift_stats stats;
	struct dec_proto proto;
	p->state[func] = P_BUSY;
	struct err *e = lift_image_func(&a, sn->im, func, &f, &stats);
	if (!e)
		e = dec_proto_of(f, &opts, &proto);
	if (!e)
		p->list[func] = proto;
	p->state[func] = e ? P_NONE : P_KNOWN;
	err_free(e);
	arena_fini(&a);
}

/* Results that the code leaves open: what callers use, what is handed on to where it is used, and all there may be of those without callers. */
static void decide(const struct ses_snap *sn, struct ses_protos *p)
{
	uint32_t cnt;
	const struct image_func *funcs = image_funcs(sn->im, &cnt);
	for (uint32_t i = 0; i < cnt; i++)
		if (!funcs[i].caller_cnt && p->list[i].result)
			p->wants[i] |= (uint8_t)(1u << p->list[i].result);
	for (bool changed = true; changed;) {
		changed = false;
		for (size_t i = 0; i < p->through.cnt; i++) {
			uint8_t now = p->wants[p->through.data[i].to] | p->wants[p->through.data[i].from];
			changed |= now != p->wants[p->through.data[i].to];
			p->wants[p->through.data[i].to] = now;
		}
	}
	for (uint32_t i = 0; i < cnt; i++)
		if (p->list[i].result == DEC_R_PAIR && funcs[i].caller_cnt && !(p->wants[i] & 1u << DEC_R_PAIR))
			p->list[i].result = DEC_R_INT;
	for (uint32_t i = 0; i < cnt; i++)
		if (!p->list[i].is_sure && !p->wants[i])
			p->list[i].result = DEC_R_NONE;
}

static const struct ses_protos *protos_of(struct ses_snap *sn)
{
	struct ses_protos *p = sn->protos, *none = NULL;
	uint32_t cnt;
	if (p)
		return p;
	image_funcs(sn->im, &cnt);
	p = calloc(1, sizeof(*p));
	if (p) {
		p->list = calloc(cnt + (size_t)1, sizeof(*p->list));
		p->state = calloc(cnt + (size_t)1, 1);
		p->wants = calloc(cnt + (size_t)1, 1);
	}
	if (!p || !p->list || !p->state || !p->wants) {
		ses_protos_free(p);
		return NULL;
	}
	for (uint32_t i = 0; i < cnt; i++)
		if (p->state[i] == P_NEW)
			look_at(sn, p, i, 0);
	decide(sn, p);
	if (!atomic_compare_exchange_strong(&sn->protos, &none, p)) {
		ses_protos_free(p);
		return none;
	}
	return p;
}

/* --- as C --------------------------------------------------------------------------------------------------------------------------- */
static const char *int_name(unsigned bits)
{
	return !bits || bits > 32 ? "uint64_t" : bits > 16 ? "uint32_t" : bits > 8 ? "uint16_t" : "uint8_t";
}

static const char *vec_name(unsigned bits)
{
	return bits && bits <= 32 ? "float" : "double";
}

struct ses_text ses_proto_recovered(struct ses_snap *sn, uint64_t va, struct arena *a)
{
	uint64_t aim = va;
	uint32_t func = behind_thunks(sn, &aim);
	const struct ses_protos *p = func == UINT32_MAX ? NULL : protos_of(sn);
	if (!p || p->state[func] != P_KNOWN)
		return ses_text_of("", 0);
	const struct dec_proto *d = &p->list[func];
	const char *result = d->result == DEC_R_NONE ? "void" : d->result == DEC_R_VEC ? vec_name(d->result_bits)
			     : d->result == DEC_R_X87 ? "long double" : d->result == DEC_R_PAIR ? "unsigned __int128" : int_name(d->result_bits);
	_cleanup_buf_ struct buf b = {0};
	buf_printf(&b, "%s sub_%" PRIx64 "(", result, va);
	const char *sep = "";
	for (unsigned i = 0; i < d->int_cnt; i++, sep = ", ")
		buf_printf(&b, "%s%s", sep, int_name(d->ints[i]));
	for (unsigned i = 0; i < d->vec_cnt; i++, sep = ", ")
		buf_printf(&b, "%s%s", sep, vec_name(d->vecs[i]));
	for (unsigned i = 0; i < d->stack_cnt; i++, sep = ", ")
		buf_printf(&b, "%suint64_t", sep);
	buf_printf(&b, "%s)", d->is_variadic ? *sep ? ", ..." : "..." : *sep ? "" : "void");
	const char *text = b.failed ? NULL : arena_strndup(a, b.data, b.len);
	return text ? ses_text_of(text, b.len) : ses_text_of("", 0);
}
