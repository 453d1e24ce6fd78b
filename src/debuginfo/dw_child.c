/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo/dw_child.h"

#include "base/buf.h"
#include "base/child.h"
#include "base/dl.h"
#include "base/map.h"
#include "debuginfo/dw_image.h"
#include "debuginfo/dw_type.h"

#include <stdio.h>

/*
 * Walks all units with libdw and sends what it finds. libdw keeps what it read until its handle is closed,
 * so on large input the handle is opened anew every so many units. Whatever goes wrong ends this
 * process, not the parent's work: what was sent before stays good.
 */

/* Units, and entries in them, after which the library's memory is given back. */
#define DW_UNITS_PER_HANDLE 64
#define DW_DIES_PER_HANDLE 2000000

/* Entries looked at, each of a byte at least, most once for the tree and once for a prototype. */
#define DW_STEPS_BASE 4096
#define DW_STEPS_PER_BYTE 8

#define DW_TREE_DEPTH_MAX 48
#define DW_OUT_LEN 65536

/* Room kept for the last notes. */
#define DW_OUT_RESERVE 4096

struct dw_walker {
	struct dw_api dw;
	const struct dw_job *job;
	dw_elf *elf;
	dw_dbg *dbg;
	int lang;
	bool has_types;      /* the unit's functions have prototypes */
	uint16_t version;    /* of the unit */
	char unit_path[DW_STRING_MAX]; /* its source file, or empty */
	int fd;
	uint64_t out_total;
	size_t out_len;
	bool is_full;        /* nothing more may be sent */
	uint64_t die_cnt;    /* since the handle was opened */
	uint64_t dies_left;  /* steps from entry to entry: a hostile tree may lead back to itself */
	struct map file_of;  /* hash of a path -> number */
	uint32_t file_cnt;
	const char *last_path; /* of libdw's memory; its number is last_file */
	uint32_t last_file;
	uint64_t long_cnt;
	uint64_t bad_unit_cnt;
	uint64_t bad_lines_cnt;
	uint64_t split_cnt;  /* units whose functions are in another file */
	uint8_t out[DW_OUT_LEN];
};

/* The prepare step fills this in the child's own memory, run() finds it there. */
static struct dw_api dw_child_api;

static void dw_flush(struct dw_walker *w)
{
	if (w->out_len && !child_write(w->fd, w->out, w->out_len))
		w->is_full = true;
	w->out_len = 0;
}

static void dw_put(struct dw_walker *w, const void *bytes, size_t len)
{
	if (len > sizeof(w->out) - w->out_len)
		dw_flush(w);
	memcpy(w->out + w->out_len, bytes, len);
	w->out_len += len;
	w->out_total += len;
}

static void dw_put_uleb(struct dw_walker *w, uint64_t v)
{
	uint8_t bytes[10];
	size_t n = 0;
	do {
		bytes[n] = (uint8_t)(v & 0x7f);
		v >>= 7;
		bytes[n] |= v ? 0x80 : 0;
		n++;
	} while (v);
	dw_put(w, bytes, n);
}

static void dw_put_str(struct dw_walker *w, const char *s, size_t len)
{
	dw_put_uleb(w, len);
	dw_put(w, s, len);
}

/* Whether a record of at most `len` bytes may still be sent. */
static bool dw_may_put(struct dw_walker *w, size_t len)
{
	if (w->out_total + len + DW_OUT_RESERVE > w->job->max_out_len)
		w->is_full = true;
	return !w->is_full;
}

static void dw_note(struct dw_walker *w, const char *text)
{
	dw_put_uleb(w, DW_REC_NOTE);
	dw_put_str(w, text, strlen(text));
}

static uint64_t dw_hash(const char *s, size_t len)
{
	uint64_t h = 0xcbf29ce484222325; /* FNV-1a */
	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)s[i]) * 0x100000001b3;
	return h ^ len;
}

