/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directives as people write them, made into what the journal keeps: lengths are worked out from the bytes and from the
 * listing they were looking at, distances from addresses. What was stated before about the same bytes gives way in the
 * same revision, so that one undo brings everything back.
 */
#include "session/ses_stated_int.h"
#include "session/ses_types.h"

#include "base/cur.h"

#include <inttypes.h>
#include <string.h>

#define RUN_MAX 10000u     /* instructions of one run */
#define STRING_MAX 65536u  /* bytes of one string */
#define NEAR_MAX 64u       /* statements looked at before an address: those that stand do not overlap */

struct define {
	struct ses_snap *sn;
	struct ses_edit *e;
	struct arena *a;
	struct ses_directive *ret;
	uint32_t loc;
	uint64_t room;           /* bytes from the address to the end of its segment */
	VEC(struct edits_change) more;
	bool no_memory;
};

static void refuse(struct define *d, const char *why)
{
	d->ret->why = why;
}

static const char *put(struct define *d, const char *text)
{
	if (!text)
		d->no_memory = true;
	d->ret->value = text;
	return text;
}

static void add_more(struct define *d, enum edits_kind kind, uint64_t va, const char *value)
{
	if (!VEC_PUSH(&d->more, (struct edits_change){.kind = kind, .va = va, .sub = "", .value = value, .value_len = value ? strlen(value) : 0}))
		d->no_memory = true;
}

/* --- code --- */

/* Whether somebody said what is at `va`, or the listing shows code or a string that begins there. */
static bool is_defined(const struct define *d, uint64_t va)
{
	uint32_t start, len, loc = space_loc(d->sn->space, va);
	enum image_item_kind kind;
	if (edits_find(d->sn->edits, EDITS_ITEM, va, ""))
		return true;
	return loc != LOC_NONE && image_item_at(d->sn->im, loc, &start, &len, &kind) && start == loc &&
	       (kind == IMAGE_CODE || kind == IMAGE_STRING);
}

/* Instructions from the address on, to where control ends; sets e->made. */
static uint64_t run_of(const struct define *d)
{
	struct ses_made *made = &d->e->made;
	size_t avail;
	const uint8_t *p = space_bytes(d->sn->space, d->loc, &avail);
	uint64_t va = d->e->addr, at = 0;
	made->stopped = "segment";
	while (p && at < avail) {
		struct arch_insn in;
		if (at && is_defined(d, va + at)) {
			made->stopped = "defined";
			break;
		}
		d->sn->arch->decode(d->sn->arch, p + at, avail - at, va + at, &in);
		if (in.flow == ARCH_FLOW_INVALID || in.len > avail - at) {
			made->stopped = "undecodable";
			break;
		}
		at += in.len;
		made->count++;
		if (in.flow == ARCH_FLOW_JUMP || in.flow == ARCH_FLOW_IJUMP || in.flow == ARCH_FLOW_RET || in.flow == ARCH_FLOW_STOP) {
			made->stopped = "flow";
			break;
		}
		if (made->count == RUN_MAX) {
			made->stopped = "limit";
			break;
		}
	}
	made->end = va + at;
	return at;
}

static void define_code(struct define *d, bool is_func)
{
	uint32_t start, len;
	enum image_item_kind kind;
	bool is_code = image_item_at(d->sn->im, d->loc, &start, &len, &kind) && kind == IMAGE_CODE && start == d->loc;
	bool is_stated = edits_find(d->sn->edits, EDITS_ITEM, d->e->addr, "") != NULL;
	bool is_there = is_func ? image_func_starting(d->sn->im, d->loc) != UINT32_MAX : is_code;
	if (is_there && !is_stated) {
		d->ret->is_there = true;
		d->e->made.how = "existed";
		refuse(d, is_func ? "a function begins here already" : "it is code already");
		return;
	}
	if (d->sn->arch->id == ARCH_ID_NONE) {
		refuse(d, "the processor is not known; scry load FILE --processor NAME says it");
		return;
	}
	if (!run_of(d)) {
		refuse(d, arena_printf(d->a, "these bytes are no instruction of %s", d->sn->arch->name));
		return;
	}
	if (is_func)
		d->e->made.how = "auto";
	put(d, arena_printf(d->a, "%s:%" PRIu64, is_func ? "func" : "code", d->e->made.end - d->e->addr));
}

