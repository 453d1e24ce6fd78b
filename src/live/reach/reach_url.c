/* SPDX-License-Identifier: Apache-2.0 */
#include "live/reach/reach_url.h"

#include <stdio.h>
#include <string.h>

#define MAX_URL_LEN 8192

static const struct {
	const char *prefix;
	enum reach_scheme scheme;
} schemes[] = {{"connect://", REACH_TCP}, {"unix-connect://", REACH_UNIX}, {"ssh://", REACH_SSH}};

static const char *after_scheme(const char *text, enum reach_scheme *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		size_t len = strlen(schemes[i].prefix);
		if (!strncmp(text, schemes[i].prefix, len)) {
			*ret = schemes[i].scheme;
			return text + len;
		}
	}
	return NULL;
}

bool reach_is_url(const char *text)
{
	enum reach_scheme scheme;
	return after_scheme(text, &scheme);
}

void reach_url_fini(struct reach_url *u)
{
	free(u->host);
	free(u->port);
	free(u->user);
	free(u->path);
	free(u->peer);
	*u = (struct reach_url){0};
}

static bool is_port(const char *s)
{
	size_t len = strlen(s);
	return len && len <= 5 && strspn(s, "0123456789") == len && strtoul(s, NULL, 10) - 1 < 65535;
}

/* `s` up to `end` is [USER@]HOST[:PORT]. */
static struct err *parse_host(const char *s, const char *end, struct reach_url *u)
{
	const char *at = u->scheme == REACH_SSH ? memchr(s, '@', (size_t)(end - s)) : NULL;
	if (at) {
		u->user = strndup(s, (size_t)(at - s));
		s = at + 1;
	}
	const char *host_end, *colon;
	if (*s == '[') {
		host_end = memchr(s, ']', (size_t)(end - s));
		if (!host_end)
			return err_new(ERR_INVALID, "the host has no ]");
		colon = host_end + 1;
		s++;
	} else {
		colon = memchr(s, ':', (size_t)(end - s));
		host_end = colon ? colon : end;
	}
	u->host = strndup(s, (size_t)(host_end - s));
	if (colon && colon < end && *colon == ':')
		u->port = strndup(colon + 1, (size_t)(end - colon - 1));
	else if (colon && colon < end)
		return err_new(ERR_INVALID, "%.20s is neither a port nor a path", colon);
	if (!u->host || (colon && colon < end && !u->port) || (at && !u->user))
		return &err_nomem;
	if (!*u->host)
		return err_new(ERR_INVALID, "there is no host in it");
	/* ssh would take it for an option. */
	if (*u->host == '-' || (u->user && (!*u->user || *u->user == '-')))
		return err_new(ERR_INVALID, "a host or user that is empty or begins with - is refused");
	if (u->port ? !is_port(u->port) : u->scheme == REACH_TCP)
		return err_new(ERR_INVALID, "%.20s is no port: write connect://HOST:PORT/PATH", u->port ? u->port : "nothing");
	return NULL;
}

static struct err *parse(const char *text, bool needs_path, struct reach_url *u)
{
	const char *s = after_scheme(text, &u->scheme);
	if (!s || strlen(text) > MAX_URL_LEN)
		return err_new(ERR_INVALID, s ? "it is too long" : "it is none of connect://, unix-connect:// and ssh://");
	for (const char *p = text; *p; p++) {
		if ((unsigned char)*p < ' ' || *p == 127)
			return err_new(ERR_INVALID, "it has control characters");
	}
	const char *path = u->scheme == REACH_UNIX ? strstr(s, ":/") : strchr(s, '/');
	const char *end = path ? path : s + strlen(s);
	if (path && u->scheme == REACH_UNIX)
		path++;
	u->path = strdup(path ? path : "");
	u->peer = strndup(text, (size_t)(end - text));
	if (!u->path || !u->peer)
		return &err_nomem;
	if (u->scheme == REACH_UNIX) {
		u->host = strndup(s, (size_t)(end - s));
		if (!u->host)
			return &err_nomem;
		if (!*u->host)
			return err_fix(err_new(ERR_INVALID, "there is no socket in it"), "write unix-connect:///SOCKET:/PATH");
	} else {
		struct err *e = parse_host(s, end, u);
		if (e)
			return e;
	}
	if (needs_path && !u->path[0])
		return err_new(ERR_INVALID, "there is no path of a file in it");
	return NULL;
}

struct err *reach_url_parse(const char *text, bool needs_path, struct reach_url *ret)
{
	struct reach_url u = {0};
	struct err *e = parse(text, needs_path, &u);
	if (e) {
		reach_url_fini(&u);
		return err_prefix(e, "%.200s", text);
	}
	*ret = u;
	return NULL;
}
