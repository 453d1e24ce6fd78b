# SPDX-License-Identifier: Apache-2.0
"""A small reader of little-endian ELF files for the truth side, and the maker of harder twins.

It shares no code with scry: what it says must come from the file alone.
"""

import struct

SHT_NULL, SHT_SYMTAB, SHT_NOBITS, SHT_DYNSYM = 0, 2, 8, 11
SHF_ALLOC, SHF_EXECINSTR = 2, 4
PT_NULL, PT_LOAD, PT_GNU_EH_FRAME = 0, 1, 0x6474E550
STT_NOTYPE, STT_FUNC, STT_FILE, STT_GNU_IFUNC = 0, 2, 4, 10


class Section:
    __slots__ = ("name", "type", "flags", "addr", "off", "size", "link", "entsize", "index")

    def __init__(self, fields, index):
        self.name, self.type, self.flags, self.addr, self.off, self.size, self.link, self.entsize = fields
        self.index = index

    @property
    def is_code(self):
        return bool(self.flags & SHF_ALLOC and self.flags & SHF_EXECINSTR and self.type != SHT_NOBITS)


class Symbol:
    __slots__ = ("name", "value", "size", "type", "bind", "shndx", "file")

    def __init__(self, name, value, size, info, shndx, file):
        self.name, self.value, self.size = name, value, size
        self.type, self.bind, self.shndx, self.file = info & 15, info >> 4, shndx, file


class Elf:
    """Sections, program headers and symbols of one file."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        d = self.data
        if d[:4] != b"\x7fELF" or d[5] != 1:
            raise ValueError(f"{path}: not a little-endian ELF file")
        self.is64 = d[4] == 2
        self.type, self.machine = struct.unpack_from("<HH", d, 16)
        if self.is64:
            self.entry, self.phoff, self.shoff = struct.unpack_from("<QQQ", d, 24)
            tail = struct.unpack_from("<HHHHH", d, 54)
        else:
            self.entry, self.phoff, self.shoff = struct.unpack_from("<III", d, 24)
            tail = struct.unpack_from("<HHHHH", d, 42)
        self.phentsize, self.phnum, self.shentsize, self.shnum, self.shstrndx = tail
        self._read_sections()

    def _read_sections(self):
        raw = []
        for i in range(self.shnum):
            at = self.shoff + i * self.shentsize
            if self.is64:
                n, t, fl, a, o, s, ln, _, _, es = struct.unpack_from("<IIQQQQIIQQ", self.data, at)
            else:
                n, t, fl, a, o, s, ln, _, _, es = struct.unpack_from("<10I", self.data, at)
            raw.append((n, t, fl, a, o, s, ln, es))
        strtab = raw[self.shstrndx][4] if raw else 0
        self.sections = [Section((self._text(strtab + r[0]),) + r[1:], i) for i, r in enumerate(raw)]

    def _text(self, at):
        return self.data[at:self.data.index(b"\0", at)].decode("utf-8", "replace")

    def section(self, name):
        return next((s for s in self.sections if s.name == name), None)

    def code_sections(self):
        return [s for s in self.sections if s.is_code]

    def segments(self):
        """(header offset, type, flags, file offset, va, file size, memory size) of each program header."""
        out = []
        for i in range(self.phnum):
            at = self.phoff + i * self.phentsize
            if self.is64:
                t, fl, off, va, _, fs, ms = struct.unpack_from("<IIQQQQQ", self.data, at)
            else:
                t, off, va, _, fs, ms, fl = struct.unpack_from("<7I", self.data, at)
            out.append((at, t, fl, off, va, fs, ms))
        return out

    def symbols(self, kind=SHT_SYMTAB):
        """Symbols of the table of this kind; each knows the source file named before it."""
        out = []
        for s in self.sections:
            if s.type != kind:
                continue
            strtab = self.sections[s.link].off
            file = ""
            fmt, step = ("<IBBHQQ", 24) if self.is64 else ("<IIIBBH", 16)
            for at in range(s.off, s.off + s.size, step):
                if self.is64:
                    name, info, _, shndx, value, size = struct.unpack_from(fmt, self.data, at)
                else:
                    name, value, size, info, _, shndx = struct.unpack_from(fmt, self.data, at)
                sym = Symbol(self._text(strtab + name), value, size, info, shndx, file)
                if sym.type == STT_FILE:
                    file = sym.name
                elif sym.bind != 0:
                    sym.file = ""
                out.append(sym)
        return out

    def read(self, va, size):
        """File bytes at an address, or None."""
        for _, t, _, off, start, fs, _ in self.segments():
            if t == PT_LOAD and start <= va and va + size <= start + fs:
                return self.data[off + va - start:off + va - start + size]
        return None


def without_unwind(src, dst):
    """Writes `dst`, a copy of `src` whose unwind tables are gone: bytes zeroed, headers made null.

    objcopy --remove-section keeps PT_GNU_EH_FRAME and may move what follows, so the copy is patched in place.
    Exception tables (.gcc_except_table) hold no function starts and stay. Returns the number of zeroed bytes.
    """
    elf = Elf(src)
    data = bytearray(elf.data)
    zeroed = 0
    for s in elf.sections:
        if s.name in (".eh_frame", ".eh_frame_hdr", ".debug_frame", ".sframe", ".ARM.exidx"):
            if s.type != SHT_NOBITS:
                data[s.off:s.off + s.size] = bytes(s.size)
                zeroed += s.size
            at = elf.shoff + s.index * elf.shentsize
            data[at:at + elf.shentsize] = bytes(elf.shentsize)
    for at, t, _, off, _, fs, _ in elf.segments():
        if t == PT_GNU_EH_FRAME:
            data[off:off + fs] = bytes(fs)
            data[at:at + elf.phentsize] = bytes(elf.phentsize)
    with open(dst, "wb") as f:
        f.write(data)
    left = Elf(dst)
    if any(s.name.startswith((".eh_frame", ".debug_frame")) for s in left.sections) or any(
            p[1] == PT_GNU_EH_FRAME for p in left.segments()):
        raise ValueError(f"{dst}: unwind tables are still there")
    return zeroed
