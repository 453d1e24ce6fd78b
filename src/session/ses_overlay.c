/* SPDX-License-Identifier: Apache-2.0 */
/* What people stated, as readers ask for it, and which statements are refused. Nothing here touches the disk. */
#include "session/ses_edit_int.h"
#include "session/ses_load_int.h"
#include "session/ses_types.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

#define NAME_MAX_LEN 1024
#define COMMENT_MAX_LEN 65536
#define PATCH_MAX_LEN SES_PATCH_MAX

/* --- reading --- */

bool ses_edit_has_name(const struct ses_snap *sn, uint64_t va)
{
	return edits_find(sn->edits, EDITS_NAME, va, "") != NULL;
}

/* A name longer than the room ends in "..." after its last whole character. */
size_t ses_edit_name_put(const struct ses_snap *sn, uint64_t va, char *out, size_t cap)
{
	const struct edits_fact *f = edits_find(sn->edits, EDITS_NAME, va, "");
	if (!f || cap < 4)
		return 0;
	size_t len = f->value_len;
	if (len > cap) {
		len = cap - 3;
		while (len && ((uint8_t)f->value[len] & 0xc0) == 0x80)
			len--;
		memcpy(out + len, "...", 3);
	}
	memcpy(out, f->value, len);
	return len < f->value_len ? len + 3 : len;
}

bool ses_edit_resolve(const struct ses_snap *sn, const char *text, size_t len, uint64_t *ret_va)
{
	return edits_name_find(sn->edits, text, len, ret_va);
}

struct ses_text ses_edit_comment(const struct ses_snap *sn, uint64_t va, const char *sub)
{
	const struct edits_fact *f = edits_find(sn->edits, EDITS_COMMENT, va, sub);
	return f ? ses_text_of(f->value, f->value_len) : ses_text_of("", 0);
}

static unsigned hex_digit(char ch)
{
	return (unsigned)(ch <= '9' ? ch - '0' : (ch | 0x20) - 'a' + 10);
}

/* Patches that may reach into [first, last]: they are at most PATCH_MAX_LEN long. */
static const struct edits_fact *patches_near(const struct ses_snap *sn, uint64_t first_va, uint64_t last_va, size_t *ret_cnt)
{
	return edits_range(sn->edits, EDITS_PATCH, first_va > PATCH_MAX_LEN ? first_va - PATCH_MAX_LEN : 0, last_va, ret_cnt);
}

bool ses_edit_has_patch(const struct ses_snap *sn, uint64_t first_va, uint64_t last_va)
{
	size_t cnt;
	const struct edits_fact *f = patches_near(sn, first_va, last_va, &cnt);
	for (size_t i = 0; i < cnt; i++) {
		if (f[i].va >= first_va || first_va - f[i].va < f[i].value_len / 2)
			return true;
	}
	return false;
}

/* Where two patches overlap the one with the newer revision is on top. */
void ses_edit_patch(const struct ses_snap *sn, uint64_t va, uint8_t *bytes, size_t len)
{
	size_t cnt;
	uint64_t top[64] = {0};
	const struct edits_fact *f = len ? patches_near(sn, va, va + (len - 1), &cnt) : NULL;
	for (size_t i = 0; f && i < cnt; i++) {
		for (uint32_t k = 0; k < f[i].value_len / 2; k++) {
			uint64_t at = f[i].va + k - va;
			if (at >= len || (at < ARRAY_LEN(top) && top[at] > f[i].rev))
				continue;
			if (at < ARRAY_LEN(top))
				top[at] = f[i].rev;
			bytes[at] = (uint8_t)(hex_digit(f[i].value[2 * k]) << 4 | hex_digit(f[i].value[2 * k + 1]));
		}
	}
}

/* --- refusing --- */

/* Characters that would let a text rewrite the line it stands in. */
static bool is_unsafe(uint32_t cp)
{
	return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || (cp >= 0x200b && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202e) ||
	       (cp >= 0x2060 && cp <= 0x206f) || cp == 0xfeff || (cp >= 0xe0000 && cp <= 0xe0fff);
}

