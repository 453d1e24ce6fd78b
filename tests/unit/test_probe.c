/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes without a kernel: the assembler's instructions, what conditions compile to (run by a small machine here, against C), the layout of
 * records and their decoding, and the search in type information.
 */
#include "base/buf.h"
#include "live/trace/probe_int.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- places ---------------------------------------------------------------------------------------------------- */
static void test_insn_refused(void **state)
{
	static const struct {
		const char *bytes;
		uint8_t len;
		bool in_64, in_32;
	} rows[] = {
		{"\x55", 1, false, false}, {"\x55\x89\xe5", 3, false, false}, {"\xf3\x0f\x1e\xfa", 4, false, false},
		{"\xf0\x83\x00\x01", 4, true, true}, {"\x66\x2e\x0f\x1f\x84\0\0\0\0\0", 10, true, true}, {"\x3e\xff\xe0", 3, true, true},
		{"\x64\x48\x8b\x04\x25\0\0\0\0", 9, false, false}, {"\x9c\x58", 2, true, true}, {"\x0f\x05\xc3", 3, true, true},
		{"\x0f\x34\xc3", 3, true, true}, {"\xcd\x80\xc3", 3, true, true}, {"\xc5\xfa\x6f\x00", 4, true, true},
		{"\xc5\xf8\x77\xc3", 4, false, false}, {"\xc4\xe2\x7d\x16\xc1", 5, true, false}, {"\x62\xf1\x7c\x48\xef\xc0", 6, true, true},
		{"\xc5\x00\x6f", 3, true, false} /* of 32 bits lds */, {"\x48\x89\xe5", 3, false, false}, {"\x06\xc3", 2, true, false},
		{"\xf4\xc3", 2, true, true}, {"\xf0", 1, true, true}, {"\xc5", 1, false, false}, {"\xc4\xe2", 2, false, false}, {"", 0, false, false},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const uint8_t *code = (const uint8_t *)rows[i].bytes;
		if ((probe_insn_refused(code, rows[i].len, true) != NULL) != rows[i].in_64)
			fail_msg("row %zu in 64 bits", i);
		if ((probe_insn_refused(code, rows[i].len, false) != NULL) != rows[i].in_32)
			fail_msg("row %zu in 32 bits", i);
	}
}

/* --- a machine ------------------------------------------------------------------------------------------------- */

/* Runs instructions of the kind conditions are made of; r0 at the end. Anything else fails the test. */
static uint64_t run(const struct probe_asm *a)
{
	uint64_t r[11] = {0};
	uint8_t stack[512] = {0};
	uint32_t steps = 0;
	for (size_t pc = 0; pc < a->code.cnt && ++steps < 10000; pc++) {
		const struct bpf_insn *i = &a->code.data[pc];
		int64_t src = (i->code & BPF_X) ? (int64_t)r[i->src_reg] : i->imm, dst = (int64_t)r[i->dst_reg];
		bool jump = false;
		switch (i->code & 7) {
		case BPF_LD:
			assert_int_equal(i->code, BPF_LD | BPF_DW | BPF_IMM);
			r[i->dst_reg] = (uint32_t)i->imm | (uint64_t)(uint32_t)i[1].imm << 32;
			pc++;
			break;
		case BPF_LDX:
			assert_int_equal(i->src_reg, BPF_REG_10);
			memcpy(&r[i->dst_reg], stack + 512 + i->off, 8);
			break;
		case BPF_STX:
			assert_int_equal(i->dst_reg, BPF_REG_10);
			memcpy(stack + 512 + i->off, &r[i->src_reg], 8);
			break;
		case BPF_ALU64:
			switch (i->code & 0xf0) {
			case BPF_MOV: r[i->dst_reg] = (uint64_t)src; break;
			case BPF_ADD: r[i->dst_reg] += (uint64_t)src; break;
			case BPF_SUB: r[i->dst_reg] -= (uint64_t)src; break;
			case BPF_MUL: r[i->dst_reg] *= (uint64_t)src; break;
			case BPF_OR: r[i->dst_reg] |= (uint64_t)src; break;
			case BPF_AND: r[i->dst_reg] &= (uint64_t)src; break;
			case BPF_XOR: r[i->dst_reg] ^= (uint64_t)src; break;
			case BPF_LSH: r[i->dst_reg] <<= src; break;
			case BPF_RSH: r[i->dst_reg] >>= src; break;
			case BPF_ARSH: r[i->dst_reg] = (uint64_t)(dst >> src); break;
			case BPF_NEG: r[i->dst_reg] = 0 - r[i->dst_reg]; break;
			default: fail();
			}
			break;
		case BPF_JMP:
			switch (i->code & 0xf0) {
			case BPF_JA: jump = true; break;
			case BPF_JEQ: jump = dst == src; break;
			case BPF_JNE: jump = dst != src; break;
			case BPF_JLT: jump = (uint64_t)dst < (uint64_t)src; break;
			case BPF_JLE: jump = (uint64_t)dst <= (uint64_t)src; break;
			case BPF_JGT: jump = (uint64_t)dst > (uint64_t)src; break;
			case BPF_JGE: jump = (uint64_t)dst >= (uint64_t)src; break;
			case BPF_JSLT: jump = dst < src; break;
			case BPF_JSLE: jump = dst <= src; break;
			case BPF_JSGT: jump = dst > src; break;
			case BPF_JSGE: jump = dst >= src; break;
			case BPF_EXIT: return r[0];
			default: fail();
			}
			pc += jump ? (size_t)(int64_t)i->off : 0;
			break;
		default:
			fail();
		}
	}
	fail_msg("the program does not end");
	return 0;
}

