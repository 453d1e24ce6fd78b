/* SPDX-License-Identifier: Apache-2.0 */
/* What can be asked for besides the operations: each method once, with its parameters, from which `methods` and the checks come. */
#include "serve/serve_int.h"

#include "serve/tls.h"

#include <string.h>
#include <unistd.h>

#define PROTOCOL 1
#define NAME_MAX_LEN 64

static void put_str(struct json *j, const char *key, const char *s)
{
	json_key(j, key);
	json_str(j, s);
}

static void put_u64(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_u64(j, v);
}

static const char *state_name(enum ses_state s)
{
	static const char *const names[] = {[SES_IDENTIFYING] = "identifying", [SES_ANALYSING] = "analysing", [SES_READY] = "ready",
					    [SES_FAILED] = "failed"};
	return names[s];
}

void serve_put_db(struct json *j, struct serve_db *db)
{
	struct ses_progress p;
	struct ses_snap *sn = ses_snap_get(db->ses);
	ses_get_progress(db->ses, &p);
	json_obj(j);
	put_u64(j, "id", db->id);
	put_str(j, "path", db->path);
	put_str(j, "state", state_name(p.state));
	put_u64(j, "rev", ses_snap_rev(sn));
	if (ses_snap_is_pending(sn)) {
		json_key(j, "pending");
		json_bool(j, true);
	}
	if (p.state == SES_FAILED)
		put_str(j, "why", ses_error_text(db->ses));
	json_end_obj(j);
	ses_snap_put(sn);
}

static struct err *put_dbs(struct serve *s, struct json *j)
{
	struct serve_db **all = alloc_array(SERVE_DB_MAX, sizeof(struct serve_db *));
	if (!all)
		return &err_nomem;
	size_t cnt = serve_db_all(s, all);
	json_arr(j);
	for (size_t i = 0; i < cnt; i++) {
		serve_put_db(j, all[i]);
		serve_db_unref(all[i]);
	}
	json_end_arr(j);
	free(all);
	return NULL;
}

static void put_caps(struct json *j, uint32_t caps)
{
	json_arr(j);
	for (unsigned i = 0; ses_cap_name(i); i++) {
		if (caps & 1u << i)
			json_str(j, ses_cap_name(i));
	}
	json_end_arr(j);
}

/* --- ping, methods ---------------------------------------------------------------------------------------------------- */

static struct err *run_ping(struct serve_req *r, struct json *j)
{
	json_obj(j);
	json_end_obj(j);
	return NULL;
}

/* Of an operation's parameter `p` says what it may be, too: one of some words, or several at once. */
static void put_param(struct json *j, const struct serve_param *q, const struct ops_param *p)
{
	json_obj(j);
	put_str(j, "name", q->name);
	put_str(j, "type", q->type);
	json_key(j, "required");
	json_bool(j, q->is_required);
	if (p && p->is_repeated) {
		json_key(j, "list");
		json_bool(j, true);
	}
	if (p && p->type == OPS_CHOICE) {
		json_key(j, "choices");
		json_arr(j);
		for (const char *c = p->choices; *c;) {
			size_t n = strcspn(c, "|");
			json_strn(j, c, n);
			c += n + (c[n] == '|');
		}
		json_end_arr(j);
	}
	put_str(j, "help", q->help);
	json_end_obj(j);
}

static void put_op(struct json *j, const struct ops_op *op)
{
	static const char *const types[] = {[OPS_FLAG] = "boolean", [OPS_STRING] = "string", [OPS_INT] = "integer", [OPS_ADDR] = "address",
					    [OPS_FUNC] = "function", [OPS_CHOICE] = "choice", [OPS_PATH] = "path", [OPS_JSON] = "any"};
	json_obj(j);
	put_str(j, "name", op->name);
	put_str(j, "help", op->help);
	json_key(j, "capability");
	put_caps(j, op->cap);
	json_key(j, "database");
	json_bool(j, op->needs_target);
	json_key(j, "params");
	json_arr(j);
	for (const struct ops_param *p = op->params; p->name; p++) {
		const struct serve_param q = {p->name, types[p->type], p->help, p->is_required};
		put_param(j, &q, p);
	}
	json_end_arr(j);
	json_end_obj(j);
}

