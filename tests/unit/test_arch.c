/* SPDX-License-Identifier: Apache-2.0 */
#include "arch/arch.h"
#include "base/cleanup.h"
#include "lib/arch_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define VA 0x401000

struct decode_case {
	enum arch_id id;
	const char *hex;
	uint8_t len;
	uint8_t flow;
	uint8_t flags;
	uint64_t target;
	uint8_t ref_cnt;
	struct arch_ref refs[2];
};

#define X64 ARCH_ID_X86_64
#define X32 ARCH_ID_I386
#define R(v, w) {.va = (v), .kind = ARCH_REF_READ, .access_bytes = (w)}
#define W(v, w) {.va = (v), .kind = ARCH_REF_WRITE, .access_bytes = (w)}
#define RG(v, w) {.va = (v), .kind = ARCH_REF_READ, .access_bytes = (w), .is_guess = true}
#define O(v) {.va = (v), .kind = ARCH_REF_OFFSET}
#define G(v) {.va = (v), .kind = ARCH_REF_OFFSET, .is_guess = true}

static const struct decode_case decode_cases[] = {
	{X64, "f3 0f 1e fa", 4, ARCH_FLOW_NEXT, ARCH_INSN_LANDING},
	{X32, "f3 0f 1e fb", 4, ARCH_FLOW_NEXT, ARCH_INSN_LANDING},
	{X64, "90", 1, ARCH_FLOW_NEXT, ARCH_INSN_NOP},
	{X64, "66 90", 2, ARCH_FLOW_NEXT, ARCH_INSN_NOP},
	{X64, "0f 1f 84 00 00 10 00 00", 8, ARCH_FLOW_NEXT, ARCH_INSN_NOP},
	{X64, "66 66 2e 0f 1f 84 00 00 00 00 00", 11, ARCH_FLOW_NEXT, ARCH_INSN_NOP},
	{X32, "8d b4 26 00 00 00 00", 7, ARCH_FLOW_NEXT, ARCH_INSN_NOP},
	{X32, "8d 76 00", 3, ARCH_FLOW_NEXT, ARCH_INSN_NOP},
	{X32, "89 f6", 2, ARCH_FLOW_NEXT, ARCH_INSN_NOP},
	{X64, "89 f6", 2, ARCH_FLOW_NEXT, 0},
	{X64, "cc", 1, ARCH_FLOW_NEXT, ARCH_INSN_PAD_TRAP},
	{X64, "cc cc", 1, ARCH_FLOW_STOP, ARCH_INSN_PAD_TRAP},
	{X64, "0f 0b", 2, ARCH_FLOW_STOP, 0},
	{X64, "f4", 1, ARCH_FLOW_STOP, ARCH_INSN_PRIVILEGED},
	{X64, "ec", 1, ARCH_FLOW_NEXT, ARCH_INSN_PRIVILEGED},
	{X64, "c3", 1, ARCH_FLOW_RET, 0},
	{X64, "f3 c3", 2, ARCH_FLOW_RET, 0},
	{X64, "c2 08 00", 3, ARCH_FLOW_RET, 0},
	{X64, "48 cf", 2, ARCH_FLOW_RET, 0},
	{X64, "55", 1, ARCH_FLOW_NEXT, ARCH_INSN_FRAME},
	{X64, "41 57", 2, ARCH_FLOW_NEXT, ARCH_INSN_FRAME},
	{X64, "50", 1, ARCH_FLOW_NEXT, 0},
	{X64, "48 83 ec 18", 4, ARCH_FLOW_NEXT, ARCH_INSN_FRAME},
	{X64, "e8 10 00 00 00", 5, ARCH_FLOW_CALL, 0, 0x401015},
	{X64, "e8 00 00 00 00", 5, ARCH_FLOW_NEXT, 0, 0x401005},
	{X64, "66 48 e8 10 00 00 00", 7, ARCH_FLOW_CALL, 0, 0x401017},
	{X64, "eb fe", 2, ARCH_FLOW_JUMP, 0, VA},
	{X64, "e9 fb ff ff ff", 5, ARCH_FLOW_JUMP, 0, VA},
	{X32, "e9 f0 ef bf ff", 5, ARCH_FLOW_JUMP, 0, 0xfffffff5},
	{X32, "66 e9 10 00", 4, ARCH_FLOW_JUMP, 0, 0x1014},
	{X64, "74 10", 2, ARCH_FLOW_CJUMP, 0, 0x401012},
	{X64, "0f 85 00 01 00 00", 6, ARCH_FLOW_CJUMP, 0, 0x401106},
	{X64, "e3 05", 2, ARCH_FLOW_CJUMP, 0, 0x401007},
	{X64, "e2 fe", 2, ARCH_FLOW_CJUMP, 0, VA},
	{X64, "c7 f8 10 00 00 00", 6, ARCH_FLOW_CJUMP, 0, 0x401016},
	{X64, "ff e0", 2, ARCH_FLOW_IJUMP, 0},
	{X64, "3e ff e0", 3, ARCH_FLOW_IJUMP, ARCH_INSN_NOTRACK},
	{X64, "ff 25 10 00 00 00", 6, ARCH_FLOW_IJUMP, 0, 0, 1, {R(0x401016, 8)}},
	{X64, "f2 ff 25 10 00 00 00", 7, ARCH_FLOW_IJUMP, 0, 0, 1, {R(0x401017, 8)}},
	{X64, "ff 15 10 00 00 00", 6, ARCH_FLOW_ICALL, 0, 0, 1, {R(0x401016, 8)}},
	{X32, "ff 25 00 c0 04 08", 6, ARCH_FLOW_IJUMP, 0, 0, 1, {R(0x804c000, 4)}},
	{X64, "ff 24 c5 00 20 40 00", 7, ARCH_FLOW_IJUMP, 0, 0, 1, {RG(0x402000, 8)}},
	{X64, "0f 05", 2, ARCH_FLOW_NEXT, 0},
	{X32, "cd 80", 2, ARCH_FLOW_NEXT, 0},
	{X32, "9a 00 00 00 00 08 00", 7, ARCH_FLOW_ICALL, 0},
	{X64, "f3 48 ab", 3, ARCH_FLOW_NEXT, ARCH_INSN_REP},
	{X64, "48 8d 3d 10 00 00 00", 7, ARCH_FLOW_NEXT, 0, 0, 1, {O(0x401017)}},
	{X64, "8b 05 10 00 00 00", 6, ARCH_FLOW_NEXT, 0, 0, 1, {R(0x401016, 4)}},
	{X64, "66 89 05 10 00 00 00", 7, ARCH_FLOW_NEXT, 0, 0, 1, {W(0x401017, 2)}},
	{X64, "83 05 10 00 00 00 01", 7, ARCH_FLOW_NEXT, 0, 0, 1, {W(0x401017, 4)}},
	{X64, "83 3d 10 00 00 00 01", 7, ARCH_FLOW_NEXT, 0, 0, 1, {R(0x401017, 4)}},
	{X64, "c7 05 10 00 00 00 00 20 40 00", 10, ARCH_FLOW_NEXT, 0, 0, 2, {W(0x40101a, 4), G(0x402000)}},
	{X64, "0f 29 05 10 00 00 00", 7, ARCH_FLOW_NEXT, 0, 0, 1, {W(0x401017, 16)}},
	{X64, "f2 0f 10 05 10 00 00 00", 8, ARCH_FLOW_NEXT, 0, 0, 1, {R(0x401018, 8)}},
	{X64, "bf 00 20 40 00", 5, ARCH_FLOW_NEXT, 0, 0, 1, {G(0x402000)}},
	{X64, "bf 10 00 00 00", 5, ARCH_FLOW_NEXT, 0},
	{X64, "bf ff ff ff ff", 5, ARCH_FLOW_NEXT, 0},
	{X64, "48 3d 01 f0 ff ff", 6, ARCH_FLOW_NEXT, 0},
	{X64, "48 b8 00 20 40 00 00 00 00 00", 10, ARCH_FLOW_NEXT, 0, 0, 1, {G(0x402000)}},
	{X64, "48 c7 c0 00 20 40 80", 7, ARCH_FLOW_NEXT, 0, 0, 1, {G(0xffffffff80402000)}},
	{X64, "68 00 20 40 00", 5, ARCH_FLOW_NEXT, 0, 0, 1, {G(0x402000)}},
	{X64, "3d 00 20 40 00", 5, ARCH_FLOW_NEXT, 0, 0, 1, {G(0x402000)}},
	{X64, "25 00 20 40 00", 5, ARCH_FLOW_NEXT, 0},
	{X64, "8b 80 00 20 40 00", 6, ARCH_FLOW_NEXT, 0, 0, 1, {RG(0x402000, 4)}},
	{X64, "8b 84 24 00 20 40 00", 7, ARCH_FLOW_NEXT, 0},
	{X64, "8b 40 10", 3, ARCH_FLOW_NEXT, 0},
	{X64, "64 48 8b 04 25 28 00 00 00", 9, ARCH_FLOW_NEXT, 0},
	{X64, "8b 04 25 00 20 40 00", 7, ARCH_FLOW_NEXT, 0, 0, 1, {R(0x402000, 4)}},
	{X32, "a1 00 c0 04 08", 5, ARCH_FLOW_NEXT, 0, 0, 1, {R(0x804c000, 4)}},
	{X32, "8b 0d 00 c0 04 08", 6, ARCH_FLOW_NEXT, 0, 0, 1, {R(0x804c000, 4)}},
	{X64, "06", 1, ARCH_FLOW_INVALID, 0},
	{X64, "48", 1, ARCH_FLOW_INVALID, 0},
	{X64, "e8 10 00 00", 1, ARCH_FLOW_INVALID, 0},
};

