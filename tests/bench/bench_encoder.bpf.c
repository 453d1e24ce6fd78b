/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What src/live/trace/bpf/trace.bpf.c is measured against: the same record of the same calls, filtered the same way and
 * with the same statuses, by a switch over each argument's type, unrolled six times, as tracers do it; and a program that
 * does nothing.
 */
#include "live/trace/bpf/record.bpf.h"
#include "bench_encoder.h"

char bench_license[] SEC("license") = "GPL";

#define AT(p, type, off) (*(type *)((uint8_t *)(p) + (off)))
#define ELEMS 26

/* As much of the ring as a record may take: what functions are told of it. */
struct page {
	uint8_t bytes[TRACE_RING_RECORD];
};

/* Begins a slot; gives its offset. */
static __always_inline uint64_t open_slot(struct state *s, struct page *p, uint64_t off, uint32_t how, uint64_t full)
{
	off = (off + 7) & ~7ull;
	BOUND(off, BUF_LEN);
	AT(p, uint32_t, off) = how;
	AT(p, uint32_t, off + 4) = (uint32_t)full;
	s->slot = off;
	s->off = off + sizeof(struct trace_wire_slot);
	return off;
}

static __always_inline void mark(struct state *s, struct page *p, uint32_t status)
{
	uint64_t slot = s->slot;
	BOUND(slot, BUF_LEN);
	AT(p, uint8_t, slot + 3) |= (uint8_t)status;
}

static __always_inline void grow(struct state *s, struct page *p, uint64_t got)
{
	uint64_t slot = s->slot;
	BOUND(slot, BUF_LEN);
	AT(p, uint16_t, slot) += got;
	s->off += got;
}

/* Copies `size` of `full` bytes to the end of the slot, else what lies in the first page. */
static __always_inline uint64_t copy_bytes(struct state *s, struct page *p, uint64_t src, uint64_t size, uint64_t full)
{
	uint64_t dst = s->off, rest = 4096 - (src & 4095);
	BOUND(dst, BUF_LEN);
	BOUND(size, TRACE_LIMIT_MAX);
	if (!src || !size)
		return 0;
	if (bpf_probe_read_user(p->bytes + dst, (uint32_t)size, (void *)src)) {
		if (size > rest)
			size = rest;
		BOUND(size, TRACE_LIMIT_MAX);
		mark(s, p, TRACE_FAULTED);
		if (bpf_probe_read_user(p->bytes + dst, (uint32_t)size, (void *)src))
			size = 0;
	} else if (size < full) {
		mark(s, p, TRACE_TRUNCATED);
	}
	grow(s, p, size);
	return size;
}

static __always_inline uint64_t copy_string(struct state *s, struct page *p, uint64_t src, uint64_t size, bool keeps_nul)
{
	uint64_t dst = s->off;
	BOUND(dst, BUF_LEN);
	BOUND(size, TRACE_LIMIT_MAX + 2);
	if (!src)
		return 0;
	int64_t n = bpf_probe_read_user_str(p->bytes + dst, (uint32_t)size, (void *)src);
	if (n < 0)
		return copy_bytes(s, p, src, size, size);
	uint64_t got = n;
	if (got == size) {
		mark(s, p, TRACE_TRUNCATED);
		got -= 2;
	} else if (got && !keeps_nul) {
		got--;
	}
	grow(s, p, got);
	return got;
}

/* The loops over elements are functions of their own: inlined six times the verifier gives up on them. */
__attribute__((noinline)) int copy_strings(struct state *s, struct page *p, uint64_t src, uint64_t limit)
{
	if (!s || !p)
		return 0;
	s->budget = limit;
#pragma clang loop unroll(disable)
	for (uint64_t i = 0; i < ELEMS; i++) {
		uint64_t ptr = 0, budget = s->budget;
		if (bpf_probe_read_user(&ptr, sizeof(ptr), (void *)(src + 8 * i))) {
			mark(s, p, TRACE_FAULTED);
			return 0;
		}
		if (!ptr)
			return 0;
		s->budget = budget - copy_string(s, p, ptr, budget + 2, true);
	}
	mark(s, p, TRACE_TRUNCATED);
	return 0;
}

