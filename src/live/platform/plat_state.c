/* SPDX-License-Identifier: Apache-2.0 */
/* Packets about a stopped process: registers, memory, threads, breakpoints, objects. */
#include "live/platform/plat_conn.h"

#include "base/cleanup.h"
#include "live/platform/plat_lib.h"
#include "live/platform/plat_target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>

#define SEARCH_BLOCK 65536 /* bytes looked at together */

/* --- threads -------------------------------------------------------------------------------------------------------- */

void plat_put_thread_id(struct plat_conn *c, struct buf *out, pid_t tid)
{
	if (c->has_multiprocess)
		buf_printf(out, "p%x.", c->inf.pid);
	buf_add_hex(out, (uint64_t)tid, 1);
}

static bool take_signed(struct gdb_span *s, pid_t *ret)
{
	uint64_t v;
	if (gdb_skip(s, "-1")) {
		*ret = -1;
		return true;
	}
	if (!gdb_take_hex(s, &v) || v > INT32_MAX)
		return false;
	*ret = (pid_t)v;
	return true;
}

bool plat_take_thread_id(struct gdb_span *s, pid_t *ret_tid)
{
	pid_t pid;
	if (!gdb_skip(s, "p"))
		return take_signed(s, ret_tid);
	if (!take_signed(s, &pid))
		return false;
	*ret_tid = -1;
	return !gdb_skip(s, ".") || take_signed(s, ret_tid);
}

/* The thread an id means: 0 and -1 are the one that was reported. */
static struct plat_thread *thread_of(struct plat_conn *c, pid_t tid)
{
	if (tid > 0)
		return plat_thread_find(&c->inf, tid);
	if (!c->inf.current && c->inf.threads.cnt)
		return c->inf.threads.data[0];
	return c->inf.current;
}

struct plat_thread *plat_packet_thread(struct plat_conn *c, struct gdb_span *args)
{
	const char *at = args->len ? memmem(args->s, args->len, ";thread:", 8) : NULL;
	if (!at)
		return thread_of(c, c->g_tid);
	struct gdb_span id = gdb_span_make(at + 8, args->len - (size_t)(at + 8 - args->s));
	pid_t tid;
	args->len = (size_t)(at - args->s);
	return plat_take_thread_id(&id, &tid) ? thread_of(c, tid) : NULL;
}

static void do_thread_list(struct plat_conn *c, struct gdb_span args)
{
	/* Before there is a process LLDB wants to hear that all is well. */
	if (!c->inf.pid || c->inf.is_exited) {
		if (c->opts->allow_run)
			buf_add_str(&c->out, c->is_lldb ? "OK" : "l");
		return;
	}
	for (size_t i = 0; i < c->inf.threads.cnt; i++) {
		buf_add_ch(&c->out, i ? ',' : 'm');
		plat_put_thread_id(c, &c->out, c->inf.threads.data[i]->tid);
	}
}

static void do_thread_end(struct plat_conn *c, struct gdb_span args)
{
	buf_add_ch(&c->out, 'l');
}

static void do_current(struct plat_conn *c, struct gdb_span args)
{
	const struct plat_thread *t = thread_of(c, 0);
	if (!t) {
		plat_error(c, 0x44, "there is no process");
		return;
	}
	buf_add_str(&c->out, "QC");
	plat_put_thread_id(c, &c->out, t->tid);
}

static void do_alive(struct plat_conn *c, struct gdb_span args)
{
	pid_t tid;
	if (plat_take_thread_id(&args, &tid) && plat_thread_find(&c->inf, tid))
		plat_ok(c);
	else
		plat_error(c, ESRCH, "there is no such thread");
}

