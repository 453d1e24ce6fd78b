/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_RULE_INT_H
#define LIVE_TRACE_RULE_INT_H

#include "live/trace/trace_rule.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "live/trace/sysc.h"

#define RULE_STEPS_MAX 8
#define RULE_VARS_MAX 8
#define RULE_TEXT_MAX 4096u       /* bytes of a path or of a variable's text */
#define RULE_PENDING_MAX 1024u    /* sequences of one rule that have begun */
#define RULE_PROCS_MAX (1u << 18)
#define RULE_ANCESTORS_MAX 64

/* What a name in a condition stands for. */
enum rule_field {
	FIELD_RET, FIELD_OK, FIELD_FAILED, FIELD_ERRNO, FIELD_PID, FIELD_TID, FIELD_PPID, FIELD_COMM, FIELD_EXE, FIELD_NAME,
	FIELD_ARG,     /* number, or the text behind it */
	FIELD_LOAD,    /* a number of `size` bytes at `off` of what the argument leads to */
	FIELD_FAMILY, FIELD_PORT, FIELD_HOST, FIELD_SUN, /* of a socket address */
	FIELD_PATH,    /* the absolute path the event is about */
	FIELD_FD_PATH, /* what a descriptor is open on */
	FIELD_WRITES,  /* the file is opened for writing */
	FIELD_CREATES, /* it is made where it is not there */
	FIELD_ARGV, FIELD_ENVP,
	FIELD_PARENT_COMM, FIELD_PARENT_EXE, FIELD_ANCESTOR_COMM, FIELD_ANCESTOR_EXE,
	FIELD_VAR,
};

struct rule_ref {
	uint8_t field; /* enum rule_field */
	uint8_t arg;   /* index of the argument or variable */
	uint8_t size;
	uint16_t off;
};

/* A literal: text, or a number by ABI (names of values differ). */
struct rule_lit {
	const char *text; /* null: a number */
	uint32_t len;
	bool has_wildcard;
	bool is_var;      /* the variable num[0] */
	int64_t num[TRACE_ABI_COUNT];
};

enum rule_node_kind { NODE_AND, NODE_OR, NODE_NOT, NODE_TEST, NODE_BARE };
enum rule_cmp { CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE, CMP_BITS, CMP_GLOB, CMP_NOT_GLOB, CMP_STARTS, CMP_HAS };

struct rule_node {
	uint8_t kind, cmp;
	struct rule_ref ref;
	uint32_t a, b;                       /* of AND, OR, NOT: nodes */
	const struct rule_lit *lits;         /* of TEST: any of these */
	uint32_t lit_cnt;
};

/* One kind of event a step takes. Calls that mean the same ("opens") differ in where their arguments are. */
struct rule_alt {
	uint8_t kind;            /* enum trace_kind */
	const struct sysc *call; /* of TRACE_SYSCALL */
	int8_t path_arg, dirfd_arg, flags_arg; /* -1: none; flags of open: how it is opened */
	bool must_write;         /* only when it opens for writing */
	const struct rule_node *nodes;
	uint32_t root;           /* UINT32_MAX: no condition */
	struct rule_ref lets[RULE_VARS_MAX];   /* what the step's variables are set to */
	uint8_t let_var[RULE_VARS_MAX];
	uint8_t let_cnt;
};

enum rule_by { BY_PROCESS, BY_THREAD, BY_TREE, BY_ANYONE };

struct rule_step {
	struct rule_alt *alts;
	uint32_t alt_cnt;
	uint64_t within_ns; /* 0: no limit */
	uint8_t by;         /* enum rule_by: whose event it is, beside that of the step before */
};

struct rule {
	const char *name, *title, *severity, *technique;
	struct rule_step steps[RULE_STEPS_MAX];
	uint32_t step_cnt, var_cnt;
	const char *vars[RULE_VARS_MAX];
};

struct rule_val {
	enum { VAL_UNKNOWN, VAL_NUM, VAL_TEXT } kind;
	int64_t num;
	const char *s; /* of TEXT: len bytes */
	size_t len;
};

/* A sequence that has begun. */
struct rule_pending {
	uint32_t step; /* the next one */
	uint32_t pid, tid, first_pid;
	uint64_t time, first_time;
	struct rule_val vars[RULE_VARS_MAX]; /* texts are owned */
};

struct rule_proc {
	uint32_t pid, ppid;
	char comm[16];
	char *exe;
};

struct rule_repeat {
	uint32_t rule, pid;
	uint64_t ip, cnt, time;
};

struct rule_list {
	struct rule_pending *data;
	size_t cnt, cap;
};

/* A step of a rule, found by what it takes. */
struct rule_use {
	uint32_t rule, step, alt;
};

struct trace_rules {
	struct arena arena;
	VEC(struct rule *) rules;
	struct rule_list *pending; /* by rule */
	VEC(struct rule_use) uses[TRACE_ABI_COUNT]; /* by what they take */
	uint32_t *use_at[TRACE_ABI_COUNT];          /* first of uses: by number of the call, then by kind */
	trace_finding_fn *fn;
	void *ctx;
	struct trace_fds *fds;
	struct map proc_idx; /* pid -> index of procs */
	VEC(struct rule_proc) procs;
	struct map repeat_idx;
	VEC(struct rule_repeat) repeats;
	struct buf path, fd_path;
	uint64_t dropped;
};

#endif
