/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/image_sample.h"

#include "base/bits.h"

#include <stdio.h>
#include <string.h>

uint64_t image_sample_rng(struct image_sample *s)
{
	s->rng ^= s->rng << 13;
	s->rng ^= s->rng >> 7;
	s->rng ^= s->rng << 17;
	return s->rng;
}

uint32_t image_sample_below(struct image_sample *s, uint64_t n)
{
	return (uint32_t)(image_sample_rng(s) % n);
}

#define BELOW(n) image_sample_below(s, (n))

static bool text(struct image_sample *s, const char *prefix, struct image_str *ret)
{
	char buf[64];
	int len = snprintf(buf, sizeof(buf), "%s_%u", prefix, BELOW(500));
	return image_pool_add(&s->data, buf, (size_t)len, ret);
}

/* A loc in some segment. */
static uint32_t any_loc(struct image_sample *s)
{
	const struct space_seg *seg = &s->data.segs.data[BELOW(s->data.segs.cnt)];
	return seg->loc + BELOW(seg->mem_len);
}

static bool make_segs(struct image_sample *s, uint32_t size)
{
	struct image_data *d = &s->data;
	uint32_t seg_cnt = 1 + BELOW(5);
	uint64_t va = 0x400000, off = 16;
	uint32_t loc = 0;
	bool ok = true;
	for (uint32_t i = 0; i < seg_cnt && ok; i++) {
		struct space_seg seg = {.va = va, .file_off = off, .file_len = BELOW(4) ? BELOW(size) + 1 : 0,
					.loc = loc, .perm = (uint8_t)BELOW(8)};
		seg.mem_len = seg.file_len + (BELOW(2) || !seg.file_len ? BELOW(size) + 1 : 0);
		struct image_str name;
		ok = text(s, "LOAD", &name) && (seg.name_off = name.off, seg.name_len = name.len, true) &&
		     VEC_PUSH(&d->segs, seg);
		off += seg.file_len;
		va += seg.mem_len + BELOW(5000);
		loc = (loc + (uint32_t)seg.mem_len + 64) / 64 * 64;
		d->loc_cnt = seg.loc + (uint32_t)seg.mem_len;
	}
	s->target_len = off + BELOW(20);
	s->target = malloc(s->target_len);
	for (size_t i = 0; s->target && i < s->target_len; i++)
		s->target[i] = (uint8_t)image_sample_rng(s);
	d->item_bits = calloc(bits_words(d->loc_cnt) + 1, 8);
	d->block_bits = calloc(bits_words(d->loc_cnt) + 1, 8);
	return ok && s->target && d->item_bits && d->block_bits;
}

static bool make_relocs(struct image_sample *s)
{
	struct image_data *d = &s->data;
	bool ok = true;
	for (size_t i = 0; i < d->segs.cnt && ok; i++) {
		const struct space_seg *seg = &d->segs.data[i];
		for (uint64_t at = BELOW(50); at + 8 <= seg->mem_len && ok; at += 8 + BELOW(90)) {
			bool is_wide = BELOW(4) == 0;
			uint8_t width = (uint8_t)(1u << BELOW(4));
			uint32_t val = is_wide ? (uint32_t)d->reloc_wide.cnt : any_loc(s);
			if (is_wide)
				ok = VEC_PUSH(&d->reloc_wide, image_sample_rng(s));
			ok = ok && VEC_PUSH(&d->reloc_loc, seg->loc + (uint32_t)at) && VEC_PUSH(&d->reloc_val, val) &&
			     VEC_PUSH(&d->reloc_kind, (uint8_t)(width | (is_wide ? SPACE_REL_WIDE : 0)));
		}
	}
	d->space = (struct space){.file = s->target, .file_len = s->target_len, .segs = d->segs.data,
				  .seg_cnt = (uint32_t)d->segs.cnt, .reloc_loc = d->reloc_loc.data,
				  .reloc_val = d->reloc_val.data, .reloc_kind = d->reloc_kind.data,
				  .reloc_cnt = (uint32_t)d->reloc_loc.cnt, .reloc_wide = d->reloc_wide.data,
				  .reloc_wide_cnt = (uint32_t)d->reloc_wide.cnt, .word_len = 8};
	return ok;
}

