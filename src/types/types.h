/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TYPES_TYPES_H
#define TYPES_TYPES_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * C types in memory: a parser of C declarations as they leave the preprocessor, the layout the System V ABIs give them,
 * and printing them back. The text is hostile: recursion, sizes and steps are bounded, and every call either applies all
 * of its text or leaves the set exactly as it was.
 *
 * A set belongs to one target ABI. Everything is named by an index into the set: a `struct types_ref` is a type with
 * its qualifiers, a declaration is an index into the list of declarations. Indices stay valid until types_rewind() to
 * a mark before them; pointers that a function gives into the set stay valid until the next call that is not const.
 * Strings of names live as long as the name does in the set. One thread at a time; const calls may run in parallel.
 */
enum types_abi {
	TYPES_X86_64, /* LP64, System V AMD64 */
	TYPES_I386,   /* ILP32, System V i386: 8-byte scalars align to 4 in structs, long double has 12 bytes */
	TYPES_A64,    /* LP64, AAPCS64: plain char is unsigned, long double is IEEE quad */
	TYPES_ABI_COUNT
};

/* Limits of one set. Past any of them the call fails with ERR_BUDGET. */
#define TYPES_TEXT_MAX ((size_t)64 << 20)    /* bytes of one text */
#define TYPES_RECORD_MAX ((size_t)1 << 22)   /* types, members, parameters, constants, declarations, names: each */
#define TYPES_DEPTH_MAX 256                  /* pointers, arrays, functions and typedefs on top of each other */
#define TYPES_NEST_MAX 128                   /* parentheses, braces and operators within each other in the text */
#define TYPES_LEN_MAX ((uint64_t)1 << 56)    /* bytes of one type */
#define TYPES_ALIGN_MAX ((uint32_t)1 << 28)

enum types_kind {
	TYPES_NONE,    /* no type: index 0 */
	TYPES_VOID,
	TYPES_INT,     /* all integers, _Bool and the kinds of char: `base` tells */
	TYPES_FLOAT,
	TYPES_COMPLEX, /* `target`: the part */
	TYPES_VALIST,  /* __builtin_va_list */
	TYPES_POINTER, /* `target` */
	TYPES_ARRAY,   /* `target`, `cnt`; TYPES_F_OPEN: [] */
	TYPES_VECTOR,  /* `target`, `cnt`: vector_size */
	TYPES_FUNC,    /* `target`: the result; parameters */
	TYPES_STRUCT,  /* members */
	TYPES_UNION,
	TYPES_ENUM,    /* `target`: the integer behind it; constants */
	TYPES_TYPEDEF, /* `target`; `real`: the same without any typedef */
	TYPES_KIND_COUNT
};

/* The basic types. Integers come in ascending rank, signed before unsigned. */
enum types_base {
	TYPES_B_BOOL, TYPES_B_CHAR, TYPES_B_SCHAR, TYPES_B_UCHAR, TYPES_B_SHORT, TYPES_B_USHORT, TYPES_B_INT, TYPES_B_UINT,
	TYPES_B_LONG, TYPES_B_ULONG, TYPES_B_LLONG, TYPES_B_ULLONG, TYPES_B_INT128, TYPES_B_UINT128,
	TYPES_B_FLOAT16, TYPES_B_FLOAT, TYPES_B_DOUBLE, TYPES_B_LDOUBLE, TYPES_B_FLOAT32, TYPES_B_FLOAT64, TYPES_B_FLOAT32X,
	TYPES_B_FLOAT64X, TYPES_B_FLOAT128, TYPES_B_FLOAT80, TYPES_B_DEC32, TYPES_B_DEC64, TYPES_B_DEC128,
	TYPES_B_VOID, TYPES_B_VALIST,
	TYPES_B_COUNT
};

enum types_qual {
	TYPES_CONST = 1,
	TYPES_VOLATILE = 2,
	TYPES_RESTRICT = 4,
	TYPES_ATOMIC = 8,
};

/* A type with qualifiers. {0} is none. */
struct types_ref {
	uint32_t id;
	uint32_t quals; /* enum types_qual */
};

