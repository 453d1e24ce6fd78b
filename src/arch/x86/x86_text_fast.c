/* SPDX-License-Identifier: Apache-2.0 */
#include "arch/x86/x86_text_int.h"

#include "base/cleanup.h"
#include "base/cur.h"

/*
 * format() for the integer and SSE instructions that make up most of a listing, straight from the bytes:
 * decoding operands with Zydis takes several times as long as writing them. Everything unusual (prefixes
 * without effect, riz, segments, VEX, x87, ...) is left to x86_format.c; the tests hold the two to the
 * same text and spans over every opcode and ModRM.
 */
enum kind {
	K_NONE,
	K_E,   /* ModRM.rm: register or memory */
	K_G,   /* ModRM.reg */
	K_O,   /* register in the opcode */
	K_A,   /* al, ax, eax, rax */
	K_I,   /* immediate */
	K_J,   /* branch target */
	K_ONE, /* the 1 of shl eax,1 */
	K_CL,
	K_V,   /* vector register in ModRM.reg */
	K_W,   /* vector register or memory in ModRM.rm */
};

enum imm { I_NONE, I_8S, I_8U, I_Z, I_V };

/* Widths: of general registers, immediates and memory. */
enum { W_B = 1, W_2 = 2, W_4 = 4, W_8 = 8, W_16 = 16, W_OSZ = 0, W_DQ = 32, W_NONE = 64 };

enum form {
	F_NONE, F_NULL, F_E, F_EG, F_GE, F_AI, F_O, F_OI, F_J8, F_JZ, F_EI8, F_EI8U, F_EIZ, F_E1, F_ECL,
	F_GEI8, F_GEIZ, F_I8, F_IZ, F_LEA, F_EGI8, F_EGCL, F_VW, F_WV, F_VWI, F_VE, F_EV, F_GW, F_COUNT
};

struct form_ops {
	uint8_t kinds[3];
	uint8_t imm;
	bool has_modrm;
};

static const struct form_ops forms[F_COUNT] = {
	[F_E] = {{K_E}, I_NONE, true},
	[F_EG] = {{K_E, K_G}, I_NONE, true},
	[F_GE] = {{K_G, K_E}, I_NONE, true},
	[F_AI] = {{K_A, K_I}, I_Z, false},
	[F_O] = {{K_O}, I_NONE, false},
	[F_OI] = {{K_O, K_I}, I_V, false},
	[F_J8] = {{K_J}, I_8S, false},
	[F_JZ] = {{K_J}, I_Z, false},
	[F_EI8] = {{K_E, K_I}, I_8S, true},
	[F_EI8U] = {{K_E, K_I}, I_8U, true},
	[F_EIZ] = {{K_E, K_I}, I_Z, true},
	[F_E1] = {{K_E, K_ONE}, I_NONE, true},
	[F_ECL] = {{K_E, K_CL}, I_NONE, true},
	[F_GEI8] = {{K_G, K_E, K_I}, I_8S, true},
	[F_GEIZ] = {{K_G, K_E, K_I}, I_Z, true},
	[F_I8] = {{K_I}, I_8S, false},
	[F_IZ] = {{K_I}, I_Z, false},
	[F_LEA] = {{K_G, K_E}, I_NONE, true},
	[F_EGI8] = {{K_E, K_G, K_I}, I_8U, true},
	[F_EGCL] = {{K_E, K_G, K_CL}, I_NONE, true},
	[F_VW] = {{K_V, K_W}, I_NONE, true},
	[F_WV] = {{K_W, K_V}, I_NONE, true},
	[F_VWI] = {{K_V, K_W, K_I}, I_8U, true},
	[F_VE] = {{K_V, K_E}, I_NONE, true},
	[F_EV] = {{K_E, K_V}, I_NONE, true},
	[F_GW] = {{K_G, K_W}, I_NONE, true},
};

enum {
	NO_W = 1,   /* REX.W has no effect, so it would be written */
	NO_66 = 2,  /* 66 likewise, or it makes something else */
	STACK = 4,  /* 64 bits wide by default in 64-bit mode */
	ONLY_W = 8, /* this name is right with REX.W only */
};

struct spec {
	char name[10];
	uint8_t form;
	uint8_t width; /* of E and G, and of immediates */
	uint8_t mem;   /* of E or W as memory or of a narrower source; W_OSZ: like `width` */
	uint8_t flags;
};

