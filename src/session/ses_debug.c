/* SPDX-License-Identifier: Apache-2.0 */
/* A debugger and a database: how it begins and ends, and what follows from each stop. */
#include "session/ses_debug.h"
#include "session/ses_debug_int.h"

#include "live/reach/reach_url.h"

#include <stdlib.h>
#include <string.h>

static struct err *open_link(struct ses_debug *s, const struct ses_debug_opts *o, const struct reach_wait *wait, struct reach_link *ret,
			     char **ret_path)
{
	if (!o->where) {
		struct err *e = plat_stub_start(&(struct plat_opts){.allow_run = true, .own_stdio = !o->is_apart}, &s->stub);
		int fd = s->stub.fd;
		s->stub.fd = -1;
		return e ? e : reach_link_fd(fd, ret);
	}
	_cleanup_url_ struct reach_url u = {0};
	struct err *e = reach_url_parse(o->where, false, &u);
	if (!e && u.scheme == REACH_TCP && !u.port)
		e = err_fix(err_new(ERR_INVALID, "%s: no port", o->where), "connect://HOST:PORT");
	if (!e && !o->ses && *u.path)
		*ret_path = strdup(u.path);
	if (!e && !o->ses && *u.path && !*ret_path)
		e = &err_nomem;
	/* Whoever may log in there may run programs there. */
	return e ? e : reach_link_open(&u, wait, "exec scry platform --stdio --allow-run", NULL, ret);
}

static bool accept_stop(void *ctx, const struct debug_break *k)
{
	struct ses_debug *s = ctx;
	uint64_t v = 1;
	if (k->id == s->load_break) {
		ses_debug_loaded(s);
		return false;
	}
	struct debug_want *w = ses_debug_want_of(s, k->id);
	if (!w || !w->cond)
		return true;
	/* A condition that cannot be judged stops: who set it must hear of that. */
	struct err *e = ses_debug_eval(s, w->cond, &v);
	w->is_unjudged = e;
	bool is_fine = e || v;
	err_free(e);
	return is_fine;
}

/* The database, what `run` starts. */
static struct err *take_program(struct ses_debug *s, const struct ses_debug_opts *o)
{
	if (s->ses) {
		s->sn = ses_snap_get(s->ses);
		s->own_path = realpath(ses_local_path(s->ses), NULL);
		if (!s->d->arch)
			s->d->arch = s->sn->arch;
		struct err *e = ses_debug_send_program(s);
		if (e)
			return e;
	}
	const char *program = s->remote_path ? s->remote_path : s->own_path;
	size_t argc = o->argc ? o->argc : program ? 1 : 0;
	s->argv = calloc(argc + 1, sizeof(*s->argv));
	if (!s->argv)
		return &err_nomem;
	for (; s->argc < argc; s->argc++) {
		s->argv[s->argc] = strdup(o->argc ? o->argv[s->argc] : program);
		if (!s->argv[s->argc])
			return &err_nomem;
	}
	return NULL;
}

/* The processor by the server's word, where no program says it. */
static void take_arch(struct ses_debug *s)
{
	const char *name = s->d->regs.arch;
	enum arch_id id = !strcmp(name, "i386:x86-64") ? ARCH_ID_X86_64 : !strcmp(name, "i386") ? ARCH_ID_I386 : ARCH_ID_NONE;
	id = !strcmp(name, "aarch64") ? ARCH_ID_A64 : id;
	if (!s->d->arch && s->d->has_regs && id != ARCH_ID_NONE)
		err_free(arch_get(id, &s->d->arch));
}

static struct err *begin(struct ses_debug *s, const struct ses_debug_opts *o)
{
	struct reach_wait wait = {.stall_ms = o->silence_ms ? o->silence_ms : 10000, .cancel = o->cancel};
	s->opts = (struct debug_opts){.wait = wait, .output = o->output, .output_ctx = o->ctx};
	_cleanup_free_ char *path = NULL;
	struct ses_snap *sn = o->ses ? ses_snap_get(o->ses) : NULL;
	s->opts.arch = sn ? sn->arch : NULL;
	if (!s->opts.arch && !o->where)
		err_free(arch_get(ARCH_ID_X86_64, &s->opts.arch));
	struct err *e = open_link(s, o, &wait, &s->opts.link, &path);
	if (!e)
		e = debug_open(&s->opts, &s->d);
	if (!e)
		e = ses_debug_hand_over(s);
	if (sn)
		ses_snap_put(sn);
	if (!e && !s->ses && o->where)
		e = ses_debug_fetch_program(s, path, o->no_store);
	if (!e)
		e = take_program(s, o);
	if (e)
		return e;
	take_arch(s);
	s->d->accepts = accept_stop;
	s->d->accepts_ctx = s;
	return ses_debug_after(s);
}

