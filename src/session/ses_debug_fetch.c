/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the server's machine: the program and its libraries, over the debugger's own connection, since many servers take but one. */
#include "session/ses_debug_int.h"

#include <stdlib.h>
#include <string.h>

enum { PATH_LEN = 4096 };

struct err *ses_debug_fetch(struct ses_debug *s, const char *const *paths, size_t cnt, const char **locals)
{
	struct ses_remote_got got = {0};
	memset(locals, 0, cnt * sizeof(*locals));
	if (!cnt || !s->where || s->has_no_files || s->d->link.lost)
		return NULL;
	struct err *e = ses_remote_fetch_over(s->d->link.conn, s->where, paths, cnt, &s->remote, &got);
	if (e) {
		/* Answers to what was asked may still come: nothing that is asked now would be understood. */
		s->d->link.lost = err_new(e->kind, "the connection was given up: %s", e->text);
		return e;
	}
	bool is_none = true;
	for (size_t i = 0; i < got.cnt && i < cnt; i++) {
		locals[i] = got.files[i].local;
		is_none &= got.files[i].err && got.files[i].err->kind == ERR_UNSUPPORTED;
	}
	s->has_no_files = is_none;
	if (VEC_PUSH(&s->got, got))
		return NULL;
	ses_remote_fini(&got);
	memset(locals, 0, cnt * sizeof(*locals));
	return &err_nomem;
}

/* "name:2f62696e...;" of qProcessInfoPID, LLDB's way. */
static struct err *ask_lldb(struct debug *d, struct buf *out)
{
	_cleanup_batch_ struct debug_batch b = {0};
	struct gdb_span value;
	uint64_t pid;
	size_t at = debug_ask(&b, "qProcessInfo");
	struct err *e = debug_link_run(&d->link, &b);
	if (e || !gdb_find_pair(debug_reply(&b, at), "pid", &value) || !gdb_is_hex(value, &pid))
		return e;
	debug_batch_clear(&b);
	at = debug_ask(&b, "qProcessInfoPID:%llu", (unsigned long long)pid);
	e = debug_link_run(&d->link, &b);
	if (!e && gdb_find_pair(debug_reply(&b, at), "name", &value) && !gdb_unhex(value, PATH_LEN, out))
		out->len = 0;
	return e;
}

/* The path of the process that the server has; "" unknown. */
static struct err *ask_path(struct ses_debug *s, struct buf *out)
{
	struct debug *d = s->d;
	struct err *e = NULL;
	if (d->state != DEBUG_STOPPED)
		return NULL;
	if (d->features.has_exec_file) {
		e = debug_xfer(d, "exec-file", "", PATH_LEN, out);
		/* QEMU wants to hear which process. */
		if (!d->link.lost && (e || !out->len) && d->current[0] == 'p') {
			char pid[DEBUG_ID_MAX];
			snprintf(pid, sizeof(pid), "%.*s", (int)strcspn(d->current + 1, "."), d->current + 1);
			err_free(e);
			e = debug_xfer(d, "exec-file", pid, PATH_LEN, out);
		}
	} else if (d->features.is_lldb) {
		e = ask_lldb(d, out);
	}
	/* A server that does not tell is no reason to end. */
	if (e && !d->link.lost) {
		err_free(e);
		e = NULL;
	}
	return e;
}

struct err *ses_debug_fetch_program(struct ses_debug *s, const char *path, bool no_store)
{
	_cleanup_buf_ struct buf said = {0};
	const char *local;
	struct err *e = path ? NULL : ask_path(s, &said);
	buf_add_ch(&said, 0);
	if (e || said.failed)
		return e ? e : &err_nomem;
	bool is_asked = path != NULL;
	path = is_asked ? path : said.data;
	if (*path != '/')
		return NULL;
	s->remote_path = strdup(path);
	e = s->remote_path ? ses_debug_fetch(s, &path, 1, &local) : &err_nomem;
	if (!e && !local && is_asked && s->has_no_files)
		e = err_fix(err_new(ERR_UNSUPPORTED, "%s: the server gives out no files", path), "say the program's file here");
	else if (!e && !local && is_asked)
		e = take_ptr(s->got.data[s->got.cnt - 1].files[0].err);
	if (e || !local)
		return e;
	struct ses_opts opts = {.no_store = no_store, .cancel = s->remote.cancel};
	e = ses_open(local, &opts, &s->own_ses);
	/* What is no program that we know can still be run. */
	if (e && !is_asked) {
		err_free(e);
		e = NULL;
	}
	s->ses = e ? NULL : s->own_ses;
	return e ? err_prefix(e, "%s", path) : NULL;
}
