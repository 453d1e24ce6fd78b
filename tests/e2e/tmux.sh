# SPDX-License-Identifier: Apache-2.0
# Sourced after lib.sh by scripts that drive the workbench in a real tmux of their own.
export SCRY_KEYS=ida TMUX_TMPDIR=$WORK
unset TMUX
tm() { tmux -L scry -f /dev/null "$@"; }
trap 'tm kill-server 2>/dev/null; finish' EXIT
screen() { tm capture-pane -p -t t; }
text() { tm send-keys -t t -l -- "$1"; }
key() { tm send-keys -t t "$@"; }

# start ARGS...: the workbench in a new pane of 120x40, in place of the last one.
start() {
	# The server stays while there is no session: one that is about to end refuses the next.
	tm start-server \; set-option -g exit-empty off
	tm kill-session -t t 2>/dev/null
	tm new-session -d -s t -x 120 -y 40 "exec $(printf '%q ' "$SCRY" "$@")"
	tm set-option -g escape-time 10
}

# shows NAME TEXT: the pane comes to show it; the limit is for a machine that is busy.
shows() {
	for _ in $(seq 600); do
		screen 2>/dev/null | grep -qF -- "$2" && break
		sleep 0.05
	done
	if screen | grep -qF -- "$2"; then pass "$1"; else fail "$1" "not on the screen: $2" "$(screen | tail -n 38)"; fi
}
