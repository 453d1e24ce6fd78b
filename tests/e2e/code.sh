#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# C of functions: every function of a program gives some, all of it compiles, lines name instructions of their function.
. "$(dirname "$0")/lib.sh"
F=/bin/true
status "one function" 0 "$SCRY" decompile $F main
like "takes the machine's state" 'void main_[0-9a-f]+\(struct scry_x86_64 \*m\)' "$OUT"
is "line by line" "ok" "$("$SCRY" decompile $F main --map --json | python3 -c '
import json, subprocess, sys
c = json.load(sys.stdin)
rows = json.loads(subprocess.run([sys.argv[1], "disasm", sys.argv[2], "main", "--json", "--limit", "100000"], stdout=subprocess.PIPE, check=True).stdout)
insns = {i["addr"] for i in rows["items"] if i["kind"] == "code" and "sub" not in i}
mapped = {a for l in c["map"] for a in l["addrs"]}
lines = c["code"].count("\n")
ok = c["level"] == "L4" and c["status"] == "full" and mapped <= insns and all(1 <= l["line"] <= lines for l in c["map"])
print("ok" if ok and len(insns - mapped) == 0 else sorted(insns - mapped)[:5])' "$SCRY" $F)"
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
status "a folder that cannot be made" 3 "$SCRY" decompile $F --all -o /proc/no/where
plan
