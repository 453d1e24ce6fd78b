/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/opcall.h"

#include <time.h>

struct err *rpc_op_args(const struct ops_op *op, const struct ops_doc *params, struct arena *a, struct ops_args *ret)
{
	ops_args_init(ret, op, a);
	return ops_args_take(ret, params);
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return !a ? b : !b ? a : MIN(a, b);
}

/* The limits among the parameters; those of the call stay. */
static void take_limits(struct ses_call *call, const struct ops_args *args)
{
	uint64_t ms = ops_arg_u64(args, "deadline_ms", 0);
	struct timespec t;
	if (ms) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		call->deadline_ns = sooner(call->deadline_ns, (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec +
							       MIN(ms, (uint64_t)1 << 40) * 1000000);
	}
	call->max_bytes = sooner(call->max_bytes, ops_arg_u64(args, "max_bytes", 0));
}

struct err *rpc_op_run(struct rpc_ask *ask, const struct ops_args *args, struct buf *out)
{
	struct ops_out o;
	struct ses_call call = ask->call;
	take_limits(&call, args);
	ops_out_init(&o, args->op, out, true);
	struct ops_req rq = {.sn = args->op->needs_target ? ask->snap : NULL, .call = &call, .args = args, .arena = ask->arena, .out = &o,
			     .project = ask->project, .binary = ask->binary, .no_store = ask->no_store};
	size_t began = out->len;
	struct err *e = args->op->needs_target && !ask->snap ? err_new(ERR_INVALID, "%s: about which target?", args->op->name) : ops_run(&rq);
	ask->code = e && e->kind == ERR_INVALID ? RPC_BAD_PARAMS : RPC_FAILED;
	ask->status = e ? NULL : take_ptr(o.status);
	ops_out_fini(&o);
	/* What could be read of a damaged input comes with the error of the command line; here it is one or the other. */
	if (e)
		out->len = began;
	return !e && out->failed ? &err_nomem : e;
}

struct err *rpc_op_call(struct rpc_ask *ask, const char *name, const struct ops_doc *params, struct buf *out)
{
	struct ops_args args;
	const struct ops_op *op = ops_find(name);
	ask->status = NULL;
	if (!op) {
		ask->code = RPC_NO_METHOD;
		return err_new(ERR_NOT_FOUND, "%s: there is no such operation", name);
	}
	struct err *e = rpc_op_args(op, params, ask->arena, &args);
	ask->code = RPC_BAD_PARAMS;
	return e ? e : rpc_op_run(ask, &args, out);
}
