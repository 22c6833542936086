#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: libst_tests.sh ROOT
# Every test that docs/libst.md names exists, and it names every test of tests/libst/conformance.
set -euo pipefail
cd "$1"
page=docs/libst.md

named() { grep -oE '`[A-Z][A-Za-z0-9]*\.[A-Za-z_0-9]+`' "$page" | tr -d '`' | sort -u; }
# TEST_P(Suite, Name) -> Suite.Name, also where it stands in two lines.
tests_in() {
  find "$@" -name '*.cpp' -exec cat {} + | tr '\n' ' ' |
    grep -oE 'TEST(_[FP])?\([A-Za-z0-9]+, *[A-Za-z_0-9]+\)' |
    sed -E 's/^TEST[_FP]*\(([A-Za-z0-9]+), *([A-Za-z_0-9]+)\)$/\1.\2/' | sort -u
}

[ "$(named | wc -l)" -gt 50 ] || { echo "the tests are no longer found in $page"; exit 1; }
missing=$(comm -23 <(named) <(tests_in tests))
unnamed=$(comm -13 <(named) <(tests_in tests/libst/conformance))
if [ -n "$missing$unnamed" ]; then
  printf 'named in %s, but there is no such test: %s\n' "$page" "${missing:-none}"
  printf 'not named there: %s\n' "${unnamed:-none}"
  exit 1
fi
echo "all $(named | wc -l) are there"
