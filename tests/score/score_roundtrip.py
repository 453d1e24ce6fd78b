#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how many programs still do what they did with the C of their functions in place of the machine code.

    score_roundtrip.py --scry PATH [--suite torture|csmith|sixty|complaints] [--every N | --seeds N] [--opt -O0,-O2] [--cc gcc-12] [--match REGEX]
                       [--jobs N] [--work DIR] [--json] [--misses FILE] [FILE.c...]

Each program is compiled, run, stripped, decompiled, and run again with every function of its own source replaced: their machine code
is overwritten before main() (tests/data/roundtrip/rt.c), so that nothing of it can run. The same end and the same output count as the same. torture:
the programs of gcc's own suite (package gcc-12-source) below gcc.c-torture/execute that compile and end well alone, which check
themselves; csmith: random programs that print a checksum (package csmith); sixty: sixty functions (tests/data/roundtrip/sixty.c) as gcc and
clang compile them, judged one by one, and so are complaints (tests/data/roundtrip/complaints.c), what people found wrong with decompilers; or the programs that are named. docs/measuring.md says
more. Exit 0 whatever the figures are; 2 usage; 4 when nothing could be measured.
"""

import argparse
import collections
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FUNC_LINE = re.compile(r"^void (\w+_([0-9a-f]+))\(struct scry_x86_64 \*m\)$", re.M)
# What the start files bring is not the program's.
CRT = {"_start", "_init", "_fini", "deregister_tm_clones", "register_tm_clones", "__do_global_dtors_aux", "frame_dummy", "_dl_relocate_static_pie",
       "__libc_csu_init", "__libc_csu_fini"}
NOT_FOLLOWED = ("setjmp", "_setjmp", "__sigsetjmp", "longjmp", "_longjmp", "siglongjmp", "__longjmp_chk", "pthread_create")
LIMIT_S = 20
# A function that gives long doubles leaves them on the stack of the x87, which only its prototype says.
LONG_DOUBLE = re.compile(r"\b((?:_Complex |complex )?long double|long double (?:_Complex|complex)) \*?(?<!\*)(\w+) ?\(")


class Bad(Exception):
    """Why a program did not come through; its text is the reason it is counted under."""


def run(argv, limit=LIMIT_S, **kw):
    try:
        return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit, **kw)
    except subprocess.TimeoutExpired as e:
        raise Bad("timeout") from e


def functions_of(path):
    """(address, length, name) of its own functions, and the ranges of their cold parts."""
    funcs, rest = [], []
    for line in run(["nm", "-S", "--defined-only", path]).stdout.decode(errors="replace").splitlines():
        m = re.match(r"([0-9a-f]+) ([0-9a-f]+) [tTwW] (\S+)$", line)
        if not m or m.group(3) in CRT:
            continue
        at, size, name = int(m.group(1), 16), int(m.group(2), 16), m.group(3)
        if ".cold" in name:
            rest.append((at, size))
        elif size:
            funcs.append((at, size, name))
    return sorted({f[0]: f for f in funcs}.values()), sorted(rest)


def starts_of(path):
    text = run(["nm", "--defined-only", path]).stdout.decode(errors="replace")
    return sorted(int(x, 16) for x in re.findall(r"^([0-9a-f]+) [tTwW] ", text, re.M))


class Program:
    def __init__(self, args, source, opt, extra=()):
        self.args, self.source, self.opt, self.extra = args, source, opt, list(extra)
        self.name = os.path.basename(source)

    def compile(self, root):
        self.exe, self.aux = os.path.join(root, "prog"), os.path.join(root, "aux")
        aux = ["-aux-info", self.aux] if self.args.cc.startswith("gcc") else []
        p = run([self.args.cc, self.opt, "-w", *aux, *self.extra, "-o", self.exe, self.source, "-lm"], cwd=root)
        return p.returncode == 0

    def first(self, root):
        """How the program ends by itself; None when it is none to compare with."""
        try:
            p = run([self.exe], cwd=root)
        except Bad:
            return None
        return p if p.returncode == 0 else None

    def replaced(self, root):
        funcs, rest = functions_of(self.exe)
        if any(s in NOT_FOLLOWED for s in re.findall(r" U (\w+)", run(["nm", self.exe]).stdout.decode(errors="replace"))):
            raise Bad("leaves calls by longjmp, or has threads")
        longs = {}
        if os.path.exists(self.aux):
            with open(self.aux, encoding="utf-8", errors="replace") as f:
                longs = {name: 2 if "omplex" in kind else 1 for kind, name in LONG_DOUBLE.findall(f.read())}
        starts = starts_of(self.exe)
        stripped = self.exe + ".s"
        run(["strip", "-o", stripped, self.exe])
        out = os.path.join(root, "c")
        env = dict(os.environ, SCRY_STORE=os.path.join(root, "store"))
        p = run([self.args.scry, "decompile", stripped, "--all", "--output", out], limit=120, env=env)
        if p.returncode not in (0, 1) or not os.path.isdir(out):
            raise Bad("decompile: " + p.stderr.decode(errors="replace").strip()[:100])
        names, files = {}, [*sorted(glob.glob(out + "/code_*.c")), out + "/state.c"]
        for path in files:
            with open(path, encoding="utf-8") as f:
                names.update({int(at, 16): name for name, at in FUNC_LINE.findall(f.read())})
        missing = [name for at, _, name in funcs if at not in names]
        if missing:
            raise Bad("a function is not found")
        with open(os.path.join(root, "all.c"), "w", encoding="utf-8") as f:
            f.writelines(f'#include "{path}"\n' for path in files)
        with open(os.path.join(root, "funcs.c"), "w", encoding="utf-8") as f:
            f.write("const struct rt_func rt_funcs[] = {\n")
            for at, size, name in funcs:
                after = [s for s in starts if s > at]
                room = after[0] - at if after else 64
                f.write(f"\t{{{at:#x}, {size}, {room}, {longs.get(name.split('.')[0], 0)}, {names[at]}}},\n")
            f.write("};\nconst struct rt_range rt_rest[] = {\n")
            f.writelines(f"\t{{{at:#x}, {size}}},\n" for at, size in rest)
            f.write(f"\t{{0, 0}}\n}};\nconst unsigned rt_func_cnt = {len(funcs)}, rt_rest_cnt = {len(rest)};\n")
        so = os.path.join(root, "rt.so")
        p = run(["gcc", self.args.rebuild, "-std=gnu11", "-w", "-fPIC", "-shared", "-ffp-contract=off", "-fno-stack-protector", "-I" + out,
                 f'-DRT_CODE="{root}/all.c"', f'-DRT_FUNCS="{root}/funcs.c"', "-o", so, os.path.join(ROOT, "tests/data/roundtrip/rt.c")], limit=180)
        if p.returncode:
            raise Bad("its C does not compile")
        return run([stripped], env=dict(os.environ, LD_PRELOAD=so), cwd=root, limit=4 * LIMIT_S)

    def score(self):
        """None: not one to compare; else (name, reason), "" for the same."""
        with tempfile.TemporaryDirectory(dir=self.args.work) as root:
            try:
                if not self.compile(root):
                    return None
                want = self.first(root)
                if want is None:
                    return None
                got = self.replaced(root)
                if got.returncode == 97 and b"roundtrip:" in got.stderr:
                    raise Bad(got.stderr.decode(errors="replace").strip())
                if got.returncode:
                    raise Bad(f"ends by signal {-got.returncode}" if got.returncode < 0 else "another exit status")
                if got.stdout != want.stdout:
                    raise Bad("another output")
                return self.name, ""
            except Bad as e:
                return self.name, str(e)


def by_line(args):
    """Per compiler and level: the functions, or complaints, whose line is the same."""
    source, figures = os.path.join(ROOT, "tests/data/roundtrip", args.suite + ".c"), {}
    for cc in ("gcc-12", "clang-14"):
        for opt in args.opt.split(","):
            if not shutil.which(cc):
                continue
            with tempfile.TemporaryDirectory(dir=args.work) as root:
                prog = Program(argparse.Namespace(**dict(vars(args), cc=cc)), source, opt, ["-fwrapv"])
                if not prog.compile(root):
                    continue
                want, why, got = prog.first(root).stdout.splitlines(), "", set()
                try:
                    end = prog.replaced(root)
                    got = set(end.stdout.splitlines())
                    why = "" if end.returncode == 0 else f"ended with {end.returncode}"
                except Bad as e:
                    why = str(e)
                other = [line.split()[0].decode() for line in want if line not in got]
                figures[f"{cc} {opt}"] = {"functions": len(want), "same": len(want) - len(other), "others": other, "why": why,
                                          "wrong": sum(line.endswith(b" wrong") for line in want)}
    if args.json:
        print(json.dumps(figures))
    else:
        for key, f in figures.items():
            print(f"{args.suite} {key}: the same {f['same']} of {f['functions']}  {f['why']} {' '.join(f['others'])}")
    return 0 if figures else 4


def torture(args):
    tars = glob.glob("/usr/src/gcc-12/gcc-*.tar.xz")
    where = os.path.join(args.work, "torture")
    if not os.path.isdir(where):
        if not tars:
            raise SystemExit("score: gcc's test programs are not here: apt-get install gcc-12-source")
        os.makedirs(where + ".part", exist_ok=True)
        with tarfile.open(tars[0]) as tar:
            for m in tar:
                k = m.name.find("gcc.c-torture/execute/")
                if k >= 0 and m.isfile() and m.name.endswith((".c", ".h")) and "/" not in m.name[k + 22:]:
                    with open(os.path.join(where + ".part", os.path.basename(m.name)), "wb") as f:
                        shutil.copyfileobj(tar.extractfile(m), f)
        os.rename(where + ".part", where)
    sources = sorted(glob.glob(where + "/*.c"))
    for path in sources[::args.every]:
        with open(path, encoding="utf-8", errors="replace") as f:
            text = f.read()
        if re.search(args.match, os.path.basename(path)):
            options = re.findall(r'dg-(?:additional-)?options\s+"([^"]*)"', text)
            yield path, [o for line in options for o in line.split() if not o.startswith("-O")]


def csmith(args):
    if not shutil.which("csmith"):
        raise SystemExit("score: csmith is not here: apt-get install csmith libcsmith-dev")
    include = next((os.path.dirname(p) for p in glob.glob("/usr/include/csmith*/csmith.h") + glob.glob("/usr/include/csmith.h")), None)
    where = os.path.join(args.work, "csmith")
    os.makedirs(where, exist_ok=True)
    for seed in range(args.seeds):
        path = os.path.join(where, f"{seed}.c")
        if not os.path.exists(path):
            p = run(["csmith", "--seed", str(seed), "--no-packed-struct", "--max-funcs", "6"])
            with open(path, "wb") as f:
                f.write(p.stdout)
        if re.search(args.match, os.path.basename(path)):
            yield path, ["-I" + include] if include else []


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--scry", required=True)
    p.add_argument("--suite", choices=("torture", "csmith", "sixty", "complaints"), default="torture")
    p.add_argument("--every", type=int, default=1, help="every Nth program of the suite")
    p.add_argument("--seeds", type=int, default=1000)
    p.add_argument("--opt", default="-O0,-O2")
    p.add_argument("--cc", default="gcc-12")
    p.add_argument("--rebuild", default="-O1", help="how the C is compiled")
    p.add_argument("--match", default="")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--work", default=os.path.join(ROOT, "build-bench", "roundtrip"))
    p.add_argument("--json", action="store_true")
    p.add_argument("--misses")
    p.add_argument("files", nargs="*")
    args = p.parse_args()
    args.scry = os.path.abspath(args.scry)
    args.work = os.path.abspath(args.work)
    os.makedirs(args.work, exist_ok=True)
    if args.suite in ("sixty", "complaints"):
        return by_line(args)
    args.suite = "named" if args.files else args.suite
    sources = [(os.path.abspath(f), []) for f in args.files] if args.files else list(torture(args) if args.suite == "torture" else csmith(args))
    figures, misses = {}, []
    for opt in args.opt.split(","):
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            done = [r for r in pool.map(lambda s: Program(args, s[0], opt, s[1]).score(), sources) if r]
        same = sum(not why for _, why in done)
        reasons = collections.Counter(why for _, why in done if why)
        figures[opt] = {"programs": len(done), "same": same, "reasons": dict(reasons.most_common()), "not_comparable": len(sources) - len(done)}
        misses += [f"{opt} {name}: {why}" for name, why in done if why]
        if not args.json:
            share = f"{int(1e4 * same / len(done)) / 100:.2f} %" if done else "-"
            print(f"{args.suite} {args.cc} {opt}: the same {share}  {same} of {len(done)}; "
                  f"{len(sources) - len(done)} do not compile or end well by themselves")
            for why, n in reasons.most_common():
                print(f"    {n:>5}  {why}")
            sys.stdout.flush()
        if args.misses:
            with open(args.misses, "w", encoding="utf-8") as f:
                f.write("".join(m + "\n" for m in misses))
    if args.json:
        print(json.dumps(figures))
    return 0 if any(f["programs"] for f in figures.values()) else 4


if __name__ == "__main__":
    sys.exit(main())
