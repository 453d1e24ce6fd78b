/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers in the form people chose. The decoder's text is taken apart by its spans: a number is a span of kind imm, disp or
 * addr, and of an operand whose number became a name the same instruction written without names is taken instead.
 */
#include "session/heads_format.h"

#include "session/heads_int.h"
#include "session/ses_types.h"

#include <inttypes.h>
#include <string.h>

#define OPERAND_MAX 16

static const char *const num_words[NUM_COUNT] = {
	[NUM_HEX] = "hex", [NUM_DEC] = "dec", [NUM_OCT] = "oct", [NUM_BIN] = "bin", [NUM_CHAR] = "char", [NUM_OFFSET] = "offset",
	[NUM_STACK] = "stack",
};

bool heads_num_parse(const char *s, struct heads_num_ask *ret)
{
	*ret = (struct heads_num_ask){.num = NUM_DEFAULT};
	if (!strncmp(s, "enum:", 5) && s[5]) {
		ret->num = NUM_ENUM;
		ret->enum_name = s + 5;
		return true;
	}
	for (unsigned i = 0; i < NUM_COUNT; i++) {
		if (num_words[i] && !strcmp(num_words[i], s)) {
			ret->num = (enum heads_num)i;
			return true;
		}
	}
	return false;
}

void heads_num_at(const struct ses_snap *sn, uint64_t va, unsigned operand, struct heads_num_ask *ret)
{
	const char sub[3] = {operand < 10 ? (char)('0' + operand) : '1', operand < 10 ? 0 : (char)('0' + operand - 10), 0};
	const struct edits_fact *f = operand < OPERAND_MAX ? edits_find(sn->edits, EDITS_FORMAT, va, sub) : NULL;
	if (!f || !heads_num_parse(f->value, ret))
		*ret = (struct heads_num_ask){.num = NUM_DEFAULT};
}

/* --- writing --- */

static uint64_t cut_to(uint64_t v, uint32_t len)
{
	return len && len < 8 ? v & (((uint64_t)1 << len * 8) - 1) : v;
}

static void put_radix(struct put *p, const char *prefix, unsigned bits, uint64_t v)
{
	char tmp[64];
	unsigned n = 0;
	do {
		tmp[63 - n++] = (char)('0' + (v & ((1u << bits) - 1)));
		v >>= bits;
	} while (v);
	put_s(p, prefix);
	put_n(p, tmp + 64 - n, n);
}

/* The bytes of the value, the highest first, as C reads 'ABCD'. */
static void put_chars(struct put *p, uint64_t v, uint32_t len)
{
	char out[40];
	unsigned n = 0;
	out[n++] = '\'';
	for (unsigned i = len ? len : 8; i-- > 0;) {
		uint8_t b = (uint8_t)(v >> i * 8);
		if (n == 1 && !b && i)
			continue;
		if (b >= 0x20 && b < 0x7f && b != '\'' && b != '\\') {
			out[n++] = (char)b;
			continue;
		}
		out[n++] = '\\';
		if (b == '\'' || b == '\\') {
			out[n++] = (char)b;
			continue;
		}
		out[n++] = 'x';
		out[n++] = "0123456789abcdef"[b >> 4];
		out[n++] = "0123456789abcdef"[b & 15];
	}
	out[n++] = '\'';
	put_n(p, out, n);
}

static bool put_offset(struct ses_snap *sn, struct put *p, uint64_t v)
{
	char name[512];
	size_t n = ses_name_for_operand(sn, v, name, sizeof(name));
	put_n(p, name, n);
	return n != 0;
}

/* The enum of that tag or typedef; 0 when there is none. */
static uint32_t find_enum(struct ses_typeset *ts, const char *name)
{
	ses_types_know(ts, name, strlen(name));
	for (unsigned tags = 0; tags < 2; tags++) {
		const struct types_decl *d = types_decl_get(ts->t, types_find(ts->t, name, strlen(name), tags != 0));
		struct types_ref r = types_real(ts->t, d->type);
		if (types_get(ts->t, r.id)->kind == TYPES_ENUM && d->kind != TYPES_D_CONST)
			return r.id;
	}
	return 0;
}

