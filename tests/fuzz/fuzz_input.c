/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a terminal sends: bytes through the input parser into the workbench (over a made-up session) and its frames
 * through the writer. Beyond not crashing: the events do not depend on how the bytes were cut, the cursor stays on
 * the screen, and no frame sends the terminal a control character that is not ours.
 */
#include "fuzz.h"

#include "base/buf.h"
#include "lib/fake_session.h"
#include "tui/term/caps.h"
#include "tui/term/writer.h"
#include "tui/tui_int.h"

#include <stdlib.h>
#include <string.h>

struct sink {
	struct tui *tui;
	struct term_caps caps;
	struct buf log;
	unsigned key_cnt;
};

static void log_event(void *ctx, const struct term_ev *ev)
{
	struct sink *s = ctx;
	buf_printf(&s->log, "%d %x %u %d %d %d %zu ", ev->type, ev->key, ev->mods, ev->mouse, ev->x, ev->y, ev->text_len);
}

static void take_event(void *ctx, const struct term_ev *ev)
{
	struct sink *s = ctx;
	s->key_cnt += ev->type == TERM_EV_KEY;
	if (ev->type == TERM_EV_REPLY)
		term_caps_reply(&s->caps, ev);
	else
		tui_event(s->tui, ev);
}

static void check_split(const uint8_t *bytes, size_t len)
{
	struct term_input whole = {0};
	struct term_input cut = {0};
	struct sink a = {0};
	struct sink b = {0};
	term_input_feed(&whole, bytes, len, log_event, &a);
	for (size_t i = 0; i < len; i++)
		term_input_feed(&cut, bytes + i, 1, log_event, &b);
	if (a.log.len != b.log.len || (a.log.len && memcmp(a.log.data, b.log.data, a.log.len)))
		abort();
	buf_fini(&a.log);
	buf_fini(&b.log);
}

/* Our frames hold escape sequences, carriage returns and line feeds, and no other control character. */
static void check_frame(const struct buf *out)
{
	for (size_t i = 0; i < out->len; i++) {
		uint8_t ch = (uint8_t)out->data[i];
		if ((ch < 0x20 && ch != 0x1b && ch != '\r' && ch != '\n') || ch == 0x7f)
			abort();
		if (ch == 0x1b && (i + 1 == out->len || out->data[i + 1] != '['))
			abort();
	}
}

static void draw(struct tui *t, struct term_writer *w, struct buf *out)
{
	tui_draw(t);
	if (t->cur_x >= t->grid.w || t->cur_y >= t->grid.h)
		abort();
	out->len = 0;
	w->scroll_hint = t->scroll_hint;
	if (!term_writer_frame(w, &t->grid, t->cur_x, t->cur_y, out))
		abort();
	check_frame(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct tui *t = calloc(1, sizeof(*t));
	struct ses *s = fake_open(60);
	struct term_input in = {0};
	struct term_writer w = {.depth = TERM_TRUE};
	struct sink sink = {.tui = t};
	struct buf out = {0};
	check_split(bytes, len);
	if (!t || !tui_init(t, s, len ? 20 + bytes[0] % 120 : 80, len > 1 ? 6 + bytes[1] % 40 : 24))
		abort();
	term_theme(&w.palette, 0);
	draw(t, &w, &out);
	for (size_t i = 0; i < len; i += 8) {
		term_input_feed(&in, bytes + i, MIN(8, len - i), take_event, &sink);
		draw(t, &w, &out);
	}
	term_input_timeout(&in, take_event, &sink);
	draw(t, &w, &out);
	fuzz_accepted += sink.key_cnt > 0;
	fuzz_rejected += sink.key_cnt == 0;
	buf_fini(&out);
	term_writer_fini(&w);
	tui_fini(t);
	free(t);
	ses_close(s);
	return 0;
}
