/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CHILD_TOOL_H
#define BASE_CHILD_TOOL_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Runs another program that reads hostile text (a compiler, its preprocessor) so that it can read files and write to us, and
 * nothing else: no new privileges, limits of time, memory and processes, and a filter of system calls under which no file can be
 * opened for writing, made, renamed or removed, and no socket made. It gets a clean environment with PATH=/usr/bin:/bin.
 *
 * With `folder` it can also write files there, which is where it begins and keeps its temporary ones; elsewhere the kernel's
 * landlock refuses it. A kernel without landlock lets it make and overwrite files of the user's, still no other harm.
 */
struct child_tool {
	const char *const *argv;  /* ends in null; argv[0] is looked for in /usr/bin and /bin */
	size_t max_out_len;       /* bytes of its output taken at most; more is an error of kind budget */
	unsigned cpu_s, wall_ms;
	uint64_t max_mem_len;     /* bytes of its address space; 0: 4 GiB */
	const char *folder;       /* an absolute path, or null */
	uint64_t max_file_len;    /* bytes of a file it writes there */
	/* It is ended when it waits in opening or reading a named pipe or a device: error bad_input, which names it. */
	bool wants_files;
	/* Asked now and then whether to go on: it is ended and the error given on. May be null. */
	struct err *(*check)(void *ctx);
	void *check_ctx;
};

/* What it wrote to stdout and, up to 64 KiB, to stderr; `*ret_status` is its exit status. Errors: env (there is no such
 * program, or the kernel cannot lock), timeout, budget, check()'s, bad_input "... died of SIGSEGV". */
_must_use_ struct err *child_tool_run(const struct child_tool *tool, struct buf *ret_out, struct buf *ret_err, int *ret_status);

/* Where the tool of this name is, as a path. */
bool child_tool_find(const char *name, char *ret, size_t cap);

#endif
