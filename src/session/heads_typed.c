/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that has a type. A scalar or an array is one line. A struct is its own line and then one for each member: those of
 * nested structs by their path; an array of structs that would take more lines than a page or two has one line an element, and so has
 * an array of pointers, since each can be followed.
 */
#include "session/heads_format.h"
#include "session/heads_int.h"
#include "session/ses_types.h"

#include <stdio.h>
#include <string.h>

/* Lines an item's members take at most; the last one says what is left out. */
#define MEMBERS_MAX 1024
/* An array of structs is opened when it takes no more lines than this, else each element is one line. */
#define MEMBERS_OPEN_MAX 256
#define MEMBERS_DEPTH_MAX 16
#define MEMBER_NAMES_MAX ((size_t)1 << 20)
#define MEMBER_PAD_MAX 24
#define VALUE_BYTES_MAX 256
#define VALUE_STRING_MAX 120
#define VALUE_NEST_MAX 4

/* --- what lines there are --- */

static bool plan_push(struct heads_plan *pl, struct heads_member m, const char *path, size_t path_len)
{
	if (pl->members.cnt >= MEMBERS_MAX || pl->names.len + path_len > MEMBER_NAMES_MAX)
		return false;
	m.name_off = (uint32_t)pl->names.len;
	m.name_len = (uint32_t)path_len;
	buf_add(&pl->names, path, path_len);
	return !pl->names.failed && VEC_PUSH(&pl->members, m);
}

static bool is_struct(const struct types_type *rec)
{
	return (rec->kind == TYPES_STRUCT || rec->kind == TYPES_UNION) && rec->sub_cnt;
}

/* Lines a value takes when everything in it is opened, at most `max` + 1. */
static uint64_t open_lines(const struct types *t, struct types_ref r, uint64_t max, unsigned depth)
{
	const struct types_type *rec = types_get(t, types_real(t, r).id);
	uint32_t cnt;
	if (depth > MEMBERS_DEPTH_MAX)
		return 1;
	if (rec->kind == TYPES_ARRAY && is_struct(types_get(t, types_real(t, rec->target).id))) {
		uint64_t one = open_lines(t, rec->target, max, depth + 1), all;
		return __builtin_mul_overflow(one, rec->cnt, &all) ? max + 1 : MIN(all, max + 1);
	}
	if (!is_struct(rec))
		return 1;
	const struct types_member *m = types_members(t, types_real(t, r).id, &cnt);
	uint64_t n = 0;
	for (uint32_t i = 0; i < cnt && n <= max; i++)
		n += open_lines(t, m[i].type, max, depth + 1);
	return n;
}

struct planner {
	struct heads_plan *pl;
	const struct types *t;
	struct buf path;
	bool is_full;
};

static void plan_value(struct planner *x, struct types_ref r, uint64_t off, unsigned depth);

static void plan_leaf(struct planner *x, struct heads_member m)
{
	x->is_full = x->is_full || !plan_push(x->pl, m, x->path.data ? x->path.data : "", x->path.len);
}

static void plan_struct(struct planner *x, struct types_ref real, uint64_t off, unsigned depth)
{
	uint32_t cnt;
	size_t path_len = x->path.len;
	const struct types_member *m = types_members(x->t, real.id, &cnt);
	for (uint32_t i = 0; i < cnt && !x->is_full; i++) {
		if (!m[i].name && m[i].is_bitfield)
			continue;
		if (m[i].name) {
			buf_add_ch(&x->path, '.');
			buf_add_str(&x->path, m[i].name);
		}
		if (m[i].is_bitfield)
			plan_leaf(x, (struct heads_member){.off = off + m[i].off, .len = (m[i].bit_off + m[i].bit_len + 7) / 8, .type = m[i].type,
							   .bit_off = m[i].bit_off, .bit_len = m[i].bit_len});
		else
			plan_value(x, m[i].type, off + m[i].off, depth + 1);
		x->path.len = path_len;
	}
}

