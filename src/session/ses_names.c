/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of addresses, and the way back. A name somebody gave wins, then a stored one; else what stands at the address
 * gives one whose number is the address, so that the same place has the same name in every run and resolve can read it
 * back without a table.
 */
#include "session/ses_types.h"

#include "debuginfo/dbg.h"

#include <errno.h>
#include <string.h>

struct ses_text ses_pool(const struct ses_snap *sn, struct image_str s)
{
	size_t len = 0;
	const char *p = s.len ? image_text(sn->im, s, &len) : NULL;
	return ses_text_of(p, len);
}

static size_t ses_put_prefixed(const char *prefix, uint64_t va, char *out, size_t cap)
{
	char digits[16];
	size_t n = 0, len = strlen(prefix);
	do {
		digits[n++] = "0123456789abcdef"[va & 15];
		va >>= 4;
	} while (va);
	if (len + n > cap)
		return 0;
	memcpy(out, prefix, len);
	while (n)
		out[len++] = digits[--n];
	return len;
}

static size_t ses_put_text(struct ses_text t, const char *suffix, char *out, size_t cap)
{
	size_t len = MIN(t.len, cap), tail = strlen(suffix);
	memcpy(out, t.s, len);
	/* Names of the target may hold any byte; what is shown in a line must not end or rewrite it. */
	for (size_t i = 0; i < len; i++)
		out[i] = (uint8_t)out[i] <= ' ' || (uint8_t)out[i] == 0x7f ? '?' : out[i];
	if (len + tail <= cap) {
		memcpy(out + len, suffix, tail);
		len += tail;
	}
	return len;
}

/* The generated name's prefix, null when the place deserves none. */
static const char *ses_code_prefix(struct ses_snap *sn, uint32_t loc)
{
	uint32_t first;
	if (image_func_starting(sn->im, loc) != UINT32_MAX)
		return "sub_";
	return image_block_starts(sn->im, loc) && image_xrefs_to(sn->im, loc, loc, &first) ? "loc_" : NULL;
}

static const char *ses_data_prefix(struct ses_snap *sn, uint32_t loc)
{
	uint32_t start, len, first;
	enum image_item_kind kind;
	if (!image_item_at(sn->im, loc, &start, &len, &kind) || start != loc || kind == IMAGE_CODE || kind == IMAGE_ALIGN)
		return NULL;
	if (kind == IMAGE_STRING)
		return "str_";
	return image_xrefs_to(sn->im, loc, loc, &first) ? "data_" : NULL;
}

static size_t ses_put_import(struct ses_snap *sn, const struct image_import *imp, uint32_t loc, char *out, size_t cap)
{
	uint32_t cnt;
	const struct image_symbol *syms = image_symbols(sn->im, &cnt);
	if (imp->symbol >= cnt || !syms[imp->symbol].name.len)
		return 0;
	return ses_put_text(ses_pool(sn, syms[imp->symbol].name), loc == imp->got_loc ? "@got" : loc == imp->plt_loc ? "@plt" : "", out, cap);
}

/* j_NAME for a function that does nothing but jump to a named one; 0 when it is none. */
static size_t ses_put_thunk(struct ses_snap *sn, uint32_t loc, char *out, size_t cap)
{
	uint32_t cnt, f = image_func_starting(sn->im, loc);
	const struct image_func *funcs = image_funcs(sn->im, &cnt);
	if (f >= cnt || !(funcs[f].flags & IMAGE_FN_THUNK) || funcs[f].thunk_to == LOC_NONE || cap < 3)
		return 0;
	memcpy(out, "j_", 2);
	size_t own_len = sn->edits ? ses_edit_name_put(sn, space_va(sn->space, funcs[f].thunk_to), out + 2, cap - 2) : 0;
	if (own_len)
		return 2 + own_len;
	const struct image_name *n = image_name_at(sn->im, funcs[f].thunk_to);
	if (!n || !n->name.len)
		return 0;
	return 2 + ses_put_text(ses_pool(sn, n->name), "", out + 2, cap - 2);
}

