#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Code mode: what a snippet answers, what it may and what it cannot do, however hard it tries, and that it is gone when it has to be.
. "$(dirname "$0")/lib.sh"
BUILD=${BUILD:-$(cd "$(dirname "$SCRY")/../.." && pwd)}
if [ ! -e "$BUILD/python/scry/_scry.abi3.so" ]; then
	skip "code mode" "this build has no Python: its headers (python3-dev) were not there"
	plan
fi
cd "$WORK" || exit 1
export TMPDIR=$WORK
T=$WORK/target
cp /bin/true "$T"
ok "the target is analysed" "$SCRY" analyze "$T"

run() { "$SCRY" exec "$T" "$@"; }
# get KEY: of the JSON document on stdin, as Python shows it.
get() { python3 -c 'import json,sys; d = json.load(sys.stdin); print(eval(sys.argv[1], {"d": d}))' "$1"; }

# --- answers ---
is "printed, and the result behind it" '2
{"a":[1,null,"x\u00e9"]}' "$(run -c 'print(1 + 1); result = {"a": [1, None, "xé"]}')"
is "no result, no line" "" "$(run -c 'x = 1')"
is "JSON" "done {'n': 3} hi" "$(run --json -c 'print("hi", end=""); result = {"n": 3}' | get 'd["end"] + " " + str(d["result"]) + " " + d["output"]')"
is "the target's lists are those of --json" "$("$SCRY" functions "$T" --json --limit 1000 | get 'd["items"]')" \
	"$(run --json -c 'result = db.functions()' | get 'd["result"]["items"]')"
is "inside of others, too, and whatever else json does not know" "[True, '6162', [1, 2], 3]" \
	"$(run --json -c 'result = [db.functions(), b"ab", {2, 1}, memoryview(b"abc")]' | get '[len(d["result"][0]["items"]) > 3, d["result"][1], d["result"][2], len(d["result"][3]) // 2]')"
is "scry has the methods of db" "True" "$(run --json -c 'result = scry.info() == db.info() and len(scry.strings()) == len(db.strings())' | get 'd["result"]')"
for python in python3.11 /usr/bin/python3; do
	if command -v "$python" >/dev/null && [ "$(command -v "$python")" != "$(command -v python3)" ]; then
		is "snippets run in $python" "$("$python" -c 'import sys; print(sys.version.split()[0], True)')" \
			"$(SCRY_PYTHON=$python run --json -c 'import sys; result = [sys.version.split()[0], len(db.functions()) > 3]' | get '"%s %s" % tuple(d["result"])')"
	else
		skip "snippets run in $python" "it is python3, or not there"
	fi
done
is "a column is a list" "True" "$(run --json -c 'result = db.functions().addr' | get 'len(d["result"]) > 3 and isinstance(d["result"][0], int)')"
cat >script.py <<'P'
import sys
result = [args, sys.argv[1:], __name__, __file__]
P
is "a script and its arguments" "['one', '-x'] ['one', '-x'] __main__ script.py" \
	"$(run --json script.py one -- -x | get '"%s %s %s %s" % tuple(d["result"])')"
is "a script from a pipe" "7" "$(echo 'result = 3 + 4' | run -)"
is "arguments behind -c" "['a', 'b']" "$(run --json -c 'result = args' a b | get 'd["result"]')"
is "exit(0) is no failure" "ok
5" "$(run -c 'print("ok"); result = 5; exit(0)')"

