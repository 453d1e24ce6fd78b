/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_BPF_RECORD_BPF_H
#define LIVE_TRACE_BPF_RECORD_BPF_H

#ifdef __bpf__ /* clang's target; for nobody else */

#include "live/trace/bpf/kernel.h"
#include "live/trace/trace_event.h"
#include "live/trace/trace_wire.h"

/* Maps and globals, and how a record gets its number and its place. */

#define FRAME_LEN 8
#define HEAD_LEN (FRAME_LEN + sizeof(struct trace_wire))
#define BUF_LEN 16384                    /* where a slot may begin */
#define BUF_TAIL (TRACE_LIMIT_MAX + 128) /* and how long it may be */
#define OFF_TMP 24576                    /* pointers of a string array, which are not recorded */
#define OFF_MASK 32767                   /* all offsets are in it, */
#define LEN_MASK 8191                    /* and all lengths in this */
_Static_assert(BUF_LEN + BUF_TAIL <= OFF_TMP && OFF_MASK + LEN_MASK + 64 <= TRACE_RING_RECORD && TRACE_LIMIT_MAX + 2 <= LEN_MASK, "");
_Static_assert(FRAME_LEN + offsetof(struct trace_wire, args) == TRACE_OFF_ARGS, "");

/*
 * The state of the loop that reads arguments, at the head of a CPU's ring. It is kept in memory whose contents the
 * verifier does not follow: it would else go through the loop once for every value of each.
 */
struct state {
	uint64_t slot;          /* offset in the framed record of the slot being filled; as all offsets here */
	uint64_t off;           /* where its next byte goes */
	uint64_t base;          /* the slot that TRACE_READ_*_BASE refers to */
	uint64_t elem, left;    /* next pointer of an array, and how many there are */
	uint64_t stride;        /* bytes from one to the next */
	uint64_t budget;        /* bytes the array's contents may still have */
	uint64_t next;          /* next row of the table */
	uint64_t src, size, full, read; /* the copy */
	uint64_t paths;         /* hashes of strings as the call began, the next one in the lower half */
};

/* A record being made, where it will stay: nobody reads it before the ring's head is behind it. */
struct rec {
	struct state *s;
	uint8_t *p;             /* its frame */
	struct trace_cpu *c;
};

#define WIRE(r) ((struct trace_wire *)((r)->p + FRAME_LEN))

/*
 * Rings. One for all CPUs (BPF_MAP_TYPE_RINGBUF) costs a lock, three helper calls and, for a record whose length is not known
 * beforehand, another copy: 50 to 80 ns of the 120 to 250 that a record took. Programs at tracepoints run with
 * preemption off and not in interrupts, so a CPU's own ring needs none of that.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(uint32_t));
	__uint(value_size, TRACE_RING_HEAD + TRACE_RING_RECORD);
} rings SEC(".maps");

/* Cgroups of the containers that are meant. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TRACE_CONTAINERS);
	__type(key, uint64_t);
	__type(value, uint64_t);
} containers SEC(".maps");

/* What wakes the reader. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536); /* a multiple of every page size */
} bell SEC(".maps");

const volatile struct trace_config cfg = {};
struct trace_shared shared = {};

/* The verifier is shown the bound where the value is used. */
#define BOUND(v, max) ({ HIDE(v); if ((v) > (max)) (v) = (max); })
/* The same for what is known to be in the mask: shorter, and no two ways for the verifier to follow. */
#define MASK(v, mask) ({ HIDE(v); (v) &= (mask); })
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

/* ip, sp and the beginning of the stack, as far as it is read at once; gives how much that is. */
static __always_inline uint64_t put_user(struct trace_wire_user *u, struct pt_regs *regs)
{
	uint64_t got = cfg.stack_len;
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
	/* So little above a stack pointer that it cannot be read is rare. */
	if (got && bpf_probe_read_user(u + 1, (uint32_t)got, (void *)sp))
		got = 0;
	u->area_len = u->stack_len = (uint16_t)got;
	return got;
}

/*
 * Whether the word at sp is an address near ip, as a return address is in a library that calls itself: functions of the C library have
 * large frames, and who called those is wanted.
 */
static __always_inline bool is_near(const struct trace_wire_user *u)
{
	return *(const uint64_t *)(u + 1) - u->ip + TRACE_NEAR < 2 * TRACE_NEAR;
}

