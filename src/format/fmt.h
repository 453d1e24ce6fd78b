/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FORMAT_FMT_H
#define FORMAT_FMT_H

#include "base/arena.h"
#include "base/err.h"
#include "base/finding.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * A program as its file describes it, in neutral terms: segments, sections, symbols, relocations,
 * imports, facts. Readers (elf.c, later pe.c, macho.c, raw.c) fill it from bytes the caller mapped;
 * they never map memory and never print. Every table loads on its own: a broken one is a finding.
 *
 * Strings are (pointer, length) borrowed from the file's bytes or from `arena`; they are not
 * NUL-terminated and may hold any byte. The whole thing is released with fmt_bin_free() and must not
 * outlive the bytes.
 */
struct fmt_str {
	const char *s; /* null when absent */
	uint32_t len;  /* bytes */
};

enum fmt_kind { FMT_ELF, FMT_PE, FMT_MACHO, FMT_RAW };
enum fmt_type { FMT_TYPE_EXEC, FMT_TYPE_PIE, FMT_TYPE_SHARED, FMT_TYPE_OBJECT, FMT_TYPE_MODULE, FMT_TYPE_CORE };
enum fmt_perm { FMT_R = 4, FMT_W = 2, FMT_X = 1 };

/* Machine codes are neutral here (this folder does not know arch/); session maps them by number,
 * values are those of enum arch_id by contract and a static assert in session keeps it so. */
enum fmt_machine { FMT_MACHINE_NONE, FMT_MACHINE_X86_64, FMT_MACHINE_I386, FMT_MACHINE_A64, FMT_MACHINE_OTHER };

/* What would be mapped. For relocatable objects every allocated section is a segment at an address we
 * chose (fmt_bin.base_va is then ours), and two made-up ones may follow: "COMMON", where common
 * symbols lie, and "GOT", a word for every symbol that code reaches through a global offset table,
 * filled by relocations. Segments are sorted by va and do not overlap: where the file's
 * do, the later one in the table wins as the loader's mmap would, the loser is cut, and there is a finding. */
struct fmt_segment {
	uint64_t va;       /* first address */
	uint64_t mem_len;  /* bytes in memory, > 0; va + mem_len does not wrap */
	uint64_t file_off;
	uint64_t file_len; /* bytes backed by the file, <= mem_len, inside the file; the rest reads as 0 */
	uint8_t perm;      /* enum fmt_perm bits */
	struct fmt_str name; /* "LOAD#0", or the section's name in an object */
};

enum fmt_sec_kind { FMT_SEC_OTHER, FMT_SEC_CODE, FMT_SEC_DATA, FMT_SEC_RODATA, FMT_SEC_BSS, FMT_SEC_PLT,
		    FMT_SEC_GOT, FMT_SEC_EH_FRAME, FMT_SEC_EH_FRAME_HDR, FMT_SEC_DEBUG, FMT_SEC_SYMTAB,
		    FMT_SEC_STRTAB, FMT_SEC_RELOC, FMT_SEC_NOTE, FMT_SEC_INIT, FMT_SEC_GOPCLNTAB, FMT_SEC_INTERP };

/* A hint, never the authority. `va` is 0 and is_alloc false for sections that are not mapped. */
struct fmt_section {
	struct fmt_str name;
	uint64_t va, mem_len, file_off, file_len; /* file_len is cut to the file */
	uint64_t entry_len;   /* sh_entsize */
	uint32_t raw_type;    /* sh_type */
	uint32_t raw_link;    /* sh_link, sh_info: numbers of the table, section i + 1 being sections[i] */
	uint32_t raw_info;
	uint64_t raw_flags;   /* sh_flags */
	uint8_t perm;
	uint8_t kind;         /* enum fmt_sec_kind */
	bool is_alloc;
	bool is_compressed;   /* SHF_COMPRESSED or .zdebug: use fmt_section_data() */
};

enum fmt_sym_type { FMT_SYM_NONE, FMT_SYM_FUNC, FMT_SYM_IFUNC, FMT_SYM_OBJECT, FMT_SYM_TLS, FMT_SYM_SECTION,
		    FMT_SYM_FILE, FMT_SYM_COMMON };
