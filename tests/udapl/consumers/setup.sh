# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced first by each script here; its argument is the build directory. Without STP_LONG, sources
# or tools the test is skipped.
. "$(dirname "$0")/../../end_to_end/setup.sh"
. "$(dirname "$0")/../../lib/consumers.sh"

needs_long
[ -e "$build/lib/libdaplstp1.so.0" ] || skip "uDAPL was not built"
needs_no_sanitizer
keep_built

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
