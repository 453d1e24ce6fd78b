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


def make_library(whole):
    """100 MiB of functions of 2,000 bytes of real code, with symbols and unwind tables, as a large C++ library has them."""
    count = SIZE // 2140
    with open(ROOT + "/code", "wb") as f:
        f.write(whole[:4 << 20])
    with open(ROOT + "/big.s", "w") as f:
        f.write(".text\n")
        for i in range(count):
            name = f"_ZN7library9componentILi{i}EE3runEv"
            f.write(f'.globl {name}\n.type {name},@function\n{name}:\n.cfi_startproc\npush %rbp\n.cfi_def_cfa_offset 16\nmov %rsp,%rbp\n'
                    f'.incbin "{ROOT}/code",{i * 2000 % (4 << 20) // 2},2000\nleave\nret\n.cfi_endproc\n.size {name},.-{name}\n')
    sh("gcc", "-shared", "-nostdlib", "-Wl,--build-id", "-o", ROOT + "/files/library", ROOT + "/big.s")
    return f"_ZN7library9componentILi{count * 3 // 4}EE3runEv"


def make_files():
    os.makedirs(ROOT + "/files/lib")
    os.makedirs(THERE)
    whole = b"".join(open(os.path.realpath(p), "rb").read() for p in ("/bin/bash", "/usr/bin/python3", "/usr/bin/git", "/usr/bin/gcc") if os.path.exists(p))
    with open(ROOT + "/files/big", "wb") as f:
        f.write((whole * (SIZE // len(whole) + 1))[:SIZE])
    with open(ROOT + "/files/middle", "wb") as f:
        f.write((whole * (SIZE // len(whole) + 1))[:SIZE // 10])
    with open(ROOT + "/files/small", "wb") as f:
        f.write(whole[:SIZE // 100])
    global FUNCTION
    FUNCTION = make_library(whole)
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


def part_rows(args):
    """The first listing of a large library, beside all of it."""
    servers = [("scry platform", 6100, (args.scry, "platform", "--listen", f"{SERVER}:6100", "--allow-remote"))]
    if shutil.which("lldb-server-19"):
        servers.append(("lldb-server-19", 6200, ("lldb-server-19", "platform", "--server", "--listen", "*:6200")))
    if shutil.which("gdbserver"):
        servers.append(("gdbserver", 6300, ("gdbserver", "--multi", ":6300")))
    for name, port, argv in servers:
        server = there(*argv)
        for ms in (0, 20):
            way = Way(args, port, ms)
            url = f"connect://{way.host}:{way.port}{THERE}/library"
            env = dict(os.environ, SCRY_STORE=ROOT + "/store")
            whole, parts = [], {"disasm": [], "symbols": []}
            for _ in range(3):
                whole.append(fresh_get(args, way, THERE + "/library")[0])
                for what, words in (("disasm", (FUNCTION,)), ("symbols", ("--limit", "100"))):
                    shutil.rmtree(ROOT + "/store")
                    s, r = here(args.scry, what, url, *words, env=env)
                    if r.returncode or "of the file are here" not in r.stderr:
                        sys.exit(f"bench_remote: scry {what}: {r.stderr}")
                    parts[what].append(s)
            have = json.loads(here(args.scry, "info", url, "--json", env=env)[1].stdout)
            all_s = statistics.median(whole)
            for what, times in parts.items():
                s = statistics.median(times)
                row(f"first {what} from {name}, +{ms} ms: {s:.2f} s, all of it {all_s:.2f} s ({have['have'] * 100 / have['size']:.1f} % came)", f"{s / all_s:.2f}",
                    "<= 0.5", s / all_s <= 0.5)
            way.close()
        end(server)


def set_rate(rate, burst):
    for where in "sc":
        sh("ip", "netns", "exec", TAG + where, "tc", "qdisc", "change", "dev", "v0", "root", "tbf", "rate", rate, "burst", burst, "latency", "50ms")


def slow_rows(args):
    """Compression is used below the rate where it wins: never slower than the bytes as they are."""
    sender = there("python3", "-c", SEND, "6001", THERE + "/middle")
    server = there(args.scry, "platform", "--listen", f"{SERVER}:6100", "--allow-remote")
    for rate, bar in (("10mbit", 1.0), ("100mbit", 1.0), ("1gbit", 0.8)):
        set_rate(rate, "256kb")
        plain, way, tcp, got, wire = Way(args, 6001, 0), Way(args, 6100, 0), [], [], 0
        for _ in range(2 if rate == "10mbit" else 5):
            tcp.append(here("python3", "-c", RECEIVE, plain.host, str(plain.port), ROOT + "/plain")[0])
            got.append(fresh_get(args, way, THERE + "/middle")[0])
        a, b = statistics.median(tcp), statistics.median(got)
        row(f"10 MiB at {rate}/s from scry platform: {b:.2f} s, plain TCP {a:.2f} s", f"{a / b:.2f}", f">= {bar}", a / b >= bar)
    set_rate("1gbit", "256kb")
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
    sender = there("python3", "-c", SEND, "6002", THERE + "/big")
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
            floor = statistics.median(here("python3", "-c", RECEIVE, SERVER, "6002", ROOT + "/plain")[0] for _ in range(3))
            row(f"the same beside platform get-file: {theirs:.2f} s (plain TCP {floor / theirs:.2f})", f"{ours / theirs:.2f}", "<= 0.2", ours / theirs <= 0.2)
        way.close()
    # It asks for 1 KiB a round trip: a tenth of the bytes at 1 ms, a hundredth at 20 ms, and as much of the time.
    for ms, name, of in ((1, "middle", 10), (20, "small", 100)):
        way = Way(args, 6200, ms)
        idle = lldb_file(way)[0]
        theirs = (lldb_file(way, f"platform get-file {THERE}/{name} {ROOT}/theirs")[0] - idle) * of
        ours = statistics.median(fresh_get(args, way, THERE + "/big")[0] for _ in range(3))
        row(f"beside platform get-file, +{ms} ms: {ours:.2f} s, {theirs:.0f} s (of 1/{of})", f"{ours / theirs:.3f}", "<= 0.2", ours / theirs <= 0.2)
        if ms == 20:
            env = dict(os.environ, SCRY_STORE=ROOT + "/store")
            fresh_get(args, way, THERE + "/lib/app")
            r = json.loads(here(args.scry, "get", f"connect://{way.host}:{way.port}{THERE}/lib/app", "-o", ROOT + "/out", "--json", env=env)[1].stdout)
            row(f"second open at lldb-server-19: {r['transferred']} bytes", f"{r['round_trips']} turns", "0 bytes, <= 2",
                not r["transferred"] and r["round_trips"] <= 2)
        way.close()
    end(sender)
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
    ap.add_argument("--only", nargs="*", help="plain, part, slow, lldb, gdbserver")
    args = ap.parse_args()
    args.scry, args.delay = os.path.abspath(args.scry), os.path.abspath(args.delay)
    try:
        try:
            setup()
        except (subprocess.CalledProcessError, FileNotFoundError) as e:
            print(f"skipped: files of other machines: network namespaces cannot be made ({e})")
            return
        make_files()
        for name, rows in (("plain", plain_rows), ("part", part_rows), ("slow", slow_rows), ("lldb", lldb_rows), ("gdbserver", gdbserver_rows)):
            if not args.only or name in args.only:
                rows(args)
    finally:
        for p in list(started):
            end(p)
        for where in "sc":
            sh("ip", "netns", "del", TAG + where, check=False)
        shutil.rmtree(ROOT, ignore_errors=True)


main()
