/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a page of the listing costs inside a process, for the bench: pages of 200 rows at the starts of functions
 * spread over an x86-64 file, and Zydis decoding and formatting the instructions of the same pages, in turn.
 *
 *   bench_page FILE
 *   OURS_NS ZYDIS_NS INSTRUCTIONS PAGES   medians a page of the calling thread's CPU time
 */
#include "base/arena.h"
#include "session/session.h"

#include <Zydis/Zydis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROWS = 200, PAGES = 200, ROUNDS = 5 };

struct page_cost {
	uint64_t ours_ns, zydis_ns;
};

static uint64_t cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* Decodes and formats the code rows; returns their number, or 0 when one cannot be decoded. */
static uint32_t zydis_page(const struct ses_head *heads, uint32_t cnt)
{
	static ZydisDecoder decoder;
	static ZydisFormatter formatter;
	static bool is_ready;
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	char text[256];
	uint32_t done = 0;
	if (!is_ready) {
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
		ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
		is_ready = true;
	}
	for (uint32_t i = 0; i < cnt; i++) {
		const struct ses_head *h = &heads[i];
		if (h->kind != SES_HEAD_CODE)
			continue;
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, h->bytes, h->bytes_len, &insn, ops)) ||
		    !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&formatter, &insn, ops, insn.operand_count_visible, text,
								  sizeof(text), h->va, NULL)))
			return 0;
		done++;
	}
	return done;
}

static struct err *measure_page(struct ses_snap *sn, uint64_t va, struct arena *a, struct page_cost *cost, uint32_t *ret_insns)
{
	const struct ses_call call = {.caps = SES_CAP_READ};
	const struct ses_at at = {.va = va, .count = ROWS};
	struct ses_head *heads;
	uint32_t cnt;
	uint64_t t0 = cpu_ns();
	struct err *err = ses_heads(sn, &call, &at, a, &heads, &cnt);
	uint64_t t1 = cpu_ns();
	if (err)
		return err;
	*ret_insns = zydis_page(heads, cnt);
	cost->ours_ns = t1 - t0;
	cost->zydis_ns = cpu_ns() - t1;
	return NULL;
}

static struct err *measure_all(struct ses_snap *sn)
{
	static uint64_t ours[PAGES * ROUNDS], zydis[PAGES * ROUNDS];
	const struct ses_call call = {.caps = SES_CAP_READ};
	struct arena keep = {0}, a = {0};
	struct ses_func *funcs;
	struct err *err;
	uint64_t insns = 0;
	uint32_t pages = 0, filled = 0;

	struct ses_page list = {.limit = UINT32_MAX};
	err = ses_functions(sn, &call, &list, &keep, &funcs);
	const uint32_t cnt = err ? 0 : list.cnt;
	/* The first round warms up and is not kept. */
	for (uint32_t round = 0; !err && round <= ROUNDS; round++) {
		for (uint32_t i = 0; !err && i < PAGES && i < cnt; i++) {
			struct page_cost cost = {0};
			uint32_t n = 0;
			arena_reset(&a);
			err = measure_page(sn, funcs[(uint64_t)i * cnt / PAGES].addr, &a, &cost, &n);
			/* Pages of data say nothing about instructions. */
			if (err || round == 0 || n < ROWS / 2)
				continue;
			ours[filled] = cost.ours_ns;
			zydis[filled++] = cost.zydis_ns;
			if (round == 1) {
				insns += n;
				pages++;
			}
		}
	}
	if (!err && filled) {
		qsort(ours, filled, sizeof(ours[0]), by_value);
		qsort(zydis, filled, sizeof(zydis[0]), by_value);
		printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %u\n", ours[filled / 2], zydis[filled / 2], insns, pages);
	}
	arena_fini(&a);
	arena_fini(&keep);
	return err;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: bench_page FILE\n");
		return 2;
	}
	const struct ses_opts opts = {0};
	struct ses *s = NULL;
	_cleanup_err_ struct err *err = ses_open(argv[1], &opts, &s);
	if (!err) {
		struct ses_snap *sn = ses_snap_get(s);
		err = measure_all(sn);
		ses_snap_put(sn);
		ses_close(s);
	}
	if (err)
		fprintf(stderr, "bench_page: %s\n", err->text);
	return err ? err_exit_status(err->kind) : 0;
}
