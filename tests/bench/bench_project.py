#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what a project costs, against the bars of docs/measuring.md.

    bench_project.py --scry PATH [--work DIR] [--entries N] [--json]

memory  private bytes that each further open binary adds to a workbench, for copies of libcrypto.so.3
search  a page of a project's names and strings, against one `grep -F` over the same text in a file; both whole processes
open    a project of 20 binaries that were analysed before, against one of them: until the command's answer, and until
        the workbench's first frame has the listing

Both sides of a ratio run in turn; a figure is the median, with the least and the most beside it.
"""
import argparse
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import fcntl
import time

LIBCRYPTO = "/usr/lib/x86_64-linux-gnu/libcrypto.so.3"
WORDS = """get set ssl crypto evp digest init update final error string table list node parse read write file open close buffer size
length name value type flags index hash key cert x509 asn1 bio ctx new free dup copy cmp find add remove insert lookup next prev first last begin
end handle request response client server connect accept listen send recv socket thread mutex lock unlock wait signal alloc realloc malloc calloc
memory page map unmap sync flush log debug info warn fatal test check verify sign encrypt decrypt cipher mode block stream chain tree path dir entry
stat time date format print scan convert encode decode utf8 unicode char wide""".split()
rows = []


def report(row, figure, bar, good, note):
    rows.append({"row": row, "figure": figure, "bar": bar, "meets": good, "note": note})
    print(f"{row:34} {figure:>10.3g}  bar {bar:<8g} {'meets' if good else 'MISSES'}  {note}", flush=True)


def span(v, scale=1.0):
    v = [x * scale for x in v]
    return f"{statistics.median(v):.4g} ({min(v):.4g}-{max(v):.4g})"


class Screen:
    """A workbench on a pseudo-terminal, of which only the bytes are looked at."""

    def __init__(self, argv, env):
        self.began = time.monotonic()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(argv[0], argv, dict(env, TERM="xterm-256color", COLORTERM="truecolor"))
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)
        self.seen = b""

    def wait(self, text, seconds=600):
        """Seconds from the start until `text` was written since the last call."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            if time.monotonic() > end or not select.select([self.fd], [], [], 1.0)[0]:
                if time.monotonic() > end:
                    sys.exit(f"the workbench does not show {text!r}: {self.seen[-400:]!r}")
                continue
            self.seen += os.read(self.fd, 65536)
        at = time.monotonic() - self.began
        self.seen = b""
        return at

    def keys(self, text):
        os.write(self.fd, text)

    def settle(self):
        while select.select([self.fd], [], [], 0.5)[0]:
            os.read(self.fd, 65536)
        self.seen = b""

    def private(self):
        """Bytes of private memory that is no file's: Private_Clean + Private_Dirty of anonymous mappings and what was written
        of the others."""
        total = 0
        is_file = False
        for line in open(f"/proc/{self.pid}/smaps", encoding="utf-8", errors="replace"):
            head = re.match(r"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ (\d+)", line)
            if head:
                is_file = head.group(1) != "0"
            elif line.startswith("Private_Dirty:") or (line.startswith("Private_Clean:") and not is_file):
                total += int(line.split()[1]) * 1024
        return total

    def leave(self):
        self.keys(b"q")
        try:
            while os.read(self.fd, 65536):
                pass
        except OSError:
            pass
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def run(argv, env, stdout=subprocess.PIPE, ok=(0,)):
    began = time.monotonic()
    p = subprocess.run(argv, env=env, stdout=stdout, stderr=subprocess.PIPE, check=False)
    took = time.monotonic() - began
    if p.returncode not in ok:
        sys.exit(f"{argv}: {p.returncode}: {p.stderr.decode()}")
    return took


def copies(work, source, cnt):
    """Files with the same program and other bytes behind it, so that each is a target of its own."""
    out = []
    for i in range(cnt):
        path = os.path.join(work, f"copy{i:02}.so")
        shutil.copy(source, path)
        with open(path, "ab") as f:
            f.write(b"%d" % i)
        out.append(path)
    return out


def settle_stats(paths):
    """The store trusts the stat of a file that was quiet for two seconds."""
    newest = max(os.stat(p).st_ctime for p in paths)
    time.sleep(max(0.0, newest + 2.2 - time.time()))


def bench_memory(scry, work, env):
    if not os.path.exists(LIBCRYPTO):
        print("memory: there is no " + LIBCRYPTO)
        return
    paths = copies(os.path.join(work, "crypto"), LIBCRYPTO, 5)
    settle_stats(paths)
    project = os.path.join(work, "crypto.json")
    run([scry, "project", "create", project] + paths, env)
    run([scry, "project", "list", project, "--sync"], env)
    s = Screen([scry, "--project", project], env)
    s.wait(b"Functions")
    s.settle()
    s.keys(b"\x06\x07")
    first = s.private()
    for i in range(1, 5):
        s.keys(b"\x0f")
        s.wait(b"Binaries of the project")
        s.keys(b"copy%02d\r" % i)
        s.settle()
        # Look around as a person does: names, a function far down, references.
        s.keys(b"gEVP_DigestInit_ex\r")
        s.settle()
        s.keys(b"x")
        s.settle()
        s.keys(b"\x07")
        s.settle()
    each = (s.private() - first) / 4 / 1e6
    s.leave()
    report("memory: MB a further libcrypto", each, 10, each <= 10, f"first binary and all else {first / 1e6:.1f} MB, then 4 more")


