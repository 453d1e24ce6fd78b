/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program of probes. r6 is the context (struct pt_regs), r7 the number of the probe, r8 its row of counters, r9 the record.
 * What kinds of probes have in common is done first, then the cookie leads to the body of the probe's kind; bodies that would be the same are
 * there once. Helpers are what costs: each is called only where its answer is used.
 */
#include "live/trace/probe_int.h"
#include "live/trace/probe_who.h"

#include <errno.h>

/* Offsets from r10. */
enum {
	AT_PID_TID = -8,       /* a key: {pid_tid, sp, point} */
	AT_KEY = -32,
	AT_TIME = -40, AT_NS = -48, AT_BYTE = -56, AT_PTR = -64,
	AT_SPILL = -72,        /* PROBE_NEST_MAX words down to -160 */
	AT_TEXT = -232,        /* PROBE_TEXT_MAX + 2, upwards */
	AT_STACK = -432,       /* PROBE_STACK_MAX upwards */
};

enum { R0, R1, R2, R3, R4, R5, CTX, POINT, ROW, REC, FP };

/* struct pt_regs of x86-64, arch/x86/include/uapi/asm/ptrace.h; a register's number here is its word there. */
enum { REG_AX = 10, REG_IP = 16, REG_SP = 19 };
static const struct { const char *names[4]; } regs[] = {
	{{"r15", "r15d", "r15w", "r15b"}}, {{"r14", "r14d", "r14w", "r14b"}}, {{"r13", "r13d", "r13w", "r13b"}},
	{{"r12", "r12d", "r12w", "r12b"}}, {{"rbp", "ebp", "bp", "bpl"}}, {{"rbx", "ebx", "bx", "bl"}}, {{"r11", "r11d", "r11w", "r11b"}},
	{{"r10", "r10d", "r10w", "r10b"}}, {{"r9", "r9d", "r9w", "r9b"}}, {{"r8", "r8d", "r8w", "r8b"}}, {{"rax", "eax", "ax", "al"}},
	{{"rcx", "ecx", "cx", "cl"}}, {{"rdx", "edx", "dx", "dl"}}, {{"rsi", "esi", "si", "sil"}}, {{"rdi", "edi", "di", "dil"}},
	{{NULL}}, {{"rip", "eip"}}, {{NULL}}, {{"rflags", "eflags"}}, {{"rsp", "esp", "sp", "spl"}},
};

bool probe_reg_find(const char *name, size_t len, uint16_t *ret, uint8_t *ret_size)
{
	for (uint16_t i = 0; i < ARRAY_LEN(regs); i++) {
		for (unsigned w = 0; w < 4; w++) {
			const char *n = regs[i].names[w];
			if (!n || strlen(n) != len || memcmp(n, name, len) != 0)
				continue;
			*ret = i;
			*ret_size = (uint8_t)(8 >> w);
			return true;
		}
	}
	return false;
}

const char *probe_reg_name(uint16_t reg)
{
	return reg < ARRAY_LEN(regs) && regs[reg].names[0] ? regs[reg].names[0] : "?";
}

static uint32_t room_of(const struct probe_arg *a)
{
	/* A string is read with one byte more than shown, by which one that was cut is known, and its zero. */
	return a->fetch == PROBE_VALUE ? 0 : 8 + ((a->len + (a->fetch == PROBE_STRING ? 2u : 0u) + 7) & ~7u);
}

struct err *probe_layout(const struct probe_kind *k, struct probe_layout *ret)
{
	memset(ret, 0, sizeof(*ret));
	uint32_t word = k->is_32bit ? 4 : 8;
	ret->stack_len = word;
	if (k->arg_cnt > PROBE_ARG_MAX)
		return err_new(ERR_INVALID, "more than %d arguments", PROBE_ARG_MAX);
	ret->entry_len = (uint32_t)sizeof(struct probe_rec) + 8 * k->arg_cnt;
	for (uint32_t i = 0; i < k->arg_cnt; i++) {
		const struct probe_arg *a = &k->args[i];
		if (a->from == PROBE_STACK)
			ret->stack_len = MAX(ret->stack_len, (a->at + MAX(a->size, word) + 7) & ~7u);
		if (a->fetch != PROBE_VALUE)
			ret->slot[i] = ret->entry_len;
		ret->entry_len += room_of(a);
	}
	uint32_t tail = 16 + room_of(&k->ret);
	if (k->ret.fetch != PROBE_VALUE)
		ret->slot[PROBE_ARG_MAX] = 16;
	ret->return_len = (uint32_t)sizeof(struct probe_rec) + tail;
	ret->call_len = ret->entry_len + tail;
	if (ret->call_len > PROBE_RECORD_MAX)
		return err_new(ERR_INVALID, "what is to be read at a hit has more than %d bytes", PROBE_RECORD_MAX);
	return ret->stack_len > PROBE_STACK_MAX ? err_new(ERR_INVALID, "arguments of more than %d bytes on the stack", PROBE_STACK_MAX) : NULL;
}

