/* SPDX-License-Identifier: Apache-2.0 */
#include "session/ses_tenet.h"

#include "arch/arch.h"
#include "live/tenet/tenet.h"
#include "session/ses_int.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, FUNCS_LOOKED = 4096, CODE_LOOKED = 1 << 17, CALL_BYTES = 8 };

struct ses_tenet {
	struct ses_snap *sn;
	struct tenet *log;
	uint64_t slide;
	bool has_slide;
};

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* How many addresses of the log are where instructions of the database begin, if that was added. */
static size_t fits(const struct ses_tenet *t, uint64_t slide)
{
	size_t cnt = 0;
	uint64_t va;
	for (size_t i = 0; i < CODE_LOOKED && tenet_code_at(t->log, i, &va); i++) {
		uint32_t loc = space_loc(t->sn->space, va - slide);
		struct image_items it;
		cnt += loc != LOC_NONE && image_items_from(t->sn->im, loc, &it) && it.loc == loc && it.kind == IMAGE_CODE;
	}
	return cnt;
}

/*
 * Loaders add whole pages. Where a function of the database may have run (the low digits agree) each tells what would have been added;
 * what most say is tried first, and none at all before that.
 */
static struct err *find_slide(struct ses_tenet *t)
{
	uint32_t func_cnt;
	const struct image_func *f = image_funcs(t->sn->im, &func_cnt);
	VEC(uint64_t) said = {0};
	uint64_t va, best = 0;
	size_t best_cnt = fits(t, 0), run = 0;
	for (size_t i = 0; i < CODE_LOOKED && tenet_code_at(t->log, i, &va) && said.cnt < CODE_LOOKED; i++)
		for (uint32_t k = 0; k < MIN(func_cnt, (uint32_t)FUNCS_LOOKED); k++) {
			uint64_t slide = va - space_va(t->sn->space, f[k].loc);
			if (slide && slide % PAGE == 0 && !VEC_PUSH(&said, slide)) {
				VEC_FREE(&said);
				return &err_nomem;
			}
		}
	if (said.cnt)
		qsort(said.data, said.cnt, sizeof(*said.data), by_value);
	/* The most frequent, judged by all that ran. */
	uint64_t most = 0;
	size_t most_run = 0;
	for (size_t i = 0; i < said.cnt; i++) {
		run = i && said.data[i] == said.data[i - 1] ? run + 1 : 1;
		if (run > most_run) {
			most_run = run;
			most = said.data[i];
		}
	}
	VEC_FREE(&said);
	size_t cnt = most ? fits(t, most) : 0;
	if (cnt > best_cnt) {
		best = most;
		best_cnt = cnt;
	}
	t->slide = best;
	t->has_slide = best_cnt > 0;
	return NULL;
}

struct err *ses_tenet_open(struct ses_snap *sn, const struct ses_call *call, const char *path, struct ses_tenet **ret)
{
	struct ses_tenet *t = calloc(1, sizeof(*t));
	if (!t)
		return &err_nomem;
	/* Where functions begin tells what the loader added: a first analysis is waited for. */
	ses_wait(ses_snap_session(sn), call->cancel);
	t->sn = ses_snap_get(ses_snap_session(sn));
	struct err *e = tenet_open(path, &(struct tenet_opts){.cancel = call->cancel}, &t->log);
	if (!e)
		e = find_slide(t);
	if (e)
		ses_tenet_close(t);
	else
		*ret = t;
	return e;
}

void ses_tenet_close(struct ses_tenet *t)
{
	if (!t)
		return;
	tenet_close(t->log);
	ses_snap_put(t->sn);
	free(t);
}

uint64_t ses_tenet_steps(const struct ses_tenet *t)
{
	return tenet_step_cnt(t->log);
}

uint64_t ses_tenet_odd(const struct ses_tenet *t)
{
	uint64_t line;
	return tenet_odd_cnt(t->log, &line);
}

bool ses_tenet_slide(const struct ses_tenet *t, uint64_t *ret)
{
	*ret = t->slide;
	return t->has_slide;
}

bool ses_tenet_live(struct ses_tenet *t, uint64_t step, uint64_t *ret)
{
	return step < tenet_step_cnt(t->log) && tenet_pc(t->log, step, ret);
}

bool ses_tenet_va(struct ses_tenet *t, uint64_t step, uint64_t *ret)
{
	uint64_t live;
	if (!t->has_slide || !ses_tenet_live(t, step, &live) || !ses_is_mapped(t->sn, live - t->slide))
		return false;
	*ret = live - t->slide;
	return true;
}

struct err *ses_tenet_regs(struct ses_tenet *t, uint64_t step, struct arena *a, struct ses_tenet_reg **ret, uint32_t *ret_cnt)
{
	uint64_t values[TENET_REG_MAX] = {0}, seen, changed;
	int pc = tenet_pc_reg(t->log);
	uint32_t cnt = tenet_reg_cnt(t->log);
	*ret_cnt = 0;
	*ret = ARENA_ARRAY(a, struct ses_tenet_reg, cnt + 1);
	if (!*ret)
		return &err_nomem;
	if (step >= tenet_step_cnt(t->log))
		return err_new(ERR_NOT_FOUND, "the log has no such step");
	seen = tenet_regs(t->log, step, values);
	changed = tenet_changed(t->log, step);
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < cnt; i++) {
			if (((int)i == pc) == pass)
				continue;
			(*ret)[(*ret_cnt)++] = (struct ses_tenet_reg){tenet_reg_name(t->log, i), values[i], seen >> i & 1, step && changed >> i & 1};
		}
	return NULL;
}

