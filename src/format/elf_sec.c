/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Section headers: hints in a program, the layout itself in an object. An object's allocated
 * sections get addresses from OBJECT_BASE on, in the order of the table, each aligned as it asks
 * and with a gap behind it, so that the end of one is not the start of the next.
 */
#include "format/elf_int.h"

#include <elf.h>

enum { OBJECT_BASE = 0x400000, OBJECT_GAP = 16, OBJECT_ALIGN_MAX = 0x10000 };

bool elf_read_sh(const struct elf *e, uint32_t idx, struct elf_sh *ret)
{
	if (idx >= e->shnum)
		return false;
	struct cur c = elf_cur(e, e->shoff, e->len - (e->shoff < e->len ? e->shoff : e->len));
	unsigned word = elf_word_len(e);
	cur_seek(&c, (uint64_t)idx * e->sh_stride);
	struct elf_sh sh;
	sh.name = cur_u32(&c);
	sh.type = cur_u32(&c);
	sh.flags = cur_word(&c, word);
	sh.addr = cur_word(&c, word);
	sh.off = cur_word(&c, word);
	sh.len = cur_word(&c, word);
	sh.link = cur_u32(&c);
	sh.info = cur_u32(&c);
	sh.align = cur_word(&c, word);
	sh.ent_len = cur_word(&c, word);
	if (c.failed)
		return false;
	*ret = sh;
	return true;
}

struct fmt_section *elf_section(const struct elf *e, uint32_t idx)
{
	return idx >= 1 && idx <= e->b->sections.cnt ? &e->b->sections.data[idx - 1] : NULL;
}

static bool name_is(struct fmt_str name, const char *want)
{
	size_t len = strlen(want);
	return name.s && name.len == len && memcmp(name.s, want, len) == 0;
}

static bool name_begins(struct fmt_str name, const char *want)
{
	size_t len = strlen(want);
	return name.s && name.len >= len && memcmp(name.s, want, len) == 0;
}

static enum fmt_sec_kind kind_by_name(struct fmt_str name, enum fmt_sec_kind otherwise)
{
	static const struct {
		const char *name;
		enum fmt_sec_kind kind;
	} known[] = {
		{".plt", FMT_SEC_PLT},
		{".plt.got", FMT_SEC_PLT},
		{".plt.sec", FMT_SEC_PLT},
		{".plt.bnd", FMT_SEC_PLT},
		{".iplt", FMT_SEC_PLT},
		{".got", FMT_SEC_GOT},
		{".got.plt", FMT_SEC_GOT},
		{".igot.plt", FMT_SEC_GOT},
		{".eh_frame", FMT_SEC_EH_FRAME},
		{".eh_frame_hdr", FMT_SEC_EH_FRAME_HDR},
		{".interp", FMT_SEC_INTERP},
		{".gopclntab", FMT_SEC_GOPCLNTAB},
		{".data.rel.ro.gopclntab", FMT_SEC_GOPCLNTAB},
		{".init", FMT_SEC_INIT},
		{".fini", FMT_SEC_INIT},
	};
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (name_is(name, known[i].name))
			return known[i].kind;
	}
	return otherwise;
}

static enum fmt_sec_kind choose_kind(const struct elf_sh *sh, struct fmt_str name)
{
	bool is_alloc = sh->flags & SHF_ALLOC;
	switch (sh->type) {
	case SHT_SYMTAB:
	case SHT_DYNSYM:
		return FMT_SEC_SYMTAB;
	case SHT_STRTAB:
		return FMT_SEC_STRTAB;
	case SHT_REL:
	case SHT_RELA:
	case SHT_RELR:
		return FMT_SEC_RELOC;
	case SHT_NOTE:
		return FMT_SEC_NOTE;
	case SHT_INIT_ARRAY:
	case SHT_FINI_ARRAY:
	case SHT_PREINIT_ARRAY:
		return FMT_SEC_INIT;
	case SHT_NOBITS:
		return is_alloc ? FMT_SEC_BSS : FMT_SEC_OTHER;
	default:
		break;
	}
	if (!is_alloc)
		return name_begins(name, ".debug_") || name_begins(name, ".zdebug_")
			       ? FMT_SEC_DEBUG
			       : FMT_SEC_OTHER;
	if (sh->flags & SHF_EXECINSTR)
		return kind_by_name(name, FMT_SEC_CODE);
	return kind_by_name(name, sh->flags & SHF_WRITE ? FMT_SEC_DATA : FMT_SEC_RODATA);
}

