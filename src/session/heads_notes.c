/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people stated, put into the listing: lines of their own before the item, comments behind it, patched bytes. Nothing
 * here runs where nobody stated anything.
 */
#include "session/heads_int.h"

#include <stdio.h>
#include <string.h>

static uint32_t line_cnt(struct ses_text t)
{
	uint32_t n = t.len != 0;
	for (uint32_t i = 0; i + 1 < t.len; i++)
		n += t.s[i] == '\n';
	return n;
}

void heads_look_notes(struct heads_walk *w)
{
	uint64_t va = w->item.loc + w->va_delta;
	w->notes[0] = w->func ? ses_edit_comment(w->sn, va, "func") : ses_text_of("", 0);
	w->notes[1] = ses_edit_comment(w->sn, va, "block");
	for (size_t i = 0; i < ARRAY_LEN(w->notes); i++)
		w->note_cnts[i] = line_cnt(w->notes[i]);
}

struct ses_text heads_note_line(const struct heads_walk *w, uint32_t n)
{
	bool is_second = n >= w->note_cnts[0];
	struct ses_text t = w->notes[is_second];
	const char *s = t.s, *end = t.s + t.len;
	for (uint32_t i = is_second ? w->note_cnts[0] : 0; i < n; i++) {
		const char *nl = memchr(s, '\n', (size_t)(end - s));
		if (!nl)
			return ses_text_of("", 0);
		s = nl + 1;
	}
	const char *nl = memchr(s, '\n', (size_t)(end - s));
	return ses_text_of(s, (size_t)((nl ? nl : end) - s));
}

/* Appends to the comment; a text that does not fit ends in "...", after a whole character. */
static void comment_put(char *out, uint32_t *len, uint32_t cap, struct ses_text t)
{
	if (!t.len || *len + 8 > cap)
		return;
	if (*len) {
		memcpy(out + *len, "; ", 2);
		*len += 2;
	}
	uint32_t room = cap - *len, n = t.len;
	if (n > room) {
		n = room - 3;
		while (n && ((uint8_t)t.s[n] & 0xc0) == 0x80)
			n--;
	}
	memcpy(out + *len, t.s, n);
	*len += n;
	if (n < t.len) {
		memcpy(out + *len, "...", 3);
		*len += 3;
	}
}

/* That what is shown is not what the file has, and where code and item no longer agree. */
static void comment_patch(const struct heads_walk *w, char *out, uint32_t *len, uint32_t cap)
{
	char text[64];
	uint64_t va = w->item.loc + w->va_delta;
	if (!ses_edit_has_patch(w->sn, va, va + (w->item.len - 1)))
		return;
	struct arch_insn insn = {.len = (uint8_t)MIN(w->item.len, 255)};
	if (w->is_patched && w->item.kind == IMAGE_CODE)
		w->sn->arch->decode(w->sn->arch, w->line.bytes, w->line.bytes_len, va, &insn);
	if (!w->is_patched)
		snprintf(text, sizeof(text), "patched further on");
	else if (w->item.kind == IMAGE_CODE && insn.len != w->item.len)
		snprintf(text, sizeof(text), "patched, %u of %u bytes", insn.len, w->item.len);
	else
		snprintf(text, sizeof(text), "patched");
	comment_put(out, len, cap, ses_text_cstr(text));
}

void heads_add_comments(struct heads_walk *w)
{
	uint64_t va = w->line.va;
	bool is_item = w->line.kind != SES_HEAD_MEMBER;
	struct ses_text made = w->line.comment;
	char out[HEADS_TEXT_MAX];
	uint32_t len = 0;
	comment_put(out, &len, sizeof(out), ses_edit_comment(w->sn, va, "line"));
	comment_put(out, &len, sizeof(out), ses_edit_comment(w->sn, va, "repeatable"));
	for (uint32_t i = 0; is_item && i < w->ref_cnt; i++) {
		bool is_again = i && w->refs[i].to == w->refs[i - 1].to;
		if (!is_again)
			comment_put(out, &len, sizeof(out), ses_edit_comment(w->sn, space_va(w->sn->space, w->refs[i].to), "repeatable"));
	}
	if (is_item)
		comment_patch(w, out, &len, sizeof(out));
	if (!len)
		return;
	comment_put(out, &len, sizeof(out), made);
	memcpy(w->comment, out, len);
	w->line.comment = (struct ses_text){w->comment, len};
}

void heads_patch_bytes(struct heads_walk *w)
{
	uint64_t va = w->line.va;
	uint32_t len = w->line.bytes_len;
	if (!len || !ses_edit_has_patch(w->sn, va, va + (len - 1)))
		return;
	memcpy(w->patched, w->line.bytes, len);
	ses_edit_patch(w->sn, va, w->patched, len);
	w->line.bytes = w->patched;
	w->is_patched = true;
	w->ref_cnt = 0; /* the references are those of the file's own bytes */
}
