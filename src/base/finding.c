/* SPDX-License-Identifier: Apache-2.0 */
#include "base/finding.h"

#include <stdarg.h>
#include <stdio.h>

void findings_fini(struct findings *f)
{
	VEC_FREE(&f->list);
	arena_fini(&f->arena);
	f->dropped_cnt = 0;
}

static void finding_vadd(struct findings *f, struct finding item, const char *what, const char *fmt,
			 va_list ap)
{
	if (f->list.cnt >= FINDING_MAX) {
		f->dropped_cnt++;
		return;
	}
	char why[512];
	vsnprintf(why, sizeof(why), fmt, ap);
	item.what = arena_strndup(&f->arena, what, strlen(what));
	item.why = arena_strndup(&f->arena, why, strlen(why));
	if (!item.what || !item.why || !VEC_PUSH(&f->list, item))
		f->dropped_cnt++;
}

void finding_add(struct findings *f, enum finding_severity severity, uint64_t file_off,
		 const char *what, const char *why_fmt, ...)
{
	va_list ap;
	va_start(ap, why_fmt);
	finding_vadd(f, (struct finding){.severity = severity, .file_off = file_off}, what, why_fmt, ap);
	va_end(ap);
}

void finding_add_va(struct findings *f, enum finding_severity severity, uint64_t va,
		    const char *what, const char *why_fmt, ...)
{
	va_list ap;
	va_start(ap, why_fmt);
	struct finding item = {
		.severity = severity, .has_va = true, .va = va, .file_off = UINT64_MAX};
	finding_vadd(f, item, what, why_fmt, ap);
	va_end(ap);
}

const char *finding_severity_name(enum finding_severity severity)
{
	static const char *const names[] = {"note", "warning", "error"};
	return names[severity];
}
