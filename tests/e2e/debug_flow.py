#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first minute of a person with a debugger, on a terminal that is recorded: connect; file; b main; r; image list; c; q. From lldb and from scry at our
own server, whose program and library are on another machine as far as they know, and from scry at lldb-server, gdbserver and QEMU. What is not installed
is skipped by name. Prints TAP. SCRY is the program; with $SCRY_RECORD, a folder, the recordings are kept there."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from rspclient import Platform, wait_until  # noqa: E402
from rspmeter import Meter  # noqa: E402
from terminal import Terminal  # noqa: E402

SCRY = os.environ.get("SCRY", "")
ROOT = os.path.realpath(tempfile.mkdtemp(prefix="scry-flow-"))
REAL, FAR = ROOT + "/real", ROOT + "/far"
ENV = dict(os.environ, SCRY_STORE=ROOT + "/store", XDG_RUNTIME_DIR=ROOT, HOME=ROOT + "/home", NO_COLOR="1", TERM="xterm", LC_ALL="C.UTF-8", DEBUGINFOD_URLS="")
count = failed = 0


def ok(good, what, *why):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}", flush=True)
    for w in why if not good else ():
        print("# " + str(w)[-3000:].replace("\n", "\n# "), flush=True)
    return good


def skip(what, why):
    global count
    count += 1
    print(f"ok {count} - {what} # skip {why}", flush=True)


def talk(name, words, prompt, lines):
    """Types each line at the prompt, up to what must come; the whole recording is looked at afterwards."""
    t = Terminal(name, words, ENV, cwd=ROOT)
    fine = ok(t.until(prompt) is not None, f"{name}: a prompt", t.text)
    for line, *patterns in lines if fine else ():
        t.type(line)
        for pattern in patterns:
            if not ok(t.until(pattern) is not None, f"{name}: {line}: {pattern}", t.text):
                fine = False
        if not fine:
            break
        if line not in ("q", "quit") and t.until(prompt) is None:
            fine = ok(False, f"{name}: {line}: the prompt comes again", t.text)
            break
    if not fine:
        os.kill(t.pid, signal.SIGKILL)
    status = t.end()
    said = [json.loads(line) for line in t.recording().splitlines()]
    typed = [e[2] for e in said[1:] if e[1] == "i"]
    ok(not fine or (len(typed) == len(lines) and all(a[0] <= b[0] for a, b in zip(said[1:], said[2:]))), f"{name}: the recording has all of it", said[:3])
    return status if fine else None


def lldb(version, server):
    name = f"lldb-{version}"
    if not shutil.which(name):
        return skip(f"{name}: the flow at our server", f"apt-get install {name}")
    url = f"connect://127.0.0.1:{server.at[1]}"
    words = [name, "--no-lldbinit", "-X", "-o", "settings set script-lang none", "-o", "settings set symbols.enable-external-lookup false", "-o",
             "settings set use-color false"]
    status = talk(f"{name} at scry platform", words, r"^\(lldb\) (?![\s\S]*\n)", [
        ("platform select remote-linux", r"Platform: remote-linux"), (f"platform connect {url}", r"Connected: yes"), (f"platform settings -w {FAR}",),
        (f"file {FAR}/debuggee", r"Current executable set to .*debuggee"), ("b main", r"Breakpoint 1: where = debuggee`main"),
        ("r", r"stop reason = breakpoint 1\.1", r"debuggee`main"), ("image list", r"debuggee", r"libown\.so", r"libc\.so\.6"), ("c", r"exited with status = 7"), ("q",)])
    return ok(status == 0, f"{name}: it ends", status)


# name, the words of its server with {w}: a descriptor for its port, {s}: a socket; what to install
PEERS = [("lldb-server-19", ["lldb-server-19", "gdbserver", "--pipe", "{w}", "127.0.0.1:0", "--", "{program}"], "lldb-19"),
         ("lldb-server-14", ["lldb-server-14", "gdbserver", "--pipe", "{w}", "127.0.0.1:0", "--", "{program}"], "lldb-14"),
         ("gdbserver", ["gdbserver", "--once", "localhost:0", "{program}"], "gdbserver"),
         ("qemu-x86_64", ["qemu-x86_64", "-g", "{s}", "{program}"], "qemu-user")]


def scry_flow(name, where, last=("exited with status 7",)):
    return talk(name, [SCRY, "debug", *where], r"^\(scry\) (?![\s\S]*\n)", [
        ("b main", r"^1: main"), ("r", r"^breakpoint 1 at 0x[0-9a-f]+ main \(.*debuggee\.c:\d+\)", r"^=> 0x[0-9a-f]+ <main>"),
        ("image list", r"^\[0\] 0x[0-9a-f]+ .*debuggee", r"libc\.so\.6"), ("c", *last), ("q",)])


