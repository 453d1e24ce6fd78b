#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes src/live/trace/sysc.def and sysc_sets.def, the facts of Linux's system calls, which are committed.

usage: tools/mksysc.py COMMON ARCH TRACEFS

COMMON is an unpacked linux-headers-*-common, ARCH the linux-headers-*-amd64 of the same version (their folder below
usr/src), TRACEFS a mounted tracefs of a kernel of x86-64. Prototypes come from include/linux/syscalls.h, and from
tracefs where it has the call, which is newer and names every argument; numbers from the unistd headers; names of flags
from the uapi headers, evaluated by gcc; groups from the filters strace makes of them. What none of these says stands in
tools/sysc.spec."""
import fnmatch
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUT = os.path.join(ROOT, "src/live/trace")
# Entry points whose name is not the call's.
RENAMED = {"newfstat": "fstat", "newstat": "stat", "newlstat": "lstat", "newuname": "uname", "umount": "umount2",
           "sendfile64": "sendfile", "fadvise64_64": "fadvise64", "restart_syscall": "restart_syscall"}
# Numbers younger than the headers; the same everywhere.
LATER = {"setxattrat": 463, "getxattrat": 464, "listxattrat": 465, "removexattrat": 466, "open_tree_attr": 467,
         "file_getattr": 468, "file_setattr": 469}
LATER_X86 = {"uretprobe": 335, "uprobe": 336}
# Calls of i386 under another name.
I386 = {"_newselect": "select", "mmap2": "mmap", "_llseek": "llseek", "umount": "oldumount", "sendfile64": "sendfile"}
# Prototypes that neither source has.
BY_HAND = {"set_thread_area": [("struct user_desc *", "u_info")], "get_thread_area": [("struct user_desc *", "u_info")],
           "map_shadow_stack": [("unsigned long", "addr"), ("unsigned long", "size"), ("unsigned int", "flags")],
           "rt_sigreturn": [], "sigreturn": [], "uselib": [("const char *", "library")],
           "mmap": [("unsigned long", n) for n in ("addr", "len", "prot", "flags", "fd", "off")]}
CLASSES = ["file", "network", "memory", "process", "signal", "ipc", "desc", "creds", "clock", "stat", "pure"]
PATHS = {"filename", "pathname", "path", "oldname", "newname", "dir_name", "dev_name", "new_root", "put_old", "library",
         "special", "specialfile", "from_pathname", "to_pathname"}
SIZES = {"struct __kernel_timespec": 16, "struct __kernel_old_timeval": 16, "struct timezone": 8, "struct rusage": 144,
         "struct __kernel_old_itimerval": 32, "struct __kernel_itimerspec": 32, "struct rlimit": 16, "struct rlimit64": 16,
         "struct stat": 144, "struct stat64": 144, "struct statfs": 120, "struct statx": 256, "struct sysinfo": 112, "struct new_utsname": 390,
         "struct sigaction": 32, "siginfo_t": 128, "struct siginfo": 128, "sigset_t": 8, "stack_t": 24, "struct pollfd": 8,
         "struct epoll_event": 12, "struct mmsghdr": 64, "struct user_msghdr": 56, "struct iovec": 16, "struct sembuf": 6,
         "struct msqid_ds": 120, "struct shmid_ds": 112, "struct __kernel_timex": 208, "struct tms": 32,
         "struct utimbuf": 16, "struct sched_param": 4, "struct mq_attr": 64, "struct sigevent": 64,
         "struct io_event": 32, "struct io_uring_params": 120, "struct file_handle": 8, "struct cachestat": 40,
         "struct cachestat_range": 16, "struct mnt_id_req": 24, "struct mount_attr": 32, "struct xattr_args": 16,
         "struct file_attr": 24, "struct ustat": 32, "fd_set": 128, "struct __aio_sigset": 16, "struct robust_list_head": 24,
         "struct linux_dirent": 1, "struct linux_dirent64": 1,
         "int": 4, "unsigned": 4, "unsigned int": 4, "u32": 4, "uid_t": 4, "gid_t": 4, "loff_t": 8, "off_t": 8,
         "size_t": 8, "unsigned long": 8, "u64": 8, "aio_context_t": 8, "timer_t": 4, "__kernel_old_time_t": 8, "void": 0}
INTS = {"int", "long", "loff_t", "off_t", "clockid_t", "key_serial_t", "timer_t", "mqd_t", "pid_t", "__s32", "key_t", "s32"}


def run(*cmd, **kw):
    return subprocess.run(cmd, check=True, text=True, stdout=subprocess.PIPE, **kw).stdout


def clean(ctype):
    ctype = re.sub(r"\b(__user|__force|const\s+(?=\w+\s*$)|asmlinkage)\b", " ", ctype)
    ctype = re.sub(r"\s*\*\s*", " *", re.sub(r"\s+", " ", ctype)).strip()
    return re.sub(r"\* \*", "**", ctype)


def split_arg(text):
    """'const char __user *filename' as type and name; the name is '' where there is none."""
    text = clean(text)
    m = re.match(r"(.*?[\s*])(\w+)$", text)
    plain = {"int", "long", "unsigned", "char", "void"} | set(INTS) | set(SIZES)
    if m and m.group(2) not in plain and not m.group(1).strip() in ("struct", "union", "enum", "const struct", "const"):
        return clean(m.group(1)), m.group(2)
    return text, ""


def from_header(path):
    text = re.sub(r"/\*.*?\*/", " ", open(path, encoding="utf-8").read(), flags=re.S)
    rows = {}
    for m in re.finditer(r"asmlinkage\s+\w+\s+sys_(\w+)\s*\(([^;]*)\)\s*;", text):
        args = [split_arg(a) for a in re.sub(r"\s+", " ", m.group(2)).split(",")]
        rows.setdefault(m.group(1), [] if args == [("void", "")] else args)
    return rows


def from_tracefs(path):
    rows = {}
    for folder in sorted(os.listdir(path + "/events/syscalls")):
        if folder.startswith("sys_enter_"):
            text = open(f"{path}/events/syscalls/{folder}/format", encoding="utf-8").read()
            fields = re.findall(r"field:(.*?)(\w+);\toffset:(\d+);", text)
            rows[folder[10:]] = [(clean(t), n.lstrip("_")) for t, n, off in fields if int(off) >= 16]
    return rows


def numbers(path, arch64=False):
    if not arch64:
        return {n: int(v) for n, v in re.findall(r"#define __NR_(\w+)\s+(\d+)", open(path, encoding="utf-8").read())}
    lines = run("gcc", "-E", "-dM", "-D__BITS_PER_LONG=64", "-D__ARCH_WANT_SET_GET_RLIMIT", "-D__ARCH_WANT_NEW_STAT",
                "-D__ARCH_WANT_RENAMEAT", "-D__ARCH_WANT_MEMFD_SECRET", "-D__ARCH_WANT_TIME32_SYSCALLS_", "-D__ARCH_WANT_SYS_CLONE3",
                "-D__SYSCALL(a,b)=", "-I", os.path.dirname(os.path.dirname(path)), path)
    defs = dict(re.findall(r"#define (__NR\w+)\s+(\w+)", lines))
    ret = {}
    for name, value in defs.items():
        while value in defs:
            value = defs[value]
        if value.isdigit() and name.startswith("__NR_"):
            ret[name[5:]] = int(value)
    return {n: v for n, v in ret.items() if n not in ("syscalls", "arch_specific_syscall") and not n.startswith("3264")}


class Bpf:
    """The verdict of a seccomp filter, as strace -d prints it, for a call of x86-64."""

    def __init__(self, lines):
        self.prog = [re.search(r"(STMT|JUMP)\((.*)\)", line).groups() for line in lines]

    def is_traced(self, nr):
        acc = x = pc = 0
        while True:
            kind, text = self.prog[pc]
            f = [p.strip() for p in text.split(",")]
            pc += 1
            if kind == "JUMP":
                if f[0] == "BPF_JA":
                    pc += int(f[1], 0)
                    continue
                k = int(f[3], 0)
                hit = {"BPF_JEQ": acc == k, "BPF_JGE": acc >= k, "BPF_JGT": acc > k, "BPF_JSET": acc & k != 0}[f[0]]
                pc += int(f[1] if hit else f[2], 0)
            elif f[0] == "BPF_LDWABS":
                acc = 0xC000003E if "arch" in f[1] else nr
            elif f[0] == "BPF_LDWIMM":
                acc = int(f[1], 0)
            elif f[0] == "BPF_TAX":
                x = acc
            elif f[0] == "BPF_TXA":
                acc = x
            elif f[0] == "BPF_AND":
                acc &= x if f[1] == "X" else int(f[1], 0)
            elif f[0] == "BPF_LSH":
                acc = acc << (x if f[1] == "X" else int(f[1], 0)) & 0xffffffff
            elif f[0] == "BPF_RSH":
                acc >>= int(f[1], 0)
            elif f[0] == "BPF_RET":
                return "TRACE" in f[1]
            else:
                sys.exit(f"mksysc: strace's filter has {kind} {text}")


def classes(nr):
    ret = {name: set() for name in nr}
    for cls in CLASSES:
        err = subprocess.run(["strace", "-d", "-f", "--seccomp-bpf", "-e", "trace=%" + cls, "-o", "/dev/null", "true"], check=True, text=True,
                             stderr=subprocess.PIPE).stderr
        lines = [line for line in err.splitlines() if re.search(r": (STMT|JUMP)\(", line)]
        bpf = Bpf(lines)
        for name, n in nr.items():
            if n >= 0 and bpf.is_traced(n):
                ret[name].add(cls)
    return ret


def read_spec():
    by_name, calls, whens, sets = {}, {}, [], []
    for line in open(os.path.join(ROOT, "tools/sysc.spec"), encoding="utf-8"):
        w = line.split("#")[0].split()
        if not w:
            continue
        if w[0] == "arg":
            by_name[w[1]] = w[2]
        elif w[0] == "set":
            sets.append(w[1:])
        else:
            spec, flags, nargs, rest = {}, [], None, w[3:] if w[0] == "when" else w[1:]
            while rest:
                tok = rest.pop(0)
                if tok.startswith("+"):
                    flags.append(tok[1:])
                elif tok.startswith("nargs="):
                    nargs = int(tok[6:])
                else:
                    spec[tok] = rest.pop(0)
            if w[0] == "when":
                whens.append((w[1], w[2], nargs, spec, flags))
            else:
                calls[w[0]] = (spec, flags)
    return by_name, calls, whens, sets


# --- sets of names ---------------------------------------------------------------------------------------------------
class Sets:
    def __init__(self, specs, common, arch):
        self.tmp = tempfile.TemporaryDirectory()
        stub = os.path.join(self.tmp.name, "linux")
        os.mkdir(stub)
        for name in ("compiler_types.h", "compiler.h"):
            with open(os.path.join(stub, name), "w", encoding="utf-8") as f:
                f.write("#define __user\n#define __force\n#define __bitwise\n#define __attribute_const__\n")
        self.inc = ["-w", "-D_GNU_SOURCE", "-D__EXPORTED_HEADERS__", "-isystem", self.tmp.name, "-isystem", common + "/arch/x86/include/uapi",
                    "-isystem", arch + "/arch/x86/include/generated/uapi", "-isystem", common + "/include/uapi"]
        arm64 = ["-isystem", common + "/arch/arm64/include/uapi"]
        x86 = self.inc
        self.rows = []
        for spec in specs:
            self.inc = arm64 + x86 if spec[0].endswith("_arm64") else x86
            self.rows.append(self.make(spec))
        self.index = {r[0]: i + 1 for i, r in enumerate(self.rows)}
        self.values = {n: v for r in self.rows for n, v in r[2]}

    def gcc(self, text, *args):
        path = os.path.join(self.tmp.name, "t.c")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return subprocess.run(["gcc", *self.inc, *args, path], text=True, capture_output=True, check=False)

    def make(self, spec):
        name, rest, mask = spec[0], spec[1:], 0
        if rest[0].startswith("mask="):
            mask = int(rest.pop(0)[5:])
        head = "#include <sys/types.h>\n#include <time.h>\n#include <sys/socket.h>\n" if name in ("so_ip", "so_ipv6", "ioctl", "af") else ""
        head += "".join(f"#include <{h}>\n" for h in rest[0].split(","))
        patterns, given = rest[1:], []
        macros = re.findall(r"#define (\w+) ", self.gcc(head, "-E", "-dM").stdout)
        text = self.gcc(head, "-E").stdout
        enums = [n for body in re.findall(r"\benum\s*\w*\s*\{(.*?)\}", text, re.S) for n in re.findall(r"(?:^|[,{])\s*(?:#[^\n]*\n\s*)*(\w+)", body)]
        known = list(dict.fromkeys(macros + enums))
        names = []
        for p in patterns:
            if p.startswith("@"):
                given.append((p[1:].split("=")[0], int(p.split("=")[1])))
            elif not p.startswith("-"):
                names += [n for n in ([p] if p in known else sorted(known)) if fnmatch.fnmatchcase(n, p)]
        drop = [p[1:] for p in patterns if p.startswith("-")]
        exact = {p for p in patterns if not any(c in p for c in "*[@-")}
        names = [n for n in dict.fromkeys(names) if n in exact or not any(fnmatch.fnmatchcase(n, d) for d in drop)]
        found = given + self.evaluate(head, names)
        return name, mask, self.order(found, mask, name)

    def evaluate(self, head, names):
        if not names:
            return []
        base = head.count("\n") + 3
        while True:
            body = "".join(f'printf("{n} %llu\\n", (unsigned long long)(long long)({n}));\n' for n in names)
            exe = os.path.join(self.tmp.name, "t")
            got = self.gcc(head + "int printf(const char *, ...);\nint main(void) {\n" + body + "return 0; }\n", "-o", exe)
            if got.returncode == 0:
                lines = run(exe).split("\n")
                return [(a, int(b)) for a, b in (line.split() for line in lines if line)]
            bad = {int(n) - base for n in re.findall(r"t\.c:(\d+):\d+: error", got.stderr)}
            kept = [n for i, n in enumerate(names) if i not in bad]
            if len(kept) == len(names):
                sys.exit(f"mksysc: {got.stderr}")
            names = kept

    @staticmethod
    def order(found, mask, name):
        first = {}
        for n, v in found:
            first.setdefault(v & 0xffffffffffffffff, n)
        part = sorted((v, n) for v, n in first.items() if mask and v & ~mask == 0)
        bits = [(v, n) for v, n in first.items() if not (mask and v & ~mask == 0)]
        if name in FLAG_SETS:
            bits.sort(key=lambda x: (-bin(x[0]).count("1"), x[0]))
        else:
            bits.sort()
        return [(n, v) for v, n in part + bits]


FLAG_SETS = set()


# --- arguments ---------------------------------------------------------------------------------------------------
def base_of(ctype):
    return re.sub(r"\s*\*+$", "", ctype.replace("const ", "").replace(" const", "")).strip()


def guess(ctype, name, by_name):
    if name in by_name and ("*" not in ctype or SIZES.get(base_of(ctype)) and by_name[name].startswith("struct")):
        return by_name[name]
    if "*" in ctype:
        if ctype == "const char *":
            return "path" if name in PATHS else "str"
        if ctype.startswith("const ") and SIZES.get(base_of(ctype)):
            return "struct,in"
        return "ptr"
    if ctype in ("umode_t",):
        return "mode"
    if ctype in ("uid_t", "gid_t", "qid_t"):
        return "uid"
    if ctype == "pid_t":
        return "pid"
    if ctype in ("dev_t",) or name == "dev":
        return "dev"
    return "int" if ctype in INTS else "uint"


def make_arg(args, idx, spec, sets, call):
    """An argument as the fields of struct sysc_arg."""
    ctype, name = args[idx]
    parts = spec.split(",")
    cls, _, set_name = parts[0].partition(":")
    a = {"cls": cls, "set": sets.index[set_name] if set_name else 0, "dir": 0, "len": "NONE", "partner": -1, "ret": False,
         "size": 0, "fetch": "NONE", "name": name, "ctype": ctype}
    names = [n for _, n in args]
    for p in parts[1:]:
        key, _, value = p.partition("=")
        if key in ("in", "out", "inout"):
            a["dir"] = {"in": 1, "out": 2, "inout": 3}[key]
        elif key in ("n", "np"):
            if value not in names:
                sys.exit(f"mksysc: {call} has no {value}: {names}")
            a["len"], a["partner"] = ("ARG" if key == "n" else "PTR"), names.index(value)
        elif key == "ret":
            a["ret"] = True
        elif key == "size":
            a["size"] = int(value)
        elif key == "type":
            a["ctype"] = value.replace("_*", " *").replace("unsigned_", "unsigned ").replace("struct_", "struct ").replace("const_", "const ")
        else:
            sys.exit(f"mksysc: {call}: {spec}")
    if cls in ("path", "str", "strv", "envp") and not a["dir"]:
        a["dir"] = 1
    if cls in ("struct", "fdset") and not a["size"]:
        a["size"] = SIZES.get(base_of(a["ctype"]), 0)
        if not a["size"]:
            sys.exit(f"mksysc: {call}.{name}: no size of {ctype}")
    if cls == "fdset":
        a["size"] = 128
    a["fetch"] = {"path": "STR", "str": "STR", "strv": "STRV", "envp": "STRV", "buf": "BYTES", "sockaddr": "SOCKADDR", "iovec": "IOVEC",
                  "msghdr": "MSGHDR", "fdset": "FIXED", "struct": "ARRAY" if a["partner"] >= 0 else "FIXED"}.get(cls, "NONE")
    if cls == "path" and a["partner"] >= 0:
        a["fetch"] = "BYTES"
    if cls == "iovec":
        a["size"] = 16
    if cls == "msghdr":
        a["size"] = 56
    return a


def put_arg(a):
    text = f'"{a["name"]}", "{a["ctype"]}", SYSC_{a["cls"].upper()}, SYSC_FETCH_{a["fetch"]}, {a["dir"]}, SYSC_LEN_{a["len"]}, '
    return text + f'{a["partner"]}, {str(a["ret"]).lower()}, {a["size"]}, {a["set"]}'


def put_flags(flags):
    names = {"blocks": "SYSC_BLOCKS", "noreturn": "SYSC_NO_RETURN", "retfd": "SYSC_RET_FD", "retptr": "SYSC_RET_PTR", "retpid": "SYSC_RET_PID",
             "unknown": "SYSC_UNKNOWN"}
    return " | ".join(names[f] for f in flags) or "0"


def flag_sets(by_name, calls, whens):
    specs = list(by_name.values()) + [s for spec, _ in calls.values() for s in spec.values()] + [s for w in whens for s in w[3].values()]
    FLAG_SETS.update(s.split(",")[0].split(":")[1] for s in specs if s.startswith(("flags:", "ipcmode:")))
    FLAG_SETS.update("statx_attr epoll_events poll_events sa_flags ss_flags statfs_flags resolve landlock_fs uring_setup uring_features sem_flags "
                     "sched_attr_flags open_arm64 mq_flags".split())


def prototypes(common, tracefs):
    rows = from_header(common + "/include/linux/syscalls.h")
    rows = {n: a for n, a in rows.items() if n not in ("clone", "mmap_pgoff", "fadvise64") or n == "clone"}
    seen = from_tracefs(tracefs)
    rows.update(seen)
    for name, args in BY_HAND.items():
        rows.setdefault(name, args)
    if "sendfile64" in rows:
        rows.pop("sendfile", None)
    for old in ("stat", "fstat", "lstat", "uname"):
        rows.pop(old, None)
    return rows


def fill_names(args):
    used, ret = {}, []
    for i, (t, n) in enumerate(args):
        n = n or {"pid_t": "pid", "umode_t": "mode", "size_t": "size"}.get(t, f"arg{i + 1}")
        used[n] = used.get(n, 0) + 1
        ret.append((t, n if used[n] == 1 else f"{n}{used[n]}"))
    return ret


def main():
    common, arch, tracefs = sys.argv[1:]
    by_name, calls, whens, set_specs = read_spec()
    flag_sets(by_name, calls, whens)
    sets = Sets(set_specs, common, arch)
    nr = [numbers(arch + "/arch/x86/include/generated/uapi/asm/unistd_64.h"), numbers(arch + "/arch/x86/include/generated/uapi/asm/unistd_32.h"),
          numbers(common + "/include/uapi/asm-generic/unistd.h", True)]
    for table in nr:
        table.update(LATER)
        table.pop("syscalls", None)
    nr[0].update(LATER_X86)
    protos = {RENAMED.get(n, n): (n, fill_names(a)) for n, a in prototypes(common, tracefs).items()}
    names = sorted(set(nr[0]) | set(nr[1]) | set(nr[2]))
    groups = classes({n: nr[0].get(n, -1) for n in names})
    args_of = {}
    head = "/* SPDX-License-Identifier: Apache-2.0 */\n/* Made by tools/mksysc.py. Do not edit. */\n"
    with open(os.path.join(OUT, "sysc.def"), "w", encoding="utf-8") as out:
        out.write(head + "/* name, number in x86-64, i386, arm64, arguments, flags, groups, entry point of the kernel */\n")
        for name in names:
            entry, args = protos.get(name) or protos.get(I386.get(name, re.sub(r"(_time64|(?<!_)64|32)$", "", name)), (None, None))
            spec, flags = calls.get(entry, calls.get(name, ({}, []))) if entry else calls.get(name, ({}, []))
            known = args is not None
            args = args or []
            for key in spec:
                if known and key not in [n for _, n in args]:
                    print(f"mksysc: {name} has no argument {key}: {[n for _, n in args]}", file=sys.stderr)
            numbers_ = ", ".join(str(table.get(name, -1)) for table in nr)
            groups_ = " | ".join("SYSC_C_" + c.upper() for c in CLASSES if c in groups[name]) or "0"
            made = [make_arg(args, i, spec.get(n, guess(t, n, by_name)), sets, name) for i, (t, n) in enumerate(args)]
            args_of[name] = args
            if not known:  # all registers are shown
                flags = flags + ["unknown"]
                args = [("unsigned long", f"arg{i + 1}") for i in range(6)]
                made = [make_arg(args, i, "hex", sets, name) for i in range(6)]
            out.write(f"SYSC({name}, {numbers_}, {len(args)}, {put_flags(flags)}, {groups_}" +
                      "".join(f",\n     A({put_arg(a)})" for a in made) + ")\n")
    write_whens(head, whens, sets, args_of)
    with open(os.path.join(OUT, "sysc_sets.def"), "w", encoding="utf-8") as out:
        out.write(head + "/* name, bits that are one number, names of values */\n")
        for name, mask, values in sets.rows:
            out.write(f"SET({name}, 0x{mask:x}" + "".join(f",\n    N({n}, 0x{v:x})" for n, v in values) + ")\n")
            if not values:
                print(f"mksysc: set {name} is empty", file=sys.stderr)
    print(f"{len(names)} calls, {sum(n in protos for n in names)} with prototypes, {sum(len(a) for a in args_of.values())} arguments, "
          f"{len(sets.rows)} sets, {sum(len(r[2]) for r in sets.rows)} names")


def write_whens(head, whens, sets, args_of):
    with open(os.path.join(OUT, "sysc_when.def"), "w", encoding="utf-8") as out:
        out.write(head + "/* call, argument looked at, mask, how (= one of the values, ! none of the bits), arguments, flags added, values; changed arguments */\n")
        for call, cond, nargs, spec, flags in sorted(whens, key=lambda w: w[0]):
            args = args_of[call]
            names = [n for _, n in args]
            m = re.match(r"(\w+)(?:&(\d+))?([=!])(.*)", cond)
            mask = m.group(2) or "0xffffffff"
            values = [str(v) for v in (sets.values.get(n) for n in m.group(4).split(","))]
            if "None" in values:
                sys.exit(f"mksysc: when {call} {cond}: {values}")
            if m.group(3) == "!":
                mask = hex(eval(" | ".join(values)))  # bits, none of which is set
            made = []
            for n, s in spec.items():
                a = make_arg(args, names.index(n), "int" if s == "hide" else s, sets, call)
                a["cls"] = "hide" if s == "hide" else a["cls"]
                made.append(f"W({names.index(n)}, {put_arg(a)})")
            made = made or ["W(-1, 0, 0, 0, 0, 0, 0, -1, false, 0, 0)"]
            out.write(f"WHEN({call}, {names.index(m.group(1))}, {mask}, '{m.group(3)}', {len(args) if nargs is None else nargs}, {put_flags(flags)},\n"
                      f"     V({', '.join(values)}),\n     " + ",\n     ".join(made) + ")\n")


if __name__ == "__main__":
    main()