def make_names(work, entries):
    """Shared objects with names and strings, together `entries`; the text of all, a line each."""
    random.seed(7)
    per = 50000
    names, paths = [], []
    folder = os.path.join(work, "names")
    for lib in range(entries // (2 * per)):
        src = os.path.join(folder, f"n{lib}.s")
        with open(src, "w", encoding="utf-8") as f:
            f.write(".text\n")
            own = set()
            while len(own) < per:
                own.add("_".join(random.choice(WORDS) for _ in range(random.randint(2, 5))) + f"_{lib}_{random.randint(0, 1 << 20):x}")
            for n in sorted(own):
                f.write(f".globl {n}\n.type {n},@function\n{n}: ret\n.size {n},1\n")
            f.write(".section .rodata\n")
            for i in range(per):
                t = " ".join(random.choice(WORDS) for _ in range(random.randint(2, 6))) + f" {lib}.{i}"
                f.write(f'.asciz "{t}"\n')
                names.append(t)
            names.extend(sorted(own))
        so = os.path.join(folder, f"libn{lib}.so")
        subprocess.run(["cc", "-shared", "-nostdlib", "-o", so, src], check=True)
        os.unlink(src)
        paths.append(so)
    text = os.path.join(folder, "all.txt")
    with open(text, "w", encoding="utf-8") as f:
        f.write("\n".join(names) + "\n")
    return paths, text, len(names)


def bench_search(scry, work, env, entries):
    paths, text, cnt = make_names(work, entries)
    settle_stats(paths)
    project = os.path.join(work, "names.json")
    run([scry, "project", "create", project] + paths, env)
    took = run([scry, "project", "list", project, "--sync"], env)
    print(f"# {cnt} names and strings in {len(paths)} binaries, {os.path.getsize(text) / 1e6:.1f} MB of text; analysed and indexed in {took:.1f} s")
    worst = 0.0
    for word in ("evp_digest_init", "thread_mutex_lock", "malloc", "zzzz", "handle request", "xq", "7_", "e", "ssl_"):
        ours, theirs = [], []
        for _ in range(9):
            ours.append(run([scry, "project", "search", project, word, "--limit", "100", "--json"], env))
            with open(os.path.join(work, "grep.out"), "wb") as out:
                theirs.append(run(["grep", "-F", word, text], env, stdout=out, ok=(0, 1)))
        ratio = statistics.median(ours) / statistics.median(theirs)
        worst = max(worst, ratio)
        print(f"#   {word!r}: page {span(ours, 1000)} ms, grep {span(theirs, 1000)} ms, ratio {ratio:.2f}")
    report("search: page against grep -F", worst, 1, worst < 1, f"the worst of nine words, {cnt} names and strings")


def bench_open(scry, work, env):
    paths = copies(os.path.join(work, "twenty"), "/bin/bash", 20)
    settle_stats(paths)
    project = os.path.join(work, "twenty.json")
    run([scry, "project", "create", project] + paths, env)
    run([scry, "project", "list", project, "--sync"], env)
    one, all_of_them, frame_one, frame_all = [], [], [], []
    for _ in range(15):
        one.append(run([scry, "info", paths[0], "--json"], env))
        all_of_them.append(run([scry, "project", "list", project, "--json"], env))
    for _ in range(9):
        for argv, to in (([scry, paths[0]], frame_one), ([scry, "--project", project], frame_all)):
            s = Screen(argv, env)
            to.append(s.wait(b"row "))
            s.settle()
            s.leave()
    ratio = statistics.median(all_of_them) / statistics.median(one)
    report("open: 20 against one, command", ratio, 2, ratio <= 2, f"{span(all_of_them, 1000)} ms against {span(one, 1000)} ms")
    ratio = statistics.median(frame_all) / statistics.median(frame_one)
    report("open: 20 against one, first frame", ratio, 2, ratio <= 2, f"{span(frame_all, 1000)} ms against {span(frame_one, 1000)} ms")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--scry", required=True)
    p.add_argument("--work")
    p.add_argument("--entries", type=int, default=1000000)
    p.add_argument("--only", default="memory,search,open")
    p.add_argument("--json", action="store_true")
    args = p.parse_args()
    scry = os.path.abspath(args.scry)
    with tempfile.TemporaryDirectory(prefix="scry-bench-", dir=args.work) as work:
        for name in ("store", "crypto", "names", "twenty"):
            os.mkdir(os.path.join(work, name), 0o700)
        env = dict(os.environ, SCRY_STORE=os.path.join(work, "store"), LC_ALL="C.UTF-8", NO_COLOR="")
        if "open" in args.only:
            bench_open(scry, work, env)
        if "memory" in args.only:
            bench_memory(scry, work, env)
        if "search" in args.only:
            bench_search(scry, work, env, args.entries)
    if args.json:
        print(json.dumps(rows))


main()
