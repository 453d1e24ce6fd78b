/* SPDX-License-Identifier: Apache-2.0 */
#include "decomp/dec_rules.h"

#include <pthread.h>
#include <string.h>

/* The rows of dec_rules.def, read once into nodes, and the matcher. */

#define NODE_MAX 1800
#define PER_OP_MAX 40

enum node_type { N_OP, N_VALUE, N_CONST, N_NUMBER };
enum width_from { W_PLACE, W_LETTER, W_BITS };

struct node {
	uint8_t type;
	uint8_t op, kind;
	uint8_t letter;      /* of a value 0..25, of a constant 0..25 */
	uint8_t aux_letter;  /* 255: aux is `number` */
	uint8_t width_from, width_letter;
	uint8_t kid_cnt;
	uint16_t kids[3];
	int64_t number;      /* or aux */
};

struct rule {
	const char *name;
	const char *text[2];
	bool (*cond)(struct dec_match *m);
	uint16_t pattern, result;
};

/* --- conditions ------------------------------------------------------------------------------------------------------------ */
static unsigned bits_of(const struct dec_match *m, char letter)
{
	return ir_bits(ir_ref_width(m->b->f, m->value[letter - 'a']));
}

static uint64_t zeros_of(const struct dec_match *m, char letter)
{
	return dec_zeros(m->b, m->value[letter - 'a']);
}

#define C(letter) (m->number[letter - 'A'])

static void set_k(struct dec_match *m, uint64_t v)
{
	m->number[10] = v;
	m->has_number |= 1u << 10;
	m->number_width[10] = m->has_number & 4 && m->number_width[2] != IR_W0 ? m->number_width[2] : IR_W8;
}

static unsigned root_bits(const struct dec_match *m)
{
	return ir_bits(m->width);
}

static bool is_const(const struct dec_match *m, char letter)
{
	return ir_tag(m->value[letter - 'a']) == IR_TAG_CONST;
}

static bool always(struct dec_match *m)
{
	return true;
}

static bool is_no_const_x(struct dec_match *m)
{
	return !is_const(m, 'x');
}

static bool is_no_const_y(struct dec_match *m)
{
	return !is_const(m, 'y');
}

static bool is_count_c(struct dec_match *m)
{
	return C('C') < root_bits(m);
}

static bool is_count_d(struct dec_match *m)
{
	return C('D') < root_bits(m);
}

static bool is_too_far(struct dec_match *m)
{
	return C('C') >= root_bits(m);
}

static bool is_sum_count(struct dec_match *m)
{
	return C('C') < root_bits(m) && C('D') < root_bits(m) && C('C') + C('D') < root_bits(m) && C('C') + C('D') < 256;
}

static bool is_apart(struct dec_match *m)
{
	return !(C('C') & C('D'));
}

static bool is_d_in_c(struct dec_match *m)
{
	return !(C('D') & ~C('C'));
}

static bool is_all(struct dec_match *m)
{
	return (C('C') | C('D')) == dec_mask(m->width);
}

static bool is_and_idle(struct dec_match *m)
{
	return !(~C('C') & ~zeros_of(m, 'x') & dec_mask(m->width));
}

static bool is_and_zero(struct dec_match *m)
{
	return !(C('C') & ~zeros_of(m, 'x'));
}

static bool is_shifted_out(struct dec_match *m)
{
	return root_bits(m) <= 64 && C('C') < root_bits(m) && !(~zeros_of(m, 'x') >> C('C'));
}

static bool is_positive(struct dec_match *m)
{
	unsigned n = bits_of(m, 'x');
	return n <= 64 && zeros_of(m, 'x') >> (n - 1) & 1;
}

static bool is_rotation(struct dec_match *m)
{
	return root_bits(m) >= 8 && root_bits(m) <= 64 && C('C') && C('D') && C('C') + C('D') == root_bits(m);
}

static bool is_rotation_count(struct dec_match *m)
{
	set_k(m, root_bits(m));
	return C('C') < root_bits(m);
}

static bool is_whole(struct dec_match *m)
{
	return bits_of(m, 'x') == root_bits(m);
}

static bool is_extract_inside(struct dec_match *m)
{
	return C('C') + root_bits(m) <= bits_of(m, 'x');
}

static bool is_extract_outside(struct dec_match *m)
{
	return C('C') >= bits_of(m, 'x');
}

static bool is_wider(struct dec_match *m)
{
	return root_bits(m) > bits_of(m, 'x');
}

