/* SPDX-License-Identifier: Apache-2.0 */
#include "live/verify/verify.h"

#include "base/child_cc.h"
#include "format/fmt.h"
#include "live/verify/verify_int.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define C_TIMES 20 /* what the C may take of the machine code's time: every instruction is a statement */

struct verify {
	struct verify_opts opts;
	const struct verify_func *funcs;
	uint32_t func_cnt;
	uint64_t *code_va;  /* per function, 0: not in the object */
	struct buf object;  /* the compiled file's bytes */
	struct buf image_bytes;
	struct image *code;
	int code_fd;
	struct box *box;
	struct box_page *pages; /* of the first run, BOX_PAGE_MAX */
	struct guide *guide;
	struct cover cover;     /* of the function being verified */
	struct guide_run *run;  /* the first run, for the guide */
	struct box_outcome first; /* of the machine code, its pages in `pages` */
	uint32_t late;          /* runs of the function that were out of time */
	char missing[192];
};

const char *verify_status_name(enum verify_status s)
{
	static const char *const names[] = {"not_run", "compiles", "equal", "differs", "unrepeatable", "inconclusive"};
	return s < VERIFY_STATUS_COUNT ? names[s] : "not_run";
}

const char *verify_missing(struct verify *v)
{
	const char *box = box_missing(v->box), *cc = child_cc_missing();
	snprintf(v->missing, sizeof(v->missing), "%s%s%s", box, *box && *cc ? ", " : "", cc);
	return v->missing;
}

/* --- compiling ----------------------------------------------------------------------------------------------------- */
static struct err *check(const struct verify *v)
{
	return v->opts.check ? v->opts.check(v->opts.check_ctx) : NULL;
}

#define QUICK_CC "tcc"

/* What its objects may want of others: the models of imports have it, and scry_call() is the sandbox's. */
static const char *const quick_imports[] = {"memcpy", "memmove", "memset", "scry_call"};

/* It takes what it does not know for functions of other objects. */
static struct err *check_quick(const struct fmt_bin *bin)
{
	for (size_t i = 0; i < bin->symbols.cnt; i++) {
		const struct fmt_symbol *s = &bin->symbols.data[i];
		bool is_known = !s->is_undefined || !s->name.len;
		for (size_t k = 0; k < ARRAY_LEN(quick_imports); k++)
			is_known |= s->name.len == strlen(quick_imports[k]) && !memcmp(s->name.s, quick_imports[k], s->name.len);
		if (!is_known)
			return err_new(ERR_INTERNAL, QUICK_CC " does not know %.*s", (int)MIN(s->name.len, 100u), s->name.s);
	}
	return NULL;
}

static struct err *compile_quick(const struct child_cc *cc)
{
	static const char *const argv[] = {QUICK_CC, "-w", "-shared", "-nostdlib", "-I.", "-include", "scry_tcc.h", "-o", "code.so", "code.c", NULL};
	return child_cc_run(cc, argv);
}

static struct err *compile(const struct verify *v, const struct child_cc *cc)
{
	if (v->opts.quick_header)
		return compile_quick(cc);
	/* Nothing is linked in but what the compiler needs for wide division; memcpy is an import, and bound as the target's
	 * are. */
	const char *const argv[] = {v->opts.cc, v->opts.level, "-std=gnu11", "-w", "-shared", "-fPIC", "-nostdlib", "-fno-stack-protector",
				    "-fcf-protection=none", "-fno-asynchronous-unwind-tables", "-ffp-contract=off", "-Wl,-z,norelro",
				    "-Wl,-z,now", "-Wl,--hash-style=sysv", "-o", "code.so", "code.c", "-lgcc", NULL};
	return child_cc_run(cc, argv);
}

static struct err *read_object(struct verify *v, const char *path)
{
	struct stat st;
	v->code_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (v->code_fd < 0 || fstat(v->code_fd, &st))
		return err_os(errno, "%s", path);
	char *at = buf_room(&v->object, (size_t)st.st_size);
	if (!at)
		return &err_nomem;
	if (pread(v->code_fd, at, (size_t)st.st_size, 0) != (ssize_t)st.st_size)
		return err_new(ERR_IO, "%s changed while it was read", path);
	v->object.len = (size_t)st.st_size;
	return NULL;
}

