#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: first_program.sh ROOT [--update]
# The program in README.md is the one that tests/libst compiles and runs, and it is short.
# --update copies it to README.md.
set -euo pipefail
cd "$1"
program=tests/libst/first_program.c

# Prints README.md with the program from the sources between the fences that follow its mark.
readme_as_it_should_be() {
  awk -v mark="<!-- $program -->" -v program="$program" '
    inside && !/^```$/ { next }
    { print; inside = 0 }
    $0 == mark { marked = 1; next }
    marked && /^```c$/ {
      while ((getline line < program) > 0) print line
      inside = 1
      marked = 0
    }' README.md
}

grep -qxF -- "<!-- $program -->" README.md || { echo "README.md has no place for it"; exit 1; }
if [ "${2-}" = --update ]; then
  updated=$(readme_as_it_should_be)
  printf '%s\n' "$updated" >README.md
fi
diff README.md <(readme_as_it_should_be)
lines=$(wc -l <"$program")
[ "$lines" -le 60 ] || { echo "$program has $lines lines, 60 are enough"; exit 1; }
echo "the same"
