/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a line says. Code is the decoder's text with names for addresses; data is written as an assembler would take
 * it: dq offset NAME, db "text",0, align. Behind the line stands what a reader would look up next: the string or the
 * function behind a reference, the source line, why control does not come back.
 */
#include "session/heads_int.h"
#include "session/heads_format.h"
#include "session/ses_types.h"

#include "base/utf8.h"

#include <string.h>

_Static_assert((int)ARCH_TOK_MNEMONIC == (int)SES_SPAN_MNEMONIC && (int)ARCH_TOK_NAME == (int)SES_SPAN_NAME &&
	       (int)ARCH_TOK_PUNCT == (int)SES_SPAN_PUNCT, "token kinds share numbers");

#define TEXT_STRING_MAX 200
#define COMMENT_STRING_MAX 80

static void put_escaped_byte(struct put *p, uint8_t ch)
{
	char esc[4] = {'\\', 'x', "0123456789abcdef"[ch >> 4], "0123456789abcdef"[ch & 15]};
	switch (ch) {
	case '\n':
		put_n(p, "\\n", 2);
		break;
	case '\t':
		put_n(p, "\\t", 2);
		break;
	case '\r':
		put_n(p, "\\r", 2);
		break;
	case '"':
		put_n(p, "\\\"", 2);
		break;
	case '\\':
		put_n(p, "\\\\", 2);
		break;
	default:
		put_n(p, esc, 4);
	}
}

static void put_code_point(struct put *p, uint32_t cp)
{
	char u8[4];
	if (cp < 0x80 && (cp < 0x20 || cp == 0x7f || cp == '"' || cp == '\\')) {
		put_escaped_byte(p, (uint8_t)cp);
	} else if (cp < 0xa0 && cp >= 0x80) {
		put_escaped_byte(p, (uint8_t)cp);
	} else if ((cp >= 0x200b && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202e) || (cp >= 0x2060 && cp <= 0x206f) ||
		   cp == 0xfeff || (cp >= 0xe0000 && cp <= 0xe0fff)) {
		put_s(p, "\\u{");
		put_hex(p, cp);
		put_s(p, "}");
	} else {
		put_n(p, u8, utf8_put(cp, u8));
	}
}

static uint32_t string_unit_len(uint32_t encoding)
{
	return encoding == IMAGE_ENC_UTF16LE || encoding == IMAGE_ENC_UTF16BE ? 2 : encoding == IMAGE_ENC_UTF32LE ? 4 : 1;
}

/* One character of the string at b[0..len); the bytes it takes. */
static uint32_t string_step(struct put *p, const uint8_t *b, uint32_t len, uint32_t encoding)
{
	uint32_t cp;
	if (encoding == IMAGE_ENC_UTF16LE || encoding == IMAGE_ENC_UTF16BE) {
		if (len < 2)
			return len;
		cp = encoding == IMAGE_ENC_UTF16LE ? (uint32_t)b[0] | (uint32_t)b[1] << 8 : (uint32_t)b[1] | (uint32_t)b[0] << 8;
		put_code_point(p, cp >= 0xd800 && cp < 0xe000 ? 0xfffd : cp);
		return 2;
	}
	if (encoding == IMAGE_ENC_UTF32LE) {
		if (len < 4)
			return len;
		cp = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
		put_code_point(p, cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000) ? 0xfffd : cp);
		return 4;
	}
	size_t n = b[0] < 0x80 ? 0 : utf8_next((const char *)b, len, &cp);
	if (!n) {
		if (b[0] < 0x20 || b[0] >= 0x7f || b[0] == '"' || b[0] == '\\')
			put_escaped_byte(p, b[0]);
		else
			put_n(p, (const char *)b, 1);
		return 1;
	}
	put_code_point(p, cp);
	return (uint32_t)n;
}

