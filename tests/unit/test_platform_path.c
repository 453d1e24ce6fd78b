/* SPDX-License-Identifier: Apache-2.0 */
/* Names below a root folder: what is inside is reached, nothing outside is, by openat2(2) and by the walk alike. */
#include "live/platform/plat_path.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* base/in/... is the root's; base/secret is not. */
static char base[] = "/tmp/scry-unit-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", base, name);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void in_base(int (*make)(const char *), const char *name)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", base, name);
	assert_int_equal(make(path), 0);
}

static int make_dir(const char *path)
{
	return mkdir(path, 0755);
}

static void link_to(const char *text, const char *name)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", base, name);
	assert_int_equal(symlink(text, path), 0);
}

static int make_all(void **state)
{
	char text[256];
	assert_non_null(mkdtemp(base));
	in_base(make_dir, "in");
	in_base(make_dir, "in/sub");
	in_base(make_dir, "in/sub/deep");
	in_base(make_dir, "in/tmp");
	in_base(make_dir, "out");
	put("secret", "outside");
	put("out/file", "outside");
	put("in/file", "inside");
	put("in/sub/file", "inside");
	link_to("/file", "in/absolute");
	link_to("../../../../../file", "in/sub/up");
	link_to("sub", "in/dir");
	link_to("loop", "in/loop");
	link_to("nowhere", "in/dangling");
	snprintf(text, sizeof(text), "%s/secret", base);
	link_to(text, "in/escape");
	snprintf(text, sizeof(text), "%s/out", base);
	link_to(text, "in/escape_dir");
	link_to("../secret", "in/escape_up");
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int what, struct FTW *at)
{
	return remove(path);
}

static int remove_all(void **state)
{
	return nftw(base, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void begin(struct plat_root *r, bool walks)
{
	char path[64];
	snprintf(path, sizeof(path), "%s/in", base);
	assert_int_equal(plat_root_init(r, path), 0);
	r->has_no_openat2 = walks;
}

/* The text of the file, or "-errno". */
static void read_as(struct plat_root *r, const char *path, char ret[64])
{
	int fd = plat_open(r, path, O_RDONLY, 0);
	if (fd < 0) {
		snprintf(ret, 64, "%d", fd);
		return;
	}
	ssize_t n = read(fd, ret, 63);
	snprintf(ret + (n > 0 ? n : 0), 2, "%s", "");
	close(fd);
}

static void test_what_is_inside(void **state)
{
	static const char *const names[] = {"/file", "file", "/sub/file", "/sub/../file", "/../../../file", "../file", "/absolute", "/sub/up",
					    "/dir/file", "//sub///file", "/./sub/./file", "/dir/../file", "/sub/deep/../../dir/file"};
	for (int walks = 0; walks < 2; walks++) {
		struct plat_root r;
		begin(&r, walks);
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
			char text[64];
			read_as(&r, names[i], text);
			if (strcmp(text, "inside"))
				fail_msg("%s gives %s (walk: %d)", names[i], text, walks);
		}
		plat_root_fini(&r);
	}
}

static void test_what_is_not(void **state)
{
	static const struct {
		const char *name;
		int why;
	} names[] = {{"/escape", ENOENT}, {"/escape_dir/file", ENOENT}, {"/escape_up", ENOENT}, {"/secret", ENOENT}, {"/../secret", ENOENT},
		     {"/sub/../../secret", ENOENT}, {"/loop", ELOOP}, {"/dangling", ENOENT}, {"/file/", ENOTDIR}, {"/file/x", ENOTDIR}, {"", ENOENT},
		     {"/proc/self/root/etc/passwd", ENOENT}, {"/absolute/", ENOTDIR}};
	for (int walks = 0; walks < 2; walks++) {
		struct plat_root r;
		begin(&r, walks);
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
			int fd = plat_open(&r, names[i].name, O_RDONLY, 0);
			if (fd != -names[i].why)
				fail_msg("%s gives %d, not %d (walk: %d)", names[i].name, fd, -names[i].why, walks);
		}
		plat_root_fini(&r);
	}
}

static bool is_outside_whole(void)
{
	char path[64], text[16] = "";
	struct stat st;
	snprintf(path, sizeof(path), "%s/secret", base);
	FILE *f = fopen(path, "r");
	bool ok = f && fgets(text, sizeof(text), f) && !strcmp(text, "outside");
	if (f)
		fclose(f);
	snprintf(path, sizeof(path), "%s/out", base);
	return ok && stat(path, &st) == 0 && st.st_nlink == 2;
}

