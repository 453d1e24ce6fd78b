#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server: every operation answers as the command line does, several clients at once, edits, events against a model, cancel, deadlines,
progress, clients that mean harm, the command line on a server, TLS, and its death. Prints TAP. SCRY is the program."""
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
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from rpcclient import Client, Refused, Server, WAIT_S  # noqa: E402

SCRY = os.environ.get("SCRY", "")
TARGET = os.path.realpath("/bin/ls")
OTHER = os.path.realpath("/bin/cat")
ROOT = tempfile.mkdtemp(prefix="scry-serve-")
# What a sanitizer keeps of freed memory is not the program's.
ENV = dict(os.environ, SCRY_STORE=ROOT + "/store", XDG_RUNTIME_DIR=ROOT + "/run", NO_COLOR="1",
           ASAN_OPTIONS="quarantine_size_mb=1:" + os.environ.get("ASAN_OPTIONS", ""))
count = failed = 0
asked = [0]


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


def cli(*words, store=None, feed=None):
    env = dict(ENV, SCRY_STORE=store) if store else ENV
    return subprocess.run([SCRY, *words], capture_output=True, text=True, env=env, input=feed, check=False)


def longer(ask, good):
    """Asks for more and more work until `good` says that there was enough of it; a machine may be fast."""
    n = 20
    while n <= 20 << 10:
        got = ask(n)
        if good(got):
            return got
        n *= 4
    return None


def work(n):
    """Parameters of a request that takes long, and longer with n, looks at its deadline, and was never asked before."""
    asked[0] += 1
    return {"ops": [{"op": "search", "params": {"insn": f"*no {asked[0]} {i}*"}} for i in range(min(n, 1000))]}


# --- every operation ------------------------------------------------------------------------------------------------------

# Parameters as JSON, and the same as words.
READS = [
    ("info", {}, []), ("segments", {}, []), ("sections", {}, []), ("functions", {"limit": 30}, ["--limit", "30"]),
    ("functions", {"filter": "*a*", "sort": "-size", "limit": 7}, ["--filter", "*a*", "--sort", "-size", "--limit", "7"]),
    ("heads", {"addr": "entry", "count": 40}, ["entry", "--count", "40"]), ("heads", {"addr": "entry", "back": True}, ["entry", "--back"]),
    ("disasm", {"func": "entry", "limit": 20}, ["entry", "--limit", "20"]), ("blocks", {"func": "entry"}, ["entry"]),
    ("blocks", {"func": "entry", "dot": True}, ["entry", "--dot"]),
    ("xrefs", {"addr": "abort"}, ["abort"]), ("xrefs", {"addr": "entry", "from": True, "whole": True}, ["entry", "--from", "--whole"]),
    ("callgraph", {"func": "entry", "depth": 2, "limit": 9}, ["entry", "--depth", "2", "--limit", "9"]),
    ("decompile", {"func": "entry", "map": True}, ["entry", "--map"]),
    ("strings", {"min": 8, "limit": 20}, ["--min", "8", "--limit", "20"]), ("imports", {"limit": 9}, ["--limit", "9"]),
    ("exports", {"limit": 9}, ["--limit", "9"]), ("symbols", {"limit": 9}, ["--limit", "9"]), ("problems", {}, []),
    ("resolve", {"name": ["entry", "abort", "no_such_name"]}, ["entry", "abort", "no_such_name"]),
    ("bytes", {"addr": "entry", "len": 16}, ["entry", "16"]), ("search", {"text": "GNU", "limit": 5}, ["--text", "GNU", "--limit", "5"]),
    ("search", {"bytes": "f3 0f 1e fa", "limit": 3}, ["--bytes", "f3 0f 1e fa", "--limit", "3"]),
    ("types", {"limit": 5}, ["--limit", "5"]), ("types", {"source": "builtin", "limit": 5}, ["--source", "builtin", "--limit", "5"]),
    ("type", {"name": "struct timespec"}, ["struct timespec"]), ("type_at", {"addr": "abort"}, ["abort"]), ("bookmarks", {}, []),
    ("journal", {}, []), ("changes", {"since": 0}, ["--since", "0"]), ("check", {"edits": True}, ["--edits"]),
    ("export", {"format": "list"}, ["--format", "list"]),
    ("look", {"addr": "entry", "limit": 9}, ["entry", "--limit", "9"]), ("proposals", {}, []), ("reference", {"word": ["rename"]}, ["rename"]),
    ("multi", {"ops": {"ops": [{"op": "info"}, {"op": "heads", "params": {"addr": "entry", "count": 3}}, {"op": "bytes"}]}}, None),
    ("version", {}, []), ("man", {}, []), ("completion", {"shell": "bash"}, ["bash"]),
]
# Not the same twice, a matter of another place, or of another test.
ELSEWHERE = {"accept", "refuse", "analyze", "doctor", "exec", "verify", "call", "native_build", "native_run", "salvage", "import",
             "trace", "probe", "events", "cache_list", "cache_verify", "cache_prune", "project_create", "project_list",
             "project_add", "project_remove", "project_search", "project_follow"}
EDITS = [
    ("rename", {"addr": "entry", "name": "start_here"}, ["entry", "start_here"]), ("comment", {"addr": "entry", "text": "x"}, ["entry", "x"]),
    ("bookmark", {"addr": "entry", "text": "here"}, ["entry", "here"]), ("declare", {"text": "struct s {int a;};"}, ["struct s {int a;};"]),
    ("set_prototype", {"addr": "entry", "prototype": "int start_here(int)"}, ["entry", "int start_here(int)"]),
    ("format", {"addr": "entry", "operand": 0, "format": "hex"}, ["entry", "0", "hex"]),
    ("flags", {"addr": "entry", "flags": "library"}, ["entry", "library"]), ("define", {"addr": "entry+1", "what": "data:byte"}, None),
    ("undefine", {"addr": "entry+1"}, ["entry+1"]), ("patch", {"addr": "entry", "bytes": "90"}, ["entry", "90"]),
    ("unpatch", {"addr": "entry"}, ["entry"]), ("undeclare", {"name": "struct s"}, ["struct s"]), ("undo", {"steps": 2}, ["2"]),
    ("redo", {"steps": 1}, ["1"]),
    ("edit", {"ops": {"ops": [{"op": "comment", "addr": "entry", "text": "both"}, {"op": "rename", "addr": "nowhere", "name": "y"}]}}, None),
]


def operation_words(op, params, words):
    """The command line of a request; a document becomes a file."""
    if words is not None:
        return words
    if "ops" not in params:
        return [str(v) for v in params.values()]
    path = f"{ROOT}/doc.json"
    with open(path, "w") as f:
        json.dump(params["ops"], f)
    return ["--ops", path]


def same(got, want):
    """But for when it was."""
    def bare(v):
        if isinstance(v, dict):
            return {k: bare(x) for k, x in v.items() if k not in ("time", "author", "author_kind")}
        return [bare(x) for x in v] if isinstance(v, list) else v
    return bare(got) == bare(want)


def test_operations(server):
    c = server.client()
    c("open", file=TARGET)
    methods = {m["name"]: m for m in c("methods")["methods"]}
    named = {op for op, _, _ in READS} | {op for op, _, _ in EDITS}
    left = {n for n, m in methods.items() if "capability" in m} - named - ELSEWHERE
    left -= {"retype", "make_data", "make_string", "bounds", "jump_table", "load"}  # as define, whose table they share
    ok(not left, f"every operation is asked for in this test {sorted(left)}")
    for op, params, words in READS:
        words = operation_words(op, params, words)
        file = [TARGET] if methods[op]["database"] else []
        r = cli(op, *file, *words, "--json")
        try:
            want, got = json.loads(r.stdout), c(op, **params)
        except (Refused, json.JSONDecodeError) as e:
            ok(False, f"{op}: {e} {r.stderr}")
            continue
        # Of a document in a file there is no etag.
        if op == "multi":
            got.pop("etag", None)
        ok(got == want, f"{op} {json.dumps(params)[:50]} answers as the command line does")
    c.close()


def test_edits():
    """The same edits in two stores."""
    a, b = ROOT + "/edits-a", ROOT + "/edits-b"
    s = Server(SCRY, ROOT + "/edits.sock", OTHER, env=dict(ENV, SCRY_STORE=a))
    c = s.client()
    c("open", file=OTHER)
    cli("info", OTHER, store=b)
    for op, params, words in EDITS:
        words = operation_words(op, params, words)
        r = cli(op, OTHER, *words, "--json", store=b)
        refused = None
        try:
            got = c(op, **params)
        except Refused as e:
            refused, got = e, None
        if refused:
            ok(r.returncode in (1, 2) and not r.stdout and str(refused) in r.stderr, f"{op} is refused as on the command line: {refused}")
        else:
            ok(r.stdout and same(got, json.loads(r.stdout)), f"{op} answers as the command line does {r.stderr}")
            # A new analysis is a revision: both wait for it.
            c("open", file=OTHER)
    j = c("journal")["items"]
    ok(all(x["author_kind"] == "script" for x in j if x["op"] != "analysis"), "over a socket edits are a script's")
    s.stop()


def test_etag(server):
    c = server.client()
    c("open", file=TARGET)
    for op, params in (("functions", {"limit": 5}), ("heads", {"addr": "entry", "count": 9}), ("decompile", {"func": "entry"})):
        first = c(op, **params)
        if "etag" not in first:
            continue
        again = c(op, etag=first["etag"], **params)
        ok(again == {"rev": first["rev"], "etag": first["etag"], "unchanged": True}, f"{op}: what one has is not sent again")
    ok(c("decompile", func="entry") == c("decompile", func="entry"), "what was decompiled is the same the second time")
    was = c("decompile", func="entry")
    ok(c("decompile", func="entry", fresh=True) == was, "and the same when it is made again")
    ok(c("decompile", func="entry", map=True) != was, "parameters are told apart")
    c("comment", addr="entry", text="news")
    now = c("decompile", func="entry")
    ok(now["rev"] > was["rev"] and now["addr"] == was["addr"], f"and after an edit it is of the new revision {now['rev']} {was['rev']}")
    one = {"ops": [{"op": "bytes", "params": {"addr": "entry", "len": 4}}]}
    two = {"ops": [{"op": "bytes", "params": {"addr": "entry", "len": 8}}]}
    ok(c("multi", ops=one) != c("multi", ops=two), "documents are told apart")
    c.close()


# --- order ----------------------------------------------------------------------------------------------------------------

def test_order(server):
    c = server.client()
    c("open", file=TARGET)
    ids = [c.post("info", {"database": 1}) for _ in range(40)]
    ok([c.take(i)["format"] for i in ids] == ["ELF64"] * 40, "forty requests at once")
    # An edit is seen by what comes behind it, and not by what came before.
    posts = []
    for i in range(8):
        posts.append((None, c.post("type_at", {"addr": "entry"})))
        posts.append((None, c.post("comment", {"addr": "entry", "text": f"order {i}"})))
        posts.append((f"order {i}", c.post("heads", {"addr": "entry", "count": 3})))
    good = True
    for text, want in posts:
        got = c.take(want)
        good &= not text or any(h["comment"].startswith(text) for h in got["items"])
    ok(good, "reads behind an edit see it")
    # The same id: in order; different ones: as they finish.
    for n in range(5):
        c.post("bytes", {"addr": "entry", "len": n + 1}, want="same")
    lens = [len(c.next()["result"]["hex"]) // 2 for _ in range(5)]
    ok(lens == [1, 2, 3, 4, 5], "requests of one id are answered in order")

    def overtakes(n):
        slow, quick = c.post("multi", work(n)), c.post("ping")
        first = c.next()["id"]
        c.next()
        return first == quick and slow
    ok(longer(overtakes, bool), "a short request does not wait for a long one")
    c.tell("ping")
    c.tell("comment", addr="entry", text="told")
    ok(any(h["comment"].startswith("told") for h in c("heads", addr="entry", count=3)["items"]) and not c.early, "a notification has no answer")
    c.close()


def test_limits(server):
    c = server.client()
    c("open", file=TARGET)

    def cancelled(n):
        want = c.post("multi", work(n))
        c.tell("cancel", id=want)
        answer = c.next()
        return answer.get("error", {}).get("data", {}).get("kind") == "cancelled" and answer["id"] == want
    ok(longer(cancelled, bool), "a request that is given up is answered so")
    ok(c("ping") == {}, "and the connection goes on")
    # One that waits behind another.
    first = c.post("comment", {"addr": "entry", "text": "before"})
    second = c.post("comment", {"addr": "entry", "text": "never"})
    c.tell("cancel", id=second)
    answers = {a["id"]: a for a in (c.next(), c.next())}
    kept = "result" in answers[first]
    gone = answers[second].get("error", {}).get("data", {}).get("kind") == "cancelled"
    ok(kept and (gone or "result" in answers[second]), "what waits is given up before it began, or is done")
    if gone:
        ok(any(h["comment"].startswith("before") for h in c("heads", addr="entry", count=3)["items"]), "and then changed nothing")
    ok(longer(lambda n: c.refusal("multi", dict(work(n), deadline_ms=1)), lambda e: e and e.kind == "timeout"), "a deadline passes")
    ok(longer(lambda n: c.refusal("decompile", {"all": True, "output": f"{ROOT}/all{n}", "deadline_ms": 1}),
              lambda e: e and e.kind == "timeout"), "on any operation")
    c.events.clear()

    def told(n):
        c("multi", **work(n))
        return [e for e in c.events if e["method"] == "progress"]
    got = longer(told, bool)
    ok(got and all(e["params"]["what"] == "operations" and e["params"]["done"] <= e["params"]["total"] for e in got),
       "long work says how far it is")
    c.events.clear()
    c("multi", progress=False, **work(200))
    ok(not c.events, "unless that is not wanted")
    page = c("functions", limit=1000, max_bytes=2000)
    rest = c("functions", cursor=page["next"], limit=1000)
    ok(len(json.dumps(page)) < 4000 and rest["items"][0]["id"] == page["items"][-1]["id"] + 1, "a budget ends at an item, and goes on there")
    c.close()


# --- who, and what they may -------------------------------------------------------------------------------------------------

def test_clients(server):
    a, b = server.client(), server.client()
    h = a("hello", client="ann's script", kind="agent")
    ok(h["caps"] == ["read", "edit"] and h["client"] == "ann's script" and h["databases"][0]["path"] == TARGET, "an agent reads and edits")
    b("hello", client="bob", kind="human", caps=["read"])
    e = b.refusal("comment", {"addr": "entry", "text": "x"})
    ok(e.kind == "denied", "who only reads does not edit")
    e = b.refusal("hello", {"client": "ann's script"})
    ok(e.kind == "denied" and b("hello", client="bob", caps=["read", "edit", "run-target"])["caps"] == ["read"],
       "a name is kept, and no capability comes back")
    r = a("comment", addr="entry", text="of ann")
    last = a("journal", since=r["rev"] - 1)["items"][-1]
    ok((last["author"], last["author_kind"]) == ("ann's script", "agent"), "edits are in the client's name")
    ok(a.refusal("comment", {"addr": "entry", "text": "x", "author": "bob"}).kind == "denied", "and in no other")
    ok(a.refusal("call", {"func": "entry", "yes_run_target": True}).kind == "denied", "nobody agrees to run a target over a socket")
    c = server.client()
    ok(c.refusal("call", {"func": "entry", "yes_run_target": True}).kind == "denied", "not even who could run it")
    # Two at one thing: the second one's page is older.
    rev = b("info")["rev"]
    page = b("functions", limit=2)
    a("comment", addr="entry", text="again")
    ok(b.refusal("functions", {"cursor": page["next"]}).kind == "stale", "a cursor of before an edit is stale")
    ok(a.refusal("comment", {"addr": "entry", "text": "late", "if_rev": rev}).kind == "stale", "and so is an edit on top of what changed")
    ok(a("undo", author="ann's script")["undone"][0]["author"] == "ann's script", "undo of one author")
    for x in (a, b, c):
        x.close()


def test_databases(server):
    c, d = server.client(), server.client()
    one = c("open", file=OTHER)
    ok(one["state"] == "ready" and one["path"] == OTHER, "a file is opened, and analysed then")
    ok(c("info", database=OTHER)["file"].endswith("cat") and c("info", database=one["id"]) == c("info", database="cat"), "by path, id and name")
    ok(c("info")["file"].endswith("cat") and c("use", database="ls")["path"] == TARGET and c("info")["file"].endswith("ls"),
       "the first one it opened is meant, unless another is chosen")
    two = d("open", file=OTHER)
    ok(two["id"] == one["id"], "who opens the same file has the same database")
    c("close", database="cat")
    ok(d("info", database="cat")["size"] > 0 and d.refusal("close", {"database": "ls"}).kind == "not_found", "it stays until all closed it")
    d.close()
    # The server hears of the end in its own time.
    for _ in range(WAIT_S * 20):
        if len(c("databases")["items"]) == 1:
            break
    ok(len(c("databases")["items"]) == 1 and c.refusal("info", {"database": "cat"}).kind == "not_found", "the last one to leave closes it")
    ok(c.refusal("open", {"file": ROOT + "/none"}).kind == "bad_input" and c.refusal("open", {"file": ROOT}).kind in ("bad_input", "unsupported"),
       "what is no program is refused")
    raw = ROOT + "/blob"
    with open(raw, "wb") as f:
        f.write(bytes(64) + b"\xc3" * 64)
    ok(c.refusal("open", {"file": raw}).kind == "unsupported", "nor what nobody knows")
    ok(c("open", file=raw, format="raw", processor="x86-64", base="0x1000")["state"] == "ready" and c("info", database="blob")["base"] == "0x1000",
       "unless it is said what it is")
    c.close()


# --- events ------------------------------------------------------------------------------------------------------------------

def comments(c):
    """What stands, by the journal's own account since the beginning."""
    out, cursor = {}, {}
    while True:
        page = c("changes", since=0, **cursor)
        out.update({(i["op"], i["addr"], i["sub"]): i["after"] for i in page["items"] if i["op"] in ("comment", "rename")})
        if "next" not in page:
            return {k: v for k, v in out.items() if v is not None}
        cursor = {"cursor": page["next"]}


