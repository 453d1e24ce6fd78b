/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FORMAT_ELF_INT_H
#define FORMAT_ELF_INT_H

#include "base/cur.h"
#include "format/fmt.h"

/*
 * The ELF reader's own state while it reads (gABI 4.1, "Linux binfmt_elf"); it is gone when
 * fmt_open() returns. The parts, in the order they run: elf.c (header, driver), elf_sec.c (section
 * headers), elf_seg.c (what is mapped), elf_dyn.c (dynamic table), elf_ver.c (versions), elf_sym.c
 * (symbols, imports), elf_rel.c (relocations) with one table per machine in elf_rel_x86.c,
 * elf_rel_a64.c and elf_rel_other.c, elf_note.c (notes, core threads). Each part reports what is
 * broken as a finding and returns an error only when memory runs out.
 *
 * Two budgets hold for every file. `mem_left`: what may still be allocated (16 MB + 4x the file),
 * asked for with elf_take() before an allocation whose size the input decides. `name_left`: the sum
 * of the lengths of all names, since a hostile table may give one long string to a million symbols.
 */
#define ELF_NO_INDEX UINT32_MAX
#define ELF_PAGE_LEN 4096u

/* A program header, widened. */
struct elf_ph {
	uint32_t type, flags;
	uint64_t off, va, file_len, mem_len, align;
};

/* A section header, widened. */
struct elf_sh {
	uint32_t name, type, link, info;
	uint64_t flags, addr, off, len, align, ent_len;
};

/* The entries of the dynamic table that are read; 0 when absent. */
struct elf_dyn {
	bool is_there;
	uint64_t off, len; /* the table in the file, up to DT_NULL */
	uint64_t hash, gnu_hash, strtab, strsz, symtab;
	uint64_t rela, relasz, relaent, rel, relsz, relent, relr, relrsz, jmprel, pltrelsz, pltrel;
	uint64_t init, fini, init_array, init_arraysz, fini_array, fini_arraysz, preinit_array,
		preinit_arraysz;
	uint64_t versym, verneed, verneednum, verdef, verdefnum, pltgot, soname, flags, flags_1,
		has_debug;
	uint64_t android_rel, android_rela;
};

/* A string table in the file. */
struct elf_strtab {
	uint64_t off, len;
};

/* A symbol table in the file and where its entries lie in fmt_bin.symbols: entry i (i >= 1) is
 * symbols[first + i - 1]. */
struct elf_symtab {
	uint64_t off;
	uint32_t cnt; /* entries with the null one; 0 when there is no table */
	uint32_t first;
	uint32_t sec_idx; /* its section, ELF_NO_INDEX when known from elsewhere */
	struct elf_strtab str;
	uint64_t shndx_off; /* SHT_SYMTAB_SHNDX words */
	uint32_t shndx_cnt;
};

struct elf_version {
	struct fmt_str name, library;
	bool is_there;
};

struct elf {
	struct fmt_bin *b;
	const uint8_t *bytes;
	uint64_t len;
	bool is_64, is_be;
	uint16_t type, machine;
	uint8_t osabi;
	uint64_t entry, phoff, shoff;
	uint32_t phnum, shnum, shstrndx;
	uint32_t ph_stride, sh_stride;
	uint32_t flags;

	uint64_t mem_left, name_left, mapped_left;
	bool is_name_cut, is_map_cut;

	struct elf_dyn dyn;
	struct elf_symtab dynsym, symtab;
	struct elf_version *versions; /* by version index, version_cnt of them; malloc */
	uint32_t version_cnt;
	uint32_t *import_of; /* per symbol: its import or ELF_NO_INDEX; malloc */
	uint64_t tls_va, tls_file_len;
	uint64_t common_va; /* objects: the made-up segments; 0 when none */
	uint64_t got_va;
	uint32_t *got_slot; /* objects: per symbol its slot number or ELF_NO_INDEX; malloc */
	uint32_t got_cnt;
	uint64_t obj_next_va;	   /* objects: first free address */
	uint64_t seen_types[1024]; /* relocation types already reported */
};

/* elf.c */
_must_use_ struct err *elf_open(struct fmt_bin *b);
/* Takes `bytes` from the memory budget; false, and nothing taken, when they are not there. */
_must_use_ bool elf_take(struct elf *e, uint64_t bytes);
/* How many of `len` file bytes to be shown at `va` may be: a file that maps its bytes over and over would make the analysis
 * cost any multiple of its size. */
uint64_t elf_take_mapped(struct elf *e, uint64_t va, uint64_t len);
/* The string at `off` of a table, borrowed; absent when outside it or over the name budget. */
struct fmt_str elf_str(struct elf *e, const struct elf_strtab *t, uint64_t off);
/* A cursor over [off, off + len) of the file; failed when it does not lie in it. */
struct cur elf_cur(const struct elf *e, uint64_t off, uint64_t len);
/* The file bytes behind `va`: offset and how many follow in its segment; false when none. */
bool elf_at(const struct elf *e, uint64_t va, uint64_t *ret_off, uint64_t *ret_len);
static inline unsigned elf_word_len(const struct elf *e)
{
	return e->is_64 ? 8 : 4;
}

