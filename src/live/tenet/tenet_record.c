/* SPDX-License-Identifier: Apache-2.0 */
#include "live/tenet/tenet_record.h"

#include "base/bits.h"
#include "base/map.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

enum { ACCESSES = 8, ACCESS_LEN = 4096, PAGE = 4096, PAGES_MAX = 16384 };

/* A page as the log has stated it. */
struct log_page {
	uint64_t va;
	uint64_t known[PAGE / 64];
	uint8_t bytes[PAGE];
};

struct tenet_record {
	const struct arch *arch;
	uint64_t regs[TENET_X64_REGS]; /* that were stated last */
	VEC(struct log_page *) pages;
	struct map page_at;
	struct arch_access touched[ACCESSES]; /* by the instruction that is stepped */
	size_t touched_cnt;
	bool is_syscall, is_vague;     /* it may touch what is not among these */
	struct buf accesses;           /* tokens of the line to come */
};

const char *const tenet_x64_names[TENET_X64_REGS] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8",
						     "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip"};

struct err *tenet_record_new(struct tenet_record **ret)
{
	struct tenet_record *r = calloc(1, sizeof(*r));
	struct err *e = r ? arch_get(ARCH_ID_X86_64, &r->arch) : &err_nomem;
	if (e)
		free(r);
	else
		*ret = r;
	return e;
}

void tenet_record_free(struct tenet_record *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->pages.cnt; i++)
		free(r->pages.data[i]);
	VEC_FREE(&r->pages);
	map_fini(&r->page_at);
	buf_fini(&r->accesses);
	free(r);
}

/* The page of an address, made when it is not kept; null: there are too many. */
static struct log_page *page_of(struct tenet_record *r, uint64_t va)
{
	uint32_t i;
	if (map_find(&r->page_at, va / PAGE, &i))
		return r->pages.data[i];
	struct log_page *p = r->pages.cnt < PAGES_MAX ? calloc(1, sizeof(*p)) : NULL;
	if (!p)
		return NULL;
	p->va = va / PAGE * PAGE;
	if (!map_put(&r->page_at, va / PAGE, (uint32_t)r->pages.cnt) || !VEC_PUSH(&r->pages, p)) {
		free(p);
		return NULL;
	}
	return p;
}

static void state(struct tenet_record *r, uint8_t kind, uint64_t va, const uint8_t *bytes, size_t len)
{
	if (len)
		tenet_put_access(&r->accesses, kind, va, bytes, len);
	for (size_t i = 0; i < len; i++) {
		struct log_page *p = page_of(r, va + i);
		if (!p)
			continue;
		p->bytes[(va + i) % PAGE] = bytes[i];
		bits_set(p->known, (va + i) % PAGE);
	}
}

/* What the accesses of one kind have in memory now. */
static void put_accesses(struct tenet_record *r, const struct tenet_memory *m, uint8_t kind)
{
	uint8_t bytes[ACCESS_LEN];
	for (size_t i = 0; i < r->touched_cnt; i++) {
		const struct arch_access *a = &r->touched[i];
		if (a->kinds & kind)
			state(r, kind == ARCH_ACCESS_READ ? TENET_READ : TENET_WRITE, a->va, bytes,
			      m->read(m->ctx, a->va, bytes, MIN(a->len, (uint32_t)ACCESS_LEN)));
	}
}

/* What was stated and is not so any more. */
static void put_changes(struct tenet_record *r, const struct tenet_memory *m)
{
	uint8_t now[PAGE];
	for (size_t i = 0; i < r->pages.cnt; i++) {
		struct log_page *p = r->pages.data[i];
		size_t got = m->read(m->ctx, p->va, now, PAGE);
		for (size_t k = 0; k < got;) {
			size_t n = 0;
			while (k + n < got && bits_get(p->known, k + n) && now[k + n] != p->bytes[k + n])
				n++;
			if (n)
				state(r, TENET_WRITE, p->va + k, now + k, n);
			k += n + 1;
		}
	}
}

static void put_line(struct tenet_record *r, const struct tenet_state *now, bool is_whole, struct buf *out)
{
	uint64_t mask = 1u << TENET_X64_PC;
	for (unsigned i = 0; i < TENET_X64_REGS; i++)
		if (is_whole || now->regs[i] != r->regs[i])
			mask |= 1u << i;
	memcpy(r->regs, now->regs, sizeof(r->regs));
	buf_add_ch(&r->accesses, 0);
	if (r->accesses.failed)
		out->failed = true;
	tenet_put(out, tenet_x64_names, now->regs, mask, r->accesses.failed ? "" : r->accesses.data);
	r->accesses.len = 0;
}

void tenet_record_begin(struct tenet_record *r, const struct tenet_state *now, struct buf *out)
{
	put_line(r, now, true, out);
}

static bool enters_kernel(const uint8_t *code, size_t len)
{
	return len >= 2 && ((code[0] == 0x0f && (code[1] == 0x05 || code[1] == 0x34)) || (code[0] == 0xcd && code[1] == 0x80));
}

/* Whether it goes through a segment with a base: its prefix is among those in front. */
static bool has_segment(const uint8_t *code, size_t len)
{
	for (size_t i = 0; i < len && i < 4; i++) {
		if (code[i] == 0x64 || code[i] == 0x65)
			return true;
		if (code[i] != 0x66 && code[i] != 0xf0 && code[i] != 0xf2 && code[i] != 0xf3)
			break;
	}
	return false;
}

void tenet_record_before(struct tenet_record *r, const struct tenet_memory *m, const struct tenet_state *now, const uint8_t *code, size_t len)
{
	struct arch_machine at = {.pc = now->regs[TENET_X64_PC], .fs_base = now->fs_base, .gs_base = now->gs_base};
	memcpy(at.regs, now->regs, TENET_X64_PC * sizeof(*now->regs));
	bool is_elsewhere = !now->has_bases && has_segment(code, len);
	r->touched_cnt = len && !is_elsewhere ? r->arch->accesses(r->arch, code, len, &at, r->touched, ACCESSES) : 0;
	r->is_syscall = enters_kernel(code, len);
	r->is_vague = r->is_syscall || is_elsewhere;
	put_accesses(r, m, ARCH_ACCESS_READ);
}

bool tenet_record_is_syscall(const struct tenet_record *r)
{
	return r->is_syscall;
}

const struct arch_access *tenet_record_touched(const struct tenet_record *r, size_t *ret_cnt)
{
	*ret_cnt = r->touched_cnt;
	return r->touched;
}

void tenet_record_cancel(struct tenet_record *r)
{
	r->accesses.len = 0;
}

void tenet_record_after(struct tenet_record *r, const struct tenet_memory *m, const struct tenet_state *now, bool by_others, struct buf *out)
{
	put_accesses(r, m, ARCH_ACCESS_WRITE);
	if (r->is_vague || by_others)
		put_changes(r, m);
	put_line(r, now, false, out);
}
