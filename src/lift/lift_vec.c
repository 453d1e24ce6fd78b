/* SPDX-License-Identifier: Apache-2.0 */
#include "lift/lift_vec_int.h"

/* Reading and writing vector registers. */

bool lift_vec_plain(struct lift_x86 *x, unsigned cnt)
{
	ir_ref addr;
	if (x->in.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY && !lift_is_vex(x))
		return false;
	if (cnt > x->op_cnt)
		return false;
	for (unsigned i = 0; i < cnt; i++) {
		if (!lift_is_imm(x, i) && lift_vec(x, i) < 0 && !(lift_is_mem(x, i) && lift_address(x, i, &addr)))
			return false;
	}
	return true;
}

unsigned lift_vec_first(const struct lift_x86 *x)
{
	unsigned regs = 0;
	while (regs < x->in.operand_count_visible && !lift_is_imm(x, regs))
		regs++;
	return lift_is_vex(x) && regs >= 3 ? 1 : 0;
}

struct lift_vec lift_vec_read(struct lift_x86 *x, unsigned i)
{
	struct lift_vec v = {.cnt = x->ops[i].size == 256 ? 2 : 1};
	ir_ref addr;
	if (lift_address(x, i, &addr)) {
		v.half[0] = lift_load(x, IR_W128, addr);
		if (v.cnt == 2)
			v.half[1] = lift_load(x, IR_W128, lift_op(x, IR_ADD, x->aw, addr, lift_k(x, x->aw, 16)));
		return v;
	}
	unsigned r = (unsigned)lift_vec(x, i);
	v.half[0] = lift_get(x, lift_xmm_loc(r));
	if (v.cnt == 2)
		v.half[1] = lift_get(x, lift_ymmh_loc(r));
	return v;
}

ir_ref lift_vec_low(struct lift_x86 *x, unsigned i, enum ir_width w)
{
	ir_ref addr;
	if (lift_address(x, i, &addr))
		return lift_load(x, w, addr);
	return lift_extract(x, w, lift_get(x, lift_xmm_loc((unsigned)lift_vec(x, i))), 0);
}

void lift_vec_write(struct lift_x86 *x, unsigned i, struct lift_vec v)
{
	ir_ref addr;
	if (lift_address(x, i, &addr)) {
		for (unsigned k = 0; k < v.cnt; k++)
			lift_store(x, lift_op(x, IR_ADD, x->aw, addr, lift_k(x, x->aw, 16 * k)), v.half[k]);
		return;
	}
	unsigned r = (unsigned)lift_vec(x, i);
	lift_put(x, lift_xmm_loc(r), v.half[0]);
	if (!lift_is_vex(x))
		return;
	lift_put(x, lift_ymmh_loc(r), v.cnt == 2 ? v.half[1] : lift_k(x, IR_W128, 0));
	lift_put(x, lift_zmmh_loc(r), lift_k(x, IR_W256, 0));
}

void lift_vec_merge(struct lift_x86 *x, unsigned i, unsigned from, ir_ref v)
{
	ir_ref old = lift_get(x, lift_xmm_loc((unsigned)lift_vec(x, from)));
	lift_vec_write(x, i, (struct lift_vec){{lift_insert(x, old, v, 0), IR_REF_NONE}, 1});
}

void lift_vec_zext(struct lift_x86 *x, unsigned i, ir_ref v)
{
	lift_vec_write(x, i, (struct lift_vec){{lift_zext(x, IR_W128, v), IR_REF_NONE}, 1});
}

ir_ref lift_perm(struct lift_x86 *x, ir_ref a, ir_ref b, const uint8_t index[16])
{
	uint64_t words[2] = {0, 0};
	for (unsigned i = 0; i < 16; i++)
		words[i / 8] |= (uint64_t)index[i] << i % 8 * 8;
	const struct ir_rec rec = {.op = IR_VPERM, .width = IR_W128, .a = a, .b = b, .c = ir_const_wide(x->f, IR_W128, words)};
	return ir_emit(x->f, &rec);
}

ir_ref lift_vmap(struct lift_x86 *x, uint32_t lane, ir_ref a, ir_ref b)
{
	const struct ir_rec rec = {.op = IR_VMAP, .width = (uint8_t)lift_width(x, a), .a = a, .b = b, .c = IR_REF_NONE, .aux = lane};
	return ir_emit(x->f, &rec);
}
