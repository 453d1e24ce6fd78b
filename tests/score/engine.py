# SPDX-License-Identifier: Apache-2.0
"""Runs scry and reads its answers."""

import glob
import hashlib
import json
import os
import shutil
import subprocess


class EngineError(Exception):
    pass


class Engine:
    """One scry binary with a store of its own below `work`, emptied at the start: every run analyses anew."""

    def __init__(self, scry, dump, work):
        self.scry = os.path.abspath(scry)
        self.dump = dump if dump and os.access(dump, os.X_OK) else None
        self.store = os.path.join(work, "store")
        shutil.rmtree(self.store, ignore_errors=True)
        os.makedirs(self.store, 0o700)
        self.env = dict(os.environ, SCRY_STORE=self.store, NO_COLOR="1")

    def run(self, *args, timeout=600):
        try:
            p = subprocess.run([self.scry, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=self.env, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            raise EngineError(f"scry {args[0]}: no answer in {timeout} s") from None
        if p.returncode:
            why = p.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
            raise EngineError(f"scry {args[0]}: exit {p.returncode}: {why[:200]}")
        return p.stdout

    def items(self, *args):
        """All items of a list operation, page after page."""
        out, more = [], []
        while True:
            got = json.loads(self.run(*args, "--json", "--limit", "10000000", *more))
            out += got["items"]
            if "next" not in got:
                if "total" in got and got["total"] != len(out):
                    raise EngineError(f"scry {args[0]}: total says {got['total']}, came {len(out)}")
                return out
            more = ["--cursor", str(got["next"])]

    def functions(self, path):
        """{address: source} of the functions found."""
        return {int(i["addr"], 16): i["source"] for i in self.items("functions", path)}

    def image(self, path):
        """Path of the image that the store holds of `path`, analysed if it was not yet."""
        with open(path, "rb") as f:
            sha = hashlib.sha256(f.read()).hexdigest()
        self.run("analyze", path)
        found = glob.glob(os.path.join(self.store, sha, "image.*"))
        if not found:
            raise EngineError("no image in the store")
        return max(found, key=os.path.getmtime)

    def facts(self, path):
        """References {(from, to): kind} and jump tables [(jump, table or None, [targets])] of the whole image."""
        if not self.dump:
            raise EngineError("image_dump is not built")
        p = subprocess.run([self.dump, path, self.image(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           check=False)
        if p.returncode:
            raise EngineError(p.stderr.decode("utf-8", "replace").strip()[:200])
        return parse_facts(p.stdout)


def parse_facts(output):
    """References and tables of the lines X and T that image_dump and analyze_dump print."""
    refs, tables = {}, []
    for line in output.decode("utf-8", "replace").splitlines():
        f = line.split(" ")
        if f[0] == "X":
            refs[int(f[1], 16), int(f[2], 16)] = f[3]
        elif f[0] == "T":
            tables.append((int(f[1], 16), None if f[2] == "-" else int(f[2], 16),
                           [int(x, 16) for x in f[-1].split(",")] if f[-1] else []))
    return refs, tables


class Direct:
    """The analysis alone, without store and front end: analyze_dump in place of scry."""

    SOURCES = ("user", "symbol", "unwind", "entry", "metadata", "call", "reloc", "pointer", "prologue")

    def __init__(self, tool):
        self.tool = os.path.abspath(tool)
        self.env = dict(os.environ)

    def _run(self, *args):
        try:
            p = subprocess.run([self.tool, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, timeout=600, check=False)
        except subprocess.TimeoutExpired:
            raise EngineError("analyze_dump: no answer in 600 s") from None
        if p.returncode:
            raise EngineError(f"analyze_dump: exit {p.returncode}: {p.stderr.decode('utf-8', 'replace').strip()[-200:]}")
        return p.stdout

    def functions(self, path):
        out = {}
        for line in self._run("-j", "1", path).decode("utf-8", "replace").splitlines():
            f = line.split(" ")
            if f[0] == "F":
                out[int(f[1], 16)] = self.SOURCES[int(f[2])]
        return out

    def facts(self, path):
        return parse_facts(self._run("-j", "1", "-x", path))
