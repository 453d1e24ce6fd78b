/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/trace_count.h"

#include "live/trace/sysc.h"
#include "live/trace/trace_text.h"

#include <stdlib.h>
#include <string.h>

#define OTHER_MAX 64 /* numbers nobody knows */

struct row {
	struct trace_count_row r;
	int nr;
	uint8_t abi;
	char space[24];
};

struct trace_counts {
	struct row *rows;
	struct trace_count_row *sorted;
	size_t cnt, known; /* rows from `known` on are of numbers without a name */
};

struct trace_counts *trace_counts_new(void)
{
	struct trace_counts *c = calloc(1, sizeof(*c));
	const struct sysc *all = c ? sysc_all(&c->known) : NULL;
	if (!c)
		return NULL;
	c->rows = calloc(c->known + OTHER_MAX, sizeof(*c->rows));
	c->sorted = calloc(c->known + OTHER_MAX, sizeof(*c->sorted));
	if (!c->rows || !c->sorted) {
		trace_counts_free(c);
		return NULL;
	}
	for (size_t i = 0; i < c->known; i++)
		c->rows[i].r.name = all[i].name;
	c->cnt = c->known;
	return c;
}

void trace_counts_free(struct trace_counts *c)
{
	if (!c)
		return;
	free(c->rows);
	free(c->sorted);
	free(c);
}

static struct row *row_of(struct trace_counts *c, const struct trace_event *ev)
{
	size_t cnt;
	const struct sysc *all = sysc_all(&cnt), *s = sysc_find(ev->abi, ev->nr);
	if (s)
		return &c->rows[s - all];
	for (size_t i = c->known; i < c->cnt; i++)
		if (c->rows[i].nr == ev->nr && c->rows[i].abi == ev->abi)
			return &c->rows[i];
	if (c->cnt == c->known + OTHER_MAX) /* the last counts for all that have no place */
		return &c->rows[c->cnt - 1];
	struct row *r = &c->rows[c->cnt++];
	r->nr = ev->nr;
	r->abi = ev->abi;
	r->r.name = c->cnt == c->known + OTHER_MAX ? "others" : trace_text_name(ev, r->space);
	return r;
}

void trace_counts_add(struct trace_counts *c, const struct trace_event *ev)
{
	if (ev->kind != TRACE_SYSCALL || ev->unfinished)
		return;
	struct trace_count_row *r = &row_of(c, ev)->r;
	r->calls++;
	r->errors += ev->ret < 0 && ev->ret >= -4095;
	r->ns += ev->ns;
	r->timed += ev->ns != 0;
	if (ev->ns > r->max_ns)
		r->max_ns = ev->ns;
}

static int by_time(const void *a, const void *b)
{
	const struct trace_count_row *x = a, *y = b;
	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	if (x->calls != y->calls)
		return x->calls < y->calls ? 1 : -1;
	return strcmp(x->name, y->name);
}

const struct trace_count_row *trace_counts_rows(struct trace_counts *c, size_t *ret_cnt)
{
	size_t cnt = 0;
	for (size_t i = 0; i < c->cnt; i++)
		if (c->rows[i].r.calls)
			c->sorted[cnt++] = c->rows[i].r;
	qsort(c->sorted, cnt, sizeof(*c->sorted), by_time);
	*ret_cnt = cnt;
	return c->sorted;
}
