#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two senders at once to one receiver.
. "$(dirname "$0")/setup.sh"
make_work_directory
link_kind=memif
start_pair
start_receiver receiver b "$work/out" 3000
await_receiver receiver
random_file "$work/one" 64M
random_file "$work/two" 48M
start "$work/first.log" timeout 120 "$bin/stp-send" --link "stpd:$work/a.sock" "$work/one" \
  10.9.0.2:3000
first=$!
expect send_from a 120 "$work/two" 10.9.0.2:3000
expect wait "$first"
expect same "$work/one" "$work/out/one"
expect same "$work/two" "$work/out/two"
passed
