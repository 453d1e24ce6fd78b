/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo/dbg.h"

#include "base/map.h"
#include "debuginfo/eh_cfa.h"
#include "debuginfo/eh_pointer.h"

/*
 * Unwind tables. An .eh_frame is a run of records, each either a CIE (what a group of functions has in
 * common) or an FDE (one range of code, pointing back at its CIE). .eh_frame_hdr holds a pointer to the
 * run and a sorted table of (function, FDE).
 *
 * Where sections are known the run is scanned; where only the header is, the scan goes from its
 * pointer to the terminator. Whenever the scan finds fewer FDEs than the table counts, the table is
 * followed as well, so that either may be broken. A reader reads every record at most twice, and the
 * call-frame instructions it runs are limited by the bytes there are.
 */

/* Longest augmentation string looked at; real ones have up to five letters. */
#define EH_AUGMENTATION_MAX 16

/* Call-frame instructions run for one CIE or up to the first row of one FDE. */
#define EH_STEPS_MAX 512

/* Sections of unwind records; objects with one for each function section have thousands. */
#define EH_RANGES_MAX (1u << 20)

struct eh_cie {
	struct dbg_cfa_rules rules;
	struct dbg_cfa first_row;
	uint64_t personality;
	uint8_t pointer_enc;
	uint8_t lsda_enc;
	bool has_augmentation_len;
	bool is_signal;
	bool is_bad;
};

/* A run of records to scan. */
struct eh_range {
	uint64_t va;
	uint64_t len;
	bool is_section; /* the end is known, so a terminator in the middle does not end it */
};

struct eh_reader {
	const struct fmt_bin *b;
	struct dbg_fdes *ret;
	struct findings *f;
	struct dbg_eh_bases bases;
	VEC(struct eh_cie) cies;
	struct map cie_of_va;
	struct dbg_view view;               /* the file-backed bytes of the segment being read */
	const struct fmt_segment *code_seg; /* the one the last FDE was in */
	uint64_t steps_left;                /* call-frame instructions for the whole file */
	uint64_t bytes_left;                /* bytes of records to scan */
	uint64_t seen_cnt;                  /* FDE records met */
	uint64_t bad_cnt;                   /* FDEs that cannot be read */
	uint64_t no_code_cnt;               /* FDEs whose range is not code */
	uint64_t bad_program_cnt;           /* first rows not understood */
	uint64_t first_bad_va;
};

/* The parsed head of .eh_frame_hdr. */
struct eh_hdr {
	uint64_t va;
	uint64_t frame_va;
	uint64_t count;     /* entries of the table, as far as they are mapped */
	size_t table_pos;   /* in the view */
	unsigned table_enc;
};

static void eh_reader_fini(struct eh_reader *r)
{
	VEC_FREE(&r->cies);
	map_fini(&r->cie_of_va);
	dbg_view_close(&r->view);
}

/* Makes `r->view` the segment that holds `va`; false when no file byte backs it. */
static struct err *eh_enter(struct eh_reader *r, uint64_t va, bool *ret_found)
{
	struct dbg_view *v = &r->view;
	*ret_found = true;
	if (va >= v->va && va - v->va < v->cur.len)
		return NULL;
	dbg_view_close(v);
	*ret_found = false;
	const struct fmt_segment *s = fmt_segment_at(r->b, va);
	if (!s)
		return NULL;
	struct err *e = dbg_view_open(r->b, s->va, s->file_len, v);
	*ret_found = !e && va - v->va < v->cur.len;
	return e;
}

/* The letters of an augmentation string after 'z'. Unknown ones end the reading; their data is skipped
 * by the length that 'z' gives. */
