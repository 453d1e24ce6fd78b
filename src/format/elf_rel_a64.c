/* SPDX-License-Identifier: Apache-2.0 */
/* Relocations of ELF for the Arm 64-bit architecture (AAELF64 5.7), and the instruction fields they
 * set. */
#include "format/elf_int.h"

#include <elf.h>

#define TLS_INSN(type)                                                                             \
	{                                                                                          \
		type, ELF_REL_TLS, 4, 0, false                                                     \
	}

static const struct elf_rel_rule rules[] = {
	{R_AARCH64_NONE, ELF_REL_NONE, 0, 0, false},
	{256, ELF_REL_NONE, 0, 0, false}, /* an old number of NONE */
	{R_AARCH64_ABS64, ELF_REL_ABS, 8, 0, false},
	{R_AARCH64_ABS32, ELF_REL_ABS, 4, 0, false},
	{R_AARCH64_ABS16, ELF_REL_ABS, 2, 0, false},
	{R_AARCH64_PREL64, ELF_REL_PC, 8, 0, false},
	{R_AARCH64_PREL32, ELF_REL_PC, 4, 0, false},
	{R_AARCH64_PREL16, ELF_REL_PC, 2, 0, false},
	{314, ELF_REL_PC, 4, 0, false}, /* PLT32 */
	{R_AARCH64_MOVW_UABS_G0, ELF_REL_A64_MOVW, 4, 0, false},
	{R_AARCH64_MOVW_UABS_G0_NC, ELF_REL_A64_MOVW, 4, 0, false},
	{R_AARCH64_MOVW_UABS_G1, ELF_REL_A64_MOVW, 4, 1, false},
	{R_AARCH64_MOVW_UABS_G1_NC, ELF_REL_A64_MOVW, 4, 1, false},
	{R_AARCH64_MOVW_UABS_G2, ELF_REL_A64_MOVW, 4, 2, false},
	{R_AARCH64_MOVW_UABS_G2_NC, ELF_REL_A64_MOVW, 4, 2, false},
	{R_AARCH64_MOVW_UABS_G3, ELF_REL_A64_MOVW, 4, 3, false},
	{R_AARCH64_MOVW_SABS_G0, ELF_REL_A64_MOVW_SIGNED, 4, 0, false},
	{R_AARCH64_MOVW_SABS_G1, ELF_REL_A64_MOVW_SIGNED, 4, 1, false},
	{R_AARCH64_MOVW_SABS_G2, ELF_REL_A64_MOVW_SIGNED, 4, 2, false},
	{R_AARCH64_LD_PREL_LO19, ELF_REL_A64_B19, 4, 0, false},
	{R_AARCH64_ADR_PREL_LO21, ELF_REL_A64_ADR, 4, 0, false},
	{R_AARCH64_ADR_PREL_PG_HI21, ELF_REL_A64_PAGE, 4, 0, false},
	{R_AARCH64_ADR_PREL_PG_HI21_NC, ELF_REL_A64_PAGE, 4, 0, false},
	{R_AARCH64_ADD_ABS_LO12_NC, ELF_REL_A64_LO12, 4, 0, false},
	{R_AARCH64_LDST8_ABS_LO12_NC, ELF_REL_A64_LO12, 4, 0, false},
	{R_AARCH64_TSTBR14, ELF_REL_A64_B14, 4, 0, false},
	{R_AARCH64_CONDBR19, ELF_REL_A64_B19, 4, 0, false},
	{R_AARCH64_JUMP26, ELF_REL_A64_B26, 4, 0, false},
	{R_AARCH64_CALL26, ELF_REL_A64_B26, 4, 0, false},
	{R_AARCH64_LDST16_ABS_LO12_NC, ELF_REL_A64_LO12, 4, 1, false},
	{R_AARCH64_LDST32_ABS_LO12_NC, ELF_REL_A64_LO12, 4, 2, false},
	{R_AARCH64_LDST64_ABS_LO12_NC, ELF_REL_A64_LO12, 4, 3, false},
	{R_AARCH64_LDST128_ABS_LO12_NC, ELF_REL_A64_LO12, 4, 4, false},
	{R_AARCH64_GOTREL64, ELF_REL_GOT_OFF, 8, 0, false},
	{R_AARCH64_GOTREL32, ELF_REL_GOT_OFF, 4, 0, false},
	{R_AARCH64_GOT_LD_PREL19, ELF_REL_A64_B19, 4, 0, true},
	{R_AARCH64_ADR_GOT_PAGE, ELF_REL_A64_PAGE, 4, 0, true},
	{R_AARCH64_LD64_GOT_LO12_NC, ELF_REL_A64_LO12, 4, 3, true},
	{310, ELF_REL_A64_GOT_LO15, 4, 0, true}, /* LD64_GOTOFF_LO15: from GOT */
	{313, ELF_REL_A64_GOT_LO15, 4, 1, true}, /* LD64_GOTPAGE_LO15: from the page of GOT */
	{R_AARCH64_COPY, ELF_REL_COPY, 8, 0, false},
	{R_AARCH64_GLOB_DAT, ELF_REL_GLOB, 8, 0, false},
	{R_AARCH64_JUMP_SLOT, ELF_REL_JUMP, 8, 0, false},
	{R_AARCH64_RELATIVE, ELF_REL_RELATIVE, 8, 0, false},
	{R_AARCH64_TLS_DTPMOD, ELF_REL_TLS, 8, 0, false},
	{R_AARCH64_TLS_DTPREL, ELF_REL_TLS, 8, 0, false},
	{R_AARCH64_TLS_TPREL, ELF_REL_TLS, 8, 0, false},
	{R_AARCH64_TLSDESC, ELF_REL_TLS, 8, 0, false},
	{R_AARCH64_IRELATIVE, ELF_REL_IRELATIVE, 8, 0, false},
	TLS_INSN(R_AARCH64_TLSGD_ADR_PREL21),
	TLS_INSN(R_AARCH64_TLSGD_ADR_PAGE21),
	TLS_INSN(R_AARCH64_TLSGD_ADD_LO12_NC),
	TLS_INSN(R_AARCH64_TLSLD_ADR_PREL21),
	TLS_INSN(R_AARCH64_TLSLD_ADR_PAGE21),
	TLS_INSN(R_AARCH64_TLSLD_ADD_LO12_NC),
	TLS_INSN(R_AARCH64_TLSLD_ADD_DTPREL_HI12),
	TLS_INSN(R_AARCH64_TLSLD_ADD_DTPREL_LO12),
	TLS_INSN(R_AARCH64_TLSLD_ADD_DTPREL_LO12_NC),
	TLS_INSN(R_AARCH64_TLSIE_ADR_GOTTPREL_PAGE21),
	TLS_INSN(R_AARCH64_TLSIE_LD64_GOTTPREL_LO12_NC),
	TLS_INSN(R_AARCH64_TLSIE_LD_GOTTPREL_PREL19),
	TLS_INSN(R_AARCH64_TLSLE_MOVW_TPREL_G2),
	TLS_INSN(R_AARCH64_TLSLE_MOVW_TPREL_G1),
	TLS_INSN(R_AARCH64_TLSLE_MOVW_TPREL_G1_NC),
	TLS_INSN(R_AARCH64_TLSLE_MOVW_TPREL_G0),
	TLS_INSN(R_AARCH64_TLSLE_MOVW_TPREL_G0_NC),
	TLS_INSN(R_AARCH64_TLSLE_ADD_TPREL_HI12),
	TLS_INSN(R_AARCH64_TLSLE_ADD_TPREL_LO12),
	TLS_INSN(R_AARCH64_TLSLE_ADD_TPREL_LO12_NC),
	TLS_INSN(R_AARCH64_TLSLE_LDST8_TPREL_LO12),
	TLS_INSN(R_AARCH64_TLSLE_LDST8_TPREL_LO12_NC),
	TLS_INSN(R_AARCH64_TLSLE_LDST16_TPREL_LO12),
	TLS_INSN(R_AARCH64_TLSLE_LDST16_TPREL_LO12_NC),
	TLS_INSN(R_AARCH64_TLSLE_LDST32_TPREL_LO12),
	TLS_INSN(R_AARCH64_TLSLE_LDST32_TPREL_LO12_NC),
	TLS_INSN(R_AARCH64_TLSLE_LDST64_TPREL_LO12),
	TLS_INSN(R_AARCH64_TLSLE_LDST64_TPREL_LO12_NC),
	TLS_INSN(R_AARCH64_TLSDESC_LD_PREL19),
	TLS_INSN(R_AARCH64_TLSDESC_ADR_PREL21),
	TLS_INSN(R_AARCH64_TLSDESC_ADR_PAGE21),
	TLS_INSN(R_AARCH64_TLSDESC_LD64_LO12),
	TLS_INSN(R_AARCH64_TLSDESC_ADD_LO12),
	TLS_INSN(R_AARCH64_TLSDESC_CALL),
};
const struct elf_rel_rules elf_rel_a64 = {EM_AARCH64, rules, ARRAY_LEN(rules)};

