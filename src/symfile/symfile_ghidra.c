/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Ghidra writes: tables saved as CSV (RFC 4180) and its XML. Of XML only what tags, attributes, references to characters
 * and CDATA need is known; there are no entities of a document's own, so nothing can grow.
 */
#include "symfile/symfile_int.h"

#include "base/utf8.h"

#include <string.h>

bool symfile_ghidra_addr(struct symfile_str s, uint64_t *ret, const char **ret_why)
{
	s = symfile_trim(s);
	if (s.len > 4 && !memcmp(s.s, "ram:", 4)) {
		s.s += 4;
		s.len -= 4;
	}
	if (symfile_hex(s, ret))
		return true;
	*ret_why = s.len && (memchr(s.s, ':', s.len) || memchr(s.s, '[', s.len)) ? "it is not in memory" : "its address cannot be read";
	return false;
}

struct symfile_str symfile_ghidra_name(struct symfile_reader *r, struct symfile_str ns, struct symfile_str name, bool is_func)
{
	while (ns.len && ns.s[ns.len - 1] == ':')
		ns.len--;
	if (!ns.len || !is_func || symfile_str_is(ns, "Global") || ns.s[0] == '<')
		return name;
	char *s = arena_printf(r->arena, "%.*s::%.*s", (int)MIN(ns.len, 4096), ns.s, (int)MIN(name.len, 4096), name.s);
	if (!s) {
		r->is_out_of_memory = true;
		return name;
	}
	return (struct symfile_str){s, strlen(s)};
}

static void add_bad_addr(struct symfile_reader *r, struct symfile_str text, const char *why)
{
	if (!strcmp(why, "it is not in memory"))
		symfile_leave_out(r, text, why);
	else
		symfile_refuse(r, text, why);
}

/* --- CSV --- */

enum csv_column { CSV_NAME, CSV_ADDR, CSV_NAMESPACE, CSV_TYPE, CSV_SIGNATURE, CSV_COLUMN_COUNT };
#define CSV_FIELD_MAX 64

static enum csv_column csv_column(struct symfile_str title)
{
	static const struct { const char *title; enum csv_column column; } titles[] = {
		{"Name", CSV_NAME},	       {"Location", CSV_ADDR},	{"Address", CSV_ADDR},
		{"Entry Point", CSV_ADDR},     {"Namespace", CSV_NAMESPACE}, {"Type", CSV_TYPE},
		{"Symbol Type", CSV_TYPE},     {"Function Signature", CSV_SIGNATURE},
	};
	for (size_t i = 0; i < ARRAY_LEN(titles); i++) {
		if (symfile_str_is(title, titles[i].title))
			return titles[i].column;
	}
	return CSV_COLUMN_COUNT;
}

/* One field into `out`; true when another follows in the record. */
static bool csv_field(struct symfile_reader *r, struct buf *out)
{
	bool is_quoted = r->pos < r->len && r->text[r->pos] == '"';
	r->pos += is_quoted;
	while (r->pos < r->len) {
		char ch = r->text[r->pos];
		if (is_quoted && ch == '"') {
			r->pos++;
			if (r->pos < r->len && r->text[r->pos] == '"') {
				buf_add_ch(out, '"');
				r->pos++;
			} else {
				is_quoted = false;
			}
			continue;
		}
		if (!is_quoted && (ch == ',' || ch == '\n'))
			break;
		r->line += ch == '\n';
		buf_add_ch(out, ch);
		r->pos++;
	}
	bool has_more = r->pos < r->len && r->text[r->pos] == ',';
	if (r->pos < r->len)
		r->pos++;
	return has_more;
}

/* A record's fields, in the arena; false at the end. Those past the last we look at are read and dropped. */
static bool csv_record(struct symfile_reader *r, struct symfile_str *fields, size_t *ret_cnt)
{
	_cleanup_buf_ struct buf b = {0};
	bool has_more = r->pos < r->len;
	*ret_cnt = 0;
	if (!has_more)
		return false;
	while (has_more) {
		b.len = 0;
		has_more = csv_field(r, &b);
		if (*ret_cnt == CSV_FIELD_MAX)
			continue;
		const char *s = b.failed ? NULL : arena_strndup(r->arena, b.data ? b.data : "", b.len);
		if (!s)
			r->is_out_of_memory = true;
		fields[(*ret_cnt)++] = symfile_trim((struct symfile_str){s ? s : "", s ? b.len : 0});
	}
	return true;
}

