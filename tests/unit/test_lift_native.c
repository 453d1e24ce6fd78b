/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lifted instructions against the processor. Forms are taken from programs of this machine, a few examples of each, plus a list
 * of rare ones; every example runs on states biased towards the places where carries and signs change, natively and in
 * the interpreter, and registers, flags, memory and where control goes must agree, except for what is undefined. Some states
 * have their memory operand where nothing is mapped: then the fault must leave everything as it was.
 *
 * Then what is not lifted: each such form's C, which runs the instruction's bytes with scry.h, stands in for the INTRIN in the interpreter
 * and knows only what that says it reads. Registers of AVX-512 take part.
 *
 *   unit-lift-native [STATES [FORM]]           so many states for each example (10), only forms whose name holds FORM
 *   unit-lift-native --judge [STATES [FORM]]   forms of all encodings too, so many states for each form (10,000); every
 *                                              mnemonic of the lifter's table must have run
 */
#include "arch/x86/x86_zydis.h"
#include "ir/ir_interp.h"
#include "lift/lift_int.h"
#include "lib/intrin_c.h"
#include "lib/native_insn.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <unistd.h>

#define EXAMPLES_OF_FORM 3
#define EXAMPLES_JUDGED 6
#define EXAMPLES_UNLIFTED 2 /* each has to be compiled */

struct example {
	char form[100];
	uint8_t bytes[15];
	uint8_t len;
	int fn; /* of what is not lifted: its C */
};

/* What is being tried: x86-64, then i386. */
static enum arch_id arch = ARCH_ID_X86_64;

static bool is_64(void)
{
	return arch == ARCH_ID_X86_64;
}

static struct example *examples;
static unsigned example_cnt, example_cap;
static unsigned *form_hash; /* index + 1 of the first example of a form, open addressing */
#define HASH_CAP 65536

static ZydisDecoder decoder;
static unsigned long run_cnt, skip_cnt, bad_cnt, fault_cnt;
static bool is_judge;
/* Forms that are not lifted are what is tried; with the registers of AVX-512. */
static bool is_generic, is_wide;
static struct intrin_c *intrin_c;
static int now_fn;
static bool has_run[ZYDIS_MNEMONIC_MAX_VALUE + 1];

/* --- examples ----------------------------------------------------------------------------------------------- */
static uint32_t hash_of(const char *form)
{
	uint32_t h = 2166136261u;
	for (const char *s = form; *s; s++)
		h = (h ^ (uint8_t)*s) * 16777619u;
	return h;
}

static unsigned examples_of(const char *form)
{
	unsigned same = 0;
	for (unsigned i = hash_of(form) % HASH_CAP; form_hash[i]; i = (i + 1) % HASH_CAP)
		same += !strcmp(examples[form_hash[i] - 1].form, form);
	return same;
}

/* Takes the bytes when fewer than the wanted number of their form are there, or they must be. */
static void take(const char *form, const uint8_t *bytes, size_t len, bool must)
{
	unsigned wanted = is_generic ? EXAMPLES_UNLIFTED : is_judge ? EXAMPLES_JUDGED : EXAMPLES_OF_FORM;
	if ((!must && examples_of(form) >= wanted) || example_cnt >= HASH_CAP / 2)
		return;
	if (example_cnt == example_cap) {
		example_cap = example_cap * 2 + 1024;
		examples = realloc(examples, example_cap * sizeof(*examples));
		if (!examples)
			abort();
	}
	struct example *e = &examples[example_cnt++];
	snprintf(e->form, sizeof(e->form), "%s", form);
	memcpy(e->bytes, bytes, len);
	e->len = (uint8_t)len;
	unsigned i = hash_of(form) % HASH_CAP;
	while (form_hash[i])
		i = (i + 1) % HASH_CAP;
	form_hash[i] = example_cnt;
}

/*
 * Of what is not lifted, what can be tried in this process: nothing that leaves the program, or whose result is not the same
 * twice; nothing whose memory is more than one place; not what saves and loads more state than its operands say.
 */
static int gpr_of(ZydisRegister r);

static bool can_run(const uint8_t *p, size_t len)
{
	static const uint16_t not[] = {
		ZYDIS_MNEMONIC_CPUID, ZYDIS_MNEMONIC_RDTSC, ZYDIS_MNEMONIC_RDTSCP, ZYDIS_MNEMONIC_RDPMC, ZYDIS_MNEMONIC_RDRAND,
		ZYDIS_MNEMONIC_RDSEED, ZYDIS_MNEMONIC_RDPID, ZYDIS_MNEMONIC_XGETBV, ZYDIS_MNEMONIC_XBEGIN, ZYDIS_MNEMONIC_XABORT,
		ZYDIS_MNEMONIC_XEND, ZYDIS_MNEMONIC_UMONITOR, ZYDIS_MNEMONIC_UMWAIT, ZYDIS_MNEMONIC_TPAUSE, ZYDIS_MNEMONIC_RDFSBASE,
		ZYDIS_MNEMONIC_RDGSBASE, ZYDIS_MNEMONIC_WRFSBASE, ZYDIS_MNEMONIC_WRGSBASE, ZYDIS_MNEMONIC_FXSAVE,
		ZYDIS_MNEMONIC_FXSAVE64, ZYDIS_MNEMONIC_FXRSTOR, ZYDIS_MNEMONIC_FXRSTOR64, ZYDIS_MNEMONIC_FNSAVE,
		ZYDIS_MNEMONIC_FRSTOR, ZYDIS_MNEMONIC_FNSTENV, ZYDIS_MNEMONIC_FLDENV, ZYDIS_MNEMONIC_LDMXCSR, ZYDIS_MNEMONIC_STMXCSR,
		ZYDIS_MNEMONIC_VLDMXCSR, ZYDIS_MNEMONIC_VSTMXCSR,
		ZYDIS_MNEMONIC_FNINIT, ZYDIS_MNEMONIC_SLDT, ZYDIS_MNEMONIC_STR, ZYDIS_MNEMONIC_SMSW, ZYDIS_MNEMONIC_SGDT, ZYDIS_MNEMONIC_SIDT,
	};
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, p, len, &in, ops)))
		return false;
	for (unsigned i = 0; i < sizeof(not) / sizeof(*not); i++)
		if (in.mnemonic == not[i])
			return false;
	for (unsigned i = 0; i < in.operand_count; i++) {
		bool is_segment = ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER && ops[i].reg.value >= ZYDIS_REGISTER_ES &&
				  ops[i].reg.value <= ZYDIS_REGISTER_GS && (ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE);
		bool is_many = ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY && ops[i].mem.type == ZYDIS_MEMOP_TYPE_VSIB;
		/* The stack it runs on is that of its C. */
		bool is_stack = ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER && gpr_of(ops[i].reg.value) == 4;
		if (is_segment || is_many || is_stack)
			return false;
	}
	return !(in.attributes & ZYDIS_ATTRIB_IS_PRIVILEGED) && in.meta.category != ZYDIS_CATEGORY_VTX &&
	       in.mnemonic != ZYDIS_MNEMONIC_VMMCALL && in.meta.branch_type == ZYDIS_BRANCH_TYPE_NONE &&
	       in.meta.category != ZYDIS_CATEGORY_SYSCALL && in.meta.category != ZYDIS_CATEGORY_SYSRET &&
	       in.meta.category != ZYDIS_CATEGORY_INTERRUPT && in.meta.category != ZYDIS_CATEGORY_RET &&
	       in.meta.category != ZYDIS_CATEGORY_XSAVE && in.meta.category != ZYDIS_CATEGORY_XSAVEOPT && in.meta.category != ZYDIS_CATEGORY_IO &&
	       in.meta.category != ZYDIS_CATEGORY_IOSTRINGOP;
}

