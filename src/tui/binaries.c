/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include "session/project.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/*
 * A project in the workbench: one binary is shown at a time and all views are of it; going to another puts its session, and
 * the place one was at in it, in place of them. The way back goes over binaries like over addresses.
 */
#define FOUND_MAX 100000u /* rows of a list over the whole project */
#define PALETTE_MAX 500u
#define FAR_MAX 10000u

static struct ses_text text_of(const char *s)
{
	return (struct ses_text){s, (uint32_t)strlen(s)};
}

/* --- from one binary to another --- */

void tui_place_save(struct tui *t)
{
	if (!t->project || !t->listing.is_placed)
		return;
	bool is_hex = t->main_view == TUI_V_HEX;
	struct ses_place p = {.view = is_hex ? TUI_V_HEX : TUI_V_LISTING, .va = is_hex ? t->hex.va : t->listing.va,
			      .top_va = is_hex ? t->hex.top : t->listing.top_va, .sub = t->listing.sub, .top_sub = t->listing.top_sub};
	uint64_t va = t->main_view == TUI_V_GRAPH ? t->graph.va : t->c.va;
	if (t->main_view == TUI_V_GRAPH || t->main_view == TUI_V_C)
		p = (struct ses_place){.view = TUI_V_LISTING, .va = va, .top_va = va, .sub = SES_SUB_ITEM};
	ses_project_put_place(t->project, t->bin, &p);
}

/* Where a person was in the binary; it comes from a file, so it is looked at. */
static void place_restore(struct tui *t)
{
	struct ses_place p;
	if (!ses_project_get_place(t->project, t->bin, &p) || !ses_is_mapped(t->snap, p.va))
		return;
	struct tui_place at = {.view = TUI_V_LISTING, .va = p.va, .top_va = p.top_va, .sub = p.sub, .top_sub = p.top_sub, .bin = t->bin};
	if (p.view != TUI_V_HEX && !ses_is_mapped(t->snap, p.top_va))
		return;
	if (p.view == TUI_V_HEX)
		at.view = TUI_V_HEX;
	tui_restore(t, &at);
}

static void tell_state(struct tui *t)
{
	struct ses_binary b;
	struct err *e = ses_project_binary(t->project, t->bin, &t->frame_arena, &b);
	if (!e && *b.why)
		tui_say(t, b.state != SES_BINARY_BEFORE, "%s %s", b.label, b.why);
	err_free(e);
}

static void show(struct tui *t, struct ses *s, uint32_t bin)
{
	tui_place_save(t);
	tui_take_session(t, s);
	t->bin = bin;
	ses_project_put_shown(t->project, bin);
	place_restore(t);
	tell_state(t);
}

bool tui_show_binary(struct tui *t, uint32_t bin)
{
	struct ses *s;
	struct err *e = ses_project_get(t->project, bin, &s);
	if (e) {
		tui_say_err(t, e);
		return false;
	}
	if (bin != t->bin)
		show(t, s, bin);
	return true;
}

struct open_job {
	struct tui_job job;
	struct ses_project *project;
	uint32_t bin;
	bool has_va;
	uint64_t va;
	bool has_off, to_c;       /* va is a place of the file, behind the instruction that is meant */
	struct ses *ses;
	struct err *err;
};

static void open_run(struct tui_job *j)
{
	struct open_job *o = (struct open_job *)j;
	o->err = ses_project_get(o->project, o->bin, &o->ses);
}

static void open_fini(struct tui_job *j)
{
	err_free(((struct open_job *)j)->err);
}

/* The instruction before a place of the file, by its address; false: it is mapped nowhere. */
static bool insn_before(struct tui *t, uint64_t off, uint64_t *ret)
{
	char text[40];
	struct ses_head *lines;
	uint32_t cnt = 0;
	struct ses_call call = tui_call(t, 0);
	snprintf(text, sizeof(text), "file:0x%llx", (unsigned long long)off - 1);
	struct err *e = off ? ses_resolve(t->snap, text, ret) : &err_not_found;
	struct ses_at at = {.va = *ret, .sub = SES_SUB_ITEM, .count = 1};
	bool is_there = !e;
	if (!e)
		e = ses_heads(t->snap, &call, &at, &t->frame_arena, &lines, &cnt);
	if (!e && cnt && lines[0].va <= *ret)
		*ret = lines[0].va;
	err_free(e);
	return is_there;
}

