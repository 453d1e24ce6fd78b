/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TYPES_TYPES_INT_H
#define TYPES_TYPES_INT_H

#include "base/map.h"
#include "base/vec.h"
#include "types/types.h"

/* Inside of the set and the parser. */

struct types_name {
	char *s;          /* owned */
	uint32_t len;
	uint32_t kw;      /* enum types_kw; 0: an identifier */
	uint32_t tag;     /* declaration in the name space of tags; 0: none */
	uint32_t ident;   /* declaration among the other names */
};

/* What a type or declaration was before this set changed it; newest last. */
struct types_saved {
	bool is_decl;
	uint32_t idx;
	struct types_type type;
	struct types_decl decl;
};

struct types_base_row {
	uint8_t len, align, pref_align;
	bool is_signed;
};

struct types_abi_row {
	struct types_base_row base[TYPES_B_COUNT];
	bool has_anon_align;  /* unnamed bit-fields count for the alignment of their struct */
	uint8_t ptr_len;
	enum types_base size_type, ptrdiff_type, wchar_type;
};

struct types {
	enum types_abi abi;
	const struct types_abi_row *row;
	VEC(struct types_name) names;
	/*
	 * Open addressing over ids of names. Slots are filled in the order of ids, also when it grows, so that the newest
	 * name can always be taken out by clearing its slot.
	 */
	uint32_t *slots;
	size_t slot_cap;
	VEC(struct types_type) types;
	VEC(struct types_member) members;
	VEC(struct types_param) params;
	VEC(struct types_const) consts;
	VEC(struct types_decl) decls;
	VEC(struct types_saved) saved;
	uint32_t base_id[TYPES_B_COUNT];
	uint32_t order;
	bool is_builtin;      /* types_set_builtin() */
	bool is_full;         /* a limit was met or memory ran out; the parser turns it into an error */
};

/* The id of a name, made when new; 0 and `is_full` when that failed. */
uint32_t types_intern(struct types *t, const char *s, size_t len);
uint32_t types_name_find(const struct types *t, const char *s, size_t len);
/* Adds a record; 0 and `is_full` when that failed. */
uint32_t types_add(struct types *t, const struct types_type *rec);
uint32_t types_decl_add(struct types *t, const struct types_decl *d, uint32_t name);
/* Saves what is about to be changed; then gives it for writing. Null when out of memory. */
struct types_type *types_change(struct types *t, uint32_t id);
struct types_decl *types_decl_change(struct types *t, uint32_t idx);

/* Builders; {0} on failure, with `is_full`, or when the result has no layout (too long: `*why` says so). */
struct types_ref types_pointer(struct types *t, struct types_ref target);
struct types_ref types_array(struct types *t, struct types_ref elem, uint64_t cnt, bool is_open, const char **why);
struct types_ref types_vector(struct types *t, struct types_ref elem, uint64_t len, const char **why);
struct types_ref types_complex(struct types *t, enum types_base part);

/* types_layout.c: places the members of a struct or union and sets its size; a reason on failure, else null. */
const char *types_place_members(const struct types *t, struct types_type *rec, struct types_member *m, uint32_t cnt);
uint32_t types_align_of(const struct types *t, struct types_ref r);
uint64_t types_round_up(uint64_t v, uint64_t to);

/* types_build.c: what a struct or union (`rec->kind`) of these members at the places they have is in C: sets the rest of `rec` and gives
 * the members it takes. False when C cannot say it, or memory is out. */
struct types_placed {
	const struct types_member *want;
	uint32_t cnt, align;      /* of the whole, bytes */
	uint64_t len;             /* bytes */
	struct types_member *made; /* to be freed */
	uint32_t made_cnt;
};
bool types_place_as(struct types *t, struct types_type *rec, struct types_placed *as);

/* types_compare.c: whether two definitions of one tag say the same. */
bool types_same_body(const struct types *t, uint32_t a, uint32_t b);

enum types_kw {
	KW_NONE, KW_VOID, KW_CHAR, KW_SHORT, KW_INT, KW_LONG, KW_FLOAT, KW_DOUBLE, KW_SIGNED, KW_UNSIGNED, KW_BOOL, KW_COMPLEX,
	KW_INT128, KW_INT8, KW_INT16, KW_INT32, KW_INT64, KW_FLOAT16, KW_FLOAT32, KW_FLOAT64, KW_FLOAT32X, KW_FLOAT64X,
	KW_FLOAT128, KW_FLOAT80, KW_DEC32, KW_DEC64, KW_DEC128, KW_VALIST, KW_TYPE_LAST = KW_VALIST,
	KW_STRUCT, KW_UNION, KW_ENUM, KW_TYPEOF, KW_CONST, KW_VOLATILE, KW_RESTRICT, KW_ATOMIC, KW_TYPEDEF, KW_EXTERN,
	KW_STATIC, KW_INLINE, KW_REGISTER, KW_AUTO, KW_THREAD, KW_NORETURN, KW_ATTRIBUTE, KW_DECLSPEC, KW_ALIGNAS,
	KW_EXTENSION, KW_SPEC_LAST = KW_EXTENSION,
	KW_STDCALL, KW_FASTCALL, KW_CDECL, KW_ASM, KW_STATIC_ASSERT, KW_SIZEOF, KW_ALIGNOF, KW_ALIGNOF_GNU, KW_OFFSETOF,
	KW_TYPES_COMPATIBLE, KW_CHOOSE, KW_CONSTANT_P, KW_GENERIC, KW_UNSUPPORTED, KW_COUNT
};

