/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of names: the first byte chooses the format or that it is told from the text. Whatever is given must be terminated, of
 * the known kinds, with a line that the text has, and no longer in all than a small multiple of the text.
 */
#include "fuzz.h"

#include "symfile/symfile.h"

#include <stdlib.h>
#include <string.h>

static void check_item(const struct symfile_item *it, uint32_t lines)
{
	if (it->what > SYMFILE_BOOKMARK || !it->sub || strlen(it->sub) > 10 || it->text[it->len] || it->line > lines)
		abort();
	if (!it->why && !it->len)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	if (!len)
		return 0;
	struct arena a = {0};
	struct symfile f;
	const char *text = (const char *)bytes + 1;
	len--;
	struct err *e = symfile_parse(text, len, bytes[0] % SYMFILE_FORMAT_COUNT, &a, &f);
	if (e) {
		if (e->kind != ERR_INVALID)
			abort();
		fuzz_rejected++;
	} else {
		uint32_t lines = 2;
		size_t total = 0;
		for (size_t i = 0; i < len; i++)
			lines += text[i] == '\n';
		for (size_t i = 0; i < f.cnt; i++) {
			check_item(&f.items[i], lines);
			total += f.items[i].len;
		}
		/* A namespace goes before each name of its own tag or record; a character reference takes less than it says. */
		if (total > 8 * len + 64 || f.cnt > len)
			abort();
		fuzz_accepted++;
	}
	err_free(e);
	arena_fini(&a);
	return 0;
}
