/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image.h"

#include "base/bits.h"
#include "base/map.h"
#include "format/fmt.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/*
 * From the neutral description of a file to the data an image is made of: addresses become locs, strings go
 * into one pool. Every count here is bounded by what the format reader accepted; what has no place in the
 * space (4 GiB, unmapped addresses) is left out with a problem or marked LOC_NONE.
 */
#define LOC_ALIGN 64
#define LOC_MAX (UINT32_MAX - 2 * LOC_ALIGN)

struct build {
	struct image_data *d;
	const struct fmt_bin *b;
	struct findings cut;   /* what did not fit */
	struct map strings;    /* hash of a string -> its number in `interned` */
	VEC(struct image_str) interned;
	struct map versions;   /* pool offsets of (version, library) -> number */
};

bool image_pool_add(struct image_data *d, const char *s, size_t len, struct image_str *ret)
{
	*ret = (struct image_str){0};
	if (!len)
		return true;
	if (len >= UINT32_MAX || d->pool.cnt > UINT32_MAX - 1 - len || !VEC_RESERVE(&d->pool, len + 1))
		return false;
	memcpy(d->pool.data + d->pool.cnt, s, len);
	d->pool.data[d->pool.cnt + len] = '\0';
	*ret = (struct image_str){(uint32_t)d->pool.cnt, (uint32_t)len};
	d->pool.cnt += len + 1;
	return true;
}

/* As image_pool_add(), but a string that was seen before is not stored again. */
static bool intern(struct build *x, struct fmt_str s, struct image_str *ret)
{
	*ret = (struct image_str){0};
	if (!s.s || !s.len)
		return true;
	uint64_t hash = XXH3_64bits(s.s, s.len);
	uint32_t i;
	if (map_find(&x->strings, hash, &i)) {
		struct image_str have = x->interned.data[i];
		if (have.len == s.len && !memcmp(x->d->pool.data + have.off, s.s, s.len)) {
			*ret = have;
			return true;
		}
	}
	return image_pool_add(x->d, s.s, s.len, ret) && VEC_PUSH(&x->interned, *ret) &&
	       map_put(&x->strings, hash, (uint32_t)(x->interned.cnt - 1));
}

static bool intern_c(struct build *x, const char *s, struct image_str *ret)
{
	return intern(x, (struct fmt_str){s, s ? (uint32_t)strlen(s) : 0}, ret);
}

/* What objects and modules relocate inside instructions, and the text relocations of old shared objects, must be
 * seen by the decoder; pointers in writable segments must not cost a copy of them. */
