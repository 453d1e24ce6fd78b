/* SPDX-License-Identifier: Apache-2.0 */
#include "session/ses_code.h"

#include "decomp/dec.h"
#include "lift/lift_image.h"
#include "session/ses_int.h"
#include "session/ses_types.h"

#include <stdio.h>
#include <string.h>

/* scry_h.S holds it as it is installed. */
extern const char ses_scry_h[], ses_scry_h_end[], ses_scry_tcc_h[], ses_scry_tcc_h_end[];

void ses_code_fini(struct ses_code *c)
{
	buf_fini(&c->text);
	cprint_map_fini(&c->map);
}

const char *ses_code_header(size_t *ret_len)
{
	*ret_len = (size_t)(ses_scry_h_end - ses_scry_h);
	return ses_scry_h;
}

const char *ses_code_quick_header(size_t *ret_len)
{
	*ret_len = (size_t)(ses_scry_tcc_h_end - ses_scry_tcc_h);
	return ses_scry_tcc_h;
}

void ses_code_head(struct buf *text)
{
	cprint_prelude(text);
}

/* The name as an identifier; the address makes it the only one. */
static void make_name(const char *s, size_t len, uint64_t va, char *out, size_t cap)
{
	size_t n = 0;
	for (size_t i = 0; i < len && n < cap - 24; i++) {
		bool is_digit = s[i] >= '0' && s[i] <= '9';
		bool is_letter = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') || s[i] == '_';
		if (is_digit && !n)
			out[n++] = '_';
		out[n++] = is_digit || is_letter ? s[i] : '_';
	}
	char hex[24];
	int hex_len = snprintf(hex, sizeof(hex), "_%llx", (unsigned long long)va);
	/* Generated names end in the address already. */
	if (n < (size_t)hex_len || memcmp(out + n - hex_len, hex, (size_t)hex_len) != 0) {
		memcpy(out + n, hex, (size_t)hex_len);
		n += (size_t)hex_len;
	}
	out[n] = '\0';
}

static const char *name_of(struct ses_snap *sn, uint64_t va, char *out, size_t cap)
{
	uint32_t loc = space_loc(sn->space, va);
	size_t n = loc == LOC_NONE ? 0 : ses_name_put(sn, loc, out, cap - 1);
	out[n] = '\0';
	return n ? out : NULL;
}

void ses_code_name(struct ses_snap *sn, uint32_t func, char *out, size_t cap)
{
	struct arena arena = {0};
	uint32_t cnt;
	const struct image_func *funcs = image_funcs(sn->im, &cnt);
	struct ses_text name = ses_func_name(sn, func, &arena);
	make_name(name.s ? name.s : "", name.len, space_va(sn->space, funcs[func].loc), out, cap);
	arena_fini(&arena);
}

struct names {
	struct ses_snap *sn;
	const struct ses_code_set *set;
	uint64_t func_va;
	unsigned depth; /* of callees' callees */
	bool is_staged; /* `stage` and `rules_off` say how far */
	unsigned stage, rules_off;
};

static bool is_start(void *ctx, uint64_t va);
static void callee_of(void *ctx, uint64_t va, struct dec_callee *ret);

static const char *comment_of(void *ctx, uint64_t va, char *out, size_t cap)
{
	const struct names *n = ctx;
	return name_of(n->sn, va, out, cap);
}

static bool fn_of(void *ctx, uint64_t va, char *out, size_t cap)
{
	const struct names *n = ctx;
	uint32_t loc = space_loc(n->sn->space, va);
	uint32_t func = loc == LOC_NONE ? UINT32_MAX : image_func_starting(n->sn->im, loc);
	if (func == UINT32_MAX || !n->set->has(n->set->ctx, func))
		return false;
	ses_code_name(n->sn, func, out, cap);
	return true;
}

/* What somebody, or the file, calls the block; where the function begins that is the function's name. */
static bool label_of(void *ctx, uint64_t va, char *out, size_t cap)
{
	const struct names *n = ctx;
	char name[256];
	uint32_t loc = space_loc(n->sn->space, va);
	if (va == n->func_va || loc == LOC_NONE)
		return false;
	size_t len = n->sn->edits ? ses_edit_name_put(n->sn, va, name, sizeof(name)) : 0;
	const struct image_name *own = len ? NULL : image_name_at(n->sn->im, loc);
	struct ses_text t = len ? ses_text_of(name, len) : own ? ses_pool(n->sn, own->name) : ses_text_of("", 0);
	if (t.len)
		make_name(t.s, t.len, va, out, cap);
	return t.len != 0;
}

