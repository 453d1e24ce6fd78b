/* SPDX-License-Identifier: Apache-2.0 */
/* The ELF reader: program headers as Linux maps them, section headers as hints. */
#include "test_format.h"

#include "lib/elfwriter.h"

#include <elf.h>
#include <stdio.h>

enum { PAGE = 0x1000 };

/* A program of x86-64 whose file has three pages: of 'A' (with the header), 'B' and 'C'. */
static void begin_program(struct elfw *w)
{
	char page[PAGE];
	elfw_init(w, 64, false, ET_EXEC, EM_X86_64);
	memset(page, 'A', sizeof(page));
	elfw_add(w, page, PAGE - w->file.len, 1);
	memset(page, 'B', sizeof(page));
	elfw_add(w, page, PAGE, 1);
	memset(page, 'C', sizeof(page));
	elfw_add(w, page, PAGE, 1);
	elfw_set(w, ELFW_ENTRY, 0x400000);
}

static struct opened finish_program(struct elfw *w)
{
	elfw_finish(w);
	return open_good(w->file.data, w->file.len);
}

static void load(struct elfw *w, uint64_t off, uint64_t va, uint64_t file_len, uint64_t mem_len)
{
	elfw_add_seg(w, (struct elfw_seg){PT_LOAD, PF_R | PF_X, off, va, file_len, mem_len, PAGE});
}

static char byte_at(const struct fmt_bin *b, uint64_t va)
{
	char ch = '?';
	return fmt_read(b, va, &ch, 1) == 1 ? ch : '-';
}

static void test_plain(void **state)
{
	struct elfw w;
	begin_program(&w);
	load(&w, 0x100, 0x400100, 0x500, 0x500);
	load(&w, 0x1000, 0x401000, 0x800, 0x3000);
	elfw_set(&w, ELFW_ENTRY, 0x400100);
	struct opened o = finish_program(&w);
	assert_int_equal(o.b->segments.cnt, 2);
	const struct fmt_segment *s = o.b->segments.data;
	assert_int_equal(s[0].va, 0x400100);
	assert_int_equal(s[0].mem_len, 0x500);
	assert_int_equal(s[0].file_off, 0x100);
	assert_true(str_is(s[1].name, "LOAD#1"));
	assert_int_equal(s[1].file_len, 0x800);
	assert_int_equal(s[1].mem_len, 0x3000);
	assert_int_equal(s[1].perm, FMT_R | FMT_X);
	assert_int_equal(byte_at(o.b, 0x401000), 'B');
	assert_int_equal(byte_at(o.b, 0x401800), 0);
	assert_int_equal(byte_at(o.b, 0x404000), '-');
	assert_int_equal(o.b->findings.list.cnt, 0);
	assert_int_equal(o.b->base_va, 0x400100);
	uint64_t off;
	uint64_t va;
	assert_true(fmt_va_to_off(o.b, 0x401010, &off));
	assert_int_equal(off, 0x1010);
	assert_false(fmt_va_to_off(o.b, 0x401800, &off));
	assert_true(fmt_off_to_va(o.b, 0x1010, &va));
	assert_int_equal(va, 0x401010);
	assert_false(fmt_off_to_va(o.b, 0x2800, &va));
	close_opened(&o);
	elfw_fini(&w);
}

/* The second mapping replaces the whole page it touches, also the part only the first one names. */
static void test_overlap_by_page(void **state)
{
	struct elfw w;
	begin_program(&w);
	load(&w, 0x0, 0x400000, 0x1800, 0x1800);
	load(&w, 0x2400, 0x401400, 0x100, 0x100);
	struct opened o = finish_program(&w);
	assert_int_equal(byte_at(o.b, 0x400fff), 'A');
	assert_int_equal(byte_at(o.b, 0x401000), 'C'); /* page of LOAD#1 */
	assert_int_equal(byte_at(o.b, 0x401400), 'C');
	assert_int_equal(byte_at(o.b, 0x4017ff), 'C');
	assert_int_equal(byte_at(o.b, 0x401800), '-');
	assert_true(has_finding(o.b, "segments overlap"));
	close_opened(&o);
	elfw_fini(&w);
}

