/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/*
 * Code discovery on x86-64 programs written here byte by byte: a segment of code at 0x1000,
 * read-only data at 0x2000, writable data at 0x3000. Each test says what is at which address and
 * asks what was found.
 */
#define PART 0x800
#define TEXT 0x1000
#define DATA 0x2000
#define RW 0x3000

struct fixture {
	uint8_t bytes[3 * PART];
	struct fmt_bin bin;
	struct image_data d;
	struct dbg_fdes fdes;
	struct par *par;
	struct analysis_in in;
	uint64_t pc; /* where asm_() writes */
	bool is_a64;
};

static void setup(struct fixture *f, enum fmt_type type)
{
	memset(f, 0, sizeof(*f));
	memset(f->bytes, 0xcc, PART);
	struct fmt_bin *b = &f->bin;
	b->bytes = f->bytes;
	b->bytes_len = sizeof(f->bytes);
	b->bits = 64;
	b->type = type;
	b->machine = FMT_MACHINE_X86_64;
	b->has_entry = true;
	b->entry_va = TEXT;
	b->base_va = type == FMT_TYPE_EXEC ? TEXT : 0;
	struct fmt_segment segs[] = {
		{.va = TEXT,
		 .mem_len = PART,
		 .file_off = 0,
		 .file_len = PART,
		 .perm = FMT_R | FMT_X},
		{.va = DATA, .mem_len = PART, .file_off = PART, .file_len = PART, .perm = FMT_R},
		{.va = RW,
		 .mem_len = PART,
		 .file_off = 2 * PART,
		 .file_len = PART,
		 .perm = FMT_R | FMT_W},
	};
	for (size_t i = 0; i < ARRAY_LEN(segs); i++)
		assert_true(VEC_PUSH(&b->segments, segs[i]));
	assert_true(VEC_PUSH(&b->code_starts, (uint64_t)TEXT));
	f->par = par_new(1);
	assert_non_null(f->par);
	f->pc = TEXT;
}

static void teardown(struct fixture *f)
{
	image_data_fini(&f->d);
	VEC_FREE(&f->bin.segments);
	VEC_FREE(&f->bin.sections);
	VEC_FREE(&f->bin.symbols);
	VEC_FREE(&f->bin.relocs);
	VEC_FREE(&f->bin.code_starts);
	findings_fini(&f->bin.findings);
	arena_fini(&f->bin.arena);
	VEC_FREE(&f->fdes.list);
	par_free(f->par);
}

static uint8_t *at(struct fixture *f, uint64_t va)
{
	return f->bytes + (va / 0x1000 - 1) * PART + va % 0x1000;
}

static void org(struct fixture *f, uint64_t va)
{
	f->pc = va;
}

static void emit(struct fixture *f, const char *bytes, size_t len)
{
	assert_true(f->pc % 0x1000 + len <= PART);
	memcpy(at(f, f->pc), bytes, len);
	f->pc += len;
}
#define EMIT(f, s) emit(f, s, sizeof(s) - 1)

static void emit_u32(struct fixture *f, uint64_t v)
{
	uint32_t w = (uint32_t)v;
	emit(f, (const char *)&w, 4);
}

/* An instruction that ends in a displacement from its own end. */
static void emit_rel(struct fixture *f, const char *op, size_t len, uint64_t to)
{
	emit(f, op, len);
	emit_u32(f, to - (f->pc + 4));
}
#define CALL(f, to) emit_rel(f, "\xe8", 1, to)
#define JMP(f, to) emit_rel(f, "\xe9", 1, to)
#define JA(f, to) emit_rel(f, "\x0f\x87", 2, to)
#define LEA_RAX(f, to) emit_rel(f, "\x48\x8d\x05", 3, to)
#define LEA_RDI(f, to) emit_rel(f, "\x48\x8d\x3d", 3, to)
#define RET(f) EMIT(f, "\xc3")
#define PUSH_RBP(f) EMIT(f, "\x55")
#define POP_RBP(f) EMIT(f, "\x5d")

static void add_fde(struct fixture *f, uint64_t va, uint64_t len, bool is_fragment)
{
	assert_true(VEC_PUSH(&f->fdes.list,
			     (struct dbg_fde){.va = va, .len = len, .is_fragment = is_fragment}));
}

