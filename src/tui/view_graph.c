/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/graph_func.h"
#include "tui/tui_int.h"

#include <stdlib.h>
#include <string.h>

/*
 * The graph of a function as a view: a cursor on a line of a block, a window that is moved over the picture, and the
 * picture itself, made anew when the function, the zoom or the snapshot changes. Cursor and window are anchored by
 * address: whatever is made anew, the block under the cursor stays where it is on the screen. A picture that takes
 * longer than a frame is made by a job.
 */
#define BUILD_MS 30
#define SYNC_BLOCKS 3000u /* more are laid out by a job from the start */
#define PAN_COLS 8
#define KEEP 4            /* cells of the picture that stay in the window */

struct graph_job {
	struct tui_job job;
	struct tui_graph_ask ask;
	struct tui_graph_func *f;
	struct err *err;
};

static const struct graph_box *box_of(const struct tui_graph *g, uint32_t block)
{
	return &g->f->g.boxes[block];
}

/* The block under the cursor. */
static uint32_t current(const struct tui_graph *g)
{
	uint32_t b;
	return tui_graph_block_at(g->f, g->va, &b) ? b : g->f->entry;
}

static uint32_t current_line(const struct tui_graph *g)
{
	return tui_graph_line_at(g->f, current(g), g->va);
}

static void set_line(struct tui_graph *g, uint32_t line)
{
	g->va = g->f->line_va[line];
	g->off = 0;
	g->want_sight = true;
}

static void set_block(struct tui_graph *g, uint32_t block)
{
	const struct tui_graph_block *b = &g->f->blocks[block];
	if (b->line_cnt)
		set_line(g, b->line);
	else
		g->va = b->va;
	g->want_sight = true;
}

/* --- making the picture --- */

/* Takes f, or null: there is none. The block at the cursor stays in its place on the screen. */
static void take(struct tui *t, struct tui_graph_func *f)
{
	struct tui_graph *g = &t->graph;
	bool is_same = g->f && f && g->f->va == f->va && g->f->kind == f->kind;
	int32_t dx = 0;
	int32_t dy = 0;
	if (is_same) {
		const struct graph_box *b = box_of(g, current(g));
		dx = b->x + b->w / 2 - g->x;
		dy = b->y - g->y;
	}
	tui_graph_func_free(g->f);
	g->f = f;
	g->f_snap = t->snap;
	t->is_dirty = true;
	if (!f)
		return;
	if (!is_same) {
		g->came_from = UINT64_MAX;
		g->want_centre = true;
		return;
	}
	const struct graph_box *b = box_of(g, current(g));
	g->x = b->x + b->w / 2 - dx;
	g->y = b->y - dy;
	g->want_sight = true;
}

static void refuse(struct tui *t, struct err *e)
{
	take(t, NULL);
	t->graph.job_va = t->graph.kind == TUI_AROUND_NONE ? t->graph.va : t->graph.root; /* not again for this place */
	if (e->kind == ERR_NOT_FOUND || e->kind == ERR_CANCELLED)
		err_free(e);
	else
		tui_say_err(t, e);
}

static void job_run(struct tui_job *j)
{
	struct graph_job *gj = (struct graph_job *)j;
	gj->err = tui_graph_func_new(j->snap, &j->call, &gj->ask, &gj->f);
}

static void job_done(struct tui *t, struct tui_job *j)
{
	struct graph_job *gj = (struct graph_job *)j;
	struct tui_graph *g = &t->graph;
	if (g->job != j)
		return;
	g->job = NULL;
	t->is_dirty = true;
	if (j->snap != t->snap || gj->ask.zoom != g->zoom || gj->ask.kind != g->kind) /* it will be asked for again */
		return;
	if (gj->err)
		refuse(t, take_ptr(gj->err));
	else
		take(t, take_ptr(gj->f));
}

static void job_fini(struct tui_job *j)
{
	struct graph_job *gj = (struct graph_job *)j;
	tui_graph_func_free(gj->f);
	err_free(gj->err);
}

static void start_job(struct tui *t, const struct tui_graph_ask *ask)
{
	struct tui_graph *g = &t->graph;
	struct graph_job *gj = calloc(1, sizeof(*gj));
	if (!gj)
		return;
	tui_job_cancel(g->job);
	gj->ask = *ask;
	gj->ask.cancel = &gj->job.is_cancelled;
	gj->job.run = job_run;
	gj->job.done = job_done;
	gj->job.fini = job_fini;
	g->job = &gj->job;
	g->job_va = ask->va;
	tui_job_start(t, &gj->job);
}