#define ALU(op, n)                                                                              \
	[(op)] = {n, F_EG, W_B, 0, NO_W | NO_66}, [(op) + 1] = {n, F_EG, 0, 0, 0},                \
	[(op) + 2] = {n, F_GE, W_B, 0, NO_W | NO_66}, [(op) + 3] = {n, F_GE, 0, 0, 0},            \
	[(op) + 4] = {n, F_AI, W_B, 0, NO_W | NO_66}, [(op) + 5] = {n, F_AI, 0, 0, 0}
#define SAME8(op, ...)                                                                          \
	[(op)] = __VA_ARGS__, [(op) + 1] = __VA_ARGS__, [(op) + 2] = __VA_ARGS__,                 \
	[(op) + 3] = __VA_ARGS__, [(op) + 4] = __VA_ARGS__, [(op) + 5] = __VA_ARGS__,             \
	[(op) + 6] = __VA_ARGS__, [(op) + 7] = __VA_ARGS__
#define CC(op, pre, form, width, flags)                                                         \
	[(op)] = {pre "o", form, width, 0, flags}, [(op) + 1] = {pre "no", form, width, 0, flags}, \
	[(op) + 2] = {pre "b", form, width, 0, flags}, [(op) + 3] = {pre "ae", form, width, 0, flags}, \
	[(op) + 4] = {pre "e", form, width, 0, flags}, [(op) + 5] = {pre "ne", form, width, 0, flags}, \
	[(op) + 6] = {pre "be", form, width, 0, flags}, [(op) + 7] = {pre "a", form, width, 0, flags}, \
	[(op) + 8] = {pre "s", form, width, 0, flags}, [(op) + 9] = {pre "ns", form, width, 0, flags}, \
	[(op) + 10] = {pre "p", form, width, 0, flags}, [(op) + 11] = {pre "np", form, width, 0, flags}, \
	[(op) + 12] = {pre "l", form, width, 0, flags}, [(op) + 13] = {pre "ge", form, width, 0, flags}, \
	[(op) + 14] = {pre "le", form, width, 0, flags}, [(op) + 15] = {pre "g", form, width, 0, flags}

static const struct spec specs1[256] = {
	ALU(0x00, "add"), ALU(0x08, "or"), ALU(0x10, "adc"), ALU(0x18, "sbb"),
	ALU(0x20, "and"), ALU(0x28, "sub"), ALU(0x30, "xor"), ALU(0x38, "cmp"),
	SAME8(0x50, {"push", F_O, 0, 0, NO_W | NO_66 | STACK}),
	SAME8(0x58, {"pop", F_O, 0, 0, NO_W | NO_66 | STACK}),
	[0x63] = {"movsxd", F_GE, 0, W_4, ONLY_W | NO_66},
	[0x68] = {"push", F_IZ, 0, 0, NO_W | NO_66 | STACK},
	[0x69] = {"imul", F_GEIZ, 0, 0, 0},
	[0x6a] = {"push", F_I8, 0, 0, NO_W | NO_66 | STACK},
	[0x6b] = {"imul", F_GEI8, 0, 0, 0},
	CC(0x70, "j", F_J8, 0, NO_W | NO_66),
	[0x84] = {"test", F_EG, W_B, 0, NO_W | NO_66}, [0x85] = {"test", F_EG, 0, 0, 0},
	[0x86] = {"xchg", F_EG, W_B, 0, NO_W | NO_66}, [0x87] = {"xchg", F_EG, 0, 0, 0},
	[0x88] = {"mov", F_EG, W_B, 0, NO_W | NO_66}, [0x89] = {"mov", F_EG, 0, 0, 0},
	[0x8a] = {"mov", F_GE, W_B, 0, NO_W | NO_66}, [0x8b] = {"mov", F_GE, 0, 0, 0},
	[0x8d] = {"lea", F_LEA, 0, W_NONE, 0},
	[0x90] = {"nop", F_NULL, 0, 0, NO_W | NO_66},
	SAME8(0xb0, {"mov", F_OI, W_B, 0, NO_W | NO_66}), SAME8(0xb8, {"mov", F_OI, 0, 0, 0}),
	[0xa8] = {"test", F_AI, W_B, 0, NO_W | NO_66}, [0xa9] = {"test", F_AI, 0, 0, 0},
	[0xc3] = {"ret", F_NULL, 0, 0, NO_W | NO_66},
	[0xc9] = {"leave", F_NULL, 0, 0, NO_W | NO_66},
	[0xcc] = {"int3", F_NULL, 0, 0, NO_W | NO_66},
	[0xe8] = {"call", F_JZ, 0, 0, NO_W | NO_66},
	[0xe9] = {"jmp", F_JZ, 0, 0, NO_W | NO_66}, [0xeb] = {"jmp", F_J8, 0, 0, NO_W | NO_66},
};

