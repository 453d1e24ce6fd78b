/* SPDX-License-Identifier: Apache-2.0 */
#include "arch/arch.h"
#include "base/file.h"

#include <Zydis/Zydis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * bench_zydis FILE OFF LEN WHAT [COUNT]: the floor that our figures are compared with. Goes through a
 * region of x86-64 code of a file and prints nanoseconds of CPU time an instruction. WHAT:
 *   decode   Zydis, instruction only
 *   full     Zydis, instruction and operands
 *   format   Zydis, instruction, operands and Intel text (the text is thrown away)
 *   our-decode, our-effect, our-format   the same region through arch/
 * With COUNT only the first COUNT instructions, over and over until they are a million.
 */
struct bench {
	const uint8_t *p;
	size_t len;
	size_t count; /* instructions of one round, 0: all */
	ZydisDecoder dec;
	ZydisFormatter fmt;
	const struct arch *a;
};

#define VA 0x400000

static unsigned long sink; /* keeps results alive */

static size_t zydis_step(const struct bench *b, size_t i, bool is_full, bool is_text)
{
	ZydisDecoderContext ctx;
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&b->dec, &ctx, b->p + i, b->len - i, &in)))
		return 1;
	if (is_full && !ZYAN_SUCCESS(ZydisDecoderDecodeOperands(&b->dec, &ctx, &in, ops, in.operand_count)))
		return 1;
	if (is_text) {
		char text[256];
		ZydisFormatterFormatInstruction(&b->fmt, &in, ops, in.operand_count_visible, text,
						sizeof(text), VA + i, NULL);
		sink += (unsigned char)text[0];
	}
	return in.length;
}

static size_t step_decode(const struct bench *b, size_t i)
{
	return zydis_step(b, i, false, false);
}

static size_t step_full(const struct bench *b, size_t i)
{
	return zydis_step(b, i, true, false);
}

static size_t step_format(const struct bench *b, size_t i)
{
	return zydis_step(b, i, true, true);
}

static size_t step_our_decode(const struct bench *b, size_t i)
{
	struct arch_insn in;
	b->a->decode(b->a, b->p + i, b->len - i, VA + i, &in);
	sink += in.flow;
	return in.len;
}

static size_t step_our_effect(const struct bench *b, size_t i)
{
	struct arch_insn in;
	struct arch_effect e;
	b->a->decode(b->a, b->p + i, b->len - i, VA + i, &in);
	b->a->effect(b->a, b->p + i, b->len - i, VA + i, &e);
	sink += e.op;
	return in.len;
}

static size_t step_our_format(const struct bench *b, size_t i)
{
	struct arch_text text;
	size_t n = b->a->format(b->a, b->p + i, b->len - i, VA + i, NULL, &text);
	sink += text.len;
	return n;
}

typedef size_t step_fn(const struct bench *b, size_t i);

static const struct {
	const char *name;
	step_fn *fn;
} steps[] = {
	{"decode", step_decode},         {"full", step_full},
	{"format", step_format},         {"our-decode", step_our_decode},
	{"our-effect", step_our_effect}, {"our-format", step_our_format},
};

static double cpu_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void run(const struct bench *b, const char *name, step_fn *fn)
{
	size_t done = 0;
	double start = cpu_ns();
	do {
		size_t k = 0;
		for (size_t i = 0; i < b->len && (b->count == 0 || k < b->count); k++)
			i += fn(b, i);
		done += k;
	} while (b->count != 0 && done < 1000000);
	double ns = cpu_ns() - start;
	printf("%-11s %9zu instructions %8.1f ns each\n", name, done, ns / (double)(done ? done : 1));
}

int main(int argc, char **argv)
{
	if (argc != 5 && argc != 6) {
		fprintf(stderr, "usage: bench_zydis FILE OFF LEN decode|full|format|our-decode|our-effect|"
				"our-format|all [COUNT]\n");
		return 2;
	}
	struct file *f;
	struct bench b = {0};
	struct err *e = file_open(argv[1], &f);
	if (!e)
		e = arch_get(ARCH_ID_X86_64, &b.a);
	if (e) {
		fprintf(stderr, "bench_zydis: %s\n", e->text);
		return err_exit_status(e->kind);
	}
	uint64_t off = strtoull(argv[2], NULL, 0);
	uint64_t len = strtoull(argv[3], NULL, 0);
	if (off > f->len || len > f->len - off) {
		fprintf(stderr, "bench_zydis: the region is not in the file\n");
		return 2;
	}
	b.p = f->data + off;
	b.len = (size_t)len;
	b.count = argc == 6 ? strtoull(argv[5], NULL, 0) : 0;
	ZydisDecoderInit(&b.dec, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisFormatterInit(&b.fmt, ZYDIS_FORMATTER_STYLE_INTEL);
	bool is_known = false;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		if (strcmp(argv[4], steps[i].name) == 0 || strcmp(argv[4], "all") == 0) {
			run(&b, steps[i].name, steps[i].fn);
			is_known = true;
		}
	}
	file_close(f);
	if (!is_known)
		fprintf(stderr, "bench_zydis: %s?\n", argv[4]);
	return is_known && sink != 1 ? 0 : 2;
}