# --- failures ---
out=$(run -c $'def f():\n\treturn 1 // 0\nf()' 2>&1)
is "what is raised is exit status 1" "1" "$(run -c 'raise KeyError("k")' >/dev/null 2>&1; echo $?)"
like "with a traceback that shows the snippet's lines" 'return 1 // 0' "$out"
like "and its error" '^scry: exec: ZeroDivisionError' "$out"
case $out in *_warm.py*) fail "nothing of ours in it" "$out" ;; *) pass "nothing of ours in it" ;; esac
is "in JSON" "raised ValueError no None" "$(run --json -c 'raise ValueError("no")' 2>/dev/null | get '"%s %s %s %s" % (d["end"], d["error"]["type"], d["error"]["message"], d["result"])')"
is "exit(3) is one" "raised SystemExit" "$(run --json -c 'exit(3)' 2>/dev/null | get 'd["end"] + " " + d["error"]["type"]')"
like "a syntax error" 'SyntaxError' "$(run -c 'def' 2>&1)"
like "scry's own errors" 'scry.Error|Error: .*nothing_there' "$(run -c 'db.disasm("nothing_there")' 2>&1)"
like "a result that is no JSON" 'no object|TypeError' "$(run -c 'result = object()' 2>&1)"
like "nor is NaN" 'ValueError' "$(run -c 'result = float("nan")' 2>&1)"
is "no script" "2" "$(run >/dev/null 2>&1; echo $?)"
is "a script that is not there" "3" "$(run nowhere.py >/dev/null 2>&1; echo $?)"
is "output is bounded, and it is said" "1000 4001" "$(run --json --max-output 1000 -c 'print("x" * 5000)' | get '"%d %d" % (len(d["output"]), d["output_cut"])')"
is "all of it comes where it is printed" "5000001" "$(run -c 'print("x" * 5000000)' | wc -c)"
is "stdout and stderr apart" "out" "$(run -c 'import sys; print("out"); print("err", file=sys.stderr)' 2>/dev/null)"

# --- time and memory ---
gone() { # NAME SNIPPET: it is past its deadline
	local doc
	doc=$(run --json --deadline 2 -c "$2" 2>/dev/null)
	is "$1" "1 timeout" "$? $(printf '%s' "$doc" | get 'd["end"]')"
}
is "what it printed before its deadline is kept" "timeout begun" \
	"$(run --json --deadline 10 -c 'print("begun", flush=True)
while True: pass' 2>/dev/null | get 'd["end"] + " " + d["output"].strip()')"
gone "an endless loop" 'while True: pass'
gone "one that catches everything" $'while True:\n\ttry:\n\t\twhile True: pass\n\texcept BaseException: pass'
gone "a spin in C" 'sum(range(10**14))'
gone "a regular expression" 'import re; re.match("(a*)*(a*)*b", "a" * 64)'
gone "sleep" 'import time; time.sleep(1000)'
gone "signals ignored" $'import signal\nfor s in range(1, 65):\n\ttry: signal.signal(s, signal.SIG_IGN)\n\texcept (OSError, ValueError): pass\nwhile True: pass'
gone "threads" $'import threading\nfor i in range(8): threading.Thread(target=lambda: sum(range(10**14))).start()'
gone "memory without end" $'x = []\nwhile True:\n\ttry: x.append(bytearray(1 << 24))\n\texcept MemoryError: pass'
like "10 GB" 'MemoryError' "$(run -c 'x = bytearray(10 << 30)' 2>&1)"
like "a fork bomb" 'PermissionError' "$(run -c $'import os\nwhile True: os.fork()' 2>&1)"

# --- what it cannot do ---
refused() { # NAME SNIPPET
	like "$1" 'PermissionError|OSError|not permitted|denied' "$(run -c "$2" 2>&1)"
}
refused "no file outside" "open('$WORK/written', 'w')"
refused "none is removed" "import os; os.remove('$T')"
refused "none is cut" "import os; os.truncate('$T', 0)"
refused "none gets other rights" "import os; os.chmod('$T', 0o777)"
refused "the store is not written" "import os; open(os.environ['SCRY_STORE'] + '/global.db', 'r+b')"
[ ! -e "$WORK/written" ] && cmp -s /bin/true "$T" && pass "and nothing of it happened" || fail "and nothing of it happened"
refused "no network" 'import socket; socket.socket()'
refused "no sockets at all" 'import socket; socket.socketpair()'
refused "no programs" 'import subprocess; subprocess.run(["true"])'
# call NUMBER ARGS: of this processor's system calls.
if [ "$(uname -m)" = x86_64 ]; then
	number() {
		refused "no $1" "import ctypes, os
r = ctypes.CDLL(None, use_errno=True).syscall($2)
raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno())) if r < 0 else Exception('it can')"
	}
	number memfd_create '319, b"x", 0'
	number io_uring_setup '425, 8, ctypes.create_string_buffer(200)'
	number userfaultfd '323, 1'
	number process_vm_readv '310, os.getppid() or 1, 0, 0, 0, 0, 0'
	number rt_sigqueueinfo '129, os.getppid() or 1, 9, 0'
	number pidfd_open '434, os.getppid() or 1, 0'
	number bpf '321, 0, 0, 0'
	number perf_event_open '298, 0, 0, 0, 0, 0'
	number setns '308, 0, 0'
	number mount '165, 0, 0, 0, 0, 0'
	number keyctl '250, 0, 0, 0, 0, 0'
	number setpriority '141, 0, os.getppid() or 1, 19'
