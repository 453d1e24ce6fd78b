/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a live trace as they come over the pipe: what is read lies within the bytes, and says the same when it is written again. */
#include "fuzz.h"

#include "session/ses_live.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

static bool lies_in(struct ses_text t, const uint8_t *bytes, size_t len)
{
	const uint8_t *s = (const uint8_t *)t.s;
	return s >= bytes && s <= bytes + len && t.len <= (size_t)(bytes + len - s);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct ses_live_frame frames[SES_LIVE_FRAMES_MAX], again_frames[SES_LIVE_FRAMES_MAX];
	struct ses_live_row r, again;
	bool has_row = false;
	for (size_t at = 0; at < len;) {
		size_t n = ses_live_parse(bytes + at, len - at, frames, &r);
		if (!n || n == SIZE_MAX)
			break;
		bool is_well = lies_in(r.comm, bytes, len) && lies_in(r.name, bytes, len) && lies_in(r.args, bytes, len) &&
			       lies_in(r.result, bytes, len);
		for (uint32_t i = 0; i < r.frame_cnt; i++)
			is_well = is_well && lies_in(r.frames[i].module, bytes, len) && lies_in(r.frames[i].func, bytes, len);
		struct buf out = {0};
		ses_live_put(&r, &out);
		/* Texts longer than a row may have were cut. */
		size_t m = ses_live_parse((const uint8_t *)out.data, out.len, again_frames, &again);
		if (!is_well || m != out.len || again.frame_cnt != r.frame_cnt || again.pid != r.pid || again.kind != r.kind)
			abort();
		buf_fini(&out);
		has_row = true;
		at += n;
	}
	fuzz_accepted += has_row;
	fuzz_rejected += !has_row;
	return 0;
}
