#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`scry probe` on programs that know what they call (tests/data/probe): values, counts and conditions compared in every way of attaching this
kernel has, faults, recursion, threads, jumps past returns, exec, fork, unloading, 1,000 probes, and what is left after kill -9. Prints TAP.
SCRY is the program."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

SCRY = os.environ.get("SCRY", "")
HERE = os.path.dirname(os.path.abspath(__file__))
WORK = tempfile.mkdtemp(prefix="scry-probe-")
os.environ["SCRY_STORE"] = os.path.join(WORK, "store")
os.environ["LC_ALL"] = "C.UTF-8"
WAIT_S = 900
count = failed = 0


def ok(good, what, *why):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}", flush=True)
    for w in why if not good else ():
        for line in str(w).splitlines()[:25]:
            print("#", line[:300])
    return good


def same(what, got, want):
    return ok(got == want, what, f"got {got!r}", f"want {want!r}")


def skip(what, why):
    global count
    count += 1
    print(f"ok {count} - {what} # SKIP {why}")


def done():
    shutil.rmtree(WORK, ignore_errors=True)
    print(f"1..{count}")
    sys.exit(failed > 0)


def run(*words, stdin=None):
    return subprocess.run([SCRY, "probe", *words], capture_output=True, text=True, errors="replace", timeout=WAIT_S, input=stdin)


def build(name, source, *flags):
    out = os.path.join(WORK, name)
    r = subprocess.run(["gcc", "-O1", "-g", "-w", "-o", out, "-x", "c", "-", *flags], input=source, capture_output=True, text=True)
    return None if r.returncode else out


def lines(r):
    """What is shown of calls, without times, callers and addresses."""
    out = [re.sub(r"  [\d.]+ (ns|us|ms|s)(  from .*)?$", "", line) for line in r.stderr.splitlines() if not line.startswith("scry: ")]
    return [re.sub(r"name=0x[0-9a-f]{5,}", "name=0xADDR", line) for line in out]


def summary(*words, stdin=None):
    """The end of a JSON stream: counts by name; records = received + lost is always to hold."""
    r = run("--json", *words, stdin=stdin)
    docs = [json.loads(line) for line in r.stdout.splitlines()]
    end = docs[-1] if docs else {}
    if not end.get("end"):
        ok(False, "a stream ends with its counts", r.stderr, r.stdout)
        return {}, [], {}
    if end["records"] != end["received"] + end["lost"]:
        ok(False, "every record is received or counted as lost", end)
    return {p["name"]: p for p in end["probes"]}, [d for d in docs[:-1] if d["event"] == "probe"], end


def main():
    subject = build("subject", open(os.path.join(HERE, "../data/probe/subject.c")).read(), "-pthread")
    if not subject:
        return skip("probes", "no gcc")
    r = run(subject, "count", "--", subject, "status")
    if r.returncode == 4:
        ok("privilege" in r.stderr or "root" in r.stderr or "kernel" in r.stderr, "what is missing is said", r.stderr)
        return skip("probes", r.stderr.strip().splitlines()[-1])
    same("the program's exit status is the command's", r.returncode, 42)
    refusals(subject)
    for way in ("session", "multi", "perf"):
        r = run(subject, "count", "--attach", way, "--", subject, "status")
        if r.returncode == 4:
            skip(f"{way}: attaching", r.stderr.strip().splitlines()[0])
            continue
        calls(subject, way)
    hits(subject)
    life(subject)
    many()
    libraries()
    i386()
    unprivileged()


def refusals(subject):
    def no(words, status, why):
        r = run(*words)
        ok(r.returncode == status and re.search(why, r.stderr), f"refused: {' '.join(words[1:])}", r.returncode, r.stderr)
    no([subject, "count+1", "--", subject], 2, "inside of the instruction")
    no([subject, "sink", "--", subject], 2, "no code|not in the file")
    no([subject, "nobody", "--", subject], 125, "nobody")
    no([subject, "nobody"], 1, "nobody")
    no([subject, "no*body"], 1, "no function is called so")
    no([subject, "count", "--if", "a9 == 1", "--", subject], 2, "no such argument")
    no([subject, "count", "--if", "n ==", "--", subject], 2, "column")
    no([subject, "count", "-a", "struct nobody", "--", subject], 2, "struct nobody|no C type|incomplete")
    no([subject, "lines:1", "--", subject], 125, "of that line")
    no([subject, "count", "-p", "999999999"], 1, "no such process")
    no([subject, "count", "--", "/no/such/program"], 125, "no such program")
    no([subject, "count", "--for", "soon"], 2, "no time")


