#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real debuggers as clients of `scry platform`: lldb-14, lldb-19, gdb; whole sessions, files, and what LLDB does when one packet of the server is
missing. Those that are not installed are skipped by name. Prints TAP. SCRY is the program."""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from rspclient import Platform, WAIT_S  # noqa: E402

SCRY = os.environ.get("SCRY", "")
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.realpath(tempfile.mkdtemp(prefix="scry-peers-"))
ENV = dict(os.environ, SCRY_STORE=ROOT + "/store", XDG_RUNTIME_DIR=ROOT + "/run", HOME=ROOT + "/home", NO_COLOR="1", DEBUGINFOD_URLS="")
REAL, FAR, WORK = ROOT + "/real", ROOT + "/far", ROOT + "/work"
# The server's folder is not there for its clients.
BEFORE = ("unshare", "-m", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', REAL, FAR)
SUBJECT = FAR + "/debuggee"
count = failed = 0


def ok(good, what, said=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}", flush=True)
    if not good:
        print("# " + said[-3000:].replace("\n", "\n# "), flush=True)
    return good


def skip(what, why):
    global count
    count += 1
    print(f"ok {count} - {what} # skip {why}", flush=True)


def lldb(version, *commands):
    words = [f"lldb-{version}", "--no-lldbinit", "-b", "-o", "settings set script-lang none", "-o", "settings set symbols.enable-external-lookup false"]
    for command in commands:
        words += ["-o", command]
    try:
        # An error before the program runs ends the list of commands.
        r = subprocess.run(words, env=ENV, cwd=ROOT, capture_output=True, text=True, errors="replace", timeout=WAIT_S, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as e:
        return "timed out " + (e.stdout or b"").decode(errors="replace")
    return r.stdout + r.stderr


def is_complete(said):
    """The flow of a whole session was gone through."""
    return bool(re.search(r"stop reason = breakpoint", said) and "debuggee`work" in said and "exited with status = 7" in said)


def flow(url):
    return ("platform select remote-linux", f"platform connect {url}", f"platform settings -w {FAR}", f"file {SUBJECT}", "b work", "r one", "image list",
            "register read rip", "breakpoint disable 1", "c", "q")


def session(version, url, how):
    said = lldb(version, *flow(url))
    ok(is_complete(said), f"lldb-{version}, {how}: file, b, r, image list, c, q", said)
    ok("libc.so.6" in said and "ld-linux" in said, f"lldb-{version}, {how}: its libraries are listed", said)
    ok("hello 2 one" in said, f"lldb-{version}, {how}: what the program printed came", said)


def files(version, url):
    with open(ROOT + "/put", "w", encoding="ascii") as f:
        f.write("put #$}* text\n" * 5000)
    got = ROOT + f"/got{version}"
    said = lldb(version, "platform select remote-linux", f"platform connect {url}", f"platform mkdir {WORK}/made{version}",
                f"platform put-file {ROOT}/put {WORK}/made{version}/there", f"platform get-size {WORK}/made{version}/there",
                f"platform get-file {WORK}/made{version}/there {got}", "platform shell echo the shell runs", "platform process list -n sh -s", "q")
    with open(ROOT + "/put", "rb") as a:
        want = a.read()
    ok(os.path.exists(got) and open(got, "rb").read() == want, f"lldb-{version}: put-file and get-file give the same bytes", said)
    ok(f"{len(want)}" in said, f"lldb-{version}: get-size", said)
    ok(said.count("the shell runs") > 1, f"lldb-{version}: shell", said)


def more(version, url):
    said = lldb(version, "platform select remote-linux", f"platform connect {url}", f"platform settings -w {FAR}", f"file {SUBJECT}", "b work", "r one",
                "breakpoint disable 1", "watchpoint set variable counter", "c", "watchpoint delete --force 1", "thread step-over", "thread step-out", "thread list",
                "expression counter = 1000", "process detach", "q")
    ok("stop reason = watchpoint" in said, f"lldb-{version}: a watchpoint", said)
    ok("step over" in said and "step out" in said, f"lldb-{version}: steps over and out", said)
    ok("= 1000" in said and "detached" in said, f"lldb-{version}: an expression, and it lets go", said)
    said = lldb(version, "platform select remote-linux", f"platform connect {url}", f"platform settings -w {WORK}", f"file {SUBJECT}", "r signals", "q")
    ok("signal SIGUSR1" in said, f"lldb-{version}: signals by their names", said)


# --- one packet missing ---------------------------------------------------------------------------------------------------
class Filter:
    """Between a client and the server: packets that begin with `removed`, on the platform's connection or the others, are not supported."""

    def __init__(self, server, removed, of_platform):
        self.server, self.removed, self.of_platform, self.cnt, self.hits = server, removed, of_platform, 0, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            is_platform, self.cnt = self.cnt == 0, self.cnt + 1
            far = socket.create_connection(self.server)
            for s in (client, far):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.ask, args=(client, far, is_platform == self.of_platform), daemon=True).start()
            threading.Thread(target=self.tell, args=(client, far), daemon=True).start()

    def ask(self, client, far, filters):
        buf = b""
        try:
            while True:
                data = client.recv(1 << 20)
                if not data:
                    break
                buf += data
                while buf:
                    m = re.match(rb"\$([^#]*)#..", buf, re.S)
                    if m is None and buf[:1] == b"$":
                        break
                    one, buf = (m.group(), buf[m.end():]) if m else (buf[:1], buf[1:])
                    if m and filters and any(m.group(1).startswith(r.encode()) for r in self.removed):
                        self.hits += 1
                        client.sendall(b"$#00")
                    else:
                        far.sendall(one)
        except OSError:
            pass
        for s in (far, client):
            s.close()

    def tell(self, client, far):
        try:
            while True:
                data = far.recv(1 << 20)
                if not data:
                    break
                m = re.fullmatch(rb"\$(pid:\d+;port:)\d+;#..", data)
                if m:
                    payload = m.group(1) + b"%d;" % self.port
                    data = b"$" + payload + b"#%02x" % (sum(payload) & 255)
                client.sendall(data)
        except OSError:
            pass
        for s in (client, far):
            s.close()


