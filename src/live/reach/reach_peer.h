/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_REACH_REACH_PEER_H
#define LIVE_REACH_REACH_PEER_H

#include "live/reach/reach_conn.h"

#include <sys/stat.h>

/*
 * Files of another machine, whatever the protocol: requests are submitted, any number, and answers taken, in whatever order they come.
 * What a peer cannot do right it refuses before it is asked: offsets beyond `max_off` would give wrong bytes.
 */
enum reach_op {
	REACH_LOOK, /* what can be said of a path without opening it; succeeds with nothing known, too */
	REACH_OPEN,
	REACH_STAT, /* of an open file */
	REACH_READ,
	REACH_WRITE,
	REACH_CLOSE,
	REACH_UNLINK,
	REACH_HASH,   /* by the peer's cheapest hash, see `hash` */
	REACH_SHA256, /* where `has_sha256` */
};

#define REACH_MAX_ID_LEN 32

/* What is known of a file there. All of it is the server's word. */
struct reach_meta {
	bool has_len, has_mtime, has_mode;
	uint64_t len;		      /* bytes */
	int64_t mtime;		      /* seconds */
	uint32_t mode;		      /* as st_mode, or permissions only */
	uint32_t dev, ino;	      /* low bits of them; 0: not known */
	uint8_t id[REACH_MAX_ID_LEN]; /* build-id */
	unsigned id_len;	      /* 0: not known */
};

struct reach_req {
	enum reach_op op;
	uint64_t tag;
	const char *path;     /* LOOK OPEN READ UNLINK HASH SHA256 */
	uint64_t fd;	      /* STAT READ WRITE CLOSE */
	uint64_t off, len;    /* READ WRITE, bytes; HASH: len, how long the file is */
	const void *data;     /* WRITE */
	uint32_t flags, mode; /* OPEN: GDB_O_*, permissions of a new file */
	bool may_compress;    /* READ */
	const struct reach_meta *meta; /* READ, may be null: the file as it was when it was opened */
};

enum reach_hash { REACH_NO_HASH, REACH_MD5, REACH_XXH3 };

struct reach_answer {
	uint64_t tag;
	enum reach_op op;
	int os_errno;		/* 0: done; ENOSYS: the peer cannot */
	uint64_t value;		/* OPEN: the descriptor; WRITE: bytes written */
	struct reach_meta meta; /* LOOK STAT */
	struct gdb_span
		data; /* READ: at most what was asked for, fewer at the end and where it pleased the server; borrowed until the next call */
	uint8_t hash[32]; /* HASH (16 bytes), SHA256 */
};

struct reach_peer;
struct reach_peer_ops {
	struct err *(*submit)(struct reach_peer *p, const struct reach_req *req);
	struct err *(*next)(struct reach_peer *p, struct reach_answer *ret);
	/* Sends what has not gone out; waits for nothing. */
	struct err *(*flush)(struct reach_peer *p);
	void (*free)(struct reach_peer *p);
};

struct reach_peer {
	const struct reach_peer_ops *ops;
	enum reach_kind kind;
	const char *what;	/* "lldb-server" */
	uint64_t chunk_len;	/* of a read, bytes */
	unsigned max_open_cnt;	/* requests in flight */
	uint64_t max_off;	/* bytes from here on cannot be read */
	uint64_t max_write_len; /* bytes of a write that need no escaping */
	enum reach_hash hash;
	bool has_sha256, has_compression;
	bool must_close;    /* it keeps files open when we are gone */
	bool is_ordered;    /* answers come in the order of the requests */
	bool is_pipelined;  /* it is known that requests can be sent ahead */
	bool is_lent;	    /* the connection is another's, on which nothing is left open */
	bool has_spare;	    /* a HASH asked now holds up no READ */
	unsigned stray_cnt; /* answers that nobody waits for any more */
	uint64_t window_len; /* bytes that were worth having on their way at once, so far; the fetch's own */
	uint64_t wire_len;  /* bytes received so far */
	uint64_t turn_cnt;  /* see reach_turn_cnt() */
};

/*
 * Connects to the server of a URL; over ssh `scry platform --stdio` is started there, and SFTP is spoken where there is no scry. Errors as
 * reach_link_open() and reach_conn_new().
 */
_must_use_ struct err *reach_peer_open(const struct reach_url *u, const struct reach_wait *wait, struct reach_peer **ret);
void reach_peer_close(struct reach_peer *p);

/* Over a connection (taken, also on failure). */
_must_use_ struct err *reach_peer_gdb(struct reach_conn *c, struct reach_peer **ret);
/* Over a connection that stays the caller's, who may find answers on it that nobody waits for any more when the peer is closed. Waits for
 * those that are due now. */
_must_use_ struct err *reach_peer_over(struct reach_conn *c, struct reach_peer **ret);
/* The same, and several connections to it where that is faster: lldb-server has a process for each. */
_must_use_ struct err *reach_peer_lanes(struct reach_conn *c, const struct reach_wait *wait, struct reach_peer **ret);
/* SFTP version 3 over a link (taken, also on failure). */
_must_use_ struct err *reach_peer_sftp(struct reach_link link, const struct reach_wait *wait, struct reach_peer **ret);

/* What an errno of another machine means for the file `path`: denied, not_found, ... */
_must_use_ struct err *reach_file_err(int os_errno, const char *path);

#endif