static uint32_t set_field(uint32_t insn, uint64_t value, unsigned pos, unsigned width)
{
	uint32_t mask = ((uint32_t)1 << width) - 1;
	return (insn & ~(mask << pos)) | ((uint32_t)value & mask) << pos;
}

/* ADR and ADRP: the two low bits stand apart. */
static uint32_t set_adr(uint32_t insn, uint64_t imm)
{
	return set_field(set_field(insn, imm, 29, 2), imm >> 2, 5, 19);
}

uint32_t elf_a64_patch(const struct elf_rel_rule *rule, uint32_t insn, uint64_t target, uint64_t p)
{
	uint64_t page_mask = ~(uint64_t)0xfff;
	switch (rule->op) {
	case ELF_REL_A64_ADR:
		return set_adr(insn, target - p);
	case ELF_REL_A64_PAGE:
		return set_adr(insn, ((target & page_mask) - (p & page_mask)) >> 12);
	case ELF_REL_A64_LO12:
		return set_field(insn, (target & 0xfff) >> rule->arg, 10, 12);
	case ELF_REL_A64_GOT_LO15:
		return set_field(insn, (target - (rule->arg ? p & page_mask : p)) >> 3, 10, 12);
	case ELF_REL_A64_B26:
		return set_field(insn, (target - p) >> 2, 0, 26);
	case ELF_REL_A64_B19:
		return set_field(insn, (target - p) >> 2, 5, 19);
	case ELF_REL_A64_B14:
		return set_field(insn, (target - p) >> 2, 5, 14);
	case ELF_REL_A64_MOVW:
		return set_field(insn, target >> (16 * rule->arg), 5, 16);
	case ELF_REL_A64_MOVW_SIGNED: {
		/* A negative value makes it a MOVN of the complement: bit 30 tells MOVZ from MOVN.
		 */
		bool is_negative = target >> 63;
		insn = set_field(insn, !is_negative, 30, 1);
		return set_field(insn, (is_negative ? ~target : target) >> (16 * rule->arg), 5, 16);
	}
	default:
		return insn;
	}
}
