/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The methods of the socket: each once, with its parameters, what it does and when its answer is due. `ui.methods` and the checks of
 * parameters come from this table. Operations are methods of their own names and need no line here; those that edit are
 * also `ui.NAME`, at the cursor (rpc_edit.c).
 */
#include "tui/rpc_verbs.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define PROTOCOL 1

static void put_str(struct json *j, const char *key, const char *s)
{
	json_key(j, key);
	json_str(j, s);
}

static struct err *run_ping(struct tui_call *c)
{
	struct json j = tui_call_extra(c);
	const struct tui *t = c->t;
	bool is_ready = t && t->progress.state == SES_READY;
	json_key(&j, "ok");
	json_bool(&j, true);
	json_key(&j, "proto");
	json_u64(&j, PROTOCOL);
	put_str(&j, "version", SCRY_VERSION);
	json_key(&j, "pid");
	json_u64(&j, (uint64_t)getpid());
	json_key(&j, "file");
	if (t)
		json_str(&j, ses_path(t->ses));
	else
		json_null(&j);
	/* There is something to see; the analysis has ended. */
	json_key(&j, "ready");
	json_bool(&j, t != NULL);
	json_key(&j, "complete");
	json_bool(&j, is_ready);
	json_key(&j, "functions");
	json_u64(&j, !t ? 0 : is_ready ? t->info.functions : t->progress.func_cnt);
	json_key(&j, "frame");
	json_u64(&j, t ? t->frame : 0);
	return NULL;
}

static const char *type_name(enum tui_param_type type)
{
	switch (type) {
	case TUI_P_STR:
		return "string";
	case TUI_P_INT:
		return "integer";
	case TUI_P_BOOL:
		return "boolean";
	case TUI_P_LIST:
		return "list";
	case TUI_P_ANY:
		return "any";
	}
	return "";
}

static void put_param(struct json *j, const char *name, const char *type, bool is_required, const char *help)
{
	json_obj(j);
	put_str(j, "name", name);
	put_str(j, "type", type);
	json_key(j, "required");
	json_bool(j, is_required);
	put_str(j, "help", help);
	json_end_obj(j);
}

static void put_method(struct json *j, const struct tui_method *m)
{
	json_obj(j);
	put_str(j, "name", m->name);
	put_str(j, "help", m->help);
	json_key(j, "params");
	json_arr(j);
	for (const struct tui_param *p = m->params; p->name; p++)
		put_param(j, p->name, type_name(p->type), p->is_required, p->help);
	json_end_arr(j);
	json_end_obj(j);
}

static void put_op(struct json *j, const char *prefix, const struct ops_op *op)
{
	static const char *const types[] = {[OPS_FLAG] = "boolean", [OPS_STRING] = "string", [OPS_INT] = "integer", [OPS_ADDR] = "address",
					    [OPS_FUNC] = "function", [OPS_CHOICE] = "choice", [OPS_PATH] = "path",
					    [OPS_JSON] = "any"};
	char name[64];
	snprintf(name, sizeof(name), "%s%s", prefix, op->name);
	json_obj(j);
	put_str(j, "name", name);
	put_str(j, "help", op->help);
	json_key(j, "params");
	json_arr(j);
	for (const struct ops_param *p = op->params; p->name; p++)
		put_param(j, p->name, types[p->type], p->is_required && !(*prefix && !strcmp(p->name, "addr")), p->help);
	json_end_arr(j);
	json_end_obj(j);
}

static void put_action(const struct tui *t, struct json *j, enum tui_action a)
{
	static const struct { uint16_t bit; const char *name; } places[] = {
		{TUI_IN_LISTING, "listing"}, {TUI_IN_HEX, "hex"}, {TUI_IN_LIST, "list"}, {TUI_IN_GRAPH, "graph"},
		{TUI_IN_MARKS, "bookmarks"}, {TUI_IN_JOURNAL, "journal"}, {TUI_IN_TYPES, "types"}, {TUI_IN_C, "C"},
		{TUI_IN_PROPOSALS, "proposals"}, {TUI_IN_LIVE, "live"}};
	const struct tui_action_info *info = tui_action_info(a);
	json_obj(j);
	put_str(j, "name", info->name);
	put_str(j, "keys", t ? tui_keymap_keys(t->keys, a) : info->keys);
	put_str(j, "help", info->text);
	json_key(j, "where");
	json_arr(j);
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		if (info->where & places[i].bit)
			json_str(j, places[i].name);
	}
	json_end_arr(j);
	json_end_obj(j);
}

