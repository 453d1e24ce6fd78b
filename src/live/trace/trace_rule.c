/* SPDX-License-Identifier: Apache-2.0 */
/* Rules: text to steps and conditions (docs/rules.md is the language). A condition is compiled once for each call a step takes. */
#include "live/trace/trace_rule.h"

#include "base/file.h"
#include "base/utf8.h"
#include "live/trace/trace_rule_int.h"

#include <fcntl.h>
#include <string.h>

#define ALTS_MAX 24
#define NODES_MAX 512
#define LITS_MAX 64
#define DEPTH_MAX 32

struct parse {
	struct trace_rules *r;
	const char *file;
	const char *from;    /* the logical line, which begins at line number `line` */
	const char *s, *end; /* what is left of it */
	unsigned line;
	struct rule *rule;
	struct rule_alt *alt;   /* the condition is compiled for this one */
	struct rule_node *nodes;
	uint32_t node_cnt, depth;
	struct err *e;
};

static void wrong(struct parse *p, const char *what, const char *word, size_t len)
{
	unsigned line = p->line;
	const char *at = word >= p->from && word <= p->end ? word : p->s;
	for (const char *s = p->from; s && s < at; s++)
		line += *s == '\n';
	if (!p->e)
		p->e = err_new(ERR_INVALID, "%s:%u: %s%s%.*s%s", p->file, line, what, word ? " '" : "", word ? (int)(len < 80 ? len : 80) : 0,
			       word ? word : "", word ? "'" : "");
}

/* --- words --- */

static void skip_space(struct parse *p)
{
	while (p->s < p->end && (*p->s == ' ' || *p->s == '\t' || *p->s == '\n' || *p->s == '\r'))
		p->s++;
}

static bool is_word_ch(char ch)
{
	return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') || ch == '_' || ch == '-' || ch == '.' || ch == '@';
}

static size_t peek_word(struct parse *p)
{
	skip_space(p);
	size_t n = 0;
	while (p->s + n < p->end && is_word_ch(p->s[n]))
		n++;
	return n;
}

static bool take_word(struct parse *p, const char *word)
{
	size_t n = peek_word(p);
	if (n != strlen(word) || memcmp(p->s, word, n))
		return false;
	p->s += n;
	return true;
}

static bool take_sign(struct parse *p, const char *sign)
{
	skip_space(p);
	size_t n = strlen(sign);
	if ((size_t)(p->end - p->s) < n || memcmp(p->s, sign, n))
		return false;
	p->s += n;
	return true;
}

static bool is_at_end(struct parse *p)
{
	skip_space(p);
	return p->s == p->end;
}

static const char *rest_of_line(struct parse *p)
{
	skip_space(p);
	const char *end = p->end;
	while (end > p->s && (end[-1] == ' ' || end[-1] == '\n' || end[-1] == '\t' || end[-1] == '\r'))
		end--;
	char *text = arena_strndup(&p->r->arena, p->s, (size_t)(end - p->s));
	p->s = p->end;
	if (!text)
		p->e = &err_nomem;
	for (char *c = text; c && *c; c++) {
		if (*c == '\n' || *c == '\t' || *c == '\r')
			*c = ' ';
	}
	return text;
}

static bool parse_number(const char *s, size_t len, uint64_t *ret)
{
	uint64_t v = 0;
	unsigned base = 10;
	size_t i = 0;
	if (len > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
		base = 16;
		i = 2;
	}
	if (i == len)
		return false;
	for (; i < len; i++) {
		int lower = s[i] | 32;
		unsigned d = (unsigned)(s[i] >= '0' && s[i] <= '9' ? s[i] - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : 99);
		if (d >= base || __builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, d, &v))
			return false;
	}
	*ret = v;
	return true;
}

/* --- names in conditions --- */

