/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running code of the target. Nothing here does so before a person agreed to it for these very bytes, at the command line; that is kept
 * in the store.
 */
#include "decomp/dec.h"
#include "session/ops_int.h"
#include "session/ses_int.h"
#include "session/ses_types.h"
#include "session/ses_verdict.h"

#include "base/par.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct err *ops_need_consent(struct ops_req *rq, struct ses_snap *sn)
{
	struct ses *s = sn->ses;
	if (ops_arg_is_set(rq->args, "yes_run_target")) {
		if (!rq->call->may_consent)
			return err_new(ERR_DENIED, "only a person at the command line can agree to running a target");
		return s->store && s->has_sha256 ? store_put_consent(s->store, s->sha256) : NULL;
	}
	if (s->store && s->has_sha256 && store_has_consent(s->store, s->sha256))
		return NULL;
	return err_fix(err_new(ERR_DENIED, "this runs code of %s, which nobody agreed to yet", s->path),
		       "give --yes-run-target once. The code runs in a process of its own without files, network, other processes or system "
		       "calls; that does not protect from faults of the kernel or of the processor");
}

struct err *ops_open_target(struct ses_snap *sn, int *ret)
{
	int fd = open(ses_local_path(sn->ses), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_new(ERR_BAD_INPUT, "%s cannot be opened", sn->ses->path);
	*ret = fd;
	return NULL;
}

/* --- verify --------------------------------------------------------------------------------------------------------- */
#define BATCH 32 /* functions compiled together */

/* A function of the request. */
struct job {
	uint32_t func;
	uint64_t va;
	bool is_done;
	const char *level;           /* of the C; null: there is none */
	bool is_new;                 /* not from the store */
	uint8_t key[32];
	struct verify_verdict verdict;
	char stage[64];              /* that changed behaviour first; "": not looked for, or none did alone */
	char unprotected[192];       /* what the kernel did not give for running it; "" when it was not run */
};

struct verifying {
	struct ops_req *rq;
	struct ses_verdict_how how;
	struct verify_opts opts;       /* what all batches have in common */
	struct verify_word words[VERIFY_WORD_MAX];
	bool is_kept;                  /* verdicts are looked up and kept */
	bool is_quick;
	struct ses_verdict_base base;
	struct store_cached_list kept;
	struct job *jobs;
	uint32_t cnt;
	pthread_mutex_t lock;
	struct err *e;
};

/* What a worker compiles: functions of its batch, each with its text. */
struct batch {
	struct arena arena, scratch;
	struct job *jobs[BATCH];
	struct verify_func funcs[BATCH];
	struct buf texts[BATCH];
	uint32_t cnt;
};

static struct err *still_wanted(void *ctx)
{
	const struct verifying *v = ctx;
	return ses_call_check(v->rq->call);
}

static const char *const arg_regs[] = {"rdi", "rsi", "rdx", "rcx", "r8", "r9"};

static void put_word(const struct verify_word *w, struct buf *out)
{
	if (w->at < 48)
		buf_add_str(out, arg_regs[w->at / 8]);
	else if (w->at >= VERIFY_ANSWER_AT && w->at < VERIFY_ANSWER_AT + 8 * VERIFY_ANSWER_MAX)
		buf_printf(out, "answer %llu", (unsigned long long)(w->at - VERIFY_ANSWER_AT) / 8);
	else if (w->len < 8)
		buf_printf(out, "[0x%llx:%llu]", (unsigned long long)w->at, (unsigned long long)w->len);
	else
		buf_printf(out, "[0x%llx]", (unsigned long long)w->at);
	buf_printf(out, "=0x%llx", (unsigned long long)w->value);
}

/* "seed 3: rdi=0x5, [0x200000001000]=0x1, else zero", which --input takes. */
static void put_input(const struct verify_verdict *v, struct buf *out)
{
	buf_printf(out, "seed %llu:", (unsigned long long)v->seed);
	for (uint32_t i = 0; i < v->word_cnt; i++) {
		buf_add_str(out, i ? ", " : " ");
		put_word(&v->words[i], out);
	}
	if (v->more_words)
		buf_printf(out, " and %u words more", v->more_words);
	buf_add_str(out, v->word_cnt ? ", else zero" : " all zero");
}

static bool take(const char **p, const char *word)
{
	size_t len = strlen(word);
	if (strncmp(*p, word, len) != 0)
		return false;
	*p += len;
	return true;
}

static bool take_number(const char **p, uint64_t *ret)
{
	char *end;
	errno = 0;
	*ret = strtoull(*p, &end, 0);
	bool ok = end != *p && !errno && **p >= '0' && **p <= '9';
	*p = end;
	return ok;
}

static bool take_place(const char **p, struct verify_word *w)
{
	w->len = 8;
	for (size_t i = 0; i < ARRAY_LEN(arg_regs); i++)
		if (take(p, arg_regs[i])) {
			w->at = 8 * i;
			return true;
		}
	if (take(p, "answer ")) {
		bool ok = take_number(p, &w->at) && w->at < VERIFY_ANSWER_MAX;
		w->at = VERIFY_ANSWER_AT + 8 * w->at;
		return ok;
	}
	return take(p, "[") && take_number(p, &w->at) && w->at >= VERIFY_ANSWER_AT + 8 * VERIFY_ANSWER_MAX &&
	       (!take(p, ":") || take_number(p, &w->len)) && w->len && w->len <= 8 && w->at <= UINT64_MAX - 8 && take(p, "]");
}

static bool read_input(const char *p, struct verify_opts *opts, struct verify_word *words)
{
	if (!take(&p, "seed ") || !take_number(&p, &opts->seed) || !take(&p, ":"))
		return false;
	if (!strcmp(p, " all zero"))
		return true;
	while (take(&p, " ") && !take(&p, "else zero")) {
		struct verify_word *w = &words[opts->word_cnt];
		if (opts->word_cnt == VERIFY_WORD_MAX || !take_place(&p, w) || !take(&p, "=") || !take_number(&p, &w->value) || !take(&p, ","))
			return false;
		opts->word_cnt++;
	}
	return !*p;
}

/* Rounded down: all is only said of all. */
static void put_share(struct ops_out *o, const char *key, uint32_t n, uint32_t of)
{
	char text[16];
	snprintf(text, sizeof(text), "%.4f", of ? (double)((uint64_t)n * 10000 / of) / 1e4 : 1.0);
	json_key(&o->json, key);
	json_raw(&o->json, text, strlen(text));
}

void ops_put_coverage(struct ops_out *o, const struct verify_verdict *v)
{
	if (!o->is_json)
		return;
	json_key(&o->json, "coverage");
	if (!v->inputs) {
		json_null(&o->json);
		return;
	}
	json_obj(&o->json);
	put_share(o, "blocks", v->blocks_hit, v->blocks);
	put_share(o, "edges", v->edges_hit, v->edges);
	json_end_obj(&o->json);
}

static bool put_verdict(struct ops_req *rq, const struct job *job)
{
	struct ops_out *o = rq->out;
	const struct verify_verdict *v = &job->verdict;
	if (!ops_out_item(o))
		return false;
	ops_out_text(o, "func", ses_func_name(rq->sn, job->func, rq->arena));
	ops_out_addr(o, "addr", job->va);
	ops_out_cstr(o, "status", verify_status_name(v->status));
	ops_out_cstr(o, "level", job->level ? job->level : "L4");
	if (v->status == VERIFY_NOT_RUN)
		ops_out_null(o, "compiler");
	else
		ops_out_cstr(o, "compiler", v->is_quick ? "tcc" : SES_VERDICT_CC);
	ops_out_u64(o, "inputs", v->inputs);
	ops_out_u64(o, "blocks", v->blocks);
	ops_out_u64(o, "blocks_hit", v->blocks_hit);
	ops_out_u64(o, "edges", v->edges);
	ops_out_u64(o, "edges_hit", v->edges_hit);
	ops_put_coverage(o, v);
	ops_out_cstr(o, "why", v->why);
	ops_out_cstr(o, "unprotected", job->unprotected);
	_cleanup_buf_ struct buf input = {0};
	put_input(v, &input);
	if (v->status == VERIFY_DIFFERS)
		ops_out_text(o, "counterexample", (struct ses_text){.s = input.data, .len = (uint32_t)input.len});
	else
		ops_out_null(o, "counterexample");
	if (job->stage[0])
		ops_out_cstr(o, "stage", job->stage);
	else
		ops_out_null(o, "stage");
	ops_out_end_item(o);
	return true;
}

/* Puts the function into the batch, unless its verdict is known. */
static struct err *add_func(struct verifying *v, struct batch *b, struct job *job)
{
	struct ops_req *rq = v->rq;
	struct ses_code c = {0};
	struct verify_func *f = &b->funcs[b->cnt];
	struct err *e = ses_code_func(rq->sn, job->func, false, &b->scratch, &c);
	arena_reset(&b->scratch);
	job->va = c.va;
	job->level = e ? NULL : dec_level_name(c.level);
	if (e && (e->kind == ERR_UNSUPPORTED || e->kind == ERR_BUDGET) && c.va) {
		job->verdict.status = VERIFY_NOT_RUN;
		snprintf(job->verdict.why, sizeof(job->verdict.why), "%s", e->text);
		job->is_done = true;
		err_free(e);
		ses_code_fini(&c);
		return NULL;
	}
	if (!e)
		e = ses_verdict_func(rq->sn, rq->call, &c, &b->arena, f);
	if (!e)
		e = ses_verdict_key(rq->sn, &v->base, f, &c, job->key);
	job->is_done = !e && ses_verdict_find(&v->kept, job->va, job->key, &v->how, &job->verdict);
	if (!e && !job->is_done) {
		b->jobs[b->cnt] = job;
		struct buf alone = {0};
		ses_code_alone(rq->sn, job->func, &c, &alone);
		b->texts[b->cnt++] = alone;
	}
	ses_code_fini(&c);
	return e;
}

static struct err *run_one(struct verify *verify, uint32_t i, struct job *job)
{
	struct err *e = verify_run(verify, i, &job->verdict);
	if (!e)
		snprintf(job->unprotected, sizeof(job->unprotected), "%s", verify_missing(verify));
	return e;
}

static struct err *put_texts(const struct batch *b, uint32_t from, uint32_t to, struct buf *text)
{
	ses_code_head(text);
	for (uint32_t i = from; i < to; i++)
		buf_add(text, b->texts[i].data, b->texts[i].len);
	return text->failed ? &err_nomem : NULL;
}

/* Functions `from` to `to` of the batch. When their C does not compile, each half is tried alone: the fault is one function's. */
static struct err *run_funcs(struct verifying *v, struct batch *b, uint32_t from, uint32_t to)
{
	_cleanup_buf_ struct buf text = {0};
	struct verify *verify = NULL;
	struct err *e = put_texts(b, from, to, &text);
	if (!e)
		e = verify_open(&v->opts, &text, b->funcs + from, to - from, &verify);
	if (e && e->kind == ERR_INTERNAL && to - from > 1) {
		uint32_t middle = from + (to - from) / 2;
		err_free(e);
		e = run_funcs(v, b, from, middle);
		return e ? e : run_funcs(v, b, middle, to);
	}
	if (e && e->kind == ERR_INTERNAL) {
		b->jobs[from]->verdict.status = VERIFY_NOT_RUN;
		snprintf(b->jobs[from]->verdict.why, sizeof(b->jobs[from]->verdict.why), "%s", e->text);
		b->jobs[from]->is_done = true;
		err_free(e);
		return NULL;
	}
	for (uint32_t i = from; !e && i < to; i++) {
		e = run_one(verify, i - from, b->jobs[i]);
		b->jobs[i]->is_done = b->jobs[i]->is_new = !e;
		ses_meter_add(v->rq->call, 1);
	}
	verify_close(verify);
	return e;
}

static void swap_funcs(struct batch *b, uint32_t i, uint32_t k)
{
	struct job *job = b->jobs[i];
	struct verify_func func = b->funcs[i];
	struct buf text = b->texts[i];
	b->jobs[i] = b->jobs[k];
	b->funcs[i] = b->funcs[k];
	b->texts[i] = b->texts[k];
	b->jobs[k] = job;
	b->funcs[k] = func;
	b->texts[k] = text;
}

static bool is_for_quick(const struct batch *b, uint32_t i)
{
	return verify_quick_takes(b->texts[i].data, b->texts[i].len);
}

/* A difference is not the quick compiler's to say. */
static bool is_settled(const struct batch *b, uint32_t i)
{
	return b->jobs[i]->verdict.status != VERIFY_DIFFERS;
}

/* Puts those of the first `cnt` functions before the others; how many they are. */
static uint32_t put_first(struct batch *b, uint32_t cnt, bool (*is_first)(const struct batch *b, uint32_t i))
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < cnt; i++)
		if (is_first(b, i))
			swap_funcs(b, i, n++);
	return n;
}

