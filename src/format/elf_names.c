/* SPDX-License-Identifier: Apache-2.0 */
/* Names of machines and operating systems, by the numbers of the gABI's registry. */
#include "format/elf_int.h"

#include <elf.h>

#ifndef EM_LOONGARCH
#define EM_LOONGARCH 258
#endif

struct name {
	uint16_t value;
	const char *text;
};

static const struct name machines[] = {
	{EM_M32, "WE32100"},
	{EM_SPARC, "SPARC"},
	{EM_386, "i386"},
	{EM_68K, "m68k"},
	{EM_88K, "m88k"},
	{EM_IAMCU, "Intel MCU"},
	{EM_860, "i860"},
	{EM_MIPS, "MIPS"},
	{EM_S370, "System/370"},
	{EM_MIPS_RS3_LE, "MIPS RS3000"},
	{EM_PARISC, "PA-RISC"},
	{EM_SPARC32PLUS, "SPARC V8+"},
	{EM_960, "i960"},
	{EM_PPC, "PowerPC"},
	{EM_PPC64, "PowerPC64"},
	{EM_S390, "S/390"},
	{EM_SPU, "Cell SPU"},
	{EM_V800, "V850"},
	{EM_ARM, "ARM"},
	{EM_SH, "SuperH"},
	{EM_SPARCV9, "SPARC V9"},
	{EM_TRICORE, "TriCore"},
	{EM_ARC, "ARC"},
	{EM_H8_300, "H8/300"},
	{EM_IA_64, "IA-64"},
	{EM_COLDFIRE, "ColdFire"},
	{EM_68HC12, "68HC12"},
	{EM_X86_64, "x86-64"},
	{EM_PDP11, "PDP-11"},
	{EM_68HC11, "68HC11"},
	{EM_VAX, "VAX"},
	{EM_CRIS, "CRIS"},
	{EM_AVR, "AVR"},
	{EM_FR30, "FR30"},
	{EM_V850, "V850"},
	{EM_M32R, "M32R"},
	{EM_MN10300, "MN10300"},
	{EM_OPENRISC, "OpenRISC"},
	{EM_ARC_COMPACT, "ARCompact"},
	{EM_XTENSA, "Xtensa"},
	{EM_MSP430, "MSP430"},
	{EM_BLACKFIN, "Blackfin"},
	{EM_ALTERA_NIOS2, "Nios II"},
	{EM_TI_C6000, "TMS320C6000"},
	{EM_QDSP6, "Hexagon"},
	{EM_AARCH64, "AArch64"},
	{EM_TILEGX, "TILE-Gx"},
	{EM_MICROBLAZE, "MicroBlaze"},
	{EM_CUDA, "CUDA"},
	{EM_AMDGPU, "AMD GPU"},
	{EM_RISCV, "RISC-V"},
	{EM_BPF, "eBPF"},
	{EM_CSKY, "C-SKY"},
	{EM_LOONGARCH, "LoongArch"},
	{EM_ALPHA, "Alpha"},
	{0xF00D, "Z80"},
};

static const struct name osabis[] = {
	{ELFOSABI_SYSV, "sysv"},       {ELFOSABI_HPUX, "hpux"},
	{ELFOSABI_NETBSD, "netbsd"},   {ELFOSABI_GNU, "linux"},
	{ELFOSABI_SOLARIS, "solaris"}, {ELFOSABI_AIX, "aix"},
	{ELFOSABI_IRIX, "irix"},       {ELFOSABI_FREEBSD, "freebsd"},
	{ELFOSABI_TRU64, "tru64"},     {ELFOSABI_MODESTO, "modesto"},
	{ELFOSABI_OPENBSD, "openbsd"}, {ELFOSABI_ARM_AEABI, "arm-eabi"},
	{ELFOSABI_ARM, "arm"},	       {ELFOSABI_STANDALONE, "standalone"},
};

static const char *find_name(const struct name *names, size_t cnt, uint16_t value)
{
	for (size_t i = 0; i < cnt; i++) {
		if (names[i].value == value)
			return names[i].text;
	}
	return NULL;
}

bool elf_machine_is_known(uint16_t machine)
{
	return find_name(machines, ARRAY_LEN(machines), machine) != NULL;
}

const char *elf_machine_name(uint16_t machine)
{
	const char *name = find_name(machines, ARRAY_LEN(machines), machine);
	return name ? name : machine == EM_NONE ? "none" : "unknown machine";
}

const char *elf_osabi_name(uint8_t osabi)
{
	const char *name = find_name(osabis, ARRAY_LEN(osabis), osabi);
	return name ? name : "unknown";
}