void heads_put_literal(struct put *p, const uint8_t *b, uint32_t len, uint32_t encoding, uint32_t max)
{
	uint32_t limit = MIN(p->cap - MIN(p->cap, 8), p->len + max);
	put_n(p, "\"", 1);
	while (len && p->len < limit) {
		uint32_t n = string_step(p, b, len, encoding);
		b += n;
		len -= n;
	}
	put_n(p, "\"", 1);
	if (len)
		put_s(p, "...");
}

static void put_string(struct put *p, struct ses_snap *sn, const struct image_string *s, uint32_t max)
{
	size_t left;
	const uint8_t *b = space_bytes(sn->space, s->loc, &left);
	heads_put_literal(p, b, b ? (uint32_t)MIN(left, s->len) : 0, s->encoding, max);
}

void ses_put_string(struct ses_snap *sn, const struct image_string *str, size_t max, struct buf *out)
{
	size_t cap = max + 64;
	char *room = buf_room(out, cap);
	if (!room)
		return;
	struct put p = {room, 0, (uint32_t)cap};
	put_string(&p, sn, str, (uint32_t)max);
	out->len += p.len;
}

static void span_add(struct heads_walk *w, uint32_t off, uint32_t len, uint8_t kind)
{
	if (w->line.span_cnt < HEADS_SPAN_MAX && len)
		w->spans[w->line.span_cnt++] = (struct ses_span){(uint16_t)off, (uint16_t)len, kind, 255};
}

/* Starts the text with a directive. */
static struct put text_begin(struct heads_walk *w, const char *directive)
{
	struct put p = {w->text, 0, sizeof(w->text)};
	put_s(&p, directive);
	span_add(w, 0, p.len, SES_SPAN_MNEMONIC);
	return p;
}

static void text_end(struct heads_walk *w, const struct put *p)
{
	w->line.text = (struct ses_text){w->text, p->len};
}

/* --- data --- */

static const char *data_directive(uint32_t len)
{
	return len == 8 ? "dq" : len == 4 ? "dd" : len == 2 ? "dw" : "db";
}

static void data_pointer(struct heads_walk *w, uint64_t va)
{
	struct put p = text_begin(w, data_directive(w->item.len));
	char name[512];
	size_t n = ses_name_for_operand(w->sn, va, name, sizeof(name));
	uint32_t at;
	put_s(&p, " ");
	if (n) {
		put_s(&p, "offset ");
		at = p.len;
		put_n(&p, name, n);
		span_add(w, at, p.len - at, SES_SPAN_NAME);
	} else {
		at = p.len;
		put_hex(&p, va);
		span_add(w, at, p.len - at, SES_SPAN_ADDR);
	}
	w->line.has_target = true;
	w->line.target = va;
	text_end(w, &p);
}

static void data_repeat(struct heads_walk *w, const char *value)
{
	struct put p = text_begin(w, "db");
	put_s(&p, " ");
	uint32_t at = p.len;
	if (w->item.len > 1) {
		put_dec(&p, w->item.len);
		put_s(&p, " dup(");
		put_s(&p, value);
		put_s(&p, ")");
	} else {
		put_s(&p, value);
	}
	span_add(w, at, p.len - at, SES_SPAN_IMM);
	text_end(w, &p);
}

static bool bytes_are_all(const uint8_t *b, size_t len, uint8_t value)
{
	for (size_t i = 0; i < len; i++) {
		if (b[i] != value)
			return false;
	}
	return true;
}

/* Bytes one by one: at most 16, the rest said by its number in the comment. */
static void data_bytes(struct heads_walk *w, const uint8_t *b, uint32_t len)
{
	struct put p = text_begin(w, "db");
	uint32_t shown = MIN(len, 16);
	for (uint32_t i = 0; i < shown; i++) {
		put_s(&p, i ? "," : " ");
		put_hex(&p, b[i]);
	}
	if (w->item.len > shown)
		put_s(&p, ",...");
	span_add(w, 3, p.len > 3 ? p.len - 3 : 0, SES_SPAN_IMM);
	text_end(w, &p);
}

