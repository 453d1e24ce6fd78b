#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Probes in a workbench in tmux: F6 on a function, a call and a line of C of a program that runs, what is shown beside them, and that nothing is
# left attached. Waits for what it expects, never for a time. SCRY is the program; prints TAP.
set -u
SCRY=${SCRY:?}
. "$(dirname "$0")/screen.sh"
at_end() { [ -z "${subject:-}" ] || kill "$subject"; }

cat >"$work/subject.c" <<'END'
#include <stdio.h>
#include <time.h>
struct pair { int a, b; };
__attribute__((noinline)) int inner(const char *name, int n) { return printf("%s %d\n", name, n); }
__attribute__((noinline)) int outer(int n) { return inner("fig", n) + inner("pear", n) + 1; }
int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1;; i++) {
		outer(i);
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	}
}
END
if ! cc -g -O1 -o "$work/subject" "$work/subject.c" 2>/dev/null; then
	echo "1..0 # skip no compiler for the subject"
	exit 0
fi
"$work/subject" >/dev/null &
subject=$!
if ! why=$("$SCRY" probe "$work/subject" outer --count 1 -p $subject 2>&1); then
	echo "1..0 # skip no probes here: $(printf %s "$why" | tail -n 1)"
	exit 0
fi
shell 170 42
text "$SCRY $work/subject"
keys Enter
wait_for ' subject  ELF64.* ready' 'the program is there'
text g
wait_for 'go to:' 'the prompt'
text outer
keys Enter
wait_for 'listing  [0-9a-f]+ outer' 'at the function'
keys F6
wait_for '@ [0-9,]+ hits, mean [0-9,]+ ns  outer\(n=[0-9]+\) = [0-9]+' 'F6: counts, arguments and result beside it'
first=$(screen | sed -n 's/.*@ \([0-9,]*\) hit.*/\1/p' | head -n 1 | tr -d ,)
more() { [ "$(screen | sed -n 's/.*@ \([0-9,]*\) hit.*/\1/p' | head -n 1 | tr -d ,)" -gt "${first:-0}" ] 2>/dev/null; }
until_true 'updated while it runs' more
keys Tab
wait_for 'outer_[0-9a-f]*\(.*@ [0-9,]+ hits' 'and in C, at its head'
keys Tab
wait_for ' listing ' 'back in the listing'
text ,w
wait_for '> Probes' ',w lists them'
wait_for '> +[0-9a-f]+ outer +[0-9,]+ hits, mean [0-9,]+ ns +outer\(n=' 'with counts and the last hit'
keys Escape
text g
text outer
keys Enter
wait_for 'listing  [0-9a-f]+ outer' 'at the function again'
text /
text insn:call
keys Enter
wait_for '>[0-9a-f]+ +call +inner' 'on a call'
keys F6
wait_for '>[0-9a-f]+ +call +inner.*@ [0-9,]+ hits' 'which can be probed, too'
keys Tab
wait_for '>.*inner.*@ [0-9,]+ hits' 'its line of C has it'
keys F6
is_off() { shows '>.*inner' && ! shows '>.*inner.*@ '; }
until_true 'F6 on the line takes it away' is_off
keys Tab
text ,w
wait_for '> Probes .*1' 'one is left'
keys Escape
text :
text probes-off
keys Enter
text ,w
wait_for 'none \(F6' 'all can be taken away'
keys Escape
text g
text outer
keys Enter
wait_for 'listing  [0-9a-f]+ outer' 'at the function'
keys F6
wait_for '@ [0-9,]+ hits' 'probed again'
text q
wait_for 'shell>' 'q leaves'
kill -0 $subject && ok 0 'the program goes on' || ok 1 'the program goes on'
detached() { "$SCRY" probe "$work/subject" outer --count 2 -p $subject 2>&1 | grep -q 'outer(n='; }
until_true 'and can be probed by the next' detached
echo "1..$n"
exit $failed
