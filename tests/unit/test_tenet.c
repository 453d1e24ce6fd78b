/* SPDX-License-Identifier: Apache-2.0 */
/* Execution logs: every answer against a model that keeps the whole of each step. */
#include "live/tenet/tenet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { REGS = 5, MEM = 512, STEPS = 5000, CODE = 300 };
static const char *const names[REGS] = {"rax", "rbx", "rsp", "r15", "rip"};
static const uint64_t mem_base = 0x7ffd0fe0;

struct step {
	uint64_t regs[REGS];
	uint8_t mem[MEM];
	bool known[MEM];
	uint64_t stated;
	uint64_t va;      /* what its line says was touched; kinds 0: nothing */
	uint32_t len;
	uint8_t kinds;
};

struct made { struct step *steps; struct buf text; struct tenet *t; };

static unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 16;
}

static void make_step(struct made *m, unsigned i, unsigned *seed)
{
	struct step *s = &m->steps[i];
	if (i)
		*s = m->steps[i - 1];
	s->stated = 1u << 4;
	s->kinds = 0;
	s->regs[4] = 0x401000 + next_random(seed) % (i < STEPS / 2 ? CODE : 8) * 3;
	for (unsigned r = 0; r < 4; r++)
		if (!i || (r != 3 ? next_random(seed) % 3 == 0 : i == 3000)) {
			s->regs[r] = (uint64_t)next_random(seed) << 40 | next_random(seed);
			s->stated |= 1u << r;
		}
	struct buf more = {0};
	if (i && next_random(seed) % 2) {
		unsigned range = i < STEPS / 2 ? MEM : 100;
		uint8_t bytes[80];
		s->len = 1 + next_random(seed) % (next_random(seed) % 10 ? 8 : 80);
		unsigned at = next_random(seed) % (range - s->len);
		s->va = mem_base + at;
		s->kinds = (uint8_t)(1 + next_random(seed) % 3);
		for (unsigned k = 0; k < s->len; k++) {
			if (s->kinds & TENET_WRITE || !s->known[at + k])
				s->mem[at + k] = (uint8_t)next_random(seed);
			s->known[at + k] = true;
			bytes[k] = s->mem[at + k];
		}
		tenet_put_access(&more, s->kinds, s->va, bytes, s->len);
	}
	buf_add_ch(&more, 0);
	tenet_put(&m->text, names, s->regs, s->stated, more.data);
	buf_fini(&more);
}

static int make(void **state)
{
	static struct made m;
	unsigned seed = 7;
	m.steps = calloc(STEPS, sizeof(*m.steps));
	buf_add_str(&m.text, "Loaded image: 0x400000:0x401000 -> prog\n");
	for (unsigned i = 0; i < STEPS; i++)
		make_step(&m, i, &seed);
	assert_false(m.text.failed);
	assert_null(tenet_read_text(m.text.data, m.text.len, NULL, &m.t));
	*state = &m;
	return 0;
}

static int unmake(void **state)
{
	struct made *m = *state;
	tenet_close(m->t);
	buf_fini(&m->text);
	free(m->steps);
	return 0;
}

static void test_state(void **state)
{
	struct made *m = *state;
	uint64_t line;
	assert_int_equal(tenet_step_cnt(m->t), STEPS);
	assert_int_equal(tenet_odd_cnt(m->t, &line), 1);
	assert_int_equal(line, 1);
	assert_int_equal(tenet_reg_cnt(m->t), REGS);
	assert_int_equal(tenet_pc_reg(m->t), tenet_reg_find(m->t, "RIP"));
	assert_int_equal(tenet_sp_reg(m->t), tenet_reg_find(m->t, "rsp"));
	assert_int_equal(tenet_reg_find(m->t, "rcx"), -1);
	for (unsigned i = 0; i < STEPS; i += 1 + (i % 7) * 13) {
		struct step *s = &m->steps[i];
		uint64_t values[TENET_REG_MAX];
		assert_int_equal(tenet_regs(m->t, i, values), (1u << REGS) - 1);
		uint64_t changed = tenet_changed(m->t, i);
		for (unsigned r = 0; r < REGS; r++) {
			int reg = tenet_reg_find(m->t, names[r]);
			assert_int_equal(values[reg], s->regs[r]);
			assert_int_equal(changed >> reg & 1, s->stated >> r & 1);
		}
		uint8_t out[MEM + 64];
		bool known[MEM + 64];
		size_t want = 0;
		for (unsigned k = 0; k < MEM; k++)
			want += s->known[k];
		assert_int_equal(tenet_mem(m->t, i, mem_base - 32, MEM + 64, out, known), want);
		for (unsigned k = 0; k < MEM; k++) {
			assert_int_equal(known[k + 32], s->known[k]);
			if (s->known[k])
				assert_int_equal(out[k + 32], s->mem[k]);
		}
		uint64_t pc;
		assert_true(tenet_pc(m->t, i, &pc));
		assert_int_equal(pc, s->regs[4]);
	}
}