/* The number of a path + 1, sending it when it is new; 0 for none. */
static uint32_t dw_file(struct dw_walker *w, const char *path)
{
	if (!path || !*path)
		return 0;
	if (path == w->last_path)
		return w->last_file;
	size_t len = strnlen(path, DW_STRING_MAX + 1);
	if (len > DW_STRING_MAX) {
		w->long_cnt++;
		return 0;
	}
	uint64_t hash = dw_hash(path, len);
	uint32_t number;
	if (!map_find(&w->file_of, hash, &number)) {
		if (!dw_may_put(w, len + 16) || !map_put(&w->file_of, hash, w->file_cnt))
			return 0;
		number = w->file_cnt++;
		dw_put_uleb(w, DW_REC_FILE);
		dw_put_str(w, path, len);
	}
	w->last_path = path;
	w->last_file = number + 1;
	return number + 1;
}

static bool dw_child_flag(struct dw_walker *w, struct dw_die *die, unsigned name)
{
	struct dw_attr a;
	bool value;
	return w->dw.attr_integrate(die, name, &a) && w->dw.formflag(&a, &value) == 0 && value;
}

/* The range a call enters: with several, the one that holds the entry, which is the first by default. */
static bool dw_entry_range(struct dw_walker *w, struct dw_die *die, uint64_t *ret_start, uint64_t *ret_end)
{
	struct dw_attr a;
	uint64_t entry = 0, base, start, end;
	if (w->dw.lowpc(die, ret_start) == 0 && w->dw.highpc(die, ret_end) == 0)
		return *ret_end > *ret_start;
	bool has_entry = w->dw.attr(die, DW_AT_entry_pc, &a) && w->dw.formaddr(&a, &entry) == 0;
	ptrdiff_t state = 0;
	bool found = false;
	for (int i = 0; i < 64 && (state = w->dw.ranges(die, state, &base, &start, &end)) > 0; i++) {
		bool holds = has_entry && entry >= start && entry < end;
		if (!found || holds) {
			*ret_start = holds ? entry : start;
			*ret_end = end;
			found = end > start;
		}
		if (holds || (found && !has_entry))
			break;
	}
	return found;
}

static const char *dw_func_name(struct dw_walker *w, struct dw_die *die)
{
	struct dw_attr a;
	const char *name = NULL;
	if (w->dw.attr_integrate(die, DW_AT_linkage_name, &a) || w->dw.attr_integrate(die, DW_AT_MIPS_linkage_name, &a))
		name = w->dw.formstring(&a);
	return name && *name ? name : w->dw.diename(die);
}

/* Since DWARF 5 files are numbered from 0, the unit's own, which this libdw takes for none. */
static const char *dw_decl_path(struct dw_walker *w, struct dw_die *die)
{
	struct dw_attr a;
	uint64_t idx;
	const char *path = w->dw.decl_file(die);
	if (!path && w->version >= 5 && w->dw.attr_integrate(die, DW_AT_decl_file, &a) &&
	    w->dw.formudata(&a, &idx) == 0 && idx == 0)
		path = w->unit_path;
	return path;
}

static void dw_func(struct dw_walker *w, struct dw_die *die)
{
	uint64_t start, end;
	if (!dw_entry_range(w, die, &start, &end))
		return;
	const char *name = dw_func_name(w, die);
	size_t name_len = name ? strnlen(name, DW_STRING_MAX + 1) : 0;
	if (name_len > DW_STRING_MAX) {
		w->long_cnt++;
		return;
	}
	struct dw_text proto = {.failed = true};
	struct dw_speller speller = {.dw = &w->dw, .lang = w->lang, .steps_left = &w->dies_left};
	if (w->has_types)
		dbg_dw_prototype(&speller, die, &proto);
	int line = 0;
	uint32_t file = dw_file(w, dw_decl_path(w, die));
	if (!dw_may_put(w, name_len + sizeof(proto.s) + 64))
		return;
	dw_put_uleb(w, DW_REC_FUNC);
	dw_put_uleb(w, start);
	dw_put_uleb(w, end - start);
	dw_put_uleb(w, (dw_child_flag(w, die, DW_AT_noreturn) ? DW_FUNC_NORETURN : 0) |
			       (dw_child_flag(w, die, DW_AT_external) ? DW_FUNC_EXTERNAL : 0));
	dw_put_uleb(w, file && w->dw.decl_line(die, &line) == 0 && line > 0 ? (uint64_t)line : 0);
	dw_put_uleb(w, file);
	dw_put_str(w, name, name_len);
	dw_put_str(w, proto.s, proto.failed ? 0 : proto.len);
}

