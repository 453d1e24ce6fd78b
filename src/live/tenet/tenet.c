/* SPDX-License-Identifier: Apache-2.0 */
/* Answers: the index says which stretch of the text to read, the text says the rest. */
#include "live/tenet/tenet.h"
#include "live/tenet/tenet_int.h"

#include <stdlib.h>

struct err *tenet_read_text(const char *text, size_t len, const struct tenet_opts *opts, struct tenet **ret)
{
	struct tenet *t = calloc(1, sizeof(*t));
	if (!t)
		return &err_nomem;
	pthread_mutex_init(&t->lock, NULL);
	t->text = text;
	t->text_len = len;
	struct err *e = tenet_index(t, opts);
	if (e)
		tenet_close(t);
	else
		*ret = t;
	return e;
}

struct err *tenet_open(const char *path, const struct tenet_opts *opts, struct tenet **ret)
{
	struct file *f;
	struct err *e = file_open(path, &f);
	if (e)
		return e;
	/* An empty file has no mapping. */
	e = tenet_read_text(f->data ? (const char *)f->data : "", f->len, opts, ret);
	if (e) {
		file_close(f);
		return err_prefix(e, "%s", path);
	}
	(*ret)->file = f;
	return NULL;
}

void tenet_close(struct tenet *t)
{
	if (!t)
		return;
	for (int i = 0; i < TENET_KEPT; i++) {
		VEC_FREE(&t->kept[i].stated);
		VEC_FREE(&t->kept[i].touches);
	}
	tenet_posts_fini(&t->code);
	tenet_posts_fini(&t->mem);
	free(t->code_at);
	VEC_FREE(&t->blocks);
	VEC_FREE(&t->frames);
	pthread_mutex_destroy(&t->lock);
	file_close(t->file);
	free(t);
}

uint64_t tenet_step_cnt(const struct tenet *t)
{
	return t->step_cnt;
}

uint64_t tenet_odd_cnt(const struct tenet *t, uint64_t *ret_line)
{
	*ret_line = t->odd_line;
	return t->odd_cnt;
}

bool tenet_has_changed(const struct tenet *t)
{
	return t->file && file_has_changed(t->file);
}

unsigned tenet_reg_cnt(const struct tenet *t)
{
	return t->names.cnt;
}

const char *tenet_reg_name(const struct tenet *t, unsigned reg)
{
	return t->names.text[reg];
}

int tenet_pc_reg(const struct tenet *t)
{
	return t->pc_reg;
}

int tenet_sp_reg(const struct tenet *t)
{
	return t->sp_reg;
}

/* The registers before the block's first line. */
static uint64_t frame_of(const struct tenet *t, uint32_t block, uint64_t *values)
{
	const struct tenet_block_head *h = &t->blocks.data[block];
	size_t at = h->regs_at;
	for (unsigned i = 0; i < TENET_REG_MAX; i++)
		if (h->seen >> i & 1)
			values[i] = t->frames.data[at++];
	return h->seen;
}

static bool fill(const struct tenet *t, struct tenet_read *r)
{
	uint64_t from = t->blocks.data[r->block].text_off;
	uint64_t to = r->block + 1 < t->blocks.cnt ? t->blocks.data[r->block + 1].text_off : t->text_len;
	struct tenet_scan s = {.p = t->text + from, .end = t->text + to};
	struct tenet_token k = {0};
	uint64_t regs[TENET_REG_MAX] = {0};
	frame_of(t, r->block, regs);
	uint64_t pc = t->pc_reg < 0 ? 0 : regs[t->pc_reg];
	bool has_any = false;
	while (r->step_cnt < TENET_BLOCK && tenet_scan_next(&s, &k)) {
		if (k.what == TENET_LINE) {
			r->pc[r->step_cnt] = pc;
			r->step_cnt += has_any;
			has_any = false;
			continue;
		}
		if (k.what == TENET_ODD)
			continue;
		has_any = true;
		int reg = k.what == TENET_REG ? tenet_names_find(&t->names, k.key) : -1;
		if (k.what == TENET_MEM ? !VEC_PUSH(&r->touches, (struct tenet_touch){(uint16_t)r->step_cnt, k.kinds, k.len, k.value, k.hex})
					: reg >= 0 && !VEC_PUSH(&r->stated, (struct tenet_stated){(uint16_t)r->step_cnt, (uint8_t)reg, k.value}))
			return false;
		if (reg >= 0 && reg == t->pc_reg)
			pc = k.value;
	}
	return true;
}