/* In the order of what operands mostly mean: named things, functions, blocks, then data. */
size_t ses_name_put(struct ses_snap *sn, uint32_t loc, char *out, size_t cap)
{
	size_t own_len = sn->edits ? ses_edit_name_put(sn, space_va(sn->space, loc), out, cap) : 0;
	if (own_len)
		return own_len;
	const struct image_name *n = image_name_at(sn->im, loc);
	if (n && n->name.len)
		return ses_put_text(ses_pool(sn, n->name), "", out, cap);
	const char *prefix = ses_code_prefix(sn, loc);
	size_t thunk_len = prefix && prefix[0] == 's' ? ses_put_thunk(sn, loc, out, cap) : 0;
	if (thunk_len)
		return thunk_len;
	if (!prefix) {
		const struct image_import *imp = image_import_at(sn->im, loc);
		if (imp)
			return ses_put_import(sn, imp, loc, out, cap);
		prefix = ses_data_prefix(sn, loc);
	}
	return prefix ? ses_put_prefixed(prefix, space_va(sn->space, loc), out, cap) : 0;
}

/* The operand itself is a reference, so a block it leads to has a name without looking for others. */
size_t ses_name_for_operand(void *snap, uint64_t va, char *out, size_t cap)
{
	struct ses_snap *sn = snap;
	uint32_t loc = space_loc(sn->space, va);
	if (loc == LOC_NONE)
		return 0;
	size_t own_len = sn->edits ? ses_edit_name_put(sn, va, out, cap) : 0;
	if (own_len)
		return own_len;
	const struct image_name *n = image_name_at(sn->im, loc);
	if (n && n->name.len)
		return ses_put_text(ses_pool(sn, n->name), "", out, cap);
	if (image_block_starts(sn->im, loc) && image_func_starting(sn->im, loc) == UINT32_MAX)
		return ses_put_prefixed("loc_", va, out, cap);
	size_t member_len = ses_typed_name_put(sn, loc, out, cap);
	if (member_len)
		return member_len;
	size_t len = ses_name_put(sn, loc, out, cap);
	uint32_t start, item_len;
	enum image_item_kind kind;
	if (len || sn->is_preview || !image_item_at(sn->im, loc, &start, &item_len, &kind) || start == loc ||
	    kind == IMAGE_CODE || kind == IMAGE_ALIGN)
		return len;
	len = ses_name_put(sn, start, out, cap);
	size_t more = len ? ses_put_prefixed("+0x", loc - start, out + len, cap - len) : 0;
	return more ? len + more : 0;
}

struct ses_text ses_name_loc(struct ses_snap *sn, uint32_t loc, struct arena *a)
{
	char tmp[1024];
	size_t len = loc == LOC_NONE ? 0 : ses_name_put(sn, loc, tmp, sizeof(tmp));
	return len ? ses_text_of(arena_strndup(a, tmp, len), len) : ses_text_of("", 0);
}

struct ses_text ses_name_at(struct ses_snap *sn, uint64_t va, struct arena *a)
{
	return ses_name_loc(sn, space_loc(sn->space, va), a);
}

struct ses_text ses_func_name(struct ses_snap *sn, uint32_t func, struct arena *a)
{
	uint32_t cnt;
	const struct image_func *f = image_funcs(sn->im, &cnt);
	return func < cnt ? ses_name_loc(sn, f[func].loc, a) : ses_text_of("", 0);
}

struct ses_text ses_demangle(struct arena *a, struct ses_text name)
{
	if (name.len > 4 && !memcmp(name.s, "j__", 3)) { /* a thunk's */
		name.s += 2;
		name.len -= 2;
	}
	if (name.len < 3 || name.s[0] != '_' || (name.s[1] != 'Z' && name.s[1] != 'R' && name.s[1] != 'D'))
		return ses_text_of("", 0);
	struct fmt_str d = dbg_demangle(a, name.s, name.len);
	return ses_text_of(d.s, d.len);
}

/* --- where an address is --- */

static const struct image_section *ses_section_of(struct ses_snap *sn, uint64_t va)
{
	uint32_t cnt;
	const struct image_section *s = image_sections(sn->im, &cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		if (s[i].is_alloc && va >= s[i].va && va - s[i].va < s[i].mem_len)
			return &s[i];
	}
	return NULL;
}

static struct ses_text ses_plus(struct arena *a, struct ses_text base, uint64_t off)
{
	if (!off)
		return base;
	char *s = arena_printf(a, "%.*s+0x%llx", (int)base.len, base.s, (unsigned long long)off);
	return ses_text_cstr(s);
}