static void csv_add(struct symfile_reader *r, const struct symfile_str *row, bool is_func_table)
{
	uint64_t addr;
	const char *why;
	bool is_func = is_func_table || symfile_str_is(row[CSV_TYPE], "Function") || symfile_contains(row[CSV_TYPE], "Method");
	struct symfile_str name = row[CSV_NAME];
	if (symfile_ghidra_addr(row[CSV_ADDR], &addr, &why))
		symfile_add(r, SYMFILE_NAME, "", addr,
			    symfile_is_made_up(name.s, name.len) ? name : symfile_ghidra_name(r, row[CSV_NAMESPACE], name, is_func));
	else
		add_bad_addr(r, name, why);
}

void symfile_read_csv(struct symfile_reader *r)
{
	struct symfile_str fields[CSV_FIELD_MAX];
	size_t at[CSV_COLUMN_COUNT], cnt;
	for (size_t i = 0; i < CSV_COLUMN_COUNT; i++)
		at[i] = CSV_FIELD_MAX;
	r->line = 1;
	if (!csv_record(r, fields, &cnt))
		return;
	for (size_t i = 0; i < cnt; i++) {
		enum csv_column c = csv_column(fields[i]);
		if (c < CSV_COLUMN_COUNT && at[c] == CSV_FIELD_MAX)
			at[c] = i;
	}
	if (at[CSV_NAME] == CSV_FIELD_MAX || at[CSV_ADDR] == CSV_FIELD_MAX) {
		symfile_refuse(r, (struct symfile_str){0}, "its header names no column Name, or none with the address");
		return;
	}
	for (;;) {
		r->line++;
		if (!csv_record(r, fields, &cnt))
			return;
		struct symfile_str row[CSV_COLUMN_COUNT];
		for (size_t i = 0; i < CSV_COLUMN_COUNT; i++)
			row[i] = at[i] < cnt ? fields[at[i]] : (struct symfile_str){"", 0};
		if (row[CSV_NAME].len || row[CSV_ADDR].len)
			csv_add(r, row, at[CSV_SIGNATURE] != CSV_FIELD_MAX);
	}
}

/* --- XML --- */

enum xml_attr { XML_ADDRESS, XML_ENTRY, XML_NAME, XML_NAMESPACE, XML_TYPE, XML_BASE, XML_COMMENT, XML_ATTR_COUNT };
static const char *const xml_attrs[XML_ATTR_COUNT] = {
	[XML_ADDRESS] = "ADDRESS", [XML_ENTRY] = "ENTRY_POINT", [XML_NAME] = "NAME",	   [XML_NAMESPACE] = "NAMESPACE",
	[XML_TYPE] = "TYPE",	   [XML_BASE] = "IMAGE_BASE",	[XML_COMMENT] = "COMMENT",
};

struct xml_tag {
	struct symfile_str name;
	bool is_end, is_empty;
	struct symfile_str attrs[XML_ATTR_COUNT]; /* decoded, in the arena; s null: not there */
};

static void put_char(struct buf *out, uint32_t cp)
{
	char utf8[4];
	if (cp < 0x80) {
		buf_add_ch(out, (char)cp);
		return;
	}
	size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
	for (size_t i = n - 1; i > 0; i--, cp >>= 6)
		utf8[i] = (char)(0x80 | (cp & 0x3f));
	utf8[0] = (char)((n == 2 ? 0xc0 : n == 3 ? 0xe0 : 0xf0) | cp);
	buf_add(out, utf8, n);
}

/* "&lt;", "&#65;", "&#x41;" at its ampersand; the bytes it took, 0 when it is none. */
static size_t xml_reference(struct symfile_str s, struct buf *out)
{
	static const struct { const char *name; char ch; } names[] = {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
	const char *end = memchr(s.s, ';', MIN(s.len, 12));
	if (!end)
		return 0;
	struct symfile_str name = {s.s + 1, (size_t)(end - s.s) - 1};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (symfile_str_is(name, names[i].name)) {
			buf_add_ch(out, names[i].ch);
			return name.len + 2;
		}
	}
	if (name.len < 2 || name.s[0] != '#')
		return 0;
	bool is_hex = (name.s[1] | 0x20) == 'x';
	uint32_t cp = 0;
	size_t i = is_hex ? 2 : 1;
	if (i == name.len)
		return 0;
	for (; i < name.len; i++) {
		uint64_t d;
		if (!symfile_hex((struct symfile_str){name.s + i, 1}, &d) || (!is_hex && d > 9) || cp > 0x10ffff)
			return 0;
		cp = cp * (is_hex ? 16 : 10) + (uint32_t)d;
	}
	if (!cp || cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000))
		return 0;
	put_char(out, cp);
	return name.len + 2;
}

