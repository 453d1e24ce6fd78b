/* SPDX-License-Identifier: Apache-2.0 */
/* What is typed at the debugger. To add a command: its function, its row. Docs: docs/debugging.md. */
#include "session/ses_debug_int.h"

#include "session/ops.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define WORD_MAX 64

struct command_call {
	struct ses_debug *s;
	char *rest;                    /* what stands behind the command */
	struct buf *out;
	int arg;                       /* of its row */
	bool is_quit;
};

/* The next word of the rest, in place; "" at the end. Quotes keep blanks. */
static char *next_word(struct command_call *c)
{
	char *p = c->rest, *from, *to;
	while (isspace((unsigned char)*p))
		p++;
	from = to = p;
	char quote = 0;
	for (; *p && (quote || !isspace((unsigned char)*p)); p++) {
		if (quote ? *p == quote : *p == '"' || *p == '\'')
			quote = quote ? 0 : *p;
		else
			*to++ = *p;
	}
	c->rest = *p ? p + 1 : p;
	*to = 0;
	return from;
}

/* Everything left, without blanks around it. */
static char *all_rest(struct command_call *c)
{
	char *p = c->rest;
	while (isspace((unsigned char)*p))
		p++;
	size_t len = strlen(p);
	while (len && isspace((unsigned char)p[len - 1]))
		p[--len] = 0;
	c->rest = p + len;
	return p;
}

static struct err *usage(const char *form)
{
	return err_new(ERR_INVALID, "usage: %s", form);
}

static struct err *number_of(const char *text, uint64_t *ret)
{
	char *end;
	errno = 0;
	*ret = strtoull(text, &end, 0);
	return *text && !*end && !errno ? NULL : err_new(ERR_INVALID, "'%s' is no number", text);
}

static struct err *say_stop(struct command_call *c, struct err *e)
{
	if (e)
		return e;
	ses_debug_show_stop(c->s, c->out);
	if (!c->s->d->log.is_full && c->s->d->state == DEBUG_STOPPED)
		return NULL;
	/* It is over, by its own end or the program's. */
	if (c->s->log_path) {
		ops_escape(c->out, c->s->log_path, strlen(c->s->log_path));
		buf_add_ch(c->out, ':');
	}
	ses_debug_put_log(c->s, c->out);
	return ses_debug_log_end(c->s);
}

/* --- running --- */

static struct err *do_run(struct command_call *c)
{
	const char *words[WORD_MAX];
	size_t cnt = 0;
	struct ses_debug *s = c->s;
	for (char *w = next_word(c); *w && cnt < WORD_MAX; w = next_word(c))
		words[cnt++] = w;
	if (!cnt)
		return say_stop(c, ses_debug_run(s));
	if (s->d->state == DEBUG_STOPPED)
		return err_fix(err_new(ERR_INVALID, "a process is there already"), "kill it first");
	/* Words alone are those of the program that is known. */
	const char *all[WORD_MAX + 1];
	bool is_program = !s->argc || strchr(words[0], '/');
	size_t n = 0;
	if (!is_program)
		all[n++] = s->argv[0];
	for (size_t i = 0; i < cnt; i++)
		all[n++] = words[i];
	struct err *e = ses_debug_launch(s, all, n);
	return say_stop(c, e || s->d->state != DEBUG_STOPPED ? e : ses_debug_run(s));
}

static struct err *do_start(struct command_call *c)
{
	uint32_t id;
	struct err *e = ses_debug_want(c->s, "main", NULL, DEBUG_BREAK_SOFT, true, &id);
	return e ? e : do_run(c);
}

static struct err *do_attach(struct command_call *c)
{
	uint64_t pid;
	struct err *e = number_of(next_word(c), &pid);
	if (e)
		return e;
	ses_debug_moved(c->s);
	e = ses_debug_again(c->s);
	if (!e)
		e = debug_attach(c->s->d, pid);
	/* What was there before is let go when we end. */
	c->s->is_ours &= e != NULL;
	return say_stop(c, e ? e : ses_debug_after(c->s));
}

static struct err *do_continue(struct command_call *c)
{
	char *word = next_word(c);
	uint64_t times = 1;
	struct err *e = *word ? number_of(word, &times) : NULL;
	struct debug_break *k = c->s->d->stop.break_id ? debug_break_find(c->s->d, c->s->d->stop.break_id) : NULL;
	if (!e && k && times > 1)
		k->ignore_cnt = times - 1;
	ses_debug_moved(c->s);
	if (!e)
		e = debug_continue(c->s->d, -1);
	return say_stop(c, e ? e : ses_debug_after(c->s));
}

