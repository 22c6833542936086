#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: braces.sh PROJECT
# GCC compiles the tests where there is no clang, and refuses an `if` that has one of GoogleTest's checks as its only
# statement, without braces: these have an `else` of their own.
set -euo pipefail
cd "${1:?usage: braces.sh PROJECT}"

found=$(find tests \( -name '*.cpp' -o -name '*.h' \) -print0 | xargs -0 awk '
  FNR == 1 { bare = 0 }
  /^ *(\} )?(else )?if \(.*\) (EXPECT|ASSERT)_/ || (bare && /^ *(EXPECT|ASSERT)_/) { print FILENAME ":" FNR ": " $0 }
  { bare = /^ *(\} )?(else )?if \(.*\)$/ }
')
[ -z "$found" ] || {
  printf 'an if around a check of GoogleTest needs braces (GCC, -Wdangling-else):\n%s\n' "$found"
  exit 1
}
