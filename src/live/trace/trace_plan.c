/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/trace_plan.h"

#include "live/trace/sysc.h"
#include "live/trace/trace_compat.h"
#include "live/trace/trace_event.h"

#include "base/cleanup.h"

#include <string.h>

#define DATA_LIMIT 32
#define ARRAY_LIMIT 512
#define ADDR_LIMIT 128     /* struct sockaddr_storage */
#define CONTROL_LIMIT 256
#define IOV_LIMIT 256
#define STRV_COPY 256      /* bytes of pointers to the strings of an argv */
#define SEG_LEN (256u << 10) /* of a ring: what is recorded while who reads sleeps is a few of them */
#define SLOT_LEN sizeof(struct trace_wire_slot)

/* The table of one call while it is made. */
struct rows {
	struct trace_desc *d;
	unsigned abi; /* 0, or 1 for pointers of 4 bytes */
};

static struct trace_read_arg *add_row(struct rows *r, unsigned arg, enum trace_read read, unsigned flags)
{
	static struct trace_read_arg none;
	if (r->d->cnt == TRACE_ROWS)
		return &none;
	struct trace_read_arg *row = &r->d->rows[r->d->cnt++];
	*row = (struct trace_read_arg){.how = arg << 16, .read = (uint8_t)read, .flags = (uint8_t)flags,
		.src = (uint8_t)(TRACE_OFF_ARGS + 8 * arg), .cnt = TRACE_OFF_ONE, .least = 1};
	return row;
}

/* A row for the part of a struct msghdr whose pointer and number are at these words of it. */
static struct trace_read_arg *add_part(struct rows *r, unsigned arg, enum trace_part part, unsigned flags, unsigned word)
{
	unsigned len = r->abi ? 4 : 8;
	flags |= TRACE_READ_SRC_BASE | TRACE_READ_CNT_BASE | (r->abi ? TRACE_READ_CNT_32 : 0);
	struct trace_read_arg *row = add_row(r, arg, TRACE_READ_BYTES, flags);
	row->how |= (uint32_t)part << (24 + TRACE_WIRE_PART_SHIFT);
	row->src = (uint8_t)(SLOT_LEN + word * len);
	row->cnt = (uint8_t)(SLOT_LEN + (word + 1) * len);
	row->size = 1;
	return row;
}

static void add_data(struct rows *r, unsigned arg, unsigned flags, uint16_t limit)
{
	struct trace_read_arg *row = add_row(r, arg, TRACE_READ_DATA, flags);
	row->how |= (uint32_t)TRACE_PART_DATA << (24 + TRACE_WIRE_PART_SHIFT);
	row->limit = limit;
}

static void add_msghdr(struct rows *r, unsigned arg, unsigned flags, uint16_t limit)
{
	struct trace_read_arg *row = add_row(r, arg, TRACE_READ_BYTES, flags | TRACE_READ_IS_BASE);
	row->size = r->abi ? trace_compat_named("user_msghdr")->from : 56;
	row->copy = row->size;
	row = add_part(r, arg, TRACE_PART_NAME, flags | TRACE_READ_CNT_32, 0);
	row->copy = ADDR_LIMIT;
	row = add_part(r, arg, TRACE_PART_CONTROL, flags, 4);
	row->copy = CONTROL_LIMIT;
	row = add_part(r, arg, TRACE_PART_IOV, flags | TRACE_READ_IS_BASE, 2);
	row->size = r->abi ? 8 : 16;
	row->copy = IOV_LIMIT;
	add_data(r, arg, flags, limit);
}

/* The limit of one argument in bytes. */
static uint16_t limit_of(const struct trace_plan *p, const struct sysc *s, unsigned arg)
{
	for (size_t i = 0; i < p->limit_cnt; i++) {
		if (p->limits[i].arg == arg && !strcmp(p->limits[i].call, s->name))
			return MIN(p->limits[i].limit, (uint16_t)TRACE_LIMIT_MAX);
	}
	uint32_t limit;
	switch (s->a[arg].fetch) {
	case SYSC_FETCH_STR:
	case SYSC_FETCH_STRV:
		limit = p->string_limit ? p->string_limit : TRACE_LIMIT_MAX;
		break;
	case SYSC_FETCH_ARRAY:
		limit = p->array_limit ? p->array_limit : ARRAY_LIMIT;
		break;
	case SYSC_FETCH_SOCKADDR:
		limit = ADDR_LIMIT;
		break;
	case SYSC_FETCH_FIXED:
		limit = TRACE_LIMIT_MAX;
		break;
	default:
		limit = p->data_limit ? p->data_limit : DATA_LIMIT;
	}
	return (uint16_t)MIN(limit, (uint32_t)TRACE_LIMIT_MAX);
}