/* "SIGUSR1", "usr1", "10"; -1. */
static int signal_of(const char *word)
{
	for (int i = 1; i < 32; i++) {
		const char *name = ses_debug_signal_name(i);
		if (name && (!strcasecmp(name, word) || !strcasecmp(name + 3, word)))
			return i;
	}
	return isdigit((unsigned char)*word) ? (int)strtoul(word, NULL, 10) & 0x7f : -1;
}

static void put_signal_name(int sig, struct buf *out)
{
	const char *name = ses_debug_signal_name(sig);
	if (name)
		buf_printf(out, " %s", name);
	else
		buf_printf(out, " %d", sig);
}

/* handle [SIGNAL stop|pass] */
static struct err *do_handle(struct command_call *c)
{
	const char *word = next_word(c), *what = next_word(c);
	struct debug *d = c->s->d;
	int sig = *word ? signal_of(word) : 0;
	bool is_pass = !strcmp(what, "pass");
	if (*word && (sig < 1 || sig > 63 || sig == 5 || (!is_pass && strcmp(what, "stop") != 0)))
		return usage("handle [SIGNAL stop|pass]");
	if (*word)
		return debug_pass_signals(d, is_pass ? d->passed | 1ull << sig : d->passed & ~(1ull << sig));
	buf_add_str(c->out, "passed on without a stop:");
	for (int i = 1; i < 64; i++)
		if (d->passed >> i & 1)
			put_signal_name(i, c->out);
	buf_add_ch(c->out, '\n');
	return NULL;
}

static struct err *do_signal(struct command_call *c)
{
	const char *word = next_word(c);
	int sig = signal_of(word);
	if (sig < 0)
		return usage("signal 0|NUMBER|NAME");
	ses_debug_moved(c->s);
	struct err *e = debug_continue(c->s->d, sig);
	return say_stop(c, e ? e : ses_debug_after(c->s));
}

enum { STEP_INTO_SOURCE, STEP_OVER_SOURCE, STEP_INTO_INSN, STEP_OVER_INSN };

static struct err *do_step(struct command_call *c)
{
	char *word = next_word(c);
	uint64_t times = 1;
	struct err *e = *word ? number_of(word, &times) : NULL;
	bool by_insn = c->arg >= STEP_INTO_INSN;
	for (uint64_t i = 0; i < times && !e; i++) {
		e = ses_debug_step(c->s, by_insn ? SES_DEBUG_INSN : SES_DEBUG_SOURCE, c->arg & 1);
		if (c->s->d->state != DEBUG_STOPPED || c->s->d->stop.signal != 5 || c->s->d->stop.break_id)
			break;
	}
	return say_stop(c, e);
}

/* record FILE [STEPS], record off, record */
static struct err *do_record(struct command_call *c)
{
	const char *path = next_word(c), *word = next_word(c);
	uint64_t steps = SES_DEBUG_LOG_STEPS;
	struct err *e = *word ? number_of(word, &steps) : NULL;
	if (e)
		return e;
	if (*path && strcmp(path, "off") != 0) {
		e = ses_debug_log_begin(c->s, path, steps);
		if (!e && !c->s->d->is_scry)
			buf_add_str(c->out, "this server makes no logs: steps are asked for one by one, two round trips or more each\n");
		return e;
	}
	if (!c->s->log_path)
		return err_fix(err_new(ERR_INVALID, "nothing is recorded"), "record FILE begins");
	ops_escape(c->out, c->s->log_path, strlen(c->s->log_path));
	buf_add_ch(c->out, ':');
	ses_debug_put_log(c->s, c->out);
	return *path ? ses_debug_log_end(c->s) : NULL;
}

static struct err *do_out(struct command_call *c)
{
	return say_stop(c, ses_debug_out(c->s));
}

static struct err *do_until(struct command_call *c)
{
	char *what = all_rest(c);
	uint64_t live;
	int hit;
	if (!*what)
		return usage("until PLACE");
	struct err *e = ses_debug_place(c->s, what, &live);
	if (e)
		return e;
	ses_debug_moved(c->s);
	e = debug_run_to(c->s->d, &(struct debug_place){.va = live}, 1, &hit);
	return say_stop(c, e ? e : ses_debug_after(c->s));
}

