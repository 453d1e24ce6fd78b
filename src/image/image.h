/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_IMAGE_H
#define IMAGE_IMAGE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/finding.h"
#include "base/vec.h"
#include "image/space.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The analysis of one target: first as vectors that the builder fills (struct image_data), then as one
 * immutable file that is mapped read-only and used in place (struct image). The records below are the
 * file's own: little-endian, 8-byte-aligned sections, offsets and loc numbers, never pointers.
 * docs/image-format.md describes the file. The same data always gives the same bytes.
 */

/* Version of the file's form, and of the engine that fills it: raise the second whenever the same input gives
 * a different image. An image of another version is stale and made anew. */
#define IMAGE_FORMAT_VERSION 3
#define IMAGE_ENGINE_VERSION 6

/* --- records ------------------------------------------------------------------------------------------- */

struct image_str { uint32_t off, len; }; /* in the pool; len 0: absent */

enum image_item_kind { IMAGE_UNKNOWN, IMAGE_CODE, IMAGE_DATA, IMAGE_STRING, IMAGE_ALIGN, IMAGE_ITEM_KIND_COUNT };

/* Where a function start came from; the best source wins, in this order. Names as in docs/ops.md. */
enum image_source { IMAGE_SRC_USER, IMAGE_SRC_SYMBOL, IMAGE_SRC_UNWIND, IMAGE_SRC_ENTRY, IMAGE_SRC_METADATA,
		    IMAGE_SRC_CALL, IMAGE_SRC_RELOC, IMAGE_SRC_POINTER, IMAGE_SRC_PROLOGUE, IMAGE_SRC_COUNT };

enum image_func_flag {
	IMAGE_FN_THUNK = 1 << 0,    /* one jump to another function or import */
	IMAGE_FN_NORETURN = 1 << 1,
	IMAGE_FN_LIBRARY = 1 << 2,
	IMAGE_FN_EXPORT = 1 << 3,
	IMAGE_FN_PLT = 1 << 4,
	IMAGE_FN_SPLIT = 1 << 5,    /* more than one range */
	IMAGE_FN_INDIRECT = 1 << 6, /* holds an indirect jump that could not be resolved */
	IMAGE_FN_TAIL = 1 << 7,     /* leaves by at least one tail call */
};

/* Sorted by loc. Its ranges are ranges[range_first .. +range_cnt), the first of them begins at loc. */
struct image_func {
	uint32_t loc;
	uint32_t size_len;     /* bytes over all ranges */
	uint32_t range_first;  /* into func_ranges, which is ordered by function, then address */
	uint16_t range_cnt;
	uint8_t source;        /* enum image_source */
	uint8_t why_noreturn;  /* enum image_noreturn_why, 0 when it returns */
	uint32_t block_cnt;
	uint32_t caller_cnt;   /* distinct functions that call or tail-call it */
	uint32_t callee_cnt;   /* distinct functions and imports it calls or tail-calls */
	uint32_t flags;        /* enum image_func_flag */
	uint32_t thunk_to;     /* loc a thunk jumps to, LOC_NONE */
};

enum image_noreturn_why { IMAGE_RETURNS, IMAGE_NORETURN_NAME, IMAGE_NORETURN_DWARF, IMAGE_NORETURN_CALLEE,
			  IMAGE_NORETURN_LOOP, IMAGE_NORETURN_STOP, IMAGE_NORETURN_STATED };

struct image_range { uint32_t loc, len, func; };

/* Which bytes belong to which function, sorted by loc, no overlaps (shared code belongs to the first). */

enum image_name_kind { IMAGE_NAME_SYMBOL, IMAGE_NAME_IMPORT, IMAGE_NAME_PLT, IMAGE_NAME_DWARF, IMAGE_NAME_GO,
		       IMAGE_NAME_SECTION, IMAGE_NAME_ENTRY, IMAGE_NAME_KIND_COUNT };

/* Names of addresses, sorted by (loc, preference): the first of a loc is the one to show. Generated
 * names (sub_401136, loc_..., str_...) are not stored; see session. */
struct image_name {
	uint32_t loc;
	struct image_str name;
	uint8_t kind;      /* enum image_name_kind */
	uint8_t is_func;
	uint16_t rank;     /* preference at one loc, lower first; 0: that of its kind (image_name_rank) */
};

