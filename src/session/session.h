/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include "base/arena.h"
#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The one typed API that every front end uses. A session is an open target: its bytes, its place in the store, and
 * the newest image of its analysis. Front ends see only the plain structs here; no struct of a lower layer appears.
 *
 * Threads: every function may be called from any thread; a snapshot is immutable. Results live in the arena the
 * caller passes and are valid until it is reset; they also borrow from the snapshot, which must be held as long.
 */
struct ses;
struct ses_snap;

enum ses_state {
	SES_IDENTIFYING, /* mapped and parsed, being hashed: listing by preview, symbols known */
	SES_ANALYSING,
	SES_READY,
	SES_FAILED,      /* see ses_error_text(); preview still works */
};

enum ses_cap { SES_CAP_READ = 1, SES_CAP_EDIT = 2, SES_CAP_RUN_CODE = 4, SES_CAP_RUN_TARGET = 8, SES_CAP_TRACE = 16,
	       SES_CAP_WRITE_FILES = 32, SES_CAP_NET = 64, SES_CAP_ALL = 127 };
/* The name of a capability in docs/ops.md ("run-code"), of its number (bit) from 0 on; null behind the last. */
const char *ses_cap_name(unsigned bit);
/* The capability of that name, 0: none has it. */
uint32_t ses_cap_find(const char *name);

/* How far a long operation is: written by its threads, read by whoever tells somebody. Zero-initialise. */
struct ses_meter {
	_Atomic(const char *) what; /* of what `done` counts: "functions"; static text, null while there is nothing to tell */
	atomic_uint_fast64_t done, total;
};

/* What one request may use, and who asks. Every operation looks at it at least every 1,024 steps. */
struct ses_call {
	uint64_t deadline_ns;      /* CLOCK_MONOTONIC, 0: none */
	const atomic_bool *cancel; /* may be null */
	uint64_t max_bytes;        /* of the answer, 0: none; cut at the edge of an item, with `next` */
	uint32_t caps;             /* enum ses_cap bits */
	bool may_consent;          /* a person at the command line asks: may agree to running the target */
	const char *author;        /* in whose name edits are made, whatever they say; null: as they say, else the login name */
	const char *author_kind;   /* "human", "agent", "script"; null: human */
	struct ses_meter *meter;   /* may be null */
	bool is_proposing;         /* its edits are proposals */
	uint64_t client;           /* who asks, for what goes on after the request (ses_stream.h); 0: nobody stays */
};

/* The operation begins `total` steps (0: unknown) of what is called so, and has done `cnt` more of them. Any thread. */
void ses_meter_begin(const struct ses_call *call, const char *what, uint64_t total);
void ses_meter_add(const struct ses_call *call, uint64_t cnt);

struct ses_progress {
	enum ses_state state;
	const char *stage;         /* "identifying", "functions", "references", ...; static text */
	uint64_t done, total;      /* of the stage; total 0: unknown */
	uint64_t func_cnt;         /* functions found so far */
};

struct ses_opts {
	unsigned threads;          /* 0: all cores */
	bool force;                /* analyse anew even when an image is there */
	bool no_store;             /* keep the image in memory only */
	bool background;           /* return at once and work in a thread; otherwise return when ready */
	bool may_connect;          /* a path may be the URL of a file of another machine (ses_remote.h), which is fetched before this returns */
	/* With may_connect, in the foreground: of a large file of another machine only what is looked at is fetched, and the session stays with the
	 * preview; ses_end_part() ends it. In the background such a file is shown while it comes, and analysed when all of it is here. */
	bool may_be_partial;
	/* Load options, stated in the journal as by op "load"; null: what is stated there, else what the file says. */
	const char *processor;     /* "x86-64", ... */
	const char *base;          /* an address in hex */
	const char *format;        /* "raw": nothing but bytes */
	const atomic_bool *cancel; /* may be null */
	void (*progress)(void *ctx, const struct ses_progress *p); /* foreground only, but for the stage "fetching"; may be null */
	void *progress_ctx;
};

/* The load options of an open session that has no journal to keep them, as they would be stated again; "" none. */
struct ses_asked { char processor[32], base[24], format[8]; };
void ses_get_asked(const struct ses *s, struct ses_asked *ret);
/* The i-th processor that load options can name, static; null behind the last. */
const char *ses_processor(uint32_t i);

