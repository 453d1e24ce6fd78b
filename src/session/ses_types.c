/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of types for snapshots. The journal keeps one canonical declaration a fact; a set is made from those of a snapshot
 * when somebody asks for one, and goes from snapshot to snapshot as long as no declaration changes.
 */
#include "session/ses_types.h"

#include "types/types_system.h"

#include <string.h>

static struct err *abi_for(const struct ses_snap *sn, enum types_abi *ret)
{
	switch (sn->arch ? sn->arch->id : ARCH_ID_NONE) {
	case ARCH_ID_X86_64:
		*ret = TYPES_X86_64;
		return NULL;
	case ARCH_ID_I386:
		*ret = TYPES_I386;
		return NULL;
	case ARCH_ID_A64:
		*ret = TYPES_A64;
		return NULL;
	default:
		return err_new(ERR_UNSUPPORTED, "types: the C types of this processor are not known");
	}
}

static uint64_t decl_hash(const struct ses_snap *sn)
{
	size_t cnt;
	const struct edits_fact *f = edits_range(sn->edits, EDITS_DECL, 0, UINT64_MAX, &cnt);
	uint64_t h = 0xcbf29ce484222325u ^ cnt;
	for (size_t i = 0; i < cnt; i++) {
		for (const char *s = f[i].sub; *s; s++)
			h = (h ^ (uint8_t)*s) * 0x100000001b3u;
		h = (h ^ f[i].rev) * 0x100000001b3u;
	}
	return h;
}

/* --- names that text needs --- */

static bool is_ident(char c, bool is_first)
{
	return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (!is_first && c >= '0' && c <= '9');
}

/*
 * What the system's headers say of a name, with what that needs. On another machine than the one they were made on their structs
 * may look otherwise, so that they stay tags there.
 */
static void know_system(struct ses_typeset *ts, const char *name, size_t len, bool is_tag)
{
	const struct types_system_row *r = types_system_find(name, len, is_tag);
	const char *text = r ? types_system_text + r->text_off : NULL;
	bool is_foreign = (int)types_abi_of(ts->t) != types_system_abi;
	if (!r || r->kind == TYPES_SYSTEM_FUNC || ts->system_depth >= SES_TYPES_SYSTEM_DEPTH || (is_foreign && memchr(text, '{', r->text_len)))
		return;
	/* Its own name is in its text. */
	for (unsigned i = 0; i < ts->system_depth; i++) {
		if (ts->system[i] == r)
			return;
	}
	ts->system[ts->system_depth++] = r;
	bool was_builtin = types_is_builtin(ts->t);
	/* A tag is there before its members, which may point to it. */
	if (is_tag && !types_find(ts->t, name, len, true)) {
		types_set_builtin(ts->t, true);
		size_t head = strcspn(text, " ");
		(void)types_build_tag(ts->t, head == 6 ? TYPES_STRUCT : head == 5 ? TYPES_UNION : TYPES_ENUM, name, len);
	}
	ses_types_know(ts, text, r->text_len);
	types_set_builtin(ts->t, true);
	struct err *e = types_parse(ts->t, text, r->text_len, NULL);
	types_set_builtin(ts->t, was_builtin);
	err_free(e);
	ts->system_depth--;
}

static void know_name(struct ses_typeset *ts, const char *name, size_t len, bool is_tag)
{
	uint32_t idx = image_type_find(ts->sn->im, name, len, is_tag);
	const struct types_decl *d = types_decl_get(ts->t, types_find(ts->t, name, len, is_tag));
	if (idx && (!d->name || d->is_builtin))
		(void)ses_dwarf_type(ts, idx);
	else if (!idx && (!d->name || (is_tag && !(types_get(ts->t, d->type.id)->flags & TYPES_F_COMPLETE))))
		know_system(ts, name, len, is_tag);
}

void ses_types_know_tag(struct ses_typeset *ts, const char *name, size_t len)
{
	know_name(ts, name, len, true);
}

void ses_types_know(struct ses_typeset *ts, const char *text, size_t len)
{
	bool is_tag = false;
	for (size_t i = 0; i < len;) {
		size_t from = i;
		while (i < len && is_ident(text[i], i == from))
			i++;
		size_t n = i - from;
		if (!n) {
			/* The first word of a body names no tag. */
			is_tag = is_tag && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n');
			i++;
			continue;
		}
		know_name(ts, text + from, n, is_tag);
		is_tag = (n == 6 && !memcmp(text + from, "struct", n)) || (n == 5 && !memcmp(text + from, "union", n)) ||
			 (n == 4 && !memcmp(text + from, "enum", n));
	}
}

/* --- making a set --- */

