/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image.h"
#include "lib/image_sample.h"

#include "base/bits.h"
#include "base/file.h"
#include "format/fmt.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

/*
 * What goes into an image comes out of every accessor. The model is the builder's data, copied before writing
 * frees it, and naive loops over it.
 */
struct item { uint32_t loc, end; uint8_t kind; };

struct model {
	struct image_data d; /* copies of the vectors */
	VEC(struct item) items;
	VEC(struct image_xref) xrefs; /* sorted, without repeats */
};

#define COPY_VEC(to, from)                                                            \
	do {                                                                          \
		assert_true(VEC_RESERVE(&(to), (from).cnt + 1));                      \
		if ((from).cnt)                                                       \
			memcpy((to).data, (from).data, (from).cnt * sizeof(*(from).data)); \
		(to).cnt = (from).cnt;                                                \
	} while (0)

static void copy_data(struct image_data *to, const struct image_data *from)
{
	*to = (struct image_data){.meta = from->meta, .loc_cnt = from->loc_cnt};
	COPY_VEC(to->segs, from->segs);
	COPY_VEC(to->sections, from->sections);
	COPY_VEC(to->pool, from->pool);
	COPY_VEC(to->reloc_loc, from->reloc_loc);
	COPY_VEC(to->reloc_val, from->reloc_val);
	COPY_VEC(to->reloc_kind, from->reloc_kind);
	COPY_VEC(to->reloc_wide, from->reloc_wide);
	COPY_VEC(to->symbols, from->symbols);
	COPY_VEC(to->versions, from->versions);
	COPY_VEC(to->imports, from->imports);
	COPY_VEC(to->needed, from->needed);
	COPY_VEC(to->names, from->names);
	COPY_VEC(to->nobits_items, from->nobits_items);
	COPY_VEC(to->run_loc, from->run_loc);
	COPY_VEC(to->run_kind, from->run_kind);
	COPY_VEC(to->funcs, from->funcs);
	COPY_VEC(to->func_ranges, from->func_ranges);
	COPY_VEC(to->xrefs, from->xrefs);
	COPY_VEC(to->strings, from->strings);
	COPY_VEC(to->tables, from->tables);
	COPY_VEC(to->targets, from->targets);
	COPY_VEC(to->protos, from->protos);
	COPY_VEC(to->lines, from->lines);
	COPY_VEC(to->line_files, from->line_files);
	COPY_VEC(to->problems, from->problems);
	size_t words = bits_words(from->loc_cnt) + 1;
	to->item_bits = malloc(words * 8);
	to->block_bits = malloc(words * 8);
	assert_true(to->item_bits && to->block_bits);
	memcpy(to->item_bits, from->item_bits, words * 8);
	memcpy(to->block_bits, from->block_bits, words * 8);
}

static int by_from(const void *a, const void *b)
{
	const struct image_xref *x = a, *y = b;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return (int)x->kind - (int)y->kind;
}

static int by_to(const void *a, const void *b)
{
	const struct image_xref *x = a, *y = b;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return by_from(a, b);
}

static bool starts_item(const struct image_data *d, uint32_t loc)
{
	if (bits_get(d->item_bits, loc))
		return true;
	for (size_t i = 0; i < d->nobits_items.cnt; i++) {
		if (d->nobits_items.data[i] == loc)
			return true;
	}
	return false;
}

static void model_make(struct model *m, const struct image_data *d)
{
	*m = (struct model){0};
	copy_data(&m->d, d);
	for (size_t s = 0; s < d->segs.cnt; s++) {
		uint32_t first = d->segs.data[s].loc, end = first + (uint32_t)d->segs.data[s].mem_len;
		uint8_t kind = IMAGE_UNKNOWN;
		for (uint32_t loc = first; loc < end; loc++) {
			for (size_t r = 0; r < d->run_loc.cnt; r++) {
				if (d->run_loc.data[r] == loc)
					kind = d->run_kind.data[r];
			}
			if (starts_item(d, loc))
				assert_true(VEC_PUSH(&m->items, (struct item){loc, 0, kind}));
			m->items.data[m->items.cnt - 1].end = loc + 1;
		}
	}
	COPY_VEC(m->xrefs, d->xrefs);
	if (m->xrefs.cnt)
		qsort(m->xrefs.data, m->xrefs.cnt, sizeof(*m->xrefs.data), by_from);
	size_t kept = 0;
	for (size_t i = 0; i < m->xrefs.cnt; i++) {
		if (!i || by_from(&m->xrefs.data[i - 1], &m->xrefs.data[i]))
			m->xrefs.data[kept++] = m->xrefs.data[i];
	}
	m->xrefs.cnt = kept;
}

static void model_fini(struct model *m)
{
	image_data_fini(&m->d);
	VEC_FREE(&m->items);
	VEC_FREE(&m->xrefs);
}

