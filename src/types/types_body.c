/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct, union and enum specifiers (C 6.7.2.1 to 6.7.2.3). A body is gathered on the parser's stacks, because bodies nest,
 * and moves into the set in one piece at its closing brace, where #pragma pack is what counts, as in gcc.
 */
#include "types/types_int.h"

#include <string.h>

/* Notes a member's name, and those seen through an anonymous member; a name that was there is an error. */
static void body_note(struct types_parser *p, const struct types_member *m, uint32_t serial, const struct types_token *at)
{
	uint32_t cnt, was;
	if (p->err)
		return;
	if (m->name) {
		uint64_t key = (uint64_t)serial << 32 | types_name_find(p->t, m->name, strlen(m->name));
		if (map_find(&p->seen, key, &was))
			types_fail(p, at, "member '%.100s' is there twice", m->name);
		else if (p->seen.cnt > TYPES_RECORD_MAX || !map_put(&p->seen, key, 0))
			types_fail_full(p);
		return;
	}
	const struct types_member *sub = m->is_bitfield ? NULL : types_members(p->t, m->type.id, &cnt);
	for (uint32_t i = 0; sub && i < cnt; i++)
		body_note(p, &sub[i], serial, at);
}

static void body_add(struct types_parser *p, const struct types_member *m, uint32_t serial, const struct types_token *at)
{
	body_note(p, m, serial, at);
	if (!p->err && (p->t->members.cnt + p->members.cnt >= TYPES_RECORD_MAX || !VEC_PUSH(&p->members, *m)))
		types_fail_full(p);
}

/* ": width" of a bit-field. */
static void body_bits(struct types_parser *p, struct types_member *m)
{
	struct types_token at = p->lex.tok;
	bool is_unsigned;
	int64_t width = types_const_expr(p, &is_unsigned);
	const struct types_type *rec = types_get(p->t, types_real(p->t, m->type).id);
	uint64_t max = rec->kind == TYPES_INT && rec->base == TYPES_B_BOOL ? 1 : rec->len * 8;
	if (p->err)
		return;
	if (rec->kind != TYPES_INT && !(rec->kind == TYPES_ENUM && rec->flags & TYPES_F_COMPLETE))
		types_fail(p, &at, "a bit-field must have an integer type");
	else if (width < 0 || is_unsigned || (uint64_t)width > max)
		types_fail(p, &at, "the bit-field is wider than its type");
	else if (!width && m->name)
		types_fail(p, &at, "a bit-field of width 0 must have no name");
	m->is_bitfield = true;
	m->bit_len = (uint32_t)width;
}

/* One declarator of a member declaration. */
static void body_member(struct types_parser *p, const struct types_spec *spec, uint32_t serial)
{
	struct types_declr d = {.at = p->lex.tok, .type = spec->type};
	if (types_is(p, ':'))
		d.type = types_apply(p, d.type, &spec->attr, &d.at);
	else
		types_declarator(p, spec, false, &d);
	struct types_member m = {.type = d.type, .name = d.name ? p->t->names.data[d.name].s : NULL};
	struct types_attr attr = {.align = MAX(spec->attr.align, d.attr.align), .flags = spec->attr.flags | d.attr.flags};
	if (types_accept(p, ':'))
		body_bits(p, &m);
	struct types_attr after = {0};
	types_attrs(p, &after);
	if (after.mode || after.vector_len)
		types_fail(p, &d.at, "mode and vector_size of a bit-field are not supported");
	m.user_align = MAX(attr.align, after.align);
	m.is_packed = (attr.flags | after.flags) & TYPES_F_PACKED;
	const struct types_type *rec = types_get(p->t, types_real(p->t, m.type).id);
	if (!p->err && !(rec->flags & (TYPES_F_COMPLETE | TYPES_F_OPEN)))
		types_fail(p, &d.at, rec->kind == TYPES_FUNC ? "a member cannot be a function" : "the member's type is incomplete");
	body_add(p, &m, serial, &d.at);
}

