/* SPDX-License-Identifier: Apache-2.0 */
/* Operations about scry itself and its store: check, analyze, doctor, version, man, completion. */
#include "session/ops_int.h"

#include "base/child.h"
#include "base/dl.h"
#include "session/dot.h"
#include "session/regex.h"
#include "session/ses_int.h"
#include "base/sha256.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

/* --- check --- */

static void check_row(struct ops_out *o, const char *what, bool ok, const char *why)
{
	if (!ops_out_item(o))
		return;
	ops_out_cstr(o, "what", what);
	ops_out_bool(o, "ok", ok);
	ops_out_cstr(o, "why", why);
	ops_out_end_item(o);
}

/* Every fault of the journal a row; the number of rows. */
static uint64_t check_edits(struct ops_req *rq)
{
	struct buf faults = {0};
	struct ses *s = rq->sn->ses;
	struct err *e = ses_check_edits(s, &faults);
	uint64_t n = 1;
	bool is_none = e && e->kind == ERR_NOT_FOUND;
	check_row(rq->out, "journal", !faults.len && (!e || is_none), faults.len ? "damaged" : e ? e->text : "follows from its entries");
	for (const char *p = faults.data, *end = p + faults.len; p && p < end; n++) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		char *line = arena_strndup(rq->arena, p, (size_t)((nl ? nl : end) - p));
		check_row(rq->out, "journal", false, line ? line : "");
		p = nl ? nl + 1 : end;
	}
	if (faults.len)
		rq->out->status = err_fix(err_new(ERR_BAD_INPUT, "%s: the journal is damaged", s->path), "scry salvage FILE saves what can be read");
	buf_fini(&faults);
	err_free(e);
	return n;
}

/* What can be made again is no fault of anybody's: damage is told, and mended by the next write. */
static uint64_t check_cache(struct ops_req *rq)
{
	const struct ses *s = rq->sn->ses;
	uint64_t cnt = 0, bytes = 0;
	enum store_cache_state state = s->store && s->has_sha256 ? store_cache_check(s->store, s->sha256, &cnt, &bytes) : STORE_CACHE_NONE;
	const char *why = state == STORE_CACHE_NONE ? "there is none"
		: state == STORE_CACHE_DAMAGED ? "damaged: it is thrown away when something is next kept there"
		: arena_printf(rq->arena, "%llu verdicts, %llu bytes", (unsigned long long)cnt, (unsigned long long)bytes);
	check_row(rq->out, "cache", state != STORE_CACHE_DAMAGED, why ? why : "");
	return 1;
}

struct err *ops_check(struct ops_req *rq)
{
	struct findings f = {0};
	struct ops_out *o = rq->out;
	const struct ses *s = rq->sn->ses;
	ops_out_list(o, rq->sn);
	if (ops_arg_is_set(rq->args, "edits") && !ops_arg_is_set(rq->args, "image")) {
		ops_out_end_list(o, check_edits(rq));
		return NULL;
	}
	image_check(rq->sn->im, &f);
	if (image_was_hit(rq->sn->im))
		finding_add(&f, FINDING_ERROR, UINT64_MAX, "image", "a page of the file is missing");
	char *text = arena_printf(rq->arena, "%llu bytes, generation %u%s", (unsigned long long)image_file_len(rq->sn->im), rq->sn->gen,
				  rq->sn->mem.len ? ", in memory only" : "");
	uint64_t total = 1;
	check_row(o, "image", f.list.cnt == 0, f.list.cnt ? "damaged" : text ? text : "");
	for (size_t i = 0; i < f.list.cnt; i++, total++)
		check_row(o, f.list.data[i].what, false, f.list.data[i].why);
	if (!ops_arg_is_set(rq->args, "image") || ops_arg_is_set(rq->args, "edits"))
		total += check_edits(rq);
	if (!ops_arg_is_set(rq->args, "image") && !ops_arg_is_set(rq->args, "edits"))
		total += check_cache(rq);
	if (f.list.cnt && !o->status)
		o->status = err_fix(err_new(ERR_BAD_INPUT, "%s: the image is damaged", s->path), "scry analyze --force FILE makes it anew");
	findings_fini(&f);
	ops_out_end_list(o, total);
	return NULL;
}

/* --- analyze --- */

struct err *ops_analyze(struct ops_req *rq)
{
	struct ses_info i;
	struct err *e = ses_info(rq->sn, rq->arena, &i);
	if (e)
		return e;
	struct ops_out *o = rq->out;
	(void)ops_out_item(o);
	ops_out_text(o, "file", i.file);
	ops_out_u64(o, "functions", i.functions);
	ops_out_u64(o, "instructions", i.instructions);
	ops_out_u64(o, "strings", i.strings);
	ops_out_u64(o, "xrefs", i.xrefs);
	ops_out_u64(o, "problems", i.problems);
	ops_out_u64(o, "image_bytes", image_file_len(rq->sn->im));
	ops_out_bool(o, "made", rq->sn->ses->was_made);
	ops_out_u64(o, "ms", rq->sn->ses->made_ns / 1000000);
	ops_out_u64(o, "rev", ses_snap_rev(rq->sn));
	ops_out_end_item(o);
	return NULL;
}

/* --- doctor --- */

static const struct ops_front *tool_front;

void ops_set_front(const struct ops_front *f)
{
	tool_front = f;
}

const struct ops_front *ops_get_front(void)
{
	return tool_front;
}

