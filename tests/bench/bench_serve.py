#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the server costs beside a bare one, as ratios of one run.

    bench_serve.py --scry PATH --tool PATH [--rounds N] [--soak N]

`--tool` is bench_serve, the C client and the bare echo. Both sides of a ratio run in turn, a figure is the median of rounds. docs/measuring.md says
what each row is. With --soak N it sends N mixed requests instead and prints memory as it goes."""
import argparse
import glob
import json
import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from rpcclient import Refused, Server  # noqa: E402

TARGET = "/bin/bash"


def line(method, **params):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, separators=(",", ":"))


PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'


class Bench:
    def __init__(self, args):
        self.args = args
        self.root = tempfile.mkdtemp(prefix="scry-bench-serve-")
        self.env = dict(os.environ, SCRY_STORE=self.root + "/store")
        self.server = Server(args.scry, self.root + "/s", TARGET, env=self.env)
        self.client = self.server.client()
        self.client("open", file=TARGET)
        self.echo_path = self.root + "/echo"
        self.echo = subprocess.Popen([args.tool, "echo", self.echo_path])
        while not os.path.exists(self.echo_path):
            time.sleep(0.01)

    def tool(self, *words):
        out = subprocess.run([self.args.tool, *map(str, words)], capture_output=True, text=True, env=self.env, check=False)
        if out.returncode:
            raise SystemExit(f"bench_serve {words}: {out.stderr}")
        return [[float(x) for x in row.split()] for row in out.stdout.splitlines()]

    @staticmethod
    def cpu_ns(pid):
        """Of all threads, to the nanosecond."""
        return sum(int(open(f).read().split()[0]) for f in glob.glob(f"/proc/{pid}/task/*/schedstat"))

    def ask(self, text, n, path=None):
        """(median wall, processor time of the server) of one request in microseconds, bytes of the answer."""
        pid = self.echo.pid if path else self.server.proc.pid
        before = self.cpu_ns(pid)
        (wall, _, size), = self.tool("ask", path or self.server.path, n, text)
        return wall, (self.cpu_ns(pid) - before) / 1000 / (n + 3), int(size)

    def rounds(self, *sides):
        """Each side in turn; medians of each of its figures."""
        got = [[side() for side in sides] for _ in range(self.args.rounds)]
        return [[statistics.median(r[k][i] for r in got) for i in range(len(got[0][k]))] for k in range(len(sides))]

    def row(self, name, value, bar, unit="x", more=""):
        good = "" if value <= bar else "  OVER"
        print(f"{name:<58} {value:8.2f}{unit} (bar {bar}{unit}){good}  {more}", flush=True)

    def run(self):
        n = 3000
        echo, ping = self.rounds(lambda: self.ask(PING, n, self.echo_path), lambda: self.ask(PING, n))
        self.row("empty request, wall, over a bare C echo", ping[0] / echo[0], 1.5, more=f"{ping[0]:.1f} and {echo[0]:.1f} us")
        self.row("empty request, server's processor time, over the echo's", ping[1] / echo[1], 1.5, more=f"{ping[1]:.1f} and {echo[1]:.1f} us")
        for name, op, params in (("heads 200", "heads", {"addr": "main", "count": 200}), ("heads 500", "heads", {"addr": "main", "count": 500}),
                                 ("disasm 200", "disasm", {"func": "main", "limit": 200}), ("xrefs 50", "xrefs", {"addr": "malloc", "limit": 50})):
            self.page(name, op, params)
        first = self.client("heads", addr="main", count=200)
        ping, tag = self.rounds(lambda: self.ask(PING, n), lambda: self.ask(line("heads", addr="main", count=200, etag=first["etag"]), n))
        self.row("heads with a matching etag, wall, over an empty request", tag[0] / ping[0], 1.2, more=f"{tag[2]:.0f} bytes")
        for name, text in (("info", line("info")), ("resolve", line("resolve", name="main")), ("type_at", line("type_at", addr="malloc")),
                           ("one xref", line("xrefs", addr="main", limit=1))):
            ping, one = self.rounds(lambda: self.ask(PING, n), lambda text=text: self.ask(text, n))
            self.row(f"{name}, wall, over an empty request", one[0] / ping[0], 1.5, more=f"{one[0]:.1f} and {ping[0]:.1f} us, processor {one[1]:.1f}")
        self.decompile()
        self.rename()
        self.connect()
        self.clients()

    def page(self, name, op, params):
        n = 400
        ping, one, page = self.rounds(lambda: self.ask(PING, n), lambda: self.ask(line(op, **params), n),
                                      lambda: self.tool("page", TARGET, n, op, json.dumps(params))[0])
        total = page[0] + page[1] / 500 + 1.5 * ping[1]
        self.row(f"{name}, server's processor time, over the sum", one[1] / total, 1.0,
                 more=f"{one[1]:.1f} us; page {page[0]:.1f}, {page[1]:.0f} bytes, empty {ping[1]:.1f}")
        total = page[0] + page[1] / 500 + 1.5 * ping[0]
        self.row(f"{name}, wall, over the sum", one[0] / total, 1.2, more=f"{one[0]:.1f} us")

    def decompile(self):
        sizes = sorted((f["size"], f["addr"]) for f in self.client("functions", limit=100000)["items"])
        text = line("decompile", func=sizes[len(sizes) // 2][1], map=True)
        ping, warm = self.rounds(lambda: self.ask(PING, 1000), lambda: self.ask(text, 1000))
        self.row("decompile of the median function, warm, wall, over the sum", warm[0] / (ping[0] + warm[2] / 500), 1.5,
                 more=f"{warm[0]:.1f} us, {warm[2]:.0f} bytes")

    def rename(self):
        db = sqlite3.connect(self.root + "/store/bare.db", isolation_level=None)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.execute("CREATE TABLE name(addr INTEGER PRIMARY KEY, value TEXT NOT NULL)")
        addrs = [f["addr"] for f in self.client("functions", limit=200)["items"]]
        ours, theirs = [], []
        for i in range(150):
            t = time.perf_counter()
            self.client("rename", addr=addrs[i % len(addrs)], name=f"bench_{i}")
            ours.append(time.perf_counter() - t)
            t = time.perf_counter()
            db.execute("INSERT OR REPLACE INTO name VALUES(?, ?)", (i, f"bench_{i}"))
            theirs.append(time.perf_counter() - t)
        db.close()
        self.row("rename to durable, over one INSERT", statistics.median(ours) / statistics.median(theirs), 3,
                 more=f"{statistics.median(ours) * 1e3:.2f} and {statistics.median(theirs) * 1e3:.2f} ms")

    def connect(self):
        bare, ours = self.rounds(lambda: self.tool("connect", self.echo_path, 300, PING)[0],
                                 lambda: self.tool("connect", self.server.path, 300, line("heads", addr="main", count=1))[0])
        self.row("connect to first answer, over a bare connect and echo", ours[0] / bare[0], 3, more=f"{ours[0]:.1f} and {bare[0]:.1f} us")

    def clients(self):
        addrs = [f["addr"] for f in self.client("functions", limit=64)["items"]]
        lines = [line("heads", addr=a, count=50) for a in addrs[:16]] + [line("xrefs", addr=a) for a in addrs[16:24]] + [line("info"), PING]
        stop = threading.Event()

        def edit():
            c = self.server.client()
            i = 0
            while not stop.wait(0.05):
                i += 1
                c("comment", addr=addrs[i % len(addrs)], text=str(i))
        editor = threading.Thread(target=edit)
        editor.start()
        one, eight = self.rounds(lambda: self.tool("mix", self.server.path, 1, 1500, *lines)[0],
                                 lambda: self.tool("mix", self.server.path, 8, 1500, *lines)[0])
        stop.set()
        editor.join()
        cores = os.cpu_count()
        bar = 6 if cores >= 8 else 1.6
        value = eight[0] / one[0]
        print(f"{'8 clients during edits, answers a second over one client':<58} {value:8.2f}x (at least {bar}x on {cores} cores)"
              f"{'' if value >= bar else '  UNDER'}  {one[0]:.0f} and {eight[0]:.0f}; least and most of a client {eight[1]:.0f} {eight[2]:.0f}")

    def soak(self, total):
        rnd = random.Random(1)
        addrs = [f["addr"] for f in self.client("functions", limit=2000)["items"]]
        asks = [lambda: ("ping", {}), lambda: ("info", {}), lambda: ("heads", {"addr": rnd.choice(addrs), "count": rnd.randrange(1, 60)}),
                lambda: ("xrefs", {"addr": rnd.choice(addrs)}), lambda: ("resolve", {"name": ["main", "nowhere"]}), lambda: ("nope", {}),
                lambda: ("functions", {"limit": rnd.randrange(1, 50), "offset": rnd.randrange(2000)}), lambda: ("strings", {"limit": 5}),
                lambda: ("bytes", {"addr": rnd.choice(addrs), "len": rnd.randrange(64)}), lambda: ("type_at", {"addr": rnd.choice(addrs)}),
                lambda: ("decompile", {"func": rnd.choice(addrs)}), lambda: ("functions", {"filter": f"*{rnd.randrange(100)}*", "limit": 3})]
        clients = [self.server.client() for _ in range(8)]
        done, began, said = 0, time.time(), 0
        while done < total:
            # A batch to each at once, so that the server always has something to do.
            posts = []
            for c in clients:
                for _ in range(16):
                    if rnd.random() < 0.0005:
                        posts.append((c, c.post("comment", {"addr": rnd.choice(addrs), "text": str(rnd.random())})))
                    else:
                        posts.append((c, c.post(*rnd.choice(asks)())))
            for c, want in posts:
                try:
                    c.take(want)
                except Refused:
                    pass
            done += len(posts)
            if rnd.random() < 0.002:
                i = rnd.randrange(len(clients))
                clients[i].post("heads", {"count": 500})
                clients[i].close()
                clients[i] = self.server.client()
            if done >= said:
                print(f"{done:>9} requests  {time.time() - began:7.1f} s  resident {self.server.rss() / 1e6:7.1f} MB  {self.server.fds()} descriptors",
                      flush=True)
                said += total // 10

    def close(self):
        self.server.stop()
        self.echo.kill()
        self.echo.wait()
        shutil.rmtree(self.root, ignore_errors=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--scry", required=True)
    p.add_argument("--tool", required=True)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--soak", type=int, default=0)
    args = p.parse_args()
    args.scry, args.tool = os.path.abspath(args.scry), os.path.abspath(args.tool)
    b = Bench(args)
    try:
        if args.soak:
            b.soak(args.soak)
        else:
            b.run()
    finally:
        b.close()


main()
