#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every operation against its schema. What it takes is what the server's `methods` says: each parameter is given what it cannot be, and is refused.
What it answers is what docs/ops.md promises: the shapes there are read, and answers compared with them, member by member: none that is
not promised, each that is promised seen, words of a choice and addresses spelled as said. Prints TAP. SCRY is the program."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from rpcclient import Refused, Server, WAIT_S  # noqa: E402

SCRY = os.environ.get("SCRY", "")
BUILD = os.environ.get("BUILD") or os.path.dirname(os.path.dirname(os.path.dirname(SCRY)))
ROOT = tempfile.mkdtemp(prefix="scry-conform-")
ENV = dict(os.environ, SCRY_STORE=ROOT + "/store", XDG_RUNTIME_DIR=ROOT, NO_COLOR="1")
PROG = ROOT + "/prog"
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


# --- shapes as the document writes them ---------------------------------------------------------------------------------------------

TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\.\.\.|[{}\[\]:,|]|[A-Za-z]+)')


class Shape:
    """An object: members by name, each a list of what it may be; `is_open` when it ends in dots."""

    def __init__(self):
        self.members, self.is_open = {}, False


def read_value(t):
    """One alternative: a Shape, ("list", alternatives), a string, or a bare word."""
    w = t.pop(0)
    if w == "{":
        return read_object(t)
    if w == "[":
        of = []
        while t[0] != "]":
            of.append(read_value(t))
            if t[0] == ",":
                t.pop(0)
        t.pop(0)
        return ("list", of)
    return json.loads(w) if w.startswith('"') else ("word", w)


def read_object(t):
    """Behind the brace."""
    s = Shape()
    while t[0] != "}":
        if t[0] == "...":
            t.pop(0)
            s.is_open = True
            continue
        name = json.loads(t.pop(0))
        s.members[name] = []
        while t[0] in ":|":
            t.pop(0)
            s.members[name].append(read_value(t))
        if t[0] == ",":
            t.pop(0)
    t.pop(0)
    return s


def shapes_of(text):
    out = []
    for code in re.findall(r"`(\{.*?\})`", text):
        t = TOKEN.findall(code)
        if t[1:2] != ["}"] and t[1].startswith('"'):
            t.pop(0)
            out.append(read_object(t))
    return out


def read_document():
    """Shapes of each operation, by its name."""
    with open(os.path.join(HERE, "../../docs/ops.md")) as f:
        text = f.read()
    out = {}
    for line in text.splitlines():
        cells = re.match(r"\| ([a-z_]+(?:, [a-z_]+)*) \| (.*?) \| (.*) \|$", line.replace("\\|", "\0"))
        if not cells:
            continue
        for name in cells.group(1).split(", "):
            out.setdefault(name, []).extend(shapes_of(cells.group(3).replace("\0", "|")))
    lines = re.search(r"### Lines of the listing\n\n(.*)", text).group(1) + " `"
    out["heads"] = out["disasm"] = shapes_of(lines.replace("\\|", "|"))
    out["native_run"] = out["call"]
    out["version"], out["man"] = out["version"][:1], out["version"][1:]
    out["completion"] = out["man"]
    # The first is what one asks; an error stands in the place of a result.
    out["multi"] = out["multi"][1:2]
    for shape in out["heads"]:
        shape.members["spans"] = [("list", [])]
    edit = Shape()
    edit.members = {"rev": [], "results": []}
    result = shapes_of(re.search(r"The answer is\n(`\{.*?\}`)", text).group(1).replace("\\|", "|"))[0]
    edit.members["results"] = result.members["results"]
    out["edit"] = [edit]
    # What the document says in words, which have to be there.
    for op, member, words in PROSE:
        if words not in " ".join(text.replace("\\|", "|").split()):
            raise SystemExit(f"docs/ops.md does not say: {words}")
        into = edit.members["results"][0][1][0] if op == "edit" else out[op][1] if op == "look" else out[op][0]
        if op == "type":
            into = into.members["members"][0][1][0]
        into.members[member] = []
    out["redo"][0].members["redone"] = out["redo"][0].members.pop("undone")
    return out


# --- comparing ------------------------------------------------------------------------------------------------------------------------------

ADDRESSES = {"addr", "from", "to", "func_addr", "entry", "base", "main", "caller", "callee", "ip", "fault_addr", "target"}
ENVELOPE = {"rev", "etag", "items", "total", "next", "pending", "unchanged"}


class Odd(Exception):
    pass


