/* SPDX-License-Identifier: Apache-2.0 */
/* Packets about the machine and its files as modules: what LLDB asks a platform. */
#include "live/platform/plat_conn.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "live/platform/plat_json.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#define NAMES_MAX 4096    /* of one completion */
#define SPEED_MAX (16u << 20)

static void put_host_info(struct plat_conn *c, struct gdb_span args)
{
	struct utsname u;
	c->is_lldb = true;
	char id[64] = "linux", line[256];
	if (uname(&u) < 0)
		memset(&u, 0, sizeof(u));
	FILE *f = fopen("/etc/os-release", "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "ID=%63[a-z0-9._-]", id) == 1)
			break;
	if (f)
		fclose(f);
	buf_add_str(&c->out, "triple:");
	plat_put_hextext(&c->out, "x86_64-unknown-linux-gnu");
	buf_printf(&c->out, ";ptrsize:8;endian:little;watchpoint_exceptions_received:after;os_version:%.*s;os_build:",
		   (int)strspn(u.release, "0123456789."), u.release);
	plat_put_hextext(&c->out, u.release);
	buf_add_str(&c->out, ";os_kernel:");
	plat_put_hextext(&c->out, u.version);
	buf_add_str(&c->out, ";hostname:");
	plat_put_hextext(&c->out, u.nodename);
	buf_add_str(&c->out, ";distribution_id:");
	plat_put_hextext(&c->out, id);
	buf_add_str(&c->out, ";default_packet_timeout:30;");
}

static void do_getcwd(struct plat_conn *c, struct gdb_span args)
{
	char path[PATH_MAX];
	int status = plat_getcwd(&c->root, path);
	if (status < 0)
		plat_errno(c, -status);
	else
		plat_put_hextext(&c->out, path);
}

static void do_chdir(struct plat_conn *c, struct gdb_span args)
{
	char path[PATH_MAX];
	int status = plat_text(args, path, sizeof(path)) ? plat_chdir(&c->root, path) : -EINVAL;
	if (status < 0)
		plat_errno(c, -status);
	else
		plat_ok(c);
}

/* --- modules -------------------------------------------------------------------------------------------------------- */

static void do_module(struct plat_conn *c, struct gdb_span args)
{
	char path[PATH_MAX], triple[256];
	struct plat_module m;
	struct gdb_span name, rest;
	if (!gdb_split(args, ';', &name, &rest) || !plat_text(name, path, sizeof(path)) || !plat_text(rest, triple, sizeof(triple))) {
		plat_error(c, 1, "malformed packet");
		return;
	}
	int status = plat_module_read(&c->root, path, gdb_span_make(triple, strlen(triple)), &m);
	if (status < 0) {
		plat_errno(c, -status);
		return;
	}
	buf_add_str(&c->out, "uuid:");
	plat_put_hextext(&c->out, m.uuid);
	buf_add_str(&c->out, ";triple:");
	snprintf(triple, sizeof(triple), "%s-unknown-linux-gnu", m.arch);
	plat_put_hextext(&c->out, triple);
	buf_add_str(&c->out, ";file_path:");
	plat_put_hextext(&c->out, m.path);
	buf_add_str(&c->out, ";file_offset:0;file_size:");
	buf_add_hex(&c->out, m.len, 1);
	buf_add_ch(&c->out, ';');
}

struct modules {
	struct plat_conn *c;
	struct json json;
};

static void put_module(void *ctx, const char *path, const char *triple)
{
	struct modules *all = ctx;
	struct json *j = &all->json;
	struct plat_module m;
	char text[64];
	if (plat_module_read(&all->c->root, path, gdb_span_make(triple, strlen(triple)), &m) < 0)
		return;
	snprintf(text, sizeof(text), "%s-unknown-linux-gnu", m.arch);
	json_obj(j);
	json_key(j, "uuid");
	json_str(j, m.uuid);
	json_key(j, "triple");
	json_str(j, text);
	json_key(j, "file_path");
	json_str(j, m.path);
	json_key(j, "file_offset");
	json_u64(j, 0);
	json_key(j, "file_size");
	json_u64(j, m.len);
	json_end_obj(j);
}

static void do_modules(struct plat_conn *c, struct gdb_span args)
{
	c->scratch.len = 0;
	struct modules all = {c, json_make(&c->scratch)};
	json_arr(&all.json);
	bool is_list = plat_json_modules(args.s, args.len, put_module, &all);
	json_end_arr(&all.json);
	if (is_list)
		gdb_escape(&c->out, c->scratch.data, c->scratch.len);
	else
		plat_error(c, EINVAL, "malformed packet");
}

/* --- names ---------------------------------------------------------------------------------------------------------- */

static void do_user(struct plat_conn *c, struct gdb_span args)
{
	uint64_t id;
	struct passwd pw, *found = NULL;
	char text[4096];
	if (gdb_is_dec(args, &id) && id <= UINT32_MAX && !getpwuid_r((uid_t)id, &pw, text, sizeof(text), &found) && found)
		plat_put_hextext(&c->out, pw.pw_name);
	else
		plat_error(c, ENOENT, "there is no such user");
}

static void do_group(struct plat_conn *c, struct gdb_span args)
{
	uint64_t id;
	struct group gr, *found = NULL;
	char text[16384];
	if (gdb_is_dec(args, &id) && id <= UINT32_MAX && !getgrgid_r((gid_t)id, &gr, text, sizeof(text), &found) && found)
		plat_put_hextext(&c->out, gr.gr_name);
	else
		plat_error(c, ENOENT, "there is no such group");
}

/* ONLY_DIRS,HEXPREFIX -> M and names that begin so. */
static void do_complete(struct plat_conn *c, struct gdb_span args)
{
	char path[PATH_MAX], dir[PATH_MAX + 1];
	struct gdb_span field;
	uint64_t only_dirs;
	if (!gdb_next_field(&args, ',', &field) || !gdb_is_dec(field, &only_dirs) || !plat_text(args, path, sizeof(path))) {
		plat_error(c, EINVAL, "malformed packet");
		return;
	}
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	int dir_len = (int)(name - path);
	snprintf(dir, sizeof(dir), "%.*s", dir_len, path);
	int fd = plat_open(&c->root, dir_len ? dir : ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d && fd >= 0)
		close(fd);
	buf_add_ch(&c->out, 'M');
	unsigned cnt = 0;
	for (struct dirent *e = d ? readdir(d) : NULL; e && cnt < NAMES_MAX; e = readdir(d)) {
		bool is_hidden = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || (e->d_name[0] == '.' && name[0] != '.');
		struct stat st;
		char full[PATH_MAX + NAME_MAX + 2];
		if (is_hidden || strncmp(e->d_name, name, strlen(name)))
			continue;
		snprintf(full, sizeof(full), "%s%s", dir, e->d_name);
		bool is_dir = plat_stat(&c->root, full, false, &st) == 0 && S_ISDIR(st.st_mode);
		if (only_dirs && !is_dir)
			continue;
		if (cnt++)
			buf_add_ch(&c->out, ',');
		plat_put_hextext(&c->out, full);
		if (is_dir)
			buf_add_str(&c->out, "2f");
	}
	if (d)
		closedir(d);
}

/* --- the line ------------------------------------------------------------------------------------------------------- */

static void do_echo(struct plat_conn *c, struct gdb_span args)
{
	gdb_escape(&c->out, args.s, args.len);
}

static void do_speed(struct plat_conn *c, struct gdb_span args)
{
	uint64_t len = 0;
	gdb_skip(&args, "response_size:");
	if (!gdb_take_dec(&args, &len)) {
		plat_error(c, EINVAL, "malformed packet");
		return;
	}
	len = MIN(len, (uint64_t)SPEED_MAX);
	buf_add_str(&c->out, "data:");
	char *to = buf_room(&c->out, (size_t)len);
	if (to) {
		memset(to, 'a', (size_t)len);
		c->out.len += (size_t)len;
	}
}

const struct plat_packet plat_host_packets[] = {
	{"qHostInfo", put_host_info, 0},
	{"qGetWorkingDir", do_getcwd, 0},
	{"QSetWorkingDir:", do_chdir, PLAT_PREFIX},
	{"qModuleInfo:", do_module, PLAT_PREFIX},
	{"jModulesInfo:", do_modules, PLAT_PREFIX},
	{"qUserName:", do_user, PLAT_PREFIX},
	{"qGroupName:", do_group, PLAT_PREFIX},
	{"qPathComplete:", do_complete, PLAT_PREFIX},
	{"qEcho:", do_echo, PLAT_PREFIX | PLAT_WHOLE},
	{"qSpeedTest:", do_speed, PLAT_PREFIX},
	{0},
};
