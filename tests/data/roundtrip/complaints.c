/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people complained about in the C of decompilers, as kinds: each function is made so that a wrong answer of that kind shows. Right is
 * what stands here, as the source or the processor's manual has it; the program says of each whether it is so, and its C has to say the same.
 * docs/measuring.md names the kinds by their numbers.
 */
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline, noclone))
#define CODE(name, ...)                                                                                                          \
	__asm__(".text\n.globl " #name "\n.type " #name ",@function\n.p2align 4\n" #name ":\n" __VA_ARGS__ ".size " #name ",.-" #name "\n")

typedef float floats __attribute__((vector_size(16)));

/* 1: overflow of a negation. */
int c01(long x);
CODE(c01, "xorl %eax,%eax\nneg %rdi\nseto %al\nret\n");
/* 2: a comparison with the highest number. */
APART int c02(unsigned c)
{
	if (c > 0x7fffffff)
		return 2;
	return 4;
}
/* 3: a store through a pointer to the stack. */
APART int c03(int a)
{
	int *p = &a, **q = &p;
	**q = a + 1;
	*p = *p;
	return *p;
}
/* 4: the overflow flag of a shift by one is the bit that went. */
int c04(unsigned x);
CODE(c04, "movl %edi,%eax\nshrl $1,%eax\nmovl $0,%eax\nmovl $1,%ecx\ncmovo %ecx,%eax\nret\n");
/* 5: what is no number. */
int c05(double x);
CODE(c05, "ucomisd %xmm0,%xmm0\nsetp %al\nmovzbl %al,%eax\nret\n");
APART int c05_is(double x, double y)
{
	return (x != x) * 1 + !(x < y) * 2 + (x >= y) * 4;
}
/* 6: the same of the x87: below, or unordered. */
double c06(double a, double b);
CODE(c06, "movsd %xmm0,-8(%rsp)\nmovsd %xmm1,-16(%rsp)\nfldl -16(%rsp)\nfldl -8(%rsp)\n"
	  "fcomi %st(1),%st\nfcmovb %st(1),%st\nfstpl -8(%rsp)\nfstp %st(0)\n"
	  "movsd -8(%rsp),%xmm0\nret\n");
/* 7, 8: lanes. */
floats c07(floats x);
CODE(c07, "shufps $0xaa,%xmm0,%xmm0\nret\n");
floats c08(floats x);
CODE(c08, "movaps %xmm0,%xmm1\nshufps $0x1b,%xmm1,%xmm1\naddps %xmm1,%xmm0\nret\n");
/* 9: an instruction few processors have, behind which the function goes on: vpxorq %zmm2,%zmm1,%zmm0. */
int c09(int x);
CODE(c09, "movl %edi,%eax\ncmpl $123456,%edi\njne 1f\n.byte 0x62,0xf1,0xf5,0x48,0xef,0xc2\n1: imull $3,%eax,%eax\naddl $1,%eax\nret\n");
/* 10: a table of jumps. 11: one without bounds, since the source has none. */
APART int c10(int x)
{
	switch (x) {
	case 0: return 17;
	case 1: return x * 5 - 40;
	case 2: return abs(x) + 1;
	case 3: return abs(x - 9);
	case 4: return -x;
	case 5: return 1234;
	case 6: return x * x * x;
	default: return -1;
	}
}
APART int c11(unsigned x)
{
	switch (x) {
	case 0: return 9;
	case 1: return abs((int)x) + 3;
	case 2: return 77;
	case 3: return (int)x * 11;
	case 4: return -5;
	case 5: return 1000;
	default: __builtin_unreachable();
	}
}
/* 12: a switch on what lies on the stack, and has an address. */
APART void c12_set(int *p, int x)
{
	*p = x % 7;
}
APART int c12(int x)
{
	int v;
	c12_set(&v, x);
	switch (v) {
	case 0: return 4;
	case 1: c12_set(&v, x + 3); return v;
	case 2: return x;
	case 3: return 12;
	case 4: c12_set(&v, 5); return v * 2;
	case 5: return -x;
	default: return 1;
	}
}
/* 13: very many decisions, none of which follows from another. */
#define D1(n) if (x >> (n) % 31 & 1) r = r * 3 + (n); else r ^= x + (n);
#define D8(n) D1(n) D1(n + 1) D1(n + 2) D1(n + 3) D1(n + 4) D1(n + 5) D1(n + 6) D1(n + 7)
#define D64(n) D8(n) D8(n + 8) D8(n + 16) D8(n + 24) D8(n + 32) D8(n + 40) D8(n + 48) D8(n + 56)
APART unsigned c13(unsigned x)
{
	unsigned r = 1;
	D64(0) D64(64) D64(128) D64(192)
	return r;
}
/* The same, by a loop. */
APART unsigned c13_again(unsigned x)
{
	unsigned r = 1;
	for (unsigned n = 0; n < 256; n++) {
		if (x >> n % 31 & 1)
			r = r * 3 + n;
		else
			r ^= x + n;
	}
	return r;
}
/* 14: loops with two ways in. */
APART int c14(int x, int y)
{
	int n = 0;
	if (x > y)
		goto second;
first:
	n += x;
	if (n > 1000)
		return n;
	y++;
second:
	n += y;
	if (n > 1000)
		return -n;
	x += 2;
	if (x & 4)
		goto first;
	if (y & 1)
		goto second;
	goto first;
}
/* 15: states that go to each other. */
APART int c15(const char *s)
{
	int n = 0;
start:
	if (*s == 'a') { s++; n += 1; goto in_a; }
	if (*s == 'b') { s++; n += 10; goto in_b; }
	if (!*s)
		return n;
	s++;
	goto start;
in_a:
	if (*s == 'a') { s++; n *= 2; goto in_a; }
	if (*s == 'b') { s++; goto in_b; }
	if (*s == 'c')
		goto out;
	goto start;
in_b:
	if (*s == 'b') { s++; n += 100; goto in_b; }
	if (*s == 'a') { s++; n -= 3; goto in_a; }
	if (*s == 'c')
		goto out;
	goto start;
out:
	return n * 1000 + (int)strlen(s);
}
/* 17: both arms are there. */
APART int c17(int x)
{
	int changed = 0;
	if (x != 0)
		changed = 65;
	else
		changed = 9;
	return changed;
}
/* 18: a loop's condition. */
APART int c18(int from)
{
	int n = 0;
	for (int i = from; i < 111; i++)
		n += i & 3;
	return n;
}
/* 19: what only hands on gives what it got. */
APART long c19_callee(long a, long b)
{
	return a * 10 + b;
}
APART long c19(long a, long b)
{
	return c19_callee(b, a);
}
/* 20: a register a callee is known not to touch. */
int c20(int x);
CODE(c20_leaf, "leal 1(%rdi),%eax\nret\n");
CODE(c20, "leal 5(%rdi),%ecx\ncall c20_leaf\naddl %ecx,%eax\nret\n");
/* 21: what never returns stands at the end, and behind it the next function. */
APART __attribute__((noreturn, used)) void c21_die(void)
{
	exit(9);
}
int c21(int x);
int c21_next(int x);
CODE(c21, "subq $8,%rsp\ncmpl $77,%edi\nje 1f\nleal 2(%rdi),%eax\naddq $8,%rsp\nret\n1: call c21_die\n");
CODE(c21_next, "leal 3(%rdi),%eax\nret\n");
/* 22: a stack pointer that is rounded down. */
int c22(int x);
CODE(c22, "pushq %rbp\nmovq %rsp,%rbp\nandq $-32,%rsp\nsubq $64,%rsp\n"
	  "movl %edi,(%rsp)\nmovl $7,4(%rsp)\naddl $1,(%rsp)\nmovl (%rsp),%eax\nimull 4(%rsp),%eax\n"
	  "leave\nret\n");
/* 23: writes to the stack that overlap. */
uint64_t c23(void);
CODE(c23, "movabsq $0x1122334455667788,%rax\npushq %rax\nmovb $0x99,1(%rsp)\nmovw $0xabcd,5(%rsp)\nmovl $0,%eax\npopq %rax\nret\n");
/* 24: an address that is made by OR. */
int c24(int x);
CODE(c24, "pushq %rbp\nmovq %rsp,%rbp\nandq $-16,%rsp\nsubq $16,%rsp\n"
	  "movl $3,4(%rsp)\nmovq %rsp,%rax\norq $4,%rax\naddl %edi,(%rax)\nmovl 4(%rsp),%eax\nleave\nret\n");
/* 25: the value a variable had, not the one it has later. */
APART int c25(int *p, int x)
{
	int old = *p;
	*p = x;
	int now = *p;
	*p = old + 1;
	return old * 1000 + now * 10 + (*p == old + 1);
}
/* 26: two loops, one after the other. */
APART int c26(const int *a, int n)
{
	int r = 0, i, k;
	for (i = 0; i < n; i++)
		r += a[i];
	for (k = 0; k < n; k += 2)
		r = r * 3 - a[k];
	return r * 10 + (i == n) + k;
}
/* 27: stores nobody in sight reads. */
static volatile int c27_port;
static int c27_a, c27_b, *c27_where = &c27_a;
APART int c27(int x)
{
	c27_port = x;
	c27_port = x + 1;
	*c27_where = 5;
	c27_where = &c27_b;
	*c27_where = x;
	return c27_port;
}
/* 28: more values than registers. */
APART uint32_t c28(const uint32_t *w)
{
	uint32_t s[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}, x[16];
	for (int i = 0; i < 16; i++)
		x[i] = w[i] ^ (uint32_t)i * 0x9e3779b9;
	for (int i = 0; i < 64; i++) {
		uint32_t f =
			i < 16 ? (s[1] & s[2]) | (~s[1] & s[3]) : i < 32 ? (s[3] & s[1]) | (~s[3] & s[2]) : s[1] ^ s[2] ^ s[3];
		uint32_t t = s[0] + f + x[(i * 5 + 1) & 15];
		s[0] = s[3], s[3] = s[2], s[2] = s[1];
		s[1] += t << (i % 20 + 3) | t >> (29 - i % 20);
	}
	return s[0] ^ s[1] ^ s[2] ^ s[3];
}
static uint32_t c28_right(const uint32_t *w)
{
	volatile uint32_t s[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
	for (volatile int i = 0; i < 64; i++) {
		volatile uint32_t f =
			i < 16 ? (s[1] & s[2]) | (~s[1] & s[3]) : i < 32 ? (s[3] & s[1]) | (~s[3] & s[2]) : s[1] ^ s[2] ^ s[3];
		volatile uint32_t k = (uint32_t)(i * 5 + 1) & 15, t = s[0] + f + (w[k] ^ k * 0x9e3779b9);
		s[0] = s[3], s[3] = s[2], s[2] = s[1];
		s[1] += t << (i % 20 + 3) | t >> (29 - i % 20);
	}
	return s[0] ^ s[1] ^ s[2] ^ s[3];
}
/* A switch that is compared for, with two ways for what is no case. */
int c31(int x);
CODE(c31, "cmpl $2,%edi\nje 2f\njg 5f\n"
	  "testl %edi,%edi\nje 3f\ncmpl $1,%edi\njne 6f\nmovl $11,%eax\nret\n2: movl $12,%eax\nret\n3: leal 9(%rdi),%eax\nret\n"
	  "5: cmpl $3,%edi\nje 4f\nmovl $-3,%eax\nret\n4: movl $13,%eax\nret\n6: movl $-4,%eax\nret\n");

static void say(int number, int is_right)
{
	printf("%d %s\n", number, is_right ? "right" : "wrong");
}

static void words(void)
{
	uint32_t w[16];
	for (uint32_t i = 0; i < 16; i++)
		w[i] = i * i * 77 + 5;
	say(28, c28(w) == c28_right(w));
}

static void numbers(void)
{
	const double nan_ = strtod("nan", NULL);
	say(5, c05(nan_) == 1 && c05(1.5) == 0 && c05_is(nan_, 1.0) == 3 && c05_is(1.0, nan_) == 2 && c05_is(1.0, 2.0) == 0 && c05_is(2.0, 1.0) == 6);
	double r = c06(nan_, 4.0);
	say(6, r == 4.0 && c06(1.0, 4.0) == 4.0 && c06(5.0, 4.0) == 5.0);
	floats x = {1, 2, 3, 4}, y = c07(x), z = c08(x);
	say(7, y[0] == 3 && y[1] == 3 && y[2] == 3 && y[3] == 3);
	say(8, z[0] == 5 && z[1] == 5 && z[2] == 5 && z[3] == 5);
}

static void switches(void)
{
	static const int ten[] = {-1, 17, -35, 3, 6, -4, 1234, 216, -1}, eleven[] = {9, 4, 77, 33, -5, 1000},
			 twelve[] = {4, 4, 2, 12, 10, -5, 1, 4, 4};
	static const int rest[] = {-4, -4, 9, 11, 12, 13, -3, -3};
	int good = 1;
	for (int i = 0; i < 9; i++)
		good &= c10(i - 1) == ten[i];
	say(10, good);
	good = 1;
	for (unsigned i = 0; i < 6; i++)
		good &= c11(i) == eleven[i];
	say(11, good);
	good = 1;
	for (int i = 0; i < 9; i++)
		good &= c12(i) == twelve[i];
	say(12, good);
	good = c31(INT_MIN) == -4 && c31(INT_MAX) == -3;
	for (int i = 0; i < 8; i++)
		good &= c31(i - 2) == rest[i];
	say(31, good);
}

static void ways(void)
{
	int good = 1;
	for (unsigned i = 0; i < 40; i++)
		good &= c13(i * 0x9e3779b9) == c13_again(i * 0x9e3779b9);
	say(13, good);
	say(14, c14(1, 2) == -1016 && c14(5, 2) == 1009 && c14(0, 0) == -1017);
	say(15, c15("aab") == 2 && c15("xabbc") == 101001 && c15("bac") == 7001 && c15("") == 0 && c15("bbabcq") == 107002);
	say(17, c17(0) == 9 && c17(3) == 65);
	say(18, c18(100) == 15 && c18(111) == 0 && c18(-3) == 171);
	say(19, c19(2, 7) == 72);
	say(20, c20(4) == 14 && c20(-9) == -12);
	say(21, c21(5) == 7 && c21_next(5) == 8);
}

static void stack(void)
{
	int v = 3, list[5] = {4, 7, -1, 3, 9};
	say(3, c03(41) == 42);
	say(22, c22(5) == 42);
	say(23, c23() == 0x11abcd4455669988);
	say(24, c24(39) == 42);
	say(25, c25(&v, 8) == 3081 && v == 4);
	say(26, c26(list, 5) == 5527);
	int r = c27(6);
	say(27, r == 7 && c27_a == 5 && c27_b == 6 && c27_port == 7);
}

int main(void)
{
	say(1, c01(LONG_MIN) == 1 && c01(5) == 0 && c01(0) == 0);
	say(2, c02(0x7fffffff) == 4 && c02(0x80000000) == 2 && c02(0) == 4);
	say(4, c04(0x80000000) == 1 && c04(0x7fffffff) == 0);
	say(9, c09(5) == 16 && c09(-1) == -2);
	numbers();
	switches();
	ways();
	stack();
	words();
	return 0;
}
