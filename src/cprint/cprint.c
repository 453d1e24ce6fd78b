/* SPDX-License-Identifier: Apache-2.0 */
#include "cprint/cprint.h"

#include "cprint/cprint_int.h"

#include <stdlib.h>
#include <string.h>

/*
 * Each record that must happen where it stands becomes a statement, and what is pure or a load, and used once, becomes part of the
 * expression that uses it, as long as nothing between the two could change it (a PUT of the location a GET read, a call, another access of
 * memory). A block is gone through twice: from its end, to know what is used and where it would be shown, and from its beginning, to know
 * what is too large for that. Then it is known what each block weighs, and the text is written as its structure says.
 */

/* An expression of more operations than this is given a variable; that also bounds how deep expressions nest. */
#define INLINE_COST_MAX 10
#define CALL_COST 4
/* As often a location, or one with an offset, is written again instead of being given a variable. */
#define AGAIN_MAX 3
/* Looks ahead no further than this for what an expression crosses. */
#define CROSS_MAX 256
/* Statements that are written again where a goto to them stood, up to where they leave: a return is as many as it restores. */
#define COPY_COST_MAX 12

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

const struct ir_rec *cprint_inline(const struct cprint_printer *p, ir_ref r)
{
	return ir_tag(r) == IR_TAG_VALUE && p->values[ir_index(r)].is_inline ? &p->f->recs[ir_index(r)] : NULL;
}

/* --- which values are part of another's expression ------------------------------------------------------------- */
bool cprint_is_safe_division(const struct ir_func *f, const struct ir_rec *rec)
{
	uint64_t v;
	if (rec->op != IR_DIV || !f || !ir_const_get(f, rec->b, &v) || !v)
		return false;
	return rec->kind == IR_DIV_UQUOT || rec->kind == IR_DIV_UREM || v != UINT64_MAX >> (64 - ir_bits((enum ir_width)rec->width));
}

bool cprint_is_pure(const struct ir_func *f, const struct ir_rec *rec)
{
	if (cprint_is_safe_division(f, rec))
		return true;
	return rec->width != IR_W0 && !(ir_op_info((enum ir_op)rec->op)->effects & ~(unsigned)IR_READS_LOC) &&
	       rec->op != IR_RES && rec->op != IR_PHI;
}