static bool is_sum_of_offsets(struct dec_match *m)
{
	set_k(m, C('C') + C('D'));
	return true;
}

static bool is_extract_inside_y(struct dec_match *m)
{
	return C('C') + root_bits(m) <= bits_of(m, 'y');
}

static bool is_extract_above_y(struct dec_match *m)
{
	set_k(m, C('C') - bits_of(m, 'y'));
	return C('C') >= bits_of(m, 'y');
}

static bool is_extract_in_part(struct dec_match *m)
{
	set_k(m, C('C') - C('D'));
	return C('C') >= C('D') && C('C') + root_bits(m) <= C('D') + bits_of(m, 'y');
}

static bool is_extract_off_part(struct dec_match *m)
{
	return C('C') + root_bits(m) <= C('D') || C('C') >= C('D') + bits_of(m, 'y');
}

static bool is_extract_of_shift(struct dec_match *m)
{
	set_k(m, C('C') + C('D'));
	return C('D') < bits_of(m, 'x') && C('C') + C('D') + root_bits(m) <= bits_of(m, 'x');
}

static bool is_whole_part(struct dec_match *m)
{
	return bits_of(m, 'y') == root_bits(m);
}

static bool is_same_part(struct dec_match *m)
{
	return bits_of(m, 'y') == bits_of(m, 'z');
}

static bool is_same_part_x(struct dec_match *m)
{
	return bits_of(m, 'y') == bits_of(m, 'x');
}

/* The 0 that is put in is the second operand: its width says how many bits. */
static bool is_part_mask(struct dec_match *m)
{
	unsigned part = ir_bits(ir_ref_width(m->b->f, m->rec->b));
	if (root_bits(m) > 64)
		return false;
	set_k(m, dec_mask(m->width) & ~(part >= 64 ? UINT64_MAX : ((uint64_t)1 << part) - 1));
	return true;
}

static bool is_halves(struct dec_match *m)
{
	return bits_of(m, 'x') == root_bits(m) && C('C') * 2 == root_bits(m);
}

static bool is_count_in_x(struct dec_match *m)
{
	return C('C') < bits_of(m, 'x');
}

static bool is_narrowing(struct dec_match *m)
{
	if (C('C') >= root_bits(m) || root_bits(m) > 64)
		return false;
	set_k(m, root_bits(m) - C('C'));
	return C('C') && ir_width_of(root_bits(m) - (unsigned)C('C')) != IR_W0;
}

static bool is_bit_x(struct dec_match *m)
{
	return bits_of(m, 'x') == 1;
}

static bool is_wide_x(struct dec_match *m)
{
	return bits_of(m, 'x') > 1;
}

static bool is_bit_root(struct dec_match *m)
{
	return root_bits(m) == 1;
}

static bool is_wide_root(struct dec_match *m)
{
	return root_bits(m) > 1;
}

static bool is_never(struct dec_match *m)
{
	return bits_of(m, 'x') <= 64 && (zeros_of(m, 'x') & C('C'));
}

static bool is_in_x(struct dec_match *m)
{
	unsigned n = bits_of(m, 'x');
	return n >= 64 || !(C('C') >> n);
}

static bool is_same_width(struct dec_match *m)
{
	return bits_of(m, 'x') == bits_of(m, 'y');
}

static bool is_negated(struct dec_match *m)
{
	return ((C('C') + C('D')) & dec_mask(m->number_width[2])) == 0;
}

static bool is_divisor(struct dec_match *m)
{
	return C('C') != 0;
}

static bool is_signed_divisor(struct dec_match *m)
{
	return C('C') != 0 && C('C') != dec_mask(m->width);
}

static bool is_sign_count(struct dec_match *m)
{
	return C('C') == root_bits(m) - 1;
}

#undef C

/* --- reading ------------------------------------------------------------------------------------------------------------------ */
static struct rule rules[] = {
#define RULE(id, pattern, cond, result) {#id, {pattern, result}, cond, 0, 0},
#include "decomp/dec_rules.def"
};

static struct node nodes[NODE_MAX];
static uint16_t node_cnt;
static uint16_t by_op[IR_OP_COUNT][PER_OP_MAX];
static uint8_t by_op_cnt[IR_OP_COUNT];
/* Of the same rules: what their operands have to be. */
static struct chance {
	uint8_t kind, cnt, type[2], op[2];
} chances[IR_OP_COUNT][PER_OP_MAX];
static bool is_broken; /* a row that cannot be read: a mistake of ours, seen by every test */