static struct err *run_threads(struct fixture *f, unsigned threads)
{
	static const uint8_t no_hash[32];
	par_free(f->par);
	f->par = par_new(threads);
	image_data_fini(&f->d);
	assert_null(image_data_from_fmt(&f->bin, no_hash, &f->d));
	f->in.fdes = &f->fdes;
	f->in.par = f->par;
	assert_null(arch_get(f->is_a64 ? ARCH_ID_A64 : ARCH_ID_X86_64, &f->in.arch));
	return analysis_run(&f->in, &f->d);
}

static void run(struct fixture *f)
{
	assert_null(run_threads(f, 1));
}

static const struct image_func *func_at(const struct fixture *f, uint64_t va)
{
	uint32_t loc = space_loc(&f->d.space, va);
	for (size_t i = 0; i < f->d.funcs.cnt; i++)
		if (f->d.funcs.data[i].loc == loc)
			return &f->d.funcs.data[i];
	return NULL;
}

static bool has_xref(const struct fixture *f, uint64_t from, uint64_t to, enum image_xref_kind kind)
{
	for (size_t i = 0; i < f->d.xrefs.cnt; i++) {
		const struct image_xref *x = &f->d.xrefs.data[i];
		if (x->kind == kind && x->from == space_loc(&f->d.space, from) &&
		    x->to == space_loc(&f->d.space, to))
			return true;
	}
	return false;
}

static unsigned xrefs_from(const struct fixture *f, uint64_t from)
{
	unsigned n = 0;
	for (size_t i = 0; i < f->d.xrefs.cnt; i++)
		n += f->d.xrefs.data[i].from == space_loc(&f->d.space, from);
	return n;
}

static bool is_block(const struct fixture *f, uint64_t va)
{
	return bits_get(f->d.block_bits, space_loc(&f->d.space, va));
}

static void calls_make_functions(void **state)
{
	struct fixture f;
	(void)state;
	setup(&f, FMT_TYPE_PIE);
	PUSH_RBP(&f);
	CALL(&f, TEXT + 0x40);
	POP_RBP(&f);
	RET(&f);
	org(&f, TEXT + 0x40);
	EMIT(&f, "\x85\xff\x74\x02"); /* test edi,edi; je +2 */
	EMIT(&f, "\x31\xc0");	      /* xor eax,eax */
	RET(&f);
	run(&f);
	assert_int_equal(f.d.funcs.cnt, 2);
	const struct image_func *start = func_at(&f, TEXT), *callee = func_at(&f, TEXT + 0x40);
	assert_non_null(start);
	assert_non_null(callee);
	assert_int_equal(start->source, IMAGE_SRC_ENTRY);
	assert_int_equal(start->size_len, 8);
	assert_int_equal(start->callee_cnt, 1);
	assert_int_equal(callee->source, IMAGE_SRC_CALL);
	assert_int_equal(callee->caller_cnt, 1);
	assert_int_equal(callee->block_cnt, 3);
	assert_int_equal(callee->flags & IMAGE_FN_NORETURN, 0);
	assert_true(is_block(&f, TEXT + 0x40) && is_block(&f, TEXT + 0x44) &&
		    is_block(&f, TEXT + 0x46));
	assert_false(is_block(&f, TEXT + 6));
	assert_true(has_xref(&f, TEXT + 1, TEXT + 0x40, IMAGE_XREF_CALL));
	assert_true(has_xref(&f, TEXT + 0x42, TEXT + 0x46, IMAGE_XREF_JUMP));
	teardown(&f);
}

/* What follows a call that never comes back is not a part of the caller; the reasons are kept. */
static void noreturn_is_propagated(void **state)
{
	struct fixture f;
	(void)state;
	setup(&f, FMT_TYPE_PIE);
	PUSH_RBP(&f);
	CALL(&f, TEXT + 0x20);
	org(&f, TEXT + 0x10); /* returns, unlike what it stands behind */
	EMIT(&f, "\x31\xc0\xc3");
	org(&f, TEXT + 0x20);
	PUSH_RBP(&f);
	CALL(&f, TEXT + 0x40);
	EMIT(&f, "\x06\x07"); /* no instruction */
	org(&f, TEXT + 0x40);
	EMIT(&f, "\xeb\xfe"); /* jmp to itself */
	run(&f);
	const struct image_func *loop = func_at(&f, TEXT + 0x40),
				*middle = func_at(&f, TEXT + 0x20), *start = func_at(&f, TEXT);
	assert_non_null(loop);
	assert_non_null(middle);
	assert_non_null(start);
	assert_int_equal(loop->why_noreturn, IMAGE_NORETURN_LOOP);
	assert_int_equal(middle->why_noreturn, IMAGE_NORETURN_CALLEE);
	assert_int_equal(start->why_noreturn, IMAGE_NORETURN_CALLEE);
	assert_int_equal(start->size_len, 6);
	assert_int_equal(middle->size_len, 6);
	teardown(&f);
}

