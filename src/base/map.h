/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Hash map from a 64-bit key to a 32-bit value: open addressing, linear probing, load at most 3/4.
 * Keys may be any value. Zero-initialise; map_fini() releases. No deletion: what we keep in maps
 * only grows. Iteration order is not defined, so nothing that reaches the image may depend on it.
 */
struct map {
	uint64_t *keys;
	uint32_t *vals;  /* value + 1; 0 marks a free slot */
	size_t cap;
	size_t cnt;
};

void map_fini(struct map *m);

/* Finds `key`; false when absent. */
bool map_find(const struct map *m, uint64_t key, uint32_t *ret_val);

/* Sets `key` to `val` (at most UINT32_MAX - 1); false when memory ran out. */
_must_use_ bool map_put(struct map *m, uint64_t key, uint32_t val);

#define _cleanup_map_ _cleanup_(map_fini)

#endif