def test_subscription(server):
    a, b, c = server.client(), server.client(), server.client()
    for x in (a, b, c):
        x("open", file=TARGET)
    model = comments(a)
    known = a("subscribe")["rev"]
    addrs = [f["addr"] for f in a("functions", limit=40)["items"]]
    rnd = random.Random(7)
    last = 0
    for i in range(60):
        who = rnd.choice((b, c))
        kind = rnd.randrange(4)
        try:
            if kind == 0:
                last = who("undo")["rev"]
            elif kind == 1:
                last = who("rename", addr=rnd.choice(addrs), name=f"name_{i}")["rev"]
            else:
                last = who("comment", addr=rnd.choice(addrs), text=rnd.choice(("", f"text {i}")))["rev"]
        except Refused:
            pass
    gaps = events = 0
    while known < last:
        e = a.event(lambda e: e["method"] == "changed")["params"]
        events += 1
        if e["since"] != known:
            ok(False, f"an event tells what came since {known}, not since {e['since']}")
        gaps += e["gap"]
        if e["gap"]:
            model = comments(a)
        for i in e.get("changes", {}).get("items", []):
            if i["op"] in ("comment", "rename"):
                model[(i["op"], i["addr"], i["sub"])] = i["after"]
        known = e["rev"]
    model = {k: v for k, v in model.items() if v is not None}
    ok(model == comments(b), f"{events} events, put together, are what stands ({gaps} gaps)")
    ok(events <= 60, "several edits are one event")
    # What another process does.
    cli("comment", TARGET, addrs[3], "from elsewhere")
    e = a.event(lambda e: e["method"] == "changed" and "from elsewhere" in json.dumps(e))["params"]
    ok(e["rev"] > known and a("info")["rev"] >= e["rev"], "an edit of another process is told, and seen")
    # More than an event holds.
    start = e["rev"]
    doc = {"ops": [{"op": "comment", "addr": hex(int(addrs[0], 16) + i), "text": str(i)} for i in range(300)]}
    b("edit", ops=doc)
    e = a.event(lambda e: e["method"] == "changed" and e["params"]["rev"] > start)["params"]
    ok(e["gap"] and len(e["changes"]["items"]) == 256, "what does not fit is said to be missing")
    a("unsubscribe")
    a.events.clear()
    b("comment", addr=addrs[1], text="unheard")
    b("ping")
    ok(a.refusal("unsubscribe").kind == "not_found" and not [e for e in a.events if e["method"] == "changed"], "and no more after that")
    since = a("subscribe", since=e["rev"])["rev"]
    e = a.event(lambda e: e["method"] == "changed")["params"]
    ok(e["rev"] == since and any(i["after"] == "unheard" for i in e["changes"]["items"]), "from a revision on: what was missed comes at once")
    ok(a.refusal("subscribe", {"since": since + 1000}).kind == "stale", "but not from one that is not there")
    for x in (a, b, c):
        x.close()


