#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Declaring C types: kept in the journal, read back in any order, all or nothing.
. "$(dirname "$0")/lib.sh"
F=/bin/true
names() { "$SCRY" types $F --json | python3 -c 'import json,sys; print(*sorted("%s:%s" % (i["name"], i["size"]) for i in json.load(sys.stdin)["items"]))'; }

status "what is needed must be there" 2 "$SCRY" declare $F 'struct z { struct a x[3]; };'
like "and it says where" '1:[0-9]+: ' "$ERR"
is "nothing was declared" "" "$(names)"
status "several at once" 0 "$SCRY" declare $F 'struct b { int i; char c : 3; }; struct a { struct b b; long l; }; typedef struct a T; int f(T *, ...); enum { K = 7 };'
is "all are there" "T:16 enum K:4 f:None struct a:16 struct b:8" "$(names)"
status "again: nothing new" 0 "$SCRY" declare $F 'struct b { int i; char c : 3; };'
like "again: says so" ' 0 applied' "$("$SCRY" declare $F 'typedef struct a T;')"
status "another meaning is refused" 2 "$SCRY" declare $F 'int g; struct b { long i; };'
like "with the reason" "1:[0-9]+: 'b' is defined differently before" "$ERR"
is "and g was not declared either" "T:16 enum K:4 f:None struct a:16 struct b:8" "$(names)"
status "what others need stays" 1 "$SCRY" undeclare $F b
like "with the reason" "need 'struct b'" "$ERR"
status "undeclare" 0 "$SCRY" undeclare $F f
is "it is gone" "T:16 enum K:4 struct a:16 struct b:8" "$(names)"
status "undo" 0 "$SCRY" undo $F
is "it is back" "T:16 enum K:4 f:None struct a:16 struct b:8" "$(names)"
status "nothing of that name" 1 "$SCRY" undeclare $F nowhere
status "a later one may use them" 0 "$SCRY" declare $F 'struct y { T t[K]; };'
is "and has its size" "112" "$("$SCRY" types $F --filter 'struct y' --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["items"][0]["size"])')"
status "in the place of another" 0 "$SCRY" declare $F --over 'struct b' 'struct b { int i; char c : 3; long more; };'
is "who uses it grows with it" "T:24 enum K:4 f:None struct a:24 struct b:16 struct y:168" "$(names)"
status "what others could not read is refused" 1 "$SCRY" declare $F --over b 'struct c { int i; };'
like "with who needs it" "'[a-z ]*' needs 'struct b' as it was" "$ERR"
is "and nothing changed" "T:24 enum K:4 f:None struct a:24 struct b:16 struct y:168" "$(names)"
status "an error has its line" 2 "$SCRY" declare $F --over b "$(printf 'struct b {\n int i j;\n};')"
like "the second" "declare: 2:" "$ERR"
rev=$("$SCRY" bookmark $F entry 'first' | sed -n 's/^revision \([0-9]*\):.*/\1/p')
"$SCRY" bookmark $F entry+1 'second' >/dev/null
is "bookmarks by address" "first second" "$("$SCRY" bookmarks $F --json | python3 -c 'import json,sys; print(*(i["text"] for i in json.load(sys.stdin)["items"]))')"
status "undo of an edit that is not the newest" 0 "$SCRY" undo $F --rev "$rev"
is "takes that one back" "second" "$("$SCRY" bookmarks $F --json | python3 -c 'import json,sys; print(*(i["text"] for i in json.load(sys.stdin)["items"]))')"
status "once" 1 "$SCRY" undo $F --rev "$rev"

# The list, sorted: what has no size comes first, and last the other way round; pages go on where they ended.
SORTED='struct so_b { char c[20]; }; struct so_a { char c[20]; }; typedef char so_one; int so_f(void); union so_u { char c[4]; };'
status "types of several sizes" 0 "$SCRY" declare /bin/cat "$SORTED"
json "by size" '[i["name"] for i in d["items"]] == ["so_f", "so_one", "union so_u", "struct so_a", "struct so_b"]' \
	"$SCRY" types /bin/cat --filter '*so_*' --sort size --json
json "downwards" '[i["size"] for i in d["items"]] == [20, 20, 4, 1, None]' "$SCRY" types /bin/cat --filter '*so_*' --sort=-size --json
json "by name, without the word before it" '[i["name"] for i in d["items"]] == ["struct so_a", "struct so_b", "so_f", "so_one", "union so_u"]' \
	"$SCRY" types /bin/cat --filter '*so_*' --sort name --json
json "page by page" '[i["name"] for i in d["items"]] == ["struct so_a", "struct so_b"] and d["total"] == 5 and "next" not in d' \
	"$SCRY" types /bin/cat --filter '*so_*' --sort size --offset 3 --json
NEXT=$("$SCRY" types /bin/cat --filter '*so_*' --sort size --limit 2 --json | python3 -c 'import json,sys;print(json.load(sys.stdin)["next"])')
json "by cursor" '[i["name"] for i in d["items"]] == ["union so_u", "struct so_a"]' \
	"$SCRY" types /bin/cat --filter '*so_*' --sort size --limit 2 --cursor "$NEXT" --json
