#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The live workbench on a pseudo-terminal, steered over its socket: every method, several drivers, drivers that mean harm, a terminal that
takes nothing, and what a person does step by step, with the frame's number after each. Prints TAP. SCRY is the program."""
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import xml.dom.minidom

SCRY = os.environ.get("SCRY", "")
TARGET = "/bin/bash"
WAIT_S = 120
# What a sanitizer keeps of freed memory is not the program's.
ENV = {"TERM": "xterm-256color", "ASAN_OPTIONS": "quarantine_size_mb=1:" + os.environ.get("ASAN_OPTIONS", "")}
ROOT = tempfile.mkdtemp(prefix="scry-driving-")
count = failed = 0


def ok(good, what):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}", flush=True)
    return good


class Refused(Exception):
    def __init__(self, error):
        super().__init__(error["message"])
        self.code = error["code"]
        self.kind = error["data"]["kind"]
        self.fix = error["data"].get("fix", "")


class Driver:
    """One connection."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(path)
        self.sock.settimeout(WAIT_S)
        self.pending = b""
        self.id = 0

    def send(self, method, params=None):
        self.id += 1
        request = {"jsonrpc": "2.0", "id": self.id, "method": method}
        if params is not None:
            request["params"] = params
        self.sock.sendall(json.dumps(request).encode() + b"\n")
        return self.id

    def line(self):
        while b"\n" not in self.pending:
            more = self.sock.recv(1 << 16)
            if not more:
                raise EOFError
            self.pending += more
        line, self.pending = self.pending.split(b"\n", 1)
        return json.loads(line)

    def take(self, want):
        answer = self.line()
        assert answer["id"] == want, answer
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["result"]

    def __call__(self, method, **params):
        return self.take(self.send(method, params))

    def refusal(self, method, params=None):
        """The error a call ends in, or None."""
        try:
            self.take(self.send(method, params))
        except Refused as e:
            return e
        return None

    def close(self):
        self.sock.close()


class Workbench:
    def __init__(self, name="s", target=TARGET, size=(40, 140), read=True, wait=True):
        self.path = os.path.join(ROOT, name)
        self.seen = 0
        self.paused = threading.Event()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            targets = [target] if isinstance(target, str) else target
            os.execve(SCRY, [SCRY, "--rpc", self.path, *targets], dict(os.environ, **ENV))
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        self.thread = threading.Thread(target=self.read, daemon=True)
        if read:
            self.thread.start()
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            try:
                self.driver = Driver(self.path)
                break
            except (FileNotFoundError, ConnectionRefusedError):
                time.sleep(0.02)
        if wait:
            self.driver("ui.wait")

    def read(self):
        with contextlib.suppress(OSError):
            while True:
                if self.paused.is_set():
                    time.sleep(0.01)
                    continue
                if select.select([self.fd], [], [], 0.05)[0]:
                    self.seen += len(os.read(self.fd, 65536))

    def end(self):
        """Ends it and gives its exit status."""
        with contextlib.suppress(OSError):
            self.driver.send("ui.quit")
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.driver.close()
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return -1


def cli(*words):
    return subprocess.run([SCRY, *words], capture_output=True, text=True, timeout=WAIT_S, env=dict(os.environ, SCRY_STORE=ROOT + "/store"))


def screen(d):
    return d("ui.screen")["text"]


# --- every method -----------------------------------------------------------------------------------------------------------------


def test_basics(w):
    d = w.driver
    p = d("ui.ping")
    ok(p["ok"] and p["ready"] and p["complete"] and p["functions"] > 1000 and p["file"] == TARGET, "R1 ping says how far it is")
    m = d("ui.methods")
    names = {x["name"]: x for x in m["methods"]}
    ops = [line.split()[1] for line in cli("help").stdout.split("commands:")[1].split("options of")[0].splitlines() if line.startswith("  ") and line.split()]
    ok({"ui.ping", "ui.goto", "ui.screen", "functions", "ui.rename"} <= set(names), "R2 methods lists them")
    ok(all(x["help"] for x in m["methods"]) and names["ui.goto"]["params"][0] == {"name": "target", "type": "string", "required": True, "help": "ADDR"},
       "each with its help and its parameters")
    keys = cli("keys").stdout
    ok(len(m["actions"]) > 70 and all(a["help"] in keys for a in m["actions"]), "every action of the table is listed")
    mode = os.stat(w.path)
    ok(mode.st_mode & 0o777 == 0o600, "the socket is for its owner alone")
    e = d.refusal("ui.nothing")
    ok(e.code == -32601 and e.kind == "not_found" and "ui.methods" in e.fix, "an unknown method is refused and says where they are")
    e = d.refusal("ui.goto", {"target": "main", "speed": 3})
    ok(e.code == -32602 and "speed" in str(e), "an unknown parameter is refused, not dropped")
    ok(d.refusal("ui.goto", {}).kind == "invalid" and d.refusal("ui.goto", {"target": 5}).kind == "invalid", "a missing one and a wrong type too")
    return ops


def test_keys(w):
    d = w.driver
    before = d("ui.state")
    s = d("ui.keys", keys=["g"])
    ok(s["prompt"]["label"].startswith("go to") and s["frame"] > before["frame"], "R3 a key, answered after its frame")
    s = d("ui.text", text="main\n")
    ok(s["prompt"] is None and s["function"]["name"] == "main", "R4 text, whose line feed is Enter")
    began = time.monotonic()
    s = d("ui.keys", keys=["j", "wait:300", "j"])
    ok(time.monotonic() - began >= 0.3, "a wait between keys")
    began = time.monotonic()
    d("ui.text", text="jjj", delay_ms=60)
    ok(time.monotonic() - began >= 0.18, "text at a pace one can read along")
    ok(d.refusal("ui.keys", {"keys": ["Hyper+X"]}).kind == "invalid", "a key that is none")
    s = d.take(d.send("ui.keys", ["Ctrl+P", "h", "e", "x"]))
    ok(s["dialog"]["filter"] == "hex" and any("Hex view" in r["cols"][0] for r in s["dialog"]["items"]), "the palette and what is typed into it")
    s = d("ui.keys", keys=["Enter"])
    ok(s["view"] == "hex" and s["dialog"] is None, "and Enter does it")
    s = d("ui.paste", text="qqq")
    ok(s["view"] == "hex" and d("ui.ping")["ok"], "a paste presses no key")
    d("ui.hex")
    s = d("ui.keys", keys=[",", "f"])
    ok(s["focus"] == "functions", "the leader and its letter")
    d("ui.toggle_view")


def test_state(w):
    d = w.driver
    s = d("ui.goto", target="main")
    want = {"frame", "settled", "shown", "rev", "file", "progress", "complete", "screen", "view", "focus", "cursor", "function", "status", "list",
            "prompt", "dialog", "back", "forward", "pending_edits"}
    ok(want <= set(s), "R5 the state has all its members")
    ok(s["function"]["name"] == "main" and s["cursor"]["where"] == "main" and s["cursor"]["kind"] == "listing" and s["settled"] and s["shown"],
       "and says where we are")
    v = d("ui.view", lines=9)
    ok(len(v["lines"]) == 9 and sum(x["cursor"] for x in v["lines"]) == 1, "R6 the lines in sight, with the cursor's")
    heads = json.loads(cli("heads", TARGET, "main", "--count", "3", "--json").stdout)["items"]
    at = next(i for i, x in enumerate(v["lines"]) if x["cursor"])
    ok(v["lines"][at]["text"] == next(h["text"] for h in heads if h["kind"] == "code"), "they are the listing's")
    t = d("ui.screen")
    rows = t["text"].split("\n")
    ok(t["width"] == 140 and t["height"] == 40 and len(rows) == 41 and "bash" in rows[0], "R7 the screen as text")
    h = d("ui.screen", format="html")["text"]
    ok(h.startswith("<pre") and h.count("<span") == h.count("</span>") and "#" in h, "as HTML, with its colours")
    plain = re.sub(r"<[^>]*>", "", h)
    for a, b in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        plain = plain.replace(a, b)
    ok([r.rstrip() for r in plain.split("\n")][:40] == [r.rstrip() for r in rows][:40], "which says the same, escaped")
    svg = d("ui.screen", format="svg")["text"]
    doc = xml.dom.minidom.parseString(svg)
    ok(doc.documentElement.tagName == "svg" and len(doc.getElementsByTagName("text")) > 40, "and as SVG that is well-formed")
    ok(d.refusal("ui.screen", {"format": "png"}).kind == "invalid", "a format that is none")
    frames = {d("ui.state")["frame"] for _ in range(20)}
    ok(len(frames) == 1, "looking paints no frame")
    d("ui.keys", keys=["m", "3"])
    g = d("ui.diag", n=5)["messages"]
    ok(g and g[-1]["bad"] and "mark" in g[-1]["text"], "R14 what the status line said")
    d("ui.diag", clear=True)
    ok(d("ui.diag")["messages"] == [], "and it can be cleared")


def test_operations(w):
    d = w.driver
    rows = [
        ("R8", "functions", {"filter": "*main*", "limit": 50}, ["functions", TARGET, "--filter", "*main*", "--limit", "50"]),
        ("R10", "disasm", {"func": "main", "limit": 20}, ["disasm", TARGET, "main", "--limit", "20"]),
        ("R11", "xrefs", {"addr": "execute_command", "limit": 200}, ["xrefs", TARGET, "execute_command", "--limit", "200"]),
        ("R11", "xrefs", {"addr": "main", "from": True, "whole": True}, ["xrefs", TARGET, "main", "--from", "--whole"]),
        ("R12", "resolve", {"name": ["main", "malloc", "no_such_name"]}, ["resolve", TARGET, "main", "malloc", "no_such_name"]),
        ("R13", "search", {"text": "GNU", "limit": 5}, ["search", TARGET, "--text", "GNU", "--limit", "5"]),
        ("", "info", {}, ["info", TARGET]), ("", "segments", {}, ["segments", TARGET]), ("", "sections", {}, ["sections", TARGET]),
        ("", "heads", {"addr": "main", "count": 30}, ["heads", TARGET, "main", "--count", "30"]),
        ("", "blocks", {"func": "main", "limit": 9}, ["blocks", TARGET, "main", "--limit", "9"]),
        ("", "callgraph", {"func": "main", "limit": 9}, ["callgraph", TARGET, "main", "--limit", "9"]),
        ("", "strings", {"limit": 9}, ["strings", TARGET, "--limit", "9"]), ("", "imports", {"limit": 9}, ["imports", TARGET, "--limit", "9"]),
        ("", "exports", {"limit": 9}, ["exports", TARGET, "--limit", "9"]), ("", "symbols", {"limit": 9}, ["symbols", TARGET, "--limit", "9"]),
        ("", "bytes", {"addr": "main", "len": 16}, ["bytes", TARGET, "main", "16"]), ("", "problems", {}, ["problems", TARGET]),
        ("", "types", {}, ["types", TARGET]), ("", "journal", {"limit": 3}, ["journal", TARGET, "--limit", "3"]), ("", "version", {}, ["version"]),
    ]
    for row, op, params, words in rows:
        want = json.loads(cli(*words, "--json").stdout)
        ok(d(op, **params) == want, f"{row} {op} answers as the command line does".strip())
    ok(d("blocks", func="main", dot=True)["dot"].startswith("digraph"), "a graph is text")
    want = json.loads(cli("decompile", TARGET, "main", "--map", "--json").stdout)
    ok(d("decompile", func="main", map=True) == want, "R9 decompile answers as the command line does")
    page = d("functions", limit=3)
    more = d("functions", limit=3, cursor=page["next"])
    ok(len(page["items"]) == 3 and page["total"] > 1000 and more["items"][0]["id"] > page["items"][2]["id"], "pages with next")
    ok(d("functions", limit=3, etag=page["etag"]).get("unchanged") is True, "and an etag")
    small = d("functions", max_bytes=2000)
    ok(len(json.dumps(small)) < 4000 and small["next"], "a budget cuts at an item's edge and says so")
    ok(d.refusal("xrefs", {"addr": "no_such_name"}).kind == "not_found" and d.refusal("functions", {"limit": "many"}).kind == "invalid"
       and d.refusal("functions", {"colour": 1}).kind == "invalid", "an operation's refusals")


def test_verbs(w):
    d = w.driver
    d("ui.goto", target="main")
    s = d("ui.open", target="execute_command")
    ok(s["function"]["name"] == "execute_command" and s["back"] > 0, "R15 goto and open")
    s = d("ui.goto", target="main", delay_ms=5)
    ok(s["function"]["name"] == "main", "typed to be read along it comes to the same")
    e = d.refusal("ui.goto", {"target": "no_such_name"})
    ok(e.kind == "not_found" and d("ui.state")["function"]["name"] == "main", "a name that is none is refused, and nothing moves")
    c = d("ui.cursor_on", word="call")
    target = c["cursor"].get("target")
    s = d("ui.follow")
    ok(c["found"] and target and s["cursor"]["addr"] == target, "follow")
    s = d("ui.back")
    ok(s["cursor"]["addr"] == c["cursor"]["addr"], "back")
    s = d("ui.forward")
    ok(s["cursor"]["addr"] == target, "forward")
    s = d("ui.hex")
    ok(s["view"] == "hex" and isinstance(s["cursor"]["byte"], int), "hex, with the byte under the cursor")
    d("ui.hex")
    s = d("ui.toggle_view")
    ok(s["view"] == "C" and s["cursor"]["addr"] == target and not s["cursor"]["making"], "toggle_view: the C of the function")
    s = d("ui.toggle_view")
    ok(s["view"] == "listing" and s["cursor"]["addr"] == target, "and back")
    d("ui.goto", target="execute_command")
    s = d("ui.xrefs")
    want = json.loads(cli("xrefs", TARGET, "execute_command", "--json").stdout)["total"]
    ok(s["dialog"]["rows"] == want and s["dialog"]["items"], "xrefs, as many as the operation says")
    row = s["dialog"]["items"][2]
    s = d("ui.select", index=2, open=True)
    ok(s["dialog"] is None and s["cursor"]["addr"] == row["addr"], "select opens the row")
    s = d("ui.symbols", query="execute_command_int")
    ok("execute_command_internal" in s["dialog"]["items"][0]["cols"][0], "symbols")
    s = d("ui.close")
    ok(s["dialog"] is None, "close")
    s = d("ui.search", query="hex:7f 45 4c 46")
    ok(s["cursor"]["addr"] == "0x0" and "found" in s["status"]["text"], "search, answered when it ended")
    s = d("ui.search", query="text:GNU bash", all=True)
    ok(s["view"] == "search" and s["list"]["rows"] > 0 and s["list"]["items"], "and every match, in a view")
    first = s["list"]["items"][0]["addr"]
    s = d("ui.select", index=0, open=True)
    ok(s["view"] == "listing" and s["cursor"]["addr"] == first and d("ui.back")["view"] == "search" and d("ui.state")["list"]["items"][0]["addr"] == first,
       "followed, and back to what was found")
    s = d("ui.search", query="hex:00", all=True, timeout_ms=WAIT_S * 1000)
    ok(s["list"]["rows"] == 100000 and "there are more" in s["status"]["text"], "no end of matches is cut and said to be")
    d("ui.show", view="listing")
    s = d("ui.show", view="strings")
    d("ui.filter", text="GNU")
    s = d("ui.select", text="GNU", open=True)
    ok(s["view"] == "listing", "show, filter, select by text")
    e = d.refusal("ui.structs")
    ok(e is None or e.kind == "unsupported", "structs shows the types or says that there is no view")
    ok("no save" in d("ui.save")["note"], "save says that there is none")
    d("ui.show", view="listing")
    ok(d.refusal("ui.filter", {"text": "x"}).kind == "not_found", "a filter where there is no list")


def test_edits(w):
    d = w.driver
    d("ui.goto", target="main")
    d("ui.cursor_on", word="push")
    s = d("ui.rename", name="start_here")
    ok(s["result"]["results"][0]["status"] == "applied" and "start_here" in screen(d), "R16 rename at the cursor, on disk and on the screen")
    rev = s["rev"]
    j = d("journal", since=rev - 1)["items"]
    ok(j[-1]["op"] == "rename" and j[-1]["after"] == "start_here" and j[-1]["author_kind"] == "script", "in the journal it is a script's")
    s = d("ui.comment", text="first\nsecond", kind="block", author="ada", author_kind="agent")
    ok("first" in screen(d) and "second" in screen(d) and d("journal", since=rev)["items"][-1]["author"] == "ada", "a comment of two lines, in a name")
    s = d.take(d.send("ui.comment", ["by position"]))
    ok("by position" in screen(d), "by position the place is the cursor's")
    s = d("ui.rename", name="no name", addr="main")
    ok(s["result"]["results"][0]["status"] == "refused" and s["result"]["results"][0]["why"], "a refusal says why")
    s = d("ui.bookmark", text="look again")
    ok(s["result"]["results"][0]["status"] == "applied", "bookmark")
    s = d("ui.patch", bytes="cc")
    ok("int3" in screen(d) and d("ui.unpatch")["result"]["results"][0]["status"] == "applied", "patch and unpatch")
    s = d("ui.rename_many", items={"execute_command": "run_it", "no_such": "x", "expand_string": "grow_it"})
    states = [r["status"] for r in s["result"]["results"]]
    ok(states == ["applied", "refused", "applied"] and s["result"]["results"][1]["why"], "R18 many names, each with what became of it")
    path = os.path.join(ROOT, "map.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"run_it": "run_that"}, f)
    ok(d("ui.rename_many", file=path)["result"]["results"][0]["after"] == "run_that", "and from a file")
    ok(d.refusal("ui.rename_many", {}).kind == "invalid" and d.refusal("ui.rename_many", {"file": "-"}).kind == "invalid", "but from neither nor stdin")
    s = d("ui.edit", ops=[{"op": "comment", "addr": "main", "text": "one"}, {"op": "bookmark", "addr": "main", "text": "two"}], atomic=True)
    ok([r["status"] for r in s["result"]["results"]] == ["applied", "applied"], "edit takes its list")
    s = d("ui.export", output=ROOT + "/x.md")
    with open(ROOT + "/x.md", encoding="utf-8") as f:
        ok("name: start" in f.read() and s["result"]["names"] > 1, "R20 export")
    ok("start_here" in d("export", format="list")["text"], "and without a file its text")
    ok(d("multi", ops=[{"op": "resolve", "params": {"name": ["main"]}}, {"op": "info"}])["results"][1]["file"] == TARGET, "multi takes its list")
    s = d("ui.undo", steps=20)
    ok(s["result"]["undone"] and "start_here" not in screen(d), "undo takes it all back")
    for row, method, params in (("R16", "ui.retype", {"type": "int"}), ("R17", "ui.define", {"what": "code"}), ("R17", "ui.undefine", {}),
                                ("R19", "ui.format", {"format": "dec"}), ("R22", "ui.trace", {"seek": "!50"})):
        known = {m["name"] for m in d("ui.methods")["methods"]}
        if method in known:
            continue
        e = d.refusal(method, params)
        ok(e.kind == "unsupported" and "it comes with" in e.fix, f"{row} {method} says what will bring it")


def test_movement(w):
    d = w.driver
    d("ui.goto", target="main")
    s = d("ui.graph")
    ok(s["view"] == "graph" and s["cursor"]["where"] == "main", "R21 the graph")
    t = d("ui.graph", action="succ")
    ok(t["cursor"]["addr"] != s["cursor"]["addr"], "along an edge")
    t = d("ui.graph", action="entry")
    ok(t["cursor"]["addr"] == s["cursor"]["addr"], "to the entry")
    block = json.loads(cli("blocks", TARGET, "main", "--limit", "5", "--json").stdout)["items"][3]["addr"]
    t = d("ui.graph", action="block", block=block)
    ok(t["cursor"]["addr"] == block and t["view"] == "graph", "to a block")
    d("ui.graph", action="zoom")
    ok(d("ui.graph", action="close")["view"] == "listing", "and closed")
    ok(d("ui.graph", action="toggle")["view"] == "graph" and d("ui.graph", action="toggle")["view"] == "listing", "toggled")
    b = d("ui.binaries")["binaries"]
    ok(any(x["path"] == TARGET and x["active"] for x in b), "R23 the binaries")
    d("ui.goto", target="main")
    a = d("ui.state")["cursor"]
    s = d("ui.move", dir="down", n=3)
    s = d("ui.move", dir="up", n=3)
    ok(s["cursor"]["addr"] == a["addr"], "R24 move down and up")
    ok(d.refusal("ui.move", {"dir": "sideways"}).kind == "invalid" and d.refusal("ui.move", {"dir": "quit"}).kind == "invalid", "only where one can move")
    v = d("ui.view")["lines"]
    s = d("ui.cursor", line=5, col=3)
    ok(s["cursor"]["addr"] == v[5]["addr"] and s["cursor"]["line"] == 5, "cursor by line and column")
    word = next(x for x in v if x["text"].startswith("call"))
    s = d("ui.cursor_on", word="call", line=word["line"])
    ok(s["found"] and s["cursor"]["line"] == word["line"] and s["cursor"]["word"] == "call", "cursor_on a line")
    s = d("ui.cursor_on", word="push", occurrence=3)
    ok(s["found"] and s["cursor"]["word"] == "push", "cursor_on the third of a word")
    s = d("ui.cursor_on", word="nowhere_in_sight")
    ok(s["found"] is False and s["cursor"]["word"] == "push", "what is not there moves nothing")
    x = d("ui.state")
    s = d("ui.mouse", what="click", x=x["cursor"]["x"], y=x["cursor"]["y"] + 2)
    ok(s["cursor"]["line"] == x["cursor"]["line"] + 2, "the mouse")
    s = d("ui.action", name="view-hex")
    ok(s["view"] == "hex", "an action by its name")
    ok(d.refusal("ui.action", {"name": "explode"}).kind == "invalid", "and one that is none")
    d("ui.action", name="VIEW_LISTING")


# --- what a person does, step by step ------------------------------------------------------------------------------------------------


class Steps:
    """A scenario: every step has a frame of its own or says that nothing changed, and numbers never go back."""

    def __init__(self, w, name):
        self.d = w.driver
        self.name = name
        self.frame = self.d("ui.close")["frame"]
        self.log = []

    def __call__(self, method, **params):
        r = self.d(method, **params)
        self.log.append(r["frame"])
        assert r["frame"] >= self.frame, (self.name, r["frame"], self.frame)
        self.frame = r["frame"]
        return r

    def check(self, good, what=""):
        ok(good and self.log, f"{self.name}: frames {' '.join(map(str, self.log[:12]))}" + ("" if good else f" {what}"))


def scenarios(w):
    d = w.driver
    known = {m["name"] for m in d("ui.methods")["methods"]}

    def unsupported(name, method):
        if method in known:
            return
        e = d.refusal(method)
        ok(e is not None and e.kind == "unsupported" and e.fix, f"{name}: unsupported, {e.fix if e else ''}")

    s = Steps(w, "startup, auto_land, open_default_view")
    s("ui.action", name="go-entry")
    r = s("ui.state")
    s.check(r["function"]["name"] == "main" and r["view"] == "listing")

    s = Steps(w, "segment_index, continuous_view, paging")
    s("ui.move", dir="top")
    first = s("ui.state")["cursor"]
    last = s("ui.move", dir="bottom")["cursor"]
    seen = [s("ui.goto", target=last["addr"])["cursor"]["row"]]
    for _ in range(5):
        seen.append(s("ui.move", dir="page_up")["cursor"]["row"])
    s.check(first["row"] == 0 and last["row"] == last["rows"] - 1 and seen == sorted(seen, reverse=True))

    s = Steps(w, "reprime_is_free, refresh_view")
    a = s("ui.screen")["text"]
    r = s("ui.action", name="redraw")
    s.check(s("ui.screen")["text"].split("\n")[1:38] == a.split("\n")[1:38])

    s = Steps(w, "skeleton_pages, palette_paging, palette, sort, filter, incr_filter")
    s("ui.show", view="functions")
    r = s("ui.move", dir="bottom")
    n = r["list"]["rows"]
    good = r["list"]["row"] == n - 1 and r["list"]["items"][-1]["index"] == n - 1
    s("ui.action", name="sort")
    totals = []
    s("ui.keys", keys=["/"])
    for ch in "main":
        totals.append(s("ui.text", text=ch)["list"]["rows"])
    s("ui.text", text="\n")
    good = good and totals == sorted(totals, reverse=True) and 0 < totals[-1] < n
    good = good and s("ui.filter", text="")["list"]["rows"] == n
    s("ui.action", name="sort")
    for _ in range(20):
        if "  by " not in s("ui.screen")["text"]:
            break
        s("ui.action", name="sort")
    s("ui.toggle_view")
    s.check(good)

    s = Steps(w, "status_names_the_file")
    s.check(s("ui.screen")["text"].startswith(" bash"))

    s = Steps(w, "disasm_nav, view_toggle, view_modes_all_handled")
    s("ui.goto", target="main")
    b = s("ui.move", dir="func_next")["function"]["addr"]
    a = s("ui.move", dir="func_prev")["function"]["name"]
    shown = []
    for m in d("ui.methods")["actions"]:
        if m["name"].startswith("VIEW_"):
            shown.append(s("ui.show", view=m["name"][5:].lower())["settled"])
    s("ui.show", view="listing")
    s.check(a == "main" and b and all(shown) and len(shown) >= 9)

    s = Steps(w, "follow_xrefs, xref_labels, xrefs_paging")
    s("ui.goto", target="xmalloc")
    r = s("ui.xrefs")
    kinds = {c for i in r["dialog"]["items"] for c in i["cols"]}
    end = s("ui.move", dir="bottom")
    s("ui.select", index=end["dialog"]["rows"] - 1, open=True)
    s.check(r["dialog"]["rows"] > 100 and "call" in kinds and end["dialog"]["row"] == end["dialog"]["rows"] - 1)

    s = Steps(w, "scroll_restore")
    s("ui.goto", target="main")
    a = s("ui.view")["lines"][0]["addr"]
    s("ui.goto", target="execute_command")
    s("ui.back")
    s.check(s("ui.view")["lines"][0]["addr"] == a)

    s = Steps(w, "rename, rename_history, listing_name_addr")
    s("ui.goto", target="main+0x4")
    before = s("ui.state")["rev"]
    s("ui.rename", name="named_here", addr=s.d("ui.state")["cursor"]["addr"])
    r = s("ui.goto", target="named_here")
    s("ui.action", name="history")
    h = json.dumps(s("ui.state")["list"]["items"])
    s("ui.show", view="listing")
    s("ui.undo")
    s.check("named_here" in h and r["rev"] > before and not any("named_here" in x for x in s("ui.screen")["text"].split("\n")[:38]))

    s = Steps(w, "comment_func")
    s("ui.goto", target="main")
    s("ui.comment", text="about the function", kind="func")
    r = s("ui.screen")["text"]
    s("ui.undo")
    s.check("about the function" in r)

    s = Steps(w, "hex")
    r = s("ui.hex")
    a = s("ui.move", dir="right", n=5)["cursor"]
    s("ui.hex")
    s.check(r["view"] == "hex" and int(a["addr"], 16) == int(r["cursor"]["addr"], 16) + 5)

    s = Steps(w, "mouse")
    s("ui.goto", target="main")
    a = s("ui.state")["cursor"]
    s("ui.mouse", what="wheel_down", x=a["x"], y=a["y"])
    s("ui.mouse", what="wheel_up", x=a["x"], y=a["y"])
    call = next(x for x in s("ui.view")["lines"] if x["text"].startswith("call"))
    at = s("ui.cursor_on", word="call", line=call["line"])["cursor"]
    r = s("ui.mouse", what="double", x=at["x"], y=at["y"])
    s.check(r["cursor"]["addr"] == at["target"])

    s = Steps(w, "cursor_on_stays_visible")
    r = s("ui.move", dir="down", n=200)
    s.check(0 <= r["cursor"]["line"] < 38)

    s = Steps(w, "search, db_search")
    r = s("ui.search", query="execute_command")
    q = s("ui.action", name="search-next")
    s.check("found" in r["status"]["text"] and q["cursor"]["addr"] != r["cursor"]["addr"])

    s = Steps(w, "command_palette, help, modal_centering")
    r = s("ui.action", name="palette")
    left = min(len(x) - len(x.lstrip()) for x in s("ui.screen")["text"].split("\n")[4:6])
    s("ui.close")
    r2 = s("ui.action", name="help")
    s("ui.close")
    s.check(r["dialog"]["rows"] == len(d("ui.methods")["actions"]) and r2["dialog"]["title"] == "Keys" and left >= 0)

    s = Steps(w, "strings")
    r = s("ui.show", view="strings")
    r = s("ui.filter", text="GNU")
    n = r["list"]["rows"]
    s("ui.filter", text="")
    s("ui.show", view="listing")
    s.check(0 < n < 200)

    s = Steps(w, "asm_highlight")
    s("ui.goto", target="main")
    s("ui.cursor_on", word="push")
    h = s("ui.screen", format="html")["text"]
    one = re.findall(r'background:(#\w+)[^>]*>push<', h.replace("push    ", "push<"))
    s.check(len(one) >= 4)

    s = Steps(w, "func_banners, listing_view")
    s("ui.goto", target="main")
    s.check("── main " in s("ui.screen")["text"])

    s = Steps(w, "graph_open, graph_nav, graph_zoom, graph_render, graph_minimap, graph_click, graph_sticky, graph_rename")
    s("ui.goto", target="execute_command")
    r = s("ui.graph")
    a = s("ui.graph", action="succ")["cursor"]["addr"]
    s("ui.graph", action="pred")
    z = [s("ui.graph", action="zoom")["frame"] for _ in range(3)]
    m0 = s("ui.screen")["text"]
    s("ui.action", name="graph-map")
    m1 = s("ui.screen")["text"]
    s("ui.action", name="graph-map")
    k = s("ui.goto", target="main")
    x = s("ui.state")["cursor"]
    click = s("ui.mouse", what="click", x=x["x"], y=x["y"] + 2)
    s("ui.rename", addr="main", name="main_in_graph")
    named = s("ui.screen")["text"]
    s("ui.undo")
    s("ui.graph", action="close")
    s.check(r["view"] == "graph" and a != r["cursor"]["addr"] and len(set(z)) == 3 and m0 != m1 and k["view"] == "graph"
            and click["cursor"]["addr"] != x["addr"] and "main_in_graph" in named)

    s = Steps(w, "quit_guard")
    s("ui.state")
    s.check("nothing is lost" in json.dumps(d("ui.methods")["actions"]))

    # Rows of the decompiler, of traces and of others' work say so until they are there.
    s = Steps(w, "split_view")
    s("ui.goto", target="main")
    r = s("ui.action", name="split")
    q = s("ui.toggle_view")
    s("ui.toggle_view")
    e = s("ui.action", name="split")
    s.check(r["split"] and q["view"] != r["view"] and not e["split"])

    s = Steps(w, "decomp_nav, view_toggle in C, scroll_restore")
    r = s("ui.pseudocode", target="execute_command")
    lines = s("ui.view")["lines"]
    call = next(x for x in lines if "execute_command_internal_" in x["text"])
    k = s("ui.cursor_on", word=re.search(r"execute_command_internal_[0-9a-f]+", call["text"])[0])
    q = s("ui.follow")
    b = s("ui.back")
    listing = s("ui.toggle_view")
    again = s("ui.toggle_view")
    s.check(r["view"] == "C" and r["function"]["name"] == "execute_command" and r["cursor"]["level"] in ("L1", "L2", "L3", "L4") and k["found"] and
            k["cursor"]["addr"] == call["addr"] and q["function"]["addr"] == k["cursor"]["target"] or q["view"] == "C" and
            b["cursor"]["addr"] == call["addr"] and b["cursor"]["text_line"] == call["text_line"] and listing["view"] == "listing" and
            listing["cursor"]["addr"] == call["addr"] and again["cursor"]["text_line"] == call["text_line"])

    s = Steps(w, "decomp_follow_self: a label, the function's own name")
    s("ui.pseudocode", target="execute_command_internal")
    s("ui.search", query="goto b")
    s("ui.keys", keys=["w"])
    word = s("ui.state")["cursor"]["word"]
    q = s("ui.follow")
    there = next(x["text"] for x in s("ui.view")["lines"] if x["cursor"])
    b = s("ui.back")
    s("ui.move", dir="top")
    own = next(x["text"] for x in s("ui.view")["lines"] if re.match(r"\w+ execute_command_internal_", x["text"]) and "(" in x["text"])
    s("ui.cursor_on", word=own.split("(")[0].split()[-1])
    k = s("ui.follow")
    s.check(there.startswith(word + ":") and b["cursor"]["word"] == word and q["view"] == k["view"] == "C" and k["function"]["name"] == "execute_command_internal")

    s = Steps(w, "rename, comment, xrefs in C")
    r = s("ui.pseudocode", target="execute_command")
    s("ui.move", dir="top")
    r = s("ui.rename", name="runs_it")
    renamed = s("ui.screen")["text"]
    s("ui.goto", target="runs_it")
    place = s("ui.state")["cursor"]
    s("ui.comment", text="said in C")
    noted = [x["text"] for x in s("ui.view")["lines"] if "said in C" in x["text"]]
    x = s("ui.xrefs")
    title = x["dialog"]["title"]
    s("ui.close")
    s("ui.undo")
    s("ui.undo")
    gone = s("ui.screen")["text"]
    s.check(" runs_it_" in renamed and noted and "*/" in noted[0] and place["kind"] == "C" and "References" in title and
            "said in C" not in gone and "runs_it" not in gone.split("\n")[2], (renamed, noted, place, title, gone))

    s = Steps(w, "split_view with C: bands, leader, resync")
    s("ui.show", view="listing")
    s("ui.goto", target="main")
    r = s("ui.action", name="split")
    places = []
    for _ in range(6):
        a = s("ui.move", dir="down")
        q = s("ui.toggle_view")
        places.append((a["cursor"]["addr"], q["cursor"]["addrs"]) if q["view"] == "C" else (a["cursor"]["addr"], [a["cursor"]["addr"]]))
        s("ui.toggle_view")
    s("ui.goto", target="execute_command")
    q = s("ui.toggle_view")
    synced = q["function"]["name"] == "execute_command"
    s("ui.toggle_view")
    s("ui.action", name="split")
    s.check(r["split"] and all(a in b for a, b in places) and synced)
    unsupported("trace UI", "ui.trace")


C_SOURCE = """
struct point { int x, y; };
struct item { const char *name; struct point at; char tag[8]; };
struct item one = {"single", {7, 8}, "x"};
unsigned char blob[64] = {0x31, 0xc0, 0xc3};
unsigned char wide[64] = {'h', 0, 'i', 0, '!', 0, 0, 0, 1};
__attribute__((noinline)) int f(int c) { return c == 0x41 ? 0x1234 : c; }
int main(int argc, char **argv) { return f(argc) + one.at.y + blob[argc]; }
"""


def lines_with(s, good, place=None):
    """The lines in sight (of one address) once they are as they should become: another analysis is behind that."""
    end = time.monotonic() + WAIT_S
    while True:
        lines = [x["text"] for x in s.d("ui.view")["lines"] if place in (None, x["addr"])]
        if good(lines) or time.monotonic() > end:
            return lines
        s.d("ui.wait", timeout_ms=WAIT_S * 1000)
        time.sleep(0.05)


def goes_to(s, name, addr):
    """Whether a name comes to be at an address."""
    end = time.monotonic() + WAIT_S
    while int(s.d("ui.goto", target=name)["cursor"]["addr"], 16) != addr:
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def test_scenarios_of_types():
    """What a person does with types, regions, literals and bytes that say nothing of themselves."""
    source, target, blob = (os.path.join(ROOT, x) for x in ("a.c", "a.out", "blob.bin"))
    with open(source, "w", encoding="utf-8") as f:
        f.write(C_SOURCE)
    if subprocess.run(["gcc", "-g", "-O1", "-o", target, source], check=False).returncode:
        return
    w = Workbench("types", target)
    d = w.driver
    s = Steps(w, "structs")
    s("ui.structs")
    r = s("ui.keys", keys=["Ctrl+N", "Ctrl+Home"] + ["Ctrl+K"] * 8)
    empty = r["dialog"]["text"].strip() == ""
    r = s("ui.paste", text="struct mine { int a; nothing b; };")
    r = s("ui.keys", keys=["Ctrl+S"])
    refused = "nothing" in r["dialog"]["error"]
    s("ui.keys", keys=["Ctrl+Home"] + ["Ctrl+K"] * 3)
    s("ui.paste", text="struct mine { int a; short b; };")
    r = s("ui.keys", keys=["Ctrl+S"])
    s.check(empty and refused and r["dialog"] is None and any("struct mine" in i["cols"][0] for i in s("ui.structs")["list"]["items"]))

    s = Steps(w, "struct_filter, types of one source")
    s("ui.structs")
    r = s("ui.filter", text="stmn")
    fuzzy = [i["cols"][0] for i in r["list"]["items"]]
    s("ui.filter", text="")
    shown = {}
    for source_name in ("user", "header", "dwarf", "builtin", "all"):
        r = s("ui.action", name="type-source")
        shown[source_name] = {i["cols"][3] for i in r["list"]["items"]}
    s.check("struct mine" in fuzzy and shown["user"] == {"user"} and shown["dwarf"] == {"dwarf"} and shown["builtin"] == {"builtin"} and "user" in shown["all"])

    s = Steps(w, "a type of debug information, as text, becomes one's own")
    s("ui.structs")
    s("ui.filter", text="struct point")
    r = s("ui.select", text="struct point", open=True)
    text = r["dialog"]["text"]
    s("ui.keys", keys=["Down", "Home"])
    s("ui.text", text="int before;")
    r = s("ui.keys", keys=["Ctrl+S"])
    r = s("ui.wait")
    own = json.loads(cli("types", target, "--source", "user", "--json").stdout)["items"]
    s("ui.filter", text="")
    s.check(text.startswith("struct point {\n\tint x;") and any(i["name"] == "struct point" and "before" in i["text"] for i in own))
    d("ui.undo")

    s = Steps(w, "listing_struct_expand")
    s("ui.retype", addr="one", type="struct item")
    s("ui.show", view="listing")
    s("ui.goto", target="one")
    lines = [x["text"] for x in s("ui.view")["lines"]]
    s.check(any(x.startswith("struct item") for x in lines) and any(".at.y" in x for x in lines))

    s = Steps(w, "region_define")
    place = s("ui.goto", target="main")["cursor"]["addr"]
    shown = {}
    for key in ("u", "d", "c"):
        s("ui.keys", keys=[key])
        lines = lines_with(s, lambda lines: any(x.startswith("push") for x in lines) == (key == "c"), place)
        shown[key] = [x.split()[0] for x in lines]
    s.check("push" not in shown["u"] + shown["d"] and "db" in shown["d"] and "push" in shown["c"] and s("ui.state")["cursor"]["addr"] == place)

    s = Steps(w, "listing_make_string: by key, and of a kind by its prompt")
    name = next(i["addr"] for i in json.loads(cli("strings", target, "--filter", "single", "--json").stdout)["items"])
    place = s("ui.goto", target=name)["cursor"]["addr"]
    s("ui.keys", keys=["u"])
    bare = lines_with(s, lambda lines: not any("single" in x for x in lines), place)
    s("ui.keys", keys=["a"])
    made = lines_with(s, lambda lines: any('"single"' in x for x in lines), place)
    said = s("ui.diag")["messages"]
    s("ui.goto", target="wide")
    place = s("ui.state")["cursor"]["addr"]
    s("ui.keys", keys=[",", "D"])
    s("ui.text", text="string:c16\n")
    wide = lines_with(s, lambda lines: any("hi!" in x for x in lines), place)
    s.check(not any("single" in x for x in bare) and any('"single"' in x for x in made) and any("string: 7 bytes" in json.dumps(m) for m in said)
            and any("hi!" in x for x in wide))

    s = Steps(w, "retype: a function and data, by key")
    s("ui.goto", target="f")
    s("ui.keys", keys=["y", "Ctrl+U"])
    s("ui.text", text="long f(char letter)\n")
    banner = lines_with(s, lambda lines: any("long f(char letter)" in x for x in lines))
    s("ui.goto", target="blob")
    place = s("ui.state")["cursor"]["addr"]
    s("ui.keys", keys=["y", "Ctrl+U"])
    s("ui.text", text="short [32]\n")
    typed = lines_with(s, lambda lines: any("{-16335, 195, 0," in x for x in lines), place)
    s("ui.keys", keys=["y", "Ctrl+U"])
    r = s("ui.text", text="nothing known\n")
    s.check(any("long f(char letter)" in x for x in banner) and any("{-16335, 195, 0," in x for x in typed) and r["status"]["bad"])

    s = Steps(w, "opfmt_opcode_key_moved: bytes beside instructions")
    s("ui.goto", target="main")
    none = s("ui.screen")["text"]
    eight = s("ui.keys", keys=["B"]) and s("ui.screen")["text"]
    whole = s("ui.keys", keys=["B"]) and s("ui.screen")["text"]
    again = s("ui.keys", keys=["B"]) and s("ui.screen")["text"]
    s.check(len({none, eight, whole}) >= 2 and again.split("\n")[1:30] == none.split("\n")[1:30])

    s = Steps(w, "decomp_fallback: what has no C stays where it is, and says why")
    s("ui.goto", target="blob")
    r = s("ui.keys", keys=["F5"])
    s.check(r["view"] == "listing" and r["status"]["text"] and "here is none" in r["status"]["text"])

    s = Steps(w, "export_findings: by key")
    notes = os.path.join(ROOT, "notes.md")
    s("ui.rename", addr="blob", name="found_by_hand")
    s("ui.keys", keys=["Ctrl+E", "Ctrl+U"])
    r = s("ui.text", text=notes + "\n")
    with open(notes, encoding="utf-8") as f:
        s.check("found\\_by\\_hand" in f.read() and "written to" in r["status"]["text"])
    d("ui.undo")

    s = Steps(w, "opfmt_listing, opfmt_sticks_to_its_literal, opfmt_highlight")
    s("ui.goto", target="f")
    line = next(x for x in s("ui.view")["lines"] if "0x41" in x["text"])
    s("ui.cursor_on", word="0x41", line=line["line"])
    seen = []
    for _ in range(6):
        r = s("ui.keys", keys=["o"])
        d("ui.wait")
        seen.append(next(x["text"] for x in s("ui.view")["lines"] if x["addr"] == line["addr"] and x["cursor"]))
    s("ui.keys", keys=["O"])
    d("ui.wait")
    back = next(x["text"] for x in s("ui.view")["lines"] if x["addr"] == line["addr"] and x["cursor"])
    s.check(len(set(seen)) >= 4 and any("'A'" in x for x in seen) and any("65" in x for x in seen) and back == seen[-2])

    s = Steps(w, "a literal's format by its name, from the palette")
    r = s("ui.action", name="format-hex")
    d("ui.wait")
    hexed = next(x["text"] for x in s("ui.view")["lines"] if x["addr"] == line["addr"] and x["cursor"])
    r = s("ui.action", name="format-stack")
    s.check("0x41" in hexed and r["status"]["bad"] and "refused" in r["status"]["text"])

    s = Steps(w, "opfmt_no_literal, opfmt_refusal_is_not_swallowed")
    s("ui.goto", target="main")
    line = next(x for x in s("ui.view")["lines"] if x["text"].startswith("ret"))
    s("ui.goto", target=line["addr"])
    r = s("ui.keys", keys=["o"])
    s.check(r["status"]["bad"] and "no number" in r["status"]["text"])

    s = Steps(w, "load_options: reload as, the work stays")
    s("ui.rename", addr="f", name="kept")
    old = int(s("ui.goto", target="kept")["cursor"]["addr"], 16)
    r = s("ui.keys", keys=["Ctrl+L"])
    first = r["dialog"]
    s("ui.keys", keys=["Tab"])
    r = s("ui.text", text="7000000")
    s("ui.keys", keys=["Enter"])
    is_moved = goes_to(s, "kept", old + 0x7000000)
    again = s("ui.keys", keys=["Ctrl+L"])["dialog"]
    s("ui.close")
    s("ui.undo")
    s.check(first["processor"] == "auto" and first["base"] == "auto" and r["dialog"]["base"] == "7000000" and is_moved
            and again["base"] == "7000000" and goes_to(s, "kept", old))
    w.end()

    # Bytes that say nothing of themselves are asked about before there is anything to steer.
    with open(blob, "wb") as f:
        f.write(b"\x31\xc0\xff\xc0\xc3" + bytes(range(200)))
    w = Workbench("blob", blob, wait=False)
    os.write(w.fd, b"86\t4000\r")
    d = w.driver
    d("ui.wait", timeout_ms=WAIT_S * 1000)
    s = Steps(w, "load_options: blob")
    r = s("ui.state")
    head = s("ui.screen")["text"].split("\n")[0]
    s("ui.goto", target="0x4000")
    s("ui.keys", keys=["c"])
    code = lines_with(s, lambda lines: any(x.startswith("xor") for x in lines))
    s.check("raw" in head and "Ctrl+L" in head and any(x.startswith("xor") for x in code) and any(x.startswith("ret") for x in code))

    s = Steps(w, "blob UI: carving does not move the view, what is a function is listed, the hint stays")
    top = s("ui.view")["lines"][0]["addr"]
    place = s("ui.state")["cursor"]["addr"]
    s("ui.keys", keys=["p"])
    listed = lines_with(s, lambda lines: any("sub_4000" in x for x in lines))
    s("ui.show", view="functions")
    funcs = s("ui.state")["list"]["rows"]
    s("ui.show", view="listing")
    same = s("ui.state")["cursor"]["addr"] == place and s("ui.view")["lines"][0]["addr"] == top
    s("ui.goto", target="0x4007")
    s("ui.keys", keys=["d"])
    byte = lines_with(s, lambda lines: any(x.startswith("db") for x in lines), "0x4007")
    carved = s("ui.state")["cursor"]["addr"]
    s("ui.goto", target="0x4020")
    s("ui.keys", keys=["w", "w", "n"])
    s("ui.text", text="inside\n")
    named = lines_with(s, lambda lines: any(x.startswith("inside") for x in lines))
    where = d("resolve", name=["inside"])["items"][0]["addr"]
    s.check(any("sub_4000" in x for x in listed) and funcs == 1 and same and any(x == "db 0x2" for x in byte) and carved == "0x4007" and
            any(x.startswith("inside") for x in named) and int(where, 16) > 0x4020 and
            "Ctrl+L" in s("ui.screen")["text"].split("\n")[0])
    ok(w.end() == 0, "and it leaves")


def go_to_place(d, where):
    d("ui.close")
    if where == "list":
        return d("ui.show", view="strings")
    if where == "bookmarks":
        d("ui.bookmark", addr="main", text="here")
        return d("ui.show", view="bookmarks")
    if where == "journal":
        d("ui.bookmark", addr="main", text="there")
        d("ui.action", name="history")
        d("ui.move", dir="top")
        return d("ui.state")
    if where == "types":
        d("ui.edit", ops=[{"op": "declare", "text": "struct walked { int a; };"}])
        d("ui.show", view="types")
        d("ui.filter", text="walked")
        return d("ui.state")
    d("ui.show", view="listing")
    d("ui.goto", target="main")
    if where == "listing":
        return d("ui.show", view="listing")
    if where == "C":
        return d("ui.pseudocode")
    return d("ui.graph") if where == "graph" else d("ui.show", view="hex")


def take_back(d, before, after):
    """What a key edited must not be in the way of the next: the function at hand may be no function any more."""
    if before["rev"] != after["rev"]:
        d("ui.close")
        d("ui.undo")
        d("ui.wait", timeout_ms=WAIT_S * 1000)


def test_keyboard(w):
    """The keyboard alone reaches every action, and every key that the help shows does something where its action is meant."""
    d = w.driver
    actions = [a for a in d("ui.methods")["actions"] if a["name"] not in ("QUIT", "SUSPEND")]
    pages = [screen(d) for _ in (d("ui.action", name="help"),)]
    for _ in range(20):
        d("ui.keys", keys=["PgDn"])
        pages.append(screen(d))
        if pages[-1] == pages[-2]:
            break
    d("ui.close")
    card = "\n".join(pages)
    missing = [(a["name"], k) for a in actions for k in a["keys"].split() if k not in card]
    ok(not missing, f"the help shows every key {missing[:5]}")
    dead, pressed = [], 0
    for where in ("listing", "hex", "list", "graph", "bookmarks", "journal", "types", "C"):
        for a in actions:
            for key in a["keys"].split() if where in a["where"] else []:
                at = go_to_place(d, where)
                strokes = [key] if len(key) == 1 or "+" in key or len(key) > 2 or re.fullmatch(r"F\d", key) or key == "Up" else list(key)
                r = d("ui.keys", keys=strokes)
                pressed += 1
                take_back(d, at, r)
                if r["status"]["text"].startswith("no action on this key") or "not in this view" in r["status"]["text"] or at["dialog"]:
                    dead.append((where, a["name"], key, r["status"]["text"]))
    ok(not dead and pressed > 250, f"{pressed} keys, each with something to do {dead[:5]}")
    unreached = []
    for a in (a for a in actions if a["where"][0] in ("listing", "hex", "list", "graph", "C")):
        before = go_to_place(d, a["where"][0])
        r = d("ui.keys", keys=["Ctrl+P"])
        r = d("ui.text", text=a["help"])
        at = next((i for i, x in enumerate(r["dialog"]["items"]) if x["cols"][:1] == [a["help"]]), None)
        if at is None:
            unreached.append((a["name"], r["dialog"]["title"], r["dialog"]["filter"]))
            continue
        r = d("ui.keys", keys=["Down"] * at + ["Enter"])
        take_back(d, before, r)
        if "not in this view" in r["status"]["text"]:
            unreached.append((a["name"], r["status"]["text"]))
    ok(not unreached and len(actions) > 70, f"{len(actions)} actions reached through the palette {unreached[:5]}")
    d("ui.close")
    d("ui.show", view="listing")
    d("ui.wait", until="idle")


# --- many drivers, bad drivers, bad terminals --------------------------------------------------------------------------------------------


def test_many(w):
    drivers = [Driver(w.path) for _ in range(8)]
    ids = [d.send("ui.move", {"dir": "down" if i % 2 else "up"}) for i, d in enumerate(drivers)]
    frames = [d.take(i)["frame"] for d, i in zip(drivers, ids)]
    ok(len(frames) == 8, "eight drivers at once, none is told that it is busy")
    began = [d.send("functions", {"limit": 100000}) for d in drivers]
    quick = w.driver("ui.state")
    ok(quick["settled"] and all(len(d.take(i)["items"]) > 2000 for d, i in zip(drivers, began)), "long answers hold nobody back")
    d = drivers[0]
    d.sock.sendall(b"".join(json.dumps({"id": i, "method": "ui.move", "params": {"dir": "down" if i % 2 else "up"}}).encode() + b"\n" for i in range(200)))
    answers = [d.line() for _ in range(200)]
    ok([a["id"] for a in answers] == list(range(200)) and all("result" in a for a in answers), "two hundred requests at once, answered in order")
    frames = [a["result"]["frame"] for a in answers]
    ok(frames == sorted(frames), "with frames that never go back")
    n = 5000
    d.sock.sendall(b"".join(b'{"id":%d,"method":"ui.ping"}\n' % i for i in range(n)))
    ok([d.line()["id"] for _ in range(n)] == list(range(n)), "five thousand requests")
    d.sock.sendall(b'{"method":"ui.move","params":{"dir":"down"}}\n{"id":"x","method":"ui.ping"}\n')
    ok(d.line()["id"] == "x", "a notification has no answer")
    for d in drivers:
        d.close()
    crowd = []
    for _ in range(80):
        crowd.append(Driver(w.path))
    crowd[0].send("ui.ping")
    for c in crowd[1:30]:
        c.close()
    last = crowd[-1]
    ok(last("ui.ping")["ok"], "more than sixty-four wait for their turn, and have it")
    for c in crowd[30:] + crowd[:1]:
        c.close()


def raw(w, data, end=False):
    """What a connection that sends these bytes gets back."""
    s = socket.socket(socket.AF_UNIX)
    s.connect(w.path)
    s.settimeout(WAIT_S)
    got = b""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        s.sendall(data)
        if end:
            s.shutdown(socket.SHUT_WR)
        while True:
            more = s.recv(1 << 16)
            got += more
            if not more or (not end and b"\n" in got):
                break
    s.close()
    return got


def test_hostile(w):
    d = w.driver
    for what, line, code in (
            ("garbage", b"\x00\xff\xfegarbage\n", -32700), ("a half document", b'{"id":1,"method":\n', -32700),
            ("no object", b"[1,2]\n", -32700), ("an id that is none", b'{"id":{},"method":"ui.ping"}\n', -32600),
            ("no method", b'{"id":7}\n', -32600), ("a method that is no string", b'{"id":7,"method":9}\n', -32600),
            ("another protocol", b'{"jsonrpc":"1.0","id":7,"method":"ui.ping"}\n', -32600),
            ("parameters that are none", b'{"id":7,"method":"ui.ping","params":5}\n', -32600),
            ("text that is no UTF-8", b'{"id":7,"method":"ui.text","params":{"text":"\xc3\x28"}}\n', -32700),
            ("a key twice", b'{"id":7,"id":8,"method":"ui.ping"}\n', -32700),
            ("deep nesting", b'{"id":7,"method":"ui.ping","params":' + b"[" * 100000 + b"]" * 100000 + b"}\n", -32700),
            ("a NUL in a name", b'{"id":7,"method":"ui.ping\\u0000x"}\n', -32600)):
        answer = json.loads(raw(w, line))
        ok(answer["error"]["code"] == code and answer["error"]["data"]["kind"], f"{what} is refused in a line")
    answer = json.loads(raw(w, b"x" * (1 << 20) + b"xxxx\n").split(b"\n")[0])
    ok(answer["error"]["data"]["kind"] == "budget", "a line of more than a megabyte is refused")
    both = raw(w, b"y" * (3 << 20) + b'\n{"id":3,"method":"ui.ping"}\n', end=True).split(b"\n")
    ok(json.loads(both[0])["error"]["data"]["kind"] == "budget" and json.loads(both[1])["id"] == 3, "and the next line is heard")
    long = b'{"id":4,"method":"ui.text","params":{"text":"' + b"z" * 900000 + b'"}}\n'
    answer = json.loads(raw(w, long))
    ok(answer["error"]["data"]["kind"] == "budget", "more keys than there may be at once")
    ok(json.loads(raw(w, b'{"id":5,"method":"ui.ping"}', end=True))["id"] == 5, "the last line may lack its end")
    ok(raw(w, b'{"id":5,"met', end=True).count(b"error") == 1, "half a line at the end does nothing")
    for _ in range(50):
        s = socket.socket(socket.AF_UNIX)
        s.connect(w.path)
        s.sendall(b'{"id":1,"method":"functions"}\n{"id":2,"method":"ui.keys","params":{"keys":["wait:50000"]}}\n{"id":3,"meth')
        s.close()
    ok(d("ui.ping")["ok"], "fifty that ask and leave")
    s = socket.socket(socket.AF_UNIX)
    s.connect(w.path)
    s.setblocking(False)
    sent = 0
    line = b'{"id":1,"method":"functions","params":{"limit":3000}}\n' * 100
    with contextlib.suppress(BlockingIOError):
        while sent < 64 << 20:
            sent += s.send(line)
    began = time.monotonic()
    frames = [d("ui.move", dir="down")["frame"] for _ in range(20)]
    ok(sent < 8 << 20 and len(set(frames)) == 20, f"one that asks and never reads is held back after {sent >> 10} KB, the others go on")
    s.close()
    ok(time.monotonic() - began < WAIT_S, "and may leave")
    for byte in b'{"id":9,"method":"ui.ping"}\n':
        pass
    s = Driver(w.path)
    for byte in b'{"id":9,"method":"ui.ping"}\n':
        s.sock.sendall(bytes([byte]))
    ok(s.line()["id"] == 9, "byte by byte")
    s.close()
    ok(d.refusal("ui.keys", {"keys": ["wait:99999999"]}).kind == "invalid" and d.refusal("ui.move", {"dir": "down", "n": 10 ** 12}).kind == "invalid"
       and d.refusal("ui.cursor", {"line": -1}).kind == "invalid" and d.refusal("ui.mouse", {"what": "click", "x": 10 ** 9, "y": 0}).kind == "invalid",
       "numbers out of range")
    bad = {"ui.goto": {"target": "\u202e\x1b[2J"}, "ui.rename": {"name": "\x1b]0;x\x07"}, "ui.search": {"query": "rx:("}}
    for method, params in bad.items():
        r = d.refusal(method, params)
        text = screen(d)
        ok("\x1b" not in text and (r is not None or d("ui.ping")["ok"]), f"{method} with hostile text shows nothing raw")
    d("ui.close")


def test_tiny(w):
    """A terminal of a row or two has no room for a pane: whoever asks what stands there is answered all the same."""
    d = w.driver
    size = struct.unpack("HHHH", fcntl.ioctl(w.fd, termios.TIOCGWINSZ, bytes(8)))
    for rows, cols in ((1, 1), (1, 200), (2, 3), (200, 1)):
        fcntl.ioctl(w.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        for view in ("hex", "graph", "strings", "listing"):
            d("ui.show", view=view)
            with contextlib.suppress(Refused):
                d("ui.cursor_on", word="mov")
            lines = d("ui.view")["lines"]
            state = d("ui.state")
            ok((state["screen"]["height"], state["screen"]["width"]) == (rows, cols) and (view == "listing" or len(lines) <= rows),
               f"{view} on {cols}x{rows} cells")
    fcntl.ioctl(w.fd, termios.TIOCSWINSZ, struct.pack("HHHH", *size))
    d("ui.wait")


def rss_kb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))


def test_stuck(w):
    d = w.driver
    d("ui.goto", target="main")
    w.paused.set()
    time.sleep(0.2)
    before = rss_kb(w.pid)
    began = time.monotonic()
    shown, n = True, 0
    while time.monotonic() - began < 10 or n < 20:
        r = d("ui.move", dir="page_down" if n % 2 else "page_up")
        shown = shown and r["shown"]
        n += 1
    ok(not shown and r["settled"], f"a terminal that takes nothing for 10 s: {n} requests were answered, and say that it does not show them")
    ok(rss_kb(w.pid) - before < 16384, "and no frames are kept")
    s = screen(d)
    w.paused.clear()
    r = d("ui.state", timeout_ms=WAIT_S * 1000)
    ok(r["shown"] or d("ui.state")["shown"], "it reads again, and has the newest frame")
    ok(screen(d).split("\n")[1:38] == s.split("\n")[1:38], "which is the one the drivers saw")


def test_idle(w):
    def switches():
        with open(f"/proc/{w.pid}/status", encoding="ascii") as f:
            return int(re.search(r"voluntary_ctxt_switches:\s+(\d+)", f.read()).group(1))
    w.driver("ui.wait", until="idle")
    time.sleep(0.6)
    seen, woken = w.seen, switches()
    time.sleep(1.5)
    ok(w.seen == seen and switches() == woken, f"{w.seen - seen} bytes and {switches() - woken} wake-ups: with a driver connected and silent nothing is written and nothing wakes")


def test_socket_rules():
    w = Workbench("taken", wait=False)
    r = subprocess.run([SCRY, "--rpc", w.path, TARGET], capture_output=True, text=True, timeout=WAIT_S, env=dict(os.environ, **ENV))
    ok(r.returncode == 1 and "another scry answers there" in r.stderr, "a socket that is taken is not taken over")
    ok(w.end() == 0 and not os.path.exists(w.path), "a socket goes when its workbench does")
    w = Workbench("stale", wait=False)
    os.kill(w.pid, signal.SIGKILL)
    os.waitpid(w.pid, 0)
    ok(os.path.exists(w.path), "a killed one leaves its name")
    w = Workbench("stale")
    ok(w.driver("ui.ping")["ok"] and w.end() == 0, "which the next one takes")
    plain = os.path.join(ROOT, "plain")
    with open(plain, "w", encoding="ascii") as f:
        f.write("keep")
    shared = os.path.join(ROOT, "shared")
    os.mkdir(shared)
    os.chmod(shared, 0o777)
    for path, why in ((plain, "no socket of yours"), (shared + "/s", "others can change"), ("/nonexistent/s", "No such file"), (ROOT + "/" + "x" * 200, "longer than")):
        r = subprocess.run([SCRY, "--rpc", path, TARGET], capture_output=True, text=True, timeout=WAIT_S, env=dict(os.environ, **ENV))
        ok(r.returncode != 0 and why in r.stderr, f"refused: {why}")
    with open(plain, encoding="ascii") as f:
        ok(f.read() == "keep", "and a file in the way is left alone")
    r = subprocess.run([SCRY, "--rpc", ROOT + "/dumb", TARGET], capture_output=True, text=True, timeout=WAIT_S, env=dict(os.environ, TERM="dumb"))
    ok(r.returncode == 4 and "none to drive" in r.stderr, "a terminal without a full screen is not driven, and that is said")


def test_project():
    """R23 and the project UI: which binaries, going to one and back, over an import, names of the whole project."""
    folder = os.path.join(ROOT, "project")
    os.makedirs(folder)
    lib, app = os.path.join(folder, "libone.so"), os.path.join(folder, "app")
    with open(lib + ".c", "w", encoding="utf-8") as f:
        f.write("int scale(int x) { return x * 3; }\nint twice(int x) { return scale(x) + 1; }\n")
    with open(app + ".c", "w", encoding="utf-8") as f:
        f.write("extern int twice(int);\nint helper(int a) { return twice(a) + 1; }\nint main(int c, char **v) { return helper(c); }\n")
    try:
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-Wl,-soname,libone.so", "-o", lib, lib + ".c"], check=True)
        subprocess.run(["cc", "-O1", "-fno-inline", "-o", app, app + ".c", lib], check=True)
    except (OSError, subprocess.CalledProcessError):
        ok(True, "project UI # SKIP no C compiler")
        return
    w = Workbench("p", [app, lib])
    d = w.driver
    b = d("ui.binaries")["binaries"]
    ok([(x["name"], x["active"]) for x in b] == [("app", True), ("libone.so", False)], "R23 the binaries of a project")
    s = d("ui.switch", binary="libone.so", addr="twice")
    ok(s["file"] == lib and s["function"]["name"] == "twice", "R23 switch to an address of another")
    ok(d("ui.back")["file"] == app and d("ui.forward")["file"] == lib, "back and forward go over binaries")
    end = time.monotonic() + WAIT_S
    while "app!helper" not in screen(d) and time.monotonic() < end: # the index is made beside us
        d("ui.close")
        d("ui.xrefs")
    s = d("ui.select", text="call", open=True)
    ok(s["file"] == app and s["function"]["name"] == "helper", "from a reference in another binary to its place")
    s = d("ui.follow")
    ok(s["file"] == lib and s["function"]["name"] == "twice", "from the call over the import to the function")
    d("ui.symbols")
    d("ui.keys", keys=["F2"])
    d("ui.text", text="helper")
    ok("app" in screen(d) and d("ui.keys", keys=["Enter"])["file"] == app, "a name of the whole project")
    ok(d("ui.switch", binary=lib)["function"]["name"] == "twice", "each is where it was left")
    ok(d.refusal("ui.switch", {"binary": "nothing"}).kind == "not_found", "what is not in the project")
    ok(d.refusal("ui.switch", {"binary": "app", "addr": "nothing"}).kind == "not_found" and d("ui.state")["file"] == lib, "an address that is not there leaves us")
    w.end()


def test_client(w):
    r = cli("ui", w.path, "ping")
    ok(r.returncode == 0 and json.loads(r.stdout)["ok"], "scry ui SOCKET ping")
    r = cli("ui", w.path, "goto", "main")
    ok(r.returncode == 0 and json.loads(r.stdout)["function"]["name"] == "main", "words by position")
    r = cli("ui", w.path, "goto", "target=execute_command", "delay_ms=1")
    ok(json.loads(r.stdout)["function"]["name"] == "execute_command", "and by name")
    r = cli("ui", w.path, "screen")
    ok(r.stdout.startswith(" bash") and r.stdout.endswith("\n") and "{" not in r.stdout[:40], "a screen is printed as it is")
    r = cli("ui", "--json", w.path, "screen")
    ok(json.loads(r.stdout)["height"] == 40, "with --json as JSON")
    r = cli("ui", w.path, "functions", "filter=*main*")
    ok(json.loads(r.stdout) == json.loads(cli("functions", TARGET, "--filter", "*main*", "--json").stdout), "operations by their own names")
    r = cli("ui", w.path, "keys", "Ctrl+P", "h")
    ok(json.loads(r.stdout)["dialog"]["filter"] == "h", "keys word by word")
    r = cli("ui", w.path, "rename_many", 'items:={"execute_command":"run_it"}')
    ok(json.loads(r.stdout)["result"]["results"][0]["after"] == "run_it" and cli("ui", w.path, "undo").returncode == 0, "JSON with :=")
    r = cli("ui", w.path, "goto", "no_such_name")
    ok(r.returncode == 1 and r.stderr.startswith("scry: "), "a refusal is a line on stderr and a status")
    ok(cli("ui", w.path, "pseudocode").returncode in (0, 2, 3) and cli("ui", w.path, "goto", "a=1", "b").returncode == 2, "and other statuses")
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/driving.md"), encoding="utf-8") as f:
        lines = [x for x in f.read().splitlines() if x.startswith("scry ui work ")]
    for line in lines:
        r = cli("ui", w.path, *shlex.split(line)[3:])
        ok(r.returncode == 0 and r.stdout, line)
    ok(len(lines) > 5, "docs/driving.md has its examples")
    cli("ui", w.path, "undo")
    ok(cli("ui", ROOT + "/nobody", "ping").returncode == 1 and cli("ui").returncode == 2, "nobody there; nothing asked")


def test_quit(w):
    d = Driver(w.path)
    ok(d("ui.quit") == {} and w.end() == 0, "R2 quit is answered, and it leaves with 0")


def main():
    if not os.access(SCRY, os.X_OK) or not os.access(TARGET, os.R_OK):
        print("1..0 # skip SCRY or " + TARGET + " is missing")
        return 0
    os.environ["SCRY_STORE"] = ROOT + "/store"
    only = os.environ.get("ONLY", "")
    tests = [test_basics, test_keys, test_state, test_operations, test_verbs, test_edits, test_movement, scenarios, test_many, test_hostile,
             test_tiny, test_stuck, test_idle, test_client, test_keyboard, test_quit]
    w = Workbench()
    for test in tests:
        if only and only not in test.__name__ and test != test_quit:
            continue
        try:
            test(w)
        except (Refused, EOFError, OSError, AssertionError, KeyError, StopIteration, TypeError, IndexError, AttributeError) as e:
            frame = e.__traceback__
            where = []
            while frame:
                where.append(frame.tb_lineno)
                frame = frame.tb_next
            ok(False, f"{test.__name__}: {type(e).__name__} {e} at lines {where}")
            w.driver = Driver(w.path)
    if not only or only in "test_socket_rules":
        test_socket_rules()
    for test in (test_project, test_scenarios_of_types):
        if only and only not in test.__name__:
            continue
        try:
            test()
        except (Refused, EOFError, OSError, AssertionError, KeyError, StopIteration, TypeError, IndexError, AttributeError, ValueError) as e:
            lines, frame = [], e.__traceback__
            while frame:
                lines.append(frame.tb_lineno)
                frame = frame.tb_next
            ok(False, f"{test.__name__}: {type(e).__name__} {e} at lines {lines}")
    print(f"1..{count}")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        code = main()
    finally:
        shutil.rmtree(ROOT, ignore_errors=True)
    sys.exit(code)
