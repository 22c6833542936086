#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: alone.sh BUILD ROOT
# Each source includes what it uses, and no name shadows another one: the whole project compiles without unity
# builds. tools/test --long runs it, because that takes many minutes.
# shellcheck source=setup.sh
. "$(dirname "$0")/setup.sh"
[ -n "${STP_LONG-}" ] || { echo "SKIPPED: tools/test --long runs it"; exit 77; }
make_work_directory
quietly cmake -S "$root" -B "$work/alone" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O0 -g0" \
  -DCMAKE_UNITY_BUILD=OFF -DSTP_MAN=OFF
quietly cmake --build "$work/alone" -j2
echo PASSED