/* One kind of the form is enough of an instruction that was met so often; decoding tells what it is cheaper than lifting. */
static size_t look_at(struct arena *a, const uint8_t *p, size_t len, bool must)
{
	struct lift_insn in;
	arena_reset(a);
	struct err *e = lift_insn(a, arch, p, len, NATIVE_INSN_VA, &in);
	if (e) {
		err_free(e);
		return 1;
	}
	if (!in.is_bad && in.is_generic == is_generic && (!is_generic || can_run(p, in.len)))
		take(in.form, p, in.len, must);
	else if (must && !is_generic && is_64() && ++bad_cnt)
		printf("# not lifted by hand: %s %02x%02x%02x\n", in.form, p[0], p[1], p[2]);
	return in.len;
}

static void scan_code(const uint8_t *p, size_t len)
{
	struct arena a = {0};
	/* Every part of the program, without the cost of all of it. */
	size_t step = len > 60000 ? len / 30 : len;
	for (size_t at = 0; at < len; at += step ? step : 1) {
		size_t end = at + 2000 < len ? at + 2000 : len;
		for (size_t i = at; i < end;)
			i += look_at(&a, p + i, len - i, false);
	}
	arena_fini(&a);
}

static void scan_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0)
		return;
	if (!fstat(fd, &st) && st.st_size > (off_t)sizeof(Elf64_Ehdr)) {
		size_t len = (size_t)st.st_size;
		const uint8_t *p = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
		Elf64_Ehdr eh;
		memcpy(&eh, p, sizeof(eh));
		for (unsigned i = 0; i < eh.e_phnum && eh.e_phoff + (i + 1) * sizeof(Elf64_Phdr) <= len; i++) {
			Elf64_Phdr ph;
			memcpy(&ph, p + eh.e_phoff + i * sizeof(ph), sizeof(ph));
			if (ph.p_type == PT_LOAD && (ph.p_flags & PF_X) && ph.p_offset + ph.p_filesz <= len)
				scan_code(p + ph.p_offset, ph.p_filesz);
		}
		munmap((void *)(uintptr_t)p, len);
	}
	close(fd);
}

static void take_hex(const char *hex)
{
	uint8_t bytes[15];
	unsigned n = 0;
	struct arena a = {0};
	for (; hex[2 * n]; n++) {
		unsigned b;
		sscanf(hex + 2 * n, "%2x", &b);
		bytes[n] = (uint8_t)b;
	}
	look_at(&a, bytes, n, true);
	arena_fini(&a);
}

/* What programs of today seldom hold. */
static const char *const rare[] = {
#include "lift_rare.inc"
};

/* Of each kind of what is not lifted. */
static const char *const unlifted[] = {
#include "lift_unlifted.inc"
};

static uint64_t rng(void)
{
	static uint64_t s = 0x9e3779b97f4a7c15;
	s ^= s << 13;
	s ^= s >> 7;
	s ^= s << 17;
	return s;
}

/* --- all encodings ------------------------------------------------------------------------------------------ */
/* head[0 .. len), ModRM bytes of all kinds that matter, anything as displacement and immediate. */
static void take_modrm(struct arena *a, const uint8_t *head, size_t len)
{
	for (unsigned i = 0; i < 32; i++) {
		uint8_t bytes[15], reg = (uint8_t)((i & 7) << 3);
		const uint8_t modrm[4] = {(uint8_t)(0xc1 | reg), (uint8_t)(0xc0 | reg | (i & 7)), (uint8_t)(0x06 | reg), (uint8_t)(0x43 | reg)};
		for (unsigned k = 0; k < sizeof(bytes); k++)
			bytes[k] = (uint8_t)rng();
		memcpy(bytes, head, len);
		bytes[len] = modrm[i >> 3];
		look_at(a, bytes, sizeof(bytes), false);
	}
}

static void take_legacy(struct arena *a)
{
	static const uint8_t prefixes[] = {0, 0x66, 0xf2, 0xf3, 0xf0, 0x67}, rex[] = {0, 0x48, 0x45};
	static const uint8_t maps[4][2] = {{0, 0}, {0x0f, 0}, {0x0f, 0x38}, {0x0f, 0x3a}};
	for (unsigned p = 0; p < sizeof(prefixes); p++) {
		for (unsigned r = 0; r < (is_64() ? 3 : 1); r++) {
			for (unsigned m = 0; m < 4 * 256; m++) {
				uint8_t head[8];
				size_t n = 0;
				if (prefixes[p])
					head[n++] = prefixes[p];
				if (rex[r])
					head[n++] = rex[r];
				for (unsigned k = 0; k < 2; k++) {
					if (maps[m >> 8][k])
						head[n++] = maps[m >> 8][k];
				}
				head[n++] = (uint8_t)m;
				take_modrm(a, head, n);
			}
		}
	}
	/* Here the rest of ModRM is opcode. */
	for (unsigned i = 0; i < 8 * 64; i++) {
		const uint8_t bytes[2] = {(uint8_t)(0xd8 + (i >> 6)), (uint8_t)(0xc0 | (i & 63))};
		look_at(a, bytes, 2, false);
	}
}

