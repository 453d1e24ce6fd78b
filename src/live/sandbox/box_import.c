/* SPDX-License-Identifier: Apache-2.0 */
#include "live/sandbox/box_int.h"

#include "format/fmt.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <wchar.h>

/*
 * What stands for functions of other libraries. Pure ones of libc are libc's own; allocators count up through
 * one region, so that two runs get the same addresses; those that do not come back end the call; the rest gives 0
 * and is counted.
 */
static uint64_t heap_used;

uint64_t box_heap_used(void)
{
	return heap_used;
}

struct chunk {
	uint64_t len, pad;
};

static void *model_malloc(size_t len)
{
	uint64_t need = (len + sizeof(struct chunk) + 15) & ~(uint64_t)15;
	if (len > BOX_HEAP_LEN || need > BOX_HEAP_LEN - heap_used)
		return NULL;
	struct chunk *c = (struct chunk *)(uintptr_t)(BOX_HEAP + heap_used);
	heap_used += need;
	c->len = len;
	return c + 1;
}

static void *model_calloc(size_t cnt, size_t len)
{
	size_t all;
	/* Memory of the region is used once, so it is zero. */
	return __builtin_mul_overflow(cnt, len, &all) ? NULL : model_malloc(all);
}

static void *model_realloc(void *old, size_t len)
{
	void *p = model_malloc(len);
	uintptr_t a = (uintptr_t)old;
	if (p && a >= BOX_HEAP + sizeof(struct chunk) && a < BOX_HEAP + BOX_HEAP_LEN) {
		uint64_t had = ((struct chunk *)old - 1)->len;
		memcpy(p, old, had < len ? had : len);
	}
	return p;
}

static void *model_reallocarray(void *old, size_t cnt, size_t len)
{
	size_t all;
	return __builtin_mul_overflow(cnt, len, &all) ? NULL : model_realloc(old, all);
}

static uint64_t model_free(void *p)
{
	(void)p;
	return 0;
}

static uint64_t model_qsort(void *base, size_t cnt, size_t len, int (*compare)(const void *, const void *))
{
	qsort(base, cnt, len, compare);
	return 0;
}

static void *model_aligned(size_t align, size_t len)
{
	uintptr_t p = (uintptr_t)model_malloc(len + align);
	return p && align && !(align & (align - 1)) ? (void *)((p + align - 1) & ~(uintptr_t)(align - 1)) : (void *)p;
}

static int model_posix_memalign(void **ret, size_t align, size_t len)
{
	*ret = model_aligned(align, len);
	return *ret ? 0 : ENOMEM;
}

static char *model_strndup(const char *s, size_t max)
{
	size_t len = strnlen(s, max);
	char *p = model_malloc(len + 1);
	if (p) {
		memcpy(p, s, len);
		p[len] = '\0';
	}
	return p;
}

static char *model_strdup(const char *s)
{
	return model_strndup(s, PTRDIFF_MAX);
}

/* The checked forms check what the compiler knew; here the memory itself does. */
static void *model_memcpy_chk(void *to, const void *from, size_t len, size_t room)
{
	return len > room ? (box_finish(box_now->shared, BOX_EXITED), NULL) : memcpy(to, from, len);
}

static void *model_memmove_chk(void *to, const void *from, size_t len, size_t room)
{
	return len > room ? (box_finish(box_now->shared, BOX_EXITED), NULL) : memmove(to, from, len);
}

static void *model_memset_chk(void *to, int c, size_t len, size_t room)
{
	return len > room ? (box_finish(box_now->shared, BOX_EXITED), NULL) : memset(to, c, len);
}

static char *model_strcpy_chk(char *to, const char *from, size_t room)
{
	return model_memcpy_chk(to, from, strlen(from) + 1, room);
}

/* What the models call is found by the linker at its first call: that would be on the target's stack. */
void box_import_init(void)
{
	static volatile size_t len = 4;
	char a[8] = "abc", b[8];
	memcpy(b, a, strnlen(a, len));
	memmove(b + 1, b, strlen(a) - 1);
	memset(b, b[1], len);
}

/* What gives a number, what gives a floating-point one, and what calls the target back. */
enum { ENTRY_INT, ENTRY_VEC, ENTRY_BACK };

struct model {
	const char *name;
	void (*fn)(void);
	uint8_t entry;
};