static const struct {
	const char *name;
	uint8_t field;
} rule_names[] = {
	{"ret", FIELD_RET}, {"ok", FIELD_OK}, {"failed", FIELD_FAILED}, {"errno", FIELD_ERRNO}, {"pid", FIELD_PID}, {"tid", FIELD_TID},
	{"ppid", FIELD_PPID}, {"comm", FIELD_COMM}, {"exe", FIELD_EXE}, {"name", FIELD_NAME}, {"path", FIELD_PATH}, {"writes", FIELD_WRITES},
	{"creates", FIELD_CREATES},
	{"argv", FIELD_ARGV}, {"envp", FIELD_ENVP}, {"parent.comm", FIELD_PARENT_COMM}, {"parent.exe", FIELD_PARENT_EXE},
	{"ancestor.comm", FIELD_ANCESTOR_COMM}, {"ancestor.exe", FIELD_ANCESTOR_EXE},
};

/* What of an argument is asked for: "addr.port", "how.u64@0". */
static const struct {
	const char *name;
	uint8_t field, size;
} rule_parts[] = {
	{"family", FIELD_FAMILY, 0}, {"port", FIELD_PORT, 0}, {"host", FIELD_HOST, 0}, {"sun", FIELD_SUN, 0}, {"path", FIELD_FD_PATH, 0},
	{"u8", FIELD_LOAD, 1}, {"u16", FIELD_LOAD, 2}, {"u32", FIELD_LOAD, 4}, {"u64", FIELD_LOAD, 8},
};

/* The arguments of events that are no calls. */
static const struct {
	uint8_t kind;
	const char *name;
	uint8_t arg;
} rule_event_args[] = {
	{TRACE_SIGNAL, "signal", 0}, {TRACE_SIGNAL, "code", 1}, {TRACE_SIGNAL, "sender", 2}, {TRACE_MMAP, "addr", 0}, {TRACE_MMAP, "len", 1},
	{TRACE_MMAP, "prot", 2}, {TRACE_MMAP, "flags", 3}, {TRACE_FORK, "flags", 0}, {TRACE_FORK, "child", 1},
};

static int find_arg(const struct rule_alt *alt, const char *s, size_t len)
{
	if (alt->kind == TRACE_SYSCALL) {
		for (unsigned i = 0; i < alt->call->nargs; i++) {
			if (strlen(alt->call->a[i].name) == len && !memcmp(alt->call->a[i].name, s, len))
				return (int)i;
		}
		return -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(rule_event_args); i++) {
		if (rule_event_args[i].kind == alt->kind && strlen(rule_event_args[i].name) == len && !memcmp(rule_event_args[i].name, s, len))
			return rule_event_args[i].arg;
	}
	return -1;
}

static int find_var(struct parse *p, const char *s, size_t len)
{
	for (uint32_t i = 0; i < p->rule->var_cnt; i++) {
		if (strlen(p->rule->vars[i]) == len && !memcmp(p->rule->vars[i], s, len))
			return (int)i;
	}
	return -1;
}

static bool parse_ref(struct parse *p, struct rule_ref *ret)
{
	*ret = (struct rule_ref){.field = FIELD_RET};
	if (take_sign(p, "$")) {
		size_t n = peek_word(p);
		int var = find_var(p, p->s, n);
		if (var < 0)
			wrong(p, "there is no variable", p->s, n);
		ret->field = FIELD_VAR;
		ret->arg = (uint8_t)(var < 0 ? 0 : var);
		p->s += n;
		return !p->e;
	}
	size_t n = peek_word(p);
	const char *s = p->s;
	if (!n) {
		wrong(p, "a name is missing at", p->s, (size_t)(p->end - p->s));
		return false;
	}
	p->s += n;
	/* An argument first: some are called "path" or "name". */
	const char *dot = memchr(s, '.', n);
	int arg = find_arg(p->alt, s, dot ? (size_t)(dot - s) : n);
	bool is_path = n == 4 && !memcmp(s, "path", 4); /* the whole path, wherever the call has it */
	if (arg >= 0 && !dot && !is_path) {
		ret->field = FIELD_ARG;
		ret->arg = (uint8_t)arg;
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(rule_names); i++) {
		if (strlen(rule_names[i].name) == n && !memcmp(rule_names[i].name, s, n)) {
			ret->field = rule_names[i].field;
			return true;
		}
	}
	for (size_t i = 0; arg >= 0 && dot && i < ARRAY_LEN(rule_parts); i++) {
		const char *part = dot + 1;
		size_t len = n - (size_t)(part - s), want = strlen(rule_parts[i].name);
		uint64_t off = 0;
		if (len < want || memcmp(part, rule_parts[i].name, want))
			continue;
		if (rule_parts[i].size ? part[want] != '@' || !parse_number(part + want + 1, len - want - 1, &off) || off > 4096 : len != want)
			continue;
		*ret = (struct rule_ref){rule_parts[i].field, (uint8_t)arg, rule_parts[i].size, (uint16_t)off};
		return true;
	}
	wrong(p, p->alt->kind == TRACE_SYSCALL ? "the call has no such argument, and nothing else is called" : "the event has nothing called", s, n);
	return false;
}

