#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every command line of README.md's "On the command line" as it stands there, and `scry FILE` without a terminal.
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
ln -s "$SCRY" "$work/bin/scry"
PATH=$work/bin:$PATH
export PATH
cd "$work" || exit 1
n=0
check() { # STATUS NAME
	n=$((n + 1))
	if [ "$1" = 0 ] && [ -s out ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; cat err; fi
}
awk '/^## /{on = 0} /^## On the command line/{on = 1} on && /^scry /' "$here/README.md" >lines
while IFS= read -r line; do
	sh -c "$line" >out 2>err </dev/null
	status=$?
	[ -f blocks.svg ] && mv blocks.svg out
	check $status "$line"
done <lines
scry /bin/bash >out 2>err </dev/null
status=$?
grep -q '^functions' out || status=1
check $status "scry FILE without a terminal prints the overview"
[ "$n" -gt 10 ] || echo "not ok $((n + 1)) - README.md has its command lines"
