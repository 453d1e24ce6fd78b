/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF. An ELF file goes the whole way, through the locked child; anything else is taken for the child's answer, which
 * is what a taken-over child could send.
 */
#include "fuzz.h"

#include "base/cur.h"
#include "debuginfo/dw_child.h"

static void check(const struct fmt_bin *b, const struct dbg_funcs *funcs, const struct dbg_lines *lines)
{
	for (size_t i = 0; i < funcs->list.cnt; i++) {
		const struct dbg_func *x = &funcs->list.data[i];
		const struct fmt_segment *s = fmt_segment_at(b, x->va);
		if (!x->name.len || (i && funcs->list.data[i - 1].va > x->va))
			abort();
		if (s && x->len > s->mem_len - (x->va - s->va))
			abort();
	}
	for (size_t i = 0; i < lines->list.cnt; i++) {
		const struct dbg_line *x = &lines->list.data[i];
		if (x->line ? x->file >= lines->files.cnt : x->file != UINT32_MAX)
			abort();
		if (i && lines->list.data[i - 1].va >= x->va)
			abort();
	}
}

static void check_types(const struct dbg_types *t)
{
	for (size_t i = 0; i < t->list.cnt; i++) {
		const struct dbg_type *x = &t->list.data[i];
		if (x->target >= t->list.cnt || x->kind >= DBG_T_KIND_COUNT || x->sub_first > t->subs.cnt || x->sub_cnt > t->subs.cnt - x->sub_first)
			abort();
		if (!i != (x->kind == DBG_T_VOID))
			abort();
	}
	for (size_t i = 0; i < t->subs.cnt; i++) {
		if (t->subs.data[i].type >= t->list.cnt)
			abort();
	}
	for (size_t i = 0; i < t->vars.cnt; i++) {
		if (t->vars.data[i].type >= t->list.cnt || (i && t->vars.data[i - 1].va >= t->vars.data[i].va))
			abort();
	}
}

static struct err *take_answer(const uint8_t *bytes, size_t len, struct dbg_funcs *funcs, struct dbg_lines *lines,
			       struct findings *f)
{
	struct fmt_segment code = {.va = 0x1000, .mem_len = 0x10000, .perm = FMT_R | FMT_X};
	struct fmt_bin b = {.bits = 64};
	b.segments.data = &code;
	b.segments.cnt = 1;
	struct dw_answer answer = {bytes, len, NULL};
	struct err *e = dbg_dw_take(&b, &answer, funcs, lines, f);
	if (!e)
		check(&b, funcs, lines);
	return e;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fmt_bin *b = NULL;
	struct dbg_types types = {0};
	struct dbg_funcs funcs = {.types = &types};
	struct dbg_lines lines = {0};
	struct findings f = {0};
	struct err *e;
	if (len >= 4 && memcmp(bytes, "\177ELF", 4) == 0) {
		e = fmt_open(bytes, len, &b);
		if (!e) {
			e = dbg_read_dwarf(b, true, &funcs, &lines, &f);
			if (e)
				abort();
			check(b, &funcs, &lines);
		}
	} else {
		e = take_answer(bytes, len, &funcs, &lines, &f);
		if (e)
			abort();
	}
	check_types(&types);
	dbg_types_fini(&types);
	fuzz_accepted += funcs.list.cnt > 0;
	fuzz_rejected += f.list.cnt > 0;
	err_free(e);
	VEC_FREE(&funcs.list);
	VEC_FREE(&lines.list);
	VEC_FREE(&lines.files);
	arena_fini(&funcs.arena);
	arena_fini(&lines.arena);
	findings_fini(&f);
	fmt_bin_free(b);
	return 0;
}
