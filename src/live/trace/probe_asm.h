/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_PROBE_ASM_H
#define LIVE_TRACE_PROBE_ASM_H

#include "base/vec.h"

#include <linux/bpf.h>

/*
 * Instructions of the kernel's BPF machine (Documentation/bpf/standardization/instruction-set.rst) with jumps to labels. Errors
 * stick: after memory ran out or a jump was too far, `failed` is set and nothing more is added.
 */
struct probe_jump { uint32_t insn, label; };
struct probe_asm {
	VEC(struct bpf_insn) code;
	VEC(int32_t) labels; /* place of each label, -1: none yet */
	VEC(struct probe_jump) jumps;
	bool failed;
};

void probe_asm_fini(struct probe_asm *a);

/* A label without a place; jumps may name it before it has one. */
uint32_t probe_asm_label(struct probe_asm *a);
/* The label is here, before the next instruction. */
void probe_asm_bind(struct probe_asm *a, uint32_t label);
/* Puts the distances into the jumps. False when a label has no place, a distance does not fit or something failed before. */
bool probe_asm_finish(struct probe_asm *a);

/* Sizes are BPF_B, BPF_H, BPF_W or BPF_DW; operations BPF_ADD ...; registers BPF_REG_0 ... BPF_REG_10. */
void probe_asm_insn(struct probe_asm *a, struct bpf_insn i);
void probe_mov(struct probe_asm *a, int dst, int src);
void probe_mov_imm(struct probe_asm *a, int dst, int32_t imm);                 /* sign-extended */
void probe_alu(struct probe_asm *a, int op, int dst, int src);
void probe_alu_imm(struct probe_asm *a, int op, int dst, int32_t imm);
void probe_imm64(struct probe_asm *a, int dst, int how, uint64_t imm);         /* how: 0 or BPF_PSEUDO_*; imm: value or fd and offset << 32 */
void probe_load(struct probe_asm *a, int size, int dst, int src, int off);     /* dst = [src + off] */
void probe_store(struct probe_asm *a, int size, int dst, int off, int src);    /* [dst + off] = src */
void probe_store_imm(struct probe_asm *a, int size, int dst, int off, int32_t imm);
void probe_atomic(struct probe_asm *a, int op, int dst, int off, int src);     /* [dst + off] op= src, 8 bytes, at once; BPF_ADD, BPF_AND, BPF_OR */
void probe_helper(struct probe_asm *a, int id);                                /* enum bpf_func_id */
void probe_kfunc(struct probe_asm *a, uint32_t btf_id);
void probe_jump(struct probe_asm *a, uint32_t label);
void probe_jump_if(struct probe_asm *a, int op, int dst, int src, uint32_t label);
void probe_jump_if_imm(struct probe_asm *a, int op, int dst, int32_t imm, uint32_t label);
void probe_exit(struct probe_asm *a);

#endif
