/* SPDX-License-Identifier: Apache-2.0 */
#include "live/platform/plat_target.h"

#include "base/cleanup.h"
#include "live/platform/plat_inf_int.h"

#include <cpuid.h>
#include <elf.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum place { IN_REGS, IN_XSTATE, TAG_WORD, YMM_HIGH };

struct reg {
	const char *name;
	uint16_t off;       /* in user_regs_struct, or in the XSAVE area (FXSAVE: Intel SDM, volume 1, table 10-2); YMM_HIGH: which */
	uint8_t len;        /* in packets, bytes */
	uint8_t place_len;  /* where it is, bytes; shorter is filled with zeros */
	uint8_t place;      /* enum place */
	int8_t dwarf;       /* its number (System V ABI, figure 3.36); -1 none */
	const char *type;
	const char *more;   /* attributes for LLDB */
};

#define R64(NAME, FIELD, DWARF, TYPE, MORE) {NAME, offsetof(struct user_regs_struct, FIELD), 8, 8, IN_REGS, DWARF, TYPE, MORE}
#define R32(NAME, FIELD, DWARF) {NAME, offsetof(struct user_regs_struct, FIELD), 4, 4, IN_REGS, DWARF, "int32", ""}
#define ST(I) {"st" #I, 32 + 16 * I, 10, 10, IN_XSTATE, 33 + I, "i387_ext", ""}
#define FPU(NAME, OFF, LEN) {NAME, OFF, 4, LEN, IN_XSTATE, -1, "int", " group=\"float\""}
#define XMM(I) {"xmm" #I, 160 + 16 * I, 16, 16, IN_XSTATE, 17 + I, "vec128", ""}
#define YMMH(I) {"ymm" #I "h", I, 16, 16, YMM_HIGH, -1, "uint128", ""}

static const struct reg regs[] = {
	R64("rax", rax, 0, "int64", ""), R64("rbx", rbx, 3, "int64", ""), R64("rcx", rcx, 2, "int64", " generic=\"arg4\""),
	R64("rdx", rdx, 1, "int64", " generic=\"arg3\""), R64("rsi", rsi, 4, "int64", " generic=\"arg2\""),
	R64("rdi", rdi, 5, "int64", " generic=\"arg1\""), R64("rbp", rbp, 6, "data_ptr", " generic=\"fp\""),
	R64("rsp", rsp, 7, "data_ptr", " generic=\"sp\""), R64("r8", r8, 8, "int64", " generic=\"arg5\""),
	R64("r9", r9, 9, "int64", " generic=\"arg6\""), R64("r10", r10, 10, "int64", ""), R64("r11", r11, 11, "int64", ""),
	R64("r12", r12, 12, "int64", ""), R64("r13", r13, 13, "int64", ""), R64("r14", r14, 14, "int64", ""), R64("r15", r15, 15, "int64", ""),
	R64("rip", rip, 16, "code_ptr", " generic=\"pc\""), {"eflags", offsetof(struct user_regs_struct, eflags), 4, 4, IN_REGS, 49,
	"i386_eflags", " generic=\"flags\" altname=\"rflags\""}, R32("cs", cs, 51), R32("ss", ss, 52), R32("ds", ds, 53), R32("es", es, 50),
	R32("fs", fs, 54), R32("gs", gs, 55),
	ST(0), ST(1), ST(2), ST(3), ST(4), ST(5), ST(6), ST(7),
	FPU("fctrl", 0, 2), FPU("fstat", 2, 2), {"ftag", 4, 4, 2, TAG_WORD, -1, "int", " group=\"float\""}, FPU("fiseg", 12, 2), FPU("fioff", 8, 4),
	FPU("foseg", 20, 2), FPU("fooff", 16, 4), FPU("fop", 6, 2),
	XMM(0), XMM(1), XMM(2), XMM(3), XMM(4), XMM(5), XMM(6), XMM(7), XMM(8), XMM(9), XMM(10), XMM(11), XMM(12), XMM(13), XMM(14), XMM(15),
	{"mxcsr", 24, 4, 4, IN_XSTATE, 64, "i386_mxcsr", " group=\"vector\""},
	R64("orig_rax", orig_rax, -1, "int", " group=\"system\""), R64("fs_base", fs_base, 58, "int", ""), R64("gs_base", gs_base, 59, "int", ""),
	YMMH(0), YMMH(1), YMMH(2), YMMH(3), YMMH(4), YMMH(5), YMMH(6), YMMH(7), YMMH(8), YMMH(9), YMMH(10), YMMH(11), YMMH(12), YMMH(13), YMMH(14),
	YMMH(15),
};

