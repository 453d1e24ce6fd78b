/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox over programs compiled here: what well-behaved functions return, and that hostile ones do no harm and are
 * told apart.
 */
#include "live/sandbox/box_int.h"

#include "format/fmt.h"
#include "lib/subject.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char source[] =
	"#define _GNU_SOURCE\n#ifdef MAIN\nint main(void) { return 0; }\n#endif\n"
	"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n"
	"#include <errno.h>\n#include <fcntl.h>\n#include <ctype.h>\n#include <sys/syscall.h>\n#include <sys/mman.h>\n#include <sys/socket.h>\n"
	"long add(long a, long b) { return a + b; }\n"
	"long nine(long a, long b, long c, long d, long e, long f, long g, long h, long i)\n"
	"{ return a + 2*b + 3*c + 4*d + 5*e + 6*f + 7*g + 8*h + 9*i; }\n"
	"double scale(double x, int n, float f) { return x * n + (double)f; }\n"
	"long double wide(double x) { return (long double)x / 3; }\n"
	"size_t upper(char *s) { size_t i = 0; for (; s[i]; i++) s[i] = (char)toupper((unsigned char)s[i]); return i; }\n"
	"static const char *const names[] = {\"zero\", \"one\", \"two\"};\n"
	"static size_t (*const fns[])(const char *) = {strlen};\n"
	"long name_len(int i) { return (long)fns[0](names[i]); }\n"
	"int counter = 41; int zeros[3000];\n"
	"int count(void) { zeros[2999]++; return ++counter + zeros[2999] + zeros[7]; }\n"
	"char *copy(const char *s) { char *p = malloc(100); strcpy(p, s); p = realloc(p, 200); return strcmp(p, s) ? 0 : p; }\n"
	"int say(const char *s) { puts(s); fprintf(stderr, s); return 7; }\n"
	"void leave(void) { exit(3); }\n"
	"void error(int, int, const char *, ...); int fail(int n) { error(n, 0, \"no\"); return 5; }\n"
	"void forever(void) { for (;;) __asm__ volatile(\"\"); }\n"
	"int null(int *p) { return *p; }\n"
	"void undefined(void) { __builtin_trap(); }\n"
	"int divide(int a, int b) { return a / b; }\n"
	"int deep(int n) { volatile char b[64]; b[n & 63] = 1; return deep(n + 1) + b[0]; }\n"
	"long call(long nr, long a, long b, long c) { long r; register long d __asm__(\"r10\") = 0;\n"
	"  __asm__ volatile(\"syscall\" : \"=a\"(r)"
	" : \"0\"(nr), \"D\"(a), \"S\"(b), \"d\"(c), \"r\"(d) : \"rcx\", \"r11\", \"memory\"); return r; }\n"
	"long call32(long nr) { long r; __asm__ volatile(\"int $0x80\" : \"=a\"(r) : \"0\"(nr) : \"memory\"); return r; }\n"
	"long stamp(void) { unsigned a, d; __asm__ volatile(\"rdtsc\" : \"=a\"(a), \"=d\"(d)); return (long)((unsigned long)d << 32 | a); }\n"
	"void fill(unsigned long from, unsigned long to) { for (; from < to; from += 4096) *(volatile char *)from = 1; }\n"
	/* The harness in the same address space: a system call instruction of its own libc, from the pointer an import is bound to. */
	"long through(void) { const unsigned char *p = (const unsigned char *)&__errno_location; unsigned long fn; memcpy(&fn, p + 2, 8);\n"
	"  p = (const unsigned char *)(fn & ~4095ul); for (long i = 0; i < 1 << 22; i++) if (p[i] == 0x0f && p[i + 1] == 5 && p[i + 2] == 0xc3) {\n"
	"  long r; __asm__ volatile(\"call *%1\" : \"=a\"(r) : \"r\"(p + i), \"0\"(57L) : \"rcx\", \"r11\", \"memory\"); return r; } return -99; }\n"
	/* For trials: what is nowhere, calls through it, and memory it must not get. */
	"struct thing { struct thing *next; long v; int (*fn)(struct thing *, int); };\n"
	"long chase(struct thing *t) { long s = 0; for (int i = 0; i < 4; i++) { s += t->v; t->v = s; t = t->next; } return s; }\n"
	"long near_null(void) { struct thing *p; __asm__ volatile(\"xor %0, %0\" : \"=r\"(p)); p->v = 5; p->v += 2; return p->v + (long)p + 1; }\n"
	"long no_address(void) { long *volatile p = (long *)0x6161616161616161; *p = 9; p[-1] = 1; return *p; }\n"
	"long ask(struct thing *t) { int (*volatile f)(struct thing *, int) = (int (*)(struct thing *, int))0x123456789000; return f(t, 3); }\n"
	"long map(long prot, long flags) { return call(9, 0x300000000000, 4096, prot); }\n"
	"long unset; long *unset_p; long variable(void) { return unset; }\n"
	/* What an import left below the stack pointer, but for the return address. */
	"long left(void) { getenv(\"HOME\"); register char *sp __asm__(\"rsp\"); long all = 0;\n"
	"  for (int i = 16; i < 4096; i += 8) all |= *(volatile long *)(sp - i); return all; }\n"
	/* What one left in registers, but for its result. */
	"long kept(const char *s) { long all; char *volatile to = malloc(100); memcpy(to, s, 50); strtod(s, 0);\n"
	"  __asm__ volatile(\"mov %1, %%rdi; call strlen@plt; mov %%rcx, %%rax; or %%rdx, %%rax; or %%rsi, %%rax; or %%rdi, %%rax;\"\n"
	"  \"or %%r8, %%rax; or %%r9, %%rax; or %%r10, %%rax; or %%r11, %%rax; por %%xmm1, %%xmm0; por %%xmm2, %%xmm0;\"\n"
	"  \"por %%xmm3, %%xmm0; por %%xmm15, %%xmm0; movq %%xmm0, %%rcx; or %%rcx, %%rax\" : \"=&a\"(all) : \"b\"(to)\n"
	"  : \"rcx\", \"rdx\", \"rsi\", \"rdi\", \"r8\", \"r9\", \"r10\", \"r11\", \"memory\", \"xmm0\", \"xmm1\"); return all; }\n"
	"double number(const char *s) { return strtod(s, 0) + (double)strtof(s, 0) + atof(s); }\n"
	"static int less(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }\n"
	"int sorted(const char *s) { const char *all[] = {s, \"b\", \"a\"}; qsort(all, 3, sizeof(*all), less);\n"
	"  const char *const key = \"b\"; return *all[0] + (bsearch(&key, all, 3, sizeof(*all), less) == &all[1] ? 1000 : 0); }\n"
	"void smash(void) { char b[8]; memset(b, 'A', 400); __asm__ volatile(\"\" :: \"r\"(b) : \"memory\"); }\n"
	"void unhandled(void) { register unsigned long sp __asm__(\"rsp\"); __asm__ volatile(\"xor %%esp, %%esp; push %%rax\" : \"+r\"(sp)); }\n";

