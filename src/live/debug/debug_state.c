/* SPDX-License-Identifier: Apache-2.0 */
/* A stopped target: registers, threads, the first look after a stop. */
#include "live/debug/debug_int.h"

#include <stdio.h>

enum { XML_MAX = 1 << 20, AUXV_MAX = 64 << 10, XFER_TRIPS = 4096, THREADS_LOOKED = 3 };

size_t debug_ask_xfer(const struct debug *d, struct debug_batch *b, const char *object, const char *annex, size_t off)
{
	size_t chunk = d->features.packet_len > 1024 ? MIN((size_t)d->features.packet_len - 16, (size_t)64 << 10) : 1000;
	return debug_ask(b, "qXfer:%s:read:%s:%zx,%zx", object, annex, off, chunk);
}

/* One piece. *ret_more: others follow. */
static struct err *take_piece(struct gdb_span s, const char *object, size_t max, struct buf *out, bool *ret_more)
{
	*ret_more = false;
	if (!s.len)
		return NULL;
	/* A reply of no bytes that says that more follows would never end. */
	if ((s.s[0] != 'm' && s.s[0] != 'l') || (s.s[0] == 'm' && s.len == 1))
		return debug_refused(s, object);
	if (out->len + s.len > max)
		return err_new(ERR_BUDGET, "%s of the debug server is longer than %zu KB", object, max >> 10);
	buf_add(out, s.s + 1, s.len - 1);
	*ret_more = s.s[0] == 'm';
	return out->failed ? &err_nomem : NULL;
}

struct err *debug_take_xfer(struct debug *d, struct gdb_span first, const char *object, const char *annex, size_t max, struct buf *out)
{
	bool more;
	struct err *e = take_piece(first, object, max, out, &more);
	for (int i = 1; !e && more; i++) {
		_cleanup_batch_ struct debug_batch b = {0};
		if (i == XFER_TRIPS)
			return err_new(ERR_BUDGET, "%s of the debug server comes in too many pieces", object);
		size_t at = debug_ask_xfer(d, &b, object, annex, out->len);
		e = debug_link_run(&d->link, &b);
		if (!e)
			e = take_piece(debug_reply(&b, at), object, max, out, &more);
	}
	return e;
}

struct err *debug_xfer(struct debug *d, const char *object, const char *annex, size_t max, struct buf *out)
{
	_cleanup_batch_ struct debug_batch b = {0};
	size_t at = debug_ask_xfer(d, &b, object, annex, 0);
	struct err *e = debug_link_run(&d->link, &b);
	return e ? e : debug_take_xfer(d, debug_reply(&b, at), object, annex, max, out);
}

static struct err *fetch_xml(void *ctx, const char *name, struct buf *out)
{
	for (const char *s = name; *s; s++)
		if (*s == ':' || *s == '#' || *s == '$' || *s == '}' || *s == '*' || (uint8_t)*s < ' ')
			return err_new(ERR_BAD_INPUT, "a part of the target description has a strange name");
	return debug_xfer(ctx, "features", name, XML_MAX, out);
}

void debug_ask_learning(struct debug *d, struct debug_batch *b, struct debug_learning *ret)
{
	*ret = (struct debug_learning){.is_asked = true, .x = SIZE_MAX, .xml = SIZE_MAX, .auxv = SIZE_MAX};
	if (!d->has_regs) {
		ret->x = debug_ask(b, "x0,0");
		if (d->features.has_target_xml)
			ret->xml = debug_ask_xfer(d, b, "features", "target.xml", 0);
	}
	debug_ask_passed(d, b);
	if (d->features.has_auxv)
		ret->auxv = debug_ask_xfer(d, b, "auxv", "", 0);
}

static struct err *take_regs(struct debug *d, const struct debug_batch *b, const struct debug_learning *l)
{
	struct err *e = NULL;
	_cleanup_buf_ struct buf xml = {0};
	d->x_has_b = gdb_span_is(debug_reply(b, l->x), "b");
	d->has_x = d->x_has_b || debug_reply_is_ok(b, l->x);
	if (l->xml != SIZE_MAX)
		e = debug_take_xfer(d, debug_reply(b, l->xml), "features", "target.xml", XML_MAX, &xml);
	if (e)
		return e;
	if (xml.len)
		e = debug_regs_read(xml.data, xml.len, fetch_xml, d, &d->regs);
	else if (!debug_regs_default(d->arch ? d->arch->name : "", &d->regs))
		e = err_fix(err_new(ERR_UNSUPPORTED, "the debug server does not describe the target's registers"),
			    "say the program that runs there: scry debug connect://HOST:PORT FILE");
	d->has_regs = !e;
	return e;
}