/* Firmware is copied and not mapped: two segments in one page keep their own bytes. */
static void test_firmware_is_not_paged(void **state)
{
	for (int is_hosted = 0; is_hosted < 2; is_hosted++) {
		struct elfw w;
		begin_program(&w);
		elfw_set(&w, ELFW_MACHINE, EM_AARCH64);
		load(&w, 0x1000, 0x400000, 0x100, 0x100);
		load(&w, 0x2400, 0x400400, 0x100, 0x100);
		load(&w, 0, 0x400800, 0, 0x100);
		if (is_hosted)
			elfw_add_seg(&w,
				     (struct elfw_seg){PT_GNU_STACK, PF_R | PF_W, 0, 0, 0, 0, 16});
		struct opened o = finish_program(&w);
		assert_int_equal(byte_at(o.b, 0x400000), is_hosted ? 'C' : 'B');
		assert_int_equal(byte_at(o.b, 0x400400), 'C');
		assert_int_equal(byte_at(o.b, 0x400800), 0);
		close_opened(&o);
		elfw_fini(&w);
	}
}

/* The first one over the second in the table's order: the later wins although its address is lower.
 */
static void test_overlap_by_order(void **state)
{
	struct elfw w;
	begin_program(&w);
	load(&w, 0x2000, 0x401000, 0x1000, 0x1000);
	load(&w, 0x0, 0x400000, 0x2000, 0x2000);
	struct opened o = finish_program(&w);
	assert_int_equal(o.b->segments.cnt, 1);
	assert_true(str_is(o.b->segments.data[0].name, "LOAD#1"));
	assert_int_equal(byte_at(o.b, 0x401000), 'B');
	close_opened(&o);
	elfw_fini(&w);
}

/* Memory behind p_filesz is cleared to the end of its page and hides what an earlier mapping put
 * there. */
static void test_bss_hides_earlier(void **state)
{
	struct elfw w;
	begin_program(&w);
	load(&w, 0x0, 0x400000, 0x1000, 0x1000);
	load(&w, 0x2000, 0x400000, 0x10, 0x800);
	struct opened o = finish_program(&w);
	assert_int_equal(byte_at(o.b, 0x40000f), 'C');
	assert_int_equal(byte_at(o.b, 0x400010), 0);
	assert_int_equal(byte_at(o.b, 0x400900), 0);
	close_opened(&o);
	elfw_fini(&w);
}

/* Small hand-made programs begin in the page's slack, before p_vaddr or behind p_filesz. */
static void test_entry_in_slack(void **state)
{
	struct elfw w;
	begin_program(&w);
	load(&w, 0x80, 0x400080, 0x10, 0x10);
	elfw_set(&w, ELFW_ENTRY, 0x400200);
	struct opened o = finish_program(&w);
	assert_true(o.b->has_entry);
	assert_int_equal(byte_at(o.b, 0x400200), 'A');
	assert_int_equal(byte_at(o.b, 0x400000), 0x7f);
	assert_true(has_finding(o.b, "in the page of LOAD#0"));
	assert_false(has_finding(o.b, "overlap"));
	assert_int_equal(o.b->code_starts.cnt, 1);
	close_opened(&o);
	elfw_fini(&w);
}

/* A whole program in 45 bytes: the program header lies inside the ELF header, which the file does
 * not even finish. Linux runs such files (fields it does not check hold other things). */
