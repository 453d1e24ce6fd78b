/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resources: scry://DB/WHAT. Each is an operation's answer within the budget; when that is not all, its `next` is a cursor for the tool list.
 * Who subscribed is told that the revision moved, each resource at most once in MCP_COALESCE_MS.
 */
#include "mcp/mcp_int.h"

#include <string.h>

#define MCP_COALESCE_NS 200000000

static const struct { const char *what, *op, *help; } kinds[] = {
	{"info", "info", "what the file is"},
	{"functions", "functions", "the functions found"},
	{"types", "types", "the C types"},
	{"journal", "journal", "who changed what, and when"},
};

/* --- addresses --- */

static void put_encoded(struct buf *out, const char *s)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
	for (; *s; s++) {
		if (strchr(plain, *s)) {
			buf_add_ch(out, *s);
			continue;
		}
		buf_add_ch(out, '%');
		buf_add_hex(out, (uint8_t)*s, 2);
	}
}

static int digit(char ch)
{
	return ch >= '0' && ch <= '9' ? ch - '0' : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : ch >= 'A' && ch <= 'F' ? ch - 'A' + 10 : -1;
}

/* Null when it is not percent-encoded right (RFC 3986, 2.1), or has a NUL. */
static char *decode(const char *s, size_t len, struct arena *a)
{
	char *out = arena_strndup(a, s, len);
	size_t n = 0;
	for (size_t i = 0; out && i < len; i++, n++) {
		out[n] = s[i];
		if (s[i] != '%')
			continue;
		if (len - i < 3 || digit(s[i + 1]) < 0 || digit(s[i + 2]) < 0 || (s[i + 1] == '0' && s[i + 2] == '0'))
			return NULL;
		out[n] = (char)(digit(s[i + 1]) << 4 | digit(s[i + 2]));
		i += 2;
	}
	if (out)
		out[n] = 0;
	return out;
}

struct resource { struct mcp_db *db; const char *op; const char *addr; /* null: none */ };

/* scry://DB/WHAT or scry://DB/func/ADDR. */
static struct err *find(struct mcp *m, const char *uri, struct arena *a, struct resource *ret)
{
	static const char scheme[] = "scry://";
	*ret = (struct resource){0};
	const char *at = strncmp(uri, scheme, sizeof(scheme) - 1) ? NULL : uri + sizeof(scheme) - 1;
	const char *slash = at ? strchr(at, '/') : NULL;
	char *name = slash ? decode(at, (size_t)(slash - at), a) : NULL;
	struct err *e = name && *name ? mcp_db_find(m, name, &ret->db) : NULL;
	if (e)
		return e;
	for (size_t i = 0; ret->db && i < ARRAY_LEN(kinds); i++) {
		if (!strcmp(slash + 1, kinds[i].what))
			ret->op = kinds[i].op;
	}
	if (ret->db && !strncmp(slash + 1, "func/", 5) && slash[6]) {
		ret->op = "look";
		ret->addr = decode(slash + 6, strlen(slash + 6), a);
	}
	bool is_good = ret->op && (strcmp(ret->op, "look") || ret->addr);
	return is_good ? NULL : err_fix(err_new(ERR_NOT_FOUND, "%s: there is no such resource", uri), "resources/list lists them");
}

static const char *uri_of(const struct ops_doc *params)
{
	const struct ops_doc *uri = mcp_param(params, "uri");
	return uri && uri->kind == OPS_DOC_STRING && strlen(uri->s) == uri->len ? uri->s : NULL;
}

/* --- listing --- */

static void put_member(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	json_str(j, value);
}

static void put_one(struct json *j, const struct mcp_db *db, size_t kind)
{
	struct buf uri = {0}, name = {0};
	buf_add_str(&uri, "scry://");
	put_encoded(&uri, db->name);
	buf_printf(&uri, "/%s", kinds[kind].what);
	buf_printf(&name, "%s %s", db->name, kinds[kind].what);
	json_obj(j);
	json_key(j, "uri");
	json_strn(j, uri.data ? uri.data : "", uri.len);
	json_key(j, "name");
	json_strn(j, name.data ? name.data : "", name.len);
	put_member(j, "description", kinds[kind].help);
	put_member(j, "mimeType", "application/json");
	json_end_obj(j);
	buf_fini(&uri);
	buf_fini(&name);
}

void mcp_put_resources(struct mcp *m, struct json *j)
{
	json_obj(j);
	json_key(j, "resources");
	json_arr(j);
	pthread_mutex_lock(&m->lock);
	for (uint32_t i = 0; i < m->db_cnt; i++) {
		for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
			put_one(j, m->dbs[i], k);
	}
	pthread_mutex_unlock(&m->lock);
	json_end_arr(j);
	json_end_obj(j);
}

void mcp_put_templates(const struct mcp *m, struct json *j)
{
	(void)m;
	json_obj(j);
	json_key(j, "resourceTemplates");
	json_arr(j);
	json_obj(j);
	put_member(j, "uriTemplate", "scry://{db}/func/{addr}");
	put_member(j, "name", "function");
	put_member(j, "description", "all that is known of a function: C, callers, callees, strings, types, comments");
	put_member(j, "mimeType", "application/json");
	json_end_obj(j);
	json_end_arr(j);
	json_end_obj(j);
}

