/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo/dw_child.h"

#include "base/cur.h"
#include "base/map.h"

/*
 * The parent's half of types: each unit describes what it uses anew, so the same struct comes once a unit. Types that say
 * the same are made one. What says the same is decided by a hash of the content in which tagged types and typedefs stand
 * for themselves by name, so that loops end; a tag that is only declared is taken for the first complete one of its name.
 */
#define DW_IDENT_DEPTH 48
#define DW_SUBS_MAX ((size_t)1 << 24)
#define DW_TYPES_MAX ((size_t)1 << 23)

enum { DW_TODO, DW_BUSY, DW_READY };

struct dw_raw {
	uint64_t id, target;       /* the child's numbers */
	uint64_t ident;            /* hash of what it says */
	struct dbg_type t;         /* name borrowed from the answer */
	uint8_t state;
	uint32_t out;              /* number in the list; 0: not there yet */
};

struct dw_raw_sub {
	struct fmt_str name;
	uint64_t type;
	uint32_t bit_len;
	int64_t value;
};

struct dw_raw_var { uint64_t va, type; };

struct dw_taken {
	VEC(struct dw_raw) raws;
	VEC(struct dw_raw_sub) subs;
	VEC(struct dw_raw_var) vars;
	struct map by_id;          /* id -> number in raws */
	struct map complete;       /* hash of kind and name -> number of the first complete one */
	struct map by_ident;       /* ident -> number in the list */
	struct map names;          /* hash of name space and name -> how many have it */
};

void dbg_types_fini(struct dbg_types *t)
{
	VEC_FREE(&t->list);
	VEC_FREE(&t->subs);
	VEC_FREE(&t->vars);
	arena_fini(&t->arena);
}

struct dw_taken *dbg_dw_taken_new(void)
{
	return calloc(1, sizeof(struct dw_taken));
}

void dbg_dw_taken_free(struct dw_taken *k)
{
	if (!k)
		return;
	VEC_FREE(&k->raws);
	VEC_FREE(&k->subs);
	VEC_FREE(&k->vars);
	map_fini(&k->by_id);
	map_fini(&k->complete);
	map_fini(&k->by_ident);
	map_fini(&k->names);
	free(k);
}

/* --- taking records --- */

/* A C identifier, or for base types words and blanks; anything else reads as absent. */
static struct fmt_str taken_str(struct cur *c)
{
	uint64_t len = cur_uleb(c);
	const uint8_t *p = cur_bytes(c, len);
	if (!p || len > DW_STRING_MAX)
		return (struct fmt_str){0};
	for (uint64_t i = 0; i < len; i++) {
		bool is_word = (p[i] >= 'a' && p[i] <= 'z') || (p[i] >= 'A' && p[i] <= 'Z') || (p[i] >= '0' && p[i] <= '9') || p[i] == '_';
		if (!is_word && !(i && p[i] == ' '))
			return (struct fmt_str){0};
	}
	return (struct fmt_str){.s = (const char *)p, .len = (uint32_t)len};
}

static bool is_ident(struct fmt_str s)
{
	return s.len && !(s.s[0] >= '0' && s.s[0] <= '9') && !memchr(s.s, ' ', s.len);
}

static bool take_sub(struct dw_taken *k, struct cur *c)
{
	struct dw_raw_sub s = {.name = taken_str(c)};
	s.type = cur_uleb(c);
	uint64_t bit_len = cur_uleb(c), v = cur_uleb(c);
	s.bit_len = (uint32_t)MIN(bit_len, UINT32_MAX);
	s.value = (int64_t)(v >> 1 ^ -(v & 1));
	if (!is_ident(s.name))
		s.name = (struct fmt_str){0};
	return c->failed || VEC_PUSH(&k->subs, s);
}

