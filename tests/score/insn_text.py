#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the text of every instruction with `objdump -d -M intel`.

usage: insn_text.py DUMP FILE [--arch x86-64] [--raw] [--max-kinds 30] [--show N]

DUMP is the insn_dump program. Every executable section of FILE is decoded by both from its first byte.
Exactly three things are brought to one form: objdump's padding after the mnemonic, its `401136 <name>`
for a branch target (ours is 0x401136), and its trailing `# 2f5e0 <name>` comment. Everything else that
differs is counted as a kind: the pair of texts with the numbers taken out on both sides, registers and
widths kept. Exit status 1 when a length differs or there are more kinds than --max-kinds.
"""
import argparse
import collections
import re
import subprocess
import sys

TARGET = re.compile(r"\b([0-9a-f]+) <[^>]*>")
COMMENT = re.compile(r"\s+(# (0x)?[0-9a-f]+( <.*>)?|// .*)$")
NUMBER = re.compile(r"0x[0-9a-f]+")
BRANCH = re.compile(r"^((?:\S+ )*(?:call|j[a-z]+|loop[a-z]*|xbegin)w?(?:,p[nt])?) ([0-9a-f]+)$")


OBJDUMP = "objdump"
INTEL = ["-M", "intel"]


def sections(path):
    """(name, file offset, length, address) of the executable sections."""
    out = subprocess.run(["readelf", "-SW", path], check=True, capture_output=True, text=True).stdout
    for line in out.splitlines():
        m = re.match(r"\s*\[\s*\d+\]\s+(\S+)\s+PROGBITS\s+(\S+)\s+(\S+)\s+(\S+)\s+\S+\s+(\S+)", line)
        if m and "X" in m.group(5):
            va, off, size = (int(m.group(i), 16) for i in (2, 3, 4))
            if size:
                yield m.group(1), off, size, va


def clean(text):
    text = COMMENT.sub("", text.rstrip())
    text = re.sub(r"\s+", " ", text).strip()
    text = TARGET.sub(r"0x\1", text)
    return BRANCH.sub(r"\1 0x\2", text)


def objdump_lines(path, name, extra):
    """(address, length, text) of one section."""
    cmd = [OBJDUMP, "-d", "-w", "-z", *INTEL, "-j", name, *extra, path]
    proc = subprocess.Popen(cmd, stdout=subprocess.PIPE, text=True, errors="replace")
    for line in proc.stdout:
        part = line.rstrip("\n").split("\t")
        if len(part) < 2 or not part[0].endswith(":"):
            continue
        try:
            va = int(part[0].rstrip(":"), 16)
        except ValueError:
            continue
        yield va, len(part[1].replace(" ", "")) // 2, clean(" ".join(part[2:]))
    if proc.wait() != 0:
        sys.exit(f"insn_text: {' '.join(cmd)} failed")


def our_lines(dump, arch, path, off, size, va):
    cmd = [dump, arch, path, hex(off), hex(size), hex(va)]
    proc = subprocess.Popen(cmd, stdout=subprocess.PIPE, text=True, errors="replace")
    for line in proc.stdout:
        at, length, text = line.rstrip("\n").split(" ", 2)
        yield int(at, 16), int(length), text
    if proc.wait() != 0:
        sys.exit(f"insn_text: {' '.join(cmd)} failed")


def compare(theirs, ours, stats):
    """Walks both lists by address; an address that only one has is a length difference."""
    theirs, ours = iter(theirs), iter(ours)
    a, b = next(theirs, None), next(ours, None)
    while a and b:
        if a[0] != b[0]:
            if a[0] < b[0]:
                a = next(theirs, None)
            else:
                b = next(ours, None)
            continue
        if a[2].startswith(".byte"):
            # A symbol or the end of the section lies inside the instruction: objdump gives the bytes
            # before it as data and starts anew.
            stats["cut"] += 1
            a, b = next(theirs, None), next(ours, None)
            continue
        stats["compared"] += 1
        if a[1] != b[1]:
            stats["lengths"][(NUMBER.sub("N", a[2]), NUMBER.sub("N", b[2]))].append(a[0])
        elif a[2] != b[2]:
            key = (NUMBER.sub("N", a[2]), NUMBER.sub("N", b[2]))
            if key[0] == key[1]:
                key = (a[2], b[2])
            stats["kinds"][key].append(a[0])
        a, b = next(theirs, None), next(ours, None)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("dump")
    ap.add_argument("file")
    ap.add_argument("--arch", default="x86-64")
    ap.add_argument("--raw", action="store_true", help="FILE is code without headers, at address 0")
    ap.add_argument("--max-kinds", type=int, default=30)
    ap.add_argument("--show", type=int, default=40)
    ap.add_argument("--objdump", default="objdump", help="that of another target, say")
    args = ap.parse_args()
    global OBJDUMP
    OBJDUMP = args.objdump
    if args.arch == "aarch64":
        INTEL.clear()
    stats = {"compared": 0, "cut": 0, "lengths": collections.defaultdict(list), "kinds": collections.defaultdict(list)}
    if args.raw:
        import os
        machine = {"x86-64": ["-m", "i386:x86-64"], "i386": ["-m", "i386"], "aarch64": ["-m", "aarch64"]}
        theirs = objdump_lines(args.file, ".data", ["-b", "binary", "-D", *machine[args.arch]])
        compare(theirs, our_lines(args.dump, args.arch, args.file, 0, os.path.getsize(args.file), 0), stats)
    else:
        for name, off, size, va in sections(args.file):
            compare(objdump_lines(args.file, name, []),
                    our_lines(args.dump, args.arch, args.file, off, size, va), stats)
    lengths = sum(map(len, stats["lengths"].values()))
    spelled = sum(map(len, stats["kinds"].values()))
    print(f"{args.file}: {stats['compared']} instructions, {stats['cut']} cut by a symbol, {lengths} length differences, "
          f"{spelled} spelling differences of {len(stats['kinds'])} kinds")
    for title in ("lengths", "kinds"):
        rows = sorted(stats[title].items(), key=lambda kv: -len(kv[1]))
        for (their, our), where in rows[:args.show]:
            print(f"  {title[:-1]} {len(where):6d} at {where[0]:#x}: objdump `{their}` ours `{our}`")
    return 1 if lengths or len(stats["kinds"]) > args.max_kinds else 0


sys.exit(main())