bool probe_keeps(const struct probe_kind *k, const struct probe_cond *c, bool count_only)
{
	return k->has_return && c && c->end_cnt && (c->end_uses_args || !count_only);
}

struct gen {
	const struct probe_plan *p;
	const struct probe_body *b; /* the body at hand */
	struct probe_asm *a;
	bool is_end;           /* the code is of the return half */
	bool is_common;        /* what has to be done before the record is, is done before the body */
	bool keeps;
	uint32_t refuse;       /* where a condition that does not hold leads */
};

/* --- pieces --------------------------------------------------------------------------------------------------- */

/* r0 has `size` bytes of a value: all of r0. */
static void put_extend(struct probe_asm *a, unsigned size, bool is_signed)
{
	if (size == 8)
		return;
	probe_alu_imm(a, BPF_LSH, R0, (int32_t)(64 - 8 * size));
	probe_alu_imm(a, is_signed ? BPF_ARSH : BPF_RSH, R0, (int32_t)(64 - 8 * size));
}

/* r0 = the argument, from where it is when the probe is hit. */
static void put_arg(struct probe_asm *a, const struct probe_arg *arg)
{
	int at = AT_STACK + arg->at;
	if (arg->from == PROBE_NOWHERE) {
		probe_mov_imm(a, R0, 0);
	} else if (arg->from == PROBE_REG) {
		probe_load(a, BPF_DW, R0, CTX, 8 * arg->at);
		put_extend(a, arg->size, arg->is_signed);
	} else if (arg->size == 8) {
		/* Words of i386 are at multiples of 4, which the stack of the program does not take in one. */
		probe_load(a, BPF_W, R0, FP, at);
		probe_load(a, BPF_W, R1, FP, at + 4);
		probe_alu_imm(a, BPF_LSH, R1, 32);
		probe_alu(a, BPF_OR, R0, R1);
	} else {
		probe_load(a, BPF_W, R0, FP, at);
		put_extend(a, arg->size, arg->is_signed);
	}
}

/* r0 != 0 when the stack could not be read; then AT_STACK is zeros. */
static void put_stack(struct gen *g)
{
	probe_mov(g->a, R1, FP);
	probe_alu_imm(g->a, BPF_ADD, R1, AT_STACK);
	probe_mov_imm(g->a, R2, (int32_t)g->b->layout->stack_len);
	probe_load(g->a, BPF_DW, R3, CTX, 8 * REG_SP);
	probe_helper(g->a, BPF_FUNC_probe_read_user);
}

/* Brings in the page at the address in AT_PTR and, with `next`, the one behind it: what is not in memory cannot be read otherwise. */
static void put_touch(struct probe_asm *a, bool next)
{
	probe_mov(a, R1, FP);
	probe_alu_imm(a, BPF_ADD, R1, AT_BYTE);
	probe_mov_imm(a, R2, 1);
	probe_load(a, BPF_DW, R3, FP, AT_PTR);
	if (next) {
		probe_alu_imm(a, BPF_OR, R3, 4095);
		probe_alu_imm(a, BPF_ADD, R3, 1);
	}
	probe_helper(a, BPF_FUNC_copy_from_user);
}

/*
 * r0 = bytes read of the string at the address in AT_PTR, with its zero, or -errno; of memory (is_text false) 0 or -errno. At most `len`
 * bytes, to r-dst + off. Programs that may wait read what is not in memory yet.
 */
