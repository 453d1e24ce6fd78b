/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_PROBE_INT_H
#define LIVE_TRACE_PROBE_INT_H

#include "live/trace/probe.h"
#include "live/trace/probe_asm.h"
#include "live/trace/probe_cond.h"

/* What of the UAPI the headers of Debian 12 (Linux 6.1) do not have. */
enum { PROBE_ATTACH_UPROBE_MULTI = 48, PROBE_ATTACH_UPROBE_SESSION = 57, PROBE_UPROBE_MULTI_RETURN = 1 };

/*
 * A record in the ring, in the machine's own byte order: this part, then by phase
 *   ENTRY, CALL: a word for each argument, then what was fetched, by argument;
 *   RETURN, CALL: the value returned, the latency, then what was fetched of it.
 * Something fetched is an int32_t (bytes read, with the zero of a string; or -errno; 0: not read), 4 bytes nothing, and its bytes in room for a
 * multiple of 8.
 */
struct probe_rec {
	uint64_t time, begin;
	uint64_t pid_tid;      /* tgid << 32 | tid */
	uint64_t ip, sp;
	uint64_t caller;       /* ENTRY, CALL; with PROBE_REC_CALLER */
	uint32_t point;
	uint16_t cpu;
	uint8_t phase, flags;
};
enum { PROBE_REC_CALLER = 1, PROBE_REC_STACK_BAD = 2 };

/* Where things are in records of a kind, in bytes. */
struct probe_layout {
	uint32_t slot[PROBE_ARG_MAX + 1]; /* of each argument, and the value returned last; 0: none */
	uint32_t entry_len;               /* of ENTRY; in CALL the return part begins here */
	uint32_t return_len;              /* of RETURN; its own return part begins behind the fixed part */
	uint32_t call_len;
	uint32_t stack_len;               /* bytes of the stack the arguments need, the return address too */
};
/* Error ERR_INVALID for what is too large. */
_must_use_ struct err *probe_layout(const struct probe_kind *k, struct probe_layout *ret);

/* Words of a counter row, then the histogram; a row has PROBE_ROW_LEN bytes. */
enum { PROBE_ROW_HITS, PROBE_ROW_RETURNS, PROBE_ROW_REFUSED, PROBE_ROW_NS, PROBE_ROW_RECORDS, PROBE_ROW_LOST, PROBE_ROW_SLOTS = 8,
       PROBE_ROW_SHIFT = 9, PROBE_ROW_LEN = 1 << PROBE_ROW_SHIFT };

/* What is done for a kind of probe in one half of a program. */
struct probe_body {
	const struct probe_kind *kind;
	const struct probe_layout *layout;
	const struct probe_cond *cond;      /* null: none */
	int pending_fd, zero_fd;            /* calls that began: key {pid_tid, sp, point}, value the time or (probe_keeps) the record; -1: none */
};
enum { PROBE_BODY_MAX = 64 };               /* of a half */

/* What a program is made for: kinds of probes that all have a return or all have none. */
struct probe_plan {
	const struct probe_body *begins, *ends; /* at least one of the half, at most PROBE_BODY_MAX; end_cnt 0: no returns */
	uint32_t begin_cnt, end_cnt;
	bool is_session;                    /* one program is both halves */
	bool is_return;                     /* not is_session: the return half */
	bool is_sleepable, count_only;
	int who_fd;                         /* bits of whose hits are recorded (probe_who.h); -1: everybody's */
	pid_t pid;                          /* to be compared here, as the pid namespace of pid_ns numbers it; 0: not */
	uint64_t pid_ns_dev, pid_ns_ino;
	int ring_fd, counts_fd;
	uint32_t point_cnt, stripe_cnt;     /* rows: point_cnt in each of stripe_cnt (a power of two) */
	uint32_t is_return_id, cookie_id;   /* BTF ids of the kernel's functions for sessions */
	uint32_t copy_text_id;              /* and of the one that waits for the pages of a string (Linux 6.12); 0: there is none */
};
/* Whether records wait in the kernel for the return, which decides about them. */
bool probe_keeps(const struct probe_kind *k, const struct probe_cond *c, bool count_only);
void probe_program(const struct probe_plan *p, struct probe_asm *a);
/* What links give a program with each hit: the point's number, and which body of each half is its kind's. */
static inline uint64_t probe_cookie(uint32_t point, uint32_t begin, uint32_t end)
{
	return point | (uint64_t)begin << 16 | (uint64_t)end << 32;
}

/* bpf(2), and what it means that it was refused with `why`. */
int probe_bpf(int cmd, void *attr, size_t len);
_must_use_ struct err *probe_refused(int why, const char *what);

/* The numbers of functions in the kernel's type information, as many as PROBE_BTF_NAMES at most, found in one pass; 0: there is none of that name. */
enum { PROBE_BTF_NAMES = 4 };
void probe_btf_funcs(const uint8_t *btf, size_t len, const char *const *names, size_t cnt, uint32_t *ret);

#endif
