/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_ELFSAMPLE_H
#define TESTS_ELFSAMPLE_H

#include "lib/elfwriter.h"

/*
 * A small shared library with one of everything the dynamic table can hold, for any of the four
 * kinds of ELF: x86-64, i386, PowerPC64 and PowerPC big-endian. Symbols in order: puts (undefined
 * function, GLIBC_2.34 of libc.so.6), environ (undefined object), own_func, own_data (version
 * OWN_1, hidden).
 */
struct elfsample_opts {
	unsigned bits;
	bool is_be;
	bool has_hash, has_gnu_hash;
	bool has_sections; /* a section table with .symtab too */
	bool use_rel; /* REL instead of RELA (not for 64-bit PowerPC in practice, but readable) */
	/* Lies: what to write in place of the honest value. */
	bool has_chain_lie;
	uint32_t chain_lie;	 /* DT_HASH nchain */
	uint64_t override_tag;	 /* this entry of the dynamic table ... */
	uint64_t override_value; /* ... has this value; tag 0: none */
};

/* Where things are in the sample. */
struct elfsample {
	struct elfw w;
	uint64_t func_va, init_va, data_va;
	uint64_t slot_puts_va, slot_environ_va, pointer_va, abs_va, init_array_va,
		relr_va; /* two words at relr_va */
	uint64_t dyn_off, text_off;
};

/* Builds and finishes; release with elfw_fini(&ret->w). */
void elfsample_library(const struct elfsample_opts *opts, struct elfsample *ret);

#endif
