/* SPDX-License-Identifier: Apache-2.0 */
#include "lift/lift_vec_int.h"

#include <string.h>

/* Packed arithmetic, shuffles, conversions of whole vectors. */

/* What is done to each half: `a` the first source, `b` the second. */
typedef ir_ref half_fn(struct lift_x86 *x, unsigned arg, ir_ref a, ir_ref b);

static bool each_half(struct lift_x86 *x, half_fn *fn, unsigned arg)
{
	unsigned first = lift_vec_first(x), second = first + 1;
	if (!lift_vec_plain(x, x->in.operand_count_visible) || second >= x->in.operand_count_visible || lift_is_imm(x, second))
		return false;
	struct lift_vec a = lift_vec_read(x, first), b = lift_vec_read(x, second);
	for (unsigned i = 0; i < a.cnt; i++)
		a.half[i] = fn(x, arg, a.half[i], b.half[i]);
	lift_vec_write(x, 0, a);
	return true;
}

static ir_ref record(struct lift_x86 *x, enum ir_op op, enum ir_kind kind, ir_ref a, ir_ref b, uint32_t aux)
{
	const struct ir_rec rec = {
		.op = (uint8_t)op, .width = IR_W128, .kind = (uint8_t)kind, .a = a, .b = b, .c = IR_REF_NONE, .aux = aux,
	};
	return ir_emit(x->f, &rec);
}

/* arg is ir_lane(), and what is special. */
static ir_ref packed_half(struct lift_x86 *x, unsigned arg, ir_ref a, ir_ref b)
{
	enum ir_op op = ir_lane_op(arg);
	enum ir_kind kind = ir_lane_kind(arg);
	uint32_t lane = arg & 0xffffff;
	switch (op) {
	case IR_AND:
	case IR_OR:
	case IR_XOR:
		return lift_op(x, op, IR_W128, arg & LIFT_NOT_A ? lift_not(x, a) : a, b);
	case IR_VPACK:
	case IR_VMADD:
	case IR_VMULE:
	case IR_VSAD:
		return record(x, op, kind, a, b, op == IR_VSAD ? 0 : ir_bits(ir_lane_width(arg)));
	case IR_FUN:
		return lift_vmap(x, lane, b, IR_REF_NONE);
	default:
		return arg & LIFT_SWAP ? lift_vmap(x, lane, b, a) : lift_vmap(x, lane, a, b);
	}
}

/* Two sources of the same register that cancel out. */
static bool is_zero_idiom(const struct lift_x86 *x, unsigned arg)
{
	unsigned first = lift_vec_first(x);
	int a = lift_vec(x, first), b = lift_vec(x, first + 1);
	return a >= 0 && a == b && (ir_lane_op(arg) == IR_XOR || ir_lane_op(arg) == IR_SUB);
}

bool lift_do_packed(struct lift_x86 *x, unsigned arg)
{
	if (ir_lane_op(arg) == IR_FUN) {
		/* One source, even with VEX. */
		if (!lift_vec_plain(x, 2))
			return false;
		struct lift_vec v = lift_vec_read(x, 1);
		for (unsigned i = 0; i < v.cnt; i++)
			v.half[i] = packed_half(x, arg, IR_REF_NONE, v.half[i]);
		lift_vec_write(x, 0, v);
		return true;
	}
	if (is_zero_idiom(x, arg) && lift_vec_plain(x, x->in.operand_count_visible)) {
		ir_ref zero = lift_k(x, IR_W128, 0);
		lift_vec_write(x, 0, (struct lift_vec){{zero, zero}, x->ops[0].size == 256 ? 2 : 1});
		return true;
	}
	return each_half(x, packed_half, arg);
}

