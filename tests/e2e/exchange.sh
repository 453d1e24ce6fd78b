#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What was found out goes out and comes in: reports, headers, maps, other programs' names; several questions at once; what changed.
. "$(dirname "$0")/lib.sh"
mkdir -m700 "$SCRY_STORE"

cat >"$WORK/p.c" <<'C'
#include <stdio.h>
int counter = 5;
__attribute__((noinline)) int g(int x) { return x * 3 + counter; }
__attribute__((noinline)) int h(int x) { return g(x) + g(x + 1); }
int main(int c, char **v) { printf("hi %d\n", h(c)); return 0; }
C
build p cc -O1 -fno-inline -g0 "$WORK/p.c" || { skip "exchange" "no C compiler"; plan; }
F=$WORK/p
addr() { nm "$F" | awk -v n="$1" '$3 == n { sub(/^0+/, "", $1); print $1 }'; }
G=$(addr g) H=$(addr h) M=$(addr main)
SUM=$(sha256sum <"$F")
text() { python3 -c 'import json,sys;print(json.load(open(sys.argv[1]))["'"$1"'"])' "$WORK/json"; }

# --- reports ---
"$SCRY" export "$F" --format md >"$WORK/none.md"
like "a report of nothing says so" 'Nothing was stated' "$(cat "$WORK/none.md")"
"$SCRY" rename "$F" g triple >/dev/null
"$SCRY" comment "$F" main $'# <script>alert(1)</script>\n| `tick` [x](http://e) *b*' --kind block --author bob --author-kind agent --note 'why not' >/dev/null
"$SCRY" comment "$F" 0x$G 'x times three' >/dev/null
"$SCRY" bookmark "$F" counter 'global' >/dev/null
"$SCRY" declare "$F" 'struct later; struct pair { int key; struct later *p; }; struct later { struct pair one[2]; };' >/dev/null
"$SCRY" patch "$F" triple c3 >/dev/null
status "report" 0 "$SCRY" export "$F" -o "$WORK/x.md"
R=$(cat "$WORK/x.md")
like "has a heading a function" "^## .0x$G. triple\$" "$R"
like "what, who and when" "^- .0x$G. comment line: x times three \\([a-z0-9_]+, [0-9-]{10} [0-9:]{8} UTC, revision [0-9]+\\)\$" "$R"
like "agents are told from people, and why" 'bob, agent, .*: why not\)' "$R"
like "what is outside functions" '^## Outside functions$' "$R"
unlike "no text of others is markup" '[^\\]<script|[^\\]`tick|[^\\]\[x|^# <' "$R"
like "types stand in a fence" '^struct pair \{$' "$R"

# --- header ---
status "header" 0 "$SCRY" export "$F" -o "$WORK/x.h"
echo '#include "x.h"
_Static_assert(sizeof(struct later) == 2 * sizeof(struct pair), "pair");' >"$WORK/use.c"
ok "a compiler takes it" cc -fsyntax-only -Wall -Werror "$WORK/use.c"

# --- maps ---
status "list" 0 "$SCRY" export "$F" -o "$WORK/x.sym"
like "has the new name" "^0*$G triple\$" "$(cat "$WORK/x.sym")"
status "map" 0 "$SCRY" export "$F" -o "$WORK/x.map"
like "has the new name" '^ [0-9A-F]{4}:[0-9A-F]{16} +triple' "$(cat "$WORK/x.map")"
json "what a map says is so already" "d['applied'] == 0 and d['refused'] == 0 and d['unchanged'] >= 10 and d['format'] == 'map'" \
	"$SCRY" import "$F" "$WORK/x.map" --json
json "a list too" "d['applied'] == 0 and d['refused'] == 0 and d['unchanged'] >= 10 and d['format'] == 'list'" \
	"$SCRY" import "$F" "$WORK/x.sym" --json

