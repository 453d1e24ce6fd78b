/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ANALYSIS_SLICE_H
#define ANALYSIS_SLICE_H

#include "analysis/code.h"

/*
 * Symbolic values along one path of instructions: what registers and stack slots hold, as
 * expressions over what they held at the path's start, and the bounds that the conditional jumps on
 * the way put on them. Equal values are the same node, so a comparison of one copy bounds all of
 * them.
 */
enum sx_kind {
	SX_NONE,
	SX_CONST, /* k */
	SX_ATOM,  /* unknown; k: register + version * 256 */
	SX_SUM,	  /* a * ka + b * kb + k; b may be 0 */
	SX_LOAD,  /* [a], `width` bytes, extended by is_signed; k: version of memory */
	SX_EXT,	  /* a cut to `width` bytes and extended */
	SX_AND,	  /* a & k */
	SX_SHR,	  /* a >> k */
};

struct sx_node {
	uint8_t kind, width;
	bool is_signed;
	uint16_t a, b, next;
	int64_t ka, kb, k;
};

#define SX_NODE_MAX 2048
#define SX_HEADS 512
#define SX_SLOT_MAX 64
#define SX_BOUND_MAX 64
#define SX_PATH_MAX 512

struct sx_bound {
	uint16_t node;
	uint64_t max;
};

struct sx {
	const struct code *c;
	struct sx_node nodes[SX_NODE_MAX];
	uint16_t heads[SX_HEADS];
	uint16_t node_cnt;
	uint16_t regs[64];
	uint16_t version;
	uint16_t memory; /* raised by calls */
	uint16_t pushed; /* what a call of the next instruction left on the stack for it */
	uint16_t cmp_node;
	uint64_t cmp_with;
	uint8_t cmp_width;
	struct {
		uint16_t addr, value;
		uint8_t width;
	} slots[SX_SLOT_MAX];
	unsigned slot_cnt;
	struct sx_bound bounds[SX_BOUND_MAX]; /* the later the closer to the end of the path */
	unsigned bound_cnt;
};

/* One instruction of a path; for a conditional jump whether it is taken. */
struct sx_step {
	uint32_t loc;
	bool is_taken;
};

struct sx_path {
	struct sx_step steps[SX_PATH_MAX]; /* last instruction first */
	unsigned cnt;
	bool has_choice; /* somewhere more than one way led in */
};

/* Stops where more than one way leads in. */
#define SX_NO_CHOICE UINT32_MAX

/* The way back from `loc`, at most `max` instructions. Where several ways lead in, `variant` picks
 * one. */
void sx_path_back(const struct code *c, uint32_t loc, unsigned max, unsigned variant,
		  struct sx_path *ret);

/* Runs the path to its end, but for the last instruction. */
void sx_run(struct sx *s, const struct code *c, const struct sx_path *path);

/* The value an indirect jump at `loc` goes to; 0 when it cannot be told. */
uint16_t sx_target(struct sx *s, uint32_t loc);

/* Node with sign and zero extensions of 4 and more bytes taken off. */
uint16_t sx_strip(const struct sx *s, uint16_t node);

/* a * ka + b * kb. */
uint16_t sx_sum(struct sx *s, uint16_t a, int64_t ka, uint16_t b, int64_t kb);

/* A comparison that bounds a value: value + offset is at most max, and is the compared value; which
 * is a switch's variable plus `low`. */
struct sx_fit {
	int64_t offset, low;
	uint64_t max;
};

/* The next bound of `node`, latest first: `from` begins as bound_cnt and counts down. False when
 * there is no more. */
bool sx_fits(const struct sx *s, uint16_t node, unsigned *from, struct sx_fit *ret);

/* Largest value a node can have by the bounds of the path; false when there is none. */
bool sx_max(const struct sx *s, uint16_t node, uint64_t *ret);

#endif
