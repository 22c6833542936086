#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: peer_to_peer.sh BUILD-DIRECTORY
# tools/examples/peer_to_peer on two ends: through one daemon; through two that find each other by
# ARP; and with a Node in each program, where one end knows the other by the option arp=.
. "$(dirname "$0")/setup.sh"

# exchange NAME LINK-A HOST-OF-B LINK-B HOST-OF-A [SOCKET]: each end receives the other's messages.
# B starts when SOCKET exists.
exchange() {
  local there=$work/$1.there back=$work/$1.back a b
  mkfifo "$there" "$back"
  exec 8<>"$back" 9<>"$there" # so that A can begin without B
  STP_LINK=$2 setsid timeout 120 "$bin/peer_to_peer" "$3" <&8 >&9 2>"$work/$1.a.log" &
  a=$!
  [ $# -lt 6 ] || expect wait_for 60 test -S "$6"
  STP_LINK=$4 setsid timeout 120 "$bin/peer_to_peer" "$5" >&8 <&9 2>"$work/$1.b.log" &
  b=$!
  exec 8>&- 9>&-
  started+=("$a" "$b")
  expect wait "$a"
  expect wait "$b"
  expect says "$work/$1.a.log" "Hello from Port"
  expect says "$work/$1.b.log" "Hello from Port"
}

make_work_directory
start_stpd one - loop
await_stpd one
exchange daemon "stpd:$work/one.sock" localhost "stpd:$work/one.sock" localhost

link_kind=memif
start_pair
exchange arp "stpd:$work/a.sock" 10.9.0.2 "stpd:$work/b.sock" 10.9.0.1

memif=memif:$work/own.sock,mtu=9000
exchange own "$memif,role=server,mac=02:00:00:00:09:01,arp=10.9.9.2@02:00:00:00:09:02" 10.9.9.2 \
  "$memif,role=client,mac=02:00:00:00:09:02" "[02:00:00:00:09:01]" "$work/own.sock"

if can_make_namespaces; then
  stop "$stpd_a" && stop "$stpd_b"
  link_kind=veth
  start_pair --user nobody # links work on after the rights that opened them are gone
  exchange veth "stpd:$work/a.sock" 10.9.0.2 "stpd:$work/b.sock" 10.9.0.1
fi
passed