struct err *debug_take_learning(struct debug *d, const struct debug_batch *b, const struct debug_learning *l)
{
	struct err *e = l->x == SIZE_MAX ? NULL : take_regs(d, b, l);
	_cleanup_buf_ struct buf text = {0};
	d->is_learned = !e;
	if (e || l->auxv == SIZE_MAX)
		return e;
	/* A target may have none. */
	e = debug_take_xfer(d, debug_reply(b, l->auxv), "auxv", "", AUXV_MAX, &text);
	if (!e)
		debug_take_auxv(d, &text);
	err_free(e);
	return NULL;
}

struct err *debug_learn(struct debug *d)
{
	_cleanup_batch_ struct debug_batch b = {0};
	struct debug_learning l;
	if (d->is_learned)
		return NULL;
	debug_ask_learning(d, &b, &l);
	struct err *e = debug_link_run(&d->link, &b);
	return e ? e : debug_take_learning(d, &b, &l);
}

size_t debug_ask_values(struct debug *d, struct debug_batch *b)
{
	if (d->has_suffix)
		return debug_ask(b, "g;thread:%s;", d->current);
	if (d->current[0])
		debug_ask(b, "Hg%s", d->current);
	return debug_ask(b, "g");
}

bool debug_take_values(struct debug *d, struct gdb_span reply)
{
	if (reply.len < 2 || reply.s[0] == 'E')
		return false;
	for (uint32_t i = 0; i < d->regs.cnt; i++) {
		const struct debug_reg *r = &d->regs.list[i];
		if (2 * (size_t)(r->off + r->len) > reply.len)
			continue;
		bool is_fine = true;
		for (uint32_t k = 0; k < r->len && is_fine; k++) {
			int hi = gdb_digit(reply.s[2 * (r->off + k)]), lo = gdb_digit(reply.s[2 * (r->off + k) + 1]);
			is_fine = hi >= 0 && lo >= 0; /* "xx": not available */
			if (is_fine)
				d->values[r->off + k] = (uint8_t)(hi << 4 | lo);
		}
		d->valid[i] = is_fine;
	}
	return true;
}

/* One request each, sent together: for servers without `g`. */
static struct err *read_one_by_one(struct debug *d)
{
	_cleanup_batch_ struct debug_batch b = {0};
	size_t first = 0;
	if (!d->has_suffix && d->current[0])
		first = debug_ask(&b, "Hg%s", d->current) + 1;
	for (uint32_t i = 0; i < d->regs.cnt; i++)
		if (d->has_suffix)
			debug_ask(&b, "p%x;thread:%s;", d->regs.list[i].num, d->current);
		else
			debug_ask(&b, "p%x", d->regs.list[i].num);
	struct err *e = debug_link_run(&d->link, &b);
	for (uint32_t i = 0; !e && i < d->regs.cnt; i++) {
		_cleanup_buf_ struct buf bytes = {0};
		const struct debug_reg *r = &d->regs.list[i];
		if (!gdb_unhex(debug_reply(&b, first + i), DEBUG_REG_BYTES, &bytes) || bytes.len != r->len)
			continue;
		memcpy(d->values + r->off, bytes.data, r->len);
		d->valid[i] = 1;
	}
	return e;
}

static struct err *read_values(struct debug *d)
{
	_cleanup_batch_ struct debug_batch b = {0};
	if (!d->has_g)
		return read_one_by_one(d);
	size_t i = debug_ask_values(d, &b);
	struct err *e = debug_link_run(&d->link, &b);
	if (e)
		return e;
	d->has_g = debug_take_values(d, debug_reply(&b, i));
	return d->has_g ? NULL : read_one_by_one(d);
}

const uint8_t *debug_reg_bytes(struct debug *d, int reg)
{
	if (d->state != DEBUG_STOPPED || reg < 0 || !d->has_regs)
		return NULL;
	if (!d->valid[reg])
		err_free(read_values(d));
	return d->valid[reg] ? d->values + d->regs.list[reg].off : NULL;
}

