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
struct dbg_funcs { VEC(struct dbg_func) list; struct arena arena; };

/* Go's pclntab, versions 1.2, 1.16, 1.18, 1.20 (found by section or by its magic in data), sorted by va; a length
 * goes to the next function, padding included. Names and files are borrowed from the file's bytes. Empty when
 * none. Appends to `ret`. */
_must_use_ struct err *dbg_read_pclntab(const struct fmt_bin *b, struct dbg_funcs *ret, struct findings *f);

/* A row of the line table: from `va` on, until the next row. Line 0 (file UINT32_MAX): nothing is known from there on. */
struct dbg_line { uint64_t va; uint32_t file; uint32_t line; };
struct dbg_lines { VEC(struct dbg_line) list; VEC(struct fmt_str) files; struct arena arena; };

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
