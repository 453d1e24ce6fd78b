#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who means harm to a server: another user, ten thousand connections, several servers at once on one socket, folders and names that others made, TLS
that never comes to anything, and clients that do everything at random at once. Prints TAP. SCRY is the program."""
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from rpcclient import Client, Refused, Server, WAIT_S  # noqa: E402

SCRY = os.environ.get("SCRY", "")
TARGET = os.path.realpath("/bin/true")
OTHER = os.path.realpath("/bin/cat")
ROOT = tempfile.mkdtemp(prefix="scry-harm-")
NOBODY = 65534
ENV = dict(os.environ, SCRY_STORE=ROOT + "/store", XDG_RUNTIME_DIR=ROOT + "/run", NO_COLOR="1",
           ASAN_OPTIONS="quarantine_size_mb=1:" + os.environ.get("ASAN_OPTIONS", ""))
count = failed = 0


def ok(good, what):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}", flush=True)
    return good


def skip(what, why):
    global count
    count += 1
    print(f"ok {count} - {what} # skip {why}", flush=True)


def in_child(do, uid=None):
    """What `do` gives (a short text), done in a process of its own, perhaps as somebody else."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(r)
        try:
            if uid is not None:
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
            said = do()
        except BaseException as e:  # noqa: BLE001
            said = type(e).__name__
        os.write(w, str(said).encode())
        os._exit(0)
    os.close(w)
    with os.fdopen(r) as f:
        said = f.read()
    os.waitpid(pid, 0)
    return said


def ends(sock):
    """Whether the other end closes, whatever it says before."""
    sock.settimeout(WAIT_S)
    try:
        while sock.recv(65536):
            pass
        return True
    except TimeoutError:
        return False
    except OSError:
        return True


# --- others -----------------------------------------------------------------------------------------------------------------------

def test_other_user():
    if os.geteuid() != 0:
        skip("another user cannot connect", "only root can be another user")
        return
    folder = ROOT + "/open"
    os.chmod(ROOT, 0o755)
    os.mkdir(folder, 0o755)
    path = folder + "/s"
    s = Server(SCRY, path, TARGET, env=ENV)

    def ask():
        c = Client(path)
        c.sock.settimeout(WAIT_S)
        c.post("info", {"database": 1})
        return "answered" if "result" in c.line() else "refused"
    ok(in_child(ask) == "answered", "its own user is answered")
    ok(in_child(ask, NOBODY) == "PermissionError", "another one cannot connect")
    # Should the mode of the socket be another than it was made with, who is there is still looked at.
    os.chmod(path, 0o666)
    said = in_child(ask, NOBODY)
    ok(said in ("EOFError", "ConnectionResetError", "BrokenPipeError"), f"not even where the socket is open to all ({said})")
    ok(in_child(ask) == "answered", "and nobody else notices")

    # The other way round: a socket of somebody else's is not talked to.
    theirs = ROOT + "/theirs"
    os.mkdir(theirs, 0o777)
    os.chmod(theirs, 0o777)
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            x = socket.socket(socket.AF_UNIX)
            x.bind(theirs + "/s")
            x.listen()
            os.chmod(theirs + "/s", 0o666)
            os.write(w, b"x")
            while True:
                y, _ = x.accept()
                with contextlib.suppress(OSError):
                    y.sendall(b'{"jsonrpc":"2.0","id":1,"result":{"rev":1,"file":"forged"}}\n')
                y.close()
        finally:
            os._exit(1)
    os.close(w)
    os.read(r, 1)
    e = subprocess.run([SCRY, "info", TARGET, "--socket", theirs + "/s"], capture_output=True, text=True, env=ENV, check=False)
    ok(e.returncode == 1 and "somebody else" in e.stderr and "forged" not in e.stdout, f"nor is a server of another user believed: {e.stderr.strip()[:100]}")
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    s.stop()


