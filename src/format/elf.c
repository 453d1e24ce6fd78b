/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ELF header and the order in which the parts of the reader run.
 *
 * The header is read as Linux reads it: 64 bytes, zero-filled when the file is shorter, and without
 * looking at EI_CLASS, EI_DATA or e_version, which a program may therefore fill with anything and
 * still run. Where those bytes contradict e_machine and e_phentsize, the reading that Linux would
 * run is taken and the contradiction is a finding.
 */
#include "format/elf_int.h"

#include <elf.h>

static bool fits_class(const uint8_t *raw, bool is_64, bool is_be)
{
	uint16_t ph_len = load_u16(raw + (is_64 ? 54 : 42), is_be);
	uint16_t sh_len = load_u16(raw + (is_64 ? 58 : 46), is_be);
	return ph_len == (is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)) ||
	       (ph_len == 0 && sh_len == (is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr)));
}

static void choose_byte_order(struct elf *e, const uint8_t *raw)
{
	uint16_t le = load_u16(raw + 18, false);
	uint16_t be = load_u16(raw + 18, true);
	bool says_be = raw[EI_DATA] == ELFDATA2MSB;
	bool says_le = raw[EI_DATA] == ELFDATA2LSB;
	e->is_be = says_be;
	if (le == EM_386 || le == EM_X86_64)
		e->is_be = false;
	else if (!elf_machine_is_known(says_be ? be : le))
		e->is_be = elf_machine_is_known(be)   ? true
			   : elf_machine_is_known(le) ? false
						      : says_be;
	else if (!says_be && !says_le)
		e->is_be = false;
	if (e->is_be ? !says_be : !says_le)
		finding_add(&e->b->findings, FINDING_WARNING, EI_DATA, "ELF header",
			    "EI_DATA is %u, but the machine number only makes sense %s-endian",
			    raw[EI_DATA], e->is_be ? "big" : "little");
}

static void choose_class(struct elf *e, const uint8_t *raw)
{
	uint8_t says = raw[EI_CLASS];
	uint16_t machine = load_u16(raw + 18, e->is_be);
	e->is_64 = says == ELFCLASS64;
	if (says != ELFCLASS32 && says != ELFCLASS64)
		e->is_64 =
			fits_class(raw, true, e->is_be) || (!fits_class(raw, false, e->is_be) &&
							    machine != EM_386 && machine != EM_ARM);
	else if (!fits_class(raw, e->is_64, e->is_be) && fits_class(raw, !e->is_64, e->is_be))
		e->is_64 = !e->is_64;
	if (says != (e->is_64 ? ELFCLASS64 : ELFCLASS32))
		finding_add(&e->b->findings, FINDING_WARNING, EI_CLASS, "ELF header",
			    "EI_CLASS is %u, but the header has the %d-bit form", says,
			    e->is_64 ? 64 : 32);
}

/* Counts that do not fit 16 bits stand in the first section header (gABI, "Extended numbering"). */
static void read_extended_counts(struct elf *e)
{
	struct elf_sh first;
	uint32_t shnum = e->shnum;
	e->shnum = 1;
	bool is_there = e->shoff && elf_read_sh(e, 0, &first);
	e->shnum = shnum;
	if (!is_there)
		return;
	if (shnum == 0)
		e->shnum = first.len > UINT32_MAX ? UINT32_MAX : (uint32_t)first.len;
	if (e->shstrndx == SHN_XINDEX)
		e->shstrndx = first.link;
	if (e->phnum == PN_XNUM && first.info > PN_XNUM)
		e->phnum = first.info;
}

/* Cuts a header table to the entries the file can hold. */
static uint32_t cut_count(struct elf *e, const char *what, uint64_t off, uint32_t count,
			  uint32_t stride)
{
	uint64_t room = off < e->len ? (e->len - off) / stride : 0;
	if (count <= room)
		return count;
	finding_add(&e->b->findings, FINDING_ERROR, off, what,
		    "%u entries of %u bytes at 0x%llx, but the file holds %llu of them", count,
		    stride, (unsigned long long)off, (unsigned long long)room);
	return (uint32_t)room;
}

static uint32_t choose_stride(struct elf *e, const char *what, uint32_t says, uint32_t want,
			      uint32_t count)
{
	if (says == want || count == 0)
		return want;
	finding_add(&e->b->findings, FINDING_WARNING, UINT64_MAX, what,
		    "entries of %u bytes, expected %u", says, want);
	return says > want ? says : want;
}

