#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Edits as a person and as a program make them: what they change in every answer, what is refused and why, and what is left
# after a read-only store, a damaged journal and a full disk.
. "$(dirname "$0")/lib.sh"
mkdir -m700 "$SCRY_STORE"

cat >"$WORK/p.c" <<'C'
#include <stdio.h>
int counter = 5;
__attribute__((noinline)) int g(int x) { return x * 3 + counter; }
__attribute__((noinline)) int h(int x) { return g(x) + g(x + 1); }
int main(int c, char **v) { printf("hi %d\n", h(c)); return 0; }
C
build p cc -O1 -fno-inline -g0 "$WORK/p.c" || { skip "edits" "no C compiler"; plan; }
F=$WORK/p
A=0x$(nm "$F" | awk '$3 == "g" { sub(/^0+/, "", $1); print $1 }')
SUM=$(sha256sum <"$F")

# --- names ---
status "rename a function" 0 "$SCRY" rename "$F" g triple
like "the listing calls it so" 'call +triple' "$("$SCRY" disasm "$F" h)"
like "so does its own label" '^[0-9a-f]+  triple:' "$("$SCRY" disasm "$F" triple)"
json "functions" "[i for i in d['items'] if i['addr'] == '$A'][0]['name'] == 'triple'" "$SCRY" functions "$F" --json
json "xrefs" "d['total'] == 2 and all(i['func'] == 'h' for i in d['items'])" "$SCRY" xrefs "$F" triple --json
json "callgraph" "any(i['callee_name'] == 'triple' for i in d['items'])" "$SCRY" callgraph "$F" h --json
json "resolve both names" "[i['addr'] for i in d['items']] == ['$A', '$A']" "$SCRY" resolve "$F" triple g --json
status "the same again changes nothing" 0 "$SCRY" rename "$F" g triple
like "and says so" '0 applied, 1 unchanged' "$OUT"
status "another's name is refused" 1 "$SCRY" rename "$F" main triple
like "with the address that has it" "$A has this name" "$ERR"
status "a symbol's name is refused" 1 "$SCRY" rename "$F" g main
like "and says whose" 'is the symbol at 0x' "$ERR"
for bad in 'two words' $'tab\tname' $'bell\a' $'\e[31mred' '0x401000' 'file:0x10' $'over\u202eride' $'zero\u200bwidth' '9lives' sub_1234 $'not\xffutf8'; do
	status "refused: $(printf %q "$bad")" 1 "$SCRY" rename "$F" main "$bad"
	unlike "and its bytes do not reach the terminal" $'\e|\a|\u202e' "$ERR$OUT"
done
status "a name of 10 KB is refused" 1 "$SCRY" rename "$F" main "$(printf 'n%.0s' $(seq 10240))"
like "with its length" '1024 bytes, this one 10240' "$ERR"
status "letters of a right-to-left script are a name" 0 "$SCRY" rename "$F" h $'\u05e9\u05dc\u05d5\u05dd'
json "which comes back whole" "any(i['name'] == '\u05e9\u05dc\u05d5\u05dd' for i in d['items'])" "$SCRY" functions "$F" --json
status "a name of 900 bytes" 0 "$SCRY" rename "$F" h "$(printf 'n%.0s' $(seq 900))"
like "is cut visibly in a line" 'n{100,}\.\.\.:$' "$("$SCRY" disasm "$F" h)"
status "an empty name gives back the file's" 0 "$SCRY" rename "$F" h ''
like "which is seen" '^[0-9a-f]+  h:' "$("$SCRY" disasm "$F" h)"

# --- comments, bookmarks ---
status "line comment" 0 "$SCRY" comment "$F" triple 'times three'
like "stands behind the line" '; times three' "$("$SCRY" heads "$F" triple --count 8)"
status "block comment" 0 "$SCRY" comment "$F" triple $'first\nsecond' --kind block
json "is lines before the item" "[i['text'] for i in d['items'] if i['kind'] == 'comment'] == ['; first', '; second']" \
	"$SCRY" heads "$F" triple --count 8 --json
json "which paging backwards meets too" "[i['text'] for i in d['items'] if i['kind'] == 'comment'] == ['; first', '; second']" \
	"$SCRY" heads "$F" triple+4 --count 12 --back --json
