/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image.h"

#include "image/image_int.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

/*
 * Opening: the header, the table and the segments (a handful) are checked and copied; nothing else is read, so
 * a large image opens as fast as a small one. What the other sections hold is checked where it is used
 * (here, lookup.c, rows.c), and all of it by image_check().
 */
#define SEG_LOC_ALIGN 64
#define SMALL_LEN 65536 /* bytes of a section that opening verifies */

static struct err *damaged(const char *why)
{
	return err_new(ERR_BAD_INPUT, "the image is damaged: %s", why);
}

static bool sect_form_is_good(const struct image_sect_entry *s)
{
	uint64_t words = s->len / 8;
	switch ((enum image_form)s->form) {
	case IMAGE_RECORDS:
		return s->len / s->elem_len == s->cnt && s->len % s->elem_len == 0;
	case IMAGE_BITS:
		return s->len % 8 == 0 && words == bits_words(s->cnt);
	case IMAGE_PACKED:
		return s->len % 8 == 0 && s->width <= 57 && s->cnt <= UINT32_MAX &&
		       words == bits_words(s->cnt * s->width) + 1;
	case IMAGE_SEQ:
		/* The words' number is in the last head; image_seq_at() tests every block against the length. */
		return s->len % 8 == 0 && s->cnt <= UINT32_MAX &&
		       words >= (s->cnt + IMAGE_SEQ_BLOCK - 1) / IMAGE_SEQ_BLOCK + 2;
	case IMAGE_DIR:
		return s->len / 4 == s->cnt && s->len % 4 == 0 && s->width < 64;
	}
	return false;
}

static struct err *check_sects(struct image *im)
{
	memcpy(im->sects, im->bytes + sizeof(struct image_header), sizeof(im->sects));
	for (unsigned i = 0; i < IMAGE_SECT_COUNT; i++) {
		const struct image_sect_entry *s = &im->sects[i];
		const struct image_sect_info *info = &image_sect_infos[i];
		if (s->kind != i || s->form != info->form || s->elem_len != info->elem_len)
			return damaged("a section has another form");
		if (s->off % 8 || s->off > im->len || s->len > im->len - s->off)
			return damaged("a section does not lie in the file");
		if (s->cnt > (s->form == IMAGE_BITS ? (uint64_t)UINT32_MAX + 1024 : UINT32_MAX - 1) ||
		    !sect_form_is_good(s))
			return damaged("a section's length is not that of its content");
	}
	return NULL;
}

/* Sections that must have the same number of elements. */
static bool counts_agree(const struct image *im)
{
	const struct image_sect_entry *s = im->sects;
	return s[IMAGE_SECT_META].cnt == 1 && s[IMAGE_SECT_RELOC_LOC].cnt == s[IMAGE_SECT_RELOC_VAL].cnt &&
	       s[IMAGE_SECT_RELOC_LOC].cnt == s[IMAGE_SECT_RELOC_KIND].cnt &&
	       s[IMAGE_SECT_NAMES].cnt == s[IMAGE_SECT_NAME_ORDER].cnt &&
	       s[IMAGE_SECT_ITEM_BITS].cnt % BITS_RANK_SPAN == 0 &&
	       s[IMAGE_SECT_ITEM_RANK].cnt == bits_rank_blocks(s[IMAGE_SECT_ITEM_BITS].cnt) + 1 &&
	       s[IMAGE_SECT_RUN_LOC].cnt == s[IMAGE_SECT_RUN_KIND].cnt &&
	       s[IMAGE_SECT_FUNC_RANGES].cnt == s[IMAGE_SECT_RANGE_ORDER].cnt &&
	       s[IMAGE_SECT_XREF_FROM].cnt == s[IMAGE_SECT_XREF_TO].cnt &&
	       s[IMAGE_SECT_XREF_FROM].cnt == s[IMAGE_SECT_XREF_REV].cnt &&
	       s[IMAGE_SECT_LINE_LOC].cnt == s[IMAGE_SECT_LINE_FILE].cnt &&
	       s[IMAGE_SECT_LINE_LOC].cnt == s[IMAGE_SECT_LINE_NUM].cnt;
}

