/* SPDX-License-Identifier: Apache-2.0 */
/* Records, their join and trace files: without the kernel. */
#include "live/trace/trace_cgroup.h"
#include "live/trace/trace_plan.h"
#include "live/trace/trace_decode.h"
#include "live/trace/trace_file.h"
#include "live/trace/trace_frame.h"

#include "base/buf.h"
#include "base/vec.h"

#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* What a sink was given, as text: a line an event. */
struct got {
	struct buf text;
	size_t cnt;
	uint64_t lost;
	size_t stop_at; /* wants no more after so many; 0: all */
};

static void add_bytes(struct buf *b, const uint8_t *bytes, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		buf_add_ch(b, bytes[i] >= 32 && bytes[i] < 127 ? (char)bytes[i] : '.');
}

static bool take(void *ctx, const struct trace_event *ev)
{
	struct got *g = ctx;
	g->cnt++;
	if (ev->kind == TRACE_LOST) {
		g->lost += ev->lost.count;
		buf_printf(&g->text, "lost %" PRIu64 " cpu %u %" PRIu64 "-%" PRIu64 " reason %u\n", ev->lost.count, ev->cpu, ev->lost.first,
			   ev->lost.last, ev->lost.reason);
		return g->cnt != g->stop_at;
	}
	buf_printf(&g->text, "%u%s%s %u/%" PRIu64 " %u:%u %s %s nr %d ret %" PRIi64, ev->kind, ev->unfinished ? "+" : "",
		   ev->left == TRACE_LEFT ? "left" : ev->left ? "again" : "", ev->cpu, ev->seq,
		   ev->pid, ev->tid, ev->comm ? ev->comm : "-", ev->exe ? ev->exe : "-", ev->nr, ev->ret);
	if (ev->ns)
		buf_printf(&g->text, " ns %llu", (unsigned long long)ev->ns);
	for (uint32_t i = 0; i < ev->nslots; i++) {
		const struct trace_slot *s = &ev->slots[i];
		buf_printf(&g->text, " [%u %u%u%u %u/%u ", s->arg, s->status, s->phase, s->part, s->len, s->full);
		add_bytes(&g->text, s->data, s->len);
		buf_add_ch(&g->text, ']');
	}
	buf_add_ch(&g->text, '\n');
	return g->cnt != g->stop_at;
}

static void expect(struct got *g, const char *text)
{
	buf_add_ch(&g->text, '\0');
	assert_false(g->text.failed);
	assert_string_equal(g->text.data, text);
	g->text.len = 0;
}

/* A record of a system call as the kernel's side makes them. */
static void call(struct buf *b, uint16_t cpu, uint32_t seq, uint32_t tid, int nr, int64_t ret)
{
	struct trace_wire w = {.time = 1000 + seq, .tid = tid, .seq = seq, .nr = nr, .cpu = cpu, .kind = TRACE_SYSCALL, .args = {7, 8, 9},
		.ret = ret};
	trace_record_end(b, trace_record_begin(b, &w));
}

static void call_with(struct buf *b, struct trace_wire w, struct trace_wire_slot slot, const char *bytes)
{
	size_t begin = trace_record_begin(b, &w);
	slot.len = (uint16_t)strlen(bytes);
	trace_record_slot(b, begin, slot, bytes);
	trace_record_end(b, begin);
}

static void feed(struct trace_join *j, struct buf *b)
{
	bool more;
	assert_false(b->failed);
	assert_null(trace_join_chunk(j, (const uint8_t *)b->data, b->len, &more));
	b->len = 0;
}

static void test_gaps(void **state)
{
	struct got g = {0};
	struct trace_join *j = trace_join_new(take, &g);
	_cleanup_buf_ struct buf b = {0};
	call(&b, 0, 1, 50, 39, 3);
	call(&b, 1, 1, 60, 39, 3);
	call(&b, 0, 2, 50, 39, 3);
	call(&b, 0, 7, 50, 39, 4);
	call(&b, 1, 2, 60, 39, 4);
	feed(j, &b);
	expect(&g, "0 0/1 0:50 - - nr 39 ret 3\n"
		   "0 1/1 0:60 - - nr 39 ret 3\n"
		   "0 0/2 0:50 - - nr 39 ret 3\n"
		   "lost 4 cpu 0 3-6 reason 0\n"
		   "0 0/7 0:50 - - nr 39 ret 4\n"
		   "0 1/2 0:60 - - nr 39 ret 4\n");
	/* Nothing more came of CPU 0; of CPU 1 three, of which nobody heard; CPU 2 lost all it had. */
	struct trace_cpu cpus[3] = {{.seen = 7}, {.seen = 5}, {.seen = 2}};
	trace_join_end(j, cpus, 3);
	expect(&g, "lost 3 cpu 1 3-5 reason 0\nlost 2 cpu 2 1-2 reason 0\n");
	struct trace_totals t = trace_join_totals(j);
	assert_int_equal(t.received, 5);
	assert_int_equal(t.lost, 9);
	assert_int_equal(t.received + t.lost, 7 + 5 + 2);
	trace_join_free(j);
	buf_fini(&g.text);
}