/* What the quick compiler takes and has no difference goes to the front of the batch, with its verdict; how many they are. */
static struct err *run_quick(struct verifying *v, struct batch *b, uint32_t *ret)
{
	struct verify_opts opts = v->opts;
	struct verify *verify = NULL;
	_cleanup_buf_ struct buf text = {0};
	uint32_t cnt = put_first(b, b->cnt, is_for_quick);
	opts.quick_header = ses_code_quick_header(&opts.quick_header_len);
	*ret = 0;
	if (!cnt)
		return NULL;
	struct err *e = put_texts(b, 0, cnt, &text);
	if (!e)
		e = verify_open(&opts, &text, b->funcs, cnt, &verify);
	if (e && (e->kind == ERR_INTERNAL || e->kind == ERR_ENV)) {
		/* It is not there, or does not take it after all. */
		err_free(e);
		return NULL;
	}
	for (uint32_t i = 0; !e && i < cnt; i++)
		e = run_one(verify, i, b->jobs[i]);
	verify_close(verify);
	if (e)
		return e;
	*ret = put_first(b, cnt, is_settled);
	for (uint32_t i = 0; i < *ret; i++)
		b->jobs[i]->is_done = true;
	ses_meter_add(v->rq->call, *ret);
	return NULL;
}

static void one_batch(void *ctx, unsigned worker, size_t from, size_t to)
{
	struct verifying *v = ctx;
	(void)worker;
	for (size_t at = from; at < to; at++) {
		pthread_mutex_lock(&v->lock);
		bool has_failed = v->e;
		pthread_mutex_unlock(&v->lock);
		if (has_failed)
			return;
		struct batch *b = calloc(1, sizeof(*b));
		struct err *e = b ? still_wanted(v) : &err_nomem;
		uint32_t end = MIN(v->cnt, (uint32_t)(at + 1) * BATCH);
		for (uint32_t i = (uint32_t)at * BATCH; !e && i < end; i++)
			e = add_func(v, b, &v->jobs[i]);
		uint32_t done = 0;
		if (!e && v->is_quick)
			e = run_quick(v, b, &done);
		if (!e && done < b->cnt)
			e = run_funcs(v, b, done, b->cnt);
		if (b) {
			for (uint32_t i = 0; i < b->cnt; i++)
				buf_fini(&b->texts[i]);
			arena_fini(&b->arena);
			arena_fini(&b->scratch);
		}
		free(b);
		pthread_mutex_lock(&v->lock);
		if (e && v->e)
			err_free(e);
		else if (e)
			v->e = e;
		pthread_mutex_unlock(&v->lock);
	}
}

