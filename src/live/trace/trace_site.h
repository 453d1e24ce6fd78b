/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_SITE_H
#define LIVE_TRACE_SITE_H

#include "base/err.h"
#include "live/trace/trace_event.h"

/*
 * Where a call was made: ip, sp and the sample of the stack that an event carries, to modules, offsets in their files and
 * functions. What is mapped where comes from the events themselves (exec, mmap, fork), so it is right for processes that are gone
 * and for trace files; running processes are asked when that was lost. Frames are unwound by .eh_frame; a word of the stack
 * is taken for a return address only when the instruction before it is a call. x86-64; of other machines only the first frame.
 */
struct trace_frame {
	uint64_t va;         /* of the process: behind the system call, or the address a call returns to */
	const char *module;  /* path; null: not known */
	const uint8_t *build_id;
	uint32_t build_id_len;
	uint64_t file_off;   /* of va in the module's file */
	uint64_t module_va;  /* va as the module's file has it; 0: the file cannot be read */
	const char *func;    /* by the module's symbols, not NUL-terminated; null: none */
	uint32_t func_len;   /* bytes */
	uint64_t func_off;   /* of va in the function */
	bool is_guess;       /* the first word of the stack that could be it, where tables say nothing */
};

#define TRACE_FRAMES_MAX 64

struct trace_sites;

/* `is_live`: processes of the trace are asked through /proc. Null when memory is out. */
struct trace_sites *trace_sites_new(bool is_live);
void trace_sites_free(struct trace_sites *s);

/* Takes an event into account; all of a trace, in order. */
void trace_sites_event(struct trace_sites *s, const struct trace_event *ev);

/* The frames of an event, innermost first, at most `max`; 0: it has no ip. Strings are valid as long as `s`. */
size_t trace_sites_frames(struct trace_sites *s, const struct trace_event *ev, struct trace_frame *ret, size_t max);

/* The frames of another event than a system call: from ev->ip, which is a return address or (not `is_return`) the instruction at hand. */
size_t trace_sites_from(struct trace_sites *s, const struct trace_event *ev, bool is_return, struct trace_frame *ret, size_t max);

/* Which frame called the C library or loader (by the names of modules), if they are where the call was made: what people mean by
 * the call's site. Where nobody else called, the loader's frame that called the library, else the first one. */
size_t trace_sites_caller(const struct trace_frame *frames, size_t cnt);

#endif
