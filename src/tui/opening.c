/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/opening.h"

#include "session/project.h"
#include "session/ses_remote.h"
#include "tui/tui_int.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The tables of a file of this size are read faster than a frame is shown. */
#define SMALL_LEN (2u << 20)
#define GRACE_MS 5

static const char *said(const char *option)
{
	return strcmp(option, "auto") ? option : NULL;
}

/* Bytes of a file of another machine: shown with the next frame, which the loop draws for it. */
static void on_progress(void *ctx, const struct ses_progress *p)
{
	struct tui_opening *o = ctx;
	uint64_t one = 1, was = atomic_load(&o->done);
	if (!p->total || (p->done / (p->total / 200 + 1) == was / (p->total / 200 + 1) && atomic_load(&o->total)))
		return;
	atomic_store(&o->done, p->done);
	atomic_store(&o->total, p->total);
	ssize_t n = write(o->event_fd, &one, sizeof(one));
	(void)n;
}

static void open_now(struct tui_opening *o)
{
	struct ses_opts opts = {.background = true, .may_connect = true, .cancel = &o->cancel, .progress = on_progress, .progress_ctx = o,
				.processor = said(tui_load_processor(&o->load)), .base = said(tui_load_base(&o->load)),
				.format = said(tui_load_format(&o->load))};
	o->err = o->project ? ses_project_get(o->project, o->bin, &o->ses) : ses_open(o->path, &opts, &o->ses);
}

static void *opening_main(void *arg)
{
	struct tui_opening *o = arg;
	uint64_t one = 1;
	open_now(o);
	atomic_store(&o->is_done, true);
	ssize_t n = write(o->event_fd, &one, sizeof(one));
	(void)n;
	return NULL;
}

void tui_opening_start(struct tui_opening *o, const char *path, int event_fd)
{
	struct stat st;
	pthread_t thread;
	o->path = path;
	o->event_fd = event_fd;
	bool is_large = stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > (off_t)SMALL_LEN && access(path, R_OK) == 0;
	o->size = is_large ? (uint64_t)st.st_size : 0;
	if ((is_large || ses_is_remote(path)) && event_fd >= 0 && pthread_create(&thread, NULL, opening_main, o) == 0) {
		struct pollfd p = {.fd = event_fd, .events = POLLIN};
		o->thread = (unsigned long)thread;
		o->has_thread = true;
		poll(&p, 1, GRACE_MS);
		return;
	}
	open_now(o);
	atomic_store(&o->is_done, true);
}

bool tui_opening_end(struct tui_opening *o, bool wait)
{
	if (!wait && !atomic_load(&o->is_done))
		return false;
	if (wait)
		atomic_store(&o->cancel, true);
	if (o->has_thread)
		pthread_join((pthread_t)o->thread, NULL);
	o->has_thread = false;
	return true;
}

bool tui_opening_ask(struct tui_opening *o)
{
	if (!o->err || o->project || (o->err->kind != ERR_UNSUPPORTED && !o->load.is_raw) || o->err->kind == ERR_NOMEM)
		return false;
	const char *slash = strrchr(o->path, '/');
	const char *text = o->err->text ? o->err->text : err_kind_name(o->err->kind);
	size_t len = strlen(o->path);
	/* The title has the name. */
	if (!strncmp(text, o->path, len) && text[len] == ':')
		text += len + 2;
	snprintf(o->load.why, sizeof(o->load.why), "%s", text);
	snprintf(o->title, sizeof(o->title), "Open %s as", slash && slash[1] ? slash + 1 : o->path);
	o->load.is_raw = true;
	o->is_asking = true;
	return true;
}

/* A key for the dialog; true when the person leaves. */
static bool ask_key(struct tui_opening *o, const struct term_ev *ev)
{
	enum tui_load_end end = tui_load_key(&o->load, ev->key, ev->mods);
	if (end != TUI_LOAD_TAKEN)
		return end == TUI_LOAD_LEFT;
	err_free(take_ptr(o->err));
	o->is_asking = false;
	atomic_store(&o->is_done, false);
	tui_opening_start(o, o->path, o->event_fd);
	return false;
}

