#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traces and probes for others than the command line: begun, read piece by piece and ended over a server, as an agent and in Python; what is
refused; and that none is left when its client is gone. Prints TAP. SCRY is the program."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from rpcclient import Refused, Server, WAIT_S  # noqa: E402

SCRY = os.environ.get("SCRY", "")
BUILD = os.environ.get("BUILD") or os.path.dirname(os.path.dirname(os.path.dirname(SCRY)))
ROOT = tempfile.mkdtemp(prefix="scry-events-")
ENV = dict(os.environ, SCRY_STORE=ROOT + "/store", XDG_RUNTIME_DIR=ROOT, NO_COLOR="1")
SUBJECT = r"""
#include <stdio.h>
#include <unistd.h>
__attribute__((noipa)) int step(int n) { return n + 1; }
int main(void)
{
	for (int n = 0; ; n = step(n)) {
		(void)!access("/nowhere/marked", 0);
		usleep(2000);
	}
}
"""
LONG_MS = 60000
count = failed = 0


def ok(good, what, *why):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}", flush=True)
    for w in why if not good else ():
        print("#", str(w)[:600])
    return good


def skip(what, why):
    global count
    count += 1
    print(f"ok {count} - {what} # SKIP {why}", flush=True)


def children_of(pid):
    """Processes of scry that a server started, whose command is a trace or a probe: their numbers and commands."""
    out = {}
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat") as f, open(f"/proc/{name}/cmdline") as g:
                fields, words = f.read().rsplit(")", 1)[1].split(), g.read().split("\0")
        except (OSError, ValueError, IndexError):
            continue
        if fields[1] == str(pid) and words[0] == "scry" and fields[0] != "Z":
            out[name] = words[1]
    return out


def gone(pid):
    """Waits until none is left; a machine may be slow."""
    for _ in range(WAIT_S * 10):
        if not children_of(pid):
            return True
        time.sleep(0.1)
    return False


def ended(pids):
    """Waits until none of these runs; whoever adopts them may leave them unburied."""
    for _ in range(WAIT_S * 10):
        states = []
        for pid in pids:
            try:
                with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
                    states.append(f.read().rsplit(")", 1)[1].split()[0])
            except OSError:
                pass
        if not set(states) - {"Z", "X"}:
            return True
        time.sleep(0.1)
    return False


def read_until(ask, first, good, limit=200):
    """Reads on until an item is as wanted: all items, and the last answer."""
    items, d = list(first["items"]), first
    for _ in range(limit):
        if any(good(i) for i in items) or "next" not in d:
            break
        d = ask("events", cursor=d["next"], wait_ms=1000, limit=100)
        items += d["items"]
    return items, d


def is_marked(i):
    return i.get("event") == "syscall" and any(a["text"] == "/nowhere/marked" for a in i["args"])


def refusal(ask, op, **params):
    try:
        ask(op, **params)
    except Refused as e:
        return e.kind
    return "nothing"


def check_trace(c, server, pid):
    try:
        d = c("trace", pid=[pid], expr=["access"], limit=50, wait_ms=LONG_MS)
    except Refused as e:
        skip("traces of a process", str(e))
        return
    ok(sum(map(is_marked, d["items"])) and len(d["items"]) == 50 and d["missed"] == 0 and "next" in d, "a trace gives as many items as are asked for", d)
    again = c("events", cursor=d["next"], limit=5, wait_ms=LONG_MS)
    same = c("events", cursor=d["next"], limit=5, wait_ms=LONG_MS)
    ok(again["items"] == same["items"] and len(same["items"]) == 5 and again["next"] == same["next"], "the same cursor gives the same again")
    c("events", cursor=same["next"], limit=1, wait_ms=0)
    ok(c("events", cursor=d["next"], limit=1, wait_ms=0)["missed"] > 0, "what was read and given back is said to be missed")
    left = children_of(server.proc.pid)
    ok(list(left.values()) == ["trace"], "it goes on in a process of its own", left)
    other = server.client()
    ok(refusal(other, "events", cursor=d["next"]) == "not_found", "another client's it is not")
    other.close()
    items, end = read_until(c, c("events", cursor=same["next"], stop=True, wait_ms=LONG_MS, limit=1 << 20), lambda i: False)
    ok("next" not in end and items[-1]["end"] is True and items[-1]["events"] >= 50, "stopped, it ends with how much there was", items[-1:])
    ok(refusal(c, "events", cursor=d["next"]) == "not_found", "and is no more")
    d = c("trace", pid=[pid], expr=["access"], until="20", wait_ms=LONG_MS)
    ok("next" not in d and d["items"][-1].get("end") and sum(map(is_marked, d["items"])) >= 10, "one with an end is one answer", d["items"][-1:])
    d = c("trace", pid=[pid], expr=["access"], wait_ms=0)
    items, _ = read_until(c, d, is_marked)
    ok(any(map(is_marked, items)), "one that was only begun is read later")
    for _ in range(3):
        c("trace", pid=[pid], wait_ms=0)
    ok(refusal(c, "trace", pid=[pid], wait_ms=0) == "busy", "a client has four at most")
    ident = c.post("trace", {"pid": [pid], "wait_ms": LONG_MS, "deadline_ms": 1})
    try:
        c.take(ident)
        kind = "nothing"
    except Refused as e:
        kind = e.kind
    ok(kind in ("timeout", "busy"), "a deadline is kept", kind)


