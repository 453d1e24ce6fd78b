/* SPDX-License-Identifier: Apache-2.0 */
/* What is on the screen, as JSON: taken from the state it was painted from, so it says what the frame shows. */
#include "tui/rpc_int.h"

#include "base/utf8.h"

#define ITEM_MAX 200 /* rows of a list that are written out: those in sight, on the largest of screens */

static void put_str(struct json *j, const char *key, const char *s)
{
	json_key(j, key);
	json_str(j, s);
}

static void put_text(struct json *j, const char *key, struct ses_text t)
{
	json_key(j, key);
	json_strn(j, t.s ? t.s : "", t.len);
}

static void put_num(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_u64(j, v);
}

static void put_bool(struct json *j, const char *key, bool v)
{
	json_key(j, key);
	json_bool(j, v);
}

static void put_addr(struct json *j, const char *key, uint64_t va)
{
	json_key(j, key);
	json_addr(j, va);
}

/* --- lists ------------------------------------------------------------------------------------------------------------------- */

static void put_row(const struct tui_list *l, const struct tui_row *r, uint64_t index, struct json *j)
{
	json_obj(j);
	put_num(j, "index", index);
	if (r->has_va)
		put_addr(j, "addr", r->va);
	json_key(j, "cols");
	json_arr(j);
	for (int i = 0; i < l->ops->column_cnt; i++)
		json_strn(j, r->col[i].s ? r->col[i].s : "", r->col[i].len);
	json_end_arr(j);
	put_bool(j, "cursor", index == l->cur);
	if (l->marked.cnt)
		put_bool(j, "marked", tui_list_is_marked(l, r->id));
	json_end_obj(j);
}

/* The rows [from, to) that are loaded. */
static void put_rows(const struct tui_list *l, uint64_t from, uint64_t to, struct json *j)
{
	json_arr(j);
	for (uint64_t i = MAX(from, l->page_off); l->has_page && i < MIN(to, l->page_off + l->page.cnt); i++)
		put_row(l, &l->page.rows[i - l->page_off], i, j);
	json_end_arr(j);
}

static void put_list(const struct tui_list *l, struct json *j)
{
	put_str(j, "title", l->ops->title);
	put_str(j, "filter", l->filter);
	put_num(j, "row", l->cur);
	json_key(j, "rows");
	if (l->has_page)
		json_u64(j, l->page.total);
	else
		json_null(j);
	put_bool(j, "more", l->has_page && l->page.has_more);
	if (l->page.err)
		put_str(j, "error", l->page.err->text ? l->page.err->text : err_kind_name(l->page.err->kind));
	json_key(j, "items");
	put_rows(l, l->top, l->top + (uint64_t)MIN(MAX(l->height, 0), ITEM_MAX), j);
}

/* --- state ------------------------------------------------------------------------------------------------------------------- */

static const char *state_name(enum ses_state s)
{
	switch (s) {
	case SES_IDENTIFYING:
		return "identifying";
	case SES_ANALYSING:
		return "analysing";
	case SES_READY:
		return "ready";
	case SES_FAILED:
		return "failed";
	}
	return "";
}

static void put_progress(const struct tui *t, struct json *j)
{
	json_key(j, "progress");
	json_obj(j);
	put_str(j, "state", state_name(t->progress.state));
	put_str(j, "stage", t->progress.stage ? t->progress.stage : "");
	put_num(j, "done", t->progress.done);
	put_num(j, "total", t->progress.total);
	put_num(j, "functions", t->progress.state == SES_READY ? t->info.functions : t->progress.func_cnt);
	json_end_obj(j);
	put_bool(j, "complete", t->progress.state == SES_READY);
}

static int listing_line(const struct tui_listing *l)
{
	for (uint32_t i = 0; i < l->line_cnt; i++) {
		if (l->lines[i].va == l->va && l->lines[i].sub == l->sub)
			return (int)i;
	}
	return -1;
}