static void make(struct tui *t)
{
	struct tui_graph *g = &t->graph;
	struct tui_graph_ask ask = {.va = g->kind == TUI_AROUND_NONE ? g->va : g->root, .kind = (enum tui_graph_kind)g->kind,
				    .zoom = (enum tui_zoom)g->zoom, .is_ascii = t->grid.is_ascii};
	struct ses_call call = tui_call(t, BUILD_MS);
	struct tui_graph_func *f = NULL;
	struct ses_func func;
	bool is_large = g->kind == TUI_AROUND_NONE && ses_func_at(t->snap, g->va, &t->frame_arena, &func) && func.blocks > SYNC_BLOCKS;
	if (is_large && t->job_fd >= 0) {
		start_job(t, &ask);
		return;
	}
	struct err *e = tui_graph_func_new(t->snap, &call, &ask, &f);
	if (e && e->kind == ERR_TIMEOUT) {
		err_free(e);
		start_job(t, &ask);
		return;
	}
	tui_job_cancel(g->job);
	g->job = NULL;
	if (e)
		refuse(t, e);
	else
		take(t, f);
}

/* Whether there is a picture of what the cursor is in; makes it when it can be made at once. */
static bool ready(struct tui *t)
{
	struct tui_graph *g = &t->graph;
	uint32_t b;
	if (!g->is_placed) {
		g->va = t->listing.is_placed ? t->listing.va : t->info.main_va;
		g->is_placed = true;
	}
	bool is_around = g->kind != TUI_AROUND_NONE;
	uint64_t of = is_around ? g->root : g->va;
	bool is_known = g->f && tui_graph_block_at(g->f, g->va, &b);
	bool is_other = g->f && (g->f->kind != (enum tui_graph_kind)g->kind || (is_around && g->f->va != g->root) ||
				 (!is_around && g->f->zoom != (enum tui_zoom)g->zoom));
	bool is_new = g->f_snap != t->snap || (g->f ? !is_known || is_other : g->job_va != of);
	const struct tui_graph_ask *asked = g->job ? &((struct graph_job *)g->job)->ask : NULL;
	if (is_new && !(asked && g->job_va == of && g->job->snap == t->snap && asked->zoom == (enum tui_zoom)g->zoom &&
			asked->kind == (enum tui_graph_kind)g->kind))
		make(t);
	/* The thing itself may not be a function's beginning, whose name stands for it. */
	if (is_around && g->f && !tui_graph_block_at(g->f, g->va, &b))
		g->va = g->f->va;
	if (!g->f || !tui_graph_block_at(g->f, g->va, &b))
		return false;
	if (g->f->blocks[b].line_cnt)
		g->va = g->f->line_va[tui_graph_line_at(g->f, b, g->va)];
	return true;
}

void tui_graph_fini(struct tui *t)
{
	tui_graph_func_free(t->graph.f);
	t->graph.f = NULL;
}

/* --- the window --- */

static int32_t cursor_row(const struct tui_graph *g)
{
	uint32_t b = current(g);
	bool has_rows = g->f->zoom != TUI_ZOOM_NAMES;
	return box_of(g, b)->y + has_rows + (has_rows ? (int32_t)tui_graph_row_of(g->f, b, current_line(g)) : 0);
}

static void centre(struct tui_graph *g)
{
	uint32_t cur = current(g);
	const struct graph_box *b = box_of(g, cur);
	int32_t row = cursor_row(g);
	g->x = b->w <= g->body.w ? b->x + b->w / 2 - g->body.w / 2 : b->x - 1;
	if (cur == g->f->entry && b->h < g->body.h)
		g->y = b->y - 1 - (g->body.h > 20);
	else
		g->y = b->h <= g->body.h ? b->y + b->h / 2 - g->body.h / 2 : row - g->body.h / 3;
}

/* Moves the window no further than needed to show [from, to), its beginning first. */
static int32_t show(int32_t at, int32_t size, int32_t from, int32_t to)
{
	if (to > at + size)
		at = to - size;
	return from < at ? from : at;
}

