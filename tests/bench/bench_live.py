#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what a call of a small function of a target costs, against the bar of docs/measuring.md, and what relocating a target
at once costs.

    bench_live.py --live PATH [--calls N] [--json]

Each call runs in turn with a bare fork + exit + wait of the same process; the figure is the median of five runs' ratios of medians,
with the least and the most beside it. Of relocating there is no bar: a zygote and a call with all relocations applied, and with none, in
turn; doing them at first touch could at best be as cheap as none."""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

BAR = 3
LIBRARIES = ("/usr/bin/git", "/usr/bin/python3", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1")


def relocating(live):
    """A row for each of the programs that are here."""
    for path in LIBRARIES:
        if not os.path.exists(path):
            continue
        head, *lines = subprocess.run([live, "relocate", path, "15"], stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")
        rounds = [list(map(int, line.split())) for line in lines if line.strip()]
        opened, call, opened_none, call_none = (statistics.median(r[i] for r in rounds) / 1000 for i in range(4))
        relocs, pages = head.split()
        yield {"row": f"relocating {os.path.basename(path)}", "figure": opened / opened_none, "bar": None, "meets": None,
               "note": f"{relocs} relocations on {pages} pages; zygote {opened:.0f} us, with none {opened_none:.0f} us; call {call:.0f} us, with none "
                       f"{call_none:.0f} us; 15 rounds"}


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--live", required=True)
    p.add_argument("--calls", type=int, default=2000)
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    ratios, calls, forks = [], [], []
    with tempfile.TemporaryDirectory() as work:
        lib = os.path.join(work, "small.so")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", lib], input="long add(long a, long b) { return a + b; }",
                       text=True, check=True)
        for _ in range(5):
            out = subprocess.run([a.live, "call", lib, "add", str(a.calls)], stdout=subprocess.PIPE, text=True, check=True).stdout
            pairs = [tuple(map(int, line.split())) for line in out.splitlines()]
            calls.append(statistics.median(c for c, _ in pairs) / 1000)
            forks.append(statistics.median(f for _, f in pairs) / 1000)
            ratios.append(calls[-1] / forks[-1])
    figure = statistics.median(ratios)
    note = (f"ratio {min(ratios):.3g}-{max(ratios):.3g}; call {statistics.median(calls):.0f} us, fork + exit + wait "
            f"{statistics.median(forks):.0f} us; 5 runs of {a.calls}")
    rows = list(relocating(a.live))
    if a.json:
        print(json.dumps([{"row": "call", "figure": figure, "bar": BAR, "meets": figure <= BAR, "note": note}] + rows))
        return
    print(f"{'call over fork + exit + wait':34} {figure:>10.3g}  bar {BAR:<8g} {'meets' if figure <= BAR else 'MISSES'}  {note}")
    for r in rows:
        print(f"{r['row']:34} {r['figure']:>10.3g}  {r['note']}")


main()