static struct image_packed packed_of(const struct image *im, enum image_sect kind)
{
	const struct image_sect_entry *s = &im->sects[kind];
	return (struct image_packed){im->bytes + s->off, s->cnt, s->width};
}

static struct image_seq seq_of(const struct image *im, enum image_sect kind)
{
	const struct image_sect_entry *s = &im->sects[kind];
	uint64_t heads = (s->cnt + IMAGE_SEQ_BLOCK - 1) / IMAGE_SEQ_BLOCK + 1;
	return (struct image_seq){(const void *)(im->bytes + s->off), im->bytes + s->off + heads * 8, s->cnt,
				  s->len / 8 - heads - 1};
}

static struct image_dir dir_of(const struct image *im, enum image_sect kind)
{
	const struct image_sect_entry *s = &im->sects[kind];
	return (struct image_dir){(const void *)(im->bytes + s->off), s->cnt, s->width};
}

static void set_pointers(struct image *im)
{
	im->pool = (const char *)im->bytes + im->sects[IMAGE_SECT_POOL].off;
	im->item_bits = (const void *)(im->bytes + im->sects[IMAGE_SECT_ITEM_BITS].off);
	im->item_rank = (const void *)(im->bytes + im->sects[IMAGE_SECT_ITEM_RANK].off);
	im->block_bits = (const void *)(im->bytes + im->sects[IMAGE_SECT_BLOCK_BITS].off);
	im->run_kind = im->bytes + im->sects[IMAGE_SECT_RUN_KIND].off;
	im->nobits = seq_of(im, IMAGE_SECT_NOBITS_ITEMS);
	im->run_loc = seq_of(im, IMAGE_SECT_RUN_LOC);
	im->xref_from = seq_of(im, IMAGE_SECT_XREF_FROM);
	im->line_loc = seq_of(im, IMAGE_SECT_LINE_LOC);
	im->name_order = packed_of(im, IMAGE_SECT_NAME_ORDER);
	im->range_order = packed_of(im, IMAGE_SECT_RANGE_ORDER);
	im->xref_to = packed_of(im, IMAGE_SECT_XREF_TO);
	im->xref_rev = packed_of(im, IMAGE_SECT_XREF_REV);
	im->line_file = packed_of(im, IMAGE_SECT_LINE_FILE);
	im->line_num = packed_of(im, IMAGE_SECT_LINE_NUM);
	im->name_dir = dir_of(im, IMAGE_SECT_NAME_DIR);
	im->run_dir = dir_of(im, IMAGE_SECT_RUN_DIR);
	im->func_dir = dir_of(im, IMAGE_SECT_FUNC_DIR);
	im->range_dir = dir_of(im, IMAGE_SECT_RANGE_DIR);
	im->xref_from_dir = dir_of(im, IMAGE_SECT_XREF_FROM_DIR);
	im->xref_to_dir = dir_of(im, IMAGE_SECT_XREF_TO_DIR);
	im->string_dir = dir_of(im, IMAGE_SECT_STRING_DIR);
}

/* One segment against the one before it and the target. */
static bool seg_is_good(const struct image *im, uint32_t i)
{
	const struct space_seg *s = &im->segs[i];
	if (s->loc % SEG_LOC_ALIGN || !s->mem_len || s->mem_len >= UINT32_MAX - s->loc ||
	    s->file_len > s->mem_len || s->va + (s->mem_len - 1) < s->va)
		return false;
	if (s->file_len && (s->file_off > im->space.file_len || s->file_len > im->space.file_len - s->file_off))
		return false;
	if (s->nobits_first > im->nobits.cnt)
		return false;
	if (!i)
		return s->nobits_first == 0;
	const struct space_seg *p = &im->segs[i - 1];
	return s->loc > p->loc + p->mem_len && s->va > p->va && s->va - p->va >= p->mem_len &&
	       s->nobits_first >= p->nobits_first;
}