/* --- types --- */

/* The number of the type that attribute `name` of `die` means: its entry's offset + 1; 0 for void. */
static uint64_t dw_type_id(struct dw_walker *w, struct dw_die *die, unsigned name)
{
	struct dw_attr a;
	struct dw_die type;
	/* What has no word in C, or changes nothing of the layout, is passed over. */
	for (int i = 0; i < 8 && w->dw.attr_integrate(die, name, &a) && w->dw.formref_die(&a, &type); i++) {
		int tag = w->dw.tag(&type);
		if (tag != DW_TAG_restrict_type && tag != DW_TAG_atomic_type)
			return tag == DW_TAG_unspecified_type ? 0 : w->dw.dieoffset(&type) + 1;
		die = &type;
		name = DW_AT_type;
	}
	return 0;
}

static bool dw_child_number(struct dw_walker *w, struct dw_die *die, unsigned name, uint64_t *ret)
{
	struct dw_attr a;
	return w->dw.attr_integrate(die, name, &a) && w->dw.formudata(&a, ret) == 0;
}

/* An offset is a number, or since DWARF 2 an expression that adds one. */
static bool dw_member_off(struct dw_walker *w, struct dw_die *die, uint64_t *ret)
{
	struct dw_attr a;
	struct dw_block block;
	if (!w->dw.attr(die, DW_AT_data_member_location, &a))
		return false;
	if (w->dw.formudata(&a, ret) == 0)
		return true;
	if (w->dw.formblock(&a, &block) || block.len < 2 || block.len > 11 || block.bytes[0] != DW_OP_plus_uconst)
		return false;
	*ret = 0;
	for (uint64_t i = 1; i < block.len; i++)
		*ret |= i < 10 ? (uint64_t)(block.bytes[i] & 0x7f) << 7 * (i - 1) : 0;
	return true;
}

/* Bits from the start of the struct to a member; false when it has no place (static members). */
static bool dw_member_place(struct dw_walker *w, struct dw_die *die, bool is_union, uint64_t *ret_bits, uint64_t *ret_bit_len)
{
	uint64_t off = 0, bit = 0, len = 0;
	*ret_bit_len = 0;
	bool is_placed = dw_member_off(w, die, &off);
	dw_child_number(w, die, DW_AT_bit_size, ret_bit_len);
	if (dw_child_number(w, die, DW_AT_data_bit_offset, &bit)) {
		*ret_bits = off * 8 + bit;
		return true;
	}
	*ret_bits = off * 8;
	/* Before DWARF 4 the bits were counted from the highest of the unit that holds them. */
	if (*ret_bit_len && dw_child_number(w, die, DW_AT_bit_offset, &bit)) {
		struct dw_attr a;
		struct dw_die type;
		if (!dw_child_number(w, die, DW_AT_byte_size, &len) && w->dw.attr(die, DW_AT_type, &a) && w->dw.formref_die(&a, &type))
			len = (uint64_t)MAX(w->dw.bytesize(&type), 0);
		*ret_bits = off * 8 + len * 8 - bit - *ret_bit_len;
	}
	return is_placed || is_union;
}

/* A member, parameter, constant or dimension. */
struct dw_sub {
	struct dw_text name;
	uint64_t type, bit_len;
	int64_t value;
};