static void put_read(struct gen *g, bool is_text, int dst, int off, uint32_t len)
{
	struct probe_asm *a = g->a;
	uint32_t done = probe_asm_label(a);
	bool has_touch = g->p->is_sleepable && is_text && !g->p->copy_text_id;
	for (int round = 0; round < (has_touch ? 2 : 1); round++) {
		if (round) {
			probe_jump_if_imm(a, BPF_JSGE, R0, 0, done);
			put_touch(a, false);
			put_touch(a, true);
		}
		probe_mov(a, R1, dst);
		probe_alu_imm(a, BPF_ADD, R1, off);
		probe_mov_imm(a, R2, (int32_t)len);
		probe_load(a, BPF_DW, R3, FP, AT_PTR);
		if (is_text && g->p->is_sleepable && g->p->copy_text_id) {
			probe_mov_imm(a, R4, 0);
			probe_kfunc(a, g->p->copy_text_id);
		} else {
			int read = g->p->is_sleepable ? BPF_FUNC_copy_from_user : BPF_FUNC_probe_read_user;
			probe_helper(a, is_text ? BPF_FUNC_probe_read_user_str : read);
		}
	}
	probe_asm_bind(a, done);
}

/* What is fetched of the address in r0, into the record from `slot` on. */
static void put_slot(struct gen *g, const struct probe_arg *arg, int slot)
{
	struct probe_asm *a = g->a;
	uint32_t none = probe_asm_label(a), done = probe_asm_label(a);
	bool is_text = arg->fetch == PROBE_STRING;
	probe_store(a, BPF_DW, FP, AT_PTR, R0);
	probe_jump_if_imm(a, BPF_JEQ, R0, 0, none);
	put_read(g, is_text, REC, slot + 8, arg->len + (is_text ? 2u : 0u));
	if (!is_text) {
		probe_jump_if_imm(a, BPF_JNE, R0, 0, done);
		probe_mov_imm(a, R0, arg->len);
	}
	probe_jump(a, done);
	probe_asm_bind(a, none);
	probe_mov_imm(a, R0, 0);
	probe_asm_bind(a, done);
	probe_store(a, BPF_W, REC, slot, R0);
}

static void put_count(struct gen *g, int word, int reg)
{
	probe_atomic(g->a, BPF_ADD, ROW, 8 * word, reg);
}

static void put_count_one(struct gen *g, int word)
{
	probe_mov_imm(g->a, R1, 1);
	put_count(g, word, R1);
}

/* --- conditions ------------------------------------------------------------------------------------------------ */
static void load_value(void *ctx, struct probe_asm *a, const struct probe_node *n)
{
	struct gen *g = ctx;
	const struct probe_kind *k = g->b->kind;
	switch (n->op) {
	case PROBE_OP_ARG:
		if (g->is_end)
			probe_load(a, BPF_DW, R0, REC, (int)sizeof(struct probe_rec) + 8 * (int)n->num);
		else
			put_arg(a, &k->args[n->num]);
		break;
	case PROBE_OP_REG:
		probe_load(a, BPF_DW, R0, CTX, 8 * (int)n->num);
		put_extend(a, n->size, false);
		break;
	case PROBE_OP_RET:
		probe_load(a, BPF_DW, R0, CTX, 8 * REG_AX);
		put_extend(a, k->ret.size, k->ret.is_signed);
		break;
	case PROBE_OP_NS:
		probe_load(a, BPF_DW, R0, FP, AT_NS);
		break;
	case PROBE_OP_UID:
		probe_helper(a, BPF_FUNC_get_current_uid_gid);
		put_extend(a, 4, false);
		break;
	case PROBE_OP_CPU:
		probe_helper(a, BPF_FUNC_get_smp_processor_id);
		break;
	default:
		probe_load(a, BPF_DW, R0, FP, AT_PID_TID);
		if (n->op == PROBE_OP_PID)
			probe_alu_imm(a, BPF_RSH, R0, 32);
		else
			put_extend(a, 4, false);
	}
}

