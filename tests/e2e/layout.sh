#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Layouts of a header with odd attributes on three targets, as libclang gives them: what scry keeps of them says the same to a compiler.
. "$(dirname "$0")/lib.sh"

cat >"$WORK/odd.h" <<'C'
struct __attribute__((ms_struct)) ms { char a : 4; int b : 4; long long c : 20; char d; };
struct outer { char before; struct ms in[2]; double after; };
#pragma ms_struct on
union pm { char a : 3; int b : 17; };
typedef struct { short a : 3; int : 0; char b : 2; long long c : 40; } pm_alias;
#pragma ms_struct off
#pragma pack(push, 2)
struct __attribute__((ms_struct)) packed_ms { char a; int b : 5; long long c : 3; short d; };
#pragma pack(pop)
struct plain { char c; long long l; double d; long double e; int x : 7; int y : 30; };
typedef int aligned_int __attribute__((aligned(16)));
struct al { char c; aligned_int i; short s __attribute__((packed)); };
struct __attribute__((packed, aligned(4))) pk { char c; long long l; short s : 9; };
struct flex_ms { int n; struct ms m; char rest[]; } __attribute__((ms_struct));
enum { POP = __builtin_popcount(255), AFTER = __builtin_offsetof(struct outer, after), SZ = sizeof(struct ms), NEXT };
C
printf 'int f(void) { return 1; }\n' >"$WORK/f.c"
command -v clang >/dev/null || { skip "layouts" "no clang"; plan; }
clang --target=x86_64-linux-gnu -c -o "$WORK/probe.o" "$WORK/f.c"
"$SCRY" declare "$WORK/probe.o" --header "$WORK/odd.h" --dry-run --json >"$WORK/probe" 2>&1
grep -q '"layouts"' "$WORK/probe" || { skip "layouts" "no libclang"; plan; }

# What scry says of a type, as assertions of the compiler.
cat >"$WORK/asserts.py" <<'PY'
import json, subprocess, sys
scry, target, names = sys.argv[1], sys.argv[2], sys.argv[3:]
for name in names:
    d = json.loads(subprocess.check_output([scry, "type", target, name, "--json"]))
    print(f"_Static_assert(sizeof({name}) == {d['size']} && _Alignof({name}) == {d['align']}, \"{name}\");")
    for m in d["members"]:
        if "bits" not in m and m["name"] and not m["name"].startswith("_gap_"):
            print(f"_Static_assert(__builtin_offsetof({name}, {m['name']}) == {m['offset']}, \"{name}.{m['name']}\");")
PY
TYPES=("struct ms" "struct outer" "union pm" pm_alias "struct packed_ms" "struct plain" "struct al" "struct pk" "struct flex_ms")

on() { # TARGET OTHER: a program of it; which layouts are other than by scry's own rules
	local o=$WORK/$1.o
	clang --target="$1-linux-gnu" -c -o "$o" "$WORK/f.c"
	json "$1: the layouts that are other" "sorted(i['name'] for i in d['layouts']['other'] if i['taken']) == sorted($2) and \
d['layouts']['compared'] == 10 and d['layouts']['target'] == '$1-linux-gnu'" "$SCRY" declare "$o" --header "$WORK/odd.h" --json
	python3 "$WORK/asserts.py" "$SCRY" "$o" "${TYPES[@]}" >"$WORK/asserts.c"
	is "$1: there is something to compare" yes "$([ "$(wc -l <"$WORK/asserts.c")" -gt 20 ] && echo yes)"
	cat "$WORK/odd.h" "$WORK/asserts.c" >"$WORK/theirs.c"
	ok "$1: the compiler lays the header out like that" clang --target="$1-linux-gnu" -fsyntax-only -std=gnu11 "$WORK/theirs.c"
	"$SCRY" types "$o" --c >"$WORK/ours.c"
	cat "$WORK/asserts.c" >>"$WORK/ours.c"
	ok "$1: and what scry keeps, without the attributes" clang --target="$1-linux-gnu" -fsyntax-only -std=gnu11 "$WORK/ours.c"
	unlike "$1: which it does not need" 'ms_struct' "$(cat "$WORK/ours.c")"
	json "$1: bits too" "[(m['name'], m['offset'] * 8 + m.get('bit_offset', 0)) for m in d['members'] if m['name'] in list('abcd')] == \
[('a', 0), ('b', 32), ('c', 64), ('d', 128)]" "$SCRY" type "$o" 'struct ms' --json
	like "$1: constants" 'POP = 8,.*SZ = 24,.*NEXT = 25' "$("$SCRY" types "$o" --filter '*POP')"
	like "$1: again: nothing new" ' 0 applied' "$("$SCRY" declare "$o" --header "$WORK/odd.h")"
}
on x86_64 "['struct ms', 'union pm', 'struct packed_ms', 'an enum without a name']"
on aarch64 "['struct ms', 'union pm', 'struct packed_ms', 'an enum without a name']"
on i686 "['struct ms', 'union pm', 'pm_alias', 'struct packed_ms', 'an enum without a name']"
like "people are told" '^! struct ms  size 24 by libclang, 8 by scry.s rules: libclang.s is taken' \
	"$("$SCRY" declare "$WORK/probe.o" --header "$WORK/odd.h" --dry-run)"
# What libclang cannot read it says nothing of.
printf 'struct fine { int a; };\nstruct odd { _Decimal64 x; int y; };\n' >"$WORK/dec.h"
json "a member it does not know" "d['layouts']['compared'] == 1 and d['layouts']['other'] == []" "$SCRY" declare "$WORK/probe.o" --header "$WORK/dec.h" --json
json "is laid out by scry's rules" "d['size'] == 16" "$SCRY" type "$WORK/probe.o" 'struct odd' --json
status "without a header the attribute is refused" 2 "$SCRY" declare "$WORK/probe.o" 'struct __attribute__((ms_struct)) s { int a; };'
like "with what it needs" 'libclang' "$ERR"
plan
