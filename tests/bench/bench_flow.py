#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_flow.py SCRY: round trips of a debugger's first minute, `file; b main; r; image list; c; q`, of lldb-19 and of scry at the same server, 20 ms away,
and of one source step with registers, callers, stack and code shown, 50 ms away. A proxy counts them (tests/lib/rspmeter.py). Prints ratios against their
bars. The server's folder is one that its clients do not see, which needs root."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from rspclient import Platform  # noqa: E402
from rspmeter import Meter  # noqa: E402

LLDB = ["--no-lldbinit", "-b", "-o", "settings set script-lang none", "-o", "settings set symbols.enable-external-lookup false"]


def row(what, said, bar, good):
    print(f"{what:74} {said:>22}   bar {bar:16} {'met' if good else 'MISSED'}", flush=True)
    return good


class Bench:
    def __init__(self, scry):
        self.scry, self.top = scry, tempfile.mkdtemp(prefix="scry-bench-flow-")
        self.env = dict(os.environ, HOME=self.top + "/home", SCRY_STORE=self.top + "/store", XDG_RUNTIME_DIR=self.top)
        for folder in ("real", "far", "home"):
            os.makedirs(f"{self.top}/{folder}")
        self.program = self.top + "/far/debuggee"
        subprocess.run(["cc", "-g", "-O0", "-pthread", "-Wl,--build-id", "-o", self.top + "/real/debuggee", HERE + "/../data/prog/debuggee.c"], check=True)
        before = ("unshare", "-m", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', self.top + "/real", self.top + "/far")
        self.server = Platform(scry, "--listen", "127.0.0.1:0", "--allow-remote", "--allow-run", env=self.env, cwd=self.top + "/far", before=before)

    def end(self):
        self.server.stop()
        shutil.rmtree(self.top, ignore_errors=True)

    def run(self, meter, words):
        """Round trips, packets and seconds of one client; what it said."""
        meter.deepest = meter.packets = 0
        begin = time.monotonic()
        r = subprocess.run(words, env=self.env, cwd=self.top, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=300)
        return meter.deepest, meter.packets, time.monotonic() - begin, r.stdout + r.stderr

    def lldb(self, meter, version):
        words = [f"lldb-{version}", *LLDB]
        for c in ("platform select remote-linux", f"platform connect connect://127.0.0.1:{meter.port}", f"platform settings -w {self.top}/far",
                  f"file {self.program}", "b main", "r", "image list", "c", "q"):
            words += ["-o", c]
        got = self.run(meter, words)
        assert "exited with status = 7" in got[3], got[3]
        return got

    def ours(self, meter):
        got = self.run(meter, [self.scry, "debug", f"connect://127.0.0.1:{meter.port}{self.program}", "-b", "main", "-e", "run", "-e", "image list", "-e", "continue",
                               "-e", "quit"])
        assert re.search(r"^breakpoint 1 at .* main", got[3], re.M) and "exited with status 7" in got[3] and "libc.so.6" in got[3], got[3]
        return got

    def flow(self, version, bars):
        """The first time, with nothing kept, and the second time."""
        good = True
        ours_way, their_way = Meter(self.server.at, 20), Meter(self.server.at, 20)
        for folder in ("home", "store"):
            shutil.rmtree(f"{self.top}/{folder}", ignore_errors=True)
        os.makedirs(self.top + "/home")
        for turn, bar in zip(("cold", "warm"), bars):
            theirs, ours = self.lldb(their_way, version), self.ours(ours_way)
            what = (f"file; b main; r; image list; c; q, +20 ms, {turn}: scry {ours[0]} round trips ({ours[1]} packets, {ours[2]:.2f} s), "
                    f"lldb-{version} {theirs[0]} ({theirs[1]}, {theirs[2]:.2f} s)")
            good &= row(what, f"1/{theirs[0] / ours[0]:.1f}", f"<= 1/{bar}", ours[0] * bar <= theirs[0])
        ours_way.close()
        their_way.close()
        return good

    def step(self):
        meter = Meter(self.server.at, 50)
        self.ours(meter)
        words = [self.scry, "debug", f"connect://127.0.0.1:{meter.port}{self.program}", "-b", "main"]
        look = ("status", "registers", "backtrace", "threads", "memory $rsp 128", "disassemble $rip 10")
        commands = ["run", *look]
        turns = []
        for n in range(4):
            words_now = list(words)
            for c in [*commands, *(["next", *look] * n), "kill"]:
                words_now += ["-e", c]
            turns.append(self.run(meter, words_now)[0])
        meter.close()
        # What one more step costs, beside everything else.
        steps = [b - a for a, b in zip(turns, turns[1:])]
        return row(f"one source step with full context, +50 ms: {steps} round trips", f"{max(steps)}", "<= 3", max(steps) <= 3)


def main():
    scry = os.path.abspath(sys.argv[1])
    if os.geteuid():
        print("skipped: round trips of debuggers: the server's folder is one that its clients do not see, which needs root")
        return 0
    b = Bench(scry)
    good = True
    try:
        for version in ("19", "14"):
            if shutil.which(f"lldb-{version}"):
                good &= b.flow(version, (4, 6))
            else:
                print(f"skipped: lldb-{version} is not here (apt-get install lldb-{version})")
        good &= b.step()
    finally:
        b.end()
    return 0 if good else 1


sys.exit(main())
