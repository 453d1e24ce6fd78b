/* SPDX-License-Identifier: Apache-2.0 */
/* `scry get` and `scry push`. */
#include "cli/cli_int.h"

#include "base/json.h"
#include "session/ses_remote.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

struct getting {
	struct cli c;
	uint64_t begin_ns, shown_ns;
	bool has_terminal;
};

static uint64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void put_size(char *out, size_t cap, double len)
{
	static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
	unsigned u = 0;
	for (; len >= 1000 && u < ARRAY_LEN(units) - 1; u++)
		len /= 1000;
	snprintf(out, cap, u ? "%.1f %s" : "%.0f %s", len, units[u]);
}

static void show_progress(void *ctx, const struct ses_remote_progress *p)
{
	struct getting *g = ctx;
	uint64_t now = now_ns();
	if (!g->has_terminal || now - g->shown_ns < 50000000)
		return;
	g->shown_ns = now;
	char done[24], total[24], rate[24], text[120];
	double s = (double)(now - g->begin_ns) / 1e9;
	put_size(done, sizeof(done), (double)p->done_len);
	put_size(total, sizeof(total), (double)p->total_len);
	put_size(rate, sizeof(rate), (double)p->came_len / (s > 0 ? s : 1));
	if (p->is_waiting)
		snprintf(text, sizeof(text), "another process fetches it; waiting");
	else if (p->file_cnt > 1)
		snprintf(text, sizeof(text), "%s of %s, %s/s, file %u of %u", done, total, rate, MIN(p->done_cnt + 1, p->file_cnt),
			 p->file_cnt);
	else
		snprintf(text, sizeof(text), "%s of %s, %s/s", done, total, rate);
	cli_put_progress(p->done_len, p->total_len, text);
	g->c.is_progress = true;
}

static void say(void *ctx, const char *line)
{
	struct getting *g = ctx;
	struct buf text = {0};
	cli_progress_end(&g->c);
	buf_printf(&text, "scry: %s\n", line);
	if (!text.failed)
		(void)!write(STDERR_FILENO, text.data, text.len);
	buf_fini(&text);
}

/* The last part of a path there, as a name here: without what a terminal or a shell would take for more. */
static struct err *plain_name(const char *url, char *ret, size_t cap)
{
	const char *slash = strrchr(url, '/');
	const char *name = slash ? slash + 1 : url;
	if (!*name || !strcmp(name, ".") || !strcmp(name, "..") || strlen(name) >= cap)
		return err_fix(err_new(ERR_INVALID, "%.200s: its last part is no name of a file", url), "say where to put it with -o FILE");
	snprintf(ret, cap, "%s", name);
	return NULL;
}

/* Gives a fetched file its name in `folder` (null: `output` is the file). */
static struct err *put_file(const struct ses_remote_file *f, const char *folder, const char *output, char **ret_path)
{
	char name[256];
	struct err *e = output && !folder ? NULL : plain_name(f->url, name, sizeof(name));
	if (e)
		return e;
	int n = folder ? asprintf(ret_path, "%s/%s", folder, name) : asprintf(ret_path, "%s", output ? output : name);
	if (n < 0) {
		*ret_path = NULL;
		return &err_nomem;
	}
	return ses_remote_copy(f->local, *ret_path);
}

static void put_json_file(struct json *j, const struct ses_remote_file *f, const char *path)
{
	json_obj(j);
	json_key(j, "url");
	json_str(j, f->url);
	json_key(j, "path");
	if (path)
		json_str(j, path);
	else
		json_null(j);
	if (f->err) {
		json_key(j, "error");
		json_str(j, f->err->text ? f->err->text : err_kind_name(f->err->kind));
	}
	json_end_obj(j);
}