/* A number as somebody wants it. */
static void data_number(struct heads_walk *w, uint64_t v, const struct heads_num_ask *ask)
{
	struct put p = text_begin(w, data_directive(ask->len));
	put_s(&p, ask->num == NUM_OFFSET ? " offset " : " ");
	uint32_t at = p.len;
	uint8_t kind = heads_num_put(w->sn, &p, v, ask);
	span_add(w, at, p.len - at, kind);
	if (ask->num == NUM_OFFSET && ses_is_mapped(w->sn, v)) {
		w->line.has_target = true;
		w->line.target = v;
	}
	text_end(w, &p);
}

static void data_line(struct heads_walk *w)
{
	uint32_t len = w->item.len, loc = w->item.loc;
	uint8_t head[16] = {0};
	uint64_t v = 0;
	bool is_word = (len == 1 || len == 2 || len == 4 || len == 8) && space_word(w->sn->space, loc, len, &v);
	struct heads_num_ask ask = {.num = NUM_DEFAULT};
	if (is_word && w->sn->edits)
		heads_num_at(w->sn, w->line.va, 0, &ask);
	if (ask.num != NUM_DEFAULT) {
		ask.len = len;
		data_number(w, v, &ask);
		return;
	}
	uint32_t rel = space_reloc_at(w->sn->space, loc);
	const struct space *s = w->sn->space;
	bool is_reloc = rel < s->reloc_cnt && s->reloc_loc[rel] == loc && !(s->reloc_kind[rel] & SPACE_REL_CODE);
	if (is_word && is_reloc) {
		data_pointer(w, v);
		return;
	}
	if (is_word && w->ref_cnt && space_va(s, w->refs[0].to) == v) {
		data_pointer(w, v);
		return;
	}
	if (is_word && w->line.bytes_len) {
		struct put p = text_begin(w, data_directive(len));
		put_s(&p, " ");
		uint32_t at = p.len;
		put_hex(&p, v);
		span_add(w, at, p.len - at, SES_SPAN_IMM);
		text_end(w, &p);
		return;
	}
	size_t left = 0;
	const uint8_t *b = space_bytes(s, loc, &left);
	if (!b || bytes_are_all(b, MIN(left, len), 0)) {
		data_repeat(w, b ? "0" : "?");
		return;
	}
	size_t n = space_read(s, loc, head, MIN(len, sizeof(head)));
	data_bytes(w, head, (uint32_t)n);
}

static void string_line(struct heads_walk *w)
{
	const struct image_string *s = image_string_at(w->sn->im, w->item.loc);
	if (!s) {
		data_line(w);
		return;
	}
	uint32_t unit = string_unit_len(s->encoding);
	struct put p = text_begin(w, unit == 2 ? "dw" : unit == 4 ? "dd" : "db");
	put_s(&p, " ");
	uint32_t at = p.len;
	put_string(&p, w->sn, s, TEXT_STRING_MAX);
	span_add(w, at, p.len - at, SES_SPAN_STRING);
	if (w->item.len > s->len)
		put_s(&p, ",0");
	text_end(w, &p);
}

static void align_line(struct heads_walk *w)
{
	uint64_t va = w->line.va, end = va + w->item.len;
	uint64_t n = 2;
	while (n <= 4096 && ((va + n - 1) & ~(n - 1)) != end)
		n *= 2;
	if (n > 4096) {
		char value[8] = "0x";
		uint8_t b = w->bytes && w->line.bytes_len ? w->line.bytes[0] : 0;
		struct put v = {value, 0, sizeof(value) - 1};
		put_hex(&v, b);
		value[v.len] = 0;
		data_repeat(w, value);
		return;
	}
	struct put p = text_begin(w, "align");
	put_s(&p, " ");
	uint32_t at = p.len;
	put_dec(&p, n);
	span_add(w, at, p.len - at, SES_SPAN_IMM);
	text_end(w, &p);
}