/* --- shifts ------------------------------------------------------------------------------------------------ */
bool lift_do_packed_shift(struct lift_x86 *x, unsigned lane)
{
	unsigned cnt = x->in.operand_count_visible, first = cnt == 3 ? 1 : 0;
	if (!lift_vec_plain(x, cnt))
		return false;
	ir_ref n;
	if (lift_is_imm(x, cnt - 1))
		n = lift_k(x, IR_W8, x->ops[cnt - 1].imm.value.u);
	else if (lift_is_mem(x, cnt - 1))
		n = lift_extract(x, IR_W64, lift_vec_low(x, cnt - 1, IR_W128), 0);
	else
		n = lift_vec_low(x, cnt - 1, IR_W64);
	if (lift_is_mem(x, first))
		return false;
	struct lift_vec v = lift_vec_read(x, first);
	for (unsigned i = 0; i < v.cnt; i++)
		v.half[i] = record(x, IR_VSHIFT, IR_KIND_NONE, v.half[i], n, lane);
	lift_vec_write(x, 0, v);
	return true;
}

/* pslldq (arg 1), psrldq (arg 0): by bytes. */
bool lift_do_byte_shift(struct lift_x86 *x, unsigned is_left)
{
	unsigned cnt = x->in.operand_count_visible;
	uint8_t index[16];
	if (!lift_vec_plain(x, cnt) || !lift_is_imm(x, cnt - 1))
		return false;
	unsigned n = (unsigned)x->ops[cnt - 1].imm.value.u & 0xff;
	for (unsigned i = 0; i < 16; i++) {
		unsigned from = is_left ? i - n : i + n;
		index[i] = (uint8_t)(from < 16 ? from : 255);
	}
	struct lift_vec v = lift_vec_read(x, cnt == 3 ? 1 : 0);
	for (unsigned i = 0; i < v.cnt; i++)
		v.half[i] = lift_perm(x, v.half[i], v.half[i], index);
	lift_vec_write(x, 0, v);
	return true;
}

/* --- shuffles ---------------------------------------------------------------------------------------------- */
/* punpck, unpck: arg is the lane's bytes, in bit 8 whether of the high halves. */
static ir_ref unpack_half(struct lift_x86 *x, unsigned arg, ir_ref a, ir_ref b)
{
	unsigned bytes = arg & 0xff, base = arg >> 8 ? 8 : 0;
	uint8_t index[16];
	for (unsigned i = 0; i < 16; i++) {
		unsigned lane = i / bytes, in = i % bytes;
		index[i] = (uint8_t)(base + lane / 2 * bytes + in + (lane % 2 ? 16 : 0));
	}
	return lift_perm(x, a, b, index);
}

bool lift_do_unpack(struct lift_x86 *x, unsigned arg)
{
	return each_half(x, unpack_half, arg);
}