/* All symbols of the file in the order of the file (dynamic first), for `symbols`, `imports`, `exports`. */
struct image_symbol {
	uint32_t loc;      /* LOC_NONE: undefined, absolute, thread-local or not mapped */
	uint32_t size_len;
	struct image_str name;
	uint32_t version;  /* index into versions, UINT32_MAX none */
	uint8_t type, bind;
	uint16_t flags;    /* enum image_symbol_flag */
};
enum image_symbol_flag { IMAGE_SYM_DYNAMIC = 1, IMAGE_SYM_UNDEFINED = 2, IMAGE_SYM_EXPORT = 4, IMAGE_SYM_ABSOLUTE = 8,
			 IMAGE_SYM_DEFAULT_VERSION = 16 };
struct image_version { struct image_str version, library; };

/* A stretch whose form is known without section headers: the loader's tables, unwind tables. */
struct image_known { uint32_t loc, len, entry_len; uint8_t kind; /* enum fmt_sec_kind */ };

/* From loc on, until the next: code, or data between code (mapping symbols of the ARM ABIs). */
struct image_mapping { uint32_t loc; uint8_t is_code; };

struct image_import {
	uint32_t symbol;
	uint32_t loc;     /* extern slot */
	uint32_t got_loc; /* LOC_NONE when none */
	uint32_t plt_loc; /* its stub, LOC_NONE when none */
};

struct image_section {
	struct image_str name;
	uint64_t va, mem_len, file_off, file_len;
	uint32_t entry_len;  /* bytes an element, 0 when it has none */
	uint8_t perm, kind;  /* fmt_perm bits, enum fmt_sec_kind */
	uint8_t is_alloc;
	uint8_t is_strings;  /* SHF_STRINGS: nothing but NUL-terminated strings of entry_len units */
};

enum image_xref_kind { IMAGE_XREF_CALL, IMAGE_XREF_JUMP, IMAGE_XREF_READ, IMAGE_XREF_WRITE, IMAGE_XREF_OFFSET };

/* One reference. The builder keeps them unsorted with duplicates; writing sorts by (from, to, kind) and makes
 * the reverse order. `switch`es give a JUMP from the dispatch to each target. */
struct image_xref {
	uint32_t from, to;
	uint8_t kind;   /* enum image_xref_kind */
	uint8_t width;  /* while building: bytes of the access (arch_ref.access_bytes), 0 unknown; not stored, reads as 0 */
};

enum image_encoding { IMAGE_ENC_ASCII, IMAGE_ENC_UTF8, IMAGE_ENC_UTF16LE, IMAGE_ENC_UTF16BE, IMAGE_ENC_UTF32LE,
		      IMAGE_ENC_GO, IMAGE_ENC_RUST, IMAGE_ENC_PASCAL, IMAGE_ENC_COUNT };
struct image_string { uint32_t loc, len; /* bytes without terminator */ uint32_t encoding; };

/* A jump table: targets[target_first .. +target_cnt) in the order of the index, loc numbers. */
struct image_table {
	uint32_t jump_loc;   /* the dispatching instruction */
	uint32_t table_loc;  /* LOC_NONE: none in memory (computed) */
	uint32_t index_loc;  /* byte table of a two-level switch, LOC_NONE */
	uint32_t target_first, target_cnt;
	uint8_t entry_bytes; /* 1, 2, 4, 8 */
	uint8_t is_relative;
	uint8_t is_guessed;  /* the bound is a guess: grown while entries stayed valid */
	uint8_t pad;
	int64_t low;         /* value of the switch variable for index 0 */
};

/* DWARF prototype of a function, and its source line; by loc. */
struct image_proto { uint32_t loc; struct image_str text; struct image_str file; uint32_t line; };

/* C types from debug information: void, then what has a tag by name, typedefs by name, the others. */
enum image_type_kind { IMAGE_T_VOID, IMAGE_T_BASE, IMAGE_T_POINTER, IMAGE_T_ARRAY, IMAGE_T_VECTOR, IMAGE_T_FUNC, IMAGE_T_STRUCT,
		       IMAGE_T_UNION, IMAGE_T_ENUM, IMAGE_T_TYPEDEF, IMAGE_T_CONST, IMAGE_T_VOLATILE, IMAGE_T_KIND_COUNT };