static void test_tiny_program(void **state)
{
	static const uint8_t tiny[45] = {
		0x7f, 'E',  'L',  'F',	1, 0, 0, 0, /* EI_CLASS..; p_type PT_LOAD */
		0,    0,    0,	  0,		    /* p_offset */
		0,    0,    1,	  0,		    /* p_vaddr 0x10000 */
		2,    0,    3,	  0,		    /* e_type, e_machine; p_paddr */
		0x20, 0,    1,	  0,		    /* e_version; p_filesz */
		0x20, 0,    1,	  0,		    /* e_entry 0x10020; p_memsz */
		4,    0,    0,	  0,		    /* e_phoff; p_flags R */
		0x31, 0xc0, 0x40, 0xb3,		    /* e_shoff; p_align: the code begins */
		0x2a, 0xcd, 0x80, 0x90,		    /* e_flags */
		0x34, 0,			    /* e_ehsize */
		0x20, 0,    1,			    /* e_phentsize, e_phnum */
	};
	struct opened o = open_good(tiny, sizeof(tiny));
	assert_int_equal(o.b->bits, 32);
	assert_int_equal(o.b->machine, FMT_MACHINE_I386);
	assert_true(o.b->has_entry);
	assert_int_equal(o.b->entry_va, 0x10020);
	assert_int_equal(o.b->code_starts.cnt, 1);
	assert_int_equal(o.b->segments.data[0].va, 0x10000);
	assert_int_equal(o.b->segments.data[0].file_len, sizeof(tiny));
	uint8_t code[7];
	assert_int_equal(fmt_read(o.b, o.b->entry_va, code, sizeof(code)), sizeof(code));
	assert_memory_equal(code, tiny + 32, sizeof(code));
	assert_true(has_finding(o.b, "as if it were on Linux"));
	close_opened(&o);
}

static void test_lying_sizes(void **state)
{
	struct elfw w;
	begin_program(&w);
	load(&w, 0x0, 0x400000, 0x1000, 0x800);		/* more in the file than in memory */
	load(&w, 0x2000, 0x500000, 0x100000, 0x100000); /* past the end of the file */
	load(&w, 0x1000, UINT64_MAX - 0xfff, 0x1000, UINT64_MAX); /* past the end of addresses */
	load(&w, UINT64_MAX - 0xfff, 0x600000, 0x10, 0x10);	  /* offset nowhere */
	load(&w, 0x1000, 0x700000, 0, 0);			  /* nothing */
	struct opened o = finish_program(&w);
	assert_int_equal(fmt_segment_at(o.b, 0x400000)->mem_len, 0x800);
	const struct fmt_segment *cut = fmt_segment_at(o.b, 0x500000);
	assert_int_equal(cut->mem_len, 0x100000);
	assert_int_equal(cut->file_len, w.file.len - 0x2000);
	assert_int_equal(byte_at(o.b, 0x5fffff), 0);
	assert_int_equal(byte_at(o.b, 0x600000), 0);
	assert_int_equal(byte_at(o.b, UINT64_MAX - 0xfff), 'B');
	assert_null(fmt_segment_at(o.b, 0x700000));
	assert_true(has_finding(o.b, "more bytes in the file than in memory"));
	assert_true(has_finding(o.b, "past the end of the file"));
	assert_true(has_finding(o.b, "past the end of the address space"));
	close_opened(&o);
	elfw_fini(&w);
}

static void test_incongruent_offset(void **state)
{
	struct elfw w;
	begin_program(&w);
	load(&w, 0x1004, 0x400000, 0x100, 0x100);
	struct opened o = finish_program(&w);
	assert_int_equal(o.b->segments.data[0].file_off, 0x1004);
	assert_int_equal(o.b->segments.data[0].file_len, 0x100);
	assert_true(has_finding(o.b, "Linux refuses"));
	close_opened(&o);
	elfw_fini(&w);
}

