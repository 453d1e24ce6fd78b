#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what recording system calls costs, as ratios of one run, with their bars (docs/measuring.md).

    bench_trace.py --encoder PATH --switch PATH [--rounds N] [--events N] [--json]

Encoder: the table scry reads arguments by, against a switch for each argument that writes the same bytes. Added cost: CPU of the
calling thread with programs attached less that without, over the same with a program that does nothing. Least of the rounds. Loss: calls
of one core, a million a second and as fast as it makes them. Needs root; exit 0 whatever the figures are."""
import argparse
import json
import statistics
import subprocess
import sys

CALLS = ("execve", "init_module", "process_vm_writev", "ptrace", "arch_prctl", "chdir")


def run(a, *words):
    done = subprocess.run([a.encoder, a.switch, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"bench_trace: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def columns(text):
    """Lines of "name value name value" as lists by name."""
    out = {}
    for line in text.splitlines():
        words = line.split()
        for name, value in zip(words[::2], words[1::2]):
            out.setdefault(name, []).append(float(value))
    return out


def row(name, figure, bar, note):
    return {"row": name, "figure": figure, "bar": bar, "meets": None if bar is None else figure <= bar, "note": note}


def encoder(a):
    run(a, "same")
    size = {w[0]: list(map(int, w[1:])) for w in (line.split() for line in run(a, "sizes").splitlines())}
    table, switch = size["table"], size["switch"]
    for i, (name, bar) in enumerate((("object file", None), ("xlated", 0.25), ("jited", 0.25), ("memlock", None))):
        yield row(f"encoder: {name}", table[i] / switch[i], bar, f"table {table[i]:,} bytes, switch {switch[i]:,}")
    yield row("encoder: xlated of the main program", table[1], 4096, "bytes")
    ns = columns(run(a, "encode", a.rounds))
    least = {k: min(v) for k, v in ns.items()}
    sums = [sum(least[f"{kind}/{c}"] for c in CALLS) / len(CALLS) for kind in ("table", "switch")]
    yield row("encoder: ns per 1,000 events", sums[0] / sums[1], 1.0, f"table {sums[0]:,.0f}, switch {sums[1]:,.0f}; least of {a.rounds} rounds")
    for c in CALLS:
        t, s = least[f"table/{c}"], least[f"switch/{c}"]
        yield row(f"encoder: {c}", t / s, None, f"table {t:,.0f} ns per 1,000, switch {s:,.0f}; medians {statistics.median(ns['table/' + c]):,.0f}, "
                  f"{statistics.median(ns['switch/' + c]):,.0f}")


def floor(a):
    ns = {k: min(v) for k, v in columns(run(a, "floor", a.rounds)).items()}
    bars = {"scalar": {"plain": 2.7, "stack": 4.4}, "mix": {"plain": 3.4, "stack": 5.2}}
    for kind, name in (("scalar", "numbers alone"), ("mix", "five calls")):
        none = ns[f"{kind}/none"]
        empty = ns[f"{kind}/empty"] - none
        for what, text, bar in (("plain", "without stack", bars[kind]["plain"]), ("stack", "with ip, sp, 256 bytes", bars[kind]["stack"]),
                                ("by_id", "refused by call", 1.05), ("by_thread", "refused by thread", 1.4)):
            added = ns[f"{kind}/{what}"] - none
            yield row(f"added: {name}, {text}", added / empty, bar, f"{added:.0f} ns over {none:.0f}, empty program {empty:.0f}")


def loss(a):
    for ring, pace, bar in ((16 << 20, 1000000, 0), (16 << 20, 0, None), (1 << 20, 0, None), (64 << 10, 0, None)):
        rate, seen, received, lost = map(int, run(a, "loss", a.events, ring, pace).split())
        exact = "seen = received + lost" if seen == received + lost else f"{seen} seen, {received} + {lost}: NOT EXACT"
        yield row(f"lost of {a.events:,}, ring of {ring >> 10:,} KB{', paced' if pace else ''}", lost, bar, f"{rate:,} events/s on one core; {exact}")


PROGRAMS = (["ls", "-lR", "/usr/share/doc"], ["bash", "-c", "for i in 1 2 3 4 5; do cat /etc/passwd; done"], ["python3", "-c", "import json, os"],
            ["gcc", "-x", "c", "-c", "/dev/null", "-o", "/dev/null"], ["perl", "-e", "open(F, '</etc/passwd') for 1 .. 1000"], ["make", "-v"])


def sites(a):
    """Share of calls of some programs whose caller outside of the C library is known."""
    for stack in (256, 512, 2048):
        every, found, ns = [], [], []
        for cmd in PROGRAMS:
            n, k, t = map(int, run(a, "sites", stack, *cmd).split())
            every.append(n)
            found.append(k)
            ns.append(n * t)
        share = 100 * sum(found) / max(sum(every), 1)
        low, name = min((100 * k / max(n, 1), c[0]) for n, k, c in zip(every, found, PROGRAMS))
        yield {"row": f"call sites found, {stack} bytes of stack", "figure": share, "bar": 99, "meets": share >= 99,
               "note": f"% of {sum(every):,} calls of {len(PROGRAMS)} programs, least {low:.1f} ({name}); {sum(ns) / max(sum(every), 1):,.0f} ns each"}


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--encoder", required=True)
    p.add_argument("--switch", required=True)
    p.add_argument("--rounds", type=int, default=30)
    p.add_argument("--events", type=int, default=3000000)
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    rows = [*encoder(a), *floor(a), *sites(a), *loss(a)]
    if a.json:
        print(json.dumps(rows))
        return
    for r in rows:
        bar = "" if r["bar"] is None else f"bar {r['bar']:<6g} {'meets ' if r['meets'] else 'MISSES'}"
        print(f"{r['row']:46} {r['figure']:>10.4g}  {bar:18}  {r['note']}")


main()
