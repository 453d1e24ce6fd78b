/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo/dbg.h"

#include "base/map.h"

#include <libiberty/demangle.h>
#include <setjmp.h>

/*
 * Readable names through libiberty. A mangled name can refer back to its own parts, so a few hundred
 * bytes may stand for more text than there is memory, and the library knows no limit on what it
 * writes. Three things bound it here:
 *  - C++ and Rust write through a callback; past the limit the callback jumps out of the library, which at
 *    that point owns no heap memory (its callback entry points work on the stack). There is no
 *    other way to stop it, which is why this file has a long jump.
 *  - Looking for the parameter pack under a C++ pack expansion walks shared parts again and again
 *    without writing anything. Where a name may have such an expansion its tree is measured first.
 *  - D names are written to the heap, so their growth is bounded beforehand from their references.
 * The library's own recursion limit stays on; it also refuses C++ names over 1,024 bytes.
 */
#define DEMANGLE_IN_MAX 4096
#define DEMANGLE_OUT_MAX 16384

/* C++ names over this are refused by the library's recursion limit. */
#define DEMANGLE_CXX_MAX 1024

/* Steps of one walk below a pack expansion; and where counting them stops mattering. */
#define DEMANGLE_PACK_STEPS_MAX 2000
#define DEMANGLE_STEPS_CAP (1u << 20)

/* Reference steps allowed in a D name; each writes at most a few names. */
#define DEMANGLE_D_STEPS_MAX 4096

#define DEMANGLE_OPTIONS (DMGL_PARAMS | DMGL_ANSI)

struct demangle_out {
	size_t len;
	jmp_buf stop;
	char text[DEMANGLE_OUT_MAX];
};

static void demangle_put(const char *s, size_t len, void *opaque)
{
	struct demangle_out *out = opaque;
	if (len > sizeof(out->text) - out->len)
		longjmp(out->stop, 1);
	/* Of an empty identifier there is no text at all. */
	if (len)
		memcpy(out->text + out->len, s, len);
	out->len += len;
}

typedef int demangle_fn(const char *name, int options, demangle_callbackref put, void *opaque);

/* Runs one of the library's callback entry points; false when it refuses or writes too much. */
static bool demangle_run(demangle_fn *fn, const char *name, struct demangle_out *out)
{
	out->len = 0;
	if (setjmp(out->stop))
		return false;
	return fn(name, DEMANGLE_OPTIONS, demangle_put, out) != 0 && out->len > 0;
}

/* How many steps walking a tree takes, part by part, without remembering what was seen. */
struct demangle_walk {
	struct map steps_of;   /* part -> steps; 0 while it is being walked */
	uint32_t pack_steps;   /* the most below one pack expansion */
	unsigned depth;
	bool failed;           /* a cycle, too deep, or no memory */
};

static uint32_t demangle_walk_part(struct demangle_walk *w, const struct demangle_component *part);

static uint32_t demangle_walk_below(struct demangle_walk *w, const struct demangle_component *part)
{
	switch (part->type) {
	case DEMANGLE_COMPONENT_TEMPLATE_PARAM:
	case DEMANGLE_COMPONENT_NAME:
	case DEMANGLE_COMPONENT_OPERATOR:
	case DEMANGLE_COMPONENT_BUILTIN_TYPE:
	case DEMANGLE_COMPONENT_EXTENDED_BUILTIN_TYPE:
	case DEMANGLE_COMPONENT_SUB_STD:
	case DEMANGLE_COMPONENT_CHARACTER:
	case DEMANGLE_COMPONENT_FUNCTION_PARAM:
	case DEMANGLE_COMPONENT_UNNAMED_TYPE:
	case DEMANGLE_COMPONENT_NUMBER:
		return 0;
	case DEMANGLE_COMPONENT_EXTENDED_OPERATOR:
		return demangle_walk_part(w, part->u.s_extended_operator.name);
	case DEMANGLE_COMPONENT_CTOR:
		return demangle_walk_part(w, part->u.s_ctor.name);
	case DEMANGLE_COMPONENT_DTOR:
		return demangle_walk_part(w, part->u.s_dtor.name);
	case DEMANGLE_COMPONENT_FIXED_TYPE:
		return demangle_walk_part(w, part->u.s_fixed.length);
	case DEMANGLE_COMPONENT_LAMBDA:
	case DEMANGLE_COMPONENT_DEFAULT_ARG:
		return demangle_walk_part(w, part->u.s_unary_num.sub);
	case DEMANGLE_COMPONENT_PACK_EXPANSION: {
		uint32_t steps = demangle_walk_part(w, part->u.s_binary.left);
		w->pack_steps = MAX(w->pack_steps, steps);
		return 0; /* the library's walk stops at an inner expansion */
	}
	default:
		return demangle_walk_part(w, part->u.s_binary.left) + demangle_walk_part(w, part->u.s_binary.right);
	}
}

