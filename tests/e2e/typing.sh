#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Types of data, prototypes and formats of numbers: stated, shown in the listing, refused with the reason, taken back.
. "$(dirname "$0")/lib.sh"
cat >"$WORK/a.c" <<'C'
#include <string.h>
struct point { int x, y; };
struct item { const char *name; struct point at; unsigned flags : 3, kind : 5; char tag[6]; double w; };
struct item table[3] = {{"one", {1, -2}, 3, 4, "abc", 1.5}, {"two", {3, 4}, 1, 2, "def", 2.5}};
struct item one = {"single", {7, 8}, 1, 1, "x", 0.25};
struct point many[400] = {{5, 6}};
int counter = 42, color = 5, mode = 6;
char text[8] = "hey\n";
int (*handler)(const char *) = 0;
__attribute__((noinline)) int f(int c, const char *s)
{
	volatile int l = 5;
	if (c == 0x41)
		return 0x1234;
	return (int)strlen(s) + l + counter + table[c].at.y + many[c].x;
}
int main(int argc, char **argv) { return f(argc, argv[0]) + one.at.y + text[argc] + color + mode; }
C
build a gcc -O1 -fno-omit-frame-pointer "$WORK/a.c" || { skip "typing" "no gcc"; plan; }
F=$WORK/a
C='struct point { int x, y; }; struct item { const char *name; struct point at; unsigned flags : 3, kind : 5; char tag[6]; double w; };
enum color { RED, GREEN = 5, BLUE = 8 }; enum bits { ONE = 1, TWO = 2, FOUR = 4 };'
line() { "$SCRY" heads "$F" "$1" --count "${2:-30}" | grep -E -- "$3"; }

status "types are declared" 0 "$SCRY" declare "$F" "$C"
for pair in 'one:struct item' 'table:struct item[3]' 'many:struct point [400]' 'counter:int' 'color:enum color' 'text:char [8]' 'handler:int (*)(const char *)'; do
	status "retype ${pair%%:*}" 0 "$SCRY" retype "$F" "${pair%%:*}" "${pair#*:}"
done
like "a scalar is a number of its type" 'dd 42 +; int$' "$(line counter 3 'dd')"
like "an enum is a constant" 'dd GREEN +; enum color$' "$(line color 3 'dd')"
like "text is a string" '"hey\\n" +; char \[8\], 8 bytes$' "$(line text 3 'char')"
like "what no byte of the file backs" 'dq \? +; int \(\*\)\(const char \*\)' "$(line handler 3 'dq')"
like "a struct is its own line" 'struct item +; 32 bytes$' "$(line one 3 'struct')"
like "and members follow" '\.at\.y +dd 8 +; int$' "$(line one 9 'at\.y')"
like "bit-fields too" '\.kind +1 +; unsigned int:5$' "$(line one 9 'kind')"
like "a pointer says what it leads to" '\.name +dq offset .* "single"' "$(line one 9 'name')"
like "arrays of structs are opened" '\[1\]\.at\.x +dd 3 ' "$(line table 40 '\[1\]\.at\.x')"
like "large ones have a line an element" '\[0\] +\{5, 6\} +; struct point, 8 bytes$' "$(line many 5 '\[0\]')"
json "member lines have their address, sub and row" \
	'[i["sub"] for i in d["items"] if i["kind"]=="member"] == [3,4,5,6,7,8,9] and all(i["row"]==d["items"][1]["row"] for i in d["items"])' \
	"$SCRY" heads "$F" one --count 9 --json
json "a page can begin with a member" 'd["items"][0]["kind"]=="member" and d["items"][0]["text"].startswith(".at.x")' \
	"$SCRY" heads "$F" one --sub 4 --count 1 --json
