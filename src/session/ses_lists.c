/* SPDX-License-Identifier: Apache-2.0 */
/* The target itself and its lists: segments, functions, strings, symbols, problems. One table of sort keys a list. */
#include "session/ses_int.h"

#include "base/utf8.h"

#include <string.h>

const char *ses_source_name(uint8_t source)
{
	static const char *const names[IMAGE_SRC_COUNT] = {
		[IMAGE_SRC_USER] = "user",	   [IMAGE_SRC_SYMBOL] = "symbol", [IMAGE_SRC_UNWIND] = "unwind",
		[IMAGE_SRC_ENTRY] = "entry",	   [IMAGE_SRC_METADATA] = "metadata", [IMAGE_SRC_CALL] = "call",
		[IMAGE_SRC_RELOC] = "reloc",	   [IMAGE_SRC_POINTER] = "pointer", [IMAGE_SRC_PROLOGUE] = "prologue",
	};
	return source < IMAGE_SRC_COUNT ? names[source] : "";
}

const char *ses_encoding_name(uint32_t encoding)
{
	static const char *const names[IMAGE_ENC_COUNT] = {
		[IMAGE_ENC_ASCII] = "ascii",	 [IMAGE_ENC_UTF8] = "utf8", [IMAGE_ENC_UTF16LE] = "utf16le",
		[IMAGE_ENC_UTF16BE] = "utf16be", [IMAGE_ENC_UTF32LE] = "utf32le", [IMAGE_ENC_GO] = "go",
		[IMAGE_ENC_RUST] = "rust",	 [IMAGE_ENC_PASCAL] = "pascal",
	};
	return encoding < IMAGE_ENC_COUNT ? names[encoding] : "";
}

const char *ses_xref_name(uint8_t kind)
{
	static const char *const names[] = {[IMAGE_XREF_CALL] = "call", [IMAGE_XREF_JUMP] = "jump", [IMAGE_XREF_READ] = "read",
					    [IMAGE_XREF_WRITE] = "write", [IMAGE_XREF_OFFSET] = "offset"};
	return kind < ARRAY_LEN(names) ? names[kind] : "";
}

/* --- the target --- */

static const char *ses_type_name(uint8_t type)
{
	static const char *const names[] = {[FMT_TYPE_EXEC] = "exec", [FMT_TYPE_PIE] = "pie", [FMT_TYPE_SHARED] = "shared",
					    [FMT_TYPE_OBJECT] = "object", [FMT_TYPE_MODULE] = "module", [FMT_TYPE_CORE] = "core"};
	return type < ARRAY_LEN(names) ? names[type] : "";
}

static struct err *ses_info_needed(struct ses_snap *sn, struct arena *a, struct ses_info *ret)
{
	const struct image_str *needed = image_needed(sn->im, &ret->needed_cnt);
	ret->needed = ARENA_ARRAY(a, struct ses_text, ret->needed_cnt + 1);
	if (!ret->needed)
		return &err_nomem;
	for (uint32_t i = 0; i < ret->needed_cnt; i++)
		ret->needed[i] = ses_pool(sn, needed[i]);
	return NULL;
}

/* Where to begin reading: main, the entry, the first function, the first code. */
static uint64_t ses_main_va(struct ses_snap *sn)
{
	const struct image_meta *m = image_meta(sn->im);
	uint32_t cnt;
	const struct image_func *f = image_funcs(sn->im, &cnt);
	if (m->main_loc != LOC_NONE && space_va(sn->space, m->main_loc) != UINT64_MAX)
		return space_va(sn->space, m->main_loc);
	if (m->has_entry && space_loc(sn->space, m->entry_va) != LOC_NONE)
		return m->entry_va;
	if (cnt)
		return space_va(sn->space, f[0].loc);
	for (uint32_t i = 0; i < sn->space->seg_cnt; i++) {
		if (sn->space->segs[i].perm & FMT_X)
			return sn->space->segs[i].va;
	}
	return sn->space->seg_cnt ? sn->space->segs[0].va : 0;
}

