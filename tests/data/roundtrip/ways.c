/* SPDX-License-Identifier: Apache-2.0 */
/* Ways in and out of functions: by name, by pointer, from libc, with results in every kind of register, many and few arguments. */
#include <complex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline, noclone))

struct pair {
	long a;
	double b;
};
struct large {
	int v[9];
};

APART void nothing(void)
{
}
APART long double wide(long double x, int n)
{
	return n ? x * wide(x, n - 1) + 1 : x;
}
APART double complex turned(double complex z)
{
	return z * I + 1;
}
APART struct pair both(long a, double b)
{
	return (struct pair){a * 3, b / 2};
}
APART struct large filled(int n)
{
	struct large l;
	for (int i = 0; i < 9; i++)
		l.v[i] = n * i;
	return l;
}
APART int sum(int n, ...)
{
	va_list ap;
	int s = 0;
	va_start(ap, n);
	while (n--)
		s += va_arg(ap, int);
	va_end(ap);
	return s;
}
APART int many(int a, int b, int c, int d, int e, int f, int g, int h, double x)
{
	return a + b * c - d + e * f - g + h + (int)x;
}
APART int chosen(unsigned x)
{
	switch (x) {
	case 0: return 5;
	case 1: return 17;
	case 2: return -1;
	case 3: return 40;
	case 4: return 2;
	case 5: return 99;
	case 9: return 12;
	default: return (int)x * 2;
	}
}
static int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;
	return (x > y) - (x < y);
}
static int (*const by_pointer[])(unsigned) = {chosen, abs, chosen};

static void at_end(void)
{
	puts("the end");
}

int main(int argc, char **argv)
{
	int list[] = {5, -2, 9, 0, 3, 3, 1000000, -7};
	double complex z = turned(2 + 3 * I);
	struct pair p = both(14, 9);
	struct large l = filled(argc + 2);
	(void)argv;
	atexit(at_end);
	nothing();
	qsort(list, sizeof(list) / sizeof(*list), sizeof(*list), compare);
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
		printf("%d ", list[i]);
	for (unsigned i = 0; i < 12; i++)
		printf("%d ", by_pointer[i % 3](i));
	printf("%.3Lf %g %g %ld %g %d\n", wide(1.25L, 6), creal(z), cimag(z), p.a, p.b, l.v[8]);
	printf("%d %d\n", sum(5, 1, 2, 3, 4, 5), many(1, 2, 3, 4, 5, 6, 7, 8, 2.5));
	return strcmp("same", "same");
}