status "another column" 2 "$SCRY" types /bin/cat --sort text
like "says which there are" 'name, size' "$ERR"
status "taken back" 0 "$SCRY" undo /bin/cat
"$SCRY" types /bin/cat --source builtin --limit 100000 --json >"$WORK/listed"
json "sorted or not it is the same list" \
	'(lambda f: {f(i) for i in d["items"]} == {f(i) for i in json.load(open("'"$WORK"'/listed"))["items"]} != set())(lambda i: (i["name"], i["size"], i["text"]))' \
	"$SCRY" types /bin/cat --source builtin --limit 100000 --sort=-size --json

# Header files.
mkdir -p "$WORK/inc"
printf '#include "more.h"\n#include <stdint.h>\n#include <sys/stat.h>\nstruct hdr { uint32_t n; struct more m[COUNT]; struct stat st; };\nint hdr_open(struct hdr *, ...);\n' >"$WORK/x.h"
printf '#pragma once\nstruct more { char c; short s; };\n#ifndef COUNT\n#define COUNT 2\n#endif\nstatic inline int unused(void) { return 1; }\n' >"$WORK/inc/more.h"
status "a header that is not found" 2 "$SCRY" declare /bin/cat --header "$WORK/x.h"
like "is said with file and line" "x\.h:1:10: more\.h: No such file or directory" "$ERR"
status "a header" 0 "$SCRY" declare /bin/cat --header "$WORK/x.h" --include "$WORK/inc"
json "what it declares is there, what the system has is not" 'sorted(i["name"] for i in d["items"]) == ["hdr_open","struct hdr","struct more"] and all(i["source"]=="header" for i in d["items"])' \
	"$SCRY" types /bin/cat --json
json "as the compiler lays it out" 'd["size"] == 160' "$SCRY" type /bin/cat 'struct hdr' --json
like "again: nothing new" ' 0 applied' "$("$SCRY" declare /bin/cat --header "$WORK/x.h" --include "$WORK/inc")"
like "what the system has is counted" '^[1-9][0-9]* more are known without it, from the system.s headers' "$("$SCRY" declare /bin/cat --header "$WORK/x.h" --include "$WORK/inc")"
printf '#include <stdint.h>\n#include <sys/stat.h>\n' >"$WORK/sys.h"
json "a header of which everything is known says so" 'not d["results"] and d["known"] > 10' "$SCRY" declare /bin/cat --header "$WORK/sys.h" --json
unlike "without a header nothing is said of it" 'known' "$("$SCRY" declare /bin/cat 'struct hdr_none;' --dry-run)"
status "one undo takes it back" 0 "$SCRY" undo /bin/cat
json "all of it" 'd["total"] == 0' "$SCRY" types /bin/cat --json
status "macros" 0 "$SCRY" declare /bin/cat --header "$WORK/x.h" --include "$WORK/inc" --define COUNT=10
json "count" 'd["size"] == 192' "$SCRY" type /bin/cat 'struct hdr' --json
printf '\nstruct fine { int x; };\nstruct bad { int x y; };\n' >"$WORK/bad.h"
status "a header with an error" 2 "$SCRY" declare /bin/cat --header "$WORK/bad.h"
like "names its line" "bad\.h:3:[0-9]+: " "$ERR"
json "and declares nothing" 'not [i for i in d["items"] if "fine" in i["name"]]' "$SCRY" types /bin/cat --json
(cd "$WORK" && printf 'struct dash { int d; };\n' >-o.h && "$SCRY" declare /bin/cat --header=-o.h >/dev/null 2>&1)
json "a name that begins with a dash is a name" 'd["size"] == 4' "$SCRY" type /bin/cat 'struct dash' --json
# What is included is a file: a pipe is not waited for, and what never ends is given up.
mkfifo "$WORK/inc/pipe.h"
ln -s /dev/zero "$WORK/inc/zero.h"
printf '#include "pipe.h"\n' >"$WORK/p.h"
printf '#include "zero.h"\n' >"$WORK/z.h"
sleep 100 &
if read -r _ <"/proc/$!/syscall"; then
	status "a header that includes a pipe" 3 "$SCRY" declare /bin/cat --header "$WORK/p.h" --include "$WORK/inc"
	like "names it" "waits for .*pipe.h, which is a pipe" "$ERR"
else
	skip "a header that includes a pipe" "what a process waits for cannot be seen here"
fi
kill $!
status "a header that includes what never ends" 2 "$SCRY" declare /bin/cat --header "$WORK/z.h" --include "$WORK/inc"
like "says what the preprocessor said" "status 1: .*memory" "$ERR"
status "no such header" 3 "$SCRY" declare /bin/cat --header "$WORK/none.h"
status "text or header" 2 "$SCRY" declare /bin/cat
plan