__attribute__((noinline)) int copy_iovecs(struct state *s, struct page *p, uint64_t len, uint32_t how)
{
	if (!s || !p)
		return 0;
	open_slot(s, p, s->off, how | TRACE_PART_DATA << (24 + TRACE_WIRE_PART_SHIFT), 0);
#pragma clang loop unroll(disable)
	for (uint64_t i = 0; i < ELEMS; i++) {
		uint64_t at = s->elem, budget = s->budget;
		BOUND(at, BUF_LEN);
		if (i >= len / 16)
			return 0;
		uint64_t base = AT(p, uint64_t, at), size = AT(p, uint64_t, at + 8);
		s->elem = at + 16;
		s->budget = budget - copy_bytes(s, p, base, size < budget ? size : budget, size);
	}
	return 0;
}

static __always_inline void copy_data(struct state *s, struct page *p, uint64_t iov, uint64_t len, uint32_t how, uint64_t limit)
{
	s->budget = limit;
	s->elem = iov;
	copy_iovecs(s, p, len, how);
}

static __always_inline void copy_msghdr(struct state *s, struct page *p, uint64_t src, uint32_t how, uint64_t limit)
{
	uint64_t at = s->off;
	if (copy_bytes(s, p, src, 56, 56) < 56)
		return;
	BOUND(at, BUF_LEN);
	const uint64_t *m = (const uint64_t *)(p->bytes + at);
	uint64_t len = (uint32_t)m[1];
	open_slot(s, p, s->off, how | TRACE_PART_NAME << (24 + TRACE_WIRE_PART_SHIFT), len);
	copy_bytes(s, p, m[0], len < 128 ? len : 128, len);
	len = m[5];
	open_slot(s, p, s->off, how | TRACE_PART_CONTROL << (24 + TRACE_WIRE_PART_SHIFT), len);
	copy_bytes(s, p, m[4], len < 256 ? len : 256, len);
	len = m[3] * 16;
	open_slot(s, p, s->off, how | TRACE_PART_IOV << (24 + TRACE_WIRE_PART_SHIFT), len);
	uint64_t iov = s->off, got = copy_bytes(s, p, m[2], len < 256 ? len : 256, len);
	copy_data(s, p, iov, got, how, limit);
}

/* One argument: which case it is decides its size, source and number. */
static __always_inline void put_arg(struct state *s, struct page *p, uint32_t arg, const volatile struct bench_arg *a, uint64_t ret)
{
	const uint64_t *args = ((struct trace_wire *)(p->bytes + FRAME_LEN))->args;
	uint64_t src = args[arg], limit = a->limit, n = args[a->partner & 7];
	uint32_t how = arg << 16;
	bool works = (int64_t)ret >= 0;

	if (s->off > BUF_LEN - 8)
		return;
	switch (a->type) {
	case BENCH_STR:
		open_slot(s, p, s->off, how, 0);
		copy_string(s, p, src, limit + 2, false);
		break;
	case BENCH_STRV:
		open_slot(s, p, s->off, how, 0);
		if (src)
			copy_strings(s, p, src, limit);
		break;
	case BENCH_FIXED_IN:
		open_slot(s, p, s->off, how, limit);
		copy_bytes(s, p, src, limit, limit);
		break;
	case BENCH_ANY:
		open_slot(s, p, s->off, how | (works ? 1u << 30 : 0), limit);
		copy_bytes(s, p, src, limit, limit);
		break;
	case BENCH_FIXED_OUT:
		if (!works)
			break;
		open_slot(s, p, s->off, how | 1u << 30, limit);
		copy_bytes(s, p, src, limit, limit);
		break;
	case BENCH_BYTES_IN:
		open_slot(s, p, s->off, how, n);
		copy_bytes(s, p, src, n < limit ? n : limit, n);
		break;
	case BENCH_BYTES_OUT:
		if (!works)
			break;
		n = n < ret ? n : ret;
		open_slot(s, p, s->off, how | 1u << 30, n);
		copy_bytes(s, p, src, n < limit ? n : limit, n);
		break;
	case BENCH_SOCKADDR_OUT:
		if (!works)
			break;
		src = n;
		n = 0;
		bpf_probe_read_user(&n, 4, (void *)src);
		open_slot(s, p, s->off, how | 1u << 30, n);
		copy_bytes(s, p, args[arg], n < 128 ? n : 128, n);
		break;
	case BENCH_IOVEC_IN:
	case BENCH_IOVEC_OUT:
		if (a->type == BENCH_IOVEC_OUT && works)
			how |= 1u << 30;
		n = (n < 4096 ? n : 4096) * 16;
		open_slot(s, p, s->off, how, n);
		uint64_t iov = s->off, got = copy_bytes(s, p, src, n < 256 ? n : 256, n);
		copy_data(s, p, iov, got, how, limit);
		break;
	case BENCH_ARRAY_IN:
		n = (n < 4096 ? n : 4096) * 16;
		open_slot(s, p, s->off, how, n);
		copy_bytes(s, p, src, n < limit ? n : limit, n);
		break;
	case BENCH_MSGHDR:
		open_slot(s, p, s->off, how, 56);
		copy_msghdr(s, p, src, how, limit);
		break;
	}
}