/* --- literals --- */

static char *parse_text(struct parse *p, uint32_t *ret_len)
{
	char *out = arena_alloc(&p->r->arena, (size_t)(p->end - p->s) + 1);
	uint32_t n = 0;
	if (!out) {
		p->e = &err_nomem;
		return NULL;
	}
	while (p->s < p->end && *p->s != '"') {
		char ch = *p->s++;
		if (ch == '\\' && p->s < p->end) {
			uint64_t v;
			ch = *p->s++;
			if (ch == 'n')
				ch = '\n';
			else if (ch == 'x' && p->end - p->s >= 2 && parse_number((char[]){'0', 'x', p->s[0], p->s[1]}, 4, &v)) {
				ch = (char)v;
				p->s += 2;
			} else if (ch != '\\' && ch != '"') {
				wrong(p, "a backslash may stand before n, xNN, \" and itself", NULL, 0);
				return NULL;
			}
		}
		out[n++] = ch;
	}
	if (p->s == p->end) {
		wrong(p, "a text has no end", NULL, 0);
		return NULL;
	}
	p->s++;
	*ret_len = n;
	return out;
}

/* The set of names the values of a reference have; 0 where there is none. */
static unsigned set_of(const struct rule_alt *alt, struct rule_ref ref)
{
	if (ref.field == FIELD_ERRNO)
		return SYSC_SET_errno;
	if (ref.field == FIELD_FAMILY)
		return SYSC_SET_af;
	const struct sysc *call = alt->call;
	if (alt->kind == TRACE_SIGNAL && ref.field == FIELD_ARG && !ref.arg)
		return SYSC_SET_signal;
	if (alt->kind == TRACE_MMAP)
		call = sysc_by_name("mmap", 4);
	return call && ref.field == FIELD_ARG && ref.arg < call->nargs ? call->a[ref.arg].set : SYSC_SET_NONE;
}

static bool named_value(unsigned abi, unsigned set, const char *s, size_t len, int64_t *ret)
{
	const struct sysc_set *t = sysc_set(abi, set);
	for (uint32_t i = 0; t && i < t->cnt; i++) {
		if (strlen(t->names[i].name) == len && !memcmp(t->names[i].name, s, len)) {
			*ret = (int64_t)t->names[i].value;
			return true;
		}
	}
	return false;
}

/* NUMBER, NAME, or several with | between them. Of another set than the reference's: SET:NAME. */
static bool parse_value(struct parse *p, struct rule_ref ref, struct rule_lit *ret)
{
	*ret = (struct rule_lit){0};
	do {
		bool is_negative = take_sign(p, "-");
		size_t n = peek_word(p);
		const char *s = p->s;
		uint64_t v;
		if (!n) {
			wrong(p, "a value is missing at", p->s, (size_t)(p->end - p->s));
			return false;
		}
		p->s += n;
		unsigned set = set_of(p->alt, ref);
		if (p->s < p->end && *p->s == ':') {
			set = SYSC_SET_NONE;
			for (unsigned i = 1; i < SYSC_SET_COUNT; i++) {
				const struct sysc_set *t = sysc_set(TRACE_X86_64, i);
				if (t && strlen(t->name) == n && !memcmp(t->name, s, n))
					set = i;
			}
			if (!set) {
				wrong(p, "there is no set of names", s, n);
				return false;
			}
			p->s++;
			n = peek_word(p);
			s = p->s;
			p->s += n;
		}
		for (unsigned abi = 0; abi < TRACE_ABI_COUNT; abi++) {
			int64_t one;
			if (parse_number(s, n, &v)) {
				one = is_negative ? -(int64_t)v : (int64_t)v;
			} else if (!named_value(abi, set, s, n, &one) && !named_value(TRACE_X86_64, set, s, n, &one)) {
				wrong(p, "no value has the name", s, n);
				return false;
			}
			ret->num[abi] |= one;
		}
	} while (take_sign(p, "|"));
	return true;
}