static unsigned word_len(const char *s)
{
	unsigned n = 0;
	while ((s[n] >= 'a' && s[n] <= 'z') || (s[n] >= '0' && s[n] <= '9') || s[n] == '_')
		n++;
	return n;
}

static uint8_t op_named(const char *s, unsigned len)
{
	for (unsigned i = 1; i < IR_OP_COUNT; i++)
		if (strlen(ir_op_table[i].text) == len && !memcmp(ir_op_table[i].text, s, len))
			return (uint8_t)i;
	is_broken = true;
	return IR_OP_NONE;
}

static uint8_t kind_named(uint8_t op, const char *s, unsigned len)
{
	for (unsigned i = 1; i < IR_KIND_COUNT; i++)
		if (ir_kind_table[i].op == op && strlen(ir_kind_table[i].text) == len && !memcmp(ir_kind_table[i].text, s, len))
			return (uint8_t)i;
	is_broken = true;
	return IR_KIND_NONE;
}

static int64_t read_number(const char **s)
{
	bool is_negative = **s == '-';
	int64_t v = 0;
	for (*s += is_negative; **s >= '0' && **s <= '9'; ++*s)
		v = v * 10 + (**s - '0');
	return is_negative ? -v : v;
}

static void read_head(struct node *n, const char **s)
{
	unsigned len = word_len(*s);
	n->op = op_named(*s, len);
	*s += len;
	if (**s == '.') {
		len = word_len(++*s);
		n->kind = kind_named(n->op, *s, len);
		*s += len;
	}
	n->aux_letter = 255;
	if (**s == '@') {
		++*s;
		if (**s >= 'A' && **s <= 'Z')
			n->aux_letter = (uint8_t)(*(*s)++ - 'A');
		else
			n->number = read_number(s);
	}
	if (**s == ':') {
		++*s;
		bool is_value = **s >= 'a';
		n->width_from = is_value ? W_LETTER : W_BITS;
		n->width_letter = (uint8_t)(*(*s)++ - (is_value ? 'a' : 'A'));
	}
}

static uint16_t read_term(const char **s, unsigned depth)
{
	while (**s == ' ')
		++*s;
	if (node_cnt >= NODE_MAX || depth > 8) {
		is_broken = true;
		return 0;
	}
	uint16_t at = node_cnt++;
	struct node n = {.type = N_NUMBER, .aux_letter = 255};
	if (**s == '(') {
		++*s;
		n.type = N_OP;
		read_head(&n, s);
		while (**s == ' ' && n.kid_cnt < 3)
			n.kids[n.kid_cnt++] = read_term(s, depth + 1);
		is_broken |= **s != ')' || n.kid_cnt != ir_fixed_operands((enum ir_op)n.op);
		++*s;
	} else if (**s >= 'a' && **s <= 'z') {
		n.type = N_VALUE;
		n.letter = (uint8_t)(*(*s)++ - 'a');
	} else if (**s >= 'A' && **s <= 'Z') {
		n.type = N_CONST;
		n.letter = (uint8_t)(*(*s)++ - 'A');
	} else {
		n.number = read_number(s);
	}
	nodes[at] = n;
	return at;
}

static void read_rules(void)
{
	for (uint16_t i = 0; i < ARRAY_LEN(rules); i++) {
		const char *p = rules[i].text[0], *r = rules[i].text[1];
		rules[i].pattern = read_term(&p, 0);
		rules[i].result = read_term(&r, 0);
		uint8_t op = nodes[rules[i].pattern].op;
		is_broken |= *p || *r || by_op_cnt[op] == PER_OP_MAX;
		if (by_op_cnt[op] == PER_OP_MAX)
			continue;
		const struct node *n = &nodes[rules[i].pattern];
		struct chance *c = &chances[op][by_op_cnt[op]];
		*c = (struct chance){.kind = n->kind, .cnt = n->kid_cnt};
		for (unsigned k = 0; k < n->kid_cnt && k < 2; k++) {
			c->type[k] = nodes[n->kids[k]].type;
			c->op[k] = nodes[n->kids[k]].op;
		}
		by_op[op][by_op_cnt[op]++] = i;
	}
}

static bool is_ready(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, read_rules);
	return !is_broken;
}

/* --- matching --------------------------------------------------------------------------------------------------------------------- */
static bool bind_number(struct dec_match *m, unsigned letter, uint64_t v, enum ir_width w)
{
	if (m->has_number >> letter & 1)
		return m->number[letter] == v;
	m->has_number |= 1u << letter;
	m->number[letter] = v;
	m->number_width[letter] = w;
	return true;
}

