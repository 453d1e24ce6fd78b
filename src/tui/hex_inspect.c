/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/*
 * The data inspector: what the bytes at the hex view's cursor are as integers of both signs and byte orders, floating-point
 * numbers, a pointer, a string, a time. Where fewer bytes are mapped than a reading needs there is a '-'.
 */
#define READ_MAX 96
#define TWO_W 60 /* from it on two columns of rows, where one is not enough */

struct inspector {
	struct tui *t;
	struct cells_rect r;
	int row, rows, columns;
	uint8_t bytes[READ_MAX];
	uint32_t cnt;           /* bytes that follow each other from the cursor on */
};

/* The pen for the next row's value, its label written; false when there is no room. */
static bool next_row(struct inspector *in, const char *label, struct cells_pen *ret)
{
	int w = in->r.w / in->columns;
	int column = in->row / in->rows;
	struct cells_rect r = {in->r.x + column * w, in->r.y, w - 1, 1};
	if (column >= in->columns)
		return false;
	*ret = tui_pen(in->t, r, in->row % in->rows, ROLE_KEY, ROLE_BG_DIALOG);
	in->row++;
	cells_printf(ret, " %-9s ", label);
	ret->st.fg = ROLE_TEXT;
	return true;
}

static uint64_t number(const struct inspector *in, uint32_t len, bool is_big)
{
	uint64_t v = 0;
	for (uint32_t i = 0; i < len; i++)
		v |= (uint64_t)in->bytes[i] << 8 * (is_big ? len - 1 - i : i);
	return v;
}

static int64_t as_signed(uint64_t v, uint32_t len)
{
	uint64_t sign = 1ull << (8 * len - 1);
	return (int64_t)((v ^ sign) - sign);
}

/* Both byte orders of a number, which are one for a single byte; the big-endian one on a row of its own when it is long. */
static void both(struct inspector *in, const char *label, uint32_t len, void (*put)(struct cells_pen *p, uint64_t v, uint32_t len))
{
	char be[16];
	struct cells_pen p;
	snprintf(be, sizeof(be), "%s be", label);
	bool is_long = len == 8;
	if (!next_row(in, label, &p))
		return;
	if (in->cnt < len) {
		cells_str(&p, "-");
		return;
	}
	put(&p, number(in, len, false), len);
	if (len == 1 || (is_long && !next_row(in, be, &p)))
		return;
	if (!is_long)
		cells_str(&p, "  be ");
	put(&p, number(in, len, true), len);
}

static void put_unsigned(struct cells_pen *p, uint64_t v, uint32_t len)
{
	cells_printf(p, "%" PRIu64, v);
}

static void put_signed(struct cells_pen *p, uint64_t v, uint32_t len)
{
	cells_printf(p, "%" PRId64, as_signed(v, len));
}

static void put_float(struct cells_pen *p, uint64_t v, uint32_t len)
{
	uint32_t v32 = (uint32_t)v;
	float f;
	double d;
	memcpy(&f, &v32, sizeof(f));
	memcpy(&d, &v, sizeof(d));
	cells_printf(p, "%.*g", len == 4 ? 7 : 15, len == 4 ? (double)f : d);
}

static void numbers(struct inspector *in)
{
	char label[16];
	for (uint32_t len = 1; len <= 8; len *= 2) {
		snprintf(label, sizeof(label), "u%u", 8 * len);
		both(in, label, len, put_unsigned);
		snprintf(label, sizeof(label), "i%u", 8 * len);
		both(in, label, len, put_signed);
	}
	both(in, "float", 4, put_float);
	both(in, "double", 8, put_float);
}

static bool is_big(const struct tui *t)
{
	return t->info.endian.len && t->info.endian.s[0] == 'b';
}

static void pointer(struct inspector *in)
{
	struct cells_pen p;
	struct tui *t = in->t;
	uint32_t len = t->info.bits == 32 ? 4 : 8;
	if (!next_row(in, "pointer", &p))
		return;
	uint64_t v = number(in, len, is_big(t));
	if (in->cnt < len || !ses_is_mapped(t->snap, v)) {
		cells_str(&p, in->cnt < len ? "-" : "to nothing that is mapped");
		return;
	}
	struct ses_text where = ses_where(t->snap, v, &t->frame_arena);
	cells_printf(&p, "%" PRIx64 " ", v);
	p.st.fg = ROLE_NAME;
	cells_text(&p, where.s, where.len);
}

static void string(struct inspector *in)
{
	struct cells_pen p;
	if (!next_row(in, "string", &p))
		return;
	size_t len = strnlen((const char *)in->bytes, in->cnt);
	p.st.fg = ROLE_STRING;
	cells_str(&p, "\"");
	cells_text(&p, (const char *)in->bytes, len);
	cells_str(&p, len < in->cnt ? "\"" : "...");
}

static void point_in_time(struct inspector *in, uint32_t len)
{
	struct cells_pen p;
	struct tm tm;
	char text[64];
	if (!next_row(in, len == 4 ? "time32" : "time64", &p))
		return;
	time_t at = (time_t)as_signed(number(in, len, is_big(in->t)), len);
	/* Years a calendar of ours has names for. */
	bool is_sane = in->cnt >= len && gmtime_r(&at, &tm) && tm.tm_year > -1900 && tm.tm_year < 8100;
	if (is_sane && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm))
		cells_str(&p, text);
	else
		cells_str(&p, "-");
}

static void original(struct inspector *in)
{
	struct ses_fact patch;
	struct cells_pen p;
	uint8_t was;
	if (!ses_patch_at(in->t->snap, in->t->hex.va, &patch) || !next_row(in, "patched", &p))
		return;
	ses_original_bytes(in->t->snap, in->t->hex.va, 1, &was, NULL);
	p.st.fg = ROLE_WARN;
	cells_printf(&p, "* the file has %02x; %u bytes from %" PRIx64, was, patch.value.len / 2, patch.addr);
}

static void read_bytes(struct inspector *in)
{
	bool mapped[READ_MAX];
	uint64_t va = in->t->hex.is_editing ? in->t->hex.edit_va : in->t->hex.va;
	ses_bytes(in->t->snap, va, READ_MAX, in->bytes, mapped);
	while (in->cnt < READ_MAX && mapped[in->cnt]) {
		tui_hex_typed(in->t, va + in->cnt, &in->bytes[in->cnt]);
		in->cnt++;
	}
}

void tui_hex_inspect_draw(struct tui *t, struct cells_rect r)
{
	struct inspector in = {.t = t, .r = {r.x, r.y + 1, r.w, r.h - 1}, .rows = r.h - 1, .columns = r.w >= TWO_W && r.h <= TUI_INSPECT_H ? 2 : 1};
	cells_fill(&t->grid, r, tui_style(ROLE_TEXT, ROLE_BG_DIALOG));
	struct cells_pen p = tui_pen(t, r, 0, ROLE_TITLE, ROLE_BG_DIALOG);
	p.st.attr = CELLS_BOLD;
	cells_str(&p, " Inspector ");
	p.st = tui_style(ROLE_DIM, ROLE_BG_DIALOG);
	cells_str(&p, "be: big-endian, i hides");
	read_bytes(&in);
	original(&in);
	numbers(&in);
	pointer(&in);
	string(&in);
	point_in_time(&in, 4);
	point_in_time(&in, 8);
}
