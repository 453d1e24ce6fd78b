/* SPDX-License-Identifier: Apache-2.0 */
/* Probes of a session: from names to places of the file, and from records back to calls. */
#include "session/ses_probe.h"
#include "session/ses_probe_int.h"

#include "base/glob.h"
#include "base/json.h"
#include "debuginfo/dbg.h"
#include "session/ops.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PENDING_MAX = 65536, PENDING_BUCKETS = 8192, LINES_PER_FUNC = 1 << 20, INSN_LEN_MAX = 15 };

struct place {
	uint64_t va;
	const char *name;
	bool is_func, has_return;
	struct ses_probe_plan plan;
	char last[SES_PROBE_TEXT];
};

/* A call that began. */
struct pending {
	struct pending *next;          /* of the bucket */
	struct pending *older, *newer;
	uint64_t begin;
	uint32_t tid, point;
	size_t len;
	uint8_t bytes[];               /* its record */
};

struct ses_probes {
	struct ses_snap *sn;
	struct arena arena;
	struct ses_probe_opts o;
	struct place *places;
	struct probe_point *points;
	struct probe_kind *kinds;
	uint32_t cnt, kind_cnt;
	uint32_t left_out;             /* functions that a pattern named, and that take no probe */
	const char *why_left_out;      /* of the first; null */
	struct probe_opts popts;       /* as the set was opened with */
	struct probe_set *set;
	struct ses_sites *sites;
	struct pending *buckets[PENDING_BUCKETS];
	struct pending *oldest, *newest;
	size_t pending_cnt;
	uint64_t seq, told_lost;
	struct buf text;
	bool is_over;                  /* the drain going on wants no more lines */
	ses_probe_line_fn *line;       /* of the drain going on */
	void *line_ctx;
};

/* --- where --------------------------------------------------------------------------------------------------- */

const char *ses_probe_refuse(struct ses_snap *sn, uint64_t va, struct arena *a)
{
	uint32_t loc = space_loc(sn->space, va), start, len;
	enum image_item_kind kind;
	uint64_t off;
	if (loc == LOC_NONE || !ses_va_to_file(sn, va, &off))
		return arena_printf(a, "0x%" PRIx64 " is not in the file%s", va,
				    loc != LOC_NONE && image_import_at(sn->im, loc) ? ": it is imported, so probe it in its library" : "");
	if (!image_item_at(sn->im, loc, &start, &len, &kind) || kind != IMAGE_CODE)
		return arena_printf(a, "0x%" PRIx64 " is no code: a probe there would overwrite data", va);
	if (start != loc)
		return arena_printf(a, "0x%" PRIx64 " is inside of the instruction at 0x%" PRIx64 ", which a probe would damage", va,
				    space_va(sn->space, start));
	const struct file *f = sn->ses->file;
	const char *why = f && off < f->len && sn->arch
				  ? probe_insn_refused(f->data + off, MIN(f->len - off, (uint64_t)INSN_LEN_MAX), sn->arch->id == ARCH_ID_X86_64)
				  : NULL;
	return why ? arena_printf(a, "0x%" PRIx64 ": %s", va, why) : NULL;
}

/* What says whether a function is called, so that the word at its stack pointer is a return address: the return is caught by exchanging
 * that word. */
struct returns {
	struct dbg_fdes fdes;
	bool is_go;
};

static struct err *returns_read(struct ses_snap *sn, struct returns *ret)
{
	struct fmt_bin *b = NULL;
	struct findings f = {0};
	struct err *e = fmt_open(sn->ses->file->data, sn->ses->file->len, &b);
	if (!e) {
		ret->is_go = fmt_section_named(b, ".gopclntab") || fmt_section_named(b, ".go.buildinfo");
		e = dbg_read_eh_frame(b, &ret->fdes, &f);
	}
	findings_fini(&f);
	fmt_bin_free(b);
	return e;
}