static void test_decode_cases(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(decode_cases); i++) {
		const struct decode_case *c = &decode_cases[i];
		const struct arch *a = arch_test_get(c->id);
		size_t len;
		_cleanup_free_ uint8_t *bytes = arch_test_hex(c->hex, &len);
		struct arch_insn in;
		memset(&in, 0xa5, sizeof(in));
		a->decode(a, bytes, len, VA, &in);
		if (in.len != c->len || in.flow != c->flow || in.flags != c->flags || in.ref_cnt != c->ref_cnt)
			fail_msg("%s %s: len %d flow %d flags %#x refs %d", a->name, c->hex, in.len,
				 in.flow, in.flags, in.ref_cnt);
		if (c->target && in.target != c->target)
			fail_msg("%s: target %#lx", c->hex, (unsigned long)in.target);
		for (unsigned k = 0; k < c->ref_cnt; k++) {
			const struct arch_ref *g = &in.refs[k];
			const struct arch_ref *w = &c->refs[k];
			if (g->va != w->va || g->kind != w->kind || g->access_bytes != w->access_bytes ||
			    g->is_guess != w->is_guess)
				fail_msg("%s: ref %u is %#lx kind %d width %d guess %d", c->hex, k,
					 (unsigned long)g->va, g->kind, g->access_bytes, g->is_guess);
		}
	}
}

