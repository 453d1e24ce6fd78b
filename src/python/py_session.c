/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open target for Python. Any thread may use it; whatever takes time is done without the interpreter's lock. Closing waits for
 * nobody: what is still running keeps the session until it is through.
 */
#include "python/py_int.h"

#include "rpc/opcall.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>

/* Ctrl+C while something is analysed. */
struct interrupt {
	atomic_bool stop;
	PyObject *type, *error, *trace; /* what the signal's handler raised */
};

struct py_session {
	PyObject_HEAD
	struct ses *ses;
	pthread_mutex_t lock;   /* for the following */
	unsigned users;
	bool is_closed;
	pthread_mutex_t watch;  /* who looks for news */
	bool is_still;          /* a fork: the snapshot it began with is all it reads */
	const char *author_kind;
	struct interrupt interrupt;
};

static struct py_session *of(PyObject *self)
{
	return (struct py_session *)self;
}

/* --- Ctrl+C --- */

static void on_progress(void *ctx, const struct ses_progress *p)
{
	struct interrupt *i = ctx;
	(void)p;
	if (atomic_load(&i->stop))
		return;
	PyGILState_STATE gil = PyGILState_Ensure();
	if (PyErr_CheckSignals()) {
		PyErr_Fetch(&i->type, &i->error, &i->trace);
		atomic_store(&i->stop, true);
	}
	PyGILState_Release(gil);
}

/* Raises what a handler raised meanwhile; true when there was something. */
static bool was_interrupted(struct py_session *s)
{
	if (!s->interrupt.type)
		return false;
	PyErr_Restore(s->interrupt.type, s->interrupt.error, s->interrupt.trace);
	s->interrupt.type = s->interrupt.error = s->interrupt.trace = NULL;
	atomic_store(&s->interrupt.stop, false);
	return true;
}

/* --- who uses it --- */

static bool use(struct py_session *s)
{
	pthread_mutex_lock(&s->lock);
	bool is_open = s->ses && !s->is_closed;
	s->users += is_open;
	pthread_mutex_unlock(&s->lock);
	if (!is_open)
		py_raise(err_new(ERR_INVALID, "the database was closed"));
	return is_open;
}

/* Without the interpreter's lock. */
static void let_go(struct py_session *s)
{
	struct ses *done = NULL;
	pthread_mutex_lock(&s->lock);
	if (!--s->users && s->is_closed)
		done = take_ptr(s->ses);
	pthread_mutex_unlock(&s->lock);
	ses_close(done);
}

/* What somebody else has committed or analysed meanwhile; of a directive that stands, the analysis. True when there was something. */
static bool take_news(struct py_session *s)
{
	if (s->is_still || pthread_mutex_trylock(&s->watch))
		return false;
	struct pollfd p = {.fd = ses_watch_fd(s->ses), .events = POLLIN};
	bool is_new = p.fd >= 0 && poll(&p, 1, 0) > 0;
	if (is_new) {
		ses_watch_clear(s->ses);
		err_free(ses_refresh(s->ses));
	}
	pthread_mutex_unlock(&s->watch);
	return is_new;
}

/* --- operations --- */

struct asked {
	const struct ops_op *op;
	struct arena arena;
	struct ops_args args;
	struct ses_call call;
};

/* The operation and its parameters, a JSON object as text. */
static struct err *read_ask(struct py_session *s, const char *name, const char *params, size_t len, struct asked *ret)
{
	struct ops_doc doc;
	ret->op = ops_find(name);
	ret->call = (struct ses_call){.caps = SES_CAP_ALL, .client = 1, .author_kind = s ? s->author_kind : "script"};
	if (!ret->op)
		return err_new(ERR_INVALID, "%s: there is no such operation", name);
	struct err *e = ops_doc_parse(name, params, len, &ret->arena, &doc);
	return e ? e : rpc_op_args(ret->op, &doc, &ret->arena, &ret->args);
}

