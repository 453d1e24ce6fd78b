/* SPDX-License-Identifier: Apache-2.0 */
/* Needs no headers, so that any target of the compiler can build it. */
extern int outside(const char *text);

int total;
const char greeting[] = "golden greeting";

__attribute__((noinline)) int triple(int x)
{
	return 3 * x + total;
}

int run(int n)
{
	if (n > 10)
		return outside(greeting);
	for (int i = 0; i < n; i++)
		total += triple(i);
	return total;
}
