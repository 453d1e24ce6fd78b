/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RPC_MSG_H
#define RPC_MSG_H

#include "base/buf.h"
#include "base/err.h"
#include "session/ops_doc.h"

/*
 * Requests and answers of JSON-RPC 2.0, one object a line; batches are not taken. No I/O. The numbers of errors are the
 * specification's (section 5.1); what an operation refuses is RPC_FAILED with data {"kind","fix"} as docs/ops.md says.
 */
enum rpc_code { RPC_PARSE = -32700, RPC_INVALID_REQUEST = -32600, RPC_NO_METHOD = -32601, RPC_BAD_PARAMS = -32602, RPC_FAILED = -32000,
	       RPC_NO_RESOURCE = -32002 /* the Model Context Protocol's: no such resource */ };

struct rpc_req {
	const char *id;               /* as JSON text, to be given back; null: a notification, which has no answer */
	const char *method;
	const struct ops_doc *params; /* an object or a list, or null */
};

/* Reads a request into `a`, which what it points to lives in. On an error *ret_code says which kind, and ret->id is the id as far as it
 * could be read ("null" otherwise). */
_must_use_ struct err *rpc_req_parse(const char *line, size_t len, struct arena *a, struct rpc_req *ret, enum rpc_code *ret_code);

/* The same of a document that was read already, which `ret` borrows from. */
_must_use_ struct err *rpc_req_read(const struct ops_doc *doc, struct arena *a, struct rpc_req *ret, enum rpc_code *ret_code);

/* The head of an answer's line, behind which its result is written, and then its end. `status` (borrowed, mostly null) is what the answer
 * comes to all the same, for the exit status of a command: it becomes a member beside the result. */
void rpc_begin_result(struct buf *out, const char *id);
void rpc_end_result(struct buf *out, const struct err *status);
/* Appends the line of an answer whose result is the JSON text `result`. */
void rpc_put_result(struct buf *out, const char *id, const char *result, size_t len);
/* Appends the line of an answer that is an error (borrowed). */
void rpc_put_err(struct buf *out, const char *id, enum rpc_code code, const struct err *e);

#endif