/* Opens a target. Errors: bad_input, unsupported, denied, io ... with one line for people. The format is parsed before
 * it returns. Release with ses_close(), which waits for the worker (cancelling it). */
_must_use_ struct err *ses_open(const char *path, const struct ses_opts *opts, struct ses **ret);
void ses_close(struct ses *s);
/* Opens what the store knows of a target whose bytes are not to be had: names, references, comments; places read as
 * without bytes. `path` is only shown. Error not_found when the store has no analysis of it. ses_open() does so for a path of
 * "sha256:" and 64 hex digits. */
_must_use_ struct err *ses_open_absent(const char *path, const uint8_t sha256[32], const struct ses_opts *opts, struct ses **ret);
bool ses_is_absent(const struct ses *s);
/* The target's hash, once it is known. */
bool ses_get_sha256(const struct ses *s, uint8_t ret[32]);
/* Waits until the session is ready or has failed, or *stop; gives the state. */
enum ses_state ses_wait(struct ses *s, const atomic_bool *stop);

/* A descriptor that becomes readable when the state, the progress (at most every 50 ms) or the revision changed; read 8 bytes to
 * rearm (eventfd). Belongs to the session. */
int ses_event_fd(const struct ses *s);
void ses_get_progress(const struct ses *s, struct ses_progress *ret);
const char *ses_error_text(const struct ses *s);      /* of SES_FAILED; valid until close */
const char *ses_path(const struct ses *s);
const char *ses_local_path(const struct ses *s);      /* where its bytes are on this machine: of a URL another path */
/* Whether the file is not here as a whole; how many of its bytes are. */
bool ses_is_partial(const struct ses *s, uint64_t *ret_have_len);
/* Of a session that may be partial: nothing more is looked at. Error stale: the file there is not any more what was looked at. */
_must_use_ struct err *ses_end_part(struct ses *s);
const char *ses_store_note(const struct ses *s);      /* why nothing is kept on disk, or null; valid until close */
bool ses_target_changed(const struct ses *s);         /* the file on disk is no longer what was opened; one fstat */

/* The newest snapshot, a reference of the caller's; never null (before the first image it is a preview snapshot: lists
 * come from the file's tables, heads from decoding on the spot, rows are unknown). */
struct ses_snap *ses_snap_get(struct ses *s);
void ses_snap_put(struct ses_snap *sn);
uint64_t ses_snap_rev(const struct ses_snap *sn);
/* The session it was taken of. */
struct ses *ses_snap_session(const struct ses_snap *sn);
/* A newer analysis is on its way (or the first one): it has not seen every directive of its revision. */
bool ses_snap_is_pending(const struct ses_snap *sn);
bool ses_snap_is_preview(const struct ses_snap *sn);

/* Text in results: pointer and length, not NUL-terminated unless said; may hold any byte of the target's, already
 * NOT escaped: a front end escapes. s is never null. */
struct ses_text { const char *s; uint32_t len; };

/* --- the target ------------------------------------------------------------------------------------------ */

struct ses_info {
	struct ses_text file, sha256 /* "" while identifying */, format, arch, endian /* "little" */, type, build_id, interp;
	uint64_t size, entry, base, main_va; /* main_va: where to start looking */
	uint32_t bits;
	bool has_entry, is_stripped;
	uint64_t functions, instructions, strings, xrefs, problems;
	struct ses_text *needed;
	uint32_t needed_cnt;
};
_must_use_ struct err *ses_info(struct ses_snap *sn, struct arena *a, struct ses_info *ret);

struct ses_segment { struct ses_text name; uint64_t addr, size, file_off, file_size; char perm[4]; };
_must_use_ struct err *ses_segments(struct ses_snap *sn, struct arena *a, struct ses_segment **ret, uint32_t *ret_cnt);
_must_use_ struct err *ses_sections(struct ses_snap *sn, struct arena *a, struct ses_segment **ret, uint32_t *ret_cnt);

/* --- addresses and names ----------------------------------------------------------------------------------- */