/* Numbers have 32 bits in records and are whole again in events. */
static void test_numbers_wrap(void **state)
{
	struct got g = {0};
	struct trace_join *j = trace_join_new(take, &g);
	_cleanup_buf_ struct buf b = {0};
	struct trace_wire at = {.cpu = TRACE_WIRE_NO_CPU, .kind = TRACE_WIRE_NUMBERS, .args = {3, 0xfffffffeu}};
	trace_record_end(&b, trace_record_begin(&b, &at));
	call(&b, 3, 0xffffffffu, 50, 39, 1);
	call(&b, 3, 0, 50, 39, 2);
	call(&b, 3, 2, 50, 39, 3);
	feed(j, &b);
	expect(&g, "0 3/4294967295 0:50 - - nr 39 ret 1\n"
		   "0 3/4294967296 0:50 - - nr 39 ret 2\n"
		   "lost 1 cpu 3 4294967297-4294967297 reason 0\n"
		   "0 3/4294967298 0:50 - - nr 39 ret 3\n");
	trace_join_free(j);
	buf_fini(&g.text);
}

static void process(struct buf *b, uint8_t kind, uint32_t tid, uint32_t tgid, const char *comm, const char *exe)
{
	struct trace_wire w = {.tid = tid, .cpu = TRACE_WIRE_NO_CPU, .kind = kind, .args = {tid, tgid}, .ret = kind == TRACE_FORK ? tgid : 0};
	struct trace_wire_proc p = {.tgid = tgid, .ppid = 1};
	memcpy(p.comm, comm, strnlen(comm, sizeof(p.comm)));
	size_t begin = trace_record_begin(b, &w);
	trace_record_slot(b, begin, (struct trace_wire_slot){.len = sizeof(p), .arg = TRACE_WIRE_ARG_PROC}, &p);
	if (exe)
		trace_record_slot(b, begin, (struct trace_wire_slot){.len = (uint16_t)strlen(exe), .arg = TRACE_ARG_EXE}, exe);
	trace_record_end(b, begin);
}

static void test_processes(void **state)
{
	struct got g = {0};
	struct trace_join *j = trace_join_new(take, &g);
	_cleanup_buf_ struct buf b = {0};
	process(&b, TRACE_PROCESS, 50, 50, "sh", "/bin/sh");
	process(&b, TRACE_FORK, 50, 51, "sh", NULL);
	call(&b, 0, 1, 51, 39, 1);
	process(&b, TRACE_EXEC, 51, 51, "ls", "/bin/ls");
	call(&b, 0, 2, 51, 39, 1);
	struct trace_wire end = {.tid = 51, .cpu = 0, .seq = 3, .kind = TRACE_EXIT, .args = {1}};
	trace_record_end(&b, trace_record_begin(&b, &end));
	call(&b, 0, 4, 50, 39, 1);
	/* The number is somebody else's now. */
	process(&b, TRACE_FORK, 50, 51, "sh", NULL);
	call(&b, 0, 5, 51, 39, 1);
	feed(j, &b);
	expect(&g, "8 65535/0 50:50 sh /bin/sh nr 0 ret 0 [18 000 7/0 /bin/sh]\n"
		   "2 65535/0 50:50 sh /bin/sh nr 0 ret 51\n"
		   "0 0/1 51:51 sh /bin/sh nr 39 ret 1\n"
		   "1 65535/0 51:51 ls /bin/ls nr 0 ret 0 [18 000 7/0 /bin/ls]\n"
		   "0 0/2 51:51 ls /bin/ls nr 39 ret 1\n"
		   "3 0/3 51:51 ls /bin/ls nr 0 ret 0\n"
		   "0 0/4 50:50 sh /bin/sh nr 39 ret 1\n"
		   "2 65535/0 50:50 sh /bin/sh nr 0 ret 51\n"
		   "0 0/5 51:51 sh /bin/sh nr 39 ret 1\n");
	trace_join_free(j);
	buf_fini(&g.text);
}