/* Where a feature's registers begin. */
static const struct {
	const char *name;
	unsigned first;
} features[] = {{"org.gnu.gdb.i386.core", 0}, {"org.gnu.gdb.i386.sse", 40}, {"org.gnu.gdb.i386.linux", 57}, {"org.gnu.gdb.i386.segments", 58},
		{"org.gnu.gdb.i386.avx", 60}};

#define GENERAL_CNT 24
#define AVX_FIRST 60
#define XSTATE_BV_OFF 512 /* XSAVE header: which parts are not in their first state (Intel SDM, volume 1, 13.4.2) */
#define XSTATE_X87_SSE 3u
#define XSTATE_AVX 4u

/* The upper halves of the ymm registers in the standard form of the XSAVE area; 0: this processor has none. */
static unsigned ymm_off(void)
{
	unsigned a = 0, b = 0, c = 0, d = 0;
	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_AVX) || !__get_cpuid_count(0xd, 2, &a, &b, &c, &d))
		return 0;
	return a >= 16 * PLAT_REG_MAX_LEN && b <= PLAT_XSTATE_LEN - a ? b : 0;
}

unsigned plat_reg_cnt(void)
{
	return ymm_off() ? ARRAY_LEN(regs) : AVX_FIRST;
}

unsigned plat_reg_len(unsigned reg)
{
	return regs[reg].len;
}

unsigned plat_reg_general_cnt(void)
{
	return GENERAL_CNT;
}

/* FXSAVE has a bit for each register that is in use; debuggers want the x87's own two bits: 0 valid, 1 zero, 2 special, 3 empty. */
static uint16_t tag_word(const uint8_t *fx)
{
	unsigned top = fx[3] >> 3 & 7;
	uint16_t word = 0;
	for (unsigned i = 0; i < 8; i++) {
		const uint8_t *st = fx + 32 + 16 * ((i - top) & 7);
		unsigned exponent = (st[9] & 0x7f) << 8 | st[8];
		bool is_zero = !(st[0] | st[1] | st[2] | st[3] | st[4] | st[5] | st[6] | st[7]);
		unsigned tag = !(fx[4] >> i & 1) ? 3 : !exponent && is_zero ? 1 : !exponent || exponent == 0x7fff || !(st[7] & 0x80) ? 2 : 0;
		word = (uint16_t)(word | tag << (2 * i));
	}
	return word;
}

static uint8_t tag_bits(uint16_t word)
{
	uint8_t bits = 0;
	for (unsigned i = 0; i < 8; i++)
		bits = (uint8_t)(bits | (unsigned)((word >> (2 * i) & 3) != 3) << i);
	return bits;
}

/* The register's bytes in the thread's copy, or null. */
static uint8_t *place_of(struct plat_thread *t, const struct reg *r)
{
	if (r->place == IN_REGS)
		return plat_regs(t) ? (uint8_t *)&t->regs + r->off : NULL;
	uint8_t *x = plat_xstate(t);
	if (!x || r->place != YMM_HIGH)
		return x ? x + r->off : NULL;
	unsigned off = ymm_off() + PLAT_REG_MAX_LEN * r->off;
	return ymm_off() && off + PLAT_REG_MAX_LEN <= t->xstate_len ? x + off : NULL;
}

bool plat_reg_get(struct plat_thread *t, unsigned reg, uint8_t ret[PLAT_REG_MAX_LEN])
{
	const struct reg *r = &regs[reg];
	const uint8_t *from = reg < plat_reg_cnt() ? place_of(t, r) : NULL;
	if (!from)
		return false;
	memset(ret, 0, PLAT_REG_MAX_LEN);
	if (r->place == TAG_WORD)
		memcpy(ret, &(uint16_t){tag_word(t->xstate)}, 2);
	else if (r->place != YMM_HIGH || t->xstate[XSTATE_BV_OFF] & XSTATE_AVX)
		memcpy(ret, from, r->place_len);
	return true;
}

bool plat_reg_set(struct plat_thread *t, unsigned reg, const uint8_t *value)
{
	const struct reg *r = &regs[reg];
	uint8_t *to = reg < plat_reg_cnt() ? place_of(t, r) : NULL;
	if (!to)
		return false;
	if (r->place == IN_REGS) {
		bool is_moved = reg == PLAT_REG_RIP && memcmp(to, value, r->place_len);
		memcpy(to, value, r->place_len);
		t->is_regs_dirty = true;
		/* A system call that was interrupted is not to be begun again elsewhere. */
		if (is_moved)
			t->regs.orig_rax = ~0ull;
		return true;
	}
	uint16_t word;
	memcpy(&word, value, sizeof(word));
	if (r->place == TAG_WORD)
		*to = tag_bits(word);
	else
		memcpy(to, value, r->place_len);
	if (t->xstate_len > XSTATE_BV_OFF)
		t->xstate[XSTATE_BV_OFF] = (uint8_t)(t->xstate[XSTATE_BV_OFF] | (r->place == YMM_HIGH ? XSTATE_AVX : XSTATE_X87_SSE));
	t->is_xstate_dirty = true;
	return true;
}

