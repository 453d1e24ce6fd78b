/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MCP_MCP_INT_H
#define MCP_MCP_INT_H

#include "base/vec.h"
#include "rpc/msg.h"
#include "rpc/opcall.h"

#include <pthread.h>

/*
 * The Model Context Protocol (modelcontextprotocol.io, revisions 2024-11-05 to 2025-11-25) over lines of JSON-RPC. The main
 * thread reads, answers what takes no time and writes; calls of tools and reads of resources are jobs that threads do. What a job
 * needs is in it, so that nothing is shared but open databases, which only grow.
 */
#define MCP_NAME_MAX 64
#define MCP_DBS_MAX 256
#define MCP_SUBS_MAX 1000
#define MCP_JOBS_MAX 64           /* waiting or running; more are not read */
#define MCP_BYTES_USUAL 24576     /* of an answer */
#define MCP_BYTES_MAX ((uint64_t)16 << 20)
#define MCP_RESTS_MAX 8           /* answers that are told in pages */
#define MCP_RESTS_BYTES ((size_t)64 << 20) /* of them, but for the newest */

enum mcp_version { MCP_2024_11_05, MCP_2025_03_26, MCP_2025_06_18, MCP_2025_11_25, MCP_VERSION_COUNT };
const char *mcp_version_name(enum mcp_version v);

/* An open target. The name stands for it in calls and addresses of resources. */
struct mcp_db {
	char *name, *path;
	struct ses *s;            /* the project's, if it is of one */
	bool is_of_project;
	uint32_t binary;          /* of the project */
	uint64_t told_rev;        /* the newest revision that subscribers know of */
	bool was_pending;
};

struct mcp_sub { char *uri; struct mcp_db *db; uint64_t due_ns; /* 0: nothing to tell */ };

/* Requests that came in one line, and their answers (2025-03-26 alone). */
struct mcp_batch { struct buf out; uint32_t left; };

struct mcp;
struct mcp_rest;
struct ses_project;

struct mcp_job {
	struct mcp *m;
	struct mcp_job *next;
	struct rpc_req req;       /* in the arena, as all that it points to */
	struct mcp_batch *batch;  /* or null */
	struct arena arena;
	struct buf out;           /* the answer's line */
	enum mcp_version version;
	atomic_bool cancel;
	bool is_cancelled;        /* by the client, who wants no answer */
	bool has_new_db;          /* it opened one */
	const char *token;        /* of progress, as JSON text; null: nobody asked */
	struct ses_meter meter;
	_Atomic(struct mcp_db *) waits_for; /* its analysis */
	double told, base;        /* progress that was told; what it was when the present stage began */
	const char *stage;
	uint64_t told_ns;
};

struct mcp {
	/* As started. */
	uint32_t caps;
	uint64_t max_bytes;
	bool is_proposing, no_store;
	/* The client. */
	bool is_initialized;
	enum mcp_version version;
	char client[MCP_NAME_MAX];
	/* Databases: added under the lock, never taken away. */
	pthread_mutex_t lock;
	struct mcp_db *dbs[MCP_DBS_MAX];
	uint32_t db_cnt;
	struct ses_project *project; /* or null */
	VEC(struct mcp_sub) subs;
	/* Answers of which a part was told (mcp_rest.c); under the lock. */
	struct mcp_rest *rests[MCP_RESTS_MAX];
	uint64_t rest_cnt;
	/* Jobs; queue, running and done under the lock. */
	pthread_cond_t has_work;
	struct mcp_job *queue, *queue_end, *running, *done;
	uint32_t job_cnt;
	bool is_stopping;
	int wake_fd;              /* eventfd: a job is done */
	struct buf out;           /* what is to be written */
	size_t sent;
	bool is_inline;           /* jobs are done where they are made: for tests of messages */
};

/* --- mcp_msg.c: messages --- */

