/* SPDX-License-Identifier: Apache-2.0 */
/* From lines of C to addresses and back. */
#include "session/session.h"

#include <string.h>

static const char *line_text(const struct ses_c *c, uint32_t line, uint32_t *ret_len)
{
	const struct ses_c_line *l = &c->lines[line];
	uint32_t skip = 0;
	while (skip < l->len && (c->text.s[l->off + skip] == '\t' || c->text.s[l->off + skip] == ' '))
		skip++;
	*ret_len = l->len - skip;
	return c->text.s + l->off + skip;
}

/* What only saves the machine's state before the statement proper. */
static bool is_prelude(const struct ses_c *c, uint32_t line)
{
	static const char save[] = "SCRY_SAVE;";
	uint32_t len;
	const char *s = line_text(c, line, &len);
	return len == sizeof(save) - 1 && !memcmp(s, save, len);
}

static bool is_same_statement(const struct ses_c *c, uint32_t a, uint32_t b)
{
	return c->lines[a].addr_cnt && c->lines[a].first_addr == c->lines[b].first_addr && c->lines[a].addr_cnt == c->lines[b].addr_cnt;
}

/* The number of places with an address below va. */
static uint32_t places_below(const struct ses_c *c, uint64_t va)
{
	uint32_t lo = 0, hi = c->place_cnt;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (c->places[mid].va < va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Whether a block begins behind `from`, up to `to`. */
static bool has_start_between(const struct ses_c *c, uint64_t from, uint64_t to)
{
	uint32_t lo = 0, hi = c->start_cnt;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (c->starts[mid] <= from)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < c->start_cnt && c->starts[lo] <= to;
}

uint32_t ses_c_line_at(const struct ses_c *c, uint64_t va)
{
	if (!c->place_cnt)
		return 0;
	uint32_t at = places_below(c, va);
	bool is_there = at < c->place_cnt && c->places[at].va == va;
	if (!is_there && (at == c->place_cnt || has_start_between(c, va, c->places[at].va))) {
		at -= at > 0;
		/* The first line of it. */
		at = places_below(c, c->places[at].va);
	}
	uint32_t line = c->places[at].line;
	while (line + 1 < c->line_cnt && is_prelude(c, line) && is_same_statement(c, line, line + 1))
		line++;
	return line;
}

uint64_t ses_c_addr_of(const struct ses_c *c, uint32_t line)
{
	uint32_t len = 0;
	if (!c->line_cnt)
		return c->addr;
	line = line < c->line_cnt ? line : c->line_cnt - 1;
	bool is_end = *line_text(c, line, &len) == '}' && len;
	for (uint32_t i = line; i < c->line_cnt && !is_end; i++) {
		if (c->lines[i].addr_cnt)
			return c->addrs[c->lines[i].first_addr];
	}
	for (uint32_t i = line + 1; i-- > 0;) {
		if (c->lines[i].addr_cnt)
			return c->addrs[c->lines[i].first_addr];
	}
	return c->addr;
}