static void plan_array(struct planner *x, const struct types_type *rec, uint64_t off, unsigned depth, bool is_open)
{
	size_t path_len = x->path.len;
	uint64_t len = types_get(x->t, types_real(x->t, rec->target).id)->len;
	for (uint64_t i = 0; i < rec->cnt && !x->is_full; i++) {
		buf_printf(&x->path, "[%llu]", (unsigned long long)i);
		if (is_open)
			plan_value(x, rec->target, off + i * len, depth + 1);
		else
			plan_leaf(x, (struct heads_member){.off = off + i * len, .len = (uint32_t)len, .type = rec->target});
		x->path.len = path_len;
	}
}

static void plan_value(struct planner *x, struct types_ref r, uint64_t off, unsigned depth)
{
	struct types_ref real = types_real(x->t, r);
	const struct types_type *rec = types_get(x->t, real.id);
	const struct types_type *elem = rec->kind == TYPES_ARRAY ? types_get(x->t, types_real(x->t, rec->target).id) : NULL;
	if (depth <= MEMBERS_DEPTH_MAX && is_struct(rec))
		plan_struct(x, real, off, depth);
	else if (depth <= MEMBERS_DEPTH_MAX && elem && elem->kind == TYPES_POINTER && rec->cnt > 1 && (!depth || rec->cnt <= MEMBERS_OPEN_MAX))
		plan_array(x, rec, off, depth, false); /* each leads somewhere */
	else if (depth <= MEMBERS_DEPTH_MAX && elem && is_struct(elem) && elem->len)
		plan_array(x, rec, off, depth, open_lines(x->t, r, MEMBERS_OPEN_MAX, depth) <= MEMBERS_OPEN_MAX);
	else
		plan_leaf(x, (struct heads_member){.off = off, .len = (uint32_t)rec->len, .type = r});
}

/* The lines of the members of typed data; none for a scalar. Kept for the item at hand. */
static struct heads_plan *plan_for(struct heads_walk *w, const struct ses_typed *typed)
{
	struct heads_plan *pl = w->plan ? w->plan : calloc(1, sizeof(*pl));
	w->plan = pl;
	if (!pl || (pl->is_made && pl->loc == typed->loc))
		return pl;
	_cleanup_types_lock_ struct ses_typeset *ts = NULL;
	struct err *e = ses_types_lock(w->sn, &ts);
	err_free(e);
	pl->members.cnt = 0;
	pl->names.len = 0;
	pl->loc = typed->loc;
	pl->is_made = true;
	pl->pad = 0;
	if (e)
		return pl;
	struct types_ref whole = ses_typed_ref(ts, typed);
	struct planner x = {.pl = pl, .t = ts->t};
	plan_value(&x, whole, 0, 0);
	buf_fini(&x.path);
	/* A scalar is its own line. */
	if (pl->members.cnt == 1 && !pl->members.data[0].name_len)
		pl->members.cnt = 0;
	for (size_t i = 0; i < pl->members.cnt; i++)
		pl->pad = MAX(pl->pad, MIN(pl->members.data[i].name_len, MEMBER_PAD_MAX));
	if (x.is_full && pl->members.cnt) {
		struct heads_member *last = &pl->members.data[pl->members.cnt - 1];
		*last = (struct heads_member){.off = last->off, .len = typed->len - (uint32_t)last->off, .is_rest = true};
	}
	return pl;
}

uint32_t heads_typed_member_cnt(struct heads_walk *w)
{
	struct heads_plan *pl = w->typed ? plan_for(w, w->typed) : NULL;
	return pl ? (uint32_t)pl->members.cnt : 0;
}

uint32_t heads_typed_member_at(struct heads_walk *w, uint32_t loc)
{
	struct heads_plan *pl = w->typed ? plan_for(w, w->typed) : NULL;
	for (size_t i = 0; pl && i < pl->members.cnt; i++) {
		const struct heads_member *m = &pl->members.data[i];
		if (loc - w->typed->loc >= m->off && loc - w->typed->loc - m->off < m->len)
			return (uint32_t)i + 1;
	}
	return 0;
}

/* --- values --- */

struct value_put {
	struct heads_walk *w;
	struct put *p;
	const struct types *t;
	struct types_ref type;
	uint32_t loc;
	uint32_t bit_off, bit_len; /* bit_len 0: no bit-field */
	unsigned nest;
	bool is_cut;
};

