/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "cprint/cprint.h"
#include "decomp/dec_judge.h"
#include "ir/ir_interp.h"
#include "lift/lift.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Input: a byte of options (bit 0: i386; bits 1 to 5: length of the blocks less 3), then machine code, which is cut into
 * blocks, lifted as one function and again instruction by instruction. Whatever the bytes: lifting succeeds, the verifier
 * accepts the result, its text says the same again, running it for a while ends, the passes of the decompiler leave what they should,
 * and both have a form in C. With FUZZ_LIFT_C naming a
 * file, the C is added to it: a test compiles that.
 */
#define CHECK(cond)                                                                          \
	do {                                                                                 \
		if (!(cond)) {                                                               \
			fprintf(stderr, "fuzz_lift: %d: %s\n", __LINE__, #cond);             \
			abort();                                                             \
		}                                                                            \
	} while (0)

#define VA 0x7ffffff0
#define BYTES_MAX 512

static void must(struct err *e)
{
	if (e) {
		fprintf(stderr, "fuzz_lift: %s\n", e->text);
		abort();
	}
}

static void check_text(struct ir_func *f)
{
	struct buf once = {0}, twice = {0};
	struct arena a = {0};
	struct ir_func *again;
	unsigned cnt;
	const struct ir_machine *const *machines = lift_machines(&cnt);
	ir_print(f, &once);
	must(ir_parse(&a, once.data, once.len, machines, cnt, &again));
	must(ir_check(again));
	ir_print(again, &twice);
	CHECK(once.len == twice.len && !memcmp(once.data, twice.data, once.len));
	buf_fini(&once);
	buf_fini(&twice);
	arena_fini(&a);
}

static void check_c(const struct ir_func *f, bool is_state)
{
	static unsigned number;
	const char *path = getenv("FUZZ_LIFT_C");
	struct buf text = {0};
	struct cprint_map map = {{0}};
	char name[24];
	snprintf(name, sizeof(name), "f%u_%u", (unsigned)getpid(), number++);
	const struct cprint_opts opts = {.name = name, .is_state = is_state};
	must(cprint_func(f, &opts, &text, &map));
	CHECK(text.len && !memchr(text.data, 0, text.len));
	for (size_t i = 1; i < map.lines.cnt; i++)
		CHECK(map.lines.data[i - 1].line <= map.lines.data[i].line);
	FILE *out = path ? fopen(path, "a") : NULL;
	if (out) {
		fwrite(text.data, 1, text.len, out);
		fclose(out);
	}
	buf_fini(&text);
	cprint_map_fini(&map);
}

static bool intrin(struct ir_run *r, const struct ir_intrin *in, const struct ir_val *args, struct ir_val *out)
{
	CHECK(in->len <= IR_INTRIN_BYTES_MAX);
	for (unsigned i = 0; i < in->out_cnt; i++)
		out[i].w[0] = i;
	return true;
}

static void check_run(struct ir_func *f)
{
	struct arena a = {0};
	struct ir_mem mem = {.arena = &a, .page_limit = 64};
	struct ir_val *locs = ARENA_ARRAY(&a, struct ir_val, f->machine->loc_cnt);
	if (locs) {
		locs[f->machine->sp_loc].w[0] = 0x10000;
		struct ir_run r = {.func = f, .arena = &a, .locs = locs, .mem = &mem, .step_limit = 2000, .intrin = intrin};
		ir_interp(&r);
		CHECK(r.exit < IR_EXIT_COUNT && r.steps <= 2001);
		for (unsigned i = 0; i < f->machine->loc_cnt; i++) {
			unsigned bits = ir_bits((enum ir_width)f->machine->locs[i].width);
			CHECK(bits >= 64 || locs[i].w[0] >> bits == 0);
		}
	}
	arena_fini(&a);
}

/* Behind each pass of the decompiler it is well formed; the first, which takes nothing for granted that such code breaks, changes nothing. */
static bool after(void *ctx, unsigned pass, struct ir_func *f)
{
	char why[160];
	const struct dec_opts opts = {0};
	must(ir_check(f));
	if (pass == DEC_P_SSA && dec_judge(ctx, f, &opts, 1, why, sizeof(why)) == DEC_V_DIFFERS) {
		fprintf(stderr, "fuzz_lift: %s\n", why);
		abort();
	}
	return true;
}

static void check_passes(struct ir_func *f)
{
	struct dec_func made;
	const struct dec_opts opts = {.after = after, .ctx = f};
	struct err *e = dec_run(f, &opts, &made);
	CHECK(!e || e->kind == ERR_UNSUPPORTED || e->kind == ERR_BUDGET);
	if (!e)
		check_c(made.f, true);
	err_free(e);
}

static void lift_whole(enum arch_id arch, const uint8_t *p, size_t len, unsigned block_len)
{
	struct arena a = {0};
	struct lift_block blocks[BYTES_MAX / 3 + 1];
	uint64_t targets[4];
	struct lift_table table = {.targets = targets};
	struct lift_code code = {.arch = arch, .va = VA, .blocks = blocks, .tables = &table};
	struct lift_stats stats;
	struct ir_func *f;
	for (size_t at = 0; at < len; at += block_len) {
		size_t n = len - at < block_len ? len - at : block_len;
		blocks[code.block_cnt++] = (struct lift_block){.va = VA + at, .bytes = p + at, .len = (uint32_t)n};
	}
	/* The last block's first byte as a jump through a table, should it be one. */
	table.jump_va = blocks[code.block_cnt - 1].va;
	for (unsigned i = 0; i < 4; i++)
		targets[i] = blocks[(i * 7) % code.block_cnt].va + (i == 3);
	table.target_cnt = 4;
	code.table_cnt = 1;
	must(lift_func(&a, &code, &f, &stats));
	must(ir_check(f));
	CHECK(stats.generic_cnt + stats.bad_cnt <= stats.insn_cnt);
	fuzz_accepted += stats.insn_cnt > stats.bad_cnt;
	fuzz_rejected += stats.bad_cnt > 0;
	check_text(f);
	check_run(f);
	check_c(f, false);
	check_passes(f);
	arena_fini(&a);
}

static void lift_singly(enum arch_id arch, const uint8_t *p, size_t len)
{
	struct arena a = {0};
	struct lift_insn in;
	for (size_t at = 0; at < len && at < 64; at += in.len) {
		arena_reset(&a);
		must(lift_insn(&a, arch, p + at, len - at, VA + at, &in));
		must(ir_check(in.func));
		CHECK(in.len > 0 && in.len <= len - at && in.len <= 15 && in.form);
		check_run(in.func);
		check_c(in.func, false);
	}
	arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	if (len < 2)
		return 0;
	enum arch_id arch = bytes[0] & 1 ? ARCH_ID_I386 : ARCH_ID_X86_64;
	unsigned block_len = 3 + (bytes[0] >> 1 & 31);
	len = len - 1 < BYTES_MAX ? len - 1 : BYTES_MAX;
	lift_whole(arch, bytes + 1, len, block_len);
	lift_singly(arch, bytes + 1, len);
	return 0;
}
