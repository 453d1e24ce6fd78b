/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PYTHON_PY_INT_H
#define PYTHON_PY_INT_H

/* Python 3.11's stable ABI: the first with the buffer protocol in it. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include "session/ops.h"
#include "session/ops_cols.h"

/*
 * The extension module `_scry`: sessions, lists as columns, errors. What Python programs see is made of it in python/scry, where a
 * method for each operation is written by python/generate.py from py_table_json().
 */

/* Types and objects of the one module of a process. */
struct py_state {
	PyObject *error;        /* scry.Error */
	PyTypeObject *session, *list, *row, *column;
	PyObject *loads;        /* reads the JSON of a nested value; null until the package says what does */
};
extern struct py_state py_state;

/* Raises scry.Error with the error's text, kind and fix; takes `e`. Always null. */
PyObject *py_raise(struct err *e);
/* The text as str; bytes that are not UTF-8 become U+FFFD as in JSON. New reference. */
PyObject *py_text(const char *s, size_t len);
/* Whether a member of that name holds an address, in every answer that is no list with columns of its own. */
extern const char *const py_addr_keys[];
bool py_is_addr_key(const char *key);

bool py_list_init(PyObject *module);
bool py_session_init(PyObject *module);
/* tool(op, params): an operation that takes no target, as JSON text. */
PyObject *py_tool(PyObject *module, PyObject *args);
extern PyMethodDef py_lock_methods[];
/* The list of `cols` (taken, emptied); `out` says total and next. */
PyObject *py_list_take(const struct ops_op *op, struct ops_cols *cols, const struct ops_out *out, struct ses_snap *sn);
/* The operation table as JSON. */
void py_table_json(struct buf *out);

#endif