static void take_vex(struct arena *a)
{
	for (unsigned i = 0; i < 3 * 32 * 256; i++) {
		unsigned map = 1 + i / (32 * 256), low = i >> 8 & 31;
		/* W, L and pp; the second source is none, or register 2. */
		const uint8_t head[4] = {0xc4, (uint8_t)(0xe0 | map), (uint8_t)((low & 7) | (low & 8) << 4 | (low & 16 ? 0x78 : 0x68)), (uint8_t)i};
		take_modrm(a, head, sizeof(head));
	}
}

/* Without and with a mask, merging or zeroing what it leaves out. `thin`: of how many opcodes one. */
static void take_evex(struct arena *a, unsigned thin)
{
	static const uint8_t maps[] = {1, 2, 3, 5, 6}, masks[] = {0x08, 0x09, 0x89};
	for (unsigned i = 0; i < sizeof(maps) * 4 * 2 * 2 * 3 * 3 * 256; i++) {
		unsigned rest = i >> 8;
		if ((i & 0xff) % thin)
			continue;
		uint8_t head[5] = {0x62};
		head[1] = (uint8_t)(0xf0 | maps[rest % sizeof(maps)]);
		rest /= sizeof(maps);
		head[2] = (uint8_t)((rest & 3) | 4 | (rest >> 2 & 1) << 7 | (rest >> 3 & 1 ? 0x78 : 0x68));
		rest >>= 4;
		head[3] = (uint8_t)(masks[rest % 3] | rest / 3 << 5);
		head[4] = (uint8_t)i;
		take_modrm(a, head, sizeof(head));
	}
}

/* --- states ------------------------------------------------------------------------------------------------- */

static uint64_t pick(void)
{
	static const uint64_t floats[] = {0x3ff0000000000000, 0xbff0000000000000, 0x7ff0000000000000, 0xfff8000000000000,
					  0x7ff4000000000000, 0x8000000000000000, 0x0000000000000001, 0x41dfffffffc00000,
					  0x3f8000003f800000, 0x7f8000007fc00000, 0xff80000000000001, 0x4f000000cf000000,
					  0x7fa00000ffc00000, 0x4340000000000001, 0x3fe0000000000000, 0x3f000000bf000000};
	uint64_t r = rng(), edge = (uint64_t)1 << (r % 64);
	const uint64_t any[16] = {edge, edge - 1, 0 - edge, r >> 60 & 3, rng(), rng(), ~edge, (uint32_t)rng(),
				  r >> 58 & 1 ? 0x80 : 0x7f, 0x8000000080000000, UINT32_MAX, 0x7fffffff, (uint16_t)rng(),
				  floats[r >> 40 & 15], floats[r >> 44 & 15], 0};
	return any[r >> 32 & 15];
}

/* A long double most of the time, else any ten bytes. */
static void pick_x87(uint8_t out[10])
{
	uint64_t bits = pick(), top = rng();
	double d;
	memcpy(&d, &bits, sizeof(d));
	long double v = top & 1 ? (long double)(int64_t)bits : (long double)d;
	memcpy(out, &v, 10);
}

/* Another piece of a supply that is renewed bit by bit. */
static void fill_window(void)
{
	static uint64_t supply[4 * NATIVE_WINDOW_LEN / 8];
	unsigned cnt = sizeof(supply) / sizeof(*supply);
	bool is_new = !supply[0];
	for (unsigned i = 0; i < (is_new ? cnt : 64); i++)
		supply[is_new ? i : rng() % cnt] = pick();
	supply[0] |= 1;
	memcpy(native_window, (const uint8_t *)supply + rng() % (sizeof(supply) - NATIVE_WINDOW_LEN), NATIVE_WINDOW_LEN);
}

static void random_state(struct native_state *s)
{
	for (unsigned i = 0; i < 16; i++)
		s->gpr[i] = is_64() ? pick() : (uint32_t)pick();
	s->gpr[4] = NATIVE_WINDOW + 0x2000 + (rng() % 64) * 8;
	s->flags = 0x202 | (rng() & 0x8d5) | (rng() % 8 == 0 ? 0x400 : 0);
	for (unsigned i = 0; i < 16; i++) {
		for (unsigned k = 0; k < (is_wide ? 8 : 4); k++) {
			uint64_t v = pick();
			memcpy(&s->vec[i][8 * k], &v, 8);
		}
	}
	for (unsigned i = 16; i < 32 && is_wide; i++)
		memcpy(s->vec[i], s->vec[(i * 7 + 3) % 16], 64);
	for (unsigned i = 0; i < 8 && is_wide; i++)
		s->k[i] = rng() & 3 ? rng() : 0 - (rng() & 1);
	memset(s->x87, 0, sizeof(s->x87));
	/* Top at 3, st(0) .. st(4) valid: three places are free. Exceptions masked, full precision. */
	s->x87[0] = 0x7f;
	s->x87[1] = 0x03;
	s->x87[5] = (uint8_t)(3 << 3 | (rng() & 0x47)); /* the condition codes are anything */
	s->x87[8] = 0x3f;
	s->x87[9] = 0;
	for (unsigned i = 0; i < 8; i++)
		pick_x87(&s->x87[28 + 10 * i]);
	fill_window();
}

/* --- placing an example's memory and jumps in the window ----------------------------------------------------- */
static int gpr_of(ZydisRegister r)
{
	ZydisRegister full = ZydisRegisterGetLargestEnclosing(is_64() ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32, r);
	if (full >= ZYDIS_REGISTER_EAX && full <= ZYDIS_REGISTER_EDI)
		return (int)(full - ZYDIS_REGISTER_EAX);
	return full >= ZYDIS_REGISTER_RAX && full <= ZYDIS_REGISTER_R15 ? (int)(full - ZYDIS_REGISTER_RAX) : -1;
}

