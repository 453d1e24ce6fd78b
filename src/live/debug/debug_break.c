/* SPDX-License-Identifier: Apache-2.0 */
/* Breakpoints, and the list of what is loaded. */
#include "live/debug/debug_int.h"

#include "base/cur.h"
#include "live/debug/debug_xml.h"

enum { LIBRARIES_MAX = 4 << 20, NAME_MAX_LEN = 4096 };

struct debug_break *debug_break_find(struct debug *d, uint32_t id)
{
	for (size_t i = 0; i < d->breaks.cnt; i++)
		if (d->breaks.data[i].id == id)
			return &d->breaks.data[i];
	return NULL;
}

struct debug_break *debug_break_at(struct debug *d, uint64_t va)
{
	for (size_t i = 0; i < d->breaks.cnt; i++)
		if (d->breaks.data[i].va == va && d->breaks.data[i].kind <= DEBUG_BREAK_HARD && !d->breaks.data[i].is_off)
			return &d->breaks.data[i];
	return NULL;
}

static const char *kind_name(uint8_t kind)
{
	return kind == DEBUG_BREAK_SOFT ? "breakpoints" : kind == DEBUG_BREAK_HARD ? "hardware breakpoints" : "watchpoints of this kind";
}

/* Whether the server has another one like it: it is told of the first, and when the last one goes. */
static bool has_twin(const struct debug *d, const struct debug_break *k)
{
	for (size_t i = 0; i < d->breaks.cnt; i++) {
		const struct debug_break *o = &d->breaks.data[i];
		if (o != k && o->is_in && o->va == k->va && o->kind == k->kind && o->len == k->len)
			return true;
	}
	return false;
}

static struct err *put_in(struct debug *d, struct debug_break *k, bool is_in)
{
	_cleanup_batch_ struct debug_batch b = {0};
	if (k->is_in == is_in || d->state != DEBUG_STOPPED)
		return NULL;
	if (has_twin(d, k)) {
		k->is_in = is_in;
		return NULL;
	}
	debug_ask_stale(d, &b);
	size_t i = debug_ask(&b, "%c%u,%llx,%x", is_in ? 'Z' : 'z', k->kind, (unsigned long long)k->va, k->len);
	struct err *e = debug_link_run(&d->link, &b);
	if (e)
		return e;
	if (!debug_reply_is_ok(&b, i))
		return debug_refused(debug_reply(&b, i), kind_name(k->kind));
	k->is_in = is_in;
	d->break_works |= k->kind == DEBUG_BREAK_SOFT;
	return NULL;
}

/* What the protocol calls the kind of a breakpoint in code: its bytes on x86 and AArch64. */
static uint32_t code_kind(const struct debug *d)
{
	return d->arch && d->arch->id == ARCH_ID_A64 ? 4 : 1;
}

/* A new one with its number, which the server has or (not stopped) will have. */
static struct err *push(struct debug *d, struct debug_asked *a, struct err *e)
{
	struct debug_break k = {.id = d->last_id + 1, .kind = (uint8_t)a->kind, .va = a->va, .len = a->len, .is_in = d->state == DEBUG_STOPPED};
	if (e)
		return e;
	if (!VEC_PUSH(&d->breaks, k))
		return &err_nomem;
	d->break_works |= k.is_in && k.kind == DEBUG_BREAK_SOFT;
	a->id = ++d->last_id;
	return NULL;
}

struct err *debug_breaks_add(struct debug *d, struct debug_asked *all, size_t cnt)
{
	_cleanup_batch_ struct debug_batch b = {0};
	if (cnt > DEBUG_BREAK_MAX - d->breaks.cnt)
		return err_new(ERR_BUDGET, "there are %zu breakpoints already", d->breaks.cnt);
	bool is_stopped = d->state == DEBUG_STOPPED;
	if (is_stopped && cnt)
		debug_ask_stale(d, &b);
	for (size_t i = 0; i < cnt; i++) {
		struct debug_asked *a = &all[i];
		if (a->kind <= DEBUG_BREAK_HARD)
			a->len = code_kind(d);
		a->id = 0;
		a->err = NULL;
		a->at = SIZE_MAX;
		if (is_stopped && !has_twin(d, &(struct debug_break){.va = a->va, .kind = (uint8_t)a->kind, .len = a->len}))
			a->at = debug_ask(&b, "Z%u,%llx,%x", a->kind, (unsigned long long)a->va, a->len);
	}
	struct err *e = b.out_ends.cnt ? debug_link_run(&d->link, &b) : NULL;
	for (size_t i = 0; i < cnt && !e; i++) {
		struct debug_asked *a = &all[i];
		bool is_refused = a->at != SIZE_MAX && !debug_reply_is_ok(&b, a->at);
		a->err = push(d, a, is_refused ? debug_refused(debug_reply(&b, a->at), kind_name((uint8_t)a->kind)) : NULL);
	}
	return e;
}

