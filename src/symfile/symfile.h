/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SYMFILE_SYMFILE_H
#define SYMFILE_SYMFILE_H

#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Names and comments as other programs write them down. The text is hostile: every reader is one pass over it without
 * recursion, what it gives is at most proportional to it, and an entry that cannot be read is given with the reason in
 * place of stopping the rest.
 */
enum symfile_format {
	SYMFILE_ANY,   /* told from the text */
	SYMFILE_LIST,  /* "ADDR NAME" or nm's "ADDR T NAME", a line each */
	SYMFILE_MAP,   /* .map of IDA and of Microsoft's linker: "SEGMENT:OFFSET  NAME" under "Publics by Value" */
	SYMFILE_IDC,   /* calls of MakeName, set_name, set_cmt and their like with literal arguments, IDC or Python */
	SYMFILE_CSV,   /* Ghidra's symbol or function table saved as CSV, with its header */
	SYMFILE_XML,   /* Ghidra's XML: SYMBOL, FUNCTION, COMMENT, BOOKMARK */
	SYMFILE_FORMAT_COUNT
};

/* The format's name on the command line: "list", "map", "idc", "csv", "xml"; "auto" for SYMFILE_ANY. */
const char *symfile_format_name(enum symfile_format f);
/* False when there is no such format. */
bool symfile_format_find(const char *name, enum symfile_format *ret);

enum symfile_what { SYMFILE_NAME, SYMFILE_COMMENT, SYMFILE_BOOKMARK };

struct symfile_item {
	enum symfile_what what;
	const char *sub;    /* of a comment: "line", "block", "repeatable", "func"; else "" */
	uint32_t seg;       /* number of the map's segment that `addr` is an offset in; 0: `addr` is an address */
	uint64_t addr;
	const char *text;   /* the name or comment, NUL-terminated; "" when unreadable */
	size_t len;
	uint32_t line;      /* of the file, from 1 */
	const char *why;    /* null: fine; else why it is none */
	bool is_left_out;   /* with `why`: deliberately (a made-up name, not in memory), not because it is unreadable */
};

/* A map's segment: offsets in it are counted such that its first byte has offset `off`. */
struct symfile_seg {
	uint32_t number;
	uint64_t off, len;  /* bytes */
	const char *name;
};

struct symfile {
	enum symfile_format format;
	struct symfile_item *items;
	size_t cnt;
	struct symfile_seg *segs;
	size_t seg_cnt;
	bool has_base;      /* the file says where the other program had put the target: */
	uint64_t base;
};

/* Reads `len` bytes of text; results live in the arena and borrow nothing. Errors: invalid (of no known format, or not of
 * the one asked for), no memory. */
_must_use_ struct err *symfile_parse(const char *text, size_t len, enum symfile_format format, struct arena *a, struct symfile *ret);

/* A name that disassemblers make up from an address: sub_401000, FUN_00101000, LAB_..., s_hello_00102004, ... */
bool symfile_is_made_up(const char *name, size_t len);

#endif