static void check_rows(const struct image *im, const struct model *m)
{
	assert_int_equal(image_row_cnt(im), m->items.cnt);
	assert_int_equal(image_loc_of_row(im, (uint32_t)m->items.cnt), LOC_NONE);
	struct image_items it = {0};
	assert_true(image_items_from(im, m->items.data[0].loc, &it));
	for (uint32_t row = 0; row < m->items.cnt; row++) {
		const struct item *want = &m->items.data[row];
		assert_int_equal(image_loc_of_row(im, row), want->loc);
		assert_int_equal(it.loc, want->loc);
		assert_int_equal(it.len, want->end - want->loc);
		assert_int_equal(it.kind, want->kind);
		assert_int_equal(it.row, row);
		for (uint32_t loc = want->loc; loc < want->end; loc += 1 + (want->end - loc) / 3) {
			uint32_t start, len;
			enum image_item_kind kind;
			assert_int_equal(image_row_of(im, loc), row);
			assert_true(image_item_at(im, loc, &start, &len, &kind));
			assert_int_equal(start, want->loc);
			assert_int_equal(len, want->end - want->loc);
			assert_int_equal(kind, want->kind);
		}
		assert_int_equal(image_items_next(&it), row + 1 < m->items.cnt);
	}
	for (uint32_t row = (uint32_t)m->items.cnt - 1;; row--) {
		const struct item *want = &m->items.data[row];
		assert_int_equal(it.loc, want->loc);
		assert_int_equal(it.len, want->end - want->loc);
		assert_int_equal(it.kind, want->kind);
		assert_int_equal(it.row, row);
		assert_int_equal(image_items_prev(&it), row > 0);
		if (!row)
			break;
	}
}

static bool model_block(const struct image_data *d, uint32_t loc)
{
	return loc < d->loc_cnt && bits_get(d->block_bits, loc);
}

static void check_blocks(const struct image *im, const struct model *m)
{
	uint32_t next = m->d.loc_cnt;
	for (uint32_t loc = m->d.loc_cnt; loc-- > 0;) {
		bool is_block = model_block(&m->d, loc);
		assert_int_equal(image_block_starts(im, loc), is_block);
		if (is_block)
			next = loc;
		assert_int_equal(image_block_next(im, loc, m->d.loc_cnt), next);
		uint32_t to = MIN(loc + 37, m->d.loc_cnt);
		assert_int_equal(image_block_next(im, loc, to), MIN(next, to));
	}
}

static void check_slice(const struct image *im, const struct model *m, uint32_t first, uint32_t last)
{
	uint32_t from_first = 0, to_first = 0, from_cnt = 0, to_cnt = 0, pos;
	for (size_t i = 0; i < m->xrefs.cnt; i++) {
		from_first += m->xrefs.data[i].from < first;
		to_first += m->xrefs.data[i].to < first;
		from_cnt += m->xrefs.data[i].from >= first && m->xrefs.data[i].from <= last;
		to_cnt += m->xrefs.data[i].to >= first && m->xrefs.data[i].to <= last;
	}
	assert_int_equal(image_xrefs_from(im, first, last, &pos), from_cnt);
	assert_int_equal(pos, from_first);
	assert_int_equal(image_xrefs_to(im, first, last, &pos), to_cnt);
	assert_int_equal(pos, to_first);
}

static void check_xrefs(const struct image *im, struct model *m, struct image_sample *s)
{
	struct image_xref x;
	assert_int_equal(image_xref_cnt(im), m->xrefs.cnt);
	for (uint32_t i = 0; i < m->xrefs.cnt; i++) {
		assert_true(image_xref_fwd(im, i, &x));
		assert_int_equal(by_from(&x, &m->xrefs.data[i]), 0);
	}
	assert_false(image_xref_fwd(im, (uint32_t)m->xrefs.cnt, &x));
	for (unsigned i = 0; i < 40; i++) {
		uint32_t first = image_sample_below(s, m->d.loc_cnt + 100u);
		check_slice(im, m, first, first);
		check_slice(im, m, first, first + image_sample_below(s, 500));
		if (m->xrefs.cnt) {
			const struct image_xref *y = &m->xrefs.data[image_sample_below(s, m->xrefs.cnt)];
			check_slice(im, m, y->from, y->from);
			check_slice(im, m, y->to, y->to);
		}
	}
	check_slice(im, m, 0, UINT32_MAX);
	if (m->xrefs.cnt)
		qsort(m->xrefs.data, m->xrefs.cnt, sizeof(x), by_to);
	for (uint32_t i = 0; i < m->xrefs.cnt; i++) {
		assert_true(image_xref_rev(im, i, &x));
		assert_int_equal(by_to(&x, &m->xrefs.data[i]), 0);
	}
	assert_false(image_xref_rev(im, (uint32_t)m->xrefs.cnt, &x));
}

