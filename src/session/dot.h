/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_DOT_H
#define SESSION_DOT_H

#include "base/arena.h"
#include "base/buf.h"
#include "session/session.h"

/* Graphs as DOT, written by us with everything of the target's escaped, and as SVG, laid out by Graphviz in a
 * locked-down child. */
_must_use_ struct err *ses_dot_blocks(struct ses_snap *sn, const struct ses_call *call, const struct ses_block *blocks, uint32_t cnt,
				      struct buf *out);
_must_use_ struct err *ses_dot_calls(const struct ses_call_edge *edges, uint32_t cnt, struct buf *out);

/* Errors: env (no Graphviz), timeout, budget. */
_must_use_ struct err *ses_dot_to_svg(const struct buf *dot, struct buf *ret);

/* Whether Graphviz can be loaded; for doctor. */
_must_use_ struct err *ses_graphviz_try(void);

#endif