/* What a program can do to its own process without the help of the kernel, or with rt_sigreturn, which handlers need. */
static const char attacks[] =
	"#define _GNU_SOURCE\n#include <string.h>\n#include <ucontext.h>\n"
	"long add(long a, long b) { return a + b; }\n"
	"static long call(long nr, long a, long b, long c, long d) { long r; register long e __asm__(\"r10\") = d;\n"
	"  register long f __asm__(\"r8\") = -1, g __asm__(\"r9\") = 0;\n"
	"  __asm__ volatile(\"syscall\" : \"=a\"(r) : \"0\"(nr), \"D\"(a), \"S\"(b), \"d\"(c), \"r\"(e), \"r\"(f), \"r\"(g)"
	" : \"rcx\", \"r11\", \"memory\"); return r; }\n"
	"static char other_stack[65536];\n"
	/* All signals blocked, no stack for their handlers, and a code segment of 64 or 32 bits. */
	"static void become(void (*to)(void), unsigned long cs) { ucontext_t u; memset(&u, 0, sizeof(u));\n"
	"  greg_t *g = u.uc_mcontext.gregs; g[REG_RIP] = (greg_t)to; g[REG_RSP] = (greg_t)(other_stack + 60000); g[REG_EFL] = 0x202;\n"
	"  g[REG_CSGSFS] = (greg_t)(cs | 0x2bul << 48); u.uc_flags = 6; u.uc_stack.ss_flags = 2; memset(&u.uc_sigmask, 0xff, 8);\n"
	"  __asm__ volatile(\"mov %0, %%rsp; mov $15, %%eax; syscall\" :: \"r\"(&u) : \"memory\"); }\n"
	"static void loop(void) { for (;;) __asm__ volatile(\"\"); }\n"
	"static void getpid_now(void) { call(39, 0, 0, 0, 0); loop(); }\n"
	"static void fault(void) { *(volatile char *)8 = 1; loop(); }\n"
	"static void old_getpid(void) { __asm__ volatile(\"mov $20, %eax; int $0x80; 1: jmp 1b\"); }\n"
	"static void fast_getpid(void) { __asm__ volatile(\"mov $20, %eax; .byte 0x0f, 0x34; 1: jmp 1b\"); }\n"
	"void blocked_loop(void) { become(loop, 0x33); }\n"
	"void blocked_call(void) { become(getpid_now, 0x33); }\n"
	"void blocked_fault(void) { become(fault, 0x33); }\n"
	"void compat_call(void) { become(old_getpid, 0x23); }\n"
	"void compat_fast(void) { become(fast_getpid, 0x23); }\n"
	"void compat_iret(void) { __asm__ volatile(\"push $0x2b; lea other_stack+60000(%rip), %rax; push %rax; push $0x202; push $0x23;\"\n"
	"  \"lea old_getpid(%rip), %rax; push %rax; iretq\"); }\n"
	"void no_frame(void) { __asm__ volatile(\"xor %esp, %esp; mov $15, %eax; syscall\"); }\n"
	"void wide_number(void) { call(39 | 1l << 32, 0, 0, 0, 0); }\n"
	"void sys_enter(void) { __asm__ volatile(\"mov $20, %eax; .byte 0x0f, 0x34\"); }\n"
	"void sys_ret(void) { __asm__ volatile(\".byte 0x48, 0x0f, 0x07\"); }\n"
	"void halt(void) { __asm__ volatile(\"hlt\"); }\n"
	"void no_interrupts(void) { __asm__ volatile(\"cli\"); }\n"
	"void port(void) { __asm__ volatile(\"in $0x60, %%al\" ::: \"rax\"); }\n"
	"void counter(void) { __asm__ volatile(\"xor %%ecx, %%ecx; rdpmc\" ::: \"rax\", \"rcx\", \"rdx\"); }\n"
	"void control(void) { __asm__ volatile(\"mov %%cr0, %%rax\" ::: \"rax\"); }\n"
	"void model(void) { __asm__ volatile(\"xor %%ecx, %%ecx; wrmsr\" ::: \"rax\", \"rcx\", \"rdx\"); }\n"
	"void steps(void) { __asm__ volatile(\"pushf; orl $0x100, (%rsp); popf; nop; nop\"); }\n"
	"long unaligned(void) { __asm__ volatile(\"pushf; orl $0x40000, (%rsp); popf\"); return 7; }\n"
	"long unaligned_fault(void) { unaligned(); return *(volatile long *)(other_stack + 1); }\n"
	"long backwards(void) { __asm__ volatile(\"std\"); return 7; }\n"
	"void no_fs(void) { __asm__ volatile(\"xor %%eax, %%eax; mov %%ax, %%fs; mov %%ax, %%gs; mov %%ax, %%ds; mov %%ax, %%es\" ::: \"rax\");\n"
	"  *(volatile char *)8 = 1; }\n"
	"void no_keys(void) { __asm__ volatile(\"mov $-4, %%eax; xor %%ecx, %%ecx; xor %%edx, %%edx; .byte 0x0f, 0x01, 0xef\""
	" ::: \"rax\", \"rcx\", \"rdx\", \"memory\"); *(volatile char *)other_stack = 1; }\n"
	"void transaction(void) { __asm__ volatile(\".byte 0xc7, 0xf8, 0, 0, 0, 0\" ::: \"rax\", \"memory\"); call(39, 0, 0, 0, 0); }\n"
	"long by_vsyscall(void) { long t[2]; return ((long (*)(long *, void *))0xffffffffff600000)(t, 0); }\n"
	"void nowhere(void) { __asm__ volatile(\"mov $0x8000000000000000, %rax; jmp *%rax\"); }\n"
	"void wild_stack(void) { __asm__ volatile(\"mov $0x4141414141414141, %rsp; push %rax\"); }\n"
	"void huge_stack(void) { volatile char b[1 << 30]; b[0] = 1; b[(1 << 30) - 1] = 1; }\n"
	"long reads(const char *p) { return *(volatile const char *)p; }\n"
	"void smears(volatile char *p, long n) { while (n-- > 0) *p++ = 0x41; }\n"
	"long *result_at; void forges(long *s, long n) { for (long i = 0; i < n; i++) s[i] = 3; call(231, 0, 0, 0, 0); }\n"
	"long over_code(void) { return call(9, (long)&add & -4096, 4096, 3, 0x100022); }\n"
	"long run_made(void) { long p = call(9, 0x300000000000, 4096, 3 | 7l << 32, 0x100022 | 1l << 32); *(char *)p = (char)0xc3;\n"
	"  ((void (*)(void))p)(); return 1; }\n"
	"long all_memory(void) { long n = 0; for (long p = 0x300000000000; n < 4096 && call(9, p, 1 << 20, 3, 0x100022) == p; p += 1 << 21, n++)\n"
	"  memset((void *)p, 1, 1 << 20); return n; }\n";