static struct err *check_segs(struct image *im)
{
	uint32_t cnt;
	const struct space_seg *stored = image_sect_data(im, IMAGE_SECT_SEGS, &cnt);
	im->segs = alloc_array(cnt, sizeof(*im->segs));
	im->seg_block = alloc_array((size_t)cnt + 1, sizeof(*im->seg_block));
	if (!im->segs || !im->seg_block)
		return &err_nomem;
	memcpy(im->segs, stored, cnt * sizeof(*im->segs));
	uint64_t block = 0, row = 0;
	uint64_t block_cnt = im->sects[IMAGE_SECT_ITEM_RANK].cnt - 1;
	for (uint32_t i = 0; i < cnt; i++) {
		struct space_seg *s = &im->segs[i];
		if (!seg_is_good(im, i))
			return damaged("its segments contradict each other");
		uint64_t end = block + bits_rank_blocks(s->file_len);
		if (end > block_cnt || im->item_rank[end] < im->item_rank[block])
			return damaged("its items do not fit its segments");
		im->seg_block[i] = (uint32_t)block;
		s->row_first = (uint32_t)row;
		uint64_t nobits_end = i + 1 < cnt ? stored[i + 1].nobits_first : im->nobits.cnt;
		if (nobits_end < s->nobits_first || nobits_end > im->nobits.cnt)
			return damaged("its items do not fit its segments");
		row += im->item_rank[end] - im->item_rank[block] + (nobits_end - s->nobits_first);
		block = end;
	}
	if (block != block_cnt || row >= UINT32_MAX || im->item_rank[0])
		return damaged("its items do not fit its segments");
	im->seg_block[cnt] = (uint32_t)block;
	im->meta.row_cnt = (uint32_t)row;
	if (im->item_rank[block_cnt] != im->sects[IMAGE_SECT_BLOCK_BITS].cnt)
		return damaged("its blocks do not fit its items");
	im->space.segs = im->segs;
	im->space.seg_cnt = cnt;
	return NULL;
}

static void set_space(struct image *im)
{
	uint32_t cnt;
	struct space *s = &im->space;
	s->reloc_loc = image_sect_data(im, IMAGE_SECT_RELOC_LOC, &s->reloc_cnt);
	s->reloc_val = image_sect_data(im, IMAGE_SECT_RELOC_VAL, &cnt);
	s->reloc_kind = image_sect_data(im, IMAGE_SECT_RELOC_KIND, &cnt);
	s->reloc_wide = image_sect_data(im, IMAGE_SECT_RELOC_WIDE, &s->reloc_wide_cnt);
	s->word_len = im->meta.bits == 32 ? 4 : 8;
	s->is_be = im->meta.is_be != 0;
}

static struct err *check_header(struct image *im, const uint8_t *sha256)
{
	struct image_header h;
	uint8_t start[sizeof(h) + sizeof(im->sects)];
	if (im->len < sizeof(start))
		return damaged("it is too short");
	memcpy(start, im->bytes, sizeof(start));
	memcpy(&h, start, sizeof(h));
	if (memcmp(h.magic, IMAGE_MAGIC, sizeof(h.magic)))
		return damaged("it does not begin like one");
	if (h.format_version != IMAGE_FORMAT_VERSION || h.engine_version != IMAGE_ENGINE_VERSION)
		return err_new(ERR_STALE, "the image is of version %u.%u, this is %u.%u", h.format_version,
			       h.engine_version, IMAGE_FORMAT_VERSION, IMAGE_ENGINE_VERSION);
	uint64_t want = h.xxh3;
	memset(start + offsetof(struct image_header, xxh3), 0, sizeof(h.xxh3));
	if (XXH3_64bits(start, sizeof(start)) != want || h.sect_cnt != IMAGE_SECT_COUNT)
		return damaged("the checksum of its header is wrong");
	if (h.file_len != im->len)
		return damaged("it was cut");
	if (!im->space.file)
		im->space.file_len = h.target_len; /* until all was held against it */
	if (h.target_len != im->space.file_len ||
	    (sha256 && memcmp(h.target_sha256, sha256, sizeof(h.target_sha256))))
		return err_new(ERR_STALE, "the image belongs to another file");
	return NULL;
}

