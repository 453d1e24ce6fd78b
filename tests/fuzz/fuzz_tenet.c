/* SPDX-License-Identifier: Apache-2.0 */
/* Execution logs: whatever is given, answers are of its steps and of its bytes, and seeking ends where the state says so. */
#include "fuzz.h"

#include "live/tenet/tenet.h"

#include <stdlib.h>
#include <string.h>

static void check_step(struct tenet *t, uint64_t step)
{
	uint64_t values[TENET_REG_MAX], pc = 0, at;
	uint64_t seen = tenet_regs(t, step, values), changed = tenet_changed(t, step);
	if (changed & ~seen)
		abort();
	if (tenet_pc_reg(t) >= 0 && (!tenet_pc(t, step, &pc) || (seen >> tenet_pc_reg(t) & 1 && pc != values[tenet_pc_reg(t)])))
		abort();
	for (unsigned r = 0; r < tenet_reg_cnt(t); r++) {
		at = tenet_reg_written(t, step, r, true);
		if (at != TENET_NONE && (at >= step || !(tenet_changed(t, at + 1) >> r & 1)))
			abort();
		at = tenet_reg_written(t, step, r, false);
		if (at != TENET_NONE && (at <= step || at + 1 >= tenet_step_cnt(t) || !(tenet_changed(t, at + 1) >> r & 1)))
			abort();
	}
	at = tenet_ran(t, step, pc, true);
	if (at != TENET_NONE && at >= step)
		abort();
	struct tenet_access got[8];
	size_t cnt = tenet_accesses(t, step, got, 8);
	for (size_t i = 0; i < cnt && i < 8; i++) {
		uint8_t out[32];
		bool known[32];
		uint32_t len = got[i].len < 32 ? got[i].len : 32;
		if (!got[i].kinds || tenet_mem(t, step + 1, got[i].va, len, out, known) != len)
			abort();
		at = tenet_touched(t, step + 1, &got[i], true);
		if (at != step)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct tenet *t;
	char *text = malloc(len + 1); /* of its own, so that a read behind it is seen */
	if (!text)
		return 0;
	memcpy(text, bytes, len);
	struct err *e = tenet_read_text(text, len, NULL, &t);
	if (e) {
		if (e->kind != ERR_BAD_INPUT)
			abort();
		fuzz_rejected++;
		err_free(e);
	} else {
		uint64_t cnt = tenet_step_cnt(t);
		if (!cnt || cnt > len || tenet_reg_cnt(t) > TENET_REG_MAX)
			abort();
		for (uint64_t i = 0; i < cnt && i < 64; i++)
			check_step(t, i * (cnt / 64 + 1) < cnt ? i * (cnt / 64 + 1) : cnt - 1);
		tenet_close(t);
		fuzz_accepted++;
	}
	free(text);
	return 0;
}
