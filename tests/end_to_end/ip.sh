#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Links over IP itself, protocol 118, through a router, over IPv4 and IPv6. A trace has packets of IP that break no rule,
# which the dissector knows; only one program can have an address.
. "$(dirname "$0")/setup.sh"
needs_namespaces
make_work_directory
make_routed_sides 1500

# start_both LINK-A LINK-B [OPTION-A...]
start_both() {
  start_stpd a "$side_a" "$1" "${@:3}"
  daemon_a=$!
  start_stpd b "$side_b" "$2"
  daemon_b=$!
  await_stpd a
  await_stpd b
}
random_file "$work/file" 300K

start_both ip: ip:stp0 --pcap "$work/trace.pcapng"
carry "$work/file" 10.9.2.2
expect [ "$(of_daemons "a b" udp_tx_dropped udp_tx_too_long udp_tx_refused)" -eq 0 ]
"$bin/stpctl" --socket "$work/b.sock" links >"$work/links"
expect grep -qE " ip +$work/b.sock" "$work/links"
nsenter -t "$side_a" -n "$bin/stpd" --link ip:10.9.1.2 --socket "$work/second.sock" >"$work/second" 2>&1 &&
  fail "two programs have one address"
expect says "$work/second" "another program has a socket of IP protocol 118 at 10.9.1.2"
# Nobody is there, and whoever asks learns why.
nsenter -t "$side_a" -n timeout 30 "$bin/stpctl" --socket "$work/a.sock" ping 10.9.2.1:3000 >"$work/nobody" 2>&1 &&
  fail "a host without a link answers"
expect says "$work/nobody" 'has no socket for IP protocol 118: no ip: link is open there'
stop "$daemon_a" "$daemon_b"
expect breaks_no_rule "$work/trace.pcapng"
expect [ "$("$bin/stp-replay" decode --json "$work/trace.pcapng" | grep -c '"op":"DATA"')" -ge 30 ]
if command -v tshark >/dev/null; then
  HOME=$work tshark -X "lua_script:$tools/wireshark/stp-st.lua" -r "$work/trace.pcapng" -c 20 >"$work/shown" 2>/dev/null
  expect [ "$(grep -c STP-ST "$work/shown")" -eq 20 ]
fi

if within "$side_a" ip -6 route get fd00:2::2 >/dev/null 2>&1; then
  start_both 'ip:[fd00:1::2]' 'ip:[fd00:2::2]'
  carry "$work/file" '[fd00:2::2]'
  stop "$daemon_a" "$daemon_b"
fi
passed