static struct err *do_kill(struct command_call *c)
{
	struct err *e = debug_kill(c->s->d);
	return say_stop(c, e ? e : ses_debug_after(c->s));
}

static struct err *do_detach(struct command_call *c)
{
	struct err *e = debug_detach(c->s->d);
	return say_stop(c, e);
}

static struct err *do_quit(struct command_call *c)
{
	c->is_quit = true;
	return NULL;
}

static struct err *do_status(struct command_call *c)
{
	ses_debug_show_stop(c->s, c->out);
	return NULL;
}

/* --- breakpoints --- */

static void put_want(struct ses_debug *s, const struct debug_want *w, struct buf *out)
{
	const struct debug_break *k = w->placed ? debug_break_find(s->d, w->placed) : NULL;
	buf_printf(out, "%u: ", w->id);
	ops_escape(out, w->what, strlen(w->what));
	if (k) {
		buf_printf(out, " at 0x%llx ", (unsigned long long)k->va);
		ses_debug_put_where(s, k->va, out);
	} else if (w->has_va) {
		buf_add_ch(out, ' ');
		struct arena a = {0};
		struct ses_text t = ses_where(s->sn, w->va, &a);
		ops_escape(out, t.s, t.len);
		arena_fini(&a);
	}
	if (w->cond) {
		buf_add_str(out, " if ");
		ops_escape(out, w->cond, strlen(w->cond));
	}
	if (w->is_off)
		buf_add_str(out, ", off");
	else if (!k)
		buf_add_str(out, ", waits for it to be loaded");
	if (k && k->hit_cnt)
		buf_printf(out, ", hit %llu times", (unsigned long long)k->hit_cnt);
	buf_add_ch(out, '\n');
}

enum { BREAK_PLAIN, BREAK_TEMP, BREAK_HARD };

static struct err *do_break(struct command_call *c)
{
	char *what = all_rest(c), *cond = NULL;
	uint32_t id;
	for (char *p = strstr(what, " if "); p; p = NULL) {
		*p = 0;
		cond = p + 4;
	}
	if (!*what)
		return usage("break PLACE [if CONDITION]");
	struct err *e = ses_debug_want(c->s, what, cond, c->arg == BREAK_HARD ? DEBUG_BREAK_HARD : DEBUG_BREAK_SOFT, c->arg == BREAK_TEMP, &id);
	if (!e)
		put_want(c->s, &c->s->wants.data[c->s->wants.cnt - 1], c->out);
	return e;
}

static struct err *do_watch(struct command_call *c)
{
	uint64_t live, len = c->s->d->arch && c->s->d->arch->bits == 32 ? 4 : 8;
	char *what = next_word(c), *word = next_word(c);
	uint32_t id;
	char text[24];
	if (!*what)
		return usage("watch PLACE [BYTES]");
	struct err *e = *word ? number_of(word, &len) : NULL;
	if (!e && (!len || len > 8 || len & (len - 1)))
		e = err_new(ERR_INVALID, "1, 2, 4 or 8 bytes can be watched");
	if (!e && c->s->d->state != DEBUG_STOPPED)
		e = err_fix(err_new(ERR_INVALID, "no process is stopped here"), "run starts one");
	if (!e)
		e = ses_debug_place(c->s, what, &live);
	if (e)
		return e;
	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)live);
	uint32_t placed;
	e = debug_break_add(c->s->d, (enum debug_break_kind)c->arg, live, (uint32_t)len, &placed);
	if (e)
		return e;
	/* A name is looked up again in the next process. */
	bool is_name = isalpha((unsigned char)*what) || *what == '_';
	struct debug_want w = {.id = c->s->last_want + 1, .what = strdup(is_name ? what : text),
			       .kind = (uint8_t)c->arg, .len = (uint32_t)len, .placed = placed};
	if (!w.what || !VEC_PUSH(&c->s->wants, w)) {
		free(w.what);
		return &err_nomem;
	}
	id = ++c->s->last_want;
	struct debug_want *set = &c->s->wants.data[c->s->wants.cnt - 1];
	set->is = ses_debug_watched(c->s, set);
	buf_printf(c->out, "%u: ", id);
	ops_escape(c->out, what, strlen(what));
	buf_printf(c->out, " at %s, %llu bytes\n", text, (unsigned long long)len);
	return NULL;
}

