#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how many switches of the source are switches in the C, and how many gotos there are in both.

    score_shape.py --scry PATH [--sources DIR] [--opt -O1,-O2,-O3] [--misses FILE] [--jobs N]

libiberty and zlib as gcc's source package has them (Debian: gcc-12-source; or a DIR of C files), by gcc-12 and clang-14 with -g; the stripped file is
judged. Where a switch is in the code says the line table; what counts says docs/measuring.md. Exit 4 when nothing could be measured.
"""

import argparse
import bisect
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

MEMBERS = re.compile(r"/(?:zlib/(?!example|minigzip)[^/]+\.[ch]|libiberty/(?:cp-demangle|cplus-dem|d-demangle|rust-demangle|regex|hashtab|floatformat|"
                     r"fibheap|splay-tree|dyn-string|argv|partition|obstack|md5|sha1|xstrndup|safe-ctype|lbasename|fnmatch|getopt|getopt1|strtol)\.c|"
                     r"libiberty/[^/]+\.h|include/[^/]+\.h)$")
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[A-Za-z_]\w*|[{}]|\n')
JUMP = re.compile(r"^\s*([0-9a-f]+):\s+(?:bnd |notrack )*(j[a-z]+)\s+(.*)$")


def unpack(work):
    tars = glob.glob("/usr/src/gcc-12/gcc-*.tar.xz")
    if not tars:
        return None
    with tarfile.open(tars[0]) as tar:
        for m in tar:
            if m.isfile() and MEMBERS.search(m.name):
                with open(os.path.join(work, os.path.basename(m.name)), "wb") as f:
                    shutil.copyfileobj(tar.extractfile(m), f)
    return work


def read_source(path, flags):
    """Line of each switch -> its case labels; gotos; of what the compiler sees of this file."""
    text = subprocess.run(["gcc-12", "-E", *flags, path], capture_output=True, text=True, cwd=os.path.dirname(path)).stdout
    switches, stack, gotos, line, is_ours = {}, [], 0, 0, False
    pending = None
    for raw in text.split("\n"):
        m = re.match(r'# (\d+) "([^"]*)"', raw)
        if m:
            line, is_ours = int(m.group(1)), os.path.basename(m.group(2)) == os.path.basename(path)
            continue
        for t in TOKEN.findall(raw):
            if t == "switch":
                pending = line if is_ours else 0
            elif t == "{":
                stack.append(pending)
                if pending:
                    switches[pending] = 0
                pending = None
            elif t == "}" and stack:
                stack.pop()
            elif t == "case":
                inner = next((s for s in reversed(stack) if s), None)
                if inner:
                    switches[inner] += 1
            elif t == "goto" and is_ours:
                gotos += 1
        line += 1
    return switches, gotos


def lines_of(path):
    """Ascending addresses and the (file, line) from each on."""
    text = subprocess.run(["readelf", "--debug-dump=decodedline", "-W", path], capture_output=True, text=True).stdout
    rows = []
    for raw in text.splitlines():
        m = re.match(r"^(\S+\.[ch])\s+(\d+|-)\s+0x([0-9a-f]+)", raw)
        if m:
            rows.append((int(m.group(3), 16), m.group(1), 0 if m.group(2) == "-" else int(m.group(2))))
    rows.sort(key=lambda r: r[0])
    # Line 0 is what no line is known of: it goes on as before.
    for i in range(1, len(rows)):
        if not rows[i][2]:
            rows[i] = (rows[i][0], rows[i - 1][1], rows[i - 1][2])
    return [r[0] for r in rows], rows


def funcs_of(path):
    text = subprocess.run(["nm", "-S", "--defined-only", path], capture_output=True, text=True).stdout
    out = []
    for raw in text.splitlines():
        m = re.match(r"([0-9a-f]+) ([0-9a-f]+) [tT] (\S+)$", raw)
        if m and ".cold" not in m.group(3):
            out.append((int(m.group(1), 16), int(m.group(2), 16), m.group(3)))
    return sorted(set(out))


def jumps_of(path):
    """Addresses of conditional and of indirect jumps."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True).stdout
    cond, indirect = [], []
    for raw in text.splitlines():
        m = JUMP.match(raw)
        if m and m.group(2) != "jmp":
            cond.append(int(m.group(1), 16))
        elif m and m.group(3).startswith("*"):
            indirect.append(int(m.group(1), 16))
    return cond, indirect


def decompile(args, store, path, va):
    run = subprocess.run([args.scry, "decompile", path, hex(va), "--map", "--json"], capture_output=True, text=True, env=dict(os.environ, SCRY_STORE=store))
    try:
        return json.loads(run.stdout)
    except ValueError:
        return None