static const struct dbg_fde *fde_at(const struct returns *r, uint64_t va)
{
	size_t lo = 0, hi = r->fdes.list.cnt;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (r->fdes.list.data[mid].va <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	const struct dbg_fde *d = lo ? &r->fdes.list.data[lo - 1] : NULL;
	return d && va - d->va < d->len ? d : NULL;
}

static bool is_called(struct ses_snap *sn, uint32_t loc)
{
	uint32_t first, cnt = image_xrefs_to(sn->im, loc, loc, &first), sym_cnt;
	for (uint32_t i = 0; i < cnt; i++) {
		struct image_xref x;
		if (image_xref_rev(sn->im, first + i, &x) && x.kind == IMAGE_XREF_CALL)
			return true;
	}
	const struct image_symbol *s = image_symbols(sn->im, &sym_cnt);
	for (uint32_t i = 0; i < sym_cnt; i++) {
		if (s[i].loc == loc && (s[i].flags & IMAGE_SYM_EXPORT))
			return true;
	}
	return false;
}

static bool returns_to_caller(struct ses_snap *sn, const struct returns *r, uint64_t va)
{
	uint32_t loc = space_loc(sn->space, va);
	const struct image_meta *m = image_meta(sn->im);
	if (r->is_go || (m->has_entry && m->entry_va == va))
		return false;
	if (image_import_at(sn->im, loc))
		return true;
	const struct dbg_fde *d = fde_at(r, va - m->bias);
	return d ? d->va == va - m->bias && !d->is_fragment && !d->is_signal : is_called(sn, loc);
}

/* --- what ----------------------------------------------------------------------------------------------------- */
struct builder {
	struct ses_probes *p;
	const struct ses_call *call;
	struct returns returns;
	size_t cap;
};

static bool has_place(const struct ses_probes *p, uint64_t va)
{
	for (uint32_t i = 0; i < p->cnt; i++) {
		if (p->places[i].va == va)
			return true;
	}
	return false;
}

static struct err *add_place(struct builder *b, uint64_t va, bool is_new)
{
	struct ses_probes *p = b->p;
	struct ses_snap *sn = p->sn;
	const char *why = ses_probe_refuse(sn, va, &p->arena);
	if (why)
		return err_new(ERR_INVALID, "%s", why);
	if (!is_new && has_place(p, va))
		return NULL;
	if (p->cnt == SES_PROBE_MAX)
		return err_new(ERR_BUDGET, "more than %d places", SES_PROBE_MAX);
	if (p->cnt == b->cap) {
		size_t cap = b->cap ? b->cap * 2 : 16;
		struct place *grown = reallocarray(p->places, cap, sizeof(*grown));
		if (!grown)
			return &err_nomem;
		p->places = grown;
		b->cap = cap;
	}
	uint32_t loc = space_loc(sn->space, va);
	struct place *l = &p->places[p->cnt];
	memset(l, 0, sizeof(*l));
	l->va = va;
	l->is_func = image_func_starting(sn->im, loc) != UINT32_MAX || image_import_at(sn->im, loc);
	l->has_return = l->is_func && !p->o.no_return && returns_to_caller(sn, &b->returns, va);
	struct ses_text name = ses_name_at(sn, va, &p->arena);
	if (!name.len || !l->is_func)
		name = ses_where(sn, va, &p->arena);
	l->name = name.len ? arena_strndup(&p->arena, name.s, name.len) : arena_printf(&p->arena, "0x%" PRIx64, va);
	if (!l->name)
		return &err_nomem;
	struct ses_plan_ask ask = {.va = va, .is_func = l->is_func, .args = p->o.args, .is_exact = p->o.cond, .text_max = p->o.text_max,
				   .with_stack = p->o.with_stacks && !p->o.count_only};
	struct err *e = ses_probe_plan(sn, &ask, &p->arena, &l->plan);
	p->cnt += !e;
	return e;
}

/* All functions whose names match. */
static struct err *add_glob(struct builder *b, const char *what)
{
	struct ses_snap *sn = b->p->sn;
	uint32_t cnt, was = b->p->cnt, left_out = 0;
	const char *first = NULL;
	const struct image_func *f = image_funcs(sn->im, &cnt);
	struct arena scratch = {0};
	struct err *e = NULL;
	for (uint32_t i = 0; !e && i < cnt; i++) {
		uint64_t va = space_va(sn->space, f[i].loc);
		arena_reset(&scratch);
		struct ses_text name = ses_name_at(sn, va, &scratch);
		if (i % 1024 == 0)
			e = ses_call_check(b->call);
		if (!e && name.len && glob_match(what, strlen(what), name.s, name.len, false)) {
			const char *why = ses_probe_refuse(sn, va, &scratch);
			if (why && !first)
				first = arena_printf(&b->p->arena, "%.*s: %s", (int)name.len, name.s, why);
			left_out += why != NULL;
			e = why ? NULL : add_place(b, va, was == 0);
		}
	}
	arena_fini(&scratch);
	b->p->left_out += left_out;
	if (!b->p->why_left_out)
		b->p->why_left_out = first;
	if (!e && b->p->cnt == was)
		e = first ? err_new(ERR_INVALID, "%s", first) : err_new(ERR_NOT_FOUND, "%s: no function is called so", what);
	return e;
}

/* The lowest place where that line of the source begins in the function. */
static bool find_line(struct ses_snap *sn, uint32_t func, uint32_t line, uint64_t *ret)
{
	uint32_t range_cnt;
	const struct image_range *r = image_func_ranges(sn->im, func, &range_cnt);
	for (uint32_t i = 0; i < range_cnt; i++) {
		struct image_items it;
		uint32_t last = UINT32_MAX;
		bool more = image_items_from(sn->im, r[i].loc, &it);
		for (uint32_t n = 0; more && it.loc < r[i].loc + r[i].len && n < LINES_PER_FUNC; n++) {
			struct image_str file;
			uint32_t now;
			bool has = image_line_at(sn->im, it.loc, &file, &now);
			if (has && now == line && last != line && it.kind == IMAGE_CODE) {
				*ret = space_va(sn->space, it.loc);
				return true;
			}
			last = has ? now : UINT32_MAX;
			more = image_items_next(&it);
		}
	}
	return false;
}

/* The first instruction of that line of the function's C, as `scry decompile` numbers them from 1. */
static struct err *find_c_line(struct builder *b, const char *what, uint32_t line, uint64_t *va)
{
	struct arena a = {0};
	struct ses_c c = {0};
	struct err *e = ses_decompile(b->p->sn, b->call, *va, &a, &c);
	if (e) {
		e = err_prefix(e, "%s: nothing says which lines the code is of, and there is no C", what);
	} else if (line > c.line_cnt) {
		e = err_new(ERR_NOT_FOUND, "%s: its C has %u lines", what, c.line_cnt);
	} else if (!c.lines[line - 1].addr_cnt) {
		uint32_t near = line;
		while (near < c.line_cnt && !c.lines[near].addr_cnt)
			near++;
		e = err_new(ERR_NOT_FOUND, "%s: that line of C has no code of its own", what);
		if (near < c.line_cnt)
			e = err_fix(e, "line %u is the next that has", near + 1);
	} else {
		*va = ses_c_addr_of(&c, line - 1);
	}
	arena_fini(&a);
	return e;
}

static bool is_line(const char *s)
{
	s += *s == 'c';
	return *s >= '0' && *s <= '9';
}

static struct err *add_line(struct builder *b, const char *what, const char *colon)
{
	struct ses_snap *sn = b->p->sn;
	bool is_c = colon[1] == 'c';
	char *name = arena_strndup(&b->p->arena, what, (size_t)(colon - what)), *end;
	unsigned long line = strtoul(colon + 1 + is_c, &end, 10);
	uint64_t va;
	if (!name)
		return &err_nomem;
	if (*end || !line || line > UINT32_MAX)
		return err_new(ERR_INVALID, "%s: behind the colon stands a line of the source, or c and a line of C", what);
	struct err *e = ses_resolve(sn, name, &va);
	uint32_t loc = e ? LOC_NONE : space_loc(sn->space, va), func = loc == LOC_NONE ? UINT32_MAX : image_func_at(sn->im, loc);
	if (!e && func == UINT32_MAX)
		e = err_new(ERR_NOT_FOUND, "%s: %s is in no function", what, name);
	if (!e && (is_c || !image_has_lines(sn->im)))
		e = find_c_line(b, what, (uint32_t)line, &va);
	else if (!e && !find_line(sn, func, (uint32_t)line, &va))
		e = err_new(ERR_NOT_FOUND, "%s: no code of %s is of that line", what, name);
	return e ? e : add_place(b, va, false);
}

static struct err *add_what(struct builder *b, const char *what)
{
	const char *colon = strrchr(what, ':');
	uint64_t va;
	if (strpbrk(what, "*?"))
		return add_glob(b, what);
	if (colon && is_line(colon + 1) && colon > what && colon[-1] != ':' && strncmp(what, "file:", 5) != 0)
		return add_line(b, what, colon);
	struct err *e = ses_resolve(b->p->sn, what, &va);
	return e ? e : err_prefix(add_place(b, va, false), "%s", what);
}

/* --- kinds ---------------------------------------------------------------------------------------------------- */
static bool same_name(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_arg(const struct probe_arg *a, const struct probe_arg *b)
{
	return a->from == b->from && a->fetch == b->fetch && a->size == b->size && a->is_signed == b->is_signed && a->at == b->at &&
	       a->len == b->len && same_name(a->name, b->name);
}

static bool same_kind(const struct probe_kind *a, const struct probe_kind *b)
{
	if (a->arg_cnt != b->arg_cnt || a->is_func != b->is_func || a->has_return != b->has_return || !same_arg(&a->ret, &b->ret))
		return false;
	for (uint32_t i = 0; i < a->arg_cnt; i++) {
		if (!same_arg(&a->args[i], &b->args[i]))
			return false;
	}
	return true;
}

static struct err *make_kinds(struct ses_probes *p)
{
	p->kinds = alloc_array(MIN(p->cnt, (uint32_t)PROBE_KIND_MAX), sizeof(*p->kinds));
	p->points = alloc_array(p->cnt, sizeof(*p->points));
	if (!p->kinds || !p->points)
		return &err_nomem;
	for (uint32_t i = 0; i < p->cnt; i++) {
		const struct place *l = &p->places[i];
		struct probe_kind k = {.args = l->plan.args, .arg_cnt = p->o.count_only && !p->o.cond ? 0 : l->plan.arg_cnt, .ret = l->plan.ret,
				       .is_func = l->is_func, .has_return = l->has_return, .is_32bit = p->sn->arch->id == ARCH_ID_I386,
				       .cond = p->o.cond};
		if (p->o.count_only || !k.has_return)
			k.ret.fetch = PROBE_VALUE;
		uint32_t n = 0;
		while (n < p->kind_cnt && !same_kind(&p->kinds[n], &k))
			n++;
		if (n == PROBE_KIND_MAX)
			return err_new(ERR_BUDGET, "the arguments of these functions are of more than %d kinds", PROBE_KIND_MAX);
		if (n == p->kind_cnt)
			p->kinds[p->kind_cnt++] = k;
		p->points[i].kind = n;
		if (!ses_va_to_file(p->sn, l->va, &p->points[i].off))
			return err_new(ERR_INTERNAL, "0x%" PRIx64 " is not in the file", l->va);
	}
	return NULL;
}

/* --- opening --------------------------------------------------------------------------------------------------- */
static struct err *check_target(struct ses_snap *sn)
{
	const struct image_meta *m = image_meta(sn->im);
	if (sn->is_preview)
		return err_new(ERR_BUSY, "the analysis is not ready");
	if (!sn->arch || (sn->arch->id != ARCH_ID_X86_64 && sn->arch->id != ARCH_ID_I386))
		return err_new(ERR_UNSUPPORTED, "probes are for programs of x86-64 and i386, and this machine runs no others");
	if (m->fmt_type != FMT_TYPE_EXEC && m->fmt_type != FMT_TYPE_PIE && m->fmt_type != FMT_TYPE_SHARED)
		return err_new(ERR_UNSUPPORTED, "no process runs this file itself: probes are for programs and shared libraries");
	if (!sn->ses->file || ses_target_changed(sn->ses))
		return err_new(ERR_STALE, "%s: the file is no longer what was analysed", sn->ses->path);
	return NULL;
}

static enum probe_way way_named(const char *name)
{
	for (int w = PROBE_WAY_SESSION; name && w < PROBE_WAY_COUNT; w++) {
		if (!strcmp(name, probe_way_name((enum probe_way)w)))
			return (enum probe_way)w;
	}
	return PROBE_WAY_ANY;
}

static struct err *open_set(struct ses_probes *p)
{
	char path[64];
	/* The very file that was analysed, whatever is at its path by now. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", p->sn->ses->file->fd);
	p->popts = (struct probe_opts){.path = path, .points = p->points, .kinds = p->kinds, .point_cnt = p->cnt, .kind_cnt = p->kind_cnt,
				       .pids = p->o.pids, .pid_cnt = p->o.pid_cnt, .with_children = p->o.with_children,
				       .count_only = p->o.count_only, .way = way_named(p->o.way), .ring_len = p->o.ring_len};
	struct err *e = probe_open(&p->popts, &p->set);
	p->popts.path = NULL;
	p->popts.pids = NULL;
	return e;
}

struct err *ses_probes_open(struct ses_snap *sn, const struct ses_call *call, const struct ses_probe_opts *o, struct ses_probes **ret)
{
	struct err *e = check_target(sn);
	if (!e)
		e = probe_check();
	if (e)
		return e;
	struct ses_probes *p = calloc(1, sizeof(*p));
	if (!p)
		return &err_nomem;
	atomic_fetch_add(&sn->refs, 1);
	p->sn = sn;
	p->o = *o;
	p->o.text_max = o->text_max ? MIN(o->text_max, (uint32_t)PROBE_FETCH_MAX - 8) : 128;
	p->sites = ses_sites_new(sn, o->with_lines);
	struct builder b = {.p = p, .call = call};
	e = p->sites ? returns_read(sn, &b.returns) : &err_nomem;
	for (size_t i = 0; !e && i < o->what_cnt; i++)
		e = add_what(&b, o->whats[i]);
	VEC_FREE(&b.returns.fdes.list);
	if (!e && !p->cnt)
		e = err_new(ERR_INVALID, "nothing to probe is named");
	if (!e)
		e = make_kinds(p);
	if (!e && !p->o.count_only)
		ses_sites_watch(p->sites, p->o.pids, p->o.pid_cnt, p->o.with_children);
	if (!e)
		e = open_set(p);
	if (e) {
		ses_probes_close(p);
		return e;
	}
	*ret = p;
	return NULL;
}

void ses_probes_close(struct ses_probes *p)
{
	if (!p)
		return;
	probe_close(p->set);
	for (struct pending *n = p->oldest, *next; n; n = next) {
		next = n->newer;
		free(n);
	}
	ses_sites_free(p->sites);
	ses_snap_put(p->sn);
	buf_fini(&p->text);
	free(p->places);
	free(p->points);
	free(p->kinds);
	arena_fini(&p->arena);
	free(p);
}

void ses_probes_detach(struct ses_probes *p)
{
	probe_detach(p->set);
}

bool ses_probes_are_alive(const struct ses_probes *p)
{
	return probe_is_alive(p->set);
}

/* --- calls that began ------------------------------------------------------------------------------------------- */
static struct pending **bucket_of(struct ses_probes *p, uint64_t begin, uint32_t tid, uint32_t point)
{
	uint64_t h = (begin ^ (uint64_t)tid << 32 ^ point) * 0x9e3779b97f4a7c15u;
	return &p->buckets[h >> 51 & (PENDING_BUCKETS - 1)];
}

/* Out of its bucket and out of the order. */
static void take_out(struct ses_probes *p, struct pending *n)
{
	struct pending **at = bucket_of(p, n->begin, n->tid, n->point);
	while (*at != n)
		at = &(*at)->next;
	*at = n->next;
	*(n->older ? &n->older->newer : &p->oldest) = n->newer;
	*(n->newer ? &n->newer->older : &p->newest) = n->older;
	p->pending_cnt--;
}

static struct pending *find_pending(struct ses_probes *p, const struct probe_hit *h)
{
	struct pending *n = *bucket_of(p, h->begin, h->tid, h->point);
	while (n && (n->begin != h->begin || n->tid != h->tid || n->point != h->point))
		n = n->next;
	return n;
}

static bool put_hit(struct ses_probes *p, const struct probe_hit *h, const struct probe_hit *end, bool is_unfinished);

static bool put_unfinished(struct ses_probes *p, struct pending *n)
{
	struct probe_hit h;
	take_out(p, n);
	bool go_on = !probe_decode(&p->popts, n->bytes, n->len, &h) || put_hit(p, &h, NULL, true);
	free(n);
	return go_on;
}

/* Keeps the record of the entry: `bytes` begins with what was decoded as h. */
static bool keep_entry(struct ses_probes *p, const struct probe_hit *h)
{
	bool go_on = p->pending_cnt < PENDING_MAX || put_unfinished(p, p->oldest);
	struct pending *n = malloc(sizeof(*n) + h->rec_len);
	if (!n)
		return put_hit(p, h, NULL, true);
	struct pending **at = bucket_of(p, h->begin, h->tid, h->point);
	*n = (struct pending){.next = *at, .older = p->newest, .begin = h->begin, .tid = h->tid, .point = h->point, .len = h->rec_len};
	memcpy(n->bytes, h->rec, h->rec_len);
	*at = n;
	*(p->newest ? &p->newest->newer : &p->oldest) = n;
	p->newest = n;
	p->pending_cnt++;
	return go_on;
}

/* Calls of threads that ended, or became others, do not return. */
static void on_gone(void *ctx, uint32_t pid, uint32_t tid)
{
	struct ses_probes *p = ctx;
	for (struct pending *n = p->oldest, *next; n; n = next) {
		struct probe_hit h;
		next = n->newer;
		if (n->tid == tid || (!tid && probe_decode(&p->popts, n->bytes, n->len, &h) && h.pid == pid))
			p->is_over |= !put_unfinished(p, n);
	}
}

static bool take_hit(struct ses_probes *p, const struct probe_hit *h)
{
	if (h->phase == PROBE_CALL)
		return put_hit(p, h, h, false);
	if (h->phase == PROBE_ENTRY)
		return p->places[h->point].has_return ? keep_entry(p, h) : put_hit(p, h, NULL, false);
	struct pending *n = find_pending(p, h);
	struct probe_hit begin;
	if (!n || !probe_decode(&p->popts, n->bytes, n->len, &begin))
		return put_hit(p, NULL, h, false);
	take_out(p, n);
	bool go_on = put_hit(p, &begin, h, false);
	free(n);
	return go_on;
}

static bool on_hit(void *ctx, const struct probe_hit *h)
{
	struct ses_probes *p = ctx;
	ses_sites_until(p->sites, h->phase == PROBE_CALL ? h->time + h->ns : h->time, on_gone, p);
	return take_hit(p, h) && !p->is_over;
}

/* --- lines ------------------------------------------------------------------------------------------------------- */
static uint64_t value_of(const struct probe_hit *h, uint32_t arg)
{
	uint64_t v;
	memcpy(&v, h->values + (size_t)8 * arg, sizeof(v));
	return v;
}

static bool is_known(const struct ses_probes *p, const struct probe_hit *h, uint32_t arg)
{
	const struct probe_kind *k = &p->kinds[p->points[h->point].kind];
	return arg < k->arg_cnt && k->args[arg].from != PROBE_NOWHERE && !(h->is_stack_bad && k->args[arg].from == PROBE_STACK);
}

static void put_time(uint64_t ns, struct buf *out)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	unsigned u = 0;
	double v = (double)ns;
	for (; u < 3 && v >= 1000; u++)
		v /= 1000;
	buf_printf(out, u ? "%.1f %s" : "%.0f %s", v, units[u]);
}

/* "name=value, ..." */
static void put_params(const struct ses_probes *p, const struct place *l, const struct probe_hit *h, struct buf *out)
{
	for (uint32_t i = 0; i < l->plan.param_cnt; i++) {
		const struct ses_probe_param *a = &l->plan.params[i];
		buf_add_str(out, i ? ", " : "");
		if (a->name)
			buf_printf(out, "%s=", a->name);
		if (!is_known(p, h, a->arg)) {
			buf_add_ch(out, '?');
			continue;
		}
		const struct trace_slot *slot = &h->slots[a->arg];
		ses_show_value(a->type, value_of(h, a->arg), slot, out);
		if (slot->status == TRACE_FAULTED)
			buf_add_str(out, "(unreadable)");
	}
}

static bool is_void(const struct place *l)
{
	return l->plan.ret_type && l->plan.ret_type->kind == SES_SHOW_NONE && l->plan.ret_type->text && !strcmp(l->plan.ret_type->text, "void");
}

static void put_ret(const struct place *l, const struct probe_hit *end, struct buf *out)
{
	if (is_void(l))
		return;
	buf_add_str(out, " = ");
	if (!l->plan.has_ret)
		buf_add_ch(out, '?');
	else
		ses_show_value(l->plan.ret_type, end->ret, &end->slots[PROBE_ARG_MAX], out);
	if (end->slots[PROBE_ARG_MAX].status == TRACE_FAULTED)
		buf_add_str(out, "(unreadable)");
}

enum { FRAMES_MAX = 24 };

/* Who called, and with stacks who called that; of an instruction only with stacks. The first may be unknown. */
static size_t find_frames(struct ses_probes *p, const struct place *l, const struct probe_hit *h, const struct probe_hit *end,
			  struct ses_site ret[FRAMES_MAX])
{
	struct ses_site_ask ask = {.bias = UINT64_MAX, .is_return = true};
	const struct trace_slot *stack = NULL;
	if (h) {
		ask.pid = h->pid;
		ask.bias = h->ip - l->va;
		ask.ip = l->is_func ? h->has_caller ? h->caller : 0 : h->ip;
		ask.is_return = l->is_func;
		if (l->plan.stack_arg != UINT32_MAX && h->slots[l->plan.stack_arg].status == TRACE_OK) {
			stack = &h->slots[l->plan.stack_arg];
			/* The return address is taken off. */
			uint32_t off = l->is_func ? 8 : 0;
			ask.sp = h->sp + off;
			ask.bp = l->plan.bp_arg != UINT32_MAX ? value_of(h, l->plan.bp_arg) : 0;
			ask.stack = stack->data + off;
			ask.stack_len = stack->len > off ? stack->len - off : 0;
		}
	}
	/* Without the beginning: the return itself is at the caller, and where the target lies is not known. */
	if (!ask.ip && end && end != h && l->is_func) {
		ask.pid = end->pid;
		ask.ip = end->ip;
	}
	if (!ask.ip || (!l->is_func && !stack))
		return 0;
	size_t cnt = ses_sites_find(p->sites, &ask, ret, stack ? FRAMES_MAX : 1);
	if (l->is_func || !cnt)
		return cnt;
	/* What is at hand is the probe's own place. */
	memmove(ret, ret + 1, (cnt - 1) * sizeof(*ret));
	return cnt - 1;
}

static void put_frame(const struct ses_site *f, struct buf *out)
{
	const char *base = f->module ? strrchr(f->module, '/') : NULL, *name = f->func ? f->func : base ? base + 1 : f->module;
	if (name)
		ops_escape(out, name, strlen(name));
	buf_printf(out, name ? "+0x%" PRIx64 : "0x%" PRIx64, f->func ? f->func_off : name ? f->off : f->va);
	if (f->line)
		buf_printf(out, " line %u", f->line);
}

static void put_text_line(struct ses_probes *p, const struct place *l, const struct probe_hit *h, const struct probe_hit *end, bool is_unfinished,
			  struct buf *out)
{
	struct ses_site frames[FRAMES_MAX];
	ops_escape(out, l->name, strlen(l->name));
	buf_add_ch(out, l->is_func ? '(' : ' ');
	if (h)
		put_params(p, l, h, out);
	else
		buf_add_str(out, "...");
	buf_add_str(out, l->is_func ? ")" : "");
	if (end) {
		put_ret(l, end, out);
		buf_add_str(out, "  ");
		put_time(end->ns, out);
	} else if (is_unfinished) {
		buf_add_str(out, " <unfinished>");
	}
	size_t cnt = find_frames(p, l, h, end, frames);
	for (size_t i = 0; i < cnt; i++) {
		if (!i && !frames[i].module && !frames[i].func)
			break;
		buf_add_str(out, i ? " < " : "  from ");
		put_frame(&frames[i], out);
	}
}

static const char *status_name(uint8_t s)
{
	static const char *const names[] = {"ok", "absent", "truncated", "faulted", "late", "raced"};
	return s < ARRAY_LEN(names) ? names[s] : "absent";
}

static void put_opt(struct json *j, const char *key, const char *s)
{
	json_key(j, key);
	if (s)
		json_str(j, s);
	else
		json_null(j);
}

/* A value: the bits, as text, and how what they point to was read. */
static void put_json_value(struct json *j, const struct ses_show *t, bool is_known_value, uint64_t bits, const struct trace_slot *slot)
{
	_cleanup_buf_ struct buf text = {0};
	bool is_text = t && t->kind == SES_SHOW_TEXT && (slot->status == TRACE_OK || slot->status == TRACE_TRUNCATED);
	bool is_read = t && (t->kind == SES_SHOW_TEXT || (t->kind == SES_SHOW_POINTER && t->to));
	put_opt(j, "type", t ? t->text : NULL);
	json_key(j, "value");
	if (is_known_value)
		json_addr(j, bits);
	else
		json_null(j);
	json_key(j, "text");
	if (is_text) {
		json_strn(j, (const char *)slot->data, slot->len);
	} else if (is_known_value) {
		ses_show_value(t, bits, slot, &text);
		json_strn(j, text.data ? text.data : "", text.len);
	} else {
		json_null(j);
	}
	json_key(j, "status");
	json_str(j, !is_known_value ? "absent" : is_read ? status_name(slot->status) : "ok");
}

static void put_json_args(struct ses_probes *p, struct json *j, const struct place *l, const struct probe_hit *h)
{
	json_key(j, "args");
	json_arr(j);
	for (uint32_t i = 0; i < l->plan.param_cnt; i++) {
		const struct ses_probe_param *a = &l->plan.params[i];
		bool known = h && is_known(p, h, a->arg);
		struct trace_slot none = {.status = TRACE_ABSENT};
		char number[16];
		snprintf(number, sizeof(number), "a%u", i + 1);
		json_obj(j);
		json_key(j, "name");
		json_str(j, a->name ? a->name : number);
		put_json_value(j, a->type, known, known ? value_of(h, a->arg) : 0, known ? &h->slots[a->arg] : &none);
		json_end_obj(j);
	}
	json_end_arr(j);
}

static void put_json_site(struct json *j, const struct ses_site *site)
{
	json_obj(j);
	put_opt(j, "module", site->module);
	put_opt(j, "build_id", site->build_id);
	json_key(j, "offset");
	json_addr(j, site->module ? site->off : site->va);
	put_opt(j, "func", site->func);
	json_key(j, "func_offset");
	json_addr(j, site->func_off);
	json_key(j, "line");
	if (site->line)
		json_u64(j, site->line);
	else
		json_null(j);
	json_end_obj(j);
}

static void put_json_line(struct ses_probes *p, const struct place *l, const struct probe_hit *h, const struct probe_hit *end, bool is_unfinished,
			  struct buf *out)
{
	const struct probe_hit *any = h ? h : end;
	const char *exe, *comm = ses_sites_comm(p->sites, any->pid, &exe);
	struct json j = json_make(out);
	struct ses_site frames[FRAMES_MAX];
	json_obj(&j);
	json_key(&j, "v");
	json_u64(&j, 1);
	json_key(&j, "phase");
	json_str(&j, is_unfinished ? "unfinished" : "complete");
	json_key(&j, "seq");
	json_u64(&j, ++p->seq);
	json_key(&j, "cpu");
	json_u64(&j, any->cpu);
	json_key(&j, "time");
	json_addr(&j, end == h && end ? end->time + end->ns : end ? end->time : any->time);
	json_key(&j, "pid");
	json_u64(&j, any->pid);
	json_key(&j, "tid");
	json_u64(&j, any->tid);
	put_opt(&j, "comm", comm);
	put_opt(&j, "exe", exe);
	json_key(&j, "event");
	json_str(&j, "probe");
	json_key(&j, "name");
	json_str(&j, l->name);
	json_key(&j, "addr");
	json_addr(&j, l->va);
	json_key(&j, "at");
	json_str(&j, l->is_func ? "function" : "instruction");
	put_json_args(p, &j, l, h);
	json_key(&j, "ret");
	if (!end || is_void(l)) {
		json_null(&j);
	} else {
		json_obj(&j);
		put_json_value(&j, l->plan.ret_type, l->plan.has_ret, end->ret, &end->slots[PROBE_ARG_MAX]);
		json_end_obj(&j);
	}
	json_key(&j, "ns");
	if (end)
		json_u64(&j, end->ns);
	else
		json_null(&j);
	size_t cnt = find_frames(p, l, h, end, frames);
	json_key(&j, "site");
	if (cnt && (frames[0].module || frames[0].func))
		put_json_site(&j, &frames[0]);
	else
		json_null(&j);
	json_key(&j, "stack");
	json_arr(&j);
	for (size_t i = 1; i < cnt; i++)
		put_json_site(&j, &frames[i]);
	json_end_arr(&j);
	json_end_obj(&j);
}

static bool put_line(struct ses_probes *p)
{
	bool go_on = p->text.failed || !p->line || p->line(p->line_ctx, p->text.data, p->text.len);
	p->text.len = 0;
	p->text.failed = false;
	return go_on;
}

static bool put_hit(struct ses_probes *p, const struct probe_hit *h, const struct probe_hit *end, bool is_unfinished)
{
	struct place *l = &p->places[(h ? h : end)->point];
	p->text.len = 0;
	if (p->o.is_json)
		put_json_line(p, l, h, end, is_unfinished, &p->text);
	else
		put_text_line(p, l, h, end, is_unfinished, &p->text);
	if (!p->o.is_json && p->text.len)
		snprintf(l->last, sizeof(l->last), "%.*s", (int)p->text.len, p->text.data);
	return put_line(p);
}

/* Records the ring had no room for. */
static void put_lost(struct ses_probes *p)
{
	struct probe_totals t;
	probe_get_totals(p->set, &t);
	if (t.lost == p->told_lost)
		return;
	uint64_t cnt = t.lost - p->told_lost;
	p->told_lost = t.lost;
	p->text.len = 0;
	if (p->o.is_json) {
		struct json j = json_make(&p->text);
		json_obj(&j);
		json_key(&j, "v");
		json_u64(&j, 1);
		json_key(&j, "phase");
		json_str(&j, "complete");
		json_key(&j, "seq");
		json_u64(&j, ++p->seq);
		json_key(&j, "event");
		json_str(&j, "lost");
		json_key(&j, "count");
		json_u64(&j, cnt);
		json_key(&j, "reason");
		json_str(&j, "ring");
		json_end_obj(&j);
	} else {
		buf_printf(&p->text, "--- %" PRIu64 " records lost here: the ring was full", cnt);
	}
	bool go_on = put_line(p);
	(void)go_on;
}

struct err *ses_probes_drain(struct ses_probes *p, ses_probe_line_fn *line, void *ctx, uint64_t *ret_cnt)
{
	p->line = line;
	p->line_ctx = ctx;
	p->is_over = false;
	uint64_t now = ses_sites_now();
	struct err *e = probe_drain(p->set, on_hit, p, ret_cnt);
	/* What ended until now, when there are no hits from before any more. */
	if (!e && !p->o.count_only && !p->is_over && probe_is_drained(p->set))
		ses_sites_until(p->sites, now, on_gone, p);
	if (!e && !p->o.count_only)
		put_lost(p);
	return e;
}

void ses_probes_flush(struct ses_probes *p, ses_probe_line_fn *line, void *ctx)
{
	p->line = line;
	p->line_ctx = ctx;
	while (p->oldest && put_unfinished(p, p->oldest))
		;
}

/* --- counts ------------------------------------------------------------------------------------------------------ */
uint32_t ses_probes_cnt(const struct ses_probes *p)
{
	return p->cnt;
}

uint32_t ses_probes_left_out(const struct ses_probes *p, const char **ret_why)
{
	*ret_why = p->why_left_out;
	return p->left_out;
}

/* The upper end of the slot in which that share of the latencies is. */
static uint64_t share(const struct probe_counts *c, uint64_t per_cent)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < PROBE_SLOT_COUNT; i++) {
		sum += c->slots[i];
		if (c->slots[i] && sum * 100 >= c->returns * per_cent)
			return ((uint64_t)2 << i) - 1;
	}
	return 0;
}

