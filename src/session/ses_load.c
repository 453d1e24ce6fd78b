/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load options: of what processor a target's code is, where it is loaded, whether its format is to be believed. They come
 * from the journal, or with the call that opens the target, which then states them. Addresses of the journal are those of the
 * file, so a base moves every statement with the bytes it is about.
 */
#include "session/ses_load_int.h"
#include "session/store_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *ses_processor(uint32_t i)
{
	return arch_name_at(i);
}

static bool take_processor(struct ses_load *l, const char *text)
{
	if (arch_id_of_name(text) == ARCH_ID_NONE || strlen(text) >= sizeof(l->processor))
		return false;
	memset(l->processor, 0, sizeof(l->processor));
	memcpy(l->processor, text, strlen(text));
	return true;
}

static bool take_base(struct ses_load *l, const char *text)
{
	char *end;
	l->base = strtoull(text, &end, 16);
	l->has_base = end > text && !*end;
	return l->has_base;
}

static bool take_one(struct ses_load *l, const char *sub, const char *text)
{
	if (!strcmp(sub, "processor"))
		return take_processor(l, text);
	if (!strcmp(sub, "base"))
		return take_base(l, text);
	l->is_raw = !strcmp(sub, "format") && !strcmp(text, "raw");
	return l->is_raw;
}

void ses_load_read(const struct edits_view *v, struct ses_load *ret)
{
	static const char *const subs[] = {"processor", "base", "format"};
	*ret = (struct ses_load){0};
	for (size_t i = 0; i < ARRAY_LEN(subs); i++) {
		const struct edits_fact *f = edits_find(v, EDITS_LOAD, 0, subs[i]);
		struct ses_load one = *ret;
		if (f && take_one(&one, subs[i], f->value))
			*ret = one;
	}
}

bool ses_load_is_any(const struct ses_load *l)
{
	return *l->processor || l->has_base || l->is_raw;
}

/* Whether moving such a file moves its pointers too: they are told by relocations, or there is nothing known of any. */
static bool can_move(uint8_t kind, uint8_t type)
{
	return kind == FMT_RAW || type == FMT_TYPE_PIE || type == FMT_TYPE_SHARED;
}

#define PAGE_LEN 4096u

static const char *refuse_base(uint8_t kind, uint8_t type, uint64_t bias)
{
	if (!can_move(kind, type))
		return "the file is linked for the addresses it has; only position-independent ones and raw bytes can be elsewhere";
	if (kind != FMT_RAW && bias % PAGE_LEN)
		return "a program is loaded at a multiple of 4,096";
	return NULL;
}

const char *ses_load_refuse(struct ses_snap *sn, const struct edits_change *c, struct arena *a)
{
	const struct image_meta *m = image_meta(sn->im);
	const struct space *s = sn->space;
	struct ses_load l = {0};
	if (!take_one(&l, c->sub, c->value))
		return !strcmp(c->sub, "processor") ? "the processor is none of x86-64, i386, aarch64" :
		       !strcmp(c->sub, "base") ? "a base is an address in hex" :
		       !strcmp(c->sub, "format") ? "the format can be stated as raw" : "it is none of processor, base, format";
	if (!l.has_base)
		return NULL;
	uint64_t bias = l.base - (m->base_va - m->bias), last = 0;
	const char *why = refuse_base(m->fmt_kind, m->fmt_type, bias);
	for (uint32_t i = 0; i < s->seg_cnt; i++)
		last = MAX(last, s->segs[i].va - m->base_va + s->segs[i].mem_len);
	uint64_t top = m->bits == 32 ? UINT32_MAX : UINT64_MAX;
	if (!why && last - 1 > top - MIN(l.base, top))
		why = arena_printf(a, "its %" PRIu64 " bytes do not fit behind that address", last);
	return why;
}

