/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/trace_compat.h"

#include "base/cleanup.h"
#include "base/cur.h"
#include "live/trace/trace_event.h"

#include <string.h>

#define FIELDS(name) static const struct trace_compat_field name[]
FIELDS(f_long) = {{0, 4, 0, 8, true}, {0}};
FIELDS(f_ulong) = {{0, 4, 0, 8, false}, {0}};
FIELDS(f_id16) = {{0, 2, 0, 4, false}, {0}};
FIELDS(f_longs2) = {{0, 4, 0, 8, true}, {4, 4, 8, 8, true}, {0}}; /* timespec, timeval, utimbuf, rlimit, whose infinity is -1 */
FIELDS(f_longs4) = {{0, 4, 0, 8, true}, {4, 4, 8, 8, true}, {8, 4, 16, 8, true}, {12, 4, 24, 8, true}, {0}};
FIELDS(f_rusage) = {{0, 4, 0, 8, true},     {4, 4, 8, 8, true},     {8, 4, 16, 8, true},    {12, 4, 24, 8, true},   {16, 4, 32, 8, true},
		    {20, 4, 40, 8, true},   {24, 4, 48, 8, true},   {28, 4, 56, 8, true},   {32, 4, 64, 8, true},   {36, 4, 72, 8, true},
		    {40, 4, 80, 8, true},   {44, 4, 88, 8, true},   {48, 4, 96, 8, true},   {52, 4, 104, 8, true},  {56, 4, 112, 8, true},
		    {60, 4, 120, 8, true},  {64, 4, 128, 8, true},  {68, 4, 136, 8, true},  {0}};
FIELDS(f_iovec) = {{0, 4, 0, 8, false}, {4, 4, 8, 8, false}, {0}};
FIELDS(f_msghdr) = {{0, 4, 0, 8, false},   {4, 4, 8, 4, false},   {8, 4, 16, 8, false}, {12, 4, 24, 8, false},
		    {16, 4, 32, 8, false}, {20, 4, 40, 8, false}, {24, 4, 48, 4, false}, {0}};
FIELDS(f_sigaction) = {{0, 4, 0, 8, false}, {4, 4, 8, 8, false}, {8, 4, 16, 8, false}, {12, 8, 24, 8, false}, {0}};
FIELDS(f_stack) = {{0, 4, 0, 8, false}, {4, 4, 8, 4, false}, {8, 4, 16, 8, false}, {0}};
FIELDS(f_flock) = {{0, 2, 0, 2, false}, {2, 2, 2, 2, false}, {4, 4, 8, 8, true}, {8, 4, 16, 8, true}, {12, 4, 24, 4, false}, {0}};
FIELDS(f_aio_sigset) = {{0, 4, 0, 8, false}, {4, 4, 8, 8, false}, {0}};
FIELDS(f_statfs) = {{0, 4, 0, 8, false},   {4, 4, 8, 8, false},   {8, 4, 16, 8, false},  {12, 4, 24, 8, false},
		    {16, 4, 32, 8, false}, {20, 4, 40, 8, false}, {24, 4, 48, 8, false}, {28, 8, 56, 8, false},
		    {36, 4, 64, 8, false}, {40, 4, 72, 8, false}, {44, 4, 80, 8, false}, {0}};
FIELDS(f_sysinfo) = {{0, 4, 0, 8, true},    {4, 4, 8, 8, false},   {8, 4, 16, 8, false},  {12, 4, 24, 8, false}, {16, 4, 32, 8, false},
		     {20, 4, 40, 8, false}, {24, 4, 48, 8, false}, {28, 4, 56, 8, false}, {32, 4, 64, 8, false}, {36, 4, 72, 8, false},
		     {40, 2, 80, 2, false}, {44, 4, 88, 8, false}, {48, 4, 96, 8, false}, {52, 4, 104, 4, false}, {0}};
/* To struct stat of x86-64: st_dev 0, ino 8, nlink 16, mode 24, uid 28, gid 32, rdev 40, size 48, blksize 56, blocks 64, times from 72 on. */
FIELDS(f_stat) = {{0, 4, 0, 8, false},   {4, 4, 8, 8, false},   {10, 2, 16, 8, false}, {8, 2, 24, 4, false},  {12, 2, 28, 4, false},
		  {14, 2, 32, 4, false}, {16, 4, 40, 8, false}, {20, 4, 48, 8, false}, {24, 4, 56, 8, false}, {28, 4, 64, 8, false},
		  {32, 4, 72, 8, true},  {36, 4, 80, 8, false}, {40, 4, 88, 8, true},  {44, 4, 96, 8, false}, {48, 4, 104, 8, true},
		  {52, 4, 112, 8, false}, {0}};
FIELDS(f_stat64) = {{0, 8, 0, 8, false},   {88, 8, 8, 8, false},  {20, 4, 16, 8, false}, {16, 4, 24, 4, false}, {24, 4, 28, 4, false},
		    {28, 4, 32, 4, false}, {32, 8, 40, 8, false}, {44, 8, 48, 8, false}, {52, 4, 56, 8, false}, {56, 8, 64, 8, false},
		    {64, 4, 72, 8, true},  {68, 4, 80, 8, false}, {72, 4, 88, 8, true},  {76, 4, 96, 8, false}, {80, 4, 104, 8, true},
		    {84, 4, 112, 8, false}, {0}};

