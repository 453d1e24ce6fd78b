/* SPDX-License-Identifier: Apache-2.0 */
#include "arch/arch.h"
#include "base/cleanup.h"
#include "lib/arch_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define VA 0x401000

/* The words and their texts are what GNU as made of the texts and GNU objdump of the words. */
static const struct {
	const char *hex;
	uint8_t flow;
	uint8_t flags;
	uint64_t target;
	uint64_t ref_va;
	uint8_t ref_bytes;
	const char *text;
	const char *effect;
} cases[] = {
	{"a9 0a 01 53", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "ubfx w9, w21, #1, #2", "shr dst=x9 src1=x21 imm=0x1 cmp_imm=0x3 width=4 writes=0x200"},
	{"1f 20 03 d5", ARCH_FLOW_NEXT, ARCH_INSN_NOP, 0, 0, 0,
	 "nop", "other writes=0"},
	{"5f 24 03 d5", ARCH_FLOW_NEXT, ARCH_INSN_LANDING, 0, 0, 0,
	 "bti c", "other writes=0"},
	{"3f 23 03 d5", ARCH_FLOW_NEXT, ARCH_INSN_LANDING, 0, 0, 0,
	 "paciasp", "other writes=0x40000000"},
	{"9f 24 03 d5", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "bti j", "other writes=0"},
	{"04 00 00 14", ARCH_FLOW_JUMP, 0, 0x401010, 0, 0,
	 "b 0x401010", "other writes=0"},
	{"04 00 00 94", ARCH_FLOW_CALL, 0, 0x401010, 0, 0,
	 "bl 0x401010", "other writes=0"},
	{"80 00 00 54", ARCH_FLOW_CJUMP, 0, 0x401010, 0, 0,
	 "b.eq 0x401010", "other cond=1 writes=0"},
	{"8e 00 00 54", ARCH_FLOW_JUMP, 0, 0x401010, 0, 0,
	 "b.al 0x401010", "other writes=0"},
	{"80 00 00 34", ARCH_FLOW_CJUMP, 0, 0x401010, 0, 0,
	 "cbz w0, 0x401010", "cmp src1=x0 width=4 cond=1 writes=0"},
	{"83 00 00 b5", ARCH_FLOW_CJUMP, 0, 0x401010, 0, 0,
	 "cbnz x3, 0x401010", "cmp src1=x3 width=8 cond=2 writes=0"},
	{"80 00 18 36", ARCH_FLOW_CJUMP, 0, 0x401010, 0, 0,
	 "tbz w0, #3, 0x401010", "other cond=11 writes=0"},
	{"00 02 1f d6", ARCH_FLOW_IJUMP, 0, 0, 0, 0,
	 "br x16", "move src1=x16 width=8 writes=0"},
	{"00 01 3f d6", ARCH_FLOW_ICALL, 0, 0, 0, 0,
	 "blr x8", "move src1=x8 width=8 writes=0"},
	{"c0 03 5f d6", ARCH_FLOW_RET, 0, 0, 0, 0,
	 "ret", "other writes=0"},
	{"20 00 20 d4", ARCH_FLOW_STOP, 0, 0, 0, 0,
	 "brk #0x1", "other writes=0"},
	{"20 00 40 d4", ARCH_FLOW_STOP, 0, 0, 0, 0,
	 "hlt #0x1", "other writes=0"},
	{"01 00 00 d4", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "svc #0x0", "other writes=0"},
	{"02 00 00 d4", ARCH_FLOW_NEXT, ARCH_INSN_PRIVILEGED, 0, 0, 0,
	 "hvc #0x0", "other writes=0"},
	{"80 00 00 10", ARCH_FLOW_NEXT, 0, 0, 0x401010, 0,
	 "adr x0, 0x401010", "const dst=x0 imm=0x401010 width=8 writes=0x1"},
	{"00 00 00 90", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "adrp x0, 0x401000", "const dst=x0 imm=0x401000 width=8 writes=0x1"},
	{"80 00 00 18", ARCH_FLOW_NEXT, 0, 0, 0x401010, 4,
	 "ldr w0, 0x401010", "load dst=x0 imm=0x401010 width=4 writes=0x1"},
	{"80 00 00 58", ARCH_FLOW_NEXT, 0, 0, 0x401010, 8,
	 "ldr x0, 0x401010", "load dst=x0 imm=0x401010 width=8 writes=0x1"},
	{"80 00 00 98", ARCH_FLOW_NEXT, 0, 0, 0x401010, 4,
	 "ldrsw x0, 0x401010", "load dst=x0 imm=0x401010 width=4s ext=8 writes=0x1"},
	{"80 00 00 9c", ARCH_FLOW_NEXT, 0, 0, 0x401010, 16,
	 "ldr q0, 0x401010", "other writes=0"},
	{"fd 7b be a9", ARCH_FLOW_NEXT, ARCH_INSN_FRAME, 0, 0, 0,
	 "stp x29, x30, [sp, #-32]!", "store base=sp imm=0xffffffffffffffe0 width=16 sp=-32 writes=0x80000000"},
	{"ff 03 01 d1", ARCH_FLOW_NEXT, ARCH_INSN_FRAME, 0, 0, 0,
	 "sub sp, sp, #0x40", "sub dst=sp src1=sp imm=0x40 width=8 sp=-64 writes=0x80000000"},
	{"ff 03 01 91", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "add sp, sp, #0x40", "add dst=sp src1=sp imm=0x40 width=8 sp=64 writes=0x80000000"},
	{"fd 03 00 91", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "mov x29, sp", "move dst=x29 src1=sp width=8 writes=0x20000000"},
	{"bf 03 00 91", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "mov sp, x29", "move dst=sp src1=x29 width=8 sp=? writes=0x80000000"},
	{"fd 7b c2 a8", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "ldp x29, x30, [sp], #32", "other base=sp sp=32 writes=0xe0000000"},
	{"f3 0f 1f f8", ARCH_FLOW_NEXT, ARCH_INSN_FRAME, 0, 0, 0,
	 "str x19, [sp, #-16]!", "store src1=x19 base=sp imm=0xfffffffffffffff0 width=8 sp=-16 writes=0x80000000"},
	{"e0 03 01 aa", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "mov x0, x1", "move dst=x0 src1=x1 width=8 writes=0x1"},
	{"a0 00 80 52", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "mov w0, #0x5", "const dst=x0 imm=0x5 width=4 writes=0x1"},
	{"00 00 80 92", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "mov x0, #0xffffffffffffffff", "const dst=x0 imm=0xffffffffffffffff width=8 writes=0x1"},
	{"80 46 a2 f2", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "movk x0, #0x1234, lsl #16", "insert dst=x0 src1=x0 imm=0x12340000 cmp_imm=0xffffffff0000ffff width=8 writes=0x1"},
	{"e0 03 1f aa", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "mov x0, xzr", "const dst=x0 width=8 writes=0x1"},
	{"20 40 00 91", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "add x0, x1, #0x10", "add dst=x0 src1=x1 imm=0x10 width=8 writes=0x1"},
	{"20 00 02 8b", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "add x0, x1, x2", "add dst=x0 src1=x1 src2=x2 width=8 writes=0x1"},
	{"20 08 02 8b", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "add x0, x1, x2, lsl #2", "add dst=x0 src1=x1 src2=x2 scale=4 width=8 ext=8 writes=0x1"},
	{"20 c8 22 8b", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "add x0, x1, w2, sxtw #2", "add dst=x0 src1=x1 src2=x2 scale=4 width=8s ext=4 writes=0x1"},
	{"20 08 22 8b", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "add x0, x1, w2, uxtb #2", "add dst=x0 src1=x1 src2=x2 scale=4 width=8 ext=1 writes=0x1"},
	{"20 04 01 51", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "sub w0, w1, #0x41", "sub dst=x0 src1=x1 imm=0x41 width=4 writes=0x1"},
	{"1f 14 00 71", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "cmp w0, #0x5", "cmp src1=x0 imm=0x5 width=4 writes=0"},
	{"1f 00 01 eb", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "cmp x0, x1", "cmp src1=x0 src2=x1 width=8 writes=0"},
	{"1f 08 00 72", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "tst w0, #0x7", "test src1=x0 imm=0x7 width=4 writes=0"},
	{"20 08 00 12", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "and w0, w1, #0x7", "and dst=x0 src1=x1 imm=0x7 width=4 writes=0x1"},
	{"20 f0 7d d3", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "lsl x0, x1, #3", "shl dst=x0 src1=x1 imm=0x3 width=8 writes=0x1"},
	{"20 7c 03 53", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "lsr w0, w1, #3", "shr dst=x0 src1=x1 imm=0x3 width=4 writes=0x1"},
	{"20 1c 00 53", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "uxtb w0, w1", "move dst=x0 src1=x1 width=1 writes=0x1"},
	{"20 7c 40 93", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "sxtw x0, w1", "move dst=x0 src1=x1 width=4s ext=8 writes=0x1"},
	{"20 08 40 b9", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "ldr w0, [x1, #8]", "load dst=x0 base=x1 imm=0x8 width=4 writes=0x1"},
	{"20 68 62 38", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "ldrb w0, [x1, x2]", "load dst=x0 base=x1 index=x2 width=1 writes=0x1"},
	{"20 58 62 78", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "ldrh w0, [x1, w2, uxtw #1]", "load dst=x0 base=x1 index=x2 scale=2 index_width=4 width=2 writes=0x1"},
	{"20 78 a2 b8", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "ldrsw x0, [x1, x2, lsl #2]", "load dst=x0 base=x1 index=x2 scale=4 width=4s ext=8 writes=0x1"},
	{"20 c8 e2 38", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "ldrsb w0, [x1, w2, sxtw]", "load dst=x0 base=x1 index=x2 index_width=4s width=1s ext=4 writes=0x1"},
	{"20 04 00 f9", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "str x0, [x1, #8]", "store src1=x0 base=x1 imm=0x8 width=8 writes=0"},
	{"3f 00 00 39", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "strb wzr, [x1]", "store base=x1 width=1 writes=0"},
	{"40 04 40 a9", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "ldp x0, x1, [x2]", "other base=x2 writes=0x3"},
	{"20 84 40 f8", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "ldr x0, [x1], #8", "load dst=x0 base=x1 width=8 writes=0x3"},
	{"41 7c 00 c8", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "stxr w0, x1, [x2]", "store base=x2 width=8 writes=0x1"},
	{"41 00 20 f8", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 ".inst 0xf8200041", "store base=x2 width=8 writes=0x2"},
	{"40 d0 3b d5", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "mrs x0, tpidr_el0", "other writes=0x1"},
	{"00 10 38 d5", ARCH_FLOW_NEXT, ARCH_INSN_PRIVILEGED, 0, 0, 0,
	 "mrs x0, sctlr_el1", "other writes=0x1"},
	{"00 00 66 9e", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "fmov x0, d0", "other writes=0x1"},
	{"e0 17 9f 1a", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "cset w0, eq", "other writes=0x1"},
	{"20 7c 02 9b", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "mul x0, x1, x2", "other writes=0x1"},
	{"00 00 00 00", ARCH_FLOW_STOP, ARCH_INSN_PAD_TRAP, 0, 0, 0,
	 "udf #0", "other writes=0"},
	{"00 18 41 fa", ARCH_FLOW_NEXT, 0, 0, 0, 0,
	 "ccmp x0, #0x1, #0x0, ne", "other writes=0"},
};