static void compare_text(void *ctx, struct probe_asm *a, const char *text, size_t len)
{
	struct gen *g = ctx;
	uint32_t no = probe_asm_label(a), end = probe_asm_label(a);
	probe_store(a, BPF_DW, FP, AT_PTR, R0);
	put_read(g, true, FP, AT_TEXT, (uint32_t)len + 2);
	probe_jump_if_imm(a, BPF_JNE, R0, (int32_t)len + 1, no);
	for (size_t i = 0, step; i < len; i += step) {
		uint64_t want = 0;
		step = len - i >= 8 ? 8 : len - i >= 4 ? 4 : len - i >= 2 ? 2 : 1;
		memcpy(&want, text + i, step);
		probe_load(a, step == 8 ? BPF_DW : step == 4 ? BPF_W : step == 2 ? BPF_H : BPF_B, R1, FP, AT_TEXT + (int)i);
		probe_imm64(a, R2, 0, want);
		probe_jump_if(a, BPF_JNE, R1, R2, no);
	}
	probe_mov_imm(a, R0, 1);
	probe_jump(a, end);
	probe_asm_bind(a, no);
	probe_mov_imm(a, R0, 0);
	probe_asm_bind(a, end);
}

static void put_cond(struct gen *g)
{
	const struct probe_cond *c = g->b->cond;
	struct probe_values v = {.load = load_value, .text = compare_text, .ctx = g, .spill = AT_SPILL};
	if (c)
		probe_cond_put(c, g->is_end ? c->end : c->begin, g->is_end ? c->end_cnt : c->begin_cnt, &v, g->a, g->refuse);
}

/* --- halves ---------------------------------------------------------------------------------------------------- */

/* Without records, waiting calls and conditions nobody asks who it is. */
static bool asks_who(const struct probe_plan *p)
{
	bool asks = !p->count_only || p->who_fd >= 0;
	for (uint32_t i = 0; i < p->begin_cnt; i++)
		asks |= p->begins[i].cond || p->begins[i].pending_fd >= 0;
	return asks;
}

/* AT_PID_TID, r7, r8, and r9 = the number of the body. Jumps to `out` when the hit is nobody's. */
static void put_who(struct gen *g, uint32_t out)
{
	const struct probe_plan *p = g->p;
	struct probe_asm *a = g->a;
	if (asks_who(p)) {
		probe_helper(a, BPF_FUNC_get_current_pid_tgid);
		probe_store(a, BPF_DW, FP, AT_PID_TID, R0);
	}
	if (p->who_fd >= 0) {
		probe_alu_imm(a, BPF_RSH, R0, 32);
		probe_alu_imm(a, BPF_AND, R0, PROBE_WHO_MAX - 1);
		probe_mov(a, R2, R0);
		probe_alu_imm(a, BPF_RSH, R2, 6);
		probe_alu_imm(a, BPF_LSH, R2, 3);
		probe_imm64(a, R1, BPF_PSEUDO_MAP_VALUE, (uint32_t)p->who_fd);
		probe_alu(a, BPF_ADD, R1, R2);
		probe_load(a, BPF_DW, R1, R1, 0);
		probe_alu_imm(a, BPF_AND, R0, 63);
		probe_alu(a, BPF_RSH, R1, R0);
		probe_alu_imm(a, BPF_AND, R1, 1);
		probe_jump_if_imm(a, BPF_JEQ, R1, 0, out);
	}
	if (p->pid) { /* AT_BYTE: pid, then tgid */
		probe_imm64(a, R1, 0, p->pid_ns_dev);
		probe_imm64(a, R2, 0, p->pid_ns_ino);
		probe_mov(a, R3, FP);
		probe_alu_imm(a, BPF_ADD, R3, AT_BYTE);
		probe_mov_imm(a, R4, 8);
		probe_helper(a, BPF_FUNC_get_ns_current_pid_tgid);
		probe_jump_if_imm(a, BPF_JNE, R0, 0, out);
		probe_load(a, BPF_W, R0, FP, AT_BYTE + 4);
		probe_jump_if_imm(a, BPF_JNE, R0, p->pid, out);
	}
	probe_mov(a, R1, CTX);
	probe_helper(a, BPF_FUNC_get_attach_cookie);
	probe_mov(a, REC, R0);
	probe_mov(a, POINT, R0);
	probe_alu_imm(a, BPF_AND, POINT, 0xffff);
	probe_jump_if_imm(a, BPF_JGE, POINT, (int32_t)p->point_cnt, out);
	probe_mov(a, ROW, POINT);
	probe_alu_imm(a, BPF_RSH, REC, g->is_end ? 32 : 16);
	probe_alu_imm(a, BPF_AND, REC, 0xffff);
	if (p->stripe_cnt > 1) {
		probe_helper(a, BPF_FUNC_get_smp_processor_id);
		probe_alu_imm(a, BPF_AND, R0, (int32_t)p->stripe_cnt - 1);
		probe_alu_imm(a, BPF_MUL, R0, (int32_t)p->point_cnt);
		probe_alu(a, BPF_ADD, ROW, R0);
	}
	probe_alu_imm(a, BPF_LSH, ROW, PROBE_ROW_SHIFT);
	probe_imm64(a, R1, BPF_PSEUDO_MAP_VALUE, (uint32_t)p->counts_fd);
	probe_alu(a, BPF_ADD, R1, ROW);
	probe_mov(a, ROW, R1);
}