# --- JSON, and back ---
status "export as JSON" 0 "$SCRY" export "$F" -o "$WORK/x.json"
like "says how much" '^comments +2$' "$OUT"
json "one document" "d['scry_edits'] == 1 and len(d['edits']) == 7 and {e['author'] for e in d['edits']} >= {'bob'}" cat "$WORK/x.json"
export SCRY_STORE=$WORK/store2
mkdir -m700 "$SCRY_STORE"
json "a dry run changes nothing" "d['applied'] == 7 and d['rev'] == 1" "$SCRY" import "$F" "$WORK/x.json" --dry-run --json
json "import" "d['applied'] == 7 and d['refused'] == 0 and d['rev'] == 2" "$SCRY" import "$F" "$WORK/x.json" --json
json "again: all is so" "d['unchanged'] == 7 and d['applied'] == 0" "$SCRY" import "$F" "$WORK/x.json" --json
"$SCRY" export "$F" --format json >"$WORK/y.json"
is "exported again it says the same" "$(python3 -c 'import json,sys;print([(e["op"],e["addr"],e["sub"],e["value"]) for e in json.load(open(sys.argv[1]))["edits"]])' "$WORK/x.json")" \
	"$(python3 -c 'import json,sys;print([(e["op"],e["addr"],e["sub"],e["value"]) for e in json.load(open(sys.argv[1]))["edits"]])' "$WORK/y.json")"
json "what changed since" "{(i['op'], i['before']) for i in d['items']} == {(o, None) for o in ('rename','comment','bookmark','declare','patch')} and d['total'] == 7" \
	"$SCRY" changes "$F" --since 1 --json
status "one undo takes it back" 0 "$SCRY" undo "$F"
json "and nothing has changed" "d['total'] == 0" "$SCRY" changes "$F" --since 1 --json
status "of another file it is refused" 1 "$SCRY" import /bin/true "$WORK/x.json"
like "with what to do" 'any-target' "$ERR"
sed 's/"scry_edits":1/"scry_edits":99/' "$WORK/x.json" >"$WORK/new.json"
status "a newer scry's is refused" 3 "$SCRY" import "$F" "$WORK/new.json"
sed 's/"struct pair {/"struct pair { int/; s/"op":"patch","addr":"0x/"op":"patch","addr":"0y/' "$WORK/x.json" >"$WORK/bad.json"
json "what is wrong is refused by itself" "d['applied'] == 4 and d['refused'] == 3 and all(i['why'] for i in d['items'])" "$SCRY" import "$F" "$WORK/bad.json" --json
"$SCRY" undo "$F" >/dev/null
json "or refuses all" "d['applied'] == 0 and d['refused'] == 7" "$SCRY" import "$F" "$WORK/bad.json" --atomic --json

# --- other programs' files ---
cat >"$WORK/a.idc" <<IDC
static main(void) {
	MakeName(0X$G, "idc_g"); // set_name(0X$H, "no");
	set_name(0X$H, "idc_h", 1);
	set_cmt(0X$M, "from \"idc\"", 0);
	set_name(0X$M, "two words");
	set_name(0X7fffffff0000, "nowhere");
	set_name(0X$H, "second");
	set_name(0X$M, "sub_$M");
}
IDC
status "IDC" 1 "$SCRY" import "$F" "$WORK/a.idc"
like "all is accounted for" '3 applied, 0 unchanged, 2 refused, 2 left out \(read as idc\)' "$OUT"
like "with line and reason" 'refused +line 5: two words: a name has no spaces' "$OUT"
like "what is not mapped" 'refused +line 6: nowhere: the address is not mapped' "$OUT"
like "second names" 'left out +line 7: second: the file says something else' "$OUT"
like "made-up names" "left out +line 8: sub_$M: the name is made up" "$OUT"
like "it is there" 'idc_g' "$("$SCRY" disasm "$F" h)"
json "the journal says from where" "d['items'][-1]['note'].endswith('a.idc')" "$SCRY" journal "$F" --json
"$SCRY" undo "$F" >/dev/null

printf '"Name","Location","Type","Namespace"\n"cs_g","%08x","Function","Global"\n"get","%08x","Function","Box"\n"puts","EXTERNAL:00000001","Function","<EXTERNAL>"\n"FUN_00101149","00101149","Function","Global"\n' \
	$((0x$G + 0x100000)) $((0x$H + 0x100000)) >"$WORK/a.csv"