json "an address inside leads to its member" 'd["items"][0]["text"].startswith(".at.y")' "$SCRY" heads "$F" one+12 --sub 4294967295 --count 1 --json
json "back over it" '[i["kind"] for i in d["items"]] == ["label","data"]+["member"]*7' "$SCRY" heads "$F" one+32 --back --count 9 --json
forth=$("$SCRY" heads "$F" counter --count 60 --json | python3 -c 'import json,sys; print([(i["addr"],i.get("sub",0)) for i in json.load(sys.stdin)["items"]])')
like "pages meet" 'same' "$(python3 - "$SCRY" "$F" "$forth" <<'PY'
import ast, json, subprocess, sys
scry, f, want = sys.argv[1], sys.argv[2], ast.literal_eval(sys.argv[3])
got, cursor = [], None
while len(got) < 60:
    cmd = [scry, "heads", f, "counter", "--count", "7", "--json"] + (["--cursor", cursor] if cursor else [])
    d = json.loads(subprocess.run(cmd, stdout=subprocess.PIPE, check=True).stdout)
    got += [(i["addr"], i.get("sub", 0)) for i in d["items"]]
    cursor = d.get("next")
    if not cursor:
        break
print("same" if got[:60] == want else "differs %r %r" % (got[:60], want))
PY
)"
json "members have names" 'd["items"][0]["addr"] == d["items"][1]["addr"] == d["items"][2]["addr"]' \
	"$SCRY" resolve "$F" 'table[2].at.y' table+76 'table+0x4c' --json
like "in references too" 'one\.at\.y' "$("$SCRY" disasm "$F" main)"
json "type_at says the member" 'd["type"]=="int" and d["member"]==".at.y" and d["source"]=="user"' "$SCRY" type_at "$F" one.at.y --json
json "type says all" '[(m["name"],m["offset"],m["size"]) for m in d["members"]][1]==("at",8,8) and d["size"]==32 and d["align"]==8 and d["members"][3]["bit_offset"]==3' \
	"$SCRY" type "$F" 'struct item' --json
like "and for people" '^ +16\.3 +5 b  unsigned int kind$' "$("$SCRY" type "$F" item)"

status "code is not data" 1 "$SCRY" retype "$F" f int
like "and says so" 'code is at' "$ERR"
status "a place inside typed data" 1 "$SCRY" retype "$F" one+8 int
like "says which" 'part of the typed data' "$ERR"
status "an unknown type" 1 "$SCRY" retype "$F" color nowhere_t
like "says where" "unknown type name 'nowhere_t'" "$ERR"
status "no size" 1 "$SCRY" retype "$F" color 'struct unheard'
like "says why" 'incomplete' "$ERR"
status "what data needs cannot go" 1 "$SCRY" undeclare "$F" 'color'
like "and says so" 'need .enum color.' "$ERR"
status "the same again" 0 "$SCRY" retype "$F" counter ' int '
like "is unchanged" '1 unchanged' "$OUT"

status "a prototype" 0 "$SCRY" set_prototype "$F" f 'long f ( struct item*what,... )'
like "is in the banner" '; long f\(struct item \*what, \.\.\.\)  ;' "$("$SCRY" disasm "$F" f)"
status "with another name" 0 "$SCRY" rename "$F" f better
like "it has that name" '; long better\(struct item' "$("$SCRY" disasm "$F" better)"
status "no function" 1 "$SCRY" set_prototype "$F" counter 'int counter(void)'
like "says so" 'no function begins here' "$ERR"
status "no prototype" 1 "$SCRY" set_prototype "$F" better 'int x'
like "says so" 'this is no function' "$ERR"
json "type_at gives it" 'd["prototype"].startswith("long better(") and d["is_func"]' "$SCRY" type_at "$F" better --json

