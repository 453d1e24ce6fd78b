#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package in this process: every operation equals what --json prints, lists as columns and rows, edits as one transaction,
errors, threads, a target that is cut while it is open, and installing with pip. Prints TAP. SCRY is the program, BUILD its build folder."""
import array
import importlib.util
import inspect
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

SCRY = os.environ["SCRY"]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD") or os.path.dirname(os.path.dirname(os.path.dirname(SCRY)))
PACKAGE = os.path.join(BUILD, "python")
MODULE = os.path.join(PACKAGE, "scry/_scry.abi3.so")
TARGET = "/bin/bash"
count = failed = 0

if not os.path.exists(MODULE):
    print("ok 1 - the Python package # SKIP this build has none: Python's headers (python3-dev) were not there")
    sys.exit(0)
with open(MODULE, "rb") as f:
    sanitized = b"__asan_init" in f.read()
if sanitized and "libasan" not in os.environ.get("LD_PRELOAD", ""):
    # The runtime has to be there before Python is; what Python itself leaves at its end is not ours.
    libasan = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout.strip()
    os.environ.update(LD_PRELOAD=libasan, ASAN_OPTIONS="detect_leaks=0:" + os.environ.get("ASAN_OPTIONS", "").replace("detect_leaks=1", ""))
    os.execv(sys.executable, [sys.executable, *sys.argv])
sys.path.insert(0, PACKAGE)
WORK = tempfile.mkdtemp(prefix="scry-python-")
os.environ["SCRY_STORE"] = os.path.join(WORK, "store")
import scry  # noqa: E402


def ok(good, what):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}", flush=True)
    return good


def equal(got, want, what):
    if not ok(got == want, what):
        print(f"# got:  {str(got)[:1000]}\n# want: {str(want)[:1000]}")


def fails(kind, what, run):
    try:
        run()
    except scry.Error as e:
        equal(e.kind, kind, what)
        return e
    ok(False, what)
    return scry.Error("")


def cli(*words):
    # A preloaded runtime is for this process alone.
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    run = subprocess.run([SCRY, *words, "--json"], capture_output=True, text=True, env=env)
    return json.loads(run.stdout) if run.stdout else run.stderr


def without(answer, *keys):
    return {k: v for k, v in answer.items() if k not in ("etag", "ms", *keys)}


def as_json(value):
    """An Object as --json has it."""
    if isinstance(value, dict):
        return {k: hex(v) if k in scry._ADDRESS_KEYS and isinstance(v, int) else as_json(v) for k, v in value.items()}
    return [as_json(v) for v in value] if isinstance(value, list) else value


# --- every operation equals --json ---

db = scry.open(TARGET)
main = db.address("main")
LISTS = [
    ("functions", (), {}), ("functions", (), {"filter": "*command*", "sort": "-size", "limit": 5}), ("segments", (), {}), ("sections", (), {}),
    ("heads", ("main",), {"count": 50}), ("heads", ("main",), {"count": 20, "back": True}), ("disasm", ("main",), {"limit": 40}),
    ("blocks", ("main",), {}), ("xrefs", ("execute_command",), {}), ("xrefs", ("main",), {"from_": True, "whole": True}),
    ("callgraph", ("main",), {"depth": 2}), ("strings", (), {"min": 20}), ("imports", (), {}), ("exports", (), {}), ("symbols", (), {}),
    ("resolve", ("main", "malloc", "nothing_like_it"), {}), ("search", (), {"bytes": "f3 0f 1e fa"}), ("search", (), {"insn": "call *exit*"}),
    ("problems", (), {}), ("types", (), {"limit": 10}), ("bookmarks", (), {}), ("journal", (), {}), ("changes", (), {}), ("check", (), {}),
    ("functions", (), {"limit": 3, "offset": 2}),
]
OBJECTS = [
    ("info", (), {}), ("decompile", ("main",), {"map": True}), ("type_at", ("main",), {}), ("type", ("struct nothing",), {}),
    ("blocks", ("main",), {"dot": True}), ("export", (), {"format": "list"}), ("types", (), {"c": True}),
]
asked = set()


def words_of(op, args, kw):
    words = [op, TARGET, *map(str, args)]
    for key, value in kw.items():
        words += [f"--{key.rstrip('_').replace('_', '-')}"] + ([] if value is True else [str(value)])
    return words


for op, args, kw in LISTS:
    asked.add(op)
    got = getattr(db, op)(*args, **kw)
    limit = [] if "limit" in kw or op in ("heads", "resolve", "check") else ["--limit", "100000"]
    want = cli(*words_of(op, args, kw), *limit)
    equal(without(json.loads(got.json())), without(want), f"{op} {args} {kw}: the list is that of --json, {len(got)} rows")
for op, args, kw in OBJECTS:
    asked.add(op)
    try:
        got = without(as_json(getattr(db, op)(*args, **kw)))
    except scry.Error as e:
        got = str(e)
    want = cli(*words_of(op, args, kw))
    equal(got, without(want) if isinstance(want, dict) else want.split("\n")[0].removeprefix("scry: "), f"{op} {args} {kw}: the answer is that of --json")
equal(db.bytes(main, 16).hex(), cli("bytes", TARGET, "main", "16")["hex"], "bytes: those of --json")
equal(db.bytes("main+4", 4), db.bytes(main, 16)[4:8], "bytes takes a name")
equal(db.multi({"ops": [{"op": "resolve", "params": {"name": ["main"]}}]})["results"][0]["items"][0]["addr"], main, "multi")
equal(without(as_json(scry.version())), without(cli("version")), "version")
ok(scry.man().startswith(".") and "complete" in scry.completion("bash"), "man and completion are text")
table = scry._ops.TABLE
missing = [n for n in table if not hasattr(db if table[n][3] else scry, n + "_" if n == "import" else n)]
equal(missing, [], f"each of {len(table)} operations is there")
undocumented = [n for n in dir(scry._ops.Operations) if not n.startswith("_") and not inspect.getdoc(getattr(scry._ops.Operations, n))]
equal(undocumented, [], "each has its text")
with open(os.path.join(PACKAGE, "scry/__init__.pyi"), encoding="utf-8") as f:
    stub = f.read()
compile(stub, "__init__.pyi", "exec")
equal([n for n in table if f"    def {n}_(" not in stub and f"    def {n}(" not in stub], [], "each is in the types")

# --- lists ---

fs = db.functions()
equal(memoryview(fs.addr).tolist(), [f.addr for f in fs], "a column of numbers is an array that is the rows' values")
equal((memoryview(fs.addr).format, memoryview(fs.addr).itemsize, memoryview(fs.addr).readonly), ("Q", 8, True), "its items are 64-bit numbers, read-only")
equal(array.array("Q", memoryview(fs.addr).tobytes())[0], fs[0].addr, "its bytes are native numbers")
text, start, names = bytes(fs.name.data), 0, []
for end in fs.name.ends:
    names.append(text[start:end].decode())
    start = end
equal(names, [f.name for f in fs], "a column of text is its UTF-8 and where each row's part ends")
equal((fs.name.kind, fs.addr.kind, fs.size.kind, fs.flags.kind), ("text", "address", "int", "words"), "columns know their kind")
equal(fs.addr.tolist(), [t[fs.names.index("addr")] for t in fs.tuples()], "tuples are the rows")
equal((fs[-1].name, fs[1:3][1].addr, len(fs[:10])), (fs.name[len(fs) - 1], fs.addr[2], 10), "indices and slices as in any sequence")
equal(dict(fs[7])["size"], fs[7].size, "a row is a mapping")
equal({a for a in fs.addr[::7]}, set(list(fs.addr.tolist())[::7]), "slices with a step")
imports = db.imports()
nulls = [i for i, a in enumerate(imports.addr.tolist()) if a is None]
equal([i for i, n in enumerate(imports.prototype.nulls or b"") if n], [i for i, p in enumerate(imports.prototype.tolist()) if p is None],
      f"nulls say which rows have no value ({len(nulls)} imports without an address)")
heads = db.heads("main", count=30)
equal(sum("sub" in h.keys() for h in heads), sum(h.sub is not None for h in heads), "what a row does not say is None, and no key of it")
equal(heads[-1].spans, json.loads(heads[-1].json())["spans"], "spans are lists")
try:
    memoryview(fs.name)
    ok(False, "text has no array of values")
except BufferError as e:
    ok("ends" in str(e), "text has no array of values, and the error says what there is")
try:
    fs.no_such_column
    ok(False, "a column that is not there")
except AttributeError:
    ok(True, "a column that is not there is an AttributeError")
ok(isinstance(db.blocks("main")[0].succ[0]["addr"], int), "addresses of nested values are numbers, too")
equal(db.disasm(fs[3])[0].addr, db.disasm(fs[3].name)[0].addr, "a row stands for its address")
first = db.functions(limit=4)
equal(db.functions(limit=4, cursor=first.next)[0].addr, fs[4].addr, "a list goes on at its cursor")
keep = db.functions().addr
equal(keep[0], fs.addr[0], "a column keeps its list")

# --- errors ---

e = fails("not_found", "a function that is not there", lambda: db.disasm("no_such_function"))
ok("scry symbols" in e.fix and str(e).count("\n") == 0, "an error has a line and what to do")
fails("invalid", "a parameter of the wrong type", lambda: db.functions(limit="many"))
fails("bad_input", "a file that is not there", lambda: scry.open("/no/such/file"))
fails("not_found", "bytes that are not mapped", lambda: db.bytes(0xdead0000beef, 1))
fails("timeout", "a deadline", lambda: db.search(regex="(a|b)*c(d|e)*f", deadline_ms=1) and db.callgraph(deadline_ms=1) and db.search(insn="*zz*", deadline_ms=1))
fails("not_found", "an address beyond 63 bits", lambda: db.heads(0xffffffff80000000))

# --- edits ---

victim = next(f for f in fs if f.name.startswith("sub_") and f.callers)
with db.edit(note="python", dry_run=True) as e:
    e.rename(victim, "tried")
ok(e.results[0].status == "applied" and db.journal()[-1].op == "analysis", "a dry run says what would happen and changes nothing")
with db.edit(note="python") as e:
    e.rename(victim.addr, "from_python")
    e.comment(victim, "two words")
    e.bookmark(hex(victim.addr), "here")
equal((db.address("from_python"), db.functions(filter="from_python")[0].addr), (victim.addr, victim.addr), "an edit shows at once")
rows = [r for r in db.journal() if r.rev == e.rev]
equal([(r.op, r.author_kind, r.note) for r in rows], [("rename", "script", "python"), ("comment", "script", "python"), ("bookmark", "script", "python")],
      "three statements are one revision, by a script, with its note")
equal(cli("resolve", TARGET, "from_python")["items"][0]["addr"], hex(victim.addr), "the command line sees it")
cli("rename", TARGET, "from_python", "from_outside")
equal(db.address("from_outside"), victim.addr, "what somebody else edits is seen")
err = fails("denied", "one refusal refuses all", lambda: db.edit([{"op": "rename", "addr": victim.addr, "name": "good"}, {"op": "rename", "addr": main, "name": "a b"}]))
ok(len(err.results) == 2 and db.address("from_outside") == victim.addr, "and nothing of it was made")
ok("space" in str(err) and "another change" not in str(err), "it says which is at fault")
fails("denied", "a single refusal is an error", lambda: db.rename(main, "with space"))
try:
    with db.edit() as e:
        e.rename(victim, "never")
        raise KeyError("x")
except KeyError:
    equal(db.address("from_outside"), victim.addr, "an exception in the block makes nothing")
equal(db.undo(1).undone[0].changes, 1, "undo")
string = next(s for s in db.strings() if s.encoding == "ascii")
db.undefine(string.addr, len=4)
ok(db.heads(string.addr, count=3)[-1].kind != "string" and not db.functions(limit=1).pending, "a directive is analysed before the next answer")
equal(db.patch(main, b"\x90\x90").results[0].status, "applied", "bytes are bytes")
equal(db.bytes(main, 2), b"\x90\x90", "and are shown")
db.unpatch(main)

# --- snippets ---

equal(db.exec(None, "one", code="print('p'); result = [len(db.functions()), args]").result, [len(db.functions()), ["one"]], "a snippet from Python")
db.exec(code="import builtins; builtins.left = 1; scry.left = 2")
equal(db.exec(code="result = [hasattr(__builtins__, 'left'), 'left' in vars(scry)]").result, [False, False], "one finds nothing of the one before")
db.rename(victim, "before_snippet")
equal(db.exec(code="result = db.address('before_snippet')").result, victim.addr, "it sees what was edited before it began")
db.exec(code="db.comment('before_snippet', 'by it', kind='line')")
equal([(r.op, r.author_kind) for r in db.journal()][-1], ("comment", "script"), "and its edits are seen")
fails("denied", "unconfined is for a person at the command line", lambda: db.exec(code="1", unconfined=True))
equal(db.exec(code="while True: pass", deadline="0.5").end, "timeout", "a deadline")
answer = db.exec(code="1 // 0")
equal((answer.end, answer.error.type), ("raised", "ZeroDivisionError"), "what is raised is an answer")
results = []
threads = [threading.Thread(target=lambda n=n: results.append(db.exec(code=f"result = {n}").result)) for n in range(6)]
[t.start() for t in threads]
[t.join() for t in threads]
equal(sorted(results), list(range(6)), "several at once")

# --- the same from a server ---

def answer_of(d, op, args, kw):
    """An answer, or what is said of why there is none."""
    try:
        answer = getattr(d, op)(*args, **kw)
    except scry.Error as error:
        return str(error), error.kind, error.fix
    # The server says the path without links.
    return without(as_json(answer), "rev", "file") if isinstance(answer, dict) else answer


def check_far():
    """What is no single operation: edits, errors, rows, columns, snippets, several threads, and which database is meant."""
    both = (far, db)
    equal(far.bytes(main, 64), db.bytes(main, 64), "bytes")
    equal(far.bytes("main+4", 4), db.bytes(main + 4, 4), "bytes take a name")
    equal(*(d.address("main+0x10") for d in both), "address")
    equal(*([(f.addr, f.name, f.flags) for f in d.functions(limit=30)] for d in both), "rows and their values")
    equal(*(d.functions().addr.tolist() for d in both), "columns, of a list that takes several pages")
    equal(*(memoryview(d.functions(limit=9).addr).tolist() for d in both), "arrays")
    equal(*(d.functions(limit=9).name.tolist() for d in both), "texts")
    equal(*(d.functions(limit=9).tuples() for d in both), "tuples")
    equal(*([h.spans for h in d.heads("main", count=9)] for d in both), "nested values")
    equal(*(d.disasm(d.functions(limit=4)[3], limit=5).json() for d in both), "a row stands for its address")
    first = far.functions(limit=4)
    equal(far.functions(limit=4, cursor=first.next)[0].addr, db.functions(limit=1, offset=4)[0].addr, "a list goes on at its cursor")
    asks = [("disasm", ("no_such_function",), {}), ("functions", (), {"limit": "many"}), ("heads", (0xffffffff80000000,), {}),
            ("resolve", ("main",), {}), ("rename", ("main", "with space"), {}), ("functions", (), {"sort": "nothing"}), ("xrefs", (), {})]
    for op, args, kw in asks:
        if op == "xrefs":
            equal(*(raised(lambda d=d: d.xrefs()) for d in both), "a parameter that is missing")
        elif op == "resolve":
            equal(*([(r.query, r.addr) for r in d.resolve("main", "nowhere")] for d in both), "resolve of what is not there")
        else:
            equal(*(answer_of(d, op, args, kw) for d in both), f"{op} {args} {kw}: is refused in the same words")
    at = next(f for f in far.functions() if f.name.startswith("sub_") and f.callers)
    with far.edit(note="far", dry_run=True) as e:
        e.rename(at, "tried")
    equal((e.results[0].status, db.address(at.name)), ("applied", at.addr), "a dry run changes nothing")
    with far.edit(note="far") as e:
        e.rename(at, "from_afar")
        e.comment(at.addr, "two words")
    equal((far.address("from_afar"), db.address("from_afar")), (at.addr, at.addr), "an edit is seen there and here")
    equal([(r.op, r.author_kind, r.note) for r in far.journal() if r.rev == e.rev], [("rename", "script", "far"), ("comment", "script", "far")], "and is one revision")
    err = fails("denied", "one refusal refuses all", lambda: far.edit([{"op": "rename", "addr": at.addr, "name": "good"}, {"op": "rename", "addr": main, "name": "a b"}]))
    equal((len(err.results), far.address("from_afar")), (2, at.addr), "and nothing of it was made")
    db.rename(at.addr, "from_here")
    for _ in range(200):
        if far.resolve("from_here")[0].addr == at.addr:
            break
        time.sleep(0.1)
    equal(far.address("from_here"), at.addr, "what is edited here is seen there")
    far.undo(1)
    equal(far.multi({"ops": [{"op": "resolve", "params": {"name": ["main"]}}]})["results"][0]["items"][0]["addr"], main, "multi")
    equal(far.exec(None, "one", code="print('p'); result = [len(db.functions()), args]").result, [len(db.functions()), ["one"]], "a snippet")
    equal(far.exec(code="1 // 0").error.type, "ZeroDivisionError", "and what it raises")
    found = []
    asking = [threading.Thread(target=lambda n=n: found.append([far.functions(offset=n * 7 + i, limit=3)[0].addr for i in range(10)])) for n in range(6)]
    [t.start() for t in asking]
    [t.join() for t in asking]
    equal(sorted(found), sorted([db.functions(offset=n * 7 + i, limit=3)[0].addr for i in range(10)] for n in range(6)), "threads take turns")
    for which in (TARGET, os.path.basename(TARGET), 1):
        with scry.connect(name, database=which) as other:
            equal(other.info().entry, db.info().entry, f"database={which!r}")
    with scry.connect(name, database="another") as other:
        fails("not_found", "a database that is not open", lambda: other.info())


def raised(run):
    try:
        run()
    except Exception as error:  # noqa: BLE001
        return type(error).__name__
    return None



name = os.path.join(WORK, "server")
env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
server = subprocess.Popen([SCRY, "serve", TARGET, "--socket", name], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
fails("not_found", "no server", lambda: scry.connect(os.path.join(WORK, "nobody")))
far = None
while far is None and server.poll() is None:
    try:
        far = scry.connect(name)
    except scry.Error:
        time.sleep(0.1)
if ok(far is not None, "connect"):
    while far.functions(limit=1).pending:
        time.sleep(0.1)
    for op, args, kw in LISTS + [("look", ("main",), {})]:
        equal(*(without(json.loads(getattr(d, op)(*args, **kw).json()), "next", "rev") for d in (far, db)), f"{op} {args} {kw}: from the server it is the same")
    for op, args, kw in OBJECTS:
        equal(*(answer_of(d, op, args, kw) for d in (far, db)), f"{op} {args} {kw}: from the server it is the same")
    check_far()
    server.kill()
    server.wait()
    fails("io", "a server that went away", lambda: far.info())
    far.close()
elif server.poll() is None:
    server.kill()

# --- threads, closing, a target that is cut ---

faults = []


def work(n):
    try:
        for i in range(20):
            a = db.functions(offset=n * 10 + i, limit=50)
            if db.bytes(a[0].addr, 4) != db.bytes(a[0].name, 4) or len(db.heads(a[3], count=20)) != 20:
                faults.append((n, i))
    except Exception as e:  # noqa: BLE001
        faults.append(repr(e))


threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
equal(faults, [], "eight threads share a database")
copy = os.path.join(WORK, "copy")
shutil.copy(TARGET, copy)
other = scry.open(copy, no_store=True)
other_fs = other.functions()
os.truncate(copy, 4096)
fails("stale", "a target that was cut is an error, not a signal", lambda: other.bytes(other_fs[len(other_fs) - 1].addr, 4096))
other.close()
fails("invalid", "a closed database", lambda: other.info())
equal(len(other_fs.addr.tolist()), len(other_fs), "lists outlive their database")
with scry.open("/bin/true") as small:
    ok(small.info().functions > 0, "a database in a with block")
db.close()

# --- pip ---

def pip():
    for module in ("venv", "ensurepip", "pip"):
        if not importlib.util.find_spec(module):
            return f"there is no {module}"
    return "the sanitizer's runtime cannot be installed" if sanitized else None


why = pip()
if why:
    count += 1
    print(f"ok {count} - pip install # SKIP {why}")
else:
    venv = os.path.join(WORK, "venv")
    env = dict(os.environ, SCRY_BUILD=BUILD)
    subprocess.run([sys.executable, "-m", "venv", venv], check=True, capture_output=True)
    run = subprocess.run([os.path.join(venv, "bin/python"), "-m", "pip", "install", "--no-build-isolation", "--no-index", os.path.join(ROOT, "python")], capture_output=True, text=True, env=env)
    ok(run.returncode == 0, "pip installs the package from the tree")
    print("".join(f"# {line}\n" for line in (run.stdout + run.stderr).splitlines()[-15:] if run.returncode), end="")
    run = subprocess.run([os.path.join(venv, "bin/python"), "-c", "import scry; print(scry.__file__); print(scry.open('/bin/true').info().functions > 0)"],
                         capture_output=True, text=True, cwd="/", env={k: v for k, v in env.items() if k != "PYTHONPATH"})
    ok(run.stdout.startswith(venv) and run.stdout.endswith("True\n"), "and there it works")
    print("".join(f"# {line}\n" for line in (run.stdout + run.stderr).splitlines()[-15:] if run.returncode), end="")
shutil.rmtree(WORK, ignore_errors=True)
print(f"1..{count}")
sys.exit(failed > 0)
