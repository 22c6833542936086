#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Each test of stp-perf runs within one program on the loop, and its JSON has the test's figures.
. "$(dirname "$0")/setup.sh"
perf() { timeout 60 "$bin/stp-perf" --link loop --json "$@" --seconds 0.1 --warm-up 0.02; }

for operation in put get write fetch level0; do
  result=$(perf latency --op $operation) || fail "latency of $operation"
  for figure in p50 p99 p99.9; do expect_figure "$result" "round_trip_us/$figure"; done
  expect_figure "$result" operations
done
for operation in put get write read level0; do
  result=$(perf bandwidth --op $operation --size 64K --window 4) || fail "bandwidth of $operation"
  expect_figure "$result" gbit_s
done
# A time in which nothing is complete becomes longer.
result=$(timeout 60 "$bin/stp-perf" --link loop bandwidth --size 64M --seconds 0.001 --warm-up 0) || fail "bandwidth of 64M"
[[ $result == *", which was prolonged until one was complete"* && $result != *": 0 in"* ]] || fail "bandwidth of 64M: $result"
for options in "--op put" "--op fetch" "--op write --connections 20 --window 2" "--bidirectional" \
  "--op level0" "--op level0 --sleep" "--op level0 --connections 20 --window 3 --bidirectional"; do
  # shellcheck disable=SC2086 # several words
  result=$(perf rate $options) || fail "rate $options"
  expect_figure "$result" per_second
done
result=$(perf latency --op write --size 32K --sleep) || fail "latency of a program that sleeps"
expect_figure "$result" round_trip_us/p50
result=$("$bin/stp-perf" --json memcpy --size 1M --working-set 4M --seconds 0.1) || fail memcpy
expect_figure "$result" gbit_s
find_figures