struct target {
	struct subject *subject;
	struct buf bytes;
	struct image *im;
	struct box *box;
	int fd;
};

#define MEM_LEN (64u << 20)

static struct target *target_of(const char *text, const char *command)
{
	struct target *t = calloc(1, sizeof(*t));
	struct image_data d;
	static const uint8_t sha[32];
	assert_non_null(t);
	t->subject = subject_new(".c", text, command);
	if (!t->subject)
		skip();
	assert_null(image_data_from_fmt(t->subject->bin, sha, &d));
	assert_null(image_serialize(&d, &t->bytes));
	image_data_fini(&d);
	assert_null(image_open_mem(t->bytes.data, t->bytes.len, t->subject->bin->bytes, t->subject->bin->bytes_len, NULL, &t->im));
	t->fd = open(t->subject->path, O_RDONLY | O_CLOEXEC);
	assert_true(t->fd >= 0);
	const struct box_opts opts = {.im = t->im, .fd = t->fd, .wall_ms = 20000, .cpu_s = 1, .mem_len = MEM_LEN};
	struct err *e = box_open(&opts, &t->box);
	if (e)
		fail_msg("%s", e->text);
	return t;
}

static struct target *target_new(const char *command)
{
	return target_of(source, command);
}

static void target_free(struct target *t)
{
	box_close(t->box);
	close(t->fd);
	image_unref(t->im);
	buf_fini(&t->bytes);
	subject_free(t->subject);
	free(t);
}

