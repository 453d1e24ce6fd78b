/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SES_EDIT_INT_H
#define SESSION_SES_EDIT_INT_H

#include "session/ses_int.h"

/* Why a change may not be made, or null; `snap` is a snapshot. For edits_commit(). */
const char *ses_edit_refuse(void *snap, const struct edits_change *c, struct arena *a);

#endif
