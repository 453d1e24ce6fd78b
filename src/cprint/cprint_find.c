/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns over printed C. Pattern and subject are taken apart by the same lexer; matching goes along both, and where the pattern has
 * a hole or dots it tries ends in the subject, the nearest first. How much is tried is bounded.
 */
#include "cprint/cprint_find.h"

#include "base/cleanup.h"
#include "base/vec.h"

#include <string.h>

#define TOKEN_MAX (16u << 20)
#define GAP_MAX 64           /* holes and dots of a pattern: each is a level of match() */
#define STEPS_MIN 1000000
#define STEPS_EACH 64        /* more for each token of the subject */
#define NONE UINT32_MAX

enum kind { WORD, KEYWORD, NUMBER, TEXT, OPERATOR, OPEN, CLOSE, HOLE, DOTS };

/* How tightly operators bind, C11 6.5: 1 for a comma up to PREC_POSTFIX. */
enum { PREC_ASSIGN = 2, PREC_CHOICE = 3, PREC_UNARY = 14, PREC_POSTFIX = 15 };

struct tok {
	uint32_t off, len, line;
	uint32_t mate;    /* of brackets: the other one */
	uint32_t hole;    /* number of its name; NONE: any */
	uint8_t kind;
	uint8_t prec;     /* of an operator; 0: it stands for itself, as a semicolon does */
	bool is_unary;    /* of an operator */
	bool is_cast;     /* of both brackets */
	bool is_soft;     /* of both braces: around one statement */
	bool is_end;      /* an operand may end here */
	uint64_t value;
	uint32_t note_off, note_len; /* what the comment behind a number says it is */
};

struct toks {
	const char *s;
	size_t len;
	VEC(struct tok) list;
	VEC(uint32_t) open;
	uint32_t choices; /* question marks whose colon is still to come */
};

struct cprint_subject {
	struct toks t;
};

struct cprint_pattern {
	char *text;
	struct toks t;
	uint32_t hole_cnt;
	char *holes[CPRINT_HOLE_MAX];
	unsigned begin_prec, end_prec; /* of the first and the last operator outside of brackets; 0: none */
};

/* --- tokens --- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_in(const char *s, size_t len, const char *const *words, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (strlen(words[i]) == len && !memcmp(words[i], s, len))
			return true;
	}
	return false;
}

static bool is_keyword(const char *s, size_t len)
{
	static const char *const words[] = {"if", "else", "goto", "return", "switch", "case", "default", "while", "do", "for", "break", "continue"};
	return is_in(s, len, words, ARRAY_LEN(words));
}

/* uint8_t, i32 and the like, and C's own words. */
static bool is_type(const char *s, size_t len)
{
	static const char *const words[] = {"void", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "struct", "union",
					    "enum",
					    "const", "volatile", "_Bool", "bool"};
	if (is_in(s, len, words, ARRAY_LEN(words)) || (len > 2 && !memcmp(s + len - 2, "_t", 2)))
		return true;
	size_t i = 1;
	while (i < len && is_digit(s[i]))
		i++;
	return len > 1 && i == len && (s[0] == 'u' || s[0] == 'i');
}

static unsigned binary_prec(const char *s, size_t len)
{
	static const struct { const char *ops; unsigned prec; } rows[] = {
		{" , ", 1}, {" = += -= *= /= %= &= |= ^= <<= >>= ", PREC_ASSIGN}, {" ? : ", PREC_CHOICE}, {" || ", 4}, {" && ", 5}, {" | ", 6},
		{" ^ ", 7}, {" & ", 8}, {" == != ", 9}, {" < > <= >= ", 10}, {" << >> ", 11}, {" + - ", 12}, {" * / % ", 13},
		{" -> . ++ -- ", PREC_POSTFIX},
	};
	char key[8] = " ";
	memcpy(key + 1, s, len);
	key[len + 1] = ' ';
	key[len + 2] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (strstr(rows[i].ops, key))
			return rows[i].prec;
	}
	return 0;
}

static size_t operator_len(const char *s, size_t left)
{
	static const char *const ops[] = {"...", "<<=", ">>=", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=",
					  "*=", "/=", "%=", "&=", "|=", "^="};
	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		size_t n = strlen(ops[i]);
		if (n <= left && !memcmp(s, ops[i], n))
			return n;
	}
	return 1;
}

