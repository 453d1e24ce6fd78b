#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what lifting and printing every function costs, beside the analysis of the same file, and what the quick compiler saves.

    bench_code.py --scry PATH [--file ELF] [--rounds N] [--functions N] [--json]

Both are whole processes kept to one processor, in turn (A B A B ...); figures are CPU time (user + system), the median
is judged and the least and the most are beside it.

  decompile  `scry decompile --all -o` of a file that was analysed before, over `scry analyze --force` of it (bar 8)
  quick      of functions spread over the file: the share that tcc compiles for `scry verify --quick`; tcc over gcc -O1 on the C of
             those; `scry verify --quick` of one of them over the same without it (bar 1), and of all functions together. Runs code
             of the file in the sandbox.

Exit 0 whatever the figure is; docs/measuring.md.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

BAR = 8.0
ONES = 15  # functions that are verified by a process each
INCLUDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../include")
GCC = ["gcc", "-O1", "-std=gnu11", "-w", "-shared", "-fPIC", "-nostdlib", "-fno-stack-protector", "-I", INCLUDE]
TCC = ["tcc", "-w", "-shared", "-nostdlib", "-I", INCLUDE, "-include", "scry_tcc.h"]


def cpu_of(cmd, env, may_differ=False):
    """Seconds of CPU a command took, and its output, or exit with its words."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    p = subprocess.run(cmd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if p.returncode and not (may_differ and p.returncode == 1):
        sys.exit(f"bench_code.py: {' '.join(cmd[1:4])}: exit {p.returncode}: {p.stderr.decode('utf-8', 'replace')[:200]}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, p.stdout


def span(v):
    return f"{statistics.median(v):.3f} ({min(v):.3f}-{max(v):.3f})"


def quick(args, scry, work, env):
    """The row, or why there is none."""
    if not shutil.which("tcc"):
        return "there is no tcc (apt install tcc)"
    _, out = cpu_of([scry, "functions", args.file, "--limit", "1000000", "--json"], env)
    # Stubs of imports, at the front, are no measure.
    addrs = [f["addr"] for f in json.loads(out)["items"] if f["size"] > 32]
    addrs = addrs[:: max(1, len(addrs) // args.functions)][: args.functions]

    def verify(which, *more):
        return cpu_of([scry, "verify", args.file, *which, "--fresh", "--json", "--yes-run-target", *more], env, True)

    all_quick, out = verify(addrs, "--quick", "--limit", "100000")
    items = json.loads(out)["items"]
    all_gcc, _ = verify(addrs, "--limit", "100000")
    taken = [i["addr"] for i in items if i["compiler"] == "tcc"]
    if not taken:
        return "tcc takes none of the functions"
    text = '#include "scry.h"\n'
    for addr in taken:
        text += json.loads(cpu_of([scry, "decompile", args.file, addr, "--json"], env)[1])["code"].replace('#include "scry.h"', "")
    source, to = os.path.join(work, "taken.c"), os.path.join(work, "taken.so")
    with open(source, "w", encoding="utf-8") as f:
        f.write(text)
    compiles, ones = [], []
    for _ in range(args.rounds):
        compiles.append((cpu_of([*TCC, "-o", to, source], env)[0], cpu_of([*GCC, "-o", to, source], env)[0]))
    for addr in taken[:: max(1, len(taken) // ONES)][:ONES]:
        rounds = [(verify([addr], "--quick")[0], verify([addr])[0]) for _ in range(3)]
        ones.append(tuple(min(r[k] for r in rounds) for k in (0, 1)))
    return {"functions": len(items), "taken": len(taken), "compile": [t / g for t, g in compiles], "verify": [t / g for t, g in ones],
            "all": all_quick / all_gcc,
            "ms": {"tcc": 1e3 * min(t for t, _ in compiles) / len(taken), "gcc": 1e3 * min(g for _, g in compiles) / len(taken),
                   "verify_tcc": 1e3 * statistics.median(t for t, _ in ones), "verify_gcc": 1e3 * statistics.median(g for _, g in ones)}}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--scry", required=True)
    p.add_argument("--file", default="/bin/bash")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--functions", type=int, default=200, help="of the row `quick`")
    p.add_argument("--json", action="store_true")
    args = p.parse_args()
    if not os.access(args.scry, os.X_OK):
        sys.exit(f"bench_code.py: no program at {args.scry}")
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    scry, work = os.path.abspath(args.scry), tempfile.mkdtemp(prefix="bench_code.")
    env = dict(os.environ, SCRY_STORE=os.path.join(work, "store"), NO_COLOR="1")
    os.mkdir(env["SCRY_STORE"], 0o700)
    analysis, code = [], []
    try:
        for _ in range(args.rounds):
            analysis.append(cpu_of([scry, "analyze", args.file, "--force"], env)[0])
            seconds, out = cpu_of([scry, "decompile", args.file, "--all", "-o", os.path.join(work, "c"), "--json"], env)
            code.append(seconds)
        fast = quick(args, scry, work, env)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    doc = json.loads(out)
    row = doc["items"][0] if "items" in doc else doc
    ratios = [c / a for c, a in zip(code, analysis)]
    ratio = statistics.median(ratios)
    say = sys.stderr if args.json else sys.stdout
    print(f"decompile  {os.path.basename(args.file)}: {row['functions']:,} functions lifted, printed and written: {span(code)} s; its analysis:"
          f" {span(analysis)} s; ratio {span(ratios)}, bar {BAR:g}: {'ok' if ratio <= BAR else 'over'}", file=say)
    if isinstance(fast, str):
        print(f"quick      left out: {fast}", file=say)
    else:
        ms, one = fast["ms"], statistics.median(fast["verify"])
        print(f"quick      {fast['taken']} of {fast['functions']} functions by tcc ({fast['taken'] / fast['functions']:.1%}); their C: "
              f"{ms['tcc']:.2f} ms a function, gcc -O1 {ms['gcc']:.2f}, ratio {span(fast['compile'])}; verify of one: "
              f"{ms['verify_tcc']:.0f} ms, by gcc {ms['verify_gcc']:.0f}, ratio {span(fast['verify'])}, bar 1: {'ok' if one <= 1 else 'over'}; "
              f"of all: ratio {fast['all']:.2f}", file=say)
    if args.json:
        json.dump({"decompile": {"functions": row["functions"], "code": code, "analysis": analysis, "ratio": ratio, "bar": BAR},
                   "quick": fast}, sys.stdout)
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
