/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DEBUGINFO_DBG_H
#define DEBUGINFO_DBG_H

#include "base/arena.h"
#include "base/err.h"
#include "base/finding.h"
#include "base/vec.h"
#include "format/fmt.h"

/*
 * What others wrote down about the code: unwind tables, Go's function table, DWARF names, prototypes and
 * lines, and names made readable. All to neutral types; all input is hostile.
 */

/* One unwind entry (.eh_frame FDE): a range of code with one frame description. A fragment (gcc's .cold)
 * begins with a frame already set up: its first CFA rule is not the one of a fresh call. */
struct dbg_fde {
	uint64_t va;
	uint64_t len;
	uint64_t personality; /* 0 when none */
	uint64_t lsda;        /* 0 when none */
	bool is_fragment;     /* first row's CFA is not "stack pointer at entry" */
	bool is_signal;
};

/* Reads .eh_frame through the program's segments (LSB 5.0, 10.6; DWARF 5, 6.4), sorted by va, overlaps kept.
 * Falls back from a broken .eh_frame_hdr to a scan of the section and the other way round. Findings for
 * what is broken; an error only for no memory. */
struct dbg_fdes { VEC(struct dbg_fde) list; };
_must_use_ struct err *dbg_read_eh_frame(const struct fmt_bin *b, struct dbg_fdes *ret, struct findings *f);

/* The landing pads and call sites of one LSDA (Itanium C++ ABI: exception handling, "gcc_except_table"):
 * appends each landing pad's address to `ret`, in table order, repeats kept. One `ret` is used for all tables of
 * a program: the call sites read with it are limited by the file's size. A broken table gives what came before. */
struct dbg_addrs { VEC(uint64_t) list; uint64_t read_cnt; /* call sites read so far */ };
_must_use_ struct err *dbg_read_lsda(const struct fmt_bin *b, const struct dbg_fde *fde, struct dbg_addrs *ret);

/* A named range of code. */
struct dbg_func {
	uint64_t va;
	uint64_t len;            /* 0 unknown */
	struct fmt_str name;     /* linkage name where there is one; in the caller's arena */
	struct fmt_str prototype; /* C spelling, or absent */
	struct fmt_str file;     /* declaring source file, or absent */
	uint32_t line;
	bool is_noreturn;
	bool is_external;
};
struct dbg_types;
struct dbg_funcs {
	VEC(struct dbg_func) list;
	struct arena arena;
	struct dbg_types *types; /* dbg_read_dwarf() fills it with the types too when the caller sets it; null: not wanted */
};

/* Go's pclntab, versions 1.2, 1.16, 1.18, 1.20 (found by section or by its magic in data), sorted by va; a length
 * goes to the next function, padding included. Names and files are borrowed from the file's bytes. Empty when
 * none. Appends to `ret`. */
_must_use_ struct err *dbg_read_pclntab(const struct fmt_bin *b, struct dbg_funcs *ret, struct findings *f);

/* A row of the line table: from `va` on, until the next row. Line 0 (file UINT32_MAX): nothing is known from there on. */
struct dbg_line { uint64_t va; uint32_t file; uint32_t line; };
struct dbg_lines { VEC(struct dbg_line) list; VEC(struct fmt_str) files; struct arena arena; };

/*
 * Types, in C's terms whatever the language: classes are structs, references pointers. Types of several units that say the
 * same are one. Number 0 is void and everything that cannot be said. Names are C identifiers; no two structs, unions and
 * enums have the same, nor two typedefs. The list is sorted: void, what has a tag by name, typedefs by name, everything else.
 */
enum dbg_type_kind { DBG_T_VOID, DBG_T_BASE, DBG_T_POINTER, DBG_T_ARRAY, DBG_T_VECTOR, DBG_T_FUNC, DBG_T_STRUCT, DBG_T_UNION,
		     DBG_T_ENUM, DBG_T_TYPEDEF, DBG_T_CONST, DBG_T_VOLATILE, DBG_T_KIND_COUNT };
enum dbg_type_flag { DBG_T_INCOMPLETE = 1 /* declared only */, DBG_T_OPEN = 2 /* array of unknown length */, DBG_T_VARIADIC = 4,
		     DBG_T_NOPROTO = 8 /* function: () */ };
struct dbg_type {
	struct fmt_str name;  /* tag, typedef or base type's own word; absent */
	uint64_t len;         /* bytes; of an array or vector: elements */
	uint32_t target;      /* what it points to, its elements, its result, an enum's integer, ...; a number of the list */
	uint32_t sub_first, sub_cnt; /* members, parameters, constants */
	uint32_t align;       /* stated alignment, 0 none */
	uint8_t kind;         /* enum dbg_type_kind */
	uint8_t encoding;     /* base: DW_ATE of DWARF 5, 7.8 */
	uint8_t flags;        /* enum dbg_type_flag */
};
struct dbg_type_sub {
	struct fmt_str name;  /* absent: none */
	uint32_t type;
	uint32_t bit_len;     /* of a bit-field; 0 */
	int64_t value;        /* member: bits from the start; constant: its value */
};
/* A variable at a fixed address; sorted by va. */
struct dbg_var { uint64_t va; uint32_t type; };
struct dbg_types {
	VEC(struct dbg_type) list;
	VEC(struct dbg_type_sub) subs;
	VEC(struct dbg_var) vars;
	struct arena arena;
};
void dbg_types_fini(struct dbg_types *t);

/*
 * Function names, prototypes and ranges, and optionally line numbers, from DWARF of `path`'s bytes (the target
 * itself or a file found by dbg_find_debug_file()), read by libdw in a locked-down child. A broken or huge
 * DWARF is a finding, never a refusal. Missing libdw: error env. Both lists are appended to empty ones and sorted by
 * va; functions may share an address under several names, lines have one row for each. `ret_lines` may be null.
 */
_must_use_ struct err *dbg_read_dwarf(const struct fmt_bin *b, bool want_lines, struct dbg_funcs *ret,
				      struct dbg_lines *ret_lines, struct findings *f);

/* Path of the separate debug file for `b` (build-id under /usr/lib/debug/.build-id, then .gnu_debuglink beside
 * the target, in .debug/ and under /usr/lib/debug), checked by build-id or CRC; null when there is none. Owned. */
char *dbg_find_debug_file(const struct fmt_bin *b, const char *target_path);

/*
 * The readable form of a C++ (Itanium), Rust (legacy and v0) or D symbol, into `arena`; absent when it is not
 * one or cannot be read. Bounded in length (4 KiB in, 16 KiB out) and recursion.
 */
struct fmt_str dbg_demangle(struct arena *arena, const char *name, size_t len);

#endif
