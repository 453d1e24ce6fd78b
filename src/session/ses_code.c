/* SPDX-License-Identifier: Apache-2.0 */
#include "session/ses_code.h"

#include "decomp/dec.h"
#include "lift/lift_image.h"
#include "session/ses_int.h"
#include "session/ses_types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* scry_h.S holds it as it is installed. */
extern const char ses_scry_h[], ses_scry_h_end[], ses_scry_tcc_h[], ses_scry_tcc_h_end[];

void ses_code_fini(struct ses_code *c)
{
	buf_fini(&c->defines);
	buf_fini(&c->text);
	buf_fini(&c->stops);
	free(c->callees.data);
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
	struct ses_code *code;
	bool is_staged; /* `stage` and `rules_off` say how far */
	unsigned stage, rules_off;
};

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
	/* With the state. */
	ses_code_entry_name(va, out, cap);
	return true;
}

static void keep_callee(struct ses_code *c, uint32_t func)
{
	for (size_t i = 0; i < c->callees.cnt; i++)
		if (c->callees.data[i] == func)
			return;
	c->has_failed |= !VEC_PUSH(&c->callees, func);
}

/* A function by its own name, with C's way of calling. */
static void typed_name(void *ctx, uint64_t va, char *out, size_t cap)
{
	const struct names *n = ctx;
	uint32_t func = image_func_starting(n->sn->im, space_loc(n->sn->space, va));
	struct ir_sig sig;
	ses_code_name(n->sn, func, out, cap);
	if (ses_proto_sig(n->sn, va, &sig))
		keep_callee(n->code, func);
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

static bool is_start(void *ctx, uint64_t va);

/* Whether `r` is an address of code, as far as it is known without running anything. */
static bool is_code_at(struct names *n, const struct ir_func *f, ir_ref r, uint64_t *va)
{
	if (ir_tag(r) == IR_TAG_VALUE && ir_index(r) < f->rec_cnt && f->recs[ir_index(r)].op == IR_GADDR)
		r = f->recs[ir_index(r)].a;
	if (!ir_const_get(f, r, va))
		return false;
	int seg = space_seg_of_va(n->sn->space, *va);
	return seg >= 0 && n->sn->space->segs[seg].perm & FMT_X && !n->sn->space->segs[seg].is_extern;
}

/* What of a function no C can be given for: code that was not found to be one, and code that is written to. */
static void find_stops(struct names *n, const struct ir_func *f, struct ses_code *c)
{
	for (uint32_t i = 0; i < f->order_cnt; i++) {
		const struct ir_rec *r = &f->recs[f->order[i]];
		uint64_t va, at = r->origin < f->origin_cnt ? f->origins[r->origin].va : f->va;
		bool is_jump = r->op == IR_CALL || r->op == IR_IJMP;
		if ((!is_jump && r->op != IR_STORE) || !is_code_at(n, f, r->a, &va) || (is_jump && is_start(n, va)))
			continue;
		buf_printf(&c->stops, "0x%llx: %s 0x%llx, %s\n", (unsigned long long)at, is_jump ? "goes to" : "writes to", (unsigned long long)va,
			   is_jump ? "where no function begins: it is run as it is there" : "which is code: what it becomes is not shown");
	}
}

static void callee_of(void *ctx, uint64_t va, struct dec_callee *ret)
{
	const struct names *n = ctx;
	ses_proto_callee(n->sn, va, ret);
}

/* A function whose C is not made, or not wanted so, takes all from the state. */
static bool sig_of(void *ctx, uint64_t va, struct ir_sig *ret)
{
	const struct names *n = ctx;
	uint32_t loc = space_loc(n->sn->space, va), func = loc == LOC_NONE ? UINT32_MAX : image_func_starting(n->sn->im, loc);
	return ses_proto_sig(n->sn, va, ret) && (!n->set || n->set->has(n->set->ctx, func));
}

static bool call_sig(void *ctx, uint64_t va, const uint64_t *args, unsigned known, struct ir_sig *ret)
{
	const struct names *n = ctx;
	return ses_variadic_sig(n->sn, va, args, known, ret);
}

static int translates(void *ctx, uint64_t va)
{
	const struct names *n = ctx;
	return ses_variadic_translates(n->sn, va);
}

static bool word_of(void *ctx, uint64_t va, int arg, char *out, size_t cap)
{
	const struct names *n = ctx;
	return ses_word(n->sn, va, arg, out, cap);
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
	struct dec_opts o = {.callee = callee_of, .is_start = is_start, .rodata = rodata, .sig = sig_of, .call_sig = call_sig,
			     .translates = translates, .word = word_of, .ctx = names};
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

/* As it was lifted: with the state; behind it what calls it as others call it. */
static struct err *print_lifted(struct names *names, struct ir_func *f, struct cprint_opts *opts, bool wants_map, struct ses_code *ret)
{
	char name[sizeof(ret->name) + 8];
	opts->is_state = false;
	opts->views = NULL;
	ret->level = DEC_L4;
	ret->map.lines.cnt = 0;
	ret->callees.cnt = 0;
	snprintf(name, sizeof(name), "%s%s", ret->name, ret->has_sig ? "_state" : "");
	opts->name = name;
	struct err *e = cprint_func(f, opts, &ret->text, wants_map ? &ret->map : NULL);
	if (!e && ret->has_sig) {
		buf_add_ch(&ret->text, '\n');
		cprint_stub(f->machine, &ret->sig, ret->name, names->func_va, name, &ret->text);
	}
	return e;
}

static struct err *print(struct names *names, struct ir_func *f, struct cprint_opts *opts, bool wants_map, struct ses_code *ret)
{
	struct dec_func made;
	struct dec_opts dec = opts_of(names);
	bool is_lifted = names->is_staged && !names->stage;
	uint64_t leaves[DEC_LOC_WORDS];
	dec.leaves = ses_proto_leaves(names->sn, names->func_va, leaves) ? leaves : NULL;
	ret->has_sig = ses_proto_sig(names->sn, names->func_va, &ret->sig);
	dec.self = ret->has_sig ? &ret->sig : NULL;
	struct err *e = is_lifted ? err_new(ERR_UNSUPPORTED, "not wanted") : dec_run(f, &dec, &made);
	if (!e) {
		const struct cprint_views views = {made.loc_signs, made.rec_signs, made.rec_words};
		bool is_plain = false;
		opts->is_state = true;
		opts->views = &views;
		opts->is_plain = &is_plain;
		e = cprint_func(made.f, opts, &ret->text, wants_map ? &ret->map : NULL);
		opts->is_plain = NULL;
		ret->level = is_plain && made.level < DEC_L2 ? DEC_L2 : made.level;
		if (!e && wants_map)
			find_stops(names, made.f, ret);
	}
	if (!e || e == &err_nomem)
		return e;
	buf_printf(&ret->stops, "0x%llx: as it was lifted, without the passes: %s\n", (unsigned long long)names->func_va, e->text);
	err_free(e);
	if (wants_map)
		find_stops(names, f, ret);
	return print_lifted(names, f, opts, wants_map, ret);
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
	ret->stops.len = 0;
	ret->callees.cnt = 0;
	names->code = ret;
	ses_code_name(sn, func, ret->name, sizeof(ret->name));
	struct err *e = lift_image_func(scratch, sn->im, func, &f, &stats);
	struct cprint_opts opts = {
		.name = ret->name, .name_of = comment_of, .fn_of = names->set ? fn_of : NULL, .label_of = label_of,
		.global_of = global_of, .defines = &ret->defines, .text_of = text_of, .typed_name = typed_name,
		.ctx = names,
		.scratch = scratch,
	};
	if (!e)
		e = print(names, f, &opts, wants_map, ret);
	if (!e) {
		_cleanup_buf_ struct buf proto = {0};
		ses_code_prototype(sn, func, &proto);
		snprintf(ret->prototype, sizeof(ret->prototype), "%.*s", (int)proto.len, proto.data ? proto.data : "");
		find_words(f, ret);
		ret->insn_cnt = stats.insn_cnt;
		ret->generic_cnt = stats.generic_cnt;
		ret->bad_cnt = stats.bad_cnt;
		if (stats.bad_cnt)
			buf_printf(&ret->stops, "0x%llx: %u bytes are no instruction\n", (unsigned long long)names->func_va, stats.bad_cnt);
	}
	return e || !ret->has_failed ? e : &err_nomem;
}

/* --- how its C is called ------------------------------------------------------------------------------------------------ */
void ses_code_entry_name(uint64_t va, char *out, size_t cap)
{
	snprintf(out, cap, "scry_at_%llx", (unsigned long long)va);
}

static uint64_t va_of(const struct ses_snap *sn, uint32_t func)
{
	uint32_t cnt;
	return space_va(sn->space, image_funcs(sn->im, &cnt)[func].loc);
}

bool ses_code_prototype(struct ses_snap *sn, uint32_t func, struct buf *text)
{
	struct ir_sig sig;
	char name[96];
	bool has_sig = ses_proto_sig(sn, va_of(sn, func), &sig);
	ses_code_name(sn, func, name, sizeof(name));
	if (has_sig) {
		cprint_prototype(&sig, name, text);
	} else {
		buf_printf(text, "void %s(struct ", name);
		cprint_machine(lift_machine(sn->arch->id), text);
		buf_add_str(text, " *m)");
	}
	return has_sig;
}

void ses_code_entry(struct ses_snap *sn, uint32_t func, struct buf *text)
{
	struct ir_sig sig;
	char name[96], entry[40];
	uint64_t va = va_of(sn, func);
	bool has_sig = ses_proto_sig(sn, va, &sig);
	if (sn->arch->bits != 64)
		return;
	ses_code_name(sn, func, name, sizeof(name));
	ses_code_entry_name(va, entry, sizeof(entry));
	cprint_entry(lift_machine(sn->arch->id), has_sig ? &sig : NULL, entry, name, text);
}

void ses_code_stub(struct ses_snap *sn, uint32_t func, struct buf *text)
{
	struct ir_sig sig;
	char name[96];
	uint64_t va = va_of(sn, func);
	ses_code_name(sn, func, name, sizeof(name));
	if (ses_proto_sig(sn, va, &sig))
		cprint_stub(lift_machine(sn->arch->id), &sig, name, va, NULL, text);
}

void ses_code_import(struct ses_snap *sn, uint32_t func, struct buf *text)
{
	struct ir_sig sig;
	char name[96], entry[40];
	uint64_t va = va_of(sn, func);
	ses_code_name(sn, func, name, sizeof(name));
	ses_code_entry_name(va, entry, sizeof(entry));
	if (ses_proto_sig(sn, va, &sig))
		cprint_stub(lift_machine(sn->arch->id), &sig, name, va, entry, text);
}

void ses_code_decls(struct ses_snap *sn, const struct ses_code *c, struct buf *text)
{
	for (size_t i = 0; i < c->callees.cnt; i++) {
		ses_code_prototype(sn, c->callees.data[i], text);
		buf_add_str(text, ";\n");
	}
	buf_add(text, c->defines.data, c->defines.len);
}

void ses_code_alone(struct ses_snap *sn, uint32_t func, const struct ses_code *c, struct buf *text)
{
	char own[40];
	/* Others of the file may call it, and mean its machine code. */
	snprintf(own, sizeof(own), "scry_own_%llx", (unsigned long long)c->va);
	for (size_t i = 0; i < c->callees.cnt; i++) {
		unsigned long long at = va_of(sn, c->callees.data[i]);
		if (c->callees.data[i] == func)
			continue;
		buf_printf(text, "#ifndef SCRY_STUB_%llx\n#define SCRY_STUB_%llx\nstatic ", at, at);
		ses_code_stub(sn, c->callees.data[i], text);
		buf_add_str(text, "#endif\n");
	}
	buf_printf(text, "#define %s %s\n", c->name, own);
	buf_add(text, c->defines.data, c->defines.len);
	buf_add(text, c->text.data, c->text.len);
	ses_code_entry(sn, func, text);
	buf_printf(text, "#undef %s\n", c->name);
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
