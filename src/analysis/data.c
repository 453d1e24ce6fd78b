/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/data_int.h"

#include "base/cleanup.h"
#include "base/cur.h"

#include <string.h>

/*
 * What the bytes that are no code hold. First come facts: relocated words, jump tables, sections of known form,
 * objects of a size that says what they are, pointers. Then strings (strings.c, strings_len.c). What is left
 * is cut where something refers to it or a symbol begins, and each piece is a datum of the width code
 * reads, padding, or unknown bytes in rows that end at multiples of 16. Every pass is linear in the bytes or in the
 * references, and works on bit sets, so the order in which references were found does not show.
 */
#define ROW_LEN 16
#define ZERO_RUN_LEN 32 /* zeros without a reference: from here on one item */
#define PAD_LEN_MAX 64  /* zeros up to an aligned neighbour: padding */

bool analysis_claim(struct data_stage *x, uint32_t loc, uint32_t len)
{
	if (!len || !data_is_free(x, loc, loc + len))
		return false;
	bits_set_range(x->taken, loc, loc + len);
	bits_set(x->d->item_bits, loc);
	return true;
}

bool analysis_claim_string(struct data_stage *x, struct image_string s, uint32_t zero_len)
{
	if (!analysis_claim(x, s.loc, s.len + zero_len))
		return false;
	bits_set_range(x->string, s.loc, s.loc + s.len + zero_len);
	if (!VEC_PUSH(&x->d->strings, s))
		x->no_memory = true;
	return true;
}

/* End of the file-backed part of the segment that holds loc; 0 when loc is not file-backed. */
static uint32_t file_end(const struct data_stage *x, uint32_t loc)
{
	int i = space_seg_of_loc(&x->d->space, loc);
	if (i < 0)
		return 0;
	const struct space_seg *s = &x->d->segs.data[i];
	return loc - s->loc < s->file_len ? s->loc + (uint32_t)s->file_len : 0;
}

/* The part of an allocated section that lies in one segment's file bytes; false when there is none. */
static bool section_span(const struct data_stage *x, const struct image_section *sec, uint32_t *ret_loc,
			 uint32_t *ret_end)
{
	if (!sec->is_alloc || !sec->mem_len || !sec->file_len)
		return false; /* .tbss claims addresses that are others' */
	uint32_t loc = space_loc(&x->d->space, sec->va);
	uint32_t end = loc == LOC_NONE ? 0 : file_end(x, loc);
	if (!end)
		return false;
	*ret_loc = loc;
	*ret_end = end - loc > sec->mem_len ? loc + (uint32_t)sec->mem_len : end;
	return true;
}

static bool section_is_code(const struct image_section *sec)
{
	return sec->kind == FMT_SEC_CODE || sec->kind == FMT_SEC_PLT || sec->kind == FMT_SEC_INIT;
}

static int compare_sections(const void *a, const void *b)
{
	const struct image_section *x = *(const struct image_section *const *)a;
	const struct image_section *y = *(const struct image_section *const *)b;
	if (x->va != y->va)
		return x->va < y->va ? -1 : 1;
	return x < y ? -1 : x > y; /* both point into one array */
}

/* Some linkers leave the mark of string sections on a section that holds other things too. */
static bool is_all_strings(const struct data_zone *z)
{
	uint32_t len = z->end - z->loc, at = 0;
	bool is_ascii;
	while (at < len) {
		at += (uint32_t)analysis_text_run(z->bytes + at, len - at, &is_ascii);
		if (at == len || z->bytes[at])
			return false;
		at++;
	}
	return true;
}

