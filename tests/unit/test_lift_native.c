/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lifted instructions against the processor. Forms are taken from programs of this machine, a few examples of each, plus a list
 * of rare ones; every example runs on states biased towards the places where carries and signs change, natively and in
 * the interpreter, and registers, flags, memory and where control goes must agree, except for what is undefined.
 *
 *   unit-lift-native [STATES [FORM]]   so many states for each example (10), only forms whose name holds FORM
 */
#include "arch/x86/x86_zydis.h"
#include "ir/ir_interp.h"
#include "lift/lift.h"
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

struct example {
	char form[100];
	uint8_t bytes[15];
	uint8_t len;
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

/* --- examples ----------------------------------------------------------------------------------------------- */
/* Takes the bytes when fewer than EXAMPLES_OF_FORM of their form, or they must be are there. */
static void take(const char *form, const uint8_t *bytes, size_t len, bool must)
{
	uint32_t h = 2166136261u;
	for (const char *s = form; *s; s++)
		h = (h ^ (uint8_t)*s) * 16777619u;
	unsigned same = 0;
	for (unsigned i = h % HASH_CAP; form_hash[i]; i = (i + 1) % HASH_CAP)
		same += !strcmp(examples[form_hash[i] - 1].form, form);
	if ((same >= EXAMPLES_OF_FORM && !must) || example_cnt >= HASH_CAP / 2)
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
	unsigned i = h % HASH_CAP;
	while (form_hash[i])
		i = (i + 1) % HASH_CAP;
	form_hash[i] = example_cnt;
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
	if (!in.is_bad && !in.is_generic)
		take(in.form, p, in.len, must);
	else if (must && is_64() && ++bad_cnt)
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

/* --- states ------------------------------------------------------------------------------------------------- */
static uint64_t rng(void)
{
	static uint64_t s = 0x9e3779b97f4a7c15;
	s ^= s << 13;
	s ^= s >> 7;
	s ^= s << 17;
	return s;
}

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

static void random_state(struct native_state *s)
{
	for (unsigned i = 0; i < 16; i++)
		s->gpr[i] = is_64() ? pick() : (uint32_t)pick();
	s->gpr[4] = NATIVE_WINDOW + 0x2000 + (rng() % 64) * 8;
	s->flags = 0x202 | (rng() & 0x8d5) | (rng() % 8 == 0 ? 0x400 : 0);
	for (unsigned i = 0; i < 16; i++) {
		for (unsigned k = 0; k < 4; k++) {
			uint64_t v = pick();
			memcpy(&s->vec[i][8 * k], &v, 8);
		}
	}
	memset(s->x87, 0, sizeof(s->x87));
	/* Top at 3, st(0) .. st(4) valid: three places are free. Exceptions masked, full precision. */
	s->x87[0] = 0x7f;
	s->x87[1] = 0x03;
	s->x87[5] = 3 << 3;
	s->x87[8] = 0x3f;
	s->x87[9] = 0;
	for (unsigned i = 0; i < 8; i++)
		pick_x87(&s->x87[28 + 10 * i]);
	for (unsigned i = 0; i < NATIVE_WINDOW_LEN; i += 8) {
		uint64_t v = pick();
		memcpy(native_window + i, &v, 8);
	}
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
	at &= ~(uint64_t)(op->size >= 128 ? 63 : rng() & 1 ? 7 : 0);
	int base = gpr_of(m->base), index = gpr_of(m->index);
	if (m->segment == ZYDIS_REGISTER_FS || m->segment == ZYDIS_REGISTER_GS || m->type != ZYDIS_MEMOP_TYPE_MEM)
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
	va = is_64() ? va : (uint32_t)va;
	if (va >= NATIVE_WINDOW && va + 8 <= NATIVE_WINDOW + NATIVE_WINDOW_LEN)
		memcpy(native_window + (va - NATIVE_WINDOW), &v, is_64() ? 8 : 4);
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
		if (d->in.raw.disp.size != 32)
			return false;
		uint32_t to = NATIVE_WINDOW + 0x1400, disp = is_rip ? to - NATIVE_INSN_VA - e->len : to;
		memcpy(e->bytes + d->in.raw.disp.offset, &disp, 4);
	}
	if (d->in.raw.imm[0].is_relative && d->in.operand_width == 16)
		return false;
	if (d->in.raw.imm[0].is_relative) {
		uint32_t rel = NATIVE_TAKEN;
		memcpy(e->bytes + d->in.raw.imm[0].offset, &rel, d->in.raw.imm[0].size / 8);
	}
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, e->bytes, e->len, &d->in, d->ops));
}

