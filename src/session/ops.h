/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_OPS_H
#define SESSION_OPS_H

#include "base/buf.h"
#include "base/json.h"
#include "session/ops_doc.h"
#include "session/session.h"

/*
 * The operation table: each operation of docs/ops.md once, with its name, parameters, capability, help, columns and
 * handler. The command line, the manual page and the shell completions (later RPC, MCP and Python) are made from it.
 * To add one: a handler in ops_*.c, its line in ops_table.c, its row in docs/ops.md, a golden case.
 */
enum ops_param_type { OPS_FLAG, OPS_STRING, OPS_INT, OPS_ADDR, OPS_FUNC, OPS_CHOICE,
		      OPS_PATH /* of a file that is read */,
		      OPS_JSON /* a JSON document: the path of its file, or the document itself where a front end can hold one */ };

struct ops_param {
	const char *name;      /* "max_bytes"; on the command line --max-bytes, or positional when is_positional */
	enum ops_param_type type;
	bool is_positional, is_required, is_repeated;
	const char *alias;     /* "limit", or null */
	const char *choices;   /* for OPS_CHOICE: "a|b|c" */
	const char *value;     /* what stands for the value in help: "N", "GLOB" */
	const char *help;
	char letter;           /* 'o': also spelled -o; 0 none */
	bool is_served;        /* the command line has it not */
};

#define OPS_PARAM_MAX 32

/* A parsed value; `text` is what was written, borrowed. Repeated parameters collect in texts. */
struct ops_value {
	bool is_set;
	const char *text;
	uint64_t num;          /* OPS_INT */
	const char **texts;    /* is_repeated; in the arena */
	size_t text_cnt;
	const struct ops_doc *doc; /* OPS_JSON given as a document; `text` is a name for it */
};

struct ops_op;
struct ops_cols;

struct ops_args {
	const struct ops_op *op;
	struct arena *arena;
	struct ops_value values[OPS_PARAM_MAX]; /* parallel to the op's params */
};

enum ops_shape { OPS_OBJECT, OPS_LIST, OPS_TEXT };

/* A column of the table for people: the key of the JSON item, its title ("" none), 'l' or 'r'. */
struct ops_column { const char *key; const char *title; char align; };

#define OPS_ETAG_MAX 56

/*
 * Where a handler writes its answer. It says each fact once, by key; what becomes of it is decided here: one JSON
 * document (the RPC `result`), or a table for people with the columns of the operation. Keys are literals of ours.
 */
struct ops_out {
	struct buf *buf;       /* the answer */
	struct ops_cols *cols; /* not null, and !is_json: a list goes there instead (session/ops_cols.h), borrowed */
	bool is_json;
	bool has_color;        /* tables only */
	struct json json;
	const struct ops_op *op;
	uint64_t max_bytes;    /* 0: none */
	/* Table rows: cell texts one behind the other, their lengths row by row. */
	struct buf cells;
	struct buf cell_lens;  /* uint32_t each, column_cnt a row */
	struct buf row_texts[16];
	uint64_t item_cnt, total;
	bool has_more;         /* a further page exists: `next` */
	char next[96];
	char etag[OPS_ETAG_MAX]; /* "" none */
	uint64_t tag_hash;     /* of what the etag depends on besides edits */
	size_t etag_at;        /* of a page of the listing: where in `buf` its etag goes when it is known */
	uint64_t page_first, page_last; /* addresses of its items, first > last: none yet */
	struct err *status;    /* what the answer as a whole comes to, when it is an answer all the same; owned */
};

/* One call of an operation. */
struct ops_req {
	struct ses_snap *sn;         /* null where the operation takes no target */
	const struct ses_call *call;
	const struct ops_args *args;
	struct arena *arena;
	struct ops_out *out;
	struct ses_project *project; /* that the target is a binary of, or null */
	uint32_t binary;             /* which one */
	bool no_store;               /* of the sessions an operation opens itself */
	/* Takes what a snippet prints as it comes; null: it goes into the answer. */
	void (*stream)(void *ctx, bool is_err, const char *s, size_t len);
	void *stream_ctx;
};

struct ops_op {
	const char *name;
	uint32_t cap;          /* enum ses_cap */
	enum ops_shape shape;
	bool needs_target;     /* takes FILE */
	bool is_raw;           /* may write text or bytes of its own form: --raw, --dot, --svg */
	const char *help;      /* one line */
	const struct ops_param *params;
	const struct ops_column *columns;
	struct err *(*run)(struct ops_req *rq);
	const char *details;   /* more for the manual page and `scry help OP`, or null */
	bool is_command;       /* the command line runs it itself: here for its words and help, and `run` is nobody's... */
	bool is_served;        /* ...but of servers and modules, which ops_is_served() asks */
};

/* Whether it can be answered from a part of a file that is still on its way: what the file's tables say, bytes, the listing as its
 * preview is. */
bool ops_is_of_part(const struct ops_op *op);

/* Runs the operation: capabilities, the target's identity before and after, the etag, the handler. The answer is in
 * rq->out->buf, which holds nothing of it when there is an error other than of kind bad_input. */
_must_use_ struct err *ops_run(struct ops_req *rq);

/* The etag the answer will have, where that says all it depends on, `rev` included: one that had it before can be given again. False
 * for the rest: pages of the listing, what is pending, what looks at more than the target and its journal, what is to be made afresh. */
bool ops_etag_of(const struct ops_req *rq, char ret[OPS_ETAG_MAX]);
/* Whether there is one for any answer of this operation. */
bool ops_etag_is_whole(const struct ops_op *op);