static void eh_cie_augmentation(struct eh_reader *r, struct dbg_view *v, const char *letters, struct eh_cie *cie)
{
	for (; *letters && !v->cur.failed; letters++) {
		switch (*letters) {
		case 'R':
			cie->pointer_enc = cur_u8(&v->cur);
			break;
		case 'L':
			cie->lsda_enc = cur_u8(&v->cur);
			break;
		case 'P': {
			unsigned enc = cur_u8(&v->cur);
			size_t before = v->cur.pos;
			cie->personality = dbg_eh_pointer(r->b, v, enc, &r->bases);
			/* An indirect slot that is not mapped says nothing about the table itself. */
			if (v->cur.failed && enc & DBG_EH_INDIRECT) {
				v->cur.failed = false;
				v->cur.pos = before;
				dbg_eh_number(r->b, &v->cur, enc);
			}
			break;
		}
		case 'S':
			cie->is_signal = true;
			break;
		case 'B': /* AArch64: return addresses signed with the B key */
		case 'G': /* AArch64: tagged stack */
			break;
		default:
			return;
		}
	}
}

/* Reads the CIE whose bytes after the id are [v->cur.pos, v->cur.len). */
static bool eh_cie_read(struct eh_reader *r, struct dbg_view *v, struct eh_cie *cie)
{
	struct cur *c = &v->cur;
	unsigned version = cur_u8(c);
	if (c->failed || (version != 1 && version != 3 && version != 4))
		return false;
	char letters[EH_AUGMENTATION_MAX] = {0};
	for (unsigned i = 0;; i++) {
		char ch = (char)cur_u8(c);
		if (c->failed || i + 1 == sizeof(letters))
			return false;
		letters[i] = ch;
		if (!ch)
			break;
	}
	if (version == 4)
		cur_skip(c, 2); /* address and segment selector sizes */
	bool has_eh_word = letters[0] == 'e' && letters[1] == 'h' && !letters[2];
	if (has_eh_word)
		cur_skip(c, r->b->bits / 8);
	cur_uleb(c); /* code alignment */
	cie->rules = (struct dbg_cfa_rules){.data_align = cur_sleb(c), .address_bytes = r->b->bits / 8};
	if (version == 1)
		cur_u8(c); /* return address register */
	else
		cur_uleb(c);
	cie->pointer_enc = DBG_EH_ABSPTR;
	cie->lsda_enc = DBG_EH_OMIT;
	if (letters[0] == 'z') {
		uint64_t len = cur_uleb(c);
		if (len > cur_left(c))
			return false;
		size_t end = c->pos + (size_t)len;
		cie->has_augmentation_len = true;
		eh_cie_augmentation(r, v, letters + 1, cie);
		if (c->failed || c->pos > end)
			return false;
		c->pos = end;
	} else if (letters[0] && !has_eh_word) {
		return false;
	}
	uint64_t steps = MIN(r->steps_left, EH_STEPS_MAX), before = steps;
	if (!dbg_cfa_run(c, &cie->rules, &cie->first_row, &steps))
		r->bad_program_cnt++;
	r->steps_left -= before - steps;
	return true;
}

/* Length field and id of the record at `c`; false when it is cut. `*ret_end` is where the next one begins;
 * equal to the position after the length for a terminator. */
static bool eh_record_head(struct cur *c, size_t *ret_end)
{
	uint64_t len = cur_u32(c);
	if (len == UINT32_MAX)
		len = cur_u64(c);
	if (c->failed || len > cur_left(c))
		return false;
	*ret_end = c->pos + (size_t)len;
	return true;
}

/* The CIE at `va`, read once. Null error and `*ret` null when it cannot be read. */
static struct err *eh_cie_at(struct eh_reader *r, uint64_t va, const struct eh_cie **ret)
{
	*ret = NULL;
	uint32_t idx;
	if (!map_find(&r->cie_of_va, va, &idx)) {
		struct eh_cie cie = {.is_bad = true};
		struct dbg_view v = r->view;
		size_t end;
		cur_seek(&v.cur, va - v.va);
		if (!v.cur.failed && eh_record_head(&v.cur, &end) && end - v.cur.pos >= 4) {
			v.cur.len = end;
			cie.is_bad = cur_u32(&v.cur) != 0 || !eh_cie_read(r, &v, &cie);
		}
		if (r->cies.cnt >= UINT32_MAX - 1)
			return &err_nomem;
		idx = (uint32_t)r->cies.cnt;
		if (!VEC_PUSH(&r->cies, cie) || !map_put(&r->cie_of_va, va, idx))
			return &err_nomem;
	}
	if (!r->cies.data[idx].is_bad)
		*ret = &r->cies.data[idx];
	return NULL;
}

