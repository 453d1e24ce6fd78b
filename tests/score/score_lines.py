#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how much of whole programs has a line of C, and how many of their functions have a goto.

    score_lines.py --scry PATH [--work DIR] [--match REGEX] [--misses FILE] [FILE...]

The programs are those of score_code.py, or the FILEs. docs/measuring.md says what counts. Exit 1 when an instruction has no line, 4 when nothing
could be measured.
"""

import argparse
import bisect
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import score_code  # noqa: E402
from fetch import FetchError  # noqa: E402
from rpcclient import Server  # noqa: E402

PADDING = re.compile(r"^(?:(?:data16|cs|rex\.W|rep|xchg\s+%ax,%ax|nop[wl]?\b.*|int3|lea\s+(?:0x0\(%(r\w\w)[^)]*\),%\1))\s*)+", re.I)
PREFIX = re.compile(r"^(?:rex(?:\.\w+)?|data16|addr32|lock|rep\w*|[c-g]s|ss)$", re.I)
AT_ONCE = 64


def ranges_of(path):
    """[start, end) of each entry of .eh_frame that has code of .text, sorted."""
    text = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True).stdout
    m = re.search(r"\] \.text\s+PROGBITS\s+([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)", text)
    if not m:
        return []
    lo, size = int(m.group(1), 16), int(m.group(2), 16)
    text = subprocess.run(["readelf", "--debug-dump=frames", "-W", path], capture_output=True, text=True).stdout
    found = {(int(a, 16), int(b, 16)) for a, b in re.findall(r" FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", text)}
    return sorted(r for r in found if lo <= r[0] < lo + size)


def insns_of(path):
    """Address -> text, as objdump has it."""
    text = subprocess.run(["objdump", "-d", "-j", ".text", "--no-show-raw-insn", path], capture_output=True, text=True).stdout
    return {int(m.group(1), 16): m.group(2).strip() for m in re.finditer(r"^\s*([0-9a-f]+):\t(.*)$", text, re.M)}


class Counts:
    def __init__(self):
        self.funcs = self.stubs = self.with_goto = self.gotos = self.insns = self.mapped = 0
        self.theirs = self.theirs_mapped = self.padding = self.others = self.rests = 0
        self.refused = 0

    def add(self, o):
        for k, v in vars(o).items():
            setattr(self, k, getattr(self, k) + v)


def measure(scry, path, work, misses):
    n = Counts()
    env = dict(os.environ, SCRY_STORE=os.path.join(work, "store"), XDG_RUNTIME_DIR=work)
    server = Server(scry, os.path.join(work, "socket"), path, env=env)
    lines = set()
    try:
        c = server.client()
        while c("functions", limit=1).get("pending"):
            time.sleep(0.05)
        funcs, cursor = [], None
        while True:
            page = c("functions", limit=1000, **({"cursor": cursor} if cursor else {}))
            funcs += page["items"]
            cursor = page.get("next")
            if not cursor:
                break
        for at in range(0, len(funcs), AT_ONCE):
            part = funcs[at:at + AT_ONCE]
            asked = [(f, c.post("decompile", {"func": f["addr"], "map": True}), c.post("disasm", {"func": f["addr"], "limit": 1000000})) for f in part]
            for f, code_id, list_id in asked:
                try:
                    code = c.take(code_id)
                except Exception as e:  # noqa: BLE001: what is refused is counted, whatever the reason
                    c.take(list_id)
                    n.refused += 1
                    print(path, f["addr"], e, file=misses)
                    continue
                rows = c.take(list_id)
                if rows.get("next"):
                    sys.exit("score_lines.py: the listing of %s in %s was cut" % (f["addr"], path))
                insns = {int(i["addr"], 16) for i in rows["items"] if i["kind"] == "code" and "sub" not in i}
                rests = set()
                mapped = {int(a, 16) for row in code["map"] for a in row["addrs"]}
                n.funcs += 1
                # What the listing shows behind a prefix that it shows alone is the rest of the instruction that begins there.
                for i in sorted((i for i in rows["items"] if i["kind"] == "code" and "sub" not in i), key=lambda i: int(i["addr"], 16)):
                    va = int(i["addr"], 16)
                    if va in rests and va not in mapped:
                        insns.discard(va)
                        n.rests += 1
                        print(path, f["addr"], "rest of an instruction: %#x" % va, file=misses)
                    elif va not in mapped:
                        continue
                    if PREFIX.match(i["text"]):
                        rests.add(va + i["size"])
                n.insns += len(insns)
                n.mapped += len(insns & mapped)
                lines |= mapped
                for va in sorted(insns - mapped):
                    print(path, f["addr"], "no line: %#x" % va, file=misses)
                gotos = len(re.findall(r"\bgoto ", code["code"]))
                n.gotos += gotos
                n.with_goto += gotos > 0
                if gotos:
                    print(path, f["addr"], "%d gotos" % gotos, file=misses)
        c.close()
    finally:
        server.proc.terminate()
        server.proc.wait()
    ranges = ranges_of(path)
    starts = [r[0] for r in ranges]
    for va, text in insns_of(path).items():
        i = bisect.bisect_right(starts, va) - 1
        if i < 0 or va >= ranges[i][1]:
            continue
        n.theirs += 1
        if va in lines:
            n.theirs_mapped += 1
        elif PADDING.match(text):
            n.padding += 1
        else:
            n.others += 1
            print(path, "objdump alone: %#x %s" % (va, text), file=misses)
    return n


def show(name, n):
    print("%-12s lines: %d of %d instructions (%s); %d more are the rest of one; "
          "objdump's in .eh_frame's ranges: %d of %d with a line, %d padding, %d others (%s)" % (
        name, n.mapped, n.insns, score_code.percent(n.mapped, n.insns), n.rests, n.theirs_mapped, n.theirs, n.padding, n.others,
        score_code.percent(n.theirs_mapped, n.theirs - n.padding)))
    print("%-12s gotos: %d of %d functions have one (%.1f %%), %d in all; %d functions refused" % (
        "", n.with_goto, n.funcs, 100 * n.with_goto / max(1, n.funcs), n.gotos, n.refused), flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--scry", required=True)
    p.add_argument("--work", default="build-score")
    p.add_argument("--match", default="")
    p.add_argument("--misses")
    p.add_argument("files", nargs="*")
    args = p.parse_args()
    scry = os.path.abspath(args.scry)
    groups = {os.path.basename(f): [f] for f in args.files}
    if not groups:
        finder = score_code.ScoreCode(argparse.Namespace(work=args.work, scry=scry, cover=None, json=False, only="", misses=None, quick=False,
                                                         match=args.match, seeds=0, jobs=1))
        for name, what in score_code.GROUPS.items():
            try:
                groups[name] = [f for f in finder.files_of(*what) if finder.wanted(f)]
            except FetchError as e:
                print("left out: %s: %s" % (name, e))
    total = Counts()
    with open(args.misses or os.devnull, "w", encoding="utf-8") as misses:
        for name, files in groups.items():
            n = Counts()
            for f in files:
                with tempfile.TemporaryDirectory(prefix="scry-lines-") as work:
                    n.add(measure(scry, f, work, misses))
            if n.funcs:
                show(name, n)
            total.add(n)
    if not total.insns:
        return 4
    show("all", total)
    return int(total.mapped != total.insns)


if __name__ == "__main__":
    sys.exit(main())
