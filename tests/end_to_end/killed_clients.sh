#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Clients are killed half way, 12 times; with STP_LONG 50 times (STP_TEST_ROUNDS: another number than 50, of which the
# short form is a quarter). Meanwhile another pair transfers files through the same two stpds without an error.
# Afterwards the daemons keep nothing of the killed clients.
# STP_TEST_LINK: the kind of link.
. "$(dirname "$0")/setup.sh"
link_kind=${STP_TEST_LINK:-memif}
if [ "$link_kind" = veth ]; then needs_namespaces; fi
make_work_directory
start_pair
RANDOM=${STP_TEST_SEED:-20000215}
say "seed ${STP_TEST_SEED:-20000215}"

start_receiver steady b "$work/steady" 3000
await_receiver steady
random_file "$work/file" 4M
random_file "$work/long" 256M # four seconds

# Sends the same file over and over until it is told to end. Any error ends it with that status.
steady_pair() {
  local rounds=0
  while [ ! -e "$work/enough" ]; do
    timeout 60 "$bin/stp-send" --quiet --link "stpd:$work/a.sock" "$work/file" 10.9.0.2:3000 ||
      exit 1
    rounds=$((rounds + 1))
  done
  echo "steady pair: $rounds files"
}
export -f steady_pair
export bin work
start "$work/steady-sender.log" bash -c steady_pair
steady=$!
expect wait_for 60 test -e "$work/steady/file"

# The clients' memory that both daemons map, and the daemons' open files.
holdings() {
  cat "/proc/$stpd_a/maps" "/proc/$stpd_b/maps" | grep -c memfd:
}
open_files() { find "/proc/$stpd_a/fd" "/proc/$stpd_b/fd" -mindepth 1 2>/dev/null | wc -l; }
# The steady pair has less while it ends a connection and begins the next one: the most of some looks counts.
holdings_before=0 files_before=0
for _ in {1..20}; do
  now=$(holdings)
  [ "$now" -le "$holdings_before" ] || holdings_before=$now
  now=$(open_files)
  [ "$now" -le "$files_before" ] || files_before=$now
done

rounds=${STP_TEST_ROUNDS:-50}
[ -n "${STP_LONG-}" ] || rounds=$((rounds / 4))
for round in $(seq "$rounds"); do
  port=$((4000 + round))
  start_receiver "victim$round" b "$work/out" "$port"
  receiver=$!
  await_receiver "victim$round"
  start "$work/victim-sender.log" "$bin/stp-send" --quiet --link "stpd:$work/a.sock" \
    --bwlimit 64M "$work/long" "10.9.0.2:$port"
  sender=$!
  sleep "0.$(printf '%03d' $((RANDOM % 400)))"
  if [ $((RANDOM % 2)) -eq 0 ]; then
    kill_at_once "$sender"
    stop "$receiver"
  else
    kill_at_once "$receiver"
    stop "$sender"
  fi
  stop "$sender"
  rm -rf "$work/out"
  kill -0 "$steady" 2>/dev/null || break
done

touch "$work/enough"
wait "$steady"
expect [ $? -eq 0 ]
tail -n 1 "$work/steady-sender.log"
expect same "$work/file" "$work/steady/file"
as_before() { [ "$(holdings)" -le "$holdings_before" ] && [ "$(open_files)" -le "$files_before" ]; }
wait_for 10 as_before ||
  fail "mapped memory: $(holdings), $holdings_before before; open files: $(open_files), $files_before before"
stop "$stpd_a"
stop "$stpd_b"
# Every connection that was opened has ended.
count() { sed -n "s/^stpd:   $2 //p" "$work/$1.log" | grep . || echo 0; }
for side in a b; do
  expect [ "$(count $side vc_opened)" -eq $(($(count $side vc_closed) + $(count $side vc_failed))) ]
done
passed
