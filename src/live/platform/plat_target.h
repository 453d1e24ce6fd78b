/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_PLATFORM_PLAT_TARGET_H
#define LIVE_PLATFORM_PLAT_TARGET_H

#include "live/platform/plat_inf.h"

/*
 * The registers of x86-64 as debuggers number them: the standard features org.gnu.gdb.i386.{core,sse,linux,segments,avx} ("Debugging with
 * GDB", G.5.14), with what LLDB wants to know besides. The order is that of the numbers and of the packet `g`.
 */
#define PLAT_REG_MAX_LEN 16
#define PLAT_REG_RIP 16

unsigned plat_reg_cnt(void);
/* Bytes in packets. */
unsigned plat_reg_len(unsigned reg);
/* What `g` begins with: the integer registers, which stop replies carry. */
unsigned plat_reg_general_cnt(void);

/* The value, little-endian; false when the thread or the register is not there. */
bool plat_reg_get(struct plat_thread *t, unsigned reg, uint8_t ret[PLAT_REG_MAX_LEN]);
bool plat_reg_set(struct plat_thread *t, unsigned reg, const uint8_t *value);

/* The document target.xml. */
void plat_target_xml(struct buf *out);

#endif