status "CSV of a program that puts files elsewhere" 1 "$SCRY" import "$F" "$WORK/a.csv"
like "hints at the base" '--base' "$ERR"
json "with the base" "d['applied'] == 2 and d['left_out'] == 2 and d['format'] == 'csv'" "$SCRY" import "$F" "$WORK/a.csv" --base 0x100000 --json
like "a namespace is part of the name" 'Box::get' "$("$SCRY" functions "$F")"
"$SCRY" undo "$F" >/dev/null

printf '<?xml version="1.0"?><PROGRAM IMAGE_BASE="00100000"><COMMENTS><COMMENT ADDRESS="%08x" TYPE="pre">a &lt;b&gt;</COMMENT></COMMENTS><SYMBOL_TABLE><SYMBOL ADDRESS="%08x" NAME="xml_g" TYPE="function"/></SYMBOL_TABLE></PROGRAM>' \
	$((0x$G + 0x100000)) $((0x$G + 0x100000)) >"$WORK/a.xml"
json "XML says its base itself" "d['applied'] == 2 and d['format'] == 'xml'" "$SCRY" import "$F" "$WORK/a.xml" --json
"$SCRY" undo "$F" >/dev/null

printf '\n Start         Length     Name                   Class\n 0001:00000000 000001000H .text                  CODE\n\n  Address         Publics by Value\n\n 0001:%08X       map_g\n 0007:00000000       lost\n' \
	$((0x$G - 0x$("$SCRY" sections "$F" --filter .text --json | python3 -c 'import json,sys;print([i["addr"] for i in json.load(sys.stdin)["items"] if i["name"]==".text"][0][2:])'))) >"$WORK/a.map"
json "map by sections" "d['applied'] == 1 and d['refused'] == 1 and 'segment 7' in d['items'][0]['why']" "$SCRY" import "$F" "$WORK/a.map" --json
"$SCRY" undo "$F" >/dev/null

echo "{\"0x$G\":\"json_g\",\"main\":\"json_main\",\"nowhere\":\"x\",\"0x$H\":5}" >"$WORK/a.json"
json "names as JSON" "d['applied'] == 2 and d['refused'] == 2 and d['format'] == 'names'" "$SCRY" import "$F" "$WORK/a.json" --json
for doc in '' 'no names here' '{' '{"scry_edits":1}' '{"scry_edits":"x","edits":[]}' '[1]'; do
	status "nothing to import: $doc" 2 "$SCRY" import "$F" <(printf %s "$doc")
done

# --- where it is written ---
"$SCRY" patch "$F" g 'cc c3' >/dev/null
cp "$F" "$WORK/target"
ok "an export over itself is refused" sh -c '! "$1" export "$2" --patched -o "$2"' sh "$SCRY" "$F"
is "the target is as it was" "$SUM" "$(sha256sum <"$F")"
status "patched" 0 "$SCRY" export "$F" --patched -o "$WORK/patched"
is "differs in the patched bytes" 2 "$(cmp -l "$F" "$WORK/patched" | wc -l)"
echo keep >"$WORK/kept.md"
if [ -w /dev/full ]; then
	status "a full disk is said" 5 "$SCRY" export "$F" --format md -o /dev/full
else
	skip "a full disk is said" "no /dev/full"
fi
status "a folder that is not there" 3 "$SCRY" export "$F" -o "$WORK/no/x.md"
status "an unknown ending" 2 "$SCRY" export "$F" -o "$WORK/x.doc"
# --- the whole program ---
"$SCRY" declare "$F" 'struct exported { int key; };' >/dev/null
status "C of every function" 0 "$SCRY" export "$F" -o "$WORK/x.c" --json
"$SCRY" decompile "$F" --all -o "$WORK/code" >/dev/null
is "each is in it" "$("$SCRY" functions "$F" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["total"])')" \
	"$(grep -c '^{$' "$WORK/x.c")"
