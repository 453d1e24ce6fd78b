/* SPDX-License-Identifier: Apache-2.0 */
#include "live/verify/verify_int.h"

#include <stdlib.h>
#include <string.h>

#define BEFORE_BLOCKS 5
#define BEFORE_BYTES 200

/* A few blocks back, as the code lies. */
static uint64_t before(const struct verify_func *f, uint32_t block)
{
	uint32_t i = block;
	while (i && block - i < BEFORE_BLOCKS && f->blocks[i - 1] < f->blocks[i] && f->blocks[block] - f->blocks[i - 1] <= BEFORE_BYTES)
		i--;
	return f->blocks[i];
}

static bool find_branches(struct cover *c)
{
	const struct verify_func *f = c->f;
	for (uint32_t i = 0; i < f->edge_cnt; i++) {
		const struct verify_edge *e = &f->edges[i];
		bool is_first = !c->branch_cnt || c->branches[c->branch_cnt - 1].at != e->branch;
		if (e->from >= f->block_cnt || e->to >= f->block_cnt)
			return false;
		c->in_cnt[e->to]++;
		if (!e->branch || !is_first || c->branch_cnt == BOX_BRANCH_MAX)
			continue;
		c->branches[c->branch_cnt] = (struct box_branch){e->branch, f->blocks[e->from], before(f, e->from)};
		c->first_edge[c->branch_cnt++] = i;
	}
	return true;
}

bool cover_init(struct cover *c, const struct verify_func *f)
{
	size_t n = (size_t)f->block_cnt + 1, m = (size_t)f->edge_cnt + 1;
	*c = (struct cover){.f = f, .block_cnt = MIN(f->block_cnt, (uint32_t)BOX_BLOCK_MAX)};
	c->block_hit = calloc(2 * (n + m), 1);
	c->in_cnt = calloc(2 * n + 2 * m, sizeof(*c->in_cnt));
	c->branches = calloc(2 * m, sizeof(*c->branches));
	c->blocks = calloc(n, sizeof(*c->blocks));
	if (!c->block_hit || !c->in_cnt || !c->branches || !c->blocks) {
		cover_fini(c);
		return false;
	}
	c->block_now = c->block_hit + n;
	c->edge_hit = c->block_now + n;
	c->edge_now = c->edge_hit + m;
	c->block_ids = c->in_cnt + n;
	c->first_edge = c->block_ids + n;
	c->branch_ids = c->first_edge + m;
	c->watched = c->branches + m;
	if (find_branches(c))
		return true;
	cover_fini(c);
	return false;
}

void cover_fini(struct cover *c)
{
	free(c->block_hit);
	free(c->in_cnt);
	free(c->branches);
	free(c->blocks);
	*c = (struct cover){0};
}

bool cover_is_open(const struct cover *c, uint32_t branch)
{
	const struct verify_func *f = c->f;
	for (uint32_t i = c->first_edge[branch]; i < f->edge_cnt && f->edges[i].branch == c->branches[branch].at; i++)
		if (!c->edge_hit[i])
			return true;
	return false;
}

void cover_watch(struct cover *c, struct box_trial *t)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < c->block_cnt; i++)
		if (!c->block_hit[i]) {
			c->block_ids[n] = i;
			c->blocks[n++] = c->f->blocks[i];
		}
	c->watched_cnt = 0;
	for (uint32_t i = 0; i < c->branch_cnt; i++)
		if (cover_is_open(c, i)) {
			c->branch_ids[c->watched_cnt] = i;
			c->watched[c->watched_cnt++] = c->branches[i];
		}
	t->blocks = c->blocks;
	t->block_cnt = n;
	t->branches = c->watched;
	t->branch_cnt = c->watched_cnt;
}

static void note_way(struct cover *c, uint32_t branch, uint64_t to)
{
	const struct verify_func *f = c->f;
	for (uint32_t i = c->first_edge[branch]; i < f->edge_cnt && f->edges[i].branch == c->branches[branch].at; i++)
		c->edge_now[i] |= f->blocks[f->edges[i].to] == to;
}

void cover_note(struct cover *c, const struct box_outcome *o)
{
	memset(c->block_now, 0, c->f->block_cnt);
	memset(c->edge_now, 0, c->f->edge_cnt);
	uint32_t n = 0;
	for (uint32_t i = 0; i < c->block_cnt; i++)
		if (!c->block_hit[i])
			c->block_now[i] = o->blocks_hit[n++] != 0;
	for (uint32_t i = 0; i < o->way_cnt; i++)
		if (o->ways[i].branch < c->watched_cnt)
			note_way(c, c->branch_ids[o->ways[i].branch], o->ways[i].to);
}

/* A way that was not seen itself, but from whose ends it follows. */
static bool follows(const struct cover *c, const struct verify_edge *e)
{
	if (!e->branch)
		return c->block_hit[e->from] && c->block_hit[e->to];
	return c->block_hit[e->to] && c->in_cnt[e->to] == 1 && c->f->blocks[e->to] != c->f->va;
}

bool cover_keep(struct cover *c)
{
	bool is_new = false;
	for (uint32_t i = 0; i < c->f->block_cnt; i++) {
		is_new |= c->block_now[i] && !c->block_hit[i];
		c->block_hit[i] |= c->block_now[i];
	}
	for (uint32_t i = 0; i < c->f->edge_cnt; i++) {
		bool is_hit = c->edge_hit[i] || c->edge_now[i] || follows(c, &c->f->edges[i]);
		is_new |= is_hit && !c->edge_hit[i];
		c->edge_hit[i] = is_hit;
	}
	return is_new;
}

void cover_count(const struct cover *c, struct verify_verdict *ret)
{
	ret->blocks = c->f->block_cnt;
	ret->edges = c->f->edge_cnt;
	ret->blocks_hit = ret->edges_hit = 0;
	for (uint32_t i = 0; i < ret->blocks; i++)
		ret->blocks_hit += c->block_hit[i];
	for (uint32_t i = 0; i < ret->edges; i++)
		ret->edges_hit += c->edge_hit[i];
}