/* types_lex.c */
enum types_tok {
	TOK_EOF, TOK_IDENT, TOK_INT, TOK_FLOAT, TOK_STR,
	/* One-character tokens are their character; the others: */
	TOK_ARROW = 256, TOK_SHL, TOK_SHR, TOK_LE, TOK_GE, TOK_EQ, TOK_NE, TOK_AND, TOK_OR, TOK_ELLIPSIS, TOK_OTHER
};

struct types_token {
	unsigned kind;
	uint32_t name;            /* identifier: its name; never 0 */
	uint32_t line, col;
	const char *s;            /* its text, with quotes and prefix */
	size_t len;
	uint64_t value;           /* integer and character constants */
	enum types_base base;     /* their type; of TOK_FLOAT too */
};

#define TYPES_PACK_STACK 32

struct types_lex {
	const char *s, *end;      /* what is left */
	const char *line_start;
	uint32_t line;
	const char *file;         /* text between the quotes of the last line marker */
	size_t file_len;
	uint32_t pack;            /* #pragma pack: 0 none */
	uint32_t pack_stack[TYPES_PACK_STACK];
	unsigned pack_cnt;
	struct types_token tok;
};

struct types_op {
	enum { OP_POINTER, OP_ARRAY, OP_FUNC } kind;
	uint32_t quals;
	bool is_open;
	uint64_t cnt;
	uint32_t flags, first, sub_cnt; /* function */
	struct types_token at;
};

struct types_parser {
	struct types *t;
	struct types_lex lex;
	struct err *err;          /* the first; then all tokens are TOK_EOF */
	struct types_place place;
	unsigned nest;
	uint32_t serial;          /* of the struct body at hand, see `seen` */
	unsigned param_nest;      /* within how many parameter lists: there array counts need not be constant */
	bool can_be_old;          /* an identifier list, `int f(a, b)`, may come */
	struct types_token old_list; /* its first name; kind TOK_EOF: none came */
	const char *not_const;    /* the identifier that kept the last expression from being constant; or null */
	struct map seen;          /* members of struct bodies: serial << 32 | name */
	const char *text;         /* all of it */
	const struct types_says *says; /* or null */
	VEC(struct types_differing) differing;
	size_t compared_cnt, said_const_cnt;
	VEC(struct types_member) members; /* stacks, as structs and functions nest */
	VEC(struct types_param) params;
	VEC(struct types_const) consts;
	VEC(struct types_op) ops;
	VEC(uint32_t) ptrs;
};

/* Reads the next token into p->lex.tok. */
void types_next(struct types_parser *p);
/* The token after the current one. */
struct types_token types_peek(struct types_parser *p);
/* Records the first error, at a token. */
void types_fail(struct types_parser *p, const struct types_token *at, const char *fmt, ...) _printf_(3, 4);
void types_fail_full(struct types_parser *p);
bool types_is(const struct types_parser *p, unsigned kind);
bool types_accept(struct types_parser *p, unsigned kind);
void types_expect(struct types_parser *p, unsigned kind);
enum types_kw types_kw(const struct types_parser *p);
const char *types_tok_name(const struct types_parser *p);
/* Guards recursion: false and an error when the text nests too deep. */
bool types_enter(struct types_parser *p);
void types_leave(struct types_parser *p);
/* Skips a bracketed run, the current token being its opening bracket. */
void types_skip_group(struct types_parser *p);
/* The current string literals' bytes joined, escapes left alone; interned, null on failure. */
const char *types_string(struct types_parser *p);

/* types_expr.c */
/* An integer constant expression; 0 after an error. `*ret_unsigned`: only the unsigned reading of the bits is right. */
int64_t types_const_expr(struct types_parser *p, bool *ret_unsigned);
/* The same, but `*ret_known` false instead of an error when it is not constant. */
int64_t types_try_expr(struct types_parser *p, bool *ret_unsigned, bool *ret_known);
struct types_ref types_expr_type(struct types_parser *p);

/* types_spec.c: declaration specifiers and attributes. */
#define TYPES_A_MS_STRUCT 0x80000000u /* in `flags` of attributes alone: lies as another compiler says */
struct types_attr {
	uint32_t align;          /* aligned, _Alignas; 0: none */
	uint32_t flags;          /* TYPES_F_PACKED, _NORETURN, _MAY_ALIAS, _TRANSPARENT, conventions, TYPES_A_MS_STRUCT */
	uint64_t vector_len;
	uint32_t mode;           /* 0 or one of enum types_mode in types_spec.c */
};

struct types_spec {
	struct types_ref type;
	bool is_typedef, is_static, is_extern, is_storage;
	struct types_attr attr;
};

bool types_starts_type(const struct types_parser *p, const struct types_token *tok);
void types_specs(struct types_parser *p, struct types_spec *ret);
/* Zero or more __attribute__ and [[...]]. */
void types_attrs(struct types_parser *p, struct types_attr *ret);
/* The type with mode, vector_size and what belongs to functions applied. */
struct types_ref types_apply(struct types_parser *p, struct types_ref r, const struct types_attr *attr,
			     const struct types_token *at);
void types_static_assert(struct types_parser *p);

/* types_body.c: struct, union and enum; the current token is the keyword. */
struct types_ref types_tagged(struct types_parser *p);

/* types_declr.c */
struct types_declr {
	uint32_t name;           /* 0: none */
	struct types_token at;   /* the name, or where it would be */
	struct types_ref type;
	struct types_attr attr;  /* from within and after the declarator */
	const char *asm_name;    /* null: none */
};
/* A declarator over `spec`, and the attributes after it. `is_abstract`: it may lack a name. */
void types_declarator(struct types_parser *p, const struct types_spec *spec, bool is_abstract, struct types_declr *ret);
/* specifiers and an abstract declarator */
struct types_ref types_type_name(struct types_parser *p);

#endif
