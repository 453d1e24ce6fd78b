/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/fake_session.h"

#include "base/glob.h"
#include "session/ses_remote.h"
#include "session/ops.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STRING_CNT 40u
#define STRING_LEN 16u

struct fake_config fake_config;

struct ses_snap {
	int refs;
	bool is_preview;
	uint64_t rev;
};

struct ses {
	struct ses_snap *snap;
};

static struct ses_text text(const char *s)
{
	return (struct ses_text){s, (uint32_t)strlen(s)};
}

static struct ses_text copy(struct arena *a, const char *s)
{
	return text(arena_strndup(a, s, strlen(s)));
}

struct ses *fake_open(uint32_t func_cnt)
{
	struct ses *s = calloc(1, sizeof(*s));
	fake_config = (struct fake_config){.func_cnt = func_cnt};
	s->snap = calloc(1, sizeof(*s->snap));
	s->snap->refs = 1;
	return s;
}

void fake_publish(struct ses *s)
{
	ses_snap_put(s->snap);
	s->snap = calloc(1, sizeof(*s->snap));
	s->snap->refs = 1;
	s->snap->is_preview = fake_config.is_preview;
	s->snap->rev = fake_config.edit_cnt;
}

void ses_close(struct ses *s)
{
	ses_snap_put(s->snap);
	free(s);
}

struct err *ses_open(const char *path, const struct ses_opts *opts, struct ses **ret)
{
	*ret = fake_open(100);
	return NULL;
}

int ses_event_fd(const struct ses *s)
{
	return -1;
}

void ses_get_progress(const struct ses *s, struct ses_progress *ret)
{
	*ret = (struct ses_progress){.state = s->snap->is_preview ? SES_IDENTIFYING : SES_READY, .done = 1, .total = 4};
}

const char *ses_error_text(const struct ses *s)
{
	return "";
}

const char *ses_store_note(const struct ses *s)
{
	return NULL;
}

bool ses_is_remote(const char *path)
{
	(void)path;
	return false;
}

const char *ses_path(const struct ses *s)
{
	return "/bin/fake\x1b[31m";
}

bool ses_target_changed(const struct ses *s)
{
	return false;
}

struct ses_snap *ses_snap_get(struct ses *s)
{
	s->snap->refs++;
	return s->snap;
}

void ses_snap_put(struct ses_snap *sn)
{
	if (sn && --sn->refs == 0)
		free(sn);
}

uint64_t ses_snap_rev(const struct ses_snap *sn)
{
	return sn->rev;
}

bool ses_snap_is_preview(const struct ses_snap *sn)
{
	return sn->is_preview;
}

static uint64_t text_len(void)
{
	return (uint64_t)fake_config.func_cnt * FAKE_FUNC_LEN;
}

struct err *ses_info(struct ses_snap *sn, struct arena *a, struct ses_info *ret)
{
	*ret = (struct ses_info){.format = text("ELF64"), .arch = text("x86-64"), .type = text("exec"), .size = 123456,
				 .main_va = FAKE_TEXT + 2 * FAKE_FUNC_LEN, .entry = FAKE_TEXT, .has_entry = true,
				 .functions = fake_config.func_cnt};
	return NULL;
}

struct err *ses_segments(struct ses_snap *sn, struct arena *a, struct ses_segment **ret, uint32_t *ret_cnt)
{
	struct ses_segment *s = ARENA_ARRAY(a, struct ses_segment, 3);
	s[0] = (struct ses_segment){text(".text"), FAKE_TEXT, text_len(), 0x1000, text_len(), "r-x"};
	s[1] = (struct ses_segment){text(".rodata"), FAKE_STRINGS, STRING_CNT * STRING_LEN, 0x100000, STRING_CNT * STRING_LEN, "r--"};
	s[2] = (struct ses_segment){text(".bss"), FAKE_BSS, 0x1000, 0, 0, "rw-"};
	*ret = s;
	*ret_cnt = 3;
	return NULL;
}

struct err *ses_sections(struct ses_snap *sn, struct arena *a, struct ses_segment **ret, uint32_t *ret_cnt)
{
	return ses_segments(sn, a, ret, ret_cnt);
}

/* --- items --- */

static uint64_t item_cnt(void)
{
	return text_len() / 4 + STRING_CNT + 1;
}

static bool item_of(uint64_t va, uint64_t *ret)
{
	uint64_t code = text_len() / 4;
	if (va >= FAKE_TEXT && va < FAKE_TEXT + text_len())
		*ret = (va - FAKE_TEXT) / 4;
	else if (va >= FAKE_STRINGS && va < FAKE_STRINGS + STRING_CNT * STRING_LEN)
		*ret = code + (va - FAKE_STRINGS) / STRING_LEN;
	else if (va >= FAKE_BSS && va < FAKE_BSS + 0x1000)
		*ret = code + STRING_CNT;
	else
		return false;
	return true;
}

static uint64_t item_va(uint64_t i)
{
	uint64_t code = text_len() / 4;
	return i < code ? FAKE_TEXT + i * 4 : i < code + STRING_CNT ? FAKE_STRINGS + (i - code) * STRING_LEN : FAKE_BSS;
}

