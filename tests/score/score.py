#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how right scry is, against truth from outside: compilers, symbols, unwind tables and objdump.

    score.py --scry PATH|--direct PATH [--dump PATH] [--work DIR] [--only TABLE,...] [--quick] [--json] [--misses FILE]
             [--extra FILE]... [--match REGEX]

Tables: functions, noeh, xrefs, tables, text, other (comma-separated in --only). docs/measuring.md says what each
counts. Exit 0 whatever the score is; 2 usage; 4 when nothing could be measured.
"""

import argparse
import bisect
import concurrent.futures
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import corpus  # noqa: E402
import truth  # noqa: E402
from engine import Direct, Engine, EngineError  # noqa: E402

XREF_FILES = ("/bin/bash", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/bin/python3.11")
TABLES = ("functions", "noeh", "xrefs", "tables", "text", "other")


class Tally:
    """Counts of one row: what is to be found, what was, and what was found wrongly."""

    def __init__(self):
        self.hit = self.miss = self.false = 0
        self.files = []

    def add(self, name, hit, miss, false):
        self.hit += hit
        self.miss += miss
        self.false += false
        self.files.append((name, hit, miss, false))

    @property
    def recall(self):
        return 100.0 * self.hit / (self.hit + self.miss) if self.hit + self.miss else None

    @property
    def precision(self):
        return 100.0 * self.hit / (self.hit + self.false) if self.hit + self.false else None

    def row(self):
        return {"recall": self.recall, "recall_n": self.hit, "recall_of": self.hit + self.miss,
                "precision": self.precision, "precision_n": self.hit, "precision_of": self.hit + self.false,
                "files": len(self.files)}


def percent(x):
    """Never rounded up to a hundred."""
    return "-" if x is None else "100 %" if x == 100 else f"{int(x * 100) / 100:.2f} %"


class Report:
    """Collects rows for people and for machines."""

    def __init__(self, as_json, misses):
        self.as_json = as_json
        self.misses = open(misses, "w", encoding="utf-8") if misses else None
        self.doc = {}
        self.failed = {}
        self.ok = self.judged = 0

    def fail(self, name, why):
        """Shows a failure of the engine: the first of each kind with its text, the others by name only."""
        why = str(why).split("\n")[0]
        kind = re.sub(r"/\S+", "", why)
        self.failed.setdefault(kind, []).append(name)
        self.say(f"  {name}: {why if len(self.failed[kind]) == 1 else 'the same'}")

    def judge(self, ok):
        self.judged += 1
        self.ok += ok

    def say(self, text=""):
        print(text, file=sys.stderr if self.as_json else sys.stdout, flush=True)

    def miss(self, *fields):
        if self.misses:
            print(*fields, sep="\t", file=self.misses)

    def table(self, key, title, rows, bars):
        """rows: [(label, Tally)]; bars: (recall, precision) or None for a table that is only shown."""
        self.say(f"\n{title}")
        self.say(f"  {'':34} {'recall':>9} {'found / true':>17} {'precision':>10} {'true / said':>17}")
        total = Tally()
        for label, t in rows:
            self._row(label, t, bars)
            total.files += t.files
            total.hit, total.miss, total.false = total.hit + t.hit, total.miss + t.miss, total.false + t.false
        if len(rows) > 1:
            self._row("all", total, bars)
        for word, at in (("least recall", 2), ("most false", 3)):
            worst = sorted((f for f in total.files if f[at]), key=lambda f: -f[at] / max(f[1] + f[2], 1))[:4]
            if worst:
                self.say(f"  {word}: " + ", ".join(f"{f[0]} {f[at]} of {f[1] + f[2]}" for f in worst))
        self.doc[key] = {"bars": bars, "rows": {label: t.row() for label, t in rows}, "all": total.row(),
                         "files": {f[0]: f[1:] for f in total.files}}

    def _row(self, label, t, bars):
        mark = ""
        if bars and t.recall is not None:
            under = [w for w, v, b in (("recall", t.recall, bars[0]), ("precision", t.precision, bars[1]))
                     if b is not None and (v is None or v < b)]
            mark = "  below: " + ", ".join(under) if under else "  ok"
            self.judge(not under)
        self.say(f"  {label:34} {percent(t.recall):>9} {f'{t.hit} / {t.hit + t.miss}':>17} "
                 f"{percent(t.precision):>10} {f'{t.hit} / {t.hit + t.false}':>17}{mark}")


def grade_functions(found, fact, report, name):
    """(hits, misses, false ones) of found starts {addr: source}."""
    def within(va, ranges):
        return any(a <= va < b for a, b in ranges)

    starts = fact["starts"]
    said = {a for a in found if within(a, fact["code"])}
    missed = sorted(starts - said)
    false = sorted(said - starts - fact["ignored"])
    for a in missed:
        report.miss("missed", name, hex(a), fact["sizes"][a], fact["names"][a])
    order = sorted(starts)
    for a in false:
        i = _before(order, a)
        where = f"{fact['names'][order[i]]}+{hex(a - order[i])}" if i >= 0 else "-"
        report.miss("false", name, hex(a), found[a], "cold" if a in fact["cold"] else where)
    return len(starts & said), len(missed), len(false)


def _before(order, va):
    return bisect.bisect_right(order, va) - 1


class Score:
    def __init__(self, args):
        self.args = args
        self.report = Report(args.json, args.misses)
        self.corpus = corpus.Corpus(args.work, self.report.say)
        self.engine = Direct(args.direct) if args.direct else Engine(args.scry, args.dump, self.corpus.work)
        self.builds = []
        self.measured = 0

    def prepare(self):
        plan = self.corpus.plan(self.args.quick)
        if self.args.match:
            plan = [b for b in plan if re.search(self.args.match, b.name)]
        self.builds = self.corpus.build_all(plan) if not self.args.no_build else [
            b for b in plan if self.corpus.is_done(b)]
        for name, why in self.corpus.skipped:
            self.report.say(f"  left out: {name}: {why.splitlines()[-1][:200]}")

    def _pool(self, work, items):
        """Results in order; a failure of the engine is shown and counts as nothing found."""
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            return list(pool.map(work, items))

    def _found(self, job):
        name, path = job
        try:
            return self.engine.functions(path)
        except (EngineError, ValueError, KeyError) as e:
            self.report.fail(name, e)
            return {}

    def functions(self, twin, builds, key, title, bars):
        jobs = [(b.name, self.corpus.path(b, twin)) for b in builds]
        rows = {}
        for b, found in zip(builds, self._pool(self._found, jobs)):
            label = f"{b.lang} {b.cc} {b.opt}" if b.arch == "x86_64" else f"{b.arch} {b.lang} {b.cc} {b.opt}"
            if b.lang in ("go", "rust"):
                label = f"{b.lang} {b.opt}"
            fact = truth.functions(self.corpus.path(b, "truth"))
            rows.setdefault(label, Tally()).add(b.name, *grade_functions(found, fact, self.report, f"{key}:{b.name}"))
            self.measured += 1
        if rows:
            self.report.table(key, title, list(rows.items()), bars)

    def extra(self):
        """Unstripped files of the caller's, stripped here."""
        for path in self.args.extra:
            name = os.path.basename(path)
            folder = os.path.join(self.corpus.work, "extra")
            os.makedirs(folder, exist_ok=True)
            stripped, bare = os.path.join(folder, name + ".stripped"), os.path.join(folder, name + ".noeh")
            subprocess.run(["strip", "--strip-all", "-o", stripped, path], check=True)
            corpus.elffile.without_unwind(stripped, bare)
            fact = truth.functions(path)
            rows = []
            for twin in (stripped, bare):
                t = Tally()
                label = os.path.basename(twin)
                t.add(label, *grade_functions(self._found((label, twin)), fact, self.report, label))
                rows.append((label, t))
            self.report.table("extra:" + name, f"Function starts of {path}", rows, None)
            self.measured += 1

    def unwind(self):
        """The peers' measure: starts of the unwind table, as shipped and with the table taken out of a copy."""
        rows = []
        folder = os.path.join(self.corpus.work, "extra")
        os.makedirs(folder, exist_ok=True)
        for path in ("/bin/ls",) + XREF_FILES:
            if not os.path.exists(path):
                continue
            code = truth.functions(path)["code"]
            text = {a for a, _ in truth.unwind_starts(path) if any(lo <= a < hi for lo, hi in code)}
            bare = os.path.join(folder, os.path.basename(path) + ".noeh")
            corpus.elffile.without_unwind(path, bare)
            for label, p in ((os.path.basename(path), path), (os.path.basename(path) + " without", bare)):
                found = set(self._found((label, p)))
                t = Tally()
                t.add(label, len(text & found), len(text - found), 0)
                for a in sorted(text - found):
                    self.report.miss("missed", "unwind:" + label, hex(a))
                rows.append((label, t))
        if rows:
            self.report.table("unwind", "Starts of the unwind table in .text (holds cold pieces, which are no functions)",
                              rows, None)

    def xrefs(self):
        rep = self.report
        rep.say("\nReferences against a linear decode of .text (objdump), inside unwind ranges; all = the whole decode,"
                " data in .text included")
        doc = rep.doc["xrefs"] = {}
        for path in XREF_FILES:
            if not os.path.exists(path):
                rep.say(f"  left out: {path} is not on this machine")
                continue
            name = os.path.basename(path)
            try:
                have, _ = self.engine.facts(path)
            except EngineError as e:
                rep.fail(name, e)
                continue
            refs, starts = truth.references(path)
            inside = truth.in_unwind(truth.unwind_starts(path), starts)
            doc[name] = row = {}
            for kind, pairs in refs.items():
                good = {p for p in pairs if inside(p[0])}
                missed = sorted(good - have.keys())
                hit_all = len(pairs & have.keys())
                for a, b in missed:
                    rep.miss("missed", f"xrefs:{name}", hex(a), hex(b), kind)
                n, of = len(good) - len(missed), len(good)
                row[kind] = {"n": n, "of": of, "all_n": hit_all, "all_of": len(pairs)}
                what = {"call": "direct calls", "jump": "direct jumps", "rip": "RIP-relative"}[kind]
                rep.judge(n == of)
                rep.say(f"  {name:16} {what:14} {percent(100.0 * n / of if of else None):>9} {f'{n} / {of}':>17}"
                        f"   all {f'{hit_all} / {len(pairs)}':>17}{'  ok' if n == of else '  below'}")
            lo, hi = starts[0], starts[-1] + 16
            floor = max(truth.first_content(path), 0x1000)
            known = set().union(*refs.values())
            small = sorted(p for p in have if lo <= p[0] < hi and p[1] < floor and p not in known)
            other = sum(1 for p in have if lo <= p[0] < hi and p[1] >= floor and p not in known)
            for a, b in small:
                rep.miss("false", f"xrefs:{name}", hex(a), hex(b), "small")
            row["small"], row["other"] = len(small), other
            rep.judge(not small)
            rep.say(f"  {name:16} below the first content (immediates taken for addresses): {len(small)}"
                    f"{'  ok' if not small else '  above 0'}; {other} more than the decode shows (switches, absolute"
                    " addresses, pairs)")
            self.measured += 1

    def xrefs_plain(self, builds, arch):
        """References of the other architectures, on the sqlite builds at -O2."""
        rows = []
        for b in builds:
            if b.prog != "sqlite" or b.opt != "O2":
                continue
            path = self.corpus.path(b, "stripped")
            try:
                have, _ = self.engine.facts(path)
            except EngineError as e:
                self.report.fail(b.name, e)
                continue
            for kind, pairs in truth.references_plain(path, arch).items():
                # A pair may be told from its first or its second instruction.
                missed = [p for p in pairs if p not in have and (kind != "pair" or (p[0] - 4, p[1]) not in have)]
                for x in sorted(missed):
                    self.report.miss("missed", f"xrefs:{b.name}", hex(x[0]), hex(x[1]), kind)
                t = Tally()
                t.add(b.name, len(pairs) - len(missed), len(missed), 0)
                rows.append((f"{b.cc} {kind}", t))
        if rows:
            self.report.table(arch + "-xrefs", f"References of sqlite -O2 against objdump, {arch}", rows, None)

    def _facts(self, b):
        try:
            return self.engine.facts(self.corpus.path(b, "stripped"))[1]
        except EngineError as e:
            return str(e)

    def jump_tables(self, builds, key, title, bar):
        rep, rows = self.report, {}
        kinds = {}
        for b, have in zip(builds, self._pool(self._facts, builds)):
            if isinstance(have, str):
                rep.fail(b.name, have)
                have = []
            with open(self.corpus.path(b, "tables.json"), encoding="utf-8") as f:
                want = json.load(f)
            by_jump = {j: t for j, _, t in have}
            by_table = {}
            for _, at, t in have:
                by_table.setdefault(at, []).append(t)
            hit = 0
            for t in want:
                said = [by_jump[t["jump"]]] if t["jump"] in by_jump else by_table.get(t["table"], [])
                right = any(s == t["targets"] for s in said)
                hit += right
                if not right:
                    why = ("missing" if not said else "short" if said[0] == t["targets"][:len(said[0])] else
                           "long" if said[0][:len(t["targets"])] == t["targets"] else "other targets")
                    kinds[why] = kinds.get(why, 0) + 1
                    rep.miss("table", b.name, hex(t["table"]), hex(t["jump"]) if t["jump"] else "-", why,
                             f"{len(said[0]) if said else 0} of {len(t['targets'])}", t["func_name"], hex(t["func"]))
            rows.setdefault(f"{b.cc} {b.opt}" + f" {b.arch}" * (b.arch != "x86_64"), Tally()).add(
                b.name, hit, len(want) - hit, 0)
            self.measured += 1
        if rows:
            rep.table(key, title, list(rows.items()), bar)
            if kinds:
                rep.say("  not resolved: " + ", ".join(f"{n} {k}" for k, n in sorted(kinds.items())))

    def text(self):
        """The instruction text against objdump is a program of its own."""
        tool = os.path.join(os.path.dirname(os.path.abspath(__file__)), "insn_text.py")
        dump = os.path.join(os.path.dirname(self.args.dump), "insn_dump")
        if not os.path.exists(tool) or not os.access(dump, os.X_OK):
            self.report.say("\nInstruction text beside objdump: insn_dump is not built")
            return
        for path in XREF_FILES[:2]:
            if os.path.exists(path):
                p = subprocess.run([sys.executable, tool, dump, path], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, check=False)
                self.report.say(f"\nInstruction text beside objdump: {path}\n{p.stdout.rstrip()}")
                self.measured += 1

    def all(self):
        only = set(self.args.only.split(",")) if self.args.only else set(TABLES)
        bad = only - set(TABLES)
        if bad:
            sys.exit(f"score.py: no such table: {', '.join(sorted(bad))} (there are {', '.join(TABLES)})")
        self.prepare()
        here = [b for b in self.builds if b.arch == "x86_64"]
        if "functions" in only:
            self.functions("stripped", here, "functions", "Function starts on stripped copies, x86-64", (99.5, 99.0))
        if "noeh" in only:
            self.functions("noeh", here, "noeh", "The same without .eh_frame and .eh_frame_hdr, x86-64", (95.0, 98.0))
        if "tables" in only:
            native = [b for b in here if b.lang == "c" and b.opt in ("O1", "O2", "O3")]
            self.jump_tables(native, "tables", "Jump tables of sqlite, lua, zlib and bash, every target right, x86-64",
                             (98.0, None))
        if "xrefs" in only and not self.args.match:
            self.xrefs()
            self.unwind()
        if "other" in only:
            for arch in ("aarch64", "i386"):
                there = [b for b in self.builds if b.arch == arch]
                self.functions("stripped", there, arch, f"Function starts on stripped copies, {arch}", None)
                self.functions("noeh", there, arch + "-noeh", f"The same without unwind tables, {arch}", None)
                self.xrefs_plain(there, arch)
                self.jump_tables([b for b in there if os.path.exists(self.corpus.path(b, "tables.json"))],
                                 arch + "-tables", f"Jump tables, {arch}", None)
        if "text" in only and not self.args.match:
            self.text()
        self.extra()
        self.report.say(f"\n{self.report.ok} of {self.report.judged} rows at their bar or over it")
        if self.args.json:
            json.dump(self.report.doc, sys.stdout, indent=1)
            print()
        return 0 if self.measured else 4


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--scry", default="")
    p.add_argument("--direct", help="analyze_dump in place of scry: the analysis alone")
    p.add_argument("--dump", help="image_dump; default: beside the scry binary's build")
    p.add_argument("--work", default="build-score")
    p.add_argument("--only", default="")
    p.add_argument("--match", default="", help="only programs whose name matches")
    p.add_argument("--quick", action="store_true", help="a subset: -O2 of the small programs")
    p.add_argument("--no-build", action="store_true", help="measure what is built")
    p.add_argument("--json", action="store_true")
    p.add_argument("--misses", help="write every miss to this file")
    p.add_argument("--extra", action="append", default=[], metavar="FILE", help="an unstripped file to measure too")
    args = p.parse_args()
    tool = args.direct or args.scry
    if not os.access(tool, os.X_OK):
        sys.exit(f"score.py: no program at {tool or '(--scry PATH)'}")
    if not args.dump:
        up = "image_dump" if args.direct else "../../tests/score/image_dump"
        args.dump = os.path.join(os.path.dirname(os.path.abspath(tool)), up)
    os.nice(5)
    sys.exit(Score(args).all())


if __name__ == "__main__":
    main()
