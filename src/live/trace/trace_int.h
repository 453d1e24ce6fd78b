/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_TRACE_INT_H
#define LIVE_TRACE_TRACE_INT_H

#include "live/trace/sysc.h"
#include "live/trace/trace_event.h"
#include "live/trace/trace_text.h"

#include "base/buf.h"
#include "base/cur.h"

/* What the printers of a call share. */
struct tx {
	const struct trace_event *ev;
	const struct trace_text_opts *o;
	struct sysc s;       /* resolved */
	struct buf *out;
	uint8_t status;      /* of the argument being printed: the worst slot it was made of */
};

/* --- trace_value.c: numbers, names and strings, none of which looks at an event --- */

/* Bytes as a C string in quotes with strace's escapes; `all_hex`: every byte as \xNN. */
void trace_put_quoted(struct buf *out, const uint8_t *bytes, size_t len, bool all_hex);
void trace_put_flags(struct buf *out, unsigned abi, unsigned set, uint64_t value);
void trace_put_enum(struct buf *out, unsigned abi, unsigned set, uint64_t value);
void trace_put_ptr(struct buf *out, uint64_t va); /* NULL or hex */
void trace_put_signal(struct buf *out, int sig);  /* "SIGINT", "SIGRT_3", a number */
void trace_put_sigset(struct buf *out, uint64_t set);
void trace_put_mode(struct buf *out, uint32_t mode);
void trace_put_dev(struct buf *out, uint64_t dev);
void trace_put_wait_status(struct buf *out, uint32_t status);
void trace_put_ioctl(struct buf *out, uint32_t cmd);
void trace_put_fd(struct buf *out, const struct tx *t, int32_t fd);
void trace_put_clone_flags(struct buf *out, uint64_t flags, uint64_t exit_signal);

/* --- trace_addr.c: socket addresses, messages --- */
void trace_put_sockaddr(struct buf *out, const uint8_t *bytes, size_t len);
void trace_put_sockopt(struct tx *t, const struct trace_slot *slot, uint64_t level, uint64_t optname);
void trace_put_msghdr(struct tx *t, unsigned idx);
void trace_put_iovec(struct tx *t, const struct trace_slot *vec, const struct trace_slot *data, uint64_t data_max);

/* --- trace_struct.c --- */

/* A struct by the name of its type. False: nobody described it, nothing was written. `len` may be less than its size: what
 * is missing is left out and "..." says so. */
bool trace_put_struct(const struct tx *t, struct buf *out, const char *ctype, const uint8_t *bytes, size_t len);
/* Who a signal is from, sigaction(2): what the first word of its union is. */
enum trace_origin { TRACE_ORIGIN_KERNEL /* nobody's number */, TRACE_ORIGIN_PROCESS /* its number */, TRACE_ORIGIN_FAULT /* the address */ };
enum trace_origin trace_origin_of(int sig, int32_t code);
/* Whether its si_code and who sent it are known: of what ends a process the kernel tells its tracers nothing. */
bool trace_signal_has_code(const struct trace_event *ev);
/* What the arguments of a TRACE_SIGNAL say, without the whole siginfo_t. */
void trace_put_signal_short(struct buf *out, const struct trace_event *ev);
void trace_put_siginfo(struct buf *out, const uint8_t *bytes, size_t len);

/* --- trace_text.c --- */
const struct trace_slot *trace_slot_find(const struct trace_event *ev, unsigned arg, unsigned phase, unsigned part);
/* A string or buffer in quotes, cut at string_max, with "..." where it is longer than `full`. */
void trace_put_buffer(const struct tx *t, struct buf *out, const uint8_t *bytes, size_t len, bool is_longer);

#endif