static bool eh_is_code(struct eh_reader *r, uint64_t va, uint64_t len)
{
	const struct fmt_segment *s = r->code_seg;
	if (!s || va < s->va || va - s->va >= s->mem_len)
		s = fmt_segment_at(r->b, va);
	if (!s || !(s->perm & FMT_X) || !len || len > s->mem_len - (va - s->va))
		return false;
	r->code_seg = s;
	return true;
}

static void eh_note_bad(struct eh_reader *r, uint64_t *cnt, uint64_t va)
{
	if (!r->first_bad_va)
		r->first_bad_va = va;
	++*cnt;
}

/* Reads the FDE whose bytes after the CIE pointer are [v->cur.pos, v->cur.len) and appends it. */
static struct err *eh_fde_read(struct eh_reader *r, struct dbg_view *v, const struct eh_cie *cie, uint64_t at_va)
{
	struct cur *c = &v->cur;
	struct dbg_fde fde = {.personality = cie->personality, .is_signal = cie->is_signal};
	fde.va = dbg_eh_pointer(r->b, v, cie->pointer_enc, &r->bases);
	fde.len = dbg_trim_va(r->b, dbg_eh_number(r->b, c, cie->pointer_enc));
	if (cie->has_augmentation_len) {
		uint64_t len = cur_uleb(c);
		if (len > cur_left(c))
			c->failed = true;
		size_t end = c->pos + (size_t)(c->failed ? 0 : len);
		struct dbg_eh_bases bases = r->bases;
		bases.func_va = fde.va;
		if (!c->failed && len)
			fde.lsda = dbg_eh_pointer(r->b, v, cie->lsda_enc, &bases);
		if (!c->failed)
			c->pos = end;
	}
	if (c->failed) {
		eh_note_bad(r, &r->bad_cnt, at_va);
		return NULL;
	}
	if (!eh_is_code(r, fde.va, fde.len)) {
		eh_note_bad(r, &r->no_code_cnt, at_va);
		return NULL;
	}
	struct dbg_cfa row = cie->first_row;
	uint64_t steps = MIN(r->steps_left, EH_STEPS_MAX), before = steps;
	if (!dbg_cfa_run(c, &cie->rules, &row, &steps))
		eh_note_bad(r, &r->bad_program_cnt, at_va);
	r->steps_left -= before - steps;
	fde.is_fragment = !cie->is_signal && !dbg_cfa_is_fresh(r->b->machine, &row);
	return VEC_PUSH(&r->ret->list, fde) ? NULL : &err_nomem;
}

/* Reads the record at the view's position, which must end before `limit`, and moves behind it. */
enum eh_record { EH_RECORD, EH_TERMINATOR, EH_BROKEN };

static struct err *eh_record_read(struct eh_reader *r, size_t limit, enum eh_record *ret)
{
	struct dbg_view v = r->view;
	struct cur *c = &v.cur;
	size_t start = c->pos, end;
	c->len = limit;
	*ret = EH_BROKEN;
	if (!eh_record_head(c, &end))
		return NULL;
	r->view.cur.pos = end;
	*ret = EH_TERMINATOR;
	if (end == c->pos)
		return NULL;
	c->len = end;
	size_t id_pos = c->pos;
	uint32_t id = cur_u32(c);
	*ret = c->failed ? EH_BROKEN : EH_RECORD;
	if (c->failed || id == 0)
		return NULL;
	r->seen_cnt++;
	const struct eh_cie *cie = NULL;
	if (id <= id_pos) {
		struct err *e = eh_cie_at(r, v.va + id_pos - id, &cie);
		if (e)
			return e;
	}
	if (!cie) {
		eh_note_bad(r, &r->bad_cnt, v.va + start);
		return NULL;
	}
	return eh_fde_read(r, &v, cie, v.va + start);
}