struct err *ses_info(struct ses_snap *sn, struct arena *a, struct ses_info *ret)
{
	const struct image_meta *m = image_meta(sn->im);
	char hex[65] = "";
	uint32_t funcs, strings, problems;
	if (!sn->is_preview)
		store_hex(m->target_sha256, hex);
	image_funcs(sn->im, &funcs);
	image_strings(sn->im, &strings);
	image_problems(sn->im, &problems);
	struct ses_info i = {
		.file = ses_text_cstr(sn->ses->path),
		.sha256 = ses_text_cstr(arena_strndup(a, hex, strlen(hex))),
		.format = ses_pool(sn, m->format_name),
		.arch = sn->arch->id == ARCH_ID_NONE ? ses_pool(sn, m->machine_name) : ses_text_cstr(sn->arch->name),
		.endian = ses_text_cstr(m->is_be ? "big" : "little"),
		.type = ses_text_cstr(ses_type_name(m->fmt_type)),
		.build_id = ses_pool(sn, m->build_id),
		.interp = ses_pool(sn, m->interp),
		.size = m->target_len,
		.entry = m->entry_va,
		.base = m->base_va,
		.main_va = ses_main_va(sn),
		.bits = m->bits,
		.has_entry = m->has_entry,
		.is_stripped = m->is_stripped,
		.functions = funcs,
		.instructions = m->insn_cnt,
		.strings = strings,
		.xrefs = image_xref_cnt(sn->im),
		.problems = problems + m->problems_dropped_cnt,
	};
	struct err *e = ses_info_needed(sn, a, &i);
	if (e)
		return e;
	*ret = i;
	return NULL;
}

static void ses_put_perm(uint8_t perm, char ret[4])
{
	ret[0] = perm & FMT_R ? 'r' : '-';
	ret[1] = perm & FMT_W ? 'w' : '-';
	ret[2] = perm & FMT_X ? 'x' : '-';
	ret[3] = 0;
}

struct err *ses_segments(struct ses_snap *sn, struct arena *a, struct ses_segment **ret, uint32_t *ret_cnt)
{
	uint32_t cnt = sn->space->seg_cnt;
	struct ses_segment *out = ARENA_ARRAY(a, struct ses_segment, cnt + 1);
	if (!out)
		return &err_nomem;
	for (uint32_t i = 0; i < cnt; i++) {
		const struct space_seg *g = &sn->space->segs[i];
		out[i] = (struct ses_segment){.name = ses_pool(sn, (struct image_str){g->name_off, g->name_len}), .addr = g->va,
					      .size = g->mem_len, .file_off = g->file_off, .file_size = g->file_len};
		ses_put_perm(g->perm, out[i].perm);
	}
	*ret = out;
	*ret_cnt = cnt;
	return NULL;
}

struct err *ses_sections(struct ses_snap *sn, struct arena *a, struct ses_segment **ret, uint32_t *ret_cnt)
{
	uint32_t cnt;
	const struct image_section *s = image_sections(sn->im, &cnt);
	struct ses_segment *out = ARENA_ARRAY(a, struct ses_segment, (size_t)cnt + 1);
	if (!out)
		return &err_nomem;
	for (uint32_t i = 0; i < cnt; i++) {
		out[i] = (struct ses_segment){.name = ses_pool(sn, s[i].name), .addr = s[i].va, .size = s[i].mem_len,
					      .file_off = s[i].file_off, .file_size = s[i].file_len};
		ses_put_perm(s[i].perm, out[i].perm);
	}
	*ret = out;
	*ret_cnt = cnt;
	return NULL;
}

/* --- asking for a view --- */

struct list_ask {
	struct ses_page *page;
	struct arena *arena;  /* for texts made while comparing; reset as it goes */
	uint16_t flag_mask, flag_want;
	int sort;
};

/* The position of `sort` (without "-") in `keys`, or -1. */
static int list_sort_key(const char *sort, const char *const *keys, size_t cnt)
{
	for (size_t i = 0; sort && i < cnt; i++) {
		if (!strcmp(sort[0] == '-' ? sort + 1 : sort, keys[i]))
			return (int)i;
	}
	return -1;
}

