/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/probe_cond.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- parsing -------------------------------------------------------------------------------------------------- */
struct parse {
	const struct probe_kind *k;
	struct probe_cond *c;
	const char *text, *p;
	unsigned depth;
	struct err *e;
};

enum { PARSE_DEPTH_MAX = 64, NO_NODE = UINT16_MAX };

static uint16_t fail(struct parse *p, const char *why)
{
	if (!p->e)
		p->e = err_new(ERR_INVALID, "condition, column %zu: %s", (size_t)(p->p - p->text) + 1, why);
	return NO_NODE;
}

static void skip_space(struct parse *p)
{
	while (*p->p == ' ' || *p->p == '\t' || *p->p == '\n')
		p->p++;
}

static uint16_t put_node(struct parse *p, struct probe_node n)
{
	if (p->e)
		return NO_NODE;
	if (p->c->node_cnt == PROBE_NODE_MAX)
		return fail(p, "too long");
	p->c->nodes[p->c->node_cnt] = n;
	return (uint16_t)p->c->node_cnt++;
}

static bool is_word(char c)
{
	return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_same(const char *word, size_t len, const char *s)
{
	return strlen(s) == len && !memcmp(word, s, len);
}

static uint16_t put_arg(struct parse *p, uint32_t i)
{
	const struct probe_arg *a = &p->k->args[i];
	if (a->from == PROBE_NOWHERE)
		return fail(p, "the kernel does not tell this argument: it is in a vector register");
	return put_node(p, (struct probe_node){.op = PROBE_OP_ARG, .num = i, .is_unsigned = a->size == 8 && !a->is_signed});
}

static uint16_t parse_name(struct parse *p, const char *word, size_t len)
{
	static const struct { const char *name; uint8_t op; bool is_unsigned; } names[] = {
		{"ret", PROBE_OP_RET, false}, {"ns", PROBE_OP_NS, true}, {"pid", PROBE_OP_PID, false}, {"tid", PROBE_OP_TID, false},
		{"uid", PROBE_OP_UID, false}, {"cpu", PROBE_OP_CPU, false},
	};
	for (uint32_t i = 0; i < p->k->arg_cnt; i++) {
		if (p->k->args[i].name && is_same(word, len, p->k->args[i].name))
			return put_arg(p, i);
	}
	if (len >= 2 && len <= 3 && word[0] == 'a' && word[1] >= '1' && word[1] <= '9' && (len == 2 || (word[2] >= '0' && word[2] <= '9'))) {
		uint32_t n = (uint32_t)(word[1] - '0');
		if (len == 3)
			n = n * 10 + (uint32_t)(word[2] - '0');
		return n <= p->k->arg_cnt && !p->k->args[n - 1].is_hidden
			       ? put_arg(p, n - 1)
			       : fail(p, "there is no such argument: say what they are by -a");
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!is_same(word, len, names[i].name))
			continue;
		bool is_end = names[i].op == PROBE_OP_RET || names[i].op == PROBE_OP_NS;
		if (is_end && !p->k->has_return)
			return fail(p, "ret and ns need a probe on the return of a function");
		bool is_unsigned = names[i].op == PROBE_OP_RET ? p->k->ret.size == 8 && !p->k->ret.is_signed : names[i].is_unsigned;
		return put_node(p, (struct probe_node){.op = names[i].op, .is_unsigned = is_unsigned});
	}
	struct probe_node n = {.op = PROBE_OP_REG};
	uint16_t reg;
	if (!probe_reg_find(word, len, &reg, &n.size))
		return fail(p, "no argument, register or value is called so");
	n.num = reg;
	return put_node(p, n);
}

static uint16_t parse_char(struct parse *p)
{
	static const char from[] = "nrt0\\'\"", to[] = "\n\r\t\0\\'\"";
	const char *s = p->p + 1;
	char c = *s++;
	const char *esc = c == '\\' && *s ? strchr(from, *s) : NULL;
	if (c == '\\') {
		if (!esc)
			return fail(p, "unknown escape");
		c = to[esc - from];
		s++;
	}
	if (!s[-1] || *s != '\'')
		return fail(p, "a character ends with '");
	p->p = s + 1;
	return put_node(p, (struct probe_node){.op = PROBE_OP_NUM, .num = (unsigned char)c});
}

static uint16_t parse_or(struct parse *p);

