/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An execution log, made where the program is: a thread is stepped many times for one packet, and what each step changed comes back as the
 * text of live/tenet. What memory an instruction touches follows from its operands (arch->accesses); what is read is taken before the step,
 * what is written after it. A system call may write anywhere: after one, all that the log has stated is compared with what is there.
 *
 * vScryLog:THREAD;NEW;STEPS;BYTES;SIGNAL -> mSTEPS;TEXT or lSTEPS;TEXT. NEW 1 begins a log with the thread as it is. At most that many steps
 * and, but for the last of them, bytes. `m`: nothing else stopped it; `l`: something did, which `?` tells.
 */
#include "live/platform/plat_conn.h"

#include "arch/arch.h"
#include "base/bits.h"
#include "base/map.h"
#include "live/tenet/tenet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REG_CNT = 17, REG_PC = 16, ACCESSES = 8, ACCESS_LEN = 4096, PAGE = 4096, PAGES_MAX = 16384, STEPS_MAX = 1 << 20, TEXT_MAX = 1 << 20 };

/* A page as the log has stated it. */
struct log_page {
	uint64_t va;
	uint64_t known[PAGE / 64];
	uint8_t bytes[PAGE];
};

struct plat_log {
	const struct arch *arch;
	uint64_t regs[REG_CNT];        /* that were stated last */
	VEC(struct log_page *) pages;
	struct map page_at;
};

static const char *const reg_names[REG_CNT] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8",
					       "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip"};

void plat_log_free(struct plat_log *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->pages.cnt; i++)
		free(l->pages.data[i]);
	VEC_FREE(&l->pages);
	map_fini(&l->page_at);
	free(l);
}

static void take_regs(const struct user_regs_struct *r, uint64_t out[REG_CNT])
{
	const uint64_t all[REG_CNT] = {r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp, r->rsi, r->rdi, r->r8,
				       r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip};
	memcpy(out, all, sizeof(all));
}

/* The page of an address; null: it is not kept, and not made. */
static struct log_page *page_of(struct plat_log *l, uint64_t va, bool may_make)
{
	uint32_t i;
	if (map_find(&l->page_at, va / PAGE, &i))
		return l->pages.data[i];
	struct log_page *p = may_make && l->pages.cnt < PAGES_MAX ? calloc(1, sizeof(*p)) : NULL;
	if (!p)
		return NULL;
	p->va = va / PAGE * PAGE;
	if (!map_put(&l->page_at, va / PAGE, (uint32_t)l->pages.cnt) || !VEC_PUSH(&l->pages, p)) {
		free(p);
		return NULL;
	}
	return p;
}

static void state(struct plat_log *l, uint8_t kind, uint64_t va, const uint8_t *bytes, size_t len, struct buf *out)
{
	if (len)
		tenet_put_access(out, kind, va, bytes, len);
	for (size_t i = 0; i < len; i++) {
		struct log_page *p = page_of(l, va + i, true);
		if (!p)
			continue;
		p->bytes[(va + i) % PAGE] = bytes[i];
		bits_set(p->known, (va + i) % PAGE);
	}
}

/* What the accesses of one kind have in memory now. */
static void put_accesses(struct plat_conn *c, const struct arch_access *all, size_t cnt, uint8_t kind, struct buf *out)
{
	uint8_t bytes[ACCESS_LEN];
	for (size_t i = 0; i < cnt; i++)
		if (all[i].kinds & kind)
			state(c->log, kind == ARCH_ACCESS_READ ? TENET_READ : TENET_WRITE, all[i].va, bytes,
			      plat_mem_read(&c->inf, all[i].va, bytes, MIN(all[i].len, (uint32_t)ACCESS_LEN)), out);
}

