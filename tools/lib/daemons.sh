# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# stpd and the programs that use it. Sourced after common.sh; $bin holds the binaries.

# start_stpd NAME HOLDER LINK [OPTION...]: serving at $work/NAME.sock, logging to $work/NAME.log.
# HOLDER "-": in the namespace of this script. The pid is in $!.
start_stpd() {
  local name=$1 holder=$2 link=$3 log=$work/$1.log prefix=()
  shift 3
  put_aside "$log"
  if [ "$holder" != - ]; then prefix=(nsenter -t "$holder" -n); fi
  start "$log" "${prefix[@]}" "${bin:?}/stpd" --link "$link" --socket "$work/$name.sock" "$@"
}

await_stpd() {
  wait_for 20 line_of "$work/$1.log" "stpd: ready" || {
    cat "$work/$1.log" >&2
    fail "stpd $1 does not start"
  }
}

# STP_TEST_QUEUES: each daemon's link has that many shards.
queues=${STP_TEST_QUEUES:+,queues=$STP_TEST_QUEUES}

# start_pair [OPTION...]: stpd's a and b on two ends of $link_kind (veth or memif), answering to
# 10.9.0.1 and 10.9.0.2; their pids are in $stpd_a and $stpd_b. Options go to a.
start_pair() {
  local memif=$work/memif.sock common=mtu=9000$queues
  case ${link_kind:?} in
    veth)
      make_namespace side_a
      make_namespace side_b
      join_by_wire "$side_a" "$side_b" 9000
      start_pair_in "$side_a" "$side_b" "$@"
      ;;
    memif)
      start_stpd b - "memif:$memif,role=server,mac=02:00:00:00:09:02,address=10.9.0.2/24,$common"
      stpd_b=$!
      await_stpd b
      start_stpd a - "memif:$memif,role=client,mac=02:00:00:00:09:01,address=10.9.0.1/24,$common" \
        "$@"
      stpd_a=$!
      await_stpd a
      ;;
  esac
}

# start_pair_in HOLDER-A HOLDER-B [OPTION...]: the same on interfaces stp0 that are there already.
start_pair_in() {
  start_stpd b "$2" "iface:stp0$queues"
  stpd_b=$!
  start_stpd a "$1" "iface:stp0$queues" "${@:3}"
  stpd_a=$!
  await_stpd a
  await_stpd b
}

# start_receiver NAME SIDE DIRECTORY PORT [OPTION...]: logging to $work/NAME.log; the pid is in $!.
start_receiver() {
  local name=$1 side=$2 directory=$3 port=$4
  shift 4
  mkdir -p "$directory"
  put_aside "$work/$name.log"
  start "$work/$name.log" "$bin/stp-recv" --link "stpd:$work/$side.sock" --listen ":$port" \
    --out "$directory" "$@"
}

await_receiver() {
  wait_for 20 line_of "$work/$1.log" "listening on" || {
    cat "$work/$1.log" >&2
    fail "stp-recv $1 does not listen"
  }
}

# send_from SIDE SECONDS ARGUMENT...: stp-send with a time limit. It runs in the background, so that
# the script still handles signals.
send_from() {
  local side=$1 seconds=$2
  shift 2
  setsid timeout -k 5 "$seconds" "$bin/stp-send" --link "stpd:$work/$side.sock" "$@" &
  started+=($!)
  wait $!
}
