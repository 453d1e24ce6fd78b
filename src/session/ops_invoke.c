/* SPDX-License-Identifier: Apache-2.0 */
#include "session/ops_invoke.h"

#include "session/ses_int.h"
#include "session/ses_types.h"

#include "arch/arch.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- arguments ------------------------------------------------------------------------------------------------------ */
#define OUT_FILL 0xaa /* what out:N holds before: bytes the function did not write show */

static bool has_prefix(const char *s, const char *prefix, const char **ret_rest)
{
	size_t len = strlen(prefix);
	*ret_rest = s + len;
	return !strncmp(s, prefix, len);
}

/* All of `s` as an integer: decimal or 0x hex, with a sign or not, within 64 bits. */
static bool read_int(const char *s, uint64_t *ret)
{
	bool is_minus = *s == '-';
	const char *p = s + (is_minus || *s == '+');
	int base = p[0] == '0' && (p[1] == 'x' || p[1] == 'X') ? 16 : 10;
	char *end;
	p += base == 16 ? 2 : 0;
	/* strtoull() itself would take spaces and further signs. */
	if (!(*p >= '0' && *p <= '9') && !(base == 16 && strchr("abcdefABCDEF", *p) && *p))
		return false;
	errno = 0;
	unsigned long long v = strtoull(p, &end, base);
	if (*end || errno || (is_minus && v > (uint64_t)1 << 63))
		return false;
	*ret = is_minus ? 0 - (uint64_t)v : v;
	return true;
}

/* 1.5, -2e3, 1.5f; false for what has neither point nor exponent. */
static bool read_float(const char *s, struct box_arg *ret)
{
	size_t len = strlen(s);
	if (strspn(s, "+-0123456789.eEfF") != len || !strpbrk(s, ".eE") || !strpbrk(s, "0123456789"))
		return false;
	bool is_single = s[len - 1] == 'f' || s[len - 1] == 'F';
	char *end;
	if (is_single) {
		float f = strtof(s, &end);
		uint32_t bits;
		memcpy(&bits, &f, sizeof(bits));
		ret->kind = BOX_ARG_F32;
		ret->value = bits;
	} else {
		double d = strtod(s, &end);
		memcpy(&ret->value, &d, sizeof(d));
		ret->kind = BOX_ARG_F64;
	}
	return end == s + len - is_single;
}

static unsigned hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10) : 16;
}

/* Digits that were meant as an integer, whether they fit or not. */
static bool is_digits(const char *s)
{
	s += *s == '-' || *s == '+';
	bool is_hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
	s += is_hex ? 2 : 0;
	return *s && strspn(s, is_hex ? "0123456789abcdefABCDEF" : "0123456789") == strlen(s);
}

/* f64:X and f32:X: whatever strtod() knows, infinities and hexadecimal ones too. */
static struct err *read_named_float(const char *rest, const char *word, bool is_single, struct box_arg *ret)
{
	char *end = NULL;
	errno = 0;
	if (is_single) {
		float f = strtof(rest, &end);
		memcpy(&ret->value, &f, sizeof(f));
	} else {
		double d = strtod(rest, &end);
		memcpy(&ret->value, &d, sizeof(d));
	}
	ret->kind = is_single ? BOX_ARG_F32 : BOX_ARG_F64;
	if (!*rest || *rest == ' ' || *end || (errno == ERANGE && fabs(strtod(rest, NULL)) > 1))
		return err_new(ERR_INVALID, "%s: a floating point number of that width belongs here", word);
	return NULL;
}

static bool is_infinite(const struct box_arg *a)
{
	double d;
	float f;
	memcpy(&d, &a->value, sizeof(d));
	memcpy(&f, &a->value, sizeof(f));
	return a->kind == BOX_ARG_F32 ? isinf(f) : a->kind == BOX_ARG_F64 && isinf(d);
}

/* Pairs of hex digits, with spaces between or not. */
static struct err *read_hex(const char *s, const char *word, struct arena *a, struct box_arg *ret)
{
	uint8_t *bytes = arena_alloc(a, strlen(s) / 2 + 1);
	if (!bytes)
		return &err_nomem;
	ret->bytes = bytes;
	for (; *s; s += 2) {
		while (*s == ' ')
			s++;
		if (!*s)
			break;
		if (hex_value(s[0]) > 15 || hex_value(s[1]) > 15)
			return err_new(ERR_INVALID, "%s: neither a number of bytes nor pairs of hex digits", word);
		bytes[ret->len++] = (uint8_t)(hex_value(s[0]) << 4 | hex_value(s[1]));
	}
	return NULL;
}

