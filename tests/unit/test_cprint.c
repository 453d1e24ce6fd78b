/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Printed C against the interpreter: for each operation, kind and combination of widths that ir_check() accepts, a
 * function is built, printed, compiled with the rest and run on boundary and random values; what it leaves must be
 * what the interpreter leaves. So are control flow, repeated string operations and the line map.
 */
#include "base/arena.h"
#include "cprint/cprint.h"
#include "ir/ir_interp.h"
#include "live/verify/verify.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* --- a machine with registers of every width ------------------------------------------------------------------- */
static const struct ir_loc toy_locs[] = {
	{"a1", IR_W1, IR_LOC_FLAG},  {"a8", IR_W8, IR_LOC_GPR},	  {"a16", IR_W16, IR_LOC_GPR}, {"a32", IR_W32, IR_LOC_GPR},
	{"a64", IR_W64, IR_LOC_GPR}, {"a80", IR_W80, IR_LOC_X87}, {"a128", IR_W128, IR_LOC_VEC},
	{"b1", IR_W1, IR_LOC_FLAG},  {"b8", IR_W8, IR_LOC_GPR},	  {"b16", IR_W16, IR_LOC_GPR}, {"b32", IR_W32, IR_LOC_GPR},
	{"b64", IR_W64, IR_LOC_GPR}, {"b80", IR_W80, IR_LOC_X87}, {"b128", IR_W128, IR_LOC_VEC},
	{"c1", IR_W1, IR_LOC_FLAG},  {"c8", IR_W8, IR_LOC_GPR},	  {"c16", IR_W16, IR_LOC_GPR}, {"c32", IR_W32, IR_LOC_GPR},
	{"c64", IR_W64, IR_LOC_GPR}, {"c80", IR_W80, IR_LOC_X87}, {"c128", IR_W128, IR_LOC_VEC},
	{"sp", IR_W64, IR_LOC_GPR},
};
enum { WIDTHS = 7, SP = 3 * WIDTHS, LOCS = SP + 1 };
static const struct ir_machine toy = {
	.name = "toy", .locs = toy_locs, .loc_cnt = LOCS, .sp_loc = SP, .addr_width = IR_W64, .calls_push = true,
};

/* The same in C, its fields in the order of the locations. */
static const char PRELUDE[] =
	"struct scry_toy {\n"
	"#define REGS(p) uint1_t p##1; uint8_t p##8; uint16_t p##16; uint32_t p##32; uint64_t p##64; uint80_t p##80; "
	"uint128_t p##128;\n"
	"REGS(a) REGS(b) REGS(c) uint64_t sp; uintptr_t pc, image;\n};\n"
	"static void toy_leave(struct scry_toy *m, uintptr_t pc) { m->pc = pc; }\n"
	"#define scry_leave toy_leave\n";

struct regs {
	uint8_t r1, r8;
	uint16_t r16;
	uint32_t r32;
	uint64_t r64;
	unsigned __int128 r80, r128;
};

struct state {
	struct regs a, b, c;
	uint64_t sp;
	uintptr_t pc, image;
};

static unsigned loc_of(unsigned operand, enum ir_width w)
{
	for (unsigned i = 0; i < WIDTHS; i++)
		if (toy_locs[i].width == w)
			return operand * WIDTHS + i;
	fail_msg("no location of width %u", ir_bits(w));
	return 0;
}

static uint64_t rng(void)
{
	static uint64_t s = 0x9e3779b97f4a7c15;
	s ^= s << 13;
	s ^= s >> 7;
	s ^= s << 17;
	return s;
}

/* Values where carries, signs and NaNs are, else random. */
static uint64_t pick64(void)
{
	static const uint64_t edges[] = {0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 65, 127, 128, 0x7f, 0x80, 0xff,
					 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, INT64_MAX,
					 (uint64_t)1 << 63, UINT64_MAX, 0x7f800000, 0x7f800001, 0x7fc00000, 0xff800000,
					 0xffc00001, 0x3f800000, 0x3f000000, 0x3fc00000, 0xbf000000, 0x4b000000, 0x4effffff,
					 0x4f000000, 0xcf000000, 0x7ff0000000000000, 0x7ff0000000000001, 0x7ff8000000000000,
					 0xfff0000000000000, 0xfff8000000000001, 0x3ff0000000000000, 0x3fe0000000000000,
					 0x3ff8000000000000, 0xc004000000000000, 0x4330000000000000, 0x43e0000000000000,
					 0xc3e0000000000000, 0x41dfffffffc00000};
	uint64_t r = rng();
	switch (r >> 60) {
	case 0:
	case 1:
		return rng() & 0xff;
	case 2:
	case 3:
		return (uint64_t)(r & 0xffffffff) << 32 | (rng() & 0xffffffff);
	case 4:
		return ((uint64_t)1 << (r & 63)) - (r >> 8 & 1);
	case 5:
		return edges[r % 38] | edges[rng() % 38] << 32;
	default:
		return edges[(r >> 3) % (sizeof(edges) / sizeof(edges[0]))];
	}
}

