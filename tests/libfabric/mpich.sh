#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: mpich.sh BUILD-DIRECTORY [ARCHIVE-OR-DIRECTORY]
# The tests that MPICH has for messages, collective operations, datatypes, one-sided operations, communicators and
# threads, built with Debian's Open MPI and run over stp, all ranks of a test on one stpd. Some fail over any provider:
# each that fails over stp is run over tcp, and may not pass there. The sources are Debian's (mpich_*.orig.tar.xz), or
# mpich-tests.tar.*: what is given, in the folder that STP_PEERS names, or Debian's fetched by apt-get. STP_MPICH names
# those to run, as a regular expression ("rma put", say), STP_MPICH_RANKS how many ranks a test has at most (4).
# BUILD-DIRECTORY/consumers/mpich.results has a line for each.
here=$(realpath "$(dirname "$0")")
. "$here/../end_to_end/setup.sh"
. "$here/../lib/consumers.sh"
given=${2-}
needs_long
[ -e "$build/lib/libfabric/libstp-fi.so" ] || skip "the provider was not built: libfabric-dev is missing"
needs_no_sanitizer
needs_namespaces
needs mpirun mpicc gcc make
mpirun --version | grep -q 'Open MPI' || skip "mpirun is not that of Open MPI"
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

# chosen: a line for each program, once: its set, name, ranks and arguments. At most four ranks. A datatype test of one
# rank sends nothing. Not those that want MPICH itself, are known to fail, or take very long: sendflood does 100,000
# rounds of all ranks in turn, each of which waits for the scheduler where there are fewer CPUs than ranks.
chosen() {
  local set
  for set in "${sets[@]}"; do
    awk -v set="$set" -v most="${STP_MPICH_RANKS:-4}" '
      /^#/ || NF < 2 || /env=|xfail=|strict=FALSE|timeLimit=|mpiversion=|resultTest=/ { next }
      $1 ~ /\// || seen[$1]++ || (set == "datatype" && $2 == 1) || $1 == "sendflood" { next }
      { ranks = $2 > most ? most : $2; line = set " " $1 " " ranks
        for (i = 3; i <= NF; ++i) if (sub(/^arg=/, "", $i)) line = line " " $i
        print line }' "$programs/test/mpi/$set/testlist"
  done | grep -E "${STP_MPICH:-.}"
}

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 IPATH_NO_BACKTRACE=1
fi_path=$(realpath "$build/lib/libfabric")
export FI_PROVIDER_PATH=$fi_path STP_LINK=stpd:$work/one.sock
make_namespace alone
# shellcheck disable=SC2154 # made above
in_alone=(nsenter --net="/proc/$alone/ns/net")
"${in_alone[@]}" ip link set lo up
start_stpd one - loop --address 10.9.0.1/24
await_stpd one

# run PROVIDER SET NAME RANKS ARGUMENT...: whether the test has no errors to tell.
run() {
  local provider=$1 set=$2 name=$3 ranks=$4 kind=^ofi_rxm
  shift 4
  [ "$provider" = stp ] || kind=$provider
  (cd "$programs/test/mpi/$set" && FI_PROVIDER=$kind timeout -k 5 "${STP_MPICH_SECONDS:-90}" \
    unshare --pid --fork --kill-child "${in_alone[@]}" mpirun --oversubscribe -n "$ranks" --bind-to none \
    --mca mpi_yield_when_idle 1 --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include "$provider" \
    "./$name" "$@") >"$work/$provider.log" 2>&1 && grep -q 'No Errors' "$work/$provider.log"
}

passes=0 both=() differences=() results=$kept/mpich.results
: >"$results"
while read -r -a each; do
  [ -x "$programs/test/mpi/${each[0]}/${each[1]}" ] || continue
  if run stp "${each[@]}" </dev/null; then
    passes=$((passes + 1))
    echo "stp passes: ${each[*]}" >>"$results"
  elif run tcp "${each[@]}" </dev/null; then
    differences+=("${each[*]}")
    { echo "tcp alone passes: ${each[*]}" && cat "$work/stp.log"; } >>"$results"
    say "passes over tcp alone: ${each[*]}" && tail -n 20 "$work/stp.log" >&2
  else
    both+=("${each[0]}/${each[1]}")
    echo "neither passes: ${each[*]}" >>"$results"
  fi
done < <(chosen)
say "$passes tests of MPICH pass over stp; these fail over stp and tcp: ${both[*]:-none}"
[ "${#differences[@]}" -eq 0 ] || fail "these pass over tcp alone: $(printf '%s; ' "${differences[@]}")"
expect [ "$passes" -gt "$([ -n "${STP_MPICH-}" ] && echo 0 || echo 200)" ]
passed
