/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXEC_EXEC_LOCK_H
#define EXEC_EXEC_LOCK_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * What a snippet's process takes away from itself before it runs a line of the snippet. It keeps: reading what its user can read,
 * writing below one folder, threads, its own memory up to a limit, the descriptors it is given. It has no network, no other processes,
 * no programs, no signals to others, nothing of the store.
 */

/* Before and after a fork by a process of one thread: the process forked in between is the first of process numbers of its own, so that
 * ending it ends everything in it. False where the kernel refuses, as it does to who is not root. */
bool exec_number_begin(void);
bool exec_number_end(void);

/* Processes below this one whose parents end become its children. */
bool exec_adopt(void);

/* What this kernel cannot give of the lock, "" when nothing; static text. */
const char *exec_lock_missing(void);

/* Looks at what forks of this process have to close and unmap; again whenever it has opened or mapped something. */
_must_use_ struct err *exec_note(void);

struct exec_lock {
	const char *folder;    /* below which files may be made and changed */
	const int *keep;       /* at most 8 descriptors that stay, besides 0, 1, 2 and plain files open for reading */
	unsigned keep_cnt;
};

/* Error env when a part that has to be there cannot be had: then nothing may run. */
_must_use_ struct err *exec_lock(const struct exec_lock *lock);
/* What a process may take from now on: bytes of memory above what it has mapped, and seconds of the processor. Said by its parent, when it
 * knows what the process is for; the lock lets it take no more. */
_must_use_ struct err *exec_limit(pid_t pid, uint64_t mem_len, uint64_t cpu_s);
/* Without the lock: only the descriptors and shared memory of the process it was forked from go. */
_must_use_ struct err *exec_part(const int *keep, unsigned keep_cnt);

#endif