/* Groups by opcode: names by ModRM.reg, empty where something else is meant. */
static const char alu_names[8][4] = {"add", "or", "adc", "sbb", "and", "sub", "xor", "cmp"};
static const char shift_names[8][4] = {"rol", "ror", "rcl", "rcr", "shl", "shr", "shl", "sar"};
static const char unary_names[8][5] = {"test", "test", "not", "neg", "mul", "imul", "div", "idiv"};
static const char stack_names[8][5] = {"", "", "call", "", "jmp", "", "push", ""};
static const char bit_names[8][4] = {"", "", "", "", "bt", "bts", "btr", "btc"};

static const struct spec specs2[256] = {
	[0x05] = {"syscall", F_NULL, 0, 0, NO_W | NO_66},
	[0x0b] = {"ud2", F_NULL, 0, 0, NO_W | NO_66},
	[0x1f] = {"nop", F_E, 0, 0, 0},
	CC(0x40, "cmov", F_GE, 0, 0), CC(0x80, "j", F_JZ, 0, NO_W | NO_66),
	CC(0x90, "set", F_E, W_B, NO_W | NO_66),
	[0xa2] = {"cpuid", F_NULL, 0, 0, NO_W | NO_66},
	[0xa3] = {"bt", F_EG, 0, 0, 0}, [0xab] = {"bts", F_EG, 0, 0, 0},
	[0xb3] = {"btr", F_EG, 0, 0, 0}, [0xbb] = {"btc", F_EG, 0, 0, 0},
	[0xa4] = {"shld", F_EGI8, 0, 0, 0}, [0xa5] = {"shld", F_EGCL, 0, 0, 0},
	[0xac] = {"shrd", F_EGI8, 0, 0, 0}, [0xad] = {"shrd", F_EGCL, 0, 0, 0},
	[0xaf] = {"imul", F_GE, 0, 0, 0},
	[0xb0] = {"cmpxchg", F_EG, W_B, 0, NO_W | NO_66}, [0xb1] = {"cmpxchg", F_EG, 0, 0, 0},
	[0xb6] = {"movzx", F_GE, 0, W_B, 0}, [0xb7] = {"movzx", F_GE, 0, W_2, NO_66},
	[0xbc] = {"bsf", F_GE, 0, 0, 0}, [0xbd] = {"bsr", F_GE, 0, 0, 0},
	[0xbe] = {"movsx", F_GE, 0, W_B, 0}, [0xbf] = {"movsx", F_GE, 0, W_2, NO_66},
	[0xc0] = {"xadd", F_EG, W_B, 0, NO_W | NO_66}, [0xc1] = {"xadd", F_EG, 0, 0, 0},
	SAME8(0xc8, {"bswap", F_O, 0, 0, NO_66}),
};

#define ARITH(op, n)                                                                            \
	{(op), 0, {n "ps", F_VW, 0, W_16, NO_W}}, {(op), 0x66, {n "pd", F_VW, 0, W_16, NO_W}},     \
	{(op), 0xf3, {n "ss", F_VW, 0, W_4, NO_W}}, {(op), 0xf2, {n "sd", F_VW, 0, W_8, NO_W}}
#define LOGIC(op, n)                                                                            \
	{(op), 0, {n "ps", F_VW, 0, W_16, NO_W}}, {(op), 0x66, {n "pd", F_VW, 0, W_16, NO_W}}
#define INT(op, n) {(op), 0x66, {n, F_VW, 0, W_16, NO_W}}

