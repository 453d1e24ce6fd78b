#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how good the C of functions is: on Debian's stripped coreutils, bash, libsqlite3, liblua5.4, libz and libcrypto.

    score_code.py --scry PATH [--cover PATH] [--work DIR] [--only ROW,...] [--match REGEX] [--seeds N] [--every N] [--tcc] [--quick]
                  [--json] [--misses FILE]

Rows: give (functions that give C), level (how good), compile (gcc-12 and clang-14, -O0 and -O2, warnings are errors), lifted (instructions
lifted by hand), verify (each function beside its C, on the same states). docs/measuring.md says what each counts.
Packages that are not installed are fetched. --every N: verify looks at every Nth function of a package, in the order of files and addresses;
--tcc: by `verify --quick`, where gcc has the last word on what differs. --quick: five programs of coreutils and libz, -O0. Exit 0 whatever the
figures are; 2 usage; 4 when nothing could be measured.
"""

import argparse
import bisect
import concurrent.futures
import json
import os
import re
import shutil
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fetch import Fetcher, FetchError  # noqa: E402

LIBS = "usr/lib/x86_64-linux-gnu"
# Group: (package, files of it as regular expressions).
GROUPS = {
    "coreutils": ("coreutils", r"(usr/)?(bin|sbin)/[^/]+"),
    "bash": ("bash", r"(usr/)?bin/bash"),
    "libsqlite3": ("libsqlite3-0", LIBS + r"/libsqlite3\.so\.[\d.]+"),
    "liblua5.4": ("liblua5.4-0", LIBS + r"/liblua5\.4\.so\.[\d.]+"),
    "libz": ("zlib1g", r"(usr/)?lib/x86_64-linux-gnu/libz\.so\.[\d.]+"),
    "libcrypto": ("libssl3", LIBS + r"/libcrypto\.so\.3"),
}
QUICK = re.compile(r"/(ls|sort|true|cut|expr|libz\.so\S*)$")
ROWS = ("give", "level", "compile", "lifted", "verify")
COMPILERS = (("gcc-12", "-O0"), ("gcc-12", "-O2"), ("clang-14", "-O0"), ("clang-14", "-O2"))
FLAGS = ["-std=gnu11", "-Wall", "-Wextra", "-Wno-unused", "-Werror", "-I."]
# What a function begins with, whatever it takes and gives: a line at the margin, and a brace on the next.
FUNC_LINE = re.compile(r"^\w[\w *]*?\b(\w+)\([^;]*\)$")
ERROR_LINE = re.compile(r"^([^:\s]+):(\d+):(?:\d+:)? (?:fatal )?error: ")
LEVELS = ("L0", "L1", "L2", "L3", "L4")


def percent(n, of):
    """Never rounded up to a hundred."""
    return "-" if not of else "100 %" if n == of else f"{int(1e4 * n / of) / 100:.2f} %"


class Group:
    """Counts of one package."""

    def __init__(self, name):
        self.name = name
        self.files = self.seen = self.unset = 0
        self.funcs = self.given = self.crashes = 0
        self.compiled = {c: [0, 0] for c in COMPILERS}
        self.others_bad = {c: 0 for c in COMPILERS}  # files beside those of functions that do not compile
        self.levels = {}
        self.insns = self.generic = 0
        self.status = {}
        self.coverage = []
        self.edges = []
        self.differs = []


class ScoreCode:
    def __init__(self, args):
        self.args = args
        args.work = os.path.abspath(args.work)
        self.work = os.path.join(args.work, "code")
        os.makedirs(self.work, exist_ok=True)
        self.store = os.path.join(self.work, "store")
        shutil.rmtree(self.store, ignore_errors=True)
        os.makedirs(self.store, 0o700)
        self.env = dict(os.environ, SCRY_STORE=self.store, NO_COLOR="1", LC_ALL="C")
        self.scry = os.path.abspath(args.scry)
        self.cover = os.path.abspath(args.cover or os.path.join(os.path.dirname(self.scry), "../../tests/score/lift_cover"))
        self.out = sys.stderr if args.json else sys.stdout
        self.only = args.only.split(",") if args.only else list(ROWS)
        self.misses = open(args.misses, "w", encoding="utf-8") if args.misses else None
        self.groups = []
        self.doc = {}
        self.ok = self.judged = 0
        self.compilers = [c for c in COMPILERS if shutil.which(c[0]) and (c[1] == "-O0" or not args.quick)]

    def say(self, text=""):
        print(text, file=self.out, flush=True)

    def miss(self, *fields):
        if self.misses:
            print(*fields, sep="\t", file=self.misses, flush=True)

    # --- the files ---------------------------------------------------------------------------------------------
    def files_of(self, package, pattern):
        """The package's files, as installed, else from its .deb; each file once."""
        p = subprocess.run(["dpkg-query", "-L", package], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                           check=False)
        root, names = "/", [n.lstrip("/") for n in p.stdout.split("\n")]
        if p.returncode:
            root = Fetcher(self.args.work).binary(package)
            names = [os.path.relpath(os.path.join(d, f), root) for d, _, files in os.walk(root) for f in files]
        found = {}
        for name in sorted(names):
            path = os.path.realpath(os.path.join(root, name))
            if re.fullmatch(pattern, name) and os.path.isfile(path):
                with open(path, "rb") as f:
                    if f.read(4) == b"\x7fELF":
                        found[path] = True
        return list(found)

    def wanted(self, path):
        return (not self.args.quick or QUICK.search(path)) and (not self.args.match or re.search(self.args.match, path))

    # --- one file ----------------------------------------------------------------------------------------------
    def json_of(self, *cmd, timeout=None):
        """(document or None, how it ended)"""
        try:
            p = subprocess.run([self.scry, *cmd, "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=self.env, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            return None, "hangs"
        try:
            return json.loads(p.stdout), "" if p.returncode >= 0 else f"signal {-p.returncode}"
        except ValueError:
            why = p.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
            return None, f"signal {-p.returncode}" if p.returncode < 0 else f"exit {p.returncode}: {why[:150]}"

    def give(self, g, path):
        folder = os.path.join(self.work, "c", os.path.basename(path))
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        doc, why = self.json_of("decompile", path, "--all", "-o", folder, timeout=600)
        if not doc:
            g.crashes += 1
            self.say(f"  {path}: decompile: {why}")
            self.miss("give", path, why)
            return None, 0
        row = doc["items"][0] if "items" in doc else doc
        g.funcs += row["functions"] + row["failed"]
        g.given += row["functions"]
        for level, n in row["levels"].items():
            g.levels[level] = g.levels.get(level, 0) + n
        if row["failed"]:
            self.miss("give", path, row["failed"])
        return folder, row["functions"]

    @staticmethod
    def functions_of(path):
        """(line, name) of each function of a file."""
        with open(path, encoding="utf-8") as f:
            lines = f.read().split("\n")
        found = []
        for i, line in enumerate(lines[:-1]):
            m = FUNC_LINE.match(line)
            if m and lines[i + 1] == "{":
                found.append((i + 1, m.group(1)))
        return found

    def compile_one(self, job):
        folder, name, funcs, (cc, level) = job
        p = subprocess.run([cc, level, *FLAGS, "-c", name, "-o", "/dev/null"], cwd=folder, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=dict(self.env, TMPDIR=folder), text=True, errors="replace",
                           check=False)
        bad, at = set(), [line for line, _ in funcs]
        errors = [x for x in p.stderr.split("\n") if "error" in x] if p.returncode else []
        for line in errors:
            m = ERROR_LINE.match(line)
            k = bisect.bisect_right(at, int(m.group(2))) - 1 if m and os.path.basename(m.group(1)) == name else -1
            # An error outside of any function is one of all of them.
            bad |= {funcs[k][1]} if k >= 0 else {n for _, n in funcs} if m else set()
        if p.returncode and not bad:
            bad = {n for _, n in funcs}
        for line in errors[:3]:
            self.miss("compile", folder, name, cc, level, line)
        return (cc, level), name, len(bad), p.returncode

    def compile(self, g, folder, given):
        """Each file of C as it was written, by each compiler."""
        jobs, cnt = [], 0
        for name in sorted(f for f in os.listdir(folder) if f.endswith(".c")):
            funcs = self.functions_of(os.path.join(folder, name))
            cnt += len(funcs) if name.startswith("code_") else 0
            jobs += [(folder, name, funcs, c) for c in self.compilers]
        # What is not found here would count as compiled. A function of the lowest level may be two, itself and its stub.
        if cnt < given:
            sys.exit(f"score_code.py: {folder}: {cnt} functions found in its files, {given} said to be there")
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            for compiler, name, bad, code in pool.map(self.compile_one, jobs):
                if name.startswith("code_"):
                    g.compiled[compiler][0] -= bad
                elif code:
                    g.others_bad[compiler] += 1
        for c in self.compilers:
            g.compiled[c][0] += cnt
            g.compiled[c][1] += cnt

    def lifted(self, g, path):
        p = subprocess.run([self.cover, path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
        m = re.search(r"^all .*?(\d+) instructions\s+(\d+) generic\s+(\d+) bad", p.stdout, re.M)
        if not m:
            self.say(f"  {path}: lift_cover: exit {p.returncode}")
            return
        g.insns += int(m.group(1))
        g.generic += int(m.group(2)) + int(m.group(3))

    def sampled(self, g, path):
        """What `verify` is asked for: all, or addresses."""
        if self.args.every == 1:
            return ["--all"]
        doc, _ = self.json_of("functions", path, "--limit", "1000000")
        addrs = [f["addr"] for f in (doc or {}).get("items", [])]
        first = -g.seen % self.args.every
        g.seen += len(addrs)
        return addrs[first :: self.args.every]

    def verify(self, g, path):
        which = self.sampled(g, path)
        if not which:
            return
        doc, why = self.json_of("verify", path, *which, "--seeds", str(self.args.seeds), "--limit", "1000000",
                                "--yes-run-target", *(["--quick"] if self.args.tcc else []), timeout=7200)
        if not doc or "items" not in doc:
            g.crashes += 1
            self.say(f"  {path}: verify: {why or 'no answer'}")
            self.miss("verify", path, why)
            return
        if len(doc["items"]) != doc["total"]:
            self.say(f"  {path}: verify: {len(doc['items'])} of {doc['total']} functions only")
        for i in doc["items"]:
            g.status[i["status"]] = g.status.get(i["status"], 0) + 1
            if i["inputs"] and i["status"] in ("equal", "differs"):
                g.coverage.append(i["blocks_hit"] / i["blocks"] if i["blocks"] else 1.0)
                if i["edges"]:
                    g.edges.append(i["edges_hit"] / i["edges"])
            if i["status"] == "differs":
                g.differs.append(f"{os.path.basename(path)} {i['func']} {i['addr']}: {i['why']}"
                                 f" ({i['counterexample']})")
            g.unset += i["status"] == "equal" and "nobody set" in i["why"]
            if i["status"] != "equal":
                self.miss(i["status"], path, i["func"], i["addr"], i["why"])

    def measure(self, name):
        g = Group(name)
        try:
            files = [f for f in self.files_of(*GROUPS[name]) if self.wanted(f)]
        except FetchError as e:
            self.say(f"  left out: {name}: {e}")
            return
        for path in files:
            g.files += 1
            folder, given = self.give(g, path) if {"give", "level", "compile"} & set(self.only) else (None, 0)
            if folder and "compile" in self.only:
                self.compile(g, folder, given)
            if folder:
                shutil.rmtree(folder)
            if "lifted" in self.only:
                self.lifted(g, path)
            if "verify" in self.only:
                self.verify(g, path)
        if g.files:
            self.groups.append(g)

    # --- the tables --------------------------------------------------------------------------------------------
    def row(self, label, cells, key, doc):
        self.say(f"  {label:12} " + "  ".join(cells))
        self.doc.setdefault(label, {})[key] = doc

    def bar(self, is_ok):
        self.judged += 1
        self.ok += bool(is_ok)
        return "ok" if is_ok else "below"

    def table(self, title, cells_of, judge):
        self.say(f"\n{title}")
        for g in self.groups:
            self.row(g.name, *cells_of(g))
        t = self.total()
        cells, k, doc = cells_of(t)
        self.row("all", cells + [self.bar(judge(doc))], k, doc)

    def total(self):
        t = Group("all")
        for g in self.groups:
            t.files += g.files
            t.funcs, t.given, t.crashes = t.funcs + g.funcs, t.given + g.given, t.crashes + g.crashes
            t.insns, t.generic = t.insns + g.insns, t.generic + g.generic
            for k, v in g.levels.items():
                t.levels[k] = t.levels.get(k, 0) + v
            for k, v in g.others_bad.items():
                t.others_bad[k] += v
            t.coverage += g.coverage
            t.edges += g.edges
            t.unset += g.unset
            t.differs += g.differs
            for k, v in g.status.items():
                t.status[k] = t.status.get(k, 0) + v
            for c, (good, of) in g.compiled.items():
                t.compiled[c][0] += good
                t.compiled[c][1] += of
        return t

    def print_all(self):
        if "give" in self.only or "compile" in self.only:
            self.table("Functions that give C (bar 100 %, no crash, no hang)",
                       lambda g: ([f"{percent(g.given, g.funcs):>9} {f'{g.given} / {g.funcs}':>17}",
                                   f"{g.crashes} crashes or hangs, {g.files} files"], "give",
                                  {"n": g.given, "of": g.funcs, "crashes": g.crashes, "files": g.files}),
                       lambda d: d["n"] == d["of"] and not d["crashes"])
        if "level" in self.only:
            def levels(g):
                of, n = sum(g.levels.values()), sum(g.levels.get(k, 0) for k in LEVELS[:3])
                return ([f"{percent(n, of):>9} {f'{n} / {of}':>17}", ", ".join(f"{g.levels.get(k, 0)} {k}" for k in LEVELS)], "level",
                        {"n": n, "of": of, **g.levels})
            self.table("Functions at level L2 or better (bar 90 %)", levels, lambda d: d["of"] and d["n"] >= 0.9 * d["of"])
        for c in self.compilers if "compile" in self.only else ():
            self.table(f"Of them, compile unedited with {c[0]} {c[1]} (bar 100 %)",
                       lambda g, c=c: ([f"{percent(*g.compiled[c]):>9} {'{} / {}'.format(*g.compiled[c]):>17}",
                                        f"{g.others_bad[c]} other files that do not"], " ".join(c),
                                       {"n": g.compiled[c][0], "of": g.compiled[c][1], "others": g.others_bad[c]}),
                       lambda d: d["of"] and d["n"] == d["of"] and not d["others"])
        if "lifted" in self.only:
            self.table("Instructions lifted by hand, each counted where it stands (bar 99.5 %)",
                       lambda g: ([f"{percent(g.insns - g.generic, g.insns):>9} {f'{g.insns - g.generic} / {g.insns}':>17}"],
                                  "lifted", {"n": g.insns - g.generic, "of": g.insns}),
                       lambda d: d["n"] >= 0.995 * d["of"])
        if "verify" in self.only:
            self.verify_tables()
        for c in COMPILERS:
            if "compile" in self.only and c not in self.compilers:
                self.say(f"\n  left out: {' '.join(c)}")
        self.say(f"\n{self.ok} of {self.judged} rows at their bar or over it")

    def verify_tables(self):
        def runs(g):
            of, n = sum(g.status.values()), len(g.coverage)
            mean = sum(g.coverage) / n if n else 0.0
            others = ", ".join(f"{v} {k}" for k, v in sorted(g.status.items()) if k not in ("equal", "differs"))
            return ([f"{percent(n, of):>9} {f'{n} / {of}':>17}", f"mean coverage {100 * mean:5.1f} % of blocks", others], "runs",
                    {"n": n, "of": of, "coverage": mean})

        def equal(g):
            n, bad, of = g.status.get("equal", 0), g.status.get("differs", 0), sum(g.status.values())
            edges = statistics.median(g.edges) if g.edges else 0.0
            return ([f"{percent(n, of):>9} {f'{n} / {of}':>17}", f"median coverage {100 * edges:5.1f} % of edges", f"{bad} differ"], "equal",
                    {"n": n, "of": of, "differs": bad, "edges": edges})

        self.table(f"Functions with a clean repeatable run, {self.args.seeds} states each, and the blocks those reach "
                   "(bars 75 % and 55 %)", runs, lambda d: d["n"] >= 0.75 * d["of"] and d["coverage"] >= 0.55)
        self.table("Equal, of all functions (bars 70 %, median coverage 60 %, none that differs)", equal,
                   lambda d: d["n"] >= 0.7 * d["of"] and d["edges"] >= 0.6 and not d["differs"])
        for line in self.total().differs:
            self.say(f"  differs: {line}")
        if self.total().unset:
            self.say(f"  equal, where stack that nobody set is zero: {self.total().unset} (of these the machine code itself leaves another thing)")

    def all(self):
        bad = set(self.only) - set(ROWS)
        if bad:
            sys.exit(f"score_code.py: no such row: {', '.join(sorted(bad))} (there are {', '.join(ROWS)})")
        self.say("C of functions")
        for name in GROUPS:
            self.measure(name)
        if not self.groups:
            return 4
        self.print_all()
        if self.args.json:
            json.dump(self.doc, sys.stdout, indent=1)
            print()
        return 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--scry", required=True)
    p.add_argument("--cover", help="lift_cover; default: beside the scry binary's build")
    p.add_argument("--work", default="build-score")
    p.add_argument("--only", default="")
    p.add_argument("--match", default="", help="only files whose path matches")
    p.add_argument("--seeds", type=int, default=16, help="states a function at most (16)")
    p.add_argument("--every", type=int, default=1)
    p.add_argument("--tcc", action="store_true")
    p.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="compilers side by side")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--json", action="store_true")
    p.add_argument("--misses", help="write what falls short to this file")
    args = p.parse_args()
    if not os.access(args.scry, os.X_OK):
        sys.exit(f"score_code.py: no program at {args.scry}")
    os.nice(5)
    sys.exit(ScoreCode(args).all())


if __name__ == "__main__":
    main()
