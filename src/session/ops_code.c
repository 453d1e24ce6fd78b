/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions as C: one for the screen, or all of them as files that compile. Each is a pure function of the image, so files
 * hold the same bytes whoever writes them.
 */
#include "session/ops_int.h"
#include "session/ses_code.h"
#include "session/ses_int.h"

#include "live/verify/verify.h"

#include "base/par.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void out_map(struct ops_out *o, const struct ses_c *c)
{
	struct json *j = &o->json;
	json_key(j, "map");
	json_arr(j);
	for (uint32_t i = 0; i < c->line_cnt; i++) {
		const struct ses_c_line *l = &c->lines[i];
		if (!l->addr_cnt)
			continue;
		json_obj(j);
		json_key(j, "line");
		json_u64(j, i + 1);
		json_key(j, "addrs");
		json_arr(j);
		for (uint32_t k = 0; k < l->addr_cnt; k++)
			json_addr(j, c->addrs[l->first_addr + k]);
		json_end_arr(j);
		json_end_obj(j);
	}
	json_end_arr(j);
}

static void out_code(struct ops_req *rq, const struct ses_c *c)
{
	struct ops_out *o = rq->out;
	const struct verify_verdict v = {.inputs = c->inputs, .blocks = c->blocks, .blocks_hit = c->blocks_hit, .edges = c->edges,
					 .edges_hit = c->edges_hit};
	if (!o->is_json) {
		if (strcmp(c->verified, "not_run"))
			buf_printf(o->buf, "/* verify: %s on %u inputs, %u of %u blocks and %u of %u edges reached */\n", c->verified, c->inputs,
				   c->blocks_hit, c->blocks, c->edges_hit, c->edges);
		if (c->stops.len) {
			buf_add_str(o->buf, "/* partial:\n");
			buf_add(o->buf, c->stops.s, c->stops.len);
			buf_add_str(o->buf, "*/\n");
		}
		buf_add(o->buf, c->text.s, c->text.len);
		return;
	}
	struct json *j = &o->json;
	json_obj(j);
	json_key(j, "rev");
	json_u64(j, rq->sn->rev);
	json_key(j, "addr");
	json_addr(j, c->addr);
	json_key(j, "name");
	json_strn(j, c->name.s, c->name.len);
	json_key(j, "prototype");
	json_strn(j, c->prototype.s, c->prototype.len);
	json_key(j, "code");
	json_strn(j, c->text.s, c->text.len);
	json_key(j, "warnings");
	json_arr(j);
	for (const char *s = c->stops.s, *end = s + c->stops.len, *nl; s < end; s = nl + 1) {
		nl = memchr(s, '\n', (size_t)(end - s));
		json_strn(j, s, (size_t)(nl - s));
	}
	json_end_arr(j);
	json_key(j, "status");
	json_str(j, c->status);
	json_key(j, "level");
	json_str(j, c->level);
	json_key(j, "verified");
	json_str(j, c->verified);
	json_key(j, "inputs");
	json_u64(j, c->inputs);
	ops_put_coverage(o, &v);
	json_key(j, "instructions");
	json_u64(j, c->insn_cnt);
	json_key(j, "unlifted");
	json_u64(j, c->unlifted_cnt);
	if (ops_arg_is_set(rq->args, "map"))
		out_map(o, c);
	json_end_obj(j);
}

/* --- all of them, as files ---------------------------------------------------------------------------------------- */
#define FILE_FUNCS 64 /* functions a file: small enough to compile side by side */

/* What a worker uses again for each function and file. */
struct worker {
	struct arena scratch;
	struct ses_code code;
	struct buf text;
	struct buf defines; /* of all its functions */
};

struct all {
	struct worker *workers;
	struct ses_snap *sn;
	const struct ses_call *call;
	int dir;
	uint32_t func_cnt;
	uint64_t done, failed;
	uint64_t levels[DEC_LEVEL_COUNT]; /* functions of each */
	pthread_mutex_t lock;
	struct buf defines;
	struct err *e;
};

