/* SPDX-License-Identifier: Apache-2.0 */
#include "cprint/cprint_int.h"

#include <stdlib.h>
#include <string.h>

/*
 * The structure as text. Labels stand at the left edge. What recurses here is as deep as the tree nests braces, which str_opts bounds, or as a
 * condition has blocks.
 */
static bool put_nodes(struct cprint_printer *p, uint32_t n);

static const struct str_node *node(const struct cprint_printer *p, uint32_t n)
{
	return &p->tree.nodes[n];
}

static void put_text(struct cprint_printer *p, const char *s)
{
	cprint_indent(p);
	buf_add_str(p->text, s);
}

/* --- labels --------------------------------------------------------------------------------------------------- */
/* Of the function's own blocks alone. */
static uint64_t va_of(const struct cprint_printer *p, uint32_t part)
{
	return part < p->f->block_cnt ? p->f->blocks[part].va : UINT64_MAX;
}

static const struct ir_rec *end_of(const struct cprint_printer *p, uint32_t part)
{
	return ir_terminator(p->f, p->parts[part].block);
}

static bool put_said_name(struct cprint_printer *p, uint32_t block)
{
	char name[128];
	uint64_t va = va_of(p, block);
	if (va == UINT64_MAX || !p->opts->label_of || !p->opts->label_of(p->opts->ctx, va, name, sizeof(name)))
		return false;
	buf_add_str(p->text, name);
	return true;
}

static void put_name(struct cprint_printer *p, uint32_t block)
{
	if (put_said_name(p, block))
		return;
	buf_add_ch(p->text, 'b');
	buf_add_dec(p->text, block);
}

/* The label of a block; of one no goto leads to only when somebody gave it a name. */
static void put_label(struct cprint_printer *p, uint32_t block, bool only_said)
{
	size_t len = p->text->len;
	if (p->is_named[block] || (only_said && !put_said_name(p, block)))
		return;
	p->is_named[block] = true;
	p->text->len = len;
	put_name(p, block);
	buf_add_str(p->text, ":;");
	if (va_of(p, block) != UINT64_MAX) {
		buf_add_str(p->text, " /* ");
		cprint_hex(p->text, va_of(p, block), " */");
	}
	buf_add_ch(p->text, '\n');
}

/* --- conditions ------------------------------------------------------------------------------------------------- */
/* The statements of a block as operands of commas, and its condition. */
static bool put_leaf(struct cprint_printer *p, const struct str_cond *c, bool is_alone)
{
	const struct ir_rec *end = end_of(p, c->a);
	bool has_before = !c->is_bare && p->blocks[c->a].cost, ok = true;
	if (has_before && !is_alone)
		buf_add_ch(p->text, '(');
	if (!c->is_bare) {
		p->in_expr = true;
		ok = cprint_block(p, c->a);
		p->in_expr = false;
	}
	if (!ok || !end)
		return false;
	cprint_map_here(p, end->origin);
	/* Beside && and || a condition is an operand like others. */
	bool is_tight = !is_alone && !has_before && cprint_is_open_condition(p, end->a);
	if (is_tight)
		buf_add_ch(p->text, '(');
	ok = cprint_condition(p, end->a, c->is_not, p->text);
	if (is_tight || (has_before && !is_alone))
		buf_add_ch(p->text, ')');
	return ok;
}

static bool put_cond(struct cprint_printer *p, uint32_t cond, enum str_cond_op around)
{
	const struct str_cond *c = &p->tree.conds[cond];
	if (c->op == STR_COND_BLOCK)
		return put_leaf(p, c, around == STR_COND_BLOCK);
	/* Compilers ask for parentheses around && in ||; the other way round C needs them. */
	bool is_other = around != STR_COND_BLOCK && around != c->op;
	if (is_other)
		buf_add_ch(p->text, '(');
	bool ok = put_cond(p, c->a, (enum str_cond_op)c->op);
	buf_add_str(p->text, c->op == STR_COND_AND ? " && " : " || ");
	ok = ok && put_cond(p, c->b, (enum str_cond_op)c->op);
	if (is_other)
		buf_add_ch(p->text, ')');
	return ok;
}

/* "WORD (COND" */
static bool put_head(struct cprint_printer *p, const char *word, uint32_t cond)
{
	buf_add_str(p->text, word);
	buf_add_str(p->text, " (");
	return put_cond(p, cond, STR_COND_BLOCK);
}

/* --- statements --------------------------------------------------------------------------------------------------- */
/* The only statement of a sequence, when that is a jump; else STR_NONE. */
static uint32_t lone_jump(const struct cprint_printer *p, uint32_t seq)
{
	uint32_t n = node(p, seq)->first;
	bool is_one = n != STR_NONE && node(p, n)->next == STR_NONE;
	uint8_t kind = is_one ? node(p, n)->kind : STR_BLOCK;
	return kind == STR_BREAK || kind == STR_CONTINUE || kind == STR_GOTO ? n : STR_NONE;
}

