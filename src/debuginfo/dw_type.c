/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo/dw_type.h"

#include <stdio.h>
#include <string.h>

/*
 * A C declaration is built from the inside: the declarator starts as the name and each type on the way
 * to the base type wraps it, pointers on the left, arrays and parameter lists on the right, with
 * parentheses where a pointer is wrapped by one of the latter. Chains and nesting are bounded; what does
 * not fit gives no prototype rather than half of one.
 */
#define DW_CHAIN_MAX 64
#define DW_NEST_MAX 5
#define DW_PARAMS_MAX 256
#define DW_HOPS_MAX 4

static bool dw_is_c_family(int lang)
{
	switch (lang) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_C17:
	case DW_LANG_ObjC:
	case DW_LANG_ObjC_plus_plus:
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case DW_LANG_C_plus_plus_17:
	case DW_LANG_C_plus_plus_20:
		return true;
	default:
		return false;
	}
}

static bool dw_has_empty_lists(int lang)
{
	return lang == DW_LANG_C89 || lang == DW_LANG_C || lang == DW_LANG_C99 || lang == DW_LANG_C11 ||
	       lang == DW_LANG_ObjC;
}

static void dw_insert(struct dw_text *t, size_t at, const char *s, size_t len)
{
	if (len > sizeof(t->s) - t->len) {
		t->failed = true;
		return;
	}
	memmove(t->s + at + len, t->s + at, t->len - at);
	memcpy(t->s + at, s, len);
	t->len += len;
}

static void dw_append(struct dw_text *t, const char *s)
{
	dw_insert(t, t->len, s, strlen(s));
}

static void dw_prepend(struct dw_text *t, const char *s)
{
	dw_insert(t, 0, s, strlen(s));
}

static bool dw_is_keyword(const char *s, size_t len)
{
	static const char *const words[] = {
		"auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum",
		"extern", "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return",
		"short", "signed", "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void",
		"volatile", "while", "bool", "asm", "typeof",
	};
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (strlen(words[i]) == len && memcmp(words[i], s, len) == 0)
			return true;
	}
	return false;
}

/* Appends `name` as a C identifier: a run of other bytes becomes one underscore, at the end none. */
void dbg_dw_ident(struct dw_text *t, const char *name)
{
	size_t start = t->len;
	bool owes_underscore = false;
	for (const char *p = name; *p && !t->failed; p++) {
		bool is_digit = *p >= '0' && *p <= '9';
		if (!is_digit && *p != '_' && !(*p >= 'a' && *p <= 'z') && !(*p >= 'A' && *p <= 'Z')) {
			owes_underscore = true;
			continue;
		}
		if (owes_underscore || (is_digit && t->len == start))
			dw_append(t, "_");
		owes_underscore = false;
		dw_insert(t, t->len, p, 1);
	}
	if (t->len == start || dw_is_keyword(t->s + start, t->len - start))
		dw_append(t, "_");
}

/* Moves `die` to its next sibling, as far as the budget goes; with `first` to its first child. */
static bool dw_step(const struct dw_speller *s, struct dw_die *parent, struct dw_die *die, bool first)
{
	if (!*s->steps_left)
		return false;
	--*s->steps_left;
	return (first ? s->dw->child(parent, die) : s->dw->siblingof(die, die)) == 0;
}

static bool dw_flag(const struct dw_speller *s, struct dw_die *die, unsigned name)
{
	struct dw_attr a;
	bool value;
	return s->dw->attr_integrate(die, name, &a) && s->dw->formflag(&a, &value) == 0 && value;
}

static bool dw_number(const struct dw_speller *s, struct dw_die *die, unsigned name, uint64_t *ret)
{
	struct dw_attr a;
	return s->dw->attr_integrate(die, name, &a) && s->dw->formudata(&a, ret) == 0;
}

