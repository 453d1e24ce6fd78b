#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`scry mcp` as an agent's program uses it. The client here is strict: every line must be JSON-RPC 2.0, every request answered once and
nothing else, progress must grow and end with its request, what it sends must fit the schemas it was given, text and structured content must say
the same. The clients of npm that `tools/setup mcp` fetches drive a session, too, where they are. Prints TAP. SCRY is the program."""
import glob
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

SCRY = os.environ.get("SCRY", "")
WAIT_S = 120
ROOT = tempfile.mkdtemp(prefix="scry-mcp-")
os.environ["SCRY_STORE"] = os.path.join(ROOT, "store")
HERE = os.path.dirname(os.path.abspath(__file__))
NPM = os.path.join(HERE, "../../build-npm")
VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
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
    print(f"ok {count} - {what} # SKIP {why}")


class Broken(Exception):
    """The server broke a rule of the protocol."""


class Refused(Exception):
    def __init__(self, error):
        super().__init__(error["message"])
        self.code = error["code"]


def fits(value, schema, where="arguments"):
    """JSON Schema, as much of it as the tools use."""
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
    known = {"type", "description", "properties", "required", "additionalProperties", "items", "enum", "minimum"}
    if set(schema) - known:
        raise Broken(f"{where}: a schema with {set(schema) - known}")
    if not isinstance(value, kinds[schema["type"]]) or (schema["type"] == "integer" and isinstance(value, bool)):
        raise Broken(f"{where}: {value!r} is no {schema['type']}")
    if "enum" in schema and value not in schema["enum"]:
        raise Broken(f"{where}: {value!r} is none of its values")
    if schema["type"] == "array":
        for v in value:
            fits(v, schema["items"], where + "[]")
    if schema["type"] == "object" and "properties" in schema:
        for name in schema.get("required", []):
            if name not in value:
                raise Broken(f"{where}: {name} is missing")
        for name, v in value.items():
            if name not in schema["properties"]:
                raise Broken(f"{where}: no {name} in the schema")
            fits(v, schema["properties"][name], f"{where}.{name}")


class Client:
    def __init__(self, *args, version=VERSIONS[-1], start=True, env=None):
        self.err = tempfile.TemporaryFile(dir=ROOT)
        self.p = subprocess.Popen([SCRY, "mcp", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.err,
                                  env={**os.environ, "SCRY_STORE": os.path.join(ROOT, "store"), **(env or {})})
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.pending, self.answers, self.notes, self.tokens, self.late = {}, {}, [], {}, []
        self.id = 0
        self.version = version
        self.schemas = {}
        if start:
            self.server = self.ask("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test client", "version": "1"}})
            self.note("notifications/initialized")
            self.schemas = {t["name"]: t["inputSchema"] for t in self.ask("tools/list")["tools"]}

    def _read(self):
        for line in self.p.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def raw(self, data):
        self.p.stdin.write(data if isinstance(data, bytes) else data.encode())
        self.p.stdin.flush()

    def note(self, method, params=None):
        self.raw(json.dumps({"jsonrpc": "2.0", "method": method, **({"params": params} if params is not None else {})}) + "\n")

    def send(self, method, params=None, token=None):
        self.id += 1
        ident = self.id if self.id % 2 else f"r{self.id}"
        if token is not None:
            params = {**(params or {}), "_meta": {"progressToken": token}}
            self.tokens[token] = (ident, -1)
        self.pending[ident] = method
        self.raw(json.dumps({"jsonrpc": "2.0", "id": ident, "method": method, **({"params": params} if params is not None else {})}) + "\n")
        return ident

    def one(self, d):
        """A message of the server's: an answer or a notification."""
        if d.get("jsonrpc") != "2.0":
            raise Broken(f"no JSON-RPC 2.0: {d}")
        if "method" in d:
            if "id" in d or d["method"] not in ("notifications/progress", "notifications/resources/updated", "notifications/resources/list_changed"):
                raise Broken(f"an unexpected message: {d}")
            if d["method"] == "notifications/progress":
                ident, last = self.tokens.get(d["params"]["progressToken"], (None, 0))
                if ident not in self.pending or d["params"]["progress"] <= last or d["params"].get("total", 1e300) < d["params"]["progress"]:
                    raise Broken(f"progress out of order: {d} after {last}")
                self.tokens[d["params"]["progressToken"]] = (ident, d["params"]["progress"])
            self.notes.append(d)
            return
        if ("result" in d) == ("error" in d) or set(d) - {"jsonrpc", "id", "result", "error"}:
            raise Broken(f"neither result nor error, or both, or more: {d}")
        if d["id"] is None and "error" in d:
            self.late.append(d)
            return
        if d["id"] not in self.pending:
            raise Broken(f"an answer nobody asked for: {d}")
        self.pending.pop(d["id"])
        self.answers[d["id"]] = d

    def step(self):
        line = self.lines.get(timeout=WAIT_S)
        if line is None:
            raise EOFError
        if not line.endswith(b"\n"):
            raise Broken("half a line")
        d = json.loads(line)
        if isinstance(d, list) and self.version != "2025-03-26":
            raise Broken("a batch nobody asked for")
        for m in d if isinstance(d, list) else [d]:
            self.one(m)

    def wait(self, ident):
        while ident not in self.answers:
            self.step()
        d = self.answers.pop(ident)
        if "error" in d:
            raise Refused(d["error"])
        return d["result"]

    def ask(self, method, params=None, token=None):
        return self.wait(self.send(method, params, token))

    def refused(self, method, params=None):
        try:
            return (None, self.ask(method, params))
        except Refused as e:
            return (e.code, str(e))

    def result(self, r):
        """What a tool answered; {"error"} when it refused."""
        if not isinstance(r.get("content"), list) or not isinstance(r.get("isError"), bool) or set(r) - {"content", "isError", "structuredContent"}:
            raise Broken(f"no result of a tool: {r}")
        if len(r["content"]) != 1 or r["content"][0]["type"] != "text":
            raise Broken("content is not one text")
        d = json.loads(r["content"][0]["text"])
        if ("structuredContent" in r) != (self.version >= "2025-06-18") or r.get("structuredContent", d) != d:
            raise Broken("text and structured content differ")
        # What a snippet raised is its answer.
        if r["isError"] != ("kind" in (d.get("error") or {})):
            raise Broken("isError is not true")
        self.len = len(r["content"][0]["text"].encode())
        return d

    def tool(self, tool, token=None, **args):
        fits(args, self.schemas[tool])
        return self.result(self.ask("tools/call", {"name": tool, "arguments": args}, token))

    def wait_note(self, good):
        while not any(good(n) for n in self.notes):
            self.step()

    def close(self):
        self.p.stdin.close()
        try:
            while True:
                self.step()
        except EOFError:
            pass
        status = self.p.wait(timeout=WAIT_S)
        if self.pending:
            raise Broken(f"never answered: {self.pending}")
        self.err.seek(0)
        self.stderr = self.err.read().decode(errors="replace")
        return status