static const char *func_name(struct arena *a, uint64_t func)
{
	if (func == 1)
		return "evil\x1b]0;title\x07\xe2\x80\xaename";
	if (func == 2)
		return "main";
	if (func == 3)
		return "\xe6\xbc\xa2\xe5\xad\x97_e\xcc\x81";
	return arena_printf(a, "sub_%llx", (unsigned long long)(FAKE_TEXT + func * FAKE_FUNC_LEN));
}

static uint32_t pre_cnt(uint64_t i)
{
	uint64_t code = text_len() / 4;
	return i >= code ? i == code : i % 8 ? 0 : 2 + (i == 0);
}

static void fill_pre(struct arena *a, struct ses_head *h, uint64_t i, uint32_t sub)
{
	uint64_t code = text_len() / 4;
	if (i >= code || (i == 0 && sub == 1)) {
		h->kind = SES_HEAD_SEGMENT;
		h->text = i ? text("; section .rodata r--") : text("; section .text r-x");
	} else if (sub == pre_cnt(i)) {
		h->kind = SES_HEAD_LABEL;
		h->text = text(arena_printf(a, "%s:", func_name(a, i / 8)));
	} else {
		h->kind = SES_HEAD_FUNC;
		h->text = text(arena_printf(a, "; %s  ; 32 bytes, 1 block, 2 callers", func_name(a, i / 8)));
	}
}

static const struct ses_span mov_spans[] = {
	{0, 3, SES_SPAN_MNEMONIC, 255}, {4, 3, SES_SPAN_REG, 0}, {7, 1, SES_SPAN_PUNCT, 255}, {9, 3, SES_SPAN_REG, 1}};
static const struct ses_span call_spans[] = {{0, 4, SES_SPAN_MNEMONIC, 255}, {5, 64, SES_SPAN_NAME, 0}};

static void fill_code(struct arena *a, struct ses_head *h, uint64_t i)
{
	static const uint8_t bytes[] = {0x48, 0x89, 0xe5, 0x90};
	h->kind = SES_HEAD_CODE;
	h->bytes = bytes;
	h->bytes_len = 4;
	if (i % 8 == 5) {
		uint64_t callee = (i / 8 + 7) % fake_config.func_cnt;
		h->text = text(arena_printf(a, "call %s", func_name(a, callee)));
		h->spans = call_spans;
		struct ses_span *s = ARENA_ARRAY(a, struct ses_span, 2);
		memcpy(s, call_spans, sizeof(call_spans));
		s[1].len = (uint16_t)(h->text.len - 5);
		h->spans = s;
		h->span_cnt = 2;
		h->has_target = 1;
		h->target = FAKE_TEXT + callee * FAKE_FUNC_LEN;
		h->comment = text("\"a string\\n\"");
	} else {
		h->text = i % 2 ? text("mov rax, rbx") : text("add rcx, rax");
		h->spans = mov_spans;
		h->span_cnt = 4;
	}
}

static void fill(struct ses_snap *sn, struct arena *a, struct ses_head *h, uint64_t i, uint32_t sub)
{
	uint64_t code = text_len() / 4;
	*h = (struct ses_head){.va = item_va(i), .row = sn->is_preview ? UINT64_MAX : i, .sub = sub, .size = i < code ? 4 : 16,
			       .text = text(""), .label = text(""), .comment = text("")};
	if (sub) {
		fill_pre(a, h, i, sub);
	} else if (i < code) {
		fill_code(a, h, i);
	} else {
		h->kind = SES_HEAD_STRING;
		h->text = text("db \"some text\",0");
	}
}

/* Steps one line; false at an end. */
static bool step(uint64_t *i, uint32_t *sub, bool back)
{
	if (!back) {
		if (*sub) {
			*sub = *sub < pre_cnt(*i) ? *sub + 1 : 0;
			return true;
		}
		if (++*i >= item_cnt())
			return false;
		*sub = pre_cnt(*i) ? 1 : 0;
		return true;
	}
	uint32_t before = *sub ? *sub - 1 : pre_cnt(*i);
	if (before) {
		*sub = before;
		return true;
	}
	if (!*i)
		return false;
	--*i;
	*sub = 0;
	return true;
}

struct err *ses_heads(struct ses_snap *sn, const struct ses_call *call, const struct ses_at *at, struct arena *a,
		      struct ses_head **ret, uint32_t *ret_cnt)
{
	uint64_t va = at->va;
	uint32_t sub = at->sub;
	uint32_t count = at->count;
	uint64_t i;
	uint32_t n = 0;
	fake_config.call_cnt++;
	if (!item_of(va, &i))
		return err_new(ERR_NOT_FOUND, "0x%llx: is not mapped", (unsigned long long)va);
	sub = sub == 0 && pre_cnt(i) ? 1 : sub > pre_cnt(i) ? 0 : sub;
	if (at->back) {
		while (n < count && step(&i, &sub, true))
			n++;
		count = n;
		n = 0;
	}
	struct ses_head *h = ARENA_ARRAY(a, struct ses_head, count + 1);
	while (n < count) {
		fill(sn, a, &h[n++], i, sub);
		if (!step(&i, &sub, false))
			break;
	}
	*ret = h;
	*ret_cnt = n;
	return NULL;
}

