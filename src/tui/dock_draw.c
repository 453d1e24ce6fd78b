/* SPDX-License-Identifier: Apache-2.0 */
/* The dock at the right: position, registers with the changed ones marked, the stack, who called, what it prints. */
#include "tui/dock.h"

#include <stdio.h>
#include <string.h>

enum { DOCK_W = 34, MAIN_MIN_W = 46 };

int tui_dock_width(const struct tui *t, int w)
{
	const struct tui_dock *d = t->dock;
	bool is_wanted = d && (d->trace || d->look || d->running);
	return is_wanted && w >= DOCK_W + MAIN_MIN_W ? DOCK_W : 0;
}

static struct cells_pen next_row(struct tui *t, struct cells_rect r, int *row, enum term_role fg)
{
	return tui_pen(t, r, (*row)++, fg, ROLE_BG);
}

static void title(struct tui *t, struct cells_rect r, int *row, const char *text)
{
	if (*row >= r.h)
		return;
	struct cells_pen p = next_row(t, r, row, ROLE_TITLE);
	cells_str(&p, text);
}

static void put_reg(struct tui *t, struct cells_rect r, int *row, const struct ses_debug_reg *g)
{
	if (*row >= r.h)
		return;
	struct cells_pen p = next_row(t, r, row, g->has_changed ? ROLE_WARN : ROLE_REG);
	cells_printf(&p, "%c%-8.10s ", g->has_changed ? '*' : ' ', g->name);
	if (g->is_known)
		cells_printf(&p, "%016llx", (unsigned long long)g->value);
	else
		cells_str(&p, "??");
}

static void put_words(struct tui *t, struct cells_rect r, int *row, const struct ses_debug_word *w, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt && *row < r.h; i++) {
		struct cells_pen p = next_row(t, r, row, ROLE_NUMBER);
		cells_printf(&p, " +%02x ", i * 8);
		if (!w[i].is_known) {
			cells_str(&p, "??");
			continue;
		}
		cells_printf(&p, "%llx ", (unsigned long long)w[i].value);
		p.st.fg = ROLE_NAME;
		cells_text(&p, w[i].where.s, w[i].where.len);
	}
}

static void draw_timeline(struct tui *t, struct cells_rect r, int row, uint64_t step, uint64_t total)
{
	struct cells_pen p = tui_pen(t, r, row, ROLE_DIM, ROLE_BG);
	int w = r.w - 2, at = total > 1 ? (int)((double)step * (w - 1) / (double)(total - 1)) : 0;
	for (int i = 0; i < w; i++) {
		p.st.fg = i == at ? ROLE_KEY : ROLE_DIM;
		cells_str(&p, i == at ? "#" : "-");
	}
}

static void draw_trace(struct tui *t, struct cells_rect r)
{
	struct tui_dock *d = t->dock;
	struct ses_tenet_reg *regs;
	uint32_t cnt;
	int row = 0;
	char now[32], all[32], text[80];
	uint64_t total = ses_tenet_steps(d->trace), sp = 0;
	bool has_sp = false;
	uint64_t va;
	snprintf(text, sizeof(text), "step %s of %s", tui_number(d->step, now), tui_number(total, all));
	title(t, r, &row, text);
	/* In a library, where no view shows it. */
	if (!ses_tenet_va(d->trace, d->step, &va) && row < r.h) {
		struct cells_pen p = next_row(t, r, &row, ROLE_DIM);
		cells_str(&p, "not in this program");
	}
	if (row < r.h)
		draw_timeline(t, r, row++, d->step, total);
	struct err *e = ses_tenet_regs(d->trace, d->step, &t->frame_arena, &regs, &cnt);
	for (uint32_t i = 0; !e && i < cnt; i++) {
		struct ses_debug_reg g = {regs[i].name, regs[i].value, regs[i].is_known, regs[i].has_changed};
		put_reg(t, r, &row, &g);
		if ((!strcmp(g.name, "rsp") || !strcmp(g.name, "esp") || !strcmp(g.name, "sp")) && g.is_known) {
			sp = g.value;
			has_sp = true;
		}
	}
	err_free(e);
	title(t, r, &row, "stack");
	struct ses_debug_word words[DOCK_WORDS] = {{0}};
	for (uint32_t i = 0; i < DOCK_WORDS && has_sp; i++) {
		uint8_t bytes[8];
		bool known[8];
		ses_tenet_live_bytes(d->trace, d->step, sp + 8 * i, 8, bytes, known);
		words[i].is_known = true;
		words[i].where = (struct ses_text){"", 0};
		for (int k = 8; k--;) {
			words[i].is_known &= known[k];
			words[i].value = words[i].value << 8 | bytes[k];
		}
	}
	put_words(t, r, &row, words, DOCK_WORDS);
}

