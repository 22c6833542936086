#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: options.sh ROOT BINARIES
# The page of a program documents all its long options and no others.
set -u
cd "$1" || exit 1
# shellcheck source=setup.sh
. tests/man/setup.sh
sort_options() { grep -oE -- '--[a-z][a-z-]*' | sort -u; }

# helps COMMAND...: --help of a program, of its subcommands, and of theirs.
helps() {
  local help subcommand
  help=$("$@" --help) || echo "  --help-of-$* FAILED"
  printf '%s\n' "$help"
  for subcommand in $(sed -nE '/^Subcommands:/,/^$/s/^  ([a-z-]+).*/\1/p' <<<"$help"); do
    helps "$@" "$subcommand"
  done
}

count=0
for page in "$pages"/*.[18].scd; do
  name=$(names_of "$page")
  [ -x "$2/$name" ] || continue
  count=$((count + 1))
  help=$(helps "$2/$name")
  diff <({ section_of "$page" OPTIONS && section_of "$page" COMMANDS; } |
    grep -E '^'$'\t''*\*-' | sort_options) \
    <(grep -oE '^ +(-[a-zA-Z0-9],)?--[a-z][a-z-]*' <<<"$help" | sort_options) ||
    complain "$page: '<' is only there, '>' only in $name --help"
  commands=$(section_of "$page" COMMANDS)
  for subcommand in $(sed -nE '/^Subcommands:/,/^$/s/^  ([a-z-]+).*/\1/p' <<<"$help"); do
    [[ $commands =~ (^|[^A-Za-z0-9_])$subcommand\* ]] || complain "$page has not $name $subcommand"
  done
  section_of "$page" "EXIT STATUS" | grep -q . || complain "$page does not tell the EXIT STATUS"
done
# operations.md has them all in a table.
for subcommand in $("$2/stpctl" --help | sed -nE '/^Subcommands:/,/^$/s/^  ([a-z-]+).*/\1/p'); do
  grep -q "^| \`stpctl $subcommand\b" docs/operations.md || complain "docs/operations.md has no row for stpctl $subcommand"
done
[ $count -ge 3 ] || complain "only $count programs found"
exit $wrong