static size_t read_bytes(struct ses_snap *sn, uint32_t loc, uint8_t *out, size_t len)
{
	size_t n = space_read(sn->space, loc, out, len);
	if (n && sn->edits)
		ses_edit_patch(sn, space_va(sn->space, loc), out, n);
	return n;
}

static uint64_t word_of(const uint8_t *b, size_t len)
{
	uint64_t v = 0;
	for (size_t i = 0; i < len && i < 8; i++)
		v |= (uint64_t)b[i] << 8 * i;
	return v;
}

static void put_raw(struct value_put *x, uint64_t len)
{
	uint8_t b[16];
	size_t n = read_bytes(x->w->sn, x->loc, b, MIN(len, sizeof(b)));
	for (size_t i = 0; i < n; i++) {
		put_s(x->p, i ? "," : "");
		put_hex(x->p, b[i]);
	}
	if (len > n)
		put_s(x->p, ",...");
}

/* The span the value makes. */
static uint8_t put_pointer(struct value_put *x, uint64_t v)
{
	char name[512];
	size_t n = v ? ses_name_for_operand(x->w->sn, v, name, sizeof(name)) : 0;
	if (!n) {
		if (v)
			put_hex(x->p, v);
		else
			put_s(x->p, "0");
		return v ? SES_SPAN_ADDR : SES_SPAN_IMM;
	}
	if (!x->nest)
		put_s(x->p, "offset ");
	put_n(x->p, name, n);
	return SES_SPAN_NAME;
}

static uint8_t put_integer(struct value_put *x, const struct types_type *rec, uint64_t v, uint32_t len)
{
	struct heads_num_ask ask = {.num = NUM_DEC, .len = len, .is_signed = types_is_signed(x->t, x->type)};
	if (x->bit_len && ask.is_signed && v >> (x->bit_len - 1))
		v |= ~(uint64_t)0 << x->bit_len;
	if (rec->kind == TYPES_INT && rec->base == TYPES_B_BOOL && v < 2) {
		put_s(x->p, v ? "true" : "false");
		return SES_SPAN_IMM;
	}
	bool is_char = rec->kind == TYPES_INT && rec->base >= TYPES_B_CHAR && rec->base <= TYPES_B_UCHAR;
	if (is_char && !x->bit_len && v >= 0x20 && v < 0x7f)
		ask.num = NUM_CHAR;
	else if (!ask.is_signed && v > 9)
		ask.num = NUM_HEX;
	return heads_num_put(x->w->sn, x->p, v, &ask);
}

static uint8_t put_constant(struct value_put *x, struct types_ref real, const struct types_type *rec, uint64_t v, uint32_t len)
{
	uint32_t cnt;
	const struct types_const *c = types_consts(x->t, real.id, &cnt);
	uint64_t mask = len < 8 ? ((uint64_t)1 << len * 8) - 1 : ~(uint64_t)0;
	mask = x->bit_len && x->bit_len < 64 ? ((uint64_t)1 << x->bit_len) - 1 : mask;
	for (uint32_t i = 0; i < cnt; i++) {
		if (((uint64_t)c[i].value & mask) == (v & mask)) {
			put_s(x->p, c[i].name);
			return SES_SPAN_NAME;
		}
	}
	return put_integer(x, rec, v, len);
}

static uint8_t put_float(struct value_put *x, const struct types_type *rec, uint64_t v, uint64_t len)
{
	char tmp[40];
	float f;
	double d;
	uint32_t low = (uint32_t)v;
	if (len == sizeof(f)) {
		memcpy(&f, &low, sizeof(f));
		snprintf(tmp, sizeof(tmp), "%.9g", (double)f);
	} else if (len == sizeof(d)) {
		memcpy(&d, &v, sizeof(d));
		snprintf(tmp, sizeof(tmp), "%.17g", d);
	} else {
		put_raw(x, rec->len);
		return SES_SPAN_IMM;
	}
	put_s(x->p, tmp);
	return SES_SPAN_IMM;
}

static uint8_t put_value(struct value_put *x);