/* Of what is looked at in another width than it has, the name says that. */
static bool global_of(void *ctx, uint64_t va, unsigned bits, char *out, size_t cap)
{
	const struct names *n = ctx;
	char name[256];
	uint32_t loc = space_loc(n->sn->space, va), start, len;
	enum image_item_kind kind;
	if (loc == LOC_NONE || !image_item_at(n->sn->im, loc, &start, &len, &kind) || start != loc || kind == IMAGE_CODE || kind == IMAGE_ALIGN)
		return false;
	size_t name_len = ses_name_put(n->sn, loc, name, sizeof(name));
	if (!name_len || cap < 64)
		return false;
	make_name(name, name_len, va, out, cap - 8);
	if (len != bits / 8)
		snprintf(out + strlen(out), 8, "_u%u", bits);
	return true;
}

#define TEXT_SHOWN_MAX 60

static bool text_of(void *ctx, uint64_t va, struct buf *text)
{
	const struct names *n = ctx;
	uint32_t loc = space_loc(n->sn->space, va);
	const struct image_string *str = loc == LOC_NONE ? NULL : image_string_at(n->sn->im, loc);
	if (!str || loc < str->loc || loc - str->loc >= str->len || (str->loc != loc && str->encoding > IMAGE_ENC_UTF8))
		return false;
	/* The end of a longer one may be one, too. */
	const struct image_string part = {.loc = loc, .len = str->len - (loc - str->loc), .encoding = str->encoding};
	ses_put_string(n->sn, &part, TEXT_SHOWN_MAX, text);
	return true;
}

static void keep_word(struct ses_code *c, uint64_t v)
{
	for (uint32_t i = 0; i < c->word_cnt; i++)
		if (c->words[i] == v)
			return;
	if (c->word_cnt < SES_CODE_WORD_MAX)
		c->words[c->word_cnt++] = v;
}

/* Constants of comparisons, subtractions and masks: what decides branches. */
static void find_words(const struct ir_func *f, struct ses_code *c)
{
	for (uint32_t i = 0; i < f->rec_cnt; i++) {
		const struct ir_rec *r = &f->recs[i];
		if (r->op != IR_CMP && r->op != IR_SUB && r->op != IR_AND && r->op != IR_FLAG)
			continue;
		const ir_ref ops[] = {r->a, r->b};
		for (unsigned k = 0; k < 2; k++) {
			uint32_t at = ir_index(ops[k]);
			if (ir_tag(ops[k]) != IR_TAG_CONST || at >= f->const_cnt || ir_bits(f->consts[at].width) > 64)
				continue;
			uint64_t v = f->words[f->consts[at].first_word];
			if (v > 1)
				keep_word(c, v);
		}
	}
}

/* Whether a function begins at an address of the file; the convention says the rest. */
/* How many arguments a prototype has, when all are in general registers; -1: not so, or not known. */
static int plain_args(struct ses_text proto)
{
	static const char *const other[] = {"...", "float", "double", "_Complex", "__int128", "va_list"};
	size_t at = 0, opened = 0;
	int params = 1;
	while (at < proto.len && proto.s[at] != '(')
		at++;
	for (size_t i = at; i < proto.len; i++) {
		params += proto.s[i] == ',';
		opened += proto.s[i] == '(';
		for (size_t k = 0; k < ARRAY_LEN(other); k++)
			if (proto.len - i >= strlen(other[k]) && !memcmp(proto.s + i, other[k], strlen(other[k])))
				return -1;
	}
	/* Functions as parameters have commas of their own, structs may be in memory. */
	const char *args = proto.s + at;
	size_t len = proto.len - at;
	bool has_struct = len && (memmem(args, len, "struct ", 7) || memmem(args, len, "union ", 6)) && !memchr(args, '*', len);
	if (at == proto.len || params > 6 || opened != 1 || has_struct)
		return -1;
	return proto.len - at >= 6 && !memcmp(proto.s + at, "(void)", 6) ? 0 : params;
}

