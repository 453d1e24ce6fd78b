/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Search over the C of all functions by a pattern. Several workers make the C of a number of functions and say which of them have it; of
 * these the text as people see it is made, in order, until the page is full. What is on the next page begins with a function and so many
 * of its matches that were given.
 */
#include "session/ses_code.h"
#include "session/ses_int.h"

#include "base/par.h"
#include "cprint/cprint_find.h"

#include <stdlib.h>
#include <string.h>

#define BATCH 256      /* functions between two looks at whether that is enough */
#define TEXT_MAX 240   /* bytes of a match's text */

struct search_c {
	struct ses_snap *sn;
	const struct ses_call *call;
	struct ses_search_ask *ask;
	struct cprint_pattern *pattern;
	struct arena *a;
	const struct image_func *funcs;
	uint32_t func_cnt;
	uint32_t first;          /* the search begins with this function; those behind, or before it */
	uint32_t from;           /* the batch: number `from` on of those */
	bool has[BATCH];
	struct err *errs[BATCH];
	struct arena *scratch;   /* per worker */
	struct ses_code *codes;
	VEC(struct ses_hit) hits;
};

static uint32_t func_of(const struct search_c *q, uint32_t i)
{
	return q->ask->back ? q->first - i : q->first + i;
}

static uint32_t left_of(const struct search_c *q)
{
	return q->first >= q->func_cnt ? 0 : q->ask->back ? q->first + 1 : q->func_cnt - q->first;
}

/* The first function whose C is looked at. */
static void find_first(struct search_c *q)
{
	uint32_t lo = 0, hi = q->func_cnt;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (space_va(q->sn->space, q->funcs[mid].loc) < q->ask->from_va)
			lo = mid + 1;
		else
			hi = mid;
	}
	/* An address in the middle of one begins with that. */
	uint32_t loc = space_loc(q->sn->space, q->ask->from_va), at = loc == LOC_NONE ? UINT32_MAX : image_func_at(q->sn->im, loc);
	q->first = q->ask->back ? lo - 1 : at < lo ? at : lo;
}

static struct err *find_in(const struct cprint_pattern *p, const char *text, size_t len, bool *ret)
{
	struct cprint_subject *s;
	struct cprint_found found;
	uint32_t at = 0;
	*ret = false;
	if (!cprint_pattern_fits(p, text, len))
		return NULL;
	struct err *e = cprint_subject_new(text, len, &s);
	if (e)
		return e;
	e = cprint_find(p, s, &at, &found, ret);
	cprint_subject_free(s);
	return e;
}

static bool is_without_c(const struct err *e)
{
	return e->kind == ERR_UNSUPPORTED || e->kind == ERR_BUDGET;
}

static void one_piece(void *ctx, unsigned worker, size_t from, size_t to)
{
	struct search_c *q = ctx;
	struct ses_code *c = &q->codes[worker];
	for (size_t i = from; i < to; i++) {
		q->has[i] = false;
		q->errs[i] = ses_call_check(q->call);
		if (q->errs[i])
			continue;
		c->text.len = c->defines.len = 0;
		struct err *e = ses_code_func(q->sn, func_of(q, q->from + (uint32_t)i), false, &q->scratch[worker], c);
		if (e && is_without_c(e))
			err_free(e); /* it has none to search */
		else if (e)
			q->errs[i] = e;
		else
			q->errs[i] = find_in(q->pattern, c->text.data ? c->text.data : "", c->text.len, &q->has[i]);
		arena_reset(&q->scratch[worker]);
	}
}

/* What was found on one line, without the breaks. */
static struct ses_text one_line(struct search_c *q, const char *s, size_t len)
{
	char out[TEXT_MAX + 4];
	size_t n = 0;
	for (size_t i = 0; i < len; i++) {
		bool is_space = s[i] == ' ' || s[i] == '\t' || s[i] == '\n';
		if (is_space && n && out[n - 1] == ' ')
			continue;
		if (n >= TEXT_MAX && ((uint8_t)s[i] & 0xc0) != 0x80) {
			memcpy(out + n, "...", 3);
			n += 3;
			break;
		}
		if (n < TEXT_MAX)
			out[n++] = is_space ? ' ' : s[i];
	}
	const char *kept = arena_strndup(q->a, out, n);
	return ses_text_of(kept ? kept : "", kept ? n : 0);
}

