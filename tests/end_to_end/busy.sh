#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: STP_LONG=1 busy.sh BINARIES
# Other programs load every core while two stpd carry files over a wire. Neither loses a frame, and less
# than a thousandth of the frames are sent twice.
. "$(dirname "$0")/setup.sh"
[ -n "${STP_LONG-}" ] || skip "it measures for a minute: tools/test --long"
needs_namespaces
make_work_directory
# shellcheck disable=SC2034 # used by daemons.sh
link_kind=veth
start_pair
random_file "$work/large" 64M
random_file "$work/small" 20K

start_receiver receiver b "$work/out" 3000
await_receiver receiver
for _ in $(seq "$(nproc)"); do start "$work/load.log" sh -c 'while :; do :; done'; done

# counted SIDE COUNTER
counted() {
  "$bin/stpctl" --socket "$work/$1.sock" stats | awk -v name="$2" \
    '$1 == name || $2 == name { for (i = 1; i <= NF; ++i) if ($i ~ /^[0-9]+$/) { print $i; exit } }'
}
# of_both COUNTER...: the sum over both daemons.
of_both() {
  local side name value sum=0
  for side in a b; do
    for name in "$@"; do
      value=$(counted "$side" "$name")
      sum=$((sum + ${value:-0}))
    done
  done
  echo "$sum"
}

# carry FILE TIMES
carry() {
  for _ in $(seq "$2"); do
    rm -f "$work/out/$1"
    expect send_from a 120 --quiet "$work/$1" 10.9.0.2:3000
  done
}
carry large 5
carry small 40

frames=$(of_both rx_frames)
twice=$(of_both duplicate_stu duplicate_block cts_repeated)
lost=$(of_both link_rx_missed link_tx_refused)
say "$frames frames, $twice of them again, $lost lost by the link; RC, RD and RS again: $(of_both retries)"
expect [ "$frames" -gt 30000 ]
expect [ "$lost" -eq 0 ]
expect [ "$((1000 * twice))" -le "$frames" ]
passed