/* What was read at both ends of a call, and a program that another one replaced. */
static void test_begun(void **state)
{
	struct got g = {0};
	struct trace_join *j = trace_join_new(take, &g);
	_cleanup_buf_ struct buf b = {0};
	struct trace_wire w = {.time = 100, .tid = 50, .nr = 80, .kind = TRACE_SYSCALL, .args = {0x1000}, .ret = -38, .cpu = TRACE_WIRE_NO_CPU};
	struct trace_wire begun = w, ended = w;
	begun.flags = TRACE_WIRE_ENTRY;
	ended.time = 350;
	ended.ret = 0;
	struct trace_wire_slot s = {.arg = 0}, faulted = {.arg = 0, .how = TRACE_FAULTED};
	call_with(&b, begun, s, "/tmp");
	call_with(&b, ended, s, "/tmp");
	call_with(&b, begun, s, "/tmp");
	call_with(&b, ended, s, "/etc");
	call_with(&b, begun, faulted, "");
	call_with(&b, ended, s, "/tmp");
	feed(j, &b);
	expect(&g, "0+ 65535/0 0:50 - - nr 80 ret 0 [0 000 4/4 /tmp]\n"
		   "0 65535/0 0:50 - - nr 80 ret 0 ns 250 [0 000 4/4 /tmp]\n"
		   "0+ 65535/0 0:50 - - nr 80 ret 0 [0 000 4/4 /tmp]\n"
		   "0 65535/0 0:50 - - nr 80 ret 0 ns 250 [0 500 4/4 /tmp]\n"
		   "0+ 65535/0 0:50 - - nr 80 ret 0 [0 300 0/0 ]\n"
		   "0 65535/0 0:50 - - nr 80 ret 0 ns 250 [0 400 4/4 /tmp]\n");
	/* execve: at its end registers and memory are the new program's. Another thread's number went over to it. */
	begun.nr = ended.nr = 59;
	begun.tid = 52;
	memset(ended.args, 0, sizeof(ended.args));
	call_with(&b, begun, s, "/bin/ls");
	struct trace_wire exec = {.tid = 50, .cpu = TRACE_WIRE_NO_CPU, .kind = TRACE_EXEC, .args = {52}};
	trace_record_end(&b, trace_record_begin(&b, &exec));
	call_with(&b, ended, s, "");
	feed(j, &b);
	expect(&g, "0+ 65535/0 0:52 - - nr 59 ret 0 [0 000 7/7 /bin/ls]\n"
		   "1 65535/0 0:50 - - nr 0 ret 0\n"
		   "0 65535/0 0:50 - - nr 59 ret 0 ns 250 [0 000 7/7 /bin/ls]\n");
	/* rt_sigreturn: at its end the registers are those of what was interrupted. */
	begun.nr = 15;
	begun.tid = ended.tid = 53;
	ended.nr = -1;
	ended.ret = 99;
	call_with(&b, begun, s, "x");
	call_with(&b, ended, s, "x");
	feed(j, &b);
	expect(&g, "0+ 65535/0 0:53 - - nr 15 ret 0 [0 000 1/1 x]\n0 65535/0 0:53 - - nr 15 ret 99 ns 250 [0 000 1/1 x]\n");
	trace_join_free(j);
	buf_fini(&g.text);
}

/* What is decided from a slot and the result together. */
static void test_statuses(void **state)
{
	struct got g = {0};
	struct trace_join *j = trace_join_new(take, &g);
	_cleanup_buf_ struct buf b = {0};
	struct trace_wire w = {.tid = 50, .nr = 19, .kind = TRACE_SYSCALL, .args = {3, 0x1000, 2}, .ret = 3, .cpu = TRACE_WIRE_NO_CPU};
	unsigned out = 1u << TRACE_WIRE_PHASE_SHIFT, data = (unsigned)TRACE_PART_DATA << TRACE_WIRE_PART_SHIFT;
	/* Of what readv's buffers lead to only the result is new. */
	call_with(&b, w, (struct trace_wire_slot){.arg = 1, .how = (uint8_t)(out | data | TRACE_TRUNCATED)}, "abcdef");
	w.args[1] = 0;
	call_with(&b, w, (struct trace_wire_slot){.arg = 1}, "");
	w.args[1] = 1;
	call_with(&b, w, (struct trace_wire_slot){.arg = 1, .full = 9, .how = TRACE_TRUNCATED}, "abc");
	w.flags = TRACE_WIRE_EXACT;
	call_with(&b, w, (struct trace_wire_slot){.arg = 1}, "abc");
	/* A path is recorded from its end. */
	static const char parts[] = "c\0bb\0a";
	struct trace_wire m = {.tid = 50, .kind = TRACE_MMAP, .cpu = TRACE_WIRE_NO_CPU};
	for (unsigned status = 0; status <= TRACE_TRUNCATED; status += TRACE_TRUNCATED) {
		size_t begin = trace_record_begin(&b, &m);
		trace_record_slot(&b, begin, (struct trace_wire_slot){.len = sizeof(parts), .how = (uint8_t)(TRACE_WIRE_REVERSED | status)}, parts);
		trace_record_end(&b, begin);
	}
	feed(j, &b);
	expect(&g, "0 65535/0 0:50 - - nr 19 ret 3 [1 011 3/3 abc]\n"
		   "0 65535/0 0:50 - - nr 19 ret 3 [1 100 0/0 ]\n"
		   "0 65535/0 0:50 - - nr 19 ret 3 [1 200 3/9 abc]\n"
		   "0 65535/0 0:50 - - nr 19 ret 3 [1 000 3/0 abc]\n"
		   "4 65535/0 0:50 - - nr 0 ret 0 [0 000 7/0 /a/bb/c]\n"
		   "4 65535/0 0:50 - - nr 0 ret 0 [0 200 6/0 a/bb/c]\n");
	trace_join_free(j);
	buf_fini(&g.text);
}