# (platform's or the debug connection, packets, whether the session is complete all the same, what is said where it is not)
ABLATION = [
    (True, ["qHostInfo"], True, ""), (True, ["QSetWorkingDir"], True, ""), (True, ["qQueryGDBServer"], True, ""), (True, ["vFile:close"], True, ""),
    (True, ["vFile:MD5", "vFile:size", "vFile:mode", "vFile:exists"], True, ""), (True, ["qPlatform_chmod"], True, ""),
    (True, ["qModuleInfo"], False, "does not exist"), (True, ["vFile:open"], False, ""), (True, ["vFile:pread"], False, ""),
    (True, ["qLaunchGDBServer"], False, "invalid host:port"),
    # Programs are started by relative names. A client without no-ack mode cannot be shown so: the filter answers out of its turn.
    (True, ["qGetWorkingDir"], False, ""), (True, [""], False, ""),
    (False, ["qHostInfo"], True, ""), (False, ["QThreadSuffixSupported"], True, ""), (False, ["QListThreadsInStopReply"], True, ""),
    (False, ["QEnableErrorStrings"], True, ""), (False, ["qProcessInfo"], True, ""), (False, ["qC"], True, ""), (False, ["QSetDisableASLR"], True, ""),
    (False, ["QLaunchArch"], True, ""), (False, ["vRun"], True, ""), (False, ["qXfer:features"], True, ""), (False, ["qMemoryRegionInfo"], True, ""),
    (False, ["qModuleInfo"], True, ""), (False, ["qXfer:libraries-svr4"], True, ""), (False, ["x"], True, ""), (False, ["jThreadsInfo"], True, ""),
    (False, ["qThreadStopInfo"], True, ""), (False, ["p"], True, ""), (False, ["vCont"], True, ""),
    (False, ["?"], False, ""), (False, ["qSupported"], False, ""), (False, ["qXfer:auxv"], False, ""),
    (False, ["Z0"], True, ""), (False, ["vCont;"], False, ""),
]


def ablation(version, server):
    for of_platform, removed, want, text in ABLATION:
        f = Filter(server.at, removed, of_platform)
        shutil.rmtree(ENV["HOME"] + "/.lldb", ignore_errors=True)
        said = lldb(version, *flow(f"connect://127.0.0.1:{f.port}"))
        f.listener.close()
        good = is_complete(said) == want and text in said
        ok(good, f"lldb-{version} without {', '.join(removed)} of the {'platform' if of_platform else 'debug server'}: "
           f"{'complete' if want else 'not, as with any server'}{'' if f.hits else ' (never asked for)'}", said)


def test_lldb():
    for version in ("19", "14"):
        if not shutil.which(f"lldb-{version}"):
            skip(f"lldb-{version} as a client", f"apt-get install lldb-{version}")
            continue
        if os.geteuid():
            skip(f"lldb-{version} as a client", "the server's folder is one that its clients do not see, which needs root")
            continue
        p = Platform(SCRY, "--listen", "127.0.0.1:0", "--allow-remote", "--allow-run", env=ENV, cwd=WORK, before=BEFORE)
        url = f"connect://127.0.0.1:{p.at[1]}"
        session(version, url, "TCP")
        files(version, url)
        more(version, url)
        if version == "19":
            ablation(version, p)
        p.stop()
        # Where LLDB takes the debug server to be: it writes the empty name of a host so.
        if not os.path.lexists(ROOT + "/[]"):
            os.symlink(ROOT + "/sock", ROOT + "/[]")
        p = Platform(SCRY, "--socket", ROOT + "/sock", "--allow-run", env=ENV, cwd=WORK, before=BEFORE)
        session(version, f"unix-connect://{ROOT}/sock", "a unix socket")
        p.stop()