static uint64_t va_of(struct target *t, const char *name)
{
	for (size_t i = 0; i < t->subject->bin->symbols.cnt; i++) {
		const struct fmt_symbol *s = &t->subject->bin->symbols.data[i];
		if (s->name.len == strlen(name) && !memcmp(s->name.s, name, s->name.len))
			return s->va;
	}
	fail_msg("no symbol %s", name);
	return 0;
}

static struct box_result run(struct target *t, const char *name, const struct box_arg *args, unsigned cnt)
{
	struct box_result r;
	struct err *e = box_call(t->box, va_of(t, name), args, cnt, &r);
	if (e)
		fail_msg("%s: %s", name, e->text);
	return r;
}

/* An integer argument. */
#define INT(v) {.kind = BOX_ARG_INT, .value = (uint64_t)(v)}

static struct box_result run3(struct target *t, const char *name, uint64_t a, uint64_t b, uint64_t c)
{
	const struct box_arg args[] = {INT(a), INT(b), INT(c)};
	return run(t, name, args, 3);
}

static struct box_arg text(const char *s)
{
	return (struct box_arg){.kind = BOX_ARG_BUF, .bytes = (const uint8_t *)s, .len = (uint32_t)strlen(s) + 1};
}

static uint64_t bits64(double d)
{
	uint64_t v;
	memcpy(&v, &d, 8);
	return v;
}

static uint64_t bits32(float d)
{
	uint32_t v;
	memcpy(&v, &d, 4);
	return v;
}

static void check_good(struct target *t)
{
	struct box_result r = run3(t, "add", 40, 2, 0);
	assert_int_equal(r.end, BOX_RETURNED);
	assert_int_equal(r.rax, 42);
	const struct box_arg nine[] = {INT(1), INT(2), INT(3), INT(4), INT(5), INT(6), INT(7), INT(8), INT(9)};
	assert_int_equal(run(t, "nine", nine, 9).rax, 285);
	const struct box_arg scale[] = {{.kind = BOX_ARG_F64, .value = bits64(1.5)}, INT(4), {.kind = BOX_ARG_F32, .value = bits32(0.25f)}};
	assert_int_equal(run(t, "scale", scale, 3).xmm0[0], bits64(6.25));
	const struct box_arg wide[] = {{.kind = BOX_ARG_F64, .value = bits64(1)}};
	r = run(t, "wide", wide, 1);
	long double got = 0;
	memcpy(&got, r.st0, 10);
	assert_true(got == 1.0L / 3);
	const struct box_arg upper[] = {text("hello, World")};
	r = run(t, "upper", upper, 1);
	assert_int_equal(r.rax, 12);
	assert_true(r.bufs_valid && r.bufs_len == 13);
	assert_memory_equal(r.bufs, "HELLO, WORLD", 13);
	/* Through relocated tables, and a function pointer to an import in one. */
	assert_int_equal(run3(t, "name_len", 2, 0, 0).rax, 3);
	assert_int_equal(run3(t, "name_len", 0, 0, 0).rax, 4);
	/* A call leaves nothing for the next. */
	assert_int_equal(run3(t, "count", 0, 0, 0).rax, 43);
	assert_int_equal(run3(t, "count", 0, 0, 0).rax, 43);
	const struct box_arg copy[] = {text("some text")};
	r = run(t, "copy", copy, 1);
	assert_int_equal(r.end, BOX_RETURNED);
	assert_true(r.rax);
	r = run(t, "say", copy, 1);
	assert_int_equal(r.rax, 7);
	assert_int_equal(r.import_calls, 2);
	r = run3(t, "leave", 0, 0, 0);
	assert_int_equal(r.end, BOX_EXITED);
	uint32_t cnt, sym_cnt;
	const struct image_import *imports = image_imports(t->im, &cnt);
	assert_true(r.import < cnt);
	size_t len;
	const char *name = image_text(t->im, image_symbols(t->im, &sym_cnt)[imports[r.import].symbol].name, &len);
	assert_true(len == 4 && !memcmp(name, "exit", 4));
	assert_int_equal(run3(t, "fail", 1, 0, 0).end, BOX_EXITED);
	assert_int_equal(run3(t, "fail", 0, 0, 0).rax, 5);
	assert_int_equal(run3(t, "stamp", 0, 0, 0).rax, 1000);
	const struct box_arg number[] = {text("1.5")};
	assert_int_equal(run(t, "kept", number, 1).rax, 0);
	assert_int_equal(run(t, "number", number, 1).xmm0[0], bits64(4.5));
	const struct box_arg word[] = {text("c")};
	assert_int_equal(run(t, "sorted", word, 1).rax, 'a' + 1000);
}