/* The nearest step in a direction whose next line is accepted. */
static uint64_t model_did(const struct made *m, unsigned step, bool back, unsigned reg, const struct tenet_access *what)
{
	for (int i = (int)step + (back ? -1 : 1); i >= 0 && i + 1 < STEPS; i += back ? -1 : 1) {
		const struct step *s = &m->steps[i + 1];
		bool is = what ? s->kinds & what->kinds && s->va < what->va + what->len && what->va < s->va + s->len : s->stated >> reg & 1;
		if (is)
			return (uint64_t)i;
	}
	return TENET_NONE;
}

static void test_seeking(void **state)
{
	struct made *m = *state;
	unsigned seed = 99;
	for (unsigned n = 0; n < 3000; n++) {
		unsigned step = next_random(&seed) % STEPS;
		bool back = n & 1;
		unsigned r = n % REGS;
		assert_int_equal(tenet_reg_written(m->t, step, (unsigned)tenet_reg_find(m->t, names[r]), back), model_did(m, step, back, r, NULL));
		struct tenet_access what = {mem_base + next_random(&seed) % MEM, 1 + next_random(&seed) % 70, (uint8_t)(1 + n % 3)};
		assert_int_equal(tenet_touched(m->t, step, &what, back), model_did(m, step, back, 0, &what));
		uint64_t pc = 0x401000 + next_random(&seed) % CODE * 3, want = TENET_NONE;
		for (int i = (int)step + (back ? -1 : 1); i >= 0 && i < STEPS && want == TENET_NONE; i += back ? -1 : 1)
			if (m->steps[i].regs[4] == pc)
				want = (uint64_t)i;
		assert_int_equal(tenet_ran(m->t, step, pc, back), want);
	}
	assert_int_equal(tenet_ran(m->t, 5, 0x1234, false), TENET_NONE);
	assert_int_equal(tenet_pc_spread(m->t, 0x1234), 0);
}

static void test_accesses(void **state)
{
	struct made *m = *state;
	struct tenet_access got[4];
	for (unsigned i = 0; i + 1 < STEPS; i++) {
		const struct step *s = &m->steps[i + 1];
		assert_int_equal(tenet_accesses(m->t, i, got, 4), s->kinds != 0);
		if (s->kinds) {
			assert_int_equal(got[0].va, s->va);
			assert_int_equal(got[0].len, s->len);
			assert_int_equal(got[0].kinds, s->kinds);
		}
	}
	assert_int_equal(tenet_accesses(m->t, STEPS - 1, got, 4), 0);
}

static struct err *read_one(const char *text, struct tenet **ret)
{
	return tenet_read_text(text, strlen(text), NULL, ret);
}

static void test_forms(void **state)
{
	struct tenet *t;
	uint64_t values[TENET_REG_MAX], line;
	assert_null(read_one("RAX=0x1,Rip=0x10\r\nrip=0x11, mrw=0xfffffffffffffff0:00112233445566778899aabbccddeeff\n\n\nrip=12", &t));
	assert_int_equal(tenet_step_cnt(t), 3);
	assert_int_equal(tenet_odd_cnt(t, &line), 0);
	assert_int_equal(tenet_regs(t, 2, values), 3);
	assert_int_equal(values[tenet_pc_reg(t)], 0x12);
	uint8_t out[16];
	bool known[16];
	assert_int_equal(tenet_mem(t, 2, 0xfffffffffffffff0, 16, out, known), 16);
	assert_int_equal(out[15], 0xff);
	struct tenet_access what = {0xffffffffffffffff, 1, TENET_WRITE};
	assert_int_equal(tenet_touched(t, 2, &what, true), 0);
	tenet_close(t);
	/* Past the top, an odd number of digits, 65 bits, no colon, no name: none of them is a step. */
	struct err *e = read_one("mw=0xffffffffffffffff:0011\nmw=0x1:011\nrax=0x11111111111111111\nmr=0x1\n=0x1\nrax=\nverylongname=1\n", &t);
	assert_int_equal(e->kind, ERR_BAD_INPUT);
	err_free(e);
	e = read_one("", &t);
	assert_int_equal(e->kind, ERR_BAD_INPUT);
	err_free(e);
	/* More registers than are kept: the steps are still counted as they are. */
	struct buf b = {0};
	for (int i = 0; i < 70; i++)
		buf_printf(&b, "q%d=0x%x\n", i, i);
	assert_null(tenet_read_text(b.data, b.len, NULL, &t));
	assert_int_equal(tenet_step_cnt(t), 70);
	assert_int_equal(tenet_odd_cnt(t, &line), 6);
	assert_int_equal(line, 65);
	assert_false(tenet_pc(t, 3, &line));
	assert_int_equal(tenet_reg_written(t, 69, 63, true), 62);
	tenet_close(t);
	buf_fini(&b);
}

static void test_stop(void **state)
{
	struct buf b = {0};
	atomic_bool stop = true;
	for (int i = 0; i < 3000; i++)
		buf_printf(&b, "rip=0x%x\n", i);
	struct tenet *t;
	struct err *e = tenet_read_text(b.data, b.len, &(struct tenet_opts){.cancel = &stop}, &t);
	assert_int_equal(e->kind, ERR_CANCELLED);
	err_free(e);
	buf_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_state), cmocka_unit_test(test_seeking), cmocka_unit_test(test_accesses),
		cmocka_unit_test(test_forms), cmocka_unit_test(test_stop),
	};
	return cmocka_run_group_tests(tests, make, unmake);
}
