/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk over items and the lines before them. Going forward, functions, names, references and sections are
 * followed by positions that only grow; going back looks each up anew, since a page back is rare.
 *
 * In a preview there are no items yet: they are decoded from the nearest function symbol before the address.
 */
#include "session/heads_int.h"
#include "session/ses_types.h"

#include "analysis/analysis.h"

#include <string.h>

#define HEADS_PREVIEW_MAX 4096
#define HEADS_PREVIEW_BACK 65536
#define HEADS_MISSING_LEN (256u << 10) /* bytes that come together, of a file on its way */
#define HEADS_INSN_LEN 16		/* no instruction is longer */

/* --- marks --- */

static int mark_cmp(const void *x, const void *y)
{
	const struct ses_mark *a = x, *b = y;
	if (a->loc != b->loc)
		return a->loc < b->loc ? -1 : 1;
	return a->section < b->section ? -1 : a->section > b->section;
}

static struct err *marks_make(struct ses_snap *sn)
{
	uint32_t cnt, n = 0;
	const struct image_section *s = image_sections(sn->im, &cnt);
	struct ses_mark *m = alloc_array((size_t)cnt + sn->space->seg_cnt, sizeof(*m));
	if (!m)
		return &err_nomem;
	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t loc = s[i].is_alloc && s[i].mem_len ? space_loc(sn->space, s[i].va) : LOC_NONE;
		if (loc != LOC_NONE)
			m[n++] = (struct ses_mark){.loc = loc, .section = i};
	}
	for (uint32_t i = 0; i < sn->space->seg_cnt; i++)
		m[n++] = (struct ses_mark){.loc = sn->space->segs[i].loc, .section = UINT32_MAX, .seg = i};
	qsort(m, n, sizeof(*m), mark_cmp);
	/* One line a place: the first section that begins there, else the segment. */
	uint32_t kept = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (!kept || m[kept - 1].loc != m[i].loc)
			m[kept++] = m[i];
	}
	sn->marks = m;
	sn->mark_cnt = kept;
	return NULL;
}

struct err *ses_marks(struct ses_snap *sn, const struct ses_mark **ret, uint32_t *ret_cnt)
{
	pthread_mutex_lock(&sn->lock);
	struct err *e = sn->has_marks ? NULL : marks_make(sn);
	sn->has_marks = sn->has_marks || !e;
	pthread_mutex_unlock(&sn->lock);
	if (e)
		return e;
	*ret = sn->marks;
	*ret_cnt = sn->mark_cnt;
	return NULL;
}

/* --- items --- */