/* The DIE that attribute `name` of `die` means; null when there is none. */
static struct dw_die *dw_ref(const struct dw_speller *s, struct dw_die *die, unsigned name, struct dw_die *ret)
{
	struct dw_attr a;
	return s->dw->attr_integrate(die, name, &a) ? s->dw->formref_die(&a, ret) : NULL;
}

/* Base types of languages whose names C does not know, by what they are. */
static void dw_base_by_encoding(const struct dw_speller *s, struct dw_die *die, struct dw_text *ret)
{
	uint64_t encoding = 0;
	int len = s->dw->bytesize(die);
	dw_number(s, die, DW_AT_encoding, &encoding);
	const char *word = NULL;
	switch (encoding) {
	case DW_ATE_boolean:
		word = "bool";
		break;
	case DW_ATE_float:
		word = len == 4 ? "float" : len == 8 ? "double" : "long double";
		break;
	case DW_ATE_UTF:
	case DW_ATE_unsigned:
	case DW_ATE_unsigned_char:
		word = len == 1 ? "uint8_t" : len == 2 ? "uint16_t" : len == 4 ? "uint32_t" : len == 8 ? "uint64_t" :
		       len == 16 ? "unsigned __int128" : NULL;
		break;
	case DW_ATE_signed:
	case DW_ATE_signed_char:
		word = len == 1 ? "int8_t" : len == 2 ? "int16_t" : len == 4 ? "int32_t" : len == 8 ? "int64_t" :
		       len == 16 ? "__int128" : NULL;
		break;
	case DW_ATE_complex_float:
		word = len == 8 ? "float _Complex" : "double _Complex";
		break;
	}
	if (word) {
		dw_append(ret, word);
	} else if (len <= 0) {
		dw_append(ret, "void"); /* Rust's "()" and "!" */
	} else {
		char text[48];
		snprintf(text, sizeof(text), "struct bytes_%d", len);
		dw_append(ret, text);
	}
}