static void test_cases(void **state)
{
	const struct arch *a = arch_test_get(ARCH_ID_A64);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t len;
		_cleanup_free_ uint8_t *bytes = arch_test_hex(cases[i].hex, &len);
		struct arch_insn in;
		struct arch_text text;
		char effect[300];
		a->decode(a, bytes, len, VA, &in);
		assert_int_equal(a->format(a, bytes, len, VA, NULL, &text), 4);
		assert_string_equal(text.text, cases[i].text);
		assert_int_equal(in.len, 4);
		if (in.flow != cases[i].flow || in.flags != cases[i].flags || in.target != cases[i].target)
			fail_msg("%s: flow %d flags %#x target %#lx", cases[i].text, in.flow, in.flags,
				 (unsigned long)in.target);
		assert_int_equal(in.ref_cnt, cases[i].ref_va != 0);
		if (in.ref_cnt) {
			assert_int_equal(in.refs[0].va, cases[i].ref_va);
			assert_int_equal(in.refs[0].access_bytes, cases[i].ref_bytes);
		}
		arch_test_effect(a, cases[i].hex, VA, effect, sizeof(effect));
		if (strcmp(effect, cases[i].effect) != 0)
			fail_msg("%s:\n got  %s\n want %s", cases[i].text, effect, cases[i].effect);
	}
}

