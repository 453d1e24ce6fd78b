/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SES_TYPES_H
#define SESSION_SES_TYPES_H

#include "session/ses_int.h"
#include "types/types.h"
#include "types/types_system.h"

/* Declarations of the system's headers within each other. */
#define SES_TYPES_SYSTEM_DEPTH 32

/*
 * The C types of a target: what people declared (they come first), and below it, taken over only when somebody names them,
 * what else is known. One set serves all snapshots with the same declarations. It only ever grows, so a types_ref stays
 * good as long as the set; whoever uses `t` holds the lock, which one thread may take several times.
 */
struct ses_typeset {
	atomic_uint refs;
	pthread_mutex_t lock;
	struct types *t;
	struct ses_snap *sn;  /* whose holder of the lock asks; not a reference */
	uint64_t decl_hash;   /* of the declarations it was made from */
	struct from_image *from; /* ses_dwarf.c: what became of the image's types */
	/* What is being taken over from the system's headers, each for the one before it. */
	const struct types_system_row *system[SES_TYPES_SYSTEM_DEPTH];
	unsigned system_depth;
	size_t lost_cnt;      /* declarations that could not be read */
};

void ses_typeset_put(struct ses_typeset *ts);

/* The snapshot's set, made on first use, locked: release with ses_types_unlock(). Error unsupported when the processor's C
 * types are not known. */
_must_use_ struct err *ses_types_lock(struct ses_snap *sn, struct ses_typeset **ret);
void ses_types_unlock(struct ses_typeset **ts);
#define _cleanup_types_lock_ _cleanup_(ses_types_unlock)

/* A set of the caller's own, of all declarations but that of the key `without` (null: none). */
_must_use_ struct err *ses_types_new(struct ses_snap *sn, const char *without, struct ses_typeset **ret);

/* Gives a snapshot that nobody else has yet a set of its own which also knows the declarations among these edits. Those that cannot
 * be read, and all of them where the processor's C types are not known, are passed over. */
_must_use_ struct err *ses_types_foresee(struct ses_snap *sn, const struct edits_change *edits, size_t cnt);

/* Brings in what is known of the names in `text`, so that it can be parsed. */
void ses_types_know(struct ses_typeset *ts, const char *text, size_t len);

/* The same of one struct, union or enum. */
void ses_types_know_tag(struct ses_typeset *ts, const char *name, size_t len);

/* Type number `idx` of the image, complete where it can be; {0} when C has no word for it. */
struct types_ref ses_dwarf_type(struct ses_typeset *ts, uint32_t idx);

/* A type or prototype as somebody typed it, into the set. Errors as those of the parser. */
_must_use_ struct err *ses_types_parse(struct ses_typeset *ts, const char *text, size_t len, struct types_ref *ret);
_must_use_ struct err *ses_types_parse_proto(struct ses_typeset *ts, const char *text, size_t len, struct types_ref *ret,
					     const char **ret_name);

/* What was printed of a type, for a line: a body in it is left out. Borrows from `b`. */
struct ses_text ses_types_line(const struct buf *b);

/* Appends a C header that compiles by itself: what was declared, what typed data and prototypes use, and with `is_all` every type
 * of debug information. */
_must_use_ struct err *ses_types_header(struct ses_snap *sn, bool is_all, struct buf *ret);

/* --- header files (ses_header.c) --------------------------------------------------------------------------------- */

struct ses_header {
	const char *path;
	const char *target;            /* triple; null: the target's own machine */
	const char *const *folders;    /* to look for other headers in */
	const char *const *macros;     /* NAME or NAME=VALUE */
	size_t folder_cnt, macro_cnt;
};
/* What the preprocessor makes of it. Errors are invalid with file, line and reason; env when there is no compiler. */
_must_use_ struct err *ses_header_read(struct ses_snap *sn, const struct ses_header *h, struct arena *a, struct buf *ret);

/* The triple of the machine it is read for, in the arena; null when memory is out. */
const char *ses_header_triple(struct ses_snap *sn, const struct ses_header *h, struct arena *a);

/* --- typed data ------------------------------------------------------------------------------------------------ */

