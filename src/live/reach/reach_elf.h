/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_REACH_REACH_ELF_H
#define LIVE_REACH_REACH_ELF_H

#include "live/reach/reach_peer.h"

struct reach_range {
	uint64_t off, len; /* bytes */
};

/* Reads `len` bytes of a file at `off`; fewer (also none) where they are not to be had. */
typedef size_t (*reach_read_fn)(void *ctx, uint64_t off, uint8_t *dst, size_t len);

/* The build-id of an ELF file (NT_GNU_BUILD_ID in a PT_NOTE segment, else a SHT_NOTE section; gABI 5, "Note Section"). 0 bytes: it has
 * none, is no ELF, or what tells is not to be had yet. All tables are bounded. Gives the length. */
unsigned reach_elf_id(reach_read_fn read, void *ctx, uint8_t ret_id[REACH_MAX_ID_LEN]);

/* Where the section headers end, which is where nearly every ELF file ends; 0: it has none, or is no ELF. */
uint64_t reach_elf_end(reach_read_fn read, void *ctx);

/* Where what a listing begins with lies: symbols and their names, relocations, versions, notes and what unwinds the stack (gABI 5, by section).
 * At most `max` ranges, as the file has them, so beyond its end, too; 0: none, or no ELF. */
size_t reach_elf_tables(reach_read_fn read, void *ctx, struct reach_range *ret, size_t max);

#endif
