/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_IMAGE_INT_H
#define IMAGE_IMAGE_INT_H

#include "base/bits.h"
#include "base/file.h"
#include "image/image.h"

#include <assert.h>
#include <stdatomic.h>

/*
 * The form of the file, shared by its writer and its reader (docs/image-format.md says the same in prose):
 * a header, a table with one entry per section in the order of enum image_sect, then the sections, each at
 * a multiple of 8 bytes. Numbers are little-endian, and so is the machine.
 */
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "image files are used in place");

#define IMAGE_MAGIC "SCRYIMG" /* with its NUL: 8 bytes */

/* How the elements of a section are kept. */
enum image_form {
	IMAGE_RECORDS, /* cnt elements of elem_len bytes */
	IMAGE_BITS,    /* cnt bits in 64-bit words */
	IMAGE_PACKED,  /* cnt numbers of `width` bits, one word of slack at the end */
	IMAGE_SEQ,     /* cnt rising numbers in blocks of 64, see struct image_seq */
	IMAGE_DIR,     /* u32 each: element p is the number of keys below p << width; the last one is all of them */
};

/* X(name, form, bytes of an element) */
#define IMAGE_SECTS(X)                                                    \
	X(META, IMAGE_RECORDS, sizeof(struct image_meta))                 \
	X(SEGS, IMAGE_RECORDS, sizeof(struct space_seg))                  \
	X(SECTIONS, IMAGE_RECORDS, sizeof(struct image_section))          \
	X(POOL, IMAGE_RECORDS, 1)                                         \
	X(RELOC_LOC, IMAGE_RECORDS, 4)                                    \
	X(RELOC_VAL, IMAGE_RECORDS, 4)                                    \
	X(RELOC_KIND, IMAGE_RECORDS, 1)                                   \
	X(RELOC_WIDE, IMAGE_RECORDS, 8)                                   \
	X(SYMBOLS, IMAGE_RECORDS, sizeof(struct image_symbol))            \
	X(VERSIONS, IMAGE_RECORDS, sizeof(struct image_version))          \
	X(IMPORTS, IMAGE_RECORDS, sizeof(struct image_import))            \
	X(IMPORT_LOCS, IMAGE_RECORDS, sizeof(struct image_import_loc))    \
	X(NEEDED, IMAGE_RECORDS, sizeof(struct image_str))                \
	X(NAMES, IMAGE_RECORDS, sizeof(struct image_name))                \
	X(NAME_DIR, IMAGE_DIR, 4)                                         \
	X(NAME_ORDER, IMAGE_PACKED, 8)                                    \
	X(ITEM_BITS, IMAGE_BITS, 8)                                       \
	X(ITEM_RANK, IMAGE_RECORDS, 4)                                    \
	X(NOBITS_ITEMS, IMAGE_SEQ, 8)                                     \
	X(BLOCK_BITS, IMAGE_BITS, 8)                                      \
	X(BLOCK_EXTRA, IMAGE_RECORDS, 4)                                  \
	X(RUN_LOC, IMAGE_SEQ, 8)                                          \
	X(RUN_DIR, IMAGE_DIR, 4)                                          \
	X(RUN_KIND, IMAGE_RECORDS, 1)                                     \
	X(FUNCS, IMAGE_RECORDS, sizeof(struct image_func))                \
	X(FUNC_DIR, IMAGE_DIR, 4)                                         \
	X(FUNC_RANGES, IMAGE_RECORDS, sizeof(struct image_range))         \
	X(RANGE_ORDER, IMAGE_PACKED, 8)                                   \
	X(RANGE_DIR, IMAGE_DIR, 4)                                        \
	X(XREF_FROM, IMAGE_SEQ, 8)                                        \
	X(XREF_FROM_DIR, IMAGE_DIR, 4)                                    \
	X(XREF_TO, IMAGE_PACKED, 8)                                       \
	X(XREF_REV, IMAGE_PACKED, 8)                                      \
	X(XREF_TO_DIR, IMAGE_DIR, 4)                                      \
	X(STRINGS, IMAGE_RECORDS, sizeof(struct image_string))            \
	X(STRING_DIR, IMAGE_DIR, 4)                                       \
	X(TABLES, IMAGE_RECORDS, sizeof(struct image_table))              \
	X(TARGETS, IMAGE_RECORDS, 4)                                      \
	X(PROTOS, IMAGE_RECORDS, sizeof(struct image_proto))              \
	X(TYPES, IMAGE_RECORDS, sizeof(struct image_type))                \
	X(TYPE_SUBS, IMAGE_RECORDS, sizeof(struct image_type_sub))        \
	X(VARS, IMAGE_RECORDS, sizeof(struct image_var))                  \
	X(LINE_LOC, IMAGE_SEQ, 8)                                         \
	X(LINE_FILE, IMAGE_PACKED, 8)                                     \
	X(LINE_NUM, IMAGE_PACKED, 8)                                      \
	X(LINE_FILES, IMAGE_RECORDS, sizeof(struct image_str))            \
	X(PROBLEMS, IMAGE_RECORDS, sizeof(struct image_problem))