def check_probe(c, server, pid):
    try:
        d = c("probe", what=["step"], pid=int(pid), limit=20, wait_ms=LONG_MS)
    except Refused as e:
        ok(e.kind == "unsupported" and e.fix is not None, "a probe that cannot be says so", e)
        skip("probes of a process", str(e))
        return
    hits = [i for i in d["items"] if i.get("event") == "probe"]
    ok(len(hits) == 20 and all(h["name"] == "step" and int(h["ret"]["value"], 16) == int(h["args"][0]["value"], 16) + 1 for h in hits if h["ret"]),
       "a probe gives calls with arguments and results", d["items"][:2])
    ok("1 probe attached" in d["notes"], "notes are what it says beside", d.get("notes"))
    items, end = read_until(c, c("events", cursor=d["next"], stop=True, wait_ms=LONG_MS, limit=1 << 20), lambda i: False)
    last = items[-1]
    ok("next" not in end and last["end"] and last["probes"][0]["hits"] >= 20 and last["records"] == last["received"] + last["lost"],
       "and ends with counts", last)
    d = c("probe", what=["step"], pid=int(pid), **{"if": "n & 1"}, count=5, wait_ms=LONG_MS)
    hits = [i for i in d["items"] if i.get("event") == "probe"]
    ok(len(hits) == 5 and all(int(h["args"][0]["value"], 16) & 1 for h in hits), "conditions hold", d["items"][:2])


def check_refused(c, pid):
    ok(refusal(c, "trace", cmd=["true"]) == "denied", "no program is started")
    ok(refusal(c, "trace", pid=[pid], output="/tmp/x") == refusal(c, "trace", pid=[pid], to="/tmp/x") == "denied", "no file is written")
    ok(refusal(c, "trace", wait_ms=LONG_MS) == "invalid", "a trace of nothing")
    ok(refusal(c, "trace", pid=["4194305"], wait_ms=LONG_MS) in ("not_found", "invalid", "unsupported"), "a process that is not there")
    ok(refusal(c, "trace", pid=[pid], expr=["nosuch"], wait_ms=LONG_MS) == "invalid", "a call that is not there")
    ok(refusal(c, "probe", what=["--help"]) == "invalid", "a name that would be an option")
    ok(refusal(c, "probe", what=["x" * 140000]) == refusal(c, "trace", pid=[pid], expr=["read," * 28000]) == "budget", "words longer than a command can have")
    for cursor in ("", "x", "1", "1.", "1.x", "99.0", "-1.0", "1.0.0"):
        kind = refusal(c, "events", cursor=cursor)
        ok(kind in ("invalid", "not_found"), f"the cursor {cursor!r}", kind)


