#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scry trace: the same fields as strace over programs of this machine, subjects that print the trace they expect, JSON, the summary,
running processes, and programs that mean harm. Prints TAP. SCRY is the program."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tracecmp  # noqa: E402

SCRY = os.environ.get("SCRY", "")
ROOT = tempfile.mkdtemp(prefix="scry-trace-")
ENV = dict(os.environ, SCRY_STORE=ROOT + "/store", LC_ALL="C")
WAIT_S = 120
count = failed = 0

# Results that no two runs share: time, memory, which processor.
VOLATILE = {"statfs", "sysinfo", "getrusage", "times", "clock_gettime", "gettimeofday", "getcpu", "getrandom", "wait4", "futex", "fstatfs"}
# What strace shows otherwise, and why that is kept.
KINDS = {
    ("msgrcv", "argument 2"): "strace shows the whole buffer, not the bytes received",
    ("seccomp", "argument 3"): "strace follows the pointer of SECCOMP_GET_ACTION_AVAIL",
    ("membarrier", "result"): "strace names the bits of MEMBARRIER_CMD_QUERY",
    ("reboot", "arity"): "strace leaves out the argument that the command does not take",
    ("rt_sigsuspend", "result"): "strace says in words how the kernel goes on",
    ("rt_sigreturn", "arity"): "strace shows the mask of the frame",
}


def check(what, good, detail=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}")
    if not good:
        for line in str(detail).splitlines()[:30]:
            print(f"# {line[:300]}")
    sys.stdout.flush()
    return good


def skip(what, why):
    global count
    count += 1
    print(f"ok {count} - {what} # SKIP {why}")


PTRACE = [SCRY, "trace", "--source", "ptrace"]


def scry(*args, tool=PTRACE, **kw):
    kw.setdefault("env", ENV)
    return subprocess.run([*tool, *args], stdin=subprocess.DEVNULL, capture_output=True, timeout=WAIT_S, check=False, **kw)


def compile_c(name, source):
    path = os.path.join(ROOT, name)
    with open(path + ".c", "w", encoding="utf-8") as f:
        f.write(source)
    subprocess.run(["gcc", "-O1", "-w", "-pthread", "-o", path, path + ".c"], check=True)
    return path