/*
 * The sections that are few bytes whatever the target, and on which every answer rests, are verified at each open; the
 * cost is that of one page. The rest is left to image_check().
 */
static struct err *check_small(const struct image *im)
{
	static const enum image_sect small[] = {IMAGE_SECT_META, IMAGE_SECT_SEGS, IMAGE_SECT_SECTIONS};
	for (size_t i = 0; i < ARRAY_LEN(small); i++) {
		const struct image_sect_entry *s = &im->sects[small[i]];
		if (s->len <= SMALL_LEN && XXH3_64bits(im->bytes + s->off, s->len) != s->xxh3)
			return damaged("the checksum of a section is wrong");
	}
	return NULL;
}

static struct err *open_bytes(struct image *im, const uint8_t *sha256)
{
	if ((uintptr_t)im->bytes % 8)
		return err_new(ERR_INVALID, "an image must lie at a multiple of 8 bytes");
	struct err *e = check_header(im, sha256);
	if (!e)
		e = check_sects(im);
	if (!e)
		e = check_small(im);
	if (!e && !counts_agree(im))
		e = damaged("its sections contradict each other");
	if (e)
		return e;
	memcpy(&im->meta, im->bytes + im->sects[IMAGE_SECT_META].off, sizeof(im->meta));
	set_pointers(im);
	set_space(im);
	e = check_segs(im);
	if (!im->space.file)
		im->space.file_len = 0;
	return e ? e : space_prepare(&im->space);
}

static struct image *image_new(const uint8_t *target, uint64_t target_len)
{
	struct image *im = calloc(1, sizeof(*im));
	if (im) {
		atomic_init(&im->ref_cnt, 1);
		im->space.file = target;
		im->space.file_len = target_len;
	}
	return im;
}

struct err *image_open_mem(const void *bytes, size_t len, const uint8_t *target, uint64_t target_len,
			   const uint8_t *sha256, struct image **ret)
{
	struct image *im = image_new(target, target_len);
	if (!im)
		return &err_nomem;
	im->bytes = bytes;
	im->len = len;
	struct err *e = open_bytes(im, sha256);
	if (e) {
		image_unref(im);
		return e;
	}
	*ret = im;
	return NULL;
}

/* Images are this user's own, and nobody else can write them. root may also use those of the owner of the
 * folder, which is how a store looks under sudo. */
static struct err *check_owner(const char *path, const struct file *f)
{
	bool is_ours = f->uid == geteuid();
	if (!is_ours && geteuid() == 0) {
		char dir[4096];
		const char *slash = strrchr(path, '/');
		size_t len = slash ? (size_t)(slash - path) + 1 : 0;
		struct stat st;
		if (len < sizeof(dir)) {
			memcpy(dir, path, len);
			dir[len] = '\0';
			is_ours = stat(len ? dir : ".", &st) == 0 && st.st_uid == f->uid;
		}
	}
	if (!is_ours)
		return err_new(ERR_BAD_INPUT, "%s: belongs to another user", path);
	if (f->mode & (S_IWGRP | S_IWOTH))
		return err_new(ERR_BAD_INPUT, "%s: others may write it", path);
	return NULL;
}