/* Bytes that do not decode behind a call prove nothing about the callee. */
static void bad_bytes_prove_nothing(void **state)
{
	struct fixture f;
	(void)state;
	setup(&f, FMT_TYPE_PIE);
	PUSH_RBP(&f);
	EMIT(&f, "\x06\x06");
	run(&f);
	const struct image_func *start = func_at(&f, TEXT);
	assert_non_null(start);
	assert_int_equal(start->why_noreturn, IMAGE_RETURNS);
	teardown(&f);
}

/* cmp edi,3; ja; lea rax,[table]; movsxd rdx,[rax+rdi*4]; add rdx,rax; jmp rdx, with the low bound
 * subtracted. */
static void build_switch(struct fixture *f)
{
	EMIT(f, "\x83\xef\x05"); /* sub edi,5 */
	EMIT(f, "\x83\xff\x03"); /* cmp edi,3 */
	JA(f, TEXT + 0x60);
	LEA_RAX(f, DATA);
	EMIT(f, "\x89\xff");		 /* mov edi,edi */
	EMIT(f, "\x48\x63\x14\xb8");	 /* movsxd rdx,[rax+rdi*4] */
	EMIT(f, "\x48\x01\xc2\xff\xe2"); /* add rdx,rax; jmp rdx */
	for (unsigned i = 0; i < 5; i++) {
		org(f, TEXT + 0x40 + 8 * i);
		EMIT(f, "\xb8\x01\x00\x00\x00\xc3"); /* mov eax,1; ret */
	}
	static const unsigned order[] = {2, 0, 1, 0};
	org(f, DATA);
	for (unsigned i = 0; i < 4; i++)
		emit_u32(f, TEXT + 0x40 + 8 * order[i] - DATA);
	emit_u32(f, TEXT + 0x48 - DATA); /* would be good, but lies behind the bound */
}

static void a_bounded_table_is_resolved(void **state)
{
	struct fixture f;
	(void)state;
	setup(&f, FMT_TYPE_PIE);
	build_switch(&f);
	run(&f);
	assert_int_equal(f.d.tables.cnt, 1);
	const struct image_table *t = &f.d.tables.data[0];
	assert_int_equal(t->target_cnt, 4);
	assert_int_equal(t->table_loc, space_loc(&f.d.space, DATA));
	assert_int_equal(t->entry_bytes, 4);
	assert_int_equal(t->low, 5);
	assert_true(t->is_relative && !t->is_guessed);
	static const uint64_t want[] = {TEXT + 0x50, TEXT + 0x40, TEXT + 0x48, TEXT + 0x40};
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(space_va(&f.d.space, f.d.targets.data[t->target_first + i]),
				 want[i]);
	uint64_t jump = space_va(&f.d.space, t->jump_loc);
	assert_true(has_xref(&f, jump, TEXT + 0x50, IMAGE_XREF_JUMP));
	assert_true(has_xref(&f, jump, DATA, IMAGE_XREF_READ));
	assert_int_equal(f.d.funcs.cnt, 1);
	assert_int_equal(f.d.funcs.data[0].flags & IMAGE_FN_INDIRECT, 0);
	teardown(&f);
}

/* What clang makes of a switch: ldrb of an entry picked by w10, times 4, from the code behind. */
static void build_a64_switch(struct fixture *f, unsigned table)
{
	emit_u32(f, 0xb000000d);	       /* adrp x13,DATA */
	emit_u32(f, 0x910001ad | table << 10); /* add x13,x13,#table */
	emit_u32(f, 0x1000008b);	       /* adr x11,.+16 */
	emit_u32(f, 0x386a69ac);	       /* ldrb w12,[x13,x10] */
	emit_u32(f, 0x8b0c096b);	       /* add x11,x11,x12,lsl #2 */
	emit_u32(f, 0xd61f0160);	       /* br x11 */
	for (unsigned i = 0; i < 5; i++) {
		emit_u32(f, 0x52800020); /* mov w0,#1 */
		emit_u32(f, 0xd65f03c0); /* ret */
	}
}

