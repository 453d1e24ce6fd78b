/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dynamic table, found as the run-time linker finds it (PT_DYNAMIC, by address), with the
 * section as a fallback; what it says of needed libraries; and the places it names where code
 * begins.
 */
#include "format/elf_int.h"

#include <elf.h>

static int64_t next_tag(const struct elf *e, struct cur *c)
{
	return e->is_64 ? (int64_t)cur_u64(c) : (int64_t)(int32_t)cur_u32(c);
}

static bool find_by_segment(struct elf *e, const struct elf_ph *ph)
{
	struct findings *f = &e->b->findings;
	if (elf_at(e, ph->va, &e->dyn.off, &e->dyn.len))
		return true;
	if (ph->file_len == 0) {
		finding_add_va(f, FINDING_NOTE, ph->va, "dynamic table",
			       "is not in this file, which may be the debug file of another");
		return false;
	}
	finding_add_va(f, FINDING_WARNING, ph->va, "dynamic table",
		       "its address is not mapped from the file");
	if (ph->off >= e->len)
		return false;
	e->dyn.off = ph->off;
	e->dyn.len = ph->file_len < e->len - ph->off ? ph->file_len : e->len - ph->off;
	return true;
}

/* Where the table lies in the file and how far it may reach. Of several PT_DYNAMIC the last counts,
 * as for the run-time linker. */
static bool find_table(struct elf *e)
{
	struct elf_ph last = {0};
	for (uint32_t i = 0; i < e->phnum; i++) {
		struct elf_ph ph;
		if (elf_read_ph(e, i, &ph) && ph.type == PT_DYNAMIC)
			last = ph;
	}
	if (last.type == PT_DYNAMIC)
		return find_by_segment(e, &last);
	for (size_t i = 0; i < e->b->sections.cnt && e->phnum == 0; i++) {
		const struct fmt_section *s = &e->b->sections.data[i];
		if (s->raw_type == SHT_DYNAMIC && s->file_len) {
			e->dyn.off = s->file_off;
			e->dyn.len = s->file_len;
			return true;
		}
	}
	return false;
}

static void set_field(struct elf_dyn *d, int64_t tag, uint64_t value)
{
	const struct {
		int64_t tag;
		uint64_t *field;
	} fields[] = {
		{DT_HASH, &d->hash},
		{DT_GNU_HASH, &d->gnu_hash},
		{DT_STRTAB, &d->strtab},
		{DT_STRSZ, &d->strsz},
		{DT_SYMTAB, &d->symtab},
		{DT_RELA, &d->rela},
		{DT_RELASZ, &d->relasz},
		{DT_RELAENT, &d->relaent},
		{DT_REL, &d->rel},
		{DT_RELSZ, &d->relsz},
		{DT_RELENT, &d->relent},
		{36 /* DT_RELR */, &d->relr},
		{35 /* DT_RELRSZ */, &d->relrsz},
		{DT_JMPREL, &d->jmprel},
		{DT_PLTRELSZ, &d->pltrelsz},
		{DT_PLTREL, &d->pltrel},
		{DT_INIT, &d->init},
		{DT_FINI, &d->fini},
		{DT_INIT_ARRAY, &d->init_array},
		{DT_INIT_ARRAYSZ, &d->init_arraysz},
		{DT_FINI_ARRAY, &d->fini_array},
		{DT_FINI_ARRAYSZ, &d->fini_arraysz},
		{DT_PREINIT_ARRAY, &d->preinit_array},
		{DT_PREINIT_ARRAYSZ, &d->preinit_arraysz},
		{DT_VERSYM, &d->versym},
		{DT_VERNEED, &d->verneed},
		{DT_VERNEEDNUM, &d->verneednum},
		{DT_VERDEF, &d->verdef},
		{DT_VERDEFNUM, &d->verdefnum},
		{DT_PLTGOT, &d->pltgot},
		{DT_SONAME, &d->soname},
		{DT_FLAGS, &d->flags},
		{DT_FLAGS_1, &d->flags_1},
		{0x6000000f /* DT_ANDROID_REL */, &d->android_rel},
		{0x60000011 /* DT_ANDROID_RELA */, &d->android_rela},
	};
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		if (fields[i].tag == tag)
			*fields[i].field = value;
	}
}

static void read_fields(struct elf *e)
{
	struct cur c = elf_cur(e, e->dyn.off, e->dyn.len);
	for (;;) {
		int64_t tag = next_tag(e, &c);
		uint64_t value = cur_word(&c, elf_word_len(e));
		if (c.failed || tag == DT_NULL)
			break;
		if (tag == DT_DEBUG)
			e->dyn.has_debug = 1;
		set_field(&e->dyn, tag, value);
	}
	if (c.failed)
		finding_add(&e->b->findings, FINDING_WARNING, e->dyn.off, "dynamic table",
			    "has no end before that of its segment");
	else
		e->dyn.len = c.pos;
}

static void find_strings(struct elf *e)
{
	uint64_t room;
	struct elf_strtab *t = &e->dynsym.str;
	if (e->dyn.strtab == 0)
		return;
	if (!elf_at(e, e->dyn.strtab, &t->off, &room)) {
		finding_add_va(&e->b->findings, FINDING_ERROR, e->dyn.strtab,
			       "dynamic string table", "its address is not mapped from the file");
		return;
	}
	/* The run-time linker does not look at DT_STRSZ: too small a value hides no name. */
	t->len = room;
	if (e->dyn.strsz > room)
		finding_add_va(&e->b->findings, FINDING_WARNING, e->dyn.strtab,
			       "dynamic string table", "%llu bytes, but the segment has %llu",
			       (unsigned long long)e->dyn.strsz, (unsigned long long)room);
}

