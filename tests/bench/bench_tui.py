#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what a key costs in the workbench, at 200x60 on a pseudo-terminal.

    bench_tui.py --scry PATH --tool PATH [--file ELF] [--large ELF] [--keys N] [--json]

Rows: key to frame for one scrolled line of the listing and of C, beside a program that answers a key with as many bytes and a page
of the listing made inside a process; the same while a file is analysed; bytes of a scrolled line, on a terminal with margins and as in tmux; key to frame and memory in
a live trace of 300,000 calls a second; bytes and wake-ups of five seconds of doing nothing. Keys come 25 ms apart, as a held key's do. Exit 0 whatever the figures are;
docs/measuring.md says what each row is."""
import argparse
import fcntl
import json
import os
import pty
import re
import select
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time

SHOWN = b"\x1b[?25h"  # the cursor comes back at the end of every frame
GAP_S = 0.025


class Terminal:
    """A program on a pseudo-terminal that answers what a good terminal answers (`margins`), or nothing."""

    def __init__(self, argv, env, margins, size=(60, 200)):
        self.margins = margins
        self.out = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            time.sleep(0.1)
            os.execve(argv[0], argv, dict(os.environ, **env))
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))

    def take(self, timeout):
        if not select.select([self.fd], [], [], timeout)[0]:
            return b""
        try:
            got = os.read(self.fd, 1 << 16)
        except OSError:
            return b""
        if self.margins:
            for ask, answer in ((b"\x1b[?69$p", b"\x1b[?69;2$y"), (b"\x1b[?2026$p", b"\x1b[?2026;2$y"), (b"\x1b[c", b"\x1b[?64;22c")):
                if ask in got:
                    os.write(self.fd, answer)
        self.out += got
        return got

    def until(self, text, limit=120):
        end = time.monotonic() + limit
        while text not in self.out and time.monotonic() < end:
            self.take(0.1)
        return text in self.out

    def rest(self, quiet):
        while self.take(quiet):
            pass
        self.out = b""

    def key(self, key, is_end, limit=1.0):
        """Presses a key: seconds until its frame is there, and the frame's bytes."""
        began = time.perf_counter()
        os.write(self.fd, key)
        got = b""
        while not is_end(got):
            more = self.take(limit)
            if not more:
                return None, got
            got += more
        return time.perf_counter() - began, got

    def end(self):
        os.kill(self.pid, 15)
        end = time.monotonic() + 20
        while time.monotonic() < end and os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            self.take(0.02)
        os.close(self.fd)


def frame_ends(got):
    return got.endswith(SHOWN) or got.endswith(SHOWN + b"\x1b[?2026l")


def opened(args, store, margins, env=None):
    t = Terminal([args.scry, args.file], dict({"TERM": "xterm-256color", "SCRY_STORE": store, "SCRY_COLOR": "true"}, **(env or {})), margins)
    t.until(b"ready")
    t.rest(0.4)
    os.write(t.fd, b"gmain\r\x04\x04")
    t.rest(0.4)
    for _ in range(60):
        t.key(b"j", frame_ends)
        time.sleep(0.01)
    t.rest(0.3)
    return t


def percentile(values, p):
    return sorted(values)[min(int(len(values) * p), len(values) - 1)]


def row(what, value, bar, good, more=""):
    return {"what": what, "value": value, "bar": bar, "ok": good, "more": more}


def echoing(args, size):
    """The program that does nothing but answer."""
    e = Terminal([args.tool, "echo", str(size)], {}, False)
    time.sleep(0.5)
    e.rest(0.2)
    return e


def page_inside(args, store):
    done = subprocess.run([args.tool, "page", args.file], capture_output=True, text=True, check=True, env=dict(os.environ, SCRY_STORE=store))
    return int(done.stdout.split()[0]) / 1e9


def show_c(t):
    """From main's listing to its C, past the first page."""
    os.write(t.fd, b"gmain\r\t")
    if not t.until(b"verified"):
        return False
    t.rest(1.0)
    for _ in range(120):
        t.key(b"j", frame_ends)
        time.sleep(0.01)
    t.rest(0.3)
    return True


