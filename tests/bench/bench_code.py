#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what lifting and printing every function costs, beside the analysis of the same file.

    bench_code.py --scry PATH [--file ELF] [--rounds N] [--json]

Both are whole processes kept to one processor, in turn (A B A B ...); figures are CPU time (user + system), the median
is judged and the least and the most are beside it.

  decompile  `scry decompile --all -o` of a file that was analysed before, over `scry analyze --force` of it (bar 3)

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

BAR = 3.0


def cpu_of(cmd, env):
    """Seconds of CPU a command took, or exit with its words."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    p = subprocess.run(cmd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if p.returncode:
        sys.exit(f"bench_code.py: {' '.join(cmd[1:4])}: exit {p.returncode}: {p.stderr.decode('utf-8', 'replace')[:200]}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, p.stdout


def span(v):
    return f"{statistics.median(v):.3f} ({min(v):.3f}-{max(v):.3f})"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--scry", required=True)
    p.add_argument("--file", default="/bin/bash")
    p.add_argument("--rounds", type=int, default=7)
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
    finally:
        shutil.rmtree(work, ignore_errors=True)
    doc = json.loads(out)
    row = doc["items"][0] if "items" in doc else doc
    ratios = [c / a for c, a in zip(code, analysis)]
    ratio = statistics.median(ratios)
    say = sys.stderr if args.json else sys.stdout
    print(f"decompile  {os.path.basename(args.file)}: {row['functions']:,} functions lifted, printed and written: {span(code)} s; its analysis:"
          f" {span(analysis)} s; ratio {span(ratios)}, bar {BAR:g}: {'ok' if ratio <= BAR else 'over'}", file=say)
    if args.json:
        json.dump({"decompile": {"functions": row["functions"], "code": code, "analysis": analysis, "ratio": ratio, "bar": BAR}},
                  sys.stdout)
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