static void typeset_free(struct ses_typeset *ts)
{
	types_free(ts->t);
	free(ts->from);
	pthread_mutex_destroy(&ts->lock);
	free(ts);
}

void ses_typeset_put(struct ses_typeset *ts)
{
	if (ts && atomic_fetch_sub(&ts->refs, 1) == 1)
		typeset_free(ts);
}

static struct err *read_decls(struct ses_typeset *ts, const char *without)
{
	size_t cnt, n = 0;
	const struct edits_fact *facts = edits_range(ts->sn->edits, EDITS_DECL, 0, UINT64_MAX, &cnt);
	_cleanup_free_ struct types_text *list = alloc_array(cnt, sizeof(*list));
	_cleanup_free_ struct err **why = alloc_array(cnt, sizeof(*why));
	if (!list || !why)
		return &err_nomem;
	for (size_t i = 0; i < cnt; i++) {
		if (!without || strcmp(without, facts[i].sub))
			list[n++] = (struct types_text){facts[i].value, facts[i].value_len};
	}
	for (size_t i = 0; i < n; i++)
		ses_types_know(ts, list[i].text, list[i].len);
	struct err *e = types_parse_unordered(ts->t, list, n, why);
	for (size_t i = 0; !e && i < n; i++) {
		ts->lost_cnt += why[i] != NULL;
		err_free(why[i]);
	}
	return e;
}

struct err *ses_types_new(struct ses_snap *sn, const char *without, struct ses_typeset **ret)
{
	enum types_abi abi = TYPES_X86_64;
	struct err *e = abi_for(sn, &abi);
	if (e)
		return e;
	struct ses_typeset *ts = calloc(1, sizeof(*ts));
	if (!ts)
		return &err_nomem;
	ts->refs = 1;
	ts->sn = sn;
	ts->decl_hash = decl_hash(sn);
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&ts->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	ts->t = types_new(abi);
	e = ts->t ? read_decls(ts, without) : &err_nomem;
	if (e) {
		typeset_free(ts);
		return e;
	}
	*ret = ts;
	return NULL;
}

struct err *ses_types_foresee(struct ses_snap *sn, const struct edits_change *edits, size_t cnt)
{
	size_t n = 0;
	_cleanup_free_ struct types_text *list = alloc_array(cnt, sizeof(*list));
	_cleanup_free_ struct err **why = alloc_array(cnt, sizeof(*why));
	struct err *e = list && why ? ses_types_new(sn, NULL, &sn->types) : &err_nomem;
	if (e && e->kind == ERR_UNSUPPORTED) {
		err_free(e);
		return NULL;
	}
	for (size_t i = 0; !e && i < cnt; i++) {
		if (edits[i].kind != EDITS_DECL || !edits[i].value)
			continue;
		ses_types_know(sn->types, edits[i].value, edits[i].value_len);
		list[n++] = (struct types_text){edits[i].value, edits[i].value_len};
	}
	if (!e)
		e = types_parse_unordered(sn->types->t, list, n, why);
	for (size_t i = 0; i < n; i++)
		err_free(why[i]);
	return e;
}

struct err *ses_types_lock(struct ses_snap *sn, struct ses_typeset **ret)
{
	struct err *e = NULL;
	pthread_mutex_lock(&sn->lock);
	if (!sn->types)
		e = ses_types_new(sn, NULL, &sn->types);
	struct ses_typeset *ts = sn->types;
	pthread_mutex_unlock(&sn->lock);
	if (e)
		return e;
	pthread_mutex_lock(&ts->lock);
	ts->sn = sn;
	*ret = ts;
	return NULL;
}

void ses_types_unlock(struct ses_typeset **ts)
{
	if (*ts)
		pthread_mutex_unlock(&(*ts)->lock);
}

void ses_types_inherit(struct ses_snap *sn, struct ses_snap *was)
{
	pthread_mutex_lock(&was->lock);
	struct ses_typeset *ts = was->types;
	if (ts && ts->decl_hash == decl_hash(sn) && was->im == sn->im) {
		atomic_fetch_add(&ts->refs, 1);
		sn->types = ts;
	}
	pthread_mutex_unlock(&was->lock);
}

struct err *ses_types_parse(struct ses_typeset *ts, const char *text, size_t len, struct types_ref *ret)
{
	ses_types_know(ts, text, len);
	return types_parse_type(ts->t, text, len, NULL, ret);
}

struct err *ses_types_parse_proto(struct ses_typeset *ts, const char *text, size_t len, struct types_ref *ret,
				  const char **ret_name)
{
	ses_types_know(ts, text, len);
	return types_parse_prototype(ts->t, text, len, NULL, ret, ret_name);
}

