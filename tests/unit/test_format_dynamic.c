/* SPDX-License-Identifier: Apache-2.0 */
/* The ELF reader: the dynamic table and what it leads to, on the sample library and its lies. */
#include "test_format.h"

#include "lib/elfsample.h"

#include <elf.h>

static const struct elfsample_opts kinds[] = {
	{.bits = 64, .is_be = false, .has_hash = true},
	{.bits = 64, .is_be = false, .has_gnu_hash = true, .has_sections = true},
	{.bits = 32, .is_be = false, .has_hash = true, .use_rel = true},
	{.bits = 32, .is_be = false, .has_gnu_hash = true, .has_sections = true},
	{.bits = 64, .is_be = true, .has_gnu_hash = true},
	{.bits = 32, .is_be = true, .has_hash = true, .has_sections = true},
	{.bits = 32, .is_be = true},
};

static struct opened open_sample(const struct elfsample_opts *opts, struct elfsample *s)
{
	elfsample_library(opts, s);
	return open_good(s->w.file.data, s->w.file.len);
}

static void close_sample(struct opened *o, struct elfsample *s)
{
	close_opened(o);
	elfw_fini(&s->w);
}

/* A copy of the first kind with one entry of the dynamic table changed. */
static struct opened open_lie(uint64_t tag, uint64_t value, struct elfsample *s)
{
	struct elfsample_opts opts = kinds[0];
	opts.override_tag = tag;
	opts.override_value = value;
	return open_sample(&opts, s);
}

static void test_symbols(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct elfsample s;
		struct opened o = open_sample(&kinds[i], &s);
		/* Without any table that counts them, the relocations lead up to the last one they
		 * name. */
		assert_int_equal(o.b->symbols.cnt, kinds[i].has_sections ? 6 : 4);
		const struct fmt_symbol *puts_sym = &o.b->symbols.data[0];
		assert_true(str_is(puts_sym->name, "puts"));
		assert_true(str_is(puts_sym->version, "GLIBC_2.34"));
		assert_true(str_is(puts_sym->library, "libc.so.6"));
		assert_true(puts_sym->is_undefined && puts_sym->is_dynamic &&
			    !puts_sym->is_exported);
		assert_int_equal(puts_sym->type, FMT_SYM_FUNC);
		assert_int_equal(o.b->symbols.data[1].bind, FMT_BIND_WEAK);
		const struct fmt_symbol *func = &o.b->symbols.data[2];
		assert_true(str_is(func->name, "own_func"));
		assert_int_equal(func->va, s.func_va);
		assert_int_equal(func->size_len, 16);
		assert_true(func->is_exported && func->is_default_version &&
			    str_is(func->version, "OWN_1"));
		assert_null(func->library.s);
		assert_false(o.b->symbols.data[3].is_default_version);
		assert_int_equal(o.b->is_stripped, !kinds[i].has_sections);
		close_sample(&o, &s);
	}
}

static void test_static_symbols(void **state)
{
	struct elfsample s;
	struct opened o = open_sample(&kinds[1], &s);
	const struct fmt_symbol *local = &o.b->symbols.data[4];
	assert_true(str_is(local->name, "local_func"));
	assert_false(local->is_dynamic);
	assert_int_equal(local->va, s.init_va);
	const struct fmt_symbol *versioned = &o.b->symbols.data[5];
	assert_true(str_is(versioned->name, "puts"));
	assert_true(str_is(versioned->version, "GLIBC_2.34"));
	assert_false(versioned->is_default_version);
	/* Only the dynamic table makes imports. */
	assert_int_equal(o.b->imports.cnt, 2);
	close_sample(&o, &s);
}

static void test_facts(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct elfsample s;
		struct opened o = open_sample(&kinds[i], &s);
		assert_int_equal(o.b->needed.cnt, 1);
		assert_true(str_is(o.b->needed.data[0], "libc.so.6"));
		assert_true(str_is(o.b->soname, "libsample.so.1"));
		/* DT_INIT and the one entry of the init array that is a pointer. */
		assert_int_equal(o.b->code_starts.cnt, 2);
		assert_int_equal(o.b->code_starts.data[0], s.init_va);
		assert_int_equal(o.b->code_starts.data[1], s.init_va);
		assert_int_equal(o.b->got.va, s.slot_puts_va);
		assert_int_equal(o.b->findings.list.cnt, 0);
		close_sample(&o, &s);
	}
}