enum fmt_sym_bind { FMT_BIND_LOCAL, FMT_BIND_GLOBAL, FMT_BIND_WEAK };

struct fmt_symbol {
	struct fmt_str name;    /* without version */
	struct fmt_str version; /* "GLIBC_2.34", or absent */
	struct fmt_str library; /* for imports: the needed library by version table, or absent */
	uint64_t va;            /* 0 when undefined or in a section that is not mapped; of a thread-local one
				   the place of its first value in the template, 0 when it has none */
	uint64_t size_len;      /* bytes, 0 unknown */
	uint8_t type, bind;     /* enum fmt_sym_type, enum fmt_sym_bind */
	uint8_t visibility;     /* STV_* */
	bool is_dynamic;        /* from the dynamic table */
	bool is_undefined;
	bool is_absolute;
	bool is_default_version;
	bool is_mapping;        /* $x, $d, $a, $t of the ARM ABIs: says where code and data are */
	bool is_exported;       /* dynamic, defined, global or weak, default or protected */
};

enum fmt_reloc_kind {
	FMT_REL_NONE,
	FMT_REL_POINTER,   /* the word at va becomes `value`: RELATIVE, RELR, or absolute against a defined symbol */
	FMT_REL_IMPORT,    /* the word becomes the address of import `import` + value (GLOB_DAT, 64, 32) */
	FMT_REL_JUMP_SLOT, /* as IMPORT, lazily bound PLT slot */
	FMT_REL_COPY,      /* data copied from the import at start */
	FMT_REL_IRELATIVE, /* the word becomes the result of the resolver function at `value` */
	FMT_REL_TLS,       /* thread-local offset or module: the value in the file stands */
	FMT_REL_CODE,      /* a field inside code or data of an object, already computed as `value` of `width`
			      bytes (PC32, PLT32, ADR_PREL_PG_HI21 patched as a whole instruction word, ...) */
	FMT_REL_OTHER,     /* not understood: left as it is, one finding per type */
};

/* Sorted by va. The value of the patched field is `value`, `width` bytes, little- or big-endian as the file.
 * For IMPORT and JUMP_SLOT `value` is already the address of the import's extern slot (see below) + addend. */
struct fmt_reloc {
	uint64_t va;
	uint64_t value;
	uint64_t target;   /* the address meant, before PC-relative arithmetic; equals value for pointers;
			      the slot for a reference through the GOT */
	uint32_t import;   /* index into imports, UINT32_MAX when none */
	uint8_t kind;      /* enum fmt_reloc_kind */
	uint8_t width;     /* bytes patched: 1, 2, 4, 8 */
	uint16_t raw_type; /* R_* of the machine */
};

/*
 * Undefined symbols get an address of their own in one made-up segment named "extern" behind the last
 * one (no permissions, no file bytes, 16 bytes each), so that a reference to an import is a
 * reference like any other. It is the last element of `segments` when there are imports.
 */
struct fmt_import {
	uint32_t symbol;  /* index into symbols */
	uint64_t va;      /* the extern slot */
	uint64_t got_va;  /* its GOT or PLT-GOT slot, 0 when none */
	uint64_t plt_va;  /* a stub that jumps through that slot; filled by analysis, 0 here */
};

struct fmt_range { uint64_t va; uint64_t len; };

/* A table of the loader in memory: of no code, and with no strings of the program. */
struct fmt_table {
	uint64_t va, len;
	uint32_t entry_len; /* bytes */
	uint8_t kind;       /* enum fmt_sec_kind */
};