# --- harm --------------------------------------------------------------------------------------------------------------------

def answer_to(server, data):
    """All that comes back for these bytes, until the server closes."""
    c = server.client()
    try:
        c.sock.sendall(data)
        c.sock.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    out = []
    while True:
        try:
            out.append(c.line())
        except (EOFError, OSError):
            c.close()
            return out


def test_harm(server):
    def kinds(data):
        return [(a["error"]["code"], a["error"]["data"]["kind"]) if "error" in a else "result" for a in answer_to(server, data)]
    ok(kinds(b'{"jsonrpc":"2.0","id":9,"method":"functions","params":{"limit":18446744073709551615}}\n') == [(-32602, "invalid")],
       "a number that is too large is no fault of form")
    ok(kinds(b"{\n\n[]\n{}\n1\nnull\n\"\n\xff\xfe\n") == [(-32700, "invalid")] * 2 + [(-32600, "invalid")] + [(-32700, "invalid")] * 4
       or all(k[0] in (-32700, -32600) for k in kinds(b"{\n\n[]\n{}\n1\nnull\n\"\n\xff\xfe\n")), "lines that are no requests")
    ok(kinds(b'{"jsonrpc":"1.0","id":1,"method":"ping"}\n') == [(-32600, "invalid")], "another version")
    ok(kinds(b'{"id":1,"method":"ping"}') == ["result"], "half a line at the end is a line")
    ok(kinds(b'{"id":1,"method":"info","params":3}\n{"id":[1],"method":"ping"}\n{"id":1.5,"method":"ping"}\n{"id":1,"method":"a\\u0000b"}\n')
       == [(-32600, "invalid")] * 4, "wrong types")
    bad = [("heads", {"count": "x"}), ("heads", {"count": -1}), ("heads", {"count": {"a": 1}}), ("heads", {"nothing": 1}), ("bytes", {}),
           ("resolve", {"name": ["a\0b"]}), ("comment", {"addr": "entry"}), ("info", [1, 2, 3]), ("hello", {"client": 7}),
           ("hello", {"caps": ["all"]}), ("hello", {"kind": "god"}), ("hello", {"client": "a\nb"}), ("hello", {"client": "x" * 200}),
           ("subscribe", {"since": "x"}), ("cancel", {}), ("open", {"file": 1}), ("open", {"file": "a\0b"}), ("info", {"deadline_ms": "x"}),
           ("info", {"database": []}), ("multi", {"ops": "/dev/zero"}), ("multi", {"ops": "-"})]
    c = server.client()
    got = [(m, p, c.refusal(m, p)) for m, p in bad]
    ok(all(e and e.kind == "invalid" for _, _, e in got), f"{len(bad)} wrong parameters {[x for x in got if not x[2] or x[2].kind != 'invalid']}")
    for number in (10 ** 9, 2 ** 63, 10 ** 30, 10 ** 400):
        got = kinds(json.dumps({"id": 1, "method": "functions", "params": {"limit": number}}).encode() + b"\n")
        ok(len(got) == 1 and (got[0] == "result" or got[0][1] == "invalid"), f"a count of {len(str(number))} digits: {got}")
    e = c.refusal("bytes", {"addr": "entry", "len": 10 ** 12})
    ok(e and e.kind == "invalid", "a terabyte of bytes is refused")
    deep = b'{"id":1,"method":"multi","params":{"ops":' + b"[" * 3000 + b"]" * 3000 + b"}}\n"
    ok(kinds(deep) and kinds(deep)[0] != "result", "three thousand brackets")
    # A line without end costs what a line may, and is told once.
    before = server.rss()
    long = answer_to(server, b"x" * (100 << 20) + b'\n{"id":2,"method":"ping"}\n')
    ok([a.get("error", {}).get("data", {}).get("kind") for a in long] == ["budget", None] and long[1]["id"] == 2, "100 MB of a line, and then a request")
    half = [server.client() for _ in range(30)]
    for h in half:
        h.sock.sendall(b'{"id":1,"method":"ping","params":{"x":"' + b"y" * 300000)
    ok(c("ping") == {}, "half lines hold nobody up")
    for h in half:
        h.close()
    ok(server.rss() - before < 300 << 20, f"and cost no more than they are ({(server.rss() - before) >> 20} MB)")
    big = json.dumps({"id": 5, "method": "multi", "params": {"ops": [{"op": "info"}] * 1000, "progress": False}}).encode() + b" " * 100000 + b"\n"
    got = answer_to(server, big + b'{"id":6,"method":"ping"}\n')
    got.sort(key=lambda a: a["id"])
    ok([a["id"] for a in got] == [5, 6] and len(got[0]["result"]["results"]) == 1000, "a long line is answered, and what is behind it")
    c.close()


