#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what recording system calls costs, as ratios of one run, with their bars (docs/measuring.md).

    bench_trace.py --encoder PATH --switch PATH [--scry PATH] [--rounds N] [--events N] [--json]

Encoder: the table scry reads arguments by, against a switch for each argument that writes the same bytes. Added cost: CPU of the
calling thread with programs attached less that without, over the same with a program that does nothing. Medians of the rounds. Programs:
their own CPU while they are traced into a file, and that of who reads. Loss: calls of one core, a million a second and as fast as it makes them. Needs root; exit 0 whatever the figures are."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

CALLS = ("execve", "init_module", "process_vm_writev", "ptrace", "arch_prctl", "chdir")


def run(a, *words):
    done = subprocess.run([a.encoder, a.switch, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"bench_trace: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def columns(text):
    """Lines of "name value name value" as lists by name."""
    out = {}
    for line in text.splitlines():
        words = line.split()
        for name, value in zip(words[::2], words[1::2]):
            out.setdefault(name, []).append(float(value))
    return out


def row(name, figure, bar, note):
    return {"row": name, "figure": figure, "bar": bar, "meets": None if bar is None else figure <= bar, "note": note}


def encoder(a):
    run(a, "same")
    size = {w[0]: list(map(int, w[1:])) for w in (line.split() for line in run(a, "sizes").splitlines())}
    table, switch = size["table"], size["switch"]
    for i, (name, bar) in enumerate((("object file", None), ("xlated", 0.25), ("jited", 0.25), ("memlock", None))):
        yield row(f"encoder: {name}", table[i] / switch[i], bar, f"table {table[i]:,} bytes, switch {switch[i]:,}")
    yield row("encoder: xlated of the main program", table[1], 4096, "bytes")
    ns = columns(run(a, "encode", a.rounds))
    least = {k: min(v) for k, v in ns.items()}
    sums = [sum(least[f"{kind}/{c}"] for c in CALLS) / len(CALLS) for kind in ("table", "switch")]
    yield row("encoder: ns per 1,000 events", sums[0] / sums[1], 1.0, f"table {sums[0]:,.0f}, switch {sums[1]:,.0f}; least of {a.rounds} rounds")
    for c in CALLS:
        t, s = least[f"table/{c}"], least[f"switch/{c}"]
        yield row(f"encoder: {c}", t / s, None, f"table {t:,.0f} ns per 1,000, switch {s:,.0f}; medians {statistics.median(ns['table/' + c]):,.0f}, "
                  f"{statistics.median(ns['switch/' + c]):,.0f}")


PAPER_EMPTY = 105


def floor(a):
    every = columns(run(a, "floor", a.rounds))
    bars = {"scalar": {"plain": 2.7, "stack": 4.4}, "mix": {"plain": 3.4, "stack": 5.2}}
    for kind, name in (("scalar", "numbers alone"), ("mix", "five calls")):
        def added(what, kind=kind):
            return statistics.median(x - y for x, y in zip(every[f"{kind}/{what}"], every[f"{kind}/none"]))
        none, empty = statistics.median(every[f"{kind}/none"]), added("empty")
        for what, text, bar in (("plain", "without stack", bars[kind]["plain"]), ("stack", "with ip, sp, 256 bytes", bars[kind]["stack"]),
                                ("by_id", "refused by call", 1.05), ("by_thread", "refused by thread", 1.4)):
            note = f"{added(what):.0f} ns over {none:.0f}, empty program {empty:.0f}"
            if what == "plain":
                note += f", clock and copies alone {added('least'):.0f}"
            yield row(f"added: {name}, {text}", added(what) / empty, bar, f"{note}; of {PAPER_EMPTY} ns, what an empty one took where the bars "
                      f"were set: {added(what) / PAPER_EMPTY:.2f}")


def loss(a):
    for ring, pace, bar in ((16 << 20, 1000000, 0), (16 << 20, 0, None), (1 << 20, 0, None), (64 << 10, 0, None)):
        rate, seen, received, lost = map(int, run(a, "loss", a.events, ring, pace).split())
        exact = "seen = received + lost" if seen == received + lost else f"{seen} seen, {received} + {lost}: NOT EXACT"
        yield row(f"lost of {a.events:,}, ring of {ring >> 10:,} KB{', paced' if pace else ''}", lost, bar, f"{rate:,} events/s on one core; {exact}")


PROGRAMS = (["ls", "-lR", "/usr/share/doc"], ["bash", "-c", "for i in 1 2 3 4 5; do cat /etc/passwd; done"], ["python3", "-c", "import json, os"],
            ["gcc", "-x", "c", "-c", "/dev/null", "-o", "/dev/null"], ["perl", "-e", "open(F, '</etc/passwd') for 1 .. 1000"], ["make", "-v"])


def sites(a):
    """Share of calls of some programs whose caller outside of the C library is known."""
    for stack in (256, 512, 2048):
        every, found, ns = [], [], []
        for cmd in PROGRAMS:
            n, k, t = map(int, run(a, "sites", stack, *cmd).split())
            every.append(n)
            found.append(k)
            ns.append(n * t)
        share = 100 * sum(found) / max(sum(every), 1)
        low, name = min((100 * k / max(n, 1), c[0]) for n, k, c in zip(every, found, PROGRAMS))
        yield {"row": f"call sites found, {stack} bytes of stack", "figure": share, "bar": 99, "meets": share >= 99,
               "note": f"% of {sum(every):,} calls of {len(PROGRAMS)} programs, least {low:.1f} ({name}); {sum(ns) / max(sum(every), 1):,.0f} ns each"}


SUBJECT = """#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
static long us(int who)
{
	struct rusage u;
	getrusage(who, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000L + u.ru_utime.tv_usec + u.ru_stime.tv_usec;
}
int main(int argc, char **argv)
{
	pid_t pid = 0;
	if (!strcmp(argv[2], "loop")) {
		for (int i = 0; i < 20000; i++) { int fd = open("/etc/passwd", O_RDONLY); close(fd); if (chdir("/tmp")) return 1; }
	} else if (!strcmp(argv[2], "forks")) {
		for (int i = 0; i < 3000; i++) { if (!(pid = fork())) _exit(0); waitpid(pid, NULL, 0); }
	} else {
		if (!(pid = fork())) { dup2(open("/dev/null", O_WRONLY), 1); execvp(argv[2], argv + 2); _exit(127); }
		waitpid(pid, NULL, 0);
	}
	FILE *f = fopen(argv[1], "w");
	fprintf(f, "%ld", us(RUSAGE_SELF) + us(RUSAGE_CHILDREN));
	return fclose(f);
}
"""
# What scry's record of such a call has: time, thread, number, first argument, path, result.
BPFTRACE = """tracepoint:raw_syscalls:sys_enter /comm == "subject"/ { @a[tid] = args->args[0]; @p[tid] = str(0);
	if (args->id == 257) { @p[tid] = str(args->args[1]); } if (args->id == 80) { @p[tid] = str(args->args[0]); } }
tracepoint:raw_syscalls:sys_exit /comm == "subject"/ { printf("%llu %d %d %lx %s %d\\n", nsecs, tid, args->id, @a[tid], @p[tid], args->ret); }
"""
LOOP_CALLS = 60000


def tracers(a, work):
    """By name, how a program is traced into a file and how often that is measured; and why others are not."""
    out = os.path.join(work, "out")
    scry = [os.path.abspath(a.scry), "trace", "-o", out]
    ways = {"untraced": ([], 7), "without stacks": (scry + ["--stack-size", "0", "--"], 7), "with stacks": (scry + ["--"], 7)}
    skipped = {}
    if shutil.which("strace"):
        ways["strace -f"] = (["strace", "-f", "-o", out], 3)
    else:
        skipped["strace -f"] = "no strace"
    for name, tool, cmd in (("perf trace", "perf", ["perf", "trace", "-o", out]), ("bpftrace printf", "bpftrace", ["bpftrace", "-o", out, "-e", BPFTRACE, "-c"])):
        probe = cmd + ["/bin/true"]
        done = subprocess.run(probe, capture_output=True, text=True, check=False) if shutil.which(tool) else None
        if done and not done.returncode:
            ways[name] = (cmd, 2)
        else:
            skipped[name] = "no " + tool if not done else f"{tool}: {(done.stderr.strip() or 'it fails').splitlines()[-1]}"
    return ways, skipped


def measure(way, words, work, cpu):
    """CPU in us of the program that is traced, and of everything else that ran for it."""
    before = os.times()
    cmd = way[:-1] + ["-c", " ".join(words)] if way[-1:] == ["-c"] else way + words
    subprocess.run(cmd, cwd=work, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, env=dict(os.environ, SCRY_STORE=work))
    after = os.times()
    with open(cpu, encoding="ascii") as f:
        took = int(f.read())
    return took, 1e6 * (after.children_user + after.children_system - before.children_user - before.children_system) - took


def workloads(a):
    """CPU of programs themselves, while they are traced into a file, over untraced; and of who reads, per call, less what it takes to trace
    a program that does nothing."""
    with tempfile.TemporaryDirectory() as work:
        prog, cpu = os.path.join(work, "subject"), os.path.join(work, "cpu")
        subprocess.run(["cc", "-O2", "-x", "c", "-", "-o", prog], input=SUBJECT, text=True, check=True)
        ways, skipped = tracers(a, work)
        loads = (("open, close, chdir", ["loop"], {"without stacks": 1.7, "with stacks": 2.2}, ways),
                 ("find /usr", ["find", "/usr", "-xdev", "-size", "+1"], {"without stacks": 1.1}, ("untraced", "without stacks")),
                 ("3,000 forks", ["forks"], {"without stacks": 1.1}, ("untraced", "without stacks")))
        idle = {w: min(measure(ways[w][0], [prog, cpu, "true"], work, cpu)[1] for _ in range(3)) for w in ways}
        for name, words, bars, which in loads:
            took = {w: [] for w in which}
            for i in range(7):
                for way in which:
                    if i < ways[way][1]:
                        took[way].append(measure(ways[way][0], [prog, cpu, *words], work, cpu))
            base = [t for t, _ in took["untraced"]]
            for way in list(which)[1:]:
                ratio = [t / u for (t, _), u in zip(took[way], base)]
                took_us, other_us = (statistics.median(x) for x in zip(*took[way]))
                note = f"{min(ratio):.3g}-{max(ratio):.3g} in {len(ratio)} runs in turn; CPU {took_us / 1e3:.0f} ms, untraced {statistics.median(base) / 1e3:.0f}"
                if words == ["loop"]:
                    note += f"; reader {max(other_us - idle[way], 0) * 1e3 / LOOP_CALLS:.0f} ns a call, {idle[way] / 1e3:.0f} ms to begin and end"
                yield row(f"{name}: {way}", statistics.median(ratio), bars.get(way), note)
            for way, why in skipped.items() if words == ["loop"] else ():
                print(f"{name}: {way}: skipped: {why}", file=sys.stderr)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--encoder", required=True)
    p.add_argument("--switch", required=True)
    p.add_argument("--scry")
    p.add_argument("--rounds", type=int, default=30)
    p.add_argument("--events", type=int, default=3000000)
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    rows = [*encoder(a), *floor(a), *sites(a), *(workloads(a) if a.scry else []), *loss(a)]
    if a.json:
        print(json.dumps(rows))
        return
    for r in rows:
        bar = "" if r["bar"] is None else f"bar {r['bar']:<6g} {'meets ' if r['meets'] else 'MISSES'}"
        print(f"{r['row']:46} {r['figure']:>10.4g}  {bar:18}  {r['note']}")


main()
