/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_COMPAT_H
#define LIVE_TRACE_COMPAT_H

#include "live/trace/sysc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What calls of i386 pass, in the shape that 64-bit ABIs have: all who take events know that one alone. Layouts are the kernel's
 * (compat_stat, compat_sigaction and their like). Bytes may be anything.
 */
struct trace_compat {
	const char *name;      /* of the type, as struct sysc_arg has it without const and pointer */
	uint16_t from, to;     /* bytes of an element here and there */
	const struct trace_compat_field {
		uint16_t from, from_len, to, to_len; /* offsets and bytes */
		bool is_signed;
	} *fields;             /* ended by one without length; null: the same */
};

/* How an argument that is no string, bytes or address of a socket is passed by that call of i386; null: not known. */
const struct trace_compat *trace_compat_find(const struct sysc *s, const struct sysc_arg *a);

/* By its name alone: "iovec", "user_msghdr". */
const struct trace_compat *trace_compat_named(const char *name);

/* As many whole elements as `len` bytes have, at most `room` bytes of them, to `to`; gives the bytes that were written. */
size_t trace_compat_widen(const struct trace_compat *c, const uint8_t *from, size_t len, uint8_t *to, size_t room);

/* The same of control messages, whose headers have a shorter length. */
size_t trace_compat_control(const uint8_t *from, size_t len, uint8_t *to, size_t room);

#endif
