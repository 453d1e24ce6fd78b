/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/trace_site.h"

#include "live/trace/trace_cfi.h"
#include "live/trace/trace_maps.h"
#include "live/trace/trace_wire.h"
#include "live/trace/sysc.h"

#include "arch/arch.h"
#include "base/file.h"
#include "base/map.h"
#include "base/vec.h"
#include "format/fmt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAPS_MAX 4096         /* of one process; programs that make code have many */
#define ROWS_MAX (1u << 20)   /* answers about addresses that are kept */
#define CALL_MAX 8            /* bytes of a call instruction */
#define NONE UINT32_MAX
#define EXEC_FRAMES 16
#define EXECS_MAX 1024 /* calls that have begun */

/* A file that code was mapped from. */
struct module {
	char *path;
	uint64_t ino;       /* 0: not known */
	bool is_tried;
	struct file *file;  /* null: not there any more, or another one */
	struct fmt_bin *bin;
	VEC(uint32_t) funcs; /* symbols of functions by address */
};

struct site_map {
	uint64_t start, end, file_off;
	uint32_t module; /* NONE: no file */
};

struct site_proc {
	VEC(struct site_map) maps; /* the newest last */
	unsigned asked;            /* for how many addresses the process was asked since that changed */
};

/* Asking costs some microseconds, and a process that makes code without files has no end of addresses. */
#define ASKED_MAX 64

/* What an address of a module is. */
struct site_row {
	struct trace_cfi_row cfi;
	bool has_cfi, is_return;
};

/* Who is about to become another program: nothing of the old one is there when that call ends. */
struct site_exec {
	struct trace_frame frames[EXEC_FRAMES];
	uint32_t cnt;
};

struct trace_sites {
	bool is_live;
	const struct arch *arch;
	VEC(struct module) modules;
	struct map by_name;   /* hash of path and inode */
	VEC(struct site_proc) procs;
	struct map by_pid;
	VEC(struct site_exec) execs;
	struct map by_exec;    /* pid */
	VEC(struct site_row) rows;
	struct map by_address; /* module << 44 | va */
};

struct trace_sites *trace_sites_new(bool is_live)
{
	struct trace_sites *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->is_live = is_live;
	err_free(arch_get(ARCH_ID_X86_64, &s->arch));
	return s;
}

void trace_sites_free(struct trace_sites *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->modules.cnt; i++) {
		struct module *m = &s->modules.data[i];
		VEC_FREE(&m->funcs);
		fmt_bin_free(m->bin);
		file_close(m->file);
		free(m->path);
	}
	for (size_t i = 0; i < s->procs.cnt; i++)
		VEC_FREE(&s->procs.data[i].maps);
	VEC_FREE(&s->modules);
	VEC_FREE(&s->procs);
	VEC_FREE(&s->rows);
	VEC_FREE(&s->execs);
	map_fini(&s->by_exec);
	map_fini(&s->by_name);
	map_fini(&s->by_pid);
	map_fini(&s->by_address);
	free(s);
}

/* --- modules ------------------------------------------------------------------------------------------------------- */

static uint32_t find_module(struct trace_sites *s, const char *path, size_t len, uint64_t ino)
{
	uint64_t hash = 0xcbf29ce484222325 ^ ino; /* FNV-1a */
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (uint8_t)path[i]) * 0x100000001b3;
	uint32_t idx;
	if (map_find(&s->by_name, hash, &idx))
		return idx;
	struct module m = {.path = strndup(path, len), .ino = ino};
	if (!m.path || !VEC_PUSH(&s->modules, m) || !map_put(&s->by_name, hash, (uint32_t)(s->modules.cnt - 1)))
		return NONE;
	return (uint32_t)(s->modules.cnt - 1);
}

/* Opens the file at `path` if it still is the one that was mapped. */
static bool open_module(struct module *m, const char *path)
{
	struct err *e = file_open(path, &m->file);
	if (!e && m->ino && m->file->ino != m->ino)
		e = err_new(ERR_STALE, "another file");
	if (!e)
		e = fmt_open(m->file->data, m->file->len, &m->bin);
	if (e) {
		err_free(e);
		file_close(m->file);
		m->file = NULL;
	}
	return m->bin;
}

static int compare_funcs(const void *a, const void *b, void *bin)
{
	const struct fmt_symbol *syms = ((struct fmt_bin *)bin)->symbols.data;
	uint64_t x = syms[*(const uint32_t *)a].va, y = syms[*(const uint32_t *)b].va;
	return x < y ? -1 : x > y;
}