static void fill(struct regs *r)
{
	uint64_t lo = pick64(), hi = pick64();
	r->r1 = rng() & 1;
	r->r8 = (uint8_t)lo;
	r->r16 = (uint16_t)lo;
	r->r32 = (uint32_t)lo;
	r->r64 = lo;
	r->r128 = (unsigned __int128)hi << 64 | pick64();
	/* A long double: a double widened, so that no encoding is one the x87 refuses. */
	double d;
	memcpy(&d, &lo, sizeof(d));
	long double wide = d;
	r->r80 = 0;
	memcpy(&r->r80, &wide, 10);
}

static void *field(struct state *s, unsigned loc)
{
	if (loc == SP)
		return &s->sp;
	struct regs *r = loc / WIDTHS == 0 ? &s->a : loc / WIDTHS == 1 ? &s->b : &s->c;
	void *const fields[WIDTHS] = {&r->r1, &r->r8, &r->r16, &r->r32, &r->r64, &r->r80, &r->r128};
	return fields[loc % WIDTHS];
}

static unsigned field_len(unsigned loc)
{
	unsigned bits = ir_bits((enum ir_width)toy_locs[loc].width);
	return bits == 1 ? 1 : bits / 8;
}

static void to_vals(struct state *s, struct ir_val *vals)
{
	memset(vals, 0, LOCS * sizeof(*vals));
	for (unsigned i = 0; i < LOCS; i++)
		memcpy(vals[i].w, field(s, i), field_len(i));
}

/* --- functions of one operation ---------------------------------------------------------------------------------- */
struct fn {
	struct ir_func *f;
	char what[96];
};

static struct arena arena;
static struct fn *fns;
static size_t fn_cnt, fn_cap;

static struct fn *fn_add(struct ir_func *f)
{
	if (fn_cnt == fn_cap) {
		fn_cap = fn_cap * 2 + 64;
		fns = realloc(fns, fn_cap * sizeof(*fns));
		assert_non_null(fns);
	}
	fns[fn_cnt] = (struct fn){.f = f};
	return &fns[fn_cnt++];
}

static const enum ir_width widths[WIDTHS] = {IR_W1, IR_W8, IR_W16, IR_W32, IR_W64, IR_W80, IR_W128};

/* Adds the function a, b, c -> c's register of the result's width when ir_check() accepts it and C has a form. */
static void try_op(enum ir_op op, enum ir_kind kind, enum ir_width w, enum ir_width x, uint32_t aux, unsigned to)
{
	const char *sig = ir_op_info(op)->signature;
	struct ir_func *f = ir_func_new(&arena, &toy, 0x1000);
	assert_non_null(f);
	ir_block_begin(f, ir_block_new(f, 0x1000));
	ir_origin_set(f, 0x1000, 4);
	ir_ref ref[3] = {IR_REF_NONE, IR_REF_NONE, IR_REF_NONE};
	unsigned n = (unsigned)strlen(sig + 2);
	if (op == IR_VMAP)
		n = ir_lane_op(aux) == IR_FUN ? 1 : ir_lane_op(aux) == IR_FMA ? 3 : 2;
	for (unsigned i = 0; i < n; i++) {
		enum ir_width ow = sig[2 + i] == 'w' ? w : sig[2 + i] == '1' ? IR_W1 : sig[2 + i] == 'n' ? IR_W8 : x;
		if (op == IR_VCVT && i == 1)
			ref[i] = ir_const(f, IR_W8, to);
		else
			ref[i] = ir_emit(f, &(struct ir_rec){.op = IR_GET, .width = (uint8_t)ow, .a = IR_REF_NONE,
							     .b = IR_REF_NONE, .c = IR_REF_NONE, .aux = loc_of(i, ow)});
	}
	ir_ref r = ir_emit(f, &(struct ir_rec){.op = (uint8_t)op, .kind = (uint8_t)kind, .width = (uint8_t)w,
					       .a = ref[0], .b = ref[1], .c = ref[2], .aux = aux});
	ir_emit(f, &(struct ir_rec){.op = IR_PUT, .width = (uint8_t)w, .a = r, .b = IR_REF_NONE, .c = IR_REF_NONE,
				    .aux = loc_of(2, w)});
	ir_emit(f, &(struct ir_rec){.op = IR_IJMP, .a = ir_const(f, IR_W64, 0x1004), .b = IR_REF_NONE, .c = IR_REF_NONE});
	struct err *e = ir_check(f);
	if (e) {
		err_free(e);
		return;
	}
	struct fn *fn = fn_add(f);
	snprintf(fn->what, sizeof(fn->what), "%s %s w%u x%u aux 0x%x to %u", ir_op_info(op)->text, ir_kind_info(kind)->text,
		 ir_bits(w), ir_bits(x), aux, to);
}

