/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVE_SERVE_INT_H
#define SERVE_SERVE_INT_H

#include "base/vec.h"
#include "rpc/lines.h"
#include "rpc/opcall.h"
#include "session/project.h"

#include <pthread.h>

/*
 * The server. A few loops, each a thread with an epoll of its own, own the connections; a pool of workers runs what takes long.
 *
 * A request lives from its line to its answer. Its loop parses it and, where it is an operation that was quick of late, answers it on the
 * spot, into the connection's send buffer. Else it goes to the pool, and its answer comes back as the whole line it is. A request belongs
 * to its loop, but for the time between serve_pool_add() and serve_pool_take(), when it is a worker's.
 *
 * conn.c, request.c and methods.c do no I/O of their own on connections, so that they can be driven by bytes alone.
 */
#define SERVE_LINE_MAX ((size_t)4 << 20)
#define SERVE_INLINE_LINE ((size_t)64 << 10) /* a longer line is parsed by a worker */
#define SERVE_REQ_MAX 64                     /* requests of a connection that are not answered */
#define SERVE_UNSENT_MAX ((size_t)256 << 10) /* bytes of answers not taken, beyond which nothing more is begun */
#define SERVE_INPUT_MAX ((size_t)64 << 20)   /* bytes of unfinished lines of all connections together */
#define SERVE_OP_BYTES ((uint64_t)16 << 20)  /* after which an answer that can goes on with `next` */
#define SERVE_ANSWER_MAX ((size_t)64 << 20)
#define SERVE_QUICK_NS 1000000ull            /* an operation is quick that took no longer of late */
#define SERVE_INLINE_NS 2000000ull           /* and then is given so long before a worker begins it anew */
#define SERVE_COALESCE_NS 200000000ull       /* between two events of a subscription */
#define SERVE_PROGRESS_NS 500000000ull
#define SERVE_DB_MAX 256
#define SERVE_LOOP_MAX 8

struct serve;
struct serve_loop;
struct serve_conn;
struct serve_tls;

/* What an epoll event is about. */
enum serve_src { SERVE_CONN, SERVE_WAKE, SERVE_LISTENER, SERVE_TLS_LISTENER, SERVE_SIGNAL, SERVE_DB_EVENT, SERVE_DB_WATCH };

/* --- databases (db.c) --- */

struct serve_db {
	enum serve_src event_src, watch_src; /* &event_src is what epoll gives */
	struct serve *serve;
	atomic_uint refs;
	uint32_t id;
	char *path;                  /* as it was asked for, absolute */
	struct ses *ses;
	struct ses_project *project; /* the server's, or null */
	uint32_t binary;
	atomic_uint_fast64_t news;   /* one more whenever state or revision may have changed */
	atomic_bool refreshing;      /* a worker is about to look into the journal */
	bool is_watched;             /* loop 0's: the inotify descriptor too */
	/* Under the lock of the table: */
	uint32_t openers;            /* connections and the command line */
	bool is_listed;
	/* Nanoseconds operations took of late, by their place in the table; 0: never ran. */
	atomic_uint *speeds;
};

struct serve_open_opts { const char *path; const char *processor, *base, *format; };

struct serve_db *serve_db_ref(struct serve_db *db);
/* Null is accepted. The last one closes the session, which may take a while. */
void serve_db_unref(struct serve_db *db);
/* The database of that file, opened when it is not; with one opener more. A reference of the caller's. Any thread. */
_must_use_ struct err *serve_db_open(struct serve *s, const struct serve_open_opts *o, struct serve_db **ret);
/* The binaries of a project, each a database. */
_must_use_ struct err *serve_db_open_project(struct serve *s, const char *file);
/* One opener less; nobody finds it any more when there is none. */
void serve_db_close(struct serve_db *db);
/* By id, path, or the last part of a path. A reference; errors not_found, ambiguous. */
_must_use_ struct err *serve_db_find(struct serve *s, const struct ops_doc *what, struct serve_db **ret);
/* The first there is, or null. A reference. */
struct serve_db *serve_db_first(struct serve *s);
/* All of them, references, at most SERVE_DB_MAX; how many. */
size_t serve_db_all(struct serve *s, struct serve_db **ret);
/* Brings the session to what others committed; for workers. */
void serve_db_refresh(struct serve_db *db);

/* --- answers kept (cache.c) --- */

/* Answers of operations that take long, by etag: which says what an answer depends on. Any thread. */
struct serve_cache;
_must_use_ struct serve_cache *serve_cache_new(size_t max_len);
void serve_cache_free(struct serve_cache *c);
bool serve_cache_get(struct serve_cache *c, const char *etag, struct buf *out);
void serve_cache_put(struct serve_cache *c, const char *etag, const char *text, size_t len);

/* --- requests (request.c) --- */

