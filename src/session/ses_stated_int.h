/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SES_STATED_INT_H
#define SESSION_SES_STATED_INT_H

#include "analysis/stated.h"
#include "session/ses_int.h"

/*
 * Directives of the journal. Their values are kept in one spelling (docs/store.md), with every length and every distance
 * worked out, so that what was stated does not change its meaning with a later analysis, and moves with its address.
 * ses_define.c makes them of what people write, ses_stated.c reads them for the analysis. A journal may hold anything.
 */

/* False when the value is none. */
bool ses_stated_item(const char *value, uint64_t va, struct analysis_item *ret);
bool ses_stated_flags(const char *value, uint64_t va, struct analysis_func_flags *ret);
bool ses_stated_switch(const char *value, uint64_t va, struct analysis_switch *ret);
#define SES_PIECES_MAX 1024
/* The pieces of a function; 0 when the value is none. `out` has SES_PIECES_MAX places. */
size_t ses_stated_pieces(const char *value, uint64_t va, struct analysis_piece *out);

/* Everything that stands, at addresses `bias` above the journal's; in the arena. `v` may be null. */
_must_use_ struct err *ses_stated_read(const struct edits_view *v, uint64_t bias, struct arena *a, struct analysis_stated *ret);

/* What becomes of an edit whose op is a directive. */
struct ses_directive {
	const char *value;          /* as the journal has it; null: it is taken away */
	bool is_there;              /* nothing is to be done, `why` says why */
	const char *why;            /* of a refusal or of nothing to do; else null */
	struct edits_change *more;  /* what else changes with it: statements about the same bytes */
	size_t more_cnt;
};
/* `e->value` as people write it; sets e->made. Errors: no memory. */
_must_use_ struct err *ses_directive_make(struct ses_snap *sn, enum edits_kind kind, struct ses_edit *e, struct arena *a,
					  struct ses_directive *ret);

#endif