static unsigned digit_of(char c)
{
	char lower = (char)(c | 32);
	return is_digit(c) ? (unsigned)(c - '0') : lower >= 'a' && lower <= 'f' ? (unsigned)(lower - 'a' + 10) : 99;
}

static uint64_t number_of(const char *s, size_t len)
{
	bool is_hex = len > 2 && s[0] == '0' && (s[1] | 32) == 'x', is_bin = len > 2 && s[0] == '0' && (s[1] | 32) == 'b';
	unsigned base = is_hex ? 16 : is_bin ? 2 : len > 1 && s[0] == '0' ? 8 : 10;
	uint64_t v = 0;
	for (size_t i = is_hex || is_bin ? 2 : 0; i < len && digit_of(s[i]) < base; i++)
		v = v * base + digit_of(s[i]);
	return v;
}

static uint64_t char_of(const char *s, size_t len)
{
	static const char from[] = "ntr0abfv", to[] = "\n\t\r\0\a\b\f\v";
	if (len < 3)
		return 0;
	if (s[1] != '\\' || len < 4)
		return (uint8_t)s[1];
	const char *at = strchr(from, s[2]);
	return s[2] == 'x' ? number_of(s + 1, 0) + digit_of(s[3]) * (len > 5 ? 16 : 1) + (len > 5 ? digit_of(s[4]) : 0)
			   : at && *at ? (uint8_t)to[at - from] : (uint8_t)s[2];
}

/* Behind the string or character that begins at `i`; 0: it has no end. */
static size_t quoted_end(const char *s, size_t len, size_t i)
{
	char quote = s[i];
	for (i++; i < len && s[i] != '\n'; i++) {
		if (s[i] == '\\')
			i++;
		else if (s[i] == quote)
			return i + 1;
	}
	return 0;
}

/* A comment behind a number says what lies at that address: a text in quotes, or a name. */
static void keep_note(struct toks *t, size_t from, size_t to)
{
	struct tok *last = t->list.cnt ? &t->list.data[t->list.cnt - 1] : NULL;
	while (from < to && t->s[from] == ' ')
		from++;
	while (to > from && t->s[to - 1] == ' ')
		to--;
	if (last && last->kind == NUMBER && !last->note_len) {
		last->note_off = (uint32_t)from;
		last->note_len = (uint32_t)(to - from);
	}
}

/* Whether brackets with the type in them are a cast: behind a name they are a call's or a declaration's. */
static bool is_cast(const struct toks *t, uint32_t open)
{
	static const char *const tags[] = {"struct", "union", "enum"};
	uint32_t close = (uint32_t)t->list.cnt;
	const struct tok *l = t->list.data;
	if (close == open + 1 || (open && (l[open - 1].kind == WORD || l[open - 1].is_end)))
		return false;
	for (uint32_t i = open + 1; i < close; i++) {
		bool is_star = l[i].kind == OPERATOR && l[i].len == 1 && t->s[l[i].off] == '*';
		bool is_tag = i > open + 1 && l[i].kind == WORD && is_in(t->s + l[i - 1].off, l[i - 1].len, tags, ARRAY_LEN(tags));
		if (!is_star && !is_tag && !(l[i].kind == WORD && is_type(t->s + l[i].off, l[i].len)))
			return false;
	}
	return l[open + 1].kind == WORD;
}

/* Braces around one statement that has none of its own, behind what a statement belongs to. */
static bool is_soft(const struct toks *t, uint32_t open)
{
	const struct tok *l = t->list.data;
	uint32_t stops = 0, cnt = (uint32_t)t->list.cnt;
	bool is_body = open && ((l[open - 1].kind == CLOSE && t->s[l[open - 1].off] == ')') ||
				(l[open - 1].kind == KEYWORD && (t->s[l[open - 1].off] == 'e' || t->s[l[open - 1].off] == 'd')));
	if (!is_body || cnt == open + 1 || t->s[l[cnt - 1].off] != ';')
		return false;
	for (uint32_t i = open + 1; i < cnt; i++) {
		if (l[i].kind == DOTS || (l[i].kind == OPEN && t->s[l[i].off] == '{'))
			return false;
		if (l[i].kind == OPEN)
			i = l[i].mate;
		else
			stops += l[i].len == 1 && t->s[l[i].off] == ';';
	}
	return stops == 1;
}

