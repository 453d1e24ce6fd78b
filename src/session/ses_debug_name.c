/* SPDX-License-Identifier: Apache-2.0 */
/* Places of a running target: in the database, or in the files of what else is loaded, where those are the same here. */
#include "session/ses_debug_int.h"

#include "session/ops.h"

#include <stdlib.h>
#include <string.h>

void ses_debug_object_fini(struct debug_object *o)
{
	free(o->path);
	free(o->symbols);
	fmt_bin_free(o->bin);
	file_close(o->file);
	*o = (struct debug_object){0};
}

static int by_va(const void *a, const void *b)
{
	const struct debug_symbol *x = a, *y = b;
	return x->va != y->va ? (x->va > y->va) - (x->va < y->va) : (x->len < y->len) - (x->len > y->len);
}

static void read_symbols(struct debug_object *o)
{
	o->symbols = alloc_array(o->bin->symbols.cnt, sizeof(*o->symbols));
	for (size_t i = 0; o->symbols && i < o->bin->symbols.cnt; i++) {
		const struct fmt_symbol *y = &o->bin->symbols.data[i];
		if ((y->type == FMT_SYM_FUNC || y->type == FMT_SYM_IFUNC || y->type == FMT_SYM_OBJECT) && !y->is_undefined && y->va && y->name.len)
			o->symbols[o->symbol_cnt++] = (struct debug_symbol){y->va, y->size_len, y->name.s, y->name.len};
	}
	if (o->symbol_cnt)
		qsort(o->symbols, o->symbol_cnt, sizeof(*o->symbols), by_va);
}

/* Whether the object in the target begins as the file here does: headers and, in nearly every file, the build-id. */
static bool is_same(struct ses_debug *s, const struct debug_object *o)
{
	const struct fmt_segment *first = o->bin->segments.cnt ? &o->bin->segments.data[0] : NULL;
	uint8_t live[1024];
	size_t got, len = first ? MIN((uint64_t)sizeof(live), first->file_len) : 0;
	if (!len || first->file_off + len > o->file->len)
		return false;
	struct err *e = debug_mem(s->d, first->va + o->base, live, len, &got);
	bool is_fine = !e && got == len && !memcmp(live, o->file->data + first->file_off, len);
	err_free(e);
	return is_fine;
}

static bool open_file(struct debug_object *o, const char *path)
{
	struct err *e = file_open(path, &o->file);
	if (!e)
		e = fmt_open(o->file->data, o->file->len, &o->bin);
	bool is_fine = !e;
	err_free(e);
	return is_fine;
}

/* Without its file; names then are offsets in it. */
static void forget_file(struct debug_object *o)
{
	fmt_bin_free(o->bin);
	file_close(o->file);
	o->bin = NULL;
	o->file = NULL;
}

static bool is_listed(const struct ses_debug *s, const struct debug_module *m)
{
	for (size_t k = 0; k < s->objects.cnt; k++)
		if (s->objects.data[k].base == m->base && !strcmp(s->objects.data[k].path, m->name))
			return true;
	return false;
}

/* Those that were not listed before, with the file at their path here. *ret_first: the first of them. */
static struct err *add_objects(struct ses_debug *s, size_t *ret_first)
{
	*ret_first = s->objects.cnt;
	for (size_t i = 0; i < s->d->modules.cnt; i++) {
		const struct debug_module *m = &s->d->modules.data[i];
		if (is_listed(s, m))
			continue;
		struct debug_object o = {.path = strdup(m->name), .base = m->base};
		if (!o.path)
			return &err_nomem;
		if (*o.path == '/' && !open_file(&o, o.path))
			forget_file(&o);
		if (!VEC_PUSH(&s->objects, o)) {
			ses_debug_object_fini(&o);
			return &err_nomem;
		}
	}
	return NULL;
}

/* Where the headers of each lie in memory, all at once. */
static struct err *read_headers(struct ses_debug *s, size_t first)
{
	struct err *e = NULL;
	for (size_t i = first; i < s->objects.cnt && !e;) {
		uint64_t vas[64];
		size_t cnt = 0;
		for (; i < s->objects.cnt && cnt < ARRAY_LEN(vas); i++) {
			const struct debug_object *o = &s->objects.data[i];
			bool has_va = o->bin && o->bin->segments.cnt;
			if (*o->path == '/')
				vas[cnt++] = o->base + (has_va ? o->bin->segments.data[0].va : 0);
		}
		e = debug_pages(s->d, vas, cnt);
	}
	return e;
}

/* The files of those that are not the same here, from there. */
static struct err *fetch_objects(struct ses_debug *s, size_t first)
{
	size_t cnt = 0, all = s->objects.cnt - first;
	_cleanup_free_ const char **paths = alloc_array(all + 1, sizeof(*paths));
	_cleanup_free_ const char **locals = alloc_array(all + 1, sizeof(*locals));
	if (!paths || !locals)
		return &err_nomem;
	for (size_t i = first; i < s->objects.cnt; i++)
		if (!s->objects.data[i].bin && *s->objects.data[i].path == '/')
			paths[cnt++] = s->objects.data[i].path;
	struct err *e = ses_debug_fetch(s, paths, cnt, locals);
	cnt = 0;
	for (size_t i = first; i < s->objects.cnt && !e; i++) {
		struct debug_object *o = &s->objects.data[i];
		if (o->bin || *o->path != '/')
			continue;
		const char *local = locals[cnt++];
		if (local && (!open_file(o, local) || !is_same(s, o)))
			forget_file(o);
	}
	return e;
}

