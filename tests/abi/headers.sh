#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: headers.sh ROOT COMPILER...
# Each public header compiles by itself, without a warning, as C99 with -Wpedantic, as C11 and as C++ without casts of C. Each compiler
# takes every second of the standards; with STP_LONG all.
# The headers of C++ alone say which standard they need.
# It is not included as a system header, because compilers print no warnings for those.
set -u
root=$1
shift
wrong=0 count=0

# compiles COMPILER LANGUAGE HEADER FOLDER
compiles() {
  local language=c casts=-Wcast-qual uses=''
  case $2 in c++*) language=c++ casts=-Wold-style-cast ;; esac
  [ "$3" != stp/st.h ] || uses='unsigned op(unsigned a) { return ST_OP(ST_OP_FLAGS(ST_OP_RTS, a)) + ST_FLAGS(a); }'
  count=$((count + 1))
  printf '#include <%s>\nunsigned op(unsigned);\n%s\n' "$3" "$uses" |
    "$1" -x "$language" -std="$2" -Wall -Wextra -Wpedantic "$casts" -Werror -fsyntax-only -I "$4" - && return
  echo "$3 does not compile with $1 -std=$2"
  wrong=1
}

standards="c99 c++20" others="c11 c++11"
[ -z "${STP_LONG-}" ] || standards="$standards $others" others=$standards
for compiler in "$@"; do
  command -v "$compiler" >/dev/null || { echo "no $compiler here: not tried" && continue; }
  for standard in $standards; do
    for folder in "$root/libst/include" "$root/libst/udapl/dat1/include"; do
      for header in "$folder"/*/*.h; do
        compiles "$compiler" "$standard" "${header#"$folder"/}" "$folder"
      done
    done
  done
  swapped=$standards standards=$others others=$swapped
done
# Who compiles for an older standard is told which one it takes.
for header in managed:17:14 coroutine:20:17; do
  IFS=: read -r name needed older <<<"$header"
  printf '#include <stp/%s.hpp>\n' "$name" | "$1" -x c++ -std=c++"$older" -E -I "$root/libst/include" - 2>&1 >/dev/null |
    grep -q "<stp/$name.hpp> needs C++$needed or later" ||
    { echo "$name.hpp does not say that it needs C++$needed" && wrong=1; }
done
[ $count -ge 8 ] || { echo "only $count headers found"; exit 1; }
exit $wrong