static uint64_t symbol_va(const struct fmt_bin *bin, const char *name)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < bin->symbols.cnt; i++) {
		const struct fmt_symbol *s = &bin->symbols.data[i];
		if (s->name.len == len && s->is_dynamic && !s->is_undefined && !memcmp(s->name.s, name, len))
			return s->va;
	}
	return 0;
}

static struct err *load_object(struct verify *v)
{
	static const uint8_t no_sha[32];
	struct fmt_bin *bin;
	struct image_data d;
	struct err *e = fmt_open((const uint8_t *)v->object.data, v->object.len, &bin);
	if (e)
		return e;
	for (uint32_t i = 0; i < v->func_cnt; i++)
		v->code_va[i] = symbol_va(bin, v->funcs[i].name);
	e = v->opts.quick_header ? check_quick(bin) : NULL;
	if (!e)
		e = image_data_from_fmt(bin, no_sha, &d);
	if (!e) {
		e = image_serialize(&d, &v->image_bytes);
		image_data_fini(&d);
	}
	if (!e)
		e = image_open_mem(v->image_bytes.data, v->image_bytes.len, (const uint8_t *)v->object.data, v->object.len, NULL, &v->code);
	fmt_bin_free(bin);
	return e;
}

static struct err *build(struct verify *v, const struct buf *text)
{
	struct child_cc cc;
	char so[160];
	struct err *e = child_cc_open(&cc);
	cc.check = v->opts.check;
	cc.check_ctx = v->opts.check_ctx;
	if (!e)
		e = child_cc_put(&cc, "code.c", text->data, text->len);
	if (!e)
		e = child_cc_put(&cc, "scry.h", v->opts.header, v->opts.header_len);
	if (!e && v->opts.quick_header)
		e = child_cc_put(&cc, "scry_tcc.h", v->opts.quick_header, v->opts.quick_header_len);
	if (!e)
		e = compile(v, &cc);
	snprintf(so, sizeof(so), "%s/code.so", cc.dir);
	if (!e)
		e = read_object(v, so);
	/* The open descriptor keeps the file as long as it is needed. */
	child_cc_close(&cc);
	return e ? e : load_object(v);
}

struct err *verify_open(const struct verify_opts *opts, const struct buf *text, const struct verify_func *funcs,
			uint32_t func_cnt, struct verify **ret)
{
	struct verify *v = calloc(1, sizeof(*v));
	if (!v)
		return &err_nomem;
	v->opts = *opts;
	v->funcs = funcs;
	v->func_cnt = func_cnt;
	v->code_fd = -1;
	v->code_va = calloc(func_cnt + 1, sizeof(*v->code_va));
	v->pages = calloc(BOX_PAGE_MAX, sizeof(*v->pages));
	v->run = calloc(1, sizeof(*v->run));
	v->guide = guide_new();
	struct err *e = v->code_va && v->pages && v->run && v->guide ? build(v, text) : &err_nomem;
	const struct box_opts box = {.im = opts->im, .fd = opts->fd, .wall_ms = 100 * opts->cpu_ms + 20000,
				     .cpu_s = C_TIMES * opts->cpu_ms / 1000 + 1, .mem_len = 256 << 20, .code = v->code, .code_fd = v->code_fd,
				     .import_args = opts->import_args};
	if (!e)
		e = box_open(&box, &v->box);
	if (e) {
		verify_close(v);
		return e;
	}
	*ret = v;
	return NULL;
}

void verify_close(struct verify *v)
{
	if (!v)
		return;
	box_close(v->box);
	image_unref(v->code);
	if (v->code_fd >= 0)
		close(v->code_fd);
	buf_fini(&v->object);
	buf_fini(&v->image_bytes);
	free(v->code_va);
	free(v->pages);
	free(v->run);
	guide_free(v->guide);
	free(v);
}

/* Compared runs after which a function that was reached whole needs no more. */
#define ENOUGH_INPUTS 8
/* Runs out of time, more than were compared, after which there is no hope. */
#define LATE_MAX 4

