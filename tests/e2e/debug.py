#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`scry debug` at every kind of server that is installed, the same session at each; how many round trips a step takes; and at servers that
stall, lie and never end: a reason in bounded time and memory. Prints TAP. SCRY is the program."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

SCRY = os.environ.get("SCRY", "")
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "../data/debug/subject.c")
WORK = tempfile.mkdtemp(prefix="scry-debug-")
os.environ["SCRY_STORE"] = os.path.join(WORK, "store")
os.environ["LC_ALL"] = "C.UTF-8"
LATE = os.path.join(WORK, "late.so")
WAIT_S = 120
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


def same(what, got, want):
    return ok(got == want, what, f"got {got!r}", f"want {want!r}")


def skip(what, why):
    global count
    count += 1
    print(f"ok {count} - {what} # SKIP {why}", flush=True)


def line_of(word):
    for n, text in enumerate(open(SOURCE), 1):
        if f"/* {word} */" in text:
            return n
    raise KeyError(word)


# --- servers ------------------------------------------------------------------------------------------------------------


class Server:
    """A debug server that is installed, with a program or none. `name` also tells what it can do."""

    def __init__(self, name, program, *words):
        self.name, self.program = name, program
        self.url = self.child = None
        if name == "here":
            return
        if name in ("gdbserver", "gdbserver-multi"):
            tail = [program, *words] if name == "gdbserver" else ["--multi"]
            tail = ["--once", "localhost:0", *tail] if name == "gdbserver" else ["--once", *tail, "localhost:0"]
            self.child = subprocess.Popen(["gdbserver", *tail], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                          start_new_session=True)
            for line in self.child.stderr:
                m = re.search(r"Listening on port (\d+)", line)
                if m:
                    self.url = "connect://localhost:" + m.group(1)
                    break
        elif name.startswith("lldb-server"):
            r, w = os.pipe()
            self.child = subprocess.Popen([name, "gdbserver", "--pipe", str(w), "127.0.0.1:0", "--", program, *words], pass_fds=[w],
                                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
            os.close(w)
            with os.fdopen(r) as f:
                self.url = "connect://127.0.0.1:" + f.read(16).strip("\0\n ")
        elif name.startswith("qemu"):
            path = os.path.join(WORK, f"{name}-{os.getpid()}-{count}.sock")
            self.child = subprocess.Popen([name, "-g", path, program, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
            while not os.path.exists(path) and self.child.poll() is None:
                time.sleep(0.01)
            self.url = "unix-connect://" + path

    def where(self, *words):
        """Words of the command line for it, and those behind them."""
        if self.name == "here":
            return [], ["--", self.program, *words]
        return [self.url, self.program], ["--", self.program, *words] if self.name == "gdbserver-multi" else []

    def end(self):
        if self.child:
            # With what it started, which it may have let go.
            try:
                os.killpg(self.child.pid, signal.SIGKILL)
            except OSError:
                pass
            out = self.child.communicate(timeout=WAIT_S)[0]
            return out or ""
        return ""


def debug(server, commands, *words, options=(), stdin=None):
    front, tail = server.where(*words)
    line = [SCRY, "debug", *options, *front]
    for c in commands:
        line += ["-e", c]
    r = subprocess.run(line + tail, capture_output=True, text=True, errors="replace", timeout=WAIT_S, input=stdin)
    r.printed = r.stdout + server.end()
    return r


def has(what, r, *patterns):
    missing = [p for p in patterns if not re.search(p, r.stdout, re.M)]
    return ok(not missing, what, f"missing: {missing}", r.stdout, r.stderr)


def at(word, func="main"):
    return rf"{func}(\+0x[0-9a-f]+)? \(.*subject\.c:{line_of(word)}\)"


def session(kind, program):
    """What a person does, at any server."""
    def serve(*words):
        return Server(kind, program, *words)

    r = debug(serve("word"), ["break main", "run", "image list", "backtrace", "continue"], "word")
    has(f"{kind}: break, run, image list, continue", r, r"^breakpoint 1 at 0x[0-9a-f]+ main",
        r"^\[0\] 0x[0-9a-f]+ .*subject", r"^#0 0x[0-9a-f]+ main", r"^exited with status 10$")
    ok("libc" in r.stdout, f"{kind}: the C library is listed", r.stdout)
    same(f"{kind}: the exit status is the program's", r.returncode, 10)
    ok("b=10 c=20 word as it was" in r.printed, f"{kind}: the program had its words and ran to its end", r.printed)

    r = debug(serve(), [f"tbreak main:{line_of('main-counter')}", "run", "next", "step", "next", "next", "next", "backtrace", "finish", "next", "next", "kill"])
    has(f"{kind}: next and step follow the source", r, "^stopped at 0x[0-9a-f]+ " + at("main-compute"), "^stopped at 0x[0-9a-f]+ " + at("compute-1", "compute"),
        "^stopped at 0x[0-9a-f]+ " + at("compute-loop", "compute"), "^stopped at 0x[0-9a-f]+ " + at("compute-body", "compute"),
        "^#1 0x[0-9a-f]+ " + at("main-compute"), "^stopped at 0x[0-9a-f]+ " + at("main-print"), "^stopped at 0x[0-9a-f]+ " + at("main-seven"))

    r = debug(serve(), [f"break {os.path.basename(SOURCE)}:{line_of('main-recurse')}", "run", "next", "step", "next", "status", "kill"])
    has(f"{kind}: next goes over a recursion, step into a call through a pointer", r, "^stopped at 0x[0-9a-f]+ " + at("main-indirect"),
        "^stopped at 0x[0-9a-f]+ " + at("twice-1", "twice"))

    r = debug(serve(), ["break recurse if $rdi == 2", "run", "print $rdi", "next", "next", "backtrace", "next", "status", "breakpoints", "kill"])
    has(f"{kind}: a condition, and next in the middle of a recursion", r, "^breakpoint 1 at .* recurse", "^0x2 2$",
        "^stopped at 0x[0-9a-f]+ " + at("recurse-end", "recurse"), r"^#3 0x[0-9a-f]+ main", r"^1: recurse at 0x[0-9a-f]+ recurse if \$rdi == 2, hit 1 times")

    r = debug(serve(), [f"break main:{line_of('main-print2')}", "run", "print u32(counter)", "print *$rsp == u64($rsp)", "memory text 9", "write text 6e6577",
                        "memory text 4", "registers rip rsp", "disassemble $rip 3", "continue"])
    has(f"{kind}: memory is read and written, registers read", r, "^0x7 7$", "^0x1 1$", r"^0x[0-9a-f]+: 61 73 20 69 74 .* as it was$", r": 6e 65 77 69 ",
        r"^rip +0x[0-9a-f]{16}  main", r"^=> 0x[0-9a-f]+ <main\+0x")
    ok("newit was" in r.printed, f"{kind}: the program saw what was written", r.printed)

    r = debug(serve(), [f"break recurse:{line_of('recurse-0')}", "run", "finish", "set rax=100", "continue"])
    ok("b=110 c=220" in r.printed, f"{kind}: a register that is written is the program's", r.printed, r.stdout, r.stderr)

    r = debug(serve(), ["break twice", "run", "stepi", "nexti", "until main-nowhere", "quit"])
    ok(r.returncode and "main-nowhere" in r.stderr and len(re.findall("^stopped at .* twice", r.stdout, re.M)) == 2, f"{kind}: instructions; a place that is none",
       r.stdout, r.stderr)

    if not kind.startswith("qemu"):
        r = debug(serve(), ["break main", "run", "watch counter 4", "continue", "print u32(counter)", "continue", "print u32(counter)", "delete 2", "continue"])
        has(f"{kind}: a watchpoint stops behind each write", r, r"^watchpoint 2, 0x[0-9a-f]+ counter was touched, 0x0 became 0x1, at 0x[0-9a-f]+ main",
            "^watchpoint 2, .* 0x1 became 0x7, at", "^0x1 1$", "^0x7 7$", "^exited with status 10$")
    r = debug(serve("crash"), ["run", "print $rip", "continue"], "crash")
    has(f"{kind}: a crash stops, then kills", r, "^SIGSEGV at 0x[0-9a-f]+ " + at("main-crash"), "^killed by SIGSEGV$")
    same(f"{kind}: and gives its status", r.returncode, 139)
    r = debug(serve("signal"), ["run", "status", "continue"], "signal")
    has(f"{kind}: a signal stops first", r, "^SIGUSR1 at 0x")
    ok("signal 10" in r.printed, f"{kind}: and is delivered", r.printed)
    r = debug(serve("signal"), ["run", "signal 0"], "signal")
    ok("signal 10" not in r.printed and r.returncode == 10, f"{kind}: or not", r.printed, r.stderr)
    r = debug(serve("thread"), ["break worker", "run", "threads", "backtrace", "continue"], "thread")
    has(f"{kind}: threads", r, r"^\* .*worker", r"^#0 0x[0-9a-f]+ worker")
    ok(len(re.findall(r"^[* ] [0-9a-fp.]+ .*0x", r.stdout, re.M)) == 2 and "thread 8" in r.printed, f"{kind}: both are listed", r.stdout, r.printed)
    odd_places(kind, serve)
    frames(kind, serve)
    kept(kind)
    logged(kind, serve)
    late(kind, serve)
    steps(kind, serve)


def odd_places(kind, serve):
    r = debug(serve(), ["break main if no_such_name", "run", "set rip=0", "stepi", "kill"])
    has(f"{kind}: what cannot be judged is said, what cannot be read has no code", r, "^breakpoint 1, whose condition cannot be judged, at 0x[0-9a-f]+ main",
        "^SIGSEGV at 0x0 ", "^ +0x0  cannot be read$")


def frames(kind, serve):
    r = debug(serve(), ["break recurse if $rdi == 2", "run", "up 2", "print $rip == $rsp", "registers rip rax", "disassemble", "down", "frame", "frame 3", "stepi",
                        "registers rax", "down", "kill"])
    has(f"{kind}: frames", r, r"^#2 0x[0-9a-f]+ recurse\+0x", r"^rip +0x[0-9a-f]{16}  recurse\+0x", r"^rax +\?\?$",
        r"^#1 0x[0-9a-f]+ recurse\+0x[0-9a-f]+ .*\n.*\n#1 0x", r"^#3 0x[0-9a-f]+ main\+0x", r"^rax +0x[0-9a-f]{16}")
    ok("innermost" in r.stderr and r.returncode, f"{kind}: none is below the innermost", r.returncode, r.stderr)


KEPT = r"""
#include <signal.h>
#include <stdlib.h>
#define N __attribute__((noinline))
N int leaf(int n)
{
	__asm__ volatile("mov $0x99, %%rbx" ::: "rbx");
	return n + 1;
}
N int middle(int n)
{
	__asm__ volatile("mov $0x4242, %%rbx; mov $0x1212, %%r12" ::: "rbx", "r12");
	int r = leaf(n);
	__asm__ volatile("" ::: "rbx", "r12");
	return r;
}
void handler(int sig) { exit(sig); }
N void fault(void) { __asm__ volatile("mov $0x77, %%rbx; mov $0x1313, %%r13; mov $0x8888, %%rax; mov $0, %%rcx; mov (%%rcx), %%rcx" ::: "rax", "rbx", "rcx", "r13"); }
int main(void)
{
	static char room[65536];
	stack_t other = {.ss_sp = room, .ss_size = sizeof(room)};
	struct sigaction act = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
	__asm__ volatile("mov $0x1010, %%rbx" ::: "rbx");
	int r = middle(1);
	sigaltstack(&other, NULL);
	sigaction(SIGSEGV, &act, NULL);
	fault();
	return r;
}
"""


def kept(kind):
    """What functions keep for their callers is found in their frames; what a signal interrupted had all its registers saved."""
    program = os.path.join(WORK, "kept")
    line = KEPT.split("\n").index("\treturn n + 1;") + 1
    if not os.path.exists(program):
        with open(program + ".c", "w") as f:
            f.write(KEPT)
        subprocess.run(["gcc", "-g", "-O0", "-o", program, program + ".c"], check=True)
    r = debug(Server(kind, program), [f"break leaf:{line}", "run", "registers rbx r12", "up", "registers rbx r12 rax", "print $rbx + 1", "up",
                                      "registers rbx", "down 2", "registers rbx", "delete", "break handler", "continue", "continue", "up 2", "status",
                                      "registers rbx r13 rax rcx", "up", "continue"])
    values = re.findall(r"^(r\w+) +(\?\?|0x[0-9a-f]+)", r.stdout, re.M)
    want = ["99", "1212", "4242", "1212", "??", "1010", "99", "77", "1313", "8888", "0"]
    same(f"{kind}: registers of callers", [v if v == "??" else f"{int(v, 16):x}" for _, v in values], want) or print("#", r.stdout.replace("\n", "\n# "), r.stderr)
    has(f"{kind}: over a signal's frame, on a stack of its own", r, r"^0x4243 ", r"^#2 0x[0-9a-f]+ fault\+0x", r"^#3 0x[0-9a-f]+ main\+0x", "^exited with status 11$")


def odd_in_log(path):
    """What an execution log says of memory that is read, and is not what it said before; how many bytes it says twice; the registers at its end."""
    mem, regs, odd, cnt = {}, {}, [], 0
    for n, line in enumerate(open(path)):
        for word in line.strip().split(","):
            name, _, value = word.partition("=")
            if name not in ("mr", "mw", "mrw"):
                regs[name] = int(value, 16)
                continue
            va, _, data = value.partition(":")
            for i, b in enumerate(bytes.fromhex(data)):
                at = int(va, 16) + i
                if name == "mr" and at in mem:
                    cnt += 1
                    if mem[at] != b:
                        odd.append((n + 1, hex(at)))
                mem[at] = b
    return odd, cnt, regs


def logged(kind, serve):
    """A log made at this server, from here where it makes none: each read finds what was written before, registers are those that are told."""
    path = os.path.join(WORK, kind + ".log")
    r = debug(serve("signal"), ["tbreak main", "run", f"record {path}", "next", "stepi 40", "break recurse if $rdi == 1", "continue", "backtrace", "finish",
                                "registers", "record off", "kill"], "signal")
    has(f"{kind}: a log, with breakpoints as without one", r, "^breakpoint 2 at 0x[0-9a-f]+ recurse", "^#1 0x[0-9a-f]+ recurse", r"log: \d{3,} steps")
    ok(kind == "here" or "one by one" in r.stdout, f"{kind}: that it is slow is said", r.stdout)
    odd, cnt, regs = odd_in_log(path)
    told = {n: int(v, 16) for n, v in re.findall(r"^(r\w+) +0x([0-9a-f]{16})", r.stdout, re.M)}
    ok(cnt > 100 and not odd and len(regs) == 17, f"{kind}: {cnt} bytes are read as they were written", odd[:10])
    same(f"{kind}: registers at its end", {n: v for n, v in regs.items()}, {n: told.get(n) for n in regs})
    r = debug(serve("signal"), ["tbreak main", "run", f"record {path}", "continue", "continue", "status"], "signal")
    ok("signal 10" in r.printed and "exited with status 10" in r.stdout, f"{kind}: a log up to the end, with a signal", r.stdout, r.printed, r.stderr)
    odd, cnt, regs = odd_in_log(path)
    ok(cnt > 5000 and not odd, f"{kind}: system calls and all, {cnt} bytes", odd[:10])
    r = debug(serve("thread"), ["tbreak main", "run", f"record {path}", "continue"], "thread")
    ok("thread 8" in r.printed and "exited with status 10" in r.stdout, f"{kind}: a thread that is waited for runs meanwhile", r.stdout, r.printed, r.stderr)


def late(kind, serve):
    """A library that is loaded while the program runs."""
    words = ("load", LATE)
    r = debug(serve(*words), ["break late_work if $rdi == 20", "break late_never", "run", "backtrace", "finish", "continue"], *words)
    has(f"{kind}: a breakpoint in a library that is loaded later", r, "^1: late_work if .*, waits for it to be loaded$", r"^breakpoint 1 at 0x[0-9a-f]+ late\.so!late_work",
        r"^#1 0x[0-9a-f]+ " + at("main-late"), r"^stopped at 0x[0-9a-f]+ main\+0x", "^exited with status 10$")
    ok("late 41" in r.printed, f"{kind}: which runs on", r.printed, r.stderr)
    r = debug(serve(*words), ["break main", "run", "break late_work", "continue", "breakpoints", "kill"], *words)
    has(f"{kind}: the same, set while it stands", r, "^2: late_work, waits for it to be loaded$", r"^breakpoint 2 at 0x[0-9a-f]+ late\.so!late_work",
        r"^2: late_work at 0x[0-9a-f]+ late\.so!late_work, hit 1 times")


def steps(kind, serve):
    """Round trips of one source step and all a person sees of where it ends. In ack mode each request is one."""
    if kind.startswith("qemu"):
        return
    r = debug(serve(), [f"break main:{line_of('main-counter')}", "run", "backtrace", "registers", "counts", "next", "backtrace", "registers", "disassemble $rip 8",
                        "memory $rsp 64", "status", "counts", "step", "backtrace", "registers", "counts", "kill"])
    turns = [int(n) for n in re.findall(r"(\d+) round trips", r.stdout)]
    if not ok(len(turns) == 3, f"{kind}: round trips are counted", r.stdout, r.stderr):
        return
    ok(turns[1] - turns[0] <= 3, f"{kind}: next with full context takes at most 3 round trips", turns)
    ok(turns[2] - turns[1] <= 3, f"{kind}: step into a call as well", turns)


class Platform:
    """lldb-server in platform mode, in a folder; `front` are words before it."""

    def __init__(self, tool, folder, *front):
        os.mkdir(folder)
        port = folder + ".port"
        self.child = subprocess.Popen([*front, tool, "platform", "--server", "--listen", "127.0.0.1:0", "--socket-file", port], cwd=folder,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        until = time.monotonic() + WAIT_S
        while not (os.path.exists(port) and open(port).read().strip("\0\n ")) and self.child.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        self.url = "connect://127.0.0.1:" + open(port).read().strip("\0\n ")

    def debug(self, tail, *commands):
        line = [SCRY, "debug", self.url + tail[0], *tail[1:]]
        for c in commands:
            line += ["-e", c]
        return subprocess.run(line, capture_output=True, text=True, errors="replace", timeout=WAIT_S)

    def end(self):
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except OSError:
            pass
        self.child.wait()


def lldb_platform(tool, program):
    """It starts the server that debugs, and another one for another run; a program that is not there is sent."""
    if not shutil.which(tool):
        return skip(f"{tool} platform: a session", f"{tool} is not installed (apt-get install {tool.replace('server-', '')})")
    folder = os.path.join(WORK, tool)
    there = Platform(tool, folder)
    sleeper = subprocess.Popen(["sleep", "1000"])
    try:
        r = there.debug(["", program], "break main", "run", "image list", "next", "continue", "run word", "backtrace", "continue")
        has(f"{tool} platform: a session", r, "^breakpoint 1 at 0x[0-9a-f]+ main", r"^\[0\] 0x[0-9a-f]+ .*subject", "^stopped at 0x[0-9a-f]+ main", "^#0 0x[0-9a-f]+ main")
        same(f"{tool} platform: it runs twice", (r.stdout.count("exited with status 10"), r.returncode, os.listdir(folder)), (2, 10, []))
        r = there.debug([program], "break main", "run", "continue")
        has(f"{tool} platform: a program of that machine", r, "^breakpoint 1 at 0x[0-9a-f]+ main", "^exited with status 10$")
        r = there.debug([""], f"attach {sleeper.pid}", "registers rip", "detach")
        has(f"{tool} platform: a process of that machine", r, "^(stopped|SIGSTOP) at 0x", "^rip +0x")
        same(f"{tool} platform: which goes on", sleeper.poll(), None)
        r = there.debug(["", os.path.join(WORK, "nowhere")], "run")
        ok(r.returncode and "nowhere" in r.stderr, f"{tool} platform: a file that is not here", r.stdout, r.stderr)
    finally:
        sleeper.kill()
        sleeper.wait()
        there.end()
    own = os.path.join(WORK, tool + ".own")
    os.mkdir(own)
    shutil.copy(program, own + "/subject")
    if subprocess.run(["unshare", "-rm", "true"], stderr=subprocess.DEVNULL).returncode:
        return skip(f"{tool} platform: a program that is sent", "no mount namespace can be made here")
    there = Platform(tool, folder + ".apart", "unshare", "-rm", "sh", "-c", f'mount -t tmpfs none {own} && exec "$@"', "sh")
    try:
        r = there.debug(["", own + "/subject"], "break main", "run", "continue")
        has(f"{tool} platform: a program that is not there is sent", r, "^breakpoint 1 at 0x[0-9a-f]+ main", "^exited with status 10$")
        same(f"{tool} platform: into its working folder", os.listdir(folder + ".apart"), ["subject"])
    finally:
        there.end()
    return None


FORKS = r"""
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int in_child(int n) { return n + 1; }
int in_parent(int n) { return n + 2; }
int main(int argc, char **argv)
{
	int st;
	if (argc > 1 && !strcmp(argv[1], "other"))
		execl("/bin/echo", "echo", "from", "another", NULL);
	if (argc > 1 && !strcmp(argv[1], "same"))
		execl("/proc/self/exe", argv[0], NULL);
	pid_t p = fork();
	if (!p)
		_exit(in_child(5));
	waitpid(p, &st, 0);
	p = vfork();
	if (!p)
		_exit(3);
	waitpid(p, &st, 0);
	printf("%d\n", in_parent(WEXITSTATUS(st)));
	return 0;
}
"""


def forks(kind):
    """A program that forks and becomes another one."""
    program = os.path.join(WORK, "forks")
    if not os.path.exists(program):
        with open(program + ".c", "w") as f:
            f.write(FORKS)
        subprocess.run(["gcc", "-g", "-O0", "-w", "-o", program, program + ".c"], check=True)
    r = debug(Server(kind, program), ["break in_child", "break in_parent", "run", "backtrace", "continue"])
    has(f"{kind}: children run on, and that they end stops nothing", r, "^breakpoint 2 at 0x[0-9a-f]+ in_parent", "^#1 0x[0-9a-f]+ main", "^exited with status 0$")
    ok(r.printed.split()[-1:] == ["5"] or "5" in r.printed.split(), f"{kind}: and the program is as it was", r.printed)
    r = debug(Server(kind, program), ["handle", "handle sigchld stop", "break main", "run", "continue", "signal 0", "kill"])
    has(f"{kind}: unless it is asked for", r, "^passed on without a stop: SIGALRM SIGCHLD", "^SIGCHLD at 0x")
    r = debug(Server(kind, program, "same"), ["break main", "run", "continue", "continue", "backtrace", "delete", "continue"], "same")
    has(f"{kind}: the same program anew keeps its breakpoints", r, "^another program begins at 0x", "^#0 0x[0-9a-f]+ main", "^exited with status 0$")
    same(f"{kind}: at their places", len(re.findall("^breakpoint 1 at 0x[0-9a-f]+ main", r.stdout, re.M)), 2)
    r = debug(Server(kind, program, "other"), ["break main", "run", "continue", "status", "print 0x555555555555", "continue"], "other")
    has(f"{kind}: of another program no place is named as in this one", r, "^another program begins at 0x", r"^0x555555555555 \d+$", "^exited with status 0$")
    ok("from another" in r.printed, f"{kind}: and it runs", r.printed, r.stderr)


def attached():
    p = subprocess.Popen(["sleep", "1000"])
    r = subprocess.run([SCRY, "debug", "-p", str(p.pid), "-e", "backtrace", "-e", "detach"], capture_output=True, text=True, timeout=WAIT_S)
    if "not permitted" in r.stderr or "denied" in r.stderr:
        skip("-p takes a process", r.stderr.strip()[:80])
    else:
        has("-p takes a process, with its program", r, "^stopped at 0x", "^#0 0x", "^detached$")
        same("and lets it go", (p.poll(), r.returncode), (None, 0))
    p.kill()
    p.wait()
    r = subprocess.run([SCRY, "debug", "-p", str(p.pid), "-e", "status"], capture_output=True, text=True, timeout=WAIT_S)
    ok(r.returncode and f"process {p.pid}" in r.stderr, "one that is gone: a reason", r.stdout, r.stderr)


def made_up(program):
    """Imports have places behind the end of their file, where in memory something else may lie: the heap, the next library."""
    libc = [w for w in subprocess.run(["ldd", program], capture_output=True, text=True).stdout.split() if "/libc.so" in w][0]
    at = {}
    for path in (program, libc):
        text = subprocess.run([SCRY, "imports", path, "--json"], capture_output=True, text=True).stdout
        at[path] = max(int(i["addr"], 16) for i in json.loads(text)["items"])
    r = debug(Server("here", program), ["break main", "run", "image list", "kill"])
    base = {p: int(a, 16) for a, p in re.findall(r"^\[\d+\] (0x[0-9a-f]+) (\S+)", r.stdout, re.M)}
    slide = [b for p, b in base.items() if p.endswith("subject")], [b for p, b in base.items() if "/libc.so" in p]
    if not ok(all(slide), "the program and its C library are listed", r.stdout, r.stderr):
        return
    places = [at[program] + slide[0][0], at[libc] + slide[1][0]]
    r = debug(Server("here", program), ["break main", "run", *(f"print {p:#x}" for p in places), "kill"])
    for p, whose in zip(places, ("the program", "the C library")):
        ok(re.search(rf"^{p:#x} {p}$", r.stdout, re.M), f"what lies behind {whose} is not named as an import of it", f"{p:#x}", r.stdout, r.stderr)


def no_lines(program):
    """Without debug information lines are those of the C."""
    out = os.path.join(WORK, "stripped")
    subprocess.run(["strip", "-o", out, program], check=True)
    funcs = subprocess.run([SCRY, "functions", program, "--filter", "compute", "--json"], capture_output=True, text=True).stdout
    addr = re.search(r'"addr":"(0x[0-9a-f]+)"', funcs)
    if not ok(addr is not None, "the function is found", funcs):
        return
    addr = addr.group(1)
    text = subprocess.run([SCRY, "decompile", out, addr], capture_output=True, text=True).stdout
    r = debug(Server("gdbserver", out), [f"break {addr}", "run", "next", "next", "next", "kill"])
    pcs = re.findall(r"^(?:stopped|breakpoint 1) at (0x[0-9a-f]+)", r.stdout, re.M)
    ok(len(pcs) == 4 and len(set(pcs)) >= 3 and text, "a step goes by statements of the C where there are no lines", r.stdout, r.stderr, text)


def interrupts(kind, program, *first):
    server = Server(kind, program, "spin")
    front, tail = server.where("spin")
    commands = [w for c in (*first, "run", "print counter", "kill") for w in ("-e", c)]
    p = subprocess.Popen([SCRY, "debug", *front, *commands, *tail], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         start_new_session=True)
    # What it prints comes either from it or from its server.
    said = (p.stdout if kind == "here" or kind.startswith("lldb") else server.child.stdout).readline()
    while said and "spinning" not in said:
        said = (p.stdout if kind == "here" or kind.startswith("lldb") else server.child.stdout).readline()
    p.send_signal(signal.SIGINT)
    out, errors = p.communicate(timeout=WAIT_S)
    server.end()
    if "asked to stop" in errors and kind.startswith("qemu"):
        return skip(f"{kind}: Ctrl+C", "this QEMU cannot be interrupted")
    said = (p.returncode, out, errors)
    kind += ", logged" if first else ""
    ok(re.search(r"^(SIGINT|SIGSTOP|stopped) at 0x[0-9a-f]+ ", out, re.M), f"{kind}: Ctrl+C stops it", *said)
    # It may still be in the call that printed.
    ok(re.search(r"^\S+ at 0x[0-9a-f]+ (main|libc\.so\.6)\S", out, re.M), f"{kind}: where it is", *said)
    ok(re.search(r"^0x[0-9a-f]+ \d+ counter$", out, re.M), f"{kind}: and the script goes on", *said)
    ok(re.search(r"^killed by SIGKILL$", out, re.M) and p.returncode == 137, f"{kind}: up to the end of the program", *said)


# --- servers that are no friends --------------------------------------------------------------------------------------


def packet(payload):
    if isinstance(payload, str):
        payload = payload.encode("latin-1")
    return b"$" + payload + b"#%02x" % (sum(payload) % 256)


XML = ('<?xml version="1.0"?><!DOCTYPE target SYSTEM "gdb-target.dtd"><target><architecture>i386:x86-64</architecture><feature name="core">' +
       "".join(f'<reg name="{r}" bitsize="64"/>' for r in "rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip".split()) +
       '<reg name="eflags" bitsize="32"/></feature></target>')


class Fake:
    """Answers as a small stub would, but for what `change` maps: a prefix of requests to bytes to send, or a function of the request that gives them."""

    def __init__(self, change=None):
        self.change = change or {}
        self.sock = socket.socket()
        self.sock.bind(("127.0.0.1", 0))
        self.sock.listen(1)
        self.name, self.program = "fake", None
        self.asked = []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def where(self, *words):
        return [f"connect://127.0.0.1:{self.sock.getsockname()[1]}"], []

    def end(self):
        self.sock.close()
        self.thread.join(WAIT_S)
        return ""

    def reply(self, req):
        if req.startswith("qSupported"):
            return packet("PacketSize=4000;QStartNoAckMode+;qXfer:features:read+;qXfer:libraries-svr4:read+")
        if req in ("QStartNoAckMode", "Z0") or req[:2] in ("Hg", "Hc", "Z0", "z0"):
            return packet("OK")
        if req == "vCont?":
            return packet("vCont;c;C;s;S")
        if req in ("?", ) or req.startswith("vCont;"):
            return packet("T05thread:1;10:3611400000000000;07:00f0ff7f00000000;")
        if req == "g":
            return packet("00" * (17 * 8 + 4))
        if req.startswith("m"):
            return packet("90" * int(req.split(",")[1], 16))
        if req == "qfThreadInfo":
            return packet("m1")
        if req.startswith("qXfer:features:read:target.xml:"):
            off, n = (int(v, 16) for v in req.split(":")[-1].split(","))
            return packet(("l" if off + n >= len(XML) else "m") + XML[off:off + n])
        return packet("")

    def serve(self):
        try:
            conn, _ = self.sock.accept()
        except OSError:
            return
        data = b""
        with conn:
            try:
                while True:
                    got = conn.recv(65536)
                    if not got:
                        return
                    data += got
                    while True:
                        m = re.search(rb"\$([^#]*)#..|\x03", data, re.S)
                        if not m:
                            break
                        data = data[m.end():]
                        req = m.group(1).decode("latin-1") if m.group(1) is not None else "\x03"
                        self.asked.append(req)
                        ack = b"+" if "QStartNoAckMode" in req else b""
                        for prefix, what in self.change.items():
                            if req.startswith(prefix):
                                what = what(req, conn) if callable(what) else what
                                break
                        else:
                            what = self.reply(req)
                        if what is None:
                            return
                        conn.sendall(ack + what)
            except OSError:
                return


def endless(piece, limit=1 << 30):
    def send(req, conn):
        sent = 0
        while sent < limit:
            sent += conn.send(piece)
        return None
    return send


def nested(req, conn):
    n = int(re.search(r"read:\w*?(\d*)(target)?\.xml", req).group(1) or 0)
    return packet(f'l<target><xi:include href="{n + 1}.xml"/></target>')


def platform_says(reply):
    """A server that looks like lldb-server's platform, and answers so when it is to start a debug server."""
    return {"qSupported": packet("PacketSize=131072;QStartNoAckMode+;qEcho+;native-signals+"), "vCont?": packet(""), "?": packet(""), "qLaunchGDBServer": reply}


BAD = {
    "starts no debug server": (platform_says(packet("E09")), "status", None),
    "starts one at no port": (platform_says(packet("pid:1;port:0;")), "status", None),
    "starts one at a port that is none": (platform_says(packet("pid:1;port:4294967296;")), "status", None),
    "starts one at a socket": (platform_says(packet("pid:1;port:0;socket_name:" + "2f" * 60 + ";")), "status", None),
    "starts one where nobody is": (platform_says(packet("pid:1;port:1;")), "status", None),
    "never says where it starts one": (platform_says(b""), "status", None),
    "says nothing at all": ({"QStartNoAckMode": b""}, "status", None),
    "says nothing to one request": ({"vCont?": b""}, "status", None),
    "sends half a packet": ({"vCont?": b"$vCont;c"}, "status", None),
    "hangs up": ({"vCont?": lambda r, c: None}, "status", 5),
    "hangs up while the target runs": ({"vCont;": lambda r, c: None}, "continue", 5),
    "sends noise": ({"vCont?": endless(b"\x00noise" * 5000)}, "status", None),
    "sends a packet without end": ({"vCont?": endless(b"$" + b"x" * 65000)}, "status", None),
    "sends wrong checksums": ({"vCont?": b"$vCont;c;s#12"}, "status", None),
    "expands runs without end": ({"vCont?": packet(b"x*~" * 400000)}, "status", None),
    "answers a stop with nonsense": ({"?": packet("Tzz;;;:::")}, "status", None),
    "stops with nonsense": ({"vCont;": packet("Qwhat")}, "continue", None),
    "wants its system calls done": ({"vCont;": packet("Fopen,1/2,3,4")}, "continue", None),
    "has registers of no size": ({"qXfer:features": packet('l<target><reg name="rip" bitsize="0"/></target>')}, "status", None),
    "has registers of all sizes": ({"qXfer:features": packet('l<target><reg name="rip" bitsize="4294967296"/></target>')}, "status", None),
    "has a million registers": ({"qXfer:features": packet("l<target>" + '<reg name="r" bitsize="64"/>' * 30000)}, "status", None),
    "has malformed XML": ({"qXfer:features": packet('l<target><reg name="rip" bitsize=')}, "status", None),
    "includes files without end": ({"qXfer:features": nested}, "status", None),
    "sends XML without end": ({"qXfer:features": packet("m" + " " * 16000)}, "status", None),
    "sends XML in pieces of nothing": ({"qXfer:features": packet("m")}, "status", None),
    "has libraries without end": ({"qXfer:libraries": packet("m" + '<library name="x" l_addr="0x1000"/>' * 400)}, "image list", None),
    "has malformed libraries": ({"qXfer:libraries": packet("l<library-list-svr4><library name='x' l_addr='0x1")}, "image list", None),
    "refuses breakpoints": ({"Z0": packet("E01")}, "break 0x1234", None),
    "has no breakpoints": ({"Z0": packet("")}, "until 0x1234", None),
}
# What is odd but no reason to give up: the session goes on.
ODD = {
    "answers memory with too much": ({"m": packet("90" * 100000)}, "memory $rsp 64", r"cannot be read"),
    "answers memory with nonsense": ({"m": packet("zz" * 64)}, "memory $rsp 64", r"cannot be read"),
    "answers memory with less": ({"m": packet("9090")}, "memory 0x1000 64", r"^0x1000: 90 90 "),
    "has no g": ({"g": packet("E01"), "p": packet("36114000" + "0" * 8)}, "registers rbx", r"^rbx +0x0*401136"),
    "lists the same thread for ever": ({"qfThreadInfo": packet("m" + ",".join(["1"] * 3000)), "qsThreadInfo": packet("m1")}, "threads", r"^\* 1 "),
    "names threads in terminal codes": ({"qThreadExtraInfo": packet("1b5b324a")}, "threads", r"^\* 1 \\x1b\[2J"),
    "tells of threads in malformed JSON": ({"QThreadSuffixSupported": packet("OK"), "jThreadsInfo": packet('[{"tid":1,"name":"x"')}, "threads", r"^\* 1 "),
    "tells of threads in strange JSON": ({"QThreadSuffixSupported": packet("OK"), "jThreadsInfo": packet('[1,null,{"tid":"1"},{"tid":-1},{"tid":1,"name":"\\u001b[2J","registers":{"16":"zz"}},[]]'
                                                                                              .replace("}", "}]"))}, "threads", r"^\* 1 \\x1b\[2J"),
    "talks without being asked": ({"vCont?": packet("vCont;c;s") + b"%" + packet("Stop:T05")[1:] + b"+++"}, "status", r"^stopped at 0x0"),
}


def hostile():
    for what, (change, command, status) in BAD.items():
        server = Fake(change)
        front, _ = server.where()
        # A reason, and not by a signal or a sanitizer.
        p = subprocess.Popen([SCRY, "debug", "--timeout", "1", *front, "-e", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        out, errors = p.communicate(timeout=WAIT_S)
        server.end()
        said = errors.startswith("scry: ") and "Sanitizer" not in errors and "runtime error" not in errors
        ok(p.returncode > 0 and (status is None or p.returncode == status) and said, f"a server that {what}: a reason",
           p.returncode, out, errors)
    for what, (change, command, pattern) in ODD.items():
        server = Fake(change)
        r = debug(server, [command, "status"], options=["--timeout", "5"])
        ok(re.search(pattern, r.stdout + r.stderr, re.M) and "Sanitizer" not in r.stderr and "runtime error" not in r.stderr, f"a server that {what}", r.returncode,
           r.stdout, r.stderr)


def words():
    for line, why in ((["connect://127.0.0.1"], "port"), (["nowhere", "else"], "too many"), ([], "neither"),
                      (["connect://127.0.0.1:1", "connect://127.0.0.1:1/x"], "only one")):
        r = subprocess.run([SCRY, "debug", *line], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=WAIT_S)
        ok(r.returncode in (2, 3, 4) and why in r.stderr, f"scry debug {' '.join(line)}: what is off is said", r.returncode, r.stderr)
    r = debug(Fake(), ["help", "bogus", "status"])
    ok(r.returncode and "bogus" in r.stderr and "backtrace, bt" in r.stdout and "stopped at" not in r.stdout, "help; a command that is none ends a script", r.stdout, r.stderr)
    server = Fake()
    r = subprocess.run([SCRY, "debug", *server.where()[0]], capture_output=True, text=True, input="print 2 + 3 * (1 << 4)\n\nprint -1 < 1 && !0\nprint 1 / 0\n", timeout=WAIT_S)
    server.end()
    ok("0x32 50\n" in r.stdout and "0x1 1\n" in r.stdout and "division" in r.stderr and r.returncode, "commands come from standard input", r.stdout, r.stderr)


KERNEL = """
	.code32
	.section .text
	.long 0x1badb002, 0, -0x1badb002
	.globl _start
	.type _start, @function
_start:
	mov $stack_end, %esp
	xor %ebp, %ebp
1:	push $3
	call work
	add $4, %esp
	jmp 1b
	.size _start, . - _start
	.globl work
	.type work, @function
work:
	push %ebp
	mov %esp, %ebp
	mov 8(%ebp), %eax
	add %eax, counter
	pop %ebp
	ret
	.size work, . - work
	.bss
	.globl counter
	.type counter, @object
	.size counter, 4
counter:
	.skip 4
	.skip 4096
stack_end:
"""


def machine():
    """A whole machine in QEMU: a kernel of a few lines, from the moment it is switched on."""
    if not shutil.which("qemu-system-i386"):
        return skip("qemu-system-i386: a session", "qemu-system-i386 is not installed (apt-get install qemu-system-x86)")
    source, kernel, sock = (os.path.join(WORK, "kernel" + end) for end in (".s", "", ".sock"))
    with open(source, "w") as f:
        f.write(KERNEL)
    r = subprocess.run(f"as --32 -o {kernel}.o {source} && ld -m elf_i386 -Ttext=0x100000 -o {kernel} {kernel}.o", shell=True, capture_output=True, text=True)
    if r.returncode:
        return skip("qemu-system-i386: a session", "no assembler for it: " + r.stderr[:80])
    child = subprocess.Popen(["qemu-system-i386", "-accel", "tcg", "-m", "16", "-kernel", kernel, "-S", "-gdb", f"unix:{sock},server=on,wait=off", "-display", "none", "-monitor", "none",
                              "-serial", "none", "-parallel", "none", "-nic", "none"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not os.path.exists(sock) and child.poll() is None:
        time.sleep(0.01)
    words = [SCRY, "debug", "unix-connect://" + sock, kernel, "-b", "work+3"]
    for c in ("run", "print u32(counter)", "backtrace", "finish", "print u32(counter)", "stepi", "continue", "registers eip eax", "disassemble $eip 2", "watch counter 4",
              "delete 1", "continue", "print u32(counter)", "memory 0x100000 4", "status"):
        words += ["-e", c]
    r = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=WAIT_S)
    os.killpg(child.pid, signal.SIGKILL)
    child.communicate()
    has("qemu-system-i386: breakpoints, steps, memory, a watchpoint", r, r"^breakpoint 1 at 0x10[0-9a-f]+ work\+0x3$", "^0x0 0$", r"^#1 0x10[0-9a-f]+ _start\+0x", r"^stopped at 0x10[0-9a-f]+ _start\+0x",
        "^0x3 3$", r"^eip +0x0010[0-9a-f]+  work\+0x3", r"^=> 0x10[0-9a-f]+ <work\+0x3>  mov eax,", r"^watchpoint 2, 0x[0-9a-f]+ counter was touched, 0x3 became 0x6, at 0x10[0-9a-f]+ work\+0x",
        "^0x6 6$", "^0x100000: 02 b0 ad 1b ")
    return ok(r.returncode == 0, "qemu-system-i386: it is let go", r.returncode, r.stdout, r.stderr)


def over_ssh(program):
    """A program `ssh` that starts what it is told to here."""
    folder = os.path.join(WORK, "bin")
    os.makedirs(folder)
    with open(folder + "/ssh", "w") as f:
        f.write('#!/bin/sh\nfor word in "$@"; do last=$word; done\nexec sh -c "$last"\n')
    os.chmod(folder + "/ssh", 0o755)
    os.symlink(SCRY, folder + "/scry")
    env = dict(os.environ, PATH=folder + ":" + os.environ["PATH"])
    r = subprocess.run([SCRY, "debug", "ssh://me@host" + program, "-b", "main", "-e", "run", "-e", "image list", "-e", "continue"], capture_output=True, text=True,
                       timeout=WAIT_S, env=env, stdin=subprocess.DEVNULL)
    has("over ssh: the program there, run there", r, "^breakpoint 1 at 0x[0-9a-f]+ main", r"^\[0\] 0x[0-9a-f]+ .*subject", "^exited with status 10$")
    ok("b=10 c=20 - as it was" in r.stdout and r.returncode == 10, "over ssh: what it prints comes, and its status", r.returncode, r.stdout, r.stderr)
    os.unlink(folder + "/scry")
    r = subprocess.run([SCRY, "debug", "ssh://me@host" + program, "-e", "run"], capture_output=True, text=True, timeout=WAIT_S, env=dict(env, PATH=folder),
                       stdin=subprocess.DEVNULL)
    ok(r.returncode and r.stderr.count("scry: ") == 1, "over ssh, without scry there: a reason", r.returncode, r.stderr)


def main():
    words()
    hostile()
    program = os.path.join(WORK, "subject")
    r = subprocess.run(["gcc", "-g", "-O0", "-w", "-pthread", "-o", program, SOURCE], capture_output=True, text=True)
    if r.returncode:
        return skip("debugging at real servers", "no gcc: " + r.stderr[:80])
    with open(WORK + "/late.c", "w") as f:
        f.write("int late_value;\nint late_work(int x) { return late_value += 2 * x + 1; }\n")
    subprocess.run(["gcc", "-O0", "-shared", "-fPIC", "-o", LATE, WORK + "/late.c"], check=True)
    for kind in ("here", "gdbserver", "gdbserver-multi", "lldb-server-14", "lldb-server-19", "qemu-x86_64"):
        tool = kind.removesuffix("-multi")
        if tool != "here" and not shutil.which(tool):
            skip(f"{kind}: a session", f"{tool} is not installed (apt-get install {'lldb-' + tool[-2:] if 'lldb' in tool else 'qemu-user' if 'qemu' in tool else tool})")
            continue
        session(kind, program)
        interrupts(kind, program)
        if kind != "qemu-x86_64":
            interrupts(kind, program, "tbreak main", "run", f"record {os.path.join(WORK, 'spin.log')}")
    made_up(program)
    for kind in ("here", "gdbserver"):
        if kind == "here" or shutil.which(kind):
            forks(kind)
    attached()
    for tool in ("lldb-server-14", "lldb-server-19"):
        lldb_platform(tool, program)
    over_ssh(program)
    machine()
    if shutil.which("gdbserver"):
        no_lines(program)
    return None


try:
    main()
finally:
    shutil.rmtree(WORK, ignore_errors=True)
print(f"1..{count}")
sys.exit(failed > 0)
