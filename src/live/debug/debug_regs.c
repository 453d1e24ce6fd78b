/* SPDX-License-Identifier: Apache-2.0 */
#include "live/debug/debug_regs.h"

#include "live/debug/debug_xml.h"

#include <stdio.h>
#include <strings.h>

enum { MAX_DEPTH = 4, MAX_FILES = 32 };

struct reading {
	struct debug_regs *r;
	debug_regs_fetch *fetch;
	void *ctx;
	uint64_t next_num, next_off;
	unsigned files;
	bool has_offsets;
};

int debug_regs_find(const struct debug_regs *r, const char *name)
{
	name += *name == '$';
	for (uint32_t i = 0; i < r->cnt; i++)
		if (!strcasecmp(r->list[i].name, name))
			return (int)i;
	return -1;
}

int debug_regs_of_num(const struct debug_regs *r, uint64_t num)
{
	/* Most descriptions number from 0 without a gap. */
	if (num < r->cnt && r->list[num].num == num)
		return (int)num;
	for (uint32_t i = 0; i < r->cnt; i++)
		if (r->list[i].num == num)
			return (int)i;
	return -1;
}

static int find_any(const struct debug_regs *r, const char *const *names)
{
	int i = -1;
	for (; *names && i < 0; names++)
		i = debug_regs_find(r, *names);
	return i;
}

static bool is_general_name(const char *s)
{
	static const char *const prefixes[] = {"xmm", "ymm", "zmm", "st", "fctrl", "fstat", "ftag", "fiseg", "fioff", "foseg", "fooff", "fop",
					       "mxcsr",
					       "mm", "bnd", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "v", "fp", "q",
					       "orig_", "cr", "efer", "pkru", "cpacr",
					       "dr", "fs_", "gs_", "k_gs"};
	if (!strcmp(s, "fp"))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (!strncmp(s, prefixes[i], strlen(prefixes[i])))
			return false;
	return true;
}

static void finish(struct debug_regs *r)
{
	r->pc = find_any(r, (const char *const[]){"rip", "eip", "pc", NULL});
	r->sp = find_any(r, (const char *const[]){"rsp", "esp", "sp", NULL});
	r->fp = find_any(r, (const char *const[]){"rbp", "ebp", "x29", "fp", "s0", NULL});
	r->ra = find_any(r, (const char *const[]){"x30", "lr", "ra", NULL});
	for (uint32_t i = 0; i < r->cnt; i++)
		r->list[i].is_general = r->list[i].len <= 8 && is_general_name(r->list[i].name);
}

static struct err *add_reg(struct reading *d, const struct debug_xml_tag *t)
{
	struct debug_reg reg = {0};
	uint64_t bits = 0, num = d->next_num, off;
	if (!debug_xml_attr(t, "name", reg.name, sizeof(reg.name)) || !debug_xml_number(t, "bitsize", &bits) || !bits || bits % 8 ||
	    bits / 8 > DEBUG_REG_BYTES)
		return err_new(ERR_BAD_INPUT, "a register without a name or of %llu bits", (unsigned long long)bits);
	debug_xml_number(t, "regnum", &num);
	if (num >= 1u << 20)
		return err_new(ERR_BAD_INPUT, "register number %llu", (unsigned long long)num);
	d->next_num = num + 1;
	/* Part of another one, whatever the value says. */
	for (uint32_t i = 0; i < t->attr_cnt; i++)
		if (t->attrs[i].name_len == 13 && !memcmp(t->attrs[i].name, "value_regnums", 13))
			return NULL;
	reg.len = (uint32_t)(bits / 8);
	reg.num = (uint32_t)num;
	if (debug_xml_number(t, "offset", &off))
		d->has_offsets = true;
	else
		off = d->next_off;
	if (off > DEBUG_REGS_BYTES - DEBUG_REG_BYTES)
		return err_new(ERR_BAD_INPUT, "registers of more than %d KB", DEBUG_REGS_BYTES >> 10);
	reg.off = (uint32_t)off;
	d->next_off = off + reg.len;
	if (d->r->cnt == DEBUG_REG_MAX)
		return err_new(ERR_BAD_INPUT, "more than %d registers", DEBUG_REG_MAX);
	d->r->list[d->r->cnt++] = reg;
	d->r->bytes = MAX(d->r->bytes, reg.off + reg.len);
	return NULL;
}

