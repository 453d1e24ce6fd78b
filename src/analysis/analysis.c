/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/analysis.h"

#include "analysis/code.h"

/*
 * The order of the stages (code.h). Everything that decodes runs in parallel over fixed pieces; what
 * decides runs on one thread in a fixed order, which is why the result does not depend on the number
 * of threads.
 *
 * Profile of libLLVM-14 (50 MB of code, one thread): the sweep is a quarter of the time, the stage of
 * data (data.c) a sixth; among the rest the binary search for the extent of a jump's target
 * (code_ext_of) stands out with a tenth of the whole, then the walk over records and the bit maps.
 * Jump tables are a twentieth: nearly all are settled by the first, short path. A file with data in its
 * code runs discovery twice, because the sweep is corrected where control came to the middle of what
 * it took for an instruction.
 */
#define RESYNC_MAX 4

bool code_is_cancelled(struct code *c)
{
	if (c->in->cancel && atomic_load_explicit(c->in->cancel, memory_order_relaxed))
		c->is_cancelled = true;
	return c->is_cancelled;
}

void code_progress(struct code *c, const char *stage, uint64_t done, uint64_t total)
{
	if (c->in->progress)
		c->in->progress(c->in->ctx, stage, MIN(done, total), total, c->fns.cnt);
}

static void code_fini(struct code *c)
{
	for (size_t i = 0; i < c->chunks.cnt; i++) {
		VEC_FREE(&c->chunks.data[i].recs);
		VEC_FREE(&c->chunks.data[i].refs);
	}
	VEC_FREE(&c->chunks);
	VEC_FREE(&c->regions);
	VEC_FREE(&c->zones);
	VEC_FREE(&c->flags);
	uint64_t *maps[] = {c->items,	c->pads,    c->rec_bits,  c->sync,
			    c->called,	c->taken,   c->relocated, c->starts,
			    c->covered, c->leaders, c->data_refs, c->import_noreturn, c->touched};
	for (size_t i = 0; i < ARRAY_LEN(maps); i++)
		free(maps[i]);
	free(c->recs);
	free(c->rank);
	free(c->owner);
	free(c->into_first);
	free(c->into);
	VEC_FREE(&c->plts);
	VEC_FREE(&c->gots);
	VEC_FREE(&c->exts);
	VEC_FREE(&c->fns);
	map_fini(&c->fn_at);
	VEC_FREE(&c->waits);
	VEC_FREE(&c->pieces);
	VEC_FREE(&c->queue);
	map_fini(&c->got);
	VEC_FREE(&c->tables);
	VEC_FREE(&c->targets);
	VEC_FREE(&c->missync);
}

/* Forgets what flow found, for another try after the sweep was corrected. */
static void reset_flow(struct code *c)
{
	size_t bytes = bits_words(c->len) * sizeof(uint64_t);
	memset(c->starts, 0, bytes);
	c->free_from = c->free_to = 0;
	memset(c->covered, 0, bytes);
	memset(c->leaders, 0, bytes);
	c->fns.cnt = 0;
	map_fini(&c->fn_at);
	c->waits.cnt = 0;
	c->pieces.cnt = 0;
	c->queue.cnt = 0;
	c->covered_cnt = 0;
	for (size_t i = 0; i < c->exts.cnt; i++) {
		struct code_ext *e = &c->exts.data[i];
		if (e->is_loose) {
			e->is_fragment = e->was_fragment;
			e->start = e->was_fragment ? CODE_NONE : e->from;
		}
	}
	free(c->owner);
	c->owner = NULL;
}

/* One pass from the swept code to who owns what. */
static struct err *discover(struct code *c)
{
	struct err *e = code_index(c);
	if (!e)
		e = code_find_plts(c);
	if (!e)
		e = code_starts(c);
	if (!e)
		e = code_names(c);
	if (e)
		return e;
	c->owner = malloc((c->rec_cnt + 1) * sizeof(*c->owner));
	if (!c->owner)
		return &err_nomem;
	memset(c->owner, 0xff, (c->rec_cnt + 1) * sizeof(*c->owner));
	code_progress(c, "jump tables", 0, 1);
	e = code_tables(c);
	if (!e)
		e = code_stated_tables(c);
	if (e || code_is_cancelled(c))
		return e;
	code_progress(c, "functions", 0, c->len);
	return code_flow(c);
}

static struct err *find_code(struct code *c)
{
	struct err *e = code_imports(c);
	if (!e)
		e = code_stated_read(c);
	if (!e)
		e = code_regions(c);
	if (e || !c->regions.cnt)
		return e;
	e = code_exts(c);
	if (!e)
		e = code_stated_exts(c);
	if (!e)
		e = code_sweep(c);
	if (e || c->is_cancelled)
		return e;
	size_t names_cnt = c->d->names.cnt;
	for (unsigned i = 0;; i++) {
		e = discover(c);
		if (e || c->is_cancelled || i == RESYNC_MAX || !code_sweep_again(c))
			break;
		c->d->names.cnt = names_cnt;
		reset_flow(c);
	}
	if (e || c->has_failed || c->is_cancelled)
		return e ? e : c->has_failed ? &err_nomem : NULL;
	e = code_stated_flow(c);
	code_flow_settle(c);
	if (!e)
		e = code_pairs(c);
	if (!e)
		e = code_pointers(c);
	if (!e) {
		code_flow_settle(c);
		e = code_gaps(c);
	}
	code_flow_settle(c);
	return e;
}

