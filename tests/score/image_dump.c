/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints what an image of the store says, for the score: every function, reference and jump table, one a line.
 *
 *   image_dump TARGET IMAGE
 *   F ADDR SOURCE FLAGS          a function: number of its source, flags in hex
 *   X FROM TO KIND               a reference: call jump read write offset
 *   T JUMP TABLE ENTRY TARGETS   a jump table: address of the table or -, bytes an entry, targets with commas
 */
#include "base/err.h"
#include "base/file.h"
#include "image/image.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const kind_names[] = {"call", "jump", "read", "write", "offset"};

static void print_funcs(const struct image *im)
{
	uint32_t cnt;
	const struct image_func *funcs = image_funcs(im, &cnt);
	for (uint32_t i = 0; i < cnt; i++)
		printf("F %" PRIx64 " %u %x\n", space_va(image_space(im), funcs[i].loc), funcs[i].source, funcs[i].flags);
}

static void print_xrefs(const struct image *im)
{
	const struct space *s = image_space(im);
	uint32_t cnt = image_xref_cnt(im);
	struct image_xref x;
	for (uint32_t i = 0; i < cnt; i++)
		if (image_xref_fwd(im, i, &x))
			printf("X %" PRIx64 " %" PRIx64 " %s\n", space_va(s, x.from), space_va(s, x.to),
			       x.kind < sizeof(kind_names) / sizeof(kind_names[0]) ? kind_names[x.kind] : "?");
}

static void print_tables(const struct image *im)
{
	const struct space *s = image_space(im);
	uint32_t cnt;
	const struct image_table *tables = image_tables(im, &cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		const struct image_table *t = &tables[i];
		printf("T %" PRIx64 " ", space_va(s, t->jump_loc));
		if (t->table_loc == LOC_NONE)
			printf("-");
		else
			printf("%" PRIx64, space_va(s, t->table_loc));
		printf(" %u ", t->entry_bytes);
		for (uint32_t k = 0; k < t->target_cnt; k++)
			printf("%s%" PRIx64, k ? "," : "", space_va(s, image_table_target(im, t, k)));
		printf("\n");
	}
}

int main(int argc, char **argv)
{
	_cleanup_err_ struct err *err = NULL;
	struct file *target = NULL, *bytes = NULL;
	struct image *im = NULL;
	int ret = 0;
	if (argc != 3) {
		fprintf(stderr, "usage: image_dump TARGET IMAGE\n");
		return 2;
	}
	err = file_open(argv[1], &target);
	if (!err)
		err = file_open(argv[2], &bytes);
	if (!err)
		err = image_open_mem(bytes->data, bytes->len, target->data, target->len, NULL, &im);
	if (err) {
		fprintf(stderr, "image_dump: %s\n", err->text);
		ret = 3;
	} else {
		print_funcs(im);
		print_xrefs(im);
		print_tables(im);
		image_unref(im);
		ret = fflush(stdout) ? 5 : 0;
	}
	file_close(bytes);
	file_close(target);
	return ret;
}
