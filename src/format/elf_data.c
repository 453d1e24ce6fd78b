/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a section as they should be read: unpacked (gABI, "Section compression", and GNU's
 * older .zdebug form) and, for objects, with the relocations of sections that are not mapped
 * applied, which for debug information means offsets into other debug sections and addresses of
 * code.
 */
#include "format/elf_int.h"
#include "format/fmt_int.h"

#include <elf.h>

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

/* What an unpacked section may be, whatever it claims. */
static bool is_sane_size(const struct fmt_bin *b, uint64_t in_len, uint64_t out_len)
{
	return out_len <= (uint64_t)1 << 30 && out_len / 1032 <= in_len &&
	       out_len <= ((uint64_t)48 << 20) + 8 * b->bytes_len;
}

/* An unpacked section. */
struct unpacked {
	const uint8_t *data;
	size_t len;
};

static struct err *unpack(const struct fmt_bin *b, struct cur *c, enum fmt_packing packing,
			  uint64_t out_len, struct arena *arena, struct unpacked *ret)
{
	size_t in_len = cur_left(c);
	if (!is_sane_size(b, in_len, out_len))
		return err_new(ERR_BUDGET,
			       "%llu bytes out of %zu packed ones are more than scry unpacks",
			       (unsigned long long)out_len, in_len);
	uint8_t *out = arena_alloc(arena, out_len ? (size_t)out_len : 1);
	if (!out)
		return &err_nomem;
	struct err *err = fmt_unpack(packing, cur_bytes(c, in_len), in_len, out, (size_t)out_len);
	if (err)
		return err;
	*ret = (struct unpacked){out, (size_t)out_len};
	return NULL;
}

static struct err *unpack_section(const struct fmt_bin *b, const struct fmt_section *s,
				  struct arena *arena, struct unpacked *ret)
{
	struct cur c = cur_make(b->bytes + s->file_off, (size_t)s->file_len, b->is_be);
	if (s->raw_flags & SHF_COMPRESSED) {
		uint32_t type = cur_u32(&c);
		if (b->bits == 64)
			cur_u32(&c);
		uint64_t len = cur_word(&c, b->bits / 8u);
		cur_word(&c, b->bits / 8u);
		if (c.failed)
			return err_new(ERR_BAD_INPUT,
				       "the header of a compressed section is cut");
		if (type != ELFCOMPRESS_ZLIB && type != ELFCOMPRESS_ZSTD)
			return err_new(ERR_UNSUPPORTED, "compression type %u is not known", type);
		bool is_zlib = type == ELFCOMPRESS_ZLIB;
		return unpack(b, &c, is_zlib ? FMT_PACK_ZLIB : FMT_PACK_ZSTD, len, arena, ret);
	}
	const uint8_t *magic = cur_bytes(&c, 4);
	c.is_be = true;
	uint64_t len = cur_u64(&c);
	if (c.failed || memcmp(magic, "ZLIB", 4) != 0)
		return err_new(ERR_BAD_INPUT, "a .zdebug section does not begin with ZLIB");
	return unpack(b, &c, FMT_PACK_ZLIB, len, arena, ret);
}

/* What is needed of an object while its relocations are applied to a copy. */
struct patcher {
	const struct fmt_bin *b;
	const struct elf_rel_rules *rules;
	uint8_t *out;
	size_t out_len;
	uint64_t base_va;  /* of the section, 0 when it is not mapped */
	struct cur symtab; /* raw entries */
};

/* S. Symbols of sections that are not mapped have no address; their value is an offset, and meant.
 */
static uint64_t symbol_value(struct patcher *p, uint32_t sym)
{
	if (sym == 0 || sym > p->b->symbols.cnt)
		return 0;
	const struct fmt_symbol *s = &p->b->symbols.data[sym - 1];
	if (s->is_undefined || s->va)
		return s->va;
	bool is_64 = p->b->bits == 64;
	cur_seek(&p->symtab,
		 (uint64_t)sym * (is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym)) + (is_64 ? 8 : 4));
	return cur_word(&p->symtab, is_64 ? 8 : 4);
}

static uint64_t load_field(const uint8_t *p, unsigned width, bool is_be)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < width; i++)
		v |= (uint64_t)p[is_be ? width - 1 - i : i] << (8 * i);
	return v;
}

