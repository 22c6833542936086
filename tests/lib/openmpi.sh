# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced after consumers.sh by tests that run Debian's Open MPI over stp.
needs mpirun mpicc ompi_info
mpirun --version | grep -q 'Open MPI' || skip "mpirun is not that of Open MPI"
ompi_info --parsable | grep -q '^mca:mtl:ofi:' || skip "Open MPI has no mtl ofi"

build_mpi_programs() {
  mpicc -O1 -o "$work/mpi_programs" "$here/../lib/mpi_programs.c" -pthread || fail "mpicc fails"
}

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 IPATH_NO_BACKTRACE=1
fi_path=$(realpath "$build/lib/libfabric")
export FI_PROVIDER_PATH=$fi_path
over_stp=(--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include stp --bind-to none
  --mca mpi_yield_when_idle 1 -x FI_PROVIDER_PATH -x FI_PROVIDER -x IPATH_NO_BACKTRACE)

# mpi NAME SECONDS ARGUMENT...: all that mpirun begins ends with it. Its pid is in $mpi. ${first_host[@]} precedes it.
first_host=()
mpi() {
  local name=$1 seconds=$2
  shift 2
  put_aside "$work/$name.log"
  start "$work/$name.log" env -C "$work" timeout -k 5 "$seconds" unshare --pid --fork --kill-child \
    "${first_host[@]}" mpirun "${over_stp[@]}" "$@"
  mpi=$!
}
ends_well() { # NAME
  wait "$mpi" || { tail -n 40 "$work/$1.log" >&2 && fail "$1"; }
}
ends() { ! kill -0 "$1" 2>/dev/null; }

# ends_soon NAME [SECONDS]: what has been begun for ever ends, and not well. Open MPI ends the ranks that are left.
ends_soon() {
  local begun=$SECONDS
  wait_for "${2:-60}" ends "$mpi" || { tail -n 20 "$work/$1.log" >&2 && fail "$1: it hangs"; }
  wait "$mpi" && fail "$1: it tells of no error"
  say "$1: it has ended after $((SECONDS - begun)) s: $(grep -m 1 -iE 'signal 9|abort|error' "$work/$1.log")"
}
is_under_way() { # NAME: all ranks exchange messages
  expect wait_for 60 contains "$work/$1.log" "it runs"
  sleep 1
}

# A daemon of Open MPI in each namespace, on hosts of different names.
on_host() { # HOLDER HOSTNAME: what a command is to be preceded by
  echo "nsenter --net=/proc/$1/ns/net unshare --uts bash -c 'hostname $2; exec \"\$@\"' -"
}
# use_hosts HOLDER-A HOLDER-B [NETWORK]: mpirun is started on the first one. It reaches the daemons in 10.9.0, or NETWORK.
use_hosts() {
  hosts=${3-10.9.0}
  eval "first_host=($(on_host "$1" stp-a))"
  cat >"$work/agent" <<AGENT
#!/bin/bash
shift # the only other host
exec $(on_host "$2" stp-b) bash -c "\$*"
AGENT
  chmod +x "$work/agent"
  two_hosts=(--mca plm rsh --mca plm_rsh_agent "$work/agent" --mca plm_rsh_no_tree_spawn 1
    --mca oob_tcp_if_include "$hosts.0/24")
}
through_two() { # RANKS PROGRAM...: as many on each of the two hosts
  local each=$1
  shift
  through=("${two_hosts[@]}" --oversubscribe --host "$hosts.1:$each" -n "$each" -x "STP_LINK=stpd:$work/a.sock"
    "$@" : --host "$hosts.2:$each" -n "$each" -x "STP_LINK=stpd:$work/b.sock" "$@")
}

# Two namespaces, $side_a and $side_b, for stp on one wire and for mpirun and its daemons on another, which stays.
make_two_hosts() {
  make_namespace side_a
  make_namespace side_b
  # shellcheck disable=SC2154 # made above
  join_by_wire "$side_a" "$side_b" 9000
  within "$side_a" ip link add own0 type veth peer name own0 netns "$side_b"
  set_up_interface "$side_a" own0 1500 10.8.0.1/24
  set_up_interface "$side_b" own0 1500 10.8.0.2/24
  use_hosts "$side_a" "$side_b" 10.8.0
}
