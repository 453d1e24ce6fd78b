/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo/dbg.h"

#include "debuginfo/eh_pointer.h"

/*
 * Language-specific data of C++-like functions ("gcc_except_table"): after a head a table of call sites,
 * each a range of the function and the landing pad control goes to when a call in it throws. Sites are
 * sorted and do not overlap; the first that breaks this ends the reading, for what follows is something else.
 */

/* Call sites of all tables together, for each byte of the file: hostile tables may overlap. */
#define LSDA_SITES_PER_BYTE 2

/* Bytes that hold any head, whose numbers are at most ten bytes each. */
#define LSDA_HEAD_MAX 64

struct lsda_head {
	uint64_t pad_base; /* landing pads count from here */
	unsigned site_enc;
	size_t sites_pos;  /* bytes from the table's start */
	size_t sites_len;
};

static bool lsda_head_read(const struct fmt_bin *b, const struct dbg_fde *fde, struct dbg_view *v,
			   struct lsda_head *ret)
{
	struct dbg_eh_bases bases = {.func_va = fde->va, .data_va = b->got.va};
	struct cur *c = &v->cur;
	unsigned base_enc = cur_u8(c);
	ret->pad_base = base_enc == DBG_EH_OMIT ? fde->va : dbg_eh_pointer(b, v, base_enc, &bases);
	if (cur_u8(c) != DBG_EH_OMIT)
		cur_uleb(c); /* where the type table ends */
	ret->site_enc = cur_u8(c);
	uint64_t len = cur_uleb(c);
	if (c->failed || len > b->bytes_len)
		return false;
	ret->sites_pos = c->pos;
	ret->sites_len = (size_t)len;
	return true;
}

static bool lsda_is_code(const struct fmt_bin *b, uint64_t va)
{
	const struct fmt_segment *s = fmt_segment_at(b, va);
	return s && s->perm & FMT_X;
}

/* The sites are opened apart from the head, so that a view that must be copied is no longer than they are. */
struct err *dbg_read_lsda(const struct fmt_bin *b, const struct dbg_fde *fde, struct dbg_addrs *ret)
{
	if (!fde->lsda)
		return NULL;
	struct lsda_head head = {0};
	_cleanup_view_ struct dbg_view v = {0};
	struct err *e = dbg_view_open(b, fde->lsda, LSDA_HEAD_MAX, &v);
	if (e || !lsda_head_read(b, fde, &v, &head))
		return e;
	dbg_view_close(&v);
	e = dbg_view_open(b, fde->lsda + head.sites_pos, head.sites_len, &v);
	if (e)
		return e;
	struct cur *c = &v.cur;
	uint64_t seen_end = 0;
	while (cur_left(c) && ret->read_cnt / LSDA_SITES_PER_BYTE < b->bytes_len) {
		uint64_t start = dbg_eh_number(b, c, head.site_enc);
		uint64_t len = dbg_eh_number(b, c, head.site_enc);
		uint64_t pad = dbg_eh_number(b, c, head.site_enc);
		cur_uleb(c); /* action */
		ret->read_cnt++;
		if (c->failed || start < seen_end || start > fde->len || len > fde->len - start)
			break;
		seen_end = start + len;
		uint64_t pad_va = dbg_trim_va(b, head.pad_base + pad);
		if (pad && lsda_is_code(b, pad_va) && !VEC_PUSH(&ret->list, pad_va))
			return &err_nomem;
	}
	return NULL;
}