/* Zones of one segment: its sections and the parts between them, which are as the segment is. */
static void zones_of(struct data_stage *x, const struct space_seg *seg,
		     const struct image_section **secs, size_t sec_cnt, data_zone_fn *fn)
{
	uint32_t at = seg->loc, end = seg->loc + (uint32_t)seg->file_len;
	struct data_zone base = {.is_exec = (seg->perm & FMT_X) != 0, .is_writable = (seg->perm & FMT_W) != 0};
	for (size_t i = 0; at < end; i++) {
		struct data_zone z = base;
		size_t len;
		uint32_t sec_loc = end, sec_end = end;
		if (i < sec_cnt && (!section_span(x, secs[i], &sec_loc, &sec_end) || sec_end <= at))
			continue;
		if (sec_loc > at && sec_loc <= end) {
			z.loc = at;
			z.end = sec_loc;
			z.bytes = space_bytes(&x->d->space, z.loc, &len);
			if (z.bytes && len >= z.end - z.loc)
				fn(x, &z);
			at = sec_loc;
		}
		if (i >= sec_cnt || sec_loc >= end)
			break;
		z.loc = at;
		z.end = MIN(sec_end, end);
		z.is_exec = section_is_code(secs[i]) || (base.is_exec && secs[i]->kind == FMT_SEC_OTHER);
		z.bytes = space_bytes(&x->d->space, z.loc, &len);
		if (z.bytes && len >= z.end - z.loc && z.loc < z.end) {
			z.is_strings = secs[i]->is_strings && secs[i]->entry_len <= 1 && is_all_strings(&z);
			fn(x, &z);
		}
		at = z.end;
	}
}

void analysis_each_zone(struct data_stage *x, data_zone_fn *fn)
{
	struct image_data *d = x->d;
	_cleanup_free_ const struct image_section **secs = alloc_array(d->sections.cnt, sizeof(*secs));
	if (!secs) {
		x->no_memory = true;
		return;
	}
	size_t cnt = 0;
	for (size_t i = 0; i < d->sections.cnt; i++) {
		if (d->sections.data[i].is_alloc && d->sections.data[i].mem_len)
			secs[cnt++] = &d->sections.data[i];
	}
	if (cnt)
		qsort(secs, cnt, sizeof(*secs), compare_sections);
	size_t s = 0;
	for (size_t i = 0; i < d->segs.cnt; i++) {
		const struct space_seg *seg = &d->segs.data[i];
		while (s < cnt && secs[s]->va < seg->va)
			s++;
		size_t first = s;
		while (s < cnt && secs[s]->va - seg->va < seg->mem_len)
			s++;
		zones_of(x, seg, secs + first, s - first, fn);
	}
}

/* A place in data that something refers to or that has a name; with neither only the edge of something. */
static void mark(struct data_stage *x, uint32_t loc, bool is_known, bool is_edge)
{
	int i = space_seg_of_loc(&x->d->space, loc);
	if (i < 0)
		return;
	const struct space_seg *s = &x->d->segs.data[i];
	if (loc - s->loc >= s->file_len) {
		if (!analysis_zone_at(x->zones.data, x->zones.cnt, loc) && !VEC_PUSH(&x->nobits, loc))
			x->no_memory = true;
		return;
	}
	if (is_known)
		bits_set(x->cut, loc);
	if (is_edge)
		bits_set(x->edge, loc);
}

static void mark_xref(struct data_stage *x, const struct image_xref *r)
{
	if (r->kind == IMAGE_XREF_CALL || r->kind == IMAGE_XREF_JUMP || r->to >= x->d->loc_cnt ||
	    bits_get(x->code, r->to))
		return;
	mark(x, r->to, true, false);
	if (!file_end(x, r->to))
		return;
	if (r->kind == IMAGE_XREF_OFFSET)
		bits_set(x->pointed, r->to);
	for (unsigned i = 0; i < DATA_WIDTH_PLANES; i++) {
		if (r->width == 1u << i)
			bits_set(x->width[i], r->to);
	}
}

static void add_pointer(struct data_stage *x, uint32_t from, uint32_t to)
{
	struct image_xref r = {.from = from, .to = to, .kind = IMAGE_XREF_OFFSET};
	if (!VEC_PUSH(&x->d->xrefs, r))
		x->no_memory = true;
}

#define NOBITS_UNITS_MAX 65536u

/* Without file bytes items are told by where they begin; what begins between them is passed over (mark). */
static void stated_nobits(struct data_stage *x, const struct stated_zone *z, uint32_t unit)
{
	if ((z->to - z->from) / unit > NOBITS_UNITS_MAX || z->kind != ANALYSIS_DATA)
		unit = z->to - z->from;
	for (uint32_t at = z->from; at < z->to; at += MIN(unit, z->to - at)) {
		if (!VEC_PUSH(&x->nobits, at))
			x->no_memory = true;
	}
	if (!VEC_PUSH(&x->nobits_end, z->to) || !VEC_PUSH(&x->nobits, z->to))
		x->no_memory = true;
}

