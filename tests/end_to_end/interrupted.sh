#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Either side is stopped or killed half way. The other one says so, no partial file appears under its
# final name, and a receiver that stays serves the next sender.
. "$(dirname "$0")/setup.sh"
make_work_directory
link_kind=memif
start_pair
# At 4 MB a second it never arrives whole before the interruption.
random_file "$work/long" 200M

out=$work/out
has_partial_file() { [ -n "$(find "$out" -name '.stp-recv.*' -size +1M)" ]; }

# begin: starts a transfer and waits until it is under way; pids in $receiver and $sender.
begin() {
  rm -f "$out"/.stp-recv.*
  start_receiver "receiver$1" b "$out" "$1"
  receiver=$!
  await_receiver "receiver$1"
  start "$work/sender$1.log" "$bin/stp-send" --link "stpd:$work/a.sock" --bwlimit 4M "$work/long" "10.9.0.2:$1"
  sender=$!
  expect wait_for 20 has_partial_file
}

say "the receiver is stopped"
begin 3001
kill -TERM "$receiver"
wait "$receiver"
expect [ $? -eq 1 ]
expect [ ! -e "$out/long" ]
wait "$sender"
expect [ $? -eq 1 ]
expect contains "$work/sender3001.log" "long to 10.9.0.2:3001: the receiver was stopped"
expect grep -q "from .*: long: stopped here, by a signal, before all of it had come" "$work/receiver3001.log"

say "the sender is stopped"
begin 3002
kill -TERM "$sender"
wait "$sender"
expect [ $? -eq 1 ]
expect [ ! -e "$out/long" ]
expect wait_for 10 grep -q "from .*: long: the sender was stopped by a signal" "$work/receiver3002.log"
stop "$receiver"

say "the sender is killed"
begin 3003
kill_at_once "$sender"
expect [ ! -e "$out/long" ]
random_file "$work/file" 1M
expect send_from a 60 "$work/file" 10.9.0.2:3003
expect same "$work/file" "$out/file"
rm "$out/file"
stop "$receiver"

say "the receiver is killed"
begin 3004
kill_at_once "$receiver"
wait "$sender"
expect [ $? -eq 1 ]
expect [ ! -e "$out/long" ]

say "a script is told to end again and again, with all of its process group, while it ends"
cat >"$work/script" <<SCRIPT
program=script
. "$tools/lib/common.sh"
make_work_directory
start "\$work/log" sleep 60
echo "\$work \$!"
wait
SCRIPT
has_line() { [ -s "$work/ready" ]; }
for _ in 1 2 3 4 5; do
  : >"$work/ready"
  setsid bash "$work/script" >"$work/ready" 2>/dev/null &
  script=$!
  started+=($script)
  expect wait_for 20 has_line
  read -r left child <"$work/ready"
  began=$SECONDS
  while kill -TERM -- "-$script" 2>/dev/null; do [ $((SECONDS - began)) -lt 20 ] || fail "it does not end"; done
  wait "$script" 2>/dev/null
  expect [ $? -eq 143 ]
  expect [ ! -e "$left" ]
  expect [ ! -e "/proc/$child" ]
done
passed