/* The key of the call: AT_KEY, and r1 = the map, r2 = the key. */
static void put_key(struct gen *g)
{
	struct probe_asm *a = g->a;
	probe_load(a, BPF_DW, R1, FP, AT_PID_TID);
	probe_store(a, BPF_DW, FP, AT_KEY, R1);
	probe_load(a, BPF_DW, R1, CTX, 8 * REG_SP);
	if (g->is_end) /* the return address is taken off */
		probe_alu_imm(a, BPF_ADD, R1, g->b->kind->is_32bit ? -4 : -8);
	probe_store(a, BPF_DW, FP, AT_KEY + 8, R1);
	probe_store(a, BPF_DW, FP, AT_KEY + 16, POINT);
	probe_imm64(a, R1, BPF_PSEUDO_MAP_FD, (uint32_t)g->b->pending_fd);
	probe_mov(a, R2, FP);
	probe_alu_imm(a, BPF_ADD, R2, AT_KEY);
}

/* r9 = a new record of the ring; to `lost` without. */
static void put_reserve(struct gen *g, uint32_t len, uint32_t lost)
{
	put_count_one(g, PROBE_ROW_RECORDS);
	probe_imm64(g->a, R1, BPF_PSEUDO_MAP_FD, (uint32_t)g->p->ring_fd);
	probe_mov_imm(g->a, R2, (int32_t)len);
	probe_mov_imm(g->a, R3, 0);
	probe_helper(g->a, BPF_FUNC_ringbuf_reserve);
	probe_jump_if_imm(g->a, BPF_JEQ, R0, 0, lost);
	probe_mov(g->a, REC, R0);
}

static void put_submit(struct gen *g)
{
	probe_mov(g->a, R1, REC);
	probe_mov_imm(g->a, R2, BPF_RB_NO_WAKEUP);
	probe_helper(g->a, BPF_FUNC_ringbuf_submit);
}

#define REC_AT(field) ((int)__builtin_offsetof(struct probe_rec, field))

/* The fixed part; `time` and `begin` are offsets from r10. */
static void put_head(struct gen *g, int phase, int time, int begin)
{
	struct probe_asm *a = g->a;
	probe_load(a, BPF_DW, R1, FP, time);
	probe_store(a, BPF_DW, REC, REC_AT(time), R1);
	probe_load(a, BPF_DW, R1, FP, begin);
	probe_store(a, BPF_DW, REC, REC_AT(begin), R1);
	probe_load(a, BPF_DW, R1, FP, AT_PID_TID);
	probe_store(a, BPF_DW, REC, REC_AT(pid_tid), R1);
	probe_load(a, BPF_DW, R1, CTX, 8 * REG_IP);
	probe_store(a, BPF_DW, REC, REC_AT(ip), R1);
	probe_load(a, BPF_DW, R1, CTX, 8 * REG_SP);
	probe_store(a, BPF_DW, REC, REC_AT(sp), R1);
	probe_store(a, BPF_W, REC, REC_AT(point), POINT);
	probe_helper(a, BPF_FUNC_get_smp_processor_id);
	probe_store(a, BPF_H, REC, REC_AT(cpu), R0);
	probe_store_imm(a, BPF_B, REC, REC_AT(phase), phase);
}