/* To a place of the file that is shown; the way back was remembered. */
static void go_off(struct tui *t, uint64_t off, bool to_c)
{
	uint64_t va;
	if (!insn_before(t, off, &va)) {
		tui_say(t, true, "file:0x%llx is mapped nowhere in this file", (unsigned long long)off);
		return;
	}
	t->focus_functions = false;
	t->main_view = to_c && tui_c_can(t, va) ? TUI_V_C : TUI_V_LISTING;
	if (to_c && t->main_view != TUI_V_C)
		tui_say(t, false, "no function is known there (yet), so there is no C");
	tui_view_ops(t->main_view)->go(t, va);
}

static void arrive(struct tui *t, struct ses *s, const struct open_job *o)
{
	*t->message = '\0'; /* it is not being read any more */
	tui_push_past(t);
	t->future.cnt = 0;
	show(t, s, o->bin);
	if (o->has_off)
		go_off(t, o->va, o->to_c);
	if (!o->has_va)
		return;
	if (!ses_is_mapped(t->snap, o->va)) {
		tui_say(t, true, "0x%llx is not mapped", (unsigned long long)o->va);
		return;
	}
	t->focus_functions = false;
	t->main_view = TUI_V_LISTING;
	tui_view_ops(TUI_V_LISTING)->go(t, o->va);
}

static void open_done(struct tui *t, struct tui_job *j)
{
	struct open_job *o = (struct open_job *)j;
	t->open_job = NULL;
	if (o->err)
		tui_say_err(t, take_ptr(o->err));
	else
		arrive(t, o->ses, o);
}

static void go_there(struct tui *t, struct open_job ask)
{
	uint32_t bin = ask.bin;
	if (ses_project_is_known(t->project, bin)) {
		open_run(&ask.job);
		if (ask.err)
			tui_say_err(t, ask.err);
		else
			arrive(t, ask.ses, &ask);
		return;
	}
	struct open_job *o = malloc(sizeof(*o));
	if (!o) {
		tui_say_err(t, &err_nomem);
		return;
	}
	*o = ask;
	o->job.run = open_run;
	o->job.done = open_done;
	o->job.fini = open_fini;
	tui_job_cancel(t->open_job);
	t->open_job = &o->job;
	tui_say(t, false, "reading the file's tables");
	tui_job_start(t, &o->job);
}

void tui_go_binary(struct tui *t, uint32_t bin, bool has_va, uint64_t va)
{
	if (bin != t->bin)
		go_there(t, (struct open_job){.project = t->project, .bin = bin, .has_va = has_va, .va = va});
	else if (has_va)
		tui_go(t, va);
}