static struct err *write_file(int dir, const char *name, const char *s, size_t len)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (fd < 0)
		return err_os(errno, "%s", name);
	while (len) {
		ssize_t n = write(fd, s, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			struct err *e = err_os(n < 0 ? errno : ENOSPC, "%s", name);
			close(fd);
			return e;
		}
		s += n;
		len -= (size_t)n;
	}
	return close(fd) ? err_os(errno, "%s", name) : NULL;
}

static void keep_error(struct all *a, struct err *e)
{
	pthread_mutex_lock(&a->lock);
	if (a->e)
		err_free(e);
	else
		a->e = e;
	pthread_mutex_unlock(&a->lock);
}

static void one_file(void *ctx, unsigned worker, size_t from, size_t to)
{
	struct all *a = ctx;
	struct worker *w = &a->workers[worker];
	for (size_t file = from; file < to; file++) {
		uint64_t done = 0, failed = 0, levels[DEC_LEVEL_COUNT] = {0};
		struct err *e = ses_call_check(a->call);
		w->text.len = 0;
		buf_add_str(&w->text, "#include \"code.h\"\n\n");
		for (size_t f = file * FILE_FUNCS; !e && f < MIN((file + 1) * FILE_FUNCS, a->func_cnt); f++) {
			w->code.text.len = 0;
			e = ses_code_func(a->sn, (uint32_t)f, false, &w->scratch, &w->code);
			if (!e) {
				buf_add_ch(&w->text, '\n');
				buf_add(&w->defines, w->code.defines.data, w->code.defines.len);
				buf_add(&w->text, w->code.text.data, w->code.text.len);
				levels[w->code.level]++;
				done++;
			} else if (e->kind == ERR_UNSUPPORTED || e->kind == ERR_BUDGET) {
				/* Said where it is missing; the count says it again. */
				buf_printf(&w->text, "\n/* %s */\n", e->text);
				err_free(e);
				e = NULL;
				failed++;
			}
			arena_reset(&w->scratch);
		}
		char name[32];
		snprintf(name, sizeof(name), "code_%05zu.c", file);
		if (!e && w->text.failed)
			e = &err_nomem;
		if (!e)
			e = write_file(a->dir, name, w->text.data, w->text.len);
		if (e)
			keep_error(a, e);
		pthread_mutex_lock(&a->lock);
		a->done += done;
		a->failed += failed;
		for (unsigned l = 0; l < DEC_LEVEL_COUNT; l++)
			a->levels[l] += levels[l];
		pthread_mutex_unlock(&a->lock);
		ses_meter_add(a->call, done + failed);
	}
}

static void run_files(struct all *a, size_t files)
{
	struct par *par = par_new(0);
	unsigned cnt = par ? par_threads(par) : 0;
	a->workers = alloc_array(cnt, sizeof(*a->workers));
	if (par && a->workers)
		par_for(par, files, 1, one_file, a);
	else
		a->e = &err_nomem;
	for (unsigned i = 0; a->workers && i < cnt; i++) {
		arena_fini(&a->workers[i].scratch);
		ses_code_fini(&a->workers[i].code);
		buf_fini(&a->workers[i].text);
		buf_add(&a->defines, a->workers[i].defines.data, a->workers[i].defines.len);
		a->defines.failed |= a->workers[i].defines.failed;
		buf_fini(&a->workers[i].defines);
	}
	free(a->workers);
	par_free(par);
}

static const char makefile[] =
	"# Objects of every function; nothing here is run.\n"
	"CFLAGS ?= -O2\n"
	"override CFLAGS += -std=gnu11 -Wall -Wextra -Wno-unused -I.\n"
	"all: $(patsubst %.c,%.o,$(wildcard code_*.c) state.c)\n"
	"clean:\n\trm -f *.o\n"
	".PHONY: all clean\n";

