#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Malformed and hostile files: a clear message or a partial result, never a crash, a hang or a silent answer.
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
build prog gcc -O1 -g "$ROOT/tests/data/prog/sample.c" || plan
build asm gcc -nostdlib -static -no-pie "$ROOT/tests/data/prog/sample.S" || plan
mkdir files
python3 - prog asm files <<'PY'
import random, struct, sys
prog, asm, out = open(sys.argv[1], "rb").read(), open(sys.argv[2], "rb").read(), sys.argv[3]
rnd = random.Random(5)
files = {}
def put(name, data): files[name] = bytes(data)
def edit(base, *changes):
    b = bytearray(base)
    for off, fmt, v in changes: struct.pack_into("<" + fmt, b, off, v)
    return b
for n in (1, 4, 16, 52, 63, 64, 65, 120, 500, 1000, 4096, len(prog) // 2, len(prog) - 1): put(f"cut-{n}", prog[:n])
put("zeros", bytes(4096)); put("random", rnd.randbytes(65536)); put("magic-random", b"\x7fELF" + rnd.randbytes(8192))
put("magic-good-rest-random", prog[:64] + rnd.randbytes(16384)); put("magic-zeros", prog[:64] + bytes(8192))
phoff, shoff = struct.unpack_from("<Q", prog, 32)[0], struct.unpack_from("<Q", prog, 40)[0]
put("phnum-max", edit(prog, (56, "H", 0xfffe))); put("shnum-max", edit(prog, (60, "H", 0xfffe)))
put("phoff-outside", edit(prog, (32, "Q", 1 << 60))); put("shoff-outside", edit(prog, (40, "Q", 1 << 60)))
put("phoff-overlaps-header", edit(prog, (32, "Q", 0))); put("shoff-overlaps-header", edit(prog, (40, "Q", 0)))
put("shstrndx-outside", edit(prog, (62, "H", 0xfff0))); put("entry-outside", edit(prog, (24, "Q", 0xffffffffffffffff)))
put("class-32", edit(prog, (4, "B", 1))); put("class-9", edit(prog, (4, "B", 9))); put("big-endian", edit(prog, (5, "B", 2)))
put("machine-unknown", edit(prog, (18, "H", 0x1234))); put("phentsize-1", edit(prog, (54, "H", 1))); put("shentsize-0", edit(prog, (58, "H", 0)))
put("segment-huge", edit(prog, (phoff + 2 * 56 + 40, "Q", 1 << 62))); put("segment-wraps", edit(prog, (phoff + 2 * 56 + 16, "Q", (1 << 64) - 16)))
put("segment-file-huge", edit(prog, *[(phoff + i * 56 + 32, "Q", 1 << 40) for i in range(2, 6)]))
put("segments-same-place", edit(prog, *[(phoff + i * 56 + 16, "Q", 0x1000) for i in range(2, 6)]))
put("sections-all-symtab", edit(prog, *[(shoff + i * 64 + 4, "I", 2) for i in range(1, 20)]))
put("section-sizes-max", edit(prog, *[(shoff + i * 64 + 32, "Q", 0xffffffff00) for i in range(1, 20)]))
put("section-links-cycle", edit(prog, *[(shoff + i * 64 + 40, "I", i) for i in range(1, 20)]))
put("sections-million", edit(prog, (40, "Q", len(prog)), (60, "H", 0)) + struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 1000000, 0, 0, 0, 0) + bytes(64 * 2000))
put("code-all-jumps-to-self", edit(asm, *[(0x1000 + i, "H", 0xfeeb) for i in range(0, 100, 2)]))
put("code-all-calls", edit(asm, *[(0x1000 + i, "B", 0xe8) for i in range(0, 100)]))
# Code made to be costly: what is 1 MB must not take a minute.
def one_segment(code, size=1 << 20):
    head = prog[:16] + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0x400100, 64, 0, 0, 64, 56, 1, 64, 0, 0) \
        + struct.pack("<IIQQQQQQ", 1, 5, 0, 0x400000, 0x400000, size, size, 0x1000)
    return (head.ljust(0x100, b"\0") + code * (size // len(code)))[:size]
put("code-calls-what-follows", one_segment(b"\xe8\0\0\0\0")); put("code-all-returns", one_segment(b"\xc3"))
put("code-tiny-functions", one_segment(b"\xf3\x0f\x1e\xfa\xc3")); put("code-calls-cut", one_segment(b"\xe8"))
put("code-jumps-to-itself", one_segment(b"\xeb\xfe")); put("code-zeros", one_segment(b"\0", 8 << 20))
many = edit(prog, (32, "Q", len(prog)), (56, "H", 1000))
put("segments-show-all-again", many + b"".join(struct.pack("<IIQQQQQQ", 1, 7, 0, 0x400000 + i * 0x400000, 0x400000, 0x400000, 0x400000, 0x1000)
                                              for i in range(1000)) + prog * 100)
for s in range(6):
    b = bytearray(prog)
    for _ in range(40 * (s + 1)): b[rnd.randrange(len(b))] = rnd.randrange(256)
    put(f"mutant-{s}", b)
for name, data in files.items(): open(f"{out}/{name}", "wb").write(data)
PY
accepted=0
refused=0
for f in files/*; do
	bad=
	for op in info "functions $f --limit 20" "heads $f --count 50" "strings $f --limit 20" "symbols $f --limit 20" "problems $f" "callgraph $f --limit 20"; do
		case $op in *files/*) ;; *) op="$op $f" ;; esac
		# shellcheck disable=SC2086
		timeout 60 "$SCRY" $op --json >out.json 2>err.txt </dev/null
		s=$?
		case $s in
		0) python3 -m json.tool out.json >/dev/null 2>&1 || bad="$bad [$op: no JSON]"; accepted=$((accepted + 1)) ;;
		1 | 3) [ "$(grep -c '^scry: ' err.txt)" = 1 ] || bad="$bad [$op: status $s without a line]"; refused=$((refused + 1)) ;;
		*) bad="$bad [$op: status $s: $(tail -3 err.txt | cut -c1-300)]" ;;
		esac
		grep -q 'runtime error\|AddressSanitizer' err.txt && bad="$bad [$op: $(grep -m1 'runtime error\|AddressSanitizer' err.txt)]"
		[ $s = 3 ] && [ "${op%% *}" = info ] && break
	done
	if [ -z "$bad" ]; then pass "${f#files/}"; else fail "${f#files/}" "$bad"; fi
done
ok "some were accepted ($accepted)" test "$accepted" -gt 20
ok "some were refused ($refused)" test "$refused" -gt 5

# A target that is cut or rewritten while it is read is noticed; no signal ends scry.
cp "$(readlink -f /usr/bin/python3)" big 2>/dev/null || cp prog big
noticed=0
dead=0
for i in $(seq 12); do
	cp big moving
	"$SCRY" search moving --no-store --insn '*nosuch*' >/dev/null 2>moving.err &
	p=$!
	sleep "$(python3 -c "import random; print(random.Random($i).uniform(0.02, 0.8))")"
	if [ $((i % 2)) = 0 ]; then : >moving; else printf 'overwritten' | dd of=moving conv=notrunc bs=1 seek=8192 2>/dev/null; fi
	wait $p
	s=$?
	[ $s -ge 124 ] && dead=$((dead + 1)) && cat moving.err >>dead.err
	grep -q 'target_changed' moving.err && noticed=$((noticed + 1))
	rm -f moving
done
is "no signal from a target that moves" "0" "$dead"
ok "it was noticed ($noticed of 12)" test "$noticed" -ge 3
plan