static void put_listing_cursor(struct tui *t, struct json *j)
{
	const struct tui_listing *l = &t->listing;
	uint64_t target, row;
	int line = l->lines_snap == t->snap ? listing_line(l) : -1;
	put_num(j, "sub", l->sub);
	if (line >= 0) {
		put_num(j, "line", (uint64_t)line);
		put_num(j, "col", (uint64_t)MAX(tui_line_column(&t->grid, &l->lines[line], l->off), 0));
	}
	put_text(j, "word", tui_listing_word(t));
	if (tui_listing_operand(t, &target) || tui_listing_target(t, &target))
		put_addr(j, "target", target);
	if (ses_row_of(t->snap, l->va, &row)) {
		put_num(j, "row", row);
		put_num(j, "rows", ses_row_cnt(t->snap));
	}
}

/* `line` counts rows of the pane, as everywhere; `text_line` those of the C, from 1. */
static void put_c_cursor(struct tui *t, struct json *j)
{
	const struct tui_c *c = &t->c;
	uint64_t target;
	put_bool(j, "making", c->job != NULL);
	if (!c->shown)
		return;
	const struct ses_c *text = &c->shown->c;
	put_num(j, "line", tui_c_row_of(t, c->line) - tui_c_row_of(t, c->top));
	put_num(j, "text_line", c->line + 1);
	put_num(j, "text_lines", text->line_cnt);
	put_num(j, "col", (uint64_t)MAX(c->col, 0));
	put_text(j, "word", tui_c_word(t));
	if (tui_c_subject(t, &target))
		put_addr(j, "target", target);
	json_key(j, "addrs");
	json_arr(j);
	for (uint32_t i = 0; c->line < text->line_cnt && i < text->lines[c->line].addr_cnt; i++)
		json_addr(j, text->addrs[text->lines[c->line].first_addr + i]);
	json_end_arr(j);
	put_str(j, "level", text->level);
	put_str(j, "status", text->status);
	put_str(j, "verified", text->verified);
}

static void put_cursor(struct tui *t, struct json *j)
{
	uint64_t va, off;
	uint8_t byte;
	bool mapped;
	json_key(j, "cursor");
	json_obj(j);
	put_str(j, "kind", tui_view_ops(tui_focus(t))->name);
	if (tui_focus_va(t, &va)) {
		put_addr(j, "addr", va);
		put_text(j, "where", ses_where(t->snap, va, &t->frame_arena));
		if (ses_va_to_file(t->snap, va, &off))
			put_addr(j, "file_off", off);
		if (tui_focus(t) == TUI_V_HEX && ses_bytes(t->snap, va, 1, &byte, &mapped) == 1)
			put_num(j, "byte", byte);
	}
	if (tui_focus(t) == TUI_V_LISTING)
		put_listing_cursor(t, j);
	else if (tui_focus(t) == TUI_V_C)
		put_c_cursor(t, j);
	if (t->cur_x >= 0) {
		put_num(j, "x", (uint64_t)t->cur_x);
		put_num(j, "y", (uint64_t)t->cur_y);
	}
	json_end_obj(j);
}

static void put_function(struct tui *t, struct json *j)
{
	uint64_t va;
	struct ses_func f;
	json_key(j, "function");
	if (!tui_focus_va(t, &va) || !ses_func_at(t->snap, va, &t->frame_arena, &f)) {
		json_null(j);
		return;
	}
	json_obj(j);
	put_addr(j, "addr", f.addr);
	put_text(j, "name", f.name);
	put_num(j, "size", f.size);
	json_end_obj(j);
}

