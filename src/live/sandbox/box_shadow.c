/* SPDX-License-Identifier: Apache-2.0 */
#include "live/sandbox/box_int.h"

#include "arch/x86/x86_zydis.h"

#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

/*
 * Addresses a process cannot have (near null, and what no pointer of a user looks like) have memory in trials, too: at a
 * place of its own for each, the same for all who ask. The instruction that asked runs alone with its address register
 * moved there, and the register is put back. It runs as a copy with a breakpoint behind it, which costs a fraction of a single step where the
 * processor is not the machine's own; what repeats or jumps is stepped.
 */
#define SHADOW 0x2f0000000000ul
#define SHADOW_LEN (1ul << 20) /* addresses that far apart have the same memory */
#define STEP_MAX 500u
#define FIX_MAX 2u

static ZydisDecoder decoder;
static struct fix {
	int reg; /* of gregs[] */
	uint64_t delta;
	bool stays; /* the instruction gave it another value */
} fixes[FIX_MAX];
static unsigned fix_cnt;
static uint32_t step_cnt;
static uint8_t *copy;       /* the page for an instruction's copy */
static uint64_t copied_from; /* where it stands, 0: none runs */
static uint8_t copied_len;

static bool decode(const uint8_t *p, size_t len, ZydisDecodedInstruction *in, ZydisDecodedOperand *ops)
{
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, p, len, in, ops));
}

void box_shadow_init(void)
{
	static const uint8_t nop = 0x90;
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	/* Functions of a library are found at their first call, which is not for a process that is locked. */
	(void)decode(&nop, 1, &in, ops);
	void *page = mmap((void *)BOX_COPY, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	copy = page == (void *)BOX_COPY ? page : NULL;
}

int box_greg(unsigned r)
{
	static const int regs[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
				     REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
	return r >= ZYDIS_REGISTER_RAX && r <= ZYDIS_REGISTER_R15 ? regs[r - ZYDIS_REGISTER_RAX] : -1;
}

static bool is_bad(uint64_t at)
{
	return at < BOX_LOW || at >= (1ul << 47) - 4096;
}

/* Whether the instruction uses the register as more than an address; `ret_is_set`: it gets a new value. */
static bool is_read(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops, ZydisRegister reg, bool *ret_is_set)
{
	*ret_is_set = false;
	if (in->meta.category == ZYDIS_CATEGORY_STRINGOP)
		return false;
	for (unsigned i = 0; i < in->operand_count; i++) {
		if (ops[i].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, ops[i].reg.value) != reg)
			continue;
		if (ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_READ)
			return true;
		*ret_is_set |= ops[i].size >= 32;
	}
	return false;
}

static bool fix_operand(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops, const ZydisDecodedOperandMem *m, greg_t *g)
{
	int base = box_greg(m->base), index = box_greg(m->index);
	if (m->segment == ZYDIS_REGISTER_FS || m->segment == ZYDIS_REGISTER_GS || (base < 0 && m->base != ZYDIS_REGISTER_NONE) ||
	    (index < 0 && m->index != ZYDIS_REGISTER_NONE))
		return true;
	uint64_t at = (uint64_t)m->disp.value + (base < 0 ? 0 : (uint64_t)g[base]) + (index < 0 ? 0 : (uint64_t)g[index] * m->scale);
	if (!is_bad(at))
		return true;
	int reg = base;
	if (base < 0 && m->scale == 1)
		reg = index;
	if (reg < 0 || reg == REG_RSP || base == index || fix_cnt == FIX_MAX || (fix_cnt && fixes[0].reg == reg))
		return false;
	struct fix *f = &fixes[fix_cnt];
	*f = (struct fix){.reg = reg, .delta = SHADOW + (at & (SHADOW_LEN - 1)) - at};
	if (is_read(in, ops, reg == base ? m->base : m->index, &f->stays))
		return false;
	fix_cnt++;
	return true;
}

/* Whether the instruction does the same anywhere, once. */
static bool can_move(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
	if (in->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE || in->meta.category == ZYDIS_CATEGORY_CALL ||
	    in->meta.category == ZYDIS_CATEGORY_STRINGOP)
		return false;
	for (unsigned i = 0; i < in->operand_count; i++)
		if (ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY && ops[i].mem.base == ZYDIS_REGISTER_RIP)
			return false;
	return true;
}

static void start_copy(const ZydisDecodedInstruction *in, greg_t *g)
{
	memcpy(copy, (const void *)(uintptr_t)g[REG_RIP], in->length);
	copy[in->length] = 0xcc;
	copied_from = (uint64_t)g[REG_RIP];
	copied_len = in->length;
	g[REG_RIP] = (greg_t)(uintptr_t)copy;
}

uint64_t box_shadow_ip(uint64_t ip)
{
	return copied_from && ip - BOX_COPY <= copied_len ? copied_from : ip;
}

enum box_shadow_say box_shadow_fault(void *context)
{
	ucontext_t *u = context;
	greg_t *g = u->uc_mcontext.gregs;
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	if (fix_cnt || !decode((const uint8_t *)(uintptr_t)g[REG_RIP], 15, &in, ops) || in.address_width != 64)
		return BOX_SHADOW_NO;
	bool can = true;
	for (unsigned i = 0; can && i < in.operand_count; i++)
		if (ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY && ops[i].mem.type == ZYDIS_MEMOP_TYPE_MEM)
			can = fix_operand(&in, ops, &ops[i].mem, g);
	if (!can || (fix_cnt && ++step_cnt > STEP_MAX)) {
		fix_cnt = 0;
		return BOX_SHADOW_LIMIT;
	}
	for (unsigned i = 0; i < fix_cnt; i++)
		g[fixes[i].reg] += (greg_t)fixes[i].delta;
	if (fix_cnt && copy && can_move(&in, ops))
		start_copy(&in, g);
	else
		g[REG_EFL] |= fix_cnt ? 0x100 : 0;
	return fix_cnt ? BOX_SHADOW_STEP : BOX_SHADOW_NO;
}

bool box_shadow_stepped(void *context)
{
	ucontext_t *u = context;
	if (!fix_cnt)
		return false;
	if (copied_from)
		u->uc_mcontext.gregs[REG_RIP] = (greg_t)(copied_from + copied_len);
	copied_from = 0;
	for (unsigned i = 0; i < fix_cnt; i++)
		if (!fixes[i].stays)
			u->uc_mcontext.gregs[fixes[i].reg] -= (greg_t)fixes[i].delta;
	fix_cnt = 0;
	u->uc_mcontext.gregs[REG_EFL] &= ~0x100l;
	return true;
}