static void put_method(struct json *j, const struct serve_method *m)
{
	json_obj(j);
	put_str(j, "name", m->name);
	put_str(j, "help", m->help);
	json_key(j, "params");
	json_arr(j);
	for (const struct serve_param *p = m->params; p->name; p++)
		put_param(j, p, NULL);
	json_end_arr(j);
	json_end_obj(j);
}

static struct err *run_methods(struct serve_req *r, struct json *j);

/* --- who asks ------------------------------------------------------------------------------------------------------------ */

static struct err *take_name(struct serve_conn *c, const struct ops_doc *v)
{
	if (!v->len || v->len > NAME_MAX_LEN)
		return err_new(ERR_INVALID, "client: 1 to %d bytes", NAME_MAX_LEN);
	for (size_t i = 0; i < v->len; i++) {
		if ((uint8_t)v->s[i] < 0x20 || v->s[i] == 0x7f)
			return err_new(ERR_INVALID, "client: has control characters");
	}
	if (c->author && strcmp(c->author, v->s))
		return err_new(ERR_DENIED, "client: this connection is %s's", c->author);
	if (!c->author)
		c->author = strdup(v->s);
	return c->author ? NULL : &err_nomem;
}

static struct err *take_kind(const struct serve_conn *c, const struct ops_doc *v, const char **ret)
{
	static const char *const kinds[] = {"human", "agent", "script"};
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (strcmp(v->s, kinds[i]))
			continue;
		if (c->author && strcmp(c->author_kind, v->s))
			return err_new(ERR_DENIED, "kind: this connection is a %s's", c->author_kind);
		*ret = kinds[i];
		return NULL;
	}
	return err_new(ERR_INVALID, "kind: '%s' is none of human, agent, script", v->s);
}

static struct err *take_caps(const struct ops_doc *list, uint32_t *ret)
{
	*ret = 0;
	for (size_t i = 0; i < list->cnt; i++) {
		const struct ops_doc *v = &list->items[i];
		uint32_t cap = v->kind == OPS_DOC_STRING ? ses_cap_find(v->s) : 0;
		if (!cap)
			return err_new(ERR_INVALID, "caps: %s is no capability", v->kind == OPS_DOC_STRING ? v->s : "what is no string");
		*ret |= cap;
	}
	return NULL;
}

/* An agent that does not say what it needs reads and edits. Nothing is given that was not there before. */
static struct err *run_hello(struct serve_req *r, struct json *j)
{
	struct serve_conn *c = r->conn;
	const struct ops_doc *client = serve_arg(r, "client"), *kind = serve_arg(r, "kind"), *caps = serve_arg(r, "caps");
	const struct ops_doc *token = serve_arg(r, "token");
	const char *as = c->author_kind;
	uint32_t wants = ~0u;
	if (c->needs_token && !(token && serve_same_token(r->serve->token, token->s, token->len))) {
		c->is_refused = true;
		return err_new(ERR_DENIED, "hello: the token is not the one of this server");
	}
	c->needs_token = false;
	struct err *e = kind ? take_kind(c, kind, &as) : NULL;
	if (!e && caps)
		e = take_caps(caps, &wants);
	else if (!e && kind && !strcmp(as, "agent"))
		wants = SES_CAP_READ | SES_CAP_EDIT;
	if (!e && client)
		e = take_name(c, client);
	if (e)
		return e;
	c->author_kind = as;
	c->caps &= wants;
	json_obj(j);
	put_str(j, "server", "scry");
	put_str(j, "version", SCRY_VERSION);
	put_u64(j, "protocol", PROTOCOL);
	put_u64(j, "pid", (uint64_t)getpid());
	json_key(j, "client");
	if (c->author)
		json_str(j, c->author);
	else
		json_null(j);
	put_str(j, "kind", c->author_kind);
	json_key(j, "caps");
	put_caps(j, c->caps);
	json_key(j, "databases");
	e = put_dbs(r->serve, j);
	json_end_obj(j);
	return e;
}

/* --- databases ------------------------------------------------------------------------------------------------------------- */

