/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_PROJECT_H
#define SESSION_PROJECT_H

#include "session/session.h"

/*
 * A project: several targets that are looked at together. Each is a session of its own, mapped when it is first asked for
 * and never put away; the project adds one index over their names and strings (ses_index.h), the way from an import to
 * the binary that exports it and back, and where a person was in each.
 *
 * A project is a file P.json, or only the paths that were given. Threads: every function may be called from any.
 */
struct ses_project;

enum ses_binary_state {
	SES_BINARY_SAME,     /* where it was, with the bytes it had */
	SES_BINARY_MOVED,    /* not where it was; its bytes were found elsewhere */
	SES_BINARY_CHANGED,  /* other bytes than it had */
	SES_BINARY_BEFORE,   /* a changed binary as it was: what the store knows, without bytes */
	SES_BINARY_VANISHED, /* its bytes are nowhere: what the store knows, without bytes */
	SES_BINARY_FAILED,   /* cannot be read, or is no program */
};
const char *ses_binary_state_name(enum ses_binary_state s);

struct ses_binary {
	const char *label;          /* unique in the project */
	const char *path;           /* as the project has it, absolute */
	const char *found;          /* the file that is shown; "" none */
	const char *why;            /* what to know about its state, one line, "" */
	enum ses_binary_state state;
	bool has_sha256, is_open, is_ready, is_indexed;
	char sha256[65];
	struct ses *ses;            /* while is_open; the project's */
};

struct ses_project_opts {
	const char *file;           /* P.json, or null */
	const char *const *paths;   /* further binaries */
	size_t path_cnt;
	struct ses *ses;            /* an open session of the first of them, which is borrowed; null: none */
	bool no_store;
	bool background;            /* a thread opens, analyses and indexes; else ses_project_sync() does */
	unsigned threads;
	const atomic_bool *cancel;  /* may be null */
	int event_fd;               /* an eventfd that is told when something became ready; -1 none */
};

/* Reads the file and looks where each binary is; opens none. Errors: invalid (with file, line and reason), bad_input, io. */
_must_use_ struct err *ses_project_open(const struct ses_project_opts *opts, struct ses_project **ret);
/* Closes its sessions too. Null is accepted. */
void ses_project_close(struct ses_project *p);

/* Adds a binary to what is open, for as long as it is: P.json stays what it is. One that is in it already is given. Errors: as opening
 * its file; budget: there are too many. */
#define SES_PROJECT_JOIN_MAX 256
_must_use_ struct err *ses_project_join(struct ses_project *p, const char *path, uint32_t *ret);

const char *ses_project_name(const struct ses_project *p);
const char *ses_project_note(const struct ses_project *p); /* why nothing of it is kept, or null */
uint32_t ses_project_cnt(struct ses_project *p);
/* Strings are in the arena. */
_must_use_ struct err *ses_project_binary(struct ses_project *p, uint32_t i, struct arena *a, struct ses_binary *ret);
/* The binary meant by a label, a path, or the last part of a path. Errors: not_found, ambiguous. */
_must_use_ struct err *ses_project_pick(struct ses_project *p, const char *word, uint32_t *ret);

/* The binary's session, opened when it is not. One that was analysed before is there at once (ses_project_is_known());
 * of another the tables are read first. With `background` it may still be analysed when this returns. */
_must_use_ struct err *ses_project_get(struct ses_project *p, uint32_t i, struct ses **ret);
bool ses_project_is_known(struct ses_project *p, uint32_t i);

/* Brings the index to what is now: opens and analyses what is new, indexes what moved. Cheap when nothing did. */
_must_use_ struct err *ses_project_sync(struct ses_project *p);
/* Tells the thread of `background` to do so. */
void ses_project_poke(struct ses_project *p);
/* Binaries whose newest state is in the index, of how many. */
void ses_project_progress(struct ses_project *p, uint32_t *ret_done, uint32_t *ret_cnt);

/* Where a person is in a binary, and which one is shown; kept between sessions. */
struct ses_place { uint32_t view; uint64_t va, top_va; uint32_t sub, top_sub; };
void ses_project_put_place(struct ses_project *p, uint32_t i, const struct ses_place *place);
bool ses_project_get_place(struct ses_project *p, uint32_t i, struct ses_place *ret);
void ses_project_put_shown(struct ses_project *p, uint32_t i);
uint32_t ses_project_get_shown(struct ses_project *p);

