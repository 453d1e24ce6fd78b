/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes, alignments and the places of members, as the System V ABIs for i386, AMD64 and AArch64 give them and gcc and clang
 * carry them out (PCC_BITFIELD_TYPE_MATTERS): a bit-field may not reach over more units of its declared type than that type
 * has, a named one aligns its struct, and one of width 0 starts the next unit even in packed structs.
 * #pragma pack is not known here: the parser turns it into the attributes that come to the same.
 */
#include "types/types_int.h"

uint64_t types_round_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) / to * to;
}

/* The alignment an atomic object has: its size, for the sizes that have instructions. */
static uint32_t types_atomic_align(uint64_t len)
{
	return len == 1 || len == 2 || len == 4 || len == 8 || len == 16 ? (uint32_t)len : 0;
}

uint32_t types_align_of(const struct types *t, struct types_ref r)
{
	const struct types_type *rec = types_get(t, r.id);
	if (rec->kind == TYPES_TYPEDEF && rec->align)
		return rec->align;
	r = types_real(t, r);
	rec = types_get(t, r.id);
	uint32_t atomic = r.quals & TYPES_ATOMIC ? types_atomic_align(rec->len) : 0;
	return MAX(rec->align, atomic);
}

bool types_layout(const struct types *t, struct types_ref r, uint64_t *ret_len, uint32_t *ret_align)
{
	const struct types_type *rec = types_get(t, types_real(t, r).id);
	if (!(rec->flags & TYPES_F_COMPLETE))
		return false;
	*ret_len = rec->len;
	*ret_align = types_align_of(t, r);
	return true;
}

bool types_is_signed(const struct types *t, struct types_ref r)
{
	const struct types_type *rec = types_get(t, types_real(t, r).id);
	if (rec->kind == TYPES_ENUM)
		rec = types_get(t, rec->target.id);
	return rec->kind == TYPES_INT && t->row->base[rec->base].is_signed;
}

struct types_ref types_pointer(struct types *t, struct types_ref target)
{
	struct types_type rec = {.kind = TYPES_POINTER, .flags = TYPES_F_COMPLETE, .target = target, .len = t->row->ptr_len,
				 .align = t->row->ptr_len, .depth = types_get(t, target.id)->depth + 1};
	return (struct types_ref){types_add(t, &rec), 0};
}

struct types_ref types_array(struct types *t, struct types_ref elem, uint64_t cnt, bool is_open, const char **why)
{
	uint64_t len, bytes;
	uint32_t align;
	if (!types_layout(t, elem, &len, &align)) {
		*why = "array of a type without a size";
		return (struct types_ref){0};
	}
	if (__builtin_mul_overflow(len, cnt, &bytes) || bytes > TYPES_LEN_MAX ||
	    (t->row->ptr_len == 4 && bytes > INT32_MAX)) {
		*why = "array is too large";
		return (struct types_ref){0};
	}
	/* C 6.7.2.1: an array of flexible things cannot be stepped through. */
	struct types_type rec = {.kind = TYPES_ARRAY, .target = elem, .cnt = cnt, .len = bytes, .align = align,
				 .flags = is_open ? TYPES_F_OPEN : TYPES_F_COMPLETE,
				 .depth = types_get(t, elem.id)->depth + 1};
	return (struct types_ref){types_add(t, &rec), 0};
}

struct types_ref types_vector(struct types *t, struct types_ref elem, uint64_t len, const char **why)
{
	const struct types_type *e = types_get(t, types_real(t, elem).id);
	if ((e->kind != TYPES_INT && e->kind != TYPES_FLOAT) || !e->len) {
		*why = "vector_size of a type that is no number";
		return (struct types_ref){0};
	}
	if (!len || len % e->len || (len & (len - 1)) || len > 1 << 20) {
		*why = "vector_size must be a power of two, a multiple of the element's size and at most 1 MiB";
		return (struct types_ref){0};
	}
	struct types_type rec = {.kind = TYPES_VECTOR, .flags = TYPES_F_COMPLETE, .target = elem, .cnt = len / e->len, .len = len,
				 .align = (uint32_t)len, .depth = types_get(t, elem.id)->depth + 1};
	return (struct types_ref){types_add(t, &rec), 0};
}

struct types_ref types_complex(struct types *t, enum types_base part)
{
	const struct types_base_row *row = &t->row->base[part];
	struct types_type rec = {.kind = TYPES_COMPLEX, .flags = TYPES_F_COMPLETE, .target = {t->base_id[part], 0},
				 .len = 2 * row->len, .align = row->align, .depth = 2};
	return (struct types_ref){types_add(t, &rec), 0};
}

/* Places a bit-field at or after `*bits`; gives the alignment it asks of its struct. */
static uint32_t types_place_bits(const struct types *t, struct types_member *m, bool is_packed, uint64_t *bits)
{
	uint64_t unit_bits = types_get(t, types_real(t, m->type).id)->len * 8;
	uint32_t align = types_align_of(t, m->type);
	uint32_t asked = is_packed && m->bit_len ? 1 : align;
	if (!m->bit_len) {
		*bits = types_round_up(*bits, (uint64_t)align * 8);
	} else if (m->user_align) {
		*bits = types_round_up(*bits, (uint64_t)m->user_align * 8);
		asked = MAX(asked, m->user_align);
	}
	if (m->bit_len && !is_packed) {
		uint64_t from = *bits % ((uint64_t)align * 8);
		if ((from + m->bit_len + align * 8 - 1) / (align * 8) > unit_bits / (align * 8))
			*bits = types_round_up(*bits, (uint64_t)align * 8);
	}
	m->off = *bits / 8;
	m->bit_off = (uint32_t)(*bits % 8);
	*bits += m->bit_len;
	return m->name || t->row->has_anon_align ? asked : 1;
}

const char *types_place_members(const struct types *t, struct types_type *rec, struct types_member *members, uint32_t cnt)
{
	uint64_t bits = 0, max_bits = 0;
	uint32_t align = 1;
	for (uint32_t i = 0; i < cnt; i++) {
		struct types_member *m = &members[i];
		bool is_packed = m->is_packed || rec->flags & TYPES_F_PACKED;
		if (rec->kind == TYPES_UNION)
			bits = 0;
		uint32_t asked;
		if (m->is_bitfield) {
			asked = types_place_bits(t, m, is_packed, &bits);
		} else {
			asked = is_packed ? 1 : types_align_of(t, m->type);
			asked = MAX(asked, m->user_align);
			bits = types_round_up(bits, (uint64_t)asked * 8);
			m->off = bits / 8;
			bits += types_get(t, types_real(t, m->type).id)->len * 8;
		}
		align = MAX(align, asked);
		max_bits = MAX(max_bits, bits);
		if (max_bits / 8 > TYPES_LEN_MAX)
			return "struct is too large";
	}
	align = MAX(align, rec->user_align);
	rec->align = align;
	rec->len = types_round_up((max_bits + 7) / 8, align);
	rec->flags |= TYPES_F_COMPLETE;
	return rec->len > TYPES_LEN_MAX || (t->row->ptr_len == 4 && rec->len > INT32_MAX) ? "struct is too large" : NULL;
}