/* Byte indices of the immediate shuffles of one half; false: no such. */
static bool shuffle_index(ZydisMnemonic m, unsigned imm, unsigned half, uint8_t index[16])
{
	for (unsigned i = 0; i < 16; i++) {
		unsigned d = i / 4, w = i / 2, q = i / 8, from;
		switch (m) {
		case ZYDIS_MNEMONIC_PSHUFD:
		case ZYDIS_MNEMONIC_VPSHUFD:
		case ZYDIS_MNEMONIC_VPERMILPS:
			from = (imm >> 2 * d & 3) * 4 + i % 4;
			break;
		case ZYDIS_MNEMONIC_PSHUFLW:
		case ZYDIS_MNEMONIC_VPSHUFLW:
			from = w < 4 ? (imm >> 2 * w & 3) * 2 + i % 2 : i;
			break;
		case ZYDIS_MNEMONIC_PSHUFHW:
		case ZYDIS_MNEMONIC_VPSHUFHW:
			from = w < 4 ? i : 8 + (imm >> 2 * (w - 4) & 3) * 2 + i % 2;
			break;
		case ZYDIS_MNEMONIC_SHUFPS:
		case ZYDIS_MNEMONIC_VSHUFPS:
			from = (imm >> 2 * d & 3) * 4 + i % 4 + (d >= 2 ? 16 : 0);
			break;
		case ZYDIS_MNEMONIC_SHUFPD:
		case ZYDIS_MNEMONIC_VSHUFPD:
			from = (imm >> (q + 2 * half) & 1) * 8 + i % 8 + (q ? 16 : 0);
			break;
		case ZYDIS_MNEMONIC_VPERMILPD:
			from = (imm >> (q + 2 * half) & 1) * 8 + i % 8;
			break;
		case ZYDIS_MNEMONIC_PALIGNR:
		case ZYDIS_MNEMONIC_VPALIGNR:
			/* The second source is the low part. */
			from = i + imm;
			from = from < 16 ? from + 16 : from < 32 ? from - 16 : 255;
			break;
		case ZYDIS_MNEMONIC_PBLENDW:
		case ZYDIS_MNEMONIC_VPBLENDW:
			from = imm >> w & 1 ? i + 16 : i;
			break;
		case ZYDIS_MNEMONIC_BLENDPS:
		case ZYDIS_MNEMONIC_VBLENDPS:
		case ZYDIS_MNEMONIC_VPBLENDD:
			from = imm >> (d + 4 * half) & 1 ? i + 16 : i;
			break;
		case ZYDIS_MNEMONIC_BLENDPD:
		case ZYDIS_MNEMONIC_VBLENDPD:
			from = imm >> (q + 2 * half) & 1 ? i + 16 : i;
			break;
		default:
			return false;
		}
		index[i] = (uint8_t)from;
	}
	return true;
}

/* Shuffles with an immediate; arg is the number of sources. */
bool lift_do_shuffle(struct lift_x86 *x, unsigned sources)
{
	unsigned cnt = x->in.operand_count_visible;
	uint8_t index[16];
	if (!lift_vec_plain(x, cnt) || !lift_is_imm(x, cnt - 1))
		return false;
	unsigned imm = (unsigned)x->ops[cnt - 1].imm.value.u & 0xff;
	struct lift_vec b = lift_vec_read(x, cnt - 2), a = b;
	if (sources == 2)
		a = lift_vec_read(x, cnt == 4 ? 1 : 0);
	for (unsigned i = 0; i < a.cnt; i++) {
		if (!shuffle_index(x->in.mnemonic, imm, i, index))
			return false;
		a.half[i] = lift_perm(x, a.half[i], b.half[i], index);
	}
	lift_vec_write(x, 0, a);
	return true;
}

/* pshufb: an index with its top bit set gives 0; of the others four bits count. */
static ir_ref shufb_half(struct lift_x86 *x, unsigned arg, ir_ref a, ir_ref b)
{
	static const uint64_t mask[2] = {0x8f8f8f8f8f8f8f8f, 0x8f8f8f8f8f8f8f8f};
	const struct ir_rec rec = {
		.op = IR_VPERM, .width = IR_W128, .a = a, .b = a,
		.c = lift_op(x, IR_AND, IR_W128, b, ir_const_wide(x->f, IR_W128, mask)),
	};
	return ir_emit(x->f, &rec);
}

bool lift_do_pshufb(struct lift_x86 *x, unsigned arg)
{
	return each_half(x, shufb_half, arg);
}

/* movddup movsldup movshdup: arg is the mask of the byte index that goes, in bit 8 what is set instead. */
bool lift_do_movddup(struct lift_x86 *x, unsigned arg)
{
	uint8_t index[16];
	if (!lift_vec_plain(x, 2) || (lift_is_mem(x, 1) && x->ops[1].size == 64))
		return false;
	for (unsigned i = 0; i < 16; i++)
		index[i] = (uint8_t)((i & ~(arg & 0xff)) | (arg >> 8 ? arg & 0xff : 0));
	struct lift_vec v = lift_vec_read(x, 1);
	for (unsigned i = 0; i < v.cnt; i++)
		v.half[i] = lift_perm(x, v.half[i], v.half[i], index);
	lift_vec_write(x, 0, v);
	return true;
}