/* Sets the registers of a memory operand so that it lies in the window; false: this form cannot be made to. */
static bool aim(struct native_state *s, const ZydisDecodedOperand *op)
{
	const ZydisDecodedOperandMem *m = &op->mem;
	uint64_t disp = m->disp.has_displacement ? (uint64_t)m->disp.value : 0;
	uint64_t at = NATIVE_WINDOW + 0x1000 + rng() % 0x2000;
	/* Now and then over one of the window's ends; in part where a store in two pieces does not leave its first one. */
	bool may_straddle = op->size <= 64;
	if (rng() % 32 == 0)
		at = rng() & 1 ? NATIVE_WINDOW - 64 + rng() % (may_straddle ? 64 : 1) :
				 NATIVE_WINDOW + NATIVE_WINDOW_LEN - (may_straddle ? rng() % 16 : 0);
	at &= ~(uint64_t)(op->size >= 128 ? 63 : rng() & 1 ? 7 : 0);
	int base = gpr_of(m->base), index = gpr_of(m->index);
	/* Through the code segment nothing is written. */
	bool is_other = m->segment == ZYDIS_REGISTER_FS || m->segment == ZYDIS_REGISTER_GS || (!is_64() && m->segment == ZYDIS_REGISTER_CS);
	if (is_other || m->type != ZYDIS_MEMOP_TYPE_MEM)
		return false;
	if (base < 0 && index < 0)
		return true;
	if (index >= 0 && index == base) {
		s->gpr[base] = (at - disp) / (1u + m->scale);
		return (int64_t)disp > -0x1000 && (int64_t)disp < 0x1000;
	}
	if (base < 0) {
		s->gpr[index] = (at - disp) / m->scale;
		return op->size < 128;
	}
	if (index >= 0) {
		s->gpr[index] = op->size >= 128 ? (rng() & 3) * 64 : (rng() & 31) - 16;
		disp += s->gpr[index] * m->scale;
	}
	s->gpr[base] = at - disp;
	return true;
}

static void poke(uint64_t va, uint64_t v)
{
	unsigned len = is_64() ? 8 : 4;
	va = is_64() ? va : (uint32_t)va;
	/* At its end as much as there is: an operand may be shorter than a word. */
	if (va >= NATIVE_WINDOW && va < NATIVE_WINDOW + NATIVE_WINDOW_LEN)
		memcpy(native_window + (va - NATIVE_WINDOW), &v, MIN(len, NATIVE_WINDOW + NATIVE_WINDOW_LEN - va));
}

static uint64_t address_of(const struct native_state *s, const ZydisDecodedOperandMem *m)
{
	uint64_t va = m->disp.has_displacement ? (uint64_t)m->disp.value : 0;
	if (gpr_of(m->base) >= 0)
		va += s->gpr[gpr_of(m->base)];
	if (gpr_of(m->index) >= 0)
		va += s->gpr[gpr_of(m->index)] * m->scale;
	return va;
}

struct decoded {
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
};

/* Displacements without registers and relative jumps are made to lead into the window and to the place for jumps. */
static bool patch(struct example *e, struct decoded *d)
{
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, e->bytes, e->len, &d->in, d->ops)))
		return false;
	for (unsigned i = 0; i < d->in.operand_count; i++) {
		const ZydisDecodedOperand *op = &d->ops[i];
		if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || gpr_of(op->mem.base) >= 0 || gpr_of(op->mem.index) >= 0)
			continue;
		bool is_rip = op->mem.base == ZYDIS_REGISTER_RIP;
		if (d->in.raw.disp.size < 32)
			return false;
		uint64_t to = NATIVE_WINDOW + 0x1400, disp = is_rip ? to - NATIVE_INSN_VA - e->len : to;
		memcpy(e->bytes + d->in.raw.disp.offset, &disp, d->in.raw.disp.size / 8);
	}
	if (d->in.raw.imm[0].is_relative && d->in.operand_width == 16)
		return false;
	if (d->in.raw.imm[0].is_relative) {
		uint32_t rel = NATIVE_TAKEN;
		memcpy(e->bytes + d->in.raw.imm[0].offset, &rel, d->in.raw.imm[0].size / 8);
	}
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, e->bytes, e->len, &d->in, d->ops));
}

static bool is_mmx(const struct decoded *d)
{
	for (unsigned i = 0; i < d->in.operand_count; i++)
		if (d->ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER && ZydisRegisterGetClass(d->ops[i].reg.value) == ZYDIS_REGCLASS_MMX)
			return true;
	return false;
}

/* Everything an instruction needs of its state; false: not to be run. */
static bool prepare(struct native_state *s, const struct decoded *d, size_t len)
{
	bool is_indirect = (d->in.meta.category == ZYDIS_CATEGORY_CALL || d->in.meta.category == ZYDIS_CATEGORY_UNCOND_BR) &&
			   !d->in.raw.imm[0].is_relative;
	uint64_t jump = native_jump_target(len);
	bool is_address = d->in.mnemonic != ZYDIS_MNEMONIC_JCXZ;
	if (is_address && (d->in.address_width == 16 || (!is_64() && d->in.address_width != 32)))
		return false;
	for (unsigned i = 0; i < d->in.operand_count; i++) {
		const ZydisDecodedOperand *op = &d->ops[i];
		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.type == ZYDIS_MEMOP_TYPE_MEM && !aim(s, op))
			return false;
		/* Empty places of the x87 stack. */
		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER && op->reg.value >= ZYDIS_REGISTER_ST5 && op->reg.value <= ZYDIS_REGISTER_ST7)
			return false;
	}
	if (d->in.meta.category == ZYDIS_CATEGORY_STRINGOP)
		s->gpr[1] = rng() % 48;
	bool is_bit = d->in.mnemonic == ZYDIS_MNEMONIC_BT || d->in.mnemonic == ZYDIS_MNEMONIC_BTS ||
		      d->in.mnemonic == ZYDIS_MNEMONIC_BTR || d->in.mnemonic == ZYDIS_MNEMONIC_BTC;
	if (is_bit && d->ops[0].type == ZYDIS_OPERAND_TYPE_MEMORY && d->ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
		int r = gpr_of(d->ops[1].reg.value);
		if (r == gpr_of(d->ops[0].mem.base) || r == gpr_of(d->ops[0].mem.index))
			return false;
		s->gpr[r] = rng() % 4096 - 2048;
	}
	if (is_indirect && d->ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER && gpr_of(d->ops[0].reg.value) == 4)
		return false;
	if (is_indirect && d->ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER)
		s->gpr[gpr_of(d->ops[0].reg.value)] = jump;
	else if (is_indirect)
		poke(d->ops[0].mem.base == ZYDIS_REGISTER_RIP ? NATIVE_WINDOW + 0x1400 : address_of(s, &d->ops[0].mem), jump);
	if (is_mmx(d)) {
		/* The same registers: place i is MMX register i, top is 0, and all hold something. */
		s->x87[5] = 0;
		s->x87[8] = s->x87[9] = 0;
		for (unsigned i = 0; i < 8; i++) {
			uint64_t v = pick();
			memcpy(&s->x87[28 + 10 * i], &v, 8);
			memset(&s->x87[36 + 10 * i], 0xff, 2);
		}
	}
	bool rounds = d->in.mnemonic == ZYDIS_MNEMONIC_FIST || d->in.mnemonic == ZYDIS_MNEMONIC_FISTP ||
		      d->in.mnemonic == ZYDIS_MNEMONIC_FRNDINT || d->in.mnemonic == ZYDIS_MNEMONIC_FNSTCW;
	if (rounds)
		s->x87[1] |= (uint8_t)(rng() & 0x0c);
	/* The processor makes sure of the whole frame. */
	if (d->in.mnemonic == ZYDIS_MNEMONIC_ENTER && d->ops[0].imm.value.u > 0x1000)
		return false;
	/* Only flags that are modelled: stepping and alignment checks would be this program's. */
	bool takes_flags = d->in.mnemonic == ZYDIS_MNEMONIC_POPF || d->in.mnemonic == ZYDIS_MNEMONIC_POPFD || d->in.mnemonic == ZYDIS_MNEMONIC_POPFQ;
	if (takes_flags)
		poke(s->gpr[4], (rng() & 0xcd5) | 0x202);
	if (d->in.meta.category == ZYDIS_CATEGORY_RET)
		poke(s->gpr[4], jump);
	return true;
}

