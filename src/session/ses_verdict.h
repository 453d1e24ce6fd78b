/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SES_VERDICT_H
#define SESSION_SES_VERDICT_H

#include "session/ses_code.h"
#include "session/store.h"

#include "live/verify/verify.h"

/*
 * Verdicts about functions, kept in the target's cache.db by the hash of what they depend on: the C, its header, the compiler, the
 * function's blocks and edges, what ends a call, and the harness. A verdict that depends on anything else today is not found.
 */
#define SES_VERDICT_CC "gcc"
#define SES_VERDICT_LEVEL "-O1"

/* What is the same for all functions of a snapshot. */
struct ses_verdict_base {
	uint8_t hash[32];
	char cc[128];     /* the compiler: its path, length and time */
};

/* How a verdict was asked for. */
struct ses_verdict_how {
	uint32_t seeds, cpu_ms;
};

/* A function for verify_open(): its blocks, edges and numbers, in `a`; `name` is the C's. Errors: cancelled, timeout, no memory. */
_must_use_ struct err *ses_verdict_func(struct ses_snap *sn, const struct ses_call *call, const struct ses_code *c,
					struct arena *a, struct verify_func *ret);

_must_use_ struct err *ses_verdict_base_make(struct ses_snap *sn, struct ses_verdict_base *ret);
_must_use_ struct err *ses_verdict_key(struct ses_snap *sn, const struct ses_verdict_base *base, const struct verify_func *f,
				       const struct ses_code *c,
				       uint8_t ret[32]);

/* Those of the addresses `from` to `to`. */
struct store_cached_list ses_verdict_load(struct ses_snap *sn, uint64_t from, uint64_t to, struct arena *a);
/* The one with this key; asked for as `how`, when that is not null. */
bool ses_verdict_find(const struct store_cached_list *l, uint64_t va, const uint8_t key[32], const struct ses_verdict_how *how,
		      struct verify_verdict *ret);
/* Room for one to be kept, in `a`. */
_must_use_ struct err *ses_verdict_row(uint64_t va, const uint8_t key[32], const struct ses_verdict_how *how, const struct verify_verdict *v,
				       struct arena *a, struct store_cached *ret);
void ses_verdict_put(struct ses_snap *sn, const struct store_cached *rows, uint32_t cnt);

#endif
