#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what an edit costs beside bare SQLite on the same disk, as ratios of one run.

    bench_edits.py --scry PATH --edits PATH [--work DIR] [--rounds N] [--json]

Rows: a rename of a function with 1,000 references until it is on the screen of the workbench (200x60, through a pty) and until it is
on disk; 10,000 renames from a map; taking those back. Both sides of a ratio run in turn; a figure is the median, with the
least and the most beside it. The work folder decides which disk is measured. Exit 0 whatever the figures are."""
import argparse
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time

REFS = 1000
MANY = 10000
ROUNDS_MAX = 40
FRAME_MS = 16


def make_target(work):
    """A program whose function hot() is called from REFS places and whose array has a byte for each name of every round."""
    c = os.path.join(work, "hot.c")
    with open(c, "w", encoding="utf-8") as f:
        f.write(f"volatile int sink; char many[{MANY * ROUNDS_MAX}] = {{1}};\n__attribute__((noinline)) void hot(int x) {{ sink += x; }}\n")
        for i in range(REFS // 50):
            f.write(f"__attribute__((noinline)) void user_{i}(void) {{" + "".join(f" hot({k});" for k in range(50)) + " }\n")
        f.write("int main(void) {" + "".join(f" user_{i}();" for i in range(REFS // 50)) + " return many[0]; }\n")
    target = os.path.join(work, "hot")
    subprocess.run(["cc", "-O1", "-o", target, c], check=True)
    return target


def pairs(cmd, env):
    out = subprocess.run(cmd, stdout=subprocess.PIPE, env=env, text=True, check=True).stdout
    return [tuple(float(v) for v in line.split()) for line in out.splitlines()]


def span(values):
    return f"{statistics.median(values):.3g} ({min(values):.3g}-{max(values):.3g})"


class Screen:
    """The workbench on a pseudo-terminal, of which only the bytes are looked at."""

    def __init__(self, cmd, env):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.execvpe(cmd[0], cmd, env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 200, 0, 0))

    def read(self, seconds, until=None):
        """Bytes until `until` is among them or nothing has come for `seconds`."""
        got = b""
        while select.select([self.fd], [], [], seconds)[0]:
            try:
                got += os.read(self.fd, 65536)
            except OSError:
                break
            if until and until in got:
                break
        return got

    def keys(self, text, quiet=0.2):
        os.write(self.fd, text)
        return self.read(quiet)

    def close(self):
        os.kill(self.pid, signal.SIGTERM)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def on_screen(scry, target, env, rounds):
    """Milliseconds from Enter of the new name to its being in what is written; None when it never came."""
    s = Screen([scry, target], dict(env, TERM="xterm-256color"))
    s.read(1.5)
    s.keys(b"g")
    s.keys(b"hot\r", 0.5)
    took = []
    for i in range(rounds):
        # Letters no two names share, so that the diff of the screen cannot leave out any.
        name = bytes([ord("a") + i % 26]) * 12
        s.keys(b"n")
        s.keys(b"\x15" + name)
        began = time.monotonic()
        os.write(s.fd, b"\r")
        got = s.read(2, name)
        if name not in got:
            s.close()
            return None
        took.append((time.monotonic() - began) * 1e3)
        s.read(0.3)
    s.close()
    return took


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--scry", required=True)
    ap.add_argument("--edits", required=True)
    ap.add_argument("--work")
    ap.add_argument("--rounds", type=int, default=11)
    ap.add_argument("--json", action="store_true")
    args = ap.parse_args()
    args.rounds = min(args.rounds, ROUNDS_MAX)
    work = tempfile.mkdtemp(prefix="scry-bench-edits.", dir=args.work or "/var/tmp")
    env = dict(os.environ, SCRY_STORE=os.path.join(work, "store"), LC_ALL="C.UTF-8")
    env.pop("NO_COLOR", None)
    os.mkdir(env["SCRY_STORE"], 0o700)
    rows = []

    def judge(what, value, bar, note):
        rows.append({"row": what, "value": value, "bar": bar, "met": value is not None and value <= bar, "note": note})

    try:
        target = make_target(work)
        subprocess.run([args.scry, "analyze", target], stdout=subprocess.DEVNULL, env=env, check=True)
        took = on_screen(args.scry, target, env, args.rounds)
        judge("rename with 1,000 references, on screen, ms", statistics.median(took) if took else None, FRAME_MS,
              span(took) if took else "the name did not appear")
        for what, mode, extra, rounds in (("rename, on disk / one INSERT", "one", [], 40), ("10,000 renames / INSERTs", "many", [str(MANY)], args.rounds),
                                          ("undo of 10,000 / UPDATEs", "undo", [str(MANY)], args.rounds)):
            # Each row begins with a journal of its own.
            env["SCRY_STORE"] = os.path.join(work, mode)
            os.mkdir(env["SCRY_STORE"], 0o700)
            subprocess.run([args.scry, "analyze", target], stdout=subprocess.DEVNULL, env=env, check=True)
            got = pairs([args.edits, mode, target, "hot" if mode == "one" else "many", work] + extra + [str(rounds)], env)
            # The first makes tables and connections.
            ratios = [a / b for a, b in got[1:]]
            judge(what, statistics.median(ratios), 3, f"ratio {span(ratios)}; ms {span([a for a, _ in got[1:]])} / {span([b for _, b in got[1:]])}")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if args.json:
        json.dump(rows, sys.stdout)
        print()
        return
    for r in rows:
        value = "-" if r["value"] is None else f"{r['value']:.3g}"
        print(f"{'ok  ' if r['met'] else 'OVER'} {r['row']}: {value}, bar {r['bar']}; {r['note']}")


main()
