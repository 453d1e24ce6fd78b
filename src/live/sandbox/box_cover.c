/* SPDX-License-Identifier: Apache-2.0 */
#include "live/sandbox/box_int.h"

#include "arch/x86/x86_zydis.h"

#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

/*
 * Which blocks and ways of a function a trial takes: breakpoints in this process's copy of its pages. One at a block is taken away when it
 * is hit; one at a branch stays for a few turns, in which the branch is done here, and tells what was compared.
 */
#define PAGE 4096ul
#define TURNS 8 /* of a branch that are looked at */

static uint8_t saved[BOX_BLOCK_MAX];         /* first bytes of blocks, under the breakpoints */
static uint8_t branch_saved[BOX_BRANCH_MAX]; /* ... of branches */
static uint8_t turns[BOX_BRANCH_MAX];
static ZydisDecoder decoder;

void box_cover_init(void)
{
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
}

static uint8_t *at(uint64_t addr)
{
	return (uint8_t *)(uintptr_t)addr;
}

static bool open_page(uint64_t addr)
{
	return !mprotect(at(addr & ~(PAGE - 1)), PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
}

bool box_cover_prepare(struct box_shared *s)
{
	for (uint32_t i = 0; i < s->block_cnt; i++) {
		if (!open_page(s->blocks[i]))
			return false;
		saved[i] = *at(s->blocks[i]);
	}
	for (uint32_t i = 0; i < s->branch_cnt; i++) {
		if (!open_page(s->branches[i].at))
			return false;
		branch_saved[i] = *at(s->branches[i].at);
	}
	/* Two at one address would save the breakpoint: bytes first, breakpoints then. */
	for (uint32_t i = 0; i < s->block_cnt; i++)
		*at(s->blocks[i]) = 0xcc;
	for (uint32_t i = 0; i < s->branch_cnt; i++)
		*at(s->branches[i].at) = 0xcc;
	return true;
}

/* --- values of operands ------------------------------------------------------------------------------------------------ */
static uint64_t low_bytes(uint64_t v, unsigned len)
{
	return len < 8 ? v & ((1ul << 8 * len) - 1) : v;
}

static bool address_of(const ZydisDecodedOperandMem *m, uint64_t next, const greg_t *g, uint64_t *ret)
{
	uint64_t a = (uint64_t)m->disp.value;
	int base = box_greg(m->base), index = box_greg(m->index);
	bool has_base = base >= 0 || m->base == ZYDIS_REGISTER_NONE || m->base == ZYDIS_REGISTER_RIP;
	if (m->segment == ZYDIS_REGISTER_FS || m->segment == ZYDIS_REGISTER_GS || !has_base || (index < 0 && m->index != ZYDIS_REGISTER_NONE))
		return false;
	a += base >= 0 ? (uint64_t)g[base] : m->base == ZYDIS_REGISTER_RIP ? next : 0;
	*ret = a + (index >= 0 ? (uint64_t)g[index] * m->scale : 0);
	return true;
}

/* The value of an operand of a comparison; `*ret_at` is where it lies, 0: not in memory. */
static bool value_of(const ZydisDecodedOperand *op, uint64_t next, const greg_t *g, uint64_t *ret, uint64_t *ret_at)
{
	unsigned len = op->size / 8;
	*ret_at = 0;
	if (op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		*ret = op->imm.value.u;
		return true;
	}
	if (op->type == ZYDIS_OPERAND_TYPE_REGISTER) {
		int reg = box_greg(ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, op->reg.value));
		bool is_high = op->reg.value >= ZYDIS_REGISTER_AH && op->reg.value <= ZYDIS_REGISTER_BH;
		*ret = reg < 0 ? 0 : low_bytes((uint64_t)g[reg], len);
		return reg >= 0 && !is_high;
	}
	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || !address_of(&op->mem, next, g, ret_at) || *ret_at < BOX_LOW || *ret_at >= 1ul << 47)
		return false;
	*ret = 0;
	memcpy(ret, at(*ret_at), len);
	return true;
}

/* --- what was compared ------------------------------------------------------------------------------------------------- */
#define REG_CNT 24 /* of gregs[] */

