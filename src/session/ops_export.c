/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was found out, for others to read: a report, a header, a document that import reads back without loss, maps of symbols,
 * the patched file. Each writer fills one buffer; a file is written beside its name and then renamed, so a full disk leaves what
 * was there.
 */
#include "session/ops_exchange.h"
#include "session/ops_int.h"
#include "session/ses_int.h"

#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* What was written, for the answer. */
struct export_counts { uint64_t names, comments, types, others; };

struct export {
	struct ops_req *rq;
	struct buf out;
	struct ses_info info;
	struct ses_entry *facts; /* by address, kind and sub; null where the format does not need them */
	size_t fact_cnt;
	uint64_t rev;
	struct export_counts counts;
	int fd;                  /* what is long is written to as it is made; -1: it is kept */
	const char *path;
	uint64_t written;        /* bytes of it so far */
};

static void count_fact(struct export *x, const struct ses_entry *f)
{
	if (!strcmp(f->op, "rename"))
		x->counts.names++;
	else if (!strcmp(f->op, "comment"))
		x->counts.comments++;
	else if (!strcmp(f->op, "declare"))
		x->counts.types++;
	else
		x->counts.others++;
}

/* --- JSON --- */

static void json_entry(struct json *j, const struct ses_entry *f)
{
	char time[40];
	ops_time_text(f->time_ns, time);
	json_obj(j);
	json_key(j, "op");
	json_str(j, f->op);
	json_key(j, "addr");
	if (f->has_addr)
		json_addr(j, f->addr);
	else
		json_null(j);
	json_key(j, "sub");
	json_str(j, f->sub);
	json_key(j, "value");
	json_strn(j, f->after.s, f->after.len);
	json_key(j, "author");
	json_str(j, f->author);
	json_key(j, "author_kind");
	json_str(j, f->author_kind);
	json_key(j, "time");
	json_str(j, time);
	json_key(j, "rev");
	json_u64(j, f->rev);
	json_key(j, "note");
	json_str(j, f->note);
	json_end_obj(j);
}

static struct err *export_json(struct export *x)
{
	struct json j = json_make(&x->out);
	json_obj(&j);
	json_key(&j, "scry_edits");
	json_u64(&j, OPS_EXCHANGE_VERSION);
	json_key(&j, "target");
	json_obj(&j);
	json_key(&j, "file");
	json_strn(&j, x->info.file.s, x->info.file.len);
	json_key(&j, "sha256");
	json_strn(&j, x->info.sha256.s, x->info.sha256.len);
	json_end_obj(&j);
	json_key(&j, "rev");
	json_u64(&j, x->rev);
	json_key(&j, "edits");
	json_arr(&j);
	for (size_t i = 0; i < x->fact_cnt; i++) {
		json_entry(&j, &x->facts[i]);
		buf_add_ch(&x->out, '\n');
		count_fact(x, &x->facts[i]);
	}
	json_end_arr(&j);
	json_end_obj(&j);
	buf_add_ch(&x->out, '\n');
	return NULL;
}

/* --- Markdown --- */

/* Text of the target and of people: controls as escapes, and nothing that Markdown or HTML would act on. */
static void md_text(struct export *x, const char *s, size_t len)
{
	_cleanup_buf_ struct buf b = {0};
	ops_escape(&b, s, len);
	if (b.failed)
		x->out.failed = true;
	for (size_t i = 0; i < b.len; i++) {
		char ch = b.data[i];
		if (ch && strchr("\\`*_{}[]()<>#+-.!|~&$:@", ch))
			buf_add_ch(&x->out, '\\');
		buf_add_ch(&x->out, ch);
	}
}

static void md_lines(struct export *x, struct ses_text t)
{
	const char *p = t.s, *end = t.s + t.len;
	for (bool is_first = true; p <= end; is_first = false) {
		const char *nl = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
		size_t len = (size_t)((nl ? nl : end) - p);
		if (!is_first)
			buf_add_str(&x->out, "\\\n  ");
		md_text(x, p, len);
		p += len + 1;
	}
}