static void unknown_line(struct heads_walk *w)
{
	size_t left = 0;
	const uint8_t *b = space_bytes(w->sn->space, w->item.loc, &left);
	if (!b || w->is_missing) {
		data_repeat(w, "?");
		return;
	}
	uint32_t len = (uint32_t)MIN(left, w->item.len);
	if (len > 1 && bytes_are_all(b, len, b[0])) {
		char value[8];
		struct put v = {value, 0, sizeof(value) - 1};
		put_hex(&v, b[0]);
		value[v.len] = 0;
		data_repeat(w, value);
		return;
	}
	data_bytes(w, b, len);
}

static void extern_line(struct heads_walk *w)
{
	struct put p = text_begin(w, "extern");
	put_s(&p, " ");
	uint32_t at = p.len;
	put_n(&p, w->label, w->label_len);
	span_add(w, at, p.len - at, SES_SPAN_NAME);
	text_end(w, &p);
}

/* Behind an import stands what it is. */
static void extern_comment(struct heads_walk *w)
{
	struct ses_text t = ses_prototype_at(w->sn, w->line.va, &w->scratch, NULL);
	struct put c = {w->comment, 0, sizeof(w->comment) / 2};
	put_cut(&c, t);
	w->line.comment = (struct ses_text){w->comment, c.len};
}

/* --- code --- */

static void code_line(struct heads_walk *w)
{
	uint32_t loc = w->item.loc;
	const uint8_t *p = w->line.bytes;
	size_t left = w->bytes && loc - w->bytes_loc < w->bytes_len ? w->bytes_len - (loc - w->bytes_loc) : 0;
	if (!left) {
		unknown_line(w);
		return;
	}
	if (w->is_patched)
		left = w->line.bytes_len;
	const struct arch *a = w->sn->arch;
	const struct arch_names names = {ses_name_for_operand, w->sn};
	a->format(a, p, left, w->line.va, &names, &w->arch_text);
	const struct arch_text *t = &w->arch_text;
	w->line.text = (struct ses_text){t->text, t->len};
	for (uint32_t i = 0; i < t->span_cnt && i < HEADS_SPAN_MAX; i++)
		w->spans[i] = (struct ses_span){t->spans[i].off, t->spans[i].len, t->spans[i].kind, t->spans[i].operand};
	w->line.span_cnt = t->span_cnt;
	if (w->sn->edits)
		heads_format_code(w, p, left);
}

static void preview_target(struct heads_walk *w)
{
	struct arch_insn insn;
	const struct arch *a = w->sn->arch;
	size_t left;
	const uint8_t *p = space_bytes(w->sn->space, w->item.loc, &left);
	if (!p)
		return;
	a->decode(a, p, left, w->line.va, &insn);
	bool is_direct = insn.flow == ARCH_FLOW_JUMP || insn.flow == ARCH_FLOW_CJUMP || insn.flow == ARCH_FLOW_CALL;
	if (is_direct || insn.ref_cnt) {
		w->line.target = is_direct ? insn.target : insn.refs[0].va;
		w->line.has_target = ses_is_mapped(w->sn, w->line.target);
	}
}

/* --- comments --- */

static void comment_sep(struct put *c)
{
	if (c->len)
		put_s(c, "; ");
}

static void comment_func(struct heads_walk *w, struct put *c, const struct image_xref *x)
{
	uint32_t f = image_func_starting(w->sn->im, x->to);
	if (f >= w->func_cnt)
		return;
	if (x->kind == IMAGE_XREF_JUMP && image_func_at(w->sn->im, w->item.loc) != f) {
		comment_sep(c);
		put_s(c, "tail call");
	}
	if (w->funcs[f].flags & IMAGE_FN_NORETURN) {
		comment_sep(c);
		put_s(c, "does not return");
	}
}

static void comment_demangled(struct heads_walk *w, struct put *c, uint32_t to)
{
	const struct image_name *n = image_name_at(w->sn->im, to);
	if (w->sn->edits && ses_edit_has_name(w->sn, space_va(w->sn->space, to)))
		return;
	struct ses_text d = n ? ses_demangle(&w->scratch, ses_pool(w->sn, n->name)) : ses_text_of("", 0);
	if (!d.len)
		return;
	comment_sep(c);
	put_n(c, d.s, MIN(d.len, 200));
}

