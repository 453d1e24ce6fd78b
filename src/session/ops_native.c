/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code images: functions as C, compiled and linked into one shared object that is mapped and run in place. Nothing in its code
 * has to be changed when it is loaded: calls between the functions are relative, and what is absolute (imported functions, the
 * table of the image's own) lies in data, for the system's linker and loader to fill.
 */
#include "session/ops_invoke.h"
#include "session/ses_code.h"
#include "session/ses_int.h"
#include "session/ses_sha256.h"
#include "session/ses_types.h"

#include "base/child_cc.h"
#include "base/file.h"
#include "base/par.h"
#include "format/fmt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- making the C --------------------------------------------------------------------------------------------------- */
#define FILE_FUNCS 64 /* functions a file: small enough to compile side by side */

struct build {
	struct ops_req *rq;
	struct child_cc cc;
	const uint32_t *funcs; /* numbers in the image, ascending */
	uint32_t func_cnt;
	uint8_t *kind;         /* per function of the target: enum part */
	uint32_t *import;      /* per function of the target: of a PART_IMPORT the number of what it jumps to */
	atomic_bool *is_used;  /* per function of the target: C calls it by its name */
	uint64_t failed;
	pthread_mutex_t lock;
	struct err *e;
};

enum part {
	PART_NOT,    /* stays machine code */
	PART_C,
	PART_IMPORT, /* jumps to an import: C calls that by its name */
};

/* The names an assembler and a linker take as they are; no others become symbols. */
static bool is_plain_name(struct ses_text s)
{
	if (!s.len || s.len > 200 || (s.s[0] >= '0' && s.s[0] <= '9') || (s.len >= 5 && !memcmp(s.s, "scry_", 5)))
		return false;
	for (uint32_t i = 0; i < s.len; i++) {
		char c = s.s[i];
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'))
			return false;
	}
	return true;
}

static struct ses_text import_of(struct ses_snap *sn, const struct image_import *imp)
{
	uint32_t cnt;
	const struct image_symbol *syms = image_symbols(sn->im, &cnt);
	size_t len = 0;
	const char *s = imp->symbol < cnt ? image_text(sn->im, syms[imp->symbol].name, &len) : "";
	return ses_text_of(s, (uint32_t)len);
}

static void sort_out(struct build *b)
{
	struct ses_snap *sn = b->rq->sn;
	uint32_t cnt, import_cnt;
	const struct image_func *funcs = image_funcs(sn->im, &cnt);
	const struct image_import *imports = image_imports(sn->im, &import_cnt);
	for (uint32_t i = 0; i < b->func_cnt; i++)
		b->kind[b->funcs[i]] = PART_C;
	/* Stubs of imports come along: they are what the code calls. */
	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t to = funcs[i].flags & IMAGE_FN_THUNK ? funcs[i].thunk_to : LOC_NONE;
		const struct image_import *imp = to == LOC_NONE ? NULL : image_import_at(sn->im, to);
		if (!imp || !is_plain_name(import_of(sn, imp)))
			continue;
		b->kind[i] = PART_IMPORT;
		b->import[i] = (uint32_t)(imp - imports);
	}
}

static bool has_func(void *ctx, uint32_t func)
{
	const struct build *b = ctx;
	if (b->kind[func] == PART_NOT)
		return false;
	atomic_store_explicit(&b->is_used[func], true, memory_order_relaxed);
	return true;
}

