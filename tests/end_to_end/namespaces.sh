#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A program in another network namespace than its stpd, as in a container with the host's socket: what is own, and what
# an interface's name means, the stpd's host decides. Needs root.
. "$(dirname "$0")/setup.sh"
needs_namespaces
make_work_directory
make_namespace side_a
make_namespace side_b
join_by_wire "$side_a" "$side_b" 9000
# Its own address is that of b, and b's is not its.
make_namespace away
within "$away" ip address add 10.9.0.2/32 dev lo
random_file "$work/file" 300K

# arrives_at SIDE HOST: a file that is sent from there through a's stpd. Both sides have a receiver.
arrives_at() {
  local side=$1
  rm -f "${work:?}"/out_[ab]/file
  within "$away" timeout 60 "$bin/stp-send" -q --link "stpd:$work/a.sock" "$work/file" "$2:3000" &&
    same "$work/file" "$work/out_$side/file" &&
    is_empty_directory "$work/out_$([ "$side" = a ] && echo b || echo a)"
}

for link in udp: iface:stp0; do
  start_stpd a "$side_a" "$link"
  stpd_a=$!
  start_stpd b "$side_b" "$link"
  stpd_b=$!
  await_stpd a
  await_stpd b
  receivers=()
  for side in a b; do
    start_receiver "receiver_$side" "$side" "$work/out_$side" 3000
    receivers+=($!)
    await_receiver "receiver_$side"
  done
  expect arrives_at b 10.9.0.2
  expect arrives_at a 10.9.0.1
  expect arrives_at a localhost
  # A new address of a's host is its own at once.
  within "$side_a" ip address add 10.9.7.7/32 dev lo
  expect arrives_at a 10.9.7.7
  within "$side_a" ip address delete 10.9.7.7/32 dev lo
  if [ "$link" = udp: ] && within "$side_a" sysctl -qw net.ipv6.conf.stp0.disable_ipv6=0 2>/dev/null &&
    within "$side_b" sysctl -qw net.ipv6.conf.stp0.disable_ipv6=0 &&
    within "$side_a" ip address add fe80::a/64 dev stp0 nodad && within "$side_b" ip address add fe80::b/64 dev stp0 nodad; then
    expect arrives_at b '[fe80::b%stp0]'
    expect arrives_at a '[fe80::a%stp0]'
    # An interface that only the program's namespace has.
    within "$away" ip link add stp9 type veth peer name stp8
    within "$away" timeout 60 "$bin/stp-send" --link "stpd:$work/a.sock" "$work/file" '[fe80::b%stp9]:3000' 2>"$work/said" &&
      fail "a file goes over an interface that stpd's host has not"
    expect says "$work/said" "fe80::b%stp9: the host that drives the link has no interface 'stp9'"
  fi
  stop "${receivers[@]}" "$stpd_a" "$stpd_b"
done
passed
