#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Directives from the command line: raw bytes that become a program step by step, a base that moves everything, edit documents.
. "$(dirname "$0")/lib.sh"
F=$WORK/blob
# push rbp; call 0x10; pop rbp; ret. "text". At 0x10: jmp rax, then a table of two distances, two cases.
printf '\x55\xe8\x0a\x00\x00\x00\x5d\xc3text\x00\x00\x00\x00\xff\xe0\x08\x00\x00\x00\x0e\x00\x00\x00\xb8\x01\x00\x00\x00\xc3\xb8\x02\x00\x00\x00\xc3' >"$F"
line() { "$SCRY" heads "$F" "$1" --count "${2:-1}" --json | tr -d '\n'; }

status "nobody knows the format" 3 "$SCRY" info "$F"
like "and the message says what to do" '--processor' "$("$SCRY" info "$F" 2>&1)"
status "a processor that is none" 2 "$SCRY" info "$F" --processor z80
status "raw bytes of a processor" 0 "$SCRY" info "$F" --processor x86-64
like "it is known from then on" 'raw' "$("$SCRY" info "$F")"
like "what is there already" 'unchanged.*a function begins here already' "$("$SCRY" define "$F" 0 func)"
like "a function goes to what is defined" 'func:1  1 instruction to 0x7 \(defined\)' "$("$SCRY" define "$F" 6 func)"
like "and is listed" '0x6 .* user ' "$("$SCRY" functions "$F")"
status "auto takes it back" 0 "$SCRY" define "$F" 6 auto
like "code goes to where control ends" '"end":"0x10","count":3,"stopped":"defined"' "$("$SCRY" define "$F" 9 code --json)"
status "undo" 0 "$SCRY" undo "$F"
like "a string is found to its end" '"end":"0xd"' "$("$SCRY" make_string "$F" 8 --json)"
like "that is in the listing" '"kind":"string","bytes":"7465787400"' "$(line 8 2)"
like "a table by hand" 'applied' "$("$SCRY" jump_table "$F" 0x10 --table 0x12 --count 2 --base 0x12)"
like "leads to its cases" '"addr":"0x1a".*"addr":"0x20"' "$("$SCRY" blocks "$F" 0x10 --json | tr -d '\n')"
status "flags" 0 "$SCRY" flags "$F" 0x10 noreturn
like "flags are shown" 'noreturn' "$("$SCRY" functions "$F")"
status "rename" 0 "$SCRY" rename "$F" 0x10 dispatch
status "a base" 0 "$SCRY" load "$F" --base 0x40000
like "moves names" '0x40010' "$("$SCRY" resolve "$F" dispatch)"
like "and strings" '0x40008' "$("$SCRY" strings "$F")"
like "the journal too" 'rename +0x40010' "$("$SCRY" journal "$F")"
status "undo" 0 "$SCRY" undo "$F"
like "moves them back" '0x10 ' "$("$SCRY" resolve "$F" dispatch)"
cat >"$WORK/doc.json" <<'JSON'
{"ops":[{"op":"undefine","addr":"0x8","len":5},{"op":"make_data","addr":"0x8","type":"byte","count":4},
{"op":"define","addr":"0x20","what":"nonsense"},{"op":"flags","addr":"dispatch","flags":null},
{"op":"load","processor":"i386"}]}
JSON
like "a document answers each" 'applied.*applied.*refused.*applied.*applied.*"pending":true' \
	"$("$SCRY" edit "$F" --ops "$WORK/doc.json" --json 2>/dev/null | tr -d '\n')"
like "pending ends with the next command" '"arch":"i386"' "$("$SCRY" info "$F" --json)"
status "a dry run" 0 "$SCRY" define "$F" 0x1a data:word --dry-run
like "changes nothing" '"kind":"code"' "$(line 0x1a 2)"
status "bounds of a function that is cut" 0 "$SCRY" bounds "$F" 0 6
like "it is" '"size":6' "$("$SCRY" functions "$F" --json | tr -d '\n')"
# Bytes that nobody knows are cut where somebody named or commented one.
python3 -c 'import sys; sys.stdout.buffer.write(bytes(range(200, 264 - 8)) + bytes(range(1, 9)))' >"$WORK/dull"
status "a name among bytes nobody knows" 0 "$SCRY" rename "$WORK/dull" 0x13 inner --processor x86-64
status "and a comment" 0 "$SCRY" comment "$WORK/dull" 0x1a 'said of one byte'
json "each has a line" '[(i["addr"], i["size"], i["label"], i["comment"]) for i in d["items"] if i["kind"] == "unknown"][:5] == [("0x0", 16, "", ""), \
("0x10", 3, "", ""), ("0x13", 7, "inner", ""), ("0x1a", 6, "", "said of one byte"), ("0x20", 16, "", "")]' "$SCRY" heads "$WORK/dull" 0 --json
json "back from the last to the first" '[i["addr"] for i in d["items"]] == ["0x10", "0x13", "0x13", "0x1a"]' "$SCRY" heads "$WORK/dull" 0x20 --back --count 4 --json
status "without the name" 0 "$SCRY" rename "$WORK/dull" 0x13 ''
json "there is one line less" '[i["addr"] for i in d["items"]] == ["0x10", "0x1a"]' "$SCRY" heads "$WORK/dull" 0x10 --count 2 --json
# What somebody says goes before what debug information says.
printf 'unsigned char text[8] = {104, 0, 105, 0, 33, 0, 0, 0};\nint main(void) { return text[0]; }\n' >"$WORK/w.c"
if build w cc -g -O0 "$WORK/w.c"; then
	like "an array by debug information" "^\{" "$("$SCRY" heads "$WORK/w" text --count 2 --json | python3 -c 'import json,sys;print(json.load(sys.stdin)["items"][1]["text"])')"
	status "a string, says somebody" 0 "$SCRY" define "$WORK/w" text string:c16
	like "and it is shown as one" 'hi!' "$("$SCRY" heads "$WORK/w" text --count 2)"
	status "taken back" 0 "$SCRY" undo "$WORK/w"
	unlike "it is not" 'hi!' "$("$SCRY" heads "$WORK/w" text --count 2)"
fi
status "the journal is sound" 0 "$SCRY" check "$F" --edits
status "and the image" 0 "$SCRY" check "$F" --image
plan
