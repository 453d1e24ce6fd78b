/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct err err_nomem = {.kind = ERR_NOMEM, .os_errno = ENOMEM, .text = (char *)"out of memory"};
struct err err_not_found = {.kind = ERR_NOT_FOUND, .text = (char *)"not found"};

static const struct {
	const char *name;
	int exit_status;
} err_kinds[ERR_KIND_COUNT] = {
	[ERR_NOT_FOUND] = {"not_found", 1},
	[ERR_AMBIGUOUS] = {"ambiguous", 1},
	[ERR_STALE] = {"stale", 1},
	[ERR_BUSY] = {"busy", 1},
	[ERR_BUDGET] = {"budget", 1},
	[ERR_READONLY] = {"readonly", 1},
	[ERR_INVALID] = {"invalid", 2},
	[ERR_BAD_INPUT] = {"bad_input", 3},
	[ERR_UNSUPPORTED] = {"unsupported", 3},
	[ERR_DENIED] = {"denied", 1},
	[ERR_TIMEOUT] = {"timeout", 1},
	[ERR_CANCELLED] = {"cancelled", 1},
	[ERR_IO] = {"io", 5},
	[ERR_ENV] = {"unsupported", 4},
	[ERR_NOMEM] = {"internal", 5},
	[ERR_INTERNAL] = {"internal", 5},
};

static struct err *err_make(enum err_kind kind, int os_errno, char *text)
{
	if (!text)
		return &err_nomem;
	struct err *e = malloc(sizeof(*e));
	if (!e) {
		free(text);
		return &err_nomem;
	}
	*e = (struct err){.kind = kind, .os_errno = os_errno, .text = text};
	return e;
}

static char *err_vformat(const char *fmt, va_list ap)
{
	char *text = NULL;
	return vasprintf(&text, fmt, ap) < 0 ? NULL : text;
}

struct err *err_new(enum err_kind kind, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *text = err_vformat(fmt, ap);
	va_end(ap);
	return err_make(kind, 0, text);
}

static enum err_kind err_kind_of_errno(int os_errno)
{
	switch (os_errno) {
	case ENOENT:
	case ENOTDIR:
	case EISDIR:
	case ENAMETOOLONG:
	case ELOOP:
		return ERR_BAD_INPUT;
	case EACCES:
	case EPERM:
		return ERR_DENIED;
	case EROFS:
		return ERR_READONLY;
	default:
		return ERR_IO;
	}
}

struct err *err_os(int os_errno, const char *fmt, ...)
{
	if (os_errno == ENOMEM)
		return &err_nomem;
	va_list ap;
	va_start(ap, fmt);
	_cleanup_free_ char *what = err_vformat(fmt, ap);
	va_end(ap);
	char *text = NULL;
	if (!what || asprintf(&text, "%s: %s", what, strerror(os_errno)) < 0)
		return &err_nomem;
	return err_make(err_kind_of_errno(os_errno), os_errno, text);
}

/* A static error must become an owned one before text is added to it. */
static struct err *err_own(struct err *e)
{
	if (e != &err_nomem && e != &err_not_found)
		return e;
	return e == &err_nomem ? e : err_make(e->kind, e->os_errno, strdup(e->text));
}

struct err *err_prefix(struct err *e, const char *fmt, ...)
{
	if (!e)
		return NULL;
	e = err_own(e);
	if (e == &err_nomem)
		return e;
	va_list ap;
	va_start(ap, fmt);
	_cleanup_free_ char *prefix = err_vformat(fmt, ap);
	va_end(ap);
	char *text = NULL;
	if (prefix && asprintf(&text, "%s: %s", prefix, e->text) >= 0) {
		free(e->text);
		e->text = text;
	}
	return e;
}

struct err *err_fix(struct err *e, const char *fmt, ...)
{
	if (!e)
		return NULL;
	e = err_own(e);
	if (e == &err_nomem)
		return e;
	va_list ap;
	va_start(ap, fmt);
	free(e->fix);
	e->fix = err_vformat(fmt, ap);
	va_end(ap);
	return e;
}

void err_free(struct err *e)
{
	if (!e || e == &err_nomem || e == &err_not_found)
		return;
	free(e->text);
	free(e->fix);
	free(e);
}

const char *err_kind_name(enum err_kind kind)
{
	return err_kinds[kind].name;
}

int err_exit_status(enum err_kind kind)
{
	return err_kinds[kind].exit_status;
}