static void put_list_item(struct value_put *x, struct types_ref type, uint32_t loc, const struct types_member *m)
{
	struct value_put one = {.w = x->w, .p = x->p, .t = x->t, .type = type, .loc = loc, .nest = x->nest + 1};
	if (m && m->is_bitfield) {
		one.bit_off = m->bit_off;
		one.bit_len = m->bit_len;
	}
	put_value(&one);
}

static bool list_is_full(struct value_put *x, bool is_first)
{
	put_s(x->p, is_first ? "" : ", ");
	if (x->p->len < VALUE_STRING_MAX)
		return false;
	put_s(x->p, "...");
	return true;
}

static uint8_t put_array(struct value_put *x, const struct types_type *rec)
{
	struct types_ref real = types_real(x->t, rec->target);
	const struct types_type *elem = types_get(x->t, real.id);
	uint8_t b[VALUE_BYTES_MAX];
	if (elem->kind == TYPES_INT && elem->base == TYPES_B_CHAR) {
		size_t n = read_bytes(x->w->sn, x->loc, b, MIN(rec->len, sizeof(b)));
		size_t len = n;
		while (len && !b[len - 1])
			len--;
		heads_put_literal(x->p, b, (uint32_t)len, IMAGE_ENC_UTF8, x->nest ? 40 : VALUE_STRING_MAX);
		if (rec->len > n && len == n)
			put_s(x->p, "...");
		return SES_SPAN_STRING;
	}
	put_s(x->p, "{");
	for (uint64_t i = 0; i < rec->cnt && elem->len && !list_is_full(x, !i); i++)
		put_list_item(x, rec->target, x->loc + (uint32_t)(i * elem->len), NULL);
	put_s(x->p, "}");
	return SES_SPAN_IMM;
}

static uint8_t put_struct(struct value_put *x, struct types_ref real)
{
	uint32_t cnt;
	const struct types_member *m = types_members(x->t, real.id, &cnt);
	bool is_first = true;
	put_s(x->p, "{");
	for (uint32_t i = 0; i < cnt; i++) {
		if (!m[i].name && m[i].is_bitfield)
			continue;
		if (list_is_full(x, is_first))
			break;
		is_first = false;
		put_list_item(x, m[i].type, x->loc + (uint32_t)m[i].off, &m[i]);
	}
	put_s(x->p, "}");
	return SES_SPAN_IMM;
}

/* Writes the value of a type that has been checked to lie in the segment; gives the span's kind. */
static uint8_t put_value(struct value_put *x)
{
	struct types_ref real = types_real(x->t, x->type);
	const struct types_type *rec = types_get(x->t, real.id);
	uint8_t b[16] = {0};
	uint32_t len = (uint32_t)MIN(rec->len, 8);
	struct heads_num_ask ask;
	if ((rec->kind == TYPES_STRUCT || rec->kind == TYPES_UNION || rec->kind == TYPES_ARRAY) && x->nest < VALUE_NEST_MAX)
		return rec->kind == TYPES_ARRAY ? put_array(x, rec) : put_struct(x, real);
	read_bytes(x->w->sn, x->loc, b, x->bit_len ? (x->bit_off + x->bit_len + 7) / 8 : MIN(rec->len, sizeof(b)));
	uint64_t v = word_of(b, sizeof(b));
	if (x->bit_len) {
		v >>= x->bit_off;
		v |= x->bit_off ? (uint64_t)b[8] << (64 - x->bit_off) : 0;
		v &= x->bit_len < 64 ? ((uint64_t)1 << x->bit_len) - 1 : ~(uint64_t)0;
	} else {
		v &= len < 8 ? ((uint64_t)1 << len * 8) - 1 : ~(uint64_t)0;
	}
	heads_num_at(x->w->sn, space_va(x->w->sn->space, x->loc), 0, &ask);
	bool is_plain = rec->kind == TYPES_INT || rec->kind == TYPES_ENUM || rec->kind == TYPES_POINTER || rec->kind == TYPES_FLOAT;
	if (ask.num != NUM_DEFAULT && is_plain && rec->len <= 8 && !x->bit_len) {
		ask.len = len;
		ask.is_signed = types_is_signed(x->t, x->type);
		return heads_num_put(x->w->sn, x->p, v, &ask);
	}
	if (rec->kind == TYPES_POINTER)
		return put_pointer(x, v);
	if (rec->kind == TYPES_ENUM)
		return put_constant(x, real, rec, v, len);
	if (rec->kind == TYPES_FLOAT)
		return put_float(x, rec, v, rec->len);
	if (rec->kind == TYPES_INT && rec->len <= 8)
		return put_integer(x, rec, v, len);
	put_raw(x, rec->len);
	return SES_SPAN_IMM;
}

