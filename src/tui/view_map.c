/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include "base/glob.h"

#include <string.h>

/* The memory map: segments, each followed by its sections. */
static bool add_row(struct tui_page *p, const struct ses_segment *s, bool is_section)
{
	struct tui_row *r = &p->rows[p->cnt];
	char *addr = arena_printf(&p->arena, "%llx", (unsigned long long)s->addr);
	char *size = arena_printf(&p->arena, "%llx", (unsigned long long)s->size);
	char *off = s->file_size ? arena_printf(&p->arena, "+%llx", (unsigned long long)s->file_off) : arena_strndup(&p->arena, "-", 1);
	char *name = arena_printf(&p->arena, "%s%.*s", is_section ? "  " : "", (int)s->name.len, s->name.s);
	if (!addr || !size || !off || !name)
		return false;
	r->va = s->addr;
	r->has_va = s->size != 0;
	r->col[0] = (struct ses_text){name, (uint32_t)strlen(name)};
	r->col[1] = (struct ses_text){addr, (uint32_t)strlen(addr)};
	r->col[2] = (struct ses_text){size, (uint32_t)strlen(size)};
	r->col[3] = (struct ses_text){s->perm, (uint32_t)strnlen(s->perm, sizeof(s->perm))};
	r->col[4] = (struct ses_text){off, (uint32_t)strlen(off)};
	p->cnt++;
	return true;
}

static bool is_wanted(const struct tui_query *q, const struct ses_segment *s, uint64_t *seen)
{
	if (q->page.filter && !glob_match(q->page.filter, strlen(q->page.filter), s->name.s, s->name.len, true))
		return false;
	uint64_t at = (*seen)++;
	return at >= q->page.offset && at - q->page.offset < q->page.limit;
}

static struct err *map_fetch(const struct tui_query *q, struct tui_page *ret)
{
	struct ses_segment *segs;
	struct ses_segment *secs;
	uint32_t seg_cnt;
	uint32_t sec_cnt;
	struct err *e = ses_segments(q->snap, &ret->arena, &segs, &seg_cnt);
	if (!e)
		e = ses_sections(q->snap, &ret->arena, &secs, &sec_cnt);
	if (e)
		return e;
	ret->rows = ARENA_ARRAY(&ret->arena, struct tui_row, (size_t)q->page.limit + 1);
	if (!ret->rows)
		return &err_nomem;
	/* Sections by address within the segment that holds them; both lists are in order of address. */
	uint32_t at = 0;
	for (uint32_t i = 0; i <= seg_cnt; i++) {
		uint64_t end = i < seg_cnt ? segs[i].addr : UINT64_MAX;
		for (; at < sec_cnt && i && (secs[at].addr < end || i == seg_cnt); at++) {
			if (is_wanted(q, &secs[at], &ret->total) && !add_row(ret, &secs[at], true))
				return &err_nomem;
		}
		if (i < seg_cnt && is_wanted(q, &segs[i], &ret->total) && !add_row(ret, &segs[i], false))
			return &err_nomem;
	}
	return NULL;
}

static const struct tui_list_ops map_list = {
	.title = "Memory map",
	.empty = "nothing is mapped",
	.columns = {{.title = "name", .role = ROLE_NAME},
		    {.title = "address", .width = 16, .role = ROLE_ADDR, .is_right = true},
		    {.title = "size", .width = 10, .role = ROLE_TEXT, .is_right = true},
		    {.title = "perm", .width = 4, .role = ROLE_TEXT},
		    {.title = "file", .width = 10, .role = ROLE_DIM, .is_right = true}},
	.column_cnt = 5,
	.fetch = map_fetch,
};

const struct tui_view_ops tui_map_ops = {.name = "memory map", .where = TUI_IN_LIST, .list = &map_list};
