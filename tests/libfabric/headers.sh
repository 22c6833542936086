#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: headers.sh BUILD-DIRECTORY
# The provider's sources compile without warnings with the headers of other releases of libfabric, too. STP_PEERS names
# a folder with libfabric-*.tar.*.
here=$(realpath "$(dirname "$0")")
. "$here/../end_to_end/setup.sh"
. "$here/../lib/consumers.sh"
needs_long
needs_peers
needs c++ tar
make_work_directory
root=$(realpath "$here/../..")
# Names in anonymous namespaces differ within a folder, so one file has all.
(cd "$root" && printf '#include "%s"\n' libst/libfabric/*.cpp libst/libfabric/rdm/*.cpp) >"$work/all.cpp"
tried=0
for archive in "$STP_PEERS"/libfabric-*.tar.*; do
  [ -e "$archive" ] || skip "$STP_PEERS has no libfabric-*.tar.*"
  release=$(basename "$archive" | sed 's/\.tar\..*//')
  tar -C "$work" -xf "$archive" "$release/include/rdma"
  c++ -std=c++20 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Wconversion -Werror -fsyntax-only -I "$root" \
    -I "$root/libst/include" -isystem "$work/$release/include" "$work/all.cpp" >"$work/compiler.log" 2>&1 ||
    { cat "$work/compiler.log" >&2 && fail "with the headers of $release"; }
  tried=$((tried + 1))
done
say "the headers of $tried other releases"
passed