enum types_flag {
	TYPES_F_COMPLETE = 1,       /* has a size (struct, union, enum, array, ...) */
	TYPES_F_OPEN = 2,           /* array without a count: incomplete, or a flexible member */
	TYPES_F_PACKED = 4,         /* struct, union, enum: the attribute, for all members */
	TYPES_F_VARIADIC = 8,       /* function: ends in ... */
	TYPES_F_NOPROTO = 16,       /* function: () says nothing of the parameters */
	TYPES_F_NORETURN = 32,
	TYPES_F_MAY_ALIAS = 64,     /* typedef, struct, union */
	TYPES_F_TRANSPARENT = 128,  /* union: transparent_union */
	TYPES_F_STDCALL = 256,      /* function: calling conventions; none: the ABI's own */
	TYPES_F_FASTCALL = 512,
	TYPES_F_MS_ABI = 1024,
	TYPES_F_SYSV_ABI = 2048,
	TYPES_F_CONVENTIONS = 256 | 512 | 1024 | 2048,
};

struct types_type {
	enum types_kind kind;
	enum types_base base;     /* TYPES_VOID, _INT, _FLOAT, _VALIST */
	uint32_t flags;           /* enum types_flag */
	uint32_t align;           /* as a member; 0 when incomplete; typedef: what `aligned` made of it, 0: the type's own */
	uint32_t user_align;      /* of the attribute `aligned`; 0: none */
	uint32_t depth;           /* of what it is built of; at most TYPES_DEPTH_MAX */
	uint64_t len;             /* bytes; 0 when incomplete, for functions and void */
	uint64_t cnt;             /* array, vector: elements */
	struct types_ref target;
	struct types_ref real;    /* typedef: without typedefs, qualifiers put together */
	uint32_t first, sub_cnt;  /* members, parameters, constants: use the functions below */
	uint32_t pack;            /* struct: #pragma pack that cannot be said by attributes of its members; or 0 */
	uint32_t alias;           /* struct, union, enum without tag: the typedef that names it, or 0 */
	const char *name;         /* tag, or the typedef's name; null */
};

struct types_member {
	const char *name;         /* null: unnamed bit-field, or anonymous struct or union */
	struct types_ref type;
	uint64_t off;             /* bytes from the start; for bit-fields of the byte with its first bit */
	uint32_t bit_off;         /* bit-field: bits from the start of that byte, 0..7 */
	uint32_t bit_len;         /* bit-field: width, which may be 0 */
	uint32_t user_align;      /* attribute `aligned` of the member; 0: none */
	bool is_bitfield;
	bool is_packed;           /* attribute `packed` of the member, or what #pragma pack comes to */
};

struct types_param {
	const char *name;         /* null: none given */
	struct types_ref type;    /* arrays and functions have become pointers */
};

struct types_const {
	const char *name;
	int64_t value;            /* to be read as uint64_t when `is_unsigned` */
	bool is_unsigned;         /* only for values above INT64_MAX */
};

enum types_decl_kind { TYPES_D_TAG, TYPES_D_TYPEDEF, TYPES_D_FUNC, TYPES_D_VAR, TYPES_D_CONST };

/* One name of the set. Tags and other names are two name spaces. */
struct types_decl {
	enum types_decl_kind kind;
	bool is_builtin;          /* came with the set (uint32_t, size_t, _DWORD, ...); text may declare it anew */
	bool is_static;
	uint32_t order;           /* rises with each declaration or completion: sort by it to print a header */
	struct types_ref type;    /* tag: the struct; typedef: the typedef; constant: its enum */
	const char *name;
	const char *asm_name;     /* of asm("name"); null */
	struct types_const value; /* constant */
	uint32_t prev;            /* the set's own */
};

struct types;

/* A new set, which knows the basic types and, as builtins, the usual names (stdint.h's, size_t, bool, u8, _DWORD, ...).
 * Null when out of memory. types_free() accepts null. */
_must_use_ struct types *types_new(enum types_abi abi);
void types_free(struct types *t);
enum types_abi types_abi_of(const struct types *t);

/* Where a text failed. */
struct types_place {
	char file[256]; /* of the last line marker, cut to fit; "" when there was none */
	uint32_t line;  /* from 1, as line markers count */
	uint32_t col;   /* byte in the line, from 1 */
};

/*
 * Parses declarations and adds them: what leaves `cc -E`, or what a person typed (comments are fine; other preprocessor
 * lines than line markers and pragmas are not). Bodies of functions and initialisers are skipped by their brackets.
 * Declaring the same thing again is no error. Errors are ERR_INVALID "FILE:LINE:COL: reason" (ERR_BUDGET past a limit)
 * with the place in `ret_place` (may be null, written on failure only); the set is then as before, in memory too.
 */
_must_use_ struct err *types_parse(struct types *t, const char *text, size_t len, struct types_place *ret_place);

/* What another compiler made of a text (types_clang.h): of each record and enum, found by the offset in the text of its keyword
 * (`struct`, `union`, `enum`). Sorted by it. Not to be trusted. */