/* `depth`: files that include this one. */
static struct err *read_file(struct reading *d, const char *text, size_t len, int depth)
{
	struct debug_xml x = {text, text + len, false};
	struct debug_xml_tag t;
	struct err *e = NULL;
	while (!e && debug_xml_next(&x, &t)) {
		char name[128];
		if (debug_xml_is(&t, "reg") && !t.is_end) {
			e = add_reg(d, &t);
		} else if (debug_xml_is(&t, "architecture") && !t.is_end && !d->r->arch[0]) {
			size_t n = 0;
			while (x.p + n < x.end && x.p[n] != '<' && n + 1 < sizeof(d->r->arch))
				n++;
			memcpy(d->r->arch, x.p, n);
		} else if (debug_xml_is(&t, "xi:include") && !t.is_end && debug_xml_attr(&t, "href", name, sizeof(name))) {
			_cleanup_buf_ struct buf more = {0};
			if (depth == MAX_DEPTH || d->files++ == MAX_FILES || !d->fetch)
				return err_new(ERR_BAD_INPUT, "files of the target description include each other without end");
			e = d->fetch(d->ctx, name, &more);
			if (!e)
				e = err_prefix(read_file(d, more.data ? more.data : "", more.len, depth + 1), "%s", name);
		}
	}
	if (!e && x.failed)
		e = err_new(ERR_BAD_INPUT, "malformed XML at byte %zu", (size_t)(x.p - text));
	return e;
}

static int by_num(const void *a, const void *b)
{
	const struct debug_reg *x = a, *y = b;
	return (x->num > y->num) - (x->num < y->num);
}

/* Without offsets of their own registers lie in the order of their numbers. */
static struct err *lay_out(struct debug_regs *r)
{
	qsort(r->list, r->cnt, sizeof(r->list[0]), by_num);
	uint64_t off = 0;
	for (uint32_t i = 0; i < r->cnt; i++) {
		r->list[i].off = (uint32_t)off;
		off += r->list[i].len;
	}
	r->bytes = (uint32_t)off;
	return NULL;
}

struct err *debug_regs_read(const char *text, size_t len, debug_regs_fetch *fetch, void *ctx, struct debug_regs *ret)
{
	*ret = (struct debug_regs){0};
	struct reading d = {.r = ret, .fetch = fetch, .ctx = ctx};
	struct err *e = read_file(&d, text, len, 0);
	if (!e && !d.has_offsets)
		e = lay_out(ret);
	for (uint32_t i = 1; !e && i < ret->cnt; i++)
		if (debug_regs_of_num(ret, ret->list[i].num) != (int)i)
			e = err_new(ERR_BAD_INPUT, "two registers have the number %u", ret->list[i].num);
	finish(ret);
	if (!e && ret->pc < 0)
		e = err_new(ERR_BAD_INPUT, "no register is the program counter");
	return err_prefix(e, "the server's target description");
}

static void put_named(struct debug_regs *r, const char *name, uint32_t len)
{
	struct debug_reg *g = &r->list[r->cnt];
	*g = (struct debug_reg){.num = r->cnt, .len = len, .off = r->bytes};
	snprintf(g->name, sizeof(g->name), "%s", name);
	r->cnt++;
	r->bytes += len;
}

bool debug_regs_default(const char *arch, struct debug_regs *ret)
{
	static const char *const x64[] = {"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp",
					  "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rip", NULL};
	static const char *const x32[] = {"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eip", NULL};
	static const char *const rest[] = {"eflags", "cs", "ss", "ds", "es", "fs", "gs", NULL};
	*ret = (struct debug_regs){0};
	if (!strcmp(arch, "aarch64")) {
		for (int i = 0; i < 31; i++) {
			char name[8];
			snprintf(name, sizeof(name), "x%d", i);
			put_named(ret, name, 8);
		}
		put_named(ret, "sp", 8);
		put_named(ret, "pc", 8);
		put_named(ret, "cpsr", 4);
	} else if (!strcmp(arch, "x86-64") || !strcmp(arch, "i386")) {
		bool is_long = arch[0] == 'x';
		for (const char *const *s = is_long ? x64 : x32; *s; s++)
			put_named(ret, *s, is_long ? 8 : 4);
		for (const char *const *s = rest; *s; s++)
			put_named(ret, *s, 4);
	} else {
		return false;
	}
	finish(ret);
	return true;
}
