#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: security.sh ROOT
# Every test that docs/security.md names exists: `Suite.Name` as a test case, `folder.name` as a script
# or program that ctest runs. Each row of a table of promises names a test.
set -euo pipefail
cd "$1"
page=docs/security.md
failed=0

declare -A cases=()
while read -r name; do cases[$name]=1; done < <(find tests -name '*.cpp' -exec cat {} + | tr '\n' ' ' |
  grep -oE '(TEST(_[FP])?|INSTANTIATE_[A-Z_]+)\([A-Za-z0-9_]+, *[A-Za-z_0-9]+' |
  sed -E 's/^[A-Z_]+\(([A-Za-z0-9_]+), *([A-Za-z_0-9]+)$/\1.\2/')

# `end_to_end.flood` is tests/end_to_end/flood.sh, or a name that a CMakeLists.txt defines.
defined=$(grep -rhoE --include=CMakeLists.txt -- 'NAME [a-z_0-9]+\.[a-z_0-9]+' tests)
is_program() {
  [ -f "tests/${1%%.*}/${1#*.}.sh" ] || [[ $defined == *"NAME $1"* ]]
}

count=0
while read -r name; do
  count=$((count + 1))
  case $name in
    [A-Z]*) [ -z "${cases[$name]-}" ] || continue ;;
    *) is_program "$name" && continue ;;
  esac
  echo "$page names $name, and there is no such test"
  failed=1
done < <(grep -E '^\| .* \| `' "$page" | grep -oE '`[A-Za-z_]+[A-Za-z0-9_]*\.[A-Za-z_0-9]+`' | tr -d '`' | sort -u)
[ "$count" -ge 20 ] || { echo "the tests are no longer found in $page ($count)"; exit 1; }

# A table of promises has two columns, "promise" and "held by".
unproven=$(awk '/^\| promise \| held by \|/ { table = 1; next } !/^\|/ { table = 0 }
  table && !/^\| --- / && !/\| .*`[A-Za-z_]+[A-Za-z0-9_]*\.[A-Za-z_0-9]+`/ { print }' "$page")
[ -z "$unproven" ] || { printf 'promises of %s without a test:\n%s\n' "$page" "$unproven"; failed=1; }
[ $failed -eq 1 ] || echo "$page: all $count tests are there"
exit $failed