static bool dw_dimension(struct dw_walker *w, struct dw_die *die, struct dw_sub *ret)
{
	uint64_t n;
	if (w->dw.tag(die) != DW_TAG_subrange_type)
		return false;
	ret->value = -1;
	if (dw_child_number(w, die, DW_AT_count, &n))
		ret->value = n <= INT64_MAX ? (int64_t)n : -1;
	else if (dw_child_number(w, die, DW_AT_upper_bound, &n))
		ret->value = n == UINT64_MAX || n == UINT32_MAX ? 0 : n < INT64_MAX ? (int64_t)n + 1 : -1;
	return true;
}

static bool dw_constant(struct dw_walker *w, struct dw_die *die, struct dw_sub *ret)
{
	struct dw_attr a;
	uint64_t v = 0;
	if (w->dw.tag(die) != DW_TAG_enumerator || !w->dw.attr(die, DW_AT_const_value, &a))
		return false;
	bool is_signed = a.form == DW_FORM_sdata || a.form == DW_FORM_implicit_const;
	if (is_signed ? w->dw.formsdata(&a, &ret->value) : w->dw.formudata(&a, &v))
		return false;
	if (!is_signed) {
		ret->value = (int64_t)v;
		ret->bit_len = v > INT64_MAX;
	}
	dbg_dw_ident(&ret->name, w->dw.diename(die) ? w->dw.diename(die) : "");
	return true;
}

static bool dw_member(struct dw_walker *w, struct dw_die *die, bool is_union, struct dw_sub *ret)
{
	int tag = w->dw.tag(die);
	uint64_t bits;
	if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) || !dw_member_place(w, die, is_union, &bits, &ret->bit_len))
		return false;
	const char *name = w->dw.diename(die);
	if (tag == DW_TAG_inheritance)
		dbg_dw_ident(&ret->name, "_base");
	if (tag == DW_TAG_member && name && *name)
		dbg_dw_ident(&ret->name, name);
	ret->type = dw_type_id(w, die, DW_AT_type);
	ret->value = (int64_t)bits;
	return true;
}

static bool dw_parameter(struct dw_walker *w, struct dw_die *die, struct dw_sub *ret)
{
	const char *name = w->dw.diename(die);
	if (w->dw.tag(die) != DW_TAG_formal_parameter)
		return false;
	if (name && *name)
		dbg_dw_ident(&ret->name, name);
	ret->type = dw_type_id(w, die, DW_AT_type);
	return true;
}

static bool dw_sub_of(struct dw_walker *w, enum dbg_type_kind kind, struct dw_die *die, struct dw_sub *ret)
{
	ret->name.len = 0;
	ret->name.failed = false;
	ret->type = ret->bit_len = 0;
	ret->value = 0;
	bool is_it = kind == DBG_T_ENUM ? dw_constant(w, die, ret) : kind == DBG_T_FUNC ? dw_parameter(w, die, ret) :
		     kind == DBG_T_ARRAY || kind == DBG_T_VECTOR ? dw_dimension(w, die, ret) : dw_member(w, die, kind == DBG_T_UNION, ret);
	ret->name.len = ret->name.failed ? 0 : ret->name.len;
	return is_it;
}

static bool dw_has_subs(enum dbg_type_kind kind)
{
	return kind == DBG_T_STRUCT || kind == DBG_T_UNION || kind == DBG_T_ENUM || kind == DBG_T_FUNC || kind == DBG_T_ARRAY ||
	       kind == DBG_T_VECTOR;
}

