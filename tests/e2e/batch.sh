#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One operation on many files: what is answered, what is said of the rest, and going on after being killed.
. "$(dirname "$0")/lib.sh"

# The first child of a process: proc(5), field 4 is the parent; names here hold no space.
child_of() {
	local pid name state parent rest
	for stat in /proc/[0-9]*/stat; do
		read -r pid name state parent rest 2>/dev/null <"$stat" || continue
		[ "$parent" = "$1" ] && echo "$pid" && return
	done
}
cd "$WORK" || exit 1
build prog gcc -O1 -no-pie "$ROOT/tests/data/prog/sample.c" || plan

# lines NAME EXPRESSION: the lines of $OUT are JSON documents l, by file f (without the last, which is end), for which it holds.
lines() {
	local why
	printf '%s\n' "$OUT" >lines.txt
	if why=$(python3 - "$2" 2>&1 <<'PY'
import json, os, sys
l = [json.loads(s) for s in open("lines.txt", encoding="utf-8")]
end = l.pop() if l and l[-1].get("end") else None
f = {d["file"]: d for d in l}
def answer(d, out="out"):
    with open(os.path.join(out, d["out"]), encoding="utf-8") as h:
        return json.load(h)
if not eval(sys.argv[1]):
    print("does not hold:", sys.argv[1])
    print(open("lines.txt", encoding="utf-8").read())
    sys.exit(1)
PY
	); then pass "$1"; else fail "$1" "$why" "$ERR"; fi
}

mkdir -p dir/sub
cp prog dir/a
(cat prog; echo b) >dir/b
cp prog dir/sub/twin
ln -s a dir/link
ln -s sub dir/link_to_folder
ln -s nowhere dir/dangling
ln dir/a dir/hard
echo 'just text, no program' >dir/text
: >dir/empty
mkfifo dir/pipe
cp dir/b dir/$'we\nird \033[31m\xff'
head -c 40 prog >dir/cut

# Words.
status "no words" 2 "$SCRY" batch
status "no operation" 2 "$SCRY" batch dir --out out
status "nowhere to" 2 "$SCRY" batch dir --op info
status "a server, which it has no use for" 2 "$SCRY" batch dir --op info --socket nobody --out out
status "an operation that is none" 2 "$SCRY" batch dir --op frob --out out
status "an operation of no file" 2 "$SCRY" batch dir --op doctor --out out
status "a parameter the operation has not" 2 "$SCRY" batch dir --op info --out out --min 3
status "a parameter that is missing" 2 "$SCRY" batch dir --op xrefs --out out
status "a place of its own for the answer" 2 "$SCRY" batch dir --op export --out out -o x
status "a folder that is not there" 3 "$SCRY" batch nothere --op info --out out
is "nothing was made by any of these" "" "$(ls -d out 2>/dev/null)"
status "help" 0 "$SCRY" batch --help
like "it names --jobs" '--jobs N' "$OUT"

# A folder.
status "a folder" 1 "$SCRY" batch dir --op functions --out out --json --jobs 3
lines "every file has a line, once" 'len(f) == len(l) == 13 - 1 and end["files"] == 12 and "sub/twin" in f and "sub" not in f'
lines "programs are answered" 'f["a"]["status"] == f["b"]["status"] == "done" and f["a"]["exit"] == 0'
lines "the answer is what --json prints" 'any(i["name"] == "main" for i in answer(f["b"])["items"])'
lines "text is no program, and so is nothing" 'f["text"]["status"] == f["empty"]["status"] == "no_program" and "text" in f["text"]["why"]'
lines "what is no file is skipped" 'f["pipe"]["status"] == f["dangling"]["status"] == f["link_to_folder"]["status"] == "skipped"'
lines "... with the reason" 'f["pipe"]["why"] == "is a pipe" and f["dangling"]["why"] == "is a link to nothing"'
lines "a cut program failed" 'f["cut"]["status"] == "failed" and f["cut"]["exit"] == 3 and f["cut"]["kind"] == "bad_input"'
lines "the same bytes are asked once" 'all(f[n]["same_as"] == "a" and f[n]["out"] == f["a"]["out"] for n in ("hard", "link", "sub/twin"))'
lines "a hostile name is escaped, and its answer has a plain one" \
	'[d for d in l if d["file"].startswith("we\nird")][0]["same_as"] == "b" and all(32 < ord(c) < 127 for d in l if "out" in d for c in d["out"])'