#define IMAGE_SECT_ENUM(name, form, elem_len) IMAGE_SECT_##name,
enum image_sect { IMAGE_SECTS(IMAGE_SECT_ENUM) IMAGE_SECT_COUNT };

struct image_sect_info {
	const char *name;
	uint8_t form;
	uint32_t elem_len;
};
extern const struct image_sect_info image_sect_infos[IMAGE_SECT_COUNT];

struct image_header {
	char magic[8];
	uint32_t format_version;
	uint32_t engine_version;
	uint64_t file_len;   /* of the image */
	uint64_t target_len;
	uint8_t target_sha256[32];
	uint32_t sect_cnt;
	uint32_t pad;
	uint64_t xxh3;       /* of header and table with this field 0 */
};

struct image_sect_entry {
	uint32_t kind;       /* enum image_sect: its place in the table */
	uint8_t form;        /* enum image_form */
	uint8_t width;       /* bits a number, or the shift of a directory */
	uint16_t elem_len;
	uint64_t off, len;   /* bytes from the start of the file */
	uint64_t cnt;
	uint64_t xxh3;       /* of the section's bytes */
};

/* The three places an import is met at, sorted by loc. */
struct image_import_loc { uint32_t loc, import; };

/* Nothing in the file may be padding of the compiler. */
static_assert(sizeof(struct image_header) == 80 && sizeof(struct image_sect_entry) == 40, "layout");
static_assert(sizeof(struct image_meta) == 152 && sizeof(struct space_seg) == 56, "layout");
static_assert(sizeof(struct image_section) == 48 && sizeof(struct image_symbol) == 24, "layout");
static_assert(sizeof(struct image_name) == 16 && sizeof(struct image_func) == 36, "layout");
static_assert(sizeof(struct image_table) == 32 && sizeof(struct image_proto) == 24, "layout");
static_assert(sizeof(struct image_type) == 40 && sizeof(struct image_type_sub) == 24 && sizeof(struct image_var) == 12, "layout");
static_assert(sizeof(struct image_problem) == 32 && sizeof(struct image_import) == 16, "layout");

/* Numbers of a fixed width of at most 57 bits. */
struct image_packed {
	const uint8_t *bytes;
	uint64_t cnt;
	uint8_t width;
};

static inline uint64_t image_bits_at(const uint8_t *bytes, uint64_t bit, unsigned width)
{
	uint64_t v;
	__builtin_memcpy(&v, bytes + bit / 8, sizeof(v));
	return v >> (bit % 8) & (((uint64_t)1 << width) - 1);
}

/* i < cnt. */
static inline uint64_t image_packed_at(const struct image_packed *p, uint64_t i)
{
	return image_bits_at(p->bytes, i * p->width, p->width);
}