static struct err *read_buf(const char *rest, const char *word, bool is_out, struct arena *a, struct box_arg *ret)
{
	ret->kind = BOX_ARG_BUF;
	bool is_decimal = *rest && strspn(rest, "0123456789") == strlen(rest);
	uint64_t len;
	if (!is_decimal && !is_out)
		return read_hex(rest[0] == '0' && (rest[1] == 'x' || rest[1] == 'X') ? rest + 2 : rest, word, a, ret);
	if (!is_decimal || !read_int(rest, &len) || len > BOX_BUF_TOTAL)
		return err_new(ERR_INVALID, "%s: a number of bytes up to %u belongs here", word, BOX_BUF_TOTAL);
	ret->len = (uint32_t)len;
	if (is_out && len) {
		uint8_t *bytes = arena_alloc(a, len);
		if (!bytes)
			return &err_nomem;
		memset(bytes, OUT_FILL, len);
		ret->bytes = bytes;
	}
	return NULL;
}

static struct err *read_arg(struct ses_snap *sn, const char *word, struct arena *a, struct box_arg *ret)
{
	const char *rest;
	*ret = (struct box_arg){.kind = BOX_ARG_INT};
	if (has_prefix(word, "buf:", &rest))
		return read_buf(rest, word, false, a, ret);
	if (has_prefix(word, "out:", &rest))
		return read_buf(rest, word, true, a, ret);
	if (has_prefix(word, "addr:", &rest)) {
		struct err *e = ses_resolve(sn, rest, &ret->value);
		if (!e && space_seg_of_va(sn->space, ret->value) < 0)
			e = err_new(ERR_NOT_FOUND, "%s: is nowhere in the target", word);
		ret->is_va = true;
		return e;
	}
	if (has_prefix(word, "f64:", &rest) || has_prefix(word, "f32:", &rest))
		return read_named_float(rest, word, word[1] == '3', ret);
	bool is_text = has_prefix(word, "str:", &rest);
	if (!is_text && read_int(word, &ret->value))
		return NULL;
	bool is_float = !is_text && !is_digits(word) && read_float(word, ret);
	if (is_float && !is_infinite(ret))
		return NULL;
	if (is_float || (!is_text && is_digits(word)))
		return err_fix(err_new(ERR_INVALID, "%s: is too large a number", word), "str:%s passes it as text", word);
	*ret = (struct box_arg){.kind = BOX_ARG_BUF, .bytes = (const uint8_t *)(is_text ? rest : word)};
	ret->len = (uint32_t)MIN(strlen((const char *)ret->bytes) + 1, (size_t)UINT32_MAX);
	return NULL;
}

/* --- what the prototype says ------------------------------------------------------------------------------------------ */
/* Bits of a floating point type that can be passed or given back: 32, 64, and 80 of a long double; 0 for all else. */
static unsigned float_bits(const struct types *t, struct types_ref r)
{
	const struct types_type *y = types_get(t, types_real(t, r).id);
	switch (y->kind == TYPES_FLOAT ? y->base : TYPES_B_VOID) {
	case TYPES_B_FLOAT:
	case TYPES_B_FLOAT32:
		return 32;
	case TYPES_B_DOUBLE:
	case TYPES_B_FLOAT64:
	case TYPES_B_FLOAT32X:
		return 64;
	case TYPES_B_LDOUBLE:
	case TYPES_B_FLOAT80:
	case TYPES_B_FLOAT64X:
		return 80;
	default:
		return 0;
	}
}

static struct err *bad_arg(const struct types *t, struct types_ref r, uint32_t i, const char *what)
{
	_cleanup_buf_ struct buf text = {0};
	types_print(t, r, "", &text);
	while (text.len && text.data[text.len - 1] == ' ')
		text.len--;
	return err_new(ERR_INVALID, "argument %u: the function takes %.*s, %s", i + 1, (int)text.len, text.len ? text.data : "", what);
}