/* Everything of the beginning of a call, or of a hit in the middle of a function. */
static void put_entry(struct gen *g, int phase, bool has_stack)
{
	const struct probe_kind *k = g->b->kind;
	struct probe_asm *a = g->a;
	put_head(g, phase, AT_TIME, AT_TIME);
	if (k->is_func || g->b->layout->stack_len > (k->is_32bit ? 4u : 8u)) {
		uint32_t bad = probe_asm_label(a), end = probe_asm_label(a);
		if (!has_stack) { /* else it was there, or the hit was refused */
			put_stack(g);
			probe_jump_if_imm(a, BPF_JNE, R0, 0, bad);
		}
		probe_store_imm(a, BPF_B, REC, REC_AT(flags), k->is_func ? PROBE_REC_CALLER : 0);
		if (!has_stack) {
			probe_jump(a, end);
			probe_asm_bind(a, bad);
			probe_store_imm(a, BPF_B, REC, REC_AT(flags), PROBE_REC_STACK_BAD);
			probe_asm_bind(a, end);
		}
		probe_load(a, k->is_32bit ? BPF_W : BPF_DW, R1, FP, AT_STACK);
		probe_store(a, BPF_DW, REC, REC_AT(caller), R1);
	} else {
		probe_store_imm(a, BPF_B, REC, REC_AT(flags), 0);
		probe_store_imm(a, BPF_DW, REC, REC_AT(caller), 0);
	}
	for (uint32_t i = 0; i < k->arg_cnt; i++) {
		put_arg(a, &k->args[i]);
		probe_store(a, BPF_DW, REC, (int)sizeof(struct probe_rec) + 8 * (int)i, R0);
	}
	for (uint32_t i = 0; i < k->arg_cnt; i++) {
		if (!g->b->layout->slot[i])
			continue;
		probe_load(a, BPF_DW, R0, REC, (int)sizeof(struct probe_rec) + 8 * (int)i);
		put_slot(g, &k->args[i], (int)g->b->layout->slot[i]);
	}
}

/* The part about the return, from byte `at` of the record on. */
static void put_tail(struct gen *g, int at)
{
	const struct probe_kind *k = g->b->kind;
	probe_load(g->a, BPF_DW, R1, FP, AT_NS);
	probe_store(g->a, BPF_DW, REC, at + 8, R1);
	probe_load(g->a, BPF_DW, R0, CTX, 8 * REG_AX);
	put_extend(g->a, k->ret.size, k->ret.is_signed);
	probe_store(g->a, BPF_DW, REC, at, R0);
	if (k->ret.fetch != PROBE_VALUE)
		put_slot(g, &k->ret, at + 16);
}

/* What is done before anything is recorded: the hit is counted, AT_TIME is set, and the return half can find it. */
static void put_begun(struct gen *g)
{
	const struct probe_plan *p = g->p;
	const struct probe_kind *k = g->b->kind;
	struct probe_asm *a = g->a;
	put_count_one(g, PROBE_ROW_HITS);
	if (p->count_only && !k->has_return)
		return;
	probe_helper(a, BPF_FUNC_ktime_get_boot_ns);
	probe_store(a, BPF_DW, FP, AT_TIME, R0);
	if (k->has_return && p->is_session && !g->keeps) {
		probe_mov(a, R1, CTX);
		probe_kfunc(a, p->cookie_id);
		probe_load(a, BPF_DW, R1, FP, AT_TIME);
		probe_store(a, BPF_DW, R0, 0, R1);
	}
	if (k->has_return && g->b->pending_fd >= 0) {
		put_key(g);
		if (g->keeps) {
			probe_imm64(a, R3, BPF_PSEUDO_MAP_VALUE, (uint32_t)g->b->zero_fd);
		} else {
			probe_mov(a, R3, FP);
			probe_alu_imm(a, BPF_ADD, R3, AT_TIME);
		}
		probe_mov_imm(a, R4, BPF_ANY);
		probe_helper(a, BPF_FUNC_map_update_elem);
	}
}

static void put_begin(struct gen *g, uint32_t lost)
{
	const struct probe_cond *c = g->b->cond;
	struct probe_asm *a = g->a;
	bool has_stack = c && c->uses_stack;
	if (has_stack) {
		put_stack(g);
		/* Nothing is said of what cannot be read. */
		probe_jump_if_imm(a, BPF_JNE, R0, 0, g->refuse);
	}
	put_cond(g);
	if (!g->is_common)
		put_begun(g);
	if (g->keeps) {
		uint32_t full = probe_asm_label(a), kept = probe_asm_label(a);
		probe_jump_if_imm(a, BPF_JNE, R0, 0, full);
		put_key(g);
		probe_helper(a, BPF_FUNC_map_lookup_elem);
		probe_jump_if_imm(a, BPF_JEQ, R0, 0, full);
		probe_mov(a, REC, R0);
		put_entry(g, PROBE_CALL, has_stack);
		probe_jump(a, kept);
		probe_asm_bind(a, full);
		put_count_one(g, PROBE_ROW_RECORDS);
		probe_jump(a, lost);
		probe_asm_bind(a, kept);
	} else if (!g->p->count_only) {
		put_reserve(g, g->b->layout->entry_len, lost);
		put_entry(g, PROBE_ENTRY, has_stack);
		put_submit(g);
	}
}