/* What every file of the image begins with, behind scry.h. */
static const char prelude[] =
	"#include \"scry.h\"\n"
	"/* The image's functions by address, in order; the linker leaves the addresses to the loader. */\n"
	"struct scry_image_func { uint64_t va; void (*fn)(struct scry_x86_64 *m); };\n"
	"extern const struct scry_image_func scry_image_funcs[] __attribute__((visibility(\"hidden\")));\n"
	"extern const uint64_t scry_image_func_cnt __attribute__((visibility(\"hidden\")));\n"
	"static __attribute__((unused)) const struct scry_image_func *scry_image_find(const struct scry_x86_64 *m, uintptr_t target)\n"
	"{\n"
	"\tuint64_t va = target - m->image, lo = 0, hi = scry_image_func_cnt;\n"
	"\twhile (lo < hi) {\n"
	"\t\tuint64_t mid = (lo + hi) / 2;\n"
	"\t\tif (scry_image_funcs[mid].va < va)\n"
	"\t\t\tlo = mid + 1;\n"
	"\t\telse\n"
	"\t\t\thi = mid;\n"
	"\t}\n"
	"\treturn lo < scry_image_func_cnt && scry_image_funcs[lo].va == va ? &scry_image_funcs[lo] : 0;\n"
	"}\n"
	"static __attribute__((unused)) void scry_image_call(struct scry_x86_64 *m, uintptr_t target, uintptr_t back)\n"
	"{\n"
	"\tconst struct scry_image_func *f = scry_image_find(m, target);\n"
	"\tif (f)\n\t\tscry_enter(m, f->fn, back);\n\telse\n\t\tscry_call(m, target, back);\n"
	"}\n"
	"static __attribute__((unused)) void scry_image_leave(struct scry_x86_64 *m, uintptr_t target)\n"
	"{\n"
	"\tconst struct scry_image_func *f = scry_image_find(m, target);\n"
	"\tif (f)\n\t\tf->fn(m);\n\telse\n\t\tscry_leave(m, target);\n"
	"}\n"
	"#define scry_call(m, target, back) scry_image_call(m, target, back)\n"
	"#define scry_leave(m, target) scry_image_leave(m, target)\n";

static void state_name(const struct build *b, uint32_t func, char *out, size_t cap)
{
	uint32_t cnt;
	ses_code_entry_name(space_va(b->rq->sn->space, image_funcs(b->rq->sn->im, &cnt)[func].loc), out, cap);
}

static void put_header(struct build *b, struct buf *out)
{
	uint32_t cnt;
	char name[96];
	buf_add(out, prelude, sizeof(prelude) - 1);
	image_funcs(b->rq->sn->im, &cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		if (b->kind[i] == PART_NOT)
			continue;
		(void)ses_code_prototype(b->rq->sn, i, out);
		buf_add_str(out, b->kind[i] == PART_C ? ";\n" : " __attribute__((visibility(\"hidden\")));\n");
		/* As it is called with the state. */
		state_name(b, i, name, sizeof(name));
		buf_printf(out, "void %s(struct scry_x86_64 *m)%s;\n", name, b->kind[i] == PART_C ? "" : " __attribute__((visibility(\"hidden\")))");
	}
}

/* The imports, and the table. */
static void put_table(struct build *b, struct buf *out)
{
	struct ses_snap *sn = b->rq->sn;
	uint32_t cnt, import_cnt, n = 0;
	const struct image_func *funcs = image_funcs(sn->im, &cnt);
	const struct image_import *imports = image_imports(sn->im, &import_cnt);
	char name[96];
	buf_add_str(out, "#include \"image.h\"\n");
	for (uint32_t i = 0; i < cnt; i++) {
		if (b->kind[i] != PART_IMPORT || !b->is_used[i])
			continue;
		struct ses_text s = import_of(sn, &imports[b->import[i]]);
		state_name(b, i, name, sizeof(name));
		buf_printf(out, "extern const char scry_import_%u[] __asm__(\"%.*s\");\n", i, (int)s.len, s.s);
		ses_code_import(sn, i, out);
		buf_printf(out, "void %s(struct scry_x86_64 *m)\n{\n\t(scry_leave)(m, (uintptr_t)scry_import_%u);\n}\n", name, i);
	}
	buf_add_str(out, "const struct scry_image_func scry_image_funcs[] = {\n");
	for (uint32_t i = 0; i < cnt; i++) {
		if (b->kind[i] == PART_NOT || (b->kind[i] == PART_IMPORT && !b->is_used[i]))
			continue;
		state_name(b, i, name, sizeof(name));
		buf_printf(out, "\t{0x%llxu, %s},\n", (unsigned long long)space_va(sn->space, funcs[i].loc), name);
		n++;
	}
	buf_printf(out, "};\nconst uint64_t scry_image_func_cnt = %u;\n", n);
}

