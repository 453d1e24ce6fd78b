/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/bpf/process.bpf.h"

/*
 * The programs that run at every system call. What decides their cost, in this order: they run for calls nobody wants
 * (so the first thing looked at is a bit for the call, the second one for the thread), each helper call costs as much
 * as twenty instructions (so members are loaded through typed pointers), and code that is not there needs no verifier
 * (so one loop reads all arguments as a table says). A record is made where it stays, in the ring of its
 * CPU (record.bpf.h).
 *
 * Where an empty program at the end of a call takes 36 ns, a record of numbers takes 95, and one with 1.6 copies in the mean
 * 145. Taken out one by one: looking at call and thread 5, the ring's place 2, the clock 30, what is written 20, copies 24
 * each, the loop around them 11 each (with its state in registers and a loop of its own for iovecs 9, for three times the
 * verifier's work), 256 bytes of stack 25. Going on to another program is an indirect jump: 16.
 */
char trace_license[] SEC("license") = "GPL"; /* the kernel gives helpers that read memory to such programs only */

/* What is rare has programs of its own: calls of 32-bit code, the next segment of a ring, mappings and what changes who is recorded. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, TRACE_RARE_CNT);
	__type(key, uint32_t);
	__type(value, uint32_t);
} rare_exit SEC(".maps"), rare_enter SEC(".maps");

#define STEPS 32 /* copies one record may take: arguments, and elements of their arrays */

#define AT(p, type, off) (*(type *)((p) + (off)))

/* What the table says of a call: by a way that hides from the compiler that the table is a constant of zeros. */
static __always_inline const struct trace_desc *desc_of(uint64_t abi, uint64_t idx)
{
	const struct trace_desc *d = (const struct trace_desc *)&cfg.desc[abi][idx];
	HIDE(d);
	return d;
}

/* The copy of the next string or buffer of an array; false: there is none. */
static __always_inline bool next_elem(struct state *s, uint8_t *p, uint32_t shift)
{
	uint64_t elem = s->elem, size = s->budget, src, full;
	MASK(elem, OFF_MASK);
	if (shift == 2) {
		src = AT(p, uint32_t, elem);
		full = AT(p, uint32_t, elem + 4);
	} else {
		src = AT(p, uint64_t, elem);
		full = AT(p, uint64_t, elem + 8);
	}
	s->elem = elem + s->stride;
	s->left--;
	s->src = src;
	if (s->read == TRACE_READ_STR) {
		s->size = size + 2;
		s->full = s->left ? 0 : TRACE_LIMIT_MAX + 1; /* there was no null pointer */
		if (!src)
			s->left = 0;
		return src;
	}
	s->size = size < full ? size : full;
	s->full = full;
	return full;
}

/* The copy of a row of the table; false: not of this call. */
static __always_inline bool next_row(struct state *s, uint8_t *p, const struct trace_read_arg *a, uint32_t shift, bool is_exec)
{
	uint64_t flags = a->flags, ret = AT(p, uint64_t, FRAME_LEN + offsetof(struct trace_wire, ret)), is_out = ~ret >> 63 & flags >> 1;
	uint64_t base = s->base, src = a->src, cnt = a->cnt, off = (s->off + 7) & ~7ull;
	if (!(flags >> is_out & 1))
		return false;
	MASK(base, OFF_MASK);
	if (!is_exec && flags & TRACE_READ_SRC_BASE)
		src += base;
	src = AT(p, uint64_t, src);
	if (shift == 2) /* what else the word has is its neighbour's */
		src = (uint32_t)src;
	if (flags & TRACE_READ_CNT_BASE)
		cnt += base;
	cnt = is_exec ? 0 : a->cnt ? AT(p, uint64_t, cnt) : 1;
	if (flags & TRACE_READ_CNT_32)
		cnt = (uint32_t)cnt;
	if (is_out & flags >> 2 && cnt > ret) /* TRACE_READ_BY_RET */
		cnt = ret;
	if (cnt >> 31)
		cnt = 0x7fffffff;

	MASK(off, OFF_MASK);
	uint64_t elem_len = a->size, full = cnt * elem_len, size = a->copy, read = a->read;
	s->budget = a->limit;
	uint32_t how = a->how, was = (uint32_t)full;
	if (how >> 31) { /* TRACE_WIRE_HASHED */
		was = (uint32_t)s->paths;
		s->paths >>= 32;
	}
	AT(p, uint32_t, off) = how | (uint32_t)is_out << (24 + TRACE_WIRE_PHASE_SHIFT);
	AT(p, uint32_t, off + 4) = was;
	s->slot = off;
	if (flags & TRACE_READ_IS_BASE)
		s->base = off;
	s->off = off + sizeof(struct trace_wire_slot);
	s->read = read;
	s->stride = 0;
	if (read == TRACE_READ_DATA) {
		s->stride = 2 << shift;
		s->elem = base + sizeof(struct trace_wire_slot);
		s->left = AT(p, uint16_t, base) >> (shift + 1);
		return false;
	}
	if (elem_len && size > full)
		size = full;
	s->src = src;
	s->size = size;
	s->full = full;
	return src >= a->least;
}