bool dbg_dw_take_type(struct dw_taken *k, struct cur *c)
{
	struct dw_raw raw = {.id = cur_uleb(c)};
	uint64_t kind = cur_uleb(c);
	raw.t.kind = (uint8_t)MIN(kind, DBG_T_KIND_COUNT);
	raw.t.encoding = (uint8_t)cur_uleb(c);
	raw.t.flags = (uint8_t)cur_uleb(c);
	raw.t.len = cur_uleb(c);
	uint64_t align = cur_uleb(c);
	raw.t.align = align <= 1 << 28 && !(align & (align - 1)) ? (uint32_t)align : 0;
	raw.target = cur_uleb(c);
	raw.t.name = taken_str(c);
	uint64_t cnt = cur_uleb(c);
	raw.t.sub_first = (uint32_t)k->subs.cnt;
	for (uint64_t i = 0; i < cnt && !c->failed && k->subs.cnt < DW_SUBS_MAX; i++) {
		if (!take_sub(k, c))
			return false;
	}
	raw.t.sub_cnt = (uint32_t)k->subs.cnt - raw.t.sub_first;
	if (raw.t.kind != DBG_T_BASE && !is_ident(raw.t.name))
		raw.t.name = (struct fmt_str){0};
	bool is_sane = !c->failed && raw.t.sub_cnt == cnt && raw.t.kind > DBG_T_VOID && raw.t.kind < DBG_T_KIND_COUNT && raw.id;
	if (!is_sane || k->raws.cnt >= DW_TYPES_MAX) {
		c->failed = true;
		return true;
	}
	return map_put(&k->by_id, raw.id, (uint32_t)k->raws.cnt) && VEC_PUSH(&k->raws, raw);
}

bool dbg_dw_take_var(struct dw_taken *k, struct cur *c)
{
	uint64_t va = cur_uleb(c), type = cur_uleb(c);
	return c->failed || VEC_PUSH(&k->vars, (struct dw_raw_var){va, type});
}

/* --- what says the same --- */

static uint64_t mix(uint64_t h, uint64_t v)
{
	/* Both are small numbers as a rule: each is spread before they meet. */
	h = (h + 0x632be59bd9b4e019u) * 0x9e3779b97f4a7c15u;
	h = ((h ^ h >> 32) ^ v) * 0xd6e8feb86659fd93u;
	return h ^ h >> 29;
}

static uint64_t mix_str(uint64_t h, struct fmt_str s)
{
	for (uint32_t i = 0; i < s.len; i++)
		h = (h ^ (uint8_t)s.s[i]) * 0x100000001b3u;
	return mix(h, s.len);
}

static bool is_tagged(const struct dbg_type *t)
{
	return t->kind == DBG_T_STRUCT || t->kind == DBG_T_UNION || t->kind == DBG_T_ENUM;
}

static uint64_t name_key(const struct dbg_type *t)
{
	return mix_str(is_tagged(t) ? 1 : 2, t->name);
}

static struct dw_raw *raw_of(struct dw_taken *k, uint64_t id)
{
	uint32_t n;
	return id && map_find(&k->by_id, id, &n) ? &k->raws.data[n] : NULL;
}

/* The type meant: a tag without content is the first complete one of its name and kind. */
static struct dw_raw *meant(struct dw_taken *k, uint64_t id)
{
	struct dw_raw *r = raw_of(k, id);
	uint32_t n;
	if (r && is_tagged(&r->t) && r->t.flags & DBG_T_INCOMPLETE && r->t.name.len && map_find(&k->complete, mix(name_key(&r->t), r->t.kind), &n))
		return &k->raws.data[n];
	return r;
}

static uint64_t ident_of(struct dw_taken *k, uint64_t id, unsigned depth);

/* What a reference to a type says: of what has a name, that. */
static uint64_t ident_by_name(struct dw_taken *k, uint64_t id, unsigned depth)
{
	const struct dw_raw *r = meant(k, id);
	if (r && r->t.name.len && (is_tagged(&r->t) || r->t.kind == DBG_T_TYPEDEF))
		return mix(name_key(&r->t), r->t.kind);
	return ident_of(k, id, depth);
}

static uint64_t ident_of(struct dw_taken *k, uint64_t id, unsigned depth)
{
	struct dw_raw *r = meant(k, id);
	if (!r)
		return 1;
	if (r->state == DW_READY)
		return r->ident;
	/* A loop without a name in it, or a very long chain: of its own kind. */
	if (r->state == DW_BUSY || depth > DW_IDENT_DEPTH)
		return mix(3, r->id);
	r->state = DW_BUSY;
	uint64_t h = mix_str(mix(mix(r->t.kind, r->t.len), (uint64_t)r->t.flags << 8 | r->t.encoding), r->t.name);
	h = mix(mix(h, r->t.align), ident_by_name(k, r->target, depth + 1));
	for (uint32_t i = 0; i < r->t.sub_cnt; i++) {
		const struct dw_raw_sub *s = &k->subs.data[r->t.sub_first + i];
		h = mix(mix(mix_str(h, s->name), (uint64_t)s->value), s->bit_len);
		h = mix(h, ident_by_name(k, s->type, depth + 1));
	}
	r->ident = h;
	r->state = DW_READY;
	return h;
}

/* --- the list --- */

struct dw_maker {
	struct dw_taken *k;
	struct dbg_types *ret;
	VEC(uint32_t) todo;        /* raws in the list whose references are still to be resolved */
	bool ok;
};