/* --- compiling ------------------------------------------------------------------------------------------------------ */
static struct err *put_file(const struct build *b, const char *name, const struct buf *text)
{
	return text->failed ? &err_nomem : child_cc_put(&b->cc, name, text->data, text->len);
}

static struct err *compile(const struct build *b, const char *c, const char *o)
{
	const char *const argv[] = {"gcc", "-O2", "-std=gnu11", "-w", "-fPIC", "-fno-plt", "-fno-semantic-interposition", "-fno-stack-protector",
				    "-fcf-protection=none", "-fno-asynchronous-unwind-tables", "-ffp-contract=off", "-c", "-o", o, c, NULL};
	return child_cc_run(&b->cc, argv);
}

/* Text relocations are refused by the linker; what is absolute in data it leaves to the loader. */
static struct err *link_all(const struct build *b)
{
	const char *const argv[] = {"gcc", "-shared", "-nostdlib", "-static-libgcc", "-Wl,-z,text", "-Wl,-Bsymbolic", "-Wl,-z,now",
				    "-Wl,-z,noexecstack", "-Wl,--build-id=none", "-Wl,--hash-style=sysv", "-o", "image", "@objects", "-lgcc", NULL};
	return child_cc_run(&b->cc, argv);
}

static void keep_error(struct build *b, struct err *e)
{
	pthread_mutex_lock(&b->lock);
	if (b->e)
		err_free(e);
	else
		b->e = e;
	pthread_mutex_unlock(&b->lock);
}

static bool has_stopped(struct build *b)
{
	pthread_mutex_lock(&b->lock);
	bool stopped = b->e;
	pthread_mutex_unlock(&b->lock);
	return stopped;
}

/* A function without C stays machine code, behind the name others call. */
static struct err *put_func(struct build *b, uint32_t func, struct arena *scratch, struct buf *text)
{
	const struct ses_code_set set = {has_func, b};
	struct ses_code c = {0};
	struct err *e = ses_code_func_in(b->rq->sn, func, &set, scratch, &c);
	if (!e) {
		buf_add(text, c.defines.data, c.defines.len);
		buf_add(text, c.text.data, c.text.len);
		ses_code_entry(b->rq->sn, func, text);
	} else if (e->kind == ERR_UNSUPPORTED || e->kind == ERR_BUDGET) {
		err_free(e);
		e = NULL;
		char name[96];
		state_name(b, func, name, sizeof(name));
		ses_code_stub(b->rq->sn, func, text);
		buf_printf(text, "void %s(struct scry_x86_64 *m)\n{\n\t(scry_leave)(m, m->image + 0x%llxu);\n}\n", name, (unsigned long long)c.va);
		pthread_mutex_lock(&b->lock);
		b->failed++;
		pthread_mutex_unlock(&b->lock);
	}
	ses_code_fini(&c);
	return e;
}

static void one_file(void *ctx, unsigned worker, size_t from, size_t to)
{
	struct build *b = ctx;
	(void)worker;
	for (size_t file = from; file < to && !has_stopped(b); file++) {
		_cleanup_buf_ struct buf text = {0};
		struct arena scratch = {0};
		char c[32], o[32];
		snprintf(c, sizeof(c), "code_%05zu.c", file);
		snprintf(o, sizeof(o), "code_%05zu.o", file);
		buf_add_str(&text, "#include \"image.h\"\n");
		struct err *e = ses_call_check(b->rq->call);
		for (size_t i = file * FILE_FUNCS; !e && i < MIN((file + 1) * FILE_FUNCS, (size_t)b->func_cnt); i++)
			if (b->kind[b->funcs[i]] == PART_C) {
				e = put_func(b, b->funcs[i], &scratch, &text);
				arena_reset(&scratch);
			}
		arena_fini(&scratch);
		if (!e)
			e = put_file(b, c, &text);
		if (!e)
			e = compile(b, c, o);
		if (e)
			keep_error(b, e);
		ses_meter_add(b->rq->call, 1);
	}
}

