/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running code of the target. Nothing here does so before a person agreed to it for these very bytes, at the command line; that is kept
 * in the store.
 */
#include "session/ops_int.h"
#include "session/ses_code.h"
#include "session/ses_int.h"

#include "live/verify/verify.h"

#include <fcntl.h>
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
	int fd = open(sn->ses->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_new(ERR_BAD_INPUT, "%s cannot be opened", sn->ses->path);
	*ret = fd;
	return NULL;
}

/* --- verify --------------------------------------------------------------------------------------------------------- */
#define BATCH 64

struct batch {
	struct ops_req *rq;
	int fd;
	uint32_t seeds, cpu_ms;
	uint64_t counts[VERIFY_STATUS_COUNT];
	uint64_t blocks, blocks_hit;
	bool stopped; /* the answer is full */
};

static uint64_t *block_list(struct ops_req *rq, uint32_t func, uint32_t *ret_cnt)
{
	uint32_t range_cnt, n = 0;
	const struct image_range *r = image_func_ranges(rq->sn->im, func, &range_cnt);
	for (uint32_t i = 0; i < range_cnt; i++)
		for (uint32_t at = r[i].loc, end = at + r[i].len; at < end; at = image_block_next(rq->sn->im, at + 1, end))
			n += image_block_starts(rq->sn->im, at);
	uint64_t *list = ARENA_ARRAY(rq->arena, uint64_t, n + 1);
	*ret_cnt = 0;
	for (uint32_t i = 0; list && i < range_cnt; i++)
		for (uint32_t at = r[i].loc, end = at + r[i].len; at < end; at = image_block_next(rq->sn->im, at + 1, end))
			if (image_block_starts(rq->sn->im, at) && *ret_cnt < n)
				list[(*ret_cnt)++] = space_va(rq->sn->space, at);
	return list;
}

/* "seed 3: rdi=0x5, [0x200000001000]=0x1", in order. */
static void put_input(const struct verify_verdict *v, struct buf *out)
{
	static const char *const regs[] = {"rdi", "rsi", "rdx", "rcx", "r8", "r9"};
	buf_printf(out, "seed %llu:", (unsigned long long)v->seed);
	for (uint32_t i = 0; i < v->word_cnt; i++) {
		uint64_t at = v->words[i].at, value = v->words[i].value;
		if (at < 48)
			buf_printf(out, "%s %s=0x%llx", i ? "," : "", regs[at / 8], (unsigned long long)value);
		else
			buf_printf(out, "%s [0x%llx]=0x%llx", i ? "," : "", (unsigned long long)at, (unsigned long long)value);
	}
	if (v->more_words)
		buf_printf(out, " and %u words more", v->more_words);
	buf_add_str(out, v->word_cnt ? ", else zero" : " all zero");
}

static void put_verdict(struct batch *b, uint32_t func, uint64_t va, const struct verify_verdict *v)
{
	struct ops_out *o = b->rq->out;
	if (!ops_out_item(o)) {
		b->stopped = true;
		return;
	}
	ops_out_text(o, "func", ses_func_name(b->rq->sn, func, b->rq->arena));
	ops_out_addr(o, "addr", va);
	ops_out_cstr(o, "status", verify_status_name(v->status));
	ops_out_cstr(o, "level", "L4");
	ops_out_u64(o, "inputs", v->inputs);
	ops_out_u64(o, "blocks", v->blocks);
	ops_out_u64(o, "blocks_hit", v->blocks_hit);
	ops_out_cstr(o, "why", v->why);
	_cleanup_buf_ struct buf input = {0};
	put_input(v, &input);
	if (v->status == VERIFY_DIFFERS)
		ops_out_text(o, "counterexample", (struct ses_text){.s = input.data, .len = (uint32_t)input.len});
	else
		ops_out_null(o, "counterexample");
	ops_out_end_item(o);
}

