#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The C pane in a real tmux: blocks folded, a pattern searched for, a label named and named still at the next start; where there is no C
# it says why. Waits for what it expects, never for a time.
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
if ! command -v tmux >/dev/null; then
	skip "the C pane" "no tmux"
	plan
fi
build prog gcc -O1 -no-pie -x c - <<'C' || plan
int put(int i, int j) { return i * j == 42; }
int add(volatile int *p, int n) { for (int i = 0; i < n; i++) p[i] += i; return n; }
/* Two ways into the loop: no form without a goto says it. */
int loop(int *p, int a, int b)
{
	int r = 0, i = 0;
	if (a & 1)
		goto in;
	for (;;) {
		r += add(p, i);
		if (put(i, b))
			break;
	in:
		i += add(p, r);
		if (i > b)
			return r;
	}
	return r + add(p, 1);
}
int main(int argc, char **argv) { return loop((int *)argv, argc, argc); }
C
. "$ROOT/tests/e2e/tmux.sh"

start prog
shows "the workbench" ready
text g
text loop
key Enter
shows "a function" 'loop:'
key Tab
shows "its C" 'uint32_t loop_'
text '/rx:^b[0-9]+:'
key Enter
shows "a pattern is found" 'found: rx:^b[0-9]+:'
text -
shows "a block is folded" ' lines'
key Enter
shows "Enter opens it" '{'
text +
shows "all are folded" 'line'
text +
text '/goto'
key Enter
shows "a goto" 'found: goto'
text w
text n
shows "its label is asked for" 'name: '
key C-u
text once_more
key Enter
shows "and printed with its name" 'once_more_'
key Tab
shows "the listing" ' listing'
key C-Home
text '/insn:ret*'
key Enter
shows "an instruction is found" 'found: insn:ret*'
text N
shows "before the first is the last" 'past the end: insn:ret*'
text K
shows "(another message)" 'nothing on this line'
key F3
shows "behind the last is the first, though nothing is mapped at 0" 'past the end: insn:ret*'
text q
status "it is in the journal" 0 "$SCRY" journal prog
like "as a name" 'once_more' "$OUT"
start prog
text g
text loop
key Enter
shows "the function again" 'loop:'
key Tab
shows "its C again" 'm->rsp'
text '/goto'
key Enter
shows "and there at the next start" 'once_more_'
text q
if build arm aarch64-linux-gnu-gcc -nostdlib -ffreestanding -x c - <<'C'; then
int helper(int x) { return x + 1; }
void _start(void) { helper(1); for (;;); }
C
	start arm
	shows "a program of AArch64" aarch64
	text g
	text helper
	key Enter Tab
	shows "says that there is no C of it yet" 'C of aarch64 needs a lifter'
	key Tab
	shows "and has its listing" ' listing'
	text q
else
	skip "C of AArch64" "no aarch64-linux-gnu-gcc"
fi
plan
