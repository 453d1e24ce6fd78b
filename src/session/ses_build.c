/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The long way from bytes to an image: hash, look whether the store has it after all, read the tables others wrote,
 * analyse, publish. Where the store cannot be written the image stays in memory and the session says why.
 */
#include "session/ses_load_int.h"
#include "session/ses_stated_int.h"

#include "analysis/analysis.h"
#include "session/ses_sha256.h"

#include <string.h>

/* What analysis is given beside the bytes; one lifetime. */
struct ses_facts {
	struct dbg_fdes fdes;
	struct dbg_funcs go_funcs;
	struct dbg_funcs dwarf_funcs;
	struct dbg_lines dwarf_lines;
	struct dbg_types dwarf_types;
	struct findings findings;
	struct file *debug_file;
	struct fmt_bin *debug_bin;
};

static void ses_facts_fini(struct ses_facts *f)
{
	VEC_FREE(&f->fdes.list);
	VEC_FREE(&f->go_funcs.list);
	arena_fini(&f->go_funcs.arena);
	VEC_FREE(&f->dwarf_funcs.list);
	arena_fini(&f->dwarf_funcs.arena);
	dbg_types_fini(&f->dwarf_types);
	VEC_FREE(&f->dwarf_lines.list);
	VEC_FREE(&f->dwarf_lines.files);
	arena_fini(&f->dwarf_lines.arena);
	findings_fini(&f->findings);
	fmt_bin_free(f->debug_bin);
	file_close(f->debug_file);
}

/* The first reason why nothing is kept; takes the error. */
static void ses_set_note(struct ses *s, struct err *why)
{
	pthread_mutex_lock(&s->lock);
	if (!s->store_note)
		s->store_note = strdup(why->text);
	pthread_mutex_unlock(&s->lock);
	err_free(why);
}

static const atomic_bool *ses_cancel_flag(struct ses *s)
{
	return s->event_fd >= 0 ? &s->stop : s->cancel;
}

static void ses_hash_progress(void *ctx, uint64_t done)
{
	struct ses *s = ctx;
	ses_set_progress(s, SES_IDENTIFYING, "identifying", done, s->file->len, 0);
}