static void setup_a64(struct fixture *f)
{
	static const uint8_t entries[] = {2, 0, 4, 2, 6, 6};
	setup(f, FMT_TYPE_PIE);
	f->is_a64 = true;
	f->bin.machine = FMT_MACHINE_A64;
	memset(f->bytes, 0, PART);
	memcpy(at(f, DATA), entries, sizeof(entries));
}

/* A jump on a register leaves the flags to the one behind it. */
static void a_bound_outlives_another_branch(void **state)
{
	struct fixture f;
	(void)state;
	setup_a64(&f);
	emit_u32(&f, 0x5100080a); /* sub w10,w0,#2 */
	emit_u32(&f, 0x71000d5f); /* cmp w10,#3 */
	emit_u32(&f, 0x34000201); /* cbz w1,.+64 */
	emit_u32(&f, 0x540001e8); /* b.hi .+60 */
	build_a64_switch(&f, 0);
	run(&f);
	assert_int_equal(f.d.tables.cnt, 1);
	assert_int_equal(f.d.tables.data[0].target_cnt, 4);
	assert_false(f.d.tables.data[0].is_guessed);
	teardown(&f);
}

static void a_bit_field_bounds_a_table(void **state)
{
	struct fixture f;
	(void)state;
	setup_a64(&f);
	emit_u32(&f, 0x5301080a); /* ubfx w10,w0,#1,#2 */
	build_a64_switch(&f, 0);
	run(&f);
	assert_int_equal(f.d.tables.cnt, 1);
	assert_int_equal(f.d.tables.data[0].target_cnt, 4);
	assert_false(f.d.tables.data[0].is_guessed);
	teardown(&f);
}

/* Without a bound a table ends where the next begins. */
static void a_guess_ends_at_the_next_table(void **state)
{
	struct fixture f;
	(void)state;
	setup_a64(&f);
	build_a64_switch(&f, 0);
	org(&f, TEXT + 0x100);
	build_a64_switch(&f, 3);
	assert_true(VEC_PUSH(&f.bin.code_starts, (uint64_t)TEXT + 0x100));
	run(&f);
	assert_int_equal(f.d.tables.cnt, 2);
	assert_int_equal(f.d.tables.data[0].target_cnt, 3);
	assert_true(f.d.tables.data[0].is_guessed);
	teardown(&f);
}

/* Where there are many jumps a guess may not run on for long, but the next table still ends it. */
static void a_long_guess_ends_at_the_next_table(void **state)
{
	struct fixture f;
	(void)state;
	setup_a64(&f);
	build_a64_switch(&f, 0);
	org(&f, TEXT + 0x100);
	build_a64_switch(&f, 3);
	for (unsigned i = 0; i < 16; i++)
		emit_u32(&f, 0xd61f0160); /* br x11 */
	assert_true(VEC_PUSH(&f.bin.code_starts, (uint64_t)TEXT + 0x100));
	run(&f);
	assert_int_equal(f.d.tables.cnt, 1);
	assert_int_equal(f.d.tables.data[0].target_cnt, 3);
	teardown(&f);
}

/* An entry that is no instruction of the function makes the match wrong, not the table shorter. */
static void a_bad_entry_refuses_a_bounded_table(void **state)
{
	struct fixture f;
	(void)state;
	setup(&f, FMT_TYPE_PIE);
	build_switch(&f);
	org(&f, DATA + 8);
	emit_u32(&f, TEXT + 0x41 - DATA);
	run(&f);
	assert_int_equal(f.d.tables.cnt, 0);
	assert_int_not_equal(f.d.funcs.data[0].flags & IMAGE_FN_INDIRECT, 0);
	teardown(&f);
}