uint64_t ses_row_cnt(struct ses_snap *sn)
{
	return sn->is_preview ? 0 : item_cnt();
}

bool ses_row_of(struct ses_snap *sn, uint64_t va, uint64_t *ret_row)
{
	return !sn->is_preview && item_of(va, ret_row);
}

bool ses_va_of_row(struct ses_snap *sn, uint64_t row, uint64_t *ret_va)
{
	*ret_va = item_va(row);
	return !sn->is_preview && row < item_cnt();
}

static unsigned digit(char ch)
{
	return (unsigned)(ch <= '9' ? ch - '0' : ch - 'a' + 10);
}

bool ses_patch_at(struct ses_snap *sn, uint64_t va, struct ses_fact *ret)
{
	bool is_found = false;
	for (unsigned i = 0; i < fake_config.edit_cnt; i++) {
		const struct fake_edit *f = &fake_config.edits[i];
		if (strcmp(f->op, "patch") || va - f->va >= strlen(f->value) / 2)
			continue;
		*ret = (struct ses_fact){.addr = f->va, .value = text(f->value), .rev = i + 1};
		is_found = true;
	}
	return is_found;
}

uint32_t ses_bytes(struct ses_snap *sn, uint64_t va, uint32_t len, uint8_t *out, bool *mapped)
{
	struct ses_fact f;
	uint32_t n = ses_original_bytes(sn, va, len, out, mapped);
	for (uint32_t i = 0; i < len; i++) {
		if (ses_patch_at(sn, va + i, &f))
			out[i] = (uint8_t)(digit(f.value.s[2 * (va + i - f.addr)]) << 4 | digit(f.value.s[2 * (va + i - f.addr) + 1]));
	}
	return n;
}

uint32_t ses_original_bytes(struct ses_snap *sn, uint64_t va, uint32_t len, uint8_t *out, bool *mapped)
{
	uint64_t i;
	uint32_t n = 0;
	for (uint32_t k = 0; k < len; k++) {
		bool is_mapped = item_of(va + k, &i);
		out[k] = is_mapped ? (uint8_t)(va + k) : 0;
		if (mapped)
			mapped[k] = is_mapped;
		n += is_mapped;
	}
	return n;
}

/* --- names and lists --- */

struct err *ses_resolve(struct ses_snap *sn, const char *what, uint64_t *ret_va)
{
	if (strcmp(what, "main") == 0) {
		*ret_va = FAKE_TEXT + 2 * FAKE_FUNC_LEN;
		return NULL;
	}
	char *end;
	*ret_va = strtoull(what, &end, 16);
	return *end || !*what ? err_new(ERR_NOT_FOUND, "%s: no such name", what) : NULL;
}

struct ses_text ses_name_at(struct ses_snap *sn, uint64_t va, struct arena *a)
{
	uint64_t i;
	return item_of(va, &i) && i < text_len() / 4 && i % 8 == 0 ? copy(a, func_name(a, i / 8)) : text("");
}

struct ses_text ses_where(struct ses_snap *sn, uint64_t va, struct arena *a)
{
	uint64_t i;
	if (!item_of(va, &i) || i >= text_len() / 4)
		return text("");
	return text(arena_printf(a, "%s+0x%llx", func_name(a, i / 8), (unsigned long long)((va - FAKE_TEXT) % FAKE_FUNC_LEN)));
}

bool ses_is_mapped(struct ses_snap *sn, uint64_t va)
{
	uint64_t i;
	return item_of(va, &i);
}

bool ses_va_to_file(struct ses_snap *sn, uint64_t va, uint64_t *ret_off)
{
	*ret_off = va - FAKE_TEXT + 0x1000;
	return va < FAKE_BSS && ses_is_mapped(sn, va);
}

const char *ses_span_name(enum ses_span_kind k)
{
	return "";
}

static struct err *check_deadline(const struct ses_call *call)
{
	fake_config.call_cnt++;
	if (fake_config.is_slow && call->deadline_ns)
		return err_new(ERR_TIMEOUT, "too slow");
	if (call->cancel && atomic_load(call->cancel))
		return err_new(ERR_CANCELLED, "cancelled");
	return NULL;
}

