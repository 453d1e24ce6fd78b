/* SPDX-License-Identifier: Apache-2.0 */
#include "python/py_int.h"

#include "exec/exec.h"
#include "session/ses_stream.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct py_state py_state;

PyMODINIT_FUNC PyInit__scry(void);

PyObject *py_raise(struct err *e)
{
	if (e->kind == ERR_NOMEM) {
		err_free(e);
		return PyErr_NoMemory();
	}
	PyObject *text = py_text(e->text ? e->text : "not found", strlen(e->text ? e->text : "not found"));
	PyObject *fix = py_text(e->fix ? e->fix : "", e->fix ? strlen(e->fix) : 0), *kind = PyUnicode_FromString(err_kind_name(e->kind));
	PyObject *error = text && fix && kind ? PyObject_CallFunctionObjArgs(py_state.error, text, NULL) : NULL;
	if (error && !PyObject_SetAttrString(error, "kind", kind) && !PyObject_SetAttrString(error, "fix", fix))
		PyErr_SetObject(py_state.error, error);
	Py_XDECREF(text);
	Py_XDECREF(fix);
	Py_XDECREF(kind);
	Py_XDECREF(error);
	err_free(e);
	return NULL;
}

static PyObject *module_table(PyObject *module, PyObject *unused)
{
	struct buf b = {0};
	(void)module;
	(void)unused;
	py_table_json(&b);
	PyObject *text = b.failed ? PyErr_NoMemory() : py_text(b.data, b.len);
	buf_fini(&b);
	return text;
}

static PyObject *module_set_loads(PyObject *module, PyObject *loads)
{
	(void)module;
	Py_INCREF(loads);
	Py_XDECREF(py_state.loads);
	py_state.loads = loads;
	Py_RETURN_NONE;
}

static PyMethodDef module_methods[] = {
	{"set_loads", module_set_loads, METH_O, "What reads the JSON of nested values."},
	{"table", module_table, METH_NOARGS, "The operation table as JSON."},
	{"tool", py_tool, METH_VARARGS, "tool(op, params): an operation that takes no target, as JSON text."},
	{NULL, NULL, 0, NULL}};
static struct PyModuleDef module_def = {PyModuleDef_HEAD_INIT, "_scry", "scry's own code for the package scry.", -1, module_methods,
					NULL, NULL, NULL, NULL};

/* kind and fix have values in every instance, and those of the class where somebody makes one by hand. */
static bool init_error(PyObject *module)
{
	PyObject *members = Py_BuildValue("{ssss}", "kind", "internal", "fix", "");
	py_state.error = members ? PyErr_NewExceptionWithDoc("scry.Error", "What scry refused or could not do: str(e) is one line, e.kind one "
				   "of the kinds of docs/ops.md, e.fix what to do about it, or \"\".", NULL, members) : NULL;
	Py_XDECREF(members);
	return py_state.error && !PyModule_AddObjectRef(module, "Error", py_state.error);
}

static bool init_keys(PyObject *module)
{
	PyObject *keys = PyFrozenSet_New(NULL);
	for (size_t i = 0; keys && py_addr_keys[i]; i++) {
		PyObject *key = PyUnicode_FromString(py_addr_keys[i]);
		if (!key || PySet_Add(keys, key))
			Py_CLEAR(keys);
		Py_XDECREF(key);
	}
	bool good = keys && !PyModule_AddObjectRef(module, "ADDRESS_KEYS", keys);
	Py_XDECREF(keys);
	return good;
}

/* The program that traces: of the same build, of the same installation, or the first in PATH. */
static void find_program(void)
{
	static char found[4096];
	static const char *const places[] = {"../../src/main/scry", "../../../../bin/scry", "../../../bin/scry"};
	Dl_info info = {0};
	const char *own = dladdr(&py_state, &info) && info.dli_fname ? info.dli_fname : "", *slash = strrchr(own, '/');
	int dir = slash ? (int)(slash - own) : 0;
	for (size_t i = 0; dir && i < ARRAY_LEN(places); i++) {
		int n = snprintf(found, sizeof(found), "%.*s/%s", dir, own, places[i]);
		if (n > 0 && (size_t)n < sizeof(found) && !access(found, X_OK)) {
			ses_stream_set_program(found);
			return;
		}
	}
	for (const char *p = getenv("PATH"); p && *p;) {
		int len = (int)strcspn(p, ":"), n = snprintf(found, sizeof(found), "%.*s/scry", len, p);
		if (len && n > 0 && (size_t)n < sizeof(found) && !access(found, X_OK)) {
			ses_stream_set_program(found);
			return;
		}
		p += len + (p[len] == ':');
	}
}

PyMODINIT_FUNC PyInit__scry(void)
{
	find_program();
	PyObject *module = PyModule_Create(&module_def);
	exec_register();
	bool good = module && !PyModule_AddFunctions(module, py_lock_methods) && init_error(module) && init_keys(module);
	if (good && py_list_init(module) && py_session_init(module))
		return module;
	Py_XDECREF(module);
	return NULL;
}