static const struct {
	enum arch_id id;
	const char *hex;
	const char *want;
} effect_cases[] = {
	{X64, "b8 05 00 00 00", "const dst=rax imm=0x5 width=4 writes=0x1"},
	{X64, "48 c7 c0 ff ff ff ff", "const dst=rax imm=0xffffffffffffffff width=8 writes=0x1"},
	{X64, "31 c0", "const dst=rax width=4 writes=0x1"},
	{X64, "83 c8 ff", "const dst=rax imm=0xffffffff width=4 writes=0x1"},
	{X64, "48 8d 3d 10 00 00 00", "const dst=rdi imm=0x401017 width=8 writes=0x80"},
	{X64, "89 d8", "move dst=rax src1=rbx width=4 writes=0x1"},
	{X64, "0f b6 c3", "move dst=rax src1=rbx width=1 writes=0x1"},
	{X64, "48 63 c3", "move dst=rax src1=rbx width=4s ext=8 writes=0x1"},
	{X64, "48 98", "move dst=rax src1=rax width=4s ext=8 writes=0x1"},
	{X64, "48 63 04 8a", "load dst=rax base=rdx index=rcx scale=4 width=4s ext=8 writes=0x1"},
	{X64, "0f b7 04 4a", "load dst=rax base=rdx index=rcx scale=2 width=2 writes=0x1"},
	{X64, "48 8b 05 10 00 00 00", "load dst=rax imm=0x401017 width=8 writes=0x1"},
	{X64, "64 48 8b 04 25 28 00 00 00", "other writes=0x1"},
	{X64, "8a 03", "other writes=0x1"},
	{X64, "48 8d 44 8a 08", "lea dst=rax base=rdx index=rcx scale=4 imm=0x8 width=8 writes=0x1"},
	{X64, "48 89 44 24 08", "store src1=rax base=rsp imm=0x8 width=8 writes=0"},
	{X64, "c7 00 05 00 00 00", "store base=rax width=4 writes=0"},
	{X64, "01 03", "store base=rbx width=4 writes=0"},
	{X64, "0f 29 03", "store base=rbx width=16 writes=0"},
	{X64, "48 01 d8", "add dst=rax src1=rax src2=rbx width=8 writes=0x1"},
	{X64, "83 c0 ff", "add dst=rax src1=rax imm=0xffffffff width=4 writes=0x1"},
	{X64, "83 e8 41", "sub dst=rax src1=rax imm=0x41 width=4 writes=0x1"},
	{X64, "83 e0 07", "and dst=rax src1=rax imm=0x7 width=4 writes=0x1"},
	{X64, "48 c1 e0 03", "shl dst=rax src1=rax imm=0x3 width=8 writes=0x1"},
	{X64, "d1 e8", "shr dst=rax src1=rax imm=0x1 width=4 writes=0x1"},
	{X64, "d3 e0", "other writes=0x1"},
	{X64, "83 f8 05", "cmp src1=rax imm=0x5 width=4 writes=0"},
	{X64, "3c 85", "cmp src1=rax imm=0x85 width=1 writes=0"},
	{X64, "39 d8", "cmp src1=rax src2=rbx width=4 writes=0"},
	{X64, "80 7d ff 05", "cmp base=rbp imm=0xffffffffffffffff cmp_imm=0x5 width=1 writes=0"},
	{X64, "3b 03", "other writes=0"},
	{X64, "85 c0", "test src1=rax src2=rax width=4 writes=0"},
	{X64, "77 10", "other cond=5 writes=0"},
	{X64, "e3 10", "other cond=11 writes=0"},
	{X64, "ff e0", "move src1=rax width=8 writes=0"},
	{X64, "ff 24 c5 00 20 40 00", "load index=rax scale=8 imm=0x402000 width=8 writes=0"},
	{X64, "ff 15 10 00 00 00", "load imm=0x401016 width=8 writes=0"},
	{X64, "e8 10 00 00 00", "other writes=0"},
	{X64, "e8 00 00 00 00", "other sp=-8 writes=0x10"},
	{X32, "e8 00 00 00 00", "other sp=-4 writes=0x10"},
	{X64, "c3", "other sp=8 writes=0x10"},
	{X64, "c2 10 00", "other sp=24 writes=0x10"},
	{X64, "55", "other sp=-8 writes=0x10"},
	{X64, "6a 01", "other sp=-8 writes=0x10"},
	{X64, "58", "other sp=8 writes=0x11"},
	{X64, "5c", "other sp=? writes=0x10"},
	{X64, "c9", "other sp=? writes=0x30"},
	{X64, "48 89 ec", "move dst=rsp src1=rbp width=8 sp=? writes=0x10"},
	{X64, "48 83 ec 18", "sub dst=rsp src1=rsp imm=0x18 width=8 sp=-24 writes=0x10"},
	{X64, "48 83 c4 80", "add dst=rsp src1=rsp imm=0xffffffffffffff80 width=8 sp=-128 writes=0x10"},
	{X64, "48 83 e4 f0", "and dst=rsp src1=rsp imm=0xfffffffffffffff0 width=8 sp=? writes=0x10"},
	{X32, "83 c4 f0", "add dst=esp src1=esp imm=0xfffffff0 width=4 sp=-16 writes=0x10"},
	{X32, "60", "other sp=-32 writes=0x10"},
	{X32, "61", "other sp=32 writes=0xff"},
	{X64, "f7 e3", "other writes=0x5"},
	{X64, "0f a2", "other writes=0xf"},
	{X64, "f3 48 ab", "other writes=0x82"},
	{X64, "48 93", "other writes=0x9"},
	{X64, "0f b1 0b", "store base=rbx width=4 writes=0x1"},
	{X64, "0f c1 0b", "store base=rbx width=4 writes=0x2"},
	{X64, "0f 05", "other writes=0x802"},
};

