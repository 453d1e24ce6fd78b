/* SPDX-License-Identifier: Apache-2.0 */
#include "cprint/cprint_int.h"

#include <stdlib.h>
#include <string.h>

/* Statements, what they are made of, and which lines they are. */

static const struct ir_rec *rec_of(const struct cprint_printer *p, ir_ref r)
{
	return ir_tag(r) == IR_TAG_VALUE ? &p->f->recs[ir_index(r)] : NULL;
}

/* --- lines --------------------------------------------------------------------------------------------------- */
uint32_t cprint_line_now(struct cprint_printer *p)
{
	const char *end = p->text->data + p->text->len;
	for (const char *at = p->text->data + p->line_counted; at < end && (at = memchr(at, '\n', (size_t)(end - at))); at++)
		p->line++;
	p->line_counted = p->text->len;
	return p->line;
}

void cprint_map_here(struct cprint_printer *p, uint32_t origin)
{
	if (!p->map || origin >= p->f->origin_cnt)
		return;
	struct cprint_line l = {.line = cprint_line_now(p), .va = p->f->origins[origin].va};
	size_t cnt = p->map->lines.cnt;
	/* What a statement is made of comes from few instructions, often from the one before. */
	if (cnt && p->map->lines.data[cnt - 1].line == l.line && p->map->lines.data[cnt - 1].va == l.va)
		return;
	p->has_failed |= !VEC_PUSH(&p->map->lines, l);
	if (!p->origin_lines[origin])
		p->origin_lines[origin] = l.line;
}

static int cmp_line(const void *x, const void *y)
{
	const struct cprint_line *a = x, *b = y;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return a->va < b->va ? -1 : a->va > b->va ? 1 : (int)a->is_near - (int)b->is_near;
}

void cprint_map_finish(struct cprint_printer *p)
{
	uint32_t cnt = p->f->origin_cnt, near = 0;
	if (!p->map)
		return;
	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t with = p->f->origins[i].with, line = with && with <= cnt ? p->origin_lines[with - 1] : 0;
		/* A way out of a switch, a goto, is an instruction of the switch all the same. */
		if (line && line != p->origin_lines[i])
			p->has_failed |= !VEC_PUSH(&p->map->lines, ((struct cprint_line){.line = line, .va = p->f->origins[i].va}));
		if (line && !p->origin_lines[i])
			p->origin_lines[i] = line;
	}
	for (uint32_t i = 0; i < cnt && !near; i++)
		near = p->origin_lines[i];
	for (uint32_t i = cnt; i-- > 0;) {
		struct cprint_line l = {.line = near ? near : 1, .is_near = true, .va = p->f->origins[i].va};
		if (p->origin_lines[i])
			near = p->origin_lines[i];
		else
			p->has_failed |= !VEC_PUSH(&p->map->lines, l);
	}
	if (!p->map->lines.cnt)
		return;
	struct cprint_line *lines = p->map->lines.data;
	size_t out = 0;
	qsort(lines, p->map->lines.cnt, sizeof(*lines), cmp_line);
	for (size_t i = 0; i < p->map->lines.cnt; i++) {
		if (!out || lines[out - 1].line != lines[i].line || lines[out - 1].va != lines[i].va)
			lines[out++] = lines[i];
	}
	p->map->lines.cnt = out;
}

/* --- operands ------------------------------------------------------------------------------------------------- */
bool cprint_refuse(struct cprint_printer *p, const struct ir_rec *rec)
{
	if (!p->why)
		p->why = ir_op_info((enum ir_op)rec->op)->text;
	return false;
}

void cprint_loc(const struct cprint_printer *p, unsigned loc, struct buf *text)
{
	if (cprint_is_in_state(p, loc))
		buf_add(text, "m->", 3);
	buf_add(text, p->f->machine->locs[loc].name, p->name_len[loc]);
}

void cprint_temp(const struct cprint_printer *p, uint32_t r, struct buf *text)
{
	uint32_t n = p->values[r].temp;
	if (n && p->temp_names && p->temp_names[n - 1]) {
		buf_add_str(text, p->temp_names[n - 1]);
		return;
	}
	buf_add_ch(text, 't');
	buf_add_dec(text, n);
}

/* --- statements ------------------------------------------------------------------------------------------------- */
void cprint_comment(struct cprint_printer *p, ir_ref target)
{
	uint64_t va;
	char name[256];
	const struct ir_rec *rec = rec_of(p, target);
	if (rec && rec->op == IR_GADDR)
		target = rec->a;
	if (!p->opts->name_of || !ir_const_get(p->f, target, &va))
		return;
	const char *s = p->opts->name_of(p->opts->ctx, va, name, sizeof(name));
	if (!s)
		return;
	buf_add_str(p->text, " /* ");
	for (unsigned i = 0; s[i] && i < 80; i++)
		/* No end of the comment, no line break, no trigraph from a name. */
		buf_add_ch(p->text, s[i] < ' ' || s[i] > '~' || s[i] == '*' || s[i] == '?' || s[i] == '\\' ? '_' : s[i]);
	buf_add_str(p->text, " */");
}