static bool match(struct dec_match *m, const struct node *n, ir_ref r);

static bool is_zero(const struct ir_func *f, ir_ref r)
{
	const uint64_t *words = ir_const_words(f, r);
	for (unsigned i = 0; words && i < ir_words(ir_ref_width(f, r)); i++)
		if (words[i])
			return false;
	return words != NULL;
}

static bool match_rec(struct dec_match *m, const struct node *n, const struct ir_rec *rec)
{
	if (rec->op != n->op || (n->kind && rec->kind != n->kind))
		return false;
	if (n->op == IR_EXTRACT || n->op == IR_INSERT) {
		if (n->aux_letter == 255 ? rec->aux != n->number : !bind_number(m, n->aux_letter, rec->aux, IR_W0))
			return false;
	}
	const ir_ref refs[3] = {rec->a, rec->b, rec->c};
	/* Numbers stand second, in records as in patterns. */
	bool may_turn = n->kid_cnt > 1 && nodes[n->kids[1]].type != N_NUMBER && nodes[n->kids[1]].type != N_CONST &&
			dec_commutes((enum ir_op)rec->op, (enum ir_kind)rec->kind);
	struct dec_match was;
	if (may_turn)
		was = *m;
	unsigned i = 0;
	while (i < n->kid_cnt && match(m, &nodes[n->kids[i]], refs[i]))
		i++;
	if (i == n->kid_cnt || !may_turn)
		return i == n->kid_cnt;
	*m = was;
	return match(m, &nodes[n->kids[0]], rec->b) && match(m, &nodes[n->kids[1]], rec->a) &&
	       (n->kid_cnt < 3 || match(m, &nodes[n->kids[2]], rec->c));
}

static bool match(struct dec_match *m, const struct node *n, ir_ref r)
{
	uint64_t v;
	const struct ir_rec *rec;
	switch (n->type) {
	case N_VALUE:
		if (m->value[n->letter] == IR_REF_NONE)
			m->value[n->letter] = r;
		return m->value[n->letter] == r;
	case N_CONST:
		return ir_const_get(m->b->f, r, &v) && bind_number(m, n->letter, v, ir_ref_width(m->b->f, r));
	case N_NUMBER:
		if (n->number == 0)
			return is_zero(m->b->f, r);
		return ir_const_get(m->b->f, r, &v) && v == ((uint64_t)n->number & dec_mask(ir_ref_width(m->b->f, r)));
	default:
		rec = dec_rec(m->b->f, r);
		return rec && match_rec(m, n, rec);
	}
}

/* --- results --------------------------------------------------------------------------------------------------------------------- */
/* The width a term has by itself; IR_W0: its place decides. */
static enum ir_width own_width(const struct dec_match *m, const struct node *n)
{
	if (n->type == N_VALUE)
		return ir_ref_width(m->b->f, m->value[n->letter]);
	if (n->type == N_CONST)
		return m->number_width[n->letter];
	if (n->type == N_NUMBER)
		return IR_W0;
	if (n->width_from == W_LETTER)
		return ir_ref_width(m->b->f, m->value[n->width_letter]);
	if (n->width_from == W_BITS)
		return ir_width_of((unsigned)m->number[n->width_letter]);
	const char *sig = ir_op_info((enum ir_op)n->op)->signature;
	if (sig[0] == '1')
		return IR_W1;
	for (unsigned i = 0; i < n->kid_cnt; i++) {
		enum ir_width w = sig[2 + i] == 'w' ? own_width(m, &nodes[n->kids[i]]) : IR_W0;
		if (w != IR_W0)
			return w;
	}
	return IR_W0;
}