/* What people stated comes before everything. Bytes of unknown meaning are taken meanwhile, so that nobody claims them. */
static void claim_stated(struct data_stage *x)
{
	for (size_t i = 0; i < x->zones.cnt; i++) {
		const struct stated_zone *z = &x->zones.data[i];
		uint32_t unit = z->unit && z->unit < z->to - z->from ? z->unit : z->to - z->from;
		if (!z->is_filed) {
			stated_nobits(x, z, unit);
			continue;
		}
		struct image_string s = {z->from, z->to - z->from - z->zero_len, z->encoding};
		uint64_t va;
		switch ((enum analysis_stated_kind)z->kind) {
		case ANALYSIS_UNDEF:
			bits_set_range(x->taken, z->from, z->to);
			break;
		case ANALYSIS_STRING:
			analysis_claim_string(x, s, z->zero_len);
			break;
		case ANALYSIS_DATA:
			for (uint32_t at = z->from; at < z->to; at += MIN(unit, z->to - at)) {
				analysis_claim(x, at, MIN(unit, z->to - at));
				uint32_t to = z->is_pointer && space_word(&x->d->space, at, x->d->space.word_len, &va) ?
					      space_loc(&x->d->space, va) : LOC_NONE;
				uint32_t reloc = space_reloc_at(&x->d->space, at);
				bool is_told = reloc < x->d->space.reloc_cnt && x->d->space.reloc_loc[reloc] == at;
				if (to != LOC_NONE && !is_told)
					add_pointer(x, at, to);
			}
			break;
		case ANALYSIS_CODE:
		case ANALYSIS_FUNC:
			break;
		}
	}
}

static void claim_relocs(struct data_stage *x)
{
	const struct space *s = &x->d->space;
	for (uint32_t i = 0; i < s->reloc_cnt; i++) {
		uint32_t loc = s->reloc_loc[i], width = s->reloc_kind[i] & 15;
		uint32_t end = file_end(x, loc);
		if (bits_get(x->code, loc))
			continue;
		if (end && end - loc >= width)
			analysis_claim(x, loc, width);
		else if (!VEC_PUSH(&x->nobits, loc))
			x->no_memory = true;
		if (!(s->reloc_kind[i] & (SPACE_REL_WIDE | SPACE_REL_CODE)))
			add_pointer(x, loc, s->reloc_val[i]);
	}
}

/* `cnt` items of `len` bytes one behind the other, where they are free. */
static void claim_array(struct data_stage *x, uint32_t loc, uint64_t cnt, uint32_t len)
{
	uint32_t end = loc < x->d->loc_cnt ? file_end(x, loc) : 0;
	for (uint64_t i = 0; i < cnt && loc < end && end - loc >= len; i++, loc += len)
		analysis_claim(x, loc, len);
}

static void claim_tables(struct data_stage *x)
{
	for (size_t i = 0; i < x->d->tables.cnt; i++) {
		const struct image_table *t = &x->d->tables.data[i];
		uint64_t entry_cnt = t->target_cnt;
		if (t->index_loc != LOC_NONE) {
			uint64_t top = 0, v;
			for (uint32_t k = 0; k < t->target_cnt && space_word(&x->d->space, t->index_loc + k, 1, &v); k++)
				top = MAX(top, v);
			entry_cnt = top + 1;
			claim_array(x, t->index_loc, t->target_cnt / ROW_LEN, ROW_LEN);
			claim_array(x, t->index_loc + t->target_cnt / ROW_LEN * ROW_LEN, 1, t->target_cnt % ROW_LEN);
		}
		if (t->table_loc != LOC_NONE && t->entry_bytes)
			claim_array(x, t->table_loc, entry_cnt, t->entry_bytes);
	}
}

/* Records of .eh_frame (LSB 5.0, 10.6.1): a length, then so many bytes. */
static void claim_eh_frame(struct data_stage *x, uint32_t loc, uint32_t end)
{
	while (loc < end && end - loc >= 4) {
		uint64_t len, wide;
		if (!space_word(&x->d->space, loc, 4, &len))
			return;
		uint64_t all = len + 4;
		if (len == UINT32_MAX) {
			if (end - loc < 12 || !space_word(&x->d->space, loc + 4, 8, &wide) || wide > end - loc)
				return;
			all = wide + 12;
		}
		if (all > end - loc)
			return;
		analysis_claim(x, loc, (uint32_t)all);
		loc += (uint32_t)all;
	}
}

