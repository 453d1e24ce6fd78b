#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# C of functions: every function of a program gives some, all of it compiles, lines name instructions of their function.
. "$(dirname "$0")/lib.sh"
F=/bin/true
status "one function" 0 "$SCRY" decompile $F main
like "takes its parameters" '^(void|uint[0-9]+_t) main_[0-9a-f]+\((void|uint[0-9]+_t a0.*)\)$' "$OUT"
is "line by line" "ok" "$("$SCRY" decompile $F main --map --json | python3 -c '
import json, subprocess, sys
c = json.load(sys.stdin)
rows = json.loads(subprocess.run([sys.argv[1], "disasm", sys.argv[2], "main", "--json", "--limit", "100000"], stdout=subprocess.PIPE, check=True).stdout)
insns = {i["addr"] for i in rows["items"] if i["kind"] == "code" and "sub" not in i}
mapped = {a for l in c["map"] for a in l["addrs"]}
lines = c["code"].count("\n")
ok = c["level"] in ("L1", "L2") and c["status"] == "full" and mapped <= insns and all(1 <= l["line"] <= lines for l in c["map"])
print("ok" if ok and len(insns - mapped) == 0 else sorted(insns - mapped)[:5])' "$SCRY" $F)"
if command -v objdump >/dev/null && command -v readelf >/dev/null; then
	status "every instruction of every function has a line" 0 python3 "$ROOT/tests/score/score_lines.py" --scry "$SCRY" $F
	like "and so has what objdump finds there" 'lines: ([0-9]+) of \1 instructions \(100 %\);.* 0 others \(100 %\)' "$OUT"
else
	skip "every instruction of every function has a line" "no binutils"
