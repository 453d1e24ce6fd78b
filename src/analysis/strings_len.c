/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/data_int.h"

#include "base/cleanup.h"

#include <string.h>

/*
 * Go and Rust keep their texts without terminators, packed one behind the other; a string is an address and a
 * length. Both stand side by side in data (a pointer and the next word), or are loaded by neighbouring
 * instructions. Pairs in data are facts once the bytes they name are text; lengths beside code are candidates that
 * must not reach into the next known string.
 */
#define MIN_CHARS 4
#define COUNTED_LEN_MAX (1u << 20)
#define INSNS_BESIDE 5         /* looked at after the one that takes the address */
#define RUST_SCAN_LEN (64u << 20)

struct counted {
	uint32_t loc, len;
	bool is_code;          /* the length is a guess from neighbouring instructions */
};

struct counted_list { VEC(struct counted) list; };

static bool is_rust_name(const char *s, size_t len)
{
	/* _ZN...17h<16 hex digits>E of the old scheme, _R of the new one. */
	if (len > 4 && s[0] == '_' && s[1] == 'R' && (s[2] == 'N' || s[2] == 'I' || s[2] == 'C' || s[2] == 'M'))
		return true;
	return len > 24 && !memcmp(s, "_ZN", 3) && s[len - 1] == 'E' && !memcmp(s + len - 20, "17h", 3);
}

/* The paths that panics of the standard library name. */
static bool has_rust_paths(const struct image_data *d)
{
	uint64_t left = RUST_SCAN_LEN;
	for (size_t i = 0; i < d->segs.cnt && left; i++) {
		const struct space_seg *seg = &d->segs.data[i];
		size_t len;
		const uint8_t *p = seg->perm & FMT_W ? NULL : space_bytes(&d->space, seg->loc, &len);
		if (!p)
			continue;
		len = MIN(len, left);
		left -= len;
		if (memmem(p, len, "/rustc/", 7) || memmem(p, len, "library/core/src/", 17))
			return true;
	}
	return false;
}

enum data_lang analysis_language(const struct data_stage *x)
{
	const struct image_data *d = x->d;
	if (x->in->go_funcs && x->in->go_funcs->list.cnt)
		return DATA_LANG_GO;
	for (size_t i = 0; i < d->sections.cnt; i++) {
		if (d->sections.data[i].kind == FMT_SEC_GOPCLNTAB)
			return DATA_LANG_GO;
	}
	for (size_t i = 0; i < d->names.cnt; i++) {
		struct image_str s = d->names.data[i].name;
		if (is_rust_name(d->pool.data + s.off, s.len))
			return DATA_LANG_RUST;
	}
	return has_rust_paths(d) ? DATA_LANG_RUST : DATA_LANG_NONE;
}

/* Whether [loc, loc + len) is free text. */
static bool names_text(const struct data_stage *x, uint32_t loc, uint64_t len)
{
	size_t have, plain;
	if (!len || len > COUNTED_LEN_MAX || loc >= x->d->loc_cnt)
		return false;
	const uint8_t *p = space_bytes(&x->d->space, loc, &have);
	if (!p || len > have || !data_is_free(x, loc, loc + (uint32_t)len))
		return false;
	size_t chars = analysis_text_chars(p, (size_t)len, &plain);
	return chars && (plain * 2 >= chars || chars < MIN_CHARS);
}

static void push(struct data_stage *x, struct counted_list *l, struct counted c)
{
	if (!VEC_PUSH(&l->list, c))
		x->no_memory = true;
}

/* Pointers in data whose next word is the length of the text they point to. */
static void pairs_in_data(struct data_stage *x, struct counted_list *l)
{
	const struct space *s = &x->d->space;
	for (size_t i = x->code_xref_cnt; i < x->d->xrefs.cnt; i++) {
		const struct image_xref *r = &x->d->xrefs.data[i];
		uint64_t len;
		if (r->kind == IMAGE_XREF_OFFSET && space_word(s, r->from + s->word_len, s->word_len, &len) &&
		    names_text(x, r->to, len))
			push(x, l, (struct counted){r->to, (uint32_t)len, false});
	}
}

