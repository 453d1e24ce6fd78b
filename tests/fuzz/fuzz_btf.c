/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BTF of whatever bytes: when it opens, every name in it is printed over some bytes, cut and whole; text is printable and bounded.
 */
#include "fuzz.h"

#include "base/cur.h"
#include "live/trace/trace_btf.h"

#include <stdlib.h>
#include <string.h>

static void print(const struct trace_btf *b, const char *name, size_t len)
{
	static uint8_t memory[300];
	struct buf out = {0};
	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i * 37);
	uint8_t *copy = malloc(len ? len : 1); /* so that a read past the end is seen */
	if (copy) {
		memcpy(copy, memory, len);
		if (trace_btf_put(b, name, copy, len, &out) == !out.len || out.failed || out.len > 40000)
			abort();
	}
	free(copy);
	buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct trace_btf *b = NULL;
	struct err *e = trace_btf_open(bytes, len, &b);
	if (e) {
		fuzz_rejected++;
		err_free(e);
		return 0;
	}
	fuzz_accepted++;
	struct cur c = cur_make(bytes, len, false);
	cur_seek(&c, 4);
	uint32_t head = cur_u32(&c);
	cur_skip(&c, 8);
	uint32_t off = cur_u32(&c), cnt = cur_u32(&c);
	struct cur strs = cur_sub(&c, (uint64_t)head + off, cnt);
	for (unsigned i = 0; i < 40 && cur_left(&strs); i++) {
		size_t name_len;
		const char *name = cur_str(&strs, &name_len);
		if (!name)
			break;
		print(b, name, 300);
		print(b, name, (i * 7) % 40);
	}
	trace_btf_free(b);
	return 0;
}
