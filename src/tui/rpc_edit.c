/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations that edit or write files, as methods of the workbench: `ui.NAME` takes what the operation takes, means the
 * place under the cursor when it is told none, and answers once the edit is on disk and on the screen. A driver is a script unless it says otherwise.
 */
#include "tui/rpc_int.h"

#include "rpc/opcall.h"

#include <stdio.h>

static const struct tui_method edit_method = {"ui.edit", TUI_M_ACT, "an edit", {{0}}, NULL, NULL};

const struct ops_op *tui_edit_op(const char *name)
{
	const struct ops_op *op = ops_find(name);
	return op && op->cap & (SES_CAP_EDIT | SES_CAP_WRITE_FILES) && op->needs_target ? op : NULL;
}

static bool has_param(const struct ops_op *op, const char *name)
{
	return ops_param_find(op, name, strlen(name)) != NULL;
}

/* What the edit is about when nothing is said: the operand under the cursor for a name, else the line's place. */
static struct err *cursor_addr(struct tui_call *c, const struct ops_op *op, struct ops_doc *ret)
{
	uint64_t va;
	struct tui *t = c->t;
	bool has_operand = !strcmp(op->name, "rename") && tui_focus(t) != TUI_V_GRAPH && tui_operand(t, &va);
	if (!has_operand && !tui_focus_va(t, &va))
		return err_fix(err_new(ERR_NOT_FOUND, "ui.%s: the cursor is on no address", op->name), "say addr");
	char *text = arena_printf(&c->arena, "0x%llx", (unsigned long long)va);
	*ret = (struct ops_doc){.kind = OPS_DOC_STRING, .key = "addr", .s = text, .len = text ? strlen(text) : 0};
	return text ? NULL : &err_nomem;
}

/* A format is of the number under the cursor. */
static struct err *cursor_number(struct tui_call *c, const struct ops_op *op, struct ops_doc ret[2])
{
	uint64_t va;
	unsigned operand;
	if (!tui_number_here(c->t, &va, &operand))
		return err_fix(err_new(ERR_NOT_FOUND, "ui.%s: there is no number in this line", op->name), "say addr and operand");
	char *text = arena_printf(&c->arena, "0x%llx", (unsigned long long)va);
	ret[0] = (struct ops_doc){.kind = OPS_DOC_STRING, .key = "addr", .s = text, .len = text ? strlen(text) : 0};
	ret[1] = (struct ops_doc){.kind = OPS_DOC_INT, .key = "operand", .num = operand};
	return text ? NULL : &err_nomem;
}

struct err *tui_edit_call(struct tui_call *c, const struct ops_op *op, const struct ops_doc *params)
{
	static const struct ops_doc script = {.kind = OPS_DOC_STRING, .key = "author_kind", .s = "script", .len = 6};
	size_t cnt = params ? params->cnt : 0;
	struct ops_doc all = {.kind = OPS_DOC_OBJECT, .items = ARENA_ARRAY(&c->arena, struct ops_doc, cnt + 3)};
	struct err *e = NULL;
	if (!all.items)
		return &err_nomem;
	for (size_t i = 0; i < cnt; i++) {
		const struct ops_doc *v = &params->items[i];
		/* By position the place is left out: it is the cursor's. */
		const struct ops_param *p = v->key ? NULL : ops_param_at(op, i + has_param(op, "addr"));
		if (!v->key && !p)
			return err_new(ERR_INVALID, "ui.%s: takes no %zu parameters by position", op->name, cnt);
		all.items[all.cnt] = *v;
		all.items[all.cnt++].key = p ? p->name : v->key;
	}
	if (has_param(op, "author_kind") && !ops_doc_find(&all, "author_kind"))
		all.items[all.cnt++] = script;
	bool is_many = ops_doc_find(&all, "from") && has_param(op, "from");
	bool is_number = !strcmp(op->name, "format") && !ops_doc_find(&all, "addr") && !ops_doc_find(&all, "operand");
	if (is_number) {
		e = cursor_number(c, op, &all.items[all.cnt]);
		all.cnt += 2;
	} else if (has_param(op, "addr") && !ops_doc_find(&all, "addr") && !is_many)
		e = cursor_addr(c, op, &all.items[all.cnt++]);
	if (!e)
		e = rpc_op_args(op, &all, &c->arena, &c->op_args);
	if (!e)
		c->op = op;
	return e;
}

struct err *tui_edit_begin(struct tui_call *c, const struct ops_op *op)
{
	const struct ops_doc *params = c->rq.params;
	struct ops_doc own = {.kind = OPS_DOC_OBJECT};
	c->m = &edit_method;
	if (params && params->kind == OPS_DOC_OBJECT) {
		own.items = ARENA_ARRAY(&c->arena, struct ops_doc, params->cnt + 1);
		if (!own.items)
			return &err_nomem;
		for (size_t i = 0; i < params->cnt; i++) {
			bool is_common;
			struct err *e = tui_call_common(c, &params->items[i], &is_common);
			if (e)
				return e;
			if (!is_common)
				own.items[own.cnt++] = params->items[i];
		}
		params = &own;
	}
	return tui_edit_call(c, op, params);
}

const char *tui_method_comes_with(const char *name)
{
	static const struct { const char *name, *with; } coming[] = {
		{"probe", "live tracing"}, {"debug", "the debugger"},
	};
	for (size_t i = 0; i < ARRAY_LEN(coming); i++) {
		if (!strcmp(coming[i].name, name))
			return coming[i].with;
	}
	return NULL;
}
