/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SES_REMOTE_H
#define SESSION_SES_REMOTE_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Files of other machines by URL: connect://HOST:PORT/PATH, unix-connect://SOCKET:/PATH, ssh://HOST/PATH. They are fetched into the cache
 * of the store, where an interrupted transfer goes on and what is unchanged is not fetched again; without a store, into a folder of their
 * own that goes afterwards.
 */
struct ses_remote_progress {
	uint64_t done_len, total_len; /* bytes of the files, what was here before included; total 0: not known yet */
	uint64_t came_len;	      /* bytes that came now */
	unsigned done_cnt, file_cnt;
	bool is_waiting; /* for another process that fetches the same */
};

struct reach_reader;
struct ses_remote_opts {
	const atomic_bool *cancel; /* may be null */
	unsigned stall_ms;	   /* without progress for that long it has failed; 0: 15 s */
	bool no_store;
	void (*progress)(void *ctx, const struct ses_remote_progress *p); /* may be null */
	void (*say)(void *ctx, const char *line); /* for people: that a lost connection is made again; may be null */
	void *ctx;
	const struct reach_reader *reader; /* may be null: who reads the file while it comes (live/reach/reach_fetch.h) */
};

/* A file that was asked for. */
struct ses_remote_file {
	char *url;	 /* owned */
	char *local;	 /* where its bytes are here, owned; null when they are not to be had */
	struct err *err; /* why, owned */
};

struct ses_remote_got {
	struct ses_remote_file *files; /* the first is the one that was asked for, libraries follow */
	size_t cnt;
	uint64_t came_len; /* bytes of files that came over the link */
	uint64_t wire_len; /* bytes received in all */
	uint64_t turn_cnt; /* round trips */
	char server[24];   /* "lldb-server" */
	char *folder;	   /* without a store: the folder to be removed, owned */
};

bool ses_is_remote(const char *path);

/* Fetches; with `libs` also the libraries it needs, and those they need. Errors of the file itself and of the connection. Those of
 * libraries are with them. Released by ses_remote_fini(), which removes what no store keeps. */
_must_use_ struct err *ses_remote_fetch(const char *url, bool libs, const struct ses_remote_opts *opts, struct ses_remote_got *ret);
void ses_remote_fini(struct ses_remote_got *g);

/* The same of several paths over a connection that is there, to the server that `url` names; a path there is not looked at. What became of
 * each file is with it, in order. An error is the connection's, which then is out of step. */
struct reach_conn;
_must_use_ struct err *ses_remote_fetch_over(struct reach_conn *conn, const char *url, const char *const *paths, size_t cnt,
					     const struct ses_remote_opts *opts, struct ses_remote_got *ret);

/* Copies a fetched file to `path`, whole or not at all. Errors io, denied. */
_must_use_ struct err *ses_remote_copy(const char *local, const char *path);

/* Sends a file of this machine to where the URL says, unless it is there already; its length and hash there are compared. `*ret_len`: its
 * bytes, `*ret_sent_len`: those that went. */
_must_use_ struct err *ses_remote_push(const char *file, const char *url, const struct ses_remote_opts *opts, uint64_t *ret_len,
				       uint64_t *ret_sent_len);

/* --- the cache --- */
struct ses_cached {
	char sha256[65], id[65];
	char *url; /* owned */
	uint64_t len;
	int64_t used_s;	 /* seconds since 1970 */
	bool is_damaged; /* found by verify, and removed */
};
_must_use_ struct err *ses_cache_list(bool verify, struct ses_cached **ret, size_t *ret_cnt);
void ses_cache_free(struct ses_cached *rows, size_t cnt);
/* Removes what was used longest ago, until `limit_len` bytes are left; UINT64_MAX: the usual limit. */
_must_use_ struct err *ses_cache_prune(uint64_t limit_len, uint64_t *ret_freed_len);

#endif
