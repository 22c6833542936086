# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by the tests of what is installed. Arguments: the build directory, the root of the project.
set -uo pipefail
# shellcheck disable=SC2034
build=$1
root=$2
program=$(basename "$0" .sh)
# shellcheck source=../../tools/lib/common.sh
. "$root/tools/lib/common.sh"

expect() { "$@" || fail "not true: $*"; }
# quietly COMMAND...: what it said is shown where it fails.
quietly() { "$@" >"$work/said" 2>&1 || { cat "$work/said" >&2; fail "failed: $*"; }; }

# Debian's State Threads is called libst, too. The names of its files (packages libst1 and
# libst-dev) stay its own: FOLDER is what stands for / .
no_file_of_state_threads() {
  local files=(usr/include/st.h usr/lib/libst.a usr/lib/libst.so usr/lib/libst.so.1
    usr/lib/libst.so.1.9 usr/lib/pkgconfig/st.pc usr/share/doc-base/st-notes
    usr/share/doc-base/st-performance usr/share/doc-base/st-reference usr/share/doc/libst-dev
    usr/share/doc/libst1 usr/share/lintian/overrides/libst1)
  local file
  for file in "${files[@]}"; do
    [ ! -e "$1/$file" ] || fail "$file belongs to State Threads"
  done
  # The same libraries in the directories where other releases of Debian have them.
  [ -z "$(find "$1" -name 'libst.so*' -o -name libst.a -o -name st.pc)" ] || fail "a library is called libst"
}

# Programs and their manual pages below FOLDER, as a user finds them.
programs_and_pages() {
  local file name
  for file in "$1"/bin/* "$1"/sbin/*; do
    name=$(basename "$file")
    expect test -x "$file"
    expect test -n "$(find "$1/share/man" -name "$name.[18].gz")"
    expect test -e "$1/share/bash-completion/completions/$name"
  done
  expect test -e "$1/share/zsh/vendor-completions/_stp"
  expect test -e "$1/share/man/man3/st_create.3.gz"
  expect test -e "$1/share/man/man7/libst.7.gz"
  links_of_pages "$1/share/doc/stp"
  expect test -n "$(find "$1/lib" -path '*/wireshark/plugins/stp-st.lua')"
}

# What pages in FOLDER link to, pictures and captures too, stands there.
links_of_pages() {
  local page target count=0
  while IFS=: read -r page target; do
    [ -e "${page%/*}/$target" ] || fail "$page: $target leads nowhere"
    count=$((count + 1))
  done < <(grep -roE --include='*.md' '\]\([^)]+\)' "$1" |
    sed -nE '/\((https?|#)/d; s/^([^:]+):\]\(([^)#]*).*/\1:\2/p' | sort -u)
  expect test "$count" -ge 100
  expect test -e "$1/README.md" -a -e "$1/captures/write.pcapng" -a -e "$1/docs/tutorial/trace.svg" \
    -a -e "$1/docs/dashboards/stpd.json" -a -e "$1/docs/dashboards/stpd.rules.yml"
}

# consumers PREFIX CC [all]: somebody's program is built with what pkg-config and CMake find, and runs. With all, or
# STP_LONG, so are the examples and a program of uDAPL.
consumers() {
  local prefix=$1 compiler=$2 pkgconfig source=$root/tests/libst/first_program.c
  pkgconfig=$(dirname "$(find "$prefix" -maxdepth 4 -path "*/pkgconfig/libst.pc")")
  # shellcheck disable=SC2046
  quietly "$compiler" -std=c11 -Wall -Wextra -Wpedantic -Werror "$source" -o "$work/by_pkgconfig" \
    $(PKG_CONFIG_PATH=$pkgconfig pkg-config --cflags --libs libst)
  STP_LINK=loop LD_LIBRARY_PATH=$(dirname "$pkgconfig") quietly "$work/by_pkgconfig"
  quietly cmake -S "$root/tests/install/consumer" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_C_COMPILER="$compiler" -DPROGRAM="$source"
  quietly cmake --build "$work/consumer"
  STP_LINK=loop quietly "$work/consumer/consumer"
  [ "${3-}${STP_LONG-}" ] || return 0
  examples "$prefix" "$compiler" "$pkgconfig"
  [ ! -e "$pkgconfig/stp-dat1.2.pc" ] || dat_consumer "$pkgconfig" "$compiler"
}

# examples PREFIX CC PKGCONFIG: all that are installed compile from there, as their README says. In short, of those in C++
# only the one with the most headers; the others, which the build has compiled as well, are looked at.
examples() {
  local source compilers count=0
  for source in "$1"/share/doc/stp/examples/*.c "$1"/share/doc/stp/examples/*.cpp; do
    compilers=("$2" -std=c11)
    case $source in *.cpp) compilers=(c++ -std=c++20) ;; esac
    case $source in */coroutine_server.cpp | *.c) ;; *) [ -n "${STP_LONG-}" ] || compilers+=(-fsyntax-only) ;; esac
    # shellcheck disable=SC2046
    quietly "${compilers[@]}" -Wall -Wextra "$source" -o "$work/example" \
      $(PKG_CONFIG_PATH=$3 pkg-config --cflags --libs libst)
    count=$((count + 1))
  done
  expect test "$count" -ge 5
}

# dat_consumer PKGCONFIG CC: a program of uDAPL 1.2; dat.conf names the provider without its folder.
dat_consumer() {
  # shellcheck disable=SC2046
  quietly "$2" -std=c99 -Wall -Wextra -Wpedantic -Werror "$root/tests/udapl/dat1/every_call.c" \
    -o "$work/by_dat" $(PKG_CONFIG_PATH=$1 pkg-config --cflags --libs stp-dat1.2)
  echo 'stp0 u1.2 nonthreadsafe default libdaplstp1.so.0 stp.1.2 "loop" ""' >"$work/dat.conf"
  DAT_OVERRIDE=$work/dat.conf LD_LIBRARY_PATH=$(dirname "$1") quietly "$work/by_dat"
}