/* The token that ends at the list's end is a closing bracket: who it belongs to. False: to none. */
static bool close_bracket(struct toks *t, struct tok *k)
{
	char want = t->s[k->off] == ')' ? '(' : t->s[k->off] == ']' ? '[' : '{';
	if (!t->open.cnt || t->s[t->list.data[t->open.data[t->open.cnt - 1]].off] != want)
		return false;
	uint32_t open = VEC_POP(&t->open);
	struct tok *o = &t->list.data[open];
	k->mate = open;
	k->is_cast = o->is_cast = want == '(' && is_cast(t, open);
	k->is_soft = o->is_soft = want == '{' && is_soft(t, open);
	/* Behind a condition stands a statement. */
	k->is_end = want != '{' && !k->is_cast && !(open && o[-1].kind == KEYWORD && t->s[o[-1].off] != 'r' && t->s[o[-1].off] != 'c');
	o->mate = (uint32_t)t->list.cnt;
	return true;
}

static void take_operator(struct toks *t, struct tok *k)
{
	const struct tok *last = t->list.cnt ? &t->list.data[t->list.cnt - 1] : NULL;
	const char *s = t->s + k->off;
	bool is_behind = last && last->is_end;
	k->kind = OPERATOR;
	k->prec = (uint8_t)(k->len == 1 && strchr("~!", *s) ? PREC_UNARY : binary_prec(s, k->len));
	/* That of a label binds nothing. */
	if (*s == ':' && !t->choices)
		k->prec = 0;
	t->choices = *s == ';' ? 0 : k->prec == PREC_CHOICE ? t->choices + (*s == '?' ? 1 : -1u) : t->choices;
	k->is_unary = k->prec == PREC_UNARY || (!is_behind && (k->len == 2 ? s[0] == s[1] && strchr("+-", *s) : strchr("+-*&", *s) != NULL));
	k->is_end = k->prec == PREC_POSTFIX && !k->is_unary && (s[0] == '+' || (s[0] == '-' && s[1] == '-'));
	if (k->is_unary)
		k->prec = PREC_UNARY;
}

/* One token at `off`, not yet in the list; false: it cannot be one. */
static bool take(struct toks *t, size_t off, struct tok *k)
{
	const char *s = t->s + off;
	size_t left = t->len - off, n = 1;
	*k = (struct tok){.off = (uint32_t)off, .line = k->line, .mate = NONE, .hole = NONE, .len = 1};
	if (is_letter(*s)) {
		while (n < left && (is_letter(s[n]) || is_digit(s[n])))
			n++;
		k->kind = is_keyword(s, n) ? KEYWORD : WORD;
		k->is_end = k->kind == WORD;
	} else if (is_digit(*s)) {
		while (n < left && (is_letter(s[n]) || is_digit(s[n]) || s[n] == '.'))
			n++;
		k->kind = NUMBER;
		k->value = number_of(s, n);
		k->is_end = true;
	} else if (*s == '"' || *s == '\'') {
		n = quoted_end(t->s, t->len, off);
		if (!n)
			return false;
		n -= off;
		k->kind = *s == '"' ? TEXT : NUMBER;
		k->value = *s == '"' ? 0 : char_of(s, n);
		k->is_end = true;
	} else if (*s && strchr("([{", *s)) {
		k->kind = OPEN;
	} else if (*s && strchr(")]}", *s)) {
		k->kind = CLOSE;
		return close_bracket(t, k);
	} else {
		n = operator_len(s, left);
		k->len = (uint32_t)n;
		take_operator(t, k);
		if (n == 3 && *s == '.')
			k->kind = DOTS;
	}
	k->len = (uint32_t)n;
	return true;
}

