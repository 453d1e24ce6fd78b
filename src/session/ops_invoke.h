/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_OPS_INVOKE_H
#define SESSION_OPS_INVOKE_H

#include "session/ops_int.h"

#include "live/sandbox/box.h"

/*
 * One function called with arguments that somebody typed, and the answer about it; shared by `call` and `native run`. Words are
 * numbers (-5, 0x1f), floating point numbers (1.5, 1.5f), buf:N and buf:HEX, out:N, addr:NAME, str:TEXT, and all else is text.
 */
struct ops_invoke {
	uint64_t va;              /* the function, in the target */
	struct ses_text name;
	uint64_t code_va;         /* its C form in the box's code object; 0: the machine code */
	struct box_arg args[BOX_ARG_MAX];
	unsigned arg_cnt;
	unsigned ret_float;       /* bits of a floating point result, 0: an integer */
	unsigned ret_bits;        /* of an integer result; 0: nothing is returned */
	bool ret_is_unsigned;
	struct ses_text prototype; /* "" when none is known */
	/* Of an image: what it cost before the call; 0 otherwise. */
	uint64_t check_ns, map_ns;
	bool has_costs;
};

/* Reads FUNC, ARGS and --ret of the request. Errors: not_found, invalid. */
_must_use_ struct err *ops_invoke_read(struct ops_req *rq, struct ses_snap *sn, struct ops_invoke *ret);

/* The limits of a call: --timeout-ms, what is left until the request's deadline, its cancelling. The rest is the caller's to fill.
 * Errors: invalid. */
_must_use_ struct err *ops_invoke_limits(struct ops_req *rq, struct box_opts *ret);

/* Calls it and answers. A call that did not come back is the answer's status. */
_must_use_ struct err *ops_invoke_run(struct ops_req *rq, struct ses_snap *sn, struct box *b, const struct ops_invoke *v);

#endif
