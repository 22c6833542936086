#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: top.sh BUILD
# stpctl top on a terminal of 80 x 24, which is tmux's: what a person sees of a daemon with a file on its way, what keys do,
# and that the terminal echoes as before when it ends.
. "$(dirname "$0")/../end_to_end/setup.sh"
command -v tmux >/dev/null || skip "no tmux here"
make_work_directory
start_stpd one - loop
await_stpd one
start_receiver receiver one "$work/out" 3000
await_receiver receiver
receiver=$(session_of $!)
random_file "$work/file" 8M
STP_LINK=stpd:$work/one.sock start "$work/send.log" "$bin/stp-send" --bwlimit 256K "$work/file" :3000
sender=$!

screen() { tmux -S "$work/tmux" -f /dev/null "$@" </dev/null; }
end_screen() { screen kill-server 2>/dev/null; clean_up; }
trap end_screen EXIT
LC_ALL=C.UTF-8 screen new-session -d -x 80 -y 24 \
  "'$bin/stpctl' --socket '$work/one.sock' top --interval 0.1; echo status \$?; exec cat" || skip "tmux does not start"

# has_all REGEX...: the screen has a line for each of them. Without a process for each.
has_all() {
  local regex line
  seen=$(screen capture-pane -p)
  for regex; do
    while IFS= read -r line; do [[ ! $line =~ $regex ]] || continue 2; done <<<"$seen"
    return 1
  done
}
shows() { wait_for 20 has_all "$@" || { printf '%s\n' "$seen" >&2; fail "the screen does not show: $*"; }; }
keys() { screen send-keys "$@"; }
fits() { [ "$(wc -l <<<"$seen")" -le "$1" ] && [ "$(wc -L <<<"$seen")" -le "$2" ]; }

shows '^overview, every 0\.1 s +\? help$' '^loop$' 'max [1-9]'
expect fits 24 80
keys c
shows '^connections, every' '^connections 2 by rate' "^ *$sender +-> +3000 +[0-9]+ +02:00:00:00:00:01 +open"
expect fits 24 80
keys / "$sender" Enter
shows "^connections 1 by rate with \"$sender\" of 2" "^ *$sender +->"
keys Escape s
shows '^connections 2 by '
keys p
shows '^programs 2 by rate' "^ *$sender +0 " "^ *$receiver +0 "
keys l
shows '^links 1 by ' '^loop +up '
keys '?'
shows '^o  overview +c  connections$' '^q      end$'
expect fits 24 80
keys Escape ' '
shows '^links, every 0\.1 s, stopped'
screen resize-window -x 40 -y 12
keys ' ' c
shows '^connections, every 0\.1 s +\? help$' "^ *$sender "
expect fits 12 40
keys q
shows '^status 0'
# What is typed is seen again, and lines end.
keys after Enter
shows '^after$'
passed