/* Notes (ELF gABI, "Note Section"): three words, a name and a description, each filled up to four bytes. */
static void claim_notes(struct data_stage *x, uint32_t loc, uint32_t end)
{
	while (loc < end && end - loc >= 12) {
		uint64_t name_len, desc_len;
		if (!space_word(&x->d->space, loc, 4, &name_len) || !space_word(&x->d->space, loc + 4, 4, &desc_len))
			return;
		uint64_t all = 12 + (name_len + 3) / 4 * 4 + (desc_len + 3) / 4 * 4;
		if (all > end - loc)
			return;
		analysis_claim(x, loc, (uint32_t)all);
		loc += (uint32_t)all;
	}
}

/* Rows of `len` bytes over what is free in [loc, end); the last one may be shorter. */
static void claim_rows(struct data_stage *x, uint32_t loc, uint32_t end, uint32_t len)
{
	while (loc < end) {
		uint32_t next = end - loc > len ? loc + len : end;
		if (!analysis_claim(x, loc, next - loc)) {
			/* Something lies in this row: fill around it, then go on behind. */
			for (uint32_t at = loc; at < next;) {
				uint32_t used = (uint32_t)bits_next(x->taken, at, next);
				if (used > at)
					analysis_claim(x, at, used - at);
				for (at = used; at < next && bits_get(x->taken, at); at++)
					;
			}
		}
		loc = next;
	}
}

static bool name_is(const struct data_stage *x, const struct image_section *sec, const char *name)
{
	size_t len = strlen(name);
	return sec->name.len == len && !memcmp(x->d->pool.data + sec->name.off, name, len);
}

/* Stretches whose form is known hold no program's strings, whatever their bytes look like. False when `kind` is none of
 * those. */
static bool claim_known(struct data_stage *x, uint32_t loc, uint32_t end, uint8_t kind, uint32_t entry_len)
{
	uint32_t entry = entry_len >= 4 && entry_len <= 64 ? entry_len : ROW_LEN;
	switch (kind) {
	case FMT_SEC_EH_FRAME:
		claim_eh_frame(x, loc, end);
		claim_rows(x, loc, end, ROW_LEN);
		return true;
	case FMT_SEC_EH_FRAME_HDR:
		claim_rows(x, loc, MIN(end, loc + 4), 4);
		claim_rows(x, MIN(end, loc + 4), MIN(end, loc + 12), 4);
		claim_rows(x, MIN(end, loc + 12), end, 8);
		return true;
	case FMT_SEC_NOTE:
		claim_notes(x, loc, end);
		claim_rows(x, loc, end, 4);
		return true;
	case FMT_SEC_SYMTAB:
	case FMT_SEC_RELOC:
		claim_rows(x, loc, end, entry);
		return true;
	case FMT_SEC_STRTAB:
	case FMT_SEC_GOPCLNTAB:
	case FMT_SEC_DEBUG:
		claim_rows(x, loc, end, ROW_LEN);
		return true;
	case FMT_SEC_GOT:
		claim_rows(x, loc, end, x->d->space.word_len);
		return true;
	default:
		return false;
	}
}

static void claim_section(struct data_stage *x, const struct image_section *sec)
{
	static const struct {
		const char *name;
		uint8_t len; /* of an entry, 0: a word */
	} tables[] = {
		{".gcc_except_table", ROW_LEN}, {".hash", 4},      {".gnu.hash", 4},      {".gnu.version", ROW_LEN},
		{".gnu.version_r", 4},          {".gnu.version_d", 4}, {".gnu.liblist", 4}, {".dynamic", 0},
		{".init_array", 0},             {".fini_array", 0}, {".preinit_array", 0}, {".relr.dyn", 0},
	};
	uint32_t loc, end;
	if (!section_span(x, sec, &loc, &end) || claim_known(x, loc, end, sec->kind, sec->entry_len))
		return;
	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		if (name_is(x, sec, tables[i].name)) {
			claim_rows(x, loc, end, tables[i].len ? tables[i].len : x->d->space.word_len);
			return;
		}
	}
}

static void claim_tables_of_loader(struct data_stage *x)
{
	for (size_t i = 0; i < x->d->known.cnt; i++) {
		const struct image_known *k = &x->d->known.data[i];
		uint32_t data_end = file_end(x, k->loc), end = k->loc + k->len;
		if (!data_end)
			continue;
		end = MIN(end, data_end);
		if (!claim_known(x, k->loc, end, k->kind, k->entry_len))
			claim_rows(x, k->loc, end, k->entry_len >= 4 ? k->entry_len : ROW_LEN);
	}
}

