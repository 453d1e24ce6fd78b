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
    limited(subject)
    callers(subject)
    stripped()
    life(subject)
    killed(subject)
    families()
    many()
    instructions()
    libraries()
    beside_verify()
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
    keys = {"v", "phase", "seq", "cpu", "time", "pid", "tid", "comm", "exe", "event", "name", "addr", "at", "args", "ret", "ns", "site", "stack"}
    ok(set(first) == keys and set(first["args"][0]) == {"name", "type", "value", "text", "status"} and first["site"]["func"] in ("values", "main"),
       "the schema of a hit", first)
    ok("greet(name=" in r.stderr, "the program's own output is on stderr beside JSON", r.stderr)


def limited(subject):
    """So many lines, and then the end, with counts that hold."""
    _, got, end = summary(subject, "count", "--count", "2", "--", subject, "lines")
    same("--count: so many lines", len(got), 2)


def callers(subject):
    """Who called, and who called that: as it was when the probe was hit."""
    _, got, _ = summary(subject, "count", "--stacks", "--", subject, "lines")
    chains = {tuple(f["func"] for f in [h["site"], *h["stack"]][:2]) for h in got}
    same("a stack, innermost first", chains, {("lines", "main")})
    bottom = {h["stack"][-1]["module"] for h in got}
    ok(all("libc" in m for m in bottom) and all(len(h["stack"]) >= 2 and h["stack"][0]["build_id"] for h in got), "down to the C library", bottom)
    line = 1 + next(i for i, s in enumerate(open(os.path.join(HERE, "../data/probe/subject.c"))) if "/* LINE */" in s)
    _, got, _ = summary(subject, f"lines:{line}", "--stacks", "--", subject, "lines")
    ok(got and all(h["site"]["func"] == "main" for h in got), "an instruction's function has a caller, too", got[:1])
    _, got, _ = summary(subject, f"lines:{line}", "--", subject, "lines")
    ok(got and all(h["site"] is None and not h["stack"] for h in got), "which nobody asks for without --stacks", got[:1])
    libc = "/lib/x86_64-linux-gnu/libc.so.6"
    true = shutil.which("true")
    if os.path.exists(libc):
        r = run("--json", libc, "execve", "-a", "const char *", "--stacks", "--", "env", true)
        docs = [json.loads(s) for s in r.stdout.splitlines()][:-1]
        names = [{os.path.basename(f["module"] or "?") for f in [h["site"], *h["stack"]]} for h in docs]
        ok([(h["args"][0]["text"], h["phase"], h["comm"]) for h in docs] == [(true, "unfinished", "env")] and "env" in names[0] and "true" not in names[0],
           "a program that became another: who called is the old one", docs, names)


def stripped():
    """A program without debug information: lines are those of its C, arguments what its code shows."""
    src = """#include <stdio.h>
    __attribute__((noipa)) int hit(int n) { return n + 3; }
    __attribute__((noipa)) int work(int n, const char *s) { if (n > 5) { hit(n * 2); puts(s); return 1; } return 0; }
    int main(void) { int sum = 0; for (int i = 0; i < 10; i++) sum += work(i, "x"); return sum; }"""
    debug, prog = build("lined", src, "-rdynamic"), build("bare", src, "-rdynamic", "-s", "-g0")
    c = subprocess.run([SCRY, "decompile", prog, "work"], capture_output=True, text=True, timeout=WAIT_S).stdout.splitlines()
    line = next((i for i, s in enumerate(c, 1) if re.search(r"\bhit(_[0-9a-f]+)?\(|/\* hit \*/", s)), 0)
    if not ok(line, "C of it has the call", *c):
        return
    counts, got, end = summary(prog, f"work:{line}", "--", prog)
    ok(sum(p["hits"] for p in counts.values()) == 4 and end["probes"][0]["types"] == "registers", "a line of C in a program without lines", end)
    counts, _, _ = summary(prog, f"work:c{line}", "--", prog)
    ok(sum(p["hits"] for p in counts.values()) == 4, "and as such", counts)
    c = subprocess.run([SCRY, "decompile", debug, "work"], capture_output=True, text=True, timeout=WAIT_S).stdout.splitlines()
    dline = next((i for i, s in enumerate(c, 1) if re.search(r"\bhit(_[0-9a-f]+)?\(|/\* hit \*/", s)), 0)
    counts, _, _ = summary(debug, f"work:c{dline}", "--", debug)
    ok(sum(p["hits"] for p in counts.values()) == 4, "which a program with lines has, too", counts)
    for what, why in ((f"work:c{len(c) + 1}", "lines"), ("work:c1", "no code of its own"), ("work:cx", "no such name"), ("work:c0", "a line of the source")):
        r = run(prog, what)
        ok(r.returncode in (1, 2) and why in r.stderr, f"refused: {what}", r.returncode, r.stderr)
    counts, got, end = summary(prog, "hit", "work", "--lines", "--", prog)
    types = {p["name"]: p["types"] for p in end["probes"]}
    same("arguments by the code: it says so", types, {"hit": "recovered", "work": "recovered"})
    same("their number and values", [[int(a["text"], 0) for a in h["args"]] for h in got if h["name"] == "hit"], [[12], [14], [16], [18]])
    same("and results", [h["ret"]["text"] for h in got if h["name"] == "hit"], ["15", "17", "19", "21"])
    same("callers with their line of C", {h["site"]["line"] for h in got if h["name"] == "hit"}, {line})
    r = run(prog, "hit", "--if", "a1 > 14 && ret < 20", "--", prog)
    ok(len(lines(r)) - lines(r).count("x") == 1 and "as the code shows" in r.stderr, "and conditions on them", r.stderr)
    r = run(prog, "hit", "--if", "a2 == 1", "--", prog)
    ok(r.returncode == 2 and "no such argument" in r.stderr, "of those there are", r.stderr)
    r = run(debug, "hit", "--stacks", "--if", "a2 == 1", "--", debug)
    ok(r.returncode == 2 and "no such argument" in r.stderr, "the stack is none", r.stderr)