/* --- data --- */

static const char *c_name_of(const char *text, size_t len)
{
	static const struct { const char *name, *c; } words[] = {{"byte", "unsigned char"}, {"word", "unsigned short"},
								 {"dword", "unsigned int"}, {"qword", "unsigned long long"}};
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (strlen(words[i].name) == len && !memcmp(words[i].name, text, len))
			return words[i].c;
	}
	return NULL;
}

/* Length and unit of the type; false with a reason when it cannot be data here. */
static bool layout_of(struct define *d, const char *type, uint64_t *ret_len, uint64_t *ret_unit, bool *ret_pointer, const char **ret_text)
{
	_cleanup_types_lock_ struct ses_typeset *ts = NULL;
	struct types_ref r = {0};
	uint32_t align;
	struct err *e = ses_types_lock(d->sn, &ts);
	if (!e)
		e = ses_types_parse(ts, type, strlen(type), &r);
	if (e) {
		refuse(d, arena_printf(d->a, "%s", e->text));
		err_free(e);
		return false;
	}
	if (!types_layout(ts->t, r, ret_len, &align) || !*ret_len) {
		refuse(d, "a type without a size is no data");
		return false;
	}
	struct types_ref elem = types_real(ts->t, r);
	bool is_array = types_get(ts->t, elem.id)->kind == TYPES_ARRAY;
	while (types_get(ts->t, elem.id)->kind == TYPES_ARRAY)
		elem = types_real(ts->t, types_get(ts->t, elem.id)->target);
	uint64_t one = *ret_len;
	if (is_array && !types_layout(ts->t, elem, &one, &align))
		one = *ret_len;
	*ret_pointer = types_get(ts->t, elem.id)->kind == TYPES_POINTER;
	*ret_unit = one == 1 ? MIN(*ret_len, (uint64_t)16) : one ? one : *ret_len;
	_cleanup_buf_ struct buf b = {0};
	types_print(ts->t, r, NULL, &b);
	*ret_text = b.failed ? NULL : arena_strndup(d->a, b.data ? b.data : "", b.len);
	d->no_memory = d->no_memory || !*ret_text;
	return *ret_text != NULL;
}

static void define_data(struct define *d, const char *type)
{
	uint64_t len = 0, unit = 0;
	bool is_pointer = false;
	size_t name_len = strcspn(type, "[ ");
	const char *c_name = c_name_of(type, name_len), *text = NULL;
	const char *c_type = c_name ? arena_printf(d->a, "%s%s", c_name, type + name_len) : type;
	if (!c_type) {
		d->no_memory = true;
		return;
	}
	if (!layout_of(d, c_type, &len, &unit, &is_pointer, &text))
		return;
	if (len > d->room) {
		refuse(d, arena_printf(d->a, "its %" PRIu64 " bytes reach over the end of the segment", len));
		return;
	}
	d->e->made.end = d->e->addr + len;
	/* A bare number says how wide it is and nothing more. */
	bool is_bare = c_name && !type[name_len];
	put(d, arena_printf(d->a, "data:%" PRIu64 "/%" PRIu64 "%s:%s", len, unit, is_pointer ? "p" : "", is_bare ? type : text));
	if (!is_bare)
		add_more(d, EDITS_TYPE, d->e->addr, text);
}

/* "array:N:TYPE" */
static void define_array(struct define *d, const char *text)
{
	char *end;
	unsigned long long n = strtoull(text, &end, 0);
	if (end == text || *end != ':' || !n || n > UINT32_MAX) {
		refuse(d, "an array is array:COUNT:TYPE");
		return;
	}
	size_t base = strcspn(end + 1, "[");
	char *type = arena_printf(d->a, "%.*s[%llu]%s", (int)base, end + 1, n, end + 1 + base);
	if (type)
		define_data(d, type);
	else
		d->no_memory = true;
}