static struct err *read_header(struct elf *e)
{
	uint8_t raw[sizeof(Elf64_Ehdr)] = {0};
	memcpy(raw, e->bytes, e->len < sizeof(raw) ? (size_t)e->len : sizeof(raw));
	choose_byte_order(e, raw);
	choose_class(e, raw);
	struct cur c = cur_make(raw, sizeof(raw), e->is_be);
	unsigned word = elf_word_len(e);
	e->osabi = raw[EI_OSABI];
	cur_seek(&c, EI_NIDENT);
	e->type = cur_u16(&c);
	e->machine = cur_u16(&c);
	cur_u32(&c);
	e->entry = cur_word(&c, word);
	e->phoff = cur_word(&c, word);
	e->shoff = cur_word(&c, word);
	e->flags = cur_u32(&c);
	cur_u16(&c);
	uint32_t ph_len = cur_u16(&c);
	e->phnum = cur_u16(&c);
	uint32_t sh_len = cur_u16(&c);
	e->shnum = cur_u16(&c);
	e->shstrndx = cur_u16(&c);
	if (e->len < (e->is_64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr)))
		finding_add(&e->b->findings, FINDING_WARNING, 0, "ELF header",
			    "the file ends inside it; the rest is taken as zeros");

	uint32_t sh_want = e->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	e->sh_stride =
		choose_stride(e, "section headers", sh_len, sh_want, e->shoff ? e->shnum : 0);
	e->ph_stride = choose_stride(e, "program headers", ph_len,
				     e->is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr), e->phnum);
	read_extended_counts(e);
	if (e->shoff == 0)
		e->shnum = 0;
	e->phnum = cut_count(e, "program headers", e->phoff, e->phnum, e->ph_stride);
	e->shnum = cut_count(e, "section headers", e->shoff, e->shnum, e->sh_stride);
	if (e->type != ET_REL && e->type != ET_EXEC && e->type != ET_DYN && e->type != ET_CORE)
		finding_add(&e->b->findings, FINDING_WARNING, 16, "ELF header",
			    "unknown file type %u", e->type);
	return NULL;
}

bool elf_take(struct elf *e, uint64_t bytes)
{
	if (bytes > e->mem_left)
		return false;
	e->mem_left -= bytes;
	return true;
}

uint64_t elf_take_mapped(struct elf *e, uint64_t va, uint64_t len)
{
	if (len <= e->mapped_left) {
		e->mapped_left -= len;
		return len;
	}
	if (!e->is_map_cut)
		finding_add_va(&e->b->findings, FINDING_ERROR, va, "segments",
			       "the same bytes of the file are mapped again and again; from here on they are left out");
	e->is_map_cut = true;
	uint64_t left = e->mapped_left;
	e->mapped_left = 0;
	return left;
}

struct cur elf_cur(const struct elf *e, uint64_t off, uint64_t len)
{
	struct cur whole = cur_make(e->bytes, (size_t)e->len, e->is_be);
	return cur_sub(&whole, off, len);
}

struct fmt_str elf_str(struct elf *e, const struct elf_strtab *t, uint64_t off)
{
	enum { NAME_MAX_LEN = 1 << 16 };
	if (off >= t->len || t->off >= e->len || t->len > e->len - t->off)
		return (struct fmt_str){0};
	const char *s = (const char *)e->bytes + t->off + off;
	uint64_t max_len = t->len - off < NAME_MAX_LEN ? t->len - off : NAME_MAX_LEN;
	if (max_len > e->name_left)
		max_len = e->name_left;
	const char *end = max_len ? memchr(s, 0, (size_t)max_len) : NULL;
	if (!end && max_len < t->len - off) {
		if (!e->is_name_cut)
			finding_add(&e->b->findings, FINDING_WARNING, t->off + off, "string table",
				    "names overlap or have no end; some are left out");
		e->is_name_cut = true;
		return (struct fmt_str){0};
	}
	uint32_t len = (uint32_t)(end ? (uint64_t)(end - s) : max_len);
	e->name_left -= len;
	return (struct fmt_str){.s = s, .len = len};
}

bool elf_at(const struct elf *e, uint64_t va, uint64_t *ret_off, uint64_t *ret_len)
{
	const struct fmt_segment *s = fmt_segment_at(e->b, va);
	if (!s || va - s->va >= s->file_len)
		return false;
	*ret_off = s->file_off + (va - s->va);
	*ret_len = s->file_len - (va - s->va);
	return true;
}

static void fill_machine(struct elf *e)
{
	struct fmt_bin *b = e->b;
	b->kind = FMT_ELF;
	b->bits = e->is_64 ? 64 : 32;
	b->is_be = e->is_be;
	b->format_name = e->is_64 ? "ELF64" : "ELF32";
	b->raw_machine = e->machine;
	b->machine_name = elf_machine_name(e->machine);
	b->os_name = elf_osabi_name(e->osabi);
	switch (e->machine) {
	case EM_X86_64:
		b->machine = FMT_MACHINE_X86_64;
		break;
	case EM_386:
	case EM_IAMCU:
		b->machine = FMT_MACHINE_I386;
		break;
	case EM_AARCH64:
		b->machine = FMT_MACHINE_A64;
		break;
	case EM_NONE:
		b->machine = FMT_MACHINE_NONE;
		break;
	default:
		b->machine = FMT_MACHINE_OTHER;
		break;
	}
}

