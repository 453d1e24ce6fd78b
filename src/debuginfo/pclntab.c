/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo/dbg.h"

#include "debuginfo/dbg_view.h"

/*
 * Go's table of functions, which the runtime needs for stack traces and which therefore survives
 * stripping (runtime/symtab.go, debug/gosym/pclntab.go describe it). A header, then a sorted list of
 * (start, offset of a function record), closed by the end of the last function. The record names
 * offsets of the name and of two delta-coded tables, from address to file and to line, of which the
 * first step is read here.
 *
 * Without section headers the header is looked for in the segments. Its first eight bytes are weak
 * evidence, so a candidate counts only when the whole list is sorted, lies in code, and its first and
 * last record agree with it.
 */

enum pcln_version { PCLN_1_2, PCLN_1_16, PCLN_1_18, PCLN_1_20, PCLN_VERSION_COUNT };

static const uint32_t pcln_magic[PCLN_VERSION_COUNT] = {
	[PCLN_1_2] = 0xfffffffb,
	[PCLN_1_16] = 0xfffffffa,
	[PCLN_1_18] = 0xfffffff0,
	[PCLN_1_20] = 0xfffffff1,
};

/* Headers whose whole list is checked; a file that repeats a plausible one more often is not followed. */
#define PCLN_CANDIDATES_MAX 32

/* Longest name or path taken. */
#define PCLN_TEXT_MAX 8192

struct pcln {
	const struct fmt_bin *b;
	struct dbg_view view;   /* from the header to the end of its segment */
	enum pcln_version version;
	unsigned word_len;      /* bytes of a pointer */
	unsigned entry_len;     /* bytes of each half of an entry */
	uint64_t func_cnt;
	uint64_t text_va;       /* starts count from here; 0 in the versions that hold addresses */
	uint64_t name_off;      /* of the names, from the header; likewise the others */
	uint64_t unit_off;
	uint64_t file_off;
	uint64_t value_off;     /* of the delta-coded tables */
	uint64_t list_off;      /* of the list */
	uint64_t record_off;    /* what the list's record offsets count from */
};

static struct cur pcln_at(const struct pcln *p, uint64_t off)
{
	struct cur c = p->view.cur;
	c.pos = 0;
	c.failed = false;
	cur_seek(&c, off);
	return c;
}

/* Start of function `i`, or with i = func_cnt the end of the last; its record's offset when there is one. */
static bool pcln_entry(const struct pcln *p, uint64_t i, uint64_t *ret_va, uint64_t *ret_record)
{
	struct cur c = pcln_at(p, p->list_off + i * 2 * p->entry_len);
	uint64_t start = cur_word(&c, p->entry_len);
	if (c.failed)
		return false;
	*ret_va = dbg_trim_va(p->b, p->text_va + start);
	if (i == p->func_cnt)
		return true;
	*ret_record = p->record_off + cur_word(&c, p->entry_len);
	return !c.failed;
}

static bool pcln_is_code(const struct fmt_bin *b, uint64_t va, uint64_t len)
{
	const struct fmt_segment *s = fmt_segment_at(b, va);
	return s && s->perm & FMT_X && len <= s->mem_len - (va - s->va);
}

/* Text at `off`, borrowed from the file; absent when it does not end, is empty or unprintable. */
static struct fmt_str pcln_text(const struct pcln *p, uint64_t off)
{
	struct fmt_str ret = {0};
	if (off >= p->view.cur.len)
		return ret;
	const char *s = (const char *)p->view.file + off;
	size_t len = strnlen(s, MIN(p->view.cur.len - (size_t)off, PCLN_TEXT_MAX));
	if (!len || off + len >= p->view.cur.len || len == PCLN_TEXT_MAX)
		return ret;
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)s[i] < ' ' || s[i] == 0x7f)
			return ret;
	}
	return (struct fmt_str){.s = s, .len = (uint32_t)len};
}

/* A record's fields after its start: name, args, deferreturn, pcsp, pcfile, pcln, npcdata, cuOffset. */
struct pcln_record {
	uint64_t start;     /* as in the list, so relative where that is */
	uint32_t name;
	uint32_t file_values;
	uint32_t line_values;
	uint32_t unit;      /* first of the unit's entries in the table of files */
};

static bool pcln_record_read(const struct pcln *p, uint64_t off, struct pcln_record *ret)
{
	struct cur c = pcln_at(p, off);
	ret->start = cur_word(&c, p->version >= PCLN_1_18 ? 4 : p->word_len);
	ret->name = cur_u32(&c);
	cur_skip(&c, 3 * 4);
	ret->file_values = cur_u32(&c);
	ret->line_values = cur_u32(&c);
	cur_skip(&c, 4);
	ret->unit = cur_u32(&c);
	if (p->version == PCLN_1_2)
		ret->unit = 0;
	return !c.failed;
}