static struct err *list_prepare(struct list_ask *l, struct ses_view_ask *ask, const char *const *keys, size_t key_cnt)
{
	const struct ses_page *p = l->page;
	l->sort = list_sort_key(p->sort, keys, key_cnt);
	if (p->sort && *p->sort && l->sort < 0)
		return err_new(ERR_INVALID, "sort: '%s' is no column of this list", p->sort);
	ask->is_descending = p->sort && p->sort[0] == '-';
	ask->key = arena_printf(l->arena, "%s\n%s\n%u\n%u\n%u", p->filter ? p->filter : "", p->sort ? p->sort : "", p->min_len,
				l->flag_mask, l->flag_want);
	ask->ctx = l;
	return ask->key ? NULL : &err_nomem;
}

static int cmp_u64(uint64_t x, uint64_t y)
{
	return x < y ? -1 : x > y;
}

static int cmp_text(struct ses_text x, struct ses_text y)
{
	int c = memcmp(x.s, y.s, MIN(x.len, y.len));
	return c ? c : cmp_u64(x.len, y.len);
}

/* --- functions --- */

static struct ses_text func_name_into(struct ses_snap *sn, uint32_t loc, char *tmp, size_t cap)
{
	return ses_text_of(tmp, ses_name_put(sn, loc, tmp, cap));
}

static bool func_match(struct ses_snap *sn, void *ctx, uint32_t i)
{
	struct list_ask *l = ctx;
	char tmp[512];
	uint32_t cnt;
	const struct image_func *f = image_funcs(sn->im, &cnt);
	struct ses_text name = func_name_into(sn, f[i].loc, tmp, sizeof(tmp));
	if (ses_filter_match(l->page->filter, name))
		return true;
	struct arena a = {0};
	struct ses_text d = ses_demangle(&a, name);
	bool ok = d.len && ses_filter_match(l->page->filter, d);
	arena_fini(&a);
	return ok;
}

enum { FUNC_ADDR, FUNC_NAME, FUNC_SIZE, FUNC_BLOCKS, FUNC_CALLERS, FUNC_CALLEES, FUNC_SOURCE };

static int func_cmp(struct ses_snap *sn, void *ctx, uint32_t x, uint32_t y)
{
	struct list_ask *l = ctx;
	uint32_t cnt;
	const struct image_func *f = image_funcs(sn->im, &cnt);
	char tx[512], ty[512];
	switch (l->sort) {
	case FUNC_NAME:
		return cmp_text(func_name_into(sn, f[x].loc, tx, sizeof(tx)), func_name_into(sn, f[y].loc, ty, sizeof(ty)));
	case FUNC_SIZE:
		return cmp_u64(f[x].size_len, f[y].size_len);
	case FUNC_BLOCKS:
		return cmp_u64(f[x].block_cnt, f[y].block_cnt);
	case FUNC_CALLERS:
		return cmp_u64(f[x].caller_cnt, f[y].caller_cnt);
	case FUNC_CALLEES:
		return cmp_u64(f[x].callee_cnt, f[y].callee_cnt);
	case FUNC_SOURCE:
		return cmp_u64(f[x].source, f[y].source);
	default:
		return cmp_u64(f[x].loc, f[y].loc);
	}
}

static void func_fill(struct ses_snap *sn, uint32_t id, const struct image_func *f, struct arena *a, struct ses_func *ret)
{
	struct ses_text name = ses_name_loc(sn, f->loc, a);
	*ret = (struct ses_func){.id = id, .addr = space_va(sn->space, f->loc), .size = f->size_len, .name = name,
				 .demangled = ses_demangle(a, name), .blocks = f->block_cnt, .callers = f->caller_cnt,
				 .callees = f->callee_cnt, .source = ses_source_name(f->source)};
	ret->flags = (f->flags & IMAGE_FN_THUNK ? SES_FN_THUNK : 0) | (f->flags & IMAGE_FN_NORETURN ? SES_FN_NORETURN : 0) |
		     (f->flags & IMAGE_FN_LIBRARY ? SES_FN_LIBRARY : 0) | (f->flags & IMAGE_FN_EXPORT ? SES_FN_EXPORT : 0);
}

