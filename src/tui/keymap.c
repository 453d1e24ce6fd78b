/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/keymap.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "tui/term/input.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LEN 40 /* bytes of a key as written */
#define BINDING_MAX 4096
#define LANG_MAX 1024

struct binding {
	struct tui_stroke stroke[TUI_STROKES_MAX];
	uint8_t stroke_cnt;
	uint16_t where;     /* of the action, without what a higher layer took */
	uint16_t action;
	uint32_t line;      /* of the layer's text */
	unsigned layer;
	char name[NAME_MAX_LEN];
};

struct lang {
	uint32_t from, to;
};

struct tui_keymap {
	VEC(struct binding) bindings;
	VEC(struct lang) lang;
	unsigned layer_cnt;
	char *keys[TUI_ACTION_COUNT];
};

/* Layouts whose letters are no Latin ones, by the place of the key. */
static const char *const layouts[][2] = {
	{"йцукенгшщзхъфывапролджэячсмитьбюё", "qwertyuiop[]asdfghjkl;'zxcvbnm,.`"},
	{"ЙЦУКЕНГШЩЗХЪФЫВАПРОЛДЖЭЯЧСМИТЬБЮЁ", "QWERTYUIOP{}ASDFGHJKL:\"ZXCVBNM<>~"},
	{"іїєґІЇЄҐ", "s]'`S}\"~"},
	{"ςερτυθιοπασδφγηξκλζχψωβνμ", "wertyuiopasdfghjklzxcvbnm"},
	{"ΕΡΤΥΘΙΟΠΑΣΔΦΓΗΞΚΛΖΧΨΩΒΝΜ", "ERTYUIOPASDFGHJKLZXCVBNM"},
	{"קראטוןםפשדגכעיחלךףזסבהנמצתץ", "ertyuiopasdfghjkl;zxcvbnm,."},
};

unsigned tui_strokes_parse(const char *name, size_t len, struct tui_stroke *ret)
{
	uint32_t cp;
	if (term_key_parse(name, len, &ret[0].key, &ret[0].mods))
		return 1;
	size_t first = utf8_next(name, len, &cp);
	bool is_two = first && first < len && term_key_parse(name, first, &ret[0].key, &ret[0].mods) &&
		      term_key_parse(name + first, len - first, &ret[1].key, &ret[1].mods);
	return is_two ? 2 : 0;
}

static bool is_same(struct tui_stroke a, struct tui_stroke b)
{
	return a.key == b.key && a.mods == b.mods;
}

/* Whether one of them is the other or its beginning, so that both cannot be meant. */
static bool collide(const struct binding *a, const struct binding *b)
{
	unsigned cnt = MIN(a->stroke_cnt, b->stroke_cnt);
	for (unsigned i = 0; i < cnt; i++) {
		if (!is_same(a->stroke[i], b->stroke[i]))
			return false;
	}
	return true;
}

/* --- reading a layer --- */

struct reader {
	struct tui_keymap *m;
	const char *file;
	unsigned line;
	unsigned layer;
	struct err *first;
	unsigned more;
};

static void fault(struct reader *r, const char *fmt, ...) _printf_(2, 3);
static void fault(struct reader *r, const char *fmt, ...)
{
	char why[256];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (r->first)
		r->more++;
	else
		r->first = err_new(ERR_INVALID, "%s:%u: %s", r->file, r->line, why);
}

/* The binding of this layer that means something else by the same keys, or null. */
static const struct binding *conflict_of(const struct reader *r, const struct binding *b)
{
	uint16_t where = tui_action_info((enum tui_action)b->action)->where;
	for (size_t i = 0; i < r->m->bindings.cnt; i++) {
		const struct binding *o = &r->m->bindings.data[i];
		uint16_t other = tui_action_info((enum tui_action)o->action)->where;
		/* Of two actions with one key the one made for fewer places is meant. */
		bool is_told_apart = o->stroke_cnt == b->stroke_cnt && __builtin_popcount(other) != __builtin_popcount(where);
		if (o->layer == r->layer && o->where && collide(o, b) && other & where && !is_told_apart)
			return o;
	}
	return NULL;
}

/* A higher layer's keys are no longer those of a lower one, where the higher one's action is meant. */
static void take(struct tui_keymap *m, const struct binding *b)
{
	for (size_t i = 0; i < m->bindings.cnt; i++) {
		struct binding *o = &m->bindings.data[i];
		if (o->layer < b->layer && collide(o, b))
			o->where &= (uint16_t)~b->where;
	}
}

