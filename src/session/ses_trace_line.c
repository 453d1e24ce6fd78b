/* SPDX-License-Identifier: Apache-2.0 */
#include "session/ses_trace_line.h"

#include "session/ses_int.h"

#include "base/map.h"
#include "base/vec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DECOMPILE_NS 10000000000ull /* of one function */
#define KEPT_MAX 4096               /* functions whose C is kept */

struct line_func {
	char *name;
	bool has_c;
	struct arena arena; /* of c */
	struct ses_c c;
};

struct line_module {
	char *path;
	struct ses *ses;        /* null: it cannot be opened, or is another's */
	struct ses_snap *snap;
};

struct ses_lines {
	VEC(struct line_module) modules;
	VEC(struct line_func) funcs;
	VEC(struct ses_line) rows;
	struct map by_path;     /* hash of the path */
	struct map by_func;     /* module << 45 | address */
	struct map by_place;    /* module << 45 | offset */
	size_t c_cnt;
};

struct ses_lines *ses_lines_new(void)
{
	return calloc(1, sizeof(struct ses_lines));
}

void ses_lines_free(struct ses_lines *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->funcs.cnt; i++) {
		arena_fini(&l->funcs.data[i].arena);
		free(l->funcs.data[i].name);
	}
	for (size_t i = 0; i < l->modules.cnt; i++) {
		if (l->modules.data[i].snap)
			ses_snap_put(l->modules.data[i].snap);
		ses_close(l->modules.data[i].ses);
		free(l->modules.data[i].path);
	}
	VEC_FREE(&l->modules);
	VEC_FREE(&l->funcs);
	VEC_FREE(&l->rows);
	map_fini(&l->by_path);
	map_fini(&l->by_func);
	map_fini(&l->by_place);
	free(l);
}

static uint64_t key_of(uint32_t module, uint64_t at)
{
	return (uint64_t)module << 45 | (at & (((uint64_t)1 << 45) - 1));
}

static uint64_t hash_of(const char *path)
{
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
	for (const char *c = path; *c; c++)
		hash = (hash ^ (uint8_t)*c) * 0x100000001b3;
	return hash;
}

bool ses_lines_add(struct ses_lines *l, const char *path, struct ses_snap *sn)
{
	struct line_module m = {.path = strdup(path), .snap = sn};
	if (!m.path || !VEC_PUSH(&l->modules, m)) {
		free(m.path);
		return false;
	}
	atomic_fetch_add(&sn->refs, 1);
	return map_put(&l->by_path, hash_of(path), (uint32_t)(l->modules.cnt - 1));
}

static bool get_module(struct ses_lines *l, const char *path, uint32_t *ret)
{
	uint64_t hash = hash_of(path);
	if (map_find(&l->by_path, hash, ret))
		return !strcmp(l->modules.data[*ret].path, path);
	struct line_module m = {.path = strdup(path)};
	struct ses_opts o = {0};
	if (!m.path || !VEC_PUSH(&l->modules, m)) {
		free(m.path);
		return false;
	}
	*ret = (uint32_t)(l->modules.cnt - 1);
	struct line_module *to = &l->modules.data[*ret];
	if (!map_put(&l->by_path, hash, *ret))
		return false;
	struct err *e = ses_open(path, &o, &to->ses);
	if (!e)
		to->snap = ses_snap_get(to->ses);
	err_free(e);
	return true;
}

/* The function that starts at va; decompiled when that is new. Null: memory is out. */
static struct line_func *get_func(struct ses_lines *l, uint32_t module, uint64_t va, struct ses_text name)
{
	uint32_t idx;
	struct timespec now;
	if (map_find(&l->by_func, key_of(module, va), &idx))
		return &l->funcs.data[idx];
	struct line_func f = {.name = strndup(name.s ? name.s : "", name.len)};
	if (!f.name || !VEC_PUSH(&l->funcs, f)) {
		free(f.name);
		return NULL;
	}
	if (!map_put(&l->by_func, key_of(module, va), (uint32_t)(l->funcs.cnt - 1)))
		return NULL;
	struct line_func *to = &l->funcs.data[l->funcs.cnt - 1];
	if (l->c_cnt >= KEPT_MAX)
		return to;
	clock_gettime(CLOCK_MONOTONIC, &now);
	struct ses_call call = {.caps = SES_CAP_READ, .deadline_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + DECOMPILE_NS};
	struct err *e = ses_decompile(l->modules.data[module].snap, &call, va, &to->arena, &to->c);
	to->has_c = !e;
	l->c_cnt += !e;
	err_free(e);
	return to;
}

/* The address of the instruction before a place of the file, and of that place; false: it is mapped nowhere. */
static bool insn_before(struct ses_snap *sn, uint64_t off, struct arena *a, uint64_t *ret, uint64_t *ret_behind)
{
	char text[40];
	struct ses_head *heads;
	uint32_t cnt = 0;
	struct ses_call call = {.caps = SES_CAP_READ};
	snprintf(text, sizeof(text), "file:0x%llx", (unsigned long long)off - 1);
	struct err *e = off ? ses_resolve(sn, text, ret) : &err_not_found;
	struct ses_at at = {.va = *ret, .sub = SES_SUB_ITEM, .count = 1};
	bool is_there = !e;
	*ret_behind = *ret + 1;
	if (!e)
		e = ses_heads(sn, &call, &at, a, &heads, &cnt);
	if (!e && cnt && heads[0].va <= *ret)
		*ret = heads[0].va;
	err_free(e);
	return is_there;
}

static struct ses_line look(struct ses_lines *l, uint32_t module, uint64_t off)
{
	struct ses_line ret = {0};
	struct ses_snap *sn = l->modules.data[module].snap;
	struct arena a = {0};
	struct ses_func f;
	uint64_t va = 0, behind;
	if (sn && insn_before(sn, off, &a, &va, &behind) && ses_func_at(sn, va, &a, &f)) {
		const struct line_func *func = get_func(l, module, f.addr, f.name);
		ret.func = func ? func->name : NULL;
		ret.func_off = behind - f.addr;
		if (func && func->has_c && func->c.line_cnt)
			ret.line = ses_c_line_at(&func->c, va) + 1;
	}
	arena_fini(&a);
	return ret;
}

struct ses_line ses_lines_find(struct ses_lines *l, const char *path, uint64_t off)
{
	uint32_t module, idx;
	if (*path != '/' || !get_module(l, path, &module))
		return (struct ses_line){0};
	if (map_find(&l->by_place, key_of(module, off), &idx))
		return l->rows.data[idx];
	struct ses_line row = look(l, module, off);
	if (VEC_PUSH(&l->rows, row) && !map_put(&l->by_place, key_of(module, off), (uint32_t)(l->rows.cnt - 1)))
		l->rows.cnt--;
	return row;
}