/* The constant of that value, or the constants of one bit each that make it. */
static bool put_constants(const struct types *t, uint32_t id, struct put *p, uint64_t v, uint32_t len)
{
	uint32_t cnt;
	const struct types_const *c = types_consts(t, id, &cnt);
	uint64_t left = cut_to(v, len), known = 0;
	/* What an instruction shows of a negative constant may be its lower half. */
	uint32_t wide = len ? len : v >> 32 ? 8 : 4;
	for (uint32_t i = 0; i < cnt; i++) {
		uint64_t one = (uint64_t)c[i].value;
		if (cut_to(one, wide) == cut_to(v, wide) && (c[i].value < 0 || one == left)) {
			put_s(p, c[i].name);
			return true;
		}
		known |= one && !(one & (one - 1)) ? one : 0;
	}
	if (!left || left & ~known)
		return false;
	for (uint32_t i = 0; i < cnt && left; i++) {
		uint64_t one = (uint64_t)c[i].value;
		if (!one || one & (one - 1) || !(left & one))
			continue;
		put_s(p, left == cut_to(v, len) ? "" : "|");
		put_s(p, c[i].name);
		left &= ~one;
	}
	return true;
}

static bool put_enum(struct ses_snap *sn, struct put *p, uint64_t v, const struct heads_num_ask *ask)
{
	_cleanup_types_lock_ struct ses_typeset *ts = NULL;
	struct err *e = ses_types_lock(sn, &ts);
	err_free(e);
	uint32_t id = e ? 0 : find_enum(ts, ask->enum_name);
	return id && put_constants(ts->t, id, p, v, ask->len);
}

uint8_t heads_num_put(struct ses_snap *sn, struct put *p, uint64_t v, const struct heads_num_ask *ask)
{
	v = cut_to(v, ask->len);
	switch (ask->num) {
	case NUM_DEC:
		if (ask->is_signed && ask->len && v >> (ask->len * 8 - 1)) {
			put_s(p, "-");
			v = cut_to(-v, ask->len);
		}
		put_dec(p, v);
		return SES_SPAN_IMM;
	case NUM_OCT:
		put_radix(p, "0o", 3, v);
		return SES_SPAN_IMM;
	case NUM_BIN:
		put_radix(p, "0b", 1, v);
		return SES_SPAN_IMM;
	case NUM_CHAR:
		put_chars(p, v, ask->len);
		return SES_SPAN_IMM;
	case NUM_OFFSET:
		if (put_offset(sn, p, v))
			return SES_SPAN_NAME;
		break;
	case NUM_ENUM:
		if (put_enum(sn, p, v, ask))
			return SES_SPAN_NAME;
		break;
	case NUM_DEFAULT:
	case NUM_HEX:
	case NUM_STACK:
	case NUM_COUNT:
		break;
	}
	put_hex(p, v);
	return SES_SPAN_IMM;
}

/* --- instructions --- */

/* "0x10", "-0x8", "#16", "#-0x8". */
static bool parse_literal(const char *s, size_t len, uint64_t *ret, bool *ret_neg)
{
	uint64_t v = 0;
	size_t i = len && s[0] == '#';
	*ret_neg = i < len && s[i] == '-';
	i += i < len && (s[i] == '-' || s[i] == '+');
	bool is_hex = i + 2 < len && s[i] == '0' && s[i + 1] == 'x';
	i += is_hex ? 2 : 0;
	if (i == len)
		return false;
	for (; i < len; i++) {
		bool is_letter = is_hex && s[i] >= 'a' && s[i] <= 'f';
		unsigned d = s[i] >= '0' && s[i] <= '9' ? (unsigned)(s[i] - '0') : is_letter ? (unsigned)(s[i] - 'a' + 10) : 99;
		if (d == 99)
			return false;
		v = v * (is_hex ? 16 : 10) + d;
	}
	*ret = v;
	return true;
}

static bool is_number(const struct ses_span *s)
{
	return s->kind == SES_SPAN_IMM || s->kind == SES_SPAN_DISP || s->kind == SES_SPAN_ADDR;
}

static bool is_reg(const char *text, const struct ses_span *s, const char *const *names, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (strlen(names[i]) == s->len && !memcmp(text + s->off, names[i], s->len))
			return true;
	}
	return false;
}