def calls(subject, way):
    base = ["--attach", way]
    names = ["mix", "greet", "paint", "scale", "nothing", "place", "tail", "tail_end"]
    r = run(subject, *names, *base, "--", subject, "values")
    same(f"{way}: arguments and results by their types", lines(r), r.stdout.splitlines())
    r = run(subject, "greet", *base, "--", subject, "faults")
    same(f"{way}: strings that fault, are cut, or are not in memory yet", lines(r), r.stdout.splitlines())
    conditions = [
        ("count", "n > 5", [6, 7, 8, 9]), ("count", "a1 <= -9", [-10, -9]), ("count", "n == 3 || n == -3", [-3, 3]),
        ("count", "ret == -8", [-4]), ("count", "ret > 10 && n < 8", [6, 7]), ("count", "ret + n == 9 || n == 9", [3, 9]),
        ("count", "(n & 3) == 1 && n > 0", [1, 5, 9]), ("count", "edi == 0xfffffffe", [-2]), ("count", "ns > 0 && n >= 9", [9]),
        ("count", "n > 100", []), ("count", "pid == 0", []), ("count", "uid == %d && tid == pid && n == 4" % os.getuid(), [4]),
        ("greet", 'name == "odd" && times > 6', [7, 9]), ("greet", 'a1 != "odd" && a2 >= 8', [8]), ("greet", 'name == "eve" || name == "evens"', []),
        ("greet", "ret == 0 && times <= 0", [0]),
    ]
    wrong = []
    for func, cond, want in conditions if way == "session" else conditions[1::3]:
        counts, got, _ = summary(subject, func, "--if", cond, *base, "--", subject, "conditions")
        arg = 0 if func == "count" else 1
        values = [int(h["args"][arg]["text"]) for h in got if h["phase"] == "complete"]
        if values != want or counts[func]["returns"] != len(want) or counts[func]["refused"] != 20 - len(want):
            wrong.append((cond, values, want, counts[func]))
    ok(not wrong, f"{way}: conditions, true where they are and nowhere else", *wrong)
    counts, got, end = summary(subject, "count", *base, "--", subject, "threads")
    c = counts["count"]
    ok(c["hits"] == c["returns"] == sum(c["slots"]) == 4000, f"{way}: every call of four threads is counted", c)
    by = {}
    for h in got:
        n = int(h["args"][0]["text"])
        by.setdefault(n, set()).add(h["tid"])
        if h["phase"] != "complete" or h["ret"]["text"] != str(2 * n):
            by["bad"] = h
    ok(end["lost"] > 0 or (len(got) == 4000 and set(by) == {1, 2, 3, 4} and all(len(t) == 1 for t in by.values())),
       f"{way}: each with its own argument and result", by)
    counts, got, end = summary(subject, "jumps", "count", *base, "--", subject, "jumps")
    left = sorted(int(h["args"][0]["text"]) for h in got if h["phase"] == "unfinished")
    same(f"{way}: calls left by longjmp are said to be unfinished", left, list(range(1, 20, 2)))
    same(f"{way}: and the others returned", (counts["jumps"]["hits"], counts["jumps"]["returns"], counts["count"]["returns"]), (20, 10, 1))
    counts, got, _ = summary(subject, "deep", *base, "--", subject, "deep")
    # The kernel follows so many returns of a thread at once.
    ok(counts["deep"]["hits"] == 101 and counts["deep"]["returns"] >= 50 and len(got) == 101, f"{way}: recursion", counts)
    ok(all(h["phase"] == "unfinished" or h["args"][0]["text"] == h["ret"]["text"] for h in got), f"{way}: results of recursion are their own calls'")
    counts, _, _ = summary(subject, "count", *base, "--", subject, "forks")
    same(f"{way}: another process is not counted", counts["count"]["hits"], 2)
    counts, _, _ = summary(subject, "count", *base, "--", subject, "exec", subject)
    same(f"{way}: after an exec it goes on", counts["count"]["hits"], 26)


