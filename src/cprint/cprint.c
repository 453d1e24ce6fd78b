/* SPDX-License-Identifier: Apache-2.0 */
#include "cprint/cprint.h"

#include "cprint/cprint_int.h"

#include <string.h>

/*
 * A block becomes a brace group behind its label; each record that must happen where it stands becomes a statement, and
 * what is pure or a load, and used once, becomes part of the expression that uses it, as long as nothing between the two could
 * change it (a PUT of the location a GET read, a call, another access of memory). A block is gone through twice: from its end, to know
 * what is used and where it would be shown, and from its beginning, writing statements straight into the text.
 */

/* An expression of more operations than this is given a variable; that also bounds how deep expressions nest. */
#define INLINE_COST_MAX 10
/* As often a location, or one with an offset, is written again instead of being given a variable. */
#define AGAIN_MAX 3
/* Looks ahead no further than this for what an expression crosses. */
#define CROSS_MAX 256

/* What the printer knows of a record. */
struct value {
	uint32_t place;  /* order index of the statement that shows it: the last one, if several do */
	uint16_t use_cnt;
	uint8_t cost;    /* operations of the expression it is, when is_inline */
	bool is_inline;  /* part of the statement at `place`; else it has a variable or none uses it */
};

struct cprint_printer {
	const struct ir_func *f;
	const struct cprint_opts *opts;
	struct buf *text;
	struct cprint_map *map;
	const char *suffix;  /* of the header's functions that are a machine's own; "" for x86-64 */
	uint32_t block;      /* being written */
	uint32_t line;       /* ... from 1 */
	size_t line_counted; /* bytes of `text` whose line breaks are in `line` */
	struct value *values; /* per record */
	uint32_t *next_put;  /* per location: the nearest change behind where place_block() is; what lies before is of a block before */
	uint8_t *name_len;   /* per location: bytes of its name; 0: the function does not use it */
	bool *is_target;     /* blocks somebody jumps to */
	const char *why;     /* there is no form: what of */
	bool has_failed;
};

void cprint_map_fini(struct cprint_map *map)
{
	VEC_FREE(&map->lines);
}

void cprint_prelude(struct buf *text)
{
	buf_add_str(text, "#include \"scry.h\"\n\n");
}

void cprint_machine(const struct ir_machine *m, struct buf *text)
{
	buf_add_str(text, "scry_");
	for (const char *p = m->name; *p; p++)
		buf_add_ch(text, *p == '-' ? '_' : *p);
}

const struct ir_func *cprint_ir(const struct cprint_printer *p)
{
	return p->f;
}

static const struct ir_rec *rec_of(const struct cprint_printer *p, ir_ref r)
{
	return ir_tag(r) == IR_TAG_VALUE ? &p->f->recs[ir_index(r)] : NULL;
}

const struct ir_rec *cprint_inline(const struct cprint_printer *p, ir_ref r)
{
	return ir_tag(r) == IR_TAG_VALUE && p->values[ir_index(r)].is_inline ? &p->f->recs[ir_index(r)] : NULL;
}

/* --- lines --------------------------------------------------------------------------------------------------- */
static uint32_t line_now(struct cprint_printer *p)
{
	const char *end = p->text->data + p->text->len;
	for (const char *at = p->text->data + p->line_counted; at < end && (at = memchr(at, '\n', (size_t)(end - at))); at++)
		p->line++;
	p->line_counted = p->text->len;
	return p->line;
}

static void add_line(struct cprint_printer *p, uint32_t origin)
{
	struct cprint_line l = {line_now(p), p->f->origins[origin].va};
	if (!VEC_PUSH(&p->map->lines, l)) {
		p->has_failed = true;
		return;
	}
	/* Addresses of a line ascend; it has few. */
	struct cprint_line *lines = p->map->lines.data;
	size_t i = p->map->lines.cnt - 1;
	for (; i > 0 && lines[i - 1].line == l.line && lines[i - 1].va > l.va; i--)
		lines[i] = lines[i - 1];
	lines[i] = l;
	if (i > 0 && lines[i - 1].line == l.line && lines[i - 1].va == l.va) {
		memmove(&lines[i], &lines[i + 1], (p->map->lines.cnt - 1 - i) * sizeof(*lines));
		p->map->lines.cnt--;
	}
}

