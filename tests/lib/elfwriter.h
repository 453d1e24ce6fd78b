/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_ELFWRITER_H
#define TESTS_ELFWRITER_H

#include "base/buf.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Writes ELF files of either class and byte order from a description, honest or lying: nothing
 * given here is checked, every field of a segment or section is written as it stands, and any field
 * of the ELF header can be overridden before elfw_finish(). Content is added first and its offset
 * used in the headers. Running out of memory aborts, as tests do.
 */
struct elfw_seg {
	uint32_t type, flags;
	uint64_t off, va, file_len, mem_len, align;
};

struct elfw_sec {
	const char *name; /* null: name_off is used */
	uint32_t name_off;
	uint32_t type, link, info;
	uint64_t flags, addr, off, len, align, ent_len;
};

enum elfw_field {
	ELFW_CLASS,
	ELFW_DATA,
	ELFW_OSABI,
	ELFW_TYPE,
	ELFW_MACHINE,
	ELFW_ENTRY,
	ELFW_PHOFF,
	ELFW_SHOFF,
	ELFW_PHENTSIZE,
	ELFW_PHNUM,
	ELFW_SHENTSIZE,
	ELFW_SHNUM,
	ELFW_SHSTRNDX,
	ELFW_FIELD_COUNT
};

struct elfw {
	unsigned bits;
	bool is_be;
	struct buf file; /* room for the ELF header, then what was added */
	struct buf names;
	VEC(struct elfw_seg) segs;
	VEC(struct elfw_sec) secs;
	struct {
		bool is_set;
		uint64_t value;
	} fields[ELFW_FIELD_COUNT];
};

/* An empty file of `bits` 32 or 64. Section 0 is there already. */
void elfw_init(struct elfw *w, unsigned bits, bool is_be, uint16_t type, uint16_t machine);
void elfw_fini(struct elfw *w);

/* Overrides a field of the ELF header. */
void elfw_set(struct elfw *w, enum elfw_field field, uint64_t value);

/* Appends bytes to the file at the next multiple of `align`; gives their offset. */
uint64_t elfw_add(struct elfw *w, const void *bytes, size_t len, uint64_t align);

/* Pads the file with zeros up to `off`. */
void elfw_pad_to(struct elfw *w, uint64_t off);

/* Appends a header; gives its index. */
uint32_t elfw_add_seg(struct elfw *w, struct elfw_seg seg);
uint32_t elfw_add_sec(struct elfw *w, struct elfw_sec sec);

/* Writes names, section headers, program headers and the ELF header; `file` is then the file. */
void elfw_finish(struct elfw *w);

/* Integers and records in the file's order and class, appended to any buffer. */
void elfw_u16(const struct elfw *w, struct buf *b, uint16_t v);
void elfw_u32(const struct elfw *w, struct buf *b, uint32_t v);
void elfw_u64(const struct elfw *w, struct buf *b, uint64_t v);
void elfw_word(const struct elfw *w, struct buf *b, uint64_t v); /* of the class */
void elfw_dyn(const struct elfw *w, struct buf *b, uint64_t tag, uint64_t value);
void elfw_note(const struct elfw *w, struct buf *b, const char *name, uint32_t type,
	       const void *desc, uint32_t len);

struct elfw_sym {
	uint32_t name;
	uint8_t info, other;
	uint16_t shndx;
	uint64_t value, len;
};
void elfw_symbol(const struct elfw *w, struct buf *b, struct elfw_sym s);

struct elfw_reloc {
	uint64_t off;
	uint32_t sym, type;
	int64_t addend;
};
void elfw_rel(const struct elfw *w, struct buf *b, struct elfw_reloc r);
void elfw_rela(const struct elfw *w, struct buf *b, struct elfw_reloc r);

/* Appends a string with its NUL to a string table; gives its offset. An empty table gets its empty
 * string first. */
uint32_t elfw_str(struct buf *strtab, const char *s);

#endif
