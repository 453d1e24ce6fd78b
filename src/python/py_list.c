/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of answers for Python: columns that give their memory away as it is (buffer protocol), rows that are made when they are
 * asked for. One crossing a page: nothing is called per row.
 */
#include "python/py_int.h"

#include "base/utf8.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct py_list {
	PyObject_HEAD
	const struct ops_op *op;  /* null: of no operation */
	struct ops_cols cols;
	PyObject *names;          /* tuple of interned str, parallel to cols.cols; they hold the keys of a list made from items */
	PyObject *rev, *total, *next; /* None where there is none */
	bool is_pending;
};

struct py_row {
	PyObject_HEAD
	struct py_list *list;
	Py_ssize_t row;
};

enum part { PART_MAIN, PART_DATA, PART_ENDS, PART_NULLS };

struct py_column {
	PyObject_HEAD
	struct py_list *list;
	unsigned col;
	enum part part;
	Py_ssize_t shape, stride;
};

/* --- text --- */

PyObject *py_text(const char *s, size_t len)
{
	PyObject *text = PyUnicode_FromStringAndSize(s, (Py_ssize_t)len);
	if (text || !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))
		return text;
	PyErr_Clear();
	struct buf b = {0};
	while (len) {
		uint32_t cp;
		size_t n = utf8_next(s, len, &cp);
		if (n)
			buf_add(&b, s, n);
		else
			buf_add(&b, "\xef\xbf\xbd", 3);
		n = n ? n : 1;
		s += n;
		len -= n;
	}
	text = b.failed ? PyErr_NoMemory() : PyUnicode_FromStringAndSize(b.data, (Py_ssize_t)b.len);
	buf_fini(&b);
	return text;
}

const char *const py_addr_keys[] = {"addr", "entry", "base", "main", "from", "to", "target", "func_addr", "caller", "callee", "end", NULL};

bool py_is_addr_key(const char *key)
{
	for (size_t i = 0; py_addr_keys[i]; i++) {
		if (!strcmp(key, py_addr_keys[i]))
			return true;
	}
	return false;
}

/* --- values --- */

static PyObject *words_of(const char *s, size_t len)
{
	PyObject *list = PyList_New(0);
	for (size_t at = 0; list && at < len;) {
		size_t n = strlen(s + at);
		PyObject *word = py_text(s + at, n);
		if (!word || PyList_Append(list, word))
			Py_CLEAR(list);
		Py_XDECREF(word);
		at += n + 1;
	}
	return list;
}

static PyObject *raw_of(const char *s, size_t len)
{
	PyObject *text = py_text(s, len);
	PyObject *value = text && py_state.loads ? PyObject_CallFunctionObjArgs(py_state.loads, text, NULL) : NULL;
	Py_XDECREF(text);
	return value;
}

static PyObject *value_of(const struct ops_col *col, uint64_t row)
{
	size_t len;
	const char *s;
	if (ops_col_cell(col, row) != OPS_CELL_VALUE)
		Py_RETURN_NONE;
	switch (col->kind) {
	case OPS_COL_NONE:
		Py_RETURN_NONE;
	case OPS_COL_BOOL:
		return PyBool_FromLong((long)ops_col_num(col, row));
	case OPS_COL_U64:
	case OPS_COL_ADDR:
		return PyLong_FromUnsignedLongLong(ops_col_num(col, row));
	default:
		s = ops_col_str(col, row, &len);
		return col->kind == OPS_COL_TEXT ? py_text(s, len) : col->kind == OPS_COL_WORDS ? words_of(s, len) : raw_of(s, len);
	}
}

/* The value of the row, or that of the row before where the text is the same: most texts repeat (a source, a kind). */
static PyObject *next_value(const struct ops_col *col, uint64_t row, PyObject *before)
{
	size_t len, was;
	if (row && before && col->kind == OPS_COL_TEXT && ops_col_cell(col, row) == OPS_CELL_VALUE &&
	    ops_col_cell(col, row - 1) == OPS_CELL_VALUE) {
		const char *s = ops_col_str(col, row, &len), *t = ops_col_str(col, row - 1, &was);
		if (len == was && !memcmp(s, t, len)) {
			Py_INCREF(before);
			return before;
		}
	}
	return value_of(col, row);
}