static void do_choose(struct plat_conn *c, struct gdb_span args)
{
	bool is_g = gdb_skip(&args, "g");
	pid_t tid;
	if ((!is_g && !gdb_skip(&args, "c")) || !plat_take_thread_id(&args, &tid)) {
		plat_error(c, EINVAL, "malformed packet");
		return;
	}
	if (tid > 0 && !plat_thread_find(&c->inf, tid)) {
		plat_error(c, ESRCH, "there is no such thread");
		return;
	}
	*(is_g ? &c->g_tid : &c->c_tid) = tid;
	plat_ok(c);
}

static void do_extra(struct plat_conn *c, struct gdb_span args)
{
	pid_t tid;
	char name[64];
	if (plat_take_thread_id(&args, &tid) && plat_thread_find(&c->inf, tid)) {
		plat_lib_thread_name(&c->inf, tid, name);
		plat_put_hextext(&c->out, name);
	} else {
		plat_error(c, ESRCH, "there is no such thread");
	}
}

static void do_process_info(struct plat_conn *c, struct gdb_span args)
{
	plat_lib_put_process(&c->inf, &c->out);
}

static void do_attached(struct plat_conn *c, struct gdb_span args)
{
	buf_add_ch(&c->out, c->inf.was_launched ? '0' : '1');
}

/* --- registers ------------------------------------------------------------------------------------------------------ */

static void put_reg(struct buf *out, struct plat_thread *t, unsigned reg)
{
	uint8_t v[PLAT_REG_MAX_LEN];
	if (plat_reg_get(t, reg, v))
		buf_add_hexbytes(out, v, plat_reg_len(reg));
	else
		for (unsigned i = 0; i < plat_reg_len(reg); i++)
			buf_add_str(out, "xx");
}

static void do_all_regs(struct plat_conn *c, struct gdb_span args)
{
	struct plat_thread *t = plat_packet_thread(c, &args);
	for (unsigned i = 0; t && i < plat_reg_cnt(); i++)
		put_reg(&c->out, t, i);
	if (!t)
		plat_error(c, ESRCH, "there is no such thread");
}

static void do_reg(struct plat_conn *c, struct gdb_span args)
{
	uint64_t reg;
	struct plat_thread *t = plat_packet_thread(c, &args);
	if (!t || !gdb_is_hex(args, &reg) || reg >= plat_reg_cnt())
		plat_error(c, EINVAL, "there is no such register");
	else
		put_reg(&c->out, t, (unsigned)reg);
}

/* Takes one register's hex from the front; what has no digits ("xx") stays. */
static bool take_reg(struct plat_thread *t, unsigned reg, struct gdb_span *hex)
{
	struct gdb_span one = gdb_span_make(hex->s, 2 * plat_reg_len(reg));
	struct buf bytes = {0};
	if (hex->len < one.len)
		return false;
	*hex = gdb_span_make(hex->s + one.len, hex->len - one.len);
	bool is_there = one.s[0] != 'x';
	bool ok = !is_there || (gdb_unhex(one, PLAT_REG_MAX_LEN, &bytes) && plat_reg_set(t, reg, (const uint8_t *)bytes.data));
	buf_fini(&bytes);
	return ok;
}

static void regs_written(struct plat_conn *c, struct plat_thread *t, bool is_good)
{
	int status = is_good ? plat_regs_flush(t) : -EINVAL;
	if (status < 0)
		plat_errno(c, -status);
	else
		plat_ok(c);
}

static void do_set_all_regs(struct plat_conn *c, struct gdb_span args)
{
	struct plat_thread *t = plat_packet_thread(c, &args);
	bool is_good = t && args.len;
	for (unsigned i = 0; is_good && i < plat_reg_cnt() && args.len; i++)
		is_good = take_reg(t, i, &args);
	regs_written(c, t, is_good);
}

static void do_set_reg(struct plat_conn *c, struct gdb_span args)
{
	uint64_t reg;
	struct gdb_span number, value;
	struct plat_thread *t = plat_packet_thread(c, &args);
	bool is_good = t && gdb_split(args, '=', &number, &value) && gdb_is_hex(number, &reg) && reg < plat_reg_cnt() &&
		       take_reg(t, (unsigned)reg, &value) && !value.len;
	regs_written(c, t, is_good);
}

