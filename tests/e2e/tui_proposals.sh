#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What an agent proposes (scry mcp --propose, a process of its own) while the workbench is open: it is told of, shown, accepted and refused
# by keys in a real tmux, over the workbench's socket and a line at a time. Waits for what it expects, never for a time.
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
if ! command -v tmux >/dev/null; then
	skip "proposals in the workbench" "no tmux"
	plan
fi
build prog gcc -O1 -no-pie "$ROOT/tests/data/prog/sample.c" || plan
. "$ROOT/tests/e2e/tmux.sh"
# agent OPS: one call of edit, by an agent that may only propose.
agent() {
	printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"robot"}}}' \
		'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"edit","arguments":'"$1"'}}' | "$SCRY" mcp prog --propose >agent.out
}

"$SCRY" analyze prog >/dev/null
start --rpc "$WORK/sock" prog
shows "the workbench" ready
agent '{"ops":[{"op":"rename","addr":"square","name":"times_itself"},{"op":"comment","addr":"main","text":"begins here"}],"note":"read it"}'
shows "what is proposed is told of at once" 'robot proposes 2 edits (,a shows what waits)'
shows "and counted" '! 2 proposed (,a)'
text ,a
shows "the list" '> Proposals'
shows "who, what and why" 'read it'
shows "the code as it would be" 'times_itself: *'
agent '{"op":"declare","params":{"text":"struct pair { int a, b; };"}}'
agent '{"ops":[{"op":"bookmark","addr":"main","text":"third"}]}'
shows "more while one looks" '! 4 proposed'
shows "are in the list" 'struct pair { int a; int b; };'
text a
shows "a accepts the one under the cursor" 'proposal 1 accepted'
shows "and one less waits" '! 3 proposed'
json "it is the agent's edit" 'any(i["op"] == "rename" and i["author"] == "robot" and i["author_kind"] == "agent" and i["note"] == "read it" and i["after"] == "times_itself" for i in d["items"])' "$SCRY" journal prog --json
text r
shows "r refuses" 'proposal 2 refused'
json "and nothing is edited" 'not any(i["op"] == "comment" for i in d["items"])' "$SCRY" journal prog --json
text V
shows "all of them marked" ', 2 marked'
text a
shows "are accepted at once" '2 proposals accepted'
shows "nothing waits" 'no agent has proposed anything'
json "and both are edits" '{"declare", "bookmark"} <= {i["op"] for i in d["items"]}' "$SCRY" journal prog --json
key C-z
shows "undo takes one back" 'undo: revision'
agent '{"ops":[{"op":"rename","addr":"main","name":"begin"}]}'
shows "the next one" 'rename at main'
key Enter
shows "Enter goes to its place" ' listing'
status "the driver sees how many wait" 0 "$SCRY" ui --json "$WORK/sock" state
like "and in which view" '"proposals":1' "$OUT"
status "shows them" 0 "$SCRY" ui --json "$WORK/sock" show proposals
like "row by row" '"view":"proposals".*"cols":\["5","robot","rename"' "$OUT"
status "and accepts" 0 "$SCRY" ui --json "$WORK/sock" accept id=5
like "with what became of it" '"status":"accepted"' "$OUT"
shows "on the screen" 'no agent has proposed anything'
status "the name is there" 0 "$SCRY" resolve prog begin
agent '{"ops":[{"op":"comment","addr":"begin","text":"sixth"}]}'
OUT=$(printf ',a\naccept 6\n,a\nq\n' | "$SCRY" --plain prog 2>&1)
like "a line at a time, too" '^> 1  6  robot  comment line  [0-9a-f]+  sixth' "$OUT"
like "accept takes its number" '6 +accepted +comment' "$OUT"
like "and it is gone" 'no agent has proposed anything' "$OUT"
text q
plan
