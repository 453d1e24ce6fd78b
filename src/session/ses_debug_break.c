/* SPDX-License-Identifier: Apache-2.0 */
/* Breakpoints as people say them, and what they come to in the target that runs. */
#include "session/ses_debug_int.h"

#include <stdlib.h>
#include <string.h>

enum { LINES_PER_FUNC = 1 << 20 };

void ses_debug_wants_fini(struct ses_debug *s)
{
	for (size_t i = 0; i < s->wants.cnt; i++) {
		free(s->wants.data[i].what);
		free(s->wants.data[i].cond);
	}
	VEC_FREE(&s->wants);
}

struct debug_want *ses_debug_want_of(struct ses_debug *s, uint32_t placed)
{
	for (size_t i = 0; i < s->wants.cnt; i++)
		if (s->wants.data[i].placed == placed && placed)
			return &s->wants.data[i];
	return NULL;
}

uint64_t ses_debug_watched(struct ses_debug *s, const struct debug_want *w)
{
	uint8_t bytes[8] = {0};
	uint64_t v = 0;
	size_t got = 0;
	const struct debug_break *k = debug_break_find(s->d, w->placed);
	err_free(k ? debug_mem(s->d, k->va, bytes, MIN(w->len, 8u), &got) : NULL);
	for (size_t i = got; i--;)
		v = v << 8 | bytes[i];
	return v;
}

static struct debug_want *find_want(struct ses_debug *s, uint32_t id)
{
	for (size_t i = 0; i < s->wants.cnt; i++)
		if (s->wants.data[i].id == id)
			return &s->wants.data[i];
	return NULL;
}

/* The lowest address whose code is of that line, of function `func` or (UINT32_MAX) of the file whose name ends so. */
struct line_ask { uint32_t line; const char *file; size_t file_len; };

static bool find_line_in(struct ses_snap *sn, uint32_t func, const struct line_ask *ask, uint64_t *ret)
{
	uint32_t range_cnt;
	bool has = false;
	const struct image_range *r = image_func_ranges(sn->im, func, &range_cnt);
	for (uint32_t i = 0; i < range_cnt; i++) {
		struct image_items it;
		bool more = image_items_from(sn->im, r[i].loc, &it), was = false;
		for (uint32_t n = 0; more && it.loc < r[i].loc + r[i].len && n < LINES_PER_FUNC; n++) {
			struct image_str file;
			uint32_t now;
			bool is = image_line_at(sn->im, it.loc, &file, &now) && now == ask->line && it.kind == IMAGE_CODE;
			if (is && ask->file) {
				struct ses_text t = ses_pool(sn, file);
				is = t.len >= ask->file_len && !memcmp(t.s + t.len - ask->file_len, ask->file, ask->file_len) &&
				     (t.len == ask->file_len || t.s[t.len - ask->file_len - 1] == '/');
			}
			uint64_t va = space_va(sn->space, it.loc);
			if (is && !was && (!has || va < *ret)) {
				*ret = va;
				has = true;
			}
			was = is;
			more = image_items_next(&it);
		}
	}
	return has;
}

static bool find_line(struct ses_snap *sn, const struct line_ask *ask, uint64_t *ret)
{
	uint32_t cnt;
	uint64_t at;
	bool has = false;
	image_funcs(sn->im, &cnt);
	for (uint32_t i = 0; i < cnt; i++)
		if (find_line_in(sn, i, ask, &at) && (!has || at < *ret)) {
			*ret = at;
			has = true;
		}
	return has;
}

/* "main:12", "main:c5" (line 5 of its C), "prog.c:12". */
static struct err *resolve_line(struct ses_debug *s, const char *what, const char *colon, uint64_t *ret)
{
	struct arena a = {0};
	struct ses_call call = ses_debug_call(s);
	bool is_c = colon[1] == 'c', has_lines = image_has_lines(s->sn->im);
	uint32_t line = (uint32_t)strtoul(colon + 1 + is_c, NULL, 10);
	char *name = arena_strndup(&a, what, (size_t)(colon - what));
	uint64_t va = 0;
	struct err *e = name ? ses_resolve(s->sn, name, &va) : &err_nomem;
	uint32_t loc = e ? LOC_NONE : space_loc(s->sn->space, va), func = loc == LOC_NONE ? UINT32_MAX : image_func_at(s->sn->im, loc);
	struct line_ask ask = {.line = line};
	if (e && has_lines && name) {
		ask.file = name;
		ask.file_len = strlen(name);
		if (find_line(s->sn, &ask, ret)) {
			err_free(e);
			e = NULL;
		}
	} else if (!e && func == UINT32_MAX) {
		e = err_new(ERR_NOT_FOUND, "%s: %s is no function", what, name);
	} else if (!e && has_lines && !is_c) {
		if (!find_line_in(s->sn, func, &ask, ret))
			e = err_new(ERR_NOT_FOUND, "%s: no code of %s is of that line", what, name);
	} else if (!e) {
		struct ses_c c;
		e = ses_decompile(s->sn, &call, va, &a, &c);
		if (!e && (!line || line > c.line_cnt))
			e = err_new(ERR_NOT_FOUND, "%s: its C has %u lines", what, c.line_cnt);
		if (!e)
			*ret = ses_c_addr_of(&c, line - 1);
	}
	arena_fini(&a);
	return e;
}