status "repeatable comment" 0 "$SCRY" comment "$F" triple 'mind the overflow' --kind repeatable
is "stands at both calls" 2 "$("$SCRY" disasm "$F" h | grep -c 'triple.*mind the overflow')"
status "bookmark" 0 "$SCRY" bookmark "$F" triple 'begin here'
status "a comment outside is refused" 1 "$SCRY" comment "$F" 0x7fffffff00000000 x

# --- patches ---
before=$("$SCRY" bytes "$F" triple 4 --json)
status "patch" 0 "$SCRY" patch "$F" triple 'C3 90'
json "bytes show it" "d['hex'].startswith('c390')" "$SCRY" bytes "$F" triple 4 --json
like "the listing shows it, and that it is one" 'ret .*patched' "$("$SCRY" heads "$F" triple --count 8)"
is "the file is as it was" "$SUM" "$(sha256sum <"$F")"
status "unpatch" 0 "$SCRY" unpatch "$F" triple
is "the bytes are the file's" "$(python3 -c 'import json,sys;print(json.loads(sys.argv[1])["hex"])' "$before")" \
	"$("$SCRY" bytes "$F" triple 4 --json | python3 -c 'import json,sys;print(json.load(sys.stdin)["hex"])')"
status "odd digits are refused" 1 "$SCRY" patch "$F" triple 'c'
status "bytes that are not in the file are refused" 1 "$SCRY" patch "$F" 0x10000000000 c3

# --- many ---
python3 - "$WORK/map.json" "$A" <<'PY'
import json, sys
a = int(sys.argv[2], 16)
m = {hex(a + i): f"spot_{i}" for i in range(8)}
m["nowhere"] = "x"
json.dump(m, open(sys.argv[1], "w"))
PY
status "a map of names" 1 "$SCRY" rename "$F" --from "$WORK/map.json"
like "of which one is refused" 'revision [0-9]+: 8 applied, 0 unchanged, 1 refused' "$OUT"
status "one undo takes back the whole map" 0 "$SCRY" undo "$F"
like "to the name before" '^[0-9a-f]+  triple:' "$("$SCRY" disasm "$F" triple)"
status "all or nothing" 1 "$SCRY" rename "$F" --from "$WORK/map.json" --atomic
like "is nothing" '0 applied, 0 unchanged, 9 refused' "$OUT"
rev=$("$SCRY" info "$F" --json | python3 -c 'import json,sys;print(json.load(sys.stdin)["rev"])')
echo '{"ops":[{"op":"comment","addr":"main","text":"a"},{"op":"bookmark","addr":"main","text":"b"},{"op":"what","addr":"main"}],"note":"why not"}' >"$WORK/ops.json"
json "dry run" "[r['status'] for r in d['results']] == ['applied', 'applied', 'refused'] and d['rev'] == $rev" \
	"$SCRY" edit "$F" --ops "$WORK/ops.json" --dry-run --json
json "edit" "[r['status'] for r in d['results']] == ['applied', 'applied', 'refused'] and d['rev'] == $rev + 1" \
	"$SCRY" edit "$F" --ops "$WORK/ops.json" --author bot --author-kind agent --json
status "stale" 1 "$SCRY" comment "$F" main z --if-rev "$rev"
like "says what is newer" 'was changed in revision' "$ERR"
for doc in '' '[]' '{' '{"ops":1}' '{"ops":[],"ops":[]}' '{"ops":[],"if_rev":-1}'; do
	status "no edits: $doc" 2 "$SCRY" edit "$F" --ops <(printf %s "$doc")
done
echo '{"ops":[1,null,{},{"op":"rename"},{"op":"rename","addr":"main"},{"op":"rename","addr":"main","name":5}]}' >"$WORK/odd.json"
json "odd wishes are refused one by one" "all(r['status'] == 'refused' and r['why'] for r in d['results']) and len(d['results']) == 6" \
	"$SCRY" edit "$F" --ops "$WORK/odd.json" --json

# --- journal, undo by author ---
json "the journal tells who and why" "[(i['author'], i['author_kind'], i['op'], i['note']) for i in d['items']][-1] == ('bot', 'agent', 'bookmark', 'why not')" \
	"$SCRY" journal "$F" --json