static void body_declaration(struct types_parser *p, uint32_t serial)
{
	struct types_spec spec;
	struct types_token at = p->lex.tok;
	if (types_accept(p, ';'))
		return;
	if (types_kw(p) == KW_STATIC_ASSERT) {
		types_static_assert(p);
		return;
	}
	types_specs(p, &spec);
	if (spec.is_typedef || spec.is_static || spec.is_extern || spec.is_storage)
		types_fail(p, &at, "a member has no storage class");
	if (types_is(p, ';') || types_is(p, '}')) {
		const struct types_type *rec = types_get(p->t, spec.type.id);
		if ((rec->kind == TYPES_STRUCT || rec->kind == TYPES_UNION) && !rec->name && !rec->alias) {
			/* gcc takes no attributes for it. */
			struct types_member m = {.type = spec.type};
			body_add(p, &m, serial, &at);
		}
	} else {
		do
			body_member(p, &spec, serial);
		while (types_accept(p, ','));
	}
	/* gcc lets the last semicolon be missing. */
	if (!types_is(p, '}'))
		types_expect(p, ';');
}

/*
 * Writes what #pragma pack(n) does to these members as the attributes that do the same: pack(1) is `packed`. An anonymous
 * member can have no attributes, so that `pack` says it for printing.
 */
static void body_pack(struct types_parser *p, uint32_t pack, struct types_type *rec, struct types_member *m, size_t cnt)
{
	if (pack == 1)
		rec->flags |= TYPES_F_PACKED;
	for (size_t i = 0; i < cnt && pack == 1; i++)
		m[i].user_align = 0;
	for (size_t i = 0; i < cnt && pack > 1; i++) {
		uint32_t align = types_align_of(p->t, m[i].type);
		bool is_packed = m[i].is_packed || rec->flags & TYPES_F_PACKED;
		if (m[i].is_bitfield && m[i].bit_len) {
			bool counts = m[i].name || p->t->row->has_anon_align;
			/* gcc: under the pragma it is the type's alignment that counts, even of packed ones. */
			if (counts)
				rec->user_align = MAX(rec->user_align, MIN(align, pack));
			m[i].is_packed = true;
			m[i].user_align = MIN(m[i].user_align, pack);
		} else if (!m[i].is_bitfield && MAX(is_packed ? 1 : align, m[i].user_align) > pack) {
			m[i].is_packed = true;
			m[i].user_align = pack;
			rec->pack = m[i].name ? rec->pack : pack;
		}
	}
}

/* An open array may only be a struct's last member; unions and gcc's nested structs may have several. */
static void body_check_open(struct types_parser *p, const struct types_type *rec, size_t from, const struct types_token *at)
{
	for (size_t i = from; i + 1 < p->members.cnt; i++) {
		const struct types_type *m = types_get(p->t, types_real(p->t, p->members.data[i].type).id);
		if (rec->kind == TYPES_STRUCT && m->flags & TYPES_F_OPEN && !p->err)
			types_fail(p, at, "the open array '%.100s' is not the last member", p->members.data[i].name);
	}
}

/* Gives type `id`, or when that is complete compares with it, the finished record. */
static void tagged_finish(struct types_parser *p, uint32_t id, const struct types_type *rec, const struct types_token *at)
{
	struct types *t = p->t;
	if (p->err)
		return;
	if (t->types.data[id].flags & TYPES_F_COMPLETE) {
		uint32_t other = types_add(t, rec);
		if (!other)
			types_fail_full(p);
		else if (!types_same_body(t, id, other))
			types_fail(p, at, "'%.100s' is defined differently before", rec->name);
		return;
	}
	struct types_type *to = types_change(t, id);
	if (!to) {
		types_fail_full(p);
		return;
	}
	*to = *rec;
	uint32_t idx = rec->name ? types_find(t, rec->name, strlen(rec->name), true) : 0;
	struct types_decl *d = idx ? types_decl_change(t, idx) : NULL;
	if (d)
		d->order = ++t->order;
	else if (idx)
		types_fail_full(p);
}

/* Whether members lie where was said, which is put into them. One of width 0 lies nowhere. */
static bool body_lies_so(const struct types_says *says, const struct types_said *said, struct types_member *m)
{
	bool is_so = true;
	for (uint32_t i = 0; i < said->cnt; i++) {
		uint64_t at = m[i].off * 8 + m[i].bit_off, bits = (uint64_t)says->values[said->first + i];
		is_so &= at == bits || (m[i].is_bitfield && !m[i].bit_len);
		m[i].off = bits / 8;
		m[i].bit_off = m[i].is_bitfield ? (uint32_t)(bits % 8) : 0;
	}
	return is_so;
}