bool debug_reg(struct debug *d, int reg, uint64_t *ret)
{
	const uint8_t *p = debug_reg_bytes(d, reg);
	uint64_t v = 0;
	if (!p)
		return false;
	for (uint32_t i = MIN(d->regs.list[reg].len, 8u); i--;)
		v = v << 8 | p[i];
	*ret = v;
	return true;
}

/* For servers that write all registers or none, as gdbserver does. */
static struct err *write_all(struct debug *d, int reg, uint64_t value)
{
	_cleanup_batch_ struct debug_batch b = {0};
	const struct debug_reg *r = &d->regs.list[reg];
	size_t at = debug_ask_values(d, &b);
	struct err *e = debug_link_run(&d->link, &b);
	struct gdb_span s = debug_reply(&b, at);
	if (e)
		return e;
	if (s.len < 2 * (size_t)(r->off + r->len))
		return debug_refused(s, "writing registers");
	_cleanup_buf_ struct buf hex = {0};
	buf_add(&hex, s.s, s.len);
	for (uint32_t i = 0; i < r->len && !hex.failed; i++) {
		char byte[3];
		snprintf(byte, sizeof(byte), "%02x", i < 8 ? (unsigned)(value >> (8 * i) & 0xff) : 0);
		memcpy(hex.data + 2 * (r->off + i), byte, 2);
	}
	if (hex.failed)
		return &err_nomem;
	debug_batch_clear(&b);
	at = d->has_suffix ? debug_ask(&b, "G%.*s;thread:%s;", (int)hex.len, hex.data, d->current) : debug_ask(&b, "G%.*s", (int)hex.len, hex.data);
	e = debug_link_run(&d->link, &b);
	return e || debug_reply_is_ok(&b, at) ? e : debug_refused(debug_reply(&b, at), "writing registers");
}

struct err *debug_reg_write(struct debug *d, int reg, uint64_t value)
{
	DEBUG_STOPPED_ONLY(d);
	_cleanup_batch_ struct debug_batch b = {0};
	_cleanup_buf_ struct buf hex = {0};
	const struct debug_reg *r = &d->regs.list[reg];
	for (uint32_t i = 0; i < r->len; i++)
		buf_add_hex(&hex, i < 8 ? value >> (8 * i) & 0xff : 0, 2);
	if (hex.failed)
		return &err_nomem;
	if (!d->has_suffix && d->current[0])
		debug_ask(&b, "Hg%s", d->current);
	size_t i = d->has_suffix ? debug_ask(&b, "P%x=%.*s;thread:%s;", r->num, (int)hex.len, hex.data, d->current)
				 : debug_ask(&b, "P%x=%.*s", r->num, (int)hex.len, hex.data);
	struct err *e = debug_link_run(&d->link, &b);
	if (e)
		return e;
	if (!debug_reply(&b, i).len)
		e = write_all(d, reg, value);
	else if (!debug_reply_is_ok(&b, i))
		e = debug_refused(debug_reply(&b, i), "writing registers");
	if (e)
		return e;
	/* Others may be parts of it. */
	memset(d->valid, 0, DEBUG_REG_MAX);
	return NULL;
}

/* "m1a,1b": threads; "l": these were all. Nonsense ends the list, too. */
static void take_thread_list(struct debug *d, struct gdb_span s)
{
	struct gdb_span id;
	if (!gdb_skip(&s, "m")) {
		d->has_threads = true;
		return;
	}
	while (gdb_next_field(&s, ',', &id)) {
		struct debug_thread t = {0};
		if (!id.len || id.len >= DEBUG_ID_MAX)
			continue;
		memcpy(t.id, id.s, id.len);
		/* Who lists a thread twice would do so for ever. */
		for (size_t i = 0; i < d->threads.cnt; i++)
			d->has_threads |= !strcmp(d->threads.data[i].id, t.id);
		if (d->has_threads || d->threads.cnt == DEBUG_THREAD_MAX || !VEC_PUSH(&d->threads, t)) {
			d->has_threads = true;
			return;
		}
	}
}

