#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: openmpi.sh BUILD-DIRECTORY [stp|stp;ofi_rxm]
# Debian's Open MPI, as it is, over stp, or over stp;ofi_rxm: two ranks in two network namespaces, and over stp on memif.
# With STP_LONG both on memif, and also through one stpd and through two, over a bridge that loses frames, NetPIPE and HPCC
# with their own checks, and how it ends when a rank or a stpd is killed.
here=$(realpath "$(dirname "$0")")
. "$here/../end_to_end/setup.sh"
. "$here/../lib/consumers.sh"
[ -e "$build/lib/libfabric/libstp-fi.so" ] || skip "the provider was not built: libfabric-dev is missing"
needs_no_sanitizer
needs_namespaces
. "$here/../lib/openmpi.sh"
make_work_directory
build_mpi_programs
mpicc -O1 -o "$work/one_sided" "$here/one_sided.c" || fail "mpicc fails"

# libfabric lists stp;ofi_rxm before stp, unless it is told to leave ofi_rxm out.
provider=${2:-stp}
FI_PROVIDER="stp,ofi_rxm"
[ "$provider" = "stp;ofi_rxm" ] || FI_PROVIDER="^ofi_rxm"
export FI_PROVIDER

right() { expect [ "$(grep -c 'all is right' "$work/$1.log")" -eq "$2" ]; }

rounds=("ring 2 anyone 2 sizes 4 pingpong 1000 collectives 2" "threads 3") one_sided_rounds=2
[ -z "${STP_LONG-}" ] ||
  rounds=("ring 5 anyone 5 sizes 20 pingpong 5000 collectives 5" "threads 5") one_sided_rounds=5

# programs NAME RANKS ARGUMENT...: each of our programs, with what mpirun is given for its ranks; PROGRAM stands for
# them: those of one thread are one job, because to start a job takes longer than most of them.
programs() {
  local name=$1 ranks=$2 each argument arguments number
  shift 2
  for each in "${rounds[@]}"; do
    arguments=()
    for argument; do
      # shellcheck disable=SC2206 # two words
      if [ "$argument" = PROGRAM ]; then arguments+=("$work/mpi_programs" $each); else arguments+=("$argument"); fi
    done
    number=$(wc -w <<<"$each")
    mpi "$name-${each%% *}" 600 "${arguments[@]}"
    ends_well "$name-${each%% *}"
    right "$name-${each%% *}" $((ranks * number / 2))
  done
  say "$name: $ranks ranks, all of our programs"
}

# one_sided NAME RANKS ARGUMENT...: MPI's one-sided operations. By FI_EP_RDM of stp they go through Open MPI's btl ofi
# and nothing else: without it there would be no window. Over stp;ofi_rxm Debian's Open MPI makes no window
# (MPI_ERR_WIN), by btl ofi or without it. Several ranks on a stpd make the accesses to their windows themselves:
# there it takes longest.
one_sided() {
  local name=$1-one-sided ranks=$2 argument arguments=() components=()
  shift 2
  [ "$provider" = stp ] || return 0
  components=(--mca osc rdma --mca btl "ofi,self" --mca btl_ofi_provider_include stp)
  for argument; do
    if [ "$argument" = PROGRAM ]; then arguments+=("$work/one_sided" "$one_sided_rounds"); else arguments+=("$argument"); fi
  done
  mpi "$name" 480 "${components[@]}" "${arguments[@]}"
  ends_well "$name"
  right "$name" "$ranks"
  say "$name: $ranks ranks"
}

make_namespace side_a
make_namespace side_b
# shellcheck disable=SC2154 # made above
join_by_wire "$side_a" "$side_b" 9000
use_hosts "$side_a" "$side_b"
# Open MPI names the provider that it has chosen.
mpi chosen 60 "${two_hosts[@]}" --host "10.9.0.1:1,10.9.0.2:1" -x STP_LINK=iface:stp0 \
  --mca opal_common_ofi_verbose 100 --mca mtl_base_verbose 100 "$work/mpi_programs" pingpong 10
ends_well chosen
expect grep -q "mtl:ofi:prov: $provider\$" "$work/chosen.log"
on_veth=("${two_hosts[@]}" --host "10.9.0.1:1,10.9.0.2:1" -x STP_LINK=iface:stp0)
programs veth 2 "${on_veth[@]}" PROGRAM
one_sided veth 2 "${on_veth[@]}" PROGRAM
# Its addresses are of no interface here: a program takes those for its own.
memif() { echo "memif:$work/memif.sock,mtu=9000,role=$1,mac=02:00:00:00:09:0$2,address=10.10.0.$2/24"; }
[ "$provider" = stp ] || [ -n "${STP_LONG-}" ] || { say "over memif: tools/test --long" && passed; }
programs memif 2 --oversubscribe -n 1 -x "STP_LINK=$(memif server 2)" PROGRAM : \
  -n 1 -x "STP_LINK=$(memif client 1)" PROGRAM
