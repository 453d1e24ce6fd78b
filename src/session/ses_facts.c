/* SPDX-License-Identifier: Apache-2.0 */
/* What stands of one kind of edit, as a list: bookmarks, comments, patches. */
#include "session/ses_int.h"

#define CHECK_EVERY 1024

struct err *ses_facts(struct ses_snap *sn, const struct ses_call *call, const char *op, struct ses_page *page, struct arena *a,
		      struct ses_fact **ret)
{
	enum edits_kind kind;
	size_t cnt = 0;
	if (!edits_kind_find(op, &kind))
		return err_new(ERR_INVALID, "%s: there is no such edit", op);
	const struct edits_fact *f = edits_range(sn->edits, kind, 0, UINT64_MAX, &cnt);
	uint32_t limit = page->limit ? page->limit : 1000;
	struct ses_fact *out = ARENA_ARRAY(a, struct ses_fact, MIN((size_t)limit, cnt) + 1);
	if (!out)
		return &err_nomem;
	page->cnt = 0;
	page->total = 0;
	for (size_t i = 0; i < cnt; i++) {
		struct err *e = i % CHECK_EVERY ? NULL : ses_call_check(call);
		if (e)
			return e;
		struct ses_text value = ses_text_of(f[i].value, f[i].value_len), sub = ses_text_cstr(f[i].sub);
		if (!ses_filter_match(page->filter, value) && !ses_filter_match(page->filter, sub))
			continue;
		if (page->total++ < page->offset || page->cnt >= limit)
			continue;
		out[page->cnt++] = (struct ses_fact){.addr = f[i].va, .sub = sub, .value = value, .rev = f[i].rev};
	}
	*ret = out;
	return NULL;
}

bool ses_patch_at(struct ses_snap *sn, uint64_t va, struct ses_fact *ret)
{
	size_t cnt = 0;
	uint64_t first = va > SES_PATCH_MAX ? va - SES_PATCH_MAX : 0;
	const struct edits_fact *top = NULL;
	const struct edits_fact *f = edits_range(sn->edits, EDITS_PATCH, first, va, &cnt);
	for (size_t i = 0; i < cnt; i++) {
		if (va - f[i].va < f[i].value_len / 2 && (!top || f[i].rev > top->rev))
			top = &f[i];
	}
	if (top)
		*ret = (struct ses_fact){.addr = top->va, .sub = ses_text_cstr(""), .rev = top->rev,
					 .value = ses_text_of(top->value, top->value_len)};
	return top != NULL;
}