/* The hash of what a string was when the call began, as the kernel's side makes it. */
static uint32_t path_hash(const char *text)
{
	uint64_t words[(4096 + TRACE_PATH_BLOCK) / 8] = {0}, len = strlen(text), hash = len;
	memcpy(words, text, len);
	for (size_t i = 0; i < len; i += TRACE_PATH_BLOCK) {
		for (size_t j = 0; j < TRACE_PATH_BLOCK; j += 8)
			hash = trace_path_step(hash, words[(i + j) / 8]);
	}
	return trace_path_hash(hash);
}

/* A string that is another one when the call has ended, or was not read when it began. */
static void test_hashes(void **state)
{
	struct got g = {0};
	struct trace_join *j = trace_join_new(take, &g);
	_cleanup_buf_ struct buf b = {0};
	struct trace_wire w = {.tid = 50, .nr = 80, .kind = TRACE_SYSCALL, .args = {0x1000}, .cpu = TRACE_WIRE_NO_CPU};
	static const char longer[] = "/a/path/of/more/than/thirty/two/bytes";
	const struct {
		const char *begun, *ended;
		uint8_t status;
	} cases[] = {{"/tmp", "/tmp", TRACE_OK}, {"/tmp", "/tmq", TRACE_OK}, {"/tmp", "/tm", TRACE_OK}, {NULL, "/tmp", TRACE_OK},
		{"", "", TRACE_OK}, {longer, longer, TRACE_OK}, {longer, "/a/path/of/more/than/thirty/two/byteS", TRACE_OK},
		{"/tmp", "/tmp", TRACE_TRUNCATED}, {"/tmp", "", TRACE_FAULTED}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint32_t hash = cases[i].begun ? path_hash(cases[i].begun) : 0;
		call_with(&b, w, (struct trace_wire_slot){.how = (uint8_t)(TRACE_WIRE_HASHED | cases[i].status), .full = hash}, cases[i].ended);
	}
	feed(j, &b);
	expect(&g, "0 65535/0 0:50 - - nr 80 ret 0 [0 000 4/4 /tmp]\n"
		   "0 65535/0 0:50 - - nr 80 ret 0 [0 500 4/4 /tmq]\n"
		   "0 65535/0 0:50 - - nr 80 ret 0 [0 500 3/3 /tm]\n"
		   "0 65535/0 0:50 - - nr 80 ret 0 [0 400 4/4 /tmp]\n"
		   "0 65535/0 0:50 - - nr 80 ret 0 [0 000 0/0 ]\n"
		   "0 65535/0 0:50 - - nr 80 ret 0 [0 000 37/37 /a/path/of/more/than/thirty/two/bytes]\n"
		   "0 65535/0 0:50 - - nr 80 ret 0 [0 500 37/37 /a/path/of/more/than/thirty/two/byteS]\n"
		   "0 65535/0 0:50 - - nr 80 ret 0 [0 200 4/0 /tmp]\n"
		   "0 65535/0 0:50 - - nr 80 ret 0 [0 300 0/0 ]\n");
	trace_join_free(j);
	buf_fini(&g.text);
}

