# SPDX-License-Identifier: Apache-2.0
"""Builds the scored programs: every program with every compiler setting, unstripped, then its stripped twins.

For each NAME the output folder gets NAME.truth (as linked), NAME.stripped (strip --strip-all), NAME.noeh (the same
without unwind tables) and, for C and C++, NAME.tables.json (jump tables as the compiler's assembly states them).
Everything is kept; a second run finds it there.
"""

import concurrent.futures
import glob
import json
import os
import re
import shutil
import threading
import time

import elffile
import tables
from ccwrap import compile_kept
from fetch import Fetcher, FetchError, run

HERE = os.path.dirname(os.path.abspath(__file__))
RECIPE = "1"  # raise it when a recipe changes: old builds are then made anew

TRIPLE = {"x86_64": "", "aarch64": "aarch64-linux-gnu", "i386": "i686-linux-gnu"}

# What differs between the settings besides -O: kinds of code that distributions ship.
PIE, NOPIE = (["-fPIE"], ["-pie"]), (["-fno-pie"], ["-no-pie"])
HARDENED = ["-fcf-protection", "-fstack-protector-strong", "-fstack-clash-protection", "-D_FORTIFY_SOURCE=2"]
SETTINGS = {
    ("gcc", "O0"): PIE, ("gcc", "O1"): PIE, ("gcc", "O3"): NOPIE,
    ("gcc", "O2"): (PIE[0] + HARDENED, PIE[1]),
    ("gcc", "Os"): (PIE[0] + ["-ffunction-sections"], PIE[1] + ["-Wl,--gc-sections"]),
    ("clang", "O0"): PIE, ("clang", "O1"): NOPIE, ("clang", "O2"): PIE,
    ("clang", "O3"): (PIE[0] + ["-fcf-protection"], PIE[1]), ("clang", "Os"): NOPIE,
}
OPTS = ("O0", "O1", "O2", "O3", "Os")


class Build:
    """One program with one setting."""

    def __init__(self, prog, lang, cc, opt, arch="x86_64"):
        self.prog, self.lang, self.cc, self.opt, self.arch = prog, lang, cc, opt, arch
        self.name = "-".join([arch] * (arch != "x86_64") + [lang, prog, cc, opt]).replace("++", "xx")
        self.error = None

    def compiler(self, cxx=False):
        gcc, clang = ("g++", "clang++") if cxx else ("gcc", "clang")
        triple = TRIPLE[self.arch]
        if self.cc == "gcc":
            return [triple + "-" + gcc if triple else gcc]
        return [clang, "--target=" + triple] if triple else [clang]

    def strip_tool(self):
        triple = TRIPLE[self.arch]
        return triple + "-strip" if triple else "strip"

    def flags(self):
        cflags, ldflags = SETTINGS[self.cc, self.opt]
        if self.arch == "aarch64":
            cflags = [f for f in cflags if f != "-fcf-protection"]
            ldflags = [*ldflags, "-Wl,--discard-none"]  # gcc for AArch64 links with -X, which drops local labels
        return ["-" + self.opt, "-w", *cflags], list(ldflags)


def _sources(folder, pattern, skip):
    return [f for f in sorted(glob.glob(os.path.join(folder, pattern))) if not re.search(skip, os.path.basename(f))]