def test_silent(server):
    """Clients that never read, and that die."""
    request = json.dumps({"id": 1, "method": "heads", "params": {"count": 500}}).encode() + b"\n"
    before, fds = server.rss(), server.fds()
    stuck = []
    for _ in range(8):
        c = server.client()
        c.sock.setblocking(False)
        try:
            while True:
                c.sock.send(request * 100)
        except BlockingIOError:
            pass
        stuck.append(c)
    c = server.client()
    ok(c("ping") == {} and c("info")["format"] == "ELF64", "clients that never read hold nobody up")
    ok(server.rss() - before < 200 << 20, f"and cost little ({(server.rss() - before) >> 20} MB)")
    for s in stuck[:4]:
        s.close()
    # Those that do read get every answer.
    s = stuck[4]
    s.sock.setblocking(True)
    s.sock.settimeout(WAIT_S)
    s.sock.shutdown(socket.SHUT_WR)
    answers = 0
    try:
        while True:
            answers += "result" in s.line()
    except EOFError:
        pass
    except json.JSONDecodeError as e:
        answers = f"{e}"
    ok(isinstance(answers, int) and answers > 100, f"who reads late gets all of it ({answers} answers)")
    for s in stuck[4:]:
        s.close()
    for i in range(60):
        d = server.client()
        d.sock.sendall(request * (1 + i % 5) + (b'{"id":' if i % 2 else b""))
        if i % 3:
            d.sock.recv(100)
        d.close()
    for _ in range(WAIT_S * 20):
        if server.fds() <= fds + 1:
            break
        c("ping")
    ok(server.fds() <= fds + 1, "of those that died mid-answer no descriptor is left")
    c.close()


