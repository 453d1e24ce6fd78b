/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_BPF_RECORD_BPF_H
#define LIVE_TRACE_BPF_RECORD_BPF_H

#ifdef __bpf__ /* clang's target; for nobody else */

#include "live/trace/bpf/kernel.h"
#include "live/trace/trace_event.h"
#include "live/trace/trace_wire.h"

/* Maps and globals, and how a record gets its number and into the ring. */

#define HEAD_LEN (sizeof(struct trace_wire))
#define BUF_LEN 16384                    /* where a slot may begin */
#define BUF_TAIL (TRACE_LIMIT_MAX + 128) /* and how long it may be */
#define TMP_LEN 256                      /* pointers of a string array, which are not recorded */

/*
 * The page of a CPU in which records are put together, with the state of the loop that reads arguments. The state is
 * kept in memory whose contents the verifier does not follow: it would else go through the loop once for every value
 * of each.
 */
struct scratch {
	struct {
		uint64_t one;           /* 1: how many there are where nothing says */
		uint64_t slot;          /* offset of the slot being filled; as all offsets here, in this struct */
		uint64_t off;           /* where its next byte goes */
		uint64_t base;          /* the slot that TRACE_READ_*_BASE refers to */
		uint64_t elem, left;    /* next pointer of an array, and how many there are */
		uint64_t stride;        /* bytes from one to the next */
		uint64_t budget;        /* bytes the array's contents may still have */
		uint64_t next;          /* next row of the table */
		uint64_t src, size, full, read; /* the copy */
		uint64_t again;         /* it failed and is tried up to the end of the page */
		uint64_t reserved[2];
	} r;
	uint8_t buf[BUF_LEN + BUF_TAIL];
	uint8_t tmp[TMP_LEN + BUF_TAIL];
};
#define OFF_BUF offsetof(struct scratch, buf)
#define OFF_TMP offsetof(struct scratch, tmp)
_Static_assert(offsetof(struct scratch, r.one) == TRACE_OFF_ONE, "");
_Static_assert(OFF_BUF + offsetof(struct trace_wire, args) == TRACE_OFF_ARGS, "");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct scratch);
} scratches SEC(".maps");

/* When the thread's call began, by tid. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, uint64_t);
} times SEC(".maps");

const volatile struct trace_config cfg = {};
struct trace_shared shared = {};

/* The verifier is shown the bound where the value is used. */
#define BOUND(v, max) ({ HIDE(v); if ((v) > (max)) (v) = (max); })
#define HIDE(var) asm volatile("" : "+r"(var)) /* the compiler forgets what it knows of it, the verifier does not */

static __always_inline bool is_recorded(uint32_t tid)
{
	uint64_t word = shared.threads[tid / 64 % (TRACE_TIDS / 64)];
	return ((word >> (tid % 64)) ^ cfg.invert) & 1;
}

static __always_inline void set_recorded(uint32_t tid, bool yes)
{
	uint64_t *word = &shared.threads[tid / 64 % (TRACE_TIDS / 64)], bit = 1ull << (tid % 64);
	if (yes ^ (cfg.invert & 1))
		__sync_fetch_and_or(word, bit);
	else
		__sync_fetch_and_and(word, ~bit);
}

static __always_inline struct trace_cpu *this_cpu(void)
{
	return &shared.cpu[bpf_get_smp_processor_id() % TRACE_CPUS];
}

static __always_inline void load_args(struct trace_wire *w, struct pt_regs *regs, uint32_t abi)
{
#if defined(__TARGET_ARCH_arm64)
	w->args[0] = LOAD(regs, orig_x0);
	w->args[1] = LOAD(regs, user_regs.regs[1]);
	w->args[2] = LOAD(regs, user_regs.regs[2]);
	w->args[3] = LOAD(regs, user_regs.regs[3]);
	w->args[4] = LOAD(regs, user_regs.regs[4]);
	w->args[5] = LOAD(regs, user_regs.regs[5]);
#else
	if (abi) {
		w->args[0] = (uint32_t)LOAD(regs, bx);
		w->args[1] = (uint32_t)LOAD(regs, cx);
		w->args[2] = (uint32_t)LOAD(regs, dx);
		w->args[3] = (uint32_t)LOAD(regs, si);
		w->args[4] = (uint32_t)LOAD(regs, di);
		w->args[5] = (uint32_t)LOAD(regs, bp);
		return;
	}
	w->args[0] = LOAD(regs, di);
	w->args[1] = LOAD(regs, si);
	w->args[2] = LOAD(regs, dx);
	w->args[3] = LOAD(regs, r10);
	w->args[4] = LOAD(regs, r8);
	w->args[5] = LOAD(regs, r9);
#endif
}

/* ip, sp and the beginning of the stack. */
static __always_inline void put_user(struct trace_wire_user *u, struct pt_regs *regs)
{
	uint32_t len = cfg.stack_len, got = len;
#if defined(__TARGET_ARCH_arm64)
	uint64_t sp = LOAD(regs, user_regs.sp);
	u->ip = LOAD(regs, user_regs.pc);
	u->bp_off = LOAD(regs, user_regs.regs[29]) - sp;
#else
	uint64_t sp = LOAD(regs, sp);
	u->ip = LOAD(regs, ip);
	u->bp_off = LOAD(regs, bp) - sp;
#endif
	u->sp = sp;
	u->area_len = (uint16_t)len;
	if (len && bpf_probe_read_user(u + 1, len, (void *)sp)) {
		got = -(uint32_t)sp & 4095; /* to the end of the page */
		if (got >= len || bpf_probe_read_user(u + 1, got, (void *)sp))
			got = 0;
	}
	u->stack_len = (uint16_t)got;
}

/* The flags of the record with this number: the reader has a timer, and is woken only now and then. */
static __always_inline uint64_t wake(uint32_t seq)
{
	return seq % 1024 ? BPF_RB_NO_WAKEUP : BPF_RB_FORCE_WAKEUP;
}

static __always_inline struct scratch *get_scratch(void)
{
	uint32_t zero = 0;
	return bpf_map_lookup_elem(&scratches, &zero);
}

/* Numbers the record in s->buf, s->r.off bytes, and sends it. */
static __always_inline void send(struct scratch *s, uint32_t kind, uint32_t tid)
{
	uint64_t len = s->r.off;
	struct trace_wire *w = (struct trace_wire *)s->buf;
	uint32_t cpu = bpf_get_smp_processor_id();
	struct trace_cpu *c = &shared.cpu[cpu % TRACE_CPUS];
	uint32_t seq = (uint32_t)++c->seen;
	w->time = bpf_ktime_get_boot_ns();
	w->tid = tid;
	w->seq = seq;
	w->nr = 0;
	w->cpu = (uint16_t)cpu;
	w->kind = (uint8_t)kind;
	w->flags = 0;
	BOUND(len, BUF_LEN + BUF_TAIL);
	if (bpf_ringbuf_output(&ring, s->buf, len, wake(seq)))
		c->lost++;
}

#endif
#endif