/* A sequence with its braces, which are opened in the line that is being written; that of the closing one is left open. */
static bool put_braced(struct cprint_printer *p, uint32_t seq)
{
	buf_add_str(p->text, " {\n");
	p->indent++;
	bool ok = put_nodes(p, node(p, seq)->first);
	p->indent--;
	cprint_indent(p);
	buf_add_ch(p->text, '}');
	return ok;
}

static void put_jump(struct cprint_printer *p, uint32_t n)
{
	const struct str_node *k = node(p, n);
	cprint_indent(p);
	buf_add_str(p->text, k->kind == STR_BREAK ? "break" : k->kind == STR_CONTINUE ? "continue" : "goto ");
	if (k->kind == STR_GOTO)
		put_name(p, k->block);
	buf_add_str(p->text, ";\n");
}

/* A sequence below a head that is being written. */
static bool put_body(struct cprint_printer *p, uint32_t seq)
{
	uint32_t jump = lone_jump(p, seq);
	if (jump == STR_NONE) {
		bool ok = put_braced(p, seq);
		buf_add_ch(p->text, '\n');
		return ok;
	}
	buf_add_ch(p->text, '\n');
	p->indent++;
	put_jump(p, jump);
	p->indent--;
	return true;
}

/* The if that is all of a sequence, else STR_NONE. */
static uint32_t lone_if(const struct cprint_printer *p, uint32_t seq)
{
	uint32_t n = node(p, seq)->first;
	return n != STR_NONE && node(p, n)->next == STR_NONE && node(p, n)->kind == STR_IF ? n : STR_NONE;
}

static bool put_if(struct cprint_printer *p, uint32_t n)
{
	bool ok = true;
	cprint_indent(p);
	for (;;) {
		uint32_t then = node(p, n)->first, other = node(p, then)->next;
		ok = put_head(p, "if", node(p, n)->cond) && ok;
		buf_add_ch(p->text, ')');
		if (other == STR_NONE)
			return put_body(p, then) && ok;
		ok = put_braced(p, then) && ok;
		buf_add_str(p->text, " else");
		n = lone_if(p, other);
		if (n == STR_NONE) {
			ok = put_braced(p, other) && ok;
			buf_add_ch(p->text, '\n');
			return ok;
		}
		buf_add_ch(p->text, ' ');
	}
}

/* Statements of a part between commas, and none behind the last. */
static bool put_in_expr(struct cprint_printer *p, uint32_t part)
{
	size_t len = p->text->len;
	p->in_expr = true;
	bool ok = cprint_block(p, part);
	p->in_expr = false;
	p->text->len -= p->text->len > len ? 2 : 0;
	return ok;
}

static bool put_while(struct cprint_printer *p, uint32_t n)
{
	const struct str_node *k = node(p, n);
	bool ok;
	cprint_indent(p);
	if (k->block == STR_NONE) {
		ok = put_head(p, "while", k->cond);
	} else {
		buf_add_str(p->text, "for (");
		ok = p->for_first == STR_NONE || put_in_expr(p, p->for_first);
		p->for_first = STR_NONE;
		buf_add_str(p->text, "; ");
		ok = put_cond(p, k->cond, STR_COND_BLOCK) && ok;
		buf_add_str(p->text, "; ");
		ok = put_in_expr(p, k->block) && ok;
	}
	buf_add_ch(p->text, ')');
	return put_body(p, k->first) && ok;
}

static bool put_do(struct cprint_printer *p, uint32_t n)
{
	put_text(p, "do");
	bool ok = put_braced(p, node(p, n)->first);
	ok = put_head(p, " while", node(p, n)->cond) && ok;
	buf_add_str(p->text, ");\n");
	return ok;
}

/* Whether some cases of a switch on a number are a little below 0. */
static bool is_signed(const struct cprint_printer *p, const struct ir_rec *end, const struct str_block *b)
{
	unsigned bits = ir_bits(ir_ref_width(p->f, end->a));
	uint64_t half = (uint64_t)1 << (bits - 1);
	bool has_high = false;
	for (uint32_t i = 0; i < b->case_cnt; i++) {
		const struct str_case *c = &p->cases[b->first_case + i];
		uint64_t lo = (uint64_t)c->lo, hi = (uint64_t)c->hi;
		if (hi < half)
			continue;
		if (lo < half || lo - half < half - half / 2)
			return false;
		has_high = true;
	}
	return has_high && end->flags & IR_F_COMPUTED;
}

