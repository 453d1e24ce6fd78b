/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C declarations: the first byte chooses the ABI and what is parsed, the rest is text. A refused text must leave the set as it
 * was; an accepted one must print to text that is accepted and prints the same.
 */
#include "fuzz.h"

#include "types/types.h"
#include "types/types_clang.h"

#include <stdlib.h>
#include <string.h>

static void print_again(const struct types *t, enum types_abi abi)
{
	struct buf out = {0}, again = {0};
	types_print_all(t, &out);
	struct types *u = types_new(abi);
	struct err *e = u && !out.failed ? types_parse(u, out.data ? out.data : "", out.len, NULL) : NULL;
	/* Printing may nest a little deeper than the text did; all else must be taken. */
	if (e && e->kind != ERR_BUDGET)
		abort();
	if (u && !e) {
		types_print_all(u, &again);
		if (again.len != out.len || (out.len && memcmp(out.data, again.data, out.len)))
			abort();
	}
	err_free(e);
	types_free(u);
	buf_fini(&out);
	buf_fini(&again);
}

static void use_paths(const struct types *t)
{
	for (uint32_t i = 1; i < types_decl_cnt(t); i++) {
		const struct types_decl *d = types_decl_get(t, i);
		struct types_at at, back;
		uint64_t len;
		uint32_t align;
		if (d->is_builtin || !types_layout(t, d->type, &len, &align))
			continue;
		for (uint64_t off = 0; off < len; off += 1 + len / 8) {
			struct buf path = {0};
			if (!types_path_of(t, d->type, off, &path, &at))
				abort();
			struct err *e = types_path(t, d->type, path.data ? path.data : "", path.len, &back);
			if (at.off > off || (!e && back.off != at.off))
				abort();
			err_free(e);
			buf_fini(&path);
		}
	}
}

/* A text behind what another compiler said of it: a byte that tells how many 64-bit numbers, and these. */
static struct err *parse_said(struct types *t, const char *bytes, size_t len, struct types_place *place)
{
	struct types_says says;
	struct types_judged judged = {0};
	size_t cnt = len ? MIN((size_t)(uint8_t)bytes[0], (len - 1) / 8) : 0, skip = len ? 1 + cnt * 8 : 0;
	if (!types_says_read(len ? bytes + 1 : bytes, cnt * 8, &says))
		return err_new(ERR_BAD_INPUT, "said nothing");
	struct err *e = types_parse_said(t, bytes + skip, len - skip, place, &says, &judged);
	for (size_t i = 0; !e && i < judged.cnt; i++) {
		uint64_t size;
		uint32_t align;
		const struct types_differing *d = &judged.list[i];
		/* A redefinition of what was there is a type of its own and has nothing. */
		if (d->is_taken && types_layout(t, d->type, &size, &align) && size != d->len)
			abort();
	}
	types_judged_fini(&judged);
	types_says_fini(&says);
	return e;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	if (!len)
		return 0;
	enum types_abi abi = bytes[0] % TYPES_ABI_COUNT;
	const char *text = (const char *)bytes + 1;
	len--;
	struct types *t = types_new(abi);
	if (!t)
		return 0;
	struct types_mark before = types_mark(t);
	struct types_place place;
	struct types_ref r = {0};
	const char *name;
	unsigned what = bytes[0] / TYPES_ABI_COUNT % 4;
	struct err *e = what == 1 ? types_parse_type(t, text, len, &place, &r) :
			what == 2 ? types_parse_prototype(t, text, len, &place, &r, &name) :
			what == 3 ? parse_said(t, text, len, &place) : types_parse(t, text, len, &place);
	if (e) {
		struct types_mark after = types_mark(t);
		if (memcmp(&before, &after, sizeof(before)))
			abort();
		fuzz_rejected++;
	} else {
		struct buf out = {0};
		types_print(t, r, "x", &out);
		buf_fini(&out);
		use_paths(t);
		print_again(t, abi);
		if (!types_same_across(t, r, t, r))
			abort();
		fuzz_accepted++;
	}
	err_free(e);
	types_free(t);
	return 0;
}