/* --- finding -------------------------------------------------------------------------------------------------- */

enum ses_find_kind { SES_FIND_EXPORT, SES_FIND_IMPORT, SES_FIND_FUNCTION, SES_FIND_SYMBOL, SES_FIND_GIVEN /* by a person */,
		     SES_FIND_STRING, SES_FIND_KIND_COUNT };
#define SES_FIND_NAMES ((1u << SES_FIND_STRING) - 1)
#define SES_FIND_STRINGS (1u << SES_FIND_STRING)
const char *ses_find_kind_name(enum ses_find_kind k);

struct ses_find_ask {
	const char *filter;   /* as everywhere: a glob, else a part of the text; null or "": all */
	uint32_t kinds;       /* bits of enum ses_find_kind; 0: all */
	uint64_t after;       /* cursor: what `next` said, 0 at the beginning */
	uint32_t limit;       /* 0: 1,000 */
	/* Set by the query: */
	uint32_t cnt;
	bool has_more;
	uint64_t next;
};
struct ses_find { uint32_t binary; enum ses_find_kind kind; uint64_t addr; struct ses_text text, readable, version, library; };
/* Names and strings of all binaries, from the index alone: names first. */
_must_use_ struct err *ses_project_find(struct ses_project *p, const struct ses_call *call, struct ses_find_ask *ask, struct arena *a,
					struct ses_find **ret);
/* How many there are in all. */
uint64_t ses_project_find_cnt(struct ses_project *p, uint32_t kinds);

/* What is asked about: a place of binary i as its snapshot has it. */
struct ses_far_ask { uint32_t binary; struct ses_snap *snap; uint64_t va; uint32_t limit; };

struct ses_provider { uint32_t binary; uint64_t addr; struct ses_text name, version; };
struct ses_providers { struct ses_provider *list; uint32_t cnt; };
/*
 * Who exports what the binary imports at va (its stub, slot, or place), the likeliest first: the library the version table names,
 * then what the binary needs, in order; symbol versions count among equals only. Error not_found when va is no import.
 */
_must_use_ struct err *ses_project_providers(struct ses_project *p, const struct ses_far_ask *ask, struct arena *a,
					     struct ses_providers *ret);

struct ses_far_xref { uint32_t binary; struct ses_xref xref; };
struct ses_far_list { struct ses_far_xref *list; uint32_t cnt; uint64_t total; };
/* References from other binaries to what the binary exports at va: those to their imports of that name. Opens them. At most
 * `limit` are listed; `total` counts all. */
_must_use_ struct err *ses_project_xrefs(struct ses_project *p, const struct ses_call *call, const struct ses_far_ask *ask, struct arena *a,
					 struct ses_far_list *ret);

/* --- P.json ----------------------------------------------------------------------------------------------------- */

struct ses_project_entry { const char *path, *label /* null: none */; bool has_sha256; uint8_t sha256[32]; uint32_t line; };
struct ses_project_text {
	const char *name;     /* "" */
	const char *id;       /* 32 hex digits, "" none */
	struct ses_project_entry *list;
	size_t cnt;
};
/*
 * Reads the text of a P.json (docs/ops.md), which is untrusted: at most 4 MB, 4,096 binaries. `what` names it in errors;
 * strings are in the arena, paths as written. Errors: invalid with line and reason.
 */
_must_use_ struct err *ses_project_parse(const char *text, size_t len, const char *what, struct arena *a, struct ses_project_text *ret);

/* Makes P.json (error invalid when it is there), adds binaries to it, takes some out; written as a whole or not at all. A binary
 * that is in it already is taken as it is now: new bytes, or a new place of the same bytes. */
_must_use_ struct err *ses_project_create(const char *file, const char *name, const char *const *paths, size_t cnt);
_must_use_ struct err *ses_project_add(const char *file, const char *const *paths, size_t cnt);
_must_use_ struct err *ses_project_remove(const char *file, const char *const *words, size_t cnt);

#endif