static bool parse_lit(struct parse *p, struct rule_ref ref, struct rule_lit *ret)
{
	if (take_sign(p, "\"")) {
		*ret = (struct rule_lit){0};
		ret->text = parse_text(p, &ret->len);
		ret->has_wildcard = ret->text && (memchr(ret->text, '*', ret->len) || memchr(ret->text, '?', ret->len));
		return ret->text;
	}
	if (take_sign(p, "$")) {
		p->s--;
		struct rule_ref var;
		*ret = (struct rule_lit){.is_var = true};
		if (!parse_ref(p, &var))
			return false;
		ret->num[0] = var.arg;
		return true;
	}
	return parse_value(p, ref, ret);
}

/* --- conditions --- */

static uint32_t add_node(struct parse *p, struct rule_node n)
{
	if (p->node_cnt == NODES_MAX) {
		wrong(p, "the condition is too long", NULL, 0);
		return 0;
	}
	p->nodes[p->node_cnt] = n;
	return p->node_cnt++;
}

static uint32_t parse_or(struct parse *p);

static uint32_t parse_test(struct parse *p)
{
	static const struct {
		const char *sign;
		uint8_t cmp;
	} signs[] = {{"==", CMP_EQ}, {"!=", CMP_NE}, {"<=", CMP_LE}, {">=", CMP_GE}, {"<", CMP_LT}, {">", CMP_GT}, {"&", CMP_BITS},
		     {"!~", CMP_NOT_GLOB}, {"~", CMP_GLOB}, {"^=", CMP_STARTS}};
	struct rule_node n = {.kind = NODE_BARE};
	struct rule_lit lits[LITS_MAX];
	if (!parse_ref(p, &n.ref))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(signs) && n.kind == NODE_BARE; i++) {
		if (take_sign(p, signs[i].sign)) {
			n.kind = NODE_TEST;
			n.cmp = signs[i].cmp;
		}
	}
	if (n.kind == NODE_BARE && take_word(p, "has")) {
		n.kind = NODE_TEST;
		n.cmp = CMP_HAS;
	}
	bool is_list = n.ref.field == FIELD_ARGV || n.ref.field == FIELD_ENVP || (n.ref.field == FIELD_ARG && p->alt->kind == TRACE_SYSCALL &&
			p->alt->call->a[n.ref.arg].fetch == SYSC_FETCH_STRV);
	if (is_list != (n.kind == NODE_TEST && n.cmp == CMP_HAS)) {
		wrong(p, is_list ? "of a list of texts only 'has' can be asked" : "'has' asks a list of texts (argv, envp)", NULL, 0);
		return 0;
	}
	if (n.kind == NODE_BARE)
		return add_node(p, n);
	bool is_set = take_sign(p, "(");
	do {
		if (n.lit_cnt == LITS_MAX) {
			wrong(p, "the list is too long", NULL, 0);
			return 0;
		}
		if (!parse_lit(p, n.ref, &lits[n.lit_cnt]))
			return 0;
		bool is_text = lits[n.lit_cnt].text, wants_text = n.cmp >= CMP_GLOB;
		if (!lits[n.lit_cnt].is_var && (wants_text ? !is_text : is_text && n.cmp > CMP_NE)) {
			wrong(p, wants_text ? "~, ^= and has compare with texts" : "a text has no order and no bits", NULL, 0);
			return 0;
		}
		n.lit_cnt++;
	} while (is_set && take_sign(p, ","));
	if (is_set && !take_sign(p, ")"))
		wrong(p, "a list has no end", NULL, 0);
	struct rule_lit *kept = ARENA_ARRAY(&p->r->arena, struct rule_lit, n.lit_cnt);
	if (!kept) {
		p->e = &err_nomem;
		return 0;
	}
	memcpy(kept, lits, n.lit_cnt * sizeof(*lits));
	n.lits = kept;
	return add_node(p, n);
}