struct ses_text ses_types_line(const struct buf *b)
{
	size_t n = 0;
	while (n < b->len && b->data[n] != '{' && b->data[n] != '\n')
		n++;
	while (n && b->data[n - 1] == ' ')
		n--;
	return ses_text_of(b->data, n);
}

/* --- a header --- */

struct decl_list { VEC(uint32_t) v; };

static bool header_declared(struct ses_typeset *ts, struct decl_list *l)
{
	struct types_mark start = {0};
	for (uint32_t i = 0; (i = types_next_changed(ts->t, &start, i)) != 0;) {
		if (!types_decl_get(ts->t, i)->is_builtin && !VEC_PUSH(&l->v, i))
			return false;
	}
	return true;
}

static bool header_add(struct decl_list *l, uint32_t idx)
{
	return !idx || VEC_PUSH(&l->v, idx);
}

/* Every name in the text of a statement that is a type's. */
static bool header_used(struct ses_typeset *ts, enum edits_kind kind, struct decl_list *l)
{
	size_t cnt;
	const struct edits_fact *f = edits_range(ts->sn->edits, kind, 0, UINT64_MAX, &cnt);
	bool ok = true;
	for (size_t i = 0; i < cnt && ok; i++) {
		ses_types_know(ts, f[i].value, f[i].value_len);
		for (size_t k = 0; k < f[i].value_len && ok;) {
			size_t from = k;
			while (k < f[i].value_len && is_ident(f[i].value[k], k == from))
				k++;
			uint32_t idx = types_find(ts->t, f[i].value + from, k - from, false);
			bool is_type = types_decl_get(ts->t, idx)->kind == TYPES_D_TYPEDEF;
			ok = k == from || (header_add(l, is_type ? idx : 0) && header_add(l, types_find(ts->t, f[i].value + from, k - from, true)));
			k += k == from;
		}
	}
	return ok;
}

static bool header_dwarf(struct ses_typeset *ts, struct decl_list *l)
{
	uint32_t cnt;
	const struct image_type *t = image_types(ts->sn->im, &cnt);
	bool ok = true;
	for (uint32_t i = 1; i < cnt && ok && t[i].name.len && t[i].kind != IMAGE_T_BASE; i++) {
		struct ses_text name = ses_pool(ts->sn, t[i].name);
		(void)ses_dwarf_type(ts, i);
		ok = header_add(l, types_find(ts->t, name.s, name.len, t[i].kind != IMAGE_T_TYPEDEF));
	}
	return ok;
}

struct err *ses_types_header(struct ses_snap *sn, bool is_all, struct buf *ret)
{
	_cleanup_types_lock_ struct ses_typeset *ts = NULL;
	struct decl_list l = {0};
	struct err *e = ses_types_lock(sn, &ts);
	if (e)
		return e;
	bool ok = header_declared(ts, &l) && header_used(ts, EDITS_TYPE, &l) && header_used(ts, EDITS_PROTOTYPE, &l) &&
		  (!is_all || header_dwarf(ts, &l));
	if (ok)
		types_print_header(ts->t, l.v.data, (uint32_t)l.v.cnt, ret);
	VEC_FREE(&l.v);
	return ok && !ret->failed ? NULL : &err_nomem;
}

/* --- typed data --- */

/* What somebody stated; false when it cannot be read any more. */
static bool typed_stated(struct ses_typeset *ts, const struct edits_fact *f, struct ses_typed *ret)
{
	const struct space *s = ts->sn->space;
	struct types_ref r;
	uint64_t len;
	uint32_t align, loc = space_loc(s, f->va);
	struct err *e = ses_types_parse(ts, f->value, f->value_len, &r);
	bool is_sized = !e && types_layout(ts->t, r, &len, &align) && len;
	err_free(e);
	int seg = loc == LOC_NONE ? -1 : space_seg_of_loc(s, loc);
	if (!is_sized || seg < 0 || len > s->segs[seg].mem_len - (loc - s->segs[seg].loc))
		return false;
	*ret = (struct ses_typed){.loc = loc, .len = (uint32_t)len, .stated = r};
	return true;
}

/* A variable of debug information where nobody said that something else begins. */
static bool is_typed_var(struct ses_snap *sn, const struct image_var *var)
{
	return !edits_find(sn->edits, EDITS_ITEM, space_va(sn->space, var->loc), "");
}

