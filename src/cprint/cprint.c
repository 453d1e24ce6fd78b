/* SPDX-License-Identifier: Apache-2.0 */
#include "cprint/cprint.h"

#include "cprint/cprint_int.h"

#include <string.h>

/*
 * A block becomes a brace group behind its label; each record that must happen where it stands becomes a statement, and
 * what is pure and used once becomes part of the expression that uses it, as long as nothing between the two could
 * change it (a PUT of the location a GET read, a call).
 */

/* An expression longer than this is given a variable. */
#define INLINE_LEN_MAX 120
#define NOWHERE UINT32_MAX

struct printer {
	const struct ir_func *f;
	const struct cprint_opts *opts;
	struct buf *text;
	struct cprint_map *map;
	const char *suffix;  /* of the header's functions that are a machine's own; "" for x86-64 */
	uint32_t block;      /* being written */
	uint32_t line;       /* ... from 1 */
	size_t line_counted; /* bytes of `text` whose line breaks are in `line` */
	/* Per record. */
	uint32_t *use_cnt;
	uint32_t *user;      /* the record that uses it last in its block */
	uint32_t *place;     /* order index of the statement that shows it */
	uint32_t *last_use;  /* ... of the last statement that shows one of its users */
	uint32_t *expr_off;  /* the text of what is inline, in `exprs`; NOWHERE: it has a variable */
	uint32_t *expr_len;  /* ... bytes of it */
	uint32_t *pos;       /* place in the order */
	uint32_t *next_put;  /* per location: the nearest change behind where place_block() is; what lies before is of a block before */
	struct buf exprs;
	struct buf parts;    /* the operands of the expression being written */
	bool *is_used_loc;
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

static const struct ir_rec *rec_of(const struct printer *p, ir_ref r)
{
	return ir_tag(r) == IR_TAG_VALUE ? &p->f->recs[ir_index(r)] : NULL;
}

/* --- lines --------------------------------------------------------------------------------------------------- */
static uint32_t line_now(struct printer *p)
{
	const char *end = p->text->data + p->text->len;
	for (const char *at = p->text->data + p->line_counted; at < end && (at = memchr(at, '\n', (size_t)(end - at))); at++)
		p->line++;
	p->line_counted = p->text->len;
	return p->line;
}

static void map_here(struct printer *p, uint32_t origin)
{
	if (!p->map || origin >= p->f->origin_cnt)
		return;
	struct cprint_line l = {line_now(p), p->f->origins[origin].va};
	size_t n = p->map->lines.cnt;
	for (size_t i = n; i-- > 0 && p->map->lines.data[i].line == l.line;)
		if (p->map->lines.data[i].va == l.va)
			return;
	if (!VEC_PUSH(&p->map->lines, l))
		p->has_failed = true;
}

/* --- which values are part of another's expression ------------------------------------------------------------- */
struct use_ctx {
	struct printer *p;
	uint32_t rec;
};

static void count_use(void *ctx, ir_ref r)
{
	struct use_ctx *u = ctx;
	if (ir_tag(r) == IR_TAG_BLOCK)
		u->p->is_target[ir_index(r)] = true;
	if (ir_tag(r) != IR_TAG_VALUE)
		return;
	u->p->use_cnt[ir_index(r)]++;
	u->p->user[ir_index(r)] = u->rec;
}

static bool is_pure(const struct ir_rec *rec)
{
	return rec->width != IR_W0 && !(ir_op_info((enum ir_op)rec->op)->effects & ~(unsigned)IR_READS_LOC) &&
	       rec->op != IR_RES && rec->op != IR_PHI;
}

static void keep_last_use(void *ctx, ir_ref r)
{
	const struct use_ctx *u = ctx;
	if (ir_tag(r) == IR_TAG_VALUE)
		u->p->last_use[ir_index(r)] = MAX(u->p->last_use[ir_index(r)], u->p->place[u->rec]);
}

/* Looks ahead no further than this for what an expression crosses. */
#define CROSS_MAX 256

static bool is_between(uint32_t i, uint32_t from, uint32_t to)
{
	return i > from && i < to;
}

/* From the end of the block back, so that a user's place is known before what it uses. A value in an inline expression is
 * shown where the whole expression is. */
static void place_block(struct printer *p, const struct ir_block *b)
{
	const struct ir_func *f = p->f;
	uint32_t next_call = 0;
	for (uint32_t i = b->last; i-- > b->first;) {
		uint32_t r = f->order[i];
		const struct ir_rec *rec = &f->recs[r];
		struct use_ctx u = {p, r};
		p->place[r] = i;
		if (rec->op == IR_PUT)
			p->next_put[rec->aux] = i;
		else if (rec->op == IR_CALL)
			next_call = i;
		/* What is used once goes where that is. A GET used often is read at each of its uses, and those may be shown in any order. */
		uint32_t at = p->last_use[r];
		bool is_crossing = rec->op == IR_GET && (is_between(p->next_put[rec->aux], i, at) || is_between(next_call, i, at));
		if (at > i && at - i <= CROSS_MAX && !is_crossing && (p->use_cnt[r] == 1 || rec->op == IR_GET) && is_pure(rec))
			p->place[r] = at;
		ir_operands(f, rec, keep_last_use, &u);
	}
}

/* --- operands ------------------------------------------------------------------------------------------------- */
static bool refuse(struct printer *p, const struct ir_rec *rec)
{
	if (!p->why)
		p->why = ir_op_info((enum ir_op)rec->op)->text;
	return false;
}

/* The variable of a record. */
static void put_temp(const struct printer *p, uint32_t r, struct buf *text)
{
	buf_add_ch(text, 't');
	buf_add_dec(text, p->pos[r]);
}

static bool put_operand(struct printer *p, ir_ref r, struct buf *text)
{
	if (ir_tag(r) == IR_TAG_CONST)
		return cprint_const(p->f, r, text) || refuse(p, &p->f->recs[0]);
	if (ir_tag(r) != IR_TAG_VALUE)
		return false;
	uint32_t i = ir_index(r);
	if (p->expr_off[i] != NOWHERE)
		buf_add(text, p->exprs.data + p->expr_off[i], p->expr_len[i]);
	else
		put_temp(p, i, text);
	return true;
}

/* Forms are names, numbers, calls and casts, which bind tighter than what uses them, but for these. */
static bool needs_parens(const struct ir_rec *rec, const struct ir_rec *user)
{
	/* A condition of a branch has parentheses of its own, an assignment needs none. */
	return (rec->op == IR_CMP || rec->op == IR_SEL) && user->op != IR_BR && user->op != IR_PUT;
}

/* The address a constant stands for, in the image. */
static bool put_gaddr(struct printer *p, const struct ir_rec *rec, struct buf *text)
{
	uint64_t va;
	if (!ir_const_get(p->f, rec->a, &va))
		return refuse(p, rec);
	buf_add_ch(text, '(');
	cprint_type((enum ir_width)p->f->machine->addr_width, text);
	buf_add_str(text, ")(m->image + ");
	cprint_hex(text, va, "u)");
	return true;
}

/* Comparing a value with itself is known, and compilers warn about it. */
static const char *self_compare(const struct ir_rec *rec)
{
	if (rec->op != IR_CMP || rec->a != rec->b)
		return NULL;
	return rec->kind == IR_CMP_EQ || rec->kind == IR_CMP_ULE || rec->kind == IR_CMP_SLE ? "1" : "0";
}

/* The expression of a record that has a value. */
static bool put_expr(struct printer *p, const struct ir_rec *rec, struct buf *text)
{
	const struct ir_func *f = p->f;
	if (rec->op == IR_GET) {
		buf_add_str(text, f->machine->locs[rec->aux].name);
		return true;
	}
	if (rec->op == IR_GADDR)
		return put_gaddr(p, rec, text);
	const char *known = self_compare(rec);
	if (known) {
		buf_printf(text, "(uint1_t)%s", known);
		return true;
	}
	const ir_ref refs[3] = {rec->a, rec->b, rec->c};
	size_t off[3] = {0};
	unsigned cnt = 0;
	bool ok = true;
	enum ir_width x = ir_ref_width(f, rec->a);
	p->parts.len = 0;
	for (; ok && cnt < 3 && ir_op_info((enum ir_op)rec->op)->signature[2 + cnt] && refs[cnt] != IR_REF_NONE; cnt++) {
		uint64_t v;
		off[cnt] = p->parts.len;
		if (rec->op == IR_VCVT && cnt == 1 && ir_const_get(f, refs[cnt], &v))
			buf_add_dec(&p->parts, v);
		else
			ok = put_operand(p, refs[cnt], &p->parts);
		buf_add_ch(&p->parts, '\0');
	}
	p->has_failed |= p->parts.failed;
	const char *operand[3] = {NULL};
	for (unsigned i = 0; i < cnt && !p->parts.failed; i++)
		operand[i] = p->parts.data + off[i];
	ok = ok && !p->parts.failed;
	/* What signature x names is the second operand where the first is the whole. */
	if (rec->op == IR_INSERT)
		x = ir_ref_width(f, rec->b);
	if (ok && rec->width != IR_W1 && (rec->op == IR_CMP || rec->op == IR_FCMP))
		ok = false;
	ok = ok && (cprint_expr(rec, x, operand, text) || refuse(p, rec));
	return ok;
}

/* --- the machine's state --------------------------------------------------------------------------------------- */
static void find_locs(struct printer *p)
{
	const struct ir_func *f = p->f;
	p->is_used_loc[f->machine->sp_loc] = true;
	for (uint32_t i = 0; i < f->order_cnt; i++) {
		const struct ir_rec *rec = &f->recs[f->order[i]];
		if (rec->op == IR_GET || rec->op == IR_PUT)
			p->is_used_loc[rec->aux] = true;
		if (rec->op != IR_INTRIN)
			continue;
		const struct ir_intrin *in = &f->intrins[rec->aux];
		for (unsigned k = 0; k < in->in_cnt; k++)
			p->is_used_loc[in->in[k]] = true;
		for (unsigned k = 0; k < in->out_cnt; k++)
			p->is_used_loc[in->out[k]] = true;
		if (in->alt_len)
			p->is_used_loc[in->alt_reg] = true;
	}
}

/* SCRY_SAVE and SCRY_LOAD move the variables to the state and back. */
static void put_state(struct printer *p)
{
	const struct ir_machine *m = p->f->machine;
	for (unsigned dir = 0; dir < 2; dir++) {
		buf_add_str(p->text, dir ? "#define SCRY_LOAD (" : "#define SCRY_SAVE (");
		bool is_first = true;
		for (unsigned i = 0; i < m->loc_cnt; i++) {
			if (!p->is_used_loc[i])
				continue;
			buf_add_str(p->text, is_first ? "" : ", ");
			buf_add_str(p->text, dir ? "" : "m->");
			buf_add_str(p->text, m->locs[i].name);
			buf_add_str(p->text, dir ? " = m->" : " = ");
			buf_add_str(p->text, m->locs[i].name);
			is_first = false;
		}
		buf_add_str(p->text, ")\n");
	}
}

static void put_head(struct printer *p)
{
	const struct ir_machine *m = p->f->machine;
	put_state(p);
	buf_printf(p->text, "void %s(struct ", p->opts->name);
	cprint_machine(m, p->text);
	buf_add_str(p->text, " *m)\n{\n");
	for (unsigned i = 0; i < m->loc_cnt; i++) {
		if (!p->is_used_loc[i])
			continue;
		buf_add_ch(p->text, '\t');
		cprint_type((enum ir_width)m->locs[i].width, p->text);
		buf_add_ch(p->text, ' ');
		buf_add_str(p->text, m->locs[i].name);
		buf_add_str(p->text, " = m->");
		buf_add_str(p->text, m->locs[i].name);
		buf_add_str(p->text, ";\n");
	}
}

/* --- statements ------------------------------------------------------------------------------------------------- */
static void put_comment(struct printer *p, ir_ref target)
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
static bool put_target(struct printer *p, ir_ref r)
{
	uint64_t va;
	if (!ir_const_get(p->f, r, &va))
		return put_operand(p, r, p->text);
	buf_add_str(p->text, "m->image + ");
	cprint_hex(p->text, va, "u");
	return true;
}

static void put_label(struct printer *p, uint32_t block)
{
	buf_add_ch(p->text, 'b');
	buf_add_dec(p->text, block);
}

/* `text` holds nothing of what comes back in a failed expression: the function is dropped then. */
static bool put_value(struct printer *p, ir_ref r)
{
	return put_operand(p, r, p->text);
}

static bool put_intrin(struct printer *p, uint32_t r)
{
	const struct ir_func *f = p->f;
	const struct ir_rec *rec = &f->recs[r];
	const struct ir_intrin *in = &f->intrins[rec->aux];
	buf_add_str(p->text, "\tSCRY_SAVE;\n");
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
	bool needs_ymm = false, needs_zmm = false, needs_x87 = false, needs_mmx = false;
	for (unsigned k = 0; k < in->in_cnt + in->out_cnt; k++) {
		const struct ir_loc *loc = &f->machine->locs[k < in->in_cnt ? in->in[k] : in->out[k - in->in_cnt]];
		needs_ymm |= loc->cls == IR_LOC_VEC_HI;
		needs_x87 |= loc->cls == IR_LOC_X87;
		needs_mmx |= loc->cls == IR_LOC_VEC && loc->width == IR_W64;
		/* The bits above 256 are only cleared by what knows nothing of AVX-512. */
		needs_zmm |= loc->cls == IR_LOC_MASK || loc->width == IR_W512 || (loc->width == IR_W256 && k < in->in_cnt);
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

static bool put_memop(struct printer *p, uint32_t r)
{
	const struct ir_func *f = p->f;
	const struct ir_rec *rec = &f->recs[r];
	unsigned bits = rec->aux;
	bool has_src = rec->kind == IR_MEMOP_COPY || rec->kind == IR_MEMOP_CMP;
	bool compares = rec->kind == IR_MEMOP_CMP || rec->kind == IR_MEMOP_SCAN;
	if (rec->c < 5)
		return refuse(p, rec);
	const ir_ref *l = f->lists + rec->b;
	unsigned n = p->pos[r];
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

/* What RES names: a variable of the MEMOP, or where the instruction left it. */
static bool put_res(struct printer *p, const struct ir_rec *rec)
{
	const struct ir_rec *of = rec_of(p, rec->a);
	if (!of)
		return refuse(p, rec);
	if (of->op == IR_MEMOP) {
		buf_printf(p->text, "t%u_%u", p->pos[ir_index(rec->a)], rec->aux);
		return true;
	}
	const struct ir_intrin *in = &p->f->intrins[of->aux];
	if (rec->aux >= in->out_cnt)
		return refuse(p, rec);
	buf_printf(p->text, "m->%s", p->f->machine->locs[in->out[rec->aux]].name);
	return true;
}

/* Whether control gets there by going on. */
static bool is_next(const struct printer *p, ir_ref block)
{
	return ir_index(block) == p->block + 1;
}

static void put_goto(struct printer *p, ir_ref block)
{
	buf_add_str(p->text, "goto ");
	put_label(p, ir_index(block));
	buf_add_str(p->text, ";\n");
}

/* The C form of the code at constant address `r`. */
static bool find_fn(struct printer *p, ir_ref r, char *name, size_t cap)
{
	uint64_t va;
	return p->opts->fn_of && ir_const_get(p->f, r, &va) && p->opts->fn_of(p->opts->ctx, va, name, cap);
}

static bool put_callee(struct printer *p, const struct ir_rec *rec)
{
	char name[128];
	if (find_fn(p, rec->a, name, sizeof(name))) {
		buf_printf(p->text, "scry_enter(m, %s", name);
		return true;
	}
	buf_printf(p->text, "scry_call%s(m, ", p->suffix);
	return put_target(p, rec->a);
}

/* The stack pointer's variable moved by so many bytes. */
static void put_sp(struct printer *p, uint32_t by)
{
	const char *sp = p->f->machine->locs[p->f->machine->sp_loc].name;
	buf_printf(p->text, "\t%s += %u;\n", sp, by);
}

static bool put_leave(struct printer *p, const struct ir_rec *rec)
{
	char name[128];
	buf_add_str(p->text, "\tSCRY_SAVE;\n\t");
	if (find_fn(p, rec->a, name, sizeof(name))) {
		buf_printf(p->text, "%s(m);", name);
	} else {
		buf_printf(p->text, "scry_leave%s(m, ", p->suffix);
		if (!put_target(p, rec->a))
			return refuse(p, rec);
		buf_add_str(p->text, ");");
	}
	put_comment(p, rec->a);
	buf_add_str(p->text, "\n\treturn;\n");
	return true;
}

static bool put_end(struct printer *p, uint32_t r)
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
	case IR_BR:
		buf_add_str(p->text, "\tif (");
		if (!put_value(p, rec->a))
			return false;
		buf_add_str(p->text, ")\n\t\t");
		put_goto(p, rec->b);
		if (is_next(p, rec->c))
			return true;
		buf_add_ch(p->text, '\t');
		put_goto(p, rec->c);
		return true;
	case IR_SWITCH:
		/* Addresses as the file gives them. */
		buf_add_str(p->text, "\tswitch (");
		if (!put_value(p, rec->a))
			return false;
		buf_add_str(p->text, " - m->image) {\n");
		for (uint32_t i = 0; i + 1 < rec->c; i += 2) {
			uint64_t v;
			if (!ir_const_get(f, f->lists[rec->b + i], &v))
				return refuse(p, rec);
			buf_printf(p->text, "\tcase 0x%llxu:\n\t\t", (unsigned long long)v);
			put_goto(p, f->lists[rec->b + i + 1]);
		}
		buf_add_str(p->text, "\tdefault:\n\t\t");
		put_goto(p, ir_block_ref(rec->aux));
		buf_add_str(p->text, "\t}\n");
		return true;
	case IR_IJMP:
		return put_leave(p, rec);
	case IR_RET:
		buf_printf(p->text, "\tm->pc = scry_load%u(%s);\n", 8 * word, f->machine->locs[f->machine->sp_loc].name);
		put_sp(p, word + rec->aux);
		buf_add_str(p->text, "\tSCRY_SAVE;\n\treturn;\n");
		return f->machine->calls_push || refuse(p, rec);
	default:
		buf_add_str(p->text, "\tscry_trap();\n");
		return rec->op == IR_TRAP || refuse(p, rec);
	}
}

static bool put_statement(struct printer *p, uint32_t r)
{
	const struct ir_func *f = p->f;
	const struct ir_rec *rec = &f->recs[r];
	switch (rec->op) {
	case IR_PUT: {
		const struct ir_rec *from = rec_of(p, rec->a);
		/* A location put back as it was read: nothing happens, and compilers warn. */
		if (from && from->op == IR_GET && from->aux == rec->aux && p->expr_off[ir_index(rec->a)] != NOWHERE)
			return true;
		buf_add_ch(p->text, '\t');
		buf_add_str(p->text, f->machine->locs[rec->aux].name);
		buf_add(p->text, " = ", 3);
		if (!put_value(p, rec->a))
			return refuse(p, rec);
		buf_add_str(p->text, ";\n");
		return true;
	}
	case IR_STORE:
	case IR_FENCE:
		buf_add_ch(p->text, '\t');
		if (!put_expr(p, rec, p->text))
			return false;
		buf_add_str(p->text, ";\n");
		return true;
	case IR_CALL:
		buf_add_str(p->text, "\tSCRY_SAVE;\n\t");
		if (!put_callee(p, rec))
			return refuse(p, rec);
		buf_add_str(p->text, ", ");
		if (!put_target(p, rec->b))
			return refuse(p, rec);
		buf_add_str(p->text, ");");
		put_comment(p, rec->a);
		buf_add_str(p->text, "\n\tSCRY_LOAD;\n");
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
	buf_add_ch(p->text, '\t');
	/* What nobody uses may still trap. */
	cprint_type((enum ir_width)rec->width, p->text);
	buf_add_ch(p->text, ' ');
	put_temp(p, r, p->text);
	buf_add(p->text, " = ", 3);
	if (rec->op == IR_RES ? !put_res(p, rec) : !put_expr(p, rec, p->text))
		return false;
	buf_add_str(p->text, ";\n");
	return true;
}

/* Whether record `r` becomes part of a later statement; keeps its expression if so. */
static bool keep_inline(struct printer *p, uint32_t r, uint32_t i)
{
	const struct ir_rec *rec = &p->f->recs[r];
	if (p->place[r] == i || !is_pure(rec))
		return false;
	size_t off = p->exprs.len;
	if (!put_expr(p, rec, &p->exprs))
		return false;
	size_t len = p->exprs.len - off;
	if (p->exprs.failed || off > UINT32_MAX - 256 || (len > INLINE_LEN_MAX && rec->op != IR_GET)) {
		p->exprs.len = off;
		return false;
	}
	if (needs_parens(rec, &p->f->recs[p->user[r]]) && buf_room(&p->exprs, 2)) {
		memmove(p->exprs.data + off + 1, p->exprs.data + off, len);
		p->exprs.data[off] = '(';
		p->exprs.len++;
		buf_add_ch(&p->exprs, ')');
	}
	p->expr_off[r] = (uint32_t)off;
	p->expr_len[r] = (uint32_t)(p->exprs.len - off);
	return !p->exprs.failed;
}

static bool put_block(struct printer *p, uint32_t block)
{
	const struct ir_func *f = p->f;
	const struct ir_block *b = &f->blocks[block];
	p->block = block;
	place_block(p, b);
	p->exprs.len = 0;
	if (p->is_target[block]) {
		put_label(p, block);
		buf_add_str(p->text, ":;");
		if (b->va != UINT64_MAX) {
			buf_add_str(p->text, " /* ");
			cprint_hex(p->text, b->va, " */");
		}
		buf_add_ch(p->text, '\n');
	}
	buf_add_str(p->text, "\t{\n");
	for (uint32_t i = b->first; i < b->last; i++) {
		uint32_t r = f->order[i];
		const struct ir_rec *rec = &f->recs[r];
		map_here(p, rec->origin);
		if (!p->use_cnt[r] && is_pure(rec))
			continue;
		if (keep_inline(p, r, i))
			continue;
		if (p->why || !put_statement(p, r))
			return false;
	}
	buf_add_str(p->text, "\t}\n");
	return !p->why;
}

static void look_around(struct printer *p)
{
	const struct ir_func *f = p->f;
	find_locs(p);
	for (uint32_t i = 0; i < f->order_cnt; i++) {
		uint32_t r = f->order[i];
		struct use_ctx u = {p, r};
		p->pos[r] = i;
		p->place[r] = i;
		ir_operands(f, &f->recs[r], count_use, &u);
		if (f->recs[r].op == IR_SWITCH)
			p->is_target[f->recs[r].aux] = true;
	}
}

static bool printer_init(struct printer *p, struct arena *a)
{
	const struct ir_func *f = p->f;
	size_t n = f->rec_cnt;
	p->use_cnt = arena_array(a, n + 1, sizeof(*p->use_cnt));
	p->user = arena_array(a, n + 1, sizeof(*p->user));
	p->place = arena_array(a, n + 1, sizeof(*p->place));
	p->last_use = arena_array(a, n + 1, sizeof(*p->last_use));
	p->expr_off = arena_array(a, n + 1, sizeof(*p->expr_off));
	p->expr_len = arena_array(a, n + 1, sizeof(*p->expr_len));
	p->pos = arena_array(a, n + 1, sizeof(*p->pos));
	p->is_used_loc = arena_array(a, f->machine->loc_cnt, sizeof(*p->is_used_loc));
	p->next_put = arena_array(a, f->machine->loc_cnt, sizeof(*p->next_put));
	p->is_target = arena_array(a, f->block_cnt + 1, sizeof(*p->is_target));
	if (!p->use_cnt || !p->user || !p->place || !p->last_use || !p->expr_off || !p->expr_len || !p->pos || !p->next_put ||
	    !p->is_used_loc || !p->is_target)
		return false;
	memset(p->expr_off, 0xff, (n + 1) * sizeof(*p->expr_off));
	return true;
}

static void printer_fini(struct printer *p)
{
	buf_fini(&p->exprs);
	buf_fini(&p->parts);
}

struct err *cprint_func(const struct ir_func *f, const struct cprint_opts *opts, struct buf *text, struct cprint_map *map)
{
	struct printer p = {.f = f, .opts = opts, .text = text, .map = map, .line = 1,
			    .suffix = f->machine->addr_width == IR_W32 ? "_i386" : ""};
	size_t start = text->len;
	struct arena own = {0};
	if (!printer_init(&p, opts->scratch ? opts->scratch : &own)) {
		printer_fini(&p);
		arena_fini(&own);
		return &err_nomem;
	}
	look_around(&p);
	put_head(&p);
	for (uint32_t b = 0; b < f->block_cnt && !p.why; b++)
		if (!put_block(&p, b) && !p.why)
			p.why = "block";
	buf_add_str(text, "}\n#undef SCRY_SAVE\n#undef SCRY_LOAD\n");
	struct err *e = NULL;
	if (p.why) {
		text->len = start;
		e = err_new(ERR_UNSUPPORTED, "the function at 0x%llx: `%s` has no form in C yet", (unsigned long long)f->va, p.why);
	} else if (p.has_failed || text->failed || p.exprs.failed) {
		e = &err_nomem;
	}
	printer_fini(&p);
	arena_fini(&own);
	return e;
}