#define PURE(name) {#name, (void (*)(void))(name), ENTRY_INT}
#define MODEL(name, fn) {#name, (void (*)(void))(fn), ENTRY_INT}
#define FLOAT(name) {#name, (void (*)(void))(name), ENTRY_VEC}
#define CALLS(name, fn) {#name, (void (*)(void))(fn), ENTRY_BACK}

static const struct model models[] = {
	PURE(strlen), PURE(strnlen), PURE(strcmp), PURE(strncmp), PURE(strcasecmp), PURE(strncasecmp), PURE(strchr),
	PURE(strrchr), PURE(strstr), PURE(strspn), PURE(strcspn), PURE(strpbrk), PURE(memchr), PURE(memcmp), PURE(memcpy),
	PURE(memmove), PURE(memset), PURE(strcpy), PURE(strncpy), PURE(strcat), PURE(strncat), PURE(stpcpy), PURE(toupper),
	PURE(tolower), PURE(isalpha), PURE(isdigit), PURE(isalnum), PURE(isspace), PURE(isupper), PURE(islower), PURE(isprint),
	PURE(ispunct), PURE(isxdigit), PURE(iscntrl), PURE(abs), PURE(labs), PURE(atoi), PURE(atol), PURE(strtol),
	PURE(strtoul), PURE(strtoll), PURE(strtoull), FLOAT(strtof), FLOAT(strtod), PURE(strtold), FLOAT(atof),
	CALLS(qsort, model_qsort), CALLS(bsearch, bsearch), PURE(wcslen), PURE(wmemchr), PURE(stpncpy),
	MODEL(__ctype_b_loc, __ctype_b_loc), MODEL(__ctype_tolower_loc, __ctype_tolower_loc),
	MODEL(__ctype_toupper_loc, __ctype_toupper_loc), MODEL(__errno_location, __errno_location),
	MODEL(__isoc23_strtol, strtol), MODEL(__isoc23_strtoul, strtoul),
	MODEL(malloc, model_malloc), MODEL(calloc, model_calloc), MODEL(realloc, model_realloc),
	MODEL(reallocarray, model_reallocarray), MODEL(free, model_free), MODEL(cfree, model_free),
	MODEL(aligned_alloc, model_aligned), MODEL(memalign, model_aligned), MODEL(posix_memalign, model_posix_memalign),
	MODEL(strdup, model_strdup), MODEL(__strdup, model_strdup), MODEL(strndup, model_strndup),
	MODEL(__memcpy_chk, model_memcpy_chk), MODEL(__memmove_chk, model_memmove_chk), MODEL(__memset_chk, model_memset_chk),
	MODEL(__strcpy_chk, model_strcpy_chk),
};

/* Those that do not come back; what the analysis found of stubs comes on top. */
static const char *const enders[] = {
	"exit", "_exit", "_Exit", "quick_exit", "abort", "__assert_fail", "__stack_chk_fail", "__fortify_fail", "__chk_fail",
	"err", "errx", "verr", "verrx", "longjmp", "_longjmp", "siglongjmp", "__longjmp_chk", "pthread_exit", "__cxa_throw",
	"__cxa_rethrow", "_Unwind_Resume", "_ZSt9terminatev",
};

/* Those that come back only when their first argument is 0. */
static const char *const status_enders[] = {"error", "error_at_line"};

/* Objects of libraries that the linker gave a place in the target. */
static const char *const objects[] = {
	"stdin", "stdout", "stderr", "environ", "__environ", "_environ", "program_invocation_name",
	"program_invocation_short_name", "__progname", "__progname_full", "optarg",
};

/* Recompiled code's own. */
static const char *const code_call[] = {"scry_call"};

static bool is_named(const char *const *names, size_t cnt, const char *s, size_t len)
{
	for (size_t i = 0; i < cnt; i++)
		if (strlen(names[i]) == len && !memcmp(names[i], s, len))
			return true;
	return false;
}

enum { STUB_LEN = 16 };

/* movabs $fn, %r11; jmp *%r11 */
static void put_direct(uint8_t *stub, uint64_t fn)
{
	static const uint8_t tail[] = {0x41, 0xff, 0xe3};
	stub[0] = 0x49;
	stub[1] = 0xbb;
	memcpy(stub + 2, &fn, 8);
	memcpy(stub + 10, tail, sizeof(tail));
}