/* --- strings --- */

static uint64_t string_len(const uint8_t *p, uint64_t room, unsigned unit, bool *ret_closed)
{
	uint64_t at = 0;
	for (*ret_closed = false; at + unit <= room; at += unit) {
		bool is_zero = true;
		for (unsigned i = 0; i < unit; i++)
			is_zero = is_zero && !p[at + i];
		if (is_zero) {
			*ret_closed = true;
			return at + unit;
		}
	}
	return at;
}

/* "c", "c16", "c32", "pascal", "" as c; then ":LEN" */
static void define_string(struct define *d, const char *kind)
{
	static const struct { const char *name; unsigned unit; } kinds[] = {{"c", 1}, {"c16", 2}, {"c32", 4}, {"pascal", 1}};
	size_t avail, n = strcspn(kind, ":"), i = 0;
	const uint8_t *p = space_bytes(d->sn->space, d->loc, &avail);
	uint64_t room = MIN((uint64_t)avail, STRING_MAX), len;
	while (i < ARRAY_LEN(kinds) && n && (strlen(kinds[i].name) != n || memcmp(kinds[i].name, kind, n)))
		i++;
	if (i == ARRAY_LEN(kinds) || !p) {
		refuse(d, p ? "a string is one of c, c16, c32, pascal" : "no bytes of the file are here");
		return;
	}
	unsigned unit = kinds[i].unit;
	char *end = NULL;
	bool is_closed = false, is_pascal = !strcmp(kinds[i].name, "pascal"), is_told = kind[n] == ':';
	if (is_told)
		len = strtoull(kind + n + 1, &end, 0);
	else
		len = is_pascal ? (uint64_t)p[0] + 1 : string_len(p, room, unit, &is_closed);
	if (is_told && (*end || !len || len % unit || len > room)) {
		refuse(d, arena_printf(d->a, "its length in bytes is at most %" PRIu64 " and a multiple of %u", room, unit));
		return;
	}
	if (is_told && !is_pascal && len > unit) {
		bool last = false;
		(void)string_len(p + len - unit, unit, unit, &last);
		is_closed = last;
	}
	if (len > room || (!is_told && !is_pascal && !is_closed)) {
		refuse(d, "no zero ends it; a length says how long it is");
		return;
	}
	if (len <= (is_closed || is_pascal ? unit : 0)) {
		refuse(d, "it is empty");
		return;
	}
	d->e->made.end = d->e->addr + len;
	const char *name = i == 1 && d->sn->space->is_be ? "c16be" : kinds[i].name;
	bool is_utf8 = false;
	for (uint64_t k = 0; !i && k < len; k++)
		is_utf8 = is_utf8 || p[k] >= 0x80;
	put(d, is_closed ? arena_printf(d->a, "string:%s:%" PRIu64 "/%u", is_utf8 ? "utf8" : name, len, unit) :
			   arena_printf(d->a, "string:%s:%" PRIu64, is_utf8 ? "utf8" : name, len));
}

static void define_undef(struct define *d, const char *text)
{
	uint32_t start, item_len;
	enum image_item_kind kind;
	uint64_t len = 1;
	char *end = NULL;
	if (*text)
		len = strtoull(text, &end, 0);
	else if (image_item_at(d->sn->im, d->loc, &start, &item_len, &kind))
		len = start + item_len - d->loc;
	if ((end && *end) || !len || len > d->room) {
		refuse(d, arena_printf(d->a, "its length is at least 1 and at most %" PRIu64, d->room));
		return;
	}
	d->e->made.end = d->e->addr + len;
	put(d, arena_printf(d->a, "undef:%" PRIu64, len));
}

/* --- what was stated before about the same bytes --- */