static struct fmt_section make_section(struct elf *e, const struct elf_sh *sh, struct fmt_str name)
{
	struct fmt_section s = {
		.name = name,
		.entry_len = sh->ent_len,
		.raw_type = sh->type,
		.raw_link = sh->link,
		.raw_info = sh->info,
		.raw_flags = sh->flags,
		.is_alloc = sh->flags & SHF_ALLOC,
		.is_compressed = (sh->flags & SHF_COMPRESSED) || name_begins(name, ".zdebug_"),
		.kind = (uint8_t)choose_kind(sh, name),
	};
	if (s.is_alloc) {
		s.va = sh->addr;
		s.mem_len = sh->len;
		s.perm = (uint8_t)(FMT_R | (sh->flags & SHF_WRITE ? FMT_W : 0) |
				   (sh->flags & SHF_EXECINSTR ? FMT_X : 0));
		if (s.mem_len > UINT64_MAX - s.va)
			s.mem_len = UINT64_MAX - s.va;
	}
	if (sh->type == SHT_NOBITS || sh->type == SHT_NULL)
		return s;
	s.file_off = sh->off;
	s.file_len = sh->len;
	if (s.file_off > e->len || s.file_len > e->len - s.file_off) {
		s.file_off = s.file_off > e->len ? e->len : s.file_off;
		s.file_len = e->len - s.file_off;
		finding_add(&e->b->findings, FINDING_WARNING, sh->off, "section",
			    "%.*s reaches past the end of the file (%llu bytes at 0x%llx)",
			    (int)(name.len < 64 ? name.len : 64), name.s ? name.s : "",
			    (unsigned long long)sh->len, (unsigned long long)sh->off);
	}
	return s;
}

static struct elf_strtab section_names(struct elf *e)
{
	struct elf_sh sh;
	if (e->shnum == 0)
		return (struct elf_strtab){0};
	if (e->shstrndx == 0 || !elf_read_sh(e, e->shstrndx, &sh) || sh.off >= e->len) {
		finding_add(&e->b->findings, FINDING_WARNING, UINT64_MAX, "section headers",
			    "no section names (their table is number %u of %u)", e->shstrndx,
			    e->shnum);
		return (struct elf_strtab){0};
	}
	return (struct elf_strtab){sh.off, sh.len < e->len - sh.off ? sh.len : e->len - sh.off};
}

static int by_va(const void *a, const void *b, void *ctx)
{
	const struct fmt_section *secs = ctx;
	uint32_t ia = *(const uint32_t *)a;
	uint32_t ib = *(const uint32_t *)b;
	if (secs[ia].va != secs[ib].va)
		return secs[ia].va < secs[ib].va ? -1 : 1;
	return ia < ib ? 1 : -1; /* the first of the table is found first by a search from behind */
}

static struct err *order_sections(struct fmt_bin *b)
{
	b->section_order.cnt = 0;
	if (!VEC_RESERVE(&b->section_order, b->sections.cnt))
		return &err_nomem;
	for (uint32_t i = 0; i < b->sections.cnt; i++) {
		const struct fmt_section *s = &b->sections.data[i];
		bool is_tls_bss = (s->raw_flags & SHF_TLS) && s->raw_type == SHT_NOBITS;
		if (s->is_alloc && s->mem_len && !is_tls_bss)
			b->section_order.data[b->section_order.cnt++] = i;
	}
	if (b->section_order.cnt > 1)
		qsort_r(b->section_order.data, b->section_order.cnt, sizeof(uint32_t), by_va,
			b->sections.data);
	return NULL;
}

