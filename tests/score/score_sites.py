#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""score_sites.py SCRY [--every N] [--from K] [--limit SECONDS] [--stack BYTES]: of how many system calls module, function and line of C are known.

Every N-th program of /usr/bin (by name) is traced as it says its version, then some that make many calls, and one C program built with and without
frame pointers, statically, and without unwind tables. Each is recorded with `-o FILE` and read back with `--lines`. A call is resolved when module,
function and line are known of who called the C library; where the library began a thread or process itself there is nobody. Prints the shares, by kind of
program and in all, and what those calls have in common that are not; ends with status 1 when less than 99 % are resolved."""
import argparse
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

MANY = [["ls", "-lR", "/usr/share/doc"], ["find", "/usr/lib", "-name", "x*"], ["bash", "-c", "for i in 1 2 3 4 5 6 7 8; do cat /etc/passwd; done"],
        ["python3", "-c", "import os\nfor i in range(3000): os.stat('/etc'); os.close(os.open('/etc/passwd', 0))"],
        ["perl", "-e", "for (1 .. 3000) { open(F, '</etc/passwd'); <F>; close F }"], ["tar", "cf", "/dev/null", "/usr/share/doc"],
        ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=8000"], ["gcc", "-x", "c", "-c", "/dev/null", "-o", "/dev/null"],
        ["grep", "-r", "zzz", "/usr/share/doc/libc6", "/usr/include/linux"], ["du", "-s", "/usr/share"], ["cp", "-r", "/usr/include/linux", "copy"]]
SUBJECT = """#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
__attribute__((noinline)) int one(int i) { char big[600]; int fd = open("/etc/passwd", O_RDONLY); int n = (int)read(fd, big, sizeof(big)); close(fd); return n + big[i % 600]; }
__attribute__((noinline)) int two(int i) { struct stat st; return stat("/etc", &st) + one(i) + (int)lseek(0, 0, SEEK_CUR); }
int main(void) { int sum = 0; for (int i = 0; i < 1500; i++) { sum += two(i); printf("%d\\n", sum); } return 0; }
"""
BUILDS = {"-O0 with frame pointers": ["-O0", "-fno-omit-frame-pointer"], "-O2 without": ["-O2", "-fomit-frame-pointer"],
          "-O2 static": ["-O2", "-static"], "-O2 without unwind tables": ["-O2", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]}


class Share:
    def __init__(self):
        self.events = self.module = self.func = self.line = self.outside = self.resolved = 0

    def text(self):
        n = max(self.events, 1)
        return f"{self.events:8,} calls  module {100 * self.module / n:7.3f} %  function {100 * self.func / n:7.3f} %  line of C {100 * self.line / n:7.3f} %  outside of libc {100 * self.outside / n:7.3f} %  resolved {100 * self.resolved / n:7.3f} %"


def is_beginning(ev):
    """What the library does in a thread or process that it began itself, or the kernel did: the outermost frame is where those begin."""
    if ev["name"] in ("clone", "clone3"):
        return ev["ret"] == "0x0"
    outermost = (ev["stack"] or [{}])[-1].get("func") or ""
    return ev["name"] == "rt_sigreturn" or outermost.endswith(("clone", "clone3"))


def trace(scry, stack, cmd, work, shares, misses):
    out = os.path.join(work, "t.trc")
    try:
        subprocess.run([scry, "trace", "-o", out, *(["--stack-size", str(stack)] if stack else []), "--"] + cmd, cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=30, check=False)
        text = subprocess.run([scry, "trace", "--read", out, "--lines", "--json"], stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False).stdout
    except subprocess.TimeoutExpired:
        return False
    for line in text.splitlines():
        ev = json.loads(line)
        if ev.get("event") != "syscall":
            continue
        site = ev["site"] or {}
        module = os.path.basename(site.get("module") or "")
        is_outside = bool(module) and not module.startswith(("libc.so", "libc-", "[vdso"))
        has_line = bool(module and site.get("func") and site.get("line"))
        is_resolved = has_line and (is_outside or is_beginning(ev))
        for s in shares:
            s.events += 1
            s.module += bool(site.get("module"))
            s.func += bool(site.get("func"))
            s.outside += is_outside
            s.line += has_line
            s.resolved += is_resolved
        if not is_resolved:
            misses[ev["name"], os.path.basename(site.get("module") or "no module"), site.get("func") or "no function"] += 1
    return True


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("scry")
    p.add_argument("--every", type=int, default=20)
    p.add_argument("--from", dest="first", type=int, default=0, help="the first of them")
    p.add_argument("--stack", type=int, default=0, help="bytes of stack (what scry records when nothing is said)")
    p.add_argument("--limit", type=int, default=100000, help="seconds for the programs of /usr/bin")
    a = p.parse_args()
    scry, begun = os.path.abspath(a.scry), time.time()
    total, misses, ran = Share(), collections.Counter(), 0
    with tempfile.TemporaryDirectory(prefix="scry-sites-") as work:
        kinds = {"many calls": Share(), **{k: Share() for k in BUILDS}, "/usr/bin": Share()}
        for cmd in MANY:
            if shutil.which(cmd[0]):
                ran += trace(scry, a.stack, cmd, work, [total, kinds["many calls"]], misses)
        for name, flags in BUILDS.items():
            with open(os.path.join(work, "s.c"), "w", encoding="utf-8") as f:
                f.write(SUBJECT)
            prog = os.path.join(work, "prog" + str(len(flags[0]) + len(name)))
            if subprocess.run(["gcc", *flags, "-o", prog, os.path.join(work, "s.c")], capture_output=True, check=False).returncode == 0:
                ran += trace(scry, a.stack, [prog], work, [total, kinds[name]], misses)
        for name in sorted(os.listdir("/usr/bin"))[a.first :: a.every]:
            if time.time() - begun > a.limit:
                print("# out of time at", name)
                break
            if os.access(os.path.join("/usr/bin", name), os.X_OK):
                ran += trace(scry, a.stack, [os.path.join("/usr/bin", name), "--version"], work, [total, kinds["/usr/bin"]], misses)
    for name, s in kinds.items():
        print(f"{name:28} {s.text()}")
    print(f"{f'{ran} programs':28} {total.text()}")
    for what, n in misses.most_common(12):
        print(f"  {n:7} {what[0]} in {what[1]}, {what[2]}")
    sys.exit(1 if total.resolved < 0.99 * total.events else 0)


main()
