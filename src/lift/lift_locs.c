/* SPDX-License-Identifier: Apache-2.0 */
#include "lift/lift_int.h"

#define ROW(first, prefix, width, cls)                                                                  \
	[(first) + 0] = {prefix "0", width, cls}, [(first) + 1] = {prefix "1", width, cls},             \
	[(first) + 2] = {prefix "2", width, cls}, [(first) + 3] = {prefix "3", width, cls},             \
	[(first) + 4] = {prefix "4", width, cls}, [(first) + 5] = {prefix "5", width, cls},             \
	[(first) + 6] = {prefix "6", width, cls}, [(first) + 7] = {prefix "7", width, cls}

#define ROW_HIGH(first, prefix, width, cls)                                                             \
	[(first) + 0] = {prefix "8", width, cls}, [(first) + 1] = {prefix "9", width, cls},             \
	[(first) + 2] = {prefix "10", width, cls}, [(first) + 3] = {prefix "11", width, cls},           \
	[(first) + 4] = {prefix "12", width, cls}, [(first) + 5] = {prefix "13", width, cls},           \
	[(first) + 6] = {prefix "14", width, cls}, [(first) + 7] = {prefix "15", width, cls}

/* What both machines have besides the general registers. */
#define COMMON(addr)                                                                                    \
	[LIFT_CF] = {"cf", IR_W1, IR_LOC_FLAG}, [LIFT_PF] = {"pf", IR_W1, IR_LOC_FLAG},                 \
	[LIFT_AF] = {"af", IR_W1, IR_LOC_FLAG}, [LIFT_ZF] = {"zf", IR_W1, IR_LOC_FLAG},                 \
	[LIFT_SF] = {"sf", IR_W1, IR_LOC_FLAG}, [LIFT_DF] = {"df", IR_W1, IR_LOC_FLAG},                 \
	[LIFT_OF] = {"of", IR_W1, IR_LOC_FLAG},                                                         \
	[LIFT_FSBASE] = {"fsbase", addr, IR_LOC_BASE}, [LIFT_GSBASE] = {"gsbase", addr, IR_LOC_BASE},   \
	[LIFT_ES] = {"es", IR_W16, IR_LOC_SEG}, [LIFT_CS] = {"cs", IR_W16, IR_LOC_SEG},                 \
	[LIFT_SS] = {"ss", IR_W16, IR_LOC_SEG}, [LIFT_DS] = {"ds", IR_W16, IR_LOC_SEG},                 \
	[LIFT_FS] = {"fs", IR_W16, IR_LOC_SEG}, [LIFT_GS] = {"gs", IR_W16, IR_LOC_SEG},                 \
	[LIFT_MXCSR] = {"mxcsr", IR_W32, IR_LOC_CONTROL}, [LIFT_FCW] = {"fcw", IR_W16, IR_LOC_CONTROL}, \
	[LIFT_FSW] = {"fsw", IR_W16, IR_LOC_CONTROL},                                                   \
	ROW(LIFT_XMM0, "xmm", IR_W128, IR_LOC_VEC), ROW(LIFT_YMMH0, "ymmh", IR_W128, IR_LOC_VEC_HI),    \
	ROW(LIFT_ZMMH0, "zmmh", IR_W256, IR_LOC_VEC_HI), ROW(LIFT_F0, "f", IR_W80, IR_LOC_X87),         \
	ROW(LIFT_MM0, "mm", IR_W64, IR_LOC_VEC), ROW(LIFT_K0, "k", IR_W64, IR_LOC_MASK)

#define GPR(loc, name, addr) [loc] = {name, addr, IR_LOC_GPR}

