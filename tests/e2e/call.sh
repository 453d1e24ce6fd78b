#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Functions of a target called with typed arguments: results by type, buffers, how each bad end is told; and that a program which
# tries to get out changes nothing outside.
. "$(dirname "$0")/lib.sh"
command -v gcc >/dev/null || { skip "call" "no gcc"; plan; }
cat >"$WORK/good.c" <<'C'
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
int add(int a, int b) { return a + b; }
unsigned long ten(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j)
{ return a + 2*b + 3*c + 4*d + 5*e + 6*f + 7*g + 8*h + 9*i + 10*j; }
double half(double x) { return x / 2; }
float third(float x, double y) { return (float)(x / 3 + y); }
int upper(char *s) { int n = 0; for (; s[n]; n++) s[n] = (char)toupper((unsigned char)s[n]); return n; }
int fill(unsigned char *out, int n) { for (int i = 0; i < n; i++) out[i] = (unsigned char)(i * 17); return n; }
int sum(const unsigned char *p, int n) { int r = 0; while (n--) r += *p++; return r; }
int counter = 40;
int next(int *p) { return ++*p; }
void nothing(void) {}
void leave(int n) { exit(n); }
int main(void) { return 0; }
C
cat >"$WORK/hostile.c" <<'C'
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
static long sys(long n, long a, long b, long c, long d, long e)
{ long r; register long r10 __asm__("r10") = d; register long r8 __asm__("r8") = e;
  __asm__ volatile("syscall" : "=a"(r) : "0"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory"); return r; }
void loops(void) { for (;;) __asm__ volatile(""); }
int faults(int *p) { return *p + 1; }
void jumps(void) { void (*volatile f)(void) = (void (*)(void))0x123456; f(); }
void illegal(void) { __builtin_trap(); }
int divides(int a, int b) { return a / b; }
int recurses(int n) { volatile char b[100]; b[n & 63] = 1; return recurses(n + 1) + b[1]; }
long forks(void) { return sys(SYS_fork, 0, 0, 0, 0, 0); }
long clones(void) { return sys(SYS_clone, 0x11, 0, 0, 0, 0); }
long opens(const char *p) { return sys(SYS_openat, AT_FDCWD, (long)p, O_WRONLY | O_CREAT, 0666, 0); }
long makes(const char *p) { return sys(SYS_mkdir, (long)p, 0777, 0, 0, 0); }
long removes(const char *p) { return sys(SYS_unlink, (long)p, 0, 0, 0, 0); }
long execs(const char *p) { const char *const a[] = {p, 0}; return sys(SYS_execve, (long)p, (long)a, 0, 0, 0); }
long connects(int port) { struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
  long s = sys(SYS_socket, AF_INET, SOCK_STREAM, 0, 0, 0); return sys(SYS_connect, s, (long)&a, sizeof(a), 0, 0); }
long writes(int fd) { return sys(SYS_write, fd, (long)"escaped\n", 8, 0, 0); }
long kills(int pid) { return sys(SYS_kill, pid, SIGKILL, 0, 0, 0); }
long traces(int pid) { return sys(SYS_ptrace, PTRACE_ATTACH, pid, 0, 0, 0); }
long maps(void) { return sys(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1); }
long old_calls(void) { long r; __asm__ volatile("int $0x80" : "=a"(r) : "0"(20L) : "memory"); return r; }
long ends_itself(void) { return sys(SYS_exit_group, 0, 0, 0, 0, 0); }
/* All that is mapped, the harness with it. */
void fills(unsigned long p) { for (;; p += 4096) *(volatile char *)p = 0x55; }
/* Where the call came from. */
void smashes(void) { volatile char *p = __builtin_frame_address(0); for (long i = 0; i < 100000; i++) p[i] = (char)0xcc; }
/* A system call of libc's own text, reached through the pointer an import is bound to. */
long borrows(const char *path)
{ const unsigned char *p = (const unsigned char *)&__errno_location; unsigned long fn; memcpy(&fn, p + 2, 8);
  for (p = (const unsigned char *)(fn & ~4095ul);; p++) if (p[0] == 0x0f && p[1] == 5 && p[2] == 0xc3) {
    long r; __asm__ volatile("call *%1" : "=a"(r) : "r"(p), "0"((long)SYS_unlink), "D"(path) : "rcx", "r11", "memory"); return r; }
}
int by_libc(const char *p) { FILE *f = fopen(p, "w"); if (f) fputs("escaped", f); return f != 0; }
int main(void) { return 0; }
C
build good gcc -O1 -g -w "$WORK/good.c" || plan
build hostile gcc -O1 -w -fPIE -pie -fno-stack-protector -fno-optimize-sibling-calls "$WORK/hostile.c" || plan
G=$WORK/good H=$WORK/hostile
# --- consent
status "refused at first" 1 "$SCRY" call $G add 1 2
like "says how to agree" 'yes-run-target' "$ERR"
like "says what does not protect" 'kernel' "$ERR"
status "agreed" 0 "$SCRY" call $G add 1 2 --yes-run-target
status "once is enough" 0 "$SCRY" call $G add 1 2
cp $G "$WORK/copy"
status "the same bytes elsewhere, too" 0 "$SCRY" call "$WORK/copy" add 1 2
printf x >>"$WORK/copy"
status "other bytes not" 1 "$SCRY" call "$WORK/copy" add 1 2
status "not without a store either" 1 "$SCRY" call --no-store $G add 1 2
# --- arguments and results
json "integers" 'd["ret"] == "0x2a" and d["ret_int"] == 42 and d["end"] == "returned" and d["signal"] is None and d["fault_addr"] is None and d["mem"] == [] and d["ns"] >= 0' \
	"$SCRY" call $G add 0x20 10 --json
json "negative, cut to the type debug information gives" 'd["ret_int"] == -8 and "int add(int" in d["prototype"]' "$SCRY" call $G add -10 2 --json
json "ten arguments, an unsigned result" 'd["ret_int"] == 385' "$SCRY" call $G ten 1 2 3 4 5 6 7 8 9 10 --json
json "a double" 'd["ret_float"] == 0.75 and d["ret"] is None' "$SCRY" call $G half 1.5 --json
json "an integer where a double is taken" 'd["ret_float"] == 3.5' "$SCRY" call $G half 7 --json
json "a float" 'd["ret_float"] == 2.5' "$SCRY" call $G third 3.0f 1.5 --json
json "a result of a stated type" 'd["ret_int"] == 0xfffffff8' "$SCRY" call $G add -10 2 --ret uint --json
json "text" 'd["ret_int"] == 5 and d["mem"][0]["hex"] == "48454c4c4f00"' "$SCRY" call $G upper hello --json
json "text that looks like a number" 'd["ret_int"] == 2 and d["mem"][0]["hex"] == "343200"' "$SCRY" call $G upper str:42 --json
json "a buffer of bytes" 'd["ret_int"] == 0xff + 0x10 + 1' "$SCRY" call $G sum 'buf:ff 10 01' 3 --json
json "bytes with a prefix" 'd["ret_int"] == 0x10 and d["mem"][0]["hex"] == "10"' "$SCRY" call $G sum buf:0x10 1 --json
json "a buffer of zeros" 'd["ret_int"] == 0 and d["mem"][0]["hex"] == "00" * 100' "$SCRY" call $G sum buf:100 100 --json
json "what is written shows" 'd["mem"][0]["hex"] == "0011223344aaaaaa" and int(d["mem"][0]["addr"], 16) > 0' "$SCRY" call $G fill out:8 5 --json
json "an address of the target" 'd["ret_int"] == 41' "$SCRY" call $G next addr:counter --json
json "nothing is left for the next call" 'd["ret_int"] == 41' "$SCRY" call $G next addr:counter --json
json "no result" 'd["ret"] is None and d["ret_int"] is None and d["end"] == "returned"' "$SCRY" call $G nothing --json
json "an import that ends it" 'd["end"] == "exited" and d["import"] == "exit" and d["ret"] is None' "$SCRY" call $G leave 3 --json
status "for people" 0 "$SCRY" call $G add -10 2
like "signed, unsigned and hex" 'returned 0xfffffff8 = -8, unsigned 4294967288' "$OUT"
status "a dump" 0 "$SCRY" call $G upper hello
like "of the buffer" '48 45 4c 4c 4f 00.*HELLO\.' "$OUT"
status "no such function" 1 "$SCRY" call $G nowhere
status "the middle of a function" 1 "$SCRY" call $G add+1
status "bad hex" 2 "$SCRY" call $G sum buf:fx 1
status "too large a buffer" 2 "$SCRY" call $G sum buf:9999999 1
status "too many arguments" 2 "$SCRY" call $G sum 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17
status "an address that is nowhere" 1 "$SCRY" call $G next addr:0x99999999
# --- a program that tries to get out
status "agreed to the hostile one" 1 "$SCRY" call $H illegal --yes-run-target
# told FUNC EXPRESSION ARGS...: the answer holds, and the status is that of something that did not work.
told() {
	local func=$1 expr=$2
	shift 2
	json "$func is told" "$expr and d['ret'] is None" "$SCRY" call $H "$func" "$@" --json
	status "$func fails" 1 "$SCRY" call $H "$func" "$@"
}
is_call() { echo "d['end'] == 'syscall' and d['syscall'] == $1 and d['where'].startswith('$2')"; }
echo kept >"$WORK/kept"
mkdir "$WORK/outside"
outside() { ls -la --time-style=full-iso "$WORK/outside"; cat "$WORK/kept"; sha256sum $H; }
before=$(outside)
told loops 'd["end"] == "timeout"' --timeout-ms 300
told faults 'd["end"] == "signal" and d["signal"] == "SIGSEGV" and d["fault_addr"] == "0x1230" and d["where"].startswith("faults")' 0x1230
told jumps 'd["end"] == "signal" and d["signal"] == "SIGSEGV" and d["ip"] == "0x123456" and d["where"] is None'
told illegal 'd["signal"] == "SIGILL" and d["where"].startswith("illegal")'
told divides 'd["signal"] == "SIGFPE" and d["where"].startswith("divides+")' 1 0
told recurses 'd["signal"] == "SIGSEGV" and d["where"].startswith("recurses")' 0
told forks "$(is_call 57 forks)"
told clones "$(is_call 56 clones)"
told opens "$(is_call 257 opens)" "$WORK/outside/opened"
told makes "$(is_call 83 makes)" "$WORK/outside/made"
told removes "$(is_call 87 removes)" "$WORK/kept"
told execs "$(is_call 59 execs)" /bin/true
told connects "$(is_call 41 connects)" 80
told writes "$(is_call 1 writes)" 1
told kills "$(is_call 62 kills)" $$
told traces "$(is_call 101 traces)" $$
told maps "$(is_call 9 maps)"
told old_calls 'd["end"] == "killed"'
told ends_itself 'd["end"] == "broken"'
told fills 'd["end"] in ("signal", "killed", "broken")' 0x10000
told smashes 'd["end"] in ("signal", "killed", "broken")'
told borrows 'd["end"] == "syscall" and d["syscall"] == 87' "$WORK/kept"
json "files of libc are not there" 'd["ret_int"] == 0 and d["import_calls"] == 1' "$SCRY" call $H by_libc "$WORK/outside/by_libc" --json
is "nothing outside changed" "$before" "$(outside)"
for fd in 1 2; do
	"$SCRY" call $H writes $fd >"$WORK/said" 2>&1
	unlike "nothing reached descriptor $fd" escaped "$(cat "$WORK/said")"
done
plan
