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
plan
