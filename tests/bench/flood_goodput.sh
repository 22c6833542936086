#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# flood_goodput.sh BUILD [ROUNDS [RATE [SECONDS]]]: measures the goodput of a pair of programs on a
# veth, in turn alone, beside RATE frames a second that only load the link ("other"), and beside as
# many requests to connect to the pair's listener ("rc"). Prints the figures. Fails if the requests
# leave less than 80 % of the goodput that the other frames leave.
# As a test it needs STP_LONG, because its figures need an idle machine.
. "$(dirname "$0")/../end_to_end/setup.sh"
rounds=${2-5} rate=${3-100000} seconds=${4-3}
[ -n "${STP_LONG-}" ] || [ $# -gt 1 ] || skip "it measures for a minute: tools/test --long"
needs_namespaces
make_work_directory
link_kind=veth
start_pair
start "$work/server.log" "$bin/stp-perf" --link "stpd:$work/b.sock" server --port :3000
wait_for 20 contains "$work/server.log" "listening on" || fail "$(cat "$work/server.log")"
address=$(within "$side_b" ip -o link show stp0 | sed -n 's|.*link/ether \([^ ]*\).*|\1|p')

# goodput: megabytes a second of 64 KiB Writes, 16 outstanding.
goodput() {
  "$bin/stp-perf" --json -q --link "stpd:$work/a.sock" bandwidth --sleep --size 64K \
    --seconds "$seconds" 10.9.0.2:3000 >"$work/perf.json" 2>>"$work/perf.log" ||
    fail "$(tail -n 3 "$work/perf.log")"
  jq -r '.gbit_s * 125' "$work/perf.json"
}
# beside KIND: goodput while frames of that kind are sent.
beside() {
  local moved
  start "$work/$1.log" nsenter -t "$side_a" -n "$bin/stp-rc-flood" stp0 "$address" "$rate" \
    "$((seconds + 2))" "$1"
  sleep 0.3
  moved=$(goodput) || exit 1
  wait $!
  echo "$moved"
}

declare -A all=()
for _ in $(seq "$rounds"); do
  all[alone]+=" $(goodput)" || exit 1
  all[other]+=" $(beside other)" || exit 1
  all[rc]+=" $(beside rc)" || exit 1
done
median() { tr ' ' '\n' <<<"$1" | grep . | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
for kind in alone other rc; do
  printf '%s: %.0f MB/s (%s)\n' "$kind" "$(median "${all[$kind]}")" "$(printf '%.0f ' ${all[$kind]})"
done
for kind in other rc; do echo "$kind: $(tail -n 1 "$work/$kind.log")"; done
"$bin/stpctl" --socket "$work/b.sock" stats | grep -E 'rc_|not_for_us|unproven|answers_full|address_full'
part=$(awk -v rc="$(median "${all[rc]}")" -v other="$(median "${all[other]}")" 'BEGIN { print rc / other }')
echo "beside requests to connect: $part of what other frames leave"
expect awk -v part="$part" 'BEGIN { exit !(part >= 0.8) }'
passed