struct err *ses_functions(struct ses_snap *sn, const struct ses_call *call, struct ses_page *page, struct arena *a,
			  struct ses_func **ret)
{
	static const char *const keys[] = {"addr", "name", "size", "blocks", "callers", "callees", "source"};
	struct list_ask l = {.page = page, .arena = a};
	struct ses_view_ask ask = {.list = "functions"};
	struct err *e = list_prepare(&l, &ask, keys, ARRAY_LEN(keys));
	if (e)
		return e;
	const struct image_func *f = image_funcs(sn->im, &ask.cnt);
	ask.match = page->filter && *page->filter ? func_match : NULL;
	ask.cmp = l.sort > 0 || ask.is_descending ? func_cmp : NULL;
	const uint32_t *idx;
	e = ses_view_page(sn, call, &ask, page, a, &idx);
	uint32_t n = page->cnt;
	struct ses_func *out = e ? NULL : ARENA_ARRAY(a, struct ses_func, n + 1);
	if (e || !out)
		return e ? e : &err_nomem;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = idx ? idx[i] : (uint32_t)page->offset + i;
		func_fill(sn, k, &f[k], a, &out[i]);
	}
	*ret = out;
	return NULL;
}

bool ses_func_at(struct ses_snap *sn, uint64_t va, struct arena *a, struct ses_func *ret)
{
	uint32_t loc = space_loc(sn->space, va), cnt;
	uint32_t id = loc == LOC_NONE ? UINT32_MAX : image_func_at(sn->im, loc);
	const struct image_func *f = image_funcs(sn->im, &cnt);
	if (id >= cnt)
		return false;
	func_fill(sn, id, &f[id], a, ret);
	return true;
}

/* --- strings --- */

static uint32_t string_unit(const uint8_t *p, uint32_t encoding)
{
	switch (encoding) {
	case IMAGE_ENC_UTF16LE:
		return (uint32_t)p[0] | (uint32_t)p[1] << 8;
	case IMAGE_ENC_UTF16BE:
		return (uint32_t)p[1] | (uint32_t)p[0] << 8;
	default:
		return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
	}
}

/* Wide characters as UTF-8; at most three bytes for two, or four for four. */
static struct ses_text string_widen(const uint8_t *p, uint32_t len, uint32_t encoding, struct arena *a)
{
	uint32_t step = encoding == IMAGE_ENC_UTF32LE ? 4 : 2;
	char *out = arena_alloc(a, (size_t)len * 2 + 4);
	size_t n = 0;
	for (uint32_t i = 0; out && i + step <= len; i += step) {
		uint32_t cp = string_unit(p + i, encoding);
		if (step == 2 && cp >= 0xd800 && cp < 0xdc00 && i + 4 <= len) {
			uint32_t low = string_unit(p + i + 2, encoding);
			if (low >= 0xdc00 && low < 0xe000) {
				cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
				i += 2;
			}
		}
		n += utf8_put(cp, out + n);
	}
	return ses_text_of(out, n);
}

static struct ses_text string_text(struct ses_snap *sn, const struct image_string *s, struct arena *a)
{
	size_t left;
	const uint8_t *p = space_bytes(sn->space, s->loc, &left);
	if (!p)
		return ses_text_of("", 0);
	uint32_t len = (uint32_t)MIN(left, s->len);
	if (s->encoding == IMAGE_ENC_UTF16LE || s->encoding == IMAGE_ENC_UTF16BE || s->encoding == IMAGE_ENC_UTF32LE)
		return string_widen(p, len, s->encoding, a);
	return ses_text_of((const char *)p, len);
}