bool tui_opening_key(struct tui_opening *o, const struct term_ev *ev)
{
	if (ev->type != TERM_EV_KEY)
		return false;
	if (o->is_asking)
		return ask_key(o, ev);
	enum tui_action a = tui_key_action(o->map, ev->key, ev->mods, TUI_IN_LISTING);
	if (a == TUI_CANCEL || (a == TUI_QUIT && !o->key_cnt))
		return true;
	if (o->key_cnt < TUI_OPENING_KEY_MAX)
		o->keys[o->key_cnt++] = *ev;
	return false;
}

static struct cells_pen pen_at(struct tui_opening *o, struct cells_rect r, enum term_role fg, enum term_role bg)
{
	cells_fill(&o->grid, r, tui_style(fg, bg));
	return (struct cells_pen){.g = &o->grid, .x = r.x, .y = r.y, .end = r.x + r.w, .st = tui_style(fg, bg),
				  .escape_fg = ROLE_ESCAPE};
}

static void draw_header(struct tui_opening *o)
{
	char size[32];
	const char *slash = strrchr(o->path, '/');
	struct cells_pen p = pen_at(o, (struct cells_rect){0, 0, o->grid.w, 1}, ROLE_BAR_KEY, ROLE_BG_BAR);
	p.st.attr = CELLS_BOLD;
	cells_str(&p, " ");
	cells_str(&p, slash && slash[1] ? slash + 1 : o->path);
	p.st.attr = 0;
	p.st.fg = ROLE_BAR;
	uint64_t done = atomic_load(&o->done), total = atomic_load(&o->total);
	cells_printf(&p, "  %s  ", tui_size(total ? total : o->size, size, sizeof(size)));
	p.st.fg = ROLE_BAR_WARN;
	if (total)
		cells_printf(&p, "fetching, %u%%", (unsigned)((double)done * 100 / (double)total));
	else
		cells_str(&p, ses_is_remote(o->path) ? "connecting" : "identifying");
}

/* Rows that are not there yet, where they will be. */
static void draw_panes(struct tui_opening *o)
{
	struct cells *g = &o->grid;
	int h = MAX(g->h - 3, 1);
	int w = tui_functions_width(g->w);
	uint32_t dots = cells_glyph(g, GLYPH_ELLIPSIS);
	for (int y = 1; y <= h && y < g->h; y++) {
		if (w && y > 1)
			cells_put(g, 2, y, dots, tui_style(ROLE_DIM, ROLE_BG));
		if (w)
			cells_put(g, w - 1, y, cells_glyph(g, GLYPH_DOT), tui_style(ROLE_BORDER, ROLE_BG));
		cells_put(g, w + 1, y, dots, tui_style(ROLE_DIM, ROLE_BG));
		cells_put(g, g->w - 1, y, cells_glyph(g, GLYPH_DOT), tui_style(ROLE_BORDER, ROLE_BG));
	}
	if (w) {
		struct cells_pen p = pen_at(o, (struct cells_rect){0, 1, w, 1}, ROLE_TITLE, ROLE_BG);
		cells_str(&p, " Functions");
	}
}

bool tui_opening_draw(struct tui_opening *o, int w, int h, bool is_ascii)
{
	if (!cells_resize(&o->grid, MAX(w, 1), MAX(h, 1)))
		return false;
	o->grid.is_ascii = is_ascii;
	cells_fill(&o->grid, (struct cells_rect){0, 0, o->grid.w, o->grid.h}, tui_style(ROLE_TEXT, ROLE_BG));
	draw_panes(o);
	draw_header(o);
	if (o->grid.h > 3) {
		struct cells_pen p = pen_at(o, (struct cells_rect){0, o->grid.h - 2, o->grid.w, 1}, ROLE_BAR_KEY, ROLE_BG_BAR);
		p.st.attr = CELLS_BOLD;
		cells_str(&p, " listing");
		p.st.attr = 0;
		p.st.fg = ROLE_BAR_DIM;
		cells_str(&p, "  reading the file's tables; what you type is kept, Ctrl+C leaves");
		p = pen_at(o, (struct cells_rect){0, o->grid.h - 1, o->grid.w, 1}, ROLE_DIM, ROLE_BG);
		tui_draw_hints(&p, o->map, TUI_IN_LISTING, 0);
	}
	o->cur_x = -1;
	if (o->is_asking)
		tui_load_draw(&o->load, &o->grid, o->title, &o->cur_x, &o->cur_y);
	return true;
}

void tui_opening_fini(struct tui_opening *o)
{
	cells_fini(&o->grid);
	err_free(o->err);
	o->err = NULL;
}
