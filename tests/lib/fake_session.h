/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAKE_SESSION_H
#define FAKE_SESSION_H

#include "session/session.h"

/*
 * A session made of arithmetic, so that what a view shows does not depend on the analysis: `func_cnt` functions of
 * eight instructions, strings, zeroed data, and names as a hostile target would choose them.
 */
#define FAKE_EDIT_MAX 16
struct fake_edit {
	char op[16], sub[16], value[128];
	uint64_t va;
};

struct fake_config {
	uint32_t func_cnt;
	bool is_preview;
	bool is_slow;        /* operations with a deadline time out */
	unsigned call_cnt;   /* operations asked for so far */
	bool has_no_c;       /* the processor has no lifter */
	bool has_empty_c;    /* the C of every function has no line */
	unsigned c_cnt;      /* functions made into C so far */
	uint32_t big_blocks; /* the third function, "main", has so many blocks of one instruction instead of its own */
	struct fake_edit edits[FAKE_EDIT_MAX];
	unsigned edit_cnt, proposal_cnt;
	struct ses_undo_ask undo; /* the newest */
	char undo_author[32];
};
extern struct fake_config fake_config;

struct ses *fake_open(uint32_t func_cnt);
/* Another snapshot: the preview becomes an image. */
void fake_publish(struct ses *s);

#define FAKE_TEXT 0x401000u
#define FAKE_STRINGS 0x7f0000u
#define FAKE_BSS 0x800000u
#define FAKE_FUNC_LEN 32u

#endif
