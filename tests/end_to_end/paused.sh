#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The receiver's stpd is stopped again and again while Blocks of short STUs are under way. No more was
# granted than its receive queue holds: it loses no frame, although nobody polls.
. "$(dirname "$0")/setup.sh"
needs_namespaces
make_work_directory
# shellcheck disable=SC2034 # used by daemons.sh
link_kind=veth
start_pair

perf() { # LOG SIDE SECONDS ARGUMENT...
  start "$work/$1.log" timeout -k 5 "$3" "$bin/stp-perf" --link "stpd:$work/$2.sock" --buffer 12 "${@:4}"
}
perf server b 100 server
wait_for 20 contains "$work/server.log" listening || fail "stp-perf does not listen"
perf client a 60 bandwidth --size 1M --seconds 3 10.9.0.2:3000
client=$!

# shellcheck disable=SC2154 # start_pair has set it
while kill -0 "$client" 2>/dev/null; do
  kill -STOP "$stpd_b"
  sleep 0.05
  kill -CONT "$stpd_b"
  sleep 0.05
done
expect wait "$client"
"$bin/stpctl" --socket "$work/b.sock" stats >"$work/stats"
frames=$(awk '$1 == "rx_frames" { print $2 }' "$work/stats")
expect [ "$frames" -gt 2000 ]
if grep link_rx_missed "$work/stats" >&2; then fail "its receive queue overflowed ($frames frames)"; fi
passed