/* What was given for a float or double, as one. */
static void convert_float(struct box_arg *a, unsigned bits)
{
	double d;
	float f;
	if (a->kind == BOX_ARG_INT) {
		d = (double)(int64_t)a->value;
	} else if (a->kind == BOX_ARG_F32) {
		memcpy(&f, &a->value, sizeof(f));
		d = (double)f;
	} else {
		memcpy(&d, &a->value, sizeof(d));
	}
	f = (float)d;
	a->value = 0;
	memcpy(&a->value, bits == 32 ? (const void *)&f : (const void *)&d, bits / 8);
	a->kind = bits == 32 ? BOX_ARG_F32 : BOX_ARG_F64;
}

/* As signed or as unsigned. */
static bool fits(uint64_t v, uint64_t len)
{
	unsigned bits = (unsigned)len * 8;
	return bits >= 64 || v >> bits == 0 || (int64_t)v >> (bits - 1) == -1;
}

static struct err *check_arg(const struct types *t, struct types_ref r, uint32_t i, struct box_arg *a)
{
	const struct types_type *y = types_get(t, types_real(t, r).id);
	unsigned bits = float_bits(t, r);
	bool is_place = a->kind == BOX_ARG_BUF || a->is_va, is_int = y->kind == TYPES_INT || y->kind == TYPES_ENUM;
	if (bits == 32 || bits == 64) {
		if (is_place)
			return bad_arg(t, r, i, "not an address or text");
		convert_float(a, bits);
		return NULL;
	}
	if (y->kind != TYPES_VALIST && ((!is_int && y->kind != TYPES_POINTER && !(y->flags & TYPES_F_TRANSPARENT)) || y->len > 8))
		return bad_arg(t, r, i, "which cannot be passed yet");
	if (a->kind == BOX_ARG_F32 || a->kind == BOX_ARG_F64)
		return bad_arg(t, r, i, "no floating point number");
	if (is_int && y->len < 8 && is_place)
		return bad_arg(t, r, i, "too short for an address or text");
	return is_int && !is_place && !fits(a->value, y->len) ? bad_arg(t, r, i, "too short for this number") : NULL;
}

static struct err *check_args(const struct types *t, const struct types_type *func, uint32_t id, struct ops_invoke *v)
{
	uint32_t cnt;
	const struct types_param *params = types_params(t, id, &cnt);
	if (func->flags & (TYPES_F_CONVENTIONS & ~(uint32_t)TYPES_F_SYSV_ABI))
		return err_new(ERR_UNSUPPORTED, "the function is called by another convention than the System V ABI's");
	if (!(func->flags & TYPES_F_NOPROTO) && (v->arg_cnt < cnt || (v->arg_cnt > cnt && !(func->flags & TYPES_F_VARIADIC))))
		return err_new(ERR_INVALID, "%.*s takes %s%u argument%s; given were %u", (int)v->name.len, v->name.s,
			       func->flags & TYPES_F_VARIADIC ? "at least " : "", cnt, cnt == 1 ? "" : "s", v->arg_cnt);
	for (uint32_t i = 0; i < cnt && i < v->arg_cnt; i++) {
		struct err *e = check_arg(t, params[i].type, i, &v->args[i]);
		if (e)
			return e;
	}
	return NULL;
}

static struct err *take_result_type(const struct types *t, const struct types_type *func, struct ops_invoke *v)
{
	struct types_ref r = types_real(t, func->target);
	const struct types_type *y = types_get(t, r.id);
	bool is_whole = y->kind == TYPES_VOID || y->kind == TYPES_POINTER || ((y->kind == TYPES_INT || y->kind == TYPES_ENUM) && y->len <= 8);
	v->ret_float = float_bits(t, r);
	if (!is_whole && !v->ret_float)
		return err_fix(err_new(ERR_INVALID, "%.*s gives back a value that is in several registers or in memory", (int)v->name.len, v->name.s),
			       "--ret long shows the first register; what is longer than 16 bytes goes where a first argument out:N points");
	v->ret_bits = y->kind == TYPES_VOID ? 0 : 64;
	if ((y->kind == TYPES_INT || y->kind == TYPES_ENUM) && y->len < 8)
		v->ret_bits = (unsigned)y->len * 8;
	v->ret_is_unsigned = y->kind == TYPES_POINTER || (y->kind == TYPES_INT && !types_is_signed(t, r));
	return NULL;
}