/* What is known of a callee: of an import by its prototype, of a function of the target by its code. */
static void ask_callee(const struct names *n, uint32_t func, uint32_t loc, struct dec_callee *ret)
{
	struct ses_snap *sn = n->sn;
	struct arena a = {0};
	if (loc != LOC_NONE && image_import_at(sn->im, loc)) {
		int args = plain_args(ses_prototype_at(sn, space_va(sn->space, loc), &a, NULL));
		/* The first three are what calls of imports are compared by. */
		if (args >= 0)
			dec_callee_plain(lift_machine(sn->arch->id), args < 3 ? 3 : (unsigned)args, ret);
		arena_fini(&a);
		return;
	}
	/* Of another function of the target nobody knows what it leaves alone, and compilers do. */
	memcpy(ret->may_keep, ret->changes, sizeof(ret->may_keep));
	if (func == UINT32_MAX || n->depth)
		return;
	struct ir_func *f;
	struct lift_stats stats;
	struct names deeper = *n;
	deeper.depth = 1;
	const struct dec_opts opts = {.callee = callee_of, .is_start = is_start, .ctx = &deeper};
	struct err *e = lift_image_func(&a, sn->im, func, &f, &stats);
	if (!e)
		dec_callee_of(f, &opts, ret);
	err_free(e);
	arena_fini(&a);
}

/* By function, what callers of it, and callers' callers, have to know; the same whoever asks first. */
struct ses_callees {
	struct known_callee {
		atomic_uchar state; /* 0: nobody asked, 1: being written, 2: there */
		struct dec_callee callee;
	} *list[2];
};

void ses_callees_free(struct ses_callees *c)
{
	if (c) {
		free(c->list[0]);
		free(c->list[1]);
	}
	free(c);
}

/* Null: no memory; then each is asked anew. */
static struct ses_callees *callees_of(struct ses_snap *sn)
{
	struct ses_callees *c = sn->callees;
	uint32_t cnt;
	if (c)
		return c;
	image_funcs(sn->im, &cnt);
	c = calloc(1, sizeof(*c));
	if (c) {
		c->list[0] = calloc(cnt + (size_t)1, sizeof(*c->list[0]));
		c->list[1] = calloc(cnt + (size_t)1, sizeof(*c->list[1]));
	}
	struct ses_callees *none = NULL;
	if (!c || !c->list[0] || !c->list[1] || !atomic_compare_exchange_strong(&sn->callees, &none, c)) {
		ses_callees_free(c);
		return none;
	}
	return c;
}

static void callee_of(void *ctx, uint64_t va, struct dec_callee *ret)
{
	const struct names *n = ctx;
	struct ses_snap *sn = n->sn;
	uint32_t cnt, loc = space_loc(sn->space, va), func = loc == LOC_NONE ? UINT32_MAX : image_func_starting(sn->im, loc);
	const struct image_func *funcs = image_funcs(sn->im, &cnt);
	struct ses_callees *c = func < cnt ? callees_of(sn) : NULL;
	struct known_callee *k = c ? &c->list[n->depth ? 1 : 0][func] : NULL;
	if (k && atomic_load_explicit(&k->state, memory_order_acquire) == 2) {
		*ret = k->callee;
		return;
	}
	if (func < cnt && funcs[func].thunk_to != LOC_NONE) {
		loc = funcs[func].thunk_to;
		func = image_func_starting(sn->im, loc);
	}
	ask_callee(n, func < cnt ? func : UINT32_MAX, loc, ret);
	unsigned char nobody = 0;
	if (!k || !atomic_compare_exchange_strong(&k->state, &nobody, 1))
		return;
	k->callee = *ret;
	atomic_store_explicit(&k->state, 2, memory_order_release);
}

static bool is_start(void *ctx, uint64_t va)
{
	const struct names *n = ctx;
	uint32_t loc = space_loc(n->sn->space, va);
	return loc != LOC_NONE && image_func_starting(n->sn->im, loc) != UINT32_MAX;
}

/* Bytes of segments nobody writes to, as the program sees them. */
static bool rodata(void *ctx, uint64_t va, void *out, size_t len)
{
	const struct names *n = ctx;
	int seg = space_seg_of_va(n->sn->space, va);
	if (seg < 0 || n->sn->space->segs[seg].perm & 2 || n->sn->space->segs[seg].is_extern)
		return false;
	return space_read(n->sn->space, space_loc(n->sn->space, va), out, len) == len;
}

/* The best form there is: what the passes make, else the lifted function itself. */
#define STAGES_BEFORE_PASSES 3

/* The optional pass a stage adds; DEC_PASS_COUNT: none. */
static unsigned pass_of(unsigned stage)
{
	unsigned left = stage - STAGES_BEFORE_PASSES, p = 0;
	for (; p < DEC_PASS_COUNT; p++)
		if (dec_pass_is_optional((enum dec_pass)p) && !left--)
			break;
	return p;
}

