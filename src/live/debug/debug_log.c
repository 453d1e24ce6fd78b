/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log of what the target does, made from here for servers that make none: each step is asked for, and what it needs of registers and memory
 * with it. Two to five round trips a step.
 */
#include "live/debug/debug_int.h"

#include "live/tenet/tenet_record.h"

#include <stdlib.h>

enum { PIECE = 512, CODE_PAGES = 64, INSN_MAX = 16 };

/* Pages of code are read once, and again when something may have written there. */
struct code_page { uint64_t va; size_t got; bool is_there; uint8_t bytes[DEBUG_PAGE]; };

struct debug_recorder {
	struct tenet_record *record;
	int regs[TENET_X64_REGS], fs_base, gs_base; /* numbers of the server's registers, -1: it has none */
	bool has_begun, is_behind;                  /* something else ran since the last line */
	bool is_under_way;                          /* a step was begun */
	char thread[DEBUG_ID_MAX];
	struct tenet_state before;
	struct buf out;
	struct err *lost;                           /* memory could not be asked for */
	struct code_page code[CODE_PAGES];
};

struct err *debug_recorder_new(struct debug *d, struct debug_recorder **ret)
{
	struct debug_recorder *r = calloc(1, sizeof(*r));
	struct err *e = r ? tenet_record_new(&r->record) : &err_nomem;
	for (unsigned i = 0; !e && i < TENET_X64_REGS; i++) {
		r->regs[i] = debug_regs_find(&d->regs, tenet_x64_names[i]);
		if (r->regs[i] < 0)
			e = err_new(ERR_UNSUPPORTED, "logs are made of x86-64, and this target has no %s", tenet_x64_names[i]);
	}
	if (e) {
		debug_recorder_free(r);
		return e;
	}
	r->fs_base = debug_regs_find(&d->regs, "fs_base");
	r->gs_base = debug_regs_find(&d->regs, "gs_base");
	memcpy(r->thread, d->current, sizeof(r->thread));
	*ret = r;
	return NULL;
}

void debug_recorder_free(struct debug_recorder *r)
{
	if (!r)
		return;
	tenet_record_free(r->record);
	buf_fini(&r->out);
	err_free(r->lost);
	free(r);
}

bool debug_record_waits(const struct debug *d)
{
	return d->log.is_on && d->log.recorder && d->log.recorder->is_under_way && tenet_record_is_syscall(d->log.recorder->record);
}

static struct err *take_state(struct debug *d, struct tenet_state *ret)
{
	const struct debug_recorder *r = d->log.recorder;
	*ret = (struct tenet_state){.has_bases = true};
	for (unsigned i = 0; i < TENET_X64_REGS; i++)
		if (!debug_reg(d, r->regs[i], &ret->regs[i]))
			return err_new(ERR_IO, "the debug server does not tell %s", tenet_x64_names[i]);
	/* Nothing but the kernel sets these, nearly always, and few servers tell them with a stop. */
	ret->has_bases = r->before.has_bases;
	ret->fs_base = r->before.fs_base;
	ret->gs_base = r->before.gs_base;
	if (!r->has_begun || tenet_record_is_syscall(r->record))
		ret->has_bases = debug_reg(d, r->fs_base, &ret->fs_base) && debug_reg(d, r->gs_base, &ret->gs_base);
	return NULL;
}

/* Few bytes are asked for as they are, since a page that is forgotten with the next step costs more. */
static size_t read_memory(void *ctx, uint64_t va, void *out, size_t len)
{
	struct debug *d = ctx;
	struct debug_recorder *r = d->log.recorder;
	_cleanup_batch_ struct debug_batch b = {0};
	_cleanup_buf_ struct buf bytes = {0};
	size_t got = 0;
	struct err *e = NULL;
	if (r->lost)
		return 0;
	if (len > PIECE) {
		e = debug_mem(d, va, out, len, &got);
	} else {
		debug_ask(&b, "m%llx,%zx", (unsigned long long)va, len);
		e = debug_link_run(&d->link, &b);
		if (!e && gdb_unhex(debug_reply(&b, 0), len, &bytes)) {
			got = bytes.len;
			memcpy(out, bytes.data ? bytes.data : "", got);
		}
	}
	r->lost = e;
	return got;
}

