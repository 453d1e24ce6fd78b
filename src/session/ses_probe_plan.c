/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a prototype to where the arguments are: System V AMD64 psABI 3.2.3 and the Intel386 psABI 2.2. What the kernel cannot
 * tell (vector registers) or C does not say is not shown, rather than guessed.
 */
#include "session/ses_probe_int.h"
#include "session/ses_types.h"

#include "types/types_system.h"

#include <string.h>

enum { SHOW_DEPTH = 4, SHOW_MEMBERS = 64, FETCH_STRUCT_MAX = 256, NO_ARG = UINT32_MAX };

struct planner {
	struct ses_snap *sn;
	struct ses_typeset *ts;
	struct arena *a;
	const struct ses_plan_ask *ask;
	struct ses_probe_plan *plan;
	bool is_32bit;
	bool is_recovered;         /* widths are known, signs are not */
	bool trusts_const;         /* only what a pointer to const leads to is there when the function begins */
	struct ses_probe_param *params;
	uint32_t int_regs, vec_regs, stack_at;
};

/* Numbers of registers, once by name. */
static uint16_t reg_at(const char *name)
{
	uint16_t reg = 0;
	uint8_t size;
	bool ok = probe_reg_find(name, strlen(name), &reg, &size);
	(void)ok;
	return reg;
}