/* What the prototype says of arguments and, unless the request says that, of the result. A prototype that cannot be read is as if
 * nobody had said it. */
static struct err *obey_prototype(struct ses_snap *sn, struct ops_invoke *v, bool has_ret)
{
	_cleanup_types_lock_ struct ses_typeset *ts = NULL;
	struct types_ref r;
	const char *name;
	struct err *e = v->prototype.len ? ses_types_lock(sn, &ts) : &err_not_found;
	if (!e) {
		ses_types_know(ts, v->prototype.s, v->prototype.len);
		e = ses_types_parse_proto(ts, v->prototype.s, v->prototype.len, &r, &name);
	}
	if (e) {
		err_free(e);
		return NULL;
	}
	r = types_real(ts->t, r);
	const struct types_type *func = types_get(ts->t, r.id);
	e = take_result_type(ts->t, func, v);
	/* With its result in memory a function has an argument more. */
	if (e && has_ret) {
		err_free(e);
		return NULL;
	}
	return e ? e : check_args(ts->t, func, r.id, v);
}

static struct err *find_func(struct ops_req *rq, struct ses_snap *sn, struct ops_invoke *v)
{
	const char *word = ops_arg_str(rq->args, "func");
	struct err *e = ses_resolve(sn, word, &v->va);
	if (e)
		return e;
	uint32_t loc = space_loc(sn->space, v->va);
	uint32_t f = loc == LOC_NONE ? UINT32_MAX : image_func_starting(sn->im, loc);
	if (f == UINT32_MAX)
		return err_fix(err_new(ERR_NOT_FOUND, "%s: no function starts there", word), "scry functions FILE lists them");
	v->name = ses_func_name(sn, f, rq->arena);
	return NULL;
}

struct err *ops_invoke_read(struct ops_req *rq, struct ses_snap *sn, struct ops_invoke *ret)
{
	size_t cnt;
	const char *const *words = ops_arg_texts(rq->args, "args", &cnt), *as = ops_arg_str(rq->args, "ret");
	*ret = (struct ops_invoke){.ret_bits = 64};
	struct err *e = find_func(rq, sn, ret);
	if (!e && cnt > BOX_ARG_MAX)
		e = err_new(ERR_INVALID, "%zu arguments; at most %u can be passed", cnt, BOX_ARG_MAX);
	for (size_t i = 0; !e && i < cnt; i++) {
		e = read_arg(sn, words[i], rq->arena, &ret->args[i]);
		ret->arg_cnt = (unsigned)i + 1;
	}
	if (e)
		return e;
	ret->prototype = ses_prototype_at(sn, ret->va, rq->arena, NULL);
	e = obey_prototype(sn, ret, as != NULL);
	if (!e && as) {
		ret->ret_float = !strcmp(as, "ldouble") ? 80 : !strcmp(as, "double") ? 64 : !strcmp(as, "float") ? 32 : 0;
		ret->ret_bits = !strcmp(as, "int") || !strcmp(as, "uint") ? 32 : !strcmp(as, "void") ? 0 : 64;
		ret->ret_is_unsigned = !strcmp(as, "uint") || !strcmp(as, "ulong");
	}
	return e;
}

struct err *ops_invoke_limits(struct ops_req *rq, struct box_opts *ret)
{
	uint64_t ms = ops_arg_u64(rq->args, "timeout_ms", 2000), now = ses_now_ns(), end = rq->call->deadline_ns;
	if (!ms || ms > 600000)
		return err_new(ERR_INVALID, "--timeout-ms: from 1 to 600000");
	if (end)
		ms = MIN(ms, end > now ? (end - now) / 1000000 + 1 : 1);
	/* Of the processor a second more, so that it is the wall clock that ends the call. */
	*ret = (struct box_opts){.wall_ms = (uint32_t)ms, .cpu_s = (uint32_t)(ms / 1000) + 1, .mem_len = (uint64_t)256 << 20,
				 .cancel = rq->call->cancel};
	return NULL;
}