struct err *ses_debug_open(const struct ses_debug_opts *o, struct ses_debug **ret)
{
	struct ses_debug *s = calloc(1, sizeof(*s));
	if (!s)
		return &err_nomem;
	s->ses = o->ses;
	s->status = -1;
	s->stub = (struct plat_stub){.fd = -1};
	s->log_fd = -1;
	s->log_wanted = o->log ? strdup(o->log) : NULL;
	s->where = o->where ? strdup(o->where) : NULL;
	s->remote = (struct ses_remote_opts){.cancel = o->cancel, .stall_ms = o->silence_ms, .no_store = o->no_store, .progress = o->progress,
					     .ctx = o->ctx};
	struct err *e = (o->where && !s->where) || (o->log && !s->log_wanted) ? &err_nomem : begin(s, o);
	if (e) {
		ses_debug_close(s);
		return o->where ? err_prefix(e, "%s", o->where) : e;
	}
	*ret = s;
	return NULL;
}

void ses_debug_close(struct ses_debug *s)
{
	if (!s)
		return;
	if (s->d)
		err_free(ses_debug_log_end(s));
	free(s->log_wanted);
	if (s->d && !s->d->link.lost && s->d->state == DEBUG_STOPPED) {
		struct err *e = s->is_ours ? debug_kill(s->d) : debug_detach(s->d);
		err_free(e);
	}
	debug_close(s->d);
	debug_close(s->platform);
	plat_stub_stop(&s->stub);
	for (size_t i = 0; i < s->objects.cnt; i++)
		ses_debug_object_fini(&s->objects.data[i]);
	VEC_FREE(&s->objects);
	ses_debug_object_fini(&s->own);
	ses_debug_wants_fini(s);
	for (size_t i = 0; i < s->argc; i++)
		free(s->argv[i]);
	free(s->argv);
	free(s->own_path);
	free(s->last_line);
	if (s->sn)
		ses_snap_put(s->sn);
	ses_close(s->own_ses);
	for (size_t i = 0; i < s->got.cnt; i++)
		ses_remote_fini(&s->got.data[i]);
	VEC_FREE(&s->got);
	free(s->where);
	free(s->remote_path);
	free(s);
}

void ses_debug_interrupt(struct ses_debug *s)
{
	debug_interrupt(s->d);
}

void ses_debug_counts(const struct ses_debug *s, uint64_t *ret_packets, uint64_t *ret_turns)
{
	*ret_packets = s->d->link.packet_cnt;
	*ret_turns = reach_turn_cnt(s->d->link.conn);
}

int ses_debug_status(const struct ses_debug *s)
{
	return s->status;
}

enum ses_debug_state ses_debug_state(const struct ses_debug *s)
{
	return s->d->state == DEBUG_STOPPED ? SES_DEBUG_STOPPED : s->d->state == DEBUG_NONE ? SES_DEBUG_NONE : SES_DEBUG_ENDED;
}

bool ses_debug_va(struct ses_debug *s, uint64_t *ret)
{
	uint64_t pc;
	return s->d->state == DEBUG_STOPPED && debug_pc(s->d, &pc) && ses_debug_to_va(s, pc, ret);
}

bool ses_debug_frame_va(struct ses_debug *s, uint64_t *ret)
{
	uint64_t pc;
	return s->d->state == DEBUG_STOPPED && ses_debug_frame_reg(s, s->d->regs.pc, &pc) && ses_debug_to_va(s, pc, ret);
}

void ses_debug_moved(struct ses_debug *s)
{
	struct debug *d = s->d;
	/* Only what is known already: what has changed is shown, not asked for. */
	for (uint32_t i = 0; i < d->regs.cnt; i++)
		s->old_known[i] = d->state == DEBUG_STOPPED && d->valid[i] && debug_reg(d, (int)i, &s->old_regs[i]);
	s->shown_what = 0;
}

