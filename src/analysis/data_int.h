/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ANALYSIS_DATA_INT_H
#define ANALYSIS_DATA_INT_H

#include "analysis/analysis_int.h"
#include "analysis/stated_int.h"
#include "base/bits.h"

/*
 * The state of the data stage, shared by data.c (claims and what is left), strings.c and strings_len.c. A claim gives a
 * free stretch of bytes to one item; who claims first keeps it, so the order of the passes in analysis_data() is
 * the order of trust. All bit sets have one bit per loc.
 */
enum data_lang { DATA_LANG_NONE, DATA_LANG_GO, DATA_LANG_RUST };

#define DATA_WIDTH_PLANES 6 /* of 1, 2, 4, 8, 16 and 32 bytes */

struct data_stage {
	const struct analysis_in *in;
	struct image_data *d;
	const uint64_t *code;   /* bytes of instructions */
	uint64_t *taken;        /* bytes of instructions and of claimed items */
	uint64_t *string;       /* bytes of strings with their terminators */
	uint64_t *align;        /* bytes of padding */
	uint64_t *cut;          /* an item must begin here: a reference, a name */
	uint64_t *edge;         /* and here, and no string may cross: a name, the end of an object or of a counted string */
	uint64_t *pointed;      /* somebody takes the address: an offset reference */
	uint64_t *object;       /* bytes of objects with a symbol */
	uint64_t *width[DATA_WIDTH_PLANES]; /* code reads or writes that many bytes here */
	VEC(uint32_t) nobits;   /* where items begin in parts without file bytes; unsorted */
	VEC(uint32_t) nobits_end; /* and where such an item ends */
	size_t code_xref_cnt;   /* d->xrefs before this one are the code's */
	VEC(struct stated_zone) zones; /* what people stated */
	enum data_lang lang;
	bool no_memory;         /* sticky */
};

/* A stretch of one segment whose bytes are treated alike. */
struct data_zone {
	uint32_t loc, end;      /* file-backed */
	const uint8_t *bytes;   /* of `loc` */
	bool is_exec;           /* code is expected here: what is no code must be referenced to count */
	bool is_writable;
	bool is_strings;        /* the section says: nothing but strings */
};

static inline bool data_is_free(const struct data_stage *x, uint32_t loc, uint32_t end)
{
	return bits_next(x->taken, loc, end) == end;
}

/* Gives [loc, loc + len) to one item of kind DATA; false, and nothing done, when it is not all free. */
bool analysis_claim(struct data_stage *x, uint32_t loc, uint32_t len);

/* Records a string of `len` bytes followed by `zero_len` bytes of terminator and claims them. */
bool analysis_claim_string(struct data_stage *x, struct image_string s, uint32_t zero_len);

/* Calls `fn` for every zone of every segment, in order. */
typedef void data_zone_fn(struct data_stage *x, const struct data_zone *z);
void analysis_each_zone(struct data_stage *x, data_zone_fn *fn);

/* Number of characters of the text of `len` bytes at `p` (UTF-8, printable or usual white space), 0 when
 * something in it is no text. `*ret_plain` counts letters, digits, blanks and the commonest signs. */
size_t analysis_text_chars(const uint8_t *p, size_t len, size_t *ret_plain);

/* Bytes of text at `p`, at most `len`; `*ret_is_ascii` whether all are ASCII. */
size_t analysis_text_run(const uint8_t *p, size_t len, bool *ret_is_ascii);

/* strings.c: strings that end by a terminator, and texts without one that somebody points to. */
void analysis_find_strings(struct data_stage *x);

/* strings_len.c: what language the program is written in, as far as its strings differ; then strings given by address
 * and length, in data or beside code. */
enum data_lang analysis_language(const struct data_stage *x);
void analysis_counted_strings(struct data_stage *x);

#endif