/* The description of the file under these options. */
static struct err *parse_as(struct ses *s, const struct ses_load *l, struct fmt_bin **ret)
{
	enum arch_id id = *l->processor ? arch_id_of_name(l->processor) : ARCH_ID_NONE;
	struct fmt_as as = {.machine = id == ARCH_ID_NONE ? FMT_MACHINE_OTHER : (enum fmt_machine)id,
			    .machine_name = "unknown", .bits = 64};
	const struct arch *arch = NULL;
	struct err *e = id == ARCH_ID_NONE ? NULL : ses_arch_of(id, &arch);
	if (e)
		return e;
	if (arch) {
		as.machine_name = arch->name;
		as.bits = arch->bits;
	}
	e = l->is_raw ? fmt_open_raw(s->file->data, s->file->len, &as, ret) : fmt_open(s->file->data, s->file->len, ret);
	if (e && e->kind == ERR_UNSUPPORTED && !l->is_raw && ses_load_is_any(l)) {
		err_free(e);
		return fmt_open_raw(s->file->data, s->file->len, &as, ret);
	}
	if (!e && arch) {
		(*ret)->machine = as.machine;
		(*ret)->machine_name = as.machine_name;
	}
	return e;
}

struct err *ses_parse_as(struct ses *s, const struct ses_load *l)
{
	struct fmt_bin *b = NULL;
	struct err *e = parse_as(s, l, &b);
	if (e && e->kind == ERR_UNSUPPORTED && !ses_load_is_any(l))
		e = err_fix(e, "--processor x86-64 (i386, aarch64) opens any file as raw bytes, --base says where they are loaded");
	const char *why = e || !l->has_base ? NULL : refuse_base((uint8_t)b->kind, (uint8_t)b->type, l->base - b->base_va);
	if (why)
		e = err_new(ERR_INVALID, "base: %s", why);
	_Static_assert((int)ARCH_ID_X86_64 == (int)FMT_MACHINE_X86_64 && (int)ARCH_ID_I386 == (int)FMT_MACHINE_I386 &&
		       (int)ARCH_ID_A64 == (int)FMT_MACHINE_A64, "machines and architectures share numbers");
	if (!e)
		e = ses_arch_of(b->machine == FMT_MACHINE_OTHER ? ARCH_ID_NONE : (enum arch_id)b->machine, &s->arch);
	if (e) {
		fmt_bin_free(b);
		return err_prefix(e, "%s", s->path);
	}
	fmt_bin_free(s->bin);
	s->bin = b;
	s->load = *l;
	return NULL;
}

/* --- options that come with opening --- */

struct err *ses_load_take(struct ses *s, const struct ses_opts *o)
{
	const char *const texts[] = {o->processor, o->base, o->format};
	static const char *const subs[] = {"processor", "base", "format"};
	for (size_t i = 0; i < ARRAY_LEN(subs); i++) {
		if (texts[i] && !take_one(&s->asked, subs[i], texts[i]))
			return err_fix(err_new(ERR_INVALID, "--%s: '%s' is none", subs[i], texts[i]),
				       "processors are x86-64, i386, aarch64; a base is an address in hex; the format can be raw");
	}
	return NULL;
}

void ses_get_asked(const struct ses *s, struct ses_asked *ret)
{
	*ret = (struct ses_asked){.processor = ""};
	if (s->store)
		return;
	snprintf(ret->processor, sizeof(ret->processor), "%s", s->asked.processor);
	if (s->asked.has_base)
		snprintf(ret->base, sizeof(ret->base), "%llx", (unsigned long long)s->asked.base);
	snprintf(ret->format, sizeof(ret->format), "%s", s->asked.is_raw ? "raw" : "");
}

/* The journal of a target that is being opened with options gets them, unless they stand there already. */
struct err *ses_load_state(struct ses *s, const struct ses_opts *o)
{
	const char *const texts[] = {o->processor, o->base, o->format};
	static const char *const subs[] = {"processor", "base", "format"};
	struct edits_change c[ARRAY_LEN(subs)];
	size_t n = 0;
	for (size_t i = 0; i < ARRAY_LEN(subs); i++) {
		if (texts[i])
			c[n++] = (struct edits_change){.kind = EDITS_LOAD, .sub = subs[i], .value = texts[i], .value_len = strlen(texts[i])};
	}
	struct arena a = {0};
	struct edits *e = NULL;
	uint64_t rev;
	_cleanup_as_ struct store_as as = store_as_user(s->store);
	struct err *why = store_open_edits(s->store, s->sha256, false, &e);
	if (!why)
		why = edits_commit(e, c, n, &(struct edits_opts){.if_rev = -1, .is_atomic = true}, &a, &rev);
	edits_close(e);
	arena_fini(&a);
	return why;
}
