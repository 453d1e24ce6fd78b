/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_OPS_DOC_H
#define SESSION_OPS_DOC_H

#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ses_call;

/* JSON that a caller hands in (a map of names, a list of edits), read into an arena. Untrusted: at most 64 MB, 16 levels
 * deep, keys at most once an object. */
enum ops_doc_kind { OPS_DOC_NULL, OPS_DOC_BOOL, OPS_DOC_INT, OPS_DOC_STRING, OPS_DOC_LIST, OPS_DOC_OBJECT, OPS_DOC_OTHER };

struct ops_doc {
	enum ops_doc_kind kind;
	const char *key;       /* of a member of an object; else null */
	int64_t num;           /* of INT; 0 or 1 of BOOL */
	const char *s;         /* of STRING; NUL-terminated, but may hold NULs */
	size_t len;
	struct ops_doc *items; /* of LIST and OBJECT, in the order written */
	size_t cnt;
};

/* The bytes of a file or pipe ("-": standard input), NUL-terminated, in the arena. A pipe whose writer is silent is waited for as
 * long as `call` lasts, one that nobody writes to not longer than a moment. Errors: bad_input, denied, io, timeout, cancelled,
 * budget past 64 MB. */
_must_use_ struct err *ops_doc_load(const char *path, const struct ses_call *call, struct arena *a, char **ret, size_t *ret_len);
/* Reads such bytes; `path` is for messages. Errors: invalid with line and column. */
_must_use_ struct err *ops_doc_parse(const char *path, const char *text, size_t len, struct arena *a, struct ops_doc *ret);
/* Loads such bytes, whose document is an object. Errors: those of ops_doc_load(), invalid with line and column. */
_must_use_ struct err *ops_doc_read(const char *path, const struct ses_call *call, struct arena *a, struct ops_doc *ret);
/* The parameters of an operation from JSON (null: none), by name (an object) or by position (a list, in the order of the table's
 * positional ones): strings, numbers as text, true for flags, lists for repeated ones, a document for OPS_JSON; null and false
 * say nothing. Checks that none is missing. Error invalid, also for a parameter the operation has not. */
struct ops_args;
_must_use_ struct err *ops_args_take(struct ops_args *a, const struct ops_doc *params);
/* The member with that key, or null. */
const struct ops_doc *ops_doc_find(const struct ops_doc *object, const char *key);
/* The string of the member with that key, or null when there is none or it is no string. */
const char *ops_doc_str(const struct ops_doc *object, const char *key);

#endif