/* --- conditions ------------------------------------------------------------------------------------------------ */
static const struct probe_arg args[] = {
	{.name = "path", .from = PROBE_REG, .at = 14, .size = 8, .fetch = PROBE_STRING, .len = 32},
	{.name = "count", .from = PROBE_REG, .at = 13, .size = 4, .is_signed = true},
	{.name = "flags", .from = PROBE_STACK, .at = 8, .size = 4},
	{.name = "ratio", .from = PROBE_NOWHERE, .size = 8},
};
static const struct probe_kind kind = {.args = args, .arg_cnt = 4, .ret = {.size = 8, .is_signed = true}, .is_func = true, .has_return = true};

struct world { uint64_t args[4]; int64_t ret; uint64_t ns, pid, reg; const char *text; };

static void load(void *ctx, struct probe_asm *a, const struct probe_node *n)
{
	const struct world *w = ctx;
	uint64_t v = n->op == PROBE_OP_ARG ? w->args[n->num] : n->op == PROBE_OP_RET ? (uint64_t)w->ret : n->op == PROBE_OP_NS ? w->ns
		   : n->op == PROBE_OP_REG ? w->reg : w->pid;
	/* What helpers clobber. */
	for (int r = BPF_REG_1; r <= BPF_REG_5; r++)
		probe_mov_imm(a, r, -1);
	probe_imm64(a, BPF_REG_0, 0, v);
}

static void text(void *ctx, struct probe_asm *a, const char *s, size_t len)
{
	const struct world *w = ctx;
	probe_mov_imm(a, BPF_REG_0, strlen(w->text) == len && !memcmp(w->text, s, len));
}

static bool holds(const char *cond, const struct world *w)
{
	struct probe_cond c;
	struct err *e = probe_cond_parse(&kind, cond, &c);
	if (e)
		fail_msg("%s: %s", cond, e->text);
	struct probe_asm a = {0};
	struct probe_values v = {.load = load, .text = text, .ctx = (void *)(uintptr_t)w, .spill = -8};
	uint32_t no = probe_asm_label(&a);
	probe_cond_put(&c, c.begin, c.begin_cnt, &v, &a, no);
	probe_cond_put(&c, c.end, c.end_cnt, &v, &a, no);
	probe_mov_imm(&a, BPF_REG_0, 1);
	probe_exit(&a);
	probe_asm_bind(&a, no);
	probe_mov_imm(&a, BPF_REG_0, 0);
	probe_exit(&a);
	assert_true(probe_asm_finish(&a));
	bool is = run(&a);
	probe_asm_fini(&a);
	return is;
}

