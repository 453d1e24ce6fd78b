/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/buf.h"

/*
 * Writes JSON (RFC 8259) once, straight into a buffer. The writer keeps only whether a comma is due;
 * nesting is the caller's own call structure (json_obj ... json_end_obj). Keys are literals of ours
 * and are not escaped; values are. Bytes of a value that are not UTF-8 are written as U+FFFD, so
 * that every answer is valid UTF-8; where exact bytes matter an operation gives them as hex.
 */
struct json {
	struct buf *out;
	bool comma; /* a comma is due before the next key or value */
};

static inline struct json json_make(struct buf *out)
{
	return (struct json){.out = out};
}

static inline void json_sep(struct json *j)
{
	if (j->comma)
		buf_add_ch(j->out, ',');
	j->comma = true;
}

static inline void json_obj(struct json *j)
{
	json_sep(j);
	buf_add_ch(j->out, '{');
	j->comma = false;
}

static inline void json_end_obj(struct json *j)
{
	buf_add_ch(j->out, '}');
	j->comma = true;
}

static inline void json_arr(struct json *j)
{
	json_sep(j);
	buf_add_ch(j->out, '[');
	j->comma = false;
}

static inline void json_end_arr(struct json *j)
{
	buf_add_ch(j->out, ']');
	j->comma = true;
}

/* A key; a value must follow. */
static inline void json_key(struct json *j, const char *key)
{
	json_sep(j);
	buf_add_ch(j->out, '"');
	buf_add_str(j->out, key);
	buf_add(j->out, "\":", 2);
	j->comma = false;
}

void json_strn(struct json *j, const char *s, size_t len);

static inline void json_str(struct json *j, const char *s)
{
	json_strn(j, s, strlen(s));
}

static inline void json_u64(struct json *j, uint64_t v)
{
	json_sep(j);
	buf_add_dec(j->out, v);
}

void json_i64(struct json *j, int64_t v);

static inline void json_bool(struct json *j, bool v)
{
	json_sep(j);
	buf_add_str(j->out, v ? "true" : "false");
}

static inline void json_null(struct json *j)
{
	json_sep(j);
	buf_add(j->out, "null", 4);
}

/* An address: "0x401136". */
static inline void json_addr(struct json *j, uint64_t va)
{
	json_sep(j);
	buf_add(j->out, "\"0x", 3);
	buf_add_hex(j->out, va, 1);
	buf_add_ch(j->out, '"');
}

/* Bytes as one hex string: "4889e5". */
static inline void json_hex(struct json *j, const uint8_t *bytes, size_t len)
{
	json_sep(j);
	buf_add_ch(j->out, '"');
	buf_add_hexbytes(j->out, bytes, len);
	buf_add_ch(j->out, '"');
}

/* Ready JSON text, passed on untouched. */
static inline void json_raw(struct json *j, const char *text, size_t len)
{
	json_sep(j);
	buf_add(j->out, text, len);
}

#endif
