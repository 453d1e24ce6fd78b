/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo/dbg.h"

#include "base/child.h"
#include "base/cur.h"
#include "debuginfo/dw_child.h"
#include "debuginfo/dw_image.h"

/*
 * The parent's side of reading DWARF: starts the locked child and believes nothing it says. A record is
 * taken only when its addresses lie in code and its text is text.
 */
#define DWARF_WHAT "DWARF"

/* Limits of the child: output beside the file's size, memory likewise, and time. */
#define DWARF_OUT_BASE ((size_t)16 << 20)
#define DWARF_MEM_BASE ((uint64_t)64 << 20)
#define DWARF_MEM_PER_BYTE 8
#define DWARF_CPU_S 60
#define DWARF_WALL_MS 180000

/* Findings taken from the child. */
#define DWARF_NOTES_MAX 32

struct dwarf_reader {
	const struct fmt_bin *b;
	struct cur c;
	struct dbg_funcs *funcs;
	struct dbg_lines *lines; /* null when not wanted */
	struct dw_taken *types;
	struct findings *f;
	VEC(struct fmt_str) files; /* in the arena of `funcs` */
	const struct fmt_segment *seg;
	bool has_code_segments;
	bool has_end;
	uint64_t no_code_cnt;
	uint64_t bad_text_cnt;
	unsigned note_cnt;
};

/* The code segment of `va`, or null. Debug files have the program's segments without their bytes. */
static bool dwarf_is_code(struct dwarf_reader *r, uint64_t va)
{
	if (!r->has_code_segments)
		return true;
	if (!r->seg || va < r->seg->va || va - r->seg->va >= r->seg->mem_len)
		r->seg = fmt_segment_at(r->b, va);
	return r->seg && r->seg->perm & FMT_X;
}

/* A string of the child's, not copied; absent when empty, too long or with control characters. */
static struct fmt_str dwarf_str(struct dwarf_reader *r)
{
	struct fmt_str ret = {0};
	uint64_t len = cur_uleb(&r->c);
	const uint8_t *p = cur_bytes(&r->c, len);
	if (!p || !len)
		return ret;
	for (uint64_t i = 0; i < len; i++) {
		if (len > DW_STRING_MAX || p[i] < ' ' || p[i] == 0x7f) {
			r->bad_text_cnt++;
			return ret;
		}
	}
	return (struct fmt_str){.s = (const char *)p, .len = (uint32_t)len};
}

static bool dwarf_copy(struct arena *a, struct fmt_str *s)
{
	if (s->s)
		s->s = arena_strndup(a, s->s, s->len);
	return s->s || !s->len;
}

static bool dwarf_take_file(struct dwarf_reader *r)
{
	struct fmt_str path = dwarf_str(r);
	return dwarf_copy(&r->funcs->arena, &path) && VEC_PUSH(&r->files, path);
}

static bool dwarf_take_func(struct dwarf_reader *r)
{
	struct dbg_func func = {.va = cur_uleb(&r->c), .len = cur_uleb(&r->c)};
	uint64_t flags = cur_uleb(&r->c), line = cur_uleb(&r->c), file = cur_uleb(&r->c);
	func.name = dwarf_str(r);
	func.prototype = dwarf_str(r);
	if (r->c.failed || !func.name.s)
		return true;
	if (!dwarf_is_code(r, func.va)) {
		r->no_code_cnt++;
		return true;
	}
	if (r->has_code_segments && func.len > r->seg->mem_len - (func.va - r->seg->va))
		func.len = 0;
	func.is_noreturn = flags & DW_FUNC_NORETURN;
	func.is_external = flags & DW_FUNC_EXTERNAL;
	if (file && file <= r->files.cnt && line <= UINT32_MAX) {
		func.file = r->files.data[file - 1];
		func.line = (uint32_t)line;
	}
	return dwarf_copy(&r->funcs->arena, &func.name) && dwarf_copy(&r->funcs->arena, &func.prototype) &&
	       VEC_PUSH(&r->funcs->list, func);
}

static bool dwarf_take_lines(struct dwarf_reader *r)
{
	uint64_t cnt = cur_uleb(&r->c), va = cur_uleb(&r->c);
	for (uint64_t i = 0; i < cnt && !r->c.failed; i++) {
		va += cur_uleb(&r->c);
		uint64_t file = cur_uleb(&r->c), line = cur_uleb(&r->c);
		if (r->c.failed || !r->lines)
			continue;
		bool has_line = line && line <= UINT32_MAX && file && file <= r->files.cnt;
		/* The end of a sequence may be the end of the segment. */
		if (!dwarf_is_code(r, has_line || !va ? va : va - 1)) {
			r->no_code_cnt++;
			continue;
		}
		struct dbg_line row = {.va = va, .file = UINT32_MAX};
		if (has_line) {
			row.file = (uint32_t)(file - 1);
			row.line = (uint32_t)line;
		}
		if (!VEC_PUSH(&r->lines->list, row))
			return false;
	}
	return true;
}

