#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the server costs beside a bare one, as ratios of one run.

    bench_serve.py --scry PATH --tool PATH [--rounds N] [--soak N]

`--tool` is bench_serve, the C client and the bare echo. Both sides of a ratio are asked in turn, request by request where they can be, by
both ends on one core; a figure is the median of rounds. docs/measuring.md says what each row is. With --soak N it sends N mixed requests instead and prints memory as it goes."""
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
SIZES = ("/bin/true", TARGET, "/usr/lib/x86_64-linux-gnu/libcrypto.so.3")


def line(method, **params):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, separators=(",", ":"))


PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'


class Bench:
    def __init__(self, args):
        self.args = args
        self.root = tempfile.mkdtemp(prefix="scry-bench-serve-")
        self.env = dict(os.environ, SCRY_STORE=self.root + "/store")
        self.cores = sorted(os.sched_getaffinity(0))
        self.server = Server(args.scry, self.root + "/s", TARGET, env=self.env)
        self.client = self.server.client()
        self.client("open", file=TARGET)
        self.echo_path = self.root + "/echo"
        self.echo = subprocess.Popen([args.tool, "echo", self.echo_path])
        while not os.path.exists(self.echo_path):
            time.sleep(0.01)

    @staticmethod
    def pin(pid, cores):
        for task in os.listdir(f"/proc/{pid}/task"):
            os.sched_setaffinity(int(task), cores)

    def on(self, cores):
        """Both ends of whatever comes next run on these: on one, where waking the other end costs the least and is the same each time."""
        for pid in (self.server.proc.pid, self.echo.pid):
            self.pin(pid, cores)
        self.client_cores = cores

    def tool(self, *words):
        out = subprocess.run([self.args.tool, *map(str, words)], capture_output=True, text=True, env=self.env, check=False,
                             preexec_fn=lambda: os.sched_setaffinity(0, self.client_cores))
        if out.returncode:
            raise SystemExit(f"bench_serve {words}: {out.stderr}")
        return [[float(x) for x in row.split()] for row in out.stdout.splitlines()]

    @staticmethod
    def cpu_ns(pid):
        """Of all threads, to the nanosecond."""
        return sum(int(open(f).read().split()[0]) for f in glob.glob(f"/proc/{pid}/task/*/schedstat"))

    def cpu(self, text, n, path=None):
        """Processor microseconds of the server for one request."""
        pid = self.echo.pid if path else self.server.proc.pid
        before = self.cpu_ns(pid)
        self.tool("ask", path or self.server.path, n, text)
        return (self.cpu_ns(pid) - before) / 1000 / (n + 3)

    def asks(self, n, *lines):
        """Median microseconds of each line and its bytes, all of them in turn; of several rounds the median."""
        got = [self.tool("ask", self.server.path, n, *lines) for _ in range(self.args.rounds)]
        return [(statistics.median(g[k][0] for g in got), got[0][k][2]) for k in range(len(got[0]))]

    def row(self, name, value, bar, more=""):
        good = "" if value <= bar else "  OVER"
        print(f"{name:<66} {value:8.2f}x (bar {bar}x){good}  {more}", flush=True)

    def run(self):
        self.on(self.cores[-1:])
        self.empty()
        for name, op, params in (("heads 200", "heads", {"addr": "main", "count": 200}), ("heads 500", "heads", {"addr": "main", "count": 500}),
                                 ("disasm 200", "disasm", {"func": "main", "limit": 200}), ("xrefs 50", "xrefs", {"addr": "malloc", "limit": 50})):
            self.page(name, op, params)
        first = self.client("heads", addr="main", count=200)
        self.small("heads with a matching etag", line("heads", addr="main", count=200, etag=first["etag"]), 1.2)
        for name, text in (("info", line("info")), ("resolve", line("resolve", name="main")), ("type_at", line("type_at", addr="malloc")),
                           ("one xref", line("xrefs", addr="main", limit=1))):
            self.small(name, text, 1.5)
        self.decompile()
        self.rename()
        self.connect()
        self.clients()

    def empty(self):
        for cores, where in ((self.cores[-1:], ""), (self.cores, ", on any core")):
            self.on(cores)
            (echo, _), (ping, _) = self.asks(3000, "@" + self.echo_path, PING, "@" + self.server.path, PING)
            self.row("empty request, wall, over a bare C echo" + where, ping / echo, 1.5, more=f"{ping:.1f} and {echo:.1f} us")
        self.on(self.cores[-1:])
        echo, ping = ([self.cpu(PING, 3000, p) for _ in range(self.args.rounds)] for p in (self.echo_path, None))
        echo, ping = statistics.median(echo), statistics.median(ping)
        self.row("empty request, server's processor time, over the echo's", ping / echo, 1.5, more=f"{ping:.1f} and {echo:.1f} us")

    def small(self, name, text, bar):
        (ping, _), (one, size) = self.asks(3000, PING, text)
        self.row(f"{name}, wall, over an empty request", one / ping, bar, more=f"{one:.1f} and {ping:.1f} us, {size:.0f} bytes")

    def page(self, name, op, params):
        text, n, got = line(op, **params), 400, []
        for _ in range(self.args.rounds):
            page, _, size = self.tool("page", TARGET, n, op, json.dumps(params))[0]
            empty = self.cpu(PING, n)
            took = self.cpu(text, n)
            (ping, _, _), (wall, _, _) = self.tool("ask", self.server.path, n, PING, text)
            got.append((took / (page + size / 500 + 1.5 * empty), wall / (page + size / 500 + 1.5 * ping), took, wall, page, size, empty, ping))
        cpu, wall, *more = (statistics.median(g[k] for g in got) for k in range(8))
        self.row(f"{name}, server's processor time, over the sum", cpu, 1.0,
                 more="{0:.1f} us; page {2:.1f}, {3:.0f} bytes, empty {4:.1f}".format(*more))
        self.row(f"{name}, wall, over the sum", wall, 1.2, more="{1:.1f} us".format(*more))

    def decompile(self):
        by_size = [f["addr"] for f in sorted(self.client("functions", limit=100000)["items"], key=lambda f: (f["size"], f["addr"]))]
        middle = len(by_size) // 2
        text = line("decompile", func=by_size[middle], map=True)
        self.client("decompile", func=by_size[middle], map=True)
        (ping, _), (warm, size) = self.asks(1000, PING, text)
        self.row("decompile of the median function, warm, wall, over the sum", warm / (ping + size / 500), 1.5, more=f"{warm:.1f} us, {size:.0f} bytes")
        # What is made when the first function is decompiled is no function's own.
        cold, fresh, compute = [], [], []
        for i in range(3):
            funcs = by_size[middle + 1 + 60 * i:middle + 61 + 60 * i]
            first = self.tool("ask", self.server.path, 1, *[line("decompile", func=f, map=True) for f in funcs])
            again = self.tool("ask", self.server.path, 5, *[line("decompile", func=f, map=True, fresh=True) for f in funcs])
            params = [json.dumps({"func": f, "map": True, "fresh": True}) for f in (by_size[middle], *funcs)]
            once, often = (self.tool("page", TARGET, n, "decompile", *params)[0][1] for n in (1, 5))
            extra = 1.5 * (ping + statistics.mean(a[2] for a in first) / 500)
            compute.append(once + extra)
            cold.append(statistics.mean(a[0] for a in first) / compute[-1])
            fresh.append(statistics.mean(a[0] for a in again) / (often + extra))
        more = f"mean of 60 functions of the middle; computing and the sum {statistics.median(compute):.0f} us"
        self.row("decompile asked for the first time, wall, over computing and the sum", statistics.median(cold), 1.0, more=more)
        self.row("decompile --fresh, the same", statistics.median(fresh), 1.0)

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
        took = []
        for target in filter(os.path.exists, SIZES):
            server = Server(self.args.scry, self.root + "/c", target, env=self.env)
            try:
                with_client = server.client()
                entry = with_client("open", file=target) and with_client("info")["entry"]
                self.pin(server.proc.pid, self.client_cores)
                text = line("heads", addr=entry, count=1)
                got = [self.tool("connect", self.echo_path, 300, PING, "@" + server.path, text) for _ in range(self.args.rounds)]
            finally:
                server.stop()
            bare, ours = (statistics.median(g[k][0] for g in got) for k in (0, 1))
            self.row(f"connect to first answer, {os.path.getsize(target) / 1e6:.2f} MB, over a bare connect and echo", ours / bare, 3,
                     more=f"{ours:.1f} and {bare:.1f} us")
            took.append(ours / bare)
        self.row("connect to first answer, the most of these over the least", max(took) / min(took), 1.2)

    def mix(self, clients, lines):
        """(answers a second, least and most of a client, processor microseconds of the server and of the clients for one answer)"""
        ms, before = 400, self.cpu_ns(self.server.proc.pid)
        rate, least, most, theirs = self.tool("mix", self.server.path, clients, ms, *lines)[0]
        return rate, least, most, (self.cpu_ns(self.server.proc.pid) - before) / 1000 / (rate * ms / 1000), theirs

    def apart(self, other, lines):
        """Answers a second of two servers that share nothing, each with a client on a core of its own."""
        pairs = ((self.server, self.cores[:1]), (other, self.cores[-1:]))
        for server, cores in pairs:
            self.pin(server.proc.pid, cores)
        tools = [subprocess.Popen([self.args.tool, "mix", server.path, "1", "400", *lines], stdout=subprocess.PIPE, text=True,
                                  preexec_fn=lambda cores=cores: os.sched_setaffinity(0, cores)) for server, cores in pairs]
        return sum(float(t.communicate()[0].split()[0]) for t in tools)

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
        one, eight, two = [], [], []
        other = Server(self.args.scry, self.root + "/o", TARGET, env=self.env)
        other.client()("open", file=TARGET)
        # One client is quickest where both ends share a core, and that is what eight are held against. Whatever else the machine does takes
        # away from either side: of many short rounds the best tells what the server can do.
        for _ in range(4 * self.args.rounds):
            self.on(self.cores[-1:])
            one.append(self.mix(1, lines))
            self.on(self.cores)
            eight.append(self.mix(8, lines))
            two.append(self.apart(other, lines))
        other.stop()
        stop.set()
        editor.join()
        bar = 6 if len(self.cores) >= 8 else 1.6
        one, eight = max(one), max(eight)
        value = eight[0] / one[0]
        print(f"{'8 clients during edits, answers a second over one client':<66} {value:8.2f}x (at least {bar}x on {len(self.cores)} cores)"
              f"{'' if value >= bar else '  UNDER'}  {one[0]:.0f} and {eight[0]:.0f}; least and most of a client {eight[1]:.0f} {eight[2]:.0f}; "
              f"processor time of the server and a client {one[3]:.1f} {one[4]:.1f} and {eight[3]:.1f} {eight[4]:.1f} us")
        print(f"{'two servers with a client each, a core for each pair, over one':<66} {max(two) / one[0]:8.2f}x  {max(two):.0f}; 8 clients give "
              f"{eight[0] / max(two):.2f} of that")

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
