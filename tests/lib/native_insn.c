/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/native_insn.h"

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define CODE_VA 0x10000000u
#define CODE_LEN 0x1000u
#define STATE_VA 0x30000000u
#define END_NEXT 0x800u
#define END_JUMPED 0x840u
#define END_COMMON 0x880u
#define BEGIN_32 0xa00u
#define END_64 0xf00u

/* Code segments of Linux for both kinds of code, and its data segment. */
#define CS_32 0x23
#define CS_64 0x33
#define DS_ANY 0x2b

struct native_state *native_state;
uint8_t *native_window;

static uint8_t *code;
static sigjmp_buf back;
static bool has_avx, is_32, is_wide;

#define AT(member) (uint32_t)(STATE_VA + offsetof(struct native_state, member))

static uint8_t *put_byte(uint8_t *p, unsigned b)
{
	*p = (uint8_t)b;
	return p + 1;
}

static uint8_t *put_u32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, 4);
	return p + 4;
}

/* Opcode bytes, then a ModRM for [absolute address] with `reg` in its middle. */
static uint8_t *put_abs(uint8_t *p, const char *opcode, unsigned len, unsigned reg, uint32_t va)
{
	memcpy(p, opcode, len);
	if (is_32)
		return put_u32(put_byte(p + len, (reg & 7) << 3 | 5), va);
	p = put_byte(p + len, (reg & 7) << 3 | 4);
	return put_u32(put_byte(p, 0x25), va);
}

static uint8_t *put_gpr(uint8_t *p, bool is_load, unsigned reg)
{
	const char op[2] = {(char)(reg < 8 ? 0x48 : 0x4c), (char)(is_load ? 0x8b : 0x89)};
	return put_abs(p, is_32 ? op + 1 : op, is_32 ? 1 : 2, reg, (uint32_t)(AT(gpr) + 8 * reg));
}

static uint8_t *put_vec(uint8_t *p, bool is_load, unsigned reg)
{
	const char avx[3] = {(char)0xc5, (char)(reg < 8 ? 0xfe : 0x7e), (char)(is_load ? 0x6f : 0x7f)};
	const char sse[3] = {(char)(reg < 8 ? 0x40 : 0x44), 0x0f, (char)(is_load ? 0x10 : 0x11)};
	const char evex[5] = {0x62, (char)(0x61 | (reg & 8 ? 0 : 0x80) | (reg & 16 ? 0 : 0x10)), (char)0xfe, 0x48, (char)(is_load ? 0x6f : 0x7f)};
	if (is_wide)
		return put_abs(p, evex, 5, reg, (uint32_t)(AT(vec) + 64 * reg));
	if (!has_avx && is_32)
		return put_abs(p, sse + 1, 2, reg, (uint32_t)(AT(vec) + 64 * reg));
	return put_abs(p, has_avx ? avx : sse, 3, reg, (uint32_t)(AT(vec) + 64 * reg));
}

static uint8_t *put_all_vecs(uint8_t *p, bool is_load)
{
	const char kmov[4] = {(char)0xc4, (char)0xe1, (char)0xf8, (char)(is_load ? 0x90 : 0x91)};
	for (unsigned i = 0; i < (is_wide ? 32u : is_32 ? 8u : 16u); i++)
		p = put_vec(p, is_load, i);
	for (unsigned i = 0; i < 8 && is_wide; i++)
		p = put_abs(p, kmov, 4, i, (uint32_t)(AT(k) + 8 * i));
	return p;
}

static uint8_t *put_jmp(uint8_t *p, uint32_t to)
{
	p = put_byte(p, 0xe9);
	return put_u32(p, to - (uint32_t)((p - code) + CODE_VA + 4));
}

static unsigned reg_cnt(void)
{
	return is_32 ? 8 : 16;
}

/* From the call in C to the instruction's first byte. */
static void put_begin(void)
{
	static const uint8_t save[] = {0x53, 0x55, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57};
	bool to_32 = is_32;
	uint8_t *p = code;
	memcpy(p, save, sizeof(save));
	is_32 = false;
	p = put_abs(p + sizeof(save), "\x48\x89", 2, 4, AT(host_sp));
	if (to_32) {
		static const uint8_t set_segments[] = {0xb8, DS_ANY, 0, 0, 0, 0x8e, 0xd8, 0x8e, 0xc0};
		memcpy(p, set_segments, sizeof(set_segments));
		put_abs(p + sizeof(set_segments), "\xff", 1, 5, AT(far_va));
		p = code + BEGIN_32;
		is_32 = true;
		p = put_u32(put_byte(p, 0xbc), AT(stack) + sizeof(native_state->stack));
	}
	p = put_all_vecs(p, true);
	p = put_abs(p, "\xdd", 1, 4, AT(x87));
	p = put_abs(p, "\xff", 1, 6, AT(flags));
	p = put_byte(p, 0x9d);
	for (unsigned i = 0; i < reg_cnt(); i++)
		p = put_gpr(p, true, i);
	put_jmp(p, NATIVE_INSN_VA);
}