/* Where a pointer that the loader fills in leads. An import's slot is named after it already. */
static bool comment_pointer(struct heads_walk *w, struct put *c, uint32_t slot)
{
	const struct space *s = w->sn->space;
	uint32_t i = space_reloc_at(s, slot);
	char name[512];
	if (i >= s->reloc_cnt || s->reloc_loc[i] != slot || s->reloc_kind[i] & SPACE_REL_CODE || image_import_at(w->sn->im, slot))
		return false;
	uint64_t va = space_reloc_value(s, i);
	const struct image_string *str = image_string_at(w->sn->im, space_loc(s, va));
	size_t n = str ? 0 : ses_name_for_operand(w->sn, va, name, sizeof(name));
	if (!str && !n)
		return false;
	comment_sep(c);
	put_s(c, "-> ");
	if (str && str->loc == space_loc(s, va))
		put_string(c, w->sn, str, COMMENT_STRING_MAX);
	else
		put_n(c, name, MIN(n, 200));
	return true;
}

/* What the reference leads to, in a few words. */
static void comment_ref(struct heads_walk *w, struct put *c, const struct image_xref *x)
{
	if (x->kind == IMAGE_XREF_CALL || x->kind == IMAGE_XREF_JUMP) {
		comment_func(w, c, x);
		if (x->kind == IMAGE_XREF_CALL)
			comment_demangled(w, c, x->to);
		return;
	}
	if (x->kind == IMAGE_XREF_READ && comment_pointer(w, c, x->to))
		return;
	const struct image_string *s = image_string_at(w->sn->im, x->to);
	if (s && s->loc <= x->to && x->to - s->loc <= s->len && (x->to - s->loc) % string_unit_len(s->encoding) == 0) {
		struct image_string part = *s;
		part.loc = x->to;
		part.len = s->len - (x->to - s->loc);
		comment_sep(c);
		put_string(c, w->sn, &part, COMMENT_STRING_MAX);
	}
}

static void comment_source(struct heads_walk *w, struct put *c)
{
	struct image_str file;
	uint32_t line;
	if (!image_line_at(w->sn->im, w->item.loc, &file, &line) || !line || (line == w->source_line && file.off == w->source_file))
		return;
	w->source_line = line;
	w->source_file = file.off;
	struct ses_text f = ses_pool(w->sn, file);
	const char *slash = f.len ? memrchr(f.s, '/', f.len) : NULL;
	comment_sep(c);
	const char *base = slash ? slash + 1 : f.s;
	for (const char *p = base; p < f.s + f.len; p++)
		put_n(c, (uint8_t)*p < 0x20 || (uint8_t)*p >= 0x7f ? "?" : p, 1);
	put_s(c, ":");
	put_dec(c, line);
}

static void item_comment(struct heads_walk *w)
{
	struct put c = {w->comment, 0, sizeof(w->comment)};
	uint32_t jumps = 0;
	for (uint32_t i = 0; i < w->ref_cnt; i++) {
		jumps += w->refs[i].kind == IMAGE_XREF_JUMP;
		if (i < 2 && w->item.kind != IMAGE_STRING)
			comment_ref(w, &c, &w->refs[i]);
	}
	const struct image_table *t = jumps > 1 ? image_table_at(w->sn->im, w->item.loc) : NULL;
	if (t) {
		c.len = 0;
		put_s(&c, "switch, ");
		put_dec(&c, t->target_cnt);
		put_s(&c, t->is_guessed ? " cases (bound guessed)" : " cases");
	}
	if (w->is_missing) {
		put_s(&c, "not fetched yet");
	} else if (w->item.kind == IMAGE_CODE) {
		if (w->has_lines)
			comment_source(w, &c);
	} else if (w->item.kind != IMAGE_ALIGN && w->item.kind != IMAGE_STRING && w->item.len > 16 && !w->ref_cnt) {
		put_dec(&c, w->item.len);
		put_s(&c, " bytes");
	} else if (w->item.len == 1 && w->line.bytes_len && w->line.bytes[0] > 0x20 && w->line.bytes[0] < 0x7f) {
		char ch[3] = {'\'', (char)w->line.bytes[0], '\''};
		put_n(&c, ch, 3);
	}
	w->line.comment = (struct ses_text){w->comment, c.len};
}