def cli(*args):
    r = subprocess.run([SCRY, *args, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "SCRY_STORE": os.path.join(ROOT, "store")})
    return json.loads(r.stdout) if r.stdout else None


def has_python():
    return os.path.exists(os.path.join(os.environ.get("BUILD") or os.path.dirname(os.path.dirname(os.path.dirname(SCRY))), "python/scry/_scry.abi3.so"))


def compile_program():
    path = os.path.join(ROOT, "my prog")
    subprocess.run(["gcc", "-O1", "-g", "-fcf-protection=none", "-fno-pie", "-no-pie", "-o", path, os.path.join(HERE, "../data/prog/sample.c")], check=True)
    shutil.copy(path, os.path.join(ROOT, "other"))
    with open(os.path.join(ROOT, "other"), "ab") as f:
        f.write(b"other")
    return path


def check_start(prog):
    for v in VERSIONS:
        c = Client(prog, version=v)
        ok(c.server["protocolVersion"] == v and c.server["serverInfo"]["name"] == "scry", f"revision {v} is spoken")
        d = c.tool("look", addr="main")
        ok(d["items"][0]["name"] == "main", f"{v}: a tool answers")
        ok(c.close() == 0 and not c.stderr, f"{v}: it ends with its input, and says nothing else", c.stderr)
    c = Client(prog, version="1999-01-01")
    c.version = c.server["protocolVersion"]
    ok(c.version == VERSIONS[-1], "a revision nobody knows is answered with the newest")
    ok(c.refused("initialize", {"protocolVersion": VERSIONS[0]})[0] == -32602, "a session begins once")
    c.close()
    c = Client(prog, start=False)
    ok(c.refused("tools/list")[0] == -32600, "nothing before it begins")
    ok(c.ask("ping") == {}, "but ping")
    ok(c.refused("initialize", {})[0] == -32602, "initialize without a revision")
    c.close()
    r = subprocess.run([SCRY, "mcp", os.path.join(ROOT, "nothere")], stdin=subprocess.DEVNULL, capture_output=True)
    ok(r.returncode == 3 and not r.stdout and b"nothere" in r.stderr, "a file that is not there is told at once")
    r = subprocess.run([SCRY, "mcp", "--allow", "read,fly"], stdin=subprocess.DEVNULL, capture_output=True)
    ok(r.returncode == 2 and b"'fly' is no capability" in r.stderr, "a capability that is none")
    r = subprocess.run([SCRY, "mcp", "--frob"], stdin=subprocess.DEVNULL, capture_output=True)
    ok(r.returncode == 2, "an option that is none")


def check_tools(c):
    r = c.ask("tools/list")
    ok([t["name"] for t in r["tools"]] == ["open", "look", "find", "list", "edit", "run", "trace", "reference"], "eight tools")
    ok(all(t["description"] and len(t["description"]) < 160 and t["inputSchema"]["type"] == "object" for t in r["tools"]), "each with a short description and a schema")
    ok(len(json.dumps(r)) < 12000, "all of it is short", len(json.dumps(r)))
    ok("nextCursor" not in r and c.refused("tools/list", {"cursor": "x"})[0] == -32602, "the list is one page")
    ops = {o["op"] for o in cli("reference")["items"]}
    ok(set(c.schemas["list"]["properties"]["op"]["enum"]) | set(c.schemas["edit"]["properties"]["op"]["enum"]) <= ops, "operations are those of the table")
    ok(c.refused("tools/call", {"name": "frob"})[0] == -32602, "a tool that is none")
    ok(c.refused("tools/call", {})[0] == -32602, "no tool at all")
    ok(c.refused("tools/call", {"name": "look", "arguments": 3})[0] == -32602, "arguments that are none")
    ok(c.refused("frob/list")[0] == -32601, "a method that is none")
    for args in ({"addr": "main", "frob": 1}, {}, {"addr": 7.5}, {"addr": "main", "limit": "many"}, {"addr": "main", "max_bytes": 1}, {"addr": "a\0b"}, {"db": 3, "addr": "main"}):
        d = c.result(c.ask("tools/call", {"name": "look", "arguments": args}))
        ok(d["error"]["kind"] == "invalid", f"look {args} is refused")
    d = c.tool("look", addr="nosuchname")
    ok(d["error"]["kind"] == "not_found" and "nosuchname" in d["error"]["message"], "what is not there is said to the model")
    d = c.result(c.ask("tools/call", {"name": "list", "arguments": {"op": "rename"}}))
    ok(d["error"]["kind"] == "invalid", "list does not edit")
    d = c.result(c.ask("tools/call", {"name": "list", "arguments": {"op": "batch"}}))
    ok(d["error"]["kind"] == "invalid", "nor does it run commands")