static void check_funcs(const struct image *im, const struct model *m)
{
	uint32_t cnt;
	const struct image_func *f = image_funcs(im, &cnt);
	assert_int_equal(cnt, m->d.funcs.cnt);
	if (cnt)
		assert_memory_equal(f, m->d.funcs.data, cnt * sizeof(*f));
	for (uint32_t loc = 0; loc < m->d.loc_cnt; loc += 1 + loc % 3) {
		uint32_t owner = UINT32_MAX, start = UINT32_MAX;
		for (size_t i = 0; i < m->d.func_ranges.cnt; i++) {
			const struct image_range *r = &m->d.func_ranges.data[i];
			if (loc >= r->loc && loc - r->loc < r->len)
				owner = r->func;
		}
		for (size_t i = 0; i < m->d.funcs.cnt; i++) {
			if (m->d.funcs.data[i].loc == loc)
				start = (uint32_t)i;
		}
		assert_int_equal(image_func_at(im, loc), owner);
		assert_int_equal(image_func_starting(im, loc), start);
	}
	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t range_cnt;
		const struct image_range *r = image_func_ranges(im, i, &range_cnt);
		assert_int_equal(range_cnt, f[i].range_cnt);
		assert_memory_equal(r, m->d.func_ranges.data + f[i].range_first, range_cnt * sizeof(*r));
	}
}

static int compare_str(const struct model *m, struct image_str s, const char *text, size_t len)
{
	if (s.len != len)
		return s.len < len ? -1 : 1;
	return memcmp(m->d.pool.data + s.off, text, len);
}

static void check_names(const struct image *im, const struct model *m)
{
	uint32_t cnt, first;
	const struct image_name *names = image_names(im, &cnt);
	size_t distinct = 0;
	for (size_t i = 0; i < m->d.names.cnt; i++) {
		const struct image_name *n = &m->d.names.data[i];
		const struct image_name *best = n;
		size_t text_len;
		bool is_repeat = false;
		uint32_t same_text = 0;
		for (size_t k = 0; k < m->d.names.cnt; k++) {
			const struct image_name *o = &m->d.names.data[k];
			bool is_same = !compare_str(m, o->name, m->d.pool.data + n->name.off, n->name.len);
			if (o->loc == n->loc && image_name_rank(o) < image_name_rank(best))
				best = o;
			is_repeat |= k < i && o->loc == n->loc && is_same;
		}
		distinct += !is_repeat;
		const struct image_name *shown = image_name_at(im, n->loc);
		assert_non_null(shown);
		assert_int_equal(image_name_rank(shown), image_name_rank(best));
		assert_ptr_equal(image_name_before(im, n->loc), shown);
		const char *want = m->d.pool.data + n->name.off;
		uint32_t found = image_name_find(im, want, n->name.len, &first);
		for (uint32_t k = 0; k < cnt; k++)
			same_text += !compare_str(m, names[k].name, want, n->name.len);
		assert_int_equal(found, same_text);
		assert_true(found > 0);
		for (uint32_t k = 0; k < found; k++) {
			const struct image_name *hit = image_name_by_order(im, first + k);
			assert_string_equal(image_text(im, hit->name, &text_len), want);
			assert_int_equal(text_len, n->name.len);
			assert_true(!k || image_name_by_order(im, first + k - 1)->loc <= hit->loc);
		}
	}
	assert_int_equal(cnt, distinct);
	assert_int_equal(image_name_find(im, "no such name", 12, &first), 0);
	assert_null(image_name_by_order(im, cnt));
}

static void check_tables(const struct image *im, const struct model *m)
{
	uint32_t cnt;
	image_tables(im, &cnt);
	assert_int_equal(cnt, m->d.tables.cnt);
	for (size_t i = 0; i < m->d.tables.cnt; i++) {
		const struct image_table *want = &m->d.tables.data[i];
		const struct image_table *got = image_table_at(im, want->jump_loc);
		assert_non_null(got);
		assert_int_equal(got->jump_loc, want->jump_loc);
		for (uint32_t k = 0; k < got->target_cnt; k++)
			assert_int_equal(image_table_target(im, got, k), m->d.targets.data[got->target_first + k]);
		assert_int_equal(image_table_target(im, got, got->target_cnt), LOC_NONE);
	}
}