/* In the database; error not_found also without one. */
static struct err *resolve(struct ses_debug *s, const char *what, uint64_t *ret)
{
	const char *colon = strrchr(what, ':');
	if (!s->sn)
		return err_new(ERR_NOT_FOUND, "%s: without a program's file only addresses are known", what);
	if (colon && colon > what && colon[-1] != ':' && strncmp(what, "file:", 5) && colon[1 + (colon[1] == 'c')] >= '0' &&
	    colon[1 + (colon[1] == 'c')] <= '9')
		return resolve_line(s, what, colon, ret);
	return ses_resolve(s->sn, what, ret);
}

/* A live address of `what`: of the database, of another object, or a plain one. False: not yet. */
static struct err *resolve_live(struct ses_debug *s, struct debug_want *w, uint64_t *ret, bool *ret_is_there)
{
	char *end;
	*ret_is_there = false;
	struct err *e = w->has_va ? NULL : resolve(s, w->what, &w->va);
	/* An address that the database has not is one of the target's own. */
	if (!e && !ses_debug_is_in_target(s->sn, w->va))
		e = err_new(ERR_NOT_FOUND, "%s: no such place", w->what);
	if (!e) {
		w->has_va = true;
		*ret = w->va + s->slide;
		*ret_is_there = s->has_slide;
		return NULL;
	}
	if (s->d->state == DEBUG_STOPPED) {
		struct err *e2 = ses_debug_objects(s);
		if (e2) {
			err_free(e);
			return e2;
		}
		*ret_is_there = ses_debug_find_symbol(s, w->what, ret);
	}
	if (!*ret_is_there && !strncmp(w->what, "0x", 2)) {
		*ret = strtoull(w->what, &end, 16);
		*ret_is_there = !*end && s->d->state == DEBUG_STOPPED;
		if (!*end) {
			err_free(e);
			e = NULL;
		}
	}
	if (*ret_is_there) {
		err_free(e);
		e = NULL;
	}
	return e;
}

static struct err *place_one(struct ses_debug *s, struct debug_want *w)
{
	uint64_t live;
	bool is_there;
	if (w->placed || w->is_off)
		return NULL;
	struct err *e = resolve_live(s, w, &live, &is_there);
	if (e || !is_there || s->d->state != DEBUG_STOPPED)
		return e;
	return err_prefix(debug_break_add(s->d, (enum debug_break_kind)w->kind, live, w->len, &w->placed), "%s", w->what);
}

/* While something waits for an object the loader stops where it tells debuggers of each. */
static struct err *watch_loads(struct ses_debug *s, bool is_wanted)
{
	uint64_t va;
	uint32_t id = s->load_break;
	if (s->d->state != DEBUG_STOPPED || is_wanted == (id != 0))
		return NULL;
	s->load_break = 0;
	if (!is_wanted)
		return debug_break_del(s->d, id);
	return debug_load_place(s->d, &va) ? debug_break_add(s->d, DEBUG_BREAK_SOFT, va, 1, &s->load_break) : NULL;
}

struct err *ses_debug_place_all(struct ses_debug *s, unsigned *ret_left)
{
	struct err *e = NULL;
	size_t cnt = 0;
	_cleanup_free_ struct debug_asked *asked = alloc_array(s->wants.cnt + 1, sizeof(*asked));
	_cleanup_free_ struct debug_want **whose = alloc_array(s->wants.cnt + 1, sizeof(struct debug_want *));
	*ret_left = 0;
	if (!asked || !whose)
		return &err_nomem;
	for (size_t i = 0; i < s->wants.cnt; i++) {
		struct debug_want *w = &s->wants.data[i];
		uint64_t live;
		bool is_there = false;
		if (w->placed || w->is_off)
			continue;
		e = resolve_live(s, w, &live, &is_there);
		/* What no loaded object has is waited for. */
		if (e && e->kind != ERR_NOT_FOUND)
			return e;
		err_free(e);
		is_there &= s->d->state == DEBUG_STOPPED;
		*ret_left += !is_there;
		if (is_there) {
			asked[cnt] = (struct debug_asked){.kind = (enum debug_break_kind)w->kind, .va = live, .len = w->len};
			whose[cnt++] = w;
		}
	}
	e = debug_breaks_add(s->d, asked, cnt);
	for (size_t i = 0; i < cnt; i++) {
		whose[i]->placed = e ? 0 : asked[i].id;
		/* Of another process nothing is known yet. */
		if (whose[i]->placed && whose[i]->kind >= DEBUG_WATCH_WRITE)
			whose[i]->is = ses_debug_watched(s, whose[i]);
		struct err *why = e ? NULL : err_prefix(asked[i].err, "%s", whose[i]->what);
		if (!e)
			e = why;
		else
			err_free(why);
	}
	return e ? e : watch_loads(s, *ret_left != 0);
}

