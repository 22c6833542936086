#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: dat_programs.sh BUILD-DIRECTORY
# Programs of Debian's dapl2-utils, as they are, between two daemons over memif. dapltest ends with 0 even when it
# fails, so what it prints is read.
# STP_LONG=1: more rounds of more endpoints, the transaction test takes a minute, and all once more over veth from
# one namespace to another.
. "$(dirname "$0")/setup.sh"

[ -e "$build/lib/libdaplstp.so.0" ] || skip "the provider was not built: libdapl-dev is missing"
grep -q '^STP_SANITIZE:[A-Z]*=$' "$build/CMakeCache.txt" ||
  skip "stock programs cannot load a library with sanitizers"
for needed in dtest dtestcm dtestsrq dapltest; do
  command -v "$needed" >/dev/null || skip "$needed is missing: apt-get install dapl2-utils"
done
make_work_directory

# What goes before a command of side a or b: its dat.conf, and its namespace if it has one. Clients of
# dtest and dtestcm take over their server's adapter, so that both sides call theirs stp0.
on_a=() on_b=()
use_side() { # SIDE [NAMESPACE-HOLDER]
  local -n prefix=on_$1
  "$bin/stpctl" --socket "$work/$1.sock" dat-conf >"$work/$1.conf" || fail "stpctl dat-conf"
  prefix=(env "DAT_OVERRIDE=$work/$1.conf")
  [ $# -lt 2 ] || prefix+=(nsenter -t "$2" -n)
}
# The TCP port that the programs use besides.
tcp_is_open() { "${on_b[@]}" ss -ltnH "sport = :15828" | grep -q .; }
# No connection that has ended holds the port for a minute.
no_time_wait() { within "$1" sysctl -qw net.ipv4.tcp_max_tw_buckets=0 2>/dev/null; }
tcp_is_free() { ! "${on_b[@]}" ss -tanH "sport = :15828" | grep -q .; }

dtestsrq_is_ready() { grep -q '^ Accepting' "$work/dtestsrq.b.log"; }

# pair NAME READY HOST ARGUMENT...: a dtest program as server on b, and when READY says
# so as client on a, which finds the server on HOST.
pair() {
  local name=$1 ready=$2 host=$3 server
  shift 3
  wait_for 90 tcp_is_free
  start "$work/$name.b.log" "${on_b[@]}" timeout 240 stdbuf -oL "$name" -P stp0 -s "$@"
  server=$!
  expect wait_for 60 "$ready"
  sleep 0.5 # it is there before it takes anybody
  "${on_a[@]}" timeout 240 stdbuf -oL "$name" -P stp0 -h "$host" "$@" >"$work/$name.a.log" 2>&1 ||
    { tail "$work/$name.a.log" >&2 && fail "$name does not end well"; }
  expect wait "$server"
}

# dapltest_of NAME ARGUMENT...: a client of the dapltest server on b.
# With several threads, each thread of dapltest sets their common counter of awaited connections to its own number, so
# that it falls below zero where two do so at once. Then dapltest gives up after 10 s, and is run again.
dapltest_of() {
  local name=$1 left=5
  shift
  while
    "${on_a[@]}" timeout 400 dapltest "$@" >"$work/$name.log" 2>&1 || fail "dapltest $* does not end"
    grep -q '^FAIL: -[0-9]* Server test connections did not report ready' "$work/$name.log" && [ $((--left)) -gt 0 ]
  do :; done
  # What a test is about is told as well.
  if grep -v '^Description:' "$work/$name.log" | grep -iE 'fail|error|unexpected|timed out|warning' >&2; then
    fail "dapltest $*"
  fi
}
feature() { # NAME CASE...
  dapltest_of "feature-$1" -T F -D stp0 -s 10.9.0.2 -f "$@"
  expect says "$work/feature-$1.log" "Result: PASS"
}

# How much the tests do: endpoints of each thread, and rounds in per cent.
endpoints=3 part=10
if [ -n "${STP_LONG-}" ]; then endpoints=8 part=100; fi
part_of() { echo $(($1 * part / 100)); }
# A message either way on each endpoint of each of 4 threads, ROUNDS times.
transactions() { # ROUNDS
  dapltest_of transactions -T T -s 10.9.0.2 -D stp0 -i "$1" -t 4 -w "$endpoints" client SR 256 1 server SR 256 1
  expect says "$work/transactions.log" "4 threads, $endpoints EPs"
}
# dapltest counts rounds, not time: the rounds are multiplied until one run takes a minute.
minute_of_transactions() {
  local rounds=1000 seconds=0
  until [ "$seconds" -ge 60 ]; do
    transactions "$rounds"
    seconds=$(awk '/^Total Time/ { print int($4) }' "$work/transactions.log")
    rounds=$((rounds * 70 / (seconds + 1)))
  done
}

programs() {
  local tests=(-T T -s 10.9.0.2 -D stp0)
  pair dtestcm tcp_is_open "$tcp_host" -c 50
  expect says "$work/dtestcm.a.log" "DAPL Connection Test Complete"
  pair dtestsrq dtestsrq_is_ready 10.9.0.2 -S 0 -c 4 -B 4
  expect says "$work/dtestsrq.a.log" "Test Complete"

  start "$work/dapltest.b.log" "${on_b[@]}" timeout 1200 dapltest -T S -D stp0
  local server=$!
  wait_for 20 contains "$work/dapltest.b.log" "Service Point Ready"
  sleep 1 # its lines are late
  transactions "$(part_of 100)"
  [ -z "${STP_LONG-}" ] || minute_of_transactions
  dapltest_of reserved "${tests[@]}" -i "$(part_of 50)" -t 4 -w "$((endpoints / 2))" -r client SR 256 1 server SR 256 1
  dapltest_of mixed "${tests[@]}" -i "$(part_of 50)" -t 2 -w "$((endpoints / 2))" -V client SR 256 4 server RW 4096 2 \
    server RR 4096 2 client RR 4096 2 client RW 4096 2 server SR 256 4
  dapltest_of long-ones "${tests[@]}" -i "$(part_of 20)" -t 1 -w 2 client SR 100000 2 server SR 100000 2
  dapltest_of writes -T P -s 10.9.0.2 -D stp0 -i "$(part_of 1024)" -p 16 -m p RW 65536 1
  dapltest_of reads -T P -s 10.9.0.2 -D stp0 -i "$(part_of 256)" -p 8 -m b RR 65536 1
  dapltest_of quit -T Q -s 10.9.0.2 -D stp0
  expect wait "$server"

  # All tests of dapltest, except those that need service points that make EPs, and those whose
  # handles crash the registry.
  dapltest_of limits -T L -D stp0 -m "$part" limit_ia limit_pz limit_cno limit_evd limit_ep limit_lmr \
    limit_rpost limit_size_lmr limit_psp limit_rsp
  feature hwconn
  feature endpoint
  feature pz
  feature mem case0 case1 case2 case3 case4
  feature queryinfo case0 case1 case2 case4 case5 case6 case7 case8 case9 case10 case11 case12 case14
  pair dtest tcp_is_open "$tcp_host"
  expect says "$work/dtest.a.log" "Test Complete. PASSED"
  expect says "$work/dtest.b.log" "Test Complete. PASSED"
}

link_kind=memif tcp_host=127.0.0.1
start_pair
# The port is that of every dtest of a machine: they have a namespace for it.
alone=()
if can_make_namespaces; then
  make_namespace alone
  no_time_wait "${alone[0]}"
fi
use_side a "${alone[@]}"
use_side b "${alone[@]}"
programs
if [ -n "${STP_LONG-}" ] && can_make_namespaces; then
  stop "$stpd_a" && stop "$stpd_b"
  link_kind=veth tcp_host=10.9.0.2
  start_pair
  # shellcheck disable=SC2154 # of start_pair
  no_time_wait "$side_a" && no_time_wait "$side_b"
  # shellcheck disable=SC2154 # of start_pair
  use_side a "$side_a" && use_side b "$side_b"
  programs
fi
passed