static void check_hostile(struct target *t)
{
	struct box_result r = run3(t, "forever", 0, 0, 0);
	assert_int_equal(r.end, BOX_TIMEOUT);
	r = run3(t, "null", 0x1234, 0, 0);
	assert_int_equal(r.end, BOX_SIGNAL);
	assert_int_equal(r.signal, SIGSEGV);
	assert_int_equal(r.fault, 0x1234);
	assert_true(r.is_ip_inside && r.ip - va_of(t, "null") < 32);
	assert_int_equal(run3(t, "undefined", 0, 0, 0).signal, SIGILL);
	assert_int_equal(run3(t, "divide", 1, 0, 0).signal, SIGFPE);
	assert_int_equal(run3(t, "deep", 0, 0, 0).signal, SIGSEGV);
	/* Every system call there is, but those the harness itself needs. */
	for (long nr = 0; nr < 600; nr++) {
		if (nr == SYS_exit_group || nr == SYS_rt_sigreturn || nr == SYS_clock_gettime)
			continue;
		r = run3(t, "call", (uint64_t)nr, 0, 0);
		/* The kernel lets uretprobe and uprobe pass every filter; made elsewhere than in its own stub they do nothing
		 * but answer SIGILL and an error. */
		if ((nr == 335 && r.end == BOX_SIGNAL && r.signal == SIGILL) || (nr == 336 && r.end == BOX_RETURNED && (int64_t)r.rax < 0))
			continue;
		if (r.end != BOX_SYSCALL || r.syscall_nr != nr || !r.is_ip_inside)
			fail_msg("system call %ld: %s, signal %d, call %d", nr, box_end_name(r.end), r.signal, r.syscall_nr);
	}
	assert_int_equal(run3(t, "call", SYS_clock_gettime, 0, 0).end, BOX_SYSCALL);
	assert_int_equal(run3(t, "call", SYS_exit_group, 0, 0).end, BOX_BROKEN);
	assert_int_equal(run3(t, "call", 0x40000000 | SYS_getpid, 0, 0).end, BOX_KILLED);
	assert_int_equal(run3(t, "call32", 20, 0, 0).end, BOX_KILLED);
	r = run3(t, "through", 0, 0, 0);
	assert_int_equal(r.end, BOX_SYSCALL);
	assert_int_equal(r.syscall_nr, SYS_fork);
	assert_false(r.is_ip_inside);
	/* The harness's own memory, and all of it. */
	r = run3(t, "fill", 0x1000, 0x7fffffffffff, 0);
	assert_int_equal(r.end, BOX_SIGNAL);
	r = run3(t, "smash", 0, 0, 0);
	assert_true(r.end == BOX_SIGNAL || r.end == BOX_EXITED || r.end == BOX_KILLED);
	r = run3(t, "unhandled", 0, 0, 0);
	assert_true(r.end == BOX_SIGNAL || r.end == BOX_KILLED);
	/* And it still works. */
	assert_int_equal(run3(t, "add", 1, 1, 0).rax, 2);
}

/* How each may end: a bit for each enum box_end. */
#define ENDS(e) (1u << (e))
static const struct {
	const char *name;
	unsigned ends;
	int signal; /* of BOX_SIGNAL and BOX_KILLED; 0: any */
	int syscall_nr;
} attack_table[] = {
	{"blocked_loop", ENDS(BOX_TIMEOUT), 0, 0},
	{"blocked_call", ENDS(BOX_KILLED), SIGSYS, 0},
	{"blocked_fault", ENDS(BOX_KILLED), SIGSEGV, 0},
	{"compat_call", ENDS(BOX_KILLED), SIGSYS, 0},
	{"compat_fast", ENDS(BOX_KILLED), 0, 0}, /* AMD has no such instruction */
	{"compat_iret", ENDS(BOX_KILLED), SIGSYS, 0},
	{"no_frame", ENDS(BOX_SIGNAL) | ENDS(BOX_KILLED), SIGSEGV, 0},
	{"wide_number", ENDS(BOX_SYSCALL), 0, SYS_getpid},
	{"sys_enter", ENDS(BOX_KILLED) | ENDS(BOX_SIGNAL), 0, 0},
	{"sys_ret", ENDS(BOX_SIGNAL), 0, 0},
	{"halt", ENDS(BOX_SIGNAL), SIGSEGV, 0},
	{"no_interrupts", ENDS(BOX_SIGNAL), SIGSEGV, 0},
	{"port", ENDS(BOX_SIGNAL), SIGSEGV, 0},
	{"counter", ENDS(BOX_SIGNAL), SIGSEGV, 0},
	{"control", ENDS(BOX_SIGNAL), SIGSEGV, 0},
	{"model", ENDS(BOX_SIGNAL), SIGSEGV, 0},
	{"steps", ENDS(BOX_SIGNAL), SIGTRAP, 0},
	{"unaligned", ENDS(BOX_RETURNED), 0, 0},
	{"unaligned_fault", ENDS(BOX_SIGNAL) | ENDS(BOX_KILLED), 0, 0},
	{"backwards", ENDS(BOX_RETURNED), 0, 0},
	{"no_fs", ENDS(BOX_SIGNAL) | ENDS(BOX_KILLED), 0, 0},
	{"no_keys", ENDS(BOX_SIGNAL) | ENDS(BOX_KILLED), 0, 0}, /* SIGILL where there are no keys */
	{"transaction", ENDS(BOX_SIGNAL) | ENDS(BOX_SYSCALL), SIGILL, SYS_getpid},
	{"by_vsyscall", ENDS(BOX_SIGNAL) | ENDS(BOX_SYSCALL), SIGSEGV, SYS_gettimeofday},
	{"nowhere", ENDS(BOX_SIGNAL), 0, 0},
	{"wild_stack", ENDS(BOX_SIGNAL), 0, 0},
	{"huge_stack", ENDS(BOX_SIGNAL), SIGSEGV, 0},
	{"run_made", ENDS(BOX_SIGNAL), SIGSEGV, 0},
};