[ -n "${STP_LONG-}" ] || { say "the others take minutes: tools/test --long runs them" && passed; }

netpipe() { # of all sizes, and with its check of what arrives
  command -v NPopenmpi >/dev/null || { say "NPopenmpi is missing: no NetPIPE" && return; }
  mpi netpipe 300 "${on_veth[@]}" NPopenmpi -p 0 -n 10 -u 4000000
  ends_well netpipe
  expect says "$work/netpipe.log" Mbps
  mpi integrity 300 "${on_veth[@]}" NPopenmpi -i -n 5 -u 300000
  ends_well integrity
  expect says "$work/integrity.log" "Integrity check passed"
  if grep -i "integrity check failed" "$work/integrity.log" >&2; then fail NetPIPE; fi
  say "NetPIPE: $(grep -m 1 -o '[0-9.]* usec' "$work/netpipe.log")"
}
netpipe

# Its residuals and its own checks of what its programs have computed.
run_hpcc() {
  local example=/usr/share/doc/hpcc/examples/_hpccinf.txt
  { command -v hpcc && [ -e "$example" ]; } >/dev/null || { say "hpcc is missing: no HPCC" && return; }
  sed -E 's/^[0-9 ]+(Ns)$/400 \1/; s/^[0-9 ]+(NBs)$/80 \1/; s/^[0-9 ]+(Ps)$/1 \1/; s/^[0-9 ]+(Qs)$/2 \1/' \
    "$example" >"$work/hpccinf.txt"
  mpi hpcc 900 "${on_veth[@]}" hpcc
  ends_well hpcc
  expect says "$work/hpccoutf.txt" "Success=1"
  expect says "$work/hpccoutf.txt" "1 tests completed and passed residual checks"
  expect says "$work/hpccoutf.txt" "5 tests completed and passed residual checks"
  if grep -E 'FAILED|[1-9][0-9]* tests completed and failed|_Errors=[1-9]' "$work/hpccoutf.txt" >&2; then
    fail HPCC
  fi
  say "HPCC: $(grep -c PASSED "$work/hpccoutf.txt") results passed"
}
run_hpcc

# ends_without_signal NAME: no rank has got an error that it cannot take. One of ofi_rxm has no operation.
ends_without_signal() {
  [ "$provider" != stp ] || ! grep -q "Segmentation fault" "$work/$1.log" || fail "$1: a rank has ended with SIGSEGV"
}
mpi rank-killed 120 "${on_veth[@]}" "$work/mpi_programs" pingpong -1
is_under_way rank-killed
kill -KILL "$(pgrep -f "^$work/mpi_programs pingpong -1" | tail -n 1)"
ends_soon rank-killed

start_pair_in "$side_a" "$side_b"
through_two 1 PROGRAM
programs two-stpd 2 "${through[@]}"
through_two 2 PROGRAM
programs four-ranks 4 "${through[@]}"
one_sided four-ranks 4 "${through[@]}"
for each in "ring 1" "anyone 1" "collectives 1"; do
  # shellcheck disable=SC2086 # two words
  through_two 4 "$work/mpi_programs" $each
  mpi "eight-ranks-${each% *}" 300 "${through[@]}"
  ends_well "eight-ranks-${each% *}"
  right "eight-ranks-${each% *}" 8
done
say "eight ranks on two stpds"
through_two 1 "$work/mpi_programs" pingpong -1
mpi stpd-killed 120 "${through[@]}"
is_under_way stpd-killed
# shellcheck disable=SC2154 # start_pair_in
kill_at_once "$stpd_b"
ends_soon stpd-killed
ends_without_signal stpd-killed
stop "$stpd_a"

start_stpd one - loop --address 10.9.0.1/24
await_stpd one
programs one-stpd 2 --oversubscribe -n 2 -x "STP_LINK=stpd:$work/one.sock" PROGRAM
# Each rank has a connection to each other one, and 16 of them no core of their own.
for each in "ring 1" "anyone 1" "collectives 1"; do
  # shellcheck disable=SC2086 # two words
  mpi "sixteen-ranks-${each% *}" 300 --oversubscribe -n 16 -x "STP_LINK=stpd:$work/one.sock" "$work/mpi_programs" $each
  ends_well "sixteen-ranks-${each% *}"
  right "sixteen-ranks-${each% *}" 16
done
say "sixteen ranks on one stpd"

make_namespace lossy_a
make_namespace lossy_b
make_namespace bridge
# shellcheck disable=SC2154 # made above
join_by_lossy_bridge "$lossy_a" "$lossy_b" "$bridge" 9000 1 ||
  { say "no lossy link: nftables cannot drop frames here" && passed; }
use_hosts "$lossy_a" "$lossy_b"
programs lossy 2 "${on_veth[@]}" PROGRAM
one_sided lossy 2 "${on_veth[@]}" PROGRAM
dropped=$(dropped_by_bridge "$bridge")
say "$dropped frames dropped by the bridge"
expect [ "$dropped" -gt 10 ]
passed
