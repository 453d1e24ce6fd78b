/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SES_INT_H
#define SESSION_SES_INT_H

#include "arch/arch.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/finding.h"
#include "format/fmt.h"
#include "image/image.h"
#include "session/ses_coming.h"
#include "session/session.h"
#include "session/store.h"

#include <pthread.h>

/* A target's section or mapping that begins at a loc, for the listing's section lines; sorted by loc. */
struct ses_mark {
	uint32_t loc;
	uint32_t section; /* index into the image's sections; UINT32_MAX: the segment */
	uint32_t seg;
};

/*
 * A list as it is asked for: indices of the underlying table that pass the filter, in the order asked for. Kept in
 * the snapshot, because a reader of page 7 wants page 8 next. Immutable once made.
 */
struct ses_view {
	char *key;       /* list, filter, sort and argument as one text */
	uint32_t *idx;   /* null: the table itself */
	uint64_t cnt;
	uint64_t used;   /* clock of the last use */
};

#define SES_VIEW_MAX 8

/* The newest edit that may show on a page of the listing: clients ask whether what they have still holds. */
struct ses_stamp { uint64_t first_va, last_va, rev; bool is_set; };

#define SES_STAMP_CNT 64

/* Where a name leads: an etag asks for it, then the operation, then the next request of the same client. */
struct ses_known { char name[40]; uint64_t va; };

#define SES_KNOWN_CNT 64

struct ses_edge_row {
	uint32_t caller; /* loc */
	uint32_t callee; /* loc of a function or an extern slot */
	uint32_t cnt;
};

struct ses_snap {
	atomic_uint refs;
	struct ses *ses;           /* borrowed; outlives the snapshot */
	struct image *im;          /* never null: in a preview it is made from the file's tables alone */
	const struct arch *arch;
	const struct space *space; /* of im */
	uint64_t rev;
	uint32_t gen;
	struct edits_view *edits;  /* null: nobody stated anything */
	bool is_preview;
	struct buf mem;            /* the image's bytes when it is not in the store */
	struct ses_snap *holds;    /* ... or whose they are */
	bool is_settled;           /* the image has seen every directive, though the store does not know it */

	pthread_mutex_t lock;      /* for what is made on first use: */
	struct ses_stamp stamps[SES_STAMP_CNT];
	struct ses_known known[SES_KNOWN_CNT]; /* "" none */
	struct ses_view views[SES_VIEW_MAX];
	uint64_t view_clock;
	struct ses_mark *marks;
	uint32_t mark_cnt;
	bool has_marks;
	struct ses_edge_row *edges;
	uint64_t edge_cnt;
	bool has_edges;
	struct ses_typeset *types; /* shared with other snapshots; see ses_types.h for these */
	struct ses_typed *typed;
	uint32_t typed_cnt;
	atomic_bool has_typed;
	struct ses_protos *_Atomic protos;   /* of ses_proto.c */
};

void ses_protos_free(struct ses_protos *p);

/* How a file is read, beside what it says itself; without padding, to be compared as bytes. */
struct ses_load {
	uint64_t base;
	char processor[22]; /* "": as the file says */
	bool has_base, is_raw;
};

struct ses {
	char *path;
	struct ses_remote_got remote; /* of a URL: what was fetched, and where to */
	struct ses_coming *coming;  /* null: all of it is here, or was when it was opened */
	const struct ses_opts *opening; /* under `lock`: of the call that opens it, while it does */
	uint64_t shown_ns;          /* of the thread that fetches: when is_missed was last answered */
	atomic_bool is_missed;      /* rows were given that say that their bytes are not here yet */
	struct file *file;          /* null: its bytes are not to be had */
	struct fmt_bin *bin;        /* null when the image came from the store */
	struct ses_load load;       /* what bin was made with */
	struct ses_load asked;      /* by the call that opened; where there is no store for it */
	const struct arch *arch;
	struct store *store;        /* null: none can be had, see store_note */
	char *store_note;
	uint8_t sha256[32];
	bool has_sha256;
	_Atomic uint64_t no_verdicts, some_verdicts; /* stamps of the cache when it had none of any function, and when it had some */
	bool was_made;              /* the image was made by this session */
	uint64_t made_ns;           /* how long that took */
	unsigned threads;
	bool force;
	const atomic_bool *cancel;
	void (*progress_fn)(void *ctx, const struct ses_progress *p);
	void *progress_ctx;