static void expect(const char *name, const struct box_result *r, unsigned ends, int sig, int nr)
{
	bool is_good = ENDS(r->end) & ends;
	if (r->end == BOX_SIGNAL || r->end == BOX_KILLED)
		is_good &= !sig || r->signal == sig;
	if (r->end == BOX_SYSCALL)
		is_good &= r->syscall_nr == nr;
	if (!is_good)
		fail_msg("%s: %s, signal %d, call %d", name, box_end_name(r->end), r->signal, r->syscall_nr);
}

/* Every byte the process can write but the target's, a mapping in each call: the first and the last of it. */
static void smear_all(struct target *t)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[400];
	unsigned cnt = 0;
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long from, to;
		char perm[5];
		if (sscanf(line, "%lx-%lx %4s", &from, &to, perm) != 3 || perm[1] != 'w')
			continue;
		unsigned long len = to - from < 1 << 16 ? to - from : 1 << 16;
		run3(t, "smears", from, len, 0);
		run3(t, "smears", to - len, len, 0);
		cnt++;
	}
	fclose(maps);
	assert_true(cnt > 3);
	assert_int_equal(run3(t, "add", 1, 1, 0).rax, 2);
}

/* What tells the time without a call is not there. */
static void check_clocks(struct target *t)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[400];
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long from;
		if (sscanf(line, "%lx-", &from) != 1 || !(strstr(line, "[vdso") || strstr(line, "[vvar")))
			continue;
		struct box_result r = run3(t, "reads", from, 0, 0);
		if (r.end != BOX_SIGNAL)
			fail_msg("read: %s", line);
	}
	fclose(maps);
}

static void test_attacks(void **state)
{
	(void)state;
	/* The stack of this process may grow without end: that of a call may not. */
	struct rlimit was, now;
	assert_int_equal(getrlimit(RLIMIT_STACK, &was), 0);
	now = (struct rlimit){was.rlim_max, was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_STACK, &now), 0);
	struct target *t = target_of(attacks, "gcc -O1 -w -shared -fPIC -fno-stack-protector -fno-optimize-sibling-calls $SRC -o $OUT");
	for (size_t i = 0; i < sizeof(attack_table) / sizeof(*attack_table); i++) {
		struct box_result r = run3(t, attack_table[i].name, 0, 0, 0);
		expect(attack_table[i].name, &r, attack_table[i].ends, attack_table[i].signal, attack_table[i].syscall_nr);
	}
	struct box_result r = run3(t, "reads", (uintptr_t)__builtin_frame_address(0) - (64 << 20), 0, 0);
	expect("the stack 64 MB below", &r, ENDS(BOX_SIGNAL), SIGSEGV, 0);
	assert_true((int64_t)run3(t, "over_code", 0, 0, 0).rax < 0);
	/* What can be had is what was given, whatever it is asked for; the rest of it the harness itself may have used. */
	r = run3(t, "all_memory", 0, 0, 0);
	assert_int_equal(r.end, BOX_RETURNED);
	assert_in_range(r.rax, MEM_LEN / 2 >> 20, MEM_LEN >> 20);
	r = run3(t, "forges", (uintptr_t)t->box->shared, sizeof(*t->box->shared) / 8, 0);
	/* An answer it made up, perhaps, but one within its bounds. */
	assert_true(r.end < BOX_END_COUNT && (!r.bufs_valid || r.bufs_len == 0));
	smear_all(t);
	check_clocks(t);
	/* The same as trials, for which memory is made and signals are used. */
	for (size_t i = 0; i < sizeof(attack_table) / sizeof(*attack_table); i++) {
		struct box_outcome o;
		const struct box_trial trial = {.va = va_of(t, attack_table[i].name), .seed = i, .cpu_ms = 50};
		struct err *e = box_try(t->box, &trial, &o);
		if (e)
			fail_msg("%s: %s", attack_table[i].name, e->text);
	}
	assert_int_equal(run3(t, "add", 1, 1, 0).rax, 2);
	assert_int_equal(setrlimit(RLIMIT_STACK, &(struct rlimit){was.rlim_cur, now.rlim_max}), 0);
	target_free(t);
}

/* Limits that are lower than those of a call stay as they are. */
static void test_low_limits(void **state)
{
	(void)state;
	struct rlimit was;
	assert_int_equal(getrlimit(RLIMIT_CPU, &was), 0);
	struct target *t = target_new("gcc -O1 -w -shared -fPIC -fno-stack-protector $SRC -o $OUT");
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		/* In a process of its own: a hard limit does not come back. A namespace may have no other user. */
		const struct rlimit low = {600, 600};
		const struct box_opts opts = {.im = t->im, .fd = t->fd, .wall_ms = 20000, .cpu_s = 1000, .mem_len = MEM_LEN};
		struct box *b;
		struct box_result r;
		const struct box_arg args[] = {INT(40), INT(2)};
		bool ok = !setrlimit(RLIMIT_CPU, &low) && (geteuid() || !setuid(65534) || errno == EINVAL) && !box_open(&opts, &b) &&
			  !box_call(b, va_of(t, "add"), args, 2, &r) && r.rax == 42;
		_exit(!ok);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	target_free(t);
}

