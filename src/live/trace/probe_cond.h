/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_PROBE_COND_H
#define LIVE_TRACE_PROBE_COND_H

#include "live/trace/probe.h"
#include "live/trace/probe_asm.h"

/*
 * Conditions of probes: C expressions over 64-bit numbers with || && ! == != < <= > >= | ^ & << >> + - * ~ and parentheses;
 * a1, a2, ... or names of arguments, registers, ret, ns (of the call), pid, tid, uid, cpu; numbers, 'c'; and
 * == or != between an argument and a "string", which compares the text it points to. Comparisons and >> are unsigned where one
 * side is an unsigned value of 8 bytes (a pointer), else signed.
 */
enum {
	PROBE_NODE_MAX = 256,
	PROBE_NEST_MAX = 12,    /* operations that wait for their right side */
	PROBE_TEXT_MAX = 62,    /* bytes of a string */
};

enum probe_op {
	PROBE_OP_NUM, PROBE_OP_ARG, PROBE_OP_REG, PROBE_OP_RET, PROBE_OP_NS, PROBE_OP_PID, PROBE_OP_TID, PROBE_OP_UID, PROBE_OP_CPU,
	PROBE_OP_TEXT_EQ, PROBE_OP_NOT, PROBE_OP_INV, PROBE_OP_NEG,
	PROBE_OP_OR, PROBE_OP_AND, PROBE_OP_EQ, PROBE_OP_NE, PROBE_OP_LT, PROBE_OP_LE, PROBE_OP_GT, PROBE_OP_GE,
	PROBE_OP_BOR, PROBE_OP_XOR, PROBE_OP_BAND, PROBE_OP_SHL, PROBE_OP_SHR, PROBE_OP_ADD, PROBE_OP_SUB, PROBE_OP_MUL,
};

struct probe_node {
	uint8_t op;              /* enum probe_op */
	bool is_unsigned;
	uint8_t size;            /* PROBE_OP_REG: bytes */
	uint8_t text_len;
	uint16_t left, right;    /* nodes before this one */
	int64_t num;             /* number; index of the argument or register */
	uint16_t text;           /* PROBE_OP_TEXT_EQ: where in `texts`; left is the argument */
};

struct probe_cond {
	struct probe_node nodes[PROBE_NODE_MAX];
	uint32_t node_cnt;
	char texts[1024];
	uint32_t text_len;
	/* Parts joined by &&: those that can be decided when the function begins, and those that need its return. */
	uint16_t begin[64], end[64];
	uint32_t begin_cnt, end_cnt;
	bool uses_stack, end_uses_args; /* what `begin` needs of the stack; whether `end` needs the arguments */
};

/* Error ERR_INVALID, with the column. */
_must_use_ struct err *probe_cond_parse(const struct probe_kind *k, const char *text, struct probe_cond *ret);

/* How the program at hand gives what conditions ask for: each into r0, clobbering r1 to r5 at most. */
struct probe_values {
	void (*load)(void *ctx, struct probe_asm *a, const struct probe_node *n);
	/* r0 = 1 when the string at r0 is the `len` bytes of text, 0 when not or not readable. */
	void (*text)(void *ctx, struct probe_asm *a, const char *text, size_t len);
	void *ctx;
	int spill;               /* offset from r10 of PROBE_NEST_MAX words, going down */
};
/* Jumps to `no` when one of the parts is false. */
void probe_cond_put(const struct probe_cond *c, const uint16_t *parts, uint32_t cnt, const struct probe_values *v, struct probe_asm *a,
		    uint32_t no);

#endif