/* Sends the subs, or when `ret_len` is given only says how many there are and how long they are at most. */
static uint64_t dw_subs(struct dw_walker *w, struct dw_die *top, enum dbg_type_kind kind, uint64_t *ret_len, bool *ret_variadic)
{
	struct dw_die die;
	struct dw_sub sub;
	uint64_t cnt = 0;
	for (int r = dw_has_subs(kind) ? w->dw.child(top, &die) : -1; r == 0 && w->dies_left; r = w->dw.siblingof(&die, &die)) {
		w->dies_left--;
		if (ret_variadic)
			*ret_variadic |= kind == DBG_T_FUNC && w->dw.tag(&die) == DW_TAG_unspecified_parameters;
		if (!dw_sub_of(w, kind, &die, &sub))
			continue;
		cnt++;
		if (ret_len) {
			*ret_len += sub.name.len + 64;
			continue;
		}
		dw_put_str(w, sub.name.s, sub.name.len);
		dw_put_uleb(w, sub.type);
		dw_put_uleb(w, sub.bit_len);
		dw_put_uleb(w, (uint64_t)sub.value << 1 ^ (uint64_t)(sub.value >> 63));
	}
	return cnt;
}

static enum dbg_type_kind dw_type_kind(struct dw_walker *w, struct dw_die *die)
{
	switch (w->dw.tag(die)) {
	case DW_TAG_base_type:
	case DW_TAG_ptr_to_member_type:
		return DBG_T_BASE;
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		return DBG_T_POINTER;
	case DW_TAG_array_type:
		return dw_child_flag(w, die, DW_AT_GNU_vector) ? DBG_T_VECTOR : DBG_T_ARRAY;
	case DW_TAG_subroutine_type:
		return DBG_T_FUNC;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_interface_type:
		return DBG_T_STRUCT;
	case DW_TAG_union_type:
		return DBG_T_UNION;
	case DW_TAG_enumeration_type:
		return DBG_T_ENUM;
	case DW_TAG_typedef:
		return DBG_T_TYPEDEF;
	case DW_TAG_const_type:
	case DW_TAG_immutable_type:
		return DBG_T_CONST;
	case DW_TAG_volatile_type:
		return DBG_T_VOLATILE;
	default:
		return DBG_T_VOID;
	}
}

static void dw_type(struct dw_walker *w, struct dw_die *die, enum dbg_type_kind kind)
{
	struct dw_text ident = {.len = 0};
	uint64_t encoding = 0, len = 0, align = 0, subs_len = 0, before = w->dies_left;
	bool is_variadic = false;
	const char *name = w->dw.diename(die);
	bool is_base = kind == DBG_T_BASE;
	if (name && *name && !is_base)
		dbg_dw_ident(&ident, name);
	else if (name && is_base && strlen(name) < sizeof(ident.s))
		memcpy(ident.s, name, ident.len = strlen(name));
	if (ident.failed || (kind == DBG_T_TYPEDEF && !ident.len)) {
		w->long_cnt++;
		return;
	}
	uint64_t cnt = dw_subs(w, die, kind, &subs_len, &is_variadic);
	if (!w->dies_left || before - w->dies_left > w->dies_left || !dw_may_put(w, ident.len + subs_len + 128))
		return;
	dw_child_number(w, die, DW_AT_encoding, &encoding);
	dw_child_number(w, die, DW_AT_byte_size, &len);
	dw_child_number(w, die, DW_AT_alignment, &align);
	if (w->dw.tag(die) == DW_TAG_ptr_to_member_type) {
		encoding = DW_ATE_signed;
		len = w->job->b->bits / 8;
	}
	uint64_t flags = (dw_child_flag(w, die, DW_AT_declaration) ? DBG_T_INCOMPLETE : 0) | (is_variadic ? DBG_T_VARIADIC : 0);
	if (kind == DBG_T_FUNC && !cnt && !is_variadic && !dw_child_flag(w, die, DW_AT_prototyped) && w->lang != DW_LANG_C_plus_plus)
		flags |= DBG_T_NOPROTO;
	dw_put_uleb(w, DW_REC_TYPE);
	dw_put_uleb(w, w->dw.dieoffset(die) + 1);
	dw_put_uleb(w, kind);
	dw_put_uleb(w, encoding & 0xff);
	dw_put_uleb(w, flags);
	dw_put_uleb(w, len);
	dw_put_uleb(w, align);
	dw_put_uleb(w, dw_type_id(w, die, DW_AT_type));
	dw_put_str(w, ident.s, ident.len);
	dw_put_uleb(w, cnt);
	dw_subs(w, die, kind, NULL, NULL);
}

