#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: streams.sh BUILD-DIRECTORY
# Programs that cannot write their output fail and say so. A program that was started without standard
# streams does not give their numbers to its files and sockets. A limit of file sizes does not kill stpd.
. "$(dirname "$0")/setup.sh"
make_work_directory
captures=$(dirname "$(realpath "$0")")/../../captures

full() { # STATUS PROGRAM ARGUMENT...
  local wanted=$1 status=0
  shift
  timeout 60 "$bin/$1" "${@:2}" >/dev/full 2>"$work/said" || status=$?
  grep -q "^$1: cannot write to standard output: No space left" "$work/said" && [ "$status" = "$wanted" ] && return
  cat "$work/said" >&2
  fail "$* >/dev/full: exit status $status"
}
full 2 stp-replay decode "$captures/write.pcapng"
full 2 stp-replay check "$captures/write.pcapng"
full 2 stp-replay rules --json
full 1 stp-perf --link loop latency --seconds 0.05
full 1 stp-sim --seeds 1..1
full 1 stpctl devices
for name in stpctl stpd stp-perf stp-sim stp-replay; do
  "$bin/$name" --help >/dev/full 2>"$work/said" && fail "$name --help >/dev/full does not fail"
  expect says "$work/said" "$name: cannot write to standard output"
done
"$bin/stp-sim" --seed 1 --pcapng /dev/full >/dev/null 2>"$work/said" && fail "a full disk is no error of stp-sim"
expect says "$work/said" "cannot write /dev/full: No space left"

"$bin/stpctl" devices >&- 2>"$work/said" && fail "stpctl without standard output does not fail"
expect says "$work/said" "cannot write to standard output: Bad file descriptor"

# Nothing but /dev/null has the numbers 0 to 2.
setsid "$bin/stpd" --link loop --socket "$work/closed.sock" <&- >&- 2>&- & # a session, as of start()
closed=$!
started+=("$closed")
wait_for 20 test -S "$work/closed.sock" || fail "stpd without standard streams does not start"
for fd in 0 1 2; do expect [ "$(readlink "/proc/$closed/fd/$fd")" = /dev/null ]; done
expect "$bin/stpctl" --socket "$work/closed.sock" links >/dev/null

# More than a buffer of output: it fails before the program ends.
"$bin/stpctl" --socket "$work/closed.sock" stats --prometheus >/dev/full 2>"$work/said" &&
  fail "stpctl stats --prometheus >/dev/full does not fail"
expect says "$work/said" "stpctl: cannot write to standard output: No space left"

# 1024 bytes: not even the memory that stpd shares with a program fits.
(
  ulimit -f 1
  exec setsid "$bin/stpd" --link loop --socket "$work/small.sock"
) 2> >(cat >"$work/small.log") &
small=$!
started+=("$small")
wait_for 20 line_of "$work/small.log" "stpd: ready" || fail "stpd with a limit of file sizes does not start"
expect says "$work/small.log" "at most 1024 bytes (ulimit -f)"
"$bin/stp-perf" --link "stpd:$work/small.sock" latency --seconds 0.05 >"$work/perf.log" 2>&1 &&
  fail "1024 bytes are not enough, and no program notices"
expect says "$work/perf.log" "File too large"
expect kill -0 "$small"

# A program that may write only that much fails, and is not ended by a signal.
(ulimit -f 1 && exec "$bin/stp-replay" ladder "$tools/../captures/write.pcapng" -o "$work/small.html") \
  2>"$work/ladder.log"
expect [ $? -eq 2 ]
expect says "$work/ladder.log" "File too large"
passed