/* What is written now comes from an instruction. */
static inline void map_here(struct cprint_printer *p, uint32_t origin)
{
	if (p->map && origin < p->f->origin_cnt)
		add_line(p, origin);
}

/* --- which values are part of another's expression ------------------------------------------------------------- */
static bool is_pure(const struct ir_rec *rec)
{
	return rec->width != IR_W0 && !(ir_op_info((enum ir_op)rec->op)->effects & ~(unsigned)IR_READS_LOC) &&
	       rec->op != IR_RES && rec->op != IR_PHI;
}

/* A location, or one moved by a number: cheap to write and to compute. */
static bool is_short(const struct ir_func *f, const struct ir_rec *rec)
{
	if (rec->op != IR_ADD && rec->op != IR_SUB)
		return rec->op == IR_GET;
	return ir_tag(rec->a) == IR_TAG_VALUE && f->recs[ir_index(rec->a)].op == IR_GET && ir_tag(rec->b) == IR_TAG_CONST;
}

/* Walking a block back: the nearest record behind the one looked at that ... */
struct ahead {
	uint32_t call;   /* changes all locations */
	uint32_t effect; /* touches memory, may trap, or hands the machine's state around */
};

static bool is_between(uint32_t i, uint32_t from, uint32_t to)
{
	return i > from && i < to;
}

/* Whether a location lies in the state, where calls and unlifted instructions have it. */
static bool is_in_state(const struct cprint_printer *p, unsigned loc)
{
	return p->opts->is_state && p->f->machine->locs[loc].cls != IR_LOC_VAR;
}

static bool may_move(const struct cprint_printer *p, const struct ir_rec *rec, const struct ahead *ahead, uint32_t from, uint32_t to)
{
	const struct ir_rec *into = &p->f->recs[p->f->order[to]];
	if (rec->op == IR_GET && is_in_state(p, rec->aux) && (into->op == IR_INTRIN || is_between(ahead->effect, from, to)))
		return false;
	if (rec->op == IR_GET)
		return !is_between(p->next_put[rec->aux], from, to) && !is_between(ahead->call, from, to);
	if (is_pure(rec))
		return true;
	/* What an instruction left is in the state, which other statements than assignments write first. */
	if (rec->op == IR_RES)
		return !p->opts->is_state && into->op == IR_PUT && !is_between(ahead->effect, from, to);
	return rec->op == IR_LOAD && !is_between(ahead->effect, from, to);
}

static void use(struct cprint_printer *p, ir_ref r, uint32_t at)
{
	if (ir_tag(r) != IR_TAG_VALUE)
		return;
	struct value *v = &p->values[ir_index(r)];
	if (v->use_cnt < UINT16_MAX)
		v->use_cnt++;
	if (!v->is_inline || v->place < at)
		v->place = at;
	v->is_inline = true;
}

static void use_operands(struct cprint_printer *p, const struct ir_rec *rec, uint32_t at)
{
	const struct ir_func *f = p->f;
	const ir_ref refs[3] = {rec->a, rec->b, rec->c};
	unsigned fixed = ir_fixed_operands((enum ir_op)rec->op);
	for (unsigned i = 0; i < fixed; i++)
		use(p, refs[i], at);
	if (!ir_has_list((enum ir_op)rec->op))
		return;
	for (uint32_t i = 0; i < rec->c; i++)
		use(p, f->lists[rec->b + i], at);
}

/* From the end of the block back, so that it is known where all users of a value are shown before its turn comes. What is part of
 * an expression is shown where the whole expression is. */
static void place_block(struct cprint_printer *p, const struct ir_block *b)
{
	const struct ir_func *f = p->f;
	struct ahead ahead = {0, 0};
	for (uint32_t i = b->last; i-- > b->first;) {
		uint32_t r = f->order[i];
		const struct ir_rec *rec = &f->recs[r];
		struct value *v = &p->values[r];
		bool pure = is_pure(rec);
		if (pure && !v->use_cnt)
			continue;
		/* What use() noted of its users is now decided on. */
		bool once = v->use_cnt == 1 || (v->use_cnt && v->use_cnt <= AGAIN_MAX && is_short(f, rec)) || rec->op == IR_GET;
		v->is_inline = once && v->use_cnt && v->place - i <= CROSS_MAX && may_move(p, rec, &ahead, i, v->place);
		if (!v->is_inline)
			v->place = i;
		use_operands(p, rec, v->place);
		if (rec->op == IR_PUT)
			p->next_put[rec->aux] = i;
		else if (rec->op == IR_CALL)
			ahead.call = ahead.effect = i;
		else if (!pure && rec->op != IR_RES)
			ahead.effect = i;
	}
}

