/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers share, the formats that are lines (list and map), and telling one format from another. */
#include "symfile/symfile.h"

#include "symfile/symfile_int.h"

#include <string.h>

#define GUESS_LEN 65536

static const char *const symfile_names[SYMFILE_FORMAT_COUNT] = {
	[SYMFILE_ANY] = "auto", [SYMFILE_LIST] = "list", [SYMFILE_MAP] = "map",
	[SYMFILE_IDC] = "idc",	[SYMFILE_CSV] = "csv",	 [SYMFILE_XML] = "xml",
};

const char *symfile_format_name(enum symfile_format f)
{
	return (unsigned)f < SYMFILE_FORMAT_COUNT ? symfile_names[f] : "";
}

bool symfile_format_find(const char *name, enum symfile_format *ret)
{
	for (unsigned i = 0; i < SYMFILE_FORMAT_COUNT; i++) {
		if (!strcmp(symfile_names[i], name)) {
			*ret = (enum symfile_format)i;
			return true;
		}
	}
	return false;
}

/* --- pieces of text --- */

static bool is_blank(char ch)
{
	return ch == ' ' || ch == '\t' || ch == '\r';
}

bool symfile_str_is(struct symfile_str s, const char *text)
{
	return s.len == strlen(text) && !memcmp(s.s, text, s.len);
}

struct symfile_str symfile_trim(struct symfile_str s)
{
	while (s.len && is_blank(s.s[0])) {
		s.s++;
		s.len--;
	}
	while (s.len && is_blank(s.s[s.len - 1]))
		s.len--;
	return s;
}

bool symfile_next_line(struct symfile_reader *r, struct symfile_str *ret)
{
	if (r->pos >= r->len)
		return false;
	const char *s = r->text + r->pos;
	const char *nl = memchr(s, '\n', r->len - r->pos);
	*ret = (struct symfile_str){s, nl ? (size_t)(nl - s) : r->len - r->pos};
	r->pos += ret->len + (nl != NULL);
	r->line++;
	return true;
}

struct symfile_str symfile_word(struct symfile_str *s)
{
	*s = symfile_trim(*s);
	size_t n = 0;
	while (n < s->len && !is_blank(s->s[n]))
		n++;
	struct symfile_str word = {s->s, n};
	s->s += n;
	s->len -= n;
	return word;
}

static int hex_digit(char ch)
{
	if (ch >= '0' && ch <= '9')
		return ch - '0';
	ch = (char)(ch | 0x20);
	return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

bool symfile_hex(struct symfile_str s, uint64_t *ret)
{
	uint64_t v = 0;
	if (s.len > 2 && s.s[0] == '0' && (s.s[1] | 0x20) == 'x') {
		s.s += 2;
		s.len -= 2;
	}
	if (!s.len || s.len > 16)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		int d = hex_digit(s.s[i]);
		if (d < 0)
			return false;
		v = v << 4 | (uint64_t)d;
	}
	*ret = v;
	return true;
}

bool symfile_contains(struct symfile_str s, const char *text)
{
	return s.len && memmem(s.s, s.len, text, strlen(text));
}

/* --- entries --- */

static bool all_hex(const char *s, size_t len, size_t at_least)
{
	for (size_t i = 0; i < len; i++) {
		if (hex_digit(s[i]) < 0)
			return false;
	}
	return len >= at_least && len <= 16;
}

bool symfile_is_made_up(const char *name, size_t len)
{
	static const char *const prefixes[] = {
		"sub_", "loc_", "locret_", "byte_", "word_", "dword_", "qword_", "xmmword_", "off_", "unk_", "stru_", "asc_", "algn_",
		"str_", "data_", "FUN_", "LAB_", "DAT_", "SUB_", "UNK_", "EXT_", "ARRAY_", "thunk_FUN_",
	};
	/* Ghidra's have the address last: s_hello_00102004, PTR_LAB_00103dd8, switchD_00101234::caseD_0. */
	static const char *const tails[] = {"s_", "u_", "PTR_", "switchdataD_", "switchD_"};
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		size_t n = strlen(prefixes[i]);
		if (len > n && !memcmp(name, prefixes[i], n) && all_hex(name + n, len - n, 4))
			return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(tails); i++) {
		size_t n = strlen(tails[i]);
		const char *last = len > n && !memcmp(name, tails[i], n) ? memrchr(name, '_', len) : NULL;
		if (last && all_hex(last + 1, len - (size_t)(last + 1 - name), 8))
			return true;
	}
	return len > 6 && !memcmp(name, "caseD_", 6) && all_hex(name + 6, len - 6, 1);
}