def refused_there(path, what, why):
    r = subprocess.run([SCRY, "serve", TARGET, "--socket", path], capture_output=True, text=True, env=ENV, check=False, timeout=WAIT_S)
    ok(r.returncode in (1, 5) and r.stderr.startswith("scry: ") and why in r.stderr, f"{what}: {r.stderr.strip().splitlines()[:1]}")


def test_names():
    """What is at the place of a socket, and whose folder that is."""
    kept = ROOT + "/kept"
    with open(kept, "w") as f:
        f.write("mine")
    refused_there(kept, "a file is not replaced by a socket", "is no socket of yours")
    os.symlink(kept, ROOT + "/link")
    refused_there(ROOT + "/link", "nor a link", "is no socket of yours")
    os.symlink(ROOT + "/nowhere", ROOT + "/dangling")
    refused_there(ROOT + "/dangling", "not even one that leads nowhere", "is no socket of yours")
    ok(open(kept).read() == "mine" and os.path.islink(ROOT + "/link") and not os.path.exists(ROOT + "/nowhere"), "and all of it is as it was")
    anyone = ROOT + "/anyone"
    os.mkdir(anyone)
    os.chmod(anyone, 0o777)
    refused_there(anyone + "/s", "a folder that anybody may change", "others can change")
    os.symlink(anyone, ROOT + "/to_anyone")
    refused_there(ROOT + "/to_anyone/s", "or a link to one", "others can change")
    if os.geteuid() == 0:
        foreign = ROOT + "/foreign"
        os.mkdir(foreign)
        os.chown(foreign, NOBODY, NOBODY)
        refused_there(foreign + "/s", "a folder of another user", "others can change")
        # And for bare names, of which the folder has to be one's own.
        os.makedirs(ROOT + "/run2")
        os.mkdir(ROOT + "/run2/scry", 0o700)
        os.chown(ROOT + "/run2/scry", NOBODY, NOBODY)
        r = subprocess.run([SCRY, "serve", TARGET, "--socket", "name"], capture_output=True, text=True, env=dict(ENV, XDG_RUNTIME_DIR=ROOT + "/run2"), check=False)
        ok(r.returncode == 1 and "not a folder of yours alone" in r.stderr, "the folder of bare names, too")
    else:
        skip("a folder of another user", "only root can make one")


def test_at_once():
    """Several servers begin at one socket, which a killed one left: one of them has it, and it can be reached."""
    for turn in range(8):
        path = f"{ROOT}/once{turn}"
        s = Server(SCRY, path, TARGET, env=ENV)
        s.proc.kill()
        s.proc.wait()
        all_of = [subprocess.Popen([SCRY, "serve", TARGET, "--socket", path], stderr=subprocess.PIPE, text=True, env=ENV) for _ in range(8)]
        # A line tells: it listens, or why it does not.
        first = [p.stderr.readline() for p in all_of]
        there = [p for p, line in zip(all_of, first) if "listening" in line]
        gone = [p.wait(WAIT_S) for p, line in zip(all_of, first) if "listening" not in line]
        good = len(there) == 1 and gone == [1] * 7
        if there:
            c = Client(path)
            good &= c("hello")["pid"] == there[0].pid
            c.close()
        ok(good, f"eight at once, turn {turn}: {len(there)} has it, {len(gone)} are refused")
        for p in there:
            p.terminate()
            p.wait(WAIT_S)
        for p in all_of:
            p.stderr.close()


# --- many ---------------------------------------------------------------------------------------------------------------------------

