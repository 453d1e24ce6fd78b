# SPDX-License-Identifier: Apache-2.0
"""Compares traces of the same program field by field: those of two runs of strace, and two of scry's.

A field is a call's argument or its result. It is compared where both runs of strace agree: what differs between them is the run's
(process ids, times, addresses). It is equal when a run of scry's says the same. Processes are told apart by whose child they are and which."""
import collections
import difflib
import os
import re
import subprocess

FORKS = {"clone", "clone3", "fork", "vfork"}
Call = collections.namedtuple("Call", "name args ret")


def split_args(text):
    """Top-level commas only; brackets and strings hold theirs."""
    args, depth, start, i = [], 0, 0, 0
    while i < len(text):
        ch = text[i]
        if ch == '"':
            i += 1
            while i < len(text) and text[i] != '"':
                i += 2 if text[i] == "\\" else 1
        elif ch in "([{":
            depth += 1
        elif ch in ")]}":
            depth -= 1
        elif ch == "," and depth == 0:
            args.append(text[start:i].strip())
            start = i + 1
        i += 1
    last = text[start:].strip()
    return args + [last] if last or args else []


def end_of_args(text):
    """Where the parenthesis that opened the arguments closes."""
    depth, i = 0, 0
    while i < len(text):
        ch = text[i]
        if ch == '"':
            i += 1
            while i < len(text) and text[i] != '"':
                i += 2 if text[i] == "\\" else 1
        elif ch == "(":
            depth += 1
        elif ch == ")":
            depth -= 1
            if depth == 0:
                return i
        i += 1
    return -1


def parse_call(line):
    m = re.match(r"(\w+)\(", line)
    if not m:
        return None
    end = end_of_args(line)
    if end < 0:
        return None
    ret = line[end + 1:].strip()
    return Call(m.group(1), tuple(split_args(line[m.end():end])), ret[1:].strip() if ret.startswith("=") else ret)


def read(path, prefix):
    """[(pid, line)], calls that were interrupted by others put together; `prefix`: how a line names its process."""
    begun, out = {}, []
    for line in open(path, encoding="utf-8", errors="replace"):
        line = line.rstrip("\n")
        m = re.match(prefix, line)
        pid = int(m.group(1)) if m else 0
        line = line[m.end():] if m else line
        resumed = re.match(r"<\.\.\. \w+ resumed>\s?", line)
        if line.endswith("<unfinished ...>") or line.endswith("<unfinished ...>) = ?"):
            begun[pid] = line[:line.index("<unfinished ...>")].rstrip(" ")
            continue
        if resumed:
            rest = line[resumed.end():]
            before = begun.pop(pid, "")
            line = before + ("" if not rest or rest[0] in ",)" or before.endswith("(") else " ") + rest
        out.append((pid, line))
    return out


def by_process(lines):
    """{key: [Call]}; the key says whose child a process is."""
    keys, counts, ret = {}, collections.Counter(), collections.defaultdict(list)
    for pid, line in lines:
        if pid not in keys:
            keys.setdefault(pid, "0" if not keys else f"?{pid}")
    first = lines[0][0] if lines else 0
    keys = {first: "0"}
    for pid, line in lines: # a child may be seen before its parent's call has ended
        call = parse_call(line)
        if call and call.name in FORKS and re.match(r"\d+", call.ret):
            child = int(re.match(r"\d+", call.ret).group())
            if pid in keys and child not in keys:
                keys[child] = f"{keys[pid]}.{counts[pid]}"
            counts[pid] += 1
    for pid, line in lines:
        call = parse_call(line)
        if call:
            ret[keys.get(pid, f"?{pid}")].append(call)
    return ret


def canon(text):
    text = re.sub(r"^0x[0-9a-f]+ (/\* \d+ vars? \*/)$", r"\1", text) # the tracer's own address
    text = re.sub(r"(?<!^)\s*/\*.*?\*/", "", text)
    text = re.sub(r"(?<![\w|])([A-Z_0-9x]+[A-Za-z0-9_]*(?:\|\w+)+)", lambda m: "|".join(sorted(m.group().split("|"))), text)
    return text.strip()


