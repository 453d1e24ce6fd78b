#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Projects from the command line: making, finding, following an import and back; binaries that moved, changed or vanished; two
# projects with one binary; a kill while the index is written; a store that cannot be written.
. "$(dirname "$0")/lib.sh"
mkdir -m700 "$SCRY_STORE"
P=$WORK/p
mkdir -p "$P/lib"

cat >"$WORK/lib.c" <<'C'
int scale(int x) { return x * 3; }
int twice(int x) { return scale(x) + scale(x + 1); }
const char *banner(void) { return "the banner of the library"; }
C
cat >"$WORK/other.c" <<'C'
int twice(int x) { return x + x; }
C
cat >"$WORK/app.c" <<'C'
extern int twice(int); extern const char *banner(void); extern int puts(const char *);
__attribute__((noinline)) int helper(int a) { return twice(a) + 1; }
int main(int c, char **v) { puts(banner()); puts("the text of the program"); return helper(c); }
C
build p/lib/libone.so cc -O1 -shared -fPIC -Wl,-soname,libone.so "$WORK/lib.c" || { skip "projects" "no C compiler"; plan; }
build p/lib/libother.so cc -O1 -shared -fPIC -Wl,-soname,libother.so "$WORK/other.c"
build p/app cc -O1 -fno-inline "$WORK/app.c" -L"$P/lib" -lone
J=$P/P.json

# --- making one ---
status "create" 0 "$SCRY" project create "$J" "$P/app" "$P/lib/libother.so" "$P/lib/libone.so" --name demo
like "paths below it are relative" '"path":"lib/libone.so"' "$(cat "$J")"
json "it is JSON with a name, an id and hashes" "d['name'] == 'demo' and len(d['id']) == 32 and all(len(b['sha256']) == 64 for b in d['binaries'])" cat "$J"
status "create refuses what is there" 2 "$SCRY" project create "$J" "$P/app"
like "and says how to go on" 'project add' "$ERR"
status "a file that is not there" 3 "$SCRY" project add "$J" "$P/nowhere"
json "list" "[(i['label'], i['state']) for i in d['items']] == [('app', 'same'), ('libother.so', 'same'), ('libone.so', 'same')]" \
	"$SCRY" project list "$J" --json
json "the same by --project" "d['total'] == 3" "$SCRY" project_list "$J" --json
status "remove" 0 "$SCRY" project remove "$J" libother.so
json "is gone" "d['total'] == 2" "$SCRY" project list "$J" --json
status "remove what is not in it" 1 "$SCRY" project remove "$J" libother.so
status "--project with files adds them" 0 "$SCRY" --project "$J" "$P/lib/libother.so"
like "and shows the project" '^libother.so +same' "$OUT"
status "several files" 0 "$SCRY" "$P/app" "$P/lib/libone.so"
is "are each told of" 2 "$(printf '%s\n' "$OUT" | grep -c '^sha256')"

# --- finding ---
json "a name everywhere" "sorted((i['binary'], i['kind']) for i in d['items']) == [('app', 'import'), ('libone.so', 'export'), ('libother.so', 'export')]" \
	"$SCRY" project search "$J" twice --json
json "list says indexed" "all(i['indexed'] for i in d['items'])" "$SCRY" project list "$J" --json
json "a string" "[i['binary'] for i in d['items']] == ['libone.so']" "$SCRY" project search "$J" 'banner of' --json
json "strings only" "{i['kind'] for i in d['items']} == {'string'} and len(d['items']) >= 2" "$SCRY" project search "$J" 'the' --kind string --json
json "two letters" "('libone.so', 'scale') in [(i['binary'], i['text']) for i in d['items']]" "$SCRY" project search "$J" Sc --kind export --json
json "pages" "len(d['items']) == 1 and 'next' in d" "$SCRY" project search "$J" twice --limit 1 --json
NEXT=$("$SCRY" project search "$J" twice --limit 1 --json | python3 -c 'import json,sys;print(json.load(sys.stdin)["next"])')
json "go on where they ended" "len(d['items']) == 2 and 'next' not in d" "$SCRY" project search "$J" twice --cursor "$NEXT" --json
status "a cursor of somebody else" 2 "$SCRY" project search "$J" twice --cursor zz
status "rename in one binary" 0 "$SCRY" rename "$P/app" helper my_very_own
json "is found in the project" "[(i['binary'], i['kind']) for i in d['items']] == [('app', 'given')]" "$SCRY" project search "$J" very_own --json
status "undo it" 0 "$SCRY" undo "$P/app"
json "is not found any more" "d['items'] == []" "$SCRY" project search "$J" very_own --json

# --- following ---
json "the provider is the library that is needed" "[i['binary'] for i in d['items']] == ['libone.so', 'libother.so'] and d['items'][0]['name'] == 'twice'" \
	"$SCRY" project follow "$J" 'app!twice' --json