/* Everything an instruction needs of its state; false: not to be run. */
static bool prepare(struct native_state *s, const struct decoded *d, size_t len)
{
	bool is_indirect = (d->in.meta.category == ZYDIS_CATEGORY_CALL || d->in.meta.category == ZYDIS_CATEGORY_UNCOND_BR) &&
			   !d->in.raw.imm[0].is_relative;
	uint64_t jump = native_jump_target(len);
	if (d->in.address_width == 16 || (!is_64() && d->in.address_width != 32))
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
	bool rounds = d->in.mnemonic == ZYDIS_MNEMONIC_FIST || d->in.mnemonic == ZYDIS_MNEMONIC_FISTP ||
		      d->in.mnemonic == ZYDIS_MNEMONIC_FRNDINT || d->in.mnemonic == ZYDIS_MNEMONIC_FNSTCW;
	if (rounds)
		s->x87[1] |= (uint8_t)(rng() & 0x0c);
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

#define NO_NUM UINT32_MAX

static struct ir_val *loc(const struct compared *c, const char *name, unsigned num)
{
	char full[16];
	if (num == NO_NUM)
		snprintf(full, sizeof(full), "%s", name);
	else
		snprintf(full, sizeof(full), "%s%u", name, num);
	return &c->locs[ir_loc_find(c->m, full, strlen(full))];
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
} flag_bits[] = {{"cf", 0}, {"pf", 2}, {"af", 4}, {"zf", 6}, {"sf", 7}, {"df", 10}, {"of", 11}};

static void to_locs(struct compared *c)
{
	const struct native_state *s = &c->before;
	memset(c->locs, 0, c->m->loc_cnt * sizeof(*c->locs));
	for (unsigned i = 0; i < reg_cnt(); i++) {
		loc(c, gpr_name(i), NO_NUM)->w[0] = s->gpr[i];
		memcpy(loc(c, "xmm", i)->w, s->vec[i], 16);
		memcpy(loc(c, "ymmh", i)->w, s->vec[i] + 16, 16);
	}
	for (unsigned i = 0; i < sizeof(flag_bits) / sizeof(*flag_bits); i++)
		loc(c, flag_bits[i].name, NO_NUM)->w[0] = s->flags >> flag_bits[i].bit & 1;
	for (unsigned i = 0; i < 8; i++)
		memcpy(loc(c, "f", i)->w, &s->x87[28 + 10 * i], 10);
	loc(c, "fcw", NO_NUM)->w[0] = (uint64_t)(s->x87[0] | s->x87[1] << 8);
	loc(c, "mxcsr", NO_NUM)->w[0] = 0x1f80;
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
		const struct ir_val *v = loc(c, half ? "ymmh" : "xmm", i);
		uint64_t want[2];
		char name[16];
		memcpy(want, native_state->vec[i] + 16 * half, 16);
		snprintf(name, sizeof(name), "%s%u", half ? "ymmh" : "xmm", i);
		if (!v->is_undef && memcmp(v->w, want, 16))
			return complain(e, c, name, v->w, want);
	}
	return true;
}

static bool is_nan80(const uint64_t w[2])
{
	return (w[1] & 0x7fff) == 0x7fff && w[0] << 1;
}

/* st(i) afterwards is f((new top - old top + i) & 7); empty places do not count, and NaNs are one. */
static bool compare_x87(const struct example *e, const struct compared *c)
{
	unsigned top = native_state->x87[5] >> 3 & 7, tags = native_state->x87[8] | native_state->x87[9] << 8u;
	for (unsigned i = 0; i < 8; i++) {
		if ((tags >> 2 * ((top + i) & 7) & 3) == 3)
			continue;
		const struct ir_val *v = loc(c, "f", (top - 3 + i) & 7);
		uint64_t want[2] = {0, 0};
		char name[16];
		memcpy(want, &native_state->x87[28 + 10 * i], 10);
		snprintf(name, sizeof(name), "st%u", i);
		if (!v->is_undef && memcmp(v->w, want, 16) && !(is_nan80(v->w) && is_nan80(want)))
			return complain(e, c, name, v->w, want);
	}
	return true;
}

static bool compare_state(const struct example *e, struct compared *c, struct ir_mem *mem, bool uses_x87)
{
	for (unsigned i = 0; i < reg_cnt(); i++) {
		const struct ir_val *v = loc(c, gpr_name(i), NO_NUM);
		const uint64_t want[2] = {is_64() ? native_state->gpr[i] : (uint32_t)native_state->gpr[i], 0};
		if (!v->is_undef && v->w[0] != want[0])
			return complain(e, c, gpr_name(i), v->w, want);
		if (!compare_vec(e, c, i))
			return false;
	}
	for (unsigned i = 0; i < sizeof(flag_bits) / sizeof(*flag_bits); i++) {
		const struct ir_val *v = loc(c, flag_bits[i].name, NO_NUM);
		const uint64_t want[2] = {native_state->flags >> flag_bits[i].bit & 1, 0};
		if (!v->is_undef && v->w[0] != want[0])
			return complain(e, c, flag_bits[i].name, v->w, want);
	}
	for (uint64_t va = NATIVE_WINDOW; va < NATIVE_WINDOW + NATIVE_WINDOW_LEN; va += IR_PAGE_LEN) {
		const struct ir_page *p = ir_mem_page(mem, va);
		const uint8_t *is = native_window + (va - NATIVE_WINDOW);
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
	return !uses_x87 || compare_x87(e, c);
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
	ir_interp(&r);
	run_cnt++;
	if (!ends_agree(end, &r, e->len)) {
		const uint64_t is[2] = {r.va, r.exit}, want[2] = {0, end};
		return complain(e, c, "the end (kind, address)", is, want);
	}
	if (end > NATIVE_JUMPED) {
		fault_cnt++;
		return true;
	}
	bool uses_x87 = d->in.meta.isa_set == ZYDIS_ISA_SET_X87 || d->in.meta.isa_ext == ZYDIS_ISA_EXT_X87;
	return compare_state(e, c, &mem, uses_x87);
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
	run_cnt = skip_cnt = fault_cnt = 0;
	for (unsigned i = 0; i < example_cnt; i++) {
		if (!match || strstr(examples[i].form, match))
			run_example(&examples[i], states);
	}
	printf("# %s: %u examples, %lu states, %lu ended in a fault, %lu examples skipped, %lu mismatches so far\n",
	       lift_machine(arch)->name, example_cnt, run_cnt, fault_cnt, skip_cnt, bad_cnt);
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
	bool ok = bad_cnt == 0 && ran && run_cnt > 0;
	printf("%sok 1 - lifted instructions and the processor agree\n1..1\n", ok ? "" : "not ");
	return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
	unsigned states = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 10;
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