/* Copies all, and the answer into `out`. */
static struct err *put_files(struct getting *g, struct ses_remote_got *got, struct buf *out)
{
	bool libs = ops_arg_is_set(&g->c.args, "libs");
	const char *output = ops_arg_str(&g->c.args, "output"), *folder = libs ? (output ? output : ".") : NULL;
	struct json j = json_make(out);
	struct buf files = {0};
	struct json list = json_make(&files);
	uint64_t len = 0;
	char *first = NULL;
	struct err *e = NULL;
	if (libs && output && mkdir(output, 0777) && errno != EEXIST)
		return err_os(errno, "%s: cannot make the folder", output);
	json_arr(&list);
	for (size_t i = 0; i < got->cnt && !e; i++) {
		struct ses_remote_file *f = &got->files[i];
		char *path = NULL;
		struct stat st;
		if (f->local)
			e = put_file(f, folder, output, &path);
		if (!e && path && !stat(path, &st))
			len += (uint64_t)st.st_size;
		put_json_file(&list, f, path);
		if (!g->c.is_json && libs)
			buf_printf(out, "%s  %s\n", path ? path : "-", f->err && f->err->text ? f->err->text : f->url);
		if (!first)
			first = path;
		else
			free(path);
	}
	json_end_arr(&list);
	double seconds = (double)(now_ns() - g->begin_ns) / 1e9;
	if (g->c.is_json) {
		json_obj(&j);
		json_key(&j, "path");
		json_str(&j, first ? first : "");
		json_key(&j, "bytes");
		json_u64(&j, len);
		json_key(&j, "transferred");
		json_u64(&j, got->came_len);
		json_key(&j, "cached");
		json_bool(&j, !got->came_len);
		json_key(&j, "server");
		json_str(&j, got->server);
		json_key(&j, "round_trips");
		json_u64(&j, got->turn_cnt);
		buf_printf(out, ",\"seconds\":%.3f", seconds);
		json_key(&j, "files");
		json_raw(&j, files.data, files.len);
		json_end_obj(&j);
		buf_add_ch(out, '\n');
	} else if (first) {
		char all[24], came[24], rate[24];
		put_size(all, sizeof(all), (double)len);
		put_size(came, sizeof(came), (double)got->came_len);
		put_size(rate, sizeof(rate), (double)got->came_len / (seconds > 0 ? seconds : 1));
		if (got->came_len)
			buf_printf(out, "%s  %s, %s came in %.2f s (%s/s)\n", first, all, came, seconds, rate);
		else
			buf_printf(out, "%s  %s, unchanged since it was fetched\n", first, all);
	}
	free(first);
	buf_fini(&files);
	return e;
}

static struct ses_remote_opts opts_of(struct getting *g)
{
	uint64_t stall_s = MIN(ops_arg_u64(&g->c.args, "stall", 0), 86400);
	return (struct ses_remote_opts){.cancel = cli_stop(),
					.stall_ms = (unsigned)stall_s * 1000,
					.no_store = g->c.no_store,
					.progress = show_progress,
					.say = say,
					.ctx = g};
}

static int end(struct getting *g, struct err *e, struct buf *out)
{
	cli_progress_end(&g->c);
	int status = out->len ? cli_print(out) : 0;
	if (e)
		status = cli_fail(e);
	buf_fini(out);
	arena_fini(&g->c.arena);
	return status;
}

static struct err *begin(struct getting *g, const char *op, int argc, char **argv)
{
	*g = (struct getting){.c = {.op = ops_find(op)}, .begin_ns = now_ns(), .has_terminal = isatty(STDERR_FILENO)};
	ops_args_init(&g->c.args, g->c.op, &g->c.arena);
	return cli_parse(&g->c, argc, argv);
}

int cli_get(int argc, char **argv)
{
	struct getting g;
	struct buf out = {0};
	struct ses_remote_got got = {0};
	char name[256];
	struct err *e = begin(&g, "get", argc, argv);
	struct ses_remote_opts opts = opts_of(&g);
	/* Before anything is fetched. */
	if (!e && !ops_arg_str(&g.c.args, "output"))
		e = plain_name(ops_arg_str(&g.c.args, "url"), name, sizeof(name));
	if (!e)
		e = ses_remote_fetch(ops_arg_str(&g.c.args, "url"), ops_arg_is_set(&g.c.args, "libs"), &opts, &got);
	if (!e)
		e = put_files(&g, &got, &out);
	ses_remote_fini(&got);
	return end(&g, e, &out);
}

int cli_push(int argc, char **argv)
{
	struct getting g;
	struct buf out = {0};
	uint64_t len = 0, sent_len = 0;
	struct err *e = begin(&g, "push", argc, argv);
	struct ses_remote_opts opts = opts_of(&g);
	const char *url = e ? NULL : ops_arg_str(&g.c.args, "url");
	if (!e)
		e = ses_remote_push(ops_arg_str(&g.c.args, "local"), url, &opts, &len, &sent_len);
	double seconds = (double)(now_ns() - g.begin_ns) / 1e9;
	if (!e && g.c.is_json) {
		struct json j = json_make(&out);
		json_obj(&j);
		json_key(&j, "url");
		json_str(&j, url);
		json_key(&j, "bytes");
		json_u64(&j, len);
		json_key(&j, "sent");
		json_u64(&j, sent_len);
		buf_printf(&out, ",\"seconds\":%.3f}\n", seconds);
	} else if (!e) {
		char all[24];
		put_size(all, sizeof(all), (double)len);
		if (sent_len == len)
			buf_printf(&out, "%s  %s in %.2f s\n", url, all, seconds);
		else
			buf_printf(&out, "%s  %s, there already\n", url, all);
	}
	return end(&g, e, &out);
}
