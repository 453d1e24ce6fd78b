#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what Python and snippets cost, against the bars of docs/measuring.md.

    bench_python.py --build BUILD [--work DIR] [--units N] [--rounds N] [--json]

empty       an empty snippet over the socket, against a fork of the warm interpreter that ends at once
heads       200 lines of the listing asked for in a snippet, against two forks, or an empty one, and 1.2 times the operation over the socket
bytes       a loop of `bytes` in a snippet, against the same loop in this process
enumerate   100,000 functions into tuples, against making a list of the same tuples in Python
serialise   10,000 small objects as a snippet's result is turned into text, against json.dumps
deadline    how long after its deadline a snippet is gone: an endless loop, a spin in C, half a gigabyte of memory

Both sides of a ratio run in turn; a figure is the ratio of the least times, with the medians beside it. The same under a trace hook
(sys.settrace), which scry never installs, is printed for the two loops.
"""
import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import generate

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from rpcclient import Server  # noqa: E402

rows = []
clock = time.perf_counter


def report(row, figure, bar, note, good=None):
    good = figure <= bar if good is None else good
    rows.append({"row": row, "figure": figure, "bar": bar, "meets": good, "note": note})
    print(f"{row:40} {figure:>10.3g}  bar {bar:<8g} {'meets' if good else 'MISSES'}  {note}", flush=True)


def in_turn(rounds, *what):
    """The times of each, taken in turn."""
    times = [[] for _ in what]
    for _ in range(rounds):
        for run, to in zip(what, times):
            began = clock()
            run()
            to.append(clock() - began)
    return times


def span(times):
    return f"{min(times) * 1e6:.0f} us (median {statistics.median(times) * 1e6:.0f})"


# The warm interpreter without a snippet: what it has in memory, and a fork of it that ends.
FORK = """
import gc, os, sys, time
sys.path.insert(0, sys.argv[1])
import scry
from scry import _warm
session = scry._Session(sys.argv[2])
_warm.warm_up(session)
gc.collect()
gc.freeze()
for line in sys.stdin:
    began = time.perf_counter()
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    print(time.perf_counter() - began, flush=True)
"""


class Forks:
    def __init__(self, package, target):
        self.child = subprocess.Popen([sys.executable, "-c", FORK, package, target], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.times = []

    def one(self):
        self.child.stdin.write("\n")
        self.child.stdin.flush()
        self.times.append(float(self.child.stdout.readline()))

    def end(self):
        self.child.stdin.close()
        self.child.wait()


def snippet(db, code, **more):
    return db._backend.session.json("exec", json.dumps({"code": code, **more}))


class Socket:
    """A server, and lines to it: a request and its answer, without reading what is in it."""

    def __init__(self, build, work, target):
        self.server = Server(os.path.join(build, "src/main/scry"), os.path.join(work, "socket"), target, env=dict(os.environ))
        self.client = self.server.client()
        self.client("open", file=target)

    def ask(self, method, **params):
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n"

        def once():
            self.client.sock.sendall(line)
            while not self.client.sock.recv(1 << 20).endswith(b"\n"):
                pass

        once()
        return once

    def end(self):
        self.server.stop()


HEADS = "result = db.heads('main', count=200)"
HOOKED = "import sys\ndef hook(frame, event, arg): return hook\nsys.settrace(hook)\n" + HEADS + "\nsys.settrace(None)\n"


def bench_snippets(build, work, package, target, rounds):
    forks, far = Forks(package, target), Socket(build, work, target)
    empty, heads, hooked = (far.ask("exec", code=code) for code in ("", HEADS, HOOKED))
    op = far.ask("heads", addr="main", count=200)

    def after_pause(run):
        # A snippet rarely follows the one before at once.
        def paused():
            time.sleep(0.005)
            began = clock()
            run()
            return clock() - began
        return paused

    def paired(*what):
        times = [[] for _ in what]
        for _ in range(rounds):
            for run, to in zip(what, times):
                to.append(run())
        return times

    def in_row(run):
        """The mean of ten, one right behind the other."""
        def ten():
            began = clock()
            for _ in range(10):
                run()
            return (clock() - began) / 10
        return ten

    def fork():
        time.sleep(0.005)
        forks.one()
        return forks.times[-1]

    own, full, traced, plain, base = paired(*map(after_pause, (empty, heads, hooked, op)), fork)
    report("empty snippet, socket / fork and exit", min(own) / min(base), 2, f"{span(own)} / {span(base)}")
    rounds = max(5, rounds // 10)
    rows_own, rows_base = paired(in_row(empty), in_row(forks.one))
    report("the same, ten in a row", min(rows_own) / min(rows_base), 2, f"{span(rows_own)} / {span(rows_base)}")
    bar = 2 * min(base) + 1.2 * min(plain)
    report("heads 200 in it / twice a fork + heads", min(full) / bar, 1,
           f"{span(full)} / 2 x {span(base)} + 1.2 x {span(plain)}; under a trace hook {min(traced) / min(full):.2f}x")
    bar = min(own) + 1.2 * min(plain)
    report("heads 200 in it / an empty one + heads", min(full) / bar, 1, f"{span(full)} / {span(own)} + 1.2 x {span(plain)}")
    forks.end()
    far.end()


LOOP = """
import time
def loop(n):
    a = db.address("main")
    began = time.perf_counter()
    for i in range(n):
        db.bytes(a + (i & 255), 16)
    return time.perf_counter() - began