static struct err *do_delete(struct command_call *c)
{
	char *word = next_word(c);
	struct err *e = NULL;
	if (!*word) {
		while (!e && c->s->wants.cnt)
			e = ses_debug_unwant(c->s, c->s->wants.data[0].id);
		return e;
	}
	for (; *word && !e; word = next_word(c)) {
		uint64_t id;
		e = number_of(word, &id);
		if (!e)
			e = ses_debug_unwant(c->s, (uint32_t)id);
	}
	return e;
}

static struct err *do_enable(struct command_call *c)
{
	uint64_t id;
	struct err *e = number_of(next_word(c), &id);
	for (size_t i = 0; !e && i < c->s->wants.cnt; i++) {
		struct debug_want *w = &c->s->wants.data[i];
		if (w->id != id)
			continue;
		w->is_off = !c->arg;
		unsigned left;
		if (w->placed)
			return debug_break_enable(c->s->d, w->placed, c->arg);
		return ses_debug_place_all(c->s, &left);
	}
	return e ? e : err_new(ERR_NOT_FOUND, "no breakpoint has the number %llu", (unsigned long long)id);
}

static struct err *do_breaks(struct command_call *c)
{
	for (size_t i = 0; i < c->s->wants.cnt; i++)
		put_want(c->s, &c->s->wants.data[i], c->out);
	if (!c->s->wants.cnt)
		buf_add_str(c->out, "no breakpoints\n");
	return NULL;
}

/* --- looking --- */

static void put_reg(struct ses_debug *s, int i, struct buf *out)
{
	const struct debug_reg *r = &s->d->regs.list[i];
	const uint8_t *p = debug_reg_bytes(s->d, i);
	uint64_t v;
	buf_printf(out, "%-8.24s ", r->name);
	if (!p || (s->frame_idx && !ses_debug_frame_reg(s, i, &v))) {
		buf_add_str(out, "??\n");
		return;
	}
	if (r->len > 8) {
		buf_add_str(out, "0x");
		for (uint32_t k = r->len; k--;)
			buf_add_hex(out, p[k], 2);
	} else if (ses_debug_frame_reg(s, i, &v)) {
		buf_printf(out, "0x%0*llx", (int)(2 * r->len), (unsigned long long)v);
		_cleanup_buf_ struct buf where = {0};
		ses_debug_put_where(s, v, &where);
		if (where.len)
			buf_printf(out, "  %.*s", (int)where.len, where.data);
		if (!s->frame_idx && s->old_known[i] && s->old_regs[i] != v)
			buf_printf(out, "  (was 0x%llx)", (unsigned long long)s->old_regs[i]);
	}
	buf_add_ch(out, '\n');
}

static struct err *do_registers(struct command_call *c)
{
	char *word = next_word(c);
	struct debug *d = c->s->d;
	if (d->state != DEBUG_STOPPED)
		return err_fix(err_new(ERR_INVALID, "no process is stopped here"), "run starts one");
	bool is_all = !strcmp(word, "all");
	if (!*word || is_all) {
		for (uint32_t i = 0; i < d->regs.cnt; i++)
			if (is_all || d->regs.list[i].is_general)
				put_reg(c->s, (int)i, c->out);
		return NULL;
	}
	for (; *word; word = next_word(c)) {
		int i = debug_regs_find(&d->regs, word);
		if (i < 0)
			return err_new(ERR_NOT_FOUND, "%s: no register of the target", word);
		put_reg(c->s, i, c->out);
	}
	return NULL;
}

/* set REG = EXPR */
static struct err *do_set(struct command_call *c)
{
	char *text = all_rest(c), *eq = strchr(text, '=');
	uint64_t v;
	if (!eq)
		return usage("set REGISTER=VALUE");
	char *end = eq;
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	*end = 0;
	int i = debug_regs_find(&c->s->d->regs, text);
	if (i < 0)
		return err_new(ERR_NOT_FOUND, "%s: no register of the target", text);
	struct err *e = ses_debug_eval(c->s, eq + 1, &v);
	if (!e)
		e = debug_reg_write(c->s->d, i, v);
	c->s->has_frames = false;
	if (!e)
		put_reg(c->s, i, c->out);
	return e;
}

