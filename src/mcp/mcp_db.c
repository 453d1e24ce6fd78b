/* SPDX-License-Identifier: Apache-2.0 */
/* Open targets. One is named by the last part of its path, a second of that name gets a number. */
#include "mcp/mcp_int.h"
#include "session/project.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool has_name(const struct mcp *m, const char *name)
{
	for (uint32_t i = 0; i < m->db_cnt; i++) {
		if (!strcmp(m->dbs[i]->name, name))
			return true;
	}
	return false;
}

static char *make_name(const struct mcp *m, const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash && slash[1] ? slash + 1 : path;
	size_t len = strlen(base) + 16;
	char *name = malloc(len);
	for (unsigned n = 1; name; n++) {
		snprintf(name, len, n > 1 ? "%s.%u" : "%s", base, n);
		if (!has_name(m, name))
			break;
	}
	return name;
}

static struct mcp_db *find(const struct mcp *m, const char *name)
{
	for (uint32_t i = 0; i < m->db_cnt; i++) {
		if (!strcmp(m->dbs[i]->name, name) || !strcmp(m->dbs[i]->path, name))
			return m->dbs[i];
	}
	return NULL;
}

static void db_free(struct mcp_db *db)
{
	if (!db)
		return;
	/* A project's session is closed with the project. */
	if (!db->is_of_project)
		ses_close(db->s);
	free(db->name);
	free(db->path);
	free(db);
}

/* Another thread may have opened the same in the meantime. */
static struct err *add(struct mcp *m, struct mcp_db *db, bool *ret_is_new, struct mcp_db **ret)
{
	struct err *e = NULL;
	pthread_mutex_lock(&m->lock);
	struct mcp_db *was = find(m, db->path);
	if (!was && !db->name)
		db->name = make_name(m, db->path);
	if (!was && m->db_cnt == MCP_DBS_MAX)
		e = err_new(ERR_BUDGET, "open: at most %d files at once", MCP_DBS_MAX);
	else if (!was && !db->name)
		e = &err_nomem;
	else if (!was)
		m->dbs[m->db_cnt++] = db;
	pthread_mutex_unlock(&m->lock);
	*ret_is_new = !e && !was;
	*ret = was ? was : db;
	if (e || was)
		db_free(db);
	return e;
}

struct err *mcp_db_open(struct mcp *m, const char *path, bool *ret_is_new, struct mcp_db **ret)
{
	char *real = realpath(path, NULL);
	struct mcp_db *db = calloc(1, sizeof(*db));
	const struct ses_opts opts = {.background = true, .no_store = m->no_store};
	if (!db) {
		free(real);
		return &err_nomem;
	}
	*ret_is_new = false;
	db->path = real ? real : strdup(path);
	pthread_mutex_lock(&m->lock);
	*ret = db->path ? find(m, db->path) : NULL;
	pthread_mutex_unlock(&m->lock);
	if (*ret || !db->path) {
		struct err *none = db->path ? NULL : &err_nomem;
		db_free(db);
		return none;
	}
	struct err *e = ses_open(path, &opts, &db->s);
	if (e) {
		db_free(db);
		return e;
	}
	return add(m, db, ret_is_new, ret);
}

/* One of the project's; takes no time where nobody asks: it is opened in the background. */
static struct err *add_binary(struct mcp *m, const struct ses_binary *b, uint32_t i)
{
	struct mcp_db *db = calloc(1, sizeof(*db)), *unused;
	bool is_new;
	if (!db)
		return &err_nomem;
	*db = (struct mcp_db){.is_of_project = true, .binary = i, .path = strdup(*b->found ? b->found : b->path), .name = strdup(b->label)};
	struct err *e = db->path && db->name ? ses_project_get(m->project, i, &db->s) : &err_nomem;
	if (!e)
		return add(m, db, &is_new, &unused);
	db_free(db);
	return e;
}

struct err *mcp_db_open_project(struct mcp *m, const char *file)
{
	const struct ses_project_opts o = {.file = file, .no_store = m->no_store, .background = true, .event_fd = -1};
	struct err *e = ses_project_open(&o, &m->project);
	struct arena a = {0};
	uint32_t cnt = e ? 0 : ses_project_cnt(m->project);
	for (uint32_t i = 0; i < cnt && !e; i++) {
		struct ses_binary b;
		e = ses_project_binary(m->project, i, &a, &b);
		/* One that cannot be read is the project's to tell (project_list). */
		if (!e && b.state != SES_BINARY_FAILED)
			e = add_binary(m, &b, i);
	}
	arena_fini(&a);
	return e;
}

struct err *mcp_db_find(struct mcp *m, const char *name, struct mcp_db **ret)
{
	struct buf names = {0};
	struct err *e = NULL;
	pthread_mutex_lock(&m->lock);
	*ret = name ? find(m, name) : m->db_cnt == 1 ? m->dbs[0] : NULL;
	for (uint32_t i = 0; i < MIN(m->db_cnt, 20); i++)
		buf_printf(&names, "%s%s", i ? ", " : "", m->dbs[i]->name);
	buf_add_ch(&names, 0);
	bool has_none = !m->db_cnt;
	pthread_mutex_unlock(&m->lock);
	if (!*ret && names.failed)
		e = &err_nomem;
	else if (!*ret && has_none)
		e = err_fix(err_new(ERR_NOT_FOUND, "no file is open"), "the tool open opens one");
	else if (!*ret && name)
		e = err_fix(err_new(ERR_NOT_FOUND, "%s: no file of this name is open", name), "db is one of %s", names.data);
	else if (!*ret)
		e = err_fix(err_new(ERR_INVALID, "db: which file?"), "db is one of %s", names.data);
	buf_fini(&names);
	return e;
}

void mcp_dbs_close(struct mcp *m)
{
	for (uint32_t i = 0; i < m->db_cnt; i++)
		db_free(m->dbs[i]);
	m->db_cnt = 0;
	ses_project_close(m->project);
	m->project = NULL;
}

const char *mcp_db_state(const struct mcp_db *db)
{
	struct ses_progress p;
	ses_get_progress(db->s, &p);
	return p.state == SES_READY ? "ready" : p.state == SES_FAILED ? "failed" : "analysing";
}

struct err *mcp_db_snap(struct mcp_job *job, struct mcp_db *db, bool wants_wait, struct ses_snap **ret)
{
	if (wants_wait) {
		atomic_store(&job->waits_for, db);
		enum ses_state state = ses_wait(db->s, &job->cancel);
		atomic_store(&job->waits_for, NULL);
		if (state == SES_FAILED)
			return err_new(ERR_BAD_INPUT, "%s", ses_error_text(db->s));
		if (state != SES_READY)
			return err_new(ERR_CANCELLED, "cancelled");
	}
	*ret = ses_snap_get(db->s);
	return NULL;
}
