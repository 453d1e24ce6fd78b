/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_BENCH_ENCODER_H
#define TESTS_BENCH_ENCODER_H

#include "live/trace/trace_wire.h"

/* The types of arguments the switch of bench_encoder.bpf.c knows. */
enum {
	BENCH_NONE,
	BENCH_STR,
	BENCH_STRV,
	BENCH_FIXED_IN,
	BENCH_FIXED_OUT,
	BENCH_BYTES_IN,
	BENCH_BYTES_OUT,
	BENCH_SOCKADDR_OUT,
	BENCH_IOVEC_IN,
	BENCH_IOVEC_OUT,
	BENCH_ARRAY_IN,
	BENCH_MSGHDR,
	BENCH_ANY, /* a pointer if another argument says so */
};

struct bench_arg {
	uint8_t type;
	uint8_t partner;
	uint16_t limit; /* bytes; of FIXED the size */
};

struct bench_call {
	uint32_t cnt;
	struct bench_arg args[6];
};

struct bench_config {
	struct bench_call calls[TRACE_IDS];
};

#endif