static struct err *read_needed(struct elf *e)
{
	struct fmt_bin *b = e->b;
	struct cur c = elf_cur(e, e->dyn.off, e->dyn.len);
	for (;;) {
		int64_t tag = next_tag(e, &c);
		uint64_t value = cur_word(&c, elf_word_len(e));
		if (c.failed || tag == DT_NULL)
			return NULL;
		if (tag != DT_NEEDED && tag != DT_SONAME)
			continue;
		struct fmt_str name = elf_str(e, &e->dynsym.str, value);
		if (!name.s) {
			finding_add(&b->findings, FINDING_WARNING, e->dyn.off, "dynamic table",
				    "a library name lies outside the string table");
			continue;
		}
		if (tag == DT_SONAME)
			b->soname = name;
		else if (!elf_take(e, 2 * sizeof(name)) || !VEC_PUSH(&b->needed, name))
			return NULL;
	}
}

struct err *elf_load_dynamic(struct elf *e)
{
	if (!find_table(e))
		return NULL;
	e->dyn.is_there = true;
	read_fields(e);
	find_strings(e);
	uint64_t off;
	uint64_t len;
	if (e->dyn.pltgot && elf_at(e, e->dyn.pltgot, &off, &len))
		e->b->got = (struct fmt_range){e->dyn.pltgot, len};
	return read_needed(e);
}

static struct err *add_start(struct elf *e, const char *what, uint64_t va)
{
	const struct fmt_segment *s = fmt_segment_at(e->b, va);
	const struct fmt_import *first = e->b->imports.data;
	bool is_import =
		e->b->imports.cnt && first->va && s && va >= first->va && first->va >= s->va;
	if (is_import)
		return NULL;
	if (!s || !(s->perm & FMT_X)) {
		finding_add_va(&e->b->findings, FINDING_WARNING, va, what,
			       "0x%llx is not in executable memory", (unsigned long long)va);
		return NULL;
	}
	return VEC_PUSH(&e->b->code_starts, va) ? NULL : &err_nomem;
}

/* The pointers of an init or fini array, as they are after relocation; 0 and -1 are fillers. */
static struct err *add_array(struct elf *e, const char *what, uint64_t va, uint64_t len)
{
	unsigned word = elf_word_len(e);
	if (va == 0 || len < word)
		return NULL;
	const struct fmt_segment *s = fmt_segment_at(e->b, va);
	uint64_t room = s ? s->file_len > va - s->va ? s->file_len - (va - s->va) : 0 : 0;
	if (len > room) {
		finding_add_va(&e->b->findings, FINDING_WARNING, va, what,
			       "%llu bytes, but %llu are in the file", (unsigned long long)len,
			       (unsigned long long)room);
		len = room;
	}
	if (!elf_take(e, len / word * 2 * sizeof(uint64_t)))
		return NULL;
	for (uint64_t i = 0; i + word <= len; i += word) {
		uint8_t raw[8];
		if (fmt_read(e->b, va + i, raw, word) != word)
			break;
		uint64_t target = e->is_64 ? load_u64(raw, e->is_be) : load_u32(raw, e->is_be);
		if (target == 0 || target == (e->is_64 ? UINT64_MAX : UINT32_MAX))
			continue;
		struct err *err = add_start(e, what, target);
		if (err)
			return err;
	}
	return NULL;
}

/* An object has no dynamic table; its arrays are sections, and calls into it are found elsewhere.
 */
static struct err *add_section_arrays(struct elf *e)
{
	for (size_t i = 0; i < e->b->sections.cnt; i++) {
		const struct fmt_section *s = &e->b->sections.data[i];
		bool is_array = s->raw_type == SHT_INIT_ARRAY || s->raw_type == SHT_FINI_ARRAY ||
				s->raw_type == SHT_PREINIT_ARRAY;
		struct err *err = is_array && s->is_alloc
					  ? add_array(e, "init array", s->va, s->mem_len)
					  : NULL;
		if (err)
			return err;
	}
	return NULL;
}

struct err *elf_load_code_starts(struct elf *e)
{
	const struct elf_dyn *d = &e->dyn;
	struct err *err = NULL;
	if (e->b->has_entry)
		err = add_start(e, "entry point", e->b->entry_va);
	if (!err && d->init)
		err = add_start(e, "DT_INIT", d->init);
	if (!err && d->fini)
		err = add_start(e, "DT_FINI", d->fini);
	if (!err)
		err = add_array(e, "DT_PREINIT_ARRAY", d->preinit_array, d->preinit_arraysz);
	if (!err)
		err = add_array(e, "DT_INIT_ARRAY", d->init_array, d->init_arraysz);
	if (!err)
		err = add_array(e, "DT_FINI_ARRAY", d->fini_array, d->fini_arraysz);
	if (!err && !d->is_there)
		err = add_section_arrays(e);
	for (size_t i = 0; i < e->b->relocs.cnt && !err; i++) {
		const struct fmt_reloc *r = &e->b->relocs.data[i];
		if (r->kind == FMT_REL_IRELATIVE && elf_take(e, 2 * sizeof(uint64_t)))
			err = add_start(e, "IRELATIVE resolver", r->value);
	}
	return err;
}
