/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_HEADS_INT_H
#define SESSION_HEADS_INT_H

#include "session/ses_int.h"
#include "types/types.h"

#include "base/vec.h"

/*
 * Walks the lines of the listing. One line at a time is made in the walk's own memory; nothing is allocated for a line
 * except the growth of `data`. Both spellings of a page (JSON, struct ses_head) are copies of what a walk shows.
 */
struct heads_item {
	uint32_t loc, len, row;
	uint8_t kind;          /* enum image_item_kind */
};

struct ses_typed;

/* A line of a member of typed data. Offsets and lengths in bytes from the start of the data. */
struct heads_member {
	uint64_t off;
	uint32_t len;
	uint32_t name_off, name_len; /* its path, in heads_plan.names */
	uint32_t bit_off, bit_len;   /* bit_len 0: no bit-field */
	struct types_ref type;
	bool is_rest;                /* stands for all that got no line */
};

/* The lines of the members of one typed item. */
struct heads_plan {
	VEC(struct heads_member) members;
	struct buf names;
	uint32_t loc;
	uint32_t pad;                /* names are filled up to this */
	bool is_made;
};

#define HEADS_TEXT_MAX 1024
#define HEADS_SPAN_MAX ARCH_SPAN_MAX

struct heads_walk {
	struct ses_snap *sn;
	/* The item the walk stands on, and where among its lines: 1 .. pre_cnt before it, itself, and members up to line_cnt. */
	struct heads_item item;
	uint32_t pre_cnt, line_cnt, at;
	struct image_items items;
	uint32_t *starts;      /* preview: item starts decoded on the spot, malloc */
	uint32_t start_cnt, start_pos;
	/* Tables walked beside the items, so that a line costs no search. */
	const struct image_func *funcs;
	const struct image_name *names;
	uint32_t func_cnt, func_pos, name_cnt, name_pos, ref_pos, ref_end, mark_pos;
	bool has_refs;
	struct image_xref next_ref; /* at ref_pos; from is LOC_NONE at the end */
	/* Bytes of the segment the walk is in. */
	const uint8_t *bytes;
	uint32_t bytes_loc;
	size_t bytes_len;
	uint64_t va_delta;     /* va = loc + va_delta inside [seg_first, seg_end) */
	uint32_t seg_first, seg_end;
	bool seg_is_extern;
	bool has_lines;        /* the image knows source lines */
	uint32_t source_line;  /* shown last */
	uint32_t source_file;
	const struct ses_typed *typeds, *typed; /* all typed data; what the item is, or null */
	uint32_t typed_cnt;
	struct heads_plan *plan;  /* malloc, made on first use */
	/* What is known of the item before its lines are made. */
	const struct image_func *func;
	const struct ses_mark *mark;
	struct ses_text notes[2]; /* what somebody wrote about the function, and before the item; a line each line */
	uint32_t note_cnts[2];    /* their lines */
	char label[512];
	uint32_t label_len;
	char member_label[512];
	uint8_t patched[16];      /* the item's bytes with patches */
	bool is_patched;
	bool is_missing;          /* its bytes are on their way here */
	struct image_xref refs[8];
	uint32_t ref_cnt;
	/* The line. */
	struct ses_head line;
	char text[HEADS_TEXT_MAX];
	char comment[HEADS_TEXT_MAX];
	struct ses_span spans[HEADS_SPAN_MAX];
	struct arch_text arch_text;
	struct arena scratch;  /* reset a line */
};

/* Stands on line `sub` (0: the first) of the item that holds va. False when va is not mapped. `w` is zeroed here. */
bool heads_start(struct heads_walk *w, struct ses_snap *sn, uint64_t va, uint32_t sub);
/* Stands at->count lines before the line (va, sub) or at the first line there is; *ret_cnt is how many it went back. */
bool heads_start_back(struct heads_walk *w, struct ses_snap *sn, const struct ses_at *at, uint32_t *ret_cnt);
/* Makes the line in w->line and steps on; false at the end of the listing. */
bool heads_next(struct heads_walk *w);
/* The line heads_next() would give: its address and sub; false at the end. */
bool heads_peek(const struct heads_walk *w, uint64_t *ret_va, uint32_t *ret_sub);
void heads_fini(struct heads_walk *w);

/* heads_text.c: the item's text, comment and target into w->line. */
void heads_item_line(struct heads_walk *w);
void heads_pre_line(struct heads_walk *w, uint32_t sub);

/* heads_notes.c: what was stated about the item, before its lines are made. Only called where somebody stated anything. */
void heads_look_notes(struct heads_walk *w);
/* Line `n` (from 0) of the notes before the item. */
struct ses_text heads_note_line(const struct heads_walk *w, uint32_t n);
/* The line and repeatable comments, and the repeatable ones of what the item refers to, before `text` (made by scry) in the
 * comment of the line. */
void heads_add_comments(struct heads_walk *w);
/* The item's first bytes as they are shown: w->line.bytes and w->is_patched. */
void heads_patch_bytes(struct heads_walk *w);

/* heads_format.c: the formats people chose for the operands of the instruction in w->line.text, whose bytes are given. */
void heads_format_code(struct heads_walk *w, const uint8_t *bytes, size_t len);
/* Why a format may not be stated, or null. */
const char *heads_format_refuse(struct ses_snap *sn, const struct edits_change *c, struct arena *a);

/* heads_typed.c: the line of an item that has a type (w->typed), how many lines of members follow, and those, from 0. */
void heads_typed_item(struct heads_walk *w);
uint32_t heads_typed_member_cnt(struct heads_walk *w);
void heads_typed_member(struct heads_walk *w, uint32_t i);
/* The line, from 1, of the first member that covers loc; 0: none. */
uint32_t heads_typed_member_at(struct heads_walk *w, uint32_t loc);
/* Whether a number of a typed datum is at loc, and its bytes. */
bool heads_typed_number(struct ses_snap *sn, uint32_t loc, uint32_t *ret_len);
void heads_plan_free(struct heads_plan *pl);

/* Sections and segments by where they begin, made on first use. */
_must_use_ struct err *ses_marks(struct ses_snap *sn, const struct ses_mark **ret, uint32_t *ret_cnt);

#endif
