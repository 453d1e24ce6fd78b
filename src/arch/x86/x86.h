/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ARCH_X86_X86_H
#define ARCH_X86_X86_H

#include "arch/arch.h"

/* The two x86 instruction sets, for arch.c. */
extern const struct arch x86_64;
extern const struct arch x86_i386;

#endif
