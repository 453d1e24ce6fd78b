/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate HEADERS.i OUT.c: the declarations of preprocessed headers as the table of types_system.h. Run when scry is built.
 * Headers that cannot be read give an empty table and a word on stderr, since scry is of use without.
 */
#include "types/types.h"
#include "types/types_system.h"

#include "base/vec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
	char *name;
	enum types_system_kind kind;
	uint32_t off, len; /* of its text */
};

struct table {
	struct types *t;
	VEC(struct row) rows;
	struct buf text;
};

static void die(const char *what)
{
	fprintf(stderr, "generate: %s\n", what);
	exit(1);
}

static char *read_file(const char *path, size_t *ret_len)
{
	FILE *f = fopen(path, "rb");
	struct buf b = {0};
	if (!f)
		die(path);
	for (char *at; (at = buf_room(&b, 65536)) != NULL;) {
		size_t n = fread(at, 1, 65536, f);
		b.len += n;
		if (!n)
			break;
	}
	fclose(f);
	if (b.failed)
		die("no memory");
	*ret_len = b.len;
	return b.data;
}

/* For compilers without them the headers make _Float32 and its like by typedef; to our parser they are words of the language. */
static void blank_float_typedefs(char *text, size_t len)
{
	for (char *s = text, *end = text + len, *nl; s < end; s = nl + 1) {
		nl = memchr(s, '\n', (size_t)(end - s));
		nl = nl ? nl : end - 1;
		const char *name = memmem(s, (size_t)(nl - s), " _Float", 7);
		if (name && !strncmp(s, "typedef ", 8) && !memchr(name + 1, ' ', (size_t)(nl - name - 1)))
			memset(s, ' ', (size_t)(nl - s));
	}
}

static void add_row(struct table *x, const char *name, enum types_system_kind kind, size_t from)
{
	struct row r = {.name = strdup(name), .kind = kind, .off = (uint32_t)from, .len = (uint32_t)(x->text.len - from)};
	if (!r.name || x->text.failed || !VEC_PUSH(&x->rows, r))
		die("no memory");
}

