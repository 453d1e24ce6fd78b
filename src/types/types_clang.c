/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libclang makes of the records of a preprocessed text. The library is loaded in the locked-down child that parses the text and
 * nowhere else. Its answer is a run of 64-bit numbers, which is as hostile as the text is: read with bounds.
 */
#include "types/types_clang.h"

#include "base/child.h"
#include "base/dl.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

#define CLANG_CPU_S 30
#define CLANG_WALL_MS 60000
#define CLANG_MEM_MAX ((uint64_t)2 << 30)
#define CLANG_OUT_MAX ((size_t)64 << 20)

/* --- its interface, as far as it is used: clang-c/Index.h, whose ABI is stable --------------------------------------- */

struct clang_cursor { int kind, xdata; const void *data[3]; };
struct clang_type { int kind; void *data[2]; };
struct clang_loc { const void *data[2]; unsigned int_data; };
struct clang_range { const void *data[2]; unsigned begin, end; };
struct clang_file { const char *name, *text; unsigned long len; };
enum { CLANG_STRUCT = 2, CLANG_UNION = 3, CLANG_ENUM = 5, CLANG_FIELD = 6, CLANG_ENUM_CONST = 7 };
enum { CLANG_BREAK, CLANG_CONTINUE, CLANG_RECURSE };
enum { CLANG_SKIP_BODIES = 0x40, CLANG_KEEP_GOING = 0x200 };

struct clang {
	void *(*create_index)(int exclude_pch, int display);
	void *(*parse)(void *index, const char *name, const char *const *argv, int argc, struct clang_file *files, unsigned file_cnt,
		       unsigned options);
	struct clang_cursor (*unit_cursor)(void *unit);
	unsigned (*visit)(struct clang_cursor at, int (*fn)(struct clang_cursor c, struct clang_cursor parent, void *ctx), void *ctx);
	unsigned (*visit_fields)(struct clang_type t, int (*fn)(struct clang_cursor c, void *ctx), void *ctx);
	struct clang_type (*type_of)(struct clang_cursor c);
	long long (*size_of)(struct clang_type t);
	long long (*align_of)(struct clang_type t);
	long long (*offset_of)(struct clang_cursor c);
	long long (*const_value)(struct clang_cursor c);
	struct clang_range (*extent)(struct clang_cursor c);
	struct clang_loc (*range_start)(struct clang_range r);
	void (*location)(struct clang_loc l, void **file, unsigned *line, unsigned *col, unsigned *off);
	unsigned (*is_invalid)(struct clang_cursor c);
	unsigned (*is_definition)(struct clang_cursor c);
};

static struct err *clang_load(struct clang *c)
{
	const struct dl_sym syms[] = {
		{"clang_createIndex", (void **)&c->create_index}, {"clang_parseTranslationUnit", (void **)&c->parse},
		{"clang_getTranslationUnitCursor", (void **)&c->unit_cursor}, {"clang_visitChildren", (void **)&c->visit},
		{"clang_Type_visitFields", (void **)&c->visit_fields}, {"clang_getCursorType", (void **)&c->type_of},
		{"clang_Type_getSizeOf", (void **)&c->size_of}, {"clang_Type_getAlignOf", (void **)&c->align_of},
		{"clang_Cursor_getOffsetOfField", (void **)&c->offset_of}, {"clang_getEnumConstantDeclValue", (void **)&c->const_value},
		{"clang_getCursorExtent", (void **)&c->extent}, {"clang_getRangeStart", (void **)&c->range_start},
		{"clang_getSpellingLocation", (void **)&c->location}, {"clang_isInvalidDeclaration", (void **)&c->is_invalid},
		{"clang_isCursorDefinition", (void **)&c->is_definition},
	};
	return dl_load("libclang-14.so.1", "the layout of a header's structs by another compiler", "libclang1-14", syms, ARRAY_LEN(syms));
}

/* --- in the child ------------------------------------------------------------------------------------------------------ */

struct clang_child {
	struct clang api;
	const char *triple, *text;
	size_t len;
	struct buf out;
	size_t cnt_at;         /* in `out`: where the number of values of the record at hand stands */
};

static struct err *clang_prepare(void *ctx)
{
	struct clang_child *c = ctx;
	/* A thread of its own, and mending after a crash, are for who lives on. */
	setenv("LIBCLANG_NOTHREADS", "1", 1);
	setenv("LIBCLANG_DISABLE_CRASH_RECOVERY", "1", 1);
	return clang_load(&c->api);
}

static void clang_put(struct clang_child *c, int64_t v)
{
	buf_add(&c->out, (const char *)&v, sizeof(v));
}

static void clang_put_value(struct clang_child *c, int64_t v)
{
	int64_t cnt;
	clang_put(c, v);
	if (c->out.failed)
		return;
	memcpy(&cnt, c->out.data + c->cnt_at, sizeof(cnt));
	cnt++;
	memcpy(c->out.data + c->cnt_at, &cnt, sizeof(cnt));
}

static int clang_field(struct clang_cursor at, void *ctx)
{
	struct clang_child *c = ctx;
	clang_put_value(c, c->api.offset_of(at));
	return CLANG_CONTINUE;
}