static void put_dump(uint64_t live, const uint8_t *bytes, size_t len, struct buf *out)
{
	for (size_t i = 0; i < len; i += 16) {
		buf_printf(out, "0x%llx:", (unsigned long long)(live + i));
		for (size_t k = 0; k < 16; k++) {
			if (i + k < len)
				buf_printf(out, " %02x", bytes[i + k]);
			else
				buf_add_str(out, "   ");
		}
		buf_add_str(out, "  ");
		for (size_t k = i; k < len && k < i + 16; k++)
			buf_add_ch(out, bytes[k] >= 32 && bytes[k] < 127 ? (char)bytes[k] : '.');
		buf_add_ch(out, '\n');
	}
}

/* The place and count of a command that shows a stretch: without a place it goes on where the last one ended. */
static struct err *stretch(struct command_call *c, uint64_t usual, uint64_t *ret_live, uint64_t *ret_cnt)
{
	char *what = next_word(c), *word = next_word(c);
	struct err *e = NULL;
	if (*what)
		e = ses_debug_place(c->s, what, ret_live);
	else if (c->s->shown_what == c->arg)
		*ret_live = c->s->shown_live;
	else if (!ses_debug_frame_reg(c->s, c->s->d->regs.pc, ret_live))
		e = err_fix(err_new(ERR_INVALID, "no process is stopped here"), "run starts one");
	*ret_cnt = usual;
	if (!e && *word)
		e = number_of(word, ret_cnt);
	c->s->shown_what = (uint8_t)c->arg;
	return e;
}

static struct err *do_memory(struct command_call *c)
{
	uint64_t live, cnt;
	size_t got;
	struct err *e = stretch(c, 64, &live, &cnt);
	if (e)
		return e;
	cnt = MIN(cnt, 1u << 20);
	uint8_t *bytes = malloc(cnt + 1);
	if (!bytes)
		return &err_nomem;
	e = debug_mem(c->s->d, live, bytes, cnt, &got);
	if (!e && !got && cnt)
		e = err_new(ERR_NOT_FOUND, "0x%llx cannot be read", (unsigned long long)live);
	if (!e) {
		put_dump(live, bytes, got, c->out);
		if (got < cnt)
			buf_printf(c->out, "0x%llx cannot be read\n", (unsigned long long)(live + got));
		c->s->shown_live = live + got;
	}
	free(bytes);
	return e;
}

static struct err *do_write(struct command_call *c)
{
	uint64_t live;
	char *what = next_word(c), *hex = all_rest(c);
	_cleanup_buf_ struct buf bytes = {0}, digits = {0};
	for (; *hex; hex++)
		if (!isspace((unsigned char)*hex))
			buf_add_ch(&digits, *hex);
	if (!digits.len || !gdb_unhex(gdb_span_make(digits.data, digits.len), 1 << 20, &bytes))
		return usage("write PLACE HEXBYTES");
	struct err *e = ses_debug_place(c->s, what, &live);
	if (!e)
		e = debug_mem_write(c->s->d, live, bytes.data, bytes.len);
	c->s->has_frames = false;
	return e;
}

static struct err *do_code(struct command_call *c)
{
	uint64_t live, cnt;
	struct err *e = stretch(c, 10, &live, &cnt);
	if (!e && !c->s->d->arch)
		e = err_new(ERR_UNSUPPORTED, "the target's processor is not known");
	if (!e)
		ses_debug_put_code(c->s, live, (uint32_t)MIN(cnt, 10000u), c->out);
	return e;
}

static struct err *do_print(struct command_call *c)
{
	uint64_t v;
	struct err *e = ses_debug_eval(c->s, all_rest(c), &v);
	if (e)
		return e;
	buf_printf(c->out, "0x%llx %lld", (unsigned long long)v, (long long)v);
	_cleanup_buf_ struct buf where = {0};
	ses_debug_put_where(c->s, v, &where);
	if (where.len)
		buf_printf(c->out, " %.*s", (int)where.len, where.data);
	buf_add_ch(c->out, '\n');
	return NULL;
}

static void put_frame(struct ses_debug *s, const struct ses_debug_frame *f, unsigned i, struct buf *out)
{
	struct ses_text file;
	uint32_t line;
	buf_printf(out, "#%u 0x%llx ", i, (unsigned long long)f->live);
	buf_add(out, f->where.s, f->where.len);
	if (f->has_va && ses_debug_source(s, f->va, &file, &line)) {
		buf_add_str(out, " (");
		ops_escape(out, file.s, file.len);
		buf_printf(out, ":%u)", line);
	}
	buf_add_ch(out, '\n');
}