/* A block's content; the lock is held, it is valid until it is let go. Null without memory. */
static const struct tenet_read *block_read(struct tenet *t, uint32_t block)
{
	struct tenet_read *r = &t->kept[0];
	for (int i = 0; i < TENET_KEPT; i++) {
		if (t->kept[i].used && t->kept[i].block == block) {
			t->kept[i].used = ++t->clock;
			return &t->kept[i];
		}
		if (t->kept[i].used < r->used)
			r = &t->kept[i];
	}
	r->block = block;
	r->step_cnt = 0;
	r->stated.cnt = r->touches.cnt = 0;
	r->used = 0;
	if (!fill(t, r))
		return NULL;
	r->used = ++t->clock;
	return r;
}

uint64_t tenet_regs(struct tenet *t, uint64_t step, uint64_t values[TENET_REG_MAX])
{
	pthread_mutex_lock(&t->lock);
	uint64_t seen = frame_of(t, (uint32_t)(step / TENET_BLOCK), values);
	const struct tenet_read *r = block_read(t, (uint32_t)(step / TENET_BLOCK));
	for (size_t i = 0; r && i < r->stated.cnt && r->stated.data[i].step <= step % TENET_BLOCK; i++) {
		values[r->stated.data[i].reg] = r->stated.data[i].value;
		seen |= (uint64_t)1 << r->stated.data[i].reg;
	}
	pthread_mutex_unlock(&t->lock);
	return seen;
}

uint64_t tenet_changed(struct tenet *t, uint64_t step)
{
	uint64_t mask = 0;
	pthread_mutex_lock(&t->lock);
	const struct tenet_read *r = block_read(t, (uint32_t)(step / TENET_BLOCK));
	for (size_t i = 0; r && i < r->stated.cnt; i++)
		if (r->stated.data[i].step == step % TENET_BLOCK)
			mask |= (uint64_t)1 << r->stated.data[i].reg;
	pthread_mutex_unlock(&t->lock);
	return mask;
}

size_t tenet_pcs(struct tenet *t, uint64_t first, size_t cnt, uint64_t *out)
{
	size_t n = 0;
	pthread_mutex_lock(&t->lock);
	while (n < cnt && first + n < t->step_cnt) {
		const struct tenet_read *r = block_read(t, (uint32_t)((first + n) / TENET_BLOCK));
		size_t at = (size_t)((first + n) % TENET_BLOCK);
		if (!r || at >= r->step_cnt)
			break;
		out[n++] = r->pc[at];
	}
	pthread_mutex_unlock(&t->lock);
	return n;
}

bool tenet_pc(struct tenet *t, uint64_t step, uint64_t *ret)
{
	return t->pc_reg >= 0 && tenet_pcs(t, step, 1, ret) == 1;
}

/* Entries of an id whose block is before `block` (or it, with is_in): the index behind the last one. */
static uint32_t post_before(const struct tenet_posts *p, uint32_t id, uint32_t block, bool is_in)
{
	uint32_t lo = p->first[id], hi = p->first[id + 1];
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (p->block[mid] < block || (is_in && p->block[mid] == block))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Takes what one block says of the wanted bytes of a grain at `va`: the last access of each at most at line `limit`. */
static uint64_t grain_take(const struct tenet_read *r, uint64_t limit, uint64_t va, uint64_t want, uint8_t out[TENET_GRAIN])
{
	uint64_t got = 0;
	for (size_t i = r->touches.cnt; i-- && got != want;) {
		const struct tenet_touch *o = &r->touches.data[i];
		if (o->step > limit || o->va > va + (TENET_GRAIN - 1) || o->va + (o->len - 1) < va)
			continue;
		uint64_t from = MAX(o->va, va), to = MIN(o->va + (o->len - 1), va + (TENET_GRAIN - 1));
		for (uint64_t k = from;; k++) {
			uint64_t bit = (uint64_t)1 << (k - va);
			if (want & bit && !(got & bit)) {
				out[k - va] = tenet_hex_byte(o->hex, (size_t)(k - o->va));
				got |= bit;
			}
			if (k == to)
				break;
		}
	}
	return got;
}

/* The wanted bytes of one grain at a step; which of them are known. */
static uint64_t grain_read(struct tenet *t, uint64_t step, uint64_t grain, uint64_t want, uint8_t out[TENET_GRAIN])
{
	uint32_t id, block = (uint32_t)(step / TENET_BLOCK);
	uint64_t got = 0;
	if (!map_find(&t->mem.ids, grain, &id))
		return 0;
	for (uint32_t at = post_before(&t->mem, id, block, true); at > t->mem.first[id] && got != want; at--) {
		uint32_t b = t->mem.block[at - 1];
		uint64_t left = want & ~got & t->mem.touched[at - 1];
		const struct tenet_read *r = left ? block_read(t, b) : NULL;
		if (r)
			got |= grain_take(r, b == block ? step % TENET_BLOCK : TENET_BLOCK, grain * TENET_GRAIN, left, out);
	}
	return got;
}

size_t tenet_mem(struct tenet *t, uint64_t step, uint64_t va, size_t len, uint8_t *out, bool *known)
{
	size_t total = 0;
	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < len;) {
		uint64_t at = va + i;
		unsigned off = (unsigned)(at % TENET_GRAIN);
		size_t n = MIN((size_t)(TENET_GRAIN - off), len - i);
		uint64_t want = n == 64 ? ~(uint64_t)0 : (((uint64_t)1 << n) - 1) << off;
		uint8_t bytes[TENET_GRAIN] = {0};
		uint64_t got = grain_read(t, step, at / TENET_GRAIN, want, bytes);
		for (size_t k = 0; k < n; k++) {
			known[i + k] = got >> (off + k) & 1;
			out[i + k] = bytes[off + k];
			total += known[i + k];
		}
		i += n;
	}
	pthread_mutex_unlock(&t->lock);
	return total;
}

