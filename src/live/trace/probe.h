/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_PROBE_H
#define LIVE_TRACE_PROBE_H

#include "base/err.h"
#include "live/trace/trace_event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Probes: places of a file of machine code that the kernel counts and records whenever a process runs over them (uprobes). Every
 * kind of probe is a BPF program of its own, assembled here (probe_prog.c), so neither a compiler nor a library is needed;
 * links live in descriptors of this process, and end with it however it ends.
 *
 * Ways to attach, best first: one link with an entry and a return half that share a word (uprobe session, Linux 6.13);
 * one link for entries and one for returns (uprobe multi, 6.6); a perf event for each half of each probe (5.15).
 */
enum probe_way { PROBE_WAY_ANY, PROBE_WAY_SESSION, PROBE_WAY_MULTI, PROBE_WAY_PERF, PROBE_WAY_COUNT };

enum {
	PROBE_POINT_MAX = 8192,
	PROBE_KIND_MAX = 1024,
	PROBE_ARG_MAX = 20,
	PROBE_FETCH_MAX = 4096,   /* bytes of one string or piece of memory */
	PROBE_RECORD_MAX = 16384, /* bytes of a record */
	PROBE_STACK_MAX = 192,    /* bytes of the stack that arguments come from, the return address too */
	PROBE_COND_MAX = 4096,    /* bytes of a condition */
	PROBE_SLOT_COUNT = 40,    /* of the histogram: slot i counts latencies of 2^i to 2^(i+1)-1 ns, the last one all above */
};

/* Where a value is when the probe is hit. */
enum probe_from {
	PROBE_NOWHERE, /* in a place the kernel does not tell: a vector register */
	PROBE_REG,     /* `at`: number in probe_reg_find() */
	PROBE_STACK,   /* `at`: bytes from the stack pointer, which is at the return address when a function begins */
};

enum probe_fetch { PROBE_VALUE, PROBE_STRING /* ended by a zero */, PROBE_BYTES };

struct probe_arg {
	const char *name;   /* for conditions; null: only a1, a2, ... */
	uint8_t from;       /* enum probe_from */
	uint8_t fetch;      /* enum probe_fetch: what of the memory at the value is read too */
	uint8_t size;       /* bytes of the value: 1, 2, 4, 8 */
	bool is_signed;
	bool is_hidden;     /* not for conditions */
	uint16_t at;
	uint16_t len;       /* bytes to fetch at most, <= PROBE_FETCH_MAX; of a string without its zero */
};

/* What probes of one kind record. */
struct probe_kind {
	const struct probe_arg *args;
	uint32_t arg_cnt;
	struct probe_arg ret;  /* `from` and `at` are not used */
	bool is_func;          /* stands where a function begins: there is a caller */
	bool has_return;       /* the return is recorded too */
	bool is_32bit;         /* i386: stack words have 4 bytes */
	const char *cond;      /* null: always. See probe_cond.h */
};

struct probe_point {
	uint64_t off;          /* bytes from the beginning of the file; must be where an instruction begins */
	uint32_t kind;
};

struct probe_opts {
	const char *path;      /* what is mapped by processes; resolved once, when this is called */
	const struct probe_point *points;
	const struct probe_kind *kinds;
	uint32_t point_cnt, kind_cnt;
	const pid_t *pids;     /* only these processes; none: all */
	size_t pid_cnt;
	bool with_children;    /* and their children, those they make later, too */
	bool count_only;       /* no records */
	enum probe_way way;
	uint64_t ring_len;     /* bytes, 0: 4 MiB; made a power of two */
};

/* A record. Everything that is the traced program's is untrusted. */
enum probe_phase {
	PROBE_ENTRY,   /* a function began, or an instruction is about to run */
	PROBE_RETURN,  /* it returned; args are not there */
	PROBE_CALL,    /* both */
	PROBE_PHASE_COUNT
};
struct probe_hit {
	const uint8_t *rec;    /* the record itself, to be decoded again */
	size_t rec_len;
	uint32_t point;
	uint8_t phase;         /* enum probe_phase */
	bool has_caller;
	uint16_t cpu;
	uint32_t pid, tid;
	uint64_t time;         /* ns of the boot clock: of the beginning, of PROBE_RETURN of the end */
	uint64_t begin;        /* when it began: joins PROBE_RETURN to its PROBE_ENTRY */
	uint64_t ns;           /* from beginning to end; PROBE_RETURN and PROBE_CALL */
	uint64_t ip, sp;       /* at the beginning; of PROBE_RETURN at the end */
	uint64_t caller;       /* return address */
	uint64_t ret;
	bool is_stack_bad;     /* the stack could not be read: values from there are not known */
	const uint8_t *values; /* uint64_t each, unaligned; arg_cnt of them; null without */
	/* What was fetched, by argument; [PROBE_ARG_MAX] of the result. status TRACE_ABSENT: nothing. */
	struct trace_slot slots[PROBE_ARG_MAX + 1];
};

struct probe_counts {
	uint64_t hits;         /* the condition held, as far as it needs no return */
	uint64_t returns;      /* returned, and the whole condition held */
	uint64_t refused;      /* the condition did not hold */
	uint64_t ns;           /* sum of latencies */
	uint64_t slots[PROBE_SLOT_COUNT];
};
/* records = received + lost, once what processes did is drained. */
struct probe_totals { uint64_t records, received, lost; };

struct probe_set;
/* False: no more are wanted. */
typedef bool probe_sink_fn(void *ctx, const struct probe_hit *hit);

/* Number and width in bytes of a register by name, "rdi" or "edi"; false when none is called so. */
bool probe_reg_find(const char *name, size_t len, uint16_t *ret, uint8_t *ret_size);
/* Its name, of 8 bytes. */
const char *probe_reg_name(uint16_t reg);

/* Why no probe can stand on the instruction of x86 whose bytes begin there, a constant text; null: one can. Where the kernel would put none
 * (without a word, in files that are mapped later), and where one would end the program. */
const char *probe_insn_refused(const uint8_t *code, size_t len, bool is_64bit);

/* Whether the machine's processor and kernel take probes at all and this process may. Errors: ERR_ENV with what to do. */
_must_use_ struct err *probe_check(void);
/* Attaches; from then on hits are recorded. Errors: ERR_INVALID (a condition), ERR_ENV (what the kernel refuses), ERR_BUDGET. */
_must_use_ struct err *probe_open(const struct probe_opts *o, struct probe_set **ret);
/* No more is recorded, but by what runs on another processor at that moment; what was is still there to be read. */
void probe_detach(struct probe_set *s);
/* Detaches. Accepts null. */
void probe_close(struct probe_set *s);
enum probe_way probe_way_of(const struct probe_set *s);
const char *probe_way_name(enum probe_way w);
/* Gives the records that are there, oldest first, and does not wait; *ret_cnt of them. Error ERR_INTERNAL when the ring is damaged. */
_must_use_ struct err *probe_drain(struct probe_set *s, probe_sink_fn *sink, void *ctx, uint64_t *ret_cnt);
void probe_get_counts(const struct probe_set *s, uint32_t point, struct probe_counts *ret);
/* Whether records that were there before this was called were all given. */
bool probe_is_drained(const struct probe_set *s);
/* Of a set for named processes with their children: whether any of them is still there. */
bool probe_is_alive(const struct probe_set *s);
void probe_get_totals(const struct probe_set *s, struct probe_totals *ret);

/* A record of the ring. False when it is none of these kinds. Values and slots borrow from it. */
bool probe_decode(const struct probe_opts *o, const uint8_t *bytes, size_t len, struct probe_hit *ret);

#endif