static uint16_t parse_primary(struct parse *p)
{
	skip_space(p);
	const char *word = p->p;
	if (*p->p == '(') {
		p->p++;
		uint16_t n = parse_or(p);
		skip_space(p);
		if (*p->p != ')')
			return fail(p, "a parenthesis is not closed");
		p->p++;
		return n;
	}
	if (*p->p == '\'')
		return parse_char(p);
	if (*p->p >= '0' && *p->p <= '9') {
		char *end;
		errno = 0;
		uint64_t v = strtoull(p->p, &end, 0);
		if (errno || is_word(*end))
			return fail(p, "not a number of 64 bits");
		p->p = end;
		return put_node(p, (struct probe_node){.op = PROBE_OP_NUM, .num = (int64_t)v, .is_unsigned = v > INT64_MAX});
	}
	while (is_word(*p->p))
		p->p++;
	size_t len = (size_t)(p->p - word);
	if (!len)
		return fail(p, *p->p == '"' ? "a string stands right of == or !=" : "a value is missing here");
	uint16_t n = parse_name(p, word, len);
	return n;
}

static uint16_t parse_unary(struct parse *p)
{
	skip_space(p);
	uint8_t op = *p->p == '-' ? PROBE_OP_NEG : *p->p == '~' ? PROBE_OP_INV : *p->p == '!' && p->p[1] != '=' ? PROBE_OP_NOT : 0;
	if (!op)
		return parse_primary(p);
	p->p++;
	if (++p->depth > PARSE_DEPTH_MAX)
		return fail(p, "nested too deep");
	uint16_t n = parse_unary(p);
	p->depth--;
	if (n == NO_NODE)
		return n;
	return put_node(p, (struct probe_node){.op = op, .left = n, .is_unsigned = op != PROBE_OP_NOT && p->c->nodes[n].is_unsigned});
}

/* Binary operators, weakest first; a longer one before its beginning. */
static const struct { const char *text; uint8_t op, level; } operators[] = {
	{"||", PROBE_OP_OR, 1}, {"&&", PROBE_OP_AND, 2}, {"==", PROBE_OP_EQ, 6}, {"!=", PROBE_OP_NE, 6}, {"<<", PROBE_OP_SHL, 8},
	{">>", PROBE_OP_SHR, 8}, {"<=", PROBE_OP_LE, 7}, {">=", PROBE_OP_GE, 7}, {"<", PROBE_OP_LT, 7}, {">", PROBE_OP_GT, 7},
	{"|", PROBE_OP_BOR, 3}, {"^", PROBE_OP_XOR, 4}, {"&", PROBE_OP_BAND, 5}, {"+", PROBE_OP_ADD, 9}, {"-", PROBE_OP_SUB, 9},
	{"*", PROBE_OP_MUL, 10},
};

/* The operator here, or the count of operators. */
static size_t find_operator(struct parse *p)
{
	skip_space(p);
	for (size_t i = 0; i < ARRAY_LEN(operators); i++) {
		if (!strncmp(p->p, operators[i].text, strlen(operators[i].text)))
			return i;
	}
	return ARRAY_LEN(operators);
}

static uint16_t parse_text(struct parse *p, uint16_t left, uint8_t op)
{
	struct probe_cond *c = p->c;
	struct probe_node n = {.op = PROBE_OP_TEXT_EQ, .left = left, .text = (uint16_t)c->text_len};
	if ((op != PROBE_OP_EQ && op != PROBE_OP_NE) || left == NO_NODE)
		return fail(p, "a string can be compared by == and != alone");
	for (p->p++; *p->p != '"'; p->p++) {
		char ch = *p->p;
		if (ch == '\\' && p->p[1])
			ch = *++p->p;
		if (!ch)
			return fail(p, "a string ends with \"");
		if (n.text_len == PROBE_TEXT_MAX || c->text_len == sizeof(c->texts))
			return fail(p, "strings of up to 62 bytes can be compared");
		c->texts[c->text_len++] = ch;
		n.text_len++;
	}
	p->p++;
	uint16_t eq = put_node(p, n);
	return op == PROBE_OP_EQ || eq == NO_NODE ? eq : put_node(p, (struct probe_node){.op = PROBE_OP_NOT, .left = eq});
}

static uint16_t parse_binary(struct parse *p, unsigned level)
{
	if (++p->depth > PARSE_DEPTH_MAX)
		return fail(p, "nested too deep");
	uint16_t left = parse_unary(p);
	for (size_t i; left != NO_NODE && (i = find_operator(p)) < ARRAY_LEN(operators) && operators[i].level >= level;) {
		uint8_t op = operators[i].op;
		p->p += strlen(operators[i].text);
		skip_space(p);
		if (*p->p == '"') {
			left = parse_text(p, left, op);
			continue;
		}
		uint16_t right = parse_binary(p, operators[i].level + 1u);
		if (right == NO_NODE)
			return NO_NODE;
		bool is_unsigned = p->c->nodes[left].is_unsigned || (op != PROBE_OP_SHL && op != PROBE_OP_SHR && p->c->nodes[right].is_unsigned);
		left = put_node(p, (struct probe_node){.op = op, .left = left, .right = right, .is_unsigned = is_unsigned});
	}
	p->depth--;
	return left;
}

