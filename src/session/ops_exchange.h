/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_OPS_EXCHANGE_H
#define SESSION_OPS_EXCHANGE_H

#include "session/ops.h"

/* Version of the JSON that export writes and import reads: {"scry_edits":1, ...}. docs/ops.md has its shape. */
#define OPS_EXCHANGE_VERSION 1

/* ops_types.c: parses declarations in any order beside those that stand. *ret: an edit for each name that is new or says
 * more; ret_why[i] is why decls[i] could not be read, or null (owned). */
_must_use_ struct err *ops_types_take(struct ops_req *rq, const struct ses_edit *decls, size_t cnt, struct err **ret_why,
				      struct ses_edit **ret, size_t *ret_cnt);
/* ops_types.c: appends all declarations as a header; *ret_cnt is how many there are. */
_must_use_ struct err *ops_types_header(struct ops_req *rq, struct buf *out, size_t *ret_cnt);

/* Where a long text goes: `out` collects it, flush() writes it away now and then. */
struct ops_sink {
	struct ops_req *rq;
	struct buf *out;
	struct err *(*flush)(struct ops_sink *s);
	void *ctx;
	uint64_t functions, failed, lines, types;
};
_must_use_ struct err *ops_export_c(struct ops_sink *s);
_must_use_ struct err *ops_export_asm(struct ops_sink *s);
_must_use_ struct err *ops_export_html(struct ops_sink *s);

#endif