struct err *ses_functions(struct ses_snap *sn, const struct ses_call *call, struct ses_page *page, struct arena *a,
			  struct ses_func **ret)
{
	struct err *e = check_deadline(call);
	if (e)
		return e;
	uint32_t limit = page->limit ? page->limit : 1000;
	*ret = ARENA_ARRAY(a, struct ses_func, limit + 1);
	page->cnt = 0;
	page->total = 0;
	/* A preview knows every third function. */
	for (uint32_t i = 0; i < fake_config.func_cnt; i += sn->is_preview ? 3 : 1) {
		char plain[32];
		snprintf(plain, sizeof(plain), "sub_%x", FAKE_TEXT + i * FAKE_FUNC_LEN);
		const char *name = i && i < 4 ? func_name(a, i) : plain;
		if (page->filter && !glob_match(page->filter, strlen(page->filter), name, strlen(name), true))
			continue;
		uint64_t at = page->total++;
		if (at < page->offset || page->cnt == limit)
			continue;
		(*ret)[page->cnt++] = (struct ses_func){.id = i, .addr = FAKE_TEXT + i * FAKE_FUNC_LEN, .size = FAKE_FUNC_LEN,
							 .name = copy(a, name), .demangled = text(""),
							 .flags = i == 5 ? SES_FN_NORETURN : i == 6 ? SES_FN_THUNK : 0,
							 .source = "symbol"};
	}
	return NULL;
}

bool ses_func_at(struct ses_snap *sn, uint64_t va, struct arena *a, struct ses_func *ret)
{
	uint64_t i;
	if (!item_of(va, &i) || i >= text_len() / 4)
		return false;
	uint64_t func = i / 8 >= 2 && i < 16 + fake_config.big_blocks ? 2 : i / 8;
	*ret = (struct ses_func){.addr = FAKE_TEXT + func * FAKE_FUNC_LEN, .name = copy(a, func_name(a, func)),
				 .demangled = text(""), .source = "symbol"};
	return true;
}

/* Each function is four blocks of two instructions: a condition, its other arm, a loop back to that, a return. */
struct err *ses_blocks(struct ses_snap *sn, const struct ses_call *call, uint64_t func_va, struct arena *a,
		       struct ses_block **ret, uint32_t *ret_cnt)
{
	static const struct { uint32_t cnt; struct ses_edge e[2]; } succ[] = {
		{2, {{2, 0, "taken"}, {1, 0, "fall"}}}, {1, {{2, 0, "fall"}}}, {2, {{1, 0, "taken"}, {3, 0, "fall"}}}, {0}};
	uint64_t i;
	struct err *e = check_deadline(call);
	if (e || !item_of(func_va, &i) || i >= text_len() / 4)
		return e ? e : err_new(ERR_NOT_FOUND, "0x%llx: is in no function", (unsigned long long)func_va);
	bool is_big = i / 8 >= 2 && i < 16 + fake_config.big_blocks;
	uint64_t start = FAKE_TEXT + (is_big ? 2 : i / 8) * FAKE_FUNC_LEN;
	uint32_t cnt = is_big ? fake_config.big_blocks : 4;
	uint32_t len = cnt == 4 ? 8 : 4;
	struct ses_block *b = ARENA_ARRAY(a, struct ses_block, cnt);
	for (uint32_t k = 0; k < cnt; k++) {
		b[k] = (struct ses_block){.id = k, .addr = start + k * len, .end = start + (k + 1) * len,
					  .succ = ARENA_ARRAY(a, struct ses_edge, 2)};
		if (cnt == 4) {
			b[k].succ_cnt = succ[k].cnt;
			memcpy(b[k].succ, succ[k].e, sizeof(succ[k].e));
		} else if (k + 1 < cnt) {
			b[k].succ[b[k].succ_cnt++] = (struct ses_edge){.id = MIN(k + 7, cnt - 1), .kind = "taken"};
			b[k].succ[b[k].succ_cnt++] = (struct ses_edge){.id = k % 11 == 10 ? k - 9 : k + 1, .kind = "fall"};
		}
		for (uint32_t s = 0; s < b[k].succ_cnt; s++)
			b[k].succ[s].addr = start + b[k].succ[s].id * len;
	}
	*ret = b;
	*ret_cnt = cnt;
	return NULL;
}

/* --- C --- */

struct c_text {
	struct arena *a;
	struct ses_c *c;
	char *text;
	uint32_t len, cap;
};

/* A line of the instruction at va; 0: of none. */
static void c_line(struct c_text *t, uint64_t va, const char *s)
{
	struct ses_c *c = t->c;
	struct ses_c_line *l = &c->lines[c->line_cnt];
	uint32_t len = (uint32_t)strlen(s);
	assert(t->len + len + 1 <= t->cap);
	memcpy(t->text + t->len, s, len);
	t->text[t->len + len] = '\n';
	*l = (struct ses_c_line){.off = t->len, .len = len, .addr_cnt = va != 0};
	if (va) {
		l->first_addr = (uint32_t)((va - c->addr) / 4);
		c->places[c->place_cnt++] = (struct ses_c_place){va, c->line_cnt};
	}
	c->line_cnt++;
	t->len += len + 1;
}

/* The name somebody gave the block, or its number. */
static const char *c_label(struct arena *a, uint64_t number, uint64_t va, bool can_have_name)
{
	for (unsigned i = fake_config.edit_cnt; can_have_name && i-- > 0;) {
		const struct fake_edit *f = &fake_config.edits[i];
		if (f->va == va && !strcmp(f->op, "rename"))
			return arena_printf(a, "%s_%llx", f->value, (unsigned long long)va);
	}
	return arena_printf(a, "b%llu", (unsigned long long)number);
}