/* The same by way of one of the entries of models. */
static void put_model(uint8_t *stub, const struct model *m)
{
	const uint8_t *entry = (const uint8_t *)BOX_DUMMY + 4096 + (size_t)(m->entry + 1) * STUB_LEN;
	int32_t off = (int32_t)(entry - (stub + 15));
	put_direct(stub, (uint64_t)(uintptr_t)m->fn);
	stub[10] = 0xe9;
	memcpy(stub + 11, &off, 4);
}

/* mov $number, %r11d; jmp to the common entry, which is at the end of the stubs */
static void put_counted(uint8_t *stub, uint32_t number, const uint8_t *entry)
{
	int32_t off = (int32_t)(entry - (stub + 11));
	stub[0] = 0x41;
	stub[1] = 0xbb;
	memcpy(stub + 2, &number, 4);
	stub[6] = 0xe9;
	memcpy(stub + 7, &off, 4);
}

static const struct model *model_of(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
		if (strlen(models[i].name) == len && !memcmp(models[i].name, name, len))
			return &models[i];
	return NULL;
}

/* Weak symbols nobody defines; programs have few. */
struct weak {
	uint32_t slots[64], cnt;
	uint32_t first, last;
};

static bool is_weak(const struct weak *w, uint32_t slot)
{
	for (uint32_t k = 0; slot >= w->first && slot <= w->last && k < w->cnt; k++)
		if (w->slots[k] == slot)
			return true;
	return false;
}

/* They are 0, and programs ask. The list is empty then. */
static void clear_weak(const struct box_object *b, const struct space *s, struct weak *w)
{
	for (uint32_t i = 0; w->cnt && i < s->reloc_cnt; i++) {
		if (s->reloc_kind[i] & (SPACE_REL_WIDE | SPACE_REL_CODE) || (s->reloc_kind[i] & 15) != 8 || !is_weak(w, s->reloc_val[i]))
			continue;
		uint64_t va = space_va(s, s->reloc_loc[i]);
		if (va != UINT64_MAX)
			memset((void *)(uintptr_t)(va + b->slide), 0, 8);
	}
	*w = (struct weak){.first = UINT32_MAX};
}

static void add_weak(const struct box_object *b, const struct space *s, struct weak *w, uint32_t slot)
{
	if (w->cnt == ARRAY_LEN(w->slots))
		clear_weak(b, s, w);
	w->slots[w->cnt++] = slot;
	w->first = MIN(w->first, slot);
	w->last = MAX(w->last, slot);
}

static void bind_objects(const struct box_object *b, const struct space *s)
{
	uint32_t cnt;
	const struct image_symbol *syms = image_symbols(b->im, &cnt);
	const uint64_t dummy = BOX_DUMMY;
	for (uint32_t i = 0; i < cnt; i++) {
		size_t len;
		const char *name = image_text(b->im, syms[i].name, &len);
		if (syms[i].loc == LOC_NONE || syms[i].size_len != 8 || !(syms[i].flags & IMAGE_SYM_DYNAMIC) ||
		    !is_named(objects, sizeof(objects) / sizeof(objects[0]), name, len))
			continue;
		int seg = space_seg_of_loc(s, syms[i].loc);
		uint64_t va = space_va(s, syms[i].loc);
		if (seg >= 0 && s->segs[seg].perm & 2 && va - s->segs[seg].va + 8 <= s->segs[seg].mem_len)
			memcpy((void *)(uintptr_t)(va + b->slide), &dummy, 8);
	}
}