/* The last lines that it printed, in the rows that are left. */
static void draw_said(struct tui *t, struct cells_rect r, int row)
{
	struct tui_dock *d = t->dock;
	char said[DOCK_SAID];
	pthread_mutex_lock(&d->lock);
	size_t len = d->said_len;
	memcpy(said, d->said, len);
	pthread_mutex_unlock(&d->lock);
	int rows = r.h - row - 1;
	if (!len || rows < 1)
		return;
	size_t end = len - (said[len - 1] == '\n'), from = end;
	for (int n = 0; from; from--)
		if (said[from - 1] == '\n' && ++n == rows)
			break;
	title(t, r, &row, "prints");
	while (from < end && row < r.h) {
		size_t n = 0;
		while (from + n < end && said[from + n] != '\n')
			n++;
		struct cells_pen p = next_row(t, r, &row, ROLE_TEXT);
		cells_str(&p, " ");
		cells_text(&p, said + from, n - (n && said[from + n - 1] == '\r'));
		from += n + 1;
	}
}

/* Those of x86 say nothing to nearly everybody, and take the room that callers need. */
static bool is_segment(const char *reg)
{
	return strlen(reg) == 2 && reg[1] == 's' && strchr("cdefgs", reg[0]);
}

static void draw_debug(struct tui *t, struct cells_rect r)
{
	struct tui_dock *d = t->dock;
	const struct dock_look *l = d->look;
	int row = 0;
	if (d->running)
		title(t, r, &row, "runs (Ctrl+C stops it)");
	if (l && l->state.len && row < r.h) {
		struct cells_pen p = next_row(t, r, &row, ROLE_TITLE);
		cells_text(&p, l->state.data, l->state.len);
	}
	for (uint32_t i = 0; l && i < l->reg_cnt; i++)
		if (!is_segment(l->regs[i].name))
			put_reg(t, r, &row, &l->regs[i]);
	if (l && l->word_cnt) {
		title(t, r, &row, "stack");
		put_words(t, r, &row, l->words, l->word_cnt);
		title(t, r, &row, "callers");
	}
	for (uint32_t i = 0; l && i < l->frame_cnt && row < r.h; i++) {
		struct cells_pen p = next_row(t, r, &row, ROLE_NAME);
		cells_printf(&p, " %u ", i);
		cells_text(&p, l->frames[i].where.s, l->frames[i].where.len);
	}
	draw_said(t, r, row);
}

void tui_dock_draw(struct tui *t, struct cells_rect r)
{
	cells_fill(&t->grid, r, tui_style(ROLE_TEXT, ROLE_BG));
	for (int i = 0; i < r.h; i++)
		cells_put(&t->grid, r.x, r.y + i, cells_glyph(&t->grid, GLYPH_V), tui_style(ROLE_BORDER, ROLE_BG));
	struct cells_rect in = {r.x + 1, r.y, r.w - 1, r.h};
	if (t->dock->trace && !t->dock->look && !t->dock->running)
		draw_trace(t, in);
	else
		draw_debug(t, in);
}