void ses_probes_get(const struct ses_probes *p, uint32_t i, struct ses_probe_counts *ret)
{
	struct probe_counts c;
	const struct place *l = &p->places[i];
	probe_get_counts(p->set, i, &c);
	*ret = (struct ses_probe_counts){.addr = l->va, .name = l->name, .where = l->is_func ? "function" : "instruction",
					 .types = l->plan.types,
					 .has_return = l->has_return, .hits = c.hits, .returns = c.returns,
					 .refused = c.refused, .ns = c.ns, .p50 = share(&c, 50), .p90 = share(&c, 90),
					 .p99 = share(&c, 99), .last = l->last};
	memcpy(ret->slots, c.slots, sizeof(c.slots));
}

void ses_probes_totals(const struct ses_probes *p, uint64_t *ret_records, uint64_t *ret_received, uint64_t *ret_lost)
{
	struct probe_totals t;
	probe_get_totals(p->set, &t);
	*ret_records = t.records;
	*ret_received = t.received;
	*ret_lost = t.lost;
}

const char *ses_probes_way(const struct ses_probes *p)
{
	return probe_way_name(probe_way_of(p->set));
}

static void put_json_counts(const struct ses_probes *p, struct buf *out)
{
	struct json j = json_make(out);
	uint64_t records, received, lost;
	json_obj(&j);
	json_key(&j, "end");
	json_bool(&j, true);
	json_key(&j, "probes");
	json_arr(&j);
	for (uint32_t i = 0; i < p->cnt; i++) {
		struct ses_probe_counts c;
		ses_probes_get(p, i, &c);
		json_obj(&j);
		json_key(&j, "name");
		json_str(&j, c.name);
		json_key(&j, "addr");
		json_addr(&j, c.addr);
		json_key(&j, "at");
		json_str(&j, c.where);
		json_key(&j, "types");
		json_str(&j, c.types);
		json_key(&j, "hits");
		json_u64(&j, c.hits);
		json_key(&j, "returns");
		if (c.has_return)
			json_u64(&j, c.returns);
		else
			json_null(&j);
		json_key(&j, "refused");
		json_u64(&j, c.refused);
		json_key(&j, "ns");
		json_u64(&j, c.ns);
		json_key(&j, "slots");
		json_arr(&j);
		uint32_t end = ARRAY_LEN(c.slots);
		while (end && !c.slots[end - 1])
			end--;
		for (uint32_t k = 0; k < end; k++)
			json_u64(&j, c.slots[k]);
		json_end_arr(&j);
		json_end_obj(&j);
	}
	json_end_arr(&j);
	ses_probes_totals(p, &records, &received, &lost);
	json_key(&j, "records");
	json_u64(&j, records);
	json_key(&j, "received");
	json_u64(&j, received);
	json_key(&j, "lost");
	json_u64(&j, lost);
	json_end_obj(&j);
	buf_add_ch(out, '\n');
}

