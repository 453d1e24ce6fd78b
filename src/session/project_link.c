/* SPDX-License-Identifier: Apache-2.0 */
/* What goes into the index of a project and what comes out of it: names and strings, imports to exports and back. */
#include "session/project.h"

#include "session/project_int.h"
#include "session/ses_int.h"

#include <string.h>

#define PAGE 4096

const char *ses_find_kind_name(enum ses_find_kind k)
{
	static const char *const names[SES_FIND_KIND_COUNT] = {
		[SES_FIND_EXPORT] = "export", [SES_FIND_IMPORT] = "import", [SES_FIND_FUNCTION] = "function",
		[SES_FIND_SYMBOL] = "symbol", [SES_FIND_GIVEN] = "given",   [SES_FIND_STRING] = "string",
	};
	return names[k];
}

/* --- filling the index --- */

static struct err *add_linkage(struct ses_snap *sn, struct ses_index_writer *w, enum ses_find_kind kind, struct arena *a)
{
	struct err *e = NULL;
	struct ses_page page = {.limit = PAGE};
	do {
		struct ses_import *m;
		arena_reset(a);
		e = kind == SES_FIND_EXPORT ? ses_exports(sn, NULL, &page, a, &m) : ses_imports(sn, NULL, &page, a, &m);
		for (uint32_t i = 0; !e && i < page.cnt; i++) {
			struct ses_index_row r = {.kind = kind, .va = m[i].addr, .text = m[i].name, .readable = m[i].demangled,
						  .version = m[i].version, .library = m[i].library};
			if (m[i].has_addr)
				e = ses_index_add(w, &r);
		}
		page.offset += page.cnt;
	} while (!e && page.cnt && page.offset < page.total);
	return e;
}

static struct err *add_strings(struct ses_snap *sn, struct ses_index_writer *w, struct arena *a)
{
	struct err *e = NULL;
	struct ses_page page = {.limit = PAGE};
	do {
		struct ses_string *s;
		arena_reset(a);
		e = ses_strings(sn, NULL, &page, a, &s);
		for (uint32_t i = 0; !e && i < page.cnt; i++)
			e = ses_index_add(w, &(struct ses_index_row){.kind = SES_FIND_STRING, .va = s[i].addr, .text = s[i].text});
		page.offset += page.cnt;
	} while (!e && page.cnt && page.offset < page.total);
	return e;
}

static int loc_cmp(const void *x, const void *y)
{
	const struct image_symbol *a = *(const struct image_symbol *const *)x, *b = *(const struct image_symbol *const *)y;
	return a->loc < b->loc ? -1 : a->loc > b->loc;
}

struct exported { const struct image_symbol **list; size_t cnt; };

/* Exported symbols by place; a name that is one of them is in the index already. */
static struct err *exported_get(struct ses_snap *sn, struct exported *ret)
{
	uint32_t cnt;
	const struct image_symbol *s = image_symbols(sn->im, &cnt);
	ret->list = alloc_array(cnt, sizeof(*ret->list));
	if (!ret->list)
		return &err_nomem;
	for (uint32_t i = 0; i < cnt; i++) {
		if (s[i].flags & IMAGE_SYM_EXPORT && s[i].loc != LOC_NONE)
			ret->list[ret->cnt++] = &s[i];
	}
	qsort(ret->list, ret->cnt, sizeof(*ret->list), loc_cmp);
	return NULL;
}

static bool is_exported(struct ses_snap *sn, const struct exported *x, const struct image_name *n, struct ses_text name)
{
	size_t lo = 0, hi = x->cnt;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (x->list[mid]->loc < n->loc)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < x->cnt && x->list[lo]->loc == n->loc; lo++) {
		struct ses_text t = ses_pool(sn, x->list[lo]->name);
		if (t.len == name.len && !memcmp(t.s, name.s, t.len))
			return true;
	}
	return false;
}