def gdb(*commands):
    words = ["gdb", "-nx", "-batch", "-iex", "set auto-load off"]
    for command in ("set pagination off", "set confirm off", "set width 0", *commands):
        words += ["-ex", command]
    r = subprocess.run(words, env=ENV, cwd=ROOT, capture_output=True, text=True, errors="replace", timeout=WAIT_S, check=False, stdin=subprocess.DEVNULL)
    return r.stdout + r.stderr


def test_gdb():
    if not shutil.which("gdb"):
        skip("gdb as a client", "apt-get install gdb")
        return
    here = REAL + "/debuggee"
    p = Platform(SCRY, "--listen", "127.0.0.1:0", "--allow-remote", "--allow-run", env=ENV, cwd=WORK)
    begin = (f"target extended-remote 127.0.0.1:{p.at[1]}", f"set remote exec-file {here}", f"file {here}")
    said = gdb(*begin, "break work", "run one", "info sharedlibrary", "print $xmm0", "print $ymm1", "info args", "watch counter", "continue", "continue", "continue",
               "delete", "finish", "next", "print counter = 5", "stepi", "info threads", "set $rax = 1", "continue")
    ok("Breakpoint 1, work (x=0)" in said and "x = 0" in said, "gdb: a breakpoint is hit", said)
    ok("libc.so.6" in said and "v4_float" in said, "gdb: libraries and registers", said)
    ok("Hardware watchpoint 2" in said and "New value = 1" in said, "gdb: a watchpoint", said)
    ok("Value returned" in said and "= 5" in said, "gdb: finish, next, a variable is set", said)
    ok("exited with code 07" in said and "hello 2 one" in said, "gdb: its output and its end", said)
    said = gdb(*begin, "set args threads", "break work", "run", "info threads", "delete", "continue")
    ok("sum 200" in said and "exited with code 04" in said, "gdb: threads", said)
    said = gdb(*begin, "set args signals", "run", "continue", "continue")
    ok("SIGUSR1" in said and "SIGSEGV" in said and "terminated with signal" in said, "gdb: signals by their names", said)
    said = gdb(*begin, "set args exec", "catch exec", "run", "continue")
    ok("hello 2 after" in said, "gdb: another program in its place", said)
    said = gdb(f"target extended-remote 127.0.0.1:{p.at[1]}", f"remote get {here} {ROOT}/gdbgot", f"remote put {here} {WORK}/gdbput", f"remote delete {WORK}/gdbput")
    ok(open(ROOT + "/gdbgot", "rb").read() == open(here, "rb").read() and not os.path.exists(WORK + "/gdbput"), "gdb: remote get, put and delete", said)
    spinning = subprocess.Popen([here, "spin"], stdout=subprocess.DEVNULL)
    said = gdb(f"target extended-remote 127.0.0.1:{p.at[1]}", f"attach {spinning.pid}", "bt", "detach")
    ok("in main" in said and spinning.poll() is None, "gdb: attach, and detach", said)
    spinning.kill()
    spinning.wait()
    p.stop()
    said = gdb(f"target extended-remote | {SCRY} platform --stdio --allow-run", f"set remote exec-file {here}", f"file {here}", "break work", "run", "kill")
    ok("Breakpoint 1, work" in said, "gdb: through a pipe", said)
    said = gdb(f"file {here}", f"target remote | {SCRY} platform --stdio --allow-run -- {here} one", "break work", "continue", "delete", "continue")
    ok("Breakpoint 1, work" in said and "hello 2 one" in said and "exited with code 07" in said, "gdb: target remote finds the program", said)


def main():
    if not SCRY:
        print("1..0 # skip SCRY is not set")
        return 0
    for folder in (REAL, FAR, WORK, ENV["XDG_RUNTIME_DIR"], ENV["HOME"]):
        os.makedirs(folder, 0o700)
    if subprocess.run(["cc", "-g", "-O0", "-pthread", "-Wl,--build-id", "-o", REAL + "/debuggee", HERE + "/../data/prog/debuggee.c"], check=False).returncode:
        ok(False, "the subject is built")
    for test in (test_gdb, test_lldb):
        if len(sys.argv) > 1 and test.__name__ not in sys.argv[1:]:
            continue
        try:
            test()
        except Exception:  # noqa: BLE001
            ok(False, test.__name__, traceback.format_exc())
    print(f"1..{count}")
    shutil.rmtree(ROOT, ignore_errors=True)
    return 1 if failed else 0


sys.exit(main())
