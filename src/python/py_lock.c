/* SPDX-License-Identifier: Apache-2.0 */
/* For python/scry/_warm.py: the lock of a snippet's process. */
#include "python/py_int.h"

#include "exec/exec_lock.h"

#define KEEP_MAX 8

static bool read_keep(PyObject *tuple, int keep[KEEP_MAX], unsigned *ret_cnt)
{
	Py_ssize_t cnt = PyTuple_Size(tuple);
	if (cnt > KEEP_MAX)
		PyErr_SetString(PyExc_ValueError, "too many descriptors");
	for (Py_ssize_t i = 0; i < cnt && !PyErr_Occurred(); i++)
		keep[i] = (int)PyLong_AsLong(PyTuple_GetItem(tuple, i));
	*ret_cnt = (unsigned)cnt;
	return !PyErr_Occurred();
}

static PyObject *done(struct err *e)
{
	if (e)
		return py_raise(e);
	Py_RETURN_NONE;
}

static PyObject *lock_all(PyObject *module, PyObject *args)
{
	struct exec_lock lock = {.folder = NULL};
	PyObject *tuple;
	int keep[KEEP_MAX];
	(void)module;
	if (!PyArg_ParseTuple(args, "sO!", &lock.folder, &PyTuple_Type, &tuple) || !read_keep(tuple, keep, &lock.keep_cnt))
		return NULL;
	lock.keep = keep;
	return done(exec_lock(&lock));
}

static PyObject *limit(PyObject *module, PyObject *args)
{
	unsigned long long memory, cpu;
	int pid;
	(void)module;
	if (!PyArg_ParseTuple(args, "iKK", &pid, &memory, &cpu))
		return NULL;
	return done(exec_limit(pid, memory, cpu));
}

static PyObject *part(PyObject *module, PyObject *args)
{
	PyObject *tuple;
	int keep[KEEP_MAX];
	unsigned cnt;
	(void)module;
	if (!PyArg_ParseTuple(args, "O!", &PyTuple_Type, &tuple) || !read_keep(tuple, keep, &cnt))
		return NULL;
	return done(exec_part(keep, cnt));
}

static PyObject *note(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	return done(exec_note());
}

static PyObject *missing(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	return PyUnicode_FromString(exec_lock_missing());
}

static PyObject *adopt(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	return PyBool_FromLong(exec_adopt());
}

static PyObject *number_begin(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	return PyBool_FromLong(exec_number_begin());
}

static PyObject *number_end(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	return PyBool_FromLong(exec_number_end());
}

PyMethodDef py_lock_methods[] = {
	{"lock", lock_all, METH_VARARGS, "lock(folder, descriptors): takes everything else away from this process."},
	{"limit", limit, METH_VARARGS, "limit(pid, memory, cpu_s): what it may take from now on."},
	{"part", part, METH_VARARGS, "part(descriptors): closes the others, and what is shared with the process this was forked from."},
	{"note", note, METH_NOARGS, "Looks at what forks have to close; again after something was opened."},
	{"lock_missing", missing, METH_NOARGS, "What this kernel cannot give of the lock."},
	{"adopt", adopt, METH_NOARGS, "Processes whose parents end become children of this one."},
	{"number_begin", number_begin, METH_NOARGS, "The next fork has."},
	{"number_end", number_end, METH_NOARGS, "Those after it are as before."},
	{NULL, NULL, 0, NULL}};
