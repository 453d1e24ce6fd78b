/* SPDX-License-Identifier: Apache-2.0 */
/* What is read about files of other machines: `u` and a URL, `e` and an entry of the cache, `f` and the beginning of an ELF file. */
#include "fuzz.h"

#include "live/reach/reach_cache.h"

#include <stdlib.h>
#include <string.h>

struct bytes {
	const uint8_t *p;
	size_t len;
};

static size_t read_bytes(void *ctx, uint64_t off, uint8_t *dst, size_t len)
{
	const struct bytes *b = ctx;
	if (off >= b->len || len > b->len - off)
		return 0;
	memcpy(dst, b->p + off, len);
	return len;
}

static bool elf(const uint8_t *p, size_t len)
{
	struct bytes b = {p, len};
	uint8_t id[REACH_MAX_ID_LEN];
	if (reach_elf_id(read_bytes, &b, id) > REACH_MAX_ID_LEN)
		abort();
	struct reach_range tables[8];
	return (reach_elf_tables(read_bytes, &b, tables, 8) > 0) | reach_elf_end(read_bytes, &b);
}

static bool url(const char *text)
{
	struct reach_url u;
	struct err *e = reach_url_parse(text, true, &u);
	if (e) {
		err_free(e);
		return false;
	}
	if (!*u.path || (u.scheme != REACH_UNIX && *u.host == '-') || strncmp(text, u.peer, strlen(u.peer)))
		abort();
	reach_url_fini(&u);
	return true;
}

static bool entry(const char *text, size_t len)
{
	struct reach_entry *e = malloc(sizeof(*e));
	struct buf out = {0};
	bool is_good = e && reach_entry_read(text, len, e);
	if (is_good) {
		reach_entry_put(&out, e);
		if (out.len != len || memcmp(out.data, text, len))
			abort();
	}
	buf_fini(&out);
	free(e);
	return is_good;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	if (!len)
		return 0;
	char *text = malloc(len);
	if (!text)
		return 0;
	memcpy(text, bytes + 1, len - 1);
	text[len - 1] = '\0';
	bool is_good = bytes[0] == 'u' ? url(text) : bytes[0] == 'e' ? entry(text, len - 1) : elf((const uint8_t *)text, len - 1);
	*(is_good ? &fuzz_accepted : &fuzz_rejected) += 1;
	free(text);
	return 0;
}
