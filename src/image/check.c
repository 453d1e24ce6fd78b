/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image_int.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

/*
 * The whole truth about an image: every checksum, every order and every index. Each fault is one finding; a
 * section reports its first fault only, as what follows is seldom a different one.
 */
struct check {
	const struct image *im;
	struct findings *f;
	uint32_t loc_cnt;
};

static void fault(struct check *c, enum image_sect kind, const char *why, uint64_t at)
{
	finding_add(c->f, FINDING_ERROR, c->im->sects[kind].off, image_sect_infos[kind].name,
		    "%s, element %" PRIu64, why, at);
}

static bool str_is_good(const struct check *c, struct image_str s)
{
	size_t len;
	if (!s.len)
		return s.off == 0;
	image_text(c->im, s, &len);
	return len == s.len;
}

/* A loc in a segment, or LOC_NONE. */
static bool loc_is_good(const struct check *c, uint32_t loc)
{
	return loc == LOC_NONE || space_seg_of_loc(&c->im->space, loc) >= 0;
}

/* Every test is one function over an element; the walk is the same for all of them. */
typedef bool elem_fn(const struct check *c, const void *elem, uint64_t i);

static void each(struct check *c, enum image_sect kind, const char *why, elem_fn *is_good)
{
	const struct image_sect_entry *s = &c->im->sects[kind];
	for (uint64_t i = 0; i < s->cnt; i++) {
		if (!is_good(c, c->im->bytes + s->off + i * s->elem_len, i)) {
			fault(c, kind, why, i);
			return;
		}
	}
}

static bool str_elem(const struct check *c, const void *elem, uint64_t i)
{
	return str_is_good(c, *(const struct image_str *)elem);
}

static bool section_elem(const struct check *c, const void *elem, uint64_t i)
{
	return str_is_good(c, ((const struct image_section *)elem)->name);
}

static bool version_elem(const struct check *c, const void *elem, uint64_t i)
{
	const struct image_version *v = elem;
	return str_is_good(c, v->version) && str_is_good(c, v->library);
}

static bool symbol_elem(const struct check *c, const void *elem, uint64_t i)
{
	const struct image_symbol *s = elem;
	return loc_is_good(c, s->loc) && str_is_good(c, s->name) &&
	       (s->version == UINT32_MAX || s->version < c->im->sects[IMAGE_SECT_VERSIONS].cnt);
}

static bool import_elem(const struct check *c, const void *elem, uint64_t i)
{
	const struct image_import *m = elem;
	return m->symbol < c->im->sects[IMAGE_SECT_SYMBOLS].cnt && loc_is_good(c, m->loc) &&
	       loc_is_good(c, m->got_loc) && loc_is_good(c, m->plt_loc);
}

static bool import_loc_elem(const struct check *c, const void *elem, uint64_t i)
{
	const struct image_import_loc *m = elem;
	return m->import < c->im->sects[IMAGE_SECT_IMPORTS].cnt && (!i || m[-1].loc <= m->loc);
}

static bool name_elem(const struct check *c, const void *elem, uint64_t i)
{
	const struct image_name *n = elem;
	return n->loc != LOC_NONE && n->name.len && str_is_good(c, n->name) && n->kind < IMAGE_NAME_KIND_COUNT &&
	       (!i || n[-1].loc < n->loc ||
		(n[-1].loc == n->loc && image_name_rank(&n[-1]) <= image_name_rank(n)));
}

static bool func_elem(const struct check *c, const void *elem, uint64_t i)
{
	const struct image_func *f = elem;
	uint32_t cnt;
	const struct image_range *r = image_func_ranges(c->im, (uint32_t)i, &cnt);
	uint64_t len = 0;
	for (uint32_t k = 0; k < cnt; k++) {
		if (r[k].func != i)
			return false;
		len += r[k].len;
	}
	return cnt && r[0].loc == f->loc && len == f->size_len && loc_is_good(c, f->thunk_to) &&
	       f->source < IMAGE_SRC_COUNT && f->why_noreturn <= IMAGE_NORETURN_STATED && (!i || f[-1].loc < f->loc);
}

static bool range_elem(const struct check *c, const void *elem, uint64_t i)
{
	const struct image_range *r = elem;
	int seg = space_seg_of_loc(&c->im->space, r->loc);
	if (seg < 0)
		return false;
	const struct space_seg *s = &c->im->segs[seg];
	return r->len && r->len <= s->mem_len - (r->loc - s->loc) && r->func < c->im->sects[IMAGE_SECT_FUNCS].cnt;
}

