/* SPDX-License-Identifier: Apache-2.0 */
/* Steps: by instruction, by line of the source, by statement of the C. */
#include "session/ses_debug_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RANGE_MAX = 4096 };

struct err *ses_debug_unwound(struct ses_debug *s)
{
	if (s->has_frames || s->d->state != DEBUG_STOPPED)
		return NULL;
	s->frame_cnt = debug_unwind(s->d, ses_debug_bin, s, s->frames, SES_DEBUG_FRAMES);
	s->has_frames = true;
	return NULL;
}

bool ses_debug_frame_reg(struct ses_debug *s, int reg, uint64_t *ret)
{
	if (!s->frame_idx)
		return debug_reg(s->d, reg, ret);
	err_free(ses_debug_unwound(s));
	return s->frame_idx < s->frame_cnt && debug_frame_reg(s->d, &s->frames[s->frame_idx], reg, ret);
}

/* Ranges of code, live. */
struct ranges { struct debug_range list[RANGE_MAX]; size_t cnt; };

static void add_range(struct ses_debug *s, struct ranges *r, uint64_t va, uint64_t len)
{
	uint64_t live = va + s->slide;
	if (r->cnt && r->list[r->cnt - 1].end == live)
		r->list[r->cnt - 1].end += len;
	else if (r->cnt < RANGE_MAX)
		r->list[r->cnt++] = (struct debug_range){live, live + len};
}

/* What of the function belongs to a statement. */
struct statement {
	bool by_c;
	struct ses_c c;
	uint32_t line;           /* of the source, or of the C */
	uint64_t file;           /* offset of its name in the pool */
};

static bool is_of(const struct ses_debug *s, const struct statement *t, uint64_t va, uint32_t loc)
{
	struct image_str file;
	uint32_t line;
	if (t->by_c)
		return ses_c_line_at(&t->c, va) == t->line;
	return image_line_at(s->sn->im, loc, &file, &line) && line == t->line && file.off == t->file;
}

static void collect(struct ses_debug *s, uint32_t func, const struct statement *t, struct ranges *ret)
{
	uint32_t range_cnt;
	const struct image_range *r = image_func_ranges(s->sn->im, func, &range_cnt);
	for (uint32_t i = 0; i < range_cnt; i++) {
		struct image_items it;
		bool more = image_items_from(s->sn->im, r[i].loc, &it);
		for (; more && it.loc < r[i].loc + r[i].len && ret->cnt < RANGE_MAX; more = image_items_next(&it)) {
			uint64_t va = space_va(s->sn->space, it.loc);
			if (it.kind == IMAGE_CODE && is_of(s, t, va, it.loc))
				add_range(s, ret, va, it.len);
		}
	}
}

/* The statement that pc is in; false: it is in none, so that a step is one instruction. */
static bool find_statement(struct ses_debug *s, enum ses_debug_unit unit, struct arena *a, struct ranges *ret)
{
	struct statement t = {0};
	struct image_str file;
	struct ses_call call = ses_debug_call(s);
	uint64_t va;
	if (unit == SES_DEBUG_INSN || !ses_debug_va(s, &va))
		return false;
	uint32_t loc = space_loc(s->sn->space, va), func = loc == LOC_NONE ? UINT32_MAX : image_func_at(s->sn->im, loc);
	if (func == UINT32_MAX)
		return false;
	if (unit == SES_DEBUG_SOURCE && image_line_at(s->sn->im, loc, &file, &t.line) && t.line) {
		t.file = file.off;
	} else {
		struct err *e = ses_decompile(s->sn, &call, va, a, &t.c);
		bool is_fine = !e;
		err_free(e);
		if (!is_fine)
			return false;
		t.by_c = true;
		t.line = ses_c_line_at(&t.c, va);
	}
	collect(s, func, &t, ret);
	return ret->cnt;
}

