#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Types, typed data and prototypes out of debug information.
. "$(dirname "$0")/lib.sh"
cat >"$WORK/a.c" <<'C'
struct point { int x, y; };
typedef struct { const char *name; struct point at[2]; unsigned kind : 3; } item;
enum color { RED, GREEN = 5 };
item one = {"single", {{1, 2}, {3, 4}}, 5};
static enum color paint = GREEN;
double numbers[3] = {0.5, 1.5, 2.5};
struct hidden *nobody;
static int add(const item *i, int n) { static int calls; return i->at[1].y + n + ++calls; }
int main(int argc, char **argv) { return add(&one, argc) + (int)paint + (int)numbers[argc]; }
C
build a gcc -g -O0 "$WORK/a.c" || { skip "types of DWARF" "no gcc"; plan; }
F=$WORK/a
json "types are listed with their source" '[(i["name"],i["size"],i["source"]) for i in d["items"]] == [("enum color",4,"dwarf"),("struct point",8,"dwarf"),("item",32,"dwarf")]' \
	"$SCRY" types "$F" --json
json "one of them" 'd["kind"]=="typedef" and [m["offset"] for m in d["members"]]==[0,8,24] and d["members"][2]["bits"]==3 and d["source"]=="dwarf"' \
	"$SCRY" type "$F" item --json
json "a tag by its name alone" 'd["size"]==8 and d["members"][1]["name"]=="y"' "$SCRY" type "$F" point --json
like "data has its type" '\.at\[1\]\.y +dd 4 +; int$' "$("$SCRY" heads "$F" one --count 12)"
like "static data too" 'dd GREEN +; enum color$' "$("$SCRY" heads "$F" paint --count 3)"
like "arrays" '\{0\.5, 1\.5, 2\.5\} +; double \[3\], 24 bytes' "$("$SCRY" heads "$F" numbers --count 3)"
like "pointers to what is only declared" 'struct hidden \*' "$("$SCRY" heads "$F" nobody --count 3)"
like "prototypes" '; int add\(const item \*i, int n\)  ;' "$("$SCRY" disasm "$F" add)"
json "type_at says where from" 'd["type"]=="int" and d["member"]==".at[1].x" and d["source"]=="dwarf"' "$SCRY" type_at "$F" 'one.at[1].x' --json
status "its types can be used" 0 "$SCRY" retype "$F" numbers 'item *[3]'
like "in place of what it says" 'item \*\[3\]' "$("$SCRY" heads "$F" numbers --count 3)"
status "and said anew" 0 "$SCRY" declare "$F" 'struct point { short x, y; }; struct mine { item i; struct point p; };'
json "what people say goes first" '[(i["name"],i["size"]) for i in d["items"] if "point" in i["name"] or "mine" in i["name"]] == [("struct mine",40),("struct point",4)]' \
	"$SCRY" types "$F" --json
ok "the image is good" "$SCRY" check "$F" --image
strip -g -o "$WORK/b" "$F"
json "without debug information there are none" 'd["total"]==0' "$SCRY" types "$WORK/b" --json
out=$(python3 "$ROOT/tests/types/dwarf_truth.py" "$SCRY" "$WORK" gcc)
printf '%s\n' "$out" | grep -v '^1\.\.' | sed "s/^\(not \)\{0,1\}ok [0-9]* - /\1ok - gcc: /" >"$WORK/tap"
if command -v clang >/dev/null; then
	python3 "$ROOT/tests/types/dwarf_truth.py" "$SCRY" "$WORK" clang | grep -v '^1\.\.' | sed "s/^\(not \)\{0,1\}ok [0-9]* - /\1ok - clang: /" >>"$WORK/tap"
fi
while IFS= read -r line; do
	case $line in
	"ok - "*) pass "${line#ok - }" ;;
	"not ok - "*) fail "${line#not ok - }" ;;
	*) echo "$line" ;;
	esac
done <"$WORK/tap"
plan