/* --- memory --------------------------------------------------------------------------------------------------------- */

/* ADDR,LEN; clamped to what a packet may hold, `each` bytes of it for one of memory. */
static bool take_place(struct plat_conn *c, struct gdb_span *args, uint64_t *ret_va, size_t *ret_len)
{
	uint64_t len;
	if (!gdb_take_hex(args, ret_va) || !gdb_skip(args, ",") || !gdb_take_hex(args, &len))
		return false;
	*ret_len = (size_t)MIN(len, (uint64_t)(c->is_lldb || c->is_scry ? PLAT_READ_MAX : PLAT_PACKET_LEN / 2 - 16));
	return true;
}

/* The memory into scratch; how many bytes, 0 with an error said. */
static size_t read_memory(struct plat_conn *c, struct gdb_span args, bool *ret_is_probe)
{
	uint64_t va;
	size_t len;
	*ret_is_probe = false;
	if (!take_place(c, &args, &va, &len) || args.len) {
		plat_error(c, EINVAL, "malformed packet");
		return 0;
	}
	*ret_is_probe = !len;
	c->scratch.len = 0;
	char *to = buf_room(&c->scratch, len + 1);
	size_t got = to && len ? plat_mem_read(&c->inf, va, to, len) : 0;
	if (!got && len)
		plat_error(c, EFAULT, "memory that is not mapped");
	return got;
}

static void do_read(struct plat_conn *c, struct gdb_span args)
{
	bool is_probe;
	size_t got = read_memory(c, args, &is_probe);
	buf_add_hexbytes(&c->out, (const uint8_t *)c->scratch.data, got);
}

static void do_read_binary(struct plat_conn *c, struct gdb_span args)
{
	bool is_probe;
	size_t start = c->out.len, got = read_memory(c, args, &is_probe);
	if (c->has_binary_upload && (got || is_probe) && c->out.len == start)
		buf_add_ch(&c->out, 'b');
	else if (is_probe)
		plat_ok(c);
	gdb_escape(&c->out, c->scratch.data, got);
}

static void write_memory(struct plat_conn *c, uint64_t va, const void *bytes, size_t len)
{
	int status = plat_mem_write(&c->inf, va, bytes, len);
	c->maps.len = 0;
	if (status < 0)
		plat_errno(c, -status);
	else
		plat_ok(c);
}

static void do_write(struct plat_conn *c, struct gdb_span args)
{
	uint64_t va;
	size_t len;
	struct buf bytes = {0};
	if (take_place(c, &args, &va, &len) && gdb_skip(&args, ":") && gdb_unhex(args, PLAT_REQUEST_MAX, &bytes) && bytes.len == len)
		write_memory(c, va, bytes.data ? bytes.data : "", len);
	else
		plat_error(c, EINVAL, "malformed packet");
	buf_fini(&bytes);
}

static void do_write_binary(struct plat_conn *c, struct gdb_span args)
{
	uint64_t va;
	size_t len;
	if (take_place(c, &args, &va, &len) && gdb_skip(&args, ":") && args.len == len)
		write_memory(c, va, args.s, len);
	else
		plat_error(c, EINVAL, "malformed packet");
}