# --- what a program says it did ---------------------------------------------------------------------------------------
SUBJECT = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#define SAY(...) printf(__VA_ARGS__)
int main(void)
{
	char buf[64];
	struct stat st;
	int fd = syscall(SYS_openat, AT_FDCWD, "data", O_RDWR | O_CREAT | O_TRUNC, 0600);
	SAY("openat(AT_FDCWD, \"data\", O_RDWR|O_CREAT|O_TRUNC, 0600) = %d\n", fd);
	int n = syscall(SYS_write, fd, "one\n\0two\377", 9);
	SAY("write(%d, \"one\\n\\0two\\377\", 9) = %d\n", fd, n);
	n = syscall(SYS_lseek, fd, 4L, SEEK_SET);
	SAY("lseek(%d, 4, SEEK_SET) = 4\n", fd);
	n = syscall(SYS_read, fd, buf, sizeof(buf));
	SAY("read(%d, \"\\0two\\377\", 64) = 5\n", fd);
	n = syscall(SYS_fstat, fd, &st);
	SAY("fstat(%d, {st_mode=S_IFREG|0600, st_size=9, ...}) = 0\n", fd);
	n = syscall(SYS_openat, AT_FDCWD, (char *)16, O_RDONLY);
	SAY("openat(AT_FDCWD, 0x10, O_RDONLY) = -1 EFAULT (Bad address)\n");
	n = syscall(SYS_openat, AT_FDCWD, "/no/such\n\"name\"", O_PATH | O_NOFOLLOW);
	SAY("openat(AT_FDCWD, \"/no/such\\n\\\"name\\\"\", O_RDONLY|O_NOFOLLOW|O_PATH) = -1 ENOENT (No such file or directory)\n");
	/* A string that ends where the memory does: readable to its last byte. */
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(page + 4096, 4096, PROT_NONE);
	memcpy(page + 4093, "/x", 3);
	n = syscall(SYS_openat, AT_FDCWD, page + 4093, O_RDONLY);
	SAY("openat(AT_FDCWD, \"/x\", O_RDONLY) = -1 ENOENT (No such file or directory)\n");
	memcpy(page + 4094, "/x", 2);
	n = syscall(SYS_openat, AT_FDCWD, page + 4094, O_RDONLY);
	SAY("openat(AT_FDCWD, \"/x\", O_RDONLY) = -1 EFAULT (Bad address)\n");
	int pair[2];
	syscall(SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, pair);
	SAY("socketpair(AF_UNIX, SOCK_DGRAM, 0, [%d, %d]) = 0\n", pair[0], pair[1]);
	struct iovec vec[2] = {{"ab", 2}, {"cde", 3}};
	n = syscall(SYS_writev, pair[0], vec, 2);
	SAY("writev(%d, [{iov_base=\"ab\", iov_len=2}, {iov_base=\"cde\", iov_len=3}], 2) = 5\n", pair[0]);
	struct pollfd pfd = {pair[1], POLLIN | POLLOUT, 0};
	n = syscall(SYS_poll, &pfd, 1L, 0L);
	SAY("poll([{fd=%d, events=POLLIN|POLLOUT}], 1, 0) = 1 ([{fd=%d, revents=POLLIN|POLLOUT}])\n", pair[1], pair[1]);
	n = syscall(SYS_recvfrom, pair[1], buf, 64L, MSG_DONTWAIT, NULL, NULL);
	SAY("recvfrom(%d, \"abcde\", 64, MSG_DONTWAIT, NULL, NULL) = 5\n", pair[1]);
	n = syscall(SYS_recvfrom, pair[1], buf, 64L, MSG_DONTWAIT, NULL, NULL);
	SAY("recvfrom(%d, %p, 64, MSG_DONTWAIT, NULL, NULL) = -1 EAGAIN (Resource temporarily unavailable)\n", pair[1], buf);
	struct sockaddr_un un = {AF_UNIX, "/no/socket"};
	n = syscall(SYS_connect, pair[0], &un, sizeof(un));
	SAY("connect(%d, {sa_family=AF_UNIX, sun_path=\"/no/socket\"}, 110) = -1 ENOENT (No such file or directory)\n", pair[0]);
	n = syscall(SYS_kill, getpid(), 0);
	SAY("kill(%d, 0) = 0\n", getpid());
	fflush(stdout);
	pid_t child = fork();
	if (!child)
		_exit(3);
	int status;
	n = syscall(SYS_wait4, child, &status, 0, NULL);
	SAY("wait4(%d, [{WIFEXITED(s) && WEXITSTATUS(s) == 3}], 0, NULL) = %d\n", child, child);
	SAY("exit_group(7) = ?\n");
	fflush(stdout);
	syscall(SYS_exit_group, 7);
}
"""
SUBJECT_CALLS = "openat,write,lseek,read,fstat,socketpair,writev,poll,recvfrom,connect,kill,wait4,exit_group"


def unpadded(line):
    return re.sub(r"\)\s+= ", ") = ", re.sub(r"^\[pid\s+\d+\] ", "", line.rstrip("\n")))


def test_subject():
    exe = compile_c("subject", SUBJECT)
    for what, more in (("all calls", []), ("calls chosen, by a filter", ["-e", SUBJECT_CALLS])):
        out = os.path.join(ROOT, "subject.trace")
        got = scry(*more, "--to", out, "--", exe, cwd=ROOT)
        want = got.stdout.decode().splitlines()
        lines = [unpadded(line) for line in open(out, encoding="utf-8")]
        at, missing = 0, []
        for line in want: # in this order, with others between them
            try:
                at = lines.index(line, at) + 1
            except ValueError:
                missing.append(line)
        check(f"a program that prints its trace, {what}: each line is there", want and not missing and got.returncode == 7,
              "\n".join(missing) + "\n" + "\n".join(lines[-40:]) + got.stderr.decode())


# --- beside strace ----------------------------------------------------------------------------------------------------
def prepare(work):
    for name, text in (("a", "pear\napple\nfig\n"), ("b", "x" * 5000 + "\n"), ("c.txt", "one two\nthree\n")):
        with open(os.path.join(work, name), "w", encoding="utf-8") as f:
            f.write(text)
        os.utime(os.path.join(work, name), (1000000000, 1000000000))
    os.mkdir(os.path.join(work, "d"))


PROGRAMS = [
    ["cat", "a", "b"], ["ls", "-la", "--time-style=+%s"], ["cp", "-p", "a", "e"], ["mv", "a", "d/a"], ["rm", "-r", "d"], ["mkdir", "-p", "m/n/o"],
    ["ln", "-s", "a", "l"], ["sort", "a"], ["wc", "a", "b"], ["head", "-c", "10", "b"], ["tail", "-n", "1", "a"], ["grep", "-rn", "p", "."],
    ["sed", "s/p/q/", "a"], ["touch", "-d", "@5", "a"], ["chmod", "-R", "u+x", "."], ["dd", "if=b", "of=f", "bs=512", "status=none"], ["tar", "cf", "t.tar", "a", "b"],
    ["find", ".", "-type", "f"], ["stat", "a"], ["id"], ["env", "true"], ["sh", "-c", "echo hi | cat; (exit 3)"], ["gzip", "-k", "b"],
    ["diff", "a", "c.txt"], ["readlink", "-f", "."], ["mkfifo", "p"], ["sh", "-c", "kill -TERM $$"], ["printf", "%s\\n", "x"],
]


def test_strace():
    if not shutil.which("strace"):
        skip("the same fields as strace", "there is no strace")
        return
    works = subprocess.run(["strace", "-f", "-o", "/dev/null", "true"], check=False, capture_output=True).returncode == 0
    if not works:
        skip("the same fields as strace", "strace cannot trace here")
        return
    total, programs = tracecmp.Result(), 0
    for program in PROGRAMS:
        if not shutil.which(program[0]):
            continue
        folder = tempfile.mkdtemp(dir=ROOT)
        total.merge(tracecmp.trace_all(SCRY, program, folder, prepare, "ptrace"))
        shutil.rmtree(folder)
        programs += 1
    other = {k: n for k, n in total.differences.items() if k[0] not in VOLATILE and k not in KINDS}
    detail = "\n".join(f"{n}x {k}: strace {total.samples[k][0]} | scry {total.samples[k][1]}" for k, n in other.items())
    print(f"# {programs} programs, {total.calls} calls, {total.compared} fields compared, {total.equal} equal")
    check("at least 20 programs of this machine are compared", programs >= 20, programs)
    check("every field is strace's, or differs in a way that is listed", not other and total.compared > 4000, detail)
    check("hardly a call is missing", total.unpaired * 200 <= total.calls, total.unpaired)


# --- programs of i386 ----------------------------------------------------------------------------------------------------
COMPAT = r"""
typedef unsigned u;
static inline int call(int nr, u a, u b, u c, u d)
{
	int ret;
	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(nr), "b"(a), "c"(b), "d"(c), "S"(d) : "memory");
	return ret;
}
#define P(p) ((u)(p))
static char st[96], back[12], name[4] = "none";
void _start(void)
{
	u act[5] = {0x1234, 0x10000000, 0, 1 << 11, 0}, half[2] = {0, 1500}, timer[4] = {0, 0, 7, 250000}, pair[2], epoll[3] = {1, 0x55, 0};
	u iov[4] = {P("ab"), 2, P("c"), 1}, old[8];
	u control[4] = {16, 1, 1, 1}, msg[7] = {0, 0, P(iov), 2, P(control), 16, 0}, in[2] = {P(back), 12}, into[7] = {0, 0, P(in), 1, 0, 0, 0};
	u argv[3] = {P("x"), P("y z"), 0}, fd;
	call(174, 10, P(act), 0, 8);                  /* rt_sigaction */
	call(174, 10, 0, P(old), 8);
	call(162, P(half), 0, 0, 0);                  /* nanosleep */
	call(104, 0, P(timer), 0, 0);                 /* setitimer */
	call(105, 0, P(old), 0, 0);                   /* getitimer */
	call(195, P("/"), P(st), 0, 0);               /* stat64 */
	call(360, 1, 1, 0, P(pair));                  /* socketpair */
	call(370, pair[0], P(msg), 0, 0);             /* sendmsg */
	call(372, pair[1], P(into), 0, 0);            /* recvmsg */
	fd = call(329, 0, 0, 0, 0);                   /* epoll_create1 */
	call(255, fd, 1, pair[0], P(epoll));          /* epoll_ctl */
	call(146, 99, P(iov), 2, 0);                  /* writev */
	call(11, P("/nowhere"), P(argv), P(argv + 2), 0);
	call(265, 77, P(old), 0, 0);                  /* clock_gettime */
	call(403, 1, P(old), 0, 0);                   /* clock_gettime64 */
	call(252, 4, 0, 0, 0);
}
"""
COMPAT_WANTED = [
    r'rt_sigaction\(SIGUSR1, \{sa_handler=0x1234, sa_mask=\[USR2\], sa_flags=SA_RESTART\}, NULL, 8\) = 0',
    r'rt_sigaction\(SIGUSR1, NULL, \{sa_handler=0x1234, sa_mask=\[USR2\], sa_flags=SA_RESTART\}, 8\) = 0',
    r'nanosleep\(\{tv_sec=0, tv_nsec=1500\}, NULL\) = 0',
    r'setitimer\(ITIMER_REAL, \{it_interval=\{tv_sec=0, tv_usec=0\}, it_value=\{tv_sec=7, tv_usec=250000\}\}, NULL\) = 0',
    r'getitimer\(ITIMER_REAL, \{it_interval=\{tv_sec=0, tv_usec=0\}, it_value=\{tv_sec=[67], tv_usec=\d+\}\}\) = 0',
    r'stat64\("/", \{st_mode=S_IFDIR\|0?[0-7]+, st_size=\d+, \.\.\.\}\) = 0',
    r'sendmsg\(3, \{msg_name=NULL, msg_namelen=0, msg_iov=\[\{iov_base="ab", iov_len=2\}, \{iov_base="c", iov_len=1\}\], msg_iovlen=2, '
    r'msg_control=\[\{cmsg_len=16, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, cmsg_data=\[1\]\}\], msg_controllen=16, msg_flags=0\}, 0\) = 3',
    r'recvmsg\(4, \{msg_name=NULL, msg_namelen=0, msg_iov=\[\{iov_base="abc", iov_len=12\}\], msg_iovlen=1, msg_controllen=0, msg_flags=.*\}, 0\) = 3',
    r'epoll_ctl\(5, EPOLL_CTL_ADD, 3, \{events=EPOLLIN, data=(0x55|\{u32=85, u64=85\})\}\) = 0',
    r'writev\(99, \[\{iov_base="ab", iov_len=2\}, \{iov_base="c", iov_len=1\}\], 2\) = -1 EBADF \(Bad file descriptor\)',
    r'execve\("/nowhere", \["x", "y z"\], .*/\* 0 vars \*/\) = -1 ENOENT \(No such file or directory\)',
    r'clock_gettime\(0x4d.*, 0x[0-9a-f]+\) = -1 EINVAL \(Invalid argument\)',
    r'clock_gettime64\(CLOCK_MONOTONIC, \{tv_sec=\d+, tv_nsec=\d+\}\) = 0',
    r'exit_group\(4\) = \?',
]


def test_i386():
    exe = os.path.join(ROOT, "compat")
    with open(exe + ".c", "w", encoding="utf-8") as f:
        f.write(COMPAT)
    flags = ["-m32", "-O1", "-w", "-static", "-nostdlib", "-ffreestanding", "-fno-pic", "-no-pie", "-fno-stack-protector", "-msse", "-mstackrealign"]
    made = subprocess.run(["gcc", *flags, "-o", exe, exe + ".c"], capture_output=True, check=False)
    try:
        runs = made.returncode == 0 and subprocess.run([exe], check=False).returncode == 4
    except OSError:
        runs = False
    if not runs:
        skip("calls of i386", "no such program can be made, or run by this kernel")
        return
    for source in ("ptrace", "bpf"):
        got = scry("--", exe, tool=[SCRY, "trace", "--source", source])
        if source == "bpf" and b"eBPF" in got.stderr and got.returncode != 4:
            skip("calls of i386 by eBPF", "it is refused here")
            continue
        text = "\n".join(unpadded(line) for line in got.stderr.decode().splitlines())
        missing = [want for want in COMPAT_WANTED if not re.search("^" + want + "$", text, re.M)]
        check(f"calls of i386 by {source}, with their structs", not missing, "\n".join(missing) + "\n" + text)


# --- forms of output ----------------------------------------------------------------------------------------------------
KEYS = ["v", "phase", "seq", "cpu", "time", "pid", "tid", "ppid", "comm", "exe", "container", "event", "name"]
PAYLOAD = {"syscall": {"abi", "nr", "args", "ret", "errno", "ns"}, "exec": {"argv"}, "fork": {"child_tid", "child_pid"},
           "exit": {"code", "signal", "last_thread"}, "signal": {"signal", "code", "from_pid"}, "mmap": {"addr", "length", "prot", "file_offset", "path"}}


def good_shape(ev):
    more = set(ev) - set(KEYS) - {"site", "stack"}
    want = PAYLOAD.get(ev["event"])
    args = all(list(a)[:4] == ["name", "type", "value", "text"] and a["status"] in ("ok", "absent", "truncated", "faulted", "late", "raced")
               and a["value"].startswith("0x") for a in ev.get("args", []))
    return list(ev)[:len(KEYS)] == KEYS and ev["v"] == 1 and ev["phase"] in ("complete", "unfinished") and want is not None and more == want and args


def test_json():
    got = scry("--json", "--", "sh", "-c", "ls / >/dev/null; kill -USR1 $$", cwd=ROOT)
    *events, end = [json.loads(line) for line in got.stdout.decode().splitlines()]
    same_end = end == {"end": True, "events": len(events), "missing": 0, "misses_unknown": False}
    check("JSON: the last line says that it is the last", same_end, end)
    bad = [ev for ev in events if not good_shape(ev)]
    check("JSON: each event has the keys of the schema", events and not bad, bad[:3])
    kinds = {ev["event"] for ev in events}
    check("JSON: calls, programs, processes, signals", {"syscall", "exec", "exit", "signal", "mmap"} <= kinds, kinds)
    last = events[-1]
    check("JSON: how it ended", last["event"] == "exit" and last["signal"] == "SIGUSR1" and last["last_thread"], last)
    execs = [ev["argv"] for ev in events if ev["event"] == "exec"]
    check("JSON: what was run, with which words", ["ls", "/"] in execs, execs)


def test_stack_size():
    def sites(*args):
        lines = scry("--json", "-e", "write", *args, "--", "sh", "-c", "echo a").stdout.decode().splitlines()
        return [ev["site"] and ev["site"].get("module") for ev in map(json.loads, lines) if ev.get("name") == "write"]
    usual = sites()
    check("who made a call is known without asking for it", usual and all(usual) and "libc" not in os.path.basename(usual[0]), usual)
    check("without a stack nobody outside of the C library is known", not [m for m in sites("--stack-size", "0") if m and "libc" not in m])
    for size in ("3K", "x", "-1"):
        got = scry("--stack-size", size, "--", "true")
        check(f"--stack-size {size} is refused", got.returncode == 2 and b"--stack-size" in got.stderr, got.stderr)


def test_forms():
    plain = scry("--", "cat", "/dev/null")
    lines = plain.stderr.decode().splitlines()
    calls = [line for line in lines if re.match(r"\w+\(", line)]
    check("a line for each call, on stderr", plain.returncode == 0 and len(calls) > 10 and calls[0].startswith("execve(") and
          lines[-1] == "+++ exited with 0 +++", plain.stderr.decode())
    table = scry("--table", "--", "cat", "/dev/null").stderr.decode().splitlines()
    check("a table", "RESULT" in table[0] and len(table) > len(calls) and any("execve" in row for row in table), table[:5])
    summary = scry("-c", "--", "cat", "/dev/null").stderr.decode().splitlines()
    total = int(summary[-1].split()[4]) if summary else 0
    rows = sum(int(row.split()[4]) for row in summary[1:-1])
    shown = len([line for line in calls if not line.startswith("exit_group")])
    check("the summary counts each call", rows == total and abs(total - shown) <= 2, [summary, shown])
    doc = json.loads(scry("-c", "--json", "--", "cat", "/dev/null").stdout)
    check("the summary as JSON", {"name", "calls", "errors", "timed", "ns", "max_ns"} == set(doc["calls"][0]), doc)
    fds = scry("-y", "-e", "openat,close", "--", "cat", "/dev/null").stderr.decode()
    check("descriptors with what they are open on", re.search(r'openat\(AT_FDCWD, "/dev/null".* = 3</dev/null>', fds) and
          "close(3</dev/null>)" in fds, fds)
    only = scry("-e", "trace=%file", "-e", "!openat", "--", "cat", "/dev/null").stderr.decode()
    check("classes, and all but some", "execve(" in only and "openat(" not in only and "read(" not in only, only)
    until = scry("--until", "3", "--", "cat", "/dev/null").stderr.decode().splitlines()
    check("an end after so many events", len(until) == 3, until)
    for words in (["--ring", "3Q"], ["--ring", "1G"], ["--file-limit", "1M"], ["-o", ROOT + "/n.trc", "--keep", "0"], ["-o", ROOT + "/n.trc", "--file-limit", "-1"]):
        check(f"refused: {' '.join(words[-2:])}", scry(*words, "--", "true").returncode not in (0, 4))
    file = ROOT + "/small.trc"
    many = ["perl", "-e", "for (1 .. 5000) { open(F, '</dev/null'); close(F) }"]
    said = scry("-o", file, "--file-limit", "200K", "--", *many).stderr.decode()
    check("a file that is full ends the trace, and says so", "limit of the file was reached" in said and os.path.getsize(file) <= 200 << 10, [os.path.getsize(file), said])
    said = scry("-o", file, "--file-limit", "300K", "--keep", "3", "--", *many).stderr.decode()
    parts = [p for p in (file, file + ".1", file + ".2", file + ".3") if os.path.exists(p)]
    last = subprocess.run([SCRY, "trace", "--read", file], capture_output=True, text=True, env=ENV, check=False).stdout
    check("of several files the newest are kept", len(parts) == 3 and sum(map(os.path.getsize, parts)) <= 300 << 10 and "exited with 0" in last,
          [said, parts, last[-300:]])


def names(text):
    return [(ev["event"], ev["name"]) for ev in map(json.loads, text.decode().splitlines()) if ev.get("phase") == "complete"]


def test_ignored():
    """What whoever starts scry has ignored is ignored by the program, too."""
    got = subprocess.run(["sh", "-c", "trap '' INT; exec \"$@\"", "sh", SCRY, "trace", "--source", "ptrace", "-e", "none", "--", "grep", "^SigIgn", "/proc/self/status"],
                         capture_output=True, check=False, timeout=100)
    check("an ignored SIGINT stays ignored", int(got.stdout.split()[1], 16) & 2, got.stdout + got.stderr)


def test_files():
    path = ROOT + "/recorded"
    got = scry("-o", path, "-e", "openat,read", "--", "cat", "/dev/null")
    check("a trace file: what was recorded is said", got.returncode == 0 and b"events" in got.stderr, got.stderr)
    shown = scry("--json", "-e", "openat,read", "--", "cat", "/dev/null")
    again = scry("--json", "--read", path, tool=[SCRY, "trace"])
    same = [n for n in names(again.stdout) if n[0] == "syscall"] == [n for n in names(shown.stdout) if n[0] == "syscall"]
    check("a trace file: shown again, with the same calls", again.returncode == 0 and same and b"/dev/null" in again.stdout, again.stdout[-2000:])
    some = scry("--read", path, "-e", "openat", tool=[SCRY, "trace"]).stdout
    check("a trace file: some of it", b"openat(" in some and b"read(" not in some, some)
    with open(path, "r+b") as f:
        f.truncate(os.path.getsize(path) // 2)
    check("a trace file that is cut is read as far as it goes", scry("--read", path, tool=[SCRY, "trace"]).returncode in (0, 3))
    cut = scry("--read", path, "-c", "--json", tool=[SCRY, "trace"])
    check("and its summary says that something is missing", cut.returncode == 3 or
          (json.loads(cut.stdout)["misses_unknown"] and b"is not known" in cut.stderr), cut.stdout[-300:] + cut.stderr)
    check("a file that is none", scry("--read", "/bin/sh", tool=[SCRY, "trace"]).returncode == 3)
    check("a file beside a program is a usage error", scry("--read", path, "--", "true", tool=[SCRY, "trace"]).returncode == 2)


STACKS = """
#include <sys/mman.h>
#include <unistd.h>
__attribute__((noinline)) int inner(const char *s) { return chdir(s) + 1; }
int main(void)
{
	void *p = mmap(0, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return inner("/") + mprotect(p, 4096, PROT_READ | PROT_EXEC) - 1;
}
"""


def test_modules():
    """What is mapped where is in a file of the fallback, too: read back its calls have the frames that they had."""
    prog = compile_c("stacks", STACKS)
    path = ROOT + "/stacks.trc"
    for wanted in ("all", "chdir"):
        live = scry("-e", wanted, "--json", "--", prog, tool=PTRACE)
        kept = scry("-e", wanted, "-o", path, "--", prog, tool=PTRACE)
        check(f"ptrace, {wanted}: recorded", kept.returncode == live.returncode == 0, kept.stderr)
        texts = live.stdout, scry("--read", path, "--json", tool=[SCRY, "trace"]).stdout
        texts = [[json.loads(line) for line in t.decode().splitlines()[:-1]] for t in texts]
        frames = [[(e["name"], [(os.path.basename(f.get("module") or ""), f.get("func")) for f in e["stack"]]) for e in t if e["event"] == "syscall"] for t in texts]
        sites = [(e["name"], (e["site"] or {}).get("func")) for e in texts[1] if e["event"] == "syscall"]
        check(f"ptrace, {wanted}: frames as they were", frames[0] == frames[1] and ("chdir", "inner") in sites, [p for p in zip(*frames) if p[0] != p[1]] or sites)
        maps = [[(os.path.basename(e["path"] or ""), e["prot"]) for e in t if e["event"] == "mmap"] for t in texts]
        check(f"ptrace, {wanted}: mappings", maps[0] == maps[1] == [("libc.so.6", "PROT_READ|PROT_EXEC"), ("", "PROT_READ|PROT_EXEC")], maps)
    subject = subprocess.Popen(["sleep", "1000"])
    try:
        while os.path.basename(os.readlink(f"/proc/{subject.pid}/exe")) != "sleep":
            pass
        kept = subprocess.run([*PTRACE, "-p", str(subject.pid), "-o", path, "--until", "1s"], capture_output=True, timeout=60)
        text = scry("--read", path, "--json", tool=[SCRY, "trace"]).stdout.decode()
    finally:
        subject.kill()
        subject.wait()
    names = {os.path.basename(e["path"] or "") for e in map(json.loads, text.splitlines()[:-1]) if e["event"] == "mmap"}
    check("ptrace: what a process had mapped before", {"sleep", "libc.so.6"} <= names, (names, kept.stderr))


FILTERED = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct sock_filter f[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpgid, 0, 1), BPF_STMT(BPF_RET | BPF_K, (unsigned)strtoul(argv[1], 0, 0)),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog p = {4, f};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
		return 77;
	syscall(SYS_getpgid, 5);
	return syscall(SYS_getuid) != getuid();
}
"""


def test_filtered():
    """Programs that refuse calls of their own by a filter: such a call is seen, whichever are asked for, and the program sees what it would."""
    prog = compile_c("filtered", FILTERED)
    for name, word, want in (("an error", "0x50001", r"getpgid\(5\) += -1 EPERM .*\ngetuid\(\)"), ("the end", "0x80000000", r"getpgid\(5\)(.*\n)+.*killed by SIGSYS"),
                             ("a signal", "0x30000", r"getpgid\(5\).*\n--- SIGSYS (.*\n)+.*killed by SIGSYS")):
        for source in ("ptrace", "bpf"):
            for wanted in ("all", "getpgid,getuid"):
                got = scry("-e", wanted, "--", prog, word, tool=[SCRY, "trace", "--source", source])
                if got.returncode in (4, 77):
                    skip(f"{source}, {wanted}: a filter that gives {name}", "it is refused here")
                    continue
                check(f"{source}, {wanted}: a filter that gives {name}", re.search(want, got.stderr.decode()), got.stderr[-900:])
    got = scry("--", prog, "0x7ff00000", tool=PTRACE)
    check("ptrace: a tracer that a filter calls is not scry", re.search(r"getpgid\(5\) += -1 ENOSYS", got.stderr.decode()), got.stderr[-500:])


def test_kernel():
    """The kernel's own records, where they are to be had."""
    bpf = [SCRY, "trace", "--source", "bpf"]
    got = scry("--json", "--", "sh", "-c", "ls /nope; cat /dev/null", tool=bpf)
    if got.returncode == 4:
        skip("a trace by eBPF", got.stderr.decode().splitlines()[0])
        return
    *events, _ = [json.loads(line) for line in got.stdout.decode().splitlines()]
    opened = [ev for ev in events if ev["name"] == "openat" and ev["args"][1]["text"] == "/dev/null"]
    check("by eBPF: calls with their paths", opened and opened[0]["comm"] == "cat" and opened[0]["exe"].endswith("/cat"), got.stdout[-3000:])
    check("by eBPF: programs and processes, to the end of the last", [e["event"] for e in events].count("exit") >= 2 and
          any(e["event"] == "exec" and "ls" in e["argv"] for e in events), got.stdout[-3000:])
    numbered = [e for e in events if e["seq"]]
    check("by eBPF: each record has its number", len({(e["cpu"], e["seq"]) for e in numbered}) == len(numbered) > 50)


def shape_of(tool, source):
    """Of a run its events, without what is another in each: numbers of processes, addresses, times."""
    code = ("import os, signal, threading; signal.signal(signal.SIGUSR1, lambda *a: None); os.kill(os.getpid(), signal.SIGUSR1);"
            "t = threading.Thread(target=os.getppid); t.start(); t.join(); pid = os.fork() or os._exit(3); os.waitpid(pid, 0);"
            "os.chdir('/'); open('/dev/null').close(); os.path.exists('/nope'); os.execv('/bin/true', ['true', 'x'])")
    got = scry("--json", "-e", "trace=openat,newfstatat,chdir,execve,getppid,kill,clone,clone3,exit_group,wait4", "--", sys.executable, "-S", "-c", code,
               tool=tool + ["--source", source])
    *events, _ = [json.loads(line) for line in got.stdout.decode().splitlines()] or [None]
    shapes = []
    for ev in events:
        args = [(a["name"], a["type"], a["status"], a["text"] if a["type"] in ("path", "string") else None) for a in ev.get("args", [])]
        shapes.append((ev["event"], ev["name"], ev["phase"], ev.get("errno"), args, ev.get("argv"), ev["comm"], ev["exe"], ev.get("signal"), ev.get("code"),
                       ev["pid"] == events[0]["pid"], bool(ev["ppid"])))
    return got, sorted(map(repr, shapes)), [ev for ev in events if ev["event"] == "signal"]


def test_hooks():
    """The three ways to be called by the kernel give the same; what one of them cannot know it says."""
    got, want, signals = shape_of([SCRY, "trace"], "tp_btf")
    if got.returncode == 4:
        skip("the ways eBPF is called", got.stderr.decode().splitlines()[0])
        return
    check("tp_btf: a signal with who sent it", signals and signals[0]["from_pid"] == signals[0]["pid"], signals)
    for source in ("raw_tp", "perf"):
        got, shapes, signals = shape_of([SCRY, "trace"], source)
        if got.returncode == 4:
            skip(f"events by {source}", got.stderr.decode().splitlines()[0])
            continue
        check(f"the same events by {source}", shapes == want and len(want) > 20, "\n".join(sorted(set(shapes) ^ set(want))))
        check(f"{source}: who sent a signal", signals and signals[0]["from_pid"] == (None if source == "perf" else signals[0]["pid"]), signals)


def test_status():
    """The program's own; 125 for what went wrong before."""
    sources = [[SCRY, "trace", "--source", s] for s in ("ptrace", "bpf")]
    for tool in sources:
        if scry("--", "true", tool=tool).returncode == 4:
            skip("exit status by eBPF", "it is refused here")
            continue
        for words, want in ((["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -TERM $$"], 128 + 15), (["/no/such/program"], 125), (["sh", "-c", "sh -c 'exit 3'; true"], 0)):
            got = scry("--json", "--", *words, tool=tool)
            check(f"exit status by {tool[-1]} of {' '.join(words)}: {want}", got.returncode == want, [got.returncode, got.stderr])
        got = scry("--until", "3", "--", "sh", "-c", "sleep 0.1; exit 9", tool=tool)
        check(f"by {tool[-1]}: a trace that ends before its program", got.returncode == 0, [got.returncode, got.stderr])


def exec_of(tool, *words):
    """What a program that becomes another out of memory is shown to call."""
    code = ("import os; fd = os.memfd_create('m', 0); os.write(fd, open('/bin/true', 'rb').read()); "
            "os.execve(fd, ['first', 'second'], {f'V{i}': 'x' * 20 for i in range(60)})")
    got = scry("--json", *words, "--", sys.executable, "-c", code, tool=tool)
    return got, [json.loads(line) for line in got.stdout.decode().splitlines()][:-1]


def test_exec():
    """A program that becomes another keeps what it was called with, as far as it was read: the kernel forgets it, and calls it execve."""
    for name, tool in (("ptrace", PTRACE), ("bpf", [SCRY, "trace", "--source", "bpf"])):
        for words in ([], ["-e", "execveat"]):
            got, events = exec_of(tool, *words)
            if got.returncode == 4:
                skip(f"{name}: execveat", got.stderr.decode().splitlines()[0])
                break
            done = [e for e in events if e["event"] == "syscall" and e["name"] == "execveat" and e["phase"] == "complete"]
            if not check(f"{name} {' '.join(words)}: execveat is shown as such", len(done) == 1 and done[0]["ret"] == "0x0", got.stdout[-2000:]):
                continue
            args = {a["name"]: a for a in done[0]["args"]}
            check(f"{name} {' '.join(words)}: with its arguments", args["argv"]["text"] == '["first", "second"]' and args["flags"]["text"] == "AT_EMPTY_PATH",
                  done[0])
            number = re.search(r"/\* (at least )?(\d+) vars", args["envp"]["text"])
            is_whole = not number[1] and number[2] == "60" and args["envp"]["status"] in ("ok", "late")
            is_part = number[1] and int(number[2]) < 60 and args["envp"]["status"] in ("truncated", "faulted")
            check(f"{name} {' '.join(words)}: an environment that is not whole says so", is_whole or is_part, args["envp"])
            _, others = exec_of(tool, "-e", "execve")
            check(f"{name}: with -e execve it is not among them", [e["name"] for e in others if e["event"] == "syscall"] == ["execve"], others)
            check(f"{name} {' '.join(words)}: nothing is called that was not", not any(
                e["event"] == "syscall" and e["name"] == "execve" and any(a["value"] == "0x0" for a in e["args"]) for e in events))


COMMON = {"v", "phase", "seq", "cpu", "time", "pid", "tid", "ppid", "comm", "exe", "container", "event", "name", "site", "stack"}
# Keys of an event besides those, each set that may be; docs/tracing.md has the same ones.
PAYLOADS = {
    "exec": [{"argv"}, {"argv", "argv_status"}],
    "fork": [{"child_tid", "child_pid"}],
    "exit": [{"code", "signal", "last_thread"}],
    "mmap": [{"addr", "length", "prot", "file_offset", "path"}],
    "signal": [{"signal", "code", "from_pid"}, {"signal", "code", "fault_addr"}],
    "lost": [{"count", "first_seq", "last_seq", "reason"}],
}
HEX = {"addr", "length", "file_offset", "fault_addr", "time"}
SIGNALS = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int got;
static void on(int s) { got |= s == SIGALRM; }
int main(void)
{
	signal(SIGUSR1, on);
	signal(SIGALRM, on);
	kill(getpid(), SIGUSR1);
	ualarm(1000, 0);
	while (!got)
		usleep(1000);
	if (!fork()) {
		execl("/bin/true", "true", "one", NULL);
		_exit(1);
	}
	wait(NULL);
	if (!fork())
		*(volatile int *)8 = 1;
	wait(NULL);
	return 3;
}
"""


def good_payload(e):
    keys = set(e) - COMMON
    texts = all(re.fullmatch("0x[0-9a-f]+", e[k]) for k in HEX & keys)
    numbers = all(isinstance(e[k], int) for k in {"child_tid", "child_pid"} & keys)
    return COMMON <= set(e) and keys in PAYLOADS[e["event"]] and texts and numbers


def test_payloads():
    """What events other than calls have: the keys that are documented and no others."""
    prog = compile_c("signals", SIGNALS)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/tracing.md"), encoding="utf-8") as f:
        rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", f.read().split("The others have")[1].split("The last line")[0], re.M)
    told = {kind: set(re.findall(r"`(\w+)`", text.split("(`")[0])) for kind, text in rows if kind in PAYLOADS}
    check("payloads as the manual has them", told == {k: set().union(*v) for k, v in PAYLOADS.items()}, told)
    kinds = {"exec", "fork", "exit", "signal", "mmap"}
    for name in ("ptrace", "bpf"):
        got = scry("--json", "--", prog, tool=[SCRY, "trace", "--source", name])
        if got.returncode == 4:
            skip(f"{name}: payloads", got.stderr.decode().splitlines()[0])
            continue
        others = [e for e in map(json.loads, got.stdout.decode().splitlines()[:-1]) if e["event"] in PAYLOADS]
        check(f"{name}: every kind of event", {e["event"] for e in others} == kinds, {e["event"] for e in others})
        bad = [e for e in others if not good_payload(e)]
        check(f"{name}: with its keys", not bad, bad[:1])
        died = [e for e in others if e["event"] == "exit" and e["signal"]]
        fault = [e for e in others if e["event"] == "signal" and e["signal"] == "SIGSEGV"]
        sent = [e for e in others if e["event"] == "signal" and e["signal"] == "SIGUSR1"]
        made = {e["child_pid"] for e in others if e["event"] == "fork"}
        check(f"{name}: who died of what", [(e["signal"], e["code"], e["pid"] in made) for e in died] == [("SIGSEGV", None, True)] and
              [e["fault_addr"] for e in fault] == ["0x8"] and [e["from_pid"] for e in sent] == [sent[0]["pid"]], others)
        check(f"{name}: a clock is no process", [e["from_pid"] for e in others if e["event"] == "signal" and e["signal"] == "SIGALRM"] == [None], others)
        text = scry("-e", "none", "--", prog, tool=[SCRY, "trace", "--source", name]).stderr.decode()
        check(f"{name}: and as text", re.search(r"--- SIGSEGV \{si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=0x8", text), text)
        check(f"{name}: what it became", [e["argv"] for e in others if e["event"] == "exec"][1:] == [["true", "one"]], others)


FLOOD = """
#include <sys/syscall.h>
#include <unistd.h>
int main(void) { for (;;) syscall(SYS_getppid); }
"""


ENDS = r"""
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int runs;
static void *wait_here(void *arg) { for (runs = 1;;) pause(); return arg; }
int main(void)
{
	pthread_t t;
	int pid = fork();
	if (!pid)
		for (;;)
			pause();
	kill(pid, SIGKILL);
	waitpid(pid, 0, 0);
	pthread_create(&t, 0, wait_here, 0);
	while (!runs)
		usleep(1000);
	syscall(SYS_exit_group, 7);
}
"""


def test_ends():
    """Of what ends a thread, and of the memory of who made it, a tracer in the kernel knows less: nothing is made up for it."""
    prog = compile_c("ends", ENDS)
    got = scry("--json", "-e", "clone3,kill", "--", prog, tool=[SCRY, "trace", "--source", "bpf"])
    if got.returncode == 4:
        return skip("ends of threads by eBPF", got.stderr.decode().splitlines()[0])
    events = [json.loads(line) for line in got.stdout.decode().splitlines()[:-1]]
    kills = [e for e in events if e["event"] == "signal" and e["signal"] == "SIGKILL"]
    check("SIGKILL: neither a code nor who sent it is made up", got.returncode == 7 and kills and
          all(e["code"] is None and e["from_pid"] is None for e in kills), events)
    made = [e for e in events if e["name"] == "clone3" and e["event"] == "syscall"]
    check("a thread that was made: who made it has the words of the call", all((e["args"][0]["status"] == "absent") == (e["ret"] == "0x0") for e in made), made)


def test_flood():
    """Calls faster than they can be read: a trace ends when it is told to, and counts what it missed."""
    prog = compile_c("flood", FLOOD)
    bpf = [SCRY, "trace", "--source", "bpf"]
    for words, stop in ((["--until", "300ms"], False), (["--until", "1000"], False), ([], True)):
        to = os.path.join(ROOT, "flood.json")
        # The program goes on, with the descriptors it was given.
        with open(os.path.join(ROOT, "flood.err"), "w+b") as err:
            p = subprocess.Popen([*bpf, "--ring", "64K", "--json", "--stacks", "--to", to, *words, "--", prog], stdout=err, stderr=err, env=ENV)
            while stop and p.poll() is None and not (os.path.exists(to) and os.path.getsize(to)):
                time.sleep(0.01)
            p.send_signal(signal.SIGINT if stop else 0)
            p.wait(timeout=WAIT_S)
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    if os.readlink(f"/proc/{pid}/exe") == os.path.realpath(prog):
                        os.kill(int(pid), signal.SIGKILL)
                except OSError:
                    pass
            if p.returncode == 4:
                err.seek(0)
                skip("a flood of calls", err.read().decode().splitlines()[0])
                return
        with open(to, "rb") as f:
            *events, end = f.read().splitlines()
        lost = [e for e in map(json.loads, events) if e["event"] == "lost"]
        check("what was missed is told where it was", all(good_payload(e) and e["count"] == e["last_seq"] - e["first_seq"] + 1 for e in lost), lost[:1])
        check(f"a flood of calls ends: {' '.join(words) or 'interrupted'}", json.loads(end).get("end") is True, end)
        os.unlink(to)


def test_words():
    check("nothing to trace is a usage error", scry().returncode == 2)
    got = scry("-e", "frob", "--", "true")
    check("a call that is none is a usage error", got.returncode == 2 and b"frob" in got.stderr, got.stderr)
    check("a program that is not there", scry("--", "/no/such/program").returncode == 125)
    with open(ROOT + "/no-program", "w", encoding="utf-8") as f:
        f.write("text")
    check("a file that is no program", scry("--", ROOT + "/no-program").returncode != 0)
    check("a process that is not there", scry("-p", "2147483646").returncode == 1)
    for words in (["-t", ""], ["--container", ""]):
        check(f"{words[0]} with an empty name is a usage error", scry(*words, "--until", "1").returncode == 2)
    os.makedirs(ROOT + "/path/cat")
    got = scry("-e", "none", "--", "cat", "/dev/null", env=dict(ENV, PATH=ROOT + "/path:" + os.environ["PATH"]))
    check("a folder in PATH is no program", got.returncode == 0, got.stderr)
    # Why a process cannot be traced.
    dead = subprocess.Popen(["true"])
    os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
    got = scry("-p", str(dead.pid))
    check("a process that has ended", got.returncode == 1 and b"has ended" in got.stderr, got.stderr)
    dead.wait()
    # Leaks are not looked for beneath a tracer: that takes ptrace(2), too.
    got = scry("-e", "none", "--", *PTRACE, "-e", "none", "--", "true", env=dict(ENV, ASAN_OPTIONS="detect_leaks=0"))
    check("what is traced already, and by whom", got.returncode == 125 and b"has traced it first" in got.stderr, [got.returncode, got.stderr])
    if os.getuid() == 0:
        theirs = shutil.copy(SCRY, ROOT + "/scry") # where others may read it
        os.chmod(ROOT, 0o755)
        got = subprocess.run([theirs, *PTRACE[1:], "-p", str(os.getpid())], env=ENV, capture_output=True, check=False, timeout=WAIT_S,
                             preexec_fn=lambda: (os.setgid(65534), os.setuid(65534)))
        check("a process of somebody else: exit status 4 and what to do", got.returncode == 4 and b"sudo" in got.stderr, [got.returncode, got.stderr])
    else:
        got = scry("-p", "1")
        check("a process of somebody else: exit status 4 and what to do", got.returncode == 4 and b"sudo" in got.stderr, [got.returncode, got.stderr])


NANOSLEEP = 115 if os.uname().machine == "aarch64" else 230


# --- processes that run -------------------------------------------------------------------------------------------------
def wait_for(path, what):
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        if os.path.exists(path) and what in open(path, encoding="utf-8", errors="replace").read():
            return True
        time.sleep(0.05)
    return False


def test_attach():
    loop = subprocess.Popen(["sh", "-c", "while :; do cat /dev/null; done"], stdin=subprocess.DEVNULL)
    out = ROOT + "/attached"
    tracer = subprocess.Popen([*PTRACE, "-p", str(loop.pid), "--tree", "--to", out], env=ENV)
    seen = wait_for(out, "wait4(")
    tracer.send_signal(signal.SIGINT)
    tracer.wait(timeout=WAIT_S)
    state = open(f"/proc/{loop.pid}/status", encoding="utf-8").read()
    check("a running process is traced, and goes on afterwards", seen and loop.poll() is None and "TracerPid:\t0" in state, state)
    loop.kill()
    loop.wait()


def test_waiting():
    """A process that stands still: what it waits in began before the trace."""
    sleeper = subprocess.Popen(["sh", "-c", f"echo $$ >{ROOT}/pid; exec sleep 1000"], stdin=subprocess.DEVNULL)
    sleeps(ROOT + "/pid", sleeper)
    os.remove(ROOT + "/pid")
    want = r"^(clock_nanosleep\(CLOCK_REALTIME, |restart_syscall\().*<unfinished \.\.\.>$"
    for source in ("ptrace", "bpf"):
        tool = [SCRY, "trace", "--source", source]
        got = scry("-p", str(sleeper.pid), "--until", "1s", tool=tool)
        if got.returncode == 4:
            skip(f"what a process waits in, by {source}", "it is refused here")
            continue
        check(f"what a process waits in, by {source}", re.search(want, got.stdout.decode(), re.M), got.stdout + got.stderr)
        if source == "bpf":
            got = scry("-p", str(sleeper.pid), "--until", "1s", "-o", ROOT + "/waits", tool=tool)
            again = scry("--read", ROOT + "/waits")
            check("and in a file", re.search(want, again.stdout.decode(), re.M), again.stdout + again.stderr)
            events = scry("--read", ROOT + "/waits", "--json").stdout.decode().splitlines()
            calls = [e for e in map(json.loads, events) if e.get("event") == "syscall"]
            check("which it has once, as begun", len(calls) == 1 and calls[0]["phase"] == "unfinished" and calls[0]["ret"] is None, calls)
            got = scry("-p", str(sleeper.pid), "--until", "1s", "-e", "openat", tool=tool)
            check("and not where it was not asked for", b"unfinished" not in got.stdout, got.stdout)
    sleeper.kill()
    sleeper.wait()


def test_container():
    """Of the whole machine a container alone, which is made while the trace runs already."""
    what = "a container that is made while its trace runs"
    digits = f"5c59{os.getpid():08x}" + "0" * 52
    roots = [r for r in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/freezer") if os.access(r + "/cgroup.procs", os.W_OK)]
    if scry("--", "true", tool=[SCRY, "trace", "--source", "bpf"]).returncode:
        return skip(what, "tracing with eBPF is refused here")
    folder = roots[0] + "/scry-e2e-" + digits if roots else ""
    try:
        os.mkdir(folder)
    except OSError:
        return skip(what, "no cgroup can be made here")
    os.rmdir(folder)
    out = ROOT + "/container"
    tracer = subprocess.Popen([SCRY, "trace", "--source", "bpf", "--container", digits[:12], "-e", "getppid", "--until", "3", "--to", out],
                              env=ENV, stderr=subprocess.PIPE)
    others = subprocess.Popen([sys.executable, "-c", "import os, time\nwhile True: os.getppid(), time.sleep(.001)"])
    end = time.monotonic() + WAIT_S
    insiders = set()
    while tracer.poll() is None and time.monotonic() < end:
        os.mkdir(folder)
        inside = subprocess.Popen([sys.executable, "-c", f"import os, time\nopen('{folder}/cgroup.procs', 'w').write('0')\n"
                                   "for i in range(20): os.getppid(), time.sleep(.02)"])
        insiders.add(inside.pid)
        inside.wait(timeout=WAIT_S)
        for _ in range(1000):
            try:
                os.rmdir(folder)
                break
            except OSError:
                time.sleep(0.01)
    others.kill()
    others.wait()
    tracer.kill()
    said = tracer.communicate()[1]
    lines = open(out, encoding="utf-8").read().splitlines()
    whose = {int(n) for n in re.findall(r"^\[pid +(\d+)\] getppid\(", "\n".join(lines), re.MULTILINE)}
    check(what, len(lines) == 3 and whose and whose <= insiders, [said, insiders, lines])
    return None


def test_killed():
    for what, more, lives in (("with a filter in it ends with scry", ["-e", "openat"], False), ("goes on without scry", [], True)):
        out = ROOT + "/killed"
        if os.path.exists(out):
            os.remove(out)
        command = f"echo $$ >{ROOT}/pid; while :; do cat /dev/null; done"
        tracer = subprocess.Popen([*PTRACE, *more, "--to", out, "--", "sh", "-c", command], env=ENV)
        wait_for(out, "/dev/null")
        pid = int(open(ROOT + "/pid", encoding="utf-8").read())
        tracer.kill()
        tracer.wait()
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end: # it is untraced, or gone, some time after
            try:
                state = open(f"/proc/{pid}/status", encoding="utf-8").read()
            except OSError:
                state = ""
            gone = not state or "State:\tZ" in state
            if gone or (lives and "TracerPid:\t0" in state):
                break
            time.sleep(0.05)
        check(f"a program started here {what} that was killed", gone != lives, state)
        if not gone:
            os.kill(pid, signal.SIGKILL)


def test_stopped():
    """What timeout(1) does: the signal to scry twice at once. All that was seen is shown, and the call that has not come back."""
    for source in ("ptrace", "bpf"):
        out = ROOT + "/stopped"
        tracer = subprocess.Popen([SCRY, "trace", "--source", source, "--to", out, "--", "sh", "-c", f"echo $$ >{ROOT}/pid; exec sleep 1000"],
                                  env=ENV, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not sleeps(ROOT + "/pid", tracer):
            skip(f"a trace that is told to stop, by {source}", "it is refused here")
            continue
        tracer.send_signal(signal.SIGTERM)
        tracer.send_signal(signal.SIGTERM)
        status = tracer.wait(WAIT_S)
        try: # what was started goes on where no filter is in it
            os.kill(int(open(ROOT + "/pid", encoding="utf-8").read()), signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.remove(ROOT + "/pid")
        text = open(out, encoding="utf-8", errors="replace").read()
        check(f"a trace that is told to stop, by {source}", status == 130 and '"sleep"' in text and
              re.search(r"clock_nanosleep\(.* <unfinished \.\.\.>\n", text), f"status {status}\n" + text[-600:])


def sleeps(pid_file, tracer):
    """Waits until the process whose number is in the file sleeps; false: the tracer ended before."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end and tracer.poll() is None:
        try:
            pid = int(open(pid_file, encoding="utf-8").read())
            state = open(f"/proc/{pid}/stat", encoding="utf-8").read().rsplit(")", 1)[1].split()[0]
            if state == "S" and open(f"/proc/{pid}/syscall", encoding="utf-8").read().split()[0] == str(NANOSLEEP):
                return True
        except (OSError, ValueError):
            pass
        time.sleep(0.05)
    return False


# --- programs that mean harm --------------------------------------------------------------------------------------------
HARM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile char path[] = "/tmp/aaaa";
static volatile int stop;
static long big_words[512]; /* a msghdr, an iovec, whatever, of pointers and lengths */
static void *flip(void *arg) { while (!stop) { path[5] ^= 1; } return NULL; }
static void *many(void *arg) { for (int i = 0; i < 200; i++) syscall(SYS_getppid); return NULL; }
int main(int argc, char **argv)
{
	if (argc > 100)
		return 0;
	pthread_t t, more[20];
	for (int i = 0; i < 512; i++)
		big_words[i] = i % 3 ? (long)big_words : 0x7fffffffL << i % 40;
	pthread_create(&t, NULL, flip, NULL);
	for (int i = 0; i < 3000; i++)
		syscall(SYS_access, path, 0);
	stop = 1;
	pthread_join(t, NULL);
	static const long bad[] = {0, 1, -1, 0x7fffffffffffffff, -4096, 0x800000000000, 0x1000};
	/* Calls that look at what these lead to, and change nothing whatever they find. */
	static const long calls[] = {SYS_access, SYS_open, SYS_openat, SYS_stat, SYS_lstat, SYS_newfstatat, SYS_statx, SYS_readlink, SYS_readlinkat,
		SYS_getcwd, SYS_uname, SYS_sysinfo, SYS_times, SYS_getrusage, SYS_getrlimit, SYS_getitimer, SYS_clock_gettime, SYS_clock_getres,
		SYS_gettimeofday, SYS_getgroups, SYS_getresuid, SYS_getresgid, SYS_sched_getparam, SYS_sched_getaffinity, SYS_rt_sigpending, SYS_capget,
		SYS_connect, SYS_bind, SYS_sendto, SYS_sendmsg, SYS_recvmsg, SYS_getsockopt, SYS_setsockopt, SYS_accept, SYS_getsockname,
		SYS_getpeername, SYS_getdents64, SYS_epoll_ctl, SYS_getxattr, SYS_listxattr, SYS_statfs, SYS_openat2, SYS_execve, SYS_chdir,
		SYS_name_to_handle_at, SYS_mq_unlink, SYS_preadv, SYS_pwritev, SYS_process_vm_readv, SYS_vmsplice, SYS_sendmmsg, 9999};
	for (unsigned c = 0; c < sizeof(calls) / sizeof(calls[0]); c++)
		for (unsigned k = 0; k < 7; k++) {
			syscall(calls[c], bad[k], bad[(k + 1) % 7], bad[k], bad[(k + 3) % 7], bad[k], bad[(k + 2) % 7]);
			syscall(calls[c], -1L, bad[k], bad[(k + 1) % 7], bad[k], bad[(k + 3) % 7], bad[k]);
			syscall(calls[c], -1L, big_words, bad[k], big_words, bad[(k + 3) % 7], bad[k]);
		}
	char *big = malloc(1 << 20);
	memset(big, 'x', (1 << 20) - 1);
	big[(1 << 20) - 1] = 0;
	for (int i = 0; i < 5; i++)
		syscall(SYS_open, big, 0);
	for (int i = 0; i < 20; i++)
		pthread_create(&more[i], NULL, many, NULL);
	for (int i = 0; i < 20; i++)
		pthread_join(more[i], NULL);
	for (int i = 0; i < 300; i++)
		if (!fork())
			_exit(0);
	while (wait(NULL) > 0) {}
	if (!fork()) { /* another program, by a thread that is not the first */
		char *words[10002];
		for (int i = 0; i < 10001; i++)
			words[i] = "w";
		words[10001] = NULL;
		execv(argv[0], words);
	}
	wait(NULL);
	int fd = syscall(SYS_memfd_create, "x", 0);
	write(1, "done\n", 5);
	*(volatile int *)16 = 1;
}
"""


def test_harm():
    exe = compile_c("harm", HARM)
    work = ROOT + "/harm.d"
    os.mkdir(work)
    out = ROOT + "/harm.trace"
    for what, args in (("as lines", []), ("as JSON", ["--json"]), ("in a summary", ["-c"])):
        got = scry(*args, "--to", out, "--", exe, cwd=work)
        text = open(out, encoding="utf-8", errors="replace").read()
        good = got.returncode == 128 + 11 and (got.stdout + got.stderr).count(b"done") == 1
        if not args:
            good = good and text.rstrip().endswith("+++ killed by SIGSEGV +++") and text.count("exited with 0 +++") > 300
            raced = len(re.findall(r"changed during the call", text))
            print(f"# {raced} paths were changed while they were used")
        elif args == ["--json"]:
            for line in text.splitlines():
                json.loads(line)
        check(f"bad pointers, races, forks, long strings, many words {what}: all of it is traced", good,
              str(got.returncode) + got.stderr.decode(errors="replace")[-2000:] + text[-500:])


def main():
    if not SCRY:
        sys.exit("SCRY must name the program under test")
    try:
        probe = scry("--", "true")
        if probe.returncode == 4 or b"cannot be traced" in probe.stderr:
            print("1..1")
            skip("scry trace", "ptrace is refused here: " + probe.stderr.decode().splitlines()[0])
            return
        for test in (test_subject, test_json, test_stack_size, test_forms, test_ignored, test_files, test_modules, test_filtered, test_kernel, test_hooks,
                     test_status, test_i386, test_exec, test_payloads, test_ends, test_flood, test_words, test_attach, test_waiting, test_container,
                     test_killed, test_stopped, test_harm, test_strace):
            test()
    finally:
        shutil.rmtree(ROOT, ignore_errors=True)
    print(f"1..{count}")
    sys.exit(1 if failed else 0)


main()