static uint64_t word_at(const struct fmt_bin *b, uint64_t va)
{
	uint8_t raw[8];
	unsigned len = b->bits / 8u;
	assert_int_equal(fmt_read(b, va, raw, len), len);
	uint64_t v = 0;
	for (unsigned i = 0; i < len; i++)
		v |= (uint64_t)raw[b->is_be ? len - 1 - i : i] << (8 * i);
	return v;
}

static void test_relocations(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct elfsample s;
		struct opened o = open_sample(&kinds[i], &s);
		const struct fmt_bin *b = o.b;
		unsigned word = kinds[i].bits / 8;
		assert_int_equal(b->relocs.cnt, 7);
		assert_int_equal(b->imports.cnt, 2);
		const struct fmt_segment *ext = &b->segments.data[b->segments.cnt - 1];
		assert_true(str_is(ext->name, "extern"));
		assert_int_equal(ext->mem_len, 32);
		assert_int_equal(ext->perm, 0);
		assert_int_equal(b->imports.data[0].va, ext->va);
		assert_int_equal(b->imports.data[1].va, ext->va + 16);
		assert_int_equal(b->imports.data[0].got_va, s.slot_puts_va);
		assert_int_equal(b->imports.data[1].got_va, s.slot_environ_va);

		assert_int_equal(find_reloc(b, s.slot_puts_va)->kind, FMT_REL_JUMP_SLOT);
		assert_int_equal(find_reloc(b, s.slot_puts_va)->import, 0);
		assert_int_equal(word_at(b, s.slot_puts_va), ext->va);
		assert_int_equal(find_reloc(b, s.slot_environ_va)->kind, FMT_REL_IMPORT);
		assert_int_equal(word_at(b, s.slot_environ_va), ext->va + 16);
		assert_int_equal(find_reloc(b, s.pointer_va)->kind, FMT_REL_POINTER);
		assert_int_equal(word_at(b, s.pointer_va), s.func_va);
		assert_int_equal(word_at(b, s.abs_va), s.data_va + 4);
		assert_int_equal(word_at(b, s.relr_va), s.func_va);
		assert_int_equal(word_at(b, s.relr_va + word), s.init_va);
		assert_int_equal(find_reloc(b, s.relr_va + word)->kind, FMT_REL_POINTER);
		close_sample(&o, &s);
	}
}

/* Reads that begin or end inside a patched word, and reads over the end of the segment. */
static void test_read_partial(void **state)
{
	struct elfsample s;
	struct opened o = open_sample(&kinds[0], &s);
	uint8_t whole[16];
	uint8_t part[16];
	assert_int_equal(fmt_read(o.b, s.pointer_va, whole, 16), 16);
	for (uint64_t skip = 0; skip < 16; skip++) {
		for (size_t len = 0; skip + len <= 16; len++) {
			assert_int_equal(fmt_read(o.b, s.pointer_va + skip, part, len), len);
			assert_memory_equal(part, whole + skip, len);
		}
	}
	const struct fmt_segment *data = fmt_segment_at(o.b, s.data_va);
	assert_int_equal(fmt_read(o.b, data->va + data->mem_len - 3, part, 16), 3);
	assert_int_equal(fmt_read(o.b, data->va + data->mem_len, part, 16), 0);
	assert_int_equal(fmt_read(o.b, UINT64_MAX, part, 16), 0);
	close_sample(&o, &s);
}

/* Counts that lie are cut to what the segment can back. */
static void test_lying_counts(void **state)
{
	static const uint32_t lies[] = {0xffffffff, 0x7fffffff, 100000};
	for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
		struct elfsample_opts opts = kinds[0];
		opts.has_chain_lie = true;
		opts.chain_lie = lies[i];
		struct elfsample s;
		struct opened o = open_sample(&opts, &s);
		assert_int_equal(o.b->symbols.cnt,
				 4); /* DT_HASH is not believed, the relocations are */
		close_sample(&o, &s);
	}
}

