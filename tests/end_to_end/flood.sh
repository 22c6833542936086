#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Somebody on the wire asks for connections under addresses that nobody has, 100,000 times a second, or
# as often as this machine can receive. The files of an honest sender arrive all the same, and
# stp-replay finds nothing wrong in a trace. bench.flood_goodput measures what the sender loses.
# protocol: 5.34
. "$(dirname "$0")/setup.sh"
needs_namespaces
make_work_directory
link_kind=veth
start_pair
start_receiver receiver b "$work/out" 3000
await_receiver receiver
random_file "$work/one" 64K
random_file "$work/two" 4M

address=$(within "$side_b" ip -o link show stp0 | sed -n 's|.*link/ether \([^ ]*\).*|\1|p')
# value_of COUNTER: its value in stpd b.
value_of() {
  "$bin/stpctl" --socket "$work/b.sock" stats >"$work/stats"
  awk -v name="$1" '$1 == name || $2 == name { for (i = 1; i <= NF; ++i) if ($i ~ /^[0-9]+$/) print $i }' \
    "$work/stats" | head -n 1
}
# takes_in RATE: whether stpd misses less than one in twenty of that many frames a second.
takes_in() {
  local missed
  missed=$(value_of link_rx_missed)
  within "$side_a" "$bin/stp-rc-flood" stp0 "$address" "$1" 1 rc >>"$work/tried.log" || fail "no flood"
  [ "$(($(value_of link_rx_missed) + 0 - ${missed:-0}))" -lt "$(($1 / 20))" ]
}
# A machine that is too slow loses frames, also those of the honest sender. That says nothing about
# the protocol. Under ThreadSanitizer stpd is about ten times slower.
rates=(100000 30000 10000 5000)
if grep -q __tsan_init "$bin/stpd"; then rates=(5000); fi
begun=$SECONDS
for rate in "${rates[@]}"; do
  if takes_in "$rate"; then break; fi
done
say "$rate requests a second"
start "$work/flood.log" nsenter -t "$side_a" -n "$bin/stp-rc-flood" stp0 "$address" "$rate" 600 rc
flood=$!
sleep 0.3 # whoever has few places has none left by now
# The flood's requests repeat within it: after so many others a Node may name another Port (5.36).
start "$work/trace.log" "$bin/stpctl" --socket "$work/b.sock" trace --out "$work/flood.pcapng" \
  --frames "$((rate * 3 / 2))"
trace=$!
for file in one two one; do
  rm -f "$work/out/$file"
  expect send_from a 150 "$work/$file" 10.9.0.2:3000
  expect same "$work/$file" "$work/out/$file"
done
wait "$trace"

# more_than NUMBER COUNTER
more_than() { [ "$(($(value_of "$2") + 0))" -gt "$1" ]; }
# At 5,000 a second this takes longer than the three files.
expect wait_for 60 more_than 5000 rc_first
expect more_than 0 rc_proven
stop "$flood"
# No more frames were sent than received, except for 3,200 a second (5.39).
expect [ "$(value_of tx_frames)" -lt "$(($(value_of rx_frames) + 3200 * (SECONDS - begun + 1)))" ]
# The trace breaks no rule, even if some frames found no room in it.
expect breaks_no_rule "$work/flood.pcapng"
passed
