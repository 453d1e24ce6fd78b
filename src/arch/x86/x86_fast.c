/* SPDX-License-Identifier: Apache-2.0 */
#include "arch/x86/x86_int.h"

#include "base/cur.h"

/*
 * decode() for the encodings that make up nearly all code. A table per opcode map says what follows the
 * opcode, what happens to the memory operand and how wide it is; whatever is not in the tables, or is in
 * an unusual form (lock, 67, VEX, far branches, near the end of the bytes), is left to Zydis. The tests
 * compare the two routes over every prefix, opcode and ModRM of these tables.
 *
 * Facts: Intel SDM volume 2, chapter 2 and appendix A.
 */
enum {
	OK = 1 << 0,      /* in this table; else Zydis */
	MODRM = 1 << 1,
	IMM8 = 1 << 2,
	IMMZ = 1 << 3,    /* 2 bytes with 66, else 4 */
	WRITE = 1 << 4,   /* the memory operand is written */
	ADDR_IMM = 1 << 5, /* the immediate may be an address */
	SPECIAL = 1 << 6, /* see special() and group() */
	MEM_ONLY = 1 << 7,
	REG_ONLY = 1 << 8,
	NOP = 1 << 9,
};

/* Width of the memory operand. */
enum width {
	W_UNKNOWN, /* ask Zydis when it matters */
	W_OSZ,     /* operand size */
	W_1,
	W_2,
	W_4,
	W_8,
	W_16,
	W_DQ,      /* 8 with REX.W, else 4 */
	W_PS,      /* 16, 16, 4 (f3), 8 (f2) */
	W_COMI,    /* 4, 8 (66) */
	W_MMX,     /* 8, 16 with any prefix */
};

/* Mandatory prefixes an opcode of the 0f map is valid with. */
enum { P_NONE = 1, P_66 = 2, P_F3 = 4, P_F2 = 8, P_ALL = 15, P_INT = P_NONE | P_66 };

struct op1 {
	uint16_t attr;
	uint8_t width;
};

struct op2 {
	uint16_t attr;
	uint8_t width;
	uint8_t prefixes;
};

#define ALU(op, w) \
	[(op)] = {OK | MODRM | (w), W_1}, [(op) + 1] = {OK | MODRM | (w), W_OSZ}, \
	[(op) + 2] = {OK | MODRM, W_1}, [(op) + 3] = {OK | MODRM, W_OSZ}, [(op) + 4] = {OK | IMM8}

/* The same entry for 2, 4, 8 or 16 opcodes from `op` on. */
#define X2(op, ...) [(op)] = __VA_ARGS__, [(op) + 1] = __VA_ARGS__
#define X4(op, ...) X2(op, __VA_ARGS__), X2((op) + 2, __VA_ARGS__)
#define X8(op, ...) X4(op, __VA_ARGS__), X4((op) + 4, __VA_ARGS__)
#define X16(op, ...) X8(op, __VA_ARGS__), X8((op) + 8, __VA_ARGS__)

