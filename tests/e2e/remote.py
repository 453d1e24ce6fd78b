#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files of other machines: fetched, kept, sent. Against a server that lies, stalls, dies and cuts, and against lldb-server, gdbserver, qemu-user and ssh
where they are. Prints TAP. SCRY is the program."""
import json
import os
import random
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from gdbfake import Fake, Gone, build_id, escape, packet  # noqa: E402

SCRY = os.environ.get("SCRY", "")
ROOT = tempfile.mkdtemp(prefix="scry-remote-")
ENV = dict(os.environ, NO_COLOR="1")
# A whole program has a build-id; behind it bytes of all kinds, so that it has several blocks and much to escape.
PROGRAM = open(os.path.realpath("/bin/true"), "rb").read()
random.seed(7)
BODY = PROGRAM + random.randbytes(2500000 - len(PROGRAM))
ID = build_id(PROGRAM)
count = failed = stores = 0


def ok(good, what, *why):
    global count, failed
    why = " ".join(map(str, why))
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}", flush=True)
    if not good and why:
        print("# " + str(why).replace("\n", "\n# "), flush=True)
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


def get(url, *words, out="out"):
    """Fetches; gives the document and what was said. A failure leaves nothing under the name."""
    path = f"{ROOT}/{out}"
    if os.path.exists(path):
        os.unlink(path)
    r = scry("get", url, "-o", path, "--json", *words)
    r.doc = json.loads(r.stdout) if r.stdout else {}
    r.body = open(path, "rb").read() if os.path.exists(path) else None
    return r


def blobs():
    folder = ENV["SCRY_STORE"] + "/remote/blobs"
    return os.listdir(folder) if os.path.isdir(folder) else []


def fetched(what, server, path="/bin/prog", body=BODY):
    r = get(server.url(path))
    ok(r.returncode == 0 and r.body == body, what, r.stderr)
    return r


def test_kinds():
    """Each kind of server, twice; only the first time are bytes given out."""
    for kind in ("lldb", "gdbserver", "plain"):
        new_store()
        s = Fake({"/bin/prog": BODY}, kind)
        fetched(f"{kind}: bytes are equal", s)
        given = s.given
        r = fetched(f"{kind}: again", s)
        if kind == "plain":  # nothing says that it is the same
            continue
        ok(s.given == given and r.doc["cached"] and r.doc["transferred"] == 0, f"{kind}: the second time no byte of it came", (s.given, given))
        ok(r.doc["round_trips"] <= (3 if kind == "gdbserver" else 2), f"{kind}: in {r.doc['round_trips']} round trips")
        s.close()
    # Descriptors are guessed. Where they are others it takes a round trip more, and one that is another file's is not taken for it.
    for first in (1, 300):
        new_store()

        def others(s, t, raw):
            if t.startswith("vFile:open"):
                s.mine.fds.update({5: "/bin/other", first: "/bin/prog"})
                return b"F%x" % first
            return None
        s = Fake({"/bin/prog": BODY, "/bin/other": BODY[:1000]}, "lldb", hook=others)
        fetched(f"a server whose descriptors begin at {first}", s)
        r = fetched(f"again from {first}", s)
        ok(r.doc["cached"] and r.doc["round_trips"] == 3, f"in {r.doc['round_trips']} round trips")
        s.close()
    new_store()
    for size in (0, 1, 8191, 8192, 8193, 262144, 262145):
        for kind in ("lldb", "plain"):
            s = Fake({"/x": BODY[100:100 + size]}, kind)
            r = get(s.url("/x"))
            if not (r.returncode == 0 and r.body == BODY[100:100 + size]):
                ok(False, f"{size} bytes from {kind}", r.stderr)
            s.close()
    ok(True, "lengths about the edges of blocks")
    s = Fake({"/x y/ü'$`": b"odd name"})
    ok(get(s.url("/x y/ü'$`")).body == b"odd name", "a path with odd characters")
    s.close()


def test_said():
    """What is not to be had is called by its name."""
    new_store()
    s = Fake({"/bin/prog": BODY})
    r = get(s.url("/nope"))
    ok(r.returncode == 1 and "there is no such file there" in r.stderr and r.body is None, "a file that is not there", r.stderr)
    s.hook = lambda s, t, raw: b"F-1,d" if t.startswith("vFile:open") else None
    r = get(s.url("/bin/prog"))
    ok(r.returncode == 1 and "may not read it" in r.stderr and "Permission" in r.stderr, "EACCES is called that", r.stderr)
    s.hook = lambda s, t, raw: b"" if t != "QStartNoAckMode" else None
    r = get(s.url("/bin/prog"))
    ok(r.returncode == 3 and "does not give out files" in r.stderr, "a server without files", f"{r.returncode}: {r.stderr}")
    s.close()
    r = get(s.url("/bin/prog"))
    ok(r.returncode == 5 and "Connection refused" in r.stderr, "nobody there", f"{r.returncode}: {r.stderr}")
    r = get("connect://-x:1/y")
    ok(r.returncode == 2 and "begins with -" in r.stderr, "a host that begins with -", r.stderr)
    ok(get("connect://127.0.0.1:1/..").returncode == 5 and scry("get", "connect://127.0.0.1:1/..").returncode == 2, "a name that is none")


def test_sizes():
    """What a server would read wrong is refused, and what cannot be kept."""
    for kind, size, want in (("lldb", 5 << 30, "beyond 4 GiB"), ("gdbserver", 3 << 30, "beyond 2 GiB"), ("lldb", 1 << 60, ""), ("gdbserver", 1 << 60, "")):
        new_store()

        def huge(s, t, raw):
            if t.startswith("vFile:size"):
                return b"F%x" % size if kind == "lldb" else b""
            if t.startswith("vFile:fstat"):
                return b"F40;" + escape(struct.pack(">7I3Q3I", 1, 2, 0o100755, 1, 0, 0, 0, size, 4096, 1, 0, 0, 0))
            return b"E03" if t.startswith("qModuleInfo") else None
        s = Fake({"/bin/prog": BODY}, kind, hook=huge)
        r = get(s.url("/bin/prog"))
        ok(r.returncode in (1, 3) and want in r.stderr and not blobs() and s.given < 1 << 20, f"{kind}: a file of {size} bytes", r.stderr)
        s.close()
    new_store()

    def terabytes(s, t, raw):
        return b"F%x" % (3 << 30) if t.startswith("vFile:size") else b"F-1,16" if t.startswith("vFile:fstat") else b"E03" if t.startswith("qModuleInfo") else None
    s = Fake({"/bin/prog": BODY}, hook=terabytes)
    r = get(s.url("/bin/prog"))
    ok(r.returncode in (1, 3, 5) and r.body is None and not blobs(), "3 GiB that are a lie", r.stderr)
    s.close()


def lies(what, hook, want, kind="lldb", wire=None, code=(1, 3, 5), words=(), features=None):
    """A server that lies: refused with that reason, and nothing is kept."""
    new_store()
    s = Fake({"/bin/prog": BODY}, kind, hook=hook, wire=wire, features=features)
    r = get(s.url("/bin/prog"), *words)
    ok(r.returncode in code and want in r.stderr and r.body is None and not blobs(), what, f"{r.returncode}: {r.stderr}")
    s.close()


def on(prefix, answer):
    return lambda s, t, raw: answer if t.startswith(prefix) else None


def test_lies():
    lies("a length that is too long", on("vFile:size", b"F%x" % (len(BODY) + 5)), "says that it has")

    def longer(s, t, raw):
        if t.startswith("vFile:size") or t.startswith("qModuleInfo") or t.startswith("vFile:fstat"):
            return b"F%x" % (len(BODY) + 300000) if t.startswith("vFile:size") else b""
        return None
    lies("the same, said everywhere", longer, "it ends at byte")

    def shorter(s, t, raw):
        if t.startswith("vFile:size") or t.startswith("qModuleInfo") or t.startswith("vFile:fstat"):
            return b"F%x" % (len(BODY) - 300000) if t.startswith("vFile:size") else b""
        return None
    lies("a length that is too short", shorter, "goes on behind")
    uuid = ID[:-1] + bytes([ID[-1] ^ 1])
    lies("another build-id", on("qModuleInfo", b"uuid:%s;file_offset:0;file_size:%x;" % (uuid.hex().upper().encode().hex().encode(), len(BODY))),
         "promises build-id")
    lies("another hash", on("vFile:MD5", b"F," + b"0" * 32), "do not have the hash")
    lies("more bytes than were asked for", on("vFile:pread", b"F80000;" + b"x" * 0x80000), "bytes where")
    lies("a count that is not that of the bytes", on("vFile:pread", b"Fffffffff;abc"), "bytes follow and sends 3")
    lies("a negative count", on("vFile:pread", b"F-5,0;abc"), "")
    lies("an answer of half a stat", on("vFile:fstat", b"F40;abc"), "fstat has 3 bytes")
    lies("a packet without an end", lambda s, t, raw: (b"$" + b"a" * (30 << 20),) if t.startswith("vFile:pread") else None, "MiB came")
    lies("runs without an end", lambda s, t, raw: (packet(b"F1;a" + b"*~" * 400000),) if t.startswith("vFile:pread") else None, "expands to more than")
    lies("a run of nothing", on("vFile:pread", b"*~"), "malformed")
    lies("an escape of nothing", on("vFile:pread", b"F1;}"), "malformed")
    lies("a wrong checksum", lambda s, t, raw: (b"$F1;a#12",) if t.startswith("vFile:pread") else None, "wrong checksum")
    lies("a wrong checksum, always, with acks", lambda s, t, raw: (b"$F1;a#12" * 9,) if t.startswith("vFile:pread") else None, "damaged", kind="plain")
    lies("noise without an end", lambda s, t, raw: (b"abc" * 100000,) if t.startswith("vFile:pread") else None, "not the gdb remote protocol")
    lies("acks without an end", lambda s, t, raw: (b"+" * 300000,) if t.startswith("vFile:pread") else None, "not the gdb remote protocol")
    lies("no gdb server at all", lambda s, t, raw: (b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9000,), "not the gdb remote protocol")
    lies("a file without an end", lambda s, t, raw: b"F1;x" if t.startswith("vFile:pread") else None, "gives no end", kind="plain")
    lies("silence", lambda s, t, raw: (b"",) if t.startswith("vFile:pread") else None, "stalled", words=("--stall", "1"))
    lies("silence from the first byte on", lambda s, t, raw: (b"",), "stalled", words=("--stall", "1"))

    def changing(s, t, raw):
        if t.startswith("vFile:fstat"):
            s.mtime += 1
        return None
    lies("a file that changes meanwhile", changing, "was changed there while it was read")
    new_store()
    s = Fake({"/bin/prog": BODY}, hook=on("qModuleInfo", b"uuid:%s;file_path:%s;file_offset:0;file_size:4;hostname:2e2e;" % (
        b"../../../../etc".hex().encode(), b"../../etc/passwd".hex().encode())))
    fetched("names that lead elsewhere lead nowhere", s)
    ok(len(blobs()) == 1 and all(len(b) == 64 for b in blobs()), "and nothing is named by them", blobs())
    s.close()
    new_store()
    s = Fake({"/bin/prog": BODY}, wire=lambda s, data: data)
    s.send = lambda c, data: [c.send(data[i:i + 1]) for i in range(len(data))] if len(data) < 3000 else c.sendall(data)
    fetched("packets that come byte by byte", s)
    s.close()


def test_cuts():
    """The link is cut after every tenth of the file; what has come is not asked for again."""
    new_store()
    state = {"cut": len(BODY) // 10}

    def cut(s, t, raw):
        if t.startswith("vFile:pread") and s.given >= state["cut"]:
            state["cut"] = s.given + len(BODY) // 10
            raise Gone
        return None
    s = Fake({"/bin/prog": BODY}, "gdbserver", hook=cut)
    tries, r = 0, None
    while tries < 30 and (r is None or r.returncode):
        tries += 1
        r = get(s.url("/bin/prog"))
    ok(r.returncode == 0 and r.body == BODY, "a link that is cut at every tenth gives the bytes in the end", r.stderr)
    # Lost is at most what was under way and the block begun, each time.
    ok(s.connections >= 9 and s.given < len(BODY) * 2.5, f"{s.given} bytes were given out for {len(BODY)} over {s.connections} connections")
    s.close()
    # Another version of the file is not the rest of the first.
    new_store()
    s = Fake({"/bin/prog": BODY}, "gdbserver", hook=lambda s, t, raw: die(s) if t.startswith("vFile:pread") and s.given > len(BODY) // 2 else None)
    r = get(s.url("/bin/prog"))
    ok(r.returncode == 5 and r.body is None, "a server that dies for good", r.stderr)
    other = BODY[:1000] + bytes(1000) + BODY[2000:]
    s.hook, s.files, s.mtime = None, {"/bin/prog": other}, 1700000001
    fetched("the rest of another version is not put behind", s, body=other)
    s.close()


def die(s):
    raise Gone


def test_kills():
    """kill -9 at random: never a wrong or partial file under a final name."""
    new_store()
    s = Fake({"/bin/prog": BODY, "/bin/other": BODY[::-1]}, "gdbserver")
    path, bad, done = ROOT + "/killed", [], 0
    rng = random.Random(11)
    for i in range(200):
        if os.path.exists(path):
            os.unlink(path)
        p = subprocess.Popen([SCRY, "get", s.url("/bin/prog"), "-o", path], env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.random() * 0.12)
        p.send_signal(signal.SIGKILL)
        p.wait()
        done += p.returncode == 0
        if os.path.exists(path) and open(path, "rb").read() != BODY:
            bad.append(f"round {i}: a wrong file")
        for name in blobs():
            blob = open(f"{ENV['SCRY_STORE']}/remote/blobs/{name}", "rb").read()
            import hashlib
            if hashlib.sha256(blob).hexdigest() != name:
                bad.append(f"round {i}: a wrong blob")
            # Begin anew, so that there is something to kill.
            shutil.rmtree(ENV["SCRY_STORE"] + "/remote/keys")
            os.unlink(f"{ENV['SCRY_STORE']}/remote/blobs/{name}")
    ok(not bad, f"200 times killed, {done} had ended before", bad[:5])
    r = get(s.url("/bin/prog"))
    ok(r.returncode == 0 and r.body == BODY, "and after that it is fetched", r.stderr)
    left = [n for n in os.listdir(ROOT) if n.startswith("killed.tmp")]
    for n in left:
        os.unlink(f"{ROOT}/{n}")
    s.close()


def test_two_at_once():
    """Two that want the same file: it comes once, and both have it."""
    new_store()
    second = threading.Event()

    def wait_for_second(s, t, raw):
        # The first may go on when the second has asked for the same file.
        if t.startswith("vFile:fstat"):
            state["stats"] += 1
            if state["stats"] == 2:
                second.set()
        if t.startswith("vFile:pread"):
            second.wait(120)
        return None
    state = {"stats": 0}
    s = Fake({"/bin/prog": BODY}, hook=wait_for_second)
    both = [subprocess.Popen([SCRY, "get", s.url("/bin/prog"), "-o", f"{ROOT}/both{i}"], env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for i in range(2)]
    said = [p.communicate(timeout=300)[1] for p in both]
    ok(all(p.returncode == 0 for p in both) and all(open(f"{ROOT}/both{i}", "rb").read() == BODY for i in range(2)), "both have it", said)
    ok(s.given == len(BODY), f"and it came once: {s.given} bytes of {len(BODY)}")
    s.close()


def test_cache():
    new_store()
    s = Fake({"/bin/prog": BODY, "/bin/other": BODY[::-1], "/lib/third": BODY[5:]})
    for path in ("/bin/prog", "/bin/other", "/lib/third"):
        get(s.url(path))
    rows = json.loads(scry("cache", "list", "--json").stdout)["items"]
    ok(sorted(r["url"] for r in rows) == sorted(s.url(p) for p in s.files) and {r["bytes"] for r in rows} == {len(BODY), len(BODY) - 5}, "the list", rows)
    ok(rows[[r["url"] for r in rows].index(s.url("/bin/prog"))]["build_id"] == ID.hex(), "with the build-id")
    # Damaged on disk, with the length it had.
    victim = [r for r in rows if r["url"] == s.url("/bin/prog")][0]
    path = f"{ENV['SCRY_STORE']}/remote/blobs/{victim['sha256']}"
    os.chmod(path, 0o600)
    with open(path, "r+b") as f:
        f.seek(1234567)
        f.write(b"damaged")
    given = s.given
    fetched("a file that was damaged here is fetched again", s)
    ok(s.given == given + len(BODY), "all of it")
    os.chmod(path, 0o600)
    with open(path, "r+b") as f:
        f.write(b"damaged")
    r = scry("cache", "verify", "--json")
    states = {i["url"]: i["state"] for i in json.loads(r.stdout)["items"]}
    ok(r.returncode == 3 and states[s.url("/bin/prog")] == "damaged" and states[s.url("/lib/third")] == "intact" and "1 damaged" in r.stderr,
       "verify finds what is damaged", r.stdout + r.stderr)
    ok(len(blobs()) == 2, "and removes it")
    # Another server with the same file has its own word and its own bytes.
    t = Fake({"/bin/prog": BODY[:-1] + b"!"})
    r = get(t.url("/bin/prog"))
    ok(r.body == BODY[:-1] + b"!" and fetched("a build-id that another server has, too", s).body == BODY, "leads to the bytes of each", r.stderr)
    t.close()
    os.utime(ENV["SCRY_STORE"] + "/remote/keys")
    for k in os.listdir(ENV["SCRY_STORE"] + "/remote/keys"):
        os.utime(f"{ENV['SCRY_STORE']}/remote/keys/{k}", (1600000000, 1600000000))
    get(s.url("/lib/third"))
    r = scry("cache", "prune", "--limit", str(len(BODY) + 10), "--json")
    rows = json.loads(scry("cache", "list", "--json").stdout)["items"]
    ok(r.returncode == 0 and json.loads(r.stdout)["freed"] > len(BODY) and [i["url"] for i in rows] == [s.url("/lib/third")],
       "prune keeps what was used last", (r.stdout, rows))
    scry("cache", "prune", "--limit", "0")
    ok(not blobs() and not os.listdir(ENV["SCRY_STORE"] + "/remote/keys"), "and nothing when told so")
    s.close()


def test_no_store():
    s = Fake({"/bin/prog": BODY})
    ENV["SCRY_STORE"] = "/proc/nowhere"
    r = get(s.url("/bin/prog"))
    ok(r.returncode == 0 and r.body == BODY and "is not kept" in r.stderr, "a store that cannot be written is said, and the file fetched", r.stderr)
    new_store()
    r = get(s.url("/bin/prog"), "--no-store")
    ok(r.returncode == 0 and r.body == BODY and not os.path.exists(ENV["SCRY_STORE"] + "/remote"), "without a store nothing is kept", r.stderr)
    r = scry("get", s.url("/bin/prog"), "-o", "/nowhere/at/all")
    ok(r.returncode in (3, 5) and "/nowhere/at/all" in r.stderr, "a place that cannot be written", r.stderr)
    disk = ROOT + "/small"
    os.mkdir(disk)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "none", disk], capture_output=True).returncode == 0:
        try:
            ENV["SCRY_STORE"] = disk + "/store"
            r = get(s.url("/bin/prog"))
            ok(r.returncode == 5 and "no room for" in r.stderr and r.body is None and not blobs(), "a full disk", r.stderr)
        finally:
            subprocess.run(["umount", disk])
    else:
        skip("a full disk", "mounting needs root")
    s.close()


def test_anywhere():
    """A URL where a file is accepted: fetched, analysed, kept."""
    new_store()
    s = Fake({"/bin/true": PROGRAM})
    url = s.url("/bin/true")
    there, here = scry("info", url, "--json"), scry("info", os.path.realpath("/bin/true"), "--json")
    ok(there.returncode == 0, "an operation on a URL", there.stderr)
    if there.returncode == 0:
        there, here = json.loads(there.stdout), json.loads(here.stdout)
        ok(there["file"] == url and {k: v for k, v in there.items() if k not in ("file", "rev")} == {k: v for k, v in here.items() if k not in ("file", "rev")},
           "says of it what it says of the file", (there, here))
    given = s.given
    ok(scry("functions", url, "--limit", "3").returncode == 0 and s.given == given, "the second asks for no byte of it")
    ok(scry("comment", url, "_start", "said from afar").returncode == 0 and "said from afar" in scry("journal", os.path.realpath("/bin/true")).stdout,
       "what is said of it is said of the same bytes here")
    r = scry("info", url)
    ok(r.returncode == 0 and scry(url).returncode == 0, "and as the only word", r.stderr)
    os.mkdir(ROOT + "/tmp")
    ENV["TMPDIR"] = ROOT + "/tmp"
    r = scry("info", "--no-store", url)
    ok(r.returncode == 0 and not os.listdir(ROOT + "/tmp"), "without a store nothing is left", r.stderr)
    s.close()
    r = scry("info", url)
    ok(r.returncode == 5 and "refused" in r.stderr, "and of a server that is gone", r.stderr)


def test_libs():
    """All that a program needs, and what that needs, in a few round trips."""
    new_store()
    program = os.path.realpath(shutil.which("python3"))
    lines = subprocess.run(["ldd", program], capture_output=True, text=True).stdout.split("\n")
    needed = {w.split()[0]: os.path.realpath(w.split()[2]) for w in lines if "=>" in w and len(w.split()) > 2 and w.split()[2].startswith("/")}
    files = {"/lib/x86_64-linux-gnu/" + name: open(path, "rb").read() for name, path in needed.items()}
    with open(program, "rb") as f:
        files["/bin/app"] = f.read()
    lost = sorted(needed)[0]
    del files["/lib/x86_64-linux-gnu/" + lost]
    s = Fake(files)
    r = scry("get", "--libs", s.url("/bin/app"), "-o", ROOT + "/libs", "--json")
    doc = json.loads(r.stdout) if r.stdout else {}
    ok(r.returncode == 0 and all(open(f"{ROOT}/libs/{n}", "rb").read() == files["/lib/x86_64-linux-gnu/" + n] for n in needed if n != lost),
       f"{len(needed)} libraries", r.stderr)
    ok(any(f["path"] is None and lost in f["url"] for f in doc.get("files", [])), "what is nowhere is said", doc)
    asked = s.requests
    r = scry("get", "--libs", s.url("/bin/app"), "-o", ROOT + "/libs", "--json")
    ok(json.loads(r.stdout)["transferred"] == 0 and s.requests - asked < asked / 2, "again: no byte, and less than half of the questions", (asked, s.requests))
    s.close()


def test_lanes():
    """A large file of lldb-server comes over several connections, and over the first alone where the others are of no use."""
    body = BODY * 3
    seen = {}

    def watch(then=None):
        seen.clear()

        def hook(s, t, raw):
            seen.setdefault(t[:11], []).append(s.mine.number)
            return then(s, t, raw) if then else None
        return hook

    def lanes(what, then=None, *words, body=body):
        new_store()
        s = Fake({"/bin/prog": body}, hook=watch(then))
        r = get(s.url("/bin/prog"), *words)
        ok(r.returncode == 0 and r.body == body, what, r.stderr)
        s.close()
        return s
    s = lanes("a large file over several connections")
    ok(s.connections == 4 and s.given == len(body), "four, and no byte twice", (s.connections, s.given))
    ok(len(seen["vFile:MD5:2"]) == 1, "the hash is asked for once", seen["vFile:MD5:2"])
    s = lanes("a smaller one", body=body[:4 << 20 - 1])
    ok(s.connections == 1, "over one", s.connections)

    def others(answer, prefix=""):
        def hook(s, t, raw):
            if s.mine.number == 1 or not t.startswith(prefix):
                return None
            if answer is Gone:
                raise Gone
            return answer
        return hook
    lanes("others that end at once", others(Gone))
    lanes("others that say nothing", others((b"",)))
    lanes("others that do not have it", others(b"F-1,2", "vFile:open"))
    lanes("others without no-ack mode", others(b"", "QStart"))
    lanes("others that end when they are asked for bytes", others(Gone, "vFile:pread"))
    lanes("others that end when they are asked for the hash", others(Gone, "vFile:MD5"))
    ok(len(seen["vFile:MD5:2"]) > 1 and 1 in seen["vFile:MD5:2"], "what they were asked is asked again", seen["vFile:MD5:2"])
    lanes("others that say nothing when they are asked for bytes", others((b"",), "vFile:pread"), "--stall", "5")
    lanes("others that say noise", others((b"x" * 200000,), "vFile:pread"))
    s = lanes("others that have another version of it", others(b"F40;" + escape(struct.pack(">7I3Q3I", 1, 2, 0o100755, 1, 0, 0, 0, len(body), 4096, 1, 0, 5, 0)),
                                                             "vFile:fstat"))
    ok(set(seen["vFile:pread"]) == {1}, "which are not read from", set(seen["vFile:pread"]))
    new_store()
    s = Fake({"/bin/prog": body}, hook=others(b"F80000;" + b"x" * 0x80000, "vFile:pread"))
    r = get(s.url("/bin/prog"))
    ok(r.returncode and "bytes where" in r.stderr and not blobs() or r.body == body, "others that send more than was asked for", r.stderr)
    s.close()


def test_many():
    """Many small libraries, and a server that opens few files at once."""
    cc = shutil.which("cc")
    if not cc:
        skip("many libraries", "there is no cc")
        return
    folder = ROOT + "/many"
    os.mkdir(folder)
    names = [f"libmany{i}.so" for i in range(40)]
    for i, name in enumerate(names):
        with open(folder + "/x.c", "w") as f:
            f.write(f"int many{i}(void) {{ return {i}; }}\n")
        subprocess.run([cc, "-shared", "-fPIC", "-nostdlib", "-Wl,--build-id", "-o", f"{folder}/{name}", folder + "/x.c"], check=True)
    subprocess.run([cc, "-shared", "-fPIC", "-nostdlib", "-Wl,--build-id,--no-as-needed", "-o", folder + "/app", folder + "/x.c", "-L" + folder,
                    *[f"-l:{n}" for n in names]], check=True)
    subprocess.run([cc, "-c", "-o", folder + "/y.o", folder + "/x.c"], check=True)
    subprocess.run([cc, "-r", "-nostdlib", "-Wl,--build-id", "-o", folder + "/z.o", folder + "/y.o"], check=True)
    unlinked = open(folder + "/z.o", "rb").read()
    new_store()
    s = Fake({"/z.o": unlinked})
    r = get(s.url("/z.o"))
    ok(build_id(unlinked) and r.body == unlinked, "an object that is not linked, with a build-id in its sections", r.stderr)
    s.close()
    places = ("/there", "/usr/lib/x86_64-linux-gnu", "/usr/local/lib")
    files = {f"{places[i % 3]}/{n}": open(f"{folder}/{n}", "rb").read() for i, n in enumerate(names)}
    files["/there/app"] = open(folder + "/app", "rb").read()
    for kind in ("lldb", "gdbserver", "plain"):
        new_store()
        state = {"open": set(), "most": 0}

        def few(s, t, raw):
            if t.startswith("vFile:open"):
                if len(state["open"]) >= 7:
                    return b"F-1,18"
                answer = s.answer(t, s.mine.fds)
                if not answer.startswith(b"F-1"):
                    state["open"].add(answer[1:])
                    state["most"] = max(state["most"], len(state["open"]))
                return answer
            if t.startswith("vFile:close"):
                state["open"].discard(raw[12:])
            return None
        s = Fake(files, kind, hook=few)
        for again in (False, True):
            given = s.given
            r = scry("get", "--libs", s.url("/there/app"), "-o", f"{ROOT}/many-{kind}", "--json")
            good = r.returncode == 0 and all(open(f"{ROOT}/many-{kind}/{p.rsplit('/', 1)[1]}", "rb").read() == body for p, body in files.items())
            ok(good, f"{kind}: 40 libraries of three folders{', again' if again else ''}", r.stderr)
            if kind != "plain" and again:
                ok(s.given == given, f"{kind}: of which no byte came twice", s.given - given)
            if kind != "lldb":  # which closes what a client leaves open
                ok(not state["open"], f"{kind}: all that was opened was closed", state)
            state["open"].clear()
        ok(state["most"] <= 7, f"{kind}: never more open than it can")
        s.close()


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))


class Platform:
    """scry platform of its own, for this user."""

    def __init__(self, *words, **more):
        self.socket = tempfile.mktemp(dir=ROOT)
        self.p = subprocess.Popen([SCRY, "platform", "--socket", self.socket, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                  env=dict(os.environ, SCRY_STORE=ROOT + "/theirs"), **more)
        self.p.stderr.readline()  # that it listens

    def url(self, path):
        return f"unix-connect://{self.socket}:{path}"

    def close(self):
        self.p.terminate()
        self.p.communicate()


def said(what, r, code, want):
    ok(r.returncode == code and want in r.stderr, what, f"{r.returncode}: {r.stderr}")


def test_special():
    """What is no plain file, there and here."""
    new_store()
    folder = ROOT + "/special"
    os.mkdir(folder)
    os.mkfifo(folder + "/pipe")
    with open(folder + "/plain", "wb") as f:
        f.write(BODY)
    with open(folder + "/none", "wb"):
        pass
    s = Platform()
    said("a pipe there", get(s.url(folder + "/pipe")), 2, "is a pipe there")
    said("a device", get(s.url("/dev/zero")), 2, "is a device there")
    said("a folder", get(s.url("/")), 2, "is a folder there")
    said("a file of /proc", get(s.url("/proc/self/maps")), 3, "as files in /proc do")
    ok(not blobs(), "of which nothing is kept", blobs())
    ok(get(s.url(folder + "/none")).body == b"", "an empty file")
    url = s.url(folder + "/copy")
    r = scry("push", folder + "/plain", url, "--json")
    ok(r.returncode == 0 and json.loads(r.stdout)["sent"] == len(BODY) and open(folder + "/copy", "rb").read() == BODY, "pushed", r.stderr)
    r = scry("push", folder + "/plain", url, "--json")
    ok(r.returncode == 0 and json.loads(r.stdout)["sent"] == 0, "again: nothing is sent", r.stdout + r.stderr)
    r = scry("push", folder + "/plain", s.url(folder + "/plain"))
    ok(r.returncode == 0 and open(folder + "/plain", "rb").read() == BODY, "pushed onto itself it is what it was", r.stderr)
    said("a pipe here", scry("push", folder + "/pipe", url), 2, "is not a file")
    said("a file of /proc here", scry("push", "/proc/self/maps", url), 2, "more bytes than its length says")
    said("pushed to a device", scry("push", folder + "/plain", s.url("/dev/null")), 2, "not a file")
    said("pushed to where no folder is", scry("push", folder + "/plain", s.url(folder + "/nope/x")), 5, "cannot be made there")
    ok(open(folder + "/copy", "rb").read() == BODY, "none of which touched what was there")
    # A file that may not grow is what a full disk is.
    r = subprocess.run([SCRY, "get", s.url(folder + "/plain"), "-o", ROOT + "/limited"], env=ENV, capture_output=True, text=True, preexec_fn=limit_files)
    ok(r.returncode == 5 and "no room" in r.stderr and not os.path.exists(ROOT + "/limited"), "a limit of what may be written here", f"{r.returncode}: {r.stderr}")
    s.close()
    # One that can open and not write (QEMU) is not told to empty what it has.
    asked = []
    s = Fake({"/x": b"what is there"}, "plain", hook=lambda s, t, raw: asked.append(t) if t.startswith("vFile:open") else None)
    said("a server that cannot write", scry("push", folder + "/plain", s.url("/x")), 3, "does not")
    ok(asked and all(t.split(",")[1] == "0" for t in asked), "is not asked to open for writing", asked)
    s.close()
    s = Platform(preexec_fn=limit_files)
    said("and there", scry("push", folder + "/plain", s.url(folder + "/limited")), 5, "special/limited: ")
    ok(not os.path.exists(folder + "/limited"), "where nothing is left of it", os.listdir(folder))
    ok(get(s.url(folder + "/plain")).body == BODY, "and the server goes on")
    s.close()


def test_alike():
    """One build-id, several files: bytes are shared between servers when their hash says so, and never because of the build-id."""
    new_store()
    folder = ROOT + "/alike"
    os.mkdir(folder)
    patched = BODY[:-9] + b"patched!!"

    def put(name, body, when):
        with open(f"{folder}/{name}", "wb") as f:
            f.write(body)
        os.utime(f"{folder}/{name}", (when, when))
    put("prog", BODY, 1600000000)
    lying = Fake({"/bin/prog": patched})
    r = get(lying.url("/bin/prog"))
    ok(r.body == patched, "a server whose file has the build-id of another", r.stderr)
    a, b = Platform(), Platform()
    r = get(a.url(folder + "/prog"))
    ok(r.body == BODY and r.doc["transferred"] == len(BODY), "does not get between another server and its file", r.stderr)
    r = get(a.url(folder + "/prog"))
    ok(r.body == BODY and r.doc["transferred"] == 0 and r.doc["round_trips"] <= 2, f"which comes from the cache, in {r.doc.get('round_trips')} round trips", r.stderr)
    put("other", BODY, 1600000001)
    for what, server, name in (("of another server", b, "prog"), ("under another name", a, "other")):
        r = get(server.url(f"{folder}/{name}"))
        ok(r.body == BODY and r.doc["transferred"] == 0, f"equal bytes {what} are not sent again", (r.doc, r.stderr))
    put("prog", patched, 1600000002)
    r = get(a.url(folder + "/prog"))
    ok(r.body == patched, "a program that was patched, with its build-id and its length", r.stderr)
    put("prog", BODY, 1600000003)
    r = get(a.url(folder + "/prog"))
    ok(r.body == BODY, "and back", r.stderr)
    for s in (a, b, lying):
        s.close()


SFTP_SERVERS = ("/usr/lib/openssh/sftp-server", "/usr/libexec/sftp-server")


def fake_ssh(command, subsystem):
    """A program `ssh` in front of PATH that starts these shell words instead of going anywhere."""
    folder = tempfile.mkdtemp(dir=ROOT)
    with open(folder + "/ssh", "w") as f:
        f.write("#!/bin/sh\nwhile [ \"$1\" != -- ]; do [ \"$1\" = -s ] && sub=1; shift; done\nshift\n"
                f"[ \"$1\" = host ] || exit 9\nshift\n[ -n \"$sub\" ] && {{ {subsystem}; exit; }}\n{command}\n")
    os.chmod(folder + "/ssh", 0o755)
    return folder


def over_ssh(what, command, subsystem, path, body, server=None, want="", code=0):
    new_store()
    before = ENV["PATH"]
    ENV["PATH"] = fake_ssh(command, subsystem) + ":" + before
    r = get("ssh://me@host" + path)
    ENV["PATH"] = before
    ok(r.returncode == code and r.body == body and (not server or r.doc["server"] == server) and want in r.stderr, what, f"{r.returncode} {r.doc} {r.stderr}")
    return r


def test_ssh():
    with open(ROOT + "/large", "wb") as f:
        f.write(BODY * 4)
    own = f'PATH={os.path.dirname(os.path.abspath(SCRY))}:$PATH; exec sh -c "$1"'
    over_ssh("ssh to a machine with scry", own, "exit 9", ROOT + "/large", BODY * 4, "scry")
    sftp = [p for p in SFTP_SERVERS if os.path.exists(p)]
    if not sftp:
        skip("SFTP", "not installed: apt install openssh-sftp-server")
    else:
        over_ssh("to one without, by SFTP", "exit 127", "exec " + sftp[0], ROOT + "/large", BODY * 4, "sftp")
        over_ssh("what is not there", "exit 127", "exec " + sftp[0], "/nope", None, want="no such file there", code=1)
        before = ENV["PATH"]
        ENV["PATH"] = fake_ssh("exit 127", "exec " + sftp[0]) + ":" + before
        r = scry("push", ROOT + "/large", f"ssh://host{ROOT}/pushed")
        ENV["PATH"] = before
        ok(r.returncode == 0 and open(ROOT + "/pushed", "rb").read() == BODY * 4, "pushed by SFTP", r.stderr)
        # It tells neither hash nor number of a file: what may be the file itself is read before it is emptied.
        os.link(ROOT + "/large", ROOT + "/hard")
        os.symlink(ROOT + "/large", ROOT + "/soft")
        with open(ROOT + "/lookalike", "wb") as f:
            f.write(BODY * 3 + BODY[::-1])
        shutil.copystat(ROOT + "/large", ROOT + "/lookalike")
        ENV["PATH"] = fake_ssh("exit 127", "exec " + sftp[0]) + ":" + before
        for name in ("large", "hard", "soft", "lookalike"):
            r = scry("push", ROOT + "/large", f"ssh://host{ROOT}/{name}", "--json")
            ok(r.returncode == 0 and all(open(f"{ROOT}/{n}", "rb").read() == BODY * 4 for n in ("large", name)) and
               (json.loads(r.stdout)["sent"] > 0) == (name == "lookalike"), f"pushed by SFTP to {name}, with the length and time of what is pushed", r.stdout, r.stderr)
        ENV["PATH"] = before
    say = "printf '\\0\\0\\0\\5\\2\\0\\0\\0\\3'; "
    for what, reply, want in (("of endless length", r"\377\377\377\377", "no SFTP server sends"), ("of no length", r"\0\0\0\0", "no SFTP server sends"),
                              ("nobody asked for", r"\0\0\0\5\147\0\0\0\77", "nobody made"), ("that ends early", r"\0\0\0\7\151\0\0\0\0\0\0", "ends early"),
                              ("of another kind", r"\0\0\0\5\147\0\0\0\0", "something else")):
        over_ssh("SFTP: an answer " + what, "exit 127", say + f"printf '{reply}'; exec sleep 100", "/x", None, want=want, code=3)
    over_ssh("SFTP: words of a shell", "exit 127", "echo 'This account is not available.'; exit 1", "/x", None, code=3, want="no SFTP server sends")
    over_ssh("ssh that ends at once", "exit 255", "exit 255", "/x", None, code=5, want="ssh has ended")


class Server:
    """A real server of its own."""

    def __init__(self, *argv, ready=None):
        self.p = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=dict(os.environ, SCRY_STORE=ROOT + "/theirs"),
                                  stdin=subprocess.DEVNULL, start_new_session=True)

    def close(self):
        try:
            os.killpg(self.p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.p.wait()
        self.p.stderr.close()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def against(name, argv_of, what, count_of=None, twice=True):
    """A real server: fetch a large file, compare, fetch again."""
    path = ROOT + "/large"
    for _ in range(5):  # somebody may take the port between
        new_store()
        port = free_port()
        server = Server(*argv_of(port))
        deadline = time.monotonic() + 60
        r = None
        while time.monotonic() < deadline:
            r = get(f"connect://127.0.0.1:{port}{path}")
            if r.returncode == 0 or "refused" not in r.stderr or server.p.poll() is not None:
                break
            time.sleep(0.05)
        if r.returncode == 0 or server.p.poll() is None:
            break
        server.close()
    ok(r.returncode == 0 and r.body == open(path, "rb").read(), f"{name}: {what}", r.stderr)
    return server, port


def test_real():
    with open(ROOT + "/large", "wb") as f:
        f.write(BODY * 4)
    for version in ("14", "19"):
        program = shutil.which("lldb-server-" + version)
        if not program:
            skip(f"lldb-server-{version}", f"not installed: apt install lldb-{version}")
            continue
        s, port = against(f"lldb-server-{version}", lambda port: (program, "platform", "--server", "--listen", f"127.0.0.1:{port}"), "platform mode")
        r = get(f"connect://127.0.0.1:{port}{ROOT}/large")
        ok(r.returncode == 0 and r.doc["cached"] and r.doc["round_trips"] <= 5, f"lldb-server-{version}: again from the cache", r.stderr)
        r = get(f"connect://127.0.0.1:{port}/bin/true")
        r = get(f"connect://127.0.0.1:{port}/bin/true")
        ok(r.body == PROGRAM and r.doc["round_trips"] <= 2, f"lldb-server-{version}: a program again, in {r.doc.get('round_trips')} round trips", r.stderr)
        ok(get(f"connect://127.0.0.1:{port}/nope").returncode == 1, f"lldb-server-{version}: what is not there")
        ok(get(f"connect://127.0.0.1:{port}/bin").returncode == 2, f"lldb-server-{version}: a folder")
        r = scry("push", ROOT + "/large", f"connect://127.0.0.1:{port}{ROOT}/pushed{version}")
        ok(r.returncode == 0 and open(f"{ROOT}/pushed{version}", "rb").read() == BODY * 4, f"lldb-server-{version}: pushed", r.stderr)
        s.close()
        s, port = against(f"lldb-server-{version}", lambda port: (program, "gdbserver", f"127.0.0.1:{port}"), "gdbserver mode")
        s.close()
    program = shutil.which("gdbserver")
    if not program:
        skip("gdbserver", "not installed: apt install gdbserver")
    else:
        s, port = against("gdbserver", lambda port: (program, "--multi", f"127.0.0.1:{port}"), "bytes are equal")
        r = get(f"connect://127.0.0.1:{port}{ROOT}/large")
        ok(r.returncode == 0 and r.doc["cached"], "gdbserver: it is still there, and the file comes from the cache", r.stderr)
        r = scry("push", ROOT + "/large", f"connect://127.0.0.1:{port}{ROOT}/pushed")
        ok(r.returncode == 0 and open(f"{ROOT}/pushed", "rb").read() == BODY * 4, "gdbserver: pushed", r.stderr)
        said("gdbserver: pushed onto itself it is refused", scry("push", ROOT + "/pushed", f"connect://127.0.0.1:{port}{ROOT}/pushed"), 2, "is the file itself")
        ok(os.path.getsize(ROOT + "/pushed") == len(BODY) * 4, "and is what it was")
        s.close()
    program = shutil.which("qemu-x86_64")
    if not program:
        skip("qemu-user", "not installed: apt install qemu-user")
    else:
        test_qemu(program)


class Cutter:
    """The way to a port of this machine, which is cut each time so many bytes came over it."""

    def __init__(self, port, step):
        self.to, self.step, self.given, self.cuts = port, step, 0, 0
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near = self.listener.accept()[0]
                far = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                return
            for pair in ((near, far, False), (far, near, True)):
                threading.Thread(target=self.pass_on, args=pair, daemon=True).start()

    def pass_on(self, source, to, is_answer):
        try:
            while True:
                data = source.recv(65536)
                with self.lock:
                    was = self.given // self.step
                    self.given += len(data) * is_answer
                    is_cut = self.given // self.step > was
                    self.cuts += is_cut
                if not data or is_cut:
                    break
                to.sendall(data)
        except OSError:
            pass
        for s in (source, to):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.listener.close()


def test_cut_links():
    """The link to real servers is cut after each tenth of the file: it resumes, and the bytes are equal."""
    with open(ROOT + "/large", "wb") as f:
        f.write(BODY * 4)
    for name, argv in (("scry", (SCRY, "platform", "--allow-remote", "--listen")), ("lldb-server-19", ("lldb-server-19", "platform", "--server", "--listen")),
                       ("gdbserver", ("gdbserver", "--multi"))):
        if not shutil.which(argv[0]):
            skip(f"{name}: a link that is cut", "not installed")
            continue
        s, port = against(name, lambda port: (*argv, f"127.0.0.1:{port}"), "over a whole link")
        new_store()
        way, tries, r = Cutter(port, len(BODY) * 4 // 10), 0, None
        while tries < 30 and (r is None or r.returncode):
            tries += 1
            r = get(f"connect://127.0.0.1:{way.port}{ROOT}/large")
        ok(r.returncode == 0 and r.body == BODY * 4, f"{name}: over one that is cut {way.cuts} times the bytes are equal", r.stderr)
        ok(way.cuts >= 9 and way.given < len(BODY) * 4 * 3, f"{name}: {way.given} bytes came for {len(BODY) * 4}, over {tries} runs")
        way.close()
        s.close()


def test_qemu(program):
    """QEMU before 8 gives out no files, and says so; since then one request at a time."""
    new_store()
    port = free_port()
    s = Server(program, "-g", str(port), os.path.realpath("/bin/true"))
    r = None
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and s.p.poll() is None:
        r = get(f"connect://127.0.0.1:{port}{ROOT}/large")
        if "refused" not in r.stderr:
            break
        time.sleep(0.05)
    if r is None or "refused" in r.stderr:
        skip("qemu-user", "it does not start here")
    elif r.returncode == 0:
        ok(r.body == BODY * 4, "qemu-user: bytes are equal")
    else:
        ok(r.returncode == 3 and "does not give out files" in r.stderr, "qemu-user: says that it gives out no files", r.stderr)
    s.close()


def main():
    try:
        for test in (test_kinds, test_said, test_sizes, test_lies, test_cuts, test_kills, test_two_at_once, test_cache, test_no_store, test_anywhere, test_libs, test_lanes, test_many, test_special, test_alike, test_ssh, test_real, test_cut_links):
            if len(sys.argv) < 2 or test.__name__[5:] in sys.argv[1:]:
                test()
    finally:
        shutil.rmtree(ROOT, ignore_errors=True)
    print(f"1..{count}")
    sys.exit(failed > 0)


main()