/* Reads ADDR of docs/ops.md: 0x401136, hex without prefix when it cannot be a name, NAME, NAME+0x10, file:0x1000.
 * Errors: not_found, ambiguous (the text lists up to five), invalid. */
_must_use_ struct err *ses_resolve(struct ses_snap *sn, const char *text, uint64_t *ret_va);

/* The name to show for exactly this address: a symbol's, or a generated one (sub_401136, loc_40113f, str_402010, data_404040)
 * for starts of functions, blocks, strings and referenced data. "" when it deserves none. */
struct ses_text ses_name_at(struct ses_snap *sn, uint64_t va, struct arena *a);

/* "main+0x12", ".data+0x40", "" : where an address is, for status lines. */
struct ses_text ses_where(struct ses_snap *sn, uint64_t va, struct arena *a);
bool ses_is_mapped(struct ses_snap *sn, uint64_t va);
bool ses_va_to_file(struct ses_snap *sn, uint64_t va, uint64_t *ret_off);

/* --- the listing ------------------------------------------------------------------------------------------ */

enum ses_head_kind { SES_HEAD_CODE, SES_HEAD_DATA, SES_HEAD_STRING, SES_HEAD_ALIGN, SES_HEAD_UNKNOWN,
		     SES_HEAD_FUNC /* banner before a function */, SES_HEAD_LABEL /* a name on a line of its own */,
		     SES_HEAD_SEGMENT /* first line of a segment */,
		     SES_HEAD_COMMENT /* a line of somebody's block comment, before the item */,
		     SES_HEAD_MEMBER /* a member of typed data, after the item */ };

/* Kinds of token; the same numbers in JSON `spans` as [off, len, "kind"]. */
enum ses_span_kind { SES_SPAN_MNEMONIC, SES_SPAN_REG, SES_SPAN_IMM, SES_SPAN_ADDR, SES_SPAN_DISP, SES_SPAN_PUNCT,
		     SES_SPAN_SIZE, SES_SPAN_PREFIX, SES_SPAN_NAME, SES_SPAN_STRING, SES_SPAN_COMMENT, SES_SPAN_KIND_COUNT };
const char *ses_span_name(enum ses_span_kind k);
struct ses_span { uint16_t off, len; uint8_t kind, operand; };

struct ses_head {
	uint64_t va;
	uint64_t row;       /* UINT64_MAX in a preview */
	uint32_t sub;       /* 0: the item itself; banner and label lines before it have sub 1, 2, ..., after that the item is counted
			       as one, and lines of members behind it go on from there; their va is the member's */
	uint32_t size;      /* bytes of the item */
	uint8_t kind;       /* enum ses_head_kind */
	uint8_t has_target;
	uint16_t span_cnt;
	uint64_t target;    /* what Enter follows */
	const uint8_t *bytes; /* first bytes_len bytes of the item */
	uint32_t bytes_len;   /* at most 16 */
	struct ses_text text; /* UTF-8, printable, escaped already */
	const struct ses_span *spans;
	struct ses_text label;   /* the name at va, "" */
	struct ses_text comment; /* string or name behind a reference, source line, import; "" */
};

#define SES_SUB_ITEM UINT32_MAX

struct ses_at {
	uint64_t va;
	uint32_t sub;
	uint32_t count;  /* lines */
	bool back;
};

/*
 * `count` lines at `va` (the item that holds it), forward, or with `back` the `count` lines that end just before it.
 * A line (va, sub) anchors a view: pass the sub of the first wanted line as `sub`; 0 means the item's first line, SES_SUB_ITEM
 * (or anything beyond its lines) the item's own line, whose `sub` reads 0, or at an address inside typed data the line of the
 * member that is there.
 * Order is that of addresses over all segments. Cost is by the page. *ret_cnt may be less at an end.
 */
_must_use_ struct err *ses_heads(struct ses_snap *sn, const struct ses_call *call, const struct ses_at *at, struct arena *a,
				 struct ses_head **ret, uint32_t *ret_cnt);

uint64_t ses_row_cnt(struct ses_snap *sn);                       /* rows (items) of the whole target; 0 in a preview */
bool ses_row_of(struct ses_snap *sn, uint64_t va, uint64_t *ret_row);
bool ses_va_of_row(struct ses_snap *sn, uint64_t row, uint64_t *ret_va);