struct err *image_open(const char *path, const uint8_t *target, uint64_t target_len,
		       const uint8_t sha256[32], struct image **ret)
{
	struct image *im = image_new(target, target_len);
	if (!im)
		return &err_nomem;
	struct err *e = file_open(path, &im->file);
	if (e && e->os_errno == ENOENT) {
		err_free(e);
		e = err_new(ERR_NOT_FOUND, "%s: there is no image yet", path);
	}
	if (!e)
		e = check_owner(path, im->file);
	if (!e) {
		im->bytes = im->file->data;
		im->len = im->file->len;
		e = err_prefix(open_bytes(im, sha256), "%s", path);
	}
	if (!e && image_was_hit(im))
		e = err_prefix(damaged("it was cut"), "%s", path);
	if (e) {
		image_unref(im);
		return e;
	}
	*ret = im;
	return NULL;
}

struct image *image_ref(struct image *im)
{
	atomic_fetch_add(&im->ref_cnt, 1);
	return im;
}

void image_unref(struct image *im)
{
	if (!im || atomic_fetch_sub(&im->ref_cnt, 1) != 1)
		return;
	space_fini(&im->space);
	free(im->segs);
	free(im->seg_block);
	file_close(im->file);
	free(im);
}

bool image_was_hit(const struct image *im)
{
	return im->file && guard_was_hit(im->file->view);
}

uint64_t image_file_len(const struct image *im)
{
	return im->len;
}

const struct image_meta *image_meta(const struct image *im)
{
	return &im->meta;
}

const struct space *image_space(const struct image *im)
{
	return &im->space;
}

const char *image_text(const struct image *im, struct image_str s, size_t *ret_len)
{
	uint64_t len = im->sects[IMAGE_SECT_POOL].cnt;
	if (s.len && s.off < len && s.len < len - s.off && !im->pool[s.off + s.len]) {
		*ret_len = s.len;
		return im->pool + s.off;
	}
	*ret_len = 0;
	return "";
}

const struct image_func *image_funcs(const struct image *im, uint32_t *ret_cnt)
{
	return image_sect_data(im, IMAGE_SECT_FUNCS, ret_cnt);
}

const struct image_section *image_sections(const struct image *im, uint32_t *ret_cnt)
{
	return image_sect_data(im, IMAGE_SECT_SECTIONS, ret_cnt);
}

const struct image_symbol *image_symbols(const struct image *im, uint32_t *ret_cnt)
{
	return image_sect_data(im, IMAGE_SECT_SYMBOLS, ret_cnt);
}

const struct image_import *image_imports(const struct image *im, uint32_t *ret_cnt)
{
	return image_sect_data(im, IMAGE_SECT_IMPORTS, ret_cnt);
}

const struct image_string *image_strings(const struct image *im, uint32_t *ret_cnt)
{
	return image_sect_data(im, IMAGE_SECT_STRINGS, ret_cnt);
}

const struct image_name *image_names(const struct image *im, uint32_t *ret_cnt)
{
	return image_sect_data(im, IMAGE_SECT_NAMES, ret_cnt);
}

const struct image_table *image_tables(const struct image *im, uint32_t *ret_cnt)
{
	return image_sect_data(im, IMAGE_SECT_TABLES, ret_cnt);
}

const struct image_problem *image_problems(const struct image *im, uint32_t *ret_cnt)
{
	return image_sect_data(im, IMAGE_SECT_PROBLEMS, ret_cnt);
}

const struct image_type *image_types(const struct image *im, uint32_t *ret_cnt)
{
	return image_sect_data(im, IMAGE_SECT_TYPES, ret_cnt);
}

const struct image_var *image_vars(const struct image *im, uint32_t *ret_cnt)
{
	return image_sect_data(im, IMAGE_SECT_VARS, ret_cnt);
}

const struct image_str *image_needed(const struct image *im, uint32_t *ret_cnt)
{
	return image_sect_data(im, IMAGE_SECT_NEEDED, ret_cnt);
}

bool image_version(const struct image *im, uint32_t i, struct image_version *ret)
{
	uint32_t cnt;
	const struct image_version *v = image_sect_data(im, IMAGE_SECT_VERSIONS, &cnt);
	if (i >= cnt)
		return false;
	*ret = v[i];
	return true;
}