static uint32_t demangle_walk_part(struct demangle_walk *w, const struct demangle_component *part)
{
	uint32_t steps = 0;
	if (!part || w->failed)
		return 0;
	if (map_find(&w->steps_of, (uintptr_t)part, &steps)) {
		w->failed = w->failed || !steps;
		return steps;
	}
	w->failed = w->depth >= DEMANGLE_CXX_MAX || !map_put(&w->steps_of, (uintptr_t)part, 0);
	w->depth++;
	steps = MIN(1 + demangle_walk_below(w, part), DEMANGLE_STEPS_CAP);
	w->depth--;
	w->failed = w->failed || !map_put(&w->steps_of, (uintptr_t)part, steps);
	return steps;
}

/* Whether looking for packs in the C++ name is bounded; see the head of the file. */
static bool demangle_packs_are_bounded(const char *name, size_t len)
{
	if (!memmem(name, len, "Dp", 2) && !memmem(name, len, "sp", 2))
		return true;
	if (len > DEMANGLE_CXX_MAX)
		return false;
	void *mem = NULL;
	struct demangle_component *top = cplus_demangle_v3_components(name, DEMANGLE_OPTIONS, &mem);
	struct demangle_walk w = {0};
	demangle_walk_part(&w, top);
	map_fini(&w.steps_of);
	free(mem);
	return top && !w.failed && w.pack_steps <= DEMANGLE_PACK_STEPS_MAX;
}

/* The position a D back reference at `pos` means, or `pos` when it is none: a number in base 26, capitals
 * for all digits but the last, counted back from the 'Q'. */
static size_t demangle_d_target(const char *name, size_t len, size_t pos)
{
	size_t back = 0;
	for (size_t i = pos + 1; i < len && back < DEMANGLE_IN_MAX; i++) {
		if (name[i] >= 'A' && name[i] <= 'Z') {
			back = back * 26 + (size_t)(name[i] - 'A');
		} else if (name[i] >= 'a' && name[i] <= 'z') {
			back = back * 26 + (size_t)(name[i] - 'a');
			return back <= pos ? pos - back : pos;
		} else {
			break;
		}
	}
	return pos;
}

/*
 * Whether following the back references of a D name ends soon. One at `i` that means `t` reads again at most
 * what lies in [t, i), with the references in there: the library lets them only go backwards. One that
 * means an identifier (a digit) reads no further.
 */
static bool demangle_d_is_bounded(const char *name, size_t len)
{
	uint64_t before[DEMANGLE_IN_MAX + 1]; /* steps of all references before a position */
	before[0] = 0;
	for (size_t i = 0; i < len; i++) {
		uint64_t steps = 0;
		if (name[i] == 'Q') {
			size_t t = demangle_d_target(name, len, i);
			bool is_type = t < i && !(name[t] >= '0' && name[t] <= '9');
			steps = 1 + (is_type ? before[i] - before[t] : 0);
		}
		before[i + 1] = before[i] + steps;
		if (before[i + 1] > DEMANGLE_D_STEPS_MAX)
			return false;
	}
	return true;
}

static bool demangle_d(const char *name, size_t len, struct demangle_out *out)
{
	if (!demangle_d_is_bounded(name, len))
		return false;
	_cleanup_free_ char *text = dlang_demangle(name, DEMANGLE_OPTIONS);
	size_t text_len = text ? strlen(text) : 0;
	if (!text_len || text_len > sizeof(out->text))
		return false;
	memcpy(out->text, text, text_len);
	out->len = text_len;
	return true;
}

static bool demangle_any(const char *name, size_t len, struct demangle_out *out)
{
	switch (name[1]) {
	case 'Z':
		/* Rust's first scheme borrows C++'s and is told by the hash at the end. */
		if (demangle_run(rust_demangle_callback, name, out))
			return true;
		return demangle_packs_are_bounded(name, len) &&
		       demangle_run(cplus_demangle_v3_callback, name, out);
	case 'R':
		return demangle_run(rust_demangle_callback, name, out);
	case 'D':
		return demangle_d(name, len, out);
	default:
		return false;
	}
}

struct fmt_str dbg_demangle(struct arena *arena, const char *name, size_t len)
{
	struct fmt_str ret = {0};
	if (len < 3 || len > DEMANGLE_IN_MAX || name[0] != '_' || (name[1] != 'Z' && name[1] != 'R' && name[1] != 'D') ||
	    memchr(name, 0, len))
		return ret;
	char copy[DEMANGLE_IN_MAX + 1];
	memcpy(copy, name, len);
	copy[len] = 0;
	struct demangle_out out;
	if (demangle_any(copy, len, &out)) {
		ret.s = arena_strndup(arena, out.text, out.len);
		ret.len = ret.s ? (uint32_t)out.len : 0;
	}
	return ret;
}