struct types_said {
	uint32_t at;
	uint32_t align;           /* bytes */
	uint64_t len;             /* bytes */
	uint32_t first, cnt;      /* values: places of all its members in bits, unnamed ones too; of an enum its constants */
};
struct types_says {
	struct types_said *list;
	size_t cnt;
	int64_t *values;
};
void types_says_fini(struct types_says *s);
/* What was said of the one at that offset, or null. `s` may be null. */
const struct types_said *types_says_at(const struct types_says *s, uint64_t at);

/* How that compares with the rules of types_layout.c. */
struct types_differing {
	struct types_ref type;
	uint64_t len, own_len;    /* bytes: as was said, and by our rules */
	bool is_taken;            /* else there is no C that says it, and our layout stayed */
};
struct types_judged {
	struct types_differing *list;
	size_t cnt;
	size_t compared_cnt;      /* how many something was said of */
};
void types_judged_fini(struct types_judged *j);

/* types_parse(), where `says` says more of the same text. A record that lies otherwise than by our rules is taken over, told in C that
 * gives every compiler that layout: `packed`, `aligned`, members _gap_HEX. Constants of enums are taken over too. `ret` is to be given
 * to types_judged_fini(), also after an error. */
_must_use_ struct err *types_parse_said(struct types *t, const char *text, size_t len, struct types_place *ret_place,
					const struct types_says *says, struct types_judged *ret);

/*
 * Parses texts whose order is not known, each of them all or nothing: what failed is tried again until a round takes none.
 * ret_why[i] is null when the text was taken, else why not (owned). Cost: all texts once for each level of what needs what.
 */
struct types_text {
	const char *text;
	size_t len;
};
_must_use_ struct err *types_parse_unordered(struct types *t, const struct types_text *list, size_t cnt, struct err **ret_why);

/* Parses one type name: "char *[4]", "struct x const *", also with a name: "unsigned long flags". */
_must_use_ struct err *types_parse_type(struct types *t, const char *text, size_t len, struct types_place *ret_place,
					struct types_ref *ret);

/* Parses one function declarator, `;` or not: "int f(struct x *, ...)". `*ret_name` may be null when it has none:
 * "int (int, char *)". The name is not declared. A typedef of a function type is fine too. */
_must_use_ struct err *types_parse_prototype(struct types *t, const char *text, size_t len, struct types_place *ret_place,
					     struct types_ref *ret, const char **ret_name);

/* A state to go back to: types_rewind() takes back everything that was added or completed since. Marks nest. */
struct types_mark {
	uint32_t type_cnt, member_cnt, param_cnt, const_cnt, decl_cnt, name_cnt, saved_cnt, order;
};
struct types_mark types_mark(const struct types *t);
void types_rewind(struct types *t, const struct types_mark *mark);

/* The next declaration after index `after` (0: the first) that was made, completed or made to say more since the mark; 0: no
 * more. Constants are left out, their enum has them; one without tag and typedef stands as its first constant. */
uint32_t types_next_changed(const struct types *t, const struct types_mark *since, uint32_t after);

/* The record of a type; never null for an id of this set. */
const struct types_type *types_get(const struct types *t, uint32_t id);
/* The type without typedefs, with all qualifiers on the way. */
struct types_ref types_real(const struct types *t, struct types_ref r);

const struct types_member *types_members(const struct types *t, uint32_t id, uint32_t *ret_cnt);
const struct types_param *types_params(const struct types *t, uint32_t id, uint32_t *ret_cnt);
const struct types_const *types_consts(const struct types *t, uint32_t id, uint32_t *ret_cnt);

/* Size and alignment (of a member of that type) in bytes; false when the type is incomplete or a function. */
bool types_layout(const struct types *t, struct types_ref r, uint64_t *ret_len, uint32_t *ret_align);
/* An integer type's signedness; false for others. */
bool types_is_signed(const struct types *t, struct types_ref r);

/* Declarations: indices 1..types_decl_cnt()-1, in the order of their first mention; builtins first. */
uint32_t types_decl_cnt(const struct types *t);
const struct types_decl *types_decl_get(const struct types *t, uint32_t idx);
/* The declaration of that name, or 0. A name of `tags` is a struct, union or enum tag. */
uint32_t types_find(const struct types *t, const char *name, size_t len, bool tags);