/* Many mappings over each other: bounded, and the last one is on top. */
static void test_many_loads(void **state)
{
	enum { LOADS = 60000 };
	struct elfw w;
	begin_program(&w);
	for (uint32_t i = 0; i < LOADS; i++)
		load(&w, (i % 3) * PAGE, 0x400000 + (i % 977) * PAGE, PAGE, PAGE * (1 + i % 13));
	load(&w, 0x2000, 0x400000, PAGE, PAGE);
	elfw_set(&w, ELFW_PHNUM, PN_XNUM);
	w.secs.data[0].info = (uint32_t)w.segs.cnt;
	elfw_add_sec(&w, (struct elfw_sec){.name = ".x", .type = SHT_PROGBITS});
	struct opened o = finish_program(&w);
	assert_int_equal(byte_at(o.b, 0x400000), 'C');
	assert_true(has_finding(o.b, "segments overlap"));
	close_opened(&o);
	elfw_fini(&w);
}

static void test_program_header_counts(void **state)
{
	struct elfw w;
	begin_program(&w);
	load(&w, 0x0, 0x400000, 0x1000, 0x1000);
	elfw_set(&w, ELFW_PHNUM, 0xfffe);
	struct opened o = finish_program(&w);
	assert_true(has_finding(o.b, "the file holds"));
	assert_int_equal(o.b->segments.data[0].va, 0x400000);
	close_opened(&o);
	elfw_fini(&w);

	begin_program(&w);
	load(&w, 0x0, 0x400000, 0x1000, 0x1000);
	elfw_set(&w, ELFW_PHOFF, UINT64_MAX - 3);
	elfw_finish(&w);
	o = open_bytes(w.file.data, w.file.len);
	assert_non_null(o.err);
	assert_int_equal(o.err->kind, ERR_BAD_INPUT);
	close_opened(&o);
	elfw_fini(&w);
}

static void test_broken_sections_do_not_matter(void **state)
{
	static const struct {
		enum elfw_field field;
		uint64_t value;
	} lies[] = {{ELFW_SHOFF, 0xdeadbeef00},	 {ELFW_SHOFF, 1},     {ELFW_SHOFF, UINT64_MAX},
		    {ELFW_SHNUM, 0xffff},	 {ELFW_SHNUM, 0},     {ELFW_SHSTRNDX, 0xfff0},
		    {ELFW_SHSTRNDX, SHN_XINDEX}, {ELFW_SHENTSIZE, 0}, {ELFW_SHENTSIZE, 0xffff},
		    {ELFW_SHENTSIZE, 1}};
	for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
		struct elfw w;
		begin_program(&w);
		load(&w, 0x0, 0x400000, 0x1000, 0x1000);
		elfw_add_sec(&w, (struct elfw_sec){.name = ".text",
						   .type = SHT_PROGBITS,
						   .flags = SHF_ALLOC,
						   .addr = 0x400000,
						   .len = 0x100});
		elfw_set(&w, lies[i].field, lies[i].value);
		struct opened o = finish_program(&w);
		assert_int_equal(o.b->segments.cnt, 1);
		assert_true(o.b->findings.list.cnt > 0 || lies[i].value == 0);
		close_opened(&o);
		elfw_fini(&w);
	}
}

static void test_extended_section_numbers(void **state)
{
	enum { SECTIONS = 70000 };
	struct elfw w;
	begin_program(&w);
	load(&w, 0x0, 0x400000, 0x1000, 0x1000);
	for (uint32_t i = 1; i < SECTIONS; i++)
		elfw_add_sec(&w, (struct elfw_sec){.name = i == 69000 ? ".far"
							   : i == 1   ? ".near"
								      : NULL,
						   .type = SHT_PROGBITS,
						   .flags = SHF_ALLOC,
						   .addr = 0x400000,
						   .len = 1});
	elfw_set(&w, ELFW_SHNUM, 0);
	elfw_set(&w, ELFW_SHSTRNDX, SHN_XINDEX);
	w.secs.data[0].len = SECTIONS + 1;
	w.secs.data[0].link = SECTIONS; /* where elfw_finish() puts the names */
	struct opened o = finish_program(&w);
	assert_int_equal(o.b->sections.cnt, SECTIONS);
	assert_non_null(fmt_section_named(o.b, ".far"));
	assert_ptr_equal(fmt_section_named(o.b, ".far"), &o.b->sections.data[68999]);
	assert_non_null(fmt_section_at(o.b, 0x400000));
	close_opened(&o);
	elfw_fini(&w);
}