static struct err *put_common(struct build *b, size_t files)
{
	_cleanup_buf_ struct buf header = {0}, image_h = {0}, objects = {0};
	size_t len;
	const char *scry_h = ses_code_header(&len);
	buf_add(&header, scry_h, len);
	put_header(b, &image_h);
	for (size_t i = 0; i < files; i++)
		buf_printf(&objects, "code_%05zu.o\n", i);
	buf_add_str(&objects, "table.o\n");
	struct err *e = put_file(b, "scry.h", &header);
	if (!e)
		e = put_file(b, "image.h", &image_h);
	return e ? e : put_file(b, "objects", &objects);
}

/* --- build ------------------------------------------------------------------------------------------------------------ */
struct counts {
	uint64_t text_relocs, data_relocs, imports, text_len;
};

static struct err *count(const struct file *f, struct counts *ret)
{
	struct fmt_bin *bin;
	struct err *e = fmt_open(f->data, f->len, &bin);
	if (e)
		return e;
	*ret = (struct counts){.imports = bin->imports.cnt};
	for (size_t i = 0; i < bin->segments.cnt; i++)
		if (bin->segments.data[i].perm & FMT_X)
			ret->text_len += bin->segments.data[i].mem_len;
	for (size_t i = 0; i < bin->relocs.cnt; i++) {
		bool is_text = false;
		for (size_t k = 0; k < bin->segments.cnt; k++) {
			const struct fmt_segment *s = &bin->segments.data[k];
			is_text |= s->perm & FMT_X && bin->relocs.data[i].va - s->va < s->mem_len;
		}
		ret->text_relocs += is_text;
		ret->data_relocs += !is_text;
	}
	fmt_bin_free(bin);
	return NULL;
}

static struct err *publish(struct build *b, const char *path, uint64_t began)
{
	struct ses *s = b->rq->sn->ses;
	char made[sizeof(b->cc.dir) + 8];
	struct file *f = NULL;
	struct counts c;
	uint8_t sha256[32];
	char hex[65];
	snprintf(made, sizeof(made), "%s/image", b->cc.dir);
	struct err *e = file_open(made, &f);
	if (!e)
		e = count(f, &c);
	if (!e)
		e = ses_sha256(f->data, f->len, b->rq->call->cancel, NULL, NULL, sha256);
	if (!e)
		e = file_write_atomic(path, f->data, f->len);
	/* Only then is it known: a name that is there has bytes that are. */
	if (!e)
		e = store_put_native(s->store, sha256, s->sha256, s->path);
	struct ops_out *o = b->rq->out;
	if (!e && ops_out_item(o)) {
		store_hex(sha256, hex);
		ops_out_cstr(o, "path", path);
		ops_out_u64(o, "functions", b->func_cnt - b->failed);
		ops_out_u64(o, "failed", b->failed);
		ops_out_u64(o, "bytes", f->len);
		ops_out_u64(o, "text_bytes", c.text_len);
		ops_out_u64(o, "text_relocs", c.text_relocs);
		ops_out_u64(o, "data_relocs", c.data_relocs);
		ops_out_u64(o, "imports", c.imports);
		ops_out_cstr(o, "sha256", hex);
		ops_out_u64(o, "ms", (now_ns() - began) / 1000000);
		ops_out_cstr(o, "unprotected", child_cc_missing());
		ops_out_end_item(o);
	}
	file_close(f);
	return e;
}

static struct err *still_wanted(void *ctx)
{
	const struct build *b = ctx;
	return ses_call_check(b->rq->call);
}

