/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* What each fuzz target defines; see replay_main.c and tests/fuzz/run. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* A target adds one to either for each input, when it can tell. Under libFuzzer they are defined in counters.c. */
extern unsigned long fuzz_accepted;
extern unsigned long fuzz_rejected;

#endif
