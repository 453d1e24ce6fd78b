#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The command line as a person types it: words, options, exit statuses, output forms.
. "$(dirname "$0")/lib.sh"
cd "$WORK" || exit 1
T=$WORK/prog
build prog gcc -O1 -no-pie "$ROOT/tests/data/prog/sample.c" || plan

# Exit statuses.
status "no words" 2 "$SCRY"
like "no words: usage on stderr" '^scry FILE' "$ERR"
is "no words: nothing on stdout" "" "$OUT"
status "help" 0 "$SCRY" help
like "help lists functions" '^  functions FILE' "$OUT"
status "--help" 0 "$SCRY" --help
status "help of an operation" 0 "$SCRY" help heads
like "help heads names --count" '--count N, --limit' "$OUT"
status "operation --help" 0 "$SCRY" xrefs --help
status "help of nothing" 2 "$SCRY" help frobnicate
status "--version" 0 "$SCRY" --version
like "--version prints one" '[0-9]+\.[0-9]+\.[0-9]+' "$OUT"
status "an option that is none" 2 "$SCRY" --frob
status "an operation's option that is none" 2 "$SCRY" info "$T" --frob
like "it names the option" "^scry: --frob: info has no such option" "$ERR"
status "a file is missing" 2 "$SCRY" info
status "a parameter is missing" 2 "$SCRY" xrefs "$T"
status "one word too many" 2 "$SCRY" info "$T" more
status "a number that is none" 2 "$SCRY" functions "$T" --limit many
status "a negative number" 2 "$SCRY" functions "$T" --limit -3
status "a value that is missing" 2 "$SCRY" functions "$T" --limit
status "a flag with a value" 2 "$SCRY" xrefs "$T" main --to=1
status "an option twice" 2 "$SCRY" functions "$T" --limit 1 --limit 2
status "--color with nonsense" 2 "$SCRY" info "$T" --color=sometimes
status "a file that is not there" 3 "$SCRY" info nothere
like "one line and the reason" '^scry: nothere: No such file or directory$' "$ERR"
status "a folder" 3 "$SCRY" info "$WORK"
like "a folder is called one" 'is a folder' "$ERR"
: >empty
status "an empty file" 3 "$SCRY" info empty
like "empty is said" '^scry: empty: is empty$' "$ERR"
echo 'just text, no program' >text.txt
status "a format scry does not know" 3 "$SCRY" info text.txt
is "one line of reason" 1 "$(printf '%s\n' "$ERR" | grep -c '^scry: ')"
mkfifo fifo
status "a FIFO does not hang" 3 timeout 10 "$SCRY" info fifo
status "an import from a FIFO does not hang" 3 timeout 20 "$SCRY" import "$T" fifo
like "it says why" 'is a pipe nobody writes to' "$ERR"
status "a map of names from one neither" 3 timeout 20 "$SCRY" rename "$T" --from fifo
status "nor a header" 3 timeout 20 "$SCRY" declare "$T" --header fifo
status "an export into a FIFO nobody reads does not hang" 5 timeout 20 "$SCRY" export "$T" --format list -o fifo
(sleep 0.3; printf '{"main":"from_a_late_writer"}' >fifo) &
status "a writer that comes late is waited for" 0 timeout 20 "$SCRY" rename "$T" --from fifo --dry-run
status "a pipe of the shell is read" 0 timeout 20 "$SCRY" rename "$T" --dry-run --from <(sleep 0.2; printf '{"main":"from_'; sleep 0.2; printf 'a_pipe"}')
wait
(sleep 30 >fifo & echo $! >sleeper; wait)  &
status "a silent writer is not waited for past the deadline" 1 timeout 20 "$SCRY" rename "$T" --from fifo --deadline-ms 500
like "it says so" 'deadline|timed? ?out|took' "$ERR"
kill "$(cat sleeper)"; wait
status "a device" 3 timeout 10 "$SCRY" info /dev/zero
status "an address that is not mapped" 1 "$SCRY" heads "$T" 0x1
status "a name that is not there" 1 "$SCRY" xrefs "$T" no_such_name
status "an offset past the end of the address space" 1 "$SCRY" heads "$T" main+0xffffffffffffffff
status "an offset before its beginning" 1 "$SCRY" heads "$T" main-0xffffffffffff
status "a cursor with something behind it" 2 "$SCRY" functions "$T" --cursor 1.2.3.4
status "a pattern of bytes without end" 2 "$SCRY" search "$T" --bytes "$(printf '41%.0s' {1..5000})"
[ -r /sys/kernel/notes ] && status "a file that cannot be mapped" 3 "$SCRY" info /sys/kernel/notes
status "a pattern over C that is only a hole" 2 "$SCRY" search "$T" --c '$x'
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	cp prog secret && chmod 000 secret && chmod 755 "$WORK"
	status "a file one may not read" 4 env SCRY_STORE= HOME=/nonexistent setpriv --reuid 65534 --regid 65534 --clear-groups "$SCRY" info "$WORK/secret"
	like "it says what is needed" 'Permission denied' "$ERR"
