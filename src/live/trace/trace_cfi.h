/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_CFI_H
#define LIVE_TRACE_CFI_H

#include "format/fmt.h"

/*
 * Where a function's caller is, by .eh_frame (LSB 5.0, 10.6; DWARF 5, 6.4), found by the table of .eh_frame_hdr. Only what an
 * unwinder needs that knows ip, sp and perhaps the frame pointer: the canonical frame address (CFA, sp before the call) and
 * where return address and frame pointer were saved. x86-64.
 */
enum trace_cfa_base { TRACE_CFA_UNKNOWN, TRACE_CFA_SP, TRACE_CFA_BP };

struct trace_cfi_row {
	uint8_t base;      /* enum trace_cfa_base */
	bool has_ra, has_bp; /* saved in the frame; without, the frame pointer is still the caller's */
	bool ra_is_di;     /* it is in rdi, as in vfork(2), which must not leave it on the stack */
	bool bp_is_lost;   /* by a rule that is not followed */
	bool is_signal;    /* the frame is a signal handler's: its caller's ip is no return address */
	int32_t cfa_off;   /* CFA = base + cfa_off */
	int32_t ra_off, bp_off; /* from the CFA */
};

/* The row that holds at `va`; false: none does, or it is not understood. Bytes may be anything. */
bool trace_cfi_find(const struct fmt_bin *b, uint64_t va, struct trace_cfi_row *ret);

/*
 * The same, and where the registers that a function must keep (System V ABI, AMD64, 3.2.1) but for the frame pointer are saved.
 * Indices are those of trace_cfi_kept.
 */
#define TRACE_CFI_KEPT 5
enum trace_cfi_where { TRACE_CFI_SAME /* the register still has it */, TRACE_CFI_SAVED, TRACE_CFI_LOST /* by a rule that is not followed */ };
struct trace_cfi_saved {
	uint8_t where[TRACE_CFI_KEPT]; /* enum trace_cfi_where */
	int32_t off[TRACE_CFI_KEPT];   /* of TRACE_CFI_SAVED: from the CFA */
};
/* DWARF's numbers: rbx, r12 ... r15. */
extern const uint8_t trace_cfi_kept[TRACE_CFI_KEPT];
bool trace_cfi_find_saved(const struct fmt_bin *b, uint64_t va, struct trace_cfi_row *ret, struct trace_cfi_saved *ret_saved);

/* The bytes of the file at `va`, as many as are left in its segment; null where there are none. */
const uint8_t *trace_cfi_bytes(const struct fmt_bin *b, uint64_t va, size_t *ret_len);

#endif
