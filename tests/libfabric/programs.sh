#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: programs.sh BUILD-DIRECTORY
# Programs of Debian's libfabric-bin, as they are, from one network namespace to another: over Ethernet, and without any
# capability over UDP.
. "$(dirname "$0")/../end_to_end/setup.sh"
[ -e "$build/lib/libfabric/libstp-fi.so" ] || skip "the provider was not built: libfabric-dev is missing"
command -v fi_pingpong >/dev/null || skip "fi_pingpong is missing: apt-get install libfabric-bin"
needs_namespaces
make_work_directory
export FI_PROVIDER_PATH=$build/lib/libfabric IPATH_NO_BACKTRACE=1 STP_LINK=iface:stp0
make_namespace a
make_namespace b
join_by_wire "$a" "$b" 9000

within "$a" fi_info -p stp >"$work/info.log" || fail "fi_info"
expect says "$work/info.log" "type: FI_EP_MSG"
expect says "$work/info.log" "provider: stp;ofi_rxm"
# It opens nothing: the interface has no owner meanwhile, and none is needed.
STP_LINK=iface:none within "$a" fi_info -p stp >"$work/none.log" 2>&1 && fail "a link that is none is listed"
fi_info -e >"$work/parameters.log" 2>/dev/null
expect says "$work/parameters.log" FI_STP_LINK

listens() { within "$a" ss -ltnH "sport = :47592" | grep -q .; }
# pingpong KIND PROVIDER [COMMAND...]: by programs that COMMAND starts.
pingpong() {
  local kind=$1 provider=$2
  shift 2
  start "$work/$kind $provider.a.log" nsenter -t "$a" -n "$@" timeout -s KILL 240 fi_pingpong -p "$provider" -e "$kind" -c
  server=$!
  expect wait_for 60 listens
  expect within "$b" "$@" timeout -s KILL 240 fi_pingpong -p "$provider" -e "$kind" -c 10.9.0.1 \
    >"$work/$kind $provider.b.log" 2>&1
  expect wait "$server"
  expect says "$work/$kind $provider.b.log" 1m
}
pingpong msg stp
pingpong rdm 'stp;ofi_rxm'
pingpong rdm 'stp;^ofi_rxm'

# Without a link that is named, without the socket of a stpd and without privileges, there is one over UDP, with
# addresses of both kinds.
# shellcheck disable=SC2016
plain=(unshare --mount sh -c 'mount -t tmpfs tmpfs /run && exec "$@"' sh setpriv --bounding-set=-all --inh-caps=-all)
within "$a" "${plain[@]}" env -u STP_LINK fi_info -v -p stp >"$work/udp.log" || fail "fi_info over UDP"
for each in "name: udp:" FI_SOCKADDR_IN FI_SOCKADDR_IN6 fi_sockaddr_in6://; do expect says "$work/udp.log" "$each"; done
within "$a" "${plain[@]}" env -u STP_LINK fi_info -p stp -n 2001:db8::5 -P 3000 -v >"$work/udp6.log" || fail "fi_info of an IPv6 address"
expect says "$work/udp6.log" "dest_addr: fi_sockaddr_in6://[2001:db8::5]:3000"
export STP_LINK=udp:
pingpong rdm 'stp;^ofi_rxm' "${plain[@]}"
passed
