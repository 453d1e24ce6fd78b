# SPDX-License-Identifier: Apache-2.0
"""A compiler in front of a compiler: keeps the assembly that the real one makes of each source file.

    ccwrap.py KEEP_DIR COMPILER ARGS...

A compile step (-c of one source file) becomes two: COMPILER -S, then the assembler with local labels kept, so that
every label of a jump table can be found again in the linked program. Labels add no byte: the code is what the
compiler would have made. Indirect jumps get a label of their own. Any other command is passed on.
"""

import os
import re
import subprocess
import sys

SOURCES = (".c", ".cc", ".cpp", ".cxx")
INDIRECT_JUMP = re.compile(r"^\s+(?:notrack\s+|bnd\s+)?(?:jmp[lq]?\s+\*|br\s+x\d)")


def mark_assembly(text, unit):
    """Names the unit uniquely in its .file directive and labels each indirect jump."""
    out = [f'\t.file\t"{unit}"']
    jumps = 0
    for line in text.split("\n"):
        if re.match(r'^\s+\.file\s+"', line):
            continue
        if INDIRECT_JUMP.match(line):
            out.append(f".Lindirect_jump_{jumps}:")
            jumps += 1
        out.append(line)
    return "\n".join(out)


def compile_kept(keep_dir, compiler, args, stderr=None):
    """Runs one compile step, its messages going to `stderr`; returns the compiler's exit status."""
    at = next((i for i, a in enumerate(args) if a.endswith(SOURCES) and not a.startswith("-")), None)
    if "-c" not in args or at is None:
        return subprocess.call([*compiler, *args], stderr=stderr)
    source = args[at]
    if "-o" in args:
        i = args.index("-o")
        obj, rest = args[i + 1], args[:i] + args[i + 2:]
    else:
        obj, rest = os.path.splitext(os.path.basename(source))[0] + ".o", list(args)
    rest = [a for a in rest if a != "-c"]
    unit = re.sub(r"[^\w.+-]", "_", os.path.relpath(obj, os.path.dirname(keep_dir))) + ".s"
    asm = os.path.join(keep_dir, unit)
    ret = subprocess.call([*compiler, *rest, "-S", "-o", asm], stderr=stderr)
    if ret:
        return ret
    with open(asm, encoding="utf-8", errors="surrogateescape") as f:
        text = mark_assembly(f.read(), unit)
    with open(asm, "w", encoding="utf-8", errors="surrogateescape") as f:
        f.write(text)
    flags = [a for a in rest if a != source and a.startswith(("-m", "--target", "--sysroot"))]
    return subprocess.call([*compiler, *flags, "-Wa,-L", "-c", asm, "-o", obj], stderr=stderr)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    sys.exit(compile_kept(os.path.abspath(sys.argv[1]), [sys.argv[2]], sys.argv[3:]))


if __name__ == "__main__":
    main()
