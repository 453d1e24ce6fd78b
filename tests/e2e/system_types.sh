#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the system's headers declare: prototypes of imports, and types that nobody had to declare.
. "$(dirname "$0")/lib.sh"
cat >"$WORK/a.c" <<'C'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
struct stat st;
int main(int argc, char **argv)
{
	int fd = open(argv[0], O_RDONLY | O_CREAT, 0600), n;
	if (fstat(fd, &st) || scanf("%d", &n) != 1)
		exit(1);
	return printf("%ld\n", (long)st.st_size) + n + argc;
}
C
build a gcc -O1 -fno-builtin "$WORK/a.c" || { skip "the system's types" "no gcc"; plan; }
F=$WORK/a
json "imports have prototypes" '{i["name"]: i["prototype"] for i in d["items"]}["open"] == "int open(const char *file, int oflag, ...)"' "$SCRY" imports "$F" --json
json "also under the name of the library" '{i["name"]: i["prototype"] for i in d["items"]}["__isoc99_scanf"] == "int __isoc99_scanf(const char *restrict format, ...)"' \
	"$SCRY" imports "$F" --json
json "with what does not return" '"noreturn" in {i["name"]: i["prototype"] for i in d["items"]}["exit"]' "$SCRY" imports "$F" --json
like "the table has them" 'PROTOTYPE' "$("$SCRY" imports "$F")"
like "so has the listing" 'extern printf +; int printf\(const char \*restrict format, \.\.\.\)' "$("$SCRY" heads "$F" printf@got --count 400; "$SCRY" heads "$F" printf --count 2)"
json "type_at says where from" 'd["prototype"].startswith("int open(") and d["source"]=="builtin"' "$SCRY" type_at "$F" open --json
status "a prototype of one's own" 0 "$SCRY" set_prototype "$F" open 'long open(void)'
json "goes first" 'd["prototype"]=="long open(void)" and d["source"]=="user"' "$SCRY" type_at "$F" open --json
status "their types can be used" 0 "$SCRY" retype "$F" st 'struct stat'
like "as if they were declared" '\.st_mtim\.tv_sec ' "$("$SCRY" heads "$F" st --count 30)"
size=$((0x$(printf "#include <sys/stat.h>\nint size[sizeof(struct stat)];" | gcc -x c -c -o "$WORK/o" - && nm -S "$WORK/o" | cut -d" " -f2) / 4))
json "with the size the compiler gives them" "d['size'] == ${size:-0} and d['source'] == 'builtin'" "$SCRY" type "$F" 'struct stat' --json
status "said anew" 0 "$SCRY" declare "$F" 'struct timespec { int t; };'
json "what people say goes first" 'd["size"] == 4 and d["source"] == "user"' "$SCRY" type "$F" 'struct timespec' --json
json "they are listed when asked for" 'd["total"] > 1000 and all(i["source"]=="builtin" for i in d["items"])' "$SCRY" types "$F" --source builtin --json
"$SCRY" types "$F" --c >"$WORK/t.h"
ok "a header with what is used compiles" gcc -std=gnu11 -Wall -Werror -fsyntax-only -x c "$WORK/t.h"
like "and has it" '^struct stat \{' "$(cat "$WORK/t.h")"
json "the first member of a struct without a tag is of a type, not of a tag" 'd["size"] == 8' "$SCRY" type /bin/cat Elf32_Dyn --json
plan
