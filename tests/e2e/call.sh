#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Functions of a target called with typed arguments: consent, results by type, buffers; programs that mean harm are escape.sh's.
. "$(dirname "$0")/lib.sh"
command -v gcc >/dev/null || { skip "call" "no gcc"; plan; }
cat >"$WORK/good.c" <<'C'
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
int add(int a, int b) { return a + b; }
unsigned long ten(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j)
{ return a + 2*b + 3*c + 4*d + 5*e + 6*f + 7*g + 8*h + 9*i + 10*j; }
double half(double x) { return x / 2; }
float third(float x, double y) { return (float)(x / 3 + y); }
int upper(char *s) { int n = 0; for (; s[n]; n++) s[n] = (char)toupper((unsigned char)s[n]); return n; }
int fill(unsigned char *out, int n) { for (int i = 0; i < n; i++) out[i] = (unsigned char)(i * 17); return n; }
int sum(const unsigned char *p, int n) { int r = 0; while (n--) r += *p++; return r; }
int counter = 40;
int next(int *p) { return ++*p; }
void nothing(void) {}
long double wide(double x) { return (long double)x / 3; }
int narrow(signed char a, unsigned char b) { return a + b; }
struct two { long a, b; };
long first(struct two t, int i) { return t.a + i; }
struct two pair(long a) { struct two t = {a, a + 1}; return t; }
int some(int n, ...) { return n; }
void leave(int n) { exit(n); }
int main(void) { return 0; }
C
build good gcc -O1 -g -w "$WORK/good.c" || plan
G=$WORK/good
# No result here hangs on how long it took.
call() { "$SCRY" call "$@" --timeout-ms 60000; }
# --- consent
status "refused at first" 1 call $G add 1 2
like "says how to agree" 'yes-run-target' "$ERR"
like "says what does not protect" 'kernel' "$ERR"
status "agreed" 0 call $G add 1 2 --yes-run-target
status "once is enough" 0 call $G add 1 2
cp $G "$WORK/copy"
status "the same bytes elsewhere, too" 0 call "$WORK/copy" add 1 2
printf x >>"$WORK/copy"
status "other bytes not" 1 call "$WORK/copy" add 1 2
status "not without a store either" 1 call --no-store $G add 1 2
# --- arguments and results
json "integers" 'd["ret"] == "0x2a" and d["ret_int"] == 42 and d["end"] == "returned" and d["signal"] is None and d["fault_addr"] is None and d["mem"] == [] and d["ns"] >= 0' \
	call $G add 0x20 10 --json
json "negative, cut to the type debug information gives" 'd["ret_int"] == -8 and "int add(int" in d["prototype"]' call $G add -10 2 --json
json "ten arguments, an unsigned result" 'd["ret_int"] == 385' call $G ten 1 2 3 4 5 6 7 8 9 10 --json
json "a double" 'd["ret_float"] == 0.75 and d["ret"] is None' call $G half 1.5 --json
json "an integer where a double is taken" 'd["ret_float"] == 3.5' call $G half 7 --json
json "a float" 'd["ret_float"] == 2.5' call $G third 3.0f 1.5 --json
json "a result of a stated type" 'd["ret_int"] == 0xfffffff8' call $G add -10 2 --ret uint --json
json "text" 'd["ret_int"] == 5 and d["mem"][0]["hex"] == "48454c4c4f00"' call $G upper hello --json
json "text that looks like a number" 'd["ret_int"] == 2 and d["mem"][0]["hex"] == "343200"' call $G upper str:42 --json
json "a buffer of bytes" 'd["ret_int"] == 0xff + 0x10 + 1' call $G sum 'buf:ff 10 01' 3 --json
json "bytes with a prefix" 'd["ret_int"] == 0x10 and d["mem"][0]["hex"] == "10"' call $G sum buf:0x10 1 --json
json "a buffer of zeros" 'd["ret_int"] == 0 and d["mem"][0]["hex"] == "00" * 100' call $G sum buf:100 100 --json
json "what is written shows" 'd["mem"][0]["hex"] == "0011223344aaaaaa" and int(d["mem"][0]["addr"], 16) > 0' call $G fill out:8 5 --json
json "an address of the target" 'd["ret_int"] == 41' call $G next addr:counter --json
json "nothing is left for the next call" 'd["ret_int"] == 41' call $G next addr:counter --json
json "no result" 'd["ret"] is None and d["ret_int"] is None and d["end"] == "returned"' call $G nothing --json
json "an import that ends it" 'd["end"] == "exited" and d["import"] == "exit" and d["ret"] is None' call $G leave 3 --json
json "a long double" 'abs(d["ret_float"] * 3 - 1) < 1e-15' call $G wide 1.0 --json
like "with all its digits" '0\.333333333333333333342' "$(call $G wide 1.0)"
json "by name" 'd["ret_float"] == 2.5' call $G half f64:0x1.4p2 --json
json "an infinity" 'd["ret_float"] == "inf"' call $G half f64:inf --json
json "a float by name" 'd["ret_float"] == 2.5' call $G third f32:3 1.5 --json
json "narrow numbers, signed or not" 'd["ret_int"] == 254' call $G narrow -1 255 --json
status "a number of more than 64 bits" 2 call $G ten 18446744073709551616 2 3 4 5 6 7 8 9 10
like "is no text" 'too large a number' "$ERR"
status "nor a negative one" 2 call $G next -9223372036854775809
status "nor in hex" 2 call $G next 0x10000000000000000
status "more than a double" 2 call $G half 1e400
status "more than its type" 2 call $G add 4294967296 1
like "which it says" 'argument 1: the function takes int, too short' "$ERR"
status "text for a number" 2 call $G add abc 1
status "text for a double" 2 call $G half abc
status "a float for a pointer" 2 call $G upper 1.5
like "says what it takes" 'takes char \*, no floating point number' "$ERR"
status "a float for an integer" 2 call $G add 1.5 1
status "one too many" 2 call $G add 1 2 3
like "says how many" 'add takes 2 arguments; given were 3' "$ERR"
status "one too few" 2 call $G add 1
status "a structure" 2 call $G first 1 2
status "a structure as result" 2 call $G pair 5
like "says how, all the same" 'ret long' "$ERR"
json "which works" 'd["ret_int"] == 5' call $G pair 5 --ret long --json
status "any number of arguments" 0 call $G some 1 2 3 4
status "but not fewer than are named" 2 call $G some
for word in out: out:-1 out:0x10 out:1048577 buf:1048577 buf:f f64: f64:x f64:1e400 f32:1e40 'f64: 1'; do
	status "no argument: '$word'" 2 call $G upper "$word"
done
for word in -0 +5 010 0x0F; do
	status "a number: $word" 0 call $G add $word 1
done
status "a limit of nothing" 2 "$SCRY" call $G add 1 2 --timeout-ms 0
status "a limit of too much" 2 "$SCRY" call $G add 1 2 --timeout-ms 600001
status "for people" 0 call $G add -10 2
like "signed, unsigned and hex" 'returned 0xfffffff8 = -8, unsigned 4294967288' "$OUT"
status "a dump" 0 call $G upper hello
like "of the buffer" '48 45 4c 4c 4f 00.*HELLO\.' "$OUT"
status "no such function" 1 call $G nowhere
status "the middle of a function" 1 call $G add+1
status "bad hex" 2 call $G sum buf:fx 1
status "too large a buffer" 2 call $G sum buf:9999999 1
status "too many arguments" 2 call $G sum 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17
status "an address that is nowhere" 1 call $G next addr:0x99999999
plan