static struct err *build_image(struct build *b, const char *path)
{
	uint64_t began = now_ns();
	size_t files = (b->func_cnt + FILE_FUNCS - 1) / FILE_FUNCS;
	struct err *e = child_cc_open(&b->cc);
	b->cc.check = still_wanted;
	b->cc.check_ctx = b;
	if (!e)
		e = put_common(b, files);
	struct par *par = e ? NULL : par_new(0);
	ses_meter_begin(b->rq->call, "files", files);
	if (par)
		par_for(par, files, 1, one_file, b);
	else if (!e)
		e = &err_nomem;
	par_free(par);
	if (!e)
		e = b->e;
	_cleanup_buf_ struct buf table = {0};
	put_table(b, &table);
	if (!e)
		e = put_file(b, "table.c", &table);
	if (!e)
		e = compile(b, "table.c", "table.o");
	if (!e)
		e = link_all(b);
	if (!e)
		e = publish(b, path, began);
	child_cc_close(&b->cc);
	return e;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

/* The functions asked for, each once, ascending. */
static struct err *find_funcs(struct ops_req *rq, struct build *b)
{
	size_t cnt;
	const char *const *names = ops_arg_texts(rq->args, "func", &cnt);
	uint32_t all;
	image_funcs(rq->sn->im, &all);
	bool is_all = ops_arg_is_set(rq->args, "all");
	if (is_all == (cnt > 0))
		return err_new(ERR_INVALID, "native build: name functions, or give --all");
	uint32_t *list = ARENA_ARRAY(rq->arena, uint32_t, (is_all ? all : cnt) + 1), n = 0;
	if (!list)
		return &err_nomem;
	for (uint32_t i = 0; is_all && i < all; i++)
		list[n++] = i;
	for (size_t i = 0; i < cnt; i++) {
		uint64_t va;
		struct err *e = ses_resolve(rq->sn, names[i], &va);
		if (e)
			return e;
		uint32_t loc = space_loc(rq->sn->space, va), f = loc == LOC_NONE ? UINT32_MAX : image_func_at(rq->sn->im, loc);
		if (f == UINT32_MAX)
			return err_new(ERR_NOT_FOUND, "%s: is in no function", names[i]);
		list[n++] = f;
	}
	qsort(list, n, sizeof(*list), by_number);
	for (uint32_t i = 0; i < n; i++)
		if (!b->func_cnt || list[b->func_cnt - 1] != list[i])
			list[b->func_cnt++] = list[i];
	b->funcs = list;
	return NULL;
}

struct err *ops_native_build(struct ops_req *rq)
{
	struct build b = {.rq = rq, .lock = PTHREAD_MUTEX_INITIALIZER};
	const char *path = ops_arg_str(rq->args, "output");
	struct ses *s = rq->sn->ses;
	struct stat st;
	uint32_t cnt;
	image_funcs(rq->sn->im, &cnt);
	if (!path)
		return err_new(ERR_INVALID, "native build: -o IMG is missing");
	if (!s->store || !s->has_sha256)
		return err_new(ERR_INVALID, "native build: an image is run only when the store knows its hash, and there is no store");
	if (!stat(path, &st) && s->file && st.st_dev == s->file->dev && st.st_ino == s->file->ino)
		return err_new(ERR_INVALID, "native build: %s is the target, which is never written", path);
	if (image_meta(rq->sn->im)->arch != ARCH_ID_X86_64)
		return err_new(ERR_UNSUPPORTED, "only functions for x86-64 can be compiled to run");
	struct err *e = find_funcs(rq, &b);
	if (e)
		return e;
	b.kind = ARENA_ARRAY(rq->arena, uint8_t, cnt + 1);
	b.import = ARENA_ARRAY(rq->arena, uint32_t, cnt + 1);
	b.is_used = ARENA_ARRAY(rq->arena, atomic_bool, cnt + 1);
	if (!b.kind || !b.import || !b.is_used)
		return &err_nomem;
	sort_out(&b);
	return build_image(&b, path);
}

/* --- run ---------------------------------------------------------------------------------------------------------------- */
/* What the C form of the function at `va` is called by with the state. */
static uint64_t code_va_of(const struct fmt_bin *bin, uint64_t va)
{
	char entry[40];
	ses_code_entry_name(va, entry, sizeof(entry));
	size_t len = strlen(entry);
	for (size_t i = 0; i < bin->symbols.cnt; i++) {
		const struct fmt_symbol *s = &bin->symbols.data[i];
		if (s->is_dynamic && !s->is_undefined && s->name.len == len && !memcmp(s->name.s, entry, len))
			return s->va;
	}
	return 0;
}

struct run {
	struct ops_req *rq;
	struct file *file; /* the image's */
	struct fmt_bin *bin;
	struct buf bytes;  /* its description, in the form of an analysis */
	struct image *code;
	struct ses *ses;   /* the target it belongs to */
	struct ses_snap *sn;
	struct box *box;
	int fd;
	struct ops_invoke v;
};

/* Before anything of it is looked at: it must be one that was built here, to the byte. */
static struct err *check_image(struct run *r, const char *path)
{
	uint8_t sha256[32], target[32], now[32];
	_cleanup_free_ char *target_path = NULL;
	struct store *store = NULL;
	struct err *e = file_open(path, &r->file);
	/* Loading the library that hashes is no part of what it costs. */
	if (!e)
		e = ses_sha256((const uint8_t *)"", 0, NULL, NULL, NULL, sha256);
	uint64_t began = now_ns();
	if (!e)
		e = ses_sha256(r->file->data, r->file->len, r->rq->call->cancel, NULL, NULL, sha256);
	if (e)
		return e;
	r->v.check_ns = now_ns() - began;
	e = store_open(&store);
	bool is_known = !e && store_find_native(store, sha256, target, &target_path);
	if (!e)
		store_close(store);
	if (e)
		return e;
	if (!is_known)
		return err_fix(err_new(ERR_BAD_INPUT, "%s: is no code image that was built here, or not the bytes any more that were", path),
			       "scry native build FILE -o %s FUNC... makes it anew", path);
	const struct ses_opts opts = {.cancel = r->rq->call->cancel};
	e = ses_open(target_path, &opts, &r->ses);
	if (!e && (!ses_get_sha256(r->ses, now) || memcmp(now, target, 32) != 0))
		e = err_new(ERR_BAD_INPUT, "%s: is not the file any more that %s was built of", target_path, path);
	if (!e)
		r->sn = ses_snap_get(r->ses);
	return e;
}

static struct err *load_image(struct run *r)
{
	static const uint8_t no_sha[32];
	struct image_data d;
	struct err *e = fmt_open(r->file->data, r->file->len, &r->bin);
	if (!e)
		e = image_data_from_fmt(r->bin, no_sha, &d);
	if (e)
		return e;
	e = image_serialize(&d, &r->bytes);
	image_data_fini(&d);
	return e ? e : image_open_mem(r->bytes.data, r->bytes.len, r->file->data, r->file->len, NULL, &r->code);
}

static struct err *run_image(struct run *r, const char *path)
{
	struct ops_req *rq = r->rq;
	struct box_opts opts;
	uint64_t check_ns;
	struct err *e = check_image(r, path);
	if (!e)
		e = ops_need_consent(rq, r->sn);
	if (!e)
		e = ops_invoke_limits(rq, &opts);
	check_ns = r->v.check_ns;
	if (!e)
		e = ops_invoke_read(rq, r->sn, &r->v);
	if (!e)
		e = ops_open_target(r->sn, &r->fd);
	uint64_t began = now_ns();
	if (!e)
		e = load_image(r);
	if (e)
		return e;
	r->v.code_va = code_va_of(r->bin, r->v.va);
	if (!r->v.code_va)
		return err_new(ERR_NOT_FOUND, "%s: is not in %s", ops_arg_str(rq->args, "func"), path);
	opts.im = r->sn->im;
	opts.fd = r->fd;
	opts.code = r->code;
	opts.code_fd = r->file->fd;
	e = box_open(&opts, &r->box);
	r->v.has_costs = true;
	r->v.check_ns = check_ns;
	r->v.map_ns = now_ns() - began;
	return e ? e : ops_invoke_run(rq, r->sn, r->box, &r->v);
}

struct err *ops_native_run(struct ops_req *rq)
{
	struct run r = {.rq = rq, .fd = -1};
	struct err *e = rq->no_store ? err_new(ERR_INVALID, "native run: only the store knows which images were built here") : NULL;
	if (!e)
		e = run_image(&r, ops_arg_str(rq->args, "image"));
	box_close(r.box);
	if (r.fd >= 0)
		close(r.fd);
	image_unref(r.code);
	buf_fini(&r.bytes);
	fmt_bin_free(r.bin);
	file_close(r.file);
	if (r.sn)
		ses_snap_put(r.sn);
	ses_close(r.ses);
	return e;
}
