#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The workbench a line at a time, and the table of keys.
. "$(dirname "$0")/lib.sh"

plain() { # LINES
	printf "$1" | "$SCRY" --plain /bin/bash 2>&1
}

out=$(plain 'g main\n3\nq\n')
like "it begins at main" '^[0-9a-f]+  main:$' "$out"
like "g goes there" '^> [0-9a-f]+  ; main' "$out"
is "a number prints so many lines" "$(plain 'g main\nq\n' | wc -l)" "$(($(plain 'g main\n3\nq\n' | wc -l) - 3))"
out=$(plain 'n plain_name\nf plain\ng plain_name\n:undo\ng plain_name\n')
like "n is written" 'rename at [0-9a-f]+ is on disk' "$out"
like "f lists functions with the new name" 'plain_name  [0-9]+  [0-9a-f]+' "$out"
like "undo by its name" 'undo: revision' "$out"
like "and the name is gone" 'plain_name: no|no such|not' "$(printf '%s\n' "$out" | tail -n 2)"
out=$(plain 'g main\ny int main(int argc, char **argv)\ng main\ny int x\no\ng shell_level\ny int\no\nl\n')
like "y gives a prototype" 'set_prototype at [0-9a-f]+ is on disk' "$out"
like "the banner has it" '; int main\(int argc, char \*\*argv\)' "$out"
like "a refusal is said" 'set_prototype refused: .*this is no function' "$out"
like "o says that there is no number" 'there is no number in this line' "$out"
like "y gives data a type" 'retype at [0-9a-f]+ is on disk' "$out"
like "o writes its number in another form" 'format at [0-9a-f]+ is on disk' "$out"
like "which has no value before the program runs" 'dd \? +; int' "$out"
like "x lists references" 'References: [0-9]+ of [0-9]+' "$(plain 'x\n')"
like "/ searches" '^found' "$(plain '/hex:7f 45 4c 46\n')"
like "an unknown verb is said" 'no such verb' "$(plain '%%\n')"
out=$(plain '?\n')
like "? lists the verbs" '^g  :goto  Go to an address or a name$' "$out"
like "and what has no key" '^:go-entry  ' "$out"
unlike "not what needs a screen" ':(pan-left|theme|decompile)' "$out"
# Each verb the help shows can be said; none sends a control character.
verbs=$(printf '%s\n' "$out" | sed -nE 's/^([^ ]* +)?:([a-z-]+)  .*/:\2/p' | grep -v ':quit')
is "every verb of the help is an action of the table" 0 "$(printf '%s\n' $verbs | sed 's/^://;y/-/_/' | tr a-z A-Z | while read -r v; do "$SCRY" keys | grep -q " $v " || echo "$v"; done | wc -l)"
printf '%s\n' $verbs q | SCRY_STORE=$WORK/all-store "$SCRY" --plain /bin/bash >"$WORK/all" 2>&1
is "all of them one after the other" 0 $?
is "no control sequences" 0 "$(tr -d '\n\t' <"$WORK/all" | LC_ALL=C tr -d '\040-\176\200-\377' | wc -c)"
like "an empty verb says what it wants" 'say it behind the verb' "$(plain 'n\n')"
out=$(plain 'f main\ne 1\nxrefs main --limit 2\ng main\n:view-graph\nblocks main --nonsense\n')
like "a row of a list is followed by its number" '^> [0-9a-f]+  ; .*textdomain' "$out"
like "a command of the table without the file" 'call|jump|offset' "$out"
like "the graph as text" 'fall|taken' "$out"
like "a wrong word of it is said" 'nonsense' "$out"
out=$(plain ':comment first\n:comment-block second\n:bookmark third\n,b\n:history\n:repeat\n:export '"$WORK"'/notes.md\n')
like "bookmarks" 'third' "$out"
like "the history" 'comment block' "$out"
like "findings are written" "written to $WORK/notes.md" "$out"
like "and hold them" 'second' "$(cat "$WORK/notes.md")"
like "a step without a trace says how one is loaded" 'no trace is loaded .scry --trace' "$(plain ']\n')"
if "$SCRY" trace -e none -- true >/dev/null 2>&1; then
	live() { # LINES
		printf "$1" | "$SCRY" --plain /bin/cat 2>&1
	}
	out=$(live ":live-start /bin/cat /etc/passwd"'\ny\n,v call=openat passwd\ne 1\n,v %%nope\n')
	like "a live trace asks first" 'Run it as you, in no sandbox\?  .*/bin/cat /etc/passwd' "$out"
	like "prints the calls" 'openat\(AT_FDCWD, "/etc/passwd", O_RDONLY\) = 3' "$out"
	like "to their end" 'the program has ended with status 0' "$out"
	like "lists those of a filter" '^> 1  .*openat .*/etc/passwd.*cat\+0x' "$out"
	like "and leads to the call" 'call .*open' "$out"
	like "a wrong filter is said" '%nope: no class' "$out"
	like "without a yes nothing runs" 'nothing was changed' "$(live ':live-start /bin/cat /etc/passwd\nn\n')"