static void push(struct symfile_reader *r, struct symfile_item item, struct symfile_str text)
{
	item.line = r->line;
	item.text = arena_strndup(r->arena, text.s ? text.s : "", text.len);
	item.len = text.len;
	item.sub = item.sub ? item.sub : "";
	if (!item.text || !VEC_PUSH(&r->items, item))
		r->is_out_of_memory = true;
}

void symfile_add(struct symfile_reader *r, enum symfile_what what, const char *sub, uint64_t addr, struct symfile_str text)
{
	struct symfile_item item = {.what = what, .sub = sub, .addr = addr};
	if (what == SYMFILE_NAME && symfile_is_made_up(text.s, text.len)) {
		item.why = "the name is made up from the address";
		item.is_left_out = true;
	}
	if (!text.len)
		item.why = what == SYMFILE_NAME ? "the name is empty" : "the text is empty";
	push(r, item, text);
}

void symfile_add_in(struct symfile_reader *r, uint32_t seg, uint64_t off, struct symfile_str name)
{
	size_t was = r->items.cnt;
	symfile_add(r, SYMFILE_NAME, "", off, name);
	if (r->items.cnt > was)
		r->items.data[was].seg = seg;
}

void symfile_leave_out(struct symfile_reader *r, struct symfile_str text, const char *why)
{
	push(r, (struct symfile_item){.why = why, .is_left_out = true}, text);
}

void symfile_refuse(struct symfile_reader *r, struct symfile_str text, const char *why)
{
	text.len = MIN(text.len, 200);
	push(r, (struct symfile_item){.why = why}, text);
}

/* --- ADDR NAME --- */

void symfile_read_list(struct symfile_reader *r)
{
	struct symfile_str line;
	while (symfile_next_line(r, &line)) {
		struct symfile_str rest = symfile_trim(line);
		uint64_t addr;
		if (!rest.len || rest.s[0] == '#' || rest.s[0] == ';')
			continue;
		struct symfile_str word = symfile_word(&rest);
		rest = symfile_trim(rest);
		if (word.len == 1 && strchr("UwvN?", word.s[0]) && rest.len) {
			symfile_leave_out(r, rest, "it has no address");
			continue;
		}
		if (!symfile_hex(word, &addr) || !rest.len) {
			symfile_refuse(r, symfile_trim(line), "the line is not ADDR NAME");
			continue;
		}
		/* nm's letter of the type. */
		if (rest.len > 2 && is_blank(rest.s[1]))
			rest = symfile_trim((struct symfile_str){rest.s + 1, rest.len - 1});
		symfile_add(r, SYMFILE_NAME, "", addr, rest);
	}
}

/* --- maps --- */

/* "0001:00401000"; the piece ends with the digits. */
static bool seg_off(struct symfile_str s, uint32_t *ret_seg, uint64_t *ret_off)
{
	const char *colon = s.len ? memchr(s.s, ':', s.len) : NULL;
	uint64_t seg;
	if (!colon)
		return false;
	size_t n = (size_t)(colon - s.s);
	if (!symfile_hex((struct symfile_str){s.s, n}, &seg) || seg > UINT32_MAX ||
	    !symfile_hex((struct symfile_str){colon + 1, s.len - n - 1}, ret_off))
		return false;
	*ret_seg = (uint32_t)seg;
	return true;
}

/* " 0001:00000000 000067000H .text CODE": a line of the table of segments. */
static bool map_seg(struct symfile_reader *r, struct symfile_str rest, uint32_t number, uint64_t off)
{
	struct symfile_str len = symfile_word(&rest), name = symfile_word(&rest);
	uint64_t bytes;
	if (len.len < 2 || (len.s[len.len - 1] | 0x20) != 'h' || !name.len)
		return false;
	len.len--;
	/* Lengths have a leading 0 before a letter, as assemblers want it: up to 17 digits. */
	while (len.len > 1 && len.s[0] == '0') {
		len.s++;
		len.len--;
	}
	if (!symfile_hex(len, &bytes))
		return false;
	struct symfile_seg seg = {.number = number, .off = off, .len = bytes, .name = arena_strndup(r->arena, name.s, name.len)};
	if (!seg.name || !VEC_PUSH(&r->segs, seg))
		r->is_out_of_memory = true;
	return true;
}