static struct err *eh_scan(struct eh_reader *r, const struct eh_range *range)
{
	bool found;
	struct err *e = eh_enter(r, range->va, &found);
	if (e || !found) {
		if (!e)
			finding_add_va(r->f, FINDING_WARNING, range->va, ".eh_frame", "it is not mapped from the file");
		return e;
	}
	struct cur *c = &r->view.cur;
	c->pos = (size_t)(range->va - r->view.va);
	uint64_t len = MIN(range->len, cur_left(c));
	bool is_cut = len > r->bytes_left;
	len = MIN(len, r->bytes_left);
	size_t start = c->pos, limit = start + (size_t)len;
	while (c->pos < limit) {
		size_t at = c->pos;
		enum eh_record kind;
		e = eh_record_read(r, limit, &kind);
		if (e)
			return e;
		if (kind == EH_BROKEN) {
			r->bytes_left -= is_cut ? limit - at : 0;
			finding_add_va(r->f, FINDING_WARNING, r->view.va + at, ".eh_frame",
				       "the record here runs past the end; the %zu bytes from it on are not read",
				       limit - at);
			break;
		}
		if (kind == EH_TERMINATOR && !range->is_section)
			break;
	}
	r->bytes_left -= c->pos - start;
	if (is_cut && !r->bytes_left)
		finding_add_va(r->f, FINDING_WARNING, range->va, ".eh_frame",
			       "there are more unwind tables than the file has bytes; the rest is not read");
	return NULL;
}

/* Reads the head of .eh_frame_hdr; `count` 0 when it has no table that could be followed. */
static struct err *eh_hdr_read(struct eh_reader *r, struct eh_hdr *hdr)
{
	const struct fmt_range *at = &r->b->eh_frame_hdr;
	bool found;
	*hdr = (struct eh_hdr){.va = at->va};
	if (!at->len)
		return NULL;
	struct err *e = eh_enter(r, at->va, &found);
	if (e)
		return e;
	struct dbg_view *v = &r->view;
	struct cur *c = &v->cur;
	if (found)
		c->pos = (size_t)(at->va - v->va);
	if (!found || cur_u8(c) != 1) {
		finding_add_va(r->f, FINDING_WARNING, at->va, ".eh_frame_hdr",
			       found ? "its version is not 1" : "it is not mapped from the file");
		c->failed = false;
		return NULL;
	}
	struct dbg_eh_bases bases = r->bases;
	bases.data_va = at->va;
	unsigned frame_enc = cur_u8(c), count_enc = cur_u8(c);
	hdr->table_enc = cur_u8(c);
	hdr->frame_va = dbg_eh_pointer(r->b, v, frame_enc, &bases);
	uint64_t count = count_enc == DBG_EH_OMIT ? 0 : dbg_eh_pointer(r->b, v, count_enc, &bases);
	unsigned entry_bytes = 2 * dbg_eh_number_bytes(r->b, hdr->table_enc);
	if (c->failed || hdr->table_enc == DBG_EH_OMIT || !entry_bytes || hdr->table_enc & DBG_EH_INDIRECT) {
		if (c->failed)
			finding_add_va(r->f, FINDING_WARNING, at->va, ".eh_frame_hdr", "its head cannot be read");
		c->failed = false;
		return NULL;
	}
	hdr->table_pos = c->pos;
	hdr->count = MIN(count, cur_left(c) / entry_bytes);
	if (hdr->count < count)
		finding_add_va(r->f, FINDING_WARNING, at->va, ".eh_frame_hdr",
			       "it counts %llu entries and has room for %llu", (unsigned long long)count,
			       (unsigned long long)hdr->count);
	return NULL;
}