static const char *refuse_text(const char *s, size_t len, bool may_break)
{
	for (size_t i = 0; i < len;) {
		uint32_t cp = (uint8_t)s[i];
		size_t n = cp < 0x80 ? 1 : utf8_next(s + i, len - i, &cp);
		if (!n)
			return "it is not UTF-8";
		if (is_unsafe(cp) && !(may_break && (cp == '\n' || cp == '\t')))
			return cp < 0xa0 ? "it has control characters in it" : "it has invisible or direction-changing characters in it";
		if (!may_break && (cp == ' ' || cp == 0xa0 || cp == 0x3000 || (cp >= 0x2000 && cp <= 0x200a)))
			return "a name has no spaces in it";
		i += n;
	}
	return NULL;
}

static const char *refuse_symbol(struct ses_snap *sn, const struct edits_change *c, struct arena *a)
{
	uint32_t first, cnt = image_name_find(sn->im, c->value, c->value_len, &first);
	for (uint32_t i = 0; i < cnt; i++) {
		const struct image_name *n = image_name_by_order(sn->im, first + i);
		uint64_t va = n ? space_va(sn->space, n->loc) : c->va;
		if (va != c->va)
			return arena_printf(a, "it is the symbol at 0x%" PRIx64, va);
	}
	return NULL;
}

static const char *refuse_name(struct ses_snap *sn, const struct edits_change *c, struct arena *a)
{
	uint64_t va;
	if (c->value_len > NAME_MAX_LEN)
		return arena_printf(a, "a name has at most %d bytes, this one %zu", NAME_MAX_LEN, c->value_len);
	const char *why = refuse_text(c->value, c->value_len, false);
	if (why)
		return why;
	if (c->value[0] == '0' && c->value_len > 1 && (c->value[1] | 0x20) == 'x')
		return "it would read as an address";
	if (c->value[0] >= '0' && c->value[0] <= '9')
		return "a name does not begin with a digit";
	if (c->value_len > 5 && !memcmp(c->value, "file:", 5))
		return "it would read as a file offset";
	if (ses_resolve_generated(c->value, c->value_len, &va) && va != c->va)
		return arena_printf(a, "it is the made-up name of 0x%" PRIx64, va);
	return refuse_symbol(sn, c, a);
}

static const char *refuse_patch(struct ses_snap *sn, const struct edits_change *c)
{
	if (!c->value_len || c->value_len % 2 || c->value_len > 2 * PATCH_MAX_LEN)
		return "bytes are pairs of hex digits, at most 65,536 of them";
	for (size_t i = 0; i < c->value_len; i++) {
		char ch = (char)(c->value[i] | 0x20);
		if (!(c->value[i] >= '0' && c->value[i] <= '9') && !(ch >= 'a' && ch <= 'f'))
			return "bytes are pairs of hex digits";
	}
	for (size_t i = 0; i < c->value_len / 2; i++) {
		uint64_t off;
		if (!ses_va_to_file(sn, c->va + i, &off))
			return "not all of these bytes are in the file";
	}
	return NULL;
}

static bool is_comment_sub(const char *sub)
{
	return !strcmp(sub, "line") || !strcmp(sub, "block") || !strcmp(sub, "repeatable") || !strcmp(sub, "func");
}

const char *ses_edit_refuse(void *snap, const struct edits_change *c, struct arena *a)
{
	struct ses_snap *sn = snap;
	if (!c->value)
		return NULL;
	/* A declaration has no address; who states it has parsed it. */
	if (c->kind == EDITS_LOAD)
		return ses_load_refuse(sn, c, a);
	if (c->kind != EDITS_DECL && !ses_is_mapped(sn, c->va))
		return "the address is not mapped";
	switch (c->kind) {
	case EDITS_NAME:
		return refuse_name(sn, c, a);
	case EDITS_PATCH:
		return refuse_patch(sn, c);
	case EDITS_TYPE:
	case EDITS_PROTOTYPE:
	case EDITS_FORMAT:
		return ses_typing_refuse(sn, c, a);
	case EDITS_COMMENT:
		if (!is_comment_sub(c->sub))
			return "a comment is one of line, block, repeatable, func";
		if (!strcmp(c->sub, "func") && image_func_starting(sn->im, space_loc(sn->space, c->va)) == UINT32_MAX)
			return "no function begins here";
		break;
	default:
		break;
	}
	if (!c->value_len)
		return "the text is empty";
	if (c->value_len > COMMENT_MAX_LEN)
		return "the text has more than 65,536 bytes";
	return refuse_text(c->value, c->value_len, true);
}