struct err *debug_break_add(struct debug *d, enum debug_break_kind kind, uint64_t va, uint32_t len, uint32_t *ret_id)
{
	struct debug_asked a = {.kind = kind, .va = va, .len = len};
	struct err *e = debug_breaks_add(d, &a, 1);
	if (!e)
		e = a.err;
	*ret_id = a.id;
	return e;
}

struct err *debug_break_del(struct debug *d, uint32_t id)
{
	struct debug_break *k = debug_break_find(d, id);
	if (!k)
		return err_new(ERR_NOT_FOUND, "no breakpoint has the number %u", id);
	struct err *e = put_in(d, k, false);
	if (e)
		return e;
	size_t at = (size_t)(k - d->breaks.data);
	memmove(k, k + 1, (d->breaks.cnt - at - 1) * sizeof(*k));
	d->breaks.cnt--;
	return NULL;
}

struct err *debug_break_enable(struct debug *d, uint32_t id, bool is_on)
{
	struct debug_break *k = debug_break_find(d, id);
	if (!k)
		return err_new(ERR_NOT_FOUND, "no breakpoint has the number %u", id);
	struct err *e = put_in(d, k, is_on);
	if (!e)
		k->is_off = !is_on;
	return e;
}

void debug_ask_stale(struct debug *d, struct debug_batch *b)
{
	for (size_t i = 0; i < d->stale.cnt; i++)
		debug_ask(b, "z0,%llx,%x", (unsigned long long)d->stale.data[i], code_kind(d));
	d->stale.cnt = 0;
	for (size_t i = 0; i < d->breaks.cnt; i++) {
		struct debug_break *k = &d->breaks.data[i];
		if (k->is_lifted && k->is_in)
			debug_ask(b, "Z%u,%llx,%x", k->kind, (unsigned long long)k->va, k->len);
		k->is_lifted = false;
	}
}

/* --- what is loaded --- */

static struct err *add_module(struct debug *d, const char *name, uint64_t base)
{
	struct debug_module m = {.name = strndup(name, NAME_MAX_LEN), .base = base};
	if (m.name && d->modules.cnt < DEBUG_MODULE_MAX && VEC_PUSH(&d->modules, m))
		return NULL;
	free(m.name);
	return m.name ? err_new(ERR_BUDGET, "more than %d objects are loaded", DEBUG_MODULE_MAX) : &err_nomem;
}

struct err *debug_take_modules(struct debug *d, const char *text, size_t len)
{
	struct debug_xml x = {text, text + len, false};
	struct debug_xml_tag t;
	struct err *e = NULL;
	while (!e && debug_xml_next(&x, &t)) {
		char name[NAME_MAX_LEN];
		uint64_t base;
		if (debug_xml_is(&t, "library") && !t.is_end && debug_xml_attr(&t, "name", name, sizeof(name)) &&
		    debug_xml_number(&t, "l_addr", &base))
			e = add_module(d, name, base);
	}
	if (!e && x.failed)
		e = err_new(ERR_BAD_INPUT, "the debug server's list of libraries is malformed XML");
	return e;
}

static void forget_modules(struct debug *d)
{
	for (size_t i = 0; i < d->modules.cnt; i++)
		free(d->modules.data[i].name);
	d->modules.cnt = 0;
}

void debug_take_short_list(struct debug *d, struct gdb_span reply)
{
	d->list_is_long = gdb_span_starts(reply, "m");
	if (!gdb_skip(&reply, "l"))
		return;
	forget_modules(d);
	/* Who wants to see a list that is none will ask for it and be told. */
	struct err *e = debug_take_modules(d, reply.s, reply.len);
	d->has_modules = !e && d->modules.cnt;
	err_free(e);
}