/* SSE: opcode of the 0f map and mandatory prefix; sorted by opcode. */
static const struct sse {
	uint8_t op, prefix;
	struct spec spec;
} sse[] = {
	{0x10, 0, {"movups", F_VW, 0, W_16, NO_W}}, {0x10, 0x66, {"movupd", F_VW, 0, W_16, NO_W}},
	{0x10, 0xf3, {"movss", F_VW, 0, W_4, NO_W}}, {0x10, 0xf2, {"movsd", F_VW, 0, W_8, NO_W}},
	{0x11, 0, {"movups", F_WV, 0, W_16, NO_W}}, {0x11, 0x66, {"movupd", F_WV, 0, W_16, NO_W}},
	{0x11, 0xf3, {"movss", F_WV, 0, W_4, NO_W}}, {0x11, 0xf2, {"movsd", F_WV, 0, W_8, NO_W}},
	LOGIC(0x14, "unpckl"), LOGIC(0x15, "unpckh"),
	{0x28, 0, {"movaps", F_VW, 0, W_16, NO_W}}, {0x28, 0x66, {"movapd", F_VW, 0, W_16, NO_W}},
	{0x29, 0, {"movaps", F_WV, 0, W_16, NO_W}}, {0x29, 0x66, {"movapd", F_WV, 0, W_16, NO_W}},
	{0x2a, 0xf3, {"cvtsi2ss", F_VE, W_DQ, 0, 0}}, {0x2a, 0xf2, {"cvtsi2sd", F_VE, W_DQ, 0, 0}},
	{0x2c, 0xf3, {"cvttss2si", F_GW, W_DQ, W_4, 0}}, {0x2c, 0xf2, {"cvttsd2si", F_GW, W_DQ, W_8, 0}},
	{0x2e, 0, {"ucomiss", F_VW, 0, W_4, NO_W}}, {0x2e, 0x66, {"ucomisd", F_VW, 0, W_8, NO_W}},
	{0x2f, 0, {"comiss", F_VW, 0, W_4, NO_W}}, {0x2f, 0x66, {"comisd", F_VW, 0, W_8, NO_W}},
	ARITH(0x51, "sqrt"), LOGIC(0x54, "and"), LOGIC(0x55, "andn"), LOGIC(0x56, "or"), LOGIC(0x57, "xor"),
	ARITH(0x58, "add"), ARITH(0x59, "mul"),
	{0x5a, 0xf3, {"cvtss2sd", F_VW, 0, W_4, NO_W}}, {0x5a, 0xf2, {"cvtsd2ss", F_VW, 0, W_8, NO_W}},
	{0x5b, 0, {"cvtdq2ps", F_VW, 0, W_16, NO_W}},
	ARITH(0x5c, "sub"), ARITH(0x5d, "min"), ARITH(0x5e, "div"), ARITH(0x5f, "max"),
	INT(0x60, "punpcklbw"), INT(0x61, "punpcklwd"), INT(0x62, "punpckldq"), INT(0x64, "pcmpgtb"),
	INT(0x65, "pcmpgtw"), INT(0x66, "pcmpgtd"), INT(0x68, "punpckhbw"), INT(0x69, "punpckhwd"),
	INT(0x6a, "punpckhdq"),
	{0x6e, 0x66, {"movd", F_VE, W_DQ, 0, NO_W}},
	{0x6f, 0x66, {"movdqa", F_VW, 0, W_16, NO_W}}, {0x6f, 0xf3, {"movdqu", F_VW, 0, W_16, NO_W}},
	{0x70, 0x66, {"pshufd", F_VWI, W_B, W_16, NO_W}},
	INT(0x74, "pcmpeqb"), INT(0x75, "pcmpeqw"), INT(0x76, "pcmpeqd"),
	{0x7e, 0x66, {"movd", F_EV, W_DQ, 0, NO_W}}, {0x7e, 0xf3, {"movq", F_VW, 0, W_8, NO_W}},
	{0x7f, 0x66, {"movdqa", F_WV, 0, W_16, NO_W}}, {0x7f, 0xf3, {"movdqu", F_WV, 0, W_16, NO_W}},
	{0xc6, 0, {"shufps", F_VWI, W_B, W_16, NO_W}}, {0xc6, 0x66, {"shufpd", F_VWI, W_B, W_16, NO_W}},
	INT(0xd4, "paddq"), {0xd6, 0x66, {"movq", F_WV, 0, W_8, NO_W}}, INT(0xda, "pminub"),
	INT(0xdb, "pand"), INT(0xde, "pmaxub"), INT(0xdf, "pandn"), INT(0xeb, "por"), INT(0xef, "pxor"),
	INT(0xf8, "psubb"), INT(0xf9, "psubw"), INT(0xfa, "psubd"), INT(0xfb, "psubq"), INT(0xfc, "paddb"),
	INT(0xfd, "paddw"), INT(0xfe, "paddd"),
};

