#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what laying out a control-flow graph costs beside `dot -Tplain` on the same graph, as ratios of one run.

    bench_graph.py --scry PATH --layout PATH [--file ELF] [--json]

Graphs: generated functions of 424, 2,000, 8,000 and 32,000 blocks (seeded; nested conditions, loops, switches, early
exits) and the largest real functions of a program. `dot` gets the same boxes and edges. Both run in turn; a figure is
the median of CPU times: of the layout alone on our side, of the whole process less an empty graph's on dot's, which is
stopped after --dot-seconds of them: the ratio is then at most what is printed. The bar is a fifth for 424 and 2,000
blocks. Exit 0 whatever comes out.
"""

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys

BAR = 0.2
DOT_MAX = 2500


class Graph:
    def __init__(self, name, sizes, edges, entry=0, bar=None):
        self.name, self.sizes, self.edges, self.entry, self.bar = name, sizes, edges, entry, bar

    def plain(self):
        out = [f"{len(self.sizes)} {len(self.edges)} {self.entry}"]
        out += [f"{w} {h}" for w, h in self.sizes] + [f"{a} {b}" for a, b in self.edges]
        return "\n".join(out) + "\n"

    def dot(self):
        """A cell is a tenth of an inch wide and two tenths high."""
        out = ["digraph g { node [shape=box fixedsize=true label=\"\"];"]
        out += [f"n{i} [width={w / 10:.2f} height={h / 5:.2f}];" for i, (w, h) in enumerate(self.sizes)]
        out += [f"n{a} -> n{b};" for a, b in self.edges]
        return "\n".join(out) + "\n}\n"


def generated(blocks, seed=1):
    """A function of so many blocks as a compiler lays it out: constructs inside constructs."""
    rnd = random.Random(seed)
    edges = []
    count = 1

    def new():
        nonlocal count
        count += 1
        return count - 1

    exits = [new()]

    def body(at, budget, depth):
        """Grows from block `at`; gives the block it ends in."""
        stop = count + budget
        while count < stop:
            kind = rnd.random()
            room = stop - count
            if depth < 12 and room > 6 and kind < 0.35:
                then, join = new(), new()
                edges.extend([(at, then), (at, join)])
                end = body(then, rnd.randint(1, max(1, room // 3)), depth + 1)
                edges.append((end, join))
                at = join
            elif depth < 12 and room > 8 and kind < 0.6:
                head, after = new(), new()
                edges.extend([(at, head), (head, after)])
                inner = new()
                edges.append((head, inner))
                end = body(inner, rnd.randint(1, max(1, room // 3)), depth + 1)
                edges.append((end, head))
                at = after
            elif room > 12 and kind < 0.66:
                join = new()
                for _ in range(rnd.randint(3, min(24, room - 2))):
                    case = new()
                    edges.extend([(at, case), (case, join)])
                at = join
            elif kind < 0.8:
                after = new()
                edges.extend([(at, after), (at, exits[0])])
                at = after
            else:
                after = new()
                edges.append((at, after))
                at = after
        return at

    edges.append((body(0, blocks - 2, 0), exits[0]))
    sizes = [(rnd.randint(20, 60), 2 + min(1 + int(rnd.expovariate(0.18)), 60)) for _ in range(count)]
    return Graph(f"generated, {count} blocks", sizes, edges, bar=BAR if blocks <= 2000 else None)


def real(scry, path, limit=3):
    run = [scry, "functions", path, "--json", "--limit", "100000"]
    items = json.loads(subprocess.run(run, stdout=subprocess.PIPE, check=True).stdout)["items"]
    for f in sorted(items, key=lambda f: -f["blocks"])[:limit]:
        out = subprocess.run([scry, "blocks", path, f["addr"], "--json"], stdout=subprocess.PIPE, check=True).stdout
        doc = json.loads(out)
        blocks = doc["items"] if "items" in doc else doc["blocks"]
        at = {b["id"]: i for i, b in enumerate(blocks)}
        sizes = [(24 + int(b["addr"], 16) % 40, 2 + max(1, (int(b["end"], 16) - int(b["addr"], 16)) // 4)) for b in blocks]
        edges = [(at[b["id"]], at[s["id"]]) for b in blocks for s in b["succ"]]
        entry = next((i for i, b in enumerate(blocks) if b["addr"] == f["addr"]), 0)
        yield Graph(f"{path.rsplit('/', 1)[-1]} {f['name'][:20]}, {len(blocks)} blocks", sizes, edges, entry)


def dot_seconds(text, limit):
    """CPU seconds of dot, and whether it came to its end."""
    def bound():
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(["dot", "-Tplain"], input=text.encode(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          preexec_fn=bound, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.returncode == 0


def measure(tool, g, limit):
    dots, ours, facts, whole = [], [], "", True
    empty = min(dot_seconds("digraph g { a; }", limit)[0] for _ in range(3))
    for _ in range(3):
        if len(g.sizes) <= DOT_MAX and (not dots or (whole and dots[0] < limit / 4)):
            cost, whole = dot_seconds(g.dot(), limit)
            dots.append(max(cost - empty, 1e-6))
        out = subprocess.run([tool, "3"], input=g.plain(), stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")
        ours += [int(n) / 1e9 for n in out[:3]]
        facts = out[3]
    row = {"what": g.name, "edges": len(g.edges), "ms": statistics.median(ours) * 1e3, "cells": facts}
    if dots:
        row["dot_ms"] = statistics.median(dots) * 1e3
        row["ratio"] = row["ms"] / row["dot_ms"]
        row["dot_ended"] = whole
    if g.bar:
        row["bar"], row["ok"] = g.bar, row.get("ratio", 1) <= g.bar
    return row


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--scry", required=True)
    ap.add_argument("--layout", required=True, help="the built bench_graph")
    ap.add_argument("--file", default="/bin/bash")
    ap.add_argument("--dot-seconds", type=int, default=60)
    ap.add_argument("--json", action="store_true")
    args = ap.parse_args()
    graphs = [generated(n) for n in (424, 2000, 8000, 32000)] + list(real(args.scry, args.file))
    rows = []
    for g in graphs:
        row = measure(args.layout, g, args.dot_seconds)
        rows.append(row)
        if args.json:
            continue
        more = "" if row.get("dot_ended", True) else "+"
        beside = f"dot {row['dot_ms']:8.1f}{more or ' '} ms  ratio {row['ratio']:8.5f}" if "ratio" in row else f"{'dot not run':33}"
        verdict = f"bar {row['bar']:g} {'PASS' if row['ok'] else 'FAIL'}" if "bar" in row else ""
        w, h, crossings = row["cells"].split()
        print(f"  {row['what']:38} {row['edges']:6} edges  {row['ms']:8.2f} ms  {beside}  {verdict:13} "
              f"{w} x {h} cells, {crossings} crossings", flush=True)
    if args.json:
        print(json.dumps({"graph": rows}))
    return 0


if __name__ == "__main__":
    sys.setrecursionlimit(10000)
    sys.exit(main())