fi
refused "no execve" 'import os; os.execv("/bin/true", ["true"])'
refused "no signals to others" 'import os; os.kill(os.getppid() or 2, 9)'
refused "nor by thread" 'import os, signal; signal.pthread_kill; import ctypes; r = ctypes.CDLL(None, use_errno=True).tgkill(1234567, 1234567, 9); raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno())) if r else Exception'
refused "no tracing" 'import ctypes, os; r = ctypes.CDLL(None, use_errno=True).ptrace(16, 1, 0, 0); raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno())) if r else Exception'
refused "no namespaces" 'import ctypes, os; r = ctypes.CDLL(None, use_errno=True).unshare(0x10000000); raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno())) if r else Exception'
refused "nor by what a descriptor has to say" "import fcntl, os; r, w = os.pipe(); fcntl.fcntl(r, fcntl.F_SETOWN, $$)"
refused "whatever signal that would be" 'import fcntl, os; r, w = os.pipe(); fcntl.fcntl(r, fcntl.F_SETSIG, 9)'
refused "nothing is locked, so that nobody waits for it" "import fcntl; f = open(__import__('os').environ['SCRY_STORE'] + '/global.db', 'rb'); fcntl.lockf(f, fcntl.LOCK_SH | fcntl.LOCK_NB)"
refused "by no kind of lock" "import fcntl; f = open(__import__('os').environ['SCRY_STORE'] + '/global.db', 'rb'); fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)"
refused "others stay on their processors" "import os; os.sched_setaffinity($$, {0})"
refused "no typing into the terminal" 'import fcntl; fcntl.ioctl(1, 0x5412, b"x")'
case $(run --json -c '1' | get 'd["unprotected"]') in
*landlock*) skip "its own folder can be written" "this kernel has no landlock, so that nothing can" ;;
*) is "its own folder can be written" "True ['f']" \
	"$(run --json -c 'import os, tempfile; open(os.path.join(tempfile.gettempdir(), "f"), "w").write("x"); result = [os.environ["TMPDIR"] == tempfile.gettempdir(), os.listdir(tempfile.gettempdir())]' | get '"%s %s" % tuple(d["result"])')" ;;
esac
full() { # NAME SNIPPET: ended for what it has of the disk, though its deadline is far
	local doc
	doc=$(run --json --deadline 600 -c "$2" 2>err)
	is "$1" "1 killed" "$? $(printf '%s' "$doc" | get 'd["end"]')"
	like "$1, it is said" 'too much of the disk' "$(cat err)"
}
case $(run --json -c '1' | get 'd["unprotected"]') in
*landlock*) skip "what it has of the disk is bounded" "this kernel has no landlock, so that it has nothing" ;;
*)
	full "many files of the size that is allowed" $'import os, tempfile
for i in range(3):
	fd = os.open(os.path.join(tempfile.gettempdir(), str(i)), os.O_CREAT | os.O_RDWR); os.posix_fallocate(fd, 0, 200 << 20); os.close(fd)
while True: pass'
	full "files that are removed and open" $'import os, tempfile
for i in range(3):
	path = os.path.join(tempfile.gettempdir(), "f"); fd = os.open(path, os.O_CREAT | os.O_RDWR); os.unlink(path); os.posix_fallocate(fd, 0, 200 << 20)
while True: pass'
	full "files without number" $'import os, tempfile
