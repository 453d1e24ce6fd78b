/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of system calls against what this machine says of them: numbers against its own unistd header, names and
 * arguments against the kernel's formats where tracefs is mounted, and everything a fetcher relies on.
 */
#include "live/trace/sysc.h"
#include "live/trace/sysc_check.h"
#include "live/trace/trace_event.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const struct sysc *by_name(const char *name)
{
	return sysc_by_name(name, strlen(name));
}

static void test_counts(void **state)
{
	size_t cnt, x86 = 0, arm = 0, unknown = 0, args = 0;
	const struct sysc *all = sysc_all(&cnt);
	for (size_t i = 0; i < cnt; i++) {
		x86 += all[i].nr[TRACE_X86_64] >= 0;
		arm += all[i].nr[TRACE_ARM64] >= 0;
		unknown += all[i].nr[TRACE_X86_64] >= 0 && all[i].flags & SYSC_UNKNOWN;
		args += all[i].nargs;
	}
	assert_true(x86 >= 382 && arm >= 320 && args > 1200);
	assert_true(unknown <= 16); /* the retired numbers nobody describes */
}

static void test_lookup(void **state)
{
	size_t cnt;
	const struct sysc *all = sysc_all(&cnt);
	for (size_t i = 0; i < cnt; i++) {
		assert_true(!i || strcmp(all[i - 1].name, all[i].name) < 0);
		assert_ptr_equal(by_name(all[i].name), &all[i]);
		for (unsigned abi = 0; abi < TRACE_ABI_COUNT; abi++) {
			assert_true(all[i].nr[abi] < sysc_end(abi));
			if (all[i].nr[abi] >= 0)
				assert_ptr_equal(sysc_find(abi, all[i].nr[abi]), &all[i]);
		}
	}
	assert_null(by_name("open_"));
	assert_null(sysc_by_name("openat", 3));
	assert_null(sysc_find(TRACE_X86_64, -1));
	assert_null(sysc_find(TRACE_X86_64, 100000));
	assert_null(sysc_find(TRACE_ABI_COUNT, 0));
}

/* Whatever reads memory by the table may trust it. */
static void check_arg(const struct sysc *s, unsigned i)
{
	const struct sysc_arg *a = &s->a[i];
	assert_true(a->cls < SYSC_CLS_COUNT && a->fetch < SYSC_FETCH_COUNT && a->dir <= SYSC_INOUT);
	assert_true((a->fetch != SYSC_FETCH_NONE) == (a->dir != 0));
	assert_true((a->len != SYSC_LEN_NONE) == (a->partner >= 0));
	assert_true(a->partner < (int)SYSC_ARG_MAX);
	bool needs_partner = a->fetch == SYSC_FETCH_BYTES || a->fetch == SYSC_FETCH_ARRAY || a->fetch == SYSC_FETCH_SOCKADDR ||
			     a->fetch == SYSC_FETCH_IOVEC;
	assert_int_equal(needs_partner, a->partner >= 0);
	bool needs_size = a->fetch == SYSC_FETCH_FIXED || a->fetch == SYSC_FETCH_ARRAY || a->fetch == SYSC_FETCH_IOVEC ||
			  a->fetch == SYSC_FETCH_MSGHDR;
	assert_true(!needs_size || a->size);
	if (a->cls == SYSC_FLAGS || a->cls == SYSC_ENUM || a->cls == SYSC_IOCTL)
		assert_non_null(sysc_set(TRACE_X86_64, a->set));
	if (a->fetch != SYSC_FETCH_NONE && a->cls != SYSC_STR)
		assert_true(strchr(a->ctype, '*') || strstr(a->ctype, "_t") || a->cls == SYSC_STRUCT);
}

static void test_args_are_sound(void **state)
{
	size_t cnt;
	const struct sysc *all = sysc_all(&cnt);
	for (size_t i = 0; i < cnt; i++)
		for (unsigned k = 0; k < all[i].nargs; k++) {
			assert_true(all[i].a[k].name[0] && all[i].a[k].ctype[0]);
			check_arg(&all[i], k);
		}
}

static void test_resolve(void **state)
{
	struct sysc s;
	sysc_resolve(by_name("fcntl"), (uint64_t[6]){3, F_SETFD, FD_CLOEXEC}, &s);
	assert_int_equal(s.a[2].set, SYSC_SET_fdflags);
	sysc_resolve(by_name("fcntl"), (uint64_t[6]){3, F_GETFD}, &s);
	assert_int_equal(s.nargs, 2);
	sysc_resolve(by_name("openat"), (uint64_t[6]){3, 0, O_RDONLY}, &s);
	assert_int_equal(s.nargs, 3);
	sysc_resolve(by_name("openat"), (uint64_t[6]){3, 0, O_RDWR | O_CREAT, 0600}, &s);
	assert_int_equal(s.nargs, 4);
	sysc_resolve(by_name("ioctl"), (uint64_t[6]){1, TCGETS, 0}, &s);
	assert_string_equal(s.a[2].ctype, "struct termios *");
	sysc_resolve(by_name("futex"), (uint64_t[6]){0, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1}, &s);
	assert_int_equal(s.nargs, 3);
	/* The upper half of an int argument means nothing. */
	sysc_resolve(by_name("fcntl"), (uint64_t[6]){3, 0xffffffff00000000 | F_GETFD}, &s);
	assert_int_equal(s.nargs, 2);
	size_t cnt;
	const struct sysc *all = sysc_all(&cnt);
	for (size_t i = 0; i < cnt; i++)
		for (uint64_t v = 0; v < 64; v++) {
			sysc_resolve(&all[i], (uint64_t[6]){v, v, v, v, v, v}, &s);
			for (unsigned k = 0; k < s.nargs; k++)
				check_arg(&s, k);
		}
}