void ses_tenet_live_bytes(struct ses_tenet *t, uint64_t step, uint64_t live, uint32_t len, uint8_t *out, bool *known)
{
	memset(known, 0, len * sizeof(*known));
	if (step < tenet_step_cnt(t->log))
		tenet_mem(t->log, step, live, len, out, known);
}

void ses_tenet_bytes(struct ses_tenet *t, uint64_t step, uint64_t va, uint32_t len, uint8_t *out, bool *known)
{
	memset(known, 0, len * sizeof(*known));
	if (t->has_slide)
		ses_tenet_live_bytes(t, step, va + t->slide, len, out, known);
}

static bool sp_at(struct ses_tenet *t, uint64_t step, uint64_t *ret)
{
	uint64_t values[TENET_REG_MAX];
	int sp = tenet_sp_reg(t->log);
	if (sp < 0 || !(tenet_regs(t->log, step, values) >> sp & 1))
		return false;
	*ret = values[sp];
	return true;
}

static void decode(struct ses_tenet *t, uint64_t live, struct arch_insn *ret)
{
	uint8_t bytes[16];
	*ret = (struct arch_insn){.flow = ARCH_FLOW_INVALID};
	uint32_t got = t->has_slide ? ses_bytes(t->sn, live - t->slide, sizeof(bytes), bytes, NULL) : 0;
	if (got)
		t->sn->arch->decode(t->sn->arch, bytes, got, live, ret);
}

static bool is_call(const struct arch_insn *in)
{
	return in->flow == ARCH_FLOW_CALL || in->flow == ARCH_FLOW_ICALL;
}

/* The nearest step at `live` whose stack pointer is not below: the same frame. */
static uint64_t same_frame(struct ses_tenet *t, uint64_t step, uint64_t live, uint64_t sp, bool has_sp)
{
	for (uint64_t at = tenet_ran(t->log, step, live, false); at != TENET_NONE; at = tenet_ran(t->log, at, live, false)) {
		uint64_t now;
		if (!has_sp || !sp_at(t, at, &now) || now >= sp)
			return at;
	}
	return TENET_NONE;
}

/* Back from behind a call: its instruction ends here and had the same stack. */
static uint64_t back_over(struct ses_tenet *t, uint64_t step, uint64_t live, uint64_t sp, bool has_sp)
{
	uint64_t best = TENET_NONE;
	for (uint64_t len = 1; len <= CALL_BYTES; len++) {
		struct arch_insn in;
		uint64_t now;
		decode(t, live - len, &in);
		if (!is_call(&in) || in.len != len)
			continue;
		uint64_t at = tenet_ran(t->log, step, live - len, true);
		while (at != TENET_NONE && has_sp && sp_at(t, at, &now) && now != sp)
			at = tenet_ran(t->log, at, live - len, true);
		if (at != TENET_NONE && (best == TENET_NONE || at > best))
			best = at;
	}
	return best;
}

uint64_t ses_tenet_over(struct ses_tenet *t, uint64_t step, bool back)
{
	uint64_t live, before, sp = 0, at = TENET_NONE;
	struct arch_insn in;
	bool has_sp = sp_at(t, step, &sp);
	if (back ? !step : step + 1 >= tenet_step_cnt(t->log))
		return TENET_NONE;
	if (!ses_tenet_live(t, step, &live))
		return back ? step - 1 : step + 1;
	if (!back) {
		decode(t, live, &in);
		if (is_call(&in))
			at = same_frame(t, step, live + in.len, sp, has_sp);
		return at != TENET_NONE ? at : step + 1;
	}
	if (ses_tenet_live(t, step - 1, &before)) {
		/* What ran before it was the end of a call when it is not the instruction in front of it. */
		decode(t, before, &in);
		if (in.flow == ARCH_FLOW_RET || in.flow == ARCH_FLOW_INVALID)
			at = back_over(t, step, live, sp, has_sp);
	}
	return at != TENET_NONE ? at : step - 1;
}

uint64_t ses_tenet_ran(struct ses_tenet *t, uint64_t step, uint64_t va, bool back)
{
	return t->has_slide ? tenet_ran(t->log, step, va + t->slide, back) : TENET_NONE;
}

uint64_t ses_tenet_written(struct ses_tenet *t, uint64_t step, const char *reg, bool back)
{
	int i = tenet_reg_find(t->log, reg);
	return i < 0 ? TENET_NONE : tenet_reg_written(t->log, step, (unsigned)i, back);
}

uint64_t ses_tenet_touched(struct ses_tenet *t, uint64_t step, uint64_t va, bool writes, bool back)
{
	struct tenet_access what = {va + t->slide, 1, writes ? TENET_WRITE : TENET_READ | TENET_WRITE};
	return t->has_slide ? tenet_touched(t->log, step, &what, back) : TENET_NONE;
}

void ses_tenet_trail(struct ses_tenet *t, uint64_t step, uint32_t cnt, uint64_t *out)
{
	uint64_t first = step >= cnt ? step - cnt : 0;
	size_t skip = cnt - (size_t)(step - first);
	for (uint32_t i = 0; i < 2 * cnt + 1; i++)
		out[i] = UINT64_MAX;
	size_t got = tenet_pcs(t->log, first, 2 * (size_t)cnt + 1 - skip, out + skip);
	for (size_t i = skip; i < skip + got; i++)
		out[i] = t->has_slide && ses_is_mapped(t->sn, out[i] - t->slide) ? out[i] - t->slide : UINT64_MAX;
}