static const struct trace_compat shapes[] = {
	{"__aio_sigset", 8, 16, f_aio_sigset},
	{"__kernel_itimerspec", 16, 32, f_longs4},
	{"__kernel_old_itimerval", 16, 32, f_longs4},
	{"__kernel_old_time_t", 4, 8, f_long},
	{"__kernel_old_timeval", 8, 16, f_longs2},
	{"__kernel_timespec", 8, 16, f_longs2},
	{"aio_context_t", 4, 8, f_ulong},
	{"flock", 16, 32, f_flock},
	{"iovec", 8, 16, f_iovec},
	{"rlimit", 8, 16, f_longs2},
	{"rusage", 72, 144, f_rusage},
	{"sigaction", 20, 32, f_sigaction},
	{"size_t", 4, 8, f_ulong},
	{"stack_t", 12, 24, f_stack},
	{"stat", 64, 144, f_stat},
	{"stat64", 96, 144, f_stat64},
	{"statfs", 64, 120, f_statfs},
	{"sysinfo", 64, 112, f_sysinfo},
	{"tms", 16, 32, f_longs4},
	{"user_msghdr", 28, 56, f_msghdr},
	{"utimbuf", 8, 16, f_longs2},
	/* The same in both. */
	{"cap_user_data_t", 12, 12, NULL}, {"cap_user_header_t", 8, 8, NULL}, {"epoll_event", 12, 12, NULL}, {"fd_set", 8, 8, NULL},
	{"int", 4, 4, NULL}, {"loff_t", 8, 8, NULL}, {"new_utsname", 390, 390, NULL}, {"pollfd", 8, 8, NULL}, {"rlimit64", 16, 16, NULL},
	{"sched_param", 4, 4, NULL}, {"sembuf", 6, 6, NULL}, {"sigset_t", 8, 8, NULL}, {"statx", 256, 256, NULL}, {"timer_t", 4, 4, NULL},
	{"timezone", 8, 8, NULL}, {"u32", 4, 4, NULL}, {"unsigned", 4, 4, NULL}, {"unsigned int", 4, 4, NULL},
};
static const struct trace_compat id16 = {"gid_t", 2, 4, f_id16}, id32 = {"gid_t", 4, 4, NULL}, as_is = {"", 1, 1, NULL};

#define FIRST_SAME 403 /* from this number on calls of i386 take what those of 64-bit ABIs do */

const struct trace_compat *trace_compat_named(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		if (!strcmp(shapes[i].name, name))
			return &shapes[i];
	}
	return NULL;
}

const struct trace_compat *trace_compat_find(const struct sysc *s, const struct sysc_arg *a)
{
	char name[64];
	const char *from = a->ctype;
	while (!strncmp(from, "const ", 6) || !strncmp(from, "struct ", 7))
		from = strchr(from, ' ') + 1;
	size_t len = strcspn(from, "*");
	bool is_once = len && !strcmp(from + len, "*");
	while (len && from[len - 1] == ' ')
		len--;
	if (!is_once || len >= sizeof(name))
		return NULL;
	memcpy(name, from, len);
	name[len] = '\0';
	bool is_same = s->nr[TRACE_I386] >= FIRST_SAME && strcmp(name, "mmsghdr") && strcmp(name, "sigevent") && strcmp(name, "siginfo_t") &&
		       strcmp(name, "__aio_sigset");
	if (is_same)
		return &as_is;
	if (!strcmp(name, "gid_t") || !strcmp(name, "uid_t")) /* getgroups(2) of i386 is of the time when these had 16 bits */
		return s->nr[TRACE_X86_64] >= 0 ? &id16 : &id32;
	return trace_compat_named(name);
}

static uint64_t load(const uint8_t *p, size_t len, bool is_signed)
{
	uint64_t v = 0;
	for (size_t i = 0; i < len; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return is_signed && len == 4 ? (uint64_t)(int64_t)(int32_t)(uint32_t)v : v;
}

static void store(uint8_t *p, size_t len, uint64_t v)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

size_t trace_compat_widen(const struct trace_compat *c, const uint8_t *from, size_t len, uint8_t *to, size_t room)
{
	size_t done = 0;
	if (!c->fields) {
		memcpy(to, from, MIN(len, room));
		return MIN(len, room);
	}
	for (size_t at = 0; len - at >= c->from && room - done >= c->to; at += c->from, done += c->to) {
		memset(to + done, 0, c->to);
		for (const struct trace_compat_field *f = c->fields; f->from_len; f++)
			store(to + done + f->to, f->to_len, load(from + at + f->from, f->from_len, f->is_signed));
	}
	return done;
}

size_t trace_compat_control(const uint8_t *from, size_t len, uint8_t *to, size_t room)
{
	enum { HEAD = 12, WIDE = 16 }; /* bytes of the headers: length, level, type */
	size_t done = 0, at = 0;
	while (at < len && len - at >= HEAD) {
		uint32_t own = load_u32(from + at, false);
		size_t data = own >= HEAD ? MIN(own, len - at) - HEAD : 0, wide = (WIDE + data + 7) & ~(size_t)7;
		if (own < HEAD || wide > room - done)
			break;
		memset(to + done, 0, wide);
		store(to + done, 8, (uint64_t)own + WIDE - HEAD);
		memcpy(to + done + 8, from + at + 4, 8 + data);
		done += wide;
		at += ((size_t)own + 3) & ~(size_t)3;
	}
	return done;
}
