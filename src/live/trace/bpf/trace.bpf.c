/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/bpf/process.bpf.h"

/*
 * The programs that run at every system call. What decides their cost, in this order: they run for calls nobody wants
 * (so the first thing looked at is a bit for the call, the second one for the thread), each helper call costs as much
 * as twenty instructions (so members are loaded through typed pointers), and code that is not there needs no verifier
 * (so one loop reads all arguments as a table says). A record of a call whose memory nobody reads is made in place in
 * the ring, any other in the scratch page of its CPU.
 */
char trace_license[] SEC("license") = "GPL"; /* the kernel gives helpers that read memory to such programs only */


/* What is rare has programs of its own: calls of 32-bit code, mappings. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, TRACE_RARE_CNT);
	__type(key, uint32_t);
	__type(value, uint32_t);
} rare_exit SEC(".maps"), rare_enter SEC(".maps");

#define STEPS 32 /* copies one record may take: arguments, and elements of their arrays */

#define AT(s, type, off) (*(type *)((uint8_t *)(s) + (off)))

/* The copy of the next string or buffer of an array; false: there is none. */
static __always_inline bool next_elem(struct scratch *s, uint32_t width)
{
	uint64_t elem = s->r.elem, size = s->r.budget, src, full;
	BOUND(elem, OFF_TMP + TMP_LEN);
	if (width == 4) {
		src = AT(s, uint32_t, elem);
		full = AT(s, uint32_t, elem + 4);
	} else {
		src = AT(s, uint64_t, elem);
		full = AT(s, uint64_t, elem + 8);
	}
	s->r.elem = elem + s->r.stride;
	s->r.left--;
	s->r.src = src;
	if (s->r.read == TRACE_READ_STR) {
		s->r.size = size + 2;
		s->r.full = s->r.left ? 0 : TRACE_LIMIT_MAX + 1; /* there was no null pointer */
		if (!src)
			s->r.left = 0;
		return src;
	}
	s->r.size = size < full ? size : full;
	s->r.full = full;
	return full;
}

/* The copy of a row of the table; false: not of this call. */
static __always_inline bool next_row(struct scratch *s, const volatile struct trace_read_arg *a, uint32_t width)
{
	uint64_t flags = a->flags, ret = ((struct trace_wire *)s->buf)->ret, is_out = ~ret >> 63 & flags >> 1;
	uint64_t base = s->r.base, src = a->src, cnt = a->cnt, off = (s->r.off + 7) & ~7ull;
	if (!(flags >> is_out & 1))
		return false;
	BOUND(base, OFF_BUF + BUF_LEN);
	if (flags & TRACE_READ_SRC_BASE)
		src += base;
	src = AT(s, uint64_t, src);
	if (flags & TRACE_READ_CNT_BASE)
		cnt += base;
	cnt = AT(s, uint64_t, cnt);
	if (flags & TRACE_READ_CNT_32)
		cnt = (uint32_t)cnt;
	if (is_out & flags >> 2 && cnt > ret) /* TRACE_READ_BY_RET */
		cnt = ret;
	if (cnt > 0x7fffffff)
		cnt = 0x7fffffff;

	BOUND(off, OFF_BUF + BUF_LEN);
	uint64_t elem_len = a->size, full = cnt * elem_len, size = a->copy, read = a->read;
	s->r.budget = a->limit;
	AT(s, uint32_t, off) = a->how | (uint32_t)is_out << (24 + TRACE_WIRE_PHASE_SHIFT);
	AT(s, uint32_t, off + 4) = (uint32_t)full;
	s->r.slot = off;
	if (flags & TRACE_READ_IS_BASE)
		s->r.base = off;
	s->r.off = off + sizeof(struct trace_wire_slot);
	s->r.read = read;
	s->r.stride = 0;
	if (read == TRACE_READ_DATA) {
		s->r.stride = 2 * width;
		s->r.elem = base + sizeof(struct trace_wire_slot);
		s->r.left = AT(s, uint16_t, base) / (2 * width);
		return false;
	}
	if (elem_len && size > full)
		size = full;
	s->r.src = src;
	s->r.size = size;
	s->r.full = full;
	return src && size;
}

