#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what scry costs beside programs on the same machine, as ratios of one run.

    bench.py --scry PATH --zydis PATH [--work DIR] [--only ROW,...] [--quick] [--json]

Rows: analysis, open, page, growth, memory, image (comma-separated in --only). Both sides of a ratio run in turn
(A B A B ...); a figure is the median, with the least and the most beside it. Costs are user + system CPU time of the
whole process. Exit 0 whatever the figures are; docs/measuring.md says what each row is.
"""

import argparse
import glob
import json
import math
import os
import shutil
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import generate  # noqa: E402

LIBS = "/usr/lib/x86_64-linux-gnu"
ROWS = ("analysis", "open", "page", "growth", "memory", "hostile", "image")
MB = 1 << 20


class Failed(Exception):
    pass


class Sample:
    """One run of a command: CPU and wall seconds, peak memory in bytes."""

    def __init__(self, cpu, wall, rss):
        self.cpu, self.wall, self.rss = cpu, wall, rss


def median(samples, what="cpu"):
    return statistics.median(getattr(s, what) for s in samples)


def span(samples, scale=1.0, what="cpu"):
    """Median with the least and the most."""
    v = [getattr(s, what) * scale for s in samples]
    return f"{statistics.median(v):.4g} ({min(v):.4g}-{max(v):.4g})"


def text_of(path):
    """(file offset, bytes) of .text, by the section headers; (0, 0) where there is none."""
    out = subprocess.run(["readelf", "-SW", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                         check=False).stdout
    for line in out.splitlines():
        f = line.replace("[ ", "[").split()
        if len(f) > 5 and f[1] == ".text":
            return int(f[4], 16), int(f[5], 16)
    return 0, 0


def text_len(path):
    return text_of(path)[1]


def entry_of(path):
    out = subprocess.run(["readelf", "-hW", path], stdout=subprocess.PIPE, text=True, check=False).stdout
    return next(line.split()[-1] for line in out.splitlines() if "Entry point" in line)


class Bench:
    def __init__(self, args):
        self.args = args
        self.work = os.path.abspath(args.work)
        os.makedirs(self.work, exist_ok=True)
        self.store = os.path.join(self.work, "store")
        shutil.rmtree(self.store, ignore_errors=True)
        os.makedirs(self.store, 0o700)
        self.env = dict(os.environ, SCRY_STORE=self.store, SCRY_KEYS="ida", NO_COLOR="1")
        self.scry, self.zydis = os.path.abspath(args.scry), os.path.abspath(args.zydis)
        self.measure = os.path.join(os.path.dirname(self.zydis), "measure")
        self.page_tool = os.path.join(os.path.dirname(self.zydis), "bench_page")
        self.out = sys.stderr if args.json else sys.stdout
        self.doc = {}
        self.cost = {}   # path -> samples of its analysis
        self.floor = {}  # path -> samples of the decode of its .text

    def say(self, text=""):
        print(text, file=self.out, flush=True)

    def one(self, cmd):
        p = subprocess.run([self.measure, *cmd], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, env=self.env, check=False)
        lines = p.stderr.decode("utf-8", "replace").rstrip().split("\n")
        f = lines[-1].split()
        if p.returncode or len(f) != 5 or f[0] != "0":
            raise Failed(f"{os.path.basename(cmd[0])} {' '.join(cmd[1:3])}: exit {f[0] if len(f) == 5 else '?'}: "
                         f"{lines[0][:160]}")
        return Sample((int(f[1]) + int(f[2])) / 1e9, int(f[3]) / 1e9, int(f[4]) * 1024)

    def analyze(self, path):
        if self.args.direct:
            return [self.args.direct, "-n", path]
        return [self.scry, "analyze", path, "--force"]

    def decode(self, path):
        """The command that decodes and formats the .text of a file once."""
        off, size = text_of(path)
        return [self.zydis, path, str(off), str(size), "format"]

    def in_turn(self, rounds, *commands):
        """Samples of each command, run one after the other `rounds` times."""
        out = [[] for _ in commands]
        for _ in range(rounds):
            for got, cmd in zip(out, commands):
                got.append(self.one(cmd))
        return out

    def judge(self, row, what, value, bar, note=""):
        ok = value <= bar
        self.doc.setdefault(row, []).append({"what": what, "value": value, "bar": bar, "ok": ok})
        self.say(f"  {what:44} {value:8.3f}  bar {bar:<6g} {'PASS' if ok else 'FAIL'}  {note}")

    # --- what is measured ----------------------------------------------------------------------------------

    def files(self):
        """(label, path), small to large; each file once."""
        found = [("ls", "/bin/ls"), ("bash", "/bin/bash"), ("libcrypto.so.3", LIBS + "/libcrypto.so.3")]
        for units in (1,) if self.args.quick else (1, 16, 128):
            found.append((f"generated {units} MB", generate.program(os.path.join(self.work, "gen"), units)))
        if not self.args.quick:
            libs = [p for p in glob.glob(LIBS + "/**/*.so*", recursive=True) if os.path.isfile(p)
                    and not os.path.islink(p)]
            big = max(libs, key=os.path.getsize)
            found.append((os.path.basename(big), big))
            llvm = glob.glob(LIBS + "/libLLVM-14.so.1") + glob.glob("/usr/lib/llvm-14/lib/libLLVM-14.so.1")
            found += [("libLLVM-14.so.1", p) for p in llvm[:1]]
        seen, out = set(), []
        for label, path in found:
            real = os.path.realpath(path)
            if os.path.exists(real) and real not in seen:
                seen.add(real)
                out.append((label, real))
        return out

    @staticmethod
    def rounds(path):
        size = os.path.getsize(path)
        return 9 if size < 2 * MB else 5 if size < 32 * MB else 3

    def analysis(self, files):
        self.say("\nFull analysis, CPU time, beside decode-and-format of the same .text by Zydis and objdump -d")
        for label, path in files:
            try:
                ours, floor, objdump = self.in_turn(
                    self.rounds(path), self.analyze(path), self.decode(path), ["objdump", "-d", path])
            except Failed as e:
                self.say(f"  {label}: {e}")
                continue
            self.cost[path], self.floor[path] = ours, floor
            a, z, o = median(ours), median(floor), median(objdump)
            n = text_len(path)
            self.say(f"  {label}: .text {n / 1e6:.2f} MB, scry {span(ours)} s, wall {median(ours, 'wall'):.3g} s, Zydis "
                     f"{span(floor)} s, objdump {span(objdump)} s, scry {n / 1e6 / a:.2f} MB a CPU second")
            self.judge("analysis", label + " / Zydis", a / z, 4)
            self.judge("analysis", label + " / objdump -d", a / o, 1)

    def open(self, files):
        self.say("\nOpening an analysed file and printing one page of 200 rows, whole process")
        gen = [p for label, p in files if label.startswith("generated")]
        small, large = gen[0], gen[-1]
        rounds = 20 if self.args.quick else 60
        try:
            for p in {small, large}:
                self.one([self.scry, "analyze", p])
            page = [[self.scry, "heads", p, entry_of(p), "--count", "200"] for p in (small, large)]
            for cmd in page:
                self.one(cmd)
            a, b, t = self.in_turn(rounds, page[0], page[1], ["/bin/true"])
        except Failed as e:
            self.say(f"  {e}")
            return
        self.say(f"  ms of CPU: smallest {span(a, 1e3)}, largest {span(b, 1e3)}, /bin/true {span(t, 1e3)}; wall "
                 f"{median(a, 'wall') * 1e3:.3g}, {median(b, 'wall') * 1e3:.3g}, {median(t, 'wall') * 1e3:.3g}")
        if small != large:
            self.judge("open", "128 MB / 1 MB", median(b) / median(a), 1.2)
        self.judge("open", "1 MB / /bin/true", median(a) / median(t), 5)
        if small != large:
            self.judge("open", "128 MB / /bin/true", median(b) / median(t), 5)

    def page(self, files):
        self.say("\nOne page of 200 rows inside the process, beside Zydis decoding and formatting those instructions")
        if not os.access(self.page_tool, os.X_OK):
            self.say("  bench_page is not built")
            return
        for label, path in files:
            if label not in ("bash", "libcrypto.so.3", "generated 1 MB", "generated 128 MB"):
                continue
            p = subprocess.run([self.page_tool, path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.PIPE, env=self.env, check=False)
            f = p.stdout.split()
            if p.returncode or len(f) < 4:
                self.say(f"  {label}: bench_page: exit {p.returncode}: {p.stderr.strip()[-160:]}")
                continue
            ours, floor, insns, pages = float(f[0]), float(f[1]), int(f[2]), int(f[3])
            self.judge("page", label, ours / floor, 2,
                       f"{ours / 1e3:.1f} us against {floor / 1e3:.1f} us; {pages} pages, {insns} instructions in all")

    def growth(self, files):
        self.say("\nGrowth: slope of log(CPU time) over log(size of the file); 1 is linear")
        gen = [(label, p) for label, p in files if label.startswith("generated") and p in self.cost]
        pairs = list(zip(gen, gen[1:])) + ([(gen[0], gen[-1])] if len(gen) > 2 else [])
        big = [(label, p) for label, p in files if label.startswith("libLLVM") and p in self.cost]
        crypto = [(label, p) for label, p in files if label.startswith("libcrypto") and p in self.cost]
        pairs += [(c, b) for c in crypto for b in big] + [(g, b) for g in gen[1:2] for b in big]
        if not pairs:
            self.say("  needs the analysis row with all files")
        for (la, a), (lb, b) in pairs:
            grown = math.log(os.path.getsize(b) / os.path.getsize(a))
            slope = math.log(median(self.cost[b]) / median(self.cost[a])) / grown
            floor = math.log(median(self.floor[b]) / median(self.floor[a])) / grown
            self.judge("growth", f"{la} -> {lb}", slope, 1.1, f"Zydis alone {floor:.3f}")

    def memory(self, files):
        self.say("\nPeak memory of analysis over 16 MB + 12x .text")
        for label, path in files:
            try:
                got = self.cost.get(path) or [self.one(self.analyze(path))]
            except Failed as e:
                self.say(f"  {label}: {e}")
                continue
            rss, bar = max(s.rss for s in got), 16 * MB + 12 * text_len(path)
            self.judge("memory", label, rss / bar, 1, f"{rss / MB:.1f} of {bar / MB:.1f} MB")

    def hostile(self, files):
        self.say("\nPeak memory of files made to cost much (one page of one instruction, mapped 1,050 times), over 64 MB + "
                 "12x the file")
        path = os.path.join(self.args.work, "overlaid")
        for label, code in (("ret", "c3"), ("call to itself", "e8fbffffff"), ("jump to the next", "eb00"),
                            ("branch to the next", "7500"), ("halt", "f4"), ("breakpoint", "cc")):
            generate.overlaid(path, bytes.fromhex(code))
            try:
                rss = self.one(self.analyze(path)).rss
            except Failed as e:
                self.say(f"  {label}: {e}")
                continue
            bar = 64 * MB + 12 * os.path.getsize(path)
            self.judge("hostile", label, rss / bar, 1, f"{rss / MB:.1f} of {bar / MB:.1f} MB")

    def image(self, files):
        self.say("\nSize of the image over that of the file (bar for libcrypto.so.3)")
        for label, path in files:
            shutil.rmtree(self.store, ignore_errors=True)
            os.makedirs(self.store, 0o700)
            try:
                self.one([self.scry, "analyze", path])
            except Failed as e:
                self.say(f"  {label}: {e}")
                continue
            sizes = [os.path.getsize(p) for p in glob.glob(self.store + "/**/image.*", recursive=True)]
            ratio = max(sizes, default=0) / os.path.getsize(path)
            if not sizes:
                self.say(f"  {label}: no image in the store")
            elif label.startswith("libcrypto"):
                self.judge("image", label, ratio, 1)
            else:
                self.say(f"  {label:44} {ratio:8.3f}")

    def noise(self):
        """The same command on both sides: what of a ratio is the machine's."""
        a, b = self.in_turn(7, self.decode("/bin/bash"), self.decode("/bin/bash"))
        self.doc["noise"] = {"aa": median(a) / median(b), "load": os.getloadavg()[0]}
        both = [s.cpu for s in a + b]
        self.say(f"machine: load {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} cores; the same command against "
                 f"itself {median(a) / median(b):.3f}, its runs from {min(both) / median(a):.2f} to "
                 f"{max(both) / median(a):.2f} of the median")

    def all(self):
        only = self.args.only.split(",") if self.args.only else ROWS
        if set(only) - set(ROWS):
            sys.exit(f"bench.py: no such row: {', '.join(sorted(set(only) - set(ROWS)))} (there are {', '.join(ROWS)})")
        files = self.files()
        self.noise()
        for row in ROWS:
            if row in only:
                getattr(self, row)(files)
        every = [x for row in ROWS for x in self.doc.get(row, [])]
        self.say(f"\n{sum(x['ok'] for x in every)} of {len(every)} figures within their bars")
        if self.args.json:
            json.dump(self.doc, sys.stdout, indent=1)
            print()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--scry", default="")
    p.add_argument("--direct", help="analyze_dump in place of `scry analyze`, for the rows analysis, growth and memory")
    p.add_argument("--zydis", required=True, help="the decode-and-format program bench_zydis")
    p.add_argument("--work", default="build-bench/work")
    p.add_argument("--only", default="")
    p.add_argument("--quick", action="store_true", help="small files only")
    p.add_argument("--json", action="store_true")
    args = p.parse_args()
    for path in (args.direct or args.scry, args.zydis):
        if not os.access(path, os.X_OK):
            sys.exit(f"bench.py: no program at {path}")
    Bench(args).all()


if __name__ == "__main__":
    main()