/* Edges of objects with a symbol, and the objects whose size says that they are one number. */
static void claim_objects(struct data_stage *x)
{
	struct image_data *d = x->d;
	for (size_t i = 0; i < d->names.cnt; i++) {
		uint32_t loc = d->names.data[i].loc;
		if (loc < d->loc_cnt && !bits_get(x->code, loc))
			mark(x, loc, true, true);
	}
	for (size_t i = 0; i < d->symbols.cnt; i++) {
		const struct image_symbol *s = &d->symbols.data[i];
		if ((s->type != FMT_SYM_OBJECT && s->type != FMT_SYM_COMMON) || !s->size_len || s->loc == LOC_NONE ||
		    bits_get(x->code, s->loc))
			continue;
		int seg_idx = space_seg_of_loc(&d->space, s->loc);
		if (seg_idx < 0)
			continue;
		const struct space_seg *seg = &d->segs.data[seg_idx];
		uint64_t end = (uint64_t)s->loc + s->size_len, seg_end = seg->loc + seg->mem_len;
		uint32_t data_end = file_end(x, s->loc);
		if (end > seg_end)
			continue;
		if (end < seg_end)
			mark(x, (uint32_t)end, false, true);
		if (!data_end) {
			if (!VEC_PUSH(&x->nobits_end, (uint32_t)end))
				x->no_memory = true;
			continue;
		}
		if (end > data_end)
			continue;
		bits_set_range(x->object, s->loc, end);
		if (s->size_len == 1 || s->size_len == 2 || s->size_len == 4 || s->size_len == 8)
			analysis_claim(x, s->loc, s->size_len);
	}
}

/* What a word of data must be to count as a pointer where no relocation says so. */
static uint32_t pointer_target(const struct data_stage *x, uint64_t va)
{
	const struct image_data *d = x->d;
	if (va < 0x10000)
		return LOC_NONE;
	int i = space_seg_of_va(&d->space, va);
	if (i < 0 || d->segs.data[i].is_extern)
		return LOC_NONE;
	uint32_t loc = d->segs.data[i].loc + (uint32_t)(va - d->segs.data[i].va);
	if (bits_get(x->code, loc) ? !bits_get(d->item_bits, loc) : (d->segs.data[i].perm & FMT_X) && !bits_get(x->taken, loc))
		return LOC_NONE; /* into the middle of an instruction, or to what no code and no table is */
	return loc;
}

/* Whether a word is the end of a text: "l__" and zeros is also an address below 8 MB. */
static bool is_text_tail(const uint8_t *p, uint32_t word, bool has_before)
{
	uint32_t n = 0;
	while (n < word && p[n] >= 0x20 && p[n] < 0x7f)
		n++;
	for (uint32_t i = n; i < word; i++) {
		if (p[i])
			return false;
	}
	return n && has_before && p[-1] >= 0x20 && p[-1] < 0x7f;
}

/* Programs at a fixed address have pointers without relocations: aligned words that lie in a segment. A word of 32
 * bits may do so by chance, so it needs a neighbour that does too. */
static void scan_zone(struct data_stage *x, const struct data_zone *z)
{
	const struct space *s = &x->d->space;
	uint32_t word = s->word_len;
	uint64_t low = x->d->segs.data[0].va;
	const struct space_seg *last = &x->d->segs.data[x->d->segs.cnt - 1];
	uint64_t high = last->va + (last->mem_len - 1);
	bool was_pointer = false;
	if (z->is_exec)
		return;
	uint64_t skew = (word - space_va(s, z->loc) % word) % word;
	for (uint64_t loc = z->loc + skew; loc + word <= z->end; loc += word) {
		const uint8_t *p = z->bytes + (loc - z->loc);
		uint64_t va = word == 8 ? load_u64(p, s->is_be) : load_u32(p, s->is_be);
		bool is_free = data_is_free(x, (uint32_t)loc, (uint32_t)loc + word);
		uint32_t to = va < low || va > high || !is_free ? LOC_NONE : pointer_target(x, va);
		bool is_pointer = to != LOC_NONE && (was_pointer || !is_text_tail(p, word, loc > z->loc));
		if (is_pointer && word == 4 && !was_pointer && !bits_get(x->code, to)) {
			uint64_t next = loc + 8 <= z->end ? load_u32(p + 4, s->is_be) : 0;
			is_pointer = next >= low && next <= high && pointer_target(x, next) != LOC_NONE;
		}
		if (is_pointer) {
			analysis_claim(x, (uint32_t)loc, word);
			add_pointer(x, (uint32_t)loc, to);
		}
		was_pointer = is_pointer;
	}
}

