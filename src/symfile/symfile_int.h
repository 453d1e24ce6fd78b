/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SYMFILE_SYMFILE_INT_H
#define SYMFILE_SYMFILE_INT_H

#include "symfile/symfile.h"

#include "base/buf.h"
#include "base/vec.h"

/* The text being read and what came of it. Positions are bytes from its start. */
struct symfile_reader {
	const char *text;
	size_t len, pos;
	uint32_t line;      /* of `pos`, from 1 */
	struct arena *arena;
	VEC(struct symfile_item) items;
	VEC(struct symfile_seg) segs;
	bool has_base;
	uint64_t base;
	bool is_out_of_memory;
};

/* A piece of the text. */
struct symfile_str { const char *s; size_t len; };
#define SYMFILE_STR(lit) ((struct symfile_str){lit, sizeof(lit) - 1})

bool symfile_str_is(struct symfile_str s, const char *text);
struct symfile_str symfile_trim(struct symfile_str s);
/* The next line without its end; false at the end of the text. */
bool symfile_next_line(struct symfile_reader *r, struct symfile_str *ret);
/* The first word of `*s`, which moves behind it; empty at its end. */
struct symfile_str symfile_word(struct symfile_str *s);
/* Hex digits, at most 16, with or without 0x, all of the piece. */
bool symfile_hex(struct symfile_str s, uint64_t *ret);
bool symfile_contains(struct symfile_str s, const char *text);

/* Adds an entry of the current line; `text` is copied. A made-up name is left out by itself. */
void symfile_add(struct symfile_reader *r, enum symfile_what what, const char *sub, uint64_t addr, struct symfile_str text);
void symfile_add_in(struct symfile_reader *r, uint32_t seg, uint64_t off, struct symfile_str name);
/* Adds an entry that is none, with a reason that outlives the reader. */
void symfile_leave_out(struct symfile_reader *r, struct symfile_str text, const char *why);
void symfile_refuse(struct symfile_reader *r, struct symfile_str text, const char *why);
/* "00101000", "ram:00101000"; false with `*ret_why` when it is a place that is not in memory or no address at all. */
bool symfile_ghidra_addr(struct symfile_str s, uint64_t *ret, const char **ret_why);
/* NAME or NAMESPACE::NAME; in the arena. */
struct symfile_str symfile_ghidra_name(struct symfile_reader *r, struct symfile_str ns, struct symfile_str name, bool is_func);

void symfile_read_list(struct symfile_reader *r);
void symfile_read_map(struct symfile_reader *r);
void symfile_read_idc(struct symfile_reader *r);
void symfile_read_csv(struct symfile_reader *r);
void symfile_read_xml(struct symfile_reader *r);

#endif