enum image_type_flag { IMAGE_T_F_INCOMPLETE = 1, IMAGE_T_F_OPEN = 2, IMAGE_T_F_VARIADIC = 4, IMAGE_T_F_NOPROTO = 8 };
struct image_type {
	struct image_str name;
	uint64_t len;                /* bytes; of an array or vector: elements */
	uint32_t target;
	uint32_t sub_first, sub_cnt; /* into type_subs */
	uint32_t align;              /* stated, 0 none */
	uint8_t kind;                /* enum image_type_kind */
	uint8_t encoding;            /* base type: DWARF 5, 7.8 */
	uint8_t flags, pad;          /* enum image_type_flag */
	uint32_t pad2;
};
struct image_type_sub {
	struct image_str name;
	int64_t value;               /* member: bits from the start; constant: its value */
	uint32_t type;
	uint32_t bit_len;            /* bit-field; of a constant 1: its value is unsigned */
};
/* Data that debug information gives a type; by loc, none overlaps another. */
struct image_var { uint32_t loc, len, type; };

struct image_line { uint32_t loc, file, line; };
struct image_problem { uint32_t loc; /* LOC_NONE */ uint32_t severity; struct image_str what, why; uint64_t file_off; };

struct image_meta {
	uint8_t target_sha256[32];
	uint64_t target_len;
	uint64_t base_va, entry_va;
	uint64_t bias;             /* of all addresses above those of the file */
	uint64_t insn_cnt;
	uint64_t problems_dropped_cnt;
	uint32_t arch;             /* enum arch_id */
	uint32_t entry_loc;        /* LOC_NONE */
	uint32_t main_loc;         /* where a person wants to start: main, else entry, else first function */
	uint32_t row_cnt;          /* listing rows of the whole target */
	uint8_t fmt_kind, fmt_type, bits, is_be;
	uint8_t is_stripped, has_entry, pad[2];
	struct image_str format_name, machine_name, os_name, interp, soname, build_id /* hex */;
};

/* --- building ------------------------------------------------------------------------------------------ */

struct fmt_bin;

/*
 * What analysis fills and image_serialize() writes. image_data_from_fmt() sets meta, segs, sections, symbols, names,
 * imports, relocations, problems and `space`; analysis adds the rest through the vectors. Owned by who made it.
 */
struct image_data {
	struct image_meta meta;
	struct space space;              /* over the vectors below and the target's bytes */
	VEC(struct space_seg) segs;
	VEC(struct image_section) sections;
	VEC(char) pool;
	VEC(uint32_t) reloc_loc;
	VEC(uint32_t) reloc_val;
	VEC(uint8_t) reloc_kind;
	VEC(uint64_t) reloc_wide;
	VEC(struct image_symbol) symbols;
	VEC(struct image_version) versions;
	VEC(struct image_import) imports;
	VEC(struct image_str) needed;
	VEC(struct image_name) names;    /* unsorted while building */
	VEC(uint32_t) code_starts;       /* locs from the format: entry, init arrays, ... with source ENTRY */
	VEC(struct image_mapping) mappings; /* the ABI's $x and $d, sorted by loc; not stored */
	VEC(struct image_known) known;   /* by loc; not stored */
	uint32_t loc_cnt;                /* one past the last loc */
	/* Made zeroed by image_data_from_fmt(), filled by analysis. loc_cnt bits; the pages of parts without file
	 * bytes are never touched, so they cost nothing. */
	uint64_t *item_bits;             /* bit loc: an item starts there (nobits parts stay 0) */
	uint64_t *block_bits;            /* bit loc: a basic block starts there */
	/* Filled by analysis: */
	VEC(uint32_t) nobits_items;      /* item starts in parts without file bytes, sorted */
	VEC(uint32_t) run_loc;           /* sorted; from run_loc[i] on items are of run_kind[i], until the next; a segment's
					    first loc always begins a run */
	VEC(uint8_t) run_kind;
	VEC(struct image_func) funcs;
	VEC(struct image_range) func_ranges;  /* by function, then address */
	VEC(struct image_xref) xrefs;
	VEC(struct image_string) strings;     /* sorted by loc */
	VEC(struct image_table) tables;       /* sorted by jump_loc */
	VEC(uint32_t) targets;
	VEC(struct image_proto) protos;       /* sorted by loc */
	VEC(struct image_type) types;
	VEC(struct image_type_sub) type_subs;
	VEC(struct image_var) vars;           /* sorted by loc */
	VEC(struct image_line) lines;         /* sorted by loc */
	VEC(struct image_str) line_files;
	VEC(struct image_problem) problems;
};