static struct err *add_names(struct ses_snap *sn, struct ses_index_writer *w, struct arena *a)
{
	struct exported x = {0};
	uint32_t cnt;
	const struct image_name *names = image_names(sn->im, &cnt);
	struct err *e = exported_get(sn, &x);
	for (uint32_t i = 0; i < cnt && !e; i++) {
		const struct image_name *n = &names[i];
		struct ses_text name = ses_pool(sn, n->name);
		if (n->kind == IMAGE_NAME_IMPORT || n->kind == IMAGE_NAME_PLT || is_exported(sn, &x, n, name))
			continue;
		arena_reset(a);
		struct ses_index_row r = {.kind = n->is_func ? SES_FIND_FUNCTION : SES_FIND_SYMBOL, .va = space_va(sn->space, n->loc),
					  .text = name, .readable = ses_demangle(a, name)};
		e = ses_index_add(w, &r);
	}
	free(x.list);
	return e;
}

static struct err *add_given(struct ses_snap *sn, struct ses_index_writer *w)
{
	size_t cnt = 0;
	const struct edits_fact *f = sn->edits ? edits_range(sn->edits, EDITS_NAME, 0, UINT64_MAX, &cnt) : NULL;
	struct err *e = NULL;
	for (size_t i = 0; i < cnt && !e; i++)
		e = ses_index_add(w, &(struct ses_index_row){.kind = SES_FIND_GIVEN, .va = f[i].va, .text = ses_text_of(f[i].value, f[i].value_len)});
	return e;
}

static struct err *write_part(struct ses_project *p, struct ses_snap *sn, const uint8_t sha256[32], enum ses_index_part part,
			      const struct ses_index_state *state)
{
	struct ses_index_writer *w;
	struct arena a = {0};
	struct err *e = ses_index_begin(p->index, sha256, part, &w);
	if (e)
		return e;
	if (part == SES_INDEX_EDITS) {
		e = add_given(sn, w);
	} else {
		e = add_linkage(sn, w, SES_FIND_EXPORT, &a);
		if (!e)
			e = add_names(sn, w, &a);
		if (!e)
			e = add_linkage(sn, w, SES_FIND_IMPORT, &a);
		if (!e && !atomic_load(&p->stop))
			e = add_strings(sn, w, &a);
	}
	arena_fini(&a);
	if (!e && atomic_load(&p->stop))
		e = err_new(ERR_CANCELLED, "cancelled");
	struct err *why = ses_index_end(w, state, !e);
	if (!e)
		return why;
	err_free(why);
	return e;
}

/* A stamp of now that the snapshot is known to be as new as; 0 when something newer is there. */
static int64_t stamp_for(struct ses_project *p, struct ses *s, const uint8_t sha256[32])
{
	struct edits_state st = {0};
	struct edits_view *view = NULL;
	int64_t stamp = p->store ? store_stamp_ns(p->store, sha256) : 0;
	struct err *e = stamp ? ses_refresh(s) : NULL;
	if (!e && stamp)
		e = store_get_state(p->store, sha256, &st, &view);
	edits_view_unref(view);
	struct ses_snap *sn = ses_snap_get(s);
	bool is_newest = !e && st.image_gen == sn->gen;
	ses_snap_put(sn);
	err_free(e);
	return is_newest ? stamp : 0;
}

struct err *ses_project_index_one(struct ses_project *p, struct ses *s, bool *ret_made)
{
	uint8_t sha256[32];
	if (!ses_get_sha256(s, sha256))
		return err_new(ERR_STALE, "%s: is still being identified", ses_path(s));
	int64_t stamp = stamp_for(p, s, sha256);
	struct ses_snap *sn = ses_snap_get(s);
	uint64_t edit_rev = sn->edits ? edits_view_state(sn->edits)->edit_rev : 0;
	/* The image's length too: a store that was emptied begins its generations anew. */
	const struct ses_index_state want[SES_INDEX_PART_COUNT] = {
		[SES_INDEX_IMAGE] = {sn->gen, image_file_len(sn->im) << 8 | IMAGE_ENGINE_VERSION, stamp},
		[SES_INDEX_EDITS] = {0, edit_rev, stamp},
	};
	struct err *e = NULL;
	for (int i = 0; i < SES_INDEX_PART_COUNT && !e; i++) {
		enum ses_index_part part = (enum ses_index_part)i;
		struct ses_index_state has;
		bool is_there = ses_index_get(p->index, sha256, part, &has);
		/* Without the target's bytes there are no strings; what was found when there were is better. */
		bool holds = is_there && ((has.gen == want[i].gen && has.rev == want[i].rev) || (part == SES_INDEX_IMAGE && ses_is_absent(s)));
		*ret_made = *ret_made || !holds;
		if (!holds)
			e = write_part(p, sn, sha256, part, &want[i]);
		else if (has.stamp_ns != stamp)
			e = ses_index_touch(p->index, sha256, part, stamp);
	}
	ses_snap_put(sn);
	return e;
}