struct out {
	char *s;
	struct arch_text *t;
	const struct arch_names *names;
	const struct spec *spec;
	const uint8_t *p; /* next byte */
	uint64_t va;      /* of the instruction */
	uint64_t imm;
	int32_t disp;
	bool is_64, has_disp, has_base, has_index, is_rip;
	bool has_low_byte; /* spl, bpl, sil or dil stands in an operand: REX has a use */
	uint8_t op, rex, osz, mod, reg, rm, base, index, scale, len, operand;
};

static void span(struct out *o, const char *from, enum arch_token kind)
{
	o->t->spans[o->t->span_cnt++] = (struct arch_span){
		.off = (uint8_t)(from - o->t->text), .len = (uint8_t)(o->s - from),
		.kind = (uint8_t)kind, .operand = o->operand};
}

static void put_hex(struct out *o, uint64_t v)
{
	unsigned digits = v ? (67u - (unsigned)__builtin_clzll(v)) / 4 : 1;
	*o->s++ = '0';
	*o->s++ = 'x';
	for (unsigned i = digits; i > 0; i--) {
		o->s[i - 1] = "0123456789abcdef"[v & 15];
		v >>= 4;
	}
	o->s += digits;
}

static void put_name_or(struct out *o, uint64_t va, uint64_t shown, enum arch_token kind)
{
	char *from = o->s;
	size_t n = o->names ? o->names->fn(o->names->ctx, va, from, X86_NAME_MAX) : 0;
	if (n > 0) {
		o->s += MIN(n, (size_t)X86_NAME_MAX);
		span(o, from, ARCH_TOK_NAME);
		return;
	}
	put_hex(o, shown);
	span(o, from, kind);
}

/* Four bytes each, the length in front of the name. */
static void put_gpr(struct out *o, unsigned r, unsigned width)
{
	static const char names[4][16][5] = {
		{"\2al", "\2cl", "\2dl", "\2bl", "\3spl", "\3bpl", "\3sil", "\3dil",
		 "\3r8b", "\3r9b", "\4r10b", "\4r11b", "\4r12b", "\4r13b", "\4r14b", "\4r15b"},
		{"\2ax", "\2cx", "\2dx", "\2bx", "\2sp", "\2bp", "\2si", "\2di",
		 "\3r8w", "\3r9w", "\4r10w", "\4r11w", "\4r12w", "\4r13w", "\4r14w", "\4r15w"},
		{"\3eax", "\3ecx", "\3edx", "\3ebx", "\3esp", "\3ebp", "\3esi", "\3edi",
		 "\3r8d", "\3r9d", "\4r10d", "\4r11d", "\4r12d", "\4r13d", "\4r14d", "\4r15d"},
		{"\3rax", "\3rcx", "\3rdx", "\3rbx", "\3rsp", "\3rbp", "\3rsi", "\3rdi",
		 "\2r8", "\2r9", "\3r10", "\3r11", "\3r12", "\3r13", "\3r14", "\3r15"}};
	static const char high[4][5] = {"\2ah", "\2ch", "\2dh", "\2bh"};
	const char *n = names[width == 1 ? 0 : width == 2 ? 1 : width == 4 ? 2 : 3][r];
	if (width == 1 && r >= 4 && r < 8) {
		o->has_low_byte = true;
		if (!o->rex)
			n = high[r - 4];
	}
	char *from = o->s;
	memcpy(o->s, n + 1, 4);
	o->s += n[0];
	span(o, from, ARCH_TOK_REG);
}

static void put_xmm(struct out *o, unsigned r)
{
	char *from = o->s;
	memcpy(o->s, "xmm", 3);
	o->s += 3;
	if (r >= 10)
		*o->s++ = '1';
	*o->s++ = (char)('0' + r % 10);
	span(o, from, ARCH_TOK_REG);
}

