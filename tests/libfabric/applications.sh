#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: applications.sh BUILD-DIRECTORY
# Programs as Debian packages them (lammps lammps-examples gromacs hpcc scalapack-mpi-test), by two ranks of its Open MPI:
# over Open MPI's own TCP on one host, over stp on one stpd and on memif, then over TCP on veth, and over stp on UDP there.
# Over stp they have to compute the same as over TCP, in at most three times as long; below a second nothing is compared.
# A table of their times is printed, and kept in BUILD-DIRECTORY/consumers/applications.results. STP_APPLICATIONS names
# those to run ("lammps gromacs hpcc scalapack"), STP_APPLICATIONS_WAYS how ("tcp one memif tcp-veth udp"), STP_REPEATS how often in turn (1): the medians are told.
here=$(realpath "$(dirname "$0")")
. "$here/../end_to_end/setup.sh"
. "$here/../lib/consumers.sh"
needs_long
[ -e "$build/lib/libfabric/libstp-fi.so" ] || skip "the provider was not built: libfabric-dev is missing"
needs_no_sanitizer
needs_namespaces
. "$here/../lib/openmpi.sh"
make_work_directory
keep_built
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 FI_PROVIDER=^ofi_rxm
repeats=${STP_REPEATS:-1}
read -r -a ways <<<"${STP_APPLICATIONS_WAYS:-tcp one memif tcp-veth udp}"

make_namespace side_a
make_namespace side_b
# shellcheck disable=SC2154 # made above
join_by_wire "$side_a" "$side_b" 9000
use_hosts "$side_a" "$side_b"
for each in "$side_a" "$side_b"; do within "$each" ip link set lo up; done
start_stpd one "$side_a" loop --address 10.9.1.1/24
await_stpd one
memif() { echo "memif:$work/memif.sock,mtu=9000,role=$1,mac=02:00:00:00:09:0$2,address=10.10.0.$2/24"; }
over_btl=(--mca pml ob1 --mca btl "tcp,self")
over_ofi=(--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include stp -x FI_PROVIDER -x FI_PROVIDER_PATH
  -x IPATH_NO_BACKTRACE)
on_both=("${two_hosts[@]}" --host "$hosts.1:1,$hosts.2:1")

# by WAY COMMAND...: two ranks of it, in the work directory.
by() {
  local way=$1 line=()
  shift
  case $way in
    tcp) line=("${over_btl[@]}" --mca btl_tcp_if_include lo -n 2 "$@") ;;
    tcp-veth) line=("${over_btl[@]}" --mca btl_tcp_if_include stp0 "${on_both[@]}" "$@") ;;
    one) line=("${over_ofi[@]}" -x "STP_LINK=stpd:$work/one.sock" -n 2 "$@") ;;
    udp) line=("${over_ofi[@]}" -x STP_LINK=udp:stp0 "${on_both[@]}" "$@") ;;
    memif)
      line=("${over_ofi[@]}" -n 1 -x "STP_LINK=$(memif server 2)" "$@" :
        -n 1 -x "STP_LINK=$(memif client 1)" "$@")
      ;;
    *) fail "$way: no such way" ;;
  esac
  timeout -k 5 240 unshare --pid --fork --kill-child "${first_host[@]}" mpirun --oversubscribe --bind-to none \
    -x OMP_NUM_THREADS -x OPENBLAS_NUM_THREADS "${line[@]}"
}

# For each program: prepare_NAME, begin_NAME WAY, and result_NAME, which prints what it has computed, and seconds_NAME.
# What it says is in said, in a directory of its own; $elapsed are the milliseconds of the whole job.
lammps_example=/usr/share/lammps/examples/melt/in.melt
prepare_lammps() {
  { command -v lmp && [ -e $lammps_example ]; } >/dev/null || return
  sed 's/^run\s.*/run 200/' $lammps_example >in.melt
}
begin_lammps() { by "$1" lmp -in in.melt -log none; }
result_lammps() { sed -n '/^Step/,/^Loop time/{/^Loop time/!p}' said; }
seconds_lammps() { sed -n 's/^Loop time of \([0-9.]*\) .*/\1/p' said; }

