#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The workbench in a real tmux, driven by send-keys and read by capture-pane. Waits for what it expects, never for a time.
# SCRY is the program; prints TAP.
set -u
SCRY=${SCRY:?}
. "$(dirname "$0")/screen.sh"
shows() { screen | grep -qF -- "$1"; }

shell 120 40
text "$SCRY /bin/bash"
keys Enter
wait_for ' bash  ELF64' 'the header'
wait_for 'ready' 'the analysis ends'
wait_for 'Ctrl+P everything' 'the footer'
text g
wait_for 'go to:' 'the prompt'
text main
keys Enter
wait_for ' listing' 'the listing'
screen | grep -q '^.*>[0-9a-f]\{8,\} ' && ok 0 'the current line is marked' || ok 1 'the current line is marked'
keys Tab
wait_for ' C  L' 'Tab to the C'
keys C-Home
wait_for 'struct scry_x86_64 *const m' 'which is the function'
keys Tab
wait_for ' listing' 'and back'
keys BTab
wait_for ' functions' 'Shift+Tab to the functions'
text /
wait_for 'filter:' 'the filter prompt'
text read
wait_for '/read' 'the filter acts while it is typed'
keys Enter
keys Enter
wait_for ' listing' 'Enter opens the function'
text x
wait_for 'References to' 'the references dialog'
keys Escape
text '"'
wait_for '> Strings' 'the strings'
text L
text '\'
wait_for ' hex' 'the hex view'
text '\'
keys C-p
wait_for 'Every action' 'the palette'
text 'memory'
wait_for 'Memory map: segments' 'found by typing'
keys Enter
wait_for '> Memory map' 'and done'
text L
tm resize-window -t t -x 60 -y 15
wait_for 'Enter follow' 'a smaller window'
[ "$(screen | wc -l)" -le 15 ] && ok 0 'fits' || ok 1 'fits'
tm resize-window -t t -x 160 -y 50
wait_for 'Functions' 'a larger window'
# 24-bit colour survives: the pane holds the theme's own colours.
tm capture-pane -p -e -t t | grep -q '48;2;20;23;28' && ok 0 'truecolour in tmux, asked by name' || ok 1 'truecolour in tmux, asked by name'
text q
wait_for 'shell>' 'q gives the shell back'
text 'echo status $? left'
keys Enter
wait_for 'status 0 left' 'with status 0 and no stray input'
screen | grep -q 'ELF64' && ok 1 'the screen of before is back' || ok 0 'the screen of before is back'
text "clear; $SCRY --no-sync doctor | cut -c1-110"
keys Enter
wait_for 'tmux escape-time' 'doctor asks tmux how long Esc takes'
wait_for 'set-clipboard on' 'and the one that drops what is copied'
wait_for ' tmux 3' 'asks the terminal its name'
wait_for 'not used: SCRY_NO' 'and says what is not to be used'
text "clear; $SCRY /bin/bash"
keys Enter
wait_for 'Ctrl+P everything' 'started again'
keys C-p
wait_for 'Every action' 'the palette again'
text 'suspend'
wait_for 'Suspend: back' 'has a suspend'
keys Enter
wait_for 'shell>' 'suspended: the shell'
text 'echo while it is $((3 - 3)) away'
keys Enter
wait_for 'while it is 0 away' 'works'
text fg
keys Enter
wait_for 'Ctrl+P everything' 'fg brings the workbench back'
text g
wait_for 'go to:' 'with a keyboard'
keys Escape
pid=$(tm list-panes -t t -F '#{pane_pid}')
read -r child _ <"/proc/$pid/task/$pid/children"
kill -SEGV "$child"
wait_for 'shell>' 'a fault gives the shell back'
text 'echo after the $((1 + 1))nd'
keys Enter
wait_for 'after the 2nd' 'and the shell echoes'
echo "1..$n"
exit $failed