/* More of the stack, behind what put_user has read: of what cannot be read there is what lies in the page. */
static __always_inline uint64_t put_more(struct trace_wire_user *u, bool is_deep)
{
	uint64_t more = is_deep ? cfg.stack_deep : cfg.stack_more, got = u->stack_len, sp = u->sp + got;
	uint8_t *to = (uint8_t *)(u + 1) + cfg.stack_len;
	if (!got || !more)
		return 0;
	if (bpf_probe_read_user(to, (uint32_t)more, (void *)sp)) {
		more = -sp & 4088;
		if (more >= cfg.stack_deep || bpf_probe_read_user(to, (uint32_t)more, (void *)sp))
			return 0;
	}
	u->area_len = u->stack_len = (uint16_t)(got + more);
	return more;
}

/* The ring of this CPU: never none. */
static __always_inline uint8_t *ring_of(uint64_t cpu)
{
	uint32_t key = (uint32_t)cpu;
	return bpf_map_lookup_elem(&rings, &key);
}

/* Where the next record of this CPU goes; false: a new turn has to begin. */
static __always_inline bool find_room(struct rec *r, uint64_t cpu)
{
	r->c = &shared.cpu[cpu % TRACE_CPUS];
	r->s = (struct state *)ring_of(cpu);
	uint64_t at = *(volatile uint32_t *)&r->c->head, room = r->c->room;
	if (room > cfg.ring_last) /* never, but the verifier does not know */
		room = cfg.ring_last;
	if (!r->s || at >= room)
		return false;
	r->p = (uint8_t *)r->s + TRACE_RING_HEAD + at;
	return true;
}

static __always_inline void set_head(struct trace_cpu *c, uint64_t head)
{
#if defined(__TARGET_ARCH_x86)
	asm volatile("" : : : "memory"); /* stores are seen in their order */
	*(volatile uint64_t *)&c->head = head;
#else
	__sync_lock_test_and_set(&c->head, head);
#endif
}

/*
 * Begins a turn with the first segment that was read; false: there is none, which counts a record as lost. Who reads has a timer
 * and is woken only where so much waits that this may be too late, once a turn: waking takes as long as fifty records.
 */
static __always_inline bool begin_turn(uint64_t cpu)
{
	struct trace_cpu *c = &shared.cpu[cpu % TRACE_CPUS];
	uint8_t *ring = ring_of(cpu);
	if (!ring)
		return false;
	struct trace_turns *t = (struct trace_turns *)(ring + TRACE_RING_TURNS);
	struct state *s = (struct state *)ring;
	uint64_t turn = t->turn, tail = *(volatile uint64_t *)&c->tail;
	s->next = TRACE_SEGMENTS;
#pragma clang loop unroll(disable)
	for (uint64_t i = 0; i < TRACE_SEGMENTS && i < cfg.seg_cnt; i++) {
		if (t->used[i] <= tail) {
			s->next = i;
			break;
		}
	}
	uint64_t seg = s->next;
	if (seg >= TRACE_SEGMENTS) {
		c->seen++;
		c->lost++;
		return false;
	}
	uint64_t at = seg * (cfg.seg_len + TRACE_RING_RECORD);
	t->turns[turn % TRACE_TURNS].end = (uint32_t)c->head;
	turn++;
	t->turns[turn % TRACE_TURNS].begin = (uint32_t)at;
	t->used[seg] = turn + 1;
	t->turn = turn;
	c->room = at + cfg.seg_len;
	set_head(c, turn << 32 | at);
	if (turn - tail > cfg.seg_cnt / 4)
		bpf_ringbuf_output(&bell, s, FRAME_LEN, BPF_RB_FORCE_WAKEUP);
	return true;
}

/* Begins a record where nothing else goes on to what begins a turn. */
static __always_inline bool begin(struct rec *r, uint64_t cpu)
{
	return find_room(r, cpu) || (begin_turn(cpu) && find_room(r, cpu));
}

/* It is `len` bytes long with its frame, a multiple of 8. */
static __always_inline void end(struct rec *r, uint64_t len)
{
	struct trace_cpu *c = r->c;
	uint64_t seen = c->seen + 1;
	*(uint64_t *)r->p = len - FRAME_LEN;
	WIRE(r)->seq = (uint32_t)seen;
	c->seen = seen;
	set_head(c, c->head + len);
}

/* Ends a record of r->s->off bytes that is no system call's. */
static __always_inline void send(struct rec *r, uint32_t kind, uint32_t tid)
{
	uint64_t len = r->s->off;
	struct trace_wire *w = WIRE(r);
	w->time = bpf_ktime_get_boot_ns();
	w->tid = tid;
	w->nr = 0;
	w->cpu = (uint16_t)bpf_get_smp_processor_id();
	w->kind = (uint8_t)kind;
	w->flags = 0;
	MASK(len, OFF_MASK);
	end(r, len);
}

#endif
#endif