def latency(args, store, page, is_c):
    t = opened(args, store, True)
    if is_c and not show_c(t):
        t.end()
        return
    size = int(statistics.median(len(t.key(b"j", frame_ends)[1]) for _ in range(9) if not time.sleep(GAP_S)))
    e = echoing(args, size)
    times, trips = [], []
    # In turn, so that what else the machine does falls on both.
    for _ in range(args.keys):
        for term, is_end, into in ((t, frame_ends, times), (e, lambda got: len(got) >= size, trips)):
            took, _ = term.key(b"j", is_end)
            into += [took] if took is not None else []
            time.sleep(GAP_S)
    t.end()
    e.end()
    ours, trip = statistics.median(times), statistics.median(trips)
    bar = trip + 2 * page
    yield row(f"key to frame, one line {'of C ' if is_c else ''}scrolled, median", f"{ours * 1e3:.3f} ms", f"{bar * 1e3:.3f} ms", ours <= bar,
              f"round trip of {size} bytes {trip * 1e3:.3f} ms, page inside a process {page * 1e3:.3f} ms, {len(times)} keys, "
              f"p99 {percentile(times, 0.99) * 1e3:.2f} ms (round trip {percentile(trips, 0.99) * 1e3:.2f} ms)")


def is_complete(args, path):
    done = subprocess.run([args.scry, "ui", path, "ping"], capture_output=True, text=True, check=False)
    return done.returncode or json.loads(done.stdout)["complete"]


def while_analysing(args):
    with tempfile.TemporaryDirectory(prefix="scry-bench-") as store:
        path = os.path.join(store, "socket")
        t = Terminal([args.scry, "--rpc", path, args.large], {"TERM": "xterm-256color", "SCRY_STORE": store}, True)
        if not t.until(b"analysing"):
            t.end()
            return
        for _ in range(60):
            t.key(b"j", lambda got: SHOWN in got)
        beside = echoing(args, 800)
        times, trips, lost = [], [], 0
        end = time.monotonic() + 60
        while time.monotonic() < end and len(times) < 600 and (len(times) % 10 or not is_complete(args, path)):
            # Frames of the progress line come in between: ours is the one that scrolls.
            took, _ = t.key(b"j", lambda got: re.search(rb"\x1b\[\d*S.*\x1b\[\?25h", got, re.S), 0.3)
            times += [took] if took is not None else []
            lost += took is None
            time.sleep(GAP_S)
            took, _ = beside.key(b"j", lambda got: len(got) >= 800)
            trips += [took] if took is not None else []
            time.sleep(GAP_S)
        t.end()
        beside.end()
    if len(times) < 20:
        return
    p99 = percentile(times, 0.99)
    yield row(f"key to frame while {os.path.basename(args.large)} is analysed, p99", f"{p99 * 1e3:.2f} ms", "16 ms", p99 <= 0.016,
              f"median {statistics.median(times) * 1e3:.2f} ms, {len(times)} keys, {lost} that moved no line; "
              f"beside it a program that only answers, p99 {percentile(trips, 0.99) * 1e3:.2f} ms")


def memory(pid):
    """Bytes of memory of a process and its children."""
    total = 0
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        total += 1024 * int(re.search(r"^Pss:\s+(\d+)", f.read(), re.M).group(1))
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return total + sum(memory(int(c)) for c in f.read().split())


def toggled(t, keys):
    """Seconds of key to frame, where the key holds the live trace or lets it go on, which the title says."""
    times = []
    for i in range(keys):
        word = (b"running", b"paused")[i % 2 == 0]
        took, _ = t.key(b"p", lambda got, word=word: word in got and SHOWN in got[got.rindex(word):], 5.0)
        times += [took] if took is not None else []
        end = time.perf_counter() + GAP_S * 2
        while time.perf_counter() < end:
            t.take(0.005)
    return times


