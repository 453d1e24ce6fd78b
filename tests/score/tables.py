# SPDX-License-Identifier: Apache-2.0
"""Jump tables as the compiler's own assembly states them, placed by the labels that the linked twin kept."""

import bisect
import os
import re

import elffile
from ccwrap import INDIRECT_JUMP

LABEL = re.compile(r"^(\.?[\w.$]+):")
SECTION = re.compile(r"^\s+\.(?:section\s+\"?([^\s,\"]+)|(text|data|bss)\b)")
ENTRY = re.compile(r"^\s+\.(\w+)\s+\(?(\.[\w.$]+)(?:\s*-\s*(\.[\w.$]+)\)?(\s*(?:/\s*4|>>\s*2))?|(@GOTOFF))?\s*(?:(?:#|//).*)?$")
QUIET = re.compile(r"^\s*(?:#|//|$)|^\s+\.(?:p2align|align|balign|loc|cfi_|file)")
SIZES = {"long": 4, "word": 4, "4byte": 4, "quad": 8, "xword": 8, "8byte": 8, "value": 2, "short": 2, "hword": 2, "2byte": 2,
         "byte": 1}


class _Unit:
    """Parser of one assembly file."""

    def __init__(self, text):
        self.tables = []
        self.code_labels = set()
        self.section = ".text"
        self.current = None
        self.last_jump = None    # label of the indirect jump that was the last instruction, or None
        for line in text.split("\n"):
            self._line(line)
        self._close()
        self.tables = [t for t in self.tables if all(x in self.code_labels for x in t["labels"])]

    def _close(self):
        if self.current and self.current["labels"]:
            self.tables.append(self.current)
        self.current = None

    def _line(self, line):
        m = SECTION.match(line)
        if m:
            self._close()
            self.section = m.group(1) or "." + m.group(2)
            return
        if re.match(r"^\s+\.(?:push|pop|previous)", line):
            self._close()
            self.section = ".other"
            return
        in_code = self.section.startswith(".text")
        m = LABEL.match(line)
        if m:
            self._label(m.group(1), in_code)
        elif in_code:
            if re.match(r"^\s+[a-z]", line):
                self.last_jump = self.pending if self._is_jump(line) else None
        elif self.current:
            self._entry(line)

    @staticmethod
    def _is_jump(line):
        return INDIRECT_JUMP.match(line)

    pending = None

    def _label(self, name, in_code):
        if in_code:
            self.code_labels.add(name)
            if name.startswith(".Lindirect_jump_"):
                self.pending = name
            return
        self._close()
        if self.section.startswith((".rodata", ".data.rel.ro")) and name.startswith(".L"):
            self.current = {"label": name, "labels": [], "entry": 0, "relative": "", "base": "", "scale": 1,
                            "jump": self.last_jump}

    def _entry(self, line):
        m = ENTRY.match(line)
        if not m or m.group(1) not in SIZES:
            if not QUIET.match(line):
                self._close()
            return
        cur, size = self.current, SIZES[m.group(1)]
        form = (size, m.group(3) or "", 4 if m.group(4) else 1, "base" if m.group(3) else "got" if m.group(5) else "")
        if cur["labels"] and form != (cur["entry"], cur["base"], cur["scale"], cur["relative"]):
            self._close()
            return
        cur["entry"], cur["base"], cur["scale"], cur["relative"] = form
        cur["labels"].append(m.group(2))


def from_assembly(paths, linked):
    """Tables of the linked program: [{"table","jump","func","func_name","entry","relative","base","scale","targets"}].

    A table whose labels did not reach the program (its unit or section was left out) is not listed.
    `jump` is null where the assembly does not tell which jump uses the table (clang); gcc puts a table right
    behind its jump.
    """
    elf = elffile.Elf(linked)
    where, funcs = {}, {}
    code = {s.index for s in elf.code_sections()}
    for s in elf.symbols():
        if s.type == elffile.STT_NOTYPE and s.name.startswith(".L"):
            where[s.file, s.name] = s.value
        elif s.type == elffile.STT_FUNC and s.shndx in code and s.size:
            funcs[s.value] = (s.size, s.name)
    starts = sorted(funcs)

    def func_of(va):
        i = bisect.bisect_right(starts, va) - 1
        return starts[i] if i >= 0 and va < starts[i] + funcs[starts[i]][0] else None

    out = []
    for path in sorted(paths):
        unit = os.path.basename(path)
        with open(path, encoding="utf-8", errors="surrogateescape") as f:
            parsed = _Unit(f.read())
        for t in parsed.tables:
            table = where.get((unit, t["label"]))
            targets = [where.get((unit, x)) for x in t["labels"]]
            base = where.get((unit, t["base"])) if t["base"] else None
            if table is None or None in targets or (t["base"] and base is None):
                continue
            jump = where.get((unit, t["jump"])) if t["jump"] else None
            owners = [f for f in map(func_of, ([jump] if jump else []) + targets) if f is not None]
            main = next((f for f in owners if ".cold" not in funcs[f][1]), owners[0] if owners else None)
            if main is None:
                continue
            out.append({"table": table, "jump": jump, "func": main, "func_name": funcs[main][1], "entry": t["entry"],
                        "relative": t["relative"], "base": base, "scale": t["scale"], "targets": targets, "unit": unit})
    return out
