#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: named_tests.sh ROOT
# Every test that a page names exists, and the page names every test of the files about it.
set -euo pipefail
cd "$1"

named() { grep -oE '`[A-Z][A-Za-z0-9]*\.[A-Za-z_0-9]+`' "$1" | tr -d '`' | sort -u; }
# TEST_P(Suite, Name) -> Suite.Name, even if it takes two lines.
tests_in() {
  find "$@" -name '*.cpp' -exec cat {} + | tr '\n' ' ' |
    grep -oE 'TEST(_[FP])?\([A-Za-z0-9]+, *[A-Za-z_0-9]+\)' |
    sed -E 's/^TEST[_FP]*\(([A-Za-z0-9]+), *([A-Za-z_0-9]+)\)$/\1.\2/' | sort -u
}

failed=0
check() { # PAGE LEAST-NUMBER FILE...
  local page=$1 least=$2 missing unnamed
  shift 2
  [ "$(named "$page" | wc -l)" -gt "$least" ] || { echo "the tests are no longer found in $page"; exit 1; }
  missing=$(comm -23 <(named "$page") <(tests_in tests))
  unnamed=$(comm -13 <(named "$page") <(tests_in "$@"))
  if [ -n "$missing$unnamed" ]; then
    printf 'named in %s, but there is no such test: %s\n' "$page" "${missing:-none}"
    printf 'not named there: %s\n' "${unnamed:-none}"
    failed=1
  else
    echo "$page: all $(named "$page" | wc -l) are there"
  fi
}

check docs/libst.md 50 tests/libst/conformance
check docs/udapl-pages.md 60 tests/udapl/evd_wait_test.cpp tests/udapl/srq_test.cpp \
  tests/udapl/arrival_test.cpp tests/udapl/fronts/{evd,srq,returns}_test.cpp
exit $failed