/* --- the answer ------------------------------------------------------------------------------------------------------- */
static long double float_of(const struct ops_invoke *v, const struct box_result *r)
{
	long double l = 0;
	double d;
	float f;
	memcpy(&l, r->st0, sizeof(r->st0));
	memcpy(&d, r->xmm0, sizeof(d));
	memcpy(&f, r->xmm0, sizeof(f));
	return v->ret_float == 80 ? l : v->ret_float == 32 ? (long double)f : (long double)d;
}

/* The result cut to its width, with its sign. */
static uint64_t int_of(const struct ops_invoke *v, const struct box_result *r)
{
	unsigned shift = 64 - (v->ret_bits ? v->ret_bits : 64);
	return v->ret_is_unsigned ? r->rax << shift >> shift : (uint64_t)((int64_t)(r->rax << shift) >> shift);
}

static const char *signal_text(int sig, char text[24])
{
	const char *s = sigabbrev_np(sig);
	snprintf(text, 24, s ? "SIG%s" : "%.0ssignal %d", s ? s : "", sig);
	return text;
}

static struct ses_text import_name(struct ses_snap *sn, uint32_t number)
{
	uint32_t cnt, sym_cnt;
	const struct image_import *list = image_imports(sn->im, &cnt);
	const struct image_symbol *syms = image_symbols(sn->im, &sym_cnt);
	if (number >= cnt || list[number].symbol >= sym_cnt)
		return ses_text_of("", 0);
	size_t len;
	const char *s = image_text(sn->im, syms[list[number].symbol].name, &len);
	return ses_text_of(s, (uint32_t)len);
}

/* An address and, of one in the target, where that is: "0x1234 main+0x12". */
static void place_text(struct ses_snap *sn, uint64_t addr, bool is_inside, struct arena *a, struct buf *out)
{
	struct ses_text where = is_inside ? ses_where(sn, addr, a) : ses_text_of("", 0);
	buf_printf(out, "0x%llx", (unsigned long long)addr);
	if (where.len) {
		buf_add(out, " ", 1);
		ops_escape(out, where.s, where.len);
	} else if (!is_inside) {
		buf_add_str(out, " of the process");
	}
}

/* How it ended when it did not return, in a sentence without subject. */
static void end_text(struct ses_snap *sn, const struct box_result *r, struct arena *a, struct buf *out)
{
	char sig[24];
	switch (r->end) {
	case BOX_RETURNED:
		buf_add_str(out, "returned");
		break;
	case BOX_EXITED: {
		struct ses_text name = import_name(sn, r->import);
		buf_add_str(out, "ended by calling ");
		if (name.len)
			ops_escape(out, name.s, name.len);
		else
			buf_add_str(out, "a checked form of a function of libc that found a buffer too small");
		break;
	}
	case BOX_SIGNAL:
		buf_printf(out, "%s at ", signal_text(r->signal, sig));
		place_text(sn, r->ip, r->is_ip_inside, a, out);
		if (r->signal == SIGSEGV || r->signal == SIGBUS) {
			buf_add_str(out, ", touching ");
			place_text(sn, r->fault, r->is_fault_inside, a, out);
		}
		break;
	case BOX_SYSCALL:
		buf_printf(out, "tried system call %d at ", r->syscall_nr);
		place_text(sn, r->ip, r->is_ip_inside, a, out);
		buf_add_str(out, "; it was not made");
		break;
	case BOX_TIMEOUT:
		buf_add_str(out, "did not end in time and was killed");
		break;
	case BOX_KILLED:
		buf_printf(out, "the kernel killed it: %s", signal_text(r->signal, sig));
		break;
	default:
		buf_add_str(out, "its process ended without an answer: it damaged the code that was to give one, or ended itself");
	}
}

static void json_text(struct json *j, const char *key, struct ses_text t)
{
	json_key(j, key);
	if (t.len)
		json_strn(j, t.s, t.len);
	else
		json_null(j);
}

/* Digits that tell one from the next. */
static int digits_of(const struct ops_invoke *v)
{
	return v->ret_float == 80 ? 21 : 17;
}

static void json_number(struct json *j, long double d, int digits)
{
	char text[60];
	/* JSON has no other numbers. */
	if (!isfinite(d)) {
		json_str(j, isnan(d) ? "nan" : d > 0 ? "inf" : "-inf");
		return;
	}
	snprintf(text, sizeof(text), "%.*Lg", digits, d);
	json_sep(j);
	buf_add_str(j->out, text);
}