static bool has_section_named(const struct fmt_bin *b, const char *name)
{
	return fmt_section_named(b, name) != NULL;
}

static void fill_type(struct elf *e)
{
	struct fmt_bin *b = e->b;
	bool is_program = (e->dyn.flags_1 & DF_1_PIE) || (b->interp.s && !b->soname.s) ||
			  (e->dyn.has_debug && !b->soname.s) || !e->dyn.is_there;
	switch (e->type) {
	case ET_REL:
		b->type = has_section_named(b, ".gnu.linkonce.this_module") ||
					  has_section_named(b, ".modinfo")
				  ? FMT_TYPE_MODULE
				  : FMT_TYPE_OBJECT;
		break;
	case ET_DYN:
		b->type = is_program ? FMT_TYPE_PIE : FMT_TYPE_SHARED;
		break;
	case ET_CORE:
		b->type = FMT_TYPE_CORE;
		break;
	default:
		b->type = FMT_TYPE_EXEC;
		break;
	}
}

/* An i386 program without PT_GNU_STACK has everything readable executable
 * (arch/x86/include/asm/elf.h, "exec-all"). Old data segments would all become code; so only the
 * one it begins in does. */
static bool make_entry_executable(struct elf *e, struct fmt_segment *s)
{
	for (uint32_t i = 0; i < e->phnum; i++) {
		struct elf_ph ph;
		if (elf_read_ph(e, i, &ph) && ph.type == PT_GNU_STACK)
			return false;
	}
	if (e->machine != EM_386 || !(s->perm & FMT_R))
		return false;
	s->perm |= FMT_X;
	return true;
}

static void fill_entry(struct elf *e)
{
	struct fmt_bin *b = e->b;
	if (e->type == ET_REL || e->type == ET_CORE || (e->entry == 0 && e->type != ET_EXEC))
		return;
	const struct fmt_segment *found = fmt_segment_at(b, e->entry);
	if (!found) {
		if (e->entry)
			finding_add_va(&b->findings, FINDING_WARNING, e->entry, "entry point",
				       "0x%llx is not mapped", (unsigned long long)e->entry);
		return;
	}
	struct fmt_segment *s = &b->segments.data[found - b->segments.data];
	if (!(s->perm & FMT_X) && make_entry_executable(e, s))
		finding_add_va(
			&b->findings, FINDING_NOTE, e->entry, "entry point",
			"its segment is not marked executable, but runs as if it were on Linux");
	b->has_entry = true;
	b->entry_va = e->entry;
}

static struct err *load_tables(struct elf *e)
{
	typedef struct err *load_fn(struct elf * e);
	static load_fn *const object[] = {elf_load_sections, elf_lay_out_object, elf_load_symbols,
					  elf_load_imports,  elf_load_relocs,	 elf_load_notes};
	static load_fn *const program[] = {elf_load_sections, elf_load_segments, elf_load_dynamic,
					   elf_load_versions, elf_load_symbols,	 elf_load_imports,
					   elf_load_relocs,   elf_load_notes,	 elf_load_tables};
	bool is_object = e->type == ET_REL;
	load_fn *const *step = is_object ? object : program;
	size_t step_cnt = is_object ? ARRAY_LEN(object) : ARRAY_LEN(program);
	for (size_t i = 0; i < step_cnt; i++) {
		struct err *err = step[i](e);
		if (err)
			return err;
		bool is_mapped = i >= 1;
		if (is_mapped && e->b->segments.cnt == 0 && e->b->sections.cnt == 0)
			return err_new(
				ERR_BAD_INPUT,
				"an ELF file with neither usable program headers nor sections");
	}
	return NULL;
}

struct err *elf_open(struct fmt_bin *b)
{
	struct elf e = {
		.b = b,
		.bytes = b->bytes,
		.len = b->bytes_len,
		.mem_left = (16u << 20) + 4 * b->bytes_len,
		.mapped_left = (1u << 20) + b->bytes_len,
		.name_left = (1u << 20) + 2 * b->bytes_len,
		.symtab.sec_idx = ELF_NO_INDEX,
		.dynsym.sec_idx = ELF_NO_INDEX,
	};
	struct err *err = read_header(&e);
	if (!err) {
		fill_machine(&e);
		err = load_tables(&e);
	}
	if (!err) {
		fill_type(&e);
		fill_entry(&e);
		b->base_va = b->segments.cnt ? b->segments.data[0].va : 0;
		err = elf_load_code_starts(&e);
	}
	free(e.versions);
	free(e.import_of);
	free(e.got_slot);
	return err;
}