/*
 * Reads what the arguments lead to into slots from `off` on; gives where they end. A step of the loop is one
 * copy: what a row of the table says, else the next string or buffer of the array that was copied before. So all of it has
 * one place that copies and one that tells how that went. `is_exec`: there are only strings and arrays of them, which saves the verifier work.
 */
static __always_inline uint64_t read_args(struct state *s, uint8_t *p, const struct trace_desc *d, uint64_t off, uint32_t shift, bool is_exec)
{
	s->off = off;
	s->left = s->next = 0;

	for (int step = 0; step < STEPS; step++) {
		if (s->left) {
			if (!next_elem(s, p, shift))
				continue;
		} else {
			uint64_t next = s->next;
			if (next >= d->cnt || next >= TRACE_ROWS || s->off > BUF_LEN - 8)
				break;
			s->next = next + 1;
			if (!next_row(s, p, &d->rows[next], shift, is_exec))
				continue;
		}

		uint64_t read = s->read, size = s->size, dst = s->off, slot = s->slot, got, status = 0, src = s->src;
		if (read == TRACE_READ_STRV)
			dst = OFF_TMP;
		MASK(dst, OFF_MASK);
		MASK(size, LEN_MASK);
		got = size;
		int64_t n;
		if (read == TRACE_READ_STR) {
			n = bpf_probe_read_user_str(p + dst, (uint32_t)size, (void *)src);
			got = n;
		} else {
			n = bpf_probe_read_user(p + dst, (uint32_t)size, (void *)src);
		}
		if (n < 0) { /* then what lies before the next page */
			got = 4096 - (src & 4095);
			if (got > size)
				got = size;
			if (bpf_probe_read_user(p + dst, (uint32_t)got, (void *)src))
				got = 0;
			status = TRACE_FAULTED;
		} else if (got == size && read == TRACE_READ_STR) {
			got -= 2;
			status = TRACE_TRUNCATED;
		} else if (read == TRACE_READ_STR && !s->stride) {
			got--; /* only the strings of an array keep their NUL */
		} else if (got < s->full) {
			status = TRACE_TRUNCATED;
		}
		MASK(slot, OFF_MASK);
		if (status) {
			AT(p, uint8_t, slot + 3) |= (uint8_t)status;
			s->left = 0;
		}
		if (read == TRACE_READ_STRV) {
			s->elem = OFF_TMP;
			s->stride = 1 << shift;
			s->left = got >> shift;
			s->read = TRACE_READ_STR;
			continue;
		}
		AT(p, uint16_t, slot) += got;
		s->off += got;
		s->budget -= got; /* of use in arrays alone */
	}
	uint64_t slot = s->slot;
	MASK(slot, OFF_MASK);
	if (s->left) /* of an array not all was looked at */
		AT(p, uint8_t, slot + 3) |= TRACE_TRUNCATED;
	return (s->off + 7) & ~7ull;
}

enum { COMPAT = 1, ENTRY = 2, FULL = 4 };

/*
 * One call of a thread that is recorded: the record at its end, or at its beginning, when the caller knows that it is wanted. What takes
 * more goes on to the program that is FULL: calls that make code, change who is recorded, or want more of the stack.
 */
