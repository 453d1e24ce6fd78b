#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Execution logs that `scry debug` writes: at random steps what the log says is compared with what ptrace says of the process, registers and every byte of
memory that the log knows; read back by the workbench; bounded; nothing half there. Prints TAP. SCRY is the program."""
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from rspclient import Rsp  # noqa: E402
from workbench import Workbench  # noqa: E402

SCRY = os.environ.get("SCRY", "")
SOURCE = os.path.join(HERE, "../data/debug/subject.c")
WORK = tempfile.mkdtemp(prefix="scry-log-")
os.environ.update(SCRY_STORE=os.path.join(WORK, "store"), LC_ALL="C.UTF-8", TERM="xterm-256color", XDG_CONFIG_HOME=WORK)
WAIT_S = 300
REGS = "rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip".split()
count = failed = 0


def ok(good, what, *why):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}", flush=True)
    for w in why if not good else ():
        for line in str(w).splitlines()[:40]:
            print("#", line[:300])
    return good


Workbench.report = staticmethod(ok)


class Log:
    """Registers and memory after each line."""

    def __init__(self, path=None):
        self.lines = []
        if path:
            with open(path, encoding="ascii") as f:
                self.lines = f.read().splitlines()
        self.regs, self.mem, self.at = {}, {}, -1

    def to(self, step):
        while self.at < step:
            self.at += 1
            for word in self.lines[self.at].split(","):
                name, _, value = word.partition("=")
                if name in ("mr", "mw", "mrw"):
                    va, _, data = value.partition(":")
                    for i, b in enumerate(bytes.fromhex(data)):
                        self.mem[int(va, 16) + i] = b
                else:
                    self.regs[name] = int(value, 16)


def debug(*words, program, args=()):
    line = [SCRY, "debug"]
    for w in words:
        line += ["-e", w]
    return subprocess.run([*line, "--", program, *args], capture_output=True, text=True, errors="replace", timeout=WAIT_S, cwd=WORK, stdin=subprocess.DEVNULL)


def stretches(mem, most):
    """(address, length) of what is known, in pieces, some of them."""
    out = []
    for va in sorted(mem):
        if out and out[-1][0] + out[-1][1] == va and out[-1][1] < 512:
            out[-1][1] += 1
        else:
            out.append([va, 1])
    return out if len(out) <= most else random.sample(out, most)


def compare(program, name, args, begin, hops):
    """At the server: so many steps, then registers and what the log knows of memory are read as they are; again and again, of one process."""
    child = subprocess.Popen([SCRY, "platform", "--stdio", "--allow-run", "--", program, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    c = Rsp(child)
    thread = re.search(rb"thread:([0-9a-f]+);", c.ask("?")).group(1).decode()
    if begin:
        c.ask(f"Z0,{begin:x},1")
        c.ask("vCont;c")
        c.ask(f"z0,{begin:x},1")
    log = Log()
    wrong, wrong_mem, cnt, places, steps = [], [], 0, 0, 0
    for hop in hops:
        left = hop
        while left:
            head, _, text = c.ask(f"vScryLog:{thread};{int(not log.lines)};{left:x};8000;0").partition(b";")
            log.lines += text.decode().splitlines()
            left -= int(head[1:], 16)
            if head[:1] == b"l":
                break
        steps += hop - left
        if left:
            break
        log.to(steps)
        regs = bytes.fromhex(c.ask("g").decode()[:17 * 16])
        # rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8 ... r15, rip: as REGS has them.
        wrong += [(steps, reg) for i, reg in enumerate(REGS) if log.regs[reg] != int.from_bytes(regs[8 * i:8 * i + 8], "little")]
        for va, length in stretches(log.mem, 200):
            want, now = bytes(log.mem[va + i] for i in range(length)), bytes.fromhex(c.ask(f"m{va:x},{length:x}").decode())
            cnt, places = cnt + length, places + 1
            if now != want:
                wrong_mem.append((steps, hex(va), want.hex(), now.hex()))
    c.proc.stdin.close()
    child.wait(WAIT_S)
    child.stdout.close()
    ok(steps == sum(hops) and len(log.lines) == steps + 1, f"{name}: a line for each of {sum(hops)} steps", steps, len(log.lines))
    ok(not wrong, f"{name}: registers are those of the process at {len(hops)} steps", wrong[:10])
    ok(cnt and not wrong_mem, f"{name}: and memory, {cnt} bytes in {places} places", len(wrong_mem), wrong_mem[:10])


def read_back(program):
    """By the workbench: registers at some steps are those that the same debugger told."""
    path = os.path.join(WORK, "back.log")
    hops = [7, 30, 61]
    commands = []
    for n in hops:
        commands += [f"stepi {n}", "registers"]
    r = debug("tbreak main", "run", f"record {path}", *commands, "record off", "kill", program=program)
    told = [dict(re.findall(r"^(\w+) +0x([0-9a-f]+)", block, re.M)) for block in re.split(r"^stopped at .*$", r.stdout, flags=re.M)]
    told = [t for t in told if "r15" in t]
    if not ok(len(told) == len(hops), "record writes while it is stepped", r.stdout, r.stderr):
        return
    w = Workbench(SCRY, WORK, "--trace", path, program)
    w.shows("the workbench reads it", rf"step 0 of {sum(hops) + 1}")
    step = 0
    for n, regs in zip(hops, told):
        step += n
        w.ui("trace", f"!={step}")
        s = w.until(rf"step {step} of")
        shown = dict(re.findall(r"[ *](r[a-z0-9]+) +([0-9a-f]{16})", s))
        ok(len(shown) >= 10 and all(regs.get(k) == v for k, v in shown.items()), f"at step {step} with the registers that were", {k: (v, regs.get(k)) for k, v in shown.items()}, s)
    w.end()


def bounded(program):
    path = os.path.join(WORK, "short.log")
    r = debug("tbreak main", "run", f"record {path} 100", "continue", "status", "continue", program=program)
    ok("100 steps" in r.stdout and "full" in r.stdout and len(Log(path).lines) == 101 and "exited with status 10" in r.stdout and r.returncode == 10,
       "a log that is full ends; the program goes on without", r.returncode, r.stdout, r.stderr)
    r = debug("tbreak main", "run", "record /dev/full", "continue", "status", program=program)
    ok("No space left" in r.stderr and r.returncode, "a full disk is said", r.returncode, r.stdout, r.stderr)
    r = debug("tbreak main", "run", f"record {WORK}/nowhere/log", "continue", program=program)
    ok("No such file" in r.stderr and r.returncode, "as is a folder that is not there", r.returncode, r.stdout, r.stderr)
    r = debug("record off", program=program)
    ok("nothing is recorded" in r.stderr and r.returncode, "and that nothing is recorded", r.stderr)


def whole(program):
    path = os.path.join(WORK, "whole.log")
    r = subprocess.run([SCRY, "debug", "--trace", path, "-e", "run", "--", program], capture_output=True, text=True, timeout=WAIT_S, stdin=subprocess.DEVNULL)
    ok(r.returncode == 10 and "b=10 c=20 - as it was" in r.stdout and re.search(r"whole\.log: \d{3,} steps", r.stdout), "--trace LOG: from the entry to the end",
       r.returncode, r.stdout, r.stderr)
    log = Log(path)
    first, length = log.lines[0], len(log.lines)
    entry = re.search(r"rip=0x([0-9a-f]+)", first)
    head = subprocess.run([SCRY, "info", program, "--json"], capture_output=True, text=True).stdout
    want = re.search(r'"entry":"0x([0-9a-f]+)"', head)
    ok(entry and want and int(entry.group(1), 16) - int(want.group(1), 16) == 0x555555554000, "its first step is the entry", first, head[:300])
    # The same by breakpoints: calls are run over, and are in the log.
    path = os.path.join(WORK, "over.log")
    r = subprocess.run([SCRY, "debug", "--trace", path, "-b", "main", "-e", "run", "-e", "next", "-e", "next", "-e", "next", "-e", "next", "-e", "status", "-e", "kill", "--", program],
                       capture_output=True, text=True, timeout=WAIT_S, stdin=subprocess.DEVNULL)
    over = Log(path)
    ok(30 < len(over.lines) < length and r.returncode == 137, "next steps over a call with all of it in the log", len(over.lines), r.stdout, r.stderr)
    r = subprocess.run([SCRY, "debug", "--trace", os.path.join(WORK, "t.log"), "-e", "run", "--", program, "thread"], capture_output=True, text=True, timeout=WAIT_S,
                       stdin=subprocess.DEVNULL)
    ok("thread 8" in r.stdout and r.returncode == 10, "a thread that is waited for runs meanwhile", r.returncode, r.stdout, r.stderr)
    r = subprocess.run([SCRY, "debug", "--trace", os.path.join(WORK, "c.log"), "-e", "run", "-e", "continue", "--", program, "crash"], capture_output=True, text=True, timeout=WAIT_S,
                       stdin=subprocess.DEVNULL)
    ok("SIGSEGV at" in r.stdout and r.returncode == 139, "a crash stops, then kills", r.returncode, r.stdout, r.stderr)


def main():
    if os.uname().machine != "x86_64":
        print("1..0 # skip logs are made on x86-64")
        return
    program = os.path.join(WORK, "subject")
    r = subprocess.run(["gcc", "-g", "-O0", "-w", "-pthread", "-o", program, SOURCE], capture_output=True, text=True)
    if r.returncode:
        print("1..0 # skip no gcc: " + r.stderr[:80])
        return
    seed = int(os.environ.get("SEED", "7"))
    random.seed(seed)
    begin = 0x555555554000 + int(re.search(r"^([0-9a-f]+) T main$", subprocess.run(["nm", program], capture_output=True, text=True).stdout, re.M).group(1), 16)
    compare(program, "main", (), begin, [random.randint(1, 300) for _ in range(12)])
    compare(program, "a signal", ("signal",), begin, [random.randint(20, 500) for _ in range(10)])
    # From the first instruction on: the loader, with its vector registers, string instructions and system calls.
    compare(program, "the loader", (), 0, [random.randint(200, 5000) for _ in range(10)])
    read_back(program)
    bounded(program)
    whole(program)
    print(f"1..{count}")


try:
    main()
finally:
    shutil.rmtree(WORK, ignore_errors=True)
sys.exit(failed > 0)
