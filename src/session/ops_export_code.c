/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole program as text: C of every function, the listing, the listing as a page to be read in a browser. It is written as it is
 * made, so that its length is no matter of memory; what there is no C of is said in its place and counted.
 */
#include "session/ops_exchange.h"
#include "session/ops_int.h"
#include "session/ses_code.h"
#include "session/ses_int.h"

#include <stdio.h>
#include <string.h>

#define PAGE 2000u /* lines asked for at once */

struct err *ops_export_c(struct ops_sink *s)
{
	struct ses_snap *sn = s->rq->sn;
	uint32_t cnt;
	size_t types = 0;
	image_funcs(sn->im, &cnt);
	struct err *e = ops_types_header(s->rq, s->out, &types);
	s->types = types;
	buf_add_ch(s->out, '\n');
	ses_code_head(s->out);
	for (uint32_t f = 0; f < cnt; f++) {
		ses_code_prototype(sn, f, s->out);
		buf_add_str(s->out, ";\n");
	}
	struct arena scratch = {0};
	struct ses_code code = {0};
	for (uint32_t f = 0; f < cnt && !e; f++) {
		code.text.len = 0;
		e = ses_call_check(s->rq->call);
		if (!e)
			e = ses_code_func(sn, f, false, &scratch, &code);
		if (!e) {
			buf_add_ch(s->out, '\n');
			buf_add(s->out, code.defines.data, code.defines.len);
			buf_add(s->out, code.text.data, code.text.len);
			s->functions++;
		} else if (e->kind == ERR_UNSUPPORTED || e->kind == ERR_BUDGET) {
			buf_printf(s->out, "\n/* %s */\n", e->text);
			err_free(e);
			e = NULL;
			s->failed++;
		}
		arena_reset(&scratch);
		if (!e)
			e = s->flush(s);
	}
	ses_code_fini(&code);
	arena_fini(&scratch);
	return e;
}

/* Every line of the listing, to `put`. */
static struct err *each_line(struct ops_sink *s, void (*put)(struct ops_sink *s, const struct ses_head *h))
{
	struct ses_snap *sn = s->rq->sn;
	struct arena a = {0};
	struct ses_segment *segs;
	uint32_t seg_cnt;
	struct ses_at at = {.va = UINT64_MAX, .sub = 1, .count = PAGE + 1};
	struct err *e = ses_segments(sn, &a, &segs, &seg_cnt);
	for (uint32_t i = 0; i < seg_cnt && !e; i++)
		at.va = segs[i].size ? MIN(at.va, segs[i].addr) : at.va;
	bool has_more = at.va != UINT64_MAX;
	while (has_more && !e) {
		struct ses_head *h;
		uint32_t cnt = 0;
		arena_reset(&a);
		e = ses_heads(sn, s->rq->call, &at, &a, &h, &cnt);
		for (uint32_t i = 0; i < MIN(cnt, PAGE) && !e; i++)
			put(s, &h[i]);
		s->lines += e ? 0 : MIN(cnt, PAGE);
		has_more = cnt > PAGE;
		if (has_more && !e) {
			at.va = h[PAGE].va;
			at.sub = h[PAGE].sub ? h[PAGE].sub : SES_SUB_ITEM;
		}
		if (!e)
			e = s->flush(s);
	}
	arena_fini(&a);
	return e;
}

static void put_asm(struct ops_sink *s, const struct ses_head *h)
{
	bool is_item = h->kind <= SES_HEAD_UNKNOWN || h->kind == SES_HEAD_MEMBER;
	buf_printf(s->out, "%0*llx  %s", s->rq->sn->arch->bits / 4, (unsigned long long)h->va, is_item ? "    " : "");
	buf_add(s->out, h->text.s, h->text.len);
	if (h->comment.len) {
		buf_add_str(s->out, "  ; ");
		buf_add(s->out, h->comment.s, h->comment.len);
	}
	buf_add_ch(s->out, '\n');
}

struct err *ops_export_asm(struct ops_sink *s)
{
	return each_line(s, put_asm);
}

static void put_html_text(struct buf *b, struct ses_text t)
{
	for (uint32_t i = 0; i < t.len; i++) {
		char c = t.s[i];
		const char *as = c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : NULL;
		if (as)
			buf_add_str(b, as);
		else
			buf_add_ch(b, c);
	}
}

static void put_html(struct ops_sink *s, const struct ses_head *h)
{
	unsigned long long va = h->va;
	bool is_item = !h->sub;
	const char *kind = h->kind == SES_HEAD_FUNC || h->kind == SES_HEAD_SEGMENT ? "f" : h->kind == SES_HEAD_LABEL ? "l" : NULL;
	buf_add_str(s->out, "<i");
	if (is_item)
		buf_printf(s->out, " id=\"a%llx\"", va);
	buf_printf(s->out, ">%0*llx</i>  ", s->rq->sn->arch->bits / 4, va);
	if (kind)
		buf_printf(s->out, "<b class=\"%s\">", kind);
	else
		buf_add_str(s->out, "    ");
	if (h->has_target)
		buf_printf(s->out, "<a href=\"#a%llx\">", (unsigned long long)h->target);
	put_html_text(s->out, h->text);
	buf_add_str(s->out, h->has_target ? "</a>" : "");
	buf_add_str(s->out, kind ? "</b>" : "");
	if (h->comment.len) {
		buf_add_str(s->out, "  <u>; ");
		put_html_text(s->out, h->comment);
		buf_add_str(s->out, "</u>");
	}
	buf_add_ch(s->out, '\n');
}

struct err *ops_export_html(struct ops_sink *s)
{
	struct ses_snap *sn = s->rq->sn;
	const char *path = sn->ses->path, *slash = strrchr(path, '/');
	struct ses_text name = ses_text_cstr(slash && slash[1] ? slash + 1 : path);
	uint32_t cnt;
	const struct image_func *funcs = image_funcs(sn->im, &cnt);
	buf_add_str(s->out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>");
	put_html_text(s->out, name);
	buf_add_str(s->out, "</title>\n<style>body{font:14px monospace;background:#fff;color:#222}a{color:#04c;text-decoration:none}"
			    "i{color:#666;font-style:normal}u{color:#060;text-decoration:none}b.f{color:#804}b.l{color:#048}"
			    "i:target{background:#fe8}</style></head><body>\n<h1>");
	put_html_text(s->out, name);
	buf_printf(s->out, "</h1>\n<p>%u functions</p>\n<ul>\n", cnt);
	struct arena a = {0};
	struct err *e = NULL;
	for (uint32_t i = 0; i < cnt && !e; i++) {
		buf_printf(s->out, "<li><a href=\"#a%llx\">", (unsigned long long)space_va(sn->space, funcs[i].loc));
		put_html_text(s->out, ses_func_name(sn, i, &a));
		buf_add_str(s->out, "</a></li>\n");
		arena_reset(&a);
		s->functions++;
		e = s->flush(s);
	}
	arena_fini(&a);
	buf_add_str(s->out, "</ul>\n<pre>\n");
	if (!e)
		e = each_line(s, put_html);
	buf_add_str(s->out, "</pre>\n</body></html>\n");
	return e;
}