static struct err *do_backtrace(struct command_call *c)
{
	struct arena a = {0};
	struct ses_debug_frame *f;
	uint32_t cnt;
	if (c->s->d->state != DEBUG_STOPPED)
		return err_fix(err_new(ERR_INVALID, "no process is stopped here"), "run starts one");
	struct err *e = ses_debug_frames(c->s, &a, &f, &cnt);
	for (uint32_t i = 0; !e && i < cnt; i++)
		put_frame(c->s, &f[i], i, c->out);
	arena_fini(&a);
	return e;
}

enum { FRAME_N, FRAME_UP, FRAME_DOWN };

/* frame [N], up [N], down [N] */
static struct err *do_frame(struct command_call *c)
{
	struct ses_debug *s = c->s;
	char *word = next_word(c);
	uint64_t n = c->arg == FRAME_N ? s->frame_idx : 1;
	struct err *e = *word ? number_of(word, &n) : NULL;
	if (!e && s->d->state != DEBUG_STOPPED)
		e = err_fix(err_new(ERR_INVALID, "no process is stopped here"), "run starts one");
	if (!e)
		e = ses_debug_unwound(s);
	if (e)
		return e;
	n = c->arg == FRAME_UP ? s->frame_idx + MIN(n, (uint64_t)SES_DEBUG_FRAMES) : c->arg == FRAME_DOWN ? s->frame_idx - n : n;
	if (n >= s->frame_cnt)
		return err_new(ERR_NOT_FOUND, c->arg == FRAME_DOWN ? "this is the innermost frame" : "there are %zu frames", s->frame_cnt);
	s->frame_idx = (size_t)n;
	s->shown_what = 0;
	struct arena a = {0};
	struct ses_debug_frame *f;
	uint32_t cnt;
	e = ses_debug_frames(s, &a, &f, &cnt);
	if (!e) {
		put_frame(s, &f[n], (unsigned)n, c->out);
		ses_debug_put_code(s, f[n].live, 1, c->out);
		s->shown_what = 0;
	}
	arena_fini(&a);
	return e;
}

static struct err *do_threads(struct command_call *c)
{
	struct debug *d = c->s->d;
	struct err *e = debug_threads(d);
	for (size_t i = 0; !e && i < d->threads.cnt; i++) {
		const struct debug_thread *t = &d->threads.data[i];
		buf_printf(c->out, "%c ", strcmp(t->id, d->current) ? ' ' : '*');
		ops_escape(c->out, t->id, strlen(t->id));
		buf_add_ch(c->out, ' ');
		ops_escape(c->out, t->name, strlen(t->name));
		if (t->has_pc) {
			buf_printf(c->out, " 0x%llx ", (unsigned long long)t->pc);
			ses_debug_put_where(c->s, t->pc, c->out);
		}
		buf_add_ch(c->out, '\n');
	}
	return e;
}

static struct err *do_thread(struct command_call *c)
{
	char *id = next_word(c);
	if (!*id)
		return do_threads(c);
	struct err *e = debug_thread_pick(c->s->d, id);
	c->s->has_frames = false;
	c->s->frame_idx = 0;
	return say_stop(c, e ? e : debug_look(c->s->d));
}

/* The image list of LLDB: where each object lies, and where its file is. */
static struct err *do_images(struct command_call *c)
{
	struct ses_debug *s = c->s;
	if (s->d->state != DEBUG_STOPPED)
		return err_fix(err_new(ERR_INVALID, "no process is stopped here"), "run starts one");
	struct err *e = ses_debug_objects(s);
	if (e)
		return e;
	unsigned n = 0;
	if (s->sn && s->has_slide) {
		struct arena a = {0};
		struct ses_info info;
		e = ses_info(s->sn, &a, &info);
		if (!e) {
			buf_printf(c->out, "[%u] 0x%llx ", n++, (unsigned long long)(info.base + s->slide));
			const char *path = s->remote_path ? s->remote_path : ses_path(s->ses);
			ops_escape(c->out, path, strlen(path));
			if (info.build_id.len)
				buf_printf(c->out, " %.*s", (int)info.build_id.len, info.build_id.s);
			buf_add_ch(c->out, '\n');
		}
		arena_fini(&a);
	}
	for (size_t i = 0; !e && i < s->d->modules.cnt; i++) {
		const struct debug_module *m = &s->d->modules.data[i];
		buf_printf(c->out, "[%u] 0x%llx ", n++, (unsigned long long)m->base);
		ops_escape(c->out, *m->name ? m->name : "(no name)", strlen(*m->name ? m->name : "(no name)"));
		buf_add_ch(c->out, '\n');
	}
	return e;
}