/* Where the value of a register was loaded from, as far as the code before tells. */
struct origin {
	bool is_known;
	uint8_t len;
	ZydisDecodedOperandMem mem;
	uint64_t next;
};

/* The 15 bytes at `p` without breakpoints. */
static void clean_bytes(const struct box_shared *s, uint64_t p, uint8_t *ret)
{
	memcpy(ret, at(p), 15);
	for (unsigned k = 0; k < 15; k++) {
		if (ret[k] != 0xcc)
			continue;
		for (uint32_t i = 0; i < s->branch_cnt && i < BOX_BRANCH_MAX; i++)
			if (s->branches[i].at == p + k)
				ret[k] = branch_saved[i];
		for (uint32_t i = 0; i < s->block_cnt && i < BOX_BLOCK_MAX; i++)
			if (s->blocks[i] == p + k)
				ret[k] = saved[i];
	}
}

static int written_reg(const ZydisDecodedOperand *op)
{
	if (op->type != ZYDIS_OPERAND_TYPE_REGISTER || !(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return -1;
	return box_greg(ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, op->reg.value));
}

/* What the instruction does to the origins of registers. */
static void follow(struct origin *o, const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops, uint64_t next)
{
	struct origin moved = {.is_known = false};
	bool is_move = in->mnemonic == ZYDIS_MNEMONIC_MOV || in->mnemonic == ZYDIS_MNEMONIC_MOVZX || in->mnemonic == ZYDIS_MNEMONIC_MOVSX ||
		       in->mnemonic == ZYDIS_MNEMONIC_MOVSXD;
	if (is_move && ops[1].type == ZYDIS_OPERAND_TYPE_MEMORY) {
		moved = (struct origin){true, (uint8_t)(ops[1].size / 8), ops[1].mem, next};
	} else if (is_move && ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
		int from = box_greg(ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, ops[1].reg.value));
		if (from >= 0)
			moved = o[from];
	}
	/* A number more or less is the value still. */
	bool is_kept = in->operand_count > 1 && ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && !is_move;
	for (unsigned i = 0; i < in->operand_count; i++) {
		int reg = written_reg(&ops[i]);
		if (reg < 0 || reg >= REG_CNT)
			continue;
		if (!is_kept || i)
			o[reg].is_known = false;
		for (unsigned k = 0; k < REG_CNT; k++)
			o[k].is_known &= box_greg(o[k].mem.base) != reg && box_greg(o[k].mem.index) != reg;
		if (!i && is_move && moved.is_known && box_greg(moved.mem.base) != reg && box_greg(moved.mem.index) != reg)
			o[reg] = moved;
	}
}

static void use_origin(struct box_cmp *c, const struct origin *o, const greg_t *g)
{
	uint64_t where;
	if (!o->is_known || !o->len || o->len > 8 || !address_of(&o->mem, o->next, g, &where) || where < BOX_LOW || where >= 1ul << 47)
		return;
	c->at = where;
	c->at_len = o->len;
}

/* What the branch's block compared last, when the flags still say the same. */
static void note_compared(const struct box_shared *s, struct box_cmp *c, const struct box_branch *b, const greg_t *g)
{
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	struct origin origins[REG_CNT];
	struct box_cmp found = {0};
	uint8_t bytes[15];
	memset(origins, 0, sizeof(origins));
	uint64_t p = b->before;
	for (unsigned n = 0; n < 200 && p < b->at; n++, p += in.length) {
		clean_bytes(s, p, bytes);
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, sizeof(bytes), &in, ops)))
			return;
		bool compares = in.mnemonic == ZYDIS_MNEMONIC_CMP || in.mnemonic == ZYDIS_MNEMONIC_TEST;
		uint64_t unused;
		if (!compares)
			follow(origins, &in, ops, p + in.length);
		if (!compares && in.cpu_flags && in.cpu_flags->modified)
			found.len = 0;
		if (!compares || p < b->from || ops[0].size < 8 || ops[0].size > 64)
			continue;
		found = (struct box_cmp){.len = (uint8_t)(ops[0].size / 8), .is_test = in.mnemonic == ZYDIS_MNEMONIC_TEST};
		if (!value_of(&ops[0], p + in.length, g, &found.a, &found.at) || !value_of(&ops[1], p + in.length, g, &found.b, &unused))
			found.len = 0;
		found.at_len = found.at ? found.len : 0;
		int reg = ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER
			? box_greg(ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, ops[0].reg.value)) : -1;
		if (reg >= 0 && reg < REG_CNT)
			use_origin(&found, &origins[reg], g);
	}
	if (!found.len)
		return;
	found.b = low_bytes(found.b, found.len);
	uint64_t result = low_bytes(found.is_test ? found.a & found.b : found.a - found.b, found.len);
	bool cf = !found.is_test && found.a < found.b, zf = !result, sf = result >> (8 * found.len - 1) & 1;
	uint64_t flags = (uint64_t)g[REG_EFL];
	if (cf == (flags & 1) && zf == (flags >> 6 & 1) && sf == (flags >> 7 & 1))
		*c = found;
	c->answers = (uint8_t)MIN(s->answer_cnt, (uint32_t)BOX_ANSWER_MAX);
}

