/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Copying goes two ways at once: to the clipboard through the terminal, which many terminals and tmux ignore without a
 * word, and to a file, which the status line names.
 */
#define CLIP_MAX 100000
#define COPY_BYTES_MAX 65536
#define COPY_LINES_MAX 65536

static void add_base64(struct buf *out, const uint8_t *s, size_t len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (size_t i = 0; i < len; i += 3) {
		uint32_t v = (uint32_t)s[i] << 16 | (i + 1 < len ? (uint32_t)s[i + 1] << 8 : 0) | (i + 2 < len ? s[i + 2] : 0);
		buf_add_ch(out, digits[v >> 18]);
		buf_add_ch(out, digits[v >> 12 & 63]);
		buf_add_ch(out, i + 1 < len ? digits[v >> 6 & 63] : '=');
		buf_add_ch(out, i + 2 < len ? digits[v & 63] : '=');
	}
}

/* The file's name in `path`; false when there is no folder of the person's own for it. */
static bool file_name(char *path, size_t len)
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	const char *home = getenv("HOME");
	if (run && *run == '/')
		return (size_t)snprintf(path, len, "%s/scry-copy.txt", run) < len;
	if (!home || *home != '/' || (size_t)snprintf(path, len, "%s/.cache", home) >= len)
		return false;
	mkdir(path, 0700);
	return (size_t)snprintf(path, len, "%s/.cache/scry-copy.txt", home) < len;
}

