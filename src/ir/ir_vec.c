/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir_int.h"

#include <string.h>

/* Vector operations, lane by lane. */

static int64_t lane_s(uint64_t v, unsigned bits)
{
	return bits >= 64 ? (int64_t)v : (int64_t)(v << (64 - bits)) >> (64 - bits);
}

static uint64_t ones(unsigned bits)
{
	return bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

static uint64_t saturate_s(__int128 v, unsigned bits)
{
	__int128 max = ((__int128)1 << (bits - 1)) - 1;
	return (uint64_t)(v > max ? max : v < -max - 1 ? -max - 1 : v);
}

static uint64_t saturate_u(__int128 v, unsigned bits)
{
	__int128 max = ((__int128)1 << bits) - 1;
	return (uint64_t)(v > max ? max : v < 0 ? 0 : v);
}

static uint64_t lane_op(enum ir_kind kind, uint64_t a, uint64_t b, unsigned bits)
{
	__int128 sa = lane_s(a, bits), sb = lane_s(b, bits);
	switch (kind) {
	case IR_VLANE_ADDS:
		return saturate_s(sa + sb, bits);
	case IR_VLANE_ADDUS:
		return saturate_u((__int128)a + b, bits);
	case IR_VLANE_SUBS:
		return saturate_s(sa - sb, bits);
	case IR_VLANE_SUBUS:
		return saturate_u((__int128)a - b, bits);
	case IR_VLANE_MINS:
		return sa < sb ? a : b;
	case IR_VLANE_MINU:
		return a < b ? a : b;
	case IR_VLANE_MAXS:
		return sa > sb ? a : b;
	case IR_VLANE_MAXU:
		return a > b ? a : b;
	default:
		return (uint64_t)(((__int128)a + b + 1) >> 1);
	}
}

static void eval_map(const struct ir_rec *rec, const struct ir_val *const v[3], struct ir_val *ret)
{
	enum ir_width lane = ir_lane_width(rec->aux);
	unsigned bits = ir_bits(lane), all = ir_bits((enum ir_width)rec->width);
	struct ir_rec one = {.op = (uint8_t)ir_lane_op(rec->aux), .kind = (uint8_t)ir_lane_kind(rec->aux)};
	bool is_mask = ir_op_info((enum ir_op)one.op)->signature[0] == '1';
	one.width = (uint8_t)(is_mask ? IR_W1 : lane);
	for (unsigned off = 0; off < all; off += bits) {
		struct ir_val x[3] = {{{0}}};
		for (unsigned i = 0; i < 3; i++)
			x[i].w[0] = ir_val_bits(v[i], off, bits);
		struct ir_val y = {{0}};
		if (one.op == IR_VLANE)
			y.w[0] = lane_op((enum ir_kind)one.kind, x[0].w[0], x[1].w[0], bits);
		else
			ir_eval(&one, lane, &x[0], &x[1], &x[2], &y);
		ir_val_set_bits(ret, off, bits, is_mask && y.w[0] ? ones(bits) : y.w[0]);
	}
}

static void eval_shift(const struct ir_rec *rec, const struct ir_val *const v[3], struct ir_val *ret)
{
	enum ir_width lane = ir_lane_width(rec->aux);
	unsigned bits = ir_bits(lane), all = ir_bits((enum ir_width)rec->width);
	const struct ir_rec one = {.op = (uint8_t)ir_lane_op(rec->aux), .width = (uint8_t)lane};
	for (unsigned off = 0; off < all; off += bits) {
		struct ir_val x = {.w = {ir_val_bits(v[0], off, bits)}}, y;
		ir_eval(&one, lane, &x, v[1], NULL, &y);
		ir_val_set_bits(ret, off, bits, y.w[0]);
	}
}

static void eval_perm(const struct ir_rec *rec, const struct ir_val *const v[3], struct ir_val *ret)
{
	unsigned n = ir_bits((enum ir_width)rec->width) / 8;
	for (unsigned i = 0; i < n; i++) {
		unsigned from = (unsigned)ir_val_bits(v[2], i * 8, 8);
		uint64_t byte = 0;
		if (from < 2 * n)
			byte = ir_val_bits(v[from < n ? 0 : 1], from % n * 8, 8);
		ir_val_set_bits(ret, i * 8, 8, byte);
	}
}

static void eval_mask(const struct ir_rec *rec, enum ir_width x, const struct ir_val *a, struct ir_val *ret)
{
	for (unsigned i = 0; i < ir_bits(x) / rec->aux; i++)
		ir_val_set_bits(ret, i, 1, ir_val_bits(a, (i + 1) * rec->aux - 1, 1));
}

static void eval_cvt(const struct ir_rec *rec, enum ir_width x, const struct ir_val *const v[3], struct ir_val *ret)
{
	enum ir_width from = ir_lane_width(rec->aux), to = ir_width_of((unsigned)v[1]->w[0]);
	unsigned fb = ir_bits(from), tb = ir_bits(to);
	unsigned lanes = ir_bits(x) / fb, room = ir_bits((enum ir_width)rec->width) / tb;
	const struct ir_rec one = {.op = (uint8_t)ir_lane_op(rec->aux), .kind = (uint8_t)ir_lane_kind(rec->aux), .width = (uint8_t)to};
	for (unsigned i = 0; i < lanes && i < room; i++) {
		struct ir_val a = {.w = {ir_val_bits(v[0], i * fb, fb)}}, y;
		ir_eval(&one, from, &a, NULL, NULL, &y);
		ir_val_set_bits(ret, i * tb, tb, y.w[0]);
	}
}

static void eval_pack(const struct ir_rec *rec, const struct ir_val *const v[3], struct ir_val *ret)
{
	unsigned bits = rec->aux, half = bits / 2, n = ir_bits((enum ir_width)rec->width) / bits;
	for (unsigned i = 0; i < 2 * n; i++) {
		__int128 s = lane_s(ir_val_bits(v[i < n ? 0 : 1], i % n * bits, bits), bits);
		ir_val_set_bits(ret, i * half, half, rec->kind == IR_VPACK_S ? saturate_s(s, half) : saturate_u(s, half));
	}
}

static void eval_madd(const struct ir_rec *rec, const struct ir_val *const v[3], struct ir_val *ret)
{
	unsigned bits = rec->aux;
	for (unsigned off = 0; off < ir_bits((enum ir_width)rec->width); off += 2 * bits) {
		__int128 sum = 0;
		for (unsigned k = 0; k < 2; k++) {
			int64_t a = lane_s(ir_val_bits(v[0], off + k * bits, bits), bits);
			int64_t b = lane_s(ir_val_bits(v[1], off + k * bits, bits), bits);
			sum += (__int128)a * b;
		}
		ir_val_set_bits(ret, off, 2 * bits, (uint64_t)sum);
	}
}

static void eval_mule(const struct ir_rec *rec, const struct ir_val *const v[3], struct ir_val *ret)
{
	unsigned bits = rec->aux;
	for (unsigned off = 0; off < ir_bits((enum ir_width)rec->width); off += 2 * bits) {
		uint64_t a = ir_val_bits(v[0], off, bits), b = ir_val_bits(v[1], off, bits);
		if (rec->kind == IR_VMULE_S) {
			a = (uint64_t)lane_s(a, bits);
			b = (uint64_t)lane_s(b, bits);
		}
		ir_val_set_bits(ret, off, 2 * bits, a * b);
	}
}

static void eval_sad(const struct ir_rec *rec, const struct ir_val *const v[3], struct ir_val *ret)
{
	for (unsigned off = 0; off < ir_bits((enum ir_width)rec->width); off += 64) {
		uint64_t sum = 0;
		for (unsigned i = 0; i < 64; i += 8) {
			uint64_t a = ir_val_bits(v[0], off + i, 8), b = ir_val_bits(v[1], off + i, 8);
			sum += a > b ? a - b : b - a;
		}
		ir_val_set_bits(ret, off, 64, sum);
	}
}

void ir_eval_vec(const struct ir_rec *rec, enum ir_width x, const struct ir_val *const v[3], struct ir_val *ret)
{
	switch (rec->op) {
	case IR_VMAP:
		eval_map(rec, v, ret);
		break;
	case IR_VSHIFT:
		eval_shift(rec, v, ret);
		break;
	case IR_VPERM:
		eval_perm(rec, v, ret);
		break;
	case IR_VMASK:
		eval_mask(rec, x, v[0], ret);
		break;
	case IR_VCVT:
		eval_cvt(rec, x, v, ret);
		break;
	case IR_VPACK:
		eval_pack(rec, v, ret);
		break;
	case IR_VMADD:
		eval_madd(rec, v, ret);
		break;
	case IR_VMULE:
		eval_mule(rec, v, ret);
		break;
	default:
		eval_sad(rec, v, ret);
	}
}