/* --- operands ------------------------------------------------------------------------------------------------- */
static bool refuse(struct cprint_printer *p, const struct ir_rec *rec)
{
	if (!p->why)
		p->why = ir_op_info((enum ir_op)rec->op)->text;
	return false;
}

static void put_loc(const struct cprint_printer *p, unsigned loc, struct buf *text)
{
	if (is_in_state(p, loc))
		buf_add(text, "m->", 3);
	buf_add(text, p->f->machine->locs[loc].name, p->name_len[loc]);
}

/* The variable of a record. */
static void put_temp(uint32_t r, struct buf *text)
{
	buf_add_ch(text, 't');
	buf_add_dec(text, r);
}

/* The address a constant stands for, in the image. */
static bool put_gaddr(struct cprint_printer *p, const struct ir_rec *rec, struct buf *text)
{
	uint64_t va;
	if (!ir_const_get(p->f, rec->a, &va))
		return refuse(p, rec);
	/* The image may lie further up than addresses of 32 bits say. */
	bool is_short = p->f->machine->addr_width == IR_W32;
	buf_add_str(text, is_short ? "(uint32_t)(m->image + " : "m->image + ");
	cprint_hex(text, va, is_short ? ")" : "");
	return true;
}

/* What RES names: a variable of the MEMOP, or where the instruction left it. */
static bool put_res(struct cprint_printer *p, const struct ir_rec *rec, struct buf *text)
{
	const struct ir_rec *of = rec_of(p, rec->a);
	if (!of)
		return refuse(p, rec);
	if (of->op == IR_MEMOP) {
		put_temp(ir_index(rec->a), text);
		buf_add_ch(text, '_');
		buf_add_dec(text, rec->aux);
		return true;
	}
	const struct ir_intrin *in = &p->f->intrins[of->aux];
	if (rec->aux >= in->out_cnt)
		return refuse(p, rec);
	buf_add_str(text, "m->");
	buf_add_str(text, p->f->machine->locs[in->out[rec->aux]].name);
	return true;
}

/* The expression of a record, without parentheses. */
static bool put_expr(struct cprint_printer *p, const struct ir_rec *rec, enum cprint_how how, struct buf *text)
{
	switch (rec->op) {
	case IR_GET:
		put_loc(p, rec->aux, text);
		return true;
	case IR_GADDR:
		return put_gaddr(p, rec, text);
	case IR_RES:
		return put_res(p, rec, text);
	default:
		break;
	}
	/* What signature x names is the second operand where the first is the whole. */
	const struct cprint_form form = {p, rec, ir_ref_width(p->f, rec->op == IR_INSERT ? rec->b : rec->a)};
	return cprint_form(&form, how, text) || refuse(p, rec);
}

bool cprint_operand(struct cprint_printer *p, ir_ref r, enum cprint_how how, struct buf *text)
{
	if (ir_tag(r) == IR_TAG_CONST)
		return cprint_const(p->f, r, how, text) || refuse(p, &p->f->recs[0]);
	if (ir_tag(r) != IR_TAG_VALUE)
		return false;
	const struct ir_rec *rec = &p->f->recs[ir_index(r)];
	if (!p->values[ir_index(r)].is_inline) {
		put_temp(ir_index(r), text);
		return true;
	}
	map_here(p, rec->origin);
	if (how == CPRINT_LOOSE || !cprint_is_loose(rec))
		return put_expr(p, rec, how, text);
	buf_add_ch(text, '(');
	bool ok = put_expr(p, rec, how, text);
	buf_add_ch(text, ')');
	return ok;
}

/* --- the machine's state --------------------------------------------------------------------------------------- */
static void use_loc(struct cprint_printer *p, unsigned loc)
{
	if (!p->name_len[loc])
		p->name_len[loc] = (uint8_t)strlen(p->f->machine->locs[loc].name);
}