static ir_ref make(struct dec_match *m, const struct node *n, enum ir_width place)
{
	enum ir_width own = own_width(m, n), w = n->type == N_OP && own != IR_W0 ? own : place != IR_W0 ? place : own;
	if (n->type == N_VALUE)
		return m->value[n->letter];
	if (n->type == N_CONST)
		return ir_const(m->b->f, place != IR_W0 ? place : own, m->number[n->letter]);
	if (n->type == N_NUMBER) {
		const uint64_t all[8] = {(uint64_t)n->number, n->number < 0 ? UINT64_MAX : 0, n->number < 0 ? UINT64_MAX : 0,
					 n->number < 0 ? UINT64_MAX : 0, n->number < 0 ? UINT64_MAX : 0, n->number < 0 ? UINT64_MAX : 0,
					 n->number < 0 ? UINT64_MAX : 0, n->number < 0 ? UINT64_MAX : 0};
		return ir_const_wide(m->b->f, w == IR_W0 ? IR_W8 : w, all);
	}
	const char *sig = ir_op_info((enum ir_op)n->op)->signature;
	enum ir_width x = IR_W0;
	for (unsigned i = 0; i < n->kid_cnt && x == IR_W0; i++)
		x = sig[2 + i] == 'x' ? own_width(m, &nodes[n->kids[i]]) : IR_W0;
	/* What keeps the width of its place may be a value that has it already. */
	if (n->width_from == W_PLACE && place != IR_W0 && sig[0] == 'w')
		w = place;
	ir_ref refs[3] = {IR_REF_NONE, IR_REF_NONE, IR_REF_NONE};
	for (unsigned i = 0; i < n->kid_cnt; i++) {
		char letter = sig[2 + i];
		refs[i] = make(m, &nodes[n->kids[i]], letter == 'w' ? w : letter == '1' ? IR_W1 : letter == 'x' ? x : IR_W0);
	}
	const struct ir_rec rec = {.op = n->op, .kind = n->kind, .width = (uint8_t)(sig[0] == '1' ? IR_W1 : w), .a = refs[0], .b = refs[1],
				   .c = refs[2],
				   .aux = n->op != IR_EXTRACT && n->op != IR_INSERT ? 0 :
					  n->aux_letter == 255			    ? (uint32_t)n->number :
										      (uint32_t)m->number[n->aux_letter],
				   .origin = m->rec->origin};
	return dec_op(m->b, &rec);
}

/* Whether an operand may match: `op` is that of its record, IR_OP_NONE for a constant. */
static inline bool may_be(uint8_t type, uint8_t wanted, uint8_t op)
{
	return type == N_OP ? op == wanted && op != IR_OP_NONE : type == N_VALUE || op == IR_OP_NONE;
}

static inline uint8_t op_of(const struct dec_build *b, ir_ref r)
{
	return ir_tag(r) == IR_TAG_VALUE ? b->f->recs[ir_index(r)].op : (uint8_t)IR_OP_NONE;
}

/* Told by the operations of its operands alone: most rules are not looked at closer. */
static inline bool has_chance(const struct chance *c, uint8_t kind, uint8_t a, uint8_t b, bool may_turn)
{
	if (c->kind && c->kind != kind)
		return false;
	return (may_be(c->type[0], c->op[0], a) && (c->cnt < 2 || may_be(c->type[1], c->op[1], b))) ||
	       (may_turn && c->cnt > 1 && may_be(c->type[0], c->op[0], b) && may_be(c->type[1], c->op[1], a));
}

static ir_ref apply(struct dec_build *b, const struct rule *rule, const struct ir_rec *rec)
{
	struct dec_match m;
	m.b = b;
	m.rec = rec;
	m.width = (enum ir_width)rec->width;
	m.has_number = 0;
	memset(m.value, 0xff, sizeof(m.value));
	if (!match_rec(&m, &nodes[rule->pattern], rec) || !rule->cond(&m))
		return IR_REF_NONE;
	/* A value stands for it only when it is as wide. */
	const struct node *n = &nodes[rule->result];
	if (n->type == N_VALUE && ir_ref_width(b->f, m.value[n->letter]) != m.width)
		return IR_REF_NONE;
	return make(&m, n, m.width);
}

ir_ref dec_rules(struct dec_build *b, const struct ir_rec *rec)
{
	if (!is_ready())
		return IR_REF_NONE;
	uint8_t op_a = op_of(b, rec->a), op_b = rec->b == IR_REF_NONE ? (uint8_t)IR_OP_NONE : op_of(b, rec->b);
	bool may_turn = dec_commutes((enum ir_op)rec->op, (enum ir_kind)rec->kind);
	for (unsigned i = 0; i < by_op_cnt[rec->op] && by_op[rec->op][i] + b->rules_off < ARRAY_LEN(rules); i++) {
		if (!has_chance(&chances[rec->op][i], rec->kind, op_a, op_b, may_turn))
			continue;
		ir_ref r = apply(b, &rules[by_op[rec->op][i]], rec);
		if (r != IR_REF_NONE)
			return r;
	}
	return IR_REF_NONE;
}

unsigned dec_rule_cnt(void)
{
	return is_ready() ? ARRAY_LEN(rules) : 0;
}

const char *dec_rule_name(unsigned rule)
{
	return rule < ARRAY_LEN(rules) ? rules[rule].name : "";
}

