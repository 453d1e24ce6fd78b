/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ARCH_X86_X86_ZYDIS_H
#define ARCH_X86_X86_ZYDIS_H

#include "arch/arch.h"

#include <Zydis/Zydis.h>

/* How x86 is decoded, for who needs more of an instruction than struct arch tells: the lifter. */

/* Instructions of Knights Corner, which Zydis knows and no other processor has. */
static inline bool x86_is_foreign(const ZydisDecodedInstruction *in)
{
	return in->meta.isa_ext == ZYDIS_ISA_EXT_KNC || in->meta.isa_ext == ZYDIS_ISA_EXT_KNCE ||
	       in->meta.isa_ext == ZYDIS_ISA_EXT_KNCV;
}

/* The Zydis decoder for this table's mode. */
const ZydisDecoder *x86_decoder(const struct arch *a);

#endif
