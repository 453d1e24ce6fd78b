#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Code images of 1, 2, 4, ... 128 MB: what it takes to build them, and to load them and execute 0 %, 10 % and 100 % of their
functions, in three ways; with the bars of docs/measuring.md.

    bench_image.py --image PATH [--sizes N,N,...] [--rounds N] [--work DIR] [--json]

fixed     absolute references filled by the linker, mapped at the base it was told, called in place
relative  a shared object without relocations in its code, by the system's loader, called in place
copy      the code of `fixed` copied into a fresh block, which is writable while its absolute references are patched

All three are made of the same C, one unit of 256 KB of code, which is linked in as often as it takes: "compile" is what
as much different code would take, "link" is measured. A size is that of the code of `fixed`. All times are of the processor. Each figure is the median of the rounds, each in a fresh
process, the file being in the page cache; "hash" is SHA-256 over the whole file of `relative`, which the check before an image is run costs on top."""
import argparse
import hashlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

UNIT = 1 << 18
UNITS = 4 # a MB
IMPORTS = 0x70000000
BASE = 0x10000000000
FLAGS = ["-O1", "-w", "-fno-stack-protector", "-fcf-protection=none", "-fno-asynchronous-unwind-tables", "-c"]
ARMS = {"fixed": ["-fno-pic", "-mcmodel=large"], "relative": ["-fPIC", "-fno-plt"]}
rows = []


def unit(functions):
    """C of functions that refer to data and to imports, straight through: every reference is one of its own."""
    out = ['#define VISIBLE __attribute__((visibility("hidden")))']
    out += [f"extern volatile long d{i} VISIBLE;" for i in range(64)]
    out += [f"long i{i}(long);" for i in range(4)]
    for n in range(functions):
        body = "".join(f" x += d{(n * 7 + k * 5) % 64}; x = i{(n + k) % 4}(x);" for k in range(24))
        out.append(f'static __attribute__((noinline, used)) long f_{n}(long x) {{{body} return x; }}')
        out.append(f'__asm__(".pushsection table,\\"a\\",@progbits\\n.long f_{n} - .\\n.popsection");')
    return "\n".join(out) + "\n"


COMMON = "".join(f"volatile long d{i} __attribute__((visibility(\"hidden\"))) = {i * 3 + 1};\n" for i in range(64)) + """
extern const int __start_table[] __attribute__((visibility("hidden"))), __stop_table[] __attribute__((visibility("hidden")));
struct image { const int *from, *to; };
const struct image image __attribute__((visibility("default"))) = {__start_table, __stop_table};
"""


def run(*cmd):
    p = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if p.returncode:
        sys.exit(f"{' '.join(cmd)[:300]}: {p.stderr[:400]}")
    return p.stdout


def seconds(*cmd):
    def used():
        u = resource.getrusage(resource.RUSAGE_CHILDREN)
        return u.ru_utime + u.ru_stime
    began = used()
    run(*cmd)
    return used() - began


def text_len(obj):
    return sum(int(line.split()[1]) for line in run("size", "-A", obj).splitlines() if line.startswith(".text"))


def compile_units(work):
    """Objects of both kinds; how many functions a unit has, and how long compiling one took."""
    def put(name, text):
        with open(os.path.join(work, name), "w", encoding="utf-8") as f:
            f.write(text)
        return os.path.join(work, name)
    probe = os.path.join(work, "probe.o")
    run("cc", *FLAGS, *ARMS["fixed"], put("probe.c", unit(64)), "-o", probe)
    functions = UNIT * 64 // text_len(probe)
    c, common, took = put("unit.c", unit(functions)), put("common.c", COMMON), {}
    for arm, flags in ARMS.items():
        took[arm] = seconds("cc", *FLAGS, *flags, c, "-o", os.path.join(work, f"unit-{arm}.o"))
        run("cc", *FLAGS, *flags, common, "-o", os.path.join(work, f"common-{arm}.o"))
    return functions, took


def link(work, arm, size):
    """The files of an arm, and the seconds that took."""
    kind = "relative" if arm == "relative" else "fixed"
    out, objs = os.path.join(work, f"{arm}-{size}.img"), os.path.join(work, "objs")
    with open(objs, "w", encoding="utf-8") as f:
        f.write(os.path.join(work, f"common-{kind}.o\n") + (os.path.join(work, f"unit-{kind}.o\n")) * size * UNITS)
    cmd = ["cc", "-nostdlib", "-Wl,-z,noexecstack,--build-id=none", "-o", out, "@" + objs]
    if arm == "relative":
        return out, seconds(*cmd, "-shared", "-Wl,-z,text")
    cmd += ["-static", "-no-pie", f"-Wl,-Ttext-segment={BASE:#x},-e,image"] + [f"-Wl,--defsym=i{i}={IMPORTS + 16 * i:#x}" for i in range(4)]
    return out, seconds(*cmd, *(["-Wl,--emit-relocs"] if arm == "copy" else []))


def measure(tool, arm, args, rounds):
    """Medians in ms of loading and executing each share, and what came out."""
    res = {}
    for tenths in (0, 1, 10):
        loads, runs, result = [], [], None
        for _ in range(rounds if tenths else 5 * rounds):
            load, took, calls, result = (int(v) for v in run(tool, arm, *args, str(tenths)).split())
            loads.append(load / 1e6)
            runs.append((load + took) / 1e6)
        res[tenths] = (statistics.median(loads), statistics.median(runs), min(runs), max(runs), (calls, result))
    return res


def report(name, figure, bar, good, note):
    rows.append({"row": name, "figure": figure, "bar": bar, "meets": good, "note": note})
    print(f"{name:44} {figure:>8.3g}  bar {bar:<8} {'meets' if good else 'MISSES'}  {note}", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--image", required=True)
    p.add_argument("--sizes", default="1,2,4,8,16,32,64,128")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--work")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    sizes = sorted(int(s) for s in a.sizes.split(","))
    work = tempfile.mkdtemp(prefix="scry-image-", dir=a.work)
    got = {}
    try:
        functions, took = compile_units(work)
        print(f"code images: {functions * UNITS} functions a MB")
        print(f"{'MB':>4} {'arm':9} {'compile s':>9} {'link s':>7} {'patches':>8} {'load ms':>8} {'0 % ms':>8} {'10 % ms':>8} {'100 % ms':>9} {'hash ms':>8}")
        for size in sizes:
            answers = set()
            for arm in ("fixed", "relative", "copy"):
                img, link_s = link(work, arm, size)
                args, refs = [img], 0
                if arm == "copy":
                    args.append(img + ".list")
                    run(a.image, "list", *args)
                    refs = os.path.getsize(args[1]) // 4
                with open(img, "rb") as f: # into the page cache
                    data = f.read()
                began = time.process_time()
                hashlib.sha256(data).digest()
                hash_ms = (time.process_time() - began) * 1000
                del data
                res = got[arm, size] = measure(a.image, arm, args, a.rounds)
                answers.add(tuple(res[t][4] for t in res))
                print(f"{size:4} {arm:9} {took.get(arm, took['fixed']) * UNITS * size:9.0f} {link_s:7.2f} {refs:8} {res[10][0]:8.2f} {res[0][1]:8.3f} {res[1][1]:8.2f} {res[10][1]:9.2f} "
                      + (f"{hash_ms:8.0f}" if arm == "relative" else ""), flush=True)
                for name in args:
                    os.unlink(name)
            if len(answers) != 1:
                sys.exit(f"the arms do not give the same results: {answers}")
    finally:
        shutil.rmtree(work)
    small, large = sizes[0], sizes[-1]
    for arm in ("fixed", "relative"):
        x, y = got[arm, large][0], got[arm, small][0]
        report(f"0 % in place, {arm}: {large} MB / {small} MB", x[1] / y[1], 1.5, x[1] / y[1] <= 1.5,
               f"{x[1]:.3f} ms ({x[2]:.3f}-{x[3]:.3f}) and {y[1]:.3f} ms ({y[2]:.3f}-{y[3]:.3f})")
    x = got["copy", large][10]
    for arm in ("fixed", "relative"):
        y = got[arm, large][10]
        report(f"100 % of {large} MB: copy / in place, {arm}", x[1] / y[1], 2, x[1] / y[1] >= 2,
               f"{x[1]:.1f} ms ({x[2]:.1f}-{x[3]:.1f}) and {y[1]:.1f} ms ({y[2]:.1f}-{y[3]:.1f})")
    if a.json:
        print(json.dumps(rows))


main()
