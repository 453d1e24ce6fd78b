/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An execution log, made where the program is: a thread is stepped many times for one packet, and what each step changed comes back as text
 * (live/tenet/tenet_record.h).
 *
 * vScryLog:THREAD;NEW;STEPS;BYTES;SIGNAL -> mSTEPS;TEXT or lSTEPS;TEXT. NEW 1 begins a log with the thread as it is. At most that many steps
 * and, but for the last of them, bytes. `m`: nothing else stopped it; `l`: something did, which `?` tells.
 */
#include "live/platform/plat_conn.h"


#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 1 << 20, TEXT_MAX = 1 << 20, INSN_MAX = 16 };

static struct tenet_state state_of(const struct user_regs_struct *r)
{
	return (struct tenet_state){.regs = {r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp, r->rsi, r->rdi, r->r8,
					     r->r9, r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip},
				    .has_bases = true, .fs_base = r->fs_base, .gs_base = r->gs_base};
}

static size_t read_memory(void *ctx, uint64_t va, void *out, size_t len)
{
	return plat_mem_read(ctx, va, out, len);
}

/* One step of the thread. False: it, or the whole, stands for another reason, or the client is gone. */
static bool step(struct plat_conn *c, pid_t tid, struct buf *out)
{
	struct plat_thread *t = plat_thread_find(&c->inf, tid);
	const struct user_regs_struct *r = t ? plat_regs(t) : NULL;
	struct tenet_memory m = {read_memory, &c->inf};
	uint8_t code[INSN_MAX];
	if (!r)
		return false;
	const struct user_regs_struct before = *r;
	struct tenet_state now = state_of(r);
	tenet_record_before(c->log, &m, &now, code, plat_mem_read(&c->inf, r->rip, code, sizeof(code)));
	/* Others stand still, but while this one may wait for them. */
	for (size_t i = 0; i < c->inf.threads.cnt; i++)
		c->inf.threads.data[i]->action = tenet_record_is_syscall(c->log) ? PLAT_CONT : PLAT_HOLD;
	t->action = PLAT_STEP;
	t->range_start = t->range_end = 0;
	plat_inf_resume(&c->inf);
	plat_wait_stop(c);
	t = c->is_over || c->inf.is_exited ? NULL : plat_thread_find(&c->inf, tid);
	r = t ? plat_regs(t) : NULL;
	if (!r)
		return false;
	bool is_step = c->inf.current == t && t->reason == PLAT_STOP_TRACE;
	/* A signal, or another thread, may have come before anything was done. */
	if (!is_step && !memcmp(&before, r, sizeof(before))) {
		tenet_record_cancel(c->log);
		return false;
	}
	now = state_of(r);
	tenet_record_after(c->log, &m, &now, false, out);
	for (size_t i = 0; i < c->inf.breaks.cnt && is_step; i++)
		if (c->inf.breaks.data[i].va == r->rip) {
			t->reason = PLAT_STOP_BREAK;
			return false;
		}
	return is_step;
}

static const char *begin(struct plat_conn *c, struct plat_thread *t, bool is_new, struct buf *out)
{
	if (!is_new)
		return c->log ? NULL : "no log was begun";
	tenet_record_free(take_ptr(c->log));
	struct err *e = tenet_record_new(&c->log);
	bool is_fine = !e && plat_regs(t);
	err_free(e);
	if (is_fine) {
		struct tenet_state now = state_of(plat_regs(t));
		tenet_record_begin(c->log, &now, out);
	}
	return is_fine ? NULL : "the thread is gone";
}

void plat_do_log(struct plat_conn *c, struct gdb_span args)
{
	struct buf text = {0};
	struct gdb_span one;
	uint64_t nums[4] = {0}, done = 0;
	pid_t tid = -1;
	bool is_good = gdb_next_field(&args, ';', &one) && plat_take_thread_id(&one, &tid) && !one.len;
	for (int i = 0; i < 4 && is_good; i++)
		is_good = gdb_next_field(&args, ';', &one) && gdb_is_hex(one, &nums[i]);
	struct plat_thread *t = is_good ? plat_thread_find(&c->inf, tid) : NULL;
	const char *why = t ? begin(c, t, nums[0] == 1, &text) : "malformed packet, or there is no such thread";
	uint64_t steps = MIN(nums[1], (uint64_t)STEPS_MAX), room = MIN(nums[2], (uint64_t)TEXT_MAX);
	bool goes_on = !why;
	if (goes_on && nums[3])
		t->deliver = nums[3] <= 255 ? plat_signal_in(c, (int)nums[3]) : 0;
	while (goes_on && done < steps && text.len < room && !text.failed) {
		goes_on = step(c, tid, &text);
		done += goes_on;
	}
	c->g_tid = 0;
	size_t start = gdb_begin(&c->out);
	if (why) {
		plat_error(c, EINVAL, why);
	} else {
		buf_printf(&c->out, "%c%llx;", goes_on ? 'm' : 'l', (unsigned long long)done);
		gdb_escape(&c->out, text.data, text.len);
	}
	gdb_end(&c->out, start);
	buf_fini(&text);
}
