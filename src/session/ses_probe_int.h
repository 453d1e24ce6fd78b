/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SES_PROBE_INT_H
#define SESSION_SES_PROBE_INT_H

#include "live/trace/probe.h"
#include "session/ses_int.h"
#include "session/ses_probe.h"

/* How a value is shown; made of C types once, so that showing takes no lock. */
enum ses_show_kind { SES_SHOW_NONE, SES_SHOW_INT, SES_SHOW_CHAR, SES_SHOW_BOOL, SES_SHOW_ENUM, SES_SHOW_FLOAT, SES_SHOW_POINTER, SES_SHOW_TEXT,
		     SES_SHOW_STRUCT, SES_SHOW_ARRAY };

struct ses_show;
struct ses_show_member {
	const char *name;
	const struct ses_show *type;
	uint32_t off;              /* bytes */
	uint8_t bit_off, bit_len;  /* bit_len 0: no bit-field */
};
struct ses_show {
	uint8_t kind;              /* enum ses_show_kind */
	bool is_signed;
	uint32_t size, cnt;        /* bytes; members, elements, constants */
	const char *text;          /* the type in C */
	const struct ses_show *to; /* pointer: what it leads to, null where that is not fetched; array: element */
	const struct ses_show_member *members;
	const char *const *names;  /* constants */
	const int64_t *values;
};

/* A parameter: its value is args[arg] of the kind, UINT32_MAX where the kernel does not tell it. */
struct ses_probe_param {
	const char *name;
	const struct ses_show *type;
	uint32_t arg;
};

/* What a place records, and how it is shown. */
struct ses_probe_plan {
	struct probe_arg args[PROBE_ARG_MAX];
	uint32_t arg_cnt;
	struct probe_arg ret;
	const struct ses_probe_param *params;
	uint32_t param_cnt;
	const struct ses_show *ret_type; /* null: not known; SES_SHOW_NONE: void */
	bool has_ret;                    /* the kernel tells the value returned */
};

struct ses_plan_ask {
	uint64_t va;
	bool is_func;
	const char *args;      /* as struct ses_probe_opts */
	bool is_exact;         /* there is a condition: arguments have their names and widths in the kernel */
	uint32_t text_max;
};
_must_use_ struct err *ses_probe_plan(struct ses_snap *sn, const struct ses_plan_ask *ask, struct arena *a, struct ses_probe_plan *ret);

/* Appends the value: `bits` of the register or word, and what was fetched at it. */
void ses_show_value(const struct ses_show *t, uint64_t bits, const struct trace_slot *slot, struct buf *out);

/* Who called: names for addresses in processes. */
struct ses_sites;
struct ses_sites *ses_sites_new(struct ses_snap *sn);
void ses_sites_free(struct ses_sites *s);
/* Notes mappings of the process as they are made. */
void ses_sites_watch(struct ses_sites *s, pid_t pid);
void ses_sites_drain(struct ses_sites *s);
struct ses_site {
	const char *module;    /* path; null: not known */
	uint64_t off;          /* bytes in its file */
	const char *func;      /* "main"; null: not known */
	uint64_t func_off;
};
/* `bias`: what the target's own addresses are moved by in that process. Valid until the next call. */
void ses_sites_find(struct ses_sites *s, pid_t pid, uint64_t bias, uint64_t va, struct ses_site *ret);
const char *ses_sites_comm(struct ses_sites *s, pid_t pid, const char **ret_exe);

#endif
