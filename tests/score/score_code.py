#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how good the C of functions is: on Debian's stripped coreutils, bash, libsqlite3, liblua5.4 and libz.

    score_code.py --scry PATH [--cover PATH] [--work DIR] [--only ROW,...] [--match REGEX] [--seeds N] [--quick]
                  [--json] [--misses FILE]

Rows: give (functions that give C), compile (gcc-12 and clang-14, -O0 and -O2, warnings are errors), lifted (instructions
lifted by hand), verify (each function beside its C, on the same states). docs/measuring.md says what each counts.
Packages that are not installed are fetched. --quick: five programs of coreutils and libz, -O0. Exit 0 whatever the
figures are; 2 usage; 4 when nothing could be measured.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
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
}
QUICK = re.compile(r"/(ls|sort|true|cut|expr|libz\.so\S*)$")
ROWS = ("give", "compile", "lifted", "verify")
COMPILERS = (("gcc-12", "-O0"), ("gcc-12", "-O2"), ("clang-14", "-O0"), ("clang-14", "-O2"))
FLAGS = ["-std=gnu11", "-Wall", "-Wextra", "-Wno-unused", "-Werror", "-I."]
FUNC_LINE = re.compile(r"^void (\w+)\(struct scry_x86_64 \*m\)$", re.M)
# A function of the lowest level begins with the line of its registers. What programs that share code differ in does not matter to a compiler.
FUNC_START = re.compile(r"^(?:#define SCRY_REGS\(r\).*\n)?void \w+\(struct scry_x86_64 \*m\)$", re.M)
UNIMPORTANT = ((re.compile(r"/\*.*?\*/"), ""), (re.compile(r"m->image \+ 0x[0-9a-f]+"), "m->image + 0"), (FUNC_LINE, "void f(m)"))
FILE_FUNCS = 64  # functions compiled as one file
BAD_FUNC = re.compile(r"[Ii]n function ['\u2018](\w+)['\u2019]")


def percent(n, of):
    """Never rounded up to a hundred."""
    return "-" if not of else "100 %" if n == of else f"{int(1e4 * n / of) / 100:.2f} %"


class Group:
    """Counts of one package."""

    def __init__(self, name):
        self.name = name
        self.files = 0
        self.funcs = self.given = self.crashes = 0
        self.compiled = {c: [0, 0] for c in COMPILERS}
        self.distinct = 0  # function texts compiled, each once
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
        self.results = {}  # of a function's text: the compilers that refuse it
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
            return None
        row = doc["items"][0] if "items" in doc else doc
        g.funcs += row["functions"] + row["failed"]
        g.given += row["functions"]
        if row["failed"]:
            self.miss("give", path, row["failed"])
        return folder

    def functions_of(self, folder):
        """(key, name, text) of each function of a folder; functions with one key compile or do not."""
        for name in sorted(f for f in os.listdir(folder) if re.fullmatch(r"code_\d+\.c", f)):
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                text = f.read()
            starts = [m.start() for m in FUNC_START.finditer(text)] + [len(text)]
            for at, end in zip(starts, starts[1:]):
                key = text[at:end]
                for pattern, by in UNIMPORTANT:
                    key = pattern.sub(by, key)
                found = FUNC_LINE.findall(text[at:end])
                if len(found) != 1:
                    sys.exit(f"score_code.py: {folder}/{name}: a function without a name, or with two")
                yield hashlib.sha256(key.encode()).digest(), found[0], text[at:end]

    def compile_one(self, job):
        folder, name, funcs, (cc, level) = job
        p = subprocess.run([cc, level, *FLAGS, "-c", name, "-o", "/dev/null"], cwd=folder, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=self.env, text=True, errors="replace",
                           check=False)
        # clang names no function: then all of the file count as bad.
        bad = set() if not p.returncode else (set(BAD_FUNC.findall(p.stderr)) & set(funcs) or set(funcs))
        for line in [x for x in p.stderr.split("\n") if "error" in x][:3] if bad else ():
            self.miss("compile", folder, name, cc, level, line)
        return (cc, level), [funcs[f] for f in bad]

    def compile(self, g, folder):
        """Functions that were not compiled yet are, in files of their own; the results of all are counted."""
        keys, new = [], {}
        for key, func, text in self.functions_of(folder):
            keys.append(key)
            if key not in self.results:
                self.results[key] = set()
                new[key] = func, text
        g.distinct += len(new)
        jobs, items = [], list(new.items())
        for at in range(0, len(items), FILE_FUNCS):
            part, name = items[at:at + FILE_FUNCS], f"new_{at // FILE_FUNCS:05}.c"
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write('#include "scry.h"\n\n' + "\n".join(text for _, (_, text) in part))
            jobs += [(folder, name, {func: key for key, (func, _) in part}, c) for c in self.compilers]
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            for compiler, bad in pool.map(self.compile_one, jobs):
                for key in bad:
                    self.results[key].add(compiler)
        for c in self.compilers:
            g.compiled[c][0] += sum(c not in self.results[k] for k in keys)
            g.compiled[c][1] += len(keys)

    def lifted(self, g, path):
        p = subprocess.run([self.cover, path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
        m = re.search(r"^all .*?(\d+) instructions\s+(\d+) generic\s+(\d+) bad", p.stdout, re.M)
        if not m:
            self.say(f"  {path}: lift_cover: exit {p.returncode}")
            return
        g.insns += int(m.group(1))
        g.generic += int(m.group(2)) + int(m.group(3))

    def verify(self, g, path):
        doc, why = self.json_of("verify", path, "--all", "--seeds", str(self.args.seeds), "--limit", "1000000",
                                "--yes-run-target", timeout=7200)
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
            folder = self.give(g, path) if "give" in self.only or "compile" in self.only else None
            if folder and "compile" in self.only:
                self.compile(g, folder)
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
            t.distinct += g.distinct
            t.coverage += g.coverage
            t.edges += g.edges
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
        for c in self.compilers if "compile" in self.only else ():
            self.table(f"Of them, compile unedited with {c[0]} {c[1]} (bar 100 %); functions that differ only in names, comments and "
                       "addresses are compiled once",
                       lambda g, c=c: ([f"{percent(*g.compiled[c]):>9} {'{} / {}'.format(*g.compiled[c]):>17}",
                                        f"{g.distinct} compiled"], " ".join(c),
                                       {"n": g.compiled[c][0], "of": g.compiled[c][1], "distinct": g.distinct}),
                       lambda d: d["n"] == d["of"])
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
            edges = sum(g.edges) / len(g.edges) if g.edges else 0.0
            return ([f"{percent(n, of):>9} {f'{n} / {of}':>17}", f"mean coverage {100 * mean:5.1f} % of blocks, {100 * edges:5.1f} % of edges",
                     others], "runs", {"n": n, "of": of, "coverage": mean, "edges": edges})

        def equal(g):
            n, bad = g.status.get("equal", 0), g.status.get("differs", 0)
            return ([f"{percent(n, n + bad):>9} {f'{n} / {n + bad}':>17}", f"{bad} differ"], "equal", {"n": n, "of": n + bad})

        self.table(f"Functions with a clean repeatable run, {self.args.seeds} states each, and the blocks those reach "
                   "(bars 75 % and 55 %)", runs, lambda d: d["n"] >= 0.75 * d["of"] and d["coverage"] >= 0.55)
        self.table("Of those, equal (bar 99 %)", equal, lambda d: d["n"] >= 0.99 * d["of"])
        for line in self.total().differs:
            self.say(f"  differs: {line}")

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