static void give_way(struct define *d, const struct edits_fact *f, const struct analysis_item *now)
{
	struct analysis_item was;
	uint64_t va = d->e->addr, end = va + now->len;
	if (!ses_stated_item(f->value, f->va, &was))
		return;
	uint64_t was_end = f->va + was.len;
	bool is_code = now->kind == ANALYSIS_CODE || now->kind == ANALYSIS_FUNC;
	bool was_code = was.kind == ANALYSIS_CODE || was.kind == ANALYSIS_FUNC;
	bool is_inside = f->va > va && f->va < end, reaches = f->va < va && was_end > va;
	if ((!is_inside && !reaches && f->va != va) || (is_code && was_code))
		return;
	const char *short_form = was.kind == ANALYSIS_UNDEF ? "undef" : was.kind == ANALYSIS_CODE ? "code" : "func";
	bool can_shorten = reaches && (was_code || was.kind == ANALYSIS_UNDEF);
	const char *left = can_shorten ? arena_printf(d->a, "%s:%" PRIu64, short_form, va - f->va) : NULL;
	d->no_memory = d->no_memory || (can_shorten && !left);
	if (f->va != va)
		add_more(d, EDITS_ITEM, f->va, left);
	if (was.kind != ANALYSIS_UNDEF || was_end <= end || edits_find(d->sn->edits, EDITS_ITEM, end, ""))
		return;
	const char *right = arena_printf(d->a, "undef:%" PRIu64, was_end - end);
	d->no_memory = d->no_memory || !right;
	add_more(d, EDITS_ITEM, end, right);
}

static void overlaps(struct define *d)
{
	struct analysis_item now;
	size_t cnt;
	if (!ses_stated_item(d->ret->value, d->e->addr, &now))
		return;
	uint64_t last = d->e->addr + MAX(now.len, (uint64_t)1) - 1;
	const struct edits_fact *f = edits_range(d->sn->edits, EDITS_ITEM, 0, last, &cnt);
	size_t first = cnt;
	while (first && f[first - 1].va >= d->e->addr)
		first--;
	for (size_t i = first - MIN(first, NEAR_MAX); i < cnt; i++)
		give_way(d, &f[i], &now);
	/* Types of data that is none any more. */
	const struct edits_fact *t = edits_range(d->sn->edits, EDITS_TYPE, d->e->addr, last, &cnt);
	size_t own = d->more.cnt && d->more.data[0].kind == EDITS_TYPE;
	for (size_t i = 0; i < cnt; i++) {
		if (!own || t[i].va != d->e->addr)
			add_more(d, EDITS_TYPE, t[i].va, NULL);
	}
}

/* --- functions --- */

static const char *distance(struct define *d, uint64_t to)
{
	uint64_t va = d->e->addr;
	return arena_printf(d->a, "%c%" PRIu64, to >= va ? '+' : '-', to >= va ? to - va : va - to);
}

/* "END" or "FROM-TO,FROM-TO": addresses in hex. */
static void make_bounds(struct define *d, const char *text)
{
	struct buf b = {0};
	bool has_start = false;
	for (const char *p = text;; p++) {
		char *end;
		uint64_t from = d->e->addr, to = strtoull(p, &end, 16);
		if (end > p && *end == '-') {
			from = to;
			p = end + 1;
			to = strtoull(p, &end, 16);
		}
		uint32_t loc = space_loc(d->sn->space, from), last = to > from ? space_loc(d->sn->space, to - 1) : LOC_NONE;
		if (end == p || (*end && *end != ',')) {
			refuse(d, "bounds are END or FROM-TO,FROM-TO");
			break;
		}
		if (loc == LOC_NONE || last == LOC_NONE || space_seg_of_loc(d->sn->space, loc) != space_seg_of_loc(d->sn->space, last)) {
			refuse(d, arena_printf(d->a, "0x%" PRIx64 " to 0x%" PRIx64 " is no stretch of a segment", from, to));
			break;
		}
		has_start = has_start || from == d->e->addr;
		const char *off = distance(d, from);
		d->no_memory = d->no_memory || !off;
		buf_printf(&b, "%s%s/%" PRIu64, b.len ? "," : "", off ? off : "", to - from);
		d->e->made.end = to;
		if (!*end)
			break;
		p = end;
	}
	if (!d->ret->why && !has_start)
		refuse(d, "one of the pieces begins where the function does");
	if (!d->ret->why)
		put(d, b.failed ? NULL : arena_strndup(d->a, b.data, b.len));
	d->e->made.how = "explicit-end";
	buf_fini(&b);
}

