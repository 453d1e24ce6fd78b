/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_DEBUG_XML_H
#define LIVE_DEBUG_XML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * As much of XML 1.0 as target descriptions and library lists need: start and end tags with attributes, in order. Declarations, comments,
 * CDATA and text are passed over. Nothing nests here, nothing is allocated; each byte is looked at a bounded number of times.
 */
struct debug_xml {
	const char *p, *end;
	bool failed;           /* malformed: nothing more comes */
};

#define DEBUG_XML_ATTRS 24

struct debug_xml_attr { const char *name, *value; uint32_t name_len, value_len; };

struct debug_xml_tag {
	const char *name;
	uint32_t name_len;
	bool is_end;           /* </name> */
	bool is_empty;         /* <name/> */
	struct debug_xml_attr attrs[DEBUG_XML_ATTRS]; /* further ones are left out */
	uint32_t attr_cnt;
};

/* The next tag; false at the end, or with `failed`. What it gives is borrowed. */
bool debug_xml_next(struct debug_xml *x, struct debug_xml_tag *ret);
bool debug_xml_is(const struct debug_xml_tag *t, const char *name);
/* The value of an attribute with its five named and its numeric references (below 128) resolved, cut to the room and NUL-terminated.
 * False, and "": there is none, or it does not fit. */
bool debug_xml_attr(const struct debug_xml_tag *t, const char *name, char *out, size_t cap);
/* A number in decimal or with 0x in hex. */
bool debug_xml_number(const struct debug_xml_tag *t, const char *name, uint64_t *ret);

#endif