static void put_number(struct cprint_printer *p, uint64_t v, unsigned bits, bool is_minus)
{
	if (is_minus && v >> (bits - 1) & 1) {
		buf_add_ch(p->text, '-');
		v = -v & (bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1);
	}
	cprint_hex(p->text, v, "");
}

/* The labels of a case. */
static void put_values(struct cprint_printer *p, const struct str_node *k, unsigned bits, bool is_minus)
{
	for (uint32_t i = 0; i < k->value_cnt; i++) {
		const struct str_case *c = &p->cases[p->tree.values[k->first_value + i]];
		put_text(p, "case ");
		put_number(p, (uint64_t)c->lo, bits, is_minus);
		if (c->lo != c->hi) {
			buf_add_str(p->text, " ... ");
			put_number(p, (uint64_t)c->hi, bits, is_minus);
		}
		buf_add_str(p->text, ":\n");
	}
	if (k->is_default)
		put_text(p, "default:\n");
}

static bool put_switch(struct cprint_printer *p, uint32_t n)
{
	const struct ir_rec *end = end_of(p, node(p, n)->block);
	bool ok = end;
	cprint_indent(p);
	if (!ok)
		return false;
	cprint_map_here(p, end->origin);
	buf_add_str(p->text, "switch (");
	bool is_number = end->flags & IR_F_COMPUTED, is_minus = is_signed(p, end, &p->blocks[node(p, n)->block]);
	unsigned bits = ir_bits(ir_ref_width(p->f, end->a));
	if (is_minus)
		buf_printf(p->text, "(int%u_t)", bits);
	ok = cprint_operand(p, end->a, is_number && !is_minus ? CPRINT_LOOSE : CPRINT_TIGHT, p->text);
	/* Addresses as the file gives them. */
	buf_add_str(p->text, is_number ? ") {\n" : " - m->image) {\n");
	for (uint32_t c = node(p, n)->first; c != STR_NONE; c = node(p, c)->next) {
		put_values(p, node(p, c), bits, is_minus);
		size_t from = p->text->len;
		p->indent++;
		ok = put_nodes(p, node(p, node(p, c)->first)->first) && ok;
		p->indent--;
		bool is_empty = node(p, node(p, c)->first)->first == STR_NONE;
		if (node(p, c)->next == STR_NONE && p->text->len == from)
			put_text(p, "\tbreak;\n"); /* behind a label there has to be something */
		else if (node(p, c)->falls && !is_empty && node(p, c)->next != STR_NONE)
			put_text(p, "/* fall through */\n");
	}
	put_text(p, "}\n");
	return ok;
}

static bool put_block(struct cprint_printer *p, uint32_t n)
{
	uint32_t b = node(p, n)->block;
	const struct ir_rec *end = end_of(p, b);
	if (!node(p, n)->is_copy)
		put_label(p, b, true);
	/* What a `for` behind it begins with stands in that one's head, the part behind all others. */
	uint32_t loop = node(p, n)->next, last = p->parts[b].last, step = STR_NONE, at = UINT32_MAX;
	if (loop != STR_NONE && node(p, loop)->kind == STR_WHILE)
		step = node(p, loop)->block;
	if (step != STR_NONE)
		at = cprint_first_set(p, b, step);
	if (at != UINT32_MAX) {
		p->for_first = p->part_cnt;
		p->parts[p->for_first] = (struct cprint_part){b, at, last};
		p->parts[b].last = at;
	}
	bool ok = cprint_block(p, b);
	p->parts[b].last = last;
	/* What leads on is where control goes on. */
	if (end && end->op == IR_JMP)
		cprint_map_here(p, end->origin);
	return ok;
}

static bool put_node(struct cprint_printer *p, uint32_t n)
{
	const struct str_node *k = node(p, n);
	bool ok;
	switch (k->kind) {
	case STR_BLOCK:
		return put_block(p, n);
	case STR_LEAVE:
		return cprint_leave(p, k->block);
	case STR_IF:
		return put_if(p, n);
	case STR_LOOP:
		put_text(p, "for (;;)");
		ok = put_braced(p, k->first);
		buf_add_ch(p->text, '\n');
		return ok;
	case STR_WHILE:
		return put_while(p, n);
	case STR_DO:
		return put_do(p, n);
	case STR_SWITCH:
		return put_switch(p, n);
	case STR_LABEL:
		put_label(p, k->block, false);
		return true;
	default:
		put_jump(p, n);
		return true;
	}
}

static bool put_nodes(struct cprint_printer *p, uint32_t n)
{
	bool ok = true;
	for (; n != STR_NONE && ok && !p->why; n = node(p, n)->next)
		ok = put_node(p, n);
	return ok;
}

bool cprint_body(struct cprint_printer *p)
{
	p->indent = 1;
	return put_nodes(p, node(p, p->tree.root)->first);
}
