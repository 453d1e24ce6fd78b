/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_BATCH_INT_H
#define CLI_BATCH_INT_H

#include "base/vec.h"
#include "cli/cli_int.h"

/*
 * One operation on many files: what is to be done (batch_list.c), what was done (batch_state.c), and doing it, a process a file (batch.c).
 */
enum batch_status {
	BATCH_WAITING,
	BATCH_DONE,       /* answered, exit 0 */
	BATCH_FAILED,     /* refused, or the file is malformed; perhaps with an answer all the same */
	BATCH_TIMEOUT,
	BATCH_CRASHED,    /* its process died of a signal */
	BATCH_NO_PROGRAM, /* of no format scry knows */
	BATCH_SKIPPED,    /* not looked at: no regular file */
	BATCH_STATUS_COUNT
};
const char *batch_status_name(enum batch_status s);

#define BATCH_NONE UINT32_MAX
#define BATCH_ID_LEN 24

struct batch_item {
	const char *name;             /* as it is told: below DIR, or as the list has it */
	const char *path;             /* to open it by */
	char id[BATCH_ID_LEN + 1];    /* of the name's bytes */
	enum batch_status status;
	uint64_t size, dev, ino;
	int64_t mtime_ns;
	bool is_file;                 /* a regular file that is not empty */
	bool is_known;                /* the state has its line */
	bool has_sha, is_shared;      /* is_shared: others have its size */
	uint8_t sha[32];
	uint32_t same_as;             /* the item whose bytes these are, answered once; BATCH_NONE */
	int exit;
	bool has_answer;
	uint64_t bytes, ms;           /* of the answer; what it took */
	const char *kind, *why, *fix; /* "" none */
};

struct batch {
	struct cli *c;                /* op, its parameters, options of all */
	const char *source, *out;     /* DIR or LIST; where answers go */
	const char *dir;              /* DIR's real path; null: a list */
	unsigned jobs;
	uint64_t timeout_ms;
	bool is_strict, is_retry;
	int out_fd, state_fd;
	dev_t out_dev;
	ino_t out_ino;
	VEC(struct batch_item) items;
	uint64_t counts[BATCH_STATUS_COUNT];
	uint64_t same_cnt;
	int status;                   /* exit */
};

/* Makes the list of items from `source`: all below a folder, in the order of names, links to files included and links to folders not
 * followed; or the lines of a list, "-" being stdin, ended by NULs when there is one. What is no regular file is an item, skipped. Errors:
 * bad_input, io, budget. */
_must_use_ struct err *batch_collect(struct batch *b);
/* The answer's name in the folder: what is readable of the item's, and its id, which no other has. */
void batch_out_name(const struct batch_item *it, struct buf *ret);

/* Makes and opens the folder. Errors io, denied. */
_must_use_ struct err *batch_out_open(struct batch *b);
/* Opens the state in it, takes the lock (error busy when another batch has it) and takes over what an earlier run of the same batch has
 * done, where file and answer still are what they were. Error invalid: it is another batch's. */
_must_use_ struct err *batch_state_open(struct batch *b);
/* An item's line, as JSON. */
void batch_put_item(const struct batch *b, const struct batch_item *it, struct buf *out);
/* Appends an item's line: from then on it is done. */
_must_use_ struct err *batch_state_add(struct batch *b, const struct batch_item *it);

#endif