static const struct op1 map1[256] = {
	ALU(0x00, WRITE), [0x05] = {OK | IMMZ | ADDR_IMM},
	ALU(0x08, WRITE), [0x0d] = {OK | IMMZ},
	ALU(0x10, WRITE), [0x15] = {OK | IMMZ},
	ALU(0x18, WRITE), [0x1d] = {OK | IMMZ},
	ALU(0x20, WRITE), [0x25] = {OK | IMMZ},
	ALU(0x28, WRITE), [0x2d] = {OK | IMMZ | ADDR_IMM},
	ALU(0x30, WRITE), [0x35] = {OK | IMMZ},
	ALU(0x38, 0), [0x3d] = {OK | IMMZ | ADDR_IMM},
	X16(0x40, {OK}), /* inc and dec; only reached in 32-bit mode */
	X8(0x50, {OK | SPECIAL}),
	X8(0x58, {OK}),
	[0x63] = {SPECIAL},
	[0x68] = {OK | IMMZ | ADDR_IMM | SPECIAL},
	[0x69] = {OK | MODRM | IMMZ, W_OSZ},
	[0x6a] = {OK | IMM8},
	[0x6b] = {OK | MODRM | IMM8, W_OSZ},
	X16(0x70, {OK | IMM8 | SPECIAL}),
	[0x80] = {OK | MODRM | IMM8 | WRITE | SPECIAL, W_1},
	[0x81] = {OK | MODRM | IMMZ | WRITE | SPECIAL, W_OSZ},
	[0x83] = {OK | MODRM | IMM8 | WRITE | SPECIAL, W_OSZ},
	[0x84] = {OK | MODRM, W_1}, [0x85] = {OK | MODRM, W_OSZ},
	[0x86] = {OK | MODRM | WRITE, W_1}, [0x87] = {OK | MODRM | WRITE, W_OSZ},
	[0x88] = {OK | MODRM | WRITE, W_1}, [0x89] = {OK | MODRM | WRITE | SPECIAL, W_OSZ},
	[0x8a] = {OK | MODRM, W_1}, [0x8b] = {OK | MODRM | SPECIAL, W_OSZ},
	[0x8d] = {OK | MODRM | MEM_ONLY | SPECIAL},
	[0x90] = {OK | SPECIAL},
	X4(0x91, {OK}), X2(0x95, {OK}), [0x97] = {OK},
	[0x98] = {OK}, [0x99] = {OK},
	[0xa4] = {OK}, [0xa5] = {OK}, [0xa6] = {OK}, [0xa7] = {OK},
	[0xa8] = {OK | IMM8}, [0xa9] = {OK | IMMZ},
	[0xaa] = {OK}, [0xab] = {OK}, [0xac] = {OK}, [0xad] = {OK}, [0xae] = {OK}, [0xaf] = {OK},
	X8(0xb0, {OK | IMM8}),
	X8(0xb8, {OK | IMMZ | ADDR_IMM | SPECIAL}),
	[0xc0] = {OK | MODRM | IMM8 | WRITE, W_1}, [0xc1] = {OK | MODRM | IMM8 | WRITE, W_OSZ},
	[0xc3] = {OK | SPECIAL},
	[0xc6] = {OK | MODRM | IMM8 | WRITE | SPECIAL, W_1},
	[0xc7] = {OK | MODRM | IMMZ | WRITE | ADDR_IMM | SPECIAL, W_OSZ},
	[0xc9] = {OK},
	[0xcc] = {OK | SPECIAL},
	[0xd0] = {OK | MODRM | WRITE, W_1}, [0xd1] = {OK | MODRM | WRITE, W_OSZ},
	[0xd2] = {OK | MODRM | WRITE, W_1}, [0xd3] = {OK | MODRM | WRITE, W_OSZ},
	[0xe8] = {OK | IMMZ | SPECIAL}, [0xe9] = {OK | IMMZ | SPECIAL}, [0xeb] = {OK | IMM8 | SPECIAL},
	[0xf6] = {OK | MODRM | SPECIAL, W_1}, [0xf7] = {OK | MODRM | SPECIAL, W_OSZ},
	[0xf5] = {OK}, [0xf8] = {OK}, [0xf9] = {OK}, [0xfc] = {OK}, [0xfd] = {OK},
	[0xfe] = {OK | MODRM | WRITE | SPECIAL, W_1},
	[0xff] = {OK | MODRM | WRITE | SPECIAL, W_OSZ},
};