static struct err *run_methods(struct tui_call *c)
{
	size_t cnt;
	const struct tui_method *m = tui_methods(&cnt);
	struct json j = tui_call_extra(c);
	json_key(&j, "methods");
	json_arr(&j);
	for (size_t i = 0; i < cnt; i++)
		put_method(&j, &m[i]);
	const struct ops_op *ops = ops_table(&cnt);
	for (size_t i = 0; i < cnt; i++) {
		if (tui_edit_op(ops[i].name))
			put_op(&j, "ui.", &ops[i]);
		if (!ops[i].is_command)
			put_op(&j, "", &ops[i]);
	}
	json_end_arr(&j);
	json_key(&j, "actions");
	json_arr(&j);
	for (int a = TUI_NONE + 1; a < TUI_ACTION_COUNT; a++)
		put_action(c->t, &j, (enum tui_action)a);
	json_end_arr(&j);
	return NULL;
}

static struct err *run_quit(struct tui_call *c)
{
	c->wants_quit = true;
	return NULL;
}

static struct err *run_save(struct tui_call *c)
{
	struct json j = tui_call_extra(c);
	put_str(&j, "note", "there is no save: an edit is on disk when it is answered");
	return NULL;
}

static struct err *run_wait(struct tui_call *c)
{
	const char *until = tui_arg_str(c, 0);
	if (until && strcmp(until, "ready") && strcmp(until, "idle"))
		return err_new(ERR_INVALID, "until: '%s' is none of ready|idle", until);
	c->wants_ready = !until || !strcmp(until, "ready");
	if (!c->timeout_ns)
		c->timeout_ns = INT64_MAX;
	return NULL;
}

#define P(n, t, h) {.name = n, .type = TUI_P_##t, .help = h}
#define PR(n, t, h) {.name = n, .type = TUI_P_##t, .is_required = true, .help = h}
#define DELAY P("delay_ms", INT, "between characters, so that somebody can read along (0)")