/* What was found is kept, even when the call was ended early. */
static void keep_verdicts(struct verifying *v)
{
	struct store_cached *rows = ARENA_ARRAY(v->rq->arena, struct store_cached, (size_t)v->cnt + 1);
	uint32_t cnt = 0;
	for (uint32_t i = 0; rows && i < v->cnt; i++) {
		const struct job *j = &v->jobs[i];
		if (!j->is_new || !v->is_kept)
			continue;
		struct err *e = ses_verdict_row(j->va, j->key, &v->how, &j->verdict, v->rq->arena, &rows[cnt]);
		cnt += !e;
		err_free(e);
	}
	if (rows)
		ses_verdict_put(v->rq->sn, rows, cnt);
}

static struct err *run_all(struct verifying *v)
{
	struct par *par = par_new(0);
	if (!par)
		return &err_nomem;
	ses_meter_begin(v->rq->call, "functions", v->cnt);
	par_for(par, (v->cnt + BATCH - 1) / BATCH, 1, one_batch, v);
	par_free(par);
	keep_verdicts(v);
	return v->e;
}

/* Whether the C of a function, made as far as a stage, differs from its machine code. */
static struct err *stage_differs(struct verifying *v, struct job *job, unsigned stage, unsigned rules_off, bool *ret)
{
	struct arena a = {0}, scratch = {0};
	struct ses_code c = {0};
	struct verify_func f;
	struct verify *verify = NULL;
	struct verify_verdict verdict = {0};
	_cleanup_buf_ struct buf text = {0};
	struct err *e = ses_code_func_stage(v->rq->sn, job->func, stage, rules_off, &scratch, &c);
	if (!e)
		e = ses_verdict_func(v->rq->sn, v->rq->call, &c, &a, &f);
	ses_code_head(&text);
	ses_code_alone(v->rq->sn, job->func, &c, &text);
	if (!e)
		e = text.failed ? &err_nomem : verify_open(&v->opts, &text, &f, 1, &verify);
	if (!e)
		e = verify_run(verify, 0, &verdict);
	*ret = verdict.status == VERIFY_DIFFERS;
	verify_close(verify);
	ses_code_fini(&c);
	arena_fini(&a);
	arena_fini(&scratch);
	return e;
}