def align(a, b):
    """Pairs of positions of two lists of calls with equal names."""
    x, y = [c.name for c in a], [c.name for c in b]
    same, short = 0, min(len(x), len(y))
    while same < short and x[same] == y[same]:
        same += 1
    tail = 0
    while tail < short - same and x[-1 - tail] == y[-1 - tail]:
        tail += 1
    pairs = {i: i for i in range(same)}
    pairs.update({len(x) - 1 - i: len(y) - 1 - i for i in range(tail)})
    x, y = x[same:len(x) - tail], y[same:len(y) - tail]
    if len(x) * len(y) < 4000000: # long loops that differ in the middle are left unpaired
        matcher = difflib.SequenceMatcher(None, x, y, autojunk=False)
        pairs.update({same + block.a + i: same + block.b + i for block in matcher.get_matching_blocks() for i in range(block.size)})
    return pairs


def fields(call):
    return list(call.args) + ["= " + call.ret]


class Result:
    def __init__(self):
        self.calls = self.unpaired = self.compared = self.equal = 0
        self.differences = collections.Counter()
        self.samples = {}

    def add(self, call, want, got, what, again=None):
        self.compared += 1
        if canon(want) in (canon(got), again and canon(again)) or canon(got) in want.split(" or "):
            self.equal += 1
            return
        kind = (call, what)
        self.differences[kind] += 1
        self.samples.setdefault(kind, (want, got))

    def merge(self, other):
        for name in ("calls", "unpaired", "compared", "equal"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.differences.update(other.differences)
        for key, value in other.samples.items():
            self.samples.setdefault(key, value)


def compare(first, second, ours, ours_again):
    """Fields of `ours` against `first` wherever `second` says the same as `first`."""
    res = Result()
    for key, calls in first.items():
        other, mine, again = second.get(key, []), ours.get(key, []), ours_again.get(key, [])
        to_other, to_mine, to_again = align(calls, other), align(calls, mine), align(calls, again)
        for i, call in enumerate(calls):
            res.calls += 1
            if i not in to_mine:
                res.unpaired += i in to_other
                continue
            if i not in to_other:
                continue
            a, b, c = fields(call), fields(other[to_other[i]]), fields(mine[to_mine[i]])
            if len(a) != len(b):
                continue
            if len(a) != len(c):
                res.add(call.name, ", ".join(a), ", ".join(c), "arity")
                continue
            d = fields(again[to_again[i]]) if i in to_again else c
            for n, (x, y, z) in enumerate(zip(a, b, c)):
                if canon(x) == canon(y):
                    res.add(call.name, x, z, "result" if n == len(a) - 1 else f"argument {n + 1}", d[n] if len(d) == len(a) else None)
    return res


# Without address randomization more fields are the same in two runs; not everywhere may one ask for that.
FIXED = ["setarch", "-R"] if subprocess.run(["setarch", "-R", "true"], check=False, stderr=subprocess.DEVNULL).returncode == 0 else []


def run(cmd, env, cwd):
    subprocess.run([*FIXED, *cmd], env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   timeout=600, check=False)


def trace_all(scry, program, folder, prepare=None, source=None):
    """The program under strace twice and under scry twice; gives the Result."""
    env = {"PATH": os.environ["PATH"], "LANG": "C", "HOME": folder, "SCRY_STORE": os.path.join(folder, ".store")}
    runs = []
    for n, tool in enumerate(("strace", "strace", "scry", "scry")):
        work = os.path.join(folder, "work")
        subprocess.run(["rm", "-rf", work], check=True)
        os.mkdir(work)
        if prepare:
            prepare(work)
        out = os.path.join(folder, f"trace{n}")
        if tool == "strace":
            run(["strace", "-f", "-o", out, *program], env, work)
            runs.append(by_process(read(out, r"(\d+)\s+")))
        else:
            # A program that does nothing but calls makes them faster than lines are written: what waits needs room.
            run([scry, "trace", *(["--source", source] if source else []), "--ring", "256M", "--to", out, "--", *program], env, work)
            runs.append(by_process(read(out, r"\[pid\s+(\d+)\] ")))
    return compare(*runs)
