#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dwarf_truth.py SCRY FOLDER CC...: what scry reads out of debug information, judged by the compiler that wrote it.

A subject with the system's headers and structs of every kind is compiled with all its types described. scry's answer for each
struct and union is turned into assertions about sizeof and offsetof that are compiled against the same sources; and the header that
`scry types --c` prints must compile by itself, with the same layout. Prints TAP."""
import json
import os
import re
import subprocess
import sys

HEADERS = ["stdio.h", "stdlib.h", "string.h", "signal.h", "time.h", "pthread.h", "sys/stat.h", "sys/socket.h", "netinet/in.h", "netdb.h",
           "elf.h", "link.h", "sys/ucontext.h", "sys/epoll.h", "sys/resource.h", "termios.h", "poll.h", "dirent.h", "pwd.h", "math.h",
           "linux/bpf.h", "linux/fuse.h", "linux/if_ether.h", "linux/input.h", "linux/io_uring.h", "linux/perf_event.h", "linux/videodev2.h"]
OWN = r"""
struct own_bits { unsigned a : 3, : 0, b : 5; long c : 40; signed char d : 2; unsigned char e; };
struct own_packed { char a; int b; short c; } __attribute__((packed));
struct own_packed_bits { char a; unsigned b : 7, c : 26; char d; } __attribute__((packed));
struct own_aligned { char a; int b __attribute__((aligned(32))); char c; } __attribute__((aligned(64)));
struct own_nested { struct { int x; union { long l; char c[3]; }; } in[2]; struct own_packed p[3]; int grid[4][5][6]; };
struct own_flex { int n; struct own_bits tail[]; };
struct own_fn { int (*one)(struct own_fn *, const char *, ...); void (*(*two)(int))(void); const volatile int *const cv; };
union own_union { double d; long double ld; _Complex float cf; struct own_nested n; };
enum own_small { OWN_A = 1, OWN_B = 200 } __attribute__((packed));
enum own_wide { OWN_C = -1, OWN_D = 0x7fffffff, OWN_E = 0x100000000 };
typedef int own_vec __attribute__((vector_size(16)));
struct own_mixed { enum own_small s; enum own_wide w; _Bool b; own_vec v; __int128 i; wchar_t wc; void *p[3]; };
#pragma pack(push, 2)
struct own_pragma { char a; int b; long c; short d; };
#pragma pack(pop)
"""
count = failures = 0


def result(ok, name, *why):
    global count, failures
    count += 1
    failures += not ok
    print(f"{'' if ok else 'not '}ok {count} - {name}")
    for line in [] if ok else "\n".join(map(str, why)).splitlines()[:20]:
        print("# " + line)


def run(cmd, text=None):
    return subprocess.run(cmd, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def members(types, name, prefix, depth):
    """Paths of members with their offsets; those of anonymous structs are seen through by C itself."""
    for m in types[name]["members"]:
        if m["name"] and not m["name"].startswith("_gap_") and "bits" not in m:
            yield prefix + m["name"], m["offset"], m["size"]


def main():
    scry, folder, cc = sys.argv[1], sys.argv[2], sys.argv[3:]
    source = os.path.join(folder, "types.c")
    present = [h for h in HEADERS if run(cc + ["-fsyntax-only", "-x", "c", "-"], f"#include <{h}>\n").returncode == 0]
    includes = "#define _GNU_SOURCE\n" + "".join(f"#include <{h}>\n" for h in present) + OWN
    uses = "".join(f"{w} v_{n};\n" for w, n in [(m, m.split()[1]) for m in re.findall(r"(?:struct|union|enum) own_\w+(?= \{)", OWN)]
                   if n != "own_flex")
    with open(source, "w", encoding="ascii") as f:
        f.write(includes + uses + "int main(void) { return 0; }\n")
    program = os.path.join(folder, "types")
    done = run(cc + ["-g", "-O1", "-w", "-fno-eliminate-unused-debug-types", "-o", program, source])
    if done.returncode:
        result(False, "the subject compiles", done.stderr)
        return
    listed = json.loads(run([scry, "types", program, "--json", "--limit", "100000", "--source", "dwarf"]).stdout)
    # The compiler's own struct behind va_list cannot be named in C.
    names = [i["name"] for i in listed["items"] if i["kind"] in ("struct", "union") and "__va_list" not in i["name"]]
    ops = [{"op": "type", "params": {"name": n}} for n in names]
    path = os.path.join(folder, "ops.json")
    with open(path, "w", encoding="ascii") as f:
        json.dump({"ops": ops}, f)
    answers = json.loads(run([scry, "multi", program, "--ops", path]).stdout)["results"]
    types = {n: a.get("result", a) for n, a in zip(names, answers)}
    asserts, checked = [], 0
    for name, t in types.items():
        asserts.append(f'_Static_assert(sizeof({name}) == {t["size"]}, "{name}");')
        for member, off, size in members(types, name, "", 0):
            asserts.append(f'_Static_assert(__builtin_offsetof({name}, {member}) == {off}, "{name}.{member}");')
            if size:
                asserts.append(f'_Static_assert(sizeof((({name} *)0)->{member}) == {size}, "{name}.{member}");')
            checked += 1
    text = "\n".join(asserts) + "\n"
    done = run(cc + ["-fsyntax-only", "-w", "-x", "c", "-"], includes + text)
    wrong = [line for line in done.stderr.splitlines() if "error" in line]
    result(not wrong, f"{checked} members of {len(types)} structs and unions are where {cc[0]} put them", *wrong)
    result(checked >= 1000, "those are 1,000 at least", checked)
    header = run([scry, "types", program, "--c"]).stdout
    for judge in (["gcc", "-Wno-packed-not-aligned"], ["clang"]):
        if run(judge + ["--version"]).returncode:
            continue
        done = run(judge + ["-std=gnu11", "-Wall", "-Werror", "-fsyntax-only", "-x", "c", "-"], header + text)
        wrong = [line for line in done.stderr.splitlines() if "error" in line]
        result(done.returncode == 0, f"the header compiles by itself, laid out the same ({judge[0]})", *wrong)
    # gcc describes this union a second time, without its members.
    odd = [i["name"] for i in listed["items"] if "_bytes[" in i["text"] and i["name"] != "__CONST_SOCKADDR_ARG"]
    result(not odd, "nothing had to be shown as bytes", *odd)


main()
print(f"1..{count}")
sys.exit(failures > 0)
