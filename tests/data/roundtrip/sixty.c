/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sixty functions of every kind a compiler is asked for: integers of all widths, loops, switches, strings, structs, floats,
 * recursion, arrays on the stack, tables of functions, globals. Each is called with some hundred random inputs; a line for each
 * says what came of it. FUNC() names what is judged; what drives it is not.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline))
typedef unsigned __int128 u128;

static uint64_t state, hash;

static uint64_t any(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}
static int small(int n)
{
	return (int)(any() % (unsigned)n);
}
static void take(uint64_t v)
{
	hash = (hash ^ v) * 0x100000001b3u;
}
static void take_double(double d)
{
	uint64_t v;
	memcpy(&v, &d, 8);
	take(d != d ? 1 : v);
}

/* --- integers --- */
APART unsigned mean(unsigned a, unsigned b)
{
	return (a & b) + ((a ^ b) >> 1);
}
APART int sign(int x)
{
	return (x > 0) - (x < 0);
}
APART int64_t clamp(int64_t x, int64_t lo, int64_t hi)
{
	return x < lo ? lo : x > hi ? hi : x;
}
APART unsigned parity(uint64_t x)
{
	unsigned n = 0;
	for (; x; x &= x - 1)
		n ^= 1;
	return n;
}
APART uint32_t turn(uint32_t x, unsigned n)
{
	return x << (n & 31) | x >> (-n & 31);
}
APART uint64_t swapped(uint64_t x)
{
	return __builtin_bswap64(x) ^ __builtin_bswap32((uint32_t)x);
}
APART int by_ten(int x)
{
	return x / 10 + x % 10 * 100;
}
APART int64_t by_seven(int64_t x)
{
	return x / 7 - x % 13;
}
APART uint32_t by_any(uint32_t a, uint32_t b)
{
	return b ? a / b * 3 + a % b : ~a;
}
APART int16_t narrow(int x, short y)
{
	return (int16_t)((int8_t)x * y - (uint8_t)x);
}
APART uint64_t high(uint64_t a, uint64_t b)
{
	return (uint64_t)((u128)a * b >> 64);
}
APART uint64_t wide_sum(uint64_t a, uint64_t b, uint64_t c)
{
	u128 s = (u128)a * b + c;
	return (uint64_t)s ^ (uint64_t)(s >> 64);
}
APART int64_t wide_signed(int64_t a, int64_t b)
{
	__int128 p = (__int128)a * b;
	return (int64_t)(p >> 63) + (p < 0);
}
APART uint64_t wide_by(uint64_t hi, uint64_t lo, uint32_t d)
{
	u128 x = (u128)(hi >> 8) << 64 | lo;
	return (uint64_t)(x / (d | 1));
}
APART int overflow(int a, int b)
{
	int r;
	return __builtin_add_overflow(a, b, &r) ? -1 : r ^ 5;
}
APART int first_bit(uint64_t x)
{
	return x ? __builtin_ctzll(x) * 100 + __builtin_clzll(x) : -7;
}
APART unsigned root(unsigned n)
{
	unsigned r = 0;
	for (unsigned b = 1u << 15; b; b >>= 1)
		if ((r | b) * (r | b) <= n)
			r |= b;
	return r;
}
APART uint64_t power(uint64_t b, unsigned e, uint64_t m)
{
	uint64_t r = 1;
	for (b %= m; e; e >>= 1, b = b * b % m)
		if (e & 1)
			r = r * b % m;
	return r;
}
APART unsigned divisor(unsigned a, unsigned b)
{
	while (b) {
		unsigned t = a % b;
		a = b;
		b = t;
	}
	return a;
}

