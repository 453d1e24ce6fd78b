/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of files of other machines. */
#include "session/ops_int.h"

#include "session/ses_remote.h"

static struct err *put_rows(struct ops_req *rq, bool verify)
{
	struct ses_cached *rows = NULL;
	size_t cnt = 0, damaged_cnt = 0;
	struct err *e = ses_cache_list(verify, &rows, &cnt);
	if (e)
		return e;
	ops_out_list(rq->out, NULL);
	for (size_t i = 0; i < cnt && ops_out_item(rq->out); i++) {
		char used[40];
		ops_time_text((uint64_t)rows[i].used_s * 1000000000, used);
		ops_out_u64(rq->out, "bytes", rows[i].len);
		ops_out_cstr(rq->out, "used", used);
		ops_out_cstr(rq->out, "state", rows[i].is_damaged ? "damaged" : verify ? "intact" : "kept");
		ops_out_cstr(rq->out, "url", rows[i].url ? rows[i].url : "");
		ops_out_cstr(rq->out, "build_id", rows[i].id);
		ops_out_cstr(rq->out, "sha256", rows[i].sha256);
		ops_out_end_item(rq->out);
		damaged_cnt += rows[i].is_damaged;
	}
	ops_out_end_list(rq->out, cnt);
	ses_cache_free(rows, cnt);
	if (damaged_cnt)
		rq->out->status = err_new(ERR_BAD_INPUT, "%zu damaged files were removed; they are fetched again when they are asked for",
					  damaged_cnt);
	return NULL;
}

struct err *ops_cache_list(struct ops_req *rq)
{
	return put_rows(rq, false);
}

struct err *ops_cache_verify(struct ops_req *rq)
{
	return put_rows(rq, true);
}

struct err *ops_cache_prune(struct ops_req *rq)
{
	uint64_t freed_len = 0;
	struct err *e = ses_cache_prune(ops_arg_u64(rq->args, "limit", UINT64_MAX), &freed_len);
	if (e)
		return e;
	(void)ops_out_item(rq->out);
	ops_out_u64(rq->out, "freed", freed_len);
	ops_out_end_item(rq->out);
	return NULL;
}