static void dw_base(const struct dw_speller *s, struct dw_die *die, struct dw_text *ret)
{
	const char *name = s->dw->diename(die);
	/* C's names are keywords and spaces: "long unsigned int". */
	if (!name || !dw_is_c_family(s->lang) ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_ ") != strlen(name))
		dw_base_by_encoding(s, die, ret);
	else
		dw_append(ret, name);
}

static void dw_tagged(const struct dw_speller *s, struct dw_die *die, const char *word, struct dw_text *ret)
{
	const char *name = s->dw->diename(die);
	dw_append(ret, word);
	if (name && *name) {
		dbg_dw_ident(ret, name);
	} else {
		char text[40];
		snprintf(text, sizeof(text), "anon_%llx", (unsigned long long)s->dw->dieoffset(die));
		dw_append(ret, text);
	}
}

/* The base word of `die` into `ret`; false when this tag is not a base. */
static bool dw_leaf(const struct dw_speller *s, struct dw_die *die, struct dw_text *ret)
{
	const char *name;
	switch (s->dw->tag(die)) {
	case DW_TAG_base_type:
		dw_base(s, die, ret);
		return true;
	case DW_TAG_typedef:
		name = s->dw->diename(die);
		if (name)
			dbg_dw_ident(ret, name);
		return name != NULL;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_interface_type:
		dw_tagged(s, die, "struct ", ret);
		return true;
	case DW_TAG_union_type:
		dw_tagged(s, die, "union ", ret);
		return true;
	case DW_TAG_enumeration_type:
		dw_tagged(s, die, "enum ", ret);
		return true;
	case DW_TAG_ptr_to_member_type:
		dw_append(ret, "ptrdiff_t");
		return true;
	default:
		return false;
	}
}

static void dw_wrap(struct dw_text *decl, bool *is_pointer)
{
	if (*is_pointer) {
		dw_prepend(decl, "(");
		dw_append(decl, ")");
	}
	*is_pointer = false;
}

static void dw_dimensions(const struct dw_speller *s, struct dw_die *array, struct dw_text *decl)
{
	struct dw_die sub;
	unsigned seen = 0;
	for (bool ok = dw_step(s, array, &sub, true); ok && seen < DW_NEST_MAX; ok = dw_step(s, array, &sub, false)) {
		uint64_t n;
		char text[32] = "[]";
		if (s->dw->tag(&sub) != DW_TAG_subrange_type)
			continue;
		if (dw_number(s, &sub, DW_AT_count, &n))
			snprintf(text, sizeof(text), "[%llu]", (unsigned long long)n);
		else if (dw_number(s, &sub, DW_AT_upper_bound, &n) && n != UINT64_MAX)
			snprintf(text, sizeof(text), "[%llu]", (unsigned long long)n + 1);
		dw_append(decl, text);
		seen++;
	}
	if (!seen)
		dw_append(decl, "[]");
}

static void dw_declare(struct dw_speller *s, struct dw_die *type, struct dw_text *decl);

/* One parameter as "type name" at the end of `list`. */
static void dw_param(struct dw_speller *s, struct dw_die *param, struct dw_text *list)
{
	struct dw_die type;
	struct dw_text decl = {.len = 0};
	const char *name = s->dw->diename(param);
	if (name && *name)
		dbg_dw_ident(&decl, name);
	dw_declare(s, dw_ref(s, param, DW_AT_type, &type), &decl);
	list->failed = list->failed || decl.failed;
	dw_insert(list, list->len, decl.s, decl.len);
}

/* Parameters that no caller passes: Go's results, and gcc's mark of which destructor a piece of code is for. */
static bool dw_is_no_argument(const struct dw_speller *s, struct dw_die *param)
{
	if (s->lang == DW_LANG_Go)
		return dw_flag(s, param, DW_AT_variable_parameter);
	const char *name = dw_flag(s, param, DW_AT_artificial) ? s->dw->diename(param) : NULL;
	return name && strcmp(name, "__in_chrg") == 0;
}

/* The parameter list of a function or of a type of functions, with its parentheses. */
static void dw_params(struct dw_speller *s, struct dw_die *func, struct dw_text *ret)
{
	struct dw_die die;
	unsigned cnt = 0;
	if (s->depth >= DW_NEST_MAX) {
		ret->failed = true;
		return;
	}
	s->depth++;
	dw_append(ret, "(");
	for (bool ok = dw_step(s, func, &die, true); ok && !ret->failed; ok = dw_step(s, func, &die, false)) {
		int tag = s->dw->tag(&die);
		bool is_param = tag == DW_TAG_formal_parameter && !dw_is_no_argument(s, &die);
		if (!is_param && tag != DW_TAG_unspecified_parameters)
			continue;
		if (cnt++)
			dw_append(ret, ", ");
		if (is_param)
			dw_param(s, &die, ret);
		else
			dw_append(ret, "...");
		ret->failed = ret->failed || cnt > DW_PARAMS_MAX;
	}
	bool is_open = dw_has_empty_lists(s->lang) && !dw_flag(s, func, DW_AT_prototyped);
	dw_append(ret, cnt || is_open ? ")" : "void)");
	s->depth--;
}

/* Turns the declarator `decl` into a declaration of `type`; null is void. */
static void dw_declare(struct dw_speller *s, struct dw_die *type, struct dw_text *decl)
{
	struct dw_die here, next;
	bool is_pointer = false, is_const = false, is_volatile = false;
	struct dw_text base = {.len = 0};
	for (unsigned i = 0; type && !decl->failed; i++) {
		here = *type;
		bool is_leaf = false;
		decl->failed = decl->failed || i >= DW_CHAIN_MAX;
		switch (s->dw->tag(&here)) {
		case DW_TAG_const_type:
		case DW_TAG_immutable_type:
			is_const = true;
			break;
		case DW_TAG_volatile_type:
			is_volatile = true;
			break;
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
			break;
		case DW_TAG_pointer_type:
		case DW_TAG_reference_type:
		case DW_TAG_rvalue_reference_type:
			dw_prepend(decl, is_const && is_volatile ? "*const volatile " : is_const ? "*const " :
					 is_volatile ? "*volatile " : "*");
			is_const = is_volatile = false;
			is_pointer = true;
			break;
		case DW_TAG_array_type:
			decl->failed = decl->failed || dw_flag(s, &here, DW_AT_GNU_vector);
			dw_wrap(decl, &is_pointer);
			dw_dimensions(s, &here, decl);
			break;
		case DW_TAG_subroutine_type:
			dw_wrap(decl, &is_pointer);
			dw_params(s, &here, decl);
			is_const = is_volatile = false;
			break;
		case DW_TAG_unspecified_type: /* decltype(nullptr) */
			dw_prepend(decl, "*");
			is_leaf = true;
			break;
		default:
			is_leaf = dw_leaf(s, &here, &base);
			decl->failed = decl->failed || !is_leaf;
		}
		type = is_leaf ? NULL : dw_ref(s, &here, DW_AT_type, &next);
	}
	if (!base.len)
		dw_append(&base, "void");
	if (decl->len && decl->s[0] != ' ')
		dw_prepend(decl, " ");
	/* A trailing qualifier of a nameless pointer needs no space after it. */
	while (decl->len && decl->s[decl->len - 1] == ' ')
		decl->len--;
	decl->failed = decl->failed || base.failed;
	dw_insert(decl, 0, base.s, base.len);
	dw_prepend(decl, is_const && is_volatile ? "const volatile " : is_const ? "const " :
			 is_volatile ? "volatile " : "");
}

/* Go's results are parameters with a mark: one is the return type, several make a struct. */
static struct dw_die *dw_go_result(const struct dw_speller *s, struct dw_die *func, struct dw_die *ret, unsigned *ret_cnt)
{
	struct dw_die die;
	struct dw_die *found = NULL;
	*ret_cnt = 0;
	for (bool ok = dw_step(s, func, &die, true); ok && *ret_cnt < 2; ok = dw_step(s, func, &die, false)) {
		if (s->dw->tag(&die) != DW_TAG_formal_parameter || !dw_flag(s, &die, DW_AT_variable_parameter))
			continue;
		found = dw_ref(s, &die, DW_AT_type, ret);
		++*ret_cnt;
	}
	return found;
}

void dbg_dw_prototype(struct dw_speller *s, struct dw_die *die, struct dw_text *ret)
{
	const struct dw_api *dw = s->dw;
	ret->len = 0;
	ret->failed = false;
	const char *name = dw->diename(die);
	if (!name || !*name) {
		ret->failed = true;
		return;
	}
	dbg_dw_ident(ret, name);
	/* A copy made by the optimiser may lack parameters that its original has. */
	struct dw_die func = *die, origin;
	struct dw_attr a;
	for (int i = 0; i < DW_HOPS_MAX && dw->attr(&func, DW_AT_abstract_origin, &a) && dw->formref_die(&a, &origin); i++)
		func = origin;
	dw_params(s, &func, ret);
	struct dw_die type;
	struct dw_die *result = dw_ref(s, die, DW_AT_type, &type);
	unsigned result_cnt = 0;
	if (s->lang == DW_LANG_Go)
		result = dw_go_result(s, &func, &type, &result_cnt);
	if (result_cnt > 1) {
		dw_prepend(ret, "_results ");
		struct dw_text tag = {.len = 0};
		dw_append(&tag, "struct ");
		dbg_dw_ident(&tag, name);
		ret->failed = ret->failed || tag.failed;
		dw_insert(ret, 0, tag.s, tag.len);
	} else {
		dw_declare(s, result, ret);
	}
	ret->failed = ret->failed || !*s->steps_left;
}