/* A million sections that all give one long name: names run out, memory and time do not. */
static void test_million_sections(void **state)
{
	enum { SECTIONS = 1000000, NAME_LEN = 200000 };
	struct elfw w;
	elfw_init(&w, 32, true, ET_EXEC, EM_PPC);
	uint64_t code = elfw_add(&w, "code", 4, 0x1000);
	elfw_add_seg(&w, (struct elfw_seg){PT_LOAD, PF_R | PF_X, code, 0x10000, 4, 4, PAGE});
	char *name = malloc(NAME_LEN);
	assert_non_null(name);
	memset(name, 'n', NAME_LEN);
	uint64_t name_off = elfw_add(&w, name, NAME_LEN, 1);
	free(name);
	elfw_add_sec(&w, (struct elfw_sec){.type = SHT_STRTAB, .off = name_off, .len = NAME_LEN});
	for (uint32_t i = 0; i < SECTIONS; i++)
		elfw_add_sec(&w, (struct elfw_sec){.name_off = i % NAME_LEN,
						   .type = SHT_PROGBITS,
						   .flags = SHF_ALLOC,
						   .addr = i * 3,
						   .len = 100});
	elfw_set(&w, ELFW_SHNUM, 0);
	elfw_set(&w, ELFW_SHSTRNDX, 1);
	w.secs.data[0].len = w.secs.cnt + 1;
	struct opened o = finish_program(&w);
	assert_int_equal(o.b->sections.cnt, SECTIONS + 2);
	assert_true(has_finding(o.b, "names overlap or have no end"));
	assert_non_null(fmt_section_at(o.b, 30));
	close_opened(&o);
	elfw_fini(&w);
}

static void test_sections_in_place_of_segments(void **state)
{
	struct elfw w;
	begin_program(&w);
	elfw_add_sec(&w, (struct elfw_sec){.name = ".text",
					   .type = SHT_PROGBITS,
					   .flags = SHF_ALLOC | SHF_EXECINSTR,
					   .addr = 0x400000,
					   .off = 0x1000,
					   .len = 0x20});
	elfw_add_sec(&w, (struct elfw_sec){.name = ".bss",
					   .type = SHT_NOBITS,
					   .flags = SHF_ALLOC | SHF_WRITE,
					   .addr = 0x500000,
					   .len = 0x40});
	struct opened o = finish_program(&w);
	assert_int_equal(o.b->segments.cnt, 2);
	assert_true(str_is(o.b->segments.data[0].name, ".text"));
	assert_int_equal(byte_at(o.b, 0x400000), 'B');
	assert_int_equal(o.b->segments.data[1].file_len, 0);
	assert_true(has_finding(o.b, "the sections are taken instead"));
	close_opened(&o);
	elfw_fini(&w);
}