static uint16_t parse_or(struct parse *p)
{
	return parse_binary(p, 1);
}

/* --- what it needs -------------------------------------------------------------------------------------------- */
static bool is_binary(uint8_t op)
{
	return op >= PROBE_OP_OR;
}

static bool is_unary(uint8_t op)
{
	return op >= PROBE_OP_TEXT_EQ && op < PROBE_OP_OR;
}


/* What nodes below `at` are, as bits of 1 << op, and how many words evaluating it keeps. Nodes are made from the leaves on, so one pass does. */
struct need { uint64_t ops; uint32_t words; bool stack; };

static struct need need_of(const struct probe_kind *k, const struct probe_cond *c, uint16_t at)
{
	struct need n[PROBE_NODE_MAX];
	for (uint32_t i = 0; i <= at; i++) {
		const struct probe_node *d = &c->nodes[i];
		n[i] = (struct need){.ops = 1ull << d->op, .stack = d->op == PROBE_OP_ARG && k->args[d->num].from == PROBE_STACK};
		if (is_unary(d->op) || is_binary(d->op)) {
			const struct need *l = &n[d->left], *r = is_binary(d->op) ? &n[d->right] : l;
			n[i].ops |= l->ops | r->ops;
			n[i].stack = l->stack || r->stack;
			/* Of || and && the left side is decided before the right one begins. */
			bool keeps = is_binary(d->op) && d->op != PROBE_OP_OR && d->op != PROBE_OP_AND;
			n[i].words = MAX(l->words, r->words + keeps);
		}
	}
	return n[at];
}

struct err *probe_cond_parse(const struct probe_kind *k, const char *text, struct probe_cond *ret)
{
	struct parse p = {.k = k, .c = ret, .text = text, .p = text};
	memset(ret, 0, sizeof(*ret));
	if (strlen(text) > PROBE_COND_MAX)
		return err_new(ERR_INVALID, "condition: longer than %d bytes", PROBE_COND_MAX);
	uint16_t root = parse_or(&p);
	skip_space(&p);
	if (!p.e && *p.p)
		fail(&p, "an operator is missing here");
	/* Parts joined by &&, from the right: the left one may be such a part again. */
	for (bool is_last = false; !p.e && !is_last;) {
		is_last = ret->nodes[root].op != PROBE_OP_AND;
		uint16_t part = is_last ? root : ret->nodes[root].right;
		struct need n = need_of(k, ret, part);
		bool is_end = n.ops & (1ull << PROBE_OP_RET | 1ull << PROBE_OP_NS);
		uint32_t *cnt = is_end ? &ret->end_cnt : &ret->begin_cnt;
		if (n.words > PROBE_NEST_MAX || *cnt == ARRAY_LEN(ret->begin)) {
			fail(&p, "too much of it at once");
			break;
		}
		(is_end ? ret->end : ret->begin)[(*cnt)++] = part;
		ret->uses_stack |= !is_end && n.stack;
		ret->end_uses_args |= is_end && (n.ops & (1ull << PROBE_OP_ARG | 1ull << PROBE_OP_REG));
		if (is_end && (n.ops & 1ull << PROBE_OP_REG))
			fail(&p, "registers are those of the beginning, ret and ns of the end: join what asks for them by &&");
		root = ret->nodes[root].left;
	}
	return p.e;
}

/* --- code ----------------------------------------------------------------------------------------------------- */
struct gen {
	const struct probe_cond *c;
	const struct probe_values *v;
	struct probe_asm *a;
};

static void put_value(struct gen *g, uint16_t at, unsigned depth);

/* The jump that is taken when the comparison holds. */
static int jump_of(uint8_t op, bool is_unsigned)
{
	switch (op) {
	case PROBE_OP_EQ:
		return BPF_JEQ;
	case PROBE_OP_NE:
		return BPF_JNE;
	case PROBE_OP_LT:
		return is_unsigned ? BPF_JLT : BPF_JSLT;
	case PROBE_OP_LE:
		return is_unsigned ? BPF_JLE : BPF_JSLE;
	case PROBE_OP_GT:
		return is_unsigned ? BPF_JGT : BPF_JSGT;
	default:
		return is_unsigned ? BPF_JGE : BPF_JSGE;
	}
}

/* r1 = left, r0 = right. */
static void put_sides(struct gen *g, const struct probe_node *n, unsigned depth)
{
	int slot = g->v->spill - 8 * (int)depth;
	put_value(g, n->left, depth);
	probe_store(g->a, BPF_DW, BPF_REG_10, slot, BPF_REG_0);
	put_value(g, n->right, depth + 1);
	probe_load(g->a, BPF_DW, BPF_REG_1, BPF_REG_10, slot);
}

