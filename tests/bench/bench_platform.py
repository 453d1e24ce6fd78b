#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_platform.py SCRY [MB]: our platform server beside lldb-server-19, on loopback, side by side, three turns. Prints ratios against their bars:
the server's CPU for a file in pieces of 512 KiB, the time of lldb-19 as a client that fetches a module of that length, and of its get-file.
What is fetched is made here: machine code of this machine's libraries, up to MB megabytes (100)."""
import glob
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from rspclient import Platform, Rsp, hexed  # noqa: E402

LLDB, LLDB_SERVER = "lldb-19", "lldb-server-19"
TURNS = 3
CHUNK = 512 << 10


def make_module(path, length):
    """A library with a build-id of its own whose bytes are those of real ones."""
    source = path + ".c"
    with open(source, "w", encoding="ascii") as f:
        f.write("int the_answer(void) { return 42; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,--build-id", "-o", path, source], check=True)
    os.unlink(source)
    with open(path, "ab") as f:
        for lib in sorted(glob.glob("/usr/lib/x86_64-linux-gnu/*.so*"), key=os.path.getsize, reverse=True):
            if f.tell() >= length:
                break
            if not os.path.islink(lib):
                with open(lib, "rb") as g:
                    f.write(g.read(length - f.tell()))


def cpu_s(pid):
    """Of the process and all its children, those that ended among them."""
    total = 0
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(stat, encoding="ascii", errors="replace") as f:
                fields = f.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        own = int(stat.split("/")[2])
        if own == pid or int(fields[1]) == pid:
            total += sum(map(int, fields[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


class Lldb:
    """lldb-server-19 in platform mode."""

    def __init__(self, cwd, before):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.at = s.getsockname()
        self.proc = subprocess.Popen([*before, LLDB_SERVER, "platform", "--server", "--listen", f"127.0.0.1:{self.at[1]}"], cwd=cwd, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
        while True:
            try:
                socket.create_connection(self.at).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.02)

    def client(self):
        return Rsp(self.at)

    def stop(self):
        self.proc.kill()
        self.proc.wait()


def read_all(server, path, length):
    """Seconds of CPU of the server, in pieces of 512 KiB, one after the other."""
    before = cpu_s(server.proc.pid)
    c = server.client()
    fd = int(c.ask(f"vFile:open:{hexed(path)},0,0")[1:], 16)
    off = 0
    # Replies are counted and not unescaped: only the server is measured.
    while off < length:
        c.send(f"vFile:pread:{fd:x},{min(CHUNK, length - off):x},{off:x}")
        buf = b""
        while not re.search(rb"#[0-9a-f]{2}\Z", buf[-3:]):
            buf += c.sock.recv(4 << 20)
        off += int(re.match(rb"\$F([0-9a-f]+);", buf).group(1), 16)
    spent = cpu_s(server.proc.pid) - before
    c.close()
    return spent


def lldb_fetch(server, path, length, home, what):
    """Seconds until lldb-19 has it."""
    shutil.rmtree(home, ignore_errors=True)
    os.makedirs(home)
    begin = time.monotonic()
    command = f"target create {path}" if what == "module" else f"platform get-file {path} {home}/got"
    r = subprocess.run([LLDB, "--no-lldbinit", "-b", "-o", "settings set script-lang none", "-o", "platform select remote-linux", "-o",
                        f"platform connect connect://127.0.0.1:{server.at[1]}", "-o", command], env=dict(os.environ, HOME=home), capture_output=True,
                       text=True, check=False)
    spent = time.monotonic() - begin
    came = max((os.path.getsize(f) for f in glob.glob(home + "/**/*", recursive=True) + glob.glob(home + "/.lldb/**/*", recursive=True)
                  + glob.glob(home + "/.lldb/module_cache/*/.cache/*/*") if os.path.isfile(f)), default=0)
    if came != length:
        raise RuntimeError(f"{what}: {came} bytes came\n{r.stdout[-500:]}\n{r.stderr[-500:]}")
    return spent


def measure(name, bar, ours, theirs):
    ratio = statistics.median(ours) / max(statistics.median(theirs), 1e-9)
    print(f"{name}: scry {statistics.median(ours):.2f} s, {LLDB_SERVER} {statistics.median(theirs):.2f} s: {ratio:.2f} of it "
          f"(bar {bar:.2f}) {'ok' if ratio <= bar else 'MISSED'}", flush=True)
    return ratio <= bar


def main():
    scry, mb = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100
    for tool in (LLDB, LLDB_SERVER):
        if not shutil.which(tool):
            print(f"skipped: {tool} is not here (apt-get install lldb-19)")
            return 0
    if os.geteuid():
        print("skipped: the servers see a folder that the clients do not, by a mount of their own, which needs root")
        return 0
    top = tempfile.mkdtemp(prefix="scry-bench-platform-")
    real, far = top + "/real", top + "/far"
    before = ("unshare", "-m", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', real, far)
    good = True
    try:
        os.makedirs(real)
        os.makedirs(far)
        make_module(real + "/libbig.so", mb << 20)
        path, length = far + "/libbig.so", os.path.getsize(real + "/libbig.so")
        rows = {"cpu": ([], []), "module": ([], []), "get-file": ([], [])}
        for _ in range(TURNS):
            servers = Platform(scry, "--listen", "127.0.0.1:0", "--allow-remote", "--allow-run", cwd=top, before=before), Lldb(top, before)
            for at, server in enumerate(servers):
                rows["cpu"][at].append(read_all(server, path, length))
                rows["module"][at].append(lldb_fetch(server, path, length, top + "/home", "module"))
                rows["get-file"][at].append(lldb_fetch(server, path, length, top + "/home", "get-file"))
                server.stop()
        good &= measure(f"server CPU for {mb} MiB in pieces of 512 KiB", 0.20, *rows["cpu"])
        good &= measure(f"lldb-19 fetching a module of {mb} MiB", 0.50, *rows["module"])
        measure(f"lldb-19 get-file of {mb} MiB (1 KiB at a time, no bar)", 1.0, *rows["get-file"])
    finally:
        shutil.rmtree(top, ignore_errors=True)
    return 0 if good else 1


sys.exit(main())