/* "   512 ns |########      | 123" */
static void put_slots(const struct ses_probe_counts *c, struct buf *out)
{
	uint32_t from = 0, to = ARRAY_LEN(c->slots);
	uint64_t most = 1;
	while (from < to && !c->slots[from])
		from++;
	while (to > from && !c->slots[to - 1])
		to--;
	for (uint32_t i = from; i < to; i++)
		most = MAX(most, c->slots[i]);
	for (uint32_t i = from; i < to; i++) {
		_cleanup_buf_ struct buf t = {0};
		put_time((uint64_t)1 << i, &t);
		unsigned n = (unsigned)((double)c->slots[i] * 40 / (double)most + 0.999);
		buf_printf(out, "  %10.*s |%-40.*s| %" PRIu64 "\n", (int)t.len, t.data ? t.data : "", (int)n,
			   "########################################", c->slots[i]);
	}
}

void ses_probes_put_summary(const struct ses_probes *p, bool is_json, struct buf *out)
{
	if (is_json) {
		put_json_counts(p, out);
		return;
	}
	for (uint32_t i = 0; i < p->cnt; i++) {
		struct ses_probe_counts c;
		ses_probes_get(p, i, &c);
		if (!c.hits && !c.refused && p->cnt > 1)
			continue;
		ops_escape(out, c.name, strlen(c.name));
		buf_printf(out, ": %" PRIu64 " hit%s", c.hits, c.hits == 1 ? "" : "s");
		if (c.refused)
			buf_printf(out, ", %" PRIu64 " refused by the condition", c.refused);
		if (c.has_return)
			buf_printf(out, ", %" PRIu64 " returned", c.returns);
		if (c.returns) {
			static const char *const names[] = {", mean ", ", 50% below ", ", 90% below ", ", 99% below "};
			const uint64_t values[] = {c.ns / c.returns, c.p50, c.p90, c.p99};
			for (size_t k = 0; k < ARRAY_LEN(names); k++) {
				buf_add_str(out, names[k]);
				put_time(values[k], out);
			}
		}
		buf_add_ch(out, '\n');
		put_slots(&c, out);
	}
	uint64_t records, received, lost;
	ses_probes_totals(p, &records, &received, &lost);
	if (lost)
		buf_printf(out, "%" PRIu64 " of %" PRIu64 " records lost: the ring was full\n", lost, records);
}