fi
# What people say of an address stands at its statement, and the C still compiles; nothing of it ends a comment early.
at=$("$SCRY" decompile $F main --map --json | python3 -c '
import json, re, sys
c = json.load(sys.stdin)
lines = c["code"].split("\n")
print(next(l["addrs"][0] for l in c["map"] if re.search(r"\w_[0-9a-f]+\(", lines[l["line"] - 1]) and lines[l["line"] - 1][0] == "\t"))')
"$SCRY" comment $F "$at" 'say */ /* "this"' >/dev/null && "$SCRY" comment $F main --kind func $'two\nlines' >/dev/null &&
	"$SCRY" comment $F "$at" --kind block above >/dev/null
"$SCRY" decompile $F main >"$WORK/said.c"
like "a comment stands behind the call" '_[0-9a-f]+\(.*/\* say \* / / \* "this" \*/' "$(grep 'say' "$WORK/said.c")"
is "a comment of the function before it" '/* two */ /* lines */' "$(head -2 "$WORK/said.c" | tr '\n' ' ' | sed 's/ $//')"
like "a block comment before the statement" '^	/\* above \*/$' "$(grep -B0 above "$WORK/said.c")"
is "functions of each level" "ok" "$("$SCRY" decompile --all $F -o "$WORK/h" --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
print("ok" if sum(d["levels"].values()) == d["functions"] > 50 and d["levels"]["L1"] > 50 else d)')"
status "and it compiles" 0 gcc -std=gnu11 -Wall -Wextra -Wno-unused -Werror -I"$WORK/h" -include code.h -c "$WORK/said.c" -o /dev/null
"$SCRY" undo $F 3 >/dev/null
is "taken back it is gone" 0 "$("$SCRY" decompile $F main | grep -c 'say\|above\|two')"
# A block's name is its label's, as an identifier; the function's own first block has the function's name.
if build jump gcc -O1 -x c - <<'C'; then
int g(int i, int j) { return i * j == 42; }
int h(volatile int *p, int n) { for (int i = 0; i < n; i++) p[i] += i; return n; }
int f(int *p, int a, int b)
{
	int r = 0;
	for (int i = 0; i < a; i++)
		for (int j = 0; j < b; j++) {
			if (g(i, j))
				goto out;
			r += h(p, j);
		}
	r += h(p, a);
	r += h(p, r);
out:
	if (h(p, b) == r)
		r *= h(p, 3);
	return r + h(p, 1);
}
int main(int c, char **v) { return f((int *)v, c, c); }
C
	J=$WORK/jump
	aim=$("$SCRY" decompile "$J" f | sed -nE 's,^.*goto (b[0-9]+);$,\1,p' | head -1)
	block=$("$SCRY" decompile "$J" f | sed -nE "s,^$aim:; /\\* (0x[0-9a-f]+) \\*/\$,\\1,p")
	"$SCRY" rename "$J" "$block" 'for' >/dev/null
	"$SCRY" decompile "$J" f >"$WORK/named.c"
	like "a label has its block's name" "^for_${block#0x}:; /. $block ./\$" "$(cat "$WORK/named.c")"
	like "and so has what goes there" "goto for_${block#0x};" "$(cat "$WORK/named.c")"
	"$SCRY" decompile --all "$J" -o "$WORK/j" >/dev/null
	status "and it compiles" 0 gcc -std=gnu11 -Wall -Wextra -Wno-unused -Werror -I"$WORK/j" -include code.h -c "$WORK/named.c" -o /dev/null
	"$SCRY" undo "$J" >/dev/null
	is "taken back it is a number" 0 "$("$SCRY" decompile "$J" f | grep -c for_)"
	# A block that nothing jumps to has a label when it has a name.
	block=$("$SCRY" blocks "$J" h --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["items"][-1]["addr"])')
	"$SCRY" rename "$J" "$block" 'last' >/dev/null
	like "a block with a name has a label" "^last_${block#0x}:; /. $block ./\$" "$("$SCRY" decompile "$J" h)"
else
	skip "labels" "no gcc"
fi
if build lit gcc -O1 -fcf-protection=none -x c - <<'C'; then
int f(int c) { return c == 0x41 ? 0x1234 : c + 0x77; }
int main(int c, char **v) { return f(c); }
C
	insn=$("$SCRY" disasm "$WORK/lit" f --json | python3 -c '
import json, sys
print(next(i["addr"] for i in json.load(sys.stdin)["items"] if "0x41" in i["text"]))')
	for form in "dec == 65" "oct == 0101" "bin == 0b1000001" "char == 65 /. 'A' ./" "hex == 0x41"; do
		"$SCRY" format "$WORK/lit" "$insn" 1 "${form%% *}" >/dev/null
		like "a number as ${form%% *}" "${form#* }" "$("$SCRY" decompile "$WORK/lit" f)"
	done
	status "and it compiles" 0 sh -c '"$1" decompile "$2" f | gcc -std=gnu11 -Wall -Wextra -Wno-unused -Werror -I"$3" -include scry.h -x c -c - -o /dev/null' \
		sh "$SCRY" "$WORK/lit" "$WORK/h"
else
	skip "numbers in their forms" "no gcc"
fi
# Names of many counters are no types; ~ of a comparison is no warning; what ends by longjmp may call itself.
if build counts gcc -O1 -fcf-protection=none -x c - <<'C'; then
#include <setjmp.h>
#define L(n) for (int i = 0; i < m + n; i++) r = (r ^ i) * 3; r += s[n];
__attribute__((noinline)) int f(const signed char *s, int m)
{
	int r = 0;
	L(0) L(1) L(2) L(3) L(4) L(5) L(6) L(7) L(8) L(9) L(10) L(11) L(12)
	return r;
}
__attribute__((noinline)) unsigned g(unsigned a, unsigned b)
{
	return a & ~(unsigned)(b == 77);
}
jmp_buf to;
__attribute__((noinline)) int h(int x)
{
	if (x > 5)
		longjmp(to, x);
	return h(x * 2) + h(x + 1);
}
int main(int c, char **v)
{
	return setjmp(to) ? 1 : f((signed char *)v[0], c) + (int)g((unsigned)c, 1) + h(c);
}
C
	"$SCRY" decompile --all "$WORK/counts" -o "$WORK/k" >/dev/null
	like "many counters" '(uint32_t|uint64_t|int32_t|int64_t) .*\bn[4-9]\b' "$("$SCRY" decompile "$WORK/counts" f)"
	for cc in gcc gcc-12 clang-14; do
		command -v $cc >/dev/null || { skip "which compile, $cc" "no $cc"; continue; }
		status "which compile, $cc" 0 sh -c 'cd "$1" && for f in code_*.c; do "$2" -O0 -std=gnu11 -Wall -Wextra -Wno-unused -Werror -I. -c "$f" -o /dev/null || exit 1; done' \
			sh "$WORK/k" $cc
	done
else
	skip "many counters" "no gcc"
fi
# What people write: operators, characters, data by its name, texts beside their addresses, signs.
if build look gcc -O1 -fcf-protection=none -x c - <<'C'; then
int level;
unsigned char *text;
const char *said;
__attribute__((noinline)) int f(int *p, unsigned n, int k)
{
	int r = 0;
	while (*text == 'x')
		text++;
	for (int i = 0; i < k; i++)
		r += p[2] * 7 - (int)(n / 10) + (int)(n << 8);
	level = r >> 2;
	p[5] |= 0x40;
	said = "never said";
	return r;
}
int main(int c, char **v) { return f((int *)v, c, c) + f((int *)v, 2, 3); }
C
	"$SCRY" decompile "$WORK/look" f >"$WORK/look.c"
	look=$(cat "$WORK/look.c")
	like "a character" "'x'" "$look"
	like "data by its name" "^	level_[0-9a-f]+ = " "$look"
	like "a text beside its address" '/. "never said" ./' "$look"
	like "a division" " / 10" "$look"
	like "memory" '[*]\(u32 [*]\)\(a0 \+ 8\)' "$look"
	like "a shift by a number" '<< 8|[*] 256' "$look"
	like "a change in place" '^	[*]\(u32 [*]\)\(a0 \+ 0x14\) \|= 0x40;' "$look"
	is "only what may be read before it is set has a first value" 0 "$(grep -c '^	[a-z0-9_]* [^;(]* = 0[,;]' "$WORK/look.c")"
	like "what counts is i" "int32_t .*\\bi\\b" "$look"
	like "a variable with a sign" "^	int32_t " "$look"
	is "no helper for what C has" 0 "$(grep -cE 'scry_(sh|mul|load(8|16|32)|store(8|16|32)|udiv|sext)' "$WORK/look.c")"
	"$SCRY" decompile --all "$WORK/look" -o "$WORK/lk" >/dev/null
	status "and it compiles" 0 gcc -O2 -std=gnu11 -Wall -Wextra -Wno-unused -Werror -I"$WORK/lk" -include code.h -c "$WORK/look.c" -o /dev/null
else
	skip "what people write" "no gcc"
fi
# What known functions take and give has their words, what lies in the frame its offset; no two variables have one name, none that of a type.
if build words gcc -O1 -fcf-protection=none -x c - <<'C'; then
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) int f(const char *a, const char *b)
{
	char buf[64];
	int x = dup(3), y = dup(x);
	if (x < 0 || y < 0 || read(x, buf, 60) != 60 || read(y, buf, 60) != 60 || write(x, buf, 9) != 9 || write(y, buf, 9) != 9)
		return -1;
	for (size_t i = 0, n = strlen(a), k = strlen(b); i < n + k; i++)
		if (write(y, a, n) != (ssize_t)k)
			x++;
	close(x);
	close(y);
	return buf[7];
}
int main(int c, char **v) { return f(v[0], v[1]) + c; }
C
	"$SCRY" decompile "$WORK/words" f >"$WORK/words.c"
	words=$(cat "$WORK/words.c")
	like "a parameter as libc calls it" '^uint(32|64)_t f_[0-9a-f]+\(uint64_t s2?, uint64_t s2?\)' "$words"
	like "a result" '^	fd2? = ' "$words"
	like "and another one of that name" '\blen2 = strlen' "$words"
	like "what lies in the frame" '\b(buf|local_[0-9a-f]+)\b' "$words"
	"$SCRY" decompile --all "$WORK/words" -o "$WORK/wd" >/dev/null
	status "and it compiles" 0 make -s -C "$WORK/wd" CC=gcc CFLAGS="-O2 -Werror" all
	"$SCRY" set_prototype "$WORK/words" f 'int f(const char *from, const char *linux)' >/dev/null
	like "a parameter by what somebody says, but no macro's name" '_t f_[0-9a-f]+\(uint64_t from, uint64_t s' "$("$SCRY" decompile "$WORK/words" f)"
else
	skip "words of known functions" "no gcc"
fi
# Calls of any number of arguments have those their format takes, or the flags; translated formats too. What they print is what was printed.
if build many gcc -O1 -fcf-protection=none -x c - <<'C'; then
#include <fcntl.h>
#include <libintl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline, noclone)) void say(const char *format, ...)
{
	va_list l;
	va_start(l, format);
	vprintf(format, l);
	va_end(l);
}
__attribute__((noinline, noclone)) int f(int n, const char *s)
{
	printf("%d %s %%\n", n, s);
	printf(gettext("%d and %*d\n"), n, 7, n + 1);
	printf("%d %d %d %d %d %d %d\n", n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6);
	printf("%.1f\n", n * 0.5);
	say("%s, %c\n", s, n + 'a');
	say("no more\n");
	printf(s, n);
	return open(s, O_RDONLY) + fcntl(n, F_GETFD) + open(s, O_CREAT | O_EXCL | O_WRONLY, 0600);
}
int main(int c, char **v)
{
	(void)v;
	return f(c, "/proc/self/none") + 2;
}
C
	"$SCRY" decompile "$WORK/many" f >"$WORK/many.c"
	many=$(cat "$WORK/many.c")
	like "a format's arguments" '^	printf_[0-9a-f]+_v\(m->image [+] 0x[0-9a-f]+ /[*] "%d %s %%\\n" [*]/, [a-z0-9]+, (s|file)[0-9]*\);' "$many"
	like "those of a translated one" 'printf_[0-9a-f]+_v\(d?c?gettext_[0-9a-f]+\(.* 7, ' "$many"
	like "what is on the stack is said" '/[*] 2 more on the stack [*]/\)' "$many"
	like "those of a function of the program" 'say_[0-9a-f]+_v\(m->image [+] 0x[0-9a-f]+ /[*] "%s, %c\\n" [*]/, [^,]*, ' "$many"
	like "and none" 'say_[0-9a-f]+_v\(m->image [+] 0x[0-9a-f]+ /[*] "no more\\n" [*]/\)' "$many"
	like "two arguments of open" 'open_[0-9a-f]+_v\([^,]*, 0\)' "$many"
	like "three where it makes the file" 'open_[0-9a-f]+_v\([^,]*, [^,]*, 384\)' "$many"
	is "of others nothing is known" 2 "$(grep -c 'scry_call(.*printf' "$WORK/many.c")"
	"$SCRY" decompile --all "$WORK/many" -o "$WORK/mn" >/dev/null
	status "and it compiles" 0 make -s -C "$WORK/mn" CC=gcc CFLAGS="-O2 -Werror" all
else
	skip "calls of any number of arguments" "no gcc"
fi
# Loops and switches are what they were: what compilers ask twice is asked once, and a table is cases of a number.
if build shapes gcc -O2 -x c - <<'C'; then
struct l { struct l *next; int v; };
__attribute__((noipa)) int f(int x) { return x * 3; }
int all(struct l *p) { for (; p; p = p->next) f(p->v); return f(0) + 1; }
int kind(int c)
{
	switch (c) {
	case 3: return f(1);
	case 4: case 9: return f(7) + 2;
	case 5: c = f(c);
	case 6: return f(c) * 3;
	case 8: return f(9) - f(8);
	default: return f(0);
	}
}
int main(int c, char **v) { return all((void *)v) + kind(c); }
C
	"$SCRY" decompile "$WORK/shapes" all >"$WORK/shapes.c"
	like "a loop over a list" 'for \(.*; .* != 0; .* = \*\(u64 \*\)' "$(cat "$WORK/shapes.c")"
	is "which asks once" 1 "$(grep -c '!= 0\|== 0' "$WORK/shapes.c")"
	"$SCRY" decompile "$WORK/shapes" kind >>"$WORK/shapes.c"
	like "a switch on a number" '^	switch \(.*(rdi|a0|v[0-9]+)\) \{$' "$(cat "$WORK/shapes.c")"
	is "with its cases" "0x3 0x4 0x5 0x6 0x8 0x9" "$(sed -nE 's/^	case (0x[3-689]):$/\1/p' "$WORK/shapes.c" | sort | tr '\n' ' ' | sed 's/ $//')"
	is "without a goto" 0 "$(grep -c goto "$WORK/shapes.c")"
	"$SCRY" decompile "$WORK/shapes" --all -o "$WORK/shapes.d" >/dev/null
	status "and it compiles" 0 make -s -C "$WORK/shapes.d" CC=gcc CFLAGS="-O1 -Werror"
else
	skip "loops and switches" "no gcc"
fi
status "no such function" 1 "$SCRY" decompile $F 0x1
status "all needs a folder" 2 "$SCRY" decompile $F --all
status "all" 0 "$SCRY" decompile $F --all -o "$WORK/c" --json
is "every function gives C" "0" "$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["failed"])' "$OUT")"
for cc in gcc clang; do
	command -v $cc >/dev/null || { skip "compiled by $cc" "no $cc"; continue; }
	for level in -O0 -O2; do
		status "compiled by $cc $level without a warning" 0 make -s -C "$WORK/c" CC=$cc CFLAGS="$level -Werror" clean all
	done
done
if build prog32 i686-linux-gnu-gcc -O2 -x c - <<'C'; then
#include <stdio.h>
#include <string.h>
double f(double x, float y) { return x * y + 1; }
long double g(long double x) { return x * 3 + 1; }
long long h(long long a, int b) { return a * b + (a >> b); }
int main(int c, char **v) { char b[64]; memset(b, c, sizeof b); return printf("%s %f %d\n", v[0], f(c, 2) + (double)g(c), (int)h(c, b[3])); }
C
	status "a program of 32 bits" 0 "$SCRY" decompile "$WORK/prog32" --all -o "$WORK/c32" --json
	is "every function gives C" "0" "$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["failed"])' "$OUT")"
	status "and compiles" 0 make -s -C "$WORK/c32" CFLAGS="-O1 -Werror" all
else
	skip "a program of 32 bits" "no i686-linux-gnu-gcc"
fi
status "a folder that cannot be made" 3 "$SCRY" decompile $F --all -o /proc/no/where
plan
