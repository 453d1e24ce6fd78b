#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# lift_c.sh TARGET: the C that fuzz_lift makes of random bytes and of code compiles without a warning, whatever the bytes.
set -eu
target=$1 here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/seeds"
python3 "$here/seeds.py" code "$work/seeds"
find "$work/seeds" -type f | sort | sed '1~8d' | xargs rm -f
python3 - "$work/seeds" <<'P'
import os, random, sys
r = random.Random(4)
for i in range(12):
    with open(os.path.join(sys.argv[1], f"random{i}"), "wb") as f:
        f.write(bytes([r.randrange(64)]) + r.randbytes(400))
P
printf '\x00\xf0\x0f\xb1\x0e\x87\x0e\xf0\x01\x06\xf0\x48\x21\x06\xc3' >"$work/seeds/atomic"
n=0
check() {
	n=$((n + 1))
	if "$@" >"$work/out" 2>&1; then echo "ok $n - $*"; else
		head -n 20 "$work/out" | sed 's/^/# /'
		echo "not ok $n - $*"
	fi
}
echo '#include "scry.h"' >"$work/all.c"
export FUZZ_LIFT_C=$work/all.c
check "$target" "$work/seeds"
count=$(grep -c '^void f' "$work/all.c")
check test "$count" -ge 300
echo "# $count functions, $(wc -l <"$work/all.c") lines"
for cc in gcc clang; do
	if ! command -v $cc >/dev/null; then
		n=$((n + 1))
		echo "ok $n # SKIP no $cc"
		continue
	fi
	check $cc -O0 -std=gnu11 -Wall -Wextra -Wno-unused -Werror -I"$here/../../include" -c "$work/all.c" -o /dev/null
done
echo "1..$n"
