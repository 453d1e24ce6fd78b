/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SES_TRACE_LINE_H
#define SESSION_SES_TRACE_LINE_H

#include "session/session.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * From a place of a module to its function and line of C: the module is opened and analysed when it is asked about first (the store may
 * have that already), and each function is decompiled once. What was found is kept, so an event costs a look-up.
 */
struct ses_lines;

/* Null when memory is out. */
struct ses_lines *ses_lines_new(void);
void ses_lines_free(struct ses_lines *l);
/* The file at `path` is this one, which is held: it is not opened again. False when memory is out. */
bool ses_lines_add(struct ses_lines *l, const char *path, struct ses_snap *sn);

struct ses_line {
	const char *func;  /* as the analysis calls it; null: no function is known there. Valid as long as `l` */
	uint64_t func_off; /* of the place in it, bytes */
	uint32_t line;     /* of `scry decompile`, from 1; 0: there is no C */
};

/* Of the call that returns to byte `off` of the file at `path` (of a system call, the instruction behind it). */
struct ses_line ses_lines_find(struct ses_lines *l, const char *path, uint64_t off);

#endif
