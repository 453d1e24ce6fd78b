/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DEBUGINFO_DW_API_H
#define DEBUGINFO_DW_API_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Private to this folder: what is used of elfutils' libdw.so.1 (0.170 and later keep this ABI), declared
 * here because building scry does not need its headers. tests/unit/test_dwarf.c compares the layouts with the
 * real headers where they are installed. Called only inside the locked child.
 */
typedef struct dw_elf dw_elf;
typedef struct dw_scn dw_scn;
typedef struct dw_dbg dw_dbg;
typedef struct dw_lines dw_lines;
typedef struct dw_line dw_line;

struct dw_data {
	void *buf;
	int type;
	unsigned version;
	size_t len;
	int64_t off;
	size_t align;
};

struct dw_die {
	void *addr;
	void *unit;
	void *abbrev;
	long padding;
};

struct dw_attr {
	unsigned code;
	unsigned form;
	unsigned char *value;
	void *unit;
};

struct dw_block {
	uint64_t len;
	unsigned char *bytes;
};

/* DWARF 5, tables 7.3 (tags), 7.5 (attributes), 7.11 (encodings), 7.17 (languages). */
enum dw_tag {
	DW_TAG_array_type = 0x01, DW_TAG_class_type = 0x02, DW_TAG_enumeration_type = 0x04,
	DW_TAG_formal_parameter = 0x05, DW_TAG_member = 0x0d, DW_TAG_inheritance = 0x1c, DW_TAG_enumerator = 0x28, DW_TAG_variable = 0x34,
	DW_TAG_pointer_type = 0x0f, DW_TAG_reference_type = 0x10, DW_TAG_compile_unit = 0x11,
	DW_TAG_structure_type = 0x13, DW_TAG_subroutine_type = 0x15, DW_TAG_typedef = 0x16,
	DW_TAG_union_type = 0x17, DW_TAG_unspecified_parameters = 0x18, DW_TAG_module = 0x1e,
	DW_TAG_ptr_to_member_type = 0x1f, DW_TAG_subrange_type = 0x21, DW_TAG_base_type = 0x24,
	DW_TAG_const_type = 0x26, DW_TAG_subprogram = 0x2e, DW_TAG_volatile_type = 0x35,
	DW_TAG_restrict_type = 0x37, DW_TAG_interface_type = 0x38, DW_TAG_namespace = 0x39,
	DW_TAG_imported_unit = 0x3d, DW_TAG_unspecified_type = 0x3b, DW_TAG_rvalue_reference_type = 0x42, DW_TAG_atomic_type = 0x47,
	DW_TAG_skeleton_unit = 0x4a, DW_TAG_immutable_type = 0x4b,
};

enum dw_at {
	DW_AT_location = 0x02, DW_AT_byte_size = 0x0b, DW_AT_bit_offset = 0x0c, DW_AT_bit_size = 0x0d, DW_AT_low_pc = 0x11,
	DW_AT_const_value = 0x1c, DW_AT_data_member_location = 0x38, DW_AT_declaration = 0x3c, DW_AT_data_bit_offset = 0x6b,
	DW_AT_alignment = 0x88,
	DW_AT_name = 0x03, DW_AT_stmt_list = 0x10, DW_AT_comp_dir = 0x1b, DW_AT_prototyped = 0x27,
	DW_AT_upper_bound = 0x2f, DW_AT_abstract_origin = 0x31, DW_AT_artificial = 0x34, DW_AT_count = 0x37,
	DW_AT_decl_file = 0x3a, DW_AT_encoding = 0x3e, DW_AT_external = 0x3f, DW_AT_specification = 0x47,
	DW_AT_type = 0x49, DW_AT_variable_parameter = 0x4b, DW_AT_entry_pc = 0x52, DW_AT_linkage_name = 0x6e,
	DW_AT_dwo_name = 0x76, DW_AT_noreturn = 0x87, DW_AT_MIPS_linkage_name = 0x2007, DW_AT_GNU_vector = 0x2107,
	DW_AT_GNU_dwo_name = 0x2130,
};

/* Forms and operations that are looked at by number (DWARF 5, 7.5.6 and 7.7.1). */
enum { DW_FORM_sdata = 0x0d, DW_FORM_addrx = 0x1b, DW_FORM_implicit_const = 0x21 };
enum { DW_OP_addr = 0x03, DW_OP_plus_uconst = 0x23, DW_OP_addrx = 0xa1 };

