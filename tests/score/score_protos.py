#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how many recovered prototypes have the parameters and the result their source has.

    score_protos.py --scry PATH [--sources DIR] [--misses FILE]

zlib as gcc's source package has it (Debian: gcc-12-source; or a DIR of C files), by gcc-12 and clang-14 at -O0 to -O3 with -g. What the
debug information says is the truth, the stripped file is judged. docs/measuring.md says what counts. Exit 4 when nothing could be measured.
"""

import argparse
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

DIE = re.compile(r"^ <(\d+)><([0-9a-f]+)>: .*\((DW_TAG_\w+)\)|^ <(\d+)><[0-9a-f]+>: Abbrev Number: 0")
ATTR = re.compile(r"^\s+<[0-9a-f]+>\s+(DW_AT_\w+)\s*:\s*(.*)$")


def truth(path):
    """Address -> (name, parameters, result is void), of functions with code."""
    text = subprocess.run(["readelf", "--debug-dump=info", "-W", path], capture_output=True, text=True, check=True).stdout
    dies, stack = {}, []
    for line in text.splitlines():
        m = DIE.match(line)
        if m and m.group(3):
            depth = int(m.group(1))
            die = {"tag": m.group(3), "kids": [], "at": {}}
            dies[int(m.group(2), 16)] = die
            del stack[depth:]
            if stack:
                stack[-1]["kids"].append(die)
            stack.append(die)
            continue
        a = ATTR.match(line)
        if a and stack:
            stack[-1]["at"][a.group(1)] = a.group(2)

    def whole(die, attr):
        """An attribute, of what the DIE is an instance of where it has none itself."""
        seen = 0
        while attr not in die["at"] and seen < 8:
            ref = die["at"].get("DW_AT_abstract_origin") or die["at"].get("DW_AT_specification")
            m = ref and re.search(r"<0x([0-9a-f]+)>", ref)
            if not m or int(m.group(1), 16) not in dies:
                return None
            die = dies[int(m.group(1), 16)]
            seen += 1
        return die["at"].get(attr)

    out = {}
    for die in dies.values():
        if die["tag"] != "DW_TAG_subprogram" or "DW_AT_low_pc" not in die["at"]:
            continue
        params = sum(k["tag"] == "DW_TAG_formal_parameter" for k in die["kids"])
        name = (whole(die, "DW_AT_name") or "?").split(": ")[-1]
        out[int(die["at"]["DW_AT_low_pc"].split()[-1], 16)] = (name, params, whole(die, "DW_AT_type") is None)
    return out


def params_of(proto):
    inner = proto[proto.index("(") + 1:proto.rindex(")")]
    parts = [p for p in inner.split(", ") if p not in ("void", "...")]
    return len(parts)


def sources(args, work):
    if args.sources:
        return args.sources
    tars = glob.glob("/usr/src/gcc-12/gcc-*.tar.xz")
    if not tars:
        return None
    out = os.path.join(work, "zlib")
    os.makedirs(out)
    with tarfile.open(tars[0]) as tar:
        for m in tar:
            if m.isfile() and re.search(r"/zlib/(?!example|minigzip)[^/]+\.[ch]$", m.name):
                with open(os.path.join(out, os.path.basename(m.name)), "wb") as f:
                    shutil.copyfileobj(tar.extractfile(m), f)
    return out


def judge(args, store, stripped, va):
    run = subprocess.run([args.scry, "type_at", stripped, hex(va)], capture_output=True, text=True, env=dict(os.environ, SCRY_STORE=store))
    m = re.search(r"^prototype +(\S.*)$", run.stdout, re.M)
    is_ours = re.search(r"^source +recovered$", run.stdout, re.M)
    return m.group(1) if m and is_ours else None


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--scry", required=True)
    ap.add_argument("--sources")
    ap.add_argument("--misses")
    args = ap.parse_args()
    args.scry = os.path.abspath(args.scry)
    misses = open(args.misses, "w", encoding="utf-8") if args.misses else None
    total = [0, 0, 0, 0]
    with tempfile.TemporaryDirectory() as work:
        where = sources(args, work)
        files = sorted(glob.glob(os.path.join(where, "*.c"))) if where else []
        for cc in ("gcc-12", "clang-14"):
            for opt in ("-O0", "-O1", "-O2", "-O3"):
                if not files or not shutil.which(cc):
                    continue
                exe, bare = (os.path.join(work, f"{cc}{opt}{end}.so") for end in ("", ".bare"))
                cmd = [cc, opt, "-g", "-gdwarf-4", "-fPIC", "-shared", "-w", "-D_GNU_SOURCE", "-DHAVE_UNISTD_H", "-DHAVE_STDARG_H"]
                if subprocess.run(cmd + ["-o", exe] + files, stderr=subprocess.DEVNULL, check=False).returncode:
                    continue
                subprocess.run(["strip", "-s", "-o", bare, exe], check=True)
                want = truth(exe)
                store = os.path.join(work, "store")
                subprocess.run([args.scry, "info", bare], capture_output=True, env=dict(os.environ, SCRY_STORE=store), check=False)
                row = [len(want), 0, 0, 0]
                with concurrent.futures.ThreadPoolExecutor(2) as pool:
                    got = dict(zip(want, pool.map(lambda va: judge(args, store, bare, va), want)))
                for va, (name, params, is_void) in want.items():
                    proto = got[va]
                    row[1] += proto is not None
                    ok_cnt = proto is not None and params_of(proto) == params
                    ok_void = proto is not None and proto.startswith("void ") == is_void
                    row[2] += ok_cnt
                    row[3] += ok_void
                    if misses and not (ok_cnt and ok_void):
                        print(cc, opt, hex(va), name, f"{params} parameters,", "void" if is_void else "a result", "|", proto, file=misses)
                total = [x + y for x, y in zip(total, row)]
                print(f"protos {cc:9} {opt}  {row[0]:5} functions, {row[1]:5} given, parameter count {row[2]}/{row[0]}, result {row[3]}/{row[0]}")
    if not total[0]:
        print("score_protos.py: nothing to measure: gcc-12-source and a compiler are needed", file=sys.stderr)
        return 4
    n = total[0]
    print(f"protos all            {n:5} functions, {total[1]:5} given, parameter count {100 * total[2] / n:.2f} %, result {100 * total[3] / n:.2f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