/* The layout that another compiler gives, where ours is another: the members become those that say it in C. */
static void body_judge(struct types_parser *p, uint32_t id, const struct types_said *said, struct types_type *rec, size_t from)
{
	struct types_differing d = {.type = {id, 0}, .own_len = rec->len};
	if (!said || said->cnt != p->members.cnt - from)
		return;
	_cleanup_free_ struct types_member *want = alloc_array(said->cnt, sizeof(*want)), *made = NULL;
	struct types_placed as = {.want = want, .len = said->len, .align = said->align};
	if (!want) {
		types_fail_full(p);
		return;
	}
	if (said->cnt)
		memcpy(want, p->members.data + from, said->cnt * sizeof(*want));
	p->compared_cnt++;
	if (body_lies_so(p->says, said, want) && said->len == rec->len && said->align == rec->align)
		return;
	for (uint32_t i = 0; i < said->cnt; i++) {
		want[i].is_packed = false;
		if (!want[i].is_bitfield || want[i].bit_len)
			want[as.cnt++] = want[i];
	}
	struct types_type other = {.kind = rec->kind, .depth = rec->depth, .name = rec->name, .flags = rec->flags & ~(uint32_t)TYPES_F_PACKED};
	d.len = said->len;
	d.is_taken = types_place_as(p->t, &other, &as);
	made = as.made;
	if (d.is_taken) {
		p->members.cnt = from;
		*rec = other;
	}
	bool has_room = !as.made_cnt || (p->t->members.cnt + from + as.made_cnt < TYPES_RECORD_MAX && VEC_RESERVE(&p->members, as.made_cnt));
	if (!has_room || !VEC_PUSH(&p->differing, d)) {
		types_fail_full(p);
		return;
	}
	for (uint32_t i = 0; i < as.made_cnt; i++)
		p->members.data[p->members.cnt++] = made[i];
}

static void body_finish(struct types_parser *p, uint32_t id, struct types_type *rec, size_t from, const struct types_said *said,
			const struct types_token *at)
{
	struct types *t = p->t;
	size_t cnt = p->members.cnt - from;
	struct types_member *m = cnt ? p->members.data + from : NULL;
	const char *why = p->err ? NULL : types_place_members(t, rec, m, (uint32_t)cnt);
	if (why)
		types_fail(p, at, "%s", why);
	if (!p->err)
		body_judge(p, id, said, rec, from);
	cnt = p->members.cnt - from;
	m = cnt ? p->members.data + from : NULL;
	rec->first = (uint32_t)t->members.cnt;
	rec->sub_cnt = (uint32_t)cnt;
	if (!p->err && cnt && !VEC_RESERVE(&t->members, cnt))
		types_fail_full(p);
	if (!p->err && cnt) {
		memcpy(t->members.data + t->members.cnt, m, cnt * sizeof(*m));
		t->members.cnt += cnt;
	}
	p->members.cnt = from;
	tagged_finish(p, id, rec, at);
}

/* From the opening brace to the attributes after the closing one. */
static void body_struct(struct types_parser *p, uint32_t id, struct types_type *rec, const struct types_said *said, struct types_attr *attr)
{
	size_t from = p->members.cnt;
	uint32_t serial = ++p->serial;
	types_expect(p, '{');
	while (!types_is(p, '}') && !p->err) {
		if (types_is(p, TOK_EOF))
			types_fail(p, &p->lex.tok, "'}' expected, but the text ends");
		else
			body_declaration(p, serial);
	}
	uint32_t pack = p->lex.pack;
	struct types_token at = p->lex.tok;
	types_expect(p, '}');
	types_attrs(p, attr);
	rec->flags |= attr->flags & (TYPES_F_PACKED | TYPES_F_MAY_ALIAS | TYPES_F_TRANSPARENT);
	rec->user_align = attr->align;
	if (attr->flags & TYPES_A_MS_STRUCT && (!said || said->cnt != p->members.cnt - from))
		types_fail(p, &at, "attribute 'ms_struct' is not supported, and libclang says nothing of it");
	body_check_open(p, rec, from, &at);
	body_pack(p, pack, rec, p->members.cnt > from ? &p->members.data[from] : NULL, p->members.cnt - from);
	body_finish(p, id, rec, from, said, &at);
}