/* --- between vectors and general registers -------------------------------------------------------------------- */
/* pmovmskb movmskps movmskpd: arg is the lane in bits. */
bool lift_do_movmsk(struct lift_x86 *x, unsigned lane)
{
	unsigned num, off;
	enum ir_width w;
	if (lift_vec(x, 1) < 0 || !lift_is_reg(x, 0) || !lift_gpr(x->ops[0].reg.value, &num, &w, &off))
		return false;
	struct lift_vec v = lift_vec_read(x, 1);
	ir_ref all = IR_REF_NONE;
	for (unsigned i = v.cnt; i-- > 0;) {
		const struct ir_rec rec = {
			.op = IR_VMASK, .width = IR_W32, .a = v.half[i], .b = IR_REF_NONE, .c = IR_REF_NONE, .aux = lane,
		};
		ir_ref m = ir_emit(x->f, &rec);
		if (all != IR_REF_NONE)
			m = lift_op(x, IR_OR, IR_W32, m, lift_op(x, IR_SHL, IR_W32, all, lift_k(x, IR_W8, 128 / lane)));
		all = m;
	}
	lift_put(x, lift_gpr_loc(num), lift_zext(x, x->aw, all));
	return true;
}

/* pinsrb pinsrw pinsrd pinsrq: arg is the lane in bits. */
bool lift_do_pinsr(struct lift_x86 *x, unsigned lane)
{
	unsigned cnt = x->in.operand_count_visible, num, off;
	enum ir_width w = ir_width_of(lane), rw;
	ir_ref addr, v;
	if (x->in.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX || lift_vec(x, 0) < 0 || cnt < 3 || (cnt == 4 && lift_vec(x, 1) < 0))
		return false;
	if (lift_is_reg(x, cnt - 2) && lift_gpr(x->ops[cnt - 2].reg.value, &num, &rw, &off))
		v = lift_extract(x, w, lift_read_gpr(x, x->ops[cnt - 2].reg.value), 0);
	else if (lift_address(x, cnt - 2, &addr))
		v = lift_load(x, w, addr);
	else
		return false;
	unsigned at = (unsigned)x->ops[cnt - 1].imm.value.u % (128 / lane) * lane;
	ir_ref old = lift_get(x, lift_xmm_loc((unsigned)lift_vec(x, cnt == 4 ? 1 : 0)));
	lift_vec_write(x, 0, (struct lift_vec){{lift_insert(x, old, v, at), IR_REF_NONE}, 1});
	return true;
}

/* pextrb pextrw pextrd pextrq extractps: to a register zero-extended, or to memory. */
bool lift_do_pextr(struct lift_x86 *x, unsigned lane)
{
	unsigned num, off;
	enum ir_width w = ir_width_of(lane), rw;
	ir_ref addr;
	if (x->in.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX || lift_vec(x, 1) < 0 || !lift_is_imm(x, 2))
		return false;
	unsigned at = (unsigned)x->ops[2].imm.value.u % (128 / lane) * lane;
	ir_ref v = lift_extract(x, w, lift_get(x, lift_xmm_loc((unsigned)lift_vec(x, 1))), at);
	if (lift_is_reg(x, 0) && lift_gpr(x->ops[0].reg.value, &num, &rw, &off))
		lift_put(x, lift_gpr_loc(num), lift_zext(x, x->aw, v));
	else if (lift_address(x, 0, &addr))
		lift_store(x, addr, v);
	else
		return false;
	return true;
}

