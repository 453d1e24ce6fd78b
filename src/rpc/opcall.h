/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RPC_OPCALL_H
#define RPC_OPCALL_H

#include "rpc/msg.h"
#include "session/ops.h"

struct ses_project;

/* What an operation is asked about, by whom and with what limits. */
struct rpc_ask {
	struct ses_snap *snap;       /* borrowed; null for operations that take no target, which do not look at it either */
	struct ses_project *project; /* that the target is a binary of, or null */
	uint32_t binary;             /* which one */
	bool no_store;               /* of sessions the operation opens itself */
	struct ses_call call;
	struct arena *arena;         /* for all there is while it runs; the answer is not in it */
	/* Set by the call: */
	enum rpc_code code;          /* of an error */
	struct err *status;          /* what an answer as a whole comes to, for an exit status (docs/ops.md); the caller's, mostly null */
};

/* An operation of the table asked for in JSON; its parameters as ops_args_take() has them. Error invalid. */
_must_use_ struct err *rpc_op_args(const struct ops_op *op, const struct ops_doc *params, struct arena *a, struct ops_args *ret);

/* Runs it and appends the `result`, which is what --json prints. Of an operation with the parameters deadline_ms and max_bytes
 * these hold too; a longer answer than ask->call.max_bytes is only cut where the operation can say `next`. */
_must_use_ struct err *rpc_op_run(struct rpc_ask *ask, const struct ops_args *args, struct buf *out);

/* Both, by the operation's name. `params`: an object, a list by position, or null; ops_doc_parse() makes one of text. */
_must_use_ struct err *rpc_op_call(struct rpc_ask *ask, const char *name, const struct ops_doc *params, struct buf *out);

#endif