/* The first stage whose C differs; of the rules, which one. */
static struct err *bisect(struct verifying *v, struct job *job)
{
	unsigned stage = 0, cnt = ses_code_stage_cnt();
	bool differs = false;
	struct err *e = NULL;
	for (; !e && stage < cnt; stage++) {
		e = stage_differs(v, job, stage, 0, &differs);
		if (differs)
			break;
	}
	if (e || !differs)
		return e;
	snprintf(job->stage, sizeof(job->stage), "%s", ses_code_stage_name(stage));
	if (strcmp(job->stage, "rules") != 0)
		return NULL;
	/* With none of them it does not, with all it does. */
	unsigned lo = 0, hi = dec_rule_cnt();
	while (!e && hi - lo > 1) {
		unsigned middle = lo + (hi - lo) / 2;
		e = stage_differs(v, job, stage, dec_rule_cnt() - middle, &differs);
		lo = differs ? lo : middle;
		hi = differs ? middle : hi;
	}
	if (!e)
		snprintf(job->stage, sizeof(job->stage), "rule %s", dec_rule_name(hi - 1));
	return e;
}

static struct err *bisect_all(struct verifying *v)
{
	struct err *e = NULL;
	for (uint32_t i = 0; !e && i < v->cnt; i++)
		if (v->jobs[i].verdict.status == VERIFY_DIFFERS)
			e = bisect(v, &v->jobs[i]);
	return e;
}