/* --- comparing ----------------------------------------------------------------------------------------------------- */
static bool is_clean(const struct box_result *r)
{
	return (r->end == BOX_RETURNED || r->end == BOX_EXITED) && !r->has_x87_fault;
}

/* The stack protector found that the input makes the function write over the end of an object of its frame: what C with objects apart does then
 * is another thing. */
static bool is_overrun(const struct verify *v, const struct box_result *r)
{
	static const char name[] = "__stack_chk_fail";
	uint32_t cnt, sym_cnt;
	size_t len;
	const struct image_import *imports = image_imports(v->opts.im, &cnt);
	const struct image_symbol *syms = image_symbols(v->opts.im, &sym_cnt);
	if (r->end != BOX_EXITED || r->import >= cnt || imports[r->import].symbol >= sym_cnt)
		return false;
	const char *s = image_text(v->opts.im, syms[imports[r->import].symbol].name, &len);
	return len == sizeof(name) - 1 && !memcmp(s, name, len);
}

static bool is_nan(const uint8_t f[10])
{
	uint64_t fraction;
	memcpy(&fraction, f, 8);
	return (f[9] & 0x7f) == 0x7f && f[8] == 0xff && fraction << 1;
}

/* Of the machine code's run `x` it is known whether it left a result there. Which NaN an operation gives is not the C's to know. */
static bool is_same_st0(const struct verify_func *f, const struct box_result *x, const struct box_result *y)
{
	return f->not_st0 || !x->has_st0 || !memcmp(x->st0, y->st0, sizeof(x->st0)) || (is_nan(x->st0) && is_nan(y->st0));
}

/* What differs between two outcomes, the first one of the machine code, as text; false: nothing. The pages of `a` were copied. */
static bool differ(const struct verify_func *f, const struct box_outcome *a, const struct box_page *a_pages, const struct box_outcome *b,
		   char *why, size_t cap)
{
	const struct box_result *x = &a->result, *y = &b->result;
	if (x->end != y->end) {
		snprintf(why, cap, "ends: %s, C: %s (signal %d)", box_end_name(x->end), box_end_name(y->end), y->signal);
		return true;
	}
	if (x->end == BOX_RETURNED && ((x->rax ^ y->rax) & ~f->not_rax || (x->rdx ^ y->rdx) & ~f->not_rdx)) {
		snprintf(why, cap, "rax 0x%llx, C: 0x%llx; rdx 0x%llx, C: 0x%llx", (unsigned long long)x->rax,
			 (unsigned long long)y->rax, (unsigned long long)x->rdx, (unsigned long long)y->rdx);
		return true;
	}
	if (x->end == BOX_RETURNED && ((x->xmm0[0] ^ y->xmm0[0]) & ~f->not_xmm0[0] || (x->xmm0[1] ^ y->xmm0[1]) & ~f->not_xmm0[1])) {
		snprintf(why, cap, "xmm0 0x%llx, C: 0x%llx", (unsigned long long)x->xmm0[0], (unsigned long long)y->xmm0[0]);
		return true;
	}
	if (x->end == BOX_RETURNED && !is_same_st0(f, x, y)) {
		uint64_t a_fraction, b_fraction;
		memcpy(&a_fraction, x->st0, 8);
		memcpy(&b_fraction, y->st0, 8);
		snprintf(why, cap, "st(0) 0x%02x%02x%016llx, C: 0x%02x%02x%016llx", x->st0[9], x->st0[8], (unsigned long long)a_fraction,
			 y->st0[9], y->st0[8], (unsigned long long)b_fraction);
		return true;
	}
	if (x->import != y->import || a->trace != b->trace || x->import_calls != y->import_calls) {
		snprintf(why, cap, "imports: %u calls, C: %u, or other arguments", x->import_calls, y->import_calls);
		return true;
	}
	for (uint32_t i = 0; i < a->page_cnt && i < b->page_cnt; i++) {
		if (a_pages[i].addr == b->pages[i].addr && a_pages[i].hash == b->pages[i].hash)
			continue;
		snprintf(why, cap, "memory near 0x%llx of the process", (unsigned long long)a_pages[i].addr);
		return true;
	}
	if (a->page_cnt != b->page_cnt) {
		snprintf(why, cap, "%u pages touched, C: %u", a->page_cnt, b->page_cnt);
		return true;
	}
	return false;
}

