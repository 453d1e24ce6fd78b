/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include "session/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Findings to a file, in a job: a long report and a slow disk stop no frame. */
struct export_job {
	struct tui_job job;
	tui_operate_fn *operate;
	char path[TUI_FILTER_MAX];
	struct buf out;
	struct err *err;
};

static void run(struct tui_job *j)
{
	struct export_job *x = (struct export_job *)j;
	struct buf line = {0};
	buf_add_str(&line, "export --format md --output \"");
	buf_add_str(&line, x->path);
	buf_add(&line, "\"", 2);
	const struct ops_req on = {.sn = j->snap, .call = &j->call};
	x->err = line.failed ? &err_nomem : x->operate(&on, line.data, &x->out);
	buf_fini(&line);
}

static void done(struct tui *t, struct tui_job *j)
{
	struct export_job *x = (struct export_job *)j;
	if (x->err)
		tui_say_err(t, take_ptr(x->err));
	else
		tui_say(t, false, "written to %s", x->path);
}

static void fini(struct tui_job *j)
{
	struct export_job *x = (struct export_job *)j;
	buf_fini(&x->out);
	err_free(x->err);
}

void tui_export_start(struct tui *t, const char *path)
{
	struct export_job *x = t->operate && !strchr(path, '"') ? calloc(1, sizeof(*x)) : NULL;
	if (!x) {
		tui_say(t, true, "%s cannot be written to", path);
		return;
	}
	snprintf(x->path, sizeof(x->path), "%s", path);
	x->operate = t->operate;
	x->job.run = run;
	x->job.done = done;
	x->job.fini = fini;
	tui_say(t, false, "writing %s", path);
	tui_job_start(t, &x->job);
}