static int cmp_line(const void *x, const void *y)
{
	return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* Each line of `lines` once, sorted; their ends become NULs. */
static struct err *add_lines_once(struct buf *lines, struct buf *to)
{
	struct arena a = {0};
	size_t cnt = 0, n = 0;
	buf_add_ch(lines, 0);
	for (size_t i = 0; i < lines->len; i++)
		cnt += lines->data[i] == '\n';
	char **list = lines->failed ? NULL : ARENA_RAW_ARRAY(&a, char *, cnt + 1);
	for (char *s = lines->data; list && n < cnt; s = strchr(s, '\0') + 1) {
		*strchr(s, '\n') = '\0';
		list[n++] = s;
	}
	if (list)
		qsort(list, cnt, sizeof(*list), cmp_line);
	for (size_t i = 0; list && i < cnt; i++)
		if (!i || strcmp(list[i - 1], list[i]) != 0)
			buf_printf(to, "%s\n", list[i]);
	arena_fini(&a);
	return list ? NULL : &err_nomem;
}

/* Declarations of all functions, and beside them what those that take parameters are called by with the state. */
static struct err *write_heads(struct ops_req *rq, int dir, uint32_t cnt, struct buf *defines)
{
	_cleanup_buf_ struct buf head = {0}, state = {0};
	buf_add_str(&head, "#ifndef CODE_H\n#define CODE_H\n\n#include \"scry.h\"\n\n");
	buf_add_str(&state, "/* Each function as code of the machine calls it: with the state, and its return address on the stack. */\n"
			    "#include \"code.h\"\n");
	for (uint32_t i = 0; i < cnt; i++) {
		ses_code_prototype(rq->sn, i, &head);
		buf_add_str(&head, ";\n");
		buf_add_ch(&state, '\n');
		ses_code_entry(rq->sn, i, &state);
	}
	buf_add_ch(&head, '\n');
	struct err *e = add_lines_once(defines, &head);
	buf_add_str(&head, "\n#endif\n");
	if (e || head.failed || state.failed)
		return e ? e : &err_nomem;
	e = write_file(dir, "code.h", head.data, head.len);
	return e ? e : write_file(dir, "state.c", state.data, state.len);
}

static struct err *write_all(struct ops_req *rq, const char *path)
{
	struct all a = {.sn = rq->sn, .call = rq->call, .lock = PTHREAD_MUTEX_INITIALIZER};
	image_funcs(rq->sn->im, &a.func_cnt);
	if (mkdir(path, 0777) && errno != EEXIST)
		return err_os(errno, "%s", path);
	a.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (a.dir < 0)
		return err_os(errno, "%s", path);
	size_t len;
	const char *header = ses_code_header(&len);
	struct err *e = write_file(a.dir, "scry.h", header, len);
	if (!e)
		e = write_file(a.dir, "Makefile", makefile, sizeof(makefile) - 1);
	size_t files = (a.func_cnt + FILE_FUNCS - 1) / FILE_FUNCS;
	ses_meter_begin(rq->call, "functions", a.func_cnt);
	if (!e)
		run_files(&a, files);
	if (!e)
		e = take_ptr(a.e);
	if (!e)
		e = write_heads(rq, a.dir, a.func_cnt, &a.defines);
	close(a.dir);
	buf_fini(&a.defines);
	if (e)
		return e;
	struct ops_out *o = rq->out;
	ops_out_item(o);
	ops_out_cstr(o, "path", path);
	ops_out_u64(o, "functions", a.done);
	ops_out_u64(o, "failed", a.failed);
	ops_out_u64(o, "files", files);
	if (o->is_json) {
		json_key(&o->json, "levels");
		json_obj(&o->json);
		for (unsigned l = 0; l < DEC_LEVEL_COUNT; l++) {
			json_key(&o->json, dec_level_name((enum dec_level)l));
			json_u64(&o->json, a.levels[l]);
		}
		json_end_obj(&o->json);
	}
	ops_out_end_item(o);
	return NULL;
}

struct err *ops_decompile(struct ops_req *rq)
{
	const char *dir = ops_arg_str(rq->args, "output");
	bool is_all = ops_arg_is_set(rq->args, "all");
	if (is_all != (dir != NULL))
		return err_fix(err_new(ERR_INVALID, "decompile: --all and -o DIR go together"), "scry decompile FILE FUNC prints one function");
	if (is_all && !(rq->call->caps & SES_CAP_WRITE_FILES))
		return err_new(ERR_DENIED, "decompile: writing files is not granted here");
	if (is_all)
		return write_all(rq, dir);
	uint64_t va;
	struct err *e = ops_addr(rq, "func", UINT64_MAX, &va);
	struct ses_c c;
	if (!e)
		e = ses_decompile(rq->sn, rq->call, va, rq->arena, &c);
	if (!e)
		out_code(rq, &c);
	return e;
}