"""
TRACED = "import sys\ndef hook(frame, event, arg): return hook\nsys.settrace(hook)\ntimes = loop({n})\nsys.settrace(None)\nresult = times\n"


def bench_bytes(db, rounds):
    n = 100000
    names = {"db": db}
    exec(LOOP, names)
    here, there = [], []
    for _ in range(rounds):
        here.append(names["loop"](n))
        there.append(json.loads(snippet(db, LOOP + f"result = loop({n})"))["result"])
    traced = json.loads(snippet(db, LOOP + TRACED.format(n=n)))["result"]
    report("100,000 bytes in a snippet / here", min(there) / min(here), 1.1,
           f"{min(there) * 1e3:.1f} / {min(here) * 1e3:.1f} ms; under a trace hook {traced / min(there):.1f}x")


def bench_enumerate(work, units, rounds):
    import scry
    with scry.open(generate.program(work, units)) as db:
        fs = db.functions(limit=100000)
        cols = [fs[name] for name in fs.names]
        blobs = [(bytes(c.data), list(c.ends)) if c.ends is not None else list(c.data) for c in cols]

        def make():
            out = []
            for i in range(len(fs)):
                row = []
                for b in blobs:
                    if isinstance(b, tuple):
                        row.append(b[0][b[1][i - 1] if i else 0:b[1][i]].decode())
                    else:
                        row.append(b[i] + 0)
                out.append(tuple(row))
            return out

        ready = fs.tuples()
        gc.disable()
        ours, plain, copied = in_turn(rounds, lambda: db.functions(limit=100000).tuples(), make, lambda: [tuple(list(t)) for t in ready])
        lazy, = in_turn(rounds, lambda: [f.addr for f in db.functions(limit=100000)])
        gc.enable()
        report(f"{len(fs):,} functions into tuples / in Python", min(ours) / min(plain), 2,
               f"{min(ours) * 1e3:.0f} / {min(plain) * 1e3:.0f} ms; rows and one value {min(lazy) * 1e3:.0f} ms; copying made tuples {min(copied) * 1e3:.0f} ms")


def bench_serialise(rounds):
    from scry import _warm
    objects = [{"addr": i * 16, "name": f"sub_{i:x}", "flags": ["thunk"], "size": i % 400, "ok": True} for i in range(10000)]
    ours, plain = in_turn(rounds, lambda: _warm.text_of(objects), lambda: json.dumps(objects))
    report("10,000 objects / json.dumps", min(ours) / min(plain), 1.1, f"{span(ours)} / {span(plain)}")


def bench_deadline(db, rounds):
    for name, code in (("an endless loop", "while True: pass"), ("a spin in C", "sum(range(10**14))"),
                       ("512 MB of memory", "x = bytearray(b'x') * (512 << 20)\nwhile True: pass")):
        late = []
        for _ in range(rounds):
            began = clock()
            end = json.loads(snippet(db, code, deadline="0.5"))["end"]
            late.append((clock() - began - 0.5) * 1e3 if end == "timeout" else float("inf"))
        report(f"past its deadline: {name}", min(late), 50, f"ms, until the answer is there (median {statistics.median(late):.1f})")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", required=True)
    p.add_argument("--work")
    p.add_argument("--units", type=int, default=70)
    p.add_argument("--rounds", type=int, default=100)
    p.add_argument("--json", action="store_true")
    args = p.parse_args()
    package = os.path.join(os.path.abspath(args.build), "python")
    if not os.path.exists(os.path.join(package, "scry/_scry.abi3.so")):
        print("the Python package was not built: python3-dev is missing")
        return
    sys.path.insert(0, package)
    import scry
    with tempfile.TemporaryDirectory() as own:
        work = args.work or own
        os.environ["SCRY_STORE"] = os.path.join(work, "store")
        target = "/bin/bash"
        with scry.open(target) as db:
            bench_snippets(os.path.abspath(args.build), work, package, target, args.rounds)
            bench_bytes(db, max(3, args.rounds // 10))
            bench_serialise(max(5, args.rounds // 5))
            bench_deadline(db, max(3, args.rounds // 20))
        bench_enumerate(work, args.units, max(3, args.rounds // 20))
    if args.json:
        print(json.dumps(rows))


main()
