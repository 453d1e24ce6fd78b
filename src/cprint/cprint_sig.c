/* SPDX-License-Identifier: Apache-2.0 */
#include "cprint/cprint_int.h"

#include <stdio.h>
#include <string.h>

/* Functions with signatures: what their calls and returns look like, and how they meet code that is called with the state. */

/* --- calls and returns ------------------------------------------------------------------------------------------- */
/* Where, before `at` of the order, an argument or a result is handed over in a location; the last such. */
static const struct ir_rec *handed(const struct cprint_printer *p, uint32_t at, unsigned loc)
{
	for (; at > 0; at--) {
		const struct ir_rec *rec = &p->f->recs[p->f->order[at - 1]];
		if (rec->op == IR_CALL || ir_op_info((enum ir_op)rec->op)->effects & IR_ENDS)
			break;
		if (rec->op == IR_PUT && rec->flags & IR_F_TYPED && rec->aux == loc)
			return rec;
	}
	return NULL;
}

/* A call of a function that takes any number of arguments, and has its C with the state, is by a macro of its name. */
static void put_variadic_name(struct cprint_printer *p, uint64_t va, char *name, size_t cap)
{
	char entry[128], line[512];
	struct buf *to = p->opts->defines;
	p->opts->typed_name(p->opts->ctx, va, name, cap - 2);
	memcpy(name + strlen(name), "_v", 3);
	bool has_fn = p->opts->fn_of && p->opts->fn_of(p->opts->ctx, va, entry, sizeof(entry));
	int len = snprintf(line, sizeof(line), "#define %s(...) scry_pass(%s, 0x%llx, SCRY_ARGS(__VA_ARGS__))\n", name, has_fn ? entry : "NULL",
			   (unsigned long long)va);
	if (to && len > 0 && (size_t)len < sizeof(line) && !(to->len && memmem(to->data, to->len, line, (size_t)len)))
		buf_add(to, line, (size_t)len);
}

static bool put_call(struct cprint_printer *p, const struct ir_rec *rec, uint32_t at, struct buf *text)
{
	char name[128];
	uint64_t va;
	const struct ir_rec *to = ir_tag(rec->a) == IR_TAG_VALUE ? &p->f->recs[ir_index(rec->a)] : NULL;
	if (rec->aux >= p->f->sig_cnt || !p->opts->typed_name || !ir_const_get(p->f, to && to->op == IR_GADDR ? to->a : rec->a, &va))
		return false;
	const struct ir_sig *sig = &p->f->sigs[rec->aux];
	if (sig->is_variadic)
		put_variadic_name(p, va, name, sizeof(name));
	else
		p->opts->typed_name(p->opts->ctx, va, name, sizeof(name));
	buf_add_str(text, name);
	buf_add_ch(text, '(');
	for (unsigned i = 0; i < sig->arg_cnt; i++) {
		const struct ir_rec *put = handed(p, at, sig->args[i].loc);
		if (i)
			buf_add(text, ", ", 2);
		if (!put || !cprint_operand(p, put->a, CPRINT_LOOSE, text))
			return false;
	}
	if (sig->stack_cnt)
		buf_printf(text, " /* %u more on the stack */", sig->stack_cnt);
	buf_add_ch(text, ')');
	return true;
}

bool cprint_typed_call(struct cprint_printer *p, uint32_t r, struct buf *text)
{
	return r != CPRINT_NONE && put_call(p, &p->f->recs[r], p->pos[r], text);
}

static void put_line(struct cprint_printer *p, const char *s)
{
	cprint_indent(p);
	buf_add_str(p->text, s);
}

/* "return m->rax;", as far as the function gives anything. */
static void put_return_state(struct cprint_printer *p)
{
	const struct ir_sig *self = p->f->self;
	if (self->result_width == IR_W0) {
		put_line(p, "return;\n");
		return;
	}
	put_line(p, "return (");
	cprint_type((enum ir_width)self->result_width, p->text);
	buf_add_str(p->text, ")m->");
	buf_add_str(p->text, p->f->machine->locs[self->result].name);
	buf_add_str(p->text, ";\n");
}

/* Code without a signature that is jumped to: it is called with the state, and leaves there what it gives. */
static bool put_state_leave(struct cprint_printer *p, const struct ir_rec *end)
{
	char name[128];
	uint64_t va;
	bool is_number = end->flags & IR_F_COMPUTED, is_const = !is_number && ir_const_get(p->f, end->a, &va);
	cprint_indent(p);
	if (is_const && p->opts->fn_of && p->opts->fn_of(p->opts->ctx, va, name, sizeof(name))) {
		buf_printf(p->text, "scry_enter(m, %s, 0)", name);
	} else {
		buf_add_str(p->text, "scry_call(m, ");
		if (is_const) {
			buf_add_str(p->text, "m->image + ");
			cprint_hex(p->text, va, "");
		} else if (!cprint_operand(p, end->a, CPRINT_LOOSE, p->text)) {
			return cprint_refuse(p, end);
		}
		buf_add_str(p->text, ", 0)");
	}
	buf_add_ch(p->text, ';');
	cprint_comment(p, end->a);
	buf_add_ch(p->text, '\n');
	put_return_state(p);
	return true;
}