static void test_lying_tables(void **state)
{
	static const struct {
		uint64_t tag, value;
		const char *finding;
	} rows[] = {
		{DT_STRTAB, 0xdead0000, "dynamic string table"},
		{DT_STRSZ, UINT64_MAX, "but the segment has"},
		{DT_SYMTAB, 0xdead0000, "dynamic symbols"},
		{DT_SYMTAB, 1, "dynamic symbols"},
		{DT_RELA, UINT64_MAX - 7, "DT_RELA"},
		{DT_RELASZ, UINT64_MAX, "DT_RELA"},
		{DT_JMPREL, 8, "DT_JMPREL"},
		{DT_PLTRELSZ, 1ull << 40, "DT_JMPREL"},
		{36, 0x1234, "DT_RELR"},
		{35, 1ull << 50, "DT_RELR"},
		{DT_VERNEED, 0x1234, "needed versions"},
		{DT_VERDEF, 0x1234, "defined versions"},
		{DT_INIT, 0x22000, "DT_INIT"},
		{DT_INIT_ARRAY, 0x999999, "DT_INIT_ARRAY"},
		{DT_INIT_ARRAYSZ, UINT64_MAX, "DT_INIT_ARRAY"},
		{DT_NEEDED, 0x7fffffff, "library name"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct elfsample s;
		struct opened o = open_lie(rows[i].tag, rows[i].value, &s);
		if (!has_finding(o.b, rows[i].finding))
			fail_msg("row %zu: no finding \"%s\"", i, rows[i].finding);
		/* One broken table takes no other with it. */
		assert_int_equal(o.b->segments.data[0].va, 0x11000);
		assert_true(rows[i].tag == DT_NEEDED || rows[i].tag == DT_STRTAB ||
			    o.b->needed.cnt == 1);
		close_sample(&o, &s);
	}
}

/* What the run-time linker does not look at may lie without hiding anything. */
static void test_unread_counts(void **state)
{
	static const struct {
		uint64_t tag, value;
	} rows[] = {{DT_STRSZ, 1},
		    {DT_STRSZ, 0},
		    {DT_VERNEEDNUM, 0},
		    {DT_VERDEFNUM, 0x7fffffff},
		    {DT_VERNEEDNUM, UINT64_MAX}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct elfsample s;
		struct opened o = open_lie(rows[i].tag, rows[i].value, &s);
		assert_int_equal(o.b->symbols.cnt, 4);
		assert_true(str_is(o.b->needed.data[0], "libc.so.6"));
		assert_true(str_is(o.b->symbols.data[0].version, "GLIBC_2.34"));
		assert_true(str_is(o.b->symbols.data[2].version, "OWN_1"));
		assert_int_equal(o.b->findings.list.cnt, 0);
		close_sample(&o, &s);
	}
}

/* A hash table that counts fewer symbols than relocations use. */
static void test_short_hash(void **state)
{
	struct elfsample_opts opts = kinds[0];
	opts.has_chain_lie = true;
	opts.chain_lie = 1;
	struct elfsample s;
	struct opened o = open_sample(&opts, &s);
	assert_int_equal(o.b->symbols.cnt, 4);
	assert_int_equal(o.b->imports.cnt, 2);
	close_sample(&o, &s);
}

/* The loader's tables: in order, apart, none over code or data of the program, whatever the lengths
 * claim. */
static void check_tables(const struct opened *o, const struct elfsample *s)
{
	const struct fmt_table *t = o->b->tables.data;
	unsigned strtab_cnt = 0;
	for (size_t i = 0; i < o->b->tables.cnt; i++) {
		uint64_t end = t[i].va + t[i].len;
		assert_true(t[i].len > 0 && end > t[i].va);
		assert_true(!i || t[i - 1].va + t[i - 1].len <= t[i].va);
		assert_false(s->func_va >= t[i].va && s->func_va < end);
		assert_false(s->data_va >= t[i].va && s->data_va < end);
		if (t[i].kind == FMT_SEC_STRTAB) {
			char text[512] = {0};
			uint64_t len = t[i].len < sizeof(text) ? t[i].len : sizeof(text);
			strtab_cnt++;
			assert_int_equal(fmt_read(o->b, t[i].va, text, len), len);
			assert_non_null(memmem(text, len, "libc.so.6", 9));
		}
	}
	assert_int_equal(strtab_cnt, 1);
}

static void test_loader_tables(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct elfsample s;
		struct opened o = open_sample(&kinds[i], &s);
		check_tables(&o, &s);
		close_sample(&o, &s);
	}
	static const uint64_t lies[] = {0, UINT32_MAX, UINT64_MAX};
	for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
		struct elfsample s;
		struct opened o = open_lie(DT_STRSZ, lies[i], &s);
		check_tables(&o, &s);
		close_sample(&o, &s);
	}
}