static struct module *get_module(struct trace_sites *s, uint32_t idx, uint32_t pid)
{
	struct module *m = &s->modules.data[idx];
	if (m->is_tried)
		return m;
	m->is_tried = true;
	char path[4096 + 32];
	snprintf(path, sizeof(path), "/proc/%u/root%s", pid, m->path);
	if (m->path[0] != '/' || (!open_module(m, m->path) && !(s->is_live && open_module(m, path))))
		return m;
	for (size_t i = 0; i < m->bin->symbols.cnt; i++) {
		const struct fmt_symbol *y = &m->bin->symbols.data[i];
		if ((y->type == FMT_SYM_FUNC || y->type == FMT_SYM_IFUNC) && !y->is_undefined && y->name.len && !VEC_PUSH(&m->funcs, (uint32_t)i))
			break;
	}
	if (m->funcs.cnt)
		qsort_r(m->funcs.data, m->funcs.cnt, sizeof(*m->funcs.data), compare_funcs, m->bin);
	return m;
}

/* The function of the instruction before: behind the last call of one that does not return another may begin. */
static void name_function(const struct module *m, struct trace_frame *f)
{
	size_t low = 0, high = m->funcs.cnt;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (m->bin->symbols.data[m->funcs.data[mid]].va < f->module_va)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return;
	const struct fmt_symbol *y = &m->bin->symbols.data[m->funcs.data[low - 1]];
	if (f->module_va - y->va > y->size_len)
		return;
	f->func = y->name.s;
	f->func_len = y->name.len;
	f->func_off = f->module_va - y->va;
}

/* --- processes ----------------------------------------------------------------------------------------------------- */

static struct site_proc *find_proc(struct trace_sites *s, uint32_t pid, bool makes)
{
	uint32_t idx;
	if (map_find(&s->by_pid, pid, &idx))
		return &s->procs.data[idx];
	if (!makes || !VEC_PUSH(&s->procs, (struct site_proc){0}))
		return NULL;
	if (!map_put(&s->by_pid, pid, (uint32_t)(s->procs.cnt - 1))) {
		s->procs.cnt--;
		return NULL;
	}
	return &s->procs.data[s->procs.cnt - 1];
}

static void add_map(struct site_proc *p, struct site_map m)
{
	size_t to = 0;
	for (size_t i = 0; i < p->maps.cnt; i++) { /* what it covers is not mapped any more */
		if (p->maps.data[i].start < m.start || p->maps.data[i].end > m.end)
			p->maps.data[to++] = p->maps.data[i];
	}
	p->maps.cnt = to;
	if (p->maps.cnt == MAPS_MAX)
		memmove(p->maps.data, p->maps.data + 1, --p->maps.cnt * sizeof(*p->maps.data));
	if (m.end > m.start)
		(void)VEC_PUSH(&p->maps, m);
	p->asked = 0;
}

static const struct site_map *find_map(const struct site_proc *p, uint64_t va)
{
	for (size_t i = p ? p->maps.cnt : 0; i > 0; i--) {
		if (va >= p->maps.data[i - 1].start && va < p->maps.data[i - 1].end)
			return &p->maps.data[i - 1];
	}
	return NULL;
}

/* The mapping at `va`; a running process is asked for what no event told. */
static const struct site_map *get_map(struct trace_sites *s, uint32_t pid, uint64_t va)
{
	struct site_proc *p = find_proc(s, pid, true);
	const struct site_map *m = find_map(p, va);
	if (m || !s->is_live || !pid || !p || p->asked >= ASKED_MAX)
		return m;
	struct trace_map found;
	p->asked++;
	if (!trace_maps_query(pid, va, &found))
		return NULL;
	uint32_t module = found.path[0] ? find_module(s, found.path, strlen(found.path), found.ino) : NONE;
	add_map(p, (struct site_map){.start = found.start, .end = found.end, .file_off = found.file_off, .module = module});
	return find_map(p, va);
}

static const struct trace_slot *slot_of(const struct trace_event *ev, uint8_t arg)
{
	for (uint32_t i = 0; i < ev->nslots; i++) {
		if (ev->slots[i].arg == arg && ev->slots[i].len)
			return &ev->slots[i];
	}
	return NULL;
}

static uint64_t inode_of(const struct trace_event *ev)
{
	const struct trace_slot *s = slot_of(ev, TRACE_WIRE_ARG_FILE);
	struct trace_wire_file f = {0};
	if (s && s->len == sizeof(f))
		memcpy(&f, s->data, sizeof(f));
	return f.ino;
}

