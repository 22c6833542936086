#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# idle_answers.sh BUILD veth|memif [PROBES [STPD-OPTION...]]: how soon an idle stpd answers a frame,
# and how much CPU time it uses while idle. Prints figures and does not judge them.
. "$(dirname "$0")/../end_to_end/setup.sh"
make_work_directory
kind=${2-} probes=${3-1000}
shift $(($# < 3 ? $# : 3))
mac=02:00:00:00:09:02
case $kind in
  veth)
    needs_namespaces
    make_namespace side_a
    make_namespace side_b
    join_by_wire "$side_a" "$side_b" 9000
    within "$side_b" ip link set stp0 address "$mac"
    start_stpd b "$side_b" iface:stp0 "$@"
    prober=(nsenter -t "$side_a" -n "$bin/stp-idle-answers" iface:stp0)
    ;;
  memif)
    memif=$work/memif.sock
    start_stpd b - "memif:$memif,role=server,mac=$mac" "$@"
    prober=("$bin/stp-idle-answers" "memif:$memif,role=client")
    ;;
  *)
    fail "usage: idle_answers.sh BUILD veth|memif [PROBES [STPD-OPTION...]]"
    ;;
esac
stpd=$!
await_stpd b
"${prober[@]}" "$mac" "$stpd" "$probes" || fail "no figures"