struct ses_text ses_where(struct ses_snap *sn, uint64_t va, struct arena *a)
{
	uint32_t loc = space_loc(sn->space, va);
	if (loc == LOC_NONE)
		return ses_text_of("", 0);
	uint32_t func = image_func_at(sn->im, loc), cnt;
	const struct image_func *f = image_funcs(sn->im, &cnt);
	if (func < cnt && f[func].loc <= loc)
		return ses_plus(a, ses_func_name(sn, func, a), loc - f[func].loc);
	struct ses_text own = ses_name_loc(sn, loc, a);
	if (own.len)
		return own;
	const struct image_section *s = ses_section_of(sn, va);
	if (s)
		return ses_plus(a, ses_pool(sn, s->name), va - s->va);
	int seg = space_seg_of_va(sn->space, va);
	if (seg < 0)
		return own;
	const struct space_seg *g = &sn->space->segs[seg];
	return ses_plus(a, ses_pool(sn, (struct image_str){g->name_off, g->name_len}), va - g->va);
}

bool ses_is_mapped(struct ses_snap *sn, uint64_t va)
{
	return space_loc(sn->space, va) != LOC_NONE;
}

bool ses_va_to_file(struct ses_snap *sn, uint64_t va, uint64_t *ret_off)
{
	int seg = space_seg_of_va(sn->space, va);
	if (seg < 0)
		return false;
	const struct space_seg *g = &sn->space->segs[seg];
	if (va - g->va >= g->file_len)
		return false;
	*ret_off = g->file_off + (va - g->va);
	return true;
}

/* --- from text to address --- */

static bool ses_parse_hex(const char *s, size_t len, uint64_t *ret)
{
	if (!len || len > 16)
		return false;
	uint64_t v = 0;
	for (size_t i = 0; i < len; i++) {
		char ch = (char)(s[i] | 0x20);
		if (s[i] >= '0' && s[i] <= '9')
			v = v << 4 | (uint64_t)(s[i] - '0');
		else if (ch >= 'a' && ch <= 'f')
			v = v << 4 | (uint64_t)(ch - 'a' + 10);
		else
			return false;
	}
	*ret = v;
	return true;
}

static bool ses_parse_number(const char *s, size_t len, uint64_t *ret)
{
	if (len > 2 && s[0] == '0' && (s[1] | 0x20) == 'x')
		return ses_parse_hex(s + 2, len - 2, ret);
	if (!len || len > 19)
		return false;
	uint64_t v = 0;
	for (size_t i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(s[i] - '0');
	}
	*ret = v;
	return true;
}

static struct err *ses_ambiguous(struct ses_snap *sn, const char *text, size_t len, uint32_t first, uint32_t cnt)
{
	struct buf list = {0};
	for (uint32_t i = 0; i < cnt && i < 5; i++) {
		const struct image_name *n = image_name_by_order(sn->im, first + i);
		if (n)
			buf_printf(&list, "%s0x%llx", list.len ? ", " : "", (unsigned long long)space_va(sn->space, n->loc));
	}
	struct err *e = err_new(ERR_AMBIGUOUS, "%.*s: is the name of %u places: %.*s%s", (int)len, text, cnt, (int)list.len,
				list.data ? list.data : "", cnt > 5 ? ", ..." : "");
	buf_fini(&list);
	return err_fix(e, "give the address");
}

/* An import's name stands at its stub and at the place made for it: one thing, whose address is the stub's. */
static bool ses_is_one_import(struct ses_snap *sn, uint32_t first, uint32_t cnt, uint32_t *ret_loc)
{
	const struct image_import *one = NULL;
	for (uint32_t i = 0; i < cnt; i++) {
		const struct image_name *n = image_name_by_order(sn->im, first + i);
		const struct image_import *imp = n ? image_import_at(sn->im, n->loc) : NULL;
		if (!imp || (one && imp != one))
			return false;
		one = imp;
	}
	if (one)
		*ret_loc = one->plt_loc != LOC_NONE ? one->plt_loc : one->loc;
	return one != NULL;
}

/* Error not_found is the static one, so that the caller can go on to the next spelling. */
static struct err *ses_resolve_stored(struct ses_snap *sn, const char *text, size_t len, uint64_t *ret)
{
	uint32_t first, cnt = image_name_find(sn->im, text, len, &first);
	uint32_t loc = LOC_NONE, distinct = 0;
	for (uint32_t i = 0; i < cnt; i++) {
		const struct image_name *n = image_name_by_order(sn->im, first + i);
		if (!n || n->loc == loc)
			continue;
		loc = n->loc;
		distinct++;
	}
	if (!distinct)
		return &err_not_found;
	if (distinct > 1 && !ses_is_one_import(sn, first, cnt, &loc))
		return ses_ambiguous(sn, text, len, first, cnt);
	*ret = space_va(sn->space, loc);
	return NULL;
}

