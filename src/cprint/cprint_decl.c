/* SPDX-License-Identifier: Apache-2.0 */
#include "cprint/cprint_int.h"

#include <stdlib.h>
#include <string.h>

/* Variables: what they are declared as. */

/* Names in one line of declarations. */
#define LINE_MAX 12
/* Of one word. */
#define NUMBERS_MAX 1000
/* Sets of locations of all blocks: in larger functions every variable has a value from the beginning. */
#define UNSET_WORDS_MAX (1u << 20)

static bool is_parameter(const struct cprint_printer *p, unsigned loc)
{
	for (unsigned i = 0; p->f->self && p->f->params && i < p->f->self->arg_cnt; i++)
		if (p->f->params[i] == loc)
			return true;
	return false;
}

bool cprint_is_signed_loc(const struct cprint_printer *p, unsigned loc)
{
	return p->opts->views && !cprint_is_in_state(p, loc) && !is_parameter(p, loc) && p->opts->views->locs[loc] == CPRINT_SIGNED;
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

/* --- data of the image ---------------------------------------------------------------------------------------- */
static int cmp_global(const void *x, const void *y)
{
	const struct cprint_global *a = x, *b = y;
	return a->va != b->va ? (a->va < b->va ? -1 : 1) : (int)a->width - (int)b->width;
}

static bool is_global(const struct ir_func *f, ir_ref addr, uint64_t *va)
{
	const struct ir_rec *rec = ir_tag(addr) == IR_TAG_VALUE ? &f->recs[ir_index(addr)] : NULL;
	return rec && rec->op == IR_GADDR && ir_const_get(f, rec->a, va);
}

static bool name_global(struct cprint_printer *p, struct cprint_global *g, struct arena *a)
{
	char name[160];
	unsigned bits = ir_bits((enum ir_width)g->width);
	if (!p->opts->global_of(p->opts->ctx, g->va, bits, name, sizeof(name)))
		return true;
	g->name = arena_strndup(a, name, strlen(name));
	buf_printf(p->opts->defines, "#define %s (*(u%u *)(m->image + 0x%llx))\n", name, bits, (unsigned long long)g->va);
	return g->name != NULL;
}

bool cprint_define_globals(struct cprint_printer *p, struct arena *a)
{
	const struct ir_func *f = p->f;
	uint32_t cnt = 0, out = 0;
	uint64_t va;
	if (!p->opts->global_of || !p->opts->defines || f->machine->addr_width != IR_W64)
		return true;
	p->globals = ARENA_RAW_ARRAY(a, struct cprint_global, f->order_cnt + (size_t)1);
	if (!p->globals)
		return false;
	for (uint32_t i = 0; i < f->order_cnt; i++) {
		const struct ir_rec *rec = &f->recs[f->order[i]];
		if ((rec->op == IR_LOAD || rec->op == IR_STORE) && rec->width <= IR_W64 && is_global(f, rec->a, &va) &&
		    cprint_inline(p, rec->a))
			p->globals[cnt++] = (struct cprint_global){.va = va, .width = rec->width};
	}
	qsort(p->globals, cnt, sizeof(*p->globals), cmp_global);
	for (uint32_t i = 0; i < cnt; i++) {
		if (out && !cmp_global(&p->globals[out - 1], &p->globals[i]))
			continue;
		p->globals[out] = p->globals[i];
		if (!name_global(p, &p->globals[out++], a))
			return false;
	}
	p->global_cnt = out;
	return true;
}

const char *cprint_global(const struct cprint_printer *p, ir_ref addr, enum ir_width w)
{
	struct cprint_global key = {.width = (uint8_t)w};
	if (!p->global_cnt || !cprint_inline(p, addr) || !is_global(p->f, addr, &key.va))
		return NULL;
	const struct cprint_global *g = bsearch(&key, p->globals, p->global_cnt, sizeof(key), cmp_global);
	return g ? g->name : NULL;
}

/* --- variables --------------------------------------------------------------------------------------------------- */
/* Which locations each block sets, and which it reads before it sets them. */
static void look_at_block(const struct ir_func *f, uint32_t b, uint64_t *sets, uint64_t *reads)
{
	for (uint32_t i = f->blocks[b].first; i < f->blocks[b].last; i++) {
		const struct ir_rec *rec = &f->recs[f->order[i]];
		uint64_t bit = (uint64_t)1 << rec->aux % 64;
		if (rec->flags & IR_F_TYPED)
			continue;
		if (rec->op == IR_GET && !(sets[rec->aux / 64] & bit))
			reads[rec->aux / 64] |= bit;
		if (rec->op == IR_PUT)
			sets[rec->aux / 64] |= bit;
	}
}

bool cprint_find_unset(struct cprint_printer *p, struct arena *a)
{
	const struct ir_func *f = p->f;
	size_t words = ((size_t)f->machine->loc_cnt + 63) / 64, n = f->block_cnt;
	struct ir_edges succs;
	uint32_t *todo = ARENA_RAW_ARRAY(a, uint32_t, n + 1), depth = 0;
	uint8_t *is_open = ARENA_ARRAY(a, uint8_t, n + 1);
	p->unset = ARENA_ARRAY(a, uint64_t, words + 1);
	if (!p->unset || !todo || !is_open)
		return false;
	if (n * words > UNSET_WORDS_MAX) {
		memset(p->unset, 0xff, words * sizeof(*p->unset));
		return true;
	}
	uint64_t *sets = ARENA_ARRAY(a, uint64_t, n * words + 1), *reads = ARENA_ARRAY(a, uint64_t, n * words + 1);
	uint64_t *in = ARENA_ARRAY(a, uint64_t, n * words + 1);
	if (!sets || !reads || !in || !ir_succs(f, &succs))
		return false;
	for (uint32_t b = 0; b < n; b++)
		look_at_block(f, b, &sets[b * words], &reads[b * words]);
	/* What may not have been set yet goes on along the ways out, until none has news. */
	if (n) {
		memset(in, 0xff, words * sizeof(*in));
		todo[depth++] = 0;
		is_open[0] = 1;
	}
	while (depth) {
		uint32_t b = todo[--depth];
		is_open[b] = 0;
		for (uint32_t k = succs.first[b]; k < succs.first[b + 1]; k++) {
			uint32_t to = succs.list[k];
			uint64_t news = 0;
			for (size_t w = 0; w < words; w++) {
				uint64_t more = in[b * words + w] & ~sets[b * words + w] & ~in[to * words + w];
				in[to * words + w] |= more;
				news |= more;
			}
			if (news && !is_open[to]) {
				is_open[to] = 1;
				todo[depth++] = to;
			}
		}
	}
	for (size_t i = 0; i < n * words; i++)
		p->unset[i % words] |= in[i] & reads[i];
	return true;
}

static bool is_taken(const struct cprint_printer *p, const char *name, uint32_t temps)
{
	const struct ir_machine *m = p->f->machine;
	for (unsigned i = 0; i < m->loc_cnt; i++)
		if (!cprint_is_in_state(p, i) && !strcmp(m->locs[i].name, name))
			return true;
	for (uint32_t i = 0; i < temps; i++)
		if (p->temp_names[i] && !strcmp(p->temp_names[i], name))
			return true;
	return false;
}

bool cprint_name_temps(struct cprint_printer *p, struct arena *a)
{
	const char *const *words = p->opts->views ? p->opts->views->words : NULL;
	if (!words)
		return true;
	p->temp_names = ARENA_ARRAY(a, const char *, p->temp_cnt + (size_t)1);
	for (uint32_t i = 0; p->temp_names && i < p->temp_cnt; i++) {
		const char *word = p->f->recs[p->temps[i]].op == IR_MEMOP ? NULL : words[p->temps[i]], *name = word;
		size_t len = word ? strlen(word) : 0;
		const char *sep = len && word[len - 1] >= '0' && word[len - 1] <= '9' ? "_" : "";
		for (unsigned k = 2; name && is_taken(p, name, i); k++)
			name = k > NUMBERS_MAX ? NULL : arena_printf(a, "%s%s%u", word, sep, k);
		p->temp_names[i] = name;
	}
	return p->temp_names != NULL;
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
		if (!p->name_len[i] || cprint_is_in_state(p, i) || is_parameter(p, i))
			continue;
		next_name(&r, width, cprint_is_signed_loc(p, i));
		cprint_loc(p, i, p->text);
		if (!p->opts->is_state) {
			buf_add_str(p->text, " = m->");
			cprint_loc(p, i, p->text);
		} else if (p->unset[i / 64] >> i % 64 & 1) {
			buf_add_str(p->text, width < IR_W80 ? " = 0" : width < IR_W256 ? " = {0}" : " = {{0}}");
		}
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