/* Locations the function names, and blocks it jumps to. */
static void look_around(struct cprint_printer *p)
{
	const struct ir_func *f = p->f;
	use_loc(p, f->machine->sp_loc);
	for (uint32_t i = 0; i < f->order_cnt; i++) {
		const struct ir_rec *rec = &f->recs[f->order[i]];
		if (rec->op == IR_GET || rec->op == IR_PUT)
			use_loc(p, rec->aux);
		if (rec->op != IR_INTRIN)
			continue;
		const struct ir_intrin *in = &f->intrins[rec->aux];
		for (unsigned k = 0; k < in->in_cnt; k++)
			use_loc(p, in->in[k]);
		for (unsigned k = 0; k < in->out_cnt; k++)
			use_loc(p, in->out[k]);
		if (in->alt_len)
			use_loc(p, in->alt_reg);
	}
	for (uint32_t b = 0; b < f->block_cnt; b++) {
		const struct ir_rec *end = ir_terminator(f, b);
		if (!end)
			continue;
		if (end->op == IR_SWITCH) {
			p->is_target[end->aux] = true;
			for (uint32_t i = 1; i < end->c; i += 2)
				p->is_target[ir_index(f->lists[end->b + i])] = true;
		} else if (end->op == IR_BR) {
			p->is_target[ir_index(end->b)] = p->is_target[ir_index(end->c)] = true;
		} else if (end->op == IR_JMP) {
			p->is_target[ir_index(end->a)] = true;
		}
	}
}

/* Whether the state is used at all: code that only goes round or stops does without. */
static bool names_state(const struct cprint_printer *p)
{
	for (uint32_t i = 0; i < p->f->order_cnt; i++) {
		const struct ir_rec *rec = &p->f->recs[p->f->order[i]];
		bool is_loc = (rec->op == IR_GET || rec->op == IR_PUT) && is_in_state(p, rec->aux);
		if (is_loc || rec->op == IR_GADDR || rec->op == IR_CALL || rec->op == IR_RET || rec->op == IR_IJMP || rec->op == IR_INTRIN ||
		    rec->op == IR_SWITCH)
			return true;
	}
	return false;
}

/* The variables, which the header's SCRY_SAVE and SCRY_LOAD move to the state and back. */
static void put_head(struct cprint_printer *p)
{
	const struct ir_machine *m = p->f->machine;
	struct buf *text = p->text;
	if (!p->opts->is_state)
		buf_add_str(text, "#define SCRY_REGS(r)");
	for (unsigned i = 0; i < m->loc_cnt && !p->opts->is_state; i++) {
		if (!p->name_len[i])
			continue;
		buf_add_str(text, " r(");
		put_loc(p, i, text);
		buf_add_ch(text, ')');
	}
	buf_add_str(text, p->opts->is_state ? "void " : "\nvoid ");
	buf_add_str(text, p->opts->name);
	buf_add_str(text, "(struct ");
	cprint_machine(m, text);
	buf_add_str(text, " *m)\n{\n");
	/* One declaration for each run of locations of one width. */
	unsigned width = IR_W0;
	for (unsigned i = 0; i < m->loc_cnt; i++) {
		if (!p->name_len[i] || is_in_state(p, i))
			continue;
		if (m->locs[i].width != width) {
			buf_add_str(text, width == IR_W0 ? "\t" : ";\n\t");
			width = m->locs[i].width;
			cprint_type((enum ir_width)width, text);
			buf_add_ch(text, ' ');
		} else {
			buf_add(text, ", ", 2);
		}
		put_loc(p, i, text);
		buf_add_str(text, !p->opts->is_state ? " = m->" : width < IR_W80 ? " = 0" : width < IR_W256 ? " = {0}" : " = {{0}}");
		if (!p->opts->is_state)
			put_loc(p, i, text);
	}
	if (width != IR_W0)
		buf_add_str(text, ";\n");
	if (p->opts->is_state && !names_state(p))
		buf_add_str(text, "\t(void)m;\n");
}

/* --- statements ------------------------------------------------------------------------------------------------- */
static void put_comment(struct cprint_printer *p, ir_ref target)
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

static void put_label(struct cprint_printer *p, uint32_t block)
{
	char name[128];
	uint64_t va = p->f->blocks[block].va;
	if (va != UINT64_MAX && p->opts->label_of && p->opts->label_of(p->opts->ctx, va, name, sizeof(name))) {
		buf_add_str(p->text, name);
		return;
	}
	buf_add_ch(p->text, 'b');
	buf_add_dec(p->text, block);
}

