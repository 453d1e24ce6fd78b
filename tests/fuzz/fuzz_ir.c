/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "ir/ir_interp.h"
#include "lift/lift.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Input: the text form of IR. What parses prints as text that parses to the same text; the verifier may be asked about any
 * of it, and what it accepts can be run.
 */
static bool intrin(struct ir_run *r, const struct ir_intrin *in, const struct ir_val *args, struct ir_val *out)
{
	return true;
}

static void run(struct ir_func *f, struct arena *a)
{
	struct ir_mem mem = {.arena = a, .page_limit = 64};
	struct ir_val *locs = ARENA_ARRAY(a, struct ir_val, f->machine->loc_cnt);
	if (!locs)
		return;
	struct ir_run r = {.func = f, .arena = a, .locs = locs, .mem = &mem, .step_limit = 2000, .intrin = intrin};
	ir_interp(&r);
	if (r.exit >= IR_EXIT_COUNT)
		abort();
}

static void round_trip(struct ir_func *f, struct arena *a)
{
	struct buf once = {0}, twice = {0};
	struct ir_func *again;
	unsigned cnt;
	const struct ir_machine *const *machines = lift_machines(&cnt);
	ir_print(f, &once);
	struct err *e = ir_parse(a, once.data, once.len, machines, cnt, &again);
	if (e) {
		fprintf(stderr, "fuzz_ir: what was printed does not parse: %s\n%.*s", e->text, (int)once.len, once.data);
		abort();
	}
	ir_print(again, &twice);
	if (once.len != twice.len || memcmp(once.data, twice.data, once.len)) {
		fprintf(stderr, "fuzz_ir: the text changed\n");
		abort();
	}
	buf_fini(&once);
	buf_fini(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct arena a = {0};
	struct ir_func *f;
	unsigned cnt;
	const struct ir_machine *const *machines = lift_machines(&cnt);
	if (len > 20000)
		return 0;
	struct err *e = ir_parse(&a, (const char *)bytes, len, machines, cnt, &f);
	if (!e)
		e = ir_check(f);
	if (e) {
		err_free(e);
		fuzz_rejected++;
	} else {
		fuzz_accepted++;
		round_trip(f, &a);
		run(f, &a);
	}
	arena_fini(&a);
	return 0;
}
