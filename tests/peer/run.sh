#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh BUILD stpd|node|stpd_shards|shards level0|managed|GROUP,... [NAME]: the peer runs at one end
# of a veth pair, a program of libst at the other, through stpd or with a Node of its own; with shards
# four Nodes are behind the address.
# shellcheck source=../end_to_end/setup.sh
. "$(dirname "$0")/../end_to_end/setup.sh"
needs_namespaces
"$python" -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()' 2>/dev/null ||
  skip "only root may open raw sockets here"
other=$2
case $3 in
  level0) groups=connections,forms,slots,blocks,regions,endpoints ;;
  *) groups=$3 ;;
esac
make_work_directory
make_namespace side_peer
make_namespace side_node
join_by_wire "$side_peer" "$side_node" 1500
mac=$(within "$side_node" ip -o link show stp0 2>/dev/null | grep -o 'link/ether [0-9a-f:]*' | cut -d' ' -f2)
[ -n "$mac" ] || fail "stp0 has no address"
link=iface:stp0
case $other in *shards) link=$link,queues=4 ;; esac
case $other in
  stpd*)
    start_stpd a "$side_node" "$link"
    await_stpd a
    link=stpd:$work/a.sock
    ;;
esac
within "$side_peer" "$python" "$(dirname "$0")/peer.py" stp0 "$mac" "$groups" ${4+"$4"} -- \
  nsenter -t "$side_node" -n env STP_LINK="$link" "$bin/peer_responder" 2>"$work/responder.log" || {
  tail -n 30 "$work"/*.log >&2
  fail "conversations have failed: FAILED above says which, and why"
}
passed