/* --- the two runs ------------------------------------------------------------------------------------------- */
struct compared {
	const struct ir_machine *m;
	struct ir_val *locs;
	uint8_t window[NATIVE_WINDOW_LEN];
	struct native_state before;
};

static bool fill(void *ctx, struct ir_page *p)
{
	const struct compared *c = ctx;
	if (p->va < NATIVE_WINDOW || p->va >= NATIVE_WINDOW + NATIVE_WINDOW_LEN)
		return false;
	memcpy(p->bytes, c->window + (p->va - NATIVE_WINDOW), IR_PAGE_LEN);
	return true;
}

static const char *const gpr_names_64[16] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
					     "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
static const char *const gpr_names_32[8] = {"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"};

static const char *gpr_name(unsigned i)
{
	return is_64() ? gpr_names_64[i] : gpr_names_32[i];
}

static unsigned reg_cnt(void)
{
	return is_64() ? 16 : 8;
}

static const struct {
	const char *name;
	unsigned bit;
	uint16_t loc;
} flag_bits[] = {{"cf", 0, LIFT_CF}, {"pf", 2, LIFT_PF}, {"af", 4, LIFT_AF}, {"zf", 6, LIFT_ZF},
		 {"sf", 7, LIFT_SF}, {"df", 10, LIFT_DF}, {"of", 11, LIFT_OF}};

static void to_locs(struct compared *c)
{
	const struct native_state *s = &c->before;
	memset(c->locs, 0, c->m->loc_cnt * sizeof(*c->locs));
	for (unsigned i = 0; i < reg_cnt(); i++) {
		c->locs[lift_gpr_loc(i)].w[0] = s->gpr[i];
		memcpy(c->locs[lift_xmm_loc(i)].w, s->vec[i], 16);
		memcpy(c->locs[lift_ymmh_loc(i)].w, s->vec[i] + 16, 16);
	}
	for (unsigned i = 0; i < sizeof(flag_bits) / sizeof(*flag_bits); i++)
		c->locs[flag_bits[i].loc].w[0] = s->flags >> flag_bits[i].bit & 1;
	for (unsigned i = 0; i < 8; i++) {
		memcpy(c->locs[LIFT_F0 + i].w, &s->x87[28 + 10 * i], 10);
		memcpy(c->locs[LIFT_MM0 + i].w, &s->x87[28 + 10 * i], 8);
	}
	for (unsigned i = 0; i < 16 && is_wide; i++) {
		memcpy(c->locs[lift_zmmh_loc(i)].w, s->vec[i] + 32, 32);
		memcpy(c->locs[LIFT_ZMM16 + i].w, s->vec[16 + i], 64);
		c->locs[LIFT_K0 + i % 8].w[0] = s->k[i % 8];
	}
	c->locs[LIFT_FSW].w[0] = (uint64_t)(s->x87[5] << 8);
	c->locs[LIFT_FCW].w[0] = (uint64_t)(s->x87[0] | s->x87[1] << 8);
	c->locs[LIFT_MXCSR].w[0] = 0x1f80;
}

static bool complain(const struct example *e, const struct compared *c, const char *what, const uint64_t *is, const uint64_t *want)
{
	if (++bad_cnt > 40)
		return false;
	printf("# %s: ", e->form);
	for (unsigned i = 0; i < e->len; i++)
		printf("%02x", e->bytes[i]);
	printf(": %s is %016lx %016lx, processor %016lx %016lx\n", what, is[1], is[0], want[1], want[0]);
	for (unsigned i = 0; i < reg_cnt(); i++)
		printf("#  %s %lx", gpr_name(i), c->before.gpr[i]);
	printf("  flags %lx\n", c->before.flags);
	for (unsigned i = 0; i < 3; i++) {
		const uint64_t *v = (const uint64_t *)(const void *)c->before.vec[i];
		printf("#  xmm%u %016lx %016lx", i, v[1], v[0]);
	}
	printf("\n");
	return false;
}

static bool compare_vec(const struct example *e, const struct compared *c, unsigned i)
{
	for (unsigned half = 0; half < 2; half++) {
		const struct ir_val *v = &c->locs[half ? lift_ymmh_loc(i) : lift_xmm_loc(i)];
		uint64_t want[2];
		char name[32];
		memcpy(want, native_state->vec[i] + 16 * half, 16);
		if (v->is_undef || memcmp(v->w, want, 16)) {
			snprintf(name, sizeof(name), "%s%u%s", half ? "ymmh" : "xmm", i, v->is_undef ? " (undefined)" : "");
			return complain(e, c, name, v->w, want);
		}
	}
	return true;
}