static bool is_word(char c)
{
	return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* A header's __file is file to whoever reads a prototype, unless that means something else. */
static void put_readable(struct table *x, struct types_ref func, const struct buf *text)
{
	uint32_t cnt;
	const struct types_param *p = types_params(x->t, types_real(x->t, func).id, &cnt);
	for (size_t i = 0; i < text->len;) {
		size_t from = i;
		while (i < text->len && is_word(text->data[i]))
			i++;
		size_t n = i - from, skip = 0;
		for (uint32_t k = 0; k < cnt && n; k++) {
			bool is_it = p[k].name && strlen(p[k].name) == n && !memcmp(p[k].name, text->data + from, n);
			if (is_it)
				skip = strspn(p[k].name, "_");
		}
		bool is_free = skip < n && !(text->data[from + skip] >= '0' && text->data[from + skip] <= '9') &&
			       !types_find(x->t, text->data + from + skip, n - skip, false);
		buf_add(&x->text, text->data + from + (is_free ? skip : 0), n - (is_free ? skip : 0));
		if (!n)
			buf_add_ch(&x->text, text->data[i++]);
	}
}

static void add_func(struct table *x, const struct types_decl *d, const char *name)
{
	struct buf b = {0};
	size_t from = x->text.len;
	types_print(x->t, d->type, name, &b);
	if (b.failed)
		die("no memory");
	put_readable(x, d->type, &b);
	add_row(x, name, TYPES_SYSTEM_FUNC, from);
	buf_fini(&b);
}

static void add_decl(struct table *x, uint32_t idx)
{
	const struct types_decl *d = types_decl_get(x->t, idx);
	size_t from = x->text.len;
	uint32_t cnt;
	if (d->kind == TYPES_D_FUNC) {
		add_func(x, d, d->name);
		/* scanf is __isoc99_scanf in programs. */
		if (d->asm_name)
			add_func(x, d, d->asm_name);
		return;
	}
	if (d->kind == TYPES_D_VAR)
		return;
	types_print_decl(x->t, idx, &x->text);
	if (d->kind != TYPES_D_CONST)
		add_row(x, d->name, d->kind == TYPES_D_TAG ? TYPES_SYSTEM_TAG : TYPES_SYSTEM_TYPE, from);
	const struct types_const *c = types_consts(x->t, d->kind == TYPES_D_TYPEDEF ? types_real(x->t, d->type).id : d->type.id, &cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t own = types_find(x->t, c[i].name, strlen(c[i].name), false);
		bool is_here = d->kind != TYPES_D_TYPEDEF || types_get(x->t, types_decl_get(x->t, own)->type.id)->alias == d->type.id;
		if (is_here)
			add_row(x, c[i].name, TYPES_SYSTEM_CONST, from);
	}
}

static int row_order(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int d = strcmp(x->name, y->name);
	return d ? d : (int)x->kind - (int)y->kind;
}

static void write_text(FILE *f, const char *name, const struct buf *b)
{
	size_t col = 0;
	fprintf(f, "const char %s[] =\n\t\"", name);
	for (size_t i = 0; i < b->len; i++) {
		char c = b->data[i];
		if (c == '\n')
			fputs("\\n", f);
		else if (c == '\t')
			fputs("\\t", f);
		else if (!c)
			fputs("\\0\"\n\t\"", f); /* a digit may follow */
		else if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else
			fputc(c, f);
		if (++col % 100 == 0)
			fputs("\"\n\t\"", f);
	}
	fputs("\";\n", f);
}

static void write_table(struct table *x, const char *path)
{
	FILE *f = fopen(path, "wb");
	if (!f)
		die(path);
	if (x->rows.cnt)
		qsort(x->rows.data, x->rows.cnt, sizeof(*x->rows.data), row_order);
	fputs("/* Made by src/types/system/generate.c. */\n#include \"types/types_system.h\"\n\n", f);
	struct buf names = {0};
	for (size_t i = 0; i < x->rows.cnt; i++)
		buf_add(&names, x->rows.data[i].name, strlen(x->rows.data[i].name) + 1);
	if (names.failed)
		die("no memory");
	write_text(f, "types_system_text", &x->text);
	write_text(f, "types_system_names", &names);
	buf_fini(&names);
	size_t name_off = 0;
	fprintf(f, "const int types_system_abi = %d;\nconst uint32_t types_system_cnt = %zu;\n", (int)types_abi_of(x->t), x->rows.cnt);
	fputs("const struct types_system_row types_system_rows[] = {\n", f);
	for (size_t i = 0; i < x->rows.cnt; i++) {
		const struct row *r = &x->rows.data[i];
		fprintf(f, "\t{%zu, %u, %u, %d},\n", name_off, r->off, r->len, (int)r->kind);
		name_off += strlen(r->name) + 1;
		free(x->rows.data[i].name);
	}
	fputs("\t{0, 0, 0, 0}};\n", f);
	if (fclose(f))
		die(path);
}

int main(int argc, char **argv)
{
#if defined(__aarch64__)
	enum types_abi abi = TYPES_A64;
#elif defined(__i386__)
	enum types_abi abi = TYPES_I386;
#else
	enum types_abi abi = TYPES_X86_64;
#endif
	struct table x = {.t = types_new(abi)};
	struct types_mark start = {0};
	size_t len = 0;
	if (argc != 3 || !x.t)
		die("usage: generate HEADERS.i OUT.c");
	start = types_mark(x.t);
	char *text = read_file(argv[1], &len);
	blank_float_typedefs(text, len);
	struct err *e = types_parse(x.t, text, len, NULL);
	if (e)
		fprintf(stderr, "generate: the system's prototypes are left out: %s\n", e->text);
	for (uint32_t i = 0; !e && (i = types_next_changed(x.t, &start, i)) != 0;)
		add_decl(&x, i);
	write_table(&x, argv[2]);
	err_free(e);
	free(text);
	VEC_FREE(&x.rows);
	buf_fini(&x.text);
	types_free(x.t);
	return 0;
}