static uint32_t parse_not(struct parse *p)
{
	uint32_t at = 0;
	if (p->e || ++p->depth > DEPTH_MAX) {
		wrong(p, "the condition is nested too deeply", NULL, 0);
		return 0;
	}
	if (take_word(p, "not")) {
		at = parse_not(p);
		at = add_node(p, (struct rule_node){.kind = NODE_NOT, .a = at});
	} else if (take_sign(p, "(")) {
		at = parse_or(p);
		if (!p->e && !take_sign(p, ")"))
			wrong(p, "a parenthesis has no end", NULL, 0);
	} else {
		at = parse_test(p);
	}
	p->depth--;
	return at;
}

static uint32_t parse_and(struct parse *p)
{
	uint32_t at = parse_not(p);
	while (!p->e && take_word(p, "and")) {
		uint32_t b = parse_not(p);
		at = add_node(p, (struct rule_node){.kind = NODE_AND, .a = at, .b = b});
	}
	return at;
}

static uint32_t parse_or(struct parse *p)
{
	uint32_t at = parse_and(p);
	while (!p->e && take_word(p, "or")) {
		uint32_t b = parse_and(p);
		at = add_node(p, (struct rule_node){.kind = NODE_OR, .a = at, .b = b});
	}
	return at;
}

/* --- events --- */

/* Calls by what they do to files: which argument is the path, the folder it is below, and how it is opened. */
static const struct {
	const char *word, *call;
	int8_t path, dirfd, flags;
	bool must_write;
} rule_groups[] = {
	{"opens", "open", 0, -1, 1, false}, {"opens", "openat", 1, 0, 2, false}, {"opens", "openat2", 1, 0, 2, false},
	{"opens", "creat", 0, -1, -1, false},
	{"modifies", "open", 0, -1, 1, true}, {"modifies", "openat", 1, 0, 2, true}, {"modifies", "openat2", 1, 0, 2, true},
	{"modifies", "creat", 0, -1, -1, true}, {"modifies", "truncate", 0, -1, -1, false},
	{"modifies", "rename", 0, -1, -1, false}, {"modifies", "rename", 1, -1, -1, false}, {"modifies", "renameat", 1, 0, -1, false},
	{"modifies", "renameat", 3, 2, -1, false}, {"modifies", "renameat2", 1, 0, -1, false}, {"modifies", "renameat2", 3, 2, -1, false},
	{"modifies", "unlink", 0, -1, -1, false}, {"modifies", "unlinkat", 1, 0, -1, false}, {"modifies", "link", 1, -1, -1, false},
	{"modifies", "linkat", 3, 2, -1, false}, {"modifies", "symlink", 1, -1, -1, false}, {"modifies", "symlinkat", 2, 1, -1, false},
};

static const struct {
	const char *word;
	uint8_t kind;
} rule_kinds[] = {{"exec", TRACE_EXEC}, {"fork", TRACE_FORK}, {"exit", TRACE_EXIT}, {"mapping", TRACE_MMAP}, {"signal", TRACE_SIGNAL}};

/* Without arguments that are paths or flags, and without a condition. */
static const struct rule_alt none = {.path_arg = -1, .dirfd_arg = -1, .flags_arg = -1, .root = UINT32_MAX};

static void add_call(struct parse *p, struct rule_alt *alts, uint32_t *cnt, const char *s, size_t len)
{
	const struct sysc *call = sysc_by_name(s, len);
	struct rule_alt a = none;
	a.kind = TRACE_SYSCALL;
	a.call = call;
	if (!call || *cnt == ALTS_MAX) {
		wrong(p, call ? "too many events, at" : "there is no event and no system call", s, len);
		return;
	}
	for (unsigned i = 0; i < call->nargs && a.path_arg < 0; i++) {
		if (call->a[i].cls != SYSC_PATH)
			continue;
		a.path_arg = (int8_t)i;
		a.dirfd_arg = (int8_t)(i && call->a[i - 1].cls == SYSC_DIRFD ? (int)i - 1 : -1);
	}
	alts[(*cnt)++] = a;
}