/* Behind the name Microsoft's linker puts the address itself, which needs no segment. */
static void map_symbol(struct symfile_reader *r, struct symfile_str rest, uint32_t number, uint64_t off)
{
	struct symfile_str name = symfile_word(&rest), more = symfile_word(&rest);
	uint64_t addr;
	if (more.len >= 8 && symfile_hex(more, &addr))
		symfile_add(r, SYMFILE_NAME, "", addr, name);
	else if (!number)
		symfile_leave_out(r, name, "it is absolute, not in memory");
	else
		symfile_add_in(r, number, off, name);
}

void symfile_read_map(struct symfile_reader *r)
{
	struct symfile_str line;
	bool is_symbols = false;
	while (symfile_next_line(r, &line)) {
		struct symfile_str rest = symfile_trim(line);
		uint32_t number;
		uint64_t off;
		if (symfile_contains(rest, "Publics by")) {
			/* By name and by value it is the same list. */
			is_symbols = true;
			continue;
		}
		struct symfile_str word = symfile_word(&rest);
		if (!seg_off(word, &number, &off))
			continue;
		if (!is_symbols && map_seg(r, rest, number, off))
			continue;
		if (is_symbols && symfile_trim(rest).len)
			map_symbol(r, rest, number, off);
		else
			symfile_refuse(r, symfile_trim(line), "the line is not a symbol");
	}
}

/* --- which format --- */

static enum symfile_format guess(const char *text, size_t len)
{
	struct symfile_str s = {text, MIN(len, GUESS_LEN)};
	while (s.len && (is_blank(s.s[0]) || s.s[0] == '\n')) {
		s.s++;
		s.len--;
	}
	if (s.len && s.s[0] == '<')
		return SYMFILE_XML;
	if (symfile_contains(s, "Publics by"))
		return SYMFILE_MAP;
	const char *nl = s.len ? memchr(s.s, '\n', s.len) : NULL;
	struct symfile_str head = {s.s, nl ? (size_t)(nl - s.s) : s.len};
	if (symfile_contains(head, ",") && symfile_contains(head, "Name") &&
	    (symfile_contains(head, "Location") || symfile_contains(head, "Address") || symfile_contains(head, "Entry")))
		return SYMFILE_CSV;
	if (symfile_contains(s, "MakeName") || symfile_contains(s, "set_name") || symfile_contains(s, "#include <idc.idc>") ||
	    symfile_contains(s, "MakeComm") || symfile_contains(s, "set_cmt"))
		return SYMFILE_IDC;
	return SYMFILE_LIST;
}

static bool has_one(const struct symfile_reader *r)
{
	for (size_t i = 0; i < r->items.cnt; i++) {
		if (!r->items.data[i].why || r->items.data[i].is_left_out)
			return true;
	}
	return false;
}

struct err *symfile_parse(const char *text, size_t len, enum symfile_format format, struct arena *a, struct symfile *ret)
{
	static void (*const readers[SYMFILE_FORMAT_COUNT])(struct symfile_reader *r) = {
		[SYMFILE_LIST] = symfile_read_list, [SYMFILE_MAP] = symfile_read_map, [SYMFILE_IDC] = symfile_read_idc,
		[SYMFILE_CSV] = symfile_read_csv,   [SYMFILE_XML] = symfile_read_xml,
	};
	struct symfile_reader r = {.text = text, .len = len, .arena = a};
	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
		r.pos = 3;
	enum symfile_format f = format == SYMFILE_ANY ? guess(text + r.pos, len - r.pos) : format;
	readers[f](&r);
	*ret = (struct symfile){.format = f, .cnt = r.items.cnt, .seg_cnt = r.segs.cnt, .has_base = r.has_base, .base = r.base};
	ret->items = ARENA_ARRAY(a, struct symfile_item, r.items.cnt + 1);
	ret->segs = ARENA_ARRAY(a, struct symfile_seg, r.segs.cnt + 1);
	struct err *e = r.is_out_of_memory || !ret->items || !ret->segs ? &err_nomem : NULL;
	if (!e && !has_one(&r))
		e = err_new(ERR_INVALID, "no name in it can be read as %s%s",
			    f == SYMFILE_LIST ? "lines of ADDR NAME" : symfile_names[f],
			    format == SYMFILE_ANY && f == SYMFILE_LIST ? ", and it is of no other format known" : "");
	if (!e && r.items.cnt)
		memcpy(ret->items, r.items.data, r.items.cnt * sizeof(*ret->items));
	if (!e && r.segs.cnt)
		memcpy(ret->segs, r.segs.data, r.segs.cnt * sizeof(*ret->segs));
	VEC_FREE(&r.items);
	VEC_FREE(&r.segs);
	return e;
}
