/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader of BTF for printing. One pass finds where each type begins and puts structs, unions and typedefs into a hash
 * table by name; everything else is looked at when a struct is printed.
 */
#include "live/trace/trace_btf.h"

#include "live/trace/trace_int.h"

#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KIND_INT = 1, KIND_PTR, KIND_ARRAY, KIND_STRUCT, KIND_UNION, KIND_ENUM, KIND_FWD, KIND_TYPEDEF, KIND_VOLATILE, KIND_CONST,
       KIND_RESTRICT, KIND_FUNC, KIND_FUNC_PROTO, KIND_VAR, KIND_DATASEC, KIND_FLOAT, KIND_DECL_TAG, KIND_TYPE_TAG, KIND_ENUM64 };

#define TYPE_MAX 2000000   /* types of a file */
#define DEPTH_MAX 8        /* structs inside structs, and steps from a name to its type */
#define OUT_MAX 8192       /* bytes of a printed struct */
#define ELEMENT_MAX 32     /* elements of an array */

struct trace_btf {
	const uint8_t *types, *strs;
	uint32_t types_len, strs_len;
	uint32_t *offs;        /* of type id - 1 in `types` */
	uint32_t cnt;
	uint32_t *by_name;     /* type ids, 0 free */
	uint32_t name_mask;
	void *owned;
};

struct type {
	uint32_t name, size; /* size or type */
	uint32_t kind, vlen;
	bool has_bits;       /* kind_flag: offsets of members have the width of a bit field on top */
	const uint8_t *rest; /* what follows the twelve bytes */
};

static uint32_t rest_len(uint32_t kind, uint32_t vlen)
{
	switch (kind) {
	case KIND_INT: case KIND_VAR: case KIND_DECL_TAG: return 4;
	case KIND_ARRAY: return 12;
	case KIND_STRUCT: case KIND_UNION: case KIND_DATASEC: case KIND_ENUM64: return 12 * vlen;
	case KIND_ENUM: case KIND_FUNC_PROTO: return 8 * vlen;
	default: return 0;
	}
}

static struct type type_at(const struct trace_btf *b, uint32_t off)
{
	const uint8_t *p = b->types + off;
	uint32_t info = load_u32(p + 4, false);
	return (struct type){.name = load_u32(p, false), .size = load_u32(p + 8, false), .kind = info >> 24 & 31, .vlen = info & 0xffff,
			     .has_bits = info >> 31, .rest = p + 12};
}

static bool get_type(const struct trace_btf *b, uint32_t id, struct type *ret)
{
	if (!id || id > b->cnt)
		return false;
	*ret = type_at(b, b->offs[id - 1]);
	return true;
}

/* Past names, const and the like. */
static bool resolve(const struct trace_btf *b, uint32_t id, struct type *ret)
{
	for (unsigned i = 0; i < 4 * DEPTH_MAX; i++) {
		if (!get_type(b, id, ret))
			return false;
		if (ret->kind != KIND_TYPEDEF && ret->kind != KIND_VOLATILE && ret->kind != KIND_CONST && ret->kind != KIND_RESTRICT &&
		    ret->kind != KIND_TYPE_TAG)
			return true;
		id = ret->size;
	}
	return false;
}

static const char *name_at(const struct trace_btf *b, uint32_t off)
{
	return off < b->strs_len ? (const char *)b->strs + off : "";
}

static uint32_t hash(const char *s)
{
	uint32_t h = 2166136261u;
	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 16777619u;
	return h;
}

static struct err *index_names(struct trace_btf *b)
{
	uint32_t cap = 64;
	while (cap < 2 * b->cnt)
		cap *= 2;
	b->by_name = alloc_array(cap, sizeof(*b->by_name));
	if (!b->by_name)
		return &err_nomem;
	b->name_mask = cap - 1;
	for (uint32_t id = 1; id <= b->cnt; id++) {
		struct type t = type_at(b, b->offs[id - 1]);
		if (!t.name || (t.kind != KIND_STRUCT && t.kind != KIND_UNION && t.kind != KIND_TYPEDEF))
			continue;
		uint32_t at = hash(name_at(b, t.name)) & b->name_mask;
		while (b->by_name[at])
			at = (at + 1) & b->name_mask;
		b->by_name[at] = id;
	}
	return NULL;
}

static struct err *read_types(struct trace_btf *b)
{
	uint32_t cap = 0;
	for (uint32_t at = 0; at < b->types_len;) {
		if (b->types_len - at < 12)
			return err_new(ERR_BAD_INPUT, "BTF: type %u is cut", b->cnt + 1);
		struct type t = type_at(b, at);
		uint32_t more = rest_len(t.kind, t.vlen);
		if (!t.kind || t.kind > KIND_ENUM64)
			return err_new(ERR_BAD_INPUT, "BTF: type %u is of the unknown kind %u", b->cnt + 1, t.kind);
		if (b->types_len - at - 12 < more || b->cnt == TYPE_MAX)
			return err_new(ERR_BAD_INPUT, "BTF: type %u reaches past the end", b->cnt + 1);
		if (b->cnt == cap) {
			cap = cap ? 2 * cap : 1024;
			uint32_t *grown = realloc(b->offs, cap * sizeof(*grown));
			if (!grown)
				return &err_nomem;
			b->offs = grown;
		}
		b->offs[b->cnt++] = at;
		at += 12 + more;
	}
	return index_names(b);
}