json "by its stub too" "d['items'][0]['binary'] == 'libone.so'" "$SCRY" project follow "$J" 'app!twice@plt' --json
status "what nobody has" 1 "$SCRY" project follow "$J" 'app!puts'
like "says so" 'no binary of the project exports it' "$ERR"
status "what is no import" 1 "$SCRY" project follow "$J" 'app!helper'
like "says so too" 'is no import' "$ERR"
json "references come from other binaries" "any(i.get('binary') == 'app' and i['kind'] == 'call' and i['func'] == 'helper' for i in d['items'])" \
	"$SCRY" xrefs --project "$J" 'libone.so!twice' --json
json "after the binary's own" "[('binary' in i) for i in d['items']] == sorted('binary' in i for i in d['items']) and d['total'] == len(d['items'])" \
	"$SCRY" xrefs --project "$J" libone.so twice --json
json "page by page" "len(d['items']) == 1 and d['total'] > 1 and 'next' in d" "$SCRY" xrefs --project "$J" libone.so twice --limit 1 --json
like "one binary's listing by its label" 'call +scale' "$("$SCRY" disasm --project "$J" 'libone.so!twice')"
status "a label that is none" 1 "$SCRY" info --project "$J" nothing

# --- versions of symbols are cut ---
cat >"$WORK/v.map" <<'M'
V1 { global: old_way; local: *; };
V2 { global: versioned; } V1;
M
cat >"$WORK/v.c" <<'C'
int old_way(void) { return 1; }
int versioned(void) { return 2; }
C
echo 'extern int versioned(void); int main(void) { return versioned(); }' >"$WORK/u.c"
build p/libv.so cc -O1 -shared -fPIC -Wl,--version-script,"$WORK/v.map" -Wl,-soname,libv.so "$WORK/v.c"
build p/user cc -O1 "$WORK/u.c" -L"$P" -lv
"$SCRY" project create "$P/v.json" "$P/user" "$P/libv.so" >/dev/null
json "a versioned import finds its export" "[(i['binary'], i['name'], i['version']) for i in d['items']] == [('libv.so', 'versioned', 'V2')]" \
	"$SCRY" project follow "$P/v.json" 'user!versioned' --json

# --- two projects, one binary ---
status "another project with the library" 0 "$SCRY" project create "$P/two.json" "$P/lib/libone.so"
status "renamed there" 0 "$SCRY" rename --project "$P/two.json" libone.so scale scale_it
json "the first project finds it" "[i['binary'] for i in d['items']] == ['libone.so']" "$SCRY" project search "$J" scale_it --json
json "the second one too" "[i['binary'] for i in d['items']] == ['libone.so']" "$SCRY" project search "$P/two.json" scale_it --json
is "each has an index of its own" 3 "$(ls "$SCRY_STORE"/projects/*.db | wc -l)"

# --- moved ---
mkdir "$P/deep"
mv "$P/lib/libone.so" "$P/deep/renamed.so"
status "a binary that moved" 1 "$SCRY" project list "$J"
like "is found and said to be" '^libone.so +moved .*deep/renamed.so' "$OUT"
like "its work is shown" '^[0-9a-f]+  scale_it:' "$("$SCRY" disasm --project "$J" 'libone.so!scale_it')"
status "taken where it is" 0 "$SCRY" project add "$J" "$P/deep/renamed.so"
status "nothing to say any more" 0 "$SCRY" project list "$J"
json "no second entry" "d['total'] == 3" "$SCRY" project list "$J" --json

# --- vanished ---
mv "$P/deep/renamed.so" "$WORK/aside.so"
status "a binary that vanished" 1 "$SCRY" project list "$J"
like "is said to be" '^renamed.so +vanished' "$OUT"
status "its functions are still there" 0 "$SCRY" functions --project "$J" renamed.so
like "with the names given" 'scale_it' "$OUT"
like "its bytes are not made up" '\?' "$("$SCRY" disasm --project "$J" 'renamed.so!twice')"
json "its strings are still found" "len(d['items']) == 1" "$SCRY" project search "$J" 'banner of' --json
status "it can be edited" 0 "$SCRY" comment --project "$J" 'renamed.so!twice' 'gone but not lost'
status "the journal by hash alone" 0 "$SCRY" journal "sha256:$(sha256sum <"$WORK/aside.so" | cut -d' ' -f1)"
like "has it" 'gone but not lost' "$OUT"
mv "$WORK/aside.so" "$P/deep/renamed.so"
like "and so has the file when it is back" 'gone but not lost' "$("$SCRY" heads "$P/deep/renamed.so" twice --count 8)"

# --- changed ---
printf 'more' >>"$P/deep/renamed.so"
status "a binary that changed" 1 "$SCRY" project list "$J"
like "is said to have" '^renamed.so +changed' "$OUT"
like "the one before is beside it" '^renamed.so@before +before' "$OUT"
like "with its work" 'gone but not lost' "$("$SCRY" heads --project "$J" renamed.so@before twice --count 8)"
unlike "the new one begins anew" 'gone but not lost' "$("$SCRY" heads --project "$J" renamed.so twice --count 8)"
status "taken as it is" 0 "$SCRY" project add "$J" "$P/deep/renamed.so"
json "then it is the same" "all(i['state'] == 'same' for i in d['items'])" "$SCRY" project list "$J" --json

