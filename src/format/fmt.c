/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening by format, and the questions everybody asks of what was opened: what lies at an address.
 * Only these read across formats; what a header means is known to its reader alone.
 */
#include "format/fmt.h"

#include "base/cur.h"
#include "format/elf_int.h"
#include "format/fmt_int.h"

struct err *fmt_open(const uint8_t *bytes, uint64_t len, struct fmt_bin **ret)
{
	if (len == 0)
		return err_new(ERR_BAD_INPUT, "the file is empty");
	if (len < 4 || memcmp(bytes, "\177ELF", 4) != 0)
		return err_new(ERR_UNSUPPORTED, "not an ELF file: it looks like %s",
			       fmt_looks_like(bytes, len));
	struct fmt_bin *b = calloc(1, sizeof(*b));
	if (!b)
		return &err_nomem;
	b->bytes = bytes;
	b->bytes_len = len;
	struct err *err = elf_open(b);
	if (err) {
		fmt_bin_free(b);
		return err;
	}
	*ret = b;
	return NULL;
}

void fmt_bin_free(struct fmt_bin *b)
{
	if (!b)
		return;
	VEC_FREE(&b->segments);
	VEC_FREE(&b->sections);
	VEC_FREE(&b->symbols);
	VEC_FREE(&b->relocs);
	VEC_FREE(&b->imports);
	VEC_FREE(&b->needed);
	VEC_FREE(&b->code_starts);
	VEC_FREE(&b->threads);
	VEC_FREE(&b->tables);
	VEC_FREE(&b->section_order);
	findings_fini(&b->findings);
	arena_fini(&b->arena);
	free(b);
}

const struct fmt_segment *fmt_segment_at(const struct fmt_bin *b, uint64_t va)
{
	size_t lo = 0;
	size_t hi = b->segments.cnt;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (b->segments.data[mid].va <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0)
		return NULL;
	const struct fmt_segment *s = &b->segments.data[lo - 1];
	return va - s->va < s->mem_len ? s : NULL;
}

/* Sections may overlap in lying files: of those that start at or before `va` the nearest that holds
 * it is taken, looking back over a bounded number of them. */
const struct fmt_section *fmt_section_at(const struct fmt_bin *b, uint64_t va)
{
	enum { LOOK_BACK = 64 };
	const uint32_t *order = b->section_order.data;
	size_t lo = 0;
	size_t hi = b->section_order.cnt;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (b->sections.data[order[mid]].va <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (size_t tries = 0; lo > 0 && tries < LOOK_BACK; lo--, tries++) {
		const struct fmt_section *s = &b->sections.data[order[lo - 1]];
		if (va - s->va < s->mem_len)
			return s;
	}
	return NULL;
}

const struct fmt_section *fmt_section_named(const struct fmt_bin *b, const char *name)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < b->sections.cnt; i++) {
		const struct fmt_section *s = &b->sections.data[i];
		if (s->name.s && s->name.len == len && memcmp(s->name.s, name, len) == 0)
			return s;
	}
	return NULL;
}

bool fmt_va_to_off(const struct fmt_bin *b, uint64_t va, uint64_t *ret_off)
{
	const struct fmt_segment *s = fmt_segment_at(b, va);
	if (!s || va - s->va >= s->file_len)
		return false;
	*ret_off = s->file_off + (va - s->va);
	return true;
}

bool fmt_off_to_va(const struct fmt_bin *b, uint64_t off, uint64_t *ret_va)
{
	for (size_t i = 0; i < b->segments.cnt; i++) {
		const struct fmt_segment *s = &b->segments.data[i];
		if (off >= s->file_off && off - s->file_off < s->file_len) {
			*ret_va = s->va + (off - s->file_off);
			return true;
		}
	}
	return false;
}

/* Copies the bytes as the file has them; segments that touch are read across. */
static size_t read_plain(const struct fmt_bin *b, uint64_t va, uint8_t *out, size_t len)
{
	size_t done = 0;
	while (done < len) {
		const struct fmt_segment *s = fmt_segment_at(b, va + done);
		if (!s)
			break;
		uint64_t skip = va + done - s->va;
		uint64_t want = s->mem_len - skip < len - done ? s->mem_len - skip : len - done;
		uint64_t from_file = skip < s->file_len ? s->file_len - skip : 0;
		if (from_file > want)
			from_file = want;
		/* Past the file's part `skip` may be anything, and forming the address alone would overflow. */
		if (from_file)
			memcpy(out + done, b->bytes + s->file_off + skip, (size_t)from_file);
		memset(out + done + from_file, 0, (size_t)(want - from_file));
		done += (size_t)want;
		if (va + done < va)
			break;
	}
	return done;
}

static bool is_applied(const struct fmt_reloc *r)
{
	switch (r->kind) {
	case FMT_REL_POINTER:
	case FMT_REL_IMPORT:
	case FMT_REL_JUMP_SLOT:
	case FMT_REL_IRELATIVE:
	case FMT_REL_CODE:
		return true;
	default:
		return false;
	}
}

size_t fmt_read(const struct fmt_bin *b, uint64_t va, void *out, size_t len)
{
	enum { WIDTH_MAX = 8 };
	size_t done = len ? read_plain(b, va, out, len) : 0;
	uint64_t from = va > WIDTH_MAX - 1 ? va - (WIDTH_MAX - 1) : 0;
	size_t lo = 0;
	size_t hi = b->relocs.cnt;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (b->relocs.data[mid].va < from)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < b->relocs.cnt; lo++) {
		const struct fmt_reloc *r = &b->relocs.data[lo];
		if (r->va >= va && r->va - va >= done)
			break;
		if (!is_applied(r))
			continue;
		for (unsigned i = 0; i < r->width; i++) {
			uint64_t at = r->va + i - va; /* wraps, thus too large, before the range */
			unsigned shift = 8 * (b->is_be ? r->width - 1 - i : i);
			if (at < done)
				((uint8_t *)out)[at] = (uint8_t)(r->value >> shift);
		}
	}
	return done;
}
