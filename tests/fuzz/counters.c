/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

unsigned long fuzz_accepted;
unsigned long fuzz_rejected;