/* --- conversions ------------------------------------------------------------------------------------------- */
/* cvtdq2ps ..: arg is ir_lane() of the source, in bits 24 and up the result's width. 128 bits only. */
bool lift_do_pcvt(struct lift_x86 *x, unsigned arg)
{
	unsigned from = ir_bits(ir_lane_width(arg)), to = ir_bits((enum ir_width)(arg >> 24));
	if (!lift_vec_plain(x, 2) || x->ops[0].size != 128 || x->ops[1].size > 128)
		return false;
	/* As many lanes as the wider side has. */
	enum ir_width src = from < to ? IR_W64 : IR_W128;
	const struct ir_rec rec = {
		.op = IR_VCVT, .width = IR_W128, .a = lift_vec_low(x, 1, src), .b = lift_k(x, IR_W8, to), .c = IR_REF_NONE,
		.aux = arg & 0xffffff,
	};
	lift_vec_write(x, 0, (struct lift_vec){{ir_emit(x->f, &rec), IR_REF_NONE}, 1});
	return true;
}

/* pmovzxbw ..: arg as before; the source is as many lanes as fit the result. */
bool lift_do_pmovx(struct lift_x86 *x, unsigned arg)
{
	unsigned from = ir_bits(ir_lane_width(arg)), to = ir_bits((enum ir_width)(arg >> 24));
	unsigned halves = x->ops[0].size / 128, step = 128 * from / to;
	ir_ref addr;
	if (!lift_vec_plain(x, 2) || halves > 2)
		return false;
	struct lift_vec v = {.cnt = halves};
	for (unsigned i = 0; i < halves; i++) {
		ir_ref src;
		if (lift_address(x, 1, &addr))
			src = lift_load(x, ir_width_of(step), lift_op(x, IR_ADD, x->aw, addr, lift_k(x, x->aw, i * step / 8)));
		else
			src = lift_extract(x, ir_width_of(step), lift_get(x, lift_xmm_loc((unsigned)lift_vec(x, 1))), i * step);
		const struct ir_rec rec = {
			.op = IR_VCVT, .width = IR_W128, .a = lift_zext(x, IR_W64, src), .b = lift_k(x, IR_W8, to), .c = IR_REF_NONE,
			.aux = arg & 0xffffff,
		};
		v.half[i] = ir_emit(x->f, &rec);
	}
	lift_vec_write(x, 0, v);
	return true;
}

/* --- 256 bits ------------------------------------------------------------------------------------------------ */
/* vpbroadcastb ..: arg is the lane in bits. */
bool lift_do_broadcast(struct lift_x86 *x, unsigned lane)
{
	uint8_t index[16];
	if (!lift_vec_plain(x, 2))
		return false;
	ir_ref v = lift_vec_low(x, 1, ir_width_of(lane));
	if (lane < 128) {
		v = lift_zext(x, IR_W128, v);
		for (unsigned i = 0; i < 16; i++)
			index[i] = (uint8_t)(i % (lane / 8));
		v = lift_perm(x, v, v, index);
	}
	lift_vec_write(x, 0, (struct lift_vec){{v, v}, x->ops[0].size == 256 ? 2 : 1});
	return true;
}

/* vextracti128 */
bool lift_do_vextract(struct lift_x86 *x, unsigned arg)
{
	if (!lift_vec_plain(x, 3) || lift_vec(x, 1) < 0)
		return false;
	unsigned r = (unsigned)lift_vec(x, 1);
	ir_ref v = lift_get(x, x->ops[2].imm.value.u & 1 ? lift_ymmh_loc(r) : lift_xmm_loc(r));
	lift_vec_write(x, 0, (struct lift_vec){{v, IR_REF_NONE}, 1});
	return true;
}

/* vinserti128 */
bool lift_do_vinsert(struct lift_x86 *x, unsigned arg)
{
	if (!lift_vec_plain(x, 4))
		return false;
	struct lift_vec v = lift_vec_read(x, 1);
	v.half[x->ops[3].imm.value.u & 1] = lift_vec_read(x, 2).half[0];
	lift_vec_write(x, 0, v);
	return true;
}