/* ModRM, SIB, displacement; false for the forms that are written in an unusual way. */
static bool read_modrm(struct out *o)
{
	uint8_t m = *o->p++;
	o->mod = m >> 6;
	o->reg = (uint8_t)((m >> 3 & 7) | (o->rex & 4) << 1);
	o->rm = (uint8_t)((m & 7) | (o->rex & 1) << 3);
	if (o->mod == 3)
		return !(o->rex & 2);
	o->base = o->rm;
	o->has_base = true;
	o->has_disp = o->mod != 0;
	unsigned disp_len = o->mod == 1 ? 1 : o->mod == 2 ? 4 : 0;
	if ((m & 7) == 4) {
		uint8_t sib = *o->p++;
		o->base = (uint8_t)((sib & 7) | (o->rex & 1) << 3);
		o->index = (uint8_t)((sib >> 3 & 7) | (o->rex & 2) << 2);
		o->scale = (uint8_t)(sib >> 6);
		o->has_index = o->index != 4;
		if (o->mod == 0 && (sib & 7) == 5) {
			o->has_base = false;
			disp_len = 4;
		}
		/* riz and eiz */
		if (!o->has_index && (o->scale != 0 || (o->has_base && (o->base & 7) != 4) ||
				      (!o->has_base && !o->is_64)))
			return false;
	} else if (o->rex & 2) {
		return false;
	} else if (o->mod == 0 && (m & 7) == 5) {
		o->has_base = false;
		o->is_rip = o->is_64;
		disp_len = 4;
	}
	if (disp_len == 1)
		o->disp = (int8_t)*o->p;
	else if (disp_len == 4)
		o->disp = (int32_t)load_u32(o->p, false);
	o->has_disp = disp_len != 0;
	o->p += disp_len;
	return true;
}

static unsigned width_of(const struct out *o)
{
	unsigned w = o->spec->width;
	if (w == W_DQ)
		return o->rex & 8 ? 8 : 4;
	if (w)
		return w;
	if (o->spec->flags & STACK)
		return o->is_64 ? 8 : 4;
	return o->osz;
}

static void put_size(struct out *o, unsigned width)
{
	static const struct {
		char word[12];
		uint8_t len;
	} sizes[5] = {{"BYTE PTR", 8}, {"WORD PTR", 8}, {"DWORD PTR", 9}, {"QWORD PTR", 9}, {"XMMWORD PTR", 11}};
	unsigned i = (unsigned)__builtin_ctz(width);
	char *from = o->s;
	memcpy(o->s, sizes[i].word, 12);
	o->s += sizes[i].len;
	span(o, from, ARCH_TOK_SIZE);
	*o->s++ = ' ';
}

static void put_word(struct out *o, const char *word, size_t len)
{
	char *from = o->s;
	memcpy(o->s, word, len);
	o->s += len;
	span(o, from, ARCH_TOK_REG);
}

static void put_mem(struct out *o, unsigned width)
{
	if (width != W_NONE)
		put_size(o, width);
	if (!o->has_base && !o->has_index && !o->is_rip) {
		put_word(o, "ds", 2);
		*o->s++ = ':';
		uint64_t v = o->is_64 ? (uint64_t)(int64_t)o->disp : (uint32_t)o->disp;
		put_name_or(o, v, v, ARCH_TOK_ADDR);
		return;
	}
	unsigned addr_width = o->is_64 ? 8 : 4;
	*o->s++ = '[';
	if (o->is_rip) {
		put_word(o, "rip", 3);
		*o->s++ = '+';
		uint64_t disp = (uint64_t)(int64_t)o->disp;
		put_name_or(o, o->va + o->len + disp, disp, ARCH_TOK_DISP);
		*o->s++ = ']';
		return;
	}
	bool low = o->has_low_byte;
	if (o->has_base)
		put_gpr(o, o->base, addr_width);
	if (o->has_index) {
		if (o->has_base)
			*o->s++ = '+';
		put_gpr(o, o->index, addr_width);
		*o->s++ = '*';
		*o->s++ = (char)('0' + (1 << o->scale));
	}
	o->has_low_byte = low;
	if (o->has_disp) {
		*o->s++ = o->disp < 0 ? '-' : '+';
		char *from = o->s;
		put_hex(o, o->disp < 0 ? (uint64_t)-(int64_t)o->disp : (uint64_t)o->disp);
		span(o, from, ARCH_TOK_DISP);
	}
	*o->s++ = ']';
}