/* What the loader added to the database's addresses. */
static struct err *find_slide(struct ses_debug *s)
{
	struct arena a = {0};
	struct ses_info info = {0};
	struct err *e = s->sn ? ses_info(s->sn, &a, &info) : NULL;
	if (!e && s->d->entry_va && info.has_entry) {
		s->slide = s->d->entry_va - info.entry;
		/* A page of another program, or of an emulator, is no answer. */
		s->has_slide = s->slide % DEBUG_PAGE == 0;
	}
	if (!e && s->sn && !s->has_slide && !s->d->entry_va) {
		s->slide = 0;
		s->has_slide = true;
	}
	arena_fini(&a);
	return e;
}

/* Once it is known where the program lies, or will be known no better. */
static struct err *find_place(struct ses_debug *s)
{
	unsigned left;
	struct err *e = s->d->entry_va ? NULL : debug_modules(s->d);
	if (!e)
		e = find_slide(s);
	return e ? e : ses_debug_place_all(s, &left);
}

static struct err *take_end(struct ses_debug *s)
{
	ses_debug_unplace_all(s);
	s->status = s->d->state == DEBUG_EXITED ? s->d->stop.status : 128 + s->d->stop.signal;
	s->has_slide = false;
	return NULL;
}

/* Another program took the place of the one that ran, or the same one began anew. */
static struct err *take_exec(struct ses_debug *s)
{
	struct err *e = debug_learn(s->d);
	ses_debug_unplace_all(s);
	for (size_t i = 0; i < s->objects.cnt; i++)
		ses_debug_object_fini(&s->objects.data[i]);
	s->objects.cnt = 0;
	s->has_slide = false;
	if (!e)
		e = find_slide(s);
	s->is_other = s->has_slide && !ses_debug_is_own(s);
	s->has_slide &= !s->is_other;
	unsigned left;
	return e || s->is_other ? e : ses_debug_place_all(s, &left);
}

struct err *ses_debug_after(struct ses_debug *s)
{
	struct debug *d = s->d;
	s->has_frames = s->has_objects = false;
	s->frame_idx = 0;
	if (d->state == DEBUG_EXITED || d->state == DEBUG_KILLED)
		return take_end(s);
	if (d->state != DEBUG_STOPPED)
		return NULL;
	struct err *e = strcmp(d->stop.reason, "exec") != 0 ? NULL : take_exec(s);
	if (!e)
		e = debug_look(d);
	if (!e && !s->has_slide && !s->is_other)
		e = find_place(s);
	struct debug_want *w = d->stop.break_id ? ses_debug_want_of(s, d->stop.break_id) : NULL;
	if (!e && w && d->stop.has_watch) {
		w->was = w->is;
		w->is = ses_debug_watched(s, w);
	}
	if (!e && w && w->is_temp)
		e = ses_debug_unwant(s, w->id);
	return e;
}

/* Breakpoints in libraries wait until those are loaded, which they are when the program proper begins. */
static struct err *place_late(struct ses_debug *s)
{
	unsigned left;
	int hit;
	struct err *e = ses_debug_place_all(s, &left);
	if (e || !left || !s->d->entry_va)
		return e;
	e = debug_run_to(s->d, &(struct debug_place){.va = s->d->entry_va}, 1, &hit);
	s->has_objects = false;
	if (!e && hit == 0) {
		ses_debug_moved(s);
		e = ses_debug_place_all(s, &left);
	}
	return e;
}

struct err *ses_debug_launch(struct ses_debug *s, const char *const *argv, size_t argc)
{
	if (!argc)
		return err_fix(err_new(ERR_INVALID, "no program to run was said"), "run PROGRAM WORDS...");
	s->status = -1;
	ses_debug_moved(s);
	struct err *e = ses_debug_again(s);
	if (!e)
		e = debug_launch(s->d, argv, argc);
	s->is_ours |= !e;
	s->has_frames = s->has_objects = s->has_slide = s->is_other = false;
	/* Nobody looks at it here: it goes on at once. */
	if (!e && s->d->state == DEBUG_STOPPED)
		e = find_place(s);
	return !e && s->d->state == DEBUG_STOPPED ? place_late(s) : e;
}

static struct err *log_from_entry(struct ses_debug *s)
{
	int hit = 0;
	uint64_t pc;
	bool is_there = !s->d->entry_va || (debug_pc(s->d, &pc) && pc == s->d->entry_va);
	struct err *e = is_there ? NULL : debug_run_to(s->d, &(struct debug_place){.va = s->d->entry_va}, 1, &hit);
	return e || hit ? e : ses_debug_log_wanted(s);
}