static bool string_match(struct ses_snap *sn, void *ctx, uint32_t i)
{
	struct list_ask *l = ctx;
	uint32_t cnt;
	const struct image_string *s = image_strings(sn->im, &cnt);
	if (s[i].len < l->page->min_len)
		return false;
	struct arena a = {0};
	bool ok = ses_filter_match(l->page->filter, string_text(sn, &s[i], &a));
	arena_fini(&a);
	return ok;
}

enum { STRING_ADDR, STRING_LEN, STRING_ENCODING, STRING_TEXT };

static int string_cmp(struct ses_snap *sn, void *ctx, uint32_t x, uint32_t y)
{
	struct list_ask *l = ctx;
	uint32_t cnt;
	const struct image_string *s = image_strings(sn->im, &cnt);
	if (l->sort == STRING_LEN)
		return cmp_u64(s[x].len, s[y].len);
	if (l->sort == STRING_ENCODING)
		return cmp_u64(s[x].encoding, s[y].encoding);
	if (l->sort != STRING_TEXT)
		return cmp_u64(s[x].loc, s[y].loc);
	struct arena a = {0};
	int c = cmp_text(string_text(sn, &s[x], &a), string_text(sn, &s[y], &a));
	arena_fini(&a);
	return c;
}

struct err *ses_strings(struct ses_snap *sn, const struct ses_call *call, struct ses_page *page, struct arena *a,
			struct ses_string **ret)
{
	static const char *const keys[] = {"addr", "len", "encoding", "text"};
	struct list_ask l = {.page = page, .arena = a};
	struct ses_view_ask ask = {.list = "strings"};
	struct err *e = list_prepare(&l, &ask, keys, ARRAY_LEN(keys));
	if (e)
		return e;
	const struct image_string *s = image_strings(sn->im, &ask.cnt);
	ask.match = page->min_len || (page->filter && *page->filter) ? string_match : NULL;
	ask.cmp = l.sort > 0 || ask.is_descending ? string_cmp : NULL;
	const uint32_t *idx;
	e = ses_view_page(sn, call, &ask, page, a, &idx);
	uint32_t n = page->cnt;
	struct ses_string *out = e ? NULL : ARENA_ARRAY(a, struct ses_string, n + 1);
	if (e || !out)
		return e ? e : &err_nomem;
	for (uint32_t i = 0; i < n; i++) {
		const struct image_string *t = &s[idx ? idx[i] : (uint32_t)page->offset + i];
		out[i] = (struct ses_string){.addr = space_va(sn->space, t->loc), .len = t->len,
					     .encoding = ses_encoding_name(t->encoding), .text = string_text(sn, t, a)};
	}
	*ret = out;
	return NULL;
}

/* --- symbols, exports, imports --- */

static const char *symbol_kind(const struct image_symbol *s)
{
	static const char *const names[] = {[FMT_SYM_NONE] = "notype", [FMT_SYM_FUNC] = "func", [FMT_SYM_IFUNC] = "ifunc",
					    [FMT_SYM_OBJECT] = "object", [FMT_SYM_TLS] = "tls", [FMT_SYM_SECTION] = "section",
					    [FMT_SYM_FILE] = "file", [FMT_SYM_COMMON] = "common"};
	return s->type < ARRAY_LEN(names) ? names[s->type] : "notype";
}

static bool symbol_match(struct ses_snap *sn, void *ctx, uint32_t i)
{
	struct list_ask *l = ctx;
	uint32_t cnt;
	const struct image_symbol *s = image_symbols(sn->im, &cnt);
	if ((s[i].flags & l->flag_mask) != l->flag_want)
		return false;
	struct ses_text name = ses_pool(sn, s[i].name);
	if (ses_filter_match(l->page->filter, name))
		return true;
	struct arena a = {0};
	struct ses_text d = ses_demangle(&a, name);
	bool ok = d.len && ses_filter_match(l->page->filter, d);
	arena_fini(&a);
	return ok;
}

enum { SYMBOL_ADDR, SYMBOL_NAME, SYMBOL_KIND, SYMBOL_SIZE };

