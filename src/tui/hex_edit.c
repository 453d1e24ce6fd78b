/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include "base/utf8.h"

#include <string.h>

/*
 * Typing bytes in the hex view. What is typed is shown at once and becomes one edit when Enter is pressed: a patch of the
 * bytes as they are shown, never of the file. Tab changes between digits and characters.
 */

static uint32_t byte_cnt(const struct tui_hex *h)
{
	return (h->nibble_cnt + 1) / 2;
}

bool tui_hex_typed(const struct tui *t, uint64_t va, uint8_t *ret)
{
	const struct tui_hex *h = &t->hex;
	if (!h->is_editing || va - h->edit_va >= byte_cnt(h))
		return false;
	*ret = h->typed[va - h->edit_va];
	return true;
}

static void say_how(struct tui *t)
{
	const struct tui_hex *h = &t->hex;
	tui_say(t, false, "%s typed over %u bytes: Enter keeps them, Esc drops them, Tab %s", h->is_text ? "characters" : "digits",
		byte_cnt(h), h->is_text ? "digits" : "characters");
}

void tui_hex_edit_begin(struct tui *t)
{
	struct tui_hex *h = &t->hex;
	uint64_t off;
	if (t->main_view != TUI_V_HEX)
		tui_show_view(t, TUI_V_HEX);
	t->focus_functions = false;
	if (!h->is_placed || !ses_va_to_file(t->snap, h->va, &off)) {
		tui_say(t, true, "no byte of the file is here, so none can be patched");
		return;
	}
	h->is_editing = true;
	h->is_text = false;
	h->edit_va = h->va;
	h->nibble_cnt = 0;
	say_how(t);
}

static bool can_type(struct tui *t)
{
	struct tui_hex *h = &t->hex;
	uint64_t off;
	if (h->nibble_cnt % 2)
		return true;
	if (byte_cnt(h) == TUI_HEX_EDIT_MAX) {
		tui_say(t, true, "%d bytes are as many as can be typed at once (Enter keeps them)", TUI_HEX_EDIT_MAX);
		return false;
	}
	if (!ses_va_to_file(t->snap, h->edit_va + byte_cnt(h), &off)) {
		tui_say(t, true, "the file's bytes end here");
		return false;
	}
	return true;
}

/* Half a byte; the other half stays what it was until it is typed too. */
static bool type_nibble(struct tui *t, uint8_t v)
{
	struct tui_hex *h = &t->hex;
	if (!can_type(t))
		return false;
	uint8_t *b = &h->typed[h->nibble_cnt / 2];
	if (h->nibble_cnt % 2 == 0)
		ses_bytes(t->snap, h->edit_va + h->nibble_cnt / 2, 1, b, NULL);
	int shift = h->nibble_cnt % 2 ? 0 : 4;
	*b = (uint8_t)((*b & ~(15 << shift)) | v << shift);
	h->nibble_cnt++;
	h->va = h->edit_va + h->nibble_cnt / 2;
	return true;
}

static bool type_char(struct tui *t, char ch)
{
	uint8_t v = (uint8_t)ch;
	if (t->hex.is_text)
		return type_nibble(t, v >> 4) && type_nibble(t, v & 15);
	int digit = ch >= '0' && ch <= '9' ? ch - '0' : (ch | 0x20) >= 'a' && (ch | 0x20) <= 'f' ? (ch | 0x20) - 'a' + 10 : -1;
	return digit < 0 || type_nibble(t, (uint8_t)digit);
}

static void take_back(struct tui_hex *h)
{
	if (!h->nibble_cnt)
		return;
	h->nibble_cnt = h->is_text ? (h->nibble_cnt - 1) & ~1u : h->nibble_cnt - 1;
	h->va = h->edit_va + h->nibble_cnt / 2;
}

/* A patch is kept by its first address. One that begins here already and goes further keeps its tail. */
static void commit(struct tui *t)
{
	static const char digits[] = "0123456789abcdef";
	struct tui_hex *h = &t->hex;
	struct ses_fact old;
	uint32_t cnt = byte_cnt(h);
	uint32_t old_cnt = ses_patch_at(t->snap, h->edit_va, &old) && old.addr == h->edit_va ? old.value.len / 2 : 0;
	uint32_t len = MAX(cnt, old_cnt);
	h->is_editing = false;
	if (!cnt)
		return;
	uint8_t *bytes = arena_alloc(&t->frame_arena, len);
	char *hex = arena_alloc(&t->frame_arena, 2 * (size_t)len + 1);
	if (!bytes || !hex) {
		tui_say_err(t, &err_nomem);
		return;
	}
	ses_bytes(t->snap, h->edit_va, len, bytes, NULL);
	memcpy(bytes, h->typed, cnt);
	for (uint32_t i = 0; i < len; i++) {
		hex[2 * i] = digits[bytes[i] >> 4];
		hex[2 * i + 1] = digits[bytes[i] & 15];
	}
	hex[2 * (size_t)len] = '\0';
	tui_edit_submit(t, "patch", "", h->edit_va, hex);
}

bool tui_hex_edit_key(struct tui *t, uint32_t key, uint8_t mods)
{
	struct tui_hex *h = &t->hex;
	char text[4];
	if (!h->is_editing)
		return false;
	bool is_cancel = key == TERM_KEY_ESC || (mods & TERM_CTRL && (key == 'c' || key == 'g'));
	if (t->main_view != TUI_V_HEX || t->focus_functions || is_cancel) {
		h->is_editing = false;
		h->va = h->edit_va;
		tui_say(t, false, "nothing was changed");
		return is_cancel;
	}
	if (key == TERM_KEY_ENTER) {
		commit(t);
		return true;
	}
	bool ok = true;
	if (key == TERM_KEY_TAB) {
		h->is_text = !h->is_text;
		h->nibble_cnt = (h->nibble_cnt + 1) & ~1u;
	} else if (key == TERM_KEY_BACKSPACE) {
		take_back(h);
	} else if (key < TERM_KEY_ESC && !(mods & (TERM_CTRL | TERM_ALT))) {
		size_t n = utf8_put(key, text);
		for (size_t i = 0; i < n && ok; i++)
			ok = type_char(t, text[i]);
	}
	if (ok)
		say_how(t);
	return true;
}

void tui_hex_edit_paste(struct tui *t, const char *text, size_t len)
{
	bool ok = t->hex.is_editing;
	for (size_t i = 0; i < len && ok; i++)
		ok = type_char(t, text[i]);
	if (ok && len)
		say_how(t);
}

void tui_hex_unpatch(struct tui *t)
{
	struct ses_fact patch;
	uint64_t va;
	if (tui_focus_va(t, &va) && ses_patch_at(t->snap, va, &patch))
		tui_edit_submit(t, "patch", "", patch.addr, "");
	else
		tui_say(t, false, "the byte here is the file's");
}