enum serve_state { SERVE_QUEUED, SERVE_RUNNING, SERVE_DONE };
enum serve_work { SERVE_WORK_PARSE, SERVE_WORK_OP, SERVE_WORK_OPEN, SERVE_WORK_FEED, SERVE_WORK_REFRESH };

struct serve_method;

struct serve_req {
	struct serve_req *next;      /* of its connection, in order of arrival; else of a list of free ones */
	struct serve_req *pool_next;
	struct serve *serve;
	struct serve_loop *loop;
	struct serve_conn *conn;     /* null: nobody waits for an answer */
	enum serve_state state;
	enum serve_work work;
	struct arena arena;
	struct rpc_req rq;
	enum rpc_code code;
	struct err *err;             /* found before it began */
	const struct serve_method *m;
	const struct ops_op *op;
	struct ops_args args;
	struct serve_db *db;         /* a reference */
	const char *line;            /* to be parsed */
	size_t line_len;
	struct ses_call call;
	atomic_bool cancel;
	struct ses_meter meter;
	uint64_t begun_ns, told_ns;
	uint64_t told_done;
	bool is_parsed, is_exclusive, is_answered, wants_progress, as_table, has_color;
	bool in_pool;
	bool is_waiting;             /* `open`: for the analysis */
	uint64_t since;              /* of a feed; afterwards the revision it tells of */
	struct buf out;              /* the line of the answer */
};

/* A request of the loop's free ones. Null: no memory. */
struct serve_req *serve_req_new(struct serve_loop *l);
void serve_req_free(struct serve_req *r);
/* Parses its line and finds out what is meant; r->err is what is wrong with it. */
void serve_req_parse(struct serve_req *r);
void serve_req_resolve(struct serve_req *r);
/* Whether it may begin before those that came before it have ended. */
bool serve_req_is_quick(const struct serve_req *r);
/* Runs the operation and appends the line of its answer to `out`. On the spot when `limit_ns` is not 0: false, with nothing appended,
 * when that was not enough. */
bool serve_req_run(struct serve_req *r, struct buf *out, uint64_t limit_ns);
/* The same out of what is kept; false when it is not there. */
bool serve_req_cached(struct serve_req *r, struct buf *out);
/* Appends the line of its error. */
void serve_req_refuse(struct serve_req *r, struct buf *out);
/* What a worker does. */
void serve_req_work(struct serve_req *r);

/* --- methods (methods.c) --- */

struct serve_param { const char *name, *type, *help; bool is_required; };
struct serve_method {
	const char *name, *help;
	bool is_exclusive;           /* what comes later waits for it */
	struct serve_param params[6]; /* ended by one without a name */
	/* Appends the result; null: serve_open_begin() and a worker do it. */
	struct err *(*run)(struct serve_req *r, struct json *j);
};
const struct serve_method *serve_method_find(const char *name);
const struct ops_doc *serve_arg(const struct serve_req *r, const char *name);
/* Checks names and types of its parameters. Error invalid. */
_must_use_ struct err *serve_method_check(struct serve_req *r);
void serve_put_db(struct json *j, struct serve_db *db);
/* Answers an `open` whose analysis has ended. */
void serve_open_answer(struct serve_req *r, struct buf *out);

/* --- the pool (pool.c) --- */

struct serve_pool;
/* Without workers serve_pool_step() does the work. */
_must_use_ struct err *serve_pool_new(unsigned workers, struct serve_pool **ret);
/* Ends the workers once each is through with what it does; what is queued is dropped. */
void serve_pool_free(struct serve_pool *p);
void serve_pool_add(struct serve_pool *p, struct serve_req *r);
bool serve_pool_step(struct serve_pool *p);
/* Those of a loop that are done, a list by pool_next. */
struct serve_req *serve_pool_take(struct serve_loop *l);

/* --- connections (conn.c) --- */

struct serve_sub { struct serve_db *db; uint64_t told_rev, told_news, due_ns; bool is_running; };

struct serve_conn {
	enum serve_src src;          /* &src is what epoll gives */
	uint64_t id;                 /* no other one ever had it */
	struct serve_loop *loop;
	struct serve_conn *next, *prev;
	int fd;
	struct serve_tls *tls;       /* null: a unix socket */
	uint32_t watched;            /* what epoll tells of */
	bool is_ended;               /* it sends no more */
	bool is_hung;                /* nor will it read: what it asked to change is changed still, nothing else is done for it */
	bool is_gone;                /* and takes no more */
	bool is_ready;               /* on the loop's list of those with something to do */
	bool needs_token;            /* before anything else */
	bool is_refused;             /* nothing more is read of it */
	uint64_t token_due_ns;
	struct serve_conn *ready_next;
	struct rpc_lines lines;
	size_t held;                 /* of lines, as the server counts it */
	VEC(struct buf) outs;
	size_t sent;                 /* of the first of outs */
	struct serve_req *first, **last;
	uint32_t req_cnt, pool_cnt;
	uint32_t caps;
	char *author;
	const char *author_kind;
	struct serve_db *db;         /* what is meant when none is named; may be null */
	VEC(struct serve_db *) opened;
	VEC(struct serve_sub) subs;
};