static int symbol_cmp(struct ses_snap *sn, void *ctx, uint32_t x, uint32_t y)
{
	struct list_ask *l = ctx;
	uint32_t cnt;
	const struct image_symbol *s = image_symbols(sn->im, &cnt);
	switch (l->sort) {
	case SYMBOL_NAME:
		return cmp_text(ses_pool(sn, s[x].name), ses_pool(sn, s[y].name));
	case SYMBOL_KIND:
		return cmp_u64(s[x].type, s[y].type);
	case SYMBOL_SIZE:
		return cmp_u64(s[x].size_len, s[y].size_len);
	default:
		return cmp_u64(s[x].loc, s[y].loc);
	}
}

static void symbol_fill(struct ses_snap *sn, const struct image_symbol *s, struct arena *a, struct ses_import *ret)
{
	struct image_version v = {0};
	struct ses_text name = ses_pool(sn, s->name);
	(void)image_version(sn->im, s->version, &v);
	*ret = (struct ses_import){.has_addr = s->loc != LOC_NONE, .name = name, .demangled = ses_demangle(a, name),
				   .library = ses_pool(sn, v.library), .version = ses_pool(sn, v.version), .kind = symbol_kind(s),
				   .size = s->size_len};
	if (ret->has_addr)
		ret->addr = space_va(sn->space, s->loc);
}

static struct err *symbol_list(struct ses_snap *sn, const struct ses_call *call, const char *list, struct list_ask *l,
			       struct ses_import **ret)
{
	static const char *const keys[] = {"addr", "name", "kind", "size"};
	struct ses_view_ask ask = {.list = list};
	struct err *e = list_prepare(l, &ask, keys, ARRAY_LEN(keys));
	if (e)
		return e;
	const struct image_symbol *s = image_symbols(sn->im, &ask.cnt);
	ask.match = l->flag_mask || (l->page->filter && *l->page->filter) ? symbol_match : NULL;
	ask.cmp = l->sort >= 0 ? symbol_cmp : NULL;
	const uint32_t *idx;
	e = ses_view_page(sn, call, &ask, l->page, l->arena, &idx);
	uint32_t n = l->page->cnt;
	struct ses_import *out = e ? NULL : ARENA_ARRAY(l->arena, struct ses_import, n + 1);
	if (e || !out)
		return e ? e : &err_nomem;
	for (uint32_t i = 0; i < n; i++)
		symbol_fill(sn, &s[idx ? idx[i] : (uint32_t)l->page->offset + i], l->arena, &out[i]);
	*ret = out;
	return NULL;
}

struct err *ses_symbols(struct ses_snap *sn, const struct ses_call *call, struct ses_page *page, struct arena *a,
			struct ses_import **ret)
{
	struct list_ask l = {.page = page, .arena = a};
	return symbol_list(sn, call, "symbols", &l, ret);
}

struct err *ses_exports(struct ses_snap *sn, const struct ses_call *call, struct ses_page *page, struct arena *a,
			struct ses_import **ret)
{
	struct list_ask l = {.page = page, .arena = a, .flag_mask = IMAGE_SYM_EXPORT, .flag_want = IMAGE_SYM_EXPORT};
	return symbol_list(sn, call, "exports", &l, ret);
}

static const struct image_symbol *import_symbol(struct ses_snap *sn, uint32_t i)
{
	static const struct image_symbol none = {.loc = LOC_NONE, .version = UINT32_MAX};
	uint32_t cnt, sym_cnt;
	const struct image_import *imp = image_imports(sn->im, &cnt);
	const struct image_symbol *s = image_symbols(sn->im, &sym_cnt);
	return imp[i].symbol < sym_cnt ? &s[imp[i].symbol] : &none;
}

/* Where an import is said to be: at its stub, else at its place among the imports. */
static uint32_t import_loc(const struct image_import *imp)
{
	return imp->plt_loc != LOC_NONE ? imp->plt_loc : imp->loc;
}

