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
	const char *types;               /* who says so: "args" (-a), "user", "dwarf", "builtin", "system", "recovered" (the code), "registers" */
	uint32_t stack_arg, bp_arg;      /* the stack from its pointer on, and the frame pointer; UINT32_MAX: not recorded */
};

enum { SES_PROBE_STACK = 512 /* bytes */ };

struct ses_plan_ask {
	uint64_t va;
	bool is_func;
	const char *args;      /* as struct ses_probe_opts */
	bool is_exact;         /* there is a condition: arguments have their names and widths in the kernel */
	uint32_t text_max;
	bool with_stack;       /* a piece of the stack too */
};
_must_use_ struct err *ses_probe_plan(struct ses_snap *sn, const struct ses_plan_ask *ask, struct arena *a, struct ses_probe_plan *ret);

/* Appends the value: `bits` of the register or word, and what was fetched at it. */
void ses_show_value(const struct ses_show *t, uint64_t bits, const struct trace_slot *slot, struct buf *out);

/* Who called: names for addresses in processes. */
struct ses_sites;
/* `with_lines`: lines of C too. Null: memory is out. */
struct ses_sites *ses_sites_new(struct ses_snap *sn, bool with_lines);
void ses_sites_free(struct ses_sites *s);
/* Notes what these processes do from now on; with children, and without any, what all do. */
void ses_sites_watch(struct ses_sites *s, const pid_t *pids, size_t cnt, bool with_children);
/* Calls of that thread, of all of the process' (tid 0), do not come back: it ended, or became another program. */
typedef void ses_sites_gone_fn(void *ctx, uint32_t pid, uint32_t tid);
/* From now on answers are what held at that time, ns of the boot clock; it only grows. */
void ses_sites_until(struct ses_sites *s, uint64_t time, ses_sites_gone_fn *gone, void *ctx);
uint64_t ses_sites_now(void); /* of the boot clock */
struct ses_site_ask {
	uint32_t pid;
	uint64_t bias;         /* what the target's own addresses are moved by in that process; UINT64_MAX: not known */
	uint64_t ip, sp, bp;   /* sp, bp: 0, not known */
	bool is_return;        /* ip is a return address, else the instruction at hand */
	const uint8_t *stack;  /* bytes from sp on */
	uint32_t stack_len;
};
struct ses_site {
	uint64_t va;           /* of the process */
	const char *module;    /* path; null: not known */
	const char *build_id;  /* hex; null: not known */
	uint64_t off;          /* bytes in its file */
	const char *func;      /* "main"; null: not known */
	uint64_t func_off;
	uint32_t line;         /* of C, 0: not known */
};
/* The frames from ip on, innermost first, at most `max`. Valid until the next call. */
size_t ses_sites_find(struct ses_sites *s, const struct ses_site_ask *ask, struct ses_site *ret, size_t max);
const char *ses_sites_comm(struct ses_sites *s, uint32_t pid, const char **ret_exe);

#endif
