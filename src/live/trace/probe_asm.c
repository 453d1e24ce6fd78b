/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/probe_asm.h"

void probe_asm_fini(struct probe_asm *a)
{
	VEC_FREE(&a->code);
	VEC_FREE(&a->labels);
	VEC_FREE(&a->jumps);
}

uint32_t probe_asm_label(struct probe_asm *a)
{
	a->failed |= !VEC_PUSH(&a->labels, -1);
	return a->failed ? 0 : (uint32_t)a->labels.cnt - 1;
}

void probe_asm_bind(struct probe_asm *a, uint32_t label)
{
	if (!a->failed)
		a->labels.data[label] = (int32_t)a->code.cnt;
}

bool probe_asm_finish(struct probe_asm *a)
{
	for (size_t i = 0; !a->failed && i < a->jumps.cnt; i++) {
		const struct probe_jump *j = &a->jumps.data[i];
		int64_t off = (int64_t)a->labels.data[j->label] - j->insn - 1;
		a->failed = a->labels.data[j->label] < 0 || off < INT16_MIN || off > INT16_MAX;
		if (!a->failed)
			a->code.data[j->insn].off = (int16_t)off;
	}
	return !a->failed;
}

void probe_asm_insn(struct probe_asm *a, struct bpf_insn i)
{
	a->failed = a->failed || a->code.cnt >= BPF_MAXINSNS * 16 || !VEC_PUSH(&a->code, i);
}

static void put(struct probe_asm *a, int code, int dst, int src, int off, int32_t imm)
{
	a->failed |= off < INT16_MIN || off > INT16_MAX;
	probe_asm_insn(a, (struct bpf_insn){.code = (uint8_t)code, .dst_reg = (uint8_t)(dst & 15), .src_reg = (uint8_t)(src & 15),
					    .off = (int16_t)off, .imm = imm});
}

void probe_mov(struct probe_asm *a, int dst, int src)
{
	put(a, BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
}

void probe_mov_imm(struct probe_asm *a, int dst, int32_t imm)
{
	put(a, BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, imm);
}

void probe_alu(struct probe_asm *a, int op, int dst, int src)
{
	put(a, BPF_ALU64 | op | BPF_X, dst, src, 0, 0);
}

void probe_alu_imm(struct probe_asm *a, int op, int dst, int32_t imm)
{
	put(a, BPF_ALU64 | op | BPF_K, dst, 0, 0, imm);
}

void probe_imm64(struct probe_asm *a, int dst, int how, uint64_t imm)
{
	put(a, BPF_LD | BPF_DW | BPF_IMM, dst, how, 0, (int32_t)imm);
	put(a, 0, 0, 0, 0, (int32_t)(imm >> 32));
}

void probe_load(struct probe_asm *a, int size, int dst, int src, int off)
{
	put(a, BPF_LDX | size | BPF_MEM, dst, src, off, 0);
}

void probe_store(struct probe_asm *a, int size, int dst, int off, int src)
{
	put(a, BPF_STX | size | BPF_MEM, dst, src, off, 0);
}

void probe_store_imm(struct probe_asm *a, int size, int dst, int off, int32_t imm)
{
	put(a, BPF_ST | size | BPF_MEM, dst, 0, off, imm);
}

void probe_atomic(struct probe_asm *a, int op, int dst, int off, int src)
{
	put(a, BPF_STX | BPF_DW | BPF_ATOMIC, dst, src, off, op);
}

void probe_helper(struct probe_asm *a, int id)
{
	put(a, BPF_JMP | BPF_CALL, 0, 0, 0, id);
}

void probe_kfunc(struct probe_asm *a, uint32_t btf_id)
{
	put(a, BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, 0, (int32_t)btf_id);
}

static void put_jump(struct probe_asm *a, int code, int dst, int src, int32_t imm, uint32_t label)
{
	a->failed |= !VEC_PUSH(&a->jumps, (struct probe_jump){.insn = (uint32_t)a->code.cnt, .label = label});
	put(a, code, dst, src, 0, imm);
}

void probe_jump(struct probe_asm *a, uint32_t label)
{
	put_jump(a, BPF_JMP | BPF_JA, 0, 0, 0, label);
}

void probe_jump_if(struct probe_asm *a, int op, int dst, int src, uint32_t label)
{
	put_jump(a, BPF_JMP | op | BPF_X, dst, src, 0, label);
}

void probe_jump_if_imm(struct probe_asm *a, int op, int dst, int32_t imm, uint32_t label)
{
	put_jump(a, BPF_JMP | op | BPF_K, dst, 0, imm, label);
}

void probe_exit(struct probe_asm *a)
{
	put(a, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}
