/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DOT and SVG. Graphviz reads what we wrote, but a name of the target's is in it and its parser is not hardened, so it
 * runs in a child that can do nothing but compute and write its answer.
 */
#include "session/dot.h"

#include "base/child.h"
#include "base/dl.h"
#include "session/ops.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define DOT_BLOCK_LINES 400
#define DOT_SVG_MAX ((size_t)256 << 20)

/* A DOT string: control bytes are escaped for people first, then quotes and backslashes for DOT. */
static void dot_text(struct buf *out, const char *s, size_t len)
{
	struct buf safe = {0};
	ops_escape(&safe, s, len);
	for (size_t i = 0; i < safe.len; i++) {
		if (safe.data[i] == '"' || safe.data[i] == '\\')
			buf_add_ch(out, '\\');
		buf_add_ch(out, safe.data[i]);
	}
	if (safe.failed)
		out->failed = true;
	buf_fini(&safe);
}

static void dot_begin(struct buf *out, const char *name)
{
	buf_printf(out, "digraph %s {\n\tgraph [bgcolor=white];\n"
		   "\tnode [shape=box, fontname=\"Courier\", fontsize=10];\n\tedge [fontname=\"Courier\", fontsize=9];\n", name);
}

static struct err *dot_block(struct ses_snap *sn, const struct ses_call *call, const struct ses_block *b, struct buf *out)
{
	struct arena a = {0};
	struct ses_head *lines = NULL;
	uint32_t n = 0, shown = 0;
	struct err *e = ses_heads(sn, call, &(struct ses_at){.va = b->addr, .sub = SES_SUB_ITEM, .count = DOT_BLOCK_LINES}, &a, &lines, &n);
	struct ses_text name = ses_name_at(sn, b->addr, &a);
	buf_printf(out, "\tb%u [label=\"", b->id);
	dot_text(out, name.s, name.len);
	buf_printf(out, "%s0x%llx:\\l", name.len ? " " : "", (unsigned long long)b->addr);
	for (uint32_t i = 0; i < n && lines[i].va < b->end; i++) {
		if (lines[i].kind != SES_HEAD_CODE)
			continue;
		buf_printf(out, "%llx  ", (unsigned long long)lines[i].va);
		dot_text(out, lines[i].text.s, lines[i].text.len);
		buf_add_str(out, "\\l");
		shown = i + 1;
	}
	if (shown && lines[shown - 1].va + lines[shown - 1].size < b->end)
		buf_add_str(out, "...\\l");
	buf_add_str(out, "\"];\n");
	arena_fini(&a);
	return e;
}

struct err *ses_dot_blocks(struct ses_snap *sn, const struct ses_call *call, const struct ses_block *blocks, uint32_t cnt,
			   struct buf *out)
{
	struct err *e = NULL;
	dot_begin(out, "blocks");
	for (uint32_t i = 0; i < cnt && !e; i++)
		e = dot_block(sn, call, &blocks[i], out);
	for (uint32_t i = 0; i < cnt && !e; i++) {
		for (uint32_t k = 0; k < blocks[i].succ_cnt; k++) {
			const struct ses_edge *s = &blocks[i].succ[k];
			const char *color = !strcmp(s->kind, "taken") ? "darkgreen" : !strcmp(s->kind, "fall") ? "firebrick" :
					    !strcmp(s->kind, "switch") ? "goldenrod" : "royalblue";
			buf_printf(out, "\tb%u -> b%u [color=%s, tooltip=\"%s\"];\n", blocks[i].id, s->id, color, s->kind);
		}
	}
	buf_add_str(out, "}\n");
	return e ? e : out->failed ? &err_nomem : NULL;
}

static void dot_call_node(struct buf *out, uint64_t va, struct ses_text name)
{
	buf_printf(out, "\tn%llx [label=\"", (unsigned long long)va);
	if (name.len)
		dot_text(out, name.s, name.len);
	else
		buf_printf(out, "0x%llx", (unsigned long long)va);
	buf_add_str(out, "\"];\n");
}

struct err *ses_dot_calls(const struct ses_call_edge *edges, uint32_t cnt, struct buf *out)
{
	dot_begin(out, "calls");
	buf_add_str(out, "\trankdir=LR;\n");
	for (uint32_t i = 0; i < cnt; i++) {
		/* Edges come by caller, so a caller is named once; naming a callee again says the same. */
		if (!i || edges[i].caller != edges[i - 1].caller)
			dot_call_node(out, edges[i].caller, edges[i].caller_name);
		dot_call_node(out, edges[i].callee, edges[i].callee_name);
		buf_printf(out, "\tn%llx -> n%llx", (unsigned long long)edges[i].caller, (unsigned long long)edges[i].callee);
		if (edges[i].count > 1)
			buf_printf(out, " [label=\"%u\"]", edges[i].count);
		buf_add_str(out, ";\n");
	}
	buf_add_str(out, "}\n");
	return out->failed ? &err_nomem : NULL;
}