static void test_effect_cases(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(effect_cases); i++) {
		char got[300];
		arch_test_effect(arch_test_get(effect_cases[i].id), effect_cases[i].hex, VA, got, sizeof(got));
		if (strcmp(got, effect_cases[i].want) != 0)
			fail_msg("%s:\n got  %s\n want %s", effect_cases[i].hex, got, effect_cases[i].want);
	}
}

static size_t one_name(void *ctx, uint64_t va, char *out, size_t cap)
{
	const uint64_t *only = (const uint64_t *)ctx;
	if (va != *only || cap < 6)
		return 0;
	memcpy(out, "target", 6);
	return 6;
}

/* Text, and the kind of every span in order: M mnemonic, R register, I immediate, A address, D
 * displacement, S size, P prefix, N name. */
static const struct {
	enum arch_id id;
	const char *hex;
	uint64_t named_va;
	const char *text;
	const char *spans;
} text_cases[] = {
	{X64, "48 8d 3d 10 00 00 00", 0, "lea rdi,[rip+0x10]", "MRRD"},
	{X64, "48 8d 3d 10 00 00 00", 0x401017, "lea rdi,[rip+target]", "MRRN"},
	{X64, "e8 10 00 00 00", 0, "call 0x401015", "MA"},
	{X64, "e8 10 00 00 00", 0x401015, "call target", "MN"},
	{X64, "f2 ff 25 10 00 00 00", 0x401017, "bnd jmp QWORD PTR [rip+target]", "PMSRN"},
	{X64, "8b 04 25 00 20 40 00", 0x402000, "mov eax,DWORD PTR ds:target", "MRSRN"},
	{X64, "bf 00 20 40 00", 0x402000, "mov edi,0x402000", "MRI"},
	{X64, "64 48 8b 04 25 28 00 00 00", 0x28, "mov rax,QWORD PTR fs:0x28", "MRSRD"},
	{X64, "f3 48 ab", 0, "rep stos QWORD PTR es:[rdi],rax", "PMSRRR"},
	{X64, "c4 e3 7d 19 44 8a 10 01", 0, "vextractf128 XMMWORD PTR [rdx+rcx*4+0x10],ymm0,0x1", "MSRRDRI"},
	{X32, "a1 00 c0 04 08", 0x804c000, "mov eax,ds:target", "MRRN"},
	{X32, "8b 1d 00 c0 04 08", 0x804c000, "mov ebx,DWORD PTR ds:target", "MRSRN"},
	{X64, "06", 0, "(bad)", "M"},
	{X64, "66 06", 0, "data16 (bad)", "PM"},
	{X64, "48 66 90", 0, "rex.W", "P"},
};