/* An event of a source without records comes back the same. */
static void test_encode(void **state)
{
	static const uint8_t stack[16] = "0123456789abcdef";
	struct trace_slot slots[2] = {
		{.arg = 1, .status = TRACE_TRUNCATED, .len = 3, .full = 70, .data = (const uint8_t *)"abc"},
		{.arg = 2, .status = TRACE_FAULTED, .phase = TRACE_OUT, .part = TRACE_PART_CONTROL, .data = (const uint8_t *)""},
	};
	struct trace_event ev = {.kind = TRACE_SYSCALL, .abi = TRACE_I386, .time = 5, .ns = 77, .pid = 8, .tid = 9, .ppid = 1, .comm = "name",
		.nr = 4, .args = {1, 2, 3, 4, 5, ~0ull}, .ret = -14, .ip = 0x401000, .sp = 0x7ffe0000, .stack = stack, .nstack = 16,
		.slots = slots, .nslots = 2};
	_cleanup_buf_ struct buf b = {0};
	trace_encode(&ev, &b);
	assert_false(b.failed);
	struct cur c = cur_make(b.data, b.len, false);
	uint32_t len;
	const uint8_t *rec = trace_frame_next(&c, &len);
	struct trace_record *r = malloc(sizeof(*r));
	assert_true(trace_decode(rec, len, r));
	assert_int_equal(cur_left(&c), 0);
	assert_int_equal(r->ev.abi, TRACE_I386);
	assert_int_equal(r->ev.ns, 77);
	assert_int_equal(r->ev.ret, -14);
	assert_memory_equal(r->ev.args, ev.args, sizeof(ev.args));
	assert_int_equal(r->ev.ip, 0x401000);
	assert_int_equal(r->ev.nstack, 16);
	assert_memory_equal(r->ev.stack, stack, 16);
	assert_int_equal(r->proc.tgid, 8);
	assert_string_equal(r->proc.comm, "name");
	assert_int_equal(r->ev.nslots, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(r->slots[i].arg, slots[i].arg);
		assert_int_equal(r->slots[i].status, slots[i].status);
		assert_int_equal(r->slots[i].phase, slots[i].phase);
		assert_int_equal(r->slots[i].part, slots[i].part);
		assert_int_equal(r->slots[i].len, slots[i].len);
	}
	assert_int_equal(r->slots[0].full, 70);
	/* Cut anywhere it is no record, or one with fewer slots: never one with other bytes. */
	for (uint32_t n = 0; n < len; n++) {
		uint8_t *part = malloc(n ? n : 1);
		memcpy(part, rec, n);
		if (trace_decode(part, n, r))
			assert_in_range(r->ev.nslots, 0, 2);
		free(part);
	}
	free(r);
}

/* More of the stack in a slot stands in place of what is behind sp, and is no slot of the event; less of it is nothing. */
static void test_deep_stack(void **state)
{
	static const uint8_t stack[16] = "0123456789abcdef", deep[40] = "0123456789abcdefghijklmnopqrstuvwxyz";
	struct trace_event ev = {.kind = TRACE_SYSCALL, .pid = 8, .tid = 9, .nr = 89, .ip = 0x401000, .sp = 0x7ffe0000, .stack = stack, .nstack = 16};
	for (uint16_t len = 8; len <= 40; len += 32) {
		struct trace_slot slot = {.arg = TRACE_WIRE_ARG_STACK, .len = len, .data = deep};
		ev.slots = &slot;
		ev.nslots = 1;
		_cleanup_buf_ struct buf b = {0};
		trace_encode(&ev, &b);
		struct cur c = cur_make(b.data, b.len, false);
		uint32_t rec_len;
		const uint8_t *rec = trace_frame_next(&c, &rec_len);
		struct trace_record *r = malloc(sizeof(*r));
		assert_true(trace_decode(rec, rec_len, r));
		assert_int_equal(r->ev.nslots, 0);
		assert_int_equal(r->ev.nstack, len == 8 ? 16 : 40);
		assert_memory_equal(r->ev.stack, deep, r->ev.nstack);
		free(r);
	}
}

/* --- files --------------------------------------------------------------------------------------------------------- */

#define RECORDS 1000

static void write_calls(struct trace_writer *w, uint32_t from, uint32_t to)
{
	_cleanup_buf_ struct buf b = {0};
	for (uint32_t seq = from; seq < to; seq++) {
		call(&b, 0, seq, 50, 39, 0);
		if (seq % 100 == 0 || seq + 1 == to) {
			assert_null(trace_writer_chunk(w, (const uint8_t *)b.data, b.len));
			b.len = 0;
		}
	}
}

struct temp {
	char dir[64], path[128];
};

static struct temp make_temp(void)
{
	struct temp t = {.dir = "/tmp/scry-trace-XXXXXX"};
	assert_non_null(mkdtemp(t.dir));
	snprintf(t.path, sizeof(t.path), "%s/t", t.dir);
	return t;
}

static void remove_temp(const struct temp *t)
{
	char path[160];
	unlink(t->path);
	for (int i = 1; i < 10; i++) {
		snprintf(path, sizeof(path), "%s.%d", t->path, i);
		unlink(path);
	}
	assert_int_equal(rmdir(t->dir), 0);
}