/* `text` holds nothing of what comes back in a failed expression: the function is dropped then. */
static bool put_value(struct cprint_printer *p, ir_ref r)
{
	return cprint_operand(p, r, CPRINT_LOOSE, p->text);
}

/* The variables' values to the state. */
static void put_save(struct cprint_printer *p)
{
	if (!p->opts->is_state)
		buf_add_str(p->text, "\tSCRY_SAVE;\n");
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
		buf_printf(p->text, "\tscry_trap(); /* %s */\n", in->mnemonic);
		return true;
	}
	put_save(p);
	for (unsigned k = 0; k < in->in_cnt; k++) {
		buf_printf(p->text, "\tm->%s = ", f->machine->locs[in->in[k]].name);
		if (k >= rec->c || !put_value(p, f->lists[rec->b + k]))
			return refuse(p, rec);
		buf_add_str(p->text, ";\n");
	}
	bool is_moved = in->mem_len && in->alt_len;
	if (is_moved) {
		buf_printf(p->text, "\tm->%s = ", f->machine->locs[in->alt_reg].name);
		if (in->in_cnt >= rec->c || !put_value(p, f->lists[rec->b + in->in_cnt]))
			return refuse(p, rec);
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
	buf_printf(p->text, "\t%s%s(m, %s, %d, \"", needs_zmm ? "SCRY_INSN_ZMM" : needs_ymm ? "SCRY_INSN_YMM" : "SCRY_INSN", p->suffix,
		   needs_mmx ? "SCRY_MMX" : needs_x87 ? "SCRY_X87" : "0", needs_x87 ? in->x87_top & 7 : 0);
	for (unsigned k = 0; k < len; k++)
		buf_printf(p->text, "%s0x%02x", k ? "," : "", bytes[k]);
	buf_printf(p->text, "\"); /* %s */\n", in->mnemonic);
	for (unsigned k = 0; k < in->out_cnt && !needs_zmm; k++) {
		const struct ir_loc *loc = &f->machine->locs[in->out[k]];
		if (loc->width == IR_W256)
			buf_printf(p->text, "\tm->%s = (uint256_t){{0}};\n", loc->name);
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
		return refuse(p, rec);
	const ir_ref *l = f->lists + rec->b;
	unsigned n = r;
	buf_printf(p->text, "\tuintptr_t t%u_0 = ", n);
	put_value(p, l[0]);
	if (has_src)
		buf_printf(p->text, ", t%u_1 = ", n);
	else
		buf_printf(p->text, ";\n\tuint%u_t t%u_1 = ", bits, n);
	put_value(p, l[1]);
	buf_printf(p->text, ";\n\tuintptr_t t%u_2 = ", n);
	put_value(p, l[2]);
	buf_printf(p->text, ";\n\tuint%u_t t%u_3 = 0, t%u_4 = 0;\n\tscry_rep_%s%u(&t%u_0, %st%u_1, &t%u_2, ", bits, n, n,
		   ir_kind_info((enum ir_kind)rec->kind)->text, bits, n, has_src ? "&" : "", n, n);
	put_value(p, l[3]);
	if (compares) {
		buf_add_str(p->text, ", ");
		put_value(p, l[4]);
		buf_printf(p->text, ", &t%u_3, &t%u_4", n, n);
	}
	buf_add_str(p->text, ");\n");
	return true;
}

/* Whether control gets there by going on. */
static bool is_next(const struct cprint_printer *p, ir_ref block)
{
	return ir_index(block) == p->block + 1;
}

static void put_goto(struct cprint_printer *p, ir_ref block)
{
	buf_add_str(p->text, "goto ");
	put_label(p, ir_index(block));
	buf_add_str(p->text, ";\n");
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
	buf_add_ch(p->text, '\t');
	bool is_number = rec->flags & IR_F_COMPUTED;
	if (!is_number && find_fn(p, rec->a, name, sizeof(name))) {
		buf_printf(p->text, "%s(m);", name);
	} else {
		buf_printf(p->text, "scry_leave%s(m, ", p->suffix);
		if (!(is_number ? cprint_operand(p, rec->a, CPRINT_LOOSE, p->text) : put_target(p, rec->a)))
			return refuse(p, rec);
		buf_add_str(p->text, ");");
	}
	put_comment(p, rec->a);
	buf_add_str(p->text, "\n\treturn;\n");
	return true;
}

static bool put_end(struct cprint_printer *p, uint32_t r)
{
	const struct ir_func *f = p->f;
	const struct ir_rec *rec = &f->recs[r];
	unsigned word = ir_bits((enum ir_width)f->machine->addr_width) / 8;
	switch (rec->op) {
	case IR_JMP:
		if (is_next(p, rec->a))
			return true;
		buf_add_ch(p->text, '\t');
		put_goto(p, rec->a);
		return true;
	case IR_BR: {
		bool is_turned = is_next(p, rec->b) && !is_next(p, rec->c);
		buf_add_str(p->text, "\tif (");
		if (!cprint_condition(p, rec->a, is_turned, p->text))
			return refuse(p, rec);
		buf_add_str(p->text, ")\n\t\t");
		put_goto(p, is_turned ? rec->c : rec->b);
		if (is_turned || is_next(p, rec->c))
			return true;
		buf_add_ch(p->text, '\t');
		put_goto(p, rec->c);
		return true;
	}
	case IR_SWITCH:
		/* Addresses as the file gives them. */
		buf_add_str(p->text, "\tswitch (");
		if (!cprint_operand(p, rec->a, CPRINT_TIGHT, p->text))
			return false;
		buf_add_str(p->text, " - m->image) {\n");
		for (uint32_t i = 0; i + 1 < rec->c; i += 2) {
			uint64_t v;
			if (!ir_const_get(f, f->lists[rec->b + i], &v))
				return refuse(p, rec);
			buf_add_str(p->text, "\tcase ");
			cprint_hex(p->text, v, ":\n\t\t");
			put_goto(p, f->lists[rec->b + i + 1]);
		}
		buf_add_str(p->text, "\tdefault:\n\t\t");
		put_goto(p, ir_block_ref(rec->aux));
		buf_add_str(p->text, "\t}\n");
		return true;
	case IR_IJMP:
		return put_leave(p, rec);
	case IR_RET:
		buf_add_str(p->text, word == 8 ? "\tm->pc = scry_load64(" : "\tm->pc = scry_load32(");
		put_loc(p, f->machine->sp_loc, p->text);
		buf_add_str(p->text, ");\n\t");
		put_loc(p, f->machine->sp_loc, p->text);
		buf_add_str(p->text, " += ");
		buf_add_dec(p->text, word + rec->aux);
		buf_add_str(p->text, ";\n");
		put_save(p);
		buf_add_str(p->text, "\treturn;\n");
		return f->machine->calls_push || refuse(p, rec);
	default:
		buf_add_str(p->text, "\tscry_trap();\n");
		return rec->op == IR_TRAP || refuse(p, rec);
	}
}

static bool put_statement(struct cprint_printer *p, uint32_t r)
{
	const struct ir_func *f = p->f;
	const struct ir_rec *rec = &f->recs[r];
	struct buf *text = p->text;
	map_here(p, rec->origin);
	switch (rec->op) {
	case IR_PUT: {
		const struct ir_rec *from = cprint_inline(p, rec->a);
		/* A location put back as it was read: nothing happens, and compilers warn. */
		if (from && from->op == IR_GET && from->aux == rec->aux)
			return true;
		buf_add_ch(text, '\t');
		put_loc(p, rec->aux, text);
		buf_add(text, " = ", 3);
		if (!put_value(p, rec->a))
			return refuse(p, rec);
		buf_add(text, ";\n", 2);
		return true;
	}
	case IR_STORE:
	case IR_FENCE:
		buf_add_ch(text, '\t');
		if (!put_expr(p, rec, CPRINT_LOOSE, text))
			return false;
		buf_add(text, ";\n", 2);
		return true;
	case IR_CALL:
		put_save(p);
		buf_add_ch(text, '\t');
		if (!put_callee(p, rec))
			return refuse(p, rec);
		buf_add(text, ", ", 2);
		if (!put_target(p, rec->b))
			return refuse(p, rec);
		buf_add(text, ");", 2);
		put_comment(p, rec->a);
		buf_add_str(text, p->opts->is_state ? "\n" : "\n\tSCRY_LOAD;\n");
		return f->machine->calls_push || refuse(p, rec);
	case IR_INTRIN:
		return put_intrin(p, r);
	case IR_MEMOP:
		return put_memop(p, r);
	default:
		break;
	}
	if (ir_op_info((enum ir_op)rec->op)->effects & IR_ENDS)
		return put_end(p, r);
	buf_add_ch(text, '\t');
	/* What nobody uses may still trap. */
	cprint_type((enum ir_width)rec->width, text);
	buf_add_ch(text, ' ');
	put_temp(r, text);
	buf_add(text, " = ", 3);
	if (!put_expr(p, rec, CPRINT_LOOSE, text))
		return false;
	buf_add(text, ";\n", 2);
	return true;
}

/* Whether record `r` stays part of a later statement, now that what it uses is decided on. */
static bool keep_inline(struct cprint_printer *p, uint32_t r)
{
	const struct ir_rec *rec = &p->f->recs[r];
	struct value *v = &p->values[r];
	if (!v->is_inline)
		return false;
	const ir_ref refs[3] = {rec->a, rec->b, rec->c};
	unsigned cost = 1, fixed = ir_fixed_operands((enum ir_op)rec->op);
	for (unsigned i = 0; i < fixed; i++)
		if (ir_tag(refs[i]) == IR_TAG_VALUE && p->values[ir_index(refs[i])].is_inline)
			cost += p->values[ir_index(refs[i])].cost;
	v->is_inline = cost <= INLINE_COST_MAX;
	v->cost = (uint8_t)cost;
	return v->is_inline;
}

static bool put_block(struct cprint_printer *p, uint32_t block)
{
	const struct ir_func *f = p->f;
	const struct ir_block *b = &f->blocks[block];
	struct buf *text = p->text;
	p->block = block;
	place_block(p, b);
	if (p->is_target[block]) {
		put_label(p, block);
		buf_add(text, ":;", 2);
		if (b->va != UINT64_MAX) {
			buf_add_str(text, " /* ");
			cprint_hex(text, b->va, " */");
		}
		buf_add_ch(text, '\n');
	}
	size_t open = text->len;
	buf_add_str(text, "\t{\n");
	size_t begun = text->len;
	for (uint32_t i = b->first; i < b->last; i++) {
		uint32_t r = f->order[i];
		const struct ir_rec *rec = &f->recs[r];
		if (!p->values[r].use_cnt && is_pure(rec))
			map_here(p, rec->origin);
		else if (!keep_inline(p, r) && (p->why || !put_statement(p, r)))
			return false;
	}
	if (text->len == begun && !text->failed)
		text->len = open;
	else
		buf_add_str(text, "\t}\n");
	return !p->why;
}

static bool printer_init(struct cprint_printer *p, struct arena *a)
{
	const struct ir_func *f = p->f;
	p->values = ARENA_ARRAY(a, struct value, f->rec_cnt + (size_t)1);
	p->name_len = ARENA_ARRAY(a, uint8_t, f->machine->loc_cnt);
	p->next_put = ARENA_ARRAY(a, uint32_t, f->machine->loc_cnt);
	p->is_target = ARENA_ARRAY(a, bool, f->block_cnt + (size_t)1);
	return p->values && p->next_put && p->name_len && p->is_target;
}

struct err *cprint_func(const struct ir_func *f, const struct cprint_opts *opts, struct buf *text, struct cprint_map *map)
{
	struct cprint_printer p = {.f = f, .opts = opts, .text = text, .map = map, .line = 1,
				   .suffix = f->machine->addr_width == IR_W32 ? "_i386" : ""};
	size_t start = text->len;
	struct arena own = {0};
	if (!printer_init(&p, opts->scratch ? opts->scratch : &own)) {
		arena_fini(&own);
		return &err_nomem;
	}
	look_around(&p);
	put_head(&p);
	for (uint32_t b = 0; b < f->block_cnt && !p.why; b++)
		if (!put_block(&p, b) && !p.why)
			p.why = "block";
	buf_add_str(text, opts->is_state ? "}\n" : "}\n#undef SCRY_REGS\n");
	struct err *e = NULL;
	if (p.why) {
		text->len = start;
		e = err_new(ERR_UNSUPPORTED, "the function at 0x%llx: `%s` has no form in C yet", (unsigned long long)f->va, p.why);
	} else if (p.has_failed || text->failed) {
		e = &err_nomem;
	}
	arena_fini(&own);
	return e;
}