void ses_debug_loaded(struct ses_debug *s)
{
	unsigned left;
	s->has_objects = false;
	/* What goes wrong goes wrong again, and is told, when the target has stopped. */
	if (debug_is_loaded(s->d))
		err_free(ses_debug_place_all(s, &left));
}

void ses_debug_unplace_all(struct ses_debug *s)
{
	for (size_t i = 0; i < s->wants.cnt; i++)
		s->wants.data[i].placed = 0;
	s->d->breaks.cnt = 0;
	s->load_break = 0;
}

struct err *ses_debug_want(struct ses_debug *s, const char *what, const char *cond, uint8_t kind, bool is_temp, uint32_t *ret_id)
{
	struct debug_want w = {.id = s->last_want + 1, .what = strdup(what), .cond = cond ? strdup(cond) : NULL, .kind = kind,
			       .is_temp = is_temp, .len = 1};
	struct err *e = !w.what || (cond && !w.cond) ? &err_nomem : place_one(s, &w);
	/* A name that nothing has yet may come with a library; a line or a malformed address never will. */
	bool may_come = e && e->kind == ERR_NOT_FOUND && !strpbrk(what, ":+*?[]");
	if (may_come) {
		err_free(e);
		e = watch_loads(s, true);
	}
	if (!e && !VEC_PUSH(&s->wants, w))
		e = &err_nomem;
	if (e) {
		free(w.what);
		free(w.cond);
		return e;
	}
	*ret_id = ++s->last_want;
	return NULL;
}

struct err *ses_debug_unwant(struct ses_debug *s, uint32_t id)
{
	struct debug_want *w = find_want(s, id);
	if (!w)
		return err_new(ERR_NOT_FOUND, "no breakpoint has the number %u", id);
	struct err *e = w->placed ? debug_break_del(s->d, w->placed) : NULL;
	if (e)
		return e;
	free(w->what);
	free(w->cond);
	size_t at = (size_t)(w - s->wants.data);
	memmove(w, w + 1, (s->wants.cnt - at - 1) * sizeof(*w));
	s->wants.cnt--;
	return NULL;
}

int ses_debug_break_at(const struct ses_debug *s, uint64_t va)
{
	for (size_t i = 0; i < s->wants.cnt; i++)
		if (s->wants.data[i].has_va && s->wants.data[i].va == va && s->wants.data[i].kind <= DEBUG_BREAK_HARD)
			return s->wants.data[i].placed ? 1 : 2;
	return 0;
}

size_t ses_debug_breaks(const struct ses_debug *s, uint64_t *out, size_t cap)
{
	size_t cnt = 0;
	for (size_t i = 0; i < s->wants.cnt && cnt < cap; i++)
		if (s->wants.data[i].has_va && s->wants.data[i].kind <= DEBUG_BREAK_HARD)
			out[cnt++] = s->wants.data[i].va;
	return cnt;
}

struct err *ses_debug_break_toggle(struct ses_debug *s, uint64_t va)
{
	char what[24];
	uint32_t id;
	for (size_t i = 0; i < s->wants.cnt; i++)
		if (s->wants.data[i].has_va && s->wants.data[i].va == va && s->wants.data[i].kind <= DEBUG_BREAK_HARD)
			return ses_debug_unwant(s, s->wants.data[i].id);
	snprintf(what, sizeof(what), "0x%llx", (unsigned long long)va);
	return ses_debug_want(s, what, NULL, DEBUG_BREAK_SOFT, false, &id);
}

struct err *ses_debug_place(struct ses_debug *s, const char *what, uint64_t *ret_live)
{
	struct debug_want w = {.what = (char *)what};
	bool is_there;
	if (*what == '$' || *what == '*' || *what == '(')
		return ses_debug_eval(s, what + (*what == '*'), ret_live);
	struct err *e = resolve_live(s, &w, ret_live, &is_there);
	return e || is_there ? e : err_new(ERR_NOT_FOUND, "%s: nothing that runs has it", what);
}