struct err *elf_load_sections(struct elf *e)
{
	struct fmt_bin *b = e->b;
	if (e->shnum < 2)
		return NULL;
	/* qsort may use as much again as the order itself. */
	uint64_t cost = sizeof(struct fmt_section) + 3 * sizeof(uint32_t);
	if (!elf_take(e, cost * e->shnum)) {
		uint32_t room = (uint32_t)(e->mem_left / cost);
		finding_add(&b->findings, FINDING_ERROR, e->shoff, "section headers",
			    "only %u of %u are read", room, e->shnum);
		e->shnum = room;
		e->mem_left = 0;
		if (room < 2)
			return NULL;
	}
	if (!VEC_RESERVE(&b->sections, e->shnum - 1))
		return &err_nomem;
	struct elf_strtab names = section_names(e);
	for (uint32_t i = 1; i < e->shnum; i++) {
		struct elf_sh sh;
		if (!elf_read_sh(e, i, &sh))
			break;
		b->sections.data[b->sections.cnt++] =
			make_section(e, &sh, elf_str(e, &names, sh.name));
	}
	return order_sections(b);
}

/* The next address for `len` bytes; 0 when the address space is used up. */
static uint64_t place(struct elf *e, uint64_t len, uint64_t align)
{
	uint64_t top = e->is_64 ? (uint64_t)1 << 47 : 0xf0000000u;
	if (align > OBJECT_ALIGN_MAX)
		align = OBJECT_ALIGN_MAX;
	if (align == 0 || (align & (align - 1)))
		align = 1;
	uint64_t va = (e->obj_next_va + align - 1) & ~(align - 1);
	if (va >= top || len > top - va)
		return 0;
	e->obj_next_va = (va + len + 2 * OBJECT_GAP - 1) & ~(uint64_t)(OBJECT_GAP - 1);
	return va;
}

struct err *elf_lay_out_object(struct elf *e)
{
	struct fmt_bin *b = e->b;
	e->obj_next_va = OBJECT_BASE;
	size_t room = b->sections.cnt;
	if (!elf_take(e, room * sizeof(struct fmt_segment))) {
		room = e->mem_left / sizeof(struct fmt_segment);
		finding_add(&b->findings, FINDING_ERROR, e->shoff, "section headers",
			    "only %zu of %zu are mapped", room, b->sections.cnt);
		e->mem_left -= room * sizeof(struct fmt_segment);
	}
	enum { MADE_UP_MAX = 3 };
	if (!VEC_RESERVE(&b->segments, room + MADE_UP_MAX))
		return &err_nomem;
	for (uint32_t i = 0; i < room; i++) {
		struct fmt_section *s = &b->sections.data[i];
		struct elf_sh sh;
		if (!s->is_alloc || !elf_read_sh(e, i + 1, &sh))
			continue;
		if (s->raw_type != SHT_NOBITS)
			s->mem_len = s->file_len;
		s->va = place(e, s->mem_len, sh.align);
		if (s->va == 0) {
			finding_add(&b->findings, FINDING_ERROR, UINT64_MAX, "section",
				    "number %u with %llu bytes does not fit the address space; it "
				    "is left out",
				    i + 1, (unsigned long long)s->mem_len);
			s->is_alloc = false;
			s->mem_len = 0;
			continue;
		}
		if (s->mem_len == 0)
			continue;
		b->segments.data[b->segments.cnt++] = (struct fmt_segment){
			.va = s->va,
			.mem_len = s->mem_len,
			.file_off = s->file_off,
			.file_len = elf_take_mapped(e, s->va, s->file_len),
			.perm = s->perm,
			.name = s->name,
		};
	}
	return order_sections(b);
}
