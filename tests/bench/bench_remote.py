#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files of other machines: scry get beside plain TCP and LLDB, between two network namespaces at 1 Gbit/s (tbf), latency by bench_delay. Prints the rows of
docs/measuring.md with the bar of each. Needs root for the namespaces; what is not installed is skipped by name."""
import argparse
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
SIZE = 104874136
TAG = f"scry{os.getpid() % 10000}"
SERVER, CLIENT = "10.213.77.1", "10.213.77.2"
ROOT = tempfile.mkdtemp(prefix="scry-bench-remote-")
THERE = ROOT + "/there"
started = []

SEND = """
import socket, sys
s = socket.create_server(("0.0.0.0", int(sys.argv[1])))
while True:
    c = s.accept()[0]
    with open(sys.argv[2], "rb") as f:
        c.sendfile(f)
    c.close()
"""
RECEIVE = """
import socket, sys, os
c = socket.create_connection((sys.argv[1], int(sys.argv[2])))
room = bytearray(1 << 20)
with open(sys.argv[3], "wb") as f:
    while True:
        n = c.recv_into(room)
        if not n: break
        f.write(memoryview(room)[:n])
"""
# One request at a time, as LLDB and GDB do: COUNT bytes of PATH in pieces of CHUNK.
ONE = """
import socket, sys, time
host, port, path, chunk, count = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
c = socket.create_connection((host, port)); c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
data = b""
def ask(p):
    global data
    c.sendall(b"$" + p + b"#%02x" % (sum(p) % 256))
    while True:
        at = data.find(b"$"); end = data.find(b"#", at)
        if at >= 0 and end > 0 and len(data) >= end + 3:
            got = data[at + 1:end]; data = data[end + 3:]
            return got
        data += c.recv(1 << 20)
c.sendall(b"+"); ask(b"QStartNoAckMode"); c.sendall(b"+")
begin = time.monotonic()
names = path.split(",")
for name in names:
    h = name.encode().hex().encode()
    if len(names) > 1: ask(b"qModuleInfo:" + h + b";")
    fd = ask(b"vFile:open:" + h + b",0,180").lstrip(b"F")
    for off in range(0, count, chunk): ask(b"vFile:pread:%s,%x,%x" % (fd, chunk, off))
    ask(b"vFile:close:" + fd)
print(time.monotonic() - begin)
"""


def sh(*words, check=True):
    return subprocess.run(words, check=check, capture_output=True, text=True)


def begin(where, *words, **more):
    p = subprocess.Popen(["ip", "netns", "exec", TAG + where, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                         start_new_session=True, **more)
    started.append(p)
    return p


def end(p):
    try:
        os.killpg(p.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    p.wait()
    started.remove(p)


def there(*words):
    """In the server's namespace, where alone the files can be seen."""
    p = begin("s", "unshare", "-m", "sh", "-c", f'mount --bind {ROOT}/files {THERE} && exec "$@"', "sh", *words)
    time.sleep(1)
    return p


def here(*words, env=None):
    begin_s = time.monotonic()
    r = subprocess.run(["ip", "netns", "exec", TAG + "c", *words], capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL, timeout=300)
    return time.monotonic() - begin_s, r


def setup():
    sh("ip", "netns", "add", TAG + "s")
    sh("ip", "netns", "add", TAG + "c")
    sh("ip", "link", "add", "v0", "netns", TAG + "s", "type", "veth", "peer", "name", "v0", "netns", TAG + "c")
    for where, addr in (("s", SERVER), ("c", CLIENT)):
        for words in (("ip", "addr", "add", addr + "/24", "dev", "v0"), ("ip", "link", "set", "v0", "up"), ("ip", "link", "set", "lo", "up"),
                      ("tc", "qdisc", "add", "dev", "v0", "root", "tbf", "rate", "1gbit", "burst", "256kb", "latency", "50ms")):
            sh("ip", "netns", "exec", TAG + where, *words)


