/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns over C: a pattern up to the first zero byte, behind it the subject. What is found lies in the subject, each match behind the
 * one before it, and a text that is said not to fit has none.
 */
#include "fuzz.h"

#include "cprint/cprint_find.h"

#include <stdlib.h>
#include <string.h>

#define FOUND_MAX 200

static void check_part(struct cprint_part p, size_t len)
{
	if (p.off > len || p.len > len - p.off)
		abort();
}

static void find_all(const struct cprint_pattern *p, const char *text, size_t len)
{
	struct cprint_subject *s;
	struct cprint_found found;
	uint32_t at = 0, last = 0;
	bool is_found = true;
	struct err *e = cprint_subject_new(text, len, &s);
	bool fits = cprint_pattern_fits(p, text, len);
	for (unsigned i = 0; !e && is_found && i < FOUND_MAX; i++) {
		e = cprint_find(p, s, &at, &found, &is_found);
		if (e || !is_found)
			break;
		if (!fits || at <= last)
			abort();
		last = at;
		check_part(found.part, len);
		for (uint32_t k = 0; k < found.hole_cnt; k++)
			check_part(found.holes[k].part, len);
	}
	err_free(e);
	cprint_subject_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const uint8_t *zero = memchr(bytes, 0, len);
	struct cprint_pattern *p;
	if (!zero)
		return 0;
	struct err *e = cprint_pattern_new((const char *)bytes, &p);
	if (e) {
		fuzz_rejected++;
		err_free(e);
		return 0;
	}
	fuzz_accepted++;
	size_t skip = (size_t)(zero - bytes) + 1;
	/* In memory of its own, so that a read behind its end is seen. */
	char *text = malloc(len - skip + 1);
	if (text) {
		memcpy(text, bytes + skip, len - skip);
		find_all(p, text, len - skip);
	}
	free(text);
	cprint_pattern_free(p);
	return 0;
}
