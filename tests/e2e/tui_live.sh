#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The live trace in a workbench in tmux: from an event to the listing and the C of where it was made, and back. By eBPF where that is to be
# had, else by ptrace. Waits for what it expects, never for a time. SCRY is the program; prints TAP.
set -u
SCRY=${SCRY:?}
. "$(dirname "$0")/screen.sh"
if ! why=$("$SCRY" trace -e none -- true 2>&1); then
	echo "1..0 # skip nothing can be traced here: $(printf %s "$why" | tail -n 1)"
	exit 0
fi
# The process whose words these are, if there is one.
pid_of() {
	for f in /proc/[0-9]*; do
		[ "$(tr '\0' ' ' 2>/dev/null <"$f/cmdline")" = "$1 " ] && echo "${f#/proc/}" && return 0
	done 2>/dev/null
	return 1
}
runs() { pid_of "$1" >/dev/null; }
is_gone() { ! runs "$1"; }

"$SCRY" trace -o "$work/t.trc" -- cat /etc/passwd >/dev/null 2>&1
shell 210 42
text "$SCRY /bin/cat"
keys Enter
wait_for ' cat  ELF64.* ready' 'the program is there'
text ,v
wait_for 'trace: /bin/cat' ',v asks what to trace'
text /etc/passwd
keys Enter
wait_for 'Run it as you, in no sandbox\?  /bin/cat /etc/passwd' 'and whether it may run'
text n
wait_for 'nothing was changed' 'no is no'
shows 'nothing is traced' && ok 0 'and nothing ran' || ok 1 'and nothing ran'
text t
wait_for 'trace: ' 'asked again'
keys C-u
text "/bin/cat /etc/passwd"
keys Enter
wait_for 'Sure' 'the question again'
text y
wait_for '[0-9] events.* ended' 'it was traced to its end'
wait_for 'the program has ended with status 0' 'which is said'
text /
wait_for 'filter:' 'the filter'
text 'call=openat passwd'
keys Enter
wait_for 'openat +\(AT_FDCWD, "/etc/passwd"' 'leaves the call'
text '!'
wait_for '/call=openat passwd finding' 'findings alone'
text '!'
keys Home
wait_for '> .*openat +\(AT_FDCWD, "/etc/passwd"' 'the call is under the cursor'
shows '^.* > .*\+0x.*/cat' && ok 0 'with its frames' || ok 1 'with its frames'
keys Enter
wait_for ' listing  ' 'Enter leads to the listing'
wait_for '>[0-9a-f]+ +call +.*open' 'at the call'
keys Tab
wait_for ' C  L[0-9]' 'Tab to its C'
wait_for '>.*open' 'at the statement'
keys Escape
wait_for ' listing  ' 'Esc back to the listing'
keys Escape
wait_for '> Live trace' 'back at the events'
wait_for '> .*openat +\(AT_FDCWD, "/etc/passwd"' 'and at this one'
keys F5
wait_for ' C  L[0-9]' 'F5 leads there at once'
keys Escape
wait_for '> Live trace' 'and back'
text x
wait_for 'Who called, the innermost first' 'the frames'
wait_for '> +0 .*libc' 'the C library innermost'
keys Enter
wait_for ' libc\.so.*  ELF64' 'which is opened beside'
wait_for '>[0-9a-f]+ +syscall' 'at the system call'
keys Escape
wait_for '> Live trace' 'back over binaries'
wait_for ' cat  ELF64' 'in the program'
text e
wait_for '/call=openat passwd error' 'failed calls alone'
text t
wait_for 'trace: ' 'another trace'
keys C-u
text "--read $work/t.trc"
keys Enter
wait_for 'ended  --read' 'of a file'
keys Home
text '?'
wait_for 'find:' 'text in it'
text passwd
keys Enter
wait_for '> .*passwd' 'is found'
text t
keys C-u
text '--source ptrace -e openat -- cat /etc/passwd'
keys Enter
wait_for 'Sure' 'by ptrace'
text y
wait_for 'ended  --source ptrace' 'it is traced as well'
wait_for 'openat +\(AT_FDCWD, "/etc/passwd", O_RDONLY\) .*cat\+0x' 'with call sites'
text t
keys C-u
text "sleep 98761"
keys Enter
wait_for 'Sure' 'a program that stays'
text y
wait_for ' sleep +close ' 'is watched'
until_true 'while it runs' runs 'sleep 98761'
text p
wait_for ' paused.*sleep' 'held'
shows ' sleep +close ' && ok 0 'with what was there' || ok 1 'with what was there'
text p
wait_for ' running' 'and on'
text s
wait_for 'events.* ended' 's ends the trace'
until_true 'and the program' is_gone 'sleep 98761'
text t
keys C-u
text "-e kill -- sh -c 'kill -0 11; while :; do sleep 0.1; kill -0 22; done'"
keys Enter
wait_for 'Sure' 'a program without end'
text y
wait_for 'kill +\(22, 0\)' 'the newest of its events'
text /
text 'call=kill'
keys Enter
wait_for '/call=kill' 'filtered while they come'
newest() { screen | sed -n 's/.*missing) *\([0-9,]*\) .*/\1/p' | tr -d ,; }
keys Home
wait_for '> .*kill +\(11, 0\)' 'Home: the first one'
before=$(newest)
more() { [ "$(newest)" -gt "${before:-0}" ] 2>/dev/null; }
until_true 'while others come' more
shows '> .*kill +\(11, 0\)' && ok 0 'the cursor stays' || ok 1 'the cursor stays'
text F
wait_for '> .*kill +\(22, 0\)' 'F is at the newest again'
text s
wait_for 'events.* ended' 'and s ends it'
text t
keys C-u
text "sleep 98762"
keys Enter
wait_for 'Sure' 'another one'
text y
until_true 'runs' runs 'sleep 98762'
text q
wait_for 'shell>' 'q leaves'
until_true 'and nothing stays behind' is_gone 'sleep 98762'
text "clear; $SCRY /bin/cat"
keys Enter
wait_for ' cat  ELF64.* ready' 'once more'
text ,v
wait_for 'trace: ' 'a trace'
keys C-u
text "sleep 98763"
keys Enter
wait_for 'Sure' 'asks'
text y
until_true 'and runs' runs 'sleep 98763'
pid=$(tm list-panes -t t -F '#{pane_pid}')
read -r child _ <"/proc/$pid/task/$pid/children"
kill -KILL "$child"
until_true 'the tracer of a killed workbench ends' is_gone "scry trace-rows --rule all -- sleep 98763"
pid=$(pid_of 'sleep 98763') && kill "$pid" # by eBPF it goes on
echo "1..$n"
exit $failed