static void sight(struct tui *t)
{
	struct tui_graph *g = &t->graph;
	const struct graph_box *b = box_of(g, current(g));
	int32_t row = cursor_row(g);
	bool is_seen = row >= g->y && row < g->y + g->body.h;
	g->x = show(g->x, g->body.w, b->x - 1, b->x + b->w + 1);
	if (b->w + 2 > g->body.w && g->f->zoom != TUI_ZOOM_NAMES) {
		const struct ses_head *h = tui_graph_head(t, g->va);
		int32_t x = b->x + 2 + (h ? tui_line_column(&t->grid, h, g->off) : 0);
		x = MIN(x, b->x + b->w - 2);
		g->x = show(g->x, g->body.w, x - 1, x + 2);
	}
	if (b->h + 2 <= g->body.h && !is_seen)
		g->y = show(g->y, g->body.h, b->y - 2, b->y + b->h + 2);
	g->y = show(g->y, g->body.h, row - 1, row + 2);
}

static void clamp(struct tui_graph *g)
{
	g->x = MAX(MIN(g->x, g->f->g.w - KEEP), KEEP - g->body.w);
	g->y = MAX(MIN(g->y, g->f->g.h - KEEP), KEEP - g->body.h);
}

static void pan(struct tui_graph *g, int32_t dx, int32_t dy)
{
	g->x += dx;
	g->y += dy;
	g->want_sight = g->want_centre = false;
	clamp(g);
}

static void draw_nothing(struct tui *t, struct cells_rect r)
{
	struct tui_graph *g = &t->graph;
	struct cells_pen p = tui_pen(t, r, r.h / 2, ROLE_DIM, ROLE_BG);
	g->map = (struct cells_rect){0};
	if (g->job)
		cells_str(&p, "  the graph is being laid out");
	else if (g->kind == TUI_AROUND_REFS)
		cells_printf(&p, "  nothing is known of %llx (Space: listing)", (unsigned long long)g->root);
	else
		cells_printf(&p, "  no function at %llx (Space: listing)", (unsigned long long)g->va);
}

static void graph_draw(struct tui *t, struct cells_rect r, bool is_focused)
{
	struct tui_graph *g = &t->graph;
	cells_fill(&t->grid, r, tui_style(ROLE_TEXT, ROLE_BG));
	if (r.w < 8 || r.h < 1)
		return;
	g->body = (struct cells_rect){r.x, r.y, r.w - 1, r.h};
	if (!ready(t)) {
		draw_nothing(t, r);
		return;
	}
	if (g->want_centre)
		centre(g);
	if (g->want_sight || g->want_centre)
		sight(t);
	g->want_sight = g->want_centre = false;
	clamp(g);
	tui_graph_paint(t, is_focused);
	tui_draw_bar(t, (struct cells_rect){r.x + r.w - 1, r.y, 1, r.h}, (uint64_t)MAX(g->y, 0), (uint64_t)r.h,
		     (uint64_t)MAX(g->f->g.h, 1));
}

/* --- moving --- */

/* The box of a layer nearest to column x. */
static uint32_t nearest(const struct tui_graph *g, uint32_t layer, int32_t x)
{
	const uint32_t *boxes;
	uint32_t cnt = graph_layer_boxes(&g->f->g, layer, &boxes);
	uint32_t best = g->f->entry;
	int32_t least = INT32_MAX;
	for (uint32_t i = 0; i < cnt; i++) {
		const struct graph_box *b = box_of(g, boxes[i]);
		int32_t away = abs(b->x + b->w / 2 - x);
		if (away < least) {
			least = away;
			best = boxes[i];
		}
	}
	return best;
}

static bool to_layer(struct tui_graph *g, int by)
{
	uint32_t cur = current(g);
	const struct graph_box *b = box_of(g, cur);
	if (by < 0 ? b->layer == 0 : b->layer + 1 >= g->f->g.layer_cnt)
		return false;
	set_block(g, nearest(g, b->layer + (uint32_t)by, b->x + b->w / 2));
	return true;
}