/* Every value of `aux` worth trying. */
static void try_aux(enum ir_op op, enum ir_kind kind, enum ir_width w, enum ir_width x)
{
	static const unsigned offsets[] = {0, 1, 7, 8, 16, 31, 32, 64, 120};
	switch (op) {
	case IR_EXTRACT:
	case IR_INSERT:
		for (unsigned i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
			try_op(op, kind, w, x, offsets[i], 0);
		break;
	case IR_VMAP:
	case IR_VSHIFT:
		for (unsigned lop = 1; lop < IR_OP_COUNT; lop++)
			for (unsigned k = 0; k < IR_KIND_COUNT; k++)
				for (unsigned l = 1; l < WIDTHS; l++)
					if (ir_kind_fits((enum ir_op)lop, (enum ir_kind)k))
						try_op(op, kind, w, x, ir_lane((enum ir_op)lop, (enum ir_kind)k, widths[l]), 0);
		break;
	case IR_VCVT:
		for (unsigned lop = 1; lop < IR_OP_COUNT; lop++)
			for (unsigned k = 0; k < IR_KIND_COUNT; k++)
				for (unsigned l = 1; l < 5; l++)
					for (unsigned to = 8; to <= 64 && ir_kind_fits((enum ir_op)lop, (enum ir_kind)k); to *= 2)
						try_op(op, kind, w, x, ir_lane((enum ir_op)lop, (enum ir_kind)k, widths[l]), to);
		break;
	case IR_VMASK:
	case IR_VPACK:
	case IR_VMADD:
	case IR_VMULE:
		for (unsigned lane = 8; lane <= 64; lane *= 2)
			try_op(op, kind, w, x, lane, 0);
		break;
	default:
		try_op(op, kind, w, x, 0, 0);
	}
}

static void make_ops(void)
{
	for (unsigned op = 1; op < IR_OP_COUNT; op++) {
		const struct ir_op_info *info = ir_op_info((enum ir_op)op);
		bool has_x = strpbrk(info->signature + 2, "xv") != NULL;
		if (info->signature[0] == '-' || (info->effects & ~(unsigned)IR_TRAPS) || strpbrk(info->signature, "LBp") ||
		    op == IR_RES || op == IR_UNDEF || op == IR_VLANE)
			continue;
		for (unsigned k = 0; k < IR_KIND_COUNT; k++)
			for (unsigned w = 0; w < WIDTHS && ir_kind_fits((enum ir_op)op, (enum ir_kind)k); w++)
				for (unsigned x = 0; x < (has_x ? WIDTHS : 1); x++)
					try_aux((enum ir_op)op, (enum ir_kind)k, widths[w], has_x ? widths[x] : widths[w]);
	}
}

/* --- compiling ---------------------------------------------------------------------------------------------------- */
static char dir[] = "/tmp/scry-cprint-XXXXXX";

static int run(char *const argv[])
{
	pid_t pid = fork();
	if (!pid) {
		execvp(argv[0], argv);
		_exit(127);
	}
	int status = -1;
	return waitpid(pid, &status, 0) == pid ? status : -1;
}

static void *open_lib(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		fail_msg("%s", dlerror());
	return lib;
}

static void write_text(const char *path, const struct buf *text)
{
	FILE *out = fopen(path, "w");
	assert_non_null(out);
	fwrite(text->data, 1, text->len, out);
	assert_int_equal(fclose(out), 0);
}

static void *compile(const struct buf *text, const char *cc, const char *level)
{
	static unsigned n;
	char c[96], so[96];
	snprintf(c, sizeof(c), "%s/t%u.c", dir, n);
	snprintf(so, sizeof(so), "%s/t%u.so", dir, n++);
	write_text(c, text);
	const char *const argv[] = {cc,	     level,  "-std=gnu11", "-Wall", "-Wextra", "-Wno-unused",		"-Werror", "-shared",
				    "-fPIC", "-I",   SCRY_INCLUDE, "-o",    so,	       c,		"-lm",	   NULL};
	if (run((char *const *)argv))
		fail_msg("printed C does not compile with %s %s", cc, level);
	return open_lib(so);
}

static sigjmp_buf trapped;

static void on_trap(int sig)
{
	(void)sig;
	siglongjmp(trapped, 1);
}

static bool run_c(void (*fn)(struct state *), struct state *s)
{
	if (sigsetjmp(trapped, 1))
		return false;
	fn(s);
	return true;
}

/* Memory there is: one page of this process, as it was before the C ran, and everything else zero. */
static uint8_t real_mem[IR_PAGE_LEN] __attribute__((aligned(IR_PAGE_LEN))), first_mem[IR_PAGE_LEN], ir_mem_after[IR_PAGE_LEN];

static bool fill_page(void *ctx, struct ir_page *page)
{
	(void)ctx;
	if (page->va == (uintptr_t)real_mem)
		memcpy(page->bytes, first_mem, IR_PAGE_LEN);
	return true;
}

static bool run_ir(struct ir_func *f, struct state *s)
{
	static struct arena scratch;
	struct ir_val vals[LOCS];
	struct ir_mem mem = {.arena = &scratch, .fill = fill_page};
	struct ir_run r = {.func = f, .arena = &scratch, .locs = vals, .mem = &mem};
	to_vals(s, vals);
	ir_interp(&r);
	memcpy(ir_mem_after, ir_mem_page(&mem, (uintptr_t)real_mem)->bytes, IR_PAGE_LEN);
	for (unsigned i = 0; i < LOCS; i++)
		memcpy(field(s, i), vals[i].w, field_len(i));
	s->pc = r.va;
	arena_fini(&scratch);
	memset(&scratch, 0, sizeof(scratch));
	assert_true(r.exit == IR_EXIT_JUMP || r.exit == IR_EXIT_TRAP);
	return r.exit == IR_EXIT_JUMP;
}

static void dump(const char *what, const struct regs *r)
{
	print_message("%s: %u %02x %04x %08x %016llx 80:%04x%016llx 128:%016llx%016llx\n", what, r->r1, r->r8, r->r16, r->r32,
		      (unsigned long long)r->r64, (unsigned)(r->r80 >> 64), (unsigned long long)r->r80,
		      (unsigned long long)(r->r128 >> 64), (unsigned long long)r->r128);
}

static bool is_nan80(unsigned __int128 v)
{
	return (v >> 64 & 0x7fff) == 0x7fff && (uint64_t)v << 1;
}

static void compare_all(void *so, unsigned rounds)
{
	/* cmocka has handlers of its own for the time of a test. */
	const struct sigaction on = {.sa_handler = on_trap};
	sigaction(SIGILL, &on, NULL);
	sigaction(SIGFPE, &on, NULL);
	for (size_t i = 0; i < fn_cnt; i++) {
		char name[32];
		snprintf(name, sizeof(name), "f%zu", i);
		void (*fn)(struct state *);
		*(void **)&fn = dlsym(so, name);
		assert_non_null(fn);
		for (unsigned k = 0; k < rounds; k++) {
			struct state in, c, ir;
			memset(&in, 0, sizeof(in));
			fill(&in.a);
			fill(&in.b);
			fill(&in.c);
			in.sp = (uintptr_t)real_mem + IR_PAGE_LEN / 2;
			for (unsigned b = IR_PAGE_LEN / 2 - 64; b < IR_PAGE_LEN / 2 + 64; b++)
				real_mem[b] = first_mem[b] = (uint8_t)pick64();
			c = ir = in;
			bool ok_c = run_c(fn, &c), ok_ir = run_ir(fns[i].f, &ir);
			/* Which of two NaNs an x87 gives is not said. */
			if (is_nan80(c.c.r80) && is_nan80(ir.c.r80))
				c.c.r80 = ir.c.r80;
			bool same_mem = !memcmp(real_mem, ir_mem_after, IR_PAGE_LEN);
			if (ok_c == ok_ir && (!ok_c || !memcmp(&c, &ir, sizeof(c))) && same_mem)
				continue;
			print_message("%s (%s): traps %d %d, goes to %llx %llx%s\n", fns[i].what, name, !ok_c, !ok_ir,
				      (unsigned long long)c.pc, (unsigned long long)ir.pc, same_mem ? "" : ", memory differs");
			dump("a  ", &in.a);
			dump("b  ", &in.b);
			dump("c  ", &in.c);
			dump("C  ", &c.c);
			dump("IR ", &ir.c);
			fail_msg("printed C and the interpreter differ");
		}
	}
}

/* --- expressions: operations that use each other, numbers, memory ------------------------------------------------ */
/* What the printer decides (which value is written where, which casts and types of numbers it leaves out) shows only where
 * operations meet. Functions of random operations, with loads and stores around `sp`, end in a branch on a value. */
enum { TREE_CNT = 400, TREE_RECS = 48, VALUES_MAX = 2 * TREE_RECS + 8 };

struct tree {
	struct ir_func *f;
	ir_ref values[VALUES_MAX];
	unsigned cnt;
};

static ir_ref tree_add(struct tree *t, const struct ir_rec *rec)
{
	ir_ref r = ir_emit(t->f, rec);
	if (rec->width != IR_W0 && rec->op != IR_PUT && rec->op != IR_STORE && t->cnt < VALUES_MAX)
		t->values[t->cnt++] = r;
	return r;
}

/* An operand of a width: a value there is, a location, or a number. */
static ir_ref tree_arg(struct tree *t, enum ir_width w, bool may_be_const)
{
	unsigned how = (unsigned)(rng() % 8);
	if (how < 5 && t->cnt) {
		unsigned from = (unsigned)(rng() % t->cnt);
		for (unsigned i = 0; i < t->cnt; i++) {
			ir_ref r = t->values[(from + i) % t->cnt];
			if (ir_ref_width(t->f, r) == w)
				return r;
		}
	}
	if (how == 7 && may_be_const)
		return ir_const(t->f, w, w == IR_W128 ? rng() : pick64());
	return tree_add(t, &(struct ir_rec){.op = IR_GET, .width = (uint8_t)w, .a = IR_REF_NONE, .b = IR_REF_NONE, .c = IR_REF_NONE,
					    .aux = loc_of((unsigned)(rng() % 3), w)});
}

static enum ir_width tree_width(void)
{
	static const enum ir_width ws[] = {IR_W1, IR_W8, IR_W16, IR_W32, IR_W32, IR_W64, IR_W64, IR_W64, IR_W128};
	return ws[rng() % ARRAY_LEN(ws)];
}

static ir_ref tree_addr(struct tree *t)
{
	ir_ref sp = tree_add(t, &(struct ir_rec){.op = IR_GET, .width = IR_W64, .a = IR_REF_NONE, .b = IR_REF_NONE, .c = IR_REF_NONE,
						 .aux = SP});
	return tree_add(t, &(struct ir_rec){.op = rng() & 1 ? IR_ADD : IR_SUB, .width = IR_W64, .a = sp,
					    .b = ir_const(t->f, IR_W64, rng() % 40), .c = IR_REF_NONE});
}

/* What is made of a value that is where the result goes, too. */
static ir_ref tree_change(struct tree *t, ir_ref own, ir_ref other)
{
	static const uint8_t changes[] = {IR_ADD, IR_SUB, IR_AND, IR_OR, IR_XOR};
	enum ir_width w = ir_ref_width(t->f, own);
	ir_ref by = rng() & 1 || w == IR_W128 ? other : ir_const(t->f, w, rng() & 1 ? 1 : 0 - rng() % 9);
	return tree_add(t, &(struct ir_rec){.op = changes[rng() % ARRAY_LEN(changes)], .width = (uint8_t)w, .a = own, .b = by, .c = IR_REF_NONE});
}

static void tree_step(struct tree *t)
{
	static const struct {
		uint8_t op, kind, operands; /* of the width of the result, but for counts and conditions */
	} ops[] = {
		{IR_ADD, 0, 2}, {IR_SUB, 0, 2}, {IR_AND, 0, 2}, {IR_OR, 0, 2}, {IR_XOR, 0, 2}, {IR_MUL, 0, 2}, {IR_SHL, 0, 2},
		{IR_LSHR, 0, 2}, {IR_ASHR, 0, 2}, {IR_SEL, 0, 3}, {IR_BITS, IR_BITS_POPCNT, 1}, {IR_ROT, IR_ROT_L, 2}, {IR_MULH, IR_MULH_U, 2},
		{IR_DIV, IR_DIV_UQUOT, 2}, {IR_DIV, IR_DIV_UREM, 2}, {IR_DIV, IR_DIV_SQUOT, 2}, {IR_DIV, IR_DIV_SREM, 2},
	};
	static const uint8_t compares[] = {IR_CMP_EQ, IR_CMP_ULT, IR_CMP_ULE, IR_CMP_SLT, IR_CMP_SLE};
	enum ir_width w = tree_width(), x = tree_width();
	struct ir_rec rec = {.width = (uint8_t)w, .a = IR_REF_NONE, .b = IR_REF_NONE, .c = IR_REF_NONE};
	switch (rng() % 10) {
	case 0:
		rec.op = IR_CMP;
		rec.kind = compares[rng() % 5];
		rec.width = IR_W1;
		rec.a = tree_arg(t, x, false);
		rec.b = tree_arg(t, x, true);
		if (rng() & 1) {
			ir_ref swap = rec.a;
			rec.a = rec.b;
			rec.b = swap;
		}
		break;
	case 1: /* the opposite, all bits */
		rec.op = IR_XOR;
		rec.a = tree_arg(t, w, false);
		rec.b = ir_const_wide(t->f, w, (const uint64_t[8]){UINT64_MAX, UINT64_MAX});
		break;
	case 2:
		if (ir_bits(x) == ir_bits(w))
			return;
		rec.op = ir_bits(x) > ir_bits(w) ? IR_EXTRACT : rng() & 1 ? IR_ZEXT : IR_SEXT;
		rec.a = tree_arg(t, x, false);
		rec.aux = rec.op == IR_EXTRACT && rng() & 1 ? (uint32_t)(rng() % (ir_bits(x) - ir_bits(w) + 1)) : 0;
		break;
	case 3:
		if (ir_bits(x) >= ir_bits(w))
			return;
		rec.op = IR_INSERT;
		rec.a = tree_arg(t, w, false);
		rec.b = tree_arg(t, x, true);
		rec.aux = (uint32_t)(rng() % (ir_bits(w) - ir_bits(x) + 1));
		break;
	case 4:
		rec.op = IR_PUT;
		rec.a = tree_arg(t, w, true);
		rec.aux = loc_of((unsigned)(rng() % 3), w);
		if (rng() & 1)
			break;
		rec.a = tree_change(t, tree_add(t, &(struct ir_rec){.op = IR_GET, .width = (uint8_t)w, .a = IR_REF_NONE, .b = IR_REF_NONE,
								    .c = IR_REF_NONE, .aux = rec.aux}), rec.a);
		break;
	case 5:
		rec.op = w == IR_W1 ? IR_FENCE : rng() & 1 ? IR_LOAD : IR_STORE;
		if (rec.op == IR_FENCE)
			rec.width = IR_W0;
		else
			rec.a = tree_addr(t);
		if (rec.op == IR_STORE)
			rec.b = tree_arg(t, w, true);
		if (rec.op == IR_STORE && rng() & 1)
			rec.b = tree_change(t, tree_add(t, &(struct ir_rec){.op = IR_LOAD, .width = (uint8_t)w, .a = rec.a, .b = IR_REF_NONE,
									    .c = IR_REF_NONE}), rec.b);
		break;
	default: {
		unsigned i = (unsigned)(rng() % ARRAY_LEN(ops));
		ir_ref *const refs[] = {&rec.a, &rec.b, &rec.c};
		rec.op = ops[i].op;
		rec.kind = ops[i].kind;
		for (unsigned k = 0; k < ops[i].operands; k++) {
			char letter = ir_op_info((enum ir_op)rec.op)->signature[2 + k];
			*refs[k] = tree_arg(t, letter == 'n' ? IR_W8 : letter == '1' ? IR_W1 : w, true);
			/* Shifts by numbers and masked ones, divisors that are no reason to stop. */
			if (letter == 'n' && rng() & 1)
				*refs[k] = ir_const(t->f, IR_W8, rng() % ir_bits(w));
			else if (letter == 'n' && rng() & 1)
				*refs[k] = tree_add(t, &(struct ir_rec){.op = IR_AND, .width = IR_W8, .a = *refs[k],
									.b = ir_const(t->f, IR_W8, ir_bits(w) - 1), .c = IR_REF_NONE});
			if (rec.op == IR_DIV && k == 1)
				*refs[k] = ir_const(t->f, w, pick64() | 2);
		}
	}
	}
	tree_add(t, &rec);
}

static void make_tree(unsigned number)
{
	struct tree t = {.f = ir_func_new(&arena, &toy, 0x1000)};
	assert_non_null(t.f);
	for (unsigned i = 0; i < 3; i++)
		ir_block_new(t.f, 0x1000 + i);
	ir_block_begin(t.f, 0);
	ir_origin_set(t.f, 0x1000, 4);
	for (unsigned i = 0; i < TREE_RECS; i++)
		tree_step(&t);
	ir_ref cond = tree_arg(&t, IR_W1, false);
	ir_emit(t.f, &(struct ir_rec){.op = IR_BR, .a = cond, .b = ir_block_ref(1 + number % 2), .c = ir_block_ref(2 - number % 2)});
	for (unsigned i = 1; i < 3; i++) {
		ir_block_begin(t.f, i);
		ir_emit(t.f, &(struct ir_rec){.op = IR_IJMP, .a = ir_const(t.f, IR_W64, 0x1004 * i), .b = IR_REF_NONE, .c = IR_REF_NONE});
	}
	/* What its parts do not fit is left out: a multiplication of bits, rotating one. */
	struct err *e = ir_check(t.f);
	if (e)
		err_free(e);
	else
		snprintf(fn_add(t.f)->what, sizeof(fns->what), "tree %u", number);
}

/* Variables declared one way or the other: what is computed is the same. */
static struct cprint_views random_views(const struct ir_func *f)
{
	uint8_t *locs = ARENA_ARRAY(&arena, uint8_t, LOCS), *recs = ARENA_ARRAY(&arena, uint8_t, f->rec_cnt + (size_t)1);
	assert_true(locs && recs);
	for (unsigned i = 0; i < LOCS; i++)
		locs[i] = toy_locs[i].width > IR_W1 && toy_locs[i].width < IR_W80 && rng() & 1 ? CPRINT_SIGNED : CPRINT_UNSIGNED;
	for (uint32_t i = 0; i < f->rec_cnt; i++)
		recs[i] = f->recs[i].width > IR_W1 && f->recs[i].width < IR_W80 && rng() & 1 ? CPRINT_SIGNED : CPRINT_UNSIGNED;
	return (struct cprint_views){locs, recs};
}

static void print_all(struct buf *text, bool has_views, unsigned *ret_no_form)
{
	size_t kept = 0;
	cprint_prelude(text);
	buf_add_str(text, PRELUDE);
	for (size_t i = 0; i < fn_cnt; i++) {
		char name[32];
		snprintf(name, sizeof(name), "f%zu", kept);
		const struct cprint_views views = has_views ? random_views(fns[i].f) : (struct cprint_views){0};
		const struct cprint_opts opts = {.name = name, .views = has_views ? &views : NULL};
		struct err *e = cprint_func(fns[i].f, &opts, text, NULL);
		if (e) {
			assert_int_equal(e->kind, ERR_UNSUPPORTED);
			if (getenv("SCRY_TEST_VERBOSE"))
				print_message("no form: %s\n", fns[i].what);
			err_free(e);
			++*ret_no_form;
			continue;
		}
		fns[kept++] = fns[i];
	}
	fn_cnt = kept;
}

static void test_expressions(void **state)
{
	(void)state;
	_cleanup_(buf_fini) struct buf text = {0};
	unsigned no_form = 0;
	fn_cnt = 0;
	for (unsigned i = 0; fn_cnt < TREE_CNT && i < 20 * TREE_CNT; i++)
		make_tree(i);
	assert_int_equal(fn_cnt, TREE_CNT);
	print_all(&text, true, &no_form);
	print_message("%zu functions of %d operations, %u without C\n", fn_cnt, TREE_RECS, no_form);
	assert_true(fn_cnt > TREE_CNT / 2);
	void *so = compile(&text, "gcc", "-O1");
	compare_all(so, 40);
	dlclose(so);
}

static void test_every_operation(void **state)
{
	(void)state;
	_cleanup_(buf_fini) struct buf text = {0};
	unsigned no_form = 0;
	make_ops();
	assert_true(fn_cnt > 1000);
	print_all(&text, false, &no_form);
	print_message("%zu forms, %u without one in C\n", fn_cnt, no_form);
	void *so = compile(&text, "gcc", "-O2");
	compare_all(so, 200);
	dlclose(so);
}

/* A register read is shown where its value is used, which may be behind what changes the register. */
static struct ir_func *random_block(void)
{
	static const enum ir_op ops[] = {IR_ADD, IR_SUB, IR_XOR, IR_MUL, IR_AND};
	struct ir_func *f = ir_func_new(&arena, &toy, 0x1000);
	ir_ref pool[64];
	unsigned cnt = 0;
	assert_non_null(f);
	ir_block_begin(f, ir_block_new(f, 0x1000));
	ir_origin_set(f, 0x1000, 4);
	for (unsigned n = 6 + (unsigned)(rng() % 24); n; n--) {
		uint32_t loc = loc_of((unsigned)(rng() % 3), IR_W64);
		struct ir_rec rec = {.op = IR_GET, .width = IR_W64, .a = IR_REF_NONE, .b = IR_REF_NONE, .c = IR_REF_NONE, .aux = loc};
		unsigned what = cnt < 2 ? 0 : (unsigned)(rng() % 4);
		if (what == 1) {
			rec.op = IR_PUT;
			rec.a = pool[cnt - 1 - rng() % MIN(cnt, 4u)];
		} else if (what) {
			rec.op = (uint8_t)ops[rng() % ARRAY_LEN(ops)];
			rec.a = pool[cnt - 1 - rng() % MIN(cnt, 6u)];
			rec.b = pool[cnt - 1 - rng() % MIN(cnt, 6u)];
			rec.aux = 0;
		}
		ir_ref r = ir_emit(f, &rec);
		if (rec.op != IR_PUT)
			pool[cnt++] = r;
	}
	ir_emit(f, &(struct ir_rec){.op = IR_IJMP, .a = ir_const(f, IR_W64, 0x1004), .b = IR_REF_NONE, .c = IR_REF_NONE});
	assert_null(ir_check(f));
	return f;
}

static void test_order_of_reads(void **state)
{
	(void)state;
	_cleanup_(buf_fini) struct buf text = {0};
	cprint_prelude(&text);
	buf_add_str(&text, PRELUDE);
	for (fn_cnt = 0; fn_cnt < 400;) {
		struct fn *fn = fn_add(random_block());
		snprintf(fn->what, sizeof(fn->what), "block %zu", fn_cnt - 1);
		char name[32];
		snprintf(name, sizeof(name), "f%zu", fn_cnt - 1);
		assert_null(cprint_func(fn->f, &(struct cprint_opts){.name = name}, &text, NULL));
	}
	void *so = compile(&text, "gcc", "-O0");
	compare_all(so, 3);
	dlclose(so);
}

/* --- the quick compiler --------------------------------------------------------------------------------------------- */
/* Those it should take; how many. */
static size_t print_quick(struct buf *text)
{
	size_t kept = 0;
	cprint_prelude(text);
	buf_add_str(text, PRELUDE);
	for (size_t i = 0; i < fn_cnt; i++) {
		_cleanup_(buf_fini) struct buf one = {0};
		char name[32];
		snprintf(name, sizeof(name), "f%zu", kept);
		struct err *e = cprint_func(fns[i].f, &(struct cprint_opts){.name = name}, &one, NULL);
		if (!e && verify_quick_takes(one.data, one.len)) {
			buf_add(text, one.data, one.len);
			fns[kept++] = fns[i];
		}
		err_free(e);
	}
	return kept;
}

static void test_quick_compiler(void **state)
{
	(void)state;
	_cleanup_(buf_fini) struct buf text = {0};
	char c[96], so[96];
	if (access("/usr/bin/tcc", X_OK)) {
		print_message("there is no tcc\n");
		skip();
	}
	fn_cnt = 0;
	make_ops();
	for (unsigned i = 0; i < 3 * TREE_CNT; i++)
		make_tree(i);
	for (unsigned i = 0; i < TREE_CNT; i++)
		snprintf(fn_add(random_block())->what, sizeof(fns->what), "block %u", i);
	size_t all = fn_cnt;
	fn_cnt = print_quick(&text);
	print_message("%zu of %zu forms are for the quick compiler\n", fn_cnt, all);
	assert_true(fn_cnt > all / 4);
	snprintf(c, sizeof(c), "%s/quick.c", dir);
	snprintf(so, sizeof(so), "%s/quick.so", dir);
	write_text(c, &text);
	/* What it is said to take it does take. */
	const char *const argv[] = {"/usr/bin/tcc", "-Werror", "-shared", "-nostdlib", "-I", SCRY_INCLUDE, "-include", "scry_tcc.h",
				    "-o", so, c, NULL};
	if (run((char *const *)argv))
		fail_msg("the quick compiler does not take the C");
	void *lib = open_lib(so);
	compare_all(lib, 100);
	dlclose(lib);
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	const char *const argv[] = {"rm", "-rf", dir, NULL};
	free(fns);
	arena_fini(&arena);
	return run((char *const *)argv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_operation),
		cmocka_unit_test(test_order_of_reads),
		cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_quick_compiler),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