/* Names, prototypes and lines that others wrote down. */
static bool add_func_names(struct image_data *d, const struct dbg_funcs *funcs,
			   enum image_name_kind kind)
{
	for (size_t i = 0; funcs && i < funcs->list.cnt; i++) {
		const struct dbg_func *f = &funcs->list.data[i];
		struct image_name n = {
			.loc = space_loc(&d->space, f->va), .kind = (uint8_t)kind, .is_func = 1};
		struct image_proto p = {.loc = n.loc, .line = f->line};
		if (n.loc == LOC_NONE)
			continue;
		if (f->name.len && (!image_pool_add(d, f->name.s, f->name.len, &n.name) ||
				    !VEC_PUSH(&d->names, n)))
			return false;
		if (!f->prototype.len && !f->file.len)
			continue;
		if (!image_pool_add(d, f->prototype.s, f->prototype.len, &p.text) ||
		    !image_pool_add(d, f->file.s, f->file.len, &p.file) || !VEC_PUSH(&d->protos, p))
			return false;
	}
	return true;
}

static int compare_protos(const void *a, const void *b)
{
	const struct image_proto *x = a, *y = b;
	if (x->loc != y->loc)
		return x->loc < y->loc ? -1 : 1;
	return (x->text.off > y->text.off) - (x->text.off < y->text.off);
}

static int compare_lines(const void *a, const void *b)
{
	const struct image_line *x = a, *y = b;
	if (x->loc != y->loc)
		return x->loc < y->loc ? -1 : 1;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

static bool add_lines(struct image_data *d, const struct dbg_lines *lines)
{
	for (size_t i = 0; lines && i < lines->files.cnt; i++) {
		struct image_str s;
		if (!image_pool_add(d, lines->files.data[i].s, lines->files.data[i].len, &s) ||
		    !VEC_PUSH(&d->line_files, s))
			return false;
	}
	for (size_t i = 0; lines && i < lines->list.cnt; i++) {
		const struct dbg_line *l = &lines->list.data[i];
		uint32_t loc = space_loc(&d->space, l->va);
		if (loc != LOC_NONE && l->file < d->line_files.cnt &&
		    !VEC_PUSH(&d->lines, (struct image_line){loc, l->file, l->line}))
			return false;
	}
	if (d->lines.cnt)
		qsort(d->lines.data, d->lines.cnt, sizeof(*d->lines.data), compare_lines);
	size_t n = 0;
	for (size_t i = 1; i < d->lines.cnt; i++)
		if (d->lines.data[i].loc != d->lines.data[n].loc)
			d->lines.data[++n] = d->lines.data[i];
	d->lines.cnt = d->lines.cnt ? n + 1 : 0;
	return true;
}

static bool add_facts(const struct analysis_in *in, struct image_data *d)
{
	if (!add_func_names(d, in->go_funcs, IMAGE_NAME_GO) ||
	    !add_func_names(d, in->dwarf_funcs, IMAGE_NAME_DWARF) || !add_lines(d, in->dwarf_lines) ||
	    !analysis_add_types(d, in->dwarf_funcs ? in->dwarf_funcs->types : NULL))
		return false;
	if (d->protos.cnt)
		qsort(d->protos.data, d->protos.cnt, sizeof(*d->protos.data), compare_protos);
	size_t n = 0;
	for (size_t i = 1; i < d->protos.cnt; i++)
		if (d->protos.data[i].loc != d->protos.data[n].loc)
			d->protos.data[++n] = d->protos.data[i];
	d->protos.cnt = d->protos.cnt ? n + 1 : 0;
	return true;
}

struct err *analysis_run(const struct analysis_in *in, struct image_data *d)
{
	struct code c = {.in = in, .d = d, .arch = in->arch};
	uint64_t *code_bits = NULL;
	struct err *e = NULL;
	/* A core holds a process's memory, not a program: nothing in it is to be discovered. */
	if (d->meta.fmt_type != FMT_TYPE_CORE && in->arch)
		e = find_code(&c);
	if (!e && c.is_cancelled)
		e = err_new(ERR_CANCELLED, "the analysis was cancelled");
	if (!e) {
		code_progress(&c, "references", 0, 1);
		e = code_emit(&c, &code_bits);
	}
	if (!e && !add_facts(in, d))
		e = &err_nomem;
	code_fini(&c);
	if (!e) {
		code_progress(&c, "data", 0, 1);
		e = analysis_data(in, d, code_bits);
	}
	free(code_bits);
	return e;
}
