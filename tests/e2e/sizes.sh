#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Functions of no bytes and of ten thousand instructions: C, a call, verification and a code image.
. "$(dirname "$0")/lib.sh"
command -v gcc >/dev/null || { skip "sizes" "no gcc"; plan; }
python3 - >"$WORK/sizes.S" <<'PY'
# Two of no bytes: one where the next begins, one behind all code.
print(".text\n.globl _start\n_start: ret\n.size _start, 1")
print(".globl empty\n.type empty, @function\nempty:\n.size empty, 0")
print(".globl large\n.type large, @function\nlarge: mov %rdi, %rax")
for i in range(9998):
    print(("add $%d, %%rax", "xor $%d, %%rax", "rol $3, %%rax # %d", "lea %d(%%rax), %%rax", "imul $%d, %%rax, %%rax")[i % 5] % (i * 7 + 1))
print("ret\n.size large, . - large\n.globl last\n.type last, @function\nlast:\n.size last, 0\n.section .note.GNU-stack,\"\",@progbits")
PY
build sizes gcc -nostdlib -no-pie "$WORK/sizes.S" || plan
P=$WORK/sizes
want=$(python3 - <<'PY'
m = (1 << 64) - 1
x = 12345
for i in range(9998):
    n = i * 7 + 1
    x = ((x + n) & m, x ^ n, (x << 3 | x >> 61) & m, (x + n) & m, x * n & m)[i % 5]
print(hex(x))
PY
)
status "agreed" 0 "$SCRY" call $P large 1 --yes-run-target --timeout-ms 60000
json "ten thousand instructions are called" "d['ret'] == '$want'" "$SCRY" call $P large 12345 --timeout-ms 60000 --json
json "a function of no bytes is what follows" "d['ret'] == '$want' and d['name'] == 'empty'" "$SCRY" call $P empty 12345 --timeout-ms 60000 --json
status "behind all code nothing is called" 1 "$SCRY" call $P last --timeout-ms 60000
status "nor verified" 1 "$SCRY" verify $P last
status "C of ten thousand" 0 "$SCRY" decompile $P large
is "of all of them" ok "$([ ${#OUT} -ge 100000 ] && echo ok)"
json "verified" "d['items'][0]['status'] == 'equal' and d['items'][0]['blocks_hit'] == 1" "$SCRY" verify $P large --seeds 4 --json
status "and as an image" 0 "$SCRY" native build $P --all -o "$WORK/sizes.img"
json "called from there" "d['ret'] == '$want'" "$SCRY" native run "$WORK/sizes.img" large 12345 --timeout-ms 60000 --json
json "by the name without bytes, too" "d['ret'] == '$want'" "$SCRY" native run "$WORK/sizes.img" empty 12345 --timeout-ms 60000 --json
status "and not what is not there" 1 "$SCRY" native run "$WORK/sizes.img" last --timeout-ms 60000
plan