static void test_texts(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(text_cases); i++) {
		const struct arch *a = arch_test_get(text_cases[i].id);
		uint64_t only = text_cases[i].named_va;
		const struct arch_names names = {one_name, &only};
		/* Bytes behind the instruction, so that the route for whole buffers is taken as well. */
		for (size_t more = 0; more <= 32; more += 32) {
			size_t len;
			_cleanup_free_ uint8_t *bytes = arch_test_hex(text_cases[i].hex, &len);
			_cleanup_free_ uint8_t *all = (uint8_t *)calloc(1, len + more);
			assert_non_null(all);
			memcpy(all, bytes, len);
			struct arch_text t;
			a->format(a, all, len + more, VA, only ? &names : NULL, &t);
			assert_string_equal(t.text, text_cases[i].text);
			char kinds[ARCH_SPAN_MAX + 1] = "";
			for (unsigned k = 0; k < t.span_cnt; k++)
				kinds[k] = "MRIAD.SPN"[t.spans[k].kind];
			assert_string_equal(kinds, text_cases[i].spans);
		}
	}
}

static void test_names(void **state)
{
	assert_int_equal(arch_id_of_name("x86-64"), ARCH_ID_X86_64);
	assert_int_equal(arch_id_of_name("pdp11"), ARCH_ID_NONE);
	assert_string_equal(arch_test_get(X64)->reg_name(arch_test_get(X64), 12), "r12");
	assert_string_equal(arch_test_get(X32)->reg_name(arch_test_get(X32), 4), "esp");
	assert_string_equal(arch_test_get(X32)->reg_name(arch_test_get(X32), 200), "");
	const struct arch *a = NULL;
	_cleanup_err_ struct err *e = arch_get(ARCH_ID_NONE, &a);
	assert_non_null(e);
	assert_int_equal(e->kind, ERR_UNSUPPORTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_decode_cases),
		cmocka_unit_test(test_effect_cases),
		cmocka_unit_test(test_texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
