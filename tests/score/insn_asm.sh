#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# insn_asm.sh DUMP: two routes to one text: the assembler's bytes through DUMP and through objdump, and
# the C library of this machine likewise.
set -eu
dump=$1
here=$(dirname "$0")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
as -o "$tmp/x.o" "$here/insn_x86_64.s"
python3 "$here/insn_text.py" "$dump" "$tmp/x.o" --max-kinds 0
as --32 -o "$tmp/i.o" "$here/insn_i386.s"
python3 "$here/insn_text.py" "$dump" "$tmp/i.o" --arch i386 --max-kinds 0
libm=$(ldconfig -p | sed -n 's/.*libm\.so\.6 .*x86-64.*=> //p' | head -1)
[ -z "$libm" ] || python3 "$here/insn_text.py" "$dump" "$libm" --max-kinds 0