/* gdbserver names one thread a reply: several are asked for at once. */
static void ask_threads(struct debug_batch *b, unsigned cnt, size_t *ret_first)
{
	*ret_first = debug_ask(b, "qfThreadInfo");
	for (unsigned i = 1; i < cnt; i++)
		debug_ask(b, "qsThreadInfo");
}

static void take_thread_lists(struct debug *d, const struct debug_batch *b, size_t first, unsigned cnt)
{
	d->threads.cnt = 0;
	for (unsigned i = 0; i < cnt && !d->has_threads; i++)
		take_thread_list(d, debug_reply(b, first + i));
}

static struct err *list_threads(struct debug *d)
{
	for (unsigned cnt = 8; !d->has_threads; cnt *= 4) {
		_cleanup_batch_ struct debug_batch b = {0};
		size_t first;
		ask_threads(&b, cnt, &first);
		struct err *e = debug_link_run(&d->link, &b);
		if (e)
			return e;
		take_thread_lists(d, &b, first, cnt);
		if (cnt > DEBUG_THREAD_MAX)
			d->has_threads = true;
	}
	return NULL;
}

/* A name in `T...name:` of qThreadStopInfo, the words of qThreadExtraInfo. */
static void take_thread_info(struct debug *d, struct debug_thread *t, struct gdb_span stop, struct gdb_span extra)
{
	struct gdb_span v;
	uint64_t num, pc;
	if (stop.len > 3 && stop.s[0] == 'T') {
		struct gdb_span rest = gdb_span_make(stop.s + 3, stop.len - 3), pair, key, value;
		while (gdb_next_field(&rest, ';', &pair)) {
			if (!gdb_split(pair, ':', &key, &value))
				continue;
			if (gdb_span_is(key, "name"))
				snprintf(t->name, sizeof(t->name), "%.*s", (int)MIN(value.len, (size_t)31), value.s);
			else if (gdb_is_hex(key, &num) && debug_regs_of_num(&d->regs, num) == d->regs.pc) {
				_cleanup_buf_ struct buf bytes = {0};
				pc = 0;
				if (gdb_unhex(value, 8, &bytes) && bytes.len) {
					for (size_t i = bytes.len; i--;)
						pc = pc << 8 | (uint8_t)bytes.data[i];
					t->pc = pc;
					t->has_pc = true;
				}
			}
		}
	}
	_cleanup_buf_ struct buf text = {0};
	v = extra;
	if (!t->name[0] && v.len && v.s[0] != 'E' && gdb_unhex(v, 256, &text))
		snprintf(t->name, sizeof(t->name), "%.*s", (int)MIN(text.len, (size_t)31), text.data);
}

static struct err *read_places(struct debug *d, size_t cnt)
{
	_cleanup_batch_ struct debug_batch b = {0};
	const struct debug_reg *pc = &d->regs.list[d->regs.pc];
	for (size_t i = 0; i < cnt; i++) {
		if (d->has_suffix) {
			debug_ask(&b, "g;thread:%s;", d->threads.data[i].id);
		} else {
			debug_ask(&b, "Hg%s", d->threads.data[i].id);
			debug_ask(&b, "g");
		}
	}
	struct err *e = debug_link_run(&d->link, &b);
	for (size_t i = 0; !e && i < cnt; i++) {
		struct debug_thread *t = &d->threads.data[i];
		struct gdb_span s = debug_reply(&b, d->has_suffix ? i : 2 * i + 1);
		_cleanup_buf_ struct buf bytes = {0};
		if (pc->len > 8 || s.len < 2 * (size_t)(pc->off + pc->len) || !gdb_unhex(gdb_span_make(s.s + 2 * pc->off, 2 * pc->len), 8, &bytes))
			continue;
		t->pc = 0;
		for (size_t k = bytes.len; k--;)
			t->pc = t->pc << 8 | (uint8_t)bytes.data[k];
		t->has_pc = true;
	}
	return e;
}

