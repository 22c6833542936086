#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: help.sh BINARIES
# The help of each program and command names what each option takes, what it may be and what it is otherwise, in the
# project's words; it tells the exit status and has an example.
set -u
bin=$1
wrong=0
complain() {
  echo "$*"
  wrong=1
}

# shows COMMAND TEXT...: its help has each of them, in however many lines.
shows() {
  local help
  # shellcheck disable=SC2086 # a program and its command
  help=$("$bin/"$1 --help | tr -s ' \n' ' ')
  shift
  for text; do [[ $help == *"$text"* ]] || complain "not in the help: $text"; done
}

# well_formed COMMAND...: of a program, of its commands, and of theirs.
well_formed() {
  local help command
  help=$("$bin/$1" "${@:2}" --help) || complain "$* --help fails"
  grep -nE 'TEXT|UINT|INT:|FLOAT|POSITIVE| in \[|Needs:|Excludes:|=1024b|default:' <<<"$help" &&
    complain "$* --help has words of CLI11, or a default that is not in brackets"
  awk 'length > 100 && /^ /' <<<"$help" | grep . && complain "$* --help has lines of more than 100 columns"
  grep -q '^ *Exit status: 0 ' <<<"$help" || complain "$* --help does not tell the exit status"
  grep -qE "^(Examples?:.*|  ([a-z].*)?)\b$1 (.* )?${*:2}${2:+( |$)}" <<<"$help" || complain "$* --help has no example of its own"
  for command in $(sed -nE '/^Subcommands:/,/^$/s/^  ([a-z-]+).*/\1/p' <<<"$help"); do well_formed "$@" "$command"; done
}

for program in stpd stpctl stp-perf stp-recv stp-replay stp-send stp-sim; do
  [ ! -x "$bin/$program" ] || well_formed "$program"
done

shows stp-send "memif:PATH or vdev:DEVICE" "not loop" "--bwlimit RATE Bytes of content per second at most, 1 or more" \
  "(0 to 31536000) [0]" "(1 to 3600) [30, and 10 if the host does not answer]" \
  "port= and congestion=on or off"
shows "stpctl connections" "WAY (shared with others" "or own)"
for program in stp-perf stpd "stpctl ping" "stpctl dat-conf"; do shows "$program" "port= and congestion=on or off"; done
shows stp-recv "port= and congestion=on or off" "memif:PATH or vdev:DEVICE" "(1 to 16; not with --once) [8]"
shows stpd "End the trace after this many frames (1 or more; needs --pcap) [no limit]" "(1M to 1G; needs --pcap) [64M]" \
  "Endpoints [1024]" "Percentage"
shows "stpctl trace" "--buffer SIZE How far" "(1M to 1G) [64M]" "(0.001 to 1000000000) [no limit]"
shows "stp-perf latency" "(8 to 1G of put and level0, up to 1G of get and write, 8 of fetch)"
shows "stp-perf rate" "(1 to 1G, 8 of fetch)"
shows "stp-perf memcpy" "(that of --size or more)"
shows "stpctl ping" "Usage: stpctl ping [OPTIONS] HOST:PORT" "; not with --serve [1]" "(0 to 1000000000)" "(0.001 to 1000000000)"
for command in check play ladder; do
  shows "stp-replay $command" "02:00:00:00:00:01, of datagrams 10.0.0.5/8181 or [2001:db8::5]/8181, of IP protocol 118 10.0.0.5"
done
shows stp-sim "Runs at the same time (1 to 256); needs --seeds [1]"
exit $wrong
