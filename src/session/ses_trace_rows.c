/* SPDX-License-Identifier: Apache-2.0 */
/* The process that traces for somebody who watches: rows to a pipe, and at the end how it ended. */
#include "session/ses_live.h"
#include "session/ses_trace.h"

#include "base/buf.h"
#include "base/child.h"

#include <string.h>
#include <sys/wait.h>

static bool put_bytes(void *ctx, const char *s, size_t len)
{
	return child_write(*(const int *)ctx, s, len);
}

static void put_line(int fd, enum ses_live_kind kind, bool is_error, const char *text)
{
	_cleanup_buf_ struct buf out = {0};
	struct ses_live_row r = {.kind = kind, .is_error = is_error, .args = {text, (uint32_t)strlen(text)}};
	ses_live_put(&r, &out);
	if (!out.failed)
		put_bytes(&fd, out.data, out.len);
}

static void say(void *ctx, const char *line)
{
	put_line(*(const int *)ctx, SES_LIVE_SAID, false, line);
}

void ses_trace_rows(const struct ops_args *args, struct err *parsing, int fd, const atomic_bool *cancel)
{
	struct ses_trace_io io = {.write = put_bytes, .say = say, .ctx = &fd, .cancel = cancel, .is_rows = true, .is_live = true};
	int status = -1;
	struct err *e = parsing ? parsing : ses_trace(args, &io, &status);
	_cleanup_buf_ struct buf text = {0};
	if (e)
		buf_printf(&text, "%s%s%s", e->text ? e->text : err_kind_name(e->kind), e->fix ? ": " : "", e->fix ? e->fix : "");
	else if (status == -1)
		buf_add_str(&text, "the trace has ended");
	else if (WIFSIGNALED(status))
		buf_printf(&text, "the program was ended by signal %d", WTERMSIG(status));
	else
		buf_printf(&text, "the program has ended with status %d", WEXITSTATUS(status));
	buf_add_ch(&text, '\0');
	put_line(fd, SES_LIVE_END, e != NULL, text.failed ? "" : text.data);
	err_free(e);
}
