#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: trouble.sh BUILD-DIRECTORY
# What becomes of jobs of Open MPI over FI_EP_RDM of stp when a rank, a stpd or the link is killed: while they connect,
# with short messages under way, with long ones that are read, with one-sided operations, and at the end. Two ranks on
# two hosts, each with its stpd; Open MPI's own messages have a wire of their own. Each job has to end soon, and to
# leave nothing. A rank that is stopped for a minute is no error. STP_TROUBLE names the parts to run (rank stpd link
# stop).
here=$(realpath "$(dirname "$0")")
. "$here/../end_to_end/setup.sh"
. "$here/../lib/consumers.sh"
needs_long
[ -e "$build/lib/libfabric/libstp-fi.so" ] || skip "the provider was not built: libfabric-dev is missing"
needs_no_sanitizer
needs_namespaces
. "$here/../lib/openmpi.sh"
make_work_directory
build_mpi_programs
mpicc -O1 -o "$work/one_sided" "$here/one_sided.c" || fail "mpicc fails"
export FI_PROVIDER=^ofi_rxm
make_namespace side_a
make_namespace side_b
# shellcheck disable=SC2154 # made above
join_by_wire "$side_a" "$side_b" 9000
within "$side_a" ip link add own0 type veth peer name own0 netns "$side_b"
set_up_interface "$side_a" own0 1500 10.8.0.1/24
set_up_interface "$side_b" own0 1500 10.8.0.2/24
use_hosts "$side_a" "$side_b" 10.8.0
runs() { [[ " ${STP_TROUBLE-rank stpd link stop} " == *" $1 "* ]]; }
by_btl=(--mca osc rdma --mca btl "ofi,self" --mca btl_ofi_provider_include stp)

# What all users hold of the budgets of both stpd's.
held() { "$bin/stpctl" --json --socket "$work/a.sock" --socket "$work/b.sock" users; }
holds_as_before() { [ "$(held)" = "$before" ]; }
has_a_rank() { held | grep -q '"clients":{"used":[2-9]'; } # besides stpctl
# begin_stpds LINK
begin_stpds() {
  start_stpd b "$side_b" "$1"
  stpd_b=$!
  start_stpd a "$side_a" "$1"
  stpd_a=$!
  await_stpd a
  await_stpd b
  before=$(held)
}
last_rank() { pgrep -f "^$work/(mpi_programs|one_sided) " | tail -n 1; }
has_no_rank() { [ -z "$(last_rank)" ]; }

phases=(connect eager rendezvous one-sided finalize)

# begin PHASE [SECONDS]: a job that is in that phase. In the last one, one rank goes on for so long.
begin() {
  local program=("$work/mpi_programs") options=()
  case $1 in
    connect) program+=(ring -1) ;;
    eager) program+=(pingpong -1) ;;
    rendezvous) program+=(sizes -1) ;;
    one-sided) program=("$work/one_sided" 1000000) options=("${by_btl[@]}") ;;
    finalize) program+=(finalize "${2--1}") ;;
  esac
  through_two 1 "${program[@]}"
  mpi "$1" 120 "${options[@]}" "${through[@]}"
  case $1 in
    connect) expect wait_for 60 has_a_rank ;;
    one-sided) expect wait_for 60 has_a_rank && sleep 3 ;;
    *) is_under_way "$1" ;;
  esac
}

kill_ranks() {
  local phase
  begin_stpds iface:stp0
  for phase in "${phases[@]}"; do
    begin "$phase"
    kill -KILL "$(last_rank)"
    ends_soon "$phase" 60
    expect wait_for 20 has_no_rank
    expect wait_for 20 holds_as_before
  done
  stop "$stpd_a" "$stpd_b"
  say "ranks were killed in each phase, and stpd holds what it held before"
}

kill_stpds() {
  local phase
  for phase in "${phases[@]}"; do
    begin_stpds iface:stp0
    begin "$phase"
    kill_at_once "$stpd_b"
    ends_soon "$phase" 60
    expect wait_for 20 has_no_rank
    if grep -q "Segmentation fault" "$work/$phase.log"; then fail "$phase: a rank has ended with SIGSEGV"; fi
    stop "$stpd_a"
  done
  say "stpd was killed in each phase"
}

# An interface that is switched off tells its host; a network that drops all frames tells nobody.
switch_off() { within "$side_b" ip link set stp0 down; }
switch_on() { within "$side_b" ip link set stp0 up; }
drop_all() {
  local side
  for side in "$side_a" "$side_b"; do
    within "$side" nft -f - <<NFT || fail "nftables cannot drop frames here"
add table netdev lost
add chain netdev lost drops { type filter hook ingress device stp0 priority 0; policy drop; }
NFT
  done
}
drop_none() {
  within "$side_a" nft delete table netdev lost
  within "$side_b" nft delete table netdev lost
}

# A peer that is silent is given up after 5.75 s (docs/protocol.md, 5.23), but who connects waits for up to 30 s. Ranks in
# MPI_Finalize need the link no more.
kill_links() { # LINK CUT MEND
  local phase cut
  begin_stpds "$1"
  for phase in "${phases[@]}"; do
    begin "$phase" 8
    cut=$SECONDS
    $2
    expect wait_for 60 has_no_rank
    say "$phase: no rank is left $((SECONDS - cut)) s after the link was lost"
    if [ "$phase" = finalize ]; then
      expect wait_for 60 ends "$mpi"
    else
      ends_soon "$phase" 60 # mpirun may take its time
    fi
    if grep -q "Segmentation fault" "$work/$phase.log"; then fail "$phase: a rank has ended with SIGSEGV"; fi
    $3
    expect wait_for 20 holds_as_before
  done
  stop "$stpd_a" "$stpd_b"
  say "the link was lost in each phase ($2), and stpd holds what it held before"
}

stop_a_rank() {
  local stopped
  begin_stpds iface:stp0
  through_two 1 "$work/mpi_programs" ring 100
  mpi stopped 240 "${through[@]}"
  is_under_way stopped
  stopped=$(last_rank)
  kill -STOP "$stopped"
  sleep 60
  kill -CONT "$stopped"
  ends_well stopped
  expect [ "$(grep -c 'all is right' "$work/stopped.log")" -eq 2 ]
  expect wait_for 20 holds_as_before
  stop "$stpd_a" "$stpd_b"
}

! runs rank || kill_ranks
! runs stpd || kill_stpds
! runs link || kill_links iface:stp0 switch_off switch_on
if runs link && within "$side_a" nft list tables >/dev/null 2>&1; then kill_links udp:stp0 drop_all drop_none; fi
! runs stop || stop_a_rank
passed
