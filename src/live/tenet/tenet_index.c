/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the text: where each stretch begins, its registers, and what occurs in it. */
#include "live/tenet/tenet_int.h"

#include <stdlib.h>

/* An occurrence, in the order of the text. */
struct post { uint32_t id, block; uint64_t touched, written; };

struct posting {
	VEC(struct post) posts;
	VEC(uint32_t) last;     /* of each id: its newest post */
};

struct building {
	struct tenet *t;
	struct posting code, mem;
	VEC(uint64_t) code_at;
	uint64_t regs[TENET_REG_MAX], seen;
	uint64_t steps;         /* of the block so far */
	uint64_t lines, odd_before;
};

/* The post of `key` in the current block. Null without memory. */
static struct post *post_get(struct posting *p, struct map *ids, uint64_t key, uint32_t block, bool *ret_is_new_id)
{
	uint32_t id;
	*ret_is_new_id = false;
	if (!map_find(ids, key, &id)) {
		id = (uint32_t)ids->cnt;
		if (ids->cnt >= UINT32_MAX - 1 || !map_put(ids, key, id) || !VEC_PUSH(&p->last, UINT32_MAX))
			return NULL;
		*ret_is_new_id = true;
	}
	uint32_t at = p->last.data[id];
	if (at != UINT32_MAX && p->posts.data[at].block == block)
		return &p->posts.data[at];
	if (p->posts.cnt >= UINT32_MAX - 1 || !VEC_PUSH(&p->posts, (struct post){.id = id, .block = block}))
		return NULL;
	p->last.data[id] = (uint32_t)p->posts.cnt - 1;
	return &p->posts.data[p->posts.cnt - 1];
}

/* Posts by id: a counting sort keeps their blocks ascending. */
static bool post_sort(struct posting *p, struct tenet_posts *ret, bool has_masks)
{
	size_t ids = p->last.cnt, cnt = p->posts.cnt;
	ret->id_cnt = ids;
	ret->first = alloc_array(ids + 2, sizeof(uint32_t));
	ret->block = alloc_array(cnt, sizeof(uint32_t));
	ret->touched = has_masks ? alloc_array(cnt, sizeof(uint64_t)) : NULL;
	ret->written = has_masks ? alloc_array(cnt, sizeof(uint64_t)) : NULL;
	if (!ret->first || !ret->block || (has_masks && (!ret->touched || !ret->written)))
		return false;
	/* Counted two places on, so that placing leaves each start where it belongs. */
	for (size_t i = 0; i < cnt; i++)
		ret->first[p->posts.data[i].id + 2]++;
	for (size_t i = 2; i < ids + 2; i++)
		ret->first[i] += ret->first[i - 1];
	for (size_t i = 0; i < cnt; i++) {
		const struct post *o = &p->posts.data[i];
		uint32_t at = ret->first[o->id + 1]++;
		ret->block[at] = o->block;
		if (has_masks) {
			ret->touched[at] = o->touched;
			ret->written[at] = o->written;
		}
	}
	return true;
}

static bool add_block(struct building *b, const char *at)
{
	struct tenet *t = b->t;
	struct tenet_block_head h = {.text_off = (uint64_t)(at - t->text), .regs_at = t->frames.cnt, .seen = b->seen};
	for (unsigned i = 0; i < TENET_REG_MAX; i++)
		if (b->seen >> i & 1 && !VEC_PUSH(&t->frames, b->regs[i]))
			return false;
	return t->blocks.cnt < UINT32_MAX - 1 && VEC_PUSH(&t->blocks, h);
}

static bool add_reg(struct building *b, const struct tenet_token *k)
{
	struct tenet *t = b->t;
	int reg = tenet_names_know(&t->names, k->key);
	if (reg < 0) {
		t->odd_cnt++;
		return true;
	}
	b->regs[reg] = k->value;
	b->seen |= (uint64_t)1 << reg;
	t->blocks.data[t->blocks.cnt - 1].written |= (uint64_t)1 << reg;
	return true;
}

