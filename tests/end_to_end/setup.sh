# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced first by every end-to-end test; its argument is the build directory.
set -u
build=$1
# shellcheck disable=SC2034 # used by daemons.sh
bin=$build/bin
program=$(basename "$0" .sh)
tools=$(dirname "${BASH_SOURCE[0]}")/../../tools
export TSAN_OPTIONS="suppressions=$(realpath "$tools/../tests/tsan.supp")"
# shellcheck source=../../tools/lib/common.sh
. "$tools/lib/common.sh"
# shellcheck source=../../tools/lib/network.sh
. "$tools/lib/network.sh"
# shellcheck source=../../tools/lib/daemons.sh
. "$tools/lib/daemons.sh"

skip() {
  echo "SKIPPED: $*"
  exit 77
}

needs_namespaces() {
  can_make_namespaces || skip "only root may make network namespaces here"
}

# random_file PATH SIZE
random_file() { head -c "$(bytes_of "$2")" /dev/urandom >"$1"; }

# The last words of a test: all programs have ended, and no sanitizer had anything to say.
passed() {
  stop "${started[@]}"
  if grep -E '(Address|Leak|Thread|UndefinedBehavior)Sanitizer|runtime error:' "$work"/*.log; then
    fail "a sanitizer found something"
  fi
  echo "PASSED"
  exit 0
}

expect() {
  "$@" || {
    tail -n 20 "$work"/*.log >&2
    fail "not true: $*"
  }
}
same() { cmp "$1" "$2"; }
says() { contains "$@" || { cat "$1" >&2; return 1; }; }
# breaks_no_rule TRACE: a program that waits for its processor writes the time of a frame late, and then seems to repeat it
# too early.
breaks_no_rule() {
  "$bin/stp-replay" check "$1" >"$work/check.log" && return
  says "$work/check.log" ' of STP, ' && ! grep -v -e ': 5\.21 retry-too-soon: ' -e ': note: ' -e ' of STP, ' "$work/check.log"
}
is_empty_directory() { [ -z "$(ls -A "$1")" ]; }

# make_routed_sides MTU: namespaces side_a and side_b, and router between them. 10.9.1.2 and fd00:1::2 are at side_a, and
# 10.9.2.2 and fd00:2::2 at side_b, on stp0; the router has .1 on stp1 and on stp2.
make_routed_sides() {
  make_namespace side_a
  make_namespace side_b
  make_namespace router
  within "$router" sysctl -qw net.ipv4.ip_forward=1 || skip "no routing here"
  within "$router" sysctl -qw net.ipv6.conf.all.forwarding=1 2>/dev/null
  join_to_router "$side_a" 1 "$1"
  join_to_router "$side_b" 2 "$1"
}
join_to_router() { # HOLDER NUMBER MTU
  within "$1" ip link add stp0 mtu "$3" type veth peer name "stp$2" mtu "$3" netns "$router"
  within "$1" ip address add "10.9.$2.2/24" dev stp0
  within "$1" ip address add "fd00:$2::2/64" dev stp0 nodad 2>/dev/null
  within "$1" ip link set stp0 up
  within "$router" ip address add "10.9.$2.1/24" dev "stp$2"
  within "$router" ip address add "fd00:$2::1/64" dev "stp$2" nodad 2>/dev/null
  within "$router" ip link set "stp$2" up
  within "$1" ip route add default via "10.9.$2.1"
  within "$1" ip route add default via "fd00:$2::1" 2>/dev/null
}

# carry FILE HOST: by stp-send from a to a receiver at b.
carry() {
  rm -rf "$work/out"
  start_receiver receiver b "$work/out" 3000 --once
  local receiver=$!
  await_receiver receiver
  expect send_from a 120 "$1" "$2:3000" >"$work/sent"
  expect wait "$receiver"
  expect same "$1" "$work/out/$(basename "$1")"
}

# of_daemons "SIDE..." COUNTER...: the sum of these counters of these daemons.
of_daemons() {
  local side sides=$1
  shift
  for side in $sides; do "$bin/stpctl" --socket "$work/$side.sock" stats --all; done |
    awk -v names=" $* " 'index(names, " " $1 " ") { sum += $2 } END { print sum + 0 }'
}

# expect_few_repeats "SIDE..." FRAMES: more than FRAMES frames came, the link lost none, and less than a thousandth
# came or went again.
expect_few_repeats() {
  local frames again lost
  frames=$(of_daemons "$1" rx_frames)
  again=$(of_daemons "$1" duplicate_stu duplicate_block duplicate_rc cts_repeated retries)
  lost=$(of_daemons "$1" link_rx_missed link_tx_refused)
  say "$frames frames, $again of them again, $lost lost by the link"
  expect [ "$frames" -gt "$2" ]
  expect [ "$lost" -eq 0 ]
  expect [ "$((1000 * again))" -le "$frames" ]
}