/* The mappings of a module that the kernel made by its program headers. */
static void add_segments(struct trace_sites *s, struct site_proc *p, uint32_t module, uint64_t bias)
{
	const struct fmt_bin *b = s->modules.data[module].bin;
	for (size_t i = 0; b && i < b->segments.cnt; i++) {
		const struct fmt_segment *g = &b->segments.data[i];
		uint64_t skew = g->va & 4095;
		if (g->perm & FMT_X && g->file_len)
			add_map(p, (struct site_map){.start = g->va + bias - skew, .end = (g->va + bias + g->mem_len + 4095) & ~4095ull,
						     .file_off = g->file_off - skew, .module = module});
	}
}

enum { AT_ENTRY_ = 9, AT_BASE_ = 7, AT_VDSO_ = 33 }; /* getauxval(3) */

/* A program that was just started: itself, its loader, and what the kernel gives it. */
static void take_exec(struct trace_sites *s, const struct trace_event *ev)
{
	struct site_proc *p = find_proc(s, ev->pid, true);
	const struct trace_slot *exe = slot_of(ev, TRACE_ARG_EXE), *auxv = slot_of(ev, TRACE_WIRE_ARG_AUXV);
	uint64_t entry = 0, base = 0, vdso = 0;
	if (!p)
		return;
	p->maps.cnt = 0;
	for (uint32_t i = 0; auxv && i + 16 <= auxv->len; i += 16) {
		uint64_t pair[2];
		memcpy(pair, auxv->data + i, sizeof(pair));
		entry = pair[0] == AT_ENTRY_ ? pair[1] : entry;
		base = pair[0] == AT_BASE_ ? pair[1] : base;
		vdso = pair[0] == AT_VDSO_ ? pair[1] : vdso;
	}
	uint32_t vdso_module = vdso ? find_module(s, "[vdso]", 6, 0) : NONE;
	if (vdso_module != NONE)
		add_map(p, (struct site_map){.start = vdso, .end = vdso + 8192, .module = vdso_module});
	uint32_t module = exe && exe->status == TRACE_OK ? find_module(s, (const char *)exe->data, exe->len, inode_of(ev)) : NONE;
	const struct fmt_bin *b = module != NONE ? get_module(s, module, ev->pid)->bin : NULL;
	if (!b || !entry)
		return;
	add_segments(s, p, module, entry - b->entry_va);
	uint32_t loader = base && b->interp.len ? find_module(s, b->interp.s, b->interp.len, 0) : NONE;
	const struct fmt_bin *l = loader != NONE ? get_module(s, loader, ev->pid)->bin : NULL;
	if (l)
		add_segments(s, p, loader, base - (l->base_va & ~4095ull));
}

static void take_mmap(struct trace_sites *s, const struct trace_event *ev)
{
	struct site_proc *p = find_proc(s, ev->pid, true);
	const struct trace_slot *path = slot_of(ev, 0);
	uint64_t start = ev->args[0], len = (ev->args[1] + 4095) & ~4095ull;
	if (!p || !len || start + len < start)
		return;
	/* mprotect says nothing of the file: what is there already is known better. */
	if (!path && find_map(p, start))
		return;
	uint32_t module = path && path->status == TRACE_OK ? find_module(s, (const char *)path->data, path->len, inode_of(ev)) : NONE;
	add_map(p, (struct site_map){.start = start, .end = start + len, .file_off = ev->args[4], .module = module});
}

static void take_fork(struct trace_sites *s, const struct trace_event *ev)
{
	uint32_t child = (uint32_t)ev->args[1];
	struct site_proc *to = child != ev->pid ? find_proc(s, child, true) : NULL, *from = find_proc(s, ev->pid, false);
	if (!to)
		return;
	to->maps.cnt = 0;
	for (size_t i = 0; from && i < from->maps.cnt; i++)
		(void)VEC_PUSH(&to->maps, from->maps.data[i]);
}

static bool is_exec(const struct trace_event *ev)
{
	return ev->kind == TRACE_SYSCALL && sysc_is_exec(ev->abi, ev->nr);
}

static size_t find_frames(struct trace_sites *s, const struct trace_event *ev, bool is_return, struct trace_frame *ret, size_t max);

static void keep_exec(struct trace_sites *s, const struct trace_event *ev)
{
	struct site_exec x;
	uint32_t idx;
	if (s->execs.cnt == EXECS_MAX) { /* all over again: those under way have no site then */
		s->execs.cnt = 0;
		map_fini(&s->by_exec);
		s->by_exec = (struct map){0};
	}
	x.cnt = (uint32_t)find_frames(s, ev, false, x.frames, EXEC_FRAMES);
	if (map_find(&s->by_exec, ev->pid, &idx))
		s->execs.data[idx] = x;
	else if (VEC_PUSH(&s->execs, x) && !map_put(&s->by_exec, ev->pid, (uint32_t)(s->execs.cnt - 1)))
		s->execs.cnt--;
}