def hits(subject):
    line = 1 + next(i for i, s in enumerate(open(os.path.join(HERE, "../data/probe/subject.c"))) if "/* LINE */" in s)
    counts, got, _ = summary(subject, f"lines:{line}", "-a", "ebx:int", "--", subject, "lines")
    ok(sum(c["hits"] for c in counts.values()) in (25, 26) and all(h["at"] == "instruction" for h in got), "a line of the source", counts)
    r = run(subject, "count", "-a", "rdi:int,rsp", "--if", "edi == 3", "--", subject, "lines")
    ok(re.fullmatch(r"count\(rdi=3, rsp=0x[0-9a-f]+\) = 6", "\n".join(lines(r))), "registers of one's own choice", r.stderr)
    r = run(subject, "paint", "-a", "struct point *,enum color", "--if", "a2 == 1", "--", subject, "values")
    ok(lines(r)[:1] and lines(r)[0].startswith("paint(a1={.x="), "arguments as one says they are", r.stderr)
    r = run(subject, "count", "--", subject, "lines")
    ok(len(re.findall(r"  from lines\+0x", r.stderr)) == 25, "who called", r.stderr)
    r = run(subject, "count", "--entry", "--", subject, "lines")
    ok(lines(r) and all("=" in s and ") = " not in s for s in lines(r)), "beginnings alone", r.stderr)
    r = run(subject, "count", "-c", "--", subject, "lines")
    ok("count: 25 hits, 25 returned" in r.stderr and "|####" in r.stderr, "a summary with a histogram", r.stderr)
    r = run(subject, "count", "--count", "5", "--", subject, "lines")
    ok(len(lines(r)) == 5 and r.returncode == 0, "so many and no more", r.stderr)
    counts, got, end = summary(subject, "count", "--ring-kb", "4", "--", subject, "many")
    ok(counts["count"]["hits"] == 20000 and end["records"] == 40000 and len(got) <= 20000, "a ring that is too small: what is lost is counted", end)
    r = run("--json", subject, "greet", "--", subject, "values")
    first = json.loads(r.stdout.splitlines()[0])
    keys = {"v", "phase", "seq", "cpu", "time", "pid", "tid", "comm", "exe", "event", "name", "addr", "at", "args", "ret", "ns", "site"}
    ok(set(first) == keys and set(first["args"][0]) == {"name", "type", "value", "text", "status"} and first["site"]["func"] in ("values", "main"),
       "the schema of a hit", first)
    ok("greet(name=" in r.stderr, "the program's own output is on stderr beside JSON", r.stderr)