/* Starts the data of a target from its description. `bytes` stay the caller's and must outlive it. */
_must_use_ struct err *image_data_from_fmt(const struct fmt_bin *b, const uint8_t sha256[32], struct image_data *ret);
void image_data_fini(struct image_data *d);

/* Moves everything by `bias`, as a loader does that puts the target elsewhere; before analysis. Error invalid when a segment
 * would not lie within the machine's addresses. */
_must_use_ struct err *image_data_move(struct image_data *d, uint64_t bias);

/* Puts a string into the pool; {0, 0} and false when memory ran out. Equal strings may be stored twice. */
bool image_pool_add(struct image_data *d, const char *s, size_t len, struct image_str *ret);

/* The order in which names of one loc are preferred: name.rank, or what its kind says when that is 0. */
unsigned image_name_rank(const struct image_name *n);

/* Copies findings into the problems. */
bool image_add_findings(struct image_data *d, const struct findings *f);

/* Sorts what must be sorted, completes the items where they leave a gap, checks, and appends the whole file's bytes to
 * `ret`. Frees most vectors as it writes them: afterwards only meta, segs and space are of use. Errors:
 * no memory, budget (2^32 facts of one kind), internal (records that contradict each other). */
_must_use_ struct err *image_serialize(struct image_data *d, struct buf *ret);

/* --- reading ------------------------------------------------------------------------------------------- */

/*
 * A mapped image together with its target's bytes. Reference-counted and immutable: any number of threads may
 * read. Every index that comes out of the file is checked where it is used; a bad one reads as absent.
 */
struct image;

/* Maps `path` and checks owner, header, section table, versions and the target's identity. Errors: not_found (no
 * such file), stale (other format or engine version, other target: make it anew), bad_input (damaged: make it
 * anew). `target` bytes are borrowed and must outlive the image; null: they are not to be had, and every place reads as one
 * without bytes in the file. Cost does not depend on size. */
_must_use_ struct err *image_open(const char *path, const uint8_t *target, uint64_t target_len,
				  const uint8_t sha256[32], struct image **ret);

/* The same over bytes in memory, which the image borrows (tests, fuzzing, an unwritable store). sha256 null: any. */
_must_use_ struct err *image_open_mem(const void *bytes, size_t len, const uint8_t *target, uint64_t target_len,
				      const uint8_t *sha256, struct image **ret);
struct image *image_ref(struct image *im);
void image_unref(struct image *im);

/* Whether a page of the mapped image file was found missing (cut by someone else). */
bool image_was_hit(const struct image *im);

/* Verifies all checksums and every stored index; each fault is a finding. For `scry check --image`. */
void image_check(const struct image *im, struct findings *f);

uint64_t image_file_len(const struct image *im);
const struct image_meta *image_meta(const struct image *im);
const struct space *image_space(const struct image *im);

/* A pool string; {"", 0} when out of range. */
const char *image_text(const struct image *im, struct image_str s, size_t *ret_len);

/* Whole tables, for lists: pointer and count. The table name is the vector's. */
const struct image_func *image_funcs(const struct image *im, uint32_t *ret_cnt);
const struct image_section *image_sections(const struct image *im, uint32_t *ret_cnt);
const struct image_symbol *image_symbols(const struct image *im, uint32_t *ret_cnt);
const struct image_import *image_imports(const struct image *im, uint32_t *ret_cnt);
const struct image_string *image_strings(const struct image *im, uint32_t *ret_cnt);
const struct image_name *image_names(const struct image *im, uint32_t *ret_cnt);
const struct image_table *image_tables(const struct image *im, uint32_t *ret_cnt);
const struct image_problem *image_problems(const struct image *im, uint32_t *ret_cnt);
const struct image_str *image_needed(const struct image *im, uint32_t *ret_cnt);
const struct image_type *image_types(const struct image *im, uint32_t *ret_cnt);
/* Members, parameters or constants (checked slice). */
const struct image_type_sub *image_type_subs(const struct image *im, const struct image_type *t, uint32_t *ret_cnt);
/* The type of that tag, or of that typedef; 0 when there is none. O(log n). */
uint32_t image_type_find(const struct image *im, const char *name, size_t len, bool is_tag);
const struct image_var *image_vars(const struct image *im, uint32_t *ret_cnt);
bool image_version(const struct image *im, uint32_t i, struct image_version *ret);