unsigned ses_code_stage_cnt(void)
{
	unsigned n = STAGES_BEFORE_PASSES;
	while (pass_of(n) < DEC_PASS_COUNT)
		n++;
	return n;
}

const char *ses_code_stage_name(unsigned stage)
{
	static const char *const names[STAGES_BEFORE_PASSES] = {"lift", "ssa", "rules"};
	return stage < STAGES_BEFORE_PASSES ? names[stage] : dec_pass_name((enum dec_pass)pass_of(stage));
}

static struct dec_opts opts_of(struct names *names)
{
	struct dec_opts o = {.callee = callee_of, .is_start = is_start, .rodata = rodata, .ctx = names};
	if (!names->is_staged)
		return o;
	o.rules_off = names->stage < 2 ? dec_rule_cnt() : names->rules_off;
	for (unsigned p = 0; p < DEC_PASS_COUNT; p++) {
		bool is_on = false;
		for (unsigned s = STAGES_BEFORE_PASSES; s <= names->stage; s++)
			is_on |= pass_of(s) == p;
		o.passes_off |= (unsigned)!is_on << p;
	}
	return o;
}

static struct err *print(struct names *names, struct ir_func *f, struct cprint_opts *opts, bool wants_map, struct ses_code *ret)
{
	struct dec_func made;
	const struct dec_opts dec = opts_of(names);
	bool is_lifted = names->is_staged && !names->stage;
	struct err *e = is_lifted ? err_new(ERR_UNSUPPORTED, "not wanted") : dec_run(f, &dec, &made);
	if (!e) {
		const struct cprint_views views = {made.loc_signs, made.rec_signs};
		opts->is_state = true;
		opts->views = &views;
		ret->level = dec_level_name(made.level);
		e = cprint_func(made.f, opts, &ret->text, wants_map ? &ret->map : NULL);
	}
	if (!e || e == &err_nomem)
		return e;
	err_free(e);
	opts->is_state = false;
	opts->views = NULL;
	ret->level = dec_level_name(DEC_L4);
	ret->map.lines.cnt = 0;
	return cprint_func(f, opts, &ret->text, wants_map ? &ret->map : NULL);
}

static struct err *make(struct names *names, uint32_t func, bool wants_map, struct arena *scratch, struct ses_code *ret)
{
	struct ses_snap *sn = names->sn;
	struct ir_func *f;
	struct lift_stats stats;
	uint32_t cnt;
	const struct image_func *funcs = image_funcs(sn->im, &cnt);
	if (func >= cnt)
		return err_new(ERR_NOT_FOUND, "there is no function %u", func);
	ret->va = names->func_va = space_va(sn->space, funcs[func].loc);
	ret->word_cnt = 0;
	ses_code_name(sn, func, ret->name, sizeof(ret->name));
	struct err *e = lift_image_func(scratch, sn->im, func, &f, &stats);
	struct cprint_opts opts = {
		.name = ret->name, .name_of = comment_of, .fn_of = names->set ? fn_of : NULL, .label_of = label_of,
		.global_of = global_of, .text_of = text_of, .ctx = names,
		.scratch = scratch,
	};
	if (!e)
		e = print(names, f, &opts, wants_map, ret);
	if (!e) {
		_cleanup_buf_ struct buf machine = {0};
		cprint_machine(f->machine, &machine);
		snprintf(ret->prototype, sizeof(ret->prototype), "void %s(struct %.*s *m)", ret->name, (int)machine.len,
			 machine.data ? machine.data : "");
		find_words(f, ret);
		ret->insn_cnt = stats.insn_cnt;
		ret->generic_cnt = stats.generic_cnt;
		ret->bad_cnt = stats.bad_cnt;
	}
	return e;
}

struct err *ses_code_func(struct ses_snap *sn, uint32_t func, bool wants_map, struct arena *scratch, struct ses_code *ret)
{
	struct names names = {.sn = sn};
	return make(&names, func, wants_map, scratch, ret);
}

struct err *ses_code_func_in(struct ses_snap *sn, uint32_t func, const struct ses_code_set *set, struct arena *scratch,
			     struct ses_code *ret)
{
	struct names names = {.sn = sn, .set = set};
	return make(&names, func, false, scratch, ret);
}

struct err *ses_code_func_stage(struct ses_snap *sn, uint32_t func, unsigned stage, unsigned rules_off, struct arena *scratch, struct ses_code *ret)
{
	struct names names = {.sn = sn, .is_staged = true, .stage = stage, .rules_off = rules_off};
	return make(&names, func, false, scratch, ret);
}
