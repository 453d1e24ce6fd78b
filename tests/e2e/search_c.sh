#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Patterns over the C of a program built here: what is found is where the source has it, pages put together are the whole, and
# lines are those that decompile prints.
. "$(dirname "$0")/lib.sh"
build prog gcc -O1 -fno-inline -fno-builtin -x c - <<'C' || { skip "patterns over C" "no gcc"; plan; }
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
char *copies(const char *s) { char *p = malloc(strlen(s) + 1); if (p) memcpy(p, s, strlen(s)); return p; }
char *other(const char *s, const char *t) { char *p = malloc(strlen(t)); if (p) memcpy(p, s, strlen(t)); return p; }
void twice(void *p, void *q) { free(p); close(1); free(q); free(p); }
void once(void *p, void *q) { free(q); free(p); }
int checks(int *p) { if (!p) return -1; p[0] = 7; return p[1]; }
int says(void) { return write(1, "needle", 6) == 6; }
int main(int argc, char **argv)
{
	char *p = copies(argv[0]);
	twice(p, other(p, argv[1]));
	once(p, p);
	return checks(&argc) + says();
}
C
P=$WORK/prog
# The functions PATTERN is found in, in order.
in_funcs() {
	"$SCRY" search "$P" --c "$1" --json | python3 -c '
import json, sys
print(*[i["func"] for i in json.load(sys.stdin)["items"]])'
}
is "the same hole is the same expression" "copies" "$(in_funcs 'memcpy($d, $s, strlen($s))')"
is "another name may be another" "copies other" "$(in_funcs 'memcpy($d, $s, strlen($t))')"
is "statements between" "twice" "$(in_funcs 'free($p); ...; free($p);')"
is "neighbours" "twice once" "$(in_funcs 'free($p); free($q);')"
is "an if without its braces" "checks" "$(in_funcs 'if ($p == 0) return $x;')"
is "a text of the program" "says" "$(in_funcs 'write(1, "needle", ...)')"
is "a function that is called" "main" "$(in_funcs 'once(...)')"
is "nothing" "" "$(in_funcs 'memcpy($x, $x, $x)')"
status "whole and in pages, forwards and backwards" 0 python3 - "$SCRY" "$P" <<'PY'
import json, re, subprocess, sys
scry, prog = sys.argv[1:]


def ask(*args):
    return json.loads(subprocess.run([scry, *args, "--json"], stdout=subprocess.PIPE, check=True).stdout)


def pages(*more):
    items, cursor = [], []
    while True:
        page = ask("search", prog, "--c", "$f(...)", *more, *cursor)
        items += page["items"]
        if "next" not in page:
            return items
        assert page["items"] and len(items) < 10000, page
        cursor = ["--cursor", page["next"]]


whole = ask("search", prog, "--c", "$f(...)")
assert whole["total"] == len(whole["items"]) > 15, whole["total"]
for limit in 1, 2, 7, 1000:
    assert pages("--limit", str(limit)) == whole["items"], limit
assert pages("--max_bytes", "400") == whole["items"]
for limit in 1, 3, 1000:
    assert pages("--back", "--limit", str(limit)) == whole["items"][::-1], limit
for i in whole["items"]:
    c = ask("decompile", prog, i["func_addr"], "--map")
    line = c["code"].split("\n")[i["line"] - 1].strip()
    assert line.startswith(i["text"].split("{")[0].strip()[:20]) or i["text"][:20] in line, (i, line)
    here = {a for m in c["map"] if m["line"] == i["line"] for a in m["addrs"]}
    assert not here or i["addr"] in here, (i, here)
# A comment before the function moves the lines; those of matches move with them.
at = next(i for i in whole["items"] if i["func"] == "says")
subprocess.run([scry, "comment", prog, "says", "one\ntwo", "--kind", "func"], check=True, stdout=subprocess.DEVNULL)
moved = next(i for i in ask("search", prog, "--c", "$f(...)")["items"] if i["func"] == "says")
assert moved["line"] == at["line"] + 2 and moved["addr"] == at["addr"], (at, moved)
assert [i["func"] for i in ask("search", prog, "--c", "$f(...)", "--from", "says", "--limit", "1")["items"]] == ["says"]
PY
for bad in '$x' '... f()' 'f(' '"open' '' "$(printf 'a%.0s' {1..5000})"; do
	status "refused: ${bad:0:10}" 2 "$SCRY" search "$P" --c "$bad"
done
plan