/* A variable that has an address of its own. */
static void dw_var(struct dw_walker *w, struct dw_die *die)
{
	struct dw_attr a;
	struct dw_block block;
	uint64_t va = 0, type = dw_type_id(w, die, DW_AT_type);
	if (!type || !w->dw.attr(die, DW_AT_location, &a) || w->dw.formblock(&a, &block) || block.len < 2)
		return;
	unsigned word_len = w->job->b->bits / 8;
	if (block.bytes[0] == DW_OP_addr && block.len == 1 + word_len) {
		for (unsigned i = 0; i < word_len; i++)
			va |= (uint64_t)block.bytes[1 + (w->job->b->is_be ? word_len - 1 - i : i)] << 8 * i;
	} else if (block.bytes[0] == DW_OP_addrx) {
		struct dw_attr addr = {.code = DW_AT_low_pc, .form = DW_FORM_addrx, .value = block.bytes + 1, .unit = a.unit};
		if (w->dw.formaddr(&addr, &va))
			return;
	}
	if (!va || !dw_may_put(w, 32))
		return;
	dw_put_uleb(w, DW_REC_VAR);
	dw_put_uleb(w, va);
	dw_put_uleb(w, type);
}

/* Visits what may hold functions, types and variables: units, namespaces, types, and functions themselves. */
static void dw_tree(struct dw_walker *w, struct dw_die *top, unsigned depth)
{
	struct dw_die die;
	if (depth > DW_TREE_DEPTH_MAX)
		return;
	for (int r = w->dw.child(top, &die); r == 0 && !w->is_full; r = w->dw.siblingof(&die, &die)) {
		w->die_cnt++;
		if (!w->dies_left)
			return;
		w->dies_left--;
		if (w->job->want_types && w->has_types) {
			enum dbg_type_kind kind = dw_type_kind(w, &die);
			if (kind != DBG_T_VOID)
				dw_type(w, &die, kind);
		}
		switch (w->dw.tag(&die)) {
		case DW_TAG_variable:
			if (w->job->want_types)
				dw_var(w, &die);
			break;
		case DW_TAG_subprogram:
			dw_func(w, &die);
			dw_tree(w, &die, depth + 1);
			break;
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_structure_type:
		case DW_TAG_class_type:
		case DW_TAG_interface_type:
		case DW_TAG_union_type:
		case DW_TAG_enumeration_type:
			dw_tree(w, &die, depth + 1);
			break;
		}
	}
}

/* One row of the line table. */
struct dw_row {
	uint64_t va;
	uint32_t file; /* + 1, 0 for none */
	uint32_t line; /* 0: nothing is known from here on */
};

static bool dw_row_at(struct dw_walker *w, dw_lines *lines, size_t i, struct dw_row *ret)
{
	dw_line *row = w->dw.onesrcline(lines, i);
	bool is_end = false;
	int line = 0;
	if (!row || w->dw.lineaddr(row, &ret->va) || w->dw.lineendsequence(row, &is_end) || w->dw.lineno(row, &line))
		return false;
	bool has_line = !is_end && line > 0;
	ret->file = has_line ? dw_file(w, w->dw.linesrc(row, NULL, NULL)) : 0;
	ret->line = has_line ? (uint32_t)line : 0;
	return true;
}

#define DW_ROWS_PER_RECORD 512

static void dw_put_rows(struct dw_walker *w, const struct dw_row *rows, size_t cnt)
{
	if (!cnt || !dw_may_put(w, cnt * 20 + 32))
		return;
	dw_put_uleb(w, DW_REC_LINES);
	dw_put_uleb(w, cnt);
	dw_put_uleb(w, rows[0].va);
	for (size_t i = 0; i < cnt; i++) {
		dw_put_uleb(w, i ? rows[i].va - rows[i - 1].va : 0);
		dw_put_uleb(w, rows[i].file);
		dw_put_uleb(w, rows[i].line);
	}
}