static bool write_file(const char *path, const char *s, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	size_t done = 0;
	while (done < len) {
		ssize_t n = write(fd, s + done, len - done);
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return close(fd) == 0 && done == len;
}

void tui_copy_text(struct tui *t, const char *s, size_t len)
{
	char path[512];
	bool has_file = file_name(path, sizeof(path)) && write_file(path, s, len);
	bool fits = len <= CLIP_MAX;
	if (fits) {
		t->clip.len = 0;
		buf_add_str(&t->clip, "\x1b]52;c;");
		add_base64(&t->clip, (const uint8_t *)s, len);
		buf_add_str(&t->clip, "\x1b\\");
	}
	if (has_file)
		tui_say(t, false, "copied %zu bytes%s %s", len, fits ? "; also in" : ", too much for the terminal's clipboard, into", path);
	else
		tui_say(t, !fits, fits ? "copied %zu bytes" : "%zu bytes are too much for the terminal's clipboard", len);
}

static void add_list_row(struct tui *t, struct buf *out)
{
	struct tui_list *l = &t->lists[tui_focus(t)];
	const struct tui_row *row = tui_list_row(t, l);
	for (int i = 0; row && i < l->ops->column_cnt; i++) {
		if (i)
			buf_add_ch(out, '\t');
		if (row->col[i].s)
			buf_add(out, row->col[i].s, row->col[i].len);
	}
}

static bool add_bytes(struct tui *t, struct buf *out, const struct ses_head *h)
{
	uint32_t len = MIN(h->size, COPY_BYTES_MAX);
	uint8_t *bytes = arena_alloc(&t->frame_arena, len ? len : 1);
	bool *mapped = arena_alloc(&t->frame_arena, len ? len : 1);
	if (!bytes || !mapped)
		return false;
	ses_bytes(t->snap, h->va, len, bytes, mapped);
	for (uint32_t i = 0; i < len; i++)
		buf_printf(out, mapped[i] ? "%s%02x" : "%s??", i ? " " : "", bytes[i]);
	return true;
}

static void add_line(struct buf *out, const struct ses_head *h)
{
	buf_printf(out, "%llx  %.*s", (unsigned long long)h->va, (int)h->text.len, h->text.s);
	if (h->comment.len)
		buf_printf(out, "  ; %.*s", (int)h->comment.len, h->comment.s);
}

static bool add_head(struct tui *t, struct buf *out, enum tui_action a)
{
	struct ses_head *h;
	uint32_t cnt = 0;
	uint64_t va;
	struct ses_call call = tui_call(t, 0);
	if (!tui_focus_va(t, &va))
		return false;
	uint32_t sub = tui_focus(t) == TUI_V_LISTING && t->listing.sub ? t->listing.sub : SES_SUB_ITEM;
	struct ses_at at = {.va = va, .sub = sub, .count = 1};
	struct err *e = ses_heads(t->snap, &call, &at, &t->frame_arena, &h, &cnt);
	if (e || !cnt) {
		err_free(e);
		return false;
	}
	if (a == TUI_COPY_BYTES)
		return add_bytes(t, out, h);
	add_line(out, h);
	return true;
}

/* The selected lines, or the bytes from the first to the last of them; what is too much is said. */
static bool add_selection(struct tui *t, struct buf *out, enum tui_action a)
{
	struct tui_place first;
	struct tui_place last;
	struct ses_head *h;
	uint32_t cnt = 0;
	struct ses_call call = tui_call(t, 0);
	tui_select_range(t, &first, &last);
	struct ses_at at = {.va = first.va, .sub = first.sub ? first.sub : SES_SUB_ITEM, .count = COPY_LINES_MAX + 1};
	struct err *e = ses_heads(t->snap, &call, &at, &t->frame_arena, &h, &cnt);
	uint32_t i = 0;
	for (; !e && i < cnt && i < COPY_LINES_MAX && tui_select_has(t, h[i].va, h[i].sub); i++) {
		bool is_item = !h[i].sub;
		if (a == TUI_COPY_LINE)
			add_line(out, &h[i]);
		else if (is_item && !add_bytes(t, out, &h[i]))
			break;
		if (a == TUI_COPY_LINE || is_item)
			buf_add_ch(out, '\n');
	}
	err_free(e);
	return i < COPY_LINES_MAX;
}

void tui_copy(struct tui *t, enum tui_action a)
{
	struct buf out = {0};
	uint64_t va = 0;
	bool has_va = tui_focus_va(t, &va);
	bool is_list = tui_view_ops(tui_focus(t))->list != NULL;
	bool is_whole = true;
	if (t->is_selecting && tui_focus(t) == TUI_V_LISTING && (a == TUI_COPY_LINE || a == TUI_COPY_BYTES)) {
		is_whole = add_selection(t, &out, a);
		t->is_selecting = false;
	} else if (a == TUI_COPY_C || (a == TUI_COPY_LINE && tui_focus(t) == TUI_V_C)) {
		tui_c_copy(t, a == TUI_COPY_C, &out);
	} else if (a == TUI_COPY_ADDRESS && has_va) {
		buf_printf(&out, "0x%llx", (unsigned long long)va);
	} else if (a == TUI_COPY_NAME && has_va) {
		struct ses_text name = ses_name_at(t->snap, va, &t->frame_arena);
		if (!name.len)
			name = ses_where(t->snap, va, &t->frame_arena);
		buf_add(&out, name.s, name.len);
	} else if (a == TUI_COPY_LINE && is_list) {
		add_list_row(t, &out);
	} else if (has_va && (a == TUI_COPY_LINE || a == TUI_COPY_BYTES)) {
		add_head(t, &out, a);
	}
	if (!is_whole)
		tui_say(t, true, "more than %d lines are selected; nothing was copied", COPY_LINES_MAX);
	else if (out.len && !out.failed)
		tui_copy_text(t, out.data, out.len);
	else
		tui_say(t, true, "nothing here to copy");
	buf_fini(&out);
}

/* The menu of Y: the copying actions. */
static struct err *copy_fetch(const struct tui_query *q, struct tui_page *ret)
{
	static const enum tui_action rows[] = {TUI_COPY_LINE, TUI_COPY_ADDRESS, TUI_COPY_NAME, TUI_COPY_BYTES, TUI_COPY_C};
	ret->rows = ARENA_ARRAY(&ret->arena, struct tui_row, ARRAY_LEN(rows));
	if (!ret->rows)
		return &err_nomem;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct tui_action_info *info = tui_action_info(rows[i]);
		if (ret->total++ < q->page.offset || ret->cnt >= q->page.limit)
			continue;
		struct tui_row *r = &ret->rows[ret->cnt++];
		r->action = (uint8_t)rows[i];
		r->col[0] = (struct ses_text){info->text, (uint32_t)strlen(info->text)};
		const char *keys = tui_keymap_keys(q->keys, rows[i]);
		r->col[1] = (struct ses_text){keys, (uint32_t)strlen(keys)};
	}
	return NULL;
}

const struct tui_list_ops tui_copy_list = {
	.title = "Copy",
	.empty = "nothing",
	.columns = {{.title = "what", .role = ROLE_TEXT}, {.title = "keys", .width = 12, .role = ROLE_KEY}},
	.column_cnt = 2,
	.fetch = copy_fetch,
};