else
	skip "a live trace" "nothing can be traced here"
fi
like "the C of the function" '^(> )?(void|uint[0-9]+_t) main_[0-9a-f]+\(' "$(plain 'g main\n:view-c\n')"
like "what it calls" '^0x[0-9a-f]+ +main +0x[0-9a-f]+ ' "$(plain 'g main\n,c\n')"
like "keys of a preset" 'rename|name:' "$("$SCRY" --keys r2 --plain /bin/bash <<<'dr')"

out=$(plain 'zzz\nm\nY\n:\n:q\n')
like "nothing stands in the way of leaving" '>' "$out"
"$SCRY" --plain /nonexistent >"$WORK/out" 2>&1 </dev/null
is "a file that is not there" 3 $?

# Lists are no places: the way back does not lead through them.
out=$(plain 'g main\ns login\nf main\ng shell_level\ns\nb\n')
like "back over lists" '^> [0-9a-f]+  ; .*main' "$(printf '%s\n' "$out" | sed -n '/^Strings: 20/,$p')"

# --- several binaries ---
P=$WORK/p
mkdir -p "$P"
cat >"$WORK/lib.c" <<'C'
int scale(int x) { return x * 3; }
int twice(int x) { return scale(x) + scale(x + 1); }
const char *banner(void) { return "the banner of the library"; }
C
cat >"$WORK/app.c" <<'C'
extern int twice(int); extern const char *banner(void); extern int puts(const char *);
__attribute__((noinline)) int helper(int a) { return twice(a) + 1; }
int main(int c, char **v) { puts(banner()); return helper(c); }
C
if build p/libone.so cc -O1 -shared -fPIC -Wl,-soname,libone.so "$WORK/lib.c"; then
	build p/app cc -O1 -fno-inline "$WORK/app.c" -L"$P" -lone
	lines() { # LINES WORDS...: what each line answers, line by line
		local said=$1
		shift
		printf "$said" | "$SCRY" --plain "$@" 2>&1
	}
	out=$(lines 'g main\n,o\nq\n' "$P/app" "$P/libone.so")
	like "two files: the first is shown, and said" '^1 of 2  app  /' "$(printf '%s\n' "$out" | head -n 1)"
	like "the switcher is a list with the binary shown marked" '^> 1  \* app  ' "$out"
	out=$(lines ',o libone.so\ng twice\nb\nb\nq\n' "$P/app" "$P/libone.so")
	like "its verb with a name goes there" '^> 2 of 2  libone.so  /' "$out"
	like "back leads over binaries" '^> 1 of 2  app  /' "$out"
	lines ',o libone.so\ng twice\nq\n' "$P/app" "$P/libone.so" >"$WORK/before"
	out=$(lines 'q\n' "$P/app" "$P/libone.so")
	like "it begins with the binary one was in" '^2 of 2  libone.so  ' "$out"
	like "at the place one was" '  twice:$' "$out"
	out=$(lines ',o app\ng twice\ne\nb\nb\nq\n' "$P/app" "$P/libone.so")
	like "an import is followed into the binary that has it" '^(> )?2 of 2  libone.so' "$(printf '%s\n' "$out" | sed -n '/extern twice/,$p;/jmp.*twice/,$p')"
	out=$(lines ',o app\n,i twice\ne 1\nx\nq\n' "$P/app" "$P/libone.so")
	like "a row of the imports, too" '[0-9a-f]+  twice:$' "$(printf '%s\n' "$out" | sed -n '/2 of 2  libone.so/,$p')"
	like "references come from other binaries" '^[0-9]+  call  [0-9a-f]+  app!helper  ' "$out"
	row=$(printf '%s\n' "$out" | sed -nE 's/^> ([0-9]+)  call .*app!helper.*/\1/p;s/^([0-9]+)  call .*app!helper.*/\1/p')
	out=$(lines ",o libone.so\ng twice\nx\ne $row\nq\n" "$P/app" "$P/libone.so")
	like "and are followed by their number" '^> 1 of 2  app  ' "$(printf '%s\n' "$out" | tail -n 15)"
	out=$(lines ',o libone.so\nxrefs twice\n:scope twice\nq\n' "$P/app" "$P/libone.so")
	like "a command counts them, too" 'helper.* call +twice' "$out"
	like "names of the whole project" '^[0-9]+  twice  export  libone.so  ' "$out"
	out=$(lines 'q\n' --project "$P/P.json" "$P/app" "$P/libone.so")
	like "--project makes one" '^1 of 2  app  ' "$out"
	like "and it is there" '"libone.so"' "$(cat "$P/P.json")"
	like "and opens it" '^. of 2  ' "$(lines 'q\n' --project "$P/P.json")"
	rm "$P/app"
	like "a binary that is gone is said to be" 'app is gone' "$(lines ',o app\nq\n' --project "$P/P.json")"
