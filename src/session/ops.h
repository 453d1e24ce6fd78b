/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_OPS_H
#define SESSION_OPS_H

#include "base/buf.h"
#include "session/session.h"

/*
 * The operation table: each operation of docs/ops.md once, with its name, parameters, capability, help and handler.
 * The command line, the manual page and the shell completions (later RPC, MCP and Python) are made from it.
 */
enum ops_param_type { OPS_FLAG, OPS_STRING, OPS_INT, OPS_ADDR, OPS_FUNC, OPS_FILE, OPS_CHOICE };

struct ops_param {
	const char *name;      /* "count"; on the command line --count, or positional when is_positional */
	enum ops_param_type type;
	bool is_positional, is_required, is_repeated;
	const char *alias;     /* "limit", or null */
	const char *choices;   /* for OPS_CHOICE: "a|b|c" */
	const char *help;
};

enum ops_shape { OPS_OBJECT, OPS_LIST, OPS_TEXT };

/* A column of the table for people, and of the JSON item: key and how to show it. */
struct ops_column { const char *key; const char *title; char align; /* 'l' or 'r' */ };

struct ops_value; /* parsed parameters; see ops.c */

struct ops_op {
	const char *name;
	uint32_t cap;          /* enum ses_cap */
	enum ops_shape shape;
	bool needs_target;     /* takes FILE */
	const char *help;      /* one line */
	const struct ops_param *params;
	size_t param_cnt;
	/* Writes the RPC `result` as JSON to `out`. For lists: {"rev":..,"items":[..],"total":..,"next":..}. */
	struct err *(*run)(struct ses_snap *sn, const struct ses_call *call, const struct ops_value *v, struct buf *out);
	/* Writes the table (or text) for people; null: made from the JSON by the generic printer. */
	struct err *(*print)(struct ses_snap *sn, const struct ses_call *call, const struct ops_value *v, struct buf *out);
	const struct ops_column *columns;
	size_t column_cnt;
};

const struct ops_op *ops_table(size_t *ret_cnt);
const struct ops_op *ops_find(const char *name);

#endif
