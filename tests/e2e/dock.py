#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The workbench with a program that is debugged (F2 F4 F7 F8 F9) and with the log of one that ran (--trace), driven over its socket. Prints TAP.
SCRY is the program."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from workbench import Workbench  # noqa: E402

SCRY = os.environ.get("SCRY", "")
SOURCE = os.path.join(HERE, "../data/debug/subject.c")
WORK = tempfile.mkdtemp(prefix="scry-dock-")
os.environ.update(SCRY_STORE=os.path.join(WORK, "store"), LC_ALL="C.UTF-8", TERM="xterm-256color", XDG_CONFIG_HOME=WORK)
WAIT_S = 120
SLIDE = 0x555555554000
count = failed = 0


def ok(good, what, *why):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}", flush=True)
    for w in why if not good else ():
        for line in str(w).splitlines()[:50]:
            print("#", line[:200])
    return good


Workbench.report = staticmethod(ok)


def insns(program, name):
    out = subprocess.run([SCRY, "disasm", program, name, "--json"], capture_output=True, text=True).stdout
    return [(int(i["addr"], 16), i["text"]) for i in json.loads(out)["items"]]


def make_log(program):
    """twice() called from main, as a tracer would have it: a line a step, what an instruction did on the line after it. Gives the steps' addresses."""
    main_, twice = insns(program, "main"), insns(program, "twice")
    head = [a for a, _ in main_[:6]]
    body = [a for a, _ in twice]
    call = next(i for i, (_, text) in enumerate(main_) if text.startswith("call") and "compute" in text)
    pcs = head + [main_[call][0]] + body + [main_[call + 1][0], main_[call + 2][0]]
    sp = 0x7ffd1000
    lines = []
    for i, pc in enumerate(pcs):
        words = [f"rip={pc + SLIDE:#x}"]
        if not i:
            words += ["rax=0x1", "rbx=0x2"]
        inside = len(head) < i <= len(head) + len(body)
        words.append(f"rsp={sp - 8 if inside else sp:#x}")
        if i == len(head) + 1:
            words.append(f"mw={sp - 8:#x}:" + (main_[call + 1][0] + SLIDE).to_bytes(8, "little").hex())
        if i == 3:
            words.append("rbx=0x77")
        lines.append(",".join(words))
    path = os.path.join(WORK, "log")
    with open(path, "w") as f:
        f.write("\n".join(lines) + "\n")
    return path, pcs, len(head), len(body)