static bool string_elem(const struct check *c, const void *elem, uint64_t i)
{
	const struct image_string *s = elem;
	return s->encoding < IMAGE_ENC_COUNT && s->loc < c->loc_cnt && s->len <= UINT32_MAX - s->loc &&
	       (!i || s[-1].loc <= s->loc);
}

static bool table_elem(const struct check *c, const void *elem, uint64_t i)
{
	const struct image_table *t = elem;
	uint64_t cnt = c->im->sects[IMAGE_SECT_TARGETS].cnt;
	return t->target_first <= cnt && t->target_cnt <= cnt - t->target_first && loc_is_good(c, t->jump_loc) &&
	       loc_is_good(c, t->table_loc) && loc_is_good(c, t->index_loc) &&
	       (!i || t[-1].jump_loc <= t->jump_loc);
}

static bool target_elem(const struct check *c, const void *elem, uint64_t i)
{
	return loc_is_good(c, *(const uint32_t *)elem);
}

static bool proto_elem(const struct check *c, const void *elem, uint64_t i)
{
	const struct image_proto *p = elem;
	return str_is_good(c, p->text) && str_is_good(c, p->file) && (!i || p[-1].loc <= p->loc);
}

static bool type_elem(const struct check *c, const void *elem, uint64_t i)
{
	const struct image_type *t = elem;
	uint64_t cnt = c->im->sects[IMAGE_SECT_TYPE_SUBS].cnt;
	return str_is_good(c, t->name) && t->kind < IMAGE_T_KIND_COUNT && t->target < c->im->sects[IMAGE_SECT_TYPES].cnt &&
	       t->sub_first <= cnt && t->sub_cnt <= cnt - t->sub_first;
}

static bool type_sub_elem(const struct check *c, const void *elem, uint64_t i)
{
	const struct image_type_sub *s = elem;
	return str_is_good(c, s->name) && s->type < c->im->sects[IMAGE_SECT_TYPES].cnt;
}

static bool var_elem(const struct check *c, const void *elem, uint64_t i)
{
	const struct image_var *v = elem;
	int seg = space_seg_of_loc(&c->im->space, v->loc);
	return seg >= 0 && v->len && v->len <= c->im->segs[seg].mem_len - (v->loc - c->im->segs[seg].loc) &&
	       v->type < c->im->sects[IMAGE_SECT_TYPES].cnt && (!i || (v[-1].loc < v->loc && v->loc - v[-1].loc >= v[-1].len));
}

static bool problem_elem(const struct check *c, const void *elem, uint64_t i)
{
	const struct image_problem *p = elem;
	return str_is_good(c, p->what) && str_is_good(c, p->why) && p->severity <= FINDING_ERROR &&
	       loc_is_good(c, p->loc);
}

static bool run_kind_elem(const struct check *c, const void *elem, uint64_t i)
{
	return *(const uint8_t *)elem < IMAGE_ITEM_KIND_COUNT;
}

static bool rising_elem(const struct check *c, const void *elem, uint64_t i)
{
	const uint32_t *v = elem;
	return !i || v[-1] <= *v;
}

static bool reloc_kind_elem(const struct check *c, const void *elem, uint64_t i)
{
	uint8_t width = *(const uint8_t *)elem & 15;
	uint32_t val = c->im->space.reloc_val[i];
	if (width != 1 && width != 2 && width != 4 && width != 8)
		return false;
	return *(const uint8_t *)elem & SPACE_REL_WIDE ? val < c->im->space.reloc_wide_cnt : loc_is_good(c, val);
}

