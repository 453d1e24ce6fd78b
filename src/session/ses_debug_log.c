/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of what the target does, as the workbench reads them (ses_tenet.h), in a file. */
#include "session/ses_debug_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* A log longer than this is of use to nobody, and a disk is full soon: bytes. */
static const uint64_t log_len_max = 4ull << 30;

static struct err *take_text(void *ctx, const char *text, size_t len)
{
	struct ses_debug *s = ctx;
	if (s->log_len + len > log_len_max)
		return err_new(ERR_BUDGET, "%s: the log has %llu GiB and ends here", s->log_path, (unsigned long long)(log_len_max >> 30));
	while (len) {
		ssize_t n = write(s->log_fd, text, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_os(n ? errno : ENOSPC, "%s: cannot write", s->log_path);
		text += n;
		len -= (size_t)n;
		s->log_len += (uint64_t)n;
	}
	return NULL;
}

struct err *ses_debug_log_begin(struct ses_debug *s, const char *path, uint64_t step_max)
{
	struct debug_log log = {.take = take_text, .ctx = s, .step_max = step_max};
	struct err *e = ses_debug_log_end(s);
	if (!e)
		e = debug_log_to(s->d, &log);
	if (e)
		return e;
	s->log_path = strdup(path);
	s->log_fd = s->log_path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
	if (s->log_fd >= 0)
		return NULL;
	e = s->log_path ? err_os(errno, "%s", path) : &err_nomem;
	free(take_ptr(s->log_path));
	err_free(debug_log_to(s->d, NULL));
	return e;
}

struct err *ses_debug_log_end(struct ses_debug *s)
{
	struct err *e = NULL;
	if (!s->log_path)
		return NULL;
	if (close(s->log_fd))
		e = err_os(errno, "%s: cannot write", s->log_path);
	free(take_ptr(s->log_path));
	s->log_fd = -1;
	s->log_len = 0;
	err_free(debug_log_to(s->d, NULL));
	return e;
}

struct err *ses_debug_log_wanted(struct ses_debug *s)
{
	if (!s->log_wanted || s->d->state != DEBUG_STOPPED)
		return NULL;
	_cleanup_free_ char *path = take_ptr(s->log_wanted);
	return ses_debug_log_begin(s, path, SES_DEBUG_LOG_STEPS);
}

void ses_debug_put_log(const struct ses_debug *s, struct buf *out)
{
	if (!s->log_path)
		return;
	buf_add_ch(out, ' ');
	const struct debug_log *l = &s->d->log;
	buf_printf(out, "%llu steps, %llu KB%s\n", (unsigned long long)l->step_cnt, (unsigned long long)(s->log_len >> 10),
		   l->is_full ? ", full: it ends here" : "");
}
