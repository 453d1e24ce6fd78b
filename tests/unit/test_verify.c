/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions against C forms written here: the right one is equal, wrong ones differ with the words that make them, and
 * hostile ones on either side neither are equal nor stop the next.
 */
#include "live/verify/verify.h"

#include "format/fmt.h"
#include "lib/subject.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char source[] =
	"#include <string.h>\n"
	"long pair(long *p) { return p[0] + p[1]; }\n"
	"long double half(long *p) { return (long)p * 0.5L; }\n"
	"long forever(void) { for (;;) __asm__ volatile(\"\"); }\n"
	"long undefined(void) { __builtin_trap(); }\n"
	"long deep(long n) { volatile char b[64]; b[n & 63] = 1; return deep(n + 1) + b[0]; }\n"
	"long leave(void) { long r; __asm__ volatile(\"syscall\" : \"=a\"(r) : \"0\"(231L), \"D\"(0L) : \"rcx\", \"r11\"); return r; }\n"
	/* Into the middle of libc's code, from the pointer an import is bound to. */
	"long middle(void) { const unsigned char *p = (const unsigned char *)&strlen; unsigned long fn; memcpy(&fn, p + 2, 8);\n"
	"  return ((long (*)(void))(fn + 3))(); }\n"
	/* All the memory there is, the result's too. */
	"long fill(void) { for (unsigned long p = 0x10000; p < 0x7ffffffff000; p += 4096) *(volatile char *)p = 1; return 0; }\n";

/* Where struct scry_x86_64 has them. */
enum { RAX_OFF = 0, RSP_OFF = 32, RDI_OFF = 56, F7_OFF = 1312 };

enum { PAIR, HALF, HALF_MINUS, PAIR_MINUS, PAIR_LOOPS, PAIR_LEAVES, PAIR_FAULTS, PAIR_DEEP, FOREVER, UNDEFINED, DEEP, LEAVE, MIDDLE, FILL, COUNT };
static const char *const targets[COUNT] = {"pair", "half", "half", "pair", "pair", "pair", "pair", "pair", "forever", "undefined", "deep",
					   "leave", "middle", "fill"};
static const char *const forms[COUNT] = {
	"RAX = p[0] + p[1];", "F7 = (long)p * 0.5L;", "F7 = (long)p * -0.5L;", "RAX = p[0] - p[1];", "for (;;) __asm__ volatile(\"\");",
	"__asm__ volatile(\"syscall\" :: \"a\"(231L), \"D\"(0L) : \"rcx\", \"r11\");", "__builtin_trap();",
	"volatile char b[4096]; b[0] = 1; form_7(m); b[1] = 1;", "RAX = 0;", "RAX = 0;", "RAX = 0;", "RAX = 0;", "RAX = 0;", "RAX = 0;",
};

/* With the quick compiler or without. */
static void check_verdicts(bool is_quick)
{
	struct subject *subject = subject_new(".c", source, "gcc -O1 -w -shared -fPIC -fno-stack-protector $SRC -o $OUT");
	if (!subject)
		skip();
	static const uint8_t sha[32];
	struct image_data d;
	_cleanup_buf_ struct buf bytes = {0}, text = {0};
	struct image *im;
	struct verify *v;
	struct verify_func funcs[COUNT] = {0};
	char names[COUNT][16];
	assert_null(image_data_from_fmt(subject->bin, sha, &d));
	assert_null(image_serialize(&d, &bytes));
	image_data_fini(&d);
	assert_null(image_open_mem(bytes.data, bytes.len, subject->bin->bytes, subject->bin->bytes_len, NULL, &im));
	buf_printf(&text, "#define RAX (*(long *)(m + %d))\n#define F7 (*(long double *)(m + %d))\n", RAX_OFF, F7_OFF);
	for (int i = 0; i < COUNT; i++) {
		snprintf(names[i], sizeof(names[i]), "form_%d", i);
		buf_printf(&text, "void form_%d(char *m) { long *p = *(long **)(m + %d); *(long *)(m + %d) += 8; %s }\n", i,
			   RDI_OFF, RSP_OFF, forms[i]);
		funcs[i].name = names[i];
		for (size_t k = 0; k < subject->bin->symbols.cnt; k++) {
			const struct fmt_symbol *s = &subject->bin->symbols.data[k];
			if (s->name.len == strlen(targets[i]) && !memcmp(s->name.s, targets[i], s->name.len))
				funcs[i].va = s->va;
		}
		assert_true(funcs[i].va);
	}
	int fd = open(subject->path, O_RDONLY | O_CLOEXEC);
	const struct verify_opts opts = {.im = im, .fd = fd, .cc = "gcc", .level = "-O0", .header = "", .seeds = 3, .cpu_ms = 20,
					 .quick_header = is_quick ? "" : NULL};
	struct err *e = verify_open(&opts, &text, funcs, COUNT, &v);
	if (is_quick) {
		/* The trap is a function to it that nobody has. */
		assert_non_null(e);
		assert_int_equal(e->kind, ERR_INTERNAL);
		assert_non_null(strstr(e->text, "__builtin_trap"));
		err_free(e);
		_cleanup_buf_ struct buf with_trap = {0};
		buf_add_str(&with_trap, "#define __builtin_trap() __asm__(\"ud2\")\n");
		buf_add(&with_trap, text.data, text.len);
		e = verify_open(&opts, &with_trap, funcs, COUNT, &v);
	}
	if (e)
		fail_msg("%s", e->text);
	for (uint32_t i = 0; i < COUNT; i++) {
		struct verify_verdict got;
		assert_null(verify_run(v, i, &got));
		/* C that has no time says nothing: it may only be slow. */
		bool is_right = i == PAIR || i == HALF;
		enum verify_status want = is_right ? VERIFY_EQUAL : i < FOREVER && i != PAIR_LOOPS ? VERIFY_DIFFERS : VERIFY_INCONCLUSIVE;
		/* What the middle of a function does is the processor's to say; it is not equal to nothing. */
		if (got.status != want && !(i == MIDDLE && got.status == VERIFY_DIFFERS))
			fail_msg("%s against \"%s\": %s, %s", targets[i], forms[i], verify_status_name(got.status), got.why);
		if (want != VERIFY_EQUAL)
			assert_true(got.why[0]);
		assert_int_equal(got.is_quick, is_quick);
		/* p[1] alone makes the difference: wherever p points. */
		if (i == PAIR_MINUS) {
			assert_int_equal(got.word_cnt, 1);
			assert_int_equal(got.more_words, 0);
			assert_int_equal(got.words[0].at & 0xfff, 8);
			assert_true(got.words[0].value);
		}
		/* Those differ whatever the input is: nothing is left of it. */
		if (i > PAIR_MINUS && i < FOREVER)
			assert_int_equal(got.word_cnt, 0);
		/* And the next is judged as ever. */
		assert_null(verify_run(v, PAIR, &got));
		assert_int_equal(got.status, VERIFY_EQUAL);
		assert_int_equal(got.inputs, 3);
	}
	verify_close(v);
	close(fd);
	image_unref(im);
	subject_free(subject);
}

