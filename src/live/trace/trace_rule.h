/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_RULE_H
#define LIVE_TRACE_RULE_H

#include "base/err.h"
#include "live/trace/trace_event.h"

/*
 * Detections: rules are text (docs/rules.md), one pattern of events each; events go in, findings come out.
 *
 * What an event does not say is unknown, and a condition over something unknown is neither true nor false (three-valued, as in SQL):
 * only what is certain is found. Everything kept between events is bounded; where a bound was met, `dropped` counts.
 */
struct trace_rules;
struct trace_fds;

struct trace_finding {
	const char *rule, *title, *severity;
	const char *technique;        /* of MITRE ATT&CK, "T1055.008", or null */
	const struct trace_event *ev; /* the event that completes the pattern; null for repeats */
	uint32_t pid;
	const char *comm, *exe;       /* of that process, as last known; null where not known */
	uint64_t time;                /* ns of the boot clock; of repeats, of the last */
	uint64_t first_time;          /* of the event the pattern began with */
	uint32_t first_pid;
	uint64_t repeats;             /* 0, or: how many more there were like one that was told (trace_rules_finish()) */
};

typedef void trace_finding_fn(void *ctx, const struct trace_finding *f);

/* No rules yet. Owned by the caller: trace_rules_free(). */
struct err *trace_rules_new(struct trace_rules **ret);
void trace_rules_free(struct trace_rules *r);

/*
 * Adds the rules of a text of len bytes. `name` is the file's, for messages: "NAME:LINE: what is wrong".
 * ERR_INVALID with nothing added when one of them is wrong.
 */
struct err *trace_rules_add_text(struct trace_rules *r, const char *name, const char *text, size_t len);

/* Adds what a word on the command line asks for: "all" (every rule that comes with scry), the name of one of them, or a file. */
struct err *trace_rules_add(struct trace_rules *r, const char *word);

/* The rules added so far, by index: name, title, severity; false past the last. */
bool trace_rules_get(const struct trace_rules *r, size_t idx, struct trace_finding *ret);

/*
 * After the last rule was added: who gets findings, and who knows what descriptors and current folders are (may be null; lives longer, and is fed by
 * the caller). False when memory ran out.
 */
bool trace_rules_begin(struct trace_rules *r, trace_finding_fn *fn, void *ctx, struct trace_fds *fds);

/* After trace_rules_begin(): whether a rule looks at call nr of abi (enum trace_abi): what a source has to record for them. */
bool trace_rules_needs(const struct trace_rules *r, unsigned abi, int nr);

/* Every event, in order of time. */
void trace_rules_event(struct trace_rules *r, const struct trace_event *ev);

/* Tells the repeats. Returns how many beginnings of sequences and processes were dropped for want of room. */
uint64_t trace_rules_finish(struct trace_rules *r);

/* The text of the rules that come with scry, len bytes. */
const char *trace_rules_builtin(size_t *ret_len);

#endif
