/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir_int.h"

#include <string.h>

/*
 * Text to IR. A line is one of
 *
 *   func MACHINE VA
 *   intrin N MNEMONIC VA HEX in ( LOC.. ) out ( LOC.. ) mem LEN RWSZ x87 TOP [alt LOC HEX]
 *   block N [VA]
 *   insn VA LEN
 *   [%N[:BITS] =] OP[.KIND] [AUX] OPERAND.. [( OPERAND.. )] [!be] [!volatile]
 *
 * AUX is a location's name, #NUMBER, <OP[.KIND] BITS> or bN, as the operation wants; an operand is %N, 0xHEX:BITS, bN or _. Words are
 * separated by single or more spaces; "#" at the front of a line starts a comment. Joins may use what comes later, so the
 * first pass over the text gives every named record its number and width.
 */
struct parser {
	struct arena *arena;
	struct ir_func *f;
	const struct ir_machine *const *machines;
	unsigned machine_cnt;
	const char *text;
	size_t len;
	unsigned line;
	const char *at, *end; /* what is left of the line */
	uint32_t *rec_of;     /* number in the text -> record + 1 */
	uint8_t *width_of;    /* of that record */
	uint32_t name_cap;
	bool in_block;
	struct err *e;
};

static bool bad(struct parser *p, const char *why)
{
	if (!p->e)
		p->e = err_new(ERR_BAD_INPUT, "IR text, line %u: %s", p->line, why);
	return false;
}

/* --- words ------------------------------------------------------------------------------------------------- */
struct word {
	const char *s;
	size_t len;
};

static bool next_word(struct parser *p, struct word *ret)
{
	while (p->at < p->end && *p->at == ' ')
		p->at++;
	ret->s = p->at;
	while (p->at < p->end && *p->at != ' ')
		p->at++;
	ret->len = (size_t)(p->at - ret->s);
	return ret->len > 0;
}

static bool peek_word(struct parser *p, struct word *ret)
{
	const char *at = p->at;
	bool any = next_word(p, ret);
	p->at = at;
	return any;
}

static bool word_is(struct word w, const char *s)
{
	return strlen(s) == w.len && !memcmp(w.s, s, w.len);
}

static bool expect(struct parser *p, const char *s)
{
	struct word w;
	return (next_word(p, &w) && word_is(w, s)) || bad(p, "a word is missing");
}

static int digit_of(char ch)
{
	if (ch >= '0' && ch <= '9')
		return ch - '0';
	return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

/* Decimal, or hex behind 0x. */
static bool number_of(struct word w, uint64_t *ret)
{
	unsigned base = 10;
	if (w.len > 2 && w.s[0] == '0' && w.s[1] == 'x') {
		base = 16;
		w.s += 2;
		w.len -= 2;
	}
	uint64_t v = 0;
	for (size_t i = 0; i < w.len; i++) {
		int d = digit_of(w.s[i]);
		if (d < 0 || (unsigned)d >= base || __builtin_mul_overflow(v, base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)d, &v))
			return false;
	}
	*ret = v;
	return w.len > 0;
}

static bool take_number(struct parser *p, uint64_t max, uint64_t *ret)
{
	struct word w;
	return (next_word(p, &w) && number_of(w, ret) && *ret <= max) || bad(p, "a number is missing or too large");
}

/* "%N" or "%N:BITS"; gives N and the width (IR_W0: none given). */
static bool value_name(struct word w, uint64_t *ret, enum ir_width *ret_width)
{
	if (w.len < 2 || w.s[0] != '%')
		return false;
	const char *colon = memchr(w.s, ':', w.len);
	struct word n = {w.s + 1, colon ? (size_t)(colon - w.s - 1) : w.len - 1};
	*ret_width = IR_W0;
	if (colon) {
		uint64_t bits;
		struct word b = {colon + 1, (size_t)(w.s + w.len - colon - 1)};
		if (!number_of(b, &bits) || bits > 512 || !(*ret_width = ir_width_of((unsigned)bits)))
			return false;
	}
	return number_of(n, ret);
}

