#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The demo over memif: the file arrives, and the last line says so.
. "$(dirname "$0")/setup.sh"
make_work_directory
"$tools/demo" --build "$build" --size 64M --link memif | tee "$work/output"
expect [ "${PIPESTATUS[0]}" -eq 0 ]
expect grep -Eqx 'demo: OK 67108864 bytes [0-9.]+ Gbit/s sha256 [0-9a-f]{64}' \
  <(tail -n 1 "$work/output")

# A directory without programs is told at once.
"$tools/demo" --build "$work/none" >"$work/output"
expect [ $? -eq 1 ]
expect says "$work/output" "demo: FAILED there is no program $work/none/bin/stpd: name a build directory"
passed