def score_one(args, work, files, cc, opt, switches):
    lib = os.path.join(work, "lib%s%s.so" % (cc, opt))
    flags = ["-w", "-g", opt, "-fPIC", "-shared", "-I.", "-DHAVE_CONFIG_H=1", "-Wl,-z,lazy"]
    p = subprocess.run([cc, *flags, "-o", lib, *files], capture_output=True, text=True, cwd=work)
    if p.returncode:
        sys.stderr.write(p.stderr[-600:])
        return None
    stripped = lib + ".stripped"
    subprocess.run(["strip", "--strip-all", "-o", stripped, lib], check=True)
    addrs, rows = lines_of(lib)
    funcs = funcs_of(lib)
    starts = [f[0] for f in funcs]
    cond, indirect = jumps_of(lib)
    at = collections.defaultdict(lambda: [set(), 0, 0])
    for kind, list_ in ((1, cond), (2, indirect)):
        for va in list_:
            i, k = bisect.bisect_right(addrs, va) - 1, bisect.bisect_right(starts, va) - 1
            if i < 0 or k < 0 or va >= funcs[k][0] + funcs[k][1]:
                continue
            key = (rows[i][1], rows[i][2])
            if key in switches:
                w = at[(funcs[k][0], key)]
                w[0].add(va)
                w[kind] += 1
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        store = os.path.join(work, "store")
        decompile(args, store, stripped, starts[0])
        got = dict(zip(starts, pool.map(lambda va: decompile(args, store, stripped, va), starts)))
    tables, trees, misses, gotos, with_goto = [0, 0], [0, 0], [], 0, 0
    for (va, key), (vas, cond_cnt, jump_cnt) in sorted(at.items()):
        # What one comparison decides is an if to the machine; a switch of one or two labels an if to everybody.
        if not jump_cnt and (cond_cnt < 3 or switches[key] < 3):
            continue
        c = got.get(va)
        text = c["code"].split("\n") if c else []
        seen = set()
        for l in c["map"] if c else ():
            if "switch (" in text[l["line"] - 1]:
                seen |= {int(a, 16) for a in l["addrs"]}
        w = tables if jump_cnt else trees
        w[1] += 1
        w[0] += bool(seen & vas)
        if not seen & vas:
            misses.append("%s %s %#x %s:%d: %d labels, %d comparisons, %d jumps" % (cc, opt, va, *key, switches[key], cond_cnt, jump_cnt))
    for c in got.values():
        n = len(re.findall(r"\bgoto ", c["code"])) if c else 0
        gotos += n
        with_goto += n > 0
    print("%-9s %s  switches %d of %d (%.1f %%): tables %d of %d, comparisons %d of %d; %d functions, %d with goto, %d gotos" % (
        cc, opt, tables[0] + trees[0], tables[1] + trees[1], 100 * (tables[0] + trees[0]) / max(1, tables[1] + trees[1]), *tables, *trees,
        len(funcs), with_goto, gotos))
    return tables, trees, misses


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--scry", required=True)
    p.add_argument("--sources")
    p.add_argument("--opt", default="-O1,-O2,-O3")
    p.add_argument("--cc", default="gcc-12,clang-14")
    p.add_argument("--misses")
    p.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    args = p.parse_args()
    args.scry = os.path.abspath(args.scry)
    with tempfile.TemporaryDirectory() as work:
        if args.sources:
            for f in glob.glob(os.path.join(args.sources, "*.[ch]")):
                shutil.copy(f, work)
        elif not unpack(work):
            print("skipped: no gcc-12-source")
            return 4
        with open(os.path.join(work, "config.h"), "w", encoding="utf-8") as f:
            f.write("".join("#define HAVE_%s_H 1\n" % h for h in ("STDLIB", "STRING", "STDINT", "INTTYPES", "UNISTD", "LIMITS", "FCNTL", "SYS_TYPES", "SYS_STAT")))
            f.write("#define HAVE_DECL_BASENAME 1\n#define HAVE_DECL_STRNLEN 1\n#define HAVE_UINTPTR_T 1\n#define HAVE_DECL_SNPRINTF 1\n#define STDC_HEADERS 1\n#define CHAR_BIT 8\n")
        files, switches, gotos = [], {}, 0
        for path in sorted(glob.glob(os.path.join(work, "*.c"))):
            flags = ["-I.", "-DHAVE_CONFIG_H=1"]
            if subprocess.run(["gcc-12", "-w", "-fsyntax-only", *flags, path], capture_output=True, cwd=work).returncode:
                continue
            found, n = read_source(path, flags)
            switches.update({(os.path.basename(path), line): cnt for line, cnt in found.items()})
            gotos += n
            files.append(os.path.basename(path))
        if not files:
            return 4
        print("source: %d files, %d switches, %d of them with three labels or more, %d gotos" % (
            len(files), len(switches), sum(n > 2 for n in switches.values()), gotos))
        all_, misses = [0, 0], []
        for cc in args.cc.split(","):
            for opt in args.opt.split(","):
                one = shutil.which(cc) and score_one(args, work, files, cc, opt, switches)
                if not one:
                    continue
                all_ = [all_[k] + one[0][k] + one[1][k] for k in (0, 1)]
                misses += one[2]
        if args.misses:
            with open(args.misses, "w", encoding="utf-8") as f:
                f.write("".join(m + "\n" for m in misses))
        if not all_[1]:
            return 4
        print("switches recovered: %d of %d (%.1f %%)" % (*all_, 100 * all_[0] / all_[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