static void up_down(struct tui_graph *g, int by)
{
	uint32_t cur = current(g);
	uint32_t rows = tui_graph_row_cnt(g->f, cur);
	uint32_t row = tui_graph_row_of(g->f, cur, current_line(g));
	uint32_t off = g->off;
	bool is_gap;
	if (by < 0 ? row > 0 && rows : row + 1 < rows) {
		uint32_t line = tui_graph_line_of(g->f, cur, row + (uint32_t)by, &is_gap);
		if (is_gap)
			line = tui_graph_line_of(g->f, cur, row + 2 * (uint32_t)by, &is_gap);
		set_line(g, line);
		g->off = off;
		return;
	}
	if (!to_layer(g, by))
		pan(g, 0, by);
	else if (by < 0 && g->f->blocks[current(g)].line_cnt && rows)
		set_line(g, g->f->blocks[current(g)].line + g->f->blocks[current(g)].line_cnt - 1);
}

/* The block beside this one in its layer; where there is none the picture moves. */
static void beside(struct tui_graph *g, int by)
{
	const uint32_t *boxes;
	uint32_t cur = current(g);
	uint32_t cnt = graph_layer_boxes(&g->f->g, box_of(g, cur)->layer, &boxes);
	uint32_t at = 0;
	while (at < cnt && boxes[at] != cur)
		at++;
	if (by < 0 ? at > 0 : at + 1 < cnt)
		set_block(g, boxes[at + (uint32_t)by]);
	else
		pan(g, by * PAN_COLS, 0);
}

static void sideways(struct tui *t, int by)
{
	struct tui_graph *g = &t->graph;
	const struct ses_head *h = g->f->zoom == TUI_ZOOM_NAMES ? NULL : tui_graph_head(t, g->va);
	uint32_t off = h ? MIN(g->off, h->text.len ? h->text.len - 1 : 0) : 0;
	do {
		if (!h || (by < 0 ? off == 0 : off + 1 >= h->text.len)) {
			beside(g, by);
			return;
		}
		off = by < 0 ? off - 1 : off + 1;
	} while (((uint8_t)h->text.s[off] & 0xc0) == 0x80);
	g->off = off;
}

static void by_address(struct tui_graph *g, int by)
{
	uint32_t at = 0;
	uint32_t cur = current(g);
	while (at < g->f->cnt && g->f->by_va[at] != cur)
		at++;
	if (by < 0 ? at > 0 : at + 1 < g->f->cnt)
		set_block(g, g->f->by_va[at + (uint32_t)by]);
}

/* Along an edge: to what runs next when nothing jumps, else to where it jumps; the other way, to where we came from,
 * else to the first that leads here. */
static void along(struct tui *t, bool to_next)
{
	struct tui_graph *g = &t->graph;
	const struct graph *p = &g->f->g;
	uint32_t cur = current(g);
	uint32_t found = UINT32_MAX;
	for (uint32_t i = 0; i < p->edge_cnt; i++) {
		const struct graph_edge *e = &p->edges[i];
		uint32_t here = to_next ? e->from : e->to;
		uint32_t other = to_next ? e->to : e->from;
		if (here != cur || (other == cur && found != UINT32_MAX))
			continue;
		bool is_better = to_next ? e->kind == GRAPH_FALL : g->f->blocks[other].va == g->came_from;
		if (found == UINT32_MAX || found == cur || is_better)
			found = other;
	}
	if (found == UINT32_MAX) {
		tui_say(t, false, to_next ? "nothing follows this block" : "nothing in the function leads to this block");
		return;
	}
	g->came_from = g->f->blocks[cur].va;
	set_block(g, found);
}

/* From a name to what has it. */
static void open_node(struct tui *t)
{
	uint64_t va = t->graph.va;
	tui_push_past(t);
	t->graph.is_sticky = false;
	t->future.cnt = 0;
	t->main_view = TUI_V_LISTING;
	tui_view_ops(TUI_V_LISTING)->go(t, va);
}

static void follow(struct tui *t)
{
	const struct ses_head *h = tui_graph_head(t, t->graph.va);
	if (h && h->has_target)
		tui_follow(t, h->target);
	else
		tui_say(t, false, "nothing to follow on this line (J goes along an edge)");
}

static void line_edge(struct tui *t, bool to_end)
{
	const struct ses_head *h = to_end ? tui_graph_head(t, t->graph.va) : NULL;
	t->graph.off = h && h->text.len ? h->text.len - 1 : 0;
	t->graph.want_sight = true;
}