/* Where control goes: a number is an address of the program. */
static bool put_target(struct cprint_printer *p, ir_ref r)
{
	uint64_t va;
	if (!ir_const_get(p->f, r, &va))
		return cprint_operand(p, r, CPRINT_LOOSE, p->text);
	buf_add_str(p->text, "m->image + ");
	cprint_hex(p->text, va, "");
	return true;
}

/* `text` holds nothing of what comes back in a failed expression: the function is dropped then. */
static bool put_value(struct cprint_printer *p, ir_ref r)
{
	return cprint_operand(p, r, CPRINT_LOOSE, p->text);
}

void cprint_indent(struct cprint_printer *p)
{
	buf_add(p->text, "\t\t\t\t\t\t\t\t", p->indent < 8 ? p->indent : 8);
	for (unsigned i = 8; i < p->indent; i++)
		buf_add_ch(p->text, '\t');
}

/* Around a statement that is one expression. */
static void begin(struct cprint_printer *p)
{
	if (!p->in_expr)
		cprint_indent(p);
}

static void end(struct cprint_printer *p)
{
	buf_add_str(p->text, p->in_expr ? ", " : ";\n");
}

/* A line of its own. */
static void put_line(struct cprint_printer *p, const char *s)
{
	cprint_indent(p);
	buf_add_str(p->text, s);
	buf_add_ch(p->text, '\n');
}

/* The variables' values to the state. */
static void put_save(struct cprint_printer *p)
{
	if (!p->opts->is_state)
		put_line(p, "SCRY_SAVE;");
}

static bool moves_stack(const struct cprint_printer *p, const struct ir_intrin *in)
{
	for (unsigned k = 0; k < in->out_cnt; k++)
		if (in->out[k] == p->f->machine->sp_loc)
			return true;
	/* As the base of memory that is addressed by another register it does no harm, and the system only may look at it. */
	for (unsigned k = 0; k < in->in_cnt && !(in->mem_len && in->alt_len) && !in->is_system; k++)
		if (in->in[k] == p->f->machine->sp_loc)
			return true;
	return false;
}

static bool put_intrin(struct cprint_printer *p, uint32_t r)
{
	const struct ir_func *f = p->f;
	const struct ir_rec *rec = &f->recs[r];
	const struct ir_intrin *in = &f->intrins[rec->aux];
	/* It runs on the stack of the C that runs it. */
	if (moves_stack(p, in)) {
		cprint_indent(p);
		buf_printf(p->text, "scry_trap(); /* %s */\n", in->mnemonic);
		return true;
	}
	put_save(p);
	for (unsigned k = 0; k < in->in_cnt; k++) {
		cprint_indent(p);
		buf_printf(p->text, "m->%s = ", f->machine->locs[in->in[k]].name);
		if (k >= rec->c || !put_value(p, f->lists[rec->b + k]))
			return cprint_refuse(p, rec);
		buf_add_str(p->text, ";\n");
	}
	bool is_moved = in->mem_len && in->alt_len;
	if (is_moved) {
		cprint_indent(p);
		buf_printf(p->text, "m->%s = ", f->machine->locs[in->alt_reg].name);
		if (in->in_cnt >= rec->c || !put_value(p, f->lists[rec->b + in->in_cnt]))
			return cprint_refuse(p, rec);
		buf_add_str(p->text, ";\n");
	}
	bool needs_ymm = false, needs_zmm = in->is_wide, needs_x87 = false, needs_mmx = false;
	for (unsigned k = 0; k < in->in_cnt + in->out_cnt; k++) {
		const struct ir_loc *loc = &f->machine->locs[k < in->in_cnt ? in->in[k] : in->out[k - in->in_cnt]];
		needs_ymm |= loc->cls == IR_LOC_VEC_HI;
		needs_x87 |= loc->cls == IR_LOC_X87;
		needs_mmx |= loc->cls == IR_LOC_VEC && loc->width == IR_W64;
	}
	const uint8_t *bytes = is_moved ? in->alt_bytes : in->bytes;
	unsigned len = is_moved ? in->alt_len : in->len;
	cprint_indent(p);
	buf_printf(p->text, "%s%s(m, %s, %d, \"", needs_zmm ? "SCRY_INSN_ZMM" : needs_ymm ? "SCRY_INSN_YMM" : "SCRY_INSN", p->suffix,
		   needs_mmx ? "SCRY_MMX" : needs_x87 ? "SCRY_X87" : "0", needs_x87 ? in->x87_top & 7 : 0);
	for (unsigned k = 0; k < len; k++)
		buf_printf(p->text, "%s0x%02x", k ? "," : "", bytes[k]);
	buf_printf(p->text, "\"); /* %s */\n", in->mnemonic);
	for (unsigned k = 0; k < in->out_cnt && !needs_zmm; k++) {
		const struct ir_loc *loc = &f->machine->locs[in->out[k]];
		if (loc->width != IR_W256)
			continue;
		cprint_indent(p);
		buf_printf(p->text, "m->%s = (uint256_t){{0}};\n", loc->name);
	}
	return true;
}