/* --- lines --- */

static void typed_span(struct heads_walk *w, uint32_t from, uint32_t to, uint8_t kind)
{
	if (w->line.span_cnt < HEADS_SPAN_MAX && to > from)
		w->spans[w->line.span_cnt++] = (struct ses_span){(uint16_t)from, (uint16_t)(to - from), kind, 0};
}

static bool is_scalar(const struct types_type *rec)
{
	return rec->kind == TYPES_INT || rec->kind == TYPES_FLOAT || rec->kind == TYPES_ENUM || rec->kind == TYPES_POINTER;
}

static void typed_comment(struct heads_walk *w, const struct types *t, const struct heads_member *m)
{
	struct put c = {w->comment, 0, sizeof(w->comment)};
	_cleanup_buf_ struct buf b = {0};
	const struct types_type *rec = types_get(t, types_real(t, m->type).id);
	types_print(t, m->type, NULL, &b);
	put_cut(&c, ses_types_line(&b));
	if (m->bit_len) {
		put_s(&c, ":");
		put_dec(&c, m->bit_len);
	}
	if (!is_scalar(rec) && m->len > 1) {
		put_s(&c, ", ");
		put_dec(&c, m->len);
		put_s(&c, " bytes");
	}
	const struct image_string *s = w->line.has_target ? image_string_at(w->sn->im, space_loc(w->sn->space, w->line.target)) : NULL;
	if (s && space_va(w->sn->space, s->loc) == w->line.target) {
		size_t left;
		const uint8_t *p = space_bytes(w->sn->space, s->loc, &left);
		put_s(&c, "; ");
		heads_put_literal(&c, p, p ? (uint32_t)MIN(left, s->len) : 0, s->encoding, 80);
	}
	w->line.comment = (struct ses_text){w->comment, c.len};
}

/* Text, comment and target of a value at `loc`; its name stands before it. */
static void typed_value_line(struct heads_walk *w, const struct types *t, const struct heads_member *m, struct put *p)
{
	const struct types_type *rec = types_get(t, types_real(t, m->type).id);
	struct value_put x = {.w = w, .p = p, .t = t, .type = m->type, .loc = w->typed->loc + (uint32_t)m->off,
			      .bit_off = m->bit_off, .bit_len = m->bit_len};
	uint32_t from = p->len;
	uint64_t v;
	if (is_scalar(rec) && !m->bit_len && (rec->len == 1 || rec->len == 2 || rec->len == 4 || rec->len == 8)) {
		put_s(p, rec->len == 8 ? "dq " : rec->len == 4 ? "dd " : rec->len == 2 ? "dw " : "db ");
		typed_span(w, from, p->len - 1, SES_SPAN_MNEMONIC);
	}
	from = p->len;
	size_t left;
	bool is_there = space_bytes(w->sn->space, x.loc, &left);
	if (!is_there)
		put_s(p, "?");
	uint8_t kind = is_there ? put_value(&x) : SES_SPAN_IMM;
	typed_span(w, kind == SES_SPAN_NAME && p->len - from > 7 && !memcmp(p->s + from, "offset ", 7) ? from + 7 : from, p->len, kind);
	if (rec->kind == TYPES_POINTER && (rec->len == 4 || rec->len == 8) && space_word(w->sn->space, x.loc, (unsigned)rec->len, &v) && v &&
	    ses_is_mapped(w->sn, v)) {
		w->line.has_target = true;
		w->line.target = v;
	}
}

/* The struct's own line says what it is; its members follow. */
static void typed_head_line(struct heads_walk *w, const struct types *t, struct types_ref type, struct put *p)
{
	_cleanup_buf_ struct buf b = {0};
	types_print(t, type, NULL, &b);
	put_cut(p, ses_types_line(&b));
	typed_span(w, 0, p->len, SES_SPAN_MNEMONIC);
	struct put c = {w->comment, 0, sizeof(w->comment)};
	put_dec(&c, w->typed->len);
	put_s(&c, w->typed->len == 1 ? " byte" : " bytes");
	w->line.comment = (struct ses_text){w->comment, c.len};
}