at() { "$SCRY" disasm "$F" better --json | python3 -c 'import json,sys; print(next(i["addr"] for i in json.load(sys.stdin)["items"] if sys.argv[1] in i["text"]))' "$1"; }
shown() { "$SCRY" disasm "$F" better --json | python3 -c 'import json,sys; print(next(i["text"] for i in json.load(sys.stdin)["items"] if i["addr"]==sys.argv[1] and i["kind"]=="code"))' "$1"; }
CMP=$(at ',0x41') MOV=$(at ',0x1234') VAR=$(at ',0x5')
is "char" "cmp edi,'A'" "$("$SCRY" format "$F" "$CMP" 1 char >/dev/null; shown "$CMP")"
is "dec" "cmp edi,65" "$("$SCRY" format "$F" "$CMP" 1 dec >/dev/null; shown "$CMP")"
is "oct" "cmp edi,0o101" "$("$SCRY" format "$F" "$CMP" 1 oct >/dev/null; shown "$CMP")"
is "bin" "cmp edi,0b1000001" "$("$SCRY" format "$F" "$CMP" 1 bin >/dev/null; shown "$CMP")"
is "default" "cmp edi,0x41" "$("$SCRY" format "$F" "$CMP" 1 default >/dev/null; shown "$CMP")"
"$SCRY" format "$F" "$VAR" 0 stack >/dev/null
"$SCRY" format "$F" "$VAR" 1 enum:color >/dev/null
like "stack and enum of one instruction" '\[rbp\+var_[0-9a-f]+\],GREEN$' "$(shown "$VAR")"
"$SCRY" format "$F" mode 0 enum:bits >/dev/null
like "flags of an enum" 'dd TWO\|FOUR' "$(line mode 3 dd)"
status "of typed data too" 0 "$SCRY" format "$F" one.at.x 0 hex
like "its member" '\.at\.x +dd 0x7 ' "$(line one 9 'at\.x')"
refused() { # OPERAND FORMAT REASON
	status "refused: operand $1 as $2" 1 "$SCRY" format "$F" "$MOV" "$1" "$2"
	like "because of that" "$3" "$ERR"
}
refused 0 dec 'operand 0 has no number'
refused 1 offset '0x1234 is no address'
refused 1 stack 'no distance from'
refused 1 enum:nope "there is no enum 'nope'"
refused 1 enum:color 'no constant of the value 0x1234'
refused 1 roman 'a format is hex'
refused 99 hex 'an operand is a number'

echo "{\"ops\":[{\"op\":\"retype\",\"addr\":\"counter\",\"type\":\"unsigned\"},{\"op\":\"format\",\"addr\":\"$MOV\",\"operand\":1,\"format\":\"oct\"},
	{\"op\":\"set_prototype\",\"addr\":\"main\",\"prototype\":\"int main(int argc, char **argv)\"},{\"op\":\"retype\",\"addr\":\"main\",\"type\":\"int\"}],\"atomic\":true}" >"$WORK/ops.json"
json "one refusal refuses all" '[r["status"] for r in d["results"]] == ["refused"]*4' "$SCRY" edit "$F" --ops "$WORK/ops.json" --json
sed -i 's/,"atomic":true//;s/"addr":"main","type":"int"/"addr":"main","type":"in"/' "$WORK/ops.json"
json "else each is its own" '[r["status"] for r in d["results"]] == ["applied"]*3+["refused"] and d["results"][0]["after"]=="unsigned int"' \
	"$SCRY" edit "$F" --ops "$WORK/ops.json" --json
status "undo" 0 "$SCRY" undo "$F"
is "takes them back" "mov eax,0x1234" "$(shown "$MOV")"
status "a dry run" 0 "$SCRY" format "$F" "$MOV" 1 hex --dry-run
REV=$("$SCRY" info "$F" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["rev"])')
is "changes nothing" "mov eax,0x1234" "$(shown "$MOV")"
status "if_rev" 1 "$SCRY" retype "$F" counter long --if-rev 2
like "refuses what is newer" 'was changed in revision' "$ERR"
is "and nothing changed" "$REV" "$("$SCRY" info "$F" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["rev"])')"
status "taken away" 0 "$SCRY" retype "$F" one ''
unlike "it is no struct any more" 'struct item' "$("$SCRY" heads "$F" one --count 3)"
ok "the journal's tables agree" "$SCRY" check "$F" --edits
plan