/* What a path like "a.b[3].c" reaches in a type: `.` and `[n]` as in C, names of anonymous members seen through. */
struct types_at {
	struct types_ref type;
	uint64_t off;     /* bytes from the start of the outer type */
	bool is_bitfield;
	uint32_t bit_off; /* as in struct types_member */
	uint32_t bit_len;
};
/* Errors: not_found (no such member), invalid (the path, an index past the end, a member of what has none). */
_must_use_ struct err *types_path(const struct types *t, struct types_ref r, const char *path, size_t len,
				  struct types_at *ret);

/*
 * The reverse: appends the path of the innermost thing that covers byte `off` of `r` to `ret` (".a.b[3]") and gives its
 * place. Of overlapping things (unions, bit-fields of one byte) the first one that fits. Padding gives the struct it lies
 * in, or when that is anonymous the one around it; false when `off` is past the end.
 */
bool types_path_of(const struct types *t, struct types_ref r, uint64_t off, struct buf *ret, struct types_at *ret_at);

/*
 * Whether two types are the same to C: typedefs seen through, qualifiers equal, tagged types by tag, untagged ones by
 * their members. types_compatible() lets C's slack in: open arrays, () and an enum with its integer.
 * types_same_across() compares types of two sets, and tagged types by their members too where both are complete.
 * False as well when the comparison takes more than 100,000 steps.
 */
bool types_same(const struct types *t, struct types_ref a, struct types_ref b);
bool types_compatible(const struct types *t, struct types_ref a, struct types_ref b);
bool types_same_across(const struct types *t, struct types_ref a, const struct types *u, struct types_ref b);

/* --- building ------------------------------------------------------------------------------------------------------- */

/* From now on everything that is declared is a builtin: text may declare it anew, and a body then makes a type of its own.
 * Within the text of such declarations themselves the rules of C hold. */
void types_set_builtin(struct types *t, bool on);
bool types_is_builtin(const struct types *t);

/* Types from records. {0} when a limit is met, memory is out or C has no such type; the set is good as it was then. Names are
 * copied; one that is a keyword counts as none. */
struct types_ref types_build_base(struct types *t, enum types_base b);
struct types_ref types_build_pointer(struct types *t, struct types_ref target);
struct types_ref types_build_array(struct types *t, struct types_ref elem, uint64_t cnt, bool is_open);
struct types_ref types_build_vector(struct types *t, struct types_ref elem, uint64_t len); /* len: bytes */
struct types_ref types_build_func(struct types *t, struct types_ref result, const struct types_param *params, uint32_t cnt, uint32_t flags);
/* A struct, union or enum, still incomplete; `len` 0: without a tag. */
struct types_ref types_build_tag(struct types *t, enum types_kind kind, const char *name, size_t len);
struct types_ref types_build_typedef(struct types *t, const char *name, size_t len, struct types_ref target);
/* A constant whose name something else has gets a number behind it. */
bool types_build_enum(struct types *t, struct types_ref r, const struct types_const *consts, uint32_t cnt, uint32_t len, bool is_signed);
/* A name in the set's memory, for members; null for none. */
const char *types_build_name(struct types *t, const char *name, size_t len);

/*
 * Completes a struct or union whose members' places (`off`, of bit-fields `bit_off` too) and length in bytes are given, and says
 * what it took to say that in C: nothing or `aligned`; `packed`, with members named _gap_HEX where nothing is; or, where
 * members overlap in a way that C cannot say, one array _bytes. Members' types must be complete, in the order of their places.
 */
enum types_built { TYPES_BUILT_NOT, TYPES_BUILT_PLAIN, TYPES_BUILT_PACKED, TYPES_BUILT_BYTES };
enum types_built types_build_struct(struct types *t, struct types_ref r, const struct types_member *members, uint32_t cnt, uint64_t len,
				    uint32_t align);

/*
 * Printing. What is printed parses to the same type again. All append to `ret`; test `failed` at the end. Text is cut
 * nowhere; memory is the only limit, and what is printed is at most a small multiple of what was parsed.
 */
/* A declarator: ("name", int (*[4])(char)) is "int (*name[4])(char)"; `name` null or "" prints a type name. */
void types_print(const struct types *t, struct types_ref r, const char *name, struct buf *ret);
/* A declaration with its semicolon and line end: a struct with members, an enum with constants, a typedef, a prototype,
 * a variable (extern). A constant prints its enum. */
void types_print_decl(const struct types *t, uint32_t idx, struct buf *ret);
/* All declarations that are not builtins, in an order that parses: a header. */
void types_print_all(const struct types *t, struct buf *ret);
/* The declarations chosen and all they need, builtins too, in an order that C takes: a header that compiles by itself. */
void types_print_header(const struct types *t, const uint32_t *decls, uint32_t cnt, struct buf *ret);

#endif