static void c_insn(struct c_text *t, uint64_t i, uint64_t va)
{
	uint64_t callee = FAKE_TEXT + (i / 8 + 7) % fake_config.func_cnt * FAKE_FUNC_LEN;
	switch (i % 8) {
	case 5:
		c_line(t, va, "\tSCRY_SAVE;");
		c_line(t, va, arena_printf(t->a, "\tscry_call(m, m->image + 0x%llxu, m->image + 0x%llxu); /* sub_%llx */",
					   (unsigned long long)callee, (unsigned long long)va + 4, (unsigned long long)callee));
		c_line(t, va, "\tSCRY_LOAD;");
		break;
	case 7:
		c_line(t, va, "\tif (rax == 0x41ull) /* \xe6\xbc\xa2 */");
		c_line(t, va, arena_printf(t->a, "\t\tgoto %s;", c_label(t->a, 1, t->c->addr + 8, true)));
		break;
	default:
		c_line(t, va, i % 2 ? "\trax = rbx;" : "\trcx = (uint64_t)(rcx + rax);");
	}
}

bool ses_can_decompile(struct ses_snap *sn)
{
	return !fake_config.has_no_c;
}

/* Eight instructions in four blocks, and what was said about them. */
struct err *ses_decompile(struct ses_snap *sn, const struct ses_call *call, uint64_t va, struct arena *a, struct ses_c *ret)
{
	struct ses_func f;
	struct err *e = check_deadline(call);
	*ret = (struct ses_c){.level = "L4", .status = "full", .verified = fake_config.c_cnt ? "not_run" : "equal"};
	if (e)
		return e;
	if (fake_config.has_no_c)
		return err_new(ERR_UNSUPPORTED, "C of fake needs a lifter for it, which there is not yet");
	if (!ses_func_at(sn, va, a, &f))
		return err_new(ERR_NOT_FOUND, "is in no function");
	if (fake_config.has_empty_c) {
		ret->text = text("");
		return NULL;
	}
	bool is_big = f.addr == FAKE_TEXT + 2 * FAKE_FUNC_LEN && fake_config.big_blocks;
	uint64_t first = (f.addr - FAKE_TEXT) / 4, cnt = is_big ? fake_config.big_blocks : 8;
	struct c_text t = {.a = a, .c = ret, .cap = (uint32_t)cnt * 200 + 4096};
	fake_config.c_cnt++;
	t.text = arena_alloc(a, t.cap);
	ret->addr = f.addr;
	ret->lines = ARENA_ARRAY(a, struct ses_c_line, 4 * cnt + 64);
	ret->places = ARENA_ARRAY(a, struct ses_c_place, 4 * cnt + 64);
	ret->addrs = ARENA_ARRAY(a, uint64_t, cnt);
	ret->starts = ARENA_ARRAY(a, uint64_t, cnt);
	ret->name = copy(a, arena_printf(a, "fn_%llx", (unsigned long long)f.addr));
	ret->prototype = text("");
	for (unsigned i = 0; i < fake_config.edit_cnt; i++) {
		const struct fake_edit *d = &fake_config.edits[i];
		if (d->va == f.addr && !strcmp(d->op, "comment"))
			c_line(&t, 0, arena_printf(a, "/* %s */", d->value));
	}
	c_line(&t, 0, arena_printf(a, "void fn_%llx(struct scry_x86_64 *m)", (unsigned long long)f.addr));
	c_line(&t, 0, "{");
	c_line(&t, 0, "\tuint64_t rax = m->rax;");
	for (uint64_t i = 0; i < cnt; i++) {
		uint64_t at = f.addr + 4 * i;
		ret->addrs[i] = at;
		if (i % 2 == 0) {
			ret->starts[ret->start_cnt++] = at;
			c_line(&t, 0, arena_printf(a, "%s:; /* 0x%llx */", c_label(a, i / 2, at, i != 0), (unsigned long long)at));
			c_line(&t, 0, "\t{");
		}
		c_insn(&t, first + i, at);
		if (i % 2)
			c_line(&t, 0, "\t}");
	}
	c_line(&t, 0, "}");
	ret->text = (struct ses_text){t.text, t.len};
	return NULL;
}

struct err *ses_strings(struct ses_snap *sn, const struct ses_call *call, struct ses_page *page, struct arena *a,
			struct ses_string **ret)
{
	*ret = ARENA_ARRAY(a, struct ses_string, STRING_CNT);
	page->cnt = 0;
	page->total = 0;
	for (uint32_t i = 0; i < STRING_CNT; i++) {
		const char *s = i == 1 ? "line\nbreak\x1b[2J" : i == 2 ? "\xe2\x80\xaetfel" : "some text";
		if (page->filter && !glob_match(page->filter, strlen(page->filter), s, strlen(s), true))
			continue;
		uint64_t at = page->total++;
		if (at < page->offset || at - page->offset >= page->limit)
			continue;
		(*ret)[page->cnt++] = (struct ses_string){FAKE_STRINGS + i * STRING_LEN, (uint32_t)strlen(s), "ascii", copy(a, s)};
	}
	return NULL;
}