static struct err *read_list(struct debug *d)
{
	_cleanup_buf_ struct buf text = {0};
	struct err *e = debug_xfer(d, "libraries-svr4", "", LIBRARIES_MAX, &text);
	/* Before the loader has run lldb-server has no list, and says so as an error. */
	if (e && !d->link.lost && e->kind == ERR_IO) {
		err_free(e);
		return NULL;
	}
	return e || !text.len ? e : debug_take_modules(d, text.data, text.len);
}

void debug_take_auxv(struct debug *d, const struct buf *text)
{
	/* Of a processor that nobody named: as its registers are. */
	unsigned word = d->arch ? (d->arch->bits == 32 ? 4 : 8) : d->has_regs ? d->regs.list[d->regs.pc].len : 8;
	struct cur c = cur_make(text->data, text->len, false);
	word = word == 4 ? 4 : 8;
	while (cur_left(&c) >= 2 * word) {
		uint64_t key = cur_word(&c, word), value = cur_word(&c, word);
		if (!key)
			break;
		if (key == 3) /* AT_PHDR */
			d->phdr_va = value;
		else if (key == 5) /* AT_PHNUM */
			d->phdr_cnt = (uint32_t)MIN(value, 256u);
		else if (key == 9) /* AT_ENTRY */
			d->entry_va = value;
	}
}

/* DT_DEBUG of the program, which leads to the loader's list (System V ABI, "Dynamic Linking"; link.h). */
static bool find_r_debug(struct debug *d, uint64_t *ret)
{
	unsigned word = d->arch && d->arch->bits == 32 ? 4 : 8;
	uint64_t dynamic = 0, bias = 0, tag, value, size = word == 8 ? 56 : 32;
	for (uint32_t i = 0; i < d->phdr_cnt; i++) {
		uint64_t at = d->phdr_va + i * size, type, va;
		if (!debug_word(d, at, &type) || !debug_word(d, at + (word == 8 ? 16 : 8), &va))
			return false;
		if ((uint32_t)type == 6) /* PT_PHDR */
			bias = d->phdr_va - va;
		else if ((uint32_t)type == 2) /* PT_DYNAMIC */
			dynamic = va;
	}
	for (int i = 0; dynamic && i < 512; i++) {
		uint64_t at = dynamic + bias + (uint64_t)i * 2 * word;
		if (!debug_word(d, at, &tag) || !debug_word(d, at + word, &value) || !tag)
			return false;
		if (tag == 21) { /* DT_DEBUG */
			*ret = value;
			return value;
		}
	}
	return false;
}

/* r_brk: a function that the loader calls before and after the list changes; r_state says which it is. */
bool debug_load_place(struct debug *d, uint64_t *ret)
{
	unsigned word = d->arch && d->arch->bits == 32 ? 4 : 8;
	uint64_t at;
	return d->state == DEBUG_STOPPED && d->phdr_va && find_r_debug(d, &at) && debug_word(d, at + 2 * word, ret) && *ret;
}

bool debug_is_loaded(struct debug *d)
{
	unsigned word = d->arch && d->arch->bits == 32 ? 4 : 8;
	uint64_t at, state;
	return find_r_debug(d, &at) && debug_word(d, at + 3 * word, &state) && !(uint32_t)state; /* RT_CONSISTENT */
}

static struct err *walk_r_debug(struct debug *d)
{
	unsigned word = d->arch && d->arch->bits == 32 ? 4 : 8;
	uint64_t at, name_va, base;
	if (!d->phdr_va || !find_r_debug(d, &at) || !debug_word(d, at + word, &at))
		return NULL;
	struct err *e = NULL;
	for (int i = 0; at && i < DEBUG_MODULE_MAX && !e; i++) {
		char name[NAME_MAX_LEN + 1];
		size_t got;
		if (!debug_word(d, at, &base) || !debug_word(d, at + word, &name_va))
			break;
		e = debug_mem(d, name_va, name, 512, &got);
		name[e ? 0 : got] = 0;
		/* The first one is the program, which has no name there. */
		if (!e && i)
			e = add_module(d, name, base);
		if (!debug_word(d, at + 3 * word, &at))
			break;
	}
	return e;
}

struct err *debug_modules(struct debug *d)
{
	DEBUG_STOPPED_ONLY(d);
	if (d->has_modules)
		return NULL;
	forget_modules(d);
	struct err *e = debug_learn(d);
	if (!e && d->has_library_list)
		e = read_list(d);
	if (!e && !d->modules.cnt)
		e = walk_r_debug(d);
	d->has_modules = !e;
	return e;
}