struct err *ses_debug_objects(struct ses_debug *s)
{
	size_t first;
	struct err *e = s->has_objects ? NULL : debug_modules(s->d);
	if (e || s->has_objects)
		return e;
	e = add_objects(s, &first);
	if (!e && first < s->objects.cnt)
		e = read_headers(s, first);
	for (size_t i = first; i < s->objects.cnt && !e; i++)
		if (s->objects.data[i].bin && !is_same(s, &s->objects.data[i]))
			forget_file(&s->objects.data[i]);
	if (!e && first < s->objects.cnt)
		e = fetch_objects(s, first);
	for (size_t i = first; i < s->objects.cnt; i++)
		if (s->objects.data[i].bin)
			read_symbols(&s->objects.data[i]);
	s->has_objects = !e;
	return e;
}

bool ses_debug_is_in_target(const struct ses_snap *sn, uint64_t va)
{
	int seg = space_seg_of_va(sn->space, va);
	return seg >= 0 && !sn->space->segs[seg].is_extern;
}

bool ses_debug_to_va(const struct ses_debug *s, uint64_t live, uint64_t *ret)
{
	if (!s->sn || !s->has_slide || !ses_debug_is_in_target(s->sn, live - s->slide))
		return false;
	*ret = live - s->slide;
	return true;
}

/* The database's own description may come without the file's tables. */
static const struct fmt_bin *own_bin(struct ses_debug *s)
{
	if (!s->own.path && s->own_path) {
		s->own.path = strdup(s->own_path);
		if (s->own.path && !open_file(&s->own, s->own_path))
			forget_file(&s->own);
	}
	return s->own.bin;
}

bool ses_debug_is_own(struct ses_debug *s)
{
	if (!own_bin(s))
		return true;
	s->own.base = s->slide;
	return is_same(s, &s->own);
}

static struct debug_object *object_at(struct ses_debug *s, uint64_t live)
{
	if (s->d->state == DEBUG_STOPPED)
		err_free(ses_debug_objects(s));
	struct debug_object *best = NULL;
	for (size_t i = 0; i < s->objects.cnt; i++) {
		struct debug_object *o = &s->objects.data[i];
		const struct fmt_segment *seg = o->bin ? fmt_segment_at(o->bin, live - o->base) : NULL;
		if (seg && !fmt_is_extern(o->bin, seg))
			return o;
		/* One whose file is not here reaches as far as anybody knows. */
		if (!o->bin && o->base && live >= o->base && live - o->base < 64 << 20 && (!best || o->base > best->base))
			best = o;
	}
	return best;
}

static void put_symbol(const struct debug_object *o, uint64_t va, struct buf *out)
{
	uint32_t lo = 0, hi = o->symbol_cnt;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (o->symbols[mid].va <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	const struct debug_symbol *y = lo ? &o->symbols[lo - 1] : NULL;
	if (y && (!y->len || va - y->va < y->len)) {
		buf_add_ch(out, '!');
		ops_escape(out, y->name, y->name_len);
		va -= y->va;
	}
	if (va)
		buf_printf(out, "+0x%llx", (unsigned long long)va);
}

void ses_debug_put_where(struct ses_debug *s, uint64_t live, struct buf *out)
{
	uint64_t va;
	if (ses_debug_to_va(s, live, &va)) {
		struct arena a = {0};
		struct ses_text t = ses_where(s->sn, va, &a);
		ops_escape(out, t.s, t.len);
		arena_fini(&a);
		return;
	}
	const struct debug_object *o = object_at(s, live);
	if (!o)
		return;
	const char *slash = strrchr(o->path, '/');
	ops_escape(out, slash ? slash + 1 : o->path, strlen(slash ? slash + 1 : o->path));
	put_symbol(o, live - o->base, out);
}

bool ses_debug_find_symbol(struct ses_debug *s, const char *name, uint64_t *ret_live)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < s->objects.cnt; i++) {
		const struct debug_object *o = &s->objects.data[i];
		for (uint32_t k = 0; k < o->symbol_cnt; k++)
			if (o->symbols[k].name_len == len && !memcmp(o->symbols[k].name, name, len)) {
				*ret_live = o->symbols[k].va + o->base;
				return true;
			}
	}
	return false;
}

const struct fmt_bin *ses_debug_bin(void *ctx, uint64_t live, uint64_t *ret_base)
{
	struct ses_debug *s = ctx;
	uint64_t va;
	if (ses_debug_to_va(s, live, &va)) {
		*ret_base = s->slide;
		return own_bin(s);
	}
	const struct debug_object *o = object_at(s, live);
	if (!o || !o->bin)
		return NULL;
	*ret_base = o->base;
	return o->bin;
}

bool ses_debug_source(const struct ses_debug *s, uint64_t va, struct ses_text *ret_file, uint32_t *ret_line)
{
	struct image_str file;
	uint32_t loc = s->sn ? space_loc(s->sn->space, va) : LOC_NONE;
	if (loc == LOC_NONE || !image_line_at(s->sn->im, loc, &file, ret_line) || !*ret_line)
		return false;
	*ret_file = ses_pool(s->sn, file);
	return true;
}