# Operation, member, and the words of the document that promise it.
PROSE = [
    ("imports", "prototype", "imports with `prototype` too"), ("type", "bit_offset", "bit-fields have `bit_offset`"), ("type", "bits", "and `bits` too"),
    ("look", "len", "`len` of a string says how long it is when its text is cut"), ("edit", "name", "results have `name` in place of `addr`"),
    ("edit", "end", "Their results say besides `end`"), ("edit", "count", "of code `count` (instructions)"), ("edit", "stopped", "`stopped` (`flow segment"),
    ("edit", "how", "of functions `how`"), ("redo", "redone", "of redo `redone`"),
]


def is_word(alternative):
    return isinstance(alternative, str)


def fits(value, alternatives, where, seen):
    """A value against what it may be; `seen` collects the members met."""
    if value is None or not alternatives:
        if isinstance(value, (dict, list)):
            raise Odd(f"{where}: {json.dumps(value)[:80]} is no plain value")
        return
    for a in alternatives:
        if isinstance(a, Shape) and isinstance(value, dict):
            object_fits(value, a, where, seen)
            return
        if isinstance(a, tuple) and a[0] == "list" and isinstance(value, list):
            for v in value:
                if a[1] and isinstance(a[1][0], Shape):
                    fits(v, a[1], where + "[]", seen)
                elif a[1] and isinstance(a[1][0], str) and re.fullmatch("[a-z]+", a[1][0]) and v not in a[1]:
                    raise Odd(f"{where}: {v!r} is none of {a[1]}")
            return
        if isinstance(a, tuple) and a[0] == "word" and ((a[1] == "true" and value is True) or (a[1] == "TEXT" and isinstance(value, str))):
            return
    words = [w for a in alternatives if is_word(a) for w in a.split("|")]
    if len(words) > 1 or (words and re.fullmatch("[a-z]+", words[0])):
        if value not in words:
            raise Odd(f"{where}: {value!r} is none of {words}")
    elif not isinstance(value, str):
        raise Odd(f"{where}: {json.dumps(value)[:80]} is none of what it may be")


def object_fits(value, shape, where, seen):
    for name, v in value.items():
        if name not in shape.members:
            if shape.is_open:
                continue
            raise Odd(f"{where}: '{name}' is not in the document")
        seen.add(where + "." + name)
        if name in ADDRESSES and isinstance(v, str) and not re.fullmatch("0x(0|[1-9a-f][0-9a-f]*)", v):
            raise Odd(f"{where}.{name}: {v!r} is no address")
        fits(v, shape.members[name], where + "." + name, seen)


def promised(shape, where):
    for name, alternatives in shape.members.items():
        yield where + "." + name
        for a in alternatives:
            inner = a[1][0] if isinstance(a, tuple) and a[0] == "list" and a[1] else a
            if isinstance(inner, Shape):
                yield from promised(inner, where + "." + name + ("[]" if inner is not a else ""))


def answer_fits(op, answer, shapes, seen):
    """One of the document's shapes; of a list each item is."""
    one_of = shapes
    whole = {n for s in shapes for n in s.members}
    values = [answer]
    if "items" in answer and "items" not in whole:
        if set(answer) - ENVELOPE - {"rows", "main"}:
            raise Odd(f"{op}: a list with {set(answer) - ENVELOPE}")
        values = answer["items"]
    elif "etag" in answer or "pending" in answer:
        values = [{k: v for k, v in answer.items() if k not in ("etag", "pending", *(() if "rev" in whole else ("rev",)))}]
    elif "rev" in answer and "rev" not in whole:
        values = [{k: v for k, v in answer.items() if k != "rev"}]
    for v in values:
        why = None
        for s in one_of:
            mine = set()
            # A word that says which it is.
            if op == "look" and v["what"] not in s.members["what"][0].split("|"):
                continue
            try:
                object_fits(v, s, op, mine)
            except Odd as e:
                why = why or e
                continue
            seen |= mine
            break
        else:
            raise why or Odd(f"{op}: has no shape in the document")


# --- questions ------------------------------------------------------------------------------------------------------------------------------