static void json_mem(struct json *j, struct box *b, const struct ops_invoke *v, const struct box_result *r)
{
	uint32_t off = 0;
	json_key(j, "mem");
	json_arr(j);
	for (unsigned i = 0; i < v->arg_cnt && r->bufs_valid; i++) {
		const struct box_arg *a = &v->args[i];
		if (a->kind != BOX_ARG_BUF)
			continue;
		json_obj(j);
		json_key(j, "arg");
		json_u64(j, i);
		json_key(j, "addr");
		json_addr(j, box_buf_addr(b, off));
		json_key(j, "hex");
		json_hex(j, r->bufs + off, a->len);
		json_end_obj(j);
		off += a->len;
	}
	json_end_arr(j);
}

static void json_opt_addr(struct json *j, const char *key, bool is_there, uint64_t v)
{
	json_key(j, key);
	if (is_there)
		json_addr(j, v);
	else
		json_null(j);
}

static void out_json(struct ops_req *rq, struct ses_snap *sn, struct box *b, const struct ops_invoke *v, const struct box_result *r)
{
	struct json *j = &rq->out->json;
	bool has_ret = r->end == BOX_RETURNED && v->ret_bits, has_signal = r->end == BOX_SIGNAL || r->end == BOX_KILLED;
	bool has_ip = r->end == BOX_SIGNAL || r->end == BOX_SYSCALL;
	char sig[24];
	json_obj(j);
	json_key(j, "rev");
	json_u64(j, sn->rev);
	json_opt_addr(j, "addr", true, v->va);
	json_text(j, "name", v->name);
	json_text(j, "prototype", v->prototype);
	json_key(j, "end");
	json_str(j, box_end_name(r->end));
	json_opt_addr(j, "ret", has_ret && !v->ret_float, int_of(v, r));
	json_key(j, "ret_int");
	if (!has_ret || v->ret_float)
		json_null(j);
	else if (v->ret_is_unsigned)
		json_u64(j, int_of(v, r));
	else
		json_i64(j, (int64_t)int_of(v, r));
	json_key(j, "ret_float");
	if (has_ret && v->ret_float)
		json_number(j, float_of(v, r), digits_of(v));
	else
		json_null(j);
	json_mem(j, b, v, r);
	const char *name = has_signal ? signal_text(r->signal, sig) : "";
	json_text(j, "signal", ses_text_of(name, (uint32_t)strlen(name)));
	json_opt_addr(j, "fault_addr", r->end == BOX_SIGNAL && (r->signal == SIGSEGV || r->signal == SIGBUS), r->fault);
	json_opt_addr(j, "ip", has_ip, r->ip);
	json_text(j, "where", has_ip && r->is_ip_inside ? ses_where(sn, r->ip, rq->arena) : ses_text_of("", 0));
	json_key(j, "syscall");
	if (r->end == BOX_SYSCALL)
		json_i64(j, r->syscall_nr);
	else
		json_null(j);
	json_text(j, "import", r->end == BOX_EXITED ? import_name(sn, r->import) : ses_text_of("", 0));
	json_key(j, "import_calls");
	json_u64(j, r->import_calls);
	json_key(j, "ns");
	json_u64(j, r->ns);
	if (v->has_costs) {
		json_key(j, "check_ns");
		json_u64(j, v->check_ns);
		json_key(j, "map_ns");
		json_u64(j, v->map_ns);
	}
	json_key(j, "unprotected");
	json_str(j, box_missing(b));
	json_end_obj(j);
}

/* Lines of 16 bytes as `hexdump -C` writes them. */
static void dump(struct buf *out, const uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i < len; i += 16) {
		uint32_t n = MIN(len - i, 16u);
		buf_printf(out, "  %04x ", i);
		for (uint32_t k = 0; k < 16; k++)
			buf_printf(out, k < n ? " %02x" : "   ", k < n ? p[i + k] : 0);
		buf_add_str(out, "  ");
		for (uint32_t k = 0; k < n; k++)
			buf_add_ch(out, p[i + k] >= 0x20 && p[i + k] < 0x7f ? (char)p[i + k] : '.');
		buf_add_ch(out, '\n');
	}
}

