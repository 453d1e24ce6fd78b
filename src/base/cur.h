/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CUR_H
#define BASE_CUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The only way to read bytes of input. A cursor is a range, a position, a byte order and a sticky
 * `failed`: a read past the end gives 0 (or null), sets `failed` and moves nothing, so a parser may
 * read a whole record and test once. `pos` is an offset in bytes from `base`.
 * Widening is by explicit unsigned casts; structs are never overlaid on input.
 */
struct cur {
	const uint8_t *base;
	size_t len;
	size_t pos;
	bool is_be;
	bool failed;
};

/* A cursor over `len` bytes at `base`, which the caller keeps alive. */
static inline struct cur cur_make(const void *base, size_t len, bool is_be)
{
	return (struct cur){.base = (const uint8_t *)base, .len = base ? len : 0, .is_be = is_be};
}

/* A cursor over [off, off + len) of `c`; a range that does not lie in `c` gives an empty failed one. */
static inline struct cur cur_sub(const struct cur *c, uint64_t off, uint64_t len)
{
	if (off > c->len || len > c->len - off)
		return (struct cur){.is_be = c->is_be, .failed = true};
	return cur_make(c->base ? c->base + off : NULL, (size_t)len, c->is_be);
}

static inline size_t cur_left(const struct cur *c)
{
	return c->failed ? 0 : c->len - c->pos;
}

/* Moves to `pos` bytes from the base; past the end fails. */
static inline void cur_seek(struct cur *c, uint64_t pos)
{
	if (pos > c->len)
		c->failed = true;
	else
		c->pos = (size_t)pos;
}

static inline void cur_skip(struct cur *c, uint64_t n)
{
	if (n > cur_left(c))
		c->failed = true;
	else
		c->pos += (size_t)n;
}

/* The next `n` bytes, borrowed from the input; null and `failed` when fewer are left. */
static inline const uint8_t *cur_bytes(struct cur *c, uint64_t n)
{
	if (n > cur_left(c)) {
		c->failed = true;
		return NULL;
	}
	/* Nothing at all may be of no memory; adding to a null pointer is undefined, even 0. */
	const uint8_t *p = c->base ? c->base + c->pos : NULL;
	c->pos += (size_t)n;
	return p;
}

/* Unaligned loads in a given byte order; the caller has checked the range. */
static inline uint16_t load_u16(const uint8_t *p, bool is_be)
{
	return is_be ? (uint16_t)((unsigned)p[0] << 8 | p[1]) : (uint16_t)((unsigned)p[1] << 8 | p[0]);
}

static inline uint32_t load_u32(const uint8_t *p, bool is_be)
{
	uint32_t v;
	__builtin_memcpy(&v, p, sizeof(v));
	return is_be ? __builtin_bswap32(v) : v;
}

static inline uint64_t load_u64(const uint8_t *p, bool is_be)
{
	uint64_t v;
	__builtin_memcpy(&v, p, sizeof(v));
	return is_be ? __builtin_bswap64(v) : v;
}

static inline uint8_t cur_u8(struct cur *c)
{
	const uint8_t *p = cur_bytes(c, 1);
	return p ? *p : 0;
}

static inline uint16_t cur_u16(struct cur *c)
{
	const uint8_t *p = cur_bytes(c, 2);
	return p ? load_u16(p, c->is_be) : 0;
}

static inline uint32_t cur_u32(struct cur *c)
{
	const uint8_t *p = cur_bytes(c, 4);
	return p ? load_u32(p, c->is_be) : 0;
}

static inline uint64_t cur_u64(struct cur *c)
{
	const uint8_t *p = cur_bytes(c, 8);
	return p ? load_u64(p, c->is_be) : 0;
}

/* A word of 4 or 8 bytes, zero-extended. */
static inline uint64_t cur_word(struct cur *c, unsigned word_len)
{
	return word_len == 8 ? cur_u64(c) : cur_u32(c);
}

/* DWARF's variable-length integers (DWARF 5, 7.6); more than 64 bits of value fails. */
uint64_t cur_uleb(struct cur *c);
int64_t cur_sleb(struct cur *c);

/* A NUL-terminated string, borrowed; null and `failed` when no NUL is left. `*ret_len` excludes the NUL. */
const char *cur_str(struct cur *c, size_t *ret_len);

#endif