/* --- loops and arrays --- */
APART int sum_of(const int *v, int n)
{
	int s = 0;
	for (int i = 0; i < n; i++)
		s += v[i];
	return s;
}
APART int most(const int *v, int n)
{
	int m = v[0];
	for (int i = 1; i < n; i++)
		if (v[i] > m)
			m = v[i];
	return m;
}
APART void sort(int *v, int n)
{
	for (int i = 1; i < n; i++) {
		int x = v[i], j = i;
		for (; j && v[j - 1] > x; j--)
			v[j] = v[j - 1];
		v[j] = x;
	}
}
APART int find(const int *v, int n, int x)
{
	int lo = 0;
	while (lo < n) {
		int m = lo + (n - lo) / 2;
		if (v[m] < x)
			lo = m + 1;
		else
			n = m;
	}
	return lo;
}
APART void reverse(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		uint8_t t = p[i];
		p[i] = p[n - 1 - i];
		p[n - 1 - i] = t;
	}
}
APART int sieve(int n)
{
	char is[200];
	int cnt = 0;
	memset(is, 1, sizeof(is));
	for (int i = 2; i < n; i++) {
		if (!is[i])
			continue;
		cnt++;
		for (int k = i * 2; k < n; k += i)
			is[k] = 0;
	}
	return cnt;
}
APART long matrix(int n)
{
	long a[6][6], b[6][6], s = 0;
	for (int i = 0; i < 6; i++)
		for (int j = 0; j < 6; j++) {
			a[i][j] = i * n + j;
			b[i][j] = i - j * n;
		}
	for (int i = 0; i < 6; i++)
		for (int j = 0; j < 6; j++) {
			long c = 0;
			for (int k = 0; k < 6; k++)
				c += a[i][k] * b[k][j];
			s = s * 31 + c;
		}
	return s;
}
APART uint32_t crc(const uint8_t *p, size_t n)
{
	uint32_t c = ~0u;
	while (n--) {
		c ^= *p++;
		for (int k = 0; k < 8; k++)
			c = c >> 1 ^ (0xedb88320u & -(c & 1));
	}
	return ~c;
}
APART int nested(int n)
{
	int c = 0;
	for (int i = 0; i < n; i++) {
		if (i % 3 == 0)
			continue;
		for (int j = i; j < n; j++) {
			if (j * i > 150)
				break;
			c += j ^ i;
		}
	}
	return c;
}
APART int until(int x)
{
	int n = 0;
	do {
		x = x & 1 ? 3 * (x & 0xffff) + 1 : x >> 1;
		n++;
	} while (x > 1 && n < 300);
	return n;
}

/* --- control --- */
APART int dense(unsigned x, int y)
{
	switch (x) {
	case 0:
		return y;
	case 1:
		y++; /* fall through */
	case 2:
		return y * 2;
	case 3:
		return -y;
	case 4:
	case 5:
		return y ^ 77;
	case 6:
		return y / 3;
	case 7:
		return 1;
	default:
		return 0;
	}
}
APART int sparse(int x)
{
	switch (x) {
	case -1000:
		return 1;
	case 3:
		return 2;
	case 700:
		return 3;
	case 70000:
		return 4;
	case 'a' ... 'f':
		return 5;
	default:
		return x & 7;
	}
}
APART const char *word(unsigned x)
{
	static const char *const w[] = {"none", "one", "two", "three", "many"};
	return x < 5 ? w[x] : "more";
}
APART int both(int a, int b, int c)
{
	return (a > 3 && b < 9) || (c && a != b) ? a | b : c - 1;
}
APART int out(const int *v, int n)
{
	int s = 0;
	for (int i = 0; i < n; i++) {
		if (v[i] < 0)
			goto bad;
		s += v[i];
		if (s > 5000)
			goto done;
	}
	return s;
bad:
	return -1;
done:
	return s / 2;
}
APART int machine(const char *s)
{
	enum { A, B, C } at = A;
	int n = 0;
	for (; *s; s++)
		switch (at) {
		case A:
			if (*s == 'a')
				at = B;
			break;
		case B:
			at = *s == 'b' ? C : *s == 'a' ? B : A;
			break;
		case C:
			n++;
			at = A;
			break;
		}
	return n * 10 + (int)at;
}
APART int fact(int n)
{
	return n <= 1 ? 1 : n * fact(n - 1);
}
APART int acker(int m, int n)
{
	return !m ? n + 1 : !n ? acker(m - 1, 1) : acker(m - 1, acker(m, n - 1));
}
static APART int odd(unsigned n);
APART int even(unsigned n)
{
	return n == 0 ? 1 : odd(n - 1);
}
static APART int odd(unsigned n)
{
	return n == 0 ? 0 : even(n - 1);
}
APART void towers(int n, int from, int to, unsigned *moves)
{
	if (!n)
		return;
	towers(n - 1, from, 6 - from - to, moves);
	*moves = *moves * 3 + (unsigned)(from * 4 + to);
	towers(n - 1, 6 - from - to, to, moves);
}

/* --- strings --- */
APART int same(const char *a, const char *b)
{
	for (; *a && *a == *b; a++, b++)
		;
	return (unsigned char)*a - (unsigned char)*b;
}
APART int number(const char *s)
{
	int n = 0, sg = 1;
	while (*s == ' ')
		s++;
	if (*s == '-') {
		sg = -1;
		s++;
	}
	while (*s >= '0' && *s <= '9')
		n = n * 10 + (*s++ - '0');
	return n * sg;
}
APART char *digits(char *to, unsigned x, unsigned base)
{
	char t[40];
	int n = 0;
	do
		t[n++] = "0123456789abcdefghijklmnopqrstuvwxyz"[x % base];
	while (x /= base);
	while (n)
		*to++ = t[--n];
	*to = 0;
	return to;
}
APART unsigned hashed(const char *s)
{
	unsigned h = 5381;
	while (*s)
		h = h * 33 ^ (unsigned char)*s++;
	return h;
}
APART void upper(char *s)
{
	for (; *s; s++)
		if (*s >= 'a' && *s <= 'z')
			*s -= 32;
}
APART int matches(const char *p, const char *s)
{
	if (!*p)
		return !*s;
	if (*p == '*')
		return matches(p + 1, s) || (*s && matches(p, s + 1));
	return *s && (*p == '?' || *p == *s) && matches(p + 1, s + 1);
}
APART int text(char *to, size_t len, int a, double b)
{
	return snprintf(to, len, "%d:%+.3f/%s", a, b, word((unsigned)a & 7));
}