/*
 * Reads what the arguments lead to into slots from `off` on; gives where they end. A step of the loop is one
 * copy: what a row of the table says, else the next string or buffer of the array that was copied before, else the
 * rest of its page when a copy failed. So all of it has one place that copies and one that tells how that went.
 */
static __always_inline uint64_t read_args(struct scratch *s, const volatile struct trace_desc *d, uint32_t width)
{
	s->r.off = OFF_BUF + cfg.fixed_len;
	s->r.one = 1;
	s->r.left = s->r.next = s->r.again = 0;

	for (int step = 0; step < STEPS; step++) {
		if (s->r.again) {
			uint64_t rest = 4096 - (s->r.src & 4095);
			if (s->r.size > rest)
				s->r.size = rest;
		} else if (s->r.left) {
			if (!next_elem(s, width))
				continue;
		} else {
			uint64_t next = s->r.next;
			if (next >= d->cnt || next >= TRACE_ROWS || s->r.off > OFF_BUF + BUF_LEN - 8)
				break;
			s->r.next = next + 1;
			if (!next_row(s, &d->rows[next], width))
				continue;
		}

		uint64_t read = s->r.read, size = s->r.size, dst = s->r.off, slot = s->r.slot, got, status = 0;
		void *src = (void *)s->r.src;
		if (read == TRACE_READ_STRV)
			dst = OFF_TMP;
		BOUND(dst, OFF_TMP);
		BOUND(size, TRACE_LIMIT_MAX + 2);
		got = size;
		int64_t n;
		if (read == TRACE_READ_STR) {
			n = bpf_probe_read_user_str((uint8_t *)s + dst, (uint32_t)size, src);
			got = n;
		} else {
			n = bpf_probe_read_user((uint8_t *)s + dst, (uint32_t)size, src);
		}
		if (n < 0) {
			if (!s->r.again) {
				s->r.again = 1;
				if (read == TRACE_READ_STR)
					s->r.read = TRACE_READ_BYTES;
				continue;
			}
			got = 0;
		}
		if (read == TRACE_READ_STR) {
			if (got == size) {
				status = TRACE_TRUNCATED;
				got -= 2;
			} else if (got && !s->r.stride) {
				got--; /* only the strings of an array keep their NUL */
			}
		}
		if (got < s->r.full)
			status = TRACE_TRUNCATED;
		if (s->r.again)
			status = TRACE_FAULTED;
		BOUND(slot, OFF_BUF + BUF_LEN);
		if (status) {
			AT(s, uint8_t, slot + 3) |= (uint8_t)status;
			s->r.left = s->r.again = 0;
		}
		if (read == TRACE_READ_STRV) {
			s->r.elem = OFF_TMP;
			s->r.stride = width;
			s->r.left = got / width;
			s->r.read = TRACE_READ_STR;
			continue;
		}
		AT(s, uint16_t, slot) += got;
		s->r.off += got;
		s->r.budget -= got; /* of use in arrays alone */
	}
	return (s->r.off + 7) & ~7ull;
}

enum which { EXIT, ENTRY, MAPS_EXIT, COMPAT_EXIT, COMPAT_ENTRY };

