#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Links over UDP, of users without any capability: through a router, over IPv4 and IPv6, with UDP ports of their own,
# over a way that is shorter than the interface, whether a router reports that or not, and over one that loses, doubles and
# delays packets. A trace has packets of IP that break no rule.
. "$(dirname "$0")/setup.sh"
needs_namespaces
command -v setpriv >/dev/null || skip "no setpriv here"
make_work_directory
chmod 0755 "$work"
make_routed_sides 9000

# Root gives up its capabilities, and its id where it can; in `unshare -rn` there is no other one.
plain=(setpriv --bounding-set=-all --inh-caps=-all)
user=0
cp "$bin/stpd" "$work" # where that user can reach it
if setpriv --reuid=65534 --clear-groups test -x "$work/stpd" 2>/dev/null; then
  user=65534
  plain=(setpriv --reuid=$user --clear-groups)
fi

# start_plain SIDE HOLDER LINK [OPTION...]: a daemon without capabilities.
start_plain() {
  rm -rf "$work/run_$1"
  put_aside "$work/$1.log"
  mkdir -m 0755 "$work/run_$1"
  chown "$user" "$work/run_$1"
  start "$work/$1.log" nsenter -t "$2" -n "${plain[@]}" "$work/stpd" --link "$3" \
    --socket "$work/run_$1/stpd.sock" --socket-mode 666 "${@:4}"
  ln -sfn "run_$1/stpd.sock" "$work/$1.sock"
}
stop_both() { stop "$daemon_a" "$daemon_b"; }
start_both() { # LINK-A LINK-B [OPTION-A...]
  start_plain a "$side_a" "$1" "${@:3}"
  daemon_a=$!
  start_plain b "$side_b" "$2"
  daemon_b=$!
  await_stpd a
  await_stpd b
}

# worsen: from now on the router drops each hundredth packet, doubles each fiftieth, holds each fiftieth back, and marks
# each hundredth of those that may be marked (ECN), where its kernel can. Packets that are still joined count as one.
worsen() {
  within "$router" tc qdisc add dev stp2 root handle 1: htb default 20 r2q 100000 2>/dev/null &&
    within "$router" tc class add dev stp2 parent 1: classid 1:10 htb rate 50mbit quantum 60000 2>/dev/null &&
    within "$router" tc class add dev stp2 parent 1: classid 1:20 htb rate 100gbit quantum 60000 2>/dev/null &&
    within "$router" nft -f - 2>/dev/null <<'RULES'
table ip worse {
  chain there {
    type filter hook forward priority 0
    meta l4proto udp numgen inc mod 100 7 counter drop
    oifname stp2 meta l4proto udp numgen inc mod 50 11 counter dup to 10.9.2.2 device stp2
    oifname stp2 meta l4proto udp numgen inc mod 50 23 counter meta priority set 1:10
    oifname stp2 ip ecn ect0 numgen inc mod 100 31 counter ip ecn set ce
  }
}
RULES
}

# narrow: from now on the way to b is slower than both ends, and its queue short. False: not here.
narrow() { within "$router" tc qdisc add dev stp2 root tbf rate 200mbit burst 64kb limit 128kb 2>/dev/null; }
# widen VARIABLE: no more; into it comes how many packets that has cost.
widen() {
  local -n overflowed=$1
  # shellcheck disable=SC2034 # a reference
  overflowed=$(within "$router" tc -s qdisc show dev stp2 | sed -n 's/.*(dropped \([0-9]*\),.*/\1/p')
  within "$router" tc qdisc delete dev stp2 root
}

# quiet: from now on the router tells nobody that a packet is too long. False: not here.
quiet() {
  within "$router" nft -f - 2>/dev/null <<'RULES'
table ip quiet {
  chain out {
    type filter hook output priority 0
    icmp type destination-unreachable drop
  }
}
table ip6 quiet {
  chain out {
    type filter hook output priority 0
    icmpv6 type packet-too-big drop
  }
}
RULES
}

# shorten SIDE: from now on the router's ways to 10.9.SIDE.2 and fd00:SIDE::2 carry packets of 1,400 bytes. lengthen SIDE: as
# before.
shorten() { change_ways "$1" mtu lock 1400; }
lengthen() { change_ways "$1"; }
change_ways() { # SIDE [ATTRIBUTE...]
  within "$router" ip route change "10.9.$1.0/24" dev "stp$1" src "10.9.$1.1" "${@:2}"
  if [ -n "$ipv6" ]; then within "$router" ip -6 route replace "fd00:$1::/64" dev "stp$1" metric 256 "${@:2}"; fi
}
ipv6=
if within "$side_a" ip -6 route get fd00:2::2 >/dev/null 2>&1; then ipv6=yes; fi

# ways_are WORD...: of b's connections, in alphabetical order.
ways_are() {
  [ "$("$bin/stpctl" --socket "$work/b.sock" connections --json | grep -o '"way":"[a-z]*"' | cut -d'"' -f4 |
    sort -u | xargs)" = "$*" ]
}