static uint32_t list_push(struct dw_maker *m, const struct dbg_type *t)
{
	m->ok = m->ok && m->ret->list.cnt < DW_TYPES_MAX && VEC_PUSH(&m->ret->list, *t);
	return m->ok ? (uint32_t)m->ret->list.cnt - 1 : 0;
}

/* The name in memory of the list; one that another type of the name space has gets a number behind it. */
static struct fmt_str list_name(struct dw_maker *m, const struct dbg_type *t)
{
	struct fmt_str ret = {0};
	uint32_t cnt = 0;
	bool is_named = is_tagged(t) || t->kind == DBG_T_TYPEDEF;
	if (!t->name.len)
		return ret;
	if (is_named) {
		map_find(&m->k->names, name_key(t), &cnt);
		m->ok = m->ok && map_put(&m->k->names, name_key(t), cnt + 1);
	}
	char *s = cnt ? arena_printf(&m->ret->arena, "%.*s__%u", (int)t->name.len, t->name.s, cnt + 1) :
			arena_strndup(&m->ret->arena, t->name.s, t->name.len);
	m->ok = m->ok && s;
	return s ? (struct fmt_str){.s = s, .len = (uint32_t)strlen(s)} : ret;
}

/* The number of a type in the list, put there when it is new. */
static uint32_t list_ref(struct dw_maker *m, uint64_t id)
{
	struct dw_raw *r = meant(m->k, id);
	uint32_t n;
	if (!r || !m->ok)
		return 0;
	if (r->out)
		return r->out;
	uint64_t ident = ident_of(m->k, id, 0);
	if (map_find(&m->k->by_ident, ident, &n)) {
		r->out = n;
		return n;
	}
	struct dbg_type t = r->t;
	t.name = list_name(m, &t);
	t.sub_first = t.sub_cnt = 0;
	r->out = list_push(m, &t);
	m->ok = m->ok && map_put(&m->k->by_ident, ident, r->out) && VEC_PUSH(&m->todo, (uint32_t)(r - m->k->raws.data));
	return r->out;
}

/* An array of several dimensions is an array of arrays: the outermost is the type itself. */
static void list_dimensions(struct dw_maker *m, const struct dw_raw *r)
{
	uint32_t target = list_ref(m, r->target);
	for (uint32_t i = r->t.sub_cnt; i-- > 0 && m->ok;) {
		int64_t n = m->k->subs.data[r->t.sub_first + i].value;
		struct dbg_type t = {.kind = r->t.kind, .len = n < 0 ? 0 : (uint64_t)n, .target = target, .flags = n < 0 ? DBG_T_OPEN : 0};
		if (i)
			target = list_push(m, &t);
		else
			m->ret->list.data[r->out] = t;
	}
	if (!r->t.sub_cnt) {
		struct dbg_type *t = &m->ret->list.data[r->out];
		*t = (struct dbg_type){.kind = r->t.kind, .target = target, .flags = DBG_T_OPEN};
	}
}

static void list_fill(struct dw_maker *m, const struct dw_raw *r)
{
	if (r->t.kind == DBG_T_ARRAY || r->t.kind == DBG_T_VECTOR) {
		list_dimensions(m, r);
		return;
	}
	uint32_t target = list_ref(m, r->target), first = (uint32_t)m->ret->subs.cnt;
	for (uint32_t i = 0; i < r->t.sub_cnt && m->ok; i++) {
		const struct dw_raw_sub *s = &m->k->subs.data[r->t.sub_first + i];
		struct dbg_type_sub sub = {.type = list_ref(m, s->type), .bit_len = s->bit_len, .value = s->value};
		if (s->name.len) {
			char *name = arena_strndup(&m->ret->arena, s->name.s, s->name.len);
			m->ok = m->ok && name;
			sub.name = (struct fmt_str){.s = name, .len = name ? s->name.len : 0};
		}
		m->ok = m->ok && VEC_PUSH(&m->ret->subs, sub);
	}
	if (!m->ok)
		return;
	struct dbg_type *t = &m->ret->list.data[r->out];
	t->target = target;
	t->sub_first = first;
	t->sub_cnt = r->t.sub_cnt;
}

static int var_order(const void *a, const void *b)
{
	const struct dbg_var *x = a, *y = b;
	if (x->va != y->va)
		return x->va < y->va ? -1 : 1;
	return x->type < y->type ? -1 : x->type > y->type;
}

