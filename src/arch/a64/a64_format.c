/* SPDX-License-Identifier: Apache-2.0 */
#include "arch/a64/a64_int.h"

#include "arch/a64/a64.h"
#include "base/dl.h"

#include <capstone/capstone.h>
#include <ctype.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * format(): Capstone's text rewritten in objdump's spelling, token by token: which numbers are decimal,
 * which are addresses, names of conditions. Capstone is loaded when the architecture is first asked for.
 * Its handles are not to be shared, so each thread has its own, made at its first instruction.
 */
static cs_err (*dl_open)(cs_arch, cs_mode, csh *);
static cs_err (*dl_close)(csh *);
static cs_insn *(*dl_malloc)(csh);
static void (*dl_free)(cs_insn *, size_t);
static bool (*dl_disasm_iter)(csh, const uint8_t **, size_t *, uint64_t *, cs_insn *);

struct handle {
	csh cs;
	cs_insn *insn;
};

static pthread_key_t handle_key;
static pthread_once_t load_once = PTHREAD_ONCE_INIT;
static bool is_loaded;
static char load_text[200]; /* why not, when it is not loaded */
static char load_fix[100];

static void handle_free(void *arg)
{
	struct handle *h = (struct handle *)arg;
	if (h->insn)
		dl_free(h->insn, 1);
	dl_close(&h->cs);
	free(h);
}

static void load(void)
{
	const struct dl_sym syms[] = {
		{"cs_open", (void **)&dl_open},     {"cs_close", (void **)&dl_close},
		{"cs_malloc", (void **)&dl_malloc}, {"cs_free", (void **)&dl_free},
		{"cs_disasm_iter", (void **)&dl_disasm_iter},
	};
	struct err *e = dl_load("libcapstone.so.4", "AArch64 code", "libcapstone4", syms, ARRAY_LEN(syms));
	if (!e && pthread_key_create(&handle_key, handle_free) != 0)
		e = err_new(ERR_ENV, "no thread-specific storage left");
	is_loaded = !e;
	if (!e)
		return;
	snprintf(load_text, sizeof(load_text), "%s", e->text);
	snprintf(load_fix, sizeof(load_fix), "%s", e->fix ? e->fix : "");
	err_free(e);
}

struct err *a64_load(void)
{
	pthread_once(&load_once, load);
	if (is_loaded)
		return NULL;
	struct err *e = err_new(ERR_ENV, "%s", load_text);
	return load_fix[0] ? err_fix(e, "%s", load_fix) : e;
}

/* This thread's handle; null when memory is out. */
static struct handle *handle_get(void)
{
	struct handle *h = (struct handle *)pthread_getspecific(handle_key);
	if (h)
		return h;
	h = (struct handle *)calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	if (dl_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, &h->cs) != CS_ERR_OK) {
		free(h);
		return NULL;
	}
	h->insn = dl_malloc(h->cs);
	if (!h->insn || pthread_setspecific(handle_key, h) != 0) {
		handle_free(h);
		return NULL;
	}
	return h;
}

enum number { NUM_HEX, NUM_DEC, NUM_ADDR };

struct text {
	struct arch_text *t;
	arch_name_fn *name;
	void *name_ctx;
	size_t len;
	uint8_t operand;
	bool is_wide;       /* the first register has 64 bits */
	bool is_first_seen;
	bool is_shift_next; /* the next number is the amount of a shift or extension */
	bool was_in_brackets;
	int depth;          /* of [ */
	int braces;
	enum number style;
};

static void put(struct text *x, const char *s, size_t n)
{
	size_t room = ARCH_TEXT_MAX - 1 - x->len;
	n = MIN(n, room);
	memcpy(x->t->text + x->len, s, n);
	x->len += n;
}

static void span(struct text *x, size_t from, enum arch_token kind)
{
	if (x->t->span_cnt < ARCH_SPAN_MAX && x->len > from)
		x->t->spans[x->t->span_cnt++] =
			(struct arch_span){.off = (uint8_t)from, .len = (uint8_t)(x->len - from),
					   .kind = (uint8_t)kind, .operand = x->operand};
}