/* Whether the number at span `at` counts from a frame or stack pointer. */
static bool is_on_stack(const char *text, const struct ses_span *spans, unsigned at, bool *ret_frame)
{
	static const char *const frames[] = {"rbp", "ebp", "x29"}, *const stacks[] = {"rsp", "esp", "sp"};
	bool is_stack = false;
	if (spans[at].kind != SES_SPAN_DISP)
		return false;
	*ret_frame = false;
	for (unsigned i = at; i-- > 0 && spans[i].operand == spans[at].operand;) {
		*ret_frame |= spans[i].kind == SES_SPAN_REG && is_reg(text, &spans[i], frames, ARRAY_LEN(frames));
		is_stack |= spans[i].kind == SES_SPAN_REG && is_reg(text, &spans[i], stacks, ARRAY_LEN(stacks));
	}
	return *ret_frame || is_stack;
}

/* A slot: var_8 below the frame pointer, arg_0 above the saved one and the return address, sp_8 from the stack pointer. */
static void put_slot(struct put *p, bool is_frame, bool is_neg, uint64_t v, unsigned word_len)
{
	char digits[17];
	bool is_arg = is_frame && !is_neg && v >= 2u * word_len;
	uint64_t n = is_arg ? v - 2u * word_len : v;
	unsigned len = 0;
	do {
		digits[16 - len++] = "0123456789abcdef"[n & 15];
		n >>= 4;
	} while (n);
	put_s(p, !is_frame ? "sp_" : is_arg ? "arg_" : is_neg ? "var_" : "saved_");
	put_n(p, digits + 17 - len, len);
}

/* The text being made anew with its spans. */
struct reform {
	struct heads_walk *w;
	struct put p;
	struct ses_span spans[HEADS_SPAN_MAX];
	uint16_t span_cnt;
};

static void reform_span(struct reform *r, uint32_t from, uint8_t kind, uint8_t operand)
{
	if (r->span_cnt < HEADS_SPAN_MAX && r->p.len > from)
		r->spans[r->span_cnt++] = (struct ses_span){(uint16_t)from, (uint16_t)(r->p.len - from), kind, operand};
}

static void reform_number(struct reform *r, const char *text, const struct ses_span *spans, unsigned at, const struct heads_num_ask *ask)
{
	const struct ses_span *s = &spans[at];
	uint64_t v;
	bool is_neg, is_frame;
	uint32_t from = r->p.len;
	uint8_t kind = s->kind;
	if (!parse_literal(text + s->off, s->len, &v, &is_neg)) {
		put_n(&r->p, text + s->off, s->len);
	} else if (ask->num == NUM_STACK && is_on_stack(text, spans, at, &is_frame)) {
		/* A sign that is no part of the span stands before it. */
		bool is_minus = !is_neg && s->off && text[s->off - 1] == '-';
		if ((is_minus || is_neg) && r->p.len && r->p.s[r->p.len - 1] == '-')
			r->p.s[r->p.len - 1] = '+';
		else if (is_neg || (text[s->off] == '+'))
			put_s(&r->p, "+");
		from = r->p.len;
		put_slot(&r->p, is_frame, is_neg || is_minus, v, r->w->sn->arch->bits / 8);
		kind = SES_SPAN_NAME;
	} else {
		put_s(&r->p, text[s->off] == '#' ? "#" : "");
		if (is_neg && ask->num != NUM_ENUM && ask->num != NUM_OFFSET)
			put_s(&r->p, "-");
		else if (is_neg)
			v = -v;
		else
			put_s(&r->p, text[s->off] == '+' ? "+" : "");
		uint8_t made = heads_num_put(r->w->sn, &r->p, v, ask);
		kind = made == SES_SPAN_NAME ? made : kind;
	}
	reform_span(r, from, kind, s->operand);
}

/* Takes the spans [from, to) and what stands between them. */
static void reform_take(struct reform *r, const char *text, const struct ses_span *spans, unsigned from, unsigned to,
			const struct heads_num_ask *ask)
{
	for (unsigned i = from; i < to; i++) {
		if (i > from) {
			uint32_t end = (uint32_t)spans[i - 1].off + spans[i - 1].len;
			put_n(&r->p, text + end, spans[i].off > end ? spans[i].off - end : 0);
		}
		if (ask->num != NUM_DEFAULT && is_number(&spans[i])) {
			reform_number(r, text, spans, i, ask);
			continue;
		}
		uint32_t at = r->p.len;
		put_n(&r->p, text + spans[i].off, spans[i].len);
		reform_span(r, at, spans[i].kind, spans[i].operand);
	}
}

