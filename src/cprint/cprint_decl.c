/* SPDX-License-Identifier: Apache-2.0 */
#include "cprint/cprint_int.h"

/* Variables: what they are declared as. */

/* Names in one line of declarations. */
#define LINE_MAX 12

bool cprint_is_signed_loc(const struct cprint_printer *p, unsigned loc)
{
	return p->opts->views && !cprint_is_in_state(p, loc) && p->opts->views->locs[loc] == CPRINT_SIGNED;
}

bool cprint_is_signed_value(const struct cprint_printer *p, ir_ref r)
{
	return p->opts->views && p->opts->views->recs[ir_index(r)] == CPRINT_SIGNED;
}

/* The type's name is that of a width, with a sign or without. */
static void put_type(unsigned width, bool is_signed, struct buf *text)
{
	size_t at = text->len;
	cprint_type((enum ir_width)width, text);
	if (is_signed && text->len > at) {
		text->len--;
		memmove(text->data + at, text->data + at + 1, text->len - at);
	}
}

/* A run of names of one type. */
struct run {
	struct cprint_printer *p;
	unsigned width, cnt;
	bool is_signed;
};

static void next_name(struct run *r, unsigned width, bool is_signed)
{
	struct buf *text = r->p->text;
	bool is_same = r->cnt && r->width == width && r->is_signed == is_signed;
	if (is_same && r->cnt % LINE_MAX) {
		buf_add(text, ", ", 2);
	} else {
		buf_add_str(text, r->cnt ? ";\n\t" : "\t");
		put_type(width, is_signed, text);
		buf_add_ch(text, ' ');
		r->cnt = 0;
	}
	r->width = width;
	r->is_signed = is_signed;
	r->cnt++;
}

void cprint_declare_locs(struct cprint_printer *p)
{
	const struct ir_machine *m = p->f->machine;
	struct run r = {.p = p};
	for (unsigned i = 0; i < m->loc_cnt; i++) {
		unsigned width = m->locs[i].width;
		if (!p->name_len[i] || cprint_is_in_state(p, i))
			continue;
		next_name(&r, width, cprint_is_signed_loc(p, i));
		cprint_loc(p, i, p->text);
		buf_add_str(p->text, !p->opts->is_state ? " = m->" : width < IR_W80 ? " = 0" : width < IR_W256 ? " = {0}" : " = {{0}}");
		if (!p->opts->is_state)
			cprint_loc(p, i, p->text);
	}
	if (r.cnt)
		buf_add_str(p->text, ";\n");
}

/* Of a repeated string operation: what it leaves. */
static void declare_memop(struct cprint_printer *p, const struct ir_rec *rec, unsigned n)
{
	struct buf *text = p->text;
	unsigned bits = rec->aux;
	bool has_src = rec->kind == IR_MEMOP_COPY || rec->kind == IR_MEMOP_CMP;
	buf_printf(text, "\tuintptr_t t%u_0, t%u_%u;\n", n, n, has_src ? 1 : 2);
	buf_printf(text, has_src ? "\tuintptr_t t%u_2;\n" : "\tuint%u_t t%u_1;\n", has_src ? n : bits, n);
	buf_printf(text, "\tuint%u_t t%u_3, t%u_4;\n", bits, n, n);
}

void cprint_declare_temps(struct cprint_printer *p)
{
	const struct ir_func *f = p->f;
	struct run r = {.p = p};
	for (unsigned pass = 0; pass < 2 * IR_W_COUNT; pass++) {
		for (uint32_t i = 0; i < p->temp_cnt; i++) {
			const struct ir_rec *rec = &f->recs[p->temps[i]];
			bool is_signed = cprint_is_signed_value(p, ir_ref_make(IR_TAG_VALUE, p->temps[i]));
			if (rec->op == IR_MEMOP || rec->width != pass / 2 || is_signed != (pass & 1))
				continue;
			next_name(&r, rec->width, is_signed);
			cprint_temp(p, p->temps[i], p->text);
		}
	}
	if (r.cnt)
		buf_add_str(p->text, ";\n");
	for (uint32_t i = 0; i < p->temp_cnt; i++)
		if (f->recs[p->temps[i]].op == IR_MEMOP)
			declare_memop(p, &f->recs[p->temps[i]], i + 1);
}
