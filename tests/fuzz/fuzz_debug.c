/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What debug servers say: 'r' a target description, further files of it behind NULs; 'l' a list of libraries; 't' a stop reply; 'j' threads as
 * JSON. Whatever it is, registers lie within their packet and within each other's room, a stop is one or an error, and the threads are those
 * that there were, with names that end.
 */
#include "fuzz.h"

#include "live/debug/debug.h"
#include "live/debug/debug_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct files { const char *at, *end; };

static struct err *next_file(void *ctx, const char *name, struct buf *out)
{
	struct files *f = ctx;
	(void)name;
	const char *nul = memchr(f->at, 0, (size_t)(f->end - f->at));
	if (!nul)
		return err_new(ERR_NOT_FOUND, "no more files");
	buf_add(out, f->at, (size_t)(nul - f->at));
	f->at = nul + 1;
	return NULL;
}

static void check_regs(const struct debug_regs *r)
{
	if (!r->cnt || r->cnt > DEBUG_REG_MAX || r->pc < 0 || r->pc >= (int)r->cnt || r->bytes > DEBUG_REG_MAX * DEBUG_REG_BYTES)
		abort();
	for (uint32_t i = 0; i < r->cnt; i++) {
		const struct debug_reg *g = &r->list[i];
		if (!g->len || g->len > DEBUG_REG_BYTES || g->off + g->len > r->bytes || !memchr(g->name, 0, sizeof(g->name)))
			abort();
		if (debug_regs_of_num(r, g->num) != (int)i || debug_regs_find(r, g->name) < 0)
			abort();
	}
}

static struct err *threads_of(struct debug *d, const char *text, size_t len)
{
	static const char *const ids[] = {"1", "p1.2a", "ffffffffffffffff", "", "p.", "2a"};
	if (!debug_regs_default("x86-64", &d->regs))
		abort();
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		struct debug_thread t = {0};
		snprintf(t.id, sizeof(t.id), "%s", ids[i]);
		if (!VEC_PUSH(&d->threads, t))
			return &err_nomem;
	}
	bool is_list = debug_take_threads_info(d, gdb_span_make(text, len));
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		const struct debug_thread *t = &d->threads.data[i];
		if (d->threads.cnt != ARRAY_LEN(ids) || strcmp(t->id, ids[i]) || !memchr(t->name, 0, sizeof(t->name)))
			abort();
		if ((t->has_pc || *t->name) && !is_list)
			abort();
	}
	return is_list ? NULL : err_new(ERR_BAD_INPUT, "no list");
}

static struct err *one(char kind, const char *text, size_t len)
{
	struct debug *d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	struct err *e;
	if (kind == 'l') {
		e = debug_take_modules(d, text, len);
		if (!e && d->modules.cnt > len / 8)
			abort();
	} else if (kind == 'j') {
		e = threads_of(d, text, len);
	} else if (kind == 't') {
		if (!debug_regs_default("x86-64", &d->regs))
			abort();
		d->has_regs = true;
		e = debug_values_init(d);
		if (!e)
			e = debug_take_stop(d, gdb_span_make(text, len));
		if (!e && (d->state == DEBUG_NONE || d->state == DEBUG_DETACHED ||
			   !memchr(d->current, 0, sizeof(d->current)) || d->threads.cnt > len))
			abort();
	} else {
		struct files f = {text, text + len};
		const char *nul = memchr(text, 0, len);
		f.at = nul ? nul + 1 : f.end;
		e = debug_regs_read(text, nul ? (size_t)(nul - text) : len, next_file, &f, &d->regs);
		if (!e)
			check_regs(&d->regs);
	}
	d->link.wake_fd = -1;
	debug_close(d);
	return e;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	if (!len)
		return 0;
	char *text = malloc(len); /* of its own, so that a read behind it is seen */
	if (!text)
		return 0;
	memcpy(text, bytes + 1, len - 1);
	struct err *e = one((char)bytes[0], text, len - 1);
	if (e)
		fuzz_rejected++;
	else
		fuzz_accepted++;
	err_free(e);
	free(text);
	return 0;
}
