/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image_int.h"

#include "base/cleanup.h"

#include <xxhash.h>

/*
 * Writes the file in one pass over the sections, in the order of enum image_sect, and frees each vector as soon as
 * its section stands, so that the peak is the data plus what is already written. What the builder may leave
 * unsorted is sorted here by total orders; what it must hold to (sorted functions, items that tile the
 * segments) is completed or refused, so that a written image always passes image_check().
 */
const struct image_sect_info image_sect_infos[IMAGE_SECT_COUNT] = {
#define SECT_INFO(sect, sect_form, sect_elem_len) \
	[IMAGE_SECT_##sect] = {.name = #sect, .form = (sect_form), .elem_len = (uint32_t)(sect_elem_len)},
	IMAGE_SECTS(SECT_INFO)};

struct writer {
	struct image_data *d;
	struct buf *out;
	size_t start; /* of the image in `out` */
	struct image_sect_entry sects[IMAGE_SECT_COUNT];
};

static void align_out(struct buf *out, size_t start)
{
	while ((out->len - start) % 8 && !out->failed)
		buf_add_ch(out, '\0');
}

/* Begins a section: the caller appends its bytes to w->out and then calls sect_end(). */
static struct image_sect_entry *sect_begin(struct writer *w, enum image_sect kind, uint64_t cnt, uint8_t width)
{
	align_out(w->out, w->start);
	w->sects[kind] = (struct image_sect_entry){.kind = kind, .form = image_sect_infos[kind].form, .width = width,
						   .elem_len = (uint16_t)image_sect_infos[kind].elem_len,
						   .off = w->out->len - w->start, .cnt = cnt};
	return &w->sects[kind];
}

static void sect_end(struct writer *w, enum image_sect kind)
{
	struct image_sect_entry *s = &w->sects[kind];
	s->len = w->out->len - w->start - s->off;
}

static void put_records(struct writer *w, enum image_sect kind, const void *data, size_t cnt)
{
	sect_begin(w, kind, cnt, 0);
	buf_add(w->out, data, cnt * image_sect_infos[kind].elem_len);
	sect_end(w, kind);
}

#define PUT_VEC(w, kind, v)                                           \
	do {                                                          \
		put_records((w), (kind), (v)->data, (v)->cnt);        \
		VEC_FREE(v);                                          \
	} while (0)

static uint8_t width_of(uint64_t v)
{
	return v ? (uint8_t)(64 - __builtin_clzll(v)) : 0;
}

/* Appends numbers of a fixed width to a buffer. */
struct bit_writer {
	struct buf *out;
	uint64_t word;
	unsigned used;
};

static void bits_put(struct bit_writer *b, uint64_t v, unsigned width)
{
	b->word |= v << b->used;
	if (b->used + width >= 64) {
		buf_add(b->out, &b->word, sizeof(b->word));
		b->word = b->used ? v >> (64 - b->used) : 0;
		b->used = b->used + width - 64;
	} else {
		b->used += width;
	}
}

static void bits_flush(struct bit_writer *b)
{
	if (b->used)
		buf_add(b->out, &b->word, sizeof(b->word));
	*b = (struct bit_writer){.out = b->out};
}

static void slack_word(struct buf *out)
{
	static const uint64_t zero;
	buf_add(out, &zero, sizeof(zero));
}

/* The value at position i of whatever a sequence is made from. */
typedef uint64_t value_fn(const void *ctx, size_t i);

static void put_packed(struct writer *w, enum image_sect kind, size_t cnt, value_fn *value, const void *ctx)
{
	uint64_t all = 0;
	for (size_t i = 0; i < cnt; i++)
		all |= value(ctx, i);
	sect_begin(w, kind, cnt, width_of(all));
	struct bit_writer b = {.out = w->out};
	for (size_t i = 0; i < cnt; i++)
		bits_put(&b, value(ctx, i), w->sects[kind].width);
	bits_flush(&b);
	slack_word(w->out);
	sect_end(w, kind);
}

static void put_seq(struct writer *w, enum image_sect kind, size_t cnt, value_fn *value, const void *ctx)
{
	sect_begin(w, kind, cnt, 0);
	uint32_t word = 0;
	for (size_t i = 0; i < cnt; i += IMAGE_SEQ_BLOCK) {
		struct image_seq_head h = {(uint32_t)value(ctx, i), word};
		size_t last = MIN(i + IMAGE_SEQ_BLOCK, cnt) - 1;
		word += width_of(value(ctx, last) - h.first);
		buf_add(w->out, &h, sizeof(h));
	}
	struct image_seq_head end = {UINT32_MAX, word};
	buf_add(w->out, &end, sizeof(end));
	for (size_t i = 0; i < cnt; i += IMAGE_SEQ_BLOCK) {
		uint64_t first = value(ctx, i);
		size_t last = MIN(i + IMAGE_SEQ_BLOCK, cnt) - 1;
		unsigned width = width_of(value(ctx, last) - first);
		struct bit_writer b = {.out = w->out};
		for (size_t k = i; k < i + IMAGE_SEQ_BLOCK; k++)
			bits_put(&b, k <= last ? value(ctx, k) - first : 0, width);
		bits_flush(&b);
	}
	slack_word(w->out);
	sect_end(w, kind);
}

/* A directory over `cnt` rising keys with about one entry per `per` of them. */
static void put_dir(struct writer *w, enum image_sect kind, size_t cnt, size_t per, value_fn *key, const void *ctx)
{
	uint64_t span = w->d->loc_cnt;
	unsigned shift = 6;
	while (shift < 32 && span >> shift > cnt / per + 1)
		shift++;
	uint64_t buckets = cnt ? (span >> shift) + 1 : 0;
	sect_begin(w, kind, buckets + 1, (uint8_t)shift);
	size_t i = 0;
	for (uint64_t p = 0; p <= buckets; p++) {
		while (i < cnt && (p == buckets || key(ctx, i) < p << shift))
			i++;
		uint32_t n = (uint32_t)i;
		buf_add(w->out, &n, sizeof(n));
	}
	sect_end(w, kind);
}

static uint64_t value_u32(const void *ctx, size_t i)
{
	return ((const uint32_t *)ctx)[i];
}

static uint64_t key_name(const void *ctx, size_t i)
{
	return ((const struct image_name *)ctx)[i].loc;
}

static uint64_t key_func(const void *ctx, size_t i)
{
	return ((const struct image_func *)ctx)[i].loc;
}

static uint64_t key_string(const void *ctx, size_t i)
{
	return ((const struct image_string *)ctx)[i].loc;
}

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_text(const struct image_data *d, struct image_str a, struct image_str b)
{
	int c = memcmp(d->pool.data + a.off, d->pool.data + b.off, MIN(a.len, b.len));
	return c ? c : compare_u64(a.len, b.len);
}

static int compare_names(const void *a, const void *b, void *ctx)
{
	const struct image_name *x = a, *y = b;
	int c = compare_u64(x->loc, y->loc);
	if (!c)
		c = compare_u64(image_name_rank(x), image_name_rank(y));
	if (!c)
		c = compare_u64(x->kind, y->kind);
	if (!c)
		c = compare_text(ctx, x->name, y->name);
	if (!c)
		c = compare_u64(y->is_func, x->is_func);
	return c ? c : compare_u64(x->name.off, y->name.off);
}

struct name_order {
	const struct image_data *d;
	const struct image_name *names;
};

static int compare_name_order(const void *a, const void *b, void *ctx)
{
	const struct name_order *o = ctx;
	const struct image_name *x = &o->names[*(const uint32_t *)a], *y = &o->names[*(const uint32_t *)b];
	int c = compare_text(o->d, x->name, y->name);
	return c ? c : compare_u64(*(const uint32_t *)a, *(const uint32_t *)b);
}

/* Sorts by loc and preference and leaves out a name that the same loc already has. */
static void sort_names(struct image_data *d)
{
	struct image_name *n = d->names.data;
	if (d->names.cnt)
		qsort_r(n, d->names.cnt, sizeof(*n), compare_names, d);
	size_t kept = 0;
	for (size_t i = 0; i < d->names.cnt; i++) {
		bool is_double = false;
		for (size_t k = kept; k && n[k - 1].loc == n[i].loc && kept - k < 64 && !is_double; k--)
			is_double = !compare_text(d, n[k - 1].name, n[i].name);
		if (!is_double)
			n[kept++] = n[i];
	}
	d->names.cnt = kept;
}

static bool put_names(struct writer *w)
{
	struct image_data *d = w->d;
	sort_names(d);
	size_t cnt = d->names.cnt;
	_cleanup_free_ uint32_t *order = alloc_array(cnt, sizeof(*order));
	if (!order)
		return false;
	for (size_t i = 0; i < cnt; i++)
		order[i] = (uint32_t)i;
	struct name_order ctx = {d, d->names.data};
	if (cnt)
		qsort_r(order, cnt, sizeof(*order), compare_name_order, &ctx);
	put_records(w, IMAGE_SECT_NAMES, d->names.data, cnt);
	put_dir(w, IMAGE_SECT_NAME_DIR, cnt, 4, key_name, d->names.data);
	put_packed(w, IMAGE_SECT_NAME_ORDER, cnt, value_u32, order);
	VEC_FREE(&d->names);
	return true;
}

static int compare_import_locs(const void *a, const void *b)
{
	const struct image_import_loc *x = a, *y = b;
	int c = compare_u64(x->loc, y->loc);
	return c ? c : compare_u64(x->import, y->import);
}

static bool put_imports(struct writer *w)
{
	struct image_data *d = w->d;
	VEC(struct image_import_loc) locs = {0};
	bool ok = true;
	for (size_t i = 0; i < d->imports.cnt && ok; i++) {
		const struct image_import *imp = &d->imports.data[i];
		uint32_t at[] = {imp->loc, imp->got_loc, imp->plt_loc};
		for (size_t k = 0; k < ARRAY_LEN(at) && ok; k++)
			ok = at[k] == LOC_NONE || VEC_PUSH(&locs, (struct image_import_loc){at[k], (uint32_t)i});
	}
	if (ok && locs.cnt)
		qsort(locs.data, locs.cnt, sizeof(*locs.data), compare_import_locs);
	PUT_VEC(w, IMAGE_SECT_IMPORTS, &d->imports);
	PUT_VEC(w, IMAGE_SECT_IMPORT_LOCS, &locs);
	return ok;
}

/* Runs that begin with every segment, lie in one, and change kind from one to the next. */
static struct err *tidy_runs(struct image_data *d)
{
	VEC(uint32_t) locs = {0};
	VEC(uint8_t) kinds = {0};
	bool ok = d->run_loc.cnt == d->run_kind.cnt;
	size_t r = 0;
	for (size_t i = 0; i < d->segs.cnt && ok; i++) {
		uint32_t start = d->segs.data[i].loc, end = start + (uint32_t)d->segs.data[i].mem_len;
		while (r < d->run_loc.cnt && d->run_loc.data[r] < start)
			r++;
		if (r == d->run_loc.cnt || d->run_loc.data[r] != start)
			ok = VEC_PUSH(&locs, start) && VEC_PUSH(&kinds, IMAGE_UNKNOWN);
		for (; r < d->run_loc.cnt && d->run_loc.data[r] < end && ok; r++) {
			uint32_t loc = d->run_loc.data[r];
			uint8_t kind = d->run_kind.data[r];
			ok = kind < IMAGE_ITEM_KIND_COUNT && (!r || d->run_loc.data[r - 1] < loc);
			if (ok && (loc == start || kinds.data[kinds.cnt - 1] != kind))
				ok = VEC_PUSH(&locs, loc) && VEC_PUSH(&kinds, kind);
		}
	}
	if (!ok) {
		VEC_FREE(&locs);
		VEC_FREE(&kinds);
		return err_new(ERR_INTERNAL, "the runs of items are out of order");
	}
	VEC_FREE(&d->run_loc);
	VEC_FREE(&d->run_kind);
	d->run_loc.data = locs.data;
	d->run_loc.cnt = locs.cnt;
	d->run_loc.cap = locs.cap;
	d->run_kind.data = kinds.data;
	d->run_kind.cnt = kinds.cnt;
	d->run_kind.cap = kinds.cap;
	return NULL;
}

/* Every part without file bytes begins an item; nothing lies outside. Sets seg.nobits_first. */
static struct err *tidy_nobits(struct image_data *d)
{
	VEC(uint32_t) locs = {0};
	bool ok = true;
	size_t r = 0;
	for (size_t i = 0; i < d->segs.cnt && ok; i++) {
		struct space_seg *seg = &d->segs.data[i];
		uint32_t start = seg->loc + (uint32_t)seg->file_len, end = seg->loc + (uint32_t)seg->mem_len;
		seg->nobits_first = (uint32_t)locs.cnt;
		while (r < d->nobits_items.cnt && d->nobits_items.data[r] < start)
			r++;
		if (start < end && (r == d->nobits_items.cnt || d->nobits_items.data[r] != start))
			ok = VEC_PUSH(&locs, start);
		for (; r < d->nobits_items.cnt && d->nobits_items.data[r] < end && ok; r++) {
			ok = (!r || d->nobits_items.data[r - 1] < d->nobits_items.data[r]) &&
			     VEC_PUSH(&locs, d->nobits_items.data[r]);
		}
	}
	if (!ok) {
		VEC_FREE(&locs);
		return err_new(ERR_INTERNAL, "the items of parts without file bytes are out of order");
	}
	VEC_FREE(&d->nobits_items);
	d->nobits_items.data = locs.data;
	d->nobits_items.cnt = locs.cnt;
	d->nobits_items.cap = locs.cap;
	return NULL;
}

static uint64_t item_word(const struct image_data *d, const struct space_seg *seg, uint64_t i)
{
	uint64_t word = d->item_bits ? d->item_bits[seg->loc / 64 + i] : 0;
	if (i == 0)
		word |= 1;
	if (i == seg->file_len / 64)
		word &= ((uint64_t)1 << (seg->file_len % 64)) - 1;
	return word;
}

/* Bitmaps of all segments one behind the other, each filled up to whole blocks of 512, and their rank. */
static bool put_item_bits(struct writer *w, uint32_t *ret_item_cnt)
{
	struct image_data *d = w->d;
	VEC(uint32_t) rank = {0};
	uint32_t sum = 0;
	uint64_t bits = 0;
	bool ok = true;
	sect_begin(w, IMAGE_SECT_ITEM_BITS, 0, 0);
	for (size_t s = 0; s < d->segs.cnt && ok; s++) {
		const struct space_seg *seg = &d->segs.data[s];
		uint64_t words = bits_rank_blocks(seg->file_len) * (BITS_RANK_SPAN / 64);
		ok = VEC_RESERVE(&rank, words / (BITS_RANK_SPAN / 64));
		for (uint64_t i = 0; i < words && ok; i++) {
			uint64_t word = i < bits_words(seg->file_len) ? item_word(d, seg, i) : 0;
			if (i % (BITS_RANK_SPAN / 64) == 0)
				ok = VEC_PUSH(&rank, sum);
			sum += (uint32_t)__builtin_popcountll(word);
			buf_add(w->out, &word, sizeof(word));
		}
		bits += words * 64;
	}
	w->sects[IMAGE_SECT_ITEM_BITS].cnt = bits;
	sect_end(w, IMAGE_SECT_ITEM_BITS);
	ok = ok && VEC_PUSH(&rank, sum);
	PUT_VEC(w, IMAGE_SECT_ITEM_RANK, &rank);
	*ret_item_cnt = sum;
	return ok;
}

static void set_rows(struct image_data *d)
{
	uint32_t row = 0;
	for (size_t s = 0; s < d->segs.cnt; s++) {
		struct space_seg *seg = &d->segs.data[s];
		size_t nobits_end = s + 1 < d->segs.cnt ? d->segs.data[s + 1].nobits_first : d->nobits_items.cnt;
		seg->row_first = row;
		for (uint64_t i = 0; i < bits_words(seg->file_len); i++)
			row += (uint32_t)__builtin_popcountll(item_word(d, seg, i));
		row += (uint32_t)(nobits_end - seg->nobits_first);
	}
	d->meta.row_cnt = row;
}

/* A bit per file-backed item: a block starts there. Blocks inside an item (a jump into the middle of an
 * instruction) are listed. */
static bool put_blocks(struct writer *w, uint32_t item_cnt)
{
	struct image_data *d = w->d;
	VEC(uint32_t) extra = {0};
	bool ok = true;
	struct bit_writer b = {.out = w->out};
	sect_begin(w, IMAGE_SECT_BLOCK_BITS, item_cnt, 0);
	for (size_t s = 0; s < d->segs.cnt; s++) {
		const struct space_seg *seg = &d->segs.data[s];
		for (uint64_t i = 0; i < bits_words(seg->file_len); i++) {
			uint64_t items = item_word(d, seg, i);
			uint64_t blocks = d->block_bits ? d->block_bits[seg->loc / 64 + i] : 0;
			if (i == seg->file_len / 64)
				blocks &= ((uint64_t)1 << (seg->file_len % 64)) - 1;
			for (uint64_t left = blocks & ~items; left && ok; left &= left - 1) {
				uint64_t loc = seg->loc + i * 64 + (unsigned)__builtin_ctzll(left);
				ok = VEC_PUSH(&extra, (uint32_t)loc);
			}
			for (; items; items &= items - 1)
				bits_put(&b, blocks >> __builtin_ctzll(items) & 1, 1);
		}
	}
	bits_flush(&b);
	sect_end(w, IMAGE_SECT_BLOCK_BITS);
	PUT_VEC(w, IMAGE_SECT_BLOCK_EXTRA, &extra);
	return ok;
}

static bool put_items(struct writer *w)
{
	struct image_data *d = w->d;
	uint32_t item_cnt = 0;
	bool ok = put_item_bits(w, &item_cnt);
	put_seq(w, IMAGE_SECT_NOBITS_ITEMS, d->nobits_items.cnt, value_u32, d->nobits_items.data);
	ok = put_blocks(w, item_cnt) && ok;
	free(d->item_bits);
	free(d->block_bits);
	d->item_bits = d->block_bits = NULL;
	VEC_FREE(&d->nobits_items);
	put_seq(w, IMAGE_SECT_RUN_LOC, d->run_loc.cnt, value_u32, d->run_loc.data);
	put_dir(w, IMAGE_SECT_RUN_DIR, d->run_loc.cnt, 4, value_u32, d->run_loc.data);
	PUT_VEC(w, IMAGE_SECT_RUN_KIND, &d->run_kind);
	VEC_FREE(&d->run_loc);
	return ok;
}

static struct err *check_funcs(const struct image_data *d)
{
	uint64_t next = 0;
	for (size_t i = 0; i < d->funcs.cnt; i++) {
		const struct image_func *f = &d->funcs.data[i];
		if (i && d->funcs.data[i - 1].loc >= f->loc)
			return err_new(ERR_INTERNAL, "function %zu is out of order", i);
		if (f->range_first != next || !f->range_cnt || f->range_first + f->range_cnt > d->func_ranges.cnt ||
		    d->func_ranges.data[next].loc != f->loc)
			return err_new(ERR_INTERNAL, "the ranges of function %zu are not its own", i);
		for (uint32_t k = 0; k < f->range_cnt; k++) {
			if (d->func_ranges.data[next++].func != i)
				return err_new(ERR_INTERNAL, "a range of function %zu names another", i);
		}
	}
	if (next != d->func_ranges.cnt)
		return err_new(ERR_INTERNAL, "%zu ranges belong to no function", d->func_ranges.cnt - (size_t)next);
	return NULL;
}

static int compare_range_order(const void *a, const void *b, void *ctx)
{
	const struct image_range *r = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int c = compare_u64(r[x].loc, r[y].loc);
	return c ? c : compare_u64(x, y);
}

struct ordered_ranges {
	const struct image_range *ranges;
	const uint32_t *order;
};

static uint64_t key_range(const void *ctx, size_t i)
{
	const struct ordered_ranges *o = ctx;
	return o->ranges[o->order[i]].loc;
}

static bool put_funcs(struct writer *w)
{
	struct image_data *d = w->d;
	size_t cnt = d->func_ranges.cnt;
	_cleanup_free_ uint32_t *order = alloc_array(cnt, sizeof(*order));
	if (!order)
		return false;
	for (size_t i = 0; i < cnt; i++)
		order[i] = (uint32_t)i;
	if (cnt)
		qsort_r(order, cnt, sizeof(*order), compare_range_order, d->func_ranges.data);
	struct ordered_ranges ctx = {d->func_ranges.data, order};
	put_dir(w, IMAGE_SECT_FUNC_DIR, d->funcs.cnt, 4, key_func, d->funcs.data);
	put_dir(w, IMAGE_SECT_RANGE_DIR, cnt, 4, key_range, &ctx);
	put_packed(w, IMAGE_SECT_RANGE_ORDER, cnt, value_u32, order);
	PUT_VEC(w, IMAGE_SECT_FUNCS, &d->funcs);
	PUT_VEC(w, IMAGE_SECT_FUNC_RANGES, &d->func_ranges);
	return true;
}

static uint64_t value_from(const void *ctx, size_t i)
{
	return ((const struct image_xref *)ctx)[i].from;
}

static uint64_t value_to_kind(const void *ctx, size_t i)
{
	const struct image_xref *x = (const struct image_xref *)ctx + i;
	return (uint64_t)x->to << 3 | (x->kind & 7);
}

struct reverse_xrefs {
	const struct image_xref *xrefs;
	const uint32_t *order;
};

static uint64_t key_to(const void *ctx, size_t i)
{
	const struct reverse_xrefs *r = ctx;
	return r->xrefs[r->order[i]].to;
}

static bool put_xrefs(struct writer *w)
{
	struct image_data *d = w->d;
	if (!image_sort_xrefs(d->xrefs.data, &d->xrefs.cnt))
		return false;
	size_t cnt = d->xrefs.cnt;
	put_seq(w, IMAGE_SECT_XREF_FROM, cnt, value_from, d->xrefs.data);
	put_dir(w, IMAGE_SECT_XREF_FROM_DIR, cnt, 32, value_from, d->xrefs.data);
	put_packed(w, IMAGE_SECT_XREF_TO, cnt, value_to_kind, d->xrefs.data);
	_cleanup_free_ uint32_t *order = alloc_array(cnt, sizeof(*order));
	if (!order || !image_sort_reverse(d->xrefs.data, cnt, order))
		return false;
	struct reverse_xrefs ctx = {d->xrefs.data, order};
	put_dir(w, IMAGE_SECT_XREF_TO_DIR, cnt, 16, key_to, &ctx);
	put_packed(w, IMAGE_SECT_XREF_REV, cnt, value_u32, order);
	VEC_FREE(&d->xrefs);
	return true;
}

static int compare_strings(const void *a, const void *b)
{
	const struct image_string *x = a, *y = b;
	int c = compare_u64(x->loc, y->loc);
	if (!c)
		c = compare_u64(x->len, y->len);
	return c ? c : compare_u64(x->encoding, y->encoding);
}

static int compare_tables(const void *a, const void *b)
{
	const struct image_table *x = a, *y = b;
	int c = compare_u64(x->jump_loc, y->jump_loc);
	return c ? c : compare_u64(x->target_first, y->target_first);
}

static int compare_protos(const void *a, const void *b)
{
	const struct image_proto *x = a, *y = b;
	int c = compare_u64(x->loc, y->loc);
	return c ? c : compare_u64(x->text.off, y->text.off);
}

static int compare_lines(const void *a, const void *b)
{
	const struct image_line *x = a, *y = b;
	int c = compare_u64(x->loc, y->loc);
	if (!c)
		c = compare_u64(x->file, y->file);
	return c ? c : compare_u64(x->line, y->line);
}

#define SORT_VEC(v, compare)                                                        \
	do {                                                                        \
		if ((v)->cnt)                                                       \
			qsort((v)->data, (v)->cnt, sizeof(*(v)->data), (compare)); \
	} while (0)

static uint64_t value_line_loc(const void *ctx, size_t i)
{
	return ((const struct image_line *)ctx)[i].loc;
}

static uint64_t value_line_file(const void *ctx, size_t i)
{
	return ((const struct image_line *)ctx)[i].file;
}

static uint64_t value_line_num(const void *ctx, size_t i)
{
	return ((const struct image_line *)ctx)[i].line;
}

static void put_rest(struct writer *w)
{
	struct image_data *d = w->d;
	SORT_VEC(&d->strings, compare_strings);
	put_dir(w, IMAGE_SECT_STRING_DIR, d->strings.cnt, 4, key_string, d->strings.data);
	PUT_VEC(w, IMAGE_SECT_STRINGS, &d->strings);
	SORT_VEC(&d->tables, compare_tables);
	PUT_VEC(w, IMAGE_SECT_TABLES, &d->tables);
	PUT_VEC(w, IMAGE_SECT_TARGETS, &d->targets);
	SORT_VEC(&d->protos, compare_protos);
	PUT_VEC(w, IMAGE_SECT_PROTOS, &d->protos);
	PUT_VEC(w, IMAGE_SECT_TYPES, &d->types);
	PUT_VEC(w, IMAGE_SECT_TYPE_SUBS, &d->type_subs);
	PUT_VEC(w, IMAGE_SECT_VARS, &d->vars);
	SORT_VEC(&d->lines, compare_lines);
	put_seq(w, IMAGE_SECT_LINE_LOC, d->lines.cnt, value_line_loc, d->lines.data);
	put_packed(w, IMAGE_SECT_LINE_FILE, d->lines.cnt, value_line_file, d->lines.data);
	put_packed(w, IMAGE_SECT_LINE_NUM, d->lines.cnt, value_line_num, d->lines.data);
	VEC_FREE(&d->lines);
	PUT_VEC(w, IMAGE_SECT_LINE_FILES, &d->line_files);
	PUT_VEC(w, IMAGE_SECT_PROBLEMS, &d->problems);
}

static void put_space(struct writer *w)
{
	struct image_data *d = w->d;
	put_records(w, IMAGE_SECT_META, &d->meta, 1);
	put_records(w, IMAGE_SECT_SEGS, d->segs.data, d->segs.cnt);
	PUT_VEC(w, IMAGE_SECT_SECTIONS, &d->sections);
	put_records(w, IMAGE_SECT_POOL, d->pool.data, d->pool.cnt);
	put_records(w, IMAGE_SECT_RELOC_LOC, d->reloc_loc.data, d->reloc_loc.cnt);
	put_records(w, IMAGE_SECT_RELOC_VAL, d->reloc_val.data, d->reloc_val.cnt);
	put_records(w, IMAGE_SECT_RELOC_KIND, d->reloc_kind.data, d->reloc_kind.cnt);
	put_records(w, IMAGE_SECT_RELOC_WIDE, d->reloc_wide.data, d->reloc_wide.cnt);
	PUT_VEC(w, IMAGE_SECT_SYMBOLS, &d->symbols);
	PUT_VEC(w, IMAGE_SECT_VERSIONS, &d->versions);
	PUT_VEC(w, IMAGE_SECT_NEEDED, &d->needed);
}

struct image_start {
	struct image_header header;
	struct image_sect_entry sects[IMAGE_SECT_COUNT];
};

/* Checksums, table and header into the room left for them. */
static void put_start(struct writer *w)
{
	struct buf *out = w->out;
	struct image_start s = {.header = {.magic = IMAGE_MAGIC,
					   .format_version = IMAGE_FORMAT_VERSION,
					   .engine_version = IMAGE_ENGINE_VERSION,
					   .file_len = out->len - w->start,
					   .target_len = w->d->meta.target_len,
					   .sect_cnt = IMAGE_SECT_COUNT}};
	memcpy(s.header.target_sha256, w->d->meta.target_sha256, sizeof(s.header.target_sha256));
	for (unsigned i = 0; i < IMAGE_SECT_COUNT; i++) {
		s.sects[i] = w->sects[i];
		s.sects[i].xxh3 = XXH3_64bits(out->data + w->start + s.sects[i].off, s.sects[i].len);
	}
	s.header.xxh3 = XXH3_64bits(&s, sizeof(s));
	memcpy(out->data + w->start, &s, sizeof(s));
}

struct err *image_serialize(struct image_data *d, struct buf *ret)
{
	struct writer w = {.d = d, .out = ret, .start = ret->len};
	if (d->xrefs.cnt >= UINT32_MAX || d->names.cnt >= UINT32_MAX || d->strings.cnt >= UINT32_MAX)
		return err_new(ERR_BUDGET, "the analysis has more than 2^32 facts of one kind");
	struct err *e = tidy_runs(d);
	if (!e)
		e = tidy_nobits(d);
	if (!e)
		e = check_funcs(d);
	if (e)
		return e;
	set_rows(d);
	static const struct image_start room;
	buf_add(ret, &room, sizeof(room));
	put_space(&w);
	if (!put_xrefs(&w) || !put_names(&w) || !put_imports(&w) || !put_items(&w) || !put_funcs(&w))
		return &err_nomem;
	put_rest(&w);
	align_out(ret, w.start);
	if (ret->failed)
		return &err_nomem;
	put_start(&w);
	return NULL;
}
