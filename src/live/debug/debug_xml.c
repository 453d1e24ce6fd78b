/* SPDX-License-Identifier: Apache-2.0 */
#include "live/debug/debug_xml.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_space(char ch)
{
	return ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r';
}

static bool is_name(char ch)
{
	return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') || ch == '_' || ch == '-' || ch == '.' || ch == ':';
}

static void skip_space(struct debug_xml *x)
{
	while (x->p < x->end && is_space(*x->p))
		x->p++;
}

static const char *take_name(struct debug_xml *x, uint32_t *ret_len)
{
	const char *from = x->p;
	while (x->p < x->end && is_name(*x->p))
		x->p++;
	*ret_len = (uint32_t)(x->p - from);
	return from;
}

/* Behind the next `text`; false when it is not there. */
static bool skip_past(struct debug_xml *x, const char *text)
{
	const char *at = memmem(x->p, (size_t)(x->end - x->p), text, strlen(text));
	if (!at)
		return false;
	x->p = at + strlen(text);
	return true;
}

static bool starts(const struct debug_xml *x, const char *text)
{
	size_t len = strlen(text);
	return (size_t)(x->end - x->p) >= len && !memcmp(x->p, text, len);
}

/* A document type may hold an internal subset between brackets. */
static bool skip_doctype(struct debug_xml *x)
{
	int depth = 0;
	for (; x->p < x->end; x->p++) {
		depth += *x->p == '[';
		depth -= *x->p == ']';
		if (*x->p == '>' && depth <= 0) {
			x->p++;
			return true;
		}
	}
	return false;
}

static bool take_attr(struct debug_xml *x, struct debug_xml_tag *t)
{
	struct debug_xml_attr a;
	a.name = take_name(x, &a.name_len);
	skip_space(x);
	if (!a.name_len || x->p == x->end || *x->p != '=')
		return false;
	x->p++;
	skip_space(x);
	if (x->p == x->end || (*x->p != '"' && *x->p != '\''))
		return false;
	char quote = *x->p++;
	a.value = x->p;
	const char *to = memchr(x->p, quote, (size_t)(x->end - x->p));
	if (!to || to - x->p > 1 << 20)
		return false;
	a.value_len = (uint32_t)(to - x->p);
	x->p = to + 1;
	if (t->attr_cnt < DEBUG_XML_ATTRS)
		t->attrs[t->attr_cnt++] = a;
	return true;
}

/* Behind '<'. */
static bool take_tag(struct debug_xml *x, struct debug_xml_tag *ret)
{
	*ret = (struct debug_xml_tag){0};
	if (x->p < x->end && *x->p == '/') {
		ret->is_end = true;
		x->p++;
	}
	ret->name = take_name(x, &ret->name_len);
	if (!ret->name_len)
		return false;
	for (;;) {
		skip_space(x);
		if (x->p == x->end)
			return false;
		if (*x->p == '>') {
			x->p++;
			return true;
		}
		if (starts(x, "/>")) {
			x->p += 2;
			ret->is_empty = true;
			return true;
		}
		if (!take_attr(x, ret))
			return false;
	}
}

bool debug_xml_next(struct debug_xml *x, struct debug_xml_tag *ret)
{
	while (!x->failed) {
		const char *at = x->p < x->end ? memchr(x->p, '<', (size_t)(x->end - x->p)) : NULL;
		if (!at)
			return false;
		x->p = at;
		bool is_fine;
		if (starts(x, "<!--"))
			is_fine = skip_past(x, "-->");
		else if (starts(x, "<![CDATA["))
			is_fine = skip_past(x, "]]>");
		else if (starts(x, "<?"))
			is_fine = skip_past(x, "?>");
		else if (starts(x, "<!"))
			is_fine = skip_doctype(x);
		else {
			x->p++;
			x->failed = !take_tag(x, ret);
			return !x->failed;
		}
		x->failed = !is_fine;
	}
	return false;
}

bool debug_xml_is(const struct debug_xml_tag *t, const char *name)
{
	return t->name_len == strlen(name) && !memcmp(t->name, name, t->name_len);
}

/* The character a reference ("amp", "#x41") stands for, 0: none of ours. */
static char reference(const char *s, size_t len)
{
	static const struct { const char *name; char ch; } named[] = {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		if (strlen(named[i].name) == len && !memcmp(named[i].name, s, len))
			return named[i].ch;
	char digits[8] = "";
	if (len < 2 || len > 6 || s[0] != '#')
		return 0;
	bool is_hex = s[1] == 'x';
	memcpy(digits, s + 1 + is_hex, len - 1 - is_hex);
	char *end;
	unsigned long v = strtoul(digits, &end, is_hex ? 16 : 10);
	return !*end && v && v < 128 ? (char)v : 0;
}

bool debug_xml_attr(const struct debug_xml_tag *t, const char *name, char *out, size_t cap)
{
	const struct debug_xml_attr *a = NULL;
	for (uint32_t i = 0; i < t->attr_cnt && !a; i++)
		if (t->attrs[i].name_len == strlen(name) && !memcmp(t->attrs[i].name, name, t->attrs[i].name_len))
			a = &t->attrs[i];
	size_t n = 0;
	*out = 0;
	for (uint32_t i = 0; a && i < a->value_len; i++) {
		char ch = a->value[i];
		const char *semi = ch == '&' ? memchr(a->value + i, ';', MIN((size_t)(a->value_len - i), (size_t)10)) : NULL;
		char meant = semi ? reference(a->value + i + 1, (size_t)(semi - a->value) - i - 1) : 0;
		if (meant) {
			ch = meant;
			i = (uint32_t)(semi - a->value);
		}
		if (n + 1 >= cap || !ch) {
			*out = 0;
			return false;
		}
		out[n++] = ch;
		out[n] = 0;
	}
	return a;
}

bool debug_xml_number(const struct debug_xml_tag *t, const char *name, uint64_t *ret)
{
	char text[32], *end;
	if (!debug_xml_attr(t, name, text, sizeof(text)) || text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*ret = strtoull(text, &end, text[0] == '0' && (text[1] | 32) == 'x' ? 16 : 10);
	return !*end && !errno;
}