/* Whether the end of a run of the C says something: it wanted no more of the harness than it can give, time or memory. */
static bool is_telling(const struct box_outcome *o)
{
	return !o->has_no_memory && o->result.end != BOX_TIMEOUT;
}

/* Why a run that was not clean was not. */
static void say_unclean(const struct box_result *r, char *why, size_t cap)
{
	if (r->has_x87_fault)
		snprintf(why, cap, "takes a value from the x87 stack that nobody put there");
	else if (r->end == BOX_SIGNAL)
		snprintf(why, cap, "signal %d at 0x%llx, address 0x%llx", r->signal, (unsigned long long)r->ip, (unsigned long long)r->fault);
	else if (r->end == BOX_SYSCALL)
		snprintf(why, cap, "makes system call %d", r->syscall_nr);
	else if (r->end == BOX_TIMEOUT && r->ip)
		snprintf(why, cap, "timeout at 0x%llx", (unsigned long long)r->ip);
	else
		snprintf(why, cap, "%s", box_end_name(r->end));
}

/* --- the smallest input ---------------------------------------------------------------------------------------------- */
#define SHRINK_RUNS 300
#define SHRINK_RANGES 1024

struct shrink {
	struct verify *v;
	const struct verify_func *f;
	struct box_trial trial; /* of the machine code */
	uint64_t code_va;
	struct box_patch patches[BOX_PATCH_MAX]; /* what can be zero */
	struct box_patch todo[SHRINK_RANGES];
	uint32_t todo_cnt;
	uint64_t pages[SHRINK_RANGES]; /* that are or were in `todo` */
	uint32_t page_cnt;
	unsigned runs;
};

static void push(struct shrink *s, uint64_t from, uint64_t to)
{
	if (s->todo_cnt < SHRINK_RANGES)
		s->todo[s->todo_cnt++] = (struct box_patch){from, to, 0};
}

/* Without its pointers a function reads elsewhere. */
static void push_pages(struct shrink *s, const struct box_outcome *o)
{
	for (uint32_t i = 0; i < o->made_cnt; i++) {
		uint32_t k = 0;
		while (k < s->page_cnt && s->pages[k] != o->made[i])
			k++;
		if (k < s->page_cnt || k == SHRINK_RANGES)
			continue;
		s->pages[s->page_cnt++] = o->made[i];
		push(s, o->made[i], o->made[i] + 4096);
	}
}

static struct err *still_differs(struct shrink *s, bool *ret)
{
	struct box_trial t = s->trial;
	struct box_outcome a, c;
	char why[160];
	s->runs++;
	*ret = false;
	struct err *e = box_try(s->v->box, &t, &a);
	if (e || !is_clean(&a.result))
		return e;
	memcpy(s->v->pages, a.pages, a.page_cnt * sizeof(*a.pages));
	t.code_va = s->code_va;
	t.cpu_ms = s->v->opts.cpu_ms * C_TIMES;
	e = box_try(s->v->box, &t, &c);
	*ret = !e && is_telling(&c) && differ(s->f, &a, s->v->pages, &c, why, sizeof(why));
	if (*ret)
		push_pages(s, &c);
	return e;
}

static void keep_word(struct verify_verdict *ret, uint64_t at, uint64_t value, uint64_t len)
{
	if (ret->word_cnt < VERIFY_WORD_MAX)
		ret->words[ret->word_cnt++] = (struct verify_word){at, value, len};
	else
		ret->more_words++;
}

/* Zero if it still differs then; else its halves, down to words. */
static struct err *try_range(struct shrink *s, struct box_patch r, struct verify_verdict *ret)
{
	uint64_t at = r.from;
	while (at < r.to && !box_trial_word(&s->trial, at))
		at += 8;
	if (at >= r.to)
		return NULL;
	bool differs = false;
	struct err *e = NULL;
	if (s->runs < SHRINK_RUNS && s->trial.patch_cnt < BOX_PATCH_MAX) {
		s->patches[s->trial.patch_cnt++] = r;
		e = still_differs(s, &differs);
		s->trial.patch_cnt -= !differs;
	}
	if (e || differs)
		return e;
	uint64_t middle = r.from + (r.to - r.from) / 16 * 8;
	if (s->runs < SHRINK_RUNS && r.to - r.from > 8) {
		push(s, middle, r.to);
		push(s, r.from, middle);
		return NULL;
	}
	for (; at < r.to; at += 8) {
		uint64_t value = box_trial_word(&s->trial, at);
		if (value)
			keep_word(ret, at, value, 8);
	}
	return NULL;
}

