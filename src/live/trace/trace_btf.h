/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_TRACE_BTF_H
#define LIVE_TRACE_TRACE_BTF_H

#include "base/buf.h"
#include "base/err.h"

/*
 * Struct layouts of the running kernel out of its BTF (Documentation/bpf/btf.rst), so that what a call takes is shown with the
 * fields this kernel has. The bytes are read as hostile: every offset is checked, nesting and output are bounded.
 */
struct trace_btf;

/* Reads `len` bytes, which it borrows until trace_btf_free(). Error bad_input. */
_must_use_ struct err *trace_btf_open(const void *bytes, size_t len, struct trace_btf **ret);
/* The running kernel's. Error unsupported when it has none. */
_must_use_ struct err *trace_btf_open_kernel(struct trace_btf **ret);
void trace_btf_free(struct trace_btf *b);

/* Appends a struct, union or typedef with that name as "{a=1, b=[2, 3]}"; fields past `len` are left out and "..." says so.
 * False: there is no such type, nothing was written. */
bool trace_btf_put(const struct trace_btf *b, const char *name, const uint8_t *bytes, size_t len, struct buf *out);

/* Where a member with that name is in the struct, in bytes. False: there is no such struct, or no such member of its own that begins at a byte. */
bool trace_btf_member(const struct trace_btf *b, const char *name, const char *member, uint32_t *ret_off);

#endif
