/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/elfwriter.h"

#include <assert.h>
#include <elf.h>
#include <stdlib.h>

static void put(const struct elfw *w, struct buf *b, uint64_t v, unsigned len)
{
	uint8_t raw[8];
	for (unsigned i = 0; i < len; i++)
		raw[w->is_be ? len - 1 - i : i] = (uint8_t)(v >> (8 * i));
	buf_add(b, raw, len);
	if (b->failed)
		abort();
}

void elfw_u16(const struct elfw *w, struct buf *b, uint16_t v)
{
	put(w, b, v, 2);
}

void elfw_u32(const struct elfw *w, struct buf *b, uint32_t v)
{
	put(w, b, v, 4);
}

void elfw_u64(const struct elfw *w, struct buf *b, uint64_t v)
{
	put(w, b, v, 8);
}

void elfw_word(const struct elfw *w, struct buf *b, uint64_t v)
{
	put(w, b, v, w->bits / 8);
}

static size_t ehdr_len(const struct elfw *w)
{
	return w->bits == 64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
}

void elfw_init(struct elfw *w, unsigned bits, bool is_be, uint16_t type, uint16_t machine)
{
	*w = (struct elfw){.bits = bits, .is_be = is_be};
	elfw_set(w, ELFW_TYPE, type);
	elfw_set(w, ELFW_MACHINE, machine);
	elfw_pad_to(w, ehdr_len(w));
	elfw_add_sec(w, (struct elfw_sec){.name = ""});
}

void elfw_fini(struct elfw *w)
{
	buf_fini(&w->file);
	buf_fini(&w->names);
	VEC_FREE(&w->segs);
	VEC_FREE(&w->secs);
}

void elfw_set(struct elfw *w, enum elfw_field field, uint64_t value)
{
	w->fields[field].is_set = true;
	w->fields[field].value = value;
}

void elfw_pad_to(struct elfw *w, uint64_t off)
{
	while (w->file.len < off)
		buf_add_ch(&w->file, 0);
	if (w->file.failed)
		abort();
}

uint64_t elfw_add(struct elfw *w, const void *bytes, size_t len, uint64_t align)
{
	if (align > 1)
		elfw_pad_to(w, (w->file.len + align - 1) / align * align);
	uint64_t off = w->file.len;
	buf_add(&w->file, bytes, len);
	if (w->file.failed)
		abort();
	return off;
}

uint32_t elfw_add_seg(struct elfw *w, struct elfw_seg seg)
{
	if (!VEC_PUSH(&w->segs, seg))
		abort();
	return (uint32_t)w->segs.cnt - 1;
}

uint32_t elfw_add_sec(struct elfw *w, struct elfw_sec sec)
{
	if (sec.name) {
		sec.name_off = (uint32_t)w->names.len;
		buf_add(&w->names, sec.name, strlen(sec.name) + 1);
	}
	if (!VEC_PUSH(&w->secs, sec))
		abort();
	return (uint32_t)w->secs.cnt - 1;
}

static void write_seg(struct elfw *w, const struct elfw_seg *s)
{
	struct buf *b = &w->file;
	elfw_u32(w, b, s->type);
	if (w->bits == 64)
		elfw_u32(w, b, s->flags);
	elfw_word(w, b, s->off);
	elfw_word(w, b, s->va);
	elfw_word(w, b, s->va);
	elfw_word(w, b, s->file_len);
	elfw_word(w, b, s->mem_len);
	if (w->bits == 32)
		elfw_u32(w, b, s->flags);
	elfw_word(w, b, s->align);
}

static void write_sec(struct elfw *w, const struct elfw_sec *s)
{
	struct buf *b = &w->file;
	elfw_u32(w, b, s->name_off);
	elfw_u32(w, b, s->type);
	elfw_word(w, b, s->flags);
	elfw_word(w, b, s->addr);
	elfw_word(w, b, s->off);
	elfw_word(w, b, s->len);
	elfw_u32(w, b, s->link);
	elfw_u32(w, b, s->info);
	elfw_word(w, b, s->align);
	elfw_word(w, b, s->ent_len);
}

static uint64_t field(const struct elfw *w, enum elfw_field f, uint64_t otherwise)
{
	return w->fields[f].is_set ? w->fields[f].value : otherwise;
}