/* What was stated and is not so any more. */
static void put_changes(struct plat_conn *c, struct buf *out)
{
	uint8_t now[PAGE];
	for (size_t i = 0; i < c->log->pages.cnt; i++) {
		struct log_page *p = c->log->pages.data[i];
		size_t got = plat_mem_read(&c->inf, p->va, now, PAGE);
		for (size_t k = 0; k < got;) {
			size_t n = 0;
			while (k + n < got && bits_get(p->known, k + n) && now[k + n] != p->bytes[k + n])
				n++;
			if (n)
				state(c->log, TENET_WRITE, p->va + k, now + k, n, out);
			k += n + 1;
		}
	}
}

static void put_line(struct plat_log *l, const struct user_regs_struct *r, bool is_whole, struct buf *accesses, struct buf *out)
{
	uint64_t now[REG_CNT], mask = 1u << REG_PC;
	take_regs(r, now);
	for (unsigned i = 0; i < REG_CNT; i++)
		if (is_whole || now[i] != l->regs[i])
			mask |= 1u << i;
	memcpy(l->regs, now, sizeof(now));
	buf_add_ch(accesses, 0);
	tenet_put(out, reg_names, now, mask, accesses->failed ? "" : accesses->data);
	accesses->len = 0;
}

static bool is_syscall(const uint8_t *code, size_t len)
{
	return len >= 2 && ((code[0] == 0x0f && (code[1] == 0x05 || code[1] == 0x34)) || (code[0] == 0xcd && code[1] == 0x80));
}

/* One step of the thread. False: it, or the whole, stands for another reason, or the client is gone. */
static bool step(struct plat_conn *c, pid_t tid, struct buf *accesses, struct buf *out)
{
	struct plat_thread *t = plat_thread_find(&c->inf, tid);
	const struct user_regs_struct *r = t ? plat_regs(t) : NULL;
	struct arch_access touched[ACCESSES];
	uint8_t code[16];
	if (!r)
		return false;
	const struct user_regs_struct before = *r;
	size_t len = plat_mem_read(&c->inf, r->rip, code, c->log->arch->max_len);
	struct arch_machine m = {.pc = r->rip, .fs_base = r->fs_base, .gs_base = r->gs_base};
	uint64_t regs[REG_CNT];
	take_regs(r, regs);
	memcpy(m.regs, regs, 16 * sizeof(*regs));
	size_t cnt = len ? c->log->arch->accesses(c->log->arch, code, len, &m, touched, ACCESSES) : 0;
	put_accesses(c, touched, cnt, ARCH_ACCESS_READ, accesses);
	/* Others stand still, but while this one may wait for them. */
	for (size_t i = 0; i < c->inf.threads.cnt; i++)
		c->inf.threads.data[i]->action = is_syscall(code, len) ? PLAT_CONT : PLAT_HOLD;
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
		accesses->len = 0;
		return false;
	}
	put_accesses(c, touched, cnt, ARCH_ACCESS_WRITE, accesses);
	if (is_syscall(code, len))
		put_changes(c, accesses);
	put_line(c->log, r, false, accesses, out);
	for (size_t i = 0; i < c->inf.breaks.cnt && is_step; i++)
		if (c->inf.breaks.data[i].va == r->rip) {
			t->reason = PLAT_STOP_BREAK;
			return false;
		}
	return is_step;
}

static const char *begin(struct plat_conn *c, struct plat_thread *t, bool is_new, struct buf *out)
{
	struct buf none = {0};
	if (!is_new)
		return c->log ? NULL : "no log was begun";
	plat_log_free(c->log);
	c->log = calloc(1, sizeof(*c->log));
	struct err *e = c->log ? arch_get(ARCH_ID_X86_64, &c->log->arch) : &err_nomem;
	bool is_fine = !e && plat_regs(t);
	err_free(e);
	if (is_fine)
		put_line(c->log, plat_regs(t), true, &none, out);
	buf_fini(&none);
	return is_fine ? NULL : "the thread is gone";
}

void plat_do_log(struct plat_conn *c, struct gdb_span args)
{
	struct buf accesses = {0}, text = {0};
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
	while (goes_on && done < steps && text.len < room && !text.failed && !accesses.failed) {
		goes_on = step(c, tid, &accesses, &text);
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
	buf_fini(&accesses);
	buf_fini(&text);
}