struct fmt_bin {
	enum fmt_kind kind;
	enum fmt_type type;
	enum fmt_machine machine;
	uint16_t raw_machine;      /* e_machine */
	uint8_t bits;              /* 32, 64 */
	bool is_be;
	bool is_stripped;          /* no .symtab */
	bool has_entry;
	uint64_t entry_va;
	uint64_t base_va;          /* lowest segment */
	const char *format_name;   /* "ELF64" */
	const char *machine_name;  /* "x86-64", "EM_S390" */
	const char *os_name;       /* "linux", "freebsd", ... */
	struct fmt_str interp;     /* program interpreter */
	struct fmt_str soname;
	struct fmt_str debuglink;  /* .gnu_debuglink file name */
	uint32_t debuglink_crc;
	const uint8_t *build_id;   /* borrowed */
	uint32_t build_id_len;
	VEC(struct fmt_segment) segments;
	VEC(struct fmt_section) sections;
	VEC(struct fmt_symbol) symbols;   /* .symtab and .dynsym, each in file order, dynamic first */
	VEC(struct fmt_reloc) relocs;
	VEC(struct fmt_import) imports;
	VEC(struct fmt_str) needed;
	VEC(uint64_t) code_starts;        /* entry, DT_INIT, DT_FINI, init/fini/preinit arrays (after relocation),
					     IRELATIVE resolvers; unsorted, may repeat; not symbols */
	VEC(struct fmt_range) threads;    /* cores: one per thread, va is its program counter, len its thread id */
	VEC(struct fmt_table) tables;     /* by va; from the dynamic table, whatever the sections say */
	struct fmt_range eh_frame_hdr;    /* PT_GNU_EH_FRAME or section, len 0 when none */
	struct fmt_range eh_frame;        /* from the header or the section */
	struct fmt_range relro;           /* read-only after relocation */
	struct fmt_range got;             /* DT_PLTGOT / .got.plt start */
	VEC(uint32_t) section_order;      /* allocated sections by va, for fmt_section_at() */
	struct findings findings;
	struct arena arena;
	const uint8_t *bytes;      /* the file, borrowed */
	uint64_t bytes_len;
};

/* Reads the description of the program in `bytes`, which must stay mapped. Errors: unsupported (a format or
 * machine scry does not know, which the message names), bad_input (nothing usable). Everything less is a
 * finding in `(*ret)->findings`. Memory at most 16 MB + 4x the file. */
_must_use_ struct err *fmt_open(const uint8_t *bytes, uint64_t len, struct fmt_bin **ret);

/* What a person says of a file that does not say it itself. */
struct fmt_as {
	enum fmt_machine machine;  /* FMT_MACHINE_OTHER: not known */
	const char *machine_name;  /* static */
	uint8_t bits;              /* 32, 64 */
};
/* The file as bytes and nothing more: one segment at address 0, with all permissions. Only when asked for. */
_must_use_ struct err *fmt_open_raw(const uint8_t *bytes, uint64_t len, const struct fmt_as *as, struct fmt_bin **ret);

/* Null is accepted. */
void fmt_bin_free(struct fmt_bin *b);

/* The segment that holds `va`, or null. Binary search. */
const struct fmt_segment *fmt_segment_at(const struct fmt_bin *b, uint64_t va);

/* Whether a segment of `b` is the made-up one that imports have their places in: behind the file's own, and nothing that a loader maps. */
static inline bool fmt_is_extern(const struct fmt_bin *b, const struct fmt_segment *s)
{
	return b->imports.cnt && !s->perm && s + 1 == b->segments.data + b->segments.cnt;
}

/* The section (allocated ones) that holds `va`, or null. */
const struct fmt_section *fmt_section_at(const struct fmt_bin *b, uint64_t va);

/* The first section with that name, or null. */
const struct fmt_section *fmt_section_named(const struct fmt_bin *b, const char *name);

/*
 * Bytes of a section as they should be read: borrowed from the file, or decompressed (zlib, zstd) into
 * `arena`; a claimed size over 1 GiB, 1032 times the input or 48 MiB + 8x the file is refused. Objects' debug sections are
 * given with their relocations applied when `relocate` is set.
 */
_must_use_ struct err *fmt_section_data(const struct fmt_bin *b, const struct fmt_section *s, bool relocate,
					struct arena *arena, const uint8_t **ret, size_t *ret_len);

/* Copies up to `len` bytes at `va` as the program sees them after relocation; returns how many are mapped
 * from `va` on (file bytes, then zeros of the segment). */
size_t fmt_read(const struct fmt_bin *b, uint64_t va, void *out, size_t len);

/* File offset of a mapped address; false where no file byte backs it. And back. */
bool fmt_va_to_off(const struct fmt_bin *b, uint64_t va, uint64_t *ret_off);
bool fmt_off_to_va(const struct fmt_bin *b, uint64_t off, uint64_t *ret_va);

#endif