/* The answer as JSON text, or null and `*ret_err`. */
static void run_json(struct py_session *s, const char *name, const char *params, size_t len, struct buf *out, struct err **ret_err)
{
	struct asked ask = {.op = NULL};
	*ret_err = read_ask(s, name, params, len, &ask);
	if (!*ret_err) {
		if (s)
			(void)take_news(s);
		struct ses_snap *sn = s ? ses_snap_get(s->ses) : NULL;
		struct rpc_ask rq = {.snap = sn, .call = ask.call, .arena = &ask.arena};
		*ret_err = rpc_op_run(&rq, &ask.args, out);
		err_free(rq.status);
		ses_snap_put(sn);
		if (s && !s->is_still && (ask.op->cap & SES_CAP_EDIT))
			err_free(ses_refresh(s->ses));
	}
	arena_fini(&ask.arena);
}

static PyObject *session_json(PyObject *self, PyObject *args)
{
	const char *name, *params;
	Py_ssize_t len;
	struct buf out = {0};
	struct err *e = NULL;
	if (!PyArg_ParseTuple(args, "ss#", &name, &params, &len) || !use(of(self)))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	run_json(of(self), name, params, (size_t)len, &out, &e);
	let_go(of(self));
	Py_END_ALLOW_THREADS
	PyObject *text = NULL;
	if (was_interrupted(of(self)))
		err_free(e);
	else
		text = e ? py_raise(e) : py_text(out.data ? out.data : "", out.len);
	buf_fini(&out);
	return text;
}

PyObject *py_tool(PyObject *module, PyObject *args)
{
	const char *name, *params;
	Py_ssize_t len;
	struct buf out = {0};
	struct err *e = NULL;
	(void)module;
	if (!PyArg_ParseTuple(args, "ss#", &name, &params, &len))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	run_json(NULL, name, params, (size_t)len, &out, &e);
	Py_END_ALLOW_THREADS
	PyObject *text = e ? py_raise(e) : py_text(out.data ? out.data : "", out.len);
	buf_fini(&out);
	return text;
}

static struct err *run_list(struct py_session *s, struct asked *ask, struct ops_out *out, struct ses_snap **ret_sn)
{
	(void)take_news(s);
	*ret_sn = ses_snap_get(s->ses);
	if (ask->op->shape != OPS_LIST || !ops_cols_takes(ask->op->name))
		return err_new(ERR_INVALID, "%s: its answer is no list of columns", ask->op->name);
	struct ops_req rq = {.sn = *ret_sn, .call = &ask->call, .args = &ask->args, .arena = &ask->arena, .out = out};
	struct err *e = ops_run(&rq);
	return !e && out->cols->failed ? &err_nomem : e;
}

static PyObject *session_list(PyObject *self, PyObject *args)
{
	const char *name, *params;
	Py_ssize_t len;
	struct buf text = {0};
	struct asked ask = {.op = NULL};
	struct ops_cols cols = {.cnt = 0};
	struct ops_out out = {.buf = NULL};
	struct ses_snap *sn = NULL;
	struct err *e;
	if (!PyArg_ParseTuple(args, "ss#", &name, &params, &len) || !use(of(self)))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	e = read_ask(of(self), name, params, (size_t)len, &ask);
	if (!e) {
		ops_out_init(&out, ask.op, &text, false);
		out.cols = &cols;
		e = run_list(of(self), &ask, &out, &sn);
	}
	Py_END_ALLOW_THREADS
	PyObject *list = NULL;
	if (was_interrupted(of(self)))
		err_free(e);
	else
		list = e ? py_raise(e) : py_list_take(ask.op, &cols, &out, sn);
	Py_BEGIN_ALLOW_THREADS
	ops_cols_fini(&cols);
	ops_out_fini(&out);
	buf_fini(&text);
	arena_fini(&ask.arena);
	ses_snap_put(sn);
	let_go(of(self));
	Py_END_ALLOW_THREADS
	return list;
}