static void put_types(struct buf *out, const char *feature)
{
	static const char eflags[] =
		"<flags id=\"i386_eflags\" size=\"4\"><field name=\"CF\" start=\"0\" end=\"0\"/><field name=\"\" start=\"1\" end=\"1\"/>"
		"<field name=\"PF\" start=\"2\" end=\"2\"/><field name=\"AF\" start=\"4\" end=\"4\"/><field name=\"ZF\" start=\"6\" end=\"6\"/>"
		"<field name=\"SF\" start=\"7\" end=\"7\"/><field name=\"TF\" start=\"8\" end=\"8\"/><field name=\"IF\" start=\"9\" end=\"9\"/>"
		"<field name=\"DF\" start=\"10\" end=\"10\"/><field name=\"OF\" start=\"11\" end=\"11\"/></flags>";
	static const char vectors[] =
		"<vector id=\"v4f\" type=\"ieee_single\" count=\"4\"/><vector id=\"v2d\" type=\"ieee_double\" count=\"2\"/>"
		"<vector id=\"v16i8\" type=\"int8\" count=\"16\"/><vector id=\"v8i16\" type=\"int16\" count=\"8\"/>"
		"<vector id=\"v4i32\" type=\"int32\" count=\"4\"/><vector id=\"v2i64\" type=\"int64\" count=\"2\"/>"
		"<union id=\"vec128\"><field name=\"v4_float\" type=\"v4f\"/><field name=\"v2_double\" type=\"v2d\"/>"
		"<field name=\"v16_int8\" type=\"v16i8\"/><field name=\"v8_int16\" type=\"v8i16\"/><field name=\"v4_int32\" type=\"v4i32\"/>"
		"<field name=\"v2_int64\" type=\"v2i64\"/><field name=\"uint128\" type=\"uint128\"/></union>"
		"<flags id=\"i386_mxcsr\" size=\"4\"><field name=\"IE\" start=\"0\" end=\"0\"/><field name=\"DE\" start=\"1\" end=\"1\"/>"
		"<field name=\"ZE\" start=\"2\" end=\"2\"/><field name=\"OE\" start=\"3\" end=\"3\"/><field name=\"UE\" start=\"4\" end=\"4\"/>"
		"<field name=\"PE\" start=\"5\" end=\"5\"/><field name=\"DAZ\" start=\"6\" end=\"6\"/><field name=\"IM\" start=\"7\" end=\"7\"/>"
		"<field name=\"DM\" start=\"8\" end=\"8\"/><field name=\"ZM\" start=\"9\" end=\"9\"/><field name=\"OM\" start=\"10\" end=\"10\"/>"
		"<field name=\"UM\" start=\"11\" end=\"11\"/><field name=\"PM\" start=\"12\" end=\"12\"/>"
		"<field name=\"FZ\" start=\"15\" end=\"15\"/></flags>";
	if (strstr(feature, ".core"))
		buf_add_str(out, eflags);
	else if (strstr(feature, ".sse"))
		buf_add_str(out, vectors);
}

void plat_target_xml(struct buf *out)
{
	unsigned cnt = plat_reg_cnt();
	buf_add_str(out, "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target>"
			 "<architecture>i386:x86-64</architecture><osabi>GNU/Linux</osabi>");
	for (size_t f = 0; f < ARRAY_LEN(features) && features[f].first < cnt; f++) {
		unsigned end = f + 1 < ARRAY_LEN(features) ? features[f + 1].first : cnt;
		buf_printf(out, "<feature name=\"%s\">", features[f].name);
		put_types(out, features[f].name);
		for (unsigned i = features[f].first; i < end; i++) {
			const struct reg *r = &regs[i];
			buf_printf(out, "<reg name=\"%s\" bitsize=\"%u\" type=\"%s\" regnum=\"%u\"%s", r->name, 8u * r->len, r->type, i, r->more);
			if (r->dwarf >= 0)
				buf_printf(out, " ehframe_regnum=\"%d\" dwarf_regnum=\"%d\"", r->dwarf, r->dwarf);
			buf_add_str(out, "/>");
		}
		buf_add_str(out, "</feature>");
	}
	buf_add_str(out, "</target>");
}
