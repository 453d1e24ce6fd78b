/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function as C for people: the printed text, with what they said about its addresses as comments and its numbers in the forms
 * they chose, and where each instruction is in it.
 */
#include "session/heads_format.h"
#include "session/heads_int.h"
#include "session/ses_int.h"
#include "session/ses_verdict.h"

#include "base/utf8.h"
#include "lift/lift.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct maker {
	struct ses_snap *sn;
	uint32_t func;
	const struct ses_code *code;
	struct arena *a;
	struct ses_c *c;
	struct buf text; /* with comments; empty where nobody said anything */
};

/* --- lines of the printed text ------------------------------------------------------------------------------------- */

/* Whether a line stands for itself: a label, what only opens or closes a brace, what is at the left edge. */
static bool is_apart(const char *s, uint32_t len)
{
	static const char *const own[] = {"{", "}", "} else {", "do {", "for (;;) {", "default:"};
	uint32_t skip = 0;
	while (skip < len && s[skip] == '\t')
		skip++;
	if (!skip || skip == len)
		return true;
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
		if (strlen(own[i]) == len - skip && !memcmp(s + skip, own[i], len - skip))
			return true;
	}
	return len - skip > 5 && !memcmp(s + skip, "case ", 5);
}

static bool make_lines(struct maker *m)
{
	struct ses_c *c = m->c;
	const char *s = m->code->text.data;
	size_t len = m->code->text.len, map_cnt = m->code->map.lines.cnt, at = 0;
	const struct cprint_line *map = m->code->map.lines.data;
	uint32_t cnt = 0;
	for (size_t i = 0; i < len; i++)
		cnt += s[i] == '\n';
	c->lines = ARENA_ARRAY(m->a, struct ses_c_line, (size_t)cnt + 1);
	c->addrs = ARENA_ARRAY(m->a, uint64_t, map_cnt + 1);
	if (!c->lines || !c->addrs)
		return false;
	for (size_t i = 0; i < map_cnt; i++)
		c->addrs[i] = map[i].va;
	for (size_t off = 0; off < len && c->line_cnt < cnt;) {
		const char *nl = memchr(s + off, '\n', len - off);
		struct ses_c_line *l = &c->lines[c->line_cnt++];
		*l = (struct ses_c_line){.off = (uint32_t)off, .len = (uint32_t)((nl ? nl : s + len) - (s + off))};
		off += l->len + 1;
		l->first_addr = (uint32_t)at;
		while (at < map_cnt && map[at].line == c->line_cnt)
			at++;
		l->addr_cnt = (uint32_t)at - l->first_addr;
		if (!l->addr_cnt && c->line_cnt > 1 && !is_apart(s + l->off, l->len)) {
			l->first_addr = l[-1].first_addr;
			l->addr_cnt = l[-1].addr_cnt;
		}
	}
	return true;
}

static int cmp_place(const void *x, const void *y)
{
	const struct ses_c_place *a = x, *b = y;
	return a->va != b->va ? (a->va < b->va ? -1 : 1) : a->line != b->line ? (a->line < b->line ? -1 : 1) : 0;
}

static int cmp_va(const void *x, const void *y)
{
	const uint64_t *a = x, *b = y;
	return *a < *b ? -1 : *a > *b;
}

static void add_places(struct ses_c *c, uint32_t line)
{
	for (uint32_t k = 0; k < c->lines[line].addr_cnt; k++)
		c->places[c->place_cnt++] = (struct ses_c_place){c->addrs[c->lines[line].first_addr + k], line};
}

