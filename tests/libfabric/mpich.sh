#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: mpich.sh BUILD-DIRECTORY [ARCHIVE-OR-DIRECTORY]
# The tests that MPICH has for messages, collective operations, datatypes, one-sided operations, communicators and
# threads, built with Debian's Open MPI. What passes over Open MPI's own TCP (btl tcp) has to pass over stp, in at most
# three times as long, where below a second nothing is compared; unless Open MPI's mtl ofi fails over libfabric's own tcp,
# too. The ranks are on one stpd, on two, on memif, and on links udp: of their own on two hosts. mpich.exclude names what is not run, and why, and
# mpich_rdma.exclude what is not run by btl ofi. The sources are Debian's (mpich_*.orig.tar.xz), or mpich-tests.tar.*: what is given, in the folder that STP_PEERS
# names, or Debian's fetched by apt-get. STP_MPICH names those to run, as a regular expression ("rma put", say), STP_MPICH_WAYS how
# ("one-4 one-2 two-4 two-2 memif-2 udp-4 udp-2 rdma-2 rudp-2": the number of ranks is the most that a test gets; "rdma" and
# "rudp": the set rma by btl ofi and osc rdma, on two stpd's and on links udp:).
# BUILD-DIRECTORY/consumers/mpich.results has a line for each, with its times.
here=$(realpath "$(dirname "$0")")
. "$here/../end_to_end/setup.sh"
. "$here/../lib/consumers.sh"
given=${2-}
needs_long
[ -e "$build/lib/libfabric/libstp-fi.so" ] || skip "the provider was not built: libfabric-dev is missing"
needs_no_sanitizer
needs_namespaces
needs gcc make
. "$here/../lib/openmpi.sh"
make_work_directory
keep_built
sets=(pt2pt coll datatype rma comm threads/pt2pt threads/comm threads/coll threads/rma)

# fetch_source: Debian's archive into $kept, with lists of its own, so that the system's stay as they are.
fetch_source() {
  local own=$work/apt uri codename component options
  mkdir -p "$own/lists/partial" "$own/cache/archives/partial" "$own/parts"
  while IFS='|' read -r uri codename component; do
    echo "deb-src [trusted=yes] $uri $codename $component"
  done < <(apt-get indextargets --format '$(REPO_URI)|$(CODENAME)|$(COMPONENT)' 'Created-By: Packages' 'Origin: Debian') \
    >"$own/parts/sources.list"
  options=(-o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$own/parts" -o "Dir::State::lists=$own/lists"
    -o "Dir::Cache=$own/cache")
  say "fetching the sources of mpich"
  (cd "$kept" && timeout 300 apt-get "${options[@]}" update &&
    timeout 300 apt-get "${options[@]}" source --download-only mpich) >"$work/apt.log" 2>&1
}

# find_source: its path in $given.
find_source() {
  local found
  for found in "${STP_PEERS:-/nonexistent}"/mpich{_*.orig,-tests}.tar.* "$kept"/mpich_*.orig.tar.*; do
    if [ -e "$found" ]; then given=$found && return; fi
  done
  return 1
}

# What Open MPI leaves out, and MPICH's tests still name, makes some of them unbuildable: those are not run.
build_tests() {
  local set
  if [ -d "$given" ]; then
    cp -r "$given" "$programs" || fail "cannot copy $given"
  else
    mkdir "$programs" && tar xf "$given" -C "$programs" --strip-components=1 || fail "cannot unpack $given"
  fi
  export OMPI_MPICC="gcc -w -DOMPI_OMIT_MPI1_COMPAT_DECLS=0 -DOMPI_REMOVED_USE_STATIC_ASSERT=0"
  cd "$programs/test/mpi" || fail "$given has no test/mpi"
  say "building MPICH's tests"
  # What comes from their repository has none.
  [ -x configure ] || ./autogen.sh >"$work/configure.log" 2>&1 ||
    { tail "$work/configure.log" >&2 && fail "autogen fails"; }
  ./configure --enable-strictmpi --disable-fortran --disable-cxx --disable-spawn --with-mpi=/usr CC=gcc MPICC=mpicc \
    CFLAGS="-O0 -w" >"$work/configure.log" 2>&1 || { tail "$work/configure.log" >&2 && fail "configure fails"; }
  for set in dtpools util "${sets[@]}"; do make -C "$set" -k -j2; done >"$work/make.log" 2>&1
  touch built
  cd - >/dev/null || exit 1
}

[ -n "$given" ] || find_source || { fetch_source && find_source; } ||
  skip "no sources of mpich: apt-get source mpich, and tools/test --peers DIR"
programs=$(realpath -m "$kept/$(basename "$given" | sed -E 's/(\.orig)?\.tar\..*//')")
[ -e "$programs/test/mpi/built" ] || build_tests

# without FILE: the lines that are not in that list of tests that are not run.
without() { grep -vEf <(grep -vE '^(#|$)' "$here/$1"); }