/* --- branches ------------------------------------------------------------------------------------------------------------- */
static bool is_taken(unsigned cc, uint64_t flags)
{
	bool cf = flags & 1, pf = flags >> 2 & 1, zf = flags >> 6 & 1, sf = flags >> 7 & 1, of = flags >> 11 & 1;
	const bool base[8] = {of, cf, zf, cf || zf, sf, pf, sf != of, zf || sf != of};
	return base[cc >> 1 & 7] != (cc & 1);
}

static void note_way(struct box_shared *s, uint32_t branch, uint64_t to)
{
	uint32_t cnt = MIN(s->way_cnt, (uint32_t)BOX_WAY_MAX);
	for (uint32_t i = 0; i < cnt; i++)
		if (s->ways[i].branch == branch && s->ways[i].to == to)
			return;
	if (cnt < BOX_WAY_MAX)
		s->ways[s->way_cnt++] = (struct box_way){branch, to};
}

/* Does the branch in place of the processor; false when it cannot. */
static bool do_branch(struct box_shared *s, uint32_t i, greg_t *g)
{
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	uint8_t bytes[15];
	uint64_t from = s->branches[i].at, to, unused;
	memcpy(bytes, at(from), sizeof(bytes));
	bytes[0] = branch_saved[i];
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, sizeof(bytes), &in, ops)))
		return false;
	uint64_t next = from + in.length;
	if (in.meta.category == ZYDIS_CATEGORY_COND_BR && in.raw.imm[0].size &&
	    (in.opcode_map == ZYDIS_OPCODE_MAP_0F ? (in.opcode & 0xf0) == 0x80 : (in.opcode & 0xf0) == 0x70)) {
		if (!s->cmps[i].len)
			note_compared(s, &s->cmps[i], &s->branches[i], g);
		s->cmps[i].cc = in.opcode & 15;
		to = is_taken(in.opcode & 15, (uint64_t)g[REG_EFL]) ? next + (uint64_t)in.raw.imm[0].value.s : next;
	} else if (in.mnemonic != ZYDIS_MNEMONIC_JMP || ops[0].size != 64 || ops[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE ||
		   !value_of(&ops[0], next, g, &to, &unused)) {
		return false;
	}
	note_way(s, i, to);
	g[REG_RIP] = (greg_t)to;
	return true;
}

bool box_cover_hit(struct box_shared *s, void *context)
{
	ucontext_t *u = context;
	greg_t *g = u->uc_mcontext.gregs;
	uint64_t where = (uint64_t)g[REG_RIP] - 1;
	bool found = false;
	for (uint32_t i = 0; i < s->block_cnt && i < BOX_BLOCK_MAX; i++) {
		if (s->blocks[i] != where)
			continue;
		*at(where) = saved[i];
		s->blocks_hit[i] = 1;
		found = true;
	}
	for (uint32_t i = 0; i < s->branch_cnt && i < BOX_BRANCH_MAX; i++) {
		if (s->branches[i].at != where)
			continue;
		*at(where) = 0xcc;
		g[REG_RIP] = (greg_t)where;
		if (turns[i]++ < TURNS && do_branch(s, i, g))
			return true;
		turns[i] = TURNS;
		*at(where) = branch_saved[i];
		return true;
	}
	g[REG_RIP] -= found;
	return found;
}
