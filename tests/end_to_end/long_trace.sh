#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: long_trace.sh BUILD-DIRECTORY
# The trace of a transfer with more Blocks, messages and questions than stp-replay check keeps breaks no rule. STP_LONG=1:
# the trace is larger than 100 MB.
. "$(dirname "$0")/setup.sh"
make_work_directory
# With this MTU, stp-send makes a Write of each 48 KiB.
link=memif:$work/memif.sock,mtu=1500
start_stpd b - "$link,role=server,mac=02:00:00:00:09:02,address=10.9.0.2/24"
await_stpd b
start_stpd a - "$link,role=client,mac=02:00:00:00:09:01,address=10.9.0.1/24" --pcap "$work/long.pcapng"
stpd_a=$!
await_stpd a

size=40M
[ -z "${STP_LONG-}" ] || size=110M
random_file "$work/file" "$size"
mkdir "$work/tree"
for i in $(seq 300); do echo "$i" >"$work/tree/$i"; done
start_receiver receiver b "$work/out" 3000
receiver=$!
await_receiver receiver
# Not faster than a disk writes the trace.
expect send_from a 120 --quiet --bwlimit 50M -r "$work/tree" "$work/file" 10.9.0.2:3000
expect send_from a 120 --quiet -r "$work/tree" 10.9.0.2:3000
stop "$receiver"
expect [ "$(of_daemons a trace_dropped)" -eq 0 ]
stop "$stpd_a"
expect same "$work/file" "$work/out/file"
expect [ "$(stat -c %s "$work/long.pcapng")" -gt "$(bytes_of "$size")" ]
expect breaks_no_rule "$work/long.pcapng"
passed
