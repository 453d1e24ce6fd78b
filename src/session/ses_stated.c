/* SPDX-License-Identifier: Apache-2.0 */
/* From the directives of the journal to what analysis is given. Every value is checked here: a journal may hold anything. */
#include "session/ses_stated_int.h"

#include <string.h>

#define STATED_MAX (1u << 20) /* of one kind; more are not read */

/* A number, decimal or 0x; moves `*p` behind it. */
static bool take_num(const char **p, uint64_t *ret)
{
	const char *s = *p;
	unsigned base = s[0] == '0' && (s[1] | 0x20) == 'x' ? 16 : 10;
	uint64_t v = 0;
	s += base == 16 ? 2 : 0;
	const char *first = s;
	for (;; s++) {
		unsigned d = *s >= '0' && *s <= '9' ? (unsigned)(*s - '0') : (*s | 0x20) >= 'a' && (*s | 0x20) <= 'f' ?
			     (unsigned)((*s | 0x20) - 'a') + 10 : 16;
		if (d >= base)
			break;
		if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, d, &v))
			return false;
	}
	*p = s;
	*ret = v;
	return s > first;
}

/* A distance: a sign and a number. */
static bool take_off(const char **p, uint64_t va, uint64_t *ret)
{
	char sign = **p;
	uint64_t n;
	if (sign != '+' && sign != '-')
		return false;
	(*p)++;
	if (!take_num(p, &n))
		return false;
	*ret = sign == '+' ? va + n : va - n;
	return true;
}

static bool take_word(const char **p, const char *word)
{
	size_t n = strlen(word);
	if (strncmp(*p, word, n))
		return false;
	*p += n;
	return true;
}

/* "LEN/UNIT[p]:TYPE" */
static bool read_data(const char *p, struct analysis_item *ret)
{
	uint64_t unit;
	if (!take_num(&p, &ret->len) || *p++ != '/' || !take_num(&p, &unit) || !unit || unit > ret->len)
		return false;
	ret->unit = (uint32_t)MIN(unit, UINT32_MAX);
	ret->is_pointer = *p == 'p';
	p += ret->is_pointer;
	return *p == ':';
}

/* "KIND:LEN[/ZERO]" */
static bool read_string(const char *p, struct analysis_item *ret)
{
	static const struct { const char *name; uint8_t enc, unit; } kinds[] = {
		{"c16:", IMAGE_ENC_UTF16LE, 2}, {"c16be:", IMAGE_ENC_UTF16BE, 2}, {"c32:", IMAGE_ENC_UTF32LE, 4},
		{"pascal:", IMAGE_ENC_PASCAL, 1}, {"c:", IMAGE_ENC_ASCII, 1}, {"utf8:", IMAGE_ENC_UTF8, 1}};
	uint64_t zero = 0;
	size_t i = 0;
	while (i < ARRAY_LEN(kinds) && !take_word(&p, kinds[i].name))
		i++;
	if (i == ARRAY_LEN(kinds) || !take_num(&p, &ret->len) || (*p == '/' && (p++, !take_num(&p, &zero))) || *p || !ret->len)
		return false;
	ret->encoding = kinds[i].enc;
	ret->zero_len = (uint8_t)MIN(zero, 255u);
	return (zero == 0 || zero == kinds[i].unit) && zero < ret->len;
}

bool ses_stated_item(const char *value, uint64_t va, struct analysis_item *ret)
{
	const char *p = value;
	*ret = (struct analysis_item){.va = va};
	if (take_word(&p, "data:")) {
		ret->kind = ANALYSIS_DATA;
		return read_data(p, ret);
	}
	if (take_word(&p, "string:")) {
		ret->kind = ANALYSIS_STRING;
		return read_string(p, ret);
	}
	bool is_undef = take_word(&p, "undef");
	if (!is_undef && !take_word(&p, "code") && !take_word(&p, "func"))
		return false;
	ret->kind = is_undef ? ANALYSIS_UNDEF : *value == 'c' ? ANALYSIS_CODE : ANALYSIS_FUNC;
	if (*p == ':' && (p++, !take_num(&p, &ret->len)))
		return false;
	return !*p && (ret->len || !is_undef);
}

size_t ses_stated_pieces(const char *value, uint64_t va, struct analysis_piece *out)
{
	size_t n = 0;
	for (const char *p = value;; p++) {
		struct analysis_piece *piece = &out[n];
		piece->func_va = va;
		if (n++ == SES_PIECES_MAX || !take_off(&p, va, &piece->va) || *p++ != '/' || !take_num(&p, &piece->len) || !piece->len)
			return 0;
		if (!*p)
			return n;
		if (*p != ',')
			return 0;
	}
}

bool ses_stated_flags(const char *value, uint64_t va, struct analysis_func_flags *ret)
{
	static const struct { const char *name; uint32_t flag; } names[] = {
		{"noreturn", ANALYSIS_NORETURN}, {"returns", ANALYSIS_RETURNS}, {"library", ANALYSIS_LIBRARY}, {"thunk", ANALYSIS_THUNK}};
	*ret = (struct analysis_func_flags){.va = va, .thunk_va = UINT64_MAX};
	for (const char *p = value;; p++) {
		size_t i = 0;
		while (i < ARRAY_LEN(names) && !take_word(&p, names[i].name))
			i++;
		if (i == ARRAY_LEN(names))
			return false;
		ret->flags |= names[i].flag;
		if (*p == '=' && (names[i].flag != ANALYSIS_THUNK || (p++, !take_off(&p, va, &ret->thunk_va))))
			return false;
		if (!*p)
			return (ret->flags & (ANALYSIS_NORETURN | ANALYSIS_RETURNS)) != (ANALYSIS_NORETURN | ANALYSIS_RETURNS);
		if (*p != ',')
			return false;
	}
}