const volatile struct bench_config bench SEC(".rodata.bench") = {};

SEC("tp_btf/sys_exit")
int bench_switch(uint64_t *ctx)
{
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	uint64_t nr = SYSCALL_NR(regs), idx = nr < TRACE_IDS - 1 ? nr : TRACE_IDS - 1;
	if (LOAD(regs, cx) != LOAD(regs, ip) || !(shared.exit_ids[0][idx / 64] >> (idx % 64) & 1))
		return 0;
	struct task_struct *task = bpf_get_current_task_btf();
	uint32_t tid = LOAD(task, pid);
	if (!is_recorded(tid))
		return 0;
	uint64_t cpu = LOAD(task, thread_info.cpu), len = FRAME_LEN + cfg.fixed_len;
	const volatile struct bench_call *call = &bench.calls[idx];
	struct rec rec, *r = &rec;
	if (!begin(r, cpu))
		return 0;
	struct trace_wire *w = WIRE(r);
	w->time = bpf_ktime_get_boot_ns();
	w->tid = tid;
	w->nr = (int32_t)nr;
	w->cpu = (uint16_t)cpu;
	w->kind = TRACE_SYSCALL;
	w->flags = (uint8_t)cfg.flags;
	load_args(w, regs, 0);
	w->ret = (int64_t)ctx[1];
	if (cfg.flags & TRACE_WIRE_USER)
		len += put_user((struct trace_wire_user *)(w + 1), regs);
	if (call->cnt) {
		r->s->off = len;
#pragma unroll
		for (uint32_t i = 0; i < 6; i++)
			put_arg(r->s, (struct page *)r->p, i, &call->args[i], ctx[1]);
		len = (r->s->off + 7) & ~7ull;
	}
	MASK(len, OFF_MASK);
	end(r, len);
	return 0;
}

/* What no record of such calls does without: the clock, and copies of as many bytes from where they are. */
SEC("tp_btf/sys_exit")
int bench_least(uint64_t *ctx)
{
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	uint64_t nr = SYSCALL_NR(regs), idx = nr < TRACE_IDS - 1 ? nr : TRACE_IDS - 1;
	if (!(shared.exit_ids[0][idx / 64] >> (idx % 64) & 1))
		return 0;
	uint8_t *p = ring_of(bpf_get_smp_processor_id());
	if (!p)
		return 0;
	p += TRACE_RING_SCRATCH;
	*(uint64_t *)p = bpf_ktime_get_boot_ns();
#if defined(__TARGET_ARCH_x86)
	switch (nr) {
	case 80: /* chdir */
		bpf_probe_read_user_str(p, TRACE_LIMIT_MAX, (void *)LOAD(regs, di));
		break;
	case 158: /* arch_prctl */
		bpf_probe_read_user(p, 8, (void *)LOAD(regs, si));
		break;
	case 175: /* init_module */
		bpf_probe_read_user(p, 32, (void *)LOAD(regs, di));
		bpf_probe_read_user_str(p, TRACE_LIMIT_MAX, (void *)LOAD(regs, dx));
		break;
	case 311: /* process_vm_writev */
		bpf_probe_read_user(p, 16, (void *)LOAD(regs, si));
		bpf_probe_read_user(p, 8, (void *)LOAD(regs, si));
		bpf_probe_read_user(p, 16, (void *)LOAD(regs, r10));
		break;
	}
#endif
	return 0;
}

SEC("tp_btf/sys_exit")
int bench_empty(uint64_t *ctx)
{
	(void)ctx;
	return 0;
}