/* qSearch:memory:ADDR;LEN;BYTES -> 0, or 1,ADDR. */
static void do_search(struct plat_conn *c, struct gdb_span args)
{
	uint64_t va, len;
	if (!gdb_take_hex(&args, &va) || !gdb_skip(&args, ";") || !gdb_take_hex(&args, &len) || !gdb_skip(&args, ";") || !args.len ||
	    args.len > SEARCH_BLOCK) {
		plat_error(c, EINVAL, "malformed packet");
		return;
	}
	c->scratch.len = 0;
	char *block = buf_room(&c->scratch, 2 * SEARCH_BLOCK);
	for (size_t got = SEARCH_BLOCK * 2; block && len >= args.len && got >= args.len;) {
		size_t want = (size_t)MIN(len, (uint64_t)2 * SEARCH_BLOCK);
		got = plat_mem_read(&c->inf, va, block, want);
		const char *at = memmem(block, got, args.s, args.len);
		if (at) {
			buf_printf(&c->out, "1,%llx", (unsigned long long)(va + (uint64_t)(at - block)));
			return;
		}
		if (got < want || got < args.len)
			break;
		va += got - args.len + 1;
		len -= got - args.len + 1;
	}
	buf_add_ch(&c->out, '0');
}

static void do_region(struct plat_conn *c, struct gdb_span args)
{
	uint64_t va;
	if (c->maps_at != c->inf.generation || !c->maps.len) {
		c->maps.len = 0;
		plat_lib_read_maps(&c->inf, &c->maps);
		c->maps_at = c->inf.generation;
	}
	if (!args.len)
		plat_ok(c);
	else if (gdb_is_hex(args, &va))
		plat_lib_put_region(&c->maps, va, &c->out);
	else
		plat_error(c, EINVAL, "malformed packet");
}

static void do_load_address(struct plat_conn *c, struct gdb_span args)
{
	char path[PATH_MAX];
	uint64_t va;
	if (plat_text(args, path, sizeof(path)) && plat_lib_load_address(&c->inf, path, &va))
		buf_add_hex(&c->out, va, 16);
	else
		plat_error(c, ENOENT, "that file is not mapped");
}

/* --- breakpoints ---------------------------------------------------------------------------------------------------- */

static void do_break(struct plat_conn *c, struct gdb_span args)
{
	bool is_add = args.s[0] == 'Z';
	char kind = args.len > 1 ? args.s[1] : 0;
	uint64_t va, len;
	args = gdb_span_make(args.s + 1, args.len - 1);
	if (kind < '0' || kind > '4')
		return;
	args = gdb_span_make(args.s + 1, args.len - 1);
	if (!gdb_skip(&args, ",") || !gdb_take_hex(&args, &va) || !gdb_skip(&args, ",") || !gdb_take_hex(&args, &len) || len > UINT32_MAX) {
		plat_error(c, EINVAL, "malformed packet");
		return;
	}
	int status = kind == '0' ? (is_add ? plat_break_add(&c->inf, va) : plat_break_del(&c->inf, va))
		     : is_add    ? plat_watch_add(&c->inf, (uint8_t)kind, va, (uint32_t)len)
				 : plat_watch_del(&c->inf, (uint8_t)kind, va, (uint32_t)len);
	if (status < 0)
		plat_errno(c, -status);
	else
		plat_ok(c);
}

static void do_watch_support(struct plat_conn *c, struct gdb_span args)
{
	buf_printf(&c->out, "num:%d;", PLAT_DEBUG_REGS);
}

/* --- objects -------------------------------------------------------------------------------------------------------- */

static bool make_object(struct plat_conn *c, struct gdb_span name, struct gdb_span annex, struct buf *out)
{
	if (gdb_span_is(name, "features") && gdb_span_is(annex, "target.xml"))
		plat_target_xml(out);
	else if (gdb_span_is(name, "auxv"))
		plat_lib_read_auxv(&c->inf, out);
	else if (gdb_span_is(name, "libraries-svr4"))
		plat_lib_put_libraries(&c->inf, !c->is_lldb, out);
	else if (gdb_span_is(name, "exec-file"))
		plat_lib_put_exe(&c->inf, out);
	else if (gdb_span_is(name, "threads"))
		plat_lib_put_threads(&c->inf, c->has_multiprocess, out);
	else if (gdb_span_is(name, "siginfo"))
		plat_lib_read_siginfo(thread_of(c, c->g_tid), out);
	else
		return false;
	return true;
}