static void test_conditions(void **state)
{
	const struct world w = {.args = {0xffff800000000000u, (uint64_t)-3, 0x80000001u, 0}, .ret = -2, .ns = 1500, .pid = 7, .reg = 0x55,
				.text = "/etc/passwd"};
	int64_t count = -3;
	uint64_t path = 0xffff800000000000u;
	int64_t flags = 0x80000001;
	const struct { const char *cond; bool is; } cases[] = {
		{"count == -3", count == -3}, {"a2 == -3", true}, {"count < 0", count < 0}, {"count > 0", false}, {"path > 10", path > 10},
		{"path < 0", false}, {"count < path", (uint64_t)count < path}, {"flags > 0", flags > 0}, {"flags == 0x80000001", true},
		{"(flags & 1) == 1", (flags & 1) == 1}, {"flags & 1 == 1", flags & (1 == 1)},
		{"flags >> 31 == 1", flags >> 31 == 1},
		{"count >> 1 == -2", count >> 1 == -2}, {"path >> 47 == 0x1ffff", path >> 47 == 0x1ffff}, {"1 << 4 == 16", true},
		{"count * count == 9", true}, {"count + 4 - 1 == 0", true}, {"10 - 4 - 3 == 3", true}, {"2 + 3 * 4 == 14", true},
		{"(2 + 3) * 4 == 20", true},
		{"~count == 2", ~count == 2}, {"-count == 3", true}, {"!count", false}, {"!!count", true}, {"!(count == 1)", true},
		{"count == -3 && pid == 7", true}, {"count == -3 && pid == 8", false}, {"count == 1 || pid == 7", true},
		{"count == 1 || pid == 8", false},
		{"count == 1 || pid == 7 && count == -3", true}, {"(count == 1 || pid == 7) && count == 5", false},
		{"(count == -3) + (pid == 7) == 2", true}, {"(count == 1 || pid == 7) * 5 == 5", true}, {"path == \"/etc/passwd\"", true},
		{"path != \"/etc/passwd\"", false}, {"path == \"/etc\"", false}, {"path == \"/etc\" || path == \"/etc/passwd\"", true},
		{"ret < 0", true}, {"ret == -2 && count == -3", true}, {"ret > 0 || count < 0", true}, {"ns >= 1500 && ns < 1501", true},
		{"ret == count + 1", true}, {"a1 ^ a1", false}, {"1", true}, {"0", false}, {"0xffffffffffffffff == -1", true}, {"'a' == 97", true},
		{"'\\n' == 10", true}, {"rdi == 0x55", true}, {"edi", true}, {"(((((((count)))))))", true},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		if (holds(cases[i].cond, &w) != cases[i].is)
			fail_msg("%s is not %d", cases[i].cond, cases[i].is);
	}
}