static bool put_memop(struct cprint_printer *p, uint32_t r)
{
	const struct ir_func *f = p->f;
	const struct ir_rec *rec = &f->recs[r];
	unsigned bits = rec->aux;
	bool has_src = rec->kind == IR_MEMOP_COPY || rec->kind == IR_MEMOP_CMP;
	bool compares = rec->kind == IR_MEMOP_CMP || rec->kind == IR_MEMOP_SCAN;
	if (rec->c < 5)
		return cprint_refuse(p, rec);
	const ir_ref *l = f->lists + rec->b;
	unsigned n = p->values[r].temp;
	for (unsigned k = 0; k < 3; k++) {
		cprint_indent(p);
		buf_printf(p->text, "t%u_%u = ", n, k);
		put_value(p, l[k]);
		buf_add_str(p->text, ";\n");
	}
	cprint_indent(p);
	buf_printf(p->text, "t%u_3 = t%u_4 = 0;\n", n, n);
	cprint_indent(p);
	buf_printf(p->text, "scry_rep_%s%u(&t%u_0, %st%u_1, &t%u_2, ", ir_kind_info((enum ir_kind)rec->kind)->text, bits, n, has_src ? "&" : "",
		   n, n);
	put_value(p, l[3]);
	if (compares) {
		buf_add_str(p->text, ", ");
		put_value(p, l[4]);
		buf_printf(p->text, ", &t%u_3, &t%u_4", n, n);
	}
	buf_add_str(p->text, ");\n");
	return true;
}

/* The C form of the code at constant address `r`. */
static bool find_fn(struct cprint_printer *p, ir_ref r, char *name, size_t cap)
{
	uint64_t va;
	return p->opts->fn_of && ir_const_get(p->f, r, &va) && p->opts->fn_of(p->opts->ctx, va, name, cap);
}

static bool put_callee(struct cprint_printer *p, const struct ir_rec *rec)
{
	char name[128];
	bool is_number = rec->flags & IR_F_COMPUTED;
	if (!is_number && find_fn(p, rec->a, name, sizeof(name))) {
		buf_add_str(p->text, "scry_enter(m, ");
		buf_add_str(p->text, name);
		return true;
	}
	buf_add_str(p->text, "scry_call");
	buf_add_str(p->text, p->suffix);
	buf_add_str(p->text, "(m, ");
	return is_number ? cprint_operand(p, rec->a, CPRINT_LOOSE, p->text) : put_target(p, rec->a);
}

static bool put_leave(struct cprint_printer *p, const struct ir_rec *rec)
{
	char name[128];
	put_save(p);
	cprint_indent(p);
	bool is_number = rec->flags & IR_F_COMPUTED;
	if (!is_number && find_fn(p, rec->a, name, sizeof(name))) {
		buf_printf(p->text, "%s(m);", name);
	} else {
		buf_printf(p->text, "scry_leave%s(m, ", p->suffix);
		if (!(is_number ? cprint_operand(p, rec->a, CPRINT_LOOSE, p->text) : put_target(p, rec->a)))
			return cprint_refuse(p, rec);
		buf_add_str(p->text, ");");
	}
	cprint_comment(p, rec->a);
	buf_add_ch(p->text, '\n');
	put_line(p, "return;");
	return true;
}

bool cprint_leave(struct cprint_printer *p, uint32_t block)
{
	const struct ir_func *f = p->f;
	const struct ir_rec *rec = ir_terminator(f, block);
	unsigned word = ir_bits((enum ir_width)f->machine->addr_width) / 8;
	if (!rec)
		return false;
	cprint_map_here(p, rec->origin);
	if (f->self && (rec->op == IR_RET || rec->op == IR_IJMP))
		return cprint_typed_leave(p, block, rec);
	switch (rec->op) {
	case IR_IJMP:
		return put_leave(p, rec);
	case IR_RET:
		cprint_indent(p);
		buf_add_str(p->text, word == 8 ? "m->pc = scry_load64(" : "m->pc = scry_load32(");
		cprint_loc(p, f->machine->sp_loc, p->text);
		buf_add_str(p->text, ");\n");
		cprint_indent(p);
		cprint_loc(p, f->machine->sp_loc, p->text);
		buf_add_str(p->text, " += ");
		buf_add_dec(p->text, word + rec->aux);
		buf_add_str(p->text, ";\n");
		put_save(p);
		put_line(p, "return;");
		return f->machine->calls_push || cprint_refuse(p, rec);
	default:
		put_line(p, "scry_trap();");
		return rec->op == IR_TRAP || cprint_refuse(p, rec);
	}
}

