/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A person's condition (what is parsed compiles to a program whose jumps stay inside of it), records of the ring (what is decoded lies inside of
 * the record), and type information. The first byte says which.
 */
#include "fuzz.h"

#include "live/trace/probe_int.h"

#include <stdlib.h>
#include <string.h>

static const struct probe_arg args[] = {
	{.name = "path", .from = PROBE_REG, .at = 14, .size = 8, .fetch = PROBE_STRING, .len = 32},
	{.name = "count", .from = PROBE_REG, .at = 13, .size = 4, .is_signed = true},
	{.name = "flags", .from = PROBE_STACK, .at = 8, .size = 2, .fetch = PROBE_BYTES, .len = 20},
	{.name = "ratio", .from = PROBE_NOWHERE, .size = 8},
};
static const struct probe_kind kinds[] = {
	{.args = args, .arg_cnt = 4, .ret = {.size = 8, .fetch = PROBE_STRING, .len = 16}, .is_func = true, .has_return = true},
	{.args = args, .arg_cnt = 2, .ret = {.size = 8}, .is_32bit = true},
};
static const struct probe_point points[] = {{.off = 16}, {.off = 32, .kind = 1}, {.off = 48}};

static bool fuzz_cond(const uint8_t *bytes, size_t len)
{
	static struct probe_cond c;
	char *text = malloc(len + 1);
	struct probe_layout l;
	memcpy(text, bytes, len);
	text[len] = 0;
	struct err *e = probe_layout(&kinds[0], &l);
	if (e)
		abort();
	e = probe_cond_parse(&kinds[0], text, &c);
	bool ok = !e;
	err_free(e);
	for (unsigned i = 0; ok && i < 4; i++) {
		struct probe_body b[2];
		b[0] = b[1] = (struct probe_body){.kind = &kinds[0], .layout = &l, .cond = &c, .pending_fd = 5, .zero_fd = 6};
		struct probe_plan p = {.begins = b, .ends = b, .begin_cnt = 2, .end_cnt = 2, .is_session = i & 1, .is_return = i == 2,
				       .is_sleepable = i & 1, .point_cnt = 3, .stripe_cnt = 1, .is_return_id = 1, .cookie_id = 2,
				       .copy_text_id = i == 1 ? 3 : 0};
		struct probe_asm a = {0};
		probe_program(&p, &a);
		for (size_t n = 0; !a.failed && n < a.code.cnt; n++) {
			const struct bpf_insn *in = &a.code.data[n];
			bool is_jump = (in->code & 7) == BPF_JMP && (in->code & 0xf0) != BPF_CALL && (in->code & 0xf0) != BPF_EXIT;
			int64_t to = (int64_t)n + 1 + in->off;
			if ((is_jump && (to < 0 || to >= (int64_t)a.code.cnt)) || (in->dst_reg == BPF_REG_10 && in->off < -512))
				abort();
			n += in->code == (BPF_LD | BPF_DW | BPF_IMM);
		}
		probe_asm_fini(&a);
	}
	free(text);
	return ok;
}

static void check_inside(const struct trace_slot *s, const uint8_t *bytes, size_t len)
{
	if (s->len && (s->data < bytes || s->data > bytes + len || s->len > (size_t)(bytes + len - s->data)))
		abort();
}

static bool fuzz_record(const uint8_t *bytes, size_t len)
{
	const struct probe_opts o = {.points = points, .kinds = kinds, .point_cnt = 3, .kind_cnt = 2};
	struct probe_hit h;
	if (!probe_decode(&o, bytes, len, &h))
		return false;
	const struct probe_kind *k = &kinds[points[h.point].kind];
	if (h.values && (h.values < bytes || h.values + (size_t)8 * k->arg_cnt > bytes + len))
		abort();
	for (uint32_t i = 0; i <= PROBE_ARG_MAX; i++)
		check_inside(&h.slots[i], bytes, len);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	if (!len)
		return 0;
	const char *one = "one";
	uint32_t id = 0;
	if (*bytes != 'c' && *bytes != 'r')
		probe_btf_funcs(bytes + 1, len - 1, &one, 1, &id);
	bool ok = *bytes == 'c' ? fuzz_cond(bytes + 1, len - 1) : *bytes == 'r' ? fuzz_record(bytes + 1, len - 1)
		: id != 0;
	fuzz_accepted += ok;
	fuzz_rejected += !ok;
	return 0;
}
