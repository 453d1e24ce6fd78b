/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CHILD_LOCK_H
#define BASE_CHILD_LOCK_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Private to base/child.c: what locks a freshly forked child. Called in the child only; what is locked
 * stays locked until it ends.
 */

/* Unmaps every mapping that is shared with other processes and writable or could be made so, except the
 * page at `keep`: what the child writes must not reach anybody. Error env when /proc is not there. */
_must_use_ struct err *child_lock_shared(const void *keep);

/* Sets the resource limits; memory counts from what is mapped now. */
_must_use_ struct err *child_lock_limits(uint64_t max_mem_len, unsigned cpu_s);

/* Closes every descriptor but 0, 1, 2 (which become /dev/null) and the one at `*fd`, which may get
 * another number. */
_must_use_ struct err *child_lock_files(int *fd);

/* Installs the filter: a call that is not on its list raises SIGSYS instead of happening, or when `is_lenient` fails with EPERM. */
_must_use_ struct err *child_lock_calls(bool is_lenient);

/* Where the kernel has landlock, no file can be made, written, cut or removed but below `path`. False when it has, and refuses. */
_must_use_ bool child_lock_folder(const char *path);
/* Whether the kernel has landlock. */
bool child_lock_has_folders(void);

/* Installs the filter for another program (child_tool.h): what changes a file or reaches anybody fails, the rest happens. With
 * `may_write` files can be opened for writing; which, child_lock_folder() says. */
_must_use_ struct err *child_lock_tool(bool may_write);

/* Name of a system call of this machine, or null for the unusual ones. */
const char *child_call_name(int nr);

#endif