static const char *const arg_regs[] = {"rdi", "rsi", "rdx", "rcx", "r8", "r9"};
static const char *const all_regs[] = {"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp",
				       "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

/* --- how types are shown --------------------------------------------------------------------------------------- */
static const struct ses_show *show_of(struct planner *p, struct types_ref r, unsigned depth);

static const char *type_text(struct planner *p, struct types_ref r)
{
	_cleanup_buf_ struct buf b = {0};
	types_print(p->ts->t, r, NULL, &b);
	struct ses_text line = ses_types_line(&b);
	return b.failed ? NULL : arena_strndup(p->a, line.s, line.len);
}

static void show_members(struct planner *p, uint32_t id, struct ses_show *s, unsigned depth)
{
	uint32_t cnt;
	const struct types_member *m = types_members(p->ts->t, id, &cnt);
	struct ses_show_member *list = ARENA_ARRAY(p->a, struct ses_show_member, MIN(cnt, (uint32_t)SHOW_MEMBERS));
	for (uint32_t i = 0; list && i < cnt && i < SHOW_MEMBERS; i++) {
		/* Asking for a type may move the set's arrays. */
		m = types_members(p->ts->t, id, &cnt);
		struct types_member one = m[i];
		if (one.is_bitfield && (!one.name || !one.bit_len || one.bit_len > 64))
			continue;
		char *name = one.name ? arena_strndup(p->a, one.name, strlen(one.name)) : NULL;
		list[s->cnt++] = (struct ses_show_member){.name = name, .type = show_of(p, one.type, depth + 1), .off = (uint32_t)one.off,
							  .bit_off = (uint8_t)one.bit_off, .bit_len = one.is_bitfield ? (uint8_t)one.bit_len : 0};
	}
	s->members = list;
}

static void show_enum(struct planner *p, uint32_t id, struct ses_show *s)
{
	uint32_t cnt;
	const struct types_const *c = types_consts(p->ts->t, id, &cnt);
	const char **names = ARENA_ARRAY(p->a, const char *, cnt);
	int64_t *values = ARENA_ARRAY(p->a, int64_t, cnt);
	if (!names || !values)
		return;
	for (uint32_t i = 0; i < cnt; i++) {
		names[i] = c[i].name ? arena_strndup(p->a, c[i].name, strlen(c[i].name)) : NULL;
		values[i] = c[i].value;
	}
	s->names = names;
	s->values = values;
	s->cnt = cnt;
}

static void show_pointer(struct planner *p, struct types_ref target, struct ses_show *s, unsigned depth)
{
	struct types_ref real = types_real(p->ts->t, target);
	const struct types_type *t = types_get(p->ts->t, real.id);
	s->kind = SES_SHOW_POINTER;
	bool is_read = !p->trusts_const || (real.quals & TYPES_CONST);
	if (depth || !is_read)
		return;
	if (t->kind == TYPES_INT && (t->base == TYPES_B_CHAR || t->base == TYPES_B_SCHAR)) {
		s->kind = SES_SHOW_TEXT;
		return;
	}
	if ((t->kind == TYPES_STRUCT || t->kind == TYPES_UNION) && !t->len && t->name) {
		ses_types_know_tag(p->ts, t->name, strlen(t->name));
		real = types_real(p->ts->t, target);
		t = types_get(p->ts->t, real.id);
	}
	bool is_scalar = t->kind == TYPES_INT || t->kind == TYPES_FLOAT || t->kind == TYPES_POINTER || t->kind == TYPES_ENUM;
	bool is_struct = t->kind == TYPES_STRUCT || t->kind == TYPES_UNION;
	if ((is_struct || (is_scalar && p->ask->args)) && t->len && t->len <= FETCH_STRUCT_MAX)
		s->to = show_of(p, target, depth + 1);
}

static const struct ses_show *show_of(struct planner *p, struct types_ref r, unsigned depth)
{
	struct ses_show *s = ARENA_NEW(p->a, struct ses_show);
	struct types_ref real = types_real(p->ts->t, r);
	const struct types_type *t = types_get(p->ts->t, real.id);
	if (!s)
		return NULL;
	s->text = type_text(p, r);
	s->size = (uint32_t)MIN(t->len, (uint64_t)UINT32_MAX);
	s->is_signed = types_is_signed(p->ts->t, real);
	switch (t->kind) {
	case TYPES_INT:
		s->kind = t->base == TYPES_B_BOOL				     ? SES_SHOW_BOOL
			: t->base == TYPES_B_CHAR || t->base == TYPES_B_SCHAR ? SES_SHOW_CHAR
									      : SES_SHOW_INT;
		break;
	case TYPES_FLOAT:
		s->kind = t->len == 4 || t->len == 8 ? SES_SHOW_FLOAT : SES_SHOW_ARRAY;
		break;
	case TYPES_ENUM:
		s->kind = SES_SHOW_ENUM;
		show_enum(p, real.id, s);
		break;
	case TYPES_POINTER:
		show_pointer(p, t->target, s, depth);
		break;
	case TYPES_STRUCT:
	case TYPES_UNION:
		s->kind = SES_SHOW_STRUCT;
		if (depth < SHOW_DEPTH)
			show_members(p, real.id, s, depth);
		break;
	case TYPES_ARRAY:
	case TYPES_VECTOR:
		s->kind = SES_SHOW_ARRAY;
		s->cnt = (uint32_t)MIN(t->cnt, (uint64_t)UINT32_MAX);
		if (depth < SHOW_DEPTH)
			s->to = show_of(p, t->target, depth + 1);
		break;
	default:
		s->kind = SES_SHOW_NONE;
	}
	return s;
}

/* --- where arguments are ----------------------------------------------------------------------------------------- */

static uint32_t add_arg(struct planner *p, struct probe_arg arg)
{
	if (p->plan->arg_cnt == PROBE_ARG_MAX)
		return NO_ARG;
	p->plan->args[p->plan->arg_cnt] = arg;
	return p->plan->arg_cnt++;
}

/* What of the memory at the value is wanted. */
static void set_fetch(struct planner *p, const struct ses_show *s, struct probe_arg *arg)
{
	if (s && s->kind == SES_SHOW_TEXT) {
		arg->fetch = PROBE_STRING;
		arg->len = (uint16_t)p->ask->text_max;
	} else if (s && s->kind == SES_SHOW_POINTER && s->to) {
		arg->fetch = PROBE_BYTES;
		arg->len = (uint16_t)s->to->size;
	}
}

static uint8_t value_size(const struct ses_show *s)
{
	return s && (s->size == 1 || s->size == 2 || s->size == 4) ? (uint8_t)s->size : 8;
}

/* Where there is no condition registers are recorded as they are, so that functions with other types have the same program. */
static struct probe_arg arg_of(struct planner *p, const struct ses_show *s, const char *name, enum probe_from from, uint32_t at)
{
	struct probe_arg arg = {.name = p->ask->is_exact ? name : NULL, .from = (uint8_t)from, .at = (uint16_t)at, .size = 8};
	if (p->ask->is_exact || p->is_32bit) {
		arg.size = value_size(s);
		arg.is_signed = !s || s->is_signed || p->is_recovered;
	}
	set_fetch(p, s, &arg);
	return arg;
}

/* Without a condition the six are always there, in their order. */
static uint32_t take_reg(struct planner *p, const struct ses_show *s, const char *name)
{
	if (p->int_regs == ARRAY_LEN(arg_regs))
		return NO_ARG;
	uint32_t n = p->int_regs++;
	struct probe_arg arg = arg_of(p, s, name, PROBE_REG, reg_at(arg_regs[n]));
	if (p->ask->is_exact)
		return add_arg(p, arg);
	p->plan->args[n] = arg;
	return n;
}

static uint32_t take_stack(struct planner *p, const struct ses_show *s, const char *name, uint64_t len, uint32_t align)
{
	uint32_t word = p->is_32bit ? 4 : 8;
	uint32_t at = p->stack_at;
	if (!p->is_32bit && align > word)
		at = (at - word + align - 1) / align * align + word;
	p->stack_at = at + (uint32_t)MIN((len + word - 1) / word * word, (uint64_t)PROBE_STACK_MAX);
	if (p->stack_at > PROBE_STACK_MAX || len > 8)
		return NO_ARG;
	return add_arg(p, arg_of(p, s, name, PROBE_STACK, at));
}

enum klass { CLASS_NONE, CLASS_INT, CLASS_VEC, CLASS_MEMORY };

/* The class of both halves of an aggregate of up to 16 bytes. */
static void classify(const struct types *t, struct types_ref r, uint64_t off, unsigned depth, enum klass ret[2])
{
	r = types_real(t, r);
	const struct types_type *k = types_get(t, r.id);
	uint32_t cnt;
	if (depth > 8 || off + k->len > 16 || (k->align && off % k->align)) {
		ret[0] = ret[1] = CLASS_MEMORY;
	} else if (k->kind == TYPES_STRUCT || k->kind == TYPES_UNION) {
		const struct types_member *m = types_members(t, r.id, &cnt);
		for (uint32_t i = 0; i < cnt && i < 64; i++) {
			if (m[i].is_bitfield)
				ret[(off + m[i].off) / 8 & 1] = CLASS_INT;
			else
				classify(t, m[i].type, off + m[i].off, depth + 1, ret);
		}
	} else if (k->kind == TYPES_ARRAY) {
		uint64_t each = types_get(t, types_real(t, k->target).id)->len;
		for (uint64_t i = 0; i < k->cnt && i < 16 && each; i++)
			classify(t, k->target, off + i * each, depth + 1, ret);
	} else if (k->kind == TYPES_FLOAT && k->len <= 8) {
		if (ret[off / 8 & 1] == CLASS_NONE)
			ret[off / 8 & 1] = CLASS_VEC;
	} else if (k->kind == TYPES_FLOAT || k->kind == TYPES_COMPLEX || k->kind == TYPES_VECTOR) {
		ret[0] = ret[1] = CLASS_MEMORY;
	} else {
		ret[off / 8 & 1] = CLASS_INT;
		if (k->len > 8)
			ret[1] = CLASS_INT;
	}
}

/* x86-64; gives the value's number. A struct in two registers is passed over: its value would be half of it. */
static uint32_t place_64(struct planner *p, struct types_ref r, const struct ses_show *s, const char *name)
{
	struct types_ref real = types_real(p->ts->t, r);
	struct types_type t = *types_get(p->ts->t, real.id);
	enum klass k[2] = {CLASS_NONE, CLASS_NONE};
	if (t.kind == TYPES_FLOAT && t.len <= 8) {
		k[0] = CLASS_VEC;
	} else if (t.kind == TYPES_FLOAT && t.len == 16 && t.base != TYPES_B_FLOAT128) {
		k[0] = CLASS_MEMORY;
	} else if (t.kind == TYPES_FLOAT || t.kind == TYPES_VECTOR) {
		k[0] = t.len <= 16 ? CLASS_VEC : CLASS_MEMORY;
	} else if (t.kind == TYPES_COMPLEX) {
		k[0] = t.len <= 16 ? CLASS_VEC : CLASS_MEMORY;
		k[1] = t.len == 16 ? CLASS_VEC : CLASS_NONE;
	} else if (t.len > 16) {
		k[0] = CLASS_MEMORY;
	} else if (t.kind == TYPES_VALIST) {
		k[0] = CLASS_INT;
	} else {
		classify(p->ts->t, real, 0, 0, k);
	}
	uint32_t ints = (k[0] == CLASS_INT) + (k[1] == CLASS_INT), vecs = (k[0] == CLASS_VEC) + (k[1] == CLASS_VEC);
	if (k[0] == CLASS_MEMORY || p->int_regs + ints > ARRAY_LEN(arg_regs) || p->vec_regs + vecs > 8)
		return take_stack(p, s, name, t.len, t.align);
	p->vec_regs += vecs;
	if (vecs || ints != 1) {
		for (uint32_t i = 0; i < ints; i++) {
			uint32_t skipped = p->ask->is_exact ? p->int_regs++ : take_reg(p, NULL, NULL);
			(void)skipped;
		}
		return NO_ARG;
	}
	return take_reg(p, s, name);
}

static uint32_t place(struct planner *p, struct types_ref r, const struct ses_show *s, const char *name)
{
	const struct types_type *t = types_get(p->ts->t, types_real(p->ts->t, r).id);
	return p->is_32bit ? take_stack(p, s, name, t->len, 4) : place_64(p, r, s, name);
}

static void begin_regs(struct planner *p)
{
	for (uint32_t i = 0; !p->is_32bit && !p->ask->is_exact && i < ARRAY_LEN(arg_regs); i++)
		p->plan->args[p->plan->arg_cnt++] = (struct probe_arg){.from = PROBE_REG, .at = reg_at(arg_regs[i]), .size = 8};
}

/* A value the kernel does not tell has a number in conditions all the same. */
static uint32_t place_numbered(struct planner *p, struct types_ref r, const struct ses_show *s, const char *name)
{
	uint32_t arg = place(p, r, s, name);
	if (arg == NO_ARG && p->ask->is_exact) {
		uint32_t number = add_arg(p, (struct probe_arg){.name = name, .from = PROBE_NOWHERE, .size = 8});
		(void)number;
	}
	return arg;
}

/* A value that is returned in memory: its address is the first argument. */
static bool returns_memory(struct planner *p, struct types_ref r)
{
	struct types_ref real = types_real(p->ts->t, r);
	const struct types_type *t = types_get(p->ts->t, real.id);
	enum klass k[2] = {CLASS_NONE, CLASS_NONE};
	if (t->kind != TYPES_STRUCT && t->kind != TYPES_UNION)
		return false;
	if (p->is_32bit || t->len > 16)
		return true;
	classify(p->ts->t, real, 0, 0, k);
	return k[0] == CLASS_MEMORY;
}

static void plan_return(struct planner *p, struct types_ref r)
{
	struct ses_probe_plan *plan = p->plan;
	const struct types_type *t = types_get(p->ts->t, types_real(p->ts->t, r).id);
	bool is_int = t->kind == TYPES_INT || t->kind == TYPES_ENUM || t->kind == TYPES_POINTER;
	bool is_wide = t->len > (p->is_32bit ? 4 : 8);
	/* What is returned is there whatever the pointer says. */
	p->trusts_const = false;
	plan->ret_type = show_of(p, r, 0);
	plan->has_ret = is_int && !is_wide;
	plan->ret = (struct probe_arg){.from = PROBE_REG, .size = 8, .is_signed = true};
	if (!plan->has_ret)
		return;
	if (p->ask->is_exact) {
		plan->ret.size = value_size(plan->ret_type);
		plan->ret.is_signed = plan->ret_type && (plan->ret_type->is_signed || p->is_recovered);
	}
	set_fetch(p, plan->ret_type, &plan->ret);
}

static struct err *plan_proto(struct planner *p, struct types_ref func)
{
	struct types_ref real = types_real(p->ts->t, func);
	const struct types_type *t = types_get(p->ts->t, real.id);
	uint32_t cnt;
	const struct types_param *list = types_params(p->ts->t, real.id, &cnt);
	struct types_ref result = t->target;
	p->params = ARENA_ARRAY(p->a, struct ses_probe_param, cnt);
	if (!p->params)
		return &err_nomem;
	p->plan->params = p->params;
	bool is_other = t->flags & (TYPES_F_FASTCALL | TYPES_F_MS_ABI); /* a convention that is not modelled: names and types alone */
	begin_regs(p);
	p->stack_at = p->is_32bit ? 4 : 8;
	if (returns_memory(p, result)) {
		p->stack_at += p->is_32bit ? 4 : 0;
		if (!p->is_32bit)
			p->int_regs = 1;
	}
	for (uint32_t i = 0; i < cnt; i++) {
		list = types_params(p->ts->t, real.id, &cnt);
		struct types_param one = list[i];
		const char *name = one.name ? arena_strndup(p->a, one.name, strlen(one.name)) : NULL;
		const struct ses_show *s = show_of(p, one.type, 0);
		uint32_t arg = is_other ? NO_ARG : place_numbered(p, one.type, s, name);
		p->params[p->plan->param_cnt++] = (struct ses_probe_param){.name = name, .type = s, .arg = arg};
	}
	plan_return(p, result);
	return NULL;
}

/* --- what the user says ------------------------------------------------------------------------------------------- */

/* The length of the item that begins at s: up to a comma outside of brackets. */
static size_t item_len(const char *s)
{
	size_t n = 0;
	for (int depth = 0; s[n] && (s[n] != ',' || depth); n++)
		depth += s[n] == '(' || s[n] == '[' || s[n] == '{' ? 1 : s[n] == ')' || s[n] == ']' || s[n] == '}' ? -1 : 0;
	return n;
}

/* "REG" or "REG:TYPE"; false when it is neither. */
static bool is_register(const char *item, size_t len, uint16_t *ret, uint8_t *ret_size, size_t *ret_len)
{
	size_t n = 0;
	while (n < len && item[n] != ':')
		n++;
	*ret_len = n;
	return probe_reg_find(item, n, ret, ret_size);
}

static struct err *plan_item(struct planner *p, const char *item, size_t len)
{
	struct ses_probe_param *param = &p->params[p->plan->param_cnt];
	uint16_t reg;
	uint8_t size;
	size_t name_len;
	bool is_reg = is_register(item, len, &reg, &size, &name_len);
	struct types_ref r = {0};
	const char *text = item;
	size_t text_len = len;
	if (is_reg) {
		static const char *const plain[] = {[1] = "unsigned char", [2] = "unsigned short", [4] = "unsigned int", [8] = "unsigned long"};
		text = name_len < len ? item + name_len + 1 : plain[size];
		text_len = name_len < len ? len - name_len - 1 : strlen(text);
	}
	struct err *e = len == 1 && *item == '-' ? NULL : ses_types_parse(p->ts, text, text_len, &r);
	if (e)
		return err_prefix(e, "-a: '%.*s' is no C type or register", (int)len, item);
	if (!is_reg && !r.id) { /* passed over */
		uint32_t at = p->is_32bit ? take_stack(p, NULL, NULL, 4, 4) : take_reg(p, NULL, NULL);
		(void)at;
		return NULL;
	}
	const struct types_type *real = types_get(p->ts->t, types_real(p->ts->t, r).id);
	if (real->kind == TYPES_VOID || !real->len)
		return err_new(ERR_INVALID, "-a: '%.*s' has no size here: it is incomplete", (int)text_len, text);
	param->type = show_of(p, r, 0);
	if (is_reg && !(param->type && (param->type->kind == SES_SHOW_POINTER || param->type->kind == SES_SHOW_TEXT)))
		size = MIN(size, value_size(param->type));
	if (is_reg) {
		param->name = arena_strndup(p->a, item, name_len);
		struct probe_arg arg = {.name = p->ask->is_exact ? param->name : NULL, .from = PROBE_REG, .at = reg, .size = size,
					.is_signed = param->type && param->type->is_signed};
		set_fetch(p, param->type, &arg);
		param->arg = add_arg(p, arg);
	} else {
		param->name = arena_printf(p->a, "a%u", p->plan->param_cnt + 1);
		param->arg = place_numbered(p, r, param->type, param->name);
	}
	p->plan->param_cnt++;
	return NULL;
}

static struct err *plan_items(struct planner *p)
{
	p->params = ARENA_ARRAY(p->a, struct ses_probe_param, PROBE_ARG_MAX);
	if (!p->params)
		return &err_nomem;
	p->plan->params = p->params;
	/* Registers of one's own choice need no others. */
	uint16_t reg;
	uint8_t size;
	size_t name_len;
	if (!is_register(p->ask->args, item_len(p->ask->args), &reg, &size, &name_len))
		begin_regs(p);
	p->stack_at = p->is_32bit ? 4 : 8;
	for (const char *s = p->ask->args; *s;) {
		size_t len = item_len(s), skip = 0;
		while (skip < len && s[skip] == ' ')
			skip++;
		if (p->plan->param_cnt == PROBE_ARG_MAX - 6)
			return err_new(ERR_INVALID, "-a: up to %d values", PROBE_ARG_MAX - 6);
		struct err *e = plan_item(p, s + skip, len - skip);
		if (e)
			return e;
		s += len + (s[len] == ',');
	}
	return NULL;
}

/* Nobody said anything: registers by their names. */
static struct err *plan_regs(struct planner *p, const char *const *names, uint32_t cnt)
{
	struct types_ref r;
	struct err *e = ses_types_parse(p->ts, "void *", 6, &r);
	p->params = ARENA_ARRAY(p->a, struct ses_probe_param, cnt);
	if (e || !p->params)
		return e ? e : &err_nomem;
	p->plan->params = p->params;
	const struct ses_show *s = show_of(p, r, 0);
	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t arg = add_arg(p, (struct probe_arg){.from = PROBE_REG, .at = reg_at(names[i]), .size = 8, .is_signed = true});
		p->params[p->plan->param_cnt++] = (struct ses_probe_param){.name = names[i], .type = s, .arg = arg};
	}
	return NULL;
}