static struct err *run_batch(struct batch *b, const uint32_t *funcs, uint32_t cnt)
{
	struct ops_req *rq = b->rq;
	_cleanup_buf_ struct buf text = {0};
	struct verify_func *list = ARENA_ARRAY(rq->arena, struct verify_func, cnt);
	struct err *e = list ? NULL : &err_nomem;
	struct arena scratch = {0};
	ses_code_head(&text);
	for (uint32_t i = 0; !e && i < cnt; i++) {
		struct ses_code c = {0};
		e = ses_code_func(rq->sn, funcs[i], false, &scratch, &c);
		list[i].va = c.va;
		list[i].name = arena_strndup(rq->arena, c.name, strlen(c.name));
		list[i].blocks = block_list(rq, funcs[i], &list[i].block_cnt);
		uint64_t *words = ARENA_ARRAY(rq->arena, uint64_t, c.word_cnt + 1);
		if (words)
			memcpy(words, c.words, c.word_cnt * sizeof(*words));
		list[i].words = words;
		list[i].word_cnt = c.word_cnt;
		if (!e && (!list[i].name || !list[i].blocks || !words))
			e = &err_nomem;
		if (!e)
			buf_add(&text, c.text.data, c.text.len);
		/* Without C it gets the verdict not_run. */
		if (e && (e->kind == ERR_UNSUPPORTED || e->kind == ERR_BUDGET) && c.va) {
			err_free(e);
			e = NULL;
			list[i].name = "";
		}
		ses_code_fini(&c);
		arena_reset(&scratch);
	}
	arena_fini(&scratch);
	if (!e && text.failed)
		e = &err_nomem;
	struct verify_opts opts = {.im = rq->sn->im, .fd = b->fd, .cc = "gcc", .level = "-O1", .seeds = b->seeds, .cpu_ms = b->cpu_ms};
	opts.header = ses_code_header(&opts.header_len);
	struct verify *v = NULL;
	if (!e)
		e = verify_open(&opts, &text, list, cnt, &v);
	for (uint32_t i = 0; !e && i < cnt && !b->stopped; i++) {
		struct verify_verdict verdict;
		e = ses_call_check(rq->call);
		if (!e)
			e = verify_run(v, i, &verdict);
		if (e)
			break;
		b->counts[verdict.status]++;
		if (verdict.inputs) {
			b->blocks += verdict.blocks;
			b->blocks_hit += verdict.blocks_hit;
		}
		put_verdict(b, funcs[i], list[i].va, &verdict);
		ses_meter_add(rq->call, 1);
	}
	verify_close(v);
	return e;
}

/* The functions asked for, in order; all when none was. */
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
	*ret_cnt = is_all ? func_cnt : (uint32_t)cnt;
	for (uint32_t i = 0; is_all && i < func_cnt; i++)
		list[i] = i;
	for (size_t i = 0; i < cnt; i++) {
		uint64_t va;
		struct err *e = ses_resolve(rq->sn, names[i], &va);
		if (e)
			return e;
		uint32_t loc = space_loc(rq->sn->space, va);
		list[i] = loc == LOC_NONE ? UINT32_MAX : image_func_at(rq->sn->im, loc);
		if (list[i] == UINT32_MAX)
			return err_new(ERR_NOT_FOUND, "%s: is in no function", names[i]);
	}
	return NULL;
}

struct err *ops_verify(struct ops_req *rq)
{
	struct batch b = {.rq = rq, .fd = -1, .seeds = (uint32_t)MIN(ops_arg_u64(rq->args, "seeds", 16), 4096),
			  .cpu_ms = (uint32_t)MIN(ops_arg_u64(rq->args, "cpu_ms", 50), 10000)};
	uint32_t *funcs = NULL, cnt = 0;
	struct err *e = find_funcs(rq, &funcs, &cnt);
	if (!e)
		e = ops_need_consent(rq, rq->sn);
	if (!e)
		e = ops_open_target(rq->sn, &b.fd);
	if (e)
		return e;
	uint32_t from = (uint32_t)MIN(ops_arg_u64(rq->args, "offset", 0), cnt);
	ops_out_list(rq->out, rq->sn);
	ses_meter_begin(rq->call, "functions", cnt - from);
	for (uint32_t i = from; !e && i < cnt && !b.stopped; i += BATCH)
		e = run_batch(&b, funcs + i, MIN(cnt - i, (uint32_t)BATCH));
	close(b.fd);
	ops_out_end_list(rq->out, cnt);
	/* Any difference is a refusal of the whole. */
	if (!e && b.counts[VERIFY_DIFFERS] && !rq->out->status)
		rq->out->status = err_new(ERR_NOT_FOUND, "verify: %llu of %u functions differ", (unsigned long long)b.counts[VERIFY_DIFFERS], cnt);
	return e;
}