static void md_who(struct export *x, const struct ses_entry *f)
{
	char time[40];
	ops_time_text(f->time_ns, time);
	buf_add_str(&x->out, " (");
	md_text(x, f->author, strlen(f->author));
	if (strcmp(f->author_kind, "human"))
		buf_printf(&x->out, ", %s", f->author_kind);
	buf_printf(&x->out, ", %.10s %.8s UTC, revision %llu", time, time + 11, (unsigned long long)f->rev);
	if (*f->note) {
		buf_add_str(&x->out, ": ");
		md_text(x, f->note, strlen(f->note));
	}
	buf_add_str(&x->out, ")\n");
}

static void md_fact(struct export *x, const struct ses_entry *f)
{
	buf_printf(&x->out, "- `0x%llx` %s", (unsigned long long)f->addr, !strcmp(f->op, "rename") ? "name" : f->op);
	if (*f->sub) {
		buf_add_ch(&x->out, ' ');
		md_text(x, f->sub, strlen(f->sub));
	}
	buf_add_str(&x->out, ": ");
	md_lines(x, f->after);
	md_who(x, f);
	count_fact(x, f);
}

static void md_fence(struct export *x, size_t len, const char *after)
{
	for (size_t i = 0; i < len; i++)
		buf_add_ch(&x->out, '`');
	buf_add_str(&x->out, after);
}

/* Between fences that nothing in the text can close. */
static void md_code(struct export *x, struct ses_text t)
{
	size_t longest = 2, run = 0;
	for (uint32_t i = 0; i < t.len; i++) {
		run = t.s[i] == '`' ? run + 1 : 0;
		longest = MAX(longest, run);
	}
	md_fence(x, longest + 1, "c\n");
	for (const char *p = t.s, *end = t.s + t.len; p < end;) {
		size_t n = 0;
		while (p + n < end && p[n] != '\n' && p[n] != '\t')
			n++;
		ops_escape(&x->out, p, n);
		p += n;
		if (p < end)
			buf_add_ch(&x->out, *p++);
	}
	buf_add_ch(&x->out, '\n');
	md_fence(x, longest + 1, "\n");
}

/* Facts inside a function are its findings, wherever its pieces lie; `func` of each fact, UINT64_MAX outside. */
struct md_row { uint64_t func; const struct ses_entry *fact; };

static int md_cmp(const void *p, const void *q)
{
	const struct md_row *a = p, *b = q;
	if (a->func != b->func)
		return a->func < b->func ? -1 : 1;
	return a->fact < b->fact ? -1 : a->fact > b->fact;
}

static void md_head(struct export *x)
{
	buf_add_str(&x->out, "# Findings in ");
	md_text(x, x->info.file.s, x->info.file.len);
	buf_add_str(&x->out, "\n\n- ");
	md_text(x, x->info.format.s, x->info.format.len);
	buf_add_ch(&x->out, ' ');
	md_text(x, x->info.arch.s, x->info.arch.len);
	buf_printf(&x->out, ", %llu bytes\n- SHA-256 `%.*s`\n- revision %llu\n", (unsigned long long)x->info.size, (int)x->info.sha256.len,
		   x->info.sha256.s, (unsigned long long)x->rev);
}