/* A location, or one moved by a number: cheap to write and to compute. */
static bool is_short(const struct ir_func *f, const struct ir_rec *rec)
{
	if (rec->op == IR_GADDR)
		return true;
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

bool cprint_is_in_state(const struct cprint_printer *p, unsigned loc)
{
	return p->opts->is_state && p->f->machine->locs[loc].cls != IR_LOC_VAR;
}

static bool is_variable(const struct cprint_printer *p, unsigned loc)
{
	return p->opts->is_state && p->f->machine->locs[loc].cls == IR_LOC_VAR;
}

/* Whether a call may be part of the statement at `to`: nothing happens in between, and nothing is looked at that it might change. */
static bool may_call_move(const struct cprint_printer *p, uint32_t call, uint32_t to)
{
	const struct ir_func *f = p->f;
	const struct ir_rec *into = &f->recs[f->order[to]];
	bool ok = into->op != IR_INTRIN && into->op != IR_MEMOP && into->op != IR_SWITCH;
	for (uint32_t i = p->pos[call] + 1; i < to && ok; i++) {
		const struct ir_rec *rec = &f->recs[f->order[i]];
		bool is_value = cprint_is_pure(f, rec) && (rec->op != IR_GET || rec->flags & IR_F_TYPED || is_variable(p, rec->aux));
		ok = is_value || (rec->op == IR_PUT && rec->flags & IR_F_TYPED);
	}
	return ok;
}

static bool may_move(const struct cprint_printer *p, const struct ir_rec *rec, const struct ahead *ahead, uint32_t from, uint32_t to)
{
	const struct ir_rec *into = &p->f->recs[p->f->order[to]];
	if (rec->op == IR_GET && cprint_is_in_state(p, rec->aux) && (into->op == IR_INTRIN || is_between(ahead->effect, from, to)))
		return false;
	/* A result is the call itself, written where that happens. */
	if (rec->op == IR_GET && rec->flags & IR_F_TYPED)
		return p->calls[p->f->order[from]] == CPRINT_NONE || may_call_move(p, p->calls[p->f->order[from]], to);
	if (rec->op == IR_GET)
		return !is_between(p->next_put[rec->aux], from, to) &&
		       (is_variable(p, rec->aux) || !is_between(ahead->call, from, to));
	if (cprint_is_pure(p->f, rec))
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
	struct cprint_value *v = &p->values[ir_index(r)];
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

/* Which call each result is of. */
static void find_results(struct cprint_printer *p, const struct ir_block *b)
{
	uint32_t call = CPRINT_NONE;
	for (uint32_t i = b->first; i < b->last; i++) {
		uint32_t r = p->f->order[i];
		const struct ir_rec *rec = &p->f->recs[r];
		if (rec->op == IR_CALL) {
			call = rec->flags & IR_F_TYPED ? r : CPRINT_NONE;
			p->pos[r] = i;
		}
		if (rec->op != IR_GET || !(rec->flags & IR_F_TYPED) || call == CPRINT_NONE)
			continue;
		p->calls[r] = call;
		p->calls[call] = r;
	}
}

/* From the end of the block back, so that it is known where all users of a value are shown before its turn comes. What is part of
 * an expression is shown where the whole expression is. */
static void place_block(struct cprint_printer *p, const struct ir_block *b)
{
	const struct ir_func *f = p->f;
	struct ahead ahead = {0, 0};
	uint32_t to = b->last - 1;
	find_results(p, b);
	for (uint32_t i = b->last; i-- > b->first;) {
		uint32_t r = f->order[i];
		const struct ir_rec *rec = &f->recs[r];
		struct cprint_value *v = &p->values[r];
		bool pure = cprint_is_pure(p->f, rec);
		if (rec->op == IR_CALL)
			to = i;
		/* What is handed over is written where the call is, or the return. */
		if (rec->op == IR_PUT && rec->flags & IR_F_TYPED) {
			use(p, rec->a, to);
			continue;
		}
		if (pure && !v->use_cnt)
			continue;
		/* What use() noted of its users is now decided on. */
		bool is_result = rec->op == IR_GET && rec->flags & IR_F_TYPED;
		bool once = v->use_cnt == 1 || (v->use_cnt && v->use_cnt <= AGAIN_MAX && is_short(f, rec)) || rec->op == IR_GET;
		once = is_result ? v->use_cnt == 1 : once;
		if (rec->op != IR_CALL)
			v->is_inline = once && v->use_cnt && v->place - i <= CROSS_MAX && may_move(p, rec, &ahead, i, v->place);
		if (rec->op == IR_CALL && v->is_inline) {
			/* It is written as its result is. */
			use_operands(p, rec, i);
			ahead.call = ahead.effect = i;
			continue;
		}
		if (!v->is_inline)
			v->place = i;
		if (v->is_inline && rec->op == IR_GET && rec->flags & IR_F_TYPED && p->calls[r] != CPRINT_NONE)
			p->values[p->calls[r]].is_inline = true;
		use_operands(p, rec, v->place);
		if (rec->op == IR_PUT)
			p->next_put[rec->aux] = i;
		else if (rec->op == IR_CALL)
			ahead.call = ahead.effect = i;
		else if (!pure && rec->op != IR_RES)
			ahead.effect = i;
	}
}

static unsigned call_cost(const struct cprint_printer *p, uint32_t call)
{
	unsigned cost = CALL_COST;
	for (uint32_t i = p->pos[call]; i > 0; i--) {
		const struct ir_rec *rec = &p->f->recs[p->f->order[i - 1]];
		if (rec->op == IR_CALL || ir_op_info((enum ir_op)rec->op)->effects & IR_ENDS)
			break;
		if (rec->op == IR_PUT && rec->flags & IR_F_TYPED && ir_tag(rec->a) == IR_TAG_VALUE && p->values[ir_index(rec->a)].is_inline)
			cost += p->values[ir_index(rec->a)].cost;
	}
	return cost;
}

/* Whether record `r` stays part of a later statement, now that what it uses is decided on. */
static bool keep_inline(struct cprint_printer *p, uint32_t r)
{
	const struct ir_rec *rec = &p->f->recs[r];
	struct cprint_value *v = &p->values[r];
	if (!v->is_inline)
		return false;
	/* A call that is part of a statement goes with its result. */
	if (rec->op == IR_CALL)
		return true;
	const ir_ref refs[3] = {rec->a, rec->b, rec->c};
	unsigned cost = 1, fixed = ir_fixed_operands((enum ir_op)rec->op);
	if (rec->op == IR_GET && p->calls[r] != CPRINT_NONE)
		cost += call_cost(p, p->calls[r]);
	for (unsigned i = 0; i < fixed; i++)
		if (ir_tag(refs[i]) == IR_TAG_VALUE && p->values[ir_index(refs[i])].is_inline)
			cost += p->values[ir_index(refs[i])].cost;
	v->is_inline = cost <= INLINE_COST_MAX;
	v->cost = (uint8_t)cost;
	if (!v->is_inline && rec->op == IR_GET && p->calls[r] != CPRINT_NONE)
		p->values[p->calls[r]].is_inline = false;
	return v->is_inline;
}

/* --- the machine's state --------------------------------------------------------------------------------------- */
static void use_loc(struct cprint_printer *p, unsigned loc)
{
	if (!p->name_len[loc])
		p->name_len[loc] = (uint8_t)strlen(p->f->machine->locs[loc].name);
}

/* Locations the function names. */
static void look_around(struct cprint_printer *p)
{
	const struct ir_func *f = p->f;
	use_loc(p, f->machine->sp_loc);
	for (uint32_t i = 0; i < f->order_cnt; i++) {
		const struct ir_rec *rec = &f->recs[f->order[i]];
		if ((rec->op == IR_GET || rec->op == IR_PUT) && !(rec->flags & IR_F_TYPED))
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
}

/* Whether the state is used at all: code that only goes round or stops does without. */
static bool names_state(const struct cprint_printer *p)
{
	for (uint32_t i = 0; i < p->f->order_cnt; i++) {
		const struct ir_rec *rec = &p->f->recs[p->f->order[i]];
		bool is_typed = rec->flags & IR_F_TYPED;
		bool is_loc = (rec->op == IR_GET || rec->op == IR_PUT) && cprint_is_in_state(p, rec->aux);
		bool is_call = rec->op == IR_CALL || rec->op == IR_IJMP || (rec->op == IR_RET && !p->f->self);
		bool takes_state = p->f->self && rec->op == IR_IJMP && p->f->self->result_width != IR_W0;
		if (((is_loc || is_call) && !is_typed) || takes_state || rec->op == IR_GADDR || rec->op == IR_INTRIN || rec->op == IR_SWITCH)
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
		cprint_loc(p, i, text);
		buf_add_ch(text, ')');
	}
	if (p->f->self) {
		cprint_head(p, text);
		buf_add_str(text, "\n{\n");
		if (names_state(p)) {
			buf_add_str(text, "\tstruct ");
			cprint_machine(m, text);
			buf_add_str(text, " *const m = scry_m;\n");
		}
	} else {
		buf_add_str(text, p->opts->is_state ? "void " : "\nvoid ");
		buf_add_str(text, p->opts->name);
		buf_add_str(text, "(struct ");
		cprint_machine(m, text);
		buf_add_str(text, " *m)\n{\n");
	}
	cprint_declare_locs(p);
	if (p->opts->is_state && !p->f->self && !names_state(p))
		buf_add_str(text, "\t(void)m;\n");
	cprint_declare_temps(p);
}

/* --- what blocks weigh ------------------------------------------------------------------------------------------ */
static void weigh_block(struct cprint_printer *p, uint32_t block)
{
	const struct ir_func *f = p->f;
	const struct ir_block *b = &f->blocks[block];
	struct str_block *out = &p->blocks[block];
	place_block(p, b);
	out->is_expr = true;
	p->parts[p->part_cnt++] = (struct cprint_part){block, b->first, b->last ? b->last - 1 : 0};
	for (uint32_t i = b->first; i + 1 < b->last; i++) {
		uint32_t r = f->order[i];
		const struct ir_rec *rec = &f->recs[r];
		/* A result is part of the call's statement, which may have been to be part of its own. */
		uint32_t call = rec->op == IR_GET && rec->flags & IR_F_TYPED ? p->calls[r] : CPRINT_NONE;
		bool is_written = call != CPRINT_NONE && !p->values[call].is_inline;
		if (cprint_is_idle(p, r) || keep_inline(p, r))
			continue;
		bool has_temp = rec->op == IR_MEMOP || (p->values[r].use_cnt && ir_op_info((enum ir_op)rec->op)->signature[0] != '-');
		if (has_temp) {
			p->temps[p->temp_cnt++] = r;
			p->values[r].temp = p->temp_cnt;
		}
		out->cost += !is_written;
		out->is_expr = out->is_expr && cprint_is_expr(p, rec);
	}
}

/* The graph of the function's blocks. */
static bool find_ends(struct cprint_printer *p, struct arena *a)
{
	const struct ir_func *f = p->f;
	uint32_t cnt = 0, at = 0;
	for (uint32_t b = 0; b < f->block_cnt; b++) {
		const struct ir_rec *end = ir_terminator(f, b);
		cnt += end && end->op == IR_SWITCH ? end->c / 2 : 0;
	}
	p->cases = ARENA_ARRAY(a, struct str_case, (size_t)cnt + 1);
	if (!p->cases)
		return false;
	for (uint32_t b = 0; b < f->block_cnt; b++) {
		const struct ir_rec *end = ir_terminator(f, b);
		struct str_block *out = &p->blocks[b];
		out->end = STR_END_LEAVE;
		if (end && end->op == IR_JMP) {
			out->end = STR_END_GOTO;
			out->to[0] = ir_index(end->a);
		} else if (end && end->op == IR_BR) {
			out->end = STR_END_COND;
			out->to[0] = ir_index(end->b);
			out->to[1] = ir_index(end->c);
		} else if (end && end->op == IR_SWITCH) {
			out->end = STR_END_SWITCH;
			out->to[1] = end->aux;
			out->first_case = at;
			for (uint32_t i = 0; i + 1 < end->c; i += 2) {
				uint64_t v;
				if (!ir_const_get(f, f->lists[end->b + i], &v))
					return cprint_refuse(p, end);
				uint32_t to = ir_index(f->lists[end->b + i + 1]);
				struct str_case *last = &p->cases[at ? at - 1 : 0];
				/* What follows on another and leads to the same is one with it. */
				if (at > out->first_case && end->flags & IR_F_COMPUTED && last->to == to && (uint64_t)last->hi + 1 == v)
					last->hi = (int64_t)v;
				else
					p->cases[at++] = (struct str_case){(int64_t)v, (int64_t)v, to};
			}
			out->case_cnt = at - out->first_case;
		} else {
			out->cost++;
		}
	}
	p->case_cnt = at;
	return true;
}

static struct err *structure(struct cprint_printer *p, struct arena *a)
{
	const struct str_graph g = {.blocks = p->blocks, .cases = p->cases, .block_cnt = p->part_cnt, .case_cnt = p->case_cnt};
	const struct str_opts o = {.copy_cost_max = COPY_COST_MAX};
	struct err *e = str_build(a, &g, &o, &p->tree);
	if (!e && p->opts->is_plain)
		*p->opts->is_plain = p->tree.is_plain;
	return e ? e : str_check(a, &g, &p->tree);
}

static bool printer_init(struct cprint_printer *p, struct arena *a)
{
	const struct ir_func *f = p->f;
	p->values = ARENA_ARRAY(a, struct cprint_value, f->rec_cnt + (size_t)1);
	p->name_len = ARENA_ARRAY(a, uint8_t, f->machine->loc_cnt);
	p->next_put = ARENA_ARRAY(a, uint32_t, f->machine->loc_cnt);
	p->temps = ARENA_RAW_ARRAY(a, uint32_t, f->rec_cnt + (size_t)1);
	size_t parts = 3 * (size_t)f->block_cnt + 2;
	p->for_first = STR_NONE;
	p->blocks = ARENA_ARRAY(a, struct str_block, parts);
	p->parts = ARENA_RAW_ARRAY(a, struct cprint_part, parts);
	p->is_named = ARENA_ARRAY(a, bool, parts);
	p->origin_lines = ARENA_ARRAY(a, uint32_t, f->origin_cnt + (size_t)1);
	p->calls = ARENA_RAW_ARRAY(a, uint32_t, f->rec_cnt + (size_t)1);
	p->pos = ARENA_RAW_ARRAY(a, uint32_t, f->rec_cnt + (size_t)1);
	if (!p->calls || !p->pos)
		return false;
	memset(p->calls, 0xff, f->rec_cnt * sizeof(*p->calls));
	return p->parts && p->values && p->temps && p->next_put && p->name_len && p->blocks && p->is_named && p->origin_lines;
}

static struct err *print(struct cprint_printer *p, struct arena *a)
{
	const struct ir_func *f = p->f;
	if (!printer_init(p, a))
		return &err_nomem;
	look_around(p);
	for (uint32_t b = 0; b < f->block_cnt; b++)
		weigh_block(p, b);
	bool ok = find_ends(p, a);
	if (!ok && !p->why)
		return &err_nomem;
	if (ok && !cprint_split(p, a))
		return &err_nomem;
	struct err *e = ok && f->block_cnt ? structure(p, a) : NULL;
	if (e)
		return e;
	if (p->opts->is_state && (!cprint_define_globals(p, a) || !cprint_find_unset(p, a) || !cprint_name_temps(p, a)))
		return &err_nomem;
	put_head(p);
	if (ok && f->block_cnt && !cprint_body(p) && !p->why)
		p->why = "block";
	buf_add_str(p->text, p->opts->is_state ? "}\n" : "}\n#undef SCRY_REGS\n");
	cprint_map_finish(p);
	if (p->why)
		return err_new(ERR_UNSUPPORTED, "the function at 0x%llx: `%s` has no form in C yet", (unsigned long long)f->va, p->why);
	return p->has_failed || p->text->failed ? &err_nomem : NULL;
}

struct err *cprint_func(const struct ir_func *f, const struct cprint_opts *opts, struct buf *text, struct cprint_map *map)
{
	struct cprint_printer p = {.f = f, .opts = opts, .text = text, .map = map, .line = 1,
				   .suffix = f->machine->addr_width == IR_W32 ? "_i386" : ""};
	size_t start = text->len;
	if (opts->defines)
		opts->defines->len = 0;
	struct arena own = {0};
	struct err *e = print(&p, opts->scratch ? opts->scratch : &own);
	if (e)
		text->len = start;
	arena_fini(&own);
	return e;
}
