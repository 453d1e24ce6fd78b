/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ANALYSIS_STATED_INT_H
#define ANALYSIS_STATED_INT_H

#include "analysis/analysis.h"

/* A stretch of one segment that somebody says something about, all of it backed by the file or none. */
struct stated_zone {
	uint32_t from, to;  /* locs; of code whose end is not told to == from */
	uint32_t unit;
	uint8_t kind;       /* enum analysis_stated_kind */
	uint8_t encoding, zero_len;
	bool is_pointer;
	bool is_filed;      /* has file bytes */
};

/* The zones of what was stated, by loc, without overlaps. The array is the caller's to free. False: no memory. */
bool analysis_zones(const struct analysis_stated *s, const struct image_data *d, struct stated_zone **ret, size_t *ret_cnt);

/* The zone that holds `loc`, or null; binary search. */
const struct stated_zone *analysis_zone_at(const struct stated_zone *zones, size_t cnt, uint32_t loc);

static inline bool stated_is_code(const struct stated_zone *z)
{
	return z->kind == ANALYSIS_CODE || z->kind == ANALYSIS_FUNC;
}

/* Flags of the function at a loc. */
struct stated_flags {
	uint32_t loc;
	uint32_t flags;     /* enum analysis_func_flag */
	uint32_t thunk_loc; /* LOC_NONE */
};

#endif
