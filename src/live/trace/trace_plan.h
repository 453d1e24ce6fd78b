/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_PLAN_H
#define LIVE_TRACE_PLAN_H

#include "live/trace/trace_wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What the kernel's side is told of system calls: which are wanted, and what of their arguments is read. It follows
 * from the table of system calls (sysc.h) alone.
 */
struct trace_plan {
	const uint64_t *ids[2]; /* TRACE_IDS bits of x86-64 (arm64) and i386: calls that are wanted; null = all */
	uint32_t string_limit;  /* bytes of a string, 0 = TRACE_LIMIT_MAX; never more */
	uint32_t data_limit;    /* bytes of a buffer, 0 = 32 */
	uint32_t array_limit;   /* bytes of an array of structs, 0 = 512 */
	/* Limits of single arguments, before those above; null = none. */
	const struct trace_limit {
		const char *call; /* name of the system call */
		uint8_t arg;
		uint16_t limit;   /* bytes */
	} *limits;
	size_t limit_cnt;
	bool with_blocking;     /* calls that may block have a record at their beginning, too */
	bool with_races;        /* strings are read at the beginning, too, so that one that is changed meanwhile is known */
	bool with_maps;         /* mappings that may be executed are recorded, whether mmap is wanted or not */
};

/* Bytes of stack with each call, a multiple of 8 up to TRACE_STACK_DEEP: fills in what of `cfg` depends on it, whose flags are set. */
void trace_plan_stack(struct trace_config *cfg, uint32_t len);

/* Fills in what of `cfg` and `shared` is about system calls; both zeroed by the caller, but for flags and trace_plan_stack. */
void trace_plan_fill(const struct trace_plan *plan, struct trace_config *cfg, struct trace_shared *shared);

/*
 * With perf's tracepoints, which do not show a new thread: those that were made by calls that can put it into other namespaces and cgroups
 * are judged by themselves, at their own end of that call. After trace_plan_fill.
 */
void trace_plan_judge_clones(struct trace_config *cfg, struct trace_shared *shared);

/* Fills in what of `cfg` is about rings of `len` bytes, a power of two from TRACE_RING_MIN to 256 MB; gives the bytes of a value of their map. */
size_t trace_plan_ring(struct trace_config *cfg, size_t len);

#endif