static void test_verdicts(void **state)
{
	(void)state;
	check_verdicts(false);
}

static void test_verdicts_of_the_quick_compiler(void **state)
{
	(void)state;
	if (access("/usr/bin/tcc", X_OK)) {
		print_message("there is no tcc\n");
		skip();
	}
	check_verdicts(true);
}

/* What it is not even asked to compile. */
static void test_what_is_for_the_quick_compiler(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool is_taken;
	} rows[] = {
		{"#define SCRY_REGS(r) r(rax) r(xmm0)\nuint128_t xmm0 = m->xmm0, xmm1 = m->xmm1;\n", true},
		{"uint128_t xmm0 = m->xmm0;\n\txmm0 = scry_load128(rax + 1);\n\tscry_store128(f(rax), xmm0);\n", true},
		{"uint128_t xmm0 = m->xmm0, xmm1 = m->xmm1;\n\txmm0 = xmm1;\n\tuint128_t t5 = xmm0;\n", true},
		{"uint128_t v1 = {0}, v2 = {0};\n\tv1 = m->xmm0;\n\tm->xmm1 = v1;\n\tscry_store128(v3, m->xmm2);\n", true},
		{"scry_store128(f(v1, 2), scry_load128(v3 + f(1)));", true},
		{"scry_store128(f(v1, 2), scry_load128(v3) + 1);", false},
		{"v3 = (uint64_t)m->xmm0;", false},
		{"m->xmm0 = v3;", false},
		{"rax = scry_umulh64(rax, 0x128) /* scry_umulh128 */;", true},
		{"rax = SCRY_LANES(64, 8, mm0, mm1, 0, x + y);", true},
		{"uint128_t xmm0 = m->xmm0;\n\txmm0 = 0;\n", false},
		{"uint128_t xmm0 = m->xmm0;\n\txmm0 = scry_u128(1, 2);\n", false},
		{"uint128_t xmm0 = m->xmm0;\n\trax = (uint64_t)xmm0;\n", false},
		{"uint128_t xmm0 = m->xmm0, xmm1 = m->xmm1;\n\txmm0 = xmm0 ^ xmm1;\n", false},
		{"uint128_t xmm0 = m->xmm0;\n\tif (xmm0 == 0)\n", false},
		{"uint128_t xmm0 = m->xmm0;\n\tscry_store128(rax, rax);\n", false},
		{"uint128_t xmm0 = m->xmm0;\n\tscry_store64(rax, xmm0);\n", false},
		{"uint128_t xmm0 = m->xmm0 + 1;\n", false},
		{"uint128_t xmm0 = m->xmm0;\n\txmm0 = scry_load128(f(1)) + 1;\n", false},
		{"rax = (uint128_t)rbx;", false},
		{"rax = scry_umulh128(rax, rbx);", false},
		{"f7 = scry_load80(rax);", false},
		{"rax = SCRY_LANES(128, 8, xmm0, xmm1, 0, x + y);", false},
		{"rax = scry_uitof64_64(rax);", false},
		{"SCRY_INSN_YMM(m, 0, 0, \"0x90\");", false},
		{"rax = scry_fma64(rax, rbx, rcx);", false},
		{"uint128_t", false},
		{"uint128_t x = ", false},
		{"uint128_t x,", false},
		{"scry_store128(", false},
		{"/* scry_load128", true},
		{"", true},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (verify_quick_takes(rows[i].text, strlen(rows[i].text)) != rows[i].is_taken)
			fail_msg("%s: %s", rows[i].is_taken ? "not taken" : "taken", rows[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_verdicts_of_the_quick_compiler),
		cmocka_unit_test(test_what_is_for_the_quick_compiler),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