# moved COUNT: more than so many datagrams have come to b.
moved() { [ "$(of_daemons b rx_stus)" -gt "$1" ]; }

random_file "$work/file" 20M
random_file "$work/some" 6M
random_file "$work/short" 300K

start_both udp: udp:
expect [ "$(awk '/^CapEff/ { print $2 }' "/proc/$(pgrep -s "$daemon_a" -x stpd)/status")" = 0000000000000000 ]
carry "$work/file" 10.9.2.2
expect [ "$(of_daemons "a b" udp_tx_dropped udp_tx_too_long udp_tx_refused)" -eq 0 ]
say "$(of_daemons a udp_tx_datagrams) datagrams in $(of_daemons a udp_tx_calls) calls"
if [ -n "$ipv6" ]; then carry "$work/short" '[fd00:2::2]'; fi

# Nobody is there, and whoever asks learns why.
nsenter -t "$side_a" -n timeout 30 "$bin/stpctl" --socket "$work/a.sock" ping 10.9.2.2/9:3000 >"$work/nobody" 2>&1 &&
  fail "a port that nobody has opened answers"
expect says "$work/nobody" 'has no socket for that port'
# stp-send tells it after three seconds, not only when it gives up after ten.
STP_LINK=stpd:$work/a.sock nsenter -t "$side_a" -n timeout 6 "$bin/stp-send" "$work/short" 10.9.2.2/9:3000 \
  >"$work/soon" 2>&1 && fail "a port that nobody has opened takes a file"
expect says "$work/soon" '10.9.2.2/9:3000 does not answer; the link says: '
if worsen; then
  carry "$work/file" 10.9.2.2
  expect [ "$(within "$router" nft list table ip worse | grep -c 'counter packets [1-9]')" -eq 4 ]
  expect [ "$(of_daemons b rx_marked)" -gt 0 ]
  within "$router" nft delete table ip worse
  within "$router" tc qdisc delete dev stp2 root
else
  say "the kernel here makes no way worse: not tried"
fi
lost=
if narrow; then
  carry "$work/some" 10.9.2.2
  widen lost
  expect [ "$(of_daemons b cts_held)" -gt 0 ]
fi
stop_both

# Two shards at each end: the kernel brings each frame to its own.
start_both udp:10.9.1.2,queues=2 udp:10.9.2.2,queues=2
steered='the kernel picks the socket by D_Port: 2 sockets at one UDP port; each shard sends on its own'
"$bin/stpctl" --socket "$work/b.sock" links >"$work/links"
expect says "$work/links" "steering: $steered"
for number in 1 2; do
  start_receiver "receiver$number" b "$work/out$number" "300$number" --once
  receivers[number]=$!
  await_receiver "receiver$number"
done
for number in 1 2; do
  STP_LINK=stpd:$work/a.sock start "$work/sender$number.log" timeout 120 "$bin/stp-send" "$work/file" "10.9.2.2:300$number"
  senders[number]=$!
done
for number in 1 2; do
  expect wait "${senders[number]}"
  expect wait "${receivers[number]}"
  expect same "$work/file" "$work/out$number/file"
done
expect [ "$(of_daemons "a b" wrong_queue shard_full)" -eq 0 ]
stop_both

# Ports of one's own, one socket each for IPv4. The receiver asks for more than the way carries.
start_both udp:10.9.1.2,port=9001 udp:10.9.2.2,port=9002,congestion=off --pcap "$work/run_a/trace.pcapng"
carry "$work/short" 10.9.2.2/9002
if [ -n "$lost" ]; then
  lost_so=
  narrow
  carry "$work/some" 10.9.2.2/9002
  widen lost_so
  say "a queue that is too short: $lost packets lost, with congestion=off $lost_so"
  expect [ "$((3 * lost))" -lt "$lost_so" ]
fi
stop_both
expect breaks_no_rule "$work/run_a/trace.pcapng"
expect [ "$("$bin/stp-replay" decode --json "$work/run_a/trace.pcapng" | grep -c '"op":"DATA"')" -ge 30 ]

# The way is shorter than the interface: with mtu= it works.
within "$router" ip link set stp2 mtu 1400
within "$side_b" ip link set stp0 mtu 1400
start_both udp:10.9.1.2,mtu=1400 udp:10.9.2.2
carry "$work/short" 10.9.2.2
stop_both