void trace_sites_event(struct trace_sites *s, const struct trace_event *ev)
{
	struct site_proc *p;
	if (!ev->pid)
		return;
	switch (ev->kind) {
	case TRACE_SYSCALL:
		if (ev->unfinished && is_exec(ev))
			keep_exec(s, ev);
		return;
	case TRACE_EXEC:
		take_exec(s, ev);
		return;
	case TRACE_MMAP:
		take_mmap(s, ev);
		return;
	case TRACE_FORK:
		take_fork(s, ev);
		return;
	case TRACE_EXIT:
		p = ev->args[0] ? find_proc(s, ev->pid, false) : NULL;
		if (p)
			VEC_FREE(&p->maps);
		return;
	default:
		return;
	}
}

/* --- frames -------------------------------------------------------------------------------------------------------- */

/* Whether the instruction before `va` is a call. */
static bool is_behind_call(const struct trace_sites *s, const struct fmt_bin *b, uint64_t va)
{
	for (uint64_t n = 2; n <= CALL_MAX && n <= va; n++) {
		size_t left;
		const uint8_t *p = trace_cfi_bytes(b, va - n, &left);
		struct arch_insn insn;
		if (!p || left < n)
			continue;
		s->arch->decode(s->arch, p, (size_t)n, va - n, &insn);
		if (insn.len == n && (insn.flow == ARCH_FLOW_CALL || insn.flow == ARCH_FLOW_ICALL))
			return true;
	}
	return false;
}

/* What the address of the module is, asked once; null: memory is out. */
static const struct site_row *get_row(struct trace_sites *s, uint32_t module, uint64_t va, bool is_first)
{
	const struct fmt_bin *b = s->modules.data[module].bin;
	uint64_t key = (uint64_t)module << 45 | (va & ((1ull << 44) - 1)) << 1 | is_first;
	uint32_t idx;
	if (map_find(&s->by_address, key, &idx))
		return &s->rows.data[idx];
	struct site_row row = {0};
	if (s->rows.cnt == ROWS_MAX) { /* all over again, rather than without end */
		s->rows.cnt = 0;
		map_fini(&s->by_address);
		s->by_address = (struct map){0};
	}
	if (b && b->machine == FMT_MACHINE_X86_64 && s->arch) {
		/* A return address may be the first of another function: the call before it is what is asked for. */
		row.has_cfi = trace_cfi_find(b, is_first ? va : va - 1, &row.cfi);
		row.is_return = is_first || is_behind_call(s, b, va);
	}
	if (!VEC_PUSH(&s->rows, row) || !map_put(&s->by_address, key, (uint32_t)(s->rows.cnt - 1)))
		return NULL;
	return &s->rows.data[s->rows.cnt - 1];
}

/* Says what is known of `va`; gives what it is for unwinding, null when nothing is known. */
static const struct site_row *fill_frame(struct trace_sites *s, uint32_t pid, uint64_t va, bool is_first, struct trace_frame *f)
{
	*f = (struct trace_frame){.va = va};
	const struct site_map *map = get_map(s, pid, va);
	if (!map || map->module == NONE)
		return NULL;
	uint64_t off = map->file_off + (va - map->start);
	uint32_t module = map->module;
	const struct module *m = get_module(s, module, pid);
	f->module = m->path;
	f->file_off = off;
	if (!m->bin || !fmt_off_to_va(m->bin, off, &f->module_va))
		return NULL;
	f->build_id = m->bin->build_id;
	f->build_id_len = m->bin->build_id_len;
	name_function(m, f);
	return get_row(s, module, f->module_va, is_first);
}

/* A word of the sample; false: it lies outside. */
static bool read_stack(const struct trace_event *ev, uint64_t va, uint64_t *ret)
{
	uint64_t off = va - ev->sp;
	if (off > ev->nstack || ev->nstack - off < 8)
		return false;
	memcpy(ret, ev->stack + off, 8);
	return true;
}

/* Where unwinding is. */
struct unwind {
	uint64_t sp, bp;
	bool has_bp, is_first;
};

enum step { STEP_OK, STEP_END, STEP_UNKNOWN };

/* The next frame by the table's row. It ends where there is no caller and where the sample does, and is not known where the table does
 * not say. */