else
	skip "a file one may not read" "needs root and setpriv"
fi

# A machine without a decoder: all but its code. The same program with another e_machine, and real ones.
cp prog mips && printf '\010\000' | dd of=mips bs=1 seek=18 conv=notrunc 2>/dev/null
command -v clang >/dev/null && clang -target mips-linux-gnu -c "$ROOT/tests/data/prog/sample.c" -o mips.o 2>/dev/null
for m in mips mips.o; do
	[ -f $m ] || continue
	for op in info segments sections functions symbols strings imports exports problems callgraph; do
		status "$op of $m" 0 "$SCRY" $op $m --json
	done
	json "$m: the machine is named" 'd["arch"] == "MIPS" and d["instructions"] == 0' "$SCRY" info $m --json
	like "$m: problems say so" 'MIPS instructions are not known' "$("$SCRY" problems $m)"
	json "$m: its listing has bytes and names" 'd["items"][1]["kind"] == "unknown" and any(i["kind"] == "label" for i in d["items"])' \
		"$SCRY" heads $m main --json
	status "$m: bytes" 0 "$SCRY" bytes $m main 16
	status "$m: its image is sound" 0 "$SCRY" check $m --image
done

# What info counts is what the lists hold.
for op in functions strings problems; do
	n=$("$SCRY" info "$T" --json | python3 -c "import json, sys; print(json.load(sys.stdin)['$op'])")
	json "info and the list agree: $op" "d['total'] == $n" "$SCRY" $op "$T" --json
done

# Words.
status "no server traces" 2 "$SCRY" trace --socket nosuch -- true
like "and that is said" '--socket: trace has no such option' "$ERR"
unlike "nor does its help say so" '--socket' "$("$SCRY" help trace)"
status "a trace that cannot be written" 5 "$SCRY" trace --rules --to /dev/full
like "says why" '/dev/full: No space left' "$ERR"
status "a near miss" 2 "$SCRY" functoins "$T"
like "it suggests the command" 'did you mean scry functions' "$ERR"
status "an unknown word that is no file" 3 "$SCRY" qqqqqqqqqqqq
cp prog info
status "a file named like a command by path" 0 "$SCRY" ./info
like "its overview" '^arch +x86-64' "$OUT"
status "a file named like a command after --" 0 "$SCRY" -- info
like "its overview again" '^arch +x86-64' "$OUT"
cp prog ./-dash
status "a file that begins with a dash" 0 "$SCRY" info -- -dash
status "the file alone without a terminal" 0 "$SCRY" "$T"
like "the file alone gives the overview" '^functions +[0-9]' "$OUT"

# Output forms.
status "a table" 0 "$SCRY" functions "$T"
unlike "no colour into a pipe" $'\033' "$OUT"
status "--color=always" 0 "$SCRY" functions "$T" --color=always
like "colour when asked for" $'\033\\[' "$OUT"
status "--color always as two words" 0 "$SCRY" heads "$T" main --color always
like "colour in the listing" $'\033\\[34m' "$OUT"
status "--color=never" 0 "$SCRY" heads "$T" main --color=never
unlike "no colour when refused" $'\033' "$OUT"
if command -v script >/dev/null; then
	like "colour on a terminal" $'\033\\[1m' "$(script -qec "'$SCRY' functions '$T'" /dev/null </dev/null)"
	unlike "NO_COLOR on a terminal" $'\033\\[1m' "$(NO_COLOR=1 script -qec "'$SCRY' functions '$T'" /dev/null </dev/null)"
else
	skip "colour on a terminal" "no script(1)"