# chosen MOST: a line for each test: its set, name, ranks (at most MOST) and arguments. What their lists say beside that is
# for MPICH: environment variables of its own, without which some tests are the same ones again, and limits.
chosen() {
  local set
  for set in "${sets[@]}"; do
    sed -E "/^ *(#|$)/d; s|^ *|$set |; s/ +/ /g" "$programs/test/mpi/$set/testlist"
  done | without mpich.exclude |
    sed -E 's/ (env|timeLimit|mem|resultTest|mpiversion)=[^ ]*//g; s/ arg=/ /g' |
    awk -v most="$1" 'NF > 2 { if ($3 > most) $3 = most; if (!seen[$0]++) print }' | grep -E "${STP_MPICH:-.}"
}

make_two_hosts
# shellcheck disable=SC2154 # made above
for each in "$side_a" "$side_b"; do within "$each" ip link set lo up; done
start_pair_in "$side_a" "$side_b"
start_stpd one "$side_a" loop --address 10.9.1.1/24
await_stpd one
memif() { echo "memif:$work/memif.sock,mtu=9000,role=$1,mac=02:00:00:00:09:0$2,address=10.10.0.$2/24"; }

# One-sided operations by messages (Open MPI 4.1 would choose UCX), and those by btl ofi.
by_messages=(--mca osc "sm,pt2pt")
over_btl=(--mca pml ob1 --mca btl "tcp,self" "${by_messages[@]}")
one_sided=(--mca osc "rdma,sm" --mca btl "ofi,self" --mca btl_ofi_provider_include stp)
over=(--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include stp)
common=(--oversubscribe --bind-to none)
# Ranks over stp sleep by themselves where CPUs are short.
yields=(--mca mpi_yield_when_idle 1) does_not_yield=(--mca mpi_yield_when_idle 0)
most_seconds=${STP_MPICH_SECONDS:-180}

# in_parts RANKS OPTIONS-OF-FIRST OPTIONS-OF-SECOND PROGRAM...: of the ranks the first half, and the others. Options are
# words.
in_parts() {
  local ranks=$1 first=$2 second=$3
  shift 3
  # shellcheck disable=SC2206
  parts=($first -n $(((ranks + 1) / 2)) "$@")
  # shellcheck disable=SC2206
  [ "$ranks" -lt 2 ] || parts+=(: $second -n $((ranks / 2)) "$@")
}

# run stp|tcp|ofi WAY SECONDS SET NAME RANKS ARGUMENT...: whether the test has no errors to tell. $took: milliseconds.
run() {
  local kind=$1 way=$2 seconds=$3 set=$4 name=$5 ranks=$6 begun=${EPOCHREALTIME/./} result options=("${common[@]}")
  local first="-x IPATH_NO_BACKTRACE -x FI_PROVIDER_PATH -x FI_PROVIDER=^ofi_rxm" second
  second=$first
  shift 6
  # "ofi" is what stp is, with libfabric's own provider tcp.
  case $kind-$way in
    ofi-*)
      options+=("${yields[@]}" --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include tcp "${by_messages[@]}")
      first="-x IPATH_NO_BACKTRACE -x FI_PROVIDER=tcp" second=$first
      ;;
    tcp-two | tcp-udp | tcp-r*) options+=("${yields[@]}" "${over_btl[@]}" --mca btl_tcp_if_include stp0) ;;
    tcp-*) options+=("${yields[@]}" "${over_btl[@]}" --mca btl_tcp_if_include lo) ;;
    stp-one) options+=("${does_not_yield[@]}" "${over[@]}" "${by_messages[@]}") first+=" -x STP_LINK=stpd:$work/one.sock" second=$first ;;
    stp-two | stp-rdma)
      options+=("${does_not_yield[@]}" "${over[@]}")
      if [ "$way" = two ]; then options+=("${by_messages[@]}"); else options+=("${one_sided[@]}"); fi
      first+=" -x STP_LINK=stpd:$work/a.sock" second+=" -x STP_LINK=stpd:$work/b.sock"
      ;;
    stp-udp | stp-rudp)
      options+=("${does_not_yield[@]}" "${over[@]}")
      if [ "$way" = udp ]; then options+=("${by_messages[@]}"); else options+=("${one_sided[@]}"); fi
      first+=" -x STP_LINK=udp:stp0,port=0" second=$first
      ;;
    stp-memif)
      options+=("${does_not_yield[@]}" "${over[@]}" "${by_messages[@]}")
      first+=" -x STP_LINK=$(memif server 2)" second+=" -x STP_LINK=$(memif client 1)"
      ;;
  esac
  if [ "$way" != one ] && [ "$way" != memif ]; then
    options+=("${two_hosts[@]}")
    first+=" --host $hosts.1:4" second+=" --host $hosts.2:4"
  fi
  in_parts "$ranks" "$first" "$second" "./$name" "$@"
  env -C "$programs/test/mpi/$set" timeout -k 5 "$seconds" unshare --pid --fork --kill-child \
    "${first_host[@]}" mpirun "${options[@]}" "${parts[@]}" >"$work/$kind.log" 2>&1
  result=$?
  took=$(((${EPOCHREALTIME/./} - begun) / 1000))
  [ $result -eq 0 ] && grep -q 'No Errors' "$work/$kind.log"
}