/* And back. */
static void put_ends(void)
{
	static const uint8_t restore[] = {0xfc, 0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5d, 0x5b, 0xc3};
	for (unsigned which = 1; which <= 2; which++) {
		uint8_t *p = code + (which == 1 ? END_NEXT : END_JUMPED);
		p = put_u32(put_abs(p, "\xc7", 1, 0, AT(marker)), which);
		put_jmp(p, CODE_VA + END_COMMON);
	}
	uint8_t *p = code + END_COMMON;
	for (unsigned i = 0; i < reg_cnt(); i++)
		p = put_gpr(p, false, i);
	if (is_32)
		p = put_u32(put_byte(p, 0xbc), AT(stack) + sizeof(native_state->stack));
	else
		p = put_abs(p, "\x48\x8b", 2, 4, AT(host_sp));
	p = put_abs(put_byte(p, 0x9c), "\x8f", 1, 0, AT(flags));
	p = put_all_vecs(p, false);
	p = put_abs(p, "\xdd", 1, 6, AT(x87));
	if (has_avx) {
		memcpy(p, "\xc5\xf8\x77", 3);
		p += 3;
	}
	if (is_32) {
		p = put_u32(put_byte(p, 0xea), CODE_VA + END_64);
		put_byte(put_byte(p, CS_64), 0);
		p = code + END_64;
		is_32 = false;
		p = put_abs(p, "\x48\x8b", 2, 4, AT(host_sp));
		is_32 = true;
	}
	memcpy(p, restore, sizeof(restore));
}

static void put_all(void)
{
	memset(code, 0xcc, CODE_LEN);
	put_begin();
	put_ends();
}

void native_mode(unsigned bits)
{
	is_32 = bits == 32;
	is_wide = false;
	put_all();
}

bool native_wide(void)
{
	is_32 = false;
	is_wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
	put_all();
	return is_wide;
}

/* What the registers were at the fault, as if they had been stored. */
static void on_signal(int sig, siginfo_t *info, void *context)
{
	static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
				      REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
	const mcontext_t *m = &((const ucontext_t *)context)->uc_mcontext;
	(void)info;
	for (unsigned i = 0; i < 16; i++) {
		native_state->gpr[i] = (uint64_t)m->gregs[order[i]];
		memcpy(native_state->vec[i], &m->fpregs->_xmm[i], 16);
	}
	native_state->flags = (uint64_t)m->gregs[REG_EFL];
	siglongjmp(back, sig);
}

static void *map_at(uint32_t va, size_t len, int prot)
{
	void *p = mmap((void *)(uintptr_t)va, len, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	return p == (void *)(uintptr_t)va ? p : NULL;
}

bool native_init(void)
{
	static uint8_t stack[65536];
	const stack_t alt = {.ss_sp = stack, .ss_size = sizeof(stack)};
	const struct sigaction act = {.sa_sigaction = on_signal, .sa_flags = SA_ONSTACK | SA_NODEFER | SA_SIGINFO};
	__builtin_cpu_init();
	has_avx = __builtin_cpu_supports("avx2");
	code = map_at(CODE_VA, CODE_LEN, PROT_READ | PROT_WRITE | PROT_EXEC);
	native_window = map_at(NATIVE_WINDOW, NATIVE_WINDOW_LEN, PROT_READ | PROT_WRITE);
	native_state = map_at(STATE_VA, 4096, PROT_READ | PROT_WRITE);
	if (!code || !native_window || !native_state || sigaltstack(&alt, NULL))
		return false;
	static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
	for (unsigned i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		if (sigaction(signals[i], &act, NULL))
			return false;
	}
	native_mode(64);
	return true;
}

uint64_t native_jump_target(size_t insn_len)
{
	return NATIVE_INSN_VA + insn_len + NATIVE_TAKEN;
}

void native_put(const uint8_t *bytes, size_t len)
{
	uint8_t *p = code + (NATIVE_INSN_VA - CODE_VA);
	memset(p, 0xcc, 64);
	memcpy(p, bytes, len);
	put_jmp(p + len, CODE_VA + END_NEXT);
	put_jmp(p + len + NATIVE_TAKEN, CODE_VA + END_JUMPED);
}

enum native_end native_run(void)
{
	native_state->marker = 0;
	native_state->far_va = CODE_VA + BEGIN_32;
	native_state->far_cs = CS_32;
	int sig = sigsetjmp(back, 0);
	if (!sig) {
		((void (*)(void))(uintptr_t)CODE_VA)();
		return native_state->marker == 1 ? NATIVE_NEXT : NATIVE_JUMPED;
	}
	__asm__ volatile("cld; fninit");
	return sig == SIGSEGV || sig == SIGBUS ? NATIVE_SEGV : sig == SIGFPE ? NATIVE_FPE : sig == SIGILL ? NATIVE_ILL : NATIVE_OTHER;
}