static void list_vars(struct dw_maker *m, const struct fmt_bin *b)
{
	for (size_t i = 0; i < m->k->vars.cnt && m->ok; i++) {
		struct dbg_var v = {.va = m->k->vars.data[i].va};
		v.type = fmt_segment_at(b, v.va) ? list_ref(m, m->k->vars.data[i].type) : 0;
		m->ok = m->ok && (!v.type || VEC_PUSH(&m->ret->vars, v));
	}
}

/* The first complete type of each tag. */
static bool note_complete(struct dw_taken *k)
{
	for (uint32_t i = 0; i < k->raws.cnt; i++) {
		const struct dbg_type *t = &k->raws.data[i].t;
		uint64_t key = mix(name_key(t), t->kind);
		uint32_t n;
		if (!is_tagged(t) || !t->name.len || t->flags & DBG_T_INCOMPLETE || map_find(&k->complete, key, &n))
			continue;
		if (!map_put(&k->complete, key, i))
			return false;
	}
	return true;
}

/* --- order --- */

/* Tags first, then typedefs, then what has no name of its own; void stays in front. */
static unsigned name_class(const struct dbg_type *t)
{
	return t->kind == DBG_T_VOID ? 0 : is_tagged(t) && t->name.len ? 1 : t->kind == DBG_T_TYPEDEF ? 2 : 3;
}

static int list_order(const void *a, const void *b, void *ctx)
{
	const struct dbg_type *list = ctx;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct dbg_type *x = &list[i], *y = &list[j];
	unsigned cx = name_class(x), cy = name_class(y);
	if (cx != cy)
		return cx < cy ? -1 : 1;
	int d = cx == 1 || cx == 2 ? memcmp(x->name.s, y->name.s, MIN(x->name.len, y->name.len)) : 0;
	if (d)
		return d;
	if (cx != 3 && x->name.len != y->name.len)
		return x->name.len < y->name.len ? -1 : 1;
	return i < j ? -1 : i > j;
}

static bool sort_list(struct dbg_types *ret)
{
	size_t cnt = ret->list.cnt;
	_cleanup_free_ uint32_t *order = alloc_array(cnt, sizeof(*order));
	_cleanup_free_ uint32_t *place = alloc_array(cnt, sizeof(*place));
	struct dbg_type *sorted = alloc_array(cnt, sizeof(*sorted));
	if (!order || !place || !sorted) {
		free(sorted);
		return false;
	}
	for (uint32_t i = 0; i < cnt; i++)
		order[i] = i;
	qsort_r(order, cnt, sizeof(*order), list_order, ret->list.data);
	for (uint32_t i = 0; i < cnt; i++) {
		place[order[i]] = i;
		sorted[i] = ret->list.data[order[i]];
	}
	for (uint32_t i = 0; i < cnt; i++)
		sorted[i].target = place[sorted[i].target];
	for (size_t i = 0; i < ret->subs.cnt; i++)
		ret->subs.data[i].type = place[ret->subs.data[i].type];
	for (size_t i = 0; i < ret->vars.cnt; i++)
		ret->vars.data[i].type = place[ret->vars.data[i].type];
	memcpy(ret->list.data, sorted, cnt * sizeof(*sorted));
	free(sorted);
	return true;
}

bool dbg_dw_types_finish(struct dw_taken *k, const struct fmt_bin *b, struct dbg_types *ret)
{
	struct dw_maker m = {.k = k, .ret = ret, .ok = note_complete(k)};
	struct dbg_type none = {.kind = DBG_T_VOID};
	if (!k->raws.cnt)
		return m.ok;
	list_push(&m, &none);
	/* What has a name is there for its own sake, everything else because something names it. */
	for (size_t i = 0; i < k->raws.cnt && m.ok; i++) {
		const struct dbg_type *t = &k->raws.data[i].t;
		if (t->name.len && (is_tagged(t) || t->kind == DBG_T_TYPEDEF))
			(void)list_ref(&m, k->raws.data[i].id);
	}
	list_vars(&m, b);
	while (m.ok && m.todo.cnt)
		list_fill(&m, &k->raws.data[VEC_POP(&m.todo)]);
	VEC_FREE(&m.todo);
	m.ok = m.ok && sort_list(ret);
	if (m.ok && ret->vars.cnt) {
		qsort(ret->vars.data, ret->vars.cnt, sizeof(*ret->vars.data), var_order);
		size_t n = 0;
		for (size_t i = 1; i < ret->vars.cnt; i++) {
			n += ret->vars.data[i].va != ret->vars.data[n].va;
			ret->vars.data[n] = ret->vars.data[i];
		}
		ret->vars.cnt = n + 1;
	}
	return m.ok;
}