/* Who is asked to stop does not wait for a call that runs for ever. */
static void *cancel_soon(void *arg)
{
	atomic_bool *cancel = arg;
	usleep(20000);
	atomic_store(cancel, true);
	return NULL;
}

static void test_cancel(void **state)
{
	(void)state;
	struct target *t = target_new("gcc -O1 -w -shared -fPIC -fno-stack-protector $SRC -o $OUT");
	atomic_bool cancel = false;
	const struct box_opts opts = {.im = t->im, .fd = t->fd, .wall_ms = 600000, .cpu_s = 600, .mem_len = MEM_LEN, .cancel = &cancel};
	struct box *b;
	struct box_result r;
	pthread_t thread;
	assert_null(box_open(&opts, &b));
	assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &cancel), 0);
	struct err *e = box_call(b, va_of(t, "forever"), NULL, 0, &r);
	assert_non_null(e);
	assert_int_equal(e->kind, ERR_CANCELLED);
	err_free(e);
	pthread_join(thread, NULL);
	e = box_call(b, va_of(t, "forever"), NULL, 0, &r);
	assert_non_null(e);
	err_free(e);
	box_close(b);
	target_free(t);
}

static struct box_outcome try(struct target *t, const char *name, uint64_t seed)
{
	struct box_outcome o;
	const struct box_trial trial = {.va = va_of(t, name), .seed = seed, .cpu_ms = 50};
	struct err *e = box_try(t->box, &trial, &o);
	if (e)
		fail_msg("%s: %s", name, e->text);
	return o;
}

/* The state of a trial: memory wherever it is asked for, the same for the same seed, and no more than that. */
static void test_trials(void **state)
{
	(void)state;
	struct target *t = target_new("gcc -O1 -w -shared -fPIC -fno-stack-protector $SRC -o $OUT");
	unsigned changed = 0, returned = 0;
	for (uint64_t seed = 0; seed < 16; seed++) {
		struct box_outcome a = try(t, "chase", seed);
		uint64_t rax = a.result.rax, pages = a.page_cnt, hash = a.page_cnt ? a.pages[a.page_cnt - 1].hash : 0;
		returned += a.result.end == BOX_RETURNED;
		struct box_outcome b = try(t, "chase", seed);
		assert_true(b.result.rax == rax && b.page_cnt == pages && (!pages || b.pages[pages - 1].hash == hash));
		changed += try(t, "variable", seed).result.rax != 0;
	}
	assert_in_range(changed, 4, 8);
	/* The sanitizer's own memory is in the way of some. */
	assert_in_range(returned, 12, 16);
	struct box_outcome o = try(t, "near_null", 3);
	assert_int_equal(o.result.end, BOX_RETURNED);
	assert_int_equal(o.result.rax, 8);
	assert_int_equal(try(t, "no_address", 3).result.rax, 9);
	o = try(t, "ask", 1);
	assert_int_equal(o.result.end, BOX_RETURNED);
	assert_int_equal(o.result.import_calls, 1);
	o = try(t, "left", 2);
	assert_int_equal(o.result.end, BOX_RETURNED);
	assert_int_equal(o.result.rax, 0);
	/* What is read tells nothing; what the input says is what is read. */
	const struct box_patch patch = {0, 8, 77};
	struct box_trial trial = {.va = va_of(t, "add"), .seed = 5, .cpu_ms = 50, .patches = &patch, .patch_cnt = 1};
	assert_null(box_try(t->box, &trial, &o));
	assert_int_equal(o.result.rax, 77 + box_trial_word(&trial, 8));
	static const char *const bad[] = {"forever", "deep", "undefined", "call32", "unhandled", "through", "smash"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		o = try(t, bad[i], i);
		if (o.result.end == BOX_RETURNED)
			fail_msg("%s returned", bad[i]);
	}
	/* Memory of files, shared, executable, or in place of other memory is not to be had. */
	for (uint64_t prot = 0; prot < 8; prot++)
		assert_int_equal(run3(t, "map", prot, 0, 0).end, BOX_SYSCALL);
	target_free(t);
}

static uint64_t next_random(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	return *s ^= *s << 17;
}

