/* SPDX-License-Identifier: Apache-2.0 */
/* Call sites: a made-up stack of a program that is compiled here, and real ones from the kernel's records. */
#include "live/trace/trace_bpf.h"
#include "live/trace/trace_cfi.h"
#include "live/trace/trace_join.h"
#include "live/trace/trace_maps.h"
#include "live/trace/trace_site.h"
#include "live/trace/sysc.h"

#include "lib/subject.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char source[] =
	"#include <unistd.h>\n"
	"#define N __attribute__((noinline, noclone, noipa))\n"
	"N int leaf(int n) { int r = chdir(\"/nowhere\"); return r + n; }\n"
	"N int middle(int n) { int r = leaf(n + 1); return r * 2; }\n"
	"N int outer(int n) { char buf[48]; for (int i = 0; i < 48; i++) buf[i] = (char)n; __asm__ volatile(\"\" :: \"r\"(buf) : \"memory\");\n"
	"	int r = middle(n) + 1; return r + buf[n & 7]; }\n"
	"int main(int argc, char **argv) { return outer(argc) == 77; }\n";

/* What the sink makes of the subject's chdir: the functions of its frames, innermost first. */
struct chain {
	struct trace_join *join;
	struct trace_sites *sites;
	char names[512];
	size_t caller, cnt, offs_cnt;
	uint64_t offs[8];
	bool has_build_id;
};

static bool take(void *ctx, const struct trace_event *ev)
{
	struct chain *c = ctx;
	trace_sites_event(c->sites, ev);
	const struct sysc *s = ev->kind == TRACE_SYSCALL ? sysc_find(ev->abi, ev->nr) : NULL;
	if (!s || strcmp(s->name, "chdir") || ev->unfinished)
		return true;
	struct trace_frame f[TRACE_FRAMES_MAX];
	c->cnt = trace_sites_frames(c->sites, ev, f, TRACE_FRAMES_MAX);
	c->caller = trace_sites_caller(f, c->cnt);
	size_t at = 0;
	for (size_t i = 0; i < c->cnt && at < sizeof(c->names) - 100; i++) {
		at += (size_t)snprintf(c->names + at, sizeof(c->names) - at, "%.*s ", (int)f[i].func_len, f[i].func ? f[i].func : "");
		if (i < 8)
			c->offs[c->offs_cnt++] = f[i].file_off;
	}
	c->has_build_id = c->cnt > c->caller && f[c->caller].build_id_len == 20;
	return true;
}

static struct err *chunk(void *ctx, const uint8_t *bytes, size_t len)
{
	bool more;
	return trace_join_chunk(ctx, bytes, len, &more);
}