/* One call of a thread that is recorded: the record at its end or beginning. */
static __always_inline void record(void *ctx, struct pt_regs *regs, uint64_t nr, int64_t ret, enum which which)
{
	bool is_entry = which == ENTRY || which == COMPAT_ENTRY;
	uint32_t abi = which == COMPAT_ENTRY || which == COMPAT_EXIT;
	uint64_t idx = nr < TRACE_IDS - 1 ? nr : TRACE_IDS - 1; /* the last bit and row are for all that have none of their own */
	if (!((is_entry ? shared.enter_ids : shared.exit_ids)[abi][idx / 64] >> (idx % 64) & 1))
		return;
	struct task_struct *task = bpf_get_current_task_btf();
	uint32_t tid = LOAD(task, pid);
	if (!is_recorded(tid))
		return;
	const volatile struct trace_desc *d = &cfg.desc[abi][idx];
	uint64_t cpu = LOAD(task, thread_info.cpu), len = cfg.fixed_len, flags = d->flags;
	if (which == EXIT && flags & TRACE_DESC_MAPS) {
		bpf_tail_call(ctx, &rare_exit, TRACE_RARE_MAPS);
		return;
	}
	struct trace_cpu *c = &shared.cpu[cpu % TRACE_CPUS];
	uint32_t seq = (uint32_t)++c->seen;
	struct scratch *s = NULL;
	struct trace_wire *w;
	if (d->cnt && (!is_entry || flags & TRACE_DESC_ENTRY_SLOTS)) {
		s = get_scratch();
		w = s ? (struct trace_wire *)s->buf : NULL;
	} else {
		w = bpf_ringbuf_reserve(&ring, cfg.fixed_len, 0);
	}
	if (!w)
		goto lost;
	w->time = bpf_ktime_get_boot_ns();
	w->tid = tid;
	w->seq = seq;
	w->nr = (int32_t)nr;
	w->cpu = (uint16_t)cpu;
	w->kind = TRACE_SYSCALL;
	w->flags = (uint8_t)(cfg.flags | abi << TRACE_WIRE_ABI_SHIFT | is_entry * TRACE_WIRE_ENTRY);
	load_args(w, regs, abi);
	w->ret = ret;
	uint64_t *behind = (uint64_t *)(w + 1);
	if (cfg.flags & TRACE_WIRE_TIMED) {
		uint64_t *began = bpf_map_lookup_elem(&times, &tid);
		*behind = 0;
		if (began && *began && !is_entry) {
			*behind = w->time - *began;
			*began = 0;
		}
		behind++;
	}
	if (cfg.flags & TRACE_WIRE_USER)
		put_user((struct trace_wire_user *)behind, regs);
	uint64_t how = wake(seq);
	if (s) {
		len = read_args(s, d, abi ? 4 : 8) - OFF_BUF;
		BOUND(len, BUF_LEN + BUF_TAIL);
		if (bpf_ringbuf_output(&ring, w, len, how))
			goto lost;
	} else {
		bpf_ringbuf_submit(w, how);
	}
	return;
lost:
	c->lost++;
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

SEC(HOOK("sys_exit"))
int trace_sys_exit(uint64_t *ctx)
{
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	if (is_compat(regs))
		bpf_tail_call(ctx, &rare_exit, TRACE_RARE_COMPAT);
	else
		record(ctx, regs, SYSCALL_NR(regs), (int64_t)ctx[1], EXIT);
	return 0;
}

/* Keeps when a call began that will have a record at its end. */
static __always_inline void begin_time(uint64_t nr)
{
	uint64_t idx = nr < TRACE_IDS - 1 ? nr : TRACE_IDS - 1;
	if (!(shared.exit_ids[0][idx / 64] >> (idx % 64) & 1))
		return;
	struct task_struct *task = bpf_get_current_task_btf();
	uint32_t tid = LOAD(task, pid);
	uint64_t *began = is_recorded(tid) ? bpf_map_lookup_elem(&times, &tid) : NULL;
	if (began)
		*began = bpf_ktime_get_boot_ns();
}

SEC(HOOK("sys_enter"))
int trace_sys_enter(uint64_t *ctx)
{
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	if (cfg.flags & TRACE_WIRE_TIMED)
		begin_time(ctx[1]);
	if (is_compat(regs))
		bpf_tail_call(ctx, &rare_enter, TRACE_RARE_COMPAT);
	else
		record(ctx, regs, ctx[1], -38, ENTRY);
	return 0;
}

SEC(HOOK("sys_exit"))
int trace_maps_exit(uint64_t *ctx)
{
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	uint64_t nr = SYSCALL_NR(regs);
	if (nr < TRACE_IDS && !(cfg.desc[0][nr].flags & TRACE_DESC_HIDDEN))
		record(ctx, regs, nr, (int64_t)ctx[1], MAPS_EXIT);
	put_mapping(regs, nr, (int64_t)ctx[1]);
	return 0;
}

SEC(HOOK("sys_exit"))
int trace_compat_exit(uint64_t *ctx)
{
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	record(ctx, regs, SYSCALL_NR(regs), (int64_t)ctx[1], COMPAT_EXIT);
	return 0;
}

SEC(HOOK("sys_enter"))
int trace_compat_enter(uint64_t *ctx)
{
	record(ctx, (struct pt_regs *)ctx[0], ctx[1], -38, COMPAT_ENTRY);
	return 0;
}