struct err *ses_imports(struct ses_snap *sn, const struct ses_call *call, struct ses_page *page, struct arena *a,
			struct ses_import **ret)
{
	*ret = ARENA_ARRAY(a, struct ses_import, 2);
	(*ret)[0] = (struct ses_import){.has_addr = true, .addr = FAKE_TEXT + 64, .name = text("puts"), .demangled = text(""),
					.library = text("libc.so.6"), .version = text("GLIBC_2.2.5"), .kind = "func"};
	(*ret)[1] = (struct ses_import){.name = text("__gmon_start__"), .demangled = text(""), .library = text(""),
					.version = text(""), .kind = "notype"};
	page->cnt = page->offset ? 0 : MIN(2, page->limit);
	page->total = 2;
	return NULL;
}

struct err *ses_exports(struct ses_snap *sn, const struct ses_call *call, struct ses_page *page, struct arena *a,
			struct ses_import **ret)
{
	page->cnt = 0;
	page->total = 0;
	return NULL;
}

struct err *ses_symbols(struct ses_snap *sn, const struct ses_call *call, struct ses_page *page, struct arena *a,
			struct ses_import **ret)
{
	return ses_imports(sn, call, page, a, ret);
}

struct err *ses_problems(struct ses_snap *sn, struct ses_page *page, struct arena *a, struct ses_problem **ret)
{
	page->cnt = 0;
	page->total = 0;
	return NULL;
}

struct err *ses_xrefs(struct ses_snap *sn, const struct ses_call *call, const struct ses_xref_ask *ask, struct ses_page *page,
		      struct arena *a, struct ses_xref **ret)
{
	uint64_t va = ask->va;
	bool from = ask->from;
	*ret = ARENA_ARRAY(a, struct ses_xref, 3);
	for (uint32_t i = 0; i < 3; i++) {
		uint64_t other = FAKE_TEXT + (20 + i) * FAKE_FUNC_LEN + 20;
		(*ret)[i] = (struct ses_xref){.from = from ? va : other, .to = from ? other : va, .kind = "call", .has_func = true,
					      .func_addr = other, .func = text("caller"), .text = text("call main")};
	}
	page->cnt = page->offset ? 0 : MIN(3, page->limit);
	page->total = 3;
	return NULL;
}

/* Each function calls the one seven further on. */
struct err *ses_callgraph(struct ses_snap *sn, const struct ses_call *call, const struct ses_call_ask *ask, struct ses_page *page,
			  struct arena *a, struct ses_call_edge **ret)
{
	uint64_t at = ask->func_va;
	*ret = ARENA_ARRAY(a, struct ses_call_edge, ask->depth + 1);
	page->cnt = 0;
	for (uint32_t i = 0; i < ask->depth; i++) {
		uint64_t callee = FAKE_TEXT + ((at - FAKE_TEXT) / FAKE_FUNC_LEN + 7) % fake_config.func_cnt * FAKE_FUNC_LEN;
		(*ret)[page->cnt++] = (struct ses_call_edge){.caller = at, .callee = callee, .count = 1};
		at = callee;
	}
	page->total = page->cnt;
	return check_deadline(call);
}

const char *ses_processor(uint32_t i)
{
	return i == 0 ? "x86-64" : i == 1 ? "aarch64" : NULL;
}

struct err *ses_search(struct ses_snap *sn, const struct ses_call *call, struct ses_search_ask *ask, struct arena *a,
		       struct ses_hit **ret)
{
	/* In instructions two: "xcallx" for "*call*", then "call". */
	const uint64_t hits[] = {FAKE_TEXT + 10 * FAKE_FUNC_LEN, FAKE_TEXT + 12 * FAKE_FUNC_LEN};
	size_t cnt = ask->kind == SES_SEARCH_INSN ? 2 : 1, len = strlen(ask->what);
	*ret = ARENA_ARRAY(a, struct ses_hit, 1);
	ask->cnt = 0;
	ask->has_more = false;
	ask->next_va = 0;
	for (size_t k = 0; k < cnt && !ask->cnt && strcmp(ask->what, "absent"); k++) {
		size_t i = ask->back ? cnt - 1 - k : k;
		if (ask->back ? hits[i] >= ask->from_va : hits[i] < ask->from_va)
			continue;
		bool is_part = cnt == 2 && len > 2 && *ask->what == '*';
		char *word = is_part ? arena_printf(a, i ? "%.*s" : "x%.*sx", (int)len - 2, ask->what + 1) : NULL;
		(*ret)[0] = (struct ses_hit){.addr = hits[i], .has_func = true, .func_addr = hits[i], .func = text("found_here"),
					     .text = text(word ? word : "hit")};
		ask->cnt = 1;
	}
	return NULL;
}