# Three times as long as over TCP, or as a second.
allowed_after() { echo $((3 * ($1 > 1000 ? $1 : 1000))); }

# compare WAY SET NAME RANKS ARGUMENT...: $verdict, $tcp_took and $stp_took. What passes over stp as soon as anything may
# needs no TCP beside it. The machine may have been busy with something else, so what fails or takes long is tried once
# more, both in turn.
compare() {
  local way=$1 allowed seconds
  shift
  verdict=passes tcp_took=0
  if run stp "$way" 20 "$@" </dev/null && stp_took=$took && [ "$took" -le "$(allowed_after 0)" ]; then return; fi
  for _ in 1 2; do
    verdict="tcp fails" stp_took=0
    run tcp "$way" "$most_seconds" "$@" </dev/null || { tcp_took=$took && return; }
    tcp_took=$took allowed=$(allowed_after "$took") seconds=$((20 + 2 * $(allowed_after "$took") / 1000))
    if run stp "$way" $seconds "$@" </dev/null; then verdict=passes; else verdict=fails; fi
    stp_took=$took
    if [ "$verdict" = passes ] && [ "$took" -gt "$allowed" ]; then verdict=slow; fi
    [ "$verdict" != passes ] || return
  done
  [ "$verdict" = slow ] || run ofi "$way" $seconds "$@" </dev/null || verdict="ofi fails"
}

# What the last run says, if not all is well.
why() {
  case $verdict in
    passes) ;;
    tcp*) grep -m 1 -aiE 'MPI_ERR_|signal|found|error|cannot' "$work/tcp.log" ;;
    *) grep -m 1 -aiE 'MPI_ERR_|signal|found|error|cannot' "$work/stp.log" ;;
  esac
}

results=$kept/mpich.results failed=() passes=0 not_built=0
: >"$results"
of_rdma() { grep "^rma " | without mpich_rdma.exclude; }
# go MODE: all tests in one of the ways, such as one-4.
go() {
  local way=${1%-*} most=${1#*-} each those=(cat)
  [[ $way != r* ]] || those=(of_rdma)
  while read -r -a each; do
    [ -x "$programs/test/mpi/${each[0]}/${each[1]}" ] || { not_built=$((not_built + 1)) && continue; }
    compare "$way" "${each[@]}"
    printf '%s | %s | %d.%02d | %d.%02d | %s | %s\n' "$1" "${each[*]}" $((tcp_took / 1000)) $((tcp_took % 1000 / 10)) \
      $((stp_took / 1000)) $((stp_took % 1000 / 10)) "$verdict" "$(why)" >>"$results"
    case $verdict in
      passes) passes=$((passes + 1)) ;;
      fails | slow)
        failed+=("$1 ${each[*]}")
        say "$1: ${each[*]}: $verdict ($stp_took ms, over tcp $tcp_took ms)" && tail -n 20 "$work/stp.log" >&2
        ;;
    esac
  done < <(chosen "$most" | "${those[@]}")
}
# What two ranks at most change: tests for more of them run with two.
for mode in ${STP_MPICH_WAYS:-one-4 two-4 one-2 two-2 memif-2 udp-4 udp-2 rdma-2 rudp-2}; do
  go "$mode"
  awk -F ' [|] ' -v mode="$mode" '
    $1 != mode { next }
    $5 == "tcp fails" { ++no_tcp; next }
    $5 == "ofi fails" { ++no_ofi; next }
    $5 == "fails" { next }
    { ++count }
    $3 == 0 { next }
    { ++beside; tcp += $3; stp += $4; share = $4 / ($3 > 1 ? $3 : 1) }
    share > worst { worst = share; name = $2 }
    END {
      printf "%s: %d tests; of these %d took more than 3 s: %.0f s over stp, %.0f s over tcp; most: %.1f times (%s)",
        mode, count, beside, stp, tcp, worst, name
      printf "; beside them %d fail over btl tcp, %d by mtl ofi over any provider\n", no_tcp, no_ofi
    }' "$results" >&2
done
say "$passes tests of MPICH pass over stp in time; $not_built are not there, as they want more than Open MPI has"
[ "${#failed[@]}" -eq 0 ] || fail "these pass over tcp, and not in time over stp: $(printf '%s; ' "${failed[@]}")"
expect [ "$passes" -gt "$([ -n "${STP_MPICH-}${STP_MPICH_WAYS-}" ] && echo 0 || echo 800)" ]
passed
