/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of the text, and how they are written. */
#include "live/tenet/tenet_int.h"

static const int8_t hex_digit[256] = {
	['0'] = 1, ['1'] = 2, ['2'] = 3, ['3'] = 4, ['4'] = 5, ['5'] = 6, ['6'] = 7, ['7'] = 8, ['8'] = 9, ['9'] = 10,
	['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
	['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

uint8_t tenet_hex_byte(const char *hex, size_t i)
{
	return (uint8_t)((hex_digit[(uint8_t)hex[2 * i]] - 1) << 4 | (hex_digit[(uint8_t)hex[2 * i + 1]] - 1));
}

/* A number in hex with or without 0x; null when there is none or it has more than 64 bits. */
static const char *scan_number(const char *p, const char *end, uint64_t *ret)
{
	if (end - p > 2 && p[0] == '0' && (p[1] | 32) == 'x')
		p += 2;
	const char *first = p;
	uint64_t v = 0;
	for (int d; p < end && (d = hex_digit[(uint8_t)*p]); p++) {
		if (v >> 60)
			return NULL;
		v = v << 4 | (unsigned)(d - 1);
	}
	*ret = v;
	return p == first ? NULL : p;
}

static uint64_t pack_name(const char *s, size_t len)
{
	uint64_t key = 0;
	for (size_t i = 0; i < len; i++) {
		uint8_t ch = (uint8_t)s[i];
		if (ch >= 'A' && ch <= 'Z')
			ch = (uint8_t)(ch + 32);
		if (!(ch >= 'a' && ch <= 'z') && !(ch >= '0' && ch <= '9' && i) && ch != '_')
			return 0;
		key |= (uint64_t)ch << (8 * i);
	}
	return key;
}

/* A token that is `name=` something. */
static bool scan_token(const char *p, const char *end, struct tenet_token *ret)
{
	const char *eq = memchr(p, '=', (size_t)(end - p));
	if (!eq || eq == p || eq - p > TENET_NAME_MAX)
		return false;
	uint64_t key = pack_name(p, (size_t)(eq - p));
	const char *q = key ? scan_number(eq + 1, end, &ret->value) : NULL;
	if (!q)
		return false;
	bool is_read = key == ('m' | 'r' << 8), is_write = key == ('m' | 'w' << 8), is_both = key == ('m' | 'r' << 8 | 'w' << 16);
	if (!is_read && !is_write && !is_both) {
		ret->what = TENET_REG;
		ret->key = key;
		return q == end;
	}
	if (q == end || *q != ':')
		return false;
	q++;
	size_t len = (size_t)(end - q);
	if (!len || len % 2 || len / 2 > UINT32_MAX || ret->value + (len / 2 - 1) < ret->value)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!hex_digit[(uint8_t)q[i]])
			return false;
	ret->what = TENET_MEM;
	ret->kinds = is_both ? TENET_READ | TENET_WRITE : is_read ? TENET_READ : TENET_WRITE;
	ret->hex = q;
	ret->len = (uint32_t)(len / 2);
	return true;
}

bool tenet_scan_next(struct tenet_scan *s, struct tenet_token *ret)
{
	if (s->is_done)
		return false;
	const char *p = s->p;
	while (p < s->end && (*p == ',' || *p == ' ' || *p == '\r'))
		p++;
	if (p == s->end || *p == '\n') {
		ret->what = TENET_LINE;
		s->is_done = p == s->end;
		s->p = s->is_done ? p : p + 1;
		return true;
	}
	const char *q = p;
	while (q < s->end && *q != ',' && *q != '\n')
		q++;
	const char *last = q;
	while (last > p && (last[-1] == ' ' || last[-1] == '\r'))
		last--;
	if (!scan_token(p, last, ret))
		ret->what = TENET_ODD;
	s->p = q;
	return true;
}

static unsigned name_slot(uint64_t key)
{
	return (unsigned)(key * 0x9e3779b97f4a7c15u >> 56);
}

int tenet_names_find(const struct tenet_names *n, uint64_t key)
{
	for (unsigned i = name_slot(key); n->slots[i]; i = (i + 1) & 255)
		if (n->keys[n->slots[i] - 1] == key)
			return n->slots[i] - 1;
	return -1;
}

int tenet_names_know(struct tenet_names *n, uint64_t key)
{
	int found = tenet_names_find(n, key);
	if (found >= 0 || n->cnt == TENET_REG_MAX)
		return found;
	unsigned i = name_slot(key);
	while (n->slots[i])
		i = (i + 1) & 255;
	n->keys[n->cnt] = key;
	for (int k = 0; k < TENET_NAME_MAX; k++)
		n->text[n->cnt][k] = (char)(key >> (8 * k));
	n->slots[i] = (uint8_t)(n->cnt + 1);
	return (int)n->cnt++;
}

int tenet_reg_find(const struct tenet *t, const char *name)
{
	size_t len = strlen(name);
	uint64_t key = len <= TENET_NAME_MAX ? pack_name(name, len) : 0;
	return key ? tenet_names_find(&t->names, key) : -1;
}

void tenet_put(struct buf *out, const char *const *names, const uint64_t *values, uint64_t mask, const char *accesses)
{
	bool is_first = true;
	for (unsigned i = 0; i < TENET_REG_MAX; i++) {
		if (!(mask >> i & 1))
			continue;
		buf_printf(out, "%s%s=0x%llx", is_first ? "" : ",", names[i], (unsigned long long)values[i]);
		is_first = false;
	}
	buf_add_str(out, is_first && *accesses ? accesses + 1 : accesses);
	buf_add_ch(out, '\n');
}

void tenet_put_access(struct buf *out, uint8_t kinds, uint64_t va, const uint8_t *bytes, size_t len)
{
	buf_printf(out, ",m%s%s=0x%llx:", kinds & TENET_READ ? "r" : "", kinds & TENET_WRITE ? "w" : "", (unsigned long long)va);
	buf_add_hexbytes(out, bytes, len);
}