/* --- Graphviz --- */

/*
 * Only two plugins are given to Graphviz, the dot layout and the plain renderers. Its text layout through Pango would
 * start threads and read fonts; without it the built-in widths of Courier are used, which also makes the drawing
 * the same on every machine.
 */
struct gv_builtin {
	const char *name;
	void *address;
};

static void *(*gv_context)(const struct gv_builtin *builtins, int demand_loading);
static void *(*gv_memread)(const char *text);
static int (*gv_layout)(void *gvc, void *graph, const char *engine);
static int (*gv_render_data)(void *gvc, void *graph, const char *format, char **ret, unsigned *ret_len);
static struct gv_builtin gv_plugins[] = {{"gvplugin_dot_layout_LTX_library", NULL}, {"gvplugin_core_LTX_library", NULL}, {NULL, NULL}};

struct svg_job {
	const struct buf *dot;
	void *gvc;
};

static const char svg_what[] = "drawing graphs as SVG";

/* Plugins lie in a folder of their own beside libgvc. */
static struct err *svg_load_plugin(size_t i, const char *file)
{
	Dl_info info;
	_cleanup_free_ char *path = NULL;
	if (!dladdr((void *)gv_context, &info) || !info.dli_fname)
		return err_new(ERR_ENV, "libgvc.so.6 cannot be found again");
	const char *slash = strrchr(info.dli_fname, '/');
	if (asprintf(&path, "%.*s/graphviz/%s", slash ? (int)(slash - info.dli_fname) : 1, slash ? info.dli_fname : ".", file) < 0)
		return &err_nomem;
	const struct dl_sym sym = {gv_plugins[i].name, &gv_plugins[i].address};
	return dl_load(path, svg_what, "libgvc6", &sym, 1);
}

static struct err *svg_load(void)
{
	static const struct dl_sym cgraph[] = {{"agmemread", (void **)&gv_memread}};
	static const struct dl_sym gvc[] = {{"gvContextPlugins", (void **)&gv_context},
					    {"gvLayout", (void **)&gv_layout},
					    {"gvRenderData", (void **)&gv_render_data}};
	struct err *e = dl_load("libcgraph.so.6", svg_what, "libgvc6", cgraph, ARRAY_LEN(cgraph));
	if (!e)
		e = dl_load("libgvc.so.6", svg_what, "libgvc6", gvc, ARRAY_LEN(gvc));
	if (!e)
		e = svg_load_plugin(0, "libgvplugin_dot_layout.so.6");
	return e ? e : svg_load_plugin(1, "libgvplugin_core.so.6");
}

struct err *ses_graphviz_try(void)
{
	return svg_load();
}

/* Before the lock: a layout and a rendering of a small graph, so that whatever is loaded late is loaded. */
static struct err *svg_prepare(void *ctx)
{
	struct svg_job *job = ctx;
	struct err *e = svg_load();
	if (e)
		return e;
	job->gvc = gv_context(gv_plugins, 0);
	char *svg = NULL;
	unsigned len = 0;
	void *warm = job->gvc ? gv_memread("digraph g { a [shape=box, fontname=\"Courier\", label=\"x\"]; a -> a; }") : NULL;
	if (!warm || gv_layout(job->gvc, warm, "dot") || gv_render_data(job->gvc, warm, "svg", &svg, &len))
		return err_fix(err_new(ERR_ENV, "Graphviz cannot lay out or write SVG here"), "reinstall the package libgvc6");
	return NULL;
}

static int svg_run(void *ctx, int out_fd)
{
	struct svg_job *job = ctx;
	char *svg = NULL;
	unsigned len = 0;
	void *g = gv_memread(job->dot->data);
	if (!g || gv_layout(job->gvc, g, "dot") || gv_render_data(job->gvc, g, "svg", &svg, &len))
		return 1;
	return child_write(out_fd, svg, len) ? 0 : 1;
}

struct err *ses_dot_to_svg(const struct buf *dot, struct buf *ret)
{
	struct buf text = {0};
	buf_add(&text, dot->data, dot->len);
	buf_add_ch(&text, 0);
	if (text.failed) {
		buf_fini(&text);
		return &err_nomem;
	}
	struct svg_job job = {.dot = &text};
	struct child_opts opts = {.what = "drawing with Graphviz", .max_out_len = DOT_SVG_MAX, .max_mem_len = (uint64_t)2 << 30,
				  .cpu_s = 60, .wall_ms = 90000, .prepare = svg_prepare, .run = svg_run, .ctx = &job};
	struct err *e = child_run(&opts, ret);
	buf_fini(&text);
	if (!e && !ret->len)
		e = err_new(ERR_INTERNAL, "Graphviz gave nothing for this graph");
	return e;
}
