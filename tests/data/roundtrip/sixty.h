/* SPDX-License-Identifier: Apache-2.0 */
/* How each of the sixty is called: included twice. */
FUNC(mean, take(mean((unsigned)x, (unsigned)y)))
FUNC(sign, take((uint64_t)sign((int)x - n * (int)(y & 1))))
FUNC(clamp, take((uint64_t)clamp((int64_t)z, -(int64_t)x, (int64_t)y)))
FUNC(parity, take(parity(x)))
FUNC(turn, take(turn((uint32_t)x, (unsigned)y)))
FUNC(swapped, take(swapped(x)))
FUNC(by_ten, take((uint64_t)by_ten((int)x)))
FUNC(by_seven, take((uint64_t)by_seven((int64_t)z)))
FUNC(by_any, take(by_any((uint32_t)z, (uint32_t)x)))
FUNC(narrow, take((uint64_t)narrow((int)x, (short)y)))
FUNC(high, take(high(x, z)))
FUNC(wide_sum, take(wide_sum(x, y, z)))
FUNC(wide_signed, take((uint64_t)wide_signed((int64_t)z, -(int64_t)x)))
FUNC(wide_by, take(wide_by(x, z, (uint32_t)y)))
FUNC(overflow, take((uint64_t)overflow((int)x, (int)z)))
FUNC(first_bit, take((uint64_t)first_bit(x &y)))
FUNC(root, take(root((unsigned)x & 0x3fffffff)))
FUNC(power, take(power(x, (unsigned)n, (y & 0xffffffff) + 1)))
FUNC(divisor, take(divisor((unsigned)x, (unsigned)y)))
FUNC(sum_of, take((uint64_t)sum_of(list, n)))
FUNC(most, take((uint64_t)most(list, n)))
FUNC(sort, (sort(list, n), take((uint64_t)list[n / 2]), take((uint64_t)list[n])))
FUNC(find, (qsort(list, 32, sizeof(int), compare_ints), take((uint64_t)find(list, n, small(300)))))
FUNC(reverse, (reverse((uint8_t *)line, (size_t)n), take((uint8_t)line[0])))
FUNC(sieve, take((uint64_t)sieve(n * 6)))
FUNC(matrix, take((uint64_t)matrix(n)))
FUNC(crc, take(crc((uint8_t *)list, (size_t)n)))
FUNC(nested, take((uint64_t)nested(n)))
FUNC(until, take((uint64_t)until((int)(x & 0xffff))))
FUNC(dense, take((uint64_t)dense((unsigned)n % 10, (int)x)))
FUNC(sparse, take((uint64_t)sparse(n & 1 ? n + 80 : n & 2 ? 700 : n & 4 ? 70000 : n & 8 ? -1000 : 3)))
FUNC(word, take(hashed(word((unsigned)n))))
FUNC(both, take((uint64_t)both(n - 5, (int)(x & 15), (int)(y & 1))))
FUNC(out, take((uint64_t)out(list + 1, n)))
FUNC(machine, take((uint64_t)machine(line)))
FUNC(fact, take((uint64_t)fact(n)))
FUNC(acker, take((uint64_t)acker(n % 3, n % 5)))
FUNC(even, take((uint64_t)even((unsigned)n)))
FUNC(towers, {
	unsigned m = 0;
	towers(n % 6, 1, 3, &m);
	take(m);
})
FUNC(same, take((uint64_t)same(line, line + n % 3)))
FUNC(number, take((uint64_t)number(line)))
FUNC(digits, (digits(room, (unsigned)x, 2 + (unsigned)n), take(hashed(room))))
FUNC(hashed, take(hashed(line)))
FUNC(upper, (upper(line), take(hashed(line))))
FUNC(matches, take((uint64_t)matches(n & 1 ? "*a*b*" : "?b*a*", line)))
FUNC(text, (take((uint64_t)text(room, sizeof(room), n, real(x))), take(hashed(room))))
FUNC(total, {
	struct node v[4], *h = NULL;
	for (int k = 0; k < 4; k++) {
		v[k].key = list[k];
		v[k].weight = (short)list[k + 4];
		h = push(h, &v[k]);
	}
	take((uint64_t)total(h));
})
FUNC(turned, {
	struct node v[4], *h = NULL;
	for (int k = 0; k < 1 + n % 4; k++) {
		v[k].key = k;
		v[k].weight = 2;
		h = push(h, &v[k]);
	}
	take((uint64_t)turned(h)->key);
})
FUNC(around, {
	struct rect r = around((struct point){(int)x, (int)y}, n);
	take((uint64_t)r.a.x ^ (uint64_t)r.b.y << 7 ^ r.color[1]);
})
FUNC(area, {
	struct rect r = around((struct point){n, n}, n);
	take((uint64_t)area(&r));
})
FUNC(packed, take((uint64_t)packed((struct flags){(unsigned)x & 7, (unsigned)y & 127, (unsigned)z & 4095, n}, n)))
FUNC(poly, take_double(poly(real(x))))
FUNC(ordered, take_double(ordered(real(x), real(y), real(z))))
FUNC(narrowed, take_double(narrowed((float)real(x), n)))
FUNC(rounded, take((uint64_t)rounded(real(z >> 30) - 1000)))
FUNC(newton, take_double(newton(real(x >> 2))))
FUNC(exponent, take(exponent(-real(x))))
FUNC(counted, take((uint64_t)counted(n)))
FUNC(fill, take(fill((unsigned)n)))
FUNC(through, take((uint64_t)through((unsigned)n, (int)x, (int)y)))
