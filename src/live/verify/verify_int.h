/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_VERIFY_VERIFY_INT_H
#define LIVE_VERIFY_VERIFY_INT_H

#include "live/sandbox/box.h"
#include "live/verify/verify.h"

/* --- coverage (verify_cover.c) ------------------------------------------------------------------------------------------ */
/* What the compared runs of a function reached, and what the next one is to watch: only what is new costs time. */
struct cover {
	const struct verify_func *f;
	uint32_t block_cnt, branch_cnt; /* that are looked at */
	uint8_t *block_hit, *edge_hit;
	uint8_t *block_now, *edge_now;  /* by the run that was noted last */
	uint32_t *in_cnt;               /* edges into each block */
	struct box_branch *branches;
	uint32_t *first_edge;           /* per branch, the first of its edges */
	/* What a run watches: addresses for the trial, and whose they are. */
	uint64_t *blocks;
	uint32_t *block_ids;
	struct box_branch *watched;
	uint32_t *branch_ids;
	uint32_t watched_cnt;
};

bool cover_init(struct cover *c, const struct verify_func *f);
void cover_fini(struct cover *c);
/* Makes the trial watch what no compared run has reached. */
void cover_watch(struct cover *c, struct box_trial *t);
/* Looks at a run that watched; before the next one. */
void cover_note(struct cover *c, const struct box_outcome *o);
/* The run counts; whether it reached something new. */
bool cover_keep(struct cover *c);
void cover_count(const struct cover *c, struct verify_verdict *ret);
/* Whether a way of the branch (its number in all of them) was never taken. */
bool cover_is_open(const struct cover *c, uint32_t branch);

/* --- inputs (verify_guide.c) ---------------------------------------------------------------------------------------------- */
#define GUIDE_PATCH_MAX 56 /* what a verdict lists, and the ranges that are zero */
#define GUIDE_GRANT_MAX 16 /* ... of which the guide makes so many */
#define GUIDE_PAGE_MAX 64

/* What a trial runs on. */
struct guide_input {
	uint64_t seed;
	struct box_patch patches[GUIDE_PATCH_MAX];
	uint32_t patch_cnt;
	uint64_t pages[GUIDE_PAGE_MAX]; /* that it made */
	uint32_t page_cnt;
	uint64_t answers[BOX_ANSWER_MAX]; /* of its imports */
	uint32_t answer_cnt;
};

/* What is kept of a run of the machine code while its C runs. */
struct guide_run {
	struct box_cmp cmps[BOX_BRANCH_MAX]; /* by what was watched */
	uint64_t made[BOX_PAGE_MAX / 2];
	uint64_t answers[BOX_ANSWER_MAX];
	uint32_t made_cnt, answer_cnt;
};

struct guide;
struct guide *guide_new(void);
void guide_free(struct guide *g);
/* Forgets all; inputs come from `seeds` seeds, which begin with `seed`. Without memory there is no guidance. */
void guide_begin(struct guide *g, const struct cover *c, uint64_t seed, uint32_t seeds);
/* The input of the next trial. */
void guide_next(struct guide *g, struct guide_input *ret);
/* A compared run on that input: what its branches compared. */
void guide_learn(struct guide *g, const struct guide_input *in, const struct guide_run *run);

#endif
