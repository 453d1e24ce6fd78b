/* SPDX-License-Identifier: Apache-2.0 */
/* A file of which nobody knows anything: one segment of all its bytes from address 0 on, in which there may be anything. */
#include "format/fmt.h"

struct err *fmt_open_raw(const uint8_t *bytes, uint64_t len, const struct fmt_as *as, struct fmt_bin **ret)
{
	if (!len)
		return err_new(ERR_BAD_INPUT, "the file is empty");
	struct fmt_bin *b = calloc(1, sizeof(*b));
	if (!b)
		return &err_nomem;
	b->bytes = bytes;
	b->bytes_len = len;
	b->kind = FMT_RAW;
	b->type = FMT_TYPE_EXEC;
	b->machine = as->machine;
	b->machine_name = as->machine_name;
	b->bits = as->bits;
	b->is_stripped = true;
	b->format_name = "raw";
	b->os_name = "";
	struct fmt_segment seg = {.mem_len = len, .file_len = len, .perm = FMT_R | FMT_W | FMT_X, .name = {"raw", 3}};
	if (!VEC_PUSH(&b->segments, seg)) {
		fmt_bin_free(b);
		return &err_nomem;
	}
	*ret = b;
	return NULL;
}