static const struct op2 map2[256] = {
	[0x0b] = {OK | SPECIAL, 0, P_NONE},
	[0x10] = {OK | MODRM, W_PS, P_ALL}, [0x11] = {OK | MODRM | WRITE, W_PS, P_ALL},
	[0x12] = {OK | MODRM, W_UNKNOWN, P_NONE | P_F3 | P_F2},
	[0x13] = {OK | MODRM | WRITE | MEM_ONLY, W_8, P_INT},
	[0x14] = {OK | MODRM, W_16, P_INT}, [0x15] = {OK | MODRM, W_16, P_INT},
	[0x16] = {OK | MODRM, W_UNKNOWN, P_NONE | P_F3},
	[0x17] = {OK | MODRM | WRITE | MEM_ONLY, W_8, P_INT},
	[0x1f] = {OK | MODRM | NOP, 0, P_INT},
	[0x28] = {OK | MODRM, W_16, P_INT}, [0x29] = {OK | MODRM | WRITE, W_16, P_INT},
	[0x2a] = {OK | MODRM, W_DQ, P_F3 | P_F2},
	[0x2c] = {OK | MODRM, W_PS, P_F3 | P_F2}, [0x2d] = {OK | MODRM, W_PS, P_F3 | P_F2},
	[0x2e] = {OK | MODRM, W_COMI, P_INT}, [0x2f] = {OK | MODRM, W_COMI, P_INT},
	[0x31] = {OK, 0, P_NONE},
	X16(0x40, {OK | MODRM, W_OSZ, P_INT}),
	[0x50] = {OK | MODRM | REG_ONLY, 0, P_INT},
	[0x51] = {OK | MODRM, W_PS, P_ALL},
	[0x52] = {OK | MODRM, W_PS, P_NONE | P_F3}, [0x53] = {OK | MODRM, W_PS, P_NONE | P_F3},
	X4(0x54, {OK | MODRM, W_16, P_INT}),
	[0x58] = {OK | MODRM, W_PS, P_ALL}, [0x59] = {OK | MODRM, W_PS, P_ALL},
	[0x5a] = {OK | MODRM, W_UNKNOWN, P_ALL},
	[0x5b] = {OK | MODRM, W_16, P_NONE | P_66 | P_F3},
	X4(0x5c, {OK | MODRM, W_PS, P_ALL}),
	X2(0x60, {OK | MODRM, W_UNKNOWN, P_INT}), [0x62] = {OK | MODRM, W_UNKNOWN, P_INT},
	X8(0x63, {OK | MODRM, W_MMX, P_INT}), [0x6b] = {OK | MODRM, W_MMX, P_INT},
	[0x6c] = {OK | MODRM, W_16, P_66}, [0x6d] = {OK | MODRM, W_16, P_66},
	[0x6e] = {OK | MODRM, W_DQ, P_INT},
	[0x6f] = {OK | MODRM, W_MMX, P_NONE | P_66 | P_F3},
	[0x70] = {OK | MODRM | IMM8, W_MMX, P_ALL},
	X2(0x74, {OK | MODRM, W_MMX, P_INT}), [0x76] = {OK | MODRM, W_MMX, P_INT},
	[0x7e] = {OK | MODRM | WRITE, W_DQ, P_INT},
	[0x7f] = {OK | MODRM | WRITE, W_MMX, P_NONE | P_66 | P_F3},
	X16(0x80, {OK | IMMZ | SPECIAL, 0, P_NONE}),
	X16(0x90, {OK | MODRM | WRITE, W_1, P_INT}),
	[0xa2] = {OK, 0, P_NONE},
	[0xa3] = {OK | MODRM, W_OSZ, P_INT},
	[0xa4] = {OK | MODRM | IMM8 | WRITE, W_OSZ, P_INT}, [0xa5] = {OK | MODRM | WRITE, W_OSZ, P_INT},
	[0xab] = {OK | MODRM | WRITE, W_OSZ, P_INT},
	[0xac] = {OK | MODRM | IMM8 | WRITE, W_OSZ, P_INT}, [0xad] = {OK | MODRM | WRITE, W_OSZ, P_INT},
	[0xaf] = {OK | MODRM, W_OSZ, P_INT},
	[0xb0] = {OK | MODRM | WRITE, W_1, P_INT}, [0xb1] = {OK | MODRM | WRITE, W_OSZ, P_INT},
	[0xb3] = {OK | MODRM | WRITE, W_OSZ, P_INT},
	[0xb6] = {OK | MODRM, W_1, P_INT}, [0xb7] = {OK | MODRM, W_2, P_INT},
	[0xb8] = {OK | MODRM, W_OSZ, P_F3},
	[0xba] = {OK | MODRM | IMM8 | WRITE | SPECIAL, W_OSZ, P_INT},
	[0xbb] = {OK | MODRM | WRITE, W_OSZ, P_INT},
	[0xbc] = {OK | MODRM, W_OSZ, P_INT | P_F3}, [0xbd] = {OK | MODRM, W_OSZ, P_INT | P_F3},
	[0xbe] = {OK | MODRM, W_1, P_INT}, [0xbf] = {OK | MODRM, W_2, P_INT},
	[0xc0] = {OK | MODRM | WRITE, W_1, P_INT}, [0xc1] = {OK | MODRM | WRITE, W_OSZ, P_INT},
	[0xc2] = {OK | MODRM | IMM8, W_PS, P_ALL},
	[0xc4] = {OK | MODRM | IMM8, W_2, P_INT}, [0xc5] = {OK | MODRM | IMM8 | REG_ONLY, 0, P_INT},
	[0xc6] = {OK | MODRM | IMM8, W_16, P_INT},
	X8(0xc8, {OK, 0, P_INT}),
	X4(0xd1, {OK | MODRM, W_MMX, P_INT}), [0xd5] = {OK | MODRM, W_MMX, P_INT},
	[0xd6] = {OK | MODRM | WRITE, W_8, P_66},
	[0xd7] = {OK | MODRM | REG_ONLY, 0, P_INT},
	X8(0xd8, {OK | MODRM, W_MMX, P_INT}), X4(0xe0, {OK | MODRM, W_MMX, P_INT}), X2(0xe4, {OK | MODRM, W_MMX, P_INT}),
	[0xe7] = {OK | MODRM | WRITE | MEM_ONLY, W_MMX, P_INT},
	X8(0xe8, {OK | MODRM, W_MMX, P_INT}),
	X4(0xf1, {OK | MODRM, W_MMX, P_INT}), X2(0xf5, {OK | MODRM, W_MMX, P_INT}),
	X4(0xf8, {OK | MODRM, W_MMX, P_INT}), X2(0xfc, {OK | MODRM, W_MMX, P_INT}), [0xfe] = {OK | MODRM, W_MMX, P_INT},
};

