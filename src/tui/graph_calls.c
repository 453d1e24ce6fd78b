/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/graph_func.h"

#include "tui/tui_int.h"

#include <stdlib.h>
#include <string.h>

/*
 * What calls what around a function, and what refers to what around any address, as a picture of names: who leads here two steps
 * up, and where it leads to, from top to bottom. What is too much to be looked at is left out step by step, and counted.
 */
#define NODES_MAX 300u
#define FEW 40u      /* with no more than so many a second step is taken */
#define PAGE 400u

struct link {
	uint32_t from, to;
};

struct around {
	struct ses_snap *sn;
	const struct ses_call *call;
	struct tui_graph_func *f;
	struct arena temp;
	VEC(uint64_t) nodes;
	VEC(struct link) links;
	uint64_t more; /* edges left out */
	bool is_full;
};

/* The node of an address, made when there is none; false when there is no room for it. */
static bool node_of(struct around *a, uint64_t va, uint32_t *ret)
{
	for (*ret = 0; *ret < a->nodes.cnt; ++*ret) {
		if (a->nodes.data[*ret] == va)
			return true;
	}
	if (a->nodes.cnt < NODES_MAX)
		return VEC_PUSH(&a->nodes, va);
	a->is_full = true;
	return false;
}

static struct err *add(struct around *a, uint64_t from, uint64_t to)
{
	struct link l;
	if (!node_of(a, from, &l.from) || !node_of(a, to, &l.to)) {
		a->more++;
		return a->is_full ? NULL : &err_nomem;
	}
	for (size_t i = 0; i < a->links.cnt; i++) {
		if (a->links.data[i].from == l.from && a->links.data[i].to == l.to)
			return NULL;
	}
	return VEC_PUSH(&a->links, l) ? NULL : &err_nomem;
}

static bool is_call(const struct ses_xref *x)
{
	return !strcmp(x->kind, "call") || !strcmp(x->kind, "jump");
}

/* Who leads to a node; of calls only those from another function. */
static struct err *up(struct around *a, uint64_t va, bool is_calls)
{
	struct ses_xref *x;
	struct ses_xref_ask ask = {.va = va};
	struct ses_page page = {.limit = PAGE};
	struct err *e = ses_xrefs(a->sn, a->call, &ask, &page, &a->temp, &x);
	for (uint32_t i = 0; i < page.cnt && !e; i++) {
		uint64_t from = x[i].has_func ? x[i].func_addr : x[i].from;
		if (is_calls ? is_call(&x[i]) && x[i].has_func : from != va)
			e = add(a, from, va);
	}
	a->more += e ? 0 : page.total - page.cnt;
	return e;
}

static struct err *up_twice(struct around *a, uint64_t va, bool is_calls)
{
	struct err *e = up(a, va, is_calls);
	size_t first = a->nodes.cnt;
	for (size_t i = 1; i < first && first <= FEW && !e; i++) {
		struct ses_func f;
		if (ses_func_at(a->sn, a->nodes.data[i], &a->temp, &f))
			e = up(a, a->nodes.data[i], is_calls);
	}
	return e;
}

static struct err *callees(struct around *a, uint64_t func)
{
	struct ses_call_edge *c;
	struct err *e = NULL;
	for (uint32_t depth = 2; depth > 0 && !e; depth--) {
		struct ses_call_ask ask = {func, depth};
		struct ses_page page = {.limit = PAGE};
		e = ses_callgraph(a->sn, a->call, &ask, &page, &a->temp, &c);
		if (e || (depth > 1 && page.total > page.limit))
			continue;
		for (uint32_t i = 0; i < page.cnt && !e; i++)
			e = add(a, c[i].caller, c[i].callee);
		a->more += page.total - page.cnt;
		break;
	}
	return e;
}

/* What the thing refers to: functions as wholes, everything else as it is. */
static struct err *referred(struct around *a, uint64_t va, bool is_func)
{
	struct ses_xref *x;
	struct ses_xref_ask ask = {.va = va, .from = true, .whole_func = is_func};
	struct ses_page page = {.limit = PAGE};
	struct err *e = ses_xrefs(a->sn, a->call, &ask, &page, &a->temp, &x);
	for (uint32_t i = 0; i < page.cnt && !e; i++) {
		uint64_t to = x[i].has_func ? x[i].func_addr : x[i].to;
		if (to != va)
			e = add(a, va, to);
	}
	a->more += e ? 0 : page.total - page.cnt;
	return e;
}

