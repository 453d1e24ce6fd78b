# SPDX-License-Identifier: Apache-2.0
"""Makes programs of a wanted size out of compiled C, for measuring how cost grows with size.

One unit of about a megabyte is generated from a fixed seed and compiled once; a program of N units links N copies of
it, each with symbols of its own, so that all sizes hold the same kind of code: calls, switches, loops, strings, tables
of functions and data.
"""

import os
import random
import struct
import subprocess

SEED = 20260
FUNCS = 1440
SOURCES = 20
WORDS = ("open close read write index entry value table count block range state token parse error limit offset length "
         "header symbol string buffer window scroll column record handle socket thread signal").split()


def overlaid(path, code, loads=1050, length=3300000):
    """An ELF file of `length` bytes whose `loads` segments all map one page, which repeats `code`."""
    page = 4096
    off = -(-(64 + 56 * loads) // page) * page
    head = b"\x7fELF\2\1\1".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH", 2, 62, 1, 0x400000, 64, 0, 0, 64, 56, loads, 0, 0, 0)
    for i in range(loads):
        head += struct.pack("<IIQQQQQQ", 1, 5, off, 0x400000 + i * page, 0, page, page, page)
    with open(path, "wb") as f:
        f.write((head.ljust(off, b"\0") + (code * page)[:page]).ljust(length, b"\0"))


class _Maker:
    def __init__(self, seed, funcs):
        self.rnd = random.Random(seed)
        self.funcs = funcs

    def text(self):
        r = self.rnd
        return " ".join(r.choice(WORDS) for _ in range(r.randint(2, 6))) + r.choice((": %ld", ": %s", "", "\\n", " (%d)"))

    def expr(self, names):
        r = self.rnd
        a, b = r.choice(names), r.choice(names + [str(r.randint(1, 5000))])
        return r.choice(("{} + {}", "{} * {} + 7", "({} ^ {}) >> 3", "{} - {} * 3", "({} | 1) / (({} & 15) + 1)",
                         "({} << 2) + {}")).format(a, b)

    def statement(self, i, depth):
        r = self.rnd
        kind = r.randint(0, 9 if depth else 6)
        if kind <= 1:
            return [f"{r.choice('xyz')} = {self.expr(['x', 'y', 'z', 's->a', 's->b'])};"]
        if kind == 2:
            return [f"{r.choice('xyz')} += unit_fn_{self.callee(i)}(s, {self.expr(['x', 'y'])}, z);"]
        if kind == 3:
            return [f's->{r.choice("ab")} = (long)strlen("{self.text()}") + x;']
        if kind == 4:
            return [f"s->v[(unsigned long)x % 16] {r.choice(('+=', '^=', '='))} y;"]
        if kind == 5:
            return [f'if ({self.expr(["x", "y"])} > {r.randint(0, 900)}) snprintf(s->text, sizeof s->text, '
                    f'"%ld {self.text().replace("%", "%%")}", z);']
        if kind == 6:
            return [f"s->f = s->f * {r.randint(1, 9)}.{r.randint(0, 99)} + (double)x;"]
        if kind == 7:
            cases = r.randint(5, 14)
            out = [f"switch ({r.choice('xyz')} {r.choice(('& 15', '% 17', '- 3'))}) {{"]
            for c in range(cases):
                out += [f"case {c}:", *self.statement(i, 0), r.choice(("break;", "break;", "return z;"))]
            return out + [f"default: x -= {r.randint(1, 9)};", "}"]
        if kind == 8:
            return [f"for (long k = 0; k < (y & {r.choice((7, 31, 63))}); k++) {{", *self.statement(i, 0),
                    f"z += s->v[k & 15] * {r.randint(2, 9)};", "}"]
        return [f"if ({self.expr(['x', 'z'])} < y) {{", *self.statement(i, depth - 1), "} else {",
                *self.statement(i, depth - 1), "}"]

    def callee(self, i):
        return self.rnd.choice((self.rnd.randrange(self.funcs), min(i + self.rnd.randint(1, 9), self.funcs - 1)))

    def function(self, i):
        body = [line for _ in range(self.rnd.randint(3, 9)) for line in self.statement(i, 2)]
        return (f"long unit_fn_{i}(struct state *s, long x, long y)\n{{\nlong z = s->a + {i};\n" + "\n".join(body)
                + "\nreturn x + y + z;\n}\n")


HEAD = """#include <stdio.h>
#include <string.h>
struct state { long a, b; double f; long v[16]; char text[64]; };
"""


def _sources(folder):
    m = _Maker(SEED, FUNCS)
    protos = "".join(f"long unit_fn_{i}(struct state *s, long x, long y);\n" for i in range(FUNCS))
    paths = []
    for k in range(SOURCES):
        part = range(k * FUNCS // SOURCES, (k + 1) * FUNCS // SOURCES)
        text = HEAD + protos + "".join(m.function(i) for i in part)
        text += f"long (*const unit_table_{k}[])(struct state *, long, long) = {{" + ",".join(
            f"unit_fn_{i}" for i in part) + "};\n"
        text += f"const char *const unit_words_{k}[] = {{" + ",".join(f'"{m.text()}"' for _ in range(40)) + "};\n"
        text += f"long unit_data_{k}[256] = {{" + ",".join(str(m.rnd.randint(0, 1 << 40)) for _ in range(256)) + "};\n"
        path = os.path.join(folder, f"unit{k}.c")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        paths.append(path)
    return paths


def _run(*cmd):
    subprocess.run(cmd, check=True, stdin=subprocess.DEVNULL)


def _unit(folder):
    unit = os.path.join(folder, "unit.o")
    if not os.path.exists(unit):
        objs = []
        for src in _sources(folder):
            objs.append(src[:-1] + "o")
            _run("gcc", "-O2", "-fPIE", "-w", "-fno-merge-constants", "-c", src, "-o", objs[-1])
        _run("ld", "-r", "-o", unit + ".new", *objs)
        os.rename(unit + ".new", unit)
    return unit


def program(folder, units):
    """Path of a stripped program of `units` copies; made when it is not there."""
    os.makedirs(folder, exist_ok=True)
    out = os.path.join(folder, f"gen{units}")
    if os.path.exists(out):
        return out
    unit = _unit(folder)
    defined = [line.split()[-1] for line in subprocess.run(["nm", "--defined-only", "-g", unit], check=True, text=True,
               stdout=subprocess.PIPE).stdout.splitlines()]
    objs = []
    for n in range(units):
        names = os.path.join(folder, "names")
        with open(names, "w", encoding="utf-8") as f:
            f.writelines(f"{s} u{n}_{s}\n" for s in defined)
        objs.append(os.path.join(folder, f"copy{n}.o"))
        _run("objcopy", f"--redefine-syms={names}", unit, objs[-1])
    main = os.path.join(folder, "main.c")
    with open(main, "w", encoding="utf-8") as f:
        f.write("typedef long fn(void *, long, long);\n")
        f.write("".join(f"extern fn *const u{n}_unit_table_{k}[];\n" for n in range(units) for k in range(SOURCES)))
        f.write("fn *const *const all[] = {" + ",".join(f"u{n}_unit_table_{k}" for n in range(units)
                                                        for k in range(SOURCES)) + "};\n")
        f.write("int main(int c, char **v) { static long s[64]; return (int)all[c % (sizeof all / sizeof *all)]"
                "[c](s, c, 1); }\n")
    with open(os.path.join(folder, "objects"), "w", encoding="utf-8") as f:
        f.write("\n".join(objs))
    _run("gcc", "-O2", "-fPIE", "-pie", main, "@" + os.path.join(folder, "objects"), "-o", out + ".new")
    _run("strip", "--strip-all", out + ".new")
    os.rename(out + ".new", out)
    for o in objs:
        os.remove(o)
    return out