like "and the types" 'struct exported {' "$(head -20 "$WORK/x.c")"
case $(uname -m) in
x86_64) ok "it compiles" cc -std=gnu11 -Wall -Wextra -Wno-unused -Werror -I"$WORK/code" -c "$WORK/x.c" -o "$WORK/x.o" ;;
*) skip "it compiles" "not an x86-64" ;;
esac
status "the listing" 0 "$SCRY" export "$F" -o "$WORK/x.asm" --json
is "says how long it is" "$(stat -c %s "$WORK/x.asm")" "$(python3 -c 'import json,sys; print(json.loads(sys.argv[1])["bytes"])' "$OUT")"
is "has every instruction of a function" "" "$("$SCRY" disasm "$F" main --json | python3 -c '
import json, sys
lines = open(sys.argv[1], encoding="utf-8").read().split("\n")
have = {(int(l[:16], 16), l[16:].strip().split("  ; ")[0]) for l in lines if l}
print(*[i["addr"] for i in json.load(sys.stdin)["items"] if i["kind"] == "code" and (int(i["addr"], 16), i["text"]) not in have])' "$WORK/x.asm")"
status "a page" 0 "$SCRY" export "$F" -o "$WORK/x.html"
is "whose tags are closed, without a script or another file" "ok" "$(python3 -c '
import html.parser, sys
class P(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.bad, self.ids, self.refs = [], [], set(), []
    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        if tag in ("script", "link", "img", "iframe"): self.bad.append(tag)
        if "href" in a: self.refs.append(a["href"])
        if "id" in a: self.ids.add(a["id"])
        if tag != "meta": self.open.append(tag)
    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag: self.bad.append("/" + tag)
p = P()
p.feed(open(sys.argv[1], encoding="utf-8").read())
funcs = [r for r in p.refs[:20] if r[1:] not in p.ids]
print("ok" if not p.bad and not p.open and all(r.startswith("#a") for r in p.refs) and not funcs else (p.bad[:3], p.open, funcs))' "$WORK/x.html")"
is "a text of the target stays text" 0 "$(grep -c '<script' "$WORK/x.html")"
is "the same on stdout" "$(sha256sum <"$WORK/x.asm")" "$("$SCRY" export "$F" --format asm | sha256sum)"
status "a full disk" 5 "$SCRY" export "$F" --format asm -o /dev/full
status "replaces a file whole" 0 "$SCRY" export "$F" -o "$WORK/kept.md"
unlike "and leaves nothing beside it" 'tmp' "$(ls "$WORK")"

# --- several questions at once ---
echo '{"ops":[{"op":"info"},{"op":"resolve","params":{"name":["main","zz"]}},{"op":"rename","params":{"addr":"main"}},
 {"op":"heads","params":{"addr":"main","count":2}},{"op":"heads","params":{"addr":"nope"}},{"op":"info","params":{"x":1}},{"op":"multi"},{},7]}' >"$WORK/m.json"
json "multi" "len(d['results']) == 9 and d['results'][1]['items'][1]['addr'] is None and len(d['results'][3]['items']) == 2 and [r['error']['kind'] for r in d['results'] if 'error' in r] == ['invalid', 'not_found', 'invalid', 'invalid', 'invalid', 'invalid'] and all(r.get('rev', d['rev']) == d['rev'] for r in d['results'])" \
	"$SCRY" multi "$F" --ops "$WORK/m.json" --json
is "each as by itself" "$("$SCRY" info "$F" --json)" "$(python3 -c 'import json,sys;print(json.dumps(json.load(open(sys.argv[1]))["results"][0],separators=(",",":"),ensure_ascii=False))' "$WORK/json")"
status "no list" 2 "$SCRY" multi "$F" --ops <(echo '{}')

# --- what changed ---
R=$("$SCRY" info "$F" --json | python3 -c 'import json,sys;print(json.load(sys.stdin)["rev"])')
"$SCRY" rename "$F" h one >/dev/null
"$SCRY" rename "$F" h two >/dev/null
"$SCRY" comment "$F" h x >/dev/null
"$SCRY" comment "$F" h '' >/dev/null
json "coalesced: a thing once, changed back not at all" "[(i['op'], i['before'], i['after'], i['edits']) for i in d['items']] == [('rename', None, 'two', 2)]" \
	"$SCRY" changes "$F" --since "$R" --json
json "in pages" "d['total'] >= 3 and len(d['items']) == 1 and d['next']" "$SCRY" changes "$F" --limit 1 --json
plan