void serve_conn_init(struct serve_conn *c, struct serve_loop *l);
/* Gives back all there is, but for what workers hold. The descriptor is the caller's. */
void serve_conn_fini(struct serve_conn *c);
size_t serve_conn_room(const struct serve_conn *c);
void serve_conn_feed(struct serve_conn *c, const void *bytes, size_t len);
void serve_conn_end(struct serve_conn *c);
/* It closed both directions: is_hung, and what would only have been an answer is cancelled. */
void serve_conn_hang(struct serve_conn *c);
/* Does what can be done; true when there is more to do after others had their turn. */
bool serve_conn_step(struct serve_conn *c);
/* A request of its came back from the pool. */
void serve_conn_done(struct serve_conn *c, struct serve_req *r);
/* Progress, deadlines, events that are due; the next time something is, 0: never. */
uint64_t serve_conn_tick(struct serve_conn *c);
/* Where an answer goes; bytes not taken yet. */
struct buf *serve_conn_out(struct serve_conn *c);
size_t serve_conn_unsent(const struct serve_conn *c);
/* So many bytes were taken. */
void serve_conn_took(struct serve_conn *c, size_t len);
/* Nothing is left to do for it, and it says no more. */
bool serve_conn_is_over(const struct serve_conn *c);
void serve_conn_cancel(struct serve_conn *c, const char *id);

/* --- subscriptions (feed.c) --- */

_must_use_ struct err *serve_feed_add(struct serve_conn *c, struct serve_db *db, uint64_t since);
bool serve_feed_del(struct serve_conn *c, const struct serve_db *db);
void serve_feed_clear(struct serve_conn *c);
/* Begins the events that are due; the next time one is. */
uint64_t serve_feed_tick(struct serve_conn *c);
void serve_feed_run(struct serve_req *r);
void serve_feed_done(struct serve_conn *c, struct serve_req *r);

/* --- loops (loop.c) --- */

struct serve_loop {
	enum serve_src wake_src;
	struct serve *serve;
	unsigned no;
	pthread_t thread;
	int epoll_fd, wake_fd;
	atomic_uint conn_cnt;
	pthread_mutex_t lock;        /* for the two lists */
	struct serve_req *done;      /* from the pool, newest first */
	struct serve_conn *arrived;  /* from whoever accepted them, by ready_next */
	atomic_bool is_woken;
	struct serve_conn *conns, *ready, *dead;
	struct serve_req *free_reqs;
	unsigned free_cnt;
	struct buf spare;            /* a send buffer for whoever answers next */
	uint64_t now_ns, due_ns;
	uint64_t listen_again_ns;    /* 0: listening; else descriptors ran out, try again then */
	uint64_t news;               /* of serve->news, as it was at the last look */
};

/* Waits for clients, or does not any more. False, with errno: it cannot. */
bool serve_loop_listen(struct serve_loop *l, bool is_on);
void serve_loop_init(struct serve_loop *l, struct serve *s, unsigned no);
void serve_loop_fini(struct serve_loop *l);
/* Wakes its thread. Any thread. */
void serve_loop_wake(struct serve_loop *l);
/* Something of this loop's is due then. */
void serve_loop_due(struct serve_loop *l, uint64_t at_ns);
uint64_t serve_now_ns(void);
/* Runs until serve->stop. */
void serve_loop_run(struct serve_loop *l);
/* The table changed: this one came or went. Any thread. */
void serve_watch_db(struct serve *s, struct serve_db *db);
/* Has a worker look into its journal. */
void serve_refresh_later(struct serve_loop *l, struct serve_db *db);

/* --- the whole --- */

struct serve {
	uint32_t caps;               /* granted to every client */
	bool no_store;
	atomic_bool stop;
	unsigned conn_max;
	atomic_uint conn_cnt;
	atomic_size_t held;          /* bytes of unfinished lines */
	atomic_uint_fast64_t news;   /* one more whenever that of a database is */
	pthread_mutex_t lock;        /* of the table of databases */
	struct serve_db *dbs[SERVE_DB_MAX];
	size_t db_cnt;
	uint32_t db_last_id;
	VEC(struct ses_project *) projects;
	VEC(struct serve_db *) watched, unwatched; /* loop 0's */
	struct serve_cache *cache;
	struct serve_pool *pool;
	unsigned loop_cnt;
	struct serve_loop loops[SERVE_LOOP_MAX];
	enum serve_src listener_src, tls_listener_src, signal_src;
	int listen_fd, tls_fd, signal_fd, reserve_fd;
	struct serve_tls_server *tls;
	const char *token;           /* of clients over TLS */
};

_must_use_ struct err *serve_init(struct serve *s, unsigned workers, unsigned loops);
void serve_fini(struct serve *s);

#endif
