/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables that tools/mksysc.py wrote, and look-ups in them. Rows are in order of name; an index by number is made by
 * the compiler for each ABI.
 */
#include "live/trace/sysc.h"

#include "live/trace/trace_event.h"

#include "base/cleanup.h"

#include <string.h>

/* --- sets of names -------------------------------------------------------------------------------------------------- */
#define N(value_name, value) {#value_name, value}
#define SET(set_name, mask, ...) static const struct sysc_name names_##set_name[] = {__VA_ARGS__};
#include "live/trace/sysc_sets.def"
#undef SET

static const struct sysc_set sets[SYSC_SET_COUNT] = {
#define SET(set_name, mask, ...) [SYSC_SET_##set_name] = {#set_name, mask, ARRAY_LEN(names_##set_name), names_##set_name},
#include "live/trace/sysc_sets.def"
#undef SET
#undef N
};

/* --- calls ---------------------------------------------------------------------------------------------------------- */
enum row {
#define SYSC(call, x86_64, i386, arm64, nargs, flags, classes, ...) ROW_##call,
#include "live/trace/sysc.def"
#undef SYSC
	ROW_COUNT
};

#define A(...) {__VA_ARGS__}
static const struct sysc rows[ROW_COUNT] = {
#define SYSC(call, x86_64, i386, arm64, nargs, flags, classes, ...) \
	[ROW_##call] = {#call, {x86_64, i386, arm64}, nargs, flags, classes, {__VA_ARGS__}},
#include "live/trace/sysc.def"
#undef SYSC
};

/* Row + 1 by number + 1, so that a call that is not there (-1) has the place of nobody. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
static const uint16_t by_x86_64[] = {
#define SYSC(call, x86_64, i386, arm64, nargs, flags, classes, ...) [x86_64 + 1] = ROW_##call + 1,
#include "live/trace/sysc.def"
#undef SYSC
};

static const uint16_t by_i386[] = {
#define SYSC(call, x86_64, i386, arm64, nargs, flags, classes, ...) [i386 + 1] = ROW_##call + 1,
#include "live/trace/sysc.def"
#undef SYSC
};

static const uint16_t by_arm64[] = {
#define SYSC(call, x86_64, i386, arm64, nargs, flags, classes, ...) [arm64 + 1] = ROW_##call + 1,
#include "live/trace/sysc.def"
#undef SYSC
};
#pragma GCC diagnostic pop

static const struct {
	const uint16_t *row;
	int end;
} by_nr[TRACE_ABI_COUNT] = {
	[TRACE_X86_64] = {by_x86_64, ARRAY_LEN(by_x86_64) - 1},
	[TRACE_I386] = {by_i386, ARRAY_LEN(by_i386) - 1},
	[TRACE_ARM64] = {by_arm64, ARRAY_LEN(by_arm64) - 1},
};

/* Arguments that depend on another argument. */
struct when {
	uint16_t row;
	uint8_t arg;
	uint32_t mask;
	char how;          /* '=': one of the values; '!': no bit of the mask is set */
	uint8_t nargs;
	uint8_t flags;
	uint8_t value_cnt;
	uint8_t change_cnt;
	const uint64_t *values;
	const struct change {
		int8_t idx; /* -1: nothing */
		struct sysc_arg a;
	} *changes;
};

#define V(...) ((const uint64_t[]){__VA_ARGS__})

#define W(idx, ...) {idx, {__VA_ARGS__}}
static const struct when whens[] = {
#define WHEN(call, arg, mask, how, nargs, flags, values, ...)                                                                \
	{ROW_##call, arg, mask, how, nargs, flags, sizeof(values) / sizeof(uint64_t),                                        \
	 sizeof((const struct change[]){__VA_ARGS__}) / sizeof(struct change), values, (const struct change[]){__VA_ARGS__}},
#include "live/trace/sysc_when.def"
#undef WHEN
};
#undef W
#undef V
#undef A

const struct sysc *sysc_find(unsigned abi, int nr)
{
	if (abi >= TRACE_ABI_COUNT || nr < 0 || nr >= by_nr[abi].end)
		return NULL;
	unsigned row = by_nr[abi].row[nr + 1];
	return row ? &rows[row - 1] : NULL;
}

int sysc_end(unsigned abi)
{
	return abi < TRACE_ABI_COUNT ? by_nr[abi].end : 0;
}

const struct sysc *sysc_all(size_t *ret_cnt)
{
	*ret_cnt = ROW_COUNT;
	return rows;
}

const struct sysc *sysc_by_name(const char *name, size_t len)
{
	size_t lo = 0, hi = ROW_COUNT;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int order = strncmp(rows[mid].name, name, len);
		if (!order && rows[mid].name[len])
			order = 1;
		if (!order)
			return &rows[mid];
		if (order < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static bool applies(const struct when *w, const uint64_t args[SYSC_ARG_MAX])
{
	uint64_t value = args[w->arg] & w->mask;
	if (w->how == '!')
		return !value;
	for (size_t i = 0; i < w->value_cnt; i++)
		if ((w->values[i] & UINT32_MAX) == value)
			return true;
	return false;
}

static void change(struct sysc *s, const struct when *w)
{
	s->nargs = w->nargs;
	s->flags |= w->flags;
	for (size_t k = 0; k < w->change_cnt; k++)
		if (w->changes[k].idx >= 0)
			s->a[w->changes[k].idx] = w->changes[k].a;
}

void sysc_resolve(const struct sysc *s, const uint64_t args[SYSC_ARG_MAX], struct sysc *ret)
{
	*ret = *s;
	if (s < rows || s >= rows + ROW_COUNT)
		return;
	for (size_t i = 0; i < ARRAY_LEN(whens); i++) {
		if (&rows[whens[i].row] == s && applies(&whens[i], args))
			change(ret, &whens[i]);
	}
}

bool sysc_variant(const struct sysc *s, size_t idx, struct sysc *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(whens); i++) {
		if (&rows[whens[i].row] != s || idx--)
			continue;
		*ret = *s;
		change(ret, &whens[i]);
		return true;
	}
	return false;
}

static const char *const class_names[SYSC_CLASS_COUNT] = {"file", "network", "memory", "process", "signal", "ipc", "desc", "creds",
							  "clock", "stat", "pure"};

const char *sysc_class_name(unsigned idx)
{
	return idx < SYSC_CLASS_COUNT ? class_names[idx] : NULL;
}

uint16_t sysc_class_bit(const char *name, size_t len)
{
	if (len && name[0] == '%') {
		name++;
		len--;
	}
	for (unsigned i = 0; i < SYSC_CLASS_COUNT; i++)
		if (strlen(class_names[i]) == len && !memcmp(class_names[i], name, len))
			return (uint16_t)(1u << i);
	return 0;
}

const struct sysc_set *sysc_set(unsigned abi, unsigned set)
{
	if (abi == TRACE_ARM64 && set == SYSC_SET_open)
		set = SYSC_SET_open_arm64;
	return set > SYSC_SET_NONE && set < SYSC_SET_COUNT ? &sets[set] : NULL;
}

const char *sysc_set_name(unsigned abi, unsigned set, uint64_t value)
{
	const struct sysc_set *s = sysc_set(abi, set);
	for (size_t i = 0; s && i < s->cnt; i++)
		if (s->names[i].value == value)
			return s->names[i].name;
	return NULL;
}

bool sysc_is_exec(unsigned abi, int nr)
{
	const struct sysc *c = sysc_find(abi, nr);
	return c && (!strcmp(c->name, "execve") || !strcmp(c->name, "execveat"));
}

bool sysc_is_wide(const struct sysc_arg *a)
{
	static const char *const wide[] = {"long", "size_t", "off_t", "64", "aio_context_t", "*"};
	for (size_t i = 0; i < ARRAY_LEN(wide); i++)
		if (strstr(a->ctype, wide[i]))
			return true;
	return false;
}
