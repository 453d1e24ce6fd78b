/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SES_LOAD_INT_H
#define SESSION_SES_LOAD_INT_H

#include "session/ses_int.h"

/* What the journal says; what is no option there is passed over. `v` may be null. */
void ses_load_read(const struct edits_view *v, struct ses_load *ret);
bool ses_load_is_any(const struct ses_load *l);
/* Why an edit of kind EDITS_LOAD may not be made, or null. */
const char *ses_load_refuse(struct ses_snap *sn, const struct edits_change *c, struct arena *a);
/* Describes the file under these options: s->bin, s->arch, s->load. */
_must_use_ struct err *ses_parse_as(struct ses *s, const struct ses_load *l);
/* The options of the call that opens: into s->asked; and into the journal of the target, whose hash is known. */
_must_use_ struct err *ses_load_take(struct ses *s, const struct ses_opts *o);
_must_use_ struct err *ses_load_state(struct ses *s, const struct ses_opts *o);

#endif