static bool compare_wide(const struct example *e, const struct compared *c)
{
	for (unsigned i = 0; i < 40; i++) {
		unsigned n = i % 16, loc = i < 16 ? lift_zmmh_loc(n) : i < 32 ? LIFT_ZMM16 + n : LIFT_K0 + n;
		const void *want = i < 16 ? native_state->vec[n] + 32 : i < 32 ? native_state->vec[16 + n] : (const void *)&native_state->k[n];
		size_t len = i < 16 ? 32 : i < 32 ? 64 : 8;
		const struct ir_val *v = &c->locs[loc];
		for (size_t at = 0; at < len; at += 16) {
			uint64_t is[2] = {0}, was[2] = {0};
			memcpy(is, (const uint8_t *)v->w + at, len < 16 ? len : 16);
			memcpy(was, (const uint8_t *)want + at, len < 16 ? len : 16);
			if (memcmp(is, was, 16))
				return complain(e, c, c->m->locs[loc].name, is, was);
		}
	}
	return true;
}

static bool compare_mmx(const struct example *e, const struct compared *c)
{
	for (unsigned i = 0; i < 8; i++) {
		uint64_t is[2] = {c->locs[LIFT_MM0 + i].w[0]}, want[2] = {0};
		memcpy(want, &native_state->x87[28 + 10 * i], 8);
		if (is[0] != want[0])
			return complain(e, c, c->m->locs[LIFT_MM0 + i].name, is, want);
	}
	return true;
}

static bool is_nan80(const uint64_t w[2])
{
	return (w[1] & 0x7fff) == 0x7fff && w[0] << 1;
}

/* Condition codes, where the decoder says that the instruction sets them. */
static bool compare_codes(const struct example *e, const struct decoded *d, const struct compared *c)
{
	static const struct {
		uint8_t fpu, bit;
	} codes[] = {{0, 8}, {1, 9}, {2, 10}, {3, 14}};
	const ZydisAccessedFlags *f = d->in.fpu_flags;
	uint64_t sets = f && !f->undefined ? f->modified | f->set_0 | f->set_1 : 0, mask = 0;
	for (unsigned i = 0; i < sizeof(codes) / sizeof(*codes); i++)
		mask |= (sets >> codes[i].fpu & 1) << codes[i].bit;
	const uint64_t is[2] = {c->locs[LIFT_FSW].w[0] & mask}, want[2] = {(uint64_t)(native_state->x87[5] << 8) & mask};
	return is[0] == want[0] || complain(e, c, "fsw", is, want);
}

/* st(i) afterwards is f((new top - old top + i) & 7); empty places do not count, and NaNs are one. */
static bool compare_x87(const struct example *e, const struct decoded *d, const struct compared *c)
{
	unsigned top = native_state->x87[5] >> 3 & 7, tags = native_state->x87[8] | native_state->x87[9] << 8u;
	for (unsigned i = 0; i < 8; i++) {
		if ((tags >> 2 * ((top + i) & 7) & 3) == 3)
			continue;
		const struct ir_val *v = &c->locs[LIFT_F0 + ((top - 3 + i) & 7)];
		uint64_t want[2] = {0, 0};
		char name[16];
		memcpy(want, &native_state->x87[28 + 10 * i], 10);
		snprintf(name, sizeof(name), "st%u", i);
		if (!v->is_undef && memcmp(v->w, want, 16) && !(is_nan80(v->w) && is_nan80(want)))
			return complain(e, c, name, v->w, want);
	}
	return compare_codes(e, d, c);
}

/* The manuals leave only these results undefined: of a search for a bit in nothing, of double shifts by more bits than there are. */
static bool may_be_undef(const struct decoded *d)
{
	return d->in.mnemonic == ZYDIS_MNEMONIC_BSF || d->in.mnemonic == ZYDIS_MNEMONIC_BSR || d->in.mnemonic == ZYDIS_MNEMONIC_SHLD ||
	       d->in.mnemonic == ZYDIS_MNEMONIC_SHRD;
}

/* Flags that are UNDEF here must be so in the decoder's tables, too. */
static bool compare_flags(const struct example *e, const struct decoded *d, const struct compared *c)
{
	uint32_t undef = d->in.cpu_flags ? d->in.cpu_flags->undefined : 0;
	bool is_shift = d->in.mnemonic == ZYDIS_MNEMONIC_SHL || d->in.mnemonic == ZYDIS_MNEMONIC_SHR;
	bool is_double = d->in.mnemonic == ZYDIS_MNEMONIC_SHLD || d->in.mnemonic == ZYDIS_MNEMONIC_SHRD;
	/* What the decoder does not know: shifts by more bits than there are. */
	if ((is_shift || is_double) && d->ops[0].size < 32)
		undef |= is_shift ? ZYDIS_CPUFLAG_CF : UINT32_MAX;
	for (unsigned i = 0; i < sizeof(flag_bits) / sizeof(*flag_bits); i++) {
		const struct ir_val *v = &c->locs[flag_bits[i].loc];
		const uint64_t want[2] = {native_state->flags >> flag_bits[i].bit & 1, 0};
		char name[32];
		if (v->is_undef && !(undef >> flag_bits[i].bit & 1)) {
			snprintf(name, sizeof(name), "%s (undefined)", flag_bits[i].name);
			return complain(e, c, name, v->w, want);
		}
		/* An instruction run by itself leaves there what it likes, too. */
		bool is_any = v->is_undef || (is_generic && (undef >> flag_bits[i].bit & 1));
		if (!is_any && v->w[0] != want[0])
			return complain(e, c, flag_bits[i].name, v->w, want);
	}
	return true;
}

static bool compare_regs(const struct example *e, const struct decoded *d, const struct compared *c)
{
	for (unsigned i = 0; i < reg_cnt(); i++) {
		const struct ir_val *v = &c->locs[lift_gpr_loc(i)];
		const uint64_t want[2] = {is_64() ? native_state->gpr[i] : (uint32_t)native_state->gpr[i], 0};
		if ((v->is_undef && !may_be_undef(d)) || (!v->is_undef && v->w[0] != want[0]))
			return complain(e, c, gpr_name(i), v->w, want);
		if (!compare_vec(e, c, i))
			return false;
	}
	return compare_flags(e, d, c);
}

static bool compare_memory(const struct example *e, const struct compared *c, struct ir_mem *mem)
{
	for (uint64_t va = NATIVE_WINDOW; va < NATIVE_WINDOW + NATIVE_WINDOW_LEN; va += IR_PAGE_LEN) {
		const struct ir_page *p = ir_mem_page(mem, va);
		const uint8_t *is = native_window + (va - NATIVE_WINDOW);
		if (!memcmp(p->bytes, is, IR_PAGE_LEN))
			continue;
		for (unsigned i = 0; i < IR_PAGE_LEN; i += 8) {
			bool is_undef = p->undef && p->undef[i / 8];
			if (!is_undef && memcmp(p->bytes + i, is + i, 8)) {
				uint64_t a[2] = {0, va + i}, b[2] = {0, va + i};
				memcpy(a, p->bytes + i, 8);
				memcpy(b, is + i, 8);
				return complain(e, c, "memory", a, b);
			}
		}
	}
	return true;
}