# A box of 884 molecules of water. Every run sums in the same order (-reprod).
prepare_gromacs() {
  { command -v gmx && command -v gmx_mpi; } >/dev/null || return
  printf '%s\n' '#include "oplsaa.ff/forcefield.itp"' '#include "oplsaa.ff/spc.itp"' '[ system ]' water '[ molecules ]' \
    >topol.top
  printf '%s\n' 'integrator = md' 'dt = 0.001' 'nsteps = 400' 'nstlog = 50' 'nstenergy = 50' 'nstcalcenergy = 10' \
    'coulombtype = PME' 'rcoulomb = 0.9' 'rvdw = 0.9' 'gen-vel = yes' 'gen-temp = 300' 'gen-seed = 1' 'ld-seed = 1' >md.mdp
  gmx -quiet solvate -cs spc216.gro -box 3 3 3 -p topol.top -o conf.gro >solvate.said 2>&1 &&
    gmx -quiet grompp -f md.mdp -c conf.gro -p topol.top -o topol.tpr -maxwarn 2 >grompp.said 2>&1 ||
    { tail -n 20 ./*.said >&2 && fail "GROMACS makes no box of water"; }
}
begin_gromacs() { by "$1" gmx_mpi -quiet mdrun -s topol.tpr -deffnm run -reprod -ntomp 1 -pin off -dlb no; }
result_gromacs() { sed -n '/^   Energies/,/^$/p' run.log; }
seconds_gromacs() { awk '$1 == "Time:" { print $3 }' run.log; }

# The Linpack and all others of HPC Challenge, which check their results themselves.
hpcc_example=/usr/share/doc/hpcc/examples/_hpccinf.txt
prepare_hpcc() {
  { command -v hpcc && [ -e $hpcc_example ]; } >/dev/null || return
  sed -E 's/^[0-9 ]+(Ns)$/400 \1/; s/^[0-9 ]+(NBs)$/80 \1/; s/^[0-9 ]+(Ps)$/1 \1/; s/^[0-9 ]+(Qs)$/2 \1/' $hpcc_example \
    >hpccinf.txt
}
begin_hpcc() { rm -f hpccoutf.txt && by "$1" hpcc; }
result_hpcc() {
  grep -E '^Success=|_Errors=|tests completed and (passed|failed)' hpccoutf.txt
}
seconds_hpcc() { in_seconds "$elapsed"; }

# LU factors, and a system solved with them. Not its estimate of the condition ("F"): by that the ranks may go different
# ways, and then their calls do not match (seen over btl tcp: it hangs, or MPI_ERR_TRUNCATE).
scalapack=$(echo /usr/lib/*/scalapack/openmpi-tests)
prepare_scalapack() {
  [ -x "$scalapack/xdlu" ] || return
  printf '%s\n' "'LU'" "'MPI'" "'LU.out'" '6 out' '1 sizes' '600 M' '600 N' '1 NBs' '32 NB' '1 NRHSs' '1 NRHS' '1 NBRHSs' \
    '1 NBRHS' '2 grids' '1 2 P' '2 1 Q' '1.0 threshold' 'F' >LU.dat
}
begin_scalapack() { by "$1" "$scalapack/xdlu"; }
result_scalapack() { grep 'tests completed and' said; }
seconds_scalapack() { in_seconds "$elapsed"; }

in_seconds() { printf '%d.%02d\n' $(($1 / 1000)) $(($1 % 1000 / 10)); }

# try PROGRAM WAY: whether it ends well. Its result is in WAY.result.
try() {
  local begun=${EPOCHREALTIME/./}
  rm -f run.*
  "begin_$1" "$2" >said 2>&1 </dev/null || { tail -n 20 said >&2 && return 1; }
  elapsed=$(((${EPOCHREALTIME/./} - begun) / 1000))
  "result_$1" >"$2.result"
  "seconds_$1" >>"$2.seconds"
  [ -s "$2.result" ] || { tail -n 20 said >&2 && return 1; }
}
median() { sort -n "$1" | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

# What is compared with which TCP.
beside() { case $1 in udp) echo tcp-veth ;; *) echo tcp ;; esac; }
# is_slow WAY: three times as long as over TCP, or as a second.
is_slow() {
  awk -v stp="$(median "$1.seconds")" -v tcp="$(median "$(beside "$1").seconds")" \
    'BEGIN { exit !(stp > 3 * (tcp > 1 ? tcp : 1)) }'
}

# judge PROGRAM: of each way over stp, the result and the time. Where CPUs are short, it may take too long over TCP.
judge() {
  local way control
  for way in one memif udp; do
    for control in tcp tcp-veth; do
      [ -s "$way.result" ] && [ -s "$control.result" ] || continue
      cmp -s "$way.result" "$control.result" ||
        { diff "$control.result" "$way.result" | head -n 20 >&2 && failed+=("$1, $way: other results"); }
    done
    [ ! -s "$way.result" ] || [ ! -s "$(beside "$way").result" ] || ! is_slow "$way" || failed+=("$1, $way: slow")
  done
}

results=$kept/applications.results failed=() missing=()
{
  printf '| seconds |'
  printf ' %s |' "${ways[@]}"
  printf '\n| --- |'
  printf ' --- |%.0s' "${ways[@]}"
  echo
} >"$results"
for application in ${STP_APPLICATIONS:-lammps gromacs hpcc scalapack}; do
  mkdir "$work/$application" && cd "$work/$application" || fail "no directory"
  "prepare_$application" || { missing+=("$application") && continue; }
  for ((number = 0; number < repeats; ++number)); do
    for way in "${ways[@]}"; do
      if try "$application" "$way"; then
        say "$application, $way: $(tail -n 1 "$way.seconds") s"
      else
        say "$application, $way: it fails, or takes too long"
        [[ $way == tcp* ]] || failed+=("$application, $way")
      fi
    done
  done
  judge "$application"
  printf '| %s |' "$application" >>"$results"
  for way in "${ways[@]}"; do printf ' %s |' "$([ ! -s "$way.seconds" ] || median "$way.seconds")"; done >>"$results"
  echo >>"$results"
done
cat "$results" >&2
[ ${#missing[@]} -eq 0 ] || say "not installed, so not run: ${missing[*]}"
[ ${#failed[@]} -eq 0 ] || fail "$(printf '%s; ' "${failed[@]}")"
[ ${#missing[@]} -lt 4 ] || skip "none of them is installed"
passed