struct err *trace_btf_open(const void *bytes, size_t len, struct trace_btf **ret)
{
	struct cur c = cur_make(bytes, len, false);
	uint16_t magic = cur_u16(&c);
	cur_skip(&c, 2);
	uint32_t head = cur_u32(&c), type_off = cur_u32(&c), type_len = cur_u32(&c), str_off = cur_u32(&c), str_len = cur_u32(&c);
	if (c.failed || magic != 0xeb9f)
		return err_new(ERR_BAD_INPUT, "BTF: not little-endian BTF");
	struct cur types = cur_sub(&c, (uint64_t)head + type_off, type_len), strs = cur_sub(&c, (uint64_t)head + str_off, str_len);
	if (types.failed || strs.failed || !str_len || strs.base[str_len - 1])
		return err_new(ERR_BAD_INPUT, "BTF: its sections do not lie in the %zu bytes", len);
	struct trace_btf *b = calloc(1, sizeof(*b));
	if (!b)
		return &err_nomem;
	b->types = types.base;
	b->types_len = type_len;
	b->strs = strs.base;
	b->strs_len = str_len;
	struct err *e = read_types(b);
	if (e) {
		trace_btf_free(b);
		return e;
	}
	*ret = b;
	return NULL;
}

struct err *trace_btf_open_kernel(struct trace_btf **ret)
{
	_cleanup_close_ int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) || st.st_size <= 0 || st.st_size > 1 << 28)
		return err_new(ERR_UNSUPPORTED, "this kernel describes no types (/sys/kernel/btf/vmlinux)");
	_cleanup_free_ uint8_t *bytes = malloc((size_t)st.st_size);
	size_t len = 0;
	while (bytes && len < (size_t)st.st_size) {
		ssize_t n = read(fd, bytes + len, (size_t)st.st_size - len);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	struct err *e = bytes ? trace_btf_open(bytes, len, ret) : &err_nomem;
	if (!e)
		(*ret)->owned = take_ptr(bytes);
	return e;
}

void trace_btf_free(struct trace_btf *b)
{
	if (!b)
		return;
	free(b->offs);
	free(b->by_name);
	free(b->owned);
	free(b);
}

/* --- printing ------------------------------------------------------------------------------------------------------- */
struct printer {
	const struct trace_btf *b;
	struct buf *out;
	size_t out_end;      /* no more is written past it */
	const uint8_t *bytes;
	uint64_t len;
};

static bool is_full(const struct printer *p)
{
	return p->out->failed || p->out->len >= p->out_end;
}

static uint64_t load_bits(const struct printer *p, uint64_t bit, unsigned cnt)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < cnt; i++) /* at most 64 */
		v |= (uint64_t)(p->bytes[(bit + i) / 8] >> ((bit + i) % 8) & 1) << i;
	return v;
}

static bool put_value(struct printer *p, uint32_t id, uint64_t bit, uint32_t bits, unsigned depth);

static void put_int(struct printer *p, const struct type *t, uint64_t bit, unsigned bits)
{
	uint32_t encoding = load_u32(t->rest, false) >> 24;
	uint64_t v = load_bits(p, bit, bits);
	if (encoding & 1 && bits < 64) /* signed */
		v = (uint64_t)((int64_t)(v << (64 - bits)) >> (64 - bits));
	buf_printf(p->out, encoding & 1 ? "%" PRId64 : "%" PRIu64, v);
}

static void put_enum_name(struct printer *p, const struct type *t, uint64_t v, unsigned bits)
{
	size_t each = t->kind == KIND_ENUM ? 8 : 12;
	uint64_t mask = bits < 64 ? ((uint64_t)1 << bits) - 1 : UINT64_MAX;
	for (uint32_t i = 0; i < t->vlen; i++) {
		const uint8_t *e = t->rest + i * each;
		uint64_t value = load_u32(e + 4, false) | (each == 12 ? (uint64_t)load_u32(e + 8, false) << 32 : 0);
		if ((value & mask) == v) {
			buf_add_str(p->out, name_at(p->b, load_u32(e, false)));
			return;
		}
	}
	buf_printf(p->out, "%" PRIu64, v);
}

static bool type_bits(const struct trace_btf *b, uint32_t id, unsigned depth, uint64_t *ret)
{
	struct type t;
	if (depth > DEPTH_MAX || !resolve(b, id, &t))
		return false;
	if (t.kind == KIND_ARRAY) {
		uint64_t each;
		return type_bits(b, load_u32(t.rest, false), depth + 1, &each) &&
		       !__builtin_mul_overflow(each, (uint64_t)load_u32(t.rest + 8, false), ret);
	}
	*ret = t.kind == KIND_PTR ? 64 : 8 * (uint64_t)t.size;
	return t.kind != KIND_FUNC && t.kind != KIND_FUNC_PROTO && t.kind != KIND_FWD;
}