static bool make_items(struct image_sample *s)
{
	struct image_data *d = &s->data;
	bool ok = true;
	for (size_t i = 0; i < d->segs.cnt && ok; i++) {
		const struct space_seg *seg = &d->segs.data[i];
		uint32_t at = 0;
		while (at < seg->mem_len && ok) {
			uint32_t loc = seg->loc + at;
			if (at == 0 || BELOW(3) == 0)
				ok = VEC_PUSH(&d->run_loc, loc) &&
				     VEC_PUSH(&d->run_kind, (uint8_t)BELOW(IMAGE_ITEM_KIND_COUNT));
			if (at < seg->file_len) {
				bits_set(d->item_bits, loc);
				if (BELOW(3) == 0)
					bits_set(d->block_bits, loc + (BELOW(20) ? 0 : MIN(1, seg->file_len - at - 1)));
			} else {
				ok = ok && VEC_PUSH(&d->nobits_items, loc);
			}
			uint32_t len = BELOW(200) ? 1 + BELOW(30) : 1 + BELOW(9000);
			if (at < seg->file_len && at + len > seg->file_len)
				len = (uint32_t)seg->file_len - at;
			at += len;
		}
	}
	return ok;
}

static bool make_funcs(struct image_sample *s)
{
	struct image_data *d = &s->data;
	VEC(struct image_range) pieces = {0};
	bool ok = true;
	for (size_t i = 0; i < d->segs.cnt && ok; i++) {
		uint64_t at = BELOW(40);
		while (at < d->segs.data[i].mem_len && ok) {
			uint64_t len = 1 + BELOW(100);
			len = MIN(len, d->segs.data[i].mem_len - at);
			ok = VEC_PUSH(&pieces, (struct image_range){d->segs.data[i].loc + (uint32_t)at, (uint32_t)len, 0});
			at += len + BELOW(30);
		}
	}
	/* A piece begins a function or is given to one that has begun; ranges go by function. */
	uint32_t func_cnt = 0;
	for (size_t i = 0; i < pieces.cnt; i++)
		pieces.data[i].func = func_cnt && BELOW(6) == 0 ? BELOW(func_cnt) : func_cnt++;
	for (uint32_t f = 0; f < func_cnt && ok; f++) {
		struct image_func fn = {.range_first = (uint32_t)d->func_ranges.cnt, .source = IMAGE_SRC_CALL,
					.block_cnt = BELOW(100), .flags = BELOW(256), .thunk_to = LOC_NONE};
		for (size_t i = 0; i < pieces.cnt && ok; i++) {
			if (pieces.data[i].func != f)
				continue;
			if (!fn.range_cnt++)
				fn.loc = pieces.data[i].loc;
			fn.size_len += pieces.data[i].len;
			ok = VEC_PUSH(&d->func_ranges, pieces.data[i]);
		}
		ok = ok && VEC_PUSH(&d->funcs, fn);
	}
	VEC_FREE(&pieces);
	return ok;
}

static bool make_symbols(struct image_sample *s)
{
	struct image_data *d = &s->data;
	bool ok = true;
	for (uint32_t i = 0, n = BELOW(60); i < n && ok; i++) {
		struct image_symbol sym = {.loc = BELOW(5) ? any_loc(s) : LOC_NONE, .size_len = BELOW(99),
					   .version = UINT32_MAX, .type = 1, .bind = 1};
		ok = text(s, "sym", &sym.name) && VEC_PUSH(&d->symbols, sym);
		if (BELOW(3) == 0 && ok)
			ok = VEC_PUSH(&d->imports, (struct image_import){.symbol = i, .loc = any_loc(s),
									 .got_loc = any_loc(s),
									 .plt_loc = LOC_NONE});
	}
	for (uint32_t i = 0, n = BELOW(200); i < n && ok; i++) {
		struct image_name name = {.loc = BELOW(3) || !d->names.cnt ? any_loc(s) : d->names.data[0].loc,
					  .kind = (uint8_t)BELOW(IMAGE_NAME_KIND_COUNT), .is_func = (uint8_t)BELOW(2),
					  .rank = (uint16_t)BELOW(3)};
		ok = text(s, "name", &name.name) && VEC_PUSH(&d->names, name);
	}
	for (uint32_t i = 0, n = BELOW(8); i < n && ok; i++) {
		struct image_section sec = {.va = 0x1000 * i, .mem_len = 17, .kind = 2};
		struct image_version v;
		struct image_str needed;
		ok = text(s, ".sec", &sec.name) && VEC_PUSH(&d->sections, sec) && text(s, "GLIBC", &v.version) &&
		     text(s, "lib", &v.library) && VEC_PUSH(&d->versions, v) && text(s, "need", &needed) &&
		     VEC_PUSH(&d->needed, needed);
	}
	return ok;
}

