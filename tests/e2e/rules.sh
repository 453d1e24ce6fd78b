#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Detections: each rule that comes with scry against a program that does what it looks for, and one that comes near it.
. "$(dirname "$0")/lib.sh"

if ! build subject cc -O1 "$ROOT/tests/data/prog/rules.c"; then
	skip "rules" "the subject cannot be built"
	plan
	exit
fi
S=$WORK/subject
# The subject names folders: in one of its own.
mkdir -p "$WORK/at"

status "the rules are listed" 0 "$SCRY" trace --rules
is "every file of rules is one of them" "$(ls "$ROOT/src/live/trace/rules" | sed 's/\.rule$//')" "$("$SCRY" trace --rules | cut -d' ' -f1)"
SOURCE=bpf
"$SCRY" trace --source bpf -e none -- true >/dev/null 2>&1 || SOURCE=ptrace
for file in "$ROOT"/src/live/trace/rules/*.rule; do
	rule=$(basename "$file" .rule)
	"$SCRY" trace --source "$SOURCE" --rule all --json -- "$S" "$rule" yes "$WORK/at" >"$WORK/yes" 2>/dev/null
	"$S" "$rule" no "$WORK/at" >/dev/null 2>&1
	[ $? != 2 ]
	is "$rule: has both subjects" 0 $?
	"$S" "$rule" yes "$WORK/at" >/dev/null 2>&1
	if [ $? = 77 ]; then
		skip "$rule: found" "the machine does not let it be done"
	else
		json "$rule: found" "d['rule'] == '$rule' and d['pid'] and d['cause']['v'] == 1" grep "\"rule\":\"$rule\"" "$WORK/yes"
	fi
	is "$rule: not found" "" "$("$SCRY" trace --source "$SOURCE" --rule all --json -- "$S" "$rule" no "$WORK/at" 2>/dev/null | grep "\"rule\":\"$rule\"")"
done

# As text; a rule of one's own; what is wrong with one is said.
like "a finding as text" '^!!! low anti-debug: .*T1622.*: process [0-9]* subject (.*/subject)' "$("$SCRY" trace --rule anti-debug -- "$S" anti-debug yes "$WORK/at" 2>&1)"
like "its event is with it" '^  *ptrace\(PTRACE_TRACEME' "$("$SCRY" trace --rule anti-debug -- "$S" anti-debug yes "$WORK/at" 2>&1)"
like "and the call site" '^  *at [a-z_]+ 0x' "$("$SCRY" trace --source "$SOURCE" --rule anti-debug -- "$S" anti-debug yes "$WORK/at" 2>&1)"
"$SCRY" trace --source "$SOURCE" --rule anti-debug --json -- "$S" anti-debug yes "$WORK/at" >"$WORK/yes" 2>/dev/null
json "in JSON, too" "d['cause']['site']['module'].endswith('/subject') and d['cause']['site']['func']" grep '"rule":"anti-debug"' "$WORK/yes"
printf 'rule mine\ntitle Mine\nseverity info\nevent exec where argv has "yes" and exe ~ "*/subject"\n' >"$WORK/mine.rule"
like "a rule from a file" '^!!! info mine: Mine: process' "$("$SCRY" trace --rule "$WORK/mine.rule" -- "$S" anti-debug yes "$WORK/at" 2>&1)"
is "with -e the calls are shown, too" 1 "$("$SCRY" trace -e getpid --rule "$WORK/mine.rule" -- "$S" kexec no "$WORK/at" 2>&1 | grep -c '^getpid()')"
printf 'rule mine\ntitle Mine\nseverity info\nevent exec where\n argz has "yes"\n' >"$WORK/bad.rule"
status "a wrong rule" 2 "$SCRY" trace --rule "$WORK/bad.rule" -- /bin/true
like "says where" "bad.rule:5: the event has nothing called 'argz'" "$("$SCRY" trace --rule "$WORK/bad.rule" -- /bin/true 2>&1)"
status "no such rule" 125 "$SCRY" trace --rule no-such-rule -- /bin/true
plan
