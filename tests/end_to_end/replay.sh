#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# stp-replay on real links: the trace that stpd records of a real transfer breaks no rule, and
# stp-replay can compare a peer on a link to a trace.
. "$(dirname "$0")/setup.sh"
make_work_directory
needs_namespaces
captures=$tools/../captures
station=02:00:00:00:00:02

make_namespace side_a
make_namespace side_b
join_by_wire "$side_a" "$side_b" 9000
within "$side_b" ip link set stp0 address "$station"
start_pair_in "$side_a" "$side_b" --pcap "$work/real.pcapng"

random_file "$work/file" 2M
start_receiver receiver b "$work/out" 3000
receiver=$!
await_receiver receiver
expect send_from a 60 "$work/file" 10.9.0.2:3000
stop "$receiver"
stop "$stpd_a"
expect breaks_no_rule "$work/real.pcapng"
expect [ "$("$bin/stp-replay" decode --json "$work/real.pcapng" | grep -c '"op":"DATA"')" -ge 256 ]

# A name that no ioctl takes.
expect within "$side_a" ip link property add dev stp0 altname the-first-port-of-the-card
play() {
  within "$side_a" "$bin/stp-replay" play "$captures/$1.pcapng" --as "$station" --link the-first-port-of-the-card
}
expect play connect-refused >"$work/play.log"
expect says "$work/play.log" "1 of 1 answered as in the trace, 0 differences"
! play broken-reject-port >"$work/differs.log" || fail "a difference went unseen"
expect says "$work/differs.log" "  live:  CA Reject Port=0>101"
for name in nowhere iface:stp0 stp0:1; do # the kernel takes the last one for stp0
  ! within "$side_a" "$bin/stp-replay" play "$captures/write.pcapng" --as "$station" --link "$name" \
    2>"$work/nowhere.log" || fail "an interface that is not there was used"
  expect says "$work/nowhere.log" "stp-replay: $name: there is no such interface"
done
! "$bin/stp-replay" chek "$captures/write.pcapng" 2>"$work/chek.log" || fail "there is a command chek"
expect says "$work/chek.log" "there is no command 'chek'; there are decode check"

# A second play waits until the station has forgotten the connections of the first.
start "$work/ping.log" "$bin/stpctl" --socket "$work/b.sock" ping --serve :3000
expect wait_for 20 contains "$work/ping.log" listening
play connect >"$work/first.log" 2>&1
remembered=$(find /run -maxdepth 1 -name 'stp-replay-*-02-00-00-00-00-02' -newer "$work/ping.log")
expect [ -n "$remembered" ]
touch -d '3 seconds ago' "$remembered"
play connect >"$work/second.log" 2>&1
rm -f "$remembered"
expect says "$work/second.log" "(protocol 5.10): waiting for"
! grep 'waiting for' "$work/first.log" || fail "the first play has waited"

# Nobody else may have the address that the frames come from.
start_stpd other "$side_a" "iface:stp0,mac=02:00:00:00:00:01"
await_stpd other
! play connect-refused 2>"$work/owned.log" || fail "two programs have one address"
expect says "$work/owned.log" "has an owner: stpd"
passed
