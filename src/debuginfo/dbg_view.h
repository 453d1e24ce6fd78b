/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DEBUGINFO_DBG_VIEW_H
#define DEBUGINFO_DBG_VIEW_H

#include "base/cur.h"
#include "base/err.h"
#include "format/fmt.h"

/*
 * Private to this folder: a piece of the program's memory as one cursor. Borrowed from the file where
 * no relocation touches it, else a private copy with the relocations applied.
 */
struct dbg_view {
	struct cur cur; /* over the bytes at `va` */
	uint64_t va;
	uint8_t *owned; /* null when borrowed */
	const uint8_t *file; /* the same bytes as the file has them, for text that outlives the view */
};

/* Opens [va, va + len), cut to what the file backs in the segment that holds `va`; nothing mapped
 * there gives an empty view. To be released with dbg_view_close(). Error only for no memory. */
_must_use_ struct err *dbg_view_open(const struct fmt_bin *b, uint64_t va, uint64_t len,
				     struct dbg_view *ret);

void dbg_view_close(struct dbg_view *v);

#define _cleanup_view_ _cleanup_(dbg_view_close)

/* An address cut to the width of the program's pointers. */
static inline uint64_t dbg_trim_va(const struct fmt_bin *b, uint64_t va)
{
	return b->bits == 32 ? va & UINT32_MAX : va;
}

#endif
