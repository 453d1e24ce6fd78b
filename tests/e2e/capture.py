#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`scry trace --capture`: what programs execute and write is copied, memory files and deleted ones too, and nothing else; names and limits; what
is not a plain file is left alone. Prints TAP. SCRY is the program."""
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

SCRY = os.environ.get("SCRY", "")
ROOT = tempfile.mkdtemp(prefix="scry-capture-")
ENV = dict(os.environ, SCRY_STORE=ROOT + "/store", LC_ALL="C.UTF-8")
SUBJECT = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
static void put(int fd, const char *s) { if (write(fd, s, strlen(s)) < 0) abort(); }
extern char **environ;
int main(int argc, char **argv)
{
	int fd, out;
	char buf[65536], *mode = argv[1];
	if (!strcmp(mode, "files")) {
		fd = open("deleted", O_WRONLY | O_CREAT, 0600);
		put(fd, "of a deleted ");
		unlink("deleted");
		put(fd, "file");
		close(fd);
		mkdir("a", 0700);
		fd = open("a/..\n\"evil\\ \xff", O_RDWR | O_CREAT, 0600);
		put(fd, "odd name");
		/* still open at the end */
		fd = open("twice", O_WRONLY | O_CREAT, 0600);
		put(fd, "first");
		close(fd);
		fd = open("twice", O_WRONLY | O_APPEND);
		put(fd, " second");
		close(fd);
		fd = open("mapped", O_RDWR | O_CREAT, 0600);
		if (ftruncate(fd, 4096))
			abort();
		char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
		strcpy(p, "mapped");
		munmap(p, 4096);
		fd = open("child", O_WRONLY | O_CREAT, 0600);
		if (!fork()) {
			dup2(fd, 100);
			put(100, "by a child");
			_exit(0);
		}
		wait(NULL);
		mkfifo("fifo", 0600);
		out = open("fifo", O_RDWR);
		put(out, "x");
		out = open("/proc/self/comm", O_WRONLY);
		put(out, "renamed");
		out = open("/dev/null", O_WRONLY);
		put(out, "y");
		fd = open("only read", O_RDONLY);
		if (read(fd, buf, 4) < 0)
			abort();
	} else if (!strcmp(mode, "memory")) {
		out = memfd_create("../../hidden", 0);
		fd = open("/proc/self/exe", O_RDONLY);
		for (ssize_t n; (n = read(fd, buf, sizeof(buf))) > 0;)
			if (write(out, buf, n) != n)
				abort();
		char *args[] = {argv[0], "nothing", NULL};
		fexecve(out, args, environ);
	} else if (!strcmp(mode, "large")) {
		memset(buf, 'L', sizeof(buf));
		for (int k = 0; k < 3; k++) {
			char name[] = "large0";
			name[5] += k;
			buf[0] = '0' + k;
			fd = open(name, O_WRONLY | O_CREAT, 0600);
			for (int i = 0; i < 48; i++)
				if (write(fd, buf, sizeof(buf)) < 0)
					abort();
			close(fd);
		}
	}
	return 0;
}
"""
count = failed = 0


def ok(good, what, *why):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}", flush=True)
    for w in why if not good else ():
        print("#", str(w).replace("\n", "\n# ")[:1500])
    return good


def capture(words, mode, *more):
    """The index, the folder, and what scry said."""
    where = tempfile.mkdtemp(dir=ROOT)
    with open(where + "/only read", "w") as f:
        f.write("none of its")
    got = subprocess.run([SCRY, "trace", "-e", "none", "--capture", words, "copies", *more, "--", ROOT + "/subject", mode], cwd=where, env=ENV,
                         capture_output=True, check=False)
    if got.returncode:
        ok(False, f"{mode}: it is traced", got.stderr)
        return [], where, b""
    with open(where + "/copies/index.jsonl", encoding="utf-8") as f:
        return [json.loads(line) for line in f], where + "/copies", got.stderr


def content(folder, line):
    with open(folder + "/" + line["file"], "rb") as f:
        return f.read()


