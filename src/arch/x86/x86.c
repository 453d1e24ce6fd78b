/* SPDX-License-Identifier: Apache-2.0 */
#include "arch/x86/x86.h"

#include "arch/x86/x86_int.h"

/* What ZydisDecoderInit() makes; written out so that the tables stay constant and shared freely. */
#define X86_DECODER(mode, width)                                        \
	{                                                               \
		.machine_mode = (mode), .stack_width = (width),         \
		.decoder_mode = {                                       \
			[ZYDIS_DECODER_MODE_AMD_BRANCHES] = ZYAN_TRUE, \
			[ZYDIS_DECODER_MODE_MPX] = ZYAN_TRUE,           \
			[ZYDIS_DECODER_MODE_CET] = ZYAN_TRUE,           \
			[ZYDIS_DECODER_MODE_LZCNT] = ZYAN_TRUE,         \
			[ZYDIS_DECODER_MODE_TZCNT] = ZYAN_TRUE,         \
			[ZYDIS_DECODER_MODE_CLDEMOTE] = ZYAN_TRUE,      \
		},                                                      \
	}

static const ZydisDecoder decoder_64 =
	X86_DECODER(ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
static const ZydisDecoder decoder_32 =
	X86_DECODER(ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32);

const ZydisDecoder *x86_decoder(const struct arch *a)
{
	return a->bits == 64 ? &decoder_64 : &decoder_32;
}

uint8_t x86_gpr(ZydisRegister r, uint8_t *ret_width, bool *ret_is_high)
{
	uint8_t width;
	uint8_t num;
	bool is_high = false;
	if (r >= ZYDIS_REGISTER_RAX && r <= ZYDIS_REGISTER_R15) {
		width = 8;
		num = (uint8_t)(r - ZYDIS_REGISTER_RAX);
	} else if (r >= ZYDIS_REGISTER_EAX && r <= ZYDIS_REGISTER_R15D) {
		width = 4;
		num = (uint8_t)(r - ZYDIS_REGISTER_EAX);
	} else if (r >= ZYDIS_REGISTER_AX && r <= ZYDIS_REGISTER_R15W) {
		width = 2;
		num = (uint8_t)(r - ZYDIS_REGISTER_AX);
	} else if (r >= ZYDIS_REGISTER_AL && r <= ZYDIS_REGISTER_R15B) {
		width = 1;
		num = (uint8_t)(r - ZYDIS_REGISTER_AL);
		is_high = num >= 4 && num < 8;
		if (num >= 4)
			num = (uint8_t)(num - 4);
	} else {
		width = 0;
		num = ARCH_REG_NONE;
	}
	if (ret_width)
		*ret_width = width;
	if (ret_is_high)
		*ret_is_high = is_high;
	return num;
}

bool x86_is_legacy_prefix(uint8_t b)
{
	switch (b) {
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0x64:
	case 0x65:
	case 0x66:
	case 0x67:
	case 0xf0:
	case 0xf2:
	case 0xf3:
		return true;
	default:
		return false;
	}
}

unsigned x86_lead(const struct arch *a, const uint8_t *p, size_t len, bool *ret_is_fwait)
{
	bool has_rex = false;
	*ret_is_fwait = p[0] == 0x9b;
	for (unsigned i = *ret_is_fwait ? 1 : 0; i < len && i < X86_MAX_LEN; i++) {
		bool is_rex = x86_is_rex(a, p[i]);
		if (has_rex && p[i] == 0x9b && !*ret_is_fwait)
			return i;
		if (!is_rex && !x86_is_legacy_prefix(p[i]))
			return *ret_is_fwait && p[i] >= 0xd8 && p[i] <= 0xdf ? 1 : 0;
		if (has_rex)
			return *ret_is_fwait ? 0 : i;
		has_rex = is_rex;
	}
	return 0;
}

static const char *reg_name(const struct arch *a, uint8_t r)
{
	static const char *const names[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
					    "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
	static const char *const names_32[] = {"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"};
	if (r >= a->reg_cnt)
		return "";
	return a->bits == 64 ? names[r] : names_32[r];
}

/* System V calling conventions: rax, rcx, rdx, rsi, rdi, r8-r11; eax, ecx, edx. */
const struct arch x86_64 = {
	.name = "x86-64",
	.id = ARCH_ID_X86_64,
	.bits = 64,
	.align = 1,
	.min_len = 1,
	.max_len = X86_MAX_LEN,
	.reg_cnt = 16,
	.sp_reg = 4,
	.link_reg = ARCH_REG_NONE,
	.func_align = 16,
	.call_clobbers = 0x0fc7,
	.decode = x86_decode,
	.effect = x86_effect,
	.accesses = x86_accesses,
	.format = x86_format,
	.reg_name = reg_name,
};

const struct arch x86_i386 = {
	.name = "i386",
	.id = ARCH_ID_I386,
	.bits = 32,
	.align = 1,
	.min_len = 1,
	.max_len = X86_MAX_LEN,
	.reg_cnt = 8,
	.sp_reg = 4,
	.link_reg = ARCH_REG_NONE,
	.func_align = 16,
	.call_clobbers = 0x07,
	.decode = x86_decode,
	.effect = x86_effect,
	.accesses = x86_accesses,
	.format = x86_format,
	.reg_name = reg_name,
};
