/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ANALYSIS_STATED_H
#define ANALYSIS_STATED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What people stated about a target, in place of what analysis would guess. The arrays may be in any order and hold
 * anything: what lies outside of the target is passed over, lengths end where their segment does, and of two statements
 * about the same bytes the one at the higher address has them.
 */
enum analysis_stated_kind {
	ANALYSIS_CODE,   /* instructions from va on */
	ANALYSIS_FUNC,   /* ... and a function begins there */
	ANALYSIS_DATA,
	ANALYSIS_STRING,
	ANALYSIS_UNDEF,  /* bytes of which nobody knows what they are */
};

struct analysis_item {
	uint64_t va;
	uint64_t len;     /* bytes; of code at least how far it goes, 0: to where control ends; of text with its terminator */
	uint32_t unit;    /* data: bytes of one item, 0: all of it */
	uint8_t kind;     /* enum analysis_stated_kind */
	uint8_t encoding; /* text: enum image_encoding */
	uint8_t zero_len; /* text: bytes of the terminator, in len */
	bool is_pointer;  /* data: each unit is an address */
};

/* A function that begins at func_va reaches over [va, va + len) and over the other pieces stated for it, no farther. */
struct analysis_piece {
	uint64_t func_va, va, len;
};

enum analysis_func_flag { ANALYSIS_NORETURN = 1, ANALYSIS_RETURNS = 2, ANALYSIS_LIBRARY = 4, ANALYSIS_THUNK = 8 };

struct analysis_func_flags {
	uint64_t va;
	uint64_t thunk_va; /* with ANALYSIS_THUNK: what it jumps to, UINT64_MAX: as its jump says */
	uint32_t flags;    /* enum analysis_func_flag */
};

#define ANALYSIS_SWITCH_MAX 65536u /* entries; more are not believed */

/* The indirect jump at jump_va goes through a table. Entry i leads to base_va + (entry << shift), to the entry itself
 * when base_va is 0. */
struct analysis_switch {
	uint64_t jump_va;
	uint64_t table_va;
	uint64_t base_va;
	uint32_t entry_cnt;
	uint8_t entry_bytes; /* 1, 2, 4, 8 */
	uint8_t shift;       /* at most 3 */
	bool is_signed;
	int64_t low;         /* value of the switch variable for entry 0 */
};

struct analysis_stated {
	const struct analysis_item *items;
	size_t item_cnt;
	const struct analysis_piece *pieces;
	size_t piece_cnt;
	const struct analysis_func_flags *flags;
	size_t flag_cnt;
	const struct analysis_switch *switches;
	size_t switch_cnt;
};

#endif