/* Expressions made at random, evaluated here as C does. */
static uint32_t seed = 1;
static uint32_t rnd(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

static int64_t make(struct buf *out, const struct world *w, unsigned depth)
{
	static const char *const ops[] = {"||", "&&", "==", "!=", "<", "<=", ">", ">=", "|", "^", "&", "+", "-", "*"};
	if (!depth || !rnd(4)) {
		int64_t n = (int64_t)rnd(9) - 4;
		if (rnd(2)) {
			buf_add_str(out, "count");
			return (int64_t)w->args[1];
		}
		buf_printf(out, "(%lld)", (long long)n);
		return n;
	}
	uint32_t op = rnd(ARRAY_LEN(ops));
	buf_add_str(out, "(");
	int64_t l = make(out, w, depth - 1);
	buf_printf(out, " %s ", ops[op]);
	int64_t r = make(out, w, depth - 1);
	buf_add_str(out, ")");
	switch (op) {
	case 0: return l || r;
	case 1: return l && r;
	case 2: return l == r;
	case 3: return l != r;
	case 4: return l < r;
	case 5: return l <= r;
	case 6: return l > r;
	case 7: return l >= r;
	case 8: return l | r;
	case 9: return l ^ r;
	case 10: return l & r;
	case 11: return (int64_t)((uint64_t)l + (uint64_t)r);
	case 12: return (int64_t)((uint64_t)l - (uint64_t)r);
	default: return (int64_t)((uint64_t)l * (uint64_t)r);
	}
}

static void test_random_conditions(void **state)
{
	for (unsigned i = 0; i < 3000; i++) {
		struct world w = {.args = {0, (uint64_t)((int64_t)rnd(9) - 4), 0, 0}, .text = ""};
		_cleanup_buf_ struct buf cond = {0};
		int64_t v = make(&cond, &w, 1 + rnd(4));
		buf_add_ch(&cond, 0);
		assert_false(cond.failed);
		if (holds(cond.data, &w) != (v != 0))
			fail_msg("%s with %lld is not %lld", cond.data, (long long)w.args[1], (long long)v);
	}
}

static void test_refused_conditions(void **state)
{
	static const struct { const char *cond, *why; } cases[] = {
		{"", "a value is missing"}, {"count ==", "a value is missing"}, {"(count", "not closed"}, {"count count", "an operator is missing"},
		{"a5", "no such argument"}, {"nobody", "is called so"}, {"ratio > 1", "vector register"}, {"path == \"x", "ends with"},
		{"\"x\" == path", "right of"}, {"path < \"x\"", "by == and !="}, {"99999999999999999999", "64 bits"}, {"12x", "64 bits"},
		{"path == \"0123456789012345678901234567890123456789012345678901234567890123\"", "62 bytes"}, {"'ab'", "a character ends"},
		{"'\\q'", "escape"}, {"ret + rdi", "join what asks"},
	};
	struct probe_cond c;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err *e = probe_cond_parse(&kind, cases[i].cond, &c);
		if (!e || e->kind != ERR_INVALID || !strstr(e->text, cases[i].why))
			fail_msg("%s: %s", cases[i].cond, e ? e->text : "taken");
		err_free(e);
	}
	struct probe_kind no_return = kind;
	no_return.has_return = false;
	struct err *e = probe_cond_parse(&no_return, "ret == 1", &c);
	assert_non_null(e);
	err_free(e);
	/* Nesting and length are bounded. */
	char deep[5000];
	memset(deep, '(', 1000);
	memcpy(deep + 1000, "1", 2);
	e = probe_cond_parse(&kind, deep, &c);
	assert_non_null(e);
	err_free(e);
	memset(deep, '!', 4000);
	memcpy(deep + 4000, "1", 2);
	e = probe_cond_parse(&kind, deep, &c);
	assert_non_null(e);
	err_free(e);
	for (int i = 0; i < 400; i++)
		memcpy(deep + (size_t)4 * i, "1 + ", 4);
	memcpy(deep + 1600, "1", 2);
	e = probe_cond_parse(&kind, deep, &c);
	assert_non_null(e);
	err_free(e);
}

/* What can be decided at the beginning is. */
static void test_parts(void **state)
{
	struct probe_cond c;
	assert_null(probe_cond_parse(&kind, "count > 0 && ret < 0 && path == \"x\"", &c));
	assert_int_equal(c.begin_cnt, 2);
	assert_int_equal(c.end_cnt, 1);
	assert_false(c.end_uses_args || c.uses_stack);
	assert_null(probe_cond_parse(&kind, "(count > 0 || ret < 0) && flags", &c));
	assert_true(c.begin_cnt == 1 && c.end_cnt == 1 && c.end_uses_args && c.uses_stack);
	assert_true(probe_keeps(&kind, &c, true));
	assert_null(probe_cond_parse(&kind, "ret < 0", &c));
	assert_true(!probe_keeps(&kind, &c, true) && probe_keeps(&kind, &c, false));
}

