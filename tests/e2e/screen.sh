# SPDX-License-Identifier: Apache-2.0
# Sourced by scripts of the workbench in a shell in a tmux of their own: what is on the screen, waited for. $work is a folder that goes with the
# script, whose other ends are what at_end does.
if ! command -v tmux >/dev/null; then
	echo "1..0 # skip no tmux"
	exit 0
fi
work=$(mktemp -d)
export SCRY_KEYS=ida SCRY_STORE="$work/store" TMUX_TMPDIR="$work"
unset TMUX
tm() { tmux -L scry -f /dev/null "$@"; }
at_end() { :; }
trap 'tm kill-server 2>/dev/null; at_end; rm -rf "$work"' EXIT
n=0 failed=0
ok() { # RESULT NAME
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		tm capture-pane -p -t t | sed 's/^/# /'
		failed=1
	fi
}
screen() { tm capture-pane -p -t t; }
# until_true NAME COMMAND...: the limit is for a machine that is busy.
until_true() {
	name=$1 tries=0
	shift
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -gt 1200 ] && break
		sleep 0.05
	done
	"$@"
	ok $? "$name"
}
shows() { screen | grep -qE -- "$1"; }
wait_for() { until_true "$2" shows "$1"; }
keys() { tm send-keys -t t "$@"; }
text() { tm send-keys -t t -l -- "$1"; }
# shell WIDTH HEIGHT: a shell in a new pane.
shell() {
	tm new-session -d -s t -x "$1" -y "$2" "PS1='shell> ' bash --norc --noprofile" || exit 1
	tm set-option -g escape-time 10
	wait_for 'shell>' 'a shell in tmux'
}