/* Whether a word was among those that could be zero. */
static bool is_made(const struct shrink *s, uint64_t at)
{
	uint64_t stack_len, stack = box_stack_args(&stack_len);
	for (uint32_t i = 0; i < s->page_cnt; i++)
		if (at - s->pages[i] < 4096)
			return true;
	return at < 48 || at - stack < stack_len;
}

static struct err *shrink(struct verify *v, uint32_t i, const struct box_trial *t, const struct box_outcome *c, struct verify_verdict *ret)
{
	struct shrink *s = calloc(1, sizeof(*s));
	uint64_t stack_len, stack = box_stack_args(&stack_len);
	struct err *e = NULL;
	if (!s)
		return &err_nomem;
	*s = (struct shrink){.v = v, .f = &v->funcs[i], .trial = *t, .code_va = v->code_va[i]};
	s->trial.code_va = 0;
	s->trial.cpu_ms = v->opts.cpu_ms;
	if (t->patch_cnt)
		memcpy(s->patches, t->patches, t->patch_cnt * sizeof(*t->patches));
	s->trial.patches = s->patches;
	push_pages(s, c);
	push(s, stack, stack + stack_len);
	for (uint64_t arg = 6; arg > 0; arg--)
		push(s, 8 * (arg - 1), 8 * arg);
	while (!e && s->todo_cnt)
		e = try_range(s, s->todo[--s->todo_cnt], ret);
	/* Answers and variables of the target are not made zero. */
	for (uint32_t k = 0; k < t->patch_cnt; k++)
		if (t->patches[k].to - t->patches[k].from <= 8 && !is_made(s, t->patches[k].from))
			keep_word(ret, t->patches[k].from, t->patches[k].value, t->patches[k].to - t->patches[k].from);
	free(s);
	return e;
}

/* --- what no input says ---------------------------------------------------------------------------------------------- */

/* A run with what is not said made one thing or another, with the time of C; whether it ended well. */
static struct err *try_unsaid(struct verify *v, const struct box_trial *from, enum box_unsaid unsaid, struct box_outcome *ret, bool *ret_ok)
{
	struct box_trial t = *from;
	t.unsaid = unsaid;
	t.cpu_ms = v->opts.cpu_ms * C_TIMES;
	struct err *e = box_try(v->box, &t, ret);
	*ret_ok = !e && is_clean(&ret->result) && is_telling(ret);
	return e;
}

/* Whether both leave the same where nothing is found in the stack that nobody put there, and the machine code itself another thing than it did:
 * then they differ by that alone. The pages of the first run are lost. */
static struct err *is_by_unset_stack(struct verify *v, uint32_t i, const struct box_trial *t, bool *ret)
{
	const struct verify_func *f = &v->funcs[i];
	struct box_trial machine = *t;
	struct box_outcome clear, other;
	char why[160];
	bool ok;
	machine.code_va = 0;
	*ret = false;
	struct err *e = try_unsaid(v, &machine, BOX_UNSAID_STACK, &clear, &ok);
	if (e || !ok)
		return e;
	memcpy(v->pages, clear.pages, clear.page_cnt * sizeof(*v->pages));
	e = try_unsaid(v, t, BOX_UNSAID_STACK, &other, &ok);
	if (e || !ok || differ(f, &clear, v->pages, &other, why, sizeof(why)))
		return e;
	e = try_unsaid(v, &machine, BOX_UNSAID_AS_IS, &other, &ok);
	*ret = !e && ok && differ(f, &clear, v->pages, &other, why, sizeof(why));
	return e;
}