/* The prototype the system's headers give a function this library exports. */
static struct ses_text library_prototype(struct ses_snap *sn, uint64_t va)
{
	static const char *const libs[] = {"libc.so", "libm.so", "libpthread.so", "libdl.so", "librt.so", "libresolv.so", "ld-linux"};
	struct ses_text soname = ses_pool(sn, image_meta(sn->im)->soname);
	bool is_libc = false;
	for (size_t i = 0; i < ARRAY_LEN(libs); i++)
		is_libc |= soname.len > strlen(libs[i]) && !memcmp(soname.s, libs[i], strlen(libs[i]));
	uint32_t cnt, loc = space_loc(sn->space, va);
	const struct image_symbol *syms = image_symbols(sn->im, &cnt);
	for (uint32_t i = 0; is_libc && i < cnt; i++) {
		if (syms[i].loc != loc)
			continue;
		struct ses_text name = ses_pool(sn, syms[i].name);
		const struct types_system_row *r = types_system_find(name.s, name.len, false);
		if (r && r->kind == TYPES_SYSTEM_FUNC)
			return ses_text_of(types_system_text + r->text_off, r->text_len);
	}
	return ses_text_of("", 0);
}

/* Recovering looks at the whole program once. */
enum { RECOVER_MAX = 30000 /* functions */ };