static size_t read_code(struct debug *d, uint64_t va, uint8_t *out, size_t len)
{
	size_t done = 0;
	while (done < len) {
		uint64_t at = va + done, page = at / DEBUG_PAGE * DEBUG_PAGE, off = at - page;
		struct code_page *p = &d->log.recorder->code[page / DEBUG_PAGE % CODE_PAGES];
		if (!p->is_there || p->va != page) {
			p->va = page;
			p->got = read_memory(d, page, p->bytes, DEBUG_PAGE);
			p->is_there = p->got == DEBUG_PAGE;
		}
		if (p->got <= off)
			break;
		size_t n = MIN(len - done, (size_t)(p->got - off));
		memcpy(out + done, p->bytes + off, n);
		done += n;
		/* The next page is looked at only when the instruction may reach it. */
		if (p->got < DEBUG_PAGE)
			break;
	}
	return done;
}

/* What was written over is no longer known. */
static void forget_code(struct debug_recorder *r)
{
	size_t cnt;
	const struct arch_access *a = tenet_record_touched(r->record, &cnt);
	for (size_t i = 0; i < CODE_PAGES; i++) {
		struct code_page *p = &r->code[i];
		p->is_there &= !tenet_record_is_syscall(r->record) && !r->is_behind;
		for (size_t k = 0; k < cnt; k++)
			if (a[k].kinds & ARCH_ACCESS_WRITE && a[k].va < p->va + DEBUG_PAGE && a[k].va + a[k].len > p->va)
				p->is_there = false;
	}
}

/* Hands over the lines there are. */
static struct err *give(struct debug *d, uint64_t steps)
{
	struct debug_recorder *r = d->log.recorder;
	struct err *e = take_ptr(r->lost);
	if (!e && r->out.failed)
		e = &err_nomem;
	if (!e && r->out.len)
		e = d->log.take(d->log.ctx, r->out.data, r->out.len);
	r->out.len = 0;
	d->log.step_cnt += steps;
	d->log.is_full = d->log.step_cnt >= d->log.step_max;
	d->log.is_on = !e && !d->log.is_full;
	return e;
}

struct err *debug_record_before(struct debug *d)
{
	struct debug_recorder *r = d->log.recorder;
	struct tenet_memory m = {read_memory, d};
	uint8_t code[INSN_MAX];
	r->is_under_way = false;
	/* Only its own thread is of the log. */
	if (strcmp(d->current, r->thread)) {
		r->is_behind = true;
		return NULL;
	}
	struct err *e = take_state(d, &r->before);
	if (e)
		return e;
	if (!r->has_begun) {
		tenet_record_begin(r->record, &r->before, &r->out);
		r->has_begun = true;
		e = give(d, 0);
		if (e)
			return e;
	}
	tenet_record_before(r->record, &m, &r->before, code, read_code(d, r->before.regs[TENET_X64_PC], code, sizeof(code)));
	r->is_under_way = true;
	e = take_ptr(r->lost);
	d->log.is_on &= !e;
	return e;
}

struct err *debug_record_after(struct debug *d)
{
	struct debug_recorder *r = d->log.recorder;
	struct tenet_memory m = {read_memory, d};
	struct tenet_state now;
	if (!r->is_under_way)
		return NULL;
	r->is_under_way = false;
	bool is_step = d->state == DEBUG_STOPPED && d->stop.signal == 5 && !strcmp(d->current, r->thread);
	forget_code(r);
	if (d->state != DEBUG_STOPPED || strcmp(d->current, r->thread)) {
		tenet_record_cancel(r->record);
		r->is_behind = true;
		return NULL;
	}
	struct err *e = take_state(d, &now);
	if (e)
		return e;
	/* A signal came before anything was done. */
	if (!is_step && !memcmp(now.regs, r->before.regs, sizeof(now.regs))) {
		tenet_record_cancel(r->record);
		return NULL;
	}
	tenet_record_after(r->record, &m, &now, r->is_behind, &r->out);
	r->is_behind = false;
	return give(d, 1);
}