bool cprint_typed_leave(struct cprint_printer *p, uint32_t block, const struct ir_rec *end)
{
	const struct ir_sig *self = p->f->self;
	uint32_t at = p->f->blocks[block].last - 1;
	bool has_result = self->result_width != IR_W0;
	if (end->op == IR_RET) {
		const struct ir_rec *put = has_result ? handed(p, at, self->result) : NULL;
		put_line(p, put ? "return " : "return");
		if (put && !cprint_operand(p, put->a, CPRINT_LOOSE, p->text))
			return cprint_refuse(p, end);
		buf_add_str(p->text, ";\n");
		return put || !has_result || cprint_refuse(p, end);
	}
	if (!(end->flags & IR_F_TYPED))
		return put_state_leave(p, end);
	const struct ir_sig *sig = end->aux < p->f->sig_cnt ? &p->f->sigs[end->aux] : NULL;
	bool is_same = has_result && sig && sig->result_width != IR_W0 && sig->result == self->result;
	put_line(p, is_same ? "return " : "");
	if (!put_call(p, end, at, p->text))
		return cprint_refuse(p, end);
	buf_add_str(p->text, ";\n");
	if (!is_same)
		put_return_state(p);
	return true;
}

/* --- from outside --------------------------------------------------------------------------------------------------- */
static void put_head(const struct ir_sig *sig, const char *name, const struct cprint_printer *p, struct buf *text)
{
	if (sig->result_width == IR_W0)
		buf_add_str(text, "void");
	else
		cprint_type((enum ir_width)sig->result_width, text);
	buf_printf(text, " %s(", name);
	for (unsigned i = 0; i < sig->arg_cnt; i++) {
		unsigned loc = p && p->f->params ? p->f->params[i] : IR_LOC_NONE;
		buf_add_str(text, i ? ", " : "");
		cprint_type((enum ir_width)sig->args[i].width, text);
		if (loc != IR_LOC_NONE)
			buf_printf(text, " %s", p->f->machine->locs[loc].name);
		else
			buf_printf(text, " a%u", i);
	}
	buf_add_str(text, sig->arg_cnt ? ")" : "void)");
}

void cprint_prototype(const struct ir_sig *sig, const char *name, struct buf *text)
{
	put_head(sig, name, NULL, text);
}

void cprint_head(const struct cprint_printer *p, struct buf *text)
{
	put_head(p->f->self, p->opts->name, p, text);
}

static void put_member(const struct ir_machine *m, unsigned loc, unsigned width, struct buf *text)
{
	if (m->locs[loc].width != width) {
		buf_add_ch(text, '(');
		cprint_type((enum ir_width)width, text);
		buf_add_ch(text, ')');
	}
	buf_printf(text, "m->%s", m->locs[loc].name);
}

void cprint_entry(const struct ir_machine *m, const struct ir_sig *sig, const char *entry, const char *name, struct buf *text)
{
	buf_printf(text, "void %s(struct ", entry);
	cprint_machine(m, text);
	buf_add_str(text, " *m)\n{\n\tstruct ");
	cprint_machine(m, text);
	buf_add_str(text, " *outer = scry_m;\n\tscry_m = m;\n\t");
	if (!sig) {
		buf_printf(text, "%s(m);\n\tscry_m = outer;\n}\n", name);
		return;
	}
	buf_add_str(text, "uintptr_t pc = scry_load64(m->rsp);\n\tm->rsp += 8;\n\t");
	if (sig->result_width != IR_W0)
		buf_printf(text, "m->%s = ", m->locs[sig->result].name);
	buf_printf(text, "%s(", name);
	for (unsigned i = 0; i < sig->arg_cnt; i++) {
		buf_add_str(text, i ? ", " : "");
		put_member(m, sig->args[i].loc, sig->args[i].width, text);
	}
	buf_add_str(text, ");\n\tm->pc = pc;\n\tscry_m = outer;\n}\n");
}

void cprint_stub(const struct ir_machine *m, const struct ir_sig *sig, const char *name, uint64_t va, const char *state_fn, struct buf *text)
{
	cprint_prototype(sig, name, text);
	buf_add_str(text, "\n{\n\tstruct ");
	cprint_machine(m, text);
	buf_add_str(text, " *const m = scry_m;\n");
	for (unsigned i = 0; i < sig->arg_cnt; i++)
		buf_printf(text, "\tm->%s = a%u;\n", m->locs[sig->args[i].loc].name, i);
	if (state_fn)
		buf_printf(text, "\tscry_enter(m, %s, 0);\n", state_fn);
	else
		buf_printf(text, "\tscry_call(m, m->image + 0x%llx, 0);\n", (unsigned long long)va);
	if (sig->result_width != IR_W0) {
		buf_add_str(text, "\treturn ");
		put_member(m, sig->result, sig->result_width, text);
		buf_add_str(text, ";\n");
	}
	buf_add_str(text, "}\n");
}