static struct err *run_databases(struct serve_req *r, struct json *j)
{
	json_obj(j);
	json_key(j, "items");
	struct err *e = put_dbs(r->serve, j);
	json_end_obj(j);
	return e;
}

static struct err *need_db(struct serve_req *r)
{
	if (!r->db && r->conn->db)
		r->db = serve_db_ref(r->conn->db);
	if (!r->db)
		r->db = serve_db_first(r->serve);
	return r->db ? NULL : err_new(ERR_NOT_FOUND, "no database is open");
}

static struct err *run_use(struct serve_req *r, struct json *j)
{
	struct serve_conn *c = r->conn;
	struct err *e = need_db(r);
	if (e)
		return e;
	serve_db_unref(c->db);
	c->db = serve_db_ref(r->db);
	serve_put_db(j, r->db);
	return NULL;
}

static struct err *run_close(struct serve_req *r, struct json *j)
{
	struct serve_conn *c = r->conn;
	struct err *e = need_db(r);
	size_t i = 0;
	if (e)
		return e;
	while (i < c->opened.cnt && c->opened.data[i] != r->db)
		i++;
	if (i == c->opened.cnt)
		return err_new(ERR_NOT_FOUND, "%s: this connection did not open it", r->db->path);
	(void)serve_feed_del(c, r->db);
	c->opened.data[i] = c->opened.data[--c->opened.cnt];
	if (c->db == r->db) {
		serve_db_unref(c->db);
		c->db = NULL;
	}
	serve_db_close(r->db);
	json_obj(j);
	put_u64(j, "closed", r->db->id);
	json_end_obj(j);
	serve_db_unref(r->db);
	return NULL;
}

void serve_open_answer(struct serve_req *r, struct buf *out)
{
	struct ses_progress p = {0};
	if (r->db)
		ses_get_progress(r->db->ses, &p);
	if (p.state == SES_FAILED && !r->err)
		r->err = err_new(ERR_BAD_INPUT, "%s: %s", r->db->path, ses_error_text(r->db->ses));
	if (r->err || !r->rq.id) {
		r->code = RPC_FAILED;
		serve_req_refuse(r, out);
		return;
	}
	struct json j = json_make(out);
	rpc_begin_result(out, r->rq.id);
	serve_put_db(&j, r->db);
	rpc_end_result(out, NULL);
}

/* --- the rest ---------------------------------------------------------------------------------------------------------------- */

static struct err *run_subscribe(struct serve_req *r, struct json *j)
{
	struct err *e = need_db(r);
	if (e)
		return e;
	struct ses_snap *sn = ses_snap_get(r->db->ses);
	uint64_t rev = ses_snap_rev(sn);
	ses_snap_put(sn);
	const struct ops_doc *since = serve_arg(r, "since");
	if (since && (since->num < 0 || (uint64_t)since->num > rev))
		return err_new(ERR_STALE, "since: revision %lld is not there yet, this is %llu", (long long)since->num, (unsigned long long)rev);
	e = serve_feed_add(r->conn, r->db, since ? (uint64_t)since->num : rev);
	if (e)
		return e;
	json_obj(j);
	put_u64(j, "database", r->db->id);
	put_u64(j, "rev", rev);
	json_end_obj(j);
	return NULL;
}

static struct err *run_unsubscribe(struct serve_req *r, struct json *j)
{
	struct err *e = need_db(r);
	if (!e && !serve_feed_del(r->conn, r->db))
		e = err_new(ERR_NOT_FOUND, "%s: this connection is not subscribed to it", r->db->path);
	if (e)
		return e;
	json_obj(j);
	put_u64(j, "database", r->db->id);
	json_end_obj(j);
	return NULL;
}

/* What it does is done before its answer is begun: it answers others (conn.c). */
static struct err *run_cancel(struct serve_req *r, struct json *j)
{
	json_obj(j);
	json_end_obj(j);
	return NULL;
}

