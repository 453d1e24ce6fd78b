#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the truth side of the score against programs whose answer is known (TAP)."""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import elffile  # noqa: E402
import tables  # noqa: E402
import truth  # noqa: E402
from ccwrap import compile_kept  # noqa: E402

PROGRAM = """
#include <stdio.h>
static __attribute__((noinline)) int pick(int a, int *b)
{
    switch (a) {
    case 3: return b[1] * 3;
    case 4: b[2] = 7; return b[3];
    case 5: return b[5] + b[6];
    case 6: return puts("six");
    case 8: b[0]++; return 5;
    case 9: return printf("%d", b[3]);
    }
    return -1;
}
static __attribute__((noinline)) int unsure(int a) { return a * 17; }
int (*const by_pointer)(int) = unsure;
int main(int argc, char **argv) { return pick(argc, (int *)argv) + by_pointer(argc); }
"""
count = 0


def check(ok, what):
    global count
    count += 1
    print(f"{'ok' if ok else 'not ok'} {count} - {what}")
    return ok


def build(folder, cc, flags):
    src, keep = os.path.join(folder, "p.c"), os.path.join(folder, "asm")
    with open(src, "w", encoding="utf-8") as f:
        f.write(PROGRAM)
    shutil.rmtree(keep, ignore_errors=True)
    os.makedirs(keep)
    obj, out = os.path.join(folder, "p.o"), os.path.join(folder, "p")
    if compile_kept(keep, [cc], [*flags, "-c", src, "-o", obj]):
        raise OSError(f"{cc} failed")
    subprocess.run([cc, *(["-pie"] if "-fPIE" in flags else ["-no-pie"]), obj, "-o", out], check=True)
    return out, tables.from_assembly(glob.glob(keep + "/*.s"), out)


def one(folder, cc, flags):
    name = " ".join([cc, *flags])
    out, found = build(folder, cc, flags)
    check(len(found) >= 1 and all(len(t["targets"]) == 7 for t in found), f"{name}: the switch has one table of 7")
    check(truth.check_tables(out, found) == [], f"{name}: the linked bytes say the same")
    if found:
        wrong = [dict(found[0], targets=found[0]["targets"][1:] + found[0]["targets"][:1])]
        check(len(truth.check_tables(out, wrong)) == 1, f"{name}: a wrong table is noticed")
        check((found[0]["jump"] is not None) == (cc == "gcc"), f"{name}: gcc's jump is known")

    fact = truth.functions(out)
    names = set(fact["names"].values())
    check({"main", "pick", "unsure", "_start"} <= names or cc == "clang", f"{name}: functions by symbols")
    check("puts" not in names and "printf" not in names, f"{name}: imports are none")
    refs, starts = truth.references(out)
    check(len(starts) == len(set(starts)) and refs["call"] and refs["rip"], f"{name}: the decode gives references")
    fdes = truth.unwind_starts(out)
    main = next(a for a, n in fact["names"].items() if n == "main")
    check(main in {a for a, _ in fdes} and truth.in_unwind(fdes, starts)(main), f"{name}: main has unwind data")

    stripped, bare = out + ".stripped", out + ".noeh"
    subprocess.run(["strip", "--strip-all", "-o", stripped, out], check=True)
    check(elffile.without_unwind(stripped, bare) > 0, f"{name}: unwind tables are taken out")
    check(truth.unwind_starts(bare) == [] and truth.unwind_starts(stripped) == fdes, f"{name}: none is left")
    os.chmod(bare, 0o755)
    run = [subprocess.run([p, *"abcdefg"], capture_output=True, check=False) for p in (out, bare)]
    check([r.returncode for r in run] == [5 + 8 * 17] * 2, f"{name}: the copy still runs")


def main():
    for cc in ("gcc", "clang"):
        for flags in (["-O2", "-fPIE"], ["-O1", "-fno-pie"]):
            if shutil.which(cc):
                with tempfile.TemporaryDirectory() as folder:
                    one(folder, cc, flags)
            else:
                check(True, f"{cc} # skip not installed")
    print(f"1..{count}")


if __name__ == "__main__":
    main()