static void a_tail_call_is_no_part(void **state)
{
	struct fixture f;
	(void)state;
	setup(&f, FMT_TYPE_PIE);
	PUSH_RBP(&f);
	CALL(&f, TEXT + 0x40);
	POP_RBP(&f);
	JMP(&f, TEXT + 0x40);
	org(&f, TEXT + 0x40);
	EMIT(&f, "\x31\xc0\xc3");
	org(&f, TEXT + 0x80); /* a thunk, known by its unwind entry */
	JMP(&f, TEXT + 0x40);
	add_fde(&f, TEXT + 0x80, 5, false);
	run(&f);
	const struct image_func *start = func_at(&f, TEXT), *thunk = func_at(&f, TEXT + 0x80);
	assert_non_null(start);
	assert_int_equal(start->size_len, 12);
	assert_int_not_equal(start->flags & IMAGE_FN_TAIL, 0);
	assert_non_null(thunk);
	assert_int_not_equal(thunk->flags & IMAGE_FN_THUNK, 0);
	assert_int_equal(thunk->thunk_to, space_loc(&f.d.space, TEXT + 0x40));
	assert_int_equal(func_at(&f, TEXT + 0x40)->caller_cnt, 2);
	teardown(&f);
}

/* Cold code with an unwind entry of its own belongs to the function that jumps there. */
static void a_fragment_joins_its_function(void **state)
{
	struct fixture f;
	(void)state;
	setup(&f, FMT_TYPE_PIE);
	PUSH_RBP(&f);
	EMIT(&f, "\x85\xff"); /* test edi,edi */
	JA(&f, TEXT + 0x101);
	POP_RBP(&f);
	RET(&f);
	add_fde(&f, TEXT, 11, false);
	org(&f, TEXT + 0x101);
	EMIT(&f, "\x31\xc0"); /* xor eax,eax */
	JMP(&f, TEXT + 9);
	add_fde(&f, TEXT + 0x101, 7, true);
	run(&f);
	assert_int_equal(f.d.funcs.cnt, 1);
	assert_int_equal(f.d.funcs.data[0].range_cnt, 2);
	assert_int_not_equal(f.d.funcs.data[0].flags & IMAGE_FN_SPLIT, 0);
	assert_int_equal(f.d.func_ranges.data[1].loc, space_loc(&f.d.space, TEXT + 0x101));
	teardown(&f);
}

/* Cold code may lie right before the function, with nothing or only padding between: a function begins where it is entered. */
static void a_fragment_may_lie_before_its_function(void **state)
{
	(void)state;
	for (unsigned pad = 0; pad <= 11; pad += 11) {
		struct fixture f;
		setup(&f, FMT_TYPE_PIE);
		EMIT(&f, "\x48\x83\xec\x08"); /* sub rsp,8 */
		CALL(&f, TEXT + 0x40 + pad);
		EMIT(&f, "\x48\x83\xc4\x08"); /* add rsp,8 */
		RET(&f);
		add_fde(&f, TEXT, 14, false);
		org(&f, TEXT + 0x3b);
		EMIT(&f, "\x31\xc0\xf4"); /* xor eax,eax; hlt */
		add_fde(&f, TEXT + 0x3b, 3, true);
		org(&f, TEXT + 0x3e);
		EMIT(&f, "\x66\x90"); /* nop */
		for (unsigned i = 0; i < pad; i++)
			EMIT(&f, "\x90");
		PUSH_RBP(&f);
		EMIT(&f, "\x85\xff"); /* test edi,edi */
		JA(&f, TEXT + 0x3b);
		POP_RBP(&f);
		RET(&f);
		add_fde(&f, TEXT + 0x40 + pad, 11, false);
		run(&f);
		assert_int_equal(f.d.funcs.cnt, 2);
		assert_non_null(func_at(&f, TEXT + 0x40 + pad));
		assert_int_equal(func_at(&f, TEXT + 0x40 + pad)->range_cnt, 2);
		teardown(&f);
	}
}

/* Assembly that states its frame behind the landing mark: one function, and it begins at the mark. */
static void a_mark_belongs_to_its_function(void **state)
{
	struct fixture f;
	(void)state;
	setup(&f, FMT_TYPE_PIE);
	PUSH_RBP(&f);
	CALL(&f, TEXT + 0x40);
	POP_RBP(&f);
	RET(&f);
	add_fde(&f, TEXT, 8, false);
	org(&f, TEXT + 0x40);
	EMIT(&f, "\xf3\x0f\x1e\xfa\x31\xc0\xc3"); /* endbr64; xor eax,eax; ret */
	add_fde(&f, TEXT + 0x44, 3, false);
	run(&f);
	assert_int_equal(f.d.funcs.cnt, 2);
	assert_null(func_at(&f, TEXT + 0x44));
	assert_int_equal(func_at(&f, TEXT + 0x40)->size_len, 7);
	teardown(&f);
}

