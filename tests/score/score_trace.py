#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""score_trace.py SCRY [--source bpf|ptrace] [--scale N] [--seconds N] [PROGRAM...]: fields of scry's traces that are equal to strace's.

Sixty programs of a Debian machine, each under strace twice and under scry twice (tests/lib/tracecmp.py says what is compared). --scale
repeats the work of the looping ones: 1 is about 60,000 calls, 20 ten times
as many. After --seconds no further program is begun, and it is said which were not. Prints the share of compared fields that are
equal, and every kind of difference with an example; a difference that tests/e2e/trace.py does not list ends with status 1."""
import argparse
import os
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import tracecmp  # noqa: E402

SH = lambda text: ["sh", "-c", text]  # noqa: E731
PROGRAMS = [
    ["cat", "a", "b"], ["ls", "-laR", "/etc"], ["cp", "-rp", "d", "e"], ["mv", "a", "d/a"], ["rm", "-r", "d"], ["mkdir", "-p", "m/n/o"],
    ["ln", "-s", "a", "l"], ["sort", "a"], ["wc", "a", "b"], ["head", "-c", "10", "b"], ["tail", "-n", "1", "a"], ["grep", "-rn", "root", "/etc"],
    ["sed", "s/p/q/", "a"], ["touch", "-d", "@5", "a"], ["chmod", "-R", "u+x", "."], ["tar", "cf", "t.tar", "a", "b", "d"],
    ["find", "/usr/share/doc", "-name", "c*"], ["stat", "a", "b"], ["id"], ["env", "true"], ["gzip", "-k", "b"], ["diff", "-r", "a", "c.txt"],
    ["readlink", "-f", "."], ["mkfifo", "p"], ["printf", "%s\\n", "x"], ["du", "-s", "/usr/share/doc"], ["df", "."], ["uname", "-a"], ["hostname"],
    ["date", "-d", "@0"], ["expr", "1", "+", "2"], ["seq", "1", "1000"], ["tr", "a", "b"], ["cut", "-c1", "a"], ["uniq", "a"], ["paste", "a", "c.txt"],
    ["od", "-c", "a"], ["cmp", "a", "b"], ["md5sum", "a", "b"], ["sha256sum", "a"], ["basename", "/x/y"], ["dirname", "/x/y"], ["tee", "t"],
    ["xargs", "echo"], ["sleep", "0.01"], ["nice", "true"], ["nohup", "true"], ["timeout", "5", "true"], ["truncate", "-s", "100", "t"],
    ["split", "-l", "1", "a"], ["python3", "-c", "import json, subprocess; subprocess.run(['true'])"], ["perl", "-e", "print 1"],
    ["awk", "{print $1}", "a"], ["bash", "-c", "for i in 1 2 3; do echo $i | cat; done"], SH("echo hi | cat; (exit 3)"), SH("kill -TERM $$"),
    ["gcc", "-c", "-x", "c", "-o", "t.o", "/dev/null"], ["objdump", "-h", "/bin/true"], ["getent", "passwd", "root"],
]
LOOPS = [
    lambda n: ["dd", "if=/dev/zero", "of=f", "bs=1", f"count={5000 * n}", "status=none"],
    lambda n: ["python3", "-c", f"import os\nfor i in range({4000 * n}): os.close(os.open('a', os.O_RDONLY)); os.stat('b'); os.getcwd()"],
]


def prepare(work):
    for name, text in (("a", "pear\napple\nfig\n"), ("b", "x" * 5000 + "\n"), ("c.txt", "one two\nthree\n")):
        with open(os.path.join(work, name), "w", encoding="utf-8") as f:
            f.write(text)
        os.utime(os.path.join(work, name), (1000000000, 1000000000))
    os.mkdir(os.path.join(work, "d"))
    shutil.copy(os.path.join(work, "a"), os.path.join(work, "d", "x"))


def listed():
    """What tests/e2e/trace.py says of differences, without running it."""
    text = open(os.path.join(HERE, "..", "e2e", "trace.py"), encoding="utf-8").read()
    space = {}
    for name in ("VOLATILE", "KINDS"):
        begin = text.index(f"\n{name} = ")
        exec(text[begin:text.index("}\n", begin) + 2], space)
    return space["VOLATILE"], space["KINDS"]


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("scry")
    p.add_argument("--source", choices=["bpf", "ptrace"])
    p.add_argument("--scale", type=int, default=1)
    p.add_argument("--seconds", type=float, default=0)
    p.add_argument("program", nargs="*")
    args = p.parse_args()
    volatile, kinds = listed()
    programs = [["sh", "-c", w] for w in args.program] or PROGRAMS + [loop(args.scale) for loop in LOOPS]
    total, ran, end = tracecmp.Result(), 0, time.monotonic() + args.seconds
    for program in programs:
        if not shutil.which(program[0]):
            print(f"skipped: there is no {program[0]}")
            continue
        if args.seconds and time.monotonic() >= end:
            print(f"not run, the time is over: {' '.join(program)[:60]}")
            continue
        folder = tempfile.mkdtemp(prefix="scry-score-")
        began = total.calls
        total.merge(tracecmp.trace_all(os.path.abspath(args.scry), program, folder, prepare, args.source))
        print(f"# {total.calls - began:7} calls  {total.compared:8} fields  {total.equal:8} equal  {' '.join(program)[:60]}", flush=True)
        shutil.rmtree(folder)
        ran += 1
    share = 100 * total.equal / max(1, total.compared)
    print(f"{ran} programs, {total.calls} calls, {total.unpaired} calls of strace's without a partner")
    print(f"fields equal to strace's: {total.equal} of {total.compared} = {share:.4f} %")
    bad = 0
    for kind, cnt in total.differences.most_common():
        why = "a result no two runs share" if kind[0] in volatile else kinds.get(kind)
        bad += why is None
        want, got = total.samples[kind]
        print(f"  {cnt:6} {kind[0]} {kind[1]}: {why or 'NOT LISTED'}\n         strace {want[:200]}\n         scry   {got[:200]}")
    sys.exit(1 if bad else 0)


main()