/* NAME or several with | between them. */
static uint32_t parse_events(struct parse *p, struct rule_alt *alts)
{
	uint32_t cnt = 0;
	do {
		size_t n = peek_word(p);
		const char *s = p->s;
		uint32_t was = cnt;
		p->s += n;
		for (size_t i = 0; i < ARRAY_LEN(rule_kinds) && cnt < ALTS_MAX; i++) {
			if (strlen(rule_kinds[i].word) == n && !memcmp(rule_kinds[i].word, s, n)) {
				alts[cnt] = none;
				alts[cnt++].kind = rule_kinds[i].kind;
			}
		}
		for (size_t i = 0; i < ARRAY_LEN(rule_groups) && cnt < ALTS_MAX; i++) {
			if (strlen(rule_groups[i].word) != n || memcmp(rule_groups[i].word, s, n))
				continue;
			add_call(p, alts, &cnt, rule_groups[i].call, strlen(rule_groups[i].call));
			if (p->e)
				return 0;
			alts[cnt - 1].path_arg = rule_groups[i].path;
			alts[cnt - 1].dirfd_arg = rule_groups[i].dirfd;
			alts[cnt - 1].flags_arg = rule_groups[i].flags;
			alts[cnt - 1].must_write = rule_groups[i].must_write;
		}
		if (cnt == was)
			add_call(p, alts, &cnt, s, n);
	} while (!p->e && take_sign(p, "|"));
	return cnt;
}

/* [within N s] [by process|thread|tree|anyone] */
static void parse_bounds(struct parse *p, struct rule_step *st)
{
	static const char *const who[] = {"process", "thread", "tree", "anyone"};
	if (take_word(p, "within")) {
		uint64_t v;
		size_t n = peek_word(p);
		if (!parse_number(p->s, n, &v) || v > 86400) {
			wrong(p, "a number of seconds is missing at", p->s, n);
			return;
		}
		p->s += n;
		st->within_ns = v * 1000000000u;
		if (!take_word(p, "s"))
			wrong(p, "the unit is missing: within N s", NULL, 0);
	}
	if (!take_word(p, "by"))
		return;
	for (unsigned i = 0; i < ARRAY_LEN(who); i++) {
		if (take_word(p, who[i])) {
			st->by = (uint8_t)i;
			return;
		}
	}
	wrong(p, "by whom: process, thread, tree or anyone, not", p->s, peek_word(p));
}

static void parse_step(struct parse *p)
{
	struct rule_alt alts[ALTS_MAX];
	struct rule_step *st;
	if (p->rule->step_cnt == RULE_STEPS_MAX) {
		wrong(p, "too many steps", NULL, 0);
		return;
	}
	st = &p->rule->steps[p->rule->step_cnt];
	*st = (struct rule_step){.by = BY_PROCESS};
	st->alt_cnt = parse_events(p, alts);
	if (p->e)
		return;
	if (p->rule->step_cnt)
		parse_bounds(p, st);
	bool has_where = take_word(p, "where");
	const char *from = p->s;
	for (uint32_t i = 0; i < st->alt_cnt && has_where && !p->e; i++) {
		p->s = from;
		p->alt = &alts[i];
		p->node_cnt = p->depth = 0;
		uint32_t root = parse_or(p);
		struct rule_node *kept = ARENA_ARRAY(&p->r->arena, struct rule_node, p->node_cnt + 1);
		if (!p->e && !kept)
			p->e = &err_nomem;
		if (p->e)
			return;
		memcpy(kept, p->nodes, p->node_cnt * sizeof(*kept));
		alts[i].nodes = kept;
		alts[i].root = root;
	}
	if (!is_at_end(p))
		wrong(p, "not understood:", p->s, (size_t)(p->end - p->s));
	st->alts = ARENA_ARRAY(&p->r->arena, struct rule_alt, st->alt_cnt);
	if (!st->alts)
		p->e = p->e ? p->e : &err_nomem;
	else
		memcpy(st->alts, alts, st->alt_cnt * sizeof(*alts));
	p->rule->step_cnt++;
}

