/* SPDX-License-Identifier: Apache-2.0 */
#include "arch/x86/x86_int.h"
#include "base/cleanup.h"
#include "lib/arch_text.h"

#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/*
 * The tables of x86_fast.c and x86_text_fast.c against Zydis: both routes must give the same answer, wherever the fast one
 * gives any.
 */
static uint64_t rng_state = 0x9e3779b97f4a7c15;

static uint8_t rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return (uint8_t)(rng_state >> 32);
}

struct counts {
	unsigned long total, fast, text;
};

/* Names for half of the addresses, of any length. */
static size_t name_of(void *ctx, uint64_t va, char *out, size_t cap)
{
	size_t len = va >> 3 & 1 ? 0 : (size_t)(va % 200);
	len = MIN(len, cap);
	memset(out, 'n', len);
	return len;
}

/* The text written from the bytes and that written from Zydis' operands, with every span. */
static bool compare_text(const struct arch *a, const uint8_t *p, size_t len, uint64_t va)
{
	const struct arch_names names = {name_of, NULL};
	struct arch_text x;
	struct arch_text y;
	size_t n = x86_format_fast(a, p, len, va, va & 1 ? &names : NULL, &x);
	if (n == 0)
		return false;
	assert_int_equal(n, x86_format_slow(a, p, len, va, va & 1 ? &names : NULL, &y));
	if (x.len != y.len || strcmp(x.text, y.text) != 0)
		fail_msg("%02x %02x %02x %02x %02x: `%s` `%s`", p[0], p[1], p[2], p[3], p[4], x.text, y.text);
	assert_int_equal(x.span_cnt, y.span_cnt);
	assert_memory_equal(x.spans, y.spans, x.span_cnt * sizeof(x.spans[0]));
	return true;
}

static void assert_same(const struct arch_insn *x, const struct arch_insn *y, const uint8_t *p)
{
	bool is_same = x->len == y->len && x->flow == y->flow && x->flags == y->flags &&
		       x->target == y->target && x->ref_cnt == y->ref_cnt;
	for (unsigned i = 0; is_same && i < x->ref_cnt; i++)
		is_same = x->refs[i].va == y->refs[i].va && x->refs[i].kind == y->refs[i].kind &&
			  x->refs[i].access_bytes == y->refs[i].access_bytes &&
			  x->refs[i].is_guess == y->refs[i].is_guess;
	if (!is_same)
		fail_msg("%02x %02x %02x %02x %02x %02x %02x %02x: len %d %d flow %d %d flags %#x %#x "
			 "refs %d %d",
			 p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], x->len, y->len, x->flow, y->flow,
			 x->flags, y->flags, x->ref_cnt, y->ref_cnt);
}

static void compare(const struct arch *a, const uint8_t *p, size_t len, uint64_t va, struct counts *c)
{
	struct arch_insn x;
	struct arch_insn y;
	c->total++;
	c->text += compare_text(a, p, len, va);
	if (!x86_decode_fast(a, p, len, va, &x))
		return;
	c->fast++;
	x86_decode_slow(a, p, len, va, &y);
	assert_same(&x, &y, p);
}

/* Every opcode of both maps under the prefixes and REX bits that compilers use, with a third of the
 * ModRM bytes each time: which third changes with prefix and REX. */
static void test_all_opcodes(void **state)
{
	static const uint8_t prefixes[][3] = {{0},       {1, 0x66},       {1, 0xf3},      {1, 0xf2},
					      {1, 0x64}, {2, 0x2e, 0x66}, {2, 0x66, 0xf2}, {1, 0x3e}};
	static const uint8_t rexes[] = {0, 0x40, 0x41, 0x46, 0x48, 0x4f};
	const struct arch *archs[] = {arch_test_get(ARCH_ID_X86_64), arch_test_get(ARCH_ID_I386)};
	struct counts c = {0};
	for (unsigned n = 0; n < 2 * ARRAY_LEN(prefixes) * ARRAY_LEN(rexes) * 2 * 256; n++) {
		const struct arch *a = archs[n & 1];
		unsigned rest = n >> 1;
		uint8_t opcode = (uint8_t)rest;
		bool is_0f = rest >> 8 & 1;
		rest >>= 9;
		uint8_t rex = rexes[rest % ARRAY_LEN(rexes)];
		const uint8_t *prefix = prefixes[rest / ARRAY_LEN(rexes)];
		if (rex && a->bits == 32)
			continue;
		for (unsigned modrm = n % 3; modrm < 256; modrm += 3) {
			uint8_t b[48];
			size_t k = 0;
			for (size_t i = 0; i < sizeof(b); i++)
				b[i] = modrm & 1 || rng() < 16 ? rng() : 0;
			memcpy(b, prefix + 1, prefix[0]);
			k += prefix[0];
			if (rex)
				b[k++] = rex;
			if (is_0f)
				b[k++] = 0x0f;
			b[k++] = opcode;
			b[k] = (uint8_t)modrm;
			compare(a, b, sizeof(b), 0x401000 + modrm, &c);
		}
	}
	assert_true(c.fast > c.total / 4);
	assert_true(c.text > c.total / 50);
}

