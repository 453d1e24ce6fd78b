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
long lock(long *p) { if (p[0] == 0x1122334455667788) if (p[1] + 5 > 0x7766554433221100) if (p[2] == p[3] && p[2]) if ((int)p[4] < -77000) return p[5] & 0x4000 ? 1 : 2; return 0; }
long asks(long n) { char *s = getenv("NAME"); if (s && s[0] == '#') { if (s[1] == '!') return 2; return 1; } return n; }
/* What a call leaves on the x87 stack is under what is put there before it is taken. */
__attribute__((noinline)) long double half(long n) { return n / 2.0L; }
int sign(long n) { long double v = half(n); return v < 0 ? -1 : v != 0; }
int halves(long n, long double *to, long k, long (*none)(long)) { long double v = half(n); if (k == 3) return none ? 3 : 4; int r = v > 5 ? 7 : v == 1.5L; *to = v; return r; }
long keeps(long n, double *v) { long double a = v[0], b = a * n; half(n); return n + (b > 3); }
int told(const char *s, long double *to, double *d, float *f) { *d = strtod(s, 0); *f = strtof(s, 0); long double v = strtold(s, 0); *to = v; return v == 0; }
/* What the processor says about a division is not in the C. */
long inexact(long n, long m) { unsigned is = 0x1f80; double d = n; __asm__ volatile("ldmxcsr %1; divsd %2, %0; stmxcsr %1" : "+x"(d), "+m"(is) : "m"((double){3})); return m == 7 || is & 0x20; }
/* Nor which of the flags it keeps, beside those that mean something to programs. */
__asm__(".globl keeps_id\n.type keeps_id, @function\nkeeps_id: pushf; orq $0x200000, (%rsp); popf; pushf; pop %rax; and $0x200000, %eax; cmp $9, %rdi; jne 1f; xor %eax, %eax\n1: ret\n.size keeps_id, . - keeps_id");
long keeps_id(long n);
/* Registers a function of the same program leaves alone hold what its caller put there, and arguments on the stack are taken back with pop. */
__asm__(".type leaves, @function\nleaves: lea 1(%rdi), %rax\nadd 8(%rsp), %rax\nret\n.size leaves, .-leaves\n.globl relies\n.type relies, @function\nrelies: mov $5, %ecx\nlea 3(%rdi), %r11\npush %rsi\ncall leaves\npop %rdx\nadd %rcx, %rax\nadd %r11, %rax\nret\n.size relies, .-relies\n");
long relies(long n, long m);
/* Below the lowest address it takes of its frame: what compilers do not do. */
__asm__(".globl under\n.type under, @function\nunder: sub $24, %rsp\nmovq $77, (%rsp)\nmovq $5, 8(%rsp)\nmovq $6, 16(%rsp)\nmov (%rsp), %rcx\nshr $4, %edi\nand $1, %edi\nneg %rdi\nmov 8(%rsp,%rdi,8), %rax\nadd %rcx, %rax\nadd $24, %rsp\nret\n.size under, .-under\n");
long under(long n);
/* A callee that changes no register leaves one for who knows whom, all of it. */
__asm__(".type nothing, @function\nnothing: addl $1, 24(%rdi)\nret\n.size nothing, .-nothing\n.globl hands\n.type hands, @function\nhands: push %rbx\nmov %rdi, %rbx\ncall nothing\nmov %edx, 8(%rbx)\nmov (%rbx), %rax\nmov $1, %edi\ncall *%rax\npop %rbx\nret\n.size hands, .-hands\n");
long hands(long (**f)(long), long k, unsigned n);
/* By hand: arguments and results in registers that others keep. */
__asm__(".type twist, @function\ntwist: add %rbx, %r12\nlea 1(%rbx), %rbx\nret\n.size twist, .-twist\n.globl by_hand\n.type by_hand, @function\nby_hand: push %rbx\npush %r12\nmov %rdi, %r12\nmov %rsi, %rbx\ncall twist\nlea (%r12,%rbx), %rax\npop %r12\npop %rbx\nret\n.size by_hand, .-by_hand\n");
long by_hand(long n, long m);
/* What a callee found in a register of its caller and left in the stack, another copies out; and what lies behind an array, the stack protector's value. */
__asm__(".type saves, @function\nsaves: push %rbx\npop %rbx\nret\n.size saves, .-saves\n.type copies, @function\ncopies: sub $8, %rsp\nmov (%rsp), %rax\nmov %rax, (%rdi)\nadd $8, %rsp\nret\n.size copies, .-copies\n.globl finds\n.type finds, @function\nfinds: push %rbx\nmov %rsi, %rbx\nsub $16, %rsp\nmov %rdi, (%rsp)\ncall saves\nmov (%rsp), %rdi\ncall copies\nlea 1(%rbx), %rax\nadd $16, %rsp\npop %rbx\nret\n.size finds, .-finds\n");
long finds(long *p, long n);
__attribute__((optimize("stack-protector-all"))) long behind(unsigned long n) { long a[2] = {5, 6}; __asm__("" : "+m"(a)); return a[(n >> 5) % 4]; }
long total(struct node *n) __attribute__((alias("sum")));
long forever(long n) { for (;;) n++; }
int main(int argc, char **argv) { return (int)sum((struct node *)argv) + (int)mean((double *)argv, argc) + pick(argc) + *dup((struct node *)argv) + (int)forever(argc) + (int)lock((long *)argv) + (int)asks(argc) + (int)inexact(argc, argc) + sign(argc) + halves(argc, 0, 1, 0) + (int)keeps(argc, 0) + told(*argv, 0, 0, 0) + (int)keeps_id(argc) + (int)relies(argc, 2) + (int)under(argc) + (int)by_hand(argc, 3) + (int)hands((long (**)(long))argv, 2, 3) + (int)finds((long *)argv, 3) + (int)behind(argc) + (int)total(0); }
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
status "results on the x87 stack" 0 "$SCRY" verify "$P" half sign halves keeps told --json
is "are taken from there" "ok" "$(printf '%s' "$OUT" | python3 -c '
import json, sys
items = json.load(sys.stdin)["items"]
print("ok" if [i["status"] for i in items] == 5 * ["equal"] else items)')"
status "two that differ" 1 "$SCRY" verify "$P" keeps_id under sum --bisect --json
is "and the stages that make them" "ok" "$(printf '%s' "$OUT" | python3 -c '
import json, sys
items = {i["func"]: i["stage"] for i in json.load(sys.stdin)["items"]}
print("ok" if items == {"keeps_id": "lift", "under": "stack", "sum": None} else items)')"
status "what a callee leaves alone" 0 "$SCRY" verify "$P" relies hands by_hand
json "stack that nobody set is told" 'all(i["status"] == "equal" and "nobody set" in i["why"] and i["inputs"] > 3 for i in d["items"])' "$SCRY" verify "$P" finds --json
json "nothing is told by what lies behind an object" 'd["items"][0]["status"] == "equal"' "$SCRY" verify "$P" behind --json
status "once is enough" 0 "$SCRY" verify "$P" sum
json "inputs follow what is compared" 'all(i["status"] == "equal" and i["blocks"] == i["blocks_hit"] and 5 * i["edges_hit"] > 4 * i["edges"] and i["coverage"]["blocks"] == 1 for i in d["items"])' "$SCRY" verify "$P" lock asks --seeds 48 --json
status "a difference is said" 1 "$SCRY" verify "$P" inexact --json
CASE=$(printf '%s' "$OUT" | sed -n 's/.*"counterexample":"\([^"]*\)".*/\1/p')
like "with the input that makes it" '^seed [0-9]+: rdi=0x[0-9a-f]+, else zero$' "$CASE"
status "which can be run again" 1 "$SCRY" verify "$P" inexact --input "$CASE" --json
like "to the same end" '"status":"differs".*"inputs":1,.*"counterexample":"'"${CASE%%:*}: rdi=" "$OUT"
status "without it there is none" 0 "$SCRY" verify "$P" inexact --input "${CASE%%:*}: rsi=0x7, else zero"
status "nor with nothing" 0 "$SCRY" verify "$P" inexact --input "${CASE%%:*}: all zero"
for bad in "" "seed" "seed 1" "seed 1: rbx=0x1, else zero" "seed 1: rdi=1" "seed 1: [0x10]=1, else zero" "seed 1: rdi=0x1 and 3 words more, else zero" "seed 1: [0x1000:9]=1, else zero"; do
	status "no input: '$bad'" 2 "$SCRY" verify "$P" inexact --input "$bad"
