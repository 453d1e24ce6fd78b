/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CHILD_TOOL_H
#define BASE_CHILD_TOOL_H

#include "base/buf.h"
#include "base/err.h"

/*
 * Runs another program that reads hostile text (a compiler's preprocessor) so that it can read files and write to us, and
 * nothing else: no new privileges, limits of time, memory and processes, and a filter of system calls under which no file can be
 * opened for writing, made, renamed or removed, and no socket made. It gets a clean environment with PATH=/usr/bin:/bin.
 */
struct child_tool {
	const char *const *argv;  /* ends in null; argv[0] is looked for in /usr/bin and /bin */
	size_t max_out_len;       /* bytes of its output taken at most; more is an error of kind budget */
	unsigned cpu_s, wall_ms;
};

/* What it wrote to stdout and, up to 64 KiB, to stderr; `*ret_status` is its exit status. Errors: env (there is no such
 * program, or the kernel cannot lock), timeout, budget, bad_input "... died of SIGSEGV". */
_must_use_ struct err *child_tool_run(const struct child_tool *tool, struct buf *ret_out, struct buf *ret_err, int *ret_status);

#endif