static bool put_call(struct cprint_printer *p, const struct ir_rec *rec)
{
	put_save(p);
	begin(p);
	if (!put_callee(p, rec))
		return cprint_refuse(p, rec);
	buf_add_str(p->text, ", ");
	if (!put_target(p, rec->b))
		return cprint_refuse(p, rec);
	buf_add_ch(p->text, ')');
	if (p->in_expr) {
		cprint_comment(p, rec->a);
		end(p);
	} else {
		buf_add_ch(p->text, ';');
		cprint_comment(p, rec->a);
		buf_add_ch(p->text, '\n');
	}
	if (!p->opts->is_state)
		put_line(p, "SCRY_LOAD;");
	return p->f->machine->calls_push || cprint_refuse(p, rec);
}

/* A call with a signature that is a statement, with its result in a variable when that is used. */
static bool put_typed_call(struct cprint_printer *p, uint32_t r)
{
	uint32_t result = p->calls[r];
	begin(p);
	if (result != CPRINT_NONE && p->values[result].temp) {
		cprint_temp(p, result, p->text);
		buf_add(p->text, " = ", 3);
	}
	if (!cprint_typed_call(p, r, p->text))
		return cprint_refuse(p, &p->f->recs[r]);
	end(p);
	return true;
}

bool cprint_is_handed(const struct ir_rec *rec)
{
	return (rec->op == IR_PUT || rec->op == IR_GET) && rec->flags & IR_F_TYPED;
}

bool cprint_is_expr(const struct cprint_printer *p, const struct ir_rec *rec)
{
	return rec->op != IR_INTRIN && rec->op != IR_MEMOP && (rec->op != IR_CALL || p->opts->is_state);
}

bool cprint_is_idle(const struct cprint_printer *p, uint32_t r)
{
	const struct ir_rec *rec = &p->f->recs[r];
	if (rec->op == IR_PUT && rec->flags & IR_F_TYPED)
		return true;
	if (rec->op != IR_PUT)
		return !p->values[r].use_cnt && cprint_is_pure(p->f, rec);
	/* A location put back as it was read: nothing happens, and compilers warn. */
	const struct ir_rec *from = cprint_inline(p, rec->a);
	if (!from || from->op != IR_GET)
		return false;
	return from->flags & IR_F_TYPED ? p->calls[ir_index(rec->a)] == CPRINT_NONE : from->aux == rec->aux;
}

static bool put_statement(struct cprint_printer *p, uint32_t r)
{
	const struct ir_rec *rec = &p->f->recs[r];
	struct buf *text = p->text;
	switch (rec->op) {
	case IR_PUT:
		begin(p);
		if (!cprint_set(p, rec->aux, rec->a, text))
			return cprint_refuse(p, rec);
		break;
	case IR_STORE:
	case IR_FENCE:
		begin(p);
		if (!cprint_record(p, rec, CPRINT_LOOSE, text))
			return false;
		break;
	case IR_CALL:
		if (rec->flags & IR_F_TYPED)
			return put_typed_call(p, r);
		return put_call(p, rec);
	case IR_INTRIN:
		return put_intrin(p, r);
	case IR_MEMOP:
		return put_memop(p, r);
	default:
		begin(p);
		/* What nobody uses may still trap. */
		if (p->values[r].temp) {
			cprint_temp(p, r, text);
			buf_add(text, " = ", 3);
		} else {
			buf_add_str(text, "(void)");
		}
		if (!cprint_record(p, rec, p->values[r].temp ? CPRINT_LOOSE : CPRINT_TIGHT, text))
			return false;
	}
	end(p);
	return true;
}

bool cprint_block(struct cprint_printer *p, uint32_t part)
{
	const struct ir_func *f = p->f;
	for (uint32_t i = p->parts[part].first; i < p->parts[part].last; i++) {
		uint32_t r = f->order[i];
		/* A result that has a variable was written with its call. */
		bool is_idle = cprint_is_idle(p, r) || (cprint_is_handed(&f->recs[r]) && !p->values[r].is_inline);
		if (!is_idle && p->values[r].is_inline)
			continue;
		cprint_map_here(p, f->recs[r].origin);
		if (!is_idle && (p->why || !put_statement(p, r)))
			return false;
	}
	return true;
}
