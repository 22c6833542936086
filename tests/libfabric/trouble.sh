#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: trouble.sh BUILD-DIRECTORY
# What becomes of jobs of Open MPI over FI_EP_RDM of stp when a rank, a stpd or the link is killed: while they connect,
# with short messages under way, with long ones that are read, with one-sided operations, while windows are made, and at
# the end. Two ranks on two hosts, each with its stpd; Open MPI's own messages have a wire of their own. Each job has to
# end in time, and to leave nothing: of budgets and clients, of memory files and descriptors of the stpd's that are left,
# of sockets. So has a job that ends well, of sixteen ranks on one stpd and of eight on two. A rank that is stopped for a
# minute is no error. STP_TROUBLE names the parts to run (many rank stpd link stop).
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
make_two_hosts
runs() { [[ " ${STP_TROUBLE-many rank stpd link stop} " == *" $1 "* ]]; }
by_btl=(--mca osc rdma --mca btl "ofi,self" --mca btl_ofi_provider_include stp)

# The seconds within which each rank has to be gone. A rank or a stpd that is killed is noticed at once. A peer that is
# silent is given up after 4.5 s (docs/protocol.md, 5.23), and Open MPI then ends the ranks that are left, if its own
# collective operations do not go on: then who connects again is given up after 1 s. Who connects begins later, and may
# ask for its address first.
killed=5 silent=7 connecting=9
# mpirun itself may take its time.
mpirun_ends=10

# held SIDE...: what all users hold of the budgets of these stpd's.
held() { "$bin/stpctl" --json "${@/#/--socket=$work/}" users; }
has_a_rank() { held a.sock b.sock | grep -q '"clients":{"used":[2-9]'; } # besides stpctl

# left SIDE...: all that a job may leave with these stpd's: of their budgets, their descriptors by kind and mapped files of
# memory; sockets of their clients; files that ranks of these hosts share. Their other sockets are the link's: one over UDP
# has another one while a station gets most of its datagrams.
left() {
  local side pid host
  held "${@/%/.sock}"
  for side; do
    pid=stpd_$side host=side_$side
    find "/proc/${!pid}/fd" -printf '%l\n' | grep -v ^socket: | sed 's/[0-9]\+//g' | sort | uniq -c
    grep -c memfd: "/proc/${!pid}/maps"
    within "${!host}" ss -xaH | wc -l
  done
  find /dev/shm -name '*stp-[ab]*'
}
# remember SIDE...: what is there before a job.
remember() {
  sides=("$@")
  before=$(left "$@")
}
leaves_nothing() { [ "$(left "${sides[@]}")" = "$before" ]; }
expect_nothing_left() { # PHASE
  local until=$((SECONDS + 20))
  until leaves_nothing; do
    [ $SECONDS -lt $until ] || {
      diff <(echo "$before") <(left "${sides[@]}") >&2
      fail "$1: the job leaves something"
    }
    pause 0.2
  done
}
# restart_stpd SIDE LINK
restart_stpd() {
  local host=side_$1
  start_stpd "$1" "${!host}" "$2"
  printf -v "stpd_$1" %s $!
  await_stpd "$1"
}
# begin_stpds LINK
begin_stpds() {
  restart_stpd b "$1"
  restart_stpd a "$1"
  run_a_job
  remember a b
}
# What a stpd makes for its first clients it keeps.
run_a_job() {
  through_two 1 "$work/mpi_programs" ring 1
  mpi first 60 "${through[@]}"
  ends_well first
  expect wait_for 20 has_no_rank
}
last_rank() { pgrep -f "^$work/(mpi_programs|one_sided) " | tail -n 1; }
has_no_rank() { [ -z "$(last_rank)" ]; }

phases=(connect eager rendezvous one-sided windows finalize)

# begin PHASE [SECONDS]: a job that is in that phase. In the last one, one rank goes on for so long.
begin() {
  local program=("$work/mpi_programs") options=()
  case $1 in
    connect) program+=(ring -1) ;;
    eager) program+=(pingpong -1) ;;
    rendezvous) program+=(sizes -1) ;;
    one-sided) program=("$work/one_sided" -1) options=("${by_btl[@]}") ;;
    windows) program=("$work/one_sided" -2) options=("${by_btl[@]}") ;;
    finalize) program+=(finalize "${2--1}") ;;
  esac
  through_two 1 "${program[@]}"
  mpi "$1" 120 "${options[@]}" "${through[@]}"
  case $1 in
    connect) expect wait_for 60 has_a_rank ;;
    *) is_under_way "$1" ;;
  esac
}

# Microseconds so far in which threads that could run waited for a CPU.
waited_for_cpus() { sed -n 's/^some.*total=//p' /proc/pressure/cpu 2>/dev/null || echo 0; }

