# SPDX-License-Identifier: Apache-2.0
"""What the compiler, the symbols, the unwind tables and objdump say: never scry's own output."""

import bisect
import re
import struct
import subprocess

import elffile

# Functions of the C runtime's start files, whose symbols have no size.
CRT = {"_init", "_fini", "_start", "deregister_tm_clones", "register_tm_clones", "__do_global_dtors_aux", "frame_dummy",
       "_dl_relocate_static_pie", "call_weak_fn", "_dl_start"}
COLD = re.compile(r"\.cold(\.\d+)?(\.llvm\.\d+)?$")
# Markers and data in Go's text.
GO_MARKS = re.compile(r"^(go[.:]buildid|runtime\.e?text|type[.:].*\*|go[.:]func\.\*)$")
PLT = (".plt", ".plt.got", ".plt.sec", ".plt.bnd", ".iplt")


def functions(path):
    """Function starts of an unstripped file: {"starts", "sizes", "ignored", "cold", "code", "plt", "names"}.

    `starts`: defined FUNC and IFUNC symbols of code sections with a size, aliases once, and the start files' own.
    `ignored`: addresses that count neither way: other names in code (labels of assembly, functions without size).
    `cold`: pieces that the compiler split off a function (NAME.cold); a start there is a false one.
    """
    elf = elffile.Elf(path)
    code = {s.index: s for s in elf.code_sections()}
    sizes, names, ignored, cold = {}, {}, set(), {}
    for s in elf.symbols(elffile.SHT_SYMTAB) + elf.symbols(elffile.SHT_DYNSYM):
        if s.shndx not in code or s.name.startswith(("$x", "$d", "$a", "$t")):
            continue
        is_func = s.type in (elffile.STT_FUNC, elffile.STT_GNU_IFUNC)
        if is_func and COLD.search(s.name):
            cold[s.value] = s.size
        elif is_func and not GO_MARKS.match(s.name) and (s.size or s.name in CRT):
            sizes[s.value] = max(s.size, sizes.get(s.value, 0))
            names.setdefault(s.value, s.name)
        elif not s.name.startswith(".L"):
            ignored.add(s.value)
    sizes = {a: n for a, n in sizes.items() if a not in cold}
    return {"starts": set(sizes), "sizes": sizes, "names": names, "ignored": ignored - set(sizes), "cold": set(cold),
            "code": [(s.addr, s.addr + s.size) for s in code.values() if s.name not in PLT],
            "plt": [(s.addr, s.addr + s.size) for s in code.values() if s.name in PLT]}


def unwind_starts(path):
    """(start, end) of every frame description of .eh_frame, sorted."""
    out = subprocess.run(["readelf", "-wN", "--debug-dump=frames", path], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True, errors="replace", check=False).stdout
    return sorted({(int(a, 16), int(b, 16)) for a, b in re.findall(r"\bpc=([0-9a-f]+)\.\.([0-9a-f]+)", out)})


# --- references from a linear decode -----------------------------------------------------------------------

INSN = re.compile(r"^\s*([0-9a-f]+):\s+(\S.*)$")
X86_JUMP = re.compile(r"^(?:(?:bnd|notrack|cs|ds|addr32|data16|rex\S*)\s+)*(call|jmp|j[a-z]+|loop\w*|xbegin)q?\s+(?:\{\w+\}\s+)?([0-9a-f]+)\b")
X86_PREFIXED_JCC = re.compile(r"^(j[a-z]+),p[nt]\s+([0-9a-f]+)")
RIP = re.compile(r"#\s+([0-9a-f]+)\b")


def references(path):
    """References of x86-64's .text by `objdump -d`: {"call": {(from, to)}, "jump": ..., "rip": ...} and the starts
    of all instructions, in order."""
    p = subprocess.Popen(["objdump", "-d", "-j", ".text", "-w", "--no-show-raw-insn", path], stdout=subprocess.PIPE,
                         text=True, errors="replace")
    refs = {"call": set(), "jump": set(), "rip": set()}
    starts = []
    for line in p.stdout:
        m = INSN.match(line)
        if not m:
            continue
        va, text = int(m.group(1), 16), m.group(2)
        starts.append(va)
        j = X86_JUMP.match(text) or X86_PREFIXED_JCC.match(text)
        if j:
            refs["call" if j.group(1) == "call" else "jump"].add((va, int(j.group(2), 16)))
        elif "(%rip)" in text or "(%eip)" in text:
            r = RIP.search(text)
            if r:
                refs["rip"].add((va, int(r.group(1), 16)))
    p.wait()
    return refs, starts