static void item_target(struct heads_walk *w)
{
	if (w->line.has_target)
		return;
	for (uint32_t i = 0; i < w->ref_cnt; i++) {
		bool is_flow = w->refs[i].kind == IMAGE_XREF_CALL || w->refs[i].kind == IMAGE_XREF_JUMP;
		if (i && !is_flow)
			continue;
		w->line.target = space_va(w->sn->space, w->refs[i].to);
		w->line.has_target = true;
		if (is_flow)
			return;
	}
	if (w->sn->is_preview && w->item.kind == IMAGE_CODE)
		preview_target(w);
}

void heads_item_line(struct heads_walk *w)
{
	static const uint8_t kinds[IMAGE_ITEM_KIND_COUNT] = {
		[IMAGE_UNKNOWN] = SES_HEAD_UNKNOWN, [IMAGE_CODE] = SES_HEAD_CODE, [IMAGE_DATA] = SES_HEAD_DATA,
		[IMAGE_STRING] = SES_HEAD_STRING,   [IMAGE_ALIGN] = SES_HEAD_ALIGN,
	};
	uint32_t loc = w->item.loc;
	uint32_t off = loc - w->bytes_loc;
	size_t have = w->bytes && off < w->bytes_len ? MIN(w->bytes_len - off, w->item.len) : 0;
	w->is_missing = have && !ses_is_here(w->sn, loc, (uint32_t)MIN(have, 16));
	have = w->is_missing ? 0 : have;
	w->line = (struct ses_head){
		.va = loc + w->va_delta,
		.row = w->item.row == UINT32_MAX ? UINT64_MAX : w->item.row,
		.size = w->item.len,
		.kind = w->item.kind < IMAGE_ITEM_KIND_COUNT ? kinds[w->item.kind] : SES_HEAD_UNKNOWN,
		.bytes = have ? w->bytes + off : NULL,
		.bytes_len = (uint32_t)MIN(have, 16),
		.spans = w->spans,
		.label = {w->label, w->label_len},
		.comment = {"", 0},
		.text = {"", 0},
	};
	if (w->scratch.used_len)
		arena_reset(&w->scratch);
	w->is_patched = false;
	if (w->sn->edits)
		heads_patch_bytes(w);
	if (w->item.kind == IMAGE_CODE)
		code_line(w);
	else if (w->typed)
		heads_typed_item(w);
	else if (w->is_patched)
		data_bytes(w, w->line.bytes, w->line.bytes_len);
	else if (w->seg_is_extern)
		extern_line(w);
	else if (w->item.kind == IMAGE_DATA)
		data_line(w);
	else if (w->item.kind == IMAGE_STRING)
		string_line(w);
	else if (w->item.kind == IMAGE_ALIGN)
		align_line(w);
	else
		unknown_line(w);
	item_target(w);
	if (w->seg_is_extern)
		extern_comment(w);
	else if (!w->typed)
		item_comment(w);
	if (w->sn->edits)
		heads_add_comments(w);
}

/* --- lines before the item --- */