static bool is_same_file(const char *a, const char *b)
{
	struct stat x, y;
	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

void tui_go_file(struct tui *t, const char *path, uint64_t off, bool to_c)
{
	const char *own = ses_path(t->ses);
	uint32_t bin = t->bin;
	if (is_same_file(path, own)) {
		tui_push_past(t);
		t->future.cnt = 0;
		go_off(t, off, to_c);
		return;
	}
	struct ses_project_opts o = {.paths = &own, .path_cnt = 1, .ses = t->ses, .background = t->job_fd >= 0, .event_fd = t->job_fd};
	struct err *e = t->project ? NULL : ses_project_open(&o, &t->own_project);
	if (!e && !t->project) {
		t->project = t->own_project;
		t->bin = 0;
	}
	if (!e)
		e = ses_project_join(t->project, path, &bin);
	if (e)
		tui_say_err(t, e);
	else
		go_there(t, (struct open_job){.project = t->project, .bin = bin, .has_off = true, .va = off, .to_c = to_c});
}

void tui_go_row(struct tui *t, const struct tui_row *row)
{
	if (row->bin && t->project)
		tui_go_binary(t, row->bin - 1, row->has_va, row->va);
	else if (row->has_va)
		tui_go(t, row->va);
}

void tui_project_begin(struct tui *t, struct ses_project *p, uint32_t bin)
{
	t->project = p;
	t->bin = bin;
	ses_project_put_shown(p, bin);
	place_restore(t);
	tell_state(t);
	const char *note = ses_project_note(p);
	if (note)
		tui_say(t, true, "the project is not kept on disk: %s", note);
}

/* --- over imports --- */

void tui_follow(struct tui *t, uint64_t va)
{
	struct ses_providers found = {0};
	struct ses_far_ask ask = {.binary = t->bin, .snap = t->snap, .va = va};
	uint32_t done, all;
	struct err *e = t->project ? ses_project_providers(t->project, &ask, &t->frame_arena, &found) : &err_not_found;
	if (e || !found.cnt) {
		bool is_import = !e;
		err_free(e);
		tui_go(t, va);
		if (!is_import)
			return;
		ses_project_progress(t->project, &done, &all);
		if (done < all)
			tui_say(t, false, "no binary read so far exports it (%u of %u)", done, all);
		else
			tui_say(t, false, "no binary of the project exports it");
		return;
	}
	tui_go_binary(t, found.list[0].binary, true, found.list[0].addr);
}

struct err *tui_far_rows(const struct tui_query *q, uint64_t local_total, struct tui_page *ret)
{
	struct ses_far_list far = {0};
	uint64_t skip = q->page.offset > local_total ? q->page.offset - local_total : 0;
	uint64_t room = q->page.limit > ret->cnt ? q->page.limit - ret->cnt : 0;
	struct ses_far_ask ask = {.binary = q->bin, .snap = q->snap, .va = q->va, .limit = (uint32_t)MIN(skip + room, FAR_MAX)};
	struct err *e = ses_project_xrefs(q->project, q->call, &ask, &ret->arena, &far);
	struct tui_row *rows = e ? NULL : ARENA_ARRAY(&ret->arena, struct tui_row, (size_t)ret->cnt + far.cnt + 1);
	if (!rows)
		return e ? e : &err_nomem;
	if (ret->cnt)
		memcpy(rows, ret->rows, ret->cnt * sizeof(*rows));
	ret->rows = rows;
	ret->total = local_total + MIN(far.total, FAR_MAX);
	ret->has_more = far.total > FAR_MAX;
	for (uint64_t i = skip; i < far.cnt; i++) {
		const struct ses_far_xref *x = &far.list[i];
		struct ses_binary b;
		struct tui_row *r = &rows[ret->cnt];
		e = ses_project_binary(q->project, x->binary, &ret->arena, &b);
		if (e)
			return e;
		char *addr = arena_printf(&ret->arena, "%llx", (unsigned long long)x->xref.from);
		/* Of data the binary alone. */
		char *func = arena_printf(&ret->arena, "%s%s%.*s", b.label, x->xref.func.len ? "!" : "", (int)x->xref.func.len, x->xref.func.s);
		if (!addr || !func)
			return &err_nomem;
		*r = (struct tui_row){.va = x->xref.from, .has_va = true, .bin = x->binary + 1};
		r->col[0] = text_of(x->xref.kind);
		r->col[1] = text_of(addr);
		r->col[2] = text_of(func);
		r->col[3] = x->xref.text;
		ret->cnt++;
	}
	return NULL;
}

/* --- the switcher --- */

static struct err *binaries_fetch(const struct tui_query *q, struct tui_page *ret)
{
	uint32_t cnt = q->project ? ses_project_cnt(q->project) : 0;
	ret->rows = ARENA_ARRAY(&ret->arena, struct tui_row, (size_t)cnt + 1);
	if (!ret->rows)
		return &err_nomem;
	for (uint32_t i = 0; i < cnt; i++) {
		struct ses_binary b;
		struct err *e = ses_project_binary(q->project, i, &ret->arena, &b);
		if (e)
			return e;
		if (q->page.filter && !strcasestr(b.label, q->page.filter) && !strcasestr(b.path, q->page.filter))
			continue;
		uint64_t at = ret->total++;
		if (at < q->page.offset || at - q->page.offset >= q->page.limit)
			continue;
		struct tui_row *r = &ret->rows[ret->cnt++];
		bool is_well = b.state == SES_BINARY_SAME;
		r->bin = i + 1;
		r->mark = i == q->bin ? '*' : is_well ? 0 : '!';
		r->col[0] = text_of(b.label);
		r->col[1] = text_of(!is_well ? ses_binary_state_name(b.state) : b.is_ready ? "open" : b.is_open ? "analysing" :
				    b.is_indexed ? "" : "new");
		r->col[2] = text_of(*b.why ? b.why : b.path);
	}
	return NULL;
}

const struct tui_list_ops tui_binaries_list = {
	.title = "Binaries of the project",
	.empty = "no binary",
	.columns = {{.title = "binary", .width = 32, .role = ROLE_NAME},
		    {.title = "state", .width = 9, .role = ROLE_KEY},
		    {.title = "file", .role = ROLE_TEXT}},
	.column_cnt = 3,
	.is_typed_in = true,
	.fetch = binaries_fetch,
};

void tui_binaries_open(struct tui *t)
{
	if (!t->project) {
		tui_say(t, false, "one binary is open (scry FILE1 FILE2... or scry --project P.json opens several)");
		return;
	}
	*t->binaries.filter = '\0';
	tui_list_restart(&t->binaries);
	tui_overlay_push(t, TUI_O_BINARIES);
}

/* --- lists over the whole project --- */

static struct err *find(const struct tui_query *q, uint32_t kinds, uint32_t most, struct tui_page *ret, struct ses_find **ret_list)
{
	struct ses_find_ask ask = {.filter = q->page.filter, .kinds = kinds, .limit = (uint32_t)MIN(q->page.offset + q->page.limit, most)};
	struct err *e = ses_project_find(q->project, q->call, &ask, &ret->arena, ret_list);
	ret->rows = e ? NULL : ARENA_ARRAY(&ret->arena, struct tui_row, (size_t)ask.cnt + 1);
	if (!ret->rows)
		return e ? e : &err_nomem;
	ret->total = ask.cnt;
	ret->has_more = ask.has_more;
	/* Nobody has looked for what lies beyond; of a list without a filter the number is known. */
	if (ask.has_more && ask.limit < most)
		ret->total = q->page.filter ? ask.cnt + 1 : MIN(ses_project_find_cnt(q->project, kinds), most);
	return NULL;
}

struct labels { struct ses_text *list; uint32_t cnt; };

static struct err *labels_get(const struct tui_query *q, struct arena *a, struct labels *ret)
{
	ret->cnt = ses_project_cnt(q->project);
	ret->list = ARENA_ARRAY(a, struct ses_text, (size_t)ret->cnt + 1);
	struct err *e = ret->list ? NULL : &err_nomem;
	for (uint32_t i = 0; i < ret->cnt && !e; i++) {
		struct ses_binary b;
		e = ses_project_binary(q->project, i, a, &b);
		if (!e)
			ret->list[i] = text_of(b.label);
	}
	return e;
}

static struct err *found_rows(const struct tui_query *q, uint32_t kinds, struct tui_page *ret)
{
	struct ses_find *f;
	struct labels labels;
	bool is_strings = kinds == SES_FIND_STRINGS;
	struct err *e = find(q, kinds, is_strings ? FOUND_MAX : PALETTE_MAX, ret, &f);
	uint64_t cnt = ret->total;
	if (!e)
		e = labels_get(q, &ret->arena, &labels);
	for (uint64_t i = q->page.offset; !e && i < cnt && ret->cnt < q->page.limit && f[i].text.s; i++) {
		struct tui_row *r = &ret->rows[ret->cnt];
		char *addr = arena_printf(&ret->arena, "%llx", (unsigned long long)f[i].addr);
		if (!addr)
			return &err_nomem;
		struct ses_text name = f[i].readable.len ? f[i].readable : f[i].text;
		struct ses_text label = f[i].binary < labels.cnt ? labels.list[f[i].binary] : text_of("?");
		*r = (struct tui_row){.va = f[i].addr, .has_va = true, .bin = f[i].binary + 1};
		if (is_strings) {
			r->col[0] = label;
			r->col[1] = text_of(addr);
			r->col[2] = name;
		} else {
			r->col[0] = name;
			r->col[1] = text_of(ses_find_kind_name(f[i].kind));
			r->col[2] = label;
			r->col[3] = text_of(addr);
		}
		ret->cnt++;
	}
	return e;
}

static struct err *project_symbols_fetch(const struct tui_query *q, struct tui_page *ret)
{
	return found_rows(q, 0, ret);
}

static struct err *project_strings_fetch(const struct tui_query *q, struct tui_page *ret)
{
	return found_rows(q, SES_FIND_STRINGS, ret);
}

const struct tui_list_ops tui_project_symbols_list = {
	.title = "Names and strings of the project",
	.empty = "nothing has a name",
	.columns = {{.title = "name", .role = ROLE_NAME},
		    {.title = "kind", .width = 9, .role = ROLE_DIM},
		    {.title = "binary", .width = 20, .role = ROLE_KEY},
		    {.title = "address", .width = 12, .role = ROLE_ADDR, .is_right = true}},
	.column_cnt = 4,
	.is_typed_in = true,
	.fetch = project_symbols_fetch,
};

const struct tui_list_ops tui_project_strings_list = {
	.title = "Strings of the project",
	.empty = "no strings",
	.columns = {{.title = "binary", .width = 20, .role = ROLE_KEY},
		    {.title = "address", .width = 12, .role = ROLE_ADDR, .is_right = true},
		    {.title = "text", .role = ROLE_STRING}},
	.column_cnt = 3,
	.fetch = project_strings_fetch,
};

void tui_scope(struct tui *t)
{
	struct tui_list *l = tui_overlay_list(t);
	uint32_t done, all;
	if (!l && !t->overlay_cnt && tui_focus(t) == TUI_V_STRINGS)
		l = &t->lists[TUI_V_STRINGS];
	bool is_symbols = l == &t->symbols;
	if (!t->project || (!is_symbols && l != &t->lists[TUI_V_STRINGS])) {
		tui_say(t, false, t->project ? "this list is of one binary (names: Ctrl+N, strings: \")" : "one binary is open");
		return;
	}
	const struct tui_list_ops *far = is_symbols ? &tui_project_symbols_list : &tui_project_strings_list;
	const struct tui_list_ops *near = is_symbols ? &tui_symbols_palette_list : tui_view_ops(TUI_V_STRINGS)->list;
	bool is_far = l->ops != far;
	l->ops = is_far ? far : near;
	l->sort = 0;
	tui_list_restart(l);
	ses_project_poke(t->project);
	ses_project_progress(t->project, &done, &all);
	if (is_far && done < all)
		tui_say(t, false, "the whole project; %u of %u binaries are indexed so far", done, all);
	else
		tui_say(t, false, is_far ? "the whole project (F2: this binary)" : "this binary (F2: the whole project)");
}

void tui_project_draw(struct tui *t, struct cells_pen *p)
{
	struct ses_binary b;
	if (!t->project)
		return;
	struct err *e = ses_project_binary(t->project, t->bin, &t->frame_arena, &b);
	if (!e) {
		uint32_t cnt = ses_project_cnt(t->project);
		cells_printf(p, "  %u/%u %s", t->bin + 1, cnt, ses_project_name(t->project));
		if (b.state != SES_BINARY_SAME) {
			uint8_t fg = p->st.fg;
			p->st.fg = ROLE_BAR_WARN;
			cells_printf(p, "  ! %s", ses_binary_state_name(b.state));
			p->st.fg = fg;
		}
	}
	err_free(e);
}