/* --- columns --- */

static PyObject *new_column(struct py_list *list, unsigned col, enum part part)
{
	struct py_column *c = PyObject_New(struct py_column, py_state.column);
	if (!c)
		return NULL;
	Py_INCREF((PyObject *)list);
	c->list = list;
	c->col = col;
	c->part = part;
	return (PyObject *)c;
}

static const struct ops_col *col_of(const struct py_column *c)
{
	return &c->list->cols.cols[c->col];
}

static void column_free(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	Py_DECREF((PyObject *)((struct py_column *)self)->list);
	PyObject_Free(self);
	Py_DECREF(type);
}

static Py_ssize_t column_len(PyObject *self)
{
	return (Py_ssize_t)((struct py_column *)self)->list->cols.row_cnt;
}

static PyObject *column_item(PyObject *self, Py_ssize_t i)
{
	if (i < 0 || i >= column_len(self)) {
		PyErr_SetString(PyExc_IndexError, "the column has no such row");
		return NULL;
	}
	return value_of(col_of((struct py_column *)self), (uint64_t)i);
}

static PyObject *column_range(PyObject *self, Py_ssize_t from, Py_ssize_t step, Py_ssize_t cnt)
{
	const struct ops_col *col = col_of((struct py_column *)self);
	PyObject *list = PyList_New(cnt), *before = NULL;
	for (Py_ssize_t i = 0; list && i < cnt; i++) {
		PyObject *v = step == 1 ? next_value(col, (uint64_t)(from + i), before) : value_of(col, (uint64_t)(from + i * step));
		before = v;
		if (!v || PyList_SetItem(list, i, v))
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *column_subscript(PyObject *self, PyObject *key)
{
	Py_ssize_t from, to, step, len = column_len(self);
	if (PySlice_Check(key)) {
		if (PySlice_Unpack(key, &from, &to, &step))
			return NULL;
		Py_ssize_t cnt = PySlice_AdjustIndices(len, &from, &to, step);
		return column_range(self, from, step, cnt);
	}
	Py_ssize_t i = PyNumber_AsSsize_t(key, PyExc_IndexError);
	if (i == -1 && PyErr_Occurred())
		return NULL;
	return column_item(self, i < 0 ? i + len : i);
}

static PyObject *column_tolist(PyObject *self, PyObject *unused)
{
	(void)unused;
	return column_range(self, 0, 1, column_len(self));
}

static int column_buffer(PyObject *self, Py_buffer *view, int flags)
{
	struct py_column *c = (struct py_column *)self;
	const struct ops_col *col = col_of(c);
	const struct buf *b = c->part == PART_ENDS ? &col->ends : c->part == PART_NULLS ? &col->cells : &col->values;
	bool is_wide = c->part == PART_ENDS || (c->part == PART_MAIN && col->kind != OPS_COL_BOOL);
	static const char none[8];
	if (c->part == PART_MAIN && (col->kind >= OPS_COL_TEXT || col->kind == OPS_COL_NONE)) {
		PyErr_SetString(PyExc_BufferError, "a column of text has no array of values: take .data and .ends, or .tolist()");
		return -1;
	}
	if (flags & PyBUF_WRITABLE) {
		PyErr_SetString(PyExc_BufferError, "a column is read-only");
		return -1;
	}
	c->stride = is_wide ? 8 : 1;
	c->shape = (Py_ssize_t)b->len / c->stride;
	*view = (Py_buffer){.buf = b->data ? b->data : (char *)none, .obj = self, .len = (Py_ssize_t)b->len, .itemsize = c->stride,
			    .readonly = 1, .ndim = 1, .shape = &c->shape, .strides = &c->stride,
			    .format = (char *)(is_wide ? "Q" : c->part == PART_MAIN ? "?" : "B")};
	if (!(flags & PyBUF_FORMAT))
		view->format = NULL;
	Py_INCREF(self);
	return 0;
}

static PyObject *part_view(PyObject *self, enum part part)
{
	struct py_column *c = (struct py_column *)self;
	PyObject *it = new_column(c->list, c->col, part);
	PyObject *view = it ? PyMemoryView_FromObject(it) : NULL;
	Py_XDECREF(it);
	return view;
}

static PyObject *column_get_data(PyObject *self, void *unused)
{
	(void)unused;
	return col_of((struct py_column *)self)->kind >= OPS_COL_TEXT ? part_view(self, PART_DATA) : PyMemoryView_FromObject(self);
}

static PyObject *column_get_ends(PyObject *self, void *unused)
{
	(void)unused;
	if (col_of((struct py_column *)self)->kind < OPS_COL_TEXT)
		Py_RETURN_NONE;
	return part_view(self, PART_ENDS);
}

static PyObject *column_get_nulls(PyObject *self, void *unused)
{
	(void)unused;
	if (!col_of((struct py_column *)self)->cells.len)
		Py_RETURN_NONE;
	return part_view(self, PART_NULLS);
}

static PyObject *column_get_kind(PyObject *self, void *unused)
{
	static const char *const names[] = {"none", "int", "address", "bool", "text", "words", "json"};
	(void)unused;
	return PyUnicode_FromString(names[col_of((struct py_column *)self)->kind]);
}

static PyObject *column_get_name(PyObject *self, void *unused)
{
	struct py_column *c = (struct py_column *)self;
	(void)unused;
	PyObject *name = PyTuple_GetItem(c->list->names, (Py_ssize_t)c->col);
	Py_XINCREF(name);
	return name;
}

static PyObject *column_repr(PyObject *self)
{
	PyObject *name = column_get_name(self, NULL), *kind = column_get_kind(self, NULL);
	PyObject *text = name && kind ? PyUnicode_FromFormat("<scry.Column %U: %U, %zd rows>", name, kind, column_len(self)) : NULL;
	Py_XDECREF(name);
	Py_XDECREF(kind);
	return text;
}

static PyMethodDef column_methods[] = {
	{"tolist", column_tolist, METH_NOARGS, "Every value, in order; None where a row has none."},
	{NULL, NULL, 0, NULL}};
static PyGetSetDef column_members[] = {
	{"name", column_get_name, NULL, "The key of --json.", NULL},
	{"kind", column_get_kind, NULL, "int, address, bool, text, words, json, or none when no row has a value.", NULL},
	{"data", column_get_data, NULL, "The values' memory: numbers as an array, text as UTF-8 one behind the other.", NULL},
	{"ends", column_get_ends, NULL, "Of text: where each row's part of data ends, an array of 64-bit numbers; else None.", NULL},
	{"nulls", column_get_nulls, NULL, "A byte a row, 0 where there is a value; None when every row has one.", NULL},
	{NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot column_slots[] = {
	{Py_tp_doc, (void *)"A column of a list. Numbers have the buffer protocol: memoryview(column), numpy.asarray(column)."},
	{Py_tp_dealloc, (void *)column_free}, {Py_tp_repr, (void *)column_repr}, {Py_tp_methods, column_methods}, {Py_tp_getset, column_members},
	{Py_sq_length, (void *)column_len}, {Py_sq_item, (void *)column_item}, {Py_mp_length, (void *)column_len},
	{Py_mp_subscript, (void *)column_subscript}, {Py_bf_getbuffer, (void *)column_buffer}, {0, NULL}};
static PyType_Spec column_spec = {"scry.Column", sizeof(struct py_column), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
				  column_slots};

/* --- rows --- */

static PyObject *new_row(struct py_list *list, Py_ssize_t i)
{
	struct py_row *r = PyObject_New(struct py_row, py_state.row);
	if (!r)
		return NULL;
	Py_INCREF((PyObject *)list);
	r->list = list;
	r->row = i;
	return (PyObject *)r;
}

static void row_free(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	Py_DECREF((PyObject *)((struct py_row *)self)->list);
	PyObject_Free(self);
	Py_DECREF(type);
}

/* The number of the column called so, -1: none. */
static int col_named(const struct py_list *list, PyObject *name)
{
	/* Names in code are interned as ours are. */
	for (unsigned i = 0; i < list->cols.cnt; i++) {
		if (PyTuple_GetItem(list->names, (Py_ssize_t)i) == name)
			return (int)i;
	}
	for (unsigned i = 0; i < list->cols.cnt && PyUnicode_Check(name); i++) {
		if (PyUnicode_Compare(PyTuple_GetItem(list->names, (Py_ssize_t)i), name) == 0)
			return (int)i;
	}
	return -1;
}

static PyObject *row_getattr(PyObject *self, PyObject *name)
{
	struct py_row *r = (struct py_row *)self;
	for (unsigned i = 0; i < r->list->cols.cnt; i++) {
		if (PyTuple_GetItem(r->list->names, (Py_ssize_t)i) == name)
			return value_of(&r->list->cols.cols[i], (uint64_t)r->row);
	}
	int col = col_named(r->list, name);
	return col >= 0 ? value_of(&r->list->cols.cols[col], (uint64_t)r->row) : PyObject_GenericGetAttr(self, name);
}

static PyObject *row_subscript(PyObject *self, PyObject *key)
{
	struct py_row *r = (struct py_row *)self;
	int col = PyUnicode_Check(key) ? col_named(r->list, key) : -1;
	if (col < 0 || ops_col_cell(&r->list->cols.cols[col], (uint64_t)r->row) == OPS_CELL_ABSENT) {
		PyErr_SetObject(PyExc_KeyError, key);
		return NULL;
	}
	return value_of(&r->list->cols.cols[col], (uint64_t)r->row);
}

static PyObject *row_keys(PyObject *self, PyObject *unused)
{
	struct py_row *r = (struct py_row *)self;
	(void)unused;
	PyObject *keys = PyList_New(0);
	for (unsigned i = 0; keys && i < r->list->cols.cnt; i++) {
		if (ops_col_cell(&r->list->cols.cols[i], (uint64_t)r->row) != OPS_CELL_ABSENT &&
		    PyList_Append(keys, PyTuple_GetItem(r->list->names, (Py_ssize_t)i)))
			Py_CLEAR(keys);
	}
	return keys;
}

static PyObject *text_of_buf(struct buf *b)
{
	PyObject *text = b->failed ? PyErr_NoMemory() : py_text(b->data ? b->data : "", b->len);
	buf_fini(b);
	return text;
}

static PyObject *row_json(PyObject *self, PyObject *unused)
{
	struct py_row *r = (struct py_row *)self;
	struct buf b = {0};
	struct json j = json_make(&b);
	(void)unused;
	ops_cols_row_json(&r->list->cols, (uint64_t)r->row, &j);
	return text_of_buf(&b);
}

static PyObject *row_repr(PyObject *self)
{
	PyObject *json = row_json(self, NULL);
	PyObject *text = json ? PyUnicode_FromFormat("<scry.Row %U>", json) : NULL;
	Py_XDECREF(json);
	return text;
}

static PyObject *row_dir(PyObject *self, PyObject *unused)
{
	(void)unused;
	PyObject *names = row_keys(self, NULL);
	PyObject *more = names ? Py_BuildValue("[ss]", "keys", "json") : NULL;
	PyObject *all = more ? PySequence_Concat(names, more) : NULL;
	Py_XDECREF(names);
	Py_XDECREF(more);
	return all;
}

static PyMethodDef row_methods[] = {
	{"keys", row_keys, METH_NOARGS, "The names of its values, so that dict(row) works."},
	{"json", row_json, METH_NOARGS, "The row as --json prints it."},
	{"__dir__", row_dir, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL}};
static PyType_Slot row_slots[] = {
	{Py_tp_doc, (void *)"An item of a list: its values are attributes, and by name: row.addr, row['addr']. Addresses are numbers."},
	{Py_tp_dealloc, (void *)row_free}, {Py_tp_getattro, (void *)row_getattr}, {Py_tp_repr, (void *)row_repr},
	{Py_mp_subscript, (void *)row_subscript}, {Py_tp_methods, row_methods}, {0, NULL}};
static PyType_Spec row_spec = {"scry.Row", sizeof(struct py_row), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, row_slots};

/* --- lists --- */

static void list_free(PyObject *self)
{
	struct py_list *l = (struct py_list *)self;
	PyTypeObject *type = Py_TYPE(self);
	ops_cols_fini(&l->cols);
	Py_XDECREF(l->names);
	Py_XDECREF(l->rev);
	Py_XDECREF(l->total);
	Py_XDECREF(l->next);
	PyObject_Free(self);
	Py_DECREF(type);
}

/* Without columns yet. */
static struct py_list *new_list(const struct ops_op *op)
{
	struct py_list *l = PyObject_New(struct py_list, py_state.list);
	if (!l)
		return NULL;
	l->op = op;
	l->cols = (struct ops_cols){.cnt = 0};
	l->names = NULL;
	Py_INCREF(Py_None);
	Py_INCREF(Py_None);
	Py_INCREF(Py_None);
	l->rev = l->total = l->next = Py_None;
	l->is_pending = false;
	return l;
}

static bool set_names(struct py_list *l)
{
	l->names = PyTuple_New((Py_ssize_t)l->cols.cnt);
	for (unsigned i = 0; l->names && i < l->cols.cnt; i++) {
		PyObject *name = PyUnicode_InternFromString(l->cols.cols[i].key);
		if (!name || PyTuple_SetItem(l->names, (Py_ssize_t)i, name))
			Py_CLEAR(l->names);
	}
	return l->names != NULL;
}

static void set_member(PyObject **at, PyObject *value)
{
	Py_XDECREF(*at);
	*at = value;
}

PyObject *py_list_take(const struct ops_op *op, struct ops_cols *cols, const struct ops_out *out, struct ses_snap *sn)
{
	struct py_list *l = new_list(op);
	if (!l)
		return NULL;
	l->cols = *cols;
	*cols = (struct ops_cols){.cnt = 0};
	set_member(&l->rev, PyLong_FromUnsignedLongLong(sn ? ses_snap_rev(sn) : 0));
	if (out->total != UINT64_MAX)
		set_member(&l->total, PyLong_FromUnsignedLongLong(out->total));
	if (out->has_more)
		set_member(&l->next, PyUnicode_FromString(out->next));
	l->is_pending = sn && ses_snap_is_pending(sn);
	if (!l->rev || !l->total || !l->next || !set_names(l))
		Py_CLEAR(l);
	return (PyObject *)l;
}

static Py_ssize_t list_len(PyObject *self)
{
	return (Py_ssize_t)((struct py_list *)self)->cols.row_cnt;
}

static PyObject *list_item(PyObject *self, Py_ssize_t i)
{
	if (i < 0 || i >= list_len(self)) {
		PyErr_SetString(PyExc_IndexError, "the list has no such row");
		return NULL;
	}
	return new_row((struct py_list *)self, i);
}

static PyObject *list_slice(PyObject *self, PyObject *slice)
{
	Py_ssize_t from, to, step;
	if (PySlice_Unpack(slice, &from, &to, &step))
		return NULL;
	Py_ssize_t cnt = PySlice_AdjustIndices(list_len(self), &from, &to, step);
	PyObject *rows = PyList_New(cnt);
	for (Py_ssize_t i = 0; rows && i < cnt; i++) {
		PyObject *row = new_row((struct py_list *)self, from + i * step);
		if (!row || PyList_SetItem(rows, i, row))
			Py_CLEAR(rows);
	}
	return rows;
}

static PyObject *list_subscript(PyObject *self, PyObject *key)
{
	struct py_list *l = (struct py_list *)self;
	if (PyUnicode_Check(key)) {
		int col = col_named(l, key);
		if (col < 0)
			PyErr_SetObject(PyExc_KeyError, key);
		return col < 0 ? NULL : new_column(l, (unsigned)col, PART_MAIN);
	}
	if (PySlice_Check(key))
		return list_slice(self, key);
	Py_ssize_t i = PyNumber_AsSsize_t(key, PyExc_IndexError);
	if (i == -1 && PyErr_Occurred())
		return NULL;
	return list_item(self, i < 0 ? i + list_len(self) : i);
}

static PyObject *list_getattr(PyObject *self, PyObject *name)
{
	PyObject *own = PyObject_GenericGetAttr(self, name);
	if (own || !PyErr_ExceptionMatches(PyExc_AttributeError))
		return own;
	int col = ((struct py_list *)self)->names ? col_named((struct py_list *)self, name) : -1;
	if (col < 0)
		return NULL;
	PyErr_Clear();
	return new_column((struct py_list *)self, (unsigned)col, PART_MAIN);
}

/* False with an exception. */
static bool put_list(struct py_list *l, struct buf *b)
{
	struct json j = json_make(b);
	unsigned long long total = l->total == Py_None ? 0 : PyLong_AsUnsignedLongLong(l->total), rev = PyLong_AsUnsignedLongLong(l->rev);
	const char *next = l->next == Py_None ? NULL : PyUnicode_AsUTF8AndSize(l->next, NULL);
	if (PyErr_Occurred())
		return false;
	json_obj(&j);
	json_key(&j, "rev");
	json_u64(&j, rev);
	if (l->is_pending) {
		json_key(&j, "pending");
		json_bool(&j, true);
	}
	json_key(&j, "items");
	json_arr(&j);
	for (uint64_t i = 0; i < l->cols.row_cnt; i++)
		ops_cols_row_json(&l->cols, i, &j);
	json_end_arr(&j);
	if (l->total != Py_None) {
		json_key(&j, "total");
		json_u64(&j, total);
	}
	/* Of the listing, which is no table for people. */
	if (l->total != Py_None && l->op && !l->op->columns) {
		json_key(&j, "rows");
		json_u64(&j, total);
	}
	if (next) {
		json_key(&j, "next");
		json_str(&j, next);
	}
	json_end_obj(&j);
	return true;
}

static PyObject *list_json(PyObject *self, PyObject *unused)
{
	struct buf b = {0};
	(void)unused;
	return put_list((struct py_list *)self, &b) ? text_of_buf(&b) : NULL;
}

/* A snippet's result goes where it is waited for as it is written, without becoming an object of Python's. */
static PyObject *list_send(PyObject *self, PyObject *args)
{
	struct py_list *l = (struct py_list *)self;
	struct buf b = {0};
	const char *before;
	int fd;
	if (!PyArg_ParseTuple(args, "is", &fd, &before))
		return NULL;
	(void)buf_room(&b, 1024 + (size_t)l->cols.row_cnt * 256);
	buf_add_str(&b, before);
	if (!put_list(l, &b))
		return NULL;
	bool is_ascii = !b.failed;
	for (size_t i = 0; is_ascii && i < b.len; i++)
		is_ascii = (uint8_t)b.data[i] < 0x80;
	ssize_t n = 0;
	Py_BEGIN_ALLOW_THREADS
	for (size_t at = 0; is_ascii && at < b.len && n >= 0; at += n > 0 ? (size_t)n : 0) {
		n = write(fd, b.data + at, b.len - at);
		if (n < 0 && errno == EINTR)
			n = 0;
	}
	Py_END_ALLOW_THREADS
	buf_fini(&b);
	return n < 0 ? PyErr_SetFromErrno(PyExc_OSError) : PyBool_FromLong(is_ascii);
}

static PyObject *list_tuples(PyObject *self, PyObject *unused)
{
	struct py_list *l = (struct py_list *)self;
	PyObject *rows = PyList_New(list_len(self)), *before[OPS_COLS_MAX] = {NULL};
	(void)unused;
	for (Py_ssize_t i = 0; rows && i < list_len(self); i++) {
		PyObject *row = PyTuple_New((Py_ssize_t)l->cols.cnt);
		for (unsigned c = 0; row && c < l->cols.cnt; c++) {
			PyObject *v = next_value(&l->cols.cols[c], (uint64_t)i, before[c]);
			before[c] = v;
			if (!v || PyTuple_SetItem(row, (Py_ssize_t)c, v))
				Py_CLEAR(row);
		}
		if (!row || PyList_SetItem(rows, i, row))
			Py_CLEAR(rows);
	}
	return rows;
}

static PyObject *list_repr(PyObject *self)
{
	struct py_list *l = (struct py_list *)self;
	return PyUnicode_FromFormat("<scry.List %s: %zd rows, columns %R>", l->op ? l->op->name : "", list_len(self), l->names);
}

static PyObject *list_dir(PyObject *self, PyObject *unused)
{
	(void)unused;
	PyObject *own = PyObject_Dir((PyObject *)Py_TYPE(self)), *names = PySequence_List(((struct py_list *)self)->names);
	PyObject *all = own && names ? PySequence_Concat(own, names) : NULL;
	Py_XDECREF(own);
	Py_XDECREF(names);
	return all;
}

#define GETTER(member)                                                                                                  \
	static PyObject *list_get_##member(PyObject *self, void *unused)                                                \
	{                                                                                                               \
		PyObject *v = ((struct py_list *)self)->member;                                                         \
		(void)unused;                                                                                           \
		Py_INCREF(v);                                                                                           \
		return v;                                                                                               \
	}
GETTER(rev)
GETTER(total)
GETTER(next)
GETTER(names)

static PyObject *list_get_pending(PyObject *self, void *unused)
{
	(void)unused;
	return PyBool_FromLong(((struct py_list *)self)->is_pending);
}

/* --- a list made from the items of a JSON answer --- */

static bool address_of(const char *key, const char *s, size_t len, uint64_t *ret)
{
	if (!py_is_addr_key(key) || len < 3 || len > 18 || s[0] != '0' || s[1] != 'x')
		return false;
	*ret = 0;
	for (size_t i = 2; i < len; i++) {
		const char *digit = memchr("0123456789abcdef", s[i], 16);
		if (!digit)
			return false;
		*ret = *ret << 4 | (uint64_t)(digit - &"0123456789abcdef"[0]);
	}
	return true;
}

/* What is no plain value goes in as JSON. */
static bool add_other(struct ops_cols *cols, const char *key, PyObject *dumps, PyObject *value)
{
	Py_ssize_t len;
	PyObject *text = PyObject_CallFunctionObjArgs(dumps, value, NULL);
	const char *s = text ? PyUnicode_AsUTF8AndSize(text, &len) : NULL;
	if (s)
		ops_cols_text(cols, key, OPS_COL_RAW, s, (size_t)len);
	Py_XDECREF(text);
	return s != NULL;
}

static bool add_value(struct ops_cols *cols, const char *key, PyObject *dumps, PyObject *value)
{
	uint64_t addr;
	if (value == Py_None) {
		ops_cols_null(cols, key);
	} else if (PyBool_Check(value)) {
		ops_cols_u64(cols, key, OPS_COL_BOOL, value == Py_True);
	} else if (PyLong_Check(value)) {
		unsigned long long v = PyLong_AsUnsignedLongLong(value);
		if (PyErr_Occurred()) {
			PyErr_Clear();
			return add_other(cols, key, dumps, value);
		}
		ops_cols_u64(cols, key, OPS_COL_U64, v);
	} else if (PyUnicode_Check(value)) {
		Py_ssize_t len;
		const char *s = PyUnicode_AsUTF8AndSize(value, &len);
		if (!s)
			return false;
		if (address_of(key, s, (size_t)len, &addr))
			ops_cols_u64(cols, key, OPS_COL_ADDR, addr);
		else
			ops_cols_text(cols, key, OPS_COL_TEXT, s, (size_t)len);
	} else {
		return add_other(cols, key, dumps, value);
	}
	return true;
}

static bool add_item(struct ops_cols *cols, PyObject *dumps, PyObject *item)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;
	if (!PyDict_Check(item)) {
		PyErr_SetString(PyExc_TypeError, "an item of a list is a dict");
		return false;
	}
	while (PyDict_Next(item, &at, &key, &value)) {
		const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, NULL) : NULL;
		if (!name || !add_value(cols, name, dumps, value))
			return false;
	}
	ops_cols_end_row(cols);
	return true;
}

static PyObject *list_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
	static char *words[] = {(char *)"op", (char *)"items", (char *)"dumps", (char *)"rev", (char *)"total", (char *)"next",
				(char *)"pending", NULL};
	const char *op = NULL;
	PyObject *items, *dumps, *rev = NULL, *total = Py_None, *next = Py_None;
	int pending = 0;
	(void)type;
	if (!PyArg_ParseTupleAndKeywords(args, kw, "sO!O|OOOp", words, &op, &PyList_Type, &items, &dumps, &rev, &total, &next, &pending))
		return NULL;
	struct py_list *l = new_list(ops_find(op));
	if (!l)
		return NULL;
	bool good = true;
	for (Py_ssize_t i = 0; good && i < PyList_Size(items); i++)
		good = add_item(&l->cols, dumps, PyList_GetItem(items, i));
	if (good && l->cols.failed)
		PyErr_SetString(PyExc_ValueError, "the rows of the list are not of one shape");
	Py_INCREF(total);
	Py_INCREF(next);
	set_member(&l->total, total);
	set_member(&l->next, next);
	if (rev)
		Py_INCREF(rev);
	set_member(&l->rev, rev ? rev : PyLong_FromLong(0));
	l->is_pending = pending != 0;
	/* From here on the keys are the names' text, which lives as long as the list. */
	good = good && !l->cols.failed && set_names(l);
	for (unsigned i = 0; good && i < l->cols.cnt; i++)
		l->cols.cols[i].key = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(l->names, (Py_ssize_t)i), NULL);
	if (!good)
		Py_CLEAR(l);
	return (PyObject *)l;
}

