/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DEBUGINFO_DW_TYPE_H
#define DEBUGINFO_DW_TYPE_H

#include "debuginfo/dw_api.h"

/*
 * Private to this folder: C spellings of what DWARF says about functions, from any language. Names become
 * identifiers; what C has no word for becomes the nearest thing of the same shape (references are
 * pointers, classes are structs).
 */
#define DW_TEXT_MAX 2048

struct dw_text {
	char s[DW_TEXT_MAX]; /* not terminated */
	size_t len;
	bool failed;         /* too long, too deep, or a kind of type with no C spelling */
};

/* The prototype of the function `die` of a unit in `lang`: "int f(const char *s, ...)". */
void dbg_dw_prototype(const struct dw_api *dw, struct dw_die *die, int lang, struct dw_text *ret);

#endif