struct err *ses_identify(struct ses *s)
{
	if (s->has_sha256)
		return NULL;
	struct err *e = ses_sha256(s->file->data, s->file->len, ses_cancel_flag(s), ses_hash_progress, s, s->sha256);
	if (e)
		return e;
	if (file_has_changed(s->file))
		return err_fix(err_new(ERR_STALE, "%s: target_changed: the file was rewritten while it was read", s->path),
			       "open it again");
	pthread_mutex_lock(&s->lock);
	s->has_sha256 = true;
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* The facts at the snapshot's addresses; takes them. */
static struct err *ses_take_facts(struct ses_snap *sn, struct edits_view *edits)
{
	sn->edits = edits;
	if (!edits || !ses_snap_bias(sn))
		return NULL;
	struct edits_view *moved = NULL;
	struct err *e = edits_view_at(edits, ses_snap_bias(sn), &moved);
	if (e)
		return e;
	edits_view_unref(edits);
	sn->edits = moved;
	return NULL;
}

struct err *ses_open_stored(struct ses *s, struct ses_snap **ret)
{
	/* The generation may be replaced between reading its number and opening it; then there is a newer one. */
	for (unsigned tries = 0; tries < 8; tries++) {
		struct edits_state st;
		struct edits_view *edits = NULL;
		struct err *e = store_get_state(s->store, s->sha256, &st, &edits);
		if (e)
			return e;
		_cleanup_free_ char *path = store_image_path(s->store, s->sha256, st.image_gen);
		struct image *im = NULL;
		e = path ? image_open(path, s->file ? s->file->data : NULL, s->file ? s->file->len : 0, s->sha256, &im) : &err_nomem;
		if (e && e->kind == ERR_NOT_FOUND) {
			err_free(e);
			edits_view_unref(edits);
			continue;
		}
		const struct arch *arch = NULL;
		if (!e)
			e = ses_arch_of((enum arch_id)image_meta(im)->arch, &arch);
		struct ses_snap *sn = e ? NULL : ses_snap_new(s, im, NULL, false);
		if (!sn) {
			image_unref(im);
			edits_view_unref(edits);
			return e ? e : &err_nomem;
		}
		sn->arch = arch;
		e = ses_take_facts(sn, edits);
		if (e) {
			ses_snap_put(sn);
			return e;
		}
		sn->rev = st.rev;
		sn->gen = st.image_gen;
		*ret = sn;
		return NULL;
	}
	return &err_not_found;
}

static void ses_take_findings(struct err *e, struct findings *f, const char *what)
{
	if (e)
		finding_add(f, FINDING_WARNING, UINT64_MAX, what, "%s", e->text);
	err_free(e);
}

/* DWARF of the target itself, or of its separate debug file when it has none. */
static void ses_read_dwarf(struct ses *s, struct ses_facts *f)
{
	const struct fmt_bin *b = s->bin;
	if (!fmt_section_named(b, ".debug_info") && !fmt_section_named(b, ".zdebug_info")) {
		_cleanup_free_ char *path = dbg_find_debug_file(b, s->path);
		if (!path)
			return;
		struct err *e = file_open(path, &f->debug_file);
		if (!e)
			e = fmt_open(f->debug_file->data, f->debug_file->len, &f->debug_bin);
		if (e) {
			ses_take_findings(e, &f->findings, "separate debug file");
			return;
		}
		b = f->debug_bin;
	}
	ses_set_progress(s, SES_ANALYSING, "debug information", 0, 0, 0);
	f->dwarf_funcs.types = &f->dwarf_types;
	ses_take_findings(dbg_read_dwarf(b, true, &f->dwarf_funcs, &f->dwarf_lines, &f->findings), &f->findings, "DWARF");
}

static struct err *ses_read_facts(struct ses *s, struct ses_facts *f)
{
	ses_set_progress(s, SES_ANALYSING, "tables", 0, 0, 0);
	struct err *e = dbg_read_eh_frame(s->bin, &f->fdes, &f->findings);
	if (!e)
		e = dbg_read_pclntab(s->bin, &f->go_funcs, &f->findings);
	if (!e)
		ses_read_dwarf(s, f);
	return e;
}

/* What others wrote down is at the file's addresses. */
static void ses_move_facts(struct ses_facts *f, uint64_t bias)
{
	for (size_t i = 0; bias && i < f->fdes.list.cnt; i++) {
		f->fdes.list.data[i].va += bias;
		f->fdes.list.data[i].lsda += f->fdes.list.data[i].lsda ? bias : 0;
	}
	for (size_t i = 0; bias && i < f->go_funcs.list.cnt; i++)
		f->go_funcs.list.data[i].va += bias;
	for (size_t i = 0; bias && i < f->dwarf_funcs.list.cnt; i++)
		f->dwarf_funcs.list.data[i].va += bias;
	for (size_t i = 0; bias && i < f->dwarf_types.vars.cnt; i++)
		f->dwarf_types.vars.data[i].va += bias;
	for (size_t i = 0; bias && i < f->dwarf_lines.list.cnt; i++)
		f->dwarf_lines.list.data[i].va += bias;
	for (size_t i = 0; bias && i < f->findings.list.cnt; i++)
		f->findings.list.data[i].va += f->findings.list.data[i].has_va ? bias : 0;
}

static void ses_analysis_progress(void *ctx, const char *stage, uint64_t done, uint64_t total, uint64_t func_cnt)
{
	ses_set_progress(ctx, SES_ANALYSING, stage, done, total, func_cnt);
}

static struct err *ses_analyse(struct ses *s, const struct edits_view *edits, struct image_data *d)
{
	struct ses_facts facts = {0};
	struct arena arena = {0};
	struct analysis_stated stated = {0};
	struct err *e = ses_read_facts(s, &facts);
	ses_move_facts(&facts, d->meta.bias);
	if (!e)
		e = ses_stated_read(edits, d->meta.bias, &arena, &stated);
	struct par *par = e ? NULL : par_new(s->threads);
	if (!e && !par)
		e = &err_nomem;
	if (!e) {
		bool has_decoder = s->arch->id != ARCH_ID_NONE;
		if (!has_decoder)
			finding_add(&facts.findings, FINDING_NOTE, UINT64_MAX, "machine",
				    "%s instructions are not known to scry: code stays unknown", s->bin->machine_name);
		struct analysis_in in = {.arch = has_decoder ? s->arch : NULL, .fdes = &facts.fdes, .go_funcs = &facts.go_funcs,
					 .dwarf_funcs = &facts.dwarf_funcs, .dwarf_lines = &facts.dwarf_lines, .stated = &stated, .par = par,
					 .cancel = ses_cancel_flag(s), .progress = ses_analysis_progress, .ctx = s};
		e = analysis_run(&in, d);
	}
	if (!e && !image_add_findings(d, &facts.findings))
		e = &err_nomem;
	par_free(par);
	arena_fini(&arena);
	ses_facts_fini(&facts);
	return e;
}

/* The image's bytes for the target as it is and what was stated of it. */
static struct err *ses_make_image(struct ses *s, const struct edits_view *edits, struct buf *ret)
{
	struct image_data d = {0};
	struct ses_load load = s->asked;
	if (edits)
		ses_load_read(edits, &load);
	bool is_fit = s->bin && !memcmp(&load, &s->load, sizeof(load));
	struct err *e = is_fit ? NULL : ses_parse_as(s, &load);
	if (!e)
		e = image_data_from_fmt(s->bin, s->sha256, &d);
	if (!e && load.has_base)
		e = image_data_move(&d, load.base - s->bin->base_va);
	if (!e)
		e = ses_analyse(s, edits, &d);
	if (!e) {
		ses_set_progress(s, SES_ANALYSING, "writing", 0, 0, d.funcs.cnt);
		e = image_serialize(&d, ret);
	}
	image_data_fini(&d);
	/* The description has done its work; only this thread knows of it by now. */
	fmt_bin_free(take_ptr(s->bin));
	if (!e && file_has_changed(s->file))
		e = err_fix(err_new(ERR_STALE, "%s: target_changed: the file was rewritten while it was analysed", s->path),
			    "open it again");
	return e;
}

/* What an image is built from. */
struct ses_base {
	struct edits_state state;
	struct edits_view *edits; /* null: nobody stated anything */
};

static struct err *ses_keep_in_memory(struct ses *s, struct ses_base *base, struct buf *bytes, struct ses_snap **ret)
{
	struct image *im = NULL;
	struct err *e = image_open_mem(bytes->data, bytes->len, s->file->data, s->file->len, s->sha256, &im);
	if (e)
		return e;
	struct ses_snap *sn = ses_snap_new(s, im, bytes, false);
	if (!sn) {
		image_unref(im);
		return &err_nomem;
	}
	e = ses_take_facts(sn, take_ptr(base->edits));
	if (e) {
		ses_snap_put(sn);
		return e;
	}
	sn->rev = MAX(base->state.rev, (uint64_t)1);
	sn->gen = base->state.image_gen;
	sn->is_settled = true;
	*ret = sn;
	return NULL;
}

/* Into the store, and back from there, mapped; into memory where that fails. */
static struct err *ses_keep(struct ses *s, struct ses_base *base, struct buf *bytes, struct ses_snap **ret)
{
	struct err *why = NULL;
	if (s->store) {
		/* Whole: it is looked for from other folders. */
		_cleanup_free_ char *real = realpath(s->path, NULL);
		why = store_publish(s->store, s->sha256, real ? real : s->path, bytes, &base->state);
		if (!why)
			why = ses_open_stored(s, ret);
		if (!why)
			return NULL;
		ses_set_note(s, why);
	}
	return ses_keep_in_memory(s, base, bytes, ret);
}

static struct err *ses_build_once(struct ses *s, struct ses_snap **ret)
{
	struct ses_base base = {0};
	struct buf bytes = {0};
	struct err *e = s->store ? store_get_base(s->store, s->sha256, &base.state, &base.edits) : NULL;
	if (e && e->kind != ERR_NOT_FOUND)
		ses_set_note(s, take_ptr(e));
	err_free(e);
	uint64_t began = ses_now_ns();
	e = ses_make_image(s, base.edits, &bytes);
	s->was_made = true;
	s->made_ns = ses_now_ns() - began;
	if (!e)
		e = ses_keep(s, &base, &bytes, ret);
	edits_view_unref(base.edits);
	buf_fini(&bytes);
	return e;
}

/* The stored image, if it is there and wanted; null otherwise. */
static struct ses_snap *ses_look(struct ses *s)
{
	struct ses_snap *sn = NULL;
	if (s->store && !s->force)
		err_free(ses_open_stored(s, &sn));
	s->force = false;
	return sn;
}

#define BUILDS_MAX 64 /* of one call: somebody may state things faster than they are analysed */

struct err *ses_build(struct ses *s)
{
	bool was_known = s->has_sha256;
	struct err *e = s->coming ? ses_arrive(s) : NULL;
	if (e)
		return e;
	ses_set_progress(s, SES_IDENTIFYING, "identifying", 0, s->file->len, 0);
	e = ses_identify(s);
	if (e)
		return e;
	if (s->store && !was_known) {
		struct err *why = store_put_sha256(s->store, s->file, s->sha256);
		if (why)
			ses_set_note(s, why);
	}
	struct ses_snap *sn = ses_look(s);
	for (unsigned i = 0; i < BUILDS_MAX && (!sn || ses_snap_is_stale(sn)); i++) {
		if (sn)
			ses_publish(s, take_ptr(sn));
		e = ses_build_once(s, &sn);
		if (e)
			return e;
	}
	ses_publish_done(s, sn);
	return NULL;
}

struct preview_func {
	uint32_t loc, len;
	uint8_t source;
};

typedef VEC(struct preview_func) preview_funcs;

static int preview_cmp(const void *x, const void *y)
{
	const struct preview_func *a = x, *b = y;
	if (a->loc != b->loc)
		return a->loc < b->loc ? -1 : 1;
	if (a->len != b->len)
		return a->len > b->len ? -1 : 1;
	return a->source < b->source ? -1 : a->source > b->source;
}

/* Functions as they are told, one a place, cut where the next begins. */
static bool preview_put_funcs(struct image_data *d, struct preview_func *f, size_t cnt)
{
	qsort(f, cnt, sizeof(*f), preview_cmp);
	for (size_t i = 0; i < cnt; i++) {
		if (i && f[i].loc == f[i - 1].loc)
			continue;
		size_t next = i + 1;
		while (next < cnt && f[next].loc == f[i].loc)
			next++;
		int seg = space_seg_of_loc(&d->space, f[i].loc);
		if (seg < 0)
			continue;
		uint64_t end = d->segs.data[seg].loc + d->segs.data[seg].mem_len;
		if (next < cnt)
			end = MIN(end, f[next].loc);
		uint32_t len = (uint32_t)MIN(end - f[i].loc, f[i].len ? f[i].len : 1);
		struct image_func fn = {.loc = f[i].loc, .size_len = len, .range_first = (uint32_t)d->func_ranges.cnt, .range_cnt = 1,
					.source = f[i].source, .thunk_to = LOC_NONE};
		struct image_range r = {.loc = f[i].loc, .len = len, .func = (uint32_t)d->funcs.cnt};
		if (!VEC_PUSH(&d->funcs, fn) || !VEC_PUSH(&d->func_ranges, r))
			return false;
	}
	return true;
}

/* Functions as the unwind tables tell, which were fetched first. Where those are broken there are fewer of them. */
static bool preview_add_fdes(const struct fmt_bin *b, const struct image_data *d, preview_funcs *f)
{
	struct dbg_fdes fdes = {0};
	struct findings findings = {0};
	struct err *e = dbg_read_eh_frame(b, &fdes, &findings);
	bool ok = !e || e->kind != ERR_NOMEM;
	for (size_t i = 0; i < fdes.list.cnt && ok; i++) {
		const struct dbg_fde *one = &fdes.list.data[i];
		uint32_t loc = space_loc(&d->space, one->va);
		if (loc != LOC_NONE && one->len && !one->is_fragment)
			ok = VEC_PUSH(f, (struct preview_func){loc, (uint32_t)MIN(one->len, UINT32_MAX), IMAGE_SRC_UNWIND});
	}
	err_free(e);
	VEC_FREE(&fdes.list);
	findings_fini(&findings);
	return ok;
}

/* Everything the file's own tables say, as an image without items. With `b` also its unwind tables. */
static bool preview_fill(struct image_data *d, const struct fmt_bin *b)
{
	preview_funcs f = {0};
	bool ok = !b || preview_add_fdes(b, d, &f);
	for (size_t i = 0; i < d->segs.cnt && ok; i++)
		ok = VEC_PUSH(&d->run_loc, d->segs.data[i].loc) && VEC_PUSH(&d->run_kind, IMAGE_UNKNOWN);
	for (size_t i = 0; i < d->symbols.cnt && ok; i++) {
		const struct image_symbol *s = &d->symbols.data[i];
		bool is_func = s->type == FMT_SYM_FUNC || s->type == FMT_SYM_IFUNC;
		if (is_func && s->loc != LOC_NONE && !(s->flags & IMAGE_SYM_UNDEFINED))
			ok = VEC_PUSH(&f, (struct preview_func){s->loc, s->size_len, IMAGE_SRC_SYMBOL});
	}
	if (ok && f.cnt)
		ok = preview_put_funcs(d, f.data, f.cnt);
	VEC_FREE(&f);
	return ok;
}

struct err *ses_build_preview(struct ses *s, struct ses_snap **ret)
{
	static const uint8_t unknown[32];
	struct image_data d = {0};
	struct buf bytes = {0};
	struct err *e = image_data_from_fmt(s->bin, unknown, &d);
	/* A preview of what is here is replaced soon, one of what is coming is all there is for a while. */
	if (!e && !preview_fill(&d, s->coming ? s->bin : NULL))
		e = &err_nomem;
	if (!e)
		e = image_serialize(&d, &bytes);
	image_data_fini(&d);
	struct image *im = NULL;
	if (!e)
		e = image_open_mem(bytes.data, bytes.len, s->file->data, s->file->len, NULL, &im);
	if (!e) {
		*ret = ses_snap_new(s, im, &bytes, true);
		if (!*ret) {
			image_unref(im);
			e = &err_nomem;
		}
	}
	buf_fini(&bytes);
	return e;
}