def hold(path, n, go_on, done):
    """Connects so often and asks once on each; tells how many were answered and how many were told that it is too much; stays."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    held, served, busy = [], 0, 0
    for _ in range(n):
        c = Client(path)
        held.append(c)
        try:
            c.sock.sendall(b'{"id":9,"method":"ping"}\n')
        except OSError:
            pass
    for c in held:
        try:
            answer = c.line()
            served += "result" in answer
            busy += answer.get("error", {}).get("data", {}).get("kind") == "busy"
        except (EOFError, OSError):
            busy += 1
    os.write(done, json.dumps([served, busy]).encode() + b"\n")
    os.read(go_on, 1)


def test_ten_thousand():
    each, workers = 2500, 4
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if most != resource.RLIM_INFINITY and most < each + 100:
        skip("10,000 connections", f"a process may have {most} descriptors here")
        return
    s = Server(SCRY, ROOT + "/ten", TARGET, env=ENV)
    first = s.client()
    first("open", file=TARGET)
    before, fds = s.rss(), s.fds()
    done_r, done_w = os.pipe()
    go_r, go_w = os.pipe()
    children = []
    for _ in range(workers):
        pid = os.fork()
        if pid == 0:
            os.close(done_r)
            os.close(go_w)
            try:
                hold(s.path, each, go_r, done_w)
            finally:
                os._exit(0)
        children.append(pid)
    os.close(done_w)
    os.close(go_r)
    served = busy = told = 0
    with os.fdopen(done_r) as f:
        for _ in range(workers):
            line = f.readline()
            if line:
                a, b = json.loads(line)
                served, busy, told = served + a, busy + b, told + 1
        ok(told == workers and served + busy == each * workers and served > 200, f"10,000 connections: {served} are served, {busy} are told that there are too many")
        ok(first("info")["format"] == "ELF64" and s.proc.poll() is None, "the first one never noticed")
        grown = s.rss() - before
        ok(grown < 512 << 20, f"all of them together cost {grown >> 20} MB")
        os.close(go_w)
        for pid in children:
            os.waitpid(pid, 0)
    for _ in range(WAIT_S * 20):
        if s.fds() <= fds + 1:
            break
        first("ping")
        time.sleep(0.05)
    ok(s.fds() <= fds + 1, f"when they are gone no descriptor is left ({s.fds()} of {fds})")
    ok(s.stop() == 0, "and it ends as told")


# --- TLS ------------------------------------------------------------------------------------------------------------------------------

def test_tls():
    if not shutil.which("openssl"):
        skip("TLS that comes to nothing", "no openssl to make a certificate with")
        return
    cert, key, token = ROOT + "/cert.pem", ROOT + "/key.pem", ROOT + "/token"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj",
                    "/CN=localhost"], capture_output=True, check=True)
    with open(token, "w") as f:
        f.write("a token of some length\n")
    os.chmod(token, 0o600)
    with socket.socket() as x:
        x.bind(("127.0.0.1", 0))
        port = x.getsockname()[1]
    s = Server(SCRY, ROOT + "/tls", TARGET, "--listen", f"127.0.0.1:{port}", "--tls-cert", cert, "--tls-key", key, "--token-file", token, env=ENV)
    context = ssl.create_default_context(cafile=cert)
    context.check_hostname = False

    def raw():
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port), WAIT_S)
            except ConnectionRefusedError:
                assert s.proc.poll() is None
                time.sleep(0.02)
    good = Client(None, context.wrap_socket(raw()))
    good("hello", token="a token of some length")
    fds = s.fds()
    rnd = random.Random(9)
    hello = bytes.fromhex("1603010200010001fc0303")
    stuck = []
    for kind in range(120):
        x = raw()
        data = [b"", hello, rnd.randbytes(500), b"\x16\x03\x01\xff\xff" + rnd.randbytes(3000), b"GET / HTTP/1.1\r\n\r\n", b"\x80" * 70000][kind % 6]
        try:
            x.sendall(data)
        except OSError:
            pass
        stuck.append(x)
    # One that dribbles, one that got through the handshake and says nothing, one that gives half of its first line.
    slow = raw()
    mute, half = Client(None, context.wrap_socket(raw())), Client(None, context.wrap_socket(raw()))
    half.sock.sendall(b'{"id":1,"method":"hello","params":{"token":"')
    for byte in hello:
        try:
            slow.sendall(bytes([byte]))
        except OSError:
            break
        good("ping")
    ok(good("ping") == {}, "who says nothing, or nothing that is TLS, holds nobody up")
    ok(all(ends(x) for x in (*stuck, slow, mute.sock, half.sock)), "and is sent away in the end, whatever was begun")
    for x in (*stuck, slow, mute.sock, half.sock):
        x.close()
    for _ in range(WAIT_S * 20):
        if s.fds() <= fds:
            break
        good("ping")
        time.sleep(0.05)
    ok(s.fds() <= fds and good("ping") == {}, "no descriptor is left of them, and who was let in stays")
    ok(s.stop() == 0, "it ends as told")
    text = open(s.path + ".log").read()
    ok("ERROR" not in text and "runtime error" not in text, f"and had nothing to say {text[-500:]}")


# --- all at once ----------------------------------------------------------------------------------------------------------------------

def storm(path, seed, sure):
    """One client that does anything, and dies in between."""
    rnd = random.Random(seed)
    for _ in range(25):
        c = Client(path)
        try:
            ids = []
            for _ in range(rnd.randrange(1, 40)):
                method, params = rnd.choice((
                    ("subscribe", {}), ("subscribe", {"since": 0}), ("unsubscribe", {}), ("cancel", {"id": rnd.choice(ids or [0])}), ("ping", {}),
                    ("open", {"file": rnd.choice((TARGET, OTHER))}), ("open", {"file": OTHER, "wait": False}), ("close", {"database": rnd.choice((TARGET, OTHER))}),
                    ("use", {"database": "cat"}), ("multi", {"ops": [{"op": "strings"}, {"op": "search", "params": {"insn": "*"}}] * 3}),
                    ("multi", {"ops": [{"op": "functions"}] * 20, "deadline_ms": rnd.randrange(1, 20)}), ("comment", {"addr": "entry", "text": str(rnd.random())}),
                    ("undo", {}), ("redo", {}), ("decompile", {"func": "entry"}), ("decompile", {"func": "entry", "database": "cat"}), ("databases", {}),
                    ("hello", {"client": f"c{rnd.randrange(9)}", "kind": "agent"}), ("functions", {"limit": 5}), ("journal", {}), ("changes", {"since": 0}),
                    ("info", {"database": rnd.randrange(5)}), ("heads", {"addr": "entry", "count": 500}), ("frob", {}), ("define", {"addr": "entry", "what": "func"})))
                want = rnd.choice((None, None, 7, "x"))
                if rnd.randrange(8) == 0:
                    c.tell(method, **params)
                else:
                    ids.append(c.post(method, params, want=want))
            if rnd.randrange(2):
                c.sock.close()
                continue
            left = len(ids)
            while left:
                c.next()
                left -= 1
            sure.append(len(ids))
            c.sock.close()
        except OSError:
            pass
        except EOFError:
            sure.append("closed")
            return


def test_storm():
    s = Server(SCRY, ROOT + "/storm", TARGET, env=ENV)
    c = s.client()
    c("open", file=TARGET)
    sure = []
    threads = [threading.Thread(target=storm, args=(s.path, i, sure)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(WAIT_S)
    ok(not any(t.is_alive() for t in threads) and "closed" not in sure, f"eight clients that do anything: {sum(n for n in sure if n != 'closed')} requests of {len(sure)} connections were each answered once")
    ok(c("ping") == {} and c("info")["format"] == "ELF64" and c("check", edits=True)["items"][0]["ok"], "the server is as it was")
    ok(s.stop() == 0, "and ends as told")
    text = open(s.path + ".log").read()
    ok("ERROR" not in text and "runtime error" not in text, f"with nothing to say {text[-1500:]}")


# --- snippets -------------------------------------------------------------------------------------------------------------------------

def below(pid):
    """All processes that come from this one, by number."""
    out = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as f:
                if int(f.read().rpartition(")")[2].split()[1]) == pid:
                    out += [int(name), *below(int(name))]
        except OSError:
            pass
    return out


def until(good):
    for _ in range(WAIT_S * 10):
        if good():
            return True
        time.sleep(0.1)
    return False


def is_there(pid):
    """Not waited for by init yet is gone, too."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def stat(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rpartition(")")[2].split()