static bool has_place(const struct ses_c *c, uint32_t cnt, uint64_t va)
{
	uint32_t lo = 0, hi = cnt;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (c->places[mid].va < va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < cnt && c->places[lo].va == va;
}

/* Statements first: a brace stands only for what has no other line. */
static struct err *make_places(struct maker *m, const struct ses_call *call)
{
	struct ses_c *c = m->c;
	struct ses_block *blocks;
	size_t cnt = 0;
	for (uint32_t i = 0; i < c->line_cnt; i++)
		cnt += c->lines[i].addr_cnt;
	struct err *e = ses_blocks(m->sn, call, c->addr, m->a, &blocks, &c->start_cnt);
	if (e)
		return e;
	c->places = ARENA_ARRAY(m->a, struct ses_c_place, cnt + 1);
	c->starts = ARENA_ARRAY(m->a, uint64_t, (size_t)c->start_cnt + 1);
	if (!c->places || !c->starts)
		return &err_nomem;
	for (uint32_t i = 0; i < c->line_cnt; i++) {
		if (!is_apart(c->text.s + c->lines[i].off, c->lines[i].len))
			add_places(c, i);
	}
	qsort(c->places, c->place_cnt, sizeof(*c->places), cmp_place);
	for (uint32_t i = 0, known = c->place_cnt; i < c->line_cnt; i++) {
		struct ses_c_line *l = &c->lines[i];
		uint32_t there = 0;
		if (!is_apart(c->text.s + l->off, l->len))
			continue;
		for (uint32_t k = 0; k < l->addr_cnt; k++)
			there += has_place(c, known, c->addrs[l->first_addr + k]);
		if (there == l->addr_cnt)
			l->addr_cnt = 0;
		else
			add_places(c, i);
	}
	qsort(c->places, c->place_cnt, sizeof(*c->places), cmp_place);
	for (uint32_t i = 0; i < c->start_cnt; i++)
		c->starts[i] = blocks[i].addr;
	qsort(c->starts, c->start_cnt, sizeof(*c->starts), cmp_va);
	return NULL;
}

/* --- what people said ------------------------------------------------------------------------------------------------- */

/* Something to write into the text: behind a line, on a line of its own before it, or in the place of a number. */
struct note {
	uint32_t line;
	uint32_t order;
	bool is_before;
	struct ses_text text;
	bool is_format;
	uint64_t value;
	struct heads_num_ask num;
};

static int cmp_note(const void *x, const void *y)
{
	const struct note *a = x, *b = y;
	return a->line != b->line ? (a->line < b->line ? -1 : 1) : a->order < b->order ? -1 : a->order > b->order;
}

static bool is_hidden(uint32_t cp)
{
	return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0x61c || cp == 0x200e || cp == 0x200f || (cp >= 0x2028 && cp <= 0x202e) ||
	       (cp >= 0x2066 && cp <= 0x2069) || cp == 0xfeff;
}

/* As a comment of C that neither ends early, nor begins another, nor shows itself as something else. */
static void put_comment(struct buf *b, const char *s, size_t len)
{
	buf_add_str(b, "/* ");
	for (size_t i = 0; i < len;) {
		uint32_t cp = 0;
		size_t n = utf8_next(s + i, len - i, &cp);
		if (!n)
			buf_printf(b, "\\x%02x", (uint8_t)s[i]);
		else if (is_hidden(cp))
			buf_printf(b, "\\u{%x}", cp);
		else
			buf_add(b, s + i, n);
		i += n ? n : 1;
		bool is_end = i < len && n == 1 && ((cp == '*' && s[i] == '/') || (cp == '/' && s[i] == '*'));
		if (is_end)
			buf_add_ch(b, ' ');
	}
	buf_add_str(b, " */");
}

static bool is_digit(char ch)
{
	return (ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'f') || (ch >= 'A' && ch <= 'F');
}

static bool is_word(char ch)
{
	return is_digit(ch) || (ch >= 'g' && ch <= 'z') || (ch >= 'G' && ch <= 'Z') || ch == '_';
}

/* Whether what is printed may be this operand's number: the same value, or as much of it as the operand's width has. */
static bool is_same_number(uint64_t shown, uint64_t v)
{
	return shown == v || shown == (uint32_t)v || (shown == (uint16_t)v && shown > 0xff) || (shown == (uint8_t)v && v >= (uint64_t)-128) ||
	       shown == -v;
}

/* The number in its form: where C has one it takes the number's place, else it stands behind. */
static void put_number(struct maker *m, const char *s, size_t len, size_t suffix, uint64_t v, const struct heads_num_ask *ask)
{
	char tmp[512];
	struct put p = {tmp, 0, sizeof(tmp)};
	switch (ask->num) {
	case NUM_DEC:
		buf_add_dec(&m->text, v);
		break;
	case NUM_OCT:
		buf_printf(&m->text, "0%llo", (unsigned long long)v);
		break;
	case NUM_BIN:
		buf_add_str(&m->text, "0b");
		for (int i = v ? 63 - __builtin_clzll(v) : 0; i >= 0; i--)
			buf_add_ch(&m->text, v >> i & 1 ? '1' : '0');
		break;
	case NUM_CHAR:
	case NUM_OFFSET:
	case NUM_ENUM:
		buf_add(&m->text, s, len);
		heads_num_put(m->sn, &p, v, ask);
		buf_add_ch(&m->text, ' ');
		put_comment(&m->text, p.s, p.len);
		return;
	case NUM_HEX:
		buf_printf(&m->text, "0x%llx", (unsigned long long)v);
		break;
	case NUM_DEFAULT:
	case NUM_STACK:
	case NUM_COUNT:
		buf_add(&m->text, s, len);
		return;
	}
	buf_add(&m->text, s + suffix, len - suffix);
}

struct number {
	size_t off, len; /* with its suffix */
	size_t suffix;   /* where that begins in it */
	uint64_t v;
};

/* The first number of a line at or behind `from` that is no address and in no comment. */
static bool next_number(const char *s, size_t len, size_t from, struct number *ret)
{
	for (size_t i = from; i < len; i++) {
		if (s[i] == '/' && i + 1 < len && s[i + 1] == '*')
			return false;
		bool is_addr = i >= 11 && !memcmp(s + i - 11, "m->image + ", 11);
		if (s[i] < '0' || s[i] > '9' || is_addr || (i && is_word(s[i - 1])))
			continue;
		bool is_hex = i + 2 < len && s[i] == '0' && s[i + 1] == 'x';
		*ret = (struct number){.off = i};
		size_t end = i + (is_hex ? 2 : 0);
		for (; end < len && (is_hex ? is_digit(s[end]) : s[end] >= '0' && s[end] <= '9'); end++)
			ret->v = ret->v * (is_hex ? 16 : 10) + (uint64_t)(s[end] <= '9' ? s[end] - '0' : (s[end] | 32) - 'a' + 10);
		ret->suffix = end - i;
		while (end < len && is_word(s[end]))
			end++;
		ret->len = end - i;
		return true;
	}
	return false;
}

/* The line with its numbers in the forms of notes[0..cnt). */
static void put_line(struct maker *m, const char *s, size_t len, const struct note *notes, size_t cnt)
{
	struct number n;
	size_t at = 0;
	for (size_t i = 0; next_number(s, len, i, &n); i = n.off + n.len) {
		const struct note *found = NULL;
		for (size_t k = 0; k < cnt && !found; k++)
			found = notes[k].is_format && is_same_number(n.v, notes[k].value) ? &notes[k] : NULL;
		if (!found)
			continue;
		buf_add(&m->text, s + at, n.off - at);
		put_number(m, s + n.off, n.len, n.suffix, n.v, &found->num);
		at = n.off + n.len;
	}
	buf_add(&m->text, s + at, len - at);
}

struct notes {
	struct note *list;
	size_t cnt, cap;
};

/* One entry a line of a text of several lines. */
static bool add_text(struct maker *m, struct notes *n, uint32_t line, bool is_before, struct ses_text t)
{
	const char *s = t.s, *end = t.s + t.len;
	while (s < end) {
		const char *nl = memchr(s, '\n', (size_t)(end - s));
		if (n->cnt == n->cap) {
			size_t cap = n->cap ? 2 * n->cap : 16;
			struct note *list = ARENA_ARRAY(m->a, struct note, cap);
			if (!list)
				return false;
			if (n->cnt)
				memcpy(list, n->list, n->cnt * sizeof(*list));
			n->list = list;
			n->cap = cap;
		}
		n->list[n->cnt] = (struct note){.line = line, .order = (uint32_t)n->cnt, .is_before = is_before,
						.text = ses_text_of(s, (size_t)((nl ? nl : end) - s))};
		n->cnt++;
		s = nl ? nl + 1 : end;
	}
	return true;
}

static bool add_comment(struct maker *m, struct notes *n, const struct edits_fact *f)
{
	struct ses_text t = ses_text_of(f->value, f->value_len);
	if (!strcmp(f->sub, "func"))
		return f->va != m->c->addr || add_text(m, n, 0, true, t);
	return add_text(m, n, ses_c_line_at(m->c, f->va), !strcmp(f->sub, "block"), t);
}

static bool has_number(const struct ses_c *c, uint32_t line, uint64_t v)
{
	struct number n;
	const struct ses_c_line *l = &c->lines[line];
	for (size_t at = 0; next_number(c->text.s + l->off, l->len, at, &n); at = n.off + n.len) {
		if (is_same_number(n.v, v))
			return true;
	}
	return false;
}

static bool add_format(struct maker *m, struct notes *n, const struct edits_fact *f)
{
	struct note out = {.is_format = true};
	unsigned operand = 0;
	for (const char *s = f->sub; *s; s++)
		operand = operand * 10 + (unsigned)(*s - '0');
	if (!heads_num_parse(f->value, &out.num) || !heads_operand_value(m->sn, f->va, operand, &out.value))
		return true;
	/* What sets flags may be printed where they are read, further on in the block. */
	uint32_t line = ses_c_line_at(m->c, f->va);
	for (; line < m->c->line_cnt && !has_number(m->c, line, out.value); line++) {
		const struct ses_c_line *l = &m->c->lines[line];
		if (is_apart(m->c->text.s + l->off, l->len))
			return true;
	}
	if (line == m->c->line_cnt || !add_text(m, n, line, false, ses_text_cstr(" ")))
		return line == m->c->line_cnt;
	out.line = line;
	out.order = n->list[n->cnt - 1].order;
	n->list[n->cnt - 1] = out;
	return true;
}

/* Facts of one kind about addresses of the function. */
static bool add_facts(struct maker *m, struct notes *n, enum edits_kind kind, bool (*add)(struct maker *, struct notes *, const struct edits_fact *))
{
	uint32_t range_cnt;
	const struct image_range *r = image_func_ranges(m->sn->im, m->func, &range_cnt);
	for (uint32_t i = 0; i < range_cnt; i++) {
		size_t cnt = 0;
		uint64_t first = space_va(m->sn->space, r[i].loc);
		const struct edits_fact *f = edits_range(m->sn->edits, kind, first, first + (r[i].len ? r[i].len - 1 : 0), &cnt);
		for (size_t k = 0; k < cnt; k++) {
			if (!add(m, n, &f[k]))
				return false;
		}
	}
	return true;
}

/* The text anew, with the notes in it; lines and places move with it. */
static bool put_notes(struct maker *m, const struct notes *n)
{
	struct ses_c *c = m->c;
	const char *s = m->code->text.data;
	uint32_t extra = 0;
	for (size_t i = 0; i < n->cnt; i++)
		extra += n->list[i].is_before;
	struct ses_c_line *lines = ARENA_ARRAY(m->a, struct ses_c_line, (size_t)c->line_cnt + extra + 1);
	uint32_t *moved = ARENA_ARRAY(m->a, uint32_t, (size_t)c->line_cnt + 1);
	if (!lines || !moved)
		return false;
	qsort(n->list, n->cnt, sizeof(*n->list), cmp_note);
	size_t at = 0;
	uint32_t cnt = 0;
	for (uint32_t i = 0; i < c->line_cnt; i++) {
		size_t end = at;
		while (end < n->cnt && n->list[end].line == i)
			end++;
		for (size_t k = at; k < end; k++) {
			if (!n->list[k].is_before)
				continue;
			uint32_t off = (uint32_t)m->text.len;
			for (uint32_t tab = 0; tab < c->lines[i].len && s[c->lines[i].off + tab] == '\t'; tab++)
				buf_add_ch(&m->text, '\t');
			put_comment(&m->text, n->list[k].text.s, n->list[k].text.len);
			lines[cnt++] = (struct ses_c_line){.off = off, .len = (uint32_t)m->text.len - off};
			buf_add_ch(&m->text, '\n');
		}
		uint32_t off = (uint32_t)m->text.len;
		put_line(m, s + c->lines[i].off, c->lines[i].len, n->list + at, end - at);
		for (size_t k = at; k < end; k++) {
			if (n->list[k].is_before || n->list[k].is_format)
				continue;
			buf_add_ch(&m->text, ' ');
			put_comment(&m->text, n->list[k].text.s, n->list[k].text.len);
		}
		moved[i] = cnt;
		lines[cnt] = c->lines[i];
		lines[cnt].off = off;
		lines[cnt++].len = (uint32_t)m->text.len - off;
		buf_add_ch(&m->text, '\n');
		at = end;
	}
	for (uint32_t i = 0; i < c->place_cnt; i++)
		c->places[i].line = moved[c->places[i].line];
	c->lines = lines;
	c->line_cnt = cnt;
	return true;
}

static struct err *make(struct maker *m, const struct ses_call *call)
{
	struct notes n = {0};
	m->c->text = ses_text_of(m->code->text.data, m->code->text.len);
	if (!make_lines(m))
		return &err_nomem;
	struct err *e = make_places(m, call);
	if (e)
		return e;
	if (!add_facts(m, &n, EDITS_COMMENT, add_comment) || !add_facts(m, &n, EDITS_FORMAT, add_format) || (n.cnt && !put_notes(m, &n)) ||
	    m->text.failed)
		return &err_nomem;
	const struct buf *b = n.cnt ? &m->text : &m->code->text;
	char *text = arena_strndup(m->a, b->len ? b->data : "", b->len);
	if (!text)
		return &err_nomem;
	m->c->text = ses_text_of(text, b->len);
	return ses_call_check(call);
}

/* What the store knows of this very C; not_run when nothing. */
static struct err *find_verdict(struct maker *m, const struct ses_call *call)
{
	struct store_cached_list kept = ses_verdict_load(m->sn, m->code->va, m->code->va, m->a);
	struct ses_verdict_base base;
	struct verify_verdict v = {0};
	struct verify_func f;
	uint8_t key[32];
	struct err *e = NULL;
	if (kept.cnt)
		e = ses_verdict_base_make(m->sn, &base);
	if (kept.cnt && !e)
		e = ses_verdict_func(m->sn, call, m->code, m->a, &f);
	if (kept.cnt && !e)
		e = ses_verdict_key(m->sn, &base, &f, m->code, key);
	if (kept.cnt && !e)
		(void)ses_verdict_find(&kept, m->code->va, key, NULL, &v);
	m->c->verified = verify_status_name(v.status);
	m->c->inputs = v.inputs;
	m->c->blocks = v.blocks;
	m->c->blocks_hit = v.blocks_hit;
	m->c->edges = v.edges;
	m->c->edges_hit = v.edges_hit;
	return e;
}

bool ses_can_decompile(struct ses_snap *sn)
{
	return lift_machine(sn->arch->id) != NULL;
}

struct err *ses_decompile(struct ses_snap *sn, const struct ses_call *call, uint64_t va, struct arena *a, struct ses_c *ret)
{
	uint32_t loc = space_loc(sn->space, va);
	uint32_t func = loc == LOC_NONE ? UINT32_MAX : image_func_at(sn->im, loc);
	*ret = (struct ses_c){.level = "L4", .status = "full", .verified = "not_run"};
	if (func == UINT32_MAX)
		return err_fix(err_new(ERR_NOT_FOUND, "0x%llx: is in no function", (unsigned long long)va), "scry functions FILE lists them");
	if (!ses_can_decompile(sn))
		return err_fix(err_new(ERR_UNSUPPORTED, "C of %s needs a lifter for it, which there is not yet", sn->arch->name),
			       "listing and graph show the function");
	struct err *e = ses_call_check(call);
	if (e)
		return e;
	struct arena scratch = {0};
	struct ses_code code = {0};
	struct maker m = {.sn = sn, .func = func, .code = &code, .a = a, .c = ret};
	e = ses_code_func(sn, func, true, &scratch, &code);
	if (!e) {
		ret->level = dec_level_name(code.level);
		ret->addr = code.va;
		ret->insn_cnt = code.insn_cnt;
		ret->unlifted_cnt = code.generic_cnt;
		ret->status = code.stops.len ? "partial" : "full";
		const char *stops = arena_strndup(a, code.stops.len ? code.stops.data : "", code.stops.len);
		ret->stops = ses_text_cstr(stops ? stops : "");
		const char *name = arena_strndup(a, code.name, strlen(code.name));
		const char *prototype = arena_strndup(a, code.prototype, strlen(code.prototype));
		ret->name = ses_text_cstr(name);
		ret->prototype = ses_text_cstr(prototype);
		e = name && prototype && stops && code.text.len < UINT32_MAX ? make(&m, call) : &err_nomem;
		if (!e)
			e = find_verdict(&m, call);
	}
	buf_fini(&m.text);
	ses_code_fini(&code);
	arena_fini(&scratch);
	return e;
}