def live(args, store):
    """The live trace of a program that makes 300,000 calls a second, beside that of one that makes ten."""
    source = """#include <stdlib.h>
    #include <time.h>
    #include <unistd.h>
    #include <sys/syscall.h>
    int main(int c, char **v) {
        long per = atol(v[1]);
        struct timespec next;
        for (clock_gettime(CLOCK_MONOTONIC, &next);;) {
            for (long i = 0; i < per; i++)
                syscall(SYS_getppid);
            next.tv_nsec += 1000000;
            if (next.tv_nsec >= 1000000000) { next.tv_nsec -= 1000000000; next.tv_sec++; }
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
        }
    }"""
    prog = os.path.join(store, "flood")
    subprocess.run(["cc", "-O2", "-o", prog, "-x", "c", "-"], input=source, text=True, check=True)
    figures = {}
    for name, words in (("calm", ["sleep", "600"]), ("flood", [prog, "300"])):
        p = subprocess.Popen(words)
        t = Terminal([args.scry, args.file], {"TERM": "xterm-256color", "SCRY_STORE": store}, True)
        t.until(b"ready")
        t.rest(0.4)
        os.write(t.fd, b",v\x15-p %d\r" % p.pid)
        if not t.until(b"running"):
            t.end()
            p.kill()
            p.wait()
            return
        end = time.monotonic() + 6
        while time.monotonic() < end:
            t.take(0.01)
        first = memory(t.pid)
        times = toggled(t, args.keys // 2 * 2)
        figures[name] = (times, first, memory(t.pid))
        t.out = b""
        t.end()
        p.kill()
        p.wait()
    (calm, _, _), (times, first, last) = figures["calm"], figures["flood"]
    if not times or not calm:
        return
    p99 = percentile(times, 0.99)
    yield row("key to frame in a live trace of 300,000 calls/s, p99", f"{p99 * 1e3:.2f} ms", "16 ms", p99 <= 0.016,
              f"median {statistics.median(times) * 1e3:.2f} ms, {statistics.median(times) / statistics.median(calm):.2f}x of that of a program that sleeps, "
              f"{len(times)} of {args.keys} keys")
    yield row("its memory, over that after 6 s", f"{last / first:.2f}x", "1.1x", last <= 1.1 * first, f"{first >> 20} MB, then {last >> 20} MB")


def scrolled_bytes(args, store):
    for name, margins, env in (("with margins", True, {}), ("without margins, as in tmux", False, {"TERM": "tmux-256color", "SCRY_NO": "margins sync keys"})):
        t = opened(args, store, margins, env)
        frames = []
        for _ in range(120):
            _, got = t.key(b"j", frame_ends)
            frames.append(got)
            time.sleep(0.012)
        t.end()
        sizes = [len(f) for f in frames]
        lines = [f for f in frames if re.search(rb"\x1b\[\d*S", f)]
        moved = sum(int(re.search(rb"\x1b\[(\d*)S", f).group(1) or 1) for f in lines)
        largest = max(lines, key=len) if lines else b""
        step = int(re.search(rb"\x1b\[(\d*)S", largest).group(1) or 1) if largest else 0
        mean = sum(sizes) / len(sizes)
        yield row(f"bytes a scrolled line, {name}", f"{mean:.0f}", "1024", mean <= 1024,
                  f"{len(sizes)} keys, {moved} lines in {len(lines)} scrolls, the largest {len(largest)} bytes for {step} lines")


def idle(args, store):
    t = opened(args, store, True)
    t.rest(1.0)

    def switches():
        with open(f"/proc/{t.pid}/status", encoding="ascii") as f:
            return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", f.read(), re.M).group(1))
    woken, seconds = switches(), 5
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        t.take(0.5)
    woken = switches() - woken
    yield row(f"idle for {seconds} s", f"{len(t.out)} bytes, {woken} wake-ups", "0, 0", not t.out and not woken)
    t.end()


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--scry", required=True)
    ap.add_argument("--tool", required=True, help="the built bench_tui")
    ap.add_argument("--file", default="/bin/bash")
    ap.add_argument("--large", default="")
    ap.add_argument("--keys", type=int, default=200)
    ap.add_argument("--json", action="store_true")
    args = ap.parse_args()
    if not args.large:
        found = [p for p in ("/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1", "/usr/bin/node", "/usr/bin/gdb") if os.access(p, os.R_OK)]
        args.large = found[0] if found else args.file
    store = tempfile.mkdtemp(prefix="scry-bench-")
    rows = []
    try:
        page = page_inside(args, store)
        for part in (latency(args, store, page, False), latency(args, store, page, True), while_analysing(args), live(args, store), scrolled_bytes(args, store), idle(args, store)):
            for r in part:
                rows.append(r)
                if not args.json:
                    print(f"  {r['what']:62} {r['value']:>22}  bar {r['bar']:>9} {'PASS' if r['ok'] else 'FAIL'}  {r['more']}", flush=True)
    finally:
        shutil.rmtree(store, ignore_errors=True)
    if args.json:
        print(json.dumps({"tui": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