/* A journal of what was said, without a disk. */
struct err *ses_edit(struct ses *s, struct ses_edit *edits, size_t cnt, const struct ses_edit_opts *opts, struct arena *a, uint64_t *ret_rev)
{
	for (size_t i = 0; i < cnt; i++) {
		bool is_bad = edits[i].value && strchr(edits[i].value, ' ') && !strcmp(edits[i].op, "rename");
		edits[i].status = is_bad ? SES_EDIT_REFUSED : SES_EDIT_APPLIED;
		edits[i].why = is_bad ? "a name has no blank" : NULL;
		for (unsigned k = 0; k < fake_config.edit_cnt; k++) {
			const struct fake_edit *f = &fake_config.edits[k];
			if (f->va != edits[i].addr || strcmp(f->op, edits[i].op) || strcmp(f->sub, edits[i].sub))
				continue;
			edits[i].before = f->value;
			edits[i].before_len = strlen(f->value);
		}
		if (opts->is_dry_run || is_bad || fake_config.edit_cnt == FAKE_EDIT_MAX)
			continue;
		struct fake_edit *f = &fake_config.edits[fake_config.edit_cnt++];
		snprintf(f->op, sizeof(f->op), "%s", edits[i].op);
		snprintf(f->sub, sizeof(f->sub), "%s", edits[i].sub);
		snprintf(f->value, sizeof(f->value), "%s", edits[i].value ? edits[i].value : "");
		f->va = edits[i].addr;
	}
	*ret_rev = fake_config.edit_cnt;
	return NULL;
}

/* What is typed or written in a form is the newest edit of that kind at that place. */
static const struct fake_edit *newest(const char *op, uint64_t va)
{
	for (size_t i = fake_config.edit_cnt; i-- > 0;) {
		if (fake_config.edits[i].va == va && !strcmp(fake_config.edits[i].op, op))
			return &fake_config.edits[i];
	}
	return NULL;
}

void ses_type_at(struct ses_snap *sn, uint64_t va, struct arena *a, struct ses_type_info *ret)
{
	bool is_func = (va - FAKE_TEXT) % FAKE_FUNC_LEN == 0;
	const struct fake_edit *f = newest(is_func ? "set_prototype" : "retype", va);
	*ret = (struct ses_type_info){.is_func = is_func, .text = text(f ? f->value : is_func ? "int f(void)" : ""), .source = ""};
}

bool ses_formats_at(struct ses_snap *sn, uint64_t va, unsigned operand, struct arena *a, struct ses_formats *ret)
{
	const struct fake_edit *f = newest("format", va);
	*ret = (struct ses_formats){.now = f && *f->value ? f->value : "default", .value = 0x41,
				    .choices = {"default", "hex", "char"}, .choice_cnt = 3};
	return operand == 1;
}

struct err *ses_facts(struct ses_snap *sn, const struct ses_call *call, const char *op, struct ses_page *page, struct arena *a,
		      struct ses_fact **ret)
{
	*ret = ARENA_ARRAY(a, struct ses_fact, FAKE_EDIT_MAX);
	page->cnt = 0;
	for (unsigned i = 0; i < fake_config.edit_cnt; i++) {
		const struct fake_edit *f = &fake_config.edits[i];
		if (!strcmp(f->op, op) && *f->value)
			(*ret)[page->cnt++] = (struct ses_fact){.addr = f->va, .sub = text(f->sub), .value = text(f->value), .rev = i + 1};
	}
	page->total = page->cnt;
	return NULL;
}

static bool is_decided(unsigned id)
{
	for (unsigned k = 0; k < fake_config.edit_cnt; k++) {
		const struct fake_edit *f = &fake_config.edits[k];
		if ((!strcmp(f->op, "accept") || !strcmp(f->op, "refuse")) && strtoul(f->sub, NULL, 10) == id)
			return true;
	}
	return false;
}

/* The third proposal is stale, so it can only be refused. */
static struct err *decide(const char *name, const char *const *pairs, struct arena *a, struct ops_rows *ret)
{
	*ret = (struct ops_rows){.cells = ARENA_ARRAY(a, struct ses_text, 6 * FAKE_EDIT_MAX), .column_cnt = 6};
	bool is_bad = false;
	for (; *pairs; pairs += 2, ret->row_cnt++) {
		bool is_stale = *name == 'a' && !strcmp(pairs[1], "3");
		struct ses_text *row = (struct ses_text *)ret->cells + 6 * ret->row_cnt;
		for (int i = 0; i < 6; i++)
			row[i] = text("");
		row[1] = text(*name == 'a' && !is_stale ? "accepted" : "refused");
		if (is_stale) {
			row[5] = text("stale: what it changes was changed since");
			is_bad = true;
			continue;
		}
		struct fake_edit *f = &fake_config.edits[fake_config.edit_cnt++];
		snprintf(f->op, sizeof(f->op), "%s", name);
		snprintf(f->sub, sizeof(f->sub), "%.12s", pairs[1]);
	}
	return is_bad ? err_new(ERR_STALE, "accept: 1 of %u were refused", ret->row_cnt) : NULL;
}