/* Whether the machine code itself leaves something else with another value of the stack protector, which lies behind the objects of a frame. */
static struct err *is_by_canary(struct verify *v, uint32_t i, const struct box_trial *t, bool *ret)
{
	struct box_trial machine = *t;
	struct box_outcome own, other;
	char why[160];
	bool ok;
	machine.code_va = 0;
	*ret = false;
	struct err *e = try_unsaid(v, &machine, BOX_UNSAID_AS_IS, &own, &ok);
	if (e || !ok)
		return e;
	memcpy(v->pages, own.pages, own.page_cnt * sizeof(*v->pages));
	e = try_unsaid(v, &machine, BOX_UNSAID_CANARY, &other, &ok);
	*ret = !e && ok && differ(&v->funcs[i], &own, v->pages, &other, why, sizeof(why));
	return e;
}

/* What a difference that stays is worth: it may be by what no input says. */
static struct err *judge_unsaid(struct verify *v, uint32_t i, const struct box_trial *t, const struct box_outcome *c, struct verify_verdict *ret)
{
	const char *const unset = "reads stack that nobody set: the same where that is zero";
	bool is_unset, is_canary = false;
	struct err *e = is_by_unset_stack(v, i, t, &is_unset);
	if (!e && !is_unset)
		e = is_by_canary(v, i, t, &is_canary);
	if (e)
		return e;
	if (is_canary) {
		snprintf(ret->why, sizeof(ret->why), "%s", ret->inputs ? "" : "reads over the end of an object of its frame");
		return NULL;
	}
	cover_keep(&v->cover);
	ret->inputs++;
	ret->status = is_unset ? VERIFY_EQUAL : VERIFY_DIFFERS;
	if (is_unset) {
		ret->is_by_unset = true;
		snprintf(ret->why, sizeof(ret->why), "%s", unset);
		return NULL;
	}
	ret->seed = t->seed;
	return shrink(v, i, t, c, ret);
}

/* What a difference is worth: none when the machine code differs from itself. */
static struct err *judge_difference(struct verify *v, uint32_t i, const struct box_trial *t, struct verify_verdict *ret)
{
	struct box_trial machine = *t;
	struct box_outcome again, c;
	char why[sizeof(ret->why)];
	machine.code_va = 0;
	machine.cpu_ms = v->opts.cpu_ms;
	struct err *e = box_try(v->box, &machine, &again);
	if (e)
		return e;
	if (differ(&v->funcs[i], &v->first, v->pages, &again, why, sizeof(why))) {
		if (!ret->inputs && is_clean(&again.result)) {
			ret->status = VERIFY_UNREPEATABLE;
			memcpy(ret->why, why, sizeof(why));
		}
		return NULL;
	}
	e = box_try(v->box, t, &c);
	if (e || !is_telling(&c) || !differ(&v->funcs[i], &v->first, v->pages, &c, ret->why, sizeof(ret->why)))
		return e;
	return judge_unsaid(v, i, t, &c, ret);
}

static struct err *one_trial(struct verify *v, uint32_t i, const struct guide_input *in, struct verify_verdict *ret)
{
	const struct verify_func *f = &v->funcs[i];
	struct box_trial t = {.va = f->va, .seed = in->seed, .patches = in->patches, .patch_cnt = in->patch_cnt, .cpu_ms = v->opts.cpu_ms,
			      .words = f->words, .word_cnt = f->word_cnt};
	struct box_outcome c;
	char why[sizeof(ret->why)];
	cover_watch(&v->cover, &t);
	struct err *e = box_try(v->box, &t, &v->first);
	if (e)
		return e;
	ret->tried++;
	if (is_overrun(v, &v->first.result)) {
		if (!ret->inputs)
			snprintf(ret->why, sizeof(ret->why), "writes over the end of an object of its frame");
		return NULL;
	}
	if (!is_clean(&v->first.result)) {
		v->late += v->first.result.end == BOX_TIMEOUT;
		if (!ret->inputs)
			say_unclean(&v->first.result, ret->why, sizeof(ret->why));
		return NULL;
	}
	memcpy(v->pages, v->first.pages, v->first.page_cnt * sizeof(*v->pages));
	memcpy(v->run->cmps, v->first.cmps, v->cover.watched_cnt * sizeof(*v->run->cmps));
	memcpy(v->run->made, v->first.made, v->first.made_cnt * sizeof(*v->run->made));
	memcpy(v->run->answers, v->first.answers, sizeof(v->run->answers));
	v->run->made_cnt = v->first.made_cnt;
	v->run->answer_cnt = v->first.answer_cnt;
	cover_note(&v->cover, &v->first);
	t.blocks = NULL;
	t.branches = NULL;
	t.code_va = v->code_va[i];
	t.cpu_ms = v->opts.cpu_ms * C_TIMES;
	e = box_try(v->box, &t, &c);
	if (e)
		return e;
	if (!is_telling(&c)) {
		v->late += c.result.end == BOX_TIMEOUT;
		if (!ret->inputs)
			snprintf(ret->why, sizeof(ret->why), "the C has not enough %s", c.has_no_memory ? "memory" : "time");
		return NULL;
	}
	if (differ(f, &v->first, v->pages, &c, why, sizeof(why)))
		return judge_difference(v, i, &t, ret);
	cover_keep(&v->cover);
	guide_learn(v->guide, in, v->run);
	ret->inputs++;
	ret->status = VERIFY_EQUAL;
	if (!ret->is_by_unset)
		ret->why[0] = '\0';
	return NULL;
}