/* Records a program into the join. */
static void record_subject(const char *path, struct trace_join *join)
{
	struct trace_bpf *t;
	struct trace_bpf_options opt = {.scope = {.own = true, .tree = true}, .with_site = true, .stack_len = 256, .plan = {.with_maps = true}};
	struct err *e = trace_bpf_open(&opt, &t);
	if (e && e->kind == ERR_ENV) {
		print_message("skipped: %s\n", e->text);
		err_free(e);
		skip();
	}
	assert_null(e);
	int go[2], status;
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (!pid) {
		char byte;
		close(go[1]);
		if (read(go[0], &byte, 1) == 1)
			execl(path, path, NULL);
		_exit(1);
	}
	assert_null(trace_bpf_add(t, pid));
	assert_int_equal(write(go[1], "", 1), 1);
	close(go[0]);
	close(go[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	trace_bpf_stop(t);
	for (bool any = true; any;)
		assert_null(trace_bpf_drain(t, chunk, join, &any));
	trace_bpf_close(t);
}

static void trace_subject(const char *path, struct chain *c)
{
	/* Not live: only what the events say is known. */
	*c = (struct chain){.sites = trace_sites_new(false)};
	c->join = trace_join_new(take, c);
	record_subject(path, c->join);
	trace_join_free(c->join);
	trace_sites_free(c->sites);
}

static void check_chain(const char *command)
{
	struct subject *s = subject_new(".c", source, command);
	if (!s)
		skip();
	struct chain c;
	trace_subject(s->path, &c);
	const char *want = strstr(c.names, "leaf middle outer main");
	if (!want)
		print_message("%s: %s\n", command, c.names);
	assert_non_null(want);
	assert_true(c.has_build_id);
	/* In libc's chdir, or (static) in the program's own. */
	assert_true(c.caller <= 1);
	subject_free(s);
}

static void test_no_frame_pointer(void **state)
{
	check_chain("gcc -O2 -fomit-frame-pointer -fno-optimize-sibling-calls -Wl,--build-id $SRC -o $OUT");
}

static void test_frame_pointer(void **state)
{
	check_chain("gcc -O2 -fno-omit-frame-pointer -fno-optimize-sibling-calls -Wl,--build-id $SRC -o $OUT");
}

static void test_unoptimized(void **state)
{
	check_chain("gcc -O0 -Wl,--build-id $SRC -o $OUT");
}

static void test_no_pie(void **state)
{
	check_chain("gcc -O1 -no-pie -fno-pie -Wl,--build-id $SRC -o $OUT");
}

static void test_static(void **state)
{
	check_chain("gcc -O2 -static -fno-optimize-sibling-calls -Wl,--build-id $SRC -o $OUT");
}

/* Without tables of unwinding a word of the stack is taken when the instruction before it is a call. */
static void test_no_tables(void **state)
{
	check_chain("gcc -O2 -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-optimize-sibling-calls -Wl,--build-id $SRC -o $OUT");
}

/* Between its two chdir every call is made by functions of the C library with large frames, or from odd places of it. */
static const char deep_source[] =
	"#define _GNU_SOURCE\n"
	"#include <fcntl.h>\n#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\n"
	"static void ignore(int n) { (void)n; }\n"
	"int main(void) { char line[64], *path; chdir(\"/nowhere\");\n"
	"	signal(SIGUSR1, ignore); FILE *f = fopen(\"/proc/self/stat\", \"r\"); fgets(line, sizeof(line), f); fclose(f);\n"
	"	path = realpath(\"/proc/self/../self\", NULL); free(path); fcntl(fcntl(2, F_DUPFD, 100), F_GETFD);\n"
	"	pid_t pid = vfork(); if (!pid) _exit(0);\n	waitpid(pid, NULL, 0); dprintf(-1, \"%d\", 1); remove(\"/nowhere\");\n"
	"	chdir(\"/nowhere\"); return 0; }\n";

struct deep {
	struct trace_join *join;
	struct trace_sites *sites;
	unsigned chdirs, calls, found;
	char missing[512];
};

static bool take_deep(void *ctx, const struct trace_event *ev)
{
	struct deep *d = ctx;
	trace_sites_event(d->sites, ev);
	const struct sysc *s = ev->kind == TRACE_SYSCALL && !ev->unfinished ? sysc_find(ev->abi, ev->nr) : NULL;
	if (s && !strcmp(s->name, "chdir"))
		d->chdirs++;
	if (!s || d->chdirs != 1)
		return true;
	struct trace_frame f[TRACE_FRAMES_MAX];
	size_t cnt = trace_sites_frames(d->sites, ev, f, TRACE_FRAMES_MAX), at = trace_sites_caller(f, cnt);
	bool is_found = cnt && f[at].func && f[at].func_len == 4 && !memcmp(f[at].func, "main", 4);
	d->calls++;
	d->found += is_found;
	size_t len = strlen(d->missing);
	if (!is_found)
		snprintf(d->missing + len, sizeof(d->missing) - len, "%s ", s->name);
	return true;
}

static void test_deep_frames(void **state)
{
	struct subject *s = subject_new(".c", deep_source, "gcc -O1 -w $SRC -o $OUT");
	if (!s)
		skip();
	struct deep d = {.sites = trace_sites_new(false)};
	d.join = trace_join_new(take_deep, &d);
	record_subject(s->path, d.join);
	trace_join_free(d.join);
	trace_sites_free(d.sites);
	if (d.found != d.calls)
		print_message("no site: %s\n", d.missing);
	assert_true(d.calls > 12);
	assert_int_equal(d.found, d.calls);
	subject_free(s);
}

/* Rows of every function of a program, at every byte, against what the code does there: sp at its first byte has the return address. */
static void test_rows(void **state)
{
	struct subject *s = subject_open("/bin/sh");
	if (!s)
		skip();
	size_t found = 0;
	uint64_t begin = s->bin->entry_va;
	struct trace_cfi_row row;
	for (uint64_t va = begin; va < begin + 65536; va++) {
		if (!trace_cfi_find(s->bin, va, &row))
			continue;
		found++;
		assert_true(row.base <= TRACE_CFA_BP);
		assert_true(!row.has_ra || row.ra_off == -8);
		assert_true(row.base == TRACE_CFA_UNKNOWN || row.cfa_off >= 8);
	}
	assert_true(found > 1000);
	assert_false(trace_cfi_find(s->bin, 0, &row));
	assert_false(trace_cfi_find(s->bin, UINT64_MAX, &row));
	subject_free(s);
}

/* This process, by its own maps. */
static void test_maps(void **state)
{
	struct trace_map m;
	uint64_t here = (uint64_t)(uintptr_t)test_maps;
	assert_true(trace_maps_query((uint32_t)getpid(), here, &m));
	assert_true(m.start <= here && here < m.end);
	assert_non_null(strstr(m.path, "unit-trace-site"));
	assert_true(m.ino != 0);
	assert_false(trace_maps_query((uint32_t)getpid(), 16, &m));
	assert_false(trace_maps_query(0x3ffff0, here, &m));
}

/* Events that make no sense are taken without harm. */
static void test_nonsense(void **state)
{
	struct trace_sites *s = trace_sites_new(false);
	static const uint8_t stack[64] = {1, 2, 3};
	struct trace_slot path = {.arg = 0, .len = 9, .data = (const uint8_t *)"/dev/null"}, auxv = {.arg = 25, .len = 40, .data = stack};
	struct trace_event ev = {.kind = TRACE_MMAP, .pid = 5, .tid = 5, .args = {0x1000, ~0ull, 4}, .slots = &path, .nslots = 1};
	trace_sites_event(s, &ev);
	ev.args[1] = 0x1000;
	trace_sites_event(s, &ev);
	ev.kind = TRACE_EXEC;
	ev.slots = &auxv;
	trace_sites_event(s, &ev);
	ev.kind = TRACE_SYSCALL;
	struct trace_frame f[4];
	assert_int_equal(trace_sites_frames(s, &ev, f, 4), 0);
	ev.ip = 0x1234;
	ev.sp = ~0ull - 3;
	ev.stack = stack;
	ev.nstack = 64;
	assert_int_equal(trace_sites_frames(s, &ev, f, 4), 1);
	assert_null(f[0].func);
	trace_sites_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_frame_pointer), cmocka_unit_test(test_frame_pointer), cmocka_unit_test(test_unoptimized),
		cmocka_unit_test(test_no_pie),           cmocka_unit_test(test_static),        cmocka_unit_test(test_no_tables),
		cmocka_unit_test(test_deep_frames),
		cmocka_unit_test(test_rows),             cmocka_unit_test(test_maps),          cmocka_unit_test(test_nonsense),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
