#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: polled_memory.sh BUILD-DIRECTORY
# Two programs that poll their memory for what the other puts there: over memif, through one stpd, and over a bridge
# that loses and duplicates frames; there each program with a link of its own, and through a stpd of its own.
. "$(dirname "$0")/setup.sh"
# A frame that is lost holds both up for some tenths of a second, so that few go over a lossy link.
seconds=1 seconds_of_loss=2 least=0 doubled_percent=5
if [ -n "${STP_LONG-}" ]; then seconds=8 seconds_of_loss=8 least=10 doubled_percent=1; fi
[ -x "$bin/polled_writes" ] || skip "polled_writes was not built"
make_work_directory

# run NAME HOST: the program that polls is on b, the one that writes on a.
on_a=() on_b=()
run() {
  local watcher
  start "$work/$1.b.log" "${on_b[@]}" timeout 200 "$bin/polled_writes" watch - --yield
  watcher=$!
  expect wait_for 60 contains "$work/$1.b.log" listening
  start "$work/$1.a.log" "${on_a[@]}" timeout 200 "$bin/polled_writes" write "$2" --seconds "$seconds" --yield
  expect wait $!
  expect wait "$watcher"
  expect says "$work/$1.b.log" "rounds seen"
  say "$1: $(grep rounds, "$work/$1.a.log")"
}

side() { echo "memif:$work/memif.sock,role=$1,mac=02:00:00:00:09:0$2,address=10.9.0.$2/24"; }
on_b=(env "STP_LINK=$(side server 2)") on_a=(env "STP_LINK=$(side client 1)")
run memif 10.9.0.2

start_stpd one - loop --address 10.9.0.1/24
await_stpd one
on_b=(env "STP_LINK=stpd:$work/one.sock") on_a=("${on_b[@]}")
run one-stpd 10.9.0.1
expect_few_repeats one 1000

can_make_namespaces || { say "no lossy links: only root may make network namespaces" && passed; }
make_namespace side_a
make_namespace side_b
make_namespace bridge
# shellcheck disable=SC2154 # made above
join_by_lossy_bridge "$side_a" "$side_b" "$bridge" 1500 0 && harm_by_bridge "$bridge" 5 "$doubled_percent" ||
  { say "no lossy links: nftables cannot drop or double frames here" && passed; }
was_harmed() {
  local dropped doubled
  dropped=$(dropped_by_bridge "$bridge")
  doubled=$(doubled_by_bridge "$bridge")
  say "$dropped frames dropped and $doubled doubled by the bridge"
  expect [ "$dropped" -gt "$least" ]
  expect [ "$doubled" -gt "$least" ]
}
seconds=$seconds_of_loss
on_b=(nsenter -t "$side_b" -n env STP_LINK=iface:stp0)
on_a=(nsenter -t "$side_a" -n env STP_LINK=iface:stp0)
run lossy 10.9.0.2
was_harmed
expect harm_by_bridge "$bridge" 1 10
start_pair_in "$side_a" "$side_b"
on_b=(env "STP_LINK=stpd:$work/b.sock") on_a=(env "STP_LINK=stpd:$work/a.sock")
run lossy-stpd 10.9.0.2
was_harmed
passed