def test_many():
    """More connections than there are descriptors."""
    def limits():
        resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))
    s = Server(SCRY, ROOT + "/many.sock", OTHER, env=ENV, limits=limits)
    first = s.client()
    first("open", file=OTHER)
    there, busy = [], 0
    for _ in range(600):
        c = s.client()
        there.append(c)
    for c in there:
        try:
            c.sock.sendall(b'{"id":9,"method":"ping"}\n')
            busy += c.line().get("error", {}).get("data", {}).get("kind") == "busy"
        except (EOFError, OSError):
            busy += 1
    ok(0 < busy < 600, f"600 connections: {600 - busy} are served, {busy} are told that there are too many")
    ok(first("info")["format"] == "ELF64", "and the first one never noticed")
    for c in there:
        c.close()
    good = False
    for _ in range(WAIT_S * 20):
        c = s.client()
        try:
            good = c("ping") == {}
        except (Refused, EOFError, OSError, KeyError):
            good = False
        c.close()
        if good:
            break
    ok(good, "when they left there is room again")
    ok(s.stop() == 0, "and it ends as told")


def test_soak(server):
    """Mixed requests by several clients, with memory and descriptors flat."""
    rnd = random.Random(3)
    addrs = [f["addr"] for f in server.client()("functions", limit=200)["items"]]
    asks = [lambda: ("ping", {}), lambda: ("info", {}), lambda: ("heads", {"addr": rnd.choice(addrs), "count": rnd.randrange(1, 60)}),
            lambda: ("xrefs", {"addr": rnd.choice(addrs)}), lambda: ("resolve", {"name": ["entry", "nowhere"]}),
            lambda: ("functions", {"limit": rnd.randrange(1, 50), "offset": rnd.randrange(100)}), lambda: ("nope", {}),
            lambda: ("bytes", {"addr": rnd.choice(addrs), "len": rnd.randrange(64)}), lambda: ("decompile", {"func": rnd.choice(addrs)}),
            lambda: ("comment", {"addr": rnd.choice(addrs), "text": str(rnd.random())}), lambda: ("strings", {"limit": 5})]
    clients = [server.client() for _ in range(4)]

    def rounds(n):
        for _ in range(n):
            c = rnd.choice(clients)
            try:
                c.take(c.post(*rnd.choice(asks)()))
            except Refused:
                pass
    rounds(400)
    rss, fds = server.rss(), server.fds()
    rounds(1200)
    grown = server.rss() - rss
    ok(grown < 96 << 20 and server.fds() <= fds + 4, f"1,600 mixed requests; the last 1,200 cost {grown >> 20} MB")
    for c in clients:
        c.close()