def make_files():
    os.makedirs(ROOT + "/files/lib")
    os.makedirs(THERE)
    whole = b"".join(open(os.path.realpath(p), "rb").read() for p in ("/bin/bash", "/usr/bin/python3", "/usr/bin/git", "/usr/bin/gcc") if os.path.exists(p))
    with open(ROOT + "/files/big", "wb") as f:
        f.write((whole * (SIZE // len(whole) + 1))[:SIZE])
    names = []
    for i in range(100):
        names.append(f"libsmall{i}.so")
        with open(ROOT + "/small.c", "w") as f:
            f.write(f"int small{i}(void) {{ return {i}; }}\nchar pad{i}[16000] = {{1}};\n")
        sh("gcc", "-shared", "-fPIC", "-o", f"{ROOT}/files/lib/{names[-1]}", ROOT + "/small.c")
    with open(ROOT + "/app.c", "w") as f:
        f.write("int main(void) { return 0; }\n")
    sh("gcc", "-Wl,--no-as-needed", "-o", ROOT + "/files/lib/app", ROOT + "/app.c", "-L" + ROOT + "/files/lib", *[f"-l:{n}" for n in names], "-Wl,--unresolved-symbols=ignore-all")
    return names


class Way:
    """The way to a port of the server, `ms` longer there and back."""

    def __init__(self, args, port, ms):
        self.proxy, self.host, self.port = None, SERVER, port
        if ms:
            self.host, self.port = "127.0.0.1", port + 1000 + int(ms)
            self.proxy = begin("c", args.delay, str(self.port), SERVER, str(port), str(ms / 2))
            time.sleep(0.3)

    def close(self):
        if self.proxy:
            end(self.proxy)


def fresh_get(args, way, path, *words):
    """Seconds of scry get into an empty store, its document, and whether the bytes are right."""
    shutil.rmtree(ROOT + "/store", ignore_errors=True)
    if os.path.exists(ROOT + "/out"):
        os.unlink(ROOT + "/out")
    env = dict(os.environ, SCRY_STORE=ROOT + "/store")
    s, r = here(args.scry, "get", f"connect://{way.host}:{way.port}{path}", "-o", ROOT + "/out", "--json", *words, env=env)
    if r.returncode:
        sys.exit(f"bench_remote: scry get: {r.stderr}")
    return s, json.loads(r.stdout)


def fastest(times, do):
    return statistics.median(do() for _ in range(times))


def row(what, value, bar, good):
    print(f"{what:74} {value:>14}   bar {bar:16} {'met' if good else 'MISSED'}", flush=True)


def plain_rows(args):
    sender = there("python3", "-c", SEND, "6000", THERE + "/big")
    server = there(args.scry, "platform", "--listen", f"{SERVER}:6100", "--allow-remote")
    for ms, bar in ((0, 0.90), (1, 0.85), (5, 0.85), (20, 0.80)):
        plain, way = Way(args, 6000, ms), Way(args, 6100, ms)
        tcp, got = [], []
        for _ in range(3):
            tcp.append(here("python3", "-c", RECEIVE, plain.host, str(plain.port), ROOT + "/plain")[0])
            got.append(fresh_get(args, way, THERE + "/big")[0])
        a, b = statistics.median(tcp), statistics.median(got)
        row(f"100 MiB from scry platform, +{ms} ms: {b:.2f} s, plain TCP {a:.2f} s", f"{a / b:.2f}", f">= {bar}", a / b >= bar)
        plain.close()
        way.close()
    way = Way(args, 6100, 20)
    env = dict(os.environ, SCRY_STORE=ROOT + "/store")
    fresh_get(args, way, THERE + "/lib/app")
    r = json.loads(here(args.scry, "get", f"connect://{way.host}:{way.port}{THERE}/lib/app", "-o", ROOT + "/out", "--json", env=env)[1].stdout)
    row(f"second open, nothing changed: {r['transferred']} bytes", f"{r['round_trips']} turns", "0 bytes, <= 2", not r["transferred"] and r["round_trips"] <= 2)
    way.close()
    end(sender)
    end(server)


def lldb_file(way, *commands):
    home = tempfile.mkdtemp(dir=ROOT)
    words = ["lldb-19", "--no-lldbinit", "-b", "-o", "settings set script-lang none", "-o", "platform select remote-linux", "-o",
             f"platform connect connect://{way.host}:{way.port}"]
    for c in commands:
        words += ["-o", c]
    s, r = here(*words, env=dict(os.environ, HOME=home))
    shutil.rmtree(home, ignore_errors=True)
    return s, r


def lldb_rows(args):
    if not shutil.which("lldb-server-19") or not shutil.which("lldb-19"):
        print("skipped: lldb-server-19 (apt install lldb-19)")
        return
    server = there("lldb-server-19", "platform", "--server", "--listen", "*:6200")
    for ms, bar in ((0, 0.65), (20, 0.35)):
        way = Way(args, 6200, ms)
        # In turn, so that what else the machine does falls on all of them.
        idle, theirs, copied, ours = [], [], [], []
        for _ in range(3):
            idle.append(lldb_file(way)[0])
            theirs.append(lldb_file(way, f"file {THERE}/big")[0])
            ours.append(fresh_get(args, way, THERE + "/big")[0])
            if not ms:
                copied.append(lldb_file(way, f"platform get-file {THERE}/big {ROOT}/theirs")[0])
        idle, ours, theirs = statistics.median(idle), statistics.median(ours), statistics.median(theirs)
        row(f"100 MiB from lldb-server-19, +{ms} ms: {ours:.2f} s, lldb-19 {theirs - idle:.2f} s", f"{ours / (theirs - idle):.2f}", f"<= {bar}",
            ours / (theirs - idle) <= bar)
        if not ms:
            theirs = statistics.median(copied) - idle
            row(f"the same beside platform get-file: {theirs:.2f} s", f"{ours / theirs:.2f}", "<= 0.2", ours / theirs <= 0.2)
        way.close()
    way = Way(args, 6200, 20)
    names = ",".join(f"{THERE}/lib/libsmall{i}.so" for i in range(100))
    theirs = float(here("python3", "-c", ONE, way.host, str(way.port), names, "524288", "1")[1].stdout)
    shutil.rmtree(ROOT + "/store", ignore_errors=True)
    ours, r = here(args.scry, "get", "--libs", f"connect://{way.host}:{way.port}{THERE}/lib/app", "-o", ROOT + "/libs", "--json",
                   env=dict(os.environ, SCRY_STORE=ROOT + "/store"))
    n = sum(bool(f["path"]) and "libsmall" in f["url"] for f in json.loads(r.stdout)["files"])
    row(f"{n} small libraries, +20 ms: {ours:.2f} s, four round trips each {theirs:.2f} s", f"{ours / theirs:.3f}", "<= 0.06", n == 100 and ours / theirs <= 0.06)
    way.close()
    end(server)


def gdbserver_rows(args):
    if not shutil.which("gdbserver"):
        print("skipped: gdbserver (apt install gdbserver)")
        return
    server = there("gdbserver", "--multi", ":6300")
    way = Way(args, 6300, 20)
    ours = statistics.median(fresh_get(args, way, THERE + "/big")[0] for _ in range(2))
    count = 1 << 20
    theirs = float(here("python3", "-c", ONE, way.host, str(way.port), THERE + "/big", "16384", str(count))[1].stdout) * SIZE / count
    row(f"100 MiB from gdbserver, +20 ms: {ours:.2f} s, one at a time {theirs:.0f} s (of 1 MiB)", f"{theirs / ours:.0f}x", ">= 15x", theirs / ours >= 15)
    way.close()
    end(server)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--scry", required=True)
    ap.add_argument("--delay", required=True)
    ap.add_argument("--only", nargs="*", help="plain, lldb, gdbserver")
    args = ap.parse_args()
    args.scry, args.delay = os.path.abspath(args.scry), os.path.abspath(args.delay)
    try:
        try:
            setup()
        except (subprocess.CalledProcessError, FileNotFoundError) as e:
            print(f"skipped: files of other machines: network namespaces cannot be made ({e})")
            return
        make_files()
        for name, rows in (("plain", plain_rows), ("lldb", lldb_rows), ("gdbserver", gdbserver_rows)):
            if not args.only or name in args.only:
                rows(args)
    finally:
        for p in list(started):
            end(p)
        for where in "sc":
            sh("ip", "netns", "del", TAG + where, check=False)
        shutil.rmtree(ROOT, ignore_errors=True)


main()