/* --- the assembler ---------------------------------------------------------------------------------------------- */
static void test_asm(void **state)
{
	struct probe_asm a = {0};
	uint32_t end = probe_asm_label(&a), back = probe_asm_label(&a);
	probe_asm_bind(&a, back);
	probe_mov_imm(&a, BPF_REG_0, -5);
	probe_jump_if_imm(&a, BPF_JSGT, BPF_REG_0, 3, end);
	probe_imm64(&a, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0x1122334455667788u);
	probe_load(&a, BPF_W, BPF_REG_2, BPF_REG_1, -4);
	probe_store(&a, BPF_H, BPF_REG_10, -16, BPF_REG_2);
	probe_atomic(&a, BPF_ADD, BPF_REG_1, 24, BPF_REG_2);
	probe_kfunc(&a, 1234);
	probe_jump(&a, back);
	probe_asm_bind(&a, end);
	probe_exit(&a);
	assert_true(probe_asm_finish(&a));
	/* By the description of the instruction set. */
	static const uint8_t want[] = {
		0xb7, 0x00, 0x00, 0x00, 0xfb, 0xff, 0xff, 0xff, /* r0 = -5 */
		0x65, 0x00, 0x07, 0x00, 0x03, 0x00, 0x00, 0x00, /* if r0 s> 3 goto +7 */
		0x18, 0x11, 0x00, 0x00, 0x88, 0x77, 0x66, 0x55, 0x00, 0x00, 0x00, 0x00, 0x44, 0x33, 0x22, 0x11,
		0x61, 0x12, 0xfc, 0xff, 0x00, 0x00, 0x00, 0x00, /* w2 = *(u32 *)(r1 - 4) */
		0x6b, 0x2a, 0xf0, 0xff, 0x00, 0x00, 0x00, 0x00, /* *(u16 *)(r10 - 16) = w2 */
		0xdb, 0x21, 0x18, 0x00, 0x00, 0x00, 0x00, 0x00, /* lock *(u64 *)(r1 + 24) += r2 */
		0x85, 0x20, 0x00, 0x00, 0xd2, 0x04, 0x00, 0x00, /* call kfunc 1234 */
		0x05, 0x00, 0xf7, 0xff, 0x00, 0x00, 0x00, 0x00, /* goto -9 */
		0x95, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* exit */
	};
	assert_int_equal(a.code.cnt * sizeof(struct bpf_insn), sizeof(want));
	assert_memory_equal(a.code.data, want, sizeof(want));
	probe_asm_fini(&a);
	/* A jump nobody can make, and a label nobody placed. */
	struct probe_asm far = {0};
	uint32_t there = probe_asm_label(&far);
	probe_jump(&far, there);
	for (int i = 0; i < 40000; i++)
		probe_mov_imm(&far, BPF_REG_0, 0);
	probe_asm_bind(&far, there);
	assert_false(probe_asm_finish(&far));
	probe_asm_fini(&far);
	struct probe_asm none = {0};
	probe_jump(&none, probe_asm_label(&none));
	assert_false(probe_asm_finish(&none));
	probe_asm_fini(&none);
}