static enum step step(const struct trace_event *ev, const struct site_row *row, struct unwind *u, uint64_t *ret_va)
{
	const struct trace_cfi_row *c = &row->cfi;
	if (!row->has_cfi || c->base == TRACE_CFA_UNKNOWN || (c->base == TRACE_CFA_BP && !u->has_bp))
		return STEP_UNKNOWN;
	uint64_t cfa = (c->base == TRACE_CFA_SP ? u->sp : u->bp) + (uint64_t)(int64_t)c->cfa_off;
	if (c->ra_is_di && u->is_first && ev->kind == TRACE_SYSCALL) { /* it is the call's first argument, then */
		*ret_va = ev->args[0];
		u->sp = cfa;
		return STEP_OK;
	}
	if (c->is_signal || !c->has_ra || cfa <= u->sp || !read_stack(ev, cfa + (uint64_t)(int64_t)c->ra_off, ret_va))
		return STEP_END;
	if (c->has_bp)
		u->has_bp = read_stack(ev, cfa + (uint64_t)(int64_t)c->bp_off, &u->bp);
	u->has_bp = u->has_bp && !c->bp_is_lost;
	u->sp = cfa;
	return STEP_OK;
}

/* The first word from *sp on that follows a call. */
static const struct site_row *guess(struct trace_sites *s, const struct trace_event *ev, uint64_t *sp, struct trace_frame *f)
{
	uint64_t word;
	const struct site_proc *p = find_proc(s, ev->pid, false);
	for (uint64_t at = (*sp + 7) & ~7ull; read_stack(ev, at, &word); at += 8) {
		const struct site_row *row = find_map(p, word) ? fill_frame(s, ev->pid, word, false, f) : NULL;
		if (row && row->is_return) {
			*sp = at + 8;
			f->is_guess = true;
			return row;
		}
	}
	return NULL;
}

size_t trace_sites_frames(struct trace_sites *s, const struct trace_event *ev, struct trace_frame *ret, size_t max)
{
	uint32_t idx;
	if (ev->unfinished || ev->ret || !is_exec(ev))
		return find_frames(s, ev, false, ret, max);
	/* Its registers and mappings are the new program's. */
	if (!map_find(&s->by_exec, ev->pid, &idx))
		return 0;
	size_t cnt = MIN(max, s->execs.data[idx].cnt);
	memcpy(ret, s->execs.data[idx].frames, cnt * sizeof(*ret));
	return cnt;
}

static size_t find_frames(struct trace_sites *s, const struct trace_event *ev, bool is_return, struct trace_frame *ret, size_t max)
{
	if (!ev->ip || !max)
		return 0;
	const struct site_row *row = fill_frame(s, ev->pid, ev->ip, !is_return, &ret[0]);
	struct unwind u = {.sp = ev->sp, .bp = ev->bp, .has_bp = ev->bp != 0, .is_first = true};
	size_t cnt = 1;
	while (row && cnt < max) {
		uint64_t va = 0;
		enum step how = step(ev, row, &u, &va);
		u.is_first = false;
		row = how == STEP_OK ? fill_frame(s, ev->pid, va, false, &ret[cnt]) : NULL;
		if (row && !row->is_return)
			row = NULL;
		if (how == STEP_UNKNOWN) {
			row = guess(s, ev, &u.sp, &ret[cnt]);
			u.has_bp = false;
		}
		cnt += row != NULL;
	}
	return cnt;
}

size_t trace_sites_from(struct trace_sites *s, const struct trace_event *ev, bool is_return, struct trace_frame *ret, size_t max)
{
	return find_frames(s, ev, is_return, ret, max);
}

static bool is_named(const char *module, const char *const *names, size_t cnt)
{
	const char *slash = module ? strrchr(module, '/') : NULL, *name = slash ? slash + 1 : module;
	for (size_t i = 0; name && i < cnt; i++) {
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	}
	return false;
}

size_t trace_sites_caller(const struct trace_frame *frames, size_t cnt)
{
	static const char *const names[] = {"libc.so", "libc-", "libpthread", "[vdso]", "ld-linux", "ld.so", "ld-", "ld-musl"};
	enum { LIBRARIES = 4 }; /* before the loaders, which begin the library */
	size_t loader = 0;
	for (size_t i = 0; i < cnt; i++) {
		if (!is_named(frames[i].module, names, ARRAY_LEN(names)))
			return i;
		if (!loader && !is_named(frames[i].module, names, LIBRARIES))
			loader = i;
	}
	return loader;
}