/* Data between functions puts the sweep out of step; where control comes, it is put right. */
static void data_in_code_is_stepped_over(void **state)
{
	struct fixture f;
	(void)state;
	setup(&f, FMT_TYPE_PIE);
	EMIT(&f, "\xeb\x02");	      /* jmp over two bytes */
	EMIT(&f, "\x48\xb8");	      /* which would eat ten */
	EMIT(&f, "\x31\xc0\x31\xd2"); /* xor eax,eax; xor edx,edx */
	RET(&f);
	run(&f);
	assert_int_equal(f.d.funcs.cnt, 1);
	assert_true(bits_get(f.d.item_bits, space_loc(&f.d.space, TEXT + 4)));
	assert_true(bits_get(f.d.item_bits, space_loc(&f.d.space, TEXT + 6)));
	assert_true(is_block(&f, TEXT + 4));
	teardown(&f);
}

/* mov eax,0x1040 holds a number in a position-independent file and an address in one that is not.
 */
static void immediates_are_addresses_only_where_they_can_be(void **state)
{
	static const enum fmt_type types[] = {FMT_TYPE_PIE, FMT_TYPE_EXEC};
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct fixture f;
		setup(&f, types[i]);
		EMIT(&f, "\xb8\x40\x30\x00\x00"); /* mov eax,0x3040 */
		EMIT(&f, "\xba\x08\x00\x00\x00"); /* mov edx,8 */
		RET(&f);
		run(&f);
		assert_int_equal(has_xref(&f, TEXT, RW + 0x40, IMAGE_XREF_OFFSET),
				 types[i] == FMT_TYPE_EXEC);
		assert_int_equal(xrefs_from(&f, TEXT + 5), 0);
		teardown(&f);
	}
}

static void pointers_lead_to_functions(void **state)
{
	struct fixture f;
	(void)state;
	setup(&f, FMT_TYPE_PIE);
	LEA_RDI(&f, TEXT + 0x40); /* taken by an operand */
	RET(&f);
	org(&f, TEXT + 0x40);
	EMIT(&f, "\x31\xc0\xc3");
	org(&f, TEXT + 0x60); /* taken by a relocation */
	EMIT(&f, "\x31\xc0\x90\xc3");
	struct fmt_reloc rel[] = {
		{.va = RW,
		 .value = TEXT + 0x60,
		 .target = TEXT + 0x60,
		 .import = UINT32_MAX,
		 .kind = FMT_REL_POINTER,
		 .width = 8},
		{.va = RW + 8,
		 .value = TEXT + 0x62,
		 .target = TEXT + 0x62,
		 .import = UINT32_MAX,
		 .kind = FMT_REL_POINTER,
		 .width = 8}, /* the middle of it: a label */
	};
	for (size_t i = 0; i < ARRAY_LEN(rel); i++)
		assert_true(VEC_PUSH(&f.bin.relocs, rel[i]));
	run(&f);
	assert_int_equal(f.d.funcs.cnt, 3);
	assert_int_equal(func_at(&f, TEXT + 0x40)->source, IMAGE_SRC_POINTER);
	assert_int_equal(func_at(&f, TEXT + 0x60)->source, IMAGE_SRC_RELOC);
	teardown(&f);
}

/* In a gap a frame makes a function; code that needs another's registers does not. */
static void gaps_need_evidence(void **state)
{
	struct fixture f;
	(void)state;
	setup(&f, FMT_TYPE_PIE);
	EMIT(&f, "\x31\xc0\xc3");
	org(&f, TEXT + 0x40);
	EMIT(&f, "\x55\x48\x89\xe5\x31\xc0\x5d\xc3"); /* push rbp; mov rbp,rsp; ...; ret */
	EMIT(&f, "\x48\x89\xdf");		      /* mov rdi,rbx: a landing pad */
	CALL(&f, TEXT);
	EMIT(&f, "\xeb\xfe");
	org(&f, TEXT + 0x80);
	EMIT(&f, "\x06\x06\x06\x06"); /* no code */
	run(&f);
	const struct image_func *framed = func_at(&f, TEXT + 0x40);
	assert_non_null(framed);
	assert_int_equal(framed->source, IMAGE_SRC_PROLOGUE);
	assert_null(func_at(&f, TEXT + 0x48));
	assert_null(func_at(&f, TEXT + 0x80));
	assert_int_equal(f.d.funcs.cnt, 2);
	teardown(&f);
}

