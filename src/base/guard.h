/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * A mapped file may be cut by someone else while it is read; the kernel then answers a read of the
 * missing page with SIGBUS. A view registered here survives that: the handler puts a page of zeros
 * under the faulting address and marks the view, the read goes on, and whoever gives an answer asks
 * guard_was_hit() before it believes what it read. Faults elsewhere go to the handler that was there
 * before (Python's, say). No jump leaves a third-party decoder half-way, which is why the page is
 * patched rather than the read abandoned.
 *
 * The registry is lock-free and bounded (GUARD_MAX views a process); adding and removing are
 * thread-safe.
 */
#define GUARD_MAX 4096

struct guard_view;

/* Registers [base, base + len), a file mapping of the caller's; null when the registry is full or
 * memory is out (the caller then must not map: it says so). The handler is installed on first use. */
_must_use_ struct guard_view *guard_add(const void *base, size_t len);

/* Must be called before the mapping is unmapped. Null is accepted. */
void guard_del(struct guard_view *v);

/* Whether a page of the view was found missing since guard_add(). */
bool guard_was_hit(const struct guard_view *v);

#endif