/* Up to `len` bytes at va as the program sees them; mapped[i] (may be null) tells which are (and are here, of a file that is coming).
 * Returns how many bytes of the
 * range are mapped. */
uint32_t ses_bytes(struct ses_snap *sn, uint64_t va, uint32_t len, uint8_t *out, bool *mapped);
/* The same without what was patched. */
uint32_t ses_original_bytes(struct ses_snap *sn, uint64_t va, uint32_t len, uint8_t *out, bool *mapped);

/* --- lists ------------------------------------------------------------------------------------------------- */

/* One page of a list. `filter` is a glob on the name (or a substring); `sort` a column name of the op, "-" before it for
 * descending, null: by address. */
struct ses_page {
	const char *filter;
	const char *sort;
	uint64_t offset;
	uint32_t limit;      /* 0: 1,000 */
	uint32_t min_len;    /* strings only: of at least so many bytes */
	/* Set by the query: */
	uint32_t cnt;        /* items given */
	uint64_t total;      /* items that match */
};

struct ses_func {
	uint32_t id;
	uint64_t addr, size;
	struct ses_text name, demangled /* "" */;
	uint32_t blocks, callers, callees;
	uint32_t flags;      /* enum ses_func_flag */
	const char *source;  /* "symbol", "unwind", ... */
};
enum ses_func_flag { SES_FN_THUNK = 1, SES_FN_NORETURN = 2, SES_FN_LIBRARY = 4, SES_FN_EXPORT = 8 };

/* Each list gives the page's items, their count, and the total that match. */
_must_use_ struct err *ses_functions(struct ses_snap *sn, const struct ses_call *call, struct ses_page *page, struct arena *a,
				struct ses_func **ret);
/* The function that owns va; false when none. */
bool ses_func_at(struct ses_snap *sn, uint64_t va, struct arena *a, struct ses_func *ret);

struct ses_string { uint64_t addr; uint32_t len; const char *encoding; struct ses_text text /* UTF-8, raw characters */; };
_must_use_ struct err *ses_strings(struct ses_snap *sn, const struct ses_call *call, struct ses_page *page, struct arena *a,
				struct ses_string **ret);

/* has_addr is false for a symbol that stands nowhere (undefined, absolute, thread-local). An import's address is its stub's, or
 * that of the made-up place that stands for it. kind: "func", "object", "tls", "notype", ... */
struct ses_import {
	bool has_addr;
	uint64_t addr, size;
	struct ses_text name, demangled, library, version;
	const char *kind;
};
_must_use_ struct err *ses_imports(struct ses_snap *sn, const struct ses_call *call, struct ses_page *page, struct arena *a,
				struct ses_import **ret);
_must_use_ struct err *ses_exports(struct ses_snap *sn, const struct ses_call *call, struct ses_page *page, struct arena *a,
				struct ses_import **ret);
_must_use_ struct err *ses_symbols(struct ses_snap *sn, const struct ses_call *call, struct ses_page *page, struct arena *a,
				struct ses_import **ret);

struct ses_problem { bool has_addr; uint64_t addr; struct ses_text what, why; const char *severity; };
_must_use_ struct err *ses_problems(struct ses_snap *sn, struct ses_page *page, struct arena *a, struct ses_problem **ret);

/* --- references and graphs ----------------------------------------------------------------------------------- */

struct ses_xref {
	uint64_t from, to;
	const char *kind;           /* "call" ... */
	bool has_func;
	uint64_t func_addr;         /* function that holds `from` (to-lists) or `to` (from-lists) */
	struct ses_text func, text; /* its name; the instruction or data line at `from` */
};
/* References to the item at va (to any byte of it), or from the item; from its whole function when `whole_func`. */
struct ses_xref_ask { uint64_t va; bool from, whole_func; };
_must_use_ struct err *ses_xrefs(struct ses_snap *sn, const struct ses_call *call, const struct ses_xref_ask *ask,
				 struct ses_page *page, struct arena *a, struct ses_xref **ret);