/* What says what the arguments are. */
static struct ses_text prototype_of(struct ses_snap *sn, uint64_t va, struct arena *a, const char **ret_types)
{
	const char *source = "";
	uint32_t cnt;
	struct ses_text proto = ses_prototype_at(sn, va, a, &source);
	*ret_types = source;
	if (!proto.len) {
		*ret_types = "system";
		proto = library_prototype(sn, va);
	}
	image_funcs(sn->im, &cnt);
	if (!proto.len && cnt <= RECOVER_MAX) {
		*ret_types = "recovered";
		proto = ses_proto_recovered(sn, va, a);
	}
	return proto;
}

static void add_stack(struct planner *p)
{
	uint16_t len = p->plan->arg_cnt <= PROBE_ARG_MAX - 2 ? SES_PROBE_STACK : 0;
	p->plan->stack_arg = p->plan->bp_arg = NO_ARG;
	if (!p->ask->with_stack || p->is_32bit || !len)
		return;
	p->plan->stack_arg = add_arg(p, (struct probe_arg){.from = PROBE_REG, .at = reg_at("rsp"), .size = 8, .fetch = PROBE_BYTES, .len = len,
							   .is_hidden = true});
	p->plan->bp_arg = add_arg(p, (struct probe_arg){.from = PROBE_REG, .at = reg_at("rbp"), .size = 8, .is_hidden = true});
}