/* A dialog that is no list. */
static void put_other(struct tui *t, struct json *j)
{
	enum tui_overlay which = t->overlays[t->overlay_cnt - 1];
	put_str(j, "title", which == TUI_O_LOAD	      ? "Load options" :
			    which == TUI_O_EDITOR     ? t->editor.title :
			    which == TUI_O_CONFIRM    ? "Sure?" : "Keys");
	if (which == TUI_O_LOAD) {
		const char *processor = tui_load_processor(&t->load);
		put_str(j, "processor", processor ? processor : "");
		put_str(j, "base", tui_load_base(&t->load));
		put_str(j, "format", tui_load_format(&t->load));
	} else if (which == TUI_O_EDITOR) {
		put_str(j, "text", t->editor.text ? t->editor.text : "");
		put_str(j, "error", t->editor.error);
	} else if (which == TUI_O_CONFIRM) {
		put_str(j, "text", t->confirm_text);
	}
}

/* What lies over the panes and has the keys. */
static void put_modal(struct tui *t, struct json *j)
{
	const struct tui_list *l = tui_overlay_list(t);
	json_key(j, "prompt");
	if (t->prompt.kind) {
		json_obj(j);
		put_str(j, "label", tui_prompt_label(t->prompt.kind));
		put_str(j, "text", t->prompt.text);
		put_num(j, "pos", t->prompt.pos);
		json_end_obj(j);
	} else {
		json_null(j);
	}
	json_key(j, "dialog");
	if (!t->overlay_cnt) {
		json_null(j);
		return;
	}
	json_obj(j);
	if (l)
		put_list(l, j);
	else
		put_other(t, j);
	json_end_obj(j);
}

void tui_put_state(struct tui *t, struct json *j)
{
	enum tui_view v = tui_focus(t);
	put_num(j, "rev", ses_snap_rev(t->snap));
	put_str(j, "file", ses_path(t->ses));
	put_bool(j, "target_changed", ses_target_changed(t->ses));
	put_progress(t, j);
	json_key(j, "screen");
	json_obj(j);
	put_num(j, "width", (uint64_t)t->grid.w);
	put_num(j, "height", (uint64_t)t->grid.h);
	json_end_obj(j);
	put_str(j, "view", tui_view_ops(t->main_view)->name);
	put_str(j, "focus", tui_view_ops(v)->name);
	put_cursor(t, j);
	put_function(t, j);
	json_key(j, "status");
	json_obj(j);
	put_str(j, "text", t->message);
	put_bool(j, "bad", *t->message && t->is_message_bad);
	json_end_obj(j);
	uint64_t step, steps;
	json_key(j, "trace");
	if (tui_dock_step(t, &step, &steps)) {
		json_obj(j);
		put_num(j, "step", step);
		put_num(j, "steps", steps);
		json_end_obj(j);
	} else {
		json_null(j);
	}
	json_key(j, "list");
	if (tui_view_ops(v)->list) {
		json_obj(j);
		put_list(&t->lists[v], j);
		json_end_obj(j);
	} else {
		json_null(j);
	}
	put_modal(t, j);
	put_num(j, "back", t->past.cnt);
	put_num(j, "forward", t->future.cnt);
	put_bool(j, "split", t->split_rect.w > 0);
	put_num(j, "proposals", t->proposals_waiting);
	put_bool(j, "pending_edits", t->edit_running || t->edit_first);
}

/* --- lines ------------------------------------------------------------------------------------------------------------------- */

static void put_listing_lines(const struct tui_listing *l, int from, int to, struct json *j)
{
	for (int i = from; i < MIN(to, (int)l->line_cnt); i++) {
		const struct ses_head *h = &l->lines[i];
		json_obj(j);
		put_num(j, "line", (uint64_t)i);
		put_addr(j, "addr", h->va);
		put_num(j, "sub", h->sub);
		put_text(j, "text", h->text);
		if (h->label.len)
			put_text(j, "label", h->label);
		if (h->comment.len)
			put_text(j, "comment", h->comment);
		put_bool(j, "cursor", h->va == l->va && h->sub == l->sub);
		json_end_obj(j);
	}
}