/* A repeated string operation that faults has done what comes before the fault in memory; its registers move at its end. */
static bool compare_kept(const struct example *e, const struct compared *c)
{
	for (unsigned i = 0; i < reg_cnt(); i++) {
		const uint64_t was[2] = {c->before.gpr[i], 0};
		if (c->locs[lift_gpr_loc(i)].w[0] != was[0])
			return complain(e, c, "register at the fault", c->locs[lift_gpr_loc(i)].w, was);
	}
	return true;
}

static bool ends_agree(enum native_end n, const struct ir_run *r, size_t len)
{
	bool jumps = r->exit == IR_EXIT_JUMP || r->exit == IR_EXIT_RET || r->exit == IR_EXIT_CALL;
	switch (n) {
	case NATIVE_NEXT:
		return jumps && r->va == NATIVE_INSN_VA + len;
	case NATIVE_JUMPED:
		return jumps && r->va == native_jump_target(len);
	case NATIVE_SEGV:
		return r->exit == IR_EXIT_FAULT || (r->exit == IR_EXIT_TRAP && r->kind == IR_TRAP_HALT);
	case NATIVE_FPE:
		return r->exit == IR_EXIT_TRAP && ir_kind_info((enum ir_kind)r->kind)->op == IR_DIVW;
	default:
		return r->exit == IR_EXIT_TRAP;
	}
}

static bool run_intrin(struct ir_run *r, const struct ir_intrin *in, const struct ir_val *args, struct ir_val *out)
{
	return intrin_c_run(intrin_c, now_fn, r->func->machine, in, args, out);
}

/* One state; false: no further ones make sense. */
static bool run_state(struct example *e, const struct decoded *d, struct ir_func *f, struct compared *c, struct arena *a)
{
	random_state(native_state);
	if (!prepare(native_state, d, e->len)) {
		skip_cnt++;
		return false;
	}
	for (unsigned i = 0; i < 16 && !is_64(); i++)
		native_state->gpr[i] = (uint32_t)native_state->gpr[i];
	c->before = *native_state;
	memcpy(c->window, native_window, NATIVE_WINDOW_LEN);
	enum native_end end = native_run();
	if (end == NATIVE_ILL && d->in.mnemonic != ZYDIS_MNEMONIC_UD2 && d->in.mnemonic != ZYDIS_MNEMONIC_UD1 &&
	    d->in.mnemonic != ZYDIS_MNEMONIC_UD0) {
		skip_cnt++; /* not on this processor */
		return false;
	}
	arena_reset(a);
	struct ir_mem mem = {.arena = a, .fill = fill, .ctx = c};
	to_locs(c);
	struct ir_run r = {.func = f, .arena = a, .locs = c->locs, .mem = &mem};
	/* An INTRIN works on the window itself; a fault would be one of this process. */
	if (is_generic && end != NATIVE_NEXT) {
		skip_cnt += end != NATIVE_SEGV;
		fault_cnt += end == NATIVE_SEGV;
		return end == NATIVE_SEGV || end == NATIVE_FPE;
	}
	static uint8_t after[NATIVE_WINDOW_LEN];
	if (is_generic) {
		r.intrin = run_intrin;
		now_fn = e->fn;
		memcpy(after, native_window, NATIVE_WINDOW_LEN);
		memcpy(native_window, c->window, NATIVE_WINDOW_LEN);
	}
	ir_interp(&r);
	run_cnt++;
	if (is_generic && memcmp(native_window, after, NATIVE_WINDOW_LEN)) {
		const uint64_t none[2] = {0, 0};
		return complain(e, c, "memory", none, none);
	}
	if (!ends_agree(end, &r, e->len)) {
		const uint64_t is[2] = {r.va, r.exit}, want[2] = {0, end};
		return complain(e, c, "the end (kind, address)", is, want);
	}
	has_run[d->in.mnemonic] = true;
	bool is_fault = end == NATIVE_SEGV || end == NATIVE_FPE;
	bool is_repeated = d->in.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
	fault_cnt += end > NATIVE_JUMPED;
	if (end > NATIVE_JUMPED && !is_fault)
		return true;
	if (end > NATIVE_JUMPED && is_repeated)
		return compare_kept(e, c) && compare_memory(e, c, &mem);
	if (is_generic) {
		bool uses_mmx = is_mmx(d);
		return compare_regs(e, d, c) && (!is_wide || compare_wide(e, c)) && (uses_mmx ? compare_mmx(e, c) : compare_x87(e, d, c));
	}
	bool uses_x87 = d->in.meta.isa_set == ZYDIS_ISA_SET_X87 || d->in.meta.isa_ext == ZYDIS_ISA_EXT_X87;
	return compare_regs(e, d, c) && compare_memory(e, c, &mem) && (is_fault || !uses_x87 || compare_x87(e, d, c));
}

static void run_example(struct example *e, unsigned states)
{
	static struct compared c;
	struct arena keep = {0}, scratch = {0};
	struct decoded d;
	struct lift_insn in;
	c.m = lift_machine(arch);
	if (!c.locs)
		c.locs = calloc(512, sizeof(*c.locs));
	if (!c.locs || !patch(e, &d)) {
		skip_cnt++;
		return;
	}
	struct err *err = lift_insn(&keep, arch, e->bytes, e->len, NATIVE_INSN_VA, &in);
	if (!err)
		err = ir_check(in.func);
	if (err) {
		printf("# %s: %s\n", e->form, err->text);
		bad_cnt++;
		err_free(err);
	} else {
		native_put(e->bytes, e->len);
		for (unsigned i = 0; i < states; i++) {
			if (!run_state(e, &d, in.func, &c, &scratch))
				break;
		}
	}
	arena_fini(&keep);
	arena_fini(&scratch);
}