static void test_sets(void **state)
{
	for (unsigned i = 1; i < SYSC_SET_COUNT; i++) {
		const struct sysc_set *set = sysc_set(TRACE_X86_64, i);
		assert_true(set->cnt > 0);
		for (unsigned k = 0; k < set->cnt; k++)
			for (unsigned m = 0; m < k; m++)
				assert_true(set->names[k].value != set->names[m].value);
	}
	assert_string_equal(sysc_set_name(TRACE_X86_64, SYSC_SET_errno, 2), "ENOENT");
	assert_string_equal(sysc_set_name(TRACE_X86_64, SYSC_SET_errno, 11), "EAGAIN");
	assert_string_equal(sysc_set_name(TRACE_X86_64, SYSC_SET_signal, 11), "SIGSEGV");
	assert_string_equal(sysc_set_name(TRACE_X86_64, SYSC_SET_open, 0200000), "O_DIRECTORY");
	assert_string_equal(sysc_set_name(TRACE_ARM64, SYSC_SET_open, 040000), "O_DIRECTORY");
	assert_null(sysc_set_name(TRACE_X86_64, SYSC_SET_errno, 5000));
	assert_null(sysc_set(TRACE_X86_64, 0));
	assert_null(sysc_set(TRACE_X86_64, SYSC_SET_COUNT));
}

static void test_classes(void **state)
{
	assert_int_equal(sysc_class_bit("%file", 5), SYSC_C_FILE);
	assert_int_equal(sysc_class_bit("network", 7), SYSC_C_NETWORK);
	assert_int_equal(sysc_class_bit("net", 3), 0);
	assert_true(by_name("openat")->classes & SYSC_C_FILE);
	assert_true(by_name("execve")->classes & SYSC_C_PROCESS);
	assert_true(by_name("mmap")->classes & SYSC_C_MEMORY);
	assert_false(by_name("read")->classes & SYSC_C_FILE);
	for (unsigned i = 0; i < SYSC_CLASS_COUNT; i++)
		assert_int_equal(sysc_class_bit(sysc_class_name(i), strlen(sysc_class_name(i))), 1u << i);
	assert_null(sysc_class_name(SYSC_CLASS_COUNT));
}

/* Every number of the C library's header is in the table, under that name. */
static void test_numbers_are_this_machines(void **state)
{
	FILE *f = fopen("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "r");
	if (!f) {
		print_message("SKIP: no asm/unistd_64.h here to compare with\n");
		skip();
	}
	char line[256], name[128];
	int nr, cnt = 0;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "#define __NR_%127s %d", name, &nr) != 2)
			continue;
		const struct sysc *s = sysc_find(TRACE_X86_64, nr);
		assert_non_null(s);
		assert_string_equal(s->name, name);
		cnt++;
	}
	fclose(f);
	assert_true(cnt > 300);
}

struct differences {
	size_t cnt, of_count;
	char last[64];
};

static void on_difference(void *ctx, const struct sysc_difference *d)
{
	struct differences *all = ctx;
	all->cnt++;
	all->of_count += d->nargs != d->s->nargs;
	snprintf(all->last, sizeof(all->last), "%s %u %u", d->s->name, d->nargs, d->same_names);
	print_message("%s: %u arguments, %u of the same name, the table has %u\n", d->s->name, d->nargs, d->same_names, d->s->nargs);
}

/* A kernel of which one call has another argument and one more of them. */
static void test_differences_are_found(void **state)
{
	char folder[] = "/tmp/scry-sysc-XXXXXX", path[128];
	static const char *const calls[][2] = {
		{"chdir", "\tfield:int __syscall_nr;\toffset:8;\n\tfield:const char * filename;\toffset:16;\tsize:8;\n"},
		{"newuname", "\tfield:struct new_utsname * name;\toffset:16;\n"},
		{"rmdir", "\tfield:const char * path;\toffset:16;\tsize:8;\n\tfield:int flags;\toffset:24;\tsize:8;\n"},
	};
	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/sys_enter_%s", folder, calls[i][0]);
		assert_return_code(mkdir(path, 0700), 0);
		snprintf(path + strlen(path), sizeof(path) - strlen(path), "/format");
		FILE *f = fopen(path, "w");
		fputs(calls[i][1], f);
		fclose(f);
	}
	struct differences all = {0};
	assert_int_equal(sysc_check(folder, on_difference, &all), 3);
	assert_int_equal(all.cnt, 1);
	assert_string_equal(all.last, "rmdir 2 0");
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/sys_enter_%s/format", folder, calls[i][0]);
		unlink(path);
		*strrchr(path, '/') = 0;
		rmdir(path);
	}
	rmdir(folder);
}

/* The arguments of the running kernel: as many as in the table, with those names. A kernel that is newer or older than the table may
 * rename one; a table that is wrong would differ in many. */
static void test_arguments_are_this_kernels(void **state)
{
	const char *folder = sysc_check_folder();
	if (!folder) {
		print_message("SKIP: tracefs is not mounted, so the kernel's formats cannot be compared\n");
		skip();
	}
	struct differences all = {0};
	size_t seen = sysc_check(folder, on_difference, &all);
	assert_true(seen > 250);
	assert_true(all.of_count * 100 <= seen * 2 && all.cnt * 100 <= seen * 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_lookup),
		cmocka_unit_test(test_args_are_sound),
		cmocka_unit_test(test_resolve),
		cmocka_unit_test(test_sets),
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_numbers_are_this_machines),
		cmocka_unit_test(test_differences_are_found),
		cmocka_unit_test(test_arguments_are_this_kernels),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
