#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Large files of other machines, looked at while they are not here as a whole: what is shown is what the file has, whatever the server and the link do.
Prints TAP. SCRY is the program."""
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from gdbfake import Fake, Gone, packet  # noqa: E402
from workbench import Workbench  # noqa: E402

SCRY = os.environ.get("SCRY", "")
ROOT = tempfile.mkdtemp(prefix="scry-remote-part-")
ENV = dict(os.environ, NO_COLOR="1")
BLOCK = 256 << 10
COUNT = 3000
count = failed = stores = 0


def ok(good, what, *why):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}", flush=True)
    if not good:
        print("# " + "\n".join(map(str, why)).replace("\n", "\n# "), flush=True)
    return good


def skip(what, why):
    global count
    count += 1
    print(f"ok {count} - {what} # skip {why}", flush=True)


def new_store():
    global stores
    stores += 1
    ENV["SCRY_STORE"] = f"{ROOT}/store{stores}"


def scry(*words, **more):
    return subprocess.run([SCRY, *words], env=ENV, capture_output=True, text=True, errors="replace", timeout=600, **more)


def files_in(folder):
    folder = f"{ENV['SCRY_STORE']}/remote/{folder}"
    return [f for f in os.listdir(folder) if not f.endswith(".map")] if os.path.isdir(folder) else []


def make_library():
    """6 MB of functions of 2 KB, each of which says its number."""
    with open(f"{ROOT}/lib.s", "w") as f:
        f.write(".text\n")
        for i in range(COUNT):
            f.write(f".globl fn{i}\n.type fn{i},@function\nfn{i}:\n.cfi_startproc\nmov ${i + 100000},%eax\nimul $3,%eax,%eax\nret\n.cfi_endproc\n.size fn{i},.-fn{i}\n"
                    f".skip 2000,0xcc\n")
        f.write('.section .note.GNU-stack,"",@progbits\n')
    subprocess.run(["gcc", "-shared", "-nostdlib", "-Wl,--build-id=sha1", "-o", f"{ROOT}/lib.so", f"{ROOT}/lib.s"], check=True)
    return open(f"{ROOT}/lib.so", "rb").read()


def code_of(text):
    """Bytes and text of the instructions of a listing."""
    return [list(m) for m in re.findall(r"(?m)^[0-9a-f]+  ([0-9a-f]+) +([^;\n]*[^;\s])", text)]


def shown(i):
    """What a listing of the function has to show."""
    return [["b8" + (i + 100000).to_bytes(4, "little").hex(), f"mov eax,{hex(i + 100000)}"], ["6bc003", "imul eax,eax,0x3"], ["c3", "ret"]]


def disasm(url, i, *words):
    r = scry("disasm", url, f"fn{i}", *words)
    r.code = code_of(r.stdout)
    return r


def is_right(r, i):
    return r.returncode == 0 and r.code == shown(i)


def test_servers():
    """Each kind of server: a listing from a part, a second one from a little more, then the rest and no byte twice."""
    for kind in ("lldb", "gdbserver", "plain"):
        new_store()
        s = Fake({"/lib.so": BODY}, kind)
        url = s.url("/lib.so")
        r = disasm(url, 1500)
        ok(is_right(r, 1500), f"{kind}: a function is shown", r.stdout, r.stderr)
        ok("MiB of the file are here" in r.stderr and "--no-partial" in r.stderr, f"{kind}: and that not all of it is here", r.stderr)
        first = s.given
        ok(first < len(BODY) / 2, f"{kind}: {first} of {len(BODY)} bytes came")
        ok(not files_in("blobs") and len(files_in("partial")) == (kind != "plain"), f"{kind}: nothing has its final name", files_in("blobs"), files_in("partial"))
        if kind == "plain":  # which tells two versions of a file apart by nothing, so nothing is kept half
            s.close()
            continue
        r = disasm(url, 700)
        ok(is_right(r, 700) and s.given - first <= 3 * BLOCK, f"{kind}: another, for {s.given - first} bytes more", r.stdout, r.stderr)
        i = json.loads(scry("info", url, "--json").stdout)
        ok(i.get("partial") is True and i["sha256"] == "" and BLOCK < i["have"] < i["size"] == len(BODY) and i["build_id"], f"{kind}: info says so", i)
        a, b = (json.loads(scry("symbols", of, "--json", "--limit", "100000").stdout)["items"] for of in (url, f"{ROOT}/lib.so"))
        ok(a == b and len(a) > COUNT, f"{kind}: the symbols are those of the whole file", len(a), len(b))
        r = scry("get", url, "-o", f"{ROOT}/out", "--json")
        ok(r.returncode == 0 and open(f"{ROOT}/out", "rb").read() == BODY, f"{kind}: then the rest comes", r.stderr)
        ok(s.given < len(BODY) + (2 << 20), f"{kind}: and what was there did not come again", s.given)
        r = disasm(url, 3)
        ok(is_right(r, 3) and not r.stderr, f"{kind}: now all of it is here", r.stdout, r.stderr)
        i = json.loads(scry("info", url, "--json").stdout)
        ok("partial" not in i and i["sha256"] == hashlib.sha256(BODY).hexdigest(), f"{kind}: and has its hash", i)
        s.close()
    # Without symbols functions are where the unwind tables say.
    new_store()
    with open(f"{ROOT}/local.map", "w") as f:
        f.write("{ local: *; };\n")
    subprocess.run(["gcc", "-shared", "-nostdlib", "-s", f"-Wl,--version-script={ROOT}/local.map", "-Wl,--build-id=sha1", "-o", f"{ROOT}/bare.so", f"{ROOT}/lib.s"],
                   check=True)
    bare = open(f"{ROOT}/bare.so", "rb").read()
    at = next(seg for seg in json.loads(scry("segments", f"{ROOT}/bare.so", "--json").stdout)["items"] if "x" in seg["perm"])
    va = int(at["addr"], 16) + bare.find(bytes.fromhex(shown(1500)[0][0])) - at["file_off"]
    s = Fake({"/bare.so": bare})
    r = scry("disasm", s.url("/bare.so"), hex(va))
    ok(r.returncode == 0 and code_of(r.stdout) == shown(1500) and s.given < len(bare) / 2, "without symbols", hex(va), r.stdout[-2000:], r.stderr)
    s.close()
    new_store()
    s = Fake({"/lib.so": BODY})
    i = json.loads(scry("info", s.url("/lib.so"), "--json", "--no-partial").stdout)
    ok("partial" not in i and i["sha256"] == hashlib.sha256(BODY).hexdigest() and s.given >= len(BODY), "--no-partial waits for all", i)
    new_store()
    i = json.loads(scry("functions", s.url("/lib.so"), "--json", "--limit", "1").stdout)
    ok(i["total"] >= COUNT and len(files_in("blobs")) == 1, "what needs the analysis waits for it", i)
    s.close()


def test_real():
    """Servers as they are installed."""
    servers = [("scry platform", [SCRY, "platform", "--listen", "127.0.0.1:{}", "--allow-remote"])]
    for name in ("lldb-server-19", "lldb-server-14"):
        servers.append((name, [name, "platform", "--server", "--listen", "127.0.0.1:{}"]))
    servers.append(("gdbserver", ["gdbserver", "--multi", "127.0.0.1:{}"]))
    for name, argv in servers:
        if not shutil.which(argv[0]):
            skip(name, "is not installed")
            continue
        new_store()
        port, p = start(argv)
        url = f"connect://127.0.0.1:{port}{ROOT}/lib.so"
        r = disasm(url, 2000)
        ok(is_right(r, 2000) and "are here" in r.stderr, f"{name}: a listing of a part", r.stdout, r.stderr)
        r = scry("get", url, "-o", f"{ROOT}/out")
        ok(r.returncode == 0 and open(f"{ROOT}/out", "rb").read() == BODY, f"{name}: then the rest", r.stderr)
        os.killpg(p.pid, signal.SIGKILL)
        p.wait()


def start(argv):
    """A server on a free port, which answers."""
    import socket
    for _ in range(20):
        with socket.create_server(("127.0.0.1", 0)) as s:
            port = s.getsockname()[1]
        p = subprocess.Popen([w.format(port) for w in argv], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        for _ in range(600):
            # A connection of gdbserver is its only one: whether it listens is read.
            if p.poll() is not None or f":{port:04X} " in "".join(line for line in open("/proc/net/tcp") if " 0A " in line):
                break
            time.sleep(0.05)
        if p.poll() is None:
            return port, p
    raise OSError("no server comes up")


def test_ssh():
    """Over ssh: to a machine with scry, and by SFTP to one without."""
    sftp = [p for p in ("/usr/lib/openssh/sftp-server", "/usr/libexec/sftp-server") if os.path.exists(p)]
    own = f'PATH={os.path.dirname(os.path.abspath(SCRY))}:$PATH; exec sh -c "$1"'
    for name, command, subsystem in (("with scry", own, "exit 9"), ("without, by SFTP", "exit 127", f"exec {sftp[0]}" if sftp else "")):
        if not subsystem:
            skip(f"ssh to a machine {name}", "not installed: apt install openssh-sftp-server")
            continue
        new_store()
        folder = tempfile.mkdtemp(dir=ROOT)
        with open(folder + "/ssh", "w") as f:
            f.write("#!/bin/sh\nwhile [ \"$1\" != -- ]; do [ \"$1\" = -s ] && sub=1; shift; done\nshift 2\n"
                    f"[ -n \"$sub\" ] && {{ {subsystem}; exit; }}\n{command}\n")
        os.chmod(folder + "/ssh", 0o755)
        ENV["PATH"] = folder + ":" + os.environ["PATH"]
        r = disasm(f"ssh://host{ROOT}/lib.so", 2222)
        ok(is_right(r, 2222) and "are here" in r.stderr, f"ssh to a machine {name}", r.stdout, r.stderr)
        r = scry("get", f"ssh://host{ROOT}/lib.so", "-o", f"{ROOT}/out")
        ok(r.returncode == 0 and open(f"{ROOT}/out", "rb").read() == BODY, "then the rest", r.stderr)
        ENV["PATH"] = os.environ["PATH"]


def test_faults():
    """Whatever happens, no byte is shown that the file does not have."""
    # The link is cut, again and again.
    for every in (3, 7):
        new_store()
        left = [every]

        def cut(s, t, raw):
            if t.startswith("vFile:pread"):
                left[0] -= 1
                if not left[0]:
                    left[0] = every
                    raise Gone
            return None
        s = Fake({"/lib.so": BODY}, "lldb", hook=cut)
        r = disasm(s.url("/lib.so"), 1234)
        ok(is_right(r, 1234), f"the link is cut at every {every}th read", r.stdout, r.stderr)
        s.close()
    # It is gone for good when the function's own bytes are asked for.
    at = BODY.find(shown(2500)[0][0] and bytes.fromhex(shown(2500)[0][0]))
    for how in ("gone", "error"):
        new_store()

        def refuse(s, t, raw):
            if t.startswith("vFile:pread"):
                n, off = (int(x, 16) for x in t.rpartition(":")[2].split(",")[1:])
                if off <= at < off + n:
                    if how == "gone":
                        raise Gone
                    return b"F-1,5"
            return None
        s = Fake({"/lib.so": BODY}, "lldb", hook=refuse)
        r = disasm(s.url("/lib.so"), 2500)
        ok(r.returncode in (1, 3, 5) and r.stderr and not any("add [rax],al" in " ".join(line) or line[0].startswith("0000") for line in r.code),
           f"{how}: bytes that never came are not shown", r.returncode, r.stdout, r.stderr)
        ok(not r.stdout or "not fetched yet" in r.stdout, f"{how}: and said not to be here", r.stdout, r.stderr)
        ok(not files_in("blobs"), f"{how}: and nothing has its final name")
        s.close()
    # Another version of the file while it is looked at.
    new_store()

    def change(s, t, raw):
        if t.startswith("vFile:pread"):
            s.mtime = 1800000000
        return None
    s = Fake({"/lib.so": BODY}, "gdbserver", hook=change)
    r = disasm(s.url("/lib.so"), 10)
    ok(r.returncode and "was changed there while it was read" in r.stderr, "the file there becomes another one", r.returncode, r.stdout, r.stderr)
    s.close()
    # ... and between two looks: nothing of the first is taken for the second.
    new_store()
    s = Fake({"/lib.so": BODY}, "gdbserver")
    disasm(s.url("/lib.so"), 10)
    s.files["/lib.so"] = BODY.replace(bytes.fromhex(shown(10)[0][0]), bytes.fromhex(shown(77)[0][0]))
    s.mtime += 1
    r = disasm(s.url("/lib.so"), 10)
    ok(r.returncode == 0 and r.code[0] == shown(77)[0], "between two looks it was replaced", r.stdout, r.stderr)
    s.close()
    # ... and while the link was lost.
    new_store()
    seen = []

    def swap(s, t, raw):
        if t.startswith("vFile:pread"):
            seen.append(t)
            if len(seen) == 4:
                s.mtime += 1
                raise Gone
        return None
    s = Fake({"/lib.so": BODY}, "gdbserver", hook=swap)
    r = disasm(s.url("/lib.so"), 10)
    ok(r.returncode and "was changed there while it was read" in r.stderr, "it was replaced while the link was lost", r.returncode, r.stdout, r.stderr)
    s.close()
    # No room, and none for a cache.
    new_store()
    s = Fake({"/lib.so": BODY})
    r = scry("disasm", s.url("/lib.so"), "fn1", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
    ok(r.returncode in (1, 4, 5) and "no room" in r.stderr and not files_in("blobs"), "the disk is full", r.returncode, r.stderr)
    r = disasm(s.url("/lib.so"), 12, "--no-store")
    ok(is_right(r, 12) and not files_in("partial"), "without a store", r.stdout, r.stderr, files_in("partial"))
    if os.getuid():
        new_store()
        os.makedirs(ENV["SCRY_STORE"], mode=0o500)
        r = disasm(s.url("/lib.so"), 13)
        ok(is_right(r, 13), "in a store that cannot be written", r.stdout, r.stderr)
    s.close()
    # What is no program is said to be none, as of a file of this machine.
    new_store()
    s = Fake({"/text": b"no program\n" * 500000})
    r = scry("info", s.url("/text"))
    ok(r.returncode == 3 and "ELF" in r.stderr, "what is no program", r.returncode, r.stdout, r.stderr)
    s.files["/lib.so"] = BODY[:100] + b"\xff" * (len(BODY) - 100)
    r = scry("info", s.url("/lib.so"))
    local = f"{ROOT}/bad.so"
    open(local, "wb").write(s.files["/lib.so"])
    want = scry("info", local, "--no-store")
    ok(r.returncode == want.returncode, "a header with nothing behind it", r.returncode, r.stderr, want.returncode, want.stderr)
    s.close()


def test_kills():
    """Killed at any moment: what is kept is right, and the next one goes on."""
    new_store()
    s = Fake({"/lib.so": BODY})
    random.seed(3)
    for i in range(12):
        p = subprocess.Popen([SCRY, "disasm", s.url("/lib.so"), f"fn{i * 200}"], env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random.random() * 0.3)
        p.kill()
        p.wait()
    r = disasm(s.url("/lib.so"), 2999)
    ok(is_right(r, 2999), "after twelve kills", r.stdout, r.stderr)
    at_once = [subprocess.Popen([SCRY, "disasm", s.url("/lib.so"), f"fn{i}"], env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for i in (5, 900, 2900)]
    said = [p.communicate(timeout=600) for p in at_once]
    for i, p, (out, err) in zip((5, 900, 2900), at_once, said):
        ok(p.returncode == 0 and code_of(out) == shown(i), f"three at once: fn{i}", out, err)
    ok(not files_in("blobs"), "nothing has its final name")
    s.close()


class Slow:
    """Holds back what is asked for behind the first reads: a byte now and then, so that it is no silence, until it is let go."""

    def __init__(self, free_reads):
        self.left, self.gate, self.is_over = free_reads, threading.Event(), False

    def hook(self, s, t, raw):
        if not t.startswith("vFile:pread") or self.gate.is_set():
            return None
        self.left -= 1
        if self.left >= 0:
            return None
        answer = packet(s.answer(t, s.mine.fds))
        at = 0
        while len(answer) - at > 2048 and not self.gate.wait(2):
            s.mine.socket.sendall(answer[at:at + 2048])
            at += 2048
        return (answer[at:],)


def go(w, name):
    w.ui("keys", "g")
    w.ui("text", name)
    w.ui("keys", "Enter")


def test_workbench():
    """The workbench opens on what is there, says how much that is, and becomes whole."""
    new_store()
    os.environ.update(ENV)
    Workbench.report = staticmethod(ok)
    slow = Slow(6)
    s = Fake({"/lib.so": BODY}, hook=slow.hook)
    w = Workbench(SCRY, ROOT, s.url("/lib.so"), wait="")
    w.shows("a listing while it is being fetched", r"fn0", r"mov +eax,0x186a0", r"fetching +\d+ %")
    go(w, "fn2800")
    w.shows("a place that is not here yet", r"fn2800", r"not fetched yet", r"fetching")
    go(w, "fn1")
    w.shows("while others are", r"mov +eax,0x186a1")
    go(w, "fn2800")
    w.shows("again one that is not", r"not fetched yet")
    slow.gate.set()
    w.shows("it is shown when it is here", r"mov +eax,0x19190")
    w.ui("ui.wait", "until=ready")
    w.shows("and all of it is analysed", r"ready", r"mov +eax,0x19190")
    w.end()
    ok(len(files_in("blobs")) == 1, "it has its final name", files_in("blobs"))
    s.close()
    # The server goes away for good.
    new_store()
    os.environ.update(ENV)
    left = [6]

    def die(s, t, raw):
        if t.startswith("vFile:pread"):
            left[0] -= 1
            if left[0] < 0:
                raise Gone
        return None
    s = Fake({"/lib.so": BODY}, hook=die)
    w = Workbench(SCRY, ROOT, s.url("/lib.so"), wait="")
    w.shows("the server goes away: said, and what is here is still shown", r"failed", r"mov +eax,0x186a0")
    go(w, "fn2800")
    w.shows("and what is not here is not made up", r"fn2800", r"not fetched yet")
    w.end()
    ok(not files_in("blobs"), "nothing has its final name", files_in("blobs"))
    s.close()


try:
    BODY = make_library()
    for test in (test_servers, test_real, test_ssh, test_faults, test_kills, test_workbench):
        if len(sys.argv) < 2 or test.__name__[5:] in sys.argv[1:]:
            test()
finally:
    shutil.rmtree(ROOT, ignore_errors=True)
print(f"1..{count}")
sys.exit(failed > 0)
