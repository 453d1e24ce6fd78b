#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lines of C of call sites: those that `scry decompile` shows the call in.
. "$(dirname "$0")/lib.sh"

if ! "$SCRY" trace -e none -- true >/dev/null 2>&1; then
	skip "lines of C of call sites" "nothing can be traced here"
	plan
	exit
fi
SOURCE=bpf
"$SCRY" trace --source bpf -e none -- true >/dev/null 2>&1 || SOURCE=ptrace
cat >"$WORK/s.c" <<'END'
#include <unistd.h>
__attribute__((noinline)) int third(const char *s) { return chdir(s) + 1; }
int main(void) { int n = third("/"); return n + third("/usr") - 2 + rmdir("/no/such/folder") + 1; }
END
for flags in "-O0 -fno-omit-frame-pointer" "-O2 -fomit-frame-pointer" "-O2 -s" "-O1 -static"; do
	if ! cc $flags -o "$WORK/s" "$WORK/s.c" 2>/dev/null; then
		skip "$flags" "the subject cannot be built"
		continue
	fi
	"$SCRY" trace --source $SOURCE --lines --json -e chdir,rmdir -- "$WORK/s" 2>/dev/null | grep '"event":"syscall"' >"$WORK/events"
	is "$flags: the calls are there" 3 "$(wc -l <"$WORK/events")"
	sites=$(python3 -c '
import json, sys
for line in sys.stdin:
    e = json.loads(line)
    s = next((f for f in [e["site"]] + e["stack"] if f["module"].endswith("/s") and f["func"] not in ("chdir", "rmdir", "__chdir", "__rmdir")), None)
    print(e["name"], s and s["offset"], s and s["func"], s and s["line"])' <"$WORK/events")
	while read -r name off func line; do
		text=$("$SCRY" decompile "$WORK/s" "file:$off" 2>/dev/null | sed -n "${line}p")
		[ "$flags" = "-O2 -s" ] && want='scry_call|chdir|rmdir' || want=$name
		like "$flags: $name at line $line of $func" "$want" "$text"
	done <<END
$sites
END
done

# By eBPF recorded without --lines, read with them; a program that takes another's place was called by that one.
sources=ptrace
[ $SOURCE = bpf ] && sources="ptrace bpf"
for source in $sources; do
	if [ $source = bpf ]; then
		"$SCRY" trace --source bpf -o "$WORK/t.trc" --stacks -- sh -c 'exec cat /dev/null' >/dev/null 2>&1
		out=$("$SCRY" trace --read "$WORK/t.trc" --lines -e execve 2>&1)
	else
		out=$("$SCRY" trace --source ptrace --lines -e execve -- sh -c 'exec cat /dev/null' 2>&1)
	fi
	like "$source: execve has the site of who called it" '^ > .*sh\(.*line [0-9]+$' "$out"
	unlike "$source: not one of the new program" '^ > .*/cat\(' "$out"
	is "$source: each execve is shown once" 2 "$(printf '%s\n' "$out" | grep -c 'execve(.*= 0$')"
done
plan