static const struct tui_method methods[] = {
	{"ui.ping", TUI_M_NOW, "whether the workbench is there, and how far it is", {{0}}, run_ping, NULL},
	{"ui.methods", TUI_M_NOW, "every method and every action, with parameters", {{0}}, run_methods, NULL},
	{"ui.quit", TUI_M_NOW, "leave", {{0}}, run_quit, NULL},
	{"ui.save", TUI_M_NOW, "nothing to do: edits are kept as they are made", {{0}}, run_save, NULL},
	{"ui.wait", TUI_M_ACT, "until the analysis has ended, or only what the screen waits for",
	 {P("until", STR, "ready or idle (ready)")}, run_wait, NULL},
	{"ui.state", TUI_M_LOOK, "what is on the screen and where the cursor is", {{0}}, NULL, NULL},
	{"ui.view", TUI_M_LOOK, "the lines of the pane with the focus", {P("lines", INT, "at most so many around the cursor (all)")}, NULL,
	 tui_answer_view},
	{"ui.screen", TUI_M_LOOK, "the whole screen", {P("format", STR, "text, html or svg (text)")}, tui_verb_screen, tui_answer_screen},
	{"ui.diag", TUI_M_LOOK, "what the status line said lately, the newest last",
	 {P("n", INT, "at most so many (all)"), P("clear", BOOL, "forget them")}, NULL, tui_answer_diag},

	{"ui.keys", TUI_M_ACT, "press keys", {PR("keys", LIST, "as written in the help: \"g\", \"Ctrl+P\", \"wait:MS\""), DELAY},
	 tui_verb_keys, NULL},
	{"ui.text", TUI_M_ACT, "type text", {PR("text", STR, "a line feed is Enter"), DELAY}, tui_verb_text, NULL},
	{"ui.paste", TUI_M_ACT, "paste text, which is never taken for keys", {PR("text", STR, "what to paste")}, tui_verb_paste, NULL},
	{"ui.mouse", TUI_M_ACT, "a mouse event in a cell",
	 {PR("what", STR, "click, double, press, release, drag, wheel_up or wheel_down"), PR("x", INT, "column, from 0"),
	  PR("y", INT, "row, from 0")},
	 tui_verb_mouse, NULL},
	{"ui.action", TUI_M_ACT, "an action of the workbench by its name", {PR("name", STR, "as in ui.methods; case and - for _ do not matter"),
	 P("n", INT, "so many times (1)")}, tui_verb_action, NULL},

	{"ui.goto", TUI_M_ACT, "go to an address or a name", {PR("target", STR, "ADDR"), DELAY}, tui_verb_goto, NULL},
	{"ui.open", TUI_M_ACT, "the same", {PR("target", STR, "ADDR"), DELAY}, tui_verb_goto, NULL},
	{"ui.follow", TUI_M_ACT, "go to what is under the cursor; in a list open the row", {{0}}, tui_verb_follow, NULL},
	{"ui.back", TUI_M_ACT, "back to where we were", {P("n", INT, "so many places (1)")}, tui_verb_back, NULL},
	{"ui.forward", TUI_M_ACT, "forward again", {P("n", INT, "so many places (1)")}, tui_verb_forward, NULL},
	{"ui.show", TUI_M_ACT, "show a view", {PR("view", STR, "listing, hex, graph, functions, strings, ...")}, tui_verb_show, NULL},
	{"ui.pseudocode", TUI_M_ACT, "the C of a function (decompile gives its text)",
	 {P("target", STR, "an address in it, or its name (where the cursor is)")}, tui_verb_pseudocode, NULL},
	{"ui.toggle_view", TUI_M_ACT, "C of the function and back to the listing; in a split the other side leads", {{0}},
	 tui_verb_toggle_view, NULL},
	{"ui.trace", TUI_M_ACT, "walk the log of a program that ran",
	 {{"seek", TUI_P_STR, true, "next, prev, over, over_back, here_next, here_prev, !50 (percent), !=1200 (a step)"}}, tui_verb_trace, NULL},
	{"ui.hex", TUI_M_ACT, "hex view and back", {{0}}, tui_verb_hex, NULL},
	{"ui.graph", TUI_M_ACT, "the graph of the function",
	 {P("action", STR, "show, open, close, toggle, zoom, entry, succ, pred, next, prev, block (show)"),
	  P("block", STR, "ADDR in the block, for block")}, tui_verb_graph, NULL},
	{"ui.xrefs", TUI_M_ACT, "list the references of what is under the cursor", {P("from", BOOL, "those that leave the function")},
	 tui_verb_xrefs, NULL},
	{"ui.symbols", TUI_M_ACT, "the palette of everything that has a name", {P("query", STR, "a part of it"), DELAY}, tui_verb_symbols, NULL},
	{"ui.structs", TUI_M_ACT, "the declared types", {{0}}, tui_verb_structs, NULL},
	{"ui.search", TUI_M_ACT, "find the next place, or list every one", {PR("query", STR, "text, hex: rx: imm: insn:"),
	 P("all", BOOL, "list every match"), P("back", BOOL, "towards lower addresses"), DELAY}, tui_verb_search, NULL},
	{"ui.filter", TUI_M_ACT, "filter the list with the focus", {PR("text", STR, "glob or part; empty: everything")}, tui_verb_filter, NULL},
	{"ui.select", TUI_M_ACT, "select a row of the dialog or list, and open it",
	 {P("index", INT, "row, from 0"), P("text", STR, "or the first row that has this"), P("open", BOOL, "open it too (false)")},
	 tui_verb_select, NULL},
	{"ui.close", TUI_M_ACT, "put away dialogs and prompts", {{0}}, tui_verb_close, NULL},
	{"ui.move", TUI_M_ACT, "move the cursor",
	 {PR("dir", STR, "up, down, left, right, page_up, ...: the moving actions"), P("n", INT, "so many times (1)")}, tui_verb_move, NULL},
	{"ui.cursor", TUI_M_ACT, "put the cursor on a line of the pane",
	 {PR("line", INT, "of the pane, from 0"), P("col", INT, "of the line's text, from 0 (0)")}, tui_verb_cursor, NULL},
	{"ui.cursor_on", TUI_M_ACT, "put the cursor on a word that is in sight", {PR("word", STR, "the text"),
	 P("line", INT, "only in this line of the pane"), P("occurrence", INT, "which of them, from 1 (1)")}, tui_verb_cursor_on, NULL},
	{"ui.rename_many", TUI_M_ACT, "many names at once, as one edit",
	 {P("items", ANY, "{\"0x401136\":\"name\", ...}"), P("file", STR, "or the path of such a map"),
	  P("atomic", BOOL, "one refusal refuses all"),
	  P("dry_run", BOOL, "say what would happen")}, tui_verb_rename_many, NULL},
	{"ui.binaries", TUI_M_LOOK, "the files that are open", {{0}}, tui_verb_binaries, NULL},
	{"ui.switch", TUI_M_ACT, "go to another binary of the project",
	 {PR("binary", STR, "its label or path"), P("addr", STR, "ADDR in it (where one was)")}, tui_verb_switch, NULL},
};

const struct tui_method *tui_methods(size_t *ret_cnt)
{
	*ret_cnt = ARRAY_LEN(methods);
	return methods;
}

const struct tui_method *tui_method_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if (!strcmp(methods[i].name, name))
			return &methods[i];
	}
	return NULL;
}