/* Appends; with `p` a dollar begins a hole. `*ret_off` is where it ended: less than the length where something is no token. */
static struct err *take_all(struct toks *t, struct cprint_pattern *p, size_t *ret_off)
{
	struct tok k = {0};
	size_t i = 0;
	for (; i < t->len; i += k.len) {
		const char *s = t->s + i;
		size_t left = t->len - i;
		k.len = 1;
		k.line += *s == '\n';
		if (*s == ' ' || *s == '\t' || *s == '\n' || *s == '\r')
			continue;
		if (left > 1 && s[0] == '/' && s[1] == '*') {
			const char *end = memmem(s + 2, left - 2, "*/", 2);
			k.len = (uint32_t)(end ? (size_t)(end - s) + 2 : left);
			keep_note(t, i + 2, i + k.len - (end ? 2 : 0));
			for (size_t c = 0; c < k.len; c++)
				k.line += s[c] == '\n';
			continue;
		}
		bool is_hole = p && *s == '$';
		if (!take(t, i + is_hole, &k) || (is_hole && k.kind != WORD && k.kind != KEYWORD)) {
			/* A subject may be anything: what is no token is one that nothing matches. */
			if (p)
				break;
			k = (struct tok){.off = (uint32_t)i, .len = 1, .line = k.line, .kind = CLOSE, .mate = NONE, .hole = NONE};
		}
		if (is_hole) {
			k.kind = HOLE;
			k.is_end = true;
		}
		if (t->list.cnt >= TOKEN_MAX)
			return err_new(ERR_BUDGET, "C of more than %u tokens is not searched", TOKEN_MAX);
		if (!VEC_PUSH(&t->list, k) || (k.kind == OPEN && !VEC_PUSH(&t->open, (uint32_t)t->list.cnt - 1)))
			return &err_nomem;
		i += is_hole;
	}
	*ret_off = i;
	return NULL;
}

static void toks_fini(struct toks *t)
{
	VEC_FREE(&t->list);
	VEC_FREE(&t->open);
}

/* --- patterns --- */

static bool name_hole(struct cprint_pattern *p, struct tok *k)
{
	uint32_t i = 0;
	if (k->len == 1 && p->text[k->off] == '_')
		return true;
	while (i < p->hole_cnt && (strlen(p->holes[i]) != k->len || memcmp(p->holes[i], p->text + k->off, k->len) != 0))
		i++;
	if (i == CPRINT_HOLE_MAX)
		return false;
	if (i == p->hole_cnt && !(p->holes[p->hole_cnt++] = strndup(p->text + k->off, k->len)))
		return false;
	k->hole = i;
	return true;
}

/* Braces that make no difference go; the others know each other by their new places. */
static void drop_soft(struct toks *t)
{
	uint32_t cnt = 0;
	t->open.cnt = 0;
	for (uint32_t i = 0; i < t->list.cnt; i++) {
		struct tok k = t->list.data[i];
		if (k.is_soft)
			continue;
		if (k.kind == OPEN)
			t->open.data[t->open.cnt++] = cnt;
		if (k.kind == CLOSE) {
			k.mate = VEC_POP(&t->open);
			t->list.data[k.mate].mate = cnt;
		}
		t->list.data[cnt++] = k;
	}
	t->list.cnt = cnt;
}

static struct err *check_pattern(struct cprint_pattern *p)
{
	uint32_t gaps = 0, others = 0;
	struct tok *l = p->t.list.data;
	for (uint32_t i = 0; i < p->t.list.cnt; i++) {
		bool is_gap = l[i].kind == HOLE || l[i].kind == DOTS;
		gaps += is_gap;
		others += !is_gap && l[i].prec != 1 && p->text[l[i].off] != ';';
		if (l[i].kind == HOLE && !name_hole(p, &l[i]))
			return err_new(ERR_INVALID, "c: at most %d names of holes", CPRINT_HOLE_MAX);
		if (is_gap && i && (l[i - 1].kind == HOLE || l[i - 1].kind == DOTS))
			return err_new(ERR_INVALID, "c: at byte %u: there has to be something between two holes", l[i].off);
	}
	if (gaps > GAP_MAX)
		return err_new(ERR_INVALID, "c: at most %d holes", GAP_MAX);
	if (!others)
		return err_new(ERR_INVALID, "c: a pattern needs more than holes");
	if (l[0].kind == DOTS || l[p->t.list.cnt - 1].kind == DOTS)
		return err_new(ERR_INVALID, "c: a pattern neither begins nor ends with dots");
	for (uint32_t i = 0; i < p->t.list.cnt; i++) {
		if (l[i].kind == OPEN) {
			if (!p->begin_prec && i && l[i - 1].is_end)
				p->begin_prec = PREC_POSTFIX;
			p->end_prec = l[i].is_cast ? PREC_UNARY : p->end_prec;
			i = l[i].mate;
		} else if (l[i].kind == OPERATOR && l[i].prec) {
			p->begin_prec = p->begin_prec || (l[i].is_unary && !i) ? p->begin_prec : l[i].prec;
			p->end_prec = l[i].prec;
		}
	}
	return NULL;
}