def check_folder(what, folder, index):
    names = set(os.listdir(folder)) - {"index.jsonl"}
    good = True
    for name in names:
        with open(folder + "/" + name, "rb") as f:
            good &= hashlib.sha256(f.read()).hexdigest() == name
    ok(good and names == {line["file"] for line in index if line["file"]}, f"{what}: each file is named by what is in it, and in the index", names)
    ok(os.stat(folder).st_mode & 0o77 == 0 and all(os.stat(folder + "/" + n).st_mode & 0o77 == 0 for n in names), f"{what}: nobody else may read them")
    keys = ["v", "kind", "file", "bytes", "size", "cut", "why", "path", "pid", "comm", "exe", "time"]
    ok(all(list(line) == keys for line in index), f"{what}: the index has its keys", index[:2])


def main():
    if subprocess.run(["gcc", "-O1", "-w", "-o", ROOT + "/subject", "-x", "c", "-"], input=SUBJECT, text=True, check=False).returncode:
        print("1..0 # SKIP no compiler")
        return 0
    index, folder, said = capture("exec,write", "files")
    check_folder("files", folder, index)
    with open(ROOT + "/subject", "rb") as f:
        own = f.read()
    execs = [line for line in index if line["kind"] == "exec"]
    ok(len(execs) == 1 and content(folder, execs[0]) == own and execs[0]["path"].endswith("/subject"), "what is executed", execs)
    writes = {os.path.basename(line["path"]): line for line in index if line["kind"] == "write"}
    texts = {name: content(folder, line) for name, line in writes.items() if line["file"]}
    ok(texts.get("deleted") == b"of a deleted file", "a deleted file", texts)
    ok(b"odd name" in texts.values() and not [n for n in os.listdir(folder) if "evil" in n], "an odd name is a text in the index", texts)
    ok(texts.get("twice") == b"first second", "a file written twice, as it was after each", texts)
    ok(sum(line["kind"] == "write" and line["path"].endswith("/twice") for line in index) == 2, "twice")
    ok(texts.get("mapped", b"").rstrip(b"\0") == b"mapped", "a file written through memory", texts)
    ok(texts.get("child") == b"by a child", "through a descriptor of the parent", texts)
    ok(len(writes) == 5, "pipes, devices, the kernel's files and what was only read are left alone", list(writes))
    ok(f"{len(execs)} executed, {len(index) - len(execs)} written".encode() in said, "it says how many", said)
    ok(not os.path.exists(folder + "/.part"), "nothing is left half done")

    index, folder, _ = capture("exec,write", "memory")
    check_folder("memory", folder, index)
    hidden = [line for line in index if line["path"].startswith("/memfd:")]
    ok({line["kind"] for line in hidden} == {"exec", "write"} and all(content(folder, line) == own for line in hidden),
       "a program in memory: when it was written and when it ran", index)

    index, folder, said = capture("write", "large", "--capture-file", "1", "--capture-total", "2")
    check_folder("large", folder, index)
    ok([line["kind"] for line in index] == ["write"] * 3, "write alone", index)
    ok([(line["bytes"], line["size"], line["cut"]) for line in index[:2]] == [(1 << 20, 3 << 20, True)] * 2, "files are cut where they are too long", index)
    ok(index[2]["file"] is None and index[2]["why"] == "limit" and b"2 cut; 1 not copied" in said, "and left out where there are too many, which is said", index, said)
    index, folder, _ = capture("exec", "files")
    ok([line["kind"] for line in index] == ["exec"], "exec alone", index)

    def status(*words):
        return subprocess.run([SCRY, "trace", *words], cwd=ROOT, env=ENV, capture_output=True, check=False).returncode
    ok(status("--capture", "exec", folder, "--", "true") == 2, "a folder that has an index")
    ok(status("--capture", "read", "x", "--", "true") == 2, "what is neither exec nor write")
    ok(status("--capture", "exec") == 2 and status("--capture", "exec", "--", "true") == 2, "no folder")
    ok(status("--capture", "exec", "/no/such/folder", "--", "true") == 125, "a folder that cannot be made")
    return failed > 0


status = main()
shutil.rmtree(ROOT, ignore_errors=True)
if count:
    print(f"1..{count}")
sys.exit(status)