/* --- lines ------------------------------------------------------------------------------------------------- */
static bool next_line(struct parser *p, size_t *off)
{
	if (*off >= p->len)
		return false;
	p->at = p->text + *off;
	const char *nl = memchr(p->at, '\n', p->len - *off);
	p->end = nl ? nl : p->text + p->len;
	*off = (size_t)(p->end - p->text) + (nl ? 1 : 0);
	p->line++;
	return true;
}

/* Lines that are no records; a record's number is how many stood before it. */
static bool is_record_line(struct parser *p)
{
	struct word w;
	if (!peek_word(p, &w) || w.s[0] == '#')
		return false;
	return !word_is(w, "func") && !(word_is(w, "intrin")) && !word_is(w, "block") && !word_is(w, "insn");
}

/* First pass: which record each name is. */
static bool take_names(struct parser *p)
{
	size_t off = 0;
	uint32_t rec = 0;
	p->name_cap = (uint32_t)(p->len / 2 + 1);
	p->rec_of = ARENA_ARRAY(p->arena, uint32_t, p->name_cap);
	p->width_of = ARENA_ARRAY(p->arena, uint8_t, p->name_cap);
	if (!p->rec_of || !p->width_of) {
		p->e = &err_nomem;
		return false;
	}
	while (next_line(p, &off)) {
		struct word w;
		uint64_t n;
		enum ir_width width;
		if (!is_record_line(p))
			continue;
		next_word(p, &w);
		if (w.s[0] == '%') {
			if (!value_name(w, &n, &width) || n >= p->name_cap)
				return bad(p, "not a name of a value");
			if (p->rec_of[n])
				return bad(p, "a value of this name was there before");
			p->rec_of[n] = rec + 1;
			p->width_of[n] = (uint8_t)width;
		}
		rec++;
	}
	p->line = 0;
	return true;
}

/* --- operands ---------------------------------------------------------------------------------------------- */
static bool take_const(struct parser *p, struct word w, ir_ref *ret)
{
	const char *colon = memchr(w.s, ':', w.len);
	uint64_t words[8] = {0};
	uint64_t bits;
	if (!colon || colon - w.s > 2 + 128)
		return bad(p, "a constant has no width, or too many digits");
	struct word tail = {colon + 1, (size_t)(w.s + w.len - colon - 1)};
	enum ir_width width = number_of(tail, &bits) && bits <= 512 ? ir_width_of((unsigned)bits) : IR_W0;
	if (width == IR_W0)
		return bad(p, "no such width");
	unsigned shift = 0;
	for (const char *s = colon; s-- > w.s + 2; shift += 4) {
		int d = digit_of(*s);
		if (d < 0)
			return bad(p, "not a hex digit");
		words[shift / 64] |= (uint64_t)d << shift % 64;
	}
	if (!shift)
		return bad(p, "a constant has no digits");
	*ret = ir_const_wide(p->f, width, words);
	return true;
}

/* An operand, and the width it has (for records whose width is an operand's). */
static bool take_ref(struct parser *p, struct word w, ir_ref *ret, enum ir_width *ret_width)
{
	uint64_t n;
	*ret_width = IR_W0;
	if (word_is(w, "_")) {
		*ret = IR_REF_NONE;
		return true;
	}
	if (w.len > 2 && w.s[0] == '0' && w.s[1] == 'x') {
		if (!take_const(p, w, ret))
			return false;
		*ret_width = ir_ref_width(p->f, *ret);
		return true;
	}
	if (w.s[0] == '%') {
		if (!value_name(w, &n, ret_width) || *ret_width != IR_W0 || n >= p->name_cap || !p->rec_of[n])
			return bad(p, "no such value");
		*ret = ir_ref_make(IR_TAG_VALUE, p->rec_of[n] - 1);
		*ret_width = (enum ir_width)p->width_of[n];
		return true;
	}
	struct word num = {w.s + 1, w.len - 1};
	if (w.s[0] != 'b' || !number_of(num, &n) || n > IR_REF_INDEX_MAX)
		return bad(p, "not an operand");
	*ret = ir_block_ref((uint32_t)n);
	return true;
}