static struct err *do_counts(struct command_call *c)
{
	uint64_t packets, turns;
	ses_debug_counts(c->s, &packets, &turns);
	buf_printf(c->out, "%llu packets, %llu round trips\n", (unsigned long long)packets, (unsigned long long)turns);
	return NULL;
}

static struct err *do_help(struct command_call *c);

static const struct command {
	const char *name, *alias;
	struct err *(*run)(struct command_call *c);
	int arg;
	bool is_repeated;              /* by an empty line */
	bool is_moving;                /* a process that is there */
	const char *form, *help;
} commands[] = {
	{"help", "h", do_help, 0, false, false, "", "this list"},
	{"run", "r", do_run, 0, false, false, "[WORD...]", "start the program (with these words), or let one that is there go on"},
	{"start", NULL, do_start, 0, false, false, "[WORD...]", "start it and stop at main"},
	{"attach", NULL, do_attach, 0, false, false, "PID", "take a process of the server's machine"},
	{"continue", "c", do_continue, 0, true, true, "[N]", "go on; pass this breakpoint N-1 times"},
	{"step", "s", do_step, STEP_INTO_SOURCE, true, true, "[N]", "to the next line of the source, else of the C, into calls"},
	{"next", "n", do_step, STEP_OVER_SOURCE, true, true, "[N]", "the same, over calls"},
	{"stepi", "si", do_step, STEP_INTO_INSN, true, true, "[N]", "one instruction"},
	{"nexti", "ni", do_step, STEP_OVER_INSN, true, true, "[N]", "one instruction, over calls"},
	{"finish", "out", do_out, 0, true, true, "", "until the function returns"},
	{"until", "u", do_until, 0, false, true, "PLACE", "until it is there"},
	{"break", "b", do_break, BREAK_PLAIN, false, false, "PLACE [if CONDITION]",
	 "stop at NAME, ADDR, FUNC:LINE, FILE:LINE, FUNC:cLINE (of the C)"},
	{"tbreak", "tb", do_break, BREAK_TEMP, false, false, "PLACE [if CONDITION]", "the same, once"},
	{"hbreak", NULL, do_break, BREAK_HARD, false, false, "PLACE [if CONDITION]", "the same, by the processor"},
	{"watch", NULL, do_watch, DEBUG_WATCH_WRITE, false, false, "PLACE [BYTES]", "stop when memory is written"},
	{"rwatch", NULL, do_watch, DEBUG_WATCH_READ, false, false, "PLACE [BYTES]", "stop when it is read"},
	{"awatch", NULL, do_watch, DEBUG_WATCH_ACCESS, false, false, "PLACE [BYTES]", "stop at both"},
	{"breakpoints", "bl", do_breaks, 0, false, false, "", "list them"},
	{"delete", "d", do_delete, 0, false, false, "[N...]", "take breakpoints away, without a number all"},
	{"enable", NULL, do_enable, 1, false, false, "N", "a breakpoint stops again"},
	{"disable", NULL, do_enable, 0, false, false, "N", "it does not"},
	{"registers", "reg", do_registers, 0, false, false, "[all|NAME...]", "of the thread"},
	{"set", NULL, do_set, 0, false, false, "REGISTER=VALUE", "write a register"},
	{"memory", "x", do_memory, 1, true, false, "[PLACE [BYTES]]", "bytes; again: the next ones"},
	{"write", NULL, do_write, 0, false, false, "PLACE HEXBYTES", "write memory"},
	{"disassemble", "dis", do_code, 2, true, false, "[PLACE [N]]", "instructions, named as in the database"},
	{"print", "p", do_print, 0, false, false, "EXPRESSION", "$rax + 8, *$rsp, u32(counter) == 3"},
	{"backtrace", "bt", do_backtrace, 0, false, false, "", "who called"},
	{"frame", "f", do_frame, FRAME_N, false, false, "[N]", "look at this one of the callers"},
	{"up", NULL, do_frame, FRAME_UP, false, false, "[N]", "at the caller of this one"},
	{"down", NULL, do_frame, FRAME_DOWN, false, false, "[N]", "at what it called"},
	{"threads", NULL, do_threads, 0, false, false, "", "list them"},
	{"thread", "t", do_thread, 0, false, false, "ID", "look at this one"},
	{"images", "image", do_images, 0, false, false, "[list]", "what is loaded where"},
	{"signal", NULL, do_signal, 0, false, true, "0|NUMBER|NAME", "go on with this signal in place of the one that stopped it"},
	{"handle", NULL, do_handle, 0, false, false, "[SIGNAL stop|pass]", "which signals stop it"},
	{"record", NULL, do_record, 0, false, false, "FILE [STEPS]|off", "step from here on, and write what each step did there"},
	{"status", NULL, do_status, 0, false, false, "", "why it stands still, and where"},
	{"counts", NULL, do_counts, 0, false, false, "", "what was asked of the server so far"},
	{"kill", "k", do_kill, 0, false, false, "", "end the process"},
	{"detach", NULL, do_detach, 0, false, false, "", "let it go on without us"},
	{"quit", "q", do_quit, 0, false, false, "", "end; a process that was started here is killed, another one let go"},
};

