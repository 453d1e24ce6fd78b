#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What people complained about in the C of decompilers: the C does what source or processor say (tests/data/roundtrip/complaints.c), and what of it shows in the text.
. "$(dirname "$0")/lib.sh"
for cc in gcc-12 clang-14; do
	command -v $cc >/dev/null || { skip "answers, as $cc compiles them" "no $cc"; continue; }
	for opt in -O0 -O2; do
		mkdir -p "$WORK/rt"
		status "asked, $cc $opt" 0 python3 "$ROOT/tests/score/score_roundtrip.py" --suite complaints --cc $cc --opt=$opt --json --work "$WORK/rt" --scry "$SCRY"
		is "each is right by its C, $cc $opt" ok "$(printf '%s\n' "$OUT" | python3 -c '
import json, sys
f = json.load(sys.stdin).get(sys.argv[1])
print("ok" if f and f["functions"] == f["same"] == 28 and f["wrong"] == 0 else f)' "$cc $opt")"
	done
done
build c gcc -O1 -w "$ROOT/tests/data/roundtrip/complaints.c" -lm || plan
C=$WORK/c
strip -o "$C.s" "$C"
at() { echo "0x$(nm "$C" | sed -n "s/ [tT] $1\$//p")"; }
code() { "$SCRY" decompile "$C.s" "$(at "$1")"; }
is "8: two instructions on vectors are few lines" ok "$([ "$(code c08 | wc -l)" -lt 12 ] && echo ok)"
like "9: what few processors have ends nothing" '\* 3|\* 2 \+|3 \*' "$(code c09)"
for f in c10 c11 c12 c31; do
	like "$f is a switch" '^	+switch \([^-]*\) \{$' "$(code $f)"
done
like "19: what hands on a result gives one" '^uint64_t ' "$(code c19)"
is "21: what never returns is followed by nothing" 0 "$(code c21 | grep -c ' 3')"
like "22: the frame of a rounded stack pointer is followed" '"level":"L[01]"' "$("$SCRY" decompile "$C.s" "$(at c20)" --json)"
# 29: each instruction has a line, of every function of the program.
if command -v objdump >/dev/null && command -v readelf >/dev/null; then
	status "29: every instruction has a line" 0 python3 "$ROOT/tests/score/score_lines.py" --scry "$SCRY" "$C.s"
fi
# 13, 30: it ends.
status "13: two hundred and more decisions" 0 "$SCRY" decompile "$C.s" "$(at c13)"
status "30: main of ls" 0 "$SCRY" decompile /bin/ls main
plan
