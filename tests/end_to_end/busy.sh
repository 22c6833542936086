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

# carry FILE TIMES
carry() {
  for _ in $(seq "$2"); do
    rm -f "$work/out/$1"
    expect send_from a 120 --quiet "$work/$1" 10.9.0.2:3000
  done
}
carry large 5
carry small 40

expect_few_repeats "a b" 30000
passed