/* By loc; what somebody stated goes before what debug information says of the same bytes. */
static struct err *typed_make(struct ses_snap *sn, struct ses_typeset *ts)
{
	size_t cnt;
	uint32_t var_cnt, n = 0, v = 0;
	const struct edits_fact *f = edits_range(sn->edits, EDITS_TYPE, 0, UINT64_MAX, &cnt);
	const struct image_var *vars = image_vars(sn->im, &var_cnt);
	struct ses_typed *list = alloc_array(cnt + var_cnt, sizeof(*list));
	if (!list)
		return &err_nomem;
	for (size_t i = 0; i <= cnt; i++) {
		struct ses_typed t = {.loc = LOC_NONE};
		if (i < cnt && (!typed_stated(ts, &f[i], &t) || (n && t.loc - list[n - 1].loc < list[n - 1].len && list[n - 1].stated.id)))
			continue;
		for (; v < var_cnt && vars[v].loc + (vars[v].len - 1) < t.loc; v++) {
			if ((!n || vars[v].loc - list[n - 1].loc >= list[n - 1].len) && is_typed_var(sn, &vars[v]))
				list[n++] = (struct ses_typed){.loc = vars[v].loc, .len = vars[v].len, .image_type = vars[v].type};
		}
		if (i < cnt)
			list[n++] = t;
	}
	sn->typed = list;
	sn->typed_cnt = n;
	return NULL;
}

struct types_ref ses_typed_ref(struct ses_typeset *ts, const struct ses_typed *t)
{
	uint64_t len;
	uint32_t align;
	struct types_ref r = t->stated.id ? t->stated : ses_dwarf_type(ts, t->image_type);
	if (r.id && types_layout(ts->t, r, &len, &align) && len == t->len)
		return r;
	return types_build_array(ts->t, types_build_base(ts->t, TYPES_B_UCHAR), t->len, false);
}

const struct ses_typed *ses_typed(struct ses_snap *sn, uint32_t *ret_cnt)
{
	size_t cnt;
	uint32_t var_cnt;
	*ret_cnt = 0;
	(void)edits_range(sn->edits, EDITS_TYPE, 0, UINT64_MAX, &cnt);
	(void)image_vars(sn->im, &var_cnt);
	if ((!cnt && !var_cnt) || sn->is_preview)
		return NULL;
	if (!atomic_load(&sn->has_typed)) {
		struct ses_typeset *ts = NULL;
		struct err *e = ses_types_lock(sn, &ts);
		if (!e && !atomic_load(&sn->has_typed))
			e = typed_make(sn, ts);
		if (!e)
			atomic_store(&sn->has_typed, true);
		ses_types_unlock(&ts);
		err_free(e);
		if (e)
			return NULL;
	}
	*ret_cnt = sn->typed_cnt;
	return sn->typed;
}

const struct ses_typed *ses_typed_at(struct ses_snap *sn, uint32_t loc)
{
	uint32_t cnt, lo = 0;
	const struct ses_typed *t = ses_typed(sn, &cnt);
	for (uint32_t hi = cnt; lo < hi;) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (t[mid].loc <= loc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && loc - t[lo - 1].loc < t[lo - 1].len ? &t[lo - 1] : NULL;
}

size_t ses_typed_name_put(struct ses_snap *sn, uint32_t loc, char *out, size_t cap)
{
	const struct ses_typed *typed = ses_typed_at(sn, loc);
	_cleanup_types_lock_ struct ses_typeset *ts = NULL;
	_cleanup_buf_ struct buf path = {0};
	struct types_at at;
	size_t len = typed && typed->loc != loc ? ses_name_put(sn, typed->loc, out, cap) : 0;
	struct err *e = len ? ses_types_lock(sn, &ts) : NULL;
	err_free(e);
	if (!len || e || !types_path_of(ts->t, ses_typed_ref(ts, typed), loc - typed->loc, &path, &at) || path.failed)
		return 0;
	uint64_t over = loc - typed->loc - at.off;
	if (over)
		buf_printf(&path, "+0x%llx", (unsigned long long)over);
	if (path.failed || path.len > cap - len)
		return 0;
	memcpy(out + len, path.data, path.len);
	return len + path.len;
}

bool ses_typed_member(struct ses_snap *sn, uint64_t va, const char *path, size_t len, uint64_t *ret_off)
{
	uint32_t loc = space_loc(sn->space, va);
	const struct ses_typed *typed = loc == LOC_NONE ? NULL : ses_typed_at(sn, loc);
	_cleanup_types_lock_ struct ses_typeset *ts = NULL;
	struct types_at at;
	if (!typed || typed->loc != loc)
		return false;
	struct err *e = ses_types_lock(sn, &ts);
	if (!e)
		e = types_path(ts->t, ses_typed_ref(ts, typed), path, len, &at);
	err_free(e);
	if (e || at.off >= typed->len)
		return false;
	*ret_off = at.off;
	return true;
}