def agent(prog, caps, asks):
    """Answers of the tool trace."""
    p = subprocess.Popen([SCRY, "mcp", prog, "--allow", caps], env=ENV, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def send(i, method, params):
        p.stdin.write(json.dumps({"jsonrpc": "2.0", "id": i, "method": method, "params": params}) + "\n")
        p.stdin.flush()
        while True:
            d = json.loads(p.stdout.readline())
            if d.get("id") == i:
                return d["result"]
    send(0, "initialize", {"protocolVersion": "2025-06-18", "clientInfo": {"name": "robot"}})
    out = [send(i + 1, "tools/call", {"name": "trace", "arguments": a})["structuredContent"] for i, a in enumerate(asks)]
    left = children_of(p.pid)
    p.stdin.close()
    p.wait(WAIT_S)
    return out, left


def check_agent(prog, pid):
    out, _ = agent(prog, "read", [{"pid": [pid]}])
    ok(out[0]["error"]["kind"] == "denied", "an agent without the capability traces nothing", out)
    out, left = agent(prog, "read,trace", [{"pid": [pid], "expr": ["access"], "wait_ms": LONG_MS, "limit": 20, "max_bytes": 65536},
                                           {"op": "probe", "params": {"what": ["step"], "count": 3, "wait_ms": LONG_MS}, "max_bytes": 65536}])
    if "error" in out[0]:
        skip("an agent's trace", out[0]["error"]["message"])
        return
    ok(any(map(is_marked, out[0]["items"])) and out[0]["next"] and "trace" in left.values(), "an agent watches a process", out[0], left)
    ok("error" in out[1] or any(i.get("event") == "probe" for i in out[1]["items"]), "and calls of its program", out[1])


def check_python(prog, pid):
    package = BUILD + "/python"
    if not os.path.exists(package + "/scry/_scry.abi3.so"):
        skip("traces in Python", "no module")
        return
    code = """
import json, os, sys, scry
db = scry.open(sys.argv[1])
pid = sys.argv[2]
out = {}
try:
    d = scry.trace(pid=[pid], expr=["access"], limit=20, wait_ms=60000)
    out["trace"] = d["items"]
    out["more"] = scry.events(d["next"], stop=True, wait_ms=60000, limit=1 << 20)["items"][-1:]
except scry.Error as e:
    out["error"] = [e.kind, str(e)]
try:
    out["probe"] = db.probe("step", pid=int(pid), count=3, wait_ms=60000)["items"]
except scry.Error as e:
    out["no_probe"] = e.kind
print(json.dumps(out))
"""
    env = dict(ENV, PYTHONPATH=package)
    with open(package + "/scry/_scry.abi3.so", "rb") as f:
        needs = b"__asan_init" in f.read()
    if needs:
        runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=False).stdout.strip()
        env |= {"LD_PRELOAD": os.path.realpath(runtime), "ASAN_OPTIONS": "detect_leaks=0"}
    got = subprocess.run([sys.executable, "-c", code, prog, pid], env=env, capture_output=True, text=True, check=False)
    if not ok(got.returncode == 0, "Python asks", got.stdout, got.stderr):
        return
    d = json.loads(got.stdout)
    if "error" in d:
        skip("traces in Python", d["error"][1])
        return
    ok(any(map(is_marked, d["trace"])), "Python watches a process", d["trace"][:2])
    ok(not d["more"] or d["more"][-1].get("end"), "to its end", d["more"])
    ok("no_probe" in d or [h["name"] for h in d["probe"] if h.get("event") == "probe"] == ["step"] * 3, "and calls of a database's functions", d.get("probe"))


def main():
    prog = ROOT + "/prog"
    if subprocess.run(["gcc", "-O1", "-g", "-o", prog, "-x", "c", "-"], input=SUBJECT, text=True, check=False).returncode:
        print("1..0 # SKIP no compiler")
        return 0
    subject = subprocess.Popen([prog])
    pid = str(subject.pid)
    server = Server(SCRY, ROOT + "/s", prog, env=ENV)
    try:
        c = server.client()
        check_refused(c, pid)
        check_probe(c, server, pid)
        check_trace(c, server, pid)
        c.close()
        ok(gone(server.proc.pid), "a client that goes leaves no trace running")
        c = server.client()
        if refusal(c, "trace", pid=[pid], wait_ms=0) == "nothing":
            ok(refusal(c, "trace", pid=[pid], wait_ms=0) == "nothing", "its room is others'")
        check_agent(prog, pid)
        check_python(prog, pid)
        ok(subject.poll() is None, "the process was not disturbed")
        traced = children_of(server.proc.pid)
        server.proc.send_signal(signal.SIGKILL)
        server.proc.wait()
        ok(ended(traced), "a killed server leaves none either", traced)
        c.close()
        ro = Server(SCRY, ROOT + "/t", prog, "--caps", "read", env=ENV)
        c = ro.client()
        ok(refusal(c, "trace", pid=[pid]) == refusal(c, "probe", what=["step"]) == "denied", "a server that may only read traces nothing")
        c.close()
        ok(ro.stop() == 0, "the server ends in peace")
    finally:
        subject.kill()
        subject.wait()
    return failed > 0


status = main()
shutil.rmtree(ROOT, ignore_errors=True)
if count:
    print(f"1..{count}")
sys.exit(status)
