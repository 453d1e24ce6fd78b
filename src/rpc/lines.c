/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/lines.h"

static size_t line_max(const struct rpc_lines *l)
{
	return l->max ? l->max : RPC_LINE_MAX;
}

size_t rpc_lines_room(const struct rpc_lines *l)
{
	size_t held = l->in.len - l->at, max = line_max(l);
	return held > max ? 0 : max + 1 - held;
}

/* What was taken makes room before more comes. */
static void compact(struct rpc_lines *l)
{
	if (!l->at)
		return;
	memmove(l->in.data, l->in.data + l->at, l->in.len - l->at);
	l->in.len -= l->at;
	l->scanned -= l->at;
	l->at = 0;
}

void rpc_lines_feed(struct rpc_lines *l, const void *bytes, size_t len)
{
	compact(l);
	buf_add(&l->in, bytes, len);
}

void rpc_lines_end(struct rpc_lines *l)
{
	if (l->in.len > l->at && !l->is_skipping)
		buf_add_ch(&l->in, '\n');
}

static enum rpc_line too_long(struct rpc_lines *l)
{
	bool is_told = l->is_skipping;
	l->is_skipping = true;
	l->at = l->scanned = l->in.len = 0;
	return is_told ? RPC_LINE_NONE : RPC_LINE_TOO_LONG;
}

enum rpc_line rpc_lines_next(struct rpc_lines *l, const char **ret, size_t *ret_len)
{
	if (l->in.failed)
		return RPC_LINE_NOMEM;
	while (l->scanned < l->in.len) {
		const char *from = l->in.data + l->scanned;
		const char *end = memchr(from, '\n', l->in.len - l->scanned);
		if (!end) {
			l->scanned = l->in.len;
			break;
		}
		const char *line = l->in.data + l->at;
		size_t len = (size_t)(end - line);
		bool was_skipping = l->is_skipping;
		l->at = l->scanned = (size_t)(end - l->in.data) + 1;
		l->is_skipping = false;
		if (len && line[len - 1] == '\r')
			len--;
		if (was_skipping || !len)
			continue;
		*ret = line;
		*ret_len = len;
		return RPC_LINE_READY;
	}
	return l->is_skipping || l->in.len - l->at > line_max(l) ? too_long(l) : RPC_LINE_NONE;
}

void rpc_lines_fini(struct rpc_lines *l)
{
	buf_fini(&l->in);
}
