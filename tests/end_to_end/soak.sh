#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: STP_LONG=1 soak.sh BINARIES. Runs for STP_SOAK_SECONDS (default: 300) and for at least 1000
# transfers.
# Connections open, transfer and close over and over through two stpds, at times 200 clients at once,
# some of which are killed. The memory, files and table entries of the daemons do not grow. At the end
# the CPU time of an idle stpd is measured.
. "$(dirname "$0")/setup.sh"
[ -n "${STP_LONG-}" ] || skip "it takes five minutes: tools/test --long"
make_work_directory
link_kind=memif
seconds=${STP_SOAK_SECONDS:-300}
crowd=${STP_SOAK_CLIENTS:-200}
start_pair

start_receiver sink b "$work/out" 3000
await_receiver sink
random_file "$work/file" 256K

send_one() {
  timeout 120 "$bin/stp-send" --quiet --link "stpd:$work/a.sock" "$work/file" 10.9.0.2:3000
}

# For each daemon: resident kB, open files, mapped memory of clients.
resident() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status"; }
open_files() { find "/proc/$1/fd" -mindepth 1 | wc -l; }
mappings() { wc -l <"/proc/$1/maps"; }
holdings() {
  local pid
  for pid in "$stpd_a" "$stpd_b"; do
    echo "$(resident "$pid") kB, $(open_files "$pid") files, $(mappings "$pid") mappings"
  done
}
ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }

# Many clients at once. Each is a program of its own; all but one are idle.
crowd_comes_and_goes() {
  local i pids=() before=("${started[@]}")
  for i in $(seq "$crowd"); do
    start "$work/crowd.log" "$bin/stp-recv" --link "stpd:$work/b.sock" --listen ":$((10000 + i))" --out "$work/crowd"
    pids+=($!)
  done
  expect wait_for 60 crowd_listens
  expect send_one
  if [ $((RANDOM % 2)) -eq 0 ]; then kill -KILL "${pids[@]}"; else kill "${pids[@]}"; fi
  wait "${pids[@]}" 2>/dev/null
  started=("${before[@]}")
  : >"$work/crowd.log"
}
crowd_listens() { [ "$(grep -c '^listening on' "$work/crowd.log")" -ge "$crowd" ]; }

# One round before the measurement, so that pools and tables have grown to their final size.
mkdir -p "$work/crowd"
crowd_comes_and_goes
for _ in $(seq 200); do expect send_one; done
sleep 1
before=$(holdings)
files_before=$(($(open_files "$stpd_a") + $(open_files "$stpd_b")))
mappings_before=$(($(mappings "$stpd_a") + $(mappings "$stpd_b")))
resident_before=$(($(resident "$stpd_a") + $(resident "$stpd_b")))

cycles=0 crowds=0 begin=$SECONDS
while [ $((SECONDS - begin)) -lt "$seconds" ] || [ "$cycles" -lt "${STP_SOAK_CYCLES:-1000}" ]; do
  for _ in $(seq 100); do expect send_one; done
  cycles=$((cycles + 100))
  crowd_comes_and_goes
  crowds=$((crowds + 1))
  say "$cycles: $(holdings | tr "\n" ";")"
done
say "$cycles transfers, $crowds crowds of $crowd clients"

as_before() {
  [ $(($(open_files "$stpd_a") + $(open_files "$stpd_b"))) -le "$files_before" ] &&
    [ $(($(mappings "$stpd_a") + $(mappings "$stpd_b"))) -le $((mappings_before + 8)) ]
}
wait_for 10 as_before || fail "holdings grew from" "$before" "to" "$(holdings)"
resident_after=$(($(resident "$stpd_a") + $(resident "$stpd_b")))
say "resident: $resident_before kB before, $resident_after kB after"
expect [ "$resident_after" -le $((resident_before + 4096)) ]

idle_before=$(ticks "$stpd_a")
sleep 5
say "idle: $((($(ticks "$stpd_a") - idle_before) * 100 / (5 * $(getconf CLK_TCK))))% of a core"

stop "$stpd_a"
stop "$stpd_b"
count() { sed -n "s/^stpd:   $2 //p" "$work/$1.log" | grep . || echo 0; }
for side in a b; do
  expect [ "$(count $side vc_opened)" -eq $(($(count $side vc_closed) + $(count $side vc_failed))) ]
done
passed
