/* SPDX-License-Identifier: Apache-2.0 */
/* No debugger and no log for the tests of the views: what they show of the real ones tests/e2e/dock.py looks at. */
#include "session/ses_debug.h"
#include "session/ses_tenet.h"

#include <string.h>

struct err *ses_debug_open(const struct ses_debug_opts *o, struct ses_debug **ret)
{
	(void)o;
	(void)ret;
	return err_new(ERR_UNSUPPORTED, "no debugger in a made-up session");
}

void ses_debug_close(struct ses_debug *s)
{
	(void)s;
}

void ses_debug_interrupt(struct ses_debug *s)
{
	(void)s;
}

struct err *ses_debug_command(struct ses_debug *s, const char *line, struct buf *out, bool *ret_quit)
{
	(void)s;
	(void)line;
	(void)out;
	*ret_quit = true;
	return NULL;
}

enum ses_debug_state ses_debug_state(const struct ses_debug *s)
{
	(void)s;
	return SES_DEBUG_NONE;
}

bool ses_debug_va(struct ses_debug *s, uint64_t *ret)
{
	(void)s;
	(void)ret;
	return false;
}

void ses_debug_put_state(struct ses_debug *s, struct buf *out)
{
	(void)s;
	(void)out;
}

struct err *ses_debug_regs(struct ses_debug *s, struct arena *a, struct ses_debug_reg **ret, uint32_t *ret_cnt)
{
	(void)s;
	(void)a;
	(void)ret;
	*ret_cnt = 0;
	return NULL;
}

struct err *ses_debug_frames(struct ses_debug *s, struct arena *a, struct ses_debug_frame **ret, uint32_t *ret_cnt)
{
	(void)s;
	(void)a;
	(void)ret;
	*ret_cnt = 0;
	return NULL;
}

struct err *ses_debug_stack(struct ses_debug *s, struct arena *a, uint32_t cnt, struct ses_debug_word **ret)
{
	(void)s;
	(void)a;
	(void)cnt;
	(void)ret;
	return &err_not_found;
}

struct err *ses_debug_bytes(struct ses_debug *s, uint64_t va, uint32_t len, uint8_t *out, bool *known)
{
	(void)s;
	(void)va;
	(void)out;
	memset(known, 0, len);
	return NULL;
}

struct err *ses_debug_break_toggle(struct ses_debug *s, uint64_t va)
{
	(void)s;
	(void)va;
	return NULL;
}

struct err *ses_debug_step(struct ses_debug *s, enum ses_debug_unit unit, bool is_over)
{
	(void)s;
	(void)unit;
	(void)is_over;
	return NULL;
}

struct err *ses_debug_until(struct ses_debug *s, uint64_t va)
{
	(void)s;
	(void)va;
	return NULL;
}

struct err *ses_debug_run(struct ses_debug *s)
{
	(void)s;
	return NULL;
}

struct err *ses_tenet_open(struct ses_snap *sn, const struct ses_call *call, const char *path, struct ses_tenet **ret)
{
	(void)sn;
	(void)call;
	(void)ret;
	return err_new(ERR_UNSUPPORTED, "%s: no logs in a made-up session", path);
}

void ses_tenet_close(struct ses_tenet *t)
{
	(void)t;
}

uint64_t ses_tenet_steps(const struct ses_tenet *t)
{
	(void)t;
	return 0;
}

uint64_t ses_tenet_odd(const struct ses_tenet *t)
{
	(void)t;
	return 0;
}

bool ses_tenet_slide(const struct ses_tenet *t, uint64_t *ret)
{
	(void)t;
	*ret = 0;
	return false;
}

bool ses_tenet_va(struct ses_tenet *t, uint64_t step, uint64_t *ret)
{
	(void)t;
	(void)step;
	(void)ret;
	return false;
}

struct err *ses_tenet_regs(struct ses_tenet *t, uint64_t step, struct arena *a, struct ses_tenet_reg **ret, uint32_t *ret_cnt)
{
	(void)t;
	(void)step;
	(void)a;
	(void)ret;
	*ret_cnt = 0;
	return NULL;
}

void ses_tenet_bytes(struct ses_tenet *t, uint64_t step, uint64_t va, uint32_t len, uint8_t *out, bool *known)
{
	(void)t;
	(void)step;
	(void)va;
	(void)out;
	memset(known, 0, len);
}

void ses_tenet_live_bytes(struct ses_tenet *t, uint64_t step, uint64_t live, uint32_t len, uint8_t *out, bool *known)
{
	ses_tenet_bytes(t, step, live, len, out, known);
}

uint64_t ses_tenet_over(struct ses_tenet *t, uint64_t step, bool back)
{
	(void)t;
	(void)step;
	(void)back;
	return SES_TENET_NONE;
}

uint64_t ses_tenet_ran(struct ses_tenet *t, uint64_t step, uint64_t va, bool back)
{
	(void)va;
	return ses_tenet_over(t, step, back);
}

uint64_t ses_tenet_written(struct ses_tenet *t, uint64_t step, const char *reg, bool back)
{
	(void)reg;
	return ses_tenet_over(t, step, back);
}

uint64_t ses_tenet_touched(struct ses_tenet *t, uint64_t step, uint64_t va, bool writes, bool back)
{
	(void)va;
	(void)writes;
	return ses_tenet_over(t, step, back);
}

void ses_tenet_trail(struct ses_tenet *t, uint64_t step, uint32_t cnt, uint64_t *out)
{
	(void)t;
	(void)step;
	memset(out, 0xff, (2 * cnt + 1) * sizeof(*out));
}

size_t ses_debug_breaks(const struct ses_debug *s, uint64_t *out, size_t cap)
{
	(void)s;
	(void)out;
	(void)cap;
	return 0;
}

bool ses_debug_frame_va(struct ses_debug *s, uint64_t *ret)
{
	(void)s;
	(void)ret;
	return false;
}