/* Small constants loaded by the instructions after `loc`. */
static void lengths_beside(struct data_stage *x, struct counted_list *l, const struct image_xref *r)
{
	const struct arch *a = x->in->arch;
	size_t have;
	const uint8_t *p = space_bytes(&x->d->space, r->from, &have);
	uint64_t va = space_va(&x->d->space, r->from);
	uint32_t loc = r->from;
	for (unsigned i = 0; p && i <= INSNS_BESIDE; i++) {
		struct arch_insn insn;
		struct arch_effect fx;
		if (!have || !bits_get(x->code, loc))
			return;
		a->decode(a, p, have, va, &insn);
		if (insn.flow == ARCH_FLOW_INVALID || insn.len > have || !insn.len)
			return;
		if (i) {
			a->effect(a, p, have, va, &fx);
			if (fx.op == ARCH_OP_CONST && !insn.ref_cnt && fx.imm > 0 && fx.imm <= COUNTED_LEN_MAX &&
			    names_text(x, r->to, (uint64_t)fx.imm))
				push(x, l, (struct counted){r->to, (uint32_t)fx.imm, true});
			if (insn.flow != ARCH_FLOW_NEXT)
				return;
		}
		p += insn.len;
		va += insn.len;
		loc += insn.len;
		have -= insn.len;
	}
}

static void pairs_in_code(struct data_stage *x, struct counted_list *l)
{
	if (!x->in->arch)
		return;
	for (size_t i = 0; i < x->code_xref_cnt; i++) {
		const struct image_xref *r = &x->d->xrefs.data[i];
		if (r->kind == IMAGE_XREF_OFFSET && r->from < x->d->loc_cnt && r->to < x->d->loc_cnt &&
		    bits_get(x->code, r->from) && !bits_get(x->taken, r->to))
			lengths_beside(x, l, r);
	}
}

/* By address; facts before guesses, then the longer first. */
static int compare_counted(const void *a, const void *b)
{
	const struct counted *x = a, *y = b;
	if (x->loc != y->loc)
		return x->loc < y->loc ? -1 : 1;
	if (x->is_code != y->is_code)
		return x->is_code ? 1 : -1;
	return (x->len < y->len) - (x->len > y->len);
}

/* Where the next string that somebody points to begins. */
static uint32_t next_known(const struct data_stage *x, uint32_t loc, uint32_t end)
{
	return (uint32_t)bits_next(x->pointed, loc + 1, end);
}

static void claim_counted(struct data_stage *x, const struct counted *c)
{
	size_t have, plain;
	uint32_t end = c->loc + c->len;
	const uint8_t *p = space_bytes(&x->d->space, c->loc, &have);
	if (!p || have < c->len || (c->is_code && next_known(x, c->loc, end) < end))
		return;
	/* What comes behind is another string, even when this one is too short to be listed. */
	bits_set(x->edge, c->loc);
	if (end < x->d->loc_cnt && have > c->len)
		bits_set(x->edge, end);
	if (analysis_text_chars(p, c->len, &plain) < MIN_CHARS)
		return;
	uint32_t encoding = x->lang == DATA_LANG_GO ? IMAGE_ENC_GO : IMAGE_ENC_RUST;
	analysis_claim_string(x, (struct image_string){c->loc, c->len, encoding}, 0);
}

void analysis_counted_strings(struct data_stage *x)
{
	struct counted_list l = {0};
	pairs_in_data(x, &l);
	pairs_in_code(x, &l);
	if (l.list.cnt)
		qsort(l.list.data, l.list.cnt, sizeof(*l.list.data), compare_counted);
	/* All facts first: a guess must not take what a fact names. */
	for (unsigned is_code = 0; is_code < 2; is_code++) {
		for (size_t i = 0; i < l.list.cnt; i++) {
			if (l.list.data[i].is_code == is_code)
				claim_counted(x, &l.list.data[i]);
		}
	}
	VEC_FREE(&l.list);
}
