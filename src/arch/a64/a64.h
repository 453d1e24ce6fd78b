/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ARCH_A64_A64_H
#define ARCH_A64_A64_H

#include "arch/arch.h"

extern const struct arch a64_arch;

/* Loads the library that writes the text; null, or an error of kind env. Thread-safe, once. */
_must_use_ struct err *a64_load(void);

#endif