/* OBJECT:read:ANNEX:OFFSET,LEN. What begins at 0 is made anew, and kept for the pieces behind it. */
static void do_xfer(struct plat_conn *c, struct gdb_span args)
{
	struct gdb_span whole = args, name, op, annex;
	uint64_t off, len;
	if (!gdb_next_field(&args, ':', &name) || !gdb_next_field(&args, ':', &op) || !gdb_span_is(op, "read") || !gdb_next_field(&args, ':', &annex))
		return;
	size_t key_len = MIN((size_t)(args.s - whole.s), sizeof(c->object_name));
	if (!gdb_take_hex(&args, &off) || !gdb_skip(&args, ",") || !gdb_take_hex(&args, &len) || args.len) {
		plat_error(c, 0, "malformed packet");
		return;
	}
	bool is_kept = off && c->object_at == c->inf.generation && !memcmp(c->object_name, whole.s, key_len);
	if (!is_kept) {
		c->object.len = 0;
		if (!make_object(c, name, annex, &c->object))
			return;
		memset(c->object_name, 0, sizeof(c->object_name));
		memcpy(c->object_name, whole.s, key_len);
		c->object_at = c->inf.generation;
	}
	size_t at = (size_t)MIN(off, (uint64_t)c->object.len);
	size_t n = (size_t)MIN(len, (uint64_t)(c->object.len - at));
	n = gdb_escape_fit(c->object.data + at, n, PLAT_PACKET_LEN - 64);
	buf_add_ch(&c->out, at + n < c->object.len ? 'm' : 'l');
	gdb_escape(&c->out, c->object.data + at, n);
}

const struct plat_packet plat_state_packets[] = {
	{"qfThreadInfo", do_thread_list, PLAT_ASKS},
	{"qsThreadInfo", do_thread_end, 0},
	{"qC", do_current, PLAT_PROCESS},
	{"qThreadExtraInfo,", do_extra, PLAT_PREFIX | PLAT_PROCESS},
	{"qProcessInfo", do_process_info, PLAT_PROCESS},
	{"qAttached", do_attached, PLAT_PREFIX | PLAT_PROCESS},
	{"qMemoryRegionInfo:", do_region, PLAT_PREFIX | PLAT_PROCESS},
	{"qMemoryRegionInfo", do_region, PLAT_PROCESS},
	{"qFileLoadAddress:", do_load_address, PLAT_PREFIX | PLAT_PROCESS},
	{"qWatchpointSupportInfo:", do_watch_support, PLAT_PREFIX | PLAT_PROCESS},
	{"qSearch:memory:", do_search, PLAT_PREFIX | PLAT_PROCESS},
	{"qXfer:", do_xfer, PLAT_PREFIX | PLAT_PROCESS},
	{"T", do_alive, PLAT_PREFIX | PLAT_PROCESS},
	{"H", do_choose, PLAT_PREFIX | PLAT_ASKS},
	{"g", do_all_regs, PLAT_PREFIX | PLAT_PROCESS},
	{"G", do_set_all_regs, PLAT_PREFIX | PLAT_PROCESS},
	{"p", do_reg, PLAT_PREFIX | PLAT_PROCESS},
	{"P", do_set_reg, PLAT_PREFIX | PLAT_PROCESS},
	{"m", do_read, PLAT_PREFIX | PLAT_PROCESS},
	{"M", do_write, PLAT_PREFIX | PLAT_PROCESS},
	{"x", do_read_binary, PLAT_PREFIX | PLAT_PROCESS},
	{"X", do_write_binary, PLAT_PREFIX | PLAT_PROCESS},
	{"Z", do_break, PLAT_PREFIX | PLAT_PROCESS | PLAT_WHOLE},
	{"z", do_break, PLAT_PREFIX | PLAT_PROCESS | PLAT_WHOLE},
	{0},
};