static void bind(struct reader *r, enum tui_action a, const char *key, size_t len)
{
	struct binding b = {.where = tui_action_info(a)->where, .action = (uint16_t)a, .line = r->line, .layer = r->layer};
	b.stroke_cnt = (uint8_t)tui_strokes_parse(key, len, b.stroke);
	if (!b.stroke_cnt || len >= sizeof(b.name)) {
		fault(r, "'%.*s' is no key", (int)MIN(len, 40), key);
		return;
	}
	memcpy(b.name, key, len);
	const struct binding *o = conflict_of(r, &b);
	if (o && o->action == a) {
		fault(r, "%s is given twice", b.name);
	} else if (o) {
		fault(r, "%s is %s of %s in line %u already", b.name, o->stroke_cnt == b.stroke_cnt ? "a key" : "the beginning of a key",
		      tui_action_info((enum tui_action)o->action)->name, o->line);
	} else if (r->m->bindings.cnt >= BINDING_MAX || !VEC_PUSH(&r->m->bindings, b)) {
		fault(r, "more keys than can be kept");
	} else {
		take(r->m, &b);
	}
}

static void bind_all(struct reader *r, enum tui_action a, const char *at, const char *end)
{
	while (at < end) {
		const char *key = at;
		while (at < end && *at != ' ' && *at != '\t')
			at++;
		if (at > key)
			bind(r, a, key, (size_t)(at - key));
		at += at < end;
	}
}

static size_t word_len(const char *at, const char *end)
{
	size_t n = 0;
	while (at + n < end && at[n] != ' ' && at[n] != '\t')
		n++;
	return n;
}

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	return at;
}

static void read_langmap(struct reader *r, const char *at, const char *end)
{
	size_t from_len = word_len(at, end);
	const char *to = skip_blanks(at + from_len, end);
	size_t to_len = word_len(to, end);
	while (from_len && to_len) {
		uint32_t from_cp;
		uint32_t to_cp;
		size_t a = utf8_next(at, from_len, &from_cp);
		size_t b = utf8_next(to, to_len, &to_cp);
		if (!a || !b || r->m->lang.cnt >= LANG_MAX || !VEC_PUSH(&r->m->lang, (struct lang){from_cp, to_cp}))
			break;
		at += a;
		from_len -= a;
		to += b;
		to_len -= b;
	}
	if (from_len || to_len)
		fault(r, "langmap needs two words of as many characters");
}

/* `ACTION = KEY...` or `ACTION += KEY...`. */
static void read_action(struct reader *r, const char *line, const char *end)
{
	const char *op = skip_blanks(line + word_len(line, end), end);
	size_t op_len = word_len(op, end);
	size_t name_len = word_len(line, end);
	bool is_more = op_len == 2 && !memcmp(op, "+=", 2);
	enum tui_action a = tui_action_named(line, name_len);
	if (!is_more && !(op_len == 1 && *op == '=')) {
		fault(r, "'%.*s' is followed by neither = nor +=", (int)MIN(name_len, 40), line);
		return;
	}
	if (a == TUI_NONE) {
		fault(r, "%.*s: no such action (scry keys lists them)", (int)MIN(name_len, 40), line);
		return;
	}
	for (size_t i = 0; !is_more && i < r->m->bindings.cnt; i++) {
		if (r->m->bindings.data[i].action == a)
			r->m->bindings.data[i].where = 0;
	}
	bind_all(r, a, op + op_len, end);
}

static bool is_word(const char *at, const char *end, const char *word)
{
	return word_len(at, end) == strlen(word) && !memcmp(at, word, strlen(word));
}

