# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# How long each stage of a check takes, and how busy this machine's processors are meanwhile: what waits makes them
# less busy. Appended to the file $times. Sourced, never run.

# processor_time VARIABLE: the ticks of 10 ms that all processors have worked since this machine began.
processor_time() {
  local name user nice system idle waiting hard soft rest
  # shellcheck disable=SC2034
  read -r name user nice system idle waiting hard soft rest </proc/stat
  printf -v "$1" %s $((user + nice + system + hard + soft))
}

stage_begins() {
  stage_begun=$SECONDS
  processor_time stage_ticks
}

# stage_ended NAME [TESTS [RUN-AGAIN]]
stage_ended() {
  local ticks seconds=$((SECONDS - stage_begun))
  processor_time ticks
  echo "$1 $seconds $(((ticks - stage_ticks) / ((seconds + (seconds == 0)) * $(nproc)))) ${2-0} ${3-0}" >>"${times:?}"
}