static void dwarf_take_note(struct dwarf_reader *r)
{
	struct fmt_str text = dwarf_str(r);
	if (text.s && r->note_cnt++ < DWARF_NOTES_MAX)
		finding_add(r->f, FINDING_WARNING, UINT64_MAX, DWARF_WHAT, "%.*s", (int)MIN(text.len, 400u), text.s);
}

/* Takes records until the answer or its sense ends; false when out of memory. */
static bool dwarf_take_all(struct dwarf_reader *r)
{
	bool ok = true;
	while (ok && !r->has_end && cur_left(&r->c)) {
		switch (cur_uleb(&r->c)) {
		case DW_REC_FILE:
			ok = dwarf_take_file(r);
			break;
		case DW_REC_FUNC:
			ok = dwarf_take_func(r);
			break;
		case DW_REC_LINES:
			ok = dwarf_take_lines(r);
			break;
		case DW_REC_TYPE:
			ok = dbg_dw_take_type(r->types, &r->c);
			break;
		case DW_REC_VAR:
			ok = dbg_dw_take_var(r->types, &r->c);
			break;
		case DW_REC_NOTE:
			dwarf_take_note(r);
			break;
		case DW_REC_END:
			r->has_end = true;
			break;
		default:
			r->c.failed = true;
		}
	}
	return ok;
}

static int dwarf_text_order(struct fmt_str a, struct fmt_str b)
{
	int d = a.s && b.s ? memcmp(a.s, b.s, MIN(a.len, b.len)) : 0;
	return d ? d : a.len < b.len ? -1 : a.len > b.len;
}

static int dwarf_func_order(const void *a, const void *b)
{
	const struct dbg_func *x = a, *y = b;
	if (x->va != y->va)
		return x->va < y->va ? -1 : 1;
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	int d = dwarf_text_order(x->name, y->name);
	return d ? d : dwarf_text_order(x->prototype, y->prototype);
}

/* Sorts; of two with the same range and name the one with a prototype stays, which sorts last. */
static void dwarf_sort_funcs(struct dbg_funcs *funcs)
{
	struct dbg_func *d = funcs->list.data;
	if (!funcs->list.cnt)
		return;
	qsort(d, funcs->list.cnt, sizeof(*d), dwarf_func_order);
	size_t kept = 0;
	for (size_t i = 1; i < funcs->list.cnt; i++) {
		bool is_same = d[kept].va == d[i].va && d[kept].len == d[i].len &&
			       dwarf_text_order(d[kept].name, d[i].name) == 0;
		kept += !is_same;
		d[kept] = d[i];
	}
	funcs->list.cnt = kept + 1;
}

static bool dwarf_line_is_before(const struct dbg_line *a, const struct dbg_line *b)
{
	/* The end of one sequence goes before the start of the next at the same place. */
	return a->va != b->va ? a->va < b->va : !a->line && b->line;
}

/* Stable merge of [from, mid) and [mid, to) through `spare`. */
static void dwarf_merge(struct dbg_line *rows, struct dbg_line *spare, size_t from, size_t mid, size_t to)
{
	size_t a = from, b = mid, n = from;
	while (a < mid || b < to) {
		bool takes_b = a >= mid || (b < to && dwarf_line_is_before(&rows[b], &rows[a]));
		spare[n++] = takes_b ? rows[b++] : rows[a++];
	}
	memcpy(rows + from, spare + from, (to - from) * sizeof(*rows));
}

/* Merges sorted runs, of which there is about one for each unit, pairwise until one is left. */
static bool dwarf_sort_lines(struct dbg_lines *lines)
{
	struct dbg_line *rows = lines->list.data;
	size_t cnt = lines->list.cnt;
	VEC(size_t) ends = {0};
	bool ok = true;
	for (size_t i = 1; ok && i <= cnt; i++) {
		if (i == cnt || dwarf_line_is_before(&rows[i], &rows[i - 1]))
			ok = VEC_PUSH(&ends, i);
	}
	struct dbg_line *spare = ok && ends.cnt > 1 ? alloc_array(cnt, sizeof(*spare)) : NULL;
	ok = ok && (ends.cnt <= 1 || spare);
	while (ok && ends.cnt > 1) {
		size_t kept = 0;
		for (size_t i = 0; i < ends.cnt; i += 2) {
			if (i + 1 < ends.cnt)
				dwarf_merge(rows, spare, i ? ends.data[i - 1] : 0, ends.data[i], ends.data[i + 1]);
			ends.data[kept++] = ends.data[MIN(i + 1, ends.cnt - 1)];
		}
		ends.cnt = kept;
	}
	free(spare);
	VEC_FREE(&ends);
	/* One row for each address: the last said. */
	size_t kept = 0;
	for (size_t i = 1; ok && i < cnt; i++) {
		kept += rows[i].va != rows[kept].va;
		rows[kept] = rows[i];
	}
	lines->list.cnt = cnt ? kept + 1 : 0;
	return ok;
}