/* Declares a constant; the same one with the same value may be there. */
static void enum_declare(struct types_parser *p, uint32_t name, uint32_t id, const struct types_const *c,
			 const struct types_token *at)
{
	uint32_t was = p->t->names.data[name].ident;
	const struct types_decl *d = types_decl_get(p->t, was);
	if (p->err)
		return;
	if (was && !d->is_builtin) {
		if (d->kind != TYPES_D_CONST || d->value.value != c->value || d->value.is_unsigned != c->is_unsigned)
			types_fail(p, at, "'%.100s' is declared as something else before", c->name);
		return;
	}
	struct types_decl decl = {.kind = TYPES_D_CONST, .type = {id, 0}, .value = *c};
	if (!types_decl_add(p->t, &decl, name))
		types_fail_full(p);
}

/* The value of a constant, or the one that was said, when they differ or ours is not known. */
static void enum_value(struct types_parser *p, const struct types_said *said, size_t i, struct types_const *c)
{
	bool is_known = true;
	if (!said || i >= said->cnt) {
		c->value = types_const_expr(p, &c->is_unsigned);
		return;
	}
	c->value = types_try_expr(p, &c->is_unsigned, &is_known);
	int64_t value = p->says->values[said->first + i];
	if (is_known && c->value == value)
		return;
	*c = (struct types_const){.name = c->name, .value = value};
	p->said_const_cnt++;
}

static void enum_const(struct types_parser *p, uint32_t id, const struct types_said *said, size_t from)
{
	struct types_token at = p->lex.tok;
	if (!types_is(p, TOK_IDENT) || types_kw(p)) {
		types_fail(p, &at, "the name of a constant expected");
		return;
	}
	struct types_const c = {.name = types_tok_name(p)};
	types_next(p);
	struct types_attr unused = {0};
	types_attrs(p, &unused);
	if (types_accept(p, '=')) {
		enum_value(p, said, p->consts.cnt - from, &c);
	} else if (p->consts.cnt > from) {
		const struct types_const *last = &p->consts.data[p->consts.cnt - 1];
		c.is_unsigned = last->is_unsigned || last->value == INT64_MAX;
		c.value = (int64_t)((uint64_t)last->value + 1);
		if (last->is_unsigned && !c.value)
			types_fail(p, &at, "the value does not fit in 64 bits");
	}
	enum_declare(p, at.name, id, &c, &at);
	if (!p->err && (p->t->consts.cnt + p->consts.cnt >= TYPES_RECORD_MAX || !VEC_PUSH(&p->consts, c)))
		types_fail_full(p);
}

/* The integer type that holds all constants: unsigned when none is negative, int's size unless that is too small. */
static enum types_base enum_base(const struct types_parser *p, const struct types_const *c, size_t cnt, bool is_packed)
{
	uint64_t max = 0;
	int64_t min = 0;
	for (size_t i = 0; i < cnt; i++) {
		if (c[i].value < 0 && !c[i].is_unsigned)
			min = MIN(min, c[i].value);
		else
			max = MAX(max, (uint64_t)c[i].value);
	}
	static const enum types_base list[] = {TYPES_B_SCHAR, TYPES_B_SHORT, TYPES_B_INT, TYPES_B_LONG, TYPES_B_LLONG};
	for (size_t i = is_packed ? 0 : 2; i < ARRAY_LEN(list); i++) {
		unsigned bits = p->t->row->base[list[i]].len * 8u - (min < 0);
		bool fits = (bits >= 64 || max >> bits == 0) && (min >= 0 || min >= -(int64_t)(((uint64_t)1 << bits) - 1) - 1);
		if (fits)
			return min < 0 ? list[i] : list[i] + 1;
	}
	return TYPES_B_COUNT;
}

