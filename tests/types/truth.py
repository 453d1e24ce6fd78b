#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""truth.py headers CHECKS [--abi ABI] [FOLDER...|--some]: parses each header alone after the preprocessor and lets the
compilers judge.
truth.py random CHECKS COUNT [SEED]: the same for made-up declarations, for all three ABIs, bit-fields by their bytes; gcc
judges everything, clang what it does not do differently (attributes of bit-fields, #pragma pack).

CHECKS is the program types_checks. Of a header that the compiler itself takes, these are counted: parsed; every size, offset
and value as the compiler says; what is printed compiles, has the same layout, and prints the same again.
"""
import glob
import os
import random
import shutil
import subprocess
import sys
import tempfile

ABIS = ("x86_64", "i386", "aarch64")
GCC = {"x86_64": ["gcc"], "i386": ["gcc", "-m32"], "aarch64": ["aarch64-linux-gnu-gcc"]}
CLANG = {abi: ["clang", f"--target={abi}-linux-gnu"] for abi in ABIS}
# Those with the headers of their machine.
PREPROCESSORS = {"x86_64": "gcc", "i386": "i686-linux-gnu-gcc", "aarch64": "aarch64-linux-gnu-gcc"}
SOME = ["stdio.h", "stdlib.h", "string.h", "signal.h", "pthread.h", "netdb.h", "math.h", "complex.h", "elf.h", "link.h", "sys/stat.h",
        "sys/socket.h", "sys/ucontext.h", "sys/epoll.h", "linux/bpf.h", "linux/fuse.h", "linux/if_ether.h", "linux/nl80211.h",
        "linux/videodev2.h", "linux/kvm.h", "linux/io_uring.h", "linux/perf_event.h"]


def run(cmd, text=None):
    return subprocess.run(cmd, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def compiles(cc, text):
    """The compiler's first error, or null."""
    done = run(cc + ["-w", "-fsyntax-only", "-x", "c", "-"], text)
    if done.returncode == 0:
        return None
    errors = [line for line in done.stderr.decode(errors="replace").splitlines() if "error" in line]
    return errors[0] if errors else "failed"


def judge(checks, abi, cc, text, folder):
    """What is wrong with our reading of a text that the compiler takes; null when nothing is."""
    path = os.path.join(folder, "t.i")
    with open(path, "wb") as f:
        f.write(text)
    first = run([checks, abi, path])
    if first.returncode:
        return "parse: " + first.stderr.decode(errors="replace").strip()[:300]
    wrong = compiles(cc, text + b"\n" + first.stdout)
    if wrong:
        return "layout: " + wrong
    printed = run([checks, abi, path, "--print"]).stdout
    wrong = compiles(cc, printed)
    if wrong:
        return "printed: " + wrong
    with open(path, "wb") as f:
        f.write(printed)
    if run([checks, abi, path, "--print"]).stdout != printed:
        return "printed: prints differently when parsed again"
    if sorted(run([checks, abi, path]).stdout.splitlines()) != sorted(first.stdout.splitlines()):
        return "printed: has another layout"
    return None


def judge_bits(checks, text, folder):
    """The same for the places of bit-fields, by running a program on this machine."""
    path = os.path.join(folder, "t.i")
    with open(path, "wb") as f:
        f.write(text)
    program = os.path.join(folder, "t")
    made = run(["gcc", "-w", "-x", "c", "-", "-o", program], text + b"\n" + run([checks, "x86_64", path, "--bits"]).stdout)
    if made.returncode:
        return "bits: " + made.stderr.decode(errors="replace")[:300]
    done = run([program])
    return "bits: " + done.stdout.decode(errors="replace").strip() if done.returncode else None


def headers(checks, names):
    abi = "x86_64"
    if names and names[0] == "--abi":
        abi = names[1]
        names = names[2:]
    if names == ["--some"]:
        names = SOME
    files = []
    for name in names:
        files += sorted(glob.glob(os.path.join(name, "*.h"))) if os.path.isdir(name) else [name]
    good = refused = 0
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        for name in files:
            include = f"#include \"{name}\"\n" if name[0] == "/" else f"#include <{name}>\n"
            made = run([PREPROCESSORS[abi], "-E", "-x", "c", "-"], include.encode())
            if made.returncode or compiles(GCC[abi], made.stdout):
                refused += 1
                continue
            wrong = judge(checks, abi, GCC[abi], made.stdout, folder)
            if wrong:
                bad.append(f"{name}: {wrong}")
            else:
                good += 1
    for line in bad:
        print("#", line)
    # At least 99 of 100.
    is_good = good > 0 and len(bad) * 99 <= good
    print(f"{'ok' if is_good else 'not ok'} - {good} headers right, {len(bad)} wrong, {refused} the compiler itself refuses alone")
    return is_good


class Maker:
    """Random declarations that compilers take."""

    def __init__(self, rnd, abi, is_plain):
        self.is_plain = is_plain
        self.rnd = rnd
        self.abi = abi
        self.names = 0
        self.done = []
        self.bit_structs = []

    def name(self, letter):
        self.names += 1
        return f"{letter}{self.names}"

    def scalar(self):
        words = ["char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned", "long", "unsigned long",
                 "long long", "unsigned long long", "float", "double", "long double", "_Bool", "void *", "int (*{})(long, char *)",
                 "_Complex float", "_Complex double", "e0", "al0", "lo0", "vec0"]
        if self.abi != "i386":
            words += ["__int128", "unsigned __int128"]
        return self.rnd.choice(words + self.done[-8:])

    def attrs(self, odds):
        rnd = self.rnd
        if rnd.random() > odds:
            return ""
        return " __attribute__((" + rnd.choice(["packed", f"aligned({1 << rnd.randrange(6)})", "packed, aligned(2)",
                                               "packed, aligned(4)", "aligned"]) + "))"

    def field(self, depth):
        rnd = self.rnd
        kind = rnd.random()
        if kind < 0.45:
            base, bits = rnd.choice([("char", 8), ("unsigned char", 8), ("short", 16), ("unsigned short", 16), ("int", 32),
                                     ("unsigned", 32), ("long long", 64), ("unsigned long long", 64), ("_Bool", 1),
                                     ("long", 32 if self.abi == "i386" else 64), ("enum e", 32)])
            width = rnd.randrange(0, bits + 1) if rnd.random() < 0.9 else 0
            if not width or rnd.random() < 0.1:
                return f"{base} : {width}"
            return f"{base} {self.name('b')} : {width}" + self.attrs(0 if self.is_plain else 0.05)
        if kind < 0.55 and depth < 3:
            return self.struct(depth + 1)
        base = self.scalar()
        name = self.name("m")
        if "{}" in base:
            return base.format(name)
        if rnd.random() < 0.2 and base not in ("al0",):
            name += "".join(f"[{rnd.randrange(0, 5)}]" for _ in range(rnd.randrange(1, 3)))
        return f"{base} {name}" + self.attrs(0.1)

    def struct(self, depth=0):
        rnd = self.rnd
        fields = [self.field(depth) + ";" for _ in range(rnd.randrange(1, 9))]
        word = rnd.choice(["struct", "struct", "struct", "union"])
        if not depth and word == "struct" and rnd.random() < 0.1:
            fields.append(f"{rnd.choice(['char', 'long', 'double'])} {self.name('f')}[];")
        return word + self.attrs(0.2) + " %s{ " % (self.name("s") + " " if not depth else "") + " ".join(fields) + " }"

    def text(self, cnt):
        rnd = self.rnd
        lines = ["enum e { e_a = 1, e_b = 70000, e_c };", "typedef enum { E = -1, F } e0;",
                 "typedef int al0 __attribute__((aligned(16)));", "typedef long long lo0 __attribute__((aligned(2)));",
                 "typedef float vec0 __attribute__((vector_size(16)));"]
        for _ in range(cnt):
            pack = not self.is_plain and rnd.random() < 0.15
            if pack:
                lines.append(f"#pragma pack(push, {1 << rnd.randrange(5)})")
            body = self.struct()
            lines.append(body + ";")
            if pack:
                lines.append("#pragma pack(pop)")
            words = body.split()
            tag = next(w for w in words if w[0] == "s" and w[1:].isdigit())
            if "[];" not in body:
                self.done.append(f"{words[0]} {tag}")
        return ("\n".join(lines) + "\n").encode()


def random_texts(checks, cnt, seed):
    good = refused = 0
    bad = []
    runs = [(abi, cc[abi], cc is CLANG) for cc in (GCC, CLANG) for abi in ABIS]
    for run_ in [r for r in runs if not shutil.which(r[1][0])]:
        print(f"ok - {run_[0]} # SKIP there is no {run_[1][0]}")
        runs.remove(run_)
    with tempfile.TemporaryDirectory() as folder:
        for i, (abi, cc, is_clang) in ((i, run_) for i in range(cnt) for run_ in runs):
            text = Maker(random.Random(f"{seed} {i} {cc}"), abi, is_clang).text(20)
            if compiles(cc, text):
                refused += 1
                continue
            wrong = judge(checks, abi, cc, text, folder)
            if not wrong and abi == "x86_64":
                wrong = judge_bits(checks, text, folder)
            if not wrong:
                good += 1
                continue
            kept = os.path.join(tempfile.gettempdir(), f"types-{seed}-{i}-{abi}.c")
            bad.append(f"seed {seed} text {i} {' '.join(cc)}: {wrong} (in {kept})")
            with open(kept, "wb") as f:
                f.write(text)
    for line in bad:
        print("#", line)
    is_good = good > 0 and not bad and refused * 2 < good
    print(f"{'ok' if is_good else 'not ok'} - {good} texts right, {len(bad)} wrong, {refused} the compiler refuses")
    return is_good


def main():
    if len(sys.argv) < 4 or sys.argv[1] not in ("headers", "random"):
        sys.exit(__doc__)
    if sys.argv[1] == "headers":
        ok = headers(sys.argv[2], sys.argv[3:])
    else:
        ok = random_texts(sys.argv[2], int(sys.argv[3]), sys.argv[4] if len(sys.argv) > 4 else "1")
    sys.exit(0 if ok else 1)


main()
