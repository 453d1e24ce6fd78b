/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RPC_OPCALL_H
#define RPC_OPCALL_H

#include "session/ops.h"

/* An operation of the table asked for in JSON; its parameters as ops_args_take() has them. Error invalid. */
_must_use_ struct err *rpc_op_args(const struct ops_op *op, const struct ops_doc *params, struct arena *a, struct ops_args *ret);

/* Runs it and appends the `result`, which is what --json prints; text (--dot, --svg, man) becomes {"text":...}. */
_must_use_ struct err *rpc_op_run(struct ses_snap *sn, const struct ses_call *call, const struct ops_args *args, struct arena *a,
				  struct buf *out);

#endif
