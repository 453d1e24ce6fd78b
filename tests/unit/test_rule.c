/* SPDX-License-Identifier: Apache-2.0 */
/* Rules over events made here: the language, what is not known, sequences, bounds. tests/e2e/rules.sh has programs that do it for real. */
#include "live/trace/trace_rule.h"

#include "live/trace/sysc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct trace_rules *rules;
static char told[4096]; /* "rule:pid " of every finding, "rule:pid+N " of repeats */
static uint64_t now;

static void on_finding(void *ctx, const struct trace_finding *f)
{
	size_t n = strlen(told);
	if (f->repeats)
		snprintf(told + n, sizeof(told) - n, "%s:%u+%llu ", f->rule, f->pid, (unsigned long long)f->repeats);
	else
		snprintf(told + n, sizeof(told) - n, "%s:%u ", f->rule, f->pid);
}

static int teardown(void **state)
{
	trace_rules_free(rules);
	rules = NULL;
	return 0;
}

static void load(const char *text)
{
	trace_rules_free(rules);
	*told = '\0';
	now = 1000;
	assert_null(trace_rules_new(&rules));
	struct err *e = trace_rules_add_text(rules, "t", text, strlen(text));
	if (e)
		fail_msg("%s", e->text);
	assert_true(trace_rules_begin(rules, on_finding, NULL, NULL));
}

#define RULE(name, events) "rule " name "\ntitle T\nseverity low\n" events "\n"

/* Makes the event, gives it to the rules, and says what was told since the last time. */
static const char *give(struct trace_event ev)
{
	static char out[4096];
	if (!ev.tid)
		ev.tid = ev.pid;
	if (!ev.time)
		ev.time = now += 1000;
	trace_rules_event(rules, &ev);
	memcpy(out, told, sizeof(out));
	*told = '\0';
	return out;
}

static struct trace_event call(uint32_t pid, const char *name, int64_t ret, uint64_t a, uint64_t b, uint64_t c)
{
	const struct sysc *s = sysc_by_name(name, strlen(name));
	assert_non_null(s);
	return (struct trace_event){.kind = TRACE_SYSCALL, .pid = pid, .nr = s->nr[TRACE_X86_64], .ret = ret, .args = {a, b, c}};
}

static struct trace_slot text_slot(uint8_t arg, const char *s)
{
	return (struct trace_slot){.arg = arg, .len = (uint32_t)strlen(s) + 1, .data = (const uint8_t *)s};
}

static const char *open_at(uint32_t pid, const char *path, uint64_t flags, uint8_t status)
{
	struct trace_slot s = text_slot(1, path);
	s.status = status;
	struct trace_event ev = call(pid, "openat", 3, (uint64_t)-100, 0x1000, flags);
	ev.slots = &s;
	ev.nslots = 1;
	return give(ev);
}

static const char *exec(uint32_t pid, const char *exe, const char *argv, size_t len)
{
	struct trace_slot s = {.arg = TRACE_ARG_ARGV, .len = (uint32_t)len, .data = (const uint8_t *)argv};
	return give((struct trace_event){.kind = TRACE_EXEC, .pid = pid, .exe = exe, .comm = strrchr(exe, '/') + 1, .slots = &s,
					 .nslots = argv != NULL});
}

static const char *fork_of(uint32_t pid, uint32_t child)
{
	return give((struct trace_event){.kind = TRACE_FORK, .pid = pid, .ret = child, .args = {17, child}});
}

static void test_numbers_and_names(void **state)
{
	load(RULE("a", "event ptrace where request == (PTRACE_POKETEXT, PTRACE_POKEDATA)") RULE("b", "event mprotect where prot & PROT_EXEC and ok")
	     RULE("c", "event mprotect where failed and errno == EACCES") RULE("d", "event kill where pid == -1"));
	assert_string_equal(give(call(7, "ptrace", 0, 4, 0, 0)), "a:7 ");
	assert_string_equal(give(call(7, "ptrace", 0, 0, 0, 0)), "");
	assert_string_equal(give(call(8, "mprotect", 0, 0, 0, 5)), "b:8 ");
	assert_string_equal(give(call(8, "mprotect", -13, 0, 0, 5)), "c:8 ");
	assert_string_equal(give(call(8, "mprotect", 0, 0, 0, 3)), "");
	/* An int is the lower half of its register. */
	assert_string_equal(give(call(9, "kill", 0, 0xffffffff, 9, 0)), "d:9 ");
}

