#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: openmpi.sh BUILD-DIRECTORY [RUNS]
# Open MPI 1.6.5 with its btl udapl, with and without eager RDMA: short messages there and back RUNS [50] times,
# then collective operations, through one stpd; and between two programs on memif. Building Open MPI
# takes 20 minutes; what is built is kept in BUILD-DIRECTORY/consumers.
. "$(dirname "$0")/setup.sh"
needs_peers
runs=${2-50} rounds=5000

mpi=$(realpath -m "$kept/openmpi")
build_openmpi() {
  needs gcc make perl autoconf automake libtoolize flex m4
  local archive tree=$work/tree
  archive=$(source_of "openmpi-1.6.5.tar.*") || { echo "$archive" && exit 77; }
  mkdir "$tree" && tar xf "$archive" -C "$tree" || fail "cannot unpack $archive"
  cd "$(dirname "$(find "$tree" -maxdepth 2 -name autogen.sh)")" || fail "$archive has no autogen.sh"
  say "building Open MPI"
  { ./autogen.sh && ./configure --prefix="$mpi" --with-udapl="$dat" --with-udapl-libdir="$dat/lib" \
    --disable-mpi-f77 --disable-mpi-f90 --disable-mpi-cxx --disable-io-romio --disable-vt \
    --without-memory-manager --without-openib --enable-static=no --disable-dlopen --without-hwloc \
    CFLAGS="-O1 -w -fcommon -std=gnu89" && make CC="gcc -include stddef.h" install; } \
    >"$work/build.log" 2>&1 || { tail -n 30 "$work/build.log" >&2 && fail "Open MPI cannot be built"; }
  cd - >/dev/null || exit 1
}

make_work_directory
lay_out_dat
[ -x "$mpi/bin/mpirun" ] || build_openmpi
export OPAL_PREFIX=$mpi LD_LIBRARY_PATH=$mpi/lib:$LD_LIBRARY_PATH
"$mpi/bin/mpicc" -include stddef.h -o "$work/mpi_programs" "$(dirname "$0")/../../lib/mpi_programs.c" -pthread \
  -Wl,-rpath-link,"$dat/lib" || fail "mpicc fails"

ended() { ! kill -0 "$1" 2>/dev/null; }
frames_so_far() { [ ! -S "$work/one.sock" ] || of_daemons one rx_frames; }

# tell_of PID: what a mpirun that does not end is about. If frames still come, it is only slow.
tell_of() {
  local rank frames
  frames=$(frames_so_far)
  sleep 10
  say "frames: $frames, 10 s later $(frames_so_far)"
  for rank in $(ps -o pid= --ppid "$1"); do
    tail -v -n 1 "/proc/$rank"/task/*/schedstat >&2
    if command -v gdb >/dev/null; then timeout 100 gdb -p "$rank" -batch -ex "thread apply all backtrace" >&2; fi
  done
}

# run NAME EAGER ARGUMENT...: runs mpirun with ARGUMENTs; all ranks have to report success. On two cores at a load of
# 45 a run took up to 65 s.
run() {
  local name=$1 eager=$2 mpirun
  shift 2
  start "$work/$name.log" "$mpi/bin/mpirun" --mca btl udapl,self \
    --mca btl_udapl_use_eager_rdma "$eager" --mca mpi_yield_when_idle 1 -x LD_LIBRARY_PATH "$@"
  mpirun=$!
  wait_for 600 ended "$mpirun" || { tell_of "$mpirun" && fail "$name does not end"; }
  expect wait "$mpirun"
  if grep -E 'udapl.*(DAT_|ERROR)|rank [0-9]*: (a wrong|another)' "$work/$name.log" >&2; then fail "$name"; fi
}
right() { expect [ "$(grep -c 'all is right' "$work/$1.log")" -eq "$2" ]; }

one_stpd() {
  local eager i
  start_stpd one - loop --address 10.9.0.1/24
  await_stpd one
  dat_conf one stp0 "stpd:$work/one.sock"
  export DAT_OVERRIDE=$work/one.conf
  for eager in 1 0; do
    for ((i = 1; i <= runs; ++i)); do
      run "pingpong-$eager-$i" "$eager" -np 2 -x DAT_OVERRIDE "$work/mpi_programs" pingpong $rounds
      right "pingpong-$eager-$i" 2
    done
    say "eager RDMA $eager: $runs runs of $rounds messages there and back"
    run "collectives-$eager" "$eager" -np 4 -x DAT_OVERRIDE "$work/mpi_programs" collectives 5
    right "collectives-$eager" 4
    say "eager RDMA $eager: Allreduce and Alltoall of 4 ranks"
  done
  expect_few_repeats one $((runs * rounds))
}

# Each rank has an end of a memif of its own.
two_programs() {
  local eager
  dat_conf server stp0 "memif:$work/memif.sock,role=server,mac=02:00:00:00:09:02,address=10.9.0.2/24"
  dat_conf client stp0 "memif:$work/memif.sock,role=client,mac=02:00:00:00:09:01,address=10.9.0.1/24"
  for eager in 1 0; do
    run "memif-$eager" "$eager" -np 1 -x "DAT_OVERRIDE=$work/server.conf" "$work/mpi_programs" \
      pingpong $rounds : -np 1 -x "DAT_OVERRIDE=$work/client.conf" "$work/mpi_programs" pingpong $rounds
    right "memif-$eager" 2
    run "memif-collectives-$eager" "$eager" -np 1 -x "DAT_OVERRIDE=$work/server.conf" \
      "$work/mpi_programs" collectives 5 : -np 1 -x "DAT_OVERRIDE=$work/client.conf" \
      "$work/mpi_programs" collectives 5
    right "memif-collectives-$eager" 2
    say "eager RDMA $eager: two programs on memif"
  done
}

one_stpd
two_programs
passed
