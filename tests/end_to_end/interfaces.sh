#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Changes of interfaces: many daemons start at once; an interface goes down, is removed and comes
# back; the MTU of one end does not fit that of the other.
. "$(dirname "$0")/setup.sh"
needs_namespaces
make_work_directory

links() { "$bin/stpctl" --socket "$work/$1.sock" links; }
pings() { "$bin/stpctl" --socket "$work/a.sock" ping 10.9.0.2:2999 --count 1 >"$work/ping" 2>&1; }
ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }

# costs_nothing PID: in one of ten seconds, the daemon uses less than 3 % of a core. If it woke up for
# a link that is down, it would use more in each of them.
costs_nothing() {
  local before
  for _ in {1..10}; do
    before=$(ticks "$1")
    sleep 1
    [ $(($(ticks "$1") - before)) -gt $(($(getconf CLK_TCK) * 3 / 100)) ] || return 0
  done
  return 1
}
gauge() { "$bin/stpctl" --socket "$work/$1.sock" stats --prometheus | grep -q -- "$2"; }
told() { grep -qF -- "$2" "$work/$1.log"; }
troubled() { links "$1" | grep -qF -- "$2"; }
untroubled() { links "$1" | tee "$work/links.log" | awk "END { exit NR != 2 }"; }

# Eight daemons at once in one namespace.
make_namespace many
for i in 1 2 3 4; do
  within "$many" ip link add "many$i" type veth peer name "more$i"
  within "$many" ip link set "many$i" up
  within "$many" ip link set "more$i" up
done
# One interface under two names.
within "$many" ip link property add dev many1 altname the-first-port-of-the-card
printf '[link.%s]\nlink = "iface:%s"\n' a many1 b the-first-port-of-the-card >"$work/two.conf"
! within "$many" "$bin/stpd" --check "$work/two.conf" 2>"$work/check.log" || fail "two links on one interface pass"
expect says "$work/check.log" "are on one device"
for i in 1 2 3 4; do
  for end in many more; do start_stpd "$end$i" "$many" "iface:$end$i"; done
done
# On two slow cores eight of them take their time.
all_ready() { [ "$(grep -l '^stpd: ready' "$work"/m{any,ore}?.log | wc -l)" -eq 8 ]; }
wait_for 120 all_ready || fail "not all of eight daemons start: $(tail -n 2 "$work"/m{any,ore}?.log)"
for pid in "${started[@]:1}"; do stop "$pid"; done

make_namespace side_a
make_namespace side_b
join_by_wire "$side_a" "$side_b" 9000
start_pair_in "$side_a" "$side_b"
start "$work/pings.log" "$bin/stpctl" --socket "$work/b.sock" ping --serve :2999
wait_for 30 pings || fail "no answer to a ping"

# Down, and removed: no CPU time, one line in the log. The link works again without help.
within "$side_a" ip link set stp0 down
wait_for 20 troubled a "ip link set stp0 up" || fail "stpctl links does not tell that it is down"
expect gauge a 'stp_link_state{.*state="down"} 1$'
expect gauge a 'stp_link_up{.*} 0$'
expect costs_nothing "$(session_of "$stpd_a" | tail -n 1)"
within "$side_a" ip link set stp0 up
wait_for 30 pings || fail "the link is not taken up again"
wait_for 20 untroubled a || fail "the trouble is not over"
expect_one_line() { expect [ "$(grep -c "link iface:stp0$1" "$work/a.log")" -eq 1 ]; }
expect_one_line ': down: '
within "$side_a" ip link delete stp0
wait_for 20 troubled a "has gone" || fail "stpctl links does not tell that it has gone"
expect costs_nothing "$(session_of "$stpd_a" | tail -n 1)"
join_by_wire "$side_a" "$side_b" 9000
wait_for 30 pings || fail "the new interface is not taken up"
wait_for 20 untroubled a || fail "the trouble is not over"
# The new one is down for a moment, which the log may tell.
expect_one_line ': gone: '

# The address is assigned later, and the MTU is lowered before anybody sends.
within "$side_a" ip address flush dev stp0
within "$side_a" ip address add 10.9.0.7/24 dev stp0
wait_for 20 gauge a 'stp_link_info{.*address="10.9.0.7"' || fail "the new address is not seen"
within "$side_a" ip address flush dev stp0
within "$side_a" ip address add 10.9.0.1/24 dev stp0
within "$side_a" ip link set stp0 mtu 1500
wait_for 20 troubled a "has MTU 1500 and this link 9000" || fail "stpctl links tells of no MTU"
wait_for 10 told a ": mtu mismatch: " || fail "the log tells of no MTU"
within "$side_a" ip link set stp0 mtu 9000
wait_for 20 untroubled a || fail "the trouble is not over"

# The other end receives frames of 1500 bytes at most. A file waits, short frames pass, and the file
# goes on once the other end accepts longer frames.
random_file "$work/file" 4M
start_receiver receiver b "$work/out" 3000
await_receiver receiver
within "$side_b" ip link set stp0 mtu 1500
start "$work/sent" timeout -k 5 120 "$bin/stp-send" --link "stpd:$work/a.sock" "$work/file" 10.9.0.2:3000
sending=$!
wait_for 20 troubled a "bytes or more do not leave" || fail "stpctl links tells of no MTU"
for _ in 1 2 3; do wait_for 5 pings || fail "no answer to a short ping"; done
wait_for 10 told a "bytes or more do not leave" || fail "the log tells of no MTU"
expect [ "$(grep -c 'bytes or more do not leave' "$work/a.log")" -eq 1 ]
within "$side_b" ip link set stp0 mtu 9000
wait "$sending" || {
  cat "$work/sent" >&2
  fail "the file was not sent"
}
expect same "$work/file" "$work/out/file"
wait_for 20 untroubled a || fail "the trouble is not over"
passed