static int by_va(const void *x, const void *y, void *ctx)
{
	const struct tui_graph_block *b = ctx;
	uint64_t p = b[*(const uint32_t *)x].va, q = b[*(const uint32_t *)y].va;
	return p < q ? -1 : p > q;
}

static void name_block(struct around *a, struct tui_graph_block *b, uint64_t va)
{
	struct ses_func func;
	bool is_func = ses_func_at(a->sn, va, &a->temp, &func) && func.addr == va;
	struct ses_text name = ses_name_at(a->sn, va, &a->temp);
	if (!name.len)
		name = ses_where(a->sn, va, &a->temp);
	char *copy = arena_strndup(&a->f->arena, name.s, name.len);
	*b = (struct tui_graph_block){.va = va, .end = va + (is_func ? MAX(func.size, 1) : 1),
				      .name = {copy ? copy : "", copy ? name.len : 0}};
}

/* The picture: whoever nothing leads to stands on top. */
static struct err *picture(struct around *a, const atomic_bool *cancel)
{
	struct tui_graph_func *f = a->f;
	struct graph *g = &f->g;
	uint32_t cnt = (uint32_t)a->nodes.cnt;
	f->cnt = g->box_cnt = cnt;
	f->blocks = ARENA_ARRAY(&f->arena, struct tui_graph_block, cnt);
	f->by_va = ARENA_ARRAY(&f->arena, uint32_t, cnt);
	g->boxes = ARENA_ARRAY(&f->arena, struct graph_box, cnt);
	g->edges = ARENA_ARRAY(&f->arena, struct graph_edge, a->links.cnt + 1);
	bool *is_led_to = ARENA_ARRAY(&a->temp, bool, cnt);
	if (!f->blocks || !f->by_va || !g->boxes || !g->edges || !is_led_to)
		return &err_nomem;
	for (uint32_t i = 0; i < cnt; i++) {
		name_block(a, &f->blocks[i], a->nodes.data[i]);
		f->by_va[i] = i;
	}
	for (size_t i = 0; i < a->links.cnt; i++) {
		struct link l = a->links.data[i];
		g->edges[g->edge_cnt++] = (struct graph_edge){.from = l.from, .to = l.to, .kind = GRAPH_JUMP};
		is_led_to[l.to] |= l.from != l.to;
	}
	for (uint32_t i = cnt; i-- > 0;)
		g->entry = is_led_to[i] ? g->entry : i;
	qsort_r(f->by_va, cnt, sizeof(*f->by_va), by_va, f->blocks);
	tui_graph_sizes(f);
	g->cancel = cancel;
	struct err *e = graph_layout(g, &f->arena);
	g->cancel = NULL;
	return e;
}

struct err *tui_graph_around_new(struct ses_snap *sn, const struct ses_call *call, const struct tui_graph_ask *ask,
				 struct tui_graph_func **ret)
{
	struct around a = {.sn = sn, .call = call, .f = calloc(1, sizeof(*a.f))};
	struct ses_func func;
	uint64_t va = ask->va;
	uint32_t root;
	struct err *e = NULL;
	if (!a.f)
		return &err_nomem;
	bool is_func = ses_func_at(sn, va, &a.temp, &func), is_calls = ask->kind == TUI_AROUND_CALLS;
	if (is_calls && !is_func)
		e = err_new(ERR_NOT_FOUND, "0x%llx: is in no function", (unsigned long long)va);
	va = is_calls && is_func ? func.addr : va;
	a.f->va = va;
	a.f->zoom = TUI_ZOOM_NAMES;
	a.f->kind = ask->kind;
	if (!e && !node_of(&a, va, &root))
		e = &err_nomem;
	if (!e)
		e = up_twice(&a, va, is_calls);
	if (!e)
		e = is_calls ? callees(&a, va) : referred(&a, va, is_func && func.addr == va);
	if (!e)
		e = picture(&a, ask->cancel);
	a.f->more = a.more;
	arena_fini(&a.temp);
	VEC_FREE(&a.nodes);
	VEC_FREE(&a.links);
	if (e)
		tui_graph_func_free(take_ptr(a.f));
	*ret = a.f;
	return e;
}