static void check_texts(const struct image *im, const struct model *m)
{
	uint32_t cnt;
	const struct image_string *s = image_strings(im, &cnt);
	assert_int_equal(cnt, m->d.strings.cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		assert_memory_equal(&s[i], &m->d.strings.data[i], sizeof(*s));
		assert_ptr_equal(image_string_at(im, s[i].loc), &s[i]);
		assert_ptr_equal(image_string_at(im, s[i].loc + s[i].len - 1), &s[i]);
		assert_null(image_string_at(im, s[i].loc + s[i].len));
	}
	for (size_t i = 0; i < m->d.protos.cnt; i++)
		assert_int_equal(image_proto_at(im, m->d.protos.data[i].loc)->loc, m->d.protos.data[i].loc);
	for (size_t i = 0; i < m->d.lines.cnt; i++) {
		const struct image_line *want = &m->d.lines.data[i];
		struct image_str file;
		uint32_t line;
		bool is_found = false;
		assert_true(image_line_at(im, want->loc, &file, &line));
		for (size_t k = 0; k < m->d.lines.cnt; k++) {
			const struct image_line *o = &m->d.lines.data[k];
			is_found |= o->loc == want->loc && o->line == line &&
				    m->d.line_files.data[o->file].off == file.off;
		}
		assert_true(is_found);
	}
	const struct image_symbol *sym = image_symbols(im, &cnt);
	assert_int_equal(cnt, m->d.symbols.cnt);
	if (cnt)
		assert_memory_equal(sym, m->d.symbols.data, cnt * sizeof(*sym));
	const struct image_import *imp = image_imports(im, &cnt);
	assert_int_equal(cnt, m->d.imports.cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		const struct image_import *got = image_import_at(im, imp[i].got_loc);
		assert_non_null(got);
		assert_true(got->loc == imp[i].got_loc || got->got_loc == imp[i].got_loc);
	}
	image_problems(im, &cnt);
	assert_int_equal(cnt, m->d.problems.cnt);
	image_needed(im, &cnt);
	assert_int_equal(cnt, m->d.needed.cnt);
	struct image_version v;
	assert_int_equal(image_version(im, 0, &v), m->d.versions.cnt > 0);
	assert_false(image_version(im, (uint32_t)m->d.versions.cnt, &v));
}

/* What the space must read: the file's byte, or a byte of the relocation over it. */
static uint8_t model_byte(const struct image_sample *s, const struct model *m, uint32_t loc)
{
	const struct image_data *d = &m->d;
	uint8_t byte = 0;
	for (size_t i = 0; i < d->segs.cnt; i++) {
		const struct space_seg *seg = &d->segs.data[i];
		if (loc >= seg->loc && loc - seg->loc < seg->file_len)
			byte = s->target[seg->file_off + (loc - seg->loc)];
	}
	for (size_t i = 0; i < d->reloc_loc.cnt; i++) {
		uint32_t width = d->reloc_kind.data[i] & 15u, at = loc - d->reloc_loc.data[i];
		if (loc < d->reloc_loc.data[i] || at >= width)
			continue;
		uint64_t v = 0;
		if (d->reloc_kind.data[i] & SPACE_REL_WIDE) {
			v = d->reloc_wide.data[d->reloc_val.data[i]];
		} else {
			for (size_t k = 0; k < d->segs.cnt; k++) {
				const struct space_seg *seg = &d->segs.data[k];
				if (d->reloc_val.data[i] >= seg->loc)
					v = seg->va + (d->reloc_val.data[i] - seg->loc);
			}
		}
		byte = (uint8_t)(v >> (8 * at));
	}
	return byte;
}

static void check_space(const struct image *im, struct image_sample *s, const struct model *m)
{
	const struct space *sp = image_space(im);
	for (size_t i = 0; i < m->d.segs.cnt; i++) {
		const struct space_seg *seg = &m->d.segs.data[i];
		uint8_t *bytes = malloc(seg->mem_len + 10);
		assert_int_equal(space_read(sp, seg->loc, bytes, seg->mem_len + 10), seg->mem_len);
		for (uint32_t k = 0; k < seg->mem_len; k++) {
			uint64_t word;
			assert_int_equal(bytes[k], model_byte(s, m, seg->loc + k));
			for (unsigned len = 1; len <= 8; len *= 2) {
				uint64_t want = 0;
				bool is_in = seg->mem_len - k >= len;
				assert_int_equal(space_word(sp, seg->loc + k, len, &word), is_in);
				if (is_in) {
					memcpy(&want, bytes + k, len);
					assert_int_equal(word, want);
				}
			}
		}
		uint32_t at = image_sample_below(s, seg->mem_len);
		assert_int_equal(space_va(sp, seg->loc + at), seg->va + at);
		assert_int_equal(space_loc(sp, seg->va + at), seg->loc + at);
		assert_int_equal(space_va(sp, seg->loc + (uint32_t)seg->mem_len), seg->va + seg->mem_len);
		assert_int_equal(space_seg_of_loc(sp, seg->loc + (uint32_t)seg->mem_len), -1);
		free(bytes);
	}
}