static void dwarf_report(struct dwarf_reader *r, const struct err *why)
{
	if (why)
		finding_add(r->f, FINDING_WARNING, UINT64_MAX, DWARF_WHAT, "%s; what came before is used", why->text);
	else if (!r->has_end)
		finding_add(r->f, FINDING_WARNING, UINT64_MAX, DWARF_WHAT, "its reader's answer makes no sense");
	if (r->no_code_cnt)
		finding_add(r->f, FINDING_NOTE, UINT64_MAX, DWARF_WHAT,
			    "%llu functions or line rows are for no code of the program",
			    (unsigned long long)r->no_code_cnt);
	if (r->bad_text_cnt)
		finding_add(r->f, FINDING_WARNING, UINT64_MAX, DWARF_WHAT, "%llu names hold control characters",
			    (unsigned long long)r->bad_text_cnt);
}

static bool dwarf_take_files(struct dwarf_reader *r)
{
	for (size_t i = 0; i < r->files.cnt; i++) {
		struct fmt_str path = r->files.data[i];
		if (!dwarf_copy(&r->lines->arena, &path) || !VEC_PUSH(&r->lines->files, path))
			return false;
	}
	return true;
}

struct err *dbg_dw_take(const struct fmt_bin *b, const struct dw_answer *answer, struct dbg_funcs *ret,
			struct dbg_lines *ret_lines, struct findings *f)
{
	struct dwarf_reader r = {.b = b, .funcs = ret, .lines = ret_lines, .f = f};
	r.c = cur_make(answer->bytes, answer->len, false);
	for (size_t i = 0; i < b->segments.cnt; i++)
		r.has_code_segments = r.has_code_segments || b->segments.data[i].perm & FMT_X;
	r.types = dbg_dw_taken_new();
	bool ok = r.types && dwarf_take_all(&r);
	if (ok && ret->types)
		ok = dbg_dw_types_finish(r.types, b, ret->types);
	dbg_dw_taken_free(r.types);
	if (ok)
		dwarf_sort_funcs(ret);
	if (ok && ret_lines)
		ok = dwarf_take_files(&r) && dwarf_sort_lines(ret_lines);
	VEC_FREE(&r.files);
	if (!ok)
		return &err_nomem;
	dwarf_report(&r, answer->why);
	return NULL;
}

struct err *dbg_read_dwarf(const struct fmt_bin *b, bool want_lines, struct dbg_funcs *ret, struct dbg_lines *ret_lines,
			   struct findings *f)
{
	if (!dbg_dw_is_there(b))
		return NULL;
	struct dw_job job = {.b = b, .want_lines = want_lines && ret_lines, .want_types = ret->types, .max_out_len = DWARF_OUT_BASE + b->bytes_len};
	struct child_opts opts = {
		.what = "reading DWARF",
		.max_out_len = job.max_out_len,
		.max_mem_len = DWARF_MEM_BASE + DWARF_MEM_PER_BYTE * b->bytes_len,
		.cpu_s = DWARF_CPU_S,
		.wall_ms = DWARF_WALL_MS,
		.prepare = dbg_dw_prepare,
		.run = dbg_dw_run,
		.ctx = &job,
	};
	_cleanup_buf_ struct buf bytes = {0};
	_cleanup_err_ struct err *why = child_run(&opts, &bytes);
	if (why && (why->kind == ERR_ENV || why->kind == ERR_NOMEM || why->kind == ERR_INTERNAL))
		return take_ptr(why);
	if (fmt_section_named(b, ".gnu_debugaltlink"))
		finding_add(f, FINDING_NOTE, UINT64_MAX, DWARF_WHAT,
			    "what it shares with other programs (.gnu_debugaltlink) is not read");
	struct dw_answer answer = {bytes.data, bytes.len, why};
	return dbg_dw_take(b, &answer, ret, job.want_lines ? ret_lines : NULL, f);
}