static bool act_move(struct tui *t, enum tui_action a)
{
	struct tui_graph *g = &t->graph;
	/* Whoever moves wants to see from where, even when there is no way on; moving the picture takes it back. */
	g->want_sight = true;
	switch ((int)a) {
	case TUI_UP:
	case TUI_DOWN:
		up_down(g, a == TUI_UP ? -1 : 1);
		return true;
	case TUI_LEFT:
	case TUI_RIGHT:
		sideways(t, a == TUI_LEFT ? -1 : 1);
		return true;
	case TUI_HALF_UP:
	case TUI_HALF_DOWN:
		pan(g, 0, a == TUI_HALF_UP ? -MAX(g->body.h / 2, 1) : MAX(g->body.h / 2, 1));
		return true;
	case TUI_PAGE_UP:
	case TUI_PAGE_DOWN:
		pan(g, 0, a == TUI_PAGE_UP ? -MAX(g->body.h - 1, 1) : MAX(g->body.h - 1, 1));
		return true;
	case TUI_PAN_LEFT:
	case TUI_PAN_RIGHT:
		pan(g, a == TUI_PAN_LEFT ? -PAN_COLS : PAN_COLS, 0);
		return true;
	case TUI_LINE_START:
	case TUI_LINE_END:
		line_edge(t, a == TUI_LINE_END);
		return true;
	case TUI_TOP:
	case TUI_BLOCK_ENTRY:
		set_block(g, g->f->entry);
		return true;
	case TUI_BOTTOM:
		set_block(g, g->f->by_va[g->f->cnt - 1]);
		return true;
	case TUI_BLOCK_SUCC:
	case TUI_BLOCK_PREV_EDGE:
		along(t, a == TUI_BLOCK_SUCC);
		return true;
	case TUI_BLOCK_NEXT:
	case TUI_BLOCK_PREV:
		by_address(g, a == TUI_BLOCK_NEXT ? 1 : -1);
		return true;
	default:
		return false;
	}
}

static bool graph_act(struct tui *t, enum tui_action a)
{
	struct tui_graph *g = &t->graph;
	bool has_picture = ready(t);
	switch ((int)a) {
	case TUI_FUNC_NEXT:
	case TUI_FUNC_PREV:
		tui_go_function(t, g->va, a == TUI_FUNC_NEXT ? 1 : -1);
		return true;
	case TUI_GRAPH_ZOOM:
		if (g->kind != TUI_AROUND_NONE) {
			tui_say(t, false, "calls and references are names; Space draws the blocks of the function at the cursor");
			return true;
		}
		g->zoom = (uint8_t)((g->zoom + 1) % TUI_ZOOM_COUNT);
		return true;
	case TUI_GRAPH_MAP:
		g->hide_map = !g->hide_map;
		return true;
	case TUI_GRAPH_CENTRE:
		g->want_centre = true;
		return true;
	case TUI_FOLLOW:
		if (g->kind != TUI_AROUND_NONE && has_picture)
			open_node(t);
		else
			follow(t);
		return true;
	default:
		return has_picture && tui_action_info(a)->group == TUI_GROUP_MOVE && act_move(t, a);
	}
}

static void graph_scroll(struct tui *t, int rows)
{
	if (ready(t))
		pan(&t->graph, 0, rows);
}

/* --- mouse --- */

/* The block nearest to a place of the map. */
static void to_map(struct tui_graph *g, int x, int y)
{
	const struct graph *p = &g->f->g;
	int32_t px = (int32_t)((int64_t)MAX(MIN(x - g->map.x, g->map.w - 1), 0) * p->w / g->map.w);
	int32_t py = (int32_t)((int64_t)MAX(MIN(y - g->map.y, g->map.h - 1), 0) * p->h / g->map.h);
	uint32_t best = g->f->entry;
	int64_t least = INT64_MAX;
	for (uint32_t i = 0; i < p->box_cnt; i++) {
		int64_t dx = (int64_t)p->boxes[i].x + p->boxes[i].w / 2 - px;
		int64_t dy = ((int64_t)p->boxes[i].y + p->boxes[i].h / 2 - py) * 2; /* cells are higher than wide */
		if (dx * dx + dy * dy < least) {
			least = dx * dx + dy * dy;
			best = i;
		}
	}
	set_block(g, best);
	g->want_centre = true;
}