def life(subject):
    """A process that goes on: attached and detached, and left whole by a scry that is killed."""
    p = subprocess.Popen([subject, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def ask():
        p.stdin.write("x\n")
        return p.stdout.readline().strip()
    clean = ask()

    def attach(*words):
        s = subprocess.Popen([SCRY, "probe", subject, "count", "-p", str(p.pid), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        s.first = s.stderr.readline()
        return s
    s = attach("--json")
    probed = ask()
    ok(probed == "cc" and clean != "cc", "a running process is probed", clean, probed, s.first)
    s.send_signal(signal.SIGINT)
    out, _ = s.communicate(timeout=WAIT_S)
    end = json.loads(out.splitlines()[-1])
    ok(end["probes"][0]["hits"] == 100 and s.returncode == 0, "its calls are there when the command is interrupted", end, s.returncode)
    same("and it is whole again", ask(), clean)
    s = attach()
    same("probed once more", ask(), "cc")
    s.kill()
    s.communicate(timeout=WAIT_S)
    # The kernel takes probes away as it closes the descriptors of the process, at its leisure.
    ok(any(ask() == clean for _ in range(1000)), "after kill -9 of scry it is whole")
    s = attach("-c")
    ask()
    p.stdin.close()
    _, err = s.communicate(timeout=WAIT_S)
    out = _
    ok("100 hits" in out and s.returncode == 0, "the command ends with the process", out, err, s.returncode)
    p.wait(timeout=WAIT_S)
    p.stdout.close()


def many():
    """1,000 functions of several types."""
    kinds = ["int a", "const char *a", "long a, const char *b", "const char *a, const char *b, int c"]
    args = ["1", '"x"', '2, "y"', '"x", "y", 3']
    src = "volatile int v;\n" + "".join(
        f"__attribute__((noipa)) int f_{i}({kinds[i % 4]}) {{ return v += {i}; }}\n" for i in range(1000))
    src += "int main(void) {\n" + "".join(f"f_{i}({args[i % 4]});\n" for i in range(1000)) + "}\n"
    prog = build("many", src)
    counts, got, _ = summary(prog, "f_*", "--", prog)
    ok(len(counts) == 1000 and all(c["hits"] == c["returns"] == 1 for c in counts.values()), "1,000 probes, each hit once", len(counts))
    texts = {h["name"]: [a["text"] for a in h["args"]] for h in got}
    want = [["1"], ["x"], ["2", "y"], ["x", "y", "3"]]
    ok(len(texts) == 1000 and all(texts[f"f_{i}"] == want[i % 4] for i in range(1000)), "with the arguments of each")


def libraries():
    lib = build("libone.so", "int one(int n) { return n + 1; }\n", "-shared", "-fPIC")
    prog = build("loads", '#include <dlfcn.h>\n#include <stdlib.h>\nint main(int c, char **v) { for (int i = 0; i < 3; i++) { void *h = dlopen(v[1], RTLD_NOW); '
                 'int (*f)(int) = dlsym(h, "one"); f(i); dlclose(h); } return getenv("SCRY_SUBJECT") != 0; }\n')
    counts, got, _ = summary(lib, "one", "--", prog, lib)
    ok(counts["one"]["hits"] == 3 and [h["ret"]["text"] for h in got] == ["1", "2", "3"] and all(h["site"]["func"] == "main" for h in got),
       "a library that is unloaded and loaded again", counts, got[:1])
    libc = next((m.group(1) for m in re.finditer(r"=> (\S*/libc\.so\.6)", subprocess.run(["ldd", prog], capture_output=True, text=True).stdout)), None)
    if not libc:
        return skip("a function of the C library", "no libc.so.6")
    env = dict(os.environ, SCRY_SUBJECT="yes")
    r = subprocess.run([SCRY, "probe", libc, "getenv", "--if", 'a1 == "SCRY_SUBJECT"', "-a", "const char *", "--", prog, lib], capture_output=True, text=True,
                       env=env, timeout=WAIT_S)
    ok(r.returncode == 1 and re.search(r'^getenv\(a1="SCRY_SUBJECT"\) = "yes"  .*  from main\+0x', r.stderr, re.M), "a function of the C library", r.stderr)


def i386():
    src = open(os.path.join(HERE, "../data/probe/subject32.c")).read()
    prog = build("subject32", src, "-m32", "-nostdlib", "-static", "-fno-pic", "-fno-stack-protector")
    if not prog:
        return skip("a program of i386", "gcc -m32 has nothing to link with")
    counts, got, _ = summary(prog, "sum32", "name32", "--", prog)
    sums = [([a["text"] for a in h["args"]], h["ret"]["text"]) for h in got if h["name"] == "sum32"]
    same("i386: arguments are on the stack", sums, [(["-1", "5", "1234605616436508552", "1.5"], "4"), (["7", "8", "-9", "0"], "15")])
    same("i386: strings", [(h["args"][0]["text"], h["ret"]["text"]) for h in got if h["name"] == "name32"], [("thirty-two", "10")])
    _, got, _ = summary(prog, "sum32", "--if", "a == 7 && ret == 15", "--", prog)
    same("i386: conditions", [h["args"][1]["text"] for h in got], ["8"])


def unprivileged():
    if os.getuid() or not shutil.which("setpriv"):
        return skip("without privilege", "only root can give it up")
    os.chmod(WORK, 0o755)
    os.makedirs(os.path.join(WORK, "nobody"), exist_ok=True)
    os.chmod(os.path.join(WORK, "nobody"), 0o777)
    r = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", SCRY, "probe", "--no-store", "/bin/true", "main", "--", "/bin/true"],
                       capture_output=True, text=True, timeout=WAIT_S, env=dict(os.environ, SCRY_STORE=os.path.join(WORK, "nobody")), cwd="/")
    if "setpriv" in r.stderr or r.returncode in (126, 127):
        return skip("without privilege", r.stderr.strip()[:100] or "the program cannot be run by others")
    ok(r.returncode == 4 and "root" in r.stderr, "without privilege: what to do", r.returncode, r.stderr)


try:
    main()
finally:
    done()
