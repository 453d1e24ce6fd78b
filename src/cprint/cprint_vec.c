/* SPDX-License-Identifier: Apache-2.0 */
#include "cprint/cprint_int.h"

/* Operations on lanes: the header's macros go through them, with the operation of one lane over x, y and z. */

/* The operation of one lane over x, y and z. */
static bool lane_expr(const struct ir_rec *rec, struct buf *text)
{
	enum ir_op op = ir_lane_op(rec->aux);
	enum ir_kind kind = ir_lane_kind(rec->aux);
	enum ir_width lane = ir_lane_width(rec->aux);
	if (op == IR_VLANE) {
		if (lane == IR_W64 && kind != IR_VLANE_MINS && kind != IR_VLANE_MINU && kind != IR_VLANE_MAXS &&
		    kind != IR_VLANE_MAXU)
			return false;
		buf_printf(text, "scry_v%s%u(x, y)", ir_kind_info(kind)->text, ir_bits(lane));
		return true;
	}
	bool is_mask = ir_op_info(op)->signature[0] == '1';
	const struct ir_rec one = {.op = (uint8_t)op, .kind = (uint8_t)kind, .width = (uint8_t)(is_mask ? IR_W1 : lane)};
	const struct cprint_form f = {NULL, &one, lane};
	if (!is_mask)
		return cprint_form(&f, text);
	buf_add_str(text, "0 - (uint64_t)(");
	bool ok = cprint_form(&f, text);
	buf_add_ch(text, ')');
	return ok;
}

/* "NAME(w, lane, a, b, c, " */
static bool open_lanes(const struct cprint_form *f, unsigned w, unsigned lane, unsigned cnt, struct buf *text)
{
	bool ok = true;
	buf_printf(text, "SCRY_LANES(%u, %u, ", w, lane);
	for (unsigned i = 0; i < 3; i++) {
		if (i < cnt && (i == 0 ? f->rec->a : i == 1 ? f->rec->b : f->rec->c) != IR_REF_NONE)
			ok = cprint_arg(f, i, text) && ok;
		else
			buf_add_ch(text, '0');
		buf_add(text, ", ", 2);
	}
	return ok;
}

bool cprint_vector(const struct cprint_form *f, struct buf *text)
{
	const struct ir_rec *rec = f->rec;
	unsigned w = ir_bits((enum ir_width)rec->width);
	unsigned lane = ir_bits(ir_lane_width(rec->aux));
	if (!f->p || (w != 64 && w != 128 && rec->op != IR_VMASK) || ir_bits(f->x) > 128)
		return false;
	switch (rec->op) {
	case IR_VMAP: {
		bool ok = open_lanes(f, w, lane, 3, text) && lane_expr(rec, text);
		buf_add_ch(text, ')');
		return ok;
	}
	case IR_VSHIFT: {
		const struct ir_rec one = {.op = (uint8_t)ir_lane_op(rec->aux), .width = (uint8_t)ir_lane_width(rec->aux)};
		const struct cprint_form lanes = {NULL, &one, (enum ir_width)one.width};
		bool ok = open_lanes(f, w, lane, 2, text) && cprint_form(&lanes, text);
		buf_add_ch(text, ')');
		return ok;
	}
	case IR_VPERM:
		return cprint_helper(f, "scry_vperm%w(%a, %b, %c)", text);
	case IR_VMASK:
		buf_printf(text, "(uint%u_t)", w);
		return cprint_helper(f, "scry_vmask%x(%a, %n)", text) && w >= 8 && ir_bits(f->x) >= 64;
	case IR_VPACK:
		return cprint_helper(f, rec->kind == IR_VPACK_S ? "scry_vpack%w(%a, %b, %n, 1)" : "scry_vpack%w(%a, %b, %n, 0)", text);
	case IR_VMADD:
		return cprint_helper(f, "scry_vmadd%w(%a, %b, %n)", text);
	case IR_VMULE:
		return cprint_helper(f, rec->kind == IR_VMULE_S ? "scry_vmules%w(%a, %b, %n)" : "scry_vmuleu%w(%a, %b, %n)", text);
	default:
		return cprint_helper(f, "scry_vsad%w(%a, %b)", text);
	}
}

/* The second operand is the width of the result's lanes. */
bool cprint_lanes(const struct cprint_form *f, struct buf *text)
{
	const struct ir_rec *rec = f->rec;
	unsigned w = ir_bits((enum ir_width)rec->width);
	uint64_t to = 0;
	enum ir_width to_w = ir_const_get(f->p->f, rec->b, &to) && to <= 512 ? ir_width_of((unsigned)to) : IR_W0, from = ir_lane_width(rec->aux);
	if (to_w == IR_W0 || (w != 64 && w != 128) || ir_bits(f->x) > 128)
		return false;
	const struct ir_rec one = {.op = (uint8_t)ir_lane_op(rec->aux),
				   .kind = (uint8_t)ir_lane_kind(rec->aux),
				   .width = (uint8_t)to_w};
	const struct cprint_form lane = {NULL, &one, from};
	buf_printf(text, "SCRY_CONVERT(%u, %u, %u, %u, ", w, ir_bits(f->x), ir_bits(from), (unsigned)to);
	bool ok = cprint_arg(f, 0, text);
	buf_add(text, ", ", 2);
	ok = cprint_form(&lane, text) && ok;
	buf_add_ch(text, ')');
	return ok;
}
