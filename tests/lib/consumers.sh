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
  kept=$(realpath -m "$build/consumers")
  mkdir -p "$kept"
}

# source_of PATTERN [PACKAGE]: the archive's path. If STP_PEERS has none, it is that of Debian's source package
# PACKAGE.
source_of() {
  local found
  for found in ${STP_PEERS:+"$STP_PEERS"/$1} "$kept"/$1; do
    [ ! -e "$found" ] || { echo "$found" && return; }
  done
  [ $# -eq 2 ] || skip "${STP_PEERS:-STP_PEERS} has no $1"
  download_source "$2" >&2
  found=("$kept"/$1)
  [ -e "${found[0]}" ] || skip "${STP_PEERS:-STP_PEERS} has no $1, and apt cannot download the source package $2"
  echo "${found[0]}"
}

# download_source PACKAGE: to $kept, from the archives that apt knows. Their sources need not be enabled, and nothing
# of the system's apt is changed.
download_source() {
  local apt=$kept/apt options
  rm -rf "$apt/source" # of a download that was interrupted
  command -v apt-get >/dev/null || return 1
  mkdir -p "$apt/lists/partial" "$apt/parts" "$apt/cache/archives/partial" "$apt/source"
  apt-get indextargets --format "deb-src \$(SITE) \$(RELEASE) \$(COMPONENT)" "Created-By: Packages" | sort -u >"$apt/list"
  options=(-q -o "Dir::Etc::SourceList=$apt/list" -o "Dir::Etc::SourceParts=$apt/parts"
    -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o Acquire::Retries=3)
  # An archive without sources, or a file of the package that is not needed here, may be missing.
  apt-get "${options[@]}" update
  (cd "$apt/source" && apt-get "${options[@]}" source --download-only "$1")
  mv "$apt/source"/*.tar.* "$kept"
}
