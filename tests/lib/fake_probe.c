/* SPDX-License-Identifier: Apache-2.0 */
/* Probes for the tests of the views: every address can be probed but odd ones, and each look finds three hits more. */
#include "session/ses_probe.h"

#include <stdlib.h>
#include <string.h>

struct ses_probes {
	char name[64];
	uint64_t hits;
};

const char *ses_probe_refuse(struct ses_snap *sn, uint64_t va, struct arena *a)
{
	(void)sn;
	(void)a;
	return va % 2 ? "there is no instruction" : NULL;
}

struct err *ses_probes_open(struct ses_snap *sn, const struct ses_call *call, const struct ses_probe_opts *o, struct ses_probes **ret)
{
	(void)sn;
	(void)call;
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return &err_nomem;
	strncpy((*ret)->name, o->whats[0], sizeof((*ret)->name) - 1);
	return NULL;
}

void ses_probes_close(struct ses_probes *p)
{
	free(p);
}

struct err *ses_probes_drain(struct ses_probes *p, ses_probe_line_fn *line, void *ctx, uint64_t *ret_cnt)
{
	*ret_cnt = 3;
	p->hits += 3;
	line(ctx, "hit", 3);
	return NULL;
}

void ses_probes_get(const struct ses_probes *p, uint32_t i, struct ses_probe_counts *ret)
{
	(void)i;
	*ret = (struct ses_probe_counts){.name = p->name, .hits = p->hits, .last = p->hits ? "f(a=1)" : ""};
}