struct err *cprint_pattern_new(const char *text, struct cprint_pattern **ret)
{
	size_t len = strlen(text), off = 0;
	if (len > CPRINT_PATTERN_MAX)
		return err_new(ERR_INVALID, "c: a pattern has at most %d bytes", CPRINT_PATTERN_MAX);
	struct cprint_pattern *p = calloc(1, sizeof(*p));
	if (!p || !(p->text = strdup(text))) {
		free(p);
		return &err_nomem;
	}
	p->t.s = p->text;
	p->t.len = len;
	struct err *e = take_all(&p->t, p, &off);
	if (!e && off < len)
		e = err_new(ERR_INVALID, "c: at byte %zu: '%.8s' is no C, or closes what is not open", off, text + off);
	if (!e && p->t.open.cnt)
		e = err_new(ERR_INVALID, "c: at byte %u: this bracket is not closed", p->t.list.data[p->t.open.data[0]].off);
	if (!e)
		drop_soft(&p->t);
	if (!e)
		e = check_pattern(p);
	if (e) {
		cprint_pattern_free(p);
		return err_fix(e, "write it like 'memcpy($a, $b, strlen($b))' or 'if ($x == 0) return;'");
	}
	*ret = p;
	return NULL;
}

void cprint_pattern_free(struct cprint_pattern *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < p->hole_cnt; i++)
		free(p->holes[i]);
	toks_fini(&p->t);
	free(p->text);
	free(p);
}

bool cprint_pattern_fits(const struct cprint_pattern *p, const char *text, size_t len)
{
	for (uint32_t i = 0; i < p->t.list.cnt; i++) {
		const struct tok *k = &p->t.list.data[i];
		if ((k->kind == WORD || k->kind == KEYWORD) && !k->is_cast && !memmem(text, len, p->text + k->off, k->len))
			return false;
	}
	return true;
}

/* --- subjects --- */

struct err *cprint_subject_new(const char *text, size_t len, struct cprint_subject **ret)
{
	size_t off;
	if (len >= UINT32_MAX)
		return err_new(ERR_BUDGET, "C of more than 4 GB is not searched");
	struct cprint_subject *s = calloc(1, sizeof(*s));
	if (!s)
		return &err_nomem;
	s->t.s = text;
	s->t.len = len;
	struct err *e = take_all(&s->t, NULL, &off);
	if (e) {
		cprint_subject_free(s);
		return e;
	}
	*ret = s;
	return NULL;
}

void cprint_subject_free(struct cprint_subject *s)
{
	if (!s)
		return;
	toks_fini(&s->t);
	free(s);
}

/* --- matching --- */

struct span {
	uint32_t from, to; /* tokens; the same: not bound */
};

struct match {
	const struct cprint_pattern *p;
	const struct toks *t;
	struct span holes[CPRINT_HOLE_MAX];
	uint64_t steps;
	bool is_out;
};

/* "_1f00" or "_1f00_u32": what scry puts behind names of the target. */
static bool is_address(const char *s, size_t len)
{
	size_t i = 1;
	if (len < 2 || s[0] != '_')
		return false;
	while (i < len && digit_of(s[i]) < 16 && (is_digit(s[i]) || s[i] >= 'a'))
		i++;
	return i > 1 && (i == len || (len - i >= 3 && s[i] == '_' && s[i + 1] == 'u' && is_digit(s[i + 2])));
}

static bool is_same_name(const char *want, size_t want_len, const char *s, size_t len)
{
	return len >= want_len && !memcmp(want, s, want_len) && (len == want_len || is_address(s + want_len, len - want_len));
}

