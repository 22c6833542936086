#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Client and server are two programs. Bare frames go over the same link.
. "$(dirname "$0")/setup.sh"
link=memif:$work/memif.sock
pace=(--seconds 0.1 --warm-up 0.02)

# serve OPTION...: starts a server and waits until it says that it serves.
serve() {
  : >"$work/server.log"
  start "$work/server.log" "$bin/stp-perf" --link "$link,role=server,mac=02:00:00:00:09:02" "$@"
  server=$!
  wait_for 20 grep -qE 'listening|answering' "$work/server.log" ||
    fail "no server: $(cat "$work/server.log")"
}
client() {
  timeout 60 "$bin/stp-perf" --json --link "$link,role=client,mac=02:00:00:00:09:01" "$@" "${pace[@]}"
}

serve server --once
result=$(client latency '[02:00:00:00:09:02]:3000') || fail latency
expect_figure "$result" round_trip_us/p50
expect_figure "$result" peer/cpu_s
wait "$server" || fail "the server has failed: $(cat "$work/server.log")"

serve server --once
result=$(client bandwidth --size 256K '[02:00:00:00:09:02]:3000') || fail bandwidth
for side in here peer; do
  for figure in user_s memcpy_bytes_s; do expect_figure "$result" "$side/$figure"; done
done
[[ $result == *'"link_mbit_s":null,"share_of_link":null,"limit":"'* ]] || fail "no limit, or the rate of a memif: $result"
wait "$server" || fail "the server has failed: $(cat "$work/server.log")"

serve server --once
result=$(client rate --op level0 '[02:00:00:00:09:02]:3000') || fail "rate at level 0"
expect_figure "$result" per_second
wait "$server" || fail "the server has failed: $(cat "$work/server.log")"

serve raw --serve
result=$(client raw) || fail raw
expect_figure "$result" round_trip_us/p50
stop "$server"
serve raw --serve
result=$(client raw --one-way --size 9000) || fail "raw --one-way"
expect_figure "$result" gbit_s
find_figures