else
	skip "several binaries" "no C compiler"
fi
status "--plain without a file" 2 "$SCRY" --plain
like "says what it takes" 'scry --plain FILE' "$ERR"
status "an option behind it" 2 "$SCRY" --plain --nonsense

out=$("$SCRY" keys)
like "scry keys lists an action with its keys" '^g +GOTO +Go to an address or a name' "$out"
out=$("$SCRY" keys --preset vim-strict)
like "a preset's keys" '^gg Ctrl\+Home +TOP ' "$out"
is "every action in every preset" 1 "$(for p in ida ghidra binja vim-strict r2; do "$SCRY" keys --preset $p | grep -c '^[^#]'; done | sort -u | wc -l)"
unset SCRY_KEYS
export XDG_CONFIG_HOME=$WORK/config
mkdir -p "$WORK/config/scry"
printf 'preset r2\nGOTO = q\nQUIT = q\n' >"$WORK/config/scry/keys"
status "a conflict is an error" 2 "$SCRY" keys
like "with its file and line" "config/scry/keys:3: q is a key of GOTO in line 2 already" "$ERR"
like "the rest holds" '^q +GOTO' "$OUT"
like "the preset of the file too" '^dr +RENAME' "$OUT"
like "the line mode says so before its first verb" 'config/scry/keys:3: q is a key of GOTO' "$(plain '' | sed '/^> /,$d')"
status "a preset that is not there" 1 "$SCRY" keys --preset nothing
like "says which there are" 'vim-strict' "$ERR"
status "a word too many" 2 "$SCRY" keys all
ln -sf nowhere "$WORK/config/scry/keys"
like "a link that leads nowhere, too" 'a link that leads nowhere' "$(plain '' | sed '/^> /,$d')"
status "and scry keys" 3 "$SCRY" keys
rm "$WORK/config/scry/keys"
out=$("$SCRY" keys)
like "and one that has none" '^- +THEME' "$out"

# A word is no letter with something behind it: nothing is edited by what was not understood.
out=$(plain 'g main\ndoctor\nproject list\nunknown\ncomet x\nma\nU\n')
is "words that are no verbs" 4 "$(grep -c 'no such verb' <<<"$out")"
unlike "and edit nothing" 'Ctrl.Z|define|undefined' "$(SCRY_STORE=$WORK/word-store plain 'g main\ndoctor\nproject list\nunknown\ncomet x\nU\n')"
out=$(plain 'g main\nexport -o '"$WORK"'/letter.md\n')
ok "letters of the command line" test -s "$WORK/letter.md"
plan