static struct symfile_str xml_decode(struct symfile_reader *r, struct symfile_str s)
{
	_cleanup_buf_ struct buf b = {0};
	for (size_t i = 0; i < s.len;) {
		size_t n = s.s[i] == '&' ? xml_reference((struct symfile_str){s.s + i, s.len - i}, &b) : 0;
		if (!n && s.s[i] != '\r')
			buf_add_ch(&b, s.s[i]);
		i += n ? n : 1;
	}
	char *copy = b.failed ? NULL : arena_strndup(r->arena, b.data ? b.data : "", b.len);
	if (!copy)
		r->is_out_of_memory = true;
	return (struct symfile_str){copy ? copy : "", copy ? b.len : 0};
}

/* Moves behind the next `end`, or to the end of the text; counts the lines. */
static struct symfile_str upto(struct symfile_reader *r, const char *end)
{
	const char *s = r->text + r->pos;
	size_t left = r->len - r->pos;
	const char *found = left ? memmem(s, left, end, strlen(end)) : NULL;
	struct symfile_str piece = {s, found ? (size_t)(found - s) : left};
	for (const char *p = s, *stop = s + piece.len; p < stop && (p = memchr(p, '\n', (size_t)(stop - p))); p++)
		r->line++;
	r->pos += piece.len + (found ? strlen(end) : 0);
	return piece;
}

static bool starts(const struct symfile_reader *r, const char *text)
{
	size_t n = strlen(text);
	return r->len - r->pos >= n && !memcmp(r->text + r->pos, text, n);
}

static bool is_xml_blank(char ch)
{
	return ch == ' ' || ch == '\t' || ch == '\r' || ch == '\n';
}

/* NAME="VALUE" pairs of a tag's inside. A value may hold '>', so the tag's end is found here. */
static bool xml_attributes(struct symfile_reader *r, struct xml_tag *ret)
{
	while (r->pos < r->len) {
		char ch = r->text[r->pos];
		if (ch == '>') {
			r->pos++;
			return true;
		}
		if (is_xml_blank(ch) || ch == '/') {
			ret->is_empty = ret->is_empty || ch == '/';
			r->line += ch == '\n';
			r->pos++;
			continue;
		}
		size_t n = 0;
		const char *s = r->text + r->pos;
		while (r->pos + n < r->len && s[n] != '=' && s[n] != '>' && !is_xml_blank(s[n]))
			n++;
		r->pos += n;
		if (r->pos + 1 >= r->len || r->text[r->pos] != '=' || (r->text[r->pos + 1] != '"' && r->text[r->pos + 1] != '\'')) {
			r->pos += r->pos < r->len && r->text[r->pos] == '=';
			continue;
		}
		char quote[2] = {r->text[r->pos + 1], 0};
		r->pos += 2;
		struct symfile_str value = upto(r, quote);
		for (size_t i = 0; i < XML_ATTR_COUNT; i++) {
			if (symfile_str_is((struct symfile_str){s, n}, xml_attrs[i]) && !ret->attrs[i].s)
				ret->attrs[i] = xml_decode(r, value);
		}
	}
	return false;
}

/* The next tag; what stands before it is passed over. False at the end. */
static bool xml_next(struct symfile_reader *r, struct xml_tag *ret)
{
	for (;;) {
		(void)upto(r, "<");
		if (r->pos >= r->len)
			return false;
		if (starts(r, "!--"))
			(void)upto(r, "-->");
		else if (starts(r, "![CDATA["))
			(void)upto(r, "]]>");
		else if (r->text[r->pos] == '?' || r->text[r->pos] == '!')
			(void)upto(r, ">");
		else
			break;
	}
	*ret = (struct xml_tag){.is_end = r->text[r->pos] == '/'};
	r->pos += ret->is_end;
	ret->name.s = r->text + r->pos;
	while (r->pos < r->len && !is_xml_blank(r->text[r->pos]) && r->text[r->pos] != '>' && r->text[r->pos] != '/') {
		r->pos++;
		ret->name.len++;
	}
	return xml_attributes(r, ret);
}

