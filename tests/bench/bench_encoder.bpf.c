/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What src/live/trace/bpf/trace.bpf.c is measured against: the same record of the same calls, filtered the same way and
 * with the same statuses, by a switch over each argument's type, unrolled six times, as tracers do it; and a program that
 * does nothing.
 */
#include "live/trace/bpf/record.bpf.h"
#include "bench_encoder.h"

char bench_license[] SEC("license") = "GPL";

#define AT(s, type, off) (*(type *)((uint8_t *)(s) + (off)))
#define ELEMS 26

/* Begins a slot; gives its offset. */
static __always_inline uint64_t begin(struct scratch *s, uint64_t off, uint32_t how, uint64_t full)
{
	off = (off + 7) & ~7ull;
	BOUND(off, OFF_BUF + BUF_LEN);
	AT(s, uint32_t, off) = how;
	AT(s, uint32_t, off + 4) = (uint32_t)full;
	s->r.slot = off;
	s->r.off = off + sizeof(struct trace_wire_slot);
	return off;
}

static __always_inline void mark(struct scratch *s, uint32_t status)
{
	uint64_t slot = s->r.slot;
	BOUND(slot, OFF_BUF + BUF_LEN);
	AT(s, uint8_t, slot + 3) |= (uint8_t)status;
}

static __always_inline void grow(struct scratch *s, uint64_t got)
{
	uint64_t slot = s->r.slot;
	BOUND(slot, OFF_BUF + BUF_LEN);
	AT(s, uint16_t, slot) += got;
	s->r.off += got;
}

/* Copies `size` of `full` bytes to the end of the slot, else what lies in the first page. */
static __always_inline uint64_t copy_bytes(struct scratch *s, uint64_t src, uint64_t size, uint64_t full)
{
	uint64_t dst = s->r.off, rest = 4096 - (src & 4095);
	BOUND(dst, OFF_BUF + BUF_LEN);
	BOUND(size, TRACE_LIMIT_MAX);
	if (!src || !size)
		return 0;
	if (bpf_probe_read_user((uint8_t *)s + dst, (uint32_t)size, (void *)src)) {
		if (size > rest)
			size = rest;
		BOUND(size, TRACE_LIMIT_MAX);
		mark(s, TRACE_FAULTED);
		if (bpf_probe_read_user((uint8_t *)s + dst, (uint32_t)size, (void *)src))
			size = 0;
	} else if (size < full) {
		mark(s, TRACE_TRUNCATED);
	}
	grow(s, size);
	return size;
}

static __always_inline uint64_t copy_string(struct scratch *s, uint64_t src, uint64_t size, bool keeps_nul)
{
	uint64_t dst = s->r.off;
	BOUND(dst, OFF_BUF + BUF_LEN);
	BOUND(size, TRACE_LIMIT_MAX + 2);
	if (!src)
		return 0;
	int64_t n = bpf_probe_read_user_str((uint8_t *)s + dst, (uint32_t)size, (void *)src);
	if (n < 0)
		return copy_bytes(s, src, size, size);
	uint64_t got = n;
	if (got == size) {
		mark(s, TRACE_TRUNCATED);
		got -= 2;
	} else if (got && !keeps_nul) {
		got--;
	}
	grow(s, got);
	return got;
}

/* The loops over elements are functions of their own: inlined six times the verifier gives up on them. */
__attribute__((noinline)) int copy_strings(struct scratch *s, uint64_t src, uint64_t limit)
{
	if (!s)
		return 0;
	s->r.budget = limit;
#pragma clang loop unroll(disable)
	for (uint64_t i = 0; i < ELEMS; i++) {
		uint64_t p = 0, budget = s->r.budget;
		if (bpf_probe_read_user(&p, sizeof(p), (void *)(src + 8 * i))) {
			mark(s, TRACE_FAULTED);
			return 0;
		}
		if (!p)
			return 0;
		s->r.budget = budget - copy_string(s, p, budget + 2, true);
	}
	mark(s, TRACE_TRUNCATED);
	return 0;
}

__attribute__((noinline)) int copy_data(struct scratch *s, uint64_t iov, uint64_t len, uint32_t how, uint64_t limit)
{
	if (!s)
		return 0;
	begin(s, s->r.off, how | TRACE_PART_DATA << (24 + TRACE_WIRE_PART_SHIFT), 0);
	s->r.budget = limit;
	s->r.elem = iov;
#pragma clang loop unroll(disable)
	for (uint64_t i = 0; i < ELEMS; i++) {
		uint64_t at = s->r.elem, budget = s->r.budget;
		BOUND(at, OFF_BUF + BUF_LEN);
		if (i >= len / 16)
			return 0;
		uint64_t base = AT(s, uint64_t, at), size = AT(s, uint64_t, at + 8);
		s->r.elem = at + 16;
		s->r.budget = budget - copy_bytes(s, base, size < budget ? size : budget, size);
	}
	return 0;
}