static bool add_mem(struct building *b, const struct tenet_token *k)
{
	uint64_t first = k->value / TENET_GRAIN, last = (k->value + (k->len - 1)) / TENET_GRAIN;
	for (uint64_t g = first;; g++) {
		bool is_new;
		struct post *p = post_get(&b->mem, &b->t->mem.ids, g, (uint32_t)b->t->blocks.cnt - 1, &is_new);
		if (!p)
			return false;
		unsigned from = g == first ? (unsigned)(k->value % TENET_GRAIN) : 0;
		unsigned to = g == last ? (unsigned)((k->value + (k->len - 1)) % TENET_GRAIN) : TENET_GRAIN - 1;
		uint64_t mask = (~(uint64_t)0 >> (63 - to)) & (~(uint64_t)0 << from);
		p->touched |= mask;
		if (k->kinds & TENET_WRITE)
			p->written |= mask;
		if (g == last)
			return true;
	}
}

static int find_any(const struct tenet *t, const char *const *names)
{
	for (; *names; names++) {
		int reg = tenet_reg_find(t, *names);
		if (reg >= 0)
			return reg;
	}
	return -1;
}

/* The end of a line that stated something: a step. */
static bool add_step(struct building *b)
{
	struct tenet *t = b->t;
	if (t->pc_reg < 0)
		t->pc_reg = find_any(t, (const char *const[]){"rip", "eip", "pc", NULL});
	if (t->pc_reg >= 0 && b->seen >> t->pc_reg & 1) {
		bool is_new;
		uint64_t pc = b->regs[t->pc_reg];
		if (!post_get(&b->code, &t->code.ids, pc, (uint32_t)t->blocks.cnt - 1, &is_new) ||
		    (is_new && !VEC_PUSH(&b->code_at, pc)))
			return false;
	}
	t->step_cnt++;
	b->steps++;
	return true;
}

static struct err *read_all(struct building *b, const struct tenet_opts *opts)
{
	struct tenet *t = b->t;
	struct tenet_scan s = {.p = t->text, .end = t->text + t->text_len};
	struct tenet_token k = {0};
	bool has_any = false, is_fine = add_block(b, s.p);
	while (is_fine && tenet_scan_next(&s, &k)) {
		if (k.what == TENET_REG)
			is_fine = has_any = add_reg(b, &k);
		else if (k.what == TENET_MEM)
			is_fine = has_any = add_mem(b, &k);
		else if (k.what == TENET_ODD)
			t->odd_cnt++;
		if (k.what != TENET_LINE)
			continue;
		b->lines++;
		if (t->odd_cnt > b->odd_before && !t->odd_line)
			t->odd_line = b->lines;
		if (has_any)
			is_fine = add_step(b);
		has_any = false;
		if (b->steps == TENET_BLOCK && !s.is_done) {
			b->steps = 0;
			is_fine = is_fine && add_block(b, s.p);
		}
		if (b->lines % 4096 == 0 && opts && opts->done)
			atomic_store_explicit(opts->done, (uint64_t)(s.p - t->text), memory_order_relaxed);
		if (b->lines % 1024 == 0 && opts && opts->cancel && atomic_load(opts->cancel))
			return err_new(ERR_CANCELLED, "reading the log was stopped");
	}
	return is_fine ? NULL : &err_nomem;
}

struct err *tenet_index(struct tenet *t, const struct tenet_opts *opts)
{
	struct building b = {.t = t};
	t->pc_reg = t->sp_reg = -1;
	struct err *e = read_all(&b, opts);
	if (!e && !t->step_cnt)
		e = err_fix(err_new(ERR_BAD_INPUT, "no step of an execution log is in it"),
			    "a line a step: rax=0x1,rip=0x401136,mw=0x7ffd10:2a00");
	if (!e && (!post_sort(&b.code, &t->code, false) || !post_sort(&b.mem, &t->mem, true)))
		e = &err_nomem;
	t->sp_reg = find_any(t, (const char *const[]){"rsp", "esp", "sp", NULL});
	t->code_at = b.code_at.data;
	VEC_FREE(&b.code.posts);
	VEC_FREE(&b.code.last);
	VEC_FREE(&b.mem.posts);
	VEC_FREE(&b.mem.last);
	return e;
}

void tenet_posts_fini(struct tenet_posts *p)
{
	map_fini(&p->ids);
	free(p->first);
	free(p->block);
	free(p->touched);
	free(p->written);
}