/* The library sorts the rows of a unit by address. Files are sent as they are met, so rows wait. */
static void dw_unit_lines(struct dw_walker *w, struct dw_die *unit)
{
	dw_lines *lines;
	size_t cnt = 0, waiting = 0;
	struct dw_row rows[DW_ROWS_PER_RECORD], last = {.file = UINT32_MAX};
	if (w->dw.getsrclines(unit, &lines, &cnt)) {
		struct dw_attr a;
		w->bad_lines_cnt += w->dw.attr(unit, DW_AT_stmt_list, &a) != NULL;
		return;
	}
	for (size_t i = 0; i < cnt && !w->is_full; i++) {
		struct dw_row row;
		if (!dw_row_at(w, lines, i, &row) || (row.file == last.file && row.line == last.line && row.va >= last.va))
			continue;
		if (waiting == ARRAY_LEN(rows) || (waiting && row.va < last.va)) {
			dw_put_rows(w, rows, waiting);
			waiting = 0;
		}
		rows[waiting++] = last = row;
	}
	dw_put_rows(w, rows, waiting);
	w->die_cnt += cnt;
}

_Noreturn static void dw_out_of_memory(void)
{
	_exit(1);
}

static bool dw_open(struct dw_walker *w)
{
	if (w->dbg)
		w->dw.end(w->dbg);
	w->last_path = NULL;
	w->die_cnt = 0;
	w->dbg = w->dw.begin_elf(w->elf, 0, NULL);
	if (!w->dbg)
		return false;
	w->dw.new_oom_handler(w->dbg, dw_out_of_memory);
	/* There is no second file: looking for one would open files. */
	w->dw.setalt(w->dbg, (dw_dbg *)-1);
	return true;
}

/* Whether a unit describes types at all. With -g1 it does not, and a function without parameters or
 * result there does not mean that it has none. */
static bool dw_has_types(struct dw_walker *w, struct dw_die *unit)
{
	struct dw_die die;
	for (int r = w->dw.child(unit, &die); r == 0 && w->dies_left; r = w->dw.siblingof(&die, &die), w->dies_left--) {
		switch (w->dw.tag(&die)) {
		case DW_TAG_base_type:
		case DW_TAG_pointer_type:
		case DW_TAG_structure_type:
		case DW_TAG_class_type:
		case DW_TAG_typedef:
		case DW_TAG_enumeration_type:
		case DW_TAG_imported_unit:
			return true;
		}
	}
	return false;
}

static void dw_set_unit_path(struct dw_walker *w, struct dw_die *unit)
{
	struct dw_attr a;
	const char *name = w->dw.diename(unit);
	const char *folder = w->dw.attr(unit, DW_AT_comp_dir, &a) ? w->dw.formstring(&a) : NULL;
	bool is_whole = !folder || !name || name[0] == '/';
	int len = snprintf(w->unit_path, sizeof(w->unit_path), "%s%s%s", is_whole ? "" : folder, is_whole ? "" : "/",
			   name ? name : "");
	if (len < 0 || (size_t)len >= sizeof(w->unit_path))
		w->unit_path[0] = 0;
	w->last_path = NULL;
}

static void dw_unit(struct dw_walker *w, uint64_t die_off)
{
	struct dw_die unit;
	if (!w->dw.offdie(w->dbg, die_off, &unit)) {
		w->bad_unit_cnt++;
		return;
	}
	w->lang = w->dw.srclang(&unit);
	dw_set_unit_path(w, &unit);
	w->has_types = w->lang == DW_LANG_Go || dw_has_types(w, &unit);
	dw_tree(w, &unit, 0);
	struct dw_attr a;
	w->split_cnt += w->dw.attr(&unit, DW_AT_dwo_name, &a) || w->dw.attr(&unit, DW_AT_GNU_dwo_name, &a);
	int tag = w->dw.tag(&unit);
	if (w->job->want_lines && (tag == DW_TAG_compile_unit || tag == DW_TAG_skeleton_unit))
		dw_unit_lines(w, &unit);
}