/* Number of the first typed datum that ends behind loc. */
static uint32_t typed_after(const struct heads_walk *w, uint32_t loc)
{
	uint32_t lo = 0;
	for (uint32_t hi = w->typed_cnt; lo < hi;) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (w->typeds[mid].loc + (w->typeds[mid].len - 1) < loc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Where typed data lies it is the item, and what the analysis found there is cut to what is left of it. `loc` lies in the
 * image's item at hand. */
static void walk_take_typed(struct heads_walk *w, uint32_t loc)
{
	uint32_t i = typed_after(w, loc), first = w->items.loc, end = w->items.loc + w->items.len;
	const struct ses_typed *t = i < w->typed_cnt ? &w->typeds[i] : NULL;
	if (t && t->loc <= loc) {
		w->typed = t;
		if (t->loc < first && !image_items_from(w->sn->im, t->loc, &w->items))
			return;
		w->item = (struct heads_item){t->loc, t->len, w->items.row, IMAGE_DATA};
		return;
	}
	if (i && w->typeds[i - 1].loc + w->typeds[i - 1].len > first)
		first = w->typeds[i - 1].loc + w->typeds[i - 1].len;
	if (t && t->loc < end)
		end = t->loc;
	bool is_cut = first != w->items.loc || end - first != w->items.len;
	w->item = (struct heads_item){first, end - first, w->items.row, (uint8_t)(is_cut ? IMAGE_UNKNOWN : w->items.kind)};
}

/* Bytes nobody knows are cut where somebody named or commented one of them, so that it is shown. */
static void walk_cut_stated(struct heads_walk *w, uint32_t loc)
{
	static const enum edits_kind kinds[] = {EDITS_NAME, EDITS_COMMENT};
	uint32_t first = w->item.loc, end = first + w->item.len;
	uint64_t va = space_va(w->sn->space, first);
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
		size_t cnt;
		const struct edits_fact *f = edits_range(w->sn->edits, kinds[k], va + 1, va + (w->item.len - 1), &cnt);
		for (size_t i = 0; i < cnt; i++) {
			uint32_t at = w->item.loc + (uint32_t)(f[i].va - va);
			first = at <= loc ? MAX(first, at) : first;
			end = at > loc ? MIN(end, at) : end;
		}
	}
	w->item.loc = first;
	w->item.len = end - first;
}

static void walk_take(struct heads_walk *w, uint32_t loc)
{
	w->typed = NULL;
	w->item = (struct heads_item){w->items.loc, w->items.len, w->items.row, (uint8_t)w->items.kind};
	if (w->typed_cnt)
		walk_take_typed(w, loc);
	if (w->sn->edits && !w->typed && w->item.kind == IMAGE_UNKNOWN && w->item.len > 1)
		walk_cut_stated(w, loc);
}

static bool preview_take(struct heads_walk *w)
{
	if (w->start_pos >= w->start_cnt)
		return false;
	uint32_t loc = w->starts[w->start_pos];
	int seg = space_seg_of_loc(w->sn->space, loc);
	if (seg < 0)
		return false;
	const struct space_seg *g = &w->sn->space->segs[seg];
	size_t left;
	const uint8_t *p = space_bytes(w->sn->space, loc, &left);
	struct arch_insn insn = {.len = 1, .flow = ARCH_FLOW_INVALID};
	/* What is not here yet is one item to the end of its block, at most. */
	if (p && !ses_is_here(w->sn, loc, (uint32_t)MIN(left, HEADS_INSN_LEN))) {
		uint64_t at = g->file_off + (loc - g->loc);
		w->item = (struct heads_item){loc, (uint32_t)MIN(left, HEADS_MISSING_LEN - at % HEADS_MISSING_LEN), UINT32_MAX, IMAGE_UNKNOWN};
		return true;
	}
	uint32_t len = p ? 1 : (uint32_t)(g->loc + g->mem_len - loc);
	bool is_code = p && g->perm & FMT_X && w->sn->arch->id != ARCH_ID_NONE;
	if (is_code) {
		w->sn->arch->decode(w->sn->arch, p, left, space_va(w->sn->space, loc), &insn);
		len = insn.len;
	} else if (p) {
		len = (uint32_t)MIN(left, 16 - loc % 16);
	}
	bool is_bad = insn.flow == ARCH_FLOW_INVALID;
	w->item = (struct heads_item){loc, len, UINT32_MAX, is_code && !is_bad ? IMAGE_CODE : IMAGE_UNKNOWN};
	return true;
}

static uint32_t preview_len(struct heads_walk *w, uint32_t loc)
{
	uint32_t one[1] = {loc};
	struct heads_walk t = {.sn = w->sn, .starts = one, .start_cnt = 1};
	return preview_take(&t) ? t.item.len : 0;
}

/* Item starts from `from` up to and beyond `loc`; *ret_pos is the one that is or holds `loc`. */
static bool preview_make(struct heads_walk *w, uint32_t loc)
{
	w->starts = alloc_array(HEADS_PREVIEW_MAX, sizeof(*w->starts));
	int seg = space_seg_of_loc(w->sn->space, loc);
	if (!w->starts || seg < 0)
		return false;
	uint32_t first = w->sn->space->segs[seg].loc;
	uint32_t f = image_func_at(w->sn->im, loc > first ? loc - 1 : loc), cnt;
	const struct image_func *funcs = image_funcs(w->sn->im, &cnt);
	uint32_t at = f < cnt && funcs[f].loc >= first ? funcs[f].loc : loc - MIN(loc - first, 64);
	if (loc - at > HEADS_PREVIEW_BACK)
		at = loc - 64;
	uint32_t ring = HEADS_PREVIEW_MAX / 2;
	while (at < loc) {
		/* Only the last half matters once it is full. */
		if (w->start_cnt == ring) {
			memmove(w->starts, w->starts + ring / 2, (ring - ring / 2) * sizeof(*w->starts));
			w->start_cnt -= ring / 2;
		}
		w->starts[w->start_cnt++] = at;
		uint32_t len = preview_len(w, at);
		if (!len || at + len > loc)
			break;
		at += len;
	}
	w->start_pos = w->start_cnt;
	for (at = loc; w->start_cnt < HEADS_PREVIEW_MAX;) {
		w->starts[w->start_cnt++] = at;
		uint32_t len = preview_len(w, at);
		seg = space_seg_of_loc(w->sn->space, at);
		at += len;
		if (!len)
			break;
		if (space_seg_of_loc(w->sn->space, at) < 0) {
			if (seg < 0 || (uint32_t)seg + 1 >= w->sn->space->seg_cnt)
				break;
			at = w->sn->space->segs[seg + 1].loc;
		}
	}
	return preview_take(w);
}

static bool walk_forward(struct heads_walk *w)
{
	if (w->sn->is_preview) {
		w->start_pos++;
		return preview_take(w);
	}
	uint32_t end = w->item.loc + w->item.len;
	/* Without typed data the item is the image's, and this is one step. */
	do {
		if (w->items.loc + w->items.len > end)
			break;
		if (!image_items_next(&w->items))
			return false;
	} while (w->typed_cnt);
	walk_take(w, MAX(end, w->items.loc));
	return true;
}

static bool walk_backward(struct heads_walk *w)
{
	if (w->sn->is_preview) {
		if (!w->start_pos)
			return false;
		w->start_pos--;
		return preview_take(w);
	}
	if (w->item.loc <= w->items.loc && !image_items_prev(&w->items))
		return false;
	walk_take(w, MIN(w->item.loc, w->items.loc + w->items.len) - 1);
	return true;
}

/* --- what stands at the item --- */

static void walk_enter_seg(struct heads_walk *w)
{
	uint32_t loc = w->item.loc;
	if (loc >= w->seg_first && loc < w->seg_end)
		return;
	int seg = space_seg_of_loc(w->sn->space, loc);
	if (seg < 0)
		return;
	const struct space_seg *g = &w->sn->space->segs[seg];
	w->seg_first = g->loc;
	w->seg_end = (uint32_t)(g->loc + g->mem_len);
	w->seg_is_extern = g->is_extern;
	w->va_delta = g->va - g->loc;
	w->bytes = space_bytes(w->sn->space, g->loc, &w->bytes_len);
	w->bytes_loc = g->loc;
}

/* Moves `pos` to the first element whose loc is not below; short distances are walked. */
#define WALK_TO(pos, cnt, get_loc, loc_)                                      \
	do {                                                                  \
		uint32_t steps_ = 0;                                          \
		while ((pos) < (cnt) && get_loc(pos) < (loc_) && steps_++ < 32) \
			(pos)++;                                              \
		if ((pos) < (cnt) && get_loc(pos) < (loc_)) {                 \
			uint32_t lo_ = (pos), hi_ = (cnt);                    \
			while (lo_ < hi_) {                                   \
				uint32_t mid_ = lo_ + (hi_ - lo_) / 2;        \
				if (get_loc(mid_) < (loc_))                   \
					lo_ = mid_ + 1;                       \
				else                                          \
					hi_ = mid_;                           \
			}                                                     \
			(pos) = lo_;                                          \
		}                                                             \
	} while (0)

#define FUNC_LOC(i) w->funcs[i].loc
#define NAME_LOC(i) w->names[i].loc
#define MARK_LOC(i) w->sn->marks[i].loc

static void walk_label(struct heads_walk *w)
{
	uint32_t loc = w->item.loc;
	w->label_len = 0;
	WALK_TO(w->name_pos, w->name_cnt, NAME_LOC, loc);
	bool is_named = w->name_pos < w->name_cnt && w->names[w->name_pos].loc == loc;
	/* What cannot have a name is most lines: an instruction inside a block. */
	bool is_code = w->item.kind == IMAGE_CODE || w->item.kind == IMAGE_ALIGN;
	is_named = is_named || (w->sn->edits && ses_edit_has_name(w->sn, loc + w->va_delta));
	if (is_named || w->func || (is_code ? image_block_starts(w->sn->im, loc) : !w->sn->is_preview || w->seg_is_extern))
		w->label_len = (uint32_t)ses_name_put(w->sn, loc, w->label, sizeof(w->label));
}

static void walk_next_ref(struct heads_walk *w)
{
	if (w->ref_pos >= w->ref_end || !image_xref_fwd(w->sn->im, w->ref_pos, &w->next_ref))
		w->next_ref.from = LOC_NONE;
}

/* The references that leave the item; the position is found once a page and then follows. */
static void walk_refs(struct heads_walk *w)
{
	uint32_t loc = w->item.loc, last = loc + w->item.len - 1;
	w->ref_cnt = 0;
	if (!w->has_refs) {
		uint32_t n = image_xrefs_from(w->sn->im, loc, UINT32_MAX - 1, &w->ref_pos);
		w->ref_end = w->ref_pos + n;
		w->has_refs = true;
		walk_next_ref(w);
	}
	while (w->next_ref.from <= last) {
		if (w->next_ref.from >= loc && w->ref_cnt < ARRAY_LEN(w->refs))
			w->refs[w->ref_cnt++] = w->next_ref;
		w->ref_pos++;
		walk_next_ref(w);
	}
}

/* Facts of the item just taken: its function, section, label, and how many lines stand before it. */
static void walk_look(struct heads_walk *w)
{
	uint32_t loc = w->item.loc;
	walk_enter_seg(w);
	WALK_TO(w->func_pos, w->func_cnt, FUNC_LOC, loc);
	w->func = w->func_pos < w->func_cnt && w->funcs[w->func_pos].loc == loc ? &w->funcs[w->func_pos] : NULL;
	WALK_TO(w->mark_pos, w->sn->mark_cnt, MARK_LOC, loc);
	w->mark = w->mark_pos < w->sn->mark_cnt && w->sn->marks[w->mark_pos].loc == loc ? &w->sn->marks[w->mark_pos] : NULL;
	walk_label(w);
	w->note_cnts[0] = w->note_cnts[1] = 0;
	if (w->sn->edits)
		heads_look_notes(w);
	w->pre_cnt = (w->mark != NULL) + (w->func != NULL) + w->note_cnts[0] + w->note_cnts[1] + (w->label_len != 0);
	w->line_cnt = w->pre_cnt + 1 + (w->typed ? heads_typed_member_cnt(w) : 0);
}

/* --- interface --- */

static bool walk_begin(struct heads_walk *w, struct ses_snap *sn, uint64_t va)
{
	memset(w, 0, offsetof(struct heads_walk, label));
	w->label_len = w->ref_cnt = 0;
	w->is_patched = false;
	w->scratch = (struct arena){0};
	w->sn = sn;
	w->funcs = image_funcs(sn->im, &w->func_cnt);
	w->names = image_names(sn->im, &w->name_cnt);
	w->source_line = w->source_file = UINT32_MAX;
	w->has_lines = image_has_lines(sn->im);
	uint32_t loc = space_loc(sn->space, va), cnt;
	const struct ses_mark *marks;
	struct err *e = ses_marks(sn, &marks, &cnt);
	err_free(e);
	if (e || loc == LOC_NONE)
		return false;
	if (sn->is_preview)
		return preview_make(w, loc);
	w->typeds = ses_typed(sn, &w->typed_cnt);
	if (!image_items_from(sn->im, loc, &w->items))
		return false;
	walk_take(w, loc);
	return true;
}

static void walk_rewind_tables(struct heads_walk *w)
{
	w->func_pos = w->name_pos = w->mark_pos = 0;
	w->has_refs = false;
}

/* The line that `sub` of struct ses_at means: 1 .. line_cnt. */
static uint32_t line_of_sub(struct heads_walk *w, uint64_t va, uint32_t sub)
{
	uint32_t loc = space_loc(w->sn->space, va), member;
	if (sub && sub <= w->line_cnt)
		return sub;
	if (!sub)
		return 1;
	member = loc != w->item.loc && w->typed ? heads_typed_member_at(w, loc) : 0;
	return w->pre_cnt + 1 + member;
}

bool heads_start(struct heads_walk *w, struct ses_snap *sn, uint64_t va, uint32_t sub)
{
	if (!walk_begin(w, sn, va))
		return false;
	walk_look(w);
	w->at = line_of_sub(w, va, sub);
	return true;
}

bool heads_start_back(struct heads_walk *w, struct ses_snap *sn, const struct ses_at *at, uint32_t *ret_cnt)
{
	uint32_t count = at->count;
	if (!heads_start(w, sn, at->va, at->sub))
		return false;
	/* Lines of this item before the anchor. */
	uint32_t have = at->sub ? w->at - 1 : 0;
	while (have < count && walk_backward(w)) {
		walk_rewind_tables(w);
		walk_look(w);
		have += w->line_cnt;
	}
	uint32_t skip = have > count ? have - count : 0;
	*ret_cnt = have - skip;
	walk_rewind_tables(w);
	walk_look(w);
	w->at = skip + 1;
	return true;
}

bool heads_peek(const struct heads_walk *w, uint64_t *ret_va, uint32_t *ret_sub)
{
	if (!w->item.len)
		return false;
	*ret_va = w->item.loc + w->va_delta;
	*ret_sub = w->line_cnt == 1 ? 0 : w->at;
	return true;
}

bool heads_next(struct heads_walk *w)
{
	if (!w->item.len)
		return false;
	if (w->at <= w->pre_cnt) {
		heads_pre_line(w, w->at);
	} else if (w->at == w->pre_cnt + 1) {
		walk_refs(w);
		heads_item_line(w);
	} else {
		heads_typed_member(w, w->at - w->pre_cnt - 2);
	}
	if (w->at < w->line_cnt) {
		w->at++;
	} else if (walk_forward(w)) {
		walk_look(w);
		w->at = 1;
	} else {
		w->item.len = 0;
	}
	return true;
}

void heads_fini(struct heads_walk *w)
{
	free(w->starts);
	heads_plan_free(w->plan);
	arena_fini(&w->scratch);
}