fi
for op in info segments sections functions "heads FILE main" "disasm FILE main" "blocks FILE main" "blocks FILE main --dot" \
	"xrefs FILE main" "xrefs FILE main --from" callgraph "callgraph FILE main --depth 3" strings imports exports symbols \
	"resolve FILE main" "bytes FILE main 16" "search FILE --text golden" "search FILE --insn call*" problems analyze check \
	"check FILE --image" "heads FILE main --back" "functions FILE --sort name --filter *i*"; do
	case $op in *FILE*) ;; *) op="$op FILE" ;; esac
	set -f
	# shellcheck disable=SC2086
	set -- ${op//FILE/$T}
	set +f
	json "JSON of $op" 'isinstance(d, dict)' "$SCRY" "$@" --json
	status "table of $op" 0 "$SCRY" "$@"
done
for op in doctor version man "completion bash"; do
	# shellcheck disable=SC2086
	json "JSON of $op" 'isinstance(d, dict)' "$SCRY" $op --json
done

# Pages.
json "limit and next" 'len(d["items"]) == 2 and d["total"] > 2 and d["next"]' "$SCRY" functions "$T" --limit 2 --json
python3 - "$SCRY" "$T" <<'PY' && pass "cursors give the whole list once" || fail "cursors give the whole list once"
import json, subprocess, sys
scry, t = sys.argv[1:]
def ask(*a): return json.loads(subprocess.run([scry, *a, "--json"], capture_output=True, text=True, check=True).stdout)
def key(i): return json.dumps(i, sort_keys=True)
for op, n in (["functions", t], 3), (["strings", t], 1), (["symbols", t, "--sort", "name"], 7), (["disasm", t, "main"], 4), \
             (["search", t, "--text", "o"], 2), (["callgraph", t], 2), (["search", t, "--insn", "mov*"], 3):
    whole = ask(*op)["items"]
    got, cursor, pages = [], None, 0
    while pages < 1000:
        d = ask(*op, "--limit", str(n), *(["--cursor", cursor] if cursor else []))
        got += d["items"]; pages += 1
        assert len(d["items"]) <= n, op
        cursor = d.get("next")
        if not cursor: break
    assert [key(i) for i in got] == [key(i) for i in whole], (op, len(got), len(whole))
# The listing forward and back gives the same lines.
d = ask("heads", t, "main", "--count", "30")
last = d["next"]
b = ask("heads", t, "--cursor", last, "--back", "--count", "30")
assert b["items"] == d["items"], "back"
PY
status "a cursor of another revision" 1 "$SCRY" functions "$T" --cursor ffff.1.0
like "it is stale" 'revision' "$ERR"
status "a cursor that is none" 2 "$SCRY" functions "$T" --cursor zzz
ETAG=$("$SCRY" heads "$T" main --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["etag"])')
json "an etag that holds" 'd == {"rev": d["rev"], "etag": "'"$ETAG"'", "unchanged": True}' "$SCRY" heads "$T" main --json --etag "$ETAG"
json "an etag that does not" '"items" in d' "$SCRY" heads "$T" main --json --etag 0000000000000000
json "max_bytes cuts at an item" '0 < len(d["items"]) < 50 and d["next"]' "$SCRY" heads "$T" main --count 200 --json --max-bytes 3000
json "max_bytes on a list" '0 < len(d["items"]) < d["total"] and d["next"]' "$SCRY" symbols "$T" --json --max-bytes 600
status "more is said on stderr" 0 "$SCRY" functions "$T" --limit 2
like "with the cursor" '2 shown of [0-9]+; more with --cursor' "$ERR"

# stdout that goes away or is full.
"$SCRY" symbols "$T" 2>"$WORK/err" | head -1 >/dev/null
is "a reader that leaves: status" 0 "${PIPESTATUS[0]}"
is "a reader that leaves: silence" "" "$(cat "$WORK/err")"
"$SCRY" symbols "$T" >/dev/full 2>"$WORK/err"
is "a full disk" 5 $?
like "a full disk is said" 'No space left' "$(cat "$WORK/err")"

# Raw bytes.
is "bytes --raw" deadbeef13374299 "$("$SCRY" bytes "$T" magic 8 --raw | od -An -tx1 | tr -d ' \n')"

# What is generated.
"$SCRY" man >man.1
if command -v man >/dev/null; then
	is "the manual page has no warnings" "" "$(man --warnings -l man.1 2>&1 >/dev/null | grep -v locale)"
elif command -v groff >/dev/null; then
	is "the manual page has no warnings" "" "$(groff -ww -man -Tutf8 man.1 2>&1 >/dev/null)"
else
	skip "the manual page has no warnings" "no groff"
fi
"$SCRY" completion bash >comp.bash
ok "the bash completion is bash" bash -n comp.bash
is "it completes an operation" functions "$(bash -c '. ./comp.bash; COMP_WORDS=(scry funct); COMP_CWORD=1; _scry; echo "${COMPREPLY[@]}"')"
like "it completes an option" '^--depth$' "$(bash -c '. ./comp.bash; COMP_WORDS=(scry callgraph x --de); COMP_CWORD=3; _scry; printf "%s\n" "${COMPREPLY[@]}"')"
"$SCRY" completion zsh >comp.zsh
if command -v zsh >/dev/null; then ok "the zsh completion is zsh" zsh -n comp.zsh; else skip "the zsh completion is zsh" "no zsh"; fi
"$SCRY" completion fish >comp.fish
if command -v fish >/dev/null; then ok "the fish completion is fish" fish -n comp.fish; else skip "the fish completion is fish" "no fish"; fi

# Names of the target cannot write to the terminal.
cat >evil.S <<'ASM'
	.text
	.globl _start
_start:
	ret
	.globl evil_XXXXredYZnext
	.type evil_XXXXredYZnext, @function
evil_XXXXredYZnext:
	ret
	.section .note.GNU-stack, "", @progbits
ASM
if gcc -nostdlib -static -o evil evil.S 2>/dev/null; then
	python3 - <<'PY'
b = open("evil", "rb").read()
open("evil", "wb").write(b.replace(b"evil_XXXXredYZnext", b"evil\x1b[31mred\x07\nnex".ljust(18, b"t"))[:len(b)])
PY
	for op in functions symbols "heads evil _start" "callgraph evil --dot"; do
		case $op in *evil*) ;; *) op="$op evil" ;; esac
		# shellcheck disable=SC2086
		unlike "no escape from: $op" $'\033|\007' "$("$SCRY" $op 2>&1)"
	done
	json "the name as it is in JSON" 'any("\x1b[31m" in i["name"] for i in d["items"])' "$SCRY" symbols evil --json