READS = [
    ("info", {}), ("segments", {}), ("sections", {}), ("functions", {}), ("heads", {"addr": "main", "count": 80}), ("heads", {"addr": "magic", "count": 8}),
    ("disasm", {"func": "main"}), ("blocks", {"func": "pick"}), ("blocks", {"func": "main"}), ("xrefs", {"addr": "square"}), ("xrefs", {"addr": "main", "from": True, "whole": True}),
    ("look", {"addr": "main"}), ("look", {"addr": "magic"}), ("decompile", {"func": "main", "map": True}), ("callgraph", {}), ("strings", {"min": 4}), ("imports", {}),
    ("exports", {}), ("symbols", {}), ("resolve", {"name": ["main", "nowhere"]}), ("bytes", {"addr": "main", "len": 8}), ("search", {"text": "GOLDEN"}),
    ("search", {"insn": "ret*"}), ("types", {}), ("types", {"source": "builtin", "limit": 20}), ("types", {"c": True}), ("type", {"name": "struct pair"}),
    ("type", {"name": "enum color"}), ("type_at", {"addr": "main"}), ("type_at", {"addr": "magic+4"}), ("problems", {"database": ROOT + "/cut"}), ("bookmarks", {}), ("journal", {}), ("changes", {"since": 0}),
    ("multi", {"ops": [{"op": "info"}, {"op": "bytes"}]}), ("check", {}), ("analyze", {}), ("reference", {}), ("reference", {"word": ["rename"]}), ("doctor", {}),
    ("version", {}), ("man", {}), ("completion", {"shell": "bash"}), ("proposals", {}), ("proposals", {"all": True}), ("export", {"format": "list"}),
    ("verify", {"func": ["square", "pick"], "seeds": 16}), ("call", {"func": "square", "args": ["3"]}), ("call", {"func": "main", "args": ["1", "buf:16"]}),
    ("decompile", {"func": "square"}),
]
EDITS = [
    ("declare", {"text": "struct pair { int a; unsigned b : 3; }; enum color { RED, BLUE };"}), ("rename", {"addr": "square", "name": "times"}),
    ("rename", {"addr": "times", "name": "has space"}), ("comment", {"addr": "main", "text": "x"}), ("bookmark", {"addr": "main", "text": "b"}),
    ("retype", {"addr": "magic", "type": "struct pair"}), ("set_prototype", {"addr": "times", "prototype": "int times(int)"}),
    ("format", {"addr": "main", "operand": 0, "format": "hex"}), ("patch", {"addr": "main", "bytes": "90"}), ("unpatch", {"addr": "main"}),
    ("define", {"addr": "counter", "what": "data:dword"}), ("undefine", {"addr": "counter"}), ("make_data", {"addr": "counter", "type": "dword"}),
    ("make_string", {"addr": "counter", "len": 2}), ("undefine", {"addr": "main"}), ("define", {"addr": "main", "what": "code"}), ("define", {"addr": "main", "what": "func"}), ("bounds", {"addr": "main", "pieces": "main+4"}),
    ("flags", {"addr": "main", "flags": "library"}), ("jump_table", {"addr": "main", "none": True}), ("load", {"base": "0x400000"}), ("undeclare", {"name": "enum color"}),
    ("edit", {"ops": {"ops": [{"op": "comment", "addr": "main", "text": "y"}]}}), ("undo", {"steps": 1}), ("redo", {"steps": 1}), ("undo", {"steps": 3}),
    ("accept", {"id": ["1"]}), ("refuse", {"id": ["2"]}), ("export", {"output": ROOT + "/out.json"}), ("import", {"from": ROOT + "/out.json", "any_target": True}),
    ("import", {"from": ROOT + "/names.sym"}), ("salvage", {}),
]
# What a front end's own options do (docs/ops.md says them of all operations), and what depends on the machine.
SOMETIMES = {"probe.rev", "probe.items", "probe.next", "probe.missed", "probe.notes", "trace.notes", "events.notes", "events.next", "decompile.path", "decompile.functions", "decompile.failed", "decompile.files",
             *("decompile.levels" + l for l in ("", ".L0", ".L1", ".L2", ".L3", ".L4"))}


def ask(c, op, params):
    try:
        return c(op, **params)
    except Refused as e:
        return e
    except TimeoutError:
        raise SystemExit(f"{op} {params}: no answer in {WAIT_S} s") from None


def check_answers(c, shapes, methods):
    seen, asked = set(), set()
    plan = EDITS[:6] + READS + EDITS[6:] + [("journal", {}), ("proposals", {"all": True}), ("bookmarks", {})]
    plan += [("native_build", {"func": ["square"], "output": ROOT + "/n.img"})] if shutil.which("gcc") else []
    plan += [("exec", {"code": "print(1); result = 2"}), ("exec", {"code": "1 // 0"})] if os.path.exists(BUILD + "/python/scry/_scry.abi3.so") else []
    plan += [(op, {"project": ROOT + "/p.json", **p}) for op, p in (("project_create", {"files": [PROG]}), ("project_list", {}), ("project_search", {"text": "puts"}),
                                                                   ("project_remove", {"binaries": ["prog"]}), ("project_add", {"files": [PROG]}))]
    # What is watched depends on the machine; the rules it would be searched for are the same on all.
    plan += [("trace", {"rules": True, "wait_ms": 60000}), ("trace", {"rules": True, "limit": 2, "wait_ms": 60000}), ("events", {})]
    cursor = None
    for op, params in plan:
        asked.add(op)
        params = {**params, "cursor": cursor} if op == "events" else params
        names = {"database", *(p["name"] for p in methods[op]["params"])}
        params = {k: v for k, v in params.items() if k in names or ok(False, f"{op} has no parameter {k}: {names}")}
        got = ask(c, op, params)
        if isinstance(got, Refused):
            ok(False, f"{op} {json.dumps(params)[:60]}: {got}")
            continue
        cursor = got.get("next")
        try:
            name = op if shapes.get(op) else "project_list" if op.startswith("project_") else "edit"
            answer_fits(name, got, shapes[name], seen)
            ok(True, f"{op} {json.dumps(params)[:60]}")
        except Odd as e:
            ok(False, f"{op} {json.dumps(params)[:60]}: {e}")
    return seen, asked