static void put_c_lines(const struct tui *t, int from, int to, struct json *j)
{
	const struct tui_c *c = &t->c;
	const struct ses_c *text = &c->shown->c;
	uint32_t top = tui_c_row_of(t, c->top);
	for (int i = from; i < to && top + (uint32_t)i < tui_c_row_cnt(t); i++) {
		uint32_t line = tui_c_row_line(t, top + (uint32_t)i), hidden = tui_c_hidden(t, line);
		const struct ses_c_line *l = &text->lines[line];
		json_obj(j);
		put_num(j, "line", (uint64_t)i);
		put_num(j, "text_line", line + 1u);
		if (l->addr_cnt)
			put_addr(j, "addr", text->addrs[l->first_addr]);
		put_text(j, "text", (struct ses_text){text->text.s + l->off, l->len});
		if (hidden)
			put_num(j, "folded", hidden);
		put_bool(j, "cursor", line == c->line);
		json_end_obj(j);
	}
}

/* Rows as they are drawn, without the blanks at their ends. */
static void put_drawn_lines(struct tui *t, struct cells_rect r, int from, int to, struct json *j)
{
	struct buf text = {0};
	char u8[4];
	for (int i = from; i < MIN(to, r.h); i++) {
		size_t end = text.len = 0;
		for (int x = r.x; x < r.x + r.w; x++) {
			const struct cells_cell *c = &t->grid.cell[(r.y + i) * t->grid.w + x];
			if (c->cp)
				buf_add(&text, u8, utf8_put(c->cp, u8));
			end = c->cp && c->cp != ' ' ? text.len : end;
		}
		json_obj(j);
		put_num(j, "line", (uint64_t)i);
		json_key(j, "text");
		json_strn(j, text.data ? text.data : "", text.failed ? 0 : end);
		put_bool(j, "cursor", t->cur_y == r.y + i);
		json_end_obj(j);
	}
	buf_fini(&text);
}

void tui_answer_view(struct tui_call *c, struct json *j)
{
	struct tui *t = c->t;
	enum tui_view v = tui_focus(t);
	bool is_listing = v == TUI_V_LISTING && t->listing.lines_snap == t->snap;
	struct cells_rect r = cells_clip(&t->grid, t->focus_functions ? t->functions_rect : t->main_rect);
	bool is_c = v == TUI_V_C && t->c.shown;
	int cur = is_listing ? MAX(listing_line(&t->listing), 0) : MAX(t->cur_y - r.y, 0);
	int total = is_listing ? (int)t->listing.line_cnt : r.h;
	int want = (int)MIN(MAX(tui_arg_int(c, 0, total), 0), total);
	int from = MIN(MAX(cur - want / 2, 0), total - want);
	put_str(j, "view", tui_view_ops(v)->name);
	json_key(j, "lines");
	json_arr(j);
	if (is_listing)
		put_listing_lines(&t->listing, from, from + want, j);
	else if (is_c)
		put_c_lines(t, from, from + want, j);
	else
		put_drawn_lines(t, r, from, from + want, j);
	json_end_arr(j);
}

void tui_answer_diag(struct tui_call *c, struct json *j)
{
	struct tui *t = c->t;
	unsigned kept = MIN(t->said.cnt - t->said_from, TUI_SAID_MAX);
	unsigned cnt = (unsigned)MIN(MAX(tui_arg_int(c, 0, kept), 0), kept);
	json_key(j, "messages");
	json_arr(j);
	for (unsigned i = t->said.cnt - cnt; i != t->said.cnt; i++) {
		const char *line = t->said.line[i % TUI_SAID_MAX];
		bool is_bad = !strncmp(line, "! ", 2);
		json_obj(j);
		put_str(j, "text", line + (is_bad ? 2 : 0));
		put_bool(j, "bad", is_bad);
		json_end_obj(j);
	}
	json_end_arr(j);
	put_bool(j, "truncated", t->said.cnt - t->said_from > cnt);
	if (tui_arg_bool(c, 1))
		t->said_from = t->said.cnt;
}