/* The character at a column and row of a block's text, or the one nearest to it. */
static void select_in(struct tui *t, uint32_t block, int32_t col, int32_t row)
{
	struct tui_graph *g = &t->graph;
	int32_t rows = (int32_t)tui_graph_row_cnt(g->f, block);
	bool is_gap;
	set_block(g, block);
	g->want_sight = false; /* it is under the mouse */
	if (!rows)
		return;
	g->va = g->f->line_va[tui_graph_line_of(g->f, block, (uint32_t)MAX(MIN(row, rows - 1), 0), &is_gap)];
	const struct ses_head *h = tui_graph_head(t, g->va);
	g->off = h ? tui_line_offset(&t->grid, h, col) : 0;
}

static bool select_at(struct tui *t, int x, int y)
{
	struct tui_graph *g = &t->graph;
	int32_t px = g->x + x - g->body.x;
	int32_t py = g->y + y - g->body.y;
	uint32_t first;
	uint32_t end = graph_layers(&g->f->g, py, py + 1, &first);
	for (uint32_t l = first; l < end; l++) {
		const uint32_t *boxes;
		uint32_t cnt = graph_layer_boxes(&g->f->g, l, &boxes);
		for (uint32_t i = 0; i < cnt; i++) {
			const struct graph_box *b = box_of(g, boxes[i]);
			if (px < b->x || px >= b->x + b->w || py < b->y || py >= b->y + b->h)
				continue;
			select_in(t, boxes[i], px - b->x - 2, py - b->y - 1);
			return true;
		}
	}
	return false;
}

static bool graph_click(struct tui *t, int x, int y, bool is_drag)
{
	struct tui_graph *g = &t->graph;
	if (!ready(t))
		return false;
	bool is_bar = !is_drag && x >= g->body.x + g->body.w;
	bool in_map = g->map.w && x >= g->map.x && x < g->map.x + g->map.w && y >= g->map.y && y < g->map.y + g->map.h;
	if (!is_drag)
		g->is_dragging_map = in_map;
	if (g->is_dragging_map) {
		to_map(g, x, y);
		return false;
	}
	if (is_bar) {
		g->y = (int32_t)((int64_t)(y - g->body.y) * g->f->g.h / MAX(g->body.h, 1)) - g->body.h / 2;
		pan(g, 0, 0);
	} else if (is_drag) {
		pan(g, g->drag_x - x, g->drag_y - y);
	}
	g->drag_x = x;
	g->drag_y = y;
	return !is_drag && !is_bar && select_at(t, x, y);
}

/* --- places --- */

static void graph_go(struct tui *t, uint64_t va)
{
	struct tui_graph *g = &t->graph;
	uint32_t b;
	g->kind = TUI_AROUND_NONE;
	bool is_shown = g->is_placed && g->f && g->f->kind == TUI_AROUND_NONE && g->f_snap == t->snap && tui_graph_block_at(g->f, va, &b);
	g->va = va;
	g->off = 0;
	g->is_placed = true;
	if (is_shown) {
		const struct graph_box *box = box_of(g, b);
		bool is_near = box->x + box->w > g->x && box->x < g->x + g->body.w && box->y + box->h > g->y &&
			       box->y < g->y + g->body.h;
		g->want_sight = is_near;
		g->want_centre = !is_near;
	}
}

void tui_graph_around(struct tui *t, int kind)
{
	struct tui_graph *g = &t->graph;
	bool is_there = t->main_view == TUI_V_GRAPH && g->kind != TUI_AROUND_NONE && !t->focus_functions;
	struct ses_func f;
	uint64_t va;
	bool has_va = is_there ? (va = g->va, true) : tui_operand(t, &va) || tui_focus_va(t, &va);
	bool is_func = has_va && ses_func_at(t->snap, va, &t->frame_arena, &f);
	if (!has_va || (kind == TUI_AROUND_CALLS && !is_func)) {
		tui_say(t, true, has_va ? "calls are of a function, and here is none" : "this row has no address");
		return;
	}
	/* In a body that nothing refers to, the function. */
	if (is_func && (kind == TUI_AROUND_CALLS || !ses_name_at(t->snap, va, &t->frame_arena).len))
		va = f.addr;
	tui_push_past(t);
	t->future.cnt = 0;
	t->focus_functions = false;
	t->is_split = false;
	t->main_view = TUI_V_GRAPH;
	g->is_sticky = false;
	g->is_placed = true;
	g->kind = (uint8_t)kind;
	g->root = g->va = va;
	g->off = 0;
	g->want_centre = true;
	tui_say(t, false, "Enter goes there, ,c and ,x draw around the name at the cursor, Space its blocks");
}