/* --- bytes, without detours --- */

#define BYTES_MAX ((Py_ssize_t)64 << 20)
#define BYTES_AT_ONCE 65536 /* no longer than this is read with the interpreter's lock held */

static struct err *read_bytes(struct ses *s, uint64_t va, uint32_t len, uint8_t *out)
{
	struct ses_snap *sn = ses_snap_get(s);
	struct err *e = NULL;
	if (!ses_is_mapped(sn, va))
		e = err_new(ERR_NOT_FOUND, "0x%llx: is not mapped", (unsigned long long)va);
	else
		(void)ses_bytes(sn, va, len, out, NULL);
	if (!e && ses_target_changed(s))
		e = err_fix(err_new(ERR_STALE, "%s: target_changed: the file was cut or rewritten while it was open", ses_path(s)), "open it again");
	ses_snap_put(sn);
	return e;
}

static PyObject *session_bytes(PyObject *self, PyObject *args)
{
	unsigned long long va;
	Py_ssize_t len;
	struct err *e;
	if (!PyArg_ParseTuple(args, "Kn", &va, &len))
		return NULL;
	if (len < 1 || len > BYTES_MAX)
		return py_raise(err_new(ERR_INVALID, "bytes: 1 to %zd at a time", BYTES_MAX));
	PyObject *bytes = PyBytes_FromStringAndSize(NULL, len);
	if (!bytes || !use(of(self))) {
		Py_XDECREF(bytes);
		return NULL;
	}
	uint8_t *out = (uint8_t *)PyBytes_AsString(bytes);
	if (len <= BYTES_AT_ONCE) {
		e = read_bytes(of(self)->ses, va, (uint32_t)len, out);
		let_go(of(self));
	} else {
		Py_BEGIN_ALLOW_THREADS
		e = read_bytes(of(self)->ses, va, (uint32_t)len, out);
		let_go(of(self));
		Py_END_ALLOW_THREADS
	}
	if (!e)
		return bytes;
	Py_DECREF(bytes);
	return py_raise(e);
}

/* --- opening and closing --- */

static struct py_session *alloc_session(void)
{
	struct py_session *s = PyObject_New(struct py_session, py_state.session);
	if (!s)
		return NULL;
	s->ses = NULL;
	s->users = 0;
	s->is_closed = s->is_still = false;
	s->author_kind = "script";
	s->interrupt.type = s->interrupt.error = s->interrupt.trace = NULL;
	atomic_init(&s->interrupt.stop, false);
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->watch, NULL);
	return s;
}

static PyObject *session_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
	static char *words[] = {(char *)"path", (char *)"no_store", (char *)"threads", (char *)"processor", (char *)"base", (char *)"format", NULL};
	struct ses_opts opts = {.progress = on_progress, .may_connect = true};
	PyObject *path = NULL;
	int no_store = 0;
	struct err *e;
	struct ses *ses = NULL;
	(void)type;
	if (!PyArg_ParseTupleAndKeywords(args, kw, "O&|pIzzz", words, PyUnicode_FSConverter, &path, &no_store, &opts.threads, &opts.processor,
					 &opts.base, &opts.format))
		return NULL;
	struct py_session *s = alloc_session();
	if (!s) {
		Py_DECREF(path);
		return NULL;
	}
	opts.no_store = no_store != 0;
	opts.cancel = &s->interrupt.stop;
	opts.progress_ctx = &s->interrupt;
	Py_BEGIN_ALLOW_THREADS
	e = ses_open(PyBytes_AsString(path), &opts, &ses);
	Py_END_ALLOW_THREADS
	Py_DECREF(path);
	s->ses = ses;
	if (!was_interrupted(s) && !e)
		return (PyObject *)s;
	if (PyErr_Occurred())
		err_free(e);
	else
		(void)py_raise(e);
	Py_DECREF((PyObject *)s);
	return NULL;
}