/* Jumps to `to` when the node is (not) true. Recursion is bounded by the parser's. */
static void put_jump(struct gen *g, uint16_t at, unsigned depth, bool when, uint32_t to)
{
	const struct probe_node *n = &g->c->nodes[at];
	if (n->op == PROBE_OP_NOT) {
		put_jump(g, n->left, depth, !when, to);
	} else if (n->op == PROBE_OP_AND || n->op == PROBE_OP_OR) {
		bool decides = n->op == PROBE_OP_OR; /* the value of one side that decides */
		uint32_t end = when == decides ? to : probe_asm_label(g->a);
		put_jump(g, n->left, depth, decides, end);
		put_jump(g, n->right, depth, when, to);
		if (end != to)
			probe_asm_bind(g->a, end);
	} else if (n->op >= PROBE_OP_EQ && n->op <= PROBE_OP_GE) {
		put_sides(g, n, depth);
		bool is_unsigned = g->c->nodes[n->left].is_unsigned || g->c->nodes[n->right].is_unsigned;
		if (when) {
			probe_jump_if(g->a, jump_of(n->op, is_unsigned), BPF_REG_1, BPF_REG_0, to);
		} else {
			uint32_t over = probe_asm_label(g->a);
			probe_jump_if(g->a, jump_of(n->op, is_unsigned), BPF_REG_1, BPF_REG_0, over);
			probe_jump(g->a, to);
			probe_asm_bind(g->a, over);
		}
	} else {
		put_value(g, at, depth);
		probe_jump_if_imm(g->a, when ? BPF_JNE : BPF_JEQ, BPF_REG_0, 0, to);
	}
}

static int alu_of(uint8_t op, bool is_unsigned)
{
	switch (op) {
	case PROBE_OP_BOR:
		return BPF_OR;
	case PROBE_OP_XOR:
		return BPF_XOR;
	case PROBE_OP_BAND:
		return BPF_AND;
	case PROBE_OP_SHL:
		return BPF_LSH;
	case PROBE_OP_SHR:
		return is_unsigned ? BPF_RSH : BPF_ARSH;
	case PROBE_OP_ADD:
		return BPF_ADD;
	case PROBE_OP_SUB:
		return BPF_SUB;
	default:
		return BPF_MUL;
	}
}

/* r0 = the node's value. */
static void put_value(struct gen *g, uint16_t at, unsigned depth)
{
	const struct probe_node *n = &g->c->nodes[at];
	struct probe_asm *a = g->a;
	if (n->op == PROBE_OP_NUM) {
		probe_imm64(a, BPF_REG_0, 0, (uint64_t)n->num);
	} else if (n->op < PROBE_OP_TEXT_EQ) {
		g->v->load(g->v->ctx, a, n);
	} else if (n->op == PROBE_OP_TEXT_EQ) {
		put_value(g, n->left, depth);
		g->v->text(g->v->ctx, a, g->c->texts + n->text, n->text_len);
	} else if (n->op == PROBE_OP_NEG) {
		put_value(g, n->left, depth);
		probe_alu_imm(a, BPF_NEG, BPF_REG_0, 0);
	} else if (n->op == PROBE_OP_INV) {
		put_value(g, n->left, depth);
		probe_alu_imm(a, BPF_XOR, BPF_REG_0, -1);
	} else if (n->op >= PROBE_OP_BOR) {
		put_sides(g, n, depth);
		if (n->op == PROBE_OP_SHL || n->op == PROBE_OP_SHR)
			probe_alu_imm(a, BPF_AND, BPF_REG_0, 63);
		probe_alu(a, alu_of(n->op, g->c->nodes[n->left].is_unsigned), BPF_REG_1, BPF_REG_0);
		probe_mov(a, BPF_REG_0, BPF_REG_1);
	} else {
		uint32_t no = probe_asm_label(a), end = probe_asm_label(a);
		put_jump(g, at, depth, false, no);
		probe_mov_imm(a, BPF_REG_0, 1);
		probe_jump(a, end);
		probe_asm_bind(a, no);
		probe_mov_imm(a, BPF_REG_0, 0);
		probe_asm_bind(a, end);
	}
}

void probe_cond_put(const struct probe_cond *c, const uint16_t *parts, uint32_t cnt, const struct probe_values *v, struct probe_asm *a,
		    uint32_t no)
{
	struct gen g = {.c = c, .v = v, .a = a};
	for (uint32_t i = 0; i < cnt; i++)
		put_jump(&g, parts[i], 0, false, no);
}