static bool is_char(const struct toks *t, uint32_t i, const char *s)
{
	return i < t->list.cnt && t->list.data[i].len == strlen(s) && !memcmp(t->s + t->list.data[i].off, s, strlen(s));
}

/* The subject's "m->image + 0x1f00" with what stands there in the comment behind; 0: that is not what is at `i`. */
static uint32_t place_len(const struct match *m, const struct tok *want, uint32_t i)
{
	const struct toks *t = m->t;
	const char *w = m->p->text + want->off;
	if (!is_char(t, i, "m") || !is_char(t, i + 1, "->") || !is_char(t, i + 2, "image") || !is_char(t, i + 3, "+") || i + 4 >= t->list.cnt)
		return 0;
	const struct tok *k = &t->list.data[i + 4];
	bool is_it = want->kind == TEXT ? k->note_len == want->len && !memcmp(t->s + k->note_off, w, want->len)
					: k->note_len && is_same_name(w, want->len, t->s + k->note_off, k->note_len);
	return is_it ? 5 : 0;
}

static bool is_equal(const struct match *m, const struct tok *want, const struct tok *k)
{
	const char *w = m->p->text + want->off, *s = m->t->s + k->off;
	if (want->kind != k->kind || want->is_cast != k->is_cast)
		return false;
	if (want->kind == WORD)
		return is_same_name(w, want->len, s, k->len);
	if (want->kind == NUMBER)
		return want->value == k->value;
	return want->len == k->len && !memcmp(w, s, k->len) && want->is_unary == k->is_unary;
}

/* What the pattern has not, and makes no difference. */
static uint32_t skip_at(const struct match *m, uint32_t i)
{
	const struct tok *k = i < m->t->list.cnt ? &m->t->list.data[i] : NULL;
	return k && k->is_cast && k->kind == OPEN ? k->mate + 1 : k && k->is_soft ? i + 1 : i;
}

/* Tokens of the subject that one of the pattern, no hole, takes: behind them; NONE: it is another. */
static uint32_t match_one(const struct match *m, const struct tok *want, uint32_t i)
{
	for (;;) {
		if (i >= m->t->list.cnt)
			return NONE;
		if (is_equal(m, want, &m->t->list.data[i]))
			return i + 1;
		uint32_t n = want->kind == TEXT || want->kind == WORD ? place_len(m, want, i) : 0, next = skip_at(m, i);
		if (n || next == i)
			return n ? i + n : NONE;
		i = next;
	}
}

/* Casts and brackets around all of it do not count. */
static struct span bare(const struct toks *t, struct span s)
{
	while (s.from < s.to) {
		const struct tok *k = &t->list.data[s.from];
		if (k->is_cast && k->kind == OPEN)
			s.from = k->mate + 1;
		else if (k->kind == OPEN && k->mate == s.to - 1)
			s = (struct span){s.from + 1, s.to - 1};
		else
			break;
	}
	return s;
}

static bool is_same_span(struct match *m, struct span x, struct span y)
{
	const struct toks *t = m->t;
	x = bare(t, x);
	y = bare(t, y);
	for (;; x.from++, y.from++, m->steps++) {
		while (x.from < x.to && t->list.data[x.from].is_cast && t->list.data[x.from].kind == OPEN)
			x.from = t->list.data[x.from].mate + 1;
		while (y.from < y.to && t->list.data[y.from].is_cast && t->list.data[y.from].kind == OPEN)
			y.from = t->list.data[y.from].mate + 1;
		if (x.from >= x.to || y.from >= y.to)
			return x.from >= x.to && y.from >= y.to;
		const struct tok *a = &t->list.data[x.from], *b = &t->list.data[y.from];
		bool is_same = a->kind == b->kind && (a->kind == NUMBER ? a->value == b->value :
							   a->len == b->len && !memcmp(t->s + a->off, t->s + b->off, a->len));
		if (!is_same)
			return false;
	}
}

static bool is_right_grouped(unsigned prec)
{
	return prec == PREC_ASSIGN || prec == PREC_CHOICE || prec == PREC_UNARY;
}