static bool is_one_of(const char *s, const char *const *list, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (strcmp(s, list[i]) == 0)
			return true;
	}
	return false;
}

/* How numbers outside brackets are written for a mnemonic. */
static enum number number_style(const char *m)
{
	static const char *const dec[] = {
		"lsl",    "lsr",    "asr",    "ror",     "ubfx",    "sbfx",   "ubfiz",   "sbfiz",
		"bfi",    "bfxil",  "extr",   "tbz",     "tbnz",    "bfc",    "shl",     "sshr",
		"ushr",   "ssra",   "usra",   "shrn",    "shrn2",   "sshll",  "sshll2",  "ushll",
		"ushll2", "sri",    "sli",    "ext",     "srshr",   "urshr",  "rshrn",   "rshrn2",
		"sqshl",  "uqshl",  "sqshlu", "sqshrn",  "uqshrn",  "sqshrun", "srsra",  "ursra",
		"udf",    "scvtf",  "ucvtf",  "fcvtzs",  "fcvtzu",  "shll",   "shll2",   "fcmp",
		"fcmpe"};
	static const char *const addr[] = {"b", "bl", "cbz", "cbnz", "adr", "adrp", "ldr", "ldrsw", "prfm"};
	if (is_one_of(m, addr, ARRAY_LEN(addr)) || strncmp(m, "b.", 2) == 0)
		return NUM_ADDR;
	/* cmeq, cmgt, fcmle, ...: compare with zero. */
	if ((strncmp(m, "cm", 2) == 0 && strlen(m) == 4) || (strncmp(m, "fcm", 3) == 0 && strlen(m) == 5))
		return NUM_DEC;
	return is_one_of(m, dec, ARRAY_LEN(dec)) ? NUM_DEC : NUM_HEX;
}

static void put_addr(struct text *x, uint64_t va)
{
	char buf[140];
	size_t from = x->len;
	size_t n = x->name ? x->name(x->name_ctx, va, buf, sizeof(buf)) : 0;
	if (n > 0) {
		put(x, buf, MIN(n, sizeof(buf)));
		span(x, from, ARCH_TOK_NAME);
		return;
	}
	n = (size_t)snprintf(buf, sizeof(buf), "0x%" PRIx64, va);
	put(x, buf, n);
	span(x, from, ARCH_TOK_ADDR);
}

/* "#0x10", "#-16", "#1.50000000"; gives what follows. */
static const char *put_number(struct text *x, const char *s)
{
	char buf[48];
	char *end;
	bool is_float = s[strcspn(s, ".,]} ")] == '.';
	size_t from = x->len;
	int n;
	if (is_float && x->style == NUM_DEC) {
		n = snprintf(buf, sizeof(buf), "#%.1f", strtod(s, &end)); /* fcmp with zero */
	} else if (is_float) {
		n = snprintf(buf, sizeof(buf), "#%.18e", strtod(s, &end));
	} else {
		bool is_neg = *s == '-';
		uint64_t v = strtoull(is_neg ? s + 1 : s, &end, 0);
		if (is_neg)
			v = -v;
		bool is_dec = x->depth > 0 || x->was_in_brackets || x->is_shift_next || x->style == NUM_DEC;
		/* tbz: the bit is decimal, the target behind it is an address. */
		if (!is_dec && x->style == NUM_ADDR) {
			put_addr(x, v);
			return end;
		}
		if (x->style == NUM_DEC && x->depth == 0 && v >= 64 && x->operand == 2) {
			put_addr(x, v);
			return end;
		}
		if (!is_dec && !x->is_wide)
			v = (uint32_t)v;
		n = is_dec ? snprintf(buf, sizeof(buf), "#%" PRId64, (int64_t)v)
			   : snprintf(buf, sizeof(buf), "#0x%" PRIx64, v);
	}
	put(x, buf, (size_t)n);
	span(x, from, x->depth > 0 ? ARCH_TOK_DISP : ARCH_TOK_IMM);
	x->is_shift_next = false;
	return end;
}