void heads_typed_item(struct heads_walk *w)
{
	struct put p = {w->text, 0, sizeof(w->text)};
	_cleanup_types_lock_ struct ses_typeset *ts = NULL;
	struct err *e = ses_types_lock(w->sn, &ts);
	err_free(e);
	if (e)
		return;
	struct heads_member m = {.len = w->typed->len, .type = ses_typed_ref(ts, w->typed)};
	w->line.kind = SES_HEAD_DATA;
	if (heads_typed_member_cnt(w)) {
		typed_head_line(w, ts->t, m.type, &p);
	} else {
		typed_value_line(w, ts->t, &m, &p);
		typed_comment(w, ts->t, &m);
	}
	w->line.text = (struct ses_text){w->text, p.len};
}

void heads_typed_member(struct heads_walk *w, uint32_t i)
{
	const struct heads_plan *pl = w->plan;
	const struct heads_member *m = &pl->members.data[i];
	uint32_t loc = w->typed->loc + (uint32_t)m->off, off = loc - w->bytes_loc;
	size_t have = w->bytes && off < w->bytes_len ? MIN(w->bytes_len - off, m->len) : 0;
	w->line = (struct ses_head){
		.va = loc + w->va_delta, .row = w->item.row, .sub = w->pre_cnt + 2 + i, .size = m->len, .kind = SES_HEAD_MEMBER,
		.bytes = have ? w->bytes + off : NULL, .bytes_len = (uint32_t)MIN(have, 16), .spans = w->spans,
		.label = {"", 0}, .comment = {"", 0}, .text = {"", 0},
	};
	w->is_patched = false;
	if (w->sn->edits) {
		heads_patch_bytes(w);
		size_t len = ses_edit_name_put(w->sn, w->line.va, w->member_label, sizeof(w->member_label));
		w->line.label = ses_text_of(w->member_label, len);
	}
	_cleanup_types_lock_ struct ses_typeset *ts = NULL;
	struct err *e = ses_types_lock(w->sn, &ts);
	struct put p = {w->text, 0, sizeof(w->text)};
	err_free(e);
	if (e)
		return;
	if (m->is_rest) {
		put_s(&p, "... ");
		put_dec(&p, m->len);
		put_s(&p, " more bytes");
	} else {
		put_cut(&p, ses_text_of(pl->names.data + m->name_off, MIN(m->name_len, HEADS_TEXT_MAX / 2)));
		typed_span(w, 0, p.len, SES_SPAN_NAME);
		while (p.len < pl->pad)
			put_s(&p, " ");
		put_s(&p, "  ");
		typed_value_line(w, ts->t, m, &p);
		typed_comment(w, ts->t, m);
	}
	w->line.text = (struct ses_text){w->text, p.len};
	if (w->sn->edits)
		heads_add_comments(w);
}

bool heads_typed_number(struct ses_snap *sn, uint32_t loc, uint32_t *ret_len)
{
	const struct ses_typed *typed = ses_typed_at(sn, loc);
	_cleanup_types_lock_ struct ses_typeset *ts = NULL;
	_cleanup_buf_ struct buf path = {0};
	struct types_at at;
	if (!typed)
		return false;
	struct err *e = ses_types_lock(sn, &ts);
	err_free(e);
	if (e || !types_path_of(ts->t, ses_typed_ref(ts, typed), loc - typed->loc, &path, &at) || at.off != loc - typed->loc || at.is_bitfield)
		return false;
	const struct types_type *rec = types_get(ts->t, types_real(ts->t, at.type).id);
	*ret_len = (uint32_t)MIN(rec->len, UINT32_MAX);
	return is_scalar(rec) && rec->len <= 8;
}

void heads_plan_free(struct heads_plan *pl)
{
	if (!pl)
		return;
	VEC_FREE(&pl->members);
	buf_fini(&pl->names);
	free(pl);
}