static struct err *plan_args(struct planner *p, struct types_ref func, bool has_proto)
{
	if (p->ask->args) {
		p->trusts_const = false;
		struct err *e = plan_items(p);
		if (!e && has_proto)
			plan_return(p, types_get(p->ts->t, types_real(p->ts->t, func).id)->target);
		return e;
	}
	if (has_proto)
		return plan_proto(p, func);
	if (!p->ask->is_func)
		return plan_regs(p, all_regs, p->is_32bit ? 8 : ARRAY_LEN(all_regs));
	return p->is_32bit ? NULL : plan_regs(p, arg_regs, ARRAY_LEN(arg_regs));
}

struct err *ses_probe_plan(struct ses_snap *sn, const struct ses_plan_ask *ask, struct arena *a, struct ses_probe_plan *ret)
{
	_cleanup_types_lock_ struct ses_typeset *ts = NULL;
	memset(ret, 0, sizeof(*ret));
	ret->ret = (struct probe_arg){.from = PROBE_REG, .size = 8, .is_signed = true};
	ret->has_ret = true;
	const char *types = "registers";
	struct ses_text proto = ask->is_func ? prototype_of(sn, ask->va, a, &types) : ses_text_of("", 0);
	struct err *e = ses_types_lock(sn, &ts);
	if (e)
		return e;
	struct planner p = {.sn = sn, .ts = ts, .a = a, .ask = ask, .plan = ret, .is_32bit = sn->arch->id == ARCH_ID_I386,
			    .trusts_const = !strcmp(types, "system") || !strcmp(types, "builtin"), .is_recovered = !strcmp(types, "recovered")};
	struct types_ref func;
	const char *name;
	bool has_proto = false;
	if (proto.len) {
		e = ses_types_parse_proto(ts, proto.s, proto.len, &func, &name);
		has_proto = !e && !(types_get(ts->t, types_real(ts->t, func).id)->flags & TYPES_F_NOPROTO);
		err_free(e);
	}
	ret->types = ask->args ? "args" : has_proto ? types : "registers";
	e = plan_args(&p, func, has_proto);
	add_stack(&p);
	return e;
}