/* A register, a modifier, a condition or the name of a system register. */
static const char *put_word(struct text *x, const char *s)
{
	static const char *const shifts[] = {"lsl",  "lsr",  "asr",  "ror",  "uxtb", "uxth", "uxtw",
					     "uxtx", "sxtb", "sxth", "sxtw", "sxtx", "msl"};
	char word[32];
	size_t n = 0;
	size_t from = x->len;
	while ((isalnum((unsigned char)*s) || *s == '_' || *s == '.') && n + 1 < sizeof(word))
		word[n++] = *s++;
	word[n] = 0;
	bool is_shift = is_one_of(word, shifts, ARRAY_LEN(shifts));
	if (strcmp(word, "hs") == 0)
		memcpy(word, "cs", 2);
	else if (strcmp(word, "lo") == 0)
		memcpy(word, "cc", 2);
	put(x, word, n);
	span(x, from, is_shift ? ARCH_TOK_PUNCT : ARCH_TOK_REG);
	x->is_shift_next = is_shift;
	if (!x->is_first_seen) {
		x->is_first_seen = true;
		x->is_wide = word[0] != 'w';
	}
	return s;
}

static void put_operands(struct text *x, const char *s)
{
	while (*s) {
		if (*s == '#') {
			s = put_number(x, s + 1);
			continue;
		}
		if (isalpha((unsigned char)*s)) {
			s = put_word(x, s);
			continue;
		}
		if (*s == '[') {
			x->depth++;
		} else if (*s == ']') {
			x->depth--;
			x->was_in_brackets = true;
		} else if (*s == '{' || *s == '}') {
			x->braces += *s == '{' ? 1 : -1;
		} else if (*s == ',' && x->depth == 0 && x->braces == 0) {
			x->operand++;
		}
		put(x, s, 1);
		s++;
	}
}

/* Hints by number, which Capstone 4 does not know by name; null for what has none. */
static const char *hint_name(uint32_t w)
{
	static const char *const names[40] = {
		[0] = "nop",        [1] = "yield",      [2] = "wfe",        [3] = "wfi",
		[4] = "sev",        [5] = "sevl",       [6] = "dgh",        [7] = "xpaclri",
		[8] = "pacia1716",  [10] = "pacib1716", [12] = "autia1716", [14] = "autib1716",
		[16] = "esb",       [17] = "psb csync", [18] = "tsb csync", [20] = "csdb",
		[24] = "paciaz",    [25] = "paciasp",   [26] = "pacibz",    [27] = "pacibsp",
		[28] = "autiaz",    [29] = "autiasp",   [30] = "autibz",    [31] = "autibsp",
		[32] = "bti",       [34] = "bti c",     [36] = "bti j",     [38] = "bti jc"};
	if ((w & 0xfffff01f) != 0xd503201f)
		return NULL;
	uint32_t hint = a64_bits(w, 5, 7);
	return hint < ARRAY_LEN(names) ? names[hint] : NULL;
}

static void put_fixed(struct text *x, const char *s)
{
	put(x, s, strlen(s));
	span(x, 0, ARCH_TOK_MNEMONIC);
}

static void put_reg(struct text *x, uint32_t r, bool is_wide)
{
	char buf[8];
	size_t from = x->len;
	int n = r == 31 ? snprintf(buf, sizeof(buf), "%czr", is_wide ? 'x' : 'w')
			: snprintf(buf, sizeof(buf), "%c%u", is_wide ? 'x' : 'w', r);
	put(x, buf, (size_t)n);
	span(x, from, ARCH_TOK_REG);
}

/* movz and movn are written as mov of the value they make, unless another encoding would be first choice
 * for it. */