static void test_texts(void **state)
{
	load(RULE("exact", "event opens where path == \"/etc/x\"") RULE("glob", "event opens where path ~ (\"/proc/*/mem\", \"/q?\")")
	     RULE("writes", "event modifies where path ~ \"/etc/*\"") RULE("other", "event opens where path != \"/etc/x\""));
	assert_string_equal(open_at(1, "/etc/x", 0, TRACE_OK), "exact:1 ");
	assert_string_equal(open_at(2, "/etc//./y/../x", 1, TRACE_OK), "exact:2 writes:2 ");
	assert_string_equal(open_at(3, "/proc/3/mem", 0, TRACE_OK), "glob:3 other:3 ");
	assert_string_equal(open_at(4, "/../qz", 0, TRACE_LATE), "glob:4 other:4 ");
	/* A literal without a star is not a part of the path. */
	assert_string_equal(open_at(5, "/home/etc/x", 0, TRACE_OK), "other:5 ");
}

static void test_unknown(void **state)
{
	load(RULE("is", "event opens where path == \"/x\"") RULE("not", "event opens where not path == \"/x\"")
	     RULE("ne", "event opens where path != \"/x\"")
	     RULE("or", "event opens where path == \"/x\" or creates") RULE("comm", "event opens where not comm == \"x\"")
	     RULE("parent", "event opens where not parent.comm == \"x\""));
	/* What was not read is neither equal nor different; what is certain is found. */
	assert_string_equal(open_at(1, "/x", 0, TRACE_FAULTED), "");
	assert_string_equal(open_at(1, "/x", 0, TRACE_ABSENT), "");
	assert_string_equal(open_at(1, "/x", 0x40, TRACE_TRUNCATED), "or:1 ");
	/* A relative path is below a folder nobody knows here. */
	assert_string_equal(open_at(2, "x", 0, TRACE_OK), "");
	struct trace_event ev = call(3, "openat", 3, 0, 0, 0);
	assert_string_equal(give(ev), "");
	ev = call(3, "openat", 3, 0, 0, 0);
	ev.unfinished = true;
	ev.comm = "y";
	assert_string_equal(give(ev), "");
	ev.unfinished = false;
	assert_string_equal(give(ev), "comm:3 ");
}

static void test_struct_and_bytes(void **state)
{
	static const uint8_t how_write[24] = {1}, elf[] = "\177ELF\2\1", in[16] = {2, 0, 0x1f, 0x90, 127, 0, 0, 1},
				     sun[] = {1, 0, '/', 'r', 'u', 'n', 0},
				     abstract[] = {1, 0, 0, 'x', 'y'};
	load(RULE("how", "event openat2 where how.u64@0 & 1") RULE("elf", "event write where buf ^= \"\\x7fELF\"")
	     RULE("port", "event connect where uservaddr.family == AF_INET and uservaddr.port == 8080 and uservaddr.host == \"127.0.0.1\"")
	     RULE("sun", "event connect where uservaddr.sun == (\"/run\", \"@xy\")") RULE("w", "event modifies where path ~ \"*\""));
	struct trace_slot s[2] = {{.arg = 2, .len = 24, .data = how_write}, text_slot(1, "/p")};
	struct trace_event ev = call(1, "openat2", 3, 0, 0, 0);
	ev.slots = s;
	ev.nslots = 2;
	assert_string_equal(give(ev), "how:1 w:1 ");
	s[0].len = 7; /* cut: how it is opened is not known */
	ev.pid = ev.tid = 2;
	assert_string_equal(give(ev), "");
	s[0] = (struct trace_slot){.arg = 1, .len = 6, .data = elf};
	ev = call(3, "write", 6, 1, 0, 6);
	ev.slots = s;
	ev.nslots = 1;
	assert_string_equal(give(ev), "elf:3 ");
	ev = call(4, "connect", 0, 3, 0, 16);
	ev.slots = s;
	ev.nslots = 1;
	s[0] = (struct trace_slot){.arg = 1, .len = 16, .data = in};
	assert_string_equal(give(ev), "port:4 ");
	s[0].len = 3;
	assert_string_equal(give(ev), "");
	s[0] = (struct trace_slot){.arg = 1, .len = sizeof(sun), .data = sun};
	assert_string_equal(give(ev), "sun:4 ");
	s[0] = (struct trace_slot){.arg = 1, .len = sizeof(abstract), .data = abstract};
	ev.pid = ev.tid = 5;
	assert_string_equal(give(ev), "sun:5 ");
}