static struct err *export_md(struct export *x)
{
	struct arena *a = x->rq->arena;
	struct md_row *rows = ARENA_ARRAY(a, struct md_row, x->fact_cnt + 1);
	size_t n = 0;
	if (!rows)
		return &err_nomem;
	for (size_t i = 0; i < x->fact_cnt; i++) {
		struct ses_func f;
		if (x->facts[i].has_addr)
			rows[n++] = (struct md_row){ses_func_at(x->rq->sn, x->facts[i].addr, a, &f) ? f.addr : UINT64_MAX, &x->facts[i]};
	}
	qsort(rows, n, sizeof(*rows), md_cmp);
	md_head(x);
	for (size_t i = 0; i < n; i++) {
		bool is_new = !i || rows[i - 1].func != rows[i].func;
		if (is_new && rows[i].func == UINT64_MAX) {
			buf_add_str(&x->out, "\n## Outside functions\n\n");
		} else if (is_new) {
			struct ses_text name = ses_name_at(x->rq->sn, rows[i].func, a);
			buf_printf(&x->out, "\n## `0x%llx` ", (unsigned long long)rows[i].func);
			md_text(x, name.s, name.len);
			buf_add_str(&x->out, "\n\n");
		}
		md_fact(x, rows[i].fact);
	}
	bool has_title = false;
	for (size_t i = 0; i < x->fact_cnt; i++) {
		const struct ses_entry *f = &x->facts[i];
		if (f->has_addr)
			continue;
		buf_add_str(&x->out, has_title ? "\n" : "\n## The whole file\n\n");
		has_title = true;
		buf_printf(&x->out, "%s ", f->op);
		md_text(x, f->sub, strlen(f->sub));
		md_who(x, f);
		buf_add_ch(&x->out, '\n');
		md_code(x, f->after);
		count_fact(x, f);
	}
	if (!x->fact_cnt)
		buf_add_str(&x->out, "\nNothing was stated about this file.\n");
	return NULL;
}

/* --- C header --- */

static struct err *export_header(struct export *x)
{
	size_t cnt = 0;
	buf_add_str(&x->out, "/* Types declared in ");
	for (uint32_t i = 0; i < x->info.file.len; i++) {
		char ch = x->info.file.s[i];
		buf_add_ch(&x->out, ch < ' ' || ch == 0x7f || ch == '*' || ch == '\\' ? '?' : ch);
	}
	buf_printf(&x->out, ", revision %llu. */\n#ifndef SCRY_TYPES_H\n#define SCRY_TYPES_H\n\n", (unsigned long long)x->rev);
	struct err *e = ops_types_header(x->rq, &x->out, &cnt);
	buf_add_str(&x->out, "\n#endif\n");
	x->counts.types = cnt;
	return e;
}

/* --- maps --- */

static int va_cmp(const void *p, const void *q)
{
	uint64_t a = *(const uint64_t *)p, b = *(const uint64_t *)q;
	return a < b ? -1 : a > b;
}

/* Every address that has a name: functions, symbols and what people named, ascending, each once. */
static struct err *named_addrs(struct export *x, uint64_t **ret, size_t *ret_cnt)
{
	struct ops_req *rq = x->rq;
	struct ses_func *funcs = NULL;
	struct ses_import *syms = NULL;
	struct ses_page fp = {.limit = UINT32_MAX}, sp = {.limit = UINT32_MAX};
	size_t edit_cnt, n = 0, kept = 0;
	const struct edits_fact *names = edits_range(rq->sn->edits, EDITS_NAME, 0, UINT64_MAX, &edit_cnt);
	struct err *e = ses_functions(rq->sn, rq->call, &fp, rq->arena, &funcs);
	if (!e)
		e = ses_symbols(rq->sn, rq->call, &sp, rq->arena, &syms);
	uint64_t *vas = e ? NULL : ARENA_ARRAY(rq->arena, uint64_t, (size_t)fp.cnt + sp.cnt + edit_cnt + 1);
	if (e || !vas)
		return e ? e : &err_nomem;
	for (uint32_t i = 0; i < fp.cnt; i++)
		vas[n++] = funcs[i].addr;
	for (uint32_t i = 0; i < sp.cnt; i++) {
		if (syms[i].has_addr)
			vas[n++] = syms[i].addr;
	}
	for (size_t i = 0; i < edit_cnt; i++)
		vas[n++] = names[i].va;
	qsort(vas, n, sizeof(*vas), va_cmp);
	for (size_t i = 0; i < n; i++) {
		if (!kept || vas[kept - 1] != vas[i])
			vas[kept++] = vas[i];
	}
	*ret = vas;
	*ret_cnt = kept;
	return NULL;
}

