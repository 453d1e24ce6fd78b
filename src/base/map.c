/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

void map_fini(struct map *m)
{
	free(m->keys);
	free(m->vals);
	*m = (struct map){0};
}

static size_t map_slot(const struct map *m, uint64_t key)
{
	uint64_t h = key * 0x9e3779b97f4a7c15u;
	size_t i = (size_t)(h ^ h >> 32) & (m->cap - 1);
	while (m->vals[i] && m->keys[i] != key)
		i = (i + 1) & (m->cap - 1);
	return i;
}

bool map_find(const struct map *m, uint64_t key, uint32_t *ret_val)
{
	if (!m->cap)
		return false;
	size_t i = map_slot(m, key);
	if (!m->vals[i])
		return false;
	*ret_val = m->vals[i] - 1;
	return true;
}

static bool map_grow(struct map *m)
{
	struct map bigger = {.cap = m->cap ? m->cap * 2 : 64, .cnt = m->cnt};
	bigger.keys = calloc(bigger.cap, sizeof(*bigger.keys));
	bigger.vals = calloc(bigger.cap, sizeof(*bigger.vals));
	if (!bigger.keys || !bigger.vals) {
		map_fini(&bigger);
		return false;
	}
	for (size_t i = 0; i < m->cap; i++) {
		if (!m->vals[i])
			continue;
		size_t to = map_slot(&bigger, m->keys[i]);
		bigger.keys[to] = m->keys[i];
		bigger.vals[to] = m->vals[i];
	}
	map_fini(m);
	*m = bigger;
	return true;
}

bool map_put(struct map *m, uint64_t key, uint32_t val)
{
	if (m->cnt * 4 >= m->cap * 3 && !map_grow(m))
		return false;
	size_t i = map_slot(m, key);
	if (!m->vals[i])
		m->cnt++;
	m->keys[i] = key;
	m->vals[i] = val + 1;
	return true;
}