/* One line from the client: what it asks is answered in m->out or becomes a job. */
void mcp_take_line(struct mcp *m, const char *line, size_t len);
/* A line that was too long. */
void mcp_take_long_line(struct mcp *m);
/* The job is done: its answer goes out, unless nobody wants it. Frees it. */
void mcp_job_end(struct mcp *m, struct mcp_job *job);
void mcp_job_free(struct mcp_job *job);
/* Does what a job asks for, in its own thread. */
void mcp_job_run(struct mcp_job *job);
/* Gives the job to the threads (mcp_loop.c). */
void mcp_queue(struct mcp *m, struct mcp_job *job);
/* A notification to the client: `params` is JSON text. */
void mcp_notify(struct mcp *m, const char *method, const char *params, size_t len);
/* An integer, bool or string of the parameters; null or `otherwise` when it is not there. */
const struct ops_doc *mcp_param(const struct ops_doc *params, const char *name);

/* --- mcp_db.c: databases --- */

/* Opens a file; one that is open is given as it is. Error as ses_open(), budget. */
_must_use_ struct err *mcp_db_open(struct mcp *m, const char *path, bool *ret_is_new, struct mcp_db **ret);
/* Opens the binaries of a project, named by their labels, before anything else. Errors as ses_project_open(). */
_must_use_ struct err *mcp_db_open_project(struct mcp *m, const char *file);
/* By name or path; null: the only one. Errors not_found, invalid (which of them?). */
_must_use_ struct err *mcp_db_find(struct mcp *m, const char *name, struct mcp_db **ret);
void mcp_dbs_close(struct mcp *m);
/* A snapshot, the caller's to put: of the finished analysis, for which it waits when the job wants that. Errors cancelled, or why it failed. */
_must_use_ struct err *mcp_db_snap(struct mcp_job *job, struct mcp_db *db, bool wants_wait, struct ses_snap **ret);
const char *mcp_db_state(const struct mcp_db *db);

/* --- mcp_tools.c --- */

/* {"tools":[...]} */
void mcp_put_tools(const struct mcp *m, struct json *j);
/* The result of tools/call into `out`. An error is of the protocol: no such tool. */
_must_use_ struct err *mcp_call_tool(struct mcp_job *job, struct buf *out);
/* An operation on a database, cut to the budget: `params` by name. */
struct mcp_ask { struct mcp_db *db; const char *op; const struct ops_doc *params; uint64_t max_bytes; bool wants_wait; };
_must_use_ struct err *mcp_run_op(struct mcp_job *job, const struct mcp_ask *ask, struct buf *out);

/* --- mcp_rest.c: answers longer than the budget --- */

/* Keeps an answer (JSON, an object) and gives its first page, of at most max_bytes, in its place. False: it stays as it is, because it cannot
 * be cut at an item (`must`: then it is in pieces of text), or no memory. */
bool mcp_rest_cut(struct mcp *m, uint64_t max_bytes, bool must, struct buf *out);
/* Whether this cursor is one of a page's. */
bool mcp_rest_is(const struct ops_doc *cursor);
/* The page there. Errors stale (it is kept no longer), budget (the item is longer), invalid. */
_must_use_ struct err *mcp_rest_next(struct mcp *m, const char *cursor, uint64_t max_bytes, struct buf *out);
/* Null is accepted. */
void mcp_rest_free(struct mcp_rest *r);

/* --- mcp_resources.c --- */

void mcp_put_resources(struct mcp *m, struct json *j);
void mcp_put_templates(const struct mcp *m, struct json *j);
/* The result of resources/read. Errors not_found (no such resource), and those of the operation. */
_must_use_ struct err *mcp_read_resource(struct mcp_job *job, struct buf *out);
/* Adds or takes away a subscription. Errors invalid, not_found, budget. */
_must_use_ struct err *mcp_subscribe(struct mcp *m, const struct ops_doc *params, bool is_wanted);
/* Looks for news of all databases and tells what is due; gives the time of the next, 0: none. */
uint64_t mcp_tell_news(struct mcp *m, uint64_t now_ns);

#endif
