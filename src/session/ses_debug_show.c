/* SPDX-License-Identifier: Apache-2.0 */
/* A stopped target as text. */
#include "session/ses_debug_int.h"

#include "session/ops.h"

#include <string.h>

const char *ses_debug_signal_name(int sig)
{
	static const char *const names[] = {"0", "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL",
		"SIGUSR1",
		"SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGCHLD", "SIGCONT", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU",
		"SIGURG", "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO", "SIGPWR", "SIGSYS"};
	return sig > 0 && sig < (int)ARRAY_LEN(names) ? names[sig] : NULL;
}

static void put_signal(int sig, struct buf *out)
{
	const char *name = ses_debug_signal_name(sig);
	if (name)
		buf_add_str(out, name);
	else
		buf_printf(out, "signal %d", sig);
}

static void put_why(struct ses_debug *s, struct buf *out)
{
	const struct debug_stop *t = &s->d->stop;
	const struct debug_want *w = t->break_id ? ses_debug_want_of(s, t->break_id) : NULL;
	if (t->has_watch) {
		buf_printf(out, "watchpoint %u, 0x%llx ", w ? w->id : 0, (unsigned long long)t->watch_va);
		size_t before = out->len;
		ses_debug_put_where(s, t->watch_va, out);
		buf_add_str(out, out->len > before ? " was touched" : "was touched");
		if (w && w->was != w->is)
			buf_printf(out, ", 0x%llx became 0x%llx,", (unsigned long long)w->was, (unsigned long long)w->is);
	} else if (!strcmp(t->reason, "exec")) {
		buf_add_str(out, "another program begins");
	} else if (w) {
		buf_printf(out, "breakpoint %u%s", w->id, w->is_unjudged ? ", whose condition cannot be judged," : "");
	} else if (t->signal == 5 || !t->signal || t->signal == 19) {
		buf_add_str(out, "stopped");
	} else {
		put_signal(t->signal, out);
	}
}

void ses_debug_put_state(struct ses_debug *s, struct buf *out)
{
	struct debug *d = s->d;
	uint64_t pc, va;
	switch (d->state) {
	case DEBUG_NONE:
		buf_add_str(out, "no process");
		return;
	case DEBUG_EXITED:
		buf_printf(out, "exited with status %d", d->stop.status);
		return;
	case DEBUG_KILLED:
		buf_add_str(out, "killed by ");
		put_signal(d->stop.signal, out);
		return;
	case DEBUG_DETACHED:
		buf_add_str(out, "detached");
		return;
	case DEBUG_STOPPED:
		break;
	}
	put_why(s, out);
	if (!debug_pc(d, &pc))
		return;
	buf_printf(out, " at 0x%llx ", (unsigned long long)pc);
	ses_debug_put_where(s, pc, out);
	struct ses_text file;
	uint32_t line;
	if (ses_debug_to_va(s, pc, &va) && ses_debug_source(s, va, &file, &line)) {
		buf_add_str(out, " (");
		ops_escape(out, file.s, file.len);
		buf_printf(out, ":%u)", line);
	}
	if (d->threads.cnt > 1) {
		buf_add_str(out, ", thread ");
		ops_escape(out, d->current, strlen(d->current));
	}
}

/* Names for addresses in operands: those of the target that runs. */
static size_t live_name(void *ctx, uint64_t live, char *out, size_t cap)
{
	struct ses_debug *s = ctx;
	struct arena a = {0};
	uint64_t va;
	size_t n = 0;
	if (ses_debug_to_va(s, live, &va)) {
		struct ses_text t = ses_name_at(s->sn, va, &a);
		n = MIN(t.len, cap);
		memcpy(out, t.s, n);
	}
	arena_fini(&a);
	return n;
}

void ses_debug_put_code(struct ses_debug *s, uint64_t live, uint32_t cnt, struct buf *out)
{
	uint64_t pc = UINT64_MAX;
	struct arch_names names = {live_name, s};
	debug_pc(s->d, &pc);
	for (uint32_t i = 0; i < cnt && s->d->arch; i++) {
		uint8_t bytes[16];
		size_t got;
		struct arch_text t;
		struct err *e = debug_mem(s->d, live, bytes, s->d->arch->max_len, &got);
		err_free(e);
		if (e || !got) {
			buf_printf(out, "   0x%llx  cannot be read\n", (unsigned long long)live);
			break;
		}
		size_t len = s->d->arch->format(s->d->arch, bytes, got, live, &names, &t);
		buf_printf(out, "%s 0x%llx <", live == pc ? "=>" : "  ", (unsigned long long)live);
		ses_debug_put_where(s, live, out);
		buf_add_str(out, ">  ");
		ops_escape(out, t.text, t.len);
		buf_add_ch(out, '\n');
		live += len;
	}
	s->shown_live = live;
}

void ses_debug_show_stop(struct ses_debug *s, struct buf *out)
{
	uint64_t pc;
	ses_debug_put_state(s, out);
	buf_add_ch(out, '\n');
	if (s->d->state == DEBUG_STOPPED && debug_pc(s->d, &pc))
		ses_debug_put_code(s, pc, 1, out);
	s->shown_what = 0;
}