static void test_bad(void **state)
{
	static const char *const bad[] = {
		"00 00 00 02", "00 00 00 06", "00 00 01 00", "ff ff ff d7",
		"00 fc 00 12", /* and of a reserved mask */
		"00 00 c0 0b", /* add with shift 3 */
		"00 00 40 33", /* bfm of 32 bits with n */
		"05 08 40 1a", /* ccmp without the flag bit */
	};
	const struct arch *a = arch_test_get(ARCH_ID_A64);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		size_t len;
		_cleanup_free_ uint8_t *bytes = arch_test_hex(bad[i], &len);
		struct arch_insn in;
		struct arch_text text;
		a->decode(a, bytes, len, VA, &in);
		assert_int_equal(in.flow, ARCH_FLOW_INVALID);
		assert_int_equal(a->format(a, bytes, len, VA, NULL, &text), 4);
		assert_string_equal(text.text, "(bad)");
		a->decode(a, bytes, 3, VA, &in);
		assert_int_equal(in.flow, ARCH_FLOW_INVALID);
		assert_int_equal(in.len, 3);
	}
}

static size_t name_of(void *ctx, uint64_t va, char *out, size_t cap)
{
	const char *s = (const char *)ctx;
	if (va != 0x401010)
		return 0;
	memcpy(out, s, strlen(s));
	return strlen(s);
}

static void test_names(void **state)
{
	const struct arch *a = arch_test_get(ARCH_ID_A64);
	static const uint8_t tbz[4] = {0x80, 0x00, 0x18, 0x36};
	char name[] = "target";
	struct arch_text text;
	const struct arch_names names = {name_of, name};
	a->format(a, tbz, 4, VA, &names, &text);
	assert_string_equal(text.text, "tbz w0, #3, target");
	const struct arch_span *last = &text.spans[text.span_cnt - 1];
	assert_int_equal(last->kind, ARCH_TOK_NAME);
	assert_int_equal(last->operand, 2);
	assert_memory_equal(text.text + last->off, name, last->len);
	assert_string_equal(a->reg_name(a, 31), "sp");
	assert_int_equal(arch_id_of_name("aarch64"), ARCH_ID_A64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