static bool has_bare_pointers(const struct image_data *d)
{
	return d->segs.cnt && (d->meta.fmt_type == FMT_TYPE_EXEC || d->meta.fmt_type == FMT_TYPE_CORE);
}

/* Padding of code: instructions that do nothing, traps, or zeros, up to the end of the gap. */
static uint32_t padding_end(const struct data_stage *x, const struct data_zone *z, uint32_t loc, uint32_t end)
{
	const struct arch *a = x->in->arch;
	while (loc < end) {
		const uint8_t *p = z->bytes + (loc - z->loc);
		if (!*p) {
			loc++;
			continue;
		}
		struct arch_insn insn;
		if (!a)
			break;
		a->decode(a, p, end - loc, space_va(&x->d->space, loc), &insn);
		if (!(insn.flags & (ARCH_INSN_NOP | ARCH_INSN_PAD_TRAP)) || insn.len > end - loc || !insn.len)
			break;
		loc += insn.len;
	}
	return loc;
}

static void claim_align(struct data_stage *x, uint32_t loc, uint32_t end)
{
	if (analysis_claim(x, loc, end - loc))
		bits_set_range(x->align, loc, end);
}

static uint32_t zero_run(const struct data_zone *z, uint32_t loc, uint32_t end)
{
	while (loc < end && !z->bytes[loc - z->loc])
		loc++;
	return loc;
}

/* The width of the datum at a referenced place: the widest access, as far as there is room. */
static uint32_t width_at(const struct data_stage *x, uint32_t loc, uint32_t room)
{
	for (unsigned i = DATA_WIDTH_PLANES; i-- > 0;) {
		if (bits_get(x->width[i], loc) && (1u << i) <= room)
			return 1u << i;
	}
	return 0;
}

/* Unknown bytes, or those of a known object, in rows that end at multiples of 16. */
static void leave_rows(struct data_stage *x, uint32_t loc, uint32_t end, bool is_data)
{
	while (loc < end) {
		uint64_t va = space_va(&x->d->space, loc);
		uint32_t len = (uint32_t)(ROW_LEN - va % ROW_LEN);
		len = MIN(len, end - loc);
		if (is_data)
			analysis_claim(x, loc, len);
		else
			bits_set(x->d->item_bits, loc);
		loc += len;
	}
}

/* A stretch that nothing refers into, from its first byte on. */
static void fill_piece(struct data_stage *x, const struct data_zone *z, uint32_t loc, uint32_t end)
{
	bool is_object = bits_get(x->object, loc);
	/* Of a machine without a decoder a name or a pointer into its code says nothing of data. */
	bool is_cut = bits_get(x->cut, loc) && !(z->is_exec && !x->in->arch);
	uint32_t width = is_cut ? width_at(x, loc, end - loc) : 0;
	if (width) {
		analysis_claim(x, loc, width);
		loc += width;
		is_cut = false;
	}
	while (loc < end) {
		uint32_t zeros = zero_run(z, loc, end);
		bool is_pad = zeros == end && !is_object && !is_cut && end - loc < PAD_LEN_MAX;
		if (is_pad || (zeros - loc >= ZERO_RUN_LEN && !is_object)) {
			claim_align(x, loc, zeros);
			loc = zeros;
			continue;
		}
		/* Rows up to the next long run of zeros. */
		uint32_t to = zeros;
		while (to < end) {
			uint32_t run = zero_run(z, to, end);
			if (run - to >= ZERO_RUN_LEN && !is_object)
				break;
			to = MAX(run, to + 1);
		}
		leave_rows(x, loc, to, is_object || is_cut);
		loc = to;
		is_cut = false;
	}
}