static void test_round_trip(void **state)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct image_sample s;
		struct model m;
		_cleanup_buf_ struct buf bytes = {0};
		assert_true(image_sample_make(&s, seed, seed % 4 ? 900 : 6000));
		model_make(&m, &s.data);
		assert_null(image_serialize(&s.data, &bytes));
		struct image *im = NULL;
		assert_null(image_open_mem(bytes.data, bytes.len, s.target, s.target_len, NULL, &im));
		struct findings f = {0};
		image_check(im, &f);
		for (size_t i = 0; i < f.list.cnt; i++)
			print_error("%s: %s\n", f.list.data[i].what, f.list.data[i].why);
		assert_int_equal(f.list.cnt, 0);
		findings_fini(&f);
		check_rows(im, &m);
		check_blocks(im, &m);
		check_xrefs(im, &m, &s);
		check_funcs(im, &m);
		check_names(im, &m);
		check_tables(im, &m);
		check_texts(im, &m);
		check_space(im, &s, &m);
		assert_int_equal(image_file_len(im), bytes.len);
		image_unref(im);
		model_fini(&m);
		image_sample_fini(&s);
	}
}

static void make_bytes(uint64_t seed, struct image_sample *s, struct buf *ret)
{
	assert_true(image_sample_make(s, seed, 900));
	assert_null(image_serialize(&s->data, ret));
}

/* The order in which facts were found must not show in the bytes. */
static void test_same_bytes(void **state)
{
	struct image_sample a, b;
	_cleanup_buf_ struct buf x = {0}, y = {0};
	assert_true(image_sample_make(&a, 7, 900));
	assert_true(image_sample_make(&b, 7, 900));
	for (size_t i = 0; i < b.data.xrefs.cnt / 2; i++) {
		struct image_xref t = b.data.xrefs.data[i];
		b.data.xrefs.data[i] = b.data.xrefs.data[b.data.xrefs.cnt - 1 - i];
		b.data.xrefs.data[b.data.xrefs.cnt - 1 - i] = t;
	}
	for (size_t i = 0; i < b.data.names.cnt / 2; i++) {
		struct image_name t = b.data.names.data[i];
		b.data.names.data[i] = b.data.names.data[b.data.names.cnt - 1 - i];
		b.data.names.data[b.data.names.cnt - 1 - i] = t;
	}
	assert_null(image_serialize(&a.data, &x));
	assert_null(image_serialize(&b.data, &y));
	assert_int_equal(x.len, y.len);
	assert_memory_equal(x.data, y.data, x.len);
	image_sample_fini(&a);
	image_sample_fini(&b);
}

/* Data that no analysis has touched is an image too: one unknown item a part. */
static void test_bare_data(void **state)
{
	struct image_sample s;
	_cleanup_buf_ struct buf bytes = {0};
	assert_true(image_sample_make(&s, 3, 900));
	struct image_data *d = &s.data;
	size_t words = bits_words(d->loc_cnt);
	memset(d->item_bits, 0, words * 8);
	memset(d->block_bits, 0, words * 8);
	VEC_FREE(&d->nobits_items);
	VEC_FREE(&d->run_loc);
	VEC_FREE(&d->run_kind);
	uint32_t parts = 0;
	for (size_t i = 0; i < d->segs.cnt; i++)
		parts += (d->segs.data[i].file_len > 0) + (d->segs.data[i].mem_len > d->segs.data[i].file_len);
	assert_null(image_serialize(d, &bytes));
	struct image *im = NULL;
	assert_null(image_open_mem(bytes.data, bytes.len, s.target, s.target_len, NULL, &im));
	assert_int_equal(image_row_cnt(im), parts);
	struct findings f = {0};
	image_check(im, &f);
	assert_int_equal(f.list.cnt, 0);
	findings_fini(&f);
	image_unref(im);
	image_sample_fini(&s);
}

static void expect_open(const char *path, const struct image_sample *s, const uint8_t *sha, int kind)
{
	struct image *im = NULL;
	struct err *e = image_open(path, s->target, s->target_len, sha, &im);
	if (kind < 0) {
		assert_null(e);
		image_unref(im);
		return;
	}
	assert_non_null(e);
	assert_int_equal(e->kind, kind);
	err_free(e);
}

static void write_file(const char *path, const void *bytes, size_t len)
{
	assert_null(file_write_atomic(path, bytes, len));
}