/* The least an operator inside of hole number `at` of the pattern has to bind. */
static unsigned hole_prec(const struct cprint_pattern *p, uint32_t at)
{
	const struct tok *l = p->t.list.data, *before = at ? &l[at - 1] : NULL, *behind = at + 1 < p->t.list.cnt ? &l[at + 1] : NULL;
	unsigned left = before && before->kind == OPERATOR ? before->prec : before && before->is_cast ? PREC_UNARY : 0;
	unsigned right = behind && behind->kind == OPERATOR ? behind->prec : 0;
	if (behind && behind->kind == OPEN && p->text[behind->off] != '{')
		right = PREC_POSTFIX;
	left += left && !is_right_grouped(left);
	right += right && is_right_grouped(right);
	return left > right ? left : right;
}

/* Goes on by one piece of an expression from `i`: a token, or brackets with all in them. NONE: an expression that binds as tightly as
 * `prec` is over. `open` counts question marks. */
static uint32_t next_piece(const struct toks *t, uint32_t i, unsigned prec, unsigned *open)
{
	const struct tok *k = i < t->list.cnt ? &t->list.data[i] : NULL;
	if (!k || k->kind == CLOSE || k->kind == KEYWORD || k->kind == DOTS)
		return NONE;
	if (k->kind == OPEN)
		return k->mate == NONE || t->s[k->off] == '{' || (k->is_cast && prec > PREC_UNARY) ? NONE : k->mate + 1;
	if (k->kind == OPERATOR && (k->prec < 2 || k->prec < prec))
		return NONE;
	if (k->kind == OPERATOR && k->prec == PREC_CHOICE) {
		if (t->s[k->off] == ':' && !*open)
			return NONE;
		*open += t->s[k->off] == '?' ? 1 : -1u;
	}
	return i + 1;
}

/* Whether an expression can begin at `i`, of a pattern whose first operator binds as tightly as `prec`. */
static bool can_begin(const struct toks *t, uint32_t i, unsigned prec)
{
	const struct tok *before = i ? &t->list.data[i - 1] : NULL;
	if (!before || before->is_end)
		return !before;
	unsigned held = before->kind == OPERATOR ? before->prec : before->is_cast ? PREC_UNARY : 0;
	return held < prec || (held == prec && is_right_grouped(prec));
}

/* Whether what ends before `i` is not held by what follows. */
static bool can_end(const struct cprint_pattern *p, const struct toks *t, uint32_t i)
{
	const struct tok *last = &p->t.list.data[p->t.list.cnt - 1], *k = i < t->list.cnt ? &t->list.data[i] : NULL;
	if (!k || !last->is_end || (last->kind == CLOSE && !p->end_prec))
		return true;
	if (last->kind != HOLE && !p->end_prec)
		return true;
	if (k->kind == OPEN && t->s[k->off] != '{')
		return false;
	if (k->kind != OPERATOR || k->prec < 2)
		return true;
	return k->prec < p->end_prec || (k->prec == p->end_prec && !is_right_grouped(k->prec));
}

static bool match(struct match *m, uint32_t at, uint32_t i, uint32_t *ret_end);

static bool match_hole(struct match *m, uint32_t at, uint32_t i, uint32_t *ret_end)
{
	const struct tok *hole = &m->p->t.list.data[at];
	const struct toks *t = m->t;
	unsigned prec = hole_prec(m->p, at), open = 0;
	if (i >= t->list.cnt || (t->list.data[i].kind == OPERATOR && !t->list.data[i].is_unary))
		return false;
	if (t->list.data[i].is_soft && t->list.data[i].kind == OPEN)
		i++;
	for (uint32_t to = i, next; (next = next_piece(t, to, prec, &open)) != NONE; to = next) {
		const struct tok *last = &t->list.data[next - 1];
		/* A second operand behind the first is none of its own. */
		if (to > i && t->list.data[to - 1].is_end && t->list.data[to].kind != OPERATOR && t->list.data[to].kind != OPEN)
			return false;
		if (m->is_out || ++m->steps > STEPS_MIN + STEPS_EACH * (uint64_t)t->list.cnt) {
			m->is_out = true;
			return false;
		}
		if (!last->is_end || open)
			continue;
		struct span now = {i, next}, was = hole->hole == NONE ? (struct span){0} : m->holes[hole->hole];
		if (was.from != was.to && !is_same_span(m, was, now))
			continue;
		if (hole->hole != NONE && was.from == was.to)
			m->holes[hole->hole] = now;
		if (match(m, at + 1, next, ret_end))
			return true;
		if (hole->hole != NONE)
			m->holes[hole->hole] = was;
	}
	return false;
}