static bool take_loc(struct parser *p, uint32_t *ret)
{
	struct word w;
	if (!next_word(p, &w))
		return bad(p, "a location is missing");
	uint16_t loc = ir_loc_find(p->f->machine, w.s, w.len);
	*ret = loc;
	return loc != IR_LOC_NONE || bad(p, "no such location");
}

/* "OP" or "OP.KIND". */
static bool op_of(struct word w, enum ir_op *ret_op, enum ir_kind *ret_kind)
{
	const char *dot = memchr(w.s, '.', w.len);
	struct word name = {w.s, dot ? (size_t)(dot - w.s) : w.len};
	*ret_op = IR_OP_NONE;
	*ret_kind = IR_KIND_NONE;
	for (unsigned op = 1; op < IR_OP_COUNT && *ret_op == IR_OP_NONE; op++) {
		if (word_is(name, ir_op_info((enum ir_op)op)->text))
			*ret_op = (enum ir_op)op;
	}
	if (*ret_op == IR_OP_NONE || !dot)
		return *ret_op != IR_OP_NONE;
	struct word kind = {dot + 1, (size_t)(w.s + w.len - dot - 1)};
	for (unsigned k = 1; k < IR_KIND_COUNT; k++) {
		const struct ir_kind_info *info = ir_kind_info((enum ir_kind)k);
		if (info->op == *ret_op && word_is(kind, info->text)) {
			*ret_kind = (enum ir_kind)k;
			return true;
		}
	}
	return false;
}

static bool take_aux(struct parser *p, struct ir_rec *rec)
{
	struct word w;
	uint64_t n;
	enum ir_op op;
	enum ir_kind kind;
	switch (ir_aux((enum ir_op)rec->op)) {
	case IR_AUX_LOC:
		return take_loc(p, &rec->aux);
	case IR_AUX_NUMBER:
		if (!next_word(p, &w) || w.s[0] != '#' || !number_of((struct word){w.s + 1, w.len - 1}, &n) || n > UINT32_MAX)
			return bad(p, "#NUMBER is missing");
		rec->aux = (uint32_t)n;
		return true;
	case IR_AUX_LANE:
		if (!next_word(p, &w) || w.s[0] != '<' || !op_of((struct word){w.s + 1, w.len - 1}, &op, &kind))
			return bad(p, "<OP BITS> is missing");
		if (!next_word(p, &w) || w.s[w.len - 1] != '>' || !number_of((struct word){w.s, w.len - 1}, &n) || n > 512)
			return bad(p, "the width of a lane is missing");
		rec->aux = ir_lane(op, kind, ir_width_of((unsigned)n));
		return true;
	case IR_AUX_BLOCK:
		if (!next_word(p, &w) || w.s[0] != 'b' || !number_of((struct word){w.s + 1, w.len - 1}, &n) || n > IR_REF_INDEX_MAX)
			return bad(p, "a block is missing");
		rec->aux = (uint32_t)n;
		return true;
	default:
		return true;
	}
}

static bool take_list(struct parser *p, struct ir_rec *rec)
{
	struct word w;
	ir_ref r;
	enum ir_width width;
	if (!expect(p, "("))
		return false;
	rec->b = p->f->list_cnt;
	rec->c = 0;
	while (next_word(p, &w) && !word_is(w, ")")) {
		if (!take_ref(p, w, &r, &width))
			return false;
		ir_list(p->f, &r, 1);
		rec->c++;
	}
	return word_is(w, ")") || bad(p, "a list is not closed");
}

static bool take_flags(struct parser *p, struct ir_rec *rec)
{
	struct word w;
	while (next_word(p, &w)) {
		if (word_is(w, "!be"))
			rec->flags |= IR_F_BE;
		else if (word_is(w, "!volatile"))
			rec->flags |= IR_F_VOLATILE;
		else
			return bad(p, "too many words");
	}
	return true;
}