static void test_section_kinds(void **state)
{
	static const struct {
		const char *name;
		uint32_t type;
		uint64_t flags;
		enum fmt_sec_kind kind;
	} rows[] = {
		{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, FMT_SEC_CODE},
		{".init", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, FMT_SEC_INIT},
		{".plt.sec", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, FMT_SEC_PLT},
		{".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, FMT_SEC_DATA},
		{".rodata", SHT_PROGBITS, SHF_ALLOC, FMT_SEC_RODATA},
		{".got", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, FMT_SEC_GOT},
		{".bss", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, FMT_SEC_BSS},
		{".eh_frame", SHT_PROGBITS, SHF_ALLOC, FMT_SEC_EH_FRAME},
		{".debug_info", SHT_PROGBITS, 0, FMT_SEC_DEBUG},
		{".zdebug_info", SHT_PROGBITS, 0, FMT_SEC_DEBUG},
		{".gopclntab", SHT_PROGBITS, SHF_ALLOC, FMT_SEC_GOPCLNTAB},
		{".comment", SHT_PROGBITS, 0, FMT_SEC_OTHER},
		{".rela.dyn", SHT_RELA, SHF_ALLOC, FMT_SEC_RELOC},
		{".note.x", SHT_NOTE, SHF_ALLOC, FMT_SEC_NOTE},
	};
	struct elfw w;
	begin_program(&w);
	load(&w, 0x0, 0x400000, 0x1000, 0x1000);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		elfw_add_sec(&w, (struct elfw_sec){.name = rows[i].name,
						   .type = rows[i].type,
						   .flags = rows[i].flags,
						   .addr = 0x400000 + i * 16,
						   .off = i * 16,
						   .len = 16});
	struct opened o = finish_program(&w);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct fmt_section *s = fmt_section_named(o.b, rows[i].name);
		assert_non_null(s);
		assert_int_equal(s->kind, rows[i].kind);
		if (s->is_alloc)
			assert_ptr_equal(fmt_section_at(o.b, 0x400000 + i * 16 + 5), s);
		else
			assert_int_equal(s->va, 0);
	}
	assert_true(fmt_section_named(o.b, ".zdebug_info")->is_compressed);
	assert_null(fmt_section_named(o.b, ".missing"));
	close_opened(&o);
	elfw_fini(&w);
}

static void test_entry_outside(void **state)
{
	struct elfw w;
	begin_program(&w);
	load(&w, 0x0, 0x400000, 0x1000, 0x1000);
	elfw_set(&w, ELFW_ENTRY, 0x123456789);
	struct opened o = finish_program(&w);
	assert_false(o.b->has_entry);
	assert_int_equal(o.b->code_starts.cnt, 0);
	assert_true(has_finding(o.b, "is not mapped"));
	close_opened(&o);
	elfw_fini(&w);
}

static void test_core(void **state)
{
	struct elfw w;
	elfw_init(&w, 64, false, ET_CORE, EM_X86_64);
	struct buf notes = {0};
	for (uint32_t thread = 0; thread < 3; thread++) {
		uint8_t status[336] = {0};
		status[32] = (uint8_t)(100 + thread);
		status[112 + 16 * 8 + 1] = (uint8_t)(0x10 + thread);
		elfw_note(&w, &notes, "CORE", NT_PRSTATUS, status, sizeof(status));
		elfw_note(&w, &notes, "LINUX", 0x202, status, 8);
	}
	elfw_note(&w, &notes, "CORE", NT_PRSTATUS, "short", 5);
	uint64_t note_off = elfw_add(&w, notes.data, notes.len, 4);
	char page[PAGE];
	memset(page, 'M', sizeof(page));
	uint64_t off = elfw_add(&w, page, PAGE, PAGE);
	elfw_add_seg(&w, (struct elfw_seg){PT_NOTE, 0, note_off, 0, notes.len, 0, 4});
	load(&w, off, 0x400000, PAGE, 2 * PAGE);
	load(&w, 0, 0xffffffffff600000, 0, PAGE);
	buf_fini(&notes);
	struct opened o = finish_program(&w);
	assert_int_equal(o.b->type, FMT_TYPE_CORE);
	assert_int_equal(o.b->threads.cnt, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(o.b->threads.data[i].len, 100 + i);
		assert_int_equal(o.b->threads.data[i].va, (0x10 + i) << 8);
	}
	assert_true(has_finding(o.b, "NT_PRSTATUS is too short"));
	assert_int_equal(byte_at(o.b, 0x400fff), 'M');
	assert_int_equal(byte_at(o.b, 0x401000), 0);
	assert_non_null(fmt_segment_at(o.b, 0xffffffffff600000));
	assert_false(o.b->has_entry);
	close_opened(&o);
	elfw_fini(&w);
}