/*
 * A rising sequence of locs: per 64 of them a head with the first one and where the block's words begin; the
 * words hold the distances to the first one, all of a block with the same width. A block of width w takes exactly
 * w words, so the width is the difference of two heads. One more head ends the list.
 */
#define IMAGE_SEQ_BLOCK 64

struct image_seq_head { uint32_t first, word; };

struct image_seq {
	const struct image_seq_head *heads;
	const uint8_t *bytes; /* of the words */
	uint64_t cnt;
	uint64_t word_cnt;
};

/* i < cnt; LOC_NONE for a damaged block. */
static inline uint32_t image_seq_at(const struct image_seq *s, uint64_t i)
{
	const struct image_seq_head *h = &s->heads[i / IMAGE_SEQ_BLOCK];
	uint32_t width = h[1].word - h->word;
	if (width > 32 || (uint64_t)h->word + width > s->word_cnt)
		return LOC_NONE;
	uint64_t bit = (uint64_t)h->word * 64 + i % IMAGE_SEQ_BLOCK * width;
	return h->first + (uint32_t)image_bits_at(s->bytes, bit, width);
}

struct image_dir {
	const uint32_t *data;
	uint64_t cnt;
	uint8_t shift;
};

struct image {
	atomic_uint ref_cnt;
	struct file *file;            /* null over memory */
	const uint8_t *bytes;
	size_t len;
	struct image_sect_entry sects[IMAGE_SECT_COUNT]; /* checked copies */
	struct image_meta meta;       /* a copy */
	struct space space;
	struct space_seg *segs;       /* a checked copy, so that hot paths need not test it */
	uint32_t *seg_block;          /* per segment and one more: its first block of 512 item bits */
	const char *pool;
	const uint64_t *item_bits;
	const uint32_t *item_rank;
	struct image_seq nobits;
	const uint64_t *block_bits;
	struct image_seq run_loc;
	const uint8_t *run_kind;
	struct image_packed name_order, range_order, xref_to, xref_rev, line_file, line_num;
	struct image_seq xref_from, line_loc;
	struct image_dir name_dir, run_dir, func_dir, range_dir, xref_from_dir, xref_to_dir, string_dir;
};

/* Start and number of elements of a section of records. */
static inline const void *image_sect_data(const struct image *im, enum image_sect kind, uint32_t *ret_cnt)
{
	*ret_cnt = (uint32_t)im->sects[kind].cnt;
	return im->bytes + im->sects[kind].off;
}

/*
 * First position in [0, cnt) whose key is not below `loc`, or cnt; `key` gives the key of a position. The
 * directory narrows the search to a few; one that lies costs a full binary search or a wrong answer, never
 * a position past cnt.
 */
typedef uint32_t image_key_fn(const struct image *im, uint64_t pos);

static inline __attribute__((always_inline)) uint64_t
image_lower(const struct image *im, const struct image_dir *dir, uint64_t cnt, uint32_t loc, image_key_fn *key)
{
	uint64_t lo = 0, hi = cnt;
	uint64_t p = (uint64_t)loc >> dir->shift;
	if (p + 1 < dir->cnt && dir->data[p] <= dir->data[p + 1] && dir->data[p + 1] <= cnt) {
		lo = dir->data[p];
		hi = dir->data[p + 1];
	}
	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;
		if (key(im, mid) < loc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The number after the last position whose key is at most loc. */
static inline __attribute__((always_inline)) uint64_t
image_upper(const struct image *im, const struct image_dir *dir, uint64_t cnt, uint32_t loc, image_key_fn *key)
{
	return loc == UINT32_MAX ? cnt : image_lower(im, dir, cnt, loc + 1, key);
}

/* sort.c: orders references by (from, to, kind) and removes repeats; positions of `xrefs` in order of
 * (to, from, kind) into `ret`, which has room for cnt. False when memory ran out. */
bool image_sort_xrefs(struct image_xref *xrefs, size_t *cnt);
bool image_sort_reverse(const struct image_xref *xrefs, size_t cnt, uint32_t *ret);

#endif