static void write_file(const char *path)
{
	struct trace_writer *w;
	assert_null(trace_writer_new(path, &(struct trace_writer_options){.command = "sub ject\nend"}, &w));
	_cleanup_buf_ struct buf b = {0};
	process(&b, TRACE_PROCESS, 50, 50, "sh", "/bin/sh");
	assert_null(trace_writer_chunk(w, (const uint8_t *)b.data, b.len));
	write_calls(w, 1, RECORDS + 1);
	struct trace_cpu cpus[2] = {{.seen = RECORDS}};
	assert_null(trace_writer_close(w, cpus, 2));
}

static struct trace_totals read_bytes(const uint8_t *bytes, size_t len, struct got *g)
{
	struct trace_file *f;
	struct trace_totals t = {0};
	assert_null(trace_file_open_bytes(bytes, len, &f));
	assert_null(trace_file_each(f, take, g, &t));
	trace_file_free(f);
	return t;
}

static uint8_t *slurp(const char *path, size_t *ret_len)
{
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	uint8_t *bytes = malloc((size_t)st.st_size);
	int fd = open(path, O_RDONLY);
	assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
	close(fd);
	*ret_len = (size_t)st.st_size;
	return bytes;
}

static void test_file(void **state)
{
	struct temp dir = make_temp();
	write_file(dir.path);
	struct trace_file *f;
	assert_null(trace_file_open(dir.path, &f));
	size_t len;
	const char *command = trace_file_field(f, "command", &len);
	assert_int_equal(len, strlen("sub ject end"));
	assert_memory_equal(command, "sub ject end", len);
	assert_null(trace_file_field(f, "comman", &len));
	assert_true(trace_file_epoch(f) > 0);
	struct got g = {0};
	struct trace_totals t;
	assert_null(trace_file_each(f, take, &g, &t));
	assert_int_equal(t.received, RECORDS);
	assert_int_equal(t.lost, 0);
	assert_int_equal(t.damaged, 0);
	assert_int_equal(g.cnt, RECORDS + 1);
	/* A sink that has enough gets no more. */
	struct got few = {.stop_at = 5};
	assert_null(trace_file_each(f, take, &few, NULL));
	assert_int_equal(few.cnt, 5);
	trace_file_free(f);
	buf_fini(&g.text);
	buf_fini(&few.text);
	remove_temp(&dir);
}

/* One byte that is wrong costs the block it lies in, which is told exactly; nothing is made up. */
static void test_file_damaged(void **state)
{
	struct temp dir = make_temp();
	write_file(dir.path);
	size_t len;
	uint8_t *bytes = slurp(dir.path, &len);
	struct got whole = {0};
	read_bytes(bytes, len, &whole);
	buf_add_ch(&whole.text, '\0');
	size_t head = 16 + load_u32(bytes + 12, false);
	unsigned exact = 0;
	for (size_t at = head; at < len; at += 61) {
		bytes[at] ^= 0x10;
		struct got g = {0};
		struct trace_totals t = read_bytes(bytes, len, &g);
		assert_true(t.received + t.lost == RECORDS || at + 2000 > len);
		assert_true(t.received <= RECORDS && t.received >= RECORDS - 100);
		exact += t.lost == 100;
		/* What did come is what was written: every line but the lost ones. */
		buf_add_ch(&g.text, '\0');
		assert_non_null(strstr(g.text.data, "lost 0 cpu 0 0-0 reason 2\n"));
		const char *in_whole = whole.text.data;
		for (char *line = g.text.data, *end; *line; line = end + 1) {
			end = strchr(line, '\n');
			*end = '\0';
			if (strncmp(line, "lost", 4)) {
				*strchr(strchr(line, ' ') + 1, ' ') = '\0'; /* names may have been what is damaged */
				in_whole = strstr(in_whole, line);
			}
			assert_non_null(in_whole);
		}
		bytes[at] ^= 0x10;
		buf_fini(&g.text);
	}
	assert_true(exact > 100);
	/* Cut anywhere. */
	for (size_t n = head; n < len; n += 97) {
		struct got g = {0};
		struct trace_totals t = read_bytes(bytes, n, &g);
		assert_true(t.received <= RECORDS);
		buf_add_ch(&g.text, '\0');
		assert_non_null(strstr(g.text.data, "lost 0 cpu 0 0-0 reason 2\n"));
		buf_fini(&g.text);
	}
	struct trace_file *f;
	for (size_t n = 0; n < head; n++) {
		struct err *e = trace_file_open_bytes(bytes, n, &f);
		assert_non_null(e);
		assert_int_equal(e->kind, ERR_BAD_INPUT);
		err_free(e);
	}
	free(bytes);
	buf_fini(&whole.text);
	remove_temp(&dir);
}