/* --- records ----------------------------------------------------------------------------------------------------- */
static void test_records(void **state)
{
	struct probe_layout l;
	struct probe_point point = {.off = 0x1000};
	struct probe_opts o = {.points = &point, .kinds = &kind, .point_cnt = 1, .kind_cnt = 1};
	struct probe_hit h;
	assert_null(probe_layout(&kind, &l));
	assert_int_equal(l.stack_len, 16);
	assert_int_equal(l.entry_len, sizeof(struct probe_rec) + 4 * 8 + 8 + 40);
	assert_int_equal(l.call_len, l.entry_len + 16);
	uint8_t *rec = calloc(1, l.call_len);
	struct probe_rec head = {.time = 5, .begin = 4, .pid_tid = (uint64_t)77 << 32 | 78, .ip = 0x400000, .caller = 0x400100, .cpu = 3,
				 .phase = PROBE_CALL, .flags = PROBE_REC_CALLER};
	const uint64_t values[] = {0x7000, (uint64_t)-3, 9, 0};
	int32_t n = 6;
	uint64_t tail[2] = {(uint64_t)-2, 1234};
	memcpy(rec, &head, sizeof(head));
	memcpy(rec + sizeof(head), values, sizeof(values));
	memcpy(rec + l.slot[0], &n, sizeof(n));
	memcpy(rec + l.slot[0] + 8, "hello", 6);
	memcpy(rec + l.entry_len, tail, sizeof(tail));
	assert_true(probe_decode(&o, rec, l.call_len, &h));
	assert_true(h.pid == 77 && h.tid == 78 && h.cpu == 3 && h.has_caller && h.caller == 0x400100 && h.ret == (uint64_t)-2 && h.ns == 1234);
	assert_true(h.slots[0].status == TRACE_OK && h.slots[0].len == 5 && !memcmp(h.slots[0].data, "hello", 5));
	assert_memory_equal(h.values, values, sizeof(values));
	assert_int_equal(h.slots[1].status, TRACE_ABSENT);
	/* Cut, and of no kind. */
	for (size_t len = 0; len < l.call_len; len++)
		assert_false(probe_decode(&o, rec, len, &h));
	struct { int32_t n; uint8_t status; uint32_t len; } reads[] = {
		{34, TRACE_TRUNCATED, 32}, {33, TRACE_OK, 32}, {1, TRACE_OK, 0}, {0, TRACE_ABSENT, 0}, {-14, TRACE_FAULTED, 0},
		{35, TRACE_FAULTED, 0},		{INT32_MIN, TRACE_FAULTED, 0}, {INT32_MAX, TRACE_FAULTED, 0}};
	for (size_t i = 0; i < ARRAY_LEN(reads); i++) {
		memcpy(rec + l.slot[0], &reads[i].n, sizeof(n));
		assert_true(probe_decode(&o, rec, l.call_len, &h));
		assert_int_equal(h.slots[0].status, reads[i].status);
		assert_int_equal(h.slots[0].len, reads[i].len);
	}
	head.point = 1;
	memcpy(rec, &head, sizeof(head));
	assert_false(probe_decode(&o, rec, l.call_len, &h));
	head.point = 0;
	head.phase = PROBE_PHASE_COUNT;
	memcpy(rec, &head, sizeof(head));
	assert_false(probe_decode(&o, rec, l.call_len, &h));
	free(rec);
}

static void test_large_kinds(void **state)
{
	struct probe_arg many[PROBE_ARG_MAX + 1];
	struct probe_layout l;
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		many[i] = (struct probe_arg){.from = PROBE_REG, .size = 8, .fetch = PROBE_BYTES, .len = PROBE_FETCH_MAX};
	struct probe_kind k = {.args = many, .arg_cnt = PROBE_ARG_MAX + 1, .ret = {.size = 8}};
	struct err *e = probe_layout(&k, &l);
	assert_non_null(e);
	err_free(e);
	k.arg_cnt = 8;
	e = probe_layout(&k, &l);
	assert_non_null(e);
	err_free(e);
	many[0] = (struct probe_arg){.from = PROBE_STACK, .at = PROBE_STACK_MAX, .size = 8};
	k.arg_cnt = 1;
	e = probe_layout(&k, &l);
	assert_non_null(e);
	err_free(e);
}

/* Every kind of plan gives a program that fits. */
static void test_programs(void **state)
{
	struct probe_layout l;
	struct probe_cond c;
	assert_null(probe_layout(&kind, &l));
	assert_null(probe_cond_parse(&kind, "(count > 0 || ret < 0) && flags && path == \"x\"", &c));
	for (unsigned i = 0; i < 512; i++) {
		struct probe_body b[PROBE_BODY_MAX];
		uint32_t cnt = i & 64 ? PROBE_BODY_MAX : 1;
		for (uint32_t n = 0; n < cnt; n++)
			b[n] = (struct probe_body){.kind = &kind, .layout = &l, .cond = i & 1 ? &c : NULL, .pending_fd = i & 1 || !(i & 2) ? 6 : -1,
						   .zero_fd = 7};
		struct probe_plan p = {.begins = b, .ends = b, .begin_cnt = cnt, .end_cnt = cnt, .is_session = i & 2,
				       .is_return = !(i & 2) && i & 4, .is_sleepable = i & 8, .count_only = i & 16, .pid = i & 32 ? 5 : 0,
				       .pid_ns_dev = 4, .pid_ns_ino = 5, .ring_fd = 3, .counts_fd = 4, .point_cnt = 10, .stripe_cnt = 2,
				       .is_return_id = 1, .cookie_id = 2, .copy_text_id = i & 128 ? 3 : 0, .who_fd = i & 256 ? 8 : -1};
		struct probe_asm a = {0};
		probe_program(&p, &a);
		assert_false(a.failed);
		assert_true(a.code.cnt > 10 && a.code.cnt < 600 * cnt);
		assert_int_equal(a.code.data[a.code.cnt - 1].code, BPF_JMP | BPF_EXIT);
		probe_asm_fini(&a);
	}
}

