/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_SYSC_CHECK_H
#define LIVE_TRACE_SYSC_CHECK_H

#include "live/trace/sysc.h"

/* A call of which the running kernel says something else than the table. */
struct sysc_difference {
	const struct sysc *s;
	unsigned nargs;      /* what the kernel says */
	unsigned same_names; /* arguments that have the name of the table's at their place */
};

typedef void sysc_differs_fn(void *ctx, const struct sysc_difference *d);

/* Where the kernel's formats of system calls are mounted, or null. */
const char *sysc_check_folder(void);

/* Compares the calls of x86-64 with the formats below `folder` (tracefs's events/syscalls); gives how many have one. */
size_t sysc_check(const char *folder, sysc_differs_fn *differs, void *ctx);

#endif