static void test_file_limit(void **state)
{
	struct temp dir = make_temp();
	struct trace_writer *w;
	assert_null(trace_writer_new(dir.path, &(struct trace_writer_options){.limit_len = 40000}, &w));
	write_calls(w, 1, RECORDS + 1);
	assert_true(trace_writer_is_full(w));
	assert_true(trace_writer_len(w) <= 40000);
	struct trace_cpu cpus[1] = {{.seen = RECORDS}};
	assert_null(trace_writer_close(w, cpus, 1));
	size_t len;
	uint8_t *bytes = slurp(dir.path, &len);
	struct got g = {0};
	struct trace_totals t = read_bytes(bytes, len, &g);
	assert_true(t.lost > 0 && t.received > 0);
	assert_int_equal(t.received + t.lost, RECORDS);
	char want[80];
	snprintf(want, sizeof(want), "lost %u cpu 0 %u-%u reason 2\n", (unsigned)t.lost, (unsigned)t.received + 1, RECORDS);
	buf_add_ch(&g.text, '\0');
	assert_non_null(strstr(g.text.data, want));
	free(bytes);
	buf_fini(&g.text);
	remove_temp(&dir);
}

/* Each of several files is whole by itself: it knows its processes and where its numbers begin. */
static void test_file_rotated(void **state)
{
	struct temp dir = make_temp();
	struct trace_writer *w;
	assert_null(trace_writer_new(dir.path, &(struct trace_writer_options){.limit_len = 120000, .keep = 3}, &w));
	_cleanup_buf_ struct buf b = {0};
	process(&b, TRACE_PROCESS, 50, 50, "sh", "/bin/sh");
	assert_null(trace_writer_chunk(w, (const uint8_t *)b.data, b.len));
	write_calls(w, 1, 3 * RECORDS + 1);
	assert_false(trace_writer_is_full(w));
	struct trace_cpu cpus[1] = {{.seen = 3 * RECORDS}};
	assert_null(trace_writer_close(w, cpus, 1));
	uint64_t sum = 0;
	for (int i = 0; i < 3; i++) {
		char path[160], first[80];
		snprintf(path, sizeof(path), i ? "%s.%d" : "%s", dir.path, i);
		size_t len;
		uint8_t *bytes = slurp(path, &len);
		assert_true(len <= 40000 + 400);
		struct got g = {0};
		struct trace_totals t = read_bytes(bytes, len, &g);
		assert_int_equal(t.lost, 0);
		sum += t.received;
		snprintf(first, sizeof(first), "0 0/%u 50:50 sh /bin/sh nr 39", (unsigned)(3 * RECORDS - sum + 1));
		buf_add_ch(&g.text, '\0');
		assert_non_null(strstr(g.text.data, first));
		free(bytes);
		buf_fini(&g.text);
	}
	char path[160];
	snprintf(path, sizeof(path), "%s.3", dir.path);
	assert_int_equal(access(path, F_OK), -1);
	remove_temp(&dir);
}

/* Events of a source without records, and what such a file says when it was cut. */
static void test_file_events(void **state)
{
	struct temp dir = make_temp();
	struct trace_writer *w;
	assert_null(trace_writer_new(dir.path, &(struct trace_writer_options){0}, &w));
	for (int i = 0; i < 3; i++) {
		struct trace_event ev = {.kind = TRACE_SYSCALL, .pid = 50, .tid = 51, .comm = "me", .nr = i, .ret = i};
		assert_null(trace_writer_event(w, &ev));
	}
	assert_null(trace_writer_close(w, NULL, 0));
	size_t len;
	uint8_t *bytes = slurp(dir.path, &len);
	struct got g = {0};
	read_bytes(bytes, len, &g);
	expect(&g, "0 65535/0 50:51 me - nr 0 ret 0\n0 65535/0 50:51 me - nr 1 ret 1\n0 65535/0 50:51 me - nr 2 ret 2\n");
	read_bytes(bytes, len - 8, &g);
	expect(&g, "0 65535/0 50:51 me - nr 0 ret 0\n0 65535/0 50:51 me - nr 1 ret 1\n0 65535/0 50:51 me - nr 2 ret 2\nlost 0 cpu 0 0-0 reason 2\n");
	free(bytes);
	buf_fini(&g.text);
	remove_temp(&dir);
}