static __always_inline void record(void *ctx, struct pt_regs *regs, uint64_t nr, int64_t ret, uint32_t which)
{
	uint32_t abi = which & COMPAT;
	bool is_entry = which & ENTRY, is_full = which & FULL;
	uint64_t idx = nr < TRACE_IDS - 1 ? nr : TRACE_IDS - 1; /* the last bit and row are for all that have none of their own */
	if (!is_entry && !(shared.exit_ids[abi][idx / 64] >> (idx % 64) & 1))
		return;
	struct task_struct *task = bpf_get_current_task_btf();
	uint32_t tid = LOAD(task, pid);
	const struct trace_desc *d = desc_of(abi, idx);
	uint64_t cpu = LOAD(task, thread_info.cpu), flags = d->flags, how = cfg.flags;
	bool yes = is_entry || is_recorded(tid);
	if (!is_full) {
		if (!yes && (!cfg.match || flags < TRACE_DESC_JUDGE))
			return;
		if (flags >= TRACE_DESC_MORE)
			bpf_tail_call(ctx, &rare_exit, TRACE_RARE_FULL);
	} else if (!is_entry && (!yes || flags & TRACE_DESC_HIDDEN)) {
		goto after;
	}
	struct rec rec, *r = &rec;
	if (!find_room(r, cpu)) {
		if (is_entry)
			bpf_tail_call(ctx, &rare_enter, TRACE_RARE_TURN);
		else
			bpf_tail_call(ctx, &rare_exit, TRACE_RARE_TURN);
		return;
	}
	struct trace_wire *w = WIRE(r);
	w->time = bpf_ktime_get_boot_ns();
	w->tid = tid;
	w->nr = (int32_t)nr;
	w->cpu = (uint16_t)cpu;
	w->kind = TRACE_SYSCALL;
	w->flags = (uint8_t)(how | abi << TRACE_WIRE_ABI_SHIFT | is_entry * TRACE_WIRE_ENTRY);
	load_args(w, regs, abi);
	w->ret = ret;
	uint64_t *behind = (uint64_t *)(w + 1), len = FRAME_LEN + cfg.fixed_len;
	struct trace_begun *b = &shared.begun[tid % TRACE_BEGUN];
	if (how & TRACE_WIRE_TIMED) {
		*behind = 0;
		if (!is_entry && b->tid == tid)
			*behind = w->time - b->time;
		behind++;
	}
	if (how & TRACE_WIRE_USER) {
		struct trace_wire_user *u = (struct trace_wire_user *)behind;
		uint64_t got = put_user(u, regs);
		if (is_full)
			got += put_more(u, !abi && (flags & TRACE_DESC_DEEP || is_near(u)));
		else if (got && is_near(u))
			bpf_tail_call(ctx, &rare_exit, TRACE_RARE_FULL);
		len += got;
	}
	if (d->cnt && (!is_entry || (!abi && flags & TRACE_DESC_ENTRY_SLOTS))) {
		r->s->paths = !is_entry && b->tid == tid ? b->paths : 0;
		len = read_args(r->s, r->p, d, len, abi ? 2 : 3, is_entry);
	}
	if (how & TRACE_WIRE_TIMED && !is_entry) /* a new thread is first seen at a call's end, and may have an old one's number */
		b->tid = 0;
	MASK(len, OFF_MASK);
	end(r, len);
after:
	if (is_full && !is_entry && flags & (TRACE_DESC_MAPS | TRACE_DESC_JUDGE))
		bpf_tail_call(ctx, &rare_exit, TRACE_RARE_AFTER);
}

/*
 * Wanted calls and threads only. The numbers of i386 are another set; where the kernel was entered by `syscall`, which
 * leaves ip in rcx, it is not asked about that, as asking would be all that refusing a call costs.
 */
static __always_inline bool is_compat(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_arm64)
	return false;
#else
	if (LOAD(regs, cx) == LOAD(regs, ip))
		return false;
	struct task_struct *task = bpf_get_current_task_btf();
	return LOAD(task, thread_info.status) & 2; /* TS_COMPAT */
#endif
}

SEC(HOOK("raw_syscalls", "sys_exit"))
int trace_sys_exit(uint64_t *ctx)
{
	struct pt_regs *regs = REGS(ctx);
	if (is_compat(regs))
		bpf_tail_call(ctx, &rare_exit, TRACE_RARE_COMPAT);
	else
		record(ctx, regs, SYSCALL_NR(regs), EXIT_RET(ctx), 0);
	return 0;
}

/* The string at `src` as a hash, 0 where it cannot be read. `p` is room for it and TRACE_PATH_BLOCK bytes of zeros. */
static __always_inline uint64_t hash_string(uint8_t *p, const void *src, uint64_t size)
{
	MASK(size, LEN_MASK);
	int64_t n = bpf_probe_read_user_str(p, (uint32_t)size, src);
	if (n <= 0)
		return 0;
	uint64_t len = (uint64_t)n < size ? n - 1 : n - 2, hash = len;
	MASK(len, LEN_MASK);
	uint64_t *word = (uint64_t *)(p + len);
	word[0] = word[1] = word[2] = word[3] = 0;
	word = (uint64_t *)p;
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < TRACE_LIMIT_MAX && i < len; i += TRACE_PATH_BLOCK, word += 4) {
		hash = trace_path_step(hash, word[0]);
		hash = trace_path_step(hash, word[1]);
		hash = trace_path_step(hash, word[2]);
		hash = trace_path_step(hash, word[3]);
	}
	return trace_path_hash(hash);
}