/* A hundred thousand relocations of one word: few are kept, the last decides. */
static void test_repeated_relocs(void **state)
{
	enum { RELOCS = 100000 };
	struct elfw w;
	elfw_init(&w, 64, false, ET_DYN, EM_X86_64);
	struct buf rela = {0};
	struct buf dyn = {0};
	for (int64_t i = 0; i < RELOCS; i++)
		elfw_rela(&w, &rela,
			  (struct elfw_reloc){
				  .off = 0x100000, .type = R_X86_64_RELATIVE, .addend = i});
	uint64_t off = elfw_add(&w, rela.data, rela.len, 0x1000);
	elfw_dyn(&w, &dyn, DT_RELA, 0x100000);
	elfw_dyn(&w, &dyn, DT_RELASZ, rela.len);
	elfw_dyn(&w, &dyn, DT_NULL, 0);
	uint64_t dyn_off = elfw_add(&w, dyn.data, dyn.len, 8);
	uint64_t len = w.file.len - off;
	elfw_add_seg(&w, (struct elfw_seg){PT_LOAD, PF_R | PF_W, off, 0x100000, len, len, 0x1000});
	elfw_add_seg(&w, (struct elfw_seg){PT_DYNAMIC, PF_R, dyn_off, 0x100000 + dyn_off - off,
					   dyn.len, dyn.len, 8});
	elfw_finish(&w);
	struct opened o = open_good(w.file.data, w.file.len);
	assert_int_equal(o.b->relocs.cnt, 16);
	assert_int_equal(word_at(o.b, 0x100000), RELOCS - 1);
	assert_true(has_finding(o.b, "same place"));
	close_opened(&o);
	buf_fini(&rela);
	buf_fini(&dyn);
	elfw_fini(&w);
}

/* A version list that points at itself or leaves the segment, with the largest counts. */
static void test_version_cycles(void **state)
{
	static const uint32_t nexts[] = {1, 4, 16, 0x7fffffff, 0xffffffff};
	for (size_t i = 0; i < ARRAY_LEN(nexts); i++) {
		struct elfsample_opts opts = kinds[0];
		opts.override_tag = DT_VERNEEDNUM;
		opts.override_value = UINT64_MAX;
		struct elfsample s;
		elfsample_library(&opts, &s);
		/* The text segment read as version lists: any step lands in something. */
		for (size_t at = s.text_off; at + 4 <= s.text_off + 64; at += 4)
			memcpy(s.w.file.data + at, &nexts[i], 4);
		/* And DT_VERNEED into that. */
		for (size_t at = s.dyn_off; at + 16 <= s.w.file.len; at += 16) {
			uint64_t tag;
			memcpy(&tag, s.w.file.data + at, 8);
			if (tag == DT_VERNEED)
				memcpy(s.w.file.data + at + 8, &s.func_va, 8);
		}
		struct opened o = open_good(s.w.file.data, s.w.file.len);
		/* Small steps may come to a zero and end; long ones leave the segment. */
		assert_true(nexts[i] < 0x10000 || has_finding(o.b, "needed versions"));
		close_sample(&o, &s);
	}
}

static void test_dynamic_without_end(void **state)
{
	struct elfsample s;
	elfsample_library(&kinds[0], &s);
	/* The last entry of the table becomes another, and the segment ends with it. */
	const struct elfw_seg *data = &s.w.segs.data[1];
	uint64_t last = data->off + data->file_len - 16;
	s.w.file.data[last] = (char)DT_BIND_NOW;
	struct opened o = open_good(s.w.file.data, s.w.file.len);
	assert_true(has_finding(o.b, "has no end"));
	assert_int_equal(o.b->needed.cnt, 1);
	assert_int_equal(o.b->relocs.cnt, 7);
	close_sample(&o, &s);
}

/* One bit map of RELR stands for 63 words: a file of them must not cost 250 times its size. */
static void test_relr_bomb(void **state)
{
	enum { MAPS = 400000 };
	struct elfw w;
	elfw_init(&w, 64, false, ET_DYN, EM_X86_64);
	struct buf relr = {0};
	struct buf dyn = {0};
	elfw_u64(&w, &relr, 0x100000);
	for (size_t i = 0; i < MAPS; i++)
		elfw_u64(&w, &relr, i % 64 ? UINT64_MAX : 0x100000);
	uint64_t off = elfw_add(&w, relr.data, relr.len, 0x1000);
	elfw_dyn(&w, &dyn, 36, 0x100000);
	elfw_dyn(&w, &dyn, 35, relr.len);
	elfw_dyn(&w, &dyn, DT_NULL, 0);
	uint64_t dyn_off = elfw_add(&w, dyn.data, dyn.len, 8);
	uint64_t len = w.file.len - off;
	elfw_add_seg(&w, (struct elfw_seg){PT_LOAD, PF_R | PF_W, off, 0x100000, len, len, 0x1000});
	elfw_add_seg(&w, (struct elfw_seg){PT_DYNAMIC, PF_R, dyn_off, 0x100000 + dyn_off - off,
					   dyn.len, dyn.len, 8});
	elfw_finish(&w);
	struct opened o = open_good(w.file.data, w.file.len);
	assert_true(has_finding(o.b, "are read"));
	assert_true(o.b->relocs.cnt * sizeof(struct fmt_reloc) <= (16u << 20) + 4 * w.file.len);
	assert_true(o.b->relocs.cnt > 1000);
	close_opened(&o);
	buf_fini(&relr);
	buf_fini(&dyn);
	elfw_fini(&w);
}