enum dw_ate {
	DW_ATE_boolean = 0x02, DW_ATE_complex_float = 0x03, DW_ATE_float = 0x04, DW_ATE_signed = 0x05,
	DW_ATE_signed_char = 0x06, DW_ATE_unsigned = 0x07, DW_ATE_unsigned_char = 0x08, DW_ATE_UTF = 0x10,
};

enum dw_lang {
	DW_LANG_C89 = 0x01, DW_LANG_C = 0x02, DW_LANG_C_plus_plus = 0x04, DW_LANG_C99 = 0x0c, DW_LANG_ObjC = 0x10,
	DW_LANG_ObjC_plus_plus = 0x11, DW_LANG_Go = 0x16, DW_LANG_C_plus_plus_03 = 0x19, DW_LANG_C_plus_plus_11 = 0x1a,
	DW_LANG_C11 = 0x1d, DW_LANG_C_plus_plus_14 = 0x21, DW_LANG_C_plus_plus_17 = 0x2a, DW_LANG_C_plus_plus_20 = 0x2b,
	DW_LANG_C17 = 0x2c,
};

/* The functions, under their own names without the library's prefix where that is only "dwarf_". */
struct dw_api {
	unsigned (*elf_version)(unsigned version);
	dw_elf *(*elf_memory)(char *image, size_t len);
	dw_scn *(*elf_getscn)(dw_elf *elf, size_t idx);
	struct dw_data *(*elf_getdata)(dw_scn *scn, struct dw_data *after);
	int (*elf_end)(dw_elf *elf);
	dw_dbg *(*begin_elf)(dw_elf *elf, int cmd, dw_scn *group);
	int (*end)(dw_dbg *d);
	void (*setalt)(dw_dbg *d, dw_dbg *alt);
	void *(*new_oom_handler)(dw_dbg *d, void (*handler)(void));
	int (*err_no)(void);
	const char *(*errmsg)(int code);
	int (*next_unit)(dw_dbg *d, uint64_t off, uint64_t *next_off, size_t *header_len, uint16_t *version,
			 uint64_t *abbrev_off, uint8_t *address_len, uint8_t *offset_len, uint64_t *signature,
			 uint64_t *type_off);
	struct dw_die *(*offdie)(dw_dbg *d, uint64_t off, struct dw_die *ret);
	uint64_t (*dieoffset)(struct dw_die *die);
	int (*child)(struct dw_die *die, struct dw_die *ret);
	int (*siblingof)(struct dw_die *die, struct dw_die *ret);
	int (*tag)(struct dw_die *die);
	int (*srclang)(struct dw_die *unit);
	struct dw_attr *(*attr)(struct dw_die *die, unsigned name, struct dw_attr *ret);
	struct dw_attr *(*attr_integrate)(struct dw_die *die, unsigned name, struct dw_attr *ret);
	const char *(*formstring)(struct dw_attr *a);
	int (*formudata)(struct dw_attr *a, uint64_t *ret);
	int (*formflag)(struct dw_attr *a, bool *ret);
	int (*formsdata)(struct dw_attr *a, int64_t *ret);
	int (*formblock)(struct dw_attr *a, struct dw_block *ret);
	int (*formaddr)(struct dw_attr *a, uint64_t *ret);
	struct dw_die *(*formref_die)(struct dw_attr *a, struct dw_die *ret);
	const char *(*diename)(struct dw_die *die);
	int (*bytesize)(struct dw_die *die);
	int (*lowpc)(struct dw_die *die, uint64_t *ret);
	int (*highpc)(struct dw_die *die, uint64_t *ret);
	ptrdiff_t (*ranges)(struct dw_die *die, ptrdiff_t state, uint64_t *base, uint64_t *ret_start, uint64_t *ret_end);
	const char *(*decl_file)(struct dw_die *die);
	int (*decl_line)(struct dw_die *die, int *ret);
	int (*getsrclines)(struct dw_die *unit, dw_lines **ret, size_t *ret_cnt);
	dw_line *(*onesrcline)(dw_lines *lines, size_t idx);
	int (*lineaddr)(dw_line *line, uint64_t *ret);
	int (*lineno)(dw_line *line, int *ret);
	int (*lineendsequence)(dw_line *line, bool *ret);
	const char *(*linesrc)(dw_line *line, uint64_t *mtime, uint64_t *len);
};

/* Loads libdw and fills `ret`. Error env, with the package to install. */
_must_use_ struct err *dbg_dw_load(struct dw_api *ret);

#endif
