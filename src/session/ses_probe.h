/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SES_PROBE_H
#define SESSION_SES_PROBE_H

#include "base/buf.h"
#include "session/session.h"

#include <sys/types.h>

/*
 * Probes on functions and instructions of a target, wherever it runs: what they are called with by their prototypes, what they return
 * and how long they take. The kernel side is live/trace/probe.h.
 */
struct ses_probes;

enum { SES_PROBE_MAX = 8192, SES_PROBE_TEXT = 256 };

struct ses_probe_opts {
	const char *const *whats;  /* FUNC, a pattern of names, ADDR, FUNC:LINE, FUNC:cLINE */
	size_t what_cnt;
	const char *args;          /* "TYPE,...", where nothing says what the arguments are; null */
	const char *cond;          /* null: always */
	const char *way;           /* "session", "multi", "perf"; null: the best there is */
	const pid_t *pids;         /* only these processes; none: all */
	size_t pid_cnt;
	bool with_children;        /* and their children */
	uint32_t text_max;         /* bytes of strings; 0: 128 */
	uint64_t ring_len;         /* bytes; 0: 4 MiB */
	bool count_only;           /* counts and latencies, no hits */
	bool no_return;            /* entries alone */
	bool with_stacks;          /* behind each hit who called, and who called that */
	bool with_lines;           /* of each of them the line of C, by analysing its module */
	bool is_json;              /* lines are JSON objects, else for people */
};

/* A line for every hit that ended (or whose probe has no end), without its end of line. False: no more are wanted. */
typedef bool ses_probe_line_fn(void *ctx, const char *line, size_t len);

/* Attaches. Errors: not_found and ambiguous (a name), invalid, unsupported with what to do where the machine or the kernel
 * refuses. The snapshot is held until ses_probes_close(). */
_must_use_ struct err *ses_probes_open(struct ses_snap *sn, const struct ses_call *call, const struct ses_probe_opts *o,
				       struct ses_probes **ret);
/* Detaches. Accepts null. */
void ses_probes_close(struct ses_probes *p);
/* Gives the lines of what happened since the last time; *ret_cnt records were read. Does not wait. */
_must_use_ struct err *ses_probes_drain(struct ses_probes *p, ses_probe_line_fn *line, void *ctx, uint64_t *ret_cnt);
/* Lines of calls whose end was never seen. */
void ses_probes_flush(struct ses_probes *p, ses_probe_line_fn *line, void *ctx);
/* Ends recording; drain still gives what was recorded before. */
void ses_probes_detach(struct ses_probes *p);
/* Whether any of the processes with their children that are probed is still there. */
bool ses_probes_are_alive(const struct ses_probes *p);

struct ses_probe_counts {
	uint64_t addr;
	const char *name;          /* "getenv", "main+0x15" */
	const char *where;         /* "function", "instruction" */
	const char *types;         /* what says what the arguments are: "args", "user", "dwarf", "builtin", "system", "recovered", "registers" */
	bool has_return;
	uint64_t hits, returns, refused, ns;
	uint64_t p50, p90, p99;    /* ns: upper ends of the slots of the histogram these are in, 0: none */
	uint64_t slots[40];        /* slot i: 2^i to 2^(i+1)-1 ns */
	const char *last;          /* the last hit as text, "" none yet; valid until the next drain */
};
uint32_t ses_probes_cnt(const struct ses_probes *p);
/* Functions that patterns named and where no probe can stand; *ret_why of the first, with its name, null when there are none. */
uint32_t ses_probes_left_out(const struct ses_probes *p, const char **ret_why);
void ses_probes_get(const struct ses_probes *p, uint32_t i, struct ses_probe_counts *ret);
/* records = received + lost. */
void ses_probes_totals(const struct ses_probes *p, uint64_t *ret_records, uint64_t *ret_received, uint64_t *ret_lost);
const char *ses_probes_way(const struct ses_probes *p);
/* Whether a probe can stand at va; why not, or null. */
const char *ses_probe_refuse(struct ses_snap *sn, uint64_t va, struct arena *a);
/* Counts and latencies as a table for people, or as the object that ends a stream of JSON. */
void ses_probes_put_summary(const struct ses_probes *p, bool is_json, struct buf *out);

/* --- a run of the command ------------------------------------------------------------------------------------------ */

struct ses_probe_run {
	struct ses_probe_opts o;
	char *const *argv;         /* a program to start and probe, ended by null; null: none */
	uint64_t count;            /* end after so many lines, 0: no */
	uint64_t for_ns;           /* end after so long, 0: no */
	/* Text for whoever reads; false: nobody reads any more. */
	bool (*write)(void *ctx, const char *s, size_t len);
	/* A line for people about the probes themselves, without its end. */
	void (*say)(void *ctx, const char *line);
	void *ctx;
	const atomic_bool *cancel; /* ends it as Ctrl+C does */
};
/* Attaches, starts the program, gives lines until it has ended (or the process probed, or the limits are reached), detaches, gives the
 * summary. `*ret_status`: the wait status of the program, -1 where there is none or it goes on. Errors as ses_probes_open();
 * not_found: there is no such program or process. */
_must_use_ struct err *ses_probe_run(struct ses_snap *sn, const struct ses_call *call, const struct ses_probe_run *r, int *ret_status);

#endif