/* "noreturn,library,thunk=0x401136" */
static void make_flags(struct define *d, const char *text)
{
	struct buf b = {0};
	struct analysis_func_flags flags;
	const char *thunk = strstr(text, "thunk=");
	const char *at = thunk ? thunk + 6 : NULL;
	char *end = NULL;
	uint64_t to = at ? strtoull(at, &end, 16) : 0;
	if (image_func_starting(d->sn->im, d->loc) == UINT32_MAX && !edits_find(d->sn->edits, EDITS_ITEM, d->e->addr, "")) {
		refuse(d, "no function begins here");
		return;
	}
	if (at && (end == at || !ses_is_mapped(d->sn, to))) {
		refuse(d, "what the thunk jumps to is not mapped");
		return;
	}
	buf_add(&b, text, at ? (size_t)(at - text) : strlen(text));
	if (at) {
		const char *off = distance(d, to);
		buf_add_str(&b, off ? off : "");
		buf_add_str(&b, end);
	}
	const char *value = b.failed ? NULL : arena_strndup(d->a, b.data ? b.data : "", b.len);
	buf_fini(&b);
	if (value && !ses_stated_flags(value, d->e->addr, &flags))
		refuse(d, "flags are of noreturn, returns, library, thunk, thunk=ADDR; noreturn and returns exclude each other");
	else
		put(d, value);
}

/* "table=0x..,count=N,size=N,base=0x..,shift=N,signed,low=N": addresses in hex. */
static void make_switch(struct define *d, const char *text)
{
	struct buf b = {0};
	struct analysis_switch sw;
	struct arch_insn in = {0};
	size_t avail;
	const uint8_t *p = space_bytes(d->sn->space, d->loc, &avail);
	for (const char *s = text; *s; s += *s == ',') {
		size_t len = strcspn(s, ","), key = strcspn(s, "=");
		bool is_addr = (key == 5 && !memcmp(s, "table", 5)) || (key == 4 && !memcmp(s, "base", 4));
		const char *off = is_addr ? distance(d, strtoull(s + key + 1, NULL, 16)) : "";
		bool is_low = key == 3 && !memcmp(s, "low", 3);
		buf_printf(&b, "%s%.*s", b.len ? "," : "", (int)(is_addr ? key + 1 : is_low ? key + 1 : len), s);
		if (is_addr)
			buf_add_str(&b, off ? off : "");
		if (is_low)
			buf_printf(&b, "%s%.*s", s[4] == '-' ? "" : "+", (int)(len - 4), s + 4);
		s += len;
	}
	const char *value = b.failed ? NULL : arena_strndup(d->a, b.data ? b.data : "", b.len);
	buf_fini(&b);
	if (p)
		d->sn->arch->decode(d->sn->arch, p, avail, d->e->addr, &in);
	if (in.flow != ARCH_FLOW_IJUMP)
		refuse(d, "no jump through a register or memory is here");
	else if (value && !ses_stated_switch(value, d->e->addr, &sw))
		refuse(d, "a table has an address, 1 to 65,536 entries of 1, 2, 4 or 8 bytes and a shift of at most 3");
	else if (value && !ses_is_mapped(d->sn, sw.table_va))
		refuse(d, "the table is not mapped");
	else
		put(d, value);
}

/* --- */