static void test_notes_and_interp(void **state)
{
	struct elfw w;
	begin_program(&w);
	struct buf notes = {0};
	elfw_note(&w, &notes, "GNU", NT_GNU_BUILD_ID, "0123456789abcdefghij", 20);
	elfw_note(&w, &notes, "GNU", NT_GNU_ABI_TAG, "\0\0\0\0\3\0\0\0\2\0\0\0\0\0\0\0", 16);
	elfw_u32(&w, &notes, 4);
	elfw_u32(&w, &notes, 0x7fffffff); /* a note longer than its table */
	elfw_u32(&w, &notes, 1);
	elfw_u32(&w, &notes, 0);
	uint64_t note_off = elfw_add(&w, notes.data, notes.len, 4);
	uint64_t interp_off = elfw_add(&w, "/lib/ld.so", 11, 1);
	uint64_t link_off = elfw_add(&w, "prog.debug\0\0\x78\x56\x34\x12", 16, 4);
	load(&w, 0x0, 0x400000, 0x1000, 0x1000);
	elfw_add_seg(&w, (struct elfw_seg){PT_NOTE, PF_R, note_off, 0, notes.len, notes.len, 4});
	elfw_add_seg(&w, (struct elfw_seg){PT_INTERP, PF_R, interp_off, 0, 11, 11, 1});
	elfw_add_sec(&w, (struct elfw_sec){.name = ".gnu_debuglink",
					   .type = SHT_PROGBITS,
					   .off = link_off,
					   .len = 16});
	buf_fini(&notes);
	struct opened o = finish_program(&w);
	assert_int_equal(o.b->build_id_len, 20);
	assert_memory_equal(o.b->build_id, "0123456789abcdefghij", 20);
	assert_string_equal(o.b->os_name, "linux");
	assert_true(str_is(o.b->interp, "/lib/ld.so"));
	assert_true(str_is(o.b->debuglink, "prog.debug"));
	assert_int_equal(o.b->debuglink_crc, 0x12345678);
	assert_true(has_finding(o.b, "past the end of its table"));
	close_opened(&o);
	elfw_fini(&w);
}

/* Sixty thousand segments that all show the whole file would be gigabytes to look at. */
static void test_one_page_many_times(void **state)
{
	enum { TIMES = 1000 };
	struct elfw w;
	begin_program(&w);
	for (uint64_t i = 0; i < TIMES; i++)
		load(&w, 0, 0x400000 + i * 0x4000, 3 * PAGE, 3 * PAGE);
	struct opened o = finish_program(&w);
	uint64_t file_len = 0;
	for (size_t i = 0; i < o.b->segments.cnt; i++)
		file_len += o.b->segments.data[i].file_len;
	assert_int_equal(o.b->segments.cnt, TIMES);
	assert_true(file_len <= (1 << 20) + w.file.len);
	assert_true(file_len > 1 << 20);
	assert_true(has_finding(o.b, "again and again"));
	assert_int_equal(byte_at(o.b, 0x401000), 'B');
	close_opened(&o);
	elfw_fini(&w);
}

int test_format_segments(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_overlap_by_page),
		cmocka_unit_test(test_firmware_is_not_paged),
		cmocka_unit_test(test_overlap_by_order),
		cmocka_unit_test(test_bss_hides_earlier),
		cmocka_unit_test(test_entry_in_slack),
		cmocka_unit_test(test_tiny_program),
		cmocka_unit_test(test_lying_sizes),
		cmocka_unit_test(test_incongruent_offset),
		cmocka_unit_test(test_many_loads),
		cmocka_unit_test(test_one_page_many_times),
		cmocka_unit_test(test_program_header_counts),
		cmocka_unit_test(test_broken_sections_do_not_matter),
		cmocka_unit_test(test_extended_section_numbers),
		cmocka_unit_test(test_million_sections),
		cmocka_unit_test(test_sections_in_place_of_segments),
		cmocka_unit_test(test_section_kinds),
		cmocka_unit_test(test_entry_outside),
		cmocka_unit_test(test_core),
		cmocka_unit_test(test_notes_and_interp),
	};
	return cmocka_run_group_tests_name("segments", tests, NULL, NULL);
}