static struct err *export_list(struct export *x)
{
	uint64_t *vas;
	size_t cnt;
	struct err *e = named_addrs(x, &vas, &cnt);
	unsigned digits = x->info.bits == 64 ? 16 : 8;
	for (size_t i = 0; !e && i < cnt; i++) {
		struct ses_text name = ses_name_at(x->rq->sn, vas[i], x->rq->arena);
		if (!name.len)
			continue;
		buf_add_hex(&x->out, vas[i], digits);
		buf_add_ch(&x->out, ' ');
		ops_escape(&x->out, name.s, name.len);
		buf_add_ch(&x->out, '\n');
		x->counts.names++;
	}
	return e;
}

/* What the map's numbers mean: sections that are in memory, else segments. */
static struct err *map_places(struct export *x, struct ses_segment **ret, uint32_t *ret_cnt)
{
	struct ses_segment *all;
	uint32_t cnt, kept = 0;
	struct err *e = ses_sections(x->rq->sn, x->rq->arena, &all, &cnt);
	for (uint32_t i = 0; !e && i < cnt; i++) {
		if (all[i].size && ses_is_mapped(x->rq->sn, all[i].addr) && all[i].perm[0] == 'r')
			all[kept++] = all[i];
	}
	if (!e && !kept) {
		e = ses_segments(x->rq->sn, x->rq->arena, &all, &kept);
	}
	*ret = all;
	*ret_cnt = kept;
	return e;
}

static void map_place(struct export *x, const struct ses_segment *s, uint32_t number)
{
	buf_printf(&x->out, " %04X:%016llX %09llXH ", number, 0ULL, (unsigned long long)s->size);
	size_t began = x->out.len;
	ops_escape(&x->out, s->name.len ? s->name.s : "segment", s->name.len ? s->name.len : 7);
	do
		buf_add_ch(&x->out, ' ');
	while (x->out.len < began + 23);
	buf_add_str(&x->out, memchr(s->perm, 'x', sizeof(s->perm)) ? "CODE\n" : "DATA\n");
}

static struct err *export_map(struct export *x)
{
	uint64_t *vas = NULL;
	size_t cnt = 0;
	struct ses_segment *places = NULL;
	uint32_t place_cnt = 0;
	struct err *e = named_addrs(x, &vas, &cnt);
	if (!e)
		e = map_places(x, &places, &place_cnt);
	if (e)
		return e;
	buf_add_str(&x->out, "\n Start                 Length     Name                   Class\n");
	for (uint32_t i = 0; i < place_cnt; i++)
		map_place(x, &places[i], i + 1);
	buf_add_str(&x->out, "\n\n  Address                       Publics by Value\n\n");
	for (size_t i = 0; i < cnt; i++) {
		struct ses_text name = ses_name_at(x->rq->sn, vas[i], x->rq->arena);
		uint32_t p = 0;
		while (p < place_cnt && vas[i] - places[p].addr >= places[p].size)
			p++;
		if (!name.len || p == place_cnt)
			continue;
		buf_printf(&x->out, " %04X:%016llX       ", p + 1, (unsigned long long)(vas[i] - places[p].addr));
		ops_escape(&x->out, name.s, name.len);
		buf_add_ch(&x->out, '\n');
		x->counts.names++;
	}
	return NULL;
}

/* --- the patched file --- */

static struct err *export_patched(struct export *x)
{
	const struct file *f = x->rq->sn->ses->file;
	size_t cnt;
	if (!f)
		return err_new(ERR_UNSUPPORTED, "export: the bytes of %s are gone", x->rq->sn->ses->path);
	const struct edits_fact *patches = edits_range(x->rq->sn->edits, EDITS_PATCH, 0, UINT64_MAX, &cnt);
	buf_add(&x->out, f->data, f->len);
	if (x->out.failed)
		return &err_nomem;
	for (size_t i = 0; i < cnt; i++) {
		for (uint32_t k = 0; k < patches[i].value_len / 2; k++) {
			uint64_t off, va = patches[i].va + k;
			if (!ses_va_to_file(x->rq->sn, va, &off) || off >= x->out.len)
				return err_new(ERR_UNSUPPORTED, "export: the patch at 0x%llx is not in the file", (unsigned long long)patches[i].va);
			/* Overlapping patches: what is shown counts. */
			uint8_t byte = (uint8_t)x->out.data[off];
			ses_edit_patch(x->rq->sn, va, &byte, 1);
			x->out.data[off] = (char)byte;
		}
	}
	x->counts.others = cnt;
	return NULL;
}