static void plain_spans(const struct arch_text *t, struct ses_span *out)
{
	for (uint32_t i = 0; i < t->span_cnt; i++)
		out[i] = (struct ses_span){t->spans[i].off, t->spans[i].len, t->spans[i].kind, t->spans[i].operand};
}

static unsigned group_end(const struct ses_span *spans, unsigned from, unsigned cnt)
{
	unsigned i = from;
	while (i < cnt && spans[i].operand == spans[from].operand)
		i++;
	return i;
}

static bool has_kind(const struct ses_span *spans, unsigned from, unsigned to, bool want_number)
{
	for (unsigned i = from; i < to; i++) {
		if (want_number ? is_number(&spans[i]) : spans[i].kind == SES_SPAN_NAME)
			return true;
	}
	return false;
}

void heads_format_code(struct heads_walk *w, const uint8_t *bytes, size_t len)
{
	size_t cnt;
	struct ses_span plain[ARCH_SPAN_MAX];
	struct arch_text bare;
	bool has_bare = false;
	(void)edits_range(w->sn->edits, EDITS_FORMAT, w->line.va, w->line.va, &cnt);
	if (!cnt || !w->line.span_cnt)
		return;
	const char *text = w->line.text.s;
	struct reform r = {.w = w, .p = {w->text, 0, sizeof(w->text)}};
	uint32_t at = 0;
	for (unsigned i = 0, end; i < w->line.span_cnt; i = end) {
		struct heads_num_ask ask;
		end = group_end(w->spans, i, w->line.span_cnt);
		heads_num_at(w->sn, w->line.va, w->spans[i].operand, &ask);
		put_n(&r.p, text + at, w->spans[i].off > at ? w->spans[i].off - at : 0);
		bool wants_bare = ask.num != NUM_DEFAULT && ask.num != NUM_OFFSET && has_kind(w->spans, i, end, false) &&
				  !has_kind(w->spans, i, end, true);
		if (wants_bare && !has_bare) {
			w->sn->arch->format(w->sn->arch, bytes, len, w->line.va, NULL, &bare);
			plain_spans(&bare, plain);
			has_bare = true;
		}
		unsigned from = 0;
		while (wants_bare && from < bare.span_cnt && plain[from].operand != w->spans[i].operand)
			from++;
		if (wants_bare && from < bare.span_cnt)
			reform_take(&r, bare.text, plain, from, group_end(plain, from, bare.span_cnt), &ask);
		else
			reform_take(&r, text, w->spans, i, end, &ask);
		at = (uint32_t)w->spans[end - 1].off + w->spans[end - 1].len;
	}
	put_n(&r.p, text + at, w->line.text.len > at ? w->line.text.len - at : 0);
	memcpy(w->spans, r.spans, r.span_cnt * sizeof(*r.spans));
	w->line.span_cnt = r.span_cnt;
	w->line.text = (struct ses_text){w->text, r.p.len};
}

/* --- which formats there are --- */

/* The number that operand `operand` at va is about; false when there is none. */
struct operand_value {
	uint64_t v;
	uint32_t len;      /* bytes of a datum; 0: of an instruction */
	bool is_on_stack;
};

static bool code_value(struct ses_snap *sn, uint32_t loc, unsigned operand, struct operand_value *ret)
{
	size_t left;
	const uint8_t *p = space_bytes(sn->space, loc, &left);
	struct arch_text t;
	struct ses_span spans[ARCH_SPAN_MAX];
	bool is_neg, is_frame;
	if (!p)
		return false;
	sn->arch->format(sn->arch, p, left, space_va(sn->space, loc), NULL, &t);
	plain_spans(&t, spans);
	for (unsigned i = 0; i < t.span_cnt; i++) {
		bool is_it = spans[i].operand == operand && is_number(&spans[i]);
		if (!is_it || !parse_literal(t.text + spans[i].off, spans[i].len, &ret->v, &is_neg))
			continue;
		ret->v = is_neg ? -ret->v : ret->v;
		ret->len = 0;
		ret->is_on_stack = is_on_stack(t.text, spans, i, &is_frame);
		return true;
	}
	return false;
}