/* Symbols of a separate table whose names are all the same long string. */
static void test_name_bomb(void **state)
{
	enum { SYMBOLS = 100000, NAME_LEN = 60000 };
	struct elfw w;
	elfw_init(&w, 64, false, ET_EXEC, EM_X86_64);
	uint64_t code = elfw_add(&w, "\xc3", 1, 0x1000);
	elfw_add_seg(&w, (struct elfw_seg){PT_LOAD, PF_R | PF_X, code, 0x400000, 1, 1, 0x1000});
	char *name = calloc(1, NAME_LEN + 2);
	assert_non_null(name);
	memset(name + 1, 'n', NAME_LEN);
	uint64_t str_off = elfw_add(&w, name, NAME_LEN + 2, 1);
	free(name);
	struct buf sym = {0};
	for (uint32_t i = 0; i < SYMBOLS; i++)
		elfw_symbol(&w, &sym,
			    (struct elfw_sym){.name = i ? 1 : 0, .shndx = SHN_ABS, .value = i});
	uint64_t sym_off = elfw_add(&w, sym.data, sym.len, 8);
	elfw_add_sec(&w, (struct elfw_sec){.name = ".symtab",
					   .type = SHT_SYMTAB,
					   .off = sym_off,
					   .len = sym.len,
					   .link = 2});
	elfw_add_sec(&w, (struct elfw_sec){.name = ".strtab",
					   .type = SHT_STRTAB,
					   .off = str_off,
					   .len = NAME_LEN + 2});
	elfw_finish(&w);
	struct opened o = open_good(w.file.data, w.file.len);
	assert_int_equal(o.b->symbols.cnt, SYMBOLS - 1);
	uint64_t total = 0;
	for (size_t i = 0; i < o.b->symbols.cnt; i++)
		total += o.b->symbols.data[i].name.len;
	assert_true(total <= (1u << 20) + 2 * w.file.len);
	assert_int_equal(o.b->symbols.data[0].name.len, NAME_LEN);
	assert_true(has_finding(o.b, "names overlap"));
	close_opened(&o);
	buf_fini(&sym);
	elfw_fini(&w);
}

static void test_types_of_program(void **state)
{
	struct elfsample s;
	/* A flag or a debugger's hook makes a shared object a program, but not when it has a
	 * library's name. */
	struct opened o = open_lie(DT_SONAME, 0, &s);
	assert_int_equal(o.b->type, FMT_TYPE_SHARED);
	close_sample(&o, &s);

	elfsample_library(&kinds[0], &s);
	for (size_t at = s.dyn_off; at + 16 <= s.w.file.len; at += 16) {
		uint64_t pair[2];
		memcpy(pair, s.w.file.data + at, 16);
		if (pair[0] == DT_SONAME) {
			pair[0] = DT_FLAGS_1;
			pair[1] = DF_1_PIE;
			memcpy(s.w.file.data + at, pair, 16);
		}
	}
	o = open_good(s.w.file.data, s.w.file.len);
	assert_int_equal(o.b->type, FMT_TYPE_PIE);
	close_sample(&o, &s);
}

int test_format_dynamic(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_symbols),
		cmocka_unit_test(test_static_symbols),
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_relocations),
		cmocka_unit_test(test_read_partial),
		cmocka_unit_test(test_lying_counts),
		cmocka_unit_test(test_lying_tables),
		cmocka_unit_test(test_unread_counts),
		cmocka_unit_test(test_short_hash),
		cmocka_unit_test(test_repeated_relocs),
		cmocka_unit_test(test_loader_tables),
		cmocka_unit_test(test_version_cycles),
		cmocka_unit_test(test_dynamic_without_end),
		cmocka_unit_test(test_relr_bomb),
		cmocka_unit_test(test_name_bomb),
		cmocka_unit_test(test_types_of_program),
	};
	return cmocka_run_group_tests_name("dynamic", tests, NULL, NULL);
}