static bool needs_patching(const struct fmt_bin *b, const struct fmt_segment *seg)
{
	bool is_object = b->type == FMT_TYPE_OBJECT || b->type == FMT_TYPE_MODULE;
	if (!(seg->perm & FMT_X) || ((seg->perm & FMT_W) && !is_object))
		return false;
	size_t lo = 0, hi = b->relocs.cnt;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (b->relocs.data[mid].va < seg->va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < b->relocs.cnt && b->relocs.data[lo].va - seg->va < seg->mem_len;
}

static bool build_segs(struct build *x)
{
	struct image_data *d = x->d;
	uint64_t loc = 0;
	for (size_t i = 0; i < x->b->segments.cnt; i++) {
		const struct fmt_segment *from = &x->b->segments.data[i];
		struct space_seg seg = {.va = from->va, .mem_len = from->mem_len, .file_off = from->file_off,
					.file_len = from->file_len, .loc = (uint32_t)loc, .perm = from->perm};
		if (!seg.mem_len)
			continue;
		if (loc >= LOC_MAX || seg.mem_len > LOC_MAX - loc) {
			finding_add_va(&x->cut, FINDING_WARNING, seg.va, "segments",
				       "%llu bytes do not fit into the 4 GiB that are analysed",
				       (unsigned long long)seg.mem_len);
			if (loc >= LOC_MAX)
				break;
			seg.mem_len = LOC_MAX - loc;
		}
		if (seg.file_len > seg.mem_len)
			seg.file_len = seg.mem_len;
		struct image_str name;
		if (!intern(x, from->name, &name))
			return false;
		seg.name_off = name.off;
		seg.name_len = name.len;
		seg.is_extern = fmt_is_extern(x->b, from);
		seg.is_patched = needs_patching(x->b, from);
		if (!VEC_PUSH(&d->segs, seg))
			return false;
		loc = (loc + seg.mem_len + LOC_ALIGN) & ~(uint64_t)(LOC_ALIGN - 1);
	}
	const struct space_seg *last = d->segs.cnt ? &d->segs.data[d->segs.cnt - 1] : NULL;
	d->loc_cnt = last ? last->loc + (uint32_t)last->mem_len : 0;
	d->item_bits = alloc_array(bits_words(d->loc_cnt) + 1, sizeof(uint64_t));
	d->block_bits = alloc_array(bits_words(d->loc_cnt) + 1, sizeof(uint64_t));
	return d->item_bits && d->block_bits;
}

static bool build_sections(struct build *x)
{
	for (size_t i = 0; i < x->b->sections.cnt; i++) {
		const struct fmt_section *from = &x->b->sections.data[i];
		struct image_section sec = {.va = from->va, .mem_len = from->mem_len, .file_off = from->file_off,
					    .file_len = from->file_len, .perm = from->perm, .kind = from->kind,
					    .is_alloc = from->is_alloc};
		sec.entry_len = from->entry_len > UINT32_MAX ? 0 : (uint32_t)from->entry_len;
		sec.is_strings = (from->raw_flags & 0x20) != 0; /* SHF_STRINGS */
		if (!intern(x, from->name, &sec.name) || !VEC_PUSH(&x->d->sections, sec))
			return false;
	}
	return true;
}

static bool reloc_is_kept(const struct fmt_reloc *r)
{
	switch ((enum fmt_reloc_kind)r->kind) {
	case FMT_REL_POINTER:
	case FMT_REL_IMPORT:
	case FMT_REL_JUMP_SLOT:
	case FMT_REL_IRELATIVE:
	case FMT_REL_CODE:
		return r->width == 1 || r->width == 2 || r->width == 4 || r->width == 8;
	case FMT_REL_NONE:
	case FMT_REL_COPY:
	case FMT_REL_TLS:
	case FMT_REL_OTHER:
		break;
	}
	return false;
}

static bool build_relocs(struct build *x)
{
	struct image_data *d = x->d;
	for (size_t i = 0; i < x->b->relocs.cnt; i++) {
		const struct fmt_reloc *from = &x->b->relocs.data[i];
		if (!reloc_is_kept(from))
			continue;
		int seg = space_seg_of_va(&d->space, from->va);
		if (seg < 0 || from->width > d->segs.data[seg].mem_len - (from->va - d->segs.data[seg].va))
			continue;
		uint32_t loc = space_loc(&d->space, from->va);
		if (d->reloc_loc.cnt && d->reloc_loc.data[d->reloc_loc.cnt - 1] > loc)
			continue; /* the reader promises order; the binary search depends on it */
		uint8_t kind = from->width;
		uint32_t val = LOC_NONE;
		if (from->kind == FMT_REL_CODE)
			kind |= SPACE_REL_CODE;
		else
			val = space_loc(&d->space, from->value);
		if (val == LOC_NONE) {
			kind |= SPACE_REL_WIDE;
			val = (uint32_t)d->reloc_wide.cnt;
			if (!VEC_PUSH(&d->reloc_wide, from->value))
				return false;
		}
		if (!VEC_PUSH(&d->reloc_loc, loc) || !VEC_PUSH(&d->reloc_val, val) ||
		    !VEC_PUSH(&d->reloc_kind, kind))
			return false;
	}
	return true;
}

static struct err *build_space(struct build *x)
{
	struct image_data *d = x->d;
	d->space = (struct space){.file = x->b->bytes, .file_len = x->b->bytes_len, .segs = d->segs.data,
				  .seg_cnt = (uint32_t)d->segs.cnt, .word_len = x->b->bits / 8,
				  .is_be = x->b->is_be};
	if (!build_relocs(x))
		return &err_nomem;
	d->space.reloc_loc = d->reloc_loc.data;
	d->space.reloc_val = d->reloc_val.data;
	d->space.reloc_kind = d->reloc_kind.data;
	d->space.reloc_cnt = (uint32_t)d->reloc_loc.cnt;
	d->space.reloc_wide = d->reloc_wide.data;
	d->space.reloc_wide_cnt = (uint32_t)d->reloc_wide.cnt;
	return space_prepare(&d->space);
}

static bool build_version(struct build *x, const struct fmt_symbol *s, uint32_t *ret)
{
	*ret = UINT32_MAX;
	struct image_version v;
	if (!intern(x, s->version, &v.version) || !intern(x, s->library, &v.library))
		return false;
	if (!v.version.len && !v.library.len)
		return true;
	uint64_t key = (uint64_t)(v.version.len ? v.version.off + 1 : 0) << 32 |
		       (v.library.len ? v.library.off + 1 : 0);
	if (map_find(&x->versions, key, ret))
		return true;
	*ret = (uint32_t)x->d->versions.cnt;
	return VEC_PUSH(&x->d->versions, v) && map_put(&x->versions, key, *ret);
}

/* Lower is better: functions and objects before bare labels, global before weak before local, plain names before
 * those with leading underscores, the default version before the old ones. */
static uint16_t symbol_rank(const struct fmt_symbol *s)
{
	bool is_typed = s->type == FMT_SYM_FUNC || s->type == FMT_SYM_IFUNC || s->type == FMT_SYM_OBJECT ||
			s->type == FMT_SYM_COMMON;
	unsigned bind = s->bind == FMT_BIND_GLOBAL ? 0 : s->bind == FMT_BIND_WEAK ? 1 : 2;
	unsigned underscores = s->name.s[0] != '_' ? 0 : s->name.len > 1 && s->name.s[1] == '_' ? 2 : 1;
	unsigned is_old = s->version.len && !s->is_default_version;
	return (uint16_t)(1 + (is_typed ? 0 : 32) + bind * 8 + underscores * 2 + is_old);
}

static bool build_symbol_name(struct build *x, const struct fmt_symbol *s, uint32_t loc, struct image_str name)
{
	if (!name.len || s->type == FMT_SYM_SECTION || s->type == FMT_SYM_FILE)
		return true;
	return VEC_PUSH(&x->d->names,
			(struct image_name){.loc = loc, .name = name, .kind = IMAGE_NAME_SYMBOL,
					    .is_func = s->type == FMT_SYM_FUNC || s->type == FMT_SYM_IFUNC,
					    .rank = symbol_rank(s)});
}

static uint16_t symbol_flags(const struct fmt_symbol *s)
{
	return (uint16_t)((s->is_dynamic ? IMAGE_SYM_DYNAMIC : 0) | (s->is_undefined ? IMAGE_SYM_UNDEFINED : 0) |
			  (s->is_exported ? IMAGE_SYM_EXPORT : 0) | (s->is_absolute ? IMAGE_SYM_ABSOLUTE : 0) |
			  (s->is_default_version ? IMAGE_SYM_DEFAULT_VERSION : 0));
}

static bool build_symbols(struct build *x)
{
	struct image_data *d = x->d;
	for (size_t i = 0; i < x->b->symbols.cnt; i++) {
		const struct fmt_symbol *s = &x->b->symbols.data[i];
		struct image_symbol sym = {.loc = LOC_NONE, .type = s->type, .bind = s->bind,
					   .flags = symbol_flags(s)};
		sym.size_len = s->size_len > UINT32_MAX ? UINT32_MAX : (uint32_t)s->size_len;
		if (!s->is_undefined && !s->is_absolute && s->type != FMT_SYM_TLS && s->type != FMT_SYM_FILE)
			sym.loc = space_loc(&d->space, s->va);
		if (!intern(x, s->name, &sym.name) || !build_version(x, s, &sym.version) ||
		    !VEC_PUSH(&d->symbols, sym))
			return false;
		if (sym.loc == LOC_NONE)
			continue;
		if (s->is_mapping) {
			bool is_code = s->name.len > 1 && s->name.s[1] != 'd';
			if (!VEC_PUSH(&d->mappings, (struct image_mapping){sym.loc, is_code}))
				return false;
		} else if (!build_symbol_name(x, s, sym.loc, sym.name)) {
			return false;
		}
	}
	return true;
}

static bool build_import_names(struct build *x, const struct image_import *imp)
{
	struct image_data *d = x->d;
	struct image_str name = d->symbols.data[imp->symbol].name;
	uint8_t type = d->symbols.data[imp->symbol].type;
	if (!name.len)
		return true;
	if (imp->loc != LOC_NONE &&
	    !VEC_PUSH(&d->names, (struct image_name){.loc = imp->loc, .name = name, .kind = IMAGE_NAME_IMPORT,
						     .is_func = type == FMT_SYM_FUNC || type == FMT_SYM_IFUNC ||
								type == FMT_SYM_NONE}))
		return false;
	if (imp->got_loc == LOC_NONE)
		return true;
	struct image_str got;
	static const char suffix[] = "@got";
	if (!VEC_RESERVE(&d->pool, name.len + sizeof(suffix)))
		return false;
	if (!image_pool_add(d, d->pool.data + name.off, name.len, &got))
		return false;
	d->pool.cnt--; /* the NUL gives way to the suffix */
	if (!VEC_RESERVE(&d->pool, sizeof(suffix)))
		return false;
	memcpy(d->pool.data + d->pool.cnt, suffix, sizeof(suffix));
	d->pool.cnt += sizeof(suffix);
	got.len += sizeof(suffix) - 1;
	return VEC_PUSH(&d->names, (struct image_name){.loc = imp->got_loc, .name = got, .kind = IMAGE_NAME_IMPORT});
}

static bool build_imports(struct build *x)
{
	struct image_data *d = x->d;
	for (size_t i = 0; i < x->b->imports.cnt; i++) {
		const struct fmt_import *from = &x->b->imports.data[i];
		if (from->symbol >= d->symbols.cnt)
			continue;
		struct image_import imp = {.symbol = from->symbol, .loc = space_loc(&d->space, from->va),
					   .got_loc = LOC_NONE, .plt_loc = LOC_NONE};
		if (from->got_va)
			imp.got_loc = space_loc(&d->space, from->got_va);
		if (from->plt_va)
			imp.plt_loc = space_loc(&d->space, from->plt_va);
		if (!VEC_PUSH(&d->imports, imp) || !build_import_names(x, &imp))
			return false;
	}
	return true;
}

static bool build_starts(struct build *x)
{
	struct image_data *d = x->d;
	for (size_t i = 0; i < x->b->code_starts.cnt; i++) {
		int seg = space_seg_of_va(&d->space, x->b->code_starts.data[i]);
		if (seg >= 0 && (d->segs.data[seg].perm & FMT_X) &&
		    !VEC_PUSH(&d->code_starts, space_loc(&d->space, x->b->code_starts.data[i])))
			return false;
	}
	for (size_t i = 0; i < x->b->threads.cnt; i++) {
		char text[40];
		int len = snprintf(text, sizeof(text), "thread_%llu",
				   (unsigned long long)x->b->threads.data[i].len);
		struct image_name name = {.loc = space_loc(&d->space, x->b->threads.data[i].va),
					  .kind = IMAGE_NAME_ENTRY};
		if (name.loc == LOC_NONE)
			continue;
		if (!image_pool_add(d, text, (size_t)len, &name.name) || !VEC_PUSH(&d->names, name))
			return false;
	}
	return true;
}

static bool push_known(struct build *x, struct fmt_range r, uint32_t entry_len, uint8_t kind)
{
	uint32_t loc = r.len ? space_loc(&x->d->space, r.va) : LOC_NONE;
	if (loc == LOC_NONE)
		return true;
	const struct space_seg *seg = &x->d->segs.data[space_seg_of_loc(&x->d->space, loc)];
	uint64_t room = seg->mem_len - (loc - seg->loc);
	struct image_known k = {loc, (uint32_t)MIN(r.len, room), entry_len, kind};
	return VEC_PUSH(&x->d->known, k);
}

static bool build_known(struct build *x)
{
	const struct fmt_bin *b = x->b;
	for (size_t i = 0; i < b->tables.cnt; i++) {
		const struct fmt_table *t = &b->tables.data[i];
		if (!push_known(x, (struct fmt_range){t->va, t->len}, t->entry_len, t->kind))
			return false;
	}
	return push_known(x, b->eh_frame_hdr, 8, FMT_SEC_EH_FRAME_HDR) &&
	       push_known(x, b->eh_frame, 0, FMT_SEC_EH_FRAME);
}

static bool build_build_id(struct build *x, struct image_str *ret)
{
	static const char digits[] = "0123456789abcdef";
	char hex[256];
	uint32_t len = x->b->build_id_len < sizeof(hex) / 2 ? x->b->build_id_len : sizeof(hex) / 2;
	for (uint32_t i = 0; i < len; i++) {
		hex[2 * i] = digits[x->b->build_id[i] >> 4];
		hex[2 * i + 1] = digits[x->b->build_id[i] & 15];
	}
	return image_pool_add(x->d, hex, 2 * (size_t)len, ret);
}

static bool build_meta(struct build *x, const uint8_t sha256[32])
{
	const struct fmt_bin *b = x->b;
	struct image_meta *m = &x->d->meta;
	*m = (struct image_meta){.target_len = b->bytes_len, .base_va = b->base_va, .entry_va = b->entry_va,
				 .arch = b->machine <= FMT_MACHINE_A64 ? b->machine : FMT_MACHINE_NONE,
				 .entry_loc = LOC_NONE, .main_loc = LOC_NONE, .fmt_kind = (uint8_t)b->kind,
				 .fmt_type = (uint8_t)b->type, .bits = b->bits, .is_be = b->is_be,
				 .is_stripped = b->is_stripped, .has_entry = b->has_entry};
	memcpy(m->target_sha256, sha256, sizeof(m->target_sha256));
	if (b->has_entry)
		m->entry_loc = space_loc(&x->d->space, b->entry_va);
	m->main_loc = m->entry_loc;
	for (size_t i = 0; i < x->d->names.cnt; i++) {
		const struct image_name *n = &x->d->names.data[i];
		if (n->kind == IMAGE_NAME_SYMBOL && n->is_func && n->name.len == 4 &&
		    !memcmp(x->d->pool.data + n->name.off, "main", 4))
			m->main_loc = n->loc;
	}
	for (size_t i = 0; i < b->needed.cnt; i++) {
		struct image_str s;
		if (!intern(x, b->needed.data[i], &s) || !VEC_PUSH(&x->d->needed, s))
			return false;
	}
	return intern_c(x, b->format_name, &m->format_name) && intern_c(x, b->machine_name, &m->machine_name) &&
	       intern_c(x, b->os_name, &m->os_name) && intern(x, b->interp, &m->interp) &&
	       intern(x, b->soname, &m->soname) && build_build_id(x, &m->build_id);
}

bool image_add_findings(struct image_data *d, const struct findings *f)
{
	d->meta.problems_dropped_cnt += f->dropped_cnt;
	for (size_t i = 0; i < f->list.cnt; i++) {
		const struct finding *from = &f->list.data[i];
		struct image_problem p = {.loc = from->has_va ? space_loc(&d->space, from->va) : LOC_NONE,
					  .severity = from->severity, .file_off = from->file_off};
		if (!image_pool_add(d, from->what, strlen(from->what), &p.what) ||
		    !image_pool_add(d, from->why, strlen(from->why), &p.why) || !VEC_PUSH(&d->problems, p))
			return false;
	}
	return true;
}

static int compare_mappings(const void *a, const void *b)
{
	const struct image_mapping *x = a, *y = b;
	if (x->loc != y->loc)
		return x->loc < y->loc ? -1 : 1;
	return (x->is_code > y->is_code) - (x->is_code < y->is_code);
}

static struct err *build_all(struct build *x, const uint8_t sha256[32])
{
	struct image_data *d = x->d;
	if (x->b->symbols.cnt >= UINT32_MAX || x->b->relocs.cnt >= UINT32_MAX)
		return err_new(ERR_BUDGET, "more than 2^32 symbols or relocations");
	if (!VEC_PUSH(&d->pool, '\0') || !build_segs(x))
		return &err_nomem;
	struct err *e = build_space(x);
	if (e)
		return e;
	if (!build_sections(x) || !build_symbols(x) || !build_imports(x) || !build_starts(x) ||
	    !build_known(x) ||
	    !build_meta(x, sha256) || !image_add_findings(d, &x->b->findings) ||
	    !image_add_findings(d, &x->cut))
		return &err_nomem;
	if (d->mappings.cnt)
		qsort(d->mappings.data, d->mappings.cnt, sizeof(*d->mappings.data), compare_mappings);
	return NULL;
}

struct err *image_data_from_fmt(const struct fmt_bin *b, const uint8_t sha256[32], struct image_data *ret)
{
	*ret = (struct image_data){0};
	struct build x = {.d = ret, .b = b};
	struct err *e = build_all(&x, sha256);
	findings_fini(&x.cut);
	map_fini(&x.strings);
	map_fini(&x.versions);
	VEC_FREE(&x.interned);
	if (e)
		image_data_fini(ret);
	return e;
}

struct err *image_data_move(struct image_data *d, uint64_t bias)
{
	uint64_t top = d->meta.bits == 32 ? UINT32_MAX : UINT64_MAX;
	for (size_t i = 0; i < d->segs.cnt; i++) {
		uint64_t va = d->segs.data[i].va + bias, last = va + (d->segs.data[i].mem_len - 1);
		if (last < va || last > top || (i && va <= d->segs.data[i - 1].va))
			return err_new(ERR_INVALID, "base: the target does not fit between there and the end of the addresses");
		d->segs.data[i].va = va;
	}
	for (size_t i = 0; i < d->sections.cnt; i++)
		d->sections.data[i].va += d->sections.data[i].is_alloc ? bias : 0;
	d->meta.base_va += bias;
	d->meta.entry_va += d->meta.has_entry ? bias : 0;
	d->meta.bias = bias;
	return NULL;
}

void image_data_fini(struct image_data *d)
{
	space_fini(&d->space);
	VEC_FREE(&d->segs);
	VEC_FREE(&d->sections);
	VEC_FREE(&d->pool);
	VEC_FREE(&d->reloc_loc);
	VEC_FREE(&d->reloc_val);
	VEC_FREE(&d->reloc_kind);
	VEC_FREE(&d->reloc_wide);
	VEC_FREE(&d->symbols);
	VEC_FREE(&d->versions);
	VEC_FREE(&d->imports);
	VEC_FREE(&d->needed);
	VEC_FREE(&d->names);
	VEC_FREE(&d->code_starts);
	VEC_FREE(&d->mappings);
	VEC_FREE(&d->known);
	free(d->item_bits);
	free(d->block_bits);
	VEC_FREE(&d->nobits_items);
	VEC_FREE(&d->run_loc);
	VEC_FREE(&d->run_kind);
	VEC_FREE(&d->funcs);
	VEC_FREE(&d->func_ranges);
	VEC_FREE(&d->xrefs);
	VEC_FREE(&d->strings);
	VEC_FREE(&d->tables);
	VEC_FREE(&d->targets);
	VEC_FREE(&d->protos);
	VEC_FREE(&d->types);
	VEC_FREE(&d->type_subs);
	VEC_FREE(&d->vars);
	VEC_FREE(&d->lines);
	VEC_FREE(&d->line_files);
	VEC_FREE(&d->problems);
	*d = (struct image_data){0};
}

unsigned image_name_rank(const struct image_name *n)
{
	static const uint8_t of_kind[IMAGE_NAME_KIND_COUNT] = {
		[IMAGE_NAME_SYMBOL] = 1, [IMAGE_NAME_IMPORT] = 1,  [IMAGE_NAME_PLT] = 80,
		[IMAGE_NAME_DWARF] = 70, [IMAGE_NAME_GO] = 75,     [IMAGE_NAME_SECTION] = 100,
		[IMAGE_NAME_ENTRY] = 90,
	};
	if (n->rank)
		return n->rank;
	return n->kind < IMAGE_NAME_KIND_COUNT ? of_kind[n->kind] : UINT16_MAX;
}