/* A stretch of data that has a type. Sorted by loc, none overlaps another. */
struct ses_typed {
	uint32_t loc, len;
	struct types_ref stated; /* of the snapshot's set; {0}: debug information says it */
	uint32_t image_type;
};
/* Its type, with as many bytes as it is long. */
struct types_ref ses_typed_ref(struct ses_typeset *ts, const struct ses_typed *t);
/* The snapshot's, made on first use; none on error. */
const struct ses_typed *ses_typed(struct ses_snap *sn, uint32_t *ret_cnt);
/* The one that covers loc, or null. O(log n). */
const struct ses_typed *ses_typed_at(struct ses_snap *sn, uint32_t loc);

/* "one.at.y" for a place inside typed data that has a name; the length, 0 when it is none. */
size_t ses_typed_name_put(struct ses_snap *sn, uint32_t loc, char *out, size_t cap);
/* How far a path (".at.y", "[3].x") leads into the typed data that begins at va; false when it leads nowhere. */
bool ses_typed_member(struct ses_snap *sn, uint64_t va, const char *path, size_t len, uint64_t *ret_off);

/* --- statements about types (ses_typing.c) ---------------------------------------------------------------------- */

/* The value of a retype or set_prototype as the journal keeps it: canonical C, in the arena; the text itself when it
 * cannot be read, which ses_typing_refuse() then says. */
_must_use_ struct err *ses_typing_canonical(struct ses_snap *sn, struct edits_change *c, struct arena *a);
/* Why a retype, set_prototype or format may not be made, or null. */
const char *ses_typing_refuse(struct ses_snap *sn, const struct edits_change *c, struct arena *a);

/* The prototype to show for the function, import or stub at va, with the name it has now; "" when none is known.
 * `*ret_source` (may be null): "user", "dwarf", "builtin" or "". */
struct ses_text ses_prototype_at(struct ses_snap *sn, uint64_t va, struct arena *a, const char **ret_source);
/* The prototype by the code of the function at va and of its callers, named sub_ADDR; "" when there is none. The first question looks at
 * the whole program. In the arena. */
struct ses_text ses_proto_recovered(struct ses_snap *sn, uint64_t va, struct arena *a);

struct dec_callee;
struct ir_sig;
/* What callers of the code at an address have to know of it; `ret` holds what the convention says. */
void ses_proto_callee(struct ses_snap *sn, uint64_t va, struct dec_callee *ret);
/* The signature its C has; false: it takes and leaves all in the state. */
bool ses_proto_sig(struct ses_snap *sn, uint64_t va, struct ir_sig *ret);
/* Which results, bits by location, DEC_LOC_WORDS, it leaves in the state beside the signature's; false: it is not known. */
bool ses_proto_leaves(struct ses_snap *sn, uint64_t va, uint64_t *ret);

/* Follows jumps of stubs from `*va`: the function a call of it ends in, UINT32_MAX: none of the file. */
uint32_t ses_proto_behind_thunks(const struct ses_snap *sn, uint64_t *va);
struct dec_proto;
struct ses_edge_row;
/* What the code of a function, by its number, says of how it is called; false: nothing. */
bool ses_proto_of(struct ses_snap *sn, uint32_t func, struct dec_proto *ret);
/* The first edge of a caller, by its location, in edges sorted by callers. */
uint64_t ses_proto_first_edge(const struct ses_edge_row *rows, uint64_t cnt, uint32_t caller);

/* ses_variadic.c: the signature of one call (dec_opts.call_sig), and whose result is a translation of which argument (dec_opts.translates). */
bool ses_variadic_sig(struct ses_snap *sn, uint64_t va, const uint64_t *args, unsigned known, struct ir_sig *ret);
int ses_variadic_translates(struct ses_snap *sn, uint64_t va);
/* Arguments a format takes, all in general registers; -1: not so. `is_scan`: of scanf. */
int ses_variadic_format_args(const char *format, bool is_scan);
/* The name, a C identifier that printed C may have for a variable, of argument `arg` of the function at va, or with -1 of its result. */
bool ses_word(struct ses_snap *sn, uint64_t va, int arg, char *out, size_t cap);

/* Per import, and last for any other, how many arguments in general registers its prototype has, 3 when there is none; in the arena,
 * null: no memory. */
const uint8_t *ses_proto_import_args(struct ses_snap *sn, struct arena *a);

#endif