const char *box_import_entry_map(void)
{
	if (mmap((void *)BOX_DUMMY, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) !=
	    (void *)BOX_DUMMY)
		return "there is no room for the objects of other libraries";
	/* The jump all counted stubs share, in a page of its own near them. */
	uint8_t *entry = (uint8_t *)BOX_DUMMY + 4096;
	if (mmap(entry, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != entry)
		return "there is no room for the stubs of imports";
	/* r11 holds the number, or the model: the entry's address goes through r10. */
	static const uint8_t jump[] = {0x41, 0xff, 0xe2};
	void (*const entries[])(void) = {box_import_entry, box_model_entry, box_model_entry_vec, box_model_entry_back};
	for (size_t i = 0; i < ARRAY_LEN(entries); i++, entry += STUB_LEN) {
		uint64_t fn = (uint64_t)(uintptr_t)entries[i];
		entry[0] = 0x49;
		entry[1] = 0xba;
		memcpy(entry + 2, &fn, 8);
		memcpy(entry + 10, jump, sizeof(jump));
	}
	entry = (uint8_t *)BOX_DUMMY + 4096;
	if (mprotect(entry, 4096, PROT_READ | PROT_EXEC))
		return "the stubs of imports cannot be protected";
	return NULL;
}

/* The number of the target's import with this name; one past all when it has none. */
static uint32_t number_of(const struct image *target, const char *name, size_t len)
{
	uint32_t cnt, sym_cnt;
	const struct image_import *imports = image_imports(target, &cnt);
	const struct image_symbol *syms = image_symbols(target, &sym_cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		size_t own_len;
		const char *own = imports[i].symbol < sym_cnt ? image_text(target, syms[imports[i].symbol].name, &own_len) : NULL;
		if (own && own_len == len && !memcmp(own, name, len))
			return i;
	}
	return cnt;
}

void box_bind_imports(const struct box_object *b, const struct image *target)
{
	const struct space *s = image_space(b->im);
	uint32_t cnt, sym_cnt;
	const struct image_import *imports = image_imports(b->im, &cnt);
	const struct image_symbol *syms = image_symbols(b->im, &sym_cnt);
	const uint8_t *entry = (const uint8_t *)BOX_DUMMY + 4096;
	struct weak weak = {.first = UINT32_MAX};
	for (uint32_t i = 0; i < cnt; i++) {
		uint64_t va = imports[i].loc == LOC_NONE ? UINT64_MAX : space_va(s, imports[i].loc);
		int seg = va == UINT64_MAX ? -1 : space_seg_of_va(s, va);
		if (seg < 0 || !s->segs[seg].is_extern || imports[i].symbol >= sym_cnt ||
		    va - s->segs[seg].va + STUB_LEN > s->segs[seg].mem_len)
			continue;
		const struct image_symbol *sym = &syms[imports[i].symbol];
		uint8_t *stub = (uint8_t *)(uintptr_t)(va + b->slide);
		size_t len;
		const char *name = image_text(b->im, sym->name, &len);
		const struct model *model = model_of(name, len);
		const uint64_t dummy = BOX_DUMMY;
		if (sym->type == FMT_SYM_OBJECT || sym->type == FMT_SYM_TLS)
			memcpy(stub, &dummy, 8);
		else if (b->im != target && is_named(code_call, 1, name, len))
			put_direct(stub, box_scry_call());
		else if (model)
			put_model(stub, model);
		else
			put_counted(stub, b->im == target ? i : number_of(target, name, len), entry);
		if (sym->bind == FMT_BIND_WEAK && sym->type == FMT_SYM_NONE && !model)
			add_weak(b, s, &weak, imports[i].loc);
	}
	clear_weak(b, s, &weak);
	bind_objects(b, s);
}

static bool is_ender(const struct image *im, const struct image_import *import, const uint64_t *args)
{
	uint32_t sym_cnt, func_cnt, stub = image_func_starting(im, import->plt_loc);
	const struct image_symbol *syms = image_symbols(im, &sym_cnt);
	const struct image_func *funcs = image_funcs(im, &func_cnt);
	if (stub < func_cnt && funcs[stub].flags & IMAGE_FN_NORETURN)
		return true;
	if (import->symbol >= sym_cnt)
		return false;
	size_t len;
	const char *name = image_text(im, syms[import->symbol].name, &len);
	if (is_named(status_enders, ARRAY_LEN(status_enders), name, len))
		return (uint32_t)args[0] != 0;
	return is_named(enders, ARRAY_LEN(enders), name, len);
}

/* From box_enter.S. */
__attribute__((visibility("hidden"))) uint64_t box_import_call(uint32_t number, const uint64_t *args);

uint64_t box_import_call(uint32_t number, const uint64_t *args)
{
	struct box *b = box_now;
	uint32_t cnt;
	const struct image_import *imports = image_imports(b->opts.im, &cnt);
	b->shared->import_calls++;
	if (number < cnt && is_ender(b->opts.im, &imports[number], args)) {
		b->shared->import = number;
		box_finish(b->shared, BOX_EXITED);
	}
	return b->shared->is_trial ? box_trial_import(b, number, args) : 0;
}
