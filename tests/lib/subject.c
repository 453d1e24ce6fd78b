/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/subject.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void subject_read(struct subject *s)
{
	struct err *e = file_open(s->path, &s->file);
	if (!e)
		e = fmt_open(s->file->data, s->file->len, &s->bin);
	if (e)
		fail_msg("%s: %s", s->path, e->text);
}

static char *run_shell(const char *command)
{
	FILE *p = popen(command, "r");
	assert_non_null(p);
	struct buf out = {0};
	char chunk[4096];
	for (size_t n; (n = fread(chunk, 1, sizeof(chunk), p)) > 0;)
		buf_add(&out, chunk, n);
	if (pclose(p) != 0)
		fail_msg("failed: %s", command);
	buf_add_ch(&out, 0);
	assert_false(out.failed);
	return out.data;
}

struct subject *subject_new(const char *suffix, const char *source, const char *command)
{
	char folder[] = "/tmp/scry-subject-XXXXXX";
	struct buf b = {0};
	buf_printf(&b, "command -v %.*s >/dev/null || echo no", (int)strcspn(command, " "), command);
	buf_add_ch(&b, 0);
	char *missing = run_shell(b.data);
	bool is_missing = missing[0] != 0;
	free(missing);
	b.len = 0;
	if (is_missing) {
		buf_fini(&b);
		return NULL;
	}
	assert_non_null(mkdtemp(folder));
	struct subject *s = calloc(1, sizeof(*s));
	assert_non_null(s);
	s->folder = strdup(folder);
	assert_true(asprintf(&s->path, "%s/out", folder) > 0);
	buf_printf(&b, "%s/in%s", folder, suffix);
	buf_add_ch(&b, 0);
	FILE *f = fopen(b.data, "we");
	assert_non_null(f);
	fputs(source, f);
	fclose(f);
	b.len = 0;
	buf_printf(&b, "cd %s && export GOCACHE=$PWD/go GOFLAGS=-mod=mod GO111MODULE=off SRC=$PWD/in%s OUT=$PWD/out && "
		       "{ %s; } 2>err || { cat err >&2; exit 1; }", folder, suffix, command);
	buf_add_ch(&b, 0);
	free(run_shell(b.data));
	buf_fini(&b);
	subject_read(s);
	return s;
}

struct subject *subject_open(const char *path)
{
	if (access(path, R_OK))
		return NULL;
	struct subject *s = calloc(1, sizeof(*s));
	assert_non_null(s);
	s->path = strdup(path);
	subject_read(s);
	return s;
}

char *subject_run(const struct subject *s, const char *command)
{
	struct buf b = {0};
	buf_printf(&b, "export OUT=%s; %s", s->path, command);
	buf_add_ch(&b, 0);
	char *out = run_shell(b.data);
	buf_fini(&b);
	return out;
}

void subject_free(struct subject *s)
{
	if (!s)
		return;
	fmt_bin_free(s->bin);
	file_close(s->file);
	if (s->folder) {
		struct buf b = {0};
		buf_printf(&b, "rm -rf %s", s->folder);
		buf_add_ch(&b, 0);
		free(run_shell(b.data));
		buf_fini(&b);
	}
	free(s->folder);
	free(s->path);
	free(s);
}