static void close_session(struct py_session *s)
{
	struct ses *done = NULL;
	pthread_mutex_lock(&s->lock);
	s->is_closed = true;
	if (!s->users)
		done = take_ptr(s->ses);
	pthread_mutex_unlock(&s->lock);
	ses_close(done);
}

static PyObject *session_close(PyObject *self, PyObject *unused)
{
	(void)unused;
	Py_BEGIN_ALLOW_THREADS
	close_session(of(self));
	Py_END_ALLOW_THREADS
	Py_RETURN_NONE;
}

static void session_free(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	/* A fork leaves what its parent has to its parent. */
	if (!of(self)->is_still)
		close_session(of(self));
	PyObject_Free(self);
	Py_DECREF(type);
}

static PyObject *session_refresh(PyObject *self, PyObject *unused)
{
	struct err *e;
	(void)unused;
	if (!use(of(self)))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	e = ses_refresh(of(self)->ses);
	let_go(of(self));
	Py_END_ALLOW_THREADS
	if (e)
		return py_raise(e);
	Py_RETURN_NONE;
}

static PyObject *session_news(PyObject *self, PyObject *unused)
{
	bool is_new;
	(void)unused;
	if (!use(of(self)))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	is_new = take_news(of(self));
	let_go(of(self));
	Py_END_ALLOW_THREADS
	return was_interrupted(of(self)) ? NULL : PyBool_FromLong(is_new);
}

static PyObject *session_still(PyObject *self, PyObject *unused)
{
	(void)unused;
	of(self)->is_still = true;
	Py_RETURN_NONE;
}

static PyObject *session_get_path(PyObject *self, void *unused)
{
	(void)unused;
	if (!use(of(self)))
		return NULL;
	PyObject *path = PyUnicode_DecodeFSDefault(ses_path(of(self)->ses));
	let_go(of(self));
	return path;
}

static PyObject *session_get_rev(PyObject *self, void *unused)
{
	(void)unused;
	if (!use(of(self)))
		return NULL;
	struct ses_snap *sn = ses_snap_get(of(self)->ses);
	PyObject *rev = PyLong_FromUnsignedLongLong(ses_snap_rev(sn));
	ses_snap_put(sn);
	let_go(of(self));
	return rev;
}

static PyMethodDef session_methods[] = {
	{"json", session_json, METH_VARARGS, "json(op, params): what --json prints, as text"},
	{"list", session_list, METH_VARARGS, "list(op, params): the answer's items as columns"},
	{"bytes", session_bytes, METH_VARARGS, "bytes(address, length)"},
	{"refresh", session_refresh, METH_NOARGS, "To the newest revision; analyses again where that is due."},
	{"news", session_news, METH_NOARGS, "To the newest revision if somebody has made one; whether somebody has."},
	{"still", session_still, METH_NOARGS, "In a fork: keeps to the snapshot it has."},
	{"close", session_close, METH_NOARGS, "Lets go of the target."},
	{NULL, NULL, 0, NULL}};
static PyGetSetDef session_members[] = {
	{"path", session_get_path, NULL, "The target's file.", NULL},
	{"rev", session_get_rev, NULL, "The newest revision seen.", NULL},
	{NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot session_slots[] = {
	{Py_tp_doc, (void *)"An open target; scry.open() makes a Database of it."},
	{Py_tp_new, (void *)session_new}, {Py_tp_dealloc, (void *)session_free}, {Py_tp_methods, session_methods},
	{Py_tp_getset, session_members}, {0, NULL}};
static PyType_Spec session_spec = {"_scry.Session", sizeof(struct py_session), 0, Py_TPFLAGS_DEFAULT, session_slots};

bool py_session_init(PyObject *module)
{
	py_state.session = (PyTypeObject *)PyType_FromSpec(&session_spec);
	return py_state.session && !PyModule_AddObjectRef(module, "Session", (PyObject *)py_state.session);
}