static void test_random(void **state)
{
	struct counts c = {0};
	uint8_t b[64];
	for (unsigned n = 0; n < 300000; n++) {
		for (size_t i = 0; i < 32; i++)
			b[i] = rng();
		compare(arch_test_get(n & 1 ? ARCH_ID_I386 : ARCH_ID_X86_64), b, 32, 0xfffffff0, &c);
	}
	assert_true(c.fast > 0);
}

static int each_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct counts *c = (struct counts *)ctx;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X) || !info->dlpi_name[0] ||
		    strstr(info->dlpi_name, "asan") || strstr(info->dlpi_name, "ubsan"))
			continue;
		const uint8_t *p = (const uint8_t *)(info->dlpi_addr + ph->p_vaddr);
		size_t len = MIN((size_t)ph->p_memsz, (size_t)150000);
		for (size_t k = 0; k < len; k++) {
			compare(arch_test_get(ARCH_ID_X86_64), p + k, len - k, 0x400000 + k, c);
			if (k % 4 == 0)
				compare(arch_test_get(ARCH_ID_I386), p + k, len - k, 0x400000 + k, c);
		}
	}
	return 0;
}

/* Every byte offset of the code of the libraries this program runs with. */
static void test_real_code(void **state)
{
	struct counts c = {0};
	dl_iterate_phdr(each_object, &c);
	assert_true(c.fast > 50000);
	assert_true(c.fast > c.total / 2);
	assert_true(c.text > c.total / 2);
}

/* The constant decoder is the one that Zydis makes, but for near branches of 16 bits. */
static void test_decoder(void **state)
{
	ZydisDecoder d;
	ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	const ZydisDecoder *ours = x86_decoder(arch_test_get(ARCH_ID_X86_64));
	assert_int_equal(ours->machine_mode, d.machine_mode);
	assert_int_equal(ours->stack_width, d.stack_width);
	for (int i = 0; i <= ZYDIS_DECODER_MODE_MAX_VALUE; i++) {
		if (i != ZYDIS_DECODER_MODE_AMD_BRANCHES)
			assert_int_equal(ours->decoder_mode[i], d.decoder_mode[i]);
	}
}

/* decode() and format() of every prefix of an instruction: the buffer ends where the bytes do. */
static void test_truncated(void **state)
{
	static const char *const insns[] = {
		"66 66 2e 0f 1f 84 00 00 00 00 00", "48 b8 11 22 33 44 55 66 77 88",
		"f3 0f 1e fa", "c4 e3 7d 19 44 8a 10 01", "62 f1 7c 48 10 05 34 12 00 00",
		"c7 84 24 00 10 00 00 00 20 40 00", "9b d9 7c 24 08", "f0 f0 0b fb", "8f ca ca 45",
		"f0 66 8c 78 08", "db ac 24 00 01 00 00", "0f 0f c1 9e", "26 64 67 66 f2 48 8b 04 25 01 02 03 04"};
	for (size_t i = 0; i < 2 * ARRAY_LEN(insns); i++) {
		const struct arch *a = arch_test_get(i & 1 ? ARCH_ID_I386 : ARCH_ID_X86_64);
		size_t len;
		_cleanup_free_ uint8_t *all = arch_test_hex(insns[i / 2], &len);
		for (size_t n = 1; n <= len; n++) {
			_cleanup_free_ uint8_t *cut = (uint8_t *)malloc(n);
			assert_non_null(cut);
			memcpy(cut, all, n);
			struct arch_insn in;
			struct arch_effect e;
			struct arch_text text;
			a->decode(a, cut, n, 0x401000, &in);
			assert_in_range(in.len, 1, n);
			size_t text_len = a->format(a, cut, n, 0x401000, NULL, &text);
			assert_in_range(text_len, 1, n);
			if (in.flow == ARCH_FLOW_INVALID)
				continue;
			assert_int_equal(text_len, in.len);
			a->effect(a, cut, n, 0x401000, &e);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decoder),
		cmocka_unit_test(test_all_opcodes),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_real_code),
		cmocka_unit_test(test_truncated),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