static void out_ret(struct buf *out, const struct ops_invoke *v, const struct box_result *r)
{
	if (v->ret_float) {
		buf_printf(out, " %.*Lg\n", digits_of(v), float_of(v, r));
		return;
	}
	if (!v->ret_bits) {
		buf_add_ch(out, '\n');
		return;
	}
	uint64_t n = int_of(v, r), mask = v->ret_bits < 64 ? ((uint64_t)1 << v->ret_bits) - 1 : UINT64_MAX;
	buf_printf(out, " 0x%llx", (unsigned long long)(n & mask));
	if (v->ret_is_unsigned || (int64_t)n >= 0)
		buf_printf(out, " = %llu", (unsigned long long)n);
	else
		buf_printf(out, " = %lld, unsigned %llu", (long long)n, (unsigned long long)(n & mask));
	buf_add_ch(out, '\n');
}

static void out_plain(struct ops_req *rq, struct ses_snap *sn, struct box *b, const struct ops_invoke *v, const struct box_result *r)
{
	struct buf *out = rq->out->buf;
	uint32_t off = 0;
	end_text(sn, r, rq->arena, out);
	if (r->end == BOX_RETURNED)
		out_ret(out, v, r);
	else
		buf_add_ch(out, '\n');
	for (unsigned i = 0; i < v->arg_cnt && r->bufs_valid; i++) {
		if (v->args[i].kind != BOX_ARG_BUF)
			continue;
		buf_printf(out, "argument %u, %u bytes at 0x%llx:\n", i + 1, v->args[i].len, (unsigned long long)box_buf_addr(b, off));
		dump(out, r->bufs + off, v->args[i].len);
		off += v->args[i].len;
	}
	if (r->end <= BOX_SYSCALL)
		buf_printf(out, "%llu ns", (unsigned long long)r->ns);
	if (r->import_calls)
		buf_printf(out, "%s%u calls of imports without a model, answered with 0", r->end <= BOX_SYSCALL ? ", " : "", r->import_calls);
	if (r->end <= BOX_SYSCALL || r->import_calls)
		buf_add_ch(out, '\n');
	if (v->has_costs)
		buf_printf(out, "image: %llu ns to check its bytes, %llu ns to map it\n", (unsigned long long)v->check_ns,
			   (unsigned long long)v->map_ns);
	if (*box_missing(b))
		buf_printf(out, "this kernel lacks for the lock: %s\n", box_missing(b));
}

struct err *ops_invoke_run(struct ops_req *rq, struct ses_snap *sn, struct box *b, const struct ops_invoke *v)
{
	struct box_result r;
	struct err *e = v->code_va ? box_call_code(b, v->va, v->code_va, v->args, v->arg_cnt, &r)
				   : box_call(b, v->va, v->args, v->arg_cnt, &r);
	if (e)
		return e;
	if (rq->out->is_json)
		out_json(rq, sn, b, v, &r);
	else
		out_plain(rq, sn, b, v, &r);
	if (r.end == BOX_RETURNED || r.end == BOX_EXITED)
		return NULL;
	_cleanup_buf_ struct buf why = {0};
	end_text(sn, &r, rq->arena, &why);
	buf_add_ch(&why, '\0');
	if (why.failed)
		return &err_nomem;
	rq->out->status = err_new(r.end == BOX_TIMEOUT ? ERR_TIMEOUT : ERR_NOT_FOUND, "%.*s: %s", (int)v->name.len, v->name.s, why.data);
	return NULL;
}

struct err *ops_call_func(struct ops_req *rq)
{
	struct ops_invoke v;
	struct box *b = NULL;
	struct box_opts opts;
	int fd = -1;
	struct err *e = ops_need_consent(rq, rq->sn);
	if (!e)
		e = ops_invoke_limits(rq, &opts);
	if (!e)
		e = ops_invoke_read(rq, rq->sn, &v);
	if (!e)
		e = ops_open_target(rq->sn, &fd);
	if (e)
		return e;
	opts.im = rq->sn->im;
	opts.fd = fd;
	e = box_open(&opts, &b);
	if (!e)
		e = ops_invoke_run(rq, rq->sn, b, &v);
	box_close(b);
	close(fd);
	return e;
}