/* The first value of a delta-coded table, which begins at -1: zigzag steps (debug/gosym, "step"). */
static bool pcln_first_value(const struct pcln *p, uint32_t off, uint32_t *ret)
{
	if (!off)
		return false;
	struct cur c = pcln_at(p, p->value_off + off);
	uint64_t raw = cur_uleb(&c);
	int64_t step = (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
	if (c.failed || step < 1 || step > INT32_MAX)
		return false;
	*ret = (uint32_t)(step - 1);
	return true;
}

static void pcln_place(const struct pcln *p, const struct pcln_record *rec, struct dbg_func *func)
{
	uint32_t file, line;
	if (!pcln_first_value(p, rec->file_values, &file) || !pcln_first_value(p, rec->line_values, &line))
		return;
	uint64_t off;
	if (p->version == PCLN_1_2) {
		struct cur c = pcln_at(p, p->file_off + 4 * (uint64_t)file);
		off = cur_u32(&c);
		if (c.failed)
			return;
	} else {
		struct cur c = pcln_at(p, p->unit_off + 4 * ((uint64_t)rec->unit + file));
		off = p->file_off + cur_u32(&c);
		if (c.failed)
			return;
	}
	func->file = pcln_text(p, off);
	func->line = func->file.s ? line : 0;
}

/* Reads the offsets after the first eight bytes; false when they do not lie in the segment. */
static bool pcln_offsets(struct pcln *p)
{
	struct cur c = pcln_at(p, 8);
	p->func_cnt = cur_word(&c, p->word_len);
	p->entry_len = p->version >= PCLN_1_18 ? 4 : p->word_len;
	if (p->version == PCLN_1_2) {
		p->list_off = c.pos;
	} else {
		cur_word(&c, p->word_len); /* number of files */
		p->text_va = p->version >= PCLN_1_18 ? cur_word(&c, p->word_len) : 0;
		p->name_off = cur_word(&c, p->word_len);
		p->unit_off = cur_word(&c, p->word_len);
		p->file_off = cur_word(&c, p->word_len);
		p->value_off = cur_word(&c, p->word_len);
		p->list_off = p->record_off = cur_word(&c, p->word_len);
	}
	uint64_t len = p->view.cur.len;
	if (c.failed || !p->func_cnt || p->list_off >= len || p->name_off >= len || p->unit_off >= len ||
	    p->file_off >= len || p->value_off >= len ||
	    p->func_cnt > (len - p->list_off) / (2 * (uint64_t)p->entry_len))
		return false;
	if (p->version == PCLN_1_2) {
		c = pcln_at(p, p->list_off + (2 * p->func_cnt + 1) * p->entry_len);
		p->file_off = cur_u32(&c);
		p->list_off = c.failed ? len : p->list_off;
	}
	return p->list_off < len;
}

/* Where starts count from: newer linkers leave 0 for the loader to find, and then it is .text. */
static void pcln_find_text(struct pcln *p)
{
	if (p->version < PCLN_1_18 || pcln_is_code(p->b, p->text_va, 1))
		return;
	const struct fmt_section *text = fmt_section_named(p->b, ".text");
	for (size_t i = 0; !text && i < p->b->segments.cnt; i++) {
		if (p->b->segments.data[i].perm & FMT_X) {
			p->text_va = p->b->segments.data[i].va;
			return;
		}
	}
	p->text_va = text ? text->va : p->text_va;
}

/* The first eight bytes: magic, two zeros, unit of instruction length, pointer length. */
static bool pcln_magic_read(const struct fmt_bin *b, const uint8_t *at, enum pcln_version *ret)
{
	uint32_t magic = load_u32(at, b->is_be);
	if (magic < pcln_magic[PCLN_1_18] || at[4] || at[5] || (at[6] != 1 && at[6] != 2 && at[6] != 4) ||
	    at[7] != b->bits / 8)
		return false;
	for (int i = 0; i < PCLN_VERSION_COUNT; i++) {
		if (magic == pcln_magic[i]) {
			*ret = (enum pcln_version)i;
			return true;
		}
	}
	return false;
}

/* Whether the list is sorted, lies in code, and its ends agree with their records. */
static bool pcln_is_sound(const struct pcln *p)
{
	uint64_t before = 0, va, record = 0;
	for (uint64_t i = 0; i <= p->func_cnt; i++) {
		if (!pcln_entry(p, i, &va, &record) || va < before)
			return false;
		before = va;
		if (i == p->func_cnt)
			break;
		if (i != 0 && i != p->func_cnt - 1)
			continue;
		struct pcln_record rec;
		if (!pcln_is_code(p->b, va, 1) || !pcln_record_read(p, record, &rec) ||
		    dbg_trim_va(p->b, p->text_va + rec.start) != va || !pcln_text(p, p->name_off + rec.name).s)
			return false;
	}
	return true;
}

/* Opens the table whose header is at `va`; `*ret_found` false when there is none. */
static struct err *pcln_open(const struct fmt_bin *b, uint64_t va, struct pcln *p, bool *ret_found)
{
	*p = (struct pcln){.b = b, .word_len = b->bits / 8};
	*ret_found = false;
	struct err *e = dbg_view_open(b, va, UINT64_MAX, &p->view);
	if (e)
		return e;
	if (p->view.cur.len >= 8 && pcln_magic_read(b, p->view.cur.base, &p->version) && pcln_offsets(p)) {
		pcln_find_text(p);
		*ret_found = pcln_is_sound(p);
	}
	if (!*ret_found)
		dbg_view_close(&p->view);
	return NULL;
}

/* Looks for a header in the file's bytes of one segment. */
static struct err *pcln_search(const struct fmt_bin *b, const struct fmt_segment *s, unsigned *candidates_left,
			       struct pcln *p, bool *ret_found)
{
	if (s->file_off > b->bytes_len || s->file_len > b->bytes_len - s->file_off)
		return NULL;
	const uint8_t *bytes = b->bytes + s->file_off;
	uint64_t step = b->bits / 8;
	enum pcln_version version;
	for (uint64_t i = (step - s->va % step) % step; i + 8 <= s->file_len && !*ret_found; i += step) {
		if (!pcln_magic_read(b, bytes + i, &version))
			continue;
		if (!*candidates_left)
			return NULL;
		--*candidates_left;
		struct err *e = pcln_open(b, s->va + i, p, ret_found);
		if (e)
			return e;
	}
	return NULL;
}

static struct err *pcln_find(const struct fmt_bin *b, struct pcln *p, bool *ret_found, struct findings *f)
{
	struct err *e;
	for (size_t i = 0; i < b->sections.cnt; i++) {
		const struct fmt_section *s = &b->sections.data[i];
		if (s->kind != FMT_SEC_GOPCLNTAB || !s->is_alloc)
			continue;
		e = pcln_open(b, s->va, p, ret_found);
		if (e || *ret_found)
			return e;
		finding_add_va(f, FINDING_WARNING, s->va, "Go function table",
			       "its section does not hold one that can be read");
	}
	unsigned candidates_left = PCLN_CANDIDATES_MAX;
	/* Data first; some linkers put it into the segment of the code. */
	for (size_t i = 0; i < 2 * b->segments.cnt && !*ret_found; i++) {
		const struct fmt_segment *s = &b->segments.data[i % b->segments.cnt];
		bool wants_code = i >= b->segments.cnt, is_code = s->perm & FMT_X;
		if (is_code != wants_code)
			continue;
		e = pcln_search(b, s, &candidates_left, p, ret_found);
		if (e)
			return e;
	}
	if (!candidates_left)
		finding_add(f, FINDING_WARNING, UINT64_MAX, "Go function table",
			    "more than %d places look like one; the others are not looked at", PCLN_CANDIDATES_MAX);
	return NULL;
}

static struct err *pcln_read_all(const struct pcln *p, struct dbg_funcs *ret, struct findings *f)
{
	uint64_t bad_cnt = 0, va, next, record, unused = 0;
	for (uint64_t i = 0; i < p->func_cnt; i++) {
		struct pcln_record rec;
		if (!pcln_entry(p, i, &va, &record) || !pcln_entry(p, i + 1, &next, &unused))
			break;
		struct dbg_func func = {.va = va, .len = next - va};
		if (!func.len)
			continue;
		bool ok = pcln_is_code(p->b, va, func.len) && pcln_record_read(p, record, &rec);
		if (ok)
			func.name = pcln_text(p, p->name_off + rec.name);
		if (!ok || !func.name.s) {
			bad_cnt++;
			continue;
		}
		pcln_place(p, &rec, &func);
		if (!VEC_PUSH(&ret->list, func))
			return &err_nomem;
	}
	if (bad_cnt)
		finding_add_va(f, FINDING_WARNING, p->view.va, "Go function table",
			       "%llu of %llu entries cannot be read", (unsigned long long)bad_cnt,
			       (unsigned long long)p->func_cnt);
	return NULL;
}

struct err *dbg_read_pclntab(const struct fmt_bin *b, struct dbg_funcs *ret, struct findings *f)
{
	struct pcln p;
	bool found = false;
	struct err *e = pcln_find(b, &p, &found, f);
	if (e || !found)
		return e;
	e = pcln_read_all(&p, ret, f);
	dbg_view_close(&p.view);
	return e;
}