/* Ranges of a function (checked slice). */
const struct image_range *image_func_ranges(const struct image *im, uint32_t func, uint32_t *ret_cnt);
/* Function that owns the byte at loc, or UINT32_MAX. O(log n). */
uint32_t image_func_at(const struct image *im, uint32_t loc);
/* Function that starts at loc, or UINT32_MAX. */
uint32_t image_func_starting(const struct image *im, uint32_t loc);

/* Names: the name to show at loc exactly, or null; the last name at or before loc in its segment, or null. */
const struct image_name *image_name_at(const struct image *im, uint32_t loc);
const struct image_name *image_name_before(const struct image *im, uint32_t loc);
/* All names equal to s (ordered by loc): calls nothing, gives the slice [*ret_first, +cnt) of positions in name
 * order; image_name_by_order() turns a position into a name. O(log n). */
uint32_t image_name_find(const struct image *im, const char *s, size_t len, uint32_t *ret_first);
const struct image_name *image_name_by_order(const struct image *im, uint32_t pos);

/* Items. A row is the number of an item over the whole target, in order of segments; O(1). */
uint32_t image_row_cnt(const struct image *im);
uint32_t image_row_of(const struct image *im, uint32_t loc);   /* row of the item that holds loc; UINT32_MAX */
uint32_t image_loc_of_row(const struct image *im, uint32_t row); /* LOC_NONE past the end */
/* The item that holds loc: start, length in bytes, kind; false when loc is not mapped. */
bool image_item_at(const struct image *im, uint32_t loc, uint32_t *ret_start, uint32_t *ret_len, enum image_item_kind *ret_kind);
/* Steps forward from a start of an item; cheap, for pages. Zero-initialise via image_items_from(). */
struct image_items {
	const struct image *im;
	uint32_t loc, len;      /* current item */
	uint32_t row;
	uint32_t seg, run, run_end, nobits;
	enum image_item_kind kind;
};
bool image_items_from(const struct image *im, uint32_t loc, struct image_items *ret); /* item holding loc */
bool image_items_next(struct image_items *it);
bool image_items_prev(struct image_items *it);

/* Blocks: whether one starts at loc; next block start in [from, to) or `to`. Edges follow from the last
 * instruction and the tables; session computes them. */
bool image_block_starts(const struct image *im, uint32_t loc);
uint32_t image_block_next(const struct image *im, uint32_t from, uint32_t to);

/* References. Slices: positions [first, first + cnt) in forward or reverse order. O(log n). */
uint32_t image_xref_cnt(const struct image *im);
uint32_t image_xrefs_from(const struct image *im, uint32_t loc_first, uint32_t loc_last, uint32_t *ret_first);
uint32_t image_xrefs_to(const struct image *im, uint32_t loc_first, uint32_t loc_last, uint32_t *ret_first);
bool image_xref_fwd(const struct image *im, uint32_t pos, struct image_xref *ret);
bool image_xref_rev(const struct image *im, uint32_t pos, struct image_xref *ret);

/* The string that starts at loc, or that holds it; null. */
const struct image_string *image_string_at(const struct image *im, uint32_t loc);
const struct image_table *image_table_at(const struct image *im, uint32_t jump_loc);
/* Target i of a table; LOC_NONE when out of range. */
uint32_t image_table_target(const struct image *im, const struct image_table *t, uint32_t i);
/* Prototype record of a function, or null; source line for loc (file text borrowed), false when none. */
const struct image_proto *image_proto_at(const struct image *im, uint32_t loc);
bool image_has_lines(const struct image *im);
bool image_line_at(const struct image *im, uint32_t loc, struct image_str *ret_file, uint32_t *ret_line);
/* Import whose extern slot, GOT slot or PLT stub is loc; null. */
const struct image_import *image_import_at(const struct image *im, uint32_t loc);

#endif