/* r4 = the number of the highest bit of r0, at most PROBE_SLOT_COUNT - 1. */
static void put_log2(struct probe_asm *a)
{
	probe_mov_imm(a, R4, 0);
	for (int bits = 32; bits; bits /= 2) {
		uint32_t less = probe_asm_label(a);
		probe_mov(a, R2, R0);
		probe_alu_imm(a, BPF_RSH, R2, bits);
		probe_jump_if_imm(a, BPF_JEQ, R2, 0, less);
		probe_mov(a, R0, R2);
		probe_alu_imm(a, BPF_ADD, R4, bits);
		probe_asm_bind(a, less);
	}
	uint32_t fits = probe_asm_label(a);
	probe_jump_if_imm(a, BPF_JLT, R4, PROBE_SLOT_COUNT, fits);
	probe_mov_imm(a, R4, PROBE_SLOT_COUNT - 1);
	probe_asm_bind(a, fits);
}

/* AT_TIME: when it began; AT_BYTE: now; AT_NS. With a call that waits, r9 is its record. */
static void put_times(struct gen *g, uint32_t out)
{
	struct probe_asm *a = g->a;
	if (g->b->pending_fd >= 0) {
		put_key(g);
		probe_helper(a, BPF_FUNC_map_lookup_elem);
		probe_jump_if_imm(a, BPF_JEQ, R0, 0, out);
		if (g->keeps)
			probe_mov(a, REC, R0);
		probe_load(a, BPF_DW, R1, R0, 0);
	} else {
		probe_mov(a, R1, CTX);
		probe_kfunc(a, g->p->cookie_id);
		probe_load(a, BPF_DW, R1, R0, 0);
	}
	probe_store(a, BPF_DW, FP, AT_TIME, R1);
	probe_helper(a, BPF_FUNC_ktime_get_boot_ns);
	probe_store(a, BPF_DW, FP, AT_BYTE, R0);
	probe_load(a, BPF_DW, R1, FP, AT_TIME);
	probe_alu(a, BPF_SUB, R0, R1);
	probe_store(a, BPF_DW, FP, AT_NS, R0);
}

/* The return is counted, and its latency in the histogram. */
static void put_ended(struct gen *g)
{
	struct probe_asm *a = g->a;
	put_count_one(g, PROBE_ROW_RETURNS);
	probe_load(a, BPF_DW, R0, FP, AT_NS);
	put_count(g, PROBE_ROW_NS, R0);
	put_log2(a);
	probe_alu_imm(a, BPF_LSH, R4, 3);
	probe_mov(a, R3, ROW);
	probe_alu(a, BPF_ADD, R3, R4);
	probe_mov_imm(a, R1, 1);
	probe_atomic(a, BPF_ADD, R3, 8 * PROBE_ROW_SLOTS, R1);
}

static void put_end(struct gen *g, uint32_t out, uint32_t lost)
{
	const struct probe_layout *l = g->b->layout;
	struct probe_asm *a = g->a;
	if (!g->is_common) {
		put_times(g, out);
		put_cond(g);
		put_ended(g);
	}
	if (g->p->count_only)
		return;
	if (g->keeps) {
		put_tail(g, (int)l->entry_len);
		put_count_one(g, PROBE_ROW_RECORDS);
		probe_imm64(a, R1, BPF_PSEUDO_MAP_FD, (uint32_t)g->p->ring_fd);
		probe_mov(a, R2, REC);
		probe_mov_imm(a, R3, (int32_t)l->call_len);
		probe_mov_imm(a, R4, BPF_RB_NO_WAKEUP);
		probe_helper(a, BPF_FUNC_ringbuf_output);
		uint32_t ok = probe_asm_label(a);
		probe_jump_if_imm(a, BPF_JEQ, R0, 0, ok);
		put_count_one(g, PROBE_ROW_LOST);
		probe_asm_bind(a, ok);
	} else {
		/* AT_BYTE is overwritten where a page is brought in, after the head is written. */
		put_reserve(g, l->return_len, lost);
		put_head(g, PROBE_RETURN, AT_BYTE, AT_TIME);
		probe_store_imm(a, BPF_B, REC, REC_AT(flags), 0);
		probe_store_imm(a, BPF_DW, REC, REC_AT(caller), 0);
		put_tail(g, (int)sizeof(struct probe_rec));
		put_submit(g);
	}
}

