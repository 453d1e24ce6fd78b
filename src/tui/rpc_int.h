/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUI_RPC_INT_H
#define TUI_RPC_INT_H

#include "base/json.h"
#include "rpc/msg.h"
#include "session/ops.h"
#include "tui/rpc.h"
#include "tui/tui_int.h"

/* What the files rpc_*.c share: one request under way, the methods, what they answer. */

/* A key or an action to come, `wait_ms` after the one before it. */
struct tui_step {
	uint32_t wait_ms;
	enum tui_action action; /* TUI_NONE: the key, or with key 0 nothing */
	uint32_t key;
	uint8_t mods;
};

enum tui_param_type { TUI_P_STR, TUI_P_INT, TUI_P_BOOL, TUI_P_LIST, TUI_P_ANY };

struct tui_param {
	const char *name;
	enum tui_param_type type;
	bool is_required;
	const char *help;
};
#define TUI_PARAM_MAX 8

/* When the answer is due. */
enum tui_method_kind {
	TUI_M_NOW,   /* at once; needs no workbench yet */
	TUI_M_LOOK,  /* once what is on the screen is up to date */
	TUI_M_ACT,   /* once everything it set off has ended and is on the screen */
};

struct tui_call;
struct tui_method {
	const char *name;
	enum tui_method_kind kind;
	const char *help;
	struct tui_param params[TUI_PARAM_MAX]; /* by position too; the last has no name */
	struct err *(*run)(struct tui_call *c);                  /* begins it; may be null */
	void (*answer)(struct tui_call *c, struct json *j);      /* members of the result; null: the state */
};

struct tui_rpc_client;

/* One request. Heap; owned by its client, or by its job once the client is gone. */
struct tui_call {
	struct tui *t;                   /* null before the session is there: TUI_M_NOW only */
	struct tui_rpc_client *client;   /* null: gone */
	struct arena arena;              /* of the request */
	struct rpc_req rq;
	const struct tui_method *m;      /* null: an operation as it is */
	const struct ops_doc *args[TUI_PARAM_MAX];
	VEC(struct tui_step) steps;
	size_t step_at;
	uint64_t step_due_ns, timeout_ns, shown_due_ns; /* 0: not set */
	bool no_settle, is_settled, is_shown, wants_quit, wants_ready;
	struct buf extra;                /* members of the result that are known already: "key":value,... */
	const struct ops_op *op;         /* to be run in a job */
	struct ops_args op_args;
	struct tui_job *job;             /* it runs */
	struct buf op_out;               /* its answer */
	struct err *err;                 /* what the call comes to, owned */
	enum rpc_code code;
};

/* rpc_methods.c */
const struct tui_method *tui_methods(size_t *ret_cnt);
const struct tui_method *tui_method_find(const char *name);
/* Checks the request's parameters against the method's and fills c->args. */
_must_use_ struct err *tui_call_args(struct tui_call *c);
/* Whether it is one of the parameters that every method has, which is then taken. */
_must_use_ struct err *tui_call_common(struct tui_call *c, const struct ops_doc *v, bool *ret_is);
/* The n-th parameter: null, `otherwise` or false when it is not given. */
const char *tui_arg_str(const struct tui_call *c, size_t n);
int64_t tui_arg_int(const struct tui_call *c, size_t n, int64_t otherwise);
bool tui_arg_bool(const struct tui_call *c, size_t n);
/* Writes a member of the result ahead of the rest. */
struct json tui_call_extra(struct tui_call *c);

/* rpc_verbs.c */
bool tui_step_add(struct tui_call *c, struct tui_step s);
void tui_step_do(struct tui *t, const struct tui_step *s);
/* Puts away every dialog, prompt and half-typed key. */
void tui_put_away(struct tui *t);

/* rpc_edit.c: the operations that edit, at the cursor. */
/* Whether `ui.NAME` is one of them (name without "ui."); begins it. */
const struct ops_op *tui_edit_op(const char *name);
/* The operation with these parameters; what they leave out is the cursor's and a script's. */
_must_use_ struct err *tui_edit_call(struct tui_call *c, const struct ops_op *op, const struct ops_doc *params);
_must_use_ struct err *tui_edit_begin(struct tui_call *c, const struct ops_op *op);
/* What will bring a method that is not there yet, or null. */
const char *tui_method_comes_with(const char *name);

/* rpc_state.c: members of an object. */
void tui_put_state(struct tui *t, struct json *j);
void tui_answer_view(struct tui_call *c, struct json *j);
void tui_answer_diag(struct tui_call *c, struct json *j);
/* rpc_screen.c */
void tui_answer_screen(struct tui_call *c, struct json *j);

#endif