static __always_inline void copy_msghdr(struct scratch *s, uint64_t src, uint32_t how, uint64_t limit)
{
	uint64_t at = s->r.off;
	if (copy_bytes(s, src, 56, 56) < 56)
		return;
	BOUND(at, OFF_BUF + BUF_LEN);
	const uint64_t *m = (const uint64_t *)((uint8_t *)s + at);
	uint64_t len = (uint32_t)m[1];
	begin(s, s->r.off, how | TRACE_PART_NAME << (24 + TRACE_WIRE_PART_SHIFT), len);
	copy_bytes(s, m[0], len < 128 ? len : 128, len);
	len = m[5];
	begin(s, s->r.off, how | TRACE_PART_CONTROL << (24 + TRACE_WIRE_PART_SHIFT), len);
	copy_bytes(s, m[4], len < 256 ? len : 256, len);
	len = m[3] * 16;
	begin(s, s->r.off, how | TRACE_PART_IOV << (24 + TRACE_WIRE_PART_SHIFT), len);
	uint64_t iov = s->r.off, got = copy_bytes(s, m[2], len < 256 ? len : 256, len);
	copy_data(s, iov, got, how, limit);
}

/* One argument: which case it is decides its size, source and number. */
static __always_inline void put_arg(struct scratch *s, uint32_t arg, const volatile struct bench_arg *a, uint64_t ret)
{
	const uint64_t *args = ((struct trace_wire *)s->buf)->args;
	uint64_t src = args[arg], limit = a->limit, n = args[a->partner & 7];
	uint32_t how = arg << 16;
	bool works = (int64_t)ret >= 0;

	if (s->r.off > OFF_BUF + BUF_LEN - 8)
		return;
	switch (a->type) {
	case BENCH_STR:
		begin(s, s->r.off, how, 0);
		copy_string(s, src, limit + 2, false);
		break;
	case BENCH_STRV:
		begin(s, s->r.off, how, 0);
		if (src)
			copy_strings(s, src, limit);
		break;
	case BENCH_FIXED_IN:
		begin(s, s->r.off, how, limit);
		copy_bytes(s, src, limit, limit);
		break;
	case BENCH_FIXED_OUT:
		if (!works)
			break;
		begin(s, s->r.off, how | 1u << 30, limit);
		copy_bytes(s, src, limit, limit);
		break;
	case BENCH_BYTES_IN:
		begin(s, s->r.off, how, n);
		copy_bytes(s, src, n < limit ? n : limit, n);
		break;
	case BENCH_BYTES_OUT:
		if (!works)
			break;
		n = n < ret ? n : ret;
		begin(s, s->r.off, how | 1u << 30, n);
		copy_bytes(s, src, n < limit ? n : limit, n);
		break;
	case BENCH_SOCKADDR_OUT:
		if (!works)
			break;
		src = n;
		n = 0;
		bpf_probe_read_user(&n, 4, (void *)src);
		begin(s, s->r.off, how | 1u << 30, n);
		copy_bytes(s, args[arg], n < 128 ? n : 128, n);
		break;
	case BENCH_IOVEC_IN:
	case BENCH_IOVEC_OUT:
		if (a->type == BENCH_IOVEC_OUT && works)
			how |= 1u << 30;
		n = (n < 4096 ? n : 4096) * 16;
		begin(s, s->r.off, how, n);
		uint64_t iov = s->r.off, got = copy_bytes(s, src, n < 256 ? n : 256, n);
		copy_data(s, iov, got, how, limit);
		break;
	case BENCH_ARRAY_IN:
		n = (n < 4096 ? n : 4096) * 16;
		begin(s, s->r.off, how, n);
		copy_bytes(s, src, n < limit ? n : limit, n);
		break;
	case BENCH_MSGHDR:
		begin(s, s->r.off, how, 56);
		copy_msghdr(s, src, how, limit);
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
	uint64_t cpu = LOAD(task, thread_info.cpu), len = cfg.fixed_len;
	struct trace_cpu *c = &shared.cpu[cpu % TRACE_CPUS];
	uint32_t seq = (uint32_t)++c->seen;
	const volatile struct bench_call *call = &bench.calls[idx];
	struct scratch *s = NULL;
	struct trace_wire *w;
	if (call->cnt) {
		s = get_scratch();
		w = s ? (struct trace_wire *)s->buf : NULL;
	} else {
		w = bpf_ringbuf_reserve(&ring, cfg.fixed_len, 0);
	}
	if (!w) {
		c->lost++;
		return 0;
	}
	w->time = bpf_ktime_get_boot_ns();
	w->tid = tid;
	w->seq = seq;
	w->nr = (int32_t)nr;
	w->cpu = (uint16_t)cpu;
	w->kind = TRACE_SYSCALL;
	w->flags = (uint8_t)cfg.flags;
	load_args(w, regs, 0);
	w->ret = (int64_t)ctx[1];
	if (cfg.flags & TRACE_WIRE_USER)
		put_user((struct trace_wire_user *)(w + 1), regs);
	if (!s) {
		bpf_ringbuf_submit(w, wake(seq));
		return 0;
	}
	s->r.off = OFF_BUF + cfg.fixed_len;
#pragma unroll
	for (uint32_t i = 0; i < 6; i++)
		put_arg(s, i, &call->args[i], ctx[1]);
	len = ((s->r.off + 7) & ~7ull) - OFF_BUF;
	BOUND(len, BUF_LEN + BUF_TAIL);
	if (bpf_ringbuf_output(&ring, w, len, wake(seq)))
		c->lost++;
	return 0;
}

SEC("tp_btf/sys_exit")
int bench_empty(uint64_t *ctx)
{
	(void)ctx;
	return 0;
}
