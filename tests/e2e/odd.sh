#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Odd and broken code: each function gives C that compiles, at some level, and says where it is not all of the function.
. "$(dirname "$0")/lib.sh"
build odd.so gcc -shared -nostdlib "$ROOT/tests/data/roundtrip/odd.s" || plan
O=$WORK/odd.s
strip -o "$O" "$WORK/odd.so"

# of NAME STATUS WARNING TEXT: what the C of a function is like; both are patterns, WARNING of what it says it is not.
of() {
	local at got
	at=0x$(nm "$WORK/odd.so" | sed -n "s/ [tT] $1\$//p")
	got=$("$SCRY" decompile "$O" "$at" --json 2>&1)
	is "$1: $2" "ok" "$(printf '%s\n' "$got" | python3 -c '
import json, re, sys
d = json.load(sys.stdin)
said = "\n".join(d["warnings"])
good = d["status"] == sys.argv[1] and bool(d["warnings"]) == (d["status"] == "partial") and re.search(sys.argv[2], said) and re.search(sys.argv[3], d["code"])
print("ok" if good else (d["status"], said, d["code"][:2000]))' "$2" "$3" "$4" 2>&1)"
}
of overlap partial 'goes to .* no function begins' '== 5'
of opaque partial 'goes to .* no function begins' '\+ 7'
of middle partial 'goes to .* no function begins' 'return 1'
of other full '^$' 'return 8'
of selfmod partial 'writes to .*code' '= .*9|\\t'
of caller full '^$' 'convention|sub_'
of noframe full '^$' '\+ 8'
of pushret partial 'the stack in another place' '.'
of callpop full '^$' 'm->image'
of anywhere full '^$' 'scry_call\(m, a0'
of table full '^$' 'switch'
of loopself full '^$' 'for \(;;\)'
of cutoff partial '.' '.'
of many partial 'as it was lifted.*steps' '.'
of web full '^$' 'goto'
like "and the text says so" '^0x[0-9a-f]+: goes to' "$("$SCRY" decompile "$O" "0x$(nm "$WORK/odd.so" | sed -n 's/ T middle$//p')")"
status "all of them as files" 0 "$SCRY" decompile --all "$O" -o "$WORK/c"
rm -f "$WORK"/c/state.o
status "which compile" 0 sh -c 'cd "$1" && for f in code_*.c state.c; do gcc -std=gnu11 -Wall -Wextra -Wno-unused -Werror -I. -O0 -c "$f" -o /dev/null || exit 1; done' sh "$WORK/c"
plan