/* The text up to the next tag, CDATA taken as it stands. */
static struct symfile_str xml_text(struct symfile_reader *r)
{
	struct symfile_str s = upto(r, "<");
	if (!starts(r, "![CDATA[")) {
		r->pos -= r->pos > 0 && r->text[r->pos - 1] == '<';
		return xml_decode(r, s);
	}
	r->pos += 8;
	return upto(r, "]]>");
}

static void xml_name(struct symfile_reader *r, const struct xml_tag *t, struct symfile_str where, bool is_func)
{
	uint64_t addr;
	const char *why;
	struct symfile_str name = t->attrs[XML_NAME], ns = t->attrs[XML_NAMESPACE];
	if (!where.s || !name.s) {
		symfile_refuse(r, name, "it has no address or no name");
		return;
	}
	if (!symfile_ghidra_addr(where, &addr, &why))
		add_bad_addr(r, name, why);
	else
		symfile_add(r, SYMFILE_NAME, "", addr,
			    symfile_is_made_up(name.s, name.len) || !ns.s ? name : symfile_ghidra_name(r, ns, name, is_func));
}

static void xml_comment(struct symfile_reader *r, const struct xml_tag *t)
{
	static const struct { const char *type, *sub; } kinds[] = {
		{"end-of-line", "line"}, {"pre", "block"}, {"plate", "block"}, {"repeatable", "repeatable"}};
	uint64_t addr;
	const char *why, *sub = NULL;
	struct symfile_str text = t->is_empty ? (struct symfile_str){"", 0} : xml_text(r);
	for (size_t i = 0; t->attrs[XML_TYPE].s && i < ARRAY_LEN(kinds); i++) {
		if (symfile_str_is(t->attrs[XML_TYPE], kinds[i].type))
			sub = kinds[i].sub;
	}
	if (!t->attrs[XML_ADDRESS].s || !symfile_ghidra_addr(t->attrs[XML_ADDRESS], &addr, &why))
		symfile_refuse(r, text, "its address cannot be read");
	else if (!sub)
		symfile_leave_out(r, text, "comments of this kind have no place in the listing");
	else
		symfile_add(r, SYMFILE_COMMENT, sub, addr, text);
}

static void xml_bookmark(struct symfile_reader *r, const struct xml_tag *t)
{
	uint64_t addr;
	const char *why;
	struct symfile_str text = t->attrs[XML_COMMENT];
	if (!t->attrs[XML_TYPE].s || !symfile_str_is(t->attrs[XML_TYPE], "Note"))
		symfile_leave_out(r, text, "the bookmark is the analyser's own");
	else if (!t->attrs[XML_ADDRESS].s || !symfile_ghidra_addr(t->attrs[XML_ADDRESS], &addr, &why))
		symfile_refuse(r, text, "its address cannot be read");
	else
		symfile_add(r, SYMFILE_BOOKMARK, "", addr, text.len ? text : SYMFILE_STR("bookmark"));
}

void symfile_read_xml(struct symfile_reader *r)
{
	struct xml_tag t;
	r->line = 1;
	while (xml_next(r, &t)) {
		if (t.is_end)
			continue;
		if (symfile_str_is(t.name, "PROGRAM") && t.attrs[XML_BASE].s)
			r->has_base = symfile_hex(t.attrs[XML_BASE], &r->base);
		else if (symfile_str_is(t.name, "SYMBOL"))
			xml_name(r, &t, t.attrs[XML_ADDRESS], t.attrs[XML_TYPE].s && symfile_str_is(t.attrs[XML_TYPE], "function"));
		else if (symfile_str_is(t.name, "FUNCTION"))
			xml_name(r, &t, t.attrs[XML_ENTRY], true);
		else if (symfile_str_is(t.name, "COMMENT"))
			xml_comment(r, &t);
		else if (symfile_str_is(t.name, "BOOKMARK"))
			xml_bookmark(r, &t);
	}
}