def wrong_values(p):
    """What a parameter of that kind cannot be."""
    yield {"an": "object"}
    if p["type"] == "integer":
        yield from (-1, "x", [1])
    elif p["type"] == "choice":
        yield from ("no such word", 7.5, "")
    elif p["type"] == "boolean":
        yield from ("perhaps", 7, [True])
    else:
        yield from (7.5, "a\0b")
    if not p.get("list"):
        yield ["a", "b"]


def check_parameters(c, methods):
    """Each refused as wrong, whatever else is right; and what is missing, and what is none."""
    tried = 0
    bad = []
    for name, m in methods.items():
        if "capability" not in m:
            continue
        required = {p["name"]: ["main"] if p.get("list") else p["choices"][0] if "choices" in p else 1 if p["type"] == "integer" else "main" for p in m["params"] if p["required"]}
        asks = [({**required, "no_such_parameter": 1}, "no_such_parameter")]
        asks += [({k: v for k, v in required.items() if k != left}, f"without {left}") for left in required]
        asks += [({**required, p["name"]: v}, f"{p['name']}: {v!r}") for p in m["params"] if p["type"] != "any" for v in wrong_values(p)]
        for params, what in asks:
            tried += 1
            got = ask(c, name, params)
            if not isinstance(got, Refused) or got.kind != "invalid":
                bad.append(f"{name} {what}: {got.kind + ': ' + str(got) if isinstance(got, Refused) else 'done'}")
    ok(not bad and tried > 900, f"{tried} wrong parameters are each refused as invalid {bad[:30]}")


def main():
    subprocess.run(["gcc", "-O1", "-g", "-fcf-protection=none", "-fno-pie", "-no-pie", "-o", PROG, os.path.join(HERE, "../data/prog/sample.c")], check=True)
    subprocess.run([SCRY, "call", PROG, "square", "3", "--yes-run-target"], env=ENV, check=True, stdout=subprocess.DEVNULL)
    # Somebody proposes, so that there is something to decide.
    session = [{"method": "initialize", "params": {"protocolVersion": "2025-06-18", "clientInfo": {"name": "robot"}}}]
    session += [{"method": "tools/call", "params": {"name": "edit", "arguments": {"op": "comment", "params": {"addr": f"main+{i}", "text": "p"}}}} for i in range(3)]
    subprocess.run([SCRY, "mcp", PROG, "--propose"], env=ENV, check=True, text=True, stdout=subprocess.DEVNULL,
                   input="".join(json.dumps({"jsonrpc": "2.0", "id": i, **m}) + "\n" for i, m in enumerate(session)))
    server = Server(SCRY, ROOT + "/s", PROG, env=ENV)
    c = server.client()
    c("open", file=PROG)
    with open(PROG, "rb") as f, open(ROOT + "/cut", "wb") as cut:
        cut.write(f.read()[:-3000])
    c("open", file=ROOT + "/cut")
    with open(ROOT + "/names.sym", "w") as f:
        f.write("dead0000 nowhere\n00401000 has space\n")
    c("use", database=PROG)
    shapes = read_document()
    methods = {m["name"]: m for m in c("methods")["methods"]}
    check_parameters(c, methods)
    seen, asked = check_answers(c, shapes, methods)
    left = {n for n, m in methods.items() if "capability" in m} - asked - {"native_run", "project_follow", "probe"}
    # Files of other machines: tests/e2e/remote.py.
    left -= {"cache_list", "cache_verify", "cache_prune"}
    left -= set() if os.path.exists(BUILD + "/python/scry/_scry.abi3.so") else {"exec"}
    ok(not left, f"every operation was asked {sorted(left)}")
    missing = sorted(p for op in asked for s in shapes.get(op, []) for p in promised(s, op) if p not in seen and p not in SOMETIMES)
    ok(not missing, f"every member that the document promises was seen {missing}")
    c.close()
    ok(server.stop() == 0, "the server ends in peace")
    print(f"1..{count}")
    shutil.rmtree(ROOT, ignore_errors=True)
    sys.exit(failed > 0)


main()
