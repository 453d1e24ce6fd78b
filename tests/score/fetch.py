# SPDX-License-Identifier: Apache-2.0
"""Gets the scored programs and the sources of others: Debian source packages and crates through apt-get, SQLite from npm where tclsh is missing."""

import glob
import os
import re
import shutil
import subprocess

NPM_SQLITE = "sqlite3@6.0.1"


class FetchError(Exception):
    pass


def run(cmd, **kw):
    """Runs a command quietly; FetchError with the end of its output when it fails."""
    p = subprocess.run(cmd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       errors="replace", **kw)
    if p.returncode:
        raise FetchError(f"{' '.join(cmd[:4])}: exit {p.returncode}: {p.stdout.strip()[-600:]}")
    return p.stdout


def _debian_uri():
    for path in glob.glob("/etc/apt/sources.list.d/*.sources") + ["/etc/apt/sources.list"]:
        try:
            with open(path, encoding="utf-8") as f:
                text = f.read()
        except OSError:
            continue
        m = re.search(r"(?:^URIs:\s*|^deb\s+(?:\[[^\]]*\]\s+)?)(\S+/debian/?)(?:\s|$)", text, re.M)
        if m:
            return m.group(1)
    raise FetchError("no Debian archive among this machine's apt sources")


def _codename():
    with open("/etc/os-release", encoding="utf-8") as f:
        m = re.search(r"^VERSION_CODENAME=(\w+)", f.read(), re.M)
    return m.group(1) if m else "bookworm"


class Fetcher:
    """An apt state of its own below `work`, so that the machine's package lists stay as they are."""

    def __init__(self, work):
        self.work = work
        self.dl = os.path.join(work, "dl")
        self.src = os.path.join(work, "src")
        self.opts = None
        os.makedirs(self.dl, exist_ok=True)
        os.makedirs(self.src, exist_ok=True)

    def _apt(self):
        if self.opts is not None:
            return self.opts
        apt = os.path.join(self.work, "apt")
        for d in ("etc", "state/lists/partial", "cache/archives/partial"):
            os.makedirs(os.path.join(apt, d), exist_ok=True)
        open(os.path.join(apt, "status"), "a").close()
        keys = glob.glob("/usr/share/keyrings/debian-archive-keyring.*")
        with open(os.path.join(apt, "etc", "src.sources"), "w", encoding="utf-8") as f:
            f.write(f"Types: deb deb-src\nURIs: {_debian_uri()}\nSuites: {_codename()}\nComponents: main\n"
                    f"Architectures: amd64\n" + (f"Signed-By: {keys[0]}\n" if keys else ""))
        opts = {"Dir::Etc::sourcelist": "/dev/null", "Dir::Etc::sourceparts": f"{apt}/etc",
                "Dir::State": f"{apt}/state", "Dir::State::status": f"{apt}/status", "Dir::Cache": f"{apt}/cache",
                "Acquire::Languages": "none", "Acquire::Retries": "3", "APT::Architecture": "amd64",
                "APT::Install-Recommends": "0"}
        if os.geteuid() == 0:
            opts["APT::Sandbox::User"] = "root"
        self.opts = ["-q"] + [x for k, v in opts.items() for x in ("-o", f"{k}={v}")]
        run(["apt-get", *self.opts, "update"])
        return self.opts

    def debian(self, package):
        """Folder of an unpacked Debian source package, patches applied."""
        to = os.path.join(self.src, package)
        if not os.path.isdir(to):
            run(["apt-get", *self._apt(), "source", "--download-only", package], cwd=self.dl)
            dsc = sorted(glob.glob(os.path.join(self.dl, package + "_*.dsc")))
            if not dsc:
                raise FetchError(f"{package}: no source package came")
            run(["dpkg-source", "--no-check", "-x", dsc[-1], to + ".new"])
            os.rename(to + ".new", to)
        return to

    def binary(self, package):
        """Folder with the files of a Debian binary package, unpacked and not installed."""
        to = os.path.join(self.work, "deb", package)
        if not os.path.isdir(to):
            run(["apt-get", *self._apt(), "download", package], cwd=self.dl)
            deb = sorted(glob.glob(os.path.join(self.dl, package + "_*.deb")))
            os.makedirs(to + ".new", exist_ok=True)
            run(["dpkg-deb", "-x", deb[-1], to + ".new"])
            os.rename(to + ".new", to)
        return to

    def sqlite(self):
        """Folder with the SQLite amalgamation and its shell: from Debian's source with tclsh, else from npm."""
        to = os.path.join(self.src, "sqlite")
        if not os.path.isdir(to):
            tmp = to + ".new"
            shutil.rmtree(tmp, ignore_errors=True)
            os.makedirs(tmp)
            if shutil.which("tclsh"):
                tree = self.debian("sqlite3")
                run([tree + "/configure", "-q", "--disable-tcl", "--disable-readline"], cwd=tmp)
                run(["make", "-C", tmp, "sqlite3.c", "shell.c"])
            elif shutil.which("npm"):
                tar = run(["npm", "pack", NPM_SQLITE, "--silent"], cwd=self.dl).strip().split("\n")[-1]
                run(["tar", "-xzf", os.path.join(self.dl, tar), "-C", tmp])
                inner = glob.glob(os.path.join(tmp, "package/deps/sqlite-autoconf-*.tar.gz"))
                run(["tar", "-xzf", inner[0], "-C", tmp, "--strip-components=1"])
            else:
                raise FetchError("neither tclsh (package tcl) nor npm is installed")
            os.rename(tmp, to)
        return to

    def crates(self, package):
        """Folder that serves as cargo's registry: every crate the Debian source package builds with."""
        reg = os.path.join(self.work, "crates", package)
        if not os.path.isdir(reg):
            opts = self._apt()
            sim = run(["apt-get", *opts, "-s", "build-dep", package])
            names = sorted(set(re.findall(r"^Inst (librust-\S+)", sim, re.M)))
            debs, tmp = os.path.join(self.dl, "crates"), reg + ".new"
            shutil.rmtree(tmp, ignore_errors=True)
            os.makedirs(tmp)
            os.makedirs(debs, exist_ok=True)
            run(["apt-get", *opts, "download", *names], cwd=debs)
            for name in names:
                deb = sorted(glob.glob(os.path.join(debs, name + "_*.deb")))
                run(["dpkg-deb", "-x", deb[-1], tmp])
            os.rename(tmp, reg)
        return os.path.join(reg, "usr/share/cargo/registry")