def walk_log(program):
    path, pcs, head, body = make_log(program)
    w = Workbench(SCRY, WORK, "--trace", path, program)
    w.shows("a log is read and its place found", rf"step 0 of {len(pcs)}", r"rip +0000555555555", r"\+00 \?\?")
    w.ui("keys", "]")
    w.shows("] goes one step on", rf"step 1 of {len(pcs)}")
    w.ui("keys", "]", "]", "]")
    s = w.until(r"step 4 of")
    ok(f"{pcs[4]:x}" in w.ui("state") and re.search(r"rbx +0000000000000077", s), "the cursor goes along, registers are those of the step", s, w.ui("state"))
    # Where it was, is and will be have grounds of their own, in C as well.
    grounds = {int(m[1], 16): m[0] for m in re.findall(r'background:(#[0-9a-f]{6});[^>]*>(0000[0-9a-f]{4}) ', w.ui("screen", "html"))}
    past, now, ahead, plain = (grounds.get(a) for a in (pcs[3], pcs[4], pcs[5], max(grounds or {0: 0})))
    ok(all((past, now, ahead, plain)) and len({past, now, ahead, plain}) == 4, "the listing shows the trail: past, now, ahead", grounds, [hex(p) for p in pcs])
    w.ui("keys", "Tab")
    w.until(" C  L")
    s = w.ui("screen", "html")
    ok(now and now in s and (past in s or ahead in s), "and C", now, w.screen())
    w.ui("keys", "Tab")
    w.ui("keys", "Space")
    w.until(r" graph  ")
    s = w.ui("screen", "html")
    ok(now and now in s and past in s and ahead in s, "and the graph", now, past, ahead, w.screen())
    w.ui("keys", "Space")
    w.until(r" listing  ")
    w.ui("trace", "!=4")
    w.until(r"step 4 of")
    w.ui("keys", "W")
    w.shows("W asks which register", r"written:.*a register: when it was written last")
    w.ui("text", "rb")
    w.ui("keys", "Tab", "Enter")
    w.shows("W goes to where a register was written", rf"step 2 of {len(pcs)}")
    w.ui("keys", "g")
    w.ui("text", f"!={head}")
    w.ui("keys", "Enter")
    w.shows("!=N goes to a step", rf"step {head} of {len(pcs)}")
    w.ui("keys", "]")
    w.shows("into the call: its return address is on the stack", rf"step {head + 1} of", r"\+00 5555555")
    w.ui("keys", "[")
    w.ui("keys", "}")
    w.shows("} goes over a call", rf"step {head + body + 1} of {len(pcs)}")
    w.ui("keys", "{")
    w.shows("{ and back over it", rf"step {head} of {len(pcs)}")
    w.ui("trace", "!100")
    w.shows("ui.trace goes to a percentage", rf"step {len(pcs) - 1} of {len(pcs)}")
    w.ui("trace", "over_back")
    w.ui("trace", "over_back")
    w.ui("trace", "over_back")
    ok(f'"trace":{{"step":{head - 1},"steps":{len(pcs)}}}' in w.ui("state"), "and steps; the state has the step", w.ui("state"))
    ok("here_next" in w.ui("trace", "sideways"), "what is no step is refused")
    w.ui("trace", f"!={head}")
    w.ui("keys", ">")
    ok("there is none in the trace" in w.ui("screen"), "> when this never ran again says so")
    w.ui("goto", f"0x{pcs[2]:x}")
    w.ui("keys", "<")
    w.shows("< goes to when this ran before", rf"step 2 of {len(pcs)}")
    w.ui("keys", "[", "[", "[")
    ok("there is none in the trace" in w.ui("screen"), "nothing is before the first step", w.ui("screen"))
    w.ui("keys", "Tab")
    w.ui("keys", "]", "]")
    ok('"view":"C"' in w.ui("state"), "stepping stays in C", w.ui("state"))
    w.end()
    r = subprocess.run([SCRY, "--trace", path, program], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    ok(r.returncode and "terminal" in r.stderr and not r.stdout, "without a terminal --trace is refused", r.returncode, r.stdout[:200], r.stderr)
    with open(path) as f, open(path + ".longer", "w") as g:
        g.write(f.read() + "rip=0x7ffff7e00000\n")
    w = Workbench(SCRY, WORK, "--trace", path + ".longer", program)
    w.until("step 0 of")
    w.ui("trace", "!100")
    w.shows("a step in a library says that no view has it", rf"step {len(pcs)} of {len(pcs) + 1}", "not in this program")
    w.end()
    w = Workbench(SCRY, WORK, "--trace", os.path.join(WORK, "nosuch"), program)
    w.shows("a log that is not there is refused with a reason", "nosuch: No such file")
    w.end()
    bad = os.path.join(WORK, "bad")
    with open(bad, "wb") as f:
        f.write(b"\x00\xffnothing\n" * 100)
    w = Workbench(SCRY, WORK, "--trace", bad, program)
    w.shows("a file that is no log is refused with a reason", "no step of an execution log")
    w.end()


def walk_program(program):
    w = Workbench(SCRY, WORK, program)
    w.ui("goto", "main")
    w.ui("keys", "F7")
    ok("nothing is debugged" in w.screen(), "F7 without a process says what there is to do", w.screen())
    w.ui("keys", "F2")
    w.shows("F2 marks a breakpoint", r"@[0-9a-f]+ +push")
    w.ui("keys", "F9")
    w.shows("F9 asks before it runs anything", r"Run .*subject\? It runs as you")
    w.ui("keys", "n")
    ok("runs (Ctrl+C" not in w.screen(), "n: it does not run", w.screen())
    w.ui("keys", "F9")
    w.ui("keys", "y")
    w.shows("y runs it to the breakpoint; registers, stack and callers are shown", r"breakpoint 1 at 0x5555", r"rip +00005555", r"\+00 [0-9a-f]+ libc", r" 0 main")
    va = w.ui("state")
    w.ui("keys", "F7")
    s = w.until(r"stopped at 0x5555\S+ main\+0x")
    ok(re.search(r"\*rip ", s) and w.ui("state") != va, "F7 steps an instruction and the cursor goes along; what changed is marked", s)
    w.ui("goto", "twice")
    w.ui("keys", "F4")
    w.shows("F4 runs to the cursor", r"stopped at 0x5555\S+ twice ", r" 1 main\+0x")
    w.ui("keys", "F8")
    w.shows("F8 steps over", r"stopped at 0x5555\S+ twice\+0x")
    w.ui("keys", "\\")
    w.ui("goto", "counter")
    w.shows("hex shows the bytes of memory, not of the file", r">[0-9a-f]+ .*07 00 00 00")
    w.ui("keys", "\\")
    w.ui("goto", "main")
    w.ui("keys", ",", "d")
    w.ui("text", "print u32(counter)")
    w.ui("keys", "Enter")
    w.shows(",d does a command of the debugger", r"0x7 7")
    w.ui("goto", "recurse")
    w.ui("keys", ",", "d")
    w.ui("text", "break recurse")
    w.ui("keys", "Enter")
    w.shows("a breakpoint that a command sets is marked", r"@0000\w+ +push")
    w.ui("keys", ",", "d")
    w.ui("text", "backtrace")
    w.ui("keys", "Enter")
    w.shows("an answer of several lines is a list", r"#0 0x5555\w+ twice", r"#1 0x5555\w+ main\+0x")
    w.ui("keys", "Esc")
    w.ui("keys", ",", "d")
    w.ui("text", "up")
    w.ui("keys", "Enter")
    w.shows("up shows the caller's place", r"#1 0x5555\w+ main\+0x", r" \w+ main\+0x\w+ +\.text")
    w.ui("keys", "F9")
    w.shows("F9 goes on to the end", r"exited with status 10", "b=10 c=20")
    w.end()


def main():
    program = os.path.join(WORK, "subject")
    r = subprocess.run(["gcc", "-g", "-O0", "-w", "-pthread", "-o", program, SOURCE], capture_output=True, text=True)
    if r.returncode:
        print("ok 1 - the workbench with a program # SKIP no gcc")
        print("1..1")
        sys.exit(0)
    walk_log(program)
    walk_program(program)


try:
    main()
finally:
    shutil.rmtree(WORK, ignore_errors=True)
print(f"1..{count}")
sys.exit(failed > 0)