static void func_facts(struct heads_walk *w, struct put *p)
{
	const struct image_func *f = w->func;
	put_dec(p, f->size_len);
	put_s(p, f->size_len == 1 ? " byte" : " bytes");
	if (!w->sn->is_preview) {
		put_s(p, ", ");
		put_dec(p, f->block_cnt);
		put_s(p, f->block_cnt == 1 ? " block, " : " blocks, ");
		put_dec(p, f->caller_cnt);
		put_s(p, f->caller_cnt == 1 ? " caller" : " callers");
	}
	if (f->flags & IMAGE_FN_THUNK)
		put_s(p, ", thunk");
	if (f->flags & IMAGE_FN_NORETURN)
		put_s(p, ", does not return");
	if (f->range_cnt > 1) {
		put_s(p, ", ");
		put_dec(p, f->range_cnt);
		put_s(p, " pieces");
	}
}

static void func_banner(struct heads_walk *w, struct put *p)
{
	struct ses_text t = ses_prototype_at(w->sn, w->item.loc + w->va_delta, &w->scratch, NULL);
	if (!t.len)
		t = ses_demangle(&w->scratch, ses_text_of(w->label, w->label_len));
	put_s(p, "; ");
	if (!t.len)
		t = ses_text_of(w->label, w->label_len);
	for (uint32_t i = 0; i < t.len && i < 600; i++) {
		char ch = t.s[i];
		put_n(p, (uint8_t)ch < 0x20 || ch == 0x7f ? "?" : &ch, 1);
	}
	put_s(p, "  ; ");
	func_facts(w, p);
}

static void mark_line(struct heads_walk *w, struct put *p)
{
	const struct ses_mark *m = w->mark;
	uint32_t cnt;
	const struct image_section *s = image_sections(w->sn->im, &cnt);
	bool is_section = m->section < cnt;
	const struct space_seg *g = is_section ? NULL : &w->sn->space->segs[m->seg];
	struct ses_text name = ses_pool(w->sn, is_section ? s[m->section].name : (struct image_str){g->name_off, g->name_len});
	uint8_t perm = is_section ? s[m->section].perm : g->perm;
	char rwx[4] = {perm & FMT_R ? 'r' : '-', perm & FMT_W ? 'w' : '-', perm & FMT_X ? 'x' : '-', ' '};
	put_s(p, is_section ? "; section " : "; segment ");
	for (uint32_t i = 0; i < name.len && i < 200; i++)
		put_n(p, (uint8_t)name.s[i] < 0x20 || (uint8_t)name.s[i] >= 0x7f ? "?" : &name.s[i], 1);
	put_s(p, "  ");
	put_n(p, rwx, 4);
	put_dec(p, is_section ? s[m->section].mem_len : g->mem_len);
	put_s(p, " bytes");
}

void heads_pre_line(struct heads_walk *w, uint32_t sub)
{
	w->line = (struct ses_head){.va = w->item.loc + w->va_delta, .row = w->item.row == UINT32_MAX ? UINT64_MAX : w->item.row,
				    .sub = sub, .size = w->item.len, .spans = w->spans, .comment = {"", 0}, .label = {w->label, w->label_len}};
	struct put p = {w->text, 0, sizeof(w->text)};
	w->is_patched = false;
	if (w->scratch.used_len)
		arena_reset(&w->scratch);
	uint32_t n = 0;
	if (w->mark && ++n == sub) {
		w->line.kind = SES_HEAD_SEGMENT;
		mark_line(w, &p);
		span_add(w, 0, p.len, SES_SPAN_COMMENT);
	} else if (w->func && ++n == sub) {
		w->line.kind = SES_HEAD_FUNC;
		func_banner(w, &p);
		span_add(w, 0, p.len, SES_SPAN_COMMENT);
	} else if (sub <= n + w->note_cnts[0] + w->note_cnts[1]) {
		struct ses_text note = heads_note_line(w, sub - n - 1);
		w->line.kind = SES_HEAD_COMMENT;
		put_s(&p, "; ");
		put_cut(&p, note);
		span_add(w, 0, p.len, SES_SPAN_COMMENT);
	} else {
		w->line.kind = SES_HEAD_LABEL;
		put_n(&p, w->label, w->label_len);
		span_add(w, 0, p.len, SES_SPAN_NAME);
		put_s(&p, ":");
	}
	text_end(w, &p);
}
