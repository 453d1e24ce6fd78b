/* SPDX-License-Identifier: Apache-2.0 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "session/regex.h"

#include "base/dl.h"

#include <pcre2.h>
#include <pthread.h>
#include <string.h>

#define REGEX_MATCH_LIMIT 1000000
#define REGEX_HEAP_KIB 65536
#define REGEX_WINDOW 65536 /* places a match may begin at, between two looks at the caller's wishes */

static __typeof__(pcre2_compile) *re_compile;
static __typeof__(pcre2_code_free) *re_code_free;
static __typeof__(pcre2_match_data_create) *re_data_create;
static __typeof__(pcre2_match_data_free) *re_data_free;
static __typeof__(pcre2_match) *re_match;
static __typeof__(pcre2_get_ovector_pointer) *re_ovector;
static __typeof__(pcre2_get_error_message) *re_message;
static __typeof__(pcre2_match_context_create) *re_context_create;
static __typeof__(pcre2_match_context_free) *re_context_free;
static __typeof__(pcre2_set_match_limit) *re_set_match_limit;
static __typeof__(pcre2_set_heap_limit) *re_set_heap_limit;
static __typeof__(pcre2_set_offset_limit) *re_set_offset_limit;

static pthread_mutex_t re_lock = PTHREAD_MUTEX_INITIALIZER;
static bool re_is_loaded;

struct regex {
	pcre2_code *code;
	pcre2_match_data *data;
	pcre2_match_context *context;
	regex_check_fn *check;
	void *check_ctx;
	struct err *stopped; /* by the caller */
	int failure; /* PCRE2's negative code when a match ended otherwise than by yes or no */
};

struct err *regex_try(void)
{
	static const struct dl_sym syms[] = {
		{"pcre2_compile_8", (void **)&re_compile},
		{"pcre2_code_free_8", (void **)&re_code_free},
		{"pcre2_match_data_create_8", (void **)&re_data_create},
		{"pcre2_match_data_free_8", (void **)&re_data_free},
		{"pcre2_match_8", (void **)&re_match},
		{"pcre2_get_ovector_pointer_8", (void **)&re_ovector},
		{"pcre2_get_error_message_8", (void **)&re_message},
		{"pcre2_match_context_create_8", (void **)&re_context_create},
		{"pcre2_match_context_free_8", (void **)&re_context_free},
		{"pcre2_set_match_limit_8", (void **)&re_set_match_limit},
		{"pcre2_set_heap_limit_8", (void **)&re_set_heap_limit},
		{"pcre2_set_offset_limit_8", (void **)&re_set_offset_limit},
	};
	pthread_mutex_lock(&re_lock);
	struct err *e = NULL;
	if (!re_is_loaded)
		e = dl_load("libpcre2-8.so.0", "search --regex", "libpcre2-8-0", syms, ARRAY_LEN(syms));
	re_is_loaded = re_is_loaded || !e;
	pthread_mutex_unlock(&re_lock);
	return e;
}

struct err *regex_new(const char *pattern, struct regex **ret)
{
	struct err *e = regex_try();
	if (e)
		return e;
	struct regex *r = calloc(1, sizeof(*r));
	if (!r)
		return &err_nomem;
	int code;
	size_t at;
	r->code = re_compile((PCRE2_SPTR)pattern, strlen(pattern), PCRE2_USE_OFFSET_LIMIT, &code, &at, NULL);
	if (!r->code) {
		char why[160] = "";
		re_message(code, (PCRE2_UCHAR *)why, sizeof(why));
		regex_free(r);
		return err_new(ERR_INVALID, "regex: %s, at character %zu", why, at + 1);
	}
	r->data = re_data_create(1, NULL);
	r->context = re_context_create(NULL);
	if (!r->data || !r->context) {
		regex_free(r);
		return &err_nomem;
	}
	re_set_match_limit(r->context, REGEX_MATCH_LIMIT);
	re_set_heap_limit(r->context, REGEX_HEAP_KIB);
	*ret = r;
	return NULL;
}

void regex_free(struct regex *r)
{
	if (!r)
		return;
	if (r->data)
		re_data_free(r->data);
	if (r->context)
		re_context_free(r->context);
	if (r->code)
		re_code_free(r->code);
	err_free(r->stopped);
	free(r);
}

void regex_set_check(struct regex *r, regex_check_fn *check, void *ctx)
{
	r->check = check;
	r->check_ctx = ctx;
}

/* One window: matches that begin in [from, from + REGEX_WINDOW). */
static int regex_window(struct regex *r, const uint8_t *p, size_t len, size_t from)
{
	re_set_offset_limit(r->context, from + REGEX_WINDOW - 1);
	return re_match(r->code, p, len, from, 0, r->data, r->context);
}

bool regex_find(struct regex *r, const uint8_t *p, size_t len, size_t from, size_t *ret_at, size_t *ret_len)
{
	while (from < len && !r->failure && !r->stopped) {
		int rc = regex_window(r, p, len, from);
		if (rc == PCRE2_ERROR_NOMATCH) {
			if (len - from <= REGEX_WINDOW)
				return false;
			from += REGEX_WINDOW;
			r->stopped = r->check ? r->check(r->check_ctx) : NULL;
			continue;
		}
		if (rc < 0) {
			r->failure = rc;
			return false;
		}
		const size_t *o = re_ovector(r->data);
		if (o[1] > o[0] && o[0] >= from) {
			*ret_at = o[0];
			*ret_len = o[1] - o[0];
			return true;
		}
		from = (o[1] > from ? o[1] : from) + 1;
	}
	return false;
}

struct err *regex_error(struct regex *r)
{
	if (!r)
		return NULL;
	if (r->stopped)
		return take_ptr(r->stopped);
	if (!r->failure)
		return NULL;
	char why[160] = "";
	re_message(r->failure, (PCRE2_UCHAR *)why, sizeof(why));
	return err_fix(err_new(ERR_BUDGET, "regex: %s", why), "make the pattern simpler");
}