static void check_records(struct check *c)
{
	static const struct {
		enum image_sect kind;
		elem_fn *is_good;
		const char *why;
	} tests[] = {
		{IMAGE_SECT_SECTIONS, section_elem, "a name outside the pool"},
		{IMAGE_SECT_VERSIONS, version_elem, "a name outside the pool"},
		{IMAGE_SECT_NEEDED, str_elem, "a name outside the pool"},
		{IMAGE_SECT_LINE_FILES, str_elem, "a name outside the pool"},
		{IMAGE_SECT_SYMBOLS, symbol_elem, "an index out of range"},
		{IMAGE_SECT_IMPORTS, import_elem, "an index out of range"},
		{IMAGE_SECT_IMPORT_LOCS, import_loc_elem, "an index out of range or order"},
		{IMAGE_SECT_NAMES, name_elem, "a name out of range or order"},
		{IMAGE_SECT_FUNCS, func_elem, "a function whose ranges are not its own"},
		{IMAGE_SECT_FUNC_RANGES, range_elem, "a range outside its segment"},
		{IMAGE_SECT_STRINGS, string_elem, "a string out of range or order"},
		{IMAGE_SECT_TABLES, table_elem, "targets out of range or order"},
		{IMAGE_SECT_TARGETS, target_elem, "an address that is not mapped"},
		{IMAGE_SECT_PROTOS, proto_elem, "a text out of range or order"},
		{IMAGE_SECT_TYPES, type_elem, "an index out of range"},
		{IMAGE_SECT_TYPE_SUBS, type_sub_elem, "an index out of range"},
		{IMAGE_SECT_VARS, var_elem, "a place or type out of range or order"},
		{IMAGE_SECT_PROBLEMS, problem_elem, "a text out of range"},
		{IMAGE_SECT_RUN_KIND, run_kind_elem, "an unknown kind of item"},
		{IMAGE_SECT_RELOC_LOC, rising_elem, "relocations out of order"},
		{IMAGE_SECT_RELOC_KIND, reloc_kind_elem, "a relocation that means nothing"},
		{IMAGE_SECT_BLOCK_EXTRA, rising_elem, "blocks out of order"},
	};
	for (size_t i = 0; i < ARRAY_LEN(tests); i++)
		each(c, tests[i].kind, tests[i].why, tests[i].is_good);
}

static void check_seq(struct check *c, enum image_sect kind, const struct image_seq *s, bool may_repeat)
{
	for (uint64_t i = 0; i < s->cnt; i++) {
		uint32_t v = image_seq_at(s, i);
		uint32_t before = i ? image_seq_at(s, i - 1) : 0;
		if (v >= c->loc_cnt || (i && (may_repeat ? before > v : before >= v))) {
			fault(c, kind, "an address out of range or order", i);
			return;
		}
	}
}

/* `cnt` numbers that must name each of 0..cnt-1 once. */
static void check_order(struct check *c, enum image_sect kind, const struct image_packed *p)
{
	uint64_t *seen = alloc_array(bits_words(p->cnt), sizeof(*seen));
	for (uint64_t i = 0; i < p->cnt && seen; i++) {
		uint64_t v = image_packed_at(p, i);
		if (v >= p->cnt || bits_get(seen, v)) {
			fault(c, kind, "not an order", i);
			break;
		}
		bits_set(seen, v);
	}
	free(seen);
}

static void check_xrefs(struct check *c)
{
	struct image_xref x = {0}, before = {0};
	for (uint32_t i = 0; i < image_xref_cnt(c->im); i++) {
		bool ok = image_xref_fwd(c->im, i, &x) && loc_is_good(c, x.to) && loc_is_good(c, x.from);
		if (!ok || (i && x.from == before.from &&
			    (x.to < before.to || (x.to == before.to && x.kind <= before.kind)))) {
			fault(c, IMAGE_SECT_XREF_TO, "a reference out of range or order", i);
			break;
		}
		before = x;
	}
	for (uint32_t i = 0; i < image_xref_cnt(c->im); i++) {
		if (!image_xref_rev(c->im, i, &x) || (i && x.to < before.to)) {
			fault(c, IMAGE_SECT_XREF_REV, "a reference out of order", i);
			break;
		}
		before = x;
	}
}

static void check_dir(struct check *c, enum image_sect kind, const struct image_dir *d, uint64_t cnt)
{
	bool ok = d->cnt && d->data[d->cnt - 1] == cnt;
	for (uint64_t i = 1; i < d->cnt && ok; i++)
		ok = d->data[i - 1] <= d->data[i];
	if (!ok)
		fault(c, kind, "a directory that does not fit its table", 0);
}

