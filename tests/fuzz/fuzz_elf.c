/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ELF reader on any bytes: opened or refused with a reason; what was opened keeps the promises
 * of format/fmt.h, every segment and section can be read, and no more memory was taken than
 * promised.
 */
#include "format/fmt.h"

#include "fuzz.h"

#include <stdio.h>

#define MUST(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s does not hold\n", #cond);                              \
			__builtin_trap();                                                          \
		}                                                                                  \
	} while (0)

/* Keeps the reads of section bytes from being dropped. */
static volatile uint8_t touched;

static bool is_inside(uint64_t off, uint64_t len, uint64_t whole)
{
	return off <= whole && len <= whole - off;
}

static void read_some(const struct fmt_bin *b, uint64_t va, uint64_t len)
{
	uint8_t out[64];
	size_t want = len < sizeof(out) ? (size_t)len : sizeof(out);
	MUST(fmt_read(b, va, out, want) == want);
}

static void check_segments(const struct fmt_bin *b)
{
	for (size_t i = 0; i < b->segments.cnt; i++) {
		const struct fmt_segment *s = &b->segments.data[i];
		MUST(s->mem_len > 0 && s->mem_len <= UINT64_MAX - s->va);
		MUST(s->file_len <= s->mem_len &&
		     is_inside(s->file_off, s->file_len, b->bytes_len));
		MUST(i == 0 ||
		     b->segments.data[i - 1].va + b->segments.data[i - 1].mem_len <= s->va);
		MUST(fmt_segment_at(b, s->va) == s &&
		     fmt_segment_at(b, s->va + s->mem_len - 1) == s);
		uint64_t off;
		MUST(fmt_va_to_off(b, s->va, &off) == (s->file_len > 0));
		if (i < 1000) {
			read_some(b, s->va, s->mem_len);
			read_some(b, s->va + s->mem_len - 1, 1);
		}
	}
}

static void check_sections(const struct fmt_bin *b)
{
	for (size_t i = 0; i < b->sections.cnt; i++) {
		const struct fmt_section *s = &b->sections.data[i];
		MUST(is_inside(s->file_off, s->file_len, b->bytes_len));
		MUST(s->is_alloc || s->va == 0);
		if (i >= 64)
			continue;
		struct arena arena = {0};
		const uint8_t *data;
		size_t len;
		struct err *err = fmt_section_data(b, s, true, &arena, &data, &len);
		for (size_t k = 0; !err && k < len && k < 4096; k++)
			touched ^= data[k] ^ data[len - 1 - k];
		err_free(err);
		arena_fini(&arena);
	}
}

static void check_str(const struct fmt_bin *b, struct fmt_str s)
{
	if (s.len == 0)
		return;
	MUST(s.s != NULL);
	MUST((const uint8_t *)s.s < b->bytes || (const uint8_t *)s.s >= b->bytes + b->bytes_len ||
	     is_inside((uint64_t)((const uint8_t *)s.s - b->bytes), s.len, b->bytes_len));
}

static void check_tables(const struct fmt_bin *b)
{
	for (size_t i = 0; i < b->symbols.cnt; i++) {
		const struct fmt_symbol *s = &b->symbols.data[i];
		MUST(!s->is_undefined || s->va == 0);
		MUST(i == 0 || b->symbols.data[i - 1].is_dynamic || !s->is_dynamic);
		check_str(b, s->name);
		check_str(b, s->version);
		check_str(b, s->library);
	}
	for (size_t i = 0; i < b->relocs.cnt; i++) {
		const struct fmt_reloc *r = &b->relocs.data[i];
		MUST(i == 0 || b->relocs.data[i - 1].va <= r->va);
		MUST(r->width == 1 || r->width == 2 || r->width == 4 || r->width == 8);
		MUST(r->width == 8 || r->value >> (8 * r->width) == 0);
		MUST(r->import == UINT32_MAX || r->import < b->imports.cnt);
		MUST(fmt_segment_at(b, r->va) != NULL);
	}
	for (size_t i = 0; i < b->imports.cnt; i++) {
		const struct fmt_import *m = &b->imports.data[i];
		MUST(m->symbol < b->symbols.cnt && b->symbols.data[m->symbol].is_undefined);
		MUST(m->va == 0 ||
		     fmt_segment_at(b, m->va) == &b->segments.data[b->segments.cnt - 1]);
	}
	for (size_t i = 0; i < b->needed.cnt; i++)
		check_str(b, b->needed.data[i]);
	for (size_t i = 0; i < b->code_starts.cnt; i++)
		MUST(fmt_segment_at(b, b->code_starts.data[i]) != NULL);
	MUST(!b->build_id ||
	     is_inside((uint64_t)(b->build_id - b->bytes), b->build_id_len, b->bytes_len));
}

static void check_memory(const struct fmt_bin *b)
{
	uint64_t used = b->segments.cap * sizeof(*b->segments.data) +
			b->sections.cap * sizeof(*b->sections.data) +
			b->symbols.cap * sizeof(*b->symbols.data) +
			b->relocs.cap * sizeof(*b->relocs.data) +
			b->imports.cap * sizeof(*b->imports.data) +
			b->needed.cap * sizeof(*b->needed.data) +
			b->code_starts.cap * sizeof(*b->code_starts.data) +
			b->threads.cap * sizeof(*b->threads.data) +
			b->section_order.cap * sizeof(uint32_t) + b->arena.used_len;
	MUST(used <= (17u << 20) + 4 * b->bytes_len);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fmt_bin *b = NULL;
	struct err *err = fmt_open(bytes, len, &b);
	if (err) {
		MUST(err->kind == ERR_UNSUPPORTED || err->kind == ERR_BAD_INPUT ||
		     err->kind == ERR_BUDGET);
		MUST(err->text && err->text[0]);
		err_free(err);
		fuzz_rejected++;
		return 0;
	}
	check_segments(b);
	check_sections(b);
	check_tables(b);
	check_memory(b);
	/* Opened, but something was said about it: half a rejection. */
	if (b->findings.list.cnt)
		fuzz_rejected++;
	else
		fuzz_accepted++;
	fmt_bin_free(b);
	return 0;
}