/* elf_sec.c */
bool elf_read_sh(const struct elf *e, uint32_t idx, struct elf_sh *ret);
_must_use_ struct err *elf_load_sections(struct elf *e);
/* The section of header index `idx` in fmt_bin.sections, or null. */
struct fmt_section *elf_section(const struct elf *e, uint32_t idx);
/* Gives the allocated sections of an object addresses and segments. */
_must_use_ struct err *elf_lay_out_object(struct elf *e);

/* elf_seg.c */
bool elf_read_ph(const struct elf *e, uint32_t idx, struct elf_ph *ret);
_must_use_ struct err *elf_load_segments(struct elf *e);
/* Appends a made-up segment behind all others and gives its address in `ret_va`; 0 when there is no
 * room. */
_must_use_ struct err *elf_add_made_up(struct elf *e, const char *name, uint64_t len, uint8_t perm,
				       uint64_t *ret_va);

/* elf_dyn.c */
_must_use_ struct err *elf_load_dynamic(struct elf *e);
_must_use_ struct err *elf_load_code_starts(struct elf *e);

/* elf_table.c */
_must_use_ struct err *elf_load_tables(struct elf *e);

/* elf_ver.c */
_must_use_ struct err *elf_load_versions(struct elf *e);

/* elf_sym.c */
_must_use_ struct err *elf_load_symbols(struct elf *e);
_must_use_ struct err *elf_load_imports(struct elf *e);
/* "_GLOBAL_OFFSET_TABLE_", which a linker defines: no import. */
bool elf_is_got_name(struct fmt_str name);

/* elf_rel.c */
_must_use_ struct err *elf_load_relocs(struct elf *e);
/* Highest symbol number below `limit` that the dynamic relocations name. */
uint32_t elf_max_reloc_symbol(struct elf *e, uint64_t limit);
/* Objects: which symbols need a slot of a global offset table, and where that made-up table lies.
 */
_must_use_ struct err *elf_plan_got(struct elf *e);

/* How a relocation computes its field; S, A, P and GOT as the psABIs call them. */
enum elf_rel_op {
	ELF_REL_NONE,
	ELF_REL_ABS,	  /* S + A */
	ELF_REL_PC,	  /* S + A - P */
	ELF_REL_GOT_OFF,  /* S + A - GOT */
	ELF_REL_GOT_PC,	  /* GOT + A - P */
	ELF_REL_SIZE,	  /* size of the symbol + A */
	ELF_REL_RELATIVE, /* base + A */
	ELF_REL_GLOB,	  /* S, word of the GOT */
	ELF_REL_JUMP,	  /* S, word of the PLT's GOT */
	ELF_REL_COPY,
	ELF_REL_IRELATIVE,
	ELF_REL_TLS,
	ELF_REL_A64_ADR, /* from here on: fields of AArch64 instruction words (AAELF64 5.7) */
	ELF_REL_A64_PAGE,
	ELF_REL_A64_LO12,     /* scaled by 2^arg */
	ELF_REL_A64_GOT_LO15, /* from GOT, or with arg from its page */
	ELF_REL_A64_B26,
	ELF_REL_A64_B19,
	ELF_REL_A64_B14,
	ELF_REL_A64_MOVW, /* bits 16 * arg and up */
	ELF_REL_A64_MOVW_SIGNED,
};

struct elf_rel_rule {
	uint16_t type; /* R_* */
	uint8_t op;    /* enum elf_rel_op */
	uint8_t width; /* bytes; 0: a word of the file's class */
	uint8_t arg;
	bool is_slot; /* S is the address of the symbol's GOT slot */
};

struct elf_rel_rules {
	uint16_t machine;
	const struct elf_rel_rule *rules;
	size_t cnt;
};

extern const struct elf_rel_rules elf_rel_x86_64, elf_rel_i386, elf_rel_a64;
/* The dynamic relocations of other machines, a row each; cnt of them. */
const struct elf_rel_rules *elf_rel_others(size_t *ret_cnt);
/* Null when the machine is not known. */
const struct elf_rel_rules *elf_rel_rules_of(uint16_t machine);
/* Null when there is no such rule (or `rules` is null). */
const struct elf_rel_rule *elf_rel_find_rule(const struct elf_rel_rules *rules, uint32_t type);
/* The instruction word `insn` at `p` with the field of `rule` set for the address `target`; of a
 * field counted from the GOT, `p` is the GOT. */
uint32_t elf_a64_patch(const struct elf_rel_rule *rule, uint32_t insn, uint64_t target, uint64_t p);

/* elf_note.c */
_must_use_ struct err *elf_load_notes(struct elf *e);

/* elf_names.c */
const char *elf_machine_name(uint16_t machine);
bool elf_machine_is_known(uint16_t machine);
const char *elf_osabi_name(uint8_t osabi);

#endif