/* let NAME = WHAT: of the event of the last step. */
static void parse_let(struct parse *p)
{
	size_t n = peek_word(p);
	const char *s = p->s;
	if (!p->rule->step_cnt || !n || p->rule->var_cnt == RULE_VARS_MAX) {
		wrong(p, p->rule->step_cnt ? "a name is missing, or there are too many" : "let comes after an event", NULL, 0);
		return;
	}
	p->s += n;
	if (!take_sign(p, "=")) {
		wrong(p, "let NAME = WHAT", NULL, 0);
		return;
	}
	int var = find_var(p, s, n);
	const char *from = p->s;
	struct rule_step *st = &p->rule->steps[p->rule->step_cnt - 1];
	for (uint32_t i = 0; i < st->alt_cnt && !p->e; i++) {
		p->s = from;
		p->alt = &st->alts[i];
		if (!parse_ref(p, &p->alt->lets[p->alt->let_cnt]))
			return;
		p->alt->let_var[p->alt->let_cnt++] = (uint8_t)(var < 0 ? (int)p->rule->var_cnt : var);
	}
	if (!is_at_end(p))
		wrong(p, "not understood:", p->s, (size_t)(p->end - p->s));
	if (var < 0) {
		p->rule->vars[p->rule->var_cnt] = arena_strndup(&p->r->arena, s, n);
		if (!p->rule->vars[p->rule->var_cnt++])
			p->e = &err_nomem;
	}
}

static bool is_word(const char *s, size_t len, const char *word)
{
	return len == strlen(word) && !memcmp(s, word, len);
}

static void end_rule(struct parse *p)
{
	if (!p->rule || p->e)
		return;
	if (!p->rule->title || !p->rule->severity || !p->rule->step_cnt) {
		wrong(p, "a title, a severity and an event are needed by rule", p->rule->name, strlen(p->rule->name));
		return;
	}
	if (!VEC_PUSH(&p->r->rules, p->rule))
		p->e = &err_nomem;
	p->rule = NULL;
}

static const struct rule *find_rule(const struct trace_rules *r, const char *name)
{
	for (size_t i = 0; i < r->rules.cnt; i++) {
		if (!strcmp(r->rules.data[i]->name, name))
			return r->rules.data[i];
	}
	return NULL;
}

static void begin_rule(struct parse *p)
{
	end_rule(p);
	size_t n = peek_word(p);
	char *name = arena_strndup(&p->r->arena, p->s, n);
	p->rule = ARENA_NEW(&p->r->arena, struct rule);
	if (!p->e && (!name || !p->rule))
		p->e = &err_nomem;
	if (p->e)
		return;
	if (!n || find_rule(p->r, name))
		wrong(p, n ? "there is a rule of that name already:" : "a rule needs a name", n ? p->s : NULL, n);
	p->s += n;
	p->rule->name = name;
	if (!is_at_end(p))
		wrong(p, "not understood:", p->s, (size_t)(p->end - p->s));
}

static void parse_line(struct parse *p)
{
	static const char *const severities[] = {"info", "low", "medium", "high", "critical"};
	if (take_word(p, "rule")) {
		begin_rule(p);
		return;
	}
	if (!p->rule) {
		wrong(p, "a rule begins with: rule NAME", NULL, 0);
		return;
	}
	size_t n = peek_word(p);
	const char *word = p->s;
	/* What is said twice is said once too often: which of the two is meant? */
	bool is_twice = (is_word(word, n, "title") && p->rule->title) || (is_word(word, n, "technique") && p->rule->technique) ||
			(is_word(word, n, "severity") && p->rule->severity);
	if (is_twice) {
		wrong(p, "the rule has one already:", word, n);
	} else if (take_word(p, "title")) {
		p->rule->title = rest_of_line(p);
	} else if (take_word(p, "technique")) {
		p->rule->technique = rest_of_line(p);
	} else if (take_word(p, "severity")) {
		for (size_t i = 0; i < ARRAY_LEN(severities); i++) {
			if (take_word(p, severities[i]))
				p->rule->severity = severities[i];
		}
		if (!p->rule->severity || !is_at_end(p))
			wrong(p, "the severity is info, low, medium, high or critical", NULL, 0);
	} else if (n == 5 && !memcmp(word, "event", 5)) {
		p->s += n;
		if (p->rule->step_cnt)
			wrong(p, "what follows the first event is said with: then", NULL, 0);
		else
			parse_step(p);
	} else if (take_word(p, "then")) {
		if (!p->rule->step_cnt)
			wrong(p, "then comes after an event", NULL, 0);
		else
			parse_step(p);
	} else if (take_word(p, "let")) {
		parse_let(p);
	} else {
		wrong(p, "not understood:", word, n ? n : 1);
	}
}