static void read_line(struct reader *r, const char *line, const char *end)
{
	line = skip_blanks(line, end);
	while (end > line && (end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t'))
		end--;
	if (line == end || *line == '#')
		return;
	if (is_word(line, end, "langmap"))
		read_langmap(r, skip_blanks(line + 7, end), end);
	else if (!is_word(line, end, "preset"))
		read_action(r, line, end);
}

/* What shows the keys of each action. */
static bool write_keys(struct tui_keymap *m)
{
	bool is_ok = true;
	for (int a = TUI_NONE + 1; a < TUI_ACTION_COUNT; a++) {
		struct buf b = {0};
		for (size_t i = 0; i < m->bindings.cnt; i++) {
			const struct binding *o = &m->bindings.data[i];
			if (o->action != a || !o->where)
				continue;
			if (b.len)
				buf_add_ch(&b, ' ');
			buf_add_str(&b, o->name);
		}
		buf_add_ch(&b, '\0');
		free(m->keys[a]);
		m->keys[a] = b.failed ? NULL : b.data;
		is_ok = is_ok && !b.failed;
		if (b.failed)
			buf_fini(&b);
	}
	return is_ok;
}

struct err *tui_keymap_add(struct tui_keymap *m, const char *file, const char *text, size_t len)
{
	struct reader r = {.m = m, .file = file, .layer = m->layer_cnt++};
	const char *end = text + MIN(len, (size_t)TUI_KEYMAP_LEN_MAX);
	for (const char *line = text; line < end;) {
		const char *nl = memchr(line, '\n', (size_t)(end - line));
		r.line++;
		read_line(&r, line, nl ? nl : end);
		line = nl ? nl + 1 : end;
	}
	if (len > TUI_KEYMAP_LEN_MAX)
		fault(&r, "longer than %d bytes; the rest is not read", TUI_KEYMAP_LEN_MAX);
	if (!write_keys(m)) {
		err_free(r.first);
		return &err_nomem;
	}
	if (!r.more)
		return r.first;
	struct err *e = err_new(ERR_INVALID, "%s (and %u more)", r.first->text, r.more);
	err_free(r.first);
	return e;
}

bool tui_keymap_preset_of(const char *text, size_t len, char *out, size_t cap)
{
	const char *end = text + MIN(len, (size_t)TUI_KEYMAP_LEN_MAX);
	bool has = false;
	for (const char *line = text; line < end;) {
		const char *nl = memchr(line, '\n', (size_t)(end - line));
		const char *stop = nl ? nl : end;
		while (stop > line && (stop[-1] == '\r' || stop[-1] == ' '))
			stop--;
		const char *at = skip_blanks(line, stop);
		if (is_word(at, stop, "preset")) {
			at = skip_blanks(at + 6, stop);
			size_t n = word_len(at, stop);
			has = n && n < cap;
			snprintf(out, cap, "%.*s", has ? (int)n : 0, at);
		}
		line = nl ? nl + 1 : end;
	}
	return has;
}

/* --- the map --- */

struct tui_keymap *tui_keymap_new(void)
{
	struct tui_keymap *m = calloc(1, sizeof(*m));
	struct reader r = {.m = m, .file = "actions", .layer = 0};
	if (!m)
		return NULL;
	m->layer_cnt = 1;
	for (int a = TUI_NONE + 1; a < TUI_ACTION_COUNT; a++) {
		const char *keys = tui_action_info((enum tui_action)a)->keys;
		r.line = (unsigned)a;
		bind_all(&r, (enum tui_action)a, keys, keys + strlen(keys));
	}
	for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
		struct buf b = {0};
		buf_printf(&b, "%s %s", layouts[i][0], layouts[i][1]);
		if (!b.failed)
			read_langmap(&r, b.data, b.data + b.len);
		buf_fini(&b);
	}
	/* A table that contradicts itself is found by the tests. */
	err_free(r.first);
	if (write_keys(m))
		return m;
	tui_keymap_free(m);
	return NULL;
}

void tui_keymap_free(struct tui_keymap *m)
{
	if (!m)
		return;
	for (int a = 0; a < TUI_ACTION_COUNT; a++)
		free(m->keys[a]);
	VEC_FREE(&m->bindings);
	VEC_FREE(&m->lang);
	free(m);
}

enum tui_action tui_keymap_action(const struct tui_keymap *m, const struct tui_stroke *s, unsigned cnt, uint16_t where)
{
	const struct binding *best = NULL;
	int best_places = 0;
	for (size_t i = 0; i < m->bindings.cnt; i++) {
		const struct binding *o = &m->bindings.data[i];
		if (!(o->where & where) || o->stroke_cnt != cnt || !is_same(o->stroke[0], s[0]) || (cnt > 1 && !is_same(o->stroke[1], s[1])))
			continue;
		int places = __builtin_popcount(tui_action_info((enum tui_action)o->action)->where);
		if (!best || o->layer > best->layer || (o->layer == best->layer && places < best_places)) {
			best = o;
			best_places = places;
		}
	}
	return best ? (enum tui_action)best->action : TUI_NONE;
}

const char *tui_keymap_after(const struct tui_keymap *m, struct tui_stroke s, uint16_t where, unsigned i, enum tui_action *ret)
{
	for (size_t k = 0; k < m->bindings.cnt; k++) {
		const struct binding *o = &m->bindings.data[k];
		uint32_t cp;
		if (!(o->where & where) || o->stroke_cnt < 2 || !is_same(o->stroke[0], s) || i--)
			continue;
		*ret = (enum tui_action)o->action;
		return o->name + utf8_next(o->name, strlen(o->name), &cp);
	}
	return NULL;
}

bool tui_keymap_is_prefix(const struct tui_keymap *m, struct tui_stroke s, uint16_t where)
{
	enum tui_action a;
	return tui_keymap_after(m, s, where, 0, &a) != NULL;
}

uint32_t tui_keymap_char(const struct tui_keymap *m, uint32_t key)
{
	/* What was said last holds. */
	for (size_t i = m->lang.cnt; i--;) {
		if (m->lang.data[i].from == key)
			return m->lang.data[i].to;
	}
	return key;
}

const char *tui_keymap_keys(const struct tui_keymap *m, enum tui_action a)
{
	return m->keys[a] ? m->keys[a] : "";
}
