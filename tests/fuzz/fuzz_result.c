/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a snippet's process hands over as its result, which goes into an answer as it stands: what is accepted is one line, cannot close
 * what it stands in, and is JSON to another reader; what that reader takes, as far as it is printable ASCII, is accepted.
 */
#include "fuzz.h"

#include "exec/exec_json.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_printable(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (s[i] < 0x20 || s[i] >= 0x7f)
			return false;
	}
	return true;
}

/* Never negative, and zero only at the end of a list or an object. */
static bool is_balanced(const char *s, size_t len)
{
	int depth = 0;
	bool in_text = false;
	for (size_t i = 0; i < len; i++) {
		if (in_text && s[i] == '\\')
			i++;
		else if (s[i] == '"')
			in_text = !in_text;
		else if (!in_text && (s[i] == '{' || s[i] == '['))
			depth++;
		else if (!in_text && (s[i] == '}' || s[i] == ']'))
			depth--;
		if (depth < 0 || (!in_text && !depth && s[i] == ','))
			return false;
	}
	return !in_text && !depth;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const char *s = (const char *)bytes;
	json_error_t why;
	bool is_one = exec_json_is_one(s, len);
	if (is_one && !(is_printable(s, len) && is_balanced(s, len)))
		abort();
	json_t *j = json_loadb(s, len, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &why);
	/* The other reader is stricter with halves of characters (\ud800) and with numbers beyond a double's. */
	bool is_hard = memmem(s, len, "\\u", 2) || memchr(s, 'e', len) || memchr(s, 'E', len) || len > 300;
	if (j && is_printable(s, len) && !is_one && len < 1000)
		abort();
	if (!j && is_one && !is_hard)
		abort();
	json_decref(j);
	fuzz_accepted += is_one;
	fuzz_rejected += !is_one;
	return 0;
}