/* Steps into what the database knows as code that somebody wrote: not into stubs, and nothing beyond it. */
static bool wants(void *ctx, uint64_t live)
{
	struct ses_debug *s = ctx;
	struct arena a = {0};
	struct ses_func f;
	uint64_t va;
	bool is_wanted = ses_debug_to_va(s, live, &va) && ses_func_at(s->sn, va, &a, &f) && !(f.flags & SES_FN_THUNK);
	struct ses_text file;
	uint32_t line;
	if (is_wanted && image_has_lines(s->sn->im))
		is_wanted = ses_debug_source(s, va, &file, &line);
	arena_fini(&a);
	return is_wanted;
}

/* Where the current function returns to. */
static bool find_caller(struct ses_debug *s, uint64_t *ret_live, uint64_t *ret_sp)
{
	err_free(ses_debug_unwound(s));
	if (s->frame_cnt < 2 || !s->frames[0].cfa)
		return false;
	*ret_live = s->frames[1].pc;
	*ret_sp = s->frames[0].cfa;
	return true;
}

static struct err *step_insn(struct ses_debug *s, bool is_over)
{
	uint64_t pc, sp = 0;
	uint8_t bytes[16];
	size_t got = 0;
	struct arch_insn in = {0};
	if (is_over && s->d->arch && debug_pc(s->d, &pc)) {
		struct err *e = debug_mem(s->d, pc, bytes, s->d->arch->max_len, &got);
		if (e)
			return e;
		if (got)
			s->d->arch->decode(s->d->arch, bytes, got, pc, &in);
	}
	if (in.flow != ARCH_FLOW_CALL && in.flow != ARCH_FLOW_ICALL)
		return debug_step_insn(s->d);
	int hit;
	debug_reg(s->d, s->d->regs.sp, &sp);
	return debug_run_to(s->d, &(struct debug_place){pc + in.len, sp}, 1, &hit);
}

static struct err *step_statement(struct ses_debug *s, enum ses_debug_unit unit, bool is_over)
{
	struct ranges *r = calloc(1, sizeof(*r));
	struct arena a = {0};
	if (!r)
		return &err_nomem;
	bool has = find_statement(s, unit, &a, r);
	arena_fini(&a);
	struct debug_step t = {.ranges = r->list, .range_cnt = r->cnt, .is_over = is_over, .wants = wants, .ctx = s};
	if (has)
		t.has_caller = find_caller(s, &t.caller_va, &t.caller_sp);
	/* In code without lines a step is an instruction. */
	struct err *e = has ? debug_step_range(s->d, &t) : step_insn(s, is_over);
	free(r);
	return e;
}

struct err *ses_debug_step(struct ses_debug *s, enum ses_debug_unit unit, bool is_over)
{
	if (s->d->state != DEBUG_STOPPED)
		return err_fix(err_new(ERR_INVALID, "no process is stopped here"), "run starts one");
	ses_debug_moved(s);
	struct err *e = unit == SES_DEBUG_INSN ? step_insn(s, is_over) : step_statement(s, unit, is_over);
	return e ? e : ses_debug_after(s);
}

struct err *ses_debug_until(struct ses_debug *s, uint64_t va)
{
	int hit;
	if (s->d->state != DEBUG_STOPPED) {
		char what[24];
		uint32_t id;
		snprintf(what, sizeof(what), "0x%llx", (unsigned long long)va);
		struct err *e = ses_debug_want(s, what, NULL, DEBUG_BREAK_SOFT, true, &id);
		return e ? e : ses_debug_run(s);
	}
	if (!s->has_slide)
		return err_new(ERR_UNSUPPORTED, "it is not known where the program lies in the target");
	ses_debug_moved(s);
	struct err *e = debug_run_to(s->d, &(struct debug_place){.va = va + s->slide}, 1, &hit);
	return e ? e : ses_debug_after(s);
}

struct err *ses_debug_out(struct ses_debug *s)
{
	uint64_t live, sp;
	int hit;
	if (s->d->state != DEBUG_STOPPED)
		return err_fix(err_new(ERR_INVALID, "no process is stopped here"), "run starts one");
	if (!find_caller(s, &live, &sp))
		return err_new(ERR_NOT_FOUND, "it is not known where this function returns to");
	ses_debug_moved(s);
	struct err *e = debug_run_to(s->d, &(struct debug_place){live, sp}, 1, &hit);
	return e ? e : ses_debug_after(s);
}
