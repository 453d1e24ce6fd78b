/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What somebody says about types of addresses: brought into canonical form before it is written, refused when it cannot be,
 * and shown with the name that the thing has today.
 */
#include "session/ses_types.h"

#include "session/heads_int.h"
#include "types/types_system.h"

#include <inttypes.h>
#include <string.h>

/* --- prototypes --- */

static bool is_ident(char c)
{
	return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_c_name(struct ses_text t)
{
	for (uint32_t i = 0; i < t.len; i++) {
		if (!is_ident(t.s[i]))
			return false;
	}
	return t.len && !(t.s[0] >= '0' && t.s[0] <= '9');
}

/* Where the declared name stands in a canonical prototype: the first word before a parenthesis that is no attribute. */
static bool find_declared(struct ses_text t, uint32_t *ret_off, uint32_t *ret_len)
{
	for (uint32_t i = 0; i < t.len;) {
		uint32_t from = i;
		while (i < t.len && is_ident(t.s[i]))
			i++;
		if (i > from && i < t.len && t.s[i] == '(' && !(i - from == 13 && !memcmp(t.s + from, "__attribute__", 13))) {
			*ret_off = from;
			*ret_len = i - from;
			return true;
		}
		i += i == from;
	}
	return false;
}

/* The prototype with another name in it. */
static struct ses_text with_name(struct ses_text proto, struct ses_text name, struct arena *a)
{
	uint32_t off, len;
	if (!name.len || !find_declared(proto, &off, &len) || (len == name.len && !memcmp(proto.s + off, name.s, len)))
		return proto;
	char *s = arena_printf(a, "%.*s%.*s%.*s", (int)off, proto.s, (int)name.len, name.s, (int)(proto.len - off - len),
			       proto.s + off + len);
	return s ? ses_text_cstr(s) : proto;
}

/* Whether an import may be the C library's: it says so, or says nothing. */
static bool is_from_libc(const struct ses_snap *sn, const struct image_symbol *s)
{
	static const char *const names[] = {"libc.so", "libm.so", "libpthread.so", "libdl.so", "librt.so", "libresolv.so", "ld-linux"};
	struct image_version v;
	struct ses_text lib = image_version(sn->im, s->version, &v) ? ses_pool(sn, v.library) : ses_text_of("", 0);
	for (size_t i = 0; lib.len && i < ARRAY_LEN(names); i++) {
		if (lib.len > strlen(names[i]) && !memcmp(lib.s, names[i], strlen(names[i])))
			return true;
	}
	return !lib.len;
}

/* What the system's headers say of the import at loc. */
static struct ses_text system_prototype(const struct ses_snap *sn, uint32_t loc)
{
	uint32_t cnt;
	const struct image_symbol *syms = image_symbols(sn->im, &cnt);
	const struct image_import *imp = image_import_at(sn->im, loc);
	if (!imp || imp->symbol >= cnt || !is_from_libc(sn, &syms[imp->symbol]))
		return ses_text_of("", 0);
	struct ses_text name = ses_pool(sn, syms[imp->symbol].name);
	const struct types_system_row *r = types_system_find(name.s, name.len, false);
	bool is_func = r && r->kind == TYPES_SYSTEM_FUNC;
	return is_func ? ses_text_of(types_system_text + r->text_off, r->text_len) : ses_text_of("", 0);
}

struct ses_text ses_prototype_at(struct ses_snap *sn, uint64_t va, struct arena *a, const char **ret_source)
{
	const struct edits_fact *f = edits_find(sn->edits, EDITS_PROTOTYPE, va, "");
	uint32_t loc = space_loc(sn->space, va);
	const struct image_proto *p = f || loc == LOC_NONE ? NULL : image_proto_at(sn->im, loc);
	const char *source = "";
	struct ses_text t = {"", 0};
	if (f) {
		t = ses_text_of(f->value, f->value_len);
		source = "user";
	} else if (p && p->text.len) {
		t = ses_pool(sn, p->text);
		source = "dwarf";
	} else if (loc != LOC_NONE) {
		t = system_prototype(sn, loc);
		source = t.len ? "builtin" : "";
	}
	if (ret_source)
		*ret_source = source;
	/* What debug information says has its own name in it; only a name that somebody gave replaces that. */
	bool is_renamed = f || (sn->edits && ses_edit_has_name(sn, va));
	return t.len && is_renamed ? with_name(t, ses_name_loc(sn, loc, a), a) : t;
}

static bool is_function(struct ses_snap *sn, uint32_t loc)
{
	return image_func_starting(sn->im, loc) != UINT32_MAX || image_import_at(sn->im, loc);
}

void ses_type_at(struct ses_snap *sn, uint64_t va, struct arena *a, struct ses_type_info *ret)
{
	uint32_t loc = space_loc(sn->space, va);
	*ret = (struct ses_type_info){.is_func = loc != LOC_NONE && is_function(sn, loc), .text = {"", 0}, .source = ""};
	if (ret->is_func) {
		ret->text = ses_prototype_at(sn, va, a, &ret->source);
		return;
	}
	const struct ses_typed *typed = loc == LOC_NONE ? NULL : ses_typed_at(sn, loc);
	_cleanup_types_lock_ struct ses_typeset *ts = NULL;
	_cleanup_buf_ struct buf b = {0};
	struct err *e = typed && typed->loc == loc ? ses_types_lock(sn, &ts) : &err_not_found;
	if (!e) {
		types_print(ts->t, ses_typed_ref(ts, typed), NULL, &b);
		struct ses_text line = ses_types_line(&b);
		char *s = arena_strndup(a, line.s, line.len);
		ret->text = ses_text_of(s, line.len);
		ret->source = edits_find(sn->edits, EDITS_TYPE, va, "") ? "user" : "dwarf";
	}
	err_free(e);
}

/* --- canonical form --- */

static char *take_text(struct buf *b, struct arena *a)
{
	return b->failed ? NULL : arena_strndup(a, b->data ? b->data : "", b->len);
}

static struct err *canonical_type(struct ses_typeset *ts, struct edits_change *c, struct arena *a)
{
	struct types_ref r;
	struct err *e = ses_types_parse(ts, c->value, c->value_len, &r);
	if (e)
		return e;
	_cleanup_buf_ struct buf b = {0};
	types_print(ts->t, r, NULL, &b);
	c->value = take_text(&b, a);
	c->value_len = b.len;
	return c->value ? NULL : &err_nomem;
}

static struct err *canonical_proto(struct ses_typeset *ts, struct edits_change *c, struct arena *a)
{
	struct types_ref r;
	const char *name;
	struct err *e = ses_types_parse_proto(ts, c->value, c->value_len, &r, &name);
	if (e)
		return e;
	struct ses_text own = ses_name_loc(ts->sn, space_loc(ts->sn->space, c->va), a);
	if (!name || !*name)
		name = is_c_name(own) ? own.s : "f";
	_cleanup_buf_ struct buf b = {0};
	types_print(ts->t, types_real(ts->t, r), name, &b);
	c->value = take_text(&b, a);
	c->value_len = b.len;
	return c->value ? NULL : &err_nomem;
}

/* Reads the value; the error says what is wrong with it. */
static struct err *read_value(struct ses_snap *sn, struct edits_change *c, struct arena *a)
{
	_cleanup_types_lock_ struct ses_typeset *ts = NULL;
	struct err *e = ses_types_lock(sn, &ts);
	if (e)
		return e;
	return c->kind == EDITS_TYPE ? canonical_type(ts, c, a) : canonical_proto(ts, c, a);
}

struct err *ses_typing_canonical(struct ses_snap *sn, struct edits_change *c, struct arena *a)
{
	if (!c->value || (c->kind != EDITS_TYPE && c->kind != EDITS_PROTOTYPE))
		return NULL;
	struct err *e = read_value(sn, c, a);
	if (!e || e->kind == ERR_NOMEM)
		return e;
	err_free(e);
	return NULL;
}

/* --- refusing --- */

static const char *refuse_extent(struct ses_snap *sn, const struct edits_change *c, uint64_t len, struct arena *a)
{
	uint32_t loc = space_loc(sn->space, c->va), start, item_len;
	enum image_item_kind kind;
	uint64_t end_va;
	if (!len)
		return "the type has no bytes";
	if (__builtin_add_overflow(c->va, len - 1, &end_va) || len > UINT32_MAX ||
	    space_seg_of_va(sn->space, c->va) != space_seg_of_va(sn->space, end_va))
		return arena_printf(a, "its %" PRIu64 " bytes reach over the end of the segment", len);
	for (uint32_t at = loc; at - loc < len && image_item_at(sn->im, at, &start, &item_len, &kind); at = start + item_len) {
		if (kind == IMAGE_CODE)
			return arena_printf(a, "code is at 0x%" PRIx64, space_va(sn->space, start));
		if (!item_len)
			break;
	}
	const struct ses_typed *t = ses_typed_at(sn, loc);
	if (t && t->loc != loc && edits_find(sn->edits, EDITS_TYPE, space_va(sn->space, t->loc), ""))
		return arena_printf(a, "it is part of the typed data at 0x%" PRIx64, space_va(sn->space, t->loc));
	return NULL;
}

static const char *refuse_type(struct ses_snap *sn, const struct edits_change *c, struct arena *a)
{
	uint64_t len = 0;
	{
		_cleanup_types_lock_ struct ses_typeset *ts = NULL;
		struct types_ref r;
		uint32_t align;
		struct err *e = ses_types_lock(sn, &ts);
		if (!e)
			e = ses_types_parse(ts, c->value, c->value_len, &r);
		if (e) {
			const char *why = arena_strndup(a, e->text, strlen(e->text));
			err_free(e);
			return why ? why : "there is no memory";
		}
		if (types_get(ts->t, types_real(ts->t, r).id)->kind == TYPES_FUNC)
			return "it is a function: state its prototype";
		if (!types_layout(ts->t, r, &len, &align))
			return "the type has no size here: it is incomplete";
	}
	return refuse_extent(sn, c, len, a);
}

static const char *refuse_proto(struct ses_snap *sn, const struct edits_change *c, struct arena *a)
{
	if (!is_function(sn, space_loc(sn->space, c->va)))
		return "no function begins here";
	struct edits_change copy = *c;
	struct err *e = read_value(sn, &copy, a);
	if (!e)
		return NULL;
	const char *why = arena_strndup(a, e->text, strlen(e->text));
	err_free(e);
	return why ? why : "there is no memory";
}

const char *ses_typing_refuse(struct ses_snap *sn, const struct edits_change *c, struct arena *a)
{
	if (!c->value_len)
		return "the text is empty";
	switch (c->kind) {
	case EDITS_TYPE:
		return refuse_type(sn, c, a);
	case EDITS_PROTOTYPE:
		return refuse_proto(sn, c, a);
	default:
		return heads_format_refuse(sn, c, a);
	}
}