def check_read(c, prog):
    want = cli("functions", prog)["items"]
    got, args, pages = [], {"op": "functions", "max_bytes": 900}, 0
    while True:
        d = c.tool("list", **args)
        ok(c.len <= 900, "a page is within its budget", c.len) if pages < 3 or c.len > 900 else None
        got += d["items"]
        pages += 1
        if "next" not in d:
            break
        args["cursor"] = d["next"]
    ok(got == want and pages > 3, "pages one behind the other are the whole list", pages)
    whole = cli("look", prog, "main")["items"]
    got, args = [], {"addr": "main", "max_bytes": 1200}
    while True:
        d = c.tool("look", **args)
        got += d["items"]
        if c.len > 1200:
            ok(False, "look within its budget", c.len)
        if "next" not in d:
            break
        args["cursor"] = d["next"]
    ok(got == whole, "look in pieces is look")
    d = c.tool("list", op="decompile", params={"func": "main"}, max_bytes=500)
    ok(d["error"]["kind"] == "budget" and "500" in d["error"]["message"], "what cannot be cut is not cut, and says how long it is")
    d = c.tool("find", name="squ")
    ok([i["name"] for i in d["items"]] == ["square"], "find a name")
    ok(any(i["name"] == "counter" for i in c.tool("find", symbol="counter")["items"]), "find a symbol")
    ok(c.tool("find", string="*")["total"] == len(cli("strings", prog, "--filter", "*")["items"]), "find strings")
    ok(c.tool("find", insn="ret*", limit=2)["items"], "find instructions")
    ok(c.tool("find", bytes="7f 45 4c 46")["items"], "find bytes")
    ok(c.tool("find")["error"]["kind"] == "invalid", "find nothing")
    ok(c.tool("find", insn="ret*", text="x")["error"]["kind"] == "invalid", "find two things")
    d = c.tool("reference", word=["refers"])
    ok(d["items"][0]["op"] == "xrefs" and any(p.startswith("addr:") for p in d["items"][0]["params"]), "reference knows what it takes")
    d = c.tool("list", op="multi", params={"ops": [{"op": "info"}, {"op": "resolve", "params": {"name": ["main"]}}]})
    ok(len(d["results"]) == 2 and d["results"][1]["items"][0]["name"] == "main", "several questions at once")
    d = c.tool("trace")
    ok(d["error"]["kind"] == "denied", "tracing is not granted")
    ok(c.tool("run", code="result = 1")["error"]["kind"] == "denied", "nor is running code")


def check_edit(c, prog):
    rev = c.tool("look", addr="square")["rev"]
    d = c.tool("edit", ops=[{"op": "rename", "addr": "square", "name": "times_itself"}, {"op": "comment", "addr": "main", "text": "begins"}], note="a test", dry_run=True)
    ok([r["status"] for r in d["results"]] == ["applied", "applied"] and c.tool("look", addr="main")["rev"] == rev, "a dry run changes nothing")
    d = c.tool("edit", ops=[{"op": "rename", "addr": "square", "name": "times_itself"}, {"op": "comment", "addr": "main", "text": "begins"}], note="a test", if_rev=rev)
    ok(d["rev"] == rev + 1, "two edits are one revision")
    d = c.tool("edit", ops=[{"op": "rename", "addr": "times_itself", "name": "again"}], if_rev=rev)
    ok(d["error"]["kind"] == "stale", "an edit on an older revision is refused")
    j = cli("journal", prog, "--since", str(rev))["items"]
    ok(len(j) == 2 and all(e["author"] == "testclient" and e["author_kind"] == "agent" and e["note"] == "a test" for e in j), "edits are the agent's", j)
    d = c.tool("edit", ops=[{"op": "rename", "addr": "main", "name": "has space"}])
    ok(d["results"][0]["status"] == "refused" and d["results"][0]["why"], "a refused edit says why")
    d = c.result(c.ask("tools/call", {"name": "edit", "arguments": {"op": "rename", "params": {"addr": "main", "name": "x", "author": "root"}}}))
    ok(d["error"]["kind"] == "denied", "nobody edits in another's name")
    d = c.tool("edit", op="declare", params={"text": "struct pair { int a, b; };"})
    ok(d["results"][0]["status"] == "applied", "an edit with its own parameters")
    d = c.tool("edit", op="undo", params={"steps": 2})
    ok(len(d["undone"]) == 2 and c.tool("look", addr="square")["items"][0]["name"] == "square", "undo")
    ok(any(i["what"] == "comment" for i in c.tool("look", addr="main")["items"]) is False, "undone is undone")


def pages(c, tool, max_bytes, d, **more):
    """A page and all that follow it."""
    got = [d]
    while "next" in d:
        d = c.tool(tool, cursor=d["next"], max_bytes=max_bytes, **more)
        got.append(d)
        if d.get("error") or c.len > max_bytes:
            raise Broken(f"page {len(got)}: {c.len} bytes, {d.get('error')}")
    return got