static void add_arg(struct rows *r, const struct trace_plan *p, const struct sysc *s, unsigned arg)
{
	const struct sysc_arg *a = &s->a[arg];
	unsigned flags = (a->dir & SYSC_IN ? TRACE_READ_IN : 0) | (a->dir & SYSC_OUT ? TRACE_READ_OUT : 0) |
			 (a->by_ret ? TRACE_READ_BY_RET : 0);
	uint16_t limit = limit_of(p, s, arg);
	bool is_struct = a->fetch == SYSC_FETCH_FIXED || a->fetch == SYSC_FETCH_ARRAY;
	const struct trace_compat *compat = r->abi && is_struct ? trace_compat_find(s, a) : NULL;
	struct trace_read_arg *row;

	if (r->abi && is_struct && !compat) /* the pointer is all that is shown then */
		return;
	switch (a->fetch) {
	case SYSC_FETCH_STR:
		row = add_row(r, arg, TRACE_READ_STR, flags);
		row->copy = (uint16_t)(limit + 2);
		return;
	case SYSC_FETCH_STRV:
		row = add_row(r, arg, TRACE_READ_STRV, flags);
		row->copy = STRV_COPY;
		row->limit = (uint16_t)(limit - 1); /* with the NUL of the last one it is a slot's limit */
		return;
	case SYSC_FETCH_MSGHDR:
		add_msghdr(r, arg, flags, limit);
		return;
	case SYSC_FETCH_IOVEC:
		row = add_row(r, arg, TRACE_READ_BYTES, (flags & ~TRACE_READ_BY_RET) | TRACE_READ_IS_BASE);
		row->size = r->abi ? 8 : 16;
		row->copy = IOV_LIMIT;
		break;
	default:
		row = add_row(r, arg, TRACE_READ_BYTES, flags);
		row->size = a->size ? a->size : 1;
		if (compat)
			row->size = (uint16_t)(a->size / compat->to * compat->from);
		row->copy = limit;
	}
	if (a->len == SYSC_LEN_ARG && a->partner >= 0) {
		row->cnt = (uint8_t)(TRACE_OFF_ARGS + 8 * a->partner);
		/* An int has the lower half of its register. */
		if (!sysc_is_wide(&s->a[a->partner]))
			row->flags |= TRACE_READ_CNT_32;
	} else if (a->len == SYSC_LEN_PTR) {
		row->cnt = SLOT_LEN;
		row->flags |= TRACE_READ_CNT_BASE | TRACE_READ_CNT_32;
	} else if (a->by_ret) {
		row->cnt = TRACE_OFF_ARGS + 8 * 6; /* the result */
	}
	if (a->fetch == SYSC_FETCH_IOVEC)
		add_data(r, arg, flags, limit);
}

#define VARIANT_STR_LIMIT 64

/*
 * Arguments that may be pointers, as another argument says: so many bytes as any of what they may lead to has are read, whatever the
 * others are. trace_decode.h leaves of that what the call at hand has.
 */
static void add_variants(struct rows *r, const struct trace_plan *p, const struct sysc *s)
{
	for (unsigned arg = 0; arg < SYSC_ARG_MAX; arg++) {
		struct sysc v;
		uint16_t copy = 0;
		for (size_t i = 0; s->a[arg].fetch == SYSC_FETCH_NONE && sysc_variant(s, i, &v); i++) {
			const struct sysc_arg *a = &v.a[arg];
			if (a->fetch == SYSC_FETCH_NONE)
				continue;
			uint16_t limit = limit_of(p, &v, arg);
			uint16_t len = a->fetch == SYSC_FETCH_FIXED ? (uint16_t)MIN(a->size, limit) : (uint16_t)MIN(limit, VARIANT_STR_LIMIT);
			copy = MAX(copy, len);
		}
		if (!copy)
			continue;
		struct trace_read_arg *row = add_row(r, arg, TRACE_READ_BYTES, TRACE_READ_IN | TRACE_READ_OUT);
		row->size = copy;
		row->copy = copy;
		row->least = UINT16_MAX; /* a number, mostly: reading there would be a fault, which takes as long as ten records */
	}
}

/*
 * Calls that functions of the C library with large frames make by one that has a frame itself, so that the word at sp is nobody's return
 * address: their records have more of the stack, and of some twice as much. Measured by tests/score/score_sites.py.
 */