void ops_doctor_row(struct ops_req *rq, const char *what, struct err *e, const char *fine)
{
	struct ops_out *o = rq->out;
	(void)ops_out_item(o);
	ops_out_cstr(o, "what", what);
	ops_out_bool(o, "ok", !e);
	ops_out_cstr(o, "why", e ? e->text : fine);
	ops_out_cstr(o, "fix", e && e->fix ? e->fix : "");
	ops_out_end_item(o);
	err_free(e);
}

static void doctor_store(struct ops_req *rq)
{
	struct store *st = NULL;
	char mode[16] = "";
	struct err *e = store_open(&st);
	if (!e)
		e = store_try(st, mode);
	if (e && !e->fix)
		e = err_fix(e, "set SCRY_STORE to a folder you can write; until then analyses are kept in memory only");
	_cleanup_free_ char *root = store_default_root();
	bool is_ok = !e;
	ops_doctor_row(rq, "store", e, root ? root : "");
	if (is_ok)
		ops_doctor_row(rq, "journal", NULL, !strcmp(mode, "wal") ? "write-ahead log" :
			   "rollback journal: this file system has no shared memory, so readers wait for writers");
	store_close(st);
}

static int doctor_child(void *ctx, int out_fd)
{
	(void)ctx;
	return child_write(out_fd, "ok", 2) ? 0 : 1;
}

static void doctor_sandbox(struct ops_req *rq)
{
	struct buf out = {0};
	struct child_opts opts = {.what = "trying the sandbox", .max_out_len = 16, .max_mem_len = (uint64_t)64 << 20, .cpu_s = 5,
				  .wall_ms = 5000, .run = doctor_child};
	struct err *e = child_run(&opts, &out);
	if (!e && out.len != 2)
		e = err_new(ERR_ENV, "the locked-down child does not answer");
	if (e)
		e = err_fix(e, "DWARF and drawings need a kernel with seccomp; everything else works");
	buf_fini(&out);
	ops_doctor_row(rq, "sandbox", e, "seccomp child answers");
}

static struct err *doctor_try_arch(enum arch_id id)
{
	const struct arch *a;
	return arch_get(id, &a);
}

static void doctor_terminal(struct ops_req *rq)
{
	const char *term = getenv("TERM"), *color = getenv("COLORTERM");
	const char *lang = getenv("LC_ALL");
	if (!lang || !*lang)
		lang = getenv("LC_CTYPE");
	if (!lang || !*lang)
		lang = getenv("LANG");
	bool is_utf8 = lang && (strcasestr(lang, "utf-8") || strcasestr(lang, "utf8"));
	struct err *e = NULL;
	if (!term || !*term || !strcmp(term, "dumb"))
		e = err_fix(err_new(ERR_ENV, "TERM is %s", term && *term ? term : "not set"), "the workbench needs a terminal; the commands do not");
	ops_doctor_row(rq, "terminal", e, color && *color ? "truecolour" : term ? term : "");
	e = is_utf8 ? NULL : err_fix(err_new(ERR_ENV, "the locale is not UTF-8"), "export LC_ALL=C.UTF-8");
	ops_doctor_row(rq, "locale", e, lang ? lang : "");
}

struct err *ops_doctor(struct ops_req *rq)
{
	ops_out_list(rq->out, NULL);
	doctor_store(rq);
	ops_doctor_row(rq, "x86 decoder", doctor_try_arch(ARCH_ID_X86_64), "Zydis");
	ops_doctor_row(rq, "AArch64 decoder", doctor_try_arch(ARCH_ID_A64), "Capstone");
	ops_doctor_row(rq, "SHA-256", sha256_try(), "libcrypto");
	ops_doctor_row(rq, "DWARF", dl_load("libdw.so.1", "names, prototypes and lines from debug information", "libdw1", NULL, 0), "libdw");
	ops_doctor_row(rq, "zstd sections", dl_load("libzstd.so.1", "debug sections compressed with zstd", "libzstd1", NULL, 0), "libzstd");
	ops_doctor_row(rq, "regular expressions", regex_try(), "PCRE2");
	ops_doctor_row(rq, "drawings", ses_graphviz_try(), "Graphviz");
	doctor_sandbox(rq);
	doctor_terminal(rq);
	if (tool_front)
		tool_front->doctor(rq);
	ops_out_end_list(rq->out, rq->out->item_cnt);
	return NULL;
}

/* --- texts --- */

struct err *ops_version(struct ops_req *rq)
{
	struct ops_out *o = rq->out;
	(void)ops_out_item(o);
	ops_out_cstr(o, "version", SCRY_VERSION);
	ops_out_u64(o, "engine", IMAGE_ENGINE_VERSION);
	ops_out_u64(o, "image_format", IMAGE_FORMAT_VERSION);
	ops_out_end_item(o);
	return NULL;
}

static void text_answer(struct ops_req *rq, const struct buf *text)
{
	struct json *j = &rq->out->json;
	if (!rq->out->is_json) {
		buf_add(rq->out->buf, text->data, text->len);
		return;
	}
	json_obj(j);
	json_key(j, "text");
	json_strn(j, text->data, text->len);
	json_end_obj(j);
}

struct err *ops_man(struct ops_req *rq)
{
	struct buf text = {0};
	ops_write_man(&text);
	text_answer(rq, &text);
	buf_fini(&text);
	return NULL;
}

struct err *ops_completion(struct ops_req *rq)
{
	struct buf text = {0};
	struct err *e = ops_write_completion(&text, ops_arg_str(rq->args, "shell"));
	if (!e)
		text_answer(rq, &text);
	buf_fini(&text);
	return e;
}