/* vperm2i128 (arg 0): halves by number; vpermq (arg 1): quarters. */
bool lift_do_vperm(struct lift_x86 *x, unsigned is_quarters)
{
	unsigned cnt = x->in.operand_count_visible;
	if (!lift_vec_plain(x, cnt) || !lift_is_imm(x, cnt - 1) || x->ops[0].size != 256)
		return false;
	unsigned imm = (unsigned)x->ops[cnt - 1].imm.value.u;
	struct lift_vec a = lift_vec_read(x, 1), r = {.cnt = 2};
	if (is_quarters) {
		for (unsigned i = 0; i < 2; i++) {
			ir_ref q[2];
			for (unsigned k = 0; k < 2; k++) {
				unsigned from = imm >> (4 * i + 2 * k) & 3;
				q[k] = lift_extract(x, IR_W64, a.half[from / 2], from % 2 * 64);
			}
			r.half[i] = lift_op(x, IR_CONCAT, IR_W128, q[1], q[0]);
		}
		lift_vec_write(x, 0, r);
		return true;
	}
	struct lift_vec b = lift_vec_read(x, 2);
	const ir_ref halves[4] = {a.half[0], a.half[1], b.half[0], b.half[1]};
	for (unsigned i = 0; i < 2; i++)
		r.half[i] = imm >> (4 * i + 3) & 1 ? lift_k(x, IR_W128, 0) : halves[imm >> 4 * i & 3];
	lift_vec_write(x, 0, r);
	return true;
}

/* ptest: ZF for no bit in common, CF for no bit of the second outside the first. */
bool lift_do_ptest(struct lift_x86 *x, unsigned arg)
{
	if (!lift_vec_plain(x, 2))
		return false;
	struct lift_vec a = lift_vec_read(x, 0), b = lift_vec_read(x, 1);
	ir_ref both = IR_REF_NONE, rest = IR_REF_NONE;
	for (unsigned i = 0; i < a.cnt; i++) {
		ir_ref and_ab = lift_op(x, IR_AND, IR_W128, a.half[i], b.half[i]);
		ir_ref only_b = lift_op(x, IR_AND, IR_W128, lift_not(x, a.half[i]), b.half[i]);
		both = i ? lift_op(x, IR_OR, IR_W128, both, and_ab) : and_ab;
		rest = i ? lift_op(x, IR_OR, IR_W128, rest, only_b) : only_b;
	}
	for (unsigned loc = LIFT_PF; loc <= LIFT_OF; loc++) {
		if (loc != LIFT_DF)
			lift_flag_value(x, loc, lift_k(x, IR_W1, 0));
	}
	lift_flag_value(x, LIFT_ZF, lift_is_zero(x, both));
	lift_flag_value(x, LIFT_CF, lift_is_zero(x, rest));
	return true;
}

/* pblendvb blendvps blendvpd: by the sign bits of lanes of `lane` bits in the last operand. */
bool lift_do_blend(struct lift_x86 *x, unsigned lane)
{
	unsigned first = lift_is_vex(x) ? 1 : 0;
	if (!lift_vec_plain(x, lift_is_vex(x) ? 4 : 2))
		return false;
	struct lift_vec a = lift_vec_read(x, first), b = lift_vec_read(x, first + 1), m;
	/* Without VEX it is xmm0, and nobody writes it. */
	m = lift_is_vex(x) ? lift_vec_read(x, 3) : (struct lift_vec){{lift_get(x, LIFT_XMM0)}, 1};
	const uint32_t is_neg = ir_lane(IR_CMP, IR_CMP_SLT, ir_width_of(lane));
	for (unsigned i = 0; i < a.cnt; i++) {
		ir_ref pick = lift_vmap(x, is_neg, m.half[i], lift_k(x, IR_W128, 0));
		ir_ref from_b = lift_op(x, IR_AND, IR_W128, pick, b.half[i]);
		ir_ref from_a = lift_op(x, IR_AND, IR_W128, lift_not(x, pick), a.half[i]);
		a.half[i] = lift_op(x, IR_OR, IR_W128, from_a, from_b);
	}
	lift_vec_write(x, 0, a);
	return true;
}