/* What has been read of one instruction. */
struct fast {
	const uint8_t *p;   /* next byte */
	const uint8_t *start;
	uint64_t va;
	uint64_t mem_va;    /* of the memory operand, when has_ref */
	bool is_64;
	bool has_66, has_f3, has_f2;
	bool is_fs_gs;
	bool has_3e;
	bool has_ref;       /* the memory operand is a reference */
	bool is_rip;        /* relative to the end of the instruction */
	bool is_abs;        /* no register */
	uint8_t rex;
	uint8_t osz;        /* 2, 4, 8 */
	uint8_t modrm;
	uint8_t width;      /* enum width */
	unsigned attr;
};

static inline __attribute__((always_inline)) uint32_t rd32(const uint8_t *p)
{
	return load_u32(p, false);
}

static inline bool is_small(int64_t v)
{
	return v > -X86_SMALL && v < X86_SMALL;
}

/* Prefixes and REX; false for what Zydis shall look at. */
static inline __attribute__((always_inline)) bool read_prefixes(struct fast *f)
{
	unsigned segs = 0;
	for (unsigned i = 0; i < 8; i++) {
		switch (*f->p) {
		case 0x66:
			f->has_66 = true;
			break;
		case 0xf3:
			f->has_f3 = true;
			break;
		case 0xf2:
			f->has_f2 = true;
			break;
		case 0x64:
		case 0x65:
			f->is_fs_gs = true;
			segs++;
			break;
		case 0x3e:
			f->has_3e = true;
			segs++;
			break;
		case 0x26:
		case 0x2e:
		case 0x36:
			segs++;
			break;
		default:
			return segs <= 1 && !(f->has_f2 && f->has_f3);
		}
		f->p++;
	}
	return false;
}

/* ModRM, SIB and displacement; leaves `p` behind them. */
static inline __attribute__((always_inline)) bool read_modrm(struct fast *f)
{
	uint8_t m = *f->p++;
	f->modrm = m;
	unsigned mod = m >> 6;
	unsigned rm = m & 7;
	if (mod == 3)
		return !(f->attr & MEM_ONLY);
	if (f->attr & REG_ONLY)
		return false;
	unsigned base = rm;
	bool has_index = false;
	bool has_sib = rm == 4;
	if (has_sib) {
		uint8_t sib = *f->p++;
		base = sib & 7;
		has_index = (sib >> 3 & 7) != 4 || (f->rex & 2);
	}
	if (mod == 1) {
		f->p++;
		return true;
	}
	if (mod == 0 && base != 5)
		return true;
	int32_t disp = (int32_t)rd32(f->p);
	f->p += 4;
	if (f->is_fs_gs)
		return true;
	if (mod == 2) {
		bool is_sp = has_sib && base == 4 && !(f->rex & 1);
		f->has_ref = !is_sp && !is_small(disp);
	} else if (!has_sib) {
		f->has_ref = true;
		f->is_rip = f->is_64;
		f->is_abs = !f->is_64;
	} else {
		f->is_abs = !has_index;
		f->has_ref = f->is_abs || !is_small(disp);
	}
	f->mem_va = f->is_64 ? (uint64_t)(int64_t)disp : (uint32_t)disp;
	return true;
}