static const char *const deep[] = {"openat", "open", "fcntl", "rt_sigaction", "rt_sigprocmask", "futex", "ioctl", "clone", "clone3",
	"vfork", "execve", "getcwd", "mprotect", "connect"};
static const char *const deepest[] = {"readlink", "readlinkat", "faccessat2"}; /* realpath(3) */

static bool is_among(const char *name, const char *const *names, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (!strcmp(name, names[i]))
			return true;
	}
	return false;
}

static void add_stack(struct rows *r, const struct trace_config *cfg, const struct sysc *s)
{
	if (!cfg->stack_deep)
		return;
	if (is_among(s->name, deep, ARRAY_LEN(deep)))
		r->d->flags |= TRACE_DESC_DEEP;
	if (!is_among(s->name, deepest, ARRAY_LEN(deepest)))
		return;
	struct trace_read_arg *row = add_row(r, TRACE_WIRE_ARG_STACK, TRACE_READ_BYTES, TRACE_READ_IN | TRACE_READ_OUT);
	/* The pointer is the record's own sp, behind the members before it. */
	row->src = (uint8_t)(TRACE_OFF_ARGS - offsetof(struct trace_wire, args) + sizeof(struct trace_wire) +
			     (cfg->flags & TRACE_WIRE_TIMED ? 8 : 0) + offsetof(struct trace_wire_user, sp));
	row->size = 2 * TRACE_STACK_DEEP;
	row->copy = 2 * TRACE_STACK_DEEP;
}

/* Rows of all arguments that are followed; the number that another one's length is read from comes before that one. */
static void fill_desc(const struct trace_plan *p, const struct sysc *s, unsigned abi, struct trace_config *cfg, struct trace_desc *d)
{
	struct rows r = {.d = d, .abi = abi};
	unsigned done = 0;
	for (unsigned i = 0; i < s->nargs; i++) {
		const struct sysc_arg *a = &s->a[i];
		if (a->fetch == SYSC_FETCH_NONE || done & 1u << i)
			continue;
		if (a->len == SYSC_LEN_PTR && a->partner >= 0) {
			unsigned flags = s->a[a->partner].dir & SYSC_IN ? TRACE_READ_IN : 0;
			struct trace_read_arg *row = add_row(&r, (unsigned)a->partner, TRACE_READ_BYTES, flags | TRACE_READ_OUT | TRACE_READ_IS_BASE);
			row->size = 4;
			row->copy = 4;
			done |= 1u << a->partner;
		}
		add_arg(&r, p, s, i);
	}
	if (!abi) /* structs of i386 are others */
		add_variants(&r, p, s);
	if (!abi)
		add_stack(&r, cfg, s);
}

/* Chooses strings that are looked at when the call begins, too; false: there is none. */
static bool hash_paths(struct trace_desc *d, uint32_t path_size)
{
	uint32_t cnt = 0;
	d->paths = 0;
	for (unsigned i = 0; i < d->cnt && cnt < TRACE_PATH_CNT; i++) {
		struct trace_read_arg *row = &d->rows[i];
		if (row->read != TRACE_READ_STR || row->copy != path_size)
			continue;
		d->paths |= (row->how >> 16 & 7) << 8 * cnt++;
		row->how |= (uint32_t)TRACE_WIRE_HASHED << 24;
	}
	for (unsigned i = cnt; i < 4; i++)
		d->paths |= (uint32_t)TRACE_NO_PATH << 8 * i;
	return cnt;
}

static void set_bit(uint64_t *bits, unsigned i)
{
	bits[i / 64] |= 1ull << (i % 64);
}

static bool is_wanted(const struct trace_plan *p, unsigned abi, unsigned nr)
{
	return !p->ids[abi] || (p->ids[abi][nr / 64] >> (nr % 64) & 1);
}

/* Calls after which it is asked again whether the thread is meant. */
static bool changes_self(const struct sysc *s)
{
	static const char *const names[] = {"setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setns", "unshare"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		size_t len = strlen(names[i]);
		if (!strncmp(s->name, names[i], len) && (!s->name[len] || !strcmp(s->name + len, "32")))
			return true;
	}
	return false;
}

/* Calls that make code: of i386 they are not followed. */
static bool makes_maps(const struct sysc *s, struct trace_desc *d)
{
	bool is_mmap = !strcmp(s->name, "mmap");
	if (!is_mmap && strcmp(s->name, "mprotect") && strcmp(s->name, "pkey_mprotect"))
		return false;
	d->fd_arg = is_mmap ? 4 : 7;
	return true;
}