def peer(name, words, package):
    if not shutil.which(words[0]):
        return skip(f"scry at {name}", f"apt-get install {package}")
    sock = f"{ROOT}/{name}.sock"
    r, w = os.pipe()
    program = REAL + "/debuggee"
    child = subprocess.Popen([word.format(w=w, s=sock, program=program) for word in words], pass_fds=[w], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             stdin=subprocess.DEVNULL, env=ENV, start_new_session=True)
    os.close(w)
    try:
        if name == "gdbserver":
            port = None
            for line in child.stderr:
                m = re.search(rb"Listening on port (\d+)", line)
                if m:
                    port = m.group(1).decode()
                    break
            url = f"connect://localhost:{port}"
        elif name.startswith("lldb"):
            with os.fdopen(r) as f:
                url = "connect://127.0.0.1:" + f.read(16).strip("\0\n ")
            r = -1
        else:
            wait_until(lambda: os.path.exists(sock) or child.poll() is not None)
            url = "unix-connect://" + sock
        # What it prints is the server's. Old QEMU gives out no files; from the others the program comes over the connection.
        status = scry_flow(f"scry at {name}", [url, program] if name.startswith("qemu") else [url])
        ok(status == 7, f"scry at {name}: it ends as the program did", status)
    finally:
        if r >= 0:
            os.close(r)
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except OSError:
            pass
        child.wait()
        child.stderr.close()
    return None


def own(server):
    """With how often the way to the server was gone: a person far away waits for each."""
    meter = Meter(server.at)
    url = f"connect://127.0.0.1:{meter.port}{FAR}/debuggee"
    for turn, most in (("cold", 26), ("warm", 18)):
        meter.deepest = 0
        status = scry_flow(f"scry at scry platform, {turn}", [url], ("^hello 1", "exited with status 7"))
        ok(status == 7, f"{turn}: it ends as the program did", status)
        ok(0 < meter.deepest <= most, f"{turn}: at most {most} round trips, libraries fetched and all", meter.deepest, meter.asked)
    said = subprocess.run([SCRY, "cache", "list"], env=ENV, capture_output=True, text=True, check=False).stdout
    ok("far/debuggee" in said and "far/libown.so" in said and "libc.so" not in said, "the program and its library were fetched, libraries that are the same here not", said)
    # Names in a library that only the server has, and callers by its unwind table.
    r = subprocess.run([SCRY, "debug", url, "-b", "own_deep", "-e", "run", "-e", "backtrace", "-e", "finish", "-e", "kill"], env=ENV, capture_output=True, text=True,
                       check=False)
    ok(re.search(r"^breakpoint 1 at 0x[0-9a-f]+ libown\.so!own_deep", r.stdout, re.M) and re.search(r"^#1 0x[0-9a-f]+ libown\.so!own_call\+0x", r.stdout, re.M) and
       re.search(r"^#2 0x[0-9a-f]+ main\+0x.*debuggee\.c", r.stdout, re.M) and re.search(r"^stopped at .* libown\.so!own_call", r.stdout, re.M),
       "a breakpoint in a library that only the server has; who called", r.stdout, r.stderr)
    meter.close()


def main():
    for folder in (REAL, FAR, ROOT + "/home"):
        os.makedirs(folder)
    with open(ROOT + "/own.c", "w", encoding="ascii") as f:
        f.write("int own_value;\nint __attribute__((noinline)) own_deep(int x) { return own_value += x; }\n"
                "int __attribute__((noinline)) own_call(int x) { return own_deep(x + 1) + 1; }\n"
                "__attribute__((constructor)) static void begin(void) { own_value = 0; }\n")
    r = subprocess.run(f"cc -O2 -fno-omit-frame-pointer -shared -fPIC -Wl,--build-id -o {REAL}/libown.so {ROOT}/own.c && cc -g -O0 -pthread -DOWN_LIBRARY -Wl,--build-id "
                       f"-o {REAL}/debuggee {HERE}/../data/prog/debuggee.c -L{REAL} -lown -Wl,-rpath,'$ORIGIN'", shell=True, capture_output=True, text=True, check=False)
    if r.returncode:
        return skip("the flow of a debugging session", "no C compiler: " + r.stderr[-200:])
    before = ("unshare", "-m", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', REAL, FAR)
    if os.geteuid() or subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        skip("the flow at our own server", "the server's folder is one that its clients do not see, which needs root and a mount namespace")
    else:
        server = Platform(SCRY, "--listen", "127.0.0.1:0", "--allow-remote", "--allow-run", env=ENV, cwd=FAR, before=before)
        own(server)
        for version in ("14", "19"):
            lldb(version, server)
        server.stop()
    for one in PEERS:
        peer(*one)
    return None


try:
    main()
finally:
    shutil.rmtree(ROOT, ignore_errors=True)
print(f"1..{count}")
sys.exit(failed > 0)