/* All that is still free in a zone. */
static void fill_zone(struct data_stage *x, const struct data_zone *z)
{
	uint32_t loc = z->loc, end = z->loc, cut = z->loc;
	while (loc < z->end) {
		if (bits_get(x->taken, loc)) {
			/* On to the first free byte, a word at a time. */
			uint64_t word = ~x->taken[loc / 64] >> (loc % 64);
			loc += word ? (uint32_t)__builtin_ctzll(word) : 64 - loc % 64;
			continue;
		}
		/* Both are looked for once and hold until they are passed: the pieces before them may be many. */
		if (loc >= end)
			end = (uint32_t)bits_next(x->taken, loc, z->end);
		if (loc >= cut || cut > end)
			cut = (uint32_t)bits_next(x->cut, loc + 1, end);
		uint32_t piece = (uint32_t)bits_next(x->edge, loc + 1, cut);
		if (z->is_exec && !bits_get(x->cut, loc)) {
			uint32_t pad = padding_end(x, z, loc, piece);
			if (pad < piece)
				pad &= ~(uint32_t)3;
			if (pad > loc) {
				claim_align(x, loc, pad);
				loc = pad;
			}
		}
		fill_piece(x, z, loc, piece);
		loc = piece;
	}
}

/* Unknown bytes come back as rows of their own. */
static void leave_undefined(struct data_stage *x)
{
	for (size_t i = 0; i < x->zones.cnt; i++) {
		const struct stated_zone *z = &x->zones.data[i];
		if (z->kind != ANALYSIS_UNDEF)
			continue;
		bits_clear_range(x->taken, z->from, z->to);
		leave_rows(x, z->from, z->to, false);
	}
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static bool push_run(struct data_stage *x, uint32_t loc, uint8_t kind)
{
	if (VEC_PUSH(&x->d->run_loc, loc) && VEC_PUSH(&x->d->run_kind, kind))
		return true;
	x->no_memory = true;
	return false;
}

/* Items of the part without file bytes of one segment: at every mark, known until the next mark or the end of
 * the object there. `k` and `e` are how far the sorted marks and ends are used up. */
static void fill_nobits(struct data_stage *x, const struct space_seg *seg, size_t *k, size_t *e)
{
	uint32_t loc = seg->loc + (uint32_t)seg->file_len, end = seg->loc + (uint32_t)seg->mem_len;
	while (*k < x->nobits.cnt && x->nobits.data[*k] < loc)
		(*k)++;
	while (loc < end) {
		bool is_marked = *k < x->nobits.cnt && x->nobits.data[*k] == loc;
		while (*e < x->nobits_end.cnt && x->nobits_end.data[*e] < loc)
			(*e)++;
		bool is_end = *e < x->nobits_end.cnt && x->nobits_end.data[*e] == loc;
		/* An end is a mark too; with a second mark there something else begins. */
		size_t marks = 0;
		for (; *k < x->nobits.cnt && x->nobits.data[*k] <= loc; (*k)++)
			marks++;
		const struct stated_zone *z = analysis_zone_at(x->zones.data, x->zones.cnt, loc);
		bool is_data = z ? z->kind == ANALYSIS_DATA : is_marked && (!is_end || marks > 1);
		if (!push_run(x, loc, is_data ? IMAGE_DATA : IMAGE_UNKNOWN) || !VEC_PUSH(&x->d->nobits_items, loc))
			x->no_memory = true;
		loc = *k < x->nobits.cnt && x->nobits.data[*k] < end ? x->nobits.data[*k] : end;
	}
}

static uint8_t kind_at(const struct data_stage *x, uint32_t loc)
{
	if (bits_get(x->code, loc))
		return IMAGE_CODE;
	if (bits_get(x->string, loc))
		return IMAGE_STRING;
	if (bits_get(x->align, loc))
		return IMAGE_ALIGN;
	return bits_get(x->taken, loc) ? IMAGE_DATA : IMAGE_UNKNOWN;
}

/* A run begins where any of the planes changes: 64 bytes at a time. */
static void runs_of(struct data_stage *x, const struct space_seg *seg)
{
	struct image_data *d = x->d;
	const uint64_t *planes[] = {x->code, x->string, x->align, x->taken};
	uint64_t before[ARRAY_LEN(planes)] = {0};
	for (uint64_t i = 0; i < bits_words(seg->file_len); i++) {
		uint64_t change = i ? 0 : 1;
		for (size_t p = 0; p < ARRAY_LEN(planes); p++) {
			uint64_t word = planes[p][seg->loc / 64 + i];
			change |= word ^ (word << 1 | before[p]);
			before[p] = word >> 63;
		}
		for (; change; change &= change - 1) {
			uint64_t off = i * 64 + (unsigned)__builtin_ctzll(change);
			if (off >= seg->file_len)
				return;
			uint32_t loc = seg->loc + (uint32_t)off;
			bits_set(d->item_bits, loc);
			push_run(x, loc, kind_at(x, loc));
		}
	}
}

static void make_runs(struct data_stage *x)
{
	size_t k = 0, e = 0;
	if (x->nobits.cnt)
		qsort(x->nobits.data, x->nobits.cnt, sizeof(uint32_t), compare_u32);
	if (x->nobits_end.cnt)
		qsort(x->nobits_end.data, x->nobits_end.cnt, sizeof(uint32_t), compare_u32);
	for (size_t i = 0; i < x->d->segs.cnt; i++) {
		runs_of(x, &x->d->segs.data[i]);
		fill_nobits(x, &x->d->segs.data[i], &k, &e);
	}
}

static bool stage_init(struct data_stage *x)
{
	size_t words = bits_words(x->d->loc_cnt) + 1;
	uint64_t **sets[] = {&x->taken, &x->string, &x->align, &x->cut, &x->edge, &x->pointed, &x->object};
	for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
		*sets[i] = alloc_array(words, sizeof(uint64_t));
		if (!*sets[i])
			return false;
	}
	for (unsigned i = 0; i < DATA_WIDTH_PLANES; i++) {
		x->width[i] = alloc_array(words, sizeof(uint64_t));
		if (!x->width[i])
			return false;
	}
	for (size_t i = 0; i < x->d->segs.cnt; i++) {
		const struct space_seg *seg = &x->d->segs.data[i];
		memcpy(x->taken + seg->loc / 64, x->code + seg->loc / 64, bits_words(seg->file_len) * 8);
	}
	return true;
}

