#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: link_events.sh BUILD-DIRECTORY
# A program is told what happens to its interface: switched off, without a carrier, another MTU,
# removed and made again, another address. With a link of its own, and through stpd.
. "$(dirname "$0")/setup.sh"
[ -x "$bin/link_events" ] || skip "link_events was not built"
needs_namespaces
make_work_directory
make_namespace side_a
make_namespace side_b

# tells NAME LINE: after the lines that were awaited before. On the way to a state there may be
# others: an interface that is switched on has no carrier at first.
declare -A seen=()
tells() {
  wait_for 30 finds "$1" "$2" || {
    cat "$work/$1.log" >&2
    fail "$1 was not told: $2"
  }
}
finds() {
  local from=$((${seen[$1]-0} + 1)) at
  at=$(tail -n "+$from" "$work/$1.log" | grep -nE -m1 -- "^$2") || return
  seen[$1]=$((from - 1 + ${at%%:*}))
}

# has_address NAME ADDRESS: the last one that it was told.
has_address() {
  wait_for 30 address_is "$1" "address $2" || {
    cat "$work/$1.log" >&2
    fail "$1 was not told the address $2"
  }
}
address_is() { [ "$(grep '^address' "$work/$1.log" | tail -n 1)" = "$2" ]; }

# watches NAME: the program has begun; everything happens to it. A veth has no speed.
watches() {
  has_address "$1" 10.9.0.1
  tells "$1" 'event 1 status 0$'
  tells "$1" 'asked: state 1 megabits 0 trouble: $'
  within "$side_a" ip link set stp0 down
  tells "$1" 'event 2 status -100$'
  tells "$1" 'asked: state 2 .* trouble: .*ip link set stp0 up'
  within "$side_a" ip link set stp0 up
  tells "$1" 'event 1 status 0$'
  within "$side_b" ip link set stp0 down
  tells "$1" 'event 3 status -100$'
  within "$side_b" ip link set stp0 up
  tells "$1" 'event 1 status 0$'
  within "$side_a" ip link set stp0 mtu 1400
  tells "$1" 'event 7 status 0$'
  within "$side_a" ip link set stp0 mtu 1500
  tells "$1" 'event 1 status 0$'
  within "$side_a" ip address add 10.9.1.7/24 dev stp0
  within "$side_a" ip address delete 10.9.0.1/24 dev stp0
  has_address "$1" 10.9.1.7
  within "$side_a" ip link delete stp0
  tells "$1" 'event 4 status -100$'
  has_address "$1" 0.0.0.0
  join_by_wire "$side_a" "$side_b" 1500
  tells "$1" 'event 1 status 0$'
  has_address "$1" 10.9.0.1
}

join_by_wire "$side_a" "$side_b" 1500
start "$work/own.log" nsenter -t "$side_a" -n env STP_LINK=iface:stp0 "$bin/link_events"
watches own
stop $!

start_stpd a "$side_a" iface:stp0
stpd_a=$!
await_stpd a
start "$work/served.log" env STP_LINK="stpd:$work/a.sock" "$bin/link_events"
served=$!
watches served
stop "$stpd_a"
tells served 'event 0 status -107$'
expect wait "$served"
expect says "$work/served.log" 'the link has ended'
passed
