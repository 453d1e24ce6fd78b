/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two things the workbench's keys are measured beside.
 *
 *   bench_tui page FILE   PAGE_NS PAGES: a page of the listing at 200x60 inside a process: the lines fetched, the frame
 *                         painted, its bytes made; median of the wall time of PAGES pages
 *   bench_tui line FILE   the same of one line scrolled
 *   bench_tui c FILE      the same of one line of C
 *   bench_tui echo N      a program that answers each byte of a raw terminal with N bytes, as a frame would be
 */
#include "tui/term/writer.h"
#include "tui/tui_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { PAGES = 400, W = 200, H = 60 };

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static bool draw(struct tui *t, struct term_writer *w, struct buf *out)
{
	tui_draw(t);
	out->len = 0;
	w->scroll_hint = t->scroll_hint;
	return term_writer_frame(w, &t->grid, t->cur_x, t->cur_y, out);
}

static int frames(const char *path, enum tui_action view, enum tui_action move)
{
	static struct tui t;
	static uint64_t cost[PAGES];
	struct term_writer w = {.depth = TERM_TRUE, .has_margins = true, .has_bce = true};
	struct ses_opts opts = {0};
	struct buf out = {0};
	struct ses *s;
	struct err *e = ses_open(path, &opts, &s);
	if (e || !tui_init(&t, s, W, H) || !draw(&t, &w, &out)) {
		fprintf(stderr, "bench_tui: %s: %s\n", path, e ? e->text : "out of memory");
		return 1;
	}
	term_theme(&w.palette, 0);
	tui_act(&t, view);
	for (int i = -80; i < PAGES; i++) {
		uint64_t began = now_ns();
		tui_act(&t, move);
		bool is_good = draw(&t, &w, &out);
		if (!is_good)
			return 1;
		if (i >= 0)
			cost[i] = now_ns() - began;
	}
	qsort(cost, PAGES, sizeof(cost[0]), by_value);
	printf("%" PRIu64 " %d\n", cost[PAGES / 2], PAGES);
	buf_fini(&out);
	term_writer_fini(&w);
	tui_fini(&t);
	ses_close(s);
	return 0;
}

static int echo(size_t len)
{
	struct termios raw;
	char key;
	char *bytes = malloc(len + 1);
	if (!bytes || tcgetattr(0, &raw))
		return 1;
	cfmakeraw(&raw);
	tcsetattr(0, TCSANOW, &raw);
	memset(bytes, 'x', len);
	while (read(0, &key, 1) == 1) {
		for (size_t done = 0; done < len;) {
			ssize_t n = write(1, bytes + done, len - done);
			if (n <= 0)
				return 1;
			done += (size_t)n;
		}
	}
	free(bytes);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "page"))
		return frames(argv[2], TUI_NONE, TUI_PAGE_DOWN);
	if (argc == 3 && !strcmp(argv[1], "line"))
		return frames(argv[2], TUI_NONE, TUI_DOWN);
	if (argc == 3 && !strcmp(argv[1], "c"))
		return frames(argv[2], TUI_VIEW_C, TUI_DOWN);
	if (argc == 3 && !strcmp(argv[1], "echo"))
		return echo(strtoul(argv[2], NULL, 10));
	fprintf(stderr, "usage: bench_tui page FILE | line FILE | c FILE | echo N\n");
	return 2;
}
