# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced first by each script here; its argument is the build directory. STP_PEERS names a folder
# with the sources of the programs. Without STP_LONG, sources or tools the test is skipped.
. "$(dirname "$0")/../../end_to_end/setup.sh"

[ -n "${STP_LONG-}" ] || skip "it takes minutes: tools/test --long runs it"
[ -n "${STP_PEERS-}" ] || skip "STP_PEERS does not name a folder with the sources: tools/test --peers DIR"
[ -e "$build/lib/libdaplstp1.so.0" ] || skip "uDAPL was not built"
grep -q '^STP_SANITIZE:[A-Z]*=$' "$build/CMakeCache.txt" ||
  skip "stock programs cannot load a library with sanitizers"

# What is built from the sources stays here for the next run.
kept=$build/consumers
mkdir -p "$kept"

# source_of PATTERN: the archive's path.
source_of() {
  local found=("$STP_PEERS"/$1)
  [ -e "${found[0]}" ] || skip "$STP_PEERS has no $1"
  echo "${found[0]}"
}
needs() {
  local tool
  for tool; do command -v "$tool" >/dev/null || skip "$tool is missing"; done
}

# A tree as stp-dat1.2 installs it: in $dat.
lay_out_dat() {
  dat=$kept/dat
  mkdir -p "$dat/include" "$dat/lib"
  ln -sfn "$(realpath "$(dirname "$0")/../../../libst/udapl/dat1/include/dat")" "$dat/include/dat"
  ln -sf "$(realpath "$build")"/lib/libdat.so* "$(realpath "$build")"/lib/libdaplstp1.so* \
    "$(realpath "$build")"/lib/libstp.so* "$dat/lib/"
  export LD_LIBRARY_PATH=$dat/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

# dat_conf NAME IA LINK: writes $work/NAME.conf.
dat_conf() {
  local safety
  for safety in nonthreadsafe threadsafe; do
    echo "$2 u1.2 $safety default libdaplstp1.so.0 stp.1.2 \"$3\" \"\""
  done >"$work/$1.conf"
}