/* Tables between functions are no code, whatever a piece of them looks like. */
static void tables_in_gaps_are_data(void **state)
{
	struct fixture f;
	(void)state;
	setup(&f, FMT_TYPE_PIE);
	struct fmt_section text = {.name = {.s = ".text", .len = 5},
				   .va = TEXT,
				   .mem_len = PART,
				   .file_len = PART,
				   .perm = FMT_R | FMT_X,
				   .is_alloc = true};
	assert_true(VEC_PUSH(&f.bin.sections, text));
	EMIT(&f, "\x31\xc0\xc3");
	uint32_t x = 1;
	for (unsigned i = 0x40; i < 0x640; i++) {
		x = x * 1664525 + 1013904223;
		*at(&f, TEXT + i) = (uint8_t)(x >> 24);
	}
	org(&f, TEXT + 0x680);
	EMIT(&f, "\x55\x48\x89\xe5\x31\xc0\x5d\xc3");
	run(&f);
	assert_int_equal(f.d.funcs.cnt, 2);
	assert_non_null(func_at(&f, TEXT + 0x680));
	teardown(&f);
}

/* What an operand leads to may be a text or a table in the midst of the code. */
static void pointers_lead_to_data(void **state)
{
	struct fixture f;
	(void)state;
	setup(&f, FMT_TYPE_PIE);
	LEA_RDI(&f, TEXT + 0x40);
	LEA_RDI(&f, TEXT + 0x80);
	EMIT(&f, "\x48\x8b\x05"); /* mov rax,[rip+...]: the third is read, and decodes */
	emit_u32(&f, TEXT + 0xc0 - (f.pc + 4));
	LEA_RDI(&f, TEXT + 0xc0);
	RET(&f);
	org(&f, TEXT + 0x40);
	EMIT(&f, "rc4(8x,int)\0");
	org(&f, TEXT + 0x80);
	EMIT(&f, "\x06\x07\x0e\x31\xc0\x16\x17\x31\xc0\x1e\x1f\xc3");
	org(&f, TEXT + 0xc0);
	EMIT(&f, "\x31\xc0\xc3");
	run(&f);
	assert_int_equal(f.d.funcs.cnt, 1);
	teardown(&f);
}

/* Padding that traps ends a function, even before code that uses what only others set. */
static void traps_part_functions(void **state)
{
	struct fixture f;
	(void)state;
	setup(&f, FMT_TYPE_PIE);
	EMIT(&f, "\x31\xc0\xc3");
	org(&f, TEXT + 0x40);
	EMIT(&f, "\x49\x8b\x5d\x10\xc3"); /* mov rbx,[r13+0x10]; ret */
	EMIT(&f, "\x66\x2e\x0f\x1f\x84\0\0\0\0\0\x90"); /* no-operations to 0x50 */
	EMIT(&f, "\x49\x8b\x5d\x10\xc3");
	run(&f);
	assert_non_null(func_at(&f, TEXT + 0x40));
	assert_null(func_at(&f, TEXT + 0x50));
	teardown(&f);
}

static void names_do_not_return(void **state)
{
	(void)state;
	static const char *const yes[] = {"abort",
					  "__stack_chk_fail",
					  "_Unwind_Resume",
					  "exit",
					  "longjmp",
					  "runtime.gopanic",
					  "_ZN4core9panicking5panic17h0123456789abcdefE",
					  "_ZSt20__throw_length_errorPKc"};
	static const char *const no[] = {
		"",    "abor",	 "abort2", "atexit",
		"exi", "printf", "error",  "_ZN3std9panicking3try17h0123456789abcdefE"};
	for (size_t i = 0; i < ARRAY_LEN(yes); i++)
		assert_true(code_name_is_noreturn(yes[i], strlen(yes[i])));
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		assert_false(code_name_is_noreturn(no[i], strlen(no[i])));
}