static void test_processes(void **state)
{
	static const char args[] = "sh\0-i";
	load(RULE("shell", "event exec where path ~ \"*/sh\" and argv has \"-i\"") RULE("child", "event exec where parent.exe == \"/bin/web\"")
	     RULE("deep", "event exec where ancestor.comm == \"web\"") RULE("alone", "event exec where not ancestor.comm == \"web\""));
	assert_string_equal(give((struct trace_event){.kind = TRACE_PROCESS, .pid = 10, .ppid = 1, .comm = "web", .exe = "/bin/web"}), "");
	assert_string_equal(fork_of(10, 11), "");
	assert_string_equal(exec(11, "/bin/sh", args, sizeof(args)), "shell:11 child:11 deep:11 ");
	assert_string_equal(fork_of(11, 12), "");
	/* 12's parent is the shell, its grandparent the web server. */
	assert_string_equal(exec(12, "/bin/id", "id", 3), "deep:12 ");
	/* Who the ancestors of 20 are nobody knows. */
	assert_string_equal(exec(20, "/bin/id", NULL, 0), "");
	/* The number of an ended process is another's now: 11 is a child of 20. */
	assert_string_equal(fork_of(20, 11), "");
	assert_string_equal(exec(11, "/bin/true", NULL, 0), "");
}

static void test_sequences(void **state)
{
	load(RULE("dup", "event accept where ok\nlet s = ret\nthen dup2 within 2 s by tree where oldfd == $s and newfd <= 2")
	     RULE("same", "event opens where writes\nlet file = path\nthen exec by anyone where path == $file")
	     RULE("three", "event setsid\nthen chdir by thread\nthen chroot by process"));
	assert_string_equal(give(call(1, "accept", 5, 3, 0, 0)), "");
	assert_string_equal(give(call(1, "dup2", 0, 4, 0, 0)), "");
	assert_string_equal(give(call(2, "dup2", 0, 5, 0, 0)), ""); /* not its descendant */
	assert_string_equal(fork_of(1, 2), "");
	assert_string_equal(give(call(2, "dup2", 0, 5, 0, 0)), "dup:2 ");
	assert_string_equal(give(call(2, "dup2", 1, 5, 1, 0)), ""); /* the sequence has ended */
	assert_string_equal(give(call(1, "accept", 5, 3, 0, 0)), "");
	now += 3000000000u;
	assert_string_equal(give(call(1, "dup2", 0, 5, 0, 0)), ""); /* too late */
	assert_string_equal(open_at(3, "/tmp/a", 1, TRACE_OK), "");
	assert_string_equal(open_at(3, "/tmp/b", 0, TRACE_OK), "");
	assert_string_equal(exec(4, "/tmp/b", NULL, 0), "");
	assert_string_equal(exec(4, "/tmp/a", NULL, 0), "same:4 ");
	assert_string_equal(give(call(5, "setsid", 5, 0, 0, 0)), "");
	struct trace_event ev = call(5, "chdir", 0, 0, 0, 0);
	ev.tid = 6;
	assert_string_equal(give(ev), "");
	assert_string_equal(give(call(5, "chroot", 0, 0, 0, 0)), "");
	assert_string_equal(give(call(5, "chdir", 0, 0, 0, 0)), "");
	ev = call(5, "chroot", 0, 0, 0, 0);
	ev.tid = 6;
	assert_string_equal(give(ev), "three:5 ");
}

static void test_repeats_and_bounds(void **state)
{
	load(RULE("many", "event getpid") RULE("seq", "event dup\nlet a = ret\nthen dup2 where oldfd == $a"));
	assert_string_equal(give(call(1, "getpid", 1, 0, 0, 0)), "many:1 ");
	for (int i = 0; i < 500; i++)
		assert_string_equal(give(call(1, "getpid", 1, 0, 0, 0)), "");
	/* 3,000 sequences begin; the first are forgotten, counted. */
	for (int i = 0; i < 3000; i++)
		assert_string_equal(give(call(2, "dup", i, 0, 0, 0)), "");
	assert_string_equal(give(call(2, "dup2", 0, 5, 0, 0)), "");
	assert_string_equal(give(call(2, "dup2", 0, 2999, 0, 0)), "seq:2 ");
	assert_int_equal(trace_rules_finish(rules), 3000 - 1024);
	assert_string_equal(told, "many:1+500 ");
}