static void put_operand(struct out *o, enum kind kind)
{
	unsigned width = width_of(o);
	char *from;
	switch (kind) {
	case K_E:
		if (o->mod == 3)
			put_gpr(o, o->rm, o->spec->mem && o->spec->mem != W_NONE ? o->spec->mem : width);
		else
			put_mem(o, o->spec->mem ? o->spec->mem : width);
		break;
	case K_G:
		put_gpr(o, o->reg, width);
		break;
	case K_O:
		put_gpr(o, (o->op & 7u) | (o->rex & 1u) << 3, width);
		break;
	case K_A:
		put_gpr(o, 0, width);
		break;
	case K_J:
		o->imm += o->va + o->len;
		o->imm = o->is_64 ? o->imm : (uint32_t)o->imm;
		put_name_or(o, o->imm, o->imm, ARCH_TOK_ADDR);
		break;
	case K_I:
		from = o->s;
		put_hex(o, width < 8 ? o->imm & (((uint64_t)1 << width * 8) - 1) : o->imm);
		span(o, from, ARCH_TOK_IMM);
		break;
	case K_ONE:
		from = o->s;
		*o->s++ = '1';
		span(o, from, ARCH_TOK_IMM);
		break;
	case K_CL:
		put_word(o, "cl", 2);
		break;
	case K_V:
		put_xmm(o, o->reg);
		break;
	case K_W:
		if (o->mod == 3)
			put_xmm(o, o->rm);
		else
			put_mem(o, o->spec->mem);
		break;
	case K_NONE:
		break;
	}
}

static void read_imm(struct out *o, enum imm imm)
{
	switch (imm) {
	case I_8S:
		o->imm = (uint64_t)(int64_t)(int8_t)*o->p++;
		return;
	case I_8U:
		o->imm = *o->p++;
		return;
	case I_Z:
	case I_V:
		break;
	case I_NONE:
		return;
	}
	if (o->spec->width == W_B) {
		o->imm = *o->p++;
	} else if (imm == I_V && o->osz == 8) {
		o->imm = load_u64(o->p, false);
		o->p += 8;
	} else if (o->osz == 2) {
		o->imm = load_u16(o->p, false);
		o->p += 2;
	} else {
		o->imm = (uint64_t)(int64_t)(int32_t)load_u32(o->p, false);
		o->p += 4;
	}
}

/* Groups of the one-byte map; false for what is not in them. */
static bool group_spec(uint8_t op, unsigned reg, struct spec *ret)
{
	uint8_t width = op & 1 ? 0 : W_B;
	uint8_t flags = op & 1 ? 0 : NO_W | NO_66;
	*ret = (struct spec){"", F_NONE, width, 0, flags};
	if (op == 0x80 || op == 0x81 || op == 0x83) {
		memcpy(ret->name, alu_names[reg], 4);
		ret->form = op == 0x81 ? F_EIZ : F_EI8;
	} else if (op == 0xc0 || op == 0xc1 || (op & 0xfc) == 0xd0) {
		memcpy(ret->name, shift_names[reg], 4);
		ret->form = op < 0xd0 ? F_EI8U : op < 0xd2 ? F_E1 : F_ECL;
	} else if (op == 0xf6 || op == 0xf7) {
		memcpy(ret->name, unary_names[reg], 5);
		ret->form = reg < 2 ? F_EIZ : F_E;
	} else if ((op == 0xc6 || op == 0xc7) && reg == 0) {
		memcpy(ret->name, "mov", 4);
		ret->form = F_EIZ;
	} else if ((op == 0xfe || op == 0xff) && reg < 2) {
		memcpy(ret->name, reg ? "dec" : "inc", 4);
		ret->form = F_E;
	} else if (op == 0xff && (reg == 2 || reg == 4 || reg == 6)) {
		memcpy(ret->name, stack_names[reg], 5);
		ret->form = F_E;
		ret->flags = NO_W | NO_66 | STACK;
	}
	return ret->form != F_NONE;
}

static const struct spec *sse_spec(uint8_t op, uint8_t prefix)
{
	for (size_t i = 0; i < ARRAY_LEN(sse) && sse[i].op <= op; i++) {
		if (sse[i].op == op && sse[i].prefix == prefix)
			return &sse[i].spec;
	}
	return NULL;
}