/* The C of all examples that are not lifted; what has none is left out. */
static bool make_c(const char *match)
{
	struct arena keep = {0};
	struct decoded d;
	unsigned kept = 0;
	for (unsigned i = 0; i < example_cnt; i++) {
		struct example *e = &examples[i];
		struct lift_insn in;
		arena_reset(&keep);
		if (!patch(e, &d) || (match && !strstr(e->form, match)))
			continue;
		struct err *err = lift_insn(&keep, arch, e->bytes, e->len, NATIVE_INSN_VA, &in);
		e->fn = err ? -1 : intrin_c_add(intrin_c, in.func);
		if (err)
			err_free(err);
		else if (e->fn >= 0)
			examples[kept++] = *e;
		else
			printf("# no C: %s\n", e->form);
		if (kept % 1000 == 999 && !intrin_c_build(intrin_c))
			return false;
	}
	arena_fini(&keep);
	example_cnt = kept;
	return intrin_c_build(intrin_c);
}

/* What is not lifted, on x86-64: the printed C is of that. */
static bool run_generic(unsigned states, const char *match)
{
	struct arena scratch = {0};
	arch = ARCH_ID_X86_64;
	is_generic = true;
	is_wide = native_wide();
	example_cnt = 0;
	memset(form_hash, 0, HASH_CAP * sizeof(*form_hash));
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (is_judge) {
		take_legacy(&scratch);
		take_vex(&scratch);
	}
	for (unsigned i = 0; i < sizeof(unlifted) / sizeof(*unlifted); i++)
		take_hex(unlifted[i]);
	take_evex(&scratch, is_judge ? 1 : 67);
	arena_fini(&scratch);
	intrin_c = intrin_c_new();
	bool ok = intrin_c && make_c(match);
	run_cnt = skip_cnt = fault_cnt = 0;
	unsigned long bad_before = bad_cnt;
	unsigned form_cnt = 0;
	for (unsigned i = 0; i < example_cnt && ok; i++) {
		unsigned same = examples_of(examples[i].form);
		if (!match || strstr(examples[i].form, match))
			run_example(&examples[i], is_judge ? (states + same - 1) / same : states);
		form_cnt += !i || strcmp(examples[i].form, examples[i - 1].form) != 0;
	}
	printf("# not lifted: about %u forms, %u examples, %lu states, %lu ended in a fault, %lu examples not of this processor, %lu mismatches\n",
	       form_cnt, example_cnt, run_cnt, fault_cnt, skip_cnt, bad_cnt - bad_before);
	intrin_c_free(intrin_c);
	return ok && bad_cnt == bad_before;
}

static bool first_of_form(unsigned example)
{
	const char *form = examples[example].form;
	unsigned i = hash_of(form) % HASH_CAP;
	while (form_hash[i] && strcmp(examples[form_hash[i] - 1].form, form) != 0)
		i = (i + 1) % HASH_CAP;
	return form_hash[i] == example + 1;
}

/* All examples of one architecture. */
static void run_arch(enum arch_id a, unsigned states, const char *match)
{
	arch = a;
	native_mode(is_64() ? 64 : 32);
	example_cnt = 0;
	memset(form_hash, 0, HASH_CAP * sizeof(*form_hash));
	ZydisDecoderInit(&decoder, is_64() ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32,
			 is_64() ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
	for (unsigned i = 0; i < sizeof(rare) / sizeof(*rare); i++)
		take_hex(rare[i]);
	/* Read as 32-bit code they are other instructions, but instructions. */
	static const char *const files[] = {"/bin/bash", "/bin/ls", "/bin/sort", "/usr/lib/x86_64-linux-gnu/libsqlite3.so.0",
					    "/usr/lib/x86_64-linux-gnu/libz.so.1", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
					    "/usr/lib/x86_64-linux-gnu/libm.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6"};
	for (unsigned i = 0; i < sizeof(files) / sizeof(*files); i++)
		scan_file(files[i]);
	if (is_judge) {
		struct arena scratch = {0};
		take_legacy(&scratch);
		take_vex(&scratch);
		arena_fini(&scratch);
	}
	run_cnt = skip_cnt = fault_cnt = 0;
	unsigned form_cnt = 0;
	for (unsigned i = 0; i < example_cnt; i++) {
		unsigned same = examples_of(examples[i].form);
		if (!match || strstr(examples[i].form, match))
			run_example(&examples[i], is_judge ? (states + same - 1) / same : states);
		form_cnt += first_of_form(i);
	}
	printf("# %s: %u forms, %u examples, %lu states, %lu ended in a fault, %lu examples skipped, %lu mismatches so far\n",
	       lift_machine(arch)->name, form_cnt, example_cnt, run_cnt, fault_cnt, skip_cnt, bad_cnt);
}

/* Mnemonics of the lifter's table that no example of had a run. */
static unsigned list_missing(void)
{
	unsigned cnt = 0;
	for (unsigned m = 0; m <= ZYDIS_MNEMONIC_MAX_VALUE; m++) {
		if (!lift_row_of((ZydisMnemonic)m).fn || has_run[m])
			continue;
		printf("%s%s", cnt++ ? " " : "# never run: ", ZydisMnemonicGetString((ZydisMnemonic)m));
	}
	printf("%s", cnt ? "\n" : "");
	return cnt;
}

static int child(unsigned states, const char *match)
{
	if (!native_init()) {
		printf("1..0 # SKIP no memory at fixed addresses\n");
		return 0;
	}
	form_hash = calloc(HASH_CAP, sizeof(*form_hash));
	if (!form_hash)
		return 1;
	run_arch(ARCH_ID_X86_64, states, match);
	bool ran = run_cnt > 0;
	run_arch(ARCH_ID_I386, states, match);
	unsigned missing = match ? 0 : list_missing();
	bool ok = bad_cnt == 0 && ran && run_cnt > 0 && !(is_judge && missing);
	bool generic_ok = run_generic(states, match);
	printf("%sok 1 - lifted instructions and the processor agree\n", ok ? "" : "not ");
	printf("%sok 2 - so do those that are not lifted, run as they are\n1..2\n", generic_ok ? "" : "not ");
	return ok && generic_ok ? 0 : 1;
}

int main(int argc, char **argv)
{
	is_judge = argc > 1 && !strcmp(argv[1], "--judge");
	argc -= is_judge;
	argv += is_judge;
	unsigned states = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : is_judge ? 10000 : 10;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		int rc = child(states, argc > 2 ? argv[2] : NULL);
		fflush(stdout);
		_exit(rc);
	}
	int status;
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 1;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	printf("not ok 1 - the child was killed by signal %d\n1..1\n", WTERMSIG(status));
	return 1;
}