static const struct serve_method methods[] = {
	{"ping", "nothing, and how long that takes", false, {{0}}, run_ping},
	{"hello", "who asks, in whose name edits are made; gives up capabilities", true,
	 {{"client", "string", "the name of the author of edits", false}, {"kind", "string", "human, agent or script (script)", false},
	  {"caps", "list", "all it wants to keep, of: read edit run-code run-target trace write-files net", false},
	  {"token", "string", "over TLS: the token", false}, {0}},
	 run_hello},
	{"methods", "every method with its parameters", false, {{0}}, run_methods},
	{"databases", "the databases that are open", false, {{0}}, run_databases},
	{"open", "opens a file; answers when it is analysed", true,
	 {{"file", "string", "its path, or sha256: and its hash", true}, {"wait", "boolean", "until it is analysed (true)", false},
	  {"processor", "string", "as what to read it", false}, {"base", "string", "where it is loaded", false}, {"format", "string", "raw", false}},
	 NULL},
	{"close", "of a database this connection opened, one opener less; with the last it is put away", true, {{0}}, run_close},
	{"use", "the database that is meant when none is named", true, {{0}}, run_use},
	{"subscribe", "events `changed` from now on, or from a revision", true, {{"since", "integer", "the last revision that is known", false}, {0}},
	 run_subscribe},
	{"unsubscribe", "no more of them", true, {{0}}, run_unsubscribe},
	{"cancel", "gives up a request of this connection", false, {{"id", "any", "its id", true}, {0}}, run_cancel},
};

static struct err *run_methods(struct serve_req *r, struct json *j)
{
	size_t cnt;
	const struct ops_op *ops = ops_table(&cnt);
	json_obj(j);
	json_key(j, "methods");
	json_arr(j);
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		put_method(j, &methods[i]);
	for (size_t i = 0; i < cnt; i++) {
		if (ops_is_served(&ops[i]))
			put_op(j, &ops[i]);
	}
	json_end_arr(j);
	json_end_obj(j);
	return NULL;
}

const struct serve_method *serve_method_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if (*methods[i].name == *name && !strcmp(methods[i].name, name))
			return &methods[i];
	}
	return NULL;
}

/* --- parameters ---------------------------------------------------------------------------------------------------------------- */

static bool is_type(const struct ops_doc *v, const char *type)
{
	bool is_string = v->kind == OPS_DOC_STRING && strlen(v->s) == v->len;
	switch (*type) {
	case 's':
		return is_string;
	case 'i':
		return v->kind == OPS_DOC_INT;
	case 'b':
		return v->kind == OPS_DOC_BOOL;
	case 'l':
		return v->kind == OPS_DOC_LIST;
	default:
		return is_string || v->kind == OPS_DOC_INT;
	}
}

static const struct serve_param *param_of(const struct serve_method *m, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(m->params) && m->params[i].name; i++) {
		if (!strcmp(m->params[i].name, name))
			return &m->params[i];
	}
	return NULL;
}

const struct ops_doc *serve_arg(const struct serve_req *r, const char *name)
{
	return r->rq.params && r->rq.params->kind == OPS_DOC_OBJECT ? ops_doc_find(r->rq.params, name) : NULL;
}

struct err *serve_method_check(struct serve_req *r)
{
	const struct ops_doc *p = r->rq.params;
	struct err *e = NULL;
	if (p && p->kind != OPS_DOC_OBJECT && p->cnt)
		return err_fix(err_new(ERR_INVALID, "%s: takes its parameters by name", r->m->name), "{\"NAME\":VALUE}");
	for (size_t i = 0; p && i < p->cnt && !e; i++) {
		const struct serve_param *q = param_of(r->m, p->items[i].key);
		if (!q)
			e = err_new(ERR_INVALID, "%s: has no parameter %s", r->m->name, p->items[i].key);
		else if (!is_type(&p->items[i], q->type))
			e = err_new(ERR_INVALID, "%s: %s is a %s", r->m->name, q->name, q->type);
	}
	for (size_t i = 0; !e && i < ARRAY_LEN(r->m->params) && r->m->params[i].name; i++) {
		if (r->m->params[i].is_required && !serve_arg(r, r->m->params[i].name))
			e = err_new(ERR_INVALID, "%s: %s is missing", r->m->name, r->m->params[i].name);
	}
	return e ? err_fix(e, "methods lists the parameters") : NULL;
}