/* --- which, and where to --- */

#define FLUSH_LEN (1u << 20)

static struct err *write_all(int fd, const struct buf *b, const char *path)
{
	for (size_t done = 0; done < b->len;) {
		ssize_t n = write(fd, b->data + done, b->len - done);
		if (n < 0 && errno != EINTR)
			return err_os(errno, "%s: cannot write", path);
		done += n > 0 ? (size_t)n : 0;
	}
	return NULL;
}

static struct err *flush(struct ops_sink *s)
{
	struct export *x = s->ctx;
	if (x->out.failed)
		return &err_nomem;
	if (x->fd < 0 || x->out.len < FLUSH_LEN)
		return NULL;
	struct err *e = write_all(x->fd, &x->out, x->path);
	x->written += x->out.len;
	x->out.len = 0;
	return e;
}

static struct err *stream(struct export *x, struct err *(*run)(struct ops_sink *s))
{
	struct ops_sink s = {.rq = x->rq, .out = &x->out, .flush = flush, .ctx = x};
	struct err *e = run(&s);
	x->counts.types = s.types;
	x->counts.others = s.functions + s.failed;
	return e;
}

static struct err *export_c(struct export *x)
{
	if (!ses_can_decompile(x->rq->sn))
		return err_fix(err_new(ERR_UNSUPPORTED, "export: C of %s needs a lifter for it, which there is not yet", x->rq->sn->arch->name),
			       "-o X.asm writes the listing");
	return stream(x, ops_export_c);
}

static struct err *export_asm(struct export *x)
{
	return stream(x, ops_export_asm);
}

static struct err *export_html(struct export *x)
{
	return stream(x, ops_export_html);
}

static const struct export_format {
	const char *name, *ending;
	bool needs_facts, needs_path;
	struct err *(*run)(struct export *x);
	bool is_long; /* written as it is made */
} formats[] = {
	{"c", ".c", false, false, export_c, true}, {"asm", ".asm", false, false, export_asm, true},
	{"html", ".html", false, false, export_html, true},
	{"md", ".md", true, false, export_md},	     {"json", ".json", true, false, export_json}, {"h", ".h", false, false, export_header},
	{"map", ".map", false, false, export_map},   {"list", ".sym", false, false, export_list},
	{"patched", "", false, true, export_patched},
};

static struct err *find_format(struct ops_req *rq, const char *path, const struct export_format **ret)
{
	const char *name = ops_arg_is_set(rq->args, "patched") ? "patched" : ops_arg_str(rq->args, "format");
	const char *dot = path ? strrchr(path, '.') : NULL;
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		if (name ? !strcmp(name, formats[i].name) : dot && *formats[i].ending && !strcmp(dot, formats[i].ending)) {
			*ret = &formats[i];
			return formats[i].needs_path && !path ? err_new(ERR_INVALID, "export: --patched needs -o PATH") : NULL;
		}
	}
	return err_fix(err_new(ERR_INVALID, "export: %s%s", path ? path : "", path ? ": its ending says no format" : "the format is missing"),
		       "--format md, json, h, c, asm, html, map or list; or -o PATH ending in .md .json .h .c .asm .html .map .sym");
}

/* Not the target, whatever it is called. */
static struct err *check_path(const struct export *x, const char *path, bool *ret_is_special)
{
	struct stat st, target;
	*ret_is_special = false;
	if (stat(path, &st))
		return NULL;
	*ret_is_special = !S_ISREG(st.st_mode);
	if (!stat(x->rq->sn->ses->path, &target) && st.st_dev == target.st_dev && st.st_ino == target.st_ino)
		return err_fix(err_new(ERR_DENIED, "%s: is the target, which is never written", path), "choose another name");
	return NULL;
}

