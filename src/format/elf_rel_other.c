/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dynamic relocations of machines whose code scry does not decode: enough for imports and pointers
 * to read right in a hex view.
 */
#include "format/elf_int.h"

#include <elf.h>

/* What every dynamic linker has. */
#define COMMON_RULES(abs, relative, glob, jump, copy)                                              \
	{0, ELF_REL_NONE, 0, 0, false}, {abs, ELF_REL_ABS, 0, 0, false},                           \
		{glob, ELF_REL_GLOB, 0, 0, false}, {relative, ELF_REL_RELATIVE, 0, 0, false},      \
		{jump, ELF_REL_JUMP, 0, 0, false},                                                 \
	{                                                                                          \
		copy, ELF_REL_COPY, 0, 0, false                                                    \
	}
#define TLS_RULE(type)                                                                             \
	{                                                                                          \
		type, ELF_REL_TLS, 0, 0, false                                                     \
	}
#define IRELATIVE_RULE(type)                                                                       \
	{                                                                                          \
		type, ELF_REL_IRELATIVE, 0, 0, false                                               \
	}

static const struct elf_rel_rule arm[] = {
	COMMON_RULES(R_ARM_ABS32, R_ARM_RELATIVE, R_ARM_GLOB_DAT, R_ARM_JUMP_SLOT, R_ARM_COPY),
	TLS_RULE(R_ARM_TLS_DESC),
	TLS_RULE(R_ARM_TLS_DTPMOD32),
	TLS_RULE(R_ARM_TLS_DTPOFF32),
	TLS_RULE(R_ARM_TLS_TPOFF32),
	IRELATIVE_RULE(R_ARM_IRELATIVE),
};
static const struct elf_rel_rule ppc[] = {
	COMMON_RULES(R_PPC_ADDR32, R_PPC_RELATIVE, R_PPC_GLOB_DAT, R_PPC_JMP_SLOT, R_PPC_COPY),
	TLS_RULE(R_PPC_DTPMOD32),
	TLS_RULE(R_PPC_TPREL32),
	TLS_RULE(R_PPC_DTPREL32),
	IRELATIVE_RULE(R_PPC_IRELATIVE),
};
static const struct elf_rel_rule ppc64[] = {
	COMMON_RULES(R_PPC64_ADDR64, R_PPC64_RELATIVE, R_PPC64_GLOB_DAT, R_PPC64_JMP_SLOT,
		     R_PPC64_COPY),
	TLS_RULE(R_PPC64_DTPMOD64),
	TLS_RULE(R_PPC64_TPREL64),
	TLS_RULE(R_PPC64_DTPREL64),
	IRELATIVE_RULE(R_PPC64_IRELATIVE),
};
static const struct elf_rel_rule s390x[] = {
	COMMON_RULES(R_390_64, R_390_RELATIVE, R_390_GLOB_DAT, R_390_JMP_SLOT, R_390_COPY),
	TLS_RULE(R_390_TLS_DTPMOD),
	TLS_RULE(R_390_TLS_DTPOFF),
	TLS_RULE(R_390_TLS_TPOFF),
	IRELATIVE_RULE(R_390_IRELATIVE),
};
static const struct elf_rel_rule m68k[] = {
	COMMON_RULES(R_68K_32, R_68K_RELATIVE, R_68K_GLOB_DAT, R_68K_JMP_SLOT, R_68K_COPY),
	TLS_RULE(R_68K_TLS_DTPMOD32),
	TLS_RULE(R_68K_TLS_DTPREL32),
	TLS_RULE(R_68K_TLS_TPREL32),
};
static const struct elf_rel_rule sh[] = {
	COMMON_RULES(R_SH_DIR32, R_SH_RELATIVE, R_SH_GLOB_DAT, R_SH_JMP_SLOT, R_SH_COPY),
	TLS_RULE(R_SH_TLS_DTPMOD32),
	TLS_RULE(R_SH_TLS_DTPOFF32),
	TLS_RULE(R_SH_TLS_TPOFF32),
};
/* REL32 stands for RELATIVE when it names no symbol, for an absolute word when it does. */
static const struct elf_rel_rule mips[] = {
	{R_MIPS_NONE, ELF_REL_NONE, 0, 0, false},
	{R_MIPS_REL32, ELF_REL_ABS, 0, 0, false},
	{R_MIPS_JUMP_SLOT, ELF_REL_JUMP, 0, 0, false},
	{R_MIPS_COPY, ELF_REL_COPY, 0, 0, false},
	TLS_RULE(R_MIPS_TLS_DTPMOD32),
	TLS_RULE(R_MIPS_TLS_DTPREL32),
	TLS_RULE(R_MIPS_TLS_TPREL32),
	TLS_RULE(R_MIPS_TLS_DTPMOD64),
	TLS_RULE(R_MIPS_TLS_DTPREL64),
	TLS_RULE(R_MIPS_TLS_TPREL64),
};
static const struct elf_rel_rule sparc[] = {
	{R_SPARC_NONE, ELF_REL_NONE, 0, 0, false},
	{R_SPARC_32, ELF_REL_ABS, 4, 0, false},
	{R_SPARC_64, ELF_REL_ABS, 8, 0, false},
	{R_SPARC_RELATIVE, ELF_REL_RELATIVE, 0, 0, false},
	{R_SPARC_GLOB_DAT, ELF_REL_GLOB, 0, 0, false},
	{R_SPARC_COPY, ELF_REL_COPY, 0, 0, false},
};
static const struct elf_rel_rule riscv[] = {
	{R_RISCV_NONE, ELF_REL_NONE, 0, 0, false},
	{R_RISCV_32, ELF_REL_ABS, 4, 0, false},
	{R_RISCV_64, ELF_REL_ABS, 8, 0, false},
	{R_RISCV_RELATIVE, ELF_REL_RELATIVE, 0, 0, false},
	{R_RISCV_COPY, ELF_REL_COPY, 0, 0, false},
	{R_RISCV_JUMP_SLOT, ELF_REL_JUMP, 0, 0, false},
	{R_RISCV_TLS_DTPMOD32, ELF_REL_TLS, 4, 0, false},
	{R_RISCV_TLS_DTPMOD64, ELF_REL_TLS, 8, 0, false},
	{R_RISCV_TLS_DTPREL32, ELF_REL_TLS, 4, 0, false},
	{R_RISCV_TLS_DTPREL64, ELF_REL_TLS, 8, 0, false},
	{R_RISCV_TLS_TPREL32, ELF_REL_TLS, 4, 0, false},
	{R_RISCV_TLS_TPREL64, ELF_REL_TLS, 8, 0, false},
	{R_RISCV_IRELATIVE, ELF_REL_IRELATIVE, 0, 0, false},
};

static const struct elf_rel_rules others[] = {
	{EM_ARM, arm, ARRAY_LEN(arm)},	     {EM_PPC, ppc, ARRAY_LEN(ppc)},
	{EM_PPC64, ppc64, ARRAY_LEN(ppc64)}, {EM_S390, s390x, ARRAY_LEN(s390x)},
	{EM_68K, m68k, ARRAY_LEN(m68k)},     {EM_SH, sh, ARRAY_LEN(sh)},
	{EM_SPARC, sparc, ARRAY_LEN(sparc)}, {EM_SPARCV9, sparc, ARRAY_LEN(sparc)},
	{EM_RISCV, riscv, ARRAY_LEN(riscv)}, {EM_MIPS, mips, ARRAY_LEN(mips)},
};

const struct elf_rel_rules *elf_rel_others(size_t *ret_cnt)
{
	*ret_cnt = ARRAY_LEN(others);
	return others;
}