static bool operand_value(struct ses_snap *sn, uint64_t va, unsigned operand, struct operand_value *ret)
{
	uint32_t loc = space_loc(sn->space, va), start, len;
	enum image_item_kind kind;
	if (loc == LOC_NONE || !image_item_at(sn->im, loc, &start, &len, &kind))
		return false;
	if (kind == IMAGE_CODE)
		return start == loc && code_value(sn, loc, operand, ret);
	*ret = (struct operand_value){.len = len};
	if (operand)
		return false;
	if (!heads_typed_number(sn, loc, &ret->len) && (start != loc || kind == IMAGE_STRING || kind == IMAGE_ALIGN))
		return false;
	return (ret->len == 1 || ret->len == 2 || ret->len == 4 || ret->len == 8) && space_word(sn->space, loc, ret->len, &ret->v);
}

bool heads_operand_value(struct ses_snap *sn, uint64_t va, unsigned operand, uint64_t *ret)
{
	struct operand_value val;
	bool ok = operand < OPERAND_MAX && operand_value(sn, va, operand, &val);
	*ret = ok ? val.v : 0;
	return ok;
}

static const char *refuse_enum(struct ses_snap *sn, const struct heads_num_ask *ask, uint64_t v, struct arena *a)
{
	char tmp[512];
	struct put p = {tmp, 0, sizeof(tmp)};
	_cleanup_types_lock_ struct ses_typeset *ts = NULL;
	struct err *e = ses_types_lock(sn, &ts);
	err_free(e);
	uint32_t id = e ? 0 : find_enum(ts, ask->enum_name);
	if (!id)
		return arena_printf(a, "there is no enum '%s'", ask->enum_name);
	if (put_constants(ts->t, id, &p, v, ask->len))
		return NULL;
	return arena_printf(a, "enum %s has no constant of the value 0x%" PRIx64, ask->enum_name, v);
}

const char *heads_format_refuse(struct ses_snap *sn, const struct edits_change *c, struct arena *a)
{
	struct heads_num_ask ask;
	struct operand_value val;
	unsigned operand = 0;
	size_t n = strlen(c->sub);
	for (size_t i = 0; i < n; i++)
		operand = c->sub[i] >= '0' && c->sub[i] <= '9' && n < 3 ? operand * 10 + (unsigned)(c->sub[i] - '0') : OPERAND_MAX;
	if (!n || operand >= OPERAND_MAX || (n > 1 && c->sub[0] == '0'))
		return "an operand is a number from 0";
	if (!heads_num_parse(c->value, &ask))
		return "a format is hex, dec, oct, bin, char, offset, stack, enum:NAME or default";
	if (!operand_value(sn, c->va, operand, &val))
		return arena_printf(a, "operand %u has no number", operand);
	ask.len = val.len;
	if (ask.num == NUM_OFFSET && !ses_is_mapped(sn, val.v))
		return arena_printf(a, "0x%" PRIx64 " is no address of the program", val.v);
	if (ask.num == NUM_STACK && !val.is_on_stack)
		return "it is no distance from the stack or frame pointer";
	return ask.num == NUM_ENUM ? refuse_enum(sn, &ask, val.v, a) : NULL;
}

bool ses_formats_at(struct ses_snap *sn, uint64_t va, unsigned operand, struct arena *a, struct ses_formats *ret)
{
	struct operand_value val;
	char sub[12];
	*ret = (struct ses_formats){.now = "default"};
	if (operand >= OPERAND_MAX || !operand_value(sn, va, operand, &val))
		return false;
	struct put p = {sub, 0, sizeof(sub) - 1};
	put_dec(&p, operand);
	sub[p.len] = 0;
	const struct edits_fact *f = edits_find(sn->edits, EDITS_FORMAT, va, sub);
	if (f)
		ret->now = arena_strndup(a, f->value, f->value_len);
	ret->value = val.v;
	ret->choices[ret->choice_cnt++] = "default";
	for (unsigned i = 0; i < NUM_COUNT; i++) {
		struct edits_change c = {.kind = EDITS_FORMAT, .va = va, .sub = sub, .value = num_words[i]};
		if (num_words[i] && !heads_format_refuse(sn, &c, a))
			ret->choices[ret->choice_cnt++] = num_words[i];
	}
	return ret->now != NULL;
}
