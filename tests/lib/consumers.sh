# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced after end_to_end/setup.sh by tests that run programs of others. STP_PEERS names a folder
# with the sources of those that are built here.

# needs TOOL...: or the test is skipped.
needs() {
  local tool
  for tool; do command -v "$tool" >/dev/null || skip "$tool is missing"; done
}

needs_long() {
  [ -n "${STP_LONG-}" ] || skip "it takes minutes: tools/test --long runs it"
}
needs_peers() {
  [ -n "${STP_PEERS-}" ] ||
    skip "STP_PEERS does not name a folder with the sources: tools/test --peers DIR"
}
needs_no_sanitizer() {
  grep -q '^STP_SANITIZE:[A-Z]*=$' "$build/CMakeCache.txt" ||
    skip "stock programs cannot load a library with sanitizers"
}

# What is built from the sources stays here for the next run.
keep_built() {
  kept=$build/consumers
  mkdir -p "$kept"
}

# source_of PATTERN: the archive's path.
source_of() {
  local found=("$STP_PEERS"/$1)
  [ -e "${found[0]}" ] || skip "$STP_PEERS has no $1"
  echo "${found[0]}"
}