/* --- finding --- */

struct err *ses_project_find(struct ses_project *p, const struct ses_call *call, struct ses_find_ask *ask, struct arena *a,
			     struct ses_find **ret)
{
	struct ses_index_hit *hits;
	struct err *e = ses_index_find(p->index, call, ask, a, &hits);
	struct ses_find *out = e ? NULL : ARENA_ARRAY(a, struct ses_find, (size_t)ask->cnt + 1);
	if (!out)
		return e ? e : &err_nomem;
	uint32_t n = 0, binary = UINT32_MAX;
	const uint8_t *of = NULL;
	for (uint32_t i = 0; i < ask->cnt; i++) {
		const struct ses_index_hit *h = &hits[i];
		if (!of || memcmp(of, h->sha256, 32)) {
			of = h->sha256;
			binary = ses_project_of_hash(p, of);
		}
		if (binary == UINT32_MAX)
			continue; /* a slot that is about to be given up */
		out[n++] = (struct ses_find){.binary = binary, .kind = h->row.kind, .addr = h->row.va, .text = h->row.text,
					     .readable = h->row.readable, .version = h->row.version, .library = h->row.library};
	}
	ask->cnt = n;
	*ret = out;
	return NULL;
}

uint64_t ses_project_find_cnt(struct ses_project *p, uint32_t kinds)
{
	return ses_index_row_cnt(p->index, kinds ? kinds : UINT32_MAX);
}

/* --- from an import to who exports it --- */

struct import { struct ses_text name, version, library; };

static bool import_at(struct ses_snap *sn, uint64_t va, struct import *ret)
{
	uint32_t loc = space_loc(sn->space, va), cnt;
	if (loc == LOC_NONE)
		return false;
	const struct image_import *imp = image_import_at(sn->im, loc);
	if (!imp) { /* a function that only jumps to one */
		uint32_t func = image_func_starting(sn->im, loc);
		const struct image_func *f = image_funcs(sn->im, &cnt);
		if (func < cnt && f[func].thunk_to != LOC_NONE)
			imp = image_import_at(sn->im, f[func].thunk_to);
	}
	const struct image_symbol *s = image_symbols(sn->im, &cnt);
	if (!imp || imp->symbol >= cnt)
		return false;
	struct image_version v = {0};
	(void)image_version(sn->im, s[imp->symbol].version, &v);
	*ret = (struct import){ses_pool(sn, s[imp->symbol].name), ses_pool(sn, v.version), ses_pool(sn, v.library)};
	return ret->name.len != 0;
}

static bool text_is(struct ses_text t, const char *s)
{
	return t.len == strlen(s) && !memcmp(t.s, s, t.len);
}

static bool same_text(struct ses_text x, struct ses_text y)
{
	return x.len == y.len && !memcmp(x.s, y.s, x.len);
}

/* Whether the project's binary is the library of that name: by the last part of its path, which the dynamic linker goes by. */
static bool is_library(struct ses_project *p, uint32_t i, struct ses_text name)
{
	pthread_mutex_lock(&p->lock);
	const char *slash = strrchr(p->bins[i].path, '/');
	const char *base = slash ? slash + 1 : p->bins[i].path;
	bool is_it = name.len && (text_is(name, base) || text_is(name, p->bins[i].label));
	/* libz.so.1 is libz.so.1.2.13 when that is what the project has. */
	if (!is_it && name.len && strlen(base) > name.len && base[name.len] == '.')
		is_it = !memcmp(base, name.s, name.len);
	pthread_mutex_unlock(&p->lock);
	return is_it;
}