struct err *ses_debug_run(struct ses_debug *s)
{
	struct err *e = NULL;
	if (s->d->state != DEBUG_STOPPED)
		e = ses_debug_launch(s, (const char *const *)s->argv, s->argc);
	else if (s->status < 0 && s->wants.cnt)
		e = place_late(s);
	/* With nothing that stops it its log begins where the program proper does. */
	if (!e && s->log_wanted && !s->wants.cnt && s->d->state == DEBUG_STOPPED)
		e = log_from_entry(s);
	if (e || s->d->state != DEBUG_STOPPED)
		return e ? e : ses_debug_after(s);
	ses_debug_moved(s);
	e = debug_continue(s->d, -1);
	return e ? e : ses_debug_after(s);
}

/* --- for views --- */

struct err *ses_debug_regs(struct ses_debug *s, struct arena *a, struct ses_debug_reg **ret, uint32_t *ret_cnt)
{
	const struct debug_regs *r = &s->d->regs;
	*ret_cnt = 0;
	*ret = ARENA_ARRAY(a, struct ses_debug_reg, r->cnt);
	if (!*ret)
		return &err_nomem;
	for (uint32_t i = 0; i < r->cnt; i++) {
		if (!r->list[i].is_general)
			continue;
		struct ses_debug_reg *g = &(*ret)[(*ret_cnt)++];
		g->name = r->list[i].name;
		g->is_known = debug_reg(s->d, (int)i, &g->value);
		g->has_changed = g->is_known && s->old_known[i] && s->old_regs[i] != g->value;
	}
	return NULL;
}

struct err *ses_debug_frames(struct ses_debug *s, struct arena *a, struct ses_debug_frame **ret, uint32_t *ret_cnt)
{
	struct err *e = ses_debug_unwound(s);
	*ret_cnt = 0;
	if (e)
		return e;
	*ret = ARENA_ARRAY(a, struct ses_debug_frame, s->frame_cnt + 1);
	if (!*ret)
		return &err_nomem;
	for (size_t i = 0; i < s->frame_cnt; i++) {
		struct ses_debug_frame *f = &(*ret)[i];
		_cleanup_buf_ struct buf where = {0};
		f->live = s->frames[i].pc;
		/* What called is the instruction before the return address. */
		f->has_va = ses_debug_to_va(s, f->live - (i > 0), &f->va);
		ses_debug_put_where(s, f->live, &where);
		char *copy = arena_strndup(a, where.data ? where.data : "", where.len);
		f->where = ses_text_of(copy, where.len);
	}
	*ret_cnt = (uint32_t)s->frame_cnt;
	return NULL;
}

struct err *ses_debug_stack(struct ses_debug *s, struct arena *a, uint32_t cnt, struct ses_debug_word **ret)
{
	uint64_t sp = 0, width = s->d->arch && s->d->arch->bits == 32 ? 4 : 8;
	*ret = ARENA_ARRAY(a, struct ses_debug_word, cnt + 1);
	if (!*ret)
		return &err_nomem;
	bool has_sp = debug_reg(s->d, s->d->regs.sp, &sp);
	for (uint32_t i = 0; i < cnt; i++) {
		struct ses_debug_word *w = &(*ret)[i];
		_cleanup_buf_ struct buf where = {0};
		w->live = sp + i * width;
		w->is_known = has_sp && debug_word(s->d, w->live, &w->value);
		if (w->is_known)
			ses_debug_put_where(s, w->value, &where);
		char *copy = arena_strndup(a, where.data ? where.data : "", where.len);
		w->where = ses_text_of(copy, where.len);
	}
	return NULL;
}

struct err *ses_debug_bytes(struct ses_debug *s, uint64_t va, uint32_t len, uint8_t *out, bool *known)
{
	memset(known, 0, len * sizeof(*known));
	if (!s->has_slide || s->d->state != DEBUG_STOPPED)
		return NULL;
	for (uint32_t off = 0; off < len;) {
		uint32_t n = MIN(len - off, DEBUG_PAGE - (uint32_t)((va + off + s->slide) % DEBUG_PAGE));
		size_t got;
		struct err *e = debug_mem(s->d, va + off + s->slide, out + off, n, &got);
		if (e)
			return e;
		memset(known + off, 1, got);
		off += n;
	}
	return NULL;
}