def cpu(pid):
    """Ticks, a hundredth of a second each."""
    return sum(map(int, stat(pid)[11:13]))


def running(pid):
    """Snippets that compute for a second now: processes of the warm interpreter, not those it only keeps ready."""
    out = []
    for p in below(pid):
        try:
            out += [p] if stat(p)[0] == "R" and int(stat(p)[1]) != pid and cpu(p) >= 100 else []
        except OSError:
            pass
    return out


def test_gone():
    """Who sends edits and goes has them done, whether the answers were read or not; what would only be an answer is not."""
    s = Server(SCRY, ROOT + "/gone", TARGET, env=ENV)
    c = s.client()
    c("open", file=TARGET)
    addr = c("functions", limit=1)["items"][0]["addr"]
    for how in ("read one", "read none"):
        d = s.client()
        d("info")
        posts = [d.post("comment", {"addr": addr, "text": f"{how} {i}"}) for i in range(100)]
        if how == "read one":
            d.take(posts[0])
        d.close()
        ok(until(lambda: any(j.get("after") == f"{how} 99" for j in c("journal", limit=1000)["items"])), f"edits of a client that {how} answer and went")
    ok(c("ping") == {} and until(lambda: s.fds() < 40), "and its connection is closed")
    s.stop()


def test_snippets():
    if not os.path.exists(os.path.join(os.environ.get("BUILD") or os.path.dirname(os.path.dirname(os.path.dirname(SCRY))), "python/scry/_scry.abi3.so")):
        skip("snippets without end", "this build has no Python: its headers (python3-dev) were not there")
        return
    s = Server(SCRY, ROOT + "/snippets", TARGET, env=ENV)
    c, d = s.client(), s.client()
    c("open", file=TARGET)
    endless = {"code": "while True: pass", "deadline": "3000", "database": 1}
    want = d.post("exec", endless)
    ok(until(lambda: len(running(s.proc.pid)) == 1), "a snippet without end is a process of a warm interpreter")
    ok(c("ping") == {} and c("info")["format"] == "ELF64", "others are answered meanwhile")
    d.tell("cancel", id=want)
    kind = d.take(want)["end"]
    ok(kind == "cancelled" and until(lambda: not running(s.proc.pid)), f"it can be cancelled ({kind})")
    gone = s.client()
    gone.post("exec", endless)
    ok(until(lambda: len(running(s.proc.pid)) == 1), "a snippet of a client that goes")
    gone.close()
    ok(until(lambda: not running(s.proc.pid)), "ends with it")
    began = cpu(s.proc.pid)
    time.sleep(1)
    ok(cpu(s.proc.pid) - began < 50, "nor does the server turn in circles")
    big = d("exec", code="for _ in range(64): print('x' * (1 << 20))", deadline="3000", database=1, max_output=1000)
    ok(len(big["output"]) == 1000 and big["output_cut"] > 60 << 20, "64 MB of output are read, and not kept")
    d.post("exec", endless)
    ok(until(lambda: len(running(s.proc.pid)) == 1), "one more")
    all_of = below(s.proc.pid)
    s.proc.kill()
    s.proc.wait()
    ok(until(lambda: not any(is_there(p) for p in all_of)), "a killed server leaves no process behind")


def main():
    os.makedirs(ROOT + "/run", 0o700, exist_ok=True)
    for test in (test_other_user, test_names, test_at_once, test_ten_thousand, test_tls, test_storm, test_gone, test_snippets):
        try:
            test()
        except (Refused, OSError, EOFError, subprocess.SubprocessError) as e:
            ok(False, f"{test.__name__}: {e!r}")
            print("# " + "\n# ".join(traceback.format_exc().splitlines()))
    print(f"1..{count}")
    shutil.rmtree(ROOT, ignore_errors=True)
    sys.exit(failed > 0)


main()