/* --- reading --- */

struct err *mcp_read_resource(struct mcp_job *job, struct buf *out)
{
	struct mcp *m = job->m;
	const char *uri = uri_of(job->req.params);
	struct resource r;
	struct ops_doc addr = {.kind = OPS_DOC_STRING, .key = "addr"}, params = {.kind = OPS_DOC_OBJECT, .items = &addr};
	struct buf text = {0};
	if (!uri)
		return err_new(ERR_INVALID, "resources/read: uri is missing");
	struct err *e = find(m, uri, &job->arena, &r);
	if (e)
		return e;
	if (r.addr) {
		addr.s = r.addr;
		addr.len = strlen(r.addr);
		params.cnt = 1;
	}
	const struct mcp_ask ask = {.db = r.db, .op = r.op, .params = &params, .max_bytes = m->max_bytes, .wants_wait = true};
	e = mcp_run_op(job, &ask, &text);
	if (!e) {
		struct json j = json_make(out);
		json_obj(&j);
		json_key(&j, "contents");
		json_arr(&j);
		json_obj(&j);
		put_member(&j, "uri", uri);
		put_member(&j, "mimeType", "application/json");
		json_key(&j, "text");
		json_strn(&j, text.data, text.len);
		json_end_obj(&j);
		json_end_arr(&j);
		json_end_obj(&j);
	}
	buf_fini(&text);
	return e;
}

/* --- subscriptions --- */

static struct err *add_sub(struct mcp *m, const char *uri, struct mcp_db *db)
{
	struct ses_snap *sn = ses_snap_get(db->s);
	uint64_t rev = ses_snap_rev(sn);
	bool is_first = true;
	ses_snap_put(sn);
	for (size_t i = 0; i < m->subs.cnt; i++) {
		is_first &= m->subs.data[i].db != db;
		if (!strcmp(m->subs.data[i].uri, uri))
			return NULL;
	}
	if (m->subs.cnt >= MCP_SUBS_MAX)
		return err_new(ERR_BUDGET, "resources/subscribe: at most %d at once", MCP_SUBS_MAX);
	struct mcp_sub sub = {.uri = strdup(uri), .db = db};
	if (!sub.uri || !VEC_PUSH(&m->subs, sub)) {
		free(sub.uri);
		return &err_nomem;
	}
	if (is_first)
		db->told_rev = rev;
	return NULL;
}

struct err *mcp_subscribe(struct mcp *m, const struct ops_doc *params, bool is_wanted)
{
	const char *uri = uri_of(params);
	struct resource r;
	struct arena a = {0};
	if (!uri)
		return err_new(ERR_INVALID, "resources/subscribe: uri is missing");
	struct err *e = find(m, uri, &a, &r);
	arena_fini(&a);
	if (e)
		return e;
	if (is_wanted)
		return add_sub(m, uri, r.db);
	for (size_t i = 0; i < m->subs.cnt; i++) {
		if (strcmp(m->subs.data[i].uri, uri))
			continue;
		free(m->subs.data[i].uri);
		m->subs.data[i--] = m->subs.data[--m->subs.cnt];
	}
	return NULL;
}

/* Marks what a database's new revision may have changed. */
static void look_for_news(struct mcp *m, struct mcp_db *db, uint64_t now_ns)
{
	struct ses_snap *sn = ses_snap_get(db->s);
	uint64_t rev = ses_snap_rev(sn);
	bool is_pending = ses_snap_is_pending(sn);
	ses_snap_put(sn);
	if (rev == db->told_rev && is_pending == db->was_pending)
		return;
	db->told_rev = rev;
	db->was_pending = is_pending;
	for (size_t i = 0; i < m->subs.cnt; i++) {
		if (m->subs.data[i].db == db && !m->subs.data[i].due_ns)
			m->subs.data[i].due_ns = now_ns + MCP_COALESCE_NS;
	}
}

static void tell(struct mcp *m, struct mcp_sub *sub)
{
	struct buf params = {0};
	struct json j = json_make(&params);
	json_obj(&j);
	put_member(&j, "uri", sub->uri);
	json_end_obj(&j);
	mcp_notify(m, "notifications/resources/updated", params.data ? params.data : "", params.len);
	sub->due_ns = 0;
	buf_fini(&params);
}

uint64_t mcp_tell_news(struct mcp *m, uint64_t now_ns)
{
	uint64_t next = 0;
	pthread_mutex_lock(&m->lock);
	uint32_t cnt = m->db_cnt;
	pthread_mutex_unlock(&m->lock);
	for (uint32_t i = 0; m->subs.cnt && i < cnt; i++)
		look_for_news(m, m->dbs[i], now_ns);
	for (size_t i = 0; i < m->subs.cnt; i++) {
		struct mcp_sub *sub = &m->subs.data[i];
		if (sub->due_ns && sub->due_ns <= now_ns)
			tell(m, sub);
		else if (sub->due_ns)
			next = next ? MIN(next, sub->due_ns) : sub->due_ns;
	}
	return next;
}