static void test_open_errors(void **state)
{
	char dir[] = "/tmp/image-test-XXXXXX", path[64];
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/image.1", dir);
	struct image_sample s;
	_cleanup_buf_ struct buf bytes = {0};
	make_bytes(5, &s, &bytes);
	uint8_t sha[32], other[32] = {1};
	memset(sha, 5, sizeof(sha));
	expect_open(path, &s, sha, ERR_NOT_FOUND);
	write_file(path, bytes.data, bytes.len);
	expect_open(path, &s, sha, -1);
	expect_open(path, &s, other, ERR_STALE);
	s.target_len++;
	expect_open(path, &s, sha, ERR_STALE);
	s.target_len--;
	bytes.data[8] ^= 1; /* format version */
	write_file(path, bytes.data, bytes.len);
	expect_open(path, &s, sha, ERR_STALE);
	bytes.data[8] ^= 1;
	bytes.data[12] ^= 1; /* engine version */
	write_file(path, bytes.data, bytes.len);
	expect_open(path, &s, sha, ERR_STALE);
	bytes.data[12] ^= 1;
	bytes.data[0] ^= 1;
	write_file(path, bytes.data, bytes.len);
	expect_open(path, &s, sha, ERR_BAD_INPUT);
	bytes.data[0] ^= 1;
	bytes.data[100] ^= 1; /* section table */
	write_file(path, bytes.data, bytes.len);
	expect_open(path, &s, sha, ERR_BAD_INPUT);
	bytes.data[100] ^= 1;
	size_t lens[] = {0, 10, 500, bytes.len - 8};
	for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
		write_file(path, bytes.data, lens[i]);
		expect_open(path, &s, sha, ERR_BAD_INPUT);
	}
	write_file(path, bytes.data, bytes.len);
	assert_int_equal(chmod(path, 0666), 0);
	expect_open(path, &s, sha, ERR_BAD_INPUT);
	assert_int_equal(chmod(path, 0600), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 12345, 12345), 0);
		expect_open(path, &s, sha, ERR_BAD_INPUT);
		assert_int_equal(chown(path, 0, 0), 0);
	}
	expect_open(path, &s, sha, -1);
	unlink(path);
	rmdir(dir);
	image_sample_fini(&s);
}

/* A changed byte anywhere behind the table is found by the full check, and opening does not mind. */
static void test_check_finds(void **state)
{
	struct image_sample s;
	_cleanup_buf_ struct buf bytes = {0};
	make_bytes(9, &s, &bytes);
	unsigned found_cnt = 0, open_cnt = 0, refused_cnt = 0;
	for (size_t at = 80 + 44 * 40; at < bytes.len; at += 97) {
		bytes.data[at] ^= 0x55;
		struct image *im = NULL;
		struct err *e = image_open_mem(bytes.data, bytes.len, s.target, s.target_len, NULL, &im);
		if (e) {
			assert_int_equal(e->kind, ERR_BAD_INPUT);
			err_free(e);
			refused_cnt++;
		} else {
			struct findings f = {0};
			image_check(im, &f);
			found_cnt += f.list.cnt > 0;
			open_cnt++;
			findings_fini(&f);
			image_unref(im);
		}
		bytes.data[at] ^= 0x55;
	}
	assert_true(open_cnt > 50);
	/* Only the few bytes between sections carry no checksum. */
	assert_true(found_cnt + 10 > open_cnt);
	image_sample_fini(&s);
}

/* Cut by someone else while it is open: what is missing reads as zeros, and it is said. */
static void test_cut_while_open(void **state)
{
	char path[] = "/tmp/image-cut-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	struct image_sample s;
	_cleanup_buf_ struct buf bytes = {0};
	assert_true(image_sample_make(&s, 8, 20000));
	assert_null(image_serialize(&s.data, &bytes));
	assert_true(bytes.len > 16384);
	assert_int_equal(write(fd, bytes.data, bytes.len), bytes.len);
	uint8_t sha[32];
	memset(sha, 8, sizeof(sha));
	struct image *im = NULL;
	assert_null(image_open(path, s.target, s.target_len, sha, &im));
	assert_false(image_was_hit(im));
	assert_int_equal(ftruncate(fd, 4096), 0);
	struct image_items it;
	uint32_t rows = 0, cnt, pos;
	for (bool ok = image_items_from(im, 0, &it); ok && rows < 1000000; ok = image_items_next(&it))
		rows++;
	image_xrefs_from(im, 0, UINT32_MAX, &pos);
	for (uint32_t i = 0; i < image_xref_cnt(im); i++) {
		struct image_xref x;
		image_xref_rev(im, i, &x);
	}
	const struct image_name *n = image_names(im, &cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		size_t len;
		image_text(im, n[i].name, &len);
	}
	assert_true(image_was_hit(im));
	image_unref(im);
	close(fd);
	unlink(path);
	image_sample_fini(&s);
}