lines "the sums are those of the lines" 'all(end[s] == sum(d["status"] == s for d in l) for s in ("done", "failed", "no_program", "skipped")) and end["same"] == 4'
is "the files are the answers and the state" 3 "$(ls out | wc -l)"
FIRST=$(sort lines.txt)
stat -c %y out/* >times
status "the same again asks nothing and says the same" 1 "$SCRY" batch dir --op functions --out out --json
is "line by line" "$FIRST" "$(printf '%s\n' "$OUT" | sort)"
is "nothing was written" "$(cat times)" "$(stat -c %y out/*)"
status "for people" 1 "$SCRY" batch dir --op functions --out out
like "a row for what was not answered" '^no_program  text: ' "$OUT"
unlike "none for what was" '^done' "$OUT"
like "no control bytes" '^12 files: 6 answered, 1 failed, 2 no program, 3 skipped; 4 are copies of others$' "$(printf '%s\n' "$OUT" | tr '\001-\011\013-\037' '!!')"
status "another operation into the same folder" 2 "$SCRY" batch dir --op strings --out out
like "is refused, with what to do" 'holds the answers of another batch' "$ERR"
status "other parameters too" 2 "$SCRY" batch dir --op functions --filter main --out out

# What changed is asked again, what failed only when told.
(cat prog; echo changed) >dir/b
rm dir/we*
status "a changed file" 1 "$SCRY" batch dir --op functions --out out --json
lines "is asked again" "f['b']['size'] == $(stat -c %s dir/b) and f['b']['status'] == 'done' and f['a']['ms'] == $(printf '%s\n' "$FIRST" | python3 -c '
import json, sys
print([d["ms"] for d in map(json.loads, sys.stdin) if d.get("file") == "a"][0])')"
OF_A=$(python3 -c 'import json; print([json.loads(s)["out"] for s in open("lines.txt") if json.loads(s).get("file") == "a"][0])')
rm "out/$OF_A"
status "an answer that is gone" 1 "$SCRY" batch dir --op functions --out out
ok "is made again" test -s "out/$OF_A"
rm dir/cut
status "without the broken one all is well" 0 "$SCRY" batch dir --op functions --out out2
status "but not when it is meant strictly" 1 "$SCRY" batch dir --op functions --out out2 --strict
mkdir dir/inside
status "answers inside the folder are no input" 0 "$SCRY" batch dir --op info --out dir/inside/out --json
lines "..." 'not [n for n in f if "inside" in n]'
status "and not the next time" 0 "$SCRY" batch dir --op info --out dir/inside/out --json
lines "either" 'not [n for n in f if "inside" in n]'

# A list.
printf '%s\n' prog dir/text prog nothere "" >list
status "a list" 1 "$SCRY" batch list --op info --out out3 --json
lines "each once, what is not there failed" 'list(f) and f["prog"]["status"] == "done" and f["nothere"]["status"] == "failed" and f["nothere"]["exit"] == 3 and len(l) == 3'
OUT=$(printf 'prog\0dir/a\0' | "$SCRY" batch - --op resolve main --out out4 --json)
lines "names ended by NULs, from stdin, words of the operation" 'answer(f["prog"], "out4")["items"][0]["name"] == "main" and f["dir/a"]["same_as"] == "prog"'
OUT=$(printf 'prog\n' | "$SCRY" batch - --op resolve nobody --out out5 --json)
is "what is not there is a failure" 1 $?
lines "with its answer" 'f["prog"]["status"] == "failed" and answer(f["prog"], "out5")["items"][0]["addr"] is None'
mkdir none
status "an empty folder" 0 "$SCRY" batch none --op info --out out6
status "a folder that cannot be written to" 5 "$SCRY" batch dir --op info --out nothere/deeper
printf 'prog\n' >one
status "C of everything" 0 "$SCRY" batch one --op decompile --all --out out7
ok "lies beside the answer" test -s out7/prog.*.out/Makefile
status "raw bytes, with load options" 0 "$SCRY" batch dir --op segments --processor x86-64 --no-store --out out8 --json
lines "text is a segment then" 'f["text"]["status"] == "done" and answer(f["text"], "out8")["items"]'

# The watchdog: a reader that waits for a writer who never writes.
mkfifo silent
(sleep 1000 >silent & echo $! >sleeper; wait) &
while [ ! -s sleeper ]; do sleep 0.05; done
status "one that does not end" 1 timeout 60 "$SCRY" batch one --op import silent --timeout 1 --out out9 --json
lines "is ended and called so" 'f["prog"]["status"] == "timeout" and f["prog"]["exit"] == 1 and end["timeout"] == 1'
"$SCRY" batch one --op import silent --retry --out out9 --json >crash.txt 2>crash.err &
BATCH=$!
for _ in $(seq 600); do
	CHILD=$(child_of $BATCH)
	[ -n "$CHILD" ] && break
	sleep 0.05
done
status "another batch in the same folder" 1 "$SCRY" batch one --op import silent --out out9
like "is told so" 'another batch' "$ERR"
# Its process is in another state of mind only when it reads; killed before it is no less dead.
kill -KILL $CHILD
wait $BATCH
is "one whose process dies" 1 $?
OUT=$(cat crash.txt)
lines "is called crashed" 'f["prog"]["status"] == "crashed" and "SIGKILL" in f["prog"]["why"] and end["crashed"] == 1'
"$SCRY" batch one --op import silent --retry --out out9 2>crash.err &
BATCH=$!
for _ in $(seq 600); do
	CHILD=$(child_of $BATCH)
	[ -n "$CHILD" ] && break
	sleep 0.05
done
kill -TERM $BATCH
wait $BATCH
is "interrupted" 130 $?
like "it says how to go on" 'the same command goes on' "$(cat crash.err)"
for _ in $(seq 600); do
	kill -0 $CHILD 2>/dev/null || break
	sleep 0.05
done
ok "its process is gone" test ! -d "/proc/$CHILD"
kill "$(cat sleeper)"
wait

# Killed at any instant, the same command goes on.
mkdir many
for i in $(seq 40); do (cat prog; echo "$i") >many/f$i; done
for i in $(seq 12); do
	"$SCRY" batch many --op functions --out killed --json >/dev/null 2>&1 &
	BATCH=$!
	sleep 0.0$((i * 7 % 10))
	kill -KILL $BATCH 2>/dev/null
	wait $BATCH 2>/dev/null
	BAD=$(python3 -c '
import json
try:
    t = open("killed/batch.jsonl", encoding="utf-8").read()
except FileNotFoundError:
    t = ""
[json.loads(s) for s in t.split("\n")[:-1]]' 2>&1)
	[ -z "$BAD" ] || fail "killed: whole lines only" "$BAD"
done
printf '{"file":"f1","id' >>killed/batch.jsonl
: >killed/f1.000.json.1.part
# The dead one's processes die with it, a moment later.
status "killed twelve times and with half a line" 0 "$SCRY" batch many --op functions --out killed --json
lines "all is answered" 'end["done"] == 40 and len(f) == 40 and all(any(i["name"] == "main" for i in answer(d, "killed")["items"]) for d in l)'
is "nothing half is left" 41 "$(ls killed | wc -l)"
ok "every line of the state is whole" python3 -c '
import json
l = [json.loads(s) for s in open("killed/batch.jsonl", encoding="utf-8")]
assert l[0]["scry_batch"] == 1 and len({d["id"] for d in l[1:]}) == 40 == len(l) - 1, len(l)'

# A full disk is no success.
status "an answer that cannot be written" 5 bash -c 'ulimit -f 1; exec "$SCRY" batch many --op functions --no-store --out full'
status "afterwards it goes on" 0 "$SCRY" batch many --op functions --out full
plan