/* Types are the declarations of the journal; a text with "bad" in its second line is refused there. */
struct err *ops_call(struct ses_snap *sn, const struct ses_call *call, const char *name, const char *const *pairs, struct arena *a,
		     struct ops_rows *ret)
{
	const char *value = "", *key = "";
	if (!strcmp(name, "accept") || !strcmp(name, "refuse"))
		return decide(name, pairs, a, ret);
	for (; *pairs; pairs += 2) {
		if (!strcmp(pairs[0], "text"))
			value = pairs[1];
		else if (!strcmp(pairs[0], "over") || !strcmp(pairs[0], "name"))
			key = pairs[1];
	}
	struct ses_text *cells = ARENA_ARRAY(a, struct ses_text, 5 * FAKE_EDIT_MAX);
	*ret = (struct ops_rows){.cells = cells, .column_cnt = 5};
	if (!strcmp(name, "types")) {
		for (unsigned i = 0; i < fake_config.edit_cnt; i++) {
			const struct fake_edit *f = &fake_config.edits[i];
			if (strcmp(f->op, "declare"))
				continue;
			struct ses_text row[5] = {text(f->sub), text("8"), text("struct"), text("user"), text(f->value)};
			memcpy(cells + 5 * ret->row_cnt++, row, sizeof(row));
		}
		ret->total = ret->row_cnt;
		return NULL;
	}
	if (strstr(value, "bad"))
		return err_new(ERR_BAD_INPUT, "declare: 2:3: ';' expected before 'bad'");
	struct fake_edit *f = &fake_config.edits[fake_config.edit_cnt++];
	snprintf(f->op, sizeof(f->op), "%s", name);
	snprintf(f->sub, sizeof(f->sub), "%.12s", *key ? key : value);
	snprintf(f->value, sizeof(f->value), "%s", value);
	return NULL;
}

/* Every third is stale, the second of three a declaration, the others names of functions. */
struct err *ses_proposals(struct ses *s, const struct ses_proposals_ask *ask, struct arena *a, struct ses_proposal **ret, uint32_t *ret_cnt,
			  uint64_t *ret_total)
{
	*ret = ARENA_ARRAY(a, struct ses_proposal, (size_t)fake_config.proposal_cnt + 1);
	*ret_cnt = 0;
	*ret_total = 0;
	for (unsigned i = 0; i < fake_config.proposal_cnt; i++) {
		bool is_type = i % 3 == 1, is_stale = i % 3 == 2;
		if ((!ask->has_decided && is_decided(i + 1)) || (*ret_total)++ < ask->offset || *ret_cnt == ask->limit)
			continue;
		(*ret)[(*ret_cnt)++] = (struct ses_proposal){
			.id = i + 1, .state = is_stale ? "stale" : "open", .author = "robot", .author_kind = "agent", .note = i ? "" : "it parses",
			.op = is_type ? "declare" : "rename", .sub = is_type ? "struct s" : "", .has_addr = !is_type,
			.addr = FAKE_TEXT + i * FAKE_FUNC_LEN, .has_before = is_stale, .before = text("old"), .has_after = true,
			.after = text(is_type ? "struct s {\n\tint a;\n};" : "parse")};
	}
	return NULL;
}

struct err *ses_refresh(struct ses *s)
{
	fake_publish(s);
	return NULL;
}

struct err *ses_undo(struct ses *s, const struct ses_undo_ask *ask, const struct ses_edit_opts *opts, struct arena *a,
		     struct ses_undone_list *ret)
{
	static struct ses_undone one = {.target = 1, .changes = 1};
	fake_config.undo = *ask;
	snprintf(fake_config.undo_author, sizeof(fake_config.undo_author), "%s", ask->of_author ? ask->of_author : "");
	*ret = (struct ses_undone_list){.list = &one, .cnt = !ask->is_redo && fake_config.edit_cnt};
	return NULL;
}

struct err *ses_stated(struct ses *s, struct arena *a, struct ses_entry **ret, size_t *ret_cnt, uint64_t *ret_rev)
{
	struct ses_journal_ask all = {.first_seq = 1, .limit = UINT32_MAX};
	uint32_t cnt;
	struct err *e = ses_journal(s, &all, a, ret, &cnt, ret_rev);
	*ret_cnt = cnt;
	return e;
}

struct err *ses_journal(struct ses *s, const struct ses_journal_ask *ask, struct arena *a, struct ses_entry **ret, uint32_t *ret_cnt,
			uint64_t *ret_total)
{
	*ret = ARENA_ARRAY(a, struct ses_entry, FAKE_EDIT_MAX);
	*ret_cnt = 0;
	*ret_total = fake_config.edit_cnt;
	for (uint64_t i = MAX(ask->first_seq - 1, ask->since); i < fake_config.edit_cnt && *ret_cnt < ask->limit; i++) {
		const struct fake_edit *f = &fake_config.edits[i];
		(*ret)[(*ret_cnt)++] = (struct ses_entry){.seq = i + 1, .rev = i + 1, .op = f->op, .sub = f->sub, .author = "me",
							  .has_addr = true, .addr = f->va, .before = text(""), .after = text(f->value),
							  .has_after = true, .step = "edit"};
	}
	return NULL;
}