static void test_two_opens(void **state)
{
	struct image_sample s;
	_cleanup_buf_ struct buf bytes = {0};
	make_bytes(11, &s, &bytes);
	struct image *a = NULL, *b = NULL;
	assert_null(image_open_mem(bytes.data, bytes.len, s.target, s.target_len, NULL, &a));
	assert_null(image_open_mem(bytes.data, bytes.len, s.target, s.target_len, NULL, &b));
	assert_int_equal(image_row_cnt(a), image_row_cnt(b));
	image_unref(image_ref(a));
	image_unref(a);
	assert_true(image_row_cnt(b) > 0);
	image_unref(b);
	image_sample_fini(&s);
}

/* From a description of a file to data: names in order of preference, imports, relocations, code fields. */
static struct fmt_bin *bin_new(uint8_t *bytes, size_t len)
{
	struct fmt_bin *b = calloc(1, sizeof(*b));
	assert_non_null(b);
	b->bytes = bytes;
	b->bytes_len = len;
	b->bits = 64;
	b->machine = FMT_MACHINE_X86_64;
	b->type = FMT_TYPE_OBJECT;
	b->format_name = "ELF64";
	b->machine_name = "x86-64";
	b->os_name = "linux";
	return b;
}

static void bin_free(struct fmt_bin *b)
{
	VEC_FREE(&b->segments);
	VEC_FREE(&b->symbols);
	VEC_FREE(&b->relocs);
	VEC_FREE(&b->imports);
	VEC_FREE(&b->code_starts);
	findings_fini(&b->findings);
	free(b);
}

#define STR(s) ((struct fmt_str){(s), sizeof(s) - 1})

static struct fmt_bin *sample_bin(uint8_t *bytes)
{
	struct fmt_bin *b = bin_new(bytes, 4096);
	struct fmt_segment segs[] = {
		{.va = 0x1000, .mem_len = 0x100, .file_off = 0, .file_len = 0x100, .perm = FMT_R | FMT_X,
		 .name = STR(".text")},
		{.va = 0x2000, .mem_len = 0x300, .file_off = 0x100, .file_len = 0x100, .perm = FMT_R | FMT_W,
		 .name = STR(".data")},
		{.va = 0x3000, .mem_len = 16, .name = STR("extern")},
	};
	struct fmt_symbol syms[] = {
		{.name = STR("local_name"), .va = 0x1010, .type = FMT_SYM_FUNC, .bind = FMT_BIND_LOCAL},
		{.name = STR("weak_name"), .va = 0x1010, .type = FMT_SYM_FUNC, .bind = FMT_BIND_WEAK},
		{.name = STR("__inner"), .va = 0x1010, .type = FMT_SYM_FUNC, .bind = FMT_BIND_GLOBAL},
		{.name = STR("outer"), .va = 0x1010, .type = FMT_SYM_FUNC, .bind = FMT_BIND_GLOBAL},
		{.name = STR("outer"), .va = 0x1010, .type = FMT_SYM_FUNC, .bind = FMT_BIND_GLOBAL},
		{.name = STR("$d"), .va = 0x1020, .is_mapping = true},
		{.name = STR("puts"), .is_undefined = true, .type = FMT_SYM_FUNC, .bind = FMT_BIND_GLOBAL,
		 .version = STR("GLIBC_2.2.5"), .library = STR("libc.so.6")},
		{.name = STR("tls"), .va = 0x10, .type = FMT_SYM_TLS, .bind = FMT_BIND_GLOBAL},
	};
	struct fmt_reloc relocs[] = {
		{.va = 0x1004, .value = 0xfffffff0, .kind = FMT_REL_CODE, .width = 4},
		{.va = 0x2008, .value = 0x3000, .kind = FMT_REL_IMPORT, .width = 8},
		{.va = 0x2010, .value = 0x1010, .kind = FMT_REL_POINTER, .width = 8},
		{.va = 0x2018, .value = 0x77, .kind = FMT_REL_POINTER, .width = 8},
		{.va = 0x2020, .value = 0x1010, .kind = FMT_REL_TLS, .width = 8},
	};
	for (size_t i = 0; i < ARRAY_LEN(segs); i++)
		assert_true(VEC_PUSH(&b->segments, segs[i]));
	for (size_t i = 0; i < ARRAY_LEN(syms); i++)
		assert_true(VEC_PUSH(&b->symbols, syms[i]));
	for (size_t i = 0; i < ARRAY_LEN(relocs); i++)
		assert_true(VEC_PUSH(&b->relocs, relocs[i]));
	assert_true(VEC_PUSH(&b->imports, (struct fmt_import){.symbol = 6, .va = 0x3000, .got_va = 0x2008}));
	assert_true(VEC_PUSH(&b->code_starts, 0x1010) && VEC_PUSH(&b->code_starts, 0x2000));
	finding_add_va(&b->findings, FINDING_WARNING, 0x1004, "relocation", "odd");
	return b;
}