static bool take_record(struct parser *p)
{
	struct ir_rec rec = {.a = IR_REF_NONE, .b = IR_REF_NONE, .c = IR_REF_NONE};
	struct word w;
	enum ir_op op;
	enum ir_kind kind;
	enum ir_width width = IR_W0;
	uint64_t n;
	if (!p->f || !p->in_block)
		return bad(p, "a record outside a block");
	next_word(p, &w);
	bool is_named = w.s[0] == '%';
	if (is_named && (!value_name(w, &n, &width) || !expect(p, "=") || !next_word(p, &w)))
		return bad(p, "an operation is missing");
	if (!op_of(w, &op, &kind))
		return bad(p, "no such operation");
	struct ir_shape s = ir_shape(op);
	bool has_name = s.result != '-' || op == IR_MEMOP || op == IR_INTRIN;
	if (is_named != has_name || (width != IR_W0) != (s.result != '-'))
		return bad(p, "a result with, or without, a name and a width");
	rec.op = (uint8_t)op;
	rec.kind = (uint8_t)kind;
	rec.width = (uint8_t)width;
	if (!take_aux(p, &rec))
		return false;
	ir_ref *const to[3] = {&rec.a, &rec.b, &rec.c};
	for (unsigned i = 0; i < s.cnt && peek_word(p, &w) && w.s[0] != '!' && w.s[0] != '('; i++) {
		next_word(p, &w);
		if (!take_ref(p, w, to[i], &width))
			return false;
		if (s.result == '-' && s.operand[i] == 'w')
			rec.width = (uint8_t)width;
	}
	if ((s.has_list && !take_list(p, &rec)) || !take_flags(p, &rec))
		return false;
	ir_emit(p->f, &rec);
	return true;
}

/* --- the other lines --------------------------------------------------------------------------------------- */
static bool take_func(struct parser *p)
{
	struct word w;
	uint64_t va;
	const struct ir_machine *m = NULL;
	if (p->f || !next_word(p, &w))
		return bad(p, "a second function, or one without a machine");
	for (unsigned i = 0; i < p->machine_cnt; i++) {
		if (word_is(w, p->machines[i]->name))
			m = p->machines[i];
	}
	if (!m)
		return bad(p, "no such machine");
	if (!take_number(p, UINT64_MAX, &va))
		return false;
	p->f = ir_func_new(p->arena, m, va);
	if (!p->f)
		p->e = &err_nomem;
	return !p->e;
}

static bool take_block(struct parser *p)
{
	uint64_t n, va = UINT64_MAX;
	struct word w;
	if (!take_number(p, IR_REF_INDEX_MAX, &n))
		return false;
	if (n != p->f->block_cnt)
		return bad(p, "blocks are numbered from 0, without a gap");
	if (peek_word(p, &w) && !take_number(p, UINT64_MAX, &va))
		return false;
	ir_block_begin(p->f, ir_block_new(p->f, va));
	p->in_block = true;
	return true;
}

static bool take_insn(struct parser *p)
{
	uint64_t va, len;
	if (!take_number(p, UINT64_MAX, &va) || !take_number(p, UINT8_MAX, &len))
		return false;
	ir_origin_set(p->f, va, (unsigned)len);
	return true;
}

static bool take_bytes(struct parser *p, uint8_t *out, uint8_t *ret_len)
{
	struct word w;
	if (!next_word(p, &w) || w.len % 2 || w.len > 2 * IR_INTRIN_BYTES_MAX)
		return bad(p, "bytes are missing");
	for (size_t i = 0; i < w.len; i += 2) {
		int hi = digit_of(w.s[i]), lo = digit_of(w.s[i + 1]);
		if (hi < 0 || lo < 0)
			return bad(p, "not a hex digit");
		out[i / 2] = (uint8_t)(hi << 4 | lo);
	}
	*ret_len = (uint8_t)(w.len / 2);
	return true;
}