static unsigned provider_score(struct ses_project *p, struct ses_snap *sn, const struct import *im, struct ses_text version, uint32_t i)
{
	uint32_t cnt;
	const struct image_str *needed = image_needed(sn->im, &cnt);
	unsigned score = is_library(p, i, im->library) ? 4000 : 0;
	for (uint32_t k = 0; k < cnt && k < 1000 && score < 1000; k++) {
		if (is_library(p, i, ses_pool(sn, needed[k])))
			score += 2000 - k;
	}
	return score + (im->version.len && same_text(im->version, version) ? 1 : 0);
}

/* The likeliest first. */
struct ranking { struct ses_providers out; unsigned *scores; uint32_t cap; };

static void rank(struct ranking *r, const struct ses_provider *x, unsigned score)
{
	uint32_t at = r->out.cnt < r->cap ? r->out.cnt++ : r->cap;
	for (; at && r->scores[at - 1] < score; at--) {
		if (at == r->cap)
			continue;
		r->scores[at] = r->scores[at - 1];
		r->out.list[at] = r->out.list[at - 1];
	}
	if (at == r->cap)
		return;
	r->scores[at] = score;
	r->out.list[at] = *x;
}

/* A binary that is open but not in the index yet. */
static void rank_open(struct ses_project *p, const struct ses_far_ask *ask, const struct import *im, uint32_t b, struct arena *a,
		      struct ranking *r)
{
	pthread_mutex_lock(&p->lock);
	struct ses *s = p->bins[b].is_indexed || p->bins[b].state == SES_BINARY_BEFORE ? NULL : p->bins[b].ses;
	pthread_mutex_unlock(&p->lock);
	struct ses_snap *sn = s && b != ask->binary ? ses_snap_get(s) : NULL;
	uint32_t cnt = 0;
	const struct image_symbol *syms = sn ? image_symbols(sn->im, &cnt) : NULL;
	for (uint32_t i = 0; i < cnt; i++) {
		struct image_version v = {0};
		struct ses_text name = ses_pool(sn, syms[i].name);
		if (!(syms[i].flags & IMAGE_SYM_EXPORT) || syms[i].loc == LOC_NONE || !same_text(name, im->name))
			continue;
		(void)image_version(sn->im, syms[i].version, &v);
		struct ses_text version = ses_pool(sn, v.version);
		unsigned score = provider_score(p, ask->snap, im, version, b);
		version.s = arena_strndup(a, version.s, version.len);
		if (version.s)
			rank(r, &(struct ses_provider){b, space_va(sn->space, syms[i].loc), im->name, version}, score);
	}
	ses_snap_put(sn);
}

struct err *ses_project_providers(struct ses_project *p, const struct ses_far_ask *ask, struct arena *a, struct ses_providers *ret)
{
	struct import im;
	struct ses_index_hit *hits;
	uint32_t cnt, bin_cnt = ses_project_cnt(p);
	if (!import_at(ask->snap, ask->va, &im))
		return &err_not_found;
	struct err *e = ses_index_link(p->index, SES_FIND_EXPORT, im.name, a, &hits, &cnt);
	struct ranking r = {.cap = e ? 0 : cnt + bin_cnt};
	r.out.list = ARENA_ARRAY(a, struct ses_provider, (size_t)r.cap + 1);
	r.scores = ARENA_ARRAY(a, unsigned, (size_t)r.cap + 1);
	if (e || !r.out.list || !r.scores)
		return e ? e : &err_nomem;
	for (uint32_t k = 0; k < cnt; k++) {
		uint32_t b = ses_project_of_hash(p, hits[k].sha256);
		struct ses_provider x = {b, hits[k].row.va, hits[k].row.text, hits[k].row.version};
		if (b != UINT32_MAX && b != ask->binary)
			rank(&r, &x, provider_score(p, ask->snap, &im, x.version, b));
	}
	for (uint32_t b = 0; b < bin_cnt; b++)
		rank_open(p, ask, &im, b, a, &r);
	*ret = r.out;
	return NULL;
}

/* --- and back --- */