/* Bytes of the memory operand; 0 when only Zydis knows. */
static unsigned width_bytes(const struct fast *f)
{
	switch ((enum width)f->width) {
	case W_OSZ:
		return f->osz;
	case W_1:
		return 1;
	case W_2:
		return 2;
	case W_4:
		return 4;
	case W_8:
		return 8;
	case W_16:
		return 16;
	case W_DQ:
		return f->rex & 8 ? 8 : 4;
	case W_PS:
		return f->has_f3 ? 4 : f->has_f2 ? 8 : 16;
	case W_COMI:
		return f->has_66 ? 8 : 4;
	case W_MMX:
		return f->has_66 || f->has_f3 || f->has_f2 ? 16 : 8;
	case W_UNKNOWN:
		break;
	}
	return 0;
}

static bool add_mem_ref(const struct fast *f, bool is_lea, struct arch_insn *ret)
{
	struct arch_ref *r = &ret->refs[ret->ref_cnt];
	r->va = f->mem_va + (f->is_rip ? f->va + (uint64_t)(f->p - f->start) : 0);
	if (is_lea) {
		r->kind = ARCH_REF_OFFSET;
		r->access_bytes = 0;
		r->is_guess = !f->is_rip;
	} else {
		unsigned bytes = width_bytes(f);
		if (bytes == 0)
			return false;
		r->kind = f->attr & WRITE ? ARCH_REF_WRITE : ARCH_REF_READ;
		r->access_bytes = (uint8_t)bytes;
		r->is_guess = !f->is_rip && !f->is_abs;
	}
	ret->ref_cnt++;
	return true;
}

/* The immediate that ends at `p`, when it may be an address. */
static inline void add_imm_ref(const struct fast *f, bool is_64_long, struct arch_insn *ret)
{
	uint64_t v;
	if (is_64_long) {
		v = load_u64(f->p - 8, false);
		if (is_small((int64_t)v))
			return;
	} else {
		int32_t imm = (int32_t)rd32(f->p - 4);
		if (f->osz == 2 || is_small(imm))
			return;
		v = f->osz == 8 ? (uint64_t)(int64_t)imm : (uint32_t)imm;
	}
	ret->refs[ret->ref_cnt++] = (struct arch_ref){
		.va = f->is_64 ? v : (uint32_t)v, .kind = ARCH_REF_OFFSET, .is_guess = true};
}

/* Relative branches of both maps; `p` is behind the displacement. */
static inline bool branch(const struct fast *f, int64_t rel, enum arch_flow flow, struct arch_insn *ret)
{
	uint64_t target = f->va + (uint64_t)(f->p - f->start) + (uint64_t)rel;
	ret->target = f->is_64 ? target : (uint32_t)target;
	ret->flow = (uint8_t)(flow == ARCH_FLOW_CALL && rel == 0 ? ARCH_FLOW_NEXT : flow);
	return !f->has_66 && !f->has_f2 && !f->has_f3;
}

/* Groups, whose /reg field chooses the operation: adjusts `attr`. False: Zydis. */
static inline __attribute__((always_inline)) bool group(struct fast *f, uint8_t op, struct arch_insn *ret)
{
	unsigned reg = f->modrm >> 3 & 7;
	switch (op) {
	case 0x80:
	case 0x81:
	case 0x83:
		if (reg == 7)
			f->attr &= ~(unsigned)WRITE;
		if (op == 0x81 && (reg == 0 || reg == 5 || reg == 7))
			f->attr |= ADDR_IMM;
		if (op != 0x80 && f->modrm == 0xec && !(f->rex & 1) && f->osz == (f->is_64 ? 8 : 4))
			ret->flags = ARCH_INSN_FRAME;
		return true;
	case 0xc6:
	case 0xc7:
		return reg == 0;
	case 0xf6:
	case 0xf7:
		if (reg < 2)
			f->attr |= op == 0xf6 ? IMM8 : IMMZ;
		else if (reg < 4)
			f->attr |= WRITE;
		return true;
	case 0xfe:
		return reg < 2;
	default:
		break;
	}
	/* ff */
	if (reg < 2)
		return true;
	if (reg != 2 && reg != 4 && reg != 6)
		return false;
	if (f->has_66 || f->has_f2 || f->has_f3)
		return false;
	f->attr &= ~(unsigned)WRITE;
	f->width = f->is_64 ? W_8 : W_4;
	if (reg == 6)
		return f->modrm < 0xc0;
	ret->flow = reg == 2 ? ARCH_FLOW_ICALL : ARCH_FLOW_IJUMP;
	if (f->has_3e)
		ret->flags = ARCH_INSN_NOTRACK;
	return true;
}