/* The value as the journal already has it, from an export: as it is, within the segment. */
static bool is_made(struct define *d, enum edits_kind kind)
{
	const char *v = d->e->value;
	struct analysis_item it;
	struct analysis_piece *pieces;
	struct analysis_func_flags flags;
	struct analysis_switch sw;
	bool is = false;
	switch (kind) {
	case EDITS_ITEM:
		is = strchr(v, strncmp(v, "string:", 7) ? ':' : '/') && ses_stated_item(v, d->e->addr, &it) && it.len <= d->room;
		d->e->made.end = is ? d->e->addr + it.len : 0;
		break;
	case EDITS_BOUNDS:
		pieces = ARENA_ARRAY(d->a, struct analysis_piece, SES_PIECES_MAX);
		is = pieces && ses_stated_pieces(v, d->e->addr, pieces);
		break;
	case EDITS_FLAGS:
		is = strstr(v, "thunk=") && ses_stated_flags(v, d->e->addr, &flags);
		break;
	case EDITS_TABLE:
		is = ses_stated_switch(v, d->e->addr, &sw);
		break;
	default:
		break;
	}
	if (is)
		put(d, arena_strndup(d->a, v, d->e->value_len));
	return is;
}

static void define_item(struct define *d, const char *what)
{
	if (!strcmp(what, "code") || !strcmp(what, "func"))
		define_code(d, *what == 'f');
	else if (!strncmp(what, "data:", 5))
		define_data(d, what + 5);
	else if (!strncmp(what, "array:", 6))
		define_array(d, what + 6);
	else if (!strncmp(what, "string", 6) && (!what[6] || what[6] == ':'))
		define_string(d, what + 6 + (what[6] == ':'));
	else if (!strncmp(what, "undef", 5) && (!what[5] || what[5] == ':'))
		define_undef(d, what + 5 + (what[5] == ':'));
	else
		refuse(d, "it is none of code, func, data:TYPE, array:COUNT:TYPE, string:KIND, undef:LEN");
}

struct err *ses_directive_make(struct ses_snap *sn, enum edits_kind kind, struct ses_edit *e, struct arena *a, struct ses_directive *ret)
{
	struct define d = {.sn = sn, .e = e, .a = a, .ret = ret, .loc = space_loc(sn->space, e->addr)};
	*ret = (struct ses_directive){0};
	e->made = (struct ses_made){0};
	int seg = d.loc == LOC_NONE ? -1 : space_seg_of_loc(sn->space, d.loc);
	if (!e->value) {
		/* The type of data goes with it. */
		const struct edits_fact *f = kind == EDITS_ITEM ? edits_find(sn->edits, EDITS_ITEM, e->addr, "") : NULL;
		if (f && !strncmp(f->value, "data:", 5) && edits_find(sn->edits, EDITS_TYPE, e->addr, ""))
			add_more(&d, EDITS_TYPE, e->addr, NULL);
	} else if (seg < 0 || sn->space->segs[seg].is_extern) {
		refuse(&d, "the address is not mapped");
	} else {
		d.room = sn->space->segs[seg].mem_len - (d.loc - sn->space->segs[seg].loc);
		if (is_made(&d, kind))
			;
		else if (kind == EDITS_ITEM)
			define_item(&d, e->value);
		else if (kind == EDITS_BOUNDS)
			make_bounds(&d, e->value);
		else if (kind == EDITS_FLAGS)
			make_flags(&d, e->value);
		else if (kind == EDITS_TABLE)
			make_switch(&d, e->value);
		if (kind == EDITS_ITEM && ret->value)
			overlaps(&d);
	}
	ret->more = ARENA_ARRAY(a, struct edits_change, d.more.cnt + 1);
	ret->more_cnt = d.more.cnt;
	if (ret->more && d.more.cnt)
		memcpy(ret->more, d.more.data, d.more.cnt * sizeof(*ret->more));
	VEC_FREE(&d.more);
	return d.no_memory || !ret->more ? &err_nomem : NULL;
}