/* What is being listed; `out` has room for ask->limit. */
struct far {
	struct ses_project *p;
	const struct ses_call *call;
	const struct ses_far_ask *ask;
	struct arena *arena;
	struct ses_far_list out;
};

/* References of one binary to its import at va. */
static struct err *far_refs(struct far *f, uint32_t binary, uint64_t va, struct ses_page *page, struct ses_xref **ret)
{
	struct ses *s;
	struct err *e = ses_project_get(f->p, binary, &s);
	if (e)
		return e;
	struct ses_snap *sn = ses_snap_get(s);
	struct ses_xref_ask ask = {.va = va};
	*page = (struct ses_page){.limit = MAX(f->ask->limit - f->out.cnt, 1)};
	e = ses_xrefs(sn, f->call, &ask, page, f->arena, ret);
	/* Results borrow from the snapshot. */
	for (uint32_t i = 0; !e && i < page->cnt; i++) {
		struct ses_xref *x = &(*ret)[i];
		x->func.s = arena_strndup(f->arena, x->func.s, x->func.len);
		x->text.s = arena_strndup(f->arena, x->text.s, x->text.len);
		if (!x->func.s || !x->text.s)
			e = &err_nomem;
	}
	ses_snap_put(sn);
	return e;
}

static void far_put(struct far *f, uint32_t binary, const struct ses_xref *x)
{
	if (f->out.cnt < f->ask->limit)
		f->out.list[f->out.cnt++] = (struct ses_far_xref){binary, *x};
}

/* One import elsewhere: its references, or itself when the code does not use it or the binary cannot be opened. */
static struct err *far_add(struct far *f, const struct ses_index_hit *h)
{
	uint32_t b = ses_project_of_hash(f->p, h->sha256);
	struct ses_xref *x;
	struct ses_page page;
	if (b == UINT32_MAX || b == f->ask->binary)
		return NULL;
	struct err *e = far_refs(f, b, h->row.va, &page, &x);
	if (e && (e->kind == ERR_TIMEOUT || e->kind == ERR_CANCELLED || e->kind == ERR_NOMEM))
		return e;
	if (e || !page.total) {
		struct ses_xref own = {.from = h->row.va, .to = f->ask->va, .kind = "import", .func = h->row.text, .text = h->row.text};
		err_free(e);
		f->out.total++;
		far_put(f, b, &own);
		return NULL;
	}
	for (uint32_t i = 0; i < page.cnt; i++)
		far_put(f, b, &x[i]);
	f->out.total += page.total;
	return NULL;
}

/* The same name in an older version at the same place. */
static bool is_listed(struct ses_snap *sn, const struct image_symbol *s, uint32_t i)
{
	for (uint32_t k = 0; k < i; k++) {
		if (s[k].loc == s[i].loc && s[k].flags & IMAGE_SYM_EXPORT && same_text(ses_pool(sn, s[k].name), ses_pool(sn, s[i].name)))
			return true;
	}
	return false;
}

struct err *ses_project_xrefs(struct ses_project *p, const struct ses_call *call, const struct ses_far_ask *ask, struct arena *a,
			      struct ses_far_list *ret)
{
	struct far f = {.p = p, .call = call, .ask = ask, .arena = a};
	struct ses_snap *sn = ask->snap;
	uint32_t sym_cnt, loc = space_loc(sn->space, ask->va);
	const struct image_symbol *s = image_symbols(sn->im, &sym_cnt);
	f.out.list = ARENA_ARRAY(a, struct ses_far_xref, (size_t)ask->limit + 1);
	struct err *e = f.out.list ? NULL : &err_nomem;
	for (uint32_t i = 0; i < sym_cnt && !e && loc != LOC_NONE; i++) {
		struct ses_index_hit *hits;
		uint32_t hit_cnt = 0;
		if (s[i].loc != loc || !(s[i].flags & IMAGE_SYM_EXPORT) || is_listed(sn, s, i))
			continue;
		e = ses_index_link(p->index, SES_FIND_IMPORT, ses_pool(sn, s[i].name), a, &hits, &hit_cnt);
		for (uint32_t k = 0; k < hit_cnt && !e; k++)
			e = far_add(&f, &hits[k]);
	}
	*ret = f.out;
	return e;
}
