/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TYPES_TYPES_SYSTEM_H
#define TYPES_TYPES_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What the headers of the system scry was built on declare: a table made at build time by src/types/system. Texts are canonical
 * C; that of a function is its prototype without a semicolon, its parameters without the headers' underscores.
 */
enum types_system_kind { TYPES_SYSTEM_TAG, TYPES_SYSTEM_TYPE, TYPES_SYSTEM_CONST, TYPES_SYSTEM_FUNC };

struct types_system_row {
	uint32_t name_off;           /* in types_system_names; NUL-terminated there. No pointers: nothing is to be done at start */
	uint32_t text_off, text_len; /* in types_system_text; of a constant its enum's */
	uint8_t kind;                /* enum types_system_kind */
};

/* Sorted by name, then kind. */
extern const struct types_system_row types_system_rows[];
extern const uint32_t types_system_cnt;
extern const char types_system_text[];
extern const char types_system_names[];
extern const int types_system_abi; /* enum types_abi of the machine it was made on: what structs look like is true there */

/* The row of that name: a tag, or with `is_tag` false anything else; null when there is none. O(log n). */
const struct types_system_row *types_system_find(const char *name, size_t len, bool is_tag);

#endif