static void test_registers(void **state)
{
	uint16_t reg;
	uint8_t size;
	assert_true(probe_reg_find("rdi", 3, &reg, &size) && reg == 14 && size == 8);
	assert_true(probe_reg_find("edi", 3, &reg, &size) && reg == 14 && size == 4);
	assert_true(probe_reg_find("al", 2, &reg, &size) && reg == 10 && size == 1);
	assert_true(probe_reg_find("r15w", 4, &reg, &size) && reg == 0 && size == 2);
	assert_false(probe_reg_find("xmm0", 4, &reg, &size) || probe_reg_find("", 0, &reg, &size) || probe_reg_find("rd", 2, &reg, &size));
	assert_string_equal(probe_reg_name(14), "rdi");
}

static uint32_t btf_func(const uint8_t *b, size_t len, const char *name)
{
	const char *names[] = {"nothing", name};
	uint32_t ids[2] = {7, 7};
	probe_btf_funcs(b, len, names, 2, ids);
	assert_int_equal(ids[0], 0);
	return ids[1];
}

/* Type information: void (0), "int", a function type, functions "x_one" and "one". */
static void test_btf(void **state)
{
	static const char strings[] = "\0int\0x_one\0one";
	uint32_t types[] = {
		1, 1u << 24, 4, 32,             /* 1: INT int */
		0, 13u << 24 | 1, 1, 0, 1,      /* 2: FUNC_PROTO of one parameter */
		5, 12u << 24, 2,                /* 3: FUNC x_one */
		11, 12u << 24, 2,               /* 4: FUNC one */
	};
	uint8_t b[24 + sizeof(types) + sizeof(strings)];
	uint32_t head[] = {0x0001eb9f, 24, 0, sizeof(types), sizeof(types), sizeof(strings)};
	memcpy(b, head, 24);
	memcpy(b + 24, types, sizeof(types));
	memcpy(b + 24 + sizeof(types), strings, sizeof(strings));
	assert_int_equal(btf_func(b, sizeof(b), "one"), 4);
	assert_int_equal(btf_func(b, sizeof(b), "x_one"), 3);
	assert_int_equal(btf_func(b, sizeof(b), "int"), 0);
	assert_int_equal(btf_func(b, sizeof(b), "two"), 0);
	const char *both[] = {"one", "x_one"};
	uint32_t ids[2];
	probe_btf_funcs(b, sizeof(b), both, 2, ids);
	assert_true(ids[0] == 4 && ids[1] == 3);
	for (size_t len = 0; len < sizeof(b); len++)
		assert_int_equal(btf_func(b, len, "one"), 0);
	for (size_t i = 0; i < sizeof(b); i++) {
		b[i] ^= 0xff;
		uint32_t id = btf_func(b, sizeof(b), "one");
		assert_true(id <= 5);
		b[i] ^= 0xff;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_insn_refused),
		cmocka_unit_test(test_asm), cmocka_unit_test(test_conditions), cmocka_unit_test(test_random_conditions),
		cmocka_unit_test(test_refused_conditions), cmocka_unit_test(test_parts), cmocka_unit_test(test_records),
		cmocka_unit_test(test_large_kinds), cmocka_unit_test(test_programs), cmocka_unit_test(test_registers), cmocka_unit_test(test_btf),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