/* Reads the FDEs the table of .eh_frame_hdr points at. */
static struct err *eh_follow_table(struct eh_reader *r, const struct eh_hdr *hdr)
{
	bool found;
	struct err *e = eh_enter(r, hdr->va, &found);
	if (e || !found)
		return e;
	/* The records may lie in another segment, so the table keeps a view of its own. */
	_cleanup_view_ struct dbg_view table = {0};
	e = dbg_view_open(r->b, r->view.va, r->view.cur.len, &table);
	if (e)
		return e;
	struct dbg_eh_bases bases = r->bases;
	bases.data_va = hdr->va;
	cur_seek(&table.cur, hdr->table_pos);
	uint64_t outside_cnt = 0;
	const struct fmt_segment *frame_seg = NULL;
	for (uint64_t i = 0; i < hdr->count && !table.cur.failed; i++) {
		dbg_eh_number(r->b, &table.cur, hdr->table_enc);
		uint64_t fde_va = dbg_eh_pointer(r->b, &table, hdr->table_enc, &bases);
		/* All records are in one segment: changing it for each entry would copy it each time. */
		if (!frame_seg)
			frame_seg = fmt_segment_at(r->b, fde_va);
		if (!frame_seg || fde_va < frame_seg->va || fde_va - frame_seg->va >= frame_seg->file_len) {
			outside_cnt++;
			continue;
		}
		e = eh_enter(r, fde_va, &found);
		if (e)
			return e;
		if (!found) {
			outside_cnt += hdr->count - i;
			break;
		}
		enum eh_record kind;
		r->view.cur.pos = (size_t)(fde_va - r->view.va);
		e = eh_record_read(r, r->view.cur.len, &kind);
		if (e)
			return e;
		outside_cnt += kind != EH_RECORD;
	}
	if (outside_cnt)
		finding_add_va(r->f, FINDING_WARNING, hdr->va, ".eh_frame_hdr", "%llu entries point at no record",
			       (unsigned long long)outside_cnt);
	return NULL;
}

static int eh_range_order(const void *a, const void *b)
{
	const struct eh_range *x = a, *y = b;
	if (x->va != y->va)
		return x->va < y->va ? -1 : 1;
	/* Of two that begin together the section is the better informed. */
	return (int)y->is_section - (int)x->is_section;
}

struct eh_ranges {
	VEC(struct eh_range) list;
};

/* Where records may be: sections, what the format reader says, and what .eh_frame_hdr points at; sorted,
 * one for each start. */
static bool eh_collect(const struct fmt_bin *b, const struct eh_hdr *hdr, struct eh_ranges *ret)
{
	for (size_t i = 0; i < b->sections.cnt && ret->list.cnt < EH_RANGES_MAX; i++) {
		const struct fmt_section *s = &b->sections.data[i];
		if (s->kind == FMT_SEC_EH_FRAME && s->is_alloc && s->file_len &&
		    !VEC_PUSH(&ret->list, (struct eh_range){s->va, s->file_len, true}))
			return false;
	}
	uint64_t len = b->eh_frame.len ? b->eh_frame.len : UINT64_MAX;
	if (b->eh_frame.va && !VEC_PUSH(&ret->list, (struct eh_range){b->eh_frame.va, len, false}))
		return false;
	if (hdr->frame_va && !VEC_PUSH(&ret->list, (struct eh_range){hdr->frame_va, UINT64_MAX, false}))
		return false;
	if (!ret->list.cnt)
		return true;
	qsort(ret->list.data, ret->list.cnt, sizeof(*ret->list.data), eh_range_order);
	size_t kept = 1;
	for (size_t i = 1; i < ret->list.cnt; i++) {
		const struct eh_range *last = &ret->list.data[kept - 1], *x = &ret->list.data[i];
		/* One that begins inside another adds nothing that the scan of that one does not see. */
		if (x->va == last->va || (!x->is_section && last->is_section && x->va - last->va < last->len))
			continue;
		ret->list.data[kept++] = *x;
	}
	ret->list.cnt = kept;
	return true;
}