static const struct ir_loc locs_64[LIFT_LOC_CNT_64] = {
	GPR(LIFT_AX, "rax", IR_W64), GPR(LIFT_CX, "rcx", IR_W64), GPR(LIFT_DX, "rdx", IR_W64), GPR(LIFT_BX, "rbx", IR_W64),
	GPR(LIFT_SP, "rsp", IR_W64), GPR(LIFT_BP, "rbp", IR_W64), GPR(LIFT_SI, "rsi", IR_W64), GPR(LIFT_DI, "rdi", IR_W64),
	COMMON(IR_W64),
	ROW_HIGH(LIFT_R8, "r", IR_W64, IR_LOC_GPR), ROW_HIGH(LIFT_XMM8, "xmm", IR_W128, IR_LOC_VEC),
	ROW_HIGH(LIFT_YMMH8, "ymmh", IR_W128, IR_LOC_VEC_HI), ROW_HIGH(LIFT_ZMMH8, "zmmh", IR_W256, IR_LOC_VEC_HI),
	[LIFT_ZMM16 + 0] = {"zmm16", IR_W512, IR_LOC_VEC}, [LIFT_ZMM16 + 1] = {"zmm17", IR_W512, IR_LOC_VEC},
	[LIFT_ZMM16 + 2] = {"zmm18", IR_W512, IR_LOC_VEC}, [LIFT_ZMM16 + 3] = {"zmm19", IR_W512, IR_LOC_VEC},
	[LIFT_ZMM16 + 4] = {"zmm20", IR_W512, IR_LOC_VEC}, [LIFT_ZMM16 + 5] = {"zmm21", IR_W512, IR_LOC_VEC},
	[LIFT_ZMM16 + 6] = {"zmm22", IR_W512, IR_LOC_VEC}, [LIFT_ZMM16 + 7] = {"zmm23", IR_W512, IR_LOC_VEC},
	[LIFT_ZMM16 + 8] = {"zmm24", IR_W512, IR_LOC_VEC}, [LIFT_ZMM16 + 9] = {"zmm25", IR_W512, IR_LOC_VEC},
	[LIFT_ZMM16 + 10] = {"zmm26", IR_W512, IR_LOC_VEC}, [LIFT_ZMM16 + 11] = {"zmm27", IR_W512, IR_LOC_VEC},
	[LIFT_ZMM16 + 12] = {"zmm28", IR_W512, IR_LOC_VEC}, [LIFT_ZMM16 + 13] = {"zmm29", IR_W512, IR_LOC_VEC},
	[LIFT_ZMM16 + 14] = {"zmm30", IR_W512, IR_LOC_VEC}, [LIFT_ZMM16 + 15] = {"zmm31", IR_W512, IR_LOC_VEC},
};

static const struct ir_loc locs_32[LIFT_LOC_CNT_32] = {
	GPR(LIFT_AX, "eax", IR_W32), GPR(LIFT_CX, "ecx", IR_W32), GPR(LIFT_DX, "edx", IR_W32), GPR(LIFT_BX, "ebx", IR_W32),
	GPR(LIFT_SP, "esp", IR_W32), GPR(LIFT_BP, "ebp", IR_W32), GPR(LIFT_SI, "esi", IR_W32), GPR(LIFT_DI, "edi", IR_W32),
	COMMON(IR_W32),
};

static const struct ir_machine machine_64 = {
	.name = "x86-64", .locs = locs_64, .loc_cnt = LIFT_LOC_CNT_64, .sp_loc = LIFT_SP, .addr_width = IR_W64, .calls_push = true,
};

static const struct ir_machine machine_32 = {
	.name = "i386", .locs = locs_32, .loc_cnt = LIFT_LOC_CNT_32, .sp_loc = LIFT_SP, .addr_width = IR_W32, .calls_push = true,
};

const struct ir_machine *lift_machine(enum arch_id id)
{
	return id == ARCH_ID_X86_64 ? &machine_64 : id == ARCH_ID_I386 ? &machine_32 : NULL;
}

const struct ir_machine *const *lift_machines(unsigned *ret_cnt)
{
	static const struct ir_machine *const all[] = {&machine_64, &machine_32};
	*ret_cnt = 2;
	return all;
}