# Neither host knows, but the router reports it: connections go on with shorter STUs, and the link says why.
within "$side_b" ip link set stp0 mtu 9000
start_both udp: udp:
carry "$work/short" 10.9.2.2
if [ -n "$ipv6" ]; then carry "$work/short" '[fd00:2::2]'; fi
"$bin/stpctl" --socket "$work/a.sock" links >"$work/links"
expect says "$work/links" 'the way to 10.9.2.2/8181 carries packets of 1400 bytes only: open the link with mtu=1400'
[ -z "$ipv6" ] || expect says "$work/links" 'the way to [fd00:2::2]/8181 carries packets of 1400 bytes only'
expect [ "$(of_daemons a udp_reports)" -gt 0 ]
expect [ "$(of_daemons a ways_short)" -gt 0 ]
expect [ "$(of_daemons a udp_tx_dropped udp_tx_too_long udp_tx_refused)" -eq 0 ]
stop_both

# No router says so: connections find out what the way carries, there, back, and both ways.
if ! quiet; then
  say "the kernel here cannot keep a router quiet: not tried"
  passed
fi
find_way() { # ARGUMENTS OF carry
  carry "$@"
  expect [ "$(of_daemons a ways_short)" -gt 0 ]
  "$bin/stpctl" --socket "$work/a.sock" links >"$work/links"
  if contains "$work/links" mtu=; then fail "the link advises what the connection has found out"; fi
}
start_both udp:10.9.1.2 udp:10.9.2.2 --pcap "$work/run_a/trace.pcapng"
find_way "$work/some" 10.9.2.2
stop_both
expect breaks_no_rule "$work/run_a/trace.pcapng"
within "$router" ip link set stp2 mtu 9000
find_way_to() { # SIDE LINK-A LINK-B HOST: of the ways that to SIDE alone is short
  shorten "$1"
  start_both "$2" "$3"
  find_way "$work/some" "$4"
  stop_both
  lengthen "$1"
}
if [ -n "$ipv6" ]; then
  find_way_to 1 'udp:[fd00:1::2]' 'udp:[fd00:2::2]' '[fd00:2::2]'
else
  find_way_to 1 udp:10.9.1.2 udp:10.9.2.2 10.9.2.2
fi
without=("${plain[@]}")
plain=() # a raw socket needs a capability
find_way_to 2 ip:10.9.1.2 ip:10.9.2.2 10.9.2.2
plain=("${without[@]}")

# An ordinary user has a network namespace of its own, and no stpd: its programs have their links themselves. The second
# name has an IPv6 address alone.
alone=(setpriv --reuid=65534 --clear-groups unshare -rnm)
send_alone() { # LINK LINK PEER
  rm -rf "$work/alone/out"
  expect env -C "$work/alone" "${alone[@]}" timeout -k 5 60 bash -c 'ip link set lo up && mount --bind hosts /etc/hosts && mkdir out
    ./stp-recv --link "$1" --listen :3000 --out out --once & receiver=$!
    until ./stp-send --link "$2" some "$3:3000"; do sleep 0.2; done
    wait "$receiver"' - "$@" >"$work/alone.log" 2>&1
  expect same "$work/some" "$work/alone/out/some"
}
if [ "$user" -ne 0 ] && "${alone[@]}" true 2>/dev/null; then
  mkdir -m 0777 "$work/alone"
  cp "$bin/stp-send" "$bin/stp-recv" "$work/some" "$work/alone"
  printf '127.0.0.1 four\n::1 six\n' >"$work/alone/hosts"
  chmod a+r "$work/alone"/*
  send_alone udp:127.0.0.1 udp:127.0.0.2 four
  [ -z "$ipv6" ] || send_alone 'udp:[::1],port=9001' 'udp:[::1],port=9002' six/9001
fi

# The way gets shorter under a connection: both learn what that looks like, also from their last words.
rm -rf "$work/out"
start_both udp:10.9.1.2 udp:10.9.2.2
start_receiver receiver b "$work/out" 3000 --once --idle-timeout 4
receiver=$!
await_receiver receiver
STP_LINK=stpd:$work/a.sock start "$work/silent.log" "$bin/stp-send" --bwlimit 2M "$work/file" 10.9.2.2:3000
sender=$!
wait_for 20 moved 1000 || fail "nothing moves"
# A way through a router is shared with others, and one to a host of the own subnet is not.
start_plain c "$router" udp:10.9.2.1
daemon_c=$!
await_stpd c
start_receiver neighbour c "$work/out_c" 3000 --once
neighbour=$!
await_receiver neighbour
STP_LINK=stpd:$work/b.sock start "$work/next_door.log" "$bin/stp-send" --bwlimit 2M "$work/some" 10.9.2.1:3000
next_door=$!
wait_for 20 ways_are own shared || fail "$("$bin/stpctl" --socket "$work/b.sock" connections)"
stop "$next_door" "$neighbour" "$daemon_c"
shorten 2
wait_for 20 contains "$work/silent.log" 'mtu=' || fail "nothing arrives, and stp-send does not say why"
expect says "$work/silent.log" 'nothing arrives at the receiver any more: 10.9.2.2 answers'
wait "$sender" "$receiver"
tail -n 1 "$work/receiver.log" >"$work/last"
expect says "$work/last" 'mtu=9000'
stop_both
passed