/* Which container a cgroup's path names: the last 64 digits in a row, neither more nor fewer. */
static void test_container_names(void **state)
{
	char id[65], other[65], path[256];
	const char *found;
	memset(id, 'a', 64);
	memset(other, '7', 64);
	id[64] = other[64] = '\0';
	static const char *const around[] = {"/docker/%s", "/system.slice/docker-%s.scope", "/kubepods.slice/pod12/cri-containerd-%s.scope/init",
		"%s"};
	for (size_t i = 0; i < ARRAY_LEN(around); i++) {
		snprintf(path, sizeof(path), around[i], id);
		assert_int_equal(trace_cgroup_container(path, &found), 64);
		assert_memory_equal(found, id, 64);
		assert_true(trace_cgroup_is_in(path, "aaaa") && trace_cgroup_is_in(path, id));
		assert_false(trace_cgroup_is_in(path, "aaab"));
	}
	snprintf(path, sizeof(path), "/%s/%s", other, id);
	assert_true(trace_cgroup_is_in(path, "a"));
	assert_false(trace_cgroup_is_in(path, "7"));
	snprintf(path, sizeof(path), "/%sb", id);
	assert_int_equal(trace_cgroup_container(path, &found), 0);
	snprintf(path, sizeof(path), "/%.63s/x", id);
	assert_false(trace_cgroup_is_in(path, "a"));
	assert_false(trace_cgroup_is_in("", ""));
}

/* Calls that have not come back are given once more at the end; where records are missing since they began, it is not known that they have not,
 * and an end that comes may be another's. */
static void test_left(void **state)
{
	struct got g = {0};
	struct trace_join *j = trace_join_new(take, &g);
	_cleanup_buf_ struct buf b = {0};
	struct trace_wire w = {.time = 100, .tid = 50, .seq = 1, .nr = 0, .kind = TRACE_SYSCALL, .flags = TRACE_WIRE_ENTRY, .ret = -38};
	trace_record_end(&b, trace_record_begin(&b, &w));
	w = (struct trace_wire){.time = 200, .tid = 51, .seq = 2, .nr = 0, .kind = TRACE_SYSCALL, .flags = TRACE_WIRE_ENTRY, .ret = -38};
	trace_record_end(&b, trace_record_begin(&b, &w));
	call(&b, 0, 3, 51, 0, 4);
	feed(j, &b);
	trace_join_left(j);
	expect(&g, "0+ 0/1 0:50 - - nr 0 ret 0\n"
		   "0+ 0/2 0:51 - - nr 0 ret 0\n"
		   "0 0/3 0:51 - - nr 0 ret 4 ns 803\n"
		   "0+again 0/1 0:50 - - nr 0 ret 0\n");
	call(&b, 0, 6, 50, 0, 4);
	w.seq = 7;
	trace_record_end(&b, trace_record_begin(&b, &w));
	call(&b, 0, 9, 52, 39, 4);
	feed(j, &b);
	trace_join_left(j);
	expect(&g, "lost 2 cpu 0 4-5 reason 0\n"
		   "0 0/6 0:50 - - nr 0 ret 4\n"
		   "0+ 0/7 0:51 - - nr 0 ret 0\n"
		   "lost 1 cpu 0 8-8 reason 0\n"
		   "0 0/9 0:52 - - nr 39 ret 4\n");
	trace_join_free(j);
	/* A source that gives only those that have not come back is believed. */
	j = trace_join_new(take, &g);
	trace_encode(&(struct trace_event){.kind = TRACE_SYSCALL, .unfinished = true, .left = TRACE_LEFT, .pid = 50, .tid = 50, .nr = 34}, &b);
	feed(j, &b);
	trace_join_left(j);
	expect(&g, "0+left 65535/0 50:50 - - nr 34 ret 0\n");
	trace_join_free(j);
	buf_fini(&g.text);
}

/* Segments of a ring of any size that can be asked for: all fit, and no offset is too large for 32 bits. */
static void test_ring_plan(void **state)
{
	for (size_t len = TRACE_RING_MIN; len <= (size_t)256 << 20; len *= 2) {
		struct trace_config *cfg = calloc(1, sizeof(*cfg));
		assert_non_null(cfg);
		size_t each = trace_plan_ring(cfg, len);
		assert_int_equal((size_t)cfg->seg_cnt * cfg->seg_len, len);
		assert_true(cfg->seg_cnt >= 4 && cfg->seg_cnt <= TRACE_SEGMENTS && TRACE_SEGMENTS < TRACE_TURNS);
		assert_true(each <= UINT32_MAX && each % 8 == 0);
		assert_int_equal(TRACE_RING_HEAD + (size_t)cfg->ring_last + TRACE_RING_RECORD, each);
		free(cfg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gaps),         cmocka_unit_test(test_numbers_wrap), cmocka_unit_test(test_processes),
		cmocka_unit_test(test_begun),        cmocka_unit_test(test_statuses), cmocka_unit_test(test_encode),
		cmocka_unit_test(test_deep_stack),
		cmocka_unit_test(test_hashes),
		cmocka_unit_test(test_file),         cmocka_unit_test(test_file_damaged), cmocka_unit_test(test_file_limit),
		cmocka_unit_test(test_file_rotated),
		cmocka_unit_test(test_left),
		cmocka_unit_test(test_container_names), cmocka_unit_test(test_ring_plan), cmocka_unit_test(test_file_events),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