# ranks_end PHASE SECONDS: no rank is left so soon. Where others use the CPUs meanwhile, it may take that time too, but at
# most as long again: the ranks, the stpd's and mpirun's daemons have to run several times, one after the other.
ranks_end() {
  local begun=${EPOCHREALTIME/./} limit=$(($2 * 1000000)) waited
  local waited_before
  waited_before=$(waited_for_cpus)
  until has_no_rank; do
    waited=$(($(waited_for_cpus) - waited_before))
    [ $((${EPOCHREALTIME/./} - begun)) -lt $((limit + (waited < limit ? waited : limit))) ] ||
      { tail -n 20 "$work/$1.log" >&2 && fail "$1: a rank is left after $2 s, and those of others"; }
    pause 0.05
  done
  waited=$(($(waited_for_cpus) - waited_before))
  say "$1: no rank is left after $(((${EPOCHREALTIME/./} - begun) / 1000)) ms, of which CPUs were short for $((waited / 1000))"
  # If a window cannot be made, Open MPI 4.1 frees what it has not made yet.
  if grep -q "Segmentation fault" "$work/$1.log" && ! grep -qE '\[ 1\].*\(ompi_osc_rdma_free\+' "$work/$1.log"; then
    grep -aE "Signal|\[ *[0-9]+\] " "$work/$1.log" >&2 # its stack
    fail "$1: a rank has ended with SIGSEGV"
  fi
}

kill_ranks() {
  local phase
  begin_stpds iface:stp0
  for phase in "${phases[@]}"; do
    begin "$phase"
    kill -KILL "$(last_rank)"
    ranks_end "$phase" $killed
    ends_soon "$phase" $mpirun_ends
    expect_nothing_left "$phase"
  done
  stop "$stpd_a" "$stpd_b"
  say "ranks were killed in each phase, and nothing is left of them"
}

# The stpd of one rank, and the rank of the other one gets an error. In the last phase it is that of the rank in
# MPI_Finalize: the other rank makes no calls.
kill_stpds() {
  local phase dead pid
  begin_stpds iface:stp0
  for phase in "${phases[@]}"; do
    dead=b
    if [ "$phase" = finalize ]; then dead=a && run_a_job && remember b; else remember a; fi
    begin "$phase"
    pid=stpd_$dead
    kill_at_once "${!pid}"
    ranks_end "$phase" $killed
    ends_soon "$phase" $mpirun_ends
    expect_nothing_left "$phase"
    restart_stpd $dead iface:stp0
  done
  stop "$stpd_a" "$stpd_b"
  say "stpd was killed in each phase, and the other one has nothing left of the job"
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

# In the last phase the other rank goes on for 8 s, and those in MPI_Finalize need the link no more.
kill_links() { # LINK CUT MEND
  local phase
  begin_stpds "$1"
  for phase in "${phases[@]}"; do
    begin "$phase" 8
    $2
    case $phase in
      connect) ranks_end "$phase" $connecting ;;
      finalize) ranks_end "$phase" $((8 + silent)) ;;
      *) ranks_end "$phase" $silent ;;
    esac
    if [ "$phase" = finalize ]; then
      expect wait_for $mpirun_ends ends "$mpi"
    else
      ends_soon "$phase" $mpirun_ends
    fi
    $3
    expect_nothing_left "$phase"
  done
  stop "$stpd_a" "$stpd_b"
  say "the link was lost in each phase ($2), and nothing is left of the jobs"
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
  expect_nothing_left stopped
  stop "$stpd_a" "$stpd_b"
}

# Jobs of many ranks that end well.
many_ranks() {
  begin_stpds iface:stp0
  mpi sixteen 240 --oversubscribe --host "$hosts.1:16" -n 16 -x "STP_LINK=stpd:$work/a.sock" "$work/mpi_programs" ring 1 \
    collectives 1
  ends_well sixteen
  expect [ "$(grep -c 'all is right' "$work/sixteen.log")" -eq 32 ]
  expect_nothing_left sixteen
  through_two 4 "$work/mpi_programs" ring 1 collectives 1
  mpi eight 240 "${through[@]}"
  ends_well eight
  expect [ "$(grep -c 'all is right' "$work/eight.log")" -eq 16 ]
  expect_nothing_left eight
  stop "$stpd_a" "$stpd_b"
  say "sixteen ranks on one stpd, and eight on two: nothing is left of them"
}

! runs many || many_ranks
! runs rank || kill_ranks
! runs stpd || kill_stpds
! runs link || kill_links iface:stp0 switch_off switch_on
if runs link && within "$side_a" nft list tables >/dev/null 2>&1; then kill_links udp:stp0 drop_all drop_none; fi
! runs stop || stop_a_rank
passed