/* "table=+OFF,count=N,size=N[,base=+OFF][,shift=N][,signed][,low=N]" */
bool ses_stated_switch(const char *value, uint64_t va, struct analysis_switch *ret)
{
	uint64_t cnt = 0, size = 0, shift = 0, low = 0;
	bool has_table = false;
	*ret = (struct analysis_switch){.jump_va = va};
	for (const char *p = value;; p++) {
		bool ok = take_word(&p, "table=") ? has_table = true, take_off(&p, va, &ret->table_va) :
			  take_word(&p, "count=") ? take_num(&p, &cnt) :
			  take_word(&p, "size=") ? take_num(&p, &size) :
			  take_word(&p, "base=") ? take_off(&p, va, &ret->base_va) :
			  take_word(&p, "shift=") ? take_num(&p, &shift) :
			  take_word(&p, "low=") ? take_off(&p, 0, &low) : take_word(&p, "signed") ? (ret->is_signed = true) : false;
		if (!ok)
			return false;
		if (!*p)
			break;
		if (*p != ',')
			return false;
	}
	ret->entry_cnt = (uint32_t)MIN(cnt, UINT32_MAX);
	ret->entry_bytes = (uint8_t)MIN(size, 255u);
	ret->shift = (uint8_t)MIN(shift, 255u);
	ret->low = (int64_t)low;
	return has_table && cnt && cnt <= ANALYSIS_SWITCH_MAX && shift <= 3 && (size == 1 || size == 2 || size == 4 || size == 8);
}

/* --- all of them --- */

static struct err *read_pieces(const struct edits_view *v, uint64_t bias, struct arena *a, struct analysis_stated *ret)
{
	size_t cnt, n = 0;
	const struct edits_fact *f = edits_range(v, EDITS_BOUNDS, 0, UINT64_MAX, &cnt);
	struct analysis_piece *some = cnt ? ARENA_ARRAY(a, struct analysis_piece, SES_PIECES_MAX) : NULL;
	VEC(struct analysis_piece) all = {0};
	if (cnt && !some)
		return &err_nomem;
	for (size_t i = 0; i < cnt && n < STATED_MAX; i++) {
		size_t k = ses_stated_pieces(f[i].value, f[i].va + bias, some);
		for (size_t m = 0; m < k; m++, n++) {
			if (!VEC_PUSH(&all, some[m])) {
				VEC_FREE(&all);
				return &err_nomem;
			}
		}
	}
	struct analysis_piece *out = ARENA_ARRAY(a, struct analysis_piece, n + 1);
	if (out && n)
		memcpy(out, all.data, n * sizeof(*out));
	VEC_FREE(&all);
	ret->pieces = out;
	ret->piece_cnt = n;
	return out ? NULL : &err_nomem;
}

struct err *ses_stated_read(const struct edits_view *v, uint64_t bias, struct arena *a, struct analysis_stated *ret)
{
	size_t item_cnt, flag_cnt, switch_cnt;
	const struct edits_fact *items = edits_range(v, EDITS_ITEM, 0, UINT64_MAX, &item_cnt);
	const struct edits_fact *flags = edits_range(v, EDITS_FLAGS, 0, UINT64_MAX, &flag_cnt);
	const struct edits_fact *switches = edits_range(v, EDITS_TABLE, 0, UINT64_MAX, &switch_cnt);
	*ret = (struct analysis_stated){0};
	struct analysis_item *it = ARENA_ARRAY(a, struct analysis_item, MIN(item_cnt, STATED_MAX) + 1);
	struct analysis_func_flags *fl = ARENA_ARRAY(a, struct analysis_func_flags, MIN(flag_cnt, STATED_MAX) + 1);
	struct analysis_switch *sw = ARENA_ARRAY(a, struct analysis_switch, MIN(switch_cnt, STATED_MAX) + 1);
	if (!it || !fl || !sw)
		return &err_nomem;
	for (size_t i = 0; i < item_cnt && ret->item_cnt < STATED_MAX; i++)
		ret->item_cnt += ses_stated_item(items[i].value, items[i].va + bias, &it[ret->item_cnt]);
	for (size_t i = 0; i < flag_cnt && ret->flag_cnt < STATED_MAX; i++)
		ret->flag_cnt += ses_stated_flags(flags[i].value, flags[i].va + bias, &fl[ret->flag_cnt]);
	for (size_t i = 0; i < switch_cnt && ret->switch_cnt < STATED_MAX; i++)
		ret->switch_cnt += ses_stated_switch(switches[i].value, switches[i].va + bias, &sw[ret->switch_cnt]);
	ret->items = it;
	ret->flags = fl;
	ret->switches = sw;
	return read_pieces(v, bias, a, ret);
}