static uint64_t func_va(struct ops_req *rq, uint32_t func)
{
	uint32_t cnt;
	return space_va(rq->sn->space, image_funcs(rq->sn->im, &cnt)[func].loc);
}

static bool is_listed(const uint32_t *list, uint32_t cnt, uint32_t func)
{
	for (uint32_t i = 0; i < cnt; i++)
		if (list[i] == func)
			return true;
	return false;
}

/* The functions asked for, each once, in order; all when none was. */
static struct err *find_funcs(struct ops_req *rq, uint32_t **ret, uint32_t *ret_cnt)
{
	size_t cnt;
	const char *const *names = ops_arg_texts(rq->args, "func", &cnt);
	uint32_t func_cnt;
	image_funcs(rq->sn->im, &func_cnt);
	bool is_all = ops_arg_is_set(rq->args, "all");
	if (is_all == (cnt > 0))
		return err_new(ERR_INVALID, "verify: name functions, or give --all");
	uint32_t *list = ARENA_ARRAY(rq->arena, uint32_t, is_all ? func_cnt + 1 : cnt);
	if (!list)
		return &err_nomem;
	*ret = list;
	*ret_cnt = is_all ? func_cnt : 0;
	for (uint32_t i = 0; is_all && i < func_cnt; i++)
		list[i] = i;
	for (size_t i = 0; i < cnt; i++) {
		uint64_t va;
		struct err *e = ses_resolve(rq->sn, names[i], &va);
		if (e)
			return e;
		uint32_t loc = space_loc(rq->sn->space, va);
		uint32_t func = loc == LOC_NONE ? UINT32_MAX : image_func_at(rq->sn->im, loc);
		if (func == UINT32_MAX)
			return err_new(ERR_NOT_FOUND, "%s: is in no function", names[i]);
		/* It has several names. */
		if (!is_listed(list, *ret_cnt, func))
			list[(*ret_cnt)++] = func;
	}
	return NULL;
}