/* The rank directory, and that the items tile every segment. */
static void check_items(struct check *c)
{
	const struct image *im = c->im;
	uint64_t words = im->sects[IMAGE_SECT_ITEM_BITS].cnt / 64;
	uint32_t sum = 0;
	for (uint64_t i = 0; i < words; i++) {
		if (i % (BITS_RANK_SPAN / 64) == 0 && im->item_rank[i / (BITS_RANK_SPAN / 64)] != sum) {
			fault(c, IMAGE_SECT_ITEM_RANK, "a wrong rank", i / (BITS_RANK_SPAN / 64));
			return;
		}
		sum += (uint32_t)__builtin_popcountll(im->item_bits[i]);
	}
	if (sum != im->item_rank[words / (BITS_RANK_SPAN / 64)]) {
		fault(c, IMAGE_SECT_ITEM_RANK, "a wrong total", words);
		return;
	}
	for (uint32_t i = 0; i < im->space.seg_cnt; i++) {
		const struct space_seg *s = &im->segs[i];
		uint64_t first = (uint64_t)im->seg_block[i] * BITS_RANK_SPAN;
		uint64_t end = (uint64_t)im->seg_block[i + 1] * BITS_RANK_SPAN;
		uint32_t next = i + 1 < im->space.seg_cnt ? im->segs[i + 1].nobits_first : (uint32_t)im->nobits.cnt;
		bool ok = !s->file_len || bits_get(im->item_bits, first);
		ok = ok && bits_next(im->item_bits, first + s->file_len, end) == end;
		ok = ok && (s->mem_len > s->file_len) == (next > s->nobits_first);
		ok = ok && (next == s->nobits_first ||
			    image_seq_at(&im->nobits, s->nobits_first) == s->loc + (uint32_t)s->file_len);
		if (!ok)
			fault(c, IMAGE_SECT_ITEM_BITS, "items that do not fill their segment", i);
	}
}

static void check_sums(struct check *c)
{
	for (unsigned i = 0; i < IMAGE_SECT_COUNT; i++) {
		const struct image_sect_entry *s = &c->im->sects[i];
		if (XXH3_64bits(c->im->bytes + s->off, s->len) != s->xxh3)
			finding_add(c->f, FINDING_ERROR, s->off, image_sect_infos[i].name, "wrong checksum");
	}
}

static void check_meta(struct check *c)
{
	const struct image_meta *m = &c->im->meta;
	struct image_str texts[] = {m->format_name, m->machine_name, m->os_name, m->interp, m->soname, m->build_id};
	bool ok = loc_is_good(c, m->entry_loc) && loc_is_good(c, m->main_loc);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		ok = ok && str_is_good(c, texts[i]);
	if (!ok)
		fault(c, IMAGE_SECT_META, "an index out of range", 0);
}

void image_check(const struct image *im, struct findings *f)
{
	const struct space_seg *last = im->space.seg_cnt ? &im->segs[im->space.seg_cnt - 1] : NULL;
	struct check c = {im, f, last ? last->loc + (uint32_t)last->mem_len : 0};
	check_sums(&c);
	check_meta(&c);
	check_items(&c);
	check_records(&c);
	check_seq(&c, IMAGE_SECT_NOBITS_ITEMS, &im->nobits, false);
	check_seq(&c, IMAGE_SECT_RUN_LOC, &im->run_loc, false);
	check_seq(&c, IMAGE_SECT_XREF_FROM, &im->xref_from, true);
	check_seq(&c, IMAGE_SECT_LINE_LOC, &im->line_loc, true);
	check_order(&c, IMAGE_SECT_NAME_ORDER, &im->name_order);
	check_order(&c, IMAGE_SECT_RANGE_ORDER, &im->range_order);
	check_order(&c, IMAGE_SECT_XREF_REV, &im->xref_rev);
	check_xrefs(&c);
	check_dir(&c, IMAGE_SECT_NAME_DIR, &im->name_dir, im->sects[IMAGE_SECT_NAMES].cnt);
	check_dir(&c, IMAGE_SECT_RUN_DIR, &im->run_dir, im->run_loc.cnt);
	check_dir(&c, IMAGE_SECT_FUNC_DIR, &im->func_dir, im->sects[IMAGE_SECT_FUNCS].cnt);
	check_dir(&c, IMAGE_SECT_RANGE_DIR, &im->range_dir, im->range_order.cnt);
	check_dir(&c, IMAGE_SECT_XREF_FROM_DIR, &im->xref_from_dir, im->xref_from.cnt);
	check_dir(&c, IMAGE_SECT_XREF_TO_DIR, &im->xref_to_dir, im->xref_rev.cnt);
	check_dir(&c, IMAGE_SECT_STRING_DIR, &im->string_dir, im->sects[IMAGE_SECT_STRINGS].cnt);
}