json "paging it gives the same" "d['total'] >= 10 and len(d['items']) == 2 and d['next']" "$SCRY" journal "$F" --limit 2 --json
json "since" "d['total'] == 2" "$SCRY" journal "$F" --since "$rev" --json
status "mine come after the bot's" 0 "$SCRY" comment "$F" triple 'four times'
json "undo the bot's" "len(d['undone']) == 1 and d['undone'][0]['author'] == 'bot'" "$SCRY" undo "$F" --author bot --json
like "mine stands" '; four times' "$("$SCRY" heads "$F" triple --count 8)"
json "redo the bot's" "len(d['redone']) == 1" "$SCRY" redo "$F" --author bot --json
status "redo when there is nothing" 1 "$SCRY" redo "$F"
status "undo everything" 0 "$SCRY" undo "$F" 1000
like "and the file's name is back" '^[0-9a-f]+  g:' "$("$SCRY" disasm "$F" g)"
status "redo everything" 0 "$SCRY" redo "$F" 1000
like "and mine" '^[0-9a-f]+  triple:' "$("$SCRY" disasm "$F" g)"
status "the journal agrees with itself" 0 "$SCRY" check "$F" --edits
etag=$("$SCRY" functions "$F" --json | python3 -c 'import json,sys;print(json.load(sys.stdin)["etag"])')
json "an etag holds" "d.get('unchanged') is True" "$SCRY" functions "$F" --json --etag "$etag"
"$SCRY" rename "$F" h other >/dev/null
etag2=$("$SCRY" disasm "$F" h --json | python3 -c 'import json,sys;print(json.load(sys.stdin)["etag"])')
"$SCRY" comment "$F" main far >/dev/null
json "of a page until an edit that shows on it" "d.get('unchanged') is True" "$SCRY" disasm "$F" h --json --etag "$etag2"
"$SCRY" comment "$F" g near --kind repeatable >/dev/null
json "also of what it refers to" "'unchanged' not in d and 'near' in d['items'][0]['comment'] + str(d)" "$SCRY" disasm "$F" h --json --etag "$etag2"
json "until an edit" "'unchanged' not in d" "$SCRY" functions "$F" --json --etag "$etag"

# --- stores that will not be written, and damage ---
D=$(dirname "$(find "$SCRY_STORE" -name edits.db)")
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
	status "a store on a read-only file system refuses" 1 unshare -m sh -c \
		'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && exec "$2" rename "$3" h never' sh "$SCRY_STORE" "$SCRY" "$F"
	like "and says why" 'read-?only' "$ERR"
	mkdir "$WORK/full"
	status "a full disk refuses" 5 unshare -m sh -c 'mount -t tmpfs -o size=300k none "$1" && cp -a "$4"/. "$1" && export SCRY_STORE=$1 &&
		{ dd if=/dev/zero of="$1/fill" bs=1k 2>/dev/null || true; } && exec "$2" comment "$3" h "$(head -c 60000 /dev/zero | tr "\0" x)"' \
		sh "$WORK/full" "$SCRY" "$F" "$SCRY_STORE"
	like "and says so" 'full|No space' "$ERR"
else
	skip "a store on a read-only file system" "not root, or no mount namespaces"
fi
json "nothing of that is there" "not any('never' in (i['after'] or '') for i in d['items'])" "$SCRY" journal "$F" --json
python3 - "$D/edits.db" <<'PY'
import sys
f = open(sys.argv[1], "r+b")
f.seek(4096 * 2)
f.write(b"\x5a" * 4096)
PY
status "a damaged journal is found" 3 "$SCRY" check "$F" --edits
status "salvage" 0 "$SCRY" salvage "$F"
status "leaves one that agrees with itself" 0 "$SCRY" check "$F" --edits
like "with the name in it" '^[0-9a-f]+  triple:' "$("$SCRY" disasm "$F" g 2>/dev/null)"
ok "and the damaged one beside it" ls "$D"/edits.db.damaged-*

# --- a journal of many facts is checked in the time of reading it ---
echo 'char room[60000]; int main(void) { return room[1]; }' >"$WORK/room.c"
if build room cc -g0 "$WORK/room.c"; then
	python3 -c 'import json; print(json.dumps({"ops": [{"op": "comment", "kind": "block", "addr": "room+%d" % i, "text": "x"} for i in range(60000)]}))' >"$WORK/many.json"
	status "60,000 comments" 0 "$SCRY" edit "$WORK/room" --ops "$WORK/many.json"
	status "are checked before anybody leaves" 0 timeout 60 "$SCRY" check "$WORK/room" --edits
fi
plan