size_t tenet_accesses(struct tenet *t, uint64_t step, struct tenet_access *out, size_t cap)
{
	size_t n = 0;
	if (step + 1 >= t->step_cnt)
		return 0;
	step++; /* its line says what the instruction before it did */
	pthread_mutex_lock(&t->lock);
	const struct tenet_read *r = block_read(t, (uint32_t)(step / TENET_BLOCK));
	for (size_t i = 0; r && i < r->touches.cnt; i++) {
		const struct tenet_touch *o = &r->touches.data[i];
		if (o->step != step % TENET_BLOCK)
			continue;
		if (n < cap)
			out[n] = (struct tenet_access){o->va, o->len, o->kinds};
		n++;
	}
	pthread_mutex_unlock(&t->lock);
	return n;
}

/*
 * The nearest line in a direction that a test accepts. Lines are searched, not steps: line i tells what step i - 1 did, so the search
 * begins behind line step + 1, or with `back` before line step.
 */
struct seek {
	const struct tenet_posts *posts; /* where to look, of `id`; null: `in_block` says it */
	uint32_t id;
	unsigned reg;
	const struct tenet_access *what;
	uint64_t pc;
};

/* The accepted line of the block nearest to the edge that the search comes from, among lines [lo, hi]; -1. */
static int seek_regs(const struct tenet_read *r, const struct seek *s, int lo, int hi, bool back)
{
	int best = -1;
	for (size_t i = 0; i < r->stated.cnt; i++) {
		int at = r->stated.data[i].step;
		if (r->stated.data[i].reg != s->reg || at < lo || at > hi)
			continue;
		best = at;
		if (!back)
			break;
	}
	return best;
}

static int seek_mem(const struct tenet_read *r, const struct seek *s, int lo, int hi, bool back)
{
	int best = -1;
	for (size_t i = 0; i < r->touches.cnt; i++) {
		const struct tenet_touch *o = &r->touches.data[i];
		int at = o->step;
		if (!(o->kinds & s->what->kinds) || at < lo || at > hi || o->va > s->what->va + (s->what->len - 1) ||
		    o->va + (o->len - 1) < s->what->va)
			continue;
		best = at;
		if (!back)
			break;
	}
	return best;
}

static int seek_pc(const struct tenet_read *r, const struct seek *s, int lo, int hi, bool back)
{
	for (int i = back ? hi : lo; i >= lo && i <= hi; i += back ? -1 : 1)
		if (i < (int)r->step_cnt && r->pc[i] == s->pc)
			return i;
	return -1;
}

typedef int seek_fn(const struct tenet_read *r, const struct seek *s, int lo, int hi, bool back);

