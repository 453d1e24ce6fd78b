/* SPDX-License-Identifier: Apache-2.0 */
/*
 * types_checks ABI FILE [--print]: parses a preprocessed C file and prints what it found as C assertions, which a compiler
 * for that ABI then checks: sizes, alignments, offsets, values. With --print the declarations themselves; with --bits a
 * main() that sets each bit-field to all ones and looks which bits of the struct became 1.
 */
#include "types/types.h"

#include "base/buf.h"

#include <stdio.h>
#include <string.h>

static void check_members(const struct types *t, const char *word, const char *name, uint32_t id, uint64_t base, struct buf *out)
{
	uint32_t cnt;
	const struct types_member *m = types_members(t, id, &cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		if (!m[i].name && !m[i].is_bitfield)
			check_members(t, word, name, m[i].type.id, base + m[i].off, out);
		if (m[i].name && !m[i].is_bitfield)
			buf_printf(out, "_Static_assert(__builtin_offsetof(%s%s, %s) == %lluu, \"%s.%s\");\n", word, name, m[i].name,
				   (unsigned long long)(base + m[i].off), name, m[i].name);
	}
}

static void check_type(const struct types *t, const char *word, const char *name, struct types_ref r, struct buf *out)
{
	uint64_t len;
	uint32_t align;
	const struct types_type *rec = types_get(t, types_real(t, r).id);
	if (!types_layout(t, r, &len, &align) || rec->kind == TYPES_VOID)
		return;
	buf_printf(out, "_Static_assert(sizeof(%s%s) == %lluu, \"sizeof %s\");\n", word, name, (unsigned long long)len, name);
	buf_printf(out, "_Static_assert(_Alignof(%s%s) == %uu, \"alignof %s\");\n", word, name, align, name);
	check_members(t, word, name, types_real(t, r).id, 0, out);
}

static void check_bits(const struct types *t, const char *word, const char *name, uint32_t id, uint64_t base, struct buf *out)
{
	uint32_t cnt;
	const struct types_member *m = types_members(t, id, &cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		if (!m[i].name && !m[i].is_bitfield)
			check_bits(t, word, name, m[i].type.id, base + m[i].off, out);
		if (!m[i].name || !m[i].is_bitfield)
			continue;
		buf_printf(out,
			   "\t{ union { %s%s s; unsigned char b[sizeof(%s%s)]; } u; __builtin_memset(&u, 0, sizeof(u)); u.s.%s = -1;\n"
			   "\t  for (unsigned long i = 0; i < 8 * sizeof(u); i++)\n"
			   "\t\tif ((u.b[i / 8] >> i %% 8 & 1) != (i >= %lluul && i < %lluul)) { __builtin_printf(\"%s.%s\\n\"); return 1; } }\n",
			   word, name, word, name, m[i].name, (unsigned long long)((base + m[i].off) * 8 + m[i].bit_off),
			   (unsigned long long)((base + m[i].off) * 8 + m[i].bit_off + m[i].bit_len), name, m[i].name);
	}
}

static void check_all_bits(const struct types *t, struct buf *out)
{
	buf_add_str(out, "int main(void)\n{\n");
	for (uint32_t i = 1; i < types_decl_cnt(t); i++) {
		const struct types_decl *d = types_decl_get(t, i);
		enum types_kind kind = types_get(t, d->type.id)->kind;
		if (d->kind == TYPES_D_TAG && kind != TYPES_ENUM)
			check_bits(t, kind == TYPES_STRUCT ? "struct " : "union ", d->name, d->type.id, 0, out);
	}
	buf_add_str(out, "\treturn 0;\n}\n");
}

static void check_all(const struct types *t, struct buf *out)
{
	for (uint32_t i = 1; i < types_decl_cnt(t); i++) {
		const struct types_decl *d = types_decl_get(t, i);
		enum types_kind kind = types_get(t, d->type.id)->kind;
		if (d->is_builtin)
			continue;
		if (d->kind == TYPES_D_CONST) {
			bool is_min = d->value.value == INT64_MIN && !d->value.is_unsigned;
			buf_printf(out, "_Static_assert(%s == ", d->name);
			if (d->value.is_unsigned)
				buf_printf(out, "%lluull", (unsigned long long)d->value.value);
			else
				buf_printf(out, "%lld%s", (long long)d->value.value + is_min, is_min ? " - 1" : "");
			buf_printf(out, ", \"%s\");\n", d->name);
		} else if (d->kind == TYPES_D_TYPEDEF) {
			check_type(t, "", d->name, d->type, out);
		} else if (d->kind == TYPES_D_TAG) {
			check_type(t, kind == TYPES_STRUCT ? "struct " : kind == TYPES_UNION ? "union " : "enum ", d->name, d->type, out);
		}
	}
}

int main(int argc, char **argv)
{
	static const char *const abis[TYPES_ABI_COUNT] = {"x86_64", "i386", "aarch64"};
	struct buf text = {0}, out = {0};
	enum types_abi abi = 0;
	FILE *f = argc > 2 ? fopen(argv[2], "rb") : NULL;
	if (!f)
		return 2;
	while (abi < TYPES_ABI_COUNT && strcmp(abis[abi], argv[1]))
		abi++;
	char chunk[65536];
	for (size_t n; (n = fread(chunk, 1, sizeof(chunk), f)) > 0;)
		buf_add(&text, chunk, n);
	fclose(f);
	struct types *t = abi < TYPES_ABI_COUNT ? types_new(abi) : NULL;
	if (!t)
		return 2;
	struct err *e = types_parse(t, text.data ? text.data : "", text.len, NULL);
	if (e) {
		fprintf(stderr, "%s\n", e->text);
	} else {
		if (argc > 3 && !strcmp(argv[3], "--bits"))
			check_all_bits(t, &out);
		else if (argc > 3)
			types_print_all(t, &out);
		else
			check_all(t, &out);
		if (out.len)
			fwrite(out.data, 1, out.len, stdout);
	}
	bool is_bad = e;
	err_free(e);
	types_free(t);
	buf_fini(&text);
	buf_fini(&out);
	return is_bad;
}
