#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cache of files of other machines beside a model of it: operations at random, in which clients are killed, links cut, disks full and servers lie. After each of
them no file that has its final name may be wrong or a part. Prints TAP. SCRY is the program; SEED and ROUNDS may be set."""
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from gdbfake import Fake, Gone  # noqa: E402

SCRY = os.environ.get("SCRY", "")
ROOT = tempfile.mkdtemp(prefix="scry-cache-")
STORE = ROOT + "/store"
REMOTE = STORE + "/remote"
ENV = dict(os.environ, NO_COLOR="1", SCRY_STORE=STORE)
PROGRAM = open(os.path.realpath("/bin/true"), "rb").read()
SEED = int(os.environ.get("SEED", "1"))
ROUNDS = int(os.environ.get("ROUNDS", "250"))
count = failed = 0


def ok(good, what, why=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}", flush=True)
    if not good and why:
        print("# " + str(why).replace("\n", "\n# "), flush=True)
    return good


class Broken(Exception):
    """What was seen is not what the model says."""


def check(good, why):
    if not good:
        raise Broken(why)


class World:
    """Two servers, three files on each, and every content that any of them ever had. The same build-id stands in all programs, whatever their bytes."""

    def __init__(self, rng):
        self.rng = rng
        self.known, self.damaged = {}, set()
        self.servers = [Fake({f"/bin/{name}": self.content() for name in "abc"}, kind, hook=self.hook) for kind in ("lldb", "gdbserver")]
        self.lock = threading.Lock()
        self.plan, self.left, self.victim = None, 0, None

    def content(self):
        body = (PROGRAM if self.rng.random() < 0.7 else b"") + self.rng.randbytes(self.rng.choice((0, 1, 1000, 262144 - len(PROGRAM), 300000, 900000)))
        self.known[hashlib.sha256(body).hexdigest()] = body
        return body

    def hook(self, server, text, raw):
        """The fault that is planned, when its request has come. Requests of a client before may come late and count."""
        with self.lock:
            self.left -= 1
            if self.plan is None or self.left > 0:
                return None
            if self.plan == "kill":
                # The client is given its process before it can get that far, or has just been started.
                while self.victim is None:
                    self.lock.release()
                    self.lock.acquire()
                self.victim.send_signal(signal.SIGKILL)
                return None
            if self.plan == "cut" and not text.startswith("vFile:"):
                return None  # which would be nobody there
            if self.plan == "cut":
                self.plan = None
                raise Gone
            if self.plan == "dead":
                raise Gone
            prefix, answer = self.plan
            return answer if text.startswith(prefix) else None

    def pick(self):
        s = self.rng.choice(self.servers)
        return s, self.rng.choice(sorted(s.files))


def start(server, path, out, **more):
    return subprocess.Popen([SCRY, "get", server.url(path), "-o", out, "--json"], env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def fresh(name="out"):
    out = f"{ROOT}/{name}"
    if os.path.exists(out):
        os.unlink(out)
    return out


def bytes_of(path):
    with open(path, "rb") as f:
        return f.read()


def whole(out, body, p, said):
    check(p.returncode == 0 and os.path.exists(out) and bytes_of(out) == body, f"{p.returncode}: {said}")


def get(w):
    """A plain get has the bytes that are there now, whatever was before. A second one brings none of them."""
    s, path = w.pick()
    out = fresh()
    p = start(s, path, out)
    said = p.communicate()[1]
    whole(out, s.files[path], p, said)
    if w.rng.random() < 0.5:
        given = s.given
        p = start(s, path, fresh())
        doc = json.loads(p.communicate()[0])
        check(doc["transferred"] == 0 and s.given == given and bytes_of(out) == s.files[path], f"a second get brings {s.given - given} bytes")


def change(w):
    """Another version of a file: with another time, as every file system has it."""
    s, path = w.pick()
    s.files = dict(s.files, **{path: w.content()})
    s.mtime += 1


def with_fault(w, plan, left):
    s, path = w.pick()
    out = fresh()
    w.plan, w.left, w.victim = plan, left, None
    p = start(s, path, out)
    w.victim = p
    said = p.communicate()[1]
    w.plan = None
    check(not os.path.exists(out) or bytes_of(out) == s.files[path], f"a wrong file under its name ({plan}, {p.returncode}: {said})")
    check(p.returncode != 0 or os.path.exists(out), "success, and no file")
    return s, path, p, said


def kill(w):
    with_fault(w, "kill", w.rng.randrange(1, 40))


def cut(w):
    """A link that is lost once is made again."""
    s, path, p, said = with_fault(w, "cut", w.rng.randrange(3, 40))
    check(p.returncode == 0, f"not connected again: {said}")


def dead(w):
    with_fault(w, "dead", w.rng.randrange(1, 40))


def lie(w):
    plan = w.rng.choice((("vFile:size", b"F123456"), ("vFile:pread", b"F4;abcd"), ("vFile:pread", b"F-1,5"), ("vFile:MD5", b"F," + b"0" * 32), ("vFile:fstat", b"F40;x"),
                         ("qModuleInfo", b"uuid:%s;file_offset:0;file_size:64;" % (b"00112233445566778899AABBCCDDEEFF00112233".hex().encode()))))
    with_fault(w, plan, 0)


def full(w):
    """What may be written is less than the file: it fails, and says so."""
    s, path = w.pick()
    out = fresh()
    limit = len(s.files[path]) // 2
    p = start(s, path, out, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    said = p.communicate()[1]
    check(p.returncode != 0 or bytes_of(out) == s.files[path], "success, and no file")
    check(p.returncode >= 0 and (p.returncode == 0 or said), f"ended by a signal: {p.returncode}")


def both(w):
    """Two clients, of one file or of two."""
    s, path = w.pick()
    other, path2 = (s, path) if w.rng.random() < 0.7 else w.pick()
    outs = fresh("out1"), fresh("out2")
    ps = start(s, path, outs[0]), start(other, path2, outs[1])
    said = [p.communicate()[1] for p in ps]
    whole(outs[0], s.files[path], ps[0], said[0])
    whole(outs[1], other.files[path2], ps[1], said[1])


def beside_a_kill(w):
    """One of two that want the same file is killed: the other has it all the same."""
    s, path = w.pick()
    outs = fresh("out1"), fresh("out2")
    ps = start(s, path, outs[0]), start(s, path, outs[1])
    ps[0].kill()
    said = [p.communicate()[1] for p in ps]
    whole(outs[1], s.files[path], ps[1], said[1])


def unwritable(w):
    """No cache can be made: what is fetched is right, and not kept."""
    s, path = w.pick()
    out = fresh()
    os.rename(REMOTE, ROOT + "/aside")
    with open(REMOTE, "w"):
        pass
    p = start(s, path, out)
    said = p.communicate()[1]
    os.unlink(REMOTE)
    os.rename(ROOT + "/aside", REMOTE)
    whole(out, s.files[path], p, said)
    check("not kept" in said, said)


def damage(w):
    """A blob changes on the disk, with the length it had; or its beginning is lost with its entry."""
    names = os.listdir(REMOTE + "/blobs")
    if not names:
        return
    name = w.rng.choice(sorted(names))
    path = f"{REMOTE}/blobs/{name}"
    os.chmod(path, 0o600)
    size = os.path.getsize(path)
    if not size:
        return
    with open(path, "r+b") as f:
        at = w.rng.randrange(size)
        f.seek(at)
        byte = f.read(1)
        f.seek(at)
        f.write(bytes((byte[0] ^ 0x55,)))
    w.damaged.add(name)


def damage_partial(w):
    for name in os.listdir(REMOTE + "/partial"):
        path = f"{REMOTE}/partial/{name}"
        size = os.path.getsize(path)
        if size and w.rng.random() < 0.5:
            with open(path, "r+b") as f:
                f.seek(w.rng.randrange(size))
                f.write(b"?")
        elif size:
            os.truncate(path, w.rng.randrange(size))


def damage_keys(w):
    for name in os.listdir(REMOTE + "/keys"):
        if w.rng.random() < 0.2:
            os.truncate(f"{REMOTE}/keys/{name}", w.rng.randrange(300))


def run(*words):
    return subprocess.run([SCRY, *words], env=ENV, capture_output=True, text=True)


def verify(w):
    r = run("cache", "verify", "--json")
    check(r.returncode in (0, 3), r.stderr)
    bad = {i["sha256"] for i in json.loads(r.stdout)["items"] if i["state"] == "damaged"}
    check(bad <= w.damaged, f"said to be damaged, and is not: {bad - w.damaged}")
    check(not [b for b in bad if os.path.exists(f"{REMOTE}/blobs/{b}")], "damaged, and still there")


def prune(w):
    limit = w.rng.choice((0, 100000, 1000000, 3000000))
    r = run("cache", "prune", "--limit", str(limit), "--json")
    check(r.returncode == 0, r.stderr)
    left = sum(os.path.getsize(f"{REMOTE}/blobs/{n}") for n in os.listdir(REMOTE + "/blobs"))
    check(left <= limit, f"{left} bytes are left of {limit}")
    check(limit or not os.listdir(REMOTE + "/partial"), "something half is left")


OPERATIONS = ((get, 6), (change, 3), (kill, 6), (cut, 2), (dead, 2), (lie, 4), (full, 2), (both, 2), (beside_a_kill, 1), (unwritable, 1), (damage, 2), (damage_partial, 1),
              (damage_keys, 1), (verify, 1), (prune, 1))


def look(w):
    """What holds at all times: blobs are whole contents that some server had, named by their hash, but for those that were damaged here."""
    for name in os.listdir(REMOTE + "/blobs"):
        if name in w.damaged:
            continue
        body = bytes_of(f"{REMOTE}/blobs/{name}")
        check(hashlib.sha256(body).hexdigest() == name, f"blob {name} has other bytes")
        check(name in w.known, f"blob {name} was on no server")
    w.damaged &= set(os.listdir(REMOTE + "/blobs"))
    for name in w.damaged.copy():
        if hashlib.sha256(bytes_of(f"{REMOTE}/blobs/{name}")).hexdigest() == name:
            w.damaged.discard(name)
    check(not [n for n in os.listdir(ROOT) if n.startswith("out") and hashlib.sha256(bytes_of(f"{ROOT}/{n}")).hexdigest() not in w.known and ".tmp." not in n],
          "a file under its name that no server had")


def main():
    rng = random.Random(SEED)
    w = World(rng)
    done = {}
    try:
        get(w)
        names, weights = zip(*OPERATIONS)
        for i in range(ROUNDS):
            operation = rng.choices(names, weights)[0]
            done[operation.__name__] = done.get(operation.__name__, 0) + 1
            try:
                operation(w)
                look(w)
            except Broken as e:
                ok(False, f"seed {SEED}, round {i}: {operation.__name__}", e)
                break
        else:
            ok(True, f"{ROUNDS} operations: " + ", ".join(f"{n} {c}" for n, c in sorted(done.items())))
        for s in w.servers:
            for path in sorted(s.files):
                out = fresh()
                p = start(s, path, out)
                said = p.communicate()[1]
                ok(p.returncode == 0 and bytes_of(out) == s.files[path], f"after all of that {path} of {s.kind} is what it is", said)
    finally:
        for s in w.servers:
            s.close()
        shutil.rmtree(ROOT, ignore_errors=True)
    print(f"1..{count}")
    sys.exit(failed > 0)


main()