struct ses_edge { uint32_t id; uint64_t addr; const char *kind; /* "taken", "fall", "jump", "switch" */ };
struct ses_block { uint32_t id; uint64_t addr, end; struct ses_edge *succ; uint32_t succ_cnt; };
_must_use_ struct err *ses_blocks(struct ses_snap *sn, const struct ses_call *call, uint64_t func_va, struct arena *a,
				  struct ses_block **ret, uint32_t *ret_cnt);

struct ses_call_edge { uint64_t caller, callee; uint32_t count; struct ses_text caller_name, callee_name; };
/* Who calls whom and from how many places, by caller, then callee: of the whole target, or of what is within `depth`
 * calls of func_va (UINT64_MAX: the whole). */
struct ses_call_ask { uint64_t func_va; uint32_t depth; };
_must_use_ struct err *ses_callgraph(struct ses_snap *sn, const struct ses_call *call, const struct ses_call_ask *ask,
				     struct ses_page *page, struct arena *a, struct ses_call_edge **ret);

/* --- search -------------------------------------------------------------------------------------------------- */

enum ses_search_kind { SES_SEARCH_BYTES /* 'de ad ?? ef' */, SES_SEARCH_TEXT, SES_SEARCH_REGEX, SES_SEARCH_IMM, SES_SEARCH_INSN,
		       SES_SEARCH_C /* cprint/cprint_find.h has the patterns */ };
struct ses_hit {
	uint64_t addr;
	bool has_func;
	uint64_t func_addr;
	struct ses_text func, text;
	uint32_t line;       /* of the function's C, from 1; 0: it is no match in C */
};
struct ses_search_ask {
	enum ses_search_kind kind;
	const char *what;
	uint64_t from_va;    /* on from here, or before it when `back` (UINT64_MAX: from the end) */
	bool back;
	uint32_t skip;       /* in C: so many matches of the first function were given already */
	uint32_t limit;      /* hits; 0: 1,000 */
	/* Set by the query: */
	uint32_t cnt;        /* hits given */
	bool has_more;       /* go on at next_va */
	uint64_t next_va;
	uint32_t next_skip;
};
/* In C, hits are by function, then by line; one begins at from_va, or has it in it. */
_must_use_ struct err *ses_search(struct ses_snap *sn, const struct ses_call *call, struct ses_search_ask *ask, struct arena *a,
				  struct ses_hit **ret);

/* --- C ------------------------------------------------------------------------------------------------------- */

/* A line of the text, without its end, and the instructions it comes from: addrs[first_addr .. +addr_cnt), ascending. Lines of a
 * statement that goes on have those of its first; braces, labels and declarations have none. */
struct ses_c_line { uint32_t off, len, first_addr, addr_cnt; };
struct ses_c_place { uint64_t va; uint32_t line; };

/* A function as C. Lines are counted from 0. */
struct ses_c {
	uint64_t addr;         /* of the function */
	struct ses_text name, prototype, text;
	const char *level;     /* "L4": how far from the machine, docs/ops.md */
	const char *status;    /* "full"; "partial": `stops` says where it is not */
	struct ses_text stops; /* lines ended by newlines: an address, and why the C is not all of the function there */
	const char *verified;  /* "not_run", "equal", ...: what is known of this very C, and how much of it the inputs reached */
	uint32_t inputs, blocks, blocks_hit, edges, edges_hit;
	uint32_t insn_cnt, unlifted_cnt;
	struct ses_c_line *lines;
	uint32_t line_cnt;
	uint64_t *addrs;
	struct ses_c_place *places; /* by address, then line */
	uint32_t place_cnt;
	uint64_t *starts;      /* of its blocks, ascending */
	uint32_t start_cnt;
};

/* The function that holds va, with what people said about its addresses as comments. It is computed by the call. Errors:
 * not_found (in no function), unsupported (architecture), budget, cancelled, timeout, no memory. */
_must_use_ struct err *ses_decompile(struct ses_snap *sn, const struct ses_call *call, uint64_t va, struct arena *a, struct ses_c *ret);
/* Whether there is C of this target's processor. */
bool ses_can_decompile(struct ses_snap *sn);
/* The line where the statement of the instruction at va begins; of an instruction without one that of the next in its block, else
 * of the one before. */