def check_rest(c, prog):
    """What an edit or a snippet came to is within the budget, too, and all of it can be had."""
    base = int(c.tool("look", addr="main")["items"][0]["addr"], 16)
    ops = [{"op": "comment", "addr": hex(base + i), "text": f"\u00e9 {i} \\ \" [,]"} for i in range(40)] + [{"op": "rename", "addr": "main", "name": "has space"}]
    d = c.tool("edit", ops=ops, max_bytes=900)
    ok(c.len <= 900 and len(d["results"]) < len(ops), "the answer of a long edit ends at an item", c.len)
    got = pages(c, "edit", 900, d)
    results = [r for p in got for r in p["results"]]
    ok([r["status"] for r in results] == ["applied"] * 40 + ["refused"] and {p["rev"] for p in got} == {d["rev"]}, "and goes on exactly there", len(got))
    ok([r["after"] for r in results[:40]] == [o["text"] for o in ops[:40]], "with every item whole")
    want = {i["addr"]: i["after"] for i in cli("journal", prog, "--since", str(d["rev"] - 1))["items"]}
    ok(want == {r["addr"]: r["after"] for r in results[:40]}, "which was done once")
    ok(pages(c, "list", 5000, c.tool("edit", cursor=d["next"], max_bytes=5000), op="info")[-1]["results"][-1]["status"] == "refused", "a page can be asked for again, of any tool and size")
    ok(c.tool("edit", op="undo")["undone"], "and it is taken back at once")
    for cursor in ("rest.", "rest.1", "rest.1.1x", "rest.-1.0", "rest.1.99999999999999999999999", f"rest.{d['next'].split('.')[1]}.1000000"):
        e = c.tool("edit", cursor=cursor)["error"]
        ok(e["kind"] in ("invalid", "stale"), f"{cursor} is no page", e)
    kept = c.tool("edit", ops=ops, dry_run=True, max_bytes=900)["next"]
    for i in range(8):
        c.tool("edit", ops=ops, dry_run=True, max_bytes=900)
    ok(c.tool("edit", cursor=kept)["error"]["kind"] == "stale", "what is not kept any more is stale")
    text = "\u20ac" * 700
    d = c.tool("edit", ops=[{"op": "comment", "addr": "main", "text": text}], max_bytes=400)
    got = pages(c, "edit", 400, d)
    whole = json.loads("".join(p["part"] for p in got))
    ok(whole["results"][0]["after"] == text and [p["at"] for p in got[:2]] == [0, len(got[0]["part"].encode())], "an item longer than the budget comes in pieces of text", len(got))
    c.tool("edit", op="undo")
    asks = [{"op": "resolve", "params": {"name": ["main"]}}] * 20
    got = pages(c, "list", 700, c.tool("list", op="multi", params={"ops": asks}, max_bytes=700), op="multi")
    ok([r["items"][0]["name"] for p in got for r in p["results"]] == ["main"] * 20 and len(got) > 2, "several questions are answered in pages")


def check_rest_code(prog):
    if not has_python():
        skip("a snippet's answer in pages", "this build has no Python: its headers (python3-dev) were not there")
        return
    c = Client(prog, "--allow", "read,run-code")
    d = c.tool("run", code="result = {'n': 1, 'of': [{'i': i, 'nest': [[i], {'a': '['}]} for i in range(300)]}", max_bytes=1000)
    if not ok(d["end"] == "done" and d["result"], "a snippet that answers much", d):
        return
    got = pages(c, "run", 1000, d)
    ok([x["i"] for p in got for x in p["result"]["of"]] == list(range(300)) and all(p["result"]["n"] == 1 for p in got), "a snippet's answer is told in pages", len(got))
    d = c.tool("run", code="print('\\u00e9\\n' * 3000); result = 7", max_bytes=2000)
    whole = json.loads("".join(p["part"] for p in pages(c, "run", 2000, d)))
    ok(whole["output"] == "\u00e9\n" * 3000 + "\n" and whole["result"] == 7, "or in pieces", whole["end"])
    c.close()


def check_project(prog):
    p = os.path.join(ROOT, "p.json")
    other = os.path.join(ROOT, "other")
    libc = next((w for w in subprocess.run(["ldd", "/bin/true"], capture_output=True, text=True).stdout.split() if w.startswith("/") and "libc.so" in w), None)
    with open(p, "w") as f:
        json.dump({"binaries": [{"path": prog, "label": "one"}, {"path": other}, *([{"path": libc, "label": "libc"}] if libc else [])]}, f)
    # Analysed before: a sanitizer's allocator does not survive a fork beside other threads, and analysis forks.
    for path in [prog, other] + [libc] * bool(libc):
        cli("analyze", path)
    c = Client("--project", p)
    names = [d["db"] for d in c.tool("open")["databases"]]
    ok(names == ["one", "other"] + ["libc"] * bool(libc), "a project's binaries are open, by their labels", names)
    ok(c.tool("look", addr="main", db="one")["items"][0]["name"] == "main", "each answers")
    d = c.tool("look", addr="one!square+1")
    ok(d["items"][0]["name"].startswith("square"), "a place may say whose it is", d)
    ok(c.tool("look", addr="nobody!main")["error"]["kind"] == "invalid" and c.tool("look", addr="one!nowhere")["error"]["kind"] == "not_found", "which has to be right")
    if libc:
        d = c.tool("list", db="libc", op="xrefs", params={"addr": "puts"})
        ok(any(i.get("binary") == "one" for i in d.get("items", [])), "references from other binaries are there", d)
    ok({u["uri"].split("/")[2] for u in c.ask("resources/list")["resources"]} == set(names), "and resources of each")
    ok(c.tool("open", path=prog)["db"] == "one", "opening one of them opens nothing")
    c.tool("edit", db="one", ops=[{"op": "comment", "addr": "main", "text": "in a project"}])
    ok(cli("journal", prog)["items"][-1]["after"] == "in a project", "an edit is of its binary")
    ok(c.close() == 0, "and it ends in peace")
    r = subprocess.run([SCRY, "mcp", "--project", os.path.join(ROOT, "nothere.json")], stdin=subprocess.DEVNULL, capture_output=True)
    ok(r.returncode and b"nothere" in r.stderr, "a project that is not there is told at once")