static struct err *do_help(struct command_call *c)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		const struct command *m = &commands[i];
		char name[64];
		snprintf(name, sizeof(name), "%s%s%s %s", m->name, m->alias ? ", " : "", m->alias ? m->alias : "", m->form);
		buf_printf(c->out, "%-36s %s\n", name, m->help);
	}
	return NULL;
}

/* By name or alias, else by the only one that begins so. */
static const struct command *find_command(const char *word)
{
	const struct command *found = NULL;
	size_t len = strlen(word), cnt = 0;
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		if (!strcmp(commands[i].name, word) || (commands[i].alias && !strcmp(commands[i].alias, word)))
			return &commands[i];
		if (!strncmp(commands[i].name, word, len)) {
			found = &commands[i];
			cnt++;
		}
	}
	return cnt == 1 ? found : NULL;
}

struct err *ses_debug_command(struct ses_debug *s, const char *line, struct buf *out, bool *ret_quit)
{
	*ret_quit = false;
	while (isspace((unsigned char)*line))
		line++;
	char *copy = strdup(*line || !s->last_line ? line : s->last_line);
	if (!copy)
		return &err_nomem;
	struct command_call c = {.s = s, .rest = copy, .out = out};
	char *word = next_word(&c);
	const struct command *m = find_command(word);
	struct err *e = NULL;
	char *again = NULL;
	/* What was asked for before there was a process begins where it stands first, and goes on. */
	if (m && m->is_moving)
		e = ses_debug_log_wanted(s);
	if (m && !e) {
		/* Only the command: another dump shows what comes next. */
		again = m->is_repeated ? strdup(m->name) : NULL;
		c.arg = m->arg;
		e = m->run(&c);
	} else if (*word && !e) {
		e = err_fix(err_new(ERR_INVALID, "%s: no command, or several begin so", word), "help lists them");
	}
	if (*line) {
		free(s->last_line);
		s->last_line = take_ptr(again);
	}
	free(again);
	free(copy);
	*ret_quit = c.is_quit;
	if (out->failed && !e)
		e = &err_nomem;
	return e;
}

bool ses_debug_complete(struct ses_debug *s, const char *line, unsigned i, char *out, size_t cap)
{
	const char *space = strrchr(line, ' '), *word = space ? space + 1 : line;
	size_t len = strlen(word);
	unsigned n = 0;
	for (size_t k = 0; !space && k < ARRAY_LEN(commands); k++)
		if (!strncmp(commands[k].name, word, len) && n++ == i) {
			snprintf(out, cap, "%s", commands[k].name);
			return true;
		}
	if (!space || !s->sn || !len)
		return false;
	/* Names of functions, and registers. */
	struct arena a = {0};
	char glob[280];
	snprintf(glob, sizeof(glob), "%.250s*", word);
	struct ses_call call = ses_debug_call(s);
	struct ses_page page = {.filter = glob, .offset = i, .limit = 1};
	struct ses_func *f;
	struct err *e = ses_functions(s->sn, &call, &page, &a, &f);
	bool has = !e && page.cnt;
	if (has)
		snprintf(out, cap, "%.*s", (int)f[0].name.len, f[0].name.s);
	err_free(e);
	arena_fini(&a);
	return has;
}