A64_BRANCH = re.compile(r"^(bl?|b\.\w+|cbn?z|tbn?z)\s+(?:[wx]\w+, )?(?:#\d+, )?([0-9a-f]+)\b")
A64_PAGE = re.compile(r"^adrp\s+(x\d+), ([0-9a-f]+)")
A64_LOW = re.compile(r"^(?:add\s+x\d+, (x\d+), #(0x[0-9a-f]+|\d+)$|(?:ldr|str)\w*\s+\w+, \[(x\d+)(?:, #(\d+))?\])")


def references_plain(path, arch):
    """Direct calls and jumps of .text, and for AArch64 pairs of ADRP and the instruction right behind it that adds the
    low bits: {"call": ..., "jump": ..., "pair": ...}; a pair is (address of the second, target)."""
    tool = "aarch64-linux-gnu-objdump" if arch == "aarch64" else "objdump"
    p = subprocess.Popen([tool, "-d", "-j", ".text", "-w", "--no-show-raw-insn", path], stdout=subprocess.PIPE,
                         text=True, errors="replace")
    refs = {"call": set(), "jump": set(), "pair": set()}
    page = None
    for line in p.stdout:
        m = INSN.match(line)
        if not m:
            continue
        va, text = int(m.group(1), 16), m.group(2)
        j = (A64_BRANCH if arch == "aarch64" else X86_JUMP).match(text)
        if j:
            refs["call" if j.group(1) in ("bl", "call") else "jump"].add((va, int(j.group(2), 16)))
        low = page and A64_LOW.match(text)
        if low and page[0] in (low.group(1), low.group(3)):
            refs["pair"].add((va, page[1] + int(low.group(2) or low.group(4) or "0", 0)))
        m = A64_PAGE.match(text) if arch == "aarch64" else None
        page = (m.group(1), int(m.group(2), 16)) if m else None
    p.wait()
    refs["call"] = {(a, b) for a, b in refs["call"] if b != a + 5}  # i386's call of the next instruction, to read EIP
    return {k: v for k, v in refs.items() if v}


def in_unwind(fdes, starts):
    """A test whether an instruction start of the linear decode lies in a frame description that the decode entered
    at its first byte: data between functions and what a decode makes of the bytes behind it are left out."""
    starts = set(starts)
    good = [(a, b) for a, b in fdes if a in starts]
    lows = [a for a, _ in good]

    def test(va):
        i = bisect.bisect_right(lows, va) - 1
        return i >= 0 and va < good[i][1]
    return test


def first_content(path):
    """Lowest mapped address that holds something other than the file's own headers."""
    elf = elffile.Elf(path)
    addrs = [s.addr for s in elf.sections if s.flags & elffile.SHF_ALLOC and s.addr]
    return min(addrs) if addrs else 0x1000


def word(data, at, size, signed):
    return struct.unpack_from("<" + {1: "b", 2: "h", 4: "i", 8: "q"}[size].upper() if not signed else
                              "<" + {1: "b", 2: "h", 4: "i", 8: "q"}[size], data, at)[0]


def check_tables(path, found):
    """Holds each table of the assembly against the linked bytes; returns those that do not agree (an error here)."""
    elf = elffile.Elf(path)
    got = next((s.value for s in elf.symbols() if s.name == "_GLOBAL_OFFSET_TABLE_"), 0)
    bad = []
    for t in found:
        base = {"base": t["base"], "got": got, "": 0}[t["relative"]]
        raw = elf.read(t["table"], t["entry"] * len(t["targets"]))
        if raw is None:
            bad.append(t)
            continue
        mask = (1 << (64 if elf.is64 else 32)) - 1
        right = []
        for signed in (True, False):  # narrow offsets may be either: the compiler knows, the table does not
            have = [(word(raw, i * t["entry"], t["entry"], signed) * t["scale"] + base) & mask
                    for i in range(len(t["targets"]))]
            right.append(have == t["targets"])
        if not any(right):
            bad.append(t)
    return bad
