#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""seeds.py KIND FOLDER: builds the seeds of a kind of fuzz input. Compiled here and now, so no blob is in the tree.

elf    small programs, objects and libraries of several compilers, flags and machines
code   raw machine code of a program
names  mangled names
keys   what a terminal sends
edits  a made-up image by number and edits of it (fuzz_image.c)
pclntab  Go function tables of all versions, behind a byte of options (fuzz_pclntab.c)
trace    records of traces and a file of them, behind a byte that says which (fuzz_trace.c)
rules    texts of rules, a zero byte, and bytes that events are made of (fuzz_rule.c)
symfile  files of names as other programs write them, behind a byte that chooses the format (fuzz_symfile.c)
results  what snippets hand over (fuzz_result.c)
live     rows of a live trace (fuzz_live.c)
rpc    what a driver sends to a live workbench
serve  what clients send to the server
graphs  control flow graphs, six bytes a block (fuzz_structure.c)
docs   documents of edit, rename --from, import and multi, behind a byte that chooses the operation (fuzz_docs.c)
cdecl  C declarations, and headers after the preprocessor, behind a byte of options (fuzz_cdecl.c)
patterns  patterns over C, and what they are looked for in (fuzz_find.c)
project  P.json, good ones and nearly (fuzz_project.c)
ir     text form of IR
events   events of traces (fuzz_trace_text.c)
btf    types of a kernel
debug  what debug servers say (fuzz_debug.c)
tenet  execution logs (fuzz_tenet.c)
platform  packets that clients send to the platform server (fuzz_platform.c)
reach  URLs, entries of the cache, a program, each behind a letter (fuzz_reach.c)
gdb    packets of the gdb remote protocol: streams of them and payloads alone (fuzz_gdb.c)
box    results of the sandbox, targets and code images (fuzz_box.c)
dwarf  small programs with DWARF, and answers of the child that reads it (src/debuginfo/dw_child.h)
"""
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys

C = r"""
#include <stddef.h>
extern int puts(const char *);
extern void exit(int);
int table[4] = {1, 2, 3, 4};
const char *names[] = {"alpha", "beta", "gamma"};
static int helper(int x) { return x * 3 + table[x & 3]; }
int pick(int x) {
	switch (x) {
	case 0: return helper(1);
	case 1: return helper(7) + 2;
	case 2: puts(names[0]); return 9;
	case 3: return table[1];
	case 4: return x * x;
	case 5: puts(names[2]); return 11;
	case 6: return helper(x) ^ 5;
	default: return -1;
	}
}
static int twice(int x) { return pick(x) + pick(x + 1); }
int (*hook)(int) = twice;
int main(int argc, char **argv) {
	if (argc > 9) { puts("too many"); exit(2); }
	return hook(argc);
}
"""
CXX = "struct A { virtual ~A(); virtual int f(int); }; A::~A() {} int A::f(int x) { try { if (x) throw 3; } " \
      "catch (int v) { return v; } return x; } int main() { A a; return a.f(1); }\n"


def build(cmd, out):
    """Runs a compiler; a machine that lacks it just has fewer seeds."""
    if not shutil.which(cmd[0]):
        return
    subprocess.run(cmd + ["-o", out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def elf(folder):
    c = os.path.join(folder, "a.c")
    cxx = os.path.join(folder, "a.cc")
    with open(c, "w") as f:
        f.write(C)
    with open(cxx, "w") as f:
        f.write(CXX)
    rows = {
        "pie": ["gcc", "-O2"], "nopie": ["gcc", "-O1", "-no-pie"], "dbg": ["gcc", "-g", "-O0"],
        "stripped": ["gcc", "-O2", "-s"], "shared": ["gcc", "-O2", "-shared", "-fPIC"], "obj": ["gcc", "-O2", "-c"],
        "objdbg": ["gcc", "-g", "-gz=zlib", "-c"], "clang": ["clang", "-O2"], "i386": ["clang", "--target=i386", "-O2", "-c"],
        "a64": ["clang", "--target=aarch64", "-O2", "-c"], "be": ["clang", "--target=aarch64_be", "-O2", "-c"],
        "ppc": ["clang", "--target=powerpc64", "-O1", "-c"], "relr": ["gcc", "-O2", "-Wl,-z,pack-relative-relocs"],
    }
    for name, cmd in rows.items():
        build(cmd + [c], os.path.join(folder, name))
    build(["g++", "-O2", cxx], os.path.join(folder, "cxx"))
    build(["g++", "-O2", "-c", cxx], os.path.join(folder, "cxxobj"))
    os.unlink(c)
    os.unlink(cxx)
    for name, head in (("empty", b""), ("magic", b"\x7fELF"), ("zeros", bytes(4096)), ("pe", b"MZ" + bytes(200)),
                       ("script", b"#!/bin/sh\necho\n")):
        with open(os.path.join(folder, name), "wb") as f:
            f.write(head)


def code(folder):
    elf(folder)
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        with open(path, "rb") as f:
            data = f.read()
        with open(path, "wb") as f:
            f.write(data[0x1000:0x1800] or data[:512])


def names(folder):
    rows = ["_ZN3foo3barEv", "_ZNSt6vectorIiSaIiEE9push_backERKi", "_ZN4core9panicking5panic17h0123456789abcdefE",
            "_RNvCskwGfYPst2Cb_3foo16example_function", "_D3std5stdio7writelnFZv", "_Z1fIJiELi3EEvDpT_", "main", "_Z", "_RNv"]
    for i, row in enumerate(rows):
        with open(os.path.join(folder, f"n{i}"), "w") as f:
            f.write(row)


def keys(folder):
    rows = [b"jjkk\x1b[A\x1b[B\x1b[1;5C", b"\x1b[200~pasted text\x1b[201~", b"\x1b[<0;10;20M\x1b[<0;10;20m",
            b"\x1b[?62;4c\x1bP>|tmux 3.3a\x1b\\", b"\x1b]11;rgb:0000/0000/0000\x1b\\", "é漢字".encode(), b"\x1b",
            b"\x1bOP\x1b[11~\x1b[24~\x10\x07", b"\x1b[27;5;9~\x1b[97;5u"]
    for i, row in enumerate(rows):
        with open(os.path.join(folder, f"k{i}"), "wb") as f:
            f.write(row)


def edits(folder):
    """Numbers from a fixed generator: the same seeds on every machine."""
    state = 12345
    for i in range(48):
        row = bytearray([i, i % 4])
        for _ in range(6 * (i % 7)):
            state = (state * 1103515245 + 12345) % 2**31
            row.append(state >> 16 & 255)
        # Offsets are small numbers: the upper bytes of most are 0.
        for k in range(2, len(row), 6):
            row[k + 2:k + 4] = bytes(2)
        with open(os.path.join(folder, f"e{i}"), "wb") as f:
            f.write(row)


def pclntab_bytes(version, bits, big):
    """A table of three functions of code at 0x400000 (runtime/symtab.go)."""
    end = ">" if big else "<"
    word = 4 if bits == 32 else 8

    def w(v):
        return struct.pack(end + ("I" if word == 4 else "Q"), v)

    def u(v):
        return struct.pack(end + "I", v)
    magic = {2: 0xfffffffb, 16: 0xfffffffa, 18: 0xfffffff0, 20: 0xfffffff1}[version]
    names = b"main.main\0main.add\0runtime.exit\0"
    name_offs = [0, 10, 19]
    path = b"/src/a.go\0"
    starts = [0x400000, 0x400040, 0x400100, 0x400180]
    values = bytes([0, 2, 1, 0, 20, 8, 0])  # unused, file 0 and its end, line 9
    head = u(magic) + bytes([0, 0, 1, word])
    half = word if version < 18 else 4
    base = 0 if version < 18 else starts[0]

    def record(i, name_off, value_off):
        return (w(starts[i]) if version < 18 else u(starts[i] - base)) + u(name_off) + u(0) * 3 + u(value_off + 1) + \
            u(value_off + 4) + u(0) + u(0)
    record_len = len(record(0, 0, 0))
    list_len = 7 * half

    def entries(first):
        out = b""
        for i in range(3):
            pair = (starts[i] - base, first + i * record_len)
            out += struct.pack(end + {4: "II", 8: "QQ"}[half], *pair)
        return out + struct.pack(end + {4: "I", 8: "Q"}[half], starts[3] - base)
    if version == 2:
        first = len(head) + word + list_len + 4
        text = first + 3 * record_len
        files = text + len(names) + len(path) + len(values)
        return head + w(3) + entries(first) + u(files) + \
            b"".join(record(i, text + name_offs[i], text + len(names) + len(path)) for i in range(3)) + \
            names + path + values + u(text + len(names))
    count = 7 if version == 16 else 8
    names_off = len(head) + count * word
    units = names_off + len(names)
    files = units + 4
    vals = files + len(path)
    table = vals + len(values)
    head += w(3) + w(1) + (w(base) if version >= 18 else b"") + w(names_off) + w(units) + w(files) + w(vals) + w(table)
    return head + names + u(0) + path + values + entries(list_len) + b"".join(record(i, name_offs[i], 0) for i in range(3))


def pclntab(folder):
    for version in (2, 16, 18, 20):
        for option, (bits, big) in enumerate(((64, False), (32, False), (64, True), (32, True))):
            for section in (0, 4):
                with open(os.path.join(folder, f"p{version}-{option}-{section}"), "wb") as f:
                    f.write(bytes([option | section]) + pclntab_bytes(version, bits, big))


def uleb(*values):
    out = b""
    for v in values:
        while v > 127:
            out += bytes([v & 127 | 128])
            v >>= 7
        out += bytes([v])
    return out


def dwarf(folder):
    c = os.path.join(folder, "a.c")
    with open(c, "w") as f:
        f.write(C)
    for name, flags in (("d4", ["-gdwarf-4"]), ("d5", ["-gdwarf-5"]), ("dz", ["-g", "-gz=zlib"]), ("do", ["-g", "-c"])):
        build(["gcc", "-O1"] + flags + [c], os.path.join(folder, name))
    os.unlink(c)

    def text(b):
        return uleb(len(b)) + b
    file = uleb(1) + text(b"/src/a.c")
    func = uleb(2, 0x1000, 0x40, 3, 7, 1) + text(b"f") + text(b"int f(void)")
    rows = uleb(3, 3, 0x1000, 0, 1, 7, 4, 1, 8, 0x3c, 0, 0)
    note = uleb(4) + text(b"a note")
    # Types: an int, a struct of it that points to itself twice over (a unit each), a table of two dimensions, an enum; data.
    number = uleb(6, 1, 1, 5, 0, 4, 0, 0) + text(b"int") + uleb(0)
    table = uleb(6, 4, 3, 0, 0, 0, 0, 1) + text(b"") + uleb(2) + text(b"") + uleb(0, 0, 6) + text(b"") + uleb(0, 0, 1)
    enum = uleb(6, 5, 8, 0, 0, 4, 0, 1) + text(b"color") + uleb(1) + text(b"RED") + uleb(0, 0, 8)

    def struct(at, flags, name):
        return (uleb(6, at, 6, 0, flags, 16, 0, 0) + text(name) + uleb(2) + text(b"i") + uleb(1, 3, 0) + text(b"next") + uleb(at + 1, 0, 128) +
                uleb(6, at + 1, 2, 0, 0, 8, 0, at) + text(b"") + uleb(0))
    types = number + table + enum + struct(10, 0, b"node") + struct(20, 0, b"node") + struct(30, 1, b"node") + uleb(7, 0x1000, 4, 7, 0x1040, 30)
    for i, row in enumerate((file + func + rows + note + uleb(5), func + file + rows + rows + uleb(5),
                             file + rows + func + func, note, types + uleb(5), types + func + types, uleb(5), file + func + uleb(2, 1, 1, 1, 1, 9) + text(b"g") * 2)):
        with open(os.path.join(folder, f"r{i}"), "wb") as f:
            f.write(row)


CDECL = [
    "struct a { int x : 3, : 0; char *p[4]; union { long l; struct { short s; }; }; } __attribute__((packed, aligned(8)));",
    "typedef struct { struct { int b; } c, *d; } T; T *f(T, ...); enum e { A, B = sizeof(T) << 2, C = -1 };",
    "#pragma pack(push, 2)\nstruct p { char c; long long l; struct { double d; }; };\n#pragma pack(pop)\n# 3 \"x.h\" 1\nint x[];",
    "int (*(*fp[3])(char, struct q *))[2]; void (*signal(int s, void (*)(int)))(int) __asm__(\"sig\");",
    "typedef float v4 __attribute__((vector_size(16))); typedef int di __attribute__((mode(DI))); _Complex double z; _Atomic(int) a;",
    "int old(a, b) int a; char *b; { return '}'; } static const int k = 3, l[] = { 1, 2 }; _Static_assert(sizeof(int) == 4, \"i\");",
    "enum { O = __builtin_offsetof(struct { int a; char b[3]; }, b[1]), G = _Generic(1, int: 2, default: 3), Q = 1 ? 'a' : L'\\x41' };",
    "char *[4]", "struct x const *volatile p", "int f(struct x *, const char *fmt, ...)", "unsigned __int32 (*)(_DWORD)",
]


def said(row):
    """What another compiler might say of the records of a text, as types_clang.h has it: half of them laid out loosely."""
    words = []
    for i, m in enumerate(re.finditer(rb"\b(struct|union|enum)\b[^{};()]*\{([^{}]*)\}", row)):
        cnt = m[2].count(b",") + 1 if m[1] == b"enum" else m[2].count(b";")
        step = 0 if m[1] == b"union" else 64 if i % 2 else 32
        words += [m.start(), max(8, cnt * step // 8), 8, cnt] + [k * step if m[1] != b"enum" else k for k in range(cnt)]
        if len(words) > 255:
            return bytes([0])
    return bytes([len(words)]) + struct.pack(f"<{len(words)}q", *words)


def cdecl(folder):
    rows = [row.encode() for row in CDECL]
    for name in ("stdio.h", "signal.h", "linux/if_ether.h", "linux/input.h", "complex.h"):
        made = subprocess.run(["gcc", "-E", "-x", "c", "-"], input=f"#include <{name}>\n".encode(), stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False)
        rows.append(made.stdout)
    for i, row in enumerate(rows):
        for option in range(12) if len(row) < 1000 else (0, 1, 2):
            with open(os.path.join(folder, f"c{i}-{option}"), "wb") as f:
                f.write(bytes([option]) + (said(row) if option >= 9 else b"") + row)


SYMFILE = [
    "# by hand\n0000000000401136 T main\n0x401200 helper\n                 U puts\nno\n",
    "\n Start         Length     Name                   Class\n 0001:00000000 000067000H .text                  CODE\n\n"
    "  Address         Publics by Value\n\n 0001:00000000       sub_401000\n 0001:00000030       parse\n"
    " 0001:00000050       _main                      00401050 f   main.obj\n 0000:00000001       abs\n\nProgram entry point at 0001:00001060\n",
    "#include <idc.idc>\nstatic main(void) {\n// no\n/* none */ MakeName(0X401000, \"st\\x61rt\\n\\101\");\nset_name(12, 'x', 1);\n"
    "set_cmt(0x401000, \"say \\\"hi\\\"\", 1); MakeComm(ea, \"x\"); set_func_cmt(0x401000L, \"f\", 0); Message(\"a\");\n}\n",
    "\"Name\",\"Location\",\"Type\",\"Namespace\"\n\"main\",\"00101149\",\"Function\",\"Global\"\n\"a \"\"b\"\"\",\"ram:00101200\",\"Function\",\"Box\"\n"
    "printf,EXTERNAL:00000001,Function,<EXTERNAL>\nl,Stack[-0x8],,\n",
    "<?xml version=\"1.0\"?><PROGRAM IMAGE_BASE=\"00100000\"><!-- x --><COMMENT ADDRESS=\"00101149\" TYPE=\"pre\">a &lt;&#x41;&#66; b</COMMENT>"
    "<COMMENT ADDRESS=\"00101149\" TYPE=\"plate\"><![CDATA[raw]]></COMMENT><BOOKMARK ADDRESS=\"00101150\" TYPE=\"Note\" COMMENT=\"c\"/>"
    "<FUNCTION ENTRY_POINT='00101200' NAME='g&quot;'/><SYMBOL ADDRESS=\"00101300\" NAME=\"m\" NAMESPACE=\"A::\" TYPE=\"function\"/></PROGRAM>",
]


def symfile(folder):
    for i, row in enumerate(SYMFILE + ["", "prose, not names"]):
        for option in {0, i + 1}:
            with open(os.path.join(folder, f"s{i}-{option}"), "wb") as f:
                f.write(bytes([option % 6]) + row.encode())


RULES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/live/trace/rules")


def rules(folder):
    """Each rule that comes with scry, with events: enough bytes that calls with texts are among them."""
    rnd = random.Random(5)
    events = [(101, 0), (257, 1), (59, 0), (10, 0), (42, 1), (33, 0), (437, 1)]
    for name in sorted(os.listdir(RULES)):
        with open(os.path.join(RULES, name), "rb") as f:
            text = f.read()
        out = b""
        for kind, (nr, arg) in [(0, e) for e in events] + [(k, (0, 16)) for k in range(1, 9)]:
            body = rnd.choice([b"/etc/shadow\0", b"/proc/1/mem\0", b"\2\0\x1f\x90\x7f\0\0\1", b"sh\0-i\0"])
            out += struct.pack("<BBHBBbI3H", kind, 0x18, nr, rnd.randrange(8), rnd.randrange(8), rnd.choice([0, 3, -2]), rnd.randrange(1 << 20), 3, 2, 577)
            out += b"bash\0\0\0\0/bin/sh\0" + bytes([arg, 0, len(body)]) + body
        with open(os.path.join(folder, name), "wb") as f:
            f.write(text + b"\0" + out)
    for i, text in enumerate([b"rule a\n", b"rule a\ntitle t\nseverity low\nevent exec where (not (path ~ \"*\" or argv has \"-?\"))\nlet x = exe\n"
                                                b"then dup2 within 9 s by tree where exe == $x and oldfd.path ~ \"socket*\"\n", b"rule a\nevent dup where pid ==\n"]):
        with open(os.path.join(folder, f"t{i}"), "wb") as f:
            f.write(text + b"\0" + bytes(range(200)))


DOCS = [
    (0, '{"ops":[{"op":"rename","addr":"0x1139","name":"a"},{"op":"comment","addr":"main","kind":"block","text":"x\\ny"},'
        '{"op":"bookmark","addr":"_start","text":"b"},{"op":"patch","addr":"main","bytes":"c3 90"},{"op":"unpatch","addr":"main"}],'
        '"atomic":true,"dry_run":false,"if_rev":0,"note":"n"}'),
    (0, '{"ops":[1,null,{},{"op":"rename"},{"op":"what","addr":"main"},{"op":"rename","addr":"main","name":5}]}'),
    (1, '{"main":"one","_start":"two","0x1000":"three","nowhere":"four","_init":null}'),
    (2, '{"main":"uno","_start":"sub_123456","0x1000":7}'),
    (2, '{"scry_edits":1,"target":{"sha256":"00"},"edits":[{"op":"rename","addr":"0x1000","sub":"","value":"x"},'
        '{"op":"comment","addr":"0x1000","sub":"line","value":"y"},{"op":"declare","addr":null,"sub":"struct s","value":"struct s { int a; };"},'
        '{"op":"declare","addr":null,"sub":"struct t","value":"struct s {"},{"op":"bookmark","addr":"0x1000","value":"z"},'
        '{"op":"format","addr":"0x1000","sub":"0","value":"hex"},{"op":"analysis","value":"1"},{"op":5}]}'),
    (3, '{"ops":[{"op":"info"},{"op":"resolve","params":{"name":["main","x"]}},{"op":"heads","params":{"addr":"main","count":3,"back":true}},'
        '{"op":"rename"},{"op":"functions","params":{"limit":2,"filter":"*a*","sort":"-size"}},{"op":"bytes","params":{"addr":"main","len":"4"}}]}'),
    (2, SYMFILE[0].replace("401136", "1000")), (2, SYMFILE[1]), (2, SYMFILE[2]), (0, "{"), (1, "[]"), (3, '{"ops":1}'),
]


def docs(folder):
    for i, (option, row) in enumerate(DOCS):
        with open(os.path.join(folder, f"d{i}"), "wb") as f:
            f.write(bytes([option]) + row.encode())


KEYMAPS = [b"GOTO = gg go\nRENAME += Ctrl+N\n# x\n", b"preset r2\nquit =\n", b"langmap \xd0\xb9\xd1\x86 qw\n", b"GOTO = n\nRENAME = n\n", b"langmap a\n",
           b"UP = x\r\nDOWN += ,x Alt+Up F12\n", b"\xff = \xff\nGOTO = \xc3\n"]


def keymaps(folder):
    presets = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/tui/keys")
    rows = KEYMAPS + [open(os.path.join(presets, p), "rb").read() for p in sorted(os.listdir(presets)) if p != "meson.build"]
    for i, row in enumerate(rows):
        with open(os.path.join(folder, f"k{i}"), "wb") as f:
            f.write(row)


RPC = [
    ("ui.ping", {}), ("ui.methods", {}), ("ui.save", {}), ("ui.quit", {}), ("ui.wait", {"until": "idle"}), ("ui.state", {}), ("ui.view", {"lines": 5}),
    ("ui.screen", {}), ("ui.screen", {"format": "html"}), ("ui.screen", ["svg"]), ("ui.diag", {"n": 3, "clear": True}),
    ("ui.keys", {"keys": ["g", "wait:5", "Esc", "Ctrl+P", "Enter"]}), ("ui.keys", ["x", "j", "Enter"]), ("ui.text", {"text": "jj/own\n", "delay_ms": 3}),
    ("ui.paste", {"text": "pasted"}), ("ui.mouse", {"what": "double", "x": 40, "y": 6}), ("ui.action", {"name": "view-hex", "n": 2}),
    ("ui.goto", {"target": "own_func"}), ("ui.goto", {"target": "own_data", "delay_ms": 1}), ("ui.open", ["own_func+1"]), ("ui.follow", {}),
    ("ui.back", {"n": 2}), ("ui.forward", {}), ("ui.show", {"view": "strings"}), ("ui.show", ["functions"]), ("ui.toggle_view", {}), ("ui.hex", {}),
    ("ui.graph", {"action": "succ"}), ("ui.graph", {"action": "block", "block": "own_func"}), ("ui.xrefs", {"from": True}),
    ("ui.symbols", {"query": "own"}), ("ui.structs", {}), ("ui.search", {"query": "hex:7f", "all": True}), ("ui.search", {"query": "rx:a.", "back": True}),
    ("ui.filter", {"text": "own*"}), ("ui.select", {"index": 1, "open": True}), ("ui.select", {"text": "own"}), ("ui.close", {}),
    ("ui.move", {"dir": "down", "n": 3}), ("ui.cursor", {"line": 2, "col": 4}), ("ui.cursor_on", {"word": "ret", "occurrence": 1}),
    ("ui.rename_many", {"items": {"own_func": "f"}, "dry_run": True}), ("ui.binaries", {}), ("ui.rename", {"name": "f", "settle": False}),
    ("ui.comment", {"text": "t", "kind": "block", "timeout_ms": 5}), ("ui.edit", {"ops": [{"op": "bookmark", "addr": "own_func", "text": "t"}]}),
    ("ui.undo", {"steps": 1}), ("functions", {"limit": 2, "filter": "*", "sort": "-size"}), ("disasm", {"func": "own_func"}), ("info", {}),
    ("heads", {"addr": 4096, "count": 5, "back": True}), ("xrefs", {"addr": "puts"}), ("resolve", {"name": ["puts", "own_data"]}),
    ("search", {"text": "libc", "max_bytes": 100}), ("blocks", {"func": "own_func", "svg": True}), ("bytes", ["own_func", 16]), ("man", {}),
    ("journal", {}), ("ui.pseudocode", {}), ("nothing", None), ("callgraph", {"dot": True}), ("strings", {"cursor": "1.2.3"}),
]


def rpc(folder):
    rows = [json.dumps({"jsonrpc": "2.0", "id": i, "method": m, "params": p}).encode() + b"\n" for i, (m, p) in enumerate(RPC)]
    rows += [b"".join(rows), b"".join(rows[::-1]), b'{"method":"ui.close"}\n{"id":"x","method":"ui.ping"}', b"{", b"[]\n\n\r\n{}\n",
             b'{"id":null,"method":"ui.text","params":{"text":"\\u0000\\ud83d\\ude00"}}\n', b"x" * 5000 + b"\n" + rows[0]]
    for i, row in enumerate(rows):
        with open(os.path.join(folder, f"r{i}"), "wb") as f:
            f.write(row)


SERVE = [
    ("ping", {}), ("ping", None), ("hello", {"client": "c", "kind": "agent", "caps": ["read", "edit", "net"]}), ("hello", {"kind": "human"}),
    ("databases", {}), ("methods", {}), ("use", {"database": 1}), ("use", {"database": "lib.so"}), ("open", {"file": "/no/such", "wait": False}),
    ("open", {"file": "x", "processor": "x86-64", "base": "0x10", "format": "raw"}), ("close", {"database": 1}), ("subscribe", {"since": 0}),
    ("subscribe", {}), ("unsubscribe", {"database": "1"}), ("cancel", {"id": 3}), ("cancel", {"id": "x"}), ("info", {"deadline_ms": 5000}),
    ("info", {"progress": False, "as_table": True, "as_color": True}), ("functions", {"limit": 2, "filter": "*", "sort": "-size"}),
    ("functions", {"as_table": True, "limit": 1}), ("functions", {"max_bytes": 50, "etag": "0123456789abcdef"}), ("disasm", ["own_func"]),
    ("heads", {"addr": 4096, "count": 5, "back": True}), ("heads", {"etag": "56a0026f84373377.000000000002feb0.000000000002feb1"}),
    ("resolve", {"name": ["puts", "own_data", "nowhere"]}), ("xrefs", {"addr": "puts", "database": "lib.so"}), ("bytes", ["own_func", 16]),
    ("decompile", {"func": "own_func", "map": True}), ("decompile", {"func": "own_func"}), ("type_at", {"addr": "puts"}), ("blocks", ["own_func"]),
    ("search", {"text": "libc", "limit": 3}), ("strings", {"cursor": "1.2.3"}), ("multi", {"ops": [{"op": "info"}, {"op": "none"}]}),
    ("comment", {"addr": "own_func", "text": "t"}), ("rename", {"addr": "own_func", "name": "f", "author": "me"}), ("undo", {"steps": 1}),
    ("edit", {"ops": {"ops": [{"op": "bookmark", "addr": "own_func", "text": "t"}]}}), ("export", {"output": "/no/such"}), ("nothing", {}),
    ("call", {"func": "own_func"}), ("changes", {"since": 0}), ("journal", {}), ("info", {"database": []}), ("version", {}),
]


def serve(folder):
    rows = [json.dumps({"jsonrpc": "2.0", "id": i, "method": m, "params": p}).encode() + b"\n" for i, (m, p) in enumerate(SERVE)]
    told = [json.dumps({"method": m, "params": p}).encode() + b"\n" for m, p in SERVE[:12]]
    same = [json.dumps({"id": "same", "method": m, "params": p}).encode() + b"\n" for m, p in SERVE[16:30]]
    rows += [b"".join(rows), b"".join(rows[::-1]), b"".join(rows[i // 2] if i % 2 else told[i % 12] for i in range(40)), b"".join(same), b"".join(told),
             b"".join(rows[16:40] * 8), b"{", b"[]\n\n\r\n{}\n", rows[0][:-1] + b" " * 70000 + b"\n" + rows[1], b"x" * 5000 + b"\n" + rows[0],
             rows[33] + b'{"method":"cancel","params":{"id":33}}\n' + rows[34]]
    for i, row in enumerate(rows):
        with open(os.path.join(folder, f"v{i}"), "wb") as f:
            f.write(row)


MCP = [
    ("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}), ("ping", None),
    ("tools/list", {}), ("resources/list", {}), ("resources/templates/list", {}),
    ("resources/read", {"uri": "scry://lib.so/info"}), ("resources/read", {"uri": "scry://lib.so/func/0x1000%2b4"}),
    ("resources/subscribe", {"uri": "scry://lib.so/functions"}), ("resources/unsubscribe", {"uri": "scry://lib.so/functions"}),
] + [("tools/call", {"name": n, "arguments": a, "_meta": {"progressToken": 7}}) for n, a in [
    ("open", {}), ("open", {"path": "/nowhere", "wait": False}), ("look", {"addr": "0x1000", "max_bytes": 400}), ("find", {"name": "*"}),
    ("find", {"bytes": "7f 45", "limit": 1}), ("find", {"string": "a"}), ("list", {"op": "functions", "limit": 2, "cursor": "0.1.0"}),
    ("list", {"op": "symbols", "params": {"filter": "a"}}), ("list", {"op": "heads", "params": {"addr": "0x1000", "count": 30}, "max_bytes": 300}),
    ("list", {"op": "multi", "params": {"ops": [{"op": "info"}, {"op": "bytes", "params": {"addr": "0x1000", "len": 8}}]}}),
    ("edit", {"ops": [{"op": "rename", "addr": "0x1000", "name": "n"}], "dry_run": True, "if_rev": 0}),
    ("edit", {"op": "comment", "params": {"addr": "0x1000", "text": "c"}}), ("run", {"code": "1"}), ("trace", {}), ("reference", {"word": ["rename"]}),
    ("edit", {"ops": [{"op": "comment", "addr": f"0x{0x1000 + i:x}", "text": "c" * 40} for i in range(24)], "dry_run": True, "max_bytes": 400}),
    ("edit", {"cursor": "rest.1.3"}), ("edit", {"ops": [{"op": "comment", "addr": "0x1000", "text": "\u00e9\"" * 900}], "dry_run": True}),
    ("list", {"op": "info", "cursor": "rest.2.1700", "max_bytes": 256}), ("look", {"addr": "lib.so!0x1000"})]]


def mcp(folder):
    def line(i, m, p):
        return json.dumps({"jsonrpc": "2.0", "id": i, "method": m, **({} if p is None else {"params": p})}).encode() + b"\n"
    rows = [line(i, m, p) for i, (m, p) in enumerate(MCP)]
    seeds = [b"\x06" + r for r in rows] + [b"\x00" + b"".join(rows), b"\x06" + b"".join(rows[-5:]), b"\x05" + b"[" + b",".join(r.strip() for r in rows) + b"]\n", b"\x00" + rows[2],
             b'\x04{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}\n{"id":1}\n[]\n[{}]\nx\n{"id":null,"method":"ping"}\n']
    for i, row in enumerate(seeds):
        with open(os.path.join(folder, f"m{i}"), "wb") as f:
            f.write(row)


RESULTS = [
    '{"a":[1,-2.5e+3,0.25,true,false,null],"b":{"c":"\\u00e9\\n\\"\\\\"}}', "[]", '"text"', "12", "[[[{}]],{}]", '[1,2', '{"a":1}{"b":2}', '{"a":1}\n{"id":7}', "01",
    '{"a" : [ 1 , 2 ] , "b" : { } }', "[" * 1100 + "]" * 1100, '"\u00e9"', '{"a":}', "-", "1.", '"\\x"', "[1,]", "nul", " 7 ",
]


def results(folder):
    for i, row in enumerate(RESULTS):
        with open(os.path.join(folder, f"r{i}"), "wb") as f:
            f.write(row.encode())


def live_row(kind, texts, frames, site=0):
    """A row as src/session/ses_live_row.c writes it: comm, name, result, args; frames are (module, function)."""
    comm, name, result, args = texts
    body = comm + name + result + args
    for module, func in frames:
        body += struct.pack("<QQHHI", 0x1000, 4, len(module), len(func), 1) + module + func
    head = struct.pack("<BBHIIQQHHHHHHI", kind, 1, 3, 7, 8, 100, 5, len(comm), len(name), len(result), len(args), len(frames), site, 0)
    return struct.pack("<I", 4 + len(head) + len(body)) + head + body


def live(folder):
    call = live_row(0, (b"cat", b"openat", b"3", b'(AT_FDCWD, "/etc/passwd", O_RDONLY)'), [(b"/lib/libc.so.6", b"open"), (b"/bin/cat", b"main")], 1)
    end = live_row(5, (b"", b"", b"", b"the trace has ended"), [])
    rows = [call, end, call + end, call[:-3], call * 5 + end, live_row(9, (b"",) * 4, []), live_row(1, (b"a" * 20000, b"", b"", b""), []), b"\1\0\0\0", b""]
    for i, row in enumerate(rows):
        with open(os.path.join(folder, f"l{i}"), "wb") as f:
            f.write(row)


def event(nr, args, slots, kind=0, abi=0, flags=4 | 8, ret=5):
    """An event as fuzz_trace_text.c reads it; slots are (argument, phase, part, status, bytes)."""
    row = struct.pack("<BBBhh", kind, abi, flags, nr, ret) + b"".join(struct.pack("<Q", a) for a in args) + struct.pack("<BBHB", 7, 8, 100, len(slots))
    return row + b"".join(struct.pack("<BBBH", arg | phase << 5 | part << 6, status, 0, len(data)) + data for arg, phase, part, status, data in slots)


def events(folder):
    words = struct.pack("<16Q", 0x1000, 3, 0x1000, 2, 0x1000, 20, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
    unix, inet = b"\1\0/run/x\0", b"\2\0\0\120\177\0\0\1" + b"\0" * 20
    cmsg = struct.pack("<QIIi", 20, 1, 1, 3) + b"\0" * 4
    for nr in range(0, 475):
        rows = b""
        for data in (b"/etc/passwd\0", words, unix, inet, b"\x11\0\0\0\0\0\0\0\1\0\0\0" + words):
            slots = [(arg, phase, 0, 0, data) for arg in range(6) for phase in (0, 1)]
            rows += event(nr, (3, 0x1000, 64, 2, 1, 128), slots + [(1, phase, part, 0, cmsg * 2) for phase in (0, 1) for part in (1, 2, 3)][:4])
            rows += event(nr, (0xffffff9c, 0x1000, 0x241, 0o644, 0, 0), [(1, 0, 0, nr % 6, data)], ret=-2)
        with open(os.path.join(folder, f"e{nr}"), "wb") as f:
            f.write(rows)
    for kind in range(1, 9):
        rows = event(0, (11, 1, 2, 3, 4, 5), [(0, 0, 0, 0, words), (16, 0, 0, 0, b"ls\0-l\0")], kind=kind) + event(0, (0, 9, 0, 0, 0, 0), [], kind=kind)
        with open(os.path.join(folder, f"k{kind}"), "wb") as f:
            f.write(rows)


def btf(folder):
    """All kinds of types, named and nested."""
    strs = b"\0int\0char\0pair\0a\0name\0c\0next\0color\0RED\0list\0"
    at = lambda name: strs.index(b"\0" + name + b"\0") + 1
    head = lambda name, kind, size, vlen=0, flag=0: struct.pack("<III", at(name) if name else 0, flag << 31 | kind << 24 | vlen, size)
    types = [head(b"int", 1, 4) + struct.pack("<I", 1 << 24 | 32), head(b"char", 1, 1) + struct.pack("<I", 8),
             head(b"", 3, 0) + struct.pack("<III", 2, 1, 4), head(b"color", 6, 4, 1) + struct.pack("<II", at(b"RED"), 7), head(b"", 2, 6),
             head(b"pair", 4, 24, 4, 1) + struct.pack("<12I", at(b"a"), 1, 0, at(b"name"), 3, 32, at(b"c"), 4, 8 << 24 | 64, at(b"next"), 5, 128),
             head(b"", 3, 0) + struct.pack("<III", 6, 1, 3), head(b"list", 8, 9), head(b"", 5, 72, 2) + struct.pack("<6I", at(b"a"), 7, 0, at(b"c"), 1, 0),
             head(b"", 10, 9), head(b"", 9, 10), head(b"color", 19, 8, 1) + struct.pack("<III", at(b"RED"), 7, 1), head(b"a", 7, 0),
             head(b"", 13, 0, 1) + struct.pack("<II", at(b"a"), 1), head(b"a", 12, 14), head(b"c", 14, 1) + struct.pack("<I", 1),
             head(b"name", 15, 4, 1) + struct.pack("<III", 16, 0, 4), head(b"a", 16, 8), head(b"a", 17, 1) + struct.pack("<I", 0), head(b"a", 18, 1)]
    for n in range(6, len(types) + 1):
        body = b"".join(types[:n])
        with open(os.path.join(folder, f"b{n}"), "wb") as f:
            f.write(struct.pack("<HBBIIIII", 0xeb9f, 1, 0, 24, 0, len(body), len(body), len(strs)) + body + strs)


PROJECT = [
    '{"binaries":[{"path":"a"}]}', '{"name":"n","id":"00112233445566778899aabbccddeeff",\n"binaries":[\n{"path":"lib/x.so","label":"x"},\n'
    '{"path":"/bin/y","sha256":"' + "0f" * 32 + '"}\n]}\n',
    '{"binaries":[]}', '{"binaries":[{"path":"a","label":"\\u00e9 \\ud83d\\ude00"},\n\n{"path":"b","label":"c"}]}',
    '{\n"name":"\\"}]","binaries":[{"label":"[{","path":"}"},{"path":"a"},{"path":"a"}]}', '{"binaries":[{"pfad":"a"}],"x":1}',
    '{"binaries":[1,{"path":2}]}', '{"binaries":[{"path":"a",}]}',
]


def project(folder):
    for i, row in enumerate(PROJECT):
        with open(os.path.join(folder, f"p{i}"), "wb") as f:
            f.write(row.encode())


IR = [
    "block 0 0x1000\ninsn 0x1000 4\n%0:64 = get rax\n%1:64 = add %0 0x5:64\nput rax %1\n%3:1 = cmp.ult %1 %0\nbr %3 b1 b2\n"
    "block 1\n%5:64 = gaddr 0x2000:64\nstore %5 %1 !be\ncall %5 0x1006:64\njmp b2\nblock 2\nret #8\n",
    "block 0\njmp b1\nblock 1\n%1:64 = phi ( 0x1:64 %2 )\n%2:64 = sub %1 0x1:64\n%3:1 = cmp.eq %2 0x0:64\nbr %3 b2 b1\n"
    "block 2\nswitch b3 %2 ( 0x0:64 b0 0x7:64 b3 )\nblock 3\ntrap.ud\n",
    "block 0\n%0:128 = get xmm1\n%1:128 = vmap <fbin.add 32> %0 0xffffffffffffffff0000000000000001:128\n%2:128 = vperm %1 %0 0x1f0000:128\n"
    "%3:32 = vmask #8 %2\n%4:128 = vcvt <itof.s 32> %2 0x40:64\n%5:128 = vshift <ashr 16> %4 %3\n%6:128 = vpack.u #16 %5 %4\n"
    "%7:128 = vmadd #16 %6 %6\n%8:128 = vmap <vlane.addus 8> %7 %5\nput xmm1 %8\n%10:64 = get rax\n%11:128 = concat %10 0x5:64\nijmp 0x10:64\n",
    "block 0\n%0:64 = get rdi\n%1 = memop.scan #8 ( %0 0x0:8 0x40:64 0x0:1 0x0:1 )\n%2:64 = res #0 %1\n%3:8 = res #4 %1\nput rdi %2\n"
    "%5:80 = undef\n%6:80 = fun.sqrt %5\nput f0 %6\n%8:64 = divw.uquot %0 %2 0x3:64\n%9:32 = rmw.add %0 0x1:32\n"
    "%10:64 = cas %0 0x1:64 0x2:64\nfence\n%12:1 = flag.ovf_add %8 %2 0x1:1\n%13:32 = ftoi.trunc 0x3ff0000000000000:64\nput zf %12\nret #0\n",
]
INTRIN = "intrin 0 cpuid 0x1004 0fa2 in ( rax rcx ) out ( rax rbx rcx rdx ) mem 0 ---- x87 0\n" \
         "block 0\n%0:64 = get rax\n%1 = intrin #0 ( %0 0x1:64 )\n%2:64 = res #3 %1\nput rdx %2\nret #0\n"


def ir(folder):
    rows = [f"func x86-64 0x1000\n{row}" for row in IR + [INTRIN]]
    rows.append("func i386 0x10\nblock 0\n%0:32 = get eax\n%1:16 = extract #3 %0\n%2:32 = insert #8 %0 %1\nput eax %2\nijmp %2\n")
    for i, row in enumerate(rows):
        with open(os.path.join(folder, f"i{i}"), "w") as f:
            f.write(row)


def box(folder):
    def put(name, data):
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)
    def result(status, flags, *records):
        return struct.pack("<cHBB", b"r", status, flags, 0) + b"".join(struct.pack("<IQ", at, v) for at, v in records)
    put("returned", result(0, 2))
    put("killed", result(9, 0))
    put("late", result(0, 1))
    # Every word of what comes before the input, with small and large values.
    for k in range(24):
        put(f"words{k}", result(0, 2, *((4 * (at + 240 * k // 24), (1 << 64) - 1 if k & 1 else k) for at in range(0, 700, 8))))
    put("far", result(0, 2, *((4 * 4099 * i + 3, i * 0x0101010101) for i in range(400))))
    source = os.path.join(folder, "a.c")
    with open(source, "w") as f:
        f.write("int zeros[2000], set[4] = {1, 2, 3}; int *p = set + 1; extern int other(int); int (*f)(int) = other;\n"
                "int g(int x) { zeros[x & 7] = other(x) + *p; return f(x) + set[1]; }\nvoid _start(void) { g(1); }\n")
    for name, flags in (("so", ["-shared", "-fPIC"]), ("relr", ["-shared", "-fPIC", "-Wl,-z,pack-relative-relocs"]),
                        ("packed", ["-shared", "-fPIC", "-Wl,-z,noseparate-code,-z,norelro,-z,max-page-size=4096"]),
                        ("exec", ["-no-pie", "-Wl,--unresolved-symbols=ignore-all"]), ("together", ["-no-pie", "-Wl,-N,--unresolved-symbols=ignore-all"])):
        made = os.path.join(folder, "out")
        build(["gcc", "-O1", "-nostdlib", "-s", "-w", "-Wl,--build-id=none"] + flags + [source], made)
        if os.path.exists(made):
            with open(made, "rb") as f:
                data = f.read()
            os.unlink(made)
            put("t" + name, b"t" + data)
            put("c" + name, b"c" + data)
    os.unlink(source)


def trace(folder):
    """src/live/trace/trace_wire.h"""
    def slot(arg, how, data, full=0):
        return struct.pack("<HBBI", len(data), arg, how, full) + data + bytes(-len(data) % 8)

    def record(kind, cpu, seq, *slots, flags=0, nr=0, args=(), ret=0, before=b""):
        args = list(args) + [0] * (6 - len(args))
        body = struct.pack("<QIIiHBB6Qq", 1000 + seq, 50, seq, nr, cpu, kind, flags, *args, ret) + before + b"".join(slots)
        return struct.pack("<II", len(body), 0) + body

    def proc(comm):
        return slot(24, 0, struct.pack("<QQIIIIII16s", 1, 2, 50, 1, 0, 0, 3, 4, comm))
    user = struct.pack("<QQHHI", 0x401000, 0x7ffe0000, 16, 16, 0) + bytes(range(16))
    records = [
        record(0x80, 0xffff, 0, args=(0, 2)),
        record(8, 0xffff, 0, proc(b"sh"), slot(18, 0, b"/bin/sh"), slot(26, 0, b"0123456789abcdef")),
        record(0, 0, 3, slot(0, 0, b"/tmp"), flags=1, nr=80, args=(4096,), ret=-38),
        record(0, 0, 4, slot(0, 0, b"/etc"), flags=2, nr=80, args=(4096,), before=user),
        record(0, 0, 9, slot(1, 0x40, bytes(32)), slot(1, 0x4a, b"data", 9), flags=6, nr=19, args=(3, 1, 2), ret=2, before=bytes(8) + user),
        record(2, 1, 1, proc(b"sh"), args=(0, 51), ret=51),
        record(1, 1, 2, proc(b"ls"), slot(27, 0, struct.pack("<QII", 5, 6, 1)), slot(18, 0x80, b"ls\0bin\0"), slot(19, 0x82, b"w\0x\0"),
               slot(16, 0, b"ls\0-l\0"), slot(25, 0, bytes(320)), args=(50,)),
        record(4, 1, 3, slot(0, 0x80, b"libc.so.6\0lib\0"), args=(4096, 4096, 5, 2, 0)),
        record(5, 1, 4, args=(17, 1, 51)),
        record(7, 0xffff, 0, nr=1, args=(3, 4, 6)),
        record(3, 1, 5, args=(1,), ret=256),
    ]
    for i, r in enumerate(records):
        with open(os.path.join(folder, f"r{i}"), "wb") as f:
            f.write(b"r" + r)
    text = b"version 1\nmachine x86_64\nepoch 5\ncommand ls\n\n\n\n"
    text += b"\n" * (-len(text) % 8)
    head = b"scrytrc1" + struct.pack("<II", 0x01020304, len(text)) + text
    block = b"".join(records)
    with open(os.path.join(folder, "all"), "wb") as f:
        f.write(b"r" + block)
    with open(os.path.join(folder, "file"), "wb") as f:
        f.write(b"f" + head + struct.pack("<IIQ", 0x6b6c6273, len(block), 0) + block)
    with open(os.path.join(folder, "nothing"), "wb") as f:
        f.write(b"f" + head[:12])


PROBE_CONDITIONS = ["count > 10 && pid == 7", 'path == "/etc/passwd" || !(flags & 0x10)', "ret < 0 && ns >= 1000000", "(a1 ^ a2) << 3 == ~a3 - 'x' * -1",
                    "rdi != eax | cl", "uid + cpu + tid <= 5 && (ret == count || flags)", 'a1 != "\\"q"', "a9", "((1)", "ratio"]


def probes(folder):
    rows = [b"c" + c.encode() for c in PROBE_CONDITIONS]
    for phase in (0, 1, 2):
        head = struct.pack("<6QIHBB", 9, 8, 77 << 32 | 78, 0x401000, 0x7ffc00, 0x401100, 0, 1, phase, 1)
        entry = struct.pack("<4Q", 0x404000, 5, 0x404010, 0) + struct.pack("<i4x", 6) + b"hello\0".ljust(40, b"\0") + struct.pack("<i4x", 20) + bytes(24)
        tail = struct.pack("<2Q", 0x404020, 1500) + struct.pack("<i4x", 18) + b"r" * 24
        rows.append(b"r" + head + (entry if phase != 1 else b"") + (tail if phase else b""))
    types = struct.pack("<4I", 1, 1 << 24, 4, 32) + struct.pack("<3I", 5, 12 << 24, 1) + struct.pack("<5I", 0, 4 << 24 | 0, 8, 5, 13 << 24)
    strings = b"\0int\0one\0"
    rows.append(b"b" + struct.pack("<6I", 0x0001eb9f, 24, 0, len(types), len(types), len(strings)) + types + strings)
    for i, row in enumerate(rows):
        with open(os.path.join(folder, f"p{i}"), "wb") as f:
            f.write(row)


def platform(folder):
    def h(text):
        return text.encode().hex().encode()
    files = [b"vFile:setfs:0", b"vFile:open:%s,0,0" % h("/a"), b"vFile:pread:3,20,2", b"vFile:zread:3,ffffffffffffff,0", b"vFile:fstat:3", b"vFile:close:3",
             b"vFile:stat:" + h("a"), b"vFile:size:" + h("/a"), b"vFile:mode:" + h("/../a"), b"vFile:exists:" + h("/b"), b"vFile:MD5:" + h("/a"),
             b"vFile:XXH3:" + h("/a"), b"vFile:SHA256:" + h("/a"), b"vFile:open:%s,40000601,1a4" % h("/b"), b"vFile:pwrite:3,0,x}\x03y",
             b"vFile:symlink:%s,%s" % (h("/../../etc/passwd"), h("/l")), b"vFile:readlink:" + h("/l"), b"vFile:unlink:" + h("/l"),
             b"qPlatform_mkdir:000001ff," + h("/d"), b"qPlatform_chmod:000001c0," + h("/d"), b"QSetWorkingDir:" + h("d"), b"qGetWorkingDir",
             b"qModuleInfo:%s;%s" % (h("/elf"), h("x86_64--linux")), b'jModulesInfo:[{"file":"/elf","triple":""}]', b"qPathComplete:0," + h("/"), b"QSetWorkingDir:"]
    host = [b"QStartNoAckMode", b"qHostInfo", b"qSupported:xmlRegisters=i386;multiprocess+;swbreak+", b"qSupported:scry+;binary-upload+;exec-events+",
            b"qQueryGDBServer", b"qProcessInfoPID:1", b"qfProcessInfo:name:%s;name_match:equals;all_users:1;uid:0;" % h("init"), b"qsProcessInfo", b"qUserName:0",
            b"qGroupName:0", b"qEcho:1", b"qSpeedTest:response_size:100;", b"QEnableErrorStrings", b"vRun;" + h("/bin/true"), b"QEnvironment:A=b",
            b"QEnvironmentHexEncoded:" + h("A=c"), b"QEnvironmentUnset:" + h("A"), b"QEnvironmentReset", b"QSetSTDIN:" + h("/x"), b"QSetDisableASLR:1",
            b"qLaunchSuccess", b"vAttach;1", b"qPlatform_shell:%s,0000000a" % h("id"), b"?", b"!", b"nothing"]
    state = [b"qfThreadInfo", b"qsThreadInfo", b"qC", b"qProcessInfo", b"qAttached", b"Hg0", b"Hc-1", b"T1", b"g", b"p10", b"p7;thread:1;", b"P3=0102030405060708",
             b"G" + b"00" * 16 + b"xx" * 8, b"m400000,20", b"x0,0", b"x7fff00000000,1000", b"M1000,2:0102", b"X1000,2:ab", b"qMemoryRegionInfo:400000", b"qMemoryRegionInfo",
             b"qFileLoadAddress:" + h("/bin/true"), b"qWatchpointSupportInfo:", b"qSearch:memory:0;ffffffff;ELF", b"qXfer:features:read:target.xml:0,1000",
             b"qXfer:auxv:read::0,1000", b"qXfer:libraries-svr4:read::0,1000", b"qXfer:libraries-svr4:read::10,1000", b"qXfer:exec-file:read:1:0,100",
             b"qXfer:threads:read::0,1000", b"qXfer:siginfo:read::0,1000", b"Z0,400000,1", b"z0,400000,1", b"Z2,400000,4", b"z2,400000,4", b"Z1,400000,1",
             b"qThreadStopInfo1", b"jThreadsInfo", b"vCont?", b"vCont;s", b"vScryLog:1;1;10;100;0", b"vScryLog:p1.1;0;ffffffffff;0;b", b"vCont;r400000,400010:-1;c", b"vCont;C0b;t", b"c", b"s", b"C0a;400000", b"QPassSignals:e;11",
             b"qThreadExtraInfo,1", b"I" + h("x")]
    last = [[b"D"], [b"k"], [b"vKill;1"], [b"D1"]]
    rows = [bytes([how]) + b"\n".join(files) for how in (1, 2, 0x11)] + [bytes([how]) + b"\n".join(host) for how in (1, 7)]
    rows += [bytes([how]) + b"\n".join(state + last[i]) for i, how in enumerate((0x21, 0x31, 0x2f, 0x3d))]
    rows += [b"\x21" + one for one in state[::6]]
    rows.append(b"\x80+" + b"+".join(b"$" + p + b"#%02x" % (sum(p) % 256) for p in host[:12]) + b"-\x03$a#00" + b"$" * 40)
    for i, row in enumerate(rows):
        with open(os.path.join(folder, f"s{i:02}"), "wb") as f:
            f.write(row)


def gdb(folder):
    def packet(raw, mark=b"$"):
        return mark + raw + b"#%02x" % (sum(raw) % 256)
    path = b"/bin/ls".hex().encode()
    asked = [b"QStartNoAckMode", b"vFile:open:" + path + b",0,180", b"vFile:pread:5,1000,0", b"vFile:zread:5,40000,7fffffff", b"vFile:close:5",
             b"vFile:pwrite:5,0,a}\x03b,c", b"vFile:fstat:5", b"vFile:size:" + path, b"vFile:symlink:" + path + b"," + path, b"vFile:setfs:0", b"vFile:what:1"]
    told = [b"OK", b"", b"E03", b"E44;" + b"no process".hex().encode(), b"E.not now", b"F5", b"F-1,d", b"F-1,5b", b"F3;AB}\x03*%CD", b"F4* ;" + b"0* " * 6,
            b"F40;" + bytes(range(40, 104)).replace(b"*", b"}\n").replace(b"}", b"}]"), b"F0000000006404098", b"F,c9f848c7cd6bd933068def29ae0c8037", b"F,x",
            b"Z20;(\xb5/\xfd \x20\x01\x02", b"pid:12;port:345;", b"PacketSize=131072;QStartNoAckMode+;qEcho+;QListThreadsInStopReply+;vFile:zread+",
            b"PacketSize=47ff;QStartNoAckMode+;multiprocess+;scry+;qXfer:auxv:read+"]
    rows = [b"q" + a for a in asked] + [b"r" + t for t in told]
    rows.append(b"s\0" + b"+" + b"+".join(packet(a) for a in asked) + b"-\x03noise$bad#00")
    rows.append(b"s\5" + b"".join(packet(t) for t in told) + packet(b"Stop:T05", b"%") + b"$unsummed#00")
    for i, row in enumerate(rows):
        with open(os.path.join(folder, f"g{i}"), "wb") as f:
            f.write(row)


def debug(folder):
    core = "".join(f'<reg name="{r}" bitsize="64" type="int64"/>' for r in "rax rbx rcx rdx rsi rdi rbp rsp r8 r9 rip".split())
    head = '<?xml version="1.0"?><!DOCTYPE target SYSTEM "gdb-target.dtd"><!-- &lt; -->'
    rows = ["r" + head + '<target version="1.0"><architecture>i386:x86-64</architecture><feature name="org.gnu.gdb.i386.core">' + core +
            '<reg name="eflags" bitsize="32"/><reg name="xmm0" bitsize="128" regnum="40"/></feature></target>',
            "r<target><xi:include href='64bit-core.xml'/><xi:include href=\"sse.xml\"/></target>\0<feature>" + core + "</feature>\0<reg name='x&#x31;' bitsize='256'/>\0",
            'r<target><reg name="rip" bitsize="64" regnum="0" offset="128"/><reg name="rax" bitsize="64" regnum="2" offset="0"/>'
            '<reg name="eax" bitsize="32" regnum="3" offset="0" value_regnums="2"/></target>',
            "r<target><reg name='pc' bitsize='7'/>", "r<![CDATA[x]]><!DOCTYPE a [<!ENTITY b 'c'>]><reg",
            'l<library-list-svr4 version="1.0" main-lm="0x7f"><library name="/lib/libc.so.6" lm="0x7f00" l_addr="0x7ffff7dd2000" l_ld="0x10"/>'
            '<library name="a&amp;b" l_addr="4096"/></library-list-svr4>', "l<library name='x' l_addr='0x1",
            "tT05thread:p1.2a;name:main;threads:1,2a;thread-pcs:401136,7ffff;10:3611400000000000;07:00f0ff7f00000000;reason:breakpoint;",
            "tT05watch:7fff0;thread:1;", "tT05reason:watchpoint;description:" + b"4198710 0 4198710".hex() + ";", "tW0a;process:12", "tX0b", "tS0b", "tE01", "tTzz", "tF1,2", "t",
            'j[{"tid":1,"name":"main","reason":"trace","registers":{"16":"3611400000000000","7":"00f0ff7f00000000"}},{"tid":42,"name":"w\\u00e9"}]',
            'j[{"tid":42,"registers":{"16":"zz"}},null,1,{"tid":-1,"name":"' + "n" * 99 + '","registers":{"16":""}},{"tid":18446744073709551616}]', "j{}", "j[" * 50]
    for i, row in enumerate(rows):
        with open(os.path.join(folder, f"d{i}"), "w", newline="") as f:
            f.write(row)


def tenet(folder):
    first = "rax=0x0,rbx=0x7d,rsp=0x7ffd0ff8,rip=0x401000"
    rows = [first + "\nrip=0x401004,mw=0x7ffd0ff8:0010400000000000\nrax=0x2a,rip=0x401000,mr=0x7ffd0ffc:00000000\nrip=0x401004,mrw=0xffffffffffffffff:01\n",
            "RAX=1,pc=2\r\n\n,, pc=0x3 ,x\nslide=5\nmw=0x3f:" + "ab" * 200 + "\npc=0x2",
            "".join(f"rip=0x{0x1000 + i % 7:x},mw=0x{0x8000 + i % 300:x}:{i % 256:02x}\n" for i in range(2100)),
            "Loaded image: 0x400000:0x401000 -> prog\n", "mw=0xffffffffffffffff:0011\nmr=0x1:1\nrax=0x11111111111111111\n"]
    for i, row in enumerate(rows):
        with open(os.path.join(folder, f"t{i}"), "w", newline="") as f:
            f.write(row)


def graphs(folder):
    """Graphs of blocks, six bytes each: see fuzz_structure.c."""
    rng = random.Random(7)

    def block(end, x, y, more=0, cost=1):
        return struct.pack("<BHHB", end | cost << 4, x, y, more)

    shapes = {
        "if": [block(1, 1, 2), block(0, 3, 0), block(0, 3, 0), block(3, 0, 0)],
        "while": [block(0, 1, 0), block(1, 2, 3, cost=0), block(0, 1, 0, cost=12), block(3, 0, 0)],
        "do": [block(0, 1, 0), block(1, 1, 2), block(3, 0, 0)],
        "switch": [block(2, 1, 2, 3)] + [block(0, 6, 0)] * 5 + [block(3, 0, 0)],
        "twice": [block(1, 1, 2), block(1, 2, 3), block(1, 1, 3), block(3, 0, 0)],
        "none": [block(0, 9, 0)],
    }
    for name, blocks in shapes.items():
        for options in (b"\x40\0", b"\x21\x03"):
            with open(os.path.join(folder, f"{name}-{options[0]}"), "wb") as f:
                f.write(options + b"".join(blocks))
    for i in range(20):
        cnt = rng.randrange(4, 60)
        blocks = [block(rng.choice((0, 1, 1, 1, 2, 3)), rng.randrange(cnt), rng.randrange(cnt), rng.randrange(256), rng.randrange(16))
                  for _ in range(cnt)]
        with open(os.path.join(folder, f"any-{i}"), "wb") as f:
            f.write(bytes((rng.randrange(256), rng.randrange(256))) + b"".join(blocks))


def reach(folder):
    rows = [b"u" + u for u in (b"connect://h:80/bin/ls", b"connect://[::1]:5/x", b"unix-connect:///run/s:/x", b"ssh://me@h:22/x", b"ssh://-x/y", b"connect://h/x")]
    entry = (b"scry-remote 1\nsha256 " + b"0f" * 32 + b"\nlen 12\nblob 5 17 -3\nboot 01-2f\nid 0a0b\npeer " + b"connect://h:1".hex().encode() +
             b"\npath " + b"/x".hex().encode() + b"\n")
    rows += [b"e" + entry, b"e" + entry[:40], b"f\x7fELF"]
    with open(os.path.realpath("/bin/true"), "rb") as f:
        rows.append(b"f" + f.read())
    for i, row in enumerate(rows):
        with open(os.path.join(folder, f"r{i}"), "wb") as f:
            f.write(row)


PATTERNS = ["memcpy($d, $s, strlen($s))", "free($p); ...; free($p);", "if ($p == 0) return $x;", "$f(...)", "$_ = $_ + 1", "f(..., \"text\", ...)",
            "*(u32 *)$p = 0x20;", "while (...) { ...; }", "$a ? $b : $c", "x[$i]->y", "f(", "$x", "... f()", "\"open", "'\\n' == $c"]
PATTERN_SUBJECT = """uint64_t f_12(uint64_t a0) /* a */
{
	p = malloc(strlen(s) + 1);
	if (p != 0) { memcpy(p + 1, s, strlen(s)); }
	free(p); x = x + 1; free(p);
	while (x) { g(1, "text", m->image + 0x20 /* "said" */); }
	if (p == 0) return (uint32_t)x;
	*(u32 *)p = 32; y = c == '\\n' ? a : x[2]->y;
}
"""


def patterns(folder):
    for i, row in enumerate(PATTERNS):
        with open(os.path.join(folder, f"p{i}"), "wb") as f:
            f.write(row.encode() + b"\0" + PATTERN_SUBJECT.encode())


def main():
    kinds = {"graphs": graphs, "probes": probes, "elf": elf, "code": code, "names": names, "keys": keys, "edits": edits,
             "pclntab": pclntab, "dwarf": dwarf, "cdecl": cdecl,
             "symfile": symfile, "rules": rules, "docs": docs, "keymaps": keymaps, "rpc": rpc, "results": results, "live": live, "serve": serve, "mcp": mcp,
             "project": project, "patterns": patterns, "ir": ir, "box": box, "trace": trace, "events": events, "btf": btf, "gdb": gdb, "reach": reach, "platform": platform, "tenet": tenet, "debug": debug}
    if len(sys.argv) != 3 or sys.argv[1] not in kinds:
        sys.exit(__doc__)
    os.makedirs(sys.argv[2], exist_ok=True)
    kinds[sys.argv[1]](sys.argv[2])


main()
