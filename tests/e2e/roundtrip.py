#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs whose functions are replaced by their C end as they did before; and one whose C is another does not. Prints TAP. SCRY is the program."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
count = failed = 0


def ok(good, what):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}", flush=True)


def main():
    global count
    cc = next((c for c in ("gcc-12", "gcc") if shutil.which(c)), None)
    if not cc:
        print("1..1\nok 1 - programs with C in place of code # SKIP no gcc")
        return
    source = os.path.join(ROOT, "tests/data/roundtrip/ways.c")
    with tempfile.TemporaryDirectory(prefix="scry-roundtrip-") as work:
        def figures(scry):
            p = subprocess.run([sys.executable, os.path.join(ROOT, "tests/score/score_roundtrip.py"), "--scry", scry, "--cc", cc, "--jobs", "1",
                                "--work", work, "--json", source], capture_output=True, text=True, timeout=600)
            return json.loads(p.stdout) if p.returncode == 0 else p.stderr
        got = figures(os.environ["SCRY"])
        for opt in ("-O0", "-O2"):
            ok(got[opt]["programs"] == 1 and got[opt]["same"] == 1, f"{opt}: {got[opt]}")
        # With C that stops where it begins they stop: what runs is the C, and nothing but.
        fake = os.path.join(work, "fake")
        with open(fake, "w", encoding="utf-8") as f:
            f.write(f"""#!/bin/sh\n'{os.environ["SCRY"]}' "$@" || exit\nsed -i 's/^{{$/{{ __builtin_trap();/' "$5"/code_*.c\n""")
        os.chmod(fake, 0o755)
        got = figures(fake)
        ok(all(got[opt]["same"] == 0 and got[opt]["programs"] == 1 for opt in got), f"C that stops stops the program: {got}")
    print(f"1..{count}")
    sys.exit(failed > 0)


main()