static bool put_move_wide(struct text *x, uint32_t w)
{
	unsigned opc = a64_bits(w, 29, 2);
	unsigned hw = a64_bits(w, 21, 2);
	uint64_t imm = a64_bits(w, 5, 16);
	bool is_wide = w >> 31;
	if ((w & 0x1f800000) != 0x12800000 || (opc != 0 && opc != 2) || (!is_wide && hw > 1))
		return false;
	if ((imm == 0 && hw != 0) || (opc == 0 && !is_wide && imm == 0xffff))
		return false;
	uint64_t v = imm << 16 * hw;
	if (opc == 0)
		v = is_wide ? ~v : (uint32_t)~v;
	put_fixed(x, "mov");
	put(x, " ", 1);
	x->operand = 0;
	put_reg(x, a64_bits(w, 0, 5), is_wide);
	put(x, ", ", 2);
	x->operand = 1;
	char buf[24];
	size_t from = x->len;
	put(x, buf, (size_t)snprintf(buf, sizeof(buf), "#0x%" PRIx64, v));
	span(x, from, ARCH_TOK_IMM);
	return true;
}

/* Aliases that objdump prefers: orr of the zero register, ins, and lengthening shifts by nothing. */
static void use_alias(char *mnemonic, char *ops)
{
	char *zr = strstr(ops, "zr, #");
	char *zero = strstr(ops, ", #0");
	if (strcmp(mnemonic, "orr") == 0 && zr && zr > ops + 1 && strchr(ops, ',') + 3 == zr) {
		memcpy(mnemonic, "mov", 4);
		memmove(zr - 1, zr + 4, strlen(zr + 4) + 1);
	} else if (strcmp(mnemonic, "ins") == 0) {
		memcpy(mnemonic, "mov", 4);
	} else if ((strncmp(mnemonic, "sshll", 5) == 0 || strncmp(mnemonic, "ushll", 5) == 0) && zero &&
		   !zero[4]) {
		const char *tail = mnemonic[5] == '2' ? "2" : "";
		/* "ushll2" and longer: there is room for "uxtl2". */
		memcpy(mnemonic + 1, "xtl", 3);
		memcpy(mnemonic + 4, tail, strlen(tail) + 1);
		*zero = 0;
	}
}

static void put_capstone(struct text *x, const cs_insn *insn)
{
	char mnemonic[sizeof(insn->mnemonic)];
	snprintf(mnemonic, sizeof(mnemonic), "%s", insn->mnemonic);
	if (strcmp(mnemonic, "b.hs") == 0)
		memcpy(mnemonic + 2, "cs", 2);
	else if (strcmp(mnemonic, "b.lo") == 0)
		memcpy(mnemonic + 2, "cc", 2);
	char ops[sizeof(insn->op_str)];
	snprintf(ops, sizeof(ops), "%s", insn->op_str);
	use_alias(mnemonic, ops);
	put_fixed(x, mnemonic);
	if (!ops[0])
		return;
	put(x, " ", 1);
	x->operand = 0;
	x->style = number_style(mnemonic);
	put_operands(x, ops);
}

size_t a64_format(const struct arch *a, const uint8_t *p, size_t len, uint64_t va,
		  const struct arch_names *names, struct arch_text *ret)
{
	struct text x = {.t = ret, .operand = 255};
	struct arch_insn in;
	char buf[32];
	ret->span_cnt = 0;
	if (names) {
		x.name = names->fn;
		x.name_ctx = names->ctx;
	}
	a64_decode(a, p, len, va, &in);
	if (in.flow == ARCH_FLOW_INVALID) {
		put_fixed(&x, "(bad)");
	} else {
		uint32_t w = a64_word(p);
		const char *hint = hint_name(w);
		bool is_done = hint || w >> 16 == 0 || put_move_wide(&x, w);
		struct handle *h = is_done ? NULL : handle_get();
		size_t left = A64_LEN;
		uint64_t at = va;
		if (hint) {
			put_fixed(&x, hint);
		} else if (w >> 16 == 0) {
			snprintf(buf, sizeof(buf), "udf #%u", w);
			put_fixed(&x, buf);
		} else if (is_done) {
			/* A mov, already written. */
		} else if (h && dl_disasm_iter(h->cs, &p, &left, &at, h->insn)) {
			put_capstone(&x, h->insn);
		} else {
			/* An instruction newer than the library. */
			snprintf(buf, sizeof(buf), ".inst 0x%08" PRIx32, w);
			put_fixed(&x, buf);
		}
	}
	ret->len = (uint8_t)x.len;
	ret->text[ret->len] = 0;
	return in.len;
}
