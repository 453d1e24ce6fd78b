/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo/dw_image.h"

#include "base/cur.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>

/* Section 0 is the null section, then ours, then the names. */
#define DW_IMAGE_ALL_MAX (DW_IMAGE_SECTIONS_MAX + 2)

static const char *const dw_image_names[] = {
	".debug_info", ".debug_abbrev", ".debug_str", ".debug_line", ".debug_line_str", ".debug_ranges",
	".debug_rnglists", ".debug_addr", ".debug_str_offsets", ".debug_types", ".debug_loc", ".debug_loclists",
	".debug_aranges",
};
_Static_assert(ARRAY_LEN(dw_image_names) <= DW_IMAGE_SECTIONS_MAX, "room for all sections");

/* Which of dw_image_names a section is, under its own name or as ".zdebug_info"; -1 for none. */
static int dw_image_kind(struct fmt_str name)
{
	bool is_packed = name.len > 2 && name.s[1] == 'z';
	for (size_t i = 0; i < ARRAY_LEN(dw_image_names); i++) {
		const char *want = dw_image_names[i];
		size_t len = strlen(want);
		if (is_packed ? name.len == len + 1 && name.s[0] == '.' && memcmp(name.s + 2, want + 1, len - 1) == 0 :
				name.len == len && memcmp(name.s, want, len) == 0)
			return (int)i;
	}
	return -1;
}

bool dbg_dw_is_there(const struct fmt_bin *b)
{
	for (size_t i = 0; i < b->sections.cnt; i++) {
		const struct fmt_section *s = &b->sections.data[i];
		if (s->file_len && dw_image_kind(s->name) == 0)
			return true;
	}
	return false;
}

/* Unpacking zstd would load its library, which the locked child cannot; prepare has tried to. */
static bool dw_image_can_unpack(const struct fmt_bin *b, const struct fmt_section *s)
{
	if (!(s->raw_flags & SHF_COMPRESSED))
		return true;
	struct cur c = cur_make(b->bytes + s->file_off, (size_t)s->file_len, b->is_be);
	const char *needs = cur_u32(&c) == 1 ? "libz.so.1" : "libzstd.so.1";
	return c.failed || dlopen(needs, RTLD_NOW | RTLD_NOLOAD) != NULL;
}

static void dw_image_note(struct dw_image *m, const char *name, const char *why)
{
	if (m->note_cnt < DW_IMAGE_NOTES_MAX)
		snprintf(m->notes[m->note_cnt++], sizeof(m->notes[0]), "%s: %s", name, why);
}

static void dw_image_section(const struct fmt_bin *b, const struct fmt_section *s, struct dw_image *m, int kind)
{
	const uint8_t *bytes = NULL;
	size_t len = 0;
	const char *name = dw_image_names[kind];
	if (!dw_image_can_unpack(b, s)) {
		dw_image_note(m, name, "it is packed, and the library that unpacks it is not installed");
		return;
	}
	bool relocate = b->type == FMT_TYPE_OBJECT || b->type == FMT_TYPE_MODULE;
	struct err *e = fmt_section_data(b, s, relocate, &m->arena, &bytes, &len);
	if (e) {
		dw_image_note(m, name, e->text);
		err_free(e);
		return;
	}
	m->sections[kind].bytes = bytes;
	m->sections[kind].len = len;
	if (kind == 0 || strcmp(name, ".debug_types") == 0)
		m->info_len += len;
}

/* Little- or big-endian store of `len` bytes. */
static void dw_image_store(const struct fmt_bin *b, uint8_t *at, uint64_t v, unsigned len)
{
	for (unsigned i = 0; i < len; i++)
		at[b->is_be ? len - 1 - i : i] = (uint8_t)(v >> (8 * i));
}

/* A section header (gABI, "Section header"): the two classes differ in word length only. */
struct dw_image_header {
	uint32_t name_off, type;
	uint64_t file_off, len;
};

static void dw_image_put_header(const struct fmt_bin *b, uint8_t *at, const struct dw_image_header *h)
{
	unsigned word = b->bits / 8;
	dw_image_store(b, at, h->name_off, 4);
	dw_image_store(b, at + 4, h->type, 4);
	dw_image_store(b, at + 8 + 2 * word, h->file_off, word);
	dw_image_store(b, at + 8 + 3 * word, h->len, word);
	dw_image_store(b, at + 16 + 4 * word, 1, word); /* alignment */
}

