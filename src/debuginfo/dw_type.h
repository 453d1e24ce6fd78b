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

struct dw_speller {
	const struct dw_api *dw;
	int lang;             /* of the unit: enum dw_lang or another */
	uint64_t *steps_left; /* entries looked at, over all functions: hostile ones lead back to themselves */
	unsigned depth;       /* of parameter lists inside each other; 0 */
};

/* Appends `name` as a C identifier. */
void dbg_dw_ident(struct dw_text *t, const char *name);

/* The prototype of the function `die`: "int f(const char *s, ...)". */
void dbg_dw_prototype(struct dw_speller *s, struct dw_die *die, struct dw_text *ret);

#endif
