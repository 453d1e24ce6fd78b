#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Prototypes from nothing but code: gaps, wrappers, leftovers, variadic functions, arguments on the stack, vector registers.
. "$(dirname "$0")/lib.sh"
cat >"$WORK/a.c" <<'C'
#include <stdarg.h>
#include <stdio.h>
#define N __attribute__((noinline, noclone))
N int sum3(int a, long b, char c) { return a + b + c; }
N void set(int *p, int v) { *p = v; }
N int wrap(int a) { return sum3(a, 2, 3); }
N double mixed(double x, float y, int k) { return x * y + k; }
N int whole(double x) { return (int)(x * 3); }
N int gap(int a, int b, int c) { return a * c; }
N long many(long a, long b, long c, long d, long e, long f, long g, long h) { return a + b + c + d + e + f * g - h; }
N int var(const char *f, int n, ...)
{
	va_list ap;
	va_start(ap, n);
	int r = vprintf(f, ap);
	va_end(ap);
	return r + n;
}
N void leaves(int *p) { set(p, 5); }
N void copies(int *p, const int *q) { *p = *q; }
N int keeps(int a, int b, int c) { return gap(a, b, c) + a * b + c; } /* -fipa-ra: over the call in registers it may change */
N long double longer(double x) { return (long double)x * 2; }
/* A register that is only used up before a call of who knows what is no argument; one set in other blocks is. */
struct user { int (*fn)(); int key; };
__asm__(".type scratch, @function\nscratch: sub $8, %rsp\nmov 8(%rdi), %r8d\nmov (%rdi), %rax\nlea 1(%r8), %esi\nmov %r8d, %edi\ncall *%rax\nadd $1, %eax\nadd $8, %rsp\nret\n.size scratch, .-scratch\n");
int scratch(struct user *u);
N void idle(struct user *u) { u->fn = 0; }
N void ends(struct user *u) { u->key = u->fn ? u->fn(3) : 4; idle(u); }
N int chosen(struct user *u, int k) { int a = 5; if (k == 7) { a = 9; u->key++; } else if (k > 9) { a = k * 3; u->key = 1; } return u->fn(k, a) + u->key; }
/* Of a register the bits that a mask leaves, on either side of it: nobody asks for the rest of what a byte is put into. */
__asm__(".type masked, @function\nmasked: mov %dil, %al\nmovzbl %sil, %ecx\nand %ecx, %eax\nret\n.size masked, .-masked\n.globl masked\n");
int masked(char a, char b);
int main(int c, char **v)
{
	int x = c;
	static struct user u;
	x += c > 900 ? scratch(&u) + (ends(&u), 1) + chosen(&u, c) + masked(c, x) : 0;
	set(&x, c);
	leaves(&x);
	copies(&x, &c);
	printf("%d %f %d %d %ld %d %d %Lf\n", wrap(x), mixed(c, c, c), whole(c), gap(c, x, c), many(c, c, c, c, c, c, c, x), var("%d\n", c, c), keeps(c, x, 3), longer(c));
	return 0;
}
C
for opt in -O0 -O1 -O2; do
	F=$WORK/a$opt
	build "a$opt" gcc $opt "$WORK/a.c" || { skip "recovered prototypes" "no gcc"; plan; }
	for want in 'sum3 uint.. 3' 'set void 2' 'wrap uint.. 1' 'mixed double 3' 'whole uint.. 1' 'gap uint.. 3' 'many uint64 8' 'var uint.. 3...' \
		'scratch uint.. 1' 'chosen uint.. 2' 'idle void 1' 'ends void 1' 'masked uint.. 2' 'leaves void 1' 'copies void 2' 'keeps uint.. 3' 'longer long.double 1'; do
		set -- $want
		json "$opt: $1 has $3, gives $2" \
			"d['source']=='recovered' and __import__('re').match(r'$2', d['prototype']) and (len(d['prototype'].split(',')), '...' in d['prototype']) == (${3%...}, '$3' != '${3%...}')" \
			"$SCRY" type_at "$F" "$1" --json
	done
done
# The C has them: parameters and results of its own, arguments where it calls, and nothing of them in the state.
for want in 'sum3 uint.._t uint.._t.a0,.uint.._t.a1,.uint.*_t.a2' 'set void uint64_t.a0,.uint.._t.a1' 'leaves void uint64_t.a0' 'mixed uint.*_t uint.*a0,.*a1,.*a2'; do
	set -- $want
	C=$("$SCRY" decompile "$F" "$1")
	like "C: $1" "^$2 $1_[0-9a-f]+\\($3\\)\$" "$C"
	unlike "C: no argument of $1 comes from the state" 'm->(rdi|rsi|rdx|xmm0)' "$C"
done
like "C: arguments" '^	set_[0-9a-f]+\(a0, 5\);$' "$("$SCRY" decompile "$WORK/a-O1" leaves)"
like "C: what is called is given back" 't[0-9]+ = sum3_[0-9a-f]+\(a0, 2, 3\);' "$("$SCRY" decompile "$WORK/a-O1" wrap)"
like "C: a variable number of arguments keeps to the state" 'var_[0-9a-f]+\(struct scry_x86_64 \*m\)' "$("$SCRY" decompile "$F" var)"
status "what somebody says goes first" 0 "$SCRY" set_prototype "$F" sum3 'long sum3(int, int)'
json "and is shown" 'd["prototype"]=="long sum3(int, int)" and d["source"]=="user"' "$SCRY" type_at "$F" sum3 --json

# What was found is kept, is another after something was stated, and whatever the file says nothing else is shown.
DB=$SCRY_STORE/$(sha256sum "$F" | cut -d' ' -f1)/cache.db
rows() { python3 -c 'import sqlite3, sys; print([bytes(k).hex() for k, in sqlite3.connect(sys.argv[1]).execute("select key from entry where kind=\"prototypes\" order by addr")])' "$DB"; }
FIRST=$("$SCRY" decompile "$F" wrap) KEY=$(rows)
unlike "prototypes are kept" '^\[\]$' "$KEY"
is "the same the second time" "$FIRST" "$("$SCRY" decompile "$F" wrap)"
is "from what was kept" "$KEY" "$(rows)"
for way in noise ones cut; do
	python3 - "$DB" $way <<'PY'
import random, sqlite3, sys
d = sqlite3.connect(sys.argv[1])
random.seed(7)
def total(key, value):
    h = 0xcbf29ce484222325
    for b in key + value:
        h = (h ^ b) * 0x100000001b3 & (1 << 64) - 1
    return h - (1 << 64) if h >> 63 else h
for addr, key, value in d.execute("select addr, key, value from entry where kind='prototypes'").fetchall():
    value = {"noise": lambda: bytes(random.randrange(256) for _ in value), "ones": lambda: b"\xff" * len(value), "cut": lambda: value[:-2]}[sys.argv[2]]()
    d.execute("update entry set value=?, sum=? where kind='prototypes' and addr=?", (value, total(key, value), addr))
d.commit()
PY
	is "kept prototypes are no prototypes ($way): found again" "$FIRST" "$("$SCRY" decompile "$F" wrap 2>&1)"
	is "and kept ($way)" "$KEY" "$(rows)"
done
status "a prototype is stated" 0 "$SCRY" set_prototype "$F" set 'long set(int *)'
like "and the C that calls it has it" '[^_]set_[0-9a-f]+\(a0\)' "$("$SCRY" decompile "$F" leaves)"
plan