/* All matches of a function, in order of its lines. */
static struct err *take_func(struct search_c *q, uint32_t func)
{
	struct arena a = {0};
	struct ses_c c;
	struct cprint_subject *s = NULL;
	struct cprint_found found;
	uint32_t at = 0;
	bool is_found = false;
	struct err *e = ses_decompile(q->sn, q->call, space_va(q->sn->space, q->funcs[func].loc), &a, &c);
	if (!e)
		e = cprint_subject_new(c.text.s, c.text.len, &s);
	struct ses_text name = ses_func_name(q->sn, func, q->a);
	while (!e && !(e = cprint_find(q->pattern, s, &at, &found, &is_found)) && is_found) {
		struct ses_hit h = {.addr = ses_c_addr_of(&c, found.line), .has_func = true, .func_addr = c.addr, .func = name,
				    .line = found.line + 1,
				    .text = one_line(q, c.text.s + found.part.off, found.part.len)};
		if (!VEC_PUSH(&q->hits, h))
			e = &err_nomem;
	}
	cprint_subject_free(s);
	arena_fini(&a);
	return e;
}

/* Those of function `func` behind what was given become the answer's, backwards the last first. Whether the page is full. */
static bool put_func(struct search_c *q, uint32_t func, uint32_t skip, size_t had)
{
	struct ses_hit *l = q->hits.data;
	size_t cnt = q->hits.cnt - had;
	for (size_t i = 0; q->ask->back && i < cnt / 2; i++) {
		struct ses_hit h = l[had + i];
		l[had + i] = l[q->hits.cnt - 1 - i];
		l[q->hits.cnt - 1 - i] = h;
	}
	size_t drop = MIN(skip, cnt);
	if (drop)
		memmove(l + had, l + had + drop, (cnt - drop) * sizeof(*l));
	q->hits.cnt -= drop;
	if (q->hits.cnt <= q->ask->limit)
		return false;
	q->ask->has_more = true;
	q->ask->next_va = space_va(q->sn->space, q->funcs[func].loc) + q->ask->back;
	q->ask->next_skip = (uint32_t)(drop + q->ask->limit - had);
	q->hits.cnt = q->ask->limit;
	return true;
}

static struct err *search_batches(struct search_c *q, struct par *par)
{
	struct err *e = NULL;
	bool is_full = false;
	for (uint32_t left = left_of(q); !e && !is_full && q->from < left; q->from += BATCH) {
		uint32_t cnt = MIN(left - q->from, BATCH);
		par_for(par, cnt, 1, one_piece, q);
		for (uint32_t i = 0; i < cnt; i++) {
			if (!e && !is_full && !(e = take_ptr(q->errs[i])) && q->has[i]) {
				size_t had = q->hits.cnt;
				e = take_func(q, func_of(q, q->from + i));
				is_full = !e && put_func(q, func_of(q, q->from + i), q->from + i ? 0 : q->ask->skip, had);
			}
			err_free(take_ptr(q->errs[i]));
		}
		ses_meter_add(q->call, cnt);
	}
	return e;
}

struct err *ses_search_c(struct ses_snap *sn, const struct ses_call *call, struct ses_search_ask *ask, struct arena *a, struct ses_hit **ret)
{
	struct search_c *q = calloc(1, sizeof(*q));
	struct err *e = q ? cprint_pattern_new(ask->what, &q->pattern) : &err_nomem;
	if (!e && !ses_can_decompile(sn))
		e = err_new(ERR_UNSUPPORTED, "C of %s needs a lifter for it, which there is not yet", sn->arch->name);
	struct par *par = e ? NULL : par_new(0);
	unsigned workers = par ? par_threads(par) : 0;
	ask->has_more = false;
	ask->limit = ask->limit ? ask->limit : 1000;
	if (!e) {
		q->sn = sn;
		q->call = call;
		q->ask = ask;
		q->a = a;
		q->funcs = image_funcs(sn->im, &q->func_cnt);
		q->scratch = alloc_array(workers, sizeof(*q->scratch));
		q->codes = alloc_array(workers, sizeof(*q->codes));
		find_first(q);
		e = par && q->scratch && q->codes ? search_batches(q, par) : &err_nomem;
	}
	if (!e) {
		ask->cnt = (uint32_t)q->hits.cnt;
		*ret = ARENA_ARRAY(a, struct ses_hit, q->hits.cnt + 1);
		if (*ret && q->hits.cnt)
			memcpy(*ret, q->hits.data, q->hits.cnt * sizeof(**ret));
		e = *ret ? NULL : &err_nomem;
	}
	for (unsigned i = 0; q && q->scratch && q->codes && i < workers; i++) {
		arena_fini(&q->scratch[i]);
		ses_code_fini(&q->codes[i]);
	}
	if (q) {
		free(q->scratch);
		free(q->codes);
		VEC_FREE(&q->hits);
		cprint_pattern_free(q->pattern);
	}
	free(q);
	par_free(par);
	return e;
}
