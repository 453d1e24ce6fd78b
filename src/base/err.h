/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/cleanup.h"

/*
 * The one error channel. A function that can fail returns `struct err *`: null is success, anything
 * else is owned by the caller, who returns it upwards (perhaps with err_prefix()) or frees it.
 * Out-of-memory and plain not-found are static objects, so returning them allocates nothing and
 * err_free() of them is a no-op. Only front ends print errors.
 *
 * The kinds are those of the operations contract (docs/ops.md), so RPC, exit status and Python map
 * from one table, err_kinds in err.c. ERR_ENV is what the machine lacks (exit 4).
 */
enum err_kind {
	ERR_NOT_FOUND,
	ERR_AMBIGUOUS,
	ERR_STALE,
	ERR_BUSY,
	ERR_BUDGET,      /* a limit of ours was reached */
	ERR_READONLY,
	ERR_INVALID,     /* the caller's words are off */
	ERR_BAD_INPUT,   /* the target's bytes are malformed, missing or unreadable */
	ERR_UNSUPPORTED,
	ERR_DENIED,
	ERR_TIMEOUT,
	ERR_CANCELLED,
	ERR_IO,
	ERR_ENV,
	ERR_NOMEM,
	ERR_INTERNAL,
	ERR_KIND_COUNT
};

struct err {
	enum err_kind kind;
	int os_errno;    /* errno of the failed call, or 0 */
	char *text;      /* what and why, one line, no full stop */
	char *fix;       /* what to do about it, or null */
};

extern struct err err_nomem;     /* static: out of memory */
extern struct err err_not_found; /* static: not found, without a text of its own */

/* Returns an owned error of `kind` with a printf-style one-line text. Never null. */
_must_use_ struct err *err_new(enum err_kind kind, const char *fmt, ...) _printf_(2, 3);

/* Returns an owned error for the failed system call whose errno is `os_errno`: "TEXT: strerror".
 * The kind follows errno: ENOENT bad_input, EACCES/EPERM denied, ENOMEM no memory, else io. */
_must_use_ struct err *err_os(int os_errno, const char *fmt, ...) _printf_(2, 3);

/* Puts "PREFIX: " before the text of `e` (takes and returns it). Null stays null. */
_must_use_ struct err *err_prefix(struct err *e, const char *fmt, ...) _printf_(2, 3);

/* Says what to do about `e` (takes and returns it). Null stays null. */
_must_use_ struct err *err_fix(struct err *e, const char *fmt, ...) _printf_(2, 3);

/* Frees an error; null and the static ones are accepted. */
void err_free(struct err *e);

/* The kind's name in answers, "not_found"; ERR_NOMEM and ERR_ENV say "internal" and "unsupported". */
const char *err_kind_name(enum err_kind kind);

/* The exit status of the command line for this kind (docs/ops.md, "Exit status"). */
int err_exit_status(enum err_kind kind);

static inline void err_freep(struct err **e)
{
	err_free(*e);
}
#define _cleanup_err_ _cleanup_(err_freep)

#endif