bool ses_resolve_generated(const char *text, size_t len, uint64_t *ret)
{
	static const char *const prefixes[] = {"sub_", "loc_", "str_", "data_", "byte_", "word_", "dword_", "qword_",
					       "off_", "unk_"};
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		size_t n = strlen(prefixes[i]);
		if (len > n && !memcmp(text, prefixes[i], n) && ses_parse_hex(text + n, len - n, ret))
			return true;
	}
	return false;
}

/* puts@plt, puts@got, puts: the stub, the slot, or the place that stands for the import. */
static bool ses_resolve_import(struct ses_snap *sn, const char *text, size_t len, uint64_t *ret)
{
	const char *at = memchr(text, '@', len);
	size_t base = at ? (size_t)(at - text) : len;
	bool is_got = at && len - base == 4 && !memcmp(at, "@got", 4);
	if (at && !is_got && !(len - base == 4 && !memcmp(at, "@plt", 4)))
		return false;
	uint32_t cnt, sym_cnt;
	const struct image_import *imp = image_imports(sn->im, &cnt);
	const struct image_symbol *syms = image_symbols(sn->im, &sym_cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		struct ses_text t = imp[i].symbol < sym_cnt ? ses_pool(sn, syms[imp[i].symbol].name) : ses_text_of("", 0);
		if (t.len != base || memcmp(t.s, text, base))
			continue;
		uint32_t loc = is_got ? imp[i].got_loc : imp[i].plt_loc != LOC_NONE ? imp[i].plt_loc : at ? LOC_NONE : imp[i].loc;
		*ret = space_va(sn->space, loc);
		return loc != LOC_NONE && *ret != UINT64_MAX;
	}
	return false;
}

/* j_NAME: the one function that only jumps to NAME. */
static struct err *ses_resolve_thunk(struct ses_snap *sn, const char *text, size_t len, uint64_t *ret)
{
	uint64_t to;
	if (len < 3 || text[0] != 'j' || text[1] != '_')
		return &err_not_found;
	bool is_own = sn->edits && ses_edit_resolve(sn, text + 2, len - 2, &to);
	struct err *e = is_own ? NULL : ses_resolve_stored(sn, text + 2, len - 2, &to);
	if (e)
		return e;
	uint32_t cnt, found = 0, loc = space_loc(sn->space, to);
	const struct image_func *f = image_funcs(sn->im, &cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		if (!(f[i].flags & IMAGE_FN_THUNK) || f[i].thunk_to != loc || image_name_at(sn->im, f[i].loc))
			continue;
		*ret = space_va(sn->space, f[i].loc);
		found++;
	}
	if (found > 1)
		return err_fix(err_new(ERR_AMBIGUOUS, "%.*s: %u functions only jump there", (int)len, text, found), "give the address");
	return found ? NULL : &err_not_found;
}

/* "Stack::push(int)" or "Stack::push" for the mangled name. Reads every mangled name, so it comes last. */
static bool ses_resolve_demangled(struct ses_snap *sn, const char *text, size_t len, uint64_t *ret)
{
	if (!memchr(text, ':', len) && !memchr(text, '(', len))
		return false;
	uint32_t cnt;
	const struct image_name *names = image_names(sn->im, &cnt);
	struct arena a = {0};
	bool found = false;
	for (uint32_t i = 0; i < cnt && !found; i++) {
		struct ses_text d = ses_demangle(&a, ses_pool(sn, names[i].name));
		found = d.len >= len && !memcmp(d.s, text, len) && (d.len == len || d.s[len] == '(');
		if (found)
			*ret = space_va(sn->space, names[i].loc);
		arena_reset(&a);
	}
	arena_fini(&a);
	return found;
}

static struct err *ses_resolve_file(struct ses_snap *sn, const char *text, size_t len, uint64_t *ret)
{
	uint64_t off;
	if (!ses_parse_number(text, len, &off))
		return err_new(ERR_INVALID, "file:%.*s: is not a file offset", (int)len, text);
	for (uint32_t i = 0; i < sn->space->seg_cnt; i++) {
		const struct space_seg *g = &sn->space->segs[i];
		if (off >= g->file_off && off - g->file_off < g->file_len) {
			*ret = g->va + (off - g->file_off);
			return NULL;
		}
	}
	return err_new(ERR_NOT_FOUND, "file:%.*s: is mapped nowhere", (int)len, text);
}

