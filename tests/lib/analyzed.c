/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/analyzed.h"

#include "analysis/analysis.h"
#include "format/fmt.h"

static struct err *serialize(const struct file *f, struct buf *out)
{
	static const uint8_t no_hash[32];
	struct fmt_bin *b = NULL;
	struct image_data d = {0};
	const struct arch *arch;
	struct dbg_fdes fdes = {0};
	struct dbg_funcs go = {0};
	struct err *e = fmt_open(f->data, f->len, &b);
	if (!e)
		e = arch_get((enum arch_id)b->machine, &arch);
	if (!e)
		e = dbg_read_eh_frame(b, &fdes, &b->findings);
	if (!e)
		e = dbg_read_pclntab(b, &go, &b->findings);
	if (!e)
		e = image_data_from_fmt(b, no_hash, &d);
	if (!e) {
		struct par *par = par_new(1);
		const struct analysis_in in = {.arch = arch, .fdes = &fdes, .go_funcs = &go, .par = par};
		e = analysis_run(&in, &d);
		par_free(par);
	}
	if (!e)
		e = image_serialize(&d, out);
	VEC_FREE(&fdes.list);
	VEC_FREE(&go.list);
	arena_fini(&go.arena);
	image_data_fini(&d);
	fmt_bin_free(b);
	return e;
}

struct err *analyzed_open(const char *path, struct analyzed *ret)
{
	struct err *e = file_open(path, &ret->file);
	if (!e)
		e = serialize(ret->file, &ret->bytes);
	if (!e)
		e = image_open_mem(ret->bytes.data, ret->bytes.len, ret->file->data, ret->file->len, NULL, &ret->im);
	return e;
}

void analyzed_close(struct analyzed *a)
{
	image_unref(a->im);
	buf_fini(&a->bytes);
	file_close(a->file);
}