uint32_t ses_c_line_at(const struct ses_c *c, uint64_t va);
/* The address a line stands for: its first instruction; of a line without one that of the next, of a closing brace the one before. */
uint64_t ses_c_addr_of(const struct ses_c *c, uint32_t line);

/* --- edits --------------------------------------------------------------------------------------------------- */

/*
 * What people and agents state about the target, kept in its journal (docs/store.md). An edit is confirmed once it is on
 * disk, which is when these return. Every reader shows what stands at its snapshot's revision.
 */
enum ses_edit_status { SES_EDIT_APPLIED, SES_EDIT_UNCHANGED, SES_EDIT_REFUSED };

/* What a define came to: where it ends, of how many instructions it is, why it ends there ("flow", "segment", "defined",
 * "undecodable", "limit"), and of a function how its end is known ("existed", "auto", "explicit-end"). */
struct ses_made {
	uint64_t end;         /* 0: none */
	uint32_t count;
	const char *stopped;  /* null: no code */
	const char *how;      /* null: no function */
};

struct ses_edit {
	const char *op;       /* "rename", "comment", "bookmark", "patch", ...: the journal's names */
	uint64_t addr;
	const char *sub;      /* of a comment: "line", "block", "repeatable", "func"; else "" */
	const char *value;    /* null: take it away; afterwards as the journal has it */
	size_t value_len;
	uint64_t proposal;    /* the proposal that it accepts, 0: none; of a proposing call afterwards its number */
	/* Set by ses_edit(): */
	struct ses_made made; /* of op "define" and "bounds" */
	enum ses_edit_status status;
	const char *before;   /* null: none */
	size_t before_len;
	const char *why;      /* of a refusal */
};

struct ses_edit_opts {
	bool is_atomic;       /* one refusal refuses all */
	bool is_dry_run;      /* says what would happen */
	bool is_proposal;     /* nothing is changed: what would be applied waits to be accepted */
	bool has_if_rev;      /* refuse with `stale` when something touched is newer than if_rev */
	uint64_t if_rev;
	const char *author;   /* null: the user's login name */
	const char *author_kind; /* "human", "agent", "script"; null: human */
	const char *note;     /* may be null */
};

/* One transaction, one revision, one undo step. Errors, and then nothing changed: stale, busy, readonly, io, invalid (an
 * op that is none). The session's newest snapshot shows the result afterwards; of a directive ("define", "bounds", "flags",
 * "jump_table", "load") when another analysis has seen it, which a session in the background begins at once: until then the
 * snapshot is pending. One in the foreground begins it with ses_refresh(). */
_must_use_ struct err *ses_edit(struct ses *s, struct ses_edit *edits, size_t cnt, const struct ses_edit_opts *opts, struct arena *a,
				uint64_t *ret_rev);

/* Edits that wait to be accepted: those of ses_edit_opts.is_proposal. */
struct ses_proposal {
	uint64_t id, call, time_ns, rev;   /* rev: that it was accepted as */
	const char *state;                 /* "open", "stale", "accepted", "refused" */
	const char *author, *author_kind, *note /* "" */, *op, *sub;
	bool has_addr, has_before, has_after;
	uint64_t addr;
	struct ses_text before, after;
};
struct ses_proposals_ask { bool has_decided; const char *author; uint64_t id, offset; uint32_t limit; };
_must_use_ struct err *ses_proposals(struct ses *s, const struct ses_proposals_ask *ask, struct arena *a, struct ses_proposal **ret,
				     uint32_t *ret_cnt, uint64_t *ret_total);
/* Refuses these. Accepting is ses_edit() with `proposal` set, in its author's name. */
_must_use_ struct err *ses_decline(struct ses *s, const uint64_t *ids, size_t cnt);

struct ses_undone { uint64_t rev, target, changes; const char *author, *note /* "" */; };
/* Takes back up to `steps` edits that stand, newest first (of `of_author` only, when not null); each is a revision. What was
 * done stays done when a later step is refused with `stale`. */
struct ses_undo_ask { bool is_redo; uint32_t steps; const char *of_author; uint64_t rev; /* not 0: undo of this one edit */ };
struct ses_undone_list { struct ses_undone *list; uint32_t cnt; uint64_t rev; };
_must_use_ struct err *ses_undo(struct ses *s, const struct ses_undo_ask *ask, const struct ses_edit_opts *opts, struct arena *a,
				struct ses_undone_list *ret);