/* mov r,r of the full width onto itself; lea that may be one of the padding forms goes to Zydis. */
static inline bool move(const struct fast *f, uint8_t op, struct arch_insn *ret)
{
	unsigned mod = f->modrm >> 6;
	if (op == 0x8d && f->is_fs_gs)
		return false;
	if (op != 0x8d) {
		unsigned reg = (f->modrm >> 3 & 7) | (f->rex & 4 ? 8 : 0);
		unsigned rm = (f->modrm & 7) | (f->rex & 1 ? 8 : 0);
		if (mod == 3 && reg == rm && f->osz == (f->is_64 ? 8 : 4))
			ret->flags = ARCH_INSN_NOP;
		return true;
	}
	if (mod == 1)
		return f->p[-1] != 0;
	if (mod == 2 || (mod == 0 && (f->modrm & 7) == 5))
		return f->is_rip || rd32(f->p - 4) != 0;
	return (f->modrm & 7) == 4 && ret->ref_cnt == 0 && (f->p[-1] & 7) != 5 && (f->p[-1] >> 3 & 7) != 4;
}

/* Opcodes of the one-byte map that need more than the table; `p` is behind the whole instruction. */
static inline __attribute__((always_inline)) bool special(struct fast *f, uint8_t op, struct arch_insn *ret)
{
	if (op >> 4 == 7)
		return branch(f, (int8_t)f->p[-1], ARCH_FLOW_CJUMP, ret);
	if (op >> 3 == 10) {
		unsigned r = (op & 7u) | (f->rex & 1 ? 8u : 0);
		unsigned saved = f->is_64 ? 0xf028 : 0xe8;
		if ((!f->has_66 || (f->rex & 8)) && (saved >> r & 1))
			ret->flags = ARCH_INSN_FRAME;
		return true;
	}
	switch (op) {
	case 0xe8:
		return branch(f, (int32_t)rd32(f->p - 4), ARCH_FLOW_CALL, ret);
	case 0xe9:
		return branch(f, (int32_t)rd32(f->p - 4), ARCH_FLOW_JUMP, ret);
	case 0xeb:
		return branch(f, (int8_t)f->p[-1], ARCH_FLOW_JUMP, ret);
	case 0x90:
		ret->flags = ARCH_INSN_NOP;
		return f->rex == 0 && !f->has_f3 && !f->has_f2;
	case 0xc3:
		ret->flow = ARCH_FLOW_RET;
		return true;
	case 0xcc:
		ret->flags = ARCH_INSN_PAD_TRAP;
		if (*f->p == 0xcc)
			ret->flow = ARCH_FLOW_STOP;
		return true;
	case 0x89:
	case 0x8b:
	case 0x8d:
		return move(f, op, ret);
	default:
		return true;
	}
}

/* f2 and f3 before the one-byte map: only where they are common. */
static inline bool accepts_rep(const struct fast *f, uint8_t op, struct arch_insn *ret)
{
	switch (op) {
	case 0xc3:
		return f->has_f3;
	case 0xa6:
	case 0xa7:
	case 0xae:
	case 0xaf:
		ret->flags = ARCH_INSN_REP;
		return true;
	case 0xa4:
	case 0xa5:
	case 0xaa:
	case 0xab:
	case 0xac:
	case 0xad:
		ret->flags = ARCH_INSN_REP;
		return f->has_f3;
	default:
		return false;
	}
}