static PyMethodDef list_methods[] = {
	{"json", list_json, METH_NOARGS, "The list as --json prints it."},
	{"_send", list_send, METH_VARARGS, "_send(fd, before): writes both; False, and nothing, unless it is all ASCII."},
	{"tuples", list_tuples, METH_NOARGS, "Every row as a tuple, its values in the order of .names."},
	{"__dir__", list_dir, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL}};
static PyGetSetDef list_members[] = {
	{"names", list_get_names, NULL, "The names of the columns.", NULL},
	{"rev", list_get_rev, NULL, "The revision it was taken at. (A column of that name: list['rev'].)", NULL},
	{"total", list_get_total, NULL, "How many items there are, or None.", NULL},
	{"next", list_get_next, NULL, "The cursor of the next page, or None at the end.", NULL},
	{"pending", list_get_pending, NULL, "Whether a newer analysis is on its way.", NULL},
	{NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot list_slots[] = {
	{Py_tp_doc, (void *)"What an operation answers as a list: rows by index (list[0].addr), columns by name (list.addr, list['addr'])."},
	{Py_tp_new, (void *)list_new}, {Py_tp_dealloc, (void *)list_free}, {Py_tp_getattro, (void *)list_getattr},
	{Py_tp_repr, (void *)list_repr}, {Py_tp_methods, list_methods}, {Py_tp_getset, list_members}, {Py_sq_length, (void *)list_len},
	{Py_sq_item, (void *)list_item},
	{Py_mp_length, (void *)list_len}, {Py_mp_subscript, (void *)list_subscript}, {0, NULL}};
static PyType_Spec list_spec = {"scry.List", sizeof(struct py_list), 0, Py_TPFLAGS_DEFAULT, list_slots};

bool py_list_init(PyObject *module)
{
	const struct {
		PyTypeObject **at;
		PyType_Spec *spec;
		const char *name;
	} types[] = {{&py_state.column, &column_spec, "Column"}, {&py_state.row, &row_spec, "Row"}, {&py_state.list, &list_spec, "List"}};
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		*types[i].at = (PyTypeObject *)PyType_FromSpec(types[i].spec);
		if (!*types[i].at || PyModule_AddObjectRef(module, types[i].name, (PyObject *)*types[i].at))
			return false;
	}
	return true;
}
