#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what probes cost, as ratios of one run, with their bars (docs/measuring.md).

    bench_probe.py --probe PATH [--bpftrace PATH] [--calls N] [--rounds N] [--json]

Hit: CPU of the calling thread for a call that is probed on entry and return with two arguments recorded, over the same with programs that only
count: bpftrace's where there is one, and the least there is, by bare calls; least of the rounds. Attach: time for 1,000 functions of eight kinds, over bare
calls that count with the same links; medians of the rounds. Needs root; exit 0 whatever the figures are."""
import argparse
import json
import shutil
import subprocess
import sys


def run(a, *words):
    done = subprocess.run([a.probe, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"bench_probe: {done.stderr.strip() or done.stdout.strip()}")
    return json.loads(done.stdout)


def row(name, figure, bar, note):
    return {"row": name, "figure": figure, "bar": bar, "meets": None if bar is None else figure <= bar, "note": note}


def by_bpftrace(a):
    """ns a call while bpftrace counts entries and returns; None when it cannot."""
    best = None
    for _ in range(a.rounds):
        script = f"uprobe:{a.probe}:bench_target {{ @a = count(); }} uretprobe:{a.probe}:bench_target {{ @b = count(); }}"
        done = subprocess.run([a.bpftrace, "-e", script, "-c", f"{a.probe} loop {a.calls}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode or not found or f"@a: {a.calls + 1000}" not in done.stdout:
            return None
        best = min(best or 1e18, found[0]["ns"])
    return best


def rows(a):
    hit = run(a, "hit", a.calls, a.rounds)
    note = f"{hit['records']:,.0f} ns, bare {hit['bare']:,.0f}, without probe {hit['without']:,.1f}"
    yield row("hit: records over bare counts", hit["records"] / hit["bare"], 1.3, note)
    yield row("hit: counts and latencies over bare counts", hit["counts"] / hit["bare"], None, f"{hit['counts']:,.0f} ns")
    other = by_bpftrace(a) if a.bpftrace else None
    if other:
        yield row("hit: records over bpftrace's counts", hit["records"] / other, 1.3, f"bpftrace {other:,.0f} ns")
    attach = run(a, "attach", 1000, 3 * a.rounds)
    yield row("attach: 1,000 functions over bare calls", attach["ours_us"] / attach["bare_us"], 1.5,
              f"{attach['ours_us']:,} us, bare {attach['bare_us']:,}")
    yield row("attach: the same right after another", attach["warm_ours_us"] / attach["warm_bare_us"], None,
              f"{attach['warm_ours_us']:,} us, bare {attach['warm_bare_us']:,}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--probe", required=True)
    p.add_argument("--bpftrace", default=shutil.which("bpftrace"))
    p.add_argument("--calls", type=int, default=20000)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    for r in rows(a):
        if a.json:
            print(json.dumps(r), flush=True)
            continue
        bar = "" if r["bar"] is None else f"  bar {r['bar']:g}  {'meets' if r['meets'] else 'MISSES'}"
        print(f"{r['row']:45} {r['figure']:8.3f}{bar}  ({r['note']})", flush=True)


main()
