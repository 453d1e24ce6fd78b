/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir_int.h"

#include <string.h>

/* IR to text; the grammar is at ir_parse.c. */

struct printer {
	const struct ir_func *f;
	const uint32_t *number; /* of a record: its place in the text */
	struct buf *b;
};

static void put_words(struct buf *b, const uint64_t *words, unsigned cnt)
{
	buf_add_str(b, "0x");
	while (cnt > 1 && !words[cnt - 1])
		cnt--;
	buf_add_hex(b, words[cnt - 1], 1);
	for (unsigned i = cnt - 1; i-- > 0;)
		buf_add_hex(b, words[i], 16);
}

static void put_ref(struct printer *p, ir_ref r)
{
	buf_add_ch(p->b, ' ');
	switch (ir_tag(r)) {
	case IR_TAG_VALUE:
		buf_printf(p->b, "%%%u", ir_index(r) < p->f->rec_cnt ? p->number[ir_index(r)] : 0);
		break;
	case IR_TAG_CONST: {
		enum ir_width w = ir_ref_width(p->f, r);
		const uint64_t *words = ir_const_words(p->f, r);
		if (words)
			put_words(p->b, words, ir_words(w));
		buf_printf(p->b, ":%u", ir_bits(w));
		break;
	}
	case IR_TAG_BLOCK:
		buf_printf(p->b, "b%u", ir_index(r));
		break;
	default:
		buf_add_ch(p->b, '_');
	}
}

static void put_op(struct buf *b, enum ir_op op, enum ir_kind kind)
{
	buf_add_str(b, ir_op_info(op)->text);
	if (kind != IR_KIND_NONE)
		buf_printf(b, ".%s", ir_kind_info(kind)->text);
}

static const char *loc_name(const struct printer *p, uint32_t loc)
{
	return loc < p->f->machine->loc_cnt ? p->f->machine->locs[loc].name : "?";
}

static void put_aux(struct printer *p, const struct ir_rec *rec)
{
	switch (ir_aux((enum ir_op)rec->op)) {
	case IR_AUX_LOC:
		buf_printf(p->b, " %s", loc_name(p, rec->aux));
		break;
	case IR_AUX_NUMBER:
		buf_printf(p->b, " #%u", rec->aux);
		break;
	case IR_AUX_LANE:
		buf_add_str(p->b, " <");
		put_op(p->b, ir_lane_op(rec->aux), ir_lane_kind(rec->aux));
		buf_printf(p->b, " %u>", ir_bits(ir_lane_width(rec->aux)));
		break;
	case IR_AUX_BLOCK:
		buf_printf(p->b, " b%u", rec->aux);
		break;
	default:
		break;
	}
}

static void put_rec(struct printer *p, const struct ir_rec *rec, uint32_t number)
{
	struct ir_shape s = ir_shape((enum ir_op)rec->op);
	const ir_ref refs[3] = {rec->a, rec->b, rec->c};
	if (s.result != '-')
		buf_printf(p->b, "%%%u:%u = ", number, ir_bits((enum ir_width)rec->width));
	else if (rec->op == IR_MEMOP || rec->op == IR_INTRIN)
		buf_printf(p->b, "%%%u = ", number);
	put_op(p->b, (enum ir_op)rec->op, (enum ir_kind)rec->kind);
	put_aux(p, rec);
	for (unsigned i = 0; i < s.cnt; i++) {
		if (refs[i] != IR_REF_NONE || (i + 1 < s.cnt && refs[i + 1] != IR_REF_NONE))
			put_ref(p, refs[i]);
	}
	if (s.has_list) {
		buf_add_str(p->b, " (");
		for (uint32_t i = 0; i < rec->c && rec->b + i < p->f->list_cnt; i++)
			put_ref(p, p->f->lists[rec->b + i]);
		buf_add_str(p->b, " )");
	}
	if (rec->flags & IR_F_BE)
		buf_add_str(p->b, " !be");
	if (rec->flags & IR_F_VOLATILE)
		buf_add_str(p->b, " !volatile");
	if (rec->flags & IR_F_TYPED)
		buf_add_str(p->b, " !typed");
	buf_add_ch(p->b, '\n');
}

static void put_locs(struct printer *p, const char *what, const uint16_t *locs, unsigned cnt)
{
	buf_printf(p->b, " %s (", what);
	for (unsigned i = 0; i < cnt && i < IR_INTRIN_IO_MAX; i++)
		buf_printf(p->b, " %s", loc_name(p, locs[i]));
	buf_add_str(p->b, " )");
}

static void put_intrin(struct printer *p, uint32_t i)
{
	const struct ir_intrin *in = &p->f->intrins[i];
	buf_printf(p->b, "intrin %u %s 0x%llx ", i, in->mnemonic, (unsigned long long)in->va);
	buf_add_hexbytes(p->b, in->bytes, in->len);
	put_locs(p, "in", in->in, in->in_cnt);
	put_locs(p, "out", in->out, in->out_cnt);
	buf_printf(p->b, " mem %u %s%s%s%s x87 %d", in->mem_len, in->reads_mem ? "r" : "-", in->writes_mem ? "w" : "-",
		   in->is_system ? "s" : "-", in->is_wide ? "z" : "-", in->x87_top);
	if (in->alt_len) {
		buf_printf(p->b, " alt %s ", loc_name(p, in->alt_reg));
		buf_add_hexbytes(p->b, in->alt_bytes, in->alt_len);
	}
	buf_add_ch(p->b, '\n');
}

void ir_print(struct ir_func *f, struct buf *b)
{
	uint32_t *number = ARENA_ARRAY(f->arena, uint32_t, f->rec_cnt + 1);
	if (!number) {
		b->failed = true;
		return;
	}
	uint32_t next = 0;
	for (uint32_t k = 0; k < f->block_cnt; k++) {
		for (uint32_t i = f->blocks[k].first; i < f->blocks[k].last; i++)
			number[f->order[i]] = next++;
	}
	struct printer p = {.f = f, .number = number, .b = b};
	buf_printf(b, "func %s 0x%llx\n", f->machine->name, (unsigned long long)f->va);
	for (uint32_t i = 0; i < f->intrin_cnt; i++)
		put_intrin(&p, i);
	uint32_t origin = UINT32_MAX;
	for (uint32_t k = 0; k < f->block_cnt; k++) {
		const struct ir_block *bl = &f->blocks[k];
		buf_printf(b, "block %u", k);
		if (bl->va != UINT64_MAX)
			buf_printf(b, " 0x%llx", (unsigned long long)bl->va);
		buf_add_ch(b, '\n');
		for (uint32_t i = bl->first; i < bl->last; i++) {
			const struct ir_rec *rec = &f->recs[f->order[i]];
			if (rec->origin != origin && rec->origin < f->origin_cnt) {
				origin = rec->origin;
				buf_printf(b, "insn 0x%llx %u\n", (unsigned long long)f->origins[origin].va,
					   f->origins[origin].len);
			}
			put_rec(&p, rec, number[f->order[i]]);
		}
	}
}