/* Whether the line, which may become a finding's title, has nothing that a terminal obeys. */
static bool is_text(const char *s, size_t len)
{
	while (len) {
		uint32_t cp = 0;
		size_t n = utf8_next(s, len, &cp);
		bool is_space = *s == '\t' || *s == '\n' || *s == '\r';
		bool is_control = cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || (cp >= 0x202a && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069);
		if (!n || (is_control && !is_space))
			return false;
		s += n;
		len -= n;
	}
	return true;
}

struct err *trace_rules_add_text(struct trace_rules *r, const char *name, const char *text, size_t len)
{
	struct parse p = {.r = r, .file = name, .line = 1};
	const char *s = text, *end = text + len;
	size_t was = r->rules.cnt;
	p.nodes = malloc(NODES_MAX * sizeof(*p.nodes));
	if (!p.nodes)
		return &err_nomem;
	unsigned line = 1;
	while (s < end && !p.e) {
		/* A logical line: with those after it that begin with a space. */
		const char *from = s;
		p.line = line;
		do {
			const char *nl = memchr(s, '\n', (size_t)(end - s));
			s = nl ? nl + 1 : end;
			line++;
		} while (s < end && (*s == ' ' || *s == '\t'));
		p.from = p.s = from;
		p.end = s > from && s[-1] == '\n' ? s - 1 : s;
		if (memchr(from, '\0', (size_t)(s - from))) {
			wrong(&p, "a zero byte is no text", NULL, 0);
		} else if (!is_at_end(&p) && *p.s != '#') {
			if (is_text(from, (size_t)(s - from)))
				parse_line(&p);
			else
				wrong(&p, "a control character, or what is not UTF-8, is no text", NULL, 0);
			p.from = NULL;
			p.line = line - 1;
		}
	}
	end_rule(&p);
	free(p.nodes);
	if (p.e)
		r->rules.cnt = was;
	return p.e;
}

/* The files of rules/, one after another (rules.S.in). */
extern const char trace_rules_text[], trace_rules_text_end[];

const char *trace_rules_builtin(size_t *ret_len)
{
	*ret_len = (size_t)(trace_rules_text_end - trace_rules_text);
	return trace_rules_text;
}

/* One of the rules that come with scry, by name: its lines. */
static bool find_builtin(const char *name, const char **ret, size_t *ret_len)
{
	size_t len, n = strlen(name);
	const char *s = trace_rules_builtin(&len), *end = s + len;
	const char *found = NULL;
	for (const char *line = s; line < end;) {
		const char *nl = memchr(line, '\n', (size_t)(end - line));
		const char *next = nl ? nl + 1 : end;
		bool is_rule = next - line > 5 && !memcmp(line, "rule ", 5);
		if (is_rule && found) {
			*ret_len = (size_t)(line - found);
			return true;
		}
		if (is_rule && (size_t)(next - line) == n + 6 && !memcmp(line + 5, name, n))
			*ret = found = line;
		line = next;
	}
	if (found)
		*ret_len = (size_t)(end - found);
	return found;
}

struct err *trace_rules_add(struct trace_rules *r, const char *word)
{
	size_t len;
	const char *text;
	struct file *f;
	if (!strcmp(word, "all")) {
		text = trace_rules_builtin(&len);
		return trace_rules_add_text(r, "(built in)", text, len);
	}
	if (!strchr(word, '/') && find_builtin(word, &text, &len))
		return trace_rules_add_text(r, word, text, len);
	struct err *e = file_open(word, &f);
	if (e)
		return err_fix(e, "--rule takes a file, the name of a rule that comes with scry (scry trace --rules lists them), or all");
	e = f->len > (4u << 20) ? err_new(ERR_INVALID, "%s: too long for a file of rules", word)
				: trace_rules_add_text(r, word, f->len ? (const char *)f->data : "", f->len);
	file_close(f);
	return e;
}
