/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DEBUGINFO_DW_IMAGE_H
#define DEBUGINFO_DW_IMAGE_H

#include "debuginfo/dw_api.h"
#include "format/fmt.h"

/*
 * Private to this folder: the debug sections of a program as an ELF file of their own, in memory, for
 * libdw. They are unpacked and relocated by our own reader, so libelf never sees the target's headers,
 * and nothing in it (no build-id, no links) makes libdw look for other files.
 */
#define DW_IMAGE_SECTIONS_MAX 24
#define DW_IMAGE_NOTES_MAX 8

struct dw_image {
	struct {
		const uint8_t *bytes; /* null when the program has none */
		size_t len;
	} sections[DW_IMAGE_SECTIONS_MAX]; /* by dw_image.c's list of names */
	uint64_t info_len; /* bytes of .debug_info and .debug_types: no more entries than that */
	char notes[DW_IMAGE_NOTES_MAX][200]; /* sections that cannot be read, and why */
	size_t note_cnt;
	struct arena arena; /* owns unpacked and relocated bytes */
	uint8_t *file;
	size_t file_len;
};

/* Collects the sections; false when out of memory. Nothing is released: the caller is about to end. */
bool dbg_dw_image_make(const struct fmt_bin *b, struct dw_image *ret);

/* Opens the made-up file with libelf; null when it fails. */
dw_elf *dbg_dw_image_open(const struct dw_api *dw, struct dw_image *image);

/* Whether the program has DWARF at all. */
bool dbg_dw_is_there(const struct fmt_bin *b);

#endif