/* --- parameters ---------------------------------------------------------------------------------------------------------- */

static bool is_type(const struct ops_doc *v, enum tui_param_type type)
{
	switch (type) {
	case TUI_P_STR:
		return v->kind == OPS_DOC_STRING && strlen(v->s) == v->len;
	case TUI_P_INT:
		return v->kind == OPS_DOC_INT;
	case TUI_P_BOOL:
		return v->kind == OPS_DOC_BOOL;
	case TUI_P_LIST:
		return v->kind == OPS_DOC_LIST;
	case TUI_P_ANY:
		return true;
	}
	return false;
}

struct err *tui_call_common(struct tui_call *c, const struct ops_doc *v, bool *ret_is)
{
	struct timespec now;
	*ret_is = true;
	if (c->m->kind != TUI_M_NOW && v->key && !strcmp(v->key, "settle")) {
		c->no_settle = v->kind == OPS_DOC_BOOL && !v->num;
		return v->kind == OPS_DOC_BOOL ? NULL : err_new(ERR_INVALID, "settle: is true or false");
	}
	if (c->m->kind != TUI_M_NOW && v->key && !strcmp(v->key, "timeout_ms")) {
		if (v->kind != OPS_DOC_INT || v->num < 0)
			return err_new(ERR_INVALID, "timeout_ms: is a number of milliseconds");
		clock_gettime(CLOCK_MONOTONIC, &now);
		c->timeout_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + (uint64_t)MIN(v->num, 86400000) * 1000000 + 1;
		return NULL;
	}
	*ret_is = false;
	return NULL;
}

/* A list may be written without its brackets: what is left by position, or one value by name. */
static struct err *set_list(struct tui_call *c, size_t n, const struct ops_doc *v)
{
	const struct ops_doc *params = c->rq.params;
	struct ops_doc *list = ARENA_NEW(&c->arena, struct ops_doc);
	if (!list)
		return &err_nomem;
	*list = (struct ops_doc){.kind = OPS_DOC_LIST, .items = (struct ops_doc *)v, .cnt = v->key ? 1 : (size_t)(params->items + params->cnt - v)};
	c->args[n] = list;
	return NULL;
}

static struct err *set_arg(struct tui_call *c, size_t n, const struct ops_doc *v)
{
	const struct tui_param *p = &c->m->params[n];
	if (v->kind == OPS_DOC_NULL)
		return NULL;
	if (p->type == TUI_P_LIST && v->kind == OPS_DOC_STRING)
		return set_list(c, n, v);
	if (!is_type(v, p->type))
		return err_new(ERR_INVALID, "%s: %s is a %s", c->m->name, p->name, type_name(p->type));
	c->args[n] = v;
	return NULL;
}

struct err *tui_call_args(struct tui_call *c)
{
	const struct ops_doc *params = c->rq.params;
	struct err *e = NULL;
	bool is_rest = false;
	for (size_t i = 0; params && i < params->cnt && !e && !is_rest; i++) {
		const struct ops_doc *v = &params->items[i];
		bool is_common;
		size_t n = 0;
		e = tui_call_common(c, v, &is_common);
		if (e || is_common)
			continue;
		while (c->m->params[n].name && (v->key ? strcmp(c->m->params[n].name, v->key) : n < i))
			n++;
		is_rest = !v->key && c->m->params[n].name && c->m->params[n].type == TUI_P_LIST && v->kind == OPS_DOC_STRING;
		if (c->m->params[n].name)
			e = set_arg(c, n, v);
		else
			e = v->key ? err_new(ERR_INVALID, "%s: has no parameter %s", c->m->name, v->key)
				   : err_new(ERR_INVALID, "%s: takes no %zu parameters", c->m->name, params->cnt);
	}
	for (size_t n = 0; !e && c->m->params[n].name; n++) {
		if (c->m->params[n].is_required && !c->args[n])
			e = err_new(ERR_INVALID, "%s: %s is missing", c->m->name, c->m->params[n].name);
	}
	return e ? err_fix(e, "ui.methods lists the parameters") : NULL;
}

const char *tui_arg_str(const struct tui_call *c, size_t n)
{
	return c->args[n] ? c->args[n]->s : NULL;
}

int64_t tui_arg_int(const struct tui_call *c, size_t n, int64_t otherwise)
{
	return c->args[n] ? c->args[n]->num : otherwise;
}

bool tui_arg_bool(const struct tui_call *c, size_t n)
{
	return c->args[n] && c->args[n]->num;
}

struct json tui_call_extra(struct tui_call *c)
{
	struct json j = json_make(&c->extra);
	j.comma = c->extra.len > 0;
	return j;
}