static void write_header(struct elfw *w, uint64_t phoff, uint64_t shoff, uint32_t shstrndx)
{
	struct buf h = {0};
	bool is_64 = w->bits == 64;
	buf_add(&h, ELFMAG, SELFMAG);
	buf_add_ch(&h, (char)field(w, ELFW_CLASS, is_64 ? ELFCLASS64 : ELFCLASS32));
	buf_add_ch(&h, (char)field(w, ELFW_DATA, w->is_be ? ELFDATA2MSB : ELFDATA2LSB));
	buf_add_ch(&h, EV_CURRENT);
	buf_add_ch(&h, (char)field(w, ELFW_OSABI, 0));
	while (h.len < EI_NIDENT)
		buf_add_ch(&h, 0);
	elfw_u16(w, &h, (uint16_t)field(w, ELFW_TYPE, 0));
	elfw_u16(w, &h, (uint16_t)field(w, ELFW_MACHINE, 0));
	elfw_u32(w, &h, EV_CURRENT);
	elfw_word(w, &h, field(w, ELFW_ENTRY, 0));
	elfw_word(w, &h, field(w, ELFW_PHOFF, w->segs.cnt ? phoff : 0));
	elfw_word(w, &h, field(w, ELFW_SHOFF, w->secs.cnt > 1 ? shoff : 0));
	elfw_u32(w, &h, 0);
	elfw_u16(w, &h, (uint16_t)ehdr_len(w));
	elfw_u16(w, &h,
		 (uint16_t)field(w, ELFW_PHENTSIZE,
				 is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)));
	elfw_u16(w, &h, (uint16_t)field(w, ELFW_PHNUM, w->segs.cnt));
	elfw_u16(w, &h,
		 (uint16_t)field(w, ELFW_SHENTSIZE,
				 is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr)));
	elfw_u16(w, &h, (uint16_t)field(w, ELFW_SHNUM, w->secs.cnt > 1 ? w->secs.cnt : 0));
	elfw_u16(w, &h, (uint16_t)field(w, ELFW_SHSTRNDX, shstrndx));
	assert(h.len == ehdr_len(w));
	memcpy(w->file.data, h.data, h.len);
	buf_fini(&h);
}

void elfw_finish(struct elfw *w)
{
	uint32_t shstrndx = 0;
	if (w->secs.cnt > 1) {
		shstrndx = elfw_add_sec(
			w, (struct elfw_sec){.name = ".shstrtab", .type = SHT_STRTAB, .align = 1});
		w->secs.data[shstrndx].off = elfw_add(w, w->names.data, w->names.len, 1);
		w->secs.data[shstrndx].len = w->names.len;
	}
	uint64_t phoff = elfw_add(w, NULL, 0, 8);
	for (size_t i = 0; i < w->segs.cnt; i++)
		write_seg(w, &w->segs.data[i]);
	uint64_t shoff = elfw_add(w, NULL, 0, 8);
	for (size_t i = 0; i < w->secs.cnt && w->secs.cnt > 1; i++)
		write_sec(w, &w->secs.data[i]);
	write_header(w, phoff, shoff, shstrndx);
}

void elfw_dyn(const struct elfw *w, struct buf *b, uint64_t tag, uint64_t value)
{
	elfw_word(w, b, tag);
	elfw_word(w, b, value);
}

void elfw_note(const struct elfw *w, struct buf *b, const char *name, uint32_t type,
	       const void *desc, uint32_t len)
{
	elfw_u32(w, b, (uint32_t)strlen(name) + 1);
	elfw_u32(w, b, len);
	elfw_u32(w, b, type);
	buf_add(b, name, strlen(name) + 1);
	while (b->len % 4)
		buf_add_ch(b, 0);
	buf_add(b, desc, len);
	while (b->len % 4)
		buf_add_ch(b, 0);
}

void elfw_symbol(const struct elfw *w, struct buf *b, struct elfw_sym s)
{
	elfw_u32(w, b, s.name);
	if (w->bits == 32) {
		elfw_u32(w, b, (uint32_t)s.value);
		elfw_u32(w, b, (uint32_t)s.len);
	}
	buf_add_ch(b, (char)s.info);
	buf_add_ch(b, (char)s.other);
	elfw_u16(w, b, s.shndx);
	if (w->bits == 64) {
		elfw_u64(w, b, s.value);
		elfw_u64(w, b, s.len);
	}
}

void elfw_rel(const struct elfw *w, struct buf *b, struct elfw_reloc r)
{
	elfw_word(w, b, r.off);
	elfw_word(w, b,
		  w->bits == 64 ? (uint64_t)r.sym << 32 | r.type
				: (uint64_t)r.sym << 8 | (r.type & 0xff));
}

void elfw_rela(const struct elfw *w, struct buf *b, struct elfw_reloc r)
{
	elfw_rel(w, b, r);
	elfw_word(w, b, (uint64_t)r.addend);
}

uint32_t elfw_str(struct buf *strtab, const char *s)
{
	if (strtab->len == 0)
		buf_add_ch(strtab, 0);
	uint32_t off = (uint32_t)strtab->len;
	buf_add(strtab, s, strlen(s) + 1);
	return off;
}