static void store_field(uint8_t *p, unsigned width, bool is_be, uint64_t v)
{
	for (unsigned i = 0; i < width; i++)
		p[is_be ? width - 1 - i : i] = (uint8_t)(v >> (8 * i));
}

static void apply(struct patcher *p, uint64_t off, uint32_t type, uint32_t sym,
		  const uint64_t *addend)
{
	const struct elf_rel_rule *rule = elf_rel_find_rule(p->rules, type);
	unsigned width = rule && rule->width ? rule->width : p->b->bits / 8u;
	if (!rule || rule->is_slot || off > p->out_len || width > p->out_len - off)
		return;
	uint8_t *at = p->out + off;
	uint64_t value =
		symbol_value(p, sym) + (addend ? *addend : load_field(at, width, p->b->is_be));
	switch (rule->op) {
	case ELF_REL_ABS:
	case ELF_REL_TLS:
		break;
	case ELF_REL_PC:
		value -= p->base_va + off;
		break;
	default:
		return;
	}
	store_field(at, width, p->b->is_be, value);
}

static void apply_table(struct patcher *p, const struct fmt_section *rels)
{
	bool is_64 = p->b->bits == 64;
	unsigned word = is_64 ? 8 : 4;
	bool has_addend = rels->raw_type == SHT_RELA;
	struct cur c = cur_make(p->b->bytes + rels->file_off, (size_t)rels->file_len, p->b->is_be);
	while (cur_left(&c) >= word * (has_addend ? 3 : 2)) {
		uint64_t off = cur_word(&c, word);
		uint64_t info = cur_word(&c, word);
		uint64_t addend = has_addend ? cur_word(&c, word) : 0;
		apply(p, off, (uint32_t)(is_64 ? info & UINT32_MAX : info & 0xff),
		      (uint32_t)(is_64 ? info >> 32 : info >> 8), has_addend ? &addend : NULL);
	}
}

static uint32_t find_symtab(const struct fmt_bin *b)
{
	for (uint32_t i = 0; i < b->sections.cnt; i++) {
		if (b->sections.data[i].raw_type == SHT_SYMTAB)
			return i + 1;
	}
	return 0;
}

static struct err *relocate_copy(const struct fmt_bin *b, const struct fmt_section *s,
				 struct arena *arena, const uint8_t **data, size_t len)
{
	uint32_t idx = (uint32_t)(s - b->sections.data) + 1;
	uint32_t symtab = find_symtab(b);
	uint64_t left = 2 * b->bytes_len; /* hostile sections may all name the same relocations */
	struct patcher p = {.b = b,
			    .rules = elf_rel_rules_of(b->raw_machine),
			    .out_len = len,
			    .base_va = s->is_alloc ? s->va : 0};
	for (size_t i = 0; i < b->sections.cnt && symtab && len; i++) {
		const struct fmt_section *rels = &b->sections.data[i];
		if ((rels->raw_type != SHT_RELA && rels->raw_type != SHT_REL) ||
		    rels->raw_info != idx || rels->raw_link != symtab || rels->file_len > left)
			continue;
		left -= rels->file_len;
		if (!p.out) {
			const struct fmt_section *syms = &b->sections.data[symtab - 1];
			p.symtab = cur_make(b->bytes + syms->file_off, (size_t)syms->file_len,
					    b->is_be);
			p.out = arena_alloc(arena, len);
			if (!p.out)
				return &err_nomem;
			memcpy(p.out, *data, len);
			*data = p.out;
		}
		apply_table(&p, rels);
	}
	return NULL;
}

struct err *fmt_section_data(const struct fmt_bin *b, const struct fmt_section *s, bool relocate,
			     struct arena *arena, const uint8_t **ret, size_t *ret_len)
{
	struct unpacked u = {b->bytes + s->file_off, (size_t)s->file_len};
	struct err *err = s->is_compressed ? unpack_section(b, s, arena, &u) : NULL;
	if (!err && relocate && (b->type == FMT_TYPE_OBJECT || b->type == FMT_TYPE_MODULE))
		err = relocate_copy(b, s, arena, &u.data, u.len);
	if (err)
		return err_prefix(err, "section %.*s", (int)(s->name.len < 64 ? s->name.len : 64),
				  s->name.s ? s->name.s : "");
	*ret = u.data;
	*ret_len = u.len;
	return NULL;
}