else
	skip "names of the target" "the assembler refuses such a name"
fi

# A file's name is the target's word, too.
EVIL=$'/nowhere/\033]0;owned\007\033[2J'
for front in "info" "serve" "mcp" "--plain" "" "exec" "batch"; do
	unlike "no escape of a file's name from: scry $front" $'\033|\007' "$(timeout 20 "$SCRY" $front "$EVIL" </dev/null 2>&1)"
done

# A deadline.
status "a deadline of a millisecond ends a long search" 1 "$SCRY" search /usr/bin/python3 --insn '*nosuchthing*' --deadline-ms 1
# --- lists agree with each other and with what they show ---
cat >"$WORK/stubs.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void *volatile taken[] = {(void *)strcmp, (void *)malloc, (void *)free};
__attribute__((noinline)) int sub(char *a) { puts(a); return strcmp(a, "x"); }
int main(int c, char **v) { char *p = malloc(c); strcpy(p, v[0]); if (c > 2) { taken[0] = (void *)getpid; taken[1] = (void *)free; free(p); } return sub(p) + getpid(); }
C
if build stubs cc -O1 -fno-builtin -fcf-protection=none -Wl,-z,lazy "$WORK/stubs.c" && command -v objdump >/dev/null; then
	is "every stub is a function" "" "$(objdump -d "$WORK/stubs" | sed -n 's/^0*\([0-9a-f]*\) <.*@plt>:$/0x\1/p' | while read -r a; do
		"$SCRY" functions "$WORK/stubs" | grep -q "^ *$a " || echo "$a"; done)"
	"$SCRY" functions "$WORK/stubs" --json >"$WORK/functions.json"
	json "as many callees and callers as the call graph has" "not [f['addr'] for f in json.load(open('$WORK/functions.json'))['items'] if
		f['callees'] != sum(e['caller'] == f['addr'] for e in d['items']) or f['callers'] != sum(e['callee'] == f['addr'] for e in d['items'])]" \
		"$SCRY" callgraph "$WORK/stubs" --json
fi
json "imports in order of the address they are shown with" "[i['addr'] for i in d['items']] == sorted((i['addr'] for i in d['items']), key=lambda a: int(a, 16))" \
	"$SCRY" imports "$T" --sort addr --json
plan