static bool put_array(struct printer *p, const struct type *t, uint64_t bit, unsigned depth)
{
	uint32_t elem = load_u32(t->rest, false), cnt = load_u32(t->rest + 8, false);
	struct type e;
	uint64_t each;
	if (!resolve(p->b, elem, &e) || !type_bits(p->b, elem, 0, &each) || !each)
		return false;
	if (e.kind == KIND_INT && each == 8 && bit % 8 == 0) {
		uint64_t have = MIN(cnt, p->len > bit / 8 ? p->len - bit / 8 : 0);
		size_t text = strnlen((const char *)p->bytes + bit / 8, have);
		trace_put_quoted(p->out, p->bytes + bit / 8, MIN(text, 256), false);
		return true;
	}
	buf_add_ch(p->out, '[');
	for (uint32_t i = 0; i < cnt; i++) {
		buf_add_str(p->out, i ? ", " : "");
		if (i == ELEMENT_MAX || is_full(p) || !put_value(p, elem, bit + i * each, 0, depth + 1)) {
			buf_add_str(p->out, "...");
			break;
		}
	}
	buf_add_ch(p->out, ']');
	return true;
}

static bool put_members(struct printer *p, const struct type *t, uint64_t bit, unsigned depth)
{
	bool any = false;
	buf_add_ch(p->out, '{');
	for (uint32_t i = 0; i < t->vlen; i++) {
		const uint8_t *m = t->rest + 12 * (size_t)i;
		uint32_t off = load_u32(m + 8, false), bits = t->has_bits ? off >> 24 : 0;
		const char *name = name_at(p->b, load_u32(m, false));
		size_t before = p->out->len;
		if (any)
			buf_add_str(p->out, ", ");
		if (*name)
			buf_printf(p->out, "%.64s=", name);
		if (is_full(p) || !put_value(p, load_u32(m + 4, false), bit + (t->has_bits ? off & 0xffffff : off), bits, depth + 1)) {
			if (!p->out->failed)
				p->out->len = before;
			buf_add_str(p->out, any ? ", ..." : "...");
			break;
		}
		any = true;
	}
	buf_add_ch(p->out, '}');
	return true;
}

/* The value of type `id` that begins at bit `bit`; `bits` is the width of a bit field, or 0. False: it does not lie in the bytes, or
 * cannot be told; what was written is the caller's to take back. */
static bool put_value(struct printer *p, uint32_t id, uint64_t bit, uint32_t bits, unsigned depth)
{
	struct type t;
	uint64_t width;
	if (depth > DEPTH_MAX || !resolve(p->b, id, &t))
		return false;
	if (t.kind == KIND_STRUCT || t.kind == KIND_UNION)
		return bit / 8 <= p->len && put_members(p, &t, bit, depth);
	if (t.kind == KIND_ARRAY)
		return bit / 8 < p->len && put_array(p, &t, bit, depth);
	if (!type_bits(p->b, id, 0, &width))
		return false;
	width = bits ? bits : width;
	if (!width || width > 64 || bit > 8 * p->len || width > 8 * p->len - bit)
		return false;
	if (t.kind == KIND_INT)
		put_int(p, &t, bit, (unsigned)width);
	else if (t.kind == KIND_PTR)
		trace_put_ptr(p->out, load_bits(p, bit, (unsigned)width));
	else if (t.kind == KIND_ENUM || t.kind == KIND_ENUM64)
		put_enum_name(p, &t, load_bits(p, bit, (unsigned)width), (unsigned)width);
	else
		return false;
	return true;
}

/* The struct or union of that name, or that a name is for. */
static bool find_named(const struct trace_btf *b, const char *name, struct type *ret)
{
	for (uint32_t at = hash(name) & b->name_mask; b->by_name[at]; at = (at + 1) & b->name_mask) {
		uint32_t id = b->by_name[at];
		if (get_type(b, id, ret) && strcmp(name_at(b, ret->name), name) == 0 && resolve(b, id, ret) &&
		    (ret->kind == KIND_STRUCT || ret->kind == KIND_UNION))
			return true;
	}
	return false;
}

bool trace_btf_member(const struct trace_btf *b, const char *name, const char *member, uint32_t *ret_off)
{
	struct type t;
	bool is_there = find_named(b, name, &t);
	for (uint32_t i = 0; is_there && i < t.vlen; i++) {
		const uint8_t *m = t.rest + 12 * (size_t)i;
		uint32_t bit = load_u32(m + 8, false);
		bit = t.has_bits ? bit & 0xffffff : bit;
		if (strcmp(name_at(b, load_u32(m, false)), member) != 0 || bit % 8)
			continue;
		*ret_off = bit / 8;
		return true;
	}
	return false;
}

bool trace_btf_put(const struct trace_btf *b, const char *name, const uint8_t *bytes, size_t len, struct buf *out)
{
	struct printer p = {.b = b, .out = out, .out_end = out->len + OUT_MAX, .bytes = bytes, .len = len};
	struct type t;
	return find_named(b, name, &t) && put_members(&p, &t, 0, 0);
}