const char *dec_rule_text(unsigned rule, const char **ret_pattern, const char **ret_result)
{
	*ret_pattern = rules[rule].text[0];
	*ret_result = rules[rule].text[1];
	return rules[rule].name;
}

ir_ref dec_rule_try(struct dec_build *b, unsigned rule, const struct ir_rec *rec)
{
	return is_ready() ? apply(b, &rules[rule], rec) : IR_REF_NONE;
}

/* --- patterns as records, for the test ------------------------------------------------------------------------------------------- */
static enum ir_width choose(struct dec_rule_sample *s)
{
	unsigned i = s->choice_cnt++;
	return i < 4 ? s->choice[i] : IR_W8;
}

/* The width of a term when its letters are bound; IR_W0: not said yet. */
static enum ir_width sample_width(const struct dec_build *b, const struct dec_rule_sample *s, const struct node *n)
{
	if (n->type == N_VALUE)
		return s->value[n->letter] == IR_REF_NONE ? IR_W0 : ir_ref_width(b->f, s->value[n->letter]);
	if (n->type != N_OP)
		return IR_W0;
	const char *sig = ir_op_info((enum ir_op)n->op)->signature;
	if (sig[0] == '1')
		return IR_W1;
	for (unsigned i = 0; i < n->kid_cnt; i++) {
		enum ir_width w = sig[2 + i] == 'w' ? sample_width(b, s, &nodes[n->kids[i]]) : IR_W0;
		if (w != IR_W0)
			return w;
	}
	return IR_W0;
}

static struct ir_rec sample_rec(struct dec_build *b, struct dec_rule_sample *s, const struct node *n, enum ir_width w);

static ir_ref sample_term(struct dec_build *b, struct dec_rule_sample *s, const struct node *n, enum ir_width w)
{
	if (n->type == N_VALUE) {
		if (s->value[n->letter] == IR_REF_NONE)
			s->value[n->letter] = s->make(s->ctx, n->letter, w);
		return s->value[n->letter];
	}
	if (n->type == N_CONST) {
		s->numbers |= 1u << n->letter;
		return ir_const(b->f, w, s->number[n->letter]);
	}
	if (n->type == N_NUMBER) {
		uint64_t words[8];
		memset(words, n->number < 0 ? 0xff : 0, sizeof(words));
		words[0] = (uint64_t)n->number;
		return ir_const_wide(b->f, w, words);
	}
	const struct ir_rec rec = sample_rec(b, s, n, w);
	return dec_put_rec(b, &rec);
}

static struct ir_rec sample_rec(struct dec_build *b, struct dec_rule_sample *s, const struct node *n, enum ir_width w)
{
	const char *sig = ir_op_info((enum ir_op)n->op)->signature;
	enum ir_width x = IR_W0;
	for (unsigned i = 0; i < n->kid_cnt && x == IR_W0; i++)
		x = sig[2 + i] == 'x' ? sample_width(b, s, &nodes[n->kids[i]]) : IR_W0;
	if (strchr(sig + 2, 'x') && x == IR_W0)
		x = choose(s);
	ir_ref refs[3] = {IR_REF_NONE, IR_REF_NONE, IR_REF_NONE};
	for (unsigned i = 0; i < n->kid_cnt; i++) {
		char letter = sig[2 + i];
		/* INSERT's second operand alone is of another width. */
		refs[i] = sample_term(b, s, &nodes[n->kids[i]], letter == 'w' ? w : letter == '1' ? IR_W1 : letter == 'x' ? x : IR_W8);
	}
	uint32_t aux = (uint32_t)n->number;
	if (n->aux_letter != 255) {
		s->numbers |= 1u << n->aux_letter;
		aux = (uint32_t)s->number[n->aux_letter];
	}
	return (struct ir_rec){.op = n->op, .kind = n->kind, .width = (uint8_t)(sig[0] == '1' ? IR_W1 : w), .a = refs[0], .b = refs[1],
			       .c = refs[2], .aux = n->op == IR_EXTRACT || n->op == IR_INSERT ? aux : 0};
}

bool dec_rule_root(struct dec_build *b, unsigned rule, struct dec_rule_sample *s, struct ir_rec *ret)
{
	if (!is_ready())
		return false;
	const struct node *n = &nodes[rules[rule].pattern];
	*ret = sample_rec(b, s, n, ir_op_info((enum ir_op)n->op)->signature[0] == '1' ? IR_W1 : choose(s));
	return s->choice_cnt <= 4 && !b->failed;
}
