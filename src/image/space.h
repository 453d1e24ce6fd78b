/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_SPACE_H
#define IMAGE_SPACE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The address space of a target. Every mapped byte has a 32-bit number, its `loc`: segments are laid
 * one behind the other, each at a multiple of 64 with at least one unused loc before the next, so a loc
 * one past a segment's end is no other segment's. Facts are stored by loc; virtual addresses appear only
 * at the edge. Targets that map more than 4 GiB are cut with a finding.
 *
 * A space borrows the target's bytes, its segment array and its relocation arrays, wherever they live (the
 * builder's memory or the mapped image), so making one over an image costs nothing. All reads are
 * thread-safe and bounds-checked here.
 */
#define LOC_NONE UINT32_MAX

struct space_seg {
	uint64_t va;
	uint64_t mem_len;   /* bytes; loc + mem_len < UINT32_MAX */
	uint64_t file_off;
	uint64_t file_len;  /* bytes backed by the file, <= mem_len */
	uint32_t loc;       /* of the first byte; multiple of 64 */
	uint32_t name_off;  /* in the string pool */
	uint32_t name_len;
	uint32_t row_first; /* listing rows before this segment */
	uint32_t nobits_first; /* index of its first entry in the nobits items */
	uint8_t perm;       /* r 4, w 2, x 1 */
	uint8_t is_extern;  /* the made-up segment of imports */
	uint8_t is_patched; /* code relocations inside: space_bytes() gives a patched copy */
	uint8_t pad;
};

enum space_reloc_flag {
	SPACE_REL_WIDE = 1 << 7, /* the value is reloc_wide[reloc_val] */
	SPACE_REL_CODE = 1 << 6, /* a field of an instruction, or PC-relative: no pointer */
};

struct space {
	const uint8_t *file;       /* the target's bytes */
	uint64_t file_len;
	const struct space_seg *segs;
	uint32_t seg_cnt;
	/* Words that do not read as the file has them: parallel arrays of reloc_cnt, sorted by loc. */
	const uint32_t *reloc_loc;
	const uint32_t *reloc_val;   /* a loc; or, with SPACE_REL_WIDE, an index into reloc_wide */
	const uint8_t *reloc_kind;   /* low 4 bits: width in bytes (1, 2, 4, 8); enum space_reloc_flag */
	uint32_t reloc_cnt;
	const uint64_t *reloc_wide;
	uint32_t reloc_wide_cnt;
	uint8_t **patched;           /* per segment: private patched copy of its file bytes, or null */
	uint8_t word_len;            /* 4 or 8 */
	bool is_be;
};

/* Makes the patched copies (objects only). To be called once after the fields above are set. */
_must_use_ struct err *space_prepare(struct space *s);
void space_fini(struct space *s);

/* Segment number of a loc or a va, or -1. */
int space_seg_of_loc(const struct space *s, uint32_t loc);
int space_seg_of_va(const struct space *s, uint64_t va);

/* LOC_NONE when not mapped. */
uint32_t space_loc(const struct space *s, uint64_t va);
/* UINT64_MAX when not mapped. A loc one past a segment's end gives the va one past it. */
uint64_t space_va(const struct space *s, uint32_t loc);

/* The file-backed bytes from `loc` to the end of its segment's file part, borrowed; null and 0 where none.
 * Data relocations are not applied to these (code relocations are). For decoding. */
const uint8_t *space_bytes(const struct space *s, uint32_t loc, size_t *ret_len);

/* Copies `len` bytes at `loc` as the program sees them: relocations applied, zeros where no file byte backs
 * the segment. Returns the number of mapped bytes copied (less than len at the segment's end). */
size_t space_read(const struct space *s, uint32_t loc, void *out, size_t len);

/* A word of `len` bytes (1, 2, 4, 8) as the program sees it; false when not wholly mapped. */
bool space_word(const struct space *s, uint32_t loc, unsigned len, uint64_t *ret);

/* Index of the first relocation at or after `loc` (reloc_cnt when none). */
uint32_t space_reloc_at(const struct space *s, uint32_t loc);

/* Value of relocation i as an address. */
uint64_t space_reloc_value(const struct space *s, uint32_t i);

#endif
