/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_HOLES_H
#define BASE_HOLES_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A file that is still on its way, mapped whole while its blocks come in any order. A block that is not there cannot be read: whoever does
 * so, wherever in the code it is, waits in a fault handler until the block has come, and the block is asked for before all others. What
 * never came is zeros only for who reads it after holes_end(), and holes_was_hit() says so.
 *
 * One thread fills (holes_fill, holes_next, holes_idle, holes_end), any number read. At most HOLES_MAX in a process.
 */
#define HOLES_MAX 64

struct holes;

/* Maps the `len` (not 0) bytes of `fd`, which stays the caller's. `block_len`: bytes, a multiple of the page size. Errors: io, budget. */
_must_use_ struct err *holes_new(int fd, uint64_t len, uint32_t block_len, struct holes **ret);
/* Unmaps. Nobody reads or fills any more. Null is accepted. */
void holes_free(struct holes *h);

const uint8_t *holes_data(const struct holes *h);
/* Bytes that are there. */
uint64_t holes_have_len(const struct holes *h);
/* Nothing comes any more; `is_whole`: everything is there, by whatever way. */
void holes_end(struct holes *h, bool is_whole);
bool holes_is_over(const struct holes *h);
/* Whether somebody read what never came. */
bool holes_was_hit(const struct holes *h);

/* Asks for a range before all that nobody asked for. */
void holes_want(struct holes *h, uint64_t off, uint64_t len);
/* Asks for it and waits at most `ms` (UINT_MAX: until nothing comes any more). Whether all of it is there. */
bool holes_wait(struct holes *h, uint64_t off, uint64_t len, unsigned ms);

/* --- the thread that fills --- */

/* The block is there: its bytes are in the file. */
void holes_fill(struct holes *h, size_t block);
/* The next block somebody asks for, each once; SIZE_MAX: none. */
size_t holes_next(struct holes *h);
/* What was handed out and has not come is handed out again. */
void holes_restart(struct holes *h);
/* Waits at most `ms` for somebody to ask, or for holes_wake(), which anybody may call. */
void holes_idle(struct holes *h, unsigned ms);
void holes_wake(struct holes *h);

#endif