static bool take_locs(struct parser *p, const char *what, uint16_t *out, uint8_t *ret_cnt)
{
	struct word w;
	uint32_t loc;
	if (!expect(p, what) || !expect(p, "("))
		return false;
	for (*ret_cnt = 0; peek_word(p, &w) && !word_is(w, ")"); (*ret_cnt)++) {
		if (*ret_cnt == IR_INTRIN_IO_MAX)
			return bad(p, "too many locations");
		if (!take_loc(p, &loc))
			return false;
		out[*ret_cnt] = (uint16_t)loc;
	}
	return expect(p, ")");
}

static bool take_intrin_tail(struct parser *p, struct ir_intrin *in)
{
	struct word w;
	uint64_t n;
	uint32_t loc;
	if (!take_locs(p, "in", in->in, &in->in_cnt) || !take_locs(p, "out", in->out, &in->out_cnt) || !expect(p, "mem") ||
	    !take_number(p, UINT32_MAX, &n))
		return false;
	in->mem_len = (uint32_t)n;
	if (!next_word(p, &w) || w.len != 4)
		return bad(p, "what it does to memory is missing");
	in->reads_mem = w.s[0] == 'r';
	in->writes_mem = w.s[1] == 'w';
	in->is_system = w.s[2] == 's';
	in->is_wide = w.s[3] == 'z';
	if (!expect(p, "x87") || !next_word(p, &w))
		return bad(p, "the place of the x87 stack is missing");
	bool is_neg = w.s[0] == '-';
	if (!number_of((struct word){w.s + is_neg, w.len - is_neg}, &n) || n > 127)
		return bad(p, "not a place of the x87 stack");
	in->x87_top = (int8_t)(is_neg ? -(int)n : (int)n);
	if (!peek_word(p, &w))
		return true;
	if (!expect(p, "alt") || !take_loc(p, &loc))
		return false;
	in->alt_reg = (uint16_t)loc;
	return take_bytes(p, in->alt_bytes, &in->alt_len);
}

static bool take_intrin(struct parser *p)
{
	struct ir_intrin *in;
	struct word w;
	uint64_t n;
	if (!take_number(p, IR_REF_INDEX_MAX, &n) || n != p->f->intrin_cnt)
		return bad(p, "intrinsics are numbered from 0, without a gap");
	ir_intrin_new(p->f, &in);
	if (!in)
		return false;
	if (!next_word(p, &w))
		return bad(p, "a mnemonic is missing");
	in->mnemonic = arena_strndup(p->arena, w.s, w.len);
	if (!in->mnemonic) {
		p->e = &err_nomem;
		return false;
	}
	return take_number(p, UINT64_MAX, &in->va) && take_bytes(p, in->bytes, &in->len) && take_intrin_tail(p, in);
}

static bool take_line(struct parser *p)
{
	struct word w;
	if (is_record_line(p))
		return take_record(p);
	if (!next_word(p, &w) || w.s[0] == '#')
		return true;
	if (word_is(w, "func"))
		return take_func(p);
	if (!p->f)
		return bad(p, "the text does not begin with a function");
	bool ok = word_is(w, "block") ? take_block(p) : word_is(w, "insn") ? take_insn(p) : take_intrin(p);
	return ok && (p->at == p->end || !next_word(p, &w) || bad(p, "too many words"));
}

struct err *ir_parse(struct arena *arena, const char *text, size_t len, const struct ir_machine *const *machines,
		     unsigned cnt, struct ir_func **ret)
{
	struct parser p = {.arena = arena, .machines = machines, .machine_cnt = cnt, .text = text, .len = len};
	size_t off = 0;
	*ret = NULL;
	if (len > IR_REF_INDEX_MAX)
		return err_new(ERR_BUDGET, "IR text of more than 1 GB");
	if (!take_names(&p))
		return p.e;
	while (!p.e && next_line(&p, &off)) {
		take_line(&p);
		if (!p.e && p.f && p.f->failed)
			p.e = ir_status(p.f);
	}
	if (!p.e && !p.f)
		bad(&p, "there is no function");
	*ret = p.e ? NULL : p.f;
	return p.e;
}
