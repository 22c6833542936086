#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Without stpd: each program drives its own end of the link.
. "$(dirname "$0")/setup.sh"
needs_namespaces
make_work_directory
make_namespace side_a
make_namespace side_b
join_by_wire "$side_a" "$side_b" 9000
random_file "$work/file" 32M
mkdir "$work/out"
start "$work/receiver.log" nsenter -t "$side_b" -n "$bin/stp-recv" --link iface:stp0 \
  --listen :3000 --out "$work/out" --once
receiver=$!
await_receiver receiver
expect within "$side_a" timeout 60 "$bin/stp-send" --link iface:stp0 "$work/file" 10.9.0.2:3000
expect wait "$receiver"
expect same "$work/file" "$work/out/file"
passed