n = 0
while True:
	n += 1; d = os.path.join(tempfile.gettempdir(), str(n)); os.mkdir(d)
	for i in range(100): os.close(os.open(os.path.join(d, str(i)), os.O_CREAT | os.O_RDWR))' ;;
esac
is "no folder is left" "" "$(ls -d "$WORK"/scry-exec-* 2>/dev/null)"
is "what it holds open is for reading, but its pipes" "[]" "$(run --json -c $'import os, stat\nresult = []\nfor n in os.listdir("/proc/self/fd"):
	try: flags, mode = open("/proc/self/fdinfo/" + n).read().split()[3], os.fstat(int(n)).st_mode
	except OSError: continue
	if int(flags, 8) & 3 and stat.S_ISREG(mode): result.append(os.readlink("/proc/self/fd/" + n))' | get 'd["result"]')"
is "memory that others share is not there" "[]" "$(run --json -c 'result = [l for l in open("/proc/self/maps") if l.split()[1] in ("rw-s", "-w-s")]' | get 'd["result"]')"
is "no hook is installed" "None None" "$(run --json -c 'import sys; result = [sys.gettrace(), sys.getprofile()]' | get '"%s %s" % tuple(d["result"])')"
out=$(run --json -c 'import os
for fd in range(3, 64):
	try: os.write(fd, b"R1}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n")
	except OSError: pass
os._exit(0)' 2>/dev/null)
is "a forged result stays inside" "1 killed None" "$(printf '%s\n' "$out" | wc -l) $(printf '%s' "$out" | get '"%s %s" % (d["end"], d["result"])')"
is "one that ends itself" "killed" "$(run --json -c 'import os; os._exit(0)' 2>/dev/null | get 'd["end"]')"
like "one that crashes is said to have" 'SIGSEGV|ended without an answer' "$(run -c 'import ctypes; ctypes.string_at(0)' 2>&1)"
like "code mode in code mode" 'may not|denied' "$(run -c 'db.exec(code="1")' 2>&1)"
like "it runs nothing of the target without consent" 'yes-run-target|consent|agree' "$(run -c 'db.call("entry", yes_run_target=True)' 2>&1)"
like "files are not written for it either" 'may not' "$(run -c "db.export(output='$WORK/out.md')" 2>&1)"

# --- edits ---
is "an edit" "applied" "$(run --json -c $'with db.edit(note="why") as e:\n\te.rename("entry", "begin")\nresult = e.results[0].status' | get 'd["result"]')"
is "is in the journal as a script's, with its note" "rename script why" \
	"$("$SCRY" journal "$T" --json | get '"%(op)s %(author_kind)s %(note)s" % d["items"][-1]')"
is "and seen by the snippet that made it" "True True" "$(run --json -c $'a = db.address("begin")\ndb.rename(a, "began")\nresult = [db.address("began") == a, db.heads(a, count=3)[-1].label == "began"]' | get '"%s %s" % tuple(d["result"])')"
rev=$("$SCRY" info "$T" --json | get 'd["rev"]')
like "a dry run prints the difference" '^\+ other' "$(run -c $'with db.edit(dry_run=True) as e: e.rename("began", "other")')"
like "read-only is read-only" 'read-only' "$(run --read-only -c 'db.rename("began", "other")' 2>&1)"
like "for who goes around Python, too" 'read-only' "$(run --read-only -c 'db._backend.other().call("rename", {"addr": "began", "name": "other"})' 2>&1)"
like "nobody else's name" 'in the name of who runs it' "$(run -c 'db.rename("began", "other", author_kind="human")' 2>&1)"
like "nor by another author" 'in the name of who runs it' "$(run -c 'db.rename("began", "other", author="somebody")' 2>&1)"
is "none of these changed anything" "$rev" "$("$SCRY" info "$T" --json | get 'd["rev"]')"
run --deadline 1 -c $'with db.edit() as e:\n\te.rename("began", "never")\n\twhile True: pass' >/dev/null 2>&1
is "an edit whose block did not end was not made" "$rev" "$("$SCRY" info "$T" --json | get 'd["rev"]')"
ok "the journal is in order" "$SCRY" check "$T" --edits

# --- load options ---
printf '\x90\xc3' >raw
is "raw bytes as they are said to be, without a store" "90c3" \
	"$("$SCRY" exec raw --no-store --processor x86-64 --base 0x1000 --json -c 'result = db.bytes(0x1000, 2)' | get 'd["result"]')"
is "and with one" "90c3" "$("$SCRY" exec raw --processor x86-64 --base 0x1000 --json -c 'result = db.bytes(0x1000, 2)' | get 'd["result"]')"
is "a base of a program, without a store" "True" \
	"$("$SCRY" exec "$T" --no-store --base 0x70000000 --json -c 'result = all(0x70000000 <= s.addr < 0x71000000 for s in db.segments() if s.size)' | get 'd["result"]')"

# --- unconfined ---
is "a person may run it unconfined" "here" "$(run --unconfined -c 'import subprocess; print(subprocess.run(["echo", "here"], capture_output=True, text=True).stdout.strip())')"
run --unconfined -c "open('$WORK/written', 'w').write('x')" && [ -e "$WORK/written" ] && pass "and it writes files" || fail "and it writes files"
left() { # how many processes have words like PATTERN; this shell and its children do not count
	python3 - "$1" <<'PY'
import glob, os, re, sys
cnt = 0
for path in glob.glob("/proc/[0-9]*/cmdline"):
    try:
        words = open(path, "rb").read().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        continue
    cnt += path.split("/")[2] != str(os.getpid()) and re.search(sys.argv[1], words) is not None
print(cnt)
PY
}
wait_gone() { # PATTERN: 0 once no process has it
	for _ in $(seq 1 300); do
		[ "$(left "$1")" = 0 ] && return 0
		sleep 0.1
	done
	return 1
}
run --unconfined --deadline 3 -c 'import subprocess
for i in range(3): subprocess.Popen(["sleep", "86399.25"], start_new_session=True)
while True: pass' >/dev/null 2>&1
if wait_gone 'sleep 86399.25'; then pass "what it started ends with it"; else fail "what it started ends with it"; fi

# --- on a terminal ---
if command -v script >/dev/null; then
	cat >esc.py <<'P'
import os
print("a\x1b[31m\tb\x9b \u202e \u00e9")
os.write(1, b"\xc3")
os.write(1, b"\xa4 \xff\x1b[c\n")
os.write(2, b"\x1b[2J\xe2")
result = "done"
P
	shown=$(script -qec "'$SCRY' exec '$T' esc.py" /dev/null </dev/null | tr -d '\r')
	like "what a terminal would obey is shown" 'a\\x1b\[31m.b\\u\{9b\} \\u\{202e\} é' "$shown"
	like "a character in two pieces is one" '^ä \\xff\\x1b\[c$' "$shown"
	like "errors, too, and half a character at the end" '\\x1b\[2J\\xe2' "$shown"
	unlike "nothing else" $'\033' "$shown"
	is "elsewhere bytes are what they are" $'a\033[31m' "$(run -c 'print("a\x1b[31m")')"
else
	skip "on a terminal" "no script(1)"
fi

# --- the end of scry itself ---
"$SCRY" exec "$T" --deadline 600 -c 'print("up", flush=True)
while True: pass' >up 2>/dev/null &
pid=$!
for _ in $(seq 1 600); do
	[ -s up ] && break
	sleep 0.1
done
kill -9 $pid
wait $pid 2>/dev/null
if wait_gone "import _warm; _warm.main.*$T"; then pass "kill -9 of scry ends the snippet and its interpreter"; else fail "kill -9 of scry ends the snippet and its interpreter"; fi
is "and leaves no folder" "" "$(ls -d "$WORK"/scry-exec-* 2>/dev/null)"
ok "the next one works" "$SCRY" exec "$T" -c 'result = 1'
like "a Python that is none" 'no /nonexistent|does not start' "$(SCRY_PYTHON=/nonexistent run -c '1' 2>&1)"
is "is status 4" "4" "$(SCRY_PYTHON=/nonexistent run -c '1' >/dev/null 2>&1; echo $?)"
plan
