#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: first_program.sh ROOT [--update]
# The first programs that pages show are the ones that tests compile and run, and they are short.
# --update copies them to the pages.
set -euo pipefail
cd "$1"
update=${2-}

# Prints PAGE with PROGRAM from the sources between the fences that follow its mark.
as_it_should_be() { # PAGE PROGRAM
  awk -v mark="<!-- $2 -->" -v program="$2" '
    inside && !/^```$/ { next }
    { print; inside = 0 }
    $0 == mark { marked = 1; next }
    marked && /^```(c|python)$/ {
      while ((getline line < program) > 0) print line
      inside = 1
      marked = 0
    }' "$1"
}

shown() { # PAGE PROGRAM LINES
  local updated lines
  grep -qxF -- "<!-- $2 -->" "$1" || { echo "$1 has no place for $2"; exit 1; }
  if [ "$update" = --update ]; then
    updated=$(as_it_should_be "$1" "$2")
    printf '%s\n' "$updated" >"$1"
  fi
  diff "$1" <(as_it_should_be "$1" "$2")
  lines=$(wc -l <"$2")
  [ "$lines" -le "$3" ] || { echo "$2 has $lines lines, $3 are enough"; exit 1; }
}

shown docs/libst.md tests/libst/first_program.c 60
shown docs/managed.md tests/managed/first_managed.c 75
shown README.md tools/examples/hello_receive.py 14
shown README.md tools/examples/hello_send.py 17
echo "the same"