static void body_enum(struct types_parser *p, uint32_t id, struct types_type *rec, const struct types_said *said, struct types_attr *attr)
{
	struct types *t = p->t;
	size_t from = p->consts.cnt, said_const_cnt = p->said_const_cnt;
	types_expect(p, '{');
	while (!types_is(p, '}') && !p->err) {
		enum_const(p, id, said, from);
		if (!types_is(p, '}'))
			types_expect(p, ',');
	}
	struct types_token at = p->lex.tok;
	types_expect(p, '}');
	types_attrs(p, attr);
	rec->flags |= attr->flags & TYPES_F_PACKED;
	size_t cnt = p->err ? 0 : p->consts.cnt - from;
	struct types_const *c = cnt ? p->consts.data + from : NULL;
	enum types_base b = enum_base(p, c, cnt, attr->flags & TYPES_F_PACKED);
	if (b == TYPES_B_COUNT)
		types_fail(p, &at, "no integer type holds all constants");
	if (attr->mode)
		types_fail(p, &at, "mode of an enum is not supported");
	if (!p->err && cnt && !VEC_RESERVE(&t->consts, cnt))
		types_fail_full(p);
	if (p->err)
		return;
	rec->target = (struct types_ref){t->base_id[b], 0};
	rec->len = t->row->base[b].len;
	rec->user_align = attr->align;
	rec->align = MAX(t->row->base[b].align, attr->align);
	rec->flags |= TYPES_F_COMPLETE;
	bool is_same = p->said_const_cnt == said_const_cnt;
	struct types_differing d = {.type = {id, 0}, .own_len = rec->len};
	if (said && said->cnt == cnt) {
		p->compared_cnt++;
		d.len = said->len;
		d.is_taken = said->len == rec->len;
		is_same = is_same && d.is_taken;
	}
	if (!is_same && !VEC_PUSH(&p->differing, d))
		types_fail_full(p);
	rec->first = (uint32_t)t->consts.cnt;
	rec->sub_cnt = (uint32_t)cnt;
	if (cnt) {
		memcpy(t->consts.data + t->consts.cnt, c, cnt * sizeof(*c));
		t->consts.cnt += cnt;
	}
	p->consts.cnt = from;
	tagged_finish(p, id, rec, &at);
}

/* The type of a tag, made when new; 0 on failure. */
static uint32_t tagged_id(struct types_parser *p, enum types_kind kind, const struct types_token *tag, bool has_body)
{
	static const char *const words[] = {[TYPES_STRUCT] = "struct", [TYPES_UNION] = "union", [TYPES_ENUM] = "enum"};
	struct types *t = p->t;
	uint32_t idx = tag->name ? t->names.data[tag->name].tag : 0;
	if (p->err)
		return 0;
	/* What came with the set is only there until somebody says what it is. */
	bool is_anew = idx && has_body && t->decls.data[idx].is_builtin && !t->is_builtin;
	if (idx && !is_anew) {
		uint32_t id = t->decls.data[idx].type.id;
		enum types_kind was = t->types.data[id].kind;
		if (was != kind)
			types_fail(p, tag, "'%.100s' is a %s, not a %s", t->names.data[tag->name].s, words[was], words[kind]);
		return id;
	}
	struct types_type rec = {.kind = kind, .depth = 1, .name = tag->name ? t->names.data[tag->name].s : NULL};
	uint32_t id = types_add(t, &rec);
	struct types_decl d = {.kind = TYPES_D_TAG, .type = {id, 0}};
	if (!id || (tag->name && !types_decl_add(t, &d, tag->name)))
		types_fail_full(p);
	return id;
}

struct types_ref types_tagged(struct types_parser *p)
{
	enum types_kw kw = types_kw(p);
	enum types_kind kind = kw == KW_STRUCT ? TYPES_STRUCT : kw == KW_UNION ? TYPES_UNION : TYPES_ENUM;
	struct types_attr attr = {0};
	struct types_token tag = {0};
	const struct types_said *said = types_says_at(p->says, (uint64_t)(p->lex.tok.s - p->text));
	types_next(p);
	types_attrs(p, &attr);
	if (types_is(p, TOK_IDENT) && types_kw(p) == KW_NONE) {
		tag = p->lex.tok;
		types_next(p);
	}
	bool has_body = types_is(p, '{');
	if (!tag.name && !has_body)
		types_fail(p, &p->lex.tok, "a tag or '{' expected");
	uint32_t id = tagged_id(p, kind, &tag, has_body);
	if (has_body && types_enter(p) && !p->err) {
		struct types_type rec = {.kind = kind, .depth = 1, .name = p->t->types.data[id].name};
		if (kind == TYPES_ENUM)
			body_enum(p, id, &rec, said, &attr);
		else
			body_struct(p, id, &rec, said, &attr);
	}
	if (has_body)
		types_leave(p);
	return (struct types_ref){id, 0};
}