static void stage_fini(struct data_stage *x)
{
	free(x->taken);
	free(x->string);
	free(x->align);
	free(x->cut);
	free(x->edge);
	free(x->pointed);
	free(x->object);
	for (unsigned i = 0; i < DATA_WIDTH_PLANES; i++)
		free(x->width[i]);
	VEC_FREE(&x->zones);
	VEC_FREE(&x->nobits);
	VEC_FREE(&x->nobits_end);
}

static bool is_cancelled(const struct data_stage *x)
{
	return x->in->cancel && atomic_load(x->in->cancel);
}

static int compare_strings(const void *a, const void *b)
{
	const struct image_string *x = a, *y = b;
	return (x->loc > y->loc) - (x->loc < y->loc);
}

static struct err *run_stage(struct data_stage *x)
{
	struct image_data *d = x->d;
	if (!analysis_zones(x->in->stated, d, &x->zones.data, &x->zones.cnt))
		return &err_nomem;
	claim_stated(x);
	claim_relocs(x);
	claim_tables(x);
	for (size_t i = 0; i < d->sections.cnt && !is_cancelled(x); i++)
		claim_section(x, &d->sections.data[i]);
	claim_tables_of_loader(x);
	if (has_bare_pointers(d))
		analysis_each_zone(x, scan_zone);
	claim_objects(x);
	for (size_t i = 0; i < d->xrefs.cnt; i++)
		mark_xref(x, &d->xrefs.data[i]);
	if (is_cancelled(x))
		return err_new(ERR_CANCELLED, "cancelled");
	x->lang = analysis_language(x);
	if (x->lang != DATA_LANG_NONE)
		analysis_counted_strings(x);
	analysis_find_strings(x);
	if (d->strings.cnt)
		qsort(d->strings.data, d->strings.cnt, sizeof(*d->strings.data), compare_strings);
	if (is_cancelled(x))
		return err_new(ERR_CANCELLED, "cancelled");
	analysis_each_zone(x, fill_zone);
	leave_undefined(x);
	make_runs(x);
	return x->no_memory ? &err_nomem : NULL;
}

struct err *analysis_data(const struct analysis_in *in, struct image_data *d, const uint64_t *code_bits)
{
	struct data_stage x = {.in = in, .d = d, .code = code_bits, .code_xref_cnt = d->xrefs.cnt};
	struct err *e = stage_init(&x) ? run_stage(&x) : &err_nomem;
	stage_fini(&x);
	return e;
}