# --- the command line on a server ------------------------------------------------------------------------------------------------

def test_command_line(server):
    def both(*words):
        return cli(*words), cli(*words, "--socket", server.path)
    for words in (["info", TARGET], ["functions", TARGET, "--limit", "5"], ["heads", TARGET, "entry", "--count", "5"],
                  ["heads", TARGET, "entry", "--count", "5", "--color=always"], ["decompile", TARGET, "entry"], ["bytes", TARGET, "entry", "32"],
                  ["blocks", TARGET, "entry", "--dot"], ["functions", TARGET, "--limit", "3", "--json"], ["resolve", TARGET, "entry", "nowhere"],
                  ["resolve", TARGET, "nowhere", "--json"], ["heads", TARGET, "nowhere"], ["bytes", TARGET, "entry", "0"], ["version"],
                  ["heads", TARGET], ["info", ROOT + "/none"]):
        a, b = both(*words)
        name = " ".join(words).replace(TARGET, "FILE").replace(ROOT, "DIR")
        ok((a.stdout, a.returncode) == (b.stdout, b.returncode) or (words[0] == "info" and a.returncode and b.returncode and not b.stdout),
           f"scry {name}: the same with a server")
    raw = [subprocess.run([SCRY, "bytes", TARGET, "entry", "300", "--raw", *more], env=ENV, capture_output=True, check=False).stdout
           for more in ([], ["--socket", server.path])]
    ok(len(raw[0]) == 300 and raw[0] == raw[1], "bytes as they are are the same with a server, too")
    r = cli("comment", TARGET, "entry", "by the command line", "--socket", server.path)
    ok(r.returncode == 0 and "by the command line" in cli("heads", TARGET, "entry", "--count", "3").stdout, "an edit through a server")
    with open(ROOT + "/map.json", "w") as f:
        f.write('{\n "entry": "from_a_map"\n}\n')
    r = cli("rename", TARGET, "--from", ROOT + "/map.json", "--socket", server.path)
    ok(r.returncode == 0 and "from_a_map" in cli("resolve", TARGET, "from_a_map").stdout, "a document goes along")
    r = cli("undo", TARGET, "--socket", server.path)
    ok(r.returncode == 0, "and back")
    r = cli("export", TARGET, "--format", "list", "-o", "out.list", "--socket", server.path)
    out = os.path.join(os.getcwd(), "out.list")
    ok(r.returncode == 0 and os.path.exists(out), "a file is written where the command was given")
    if os.path.exists(out):
        os.unlink(out)
    r = cli("info", TARGET, "--socket", ROOT + "/nobody")
    ok(r.returncode == 1 and "nobody answers" in r.stderr and "scry serve" in r.stderr, "where nobody answers that is said")
    r = cli("call", TARGET, "entry", "--yes-run-target", "--socket", server.path)
    ok(r.returncode == 1 and "agree" in r.stderr, f"nobody agrees to run a target through a server {r.stderr}")
    ok(cli("serve", TARGET, "--socket", server.path).returncode == 1, "a second server on the same socket is refused")
    for words in (["serve", "--nothing"], ["serve", "--socket"], ["serve", TARGET, "--caps", "all"], ["serve", "--max-clients", "x"],
                  ["serve", TARGET, "--listen", "nowhere"]):
        r = cli(*words)
        ok(r.returncode in (1, 2) and r.stderr.startswith("scry: "), f"scry {words[0]} {words[-1]}: refused")
    ok("--socket" in cli("serve", "--help").stdout and ".SS serve" in cli("man").stdout, "it is in the help and the manual")