/* Making, changing and taking away, also where links lead out. */
static void test_changes(void **state)
{
	for (int walks = 0; walks < 2; walks++) {
		struct plat_root r;
		struct stat st;
		char text[PATH_MAX];
		begin(&r, walks);
		int fd = plat_open(&r, "/tmp/new", O_WRONLY | O_CREAT | O_EXCL, 0640);
		assert_true(fd >= 0);
		close(fd);
		assert_int_equal(plat_open(&r, "/tmp/new", O_WRONLY | O_CREAT | O_EXCL, 0640), -EEXIST);
		assert_int_equal(plat_chmod(&r, "/tmp/new", 0600), 0);
		assert_int_equal(plat_stat(&r, "tmp/new", false, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
		assert_int_equal(plat_unlink(&r, "/tmp/new"), 0);
		assert_int_equal(plat_unlink(&r, "/tmp/new"), -ENOENT);
		assert_int_equal(plat_mkdir(&r, "/tmp/d", 0755), 0);
		assert_int_equal(plat_mkdir(&r, "/tmp/d", 0755), -EEXIST);
		assert_int_equal(plat_mkdir(&r, "/escape_dir/d", 0755), -ENOENT);
		assert_int_equal(plat_mkdir(&r, "..", 0755), -EINVAL);
		assert_int_equal(plat_symlink(&r, "/etc/passwd", "/tmp/link"), 0);
		assert_int_equal(plat_readlink(&r, "/tmp/link", text), 11);
		assert_string_equal(text, "/etc/passwd");
		assert_int_equal(plat_readlink(&r, "/file", text), -EINVAL);
		assert_int_equal(plat_stat(&r, "/tmp/link", false, &st), -ENOENT);
		assert_int_equal(plat_stat(&r, "/tmp/link", true, &st), 0);
		/* A file made through a link that leads out is made nowhere. */
		fd = plat_open(&r, "/escape", O_WRONLY | O_CREAT | O_TRUNC, 0600);
		assert_true(fd < 0);
		fd = plat_open(&r, "/escape_up", O_WRONLY | O_CREAT | O_TRUNC, 0600);
		if (fd >= 0) { /* "../secret" from the root is /secret of the root */
			close(fd);
			assert_int_equal(plat_unlink(&r, "/secret"), 0);
		}
		assert_true(plat_chmod(&r, "/escape", 0777) < 0);
		assert_int_equal(plat_unlink(&r, "/tmp/link"), 0);
		snprintf(text, sizeof(text), "%s/in/tmp/d", base);
		assert_int_equal(rmdir(text), 0);
		assert_true(is_outside_whole());
		plat_root_fini(&r);
	}
}

static void test_names(void **state)
{
	for (int walks = 0; walks < 2; walks++) {
		struct plat_root r;
		char name[PATH_MAX];
		begin(&r, walks);
		assert_int_equal(plat_normal(&r, "/dir/./../sub//file", name), 0);
		assert_string_equal(name, "/sub/file");
		assert_int_equal(plat_normal(&r, "/dir/up", name), 0);
		assert_string_equal(name, "/sub/up"); /* a link at the end keeps its name */
		assert_int_equal(plat_normal(&r, "/..", name), 0);
		assert_string_equal(name, "/");
		assert_int_equal(plat_getcwd(&r, name), 0);
		assert_string_equal(name, "/");
		assert_int_equal(plat_chdir(&r, "/dir"), 0);
		assert_int_equal(plat_getcwd(&r, name), 0);
		assert_string_equal(name, "/sub");
		assert_int_equal(plat_normal(&r, "file", name), 0);
		assert_string_equal(name, "/sub/file");
		assert_int_equal(plat_chdir(&r, "/file"), -ENOTDIR);
		assert_int_equal(plat_chdir(&r, ""), 0);
		assert_int_equal(plat_getcwd(&r, name), 0);
		assert_string_equal(name, "/");
		plat_root_fini(&r);
	}
}

/* A folder that becomes a link to the outside and back, all the time. */
struct swapper {
	atomic_bool is_over;
	char dir[64], aside[64], link[64];
};

static void *swap(void *arg)
{
	struct swapper *s = arg;
	while (!atomic_load(&s->is_over)) {
		(void)!rename(s->dir, s->aside);
		(void)!symlink(s->link, s->dir);
		unlink(s->dir);
		(void)!rename(s->aside, s->dir);
	}
	return NULL;
}

static void test_folders_that_change(void **state)
{
	struct swapper s = {0};
	pthread_t thread;
	snprintf(s.dir, sizeof(s.dir), "%s/in/sub/deep", base);
	snprintf(s.aside, sizeof(s.aside), "%s/in/sub/aside", base);
	snprintf(s.link, sizeof(s.link), "%s/out", base);
	put("in/sub/deep/file", "inside");
	assert_int_equal(pthread_create(&thread, NULL, swap, &s), 0);
	for (int walks = 0; walks < 2; walks++) {
		struct plat_root r;
		begin(&r, walks);
		for (int i = 0; i < 3000; i++) {
			char text[64];
			read_as(&r, i & 1 ? "/sub/deep/file" : "/sub/deep/../deep/../../sub/deep/file", text);
			assert_string_not_equal(text, "outside");
			read_as(&r, "/sub/deep/../../../secret", text);
			assert_string_not_equal(text, "outside");
		}
		plat_root_fini(&r);
	}
	atomic_store(&s.is_over, true);
	pthread_join(thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_inside),
		cmocka_unit_test(test_what_is_not),
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_folders_that_change),
	};
	return cmocka_run_group_tests(tests, make_all, remove_all);
}