static struct err *read_opts(struct verifying *v)
{
	const struct ops_args *args = v->rq->args;
	const char *input = ops_arg_str(args, "input");
	v->opts = (struct verify_opts){.im = v->rq->sn->im, .fd = -1, .cc = SES_VERDICT_CC, .level = SES_VERDICT_LEVEL, .seeds = v->how.seeds,
				       .cpu_ms = v->how.cpu_ms, .check = still_wanted, .check_ctx = v, .words = v->words,
				       .seed = ops_arg_u64(args, "seed", 0), .has_input = input};
	v->opts.header = ses_code_header(&v->opts.header_len);
	v->opts.import_args = ses_proto_import_args(v->rq->sn, v->rq->arena);
	v->is_quick = ops_arg_is_set(args, "quick");
	v->is_kept = !input && !ops_arg_is_set(args, "seed");
	if (input && ops_arg_is_set(args, "seed"))
		return err_new(ERR_INVALID, "verify: --input says its seed");
	if (input && v->cnt != 1)
		return err_new(ERR_INVALID, "verify: --input is for one function");
	if (input && !read_input(input, &v->opts, v->words))
		return err_fix(err_new(ERR_INVALID, "verify: --input: not as a counterexample is written"),
			       "'seed 3: rdi=0x5, [0x200000001000]=0x1, else zero'; with words more than it lists, --seed 3 is what there is");
	return NULL;
}

struct err *ops_verify(struct ops_req *rq)
{
	struct verifying v = {.rq = rq, .lock = PTHREAD_MUTEX_INITIALIZER,
			      .how = {.seeds = (uint32_t)MIN(ops_arg_u64(rq->args, "seeds", 16), 4096),
				      .cpu_ms = (uint32_t)MIN(MAX(ops_arg_u64(rq->args, "cpu_ms", 10), 1), 10000)}};
	struct ses_page page;
	uint32_t *funcs = NULL, cnt = 0;
	struct err *e = find_funcs(rq, &funcs, &cnt);
	if (!e)
		e = ops_page(rq, &page);
	if (!e)
		e = ops_need_consent(rq, rq->sn);
	if (!e)
		e = ses_verdict_base_make(rq->sn, &v.base);
	if (e)
		return e;
	uint32_t from = (uint32_t)MIN(page.offset, cnt), shown = 0;
	uint64_t differing = 0;
	v.cnt = MIN(cnt - from, page.limit);
	v.jobs = ARENA_ARRAY(rq->arena, struct job, (size_t)v.cnt + 1);
	if (!v.jobs)
		return &err_nomem;
	memset(v.jobs, 0, v.cnt * sizeof(*v.jobs));
	for (uint32_t i = 0; i < v.cnt; i++)
		v.jobs[i].func = funcs[from + i];
	e = read_opts(&v);
	if (e)
		return e;
	if (v.is_kept && !ops_arg_is_set(rq->args, "fresh"))
		v.kept = v.cnt == 1 ? ses_verdict_load(rq->sn, func_va(rq, funcs[from]), func_va(rq, funcs[from]), rq->arena)
				    : ses_verdict_load(rq->sn, 0, UINT64_MAX, rq->arena);
	e = ops_open_target(rq->sn, &v.opts.fd);
	if (!e)
		e = run_all(&v);
	if (!e && ops_arg_is_set(rq->args, "bisect"))
		e = bisect_all(&v);
	if (v.opts.fd >= 0)
		close(v.opts.fd);
	if (e)
		return e;
	ops_out_list(rq->out, rq->sn);
	while (shown < v.cnt && put_verdict(rq, &v.jobs[shown]))
		differing += v.jobs[shown++].verdict.status == VERIFY_DIFFERS;
	page.offset = from;
	ops_end_page(rq, &page, shown, cnt);
	/* Any difference is a refusal of the whole. */
	if (differing && !rq->out->status)
		rq->out->status = err_new(ERR_NOT_FOUND, "verify: %llu of %u functions differ", (unsigned long long)differing, cnt);
	return NULL;
}