static inline __attribute__((always_inline)) bool decode_map1(struct fast *f, uint8_t op,
							      struct arch_insn *ret)
{
	f->attr = map1[op].attr;
	f->width = map1[op].width;
	if (!(f->attr & OK))
		return false;
	if ((f->has_f2 || f->has_f3) && !accepts_rep(f, op, ret))
		return false;
	if (f->attr & MODRM) {
		if (!read_modrm(f))
			return false;
		if ((f->attr & SPECIAL) && op != 0x89 && op != 0x8b && op != 0x8d && !group(f, op, ret))
			return false;
	}
	bool is_mov_imm = op >= 0xb8 && op <= 0xbf;
	bool is_long = is_mov_imm && (f->rex & 8);
	if (f->attr & IMM8)
		f->p++;
	else if (f->attr & IMMZ)
		f->p += is_long ? 8 : f->osz == 2 ? 2 : 4;
	if (op == 0x68 && f->is_64 && f->osz == 4)
		f->osz = 8;
	if (f->has_ref && !add_mem_ref(f, op == 0x8d, ret))
		return false;
	if (f->attr & ADDR_IMM)
		add_imm_ref(f, is_long, ret);
	return !(f->attr & SPECIAL) || special(f, op, ret);
}

static inline bool decode_map2(struct fast *f, struct arch_insn *ret)
{
	uint8_t op = *f->p++;
	unsigned prefix = f->has_f3 ? P_F3 : f->has_f2 ? P_F2 : f->has_66 ? P_66 : P_NONE;
	f->attr = map2[op].attr;
	f->width = map2[op].width;
	if (!(f->attr & OK) || !(map2[op].prefixes & prefix))
		return false;
	/* 66 is the operand size here and f2 or f3 choose the instruction: rarely together. */
	if (prefix > P_66 && f->has_66)
		return false;
	if (f->attr & MODRM && !read_modrm(f))
		return false;
	if (op == 0xba) {
		unsigned reg = f->modrm >> 3 & 7;
		if (reg < 4)
			return false;
		if (reg == 4)
			f->attr &= ~(unsigned)WRITE;
	}
	if (f->attr & IMM8)
		f->p++;
	if (f->attr & NOP) {
		ret->flags = ARCH_INSN_NOP;
		return true;
	}
	if (op >= 0x80 && op <= 0x8f) {
		f->p += 4;
		return branch(f, (int32_t)rd32(f->p - 4), ARCH_FLOW_CJUMP, ret);
	}
	if (op == 0x0b)
		ret->flow = ARCH_FLOW_STOP;
	return !f->has_ref || add_mem_ref(f, false, ret);
}

static inline __attribute__((always_inline)) bool decode_mode(const uint8_t *p, uint64_t va, bool is_64,
							      struct arch_insn *ret)
{
	struct fast f = {.p = p, .start = p, .va = va, .is_64 = is_64};
	ret->target = 0;
	ret->ref_cnt = 0;
	ret->flags = 0;
	ret->flow = ARCH_FLOW_NEXT;
	if (!read_prefixes(&f))
		return false;
	uint8_t op = *f.p++;
	if (is_64 && (op & 0xf0) == 0x40) {
		f.rex = op;
		op = *f.p++;
		/* A REX that a prefix or another REX follows is an item of its own. */
		if ((op & 0xf0) == 0x40)
			return false;
	}
	f.osz = f.rex & 8 ? 8 : f.has_66 ? 2 : 4;
	bool is_ok = op == 0x0f ? decode_map2(&f, ret) : decode_map1(&f, op, ret);
	size_t len = (size_t)(f.p - p);
	ret->len = (uint8_t)len;
	return is_ok && len <= X86_MAX_LEN;
}

bool x86_decode_fast(const struct arch *a, const uint8_t *p, size_t len, uint64_t va,
		     struct arch_insn *ret)
{
	/* Longest that the tables can read before they know the length: 8 prefixes, REX, two bytes of
	 * opcode, ModRM, SIB, displacement, 8 bytes of immediate, and one byte of the next. */
	enum { ROOM = 8 + 1 + 2 + 2 + 4 + 8 + 1 };
	if (len < ROOM)
		return false;
	return a->bits == 64 ? decode_mode(p, va, true, ret) : decode_mode(p, va, false, ret);
}

void x86_decode(const struct arch *a, const uint8_t *p, size_t len, uint64_t va, struct arch_insn *ret)
{
	static const uint8_t endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};
	if (len >= 4 && __builtin_memcmp(p, endbr64, 4) == 0) {
		ret->target = 0;
		ret->ref_cnt = 0;
		ret->len = 4;
		ret->flow = ARCH_FLOW_NEXT;
		ret->flags = ARCH_INSN_LANDING;
		return;
	}
	if (!x86_decode_fast(a, p, len, va, ret))
		x86_decode_slow(a, p, len, va, ret);
}
