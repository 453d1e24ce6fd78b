#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Code images: C of functions linked into one object, its imports and relocations where they belong, run in place with the results
# of the machine code; and that an image that is not the one that was built is refused.
. "$(dirname "$0")/lib.sh"
command -v gcc >/dev/null || { skip "native" "no gcc"; plan; }
cat >"$WORK/prog.c" <<'C'
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) int inner(int a) { return a * 3 + 1; }
__attribute__((noinline)) int outer(int a, int b) { return inner(a) - inner(b); }
__attribute__((noinline)) long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static int twice(int a) { return a * 2; }
static int minus(int a) { return -a; }
int (*const table[])(int) = {twice, minus};
int by_pointer(int i, int a) { return table[i & 1](a) + 1; }
int upper(char *s) { int n = 0; for (; s[n]; n++) s[n] = (char)toupper((unsigned char)s[n]); return n; }
char *copy(const char *s) { char *p = malloc(strlen(s) + 1); return p ? strcpy(p, s) : 0; }
double mean(const double *p, int n) { double r = 0; for (int i = 0; i < n; i++) r += p[i]; return r / n; }
int counter = 6;
int count(void) { return ++counter; }
int faults(int *p) { return *p + 1; }
void leave(void) { exit(4); }
int main(int argc, char **argv) { return outer(argc, 2) + by_pointer(argc, 3) + upper(argv[0]) + count() + (int)mean(0, 0) + (copy(argv[0]) != 0); }
C
build prog gcc -O1 -w "$WORK/prog.c" || plan
P=$WORK/prog I=$WORK/all.img
status "build" 0 "$SCRY" native build $P -o "$WORK/one.img" outer fib
status "all" 0 "$SCRY" native build $P --all -o $I --json
is "counts" ok "$(python3 - "$OUT" <<'PY'
import json, sys
d = json.loads(sys.argv[1])
print("ok" if d["failed"] == 0 and d["functions"] > 10 and d["text_relocs"] == 0 and d["data_relocs"] > d["functions"] // 2 and d["imports"] > 2 else d)
PY
)"
HASH=$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])["sha256"])' "$OUT")
is "the hash it says" "$HASH" "$(sha256sum <$I | cut -d' ' -f1)"
if command -v readelf >/dev/null; then
	like "an ordinary shared object" 'Type:.*DYN' "$(readelf -hW $I)"
	unlike "without relocations in its code" 'TEXTREL' "$(readelf -dW $I)"
	like "imported functions are its imports" 'UND strlen' "$(readelf -W --dyn-syms $I)"
	like "and its own are to be found" 'FUNC +GLOBAL +DEFAULT +[0-9]+ outer_' "$(readelf -W --dyn-syms $I)"
	unlike "nothing is executable that is writable" 'LOAD.* RWE ' "$(readelf -lW $I)"
else
	skip "the object as others see it" "no readelf"
fi
# No result here hangs on how long it took.
image() { "$SCRY" native run "$@" --timeout-ms 60000; }
# --- consent
status "refused at first" 1 image $I outer 5 2
like "says how to agree" 'yes-run-target' "$ERR"
status "agreed" 0 image $I outer 5 2 --yes-run-target
# --- the same results as the machine code
same() {
	local func=$1
	shift
	json "$func from the image" "d['end'] == 'returned' and d['check_ns'] > 0 and d['map_ns'] > 0" image $I "$func" "$@" --json
	is "$func as its machine code" "$("$SCRY" call $P --timeout-ms 60000 "$func" "$@" --json | python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["ret"], d["ret_float"], d["mem"])')" \
		"$(python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(d["ret"], d["ret_float"], d["mem"])' "$WORK/json")"
}
same outer 5 2
same fib 15
same by_pointer 0 21
same by_pointer 1 21
same upper 'some text'
same copy 'some text'
same mean 'buf:000000000000f03f0000000000001040' 2 --ret double
same count
json "an import ends it" 'd["end"] == "exited" and d["import"] == "exit"' image $I leave --json
json "it is the image that runs: no address of the target" 'd["signal"] == "SIGSEGV" and d["fault_addr"] == "0x10" and d["where"] is None' \
	image $I faults 0x10 --json
json "machine code where the image has none" 'd["ret_int"] == 9' image "$WORK/one.img" outer 5 2 --json
like "what the check costs is apart" 'image: [0-9]+ ns to check its bytes, [0-9]+ ns to map it' "$(image $I count)"
# --- what is not the image that was built
status "a function that is not in it" 1 image "$WORK/one.img" count
cp $I "$WORK/moved.img"
status "the same bytes elsewhere" 0 image "$WORK/moved.img" count
for at in 0 100 5000 -1; do
	cp $I "$WORK/bad.img"
	python3 - "$WORK/bad.img" $at <<'PY'
import sys
b = bytearray(open(sys.argv[1], "rb").read())
b[int(sys.argv[2])] ^= 1
open(sys.argv[1], "wb").write(b)
PY
	status "a bit at $at" 3 image "$WORK/bad.img" count
done
like "says why" 'not the bytes' "$ERR"
for len in 0 10 4096 -1; do
	head -c $len $I >"$WORK/bad.img"
	status "cut to $len bytes" 3 image "$WORK/bad.img" count
done
status "a program is no image" 3 image /bin/true main
status "nor what is not there" 3 image "$WORK/nothing" main
status "another store knows nothing of it" 3 env SCRY_STORE="$WORK/other" "$SCRY" native run $I count
status "without a store there is none" 2 image --no-store $I count
status "nor is one built" 2 "$SCRY" native build --no-store $P -o "$WORK/x.img" count
status "the target is not written" 2 "$SCRY" native build $P -o $P count
status "no function" 1 "$SCRY" native build $P -o "$WORK/x.img" nowhere
status "nothing asked for" 2 "$SCRY" native build $P -o "$WORK/x.img"
status "nowhere to put it" 3 "$SCRY" native build $P -o /proc/no/where count
printf x >>$P
status "a target that changed" 3 image $I count
like "says that" 'not the file any more' "$ERR"
plan
