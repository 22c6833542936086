#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# One frame in a hundred is lost on the way: 40 MB (with STP_LONG 100) arrive intact.
. "$(dirname "$0")/setup.sh"
needs_namespaces
make_work_directory
make_namespace side_a
make_namespace side_b
make_namespace bridge
join_by_lossy_bridge "$side_a" "$side_b" "$bridge" 9000 1 || skip "nftables cannot drop frames here"
start_pair_in "$side_a" "$side_b"
megabytes=40
[ -z "${STP_LONG-}" ] || megabytes=100
random_file "$work/file" "${megabytes}000000"
start_receiver receiver b "$work/out" 3000 --once
receiver=$!
await_receiver receiver
expect send_from a 180 "$work/file" 10.9.0.2:3000 >"$work/sent"
expect wait "$receiver"
expect same "$work/file" "$work/out/file"
dropped=$(dropped_by_bridge "$bridge")
say "$dropped frames dropped by the bridge"
expect [ "$dropped" -gt $((megabytes / 2)) ]
passed
