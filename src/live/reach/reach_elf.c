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
	unsigned ph_len, ph_cnt, sh_len, sh_cnt, name_idx;
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
	ret->name_idx = cur_u16(&c);
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

/* Where an entry of the program or section headers says that notes are; 0 bytes: it says something else. */
static struct reach_range notes_at(const struct head *h, const uint8_t *entry, unsigned len, bool is_section)
{
	struct cur c = cur_make(entry, len, h->is_be);
	unsigned word_len = h->is_64 ? 8 : 4;
	struct reach_range at = {0};
	size_t off_at = h->is_64 ? offsetof(Elf64_Phdr, p_offset) : offsetof(Elf32_Phdr, p_offset);
	size_t len_at = h->is_64 ? offsetof(Elf64_Phdr, p_filesz) : offsetof(Elf32_Phdr, p_filesz);
	if (is_section) {
		off_at = h->is_64 ? offsetof(Elf64_Shdr, sh_offset) : offsetof(Elf32_Shdr, sh_offset);
		len_at = h->is_64 ? offsetof(Elf64_Shdr, sh_size) : offsetof(Elf32_Shdr, sh_size);
		cur_skip(&c, 4);
	}
	if (cur_u32(&c) != (is_section ? SHT_NOTE : PT_NOTE))
		return at;
	cur_seek(&c, off_at);
	at.off = cur_word(&c, word_len);
	cur_seek(&c, len_at);
	at.len = cur_word(&c, word_len);
	return at;
}

unsigned reach_elf_id(reach_read_fn read, void *ctx, uint8_t ret_id[REACH_MAX_ID_LEN])
{
	struct head h;
	unsigned id_len = 0;
	if (!read_head(read, ctx, &h))
		return 0;
	/* What is not linked has sections only. */
	for (unsigned k = 0; k < 2 && !id_len; k++) {
		unsigned len = k ? h.sh_len : h.ph_len, cnt = k ? h.sh_cnt : h.ph_cnt;
		size_t min_len = k ? (h.is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr)) : h.is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
		uint8_t *table = len < min_len ? NULL : read_table(read, ctx, k ? h.sh_off : h.ph_off, (uint64_t)len * cnt);
		for (unsigned i = 0; table && i < cnt && !id_len; i++)
			id_len = id_at(read, ctx, &h, notes_at(&h, table + (size_t)i * len, len, k), ret_id);
		free(table);
	}
	return id_len;
}

static bool is_table(uint32_t type, const char *name)
{
	switch (type) {
	case SHT_SYMTAB:
	case SHT_STRTAB:
	case SHT_RELA:
	case SHT_DYNAMIC:
	case SHT_NOTE:
	case SHT_REL:
	case SHT_DYNSYM:
	case SHT_SYMTAB_SHNDX:
	case SHT_GNU_verdef:
	case SHT_GNU_verneed:
	case SHT_GNU_versym:
		return true;
	default:
		return !strcmp(name, ".eh_frame") || !strcmp(name, ".eh_frame_hdr");
	}
}

/* A section header's type, place and name's offset. */
static struct reach_range section_at(const struct head *h, const uint8_t *entry, uint32_t *ret_name, uint32_t *ret_type)
{
	struct cur c = cur_make(entry, h->sh_len, h->is_be);
	unsigned word_len = h->is_64 ? 8 : 4;
	struct reach_range at;
	*ret_name = cur_u32(&c);
	*ret_type = cur_u32(&c);
	cur_seek(&c, h->is_64 ? offsetof(Elf64_Shdr, sh_offset) : offsetof(Elf32_Shdr, sh_offset));
	at.off = cur_word(&c, word_len);
	at.len = cur_word(&c, word_len);
	return at;
}

size_t reach_elf_tables(reach_read_fn read, void *ctx, struct reach_range *ret, size_t max)
{
	struct head h;
	if (!read_head(read, ctx, &h) || h.sh_len < (h.is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr)))
		return 0;
	uint8_t *table = read_table(read, ctx, h.sh_off, (uint64_t)h.sh_len * h.sh_cnt);
	uint32_t name, type;
	struct reach_range names = {0};
	if (table && h.name_idx < h.sh_cnt)
		names = section_at(&h, table + (size_t)h.name_idx * h.sh_len, &name, &type);
	uint8_t *text = read_table(read, ctx, names.off, names.len);
	size_t cnt = 0;
	for (unsigned i = 0; table && i < h.sh_cnt && cnt < max; i++) {
		struct reach_range at = section_at(&h, table + (size_t)i * h.sh_len, &name, &type);
		bool has_name = text && name < names.len && memchr(text + name, 0, (size_t)(names.len - name));
		if (type != SHT_NOBITS && at.len && is_table(type, has_name ? (const char *)text + name : ""))
			ret[cnt++] = at;
	}
	free(text);
	free(table);
	return cnt;
}