struct err *debug_threads(struct debug *d)
{
	DEBUG_STOPPED_ONLY(d);
	struct err *e = d->has_threads ? NULL : list_threads(d);
	_cleanup_batch_ struct debug_batch b = {0};
	/* LLDB's servers tell of all at once. */
	if (!e && d->has_suffix) {
		size_t at = debug_ask(&b, "jThreadsInfo");
		e = debug_link_run(&d->link, &b);
		if (e || (gdb_span_starts(debug_reply(&b, at), "[") && debug_take_threads_info(d, debug_reply(&b, at))))
			return e;
		debug_batch_clear(&b);
	}
	size_t cnt = MIN(d->threads.cnt, (size_t)64), each = d->has_suffix ? 2 : 3;
	for (size_t i = 0; i < cnt; i++) {
		debug_ask(&b, "qThreadStopInfo%s", d->threads.data[i].id);
		debug_ask(&b, "qThreadExtraInfo,%s", d->threads.data[i].id);
		if (!d->has_suffix)
			debug_ask(&b, "Hg%s", d->threads.data[i].id);
	}
	if (!e && cnt)
		e = debug_link_run(&d->link, &b);
	for (size_t i = 0; !e && i < cnt; i++)
		take_thread_info(d, &d->threads.data[i], debug_reply(&b, i * each), debug_reply(&b, i * each + 1));
	/* Without stop reasons of each thread the place is a register of each. */
	bool is_missing = false;
	for (size_t i = 0; !e && i < cnt; i++)
		is_missing |= !d->threads.data[i].has_pc;
	return e || !is_missing || !d->has_g ? e : read_places(d, cnt);
}

struct err *debug_thread_pick(struct debug *d, const char *id)
{
	DEBUG_STOPPED_ONLY(d);
	struct err *e = d->has_threads ? NULL : list_threads(d);
	if (e)
		return e;
	for (size_t i = 0; i < d->threads.cnt; i++)
		if (!strcmp(d->threads.data[i].id, id)) {
			memcpy(d->current, d->threads.data[i].id, sizeof(d->current));
			memset(d->valid, 0, DEBUG_REG_MAX);
			return NULL;
		}
	return err_new(ERR_NOT_FOUND, "%s: no thread of the target", id);
}

struct err *debug_look(struct debug *d)
{
	if (d->state != DEBUG_STOPPED)
		return NULL;
	_cleanup_batch_ struct debug_batch b = {0};
	uint64_t at[6], v;
	size_t asked[6], cnt = 0, values = SIZE_MAX, threads = SIZE_MAX, list = SIZE_MAX;
	debug_ask_stale(d, &b);
	/* Those the stop came with say which pages will be wanted; the rest is asked along. */
	bool has_all = true;
	for (uint32_t i = 0; i < d->regs.cnt; i++)
		has_all &= d->valid[i] || !d->regs.list[i].is_general;
	if (!has_all && d->has_g)
		values = debug_ask_values(d, &b);
	if (d->valid[d->regs.pc] && debug_reg(d, d->regs.pc, &v))
		at[cnt++] = v;
	if (d->regs.sp >= 0 && d->valid[d->regs.sp] && debug_reg(d, d->regs.sp, &v)) {
		at[cnt++] = v;
		at[cnt++] = v + DEBUG_PAGE;
		at[cnt++] = v + 2 * DEBUG_PAGE;
	}
	if (d->regs.fp >= 0 && d->valid[d->regs.fp] && debug_reg(d, d->regs.fp, &v) && cnt &&
	    v > at[cnt - 1] - 2 * DEBUG_PAGE && v - at[cnt - 1] < 1 << 20)
		at[cnt++] = v;
	for (size_t i = 0; i < cnt; i++)
		debug_ask_page(d, &b, at[i], &asked[i]);
	if (!d->threads.cnt)
		ask_threads(&b, THREADS_LOOKED, &threads);
	if (d->has_library_list && !d->has_modules && !d->list_is_long)
		list = debug_ask_xfer(d, &b, "libraries-svr4", "", 0);
	struct err *e = debug_link_run(&d->link, &b);
	if (e)
		return e;
	if (values != SIZE_MAX)
		d->has_g = debug_take_values(d, debug_reply(&b, values));
	for (size_t i = 0; i < cnt && !e; i++)
		e = debug_take_page(d, at[i], &b, asked[i]);
	/* A long list goes on when somebody wants to see it. */
	if (!e && threads != SIZE_MAX)
		take_thread_lists(d, &b, threads, THREADS_LOOKED);
	if (!e && list != SIZE_MAX)
		debug_take_short_list(d, debug_reply(&b, list));
	return e;
}