done
json "a function has two names and one verdict" '[i["status"] for i in d["items"]] == ["equal"] and isinstance(d["items"][0]["unprotected"], str)' "$SCRY" verify "$P" sum total sum --fresh --json
# The quick compiler, where there is one: what it says is said to be its, and gcc has the last word on a difference.
if [ -x /usr/bin/tcc ]; then
	status "quick" 1 "$SCRY" verify "$P" sum pick dup lock keeps_id mean --quick --fresh --json
	json "by the compilers" '[(i["status"], i["compiler"]) for i in d["items"]] == [("equal", "tcc")] * 4 + [("differs", "gcc"), ("equal", "gcc")]' printf '%s' "$OUT"
	rm "$SCRY_STORE"/*/cache.db*
	status "quick again" 0 "$SCRY" verify "$P" sum mean --quick --json
	json "what it says is not kept" 'd["verified"] == "not_run"' "$SCRY" decompile "$P" sum --json
	json "what gcc says is" 'd["verified"] == "equal"' "$SCRY" decompile "$P" mean --json
	status "kept" 0 "$SCRY" verify "$P" sum
	json "and good for quick, too" 'd["items"][0]["compiler"] == "gcc"' "$SCRY" verify "$P" sum --quick --json
else
	skip "quick" "there is no tcc"
fi
status "an input is for one function" 2 "$SCRY" verify "$P" inexact sum --input "$CASE"
status "another seed first" 1 "$SCRY" verify "$P" inexact --seed 3 --seeds 4
status "what never ends is said" 0 "$SCRY" verify "$P" forever --seeds 2 --cpu-ms 20
like "as inconclusive" 'inconclusive .* timeout' "$OUT"
status "no such function" 1 "$SCRY" verify "$P" nowhere
status "all or some" 2 "$SCRY" verify "$P"
# Verdicts are kept: the compiler is called only for what they do not hold for.
export TMPDIR=$WORK/tmp
mkdir "$TMPDIR"
# Whether a folder for compiling was made there since this was last asked.
compiled() { stat -c %y "$TMPDIR" >"$WORK/now"; cmp -s "$WORK/now" "$WORK/last" && echo no || echo yes; mv "$WORK/now" "$WORK/last"; }
compiled >/dev/null
rm "$SCRY_STORE"/*/cache.db*
json "nobody has verified it" 'd["verified"] == "not_run" and d["inputs"] == 0 and d["coverage"] is None' "$SCRY" decompile "$P" sum --json
status "verified" 0 "$SCRY" verify "$P" sum pick --json
FIRST=${OUT#*items}
is "by compiling" yes "$(compiled)"
status "and from the store" 0 "$SCRY" verify "$P" sum pick --json
# What a run lacked of its protection only a run knows.
plain() { printf '%s' "$1" | sed 's/"unprotected":"[^"]*"//g'; }
is "the same answer" "$(plain "$FIRST")" "$(plain "${OUT#*items}")"
is "without a compiler" no "$(compiled)"
status "fresh" 0 "$SCRY" verify "$P" sum pick --json --fresh
is "comes to the same" "$FIRST" "${OUT#*items}"
is "by running it" yes "$(compiled)"
status "more states are another question" 0 "$SCRY" verify "$P" sum --seeds 20
is "that is run" yes "$(compiled)"
json "decompile says so" 'd["verified"] == "equal" and d["inputs"] > 7 and d["coverage"]["blocks"] > 0.5' "$SCRY" decompile "$P" sum --json
like "to people, too" 'verify: equal on [0-9]+ inputs' "$("$SCRY" decompile "$P" sum)"
"$SCRY" rename "$P" sum total >/dev/null
json "other C is not verified" 'd["verified"] == "not_run"' "$SCRY" decompile "$P" total --json
"$SCRY" undo "$P" >/dev/null
json "the old C is again" 'd["verified"] == "equal"' "$SCRY" decompile "$P" sum --json
CACHE=$(ls "$SCRY_STORE"/*/cache.db)
like "check reads them" 'yes *cache *. verdicts' "$("$SCRY" check "$P")"
for damage in 'echo nothing' 'head -c 5000 "$WORK/cache"' 'tr e f <"$WORK/cache"'; do
	cp "$CACHE" "$WORK/cache"
	eval "$damage" >"$CACHE"
	like "check finds: $damage" 'no *cache *damaged' "$("$SCRY" check "$P")"
	json "nothing is known" 'd["verified"] == "not_run"' "$SCRY" decompile "$P" sum --json
	status "and all is well" 0 "$SCRY" verify "$P" sum
	json "again" 'd["verified"] == "equal"' "$SCRY" decompile "$P" sum --json
	like "with a new file" 'yes *cache' "$("$SCRY" check "$P")"
done
rm "$CACHE" && mkdir "$CACHE"
status "where nothing can be kept it is run" 0 "$SCRY" verify "$P" sum
json "and forgotten" 'd["verified"] == "not_run"' "$SCRY" decompile "$P" sum --json
rmdir "$CACHE"
status "without a store as well" 0 "$SCRY" verify "$P" sum --yes-run-target --no-store
is "which keeps nothing" no "$([ -e "$CACHE" ] && echo yes || echo no)"
cp "$P" "$WORK/other"
printf x >>"$WORK/other"
status "other bytes need their own consent" 1 "$SCRY" verify "$WORK/other" sum
plan
