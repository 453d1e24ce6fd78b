# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts of tests/e2e and tests/golden: TAP lines, a work folder and a store of the script's own.
# SCRY is the binary under test.
set -u
: "${SCRY:?SCRY must name the binary under test}"
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
WORK=$(mktemp -d "${TMPDIR:-/tmp}/scry-test.XXXXXX")
export SCRY_STORE=$WORK/store
export LC_ALL=C.UTF-8 TERM=xterm
unset NO_COLOR COLORTERM SUDO_UID SUDO_GID XDG_DATA_HOME
N=0
FAILS=0

finish() {
	chmod -R u+rwx "$WORK" 2>/dev/null
	rm -rf "$WORK"
}
trap finish EXIT

pass() {
	N=$((N + 1))
	echo "ok $N - $1"
}

fail() {
	N=$((N + 1))
	FAILS=$((FAILS + 1))
	echo "not ok $N - $1"
	shift
	[ $# -gt 0 ] && printf '%s\n' "$@" | head -40 | sed 's/^/# /'
	return 0
}

skip() {
	N=$((N + 1))
	echo "ok $N - $1 # SKIP $2"
}

plan() {
	echo "1..$N"
	exit $((FAILS > 0))
}

# ok NAME COMMAND...: it must succeed.
ok() {
	local name=$1 out
	shift
	if out=$("$@" 2>&1); then pass "$name"; else fail "$name" "status $? of: $*" "$out"; fi
}

# is NAME EXPECTED ACTUAL
is() {
	if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "expected: $2" "got:      $3"; fi
}

# like NAME REGEX TEXT (extended, over lines)
like() {
	if printf '%s\n' "$3" | grep -Eq -- "$2"; then pass "$1"; else fail "$1" "no line matches: $2" "$3"; fi
}

unlike() {
	if printf '%s\n' "$3" | grep -Eq -- "$2"; then fail "$1" "a line matches: $2" "$3"; else pass "$1"; fi
}

# status NAME CODE COMMAND...: the exit status; output in $OUT, diagnostics in $ERR.
status() {
	local name=$1 want=$2 got
	shift 2
	OUT=$("$@" 2>"$WORK/stderr" </dev/null)
	got=$?
	ERR=$(cat "$WORK/stderr")
	if [ "$got" = "$want" ]; then pass "$name"; else fail "$name" "status $got, expected $want, of: $*" "$OUT" "$ERR"; fi
}

# json NAME EXPRESSION COMMAND...: stdout must be one JSON document d for which the Python expression holds.
json() {
	local name=$1 expr=$2 why
	shift 2
	if ! "$@" >"$WORK/json" 2>"$WORK/stderr" </dev/null; then
		case $- in *e*) ;; esac
	fi
	if why=$(python3 - "$WORK/json" "$expr" 2>&1 <<'PY'
import json, sys
d = json.load(open(sys.argv[1], encoding="utf-8"))
if not eval(sys.argv[2]):
    print("does not hold:", sys.argv[2])
    print(json.dumps(d)[:600])
    sys.exit(1)
PY
	); then pass "$name"; else fail "$name" "$*" "$why" "$(cat "$WORK/stderr")"; fi
}

# build NAME COMPILER ARGS...: the program $WORK/NAME, or status 1 when the compiler is not here.
build() {
	local name=$1
	shift
	command -v "$1" >/dev/null 2>&1 || return 1
	"$@" -o "$WORK/$name" >"$WORK/build.log" 2>&1 && return 0
	fail "build $name" "$(cat "$WORK/build.log")"
	return 1
}
