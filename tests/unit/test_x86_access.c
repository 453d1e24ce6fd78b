/* SPDX-License-Identifier: Apache-2.0 */
/* What of memory an instruction touches, by its operands and the registers: each row is worked out by hand from the Intel SDM. */
#include "arch/arch.h"
#include "base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define R ARCH_ACCESS_READ
#define W ARCH_ACCESS_WRITE

static const struct {
	const char *what;
	uint8_t code[12], len;
	unsigned cnt;
	struct arch_access want[2];
} rows[] = {
	{"push rax", {0x50}, 1, 1, {{0x7ff8, 8, W}}},
	{"push [rsp+8]", {0xff, 0x74, 0x24, 0x08}, 4, 2, {{0x8008, 8, R}, {0x7ff8, 8, W}}},
	{"pop rax", {0x58}, 1, 1, {{0x8000, 8, R}}},
	{"pop [rsp+8]", {0x8f, 0x44, 0x24, 0x08}, 4, 2, {{0x8010, 8, W}, {0x8000, 8, R}}},
	{"call +0", {0xe8, 0, 0, 0, 0}, 5, 1, {{0x7ff8, 8, W}}},
	{"ret", {0xc3}, 1, 1, {{0x8000, 8, R}}},
	{"mov rax, fs:[0x28]", {0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0}, 9, 1, {{0x70000028, 8, R}}},
	{"mov eax, [rip+0x10]", {0x8b, 0x05, 0x10, 0, 0, 0}, 6, 1, {{0x401016, 4, R}}},
	{"add [rax+rbx*4-8], cx", {0x66, 0x01, 0x4c, 0x98, 0xf8}, 5, 1, {{0x1000 + 0x20 * 4 - 8, 2, R | W}}},
	{"lea rax, [rbx+8]", {0x48, 0x8d, 0x43, 0x08}, 4, 0, {{0}}},
	{"rep movsb, rcx 0", {0xf3, 0xa4}, 2, 0, {{0}}},
	{"movsq", {0x48, 0xa5}, 2, 2, {{0x3000, 8, W}, {0x2000, 8, R}}},
	{"movaps xmm0, [rdi]", {0x0f, 0x28, 0x07}, 3, 1, {{0x3000, 16, R}}},
	{"mov [eax], bl", {0x67, 0x88, 0x18}, 3, 1, {{0x1000, 1, W}}},
	{"(bad)", {0x06}, 1, 0, {{0}}},
};

static void each_row(void **unused)
{
	const struct arch *a;
	assert_null(arch_get(ARCH_ID_X86_64, &a));
	struct arch_machine m = {.regs = {[0] = 0x1000, [3] = 0x20, [4] = 0x8000, [6] = 0x2000, [7] = 0x3000}, .pc = 0x401000, .fs_base = 0x70000000};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arch_access got[8];
		size_t cnt = a->accesses(a, rows[i].code, rows[i].len, &m, got, ARRAY_LEN(got));
		if (cnt != rows[i].cnt)
			fail_msg("%s: %zu accesses, not %u", rows[i].what, cnt, rows[i].cnt);
		for (size_t k = 0; k < cnt; k++)
			if (got[k].va != rows[i].want[k].va || got[k].len != rows[i].want[k].len || got[k].kinds != rows[i].want[k].kinds)
				fail_msg("%s: 0x%llx, %u bytes, kinds %u", rows[i].what, (unsigned long long)got[k].va, got[k].len, got[k].kinds);
	}
	assert_int_equal(a->accesses(a, rows[1].code, rows[1].len, &m, (struct arch_access[1]){{0}}, 1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_row)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
