#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# stpd is restarted at either end: stp-send --retry goes on where the transfer broke off, and stp-recv
# listens again by itself. Also standard input and output, and errors of --out at the start.
. "$(dirname "$0")/setup.sh"
needs_namespaces
make_work_directory
link_kind=veth
start_pair
megabytes=16
[ -z "${STP_LONG-}" ] || megabytes=64
random_file "$work/large" "${megabytes}M"
out=$work/out
part_is_there() { [ -n "$(find "$out" -name '.stp-recv.*' -size +1M)" ]; }

start_receiver receiver b "$out" 3000
receiver=$!
await_receiver receiver
listens_again() { [ "$(grep -c '^listening on' "$work/receiver.log")" -ge "$1" ]; }

# restart SIDE HOLDER SIGNAL: its stpd gets the signal.
restart() {
  local stpd="stpd_$1"
  kill "-$3" "${!stpd}"
  wait "${!stpd}" 2>/dev/null
  start_stpd "$1" "$2" "iface:stp0${queues:-}"
  eval "stpd_$1=$!"
  await_stpd "$1"
}

say "the receiver's stpd is restarted"
start "$work/sender.log" "$bin/stp-send" --link "stpd:$work/a.sock" --retry 60 --bwlimit "$((megabytes == 64 ? 16 : 8))M" \
  "$work/large" 10.9.0.2:3000
sender=$!
expect wait_for 30 part_is_there
restart b "$side_b" TERM
expect wait_for 30 listens_again 2
wait "$sender"
expect [ $? -eq 0 ]
expect same "$work/large" "$out/large"
expect says "$work/sender.log" "trying again for 60 s (--retry)"
sent=$(sed -nE 's/^sent .*: ([0-9]+) bytes in .*/\1/p' "$work/sender.log")
expect [ "$sent" -lt $((megabytes << 20)) ]

# A stpd that is killed says goodbye to nobody: the receiver takes the first transfer for alive and
# keeps its file for a while.
for signal in TERM KILL; do
  say "the sender's stpd is restarted after SIG$signal"
  rm "$out/large"
  start "$work/sender-$signal.log" "$bin/stp-send" --link "stpd:$work/a.sock" --retry 60 \
    --bwlimit "$((megabytes == 64 ? 16 : 8))M" "$work/large" 10.9.0.2:3000
  sender=$!
  expect wait_for 30 part_is_there
  restart a "$side_a" "$signal"
  wait "$sender"
  expect [ $? -eq 0 ]
  expect same "$work/large" "$out/large"
  expect kill -0 "$receiver"
done

say "without --retry the sender says so and ends"
rm "$out/large"
start "$work/sender3.log" "$bin/stp-send" --link "stpd:$work/a.sock" --bwlimit "$((megabytes == 64 ? 16 : 8))M" \
  "$work/large" 10.9.0.2:3000
sender=$!
expect wait_for 30 part_is_there
kill -TERM "$receiver"
wait "$receiver"
wait "$sender"
expect [ $? -eq 1 ]

say "standard input to standard output"
setsid "$bin/stp-recv" --link "stpd:$work/b.sock" --listen :3001 --out - --retry 20 \
  >"$work/piped" 2>"$work/piped.log" </dev/null &
receiver=$!
started+=("$receiver")
expect timeout 60 "$bin/stp-send" --link "stpd:$work/a.sock" --retry 20 --name piped - 10.9.0.2:3001 \
  <"$work/large" >"$work/said" 2>&1
expect says "$work/said" "sent piped: "
wait "$receiver"
expect [ $? -eq 0 ]
expect same "$work/large" "$work/piped"

say "what is wrong with --out is said at the start"
timeout 20 "$bin/stp-recv" --link "stpd:$work/b.sock" --listen :3002 --out "$work/nowhere" \
  >"$work/said" 2>&1
expect [ $? -eq 1 ]
expect says "$work/said" "name a directory that exists"
as_anybody=()
[ "$(id -u)" -ne 0 ] || as_anybody=(setpriv --bounding-set=-dac_override,-dac_read_search)
mkdir -m 000 "$work/closed"
"${as_anybody[@]}" timeout 20 "$bin/stp-recv" --link "stpd:$work/b.sock" --listen :3002 --out "$work/closed" \
  >"$work/said" 2>&1
expect [ $? -eq 1 ]
expect says "$work/said" "Permission denied; name a directory that this user may write to"

say "a full disk is one line at either end"
if mkdir "$work/small" && mount -t tmpfs -o size=1m tmpfs "$work/small" 2>/dev/null; then
  mkdir "$work/many"
  for i in $(seq 1 60); do random_file "$work/many/f$i" 50000; done
  start "$work/full.log" "$bin/stp-recv" --link "stpd:$work/b.sock" --listen :3003 \
    --out "$work/small" --once
  receiver=$!
  await_receiver full
  send_from a 60 -r "$work/many" 10.9.0.2:3003 >"$work/full-sender.log" 2>&1
  expect [ $? -eq 1 ]
  wait "$receiver"
  umount "$work/small"
  expect [ "$(grep -c 'not enough space' "$work/full-sender.log")" -eq 1 ]
  expect [ "$(grep -c 'not enough space' "$work/full.log")" -eq 1 ]
  expect says "$work/full-sender.log" "more files were not sent: the receiver has no space left"
fi
passed