/* Runs a list or an edit and gives its table: the op's columns row by row, as text that is safe to show. `pairs`: names and values of
 * parameters, ended by null. A refusal is an error. Everything is in the arena. */
struct ops_rows { const struct ses_text *cells; uint32_t row_cnt, column_cnt; uint64_t total; };
_must_use_ struct err *ops_call(struct ses_snap *sn, const struct ses_call *call, const char *name, const char *const *pairs,
				struct arena *a, struct ops_rows *ret);

static inline bool ops_is_served(const struct ops_op *op)
{
	return !op->is_command || op->is_served;
}

const struct ops_op *ops_table(size_t *ret_cnt);
const struct ops_op *ops_find(const char *name);
/* The name in the table nearest to `word` by edit distance, null when none is near. */
const char *ops_nearest(const char *word);

/* --- parameters ------------------------------------------------------------------------------------------ */

size_t ops_param_cnt(const struct ops_op *op);
size_t ops_column_cnt(const struct ops_op *op);
/* By name or alias; '-' and '_' are the same. Null when the op has none such. */
const struct ops_param *ops_param_find(const struct ops_op *op, const char *name, size_t len);
/* The n-th positional parameter (the last one again when it is repeated), or null. */
const struct ops_param *ops_param_at(const struct ops_op *op, size_t n);

void ops_args_init(struct ops_args *a, const struct ops_op *op, struct arena *arena);
/* Checks `text` against the type and keeps it. Error invalid. Flags take null. */
_must_use_ struct err *ops_args_set(struct ops_args *a, const struct ops_param *p, const char *text);
/* The same for a parameter of type OPS_JSON given as the document itself, which is borrowed. */
_must_use_ struct err *ops_args_set_doc(struct ops_args *a, const struct ops_param *p, const struct ops_doc *doc);
/* Error invalid when a required one is missing. */
_must_use_ struct err *ops_args_check(const struct ops_args *a);

bool ops_arg_is_set(const struct ops_args *a, const char *name);
const char *ops_arg_str(const struct ops_args *a, const char *name); /* null when not set */
/* The values of a repeated parameter, *ret_cnt of them. */
const char *const *ops_arg_texts(const struct ops_args *a, const char *name, size_t *ret_cnt);
/* The document of an OPS_JSON parameter, read from its file unless it was given. Errors as ops_doc_read(). */
_must_use_ struct err *ops_arg_doc(const struct ops_req *rq, const char *name, struct ops_doc *ret);
uint64_t ops_arg_u64(const struct ops_args *a, const char *name, uint64_t otherwise);

/* --- answers --------------------------------------------------------------------------------------------- */

void ops_out_init(struct ops_out *o, const struct ops_op *op, struct buf *buf, bool is_json);
void ops_out_fini(struct ops_out *o);

/* A list: begin, items, end. `total` of UINT64_MAX is left out. */
void ops_out_list(struct ops_out *o, struct ses_snap *sn);
void ops_out_end_list(struct ops_out *o, uint64_t total);
/* An item of a list, or the object of OPS_OBJECT. False: the byte budget is spent, the item was not begun and
 * the handler sets `next` and stops. */
bool ops_out_item(struct ops_out *o);
void ops_out_end_item(struct ops_out *o);

void ops_out_str(struct ops_out *o, const char *key, const char *s, size_t len);
void ops_out_cstr(struct ops_out *o, const char *key, const char *s);
void ops_out_text(struct ops_out *o, const char *key, struct ses_text t);
void ops_out_u64(struct ops_out *o, const char *key, uint64_t v);
void ops_out_addr(struct ops_out *o, const char *key, uint64_t va);
void ops_out_bool(struct ops_out *o, const char *key, bool v);
void ops_out_null(struct ops_out *o, const char *key);
/* A list of short words: ["thunk","noreturn"]; in a table separated by spaces. */
void ops_out_words(struct ops_out *o, const char *key, const char *const *words, size_t cnt);

/* Text of the target made safe to show: control bytes and bytes that are not UTF-8 become \xNN or \n escapes. */
void ops_escape(struct buf *out, const char *s, size_t len);

/*
 * Says the error on stderr, made safe to show and in one write: "scry: WHAT: text" (without WHAT when it is NULL), then what to do about it.
 * Consumes e. Returns the exit status for it (docs/ops.md): that of its kind, but 4 for a file one may not read, which is a missing privilege and not
 * a refusal of scry's.
 */
int ops_fail(struct err *e, const char *what);

/* Cells a terminal gives the text (UTF-8): wide characters count two. */
uint32_t ops_text_width(const char *s, size_t len);

/* --- what a front end adds --- */

/* Rows of `scry doctor` and a section of the manual page about the front end itself. Set once, before anything runs. */
struct ops_front {
	void (*doctor)(struct ops_req *rq);
	void (*man)(struct buf *out); /* roff, from a .SH on */
};
void ops_set_front(const struct ops_front *f);
const struct ops_front *ops_get_front(void);
/* A row of `scry doctor`: `e` (taken) is what is wrong and what to do, null: `fine`. */
void ops_doctor_row(struct ops_req *rq, const char *what, struct err *e, const char *fine);

/* What runs snippets (src/exec), without which `exec` is unsupported. Set once, before anything runs. */
void ops_set_exec(struct err *(*run)(struct ops_req *rq));

/* --- generators ------------------------------------------------------------------------------------------ */

void ops_write_man(struct buf *out);                                 /* roff */
void ops_write_usage(struct buf *out);                               /* `scry help` */
void ops_write_op_help(struct buf *out, const struct ops_op *op);    /* `scry help OP` */
_must_use_ struct err *ops_write_completion(struct buf *out, const char *shell);

#endif