static bool make_refs(struct image_sample *s)
{
	struct image_data *d = &s->data;
	bool ok = true;
	for (uint32_t i = 0, n = BELOW(3) ? BELOW(3000) : 0; i < n && ok; i++) {
		struct image_xref x = {any_loc(s), any_loc(s), (uint8_t)BELOW(5)};
		if (BELOW(4) == 0 && d->xrefs.cnt) /* several from one place, several to one, and repeats */
			x.from = d->xrefs.data[BELOW(d->xrefs.cnt)].from;
		if (BELOW(4) == 0 && d->xrefs.cnt)
			x.to = d->xrefs.data[BELOW(d->xrefs.cnt)].to;
		ok = VEC_PUSH(&d->xrefs, x) && (BELOW(9) || VEC_PUSH(&d->xrefs, x));
	}
	for (uint32_t i = 0, n = BELOW(30); i < n && ok; i++) {
		struct image_table t = {.jump_loc = any_loc(s), .table_loc = any_loc(s), .index_loc = LOC_NONE,
					.target_first = (uint32_t)d->targets.cnt, .target_cnt = BELOW(40),
					.entry_bytes = 4, .low = -(int64_t)BELOW(100)};
		for (uint32_t k = 0; k < t.target_cnt && ok; k++)
			ok = VEC_PUSH(&d->targets, any_loc(s));
		ok = ok && VEC_PUSH(&d->tables, t);
	}
	return ok;
}

static bool make_texts(struct image_sample *s)
{
	struct image_data *d = &s->data;
	bool ok = true;
	uint32_t at = 0;
	for (uint32_t i = 0, n = BELOW(200); i < n && ok; i++) {
		struct image_string str = {at + BELOW(90), 4 + BELOW(40), BELOW(IMAGE_ENC_COUNT)};
		if (str.loc >= d->loc_cnt)
			break;
		at = str.loc + str.len + 1;
		ok = VEC_PUSH(&d->strings, str);
	}
	for (uint32_t i = 0, n = BELOW(40); i < n && ok; i++) {
		struct image_proto p = {.loc = any_loc(s), .line = BELOW(1000)};
		ok = text(s, "int f", &p.text) && text(s, "file.c", &p.file) && VEC_PUSH(&d->protos, p);
	}
	for (uint32_t i = 0; i < 5 && ok; i++) {
		struct image_str file;
		ok = text(s, "src", &file) && VEC_PUSH(&d->line_files, file);
	}
	for (uint32_t i = 0, n = BELOW(600); i < n && ok; i++)
		ok = VEC_PUSH(&d->lines, (struct image_line){any_loc(s), BELOW(5), 1 + BELOW(5000)});
	for (uint32_t i = 0, n = BELOW(5); i < n && ok; i++) {
		struct image_problem p = {.loc = LOC_NONE, .severity = 1, .file_off = i};
		ok = text(s, "what", &p.what) && text(s, "why", &p.why) && VEC_PUSH(&d->problems, p);
	}
	return ok;
}

bool image_sample_make(struct image_sample *s, uint64_t seed, uint32_t size)
{
	*s = (struct image_sample){.rng = seed * 0x9e3779b97f4a7c15u | 1};
	for (unsigned i = 0; i < 8; i++)
		image_sample_rng(s);
	struct image_data *d = &s->data;
	if (!VEC_PUSH(&d->pool, '\0') || !make_segs(s, size) || !make_relocs(s) || !make_items(s) ||
	    !make_funcs(s) || !make_symbols(s) || !make_refs(s) || !make_texts(s)) {
		image_sample_fini(s);
		return false;
	}
	d->meta = (struct image_meta){.target_len = s->target_len, .bits = 64, .entry_loc = LOC_NONE,
				      .main_loc = LOC_NONE, .insn_cnt = 3};
	memset(d->meta.target_sha256, (int)seed, sizeof(d->meta.target_sha256));
	return true;
}

void image_sample_fini(struct image_sample *s)
{
	image_data_fini(&s->data);
	free(s->target);
	*s = (struct image_sample){0};
}