def check_dbs(c, prog):
    other = os.path.join(ROOT, "other")
    d = c.tool("open", path=other)
    ok(d["db"] == "other" and d["state"] == "ready" and d["info"]["functions"] > 5 and len(d["databases"]) == 2, "another program is opened")
    c.wait_note(lambda n: n["method"] == "notifications/resources/list_changed")
    ok(True, "and told of")
    ok(c.tool("open", path=other)["databases"] == c.tool("open")["databases"], "opening it again opens nothing")
    ok(c.tool("look", addr="main")["error"]["kind"] == "invalid", "with two open programs one must say which")
    ok(c.tool("look", addr="main", db="other")["items"][0]["name"] == "main", "by name")
    ok(c.tool("look", addr="main", db=prog)["items"][0]["name"] == "main", "or by path")
    ok(c.tool("look", addr="main", db="nobody")["error"]["kind"] == "not_found", "one that is not open")
    ok(c.tool("open", path=os.path.join(ROOT, "nothere"))["error"]["kind"] == "bad_input", "a file that is not there")
    with open(os.path.join(ROOT, "text"), "w") as f:
        f.write("just text")
    ok(c.tool("open", path=os.path.join(ROOT, "text"))["error"]["kind"] == "unsupported", "a file that is no program")
    d = c.tool("open", path="/bin/bash", wait=False)
    ok(d["db"] == "bash" and d["info"]["format"] == "ELF64", "an open that does not wait answers at once")
    d = c.tool("list", op="info", db="bash", token="t1")
    ok(d["functions"] > 1000, "a question waits for the analysis, and tells how far it is")


def check_resources(c, prog):
    r = c.ask("resources/list")["resources"]
    uris = [x["uri"] for x in r]
    ok("scry://my%20prog/info" in uris and "scry://other/journal" in uris and len(uris) == len(set(uris)), "resources of each program", uris)
    ok(all(x["name"] and x["mimeType"] == "application/json" for x in r), "each with its name and type")
    ok(c.ask("resources/templates/list")["resourceTemplates"][0]["uriTemplate"] == "scry://{db}/func/{addr}", "a template")
    for uri in uris:
        d = c.ask("resources/read", {"uri": uri})["contents"]
        if not (len(d) == 1 and d[0]["uri"] == uri and "rev" in json.loads(d[0]["text"]) and len(d[0]["text"]) <= 24576):
            ok(False, f"{uri} can be read", d)
    ok(True, "each can be read")
    d = json.loads(c.ask("resources/read", {"uri": "scry://other/func/main%2B0x4"})["contents"][0]["text"])
    ok(d["items"][0]["name"] == "main", "a function by the template")
    for uri in ("scry://nobody/info", "scry://other/frob", "http://other/info", "scry://other", "scry://other/func/", "scry://%00/info", "scry://other/func/%zz"):
        ok(c.refused("resources/read", {"uri": uri})[0] == -32002, f"{uri} is none")
    ok(c.refused("resources/read", {})[0] == -32602 and c.refused("resources/subscribe", {"uri": 3})[0] == -32602, "without one")
    a, b = "scry://my%20prog/functions", "scry://my%20prog/func/main"
    ok(c.ask("resources/subscribe", {"uri": a}) == {} and c.ask("resources/subscribe", {"uri": b}) == {}, "subscribing")
    c.notes.clear()
    cli("comment", prog, "main", "by another process")
    c.wait_note(lambda n: n.get("params", {}).get("uri") == a)
    c.wait_note(lambda n: n.get("params", {}).get("uri") == b)
    ok(True, "an edit of another process is told")
    ok(c.ask("resources/unsubscribe", {"uri": a}) == {}, "no longer")
    c.notes.clear()
    for i in range(30):
        c.tool("edit", db="my prog", ops=[{"op": "comment", "addr": "main", "text": f"edit {i}"}])
    c.wait_note(lambda n: n.get("params", {}).get("uri") == b)
    ok(len(c.notes) < 30 and all(n["params"]["uri"] == b for n in c.notes), "thirty edits are told of in fewer words, and only to who asked", c.notes)


def check_hostile(c):
    c.raw(b"{\nfrob\n[]\n{}\n{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}\n{\"jsonrpc\":\"1.0\",\"id\":\"zz\",\"method\":\"ping\"}\n\n\r\n")
    c.pending["zz"] = "ping"
    c.raw(b"x" * (3 << 20) + b"\n" + b"[" * 5000 + b"\n")
    c.raw(b'{"jsonrpc":"2.0","id":"\\u0000","method":"ping"}\n')
    c.pending["\0"] = "ping"
    c.raw(b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n{"jsonrpc":"2.0","method":"frob"}\n{"jsonrpc":"2.0","id":77,"result":{}}\n')
    c.raw(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[1]}}\n{"jsonrpc":"2.0","method":"tools/call"}\n')
    ok(c.ask("ping") == {}, "after all sorts of rubbish it is there")
    ok(c.answers.pop("zz")["error"]["code"] == -32600, "what names another version is refused")
    ok(c.answers.pop("\0")["result"] == {}, "an id with a NUL is an id")
    codes = sorted(d["error"]["code"] for d in c.late)
    ok(codes.count(-32700) >= 2 and codes.count(-32600) >= 4 and len(codes) == 8, "each line of it has its error", codes)
    c.late.clear()
    ok(c.refused("tools/list", [1])[0] == -32602, "parameters by position")
    deep = '{"a":' * 60 + "1" + "}" * 60
    c.pending["deep"] = "x"
    c.raw('{"jsonrpc":"2.0","id":"deep","method":"ping","params":' + deep + "}\n")
    ok(c.ask("ping") == {} and len(c.late) + len(c.answers) == 1, "what is nested deep is refused")
    c.pending.pop("deep", None)
    c.answers.clear()


def check_batches(prog):
    c = Client(prog, version="2025-03-26")
    c.pending.update({"a": 1, "b": 1, "c": 1})
    c.raw('[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":"b",'
          '"method":"tools/call","params":{"name":"look","arguments":{"addr":"main"}}},{"jsonrpc":"2.0","id":"c","method":"frob"}]\n')
    ok(c.wait("a") == {} and c.result(c.wait("b"))["items"][0]["name"] == "main" and c.answers.pop("c")["error"]["code"] == -32601, "a batch, where the revision has them")
    c.raw('[{"jsonrpc":"2.0","method":"notifications/initialized"}]\n')
    ok(c.ask("ping") == {}, "a batch of notifications has no answer")
    c.raw("[]\n[3]\n")
    ok(c.ask("ping") == {} and len(c.late) == 2, "empty ones and such that hold no requests")
    c.close()
    c = Client(prog)
    c.raw('[{"jsonrpc":"2.0","id":"a","method":"ping"}]\n')
    ok(c.ask("ping") == {} and c.late[0]["error"]["code"] == -32600, "elsewhere they are refused")
    c.close()


