#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: trouble.sh BUILD-DIRECTORY
# What becomes of jobs of Open MPI over FI_EP_RDM of stp when a rank or a stpd is killed: while they connect, with short
# messages under way, with long ones that are read, with one-sided operations, and at the end. Two ranks on two hosts,
# each with its stpd. Each job has to end soon, and to leave nothing. A rank that is stopped for a minute is no error.
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
use_hosts "$side_a" "$side_b"
by_btl=(--mca osc rdma --mca btl "ofi,self" --mca btl_ofi_provider_include stp)

# What all users hold of the budgets of both stpd's.
held() { "$bin/stpctl" --json --socket "$work/a.sock" --socket "$work/b.sock" users; }
holds_as_before() { [ "$(held)" = "$before" ]; }
has_a_rank() { held | grep -q '"clients":{"used":[2-9]'; } # besides stpctl
begin_stpds() {
  start_pair_in "$side_a" "$side_b"
  before=$(held)
}
last_rank() { pgrep -f "^$work/(mpi_programs|one_sided) " | tail -n 1; }
has_no_rank() { [ -z "$(last_rank)" ]; }

# begin PHASE: a job that is in that phase.
begin() {
  local program=("$work/mpi_programs") options=()
  case $1 in
    connect) program+=(ring -1) ;;
    eager) program+=(pingpong -1) ;;
    rendezvous) program+=(sizes -1) ;;
    one-sided) program=("$work/one_sided" 1000000) options=("${by_btl[@]}") ;;
    finalize) program+=(finalize 1) ;;
  esac
  through_two 1 "${program[@]}"
  mpi "$1" 120 "${options[@]}" "${through[@]}"
  case $1 in
    connect) expect wait_for 60 has_a_rank ;;
    one-sided) expect wait_for 60 has_a_rank && sleep 3 ;;
    *) is_under_way "$1" ;;
  esac
}

begin_stpds
for phase in connect eager rendezvous one-sided finalize; do
  begin "$phase"
  kill -KILL "$(last_rank)"
  ends_soon "$phase" 20
  expect wait_for 20 has_no_rank
  expect wait_for 20 holds_as_before
done
say "ranks were killed in each phase, and stpd holds what it held before"

for phase in connect eager rendezvous one-sided finalize; do
  begin "$phase"
  kill_at_once "$stpd_b"
  ends_soon "$phase" 20
  expect wait_for 20 has_no_rank
  if grep -q "Segmentation fault" "$work/$phase.log"; then fail "$phase: a rank has ended with SIGSEGV"; fi
  stop "$stpd_a"
  begin_stpds
done
say "stpd was killed in each phase"

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
passed
