/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory, and what stops a program in it: int3 in place of the first byte of an instruction, and the four debug registers of x86 (Intel SDM,
 * volume 3, 18.2 "Debug registers"), which are of each thread.
 */
#include "live/platform/plat_inf_int.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#define INT3 0xcc
#define BREAKS_MAX 65536
#define DR6_STEP (1u << 14)
#define PAGE_LEN 4096u

void plat_mem_renew(struct plat_inf *inf)
{
	char path[32];
	if (inf->mem_fd >= 0)
		close(inf->mem_fd);
	snprintf(path, sizeof(path), "/proc/%d/mem", inf->pid);
	inf->mem_fd = open(path, O_RDWR | O_CLOEXEC);
	inf->breaks.cnt = 0;
	inf->watches.cnt = 0;
	inf->dr7 = 0;
}

int plat_mem_poke(struct plat_inf *inf, uint64_t va, const void *bytes, size_t len)
{
	const char *p = bytes;
	while (len) {
		ssize_t n = va > INT64_MAX ? -1 : pwrite(inf->mem_fd, p, len, (off_t)va);
		if (n <= 0)
			return va > INT64_MAX || !n ? -EIO : -errno;
		p += n;
		va += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

/* What is readable, page by page where the whole is not. */
static size_t read_raw(struct plat_inf *inf, uint64_t va, uint8_t *ret, size_t len)
{
	size_t got = 0;
	struct iovec to = {ret, len}, from = {(void *)(uintptr_t)va, len};
	ssize_t n = process_vm_readv(inf->pid, &to, 1, &from, 1, 0);
	if (n > 0)
		got = (size_t)n;
	/* /proc/PID/mem also gives what the program itself may not read. */
	while (got < len && va + got <= INT64_MAX) {
		size_t part = MIN(len - got, PAGE_LEN - (va + got) % PAGE_LEN);
		n = pread(inf->mem_fd, ret + got, part, (off_t)(va + got));
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	return got;
}

size_t plat_mem_read(struct plat_inf *inf, uint64_t va, void *ret, size_t len)
{
	uint8_t *p = ret;
	if (inf->pid <= 0 || inf->is_exited)
		return 0;
	if (len > UINT64_MAX - va)
		len = (size_t)(UINT64_MAX - va);
	len = read_raw(inf, va, ret, len);
	for (size_t i = 0; i < inf->breaks.cnt; i++) {
		const struct plat_break *b = &inf->breaks.data[i];
		if (b->is_in && b->va - va < len)
			p[b->va - va] = b->saved;
	}
	return len;
}

int plat_mem_write(struct plat_inf *inf, uint64_t va, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	int status = inf->pid <= 0 || inf->is_exited ? -ESRCH : len > UINT64_MAX - va ? -EIO : plat_mem_poke(inf, va, bytes, len);
	for (size_t i = 0; i < inf->breaks.cnt && !status; i++) {
		struct plat_break *b = &inf->breaks.data[i];
		if (!b->is_in || b->va - va >= len)
			continue;
		b->saved = p[b->va - va];
		status = plat_mem_poke(inf, b->va, &(uint8_t){INT3}, 1);
	}
	return status;
}

/* --- breakpoints ---------------------------------------------------------------------------------------------------- */

struct plat_break *plat_break_find(struct plat_inf *inf, uint64_t va)
{
	for (size_t i = 0; i < inf->breaks.cnt; i++)
		if (inf->breaks.data[i].va == va)
			return &inf->breaks.data[i];
	return NULL;
}

int plat_break_add(struct plat_inf *inf, uint64_t va)
{
	struct plat_break b = {.va = va};
	if (inf->pid <= 0 || inf->is_exited)
		return -ESRCH;
	if (plat_break_find(inf, va))
		return 0;
	if (inf->breaks.cnt >= BREAKS_MAX)
		return -ENOSPC;
	if (read_raw(inf, va, &b.saved, 1) != 1)
		return -EFAULT;
	int status = inf->in_vfork ? 0 : plat_mem_poke(inf, va, &(uint8_t){INT3}, 1);
	b.is_in = !status && !inf->in_vfork;
	if (!status && !VEC_PUSH(&inf->breaks, b)) {
		(void)plat_mem_poke(inf, va, &b.saved, 1);
		status = -ENOMEM;
	}
	return status;
}

int plat_break_del(struct plat_inf *inf, uint64_t va)
{
	struct plat_break *b = plat_break_find(inf, va);
	if (!b)
		return 0;
	int status = b->is_in ? plat_mem_poke(inf, va, &b->saved, 1) : 0;
	*b = inf->breaks.data[--inf->breaks.cnt];
	/* Memory that was unmapped meanwhile has none any more. */
	return status == -EIO || status == -EFAULT ? 0 : status;
}

void plat_breaks_out(struct plat_inf *inf, pid_t pid)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
	for (size_t i = 0; i < inf->breaks.cnt && fd >= 0; i++) {
		struct plat_break *b = &inf->breaks.data[i];
		if (!b->is_in)
			continue;
		(void)!pwrite(fd, &b->saved, 1, (off_t)b->va);
		b->is_in = pid != inf->pid;
	}
}

void plat_breaks_in(struct plat_inf *inf)
{
	for (size_t i = 0; i < inf->breaks.cnt; i++) {
		struct plat_break *b = &inf->breaks.data[i];
		if (!b->is_in && read_raw(inf, b->va, &b->saved, 1) == 1)
			b->is_in = !plat_mem_poke(inf, b->va, &(uint8_t){INT3}, 1);
	}
}

/* --- debug registers ------------------------------------------------------------------------------------------------ */

static bool poke_dr(const struct plat_thread *t, unsigned idx, uint64_t v)
{
	return ptrace(PTRACE_POKEUSER, t->tid, offsetof(struct user, u_debugreg) + idx * sizeof(v), v) == 0;
}

void plat_watch_apply(struct plat_inf *inf, struct plat_thread *t)
{
	if (!t->is_stopped || (t->dr7 == inf->dr7 && !inf->dr7))
		return;
	/* Addresses change only while nothing uses them. */
	if (!poke_dr(t, 7, 0))
		return;
	for (unsigned i = 0; i < PLAT_DEBUG_REGS; i++)
		if (inf->dr7 >> (2 * i) & 3 && !poke_dr(t, i, inf->dr[i]))
			return;
	if (inf->dr7 && !poke_dr(t, 7, inf->dr7))
		return;
	t->dr7 = inf->dr7;
}

unsigned plat_watch_hit(struct plat_thread *t)
{
	errno = 0;
	long dr6 = ptrace(PTRACE_PEEKUSER, t->tid, offsetof(struct user, u_debugreg) + 6 * sizeof(uint64_t), 0);
	if (dr6 == -1 && errno)
		return 0;
	(void)poke_dr(t, 6, 0);
	return (unsigned)dr6 & (0xf | DR6_STEP);
}

/* Sets the registers anew from the list; false when they do not suffice. Lengths are 1, 2, 4 or 8 bytes at a multiple of that. */
static bool lay_out(struct plat_inf *inf)
{
	static const uint8_t len_bits[9] = {[1] = 0, [2] = 1, [4] = 3, [8] = 2};
	unsigned used = 0;
	inf->dr7 = 0;
	for (size_t i = 0; i < inf->watches.cnt; i++) {
		struct plat_watch *w = &inf->watches.data[i];
		uint64_t va = w->va, left = w->kind == '1' ? 1 : w->len;
		w->slots = 0;
		while (left) {
			unsigned len = 8;
			while (va % len || len > left)
				len /= 2;
			if (used == PLAT_DEBUG_REGS)
				return false;
			uint64_t bits = w->kind == '1' ? 0 : w->kind == '2' ? 1 : 3;
			inf->dr[used] = va;
			inf->dr7 |= 1ull << (2 * used) | (bits | (uint64_t)len_bits[len] << 2) << (16 + 4 * used);
			w->slots = (uint8_t)(w->slots | 1u << used++);
			va += len;
			left -= len;
		}
	}
	return true;
}

static struct plat_watch *watch_find(struct plat_inf *inf, uint8_t kind, uint64_t va, uint32_t len)
{
	for (size_t i = 0; i < inf->watches.cnt; i++) {
		struct plat_watch *w = &inf->watches.data[i];
		if (w->kind == kind && w->va == va && (w->len == len || kind == '1'))
			return w;
	}
	return NULL;
}

int plat_watch_add(struct plat_inf *inf, uint8_t kind, uint64_t va, uint32_t len)
{
	struct plat_watch w = {.va = va, .len = len, .kind = kind};
	if (inf->pid <= 0 || inf->is_exited)
		return -ESRCH;
	if (watch_find(inf, kind, va, len))
		return 0;
	if ((kind != '1' && (!len || len > 8 * PLAT_DEBUG_REGS)) || va > INT64_MAX - 64)
		return -EINVAL;
	if (!VEC_PUSH(&inf->watches, w))
		return -ENOMEM;
	int status = lay_out(inf) ? 0 : -ENOSPC;
	/* The kernel has a word in it, too. */
	if (!status && inf->current) {
		plat_watch_apply(inf, inf->current);
		status = inf->current->dr7 == inf->dr7 ? 0 : -EINVAL;
	}
	if (status) {
		inf->watches.cnt--;
		(void)lay_out(inf);
	}
	return status;
}

int plat_watch_del(struct plat_inf *inf, uint8_t kind, uint64_t va, uint32_t len)
{
	struct plat_watch *w = watch_find(inf, kind, va, len);
	if (!w)
		return 0;
	*w = inf->watches.data[--inf->watches.cnt];
	(void)lay_out(inf);
	return 0;
}
