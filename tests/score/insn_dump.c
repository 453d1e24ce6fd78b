/* SPDX-License-Identifier: Apache-2.0 */
#include "arch/arch.h"
#include "base/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * insn_dump ARCH FILE OFF LEN VA: decodes a region of a file from its first byte to its last and prints
 * one line per instruction, "ADDRESS LENGTH TEXT", for comparison with another disassembler.
 */
static int fail(struct err *e)
{
	fprintf(stderr, "insn_dump: %s\n", e->text);
	int status = err_exit_status(e->kind);
	err_free(e);
	return status;
}

int main(int argc, char **argv)
{
	if (argc != 6) {
		fprintf(stderr, "usage: insn_dump ARCH FILE OFF LEN VA\n");
		return 2;
	}
	const struct arch *a;
	struct err *e = arch_get(arch_id_of_name(argv[1]), &a);
	if (e)
		return fail(e);
	struct file *f;
	e = file_open(argv[2], &f);
	if (e)
		return fail(e);
	uint64_t off = strtoull(argv[3], NULL, 0);
	uint64_t len = strtoull(argv[4], NULL, 0);
	uint64_t va = strtoull(argv[5], NULL, 0);
	if (off > f->len || len > f->len - off) {
		fprintf(stderr, "insn_dump: the region is not in the file\n");
		file_close(f);
		return 2;
	}
	const uint8_t *p = f->data + off;
	for (uint64_t i = 0; i < len;) {
		struct arch_text text;
		size_t n = a->format(a, p + i, len - i, va + i, NULL, &text);
		printf("%" PRIx64 " %zu %s\n", va + i, n, text.text);
		i += n;
	}
	file_close(f);
	return 0;
}