static struct err *ses_resolve_n(struct ses_snap *sn, const char *text, size_t len, uint64_t *ret);

/* "table[2].name" of typed data. */
static bool ses_resolve_member(struct ses_snap *sn, const char *text, size_t len, uint64_t *ret)
{
	size_t at = 1;
	uint64_t va, off;
	uint32_t cnt;
	while (at < len && text[at] != '.' && text[at] != '[')
		at++;
	if (at >= len || !ses_typed(sn, &cnt))
		return false;
	struct err *e = ses_resolve_n(sn, text, at, &va);
	err_free(e);
	if (e || !ses_typed_member(sn, va, text + at, len - at, &off))
		return false;
	*ret = va + off;
	return true;
}

static struct err *ses_resolve_n(struct ses_snap *sn, const char *text, size_t len, uint64_t *ret)
{
	if (len > 5 && !memcmp(text, "file:", 5))
		return ses_resolve_file(sn, text + 5, len - 5, ret);
	if (len > 2 && text[0] == '0' && (text[1] | 0x20) == 'x') {
		if (ses_parse_hex(text + 2, len - 2, ret))
			return NULL;
		return err_new(ERR_INVALID, "%.*s: is not an address", (int)len, text);
	}
	if (sn->edits && ses_edit_resolve(sn, text, len, ret))
		return NULL;
	struct err *e = ses_resolve_stored(sn, text, len, ret);
	if (e != &err_not_found)
		return e;
	e = ses_resolve_thunk(sn, text, len, ret);
	if (e != &err_not_found)
		return e;
	const struct image_meta *m = image_meta(sn->im);
	if (len == 5 && !memcmp(text, "entry", 5) && m->has_entry) {
		*ret = m->entry_va;
		return NULL;
	}
	if (ses_resolve_generated(text, len, ret) || ses_resolve_import(sn, text, len, ret) || ses_parse_hex(text, len, ret) ||
	    ses_resolve_demangled(sn, text, len, ret))
		return NULL;
	return ses_resolve_member(sn, text, len, ret) ? NULL : e;
}

/* Looks it up among those that were resolved of late, or puts it there. Whoever holds the lock may do so for long: then it is nothing. */
static bool ses_known(struct ses_snap *sn, const char *text, size_t len, bool is_new, uint64_t *va)
{
	struct ses_known *k = &sn->known[(len ^ (uint8_t)text[0] ^ (uint8_t)text[len / 2] << 2 ^ (uint8_t)text[len - 1] << 4) % SES_KNOWN_CNT];
	if (len >= sizeof(k->name) || pthread_mutex_trylock(&sn->lock))
		return false;
	bool is_there = !strcmp(k->name, text);
	if (is_new) {
		memcpy(k->name, text, len + 1);
		k->va = *va;
	} else if (is_there) {
		*va = k->va;
	}
	pthread_mutex_unlock(&sn->lock);
	return is_there;
}

struct err *ses_resolve(struct ses_snap *sn, const char *text, uint64_t *ret_va)
{
	size_t len = strlen(text);
	if (!len)
		return err_new(ERR_INVALID, "an address or a name is needed");
	uint64_t va;
	if (ses_known(sn, text, len, false, ret_va))
		return NULL;
	struct err *e = ses_resolve_n(sn, text, len, &va);
	/* Names may hold '+' and '-' themselves (operator+), so the whole is tried first. */
	for (size_t i = len; e == &err_not_found && i-- > 1;) {
		uint64_t off;
		if ((text[i] != '+' && text[i] != '-') || !ses_parse_number(text + i + 1, len - i - 1, &off))
			continue;
		e = ses_resolve_n(sn, text, i, &va);
		if (e)
			continue;
		if (text[i] == '+' ? off > UINT64_MAX - va : off > va)
			return err_new(ERR_NOT_FOUND, "%s: lies outside the address space", text);
		va = text[i] == '+' ? va + off : va - off;
	}
	if (e == &err_not_found)
		return err_fix(err_new(ERR_NOT_FOUND, "%s: there is no such name or address", text),
			       "scry symbols FILE --filter '*%s*' lists names like it", text);
	if (e)
		return e;
	(void)ses_known(sn, text, len, true, &va);
	*ret_va = va;
	return NULL;
}
