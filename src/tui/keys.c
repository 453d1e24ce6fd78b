/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/keymap.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "session/ops.h"
#include "tui/tui.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where keys come from: presets beside the program, the person's own file over them. */

bool tui_keys_path(char *out, size_t cap)
{
	const char *config = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");
	if (config && *config == '/')
		return (size_t)snprintf(out, cap, "%s/scry/keys", config) < cap;
	return home && *home == '/' && (size_t)snprintf(out, cap, "%s/.config/scry/keys", home) < cap;
}

/* The file of a preset: installed beside the program, or in the tree it was built in. A name with a '/' is a file's. */
static bool preset_path(const char *name, char *out, size_t cap)
{
	static const char *const beside[] = {"../share/scry/keys", "../tui/keys"};
	char exe[PATH_MAX];
	if (strchr(name, '/'))
		return (size_t)snprintf(out, cap, "%s", name) < cap;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (n <= 0 || *name == '.')
		return false;
	exe[n] = '\0';
	char *slash = strrchr(exe, '/');
	*slash = '\0';
	bool is_built = slash - exe >= 9 && !strcmp(slash - 9, "/src/main");
	return (size_t)snprintf(out, cap, "%s/%s/%s", exe, beside[is_built], name) < cap;
}

bool tui_keys_are_unchosen(void)
{
	char path[PATH_MAX];
	const char *said = getenv("SCRY_KEYS");
	struct stat st;
	return !(said && *said) && tui_keys_path(path, sizeof(path)) && lstat(path, &st) && errno == ENOENT;
}

/* The person's own file; null where there is none. What is there and cannot be read, a link to nothing among it, is an error. */
static struct err *open_own(const char *path, struct file **ret)
{
	struct stat st;
	*ret = NULL;
	if (lstat(path, &st))
		return errno == ENOENT || errno == ENOTDIR ? NULL : err_os(errno, "your keys: %s", path);
	struct err *e = file_open(path, ret);
	bool is_dangling = e && S_ISLNK(st.st_mode) && access(path, F_OK);
	return is_dangling ? err_fix(err_prefix(e, "your keys are a link that leads nowhere"), "make the file it names, or remove the link") :
	       e ? err_prefix(e, "your keys") : NULL;
}

static struct err *add_file(struct tui_keymap *m, const char *path)
{
	struct file *f;
	struct err *e = file_open(path, &f);
	if (e)
		return e;
	e = tui_keymap_add(m, path, (const char *)f->data, f->len);
	file_close(f);
	return e;
}

/* `ida` is the table itself, should its file be missing. */
static struct err *add_preset(struct tui_keymap *m, const char *name)
{
	char path[PATH_MAX];
	bool has = preset_path(name, path, sizeof(path)) && !access(path, F_OK);
	if (!has && !strcmp(name, "ida"))
		return NULL;
	if (!has)
		return err_fix(err_new(ERR_NOT_FOUND, "%s: no such keys", name),
			       "there are ida, ghidra, binja, vim-strict, r2 and files named with a '/'");
	return add_file(m, path);
}

static void keep_first(struct err **first, struct err *e)
{
	if (*first)
		err_free(e);
	else
		*first = e;
}

struct err *tui_keys_load(const char *name, struct tui_keymap **ret)
{
	char path[PATH_MAX];
	char said[64] = "";
	struct file *own = NULL;
	struct err *e = NULL;
	if (name && !*name)
		name = NULL;
	*ret = tui_keymap_new();
	if (!*ret)
		return &err_nomem;
	if (tui_keys_path(path, sizeof(path)))
		e = open_own(path, &own);
	if (!name && own && tui_keymap_preset_of((const char *)own->data, own->len, said, sizeof(said)))
		name = said;
	if (name)
		keep_first(&e, add_preset(*ret, name));
	if (own)
		keep_first(&e, tui_keymap_add(*ret, path, (const char *)own->data, own->len));
	file_close(own);
	return e;
}

/* The other lines of the person's own file. */
static void keep_lines(struct buf *out, const char *text, size_t len)
{
	for (const char *end = text + len; text < end;) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((nl ? nl + 1 : end) - text);
		char name[64];
		if (!tui_keymap_preset_of(text, n, name, sizeof(name)))
			buf_add(out, text, n);
		text += n;
	}
}

struct err *tui_keys_choose(const char *name)
{
	char path[PATH_MAX];
	struct file *own = NULL;
	struct buf text = {0};
	if (!tui_keys_path(path, sizeof(path)))
		return err_new(ERR_ENV, "neither XDG_CONFIG_HOME nor HOME says where keys are kept");
	char *slash = strrchr(path, '/');
	*slash = '\0';
	struct err *e = file_make_dirs(path);
	*slash = '/';
	if (!e)
		e = open_own(path, &own);
	if (!e) {
		buf_printf(&text, "preset %s\n", name);
		if (own)
			keep_lines(&text, (const char *)own->data, own->len);
		e = text.failed ? &err_nomem : file_write_atomic(path, text.data, text.len);
	}
	file_close(own);
	buf_fini(&text);
	return e;
}

/* The table of keys as text, one action a line: what the help card shows, for a printer or a search. */
int tui_print_keys(const char *preset)
{
	struct tui_keymap *m;
	struct err *e = tui_keys_load(preset, &m);
	int status = 0;
	for (int g = 0; g < TUI_GROUP_COUNT && m; g++) {
		printf("%s# %s\n", g ? "\n" : "", tui_group_name((enum tui_group)g));
		for (int a = TUI_NONE + 1; a < TUI_ACTION_COUNT; a++) {
			const struct tui_action_info *info = tui_action_info((enum tui_action)a);
			const char *keys = tui_keymap_keys(m, (enum tui_action)a);
			if (info->group == g)
				printf("%-24s %-18s %s\n", *keys ? keys : "-", info->name, info->text);
		}
	}
	tui_keymap_free(m);
	if (ferror(stdout) || fflush(stdout))
		status = 5;
	return e ? ops_fail(e, NULL) : status;
}
