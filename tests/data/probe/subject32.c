/* SPDX-License-Identifier: Apache-2.0 */
/* A program of i386 without a library; probe.py knows what it calls. */
__attribute__((noipa)) int sum32(int a, unsigned short b, long long c, double d)
{
	return a + b + (c == 2 ? (int)d : 0);
}

__attribute__((noipa)) int name32(const char *s)
{
	int n = 0;
	while (s[n])
		n++;
	return n;
}

__attribute__((force_align_arg_pointer)) void _start(void)
{
	sum32(-1, 5, 0x1122334455667788, 1.5);
	sum32(7, 8, -9, 0);
	name32("thirty-two");
	__asm__ volatile("int $0x80" : : "a"(1), "b"(0));
}
