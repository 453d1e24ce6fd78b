#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Proposals: an agent's edits that wait, accepted and refused one by one, and what is left of them when a process is killed.
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
build prog gcc -O1 -no-pie "$ROOT/tests/data/prog/sample.c" || plan

# agent OPS...: one call of edit for each, by an agent that may only propose.
agent() {
	{
		echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"robot"}}}'
		for ops in "$@"; do
			echo '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"edit","arguments":'"$ops"'}}'
		done
	} | "$SCRY" mcp prog --propose | tail -n +2
}

OUT=$(agent '{"ops":[{"op":"rename","addr":"square","name":"times_itself"},{"op":"comment","addr":"main","text":"begins"},{"op":"rename","addr":"main","name":"has space"}],"note":"because"}')
like "edits are proposed" '"status":"proposed"' "$OUT"
like "what would be refused is" '"status":"refused"' "$OUT"
json "nothing was changed" 'd["total"] == 0 or all(i["op"] == "analysis" for i in d["items"])' "$SCRY" journal prog --json
json "they wait" 'd["total"] == 2 and [i["op"] for i in d["items"]] == ["rename", "comment"] and all(i["state"] == "open" and i["author"] == "robot" and i["author_kind"] == "agent" and i["note"] == "because" for i in d["items"])' "$SCRY" proposals prog --json
status "one is accepted" 0 "$SCRY" accept prog 1
json "it is an edit of the agent's" 'any(i["op"] == "rename" and i["author"] == "robot" and i["author_kind"] == "agent" and i["note"] == "because" and i["after"] == "times_itself" for i in d["items"])' "$SCRY" journal prog --json
json "the other waits" '[i["id"] for i in d["items"]] == [2]' "$SCRY" proposals prog --json
status "it is accepted once" 1 "$SCRY" accept prog 1
like "it says why" 'decided already' "$OUT"
status "the other is refused" 0 "$SCRY" refuse prog 2
json "none waits" 'd["items"] == []' "$SCRY" proposals prog --json
json "all can be seen" '[i["state"] for i in d["items"]] == ["accepted", "refused"] and d["items"][0]["accepted_rev"]' "$SCRY" proposals prog --all --json
status "undo by author" 0 "$SCRY" undo prog --author robot
status "the name is as before" 0 "$SCRY" resolve prog square

# Stale.
agent '{"ops":[{"op":"comment","addr":"main","text":"mine"}]}' >/dev/null
"$SCRY" comment prog main "somebody else's" >/dev/null
json "what was changed since is stale" 'd["items"][0]["state"] == "stale"' "$SCRY" proposals prog --json
status "and is not accepted" 1 "$SCRY" accept prog --all
like "with the reason" 'stale' "$OUT"
"$SCRY" undo prog >/dev/null
status "when that is taken back it can be" 0 "$SCRY" accept prog --all

# Of one call one revision, by author, and what an agent may not.
agent '{"ops":[{"op":"rename","addr":"square","name":"one"},{"op":"bookmark","addr":"main","text":"two"}]}' '{"op":"declare","params":{"text":"struct pair { int a, b; };"}}' '{"op":"define","params":{"addr":"counter","what":"data:dword"}}' >/dev/null
BEFORE=$("$SCRY" info prog --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["rev"])')
status "all of an author" 0 "$SCRY" accept prog --author robot
json "each call is a revision" 'len({i["rev"] for i in d["items"] if i["op"] != "analysis"}) >= 2 and len([i for i in d["items"] if i["op"] in ("rename", "bookmark")]) == 2 and len({i["rev"] for i in d["items"] if i["op"] in ("rename", "bookmark")}) == 1' "$SCRY" journal prog --since "$BEFORE" --json
like "an agent that proposes does not accept" 'denied' "$(agent '{"op":"accept","params":{"all":true}}')"
like "nor take back" 'denied' "$(agent '{"op":"undo"}')"
status "the journal is whole" 0 "$SCRY" check prog --edits
status "a number that is none" 2 "$SCRY" accept prog x
status "one that is not there" 1 "$SCRY" accept prog 999
status "none said" 2 "$SCRY" accept prog

# Killed at any instant: a proposal is accepted and an edit, or it waits and is none.
OPS=
for i in $(seq 20); do
	OPS="$OPS${OPS:+,}{\"op\":\"comment\",\"addr\":\"main+$i\",\"kind\":\"block\",\"text\":\"c$i\"}"
done
agent "{\"ops\":[$OPS]}" >/dev/null
IDS=$("$SCRY" proposals prog --json | python3 -c 'import json, sys; print(*[i["id"] for i in json.load(sys.stdin)["items"]])')
for id in $IDS; do
	"$SCRY" accept prog "$id" >/dev/null 2>&1 &
	sleep 0.0$((id * 7 % 10))
	kill -KILL $! 2>/dev/null
	wait $! 2>/dev/null
done
status "killed while accepting: the journal is whole" 0 "$SCRY" check prog --edits
"$SCRY" proposals prog --all --json --limit 1000 >p.json
"$SCRY" journal prog --json --limit 1000 >j.json
ok "what is accepted is in the journal, what waits is not" python3 -c '
import json
p = json.load(open("p.json"))["items"]
j = {(i["addr"], i["after"]) for i in json.load(open("j.json"))["items"] if i["sub"] == "block"}
for i in p:
    if i["sub"] == "block":
        assert ((i["addr"], i["after"]) in j) == (i["state"] == "accepted"), i'

# Salvage takes them along.
agent '{"ops":[{"op":"comment","addr":"main+90","text":"after all"}]}' >/dev/null
"$SCRY" proposals prog --all --json --limit 1000 >before.json
status "salvage" 0 "$SCRY" salvage prog
"$SCRY" proposals prog --all --json --limit 1000 >after.json
ok "keeps every proposal, its number and what was decided of it" python3 -c '
import json
a, b = (json.load(open(f))["items"] for f in ("before.json", "after.json"))
bare = [[{k: v for k, v in i.items() if k != "accepted_rev"} for i in x] for x in (a, b)]
assert bare[0] == bare[1] and len(a) > 20 and all((i["accepted_rev"] is None) == (i["state"] != "accepted") for i in b)'
status "which can still be accepted" 0 "$SCRY" accept prog "$(python3 -c 'import json; print(json.load(open("after.json"))["items"][-1]["id"])')"
json "as an edit of the agent's" 'd["items"][-1]["after"] == "after all" and d["items"][-1]["author"] == "robot"' "$SCRY" journal prog --json --limit 1000
status "and the journal is whole" 0 "$SCRY" check prog --edits
plan
