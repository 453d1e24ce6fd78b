/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CHILD_H
#define BASE_CHILD_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

/*
 * Runs code of a library that parses hostile bytes (libdw, Graphviz, libclang) in a locked-down child: forked
 * from here, no_new_privs, rlimits, no network, no files opened after the lock, a seccomp filter by
 * call number that kills. What it writes to its descriptor comes back bounded, and is hostile input to
 * the parent. The child may use what was mapped before the fork, so inputs need no copy.
 */
struct child_opts {
	const char *what;      /* for messages: "reading DWARF" */
	size_t max_out_len;    /* bytes taken from the child at most; more is an error of kind budget */
	uint64_t max_mem_len;  /* RLIMIT_AS above what the parent already has mapped, bytes */
	unsigned cpu_s;        /* RLIMIT_CPU, seconds */
	unsigned wall_ms;      /* killed after this */
	bool is_lenient;       /* a call that is not on the filter's list fails with EPERM and does not end the child: for a library
				* that looks for files it does without */
	/* Runs before the lock, in the child: load the library here. Its text on failure goes to the
	 * parent as ERR_ENV. May be null. */
	struct err *(*prepare)(void *ctx);
	/* Runs locked. Writes its answer to `out_fd`; 0 on success. */
	int (*run)(void *ctx, int out_fd);
	void *ctx;
};

/* Appends what the child wrote to `ret`, also when an error follows: records that came before it are
 * still good. Errors: env (prepare failed, or the kernel cannot lock), timeout, budget, and bad_input
 * "the child died of SIGSEGV while WHAT" when it was killed, "the child was stopped at the system call
 * openat while WHAT", or "WHAT failed (N)" when run() did. Thread-safe; blocks until it ended.
 * In the child descriptors 0 to 2 are /dev/null and memory shared with other processes is gone. */
_must_use_ struct err *child_run(const struct child_opts *opts, struct buf *ret);

/* Whole-buffer write for `run` functions; false when the pipe broke. Async-signal-safe. */
bool child_write(int fd, const void *bytes, size_t len);

/*
 * Programs that are started for somebody find ignored what whoever started us has ignored (nohup, a job of a script in the background), and nothing
 * else: child_note_signals() before the first handler is set, from one thread; child_give_signals() in the new process. Async-signal-safe.
 */
void child_note_signals(void);
void child_give_signals(void);

#endif