static void graph_status(struct tui *t, struct cells_pen *p)
{
	const struct tui_graph *g = &t->graph;
	if (g->kind == TUI_AROUND_NONE || !g->f || g->f->kind == TUI_AROUND_NONE)
		return;
	p->st.fg = ROLE_BAR_NAME;
	cells_printf(p, " of %s: %u names", g->kind == TUI_AROUND_CALLS ? "calls" : "references", g->f->cnt);
	p->st.fg = ROLE_BAR_WARN;
	if (g->f->more)
		cells_printf(p, ", ! %llu edges left out", (unsigned long long)g->f->more);
}

bool tui_graph_can(struct tui *t, uint64_t va)
{
	struct ses_func f;
	return ses_func_at(t->snap, va, &t->frame_arena, &f);
}

void tui_graph_toggle(struct tui *t)
{
	uint64_t va;
	if (t->main_view == TUI_V_GRAPH && !t->focus_functions && t->graph.kind == TUI_AROUND_NONE) {
		t->graph.is_sticky = false;
		tui_show_view(t, TUI_V_LISTING);
		return;
	}
	if (!tui_focus_va(t, &va) || !tui_graph_can(t, va)) {
		tui_say(t, true, "a graph is of a function, and here is none");
		return;
	}
	t->graph.is_sticky = true;
	tui_show_view(t, TUI_V_GRAPH);
	t->focus_functions = false;
	graph_go(t, va);
}

/* The window's place is kept as how far it is from the block under the cursor. */
uint64_t tui_graph_spot(const struct tui *t)
{
	const struct tui_graph *g = &t->graph;
	uint32_t b;
	if (!g->f || !tui_graph_block_at(g->f, g->va, &b))
		return UINT64_MAX;
	uint32_t dx = (uint32_t)(box_of(g, b)->x - g->x);
	uint32_t dy = (uint32_t)(box_of(g, b)->y - g->y);
	return (uint64_t)dx << 32 | dy;
}

void tui_graph_restore(struct tui *t, uint64_t va, uint64_t spot)
{
	struct tui_graph *g = &t->graph;
	graph_go(t, va);
	g->is_sticky = true;
	if (!ready(t) || spot == UINT64_MAX)
		return;
	const struct graph_box *b = box_of(g, current(g));
	g->x = b->x - (int32_t)(uint32_t)(spot >> 32);
	g->y = b->y - (int32_t)(uint32_t)spot;
	g->want_centre = false;
	g->want_sight = true;
}

bool tui_graph_operand(struct tui *t, uint64_t *ret)
{
	const struct ses_head *h = t->graph.kind == TUI_AROUND_NONE ? tui_graph_head(t, t->graph.va) : NULL;
	const struct ses_span *s = h && h->has_target ? tui_line_token(h, t->graph.off) : NULL;
	if (!s || (s->kind != SES_SPAN_NAME && s->kind != SES_SPAN_ADDR))
		return false;
	*ret = h->target;
	return true;
}

bool tui_graph_block(const struct tui *t, uint64_t *ret_va, uint64_t *ret_end)
{
	const struct tui_graph *g = &t->graph;
	uint32_t b;
	if (!g->f || g->f_snap != t->snap || g->f->kind != TUI_AROUND_NONE || !tui_graph_block_at(g->f, g->va, &b))
		return false;
	*ret_va = g->f->blocks[b].va;
	*ret_end = g->f->blocks[b].end;
	return true;
}

static bool graph_va(struct tui *t, uint64_t *ret)
{
	*ret = t->graph.va;
	return t->graph.is_placed;
}

const struct tui_view_ops tui_graph_ops = {
	.name = "graph",
	.where = TUI_IN_GRAPH,
	.draw = graph_draw,
	.act = graph_act,
	.scroll = graph_scroll,
	.click = graph_click,
	.go = graph_go,
	.va = graph_va,
	.status = graph_status,
};