# --- others ------------------------------------------------------------------------------------------------------------------------

def test_caps():
    s = Server(SCRY, ROOT + "/ro.sock", OTHER, "--read-only", env=ENV)
    c = s.client()
    c("open", file=OTHER)
    ok(c("hello", caps=["read", "edit"])["caps"] == ["read"] and c.refusal("comment", {"addr": "entry", "text": "x"}).kind == "denied",
       "a server that only reads")
    ok(c.refusal("decompile", {"all": True, "output": ROOT + "/c"}).kind == "denied" and not os.path.exists(ROOT + "/c"), "writes no file either")
    mode = os.stat(s.path).st_mode & 0o777
    ok(mode == 0o600, f"its socket is of mode 600 ({mode:o})")
    s.stop()
    ok(not os.path.exists(s.path), "which is gone with it")
    os.makedirs(ROOT + "/run", 0o700, exist_ok=True)
    p = subprocess.Popen([SCRY, "serve", OTHER], stderr=subprocess.PIPE, env=ENV, text=True)
    line = p.stderr.readline()
    ok(line.strip().endswith("/run/scry/serve"), "without a name it is in the runtime folder")
    p.send_signal(signal.SIGINT)
    ok(p.wait(WAIT_S) == 0, "and it ends on Ctrl-C")
    p.stderr.close()


def test_project():
    p = ROOT + "/p.json"
    cli("project", "create", p, TARGET, OTHER)
    s = Server(SCRY, ROOT + "/project.sock", "--project", p, env=ENV)
    c = s.client()
    names = sorted(d["path"] for d in c("databases")["items"])
    ok(names == ["cat", "ls"], f"the binaries of a project, by their labels {names}")
    a = c("resolve", name="entry", database="cat")["items"][0]["addr"]
    b = c("resolve", name="entry", database="ls")["items"][0]["addr"]
    ok(a != b, "each answers for itself")
    c.close()
    ok(s.stop() == 0, "and they are closed together")


