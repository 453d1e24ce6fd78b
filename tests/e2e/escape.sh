#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program that tries to get out of where its functions are run: called, verified and as a code image; nothing outside changes, and
# how each ended is told.
. "$(dirname "$0")/lib.sh"
command -v gcc >/dev/null || { skip "escape" "no gcc"; plan; }
build hostile gcc -O1 -w -fPIE -pie -fno-stack-protector -fno-optimize-sibling-calls "$ROOT/tests/data/prog/hostile.c" || plan
H=$WORK/hostile I=$WORK/hostile.img
echo kept >"$WORK/kept"
mkdir "$WORK/outside"
outside() { ls -lA --time-style=full-iso "$WORK/outside"; cat "$WORK/kept"; sha256sum $H $I; }
status "not called before somebody agreed" 1 "$SCRY" call $H illegal
status "nor verified" 1 "$SCRY" verify $H illegal
status "its image is built" 0 "$SCRY" native build $H --all -o $I
status "and not run" 1 "$SCRY" native run $I illegal
like "what protects and what does not is said" 'without files.*network.*does not protect.*kernel' "$ERR"
status "agreed" 1 "$SCRY" call $H illegal --yes-run-target
# Somebody to be killed and traced, whose memory could be written.
sleep 1000 &
VICTIM=$!
before=$(outside)
FUNCS=()
# told FUNC EXPRESSION ARGS...: called, the answer holds and the status is that of something that did not work; from the image it
# ends badly, too (where in the target, it cannot say).
told() {
	local func=$1 expr=$2 limit=(--timeout-ms 60000)
	shift 2
	case "$*" in *--timeout-ms*) limit=() ;; esac
	FUNCS+=("$func")
	json "$func, called" "$expr and d['ret'] is None" "$SCRY" call $H "$func" "$@" "${limit[@]}" --json
	cp "$WORK/json" "$WORK/called"
	json "$func, as an image" "d['ret'] is None and d['end'] in ('signal', 'killed', 'broken', json.load(open('$WORK/called'))['end'])" \
		"$SCRY" native run $I "$func" "$@" "${limit[@]}" --json
}
is_call() { echo "d['end'] == 'syscall' and d['syscall'] == $1 and d['where'].startswith('$2')"; }
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
told kills "$(is_call 62 kills)" $VICTIM
told traces "$(is_call 101 traces)" $VICTIM
told maps "$(is_call 9 maps)"
told old_calls 'd["end"] == "killed"'
told ends_itself 'd["end"] == "broken"'
told fills 'd["end"] in ("signal", "killed", "broken")' 0x70000000
told smashes 'd["end"] in ("signal", "killed", "broken")'
told borrows 'd["end"] == "syscall" and d["syscall"] == 87' "$WORK/kept"
told middles 'd["end"] in ("signal", "killed", "broken")' 0x41414141
told vforks "$(is_call 58 vforks)"
told new_clones "$(is_call 435 new_clones)"
told rings "$(is_call 425 rings)"
told memory_files "$(is_call 319 memory_files)"
told dumps "$(is_call 157 dumps)"
told kills_all "$(is_call 62 kills_all)"
told stops "$(is_call 62 stops)"
told own_memory "$(is_call 2 own_memory)"
told others_memory "$(is_call 311 others_memory)" $VICTIM
told timers "$(is_call 38 timers)"
told alarms "$(is_call 37 alarms)"
told masks "$(is_call 14 masks)"
told handlers "$(is_call 13 handlers)"
told stacks "$(is_call 131 stacks)"
told moves "$(is_call 25 moves)"
told unmaps "$(is_call 11 unmaps)"
told protects "$(is_call 10 protects)" addr:main
told x32 'd["end"] == "killed" and d["signal"] == "SIGSYS"'
told old_execs 'd["end"] == "killed" and d["signal"] == "SIGSYS"' /bin/true
told unstoppable 'd["end"] == "timeout"' --timeout-ms 300
status "what did not work fails" 1 "$SCRY" call $H forks --timeout-ms 60000
# Trials make memory where it is asked for and answer calls to nowhere: those do no harm then.
json "verified, none is good that makes calls" "len(d['items']) == ${#FUNCS[@]} and not [i for i in d['items'] if i['status'] not in ('inconclusive', 'unrepeatable', 'not_run') and not (i['status'] == 'equal' and i['func'] in ('faults', 'jumps', 'divides', 'middles'))]" \
	"$SCRY" verify $H "${FUNCS[@]}" --seeds 2 --cpu-ms 20 --json
json "files of libc are not there" 'd["ret_int"] == 0 and d["import_calls"] == 1' "$SCRY" call $H by_libc "$WORK/outside/by_libc" --timeout-ms 60000 --json
status "the other process lives" 0 kill -0 $VICTIM
like "and was not stopped" '^State:.*[SR] ' "$(cat /proc/$VICTIM/status)"
kill $VICTIM
is "nothing outside changed" "$before" "$(outside)"
for fd in 1 2; do
	"$SCRY" call $H writes $fd --timeout-ms 60000 >"$WORK/said" 2>&1
	unlike "nothing reached descriptor $fd" escaped "$(cat "$WORK/said")"
done
# --- who asked is gone
"$SCRY" call $H loops --timeout-ms 600000 >"$WORK/said" 2>&1 &
CALL=$!
# Without the one that looks.
ours() { grep -la -- "${H%?}[${H: -1}]" /proc/[0-9]*/cmdline 2>/dev/null | wc -l; }
# wait_for NAME COUNT: that many processes of the call are there, in the end.
wait_for() {
	for _ in $(seq 600); do
		[ "$(ours)" -eq "$2" ] && { pass "$1"; return; }
		sleep 0.1
	done
	fail "$1" "$(ours) processes"
}
wait_for "a call is three processes" 3
kill -9 $CALL
wait $CALL 2>/dev/null
wait_for "and none when who asked was killed" 0
"$SCRY" call $H loops --timeout-ms 600000 >"$WORK/said" 2>&1 &
CALL=$!
wait_for "again" 3
kill -INT $CALL
wait $CALL
is "interrupted, it ends" 130 $?
like "and says so" cancelled "$(cat "$WORK/said")"
wait_for "and leaves none" 0
plan