def check_cancel(prog):
    # All of a large library: longer than the time between two words about progress on any machine.
    large = sorted(glob.glob("/usr/lib/*/libcrypto.so.3")) or ["/bin/bash"]
    c = Client(large[0], "--allow", "read,write-files")
    c.tool("list", op="info")
    out = os.path.join(ROOT, "c")
    ident = c.send("tools/call", {"name": "list", "arguments": {"op": "decompile", "params": {"all": True, "output": out}}}, token="p")
    told = lambda n: n["method"] == "notifications/progress" and n["params"]["progressToken"] == "p"  # noqa: E731
    while ident not in c.answers and not any(told(n) for n in c.notes):
        c.step()
    if ident in c.answers:
        skip("a long operation tells how far it is", "it was over before the first word was due")
    else:
        ok(True, "a long operation tells how far it is")
    c.note("notifications/cancelled", {"requestId": ident, "reason": "enough"})
    ok("error" not in c.tool("list", op="info"), "while it is being stopped others are answered")
    # One that is over when it is cancelled was answered before.
    if ident in c.answers:
        c.answers.pop(ident)
        skip("a cancelled request is not answered", "it was over already")
    else:
        c.pending.pop(ident)
        ok(c.close() == 0, "a cancelled request is not answered")
        return
    c.close()


def check_caps(prog):
    c = Client(prog, "--allow", "read")
    ok(c.tool("edit", ops=[{"op": "rename", "addr": "main", "name": "x"}])["error"]["kind"] == "denied", "edits are refused where they are not granted")
    tools = {t["name"]: t["description"] for t in c.ask("tools/list")["tools"]}
    ok("Not granted" in tools["edit"] and "Not granted" not in tools["look"], "which the list of tools says")
    c.close()
    c = Client(prog, "--allow=read,trace,run-target")
    d = c.tool("trace", wait_ms=60000)
    ok(d["error"]["kind"] == "invalid", "a trace of nothing is refused", d)
    d = c.tool("trace", op="trace", params={"cmd": ["true"]})
    ok(d["error"]["kind"] == "denied", "an agent starts no program", d)
    d = c.tool("trace", rules=True, wait_ms=60000)
    ok(len(d["items"]) > 10 and all(i["event"] == "finding" for i in d["items"]) and "next" not in d, "what it gives comes in items", d)
    d = c.tool("trace", op="trace", params={"rules": True, "wait_ms": 60000}, limit=3)
    ok(len(d["items"]) == 3 and d["next"], "as many as are wanted", d)
    d = c.tool("trace", cursor=d["next"], wait_ms=60000)
    ok(len(d["items"]) > 5, "and the rest", d)
    ok(c.tool("trace", op="events", params={"cursor": "77.0"})["error"]["kind"] == "not_found", "of a trace that was never begun there is none", d)
    d = c.tool("run", op="call", params={"func": "square", "args": ["3"]})
    ok(d["error"]["kind"] == "denied" and "yes-run-target" in json.dumps(d), "a target nobody agreed to is not run", d)
    d = c.tool("run", op="call", params={"func": "square", "args": ["3"], "yes_run_target": True})
    ok(d["error"]["kind"] == "denied", "and nobody agrees to it here", d)
    d = c.tool("run", op="call", params={"func": "square", "args": ["3"]})
    ok(d["error"]["kind"] == "denied", "neither afterwards")
    c.close()
    c = Client(prog, "--max-bytes", "700")
    ok(c.tool("list", op="functions")["next"] and c.len <= 700, "the budget can be chosen at the start")
    c.close()


# Every way by which a snippet might change something, and what came of each.
SNIPPET = """
result = {}
def attempt(name, do):
    try:
        result[name] = do()
    except Exception as e:
        result[name] = getattr(e, "kind", type(e).__name__)
def block():
    with db.edit(note="in a block") as e:
        e.rename("main", "in_block")
    return [r.status for r in e.results]
attempt("one", lambda: [r.status for r in db.rename("square", "by_snippet").results])
attempt("block", block)
attempt("dry", lambda: [r.status for r in db.edit([{"op": "rename", "addr": "main", "name": "dry"}], dry_run=True).results])
attempt("undo", lambda: db.undo())
attempt("redo", lambda: db.redo())
attempt("accept", lambda: db.accept(all=True))
attempt("accept of an author", lambda: db.accept(author=args[0]))
attempt("salvage", lambda: db.salvage())
attempt("another's name", lambda: db.rename("main", "x", author="ada"))
attempt("in many", lambda: db.multi(ops=[{"op": "rename", "params": {"addr": "main", "name": "x"}}, {"op": "accept", "params": {"all": True}}]).results[0]["error"]["kind"])
attempt("in itself", lambda: db.exec(code="db.rename('main', 'x')"))
attempt("a file opened here", lambda: scry.open(args[1]).rename("main", "opened_here"))
attempt("wait", lambda: [p.after for p in db.proposals()])
attempt("by author", lambda: [p.after for p in db.proposals(author=args[0])])
"""


