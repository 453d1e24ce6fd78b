/* SPDX-License-Identifier: Apache-2.0 */
#include "live/reach/reach_elf.h"

#include "base/cur.h"

#include <elf.h>
#include <string.h>

#define MAX_TABLE_LEN (1u << 20)
#define MAX_NOTES_LEN 65536u

struct head {
	bool is_64, is_be;
	uint64_t ph_off, sh_off;
	unsigned ph_len, ph_cnt, sh_len, sh_cnt;
};

static bool read_head(reach_read_fn read, void *ctx, struct head *ret)
{
	uint8_t bytes[sizeof(Elf64_Ehdr)];
	size_t len = read(ctx, 0, bytes, sizeof(bytes));
	if (len < EI_NIDENT || memcmp(bytes, ELFMAG, SELFMAG))
		return false;
	ret->is_64 = bytes[EI_CLASS] == ELFCLASS64;
	ret->is_be = bytes[EI_DATA] == ELFDATA2MSB;
	unsigned word_len = ret->is_64 ? 8 : 4;
	struct cur c = cur_make(bytes, len, ret->is_be);
	cur_seek(&c, EI_NIDENT + 8 + word_len);
	ret->ph_off = cur_word(&c, word_len);
	ret->sh_off = cur_word(&c, word_len);
	cur_skip(&c, 6);
	ret->ph_len = cur_u16(&c);
	ret->ph_cnt = cur_u16(&c);
	ret->sh_len = cur_u16(&c);
	ret->sh_cnt = cur_u16(&c);
	return !c.failed;
}

uint64_t reach_elf_end(reach_read_fn read, void *ctx)
{
	struct head h;
	uint64_t end;
	if (!read_head(read, ctx, &h) || !h.sh_cnt || __builtin_add_overflow(h.sh_off, (uint64_t)h.sh_len * h.sh_cnt, &end))
		return 0;
	return end;
}

/* A table, owned; null when it is not whole, or longer than any sane one. */
static uint8_t *read_table(reach_read_fn read, void *ctx, uint64_t off, uint64_t len)
{
	if (!len || len > MAX_TABLE_LEN)
		return NULL;
	uint8_t *bytes = malloc((size_t)len);
	if (bytes && read(ctx, off, bytes, (size_t)len) == len)
		return bytes;
	free(bytes);
	return NULL;
}

/* Looks for the note among `len` bytes of notes. */
static unsigned find_id(const uint8_t *notes, size_t len, bool is_be, uint8_t ret_id[REACH_MAX_ID_LEN])
{
	struct cur c = cur_make(notes, len, is_be);
	while (cur_left(&c) >= 12) {
		uint64_t name_len = cur_u32(&c), desc_len = cur_u32(&c);
		uint32_t type = cur_u32(&c);
		const uint8_t *name = cur_bytes(&c, (name_len + 3) & ~3ull), *desc = cur_bytes(&c, (desc_len + 3) & ~3ull);
		if (!name || (!desc && desc_len))
			return 0;
		if (type == NT_GNU_BUILD_ID && name_len == 4 && !memcmp(name, "GNU", 4) && desc_len && desc_len <= REACH_MAX_ID_LEN) {
			memcpy(ret_id, desc, desc_len);
			return (unsigned)desc_len;
		}
	}
	return 0;
}

static unsigned id_at(reach_read_fn read, void *ctx, const struct head *h, struct reach_range at, uint8_t ret_id[REACH_MAX_ID_LEN])
{
	uint8_t *notes = at.len <= MAX_NOTES_LEN ? read_table(read, ctx, at.off, at.len) : NULL;
	unsigned len = notes ? find_id(notes, (size_t)at.len, h->is_be, ret_id) : 0;
	free(notes);
	return len;
}

unsigned reach_elf_id(reach_read_fn read, void *ctx, uint8_t ret_id[REACH_MAX_ID_LEN])
{
	struct head h;
	if (!read_head(read, ctx, &h) || h.ph_len < (h.is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)))
		return 0;
	uint64_t table_len = (uint64_t)h.ph_len * h.ph_cnt;
	uint8_t *table = read_table(read, ctx, h.ph_off, table_len);
	unsigned len = 0;
	for (unsigned i = 0; table && i < h.ph_cnt && !len; i++) {
		struct cur c = cur_make(table + (size_t)i * h.ph_len, h.ph_len, h.is_be);
		if (cur_u32(&c) != PT_NOTE)
			continue;
		cur_seek(&c, h.is_64 ? offsetof(Elf64_Phdr, p_offset) : offsetof(Elf32_Phdr, p_offset));
		struct reach_range at = {.off = cur_word(&c, h.is_64 ? 8 : 4)};
		cur_seek(&c, h.is_64 ? offsetof(Elf64_Phdr, p_filesz) : offsetof(Elf32_Phdr, p_filesz));
		at.len = cur_word(&c, h.is_64 ? 8 : 4);
		len = id_at(read, ctx, &h, at, ret_id);
	}
	free(table);
	return len;
}