/* A body of a half and its ends. `nobody`: what the program gives when the return is of no interest. */
static void put_body(struct gen *g, int nobody, uint32_t out)
{
	struct probe_asm *a = g->a;
	uint32_t lost = probe_asm_label(a), done = probe_asm_label(a);
	bool is_end = g->is_end;
	const struct probe_cond *c = g->b->cond;
	g->refuse = probe_asm_label(a);
	if (is_end)
		put_end(g, out, lost);
	else
		put_begin(g, lost);
	probe_jump(a, done);
	if (is_end ? !g->p->count_only && !g->keeps : !g->p->count_only || g->keeps) {
		probe_asm_bind(a, lost);
		put_count_one(g, PROBE_ROW_LOST);
		probe_jump(a, done);
	}
	if (c && (is_end ? c->end_cnt : c->begin_cnt)) {
		probe_asm_bind(a, g->refuse);
		put_count_one(g, PROBE_ROW_REFUSED);
		probe_jump(a, is_end ? done : out);
	}
	probe_asm_bind(a, done);
	if (is_end && g->b->pending_fd >= 0) {
		put_key(g);
		probe_helper(a, BPF_FUNC_map_delete_elem);
	}
	probe_mov_imm(a, R0, !is_end && !g->b->kind->has_return ? nobody : 0);
	probe_exit(a);
}

/* Whether bodies differ in nothing before the record: no conditions, and one way to wait for the return. */
static bool has_common(const struct probe_body *bodies, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++) {
		if (bodies[i].cond || bodies[i].pending_fd != bodies[0].pending_fd || bodies[i].kind->has_return != bodies[0].kind->has_return)
			return false;
	}
	return true;
}

static void take_body(struct gen *g, const struct probe_body *b)
{
	g->b = b;
	g->keeps = probe_keeps(b->kind, b->cond, g->p->count_only);
}

static void put_half(struct gen *g, int nobody)
{
	struct probe_asm *a = g->a;
	const struct probe_body *bodies = g->is_end ? g->p->ends : g->p->begins;
	uint32_t cnt = g->is_end ? g->p->end_cnt : g->p->begin_cnt, out = probe_asm_label(a);
	uint32_t labels[PROBE_BODY_MAX];
	take_body(g, &bodies[0]);
	g->is_common = has_common(bodies, cnt);
	put_who(g, out);
	if (g->is_common && g->is_end) {
		put_times(g, out);
		put_ended(g);
	} else if (g->is_common) {
		put_begun(g);
	}
	for (uint32_t i = 1; i < cnt; i++) {
		labels[i] = probe_asm_label(a);
		probe_jump_if_imm(a, BPF_JEQ, REC, (int32_t)i, labels[i]);
	}
	for (uint32_t i = 0; i < cnt; i++) {
		if (i)
			probe_asm_bind(a, labels[i]);
		take_body(g, &bodies[i]);
		put_body(g, nobody, out);
	}
	probe_asm_bind(a, out);
	probe_mov_imm(a, R0, g->is_end ? 0 : nobody);
	probe_exit(a);
}

void probe_program(const struct probe_plan *p, struct probe_asm *a)
{
	struct gen g = {.p = p, .a = a, .is_end = p->is_return};
	probe_mov(a, CTX, R1);
	if (p->is_session) {
		uint32_t end = probe_asm_label(a);
		probe_mov(a, R1, CTX);
		probe_kfunc(a, p->is_return_id);
		probe_jump_if_imm(a, BPF_JNE, R0, 0, end);
		put_half(&g, 1);
		probe_asm_bind(a, end);
		if (p->end_cnt) {
			g.is_end = true;
			put_half(&g, 0);
		} else {
			probe_mov_imm(a, R0, 0);
			probe_exit(a);
		}
	} else {
		put_half(&g, 0);
	}
	probe_asm_finish(a);
}