static void dw_image_put_ehdr(const struct fmt_bin *b, struct dw_image *m, uint64_t headers_off, unsigned cnt)
{
	unsigned word = b->bits / 8;
	uint8_t *at = m->file;
	memcpy(at, ELFMAG, SELFMAG);
	at[EI_CLASS] = b->bits == 64 ? ELFCLASS64 : ELFCLASS32;
	at[EI_DATA] = b->is_be ? ELFDATA2MSB : ELFDATA2LSB;
	at[EI_VERSION] = EV_CURRENT;
	dw_image_store(b, at + 16, ET_EXEC, 2);
	dw_image_store(b, at + 18, b->raw_machine, 2);
	dw_image_store(b, at + 20, EV_CURRENT, 4);
	dw_image_store(b, at + 24 + 2 * word, headers_off, word);
	at += 24 + 3 * word + 4; /* after e_shoff and e_flags */
	dw_image_store(b, at, b->bits == 64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr), 2);
	dw_image_store(b, at + 6, b->bits == 64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr), 2);
	dw_image_store(b, at + 8, cnt, 2);
	dw_image_store(b, at + 10, cnt - 1, 2); /* the names come last */
}

/* Lays out the file: header, one byte for each section (the real bytes are put in later), names, headers. */
static bool dw_image_lay_out(const struct fmt_bin *b, struct dw_image *m)
{
	size_t ehdr_len = b->bits == 64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
	size_t shdr_len = b->bits == 64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	size_t names_off = ehdr_len + DW_IMAGE_SECTIONS_MAX, names_len = 1;
	size_t headers_off = names_off + DW_IMAGE_ALL_MAX * 32;
	headers_off += (16 - headers_off % 16) % 16;
	m->file_len = headers_off + DW_IMAGE_ALL_MAX * shdr_len;
	m->file = calloc(1, m->file_len);
	if (!m->file)
		return false;
	struct dw_image_header h;
	unsigned cnt = 1;
	for (size_t i = 0; i < ARRAY_LEN(dw_image_names); i++) {
		if (!m->sections[i].len)
			continue;
		size_t name_len = strlen(dw_image_names[i]) + 1;
		memcpy(m->file + names_off + names_len, dw_image_names[i], name_len);
		h = (struct dw_image_header){(uint32_t)names_len, SHT_PROGBITS, ehdr_len + i, 1};
		dw_image_put_header(b, m->file + headers_off + cnt++ * shdr_len, &h);
		names_len += name_len;
	}
	static const char own_name[] = ".shstrtab";
	memcpy(m->file + names_off + names_len, own_name, sizeof(own_name));
	h = (struct dw_image_header){(uint32_t)names_len, SHT_STRTAB, names_off, names_len + sizeof(own_name)};
	dw_image_put_header(b, m->file + headers_off + cnt++ * shdr_len, &h);
	dw_image_put_ehdr(b, m, headers_off, cnt);
	return true;
}

bool dbg_dw_image_make(const struct fmt_bin *b, struct dw_image *ret)
{
	for (size_t i = 0; i < b->sections.cnt; i++) {
		const struct fmt_section *s = &b->sections.data[i];
		int kind = s->file_len ? dw_image_kind(s->name) : -1;
		if (kind >= 0 && !ret->sections[kind].bytes)
			dw_image_section(b, s, ret, kind);
	}
	return dw_image_lay_out(b, ret);
}

dw_elf *dbg_dw_image_open(const struct dw_api *dw, struct dw_image *m)
{
	dw_elf *elf = dw->elf_memory((char *)m->file, m->file_len);
	size_t idx = 1;
	for (size_t i = 0; elf && i < ARRAY_LEN(dw_image_names); i++) {
		if (!m->sections[i].len)
			continue;
		dw_scn *scn = dw->elf_getscn(elf, idx++);
		struct dw_data *data = scn ? dw->elf_getdata(scn, NULL) : NULL;
		if (!data)
			return NULL;
		/* The library reads through this descriptor, and does not write. */
		data->buf = (void *)(uintptr_t)m->sections[i].bytes;
		data->len = m->sections[i].len;
	}
	return elf;
}