# --- a hand-written one, without hashes: what was remembered tells ---
printf '{"binaries":[\n{"path":"app"},\n{"path":"lib/libother.so","label":"other"}]}\n' >"$P/hand.json"
json "labels" "[i['label'] for i in d['items']] == ['app', 'other']" "$SCRY" project list "$P/hand.json" --sync --json
cp "$P/lib/libother.so" "$WORK/other.so"
printf 'x' >>"$P/lib/libother.so"
status "a change is noticed" 1 "$SCRY" project list "$P/hand.json"
like "and kept in mind" 'other +changed' "$("$SCRY" project list "$P/hand.json" 2>/dev/null; "$SCRY" project list "$P/hand.json" 2>/dev/null)"
cp "$WORK/other.so" "$P/lib/libother.so"

like "help in two words" 'scry project_list P.json' "$("$SCRY" help project list)"

# --- P.json is anybody's ---
bad() { # NAME REASON TEXT
	printf "$3" >"$WORK/bad.json"
	status "refused: $1" 2 "$SCRY" project list "$WORK/bad.json"
	like "with line and reason" "$2" "$ERR"
}
bad "a misspelt key" 'bad.json: line 3: a binary has "path"' '{"binaries":[\n{"path":"a",\n"lable":"b"}]}'
bad "a comma too many" 'line 2, column' '{"binaries":[\n{"path":"a"},]}'
bad "control characters" 'line 2: "path" has control' '{"binaries":[\n{"path":"a\\u001b[31m"}]}'
bad "an id that is a path" 'line 1: "id" is not' '{"id":"../../../etc/passwd","binaries":[]}'
status "a project that is a folder" 3 "$SCRY" project list "$P"
status "a project that is not there" 3 "$SCRY" project list "$P/none.json"
printf '{"binaries":[]}' >"$P/empty.json"
status "an empty project" 2 "$SCRY" project list "$P/empty.json"
printf '{"binaries":[{"path":"app"},{"path":"hand.json"},{"path":"/dev/null"}]}' >"$P/odd.json"
json "what is no program leaves the others" "[i['binary'] for i in d['items']] == ['app']" "$SCRY" project search "$P/odd.json" helper --json
json "and is said to have failed" "[i['state'] for i in d['items']] == ['same', 'failed', 'failed']" "$SCRY" project list "$P/odd.json" --sync --json

# --- kill while the index is written ---
python3 - "$WORK/many.c" <<'PY'
import sys
with open(sys.argv[1], "w") as f:
    for i in range(4000):
        f.write(f"int name_of_something_{i}(void) {{ return {i}; }}\n")
PY
build p/libmany.so cc -O0 -shared -fPIC "$WORK/many.c"
"$SCRY" project create "$P/many.json" "$P/libmany.so" >/dev/null
"$SCRY" analyze "$P/libmany.so" >/dev/null
DB=$SCRY_STORE/projects/$(python3 -c 'import json,sys;print(json.load(open(sys.argv[1]))["id"])' "$P/many.json").db
python3 - "$SCRY" "$P/many.json" "$DB" <<'PY'
import os, subprocess, sys, time
killed = 0
for i in range(12):
    for tail in ("", "-wal", "-shm"):
        if os.path.exists(sys.argv[3] + tail) and i % 3 == 0:
            os.unlink(sys.argv[3] + tail)
    p = subprocess.Popen([sys.argv[1], "project", "search", sys.argv[2], "something_77", "--json"], stdout=subprocess.DEVNULL)
    time.sleep(0.004 * (i + 1) * (i + 1))
    killed += p.poll() is None
    p.kill()
    p.wait()
sys.exit(0 if killed else 3)
PY
is "some were killed" 0 $?
json "then all is found once" "sorted(i['text'] for i in d['items']) == sorted('name_of_something_77%s' % s for s in [''] + list(range(10)))" \
	"$SCRY" project search "$P/many.json" something_77 --json

# --- a store that cannot be written ---
chmod -R a-w "$SCRY_STORE"
if [ -w "$SCRY_STORE" ]; then
	# root writes where it may not; a store that is no folder stands in.
	chmod -R u+w "$SCRY_STORE"
	export SCRY_STORE=$WORK/app.c
fi
json "finding works in memory" "sorted(i['binary'] for i in d['items']) == ['app', 'other']" "$SCRY" project search "$P/hand.json" twice --json
json "without a store too" "len(d['items']) == 2" "$SCRY" project search "$P/hand.json" twice --no-store --json
export SCRY_STORE=$WORK/store
chmod -R u+w "$SCRY_STORE"
plan