static __always_inline uint64_t hash_paths(struct pt_regs *regs, uint32_t abi, const struct trace_desc *d)
{
	struct task_struct *task = bpf_get_current_task_btf();
	uint8_t *ring = ring_of(LOAD(task, thread_info.cpu));
	if (!ring)
		return 0;
	struct trace_wire *w = (struct trace_wire *)(ring + TRACE_RING_SCRATCH);
	load_args(w, regs, abi);
	uint64_t paths = 0, shift = 0;
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < TRACE_PATH_CNT; i++) {
		uint64_t arg = d->paths >> 8 * i & 0xff;
		if (arg == TRACE_NO_PATH)
			break;
		paths |= hash_string((uint8_t *)(w + 1), (const void *)w->args[arg & 7], cfg.path_size) << shift;
		shift += 32;
	}
	return paths;
}

/* Whether others run in the same memory: else nobody changes a path meanwhile, but for what is mapped shared. */
static __always_inline bool has_company(struct task_struct *task)
{
	struct mm_struct *mm = LOAD(task, mm);
	return LOAD(mm, mm_users.counter) > 1;
}

/* What has to be known of a call's beginning when it has ended, and its own record if it has one. */
static __always_inline void enter(void *ctx, struct pt_regs *regs, uint64_t nr, uint32_t abi)
{
	uint64_t idx = nr < TRACE_IDS - 1 ? nr : TRACE_IDS - 1;
	bool is_timed = cfg.flags & TRACE_WIRE_TIMED && shared.exit_ids[abi][idx / 64] >> (idx % 64) & 1;
	if (!is_timed && !(shared.enter_ids[abi][idx / 64] >> (idx % 64) & 1))
		return;
	struct task_struct *task = bpf_get_current_task_btf();
	uint32_t tid = LOAD(task, pid);
	const struct trace_desc *d = desc_of(abi, idx);
	if (!is_recorded(tid))
		return;
	struct trace_begun *b = &shared.begun[tid % TRACE_BEGUN];
	if (is_timed || d->flags & TRACE_DESC_PATHS) {
		b->paths = d->flags & TRACE_DESC_PATHS && has_company(task) ? hash_paths(regs, abi, d) : 0;
		b->time = is_timed ? bpf_ktime_get_boot_ns() : 0;
		b->tid = tid;
	}
	if (d->flags & TRACE_DESC_ENTRY)
		record(ctx, regs, nr, -38, abi | ENTRY | FULL);
}

SEC(HOOK("raw_syscalls", "sys_enter"))
int trace_sys_enter(uint64_t *ctx)
{
	struct pt_regs *regs = REGS(ctx);
	if (is_compat(regs))
		bpf_tail_call(ctx, &rare_enter, TRACE_RARE_COMPAT);
	else
		enter(ctx, regs, ENTER_NR(ctx), 0);
	return 0;
}

SEC(HOOK("raw_syscalls", "sys_exit"))
int trace_after_exit(uint64_t *ctx)
{
	struct pt_regs *regs = REGS(ctx);
	struct task_struct *task = bpf_get_current_task_btf();
	uint64_t nr = SYSCALL_NR(regs), flags = nr < TRACE_IDS ? desc_of(is_compat(regs), nr)->flags : 0;
	if (flags & TRACE_DESC_JUDGE && !EXIT_RET(ctx))
		judge_self(task);
	if (flags & TRACE_DESC_MAPS && is_recorded(LOAD(task, pid)))
		put_mapping(regs, nr, EXIT_RET(ctx));
	return 0;
}

SEC(HOOK("raw_syscalls", "sys_exit"))
int trace_compat_exit(uint64_t *ctx)
{
	struct pt_regs *regs = REGS(ctx);
	record(ctx, regs, SYSCALL_NR(regs), EXIT_RET(ctx), COMPAT | FULL);
	return 0;
}

SEC(HOOK("raw_syscalls", "sys_enter"))
int trace_compat_enter(uint64_t *ctx)
{
	enter(ctx, REGS(ctx), ENTER_NR(ctx), 1);
	return 0;
}

SEC(HOOK("raw_syscalls", "sys_exit"))
int trace_full_exit(uint64_t *ctx)
{
	struct pt_regs *regs = REGS(ctx);
	record(ctx, regs, SYSCALL_NR(regs), EXIT_RET(ctx), FULL);
	return 0;
}

/* No room: what could not be recorded is, once there is. */
SEC(HOOK("raw_syscalls", "sys_exit"))
int trace_turn_exit(uint64_t *ctx)
{
	if (begin_turn(bpf_get_smp_processor_id()))
		bpf_tail_call(ctx, &rare_exit, TRACE_RARE_AGAIN);
	return 0;
}

SEC(HOOK("raw_syscalls", "sys_enter"))
int trace_turn_enter(uint64_t *ctx)
{
	if (begin_turn(bpf_get_smp_processor_id()))
		bpf_tail_call(ctx, &rare_enter, TRACE_RARE_AGAIN);
	return 0;
}
