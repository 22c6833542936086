#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: examples.sh ROOT CC
# The programs of the EXAMPLES sections in sections 3 and 7 compile as the pages print them, and no
# sample loses a backslash there: scdoc prints two as one, and one as none.
set -u
cd "$1" || exit 1
# shellcheck source=setup.sh
. tests/man/setup.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
count=0

for page in "$pages"/*.[37].scd; do
  section_of "$page" EXAMPLES | code | sed 's/\\\(.\)/\1/g' >"$folder/example.c"
  [ -s "$folder/example.c" ] || continue
  count=$((count + 1))
  "$2" -std=c11 -D_DEFAULT_SOURCE -Wall -Wextra -Wpedantic -Werror -fsyntax-only -Ilibst/include \
    "$folder/example.c" || complain "$page: its example does not compile"
done
for page in "$pages"/*.scd; do
  code <"$page" | sed 's/\\\\//g' | grep -qF '\' && complain "$page: a sample has a single backslash"
done
[ $count -ge 10 ] || complain "only $count examples found"
exit $wrong