	pthread_mutex_t worker_lock; /* for the following */
	pthread_t worker;
	bool has_worker;            /* to be joined */
	bool is_working;
	bool is_wanted;             /* once more when it is through */
	atomic_bool stop;
	pthread_mutex_t edits_lock; /* for the following */
	struct edits *edits;        /* the connection that writes, kept from the first edit on */
	int event_fd;               /* -1 in the foreground */
	int watch_fd;               /* see ses_watch_fd() */
	pthread_cond_t changed;     /* of the state */
	pthread_mutex_t lock;       /* for the following */
	struct ses_snap *snap;
	struct ses_progress progress;
	uint64_t event_ns;
	char *error_text;
};

static inline struct ses_text ses_text_of(const char *s, size_t len)
{
	return (struct ses_text){s ? s : "", s ? (uint32_t)len : 0};
}

static inline struct ses_text ses_text_cstr(const char *s)
{
	return ses_text_of(s, s ? strlen(s) : 0);
}

/* A pool string of the image. */
struct ses_text ses_pool(const struct ses_snap *sn, struct image_str s);

/* Whether the call's deadline passed or it was cancelled; to be asked at least every 1,024 steps. */
_must_use_ struct err *ses_call_check(const struct ses_call *call);

/* ses_types.c: the set of types goes to a newer snapshot with the same declarations. */
void ses_types_inherit(struct ses_snap *sn, struct ses_snap *was);

/* session.c */
uint64_t ses_now_ns(void); /* CLOCK_MONOTONIC */
struct ses_snap *ses_snap_new(struct ses *s, struct image *im, struct buf *mem, bool is_preview);
/* A snapshot of the same image with newer facts, or null; takes `edits` when it is not. */
struct ses_snap *ses_snap_with(struct ses_snap *was, struct edits_view *edits);
/* Whether its image has not seen every directive of its revision. */
bool ses_snap_is_stale(const struct ses_snap *sn);
void ses_snap_free(struct ses_snap *sn);

/* Whether the bytes behind `len` bytes at `loc` are here; of a file that is coming they are waited for, a moment only where a person waits
 * for what else there is to see. */
bool ses_is_here(const struct ses_snap *sn, uint32_t loc, uint32_t len);
/* Waits for the rest of a file that is coming, whose hash is known then. */
_must_use_ struct err *ses_arrive(struct ses *s);

/* ses_build.c: the whole way from bytes to an image; publishes into the session. */
_must_use_ struct err *ses_build(struct ses *s);
/* Hashes the target if that was not done. */
_must_use_ struct err *ses_identify(struct ses *s);
_must_use_ struct err *ses_build_preview(struct ses *s, struct ses_snap **ret);
/* The stored image of s->sha256, as a snapshot; error not_found or stale when it must be made. */
_must_use_ struct err *ses_open_stored(struct ses *s, struct ses_snap **ret);

/* session.c */
_must_use_ struct err *ses_arch_of(enum arch_id id, const struct arch **ret);
void ses_set_progress(struct ses *s, enum ses_state state, const char *stage, uint64_t done, uint64_t total, uint64_t func_cnt);
/* Makes the snapshot the newest, unless a newer one is there; takes it. */
void ses_publish(struct ses *s, struct ses_snap *sn);
/* ... and says that there is nothing to do any more. */
void ses_publish_done(struct ses *s, struct ses_snap *sn);
/* In the background: begins another analysis when the newest snapshot is stale. */
void ses_analyse_newer(struct ses *s);
/* What a snapshot's addresses are above those of the journal. */
uint64_t ses_snap_bias(const struct ses_snap *sn);
/* Whether the target's hash is known, which the worker finds out. */
bool ses_has_hash(struct ses *s);