static int clang_constant(struct clang_cursor at, struct clang_cursor parent, void *ctx)
{
	struct clang_child *c = ctx;
	if (at.kind == CLANG_ENUM_CONST)
		clang_put_value(c, c->api.const_value(at));
	return CLANG_CONTINUE;
}

static int clang_decl(struct clang_cursor at, struct clang_cursor parent, void *ctx)
{
	struct clang_child *c = ctx;
	unsigned off;
	bool is_tagged = at.kind == CLANG_STRUCT || at.kind == CLANG_UNION || at.kind == CLANG_ENUM;
	/* Of a declaration with an error in it there is a layout, too, which is none. */
	if (!is_tagged || !c->api.is_definition(at) || c->api.is_invalid(at))
		return CLANG_RECURSE;
	struct clang_type t = c->api.type_of(at);
	c->api.location(c->api.range_start(c->api.extent(at)), NULL, NULL, NULL, &off);
	clang_put(c, off);
	clang_put(c, c->api.size_of(t));
	clang_put(c, c->api.align_of(t));
	c->cnt_at = c->out.len;
	clang_put(c, 0);
	if (at.kind == CLANG_ENUM)
		(void)c->api.visit(at, clang_constant, c);
	else
		(void)c->api.visit_fields(t, clang_field, c);
	return c->out.failed ? CLANG_BREAK : CLANG_RECURSE;
}

static int clang_run(void *ctx, int out_fd)
{
	struct clang_child *c = ctx;
	static const char name[] = "/header.i";
	const char *const argv[] = {"-x", "cpp-output", "-std=gnu11", "-target", c->triple, "-w", "-ferror-limit=0", "-nostdinc"};
	struct clang_file file = {name, c->text, c->len};
	void *index = c->api.create_index(0, 0);
	void *unit = index ? c->api.parse(index, name, argv, (int)ARRAY_LEN(argv), &file, 1, CLANG_SKIP_BODIES | CLANG_KEEP_GOING) : NULL;
	if (!unit)
		return 1;
	(void)c->api.visit(c->api.unit_cursor(unit), clang_decl, c);
	return !c->out.failed && child_write(out_fd, c->out.data, c->out.len) ? 0 : 2;
}

/* --- its answer ---------------------------------------------------------------------------------------------------------- */

static int said_cmp(const void *x, const void *y)
{
	const struct types_said *a = x, *b = y;
	return a->at < b->at ? -1 : a->at > b->at;
}

bool types_says_read(const char *bytes, size_t len, struct types_says *ret)
{
	VEC(struct types_said) list = {0};
	size_t cnt = len / sizeof(int64_t), i = 0;
	bool is_good = cnt <= UINT32_MAX && cnt * sizeof(int64_t) == len;
	int64_t *values = is_good ? alloc_array(cnt, sizeof(*values)) : NULL;
	*ret = (struct types_says){0};
	is_good = is_good && values;
	if (is_good && cnt)
		memcpy(values, bytes, len);
	while (is_good && i < cnt) {
		const int64_t *v = &values[i];
		is_good = cnt - i >= 4 && v[3] >= 0 && (uint64_t)v[3] <= cnt - i - 4;
		if (!is_good)
			break;
		/* What has no size has no layout either. */
		bool has_layout = v[0] >= 0 && v[0] <= UINT32_MAX && v[1] >= 0 && (uint64_t)v[1] <= TYPES_LEN_MAX && v[2] > 0 &&
				  v[2] <= TYPES_ALIGN_MAX && !(v[2] & (v[2] - 1));
		if (has_layout)
			is_good = VEC_PUSH(&list, (struct types_said){.at = (uint32_t)v[0], .len = (uint64_t)v[1], .align = (uint32_t)v[2],
								      .first = (uint32_t)i + 4, .cnt = (uint32_t)v[3]});
		i += 4 + (size_t)v[3];
	}
	if (!is_good) {
		VEC_FREE(&list);
		free(values);
		return false;
	}
	if (list.cnt)
		qsort(list.data, list.cnt, sizeof(*list.data), said_cmp);
	*ret = (struct types_says){.list = list.data, .cnt = list.cnt, .values = values};
	return true;
}

void types_says_fini(struct types_says *s)
{
	free(s->list);
	free(s->values);
	*s = (struct types_says){0};
}

const struct types_said *types_says_at(const struct types_says *s, uint64_t at)
{
	size_t lo = 0, hi = s ? s->cnt : 0;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (s->list[mid].at < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return s && lo < s->cnt && s->list[lo].at == at ? &s->list[lo] : NULL;
}

struct err *types_clang(const char *triple, const char *text, size_t len, struct types_says *ret)
{
	struct clang_child c = {.triple = triple, .text = len ? text : "", .len = len};
	const struct child_opts opts = {.what = "laying out a header with libclang", .max_out_len = CLANG_OUT_MAX, .max_mem_len = CLANG_MEM_MAX,
					.cpu_s = CLANG_CPU_S, .wall_ms = CLANG_WALL_MS, .is_lenient = true, .prepare = clang_prepare,
					.run = clang_run, .ctx = &c};
	_cleanup_buf_ struct buf out = {0};
	*ret = (struct types_says){0};
	struct err *e = child_run(&opts, &out);
	if (!e && !types_says_read(out.data ? out.data : "", out.len, ret))
		e = err_new(ERR_BAD_INPUT, "what libclang's child said of the header cannot be read");
	return e;
}