/* How soon a section is needed; 0: with the rest. */
static unsigned rank_of(uint32_t type, uint64_t flags)
{
	switch (type) {
	case SHT_DYNSYM:
	case SHT_SYMTAB:
		return 1;
	case SHT_STRTAB:
		return 2;
	case SHT_DYNAMIC:
	case SHT_INIT_ARRAY:
	case SHT_FINI_ARRAY:
	case SHT_RELA:
	case SHT_REL:
	case SHT_NOTE:
		return flags & SHF_ALLOC ? 3 : 0;
	case SHT_GNU_verdef:
	case SHT_GNU_verneed:
	case SHT_GNU_versym:
		return 4;
	default:
		return 0;
	}
}

static bool is_named(const uint8_t *names, uint64_t names_len, uint32_t at, const char *name)
{
	size_t len = strlen(name) + 1;
	return names && at < names_len && names_len - at >= len && !memcmp(names + at, name, len);
}

/* Sections of one rank, after those that are there. */
struct firsts {
	struct reach_range *all;
	unsigned cnt;
	uint64_t file_len;
};

static void add_first(struct firsts *f, struct reach_range r)
{
	if (f->cnt < REACH_MAX_FIRST && r.len && r.off < f->file_len && r.len <= f->file_len - r.off)
		f->all[f->cnt++] = r;
}

struct section {
	uint32_t name, type;
	uint64_t flags;
	struct reach_range at;
};

static struct section section_at(const struct head *h, const uint8_t *table, unsigned i)
{
	unsigned word_len = h->is_64 ? 8 : 4;
	struct cur c = cur_make(table + (size_t)i * h->sh_len, h->sh_len, h->is_be);
	struct section s = {.name = cur_u32(&c), .type = cur_u32(&c), .flags = cur_word(&c, word_len)};
	cur_skip(&c, word_len);
	s.at.off = cur_word(&c, word_len);
	s.at.len = cur_word(&c, word_len);
	return s;
}

bool reach_elf_first(reach_read_fn read, void *ctx, uint64_t file_len, struct reach_range ret[REACH_MAX_FIRST], unsigned *ret_cnt)
{
	struct head h;
	*ret_cnt = 0;
	if (!read_head(read, ctx, &h) || h.sh_len < (h.is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr)) || !h.sh_cnt)
		return false;
	uint64_t table_len = (uint64_t)h.sh_len * h.sh_cnt;
	struct firsts f = {.all = ret, .file_len = file_len};
	uint8_t *table = read_table(read, ctx, h.sh_off, table_len), *names = NULL;
	if (!table) {
		add_first(&f, (struct reach_range){h.sh_off, table_len});
		*ret_cnt = f.cnt;
		return false;
	}
	/* The names of sections lie among the string tables; without them yet only types count, which is nearly all. */
	uint64_t names_len = 0;
	for (unsigned i = 0; i < h.sh_cnt && !names; i++) {
		struct section s = section_at(&h, table, i);
		if (s.type != SHT_STRTAB || (s.flags & SHF_ALLOC) || s.at.len > 65536)
			continue;
		names = read_table(read, ctx, s.at.off, s.at.len);
		names_len = names ? s.at.len : 0;
	}
	for (unsigned rank = 1; rank <= 5; rank++) {
		for (unsigned i = 0; i < h.sh_cnt; i++) {
			struct section s = section_at(&h, table, i);
			bool is_unwind = s.type != SHT_NOBITS && (is_named(names, names_len, s.name, ".eh_frame") ||
								  is_named(names, names_len, s.name, ".eh_frame_hdr"));
			if (is_unwind ? rank == 5 : rank_of(s.type, s.flags) == rank)
				add_first(&f, s.at);
		}
	}
	*ret_cnt = f.cnt;
	free(table);
	free(names);
	return true;
}