/* ses_names.c. Writes at most `cap` bytes; the length, 0 when the address deserves no name. */
size_t ses_name_put(struct ses_snap *sn, uint32_t loc, char *out, size_t cap);
/* For operands: the name of exactly va, or name+0x10 inside a named thing. */
size_t ses_name_for_operand(void *snap, uint64_t va, char *out, size_t cap);
struct ses_text ses_name_loc(struct ses_snap *sn, uint32_t loc, struct arena *a);
struct ses_text ses_demangle(struct arena *a, struct ses_text name);
/* ses_search() over C: ses_search_c.c. */
_must_use_ struct err *ses_search_c(struct ses_snap *sn, const struct ses_call *call, struct ses_search_ask *ask, struct arena *a,
				    struct ses_hit **ret);
/* Name of the function with that number. */
struct ses_text ses_func_name(struct ses_snap *sn, uint32_t func, struct arena *a);

/* ses_view.c */
typedef bool ses_match_fn(struct ses_snap *sn, void *ctx, uint32_t i);
typedef int ses_cmp_fn(struct ses_snap *sn, void *ctx, uint32_t x, uint32_t y);
struct ses_view_ask {
	const char *list;      /* name of the list, part of the key */
	const char *key;       /* filter, sort, ... part of the key */
	uint32_t cnt;          /* of the table */
	ses_match_fn *match;   /* null: all */
	ses_cmp_fn *cmp;       /* null: the table's order */
	bool is_descending;
	void *ctx;
};
/* The page's indices into the table: *ret_idx[i], or offset + i when it is null. Sets page->cnt and total. */
_must_use_ struct err *ses_view_page(struct ses_snap *sn, const struct ses_call *call, const struct ses_view_ask *ask,
				     struct ses_page *page, struct arena *a, const uint32_t **ret_idx);
/* Case-ignoring glob of a page's filter; true without one. */
bool ses_filter_match(const char *filter, struct ses_text t);

/* ses_heads.c: the text of one item, as in the listing, without spans. */
struct ses_text ses_line_text(struct ses_snap *sn, uint32_t loc, struct arena *a);
/* Puts an escaped string literal for the string item, cut to `max` bytes of text with "..." after it. */
void ses_put_string(struct ses_snap *sn, const struct image_string *str, size_t max, struct buf *out);

/* ses_graph.c */
_must_use_ struct err *ses_edges(struct ses_snap *sn, const struct ses_call *call, const struct ses_edge_row **ret, uint64_t *ret_cnt);

/* ses_edits.c: what was stated about an address. All of them are a null test where nobody stated anything. */
size_t ses_edit_name_put(const struct ses_snap *sn, uint64_t va, char *out, size_t cap);
bool ses_edit_has_name(const struct ses_snap *sn, uint64_t va);
bool ses_edit_resolve(const struct ses_snap *sn, const char *text, size_t len, uint64_t *ret_va);
struct ses_text ses_edit_comment(const struct ses_snap *sn, uint64_t va, const char *sub);
/* The bytes as they are shown: `len` bytes that stand at va, overlaid with what was patched. */
void ses_edit_patch(const struct ses_snap *sn, uint64_t va, uint8_t *bytes, size_t len);
bool ses_edit_has_patch(const struct ses_snap *sn, uint64_t first_va, uint64_t last_va);
void ses_edits_close(struct ses *s);
/* ses_names.c */
bool ses_resolve_generated(const char *text, size_t len, uint64_t *ret);

const char *ses_source_name(uint8_t source);
const char *ses_encoding_name(uint32_t encoding);
const char *ses_xref_name(uint8_t kind);

#endif