static void refused(const char *text, const char *want)
{
	assert_null(trace_rules_new(&rules));
	struct err *e = trace_rules_add_text(rules, "f", text, strlen(text));
	struct trace_finding first;
	assert_non_null(e);
	assert_int_equal(e->kind, ERR_INVALID);
	assert_string_equal(e->text, want);
	assert_false(trace_rules_get(rules, 0, &first));
	err_free(e);
	trace_rules_free(rules);
	rules = NULL;
}

static void test_wrong(void **state)
{
	refused("title x\n", "f:1: a rule begins with: rule NAME");
	refused("rule a\ntitle x\nevent nosuch\n", "f:3: there is no event and no system call 'nosuch'");
	refused("rule a\ntitle x\nseverity low\nevent ptrace where\n request == PTRACE_NOSUCH\n", "f:5: no value has the name 'PTRACE_NOSUCH'");
	refused("rule a\nevent ptrace where pid == 1 and\n", "f:2: a name is missing at ''");
	refused("rule a\nevent ptrace where path ~ \"x\n", "f:2: a text has no end");
	refused("rule a\nevent ptrace where nosuch\n", "f:2: the call has no such argument, and nothing else is called 'nosuch'");
	refused("rule a\nevent exec where argv == \"x\"\n", "f:2: of a list of texts only 'has' can be asked");
	refused("rule a\nevent ptrace where pid < \"x\"\n", "f:2: a text has no order and no bits");
	refused("rule a\ntitle \x1b[2J\n", "f:2: a control character, or what is not UTF-8, is no text");
	refused("rule a\ntitle \xc2\x9b" "31m\n", "f:2: a control character, or what is not UTF-8, is no text");
	refused("rule a\ntitle \xe2\x80\xae\n", "f:2: a control character, or what is not UTF-8, is no text");
	refused("rule a\ntechnique \xff\n", "f:2: a control character, or what is not UTF-8, is no text");
	refused("rule a\ntitle x\ntitle y\n", "f:3: the rule has one already: 'title'");
	refused("rule a\nseverity low\nseverity low\n", "f:3: the rule has one already: 'severity'");
	refused("rule a\ntechnique T1\ntechnique T2\n", "f:3: the rule has one already: 'technique'");
	refused("rule a\ntitle x\nseverity bad\n", "f:3: the severity is info, low, medium, high or critical");
	refused("rule a\ntitle x\nevent dup\n", "f:3: a title, a severity and an event are needed by rule 'a'");
	refused(RULE("a", "event dup") RULE("a", "event dup"), "f:5: there is a rule of that name already: 'a'");
	refused(RULE("a", "event dup\nthen dup2 where oldfd == $no"), "f:5: there is no variable 'no'");
	refused(RULE("a", "then dup"), "f:4: then comes after an event");
	char deep[400] = "rule a\nevent dup where ";
	memset(deep + strlen(deep), '(', 100);
	refused(deep, "f:2: the condition is nested too deeply");
}

static void test_builtin(void **state)
{
	struct trace_finding f;
	size_t cnt = 0;
	assert_null(trace_rules_new(&rules));
	struct err *e = trace_rules_add(rules, "all");
	if (e)
		fail_msg("%s", e->text);
	while (trace_rules_get(rules, cnt, &f)) {
		struct trace_rules *one;
		assert_non_null(f.technique);
		assert_null(trace_rules_new(&one));
		assert_null(trace_rules_add(one, f.rule));
		struct trace_finding g;
		assert_true(trace_rules_get(one, 0, &g));
		assert_string_equal(g.rule, f.rule);
		assert_false(trace_rules_get(one, 1, &g));
		trace_rules_free(one);
		cnt++;
	}
	assert_true(cnt >= 40);
	assert_true(trace_rules_begin(rules, on_finding, NULL, NULL));
	assert_true(trace_rules_needs(rules, TRACE_X86_64, sysc_by_name("ptrace", 6)->nr[0]));
	assert_false(trace_rules_needs(rules, TRACE_X86_64, sysc_by_name("read", 4)->nr[0]));
	assert_false(trace_rules_needs(rules, TRACE_X86_64, 100000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_numbers_and_names, teardown), cmocka_unit_test_teardown(test_texts, teardown),
		cmocka_unit_test_teardown(test_unknown, teardown),           cmocka_unit_test_teardown(test_struct_and_bytes, teardown),
		cmocka_unit_test_teardown(test_processes, teardown),         cmocka_unit_test_teardown(test_sequences, teardown),
		cmocka_unit_test_teardown(test_repeats_and_bounds, teardown), cmocka_unit_test_teardown(test_wrong, teardown),
		cmocka_unit_test_teardown(test_builtin, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
