#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A program or daemon that gets no core for seconds, as on a busy machine, is only slow: whoever
# connects to it waits for it, but not for ever.
. "$(dirname "$0")/setup.sh"
make_work_directory
link_kind=memif
start_pair
random_file "$work/file" 64K
start_receiver receiver b "$work/out" 3000
receiver=$!
await_receiver receiver

# stopped_for PID SECONDS
stopped_for() {
  local pid
  pid=$(session_of "$1")
  # shellcheck disable=SC2086
  kill -STOP $pid
  # shellcheck disable=SC2086
  start "$work/waker.log" bash -c 'sleep "$0" && kill -CONT "$@"' "$2" $pid
}

for slow in "$receiver" "$stpd_b"; do
  rm -f "$work/out/file"
  expect send_from a 40 "$work/file" 10.9.0.2:3000 # whoever asks knows the way
  rm -f "$work/out/file"
  stopped_for "$slow" 6
  waker=$!
  expect send_from a 40 "$work/file" 10.9.0.2:3000
  wait "$waker"
  expect same "$work/file" "$work/out/file"
done

kill -STOP $(session_of "$receiver")
! send_from a 60 --connect-timeout 2 "$work/file" 10.9.0.2:3000 >"$work/said" 2>&1 || fail "it waited for ever"
expect says "$work/said" "its host answers, but the program there makes no progress"
kill -CONT $(session_of "$receiver")
passed