def test_death():
    path = ROOT + "/death.sock"
    s = Server(SCRY, path, OTHER, env=ENV)
    c, idle = s.client(), s.client()
    c("open", file=OTHER)
    rev = c("comment", addr="entry", text="confirmed")["rev"]
    c.post("multi", work(1000))
    s.proc.kill()
    s.proc.wait()
    ends = 0
    for x in (c, idle):
        try:
            while True:
                x.line()
        except (EOFError, ConnectionError):
            ends += 1
    ok(ends == 2 and os.path.exists(path), "when it is killed its clients see it")
    s = Server(SCRY, path, OTHER, env=ENV)
    c = s.client()
    c("open", file=OTHER)
    ok(c("info")["rev"] >= rev and any(h["comment"].startswith("confirmed") for h in c("heads", addr="entry", count=3)["items"]),
       "the next one takes its place, and nothing that was confirmed is lost")
    s.stop()


def free_port():
    with socket.socket() as x:
        x.bind(("127.0.0.1", 0))
        return x.getsockname()[1]


def test_tls():
    token = ROOT + "/token"
    with open(token, "w") as f:
        f.write("a token of some length\n")
    os.chmod(token, 0o600)
    r = cli("serve", OTHER, "--socket", ROOT + "/t0", "--listen", "127.0.0.1:1")
    ok(r.returncode == 1 and "TLS" in r.stderr, "over TCP without TLS and a token nothing is served")
    r = cli("serve", OTHER, "--socket", ROOT + "/t0", "--listen", "127.0.0.1:1", "--tls-cert", "x", "--tls-key", "y")
    ok(r.returncode == 1, "nor with only one of them")
    if not shutil.which("openssl"):
        skip("clients over TLS", "no openssl to make a certificate with")
        return
    cert, key = ROOT + "/cert.pem", ROOT + "/key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj",
                    "/CN=localhost"], capture_output=True, check=True)
    options = ["--tls-cert", cert, "--tls-key", key, "--token-file", token]
    os.chmod(token, 0o644)
    r = cli("serve", OTHER, "--socket", ROOT + "/t0", "--listen", "127.0.0.1:1", *options)
    ok(r.returncode == 1 and "others can read" in r.stderr, "a token that others can read is refused")
    os.chmod(token, 0o600)
    port = free_port()
    s = Server(SCRY, ROOT + "/tls.sock", OTHER, "--listen", f"127.0.0.1:{port}", *options,
               env=dict(ENV, SOME_KEY="secret"))
    context = ssl.create_default_context(cafile=cert)
    context.check_hostname = False

    def connect(ctx):
        while True:
            try:
                raw = socket.create_connection(("127.0.0.1", port), WAIT_S)
                break
            except ConnectionRefusedError:
                # Its other socket was there first.
                assert s.proc.poll() is None
                time.sleep(0.02)
        return Client(None, ctx.wrap_socket(raw))
    c = connect(context)
    ok(c.refusal("info").kind == "denied", "without the token nothing is answered")
    ok(c("hello", token="a token of some length", client="far")["client"] == "far" and c("open", file=OTHER)["state"] == "ready",
       f"with it everything is ({c.sock.version()})")
    try:
        told = c("exec", code="import os; result = sorted(os.environ)").get("result", [])
        ok("PATH" in told and "SOME_KEY" not in told, "snippets of clients elsewhere do not see the environment of who started the server")
    except Refused as e:
        skip("the environment of snippets", str(e))
    want = json.loads(cli("heads", OTHER, "entry", "--count", "300", "--json").stdout)
    ok(all(c("heads", addr="entry", count=300) == want for _ in range(5)), "and is the same")
    d = connect(context)
    ok(d.refusal("hello", {"token": "a token of some lengtH"}).kind == "denied", "another token is none")
    try:
        ended = not d.sock.recv(1)
    except OSError:
        ended = True
    ok(ended, "after which the connection is closed")
    old = ssl.create_default_context(cafile=cert)
    old.check_hostname = False
    good = True
    try:
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        connect(old)
        good = False
    except (OSError, ValueError):
        pass
    ok(good, "TLS 1.1 is refused")
    raw = socket.create_connection(("127.0.0.1", port), WAIT_S)
    raw.sendall(b'{"id":1,"method":"info"}\n')
    raw.settimeout(WAIT_S)
    try:
        said = raw.recv(1000)
    except OSError:
        said = b""
    ok(b"result" not in said, "plain text gets no answer")
    ok(c("ping") == {}, "and disturbs nobody")
    s.stop()


def main():
    os.makedirs(ROOT + "/run", 0o700, exist_ok=True)
    server = Server(SCRY, ROOT + "/s", TARGET, env=ENV)
    server.client()("open", file=TARGET)
    for test in (test_operations, test_etag, test_order, test_limits, test_clients, test_databases, test_subscription, test_harm, test_silent,
                 test_soak, test_command_line):
        test(server)
    ok(server.stop() == 0, "it ends as told")
    text = open(ROOT + "/s.log").read()
    ok("ERROR" not in text and "runtime error" not in text, f"and had nothing to say {text[-2000:]}")
    for test in (test_edits, test_many, test_caps, test_project, test_death, test_tls):
        test()
    print(f"1..{count}")
    shutil.rmtree(ROOT, ignore_errors=True)
    sys.exit(failed > 0)


main()