/* The nearest block after (or before) `block`, itself too, that may have one; false: none. */
static bool next_block(const struct tenet *t, const struct seek *s, uint32_t *block, bool back)
{
	if (!s->posts) {
		for (uint32_t b = *block; b < t->blocks.cnt; b += back ? UINT32_MAX : 1)
			if (t->blocks.data[b].written >> s->reg & 1) {
				*block = b;
				return true;
			}
		return false;
	}
	const struct tenet_posts *p = s->posts;
	uint32_t at = post_before(p, s->id, *block, back);
	for (; back ? at > p->first[s->id] : at < p->first[s->id + 1]; at += back ? UINT32_MAX : 1) {
		uint32_t i = back ? at - 1 : at;
		if (s->what) {
			uint64_t g = s->pc; /* the grain */
			uint64_t last = s->what->va + (s->what->len - 1);
			unsigned from = s->what->va / TENET_GRAIN < g ? 0 : (unsigned)(s->what->va % TENET_GRAIN);
			unsigned to = last / TENET_GRAIN > g ? 63 : (unsigned)(last % TENET_GRAIN);
			uint64_t mask = (~(uint64_t)0 >> (63 - to)) & (~(uint64_t)0 << from);
			uint64_t have = s->what->kinds == TENET_WRITE ? p->written[i] : p->touched[i];
			if (!(have & mask))
				continue;
		}
		*block = p->block[i];
		return true;
	}
	return false;
}

/* The nearest accepted line from `line` on, itself too. */
static uint64_t seek_line(struct tenet *t, const struct seek *s, seek_fn *in_block, uint64_t line, bool back)
{
	if (line >= t->step_cnt)
		return TENET_NONE;
	uint32_t block = (uint32_t)(line / TENET_BLOCK);
	int lo = back ? 0 : (int)(line % TENET_BLOCK), hi = back ? (int)(line % TENET_BLOCK) : TENET_BLOCK - 1;
	for (uint32_t at = block; next_block(t, s, &at, back); at += back ? UINT32_MAX : 1) {
		const struct tenet_read *r = block_read(t, at);
		int got = r ? at == block ? in_block(r, s, lo, hi, back) : in_block(r, s, 0, TENET_BLOCK - 1, back) : -1;
		if (got >= 0)
			return (uint64_t)at * TENET_BLOCK + (unsigned)got;
		if (back && !at)
			break;
	}
	return TENET_NONE;
}

/* The line to begin at for what instructions before or after `step` did; TENET_NONE: there is none. */
static uint64_t did_from(const struct tenet *t, uint64_t step, bool back)
{
	if (back)
		return step ? step : TENET_NONE;
	return step + 2 < t->step_cnt ? step + 2 : TENET_NONE;
}

static uint64_t did_step(uint64_t line)
{
	return line == TENET_NONE || !line ? TENET_NONE : line - 1;
}

uint64_t tenet_reg_written(struct tenet *t, uint64_t step, unsigned reg, bool back)
{
	uint64_t from = did_from(t, step, back);
	if (from == TENET_NONE || reg >= t->names.cnt)
		return TENET_NONE;
	pthread_mutex_lock(&t->lock);
	uint64_t line = seek_line(t, &(struct seek){.reg = reg}, seek_regs, from, back);
	pthread_mutex_unlock(&t->lock);
	return did_step(line);
}

uint64_t tenet_touched(struct tenet *t, uint64_t step, const struct tenet_access *what, bool back)
{
	uint64_t from = did_from(t, step, back), best = TENET_NONE;
	if (from == TENET_NONE || !what->len || what->va + (what->len - 1) < what->va)
		return TENET_NONE;
	pthread_mutex_lock(&t->lock);
	uint64_t last = (what->va + (what->len - 1)) / TENET_GRAIN;
	for (uint64_t g = what->va / TENET_GRAIN;; g++) {
		struct seek s = {.posts = &t->mem, .what = what, .pc = g};
		uint64_t line = map_find(&t->mem.ids, g, &s.id) ? seek_line(t, &s, seek_mem, from, back) : TENET_NONE;
		if (line != TENET_NONE && line && (best == TENET_NONE || (back ? line > best : line < best)))
			best = line;
		if (g == last)
			break;
	}
	pthread_mutex_unlock(&t->lock);
	return did_step(best);
}

uint64_t tenet_ran(struct tenet *t, uint64_t step, uint64_t pc, bool back)
{
	struct seek s = {.posts = &t->code, .pc = pc};
	if (!map_find(&t->code.ids, pc, &s.id) || (back && !step))
		return TENET_NONE;
	pthread_mutex_lock(&t->lock);
	uint64_t line = seek_line(t, &s, seek_pc, back ? step - 1 : step + 1, back);
	pthread_mutex_unlock(&t->lock);
	return line;
}

size_t tenet_pc_spread(const struct tenet *t, uint64_t pc)
{
	uint32_t id;
	return map_find(&t->code.ids, pc, &id) ? t->code.first[id + 1] - t->code.first[id] : 0;
}

bool tenet_code_at(const struct tenet *t, size_t i, uint64_t *ret)
{
	if (i >= t->code.id_cnt)
		return false;
	*ret = t->code_at[i];
	return true;
}