/* Code over many chunks of the sweep, full of instructions that cross their borders. */
static void threads_change_nothing(void **state)
{
	(void)state;
	enum { LEN = 300000 };
	static uint8_t code[LEN];
	uint64_t seed = 88172645463325252u;
	for (size_t i = 0; i < LEN; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		/* Mostly one long instruction that holds others, so that starts in it run out of
		 * step. */
		static const uint8_t pattern[] = {0x48, 0xb8, 0x90, 0xc3, 0x0f, 0x1f,
						  0x48, 0x8b, 0x05, 0x10, 0xe8};
		code[i] = seed % 16 ? pattern[i % sizeof(pattern)] : (uint8_t)(seed >> 32);
	}
	struct fixture f;
	setup(&f, FMT_TYPE_PIE);
	f.bin.bytes = code;
	f.bin.bytes_len = LEN;
	f.bin.segments.cnt = 1;
	f.bin.segments.data[0].mem_len = f.bin.segments.data[0].file_len = LEN;
	struct buf want = {0};
	for (unsigned threads = 1; threads <= 7; threads += 3) {
		struct buf out = {0};
		assert_null(run_threads(&f, threads));
		assert_true(f.d.funcs.cnt > 10);
		assert_null(image_serialize(&f.d, &out));
		if (threads == 1) {
			want = out;
			continue;
		}
		assert_int_equal(out.len, want.len);
		assert_memory_equal(out.data, want.data, out.len);
		buf_fini(&out);
	}
	buf_fini(&want);
	teardown(&f);
}

static void cancelling_is_an_error(void **state)
{
	struct fixture f;
	atomic_bool cancel = true;
	(void)state;
	setup(&f, FMT_TYPE_PIE);
	RET(&f);
	f.in.cancel = &cancel;
	struct err *e = run_threads(&f, 1);
	assert_non_null(e);
	assert_int_equal(e->kind, ERR_CANCELLED);
	err_free(e);
	teardown(&f);
}

static void a_preview_follows_jumps(void **state)
{
	struct fixture f;
	uint32_t locs[16];
	(void)state;
	setup(&f, FMT_TYPE_PIE);
	EMIT(&f, "\xeb\x02\x06\x06\x31\xc0\xc3");
	run(&f);
	size_t n = analysis_preview(f.in.arch, &f.d.space, TEXT, locs, 16);
	assert_int_equal(n, 3);
	assert_int_equal(space_va(&f.d.space, locs[0]), TEXT);
	assert_int_equal(space_va(&f.d.space, locs[1]), TEXT + 4);
	assert_int_equal(space_va(&f.d.space, locs[2]), TEXT + 6);
	assert_int_equal(analysis_preview(f.in.arch, &f.d.space, TEXT, locs, 2), 2);
	assert_int_equal(analysis_preview(f.in.arch, &f.d.space, 0x999999, locs, 16), 0);
	teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_make_functions),
		cmocka_unit_test(noreturn_is_propagated),
		cmocka_unit_test(bad_bytes_prove_nothing),
		cmocka_unit_test(a_bounded_table_is_resolved),
		cmocka_unit_test(a_bad_entry_refuses_a_bounded_table),
		cmocka_unit_test(a_bound_outlives_another_branch),
		cmocka_unit_test(a_bit_field_bounds_a_table),
		cmocka_unit_test(a_guess_ends_at_the_next_table),
		cmocka_unit_test(a_long_guess_ends_at_the_next_table),
		cmocka_unit_test(a_tail_call_is_no_part),
		cmocka_unit_test(a_fragment_joins_its_function),
		cmocka_unit_test(a_fragment_may_lie_before_its_function),
		cmocka_unit_test(a_mark_belongs_to_its_function),
		cmocka_unit_test(data_in_code_is_stepped_over),
		cmocka_unit_test(immediates_are_addresses_only_where_they_can_be),
		cmocka_unit_test(pointers_lead_to_functions),
		cmocka_unit_test(gaps_need_evidence),
		cmocka_unit_test(tables_in_gaps_are_data),
		cmocka_unit_test(pointers_lead_to_data),
		cmocka_unit_test(traps_part_functions),
		cmocka_unit_test(names_do_not_return),
		cmocka_unit_test(threads_change_nothing),
		cmocka_unit_test(cancelling_is_an_error),
		cmocka_unit_test(a_preview_follows_jumps),
	};
	return cmocka_run_group_tests_name("analysis", tests, NULL, NULL);
}
