#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What stp-perf sends breaks no rule of the protocol, at level 0 neither.
. "$(dirname "$0")/setup.sh"
. "$(dirname "$0")/../../tools/lib/daemons.sh"
link_kind=memif
start_pair --pcap "$work/trace.pcapng"
start "$work/server.log" "$bin/stp-perf" --link "stpd:$work/b.sock" server
wait_for 20 grep -q listening "$work/server.log" || fail "no server: $(cat "$work/server.log")"
for test in "latency --op put" "latency --op level0" "rate --op level0"; do
  # shellcheck disable=SC2086 # several words
  timeout 60 "$bin/stp-perf" -q --link "stpd:$work/a.sock" $test --seconds 0.01 --warm-up 0 10.9.0.2:3000 \
    >"$work/client.log" 2>&1 || fail "$test: $(cat "$work/client.log")"
done
stop "${started[@]}"

# A program that waits for its processor writes the time of a frame late, and then seems to repeat it too early.
"$bin/stp-replay" check --at 02:00:00:00:09:01 "$work/trace.pcapng" >"$work/said"
! grep -v -e ': 5\.21 retry-too-soon: ' -e ' of STP, ' "$work/said" || fail "a rule is broken"