static void put_patch(struct guide_input *in, uint64_t from, uint64_t to, uint64_t value)
{
	if (in->patch_cnt < GUIDE_PATCH_MAX && from < to)
		in->patches[in->patch_cnt++] = (struct box_patch){from, to, value};
}

/* The input somebody gave: all zero but those words, and but for the target's own memory. */
static void given_input(const struct verify *v, struct guide_input *in)
{
	const struct space *s = image_space(v->opts.im);
	uint64_t first = UINT64_MAX, last = 0;
	for (uint32_t i = 0; i < s->seg_cnt; i++) {
		first = MIN(first, s->segs[i].va);
		last = MAX(last, s->segs[i].va + s->segs[i].mem_len);
	}
	*in = (struct guide_input){.seed = v->opts.seed};
	put_patch(in, 0, 48, 0);
	put_patch(in, VERIFY_ANSWER_AT + 8 * VERIFY_ANSWER_MAX, first + box_slide(v->box), 0);
	put_patch(in, last + box_slide(v->box), UINT64_MAX, 0);
	for (uint32_t i = 0; i < v->opts.word_cnt; i++)
		put_patch(in, v->opts.words[i].at, v->opts.words[i].at + v->opts.words[i].len, v->opts.words[i].value);
}

static struct err *run_trials(struct verify *v, uint32_t i, struct verify_verdict *ret)
{
	struct guide_input *in = calloc(1, sizeof(*in));
	struct err *e = in ? NULL : &err_nomem;
	uint32_t seeds = v->opts.has_input ? 1 : v->opts.seeds;
	bool is_enough = false;
	guide_begin(v->guide, &v->cover, v->opts.seed, seeds);
	for (uint32_t k = 0; !e && k < seeds && ret->status != VERIFY_DIFFERS && !is_enough; k++) {
		e = check(v);
		if (e)
			break;
		guide_next(v->guide, in);
		if (v->opts.has_input)
			given_input(v, in);
		e = one_trial(v, i, in, ret);
		cover_count(&v->cover, ret);
		bool is_whole = ret->blocks_hit == ret->blocks && ret->edges_hit == ret->edges;
		is_enough = (ret->inputs >= ENOUGH_INPUTS && is_whole) || v->late >= LATE_MAX + ret->inputs;
	}
	free(in);
	return e;
}

struct err *verify_run(struct verify *v, uint32_t i, struct verify_verdict *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->status = VERIFY_INCONCLUSIVE;
	ret->is_quick = v->opts.quick_header;
	ret->blocks = v->funcs[i].block_cnt;
	ret->edges = v->funcs[i].edge_cnt;
	if (!v->code_va[i]) {
		ret->status = VERIFY_NOT_RUN;
		snprintf(ret->why, sizeof(ret->why), "there is no C for it");
		return NULL;
	}
	if (!cover_init(&v->cover, &v->funcs[i]))
		return &err_nomem;
	v->late = 0;
	struct err *e = run_trials(v, i, ret);
	cover_fini(&v->cover);
	return e;
}