/* The table entry for the opcode at `p`; null for what Zydis shall decode. `tmp` may hold it. */
static const struct spec *find_spec(struct out *o, uint8_t prefix, struct spec *tmp)
{
	const struct spec *s;
	uint8_t modrm;
	if (o->op == 0x0f) {
		o->op = *o->p++;
		modrm = *o->p;
		s = specs2[o->op].form && (prefix == 0 || prefix == 0x66) ? &specs2[o->op]
									   : sse_spec(o->op, prefix);
		if (o->op == 0xba && (modrm & 0x20) && prefix < 0x67) {
			*tmp = (struct spec){"", F_EI8U, 0, 0, 0};
			memcpy(tmp->name, bit_names[modrm >> 3 & 7], 4);
			return tmp;
		}
		if (o->op == 0x05 && !o->is_64)
			return NULL;
		/* movd becomes movq with REX.W. */
		if (s && (o->op == 0x6e || o->op == 0x7e) && prefix == 0x66) {
			*tmp = *s;
			tmp->flags = 0;
			if (o->rex & 8)
				memcpy(tmp->name, "movq", 5);
			return tmp;
		}
		return s;
	}
	if (prefix != 0 && prefix != 0x66)
		return NULL;
	s = &specs1[o->op];
	modrm = *o->p;
	if (!s->form)
		return group_spec(o->op, modrm >> 3 & 7, tmp) ? tmp : NULL;
	if ((o->op & 0xf8) == 0xb8 && o->osz == 8) {
		*tmp = *s;
		memcpy(tmp->name, "movabs", 7);
		return tmp;
	}
	return s;
}

/* Whether each bit of REX has a use in this form. */
static bool rex_is_used(const struct out *o, const struct form_ops *f)
{
	if (o->rex == 0)
		return true;
	bool has_reg = f->kinds[0] == K_G || f->kinds[1] == K_G || f->kinds[0] == K_V || f->kinds[1] == K_V;
	if ((o->rex & 8) && (o->spec->flags & NO_W))
		return false;
	if ((o->rex & 4) && !has_reg)
		return false;
	if ((o->rex & 1) && !f->has_modrm && f->kinds[0] != K_O)
		return false;
	if ((o->rex & 2) && !f->has_modrm)
		return false;
	return (o->rex & 15) != 0 || o->has_low_byte;
}

static size_t put_all(struct out *o, const struct form_ops *f)
{
	o->operand = 255;
	memcpy(o->s, o->spec->name, sizeof(o->spec->name));
	char *from = o->s;
	o->s += strlen(o->spec->name);
	span(o, from, ARCH_TOK_MNEMONIC);
	for (unsigned i = 0; i < 3 && f->kinds[i]; i++) {
		*o->s++ = i ? ',' : ' ';
		o->operand = (uint8_t)i;
		put_operand(o, (enum kind)f->kinds[i]);
	}
	if (!rex_is_used(o, f))
		return 0;
	o->t->len = (uint8_t)(o->s - o->t->text);
	*o->s = 0;
	return o->len;
}

size_t x86_format_fast(const struct arch *a, const uint8_t *p, size_t len, uint64_t va,
		       const struct arch_names *names, struct arch_text *ret)
{
	struct out o = {.s = ret->text, .t = ret, .names = names, .va = va, .is_64 = a->bits == 64, .p = p};
	struct spec tmp;
	uint8_t prefix = 0;
	/* Longest that is read before the length is known: prefix, REX, opcode, ModRM, SIB, 4 + 8. */
	if (len < 20)
		return 0;
	ret->span_cnt = 0;
	if (*o.p == 0x66 || *o.p == 0xf2 || *o.p == 0xf3)
		prefix = *o.p++;
	if (x86_is_rex(a, *o.p))
		o.rex = *o.p++;
	o.op = *o.p++;
	o.osz = o.rex & 8 ? 8 : prefix == 0x66 ? 2 : 4;
	o.spec = find_spec(&o, prefix, &tmp);
	if (!o.spec)
		return 0;
	const struct form_ops *f = &forms[o.spec->form];
	bool is_sse = o.spec->form >= F_VW;
	if (prefix == 0x66 && !is_sse && ((o.spec->flags & NO_66) || (o.rex & 8)))
		return 0;
	if (o.spec->flags & ONLY_W && !(o.rex & 8))
		return 0;
	if (f->has_modrm && !read_modrm(&o))
		return 0;
	if (o.spec->form == F_LEA && o.mod == 3)
		return 0;
	/* No jump or stack instruction has its immediate cut by the operand size here. */
	read_imm(&o, (enum imm)f->imm);
	o.len = (uint8_t)(o.p - p);
	return put_all(&o, f);
}