static bool match_dots(struct match *m, uint32_t at, uint32_t i, uint32_t *ret_end)
{
	const struct toks *t = m->t;
	/* `..., $x` is also where nothing is before $x. */
	if (at + 2 < m->p->t.list.cnt && m->p->t.list.data[at + 1].prec == 1 && i && t->list.data[i - 1].kind == OPEN &&
	    match(m, at + 2, i, ret_end))
		return true;
	for (;; i++) {
		if (m->is_out || ++m->steps > STEPS_MIN + STEPS_EACH * (uint64_t)t->list.cnt) {
			m->is_out = true;
			return false;
		}
		if (match(m, at + 1, i, ret_end))
			return true;
		const struct tok *k = i < t->list.cnt ? &t->list.data[i] : NULL;
		if (!k || k->kind == CLOSE || (k->kind == OPEN && k->mate == NONE))
			return false;
		i = k->kind == OPEN ? k->mate : i;
	}
}

/* The pattern from token `at` on against the subject from `i` on. As deep as the pattern has holes and dots. */
static bool match(struct match *m, uint32_t at, uint32_t i, uint32_t *ret_end)
{
	const struct tok *p = m->p->t.list.data;
	for (; at < m->p->t.list.cnt; at++) {
		m->steps++;
		if (p[at].kind == HOLE)
			return match_hole(m, at, i, ret_end);
		if (p[at].kind == DOTS)
			return match_dots(m, at, i, ret_end);
		/* `$x, ...` is also where nothing is behind $x. */
		bool is_last = p[at].prec == 1 && at + 1 < m->p->t.list.cnt && p[at + 1].kind == DOTS && i < m->t->list.cnt &&
			       m->t->list.data[i].kind == CLOSE;
		if (is_last) {
			at++;
			continue;
		}
		i = match_one(m, &p[at], i);
		if (i == NONE)
			return false;
	}
	if (!can_end(m->p, m->t, i))
		return false;
	*ret_end = i;
	return true;
}

static struct cprint_part part_of(const struct toks *t, uint32_t from, uint32_t to)
{
	const struct tok *first = &t->list.data[from], *last = &t->list.data[to - 1];
	return (struct cprint_part){first->off, last->off + last->len - first->off};
}

struct err *cprint_find(const struct cprint_pattern *p, const struct cprint_subject *s, uint32_t *at, struct cprint_found *ret, bool *ret_found)
{
	struct match m = {.p = p, .t = &s->t};
	uint32_t end = 0;
	*ret_found = false;
	for (uint32_t i = *at; i < s->t.list.cnt; i++) {
		const struct tok *first = &p->t.list.data[0];
		if ((first->kind == HOLE || p->begin_prec) && !can_begin(&s->t, i, p->begin_prec))
			continue;
		memset(m.holes, 0, sizeof(m.holes));
		/* What is skipped is no beginning. */
		const struct tok *k = &s->t.list.data[i];
		if (k->is_soft || (k->is_cast && first->kind != HOLE && !is_equal(&m, first, k)))
			continue;
		bool is_found = match(&m, 0, i, &end);
		if (m.is_out)
			return err_fix(err_new(ERR_BUDGET, "c: there are too many ways to match this pattern"),
				       "say more of what is between the holes");
		if (!is_found)
			continue;
		*ret = (struct cprint_found){.part = part_of(&s->t, i, end), .line = s->t.list.data[i].line};
		for (uint32_t h = 0; h < p->hole_cnt; h++) {
			if (m.holes[h].from == m.holes[h].to)
				continue;
			ret->holes[ret->hole_cnt].name = p->holes[h];
			ret->holes[ret->hole_cnt++].part = part_of(&s->t, m.holes[h].from, m.holes[h].to);
		}
		*at = i + 1;
		*ret_found = true;
		return NULL;
	}
	*at = (uint32_t)s->t.list.cnt;
	return NULL;
}
