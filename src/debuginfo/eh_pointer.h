/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DEBUGINFO_EH_POINTER_H
#define DEBUGINFO_EH_POINTER_H

#include "debuginfo/dbg_view.h"

/*
 * Private to this folder: pointers as exception tables encode them (LSB 5.0, 10.5.1).
 */
#define DBG_EH_ABSPTR 0x00
#define DBG_EH_FORMAT_MASK 0x0f
#define DBG_EH_PCREL 0x10
#define DBG_EH_INDIRECT 0x80
#define DBG_EH_OMIT 0xff

/* What the relative forms are relative to. */
struct dbg_eh_bases {
	uint64_t text_va;
	uint64_t data_va;
	uint64_t func_va;
};

/* Reads one pointer of encoding `enc` at the view's position. A null pointer is 0 whatever it is
 * relative to. An encoding that does not exist, or a slot that is not mapped, fails the cursor. */
uint64_t dbg_eh_pointer(const struct fmt_bin *b, struct dbg_view *v, unsigned enc,
			const struct dbg_eh_bases *bases);

/* Reads the bare number of format `enc & DBG_EH_FORMAT_MASK`, sign-extended for signed formats. */
uint64_t dbg_eh_number(const struct fmt_bin *b, struct cur *c, unsigned enc);

/* Bytes of one number of that format; 0 for the variable-length ones and unknown ones. */
unsigned dbg_eh_number_bytes(const struct fmt_bin *b, unsigned enc);

#endif