static const char *shown(const struct image *im, uint64_t va)
{
	size_t len;
	const struct image_name *n = image_name_at(im, space_loc(image_space(im), va));
	return n ? image_text(im, n->name, &len) : NULL;
}

static void test_from_fmt(void **state)
{
	uint8_t bytes[4096], sha[32] = {42};
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	struct fmt_bin *b = sample_bin(bytes);
	struct image_data d;
	_cleanup_buf_ struct buf out = {0};
	assert_null(image_data_from_fmt(b, sha, &d));
	assert_int_equal(d.code_starts.cnt, 1); /* the one in data is none */
	assert_int_equal(d.mappings.cnt, 1);
	assert_false(d.mappings.data[0].is_code);
	assert_int_equal(d.segs.data[2].is_extern, 1);
	assert_null(image_serialize(&d, &out));
	struct image *im = NULL;
	assert_null(image_open_mem(out.data, out.len, bytes, sizeof(bytes), sha, &im));
	assert_string_equal(shown(im, 0x1010), "outer");
	assert_string_equal(shown(im, 0x3000), "puts");
	assert_string_equal(shown(im, 0x2008), "puts@got");
	assert_null(shown(im, 0x1020));
	assert_null(shown(im, 0x10));
	const struct space *sp = image_space(im);
	uint64_t word;
	assert_true(space_word(sp, space_loc(sp, 0x2008), 8, &word));
	assert_int_equal(word, 0x3000);
	assert_true(space_word(sp, space_loc(sp, 0x2010), 8, &word));
	assert_int_equal(word, 0x1010);
	assert_true(space_word(sp, space_loc(sp, 0x2018), 8, &word));
	assert_int_equal(word, 0x77);
	assert_true(space_word(sp, space_loc(sp, 0x2020), 1, &word));
	assert_int_equal(word, 0x20);
	size_t len;
	const uint8_t *code = space_bytes(sp, space_loc(sp, 0x1000), &len);
	assert_int_equal(len, 0x100);
	assert_int_equal(code[3], 3);
	assert_int_equal(code[4], 0xf0);
	assert_int_equal(code[7], 0xff);
	assert_int_equal(code[8], 8);
	assert_null(space_bytes(sp, space_loc(sp, 0x2100), &len));
	const struct image_import *imp = image_import_at(im, space_loc(sp, 0x2008));
	assert_non_null(imp);
	assert_ptr_equal(imp, image_import_at(im, space_loc(sp, 0x3000)));
	uint32_t cnt;
	struct image_version v;
	assert_true(image_version(im, image_symbols(im, &cnt)[imp->symbol].version, &v));
	assert_string_equal(image_text(im, v.version, &len), "GLIBC_2.2.5");
	assert_string_equal(image_text(im, v.library, &len), "libc.so.6");
	assert_int_equal(image_problems(im, &cnt)[0].loc, space_loc(sp, 0x1004));
	assert_string_equal(image_text(im, image_meta(im)->format_name, &len), "ELF64");
	image_unref(im);
	image_data_fini(&d);
	bin_free(b);
}

/* A target that maps more than can be numbered is cut, and that is said. */
static void test_too_large(void **state)
{
	uint8_t bytes[4096] = {0}, sha[32] = {0};
	struct fmt_bin *b = bin_new(bytes, sizeof(bytes));
	for (uint64_t i = 0; i < 4; i++)
		assert_true(VEC_PUSH(&b->segments, (struct fmt_segment){.va = i << 32, .mem_len = 0x60000000,
									.file_len = 4096, .perm = FMT_R}));
	struct image_data d;
	assert_null(image_data_from_fmt(b, sha, &d));
	assert_int_equal(d.segs.cnt, 3);
	assert_true(d.problems.cnt >= 1);
	_cleanup_buf_ struct buf out = {0};
	assert_null(image_serialize(&d, &out));
	assert_true(out.len < 65536);
	struct image *im = NULL;
	assert_null(image_open_mem(out.data, out.len, bytes, sizeof(bytes), NULL, &im));
	uint32_t last = image_loc_of_row(im, image_row_cnt(im) - 1);
	assert_int_equal(image_row_of(im, last), image_row_cnt(im) - 1);
	image_unref(im);
	image_data_fini(&d);
	bin_free(b);
}

int main(void)
{
	/* The cut comes first: cmocka sets its own SIGBUS handler before each test, the guard only once. */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut_while_open),
		cmocka_unit_test(test_round_trip),   cmocka_unit_test(test_same_bytes),
		cmocka_unit_test(test_bare_data),    cmocka_unit_test(test_open_errors),
		cmocka_unit_test(test_check_finds),
		cmocka_unit_test(test_two_opens),    cmocka_unit_test(test_from_fmt),
		cmocka_unit_test(test_too_large),
	};
	return cmocka_run_group_tests_name("image", tests, NULL, NULL);
}