/* Visits all units. False when a unit's head cannot be read, so that the next cannot be found. */
static bool dw_units(struct dw_walker *w)
{
	uint64_t off = 0, next;
	unsigned unit_cnt = 0;
	while (!w->is_full && w->dies_left) {
		if (unit_cnt >= DW_UNITS_PER_HANDLE || w->die_cnt >= DW_DIES_PER_HANDLE) {
			unit_cnt = 0;
			if (!dw_open(w))
				return false;
		}
		size_t head_len = 0;
		int r = w->dw.next_unit(w->dbg, off, &next, &head_len, &w->version, NULL, NULL, NULL, NULL, NULL);
		if (r)
			return r > 0;
		dw_unit(w, off + head_len);
		if (next <= off)
			return false;
		off = next;
		unit_cnt++;
	}
	return true;
}

static void dw_report(struct dw_walker *w, bool ok)
{
	char text[200];
	if (!ok) {
		const char *why = w->dw.errmsg(w->dw.err_no());
		snprintf(text, sizeof(text), "a unit cannot be read, nor those after it: %s", why ? why : "unknown");
		dw_note(w, text);
	}
	if (w->is_full)
		dw_note(w, "there is more of it than scry takes; the rest is not read");
	if (!w->dies_left)
		dw_note(w, "its entries lead back to themselves; the rest is not read");
	if (w->bad_unit_cnt) {
		snprintf(text, sizeof(text), "%llu units cannot be read", (unsigned long long)w->bad_unit_cnt);
		dw_note(w, text);
	}
	if (w->bad_lines_cnt) {
		snprintf(text, sizeof(text), "the line tables of %llu units cannot be read",
			 (unsigned long long)w->bad_lines_cnt);
		dw_note(w, text);
	}
	if (w->split_cnt) {
		snprintf(text, sizeof(text), "%llu units keep their functions in .dwo files, which are not read",
			 (unsigned long long)w->split_cnt);
		dw_note(w, text);
	}
	if (w->long_cnt) {
		snprintf(text, sizeof(text), "%llu names or paths are too long and left out",
			 (unsigned long long)w->long_cnt);
		dw_note(w, text);
	}
}

struct err *dbg_dw_prepare(void *ctx)
{
	/* What unpacks sections is loaded now, as no file can be opened later; without it they are left out. */
	err_free(dl_load("libz.so.1", "compressed sections", "zlib1g", NULL, 0));
	err_free(dl_load("libzstd.so.1", "compressed sections", "libzstd1", NULL, 0));
	return dbg_dw_load(&dw_child_api);
}

static int dw_run_on(struct dw_walker *w, struct dw_image *image)
{
	w->dw.elf_version(1);
	for (size_t i = 0; i < image->note_cnt; i++)
		dw_note(w, image->notes[i]);
	w->elf = dbg_dw_image_open(&w->dw, image);
	if (!w->elf || !dw_open(w)) {
		const char *why = w->dw.errmsg(w->dw.err_no());
		dw_note(w, why ? why : "libdw cannot open it");
	} else {
		dw_report(w, dw_units(w));
	}
	dw_put_uleb(w, DW_REC_END);
	dw_flush(w);
	return 0;
}

/* The process ends after this, so nothing is freed. */
int dbg_dw_run(void *ctx, int out_fd)
{
	const struct dw_job *job = ctx;
	struct dw_walker *w = calloc(1, sizeof(*w));
	struct dw_image *image = calloc(1, sizeof(*image));
	if (!w || !image || !dbg_dw_image_make(job->b, image))
		return 1;
	w->dw = dw_child_api;
	w->job = job;
	w->fd = out_fd;
	w->dies_left = DW_STEPS_BASE + DW_STEPS_PER_BYTE * image->info_len;
	return dw_run_on(w, image);
}