static bool import_match(struct ses_snap *sn, void *ctx, uint32_t i)
{
	struct list_ask *l = ctx;
	struct ses_text name = ses_pool(sn, import_symbol(sn, i)->name);
	if (ses_filter_match(l->page->filter, name))
		return true;
	struct arena a = {0};
	struct ses_text d = ses_demangle(&a, name);
	bool ok = d.len && ses_filter_match(l->page->filter, d);
	arena_fini(&a);
	return ok;
}

static int import_cmp(struct ses_snap *sn, void *ctx, uint32_t x, uint32_t y)
{
	struct list_ask *l = ctx;
	uint32_t cnt;
	const struct image_import *imp = image_imports(sn->im, &cnt);
	switch (l->sort) {
	case SYMBOL_NAME:
		return cmp_text(ses_pool(sn, import_symbol(sn, x)->name), ses_pool(sn, import_symbol(sn, y)->name));
	case SYMBOL_KIND:
		return cmp_u64(import_symbol(sn, x)->type, import_symbol(sn, y)->type);
	default:
		return cmp_u64(import_loc(&imp[x]), import_loc(&imp[y]));
	}
}

struct err *ses_imports(struct ses_snap *sn, const struct ses_call *call, struct ses_page *page, struct arena *a,
			struct ses_import **ret)
{
	static const char *const keys[] = {"addr", "name", "kind"};
	struct list_ask l = {.page = page, .arena = a};
	struct ses_view_ask ask = {.list = "imports"};
	struct err *e = list_prepare(&l, &ask, keys, ARRAY_LEN(keys));
	if (e)
		return e;
	const struct image_import *imp = image_imports(sn->im, &ask.cnt);
	ask.match = page->filter && *page->filter ? import_match : NULL;
	ask.cmp = l.sort >= 0 ? import_cmp : NULL;
	const uint32_t *idx;
	e = ses_view_page(sn, call, &ask, page, a, &idx);
	uint32_t n = page->cnt;
	struct ses_import *out = e ? NULL : ARENA_ARRAY(a, struct ses_import, n + 1);
	if (e || !out)
		return e ? e : &err_nomem;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = idx ? idx[i] : (uint32_t)page->offset + i;
		symbol_fill(sn, import_symbol(sn, k), a, &out[i]);
		uint32_t loc = import_loc(&imp[k]);
		out[i].has_addr = loc != LOC_NONE;
		out[i].addr = out[i].has_addr ? space_va(sn->space, loc) : 0;
	}
	*ret = out;
	return NULL;
}

/* --- problems --- */

struct err *ses_problems(struct ses_snap *sn, struct ses_page *page, struct arena *a, struct ses_problem **ret)
{
	uint32_t cnt;
	const struct image_problem *p = image_problems(sn->im, &cnt);
	uint64_t dropped = image_meta(sn->im)->problems_dropped_cnt;
	uint32_t limit = page->limit ? page->limit : 1000;
	struct ses_problem *out = ARENA_ARRAY(a, struct ses_problem, (size_t)MIN(limit, cnt) + 1);
	if (!out)
		return &err_nomem;
	uint32_t n = 0;
	uint64_t total = 0;
	for (uint32_t i = 0; i < cnt; i++) {
		struct ses_text what = ses_pool(sn, p[i].what), why = ses_pool(sn, p[i].why);
		if (!ses_filter_match(page->filter, what) && !ses_filter_match(page->filter, why))
			continue;
		if (total++ < page->offset || n >= limit)
			continue;
		out[n] = (struct ses_problem){.has_addr = p[i].loc != LOC_NONE, .what = what, .why = why,
					      .severity = p[i].severity <= FINDING_ERROR ?
						      finding_severity_name((enum finding_severity)p[i].severity) : "warning"};
		out[n].addr = out[n].has_addr ? space_va(sn->space, p[i].loc) : 0;
		n++;
	}
	if (dropped && total++ >= page->offset && n < limit)
		out[n++] = (struct ses_problem){.what = ses_text_cstr("problems"), .severity = "note",
						.why = ses_text_cstr(arena_printf(a, "%llu more of them were not kept",
										  (unsigned long long)dropped))};
	*ret = out;
	page->cnt = n;
	page->total = total;
	return NULL;
}