static int eh_fde_order(const void *a, const void *b)
{
	const struct dbg_fde *x = a, *y = b;
	if (x->va != y->va)
		return x->va < y->va ? -1 : 1;
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	if (x->lsda != y->lsda)
		return x->lsda < y->lsda ? -1 : 1;
	if (x->personality != y->personality)
		return x->personality < y->personality ? -1 : 1;
	return (x->is_fragment * 2 + x->is_signal) - (y->is_fragment * 2 + y->is_signal);
}

/* Sorts, and drops entries read twice. */
static void eh_sort(struct dbg_fdes *fdes)
{
	struct dbg_fde *d = fdes->list.data;
	size_t n = fdes->list.cnt, i = 1;
	while (i < n && eh_fde_order(&d[i - 1], &d[i]) < 0)
		i++;
	if (i >= n)
		return;
	qsort(d, n, sizeof(*d), eh_fde_order);
	size_t kept = 1;
	for (i = 1; i < n; i++) {
		if (eh_fde_order(&d[kept - 1], &d[i]) != 0)
			d[kept++] = d[i];
	}
	fdes->list.cnt = kept;
}

static void eh_report(struct eh_reader *r)
{
	if (r->bad_cnt)
		finding_add_va(r->f, FINDING_WARNING, r->first_bad_va, ".eh_frame",
			       "%llu of %llu unwind entries cannot be read", (unsigned long long)r->bad_cnt,
			       (unsigned long long)r->seen_cnt);
	if (r->no_code_cnt)
		finding_add_va(r->f, FINDING_NOTE, r->first_bad_va, ".eh_frame",
			       "%llu of %llu unwind entries describe no code of the program",
			       (unsigned long long)r->no_code_cnt, (unsigned long long)r->seen_cnt);
	if (r->bad_program_cnt)
		finding_add_va(r->f, FINDING_NOTE, r->first_bad_va, ".eh_frame",
			       "%llu call-frame programs have an instruction that is not known or cut",
			       (unsigned long long)r->bad_program_cnt);
	if (!r->steps_left)
		finding_add_va(r->f, FINDING_WARNING, r->first_bad_va, ".eh_frame",
			       "call-frame programs overlap so often that the rest was not run");
}

static struct err *eh_read_all(struct eh_reader *r, struct eh_ranges *ranges)
{
	struct eh_hdr hdr;
	struct err *e = eh_hdr_read(r, &hdr);
	if (e)
		return e;
	if (!eh_collect(r->b, &hdr, ranges))
		return &err_nomem;
	for (size_t i = 0; i < ranges->list.cnt; i++) {
		e = eh_scan(r, &ranges->list.data[i]);
		if (e)
			return e;
	}
	if (hdr.count > r->seen_cnt)
		e = eh_follow_table(r, &hdr);
	return e;
}

struct err *dbg_read_eh_frame(const struct fmt_bin *b, struct dbg_fdes *ret, struct findings *f)
{
	struct eh_reader r = {.b = b, .ret = ret, .f = f};
	struct eh_ranges ranges = {0};
	const struct fmt_section *text = fmt_section_named(b, ".text");
	r.bases = (struct dbg_eh_bases){.text_va = text ? text->va : 0, .data_va = b->got.va};
	r.bytes_left = b->bytes_len;
	r.steps_left = 4 * b->bytes_len + 4096;
	struct err *e = eh_read_all(&r, &ranges);
	if (!e) {
		eh_sort(ret);
		eh_report(&r);
	}
	VEC_FREE(&ranges.list);
	eh_reader_fini(&r);
	return e;
}