/* A pipe that nobody reads from is refused (ENXIO), not waited for. */
static int open_special(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return fd;
}

static struct err *write_file(struct export *x, const struct export_format *f, const char *path)
{
	mode_t mode = !strcmp(f->name, "patched") ? 0755 : 0644;
	bool is_special;
	struct err *e = check_path(x, path, &is_special);
	if (e)
		return e;
	_cleanup_free_ char *tmp = NULL;
	if (asprintf(&tmp, "%s.%d.tmp", path, (int)getpid()) < 0)
		return &err_nomem;
	_cleanup_close_ int fd = is_special ? open_special(path) : open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return err_os(errno, "%s: cannot be written", path);
	x->fd = fd;
	x->path = path;
	if (f->is_long)
		e = f->run(x);
	if (!e && x->out.failed)
		e = &err_nomem;
	if (!e)
		e = write_all(fd, &x->out, path);
	x->written += x->out.len;
	if (is_special)
		return e;
	if (!e && fsync(fd))
		e = err_os(errno, "%s: cannot write", path);
	if (!e && rename(tmp, path))
		e = err_os(errno, "%s: cannot be written", path);
	if (e)
		unlink(tmp);
	return e;
}

static void answer(struct export *x, const struct export_format *f, const char *path)
{
	const struct { const char *key; uint64_t v; } counts[] = {
		{"bytes", x->written}, {"names", x->counts.names}, {"comments", x->counts.comments}, {"types", x->counts.types},
		{"others", x->counts.others}};
	struct ops_out *o = x->rq->out;
	(void)ops_out_item(o);
	ops_out_cstr(o, "path", path);
	ops_out_cstr(o, "format", f->name);
	for (size_t i = 0; i < ARRAY_LEN(counts); i++)
		ops_out_u64(o, counts[i].key, counts[i].v);
	ops_out_u64(o, "rev", x->rev);
	ops_out_end_item(o);
}

static struct err *run_export(struct export *x, const struct export_format *f, const char *path)
{
	struct ops_req *rq = x->rq;
	struct err *e = ses_info(rq->sn, rq->arena, &x->info);
	x->rev = ses_snap_rev(rq->sn);
	/* What was never edited has no journal, or one without an edit. */
	if (!e && f->needs_facts && rq->sn->edits)
		e = ses_stated(rq->sn->ses, rq->arena, &x->facts, &x->fact_cnt, &x->rev);
	if (!e && !(f->is_long && path))
		e = f->run(x);
	if (!e && x->out.failed)
		e = &err_nomem;
	if (!e && !path && rq->out->is_json && !strcmp(f->name, "patched"))
		e = err_fix(err_new(ERR_INVALID, "export: JSON cannot hold raw bytes"), "say where to write them with output");
	if (e || path) {
		e = e ? e : write_file(x, f, path);
		if (!e)
			answer(x, f, path);
		return e;
	}
	if (!rq->out->is_json) {
		buf_add(rq->out->buf, x->out.data, x->out.len);
		return NULL;
	}
	struct json *j = &rq->out->json;
	json_obj(j);
	json_key(j, "rev");
	json_u64(j, x->rev);
	json_key(j, "format");
	json_str(j, f->name);
	json_key(j, "text");
	json_strn(j, x->out.data ? x->out.data : "", x->out.len);
	json_end_obj(j);
	return NULL;
}

struct err *ops_export(struct ops_req *rq)
{
	const char *path = ops_arg_str(rq->args, "output");
	const struct export_format *f = NULL;
	if (path && !strcmp(path, "-"))
		path = NULL;
	struct err *e = find_format(rq, path, &f);
	if (e)
		return e;
	struct export x = {.rq = rq, .fd = -1};
	e = run_export(&x, f, path);
	buf_fini(&x.out);
	return e;
}