/* The result memory holds whatever the target's process wanted it to. */
static void test_forged(void **state)
{
	(void)state;
	struct target *t = target_new("gcc -O1 -w -shared -fPIC -fno-stack-protector $SRC -o $OUT");
	uint32_t import_cnt;
	image_imports(t->im, &import_cnt);
	struct box_shared *s = calloc(1, sizeof(*s));
	struct box fake = {.opts = {.im = t->im}, .slide = box_slide(t->box), .shared = s};
	uint64_t r = 88172645463325252u;
	unsigned ends[BOX_END_COUNT] = {0};
	for (unsigned round = 0; round < 20000; round++) {
		uint8_t *p = (uint8_t *)s;
		for (size_t i = 0; i < offsetof(struct box_shared, input); i++)
			p[i] = (uint8_t)(next_random(&r) >> 32);
		if (round & 1)
			s->state = BOX_STATE_DONE;
		if (round & 2)
			s->end = (uint32_t)(next_random(&r) >> 40) % (BOX_END_COUNT + 2);
		static const int status[] = {0, 0, 0, 0, 9, 24, 0x100, 0x7f};
		const struct box_report report = {.status = status[next_random(&r) >> 8 & 7], .is_timeout = round % 50 == 0};
		struct box_result got = {0};
		box_take_result(&fake, &report, 5, &got);
		assert_true(got.end < BOX_END_COUNT);
		ends[got.end]++;
		assert_true(got.import == UINT32_MAX || (got.end == BOX_EXITED && got.import < import_cnt));
		assert_true(!got.bufs_valid || (got.bufs == s->bufs && got.bufs_len == 5));
		assert_true(!got.is_ip_inside || space_seg_of_va(image_space(t->im), got.ip) >= 0);
		if (report.is_timeout || report.status == 9 || report.status == 24 || s->state != BOX_STATE_DONE)
			assert_true(got.end == BOX_TIMEOUT || got.end == BOX_KILLED || got.end == BOX_BROKEN);
		assert_true(strlen(fake.missing) < sizeof(fake.missing));
	}
	for (unsigned i = 0; i < BOX_END_COUNT; i++)
		assert_true(ends[i]);
	free(s);
	target_free(t);
}

/* A segment that wants to lie where this process has something of its own. */
static void test_in_the_way(void **state)
{
	(void)state;
	static const char program[] = "int variable = 1; void _start(void) { variable++; }";
	void *const at = (void *)0x123450000000;
	struct target *t = target_of(program, "gcc -O1 -w -static -nostdlib -no-pie -mcmodel=large -Wl,-Ttext-segment=0x123450000000 $SRC -o $OUT");
	const struct box_opts opts = {.im = t->im, .fd = t->fd, .wall_ms = 20000, .cpu_s = 1, .mem_len = MEM_LEN};
	struct box *b = NULL;
	assert_ptr_equal(mmap(at, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0), at);
	struct err *e = box_open(&opts, &b);
	assert_non_null(e);
	assert_int_equal(e->kind, ERR_BAD_INPUT);
	err_free(e);
	munmap(at, 4096);
	target_free(t);
}

/* A file that lost its end since it was analysed. */
static void test_truncated(void **state)
{
	(void)state;
	struct target *t = target_new("gcc -O1 -w -shared -fPIC $SRC -o $OUT");
	FILE *f = tmpfile();
	assert_non_null(f);
	struct box *box;
	for (unsigned part = 0; part < 4; part++) {
		size_t len = t->subject->bin->bytes_len / 8 * part;
		assert_int_equal(ftruncate(fileno(f), 0), 0);
		assert_true(pwrite(fileno(f), t->subject->bin->bytes, len, 0) == (ssize_t)len);
		const struct box_opts opts = {.im = t->im, .fd = fileno(f), .wall_ms = 2000, .cpu_s = 2, .mem_len = 64 << 20};
		struct err *e = box_open(&opts, &box);
		assert_non_null(e);
		assert_int_equal(e->kind, ERR_BAD_INPUT);
		assert_null(box);
		err_free(e);
	}
	fclose(f);
	target_free(t);
}

static void test_shared(void **state)
{
	(void)state;
	struct target *t = target_new("gcc -O1 -w -shared -fPIC -fno-stack-protector $SRC -o $OUT");
	check_good(t);
	check_hostile(t);
	target_free(t);
}

static void test_fixed(void **state)
{
	(void)state;
	struct target *t = target_new("gcc -O2 -w -no-pie -fno-stack-protector -DMAIN $SRC -o $OUT");
	check_good(t);
	target_free(t);
}

static void test_arguments(void **state)
{
	(void)state;
	struct target *t = target_new("gcc -O1 -w -shared -fPIC $SRC -o $OUT");
	struct box_arg many[BOX_ARG_MAX + 1] = {0};
	struct box_result r;
	struct err *e = box_call(t->box, va_of(t, "add"), many, BOX_ARG_MAX + 1, &r);
	assert_int_equal(e->kind, ERR_INVALID);
	err_free(e);
	e = box_call(t->box, 0x7777777, many, 0, &r);
	assert_int_equal(e->kind, ERR_INVALID);
	err_free(e);
	const struct box_arg big[] = {{.kind = BOX_ARG_BUF, .len = BOX_BUF_TOTAL}, {.kind = BOX_ARG_BUF, .len = 1}};
	e = box_call(t->box, va_of(t, "add"), big, 2, &r);
	assert_int_equal(e->kind, ERR_INVALID);
	err_free(e);
	r = run(t, "null", big, 1);
	assert_int_equal(r.end, BOX_RETURNED);
	assert_int_equal(r.rax, 0);
	target_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_fixed),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_trials),
		cmocka_unit_test(test_attacks),
		cmocka_unit_test(test_low_limits),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_forged),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_in_the_way),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