struct ses_entry {
	uint64_t seq, rev, time_ns, undone_by, undoes; /* 0: none */
	const char *author, *author_kind, *op, *sub, *step, *note;
	bool has_addr;
	uint64_t addr;
	struct ses_text before, after;
	bool has_before, has_after;
	uint64_t cnt; /* journal entries it stands for */
};
struct ses_journal_ask { uint64_t since, first_seq; uint32_t limit; };
/* Entries of revisions after `since`, numbered from 1, oldest first. */
_must_use_ struct err *ses_journal(struct ses *s, const struct ses_journal_ask *ask, struct arena *a, struct ses_entry **ret,
				   uint32_t *ret_cnt, uint64_t *ret_total);

/* What is another at revision `until` than it was at `since`: each thing once, with what it was and what it is, by when it last changed.
 * Those from number `offset` on; *ret_total counts all. */
struct ses_changes_ask { uint64_t since, until, offset; uint32_t limit; };
_must_use_ struct err *ses_changes(struct ses *s, const struct ses_changes_ask *ask, struct arena *a, struct ses_entry **ret,
				   uint32_t *ret_cnt, uint64_t *ret_total);
/* Everything that stands, by address, kind and sub: `after`, and who stated it when. *ret_rev is the revision of it all. */
_must_use_ struct err *ses_stated(struct ses *s, struct arena *a, struct ses_entry **ret, size_t *ret_cnt, uint64_t *ret_rev);

/* The type of the data at va or, of a function or import, its prototype; text "" when none is known. */
struct ses_type_info { bool is_func; struct ses_text text; const char *source; /* "user", "dwarf", "builtin", "" */ };
void ses_type_at(struct ses_snap *sn, uint64_t va, struct arena *a, struct ses_type_info *ret);

/* How the number of an operand (or of a datum: 0) at va is written, and what else it could be; false when there is none. */
struct ses_formats {
	const char *now;          /* "hex", ..., "enum:NAME", "default" */
	const char *choices[9];   /* "default" first; enums are left out */
	uint32_t choice_cnt;
	uint64_t value;           /* the number */
};
bool ses_formats_at(struct ses_snap *sn, uint64_t va, unsigned operand, struct arena *a, struct ses_formats *ret);

#define SES_PATCH_MAX 65536 /* bytes of one patch */

/* A statement that stands, and the revision that made it. */
struct ses_fact { uint64_t addr; struct ses_text sub, value; uint64_t rev; };
/* All of one kind of edit (`op` as in struct ses_edit), by address; the filter is for value and sub. Error invalid: no such op. */
_must_use_ struct err *ses_facts(struct ses_snap *sn, const struct ses_call *call, const char *op, struct ses_page *page, struct arena *a,
				 struct ses_fact **ret);
/* The patch that the byte at va is shown by, its value in hex; false when the byte is the file's. */
bool ses_patch_at(struct ses_snap *sn, uint64_t va, struct ses_fact *ret);

/* Brings the session's newest snapshot to the newest revision of the journal and the newest image: somebody else may have edited
 * or analysed. Where that image has not seen every directive, analyses again, in the background where the session is. The
 * old snapshot stays as it is for who holds it. */
_must_use_ struct err *ses_refresh(struct ses *s);
/* A descriptor that becomes readable when somebody committed to the target's journal or published an analysis of it, this process
 * too; ses_watch_clear() rearms it, ses_refresh() takes the news. -1 while nothing of the target is in a store: ask again when
 * the session is ready. Belongs to the session; one thread uses both. */
int ses_watch_fd(struct ses *s);
void ses_watch_clear(struct ses *s);

/* What is wrong with the journal, a line each; empty when nothing is. */
struct buf;
_must_use_ struct err *ses_check_edits(struct ses *s, struct buf *ret);
/* Saves what can be read of a damaged journal into a new one and puts the damaged one aside; *ret_aside is its path. */
struct ses_salvaged { uint64_t entries, lost; const char *aside; };
_must_use_ struct err *ses_salvage(struct ses *s, struct arena *a, struct ses_salvaged *ret);

#endif