class Corpus:
    def __init__(self, work, log=print):
        self.work = os.path.abspath(work)
        self.out = os.path.join(self.work, "out")
        self.obj = os.path.join(self.work, "obj")
        os.makedirs(self.out, exist_ok=True)
        os.makedirs(self.obj, exist_ok=True)
        self.fetcher = Fetcher(self.work)
        self.log = log
        self.lock = threading.Lock()
        self.skipped = []

    # --- what is built -------------------------------------------------------------------------------------

    def plan(self, quick=False):
        builds = []
        for cc in ("gcc", "clang"):
            for opt in ("O2",) if quick else OPTS:
                for prog in ("zlib", "lua") if quick else ("sqlite", "bash", "zlib", "lua"):
                    builds.append(Build(prog, "c", cc, opt))
                for prog in ("jsoncpp",) if quick else ("ninja", "jsoncpp", "tinyxml2"):
                    builds.append(Build(prog, "c++", cc, opt))
                if opt in ("O0", "O2") and not quick:
                    builds.append(Build("yaml", "c++", cc, opt))
        for opt in () if quick else ("debug", "O1", "Os", "release"):
            builds.append(Build("ripgrep", "rust", "rustc", opt))
        for prog, opt in (("gofmt", "default"),) if quick else (
                ("gofmt", "default"), ("gofmt", "noopt"), ("vet", "pie"), ("link", "default"), ("pprof", "cgo")):
            builds.append(Build(prog, "go", "go", opt))
        for arch in () if quick else ("aarch64", "i386"):
            for cc in ("gcc", "clang"):
                for opt in ("O0", "O2"):
                    builds += [Build(p, "c", cc, opt, arch) for p in ("sqlite", "zlib", "lua")]
                    if arch == "aarch64":
                        builds += [Build(p, "c++", cc, opt, arch) for p in ("ninja", "tinyxml2")]
        return builds

    # --- recipes: (sources, include folders and defines, libraries) -----------------------------------------

    def recipe(self, prog):
        f = self.fetcher
        if prog == "zlib":
            d = f.debian("zlib")
            return _sources(d, "*.c", r"^$") + [d + "/test/minigzip.c"], ["-I" + d, "-DHAVE_UNISTD_H"], []
        if prog == "lua":
            d = f.debian("lua5.4") + "/src"
            with open(d + "/lua5.4-deb-multiarch.h", "w", encoding="utf-8") as h:  # Debian's rules make it
                h.write('#define DEB_HOST_MULTIARCH "x86_64-linux-gnu"\n')
            return _sources(d, "*.c", r"^luac\.c$"), ["-I" + d, "-DLUA_USE_POSIX", "-DLUA_USE_DLOPEN"], ["-lm", "-ldl"]
        if prog == "sqlite":
            d = f.sqlite()
            return ([d + "/sqlite3.c", d + "/shell.c"],
                    ["-I" + d, "-DSQLITE_ENABLE_FTS4", "-DSQLITE_ENABLE_RTREE", "-DSQLITE_ENABLE_DBSTAT_VTAB"],
                    ["-lm", "-ldl", "-lpthread"])
        if prog == "jsoncpp":
            d = f.debian("libjsoncpp")
            return (_sources(d + "/src/lib_json", "*.cpp", r"^$") + [d + "/src/jsontestrunner/main.cpp"],
                    ["-I" + d + "/include"], [])
        if prog == "yaml":
            d = f.debian("yaml-cpp")
            return (_sources(d + "/src", "*.cpp", r"^$") + [d + "/util/parse.cpp"],
                    ["-I" + d + "/include", "-I" + d + "/src"], [])
        if prog == "ninja":
            d = f.debian("ninja-build") + "/src"
            return (_sources(d, "*.cc", r"_test\.cc|perftest|win32|\.in\.cc|_bench|^test\.cc|^browse"),
                    ["-iquote", d], ["-lpthread"])
        if prog == "tinyxml2":
            d = f.debian("tinyxml2")
            return [d + "/tinyxml2.cpp", d + "/xmltest.cpp"], ["-I" + d], []
        raise KeyError(prog)

    def prepare(self, builds):
        """Fetches every source first, one after the other (apt-get and npm keep locks)."""
        bad = {}
        for prog in dict.fromkeys((b.lang, b.prog) for b in builds if not self.is_done(b)):
            try:
                if prog[0] == "rust":
                    self.fetcher.debian("rust-" + prog[1])
                    self.fetcher.crates("rust-" + prog[1])
                elif prog[1] == "bash":
                    self._configure_bash()
                elif prog[0] != "go":
                    self.recipe(prog[1])
            except (FetchError, OSError) as e:
                bad[prog] = str(e)
        return bad

    def _configure_bash(self):
        d = self.fetcher.debian("bash")
        if not os.path.exists(d + "/config.done"):
            self.log("  configuring bash")
            run(["./configure", "-q", "--disable-nls", "--without-bash-malloc"], cwd=d)
            # The generated parser is in the source package; a newer grammar date would ask for bison.
            os.utime(d + "/y.tab.c")
            os.utime(d + "/y.tab.h")
            open(d + "/config.done", "w").close()
        return d

    # --- building ------------------------------------------------------------------------------------------

    def path(self, b, what):
        return os.path.join(self.out, f"{b.name}.{what}")

    def is_done(self, b):
        try:
            with open(self.path(b, "done"), encoding="utf-8") as f:
                return f.read() == RECIPE
        except OSError:
            return False

    def build_all(self, builds):
        """Builds what is missing; returns those that are there. What could not be built is in self.skipped."""
        missing = [b for b in builds if not self.is_done(b)]
        if missing:
            t = time.time()
            self.log(f"building {len(missing)} programs in {self.work}")
            bad = self.prepare(builds)
            for b in missing:
                b.error = bad.get((b.lang, b.prog))
            # Long ones first, so that the cores stay busy to the end.
            weight = {"bash": 0, "sqlite": 1, "ripgrep": 2}
            order = sorted((b for b in missing if not b.error), key=lambda b: (weight.get(b.prog, 3), b.name))
            with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
                list(pool.map(self._build_one, order))
            self.log(f"built in {time.time() - t:.0f} s")
        self.skipped = [(b.name, b.error or "not built") for b in builds if not self.is_done(b)]
        return [b for b in builds if self.is_done(b)]

    def _build_one(self, b):
        t = time.time()
        folder = os.path.join(self.obj, b.name)
        try:
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            {"rust": self._rust, "go": self._go}.get(b.lang, self._native)(b, folder)
            self._twins(b, folder)
            with open(self.path(b, "done"), "w", encoding="utf-8") as f:
                f.write(RECIPE)
        except (FetchError, OSError, ValueError) as e:
            b.error = str(e)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        with self.lock:
            self.log(f"  {b.name}: {b.error.splitlines()[-1][:200] if b.error else 'ok'} ({time.time() - t:.0f} s)")

    def _native(self, b, folder):
        cflags, ldflags = b.flags()
        keep = os.path.join(folder, "asm")
        os.makedirs(keep)
        if b.prog == "bash":
            self._bash(b, folder, keep)
            return
        sources, defs, libs = self.recipe(b.prog)
        objs, log = [], os.path.join(folder, "log")
        for i, src in enumerate(sources):
            obj = os.path.join(folder, re.sub(r"\.\w+$", f".{i}.o", os.path.basename(src)))
            with open(log, "w+", encoding="utf-8", errors="replace") as f:
                if compile_kept(keep, b.compiler(b.lang == "c++"), [*cflags, *defs, "-c", src, "-o", obj], f):
                    f.seek(0)
                    raise FetchError(f"{b.cc} failed on {src}: {f.read()[:400]}")
            objs.append(obj)
        run([*b.compiler(b.lang == "c++"), *ldflags, *objs, *libs, "-o", self.path(b, "truth")])

    def _bash(self, b, folder, keep):
        cflags, ldflags = b.flags()
        tree = os.path.join(folder, "tree")
        run(["cp", "-a", self._configure_bash(), tree])
        cc = f"python3 {HERE}/ccwrap.py {keep} {b.compiler()[0]}"
        # Not -rdynamic, which bash's own build uses for loadable builtins: it would name every function.
        run(["make", "-C", tree, f"CC={cc}", "CC_FOR_BUILD=gcc", "CFLAGS=" + " ".join(cflags), "CFLAGS_FOR_BUILD=-w",
             "LOCAL_LDFLAGS=", "ADDON_LDFLAGS=" + " ".join(ldflags), "LDFLAGS_FOR_BUILD=", "bash"])
        shutil.copyfile(tree + "/bash", self.path(b, "truth"))

    def _rust(self, b, folder):
        if not shutil.which("cargo"):
            raise FetchError("cargo is not installed")
        tree = os.path.join(folder, "tree")
        run(["cp", "-a", self.fetcher.debian("rust-" + b.prog), tree])
        os.makedirs(tree + "/.cargo", exist_ok=True)
        with open(tree + "/.cargo/config.toml", "w", encoding="utf-8") as f:
            f.write('[source.crates-io]\nreplace-with = "debian"\n[source.debian]\n'
                    f'directory = "{self.fetcher.crates("rust-" + b.prog)}"\n')
        with open(tree + "/Cargo.toml", encoding="utf-8") as f:
            manifest = f.read()
        with open(tree + "/Cargo.toml", "w", encoding="utf-8") as f:  # a feature that Debian's crates do not have
            f.write(re.sub(r"\nsimd-accel = \[[^\]]*\]", "", manifest))
        if os.path.exists(tree + "/Cargo.lock"):
            os.remove(tree + "/Cargo.lock")
        env = dict(os.environ, CARGO_PROFILE_DEV_DEBUG="false", CARGO_PROFILE_RELEASE_DEBUG="false",
                   CARGO_PROFILE_RELEASE_STRIP="false", CARGO_INCREMENTAL="0", CARGO_BUILD_JOBS="1")
        if b.opt.startswith("O"):
            env["CARGO_PROFILE_RELEASE_OPT_LEVEL"] = b.opt[1:]
        env.pop("CARGO_TARGET_DIR", None)
        env.pop("RUSTFLAGS", None)
        release = [] if b.opt == "debug" else ["--release"]
        run(["cargo", "build", "--offline", "-q", *release], cwd=tree, env=env)
        made = [p for p in glob.glob(tree + f"/target/{'release' if release else 'debug'}/*")
                if os.path.isfile(p) and os.access(p, os.X_OK)]
        shutil.copyfile(made[0], self.path(b, "truth"))

    def _go(self, b, folder):
        if not shutil.which("go"):
            raise FetchError("go is not installed")
        env = dict(os.environ, GOCACHE=self.work + "/gocache", GOFLAGS="", GOTOOLCHAIN="local", GOPROXY="off",
                   CGO_ENABLED="1" if b.opt == "cgo" else "0", GOMAXPROCS="1")
        extra = {"noopt": ["-gcflags=all=-N -l"], "pie": ["-buildmode=pie"]}.get(b.opt, [])
        run(["go", "build", *extra, "-o", self.path(b, "truth"), "cmd/" + b.prog], env=env, cwd=folder)

    def _twins(self, b, folder):
        truth, stripped = self.path(b, "truth"), self.path(b, "stripped")
        os.chmod(truth, 0o644)
        run([b.strip_tool(), "--strip-all", "-o", stripped, truth])
        elffile.without_unwind(stripped, self.path(b, "noeh"))
        os.chmod(stripped, 0o644)
        if b.lang in ("c", "c++"):
            found = tables.from_assembly(glob.glob(os.path.join(folder, "asm", "*.s")), truth)
            with open(self.path(b, "tables.json"), "w", encoding="utf-8") as f:
                json.dump(found, f, indent=0)
