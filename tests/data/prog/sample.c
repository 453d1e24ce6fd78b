/* SPDX-License-Identifier: Apache-2.0 */
/* A program whose facts the golden cases know: who calls whom, which strings stand where, one switch. */
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

int counter = 7;
unsigned char magic[8] = {0xde, 0xad, 0xbe, 0xef, 0x13, 0x37, 0x42, 0x99};
const char *const names[4] = {"golden alpha", "golden beta", "golden gamma", "golden delta"};
/* A text that (a+)+ followed by anything else takes for ever on. */
const char backtrack[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!";
const wchar_t wide_text[] = L"golden wide text";
static int hidden[64];

__attribute__((noinline)) int square(int x)
{
	return x * x + 0x1234567;
}

__attribute__((noinline, noreturn)) void leave(const char *why)
{
	fprintf(stderr, "golden leaves: %s\n", why);
	exit(3);
}

__attribute__((noinline)) int pick(int what, int x)
{
	switch (what) {
	case 0: return square(x) + 1;
	case 1: return x / 3;
	case 2: return x * 77;
	case 3: return counter + x;
	case 4: counter += x; return 9;
	case 5: return hidden[x & 63];
	case 6: return (int)wide_text[x & 7];
	case 7: return x ^ 0x55aa;
	default: leave("bad choice");
	}
}

__attribute__((noinline)) int forward(int x)
{
	return square(x + 1);
}

int main(int argc, char **argv)
{
	const char *home = getenv("GOLDEN_HOME");
	puts(home ? home : names[argc & 3]);
	printf("%d %d\n", pick(argc, argc), forward(argc));
	return magic[argc & 7] == 0xde;
}
