/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_PROJECT_INT_H
#define SESSION_PROJECT_INT_H

#include "session/project.h"
#include "session/ses_index.h"
#include "session/store.h"

#include <pthread.h>

/* project_file.c */
_must_use_ struct err *ses_project_read(const char *file, struct arena *a, struct ses_project_text *ret);
/* Folder of a P.json, and a path in it made absolute. Owned; null when it cannot be had. */
char *ses_project_dir(const char *file);
char *ses_project_abs(const char *dir, const char *path);
/* A path from the root on, its last part as it was written: libz.so.1 stays what it is called. Owned; null with errno. */
char *ses_project_real(const char *path);
/* Hash of a file, by the stat cache where that knows; `st` may be null. */
_must_use_ struct err *ses_project_hash(struct store *st, const char *path, uint8_t ret[32]);

struct project_binary {
	char *label, *path;
	char *found;             /* the file to open; null: none */
	char *why;               /* null: nothing to say */
	enum ses_binary_state state;
	bool is_pinned;          /* P.json says the hash */
	bool has_sha256;         /* of what is shown: by P.json, by what was remembered, by the session */
	uint8_t sha256[32];
	bool is_sure;            /* the hash is that of the file as it is */
	bool is_opening, is_indexed;
	struct ses *ses;
	bool is_borrowed;        /* ses is somebody else's */
	struct ses_index_path known; /* what the index remembers, and will */
	bool has_known;
	bool has_place;
	struct ses_place place;
};

struct ses_project {
	char *file, *name, *note;
	char id[33];
	struct store *store;       /* null: none */
	struct ses_index *index;   /* never null */
	unsigned threads;
	bool no_store, is_background;
	const atomic_bool *cancel;
	int event_fd;

	pthread_t worker;
	bool has_worker, wants_sync;
	atomic_bool stop;
	pthread_mutex_t sync_lock; /* one brings the index to what is now; taken before `lock` */
	pthread_mutex_t lock;      /* for what follows, and wants_sync */
	pthread_cond_t changed;
	struct project_binary *bins; /* room for two of each: BEFORE are appended */
	uint32_t bin_cnt, bin_cap;
	uint32_t shown;
};

/* project_link.c: what the index has of a session's target brought to what the session shows. Sets *ret_made when it was not. */
_must_use_ struct err *ses_project_index_one(struct ses_project *p, struct ses *s, bool *ret_made);
/* The binary whose bytes these are, preferring those whose file is there; UINT32_MAX none. */
uint32_t ses_project_of_hash(struct ses_project *p, const uint8_t sha256[32]);

#endif