FAMILY = r"""
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noipa)) int work(int n) { return n * 2; }
static sem_t go, done;
static void *thread(void *arg) { for (;;) { sem_wait(&go); work(4); sem_post(&done); } }
int main(void)
{
	int to[2], from[2];
	char c, line[16];
	if (pipe(to) || pipe(from))
		return 1;
	pid_t child = fork();
	if (!child) {
		close(to[1]);
		while (read(to[0], &c, 1) == 1) {
			work(2);
			if (!fork()) {
				work(3);
				_exit(0);
			}
			wait(NULL);
			if (write(from[1], "x", 1) != 1)
				break;
		}
		_exit(0);
	}
	pthread_t t;
	sem_init(&go, 0, 0);
	sem_init(&done, 0, 0);
	pthread_create(&t, NULL, thread, NULL);
	setvbuf(stdout, NULL, _IONBF, 0);
	printf("%d\n", (int)child);
	while (fgets(line, sizeof(line), stdin)) {
		work(1);
		sem_post(&go);
		sem_wait(&done);
		if (write(to[1], "x", 1) != 1 || read(from[0], &c, 1) != 1)
			return 1;
		puts("done");
	}
	close(to[1]);
	wait(NULL);
	return 0;
}
"""
TREE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noipa)) int work(int n) { return n * 2; }
int main(int argc, char **argv)
{
	int depth = argc > 1 ? atoi(argv[1]) : 3;
	char less[16];
	snprintf(less, sizeof(less), "%d", depth - 1);
	work(depth);
	for (int i = 0; depth && i < 2; i++) {
		if (fork())
			continue;
		work(100 + depth);
		if (i)
			execl("/proc/self/exe", argv[0], less, NULL);
		if (!fork()) { /* nobody waits for it */
			usleep(50000);
			work(300 + depth);
		}
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
	return 7;
}
"""


def families():
    """Several processes, threads, children that are there and children that come."""
    prog, tree = build("family", FAMILY, "-pthread"), build("tree", TREE)
    p = subprocess.Popen([prog], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    other = subprocess.Popen([prog], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    child, _ = p.stdout.readline().strip(), other.stdout.readline()
    for way in ("session", "multi", "perf"):
        for words, want in ((["-p", str(p.pid)], [1, 4]), (["-p", child], [2]), (["-p", f"{p.pid},{child}"], [1, 2, 4]),
                            (["-p", str(p.pid), "-p", str(other.pid)], [1, 1, 4, 4]), (["-p", str(p.pid), "--tree"], [1, 2, 3, 4]),
                            (["-p", child, "--tree"], [2, 3])):
            s = subprocess.Popen([SCRY, "probe", "--json", prog, "work", "--attach", way, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            first = s.stderr.readline()
            if "attached" not in first:
                skip(f"{way}: {' '.join(words)}", first + s.stderr.read())
                s.communicate(timeout=WAIT_S)
                continue
            for q in (p, other):
                q.stdin.write("x\n")
                q.stdout.readline()
            s.send_signal(signal.SIGINT)
            out, err = s.communicate(timeout=WAIT_S)
            got = sorted(int(d["args"][0]["text"]) for d in map(json.loads, out.splitlines()) if d.get("event") == "probe")
            same(f"{way}: {' '.join('PID' if w.isdigit() else w for w in words if ',' not in w)}: {want}", got, want)
    for q in (p, other):
        q.stdin.close()
        q.wait(timeout=WAIT_S)
        q.stdout.close()
    depth = 3
    want = sorted([d for d in range(depth + 1)] + [n + d for d in range(1, depth + 1) for n in (100, 100, 300)])
    for way in ("session", "multi", "perf"):
        r = run("--json", tree, "work", "--tree", "--attach", way, "--", tree, str(depth))
        docs = [json.loads(s) for s in r.stdout.splitlines()]
        if r.returncode == 4:
            skip(f"{way}: a tree of processes", r.stderr)
            continue
        same(f"{way}: a tree of processes, to its last", sorted(int(d["args"][0]["text"]) for d in docs[:-1]), want)
        ok(r.returncode == 7 and all(d["site"]["func"] == "main" and d["exe"] == os.path.realpath(tree) for d in docs[:-1]), f"{way}: the status, and who they were",
           r.returncode, docs[:1])
    r = run(tree, "work", "--tree")
    ok(r.returncode == 2 and "which process" in r.stderr, "--tree wants a process", r.stderr)


def bytes_at(pid, path, offs):
    """What a process has in memory of a file's code at those offsets; None: not mapped."""
    out = [None] * len(offs)
    for f in map(str.split, open(f"/proc/{pid}/maps")):
        a, b = (int(x, 16) for x in f[0].split("-"))
        if len(f) > 5 and f[5] == path and "x" in f[1]:
            with open(f"/proc/{pid}/mem", "rb", 0) as mem:
                mem.seek(a)
                code = mem.read(b - a)
            for i, off in enumerate(offs):
                if int(f[2], 16) <= off < int(f[2], 16) + len(code):
                    out[i] = code[off - int(f[2], 16)]
    return out


def killed(subject):
    """After kill -9 no breakpoint is left in any process, whenever it comes, and what was probed goes on."""
    def serve(*words):
        return subprocess.Popen([*words, subject, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)

    def ask(p):
        p.stdin.write("x\n")
        return p.stdout.readline().strip()
    two = [serve(), serve()]
    clean = ask(two[0])
    for way in ("session", "multi", "perf"):
        for words in ([], ["-p", str(two[0].pid), "--tree"]):
            s = subprocess.Popen([SCRY, "probe", subject, "count", "--attach", way, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            first = s.stderr.readline()
            probed = ask(two[0])
            s.kill()
            s.communicate(timeout=WAIT_S)
            if "attached" in first:
                ok(probed == "cc" and all(any(ask(p) == clean for _ in range(3000)) for p in two), f"{way} {len(words)}: kill -9 leaves every process whole", probed)
    # A program that was started by the command.
    s = serve(SCRY, "probe", subject, "count", "--")
    ask(s)
    child = int(open(f"/proc/{s.pid}/task/{s.pid}/children").read().split()[0])
    s.kill()
    s.wait(timeout=WAIT_S)
    ok(any(ask(s) == clean for _ in range(3000)), "a program that scry started goes on without it")
    s.stdin.close()
    for pipe in (s.stdout, s.stderr):
        pipe.close()
    # In the middle of attaching.
    src = "volatile int v;\n" + "".join(f"__attribute__((noipa)) int f_{i}(int n) {{ return v += n + {i}; }}\n" for i in range(50)) + (
        "#include <stdio.h>\nint main(void) { while (getchar() != EOF) {\n" + "".join(f"f_{i}(1);\n" for i in range(50)) + "} return 0; }\n")
    prog = os.path.realpath(build("hundreds", src))
    offs = [int(d[0], 16) for d in (line.split() for line in subprocess.run(["nm", prog], capture_output=True, text=True).stdout.splitlines()) if d[-1].startswith("f_")]
    p = subprocess.Popen([prog], stdin=subprocess.PIPE, text=True)
    subprocess.run([SCRY, "probe", prog, "f_*", "-c", "--for", "0"], capture_output=True, timeout=WAIT_S)
    before = bytes_at(p.pid, prog, offs)
    bad = []
    for i in range(9):
        s = subprocess.Popen([SCRY, "probe", prog, "f_*", "--attach", ("session", "multi", "perf")[i % 3], "-p", str(p.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            s.wait(timeout=0.01 * i)
        except subprocess.TimeoutExpired:
            s.kill()
            s.wait(timeout=WAIT_S)
        if not any(bytes_at(p.pid, prog, offs) == before for _ in range(20000)):
            bad.append(i)
    ok(len(offs) == 50 and None not in before and not bad, "kill -9 in the middle of attaching 50 probes leaves none of them", len(offs), bad)
    p.stdin.close()
    p.wait(timeout=WAIT_S)
    for q in two:
        q.stdin.close()
        q.wait(timeout=WAIT_S)
        q.stdout.close()
        q.stderr.close()


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


def instructions():
    """Each kind of instruction that code begins with is counted, or refused with a reason; the program goes on as without a probe."""
    kinds = {"lock": "lock addl $1, g(%rip)", "cs": ".byte 0x2e, 0x0f, 0x1f, 0x44, 0, 0", "notrack": ".byte 0x3e; lea 9f(%rip), %rax; jmp *%rax; 9:",
             "pushf": "pushfq; popfq", "syscall": "syscall", "int": "int $0x80", "vex": "vmovdqu g(%rip), %xmm0", "nop": "nopl 0(%rax,%rax,1)",
             "vzero": "vzeroupper", "endbr": "endbr64", "lea": "lea g(%rip), %rcx", "rep": "xor %ecx, %ecx; rep stosb", "rel": "jmp 9f; 9:",
             "jcc": "je 9f; 9:", "loop": "mov $2, %ecx; 9: loop 9b", "call": "call 9f; 9: pop %rax", "push": "push $5; pop %rax", "fs": "mov %fs:0, %rax"}
    refused = {"lock", "cs", "notrack", "pushf", "syscall", "int", "vex"}
    src = "int g[8];\n" + "".join(
        f'__attribute__((naked, noinline)) void i_{n}(void) {{ __asm__("{code}; ret"); }}\n' for n, code in kinds.items())
    # Those a processor may not have are not called.
    src += "int main(void) {\n" + "".join(f'__asm__ volatile("mov $39, %%eax; call i_{n}" ::: "rax", "rcx", "r11", "memory", "cc");\n'
                                           for n in kinds if n[0] != "v" and n != "int") + "return 7; }\n"
    prog = build("insns", src, "-fcf-protection=none", "-mno-red-zone")
    if not prog:
        return skip("kinds of instructions", "no gcc of x86-64")
    for n in sorted(refused):
        r = run(prog, f"i_{n}", "--", prog)
        ok(r.returncode == 2 and re.search("puts no probes|would|may end", r.stderr), f"refused: a probe on {kinds[n]}", r.returncode, r.stderr)
    r = run("--json", "-c", prog, "i_*", "--", prog)
    counts = {p["name"][2:]: p["hits"] for p in json.loads(r.stdout.splitlines()[-1])["probes"]}
    ok(r.returncode == 7 and counts == {n: int(n[0] != "v") for n in kinds if n not in refused}, "the others are counted, each call", r.returncode, counts)
    ok(f"{len(refused)} left out" in r.stderr, "how many a pattern leaves out is said", r.stderr)
    r = run(prog, "i_pus*f", "--", prog)
    ok(r.returncode == 2 and "trap flag" in r.stderr, "a pattern of such functions alone is refused", r.returncode, r.stderr)


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


def beside_verify():
    """A probe that is set while trials of the same file run in the sandbox counts what programs call, not what trials do."""
    cnt = 100
    src = "#include <stdio.h>\n__attribute__((noipa)) int mix(int a, int b) { int r = a * 3 + b; for (int i = 0; i < (b & 7); i++) r ^= r >> 3; return r; }\n"
    src += "".join(f"__attribute__((noipa)) int f{i}(int a, int b) {{ return mix(a + {i}, b) ^ mix(b, a); }}\n" for i in range(cnt))
    src += 'int main(int c, char **v) { int s = 0; ' + "".join(f"s += f{i}(c, 2); " for i in range(cnt)) + 'return printf("%d\\n", s) < 0; }\n'
    prog = build("mixes", src)
    verify = subprocess.Popen([SCRY, "verify", prog, "--all", "--quick", "--yes-run-target", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with open(os.path.join(WORK, "mixes.json"), "w+") as out:
        probe = subprocess.Popen([SCRY, "probe", prog, "mix", "--json"], stdout=out, stderr=subprocess.PIPE, text=True)
        head = probe.stderr.readline()
        verdicts, why = verify.communicate(timeout=WAIT_S)
        subprocess.run([prog], stdout=subprocess.DEVNULL, timeout=WAIT_S)
        probe.send_signal(signal.SIGINT)
        probe.communicate(timeout=WAIT_S)
        out.seek(0)
        end = json.loads(out.read().splitlines()[-1])
    states = [item["status"] for item in json.loads(verdicts)["items"] if item["func"][0] == "f"] if verify.returncode == 0 else []
    ok("attached" in head and end["probes"][0]["hits"] == 2 * cnt, "beside trials of the sandbox only the program's own calls are counted", head, end)
    ok(states.count("equal") >= cnt, "and the trials are as without", verify.returncode, states, why.decode())


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
