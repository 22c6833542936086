#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The demo over memif: the file arrives, and the last line says so.
. "$(dirname "$0")/setup.sh"
make_work_directory
"$tools/demo" --build "$build" --size 64M --link memif | tee "$work/output"
expect [ "${PIPESTATUS[0]}" -eq 0 ]
expect grep -Eqx 'demo: OK 67108864 bytes [0-9.]+ Gbit/s sha256 [0-9a-f]{64}' \
  <(tail -n 1 "$work/output")

# What is wrong with the command line, and a directory without programs, is told at once.
# refuses TEXT ARGUMENT...
refuses() {
  "$tools/demo" "${@:2}" 2>"$work/output"
  [ $? -eq 2 ] && says "$work/output" "demo: $1"
}
expect refuses "there is no option --sise" --sise 1K
expect refuses "--size 1T is no size" --size 1T
expect refuses "--size: the value is missing" --size
expect refuses "--link tcp: write veth or memif" --link tcp
"$tools/demo" --build "$work/none" >"$work/output"
expect [ $? -eq 1 ]
expect says "$work/output" "demo: FAILED there is no program $work/none/bin/stpd: name a build directory"
passed