def check_propose(prog):
    """Who may only propose changes nothing, whichever way they try; what they may is as said of any agent."""
    c = Client(prog, "--propose", "--allow", "read,edit,run-code")
    rev = c.tool("look", addr="main")["rev"]
    before = [e for e in cli("journal", prog)["items"] if e["op"] != "analysis"]
    ok(c.tool("edit", ops=[{"op": "comment", "addr": "main", "text": "waits"}])["results"][0]["status"] == "proposed", "an edit is proposed")
    for op, params in (("accept", {"all": True}), ("accept", {"id": ["1"]}), ("undo", {}), ("redo", {}), ("undo", {"author": "testclient"}), ("salvage", {})):
        ok(c.tool("edit", op=op, params=params)["error"]["kind"] == "denied", f"{op} {params} is denied")
    ok(c.tool("list", op="multi", params={"ops": [{"op": "accept", "params": {"all": True}}]})["results"][0]["error"]["kind"] == "invalid", "neither is it in multi")
    d = c.tool("edit", ops=[{"op": "accept", "all": True}, {"op": "undo"}])
    ok(all(r["status"] == "refused" for r in d["results"]), "nor among edits", d)
    names = os.path.join(ROOT, "names.json")
    with open(names, "w") as f:
        json.dump({"square": "imported"}, f)
    d = c.tool("edit", op="import", params={"from": names})
    ok(d["applied"] == 0 and d["proposed"] == 1, "what is imported is proposed", d)
    cli("comment", prog, "square", "a person's")
    subprocess.run([SCRY, "mcp", prog, "--propose"], stdout=subprocess.DEVNULL, check=True, text=True, input="".join(json.dumps({"jsonrpc": "2.0", "id": i, **m}) + "\n" for i, m in enumerate((
        {"method": "initialize", "params": {"protocolVersion": VERSIONS[-1], "clientInfo": {"name": "other"}}},
        {"method": "tools/call", "params": {"name": "edit", "arguments": {"op": "bookmark", "params": {"addr": "main", "text": "another's"}}}}))))
    theirs = [p["id"] for p in cli("proposals", prog)["items"] if p["author"] == "other"]
    ok(len(theirs) == 1 and c.tool("edit", op="refuse", params={"id": [str(theirs[0])]})["error"]["kind"] == "not_found", "another's is not refused by number")
    ok(c.tool("edit", op="refuse", params={"author": "other"})["total"] == 2 and [p["author"] for p in cli("proposals", prog)["items"]] == ["other"],
       "nor by author: what one refuses is one's own")
    if has_python():
        d = c.tool("run", code=f"args = {['testclient', prog]!r}\n{SNIPPET}")
        r = d["result"] or {}
        ok(r.get("one") == ["proposed"] and r.get("block") == ["proposed"], "a snippet's edits are proposed", d)
        ok(r.get("dry") == ["applied"], "a dry run is neither", d)
        for what in ("undo", "redo", "accept", "accept of an author", "salvage", "another's name", "in itself"):
            ok(r.get(what) == "denied", f"in a snippet, too: {what}", r.get(what), d["error"])
        ok(r.get("in many") == "invalid", "multi only reads there, too", r)
        ok(isinstance(r.get("a file opened here"), str), "a snippet does not reach the store itself", r)
        ok(r.get("wait") == ["another's", "by_snippet", "in_block"] and r.get("by author") == ["by_snippet", "in_block"], "it sees what waits", r)
        mine = [p for p in cli("proposals", prog)["items"] if p["author"] != "other"]
        ok([(p["op"], p["after"], p["author"], p["author_kind"]) for p in mine] == [("rename", n, "testclient", "agent") for n in ("by_snippet", "in_block")],
           "in the agent's name", mine)
        d = c.tool("run", op="exec", params={"code": "db.rename('main', 'x')", "read_only": True})
        ok(d["error"]["type"] == "Error" and "read-only" in d["error"]["message"], "one that only reads proposes nothing", d)
    else:
        skip("a snippet's edits are proposed", "this build has no Python: its headers (python3-dev) were not there")
    c.close()
    c = Client(prog, "--propose", version="2025-03-26")
    c.pending.update(a="tools/call", b="tools/call")
    c.raw(json.dumps([{"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "edit", "arguments": {"op": "rename", "params": {"addr": "main", "name": "batched"}}}},
                      {"jsonrpc": "2.0", "id": "b", "method": "tools/call", "params": {"name": "edit", "arguments": {"op": "undo"}}}]) + "\n")
    ok(c.result(c.wait("a"))["results"][0]["status"] == "proposed" and c.result(c.wait("b"))["error"]["kind"] == "denied", "in a batch, too")
    c.close()
    after = [e for e in cli("journal", prog)["items"] if e["op"] != "analysis"]
    ok(len(after) == len(before) + 1 and after[-1]["after"] == "a person's" and rev, "of all that nothing was changed", after[len(before):])
    names = [i["name"] for i in cli("resolve", prog, "main", "square")["items"]]
    ok(names == ["main", "square"], "every name is as it was", names)
    cli("undo", prog)


def check_end(prog):
    c = Client(prog)
    ids = [c.send("tools/call", {"name": "look", "arguments": {"addr": "main"}}) for _ in range(100)]
    ok(c.close() == 0 and all("result" in c.answers[i] for i in ids), "what was asked before the input ended is answered")
    c = Client(prog)
    c.p.send_signal(signal.SIGTERM)
    ok(c.p.wait(timeout=WAIT_S) == 130, "SIGTERM ends it")
    r, w = os.pipe()
    p = subprocess.Popen([SCRY, "mcp", prog], stdin=subprocess.PIPE, stdout=w, stderr=subprocess.DEVNULL)
    os.close(w)
    os.close(r)
    try:
        p.communicate(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n' * 1000, timeout=WAIT_S)
    except BrokenPipeError:
        pass
    ok(p.wait(timeout=WAIT_S) == 0, "when nobody listens it ends, too")


SDK = r"""
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
const [scry, prog] = process.argv.slice(2);
const transport = new StdioClientTransport({ command: scry, args: ["mcp", prog], env: process.env });
const client = new Client({ name: "sdk", version: "1" }, { capabilities: {} });
let n = 0;
const ok = (good, what) => console.log(`${good ? "ok" : "not ok"} ${++n} - ${what}`);
const call = async (name, args) => (await client.callTool({ name, arguments: args })).structuredContent;
const updates = [];
client.setNotificationHandler(ResourceUpdatedNotificationSchema, (x) => updates.push(x.params.uri));
await client.connect(transport);
ok((await client.listTools()).tools.length === 8, "tools");
ok((await call("open", {})).databases.length === 1, "open");
const look = await call("look", { addr: "main" });
ok(look.items[0].name === "main", "look");
ok((await call("find", { name: "square" })).items.length === 1, "find");
ok((await call("list", { op: "functions", limit: 3 })).items.length === 3, "list");
await client.subscribeResource({ uri: "scry://my%20prog/functions" });
const edit = await call("edit", { ops: [{ op: "rename", addr: "square", name: "by_sdk" }], if_rev: look.rev });
ok(edit.results[0].status === "applied", "edit");
ok((await call("edit", { op: "undo" })).undone.length === 1, "undo");
ok((await client.callTool({ name: "run", arguments: { code: "1" } })).isError === true, "run is not granted");
ok((await client.callTool({ name: "trace", arguments: {} })).isError === true, "trace is not granted");
ok((await call("reference", { word: ["rename"] })).items[0].op === "rename", "reference");
const resources = (await client.listResources()).resources;
ok(resources.length === 4, "resources");
ok(JSON.parse((await client.readResource({ uri: resources[0].uri })).contents[0].text).format === "ELF64", "a resource");
ok((await client.listResourceTemplates()).resourceTemplates.length === 1, "templates");
for (let i = 0; i < 600 && !updates.length; i++) await new Promise((r) => setTimeout(r, 100));
ok(updates[0] === "scry://my%20prog/functions", "an update");
await client.ping();
await client.close();
ok(true, "the end");
"""


def check_npm(prog):
    sdk, inspector = (os.path.join(NPM, "node_modules", p) for p in ("@modelcontextprotocol/sdk", "@modelcontextprotocol/inspector-cli/build/cli.js"))
    why = "no node" if not shutil.which("node") else "not fetched: tools/setup mcp" if not os.path.isdir(sdk) or not os.path.isfile(inspector) else None
    if why:
        skip("a session of @modelcontextprotocol/sdk", why)
        skip("a session of the inspector", why)
        return
    script = os.path.join(ROOT, "session.mjs")
    with open(script, "w") as f:
        f.write(SDK)
    os.symlink(os.path.join(NPM, "node_modules"), os.path.join(ROOT, "node_modules"))
    env = {**os.environ, "SCRY_STORE": os.path.join(ROOT, "store")}
    r = subprocess.run(["node", script, SCRY, prog], capture_output=True, text=True, env=env, timeout=WAIT_S)
    for line in r.stdout.splitlines():
        if line.startswith(("ok", "not ok")):
            ok(line.startswith("ok"), "sdk: " + line.split(" - ")[1], r.stderr)
    ok(r.returncode == 0 and "the end" in r.stdout, "a session of @modelcontextprotocol/sdk", r.stderr)
    edits = '[{"op":"comment","addr":"square","text":"by the inspector"}]'
    for args, good in ((["tools/list"], lambda d: len(d["tools"]) == 8),
                       (["tools/call", "--tool-name", "look", "--tool-arg", "addr=main"], lambda d: d["structuredContent"]["items"][0]["name"] == "main"),
                       (["tools/call", "--tool-name", "find", "--tool-arg", "name=square"], lambda d: len(d["structuredContent"]["items"]) == 1),
                       (["tools/call", "--tool-name", "list", "--tool-arg", "op=functions", "limit=3"], lambda d: len(d["structuredContent"]["items"]) == 3),
                       (["tools/call", "--tool-name", "edit", "--tool-arg", f"ops={edits}"], lambda d: d["structuredContent"]["results"][0]["status"] == "applied"),
                       (["tools/call", "--tool-name", "edit", "--tool-arg", "op=undo"], lambda d: len(d["structuredContent"]["undone"]) == 1),
                       (["tools/call", "--tool-name", "trace"], lambda d: d["isError"]),
                       (["resources/list"], lambda d: len(d["resources"]) == 4), (["resources/templates/list"], lambda d: len(d["resourceTemplates"]) == 1),
                       (["resources/read", "--uri", "scry://my%20prog/info"], lambda d: json.loads(d["contents"][0]["text"])["format"] == "ELF64")):
        r = subprocess.run(["node", inspector, "--cli", SCRY, "mcp", prog, "--method", *args], capture_output=True, text=True, env=env, timeout=WAIT_S)
        try:
            good = r.returncode == 0 and good(json.loads(r.stdout))
        except (ValueError, KeyError) as e:
            good = ok(False, f"inspector: {e!r}") and False
        ok(good, "inspector: " + " ".join(a for a in args if not a.startswith("--")), r.stdout, r.stderr)


def main():
    prog = compile_program()
    check_start(prog)
    c = Client(prog)
    check_tools(c)
    check_read(c, prog)
    check_edit(c, prog)
    check_rest(c, prog)
    check_dbs(c, prog)
    check_resources(c, prog)
    check_hostile(c)
    ok(c.close() == 0, "it ends in peace")
    check_batches(prog)
    check_cancel(prog)
    check_caps(prog)
    check_propose(prog)
    check_rest_code(prog)
    check_project(prog)
    check_end(prog)
    check_npm(prog)


try:
    main()
except (Broken, Refused, EOFError, queue.Empty, subprocess.SubprocessError) as e:
    import traceback
    ok(False, f"{type(e).__name__}: {e}", *traceback.format_exc().splitlines())
finally:
    shutil.rmtree(ROOT, ignore_errors=True)
print(f"1..{count}")
sys.exit(failed > 0)