void trace_plan_stack(struct trace_config *cfg, uint32_t len)
{
	cfg->stack_len = MIN(len, TRACE_STACK_SMALL);
	cfg->stack_more = len - cfg->stack_len;
	cfg->stack_deep = len ? TRACE_STACK_DEEP - cfg->stack_len : 0;
	cfg->fixed_len = (uint32_t)(sizeof(struct trace_wire) + (cfg->flags & TRACE_WIRE_TIMED ? 8 : 0) +
				    (cfg->flags & TRACE_WIRE_USER ? sizeof(struct trace_wire_user) : 0));
}

#if defined(__aarch64__)
static const unsigned abis[2] = {TRACE_ARM64, TRACE_ARM64};
#else
static const unsigned abis[2] = {TRACE_X86_64, TRACE_I386};
#endif

void trace_plan_fill(const struct trace_plan *p, struct trace_config *cfg, struct trace_shared *shared)
{
	cfg->path_size = 2 + (p->string_limit ? MIN(p->string_limit, (uint32_t)TRACE_LIMIT_MAX) : TRACE_LIMIT_MAX);
	for (unsigned abi = 0; abi < 2; abi++) {
		for (unsigned nr = 0; nr < TRACE_IDS; nr++) {
			const struct sysc *s = nr < TRACE_IDS - 1 ? sysc_find(abis[abi], (int)nr) : NULL;
			struct trace_desc *d = &cfg->desc[abi][nr];
			bool wanted = is_wanted(p, abi, nr);
			if (s && !abi && p->with_maps && makes_maps(s, d)) {
				d->flags = (uint8_t)(TRACE_DESC_MAPS | (wanted ? 0 : TRACE_DESC_HIDDEN));
				set_bit(shared->exit_ids[abi], nr);
			}
			if (s && changes_self(s)) {
				d->flags = (uint8_t)(TRACE_DESC_JUDGE | (wanted ? 0 : TRACE_DESC_HIDDEN));
				set_bit(shared->exit_ids[abi], nr);
			}
			if (!wanted)
				continue;
			set_bit(shared->exit_ids[abi], nr);
			if (cfg->stack_more)
				d->flags |= TRACE_DESC_MORE;
			if (!s)
				continue;
			fill_desc(p, s, abi, cfg, d);
			bool is_exec = !strncmp(s->name, "execve", 6);
			if (is_exec)
				d->flags |= TRACE_DESC_ENTRY_SLOTS;
			if (is_exec || s->flags & SYSC_NO_RETURN || (p->with_blocking && s->flags & SYSC_BLOCKS))
				d->flags |= TRACE_DESC_ENTRY;
			if (p->with_races && !is_exec && hash_paths(d, cfg->path_size))
				d->flags |= TRACE_DESC_PATHS;
			if (d->flags & (TRACE_DESC_ENTRY | TRACE_DESC_PATHS))
				set_bit(shared->enter_ids[abi], nr);
		}
	}
}

void trace_plan_judge_clones(struct trace_config *cfg, struct trace_shared *shared)
{
	for (unsigned abi = 0; abi < 2; abi++) {
		for (unsigned nr = 0; nr < TRACE_IDS - 1; nr++) {
			const struct sysc *s = sysc_find(abis[abi], (int)nr);
			if (!s || (strcmp(s->name, "clone") != 0 && strcmp(s->name, "clone3") != 0))
				continue;
			bool wanted = shared->exit_ids[abi][nr / 64] >> (nr % 64) & 1;
			cfg->desc[abi][nr].flags |= (uint8_t)(TRACE_DESC_JUDGE | (wanted ? 0 : TRACE_DESC_HIDDEN));
			set_bit(shared->exit_ids[abi], nr);
		}
	}
}

size_t trace_plan_ring(struct trace_config *cfg, size_t len)
{
	/* Small rings have few segments, since there is room behind each for the longest record. */
	size_t seg_len = MIN(MAX(len / TRACE_SEGMENTS, (size_t)SEG_LEN), len / 4), each = seg_len + TRACE_RING_RECORD;
	cfg->seg_len = (uint32_t)seg_len;
	cfg->seg_cnt = (uint32_t)(len / seg_len);
	cfg->ring_last = (uint32_t)(cfg->seg_cnt * each - TRACE_RING_RECORD);
	return TRACE_RING_HEAD + cfg->seg_cnt * each;
}