/* --- structs --- */
struct node {
	struct node *next;
	int key;
	short weight;
};
struct point {
	int x, y;
};
struct rect {
	struct point a, b;
	uint8_t color[3];
};
union bits {
	double d;
	uint64_t u;
};
struct flags {
	unsigned a : 3, b : 7, c : 12;
	int d : 10;
};
APART struct node *push(struct node *head, struct node *n)
{
	n->next = head;
	return n;
}
APART int total(const struct node *n)
{
	int s = 0;
	for (; n; n = n->next)
		s += n->key * n->weight;
	return s;
}
APART struct node *turned(struct node *n)
{
	struct node *r = NULL;
	while (n) {
		struct node *next = n->next;
		n->next = r;
		r = n;
		n = next;
	}
	return r;
}
APART struct rect around(struct point p, int r)
{
	return (struct rect){{p.x - r, p.y - r}, {p.x + r, p.y + r}, {1, (uint8_t)r, 3}};
}
APART int area(const struct rect *r)
{
	return (r->b.x - r->a.x) * (r->b.y - r->a.y) + r->color[1];
}
APART int packed(struct flags f, int v)
{
	f.a += (unsigned)v & 7;
	f.c ^= f.b;
	f.d -= 3;
	return (int)(f.a + f.b * 8 + f.c * 1024) + f.d;
}

/* --- floats --- */
APART double poly(double x)
{
	return ((2.5 * x - 1) * x + 0.75) * x - 3;
}
APART double ordered(double a, double b, double c)
{
	return a + (b + c) - (a - b) * c;
}
APART float narrowed(float a, int n)
{
	float s = 0;
	for (int i = 1; i <= n; i++)
		s += a / (float)i;
	return s;
}
APART int rounded(double x)
{
	return x < 0 ? (int)(x - 0.5) : (int)(x + 0.5);
}
APART double newton(double x)
{
	double r = x > 1 ? x / 2 : 1;
	for (int i = 0; i < 20; i++)
		r = 0.5 * (r + x / r);
	return r;
}
APART uint64_t exponent(double x)
{
	union bits b = {.d = x};
	return (b.u >> 52 & 0x7ff) ^ (uint64_t)(b.d < 0);
}

/* --- globals and tables --- */
int counter;
static unsigned table[16];
APART int counted(int x)
{
	static int calls;
	calls++;
	counter += x;
	return calls * 2 + counter;
}
APART unsigned fill(unsigned n)
{
	for (unsigned i = 0; i < 16; i++)
		table[i] = table[(i + n) & 15] * 5 + i;
	return table[n & 15];
}
static APART int t_add(int a, int b)
{
	return a + b;
}
static APART int t_sub(int a, int b)
{
	return a - b;
}
static APART int t_xor(int a, int b)
{
	return a ^ b;
}
static int (*const ops[])(int, int) = {t_add, t_sub, t_xor};
APART int through(unsigned op, int a, int b)
{
	return ops[op % 3](a, b) + 1;
}

#define FUNC(name, ...)                                                                                                          \
	static void drive_##name(void)                                                                                           \
	{                                                                                                                        \
		for (int i = 0; i < 150; i++) {                                                                                  \
			uint64_t x = any() >> small(60), y = any() >> small(60), z = any();                                      \
			int n = 1 + small(30);                                                                                   \
			(void)x, (void)y, (void)z, (void)n;                                                                      \
			for (int k = 0; k < 32; k++)                                                                             \
				list[k] = (int)(any() % 400) - 40;                                                               \
			for (int k = 0; k < 31; k++)                                                                             \
				line[k] = "ab ab- a0123456789cdxyz "[any() % 24];                                                \
			line[any() % 31] = 0;                                                                                    \
			__VA_ARGS__;                                                                                             \
		}                                                                                                                \
	}
static int list[32];
static char line[32], room[128];
static int compare_ints(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;
	return (x > y) - (x < y);
}
static double real(uint64_t v)
{
	return (double)(int64_t)v / 1024.0;
}

#include "sixty.h"

int main(void)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} all[] = {
#undef FUNC
#define FUNC(name, ...) {#name, drive_##name},
#include "sixty.h"
	};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		state = 0x9e3779b97f4a7c15u + i, hash = 0xcbf29ce484222325u;
		all[i].fn();
		printf("%s %016llx\n", all[i].name, (unsigned long long)hash);
		fflush(stdout);
	}
	return 0;
}
