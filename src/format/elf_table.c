/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the loader's own tables lie in memory, from the dynamic table alone: whoever shows the program's data must not
 * take the names of symbols for its strings, in a file without section headers neither.
 */
#include "format/elf_int.h"

#include <elf.h>

struct table_list {
	struct fmt_table rows[16];
	size_t cnt;
};

/* `len` 0: not said. */
static void push_table(const struct elf *e, struct table_list *l, struct fmt_table t)
{
	uint64_t off, room;
	if (!t.va || !elf_at(e, t.va, &off, &room) || l->cnt == ARRAY_LEN(l->rows))
		return;
	if (t.len > room)
		t.len = room;
	l->rows[l->cnt++] = t;
}

static int compare_tables(const void *a, const void *b)
{
	const struct fmt_table *x = a, *y = b;
	if (x->va != y->va)
		return x->va < y->va ? -1 : 1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

struct err *elf_load_tables(struct elf *e)
{
	const struct elf_dyn *d = &e->dyn;
	struct table_list l = {.cnt = 0};
	uint32_t word = elf_word_len(e), sym = e->is_64 ? 24 : 16;
	if (!d->is_there)
		return NULL;
	push_table(e, &l, (struct fmt_table){d->symtab, (uint64_t)e->dynsym.cnt * sym, sym, FMT_SEC_SYMTAB});
	push_table(e, &l, (struct fmt_table){d->strtab, d->strsz, 1, FMT_SEC_STRTAB});
	push_table(e, &l, (struct fmt_table){d->hash, 0, 4, FMT_SEC_OTHER});
	push_table(e, &l, (struct fmt_table){d->gnu_hash, 0, 4, FMT_SEC_OTHER});
	push_table(e, &l, (struct fmt_table){d->versym, 2 * (uint64_t)e->dynsym.cnt, 2, FMT_SEC_OTHER});
	push_table(e, &l, (struct fmt_table){d->verneed, 0, 4, FMT_SEC_OTHER});
	push_table(e, &l, (struct fmt_table){d->verdef, 0, 4, FMT_SEC_OTHER});
	push_table(e, &l, (struct fmt_table){d->rela, d->relasz, 3 * word, FMT_SEC_RELOC});
	push_table(e, &l, (struct fmt_table){d->rel, d->relsz, 2 * word, FMT_SEC_RELOC});
	push_table(e, &l, (struct fmt_table){d->jmprel, d->pltrelsz, (d->pltrel == DT_REL ? 2 : 3) * word, FMT_SEC_RELOC});
	push_table(e, &l, (struct fmt_table){d->relr, d->relrsz, word, FMT_SEC_RELOC});
	if (!l.cnt)
		return NULL;
	qsort(l.rows, l.cnt, sizeof(*l.rows), compare_tables);
	for (size_t i = 0; i < l.cnt; i++) {
		/* Without a length it ends where the next one begins; without a successor nobody knows where. */
		uint64_t room = i + 1 < l.cnt ? l.rows[i + 1].va - l.rows[i].va : l.rows[i].len;
		if (!l.rows[i].len || l.rows[i].len > room)
			l.rows[i].len = room;
		if (l.rows[i].len && !VEC_PUSH(&e->b->tables, l.rows[i]))
			return &err_nomem;
	}
	return NULL;
}
