#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Functions run beside their C: nothing before a person agreed, equal where they are, and a difference is found.
. "$(dirname "$0")/lib.sh"
build prog gcc -O1 -fno-stack-protector -x c - <<'C' || { skip "verify" "no gcc"; plan; }
#include <stdlib.h>
#include <string.h>
struct node { long key; struct node *next; char text[16]; };
int table[10];
long sum(struct node *n) { long s = 0; for (int i = 0; n && i < 3; i++, n = n->next) s += n->key; return s; }
double mean(double *v, int n) { double s = 0; for (int i = 0; i < (n & 7); i++) s += v[i]; return s / 8; }
int pick(int k) { switch (k & 7) { case 0: return 5; case 1: return table[1]++; case 2: return -1; case 3: return k / 3; case 4: return 9; case 5: return k * k; case 6: return 77; default: return 0; } }
char *dup(struct node *n) { char *p = malloc(17); memcpy(p, n->text, 16); p[16] = 0; return p; }
long forever(long n) { for (;;) n++; }
int main(int argc, char **argv) { return (int)sum((struct node *)argv) + (int)mean((double *)argv, argc) + pick(argc) + *dup((struct node *)argv) + (int)forever(argc); }
C
P=$WORK/prog
status "nothing runs unasked" 1 "$SCRY" verify "$P" sum
like "and it says how to agree" 'yes-run-target' "$ERR"
status "agreed" 0 "$SCRY" verify "$P" sum mean pick dup --yes-run-target --json
is "equal, with inputs and most blocks reached" "ok" "$(printf '%s' "$OUT" | python3 -c '
import json, sys
items = json.load(sys.stdin)["items"]
bad = [i for i in items if i["status"] != "equal" or not i["inputs"] or 2 * i["blocks_hit"] < i["blocks"]]
print("ok" if len(items) == 4 and not bad else bad)')"
status "once is enough" 0 "$SCRY" verify "$P" sum
status "what never ends is said" 0 "$SCRY" verify "$P" forever --seeds 2 --cpu-ms 20
like "as inconclusive" 'inconclusive .* timeout' "$OUT"
status "no such function" 1 "$SCRY" verify "$P" nowhere
status "all or some" 2 "$SCRY" verify "$P"
cp "$P" "$WORK/other"
printf x >>"$WORK/other"
status "other bytes need their own consent" 1 "$SCRY" verify "$WORK/other" sum
plan
