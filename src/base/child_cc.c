/* SPDX-License-Identifier: Apache-2.0 */
#include "base/child_cc.h"

#include "base/child_lock.h"
#include "base/child_tool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What no C that scry prints comes near: a compiler that goes there does not end. */
#define CC_CPU_S 1200
#define CC_WALL_MS 3600000
#define CC_FILE_MAX ((uint64_t)1 << 30)

struct err *child_cc_open(struct child_cc *cc)
{
	const char *tmp = getenv("TMPDIR");
	char made[sizeof(cc->dir)];
	*cc = (struct child_cc){0};
	int len = snprintf(made, sizeof(made), "%s/scry-cc-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
	if (len >= (int)sizeof(made))
		return err_new(ERR_ENV, "TMPDIR is too long");
	if (!mkdtemp(made))
		return err_os(errno, "%s", made);
	memcpy(cc->dir, made, sizeof(made));
	return NULL;
}

struct err *child_cc_put(const struct child_cc *cc, const char *name, const void *bytes, size_t len)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", cc->dir, name);
	FILE *f = fopen(path, "we");
	bool ok = f && fwrite(bytes, 1, len, f) == len;
	if (f && fclose(f))
		ok = false;
	return ok ? NULL : err_os(errno, "%s", path);
}

/* The first line that names an error, else the first. */
static struct err *cc_said(const char *cc, struct buf *said)
{
	buf_add_ch(said, '\0');
	if (said->failed)
		return &err_nomem;
	const char *line = said->data;
	char *rest = said->data;
	for (const char *p; (p = strsep(&rest, "\n"));)
		if (strstr(p, "error") || strstr(p, "relocation")) {
			line = p;
			break;
		}
	return err_new(ERR_INTERNAL, "%s does not take the C: %.300s", cc, line);
}

struct err *child_cc_run(const struct child_cc *cc, const char *const *argv)
{
	_cleanup_buf_ struct buf out = {0}, said = {0};
	const struct child_tool tool = {.argv = argv, .max_out_len = 1 << 20, .cpu_s = CC_CPU_S, .wall_ms = CC_WALL_MS, .folder = cc->dir,
					.max_file_len = CC_FILE_MAX, .check = cc->check, .check_ctx = cc->check_ctx};
	int status = 0;
	struct err *e = child_tool_run(&tool, &out, &said, &status);
	if (e && e->kind == ERR_ENV)
		return err_fix(e, "apt install %s", argv[0]);
	return e ? e : status ? cc_said(argv[0], &said) : NULL;
}

const char *child_cc_missing(void)
{
	return child_lock_has_folders() ? "" : "landlock for the compiler";
}

void child_cc_close(struct child_cc *cc)
{
	DIR *d = cc->dir[0] ? opendir(cc->dir) : NULL;
	char path[sizeof(cc->dir) + 256];
	for (const struct dirent *e; d && (e = readdir(d));) {
		snprintf(path, sizeof(path), "%s/%s", cc->dir, e->d_name);
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			unlink(path);
	}
	if (d)
		closedir(d);
	if (cc->dir[0])
		rmdir(cc->dir);
	cc->dir[0] = '\0';
}
